/*-------------------------------------------------------------------------
 *
 * fuzz_messages.c
 *	  libFuzzer sends messages: make fuzz.
 *
 * Its bytes replace the random numbers of messages.c, and so choose what each
 * client does next.
 *
 *-------------------------------------------------------------------------
 */
#include "messages.h"
#include "unit_check.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	static MessagesReached reached;
	Dice		dice = dice_of_bytes(data, nbytes);

	messages_run(&dice, 1000, &reached);
	return 0;
}
