/*-------------------------------------------------------------------------
 *
 * log.c
 *	  Log lines of gpusortd, on stderr.
 *
 *-------------------------------------------------------------------------
 */
#include "job/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/basics.h"

#define LINE_BYTES			512

/* Of the lines that clients cause. */
#define LINES_PER_SECOND	5

/* One write() for each line, so that lines of several processes do not mix. */
static void
write_line(const char *format, va_list args)
{
	char		line[LINE_BYTES] = "gpusortd: ";
	size_t		nbytes = strlen(line);
	int			wanted = vsnprintf(line + nbytes, sizeof(line) - nbytes - 1, format, args);

	if (wanted < 0)
		return;
	nbytes = strlen(line);
	line[nbytes++] = '\n';
	if (write(STDERR_FILENO, line, nbytes) < 0)
		return;					/* there is no other place to report it */
}

void
gs_log(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	write_line(format, args);
	va_end(args);
}

void
gs_log_limited(const char *format,...)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t second = 0;
	static unsigned nlines = 0;
	uint64_t	now = gs_clock_us() / 1000000;
	unsigned	line;
	va_list		args;

	pthread_mutex_lock(&lock);
	if (now != second)
	{
		if (nlines > LINES_PER_SECOND)
			gs_log("suppressed %u more messages", nlines - LINES_PER_SECOND);
		second = now;
		nlines = 0;
	}
	line = ++nlines;
	pthread_mutex_unlock(&lock);
	if (line > LINES_PER_SECOND)
		return;
	va_start(args, format);
	write_line(format, args);
	va_end(args);
}
