/*-------------------------------------------------------------------------
 *
 * tie_sort.c
 *	  Sorts rows whose words are equal by the rest of their keys.
 *
 * A tie group, rows with equal words, is sorted chunk by chunk (key_pack.h): its words
 * get the bits of the next chunk, are sorted again, and the ties that are left are
 * sorted by the chunk after that.  What sorts a group:
 *
 *	  bits of a chunk						gs_sort_words() again
 *	  bytes of a text after the eighth		tail_sort.c
 *	  the driver's comparison function		guess_sort.c or compare_sort.c, for ties of
 *											the last chunk, if keys only begin an order
 *
 * Most tie groups have 2 rows.  The packing is computed once for all of them, so a
 * group of 2 costs two record reads and a comparison.  Each group is checked for being
 * in order before it is sorted, which costs little compared with computing its words.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/word_sort_state.h"

/* Sorts a tie group by the bits of one chunk. */
static void
sort_by_bits(GsWordSortState *state, size_t start, size_t end, GsKeyPosition *position)
{
	const GsKeyChunk *chunk = &state->packing.chunks[position->chunk];
	GsKeyChunkFunction bits_of = gs_key_chunk_function(&state->packing, chunk);
	uint64_t	previous = 0;
	bool		ascending = true;

	for (size_t i = start; i < end; i++)
	{
		check_interrupts(state, i);
		prefetch(state, i, end);
		set_key(state, i, bits_of(&state->packing, chunk, record_of(state, state->words[i])),
				&previous, &ascending);
	}
	if (!ascending)
		gs_sort_words(state, start, end, chunk->bits);
	position->chunk++;
	position->depth = TAIL_START;
}

/* Sorts a tie group by the driver's comparison function. */
static void
sort_by_comparison(GsWordSortState *state, size_t start, size_t end)
{
	const bool	guessed = gs_guess_sort(state, start, end);

	if (!guessed)
		gs_compare_sort(state, start, end);
	state->stats->compared_rows += end - start;
	state->stats->all_compared = end - start == state->sort->nrows;
	if (state->stats->all_compared)
		state->stats->method = guessed ? GS_METHOD_RADIX : GS_METHOD_MERGE;
}

/*
 * Sorts words[start..end), which are equal before position, by the rest of the key.
 * Recurses into all groups of remaining ties but the largest, so that the depth is
 * at most log2 of the number of rows.
 */
static void
sort_tie_group(GsWordSortState *state, size_t start, size_t end, GsKeyPosition position)
{
	while (end - start > 1)
	{
		size_t		largest = start;
		size_t		largest_end = start + 1;

		if (position.chunk == state->packing.nchunks)
		{
			if (state->sort->compare != NULL)
				sort_by_comparison(state, start, end);
			return;
		}
		if (state->packing.chunks[position.chunk].is_tail)
			gs_tail_sort(state, start, end, &position);
		else
			sort_by_bits(state, start, end, &position);
		if (position.chunk == state->packing.nchunks && state->sort->compare == NULL)
			return;

		for (size_t group = start, next; group < end; group = next)
		{
			next = tie_group_end(state, group, end);
			if (next - group > largest_end - largest)
			{
				if (largest_end - largest > 1)
					sort_tie_group(state, largest, largest_end, position);
				largest = group;
				largest_end = next;
			}
			else if (next - group > 1)
				sort_tie_group(state, group, next, position);
		}
		start = largest;
		end = largest_end;
	}
}

/* Is words[i] equal to the next one? */
static inline bool
is_tied(const GsWordSortState *state, size_t i)
{
	return state->words[i] >> state->number_bits ==
		state->words[i + 1] >> state->number_bits;
}

/*
 * Most tie groups are short, and their records are far from each other.  Prefetches
 * for the groups further on: first the row, which leads to its record, then the
 * record.
 */
static inline void
prefetch_ties(const GsWordSortState *state, size_t i, size_t end)
{
	size_t		row = i + 4 * PREFETCH_DISTANCE;
	size_t		record = i + 2 * PREFETCH_DISTANCE;

	if (row + 1 >= end)
		return;
	if (!state->sort->layout->keys_only && is_tied(state, row))
	{
		__builtin_prefetch(row_of(state, state->words[row]));
		__builtin_prefetch(row_of(state, state->words[row + 1]));
	}
	if (is_tied(state, record))
	{
		__builtin_prefetch(record_of(state, state->words[record]));
		__builtin_prefetch(record_of(state, state->words[record + 1]));
	}
}

void
gs_tie_sort(GsWordSortState *state, size_t start, size_t end, GsKeyPosition position)
{
	for (size_t group = start, next; group < end; group = next)
	{
		check_interrupts(state, group);
		prefetch_ties(state, group, end);
		next = tie_group_end(state, group, end);
		if (next - group > 1)
		{
			state->stats->tied_rows += next - group;
			sort_tie_group(state, group, next, position);
		}
	}
}
