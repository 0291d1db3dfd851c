/*-------------------------------------------------------------------------
 *
 * engine_link.h
 *	  A connection to gpusortd, as the engine sees it.
 *
 * Plain ISO C: the backend's is in gpu_client.c, and tests have others.
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
	char	   *buffer_pool;			/* nslots of slot_bytes each, all the client's */
	uint32_t	buffer_bytes;
	uint32_t	nbuffers;
	GsWelcome	welcome;		/* what the service said of itself */

	/* False: the connection is broken. */
	bool		(*send) (GsEngineLink *link, const GsMessage *message);

	/*
	 * The next message, whole, into *message.  Waits for it so long, for ever if
	 * timeout_ms is -1, and may then leave through check_interrupts; type 0 says
	 * that none has come.  False: the connection is broken.
	 */
	bool		(*receive) (GsEngineLink *link, int timeout_ms, GsAnyMessage *message);

	/*
	 * Gives the link back.  Reusable: its job is closed in good order, and the
	 * next one may follow.  Otherwise the connection is cut, which ends the job.
	 */
	void		(*release) (GsEngineLink *link, bool reusable);
};

#endif							/* GPUSORT_ENGINE_LINK_H */
