/*-------------------------------------------------------------------------
 *
 * device.h
 *	  The device interface: memory, copies, and the steps of a sort.
 *
 * cuda/device_cuda.cu implements it.  Tests have another implementation,
 * test/doubles/daemon/device_host.c, which performs each step on the CPU in the
 * plainest way: the reference of the kernels, and the device of a machine without one.
 *
 * Every call with a stream only queues work and returns.  The work of a stream
 * is done in order; streams run concurrently.  record_fence() puts a fence
 * behind the work queued so far, passed_fence() says how far the stream is.
 * These calls do not block.  close and stream_close block; calls that allocate
 * or release memory may block.
 *
 * Pointers named d_* are device memory, which the host must not dereference.
 * All memory that kernels use starts at an address aligned to 256 bytes.  The
 * caller owns all memory, including temporary storage (d_temp), and keeps it
 * until the stream has passed its last use.
 *
 * Calls that return bool return false if the device failed.  Then all its
 * streams are lost, error has the text, and only close and stream_close are
 * legal.
 *
 * Devices of one kind can use memory of each other, their *peers*: where open_peer()
 * permits it, steps and copies take addresses of a peer's memory, too.  A peer may be
 * open in another process, for which it has another number.
 *
 * The steps of a sort of n rows, with row numbers of row_bits bits:
 *
 *	  pack			word i = bits of the first key chunk of row i << row_bits | i
 *	  sort_words	sorts the words by all bits above row_bits
 *	  -- while there are key chunks left (key_pack.h), and ties:
 *	  same_*		is element i equal to element i - 1?
 *	  count_ties	how many elements have an equal neighbor
 *	  list_ties		lists these: place in the order, row, number of the tie group
 *	  tie_keys		key = tie group << chunk bits | bits of the next chunk
 *	  sort_ties		sorts the list by these keys; sort_tails by tie group and tail
 *	  place_ties	stores the rows back at their places
 *	  --
 *	  check_order	after each sort, and after the last ties: is it right?
 *	  row_end_offsets	where each row ends in sorted order
 *	  find_boundaries	which rows form which batch of sorted rows
 *	  gather			copies one such batch
 *
 * C without PostgreSQL and CUDA.  Only one thread may call.
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

/* A batch in device memory: its rows and, separately, its key records. */
typedef struct GsDeviceBatch
{
	uint64_t	first_row;		/* number of rows in the batches before it */
	const char *d_rows;			/* aligned to 8; NULL if keys_only */
	const char *d_records_top;	/* the record of entry i begins at d_records_top -
								 * (i + 1) * record_bytes */
	uint32_t	nrows;			/* at least 1 */
	uint32_t	nunits;			/* size of the rows, in units of 8 bytes */
} GsDeviceBatch;

/* All rows of a job; row i is entry i - first_row of its batch. */
typedef struct GsDeviceRows
{
	uint64_t	nrows;			/* 1 .. GS_MAX_JOB_ROWS */
	uint32_t	nbatches;
	uint32_t	record_bytes;
	uint32_t	max_row_units;	/* a longer row is invalid */
	bool		keys_only;
	const GsDeviceBatch *d_batches; /* ascending first_row, from 0, no gaps */
	const GsKeyPacking *d_packing;
	uint64_t   *d_locations;	/* nrows; NULL if keys_only: see below */
} GsDeviceRows;

/* The location of a row: its device address and its length, in units of 8 bytes. */
#define GS_LOCATION_LENGTH_BITS	18
#define GS_LOCATION_LENGTH(location) \
	((uint32_t) ((location) & ((UINT64_C(1) << GS_LOCATION_LENGTH_BITS) - 1)))
#define GS_LOCATION_ADDRESS(location) \
	((location) >> GS_LOCATION_LENGTH_BITS << 3)

/* Results of pack(); must be zero before. */
typedef struct GsPackResults
{
	uint32_t	nfaults;		/* rows with invalid records */
	uint32_t	max_row_units;	/* the longest row */
} GsPackResults;

/* A list of tied rows; tie groups are contiguous, in the order so far. */
typedef struct GsTies
{
	uint64_t	nties;
	uint32_t   *d_places;		/* of element k in the order of all rows */
	uint32_t   *d_rows;			/* its row number */
	uint32_t   *d_groups;		/* tie group of element k, ascending from 0 */
} GsTies;

typedef struct GsTieCount
{
	uint64_t	nties;
	uint64_t	ngroups;
} GsTieCount;

/*
 * Results of check_order(), added up; must be zero before.  Of a right order of n
 * elements that have the rows 0 .. n - 1, both are 0.
 */
typedef struct GsOrderCheck
{
	uint64_t	row_sum;		/* of gs_row_hash(row) - gs_row_hash(place), modulo 2^64 */
	uint64_t	nmisplaced;		/* elements that are not above their predecessor */
} GsOrderCheck;

/* For sums that are equal only if the rows are. */
GS_HOST_DEVICE uint64_t
gs_row_hash(uint64_t row)
{
	uint64_t	hash = (row + 1) * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ (hash >> 32)) * UINT64_C(0xd6e8feb86659fd93);
	return hash ^ (hash >> 32);
}

