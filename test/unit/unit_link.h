/*-------------------------------------------------------------------------
 *
 * unit_link.h
 *	  A link (engine_link.h) to a job in this process: no socket between.
 *
 * Messages go straight to job.h's calls, which is what connection_message.c does with
 * them, and what the job reports waits in a queue.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UNIT_LINK_H
#define GPUSORT_UNIT_LINK_H

#include "job/job.h"
#include "engine/engine_link.h"

#define UNIT_LINK_QUEUE	256

typedef struct UnitLink UnitLink;

struct UnitLink
{
	GsEngineLink base;
	UnitLink   *consumer;			/* NULL: it may open a job itself */
	GsDevice   *device;
	GsDevicePool *pool;
	GsSortJob  *job;			/* that it opened; NULL: none is open */
	GsMember   *member;			/* of that one, or of its consumer's */
	uint64_t	token;
	GsFailure	failure;		/* the last one that the job reported */
	GsBufferPool		buffer_pool;
	bool		released;		/* the engine gave the link back */
	bool		reusable;		/* and so it said */
	int			break_after;	/* messages sent or received; < 0: never */
	bool		is_closed;		/* nothing can be sent; what is in the queue can be received */
	bool		slow;			/* who does not wait for ever waits in vain */
	int			nmessages;
	int			head;
	int			tail;
	GsAnyMessage queue[UNIT_LINK_QUEUE];
};

/* memory_limit is the device's, for jobs. */
extern UnitLink *unit_link_open(uint32_t buffer_bytes, uint32_t nbuffers, uint64_t memory_limit);

/* One more on the same device, whose engine may join the consumer's, or read it. */
extern UnitLink *unit_link_open_other(UnitLink *consumer, uint32_t buffer_bytes, uint32_t nbuffers);

/* Checks that the job is over and the device's memory back. */
extern void unit_link_close(UnitLink *link);

#endif							/* GPUSORT_UNIT_LINK_H */
