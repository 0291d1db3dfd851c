/*-------------------------------------------------------------------------
 *
 * guess_sort.c
 *	  Sorts rows by a guess of their order, which comparisons confirm.
 *
 * Nothing is known about the driver's comparison function, but most such functions
 * order values as their bits suggest: as integers, as floating-point numbers, or byte by
 * byte.  So the driver offers codes of values in these orders.  A sample of the rows
 * shows whether the comparison function agrees with one of them.  If so, the words get
 * the codes as their keys, as in tail_sort.c, and a radix sort orders them.  The
 * comparison function sorts the ties that are left, and is asked about all neighbors:
 * n comparisons instead of n log2 n.
 *
 * If two neighbors are in the wrong order, the guess was wrong.  Another one that agrees
 * about these two, too, may be right.  Otherwise the rows have to be sorted by comparisons:
 * a guess that holds for the sample is wrong for few rows, so they are nearly in order then.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/word_sort_state.h"

/*
 * A sample adds 63 comparisons to the 4,000 or so that this many rows take without a guess.  ORDER
 * BY of 300,000 rows by a cube, an ip4 and a prefix_range: 247, 210 and 286 ms with guesses, 458,
 * 314 and 601 without, PostgreSQL 1087, 450 and 956 (minima of 9, 2 busy cores of an AMD EPYC,
 * PostgreSQL 15, 2026-11-28).
 */
#define LEAST_ROWS		512

#define SAMPLED_ROWS	64

/* A guess has to tell most of the sampled rows apart. */
#define LEAST_DIFFERENT	(SAMPLED_ROWS / 2)

/* More guesses, which agree with the sample too, are not worth their time if these were wrong. */
#define MOST_TRIED		2

/* How many rows ahead rows are prefetched, and how many cache lines of each. */
#define ROWS_AHEAD		8
#define LINES_AHEAD		2
#define CACHE_LINE		64

/* What the comparison function has said about them. */
typedef struct Guesses
{
	bool		are_wrong[GS_MAX_GUESSES];
	int			ndifferent[GS_MAX_GUESSES]; /* pairs of rows with different codes */
} Guesses;

/* Of all codes but 0 and UINT64_MAX, which tie with the least and the greatest of the others. */
typedef struct CodeRange
{
	uint64_t	min;
	uint64_t	max;
	uint64_t	ever_set;
	uint64_t	always_set;
} CodeRange;

static inline GsLocatedRow
located_row(const GsWordSortState *state, size_t i)
{
	return gs_row_locate(state->sort->compare, state->sort->compare_arg,
						 row_of(state, state->words[i]));
}

static inline uint64_t
code_of(const GsWordSortState *state, const void *row, int guess)
{
	return state->sort->compare->guess(state->sort->compare_arg, row, guess);
}

/* May two rows with these codes be in this order?  Ties are compared. */
static inline bool
agrees(uint64_t a, uint64_t b, int order)
{
	return order < 0 ? a <= b : order > 0 ? a >= b : a == b;
}

/* Asks the comparison function about two rows, and finds the guesses that disagree. */
static void
check_guesses(const GsWordSortState *state, Guesses *guesses, GsLocatedRow a, GsLocatedRow b)
{
	const GsRowCompare *compare = state->sort->compare;
	const int	order = compare->compare_values(state->sort->compare_arg, a.value, b.value);

	/* of 0 it is not known whether it is NULL */
	for (int guess = 0; guess < compare->nguesses && a.value != 0 && b.value != 0; guess++)
	{
		uint64_t	a_code;
		uint64_t	b_code;

		if (guesses->are_wrong[guess])
			continue;
		a_code = code_of(state, a.row, guess);
		b_code = code_of(state, b.row, guess);
		guesses->are_wrong[guess] = !agrees(a_code, b_code, order);
		guesses->ndifferent[guess] += a_code != b_code;
	}
}

/* At uneven distances, as values may alternate. */
static void
check_sample(const GsWordSortState *state, Guesses *guesses, size_t start, size_t end)
{
	const size_t step = (end - start) / SAMPLED_ROWS;
	GsLocatedRow before = located_row(state, start);

	for (size_t i = 1; i < SAMPLED_ROWS; i++)
	{
		const size_t offset = (i * UINT64_C(0x9E3779B97F4A7C15) >> 32) % step;
		const GsLocatedRow row = located_row(state, start + i * step + offset);

		check_guesses(state, guesses, before, row);
		before = row;
	}
}