/* The steps that need temporary storage, for temp_bytes(). */
typedef enum GsDeviceStep
{
	GS_STEP_SORT_WORDS,			/* and the pack before it */
	GS_STEP_LIST_TIES,			/* count_ties and list_ties */
	GS_STEP_SORT_TIES,
	GS_STEP_SORT_TAILS,
	GS_STEP_ROW_END_OFFSETS
} GsDeviceStep;

typedef struct GsDeviceOps
{
	/* Free and total memory of the device, in bytes. */
	bool		(*memory) (GsDevice *device, uint64_t *free_bytes, uint64_t *total_bytes);

	/* NULL if out of memory, which is no failure.  Alignment 256. */
	void	   *(*allocate) (GsDevice *device, size_t nbytes);
	void		(*release) (GsDevice *device, void *d_memory);

	/*
	 * Permits the use of memory of a peer, which may take long the first time.  Returns
	 * the number of the peer in this process; -1: its memory cannot be used.
	 */
	int			(*open_peer) (GsDevice *device, GsDeviceIdentity identity);

	/* Memory of a peer, which release() takes, too.  NULL if that has none left. */
	void	   *(*allocate_at) (GsDevice *device, int peer, size_t nbytes);

	/* Pinned host memory: copies from and to it are fast and do not block.  Zeroed. */
	void	   *(*allocate_host) (GsDevice *device, size_t nbytes);
	void		(*release_host) (GsDevice *device, void *memory);

	/* Pins existing memory.  False if that is not possible, which is no failure. */
	bool		(*pin) (GsDevice *device, void *memory, size_t nbytes);
	void		(*unpin) (GsDevice *device, void *memory);

	GsStream   *(*stream_open) (GsDevice *device);	/* NULL: out of memory, or failed */
	void		(*stream_close) (GsStream *stream); /* waits for its work */

	/*
	 * Fences of a stream are numbered from 1.  record_fence() sets *fence to the
	 * number of the new one, passed_fence() to that of the last one passed.
	 */
	bool		(*record_fence) (GsStream *stream, uint64_t *fence);
	bool		(*passed_fence) (GsStream *stream, uint64_t *fence);

	bool		(*copy_in) (GsStream *stream, void *d_to, const void *from, size_t nbytes);
	bool		(*copy_out) (GsStream *stream, void *to, const void *d_from, size_t nbytes);

	/* Bytes of temporary storage of a step over n elements. */
	size_t		(*temp_bytes) (GsDevice *device, GsDeviceStep step,
							   GsAlgorithm algorithm, uint64_t n);

	/*
	 * d_words[i] = bits of the chunk << row_bits | i; chunk < 0: no bits.  Fills
	 * rows->d_locations.  A row begins at the unit in its record and ends where the
	 * next entry begins, the last one at nunits.  A record is invalid if it points
	 * outside its batch, or if its row is shorter than 1 unit or longer than
	 * max_row_units; then the location is some valid one.  Adds to *d_results.
	 *
	 * If d_temp is not NULL, it is the temporary storage of the following
	 * sort_words() by all bits of the chunk, for which pack() counts the digits.
	 */
	bool		(*pack) (GsStream *stream, const GsDeviceRows *rows, int chunk,
						 int row_bits, uint64_t *d_words, GsPackResults *d_results,
						 void *d_temp, size_t temp_bytes);

	/*
	 * Stable sort of n words by bits low_bit .. low_bit + nbits - 1.  The result
	 * is in d_words[*d_selector] (0 or 1); the other array is scratch.  If
	 * counted, d_temp has the digit counts of these words from pack().
	 */
	bool		(*sort_words) (GsStream *stream, GsAlgorithm algorithm, uint64_t n,
							   int low_bit, int nbits, uint64_t *const d_words[2],
							   uint32_t *d_selector, bool counted,
							   void *d_temp, size_t temp_bytes);

	/*
	 * d_same[i] = 1 if words i and i - 1 agree in the bits from low_bit up, else 0; d_same[0] = 0
	 */
	bool		(*same_words) (GsStream *stream, uint64_t n, const uint64_t *d_words,
							   int low_bit, uint8_t *d_same);

	/* d_same[i] = 1 if the 64-bit keys i and i - 1 are equal, else 0; d_same[0] = 0 */
	bool		(*same_keys) (GsStream *stream, uint64_t n, const uint64_t *d_keys,
							  uint8_t *d_same);

	/*
	 * d_same[i] = 1 if entries i and i - 1 of the list have equal tie groups and tails,
	 * else 0; d_same[0] = 0.  component is a GS_COMPONENT_TAIL.
	 */
	bool		(*same_tails) (GsStream *stream, const GsDeviceRows *rows,
							   const GsTies *ties, int component, uint8_t *d_same);

	/* Counts ties.  Element i is tied if d_same[i], or i + 1 < n and d_same[i + 1]. */
	bool		(*count_ties) (GsStream *stream, uint64_t n, const uint8_t *d_same,
							   GsTieCount *d_count, void *d_temp, size_t temp_bytes);

	/*
	 * Lists the tied elements, directly after count_ties() with the same d_same and
	 * d_temp; out has space for them.  Element i has the row in the low row_bits of
	 * d_words[i] and place i; or, if from is not NULL, row and place of element i
	 * of from.
	 */
	bool		(*list_ties) (GsStream *stream, uint64_t n, const uint8_t *d_same,
							  const uint64_t *d_words, int row_bits, const GsTies *from,
							  GsTies *out, void *d_temp, size_t temp_bytes);

	/*
	 * d_keys[k] = tie group << chunk bits | bits of the chunk of row k.  The
	 * caller ensures that they fit 64 bits.
	 */
	bool		(*tie_keys) (GsStream *stream, const GsDeviceRows *rows, const GsTies *ties,
							 int chunk, uint64_t *d_keys);

	/*
	 * Stable sort of the list by its keys of nbits bits, d_keys[0].  Afterwards
	 * d_keys[0] has the sorted keys and ties->d_rows the rows in this order; places
	 * and groups do not change.  d_keys[1] is scratch.
	 */
	bool		(*sort_ties) (GsStream *stream, GsAlgorithm algorithm, const GsTies *ties,
							  int nbits, uint64_t *const d_keys[2],
							  void *d_temp, size_t temp_bytes);

	/*
	 * Stable sort of the list by tie group, then by the tail of a
	 * GS_COMPONENT_TAIL: by memcmp(), a prefix before its extensions, and reversed
	 * if the component is descending.  Within a group the first 8 bytes are equal,
	 * and either all values of the column are NULL, which are equal, or none.  A
	 * tail that extends beyond its row is truncated.
	 */
	bool		(*sort_tails) (GsStream *stream, const GsDeviceRows *rows,
							   const GsTies *ties, int component,
							   void *d_temp, size_t temp_bytes);

	/* d_words[place] = row, for the whole list; clears the bits above row_bits. */
	bool		(*place_ties) (GsStream *stream, const GsTies *ties, uint64_t *d_words);

	/*
	 * Adds to *d_check.  Element i has the key d_words[i] >> row_bits, and the row in
	 * the low row_bits, or d_rows[i] if that is not NULL.  An element is above another
	 * one if its key is higher, or equal and its row is higher: stable sorts of rows
	 * in ascending order leave them so.
	 */
	bool		(*check_order) (GsStream *stream, uint64_t n, const uint64_t *d_words, int row_bits,
								const uint32_t *d_rows, GsOrderCheck *d_check);

	/*
	 * d_end_offsets[i] = size of the first i + 1 rows in batches of sorted rows,
	 * in units of 4 bytes: 2 * length + 1 for each row, which is the row and the
	 * word with its offset.  The low row_bits of d_words[i] have the row.
	 * d_end_offsets does not overlap d_words.
	 */
	bool		(*row_end_offsets) (GsStream *stream, const GsDeviceRows *rows,
									const uint64_t *d_words,
									int row_bits, uint64_t *d_end_offsets, void *d_temp,
									size_t temp_bytes);

	/*
	 * d_boundaries[b] = number of rows that end at or before b * step, for b in
	 * 0 .. nboundaries - 1.  Batch b of sorted rows has rows d_boundaries[b] ..
	 * d_boundaries[b + 1] - 1, and is smaller than a step and a row together.
	 */
	bool		(*find_boundaries) (GsStream *stream, uint64_t nrows, const uint64_t *d_end_offsets,
									uint64_t step, uint32_t nboundaries, uint64_t *d_boundaries);

	/*
	 * Copies rows first .. first + nrows - 1 of the order to d_to, one after the
	 * other; and from d_to + to_bytes downward a uint32 for each row, its offset
	 * (see GsBatchReady).
	 */
	bool		(*gather) (GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words,
						   int row_bits, const uint64_t *d_end_offsets, uint64_t first,
						   uint32_t nrows, char *d_to, size_t to_bytes);

	/* If keys_only: copies their keys instead. */
	bool		(*gather_keys) (GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words,
								int row_bits, uint64_t first, uint32_t nrows, uint64_t *d_to);

	void		(*close) (GsDevice *device);
} GsDeviceOps;

/* The base of every device. */
struct GsDevice
{
	const GsDeviceOps *ops;
	GsDeviceKind kind;
	GsDeviceIdentity identity;
	char		name[GS_DEVICE_NAME_BYTES];
	char		driver[32];
	char		error[GS_FAILED_TEXT_BYTES]; /* empty unless failed */
};

/*
 * Returns NULL if there is no such device, with the reason in why_not.  A program that is
 * built without CUDA has none (device_none.c).
 */
extern GsDevice *gs_device_cuda_open(int number, char *why_not, size_t size);

/* The number of CUDA devices; 0: none, with the reason in why_not. */
extern uint32_t gs_device_cuda_count(char *why_not, size_t size);

#ifdef __cplusplus
}
#endif

#endif							/* GPUSORT_DEVICE_H */
