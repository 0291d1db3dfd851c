/*-------------------------------------------------------------------------
 *
 * engine.h
 *	  The interface between drivers (a sort node, an index build) and the engines that sort.
 *
 * The legal calls, in order:
 *
 *	  sort    := open input (sort output [rest] | return_input input_back) close
 *	  input   := { reserve push* [sort output restart] }
 *	  output  := { fetch }			any position, any number of times
 *	  rest    := { next_batch }		after FULL: rows that the engine did not accept
 *	  input_back := { next_batch }	each row once, in input order; frees memory as
 *									it proceeds
 *
 * Several engines, of as many processes, can send rows to one sort on a device (see
 * gs_engine_gpu_join()).  One of them, the consumer, is used as above; the others are
 * producers:
 *
 *	  produce := join input end_producer [rest] close
 *
 * and others still, readers, get rows once the consumer has sorted them:
 *
 *	  read    := read [begin_reading output] close
 *
 * close is legal after any of them.  `push` is gs_batch_push() on the batch that reserve
 * returned.  That batch is valid until the next reserve, sort or return_input, for as
 * many rows as gs_engine_has_space() permits.  Order is ascending by the key
 * (key_layout.h); rows with equal keys keep the order in which they were pushed.
 *
 * Nothing here throws.  Calls that can fail return a GsStatus.  After any status except
 * GS_STATUS_FAILED, the input can be returned, or the engine closed; after
 * GS_STATUS_FAILED rows may be lost, and the engine can only be closed.  The
 * request's check_interrupts callback may exit by longjmp (runtime.h): engines call it only where
 * nothing but memory of its allocate callback would be leaked.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ENGINE_H
#define GPUSORT_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/batch.h"
#include "common/device_table.h"
#include "common/key_layout.h"
#include "common/runtime.h"

typedef enum GsStatus
{
	GS_STATUS_OK = 0,
	GS_STATUS_FULL,				/* the memory limit, or the device, does not
								 * allow more rows: sort, or return_input */
	GS_STATUS_OOM,				/* the allocator had no more: return_input */
	GS_STATUS_REFUSED,			/* gpusortd did not accept the job, or did not
								 * let it be joined; see stats.full */
	GS_STATUS_DISPROVED,		/* the caller's verification found rows in the
								 * wrong order; no engine returns it */
	GS_STATUS_FAILED			/* the engine broke; see stats.detail */
} GsStatus;

/* A row that the caller pushed, and what locate() has returned for it. */
typedef struct GsLocatedRow
{
	const void *row;
	uint64_t	value;
} GsLocatedRow;

/*
 * How the caller compares rows that it pushed: < 0, 0 or > 0.  A row takes part in many
 * comparisons, and what decides most of them has to be found only once: the value of the
 * first column that is compared.
 *
 * Any function will do, even one that contradicts itself.  All three may exit as
 * check_interrupts may, which the comparisons call themselves if they take long.
 */
typedef struct GsRowCompare
{
	/* the value, which the engine keeps as long as the row stays in place */
	uint64_t	(*locate) (void *arg, const void *row);

	/* two values; 0: compare_rows() decides */
	int			(*compare_values) (void *arg, uint64_t a, uint64_t b);

	/* are values addresses of what compare_values() reads?  NULL: no */
	bool		(*are_addresses) (void *arg);

	/* the rows of such values */
	int			(*compare_rows) (void *arg, GsLocatedRow a, GsLocatedRow b);

	/*
	 * A hash of what is compared in a row; and whether this has the same bytes in two rows, which
	 * then are equal. hash is NULL: no hash table is used.
	 */
	uint32_t	(*hash) (void *arg, const void *row);
	bool		(*are_same) (void *arg, const void *a, const void *b);

	/*
	 * Guesses, by number, of an order that compare_values() may turn out to
	 * have: a code of the row's value.  0 and UINT64_MAX mean below and above
	 * all others, as for NULL.
	 */
	int			nguesses;		/* at most GS_MAX_GUESSES */
	uint64_t	(*guess) (void *arg, const void *row, int guess);
} GsRowCompare;

#define GS_MAX_GUESSES	32

static inline GsLocatedRow
gs_row_locate(const GsRowCompare *compare, void *arg, const void *row)
{
	return (GsLocatedRow) {
		.row = row,.value = compare->locate(arg, row)
	};
}

static inline int
gs_row_compare_located(const GsRowCompare *compare, void *arg, GsLocatedRow a, GsLocatedRow b)
{
	const int	order = compare->compare_values(arg, a.value, b.value);

	return order != 0 ? order : compare->compare_rows(arg, a, b);
}

