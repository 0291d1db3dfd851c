/*-------------------------------------------------------------------------
 *
 * device.h
 *	  What a job needs of a device: memory, copies, and the steps of a sort.
 *
 * Two implementations: cuda/device_cuda.cu, and device_host.c, which does each
 * step on this processor in the plainest way: the reference of the kernels,
 * and the device of tests on machines that have none.
 *
 * Every call that takes a stream only queues work and returns.  What a stream
 * was given is done in order; streams run beside each other.  mark() puts a
 * ticket behind the work queued so far, reached() says which was passed.
 * These do not block; close and stream_close do, and what takes or gives back
 * memory may.
 *
 * Pointers named d_* are device memory that the host must not follow.  All
 * memory that kernels see is aligned to 256 bytes at its start.  The caller
 * owns all memory and keeps it until the stream has passed its last use;
 * temporary storage (d_temp) too.
 *
 * Calls that return bool return false if the device broke.  Then all its
 * streams are lost, error has the text, and only close is left.
 *
 * The steps of a sort, over n rows with row numbers of row_bits bits:
 *
 *	  pack		word i = first level's bits of row i << row_bits | i
 *	  sort_words	the words, by all bits above row_bits
 *	  -- as long as there are levels left (key_pack.h), and ties:
 *	  same_*		is element i equal to element i - 1?
 *	  count_ties	how many elements have an equal neighbour
 *	  list_ties		these: place in the order, row, and number of the group of equals
 *	  tie_keys		group << level bits | bits of the next level
 *	  sort_ties		the list, by these keys; or by group and tail
 *	  place_ties	rows back to their places
 *	  --
 *	  row_ends	where each row ends when all stand in order
 *	  cut		which rows go into which batch of sorted rows
 *	  gather	one such batch
 *
 * ISO C, no PostgreSQL and no CUDA.  One thread calls.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_H
#define GPUSORT_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/batch.h"
#include "common/key_pack.h"
#include "common/protocol.h"

#ifdef __cplusplus
extern "C"
{
#endif

typedef struct GsDevice GsDevice;
typedef struct GsStream GsStream;	/* the implementation's */

/* A batch in device memory: its rows and, somewhere else, its records. */
typedef struct GsDeviceBatch
{
	uint64_t	first_row;		/* how many rows the batches before it have */
	const char *d_rows;			/* aligned to 8; NULL if keys_only */
	const char *d_records_top;	/* slot i's record begins at d_records_top -
								 * (i + 1) * record_bytes */
	uint32_t	nrows;			/* at least 1 */
	uint32_t	nunits;			/* bytes of the rows, in units of 8 */
} GsDeviceBatch;

/* All rows of a job; row i is slot i - first_row of its batch. */
typedef struct GsDeviceRows
{
	uint64_t	nrows;			/* 1 .. GS_MAX_JOB_ROWS */
	uint32_t	nbatches;
	uint32_t	record_bytes;
	uint32_t	max_row_units;	/* a longer row is a fault */
	bool		keys_only;
	const GsDeviceBatch *d_batches; /* ascending first_row, from 0, no gaps */
	const GsKeyPacking *d_packing;
	uint64_t   *d_locations;	/* nrows; NULL if keys_only: see below */
} GsDeviceRows;

/*
 * A row's location: where it is in device memory and how long, both in units of
 * 8 bytes.
 */
#define GS_LOCATION_LENGTH_BITS	18
#define GS_LOCATION_LENGTH(location) \
	((uint32_t) ((location) & ((UINT64_C(1) << GS_LOCATION_LENGTH_BITS) - 1)))
#define GS_LOCATION_ADDRESS(location) \
	((location) >> GS_LOCATION_LENGTH_BITS << 3)

/* What pack() finds out; zero before. */
typedef struct GsPackResults
{
	uint32_t	nfaults;		/* rows whose records say what cannot be */
	uint32_t	max_row_units;	/* the longest row */
} GsPackResults;

/* A list of tied rows: equals stand together, in the order so far. */
typedef struct GsTies
{
	uint64_t	nties;
	uint32_t   *d_places;		/* of the k-th in the order of all rows */
	uint32_t   *d_rows;			/* its row number */
	uint32_t   *d_groups;		/* ascending from 0: which rows are equal */
} GsTies;

