/*-------------------------------------------------------------------------
 *
 * word_sort.h
 *	  Sorts the rows of a set of batches by their key records, in memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WORD_SORT_H
#define GPUSORT_WORD_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "common/batch.h"
#include "common/key_layout.h"
#include "common/key_pack.h"
#include "engine/engine.h"

/*
 * The number of a row is its batch and its unit in the batch (batch.h), side by side.  So
 * numbers ascend in input order, and the address of a row is computed from its
 * number without reading memory.  In a sort word, the number has the low
 * number_bits bits, and the key the others.
 */
typedef struct GsRowNumbering
{
	int			unit_bits;
	int			number_bits;
	uint64_t	number_mask;	/* these bits of a word */
} GsRowNumbering;

/* Leaves GS_MIN_KEY_CHUNK_BITS for the key; enough for 128 GB of rows. */
#define GS_MAX_NUMBER_BITS	(64 - GS_MIN_KEY_CHUNK_BITS)

/*
 * Sets the numbering for nbatches batches of at most nunits units each.  Returns
 * false if numbers would take more than GS_MAX_NUMBER_BITS.
 */
extern bool gs_row_numbering(GsRowNumbering *numbering, size_t nbatches, size_t nunits);

static inline uint64_t
gs_row_number(const GsRowNumbering *numbering, size_t batch, size_t unit)
{
	return (uint64_t) batch << numbering->unit_bits | unit;
}

/* The batch of a word's row, and its unit there. */
static inline const GsBatch *
gs_word_batch(const GsRowNumbering *numbering, const GsBatch *batches, uint64_t word)
{
	return &batches[(word & numbering->number_mask) >> numbering->unit_bits];
}

static inline size_t
gs_word_unit(const GsRowNumbering *numbering, uint64_t word)
{
	return (size_t) (word & ((UINT64_C(1) << numbering->unit_bits) - 1));
}

typedef struct GsWordSort
{
	/* in */
	const GsKeyLayout *layout;
	const GsBatch *batches;
	size_t		nbatches;
	size_t		nrows;			/* of all batches */
	GsRowNumbering numbering;
	const GsRuntime *runtime;
	const GsRowCompare *compare;	/* as in GsEngineRequest */
	void	   *compare_arg;

	/*
	 * out: the low number_bits of words[i] are the number of the i-th row in
	 * order.  Allocated by runtime->allocate; the caller releases it.
	 */
	uint64_t   *words;
} GsWordSort;

/*
 * Sorts, and sets the method, key bits, passes and ties in stats.  Allocates at most
 * gs_word_sort_bytes() bytes, of which the words remain allocated.  Returns OK
 * or OOM.  May exit through runtime->check_interrupts.
 */
extern GsStatus gs_word_sort(GsWordSort *sort, GsEngineStats *stats);

/*
 * Sorts the words of gs_word_sort() again, by the comparison function alone.  Rows
 * that are nearly in order take little more than one comparison each.  Needs
 * gs_word_sort_bytes() bytes, including the words.  Returns OK or OOM; OOM
 * leaves the words as they were.
 */
extern GsStatus gs_word_sort_by_comparison(GsWordSort *sort);

#define GS_WORD_SORT_STATE_BYTES	((size_t) 8416)

/* To sort words; if rows are compared, beside what locate() returns for each. */
static inline size_t
gs_word_sort_scratch_bytes(size_t nrows, bool compared)
{
	return nrows * (compared ? 2 : 1) * sizeof(uint64_t);
}

/* Of each row. */
static inline size_t
gs_word_sort_row_bytes(bool compared)
{
	return sizeof(uint64_t) + gs_word_sort_scratch_bytes(1, compared);
}

static inline size_t
gs_word_sort_bytes(size_t nrows, bool compared)
{
	return nrows * gs_word_sort_row_bytes(compared) + GS_WORD_SORT_STATE_BYTES;
}

#endif							/* GPUSORT_WORD_SORT_H */
