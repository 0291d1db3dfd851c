/*-------------------------------------------------------------------------
 *
 * engine.h
 *	  The frontier between the drivers (a sort node, an index build) and the
 *	  engines that sort.
 *
 * A driver puts rows with their keys into batches and takes them back in key
 * order.  It knows nothing of how or where they are sorted; an engine knows
 * nothing of PostgreSQL.  The legal calls, in order:
 *
 *	  sort    := open load (sort hand-out [rest] | drain) close
 *	  load    := { reserve push* }
 *	  hand-out:= { fetch }			any position, any number of times
 *	  rest    := { next_batch }		after FULL: what the engine did not take
 *	  drain   := { next_batch }		input order, each row once; gives memory
 *									back as it goes
 *
 * Several engines, of as many processes, can feed one sort of a device (see
 * gs_engine_gpu_join).  One of them, the owner, goes as above; the others:
 *
 *	  feed    := join load end_feed [rest] close
 *
 * close is legal after any of them.  `push` is gs_batch_push() on the batch
 * that reserve returned; that batch is valid until the next reserve, sort or
 * drain, and for as many rows as gs_engine_has_space() says.  Order is ascending by the key (key_layout.h); rows with equal keys
 * keep the order in which they were pushed.
 *
 * Nothing here throws.  Calls that can fail return a GsStatus, and after any
 * status an engine can still be drained or closed, except after
 * GS_STATUS_FAILED, when the rows may be lost and only close is left.  The
 * host's check_interrupts callback may leave by longjmp: engines call it only
 * where nothing would be left behind but memory from the host's allocator,
 * which the host frees with its context.
 *
 * ISO C, no PostgreSQL and no CUDA.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENGINE_H
#define GPUSORT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/batch.h"
#include "common/runtime.h"
#include "common/key_layout.h"

typedef enum GsStatus
{
	GS_STATUS_OK = 0,
	GS_STATUS_FULL,				/* neither the memory limit nor the device allows
								 * more rows: sort or drain */
	GS_STATUS_OOM,				/* the host's allocator had no more: drain */
	GS_STATUS_REFUSED,			/* gpusortd did not accept the job, or did not
								 * let it be joined; see stats.full */
	GS_STATUS_DISPROVED,		/* the driver's verification found rows in the
								 * wrong order; no engine returns it */
	GS_STATUS_FAILED			/* the engine broke; see stats.detail */
} GsStatus;

/*
 * Which of two rows that the driver pushed comes first: < 0, 0 or > 0.  May
 * leave as check_interrupts may.
 */
typedef int (*GsRowCompare) (void *arg, const void *a, const void *b);

typedef struct GsJob
{
	GsKeyLayout *layout;		/* owned and observed by the driver; the engine
								 * reads the observations in sort */
	size_t		memory_limit;	/* bytes of host memory for rows, keys and
								 * everything the sort needs besides */
	GsRuntime		host;
	GsRowCompare compare;		/* orders rows with equal keys; NULL: nothing
								 * does.  For the engine in this process only,
								 * and not for keys_only layouts */
	void	   *compare_arg;
} GsJob;

/* How the order was found. */
typedef enum GsMethod
{
	GS_METHOD_NONE = 0,			/* not sorted yet */
	GS_METHOD_PRESORTED,		/* the input was in order */
	GS_METHOD_REVERSED,			/* it was in the opposite order */
	GS_METHOD_MERGE,			/* merge sort of a few rows */
	GS_METHOD_RADIX,			/* radix sort */
	GS_METHOD_WARP_MERGE		/* merge sort of any number, on a device */
} GsMethod;

