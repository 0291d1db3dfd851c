/*-------------------------------------------------------------------------
 *
 * messages.h
 *	  Clients that say what the dice say, to connections in this process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MESSAGES_H
#define GPUSORT_MESSAGES_H

#include "unit_random.h"

/* What the clients of some cases came to, for tests of the test. */
typedef struct MessagesReached
{
	unsigned	jobs;			/* opened */
	unsigned	joined;
	unsigned	producer_done;
	unsigned	sorted;
	unsigned	batches;		/* of sorted rows, or returned */
	unsigned	memory_failures;
	unsigned	other_failures;
	unsigned	dropped;
} MessagesReached;

/*
 * Up to max_steps messages of a few clients, on a device of this processor.
 * Checks that nothing is left in the end.
 */
extern void messages_run(Dice *dice, int max_steps, MessagesReached *reached);

#endif							/* GPUSORT_MESSAGES_H */