/* Compares two rows once. */
static inline int
gs_row_compare(const GsRowCompare *compare, void *arg, const void *a, const void *b)
{
	const GsLocatedRow located = gs_row_locate(compare, arg, a);

	return gs_row_compare_located(compare, arg, located, gs_row_locate(compare, arg, b));
}

/* What an engine is to sort, and with what. */
typedef struct GsEngineRequest
{
	GsKeyLayout *layout;		/* owned by the caller, which updates its
								 * statistics; sort reads them */
	size_t		memory_limit;	/* bytes of host memory for rows, keys and
								 * everything else that the sort needs */
	size_t		expected_bytes; /* of rows and records; 0: unknown */
	GsRuntime	runtime;
	const GsRowCompare *compare;	/* orders rows with equal keys; NULL: they
								 * keep their input order.  Only for the
								 * engine in this process, and not for
								 * keys_only layouts */
	void	   *compare_arg;
	bool		find_equal;		/* of a device: does stats.all_differ hold? */
} GsEngineRequest;

/* How the rows were sorted. */
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
	bool		all_compared;	/* all keys were equal, and the caller's
								 * comparison function ordered the rows */
	int			passes;			/* passes of the first radix sort */
	uint64_t	tied_rows;		/* rows that tied in it */
	bool		all_differ;		/* no rows have equal keys; false if it was not asked */
	uint64_t	compared_rows;	/* rows that the caller's comparison function ordered */
	size_t		peak_bytes;		/* of host memory */
	const char *detail;			/* after GS_STATUS_FAILED, else NULL */
	const char *full;			/* after GS_STATUS_FULL, why, if it is not the
								 * memory limit; after GS_STATUS_REFUSED, why;
								 * else NULL */

	/* of a device; NULL and zeros without one */
	const char *device;			/* its name */
	GsDeviceSet devices;		/* its number, if there are several; else 0 */
	size_t		device_bytes;	/* peak of device memory */
	uint64_t	bytes_up;		/* of rows and keys sent to it */
	uint64_t	bytes_down;		/* of rows returned by it */
	uint64_t	upload_us;		/* time in which any batch was being uploaded */
	uint64_t	sort_us;		/* time in which the device sorted */
	uint64_t	stream_us;		/* time spent waiting for sorted rows */
} GsEngineStats;

typedef struct GsEngine GsEngine;

/* The calls of an engine.  See the wrappers below for their contracts. */
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
	bool		on_device;		/* rows leave this process: they do not count
								 * against the memory limit, are lost if the
								 * device fails, and after FULL the device has
								 * only some of them.  Only an engine in this
								 * process calls request.compare, and has
								 * gs_engine_cpu_... calls */
	GsEngineRequest request;
	GsEngineStats stats;
};

/* Opens the engine that sorts in this process; NULL if out of memory. */
extern GsEngine *gs_engine_cpu_open(const GsEngineRequest *request);

/* The batches that it has so far, in input order; only before sort. */
extern const GsBatch *gs_engine_cpu_batches(const GsEngine *engine, size_t *nbatches);

/*
 * During the input, or after sort unless the layout is keys_only, discards all rows but the first
 * nrows in order; there must be more.  The input continues with reserve.  *batch and *entry become
 * the position of the last row that was kept, valid until the next call of any kind.  FULL and OOM
 * leave all rows in place.
 */
extern GsStatus gs_engine_cpu_keep_first(GsEngine *engine, uint64_t nrows,
										 const GsBatch **batch, size_t *entry);

/* After sort, not if keys_only: the input continues, with the same rows. */
extern void gs_engine_cpu_unsort(GsEngine *engine);

/*
 * After sort: discards all rows.  The input begins again, with another memory limit.  The memory of
 * the rows is kept for the next ones until they are sorted or returned.
 */
extern void gs_engine_cpu_restart(GsEngine *engine, size_t memory_limit);

/*
 * Sorts sorted rows again, by a comparison function alone; not for keys_only layouts.
 * It may exceed the memory limit by a word a row, which is less than any other sort of
 * the same rows would take.  OOM leaves the order as it was.
 */
extern GsStatus gs_engine_cpu_resort(GsEngine *engine, const GsRowCompare *compare,
									 void *compare_arg);

/*
 * Opens the engine at the other end of a link (engine_link.h), which belongs to the
 * engine until it is closed.  REFUSED: the device has no memory for it.
 */
struct GsEngineLink;

typedef struct GsGpuOptions
{
	uint64_t	expected_bytes; /* estimate of rows and keys of all
								 * participants */
	uint32_t	wait_ms;		/* for device memory */
	int			algorithm;		/* a GsAlgorithm (protocol.h) */
	bool		shared;			/* producers may join it */
	uint32_t	participant;	/* number of this one, if shared */
} GsGpuOptions;

