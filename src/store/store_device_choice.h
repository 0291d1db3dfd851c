/*-------------------------------------------------------------------------
 *
 * store_device_choice.h
 *	  When a sort uses a device, and how its rows get there.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_DEVICE_CHOICE_H
#define GPUSORT_STORE_DEVICE_CHOICE_H

#include "engine/engine.h"

/* Are nrows rows enough for a device, if there is one? */
extern bool gs_device_pays(uint64 nrows);

/* Will a device probably sort nrows rows? */
extern bool gs_device_is_likely(double nrows);

/*
 * Opens the GPU engine, copies the rows of the CPU engine to it, and closes the CPU engine.  Waits
 * up to gpusort.device_wait, and can be interrupted.  NULL: it is not possible for the reason in
 * *why_not, and nothing has changed.  The memory and the connection of the new engine belong to the
 * context. expected_rows, of expected_bytes each, are estimates.  may_leave_ties: the caller orders
 * rows with equal keys if they require a comparison function.
 */
extern GsEngine *gs_device_move(GsEngine *cpu, MemoryContext context,
								double expected_rows, double expected_bytes, bool may_leave_ties,
								const char **why_not);

/*
 * Opens a job that other processes may join, or joins that of a device with its token.  NULL and
 * *why_not as above.
 */
extern GsEngine *gs_device_open_shared(const GsEngineRequest *request, MemoryContext context,
									   uint32 participant, double expected_rows,
									   double expected_bytes, const char **why_not);
extern GsEngine *gs_device_join_shared(const GsEngineRequest *request, MemoryContext context,
									   int device, uint64 token, uint32 participant,
									   const char **why_not);

/* Opens such a job for reading its sorted rows. */
extern GsEngine *gs_device_read_shared(const GsEngineRequest *request, MemoryContext context,
									   int device, uint64 token, const char **why_not);

/* Closes any engine, after the bytes that a device sent and received were counted. */
extern void gs_device_close(GsEngine *engine);

#endif							/* GPUSORT_STORE_DEVICE_CHOICE_H */
