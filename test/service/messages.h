/*-------------------------------------------------------------------------
 *
 * messages.h
 *	  Random messages of several clients, to connections in this process.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MESSAGES_H
#define GPUSORT_MESSAGES_H

#include "unit_random.h"

/* What the clients achieved, so that a test can check the test itself. */
typedef struct MessagesReached
{
	unsigned	jobs;			/* opened */
	unsigned	joined;
	unsigned	producer_done;
	unsigned	sorted;
	unsigned	batches;		/* of sorted rows, or returned */
	unsigned	batches_read;	/* those by readers */
	unsigned	memory_failures;
	unsigned	other_failures;
	unsigned	dropped;
} MessagesReached;

/*
 * Runs up to max_steps messages of a few clients, on the host device.  Checks
 * that everything has been freed at the end.
 */
extern void messages_run(Dice *dice, int max_steps, MessagesReached *reached);

#endif							/* GPUSORT_MESSAGES_H */
