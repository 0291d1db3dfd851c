/*-------------------------------------------------------------------------
 *
 * compare_sort.c
 *	  Sorts rows by the driver's comparison function: a merge sort of their words.
 *
 * Comparisons are expensive here.  A merge sort needs nearly the fewest possible
 * and is stable; equal rows are skipped with exponential search, as Timsort's
 * galloping mode does (count_before()).  As long as rows are few distinct ones,
 * binary search finds the equal one of each, and nothing has to be merged.  Equal rows
 * are put in the order of the input, which numbers of rows tell, if they are not in it.
 *
 * What the driver locates in a row moves along with its word, as datum1 does in
 * PostgreSQL's SortTuple: a comparison of values that are passed by value reads no
 * row, and the others are prefetched.
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
#define CACHE_LINE		64

/* The values of more rows than this are not in the processor's cache. */
#define CACHED_ROWS		2048

/* See sort_few_distinct(). */
#define LEAST_ROWS		64
#define MOST_DISTINCT	32

/* See merge_halves(). */
#define FIRST_FEW		5

/* Adjacent rows: their words, and the value of each. */
typedef struct Rows
{
	uint64_t   *words;
	uint64_t   *values;
} Rows;

/* One of them. */
typedef struct Row
{
	uint64_t	word;
	uint64_t	value;
} Row;

static inline Rows
rows_from(Rows rows, size_t i)
{
	return (Rows) {
		rows.words + i, rows.values + i
	};
}

static inline Row
row_at(Rows rows, size_t i)
{
	return (Row) {
		rows.words[i], rows.values[i]
	};
}

static inline void
put_row(Rows rows, size_t i, Row row)
{
	rows.words[i] = row.word;
	rows.values[i] = row.value;
}

static inline void
move_rows(Rows to, Rows from, size_t n)
{
	memmove(to.words, from.words, n * sizeof(uint64_t));
	memmove(to.values, from.values, n * sizeof(uint64_t));
}

/* Prefetches lines from an address, which may be any number. */
static inline void
prefetch_lines(uintptr_t address)
{
	for (int line = 0; line < LINES_AHEAD; line++)
		__builtin_prefetch((const void *) (address + (uintptr_t) line * CACHE_LINE));
}

/* Prefetches values further on, most of which are addresses. */
static inline void
prefetch_value(Rows rows, size_t i, size_t n)
{
	if (i + VALUES_AHEAD < n)
		prefetch_lines((uintptr_t) rows.values[i + VALUES_AHEAD]);
}

/* < 0, 0 or > 0 as row a sorts before, with or after row b. */
static inline int
compare_rows(const GsWordSortState *state, Row a, Row b)
{
	const GsRowCompare *compare = state->sort->compare;
	void	   *arg = state->sort->compare_arg;
	int			order = compare->compare_values(arg, a.value, b.value);

	if (order == 0)
	{
		const GsLocatedRow row_a = {row_of(state, a.word), a.value};
		const GsLocatedRow row_b = {row_of(state, b.word), b.value};

		order = compare->compare_rows(arg, row_a, row_b);
	}
	return order;
}

/* Does row a sort after row b?  Equal rows are in the order of the input, wherever they are now. */
static inline bool
is_above(const GsWordSortState *state, Row a, Row b)
{
	const int	order = compare_rows(state, a, b);

	return order != 0 ? order > 0 : is_later(state, a.word, b.word);
}

