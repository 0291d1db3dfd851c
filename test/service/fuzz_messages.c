/*-------------------------------------------------------------------------
 *
 * fuzz_messages.c
 *	  libFuzzer sends messages: make fuzz.
 *
 * Its bytes are the dice of messages.c: choice by choice, what each client does next.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "messages.h"
#include "unit_check.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

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

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	static MessagesReached reached;
	Dice		dice = dice_of_bytes(data, nbytes);

	messages_run(&dice, 1000, &reached);
	return 0;
}
