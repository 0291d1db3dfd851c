/*-------------------------------------------------------------------------
 *
 * word_sort_state.c
 *	  What the sorts of words, ties and tails share: the sort of some words.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/word_sort_state.h"

#include <string.h>

#include "common/radix_sort.h"

void
gs_sort_words(GsWordSortState *state, size_t start, size_t end, int key_bits)
{
	uint64_t   *words = state->words + start;
	uint64_t   *scratch = state->scratch + start;
	size_t		n = end - start;

	/* the input may have been in order by its first bits, but not by these */
	if (state->stats->method != GS_METHOD_RADIX)
		state->stats->method = n <= GS_MERGE_SORT_MAX ? GS_METHOD_MERGE : GS_METHOD_RADIX;
	if (n <= GS_MERGE_SORT_MAX)
		gs_merge_sort(words, scratch, n);
	else
	{
		uint64_t   *sorted = gs_radix_sort(words, scratch, n, state->number_bits,
										   key_bits, state->sort->runtime, NULL);

		if (sorted != words)
			memcpy(words, sorted, n * sizeof(uint64_t));
	}
}