/* The number of rows in order that sort before another: at least low, at most high. */
static size_t
search(const GsWordSortState *state, Rows rows, size_t low, size_t high, Row row)
{
	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;

		if (!is_above(state, row_at(rows, middle), row))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Locates the values of n rows, which are followed by others up to nall. */
static void
locate_values(const GsWordSortState *state, Rows rows, size_t n, size_t nall)
{
	const GsWordSort *sort = state->sort;

	for (size_t i = 0; i < n; i++)
	{
		if (i + ROWS_AHEAD < nall)
			prefetch_lines((uintptr_t) row_of(state, rows.words[i + ROWS_AHEAD]));
		rows.values[i] = sort->compare->locate(sort->compare_arg, row_of(state, rows.words[i]));
	}
}

static void
insertion_sort(const GsWordSortState *state, Rows rows, size_t n)
{
	for (size_t i = 1; i < n; i++)
	{
		const Row	row = row_at(rows, i);
		size_t		place;

		if (!is_above(state, row_at(rows, i - 1), row))
			continue;
		place = search(state, rows, 0, i - 1, row);
		move_rows(rows_from(rows, place + 1), rows_from(rows, place), i - place);
		put_row(rows, place, row);
	}
}

/*
 * The number of rows in order, of n, that sort before another, if several do: searches at
 * distances that double.
 */
static size_t
count_before(const GsWordSortState *state, Rows rows, size_t n, Row row)
{
	size_t		low = 0;
	size_t		step = 1;

	for (; low + step <= n && !is_above(state, row_at(rows, low + step - 1), row); step *= 2)
		low += step;
	return search(state, rows, low, Min(low + step - 1, n), row);
}

/* What is left of a half that is merged. */
typedef struct Half
{
	Rows		rows;
	size_t		nrows;
} Half;

/* The left half is in scratch memory; rows go before the right half. */
typedef struct Merge
{
	Half		left;
	Half		right;
	Rows		to;
	bool		prefetches;
} Merge;

/* Takes the first n rows of a half. */
static inline void
take(Merge *merge, Half *half, size_t n)
{
	move_rows(merge->to, half->rows, n);
	for (size_t i = 0; merge->prefetches && i < n; i++)
		prefetch_value(half->rows, i, half->nrows);
	merge->to = rows_from(merge->to, n);
	half->rows = rows_from(half->rows, n);
	half->nrows -= n;
}

/*
 * Takes one row, of the right half or of the left one.  No branch depends on that, as it would be
 * mispredicted every other time.
 */
static inline void
take_one(Merge *merge, bool of_right)
{
	const Half	half = of_right ? merge->right : merge->left;

	put_row(merge->to, 0, row_at(half.rows, 0));
	if (merge->prefetches)
		prefetch_value(half.rows, 0, half.nrows);
	merge->to = rows_from(merge->to, 1);
	merge->right.rows = rows_from(merge->right.rows, of_right);
	merge->right.nrows -= of_right;
	merge->left.rows = rows_from(merge->left.rows, !of_right);
	merge->left.nrows -= !of_right;
}

/*
 * Takes rows one by one until one half has given a few in a row; then as many as count_before()
 * finds, and the one before which they go.  Equal rows are adjacent, so merging few distinct ones
 * takes few comparisons.  Ends when a half is empty.
 */
static void
merge_halves(const GsWordSortState *state, Merge *merge)
{
	bool		of_right = false;	/* the last row */
	int			in_a_row = 0;

	while (merge->left.nrows > 0 && merge->right.nrows > 0)
	{
		const Row	left = row_at(merge->left.rows, 0);
		const Row	right = row_at(merge->right.rows, 0);
		bool		above;

		if (in_a_row == FIRST_FEW)
		{
			if (of_right)
				take(merge, &merge->right,
					 count_before(state, merge->right.rows, merge->right.nrows, left));
			else
				take(merge, &merge->left,
					 count_before(state, merge->left.rows, merge->left.nrows, right));
			above = !of_right;
		}
		else
			above = is_above(state, left, right);
		take_one(merge, above);
		in_a_row = above == of_right ? in_a_row + 1 : 1;
		of_right = above;
	}
}

/*
 * Merges the first mid rows with the others, of n; scratch has room for mid rows.  If they
 * are in order already, that takes one comparison.
 */
static void
merge(const GsWordSortState *state, Rows rows, Rows scratch, size_t mid, size_t n)
{
	Merge		merge = {
		.left = {scratch, mid},.right = {rows_from(rows, mid), n - mid},
		.to = rows,.prefetches = n > CACHED_ROWS
	};

	if (!is_above(state, row_at(rows, mid - 1), row_at(rows, mid)))
		return;
	state->sort->runtime->check_interrupts(state->sort->runtime->arg);
	move_rows(scratch, rows, mid);
	merge_halves(state, &merge);
	move_rows(merge.to, merge.left.rows, merge.left.nrows);
}

/* Sorts the first n rows, which are followed by others up to nall. */
static void
sort_rows(const GsWordSortState *state, Rows rows, Rows scratch, size_t n, size_t nall)
{
	const size_t mid = n / 2;

	if (n <= INSERTION_ROWS)
	{
		locate_values(state, rows, n, nall);
		insertion_sort(state, rows, n);
		return;
	}
	sort_rows(state, rows, scratch, mid, nall);
	sort_rows(state, rows_from(rows, mid), scratch, n - mid, nall - mid);
	merge(state, rows, scratch, mid, n);
}

/* Rows that are not equal, and their order. */
typedef struct DistinctRows
{
	int			count;
	Row			rows[MOST_DISTINCT];	/* as they came */
	uint8_t		order[MOST_DISTINCT];	/* their numbers, in order */
} DistinctRows;

/* The number of the equal row; one is added if there is none.  -1: there is no space for it. */
static int
find_distinct(const GsWordSortState *state, DistinctRows *distinct, Row row)
{
	int			low = 0;
	int			high = distinct->count;

	while (low < high)
	{
		const int	middle = (low + high) / 2;
		const int	number = distinct->order[middle];
		const int	order = compare_rows(state, distinct->rows[number], row);

		if (order == 0)
			return number;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (distinct->count == MOST_DISTINCT)
		return -1;
	memmove(distinct->order + low + 1, distinct->order + low, (size_t) (distinct->count - low));
	distinct->order[low] = (uint8_t) distinct->count;
	distinct->rows[distinct->count] = row;
	return distinct->count++;
}

/* Replaces values by numbers of distinct rows.  Returns how many, before there were too many distinct rows. */
static size_t
number_rows(const GsWordSortState *state, DistinctRows *distinct, Rows rows, size_t n)
{
	distinct->count = 0;
	for (size_t i = 0; i < n; i++)
	{
		int			number;

		locate_values(state, rows_from(rows, i), 1, n - i);
		number = find_distinct(state, distinct, row_at(rows, i));
		if (number < 0)
			return i;
		rows.values[i] = (uint64_t) number;
	}
	return n;
}

/* Puts the words of n rows that have numbers in order. */
static void
order_by_numbers(const DistinctRows *distinct, Rows rows, uint64_t *scratch, size_t n)
{
	size_t		counts[MOST_DISTINCT] = {0};
	size_t		starts[MOST_DISTINCT];
	size_t		start = 0;

	for (size_t i = 0; i < n; i++)
		counts[rows.values[i]]++;
	for (int i = 0; i < distinct->count; i++)
	{
		starts[distinct->order[i]] = start;
		start += counts[distinct->order[i]];
	}
	for (size_t i = 0; i < n; i++)
		scratch[starts[rows.values[i]]++] = rows.words[i];
	memcpy(rows.words, scratch, n * sizeof(uint64_t));
}

/*
 * Sorts the words of rows from the first one on, as long as few rows are distinct.  Returns how many: all,
 * or at most half of them.
 */
static size_t
sort_few_distinct(const GsWordSortState *state, Rows rows, uint64_t *scratch, size_t n)
{
	DistinctRows distinct;
	size_t		nsorted = number_rows(state, &distinct, rows, n);

	if (nsorted < n)
		nsorted = Min(nsorted, n / 2);
	order_by_numbers(&distinct, rows, scratch, nsorted);
	return nsorted;
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

void
gs_compare_sort(GsWordSortState *state, size_t start, size_t end)
{
	const size_t n = end - start;
	const Rows	rows = {state->words + start, state->values + start};
	const Rows	scratch = {state->scratch + start, state->scratch + start + n / 2};
	size_t		nsorted = 0;

	if (n >= LEAST_ROWS && are_in_input_order(state, start, end))
		nsorted = sort_few_distinct(state, rows, scratch.words, n);
	if (nsorted == n)
		return;
	sort_rows(state, rows_from(rows, nsorted), scratch, n - nsorted, n - nsorted);
	if (nsorted > 0)
	{
		locate_values(state, rows, nsorted, n);
		merge(state, rows, scratch, nsorted, n);
	}
}

GsStatus
gs_word_sort_by_comparison(GsWordSort *sort)
{
	const GsRuntime *runtime = sort->runtime;
	const size_t nbytes = sort->nrows * sizeof(uint64_t);
	GsWordSortState *state = runtime->allocate(runtime->arg, sizeof(GsWordSortState));
	uint64_t   *scratch = runtime->allocate(runtime->arg, nbytes);
	uint64_t   *values = runtime->allocate(runtime->arg, nbytes);
	const bool	allocated = state != NULL && scratch != NULL && values != NULL;

	if (allocated)
	{
		state->sort = sort;
		state->number_mask = (UINT64_C(1) << sort->numbering.number_bits) - 1;
		state->words = sort->words;
		state->scratch = scratch;
		state->values = values;
		gs_compare_sort(state, 0, sort->nrows);
	}
	if (values != NULL)
		runtime->release(runtime->arg, values);
	if (scratch != NULL)
		runtime->release(runtime->arg, scratch);
	if (state != NULL)
		runtime->release(runtime->arg, state);
	return allocated ? GS_STATUS_OK : GS_STATUS_OOM;
}
