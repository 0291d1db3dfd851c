/*-------------------------------------------------------------------------
 *
 * compare_sort.c
 *	  Sorts rows by the driver's comparison function: a merge sort of their words.
 *
 * Comparisons are expensive here.  A merge sort needs nearly the fewest possible
 * and is stable; if rows are few distinct ones, it skips equal rows with
 * exponential search, as Timsort's galloping mode does (count_before()).
 *
 *-------------------------------------------------------------------------
 */
#include "engine/word_sort_state.h"

#include <string.h>

/* Rows that are sorted by insertion before merging. */
#define INSERTION_ROWS	6

/* How many rows ahead are prefetched, and how many cache lines of each. */
#define ROWS_AHEAD		6
#define LINES_AHEAD		4
#define CACHE_LINE		64

/* See count_before(). */
#define FIRST_FEW		3

/* Prefetches the beginning of a row, where most of its columns are. */
static inline void
prefetch_row(const GsWordSortState *state, const uint64_t *words, size_t i, size_t n)
{
	if (i + ROWS_AHEAD < n)
	{
		const char *row = row_of(state, words[i + ROWS_AHEAD]);

		for (int line = 0; line < LINES_AHEAD; line++)
			__builtin_prefetch(row + line * CACHE_LINE);
	}
}

static inline bool
is_above(const GsWordSortState *state, uint64_t a, uint64_t b)
{
	const GsWordSort *sort = state->sort;

	sort->runtime->check_interrupts(sort->runtime->arg);
	return sort->compare(sort->compare_arg, row_of(state, a), row_of(state, b)) > 0;
}

/* Does row a sort before row b, or, if or_equal, with it? */
static inline bool
comes_before(const GsWordSortState *state, uint64_t a, uint64_t b, bool or_equal)
{
	return or_equal ? !is_above(state, a, b) : is_above(state, b, a);
}

/* The number of words in order that sort before another: at least low, at most high. */
static size_t
search(const GsWordSortState *state, const uint64_t *words, size_t low, size_t high, uint64_t word,
	   bool or_equal)
{
	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;

		if (comes_before(state, words[middle], word, or_equal))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Sorts the first n of nall words. */
static void
insertion_sort(const GsWordSortState *state, uint64_t *words, size_t n, size_t nall)
{
	prefetch_row(state, words, 0, nall);
	for (size_t i = 1; i < n; i++)
	{
		uint64_t	word = words[i];
		size_t		place;

		prefetch_row(state, words, i, nall);
		if (!is_above(state, words[i - 1], word))
			continue;
		place = search(state, words, 0, i - 1, word, true);
		memmove(words + place + 1, words + place, (i - place) * sizeof(uint64_t));
		words[place] = word;
	}
}

/*
 * The number of words in order, of n, that sort before another; the first nknown are
 * known to.  If the first few do, searches at distances that double: equal rows are
 * adjacent, so merging few distinct ones takes few comparisons.
 */
static size_t
count_before(const GsWordSortState *state, const uint64_t *words, size_t n, uint64_t word,
			 bool or_equal, size_t nknown)
{
	size_t		low = nknown;
	size_t		step = 1;

	for (; low < n && low < FIRST_FEW; low++)
	{
		prefetch_row(state, words, low, n);
		if (!comes_before(state, words[low], word, or_equal))
			return low;
	}
	for (; low + step <= n && comes_before(state, words[low + step - 1], word, or_equal); step *= 2)
		low += step;
	return search(state, words, low, Min(low + step - 1, n), word, or_equal);
}

/*
 * Merges words[0..mid) with words[mid..n); scratch has room for mid words.  If they
 * are in order already, that takes one comparison.
 */
static void
merge(const GsWordSortState *state, uint64_t *words, uint64_t *scratch, size_t mid, size_t n)
{
	size_t		a = 0;
	size_t		b = mid;
	size_t		out;
	size_t		nmoved;
	size_t		ntaken;

	if (!is_above(state, words[mid - 1], words[mid]))
		return;
	out = count_before(state, words, mid, words[mid], true, 0);
	nmoved = mid - out;
	memcpy(scratch, words + out, nmoved * sizeof(uint64_t));

	/* move words of the right half, then of the left half, and so on */
	for (;;)
	{
		ntaken = count_before(state, words + b, n - b, scratch[a], false, 1);
		memmove(words + out, words + b, ntaken * sizeof(uint64_t));
		out += ntaken;
		b += ntaken;
		if (b == n)
			break;
		ntaken = count_before(state, scratch + a, nmoved - a, words[b], true, 1);
		memcpy(words + out, scratch + a, ntaken * sizeof(uint64_t));
		out += ntaken;
		a += ntaken;
		if (a == nmoved)
			break;
	}
	memcpy(words + out, scratch + a, (nmoved - a) * sizeof(uint64_t));
}

void
gs_compare_sort(GsWordSortState *state, size_t start, size_t end)
{
	uint64_t   *words = state->words + start;
	size_t		n = end - start;

	for (size_t i = 0; i < n; i += INSERTION_ROWS)
		insertion_sort(state, words + i, Min(INSERTION_ROWS, n - i), n - i);
	for (size_t width = INSERTION_ROWS; width < n; width *= 2)
	{
		for (size_t i = 0; i + width < n; i += 2 * width)
			merge(state, words + i, state->scratch + start, width, Min(2 * width, n - i));
	}
}

GsStatus
gs_word_sort_by_comparison(GsWordSort *sort)
{
	const GsRuntime *runtime = sort->runtime;
	GsWordSortState *state = runtime->allocate(runtime->arg, sizeof(GsWordSortState));
	uint64_t   *scratch = runtime->allocate(runtime->arg, sort->nrows * sizeof(uint64_t));

	if (state != NULL && scratch != NULL)
	{
		state->sort = sort;
		state->number_mask = (UINT64_C(1) << sort->numbering.number_bits) - 1;
		state->words = sort->words;
		state->scratch = scratch;
		gs_compare_sort(state, 0, sort->nrows);
	}
	if (scratch != NULL)
		runtime->release(runtime->arg, scratch);
	if (state != NULL)
		runtime->release(runtime->arg, state);
	return state != NULL && scratch != NULL ? GS_STATUS_OK : GS_STATUS_OOM;
}
