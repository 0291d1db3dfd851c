/*-------------------------------------------------------------------------
 *
 * key_sort.h
 *	  Sorts the records of a set of batches: on this processor, in memory.
 *
 * ISO C, no PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_SORT_H
#define GPUSORT_KEY_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "batch.h"
#include "engine.h"
#include "key_layout.h"

/*
 * A row's number: its batch and its slot there, side by side, so that numbers
 * ascend in input order.  Numbers take number_bits together, the bits below
 * the key in a sort word.
 */
typedef struct GsRowNumbering
{
	int			slot_bits;
	int			number_bits;
} GsRowNumbering;

/* So that a sort word keeps GS_MIN_LEVEL_BITS for the key. */
#define GS_MAX_NUMBER_BITS	32

/*
 * The numbering for nbatches batches of at most max_rows rows each.  False if
 * it would take more than GS_MAX_NUMBER_BITS.
 */
extern bool gs_row_numbering(GsRowNumbering *numbering, size_t nbatches, size_t max_rows);

static inline uint64_t
gs_row_number(const GsRowNumbering *numbering, size_t batch, size_t slot)
{
	return (uint64_t) batch << numbering->slot_bits | slot;
}

static inline const GsBatch *
gs_row_batch(const GsRowNumbering *numbering, const GsBatch *batches, uint64_t number)
{
	return &batches[number >> numbering->slot_bits];
}

static inline size_t
gs_row_slot(const GsRowNumbering *numbering, uint64_t number)
{
	return (size_t) (number & ((UINT64_C(1) << numbering->slot_bits) - 1));
}

typedef struct GsKeySort
{
	/* in */
	const GsKeyLayout *layout;
	const GsBatch *batches;
	size_t		nbatches;
	size_t		nrows;			/* of all batches */
	GsRowNumbering numbering;
	const GsHost *host;

	/*
	 * out: words[i] holds, in its low number_bits, the number of the i-th row
	 * in order.  Allocated from the host: the caller releases it.
	 */
	uint64_t   *words;
} GsKeySort;

/*
 * Sorts; adds to the figures what it finds (method, key bits, passes, ties).
 * Needs at most gs_key_sort_bytes(nrows) bytes, of which the words stay.  May
 * leave through host->check_interrupts.
 */
extern GsStatus gs_key_sort(GsKeySort *sort, GsFigures *figures);

static inline size_t
gs_key_sort_bytes(size_t nrows)
{
	return nrows * 2 * sizeof(uint64_t);
}

#endif							/* GPUSORT_KEY_SORT_H */