typedef struct GsEngineStats
{
	const char *engine;			/* "cpu" or "cuda" */
	GsMethod	method;
	uint64_t	nrows;
	int			key_bits;		/* packed width of the key, without tails */
	bool		key_tails;		/* and it has tails */
	bool		all_compared;	/* but all rows had the same, and the driver's
								 * comparison ordered them */
	int			passes;			/* digit places of the first radix sort */
	uint64_t	tied_rows;		/* rows whose order took more than that */
	size_t		peak_bytes;		/* most memory ever held */
	const char *detail;			/* after GS_STATUS_FAILED, else NULL */
	const char *full;			/* after GS_STATUS_FULL, why, if it is not the
								 * memory limit; after GS_STATUS_REFUSED, why;
								 * else NULL */

	/* of a device; NULL and zeros without one */
	const char *device;			/* its name */
	size_t		device_bytes;	/* most of its memory ever held */
	uint64_t	bytes_up;		/* rows and keys sent to it */
	uint64_t	bytes_down;		/* and back */
	uint64_t	upload_us;		/* time in which any were on their way up */
	uint64_t	sort_us;		/* in which the device sorted */
	uint64_t	stream_us;		/* in which sorted rows were waited for */
} GsEngineStats;

typedef struct GsEngine GsEngine;

/*
 * What an engine can do that others cannot.  A driver decides by these, never by an
 * engine's name or its stats.
 */
typedef struct GsEngineCapabilities
{
	bool		can_compare;	/* calls job.compare; gs_engine_cpu_resort() */
	bool		can_prune;		/* gs_engine_cpu_keep_first() */
	bool		on_device;		/* rows leave this process: they do not count
								 * against the memory limit, are lost if the
								 * device fails, and after FULL the device has
								 * only some of them */
} GsEngineCapabilities;

extern const GsEngineCapabilities gs_engine_cpu_capabilities;
extern const GsEngineCapabilities gs_engine_gpu_capabilities;

/* One engine.  See the wrappers below for what each call promises. */
typedef struct GsEngineOps
{
	GsStatus	(*reserve) (GsEngine *engine, size_t row_bytes, GsBatch **batch);
	GsStatus	(*sort) (GsEngine *engine);
	GsStatus	(*fetch) (GsEngine *engine, uint64_t position, size_t nrows,
						  const void **rows, const uint64_t **records, size_t *fetched);
	GsStatus	(*return_input) (GsEngine *engine);
	GsStatus	(*next_batch) (GsEngine *engine, const GsBatch **batch);
	void		(*close) (GsEngine *engine);
} GsEngineOps;

/* Every engine starts with this. */
struct GsEngine
{
	const GsEngineOps *ops;
	const GsEngineCapabilities *capabilities;
	GsJob		job;
	GsEngineStats	stats;
};

/* Opens the engine that runs in this process; NULL if out of memory. */
extern GsEngine *gs_engine_cpu_open(const GsJob *job);

/* The batches that it has so far, in input order; only while it is loaded. */
extern const GsBatch *gs_engine_cpu_batches(const GsEngine *engine, size_t *nbatches);

/*
 * Drops all rows but the first nrows in order, of which there are more, in the
 * middle of the load, which then goes on with another reserve.  In *batch and
 * *slot is then the last of those kept, until the next call of any kind.  FULL
 * and OOM leave all the rows in place.
 */
extern GsStatus gs_engine_cpu_keep_first(GsEngine *engine, uint64_t nrows,
										 const GsBatch **batch, size_t *entry);

/*
 * Has sorted rows sorted once more, by a comparison function alone, as if the keys
 * had only been a hint; not of keys_only layouts.  FULL or OOM leave the order as it was.
 */
extern GsStatus gs_engine_cpu_resort(GsEngine *engine, GsRowCompare compare,
										 void *compare_arg);

/*
 * Opens the engine at the other end of a link (engine_link.h), which is the
 * engine's from now on, to the time of its close.  REFUSED: the device has no
 * memory for it.
 */
struct GsEngineLink;

typedef struct GsGpuOptions
{
	uint64_t	expected_bytes; /* that rows and keys may come to, of all feeders */
	uint64_t	session_bytes;	/* that all sorts of this process may have; 0: any */
	uint32_t	wait_ms;		/* for the device to have room */
	int			algorithm;		/* a GsAlgorithm (protocol.h) */
	bool		shared;			/* others may feed it */
	uint32_t	participant;	/* number of this one, if shared */
} GsGpuOptions;

extern GsStatus gs_engine_gpu_open(const GsJob *job, struct GsEngineLink *link,
									   const GsGpuOptions *options,
									   GsEngine **engine);

