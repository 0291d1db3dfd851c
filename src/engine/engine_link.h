/*-------------------------------------------------------------------------
 *
 * engine_link.h
 *	  A connection to gpusortd, as the engine sees it.
 *
 * ISO C.  The implementation of backends is in client/gpu_client.c; tests have others.
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
	char	   *buffer_pool;	/* all buffers, which belong to the client */
	uint32_t	buffer_bytes;
	uint32_t	nbuffers;
	GsWelcome	welcome;		/* the state of the service */

	/* Sends a message.  Returns false if the connection is broken. */
	bool		(*send) (GsEngineLink *link, const GsMessage *message);

	/*
	 * Receives the next message.  Waits up to timeout_ms, or without limit if
	 * -1, and may exit through check_interrupts meanwhile; type 0 means that
	 * none has arrived.  Returns false if the connection is broken.
	 */
	bool		(*receive) (GsEngineLink *link, int timeout_ms, GsAnyMessage *message);

	/*
	 * Releases the link.  reusable: its job was closed, and another one may
	 * follow. Otherwise the connection is closed, which ends the job.
	 */
	void		(*release) (GsEngineLink *link, bool reusable);
};

#endif							/* GPUSORT_ENGINE_LINK_H */
