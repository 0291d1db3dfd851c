/*-------------------------------------------------------------------------
 *
 * word_sort_state.h
 *	  The state of the sorts of words, and how a word leads to its row: only for word_sort.c,
 *	  tie_sort.c and compare_sort.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WORD_SORT_STATE_H
#define GPUSORT_WORD_SORT_STATE_H

#include "common/basics.h"
#include "common/key_pack.h"
#include "engine/word_sort.h"

/* Rows between two interrupt checks: about 0.5 ms if every access misses. */
#define CHECK_EVERY		((size_t) 1 << 12)

/* How far ahead records of scattered rows are prefetched. */
#define PREFETCH_DISTANCE	16

typedef struct GsWordSortState
{
	GsWordSort *sort;
	GsEngineStats *stats;
	GsKeyPacking packing;
	GsExtractBitsFunction extract_bits;
	int			number_bits;
	int			chunk_bits;
	uint64_t   *words;
	uint64_t   *scratch;		/* as long as words, and twice as long as any rows that are
								 * compared; NULL until needed */
	size_t		scratch_words;
} GsWordSortState;

/* Sorts each group of equal words by the rest of the key, from a chunk on. */
extern void gs_tie_sort(GsWordSortState *state, int chunk);

/* Sorts a tie group by the caller's comparison function.  Stable. */
extern void gs_compare_sort(GsWordSortState *state, size_t start, size_t end);

/* For loops over words: checks for interrupts at every CHECK_EVERY-th. */
static inline void
check_interrupts(const GsWordSortState *state, size_t i)
{
	if ((i & (CHECK_EVERY - 1)) == 0)
		state->sort->runtime->check_interrupts(state->sort->runtime->arg);
}

static inline const GsBatch *
batch_of(const GsWordSortState *state, uint64_t word)
{
	return gs_word_batch(&state->sort->numbering, state->sort->batches, word);
}

static inline const char *
row_of(const GsWordSortState *state, uint64_t word)
{
	return gs_batch_row(batch_of(state, word), gs_word_unit(&state->sort->numbering, word));
}

/* Does the row of word a come after that of word b in the input? */
static inline bool
is_later(const GsWordSortState *state, uint64_t a, uint64_t b)
{
	const uint64_t mask = state->sort->numbering.number_mask;

	return (a & mask) > (b & mask);
}

static inline const uint64_t *
record_of(const GsWordSortState *state, uint64_t word)
{
	const GsBatch *batch = batch_of(state, word);
	const size_t unit = gs_word_unit(&state->sort->numbering, word);

	return state->sort->layout->keys_only ? gs_batch_record(batch, unit) :
		gs_batch_record_of_row(batch, gs_batch_row(batch, unit));
}

/*
 * Prefetches for a loop over a tie group: first the row, which leads to its record,
 * then the record.
 */
static inline void
prefetch(const GsWordSortState *state, size_t i, size_t end)
{
	if (!state->sort->layout->keys_only && i + 2 * PREFETCH_DISTANCE < end)
		__builtin_prefetch(row_of(state, state->words[i + 2 * PREFETCH_DISTANCE]));
	if (i + PREFETCH_DISTANCE < end)
		__builtin_prefetch(record_of(state, state->words[i + PREFETCH_DISTANCE]));
}

/* Replaces the key of words[i]; clears *ascending if it is below the previous one. */
static inline void
set_key(GsWordSortState *state, size_t i, uint64_t key, uint64_t *previous, bool *ascending)
{
	uint64_t   *word = &state->words[i];

	*ascending &= key >= *previous;
	*previous = key;
	*word = key << state->number_bits | (*word & state->sort->numbering.number_mask);
}

/* Where the group of equal keys that starts at `start` ends. */
static inline size_t
tie_group_end(const GsWordSortState *state, size_t start, size_t end)
{
	uint64_t	key = state->words[start] >> state->number_bits;
	size_t		i = start + 1;

	while (i < end && state->words[i] >> state->number_bits == key)
	{
		check_interrupts(state, i);
		i++;
	}
	return i;
}

#endif							/* GPUSORT_WORD_SORT_STATE_H */
