/*-------------------------------------------------------------------------
 *
 * word_sort_state.h
 *	  The state of the sorts of words, and how a word leads to its row.
 *
 * Only for word_sort.c, tie_sort.c, tail_sort.c, guess_sort.c and compare_sort.c.
 *
 * ISO C, no PostgreSQL.
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
	uint64_t	number_mask;
	uint64_t   *words;
	uint64_t   *scratch;		/* as long as words, and twice as long as any rows that are
								 * compared; NULL until needed */
	size_t		scratch_words;
} GsWordSortState;

/* Up to where in the key the rows of a tie group are equal. */
typedef struct GsKeyPosition
{
	int			chunk;
	uint32_t	depth;			/* in a tail chunk: bytes known to be equal */
} GsKeyPosition;

#define TAIL_START	8			/* the prefix field has the bytes before it */

/* Sorts words[start..end) by their keys of key_bits bits; row numbers break ties. */
extern void gs_sort_words(GsWordSortState *state, size_t start, size_t end, int key_bits);

/* Sorts each group of equal words in words[start..end) by the rest of the key, from position on. */
extern void gs_tie_sort(GsWordSortState *state, size_t start, size_t end, GsKeyPosition position);

/*
 * Sorts a tie group by the next bytes of a tail.  *position advances by the bytes
 * consumed, or to the next chunk at the end of the tail.
 */
extern void gs_tail_sort(GsWordSortState *state, size_t start, size_t end, GsKeyPosition *position);

/* Sorts a tie group by the driver's comparison function.  Stable. */
extern void gs_compare_sort(GsWordSortState *state, size_t start, size_t end);

/*
 * Sorts a tie group by a guess of its order, which comparisons confirm.  Stable.  False: there
 * is no guess, or it was wrong.
 */
extern bool gs_guess_sort(GsWordSortState *state, size_t start, size_t end);

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
	return gs_row_batch(&state->sort->numbering, state->sort->batches,
						word & state->number_mask);
}

static inline const char *
row_of(const GsWordSortState *state, uint64_t word)
{
	return gs_batch_row(batch_of(state, word),
						gs_row_unit(&state->sort->numbering, word & state->number_mask));
}

/* Does the row of word a come after that of word b in the input? */
static inline bool
is_later(const GsWordSortState *state, uint64_t a, uint64_t b)
{
	return (a & state->number_mask) > (b & state->number_mask);
}

static inline const uint64_t *
record_of(const GsWordSortState *state, uint64_t word)
{
	if (state->sort->layout->keys_only)
		return gs_batch_record(batch_of(state, word),
							   gs_row_unit(&state->sort->numbering,
										   word & state->number_mask));
	return gs_batch_record_of_row(batch_of(state, word), row_of(state, word));
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
	*word = key << state->number_bits | (*word & state->number_mask);
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
