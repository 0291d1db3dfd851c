/*-------------------------------------------------------------------------
 *
 * compare_sort.c
 *	  Sorts rows by the caller's comparison function: a merge sort of their words.
 *
 * Comparisons are expensive here.  A merge sort needs nearly the fewest possible and is stable;
 * equal rows are skipped with exponential search, as Timsort's galloping mode does
 * (count_before()).  If few rows are distinct, a hash table of their bytes finds these, and only
 * they are compared.  Equal rows are put in the order of the input, which numbers of rows tell, if
 * they are not in it.
 *
 * What the caller locates in a row moves along with its word, as datum1 does in
 * PostgreSQL's SortTuple.
 *
 * A comparison function of a user can contradict itself.  Then the order is not
 * defined, but each row is returned once: the bounds of all loops are numbers of
 * rows, not results.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/word_sort_state.h"

#include <string.h>

/* Rows that are sorted by insertion before merging. */
#define INSERTION_ROWS	6

/* How many rows ahead rows and values are prefetched, and how many cache lines of each. */
#define ROWS_AHEAD		6
#define VALUES_AHEAD	16
#define LINES_AHEAD		2

/* The values of more rows than this are not in the processor's cache. */
#define CACHED_ROWS		2048

/*
 * See sort_few_distinct().  8,000 rows of 3 distinct values take 32,000 calls of the comparison
 * function without this, and 13,000 by PostgreSQL's sort, which puts equal rows aside.
 */
#define LEAST_ROWS		64
#define ROWS_OF_DISTINCT	8
#define ROWS_OF_SAMPLED	16
#define MOST_SAMPLED	((size_t) 4096)

/*
 * See merge_halves().  ORDER BY of 1 M rows by a value of 16 bytes, with 5 and with 8: 349 and 341
 * ms; by an integer, 4 MB, 207 and 201 (AMD EPYC, Zen 5, PostgreSQL 15.20, 2026-11-24).
 */
#define FIRST_FEW		8

/* What is sorted. */
typedef struct Row
{
	uint64_t	value;			/* of locate() */
	uint64_t	word;
} Row;

/*
 * Prefetches lines from an address, which may be any number.  Always inline, because GCC can
 * take a function that does nothing else for one without effect, and leave out its calls.
 */
static inline __attribute__((always_inline)) void
prefetch_lines(uintptr_t address)
{
	for (int line = 0; line < LINES_AHEAD; line++)
		__builtin_prefetch((const void *) (address + (uintptr_t) line * GS_CACHE_LINE));
}

/* < 0, 0 or > 0 as row a sorts before, with or after row b. */
static inline int
compare_rows(const GsWordSortState *state, const Row *a, const Row *b)
{
	const GsRowCompare *compare = state->sort->compare;
	void	   *arg = state->sort->compare_arg;
	int			order = compare->compare_values(arg, a->value, b->value);

	if (order == 0)
	{
		const GsLocatedRow row_a = {row_of(state, a->word), a->value};
		const GsLocatedRow row_b = {row_of(state, b->word), b->value};

		order = compare->compare_rows(arg, row_a, row_b);
	}
	return order;
}

/* Does row a sort after row b?  Equal rows are in the order of the input, wherever they are now. */
static inline bool
is_above(const GsWordSortState *state, const Row *a, const Row *b)
{
	const int	order = compare_rows(state, a, b);

	return order != 0 ? order > 0 : is_later(state, a->word, b->word);
}

