/*-------------------------------------------------------------------------
 *
 * unit_check.c
 *	  A failed check fails the running cmocka test.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit_cmocka.h"

static char case_text[200];

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
	print_error("# %s%s%s\n", case_text, case_text[0] != '\0' ? ": " : "", text);
	case_text[0] = '\0';
	_fail(file, line);
	abort();					/* _fail() left by longjmp */
}
