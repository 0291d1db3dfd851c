/*-------------------------------------------------------------------------
 *
 * word_sort.h
 *	  Sorts the records of a set of batches: on this processor, in memory.
 *
 * ISO C, no PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WORD_SORT_H
#define GPUSORT_WORD_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "common/batch.h"
#include "engine/engine.h"
#include "common/key_layout.h"
#include "common/key_pack.h"

/*
 * A row's number: its batch and its unit there (batch.h), side by side.  So
 * numbers ascend in input order, and a number is all it takes to find a row,
 * without a look at anything else in memory.  They take number_bits, the bits
 * below the key in a sort word.
 */
typedef struct GsRowNumbering
{
	int			unit_bits;
	int			number_bits;
} GsRowNumbering;

/* So that a sort word keeps GS_MIN_KEY_CHUNK_BITS for the key: 128 GB of rows. */
#define GS_MAX_NUMBER_BITS	(64 - GS_MIN_KEY_CHUNK_BITS)

/*
 * The numbering for nbatches batches of at most nunits units each.  False if
 * it would take more than GS_MAX_NUMBER_BITS.
 */
extern bool gs_row_numbering(GsRowNumbering *numbering, size_t nbatches, size_t nunits);

static inline uint64_t
gs_row_number(const GsRowNumbering *numbering, size_t batch, size_t unit)
{
	return (uint64_t) batch << numbering->unit_bits | unit;
}

static inline const GsBatch *
gs_row_batch(const GsRowNumbering *numbering, const GsBatch *batches, uint64_t number)
{
	return &batches[number >> numbering->unit_bits];
}

static inline size_t
gs_row_unit(const GsRowNumbering *numbering, uint64_t number)
{
	return (size_t) (number & ((UINT64_C(1) << numbering->unit_bits) - 1));
}

typedef struct GsWordSort
{
	/* in */
	const GsKeyLayout *layout;
	const GsBatch *batches;
	size_t		nbatches;
	size_t		nrows;			/* of all batches */
	GsRowNumbering numbering;
	const GsRuntime *host;
	GsRowCompare compare;		/* as in GsJob */
	void	   *compare_arg;

	/*
	 * out: words[i] holds, in its low number_bits, the number of the i-th row
	 * in order.  Allocated from the host: the caller releases it.
	 */
	uint64_t   *words;
} GsWordSort;

/*
 * Sorts; adds to the figures what it finds (method, key bits, passes, ties).
 * Needs at most gs_word_sort_bytes(nrows) bytes, of which the words stay.  May
 * leave through host->check_interrupts.
 */
extern GsStatus gs_word_sort(GsWordSort *sort, GsEngineStats *stats);

/*
 * Sorts the words that gs_word_sort() left once more, by the comparison function
 * alone: what is nearly in order takes little more than a comparison a row.
 * Needs gs_word_sort_bytes(nrows) bytes, of which the words are there.
 */
extern GsStatus gs_word_sort_by_comparison(GsWordSort *sort);

#define GS_WORD_SORT_ROW_BYTES	(2 * sizeof(uint64_t))
#define GS_WORD_SORT_STATE_BYTES	((size_t) 8400)

static inline size_t
gs_word_sort_bytes(size_t nrows)
{
	return nrows * GS_WORD_SORT_ROW_BYTES + GS_WORD_SORT_STATE_BYTES;
}

#endif							/* GPUSORT_WORD_SORT_H */
