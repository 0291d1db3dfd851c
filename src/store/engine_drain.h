/*-------------------------------------------------------------------------
 *
 * engine_drain.h
 *	  Moves the rows of an engine somewhere else.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENGINE_DRAIN_H
#define GPUSORT_ENGINE_DRAIN_H

#include "engine/engine.h"

/* Takes a row, which is valid during the call.  False: it cannot. */
typedef bool (*GsTakeRow) (void *arg, const void *row);

/*
 * Passes on the rows of an engine: in its order if it has sorted them, otherwise in input order,
 * while it frees its memory batch by batch.  Ends when a row is not taken: *taken becomes false.
 * OK or FAILED, which is the engine's.
 */
extern GsStatus gs_engine_drain(GsEngine *engine, GsTakeRow take, void *arg, bool *taken);

#endif							/* GPUSORT_ENGINE_DRAIN_H */