/* The codes of words[start..end) go to the scratch. */
static CodeRange
compute_codes(GsWordSortState *state, size_t start, size_t end, int guess)
{
	CodeRange	range = {.min = UINT64_MAX,.max = 0,.ever_set = 0,.always_set = UINT64_MAX};

	for (size_t i = start; i < end; i++)
	{
		const uint64_t code = code_of(state, row_of(state, state->words[i]), guess);

		check_interrupts(state, i);
		state->scratch[i] = code;
		if (code == 0 || code == UINT64_MAX)
			continue;
		range.min = Min(range.min, code);
		range.max = Max(range.max, code);
		range.ever_set |= code;
		range.always_set &= code;
	}
	return range;
}

/*
 * Sorts words[start..end) by the most significant bits of their codes, as many as fit: those of
 * the distance to the least code, or those that vary, if these are fewer, as in text.
 */
static void
sort_by_codes(GsWordSortState *state, size_t start, size_t end, int guess)
{
	const CodeRange range = compute_codes(state, start, end, guess);
	const int	width = gs_bit_width(range.max - range.min);
	uint64_t	varying = range.ever_set & ~range.always_set;
	const int	nvarying = __builtin_popcountll(varying);
	const int	distance_bits = varying == 0 ? 0 : width - __builtin_ctzll(varying);
	const bool	extracts = nvarying < distance_bits;
	const int	key_bits = Min(extracts ? nvarying : distance_bits, state->chunk_bits);
	uint64_t	previous = 0;
	bool		ascending = true;

	while (extracts && __builtin_popcountll(varying) > key_bits)
		varying &= varying - 1;
	for (size_t i = start; i < end; i++)
	{
		const uint64_t code = Min(Max(state->scratch[i], range.min), range.max);

		check_interrupts(state, i);
		set_key(state, i, extracts ? state->extract_bits(code, varying) :
				(code - range.min) >> (width - key_bits), &previous, &ascending);
	}
	if (!ascending)
		gs_sort_words(state, start, end, key_bits);
}

/* Are two neighbors in the wrong order? */
static inline bool
are_wrong(const GsWordSortState *state, GsLocatedRow a, GsLocatedRow b, size_t i)
{
	const int	order = gs_row_compare_located(state->sort->compare, state->sort->compare_arg, a,
											   b);

	return order > 0 || (order == 0 && is_later(state, state->words[i - 1], state->words[i]));
}

/*
 * Sorts the ties that are left.  Returns whether all rows are in order; if not, finds other
 * guesses that are wrong.
 */
static bool
confirm(GsWordSortState *state, Guesses *guesses, size_t start, size_t end)
{
	GsLocatedRow last = {NULL, 0};

	for (size_t group = start, next; group < end; group = next)
	{
		GsLocatedRow first;

		check_interrupts(state, group);
		for (int line = 0; group + ROWS_AHEAD < end && line < LINES_AHEAD; line++)
			__builtin_prefetch(row_of(state, state->words[group + ROWS_AHEAD]) + line * CACHE_LINE);
		next = tie_group_end(state, group, end);
		if (next - group > 1)
			gs_compare_sort(state, group, next);
		first = located_row(state, group);
		if (group > start && are_wrong(state, last, first, group))
		{
			check_guesses(state, guesses, last, first);
			return false;
		}
		last = next - group > 1 ? located_row(state, next - 1) : first;
	}
	return true;
}

bool
gs_guess_sort(GsWordSortState *state, size_t start, size_t end)
{
	const int	nguesses = state->sort->compare->nguesses;
	Guesses		guesses = {0};
	int			ntried = 0;

	if (nguesses == 0 || end - start < LEAST_ROWS)
		return false;
	check_sample(state, &guesses, start, end);
	for (int guess = 0; guess < nguesses && ntried < MOST_TRIED; guess++)
	{
		if (guesses.are_wrong[guess] || guesses.ndifferent[guess] < LEAST_DIFFERENT)
			continue;
		ntried++;
		sort_by_codes(state, start, end, guess);
		if (confirm(state, &guesses, start, end))
			return true;
	}
	return false;
}
