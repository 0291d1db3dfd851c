/*-------------------------------------------------------------------------
 *
 * engine_link.h
 *	  A connection to gpusortd, as the GPU engine uses it.
 *
 * C without PostgreSQL: gpu_client.c implements it for backends, and tests have their own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENGINE_LINK_H
#define GPUSORT_ENGINE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/protocol.h"

typedef struct GsEngineLink GsEngineLink;

struct GsEngineLink
{
	char	   *buffer_pool;	/* nbuffers of buffer_bytes each; all belong to the client */
	uint32_t	buffer_bytes;
	uint32_t	nbuffers;
	GsWelcome	welcome;		/* of gpusortd */
	int			device;			/* the number of its device */
	bool		has_choice;		/* it is one of several devices */

	/* Sends a message.  False: the connection is closed. */
	bool		(*send) (GsEngineLink *link, const GsMessage *message);

	/*
	 * Receives the next message.  Waits up to timeout_ms, forever if that is -1, and
	 * may leave by longjmp() through check_interrupts meanwhile.  Type 0: timeout.
	 * False: the connection is closed.
	 */
	bool		(*receive) (GsEngineLink *link, int timeout_ms, GsAnyMessage *message);

	/*
	 * Releases the link.  reusable: the job has been closed in good order, so another
	 * one may follow.  Otherwise the link is disconnected, which ends the job.
	 */
	void		(*release) (GsEngineLink *link, bool reusable);
};

#endif							/* GPUSORT_ENGINE_LINK_H */