extern GsStatus gs_engine_gpu_open(const GsEngineRequest *request, struct GsEngineLink *link,
								   const GsGpuOptions *options,
								   GsEngine **engine);

/* The device, and the token with which producers join a shared engine there; never 0. */
extern int	gs_engine_gpu_device(const GsEngine *engine);
extern uint64_t gs_engine_gpu_token(const GsEngine *engine);

/*
 * Opens a producer of a shared engine, usually one of another process.  The buffers of its
 * link must not be larger than the consumer's, and its layout must have the same shape.
 * Input order is by participant, a number below GS_MAX_PARTICIPANTS, and then by the
 * order in which each participant pushed.  REFUSED: it cannot be joined; see stats.full.
 */
extern GsStatus gs_engine_gpu_join(const GsEngineRequest *request, struct GsEngineLink *link,
								   uint64_t token, uint32_t participant,
								   GsEngine **engine);

/*
 * Ends the input of a producer.  Waits until the device has its rows; *nrows becomes
 * their number, all or the first ones pushed.  The consumer may sort, or return the
 * input, only when this has returned in every producer.  FULL: the last rows cannot be
 * accepted; call it again.  After FULL, from reserve or from here, next_batch() returns
 * the rows that were not accepted, up to *batch NULL.  If a producer is closed before
 * this has returned OK, the whole sort fails.
 */
extern GsStatus gs_engine_end_producer(GsEngine *engine, uint64_t *nrows);

/*
 * Tells the consumer, before it sorts, the sum of *nrows of all producers.  The statistics
 * of their layouts must have been merged into its layout.
 */
extern void gs_engine_gpu_expect(GsEngine *consumer, uint64_t nrows_of_producers);

/*
 * Opens a reader of a shared engine, whose buffers are as large as the consumer's.  It may be
 * opened before the consumer sorts.  REFUSED: it cannot be read; see stats.full.
 */
extern GsStatus gs_engine_gpu_read(const GsEngineRequest *request, struct GsEngineLink *link,
								   uint64_t token, GsEngine **engine);

/* The consumer has sorted nrows rows: fetch returns them to the reader, too.  OK or FAILED. */
extern GsStatus gs_engine_gpu_begin_reading(GsEngine *reader, uint64_t nrows);

/*
 * Does the batch of the last reserve have space for another row?  Long rows always need
 * another reserve, because an engine may not accept their length.
 */
#define GS_SHORT_ROW_BYTES	((size_t) 16 << 10)

static inline bool
gs_engine_has_space(const GsBatch *batch, size_t row_bytes)
{
	return row_bytes <= GS_SHORT_ROW_BYTES && gs_batch_has_space(batch, row_bytes);
}

/*
 * Returns a batch with space for at least one row of row_bytes.  FULL and OOM leave
 * everything that was pushed in place.
 */
static inline GsStatus
gs_engine_reserve(GsEngine *engine, size_t row_bytes, GsBatch **batch)
{
	return engine->ops->reserve(engine, row_bytes, batch);
}

/*
 * Sorts what was pushed.  Calls check_interrupts at least every few ms.  After FULL, from
 * reserve or from sort, it sorts the rows that the engine has accepted, the first
 * stats.nrows pushed; next_batch() returns the others, up to *batch NULL, while the sorted
 * ones can still be fetched.
 */
static inline GsStatus
gs_engine_sort(GsEngine *engine)
{
	return engine->ops->sort(engine);
}

/*
 * Sets rows[] to up to nrows sorted rows from position on (0-based); *fetched becomes
 * their number, 0 only at or after the end.  A row is what the caller pushed, or in a
 * keys_only layout its key word.  A row of an engine on a device is valid until the next
 * fetch, one of the CPU engine as long as the engine is sorted.  Returns OK or FAILED.
 */
static inline GsStatus
gs_engine_fetch(GsEngine *engine, uint64_t position, size_t nrows, const void **rows,
				size_t *fetched)
{
	return engine->ops->fetch(engine, position, nrows, rows, NULL, fetched);
}

/*
 * Like gs_engine_fetch(), but also sets records[], unless it is NULL, to the records of the rows,
 * which are NULL if the engine no longer has them.
 */
static inline GsStatus
gs_engine_fetch_records(GsEngine *engine, uint64_t position, size_t nrows,
						const void **rows, const uint64_t **records, size_t *fetched)
{
	return engine->ops->fetch(engine, position, nrows, rows, records, fetched);
}

/*
 * Ends the input without a sort: next_batch() then returns the batches in input order,
 * with *batch NULL at the end, and frees each at the next call.  Both return OK or
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

/* Frees everything, including the engine. */
static inline void
gs_engine_close(GsEngine *engine)
{
	engine->ops->close(engine);
}

#endif							/* GPUSORT_ENGINE_H */
