/*-------------------------------------------------------------------------
 *
 * unit_fuzz.c
 *	  What a failed check does under libFuzzer: it aborts.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit_check.h"

void
unit_case(const char *format,...)
{
	/* libFuzzer keeps the input itself */
}

void
unit_fail(const char *file, int line, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	fprintf(stderr, "%s:%d: ", file, line);
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	abort();
}