/* The number of rows in order that sort before another: at least low, at most high. */
static size_t
search(const GsWordSortState *state, const Row *rows, size_t low, size_t high, const Row *row)
{
	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;

		if (!is_above(state, &rows[middle], row))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Locates the rows of n words, which are followed by others up to nall. */
static void
locate_rows(const GsWordSortState *state, const uint64_t *words, Row *rows, size_t n, size_t nall)
{
	const GsWordSort *sort = state->sort;

	for (size_t i = 0; i < n; i++)
	{
		if (i + ROWS_AHEAD < nall)
			prefetch_lines((uintptr_t) row_of(state, words[i + ROWS_AHEAD]));
		rows[i] = (Row) {
			.value = sort->compare->locate(sort->compare_arg,
										   row_of(state, words[i])),.word = words[i]
		};
	}
}

static void
insertion_sort(const GsWordSortState *state, Row *rows, size_t n)
{
	for (size_t i = 1; i < n; i++)
	{
		const Row	row = rows[i];
		size_t		place;

		if (!is_above(state, &rows[i - 1], &row))
			continue;
		place = search(state, rows, 0, i - 1, &row);
		memmove(rows + place + 1, rows + place, (i - place) * sizeof(Row));
		rows[place] = row;
	}
}

/*
 * The number of rows in order, of n, that sort before another, if several do: searches at
 * distances that double.
 */
static size_t
count_before(const GsWordSortState *state, const Row *rows, size_t n, const Row *row)
{
	size_t		low = 0;
	size_t		step = 1;

	for (; low + step <= n && !is_above(state, &rows[low + step - 1], row); step *= 2)
		low += step;
	return search(state, rows, low, Min(low + step - 1, n), row);
}

/*
 * What is left of two halves that are merged.  The left one is in scratch memory; rows go before
 * the right one.
 */
typedef struct Merge
{
	const Row  *left;
	const Row  *left_end;
	const Row  *right;
	const Row  *right_end;
	Row		   *to;
} Merge;

/* Takes the first n rows of a half. */
static inline void
take(Merge *merge, const Row **half, size_t n)
{
	memmove(merge->to, *half, n * sizeof(Row));
	*half += n;
	merge->to += n;
}

/* Takes as many rows of a half as count_before() finds, and the one before which they go. */
static __attribute__((noinline)) void
take_several(const GsWordSortState *state, Merge *merge, bool of_right)
{
	const Row **half = of_right ? &merge->right : &merge->left;
	const Row **other = of_right ? &merge->left : &merge->right;
	const Row  *end = of_right ? merge->right_end : merge->left_end;

	take(merge, half, count_before(state, *half, (size_t) (end - *half), *other));
	take(merge, other, 1);
}

/* Have the last FIRST_FEW rows come from the same half?  Each has a bit. */
static inline bool
are_few_in_a_row(uint64_t halves)
{
	const uint64_t all = (UINT64_C(1) << FIRST_FEW) - 1;
	const uint64_t last = halves & all;

	return last == 0 || last == all;
}

/*
 * Takes rows one by one until one half has given a few in a row, and then several.  Equal rows are
 * adjacent, so merging few distinct ones takes few comparisons.  Ends when a half has no rows
 * before its limit.
 *
 * The half from which a row is taken is a branch, not a calculation.  A comparison function usually
 * has a branch with the same result.  The processor predicts this one from it, and begins the next
 * comparison before this one has ended.  An ORDER BY of 10,000 rows takes 6 % less than
 * without this branch (AMD EPYC, Zen 5, PostgreSQL 15.20, 2026-11-24).
 */
static inline __attribute__((always_inline)) void
merge_halves(const GsWordSortState *state, Merge *merge, const Row *left_limit,
			 const Row *right_limit, bool prefetches)
{
	uint64_t	halves = 1;		/* of the rows taken: 1 for the right one */

	while (merge->left < left_limit && merge->right < right_limit)
	{
		if (are_few_in_a_row(halves))
		{
			take_several(state, merge, (halves & 1) != 0);
			halves = (halves & 1) != 0 ? ~UINT64_C(1) : 1;
		}
		else if (is_above(state, merge->left, merge->right))
		{
			if (prefetches)
				prefetch_lines((uintptr_t) merge->right[VALUES_AHEAD].value);
			take(merge, &merge->right, 1);
			halves = halves << 1 | 1;
		}
		else
		{
			if (prefetches)
				prefetch_lines((uintptr_t) merge->left[VALUES_AHEAD].value);
			take(merge, &merge->left, 1);
			halves = halves << 1;
		}
	}
}

/* Are values at addresses, and those of n rows not in the processor's cache? */
static bool
are_far(const GsWordSortState *state, size_t n)
{
	const GsRowCompare *compare = state->sort->compare;

	return n > CACHED_ROWS && compare->are_addresses != NULL &&
		compare->are_addresses(state->sort->compare_arg);
}

/*
 * Merges the first mid rows with the others, of n; scratch has room for mid rows.  If they
 * are in order already, that takes one comparison.
 */
static void
merge_rows(const GsWordSortState *state, Row *rows, Row *scratch, size_t mid, size_t n)
{
	Merge		merge = {
		.left = scratch,.left_end = scratch + mid,
		.right = rows + mid,.right_end = rows + n,.to = rows
	};

	if (!is_above(state, &rows[mid - 1], &rows[mid]))
		return;
	state->sort->runtime->check_interrupts(state->sort->runtime->arg);
	memcpy(scratch, rows, mid * sizeof(Row));
	if (are_far(state, n))
		merge_halves(state, &merge, merge.left_end - Min(mid, VALUES_AHEAD),
					 merge.right_end - Min(n - mid, VALUES_AHEAD), true);
	merge_halves(state, &merge, merge.left_end, merge.right_end, false);
	take(&merge, &merge.left, (size_t) (merge.left_end - merge.left));
}

/*
 * Sorts the rows of n words, which are followed by others up to nall.  The scratch may be words
 * that have been located.
 */
static void
sort_rows(const GsWordSortState *state, const uint64_t *words, Row *rows, Row *scratch, size_t n,
		  size_t nall)
{
	const size_t mid = n / 2;

	if (n <= INSERTION_ROWS)
	{
		locate_rows(state, words, rows, n, nall);
		insertion_sort(state, rows, n);
		return;
	}
	sort_rows(state, words, rows, scratch, mid, nall);
	sort_rows(state, words + mid, rows + mid, scratch, n - mid, nall - mid);
	merge_rows(state, rows, scratch, mid, n);
}

/*
 * The words of distinct rows, and the number of the distinct row of each row.  In memory that has
 * space for n rows:
 *
 *	numbers | places | ranks | distinct rows in order | their words, hashes and slots
 *
 * In the end, the words of all rows in order are where distinct rows and what follows them were.
 */
typedef struct DistinctRows
{
	uint32_t	count;
	uint32_t	most;
	uint32_t   *numbers;		/* of all rows */
	uint32_t   *places;			/* by rank: the number of rows, then where they go */
	uint32_t   *ranks;			/* of distinct rows */
	uint64_t   *words;			/* as they came; the first bits are the number of the row here */
	Row		   *sorted;
	uint32_t   *hashes;
	uint32_t   *slots;			/* by hash: number + 1 of the distinct row, or 0 */
	uint32_t	slot_mask;
} DistinctRows;

/*
 * All rows have 4 n bytes, for their numbers; each distinct row has at most 4 + 4 + 8 + 16 + 4 + 16
 * bytes, with four slots.  That is 10.5 n of 16 n bytes if an eighth is distinct; the words of all
 * rows in order begin at 5 n and end at 13 n.
 */
static DistinctRows
begin_distinct(Row *memory, size_t n)
{
	DistinctRows distinct = {.most = (uint32_t) (n / ROWS_OF_DISTINCT)};
	uint32_t	nslots = 2;

	while (nslots < 2 * distinct.most)
		nslots *= 2;
	distinct.numbers = (uint32_t *) memory;
	distinct.places = distinct.numbers + n;
	distinct.ranks = distinct.places + distinct.most;
	distinct.sorted = memory + (n + 2 * (size_t) distinct.most + 3) / 4;
	distinct.words = (uint64_t *) (distinct.sorted + distinct.most);
	distinct.hashes = (uint32_t *) (distinct.words + distinct.most);
	distinct.slots = distinct.hashes + distinct.most;
	distinct.slot_mask = nslots - 1;
	memset(distinct.slots, 0, nslots * sizeof(uint32_t));
	return distinct;
}

/*
 * The number of the row that has the same bytes; one is added if there is none.  distinct->most:
 * there is no space for it.
 */
static uint32_t
find_distinct(const GsWordSortState *state, DistinctRows *distinct, uint64_t word)
{
	const GsRowCompare *compare = state->sort->compare;
	void	   *arg = state->sort->compare_arg;
	const void *row = row_of(state, word);
	const uint32_t hash = compare->hash(arg, row);
	uint32_t	slot = hash & distinct->slot_mask;

	for (; distinct->slots[slot] != 0; slot = (slot + 1) & distinct->slot_mask)
	{
		const uint32_t number = distinct->slots[slot] - 1;

		if (distinct->hashes[number] == hash &&
			compare->are_same(arg, row, row_of(state, distinct->words[number])))
			return number;
	}
	if (distinct->count == distinct->most)
		return distinct->most;
	distinct->slots[slot] = distinct->count + 1;
	distinct->hashes[distinct->count] = hash;
	distinct->words[distinct->count] =
		(uint64_t) distinct->count << state->number_bits |
		(word & state->sort->numbering.number_mask);
	return distinct->count++;
}

/*
 * Are few of n rows distinct?  A sample of s rows has about s^2 / 2 d rows that are not distinct in
 * it if d of all rows are.  So this asks whether d is below n / 4.  A wrong yes costs the time
 * until too many distinct rows have been found.
 */
static bool
are_few_distinct(const GsWordSortState *state, const uint64_t *words, Row *memory, size_t n)
{
	const size_t nsampled = Min(MOST_SAMPLED, n / ROWS_OF_SAMPLED);
	const size_t step = n / nsampled;
	const size_t least = Min(nsampled * nsampled * 2 / n, nsampled / 2);
	DistinctRows distinct = begin_distinct(memory, n);
	size_t		nsame = 0;

	for (size_t i = 0; i < nsampled; i++)
	{
		const uint32_t count = distinct.count;

		nsame += find_distinct(state, &distinct, words[i * step]) < count;
	}
	return nsame > least;
}

/*
 * Sorts distinct rows, and gives them ranks, which are equal if the rows are.  Returns the number
 * of ranks.
 */
static uint32_t
rank_distinct(const GsWordSortState *state, const DistinctRows *distinct)
{
	uint32_t	nranks = 0;

	sort_rows(state, distinct->words, distinct->sorted, (Row *) distinct->words, distinct->count,
			  distinct->count);
	for (uint32_t i = 0; i < distinct->count; i++)
	{
		if (i == 0 || compare_rows(state, &distinct->sorted[i - 1], &distinct->sorted[i]) != 0)
			nranks++;
		distinct->ranks[distinct->sorted[i].word >> state->number_bits] = nranks - 1;
	}
	return nranks;
}

/*
 * Sorts the words of n rows in the order of the input by finding, with a hash table, the distinct
 * row that has the same bytes, and sorting these.  False: too many are distinct, and nothing was
 * done.
 */
static bool
sort_few_distinct(const GsWordSortState *state, uint64_t *words, Row *memory, size_t n)
{
	DistinctRows distinct;
	uint64_t   *sorted;
	uint32_t	nranks;
	uint32_t	place = 0;

	if (!are_few_distinct(state, words, memory, n))
		return false;
	distinct = begin_distinct(memory, n);
	for (size_t i = 0; i < n; i++)
	{
		if (i + ROWS_AHEAD < n)
			prefetch_lines((uintptr_t) row_of(state, words[i + ROWS_AHEAD]));
		distinct.numbers[i] = find_distinct(state, &distinct, words[i]);
		if (distinct.numbers[i] == distinct.most)
			return false;
	}
	nranks = rank_distinct(state, &distinct);
	memset(distinct.places, 0, nranks * sizeof(uint32_t));
	for (size_t i = 0; i < n; i++)
		distinct.places[distinct.ranks[distinct.numbers[i]]]++;
	for (uint32_t i = 0; i < nranks; i++)
	{
		const uint32_t nrows = distinct.places[i];

		distinct.places[i] = place;
		place += nrows;
	}
	sorted = (uint64_t *) distinct.sorted;
	for (size_t i = 0; i < n; i++)
		sorted[distinct.places[distinct.ranks[distinct.numbers[i]]]++] = words[i];
	memcpy(words, sorted, n * sizeof(uint64_t));
	return true;
}

/* Has a word space for the number of a distinct row of n? */
static bool
may_number_distinct(const GsWordSortState *state, size_t n)
{
	return n >= LEAST_ROWS && n <= UINT32_MAX && gs_bit_width(n) + state->number_bits <= 64;
}

/* They need not be, if they were sorted in another order before. */
static bool
are_in_input_order(const GsWordSortState *state, size_t start, size_t end)
{
	for (size_t i = start + 1; i < end; i++)
	{
		if (is_later(state, state->words[i - 1], state->words[i]))
			return false;
	}
	return true;
}

/* A row takes the space of two words, so half of the rows fit where their words were. */
void
gs_compare_sort(GsWordSortState *state, size_t start, size_t end)
{
	const size_t n = end - start;
	uint64_t   *words = state->words + start;
	Row		   *rows = (Row *) state->scratch;

	if (may_number_distinct(state, n) && state->sort->compare->hash != NULL &&
		are_in_input_order(state, start, end) &&
		sort_few_distinct(state, words, rows, n))
		return;
	sort_rows(state, words, rows, (Row *) words, n, n);
	for (size_t i = 0; i < n; i++)
		words[i] = rows[i].word;
}

GsStatus
gs_word_sort_by_comparison(GsWordSort *sort)
{
	const GsRuntime *runtime = sort->runtime;
	GsWordSortState *state = runtime->allocate(runtime->arg, sizeof(GsWordSortState));
	const size_t scratch_bytes = gs_word_sort_scratch_bytes(sort->nrows, true);
	uint64_t   *scratch = runtime->allocate(runtime->arg, scratch_bytes);
	const bool	allocated = state != NULL && scratch != NULL;

	if (allocated)
	{
		state->sort = sort;
		state->number_bits = sort->numbering.number_bits;
		state->words = sort->words;
		state->scratch = scratch;
		gs_compare_sort(state, 0, sort->nrows);
	}
	if (scratch != NULL)
		runtime->release(runtime->arg, scratch, scratch_bytes);
	if (state != NULL)
		runtime->release(runtime->arg, state, sizeof(GsWordSortState));
	return allocated ? GS_STATUS_OK : GS_STATUS_OOM;
}
