/*-------------------------------------------------------------------------
 *
 * sort_device.h
 *	  Which engine sorts the rows: the CPU's at first, then perhaps a device's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_DEVICE_H
#define GPUSORT_SORT_DEVICE_H

#include "engine/engine.h"

/* Are so many rows enough for the device, where there is one? */
extern bool gs_device_pays(uint64 nrows);

/* Will a device sort so many rows, as far as one can know? */
extern bool gs_device_is_likely(double nrows);

/*
 * Opens the device's engine and copies to it the rows that the CPU engine has.
 * Returns NULL, and why_not, if that cannot be: then nothing has happened.  Else the CPU engine is
 * closed.  The new engine's memory, and its connection, are the context's.
 * expected_rows, of expected_bytes each, is what the planner thinks.
 */
extern GsEngine *gs_device_move(GsEngine *cpu, MemoryContext context,
										  double expected_rows, double expected_bytes,
										  const char **why_not);

/*
 * Opens the engine of a device for a job that other processes may feed, or joins
 * such a job by its ticket.  NULL, and why_not, if that cannot be.  Otherwise as above.
 */
extern GsEngine *gs_device_open_shared(const GsJob *job, MemoryContext context,
									   uint32 participant, double expected_rows,
									   double expected_bytes, const char **why_not);
extern GsEngine *gs_device_join_shared(const GsJob *job, MemoryContext context,
									   uint64 token, uint32 participant,
									   const char **why_not);

#endif							/* GPUSORT_SORT_DEVICE_H */
