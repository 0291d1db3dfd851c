/*-------------------------------------------------------------------------
 *
 * service_check.c
 *	  A failed check fails the running cmocka test; in a child process of it,
 *	  the check ends the child.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit_cmocka.h"

static char case_text[200];
static pid_t runner;

__attribute__((constructor)) static void
note_runner(void)
{
	runner = getpid();
}

void
unit_case(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(case_text, sizeof(case_text), format, args);
	va_end(args);
}

void
unit_fail(const char *file, int line, const char *format,...)
{
	va_list		args;
	char		text[1024];

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (getpid() != runner)
	{
		fprintf(stderr, "# %s:%d: in a child: %s%s%s\n", file, line, case_text,
				case_text[0] != '\0' ? ": " : "", text);
		_exit(1);
	}
	print_error("# %s%s%s\n", case_text, case_text[0] != '\0' ? ": " : "", text);
	case_text[0] = '\0';
	_fail(file, line);
	abort();					/* _fail() left by longjmp */
}