/* What others join a shared engine by; never 0. */
extern uint64_t gs_engine_gpu_token(const GsEngine *engine);

/*
 * Opens a feeder of a shared engine, mostly that of another process: its link's
 * slots are not larger than the owner's, its layout has the same shape.  Input
 * order of the whole is by participant, below GS_MAX_PARTICIPANTS, and then as
 * each pushed.  REFUSED: it cannot be joined, or no more.
 */
extern GsStatus gs_engine_gpu_join(const GsJob *job, struct GsEngineLink *link,
									   uint64_t token, uint32_t participant,
									   GsEngine **engine);

/*
 * A feeder's last word: *nrows becomes how many of its rows the device took, all
 * or the first ones pushed.  Waits until they are there; only when this has
 * returned in every feeder may the owner sort, or drain.  FULL: the last rows
 * cannot be taken; call it again.  After FULL, from reserve or from here,
 * next_batch() gives those that were not taken, up to *batch NULL.  A feeder
 * that is closed before this has said OK makes the whole sort fail.
 */
extern GsStatus gs_engine_end_producer(GsEngine *engine, uint64_t *nrows);

/*
 * Tells the owner, before it sorts, what end_feed() told all feeders
 * together.  Its layout has been merged with theirs by then.
 */
extern void gs_engine_gpu_expect(GsEngine *consumer, uint64_t nrows_of_producers);

/*
 * Has the batch that reserve gave room for another row?  Long rows are always
 * asked for: an engine may take none of that length.
 */
#define GS_SHORT_ROW_BYTES	((size_t) 16 << 10)

static inline bool
gs_engine_has_space(const GsBatch *batch, size_t row_bytes)
{
	return row_bytes <= GS_SHORT_ROW_BYTES && gs_batch_has_space(batch, row_bytes);
}

/*
 * Gives a batch with room for at least one row of row_bytes.  FULL or OOM
 * leave everything pushed so far in place.
 */
static inline GsStatus
gs_engine_reserve(GsEngine *engine, size_t row_bytes, GsBatch **batch)
{
	return engine->ops->reserve(engine, row_bytes, batch);
}

/*
 * Sorts what was pushed.  Calls check_interrupts at least every few ms.  After
 * FULL, from reserve or from sort, it sorts what the engine had taken by then, which is figures.nrows
 * rows, the first ones pushed; next_batch() gives the others, up to *batch NULL, while the sorted
 * ones can still be fetched.
 */
static inline GsStatus
gs_engine_sort(GsEngine *engine)
{
	return engine->ops->sort(engine);
}

/*
 * Fills rows[] with up to nrows sorted rows from position on (0-based);
 * *fetched becomes how many, 0 only at or past the end.  A row is what the
 * driver pushed, or in a keys_only layout its key word; it stays valid and in
 * place until the next fetch.  OK or FAILED.
 */
static inline GsStatus
gs_engine_fetch(GsEngine *engine, uint64_t position, size_t nrows, const void **rows,
				size_t *fetched)
{
	return engine->ops->fetch(engine, position, nrows, rows, NULL, fetched);
}

/*
 * The same, with the rows' records, which are NULL if the engine has them no
 * more.
 */
static inline GsStatus
gs_engine_fetch_records(GsEngine *engine, uint64_t position, size_t nrows,
						const void **rows, const uint64_t **records, size_t *fetched)
{
	return engine->ops->fetch(engine, position, nrows, rows, records, fetched);
}

/*
 * Ends the load without a sort: next_batch() then gives the batches in input
 * order, *batch NULL at the end, and frees each once past it.  Both OK or
 * FAILED.
 */
static inline GsStatus
gs_engine_return_input(GsEngine *engine)
{
	return engine->ops->return_input(engine);
}

static inline GsStatus
gs_engine_next_batch(GsEngine *engine, const GsBatch **batch)
{
	return engine->ops->next_batch(engine, batch);
}

static inline const GsEngineStats *
gs_engine_stats(const GsEngine *engine)
{
	return &engine->stats;
}

/* Frees everything, the engine too. */
static inline void
gs_engine_close(GsEngine *engine)
{
	engine->ops->close(engine);
}

#endif							/* GPUSORT_ENGINE_H */