typedef struct GsTieCount
{
	uint64_t	nties;
	uint64_t	ngroups;
} GsTieCount;

/* The steps that need temporary storage, for temp_bytes(). */
typedef enum GsDeviceStep
{
	GS_STEP_SORT_WORDS,			/* and pack before it */
	GS_STEP_LIST_TIES,			/* count_ties and list_ties */
	GS_STEP_SORT_TIES,
	GS_STEP_SORT_TAILS,
	GS_STEP_ROW_END_OFFSETS
} GsDeviceStep;

typedef struct GsDeviceOps
{
	/* memory of the device, in bytes */
	bool		(*memory) (GsDevice *device, uint64_t *free_bytes, uint64_t *total_bytes);

	/* NULL if there is none: no fault.  Alignment 256. */
	void	   *(*allocate) (GsDevice *device, size_t nbytes);
	void		(*release) (GsDevice *device, void *d_memory);

	/* Host memory that copies from and to are fast and do not block; zeroed. */
	void	   *(*allocate_host) (GsDevice *device, size_t nbytes);
	void		(*release_host) (GsDevice *device, void *memory);

	/* The same of memory that is there: a ring.  False if it cannot be: no fault. */
	bool		(*pin) (GsDevice *device, void *memory, size_t nbytes);
	void		(*unpin) (GsDevice *device, void *memory);

	GsStream   *(*stream_open) (GsDevice *device);	/* NULL: no memory, or a fault */
	void		(*stream_close) (GsStream *stream); /* waits for its work */

	/* Tickets ascend by one from 1; *ticket is that of the work so far. */
	bool		(*record_fence) (GsStream *stream, uint64_t *fence);
	bool		(*passed_fence) (GsStream *stream, uint64_t *fence);

	bool		(*copy_in) (GsStream *stream, void *d_to, const void *from, size_t nbytes);
	bool		(*copy_out) (GsStream *stream, void *to, const void *d_from, size_t nbytes);

	/* Bytes of temporary storage that a step over n elements needs. */
	size_t		(*temp_bytes) (GsDevice *device, GsDeviceStep step,
							   GsAlgorithm algorithm, uint64_t n);

	/*
	 * d_words[i] = level's bits << row_bits | i; level < 0: no bits.  Fills
	 * rows->d_locations.  A row begins at its record's unit and ends where the
	 * next slot's begins, the last one at nunits; a record that points out of its
	 * batch, or makes its row shorter than 1 unit or longer than max_row_units,
	 * is a fault: then the location is some valid one.  Adds to *d_facts.
	 *
	 * If d_temp is not NULL, it is the temporary storage of the sort_words() of
	 * all bits of the level that follows: the digits are counted on the way.
	 */
	bool		(*pack) (GsStream *stream, const GsDeviceRows *rows, int chunk,
						 int row_bits, uint64_t *d_words, GsPackResults *d_results,
						 void *d_temp, size_t temp_bytes);

	/*
	 * Sorts n words by bits low_bit .. low_bit + nbits - 1, stably.  The result
	 * is in d_words[*d_selector] (0 or 1), the other array is scratch.  If
	 * counted, d_temp holds what pack() counted there of these very words.
	 */
	bool		(*sort_words) (GsStream *stream, GsAlgorithm algorithm, uint64_t n,
							   int low_bit, int nbits, uint64_t *const d_words[2],
							   uint32_t *d_selector, bool counted,
							   void *d_temp, size_t temp_bytes);

	/* d_same[i] = 1 if the words agree above low_bit with the one before, else 0; [0] = 0 */
	bool		(*same_words) (GsStream *stream, uint64_t n, const uint64_t *d_words,
							   int low_bit, uint8_t *d_same);

	/* The same of whole 64-bit keys. */
	bool		(*same_keys) (GsStream *stream, uint64_t n, const uint64_t *d_keys,
							  uint8_t *d_same);

	/* The same of a list: equal groups, and tails equal (component is a GS_COMPONENT_TAIL). */
	bool		(*same_tails) (GsStream *stream, const GsDeviceRows *rows,
							   const GsTies *ties, int component, uint8_t *d_same);

	/* Element i is tied if d_same[i], or i + 1 < n and d_same[i + 1]. */
	bool		(*count_ties) (GsStream *stream, uint64_t n, const uint8_t *d_same,
							   GsTieCount *d_count, void *d_temp, size_t temp_bytes);

	/*
	 * Makes the list of the tied ones, right after count_ties() with the same
	 * d_same and d_temp; out has room for so many.  Element i is row
	 * d_words[i] & mask of row_bits at place i; or, if from is not NULL, what
	 * from has at i.
	 */
	bool		(*list_ties) (GsStream *stream, uint64_t n, const uint8_t *d_same,
							  const uint64_t *d_words, int row_bits, const GsTies *from,
							  GsTies *out, void *d_temp, size_t temp_bytes);

	/*
	 * d_keys[k] = group << level bits | the (bit) level's bits of row k.  They
	 * fit 64 bits: the job sees to it.
	 */
	bool		(*tie_keys) (GsStream *stream, const GsDeviceRows *rows, const GsTies *ties,
							 int chunk, uint64_t *d_keys);

	/*
	 * Sorts the list by its keys, stably: d_keys[0] becomes the sorted keys,
	 * ties->d_rows the rows in their order; places stay, and groups too.
	 * d_keys[0] are of nbits bits.  d_keys[1] is scratch.
	 */
	bool		(*sort_ties) (GsStream *stream, GsAlgorithm algorithm, const GsTies *ties,
							  int nbits, uint64_t *const d_keys[2],
							  void *d_temp, size_t temp_bytes);

	/*
	 * Sorts the list by group, then by the tail of a GS_COMPONENT_TAIL, as
	 * memcmp does and the shorter first, reversed if the component is
	 * descending; stably.  The first 8 bytes are known to be equal within a
	 * group.  NULLs of the column are equal; no group has both.  A tail that
	 * points out of its row is cut to what is in it.
	 */
	bool		(*sort_tails) (GsStream *stream, const GsDeviceRows *rows,
							   const GsTies *ties, int component,
							   void *d_temp, size_t temp_bytes);

	/* d_words[place] = row, for the whole list; bits above row_bits are lost. */
	bool		(*place_ties) (GsStream *stream, const GsTies *ties, uint64_t *d_words);

	/*
	 * d_ends[i] = what the first i + 1 rows in order take in batches of sorted
	 * rows, in units of 4 bytes: 2 * length + 1 each, for the row and the word
	 * that says where it begins.  The low row_bits of d_words[i] say which row
	 * is the i-th.  d_ends overlaps no d_words.
	 */
	bool		(*row_end_offsets) (GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words,
							 int row_bits, uint64_t *d_end_offsets, void *d_temp, size_t temp_bytes);

	/*
	 * d_cuts[b] = how many rows end at or before b * step, for b in 0 .. ncuts -
	 * 1: batch b of sorted rows is rows d_cuts[b] .. d_cuts[b + 1] - 1, and takes
	 * less than a step and a row.
	 */
	bool		(*find_boundaries) (GsStream *stream, uint64_t nrows, const uint64_t *d_end_offsets,
						uint64_t step, uint32_t nboundaries, uint64_t *d_boundaries);

	/*
	 * Rows first .. first + nrows - 1 of the order, one after the other, to
	 * d_to; and from d_to + to_bytes downwards a uint32 a row, where it begins
	 * (GsBatchReady).
	 */
	bool		(*gather) (GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words,
						   int row_bits, const uint64_t *d_end_offsets, uint64_t first,
						   uint32_t nrows, char *d_to, size_t to_bytes);

	/* If keys_only: their keys instead. */
	bool		(*gather_keys) (GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words,
								int row_bits, uint64_t first, uint32_t nrows, uint64_t *d_to);

	void		(*close) (GsDevice *device);
} GsDeviceOps;

/* Every device starts with this. */
struct GsDevice
{
	const GsDeviceOps *ops;
	GsDeviceKind kind;
	char		name[GS_DEVICE_NAME_BYTES];
	char		error[GS_FAILED_TEXT_BYTES];	/* what broke */
};

/*
 * Both return NULL if there is no such device, and say why in why_not.  The
 * host device offers the given bytes of memory; 0: half of the machine's.
 */
extern GsDevice *gs_device_host_open(uint64_t memory_bytes, char *why_not, size_t size);
extern GsDevice *gs_device_cuda_open(int number, char *why_not, size_t size);

#ifdef __cplusplus
}
#endif

#endif							/* GPUSORT_DEVICE_H */
