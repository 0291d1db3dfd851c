/*-------------------------------------------------------------------------
 *
 * test_merge_tree.c
 *	  Merges of sorted runs: order, stability, any number of runs, empty ones.
 *
 * A random table is divided into runs, each in its reference order; the merge must
 * return the reference order of the whole.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/batch.h"
#include "engine/merge_tree.h"
#include "unit_check.h"
#include "unit_cmocka.h"
#include "unit_driver.h"

/* A row of a run as in a file: key words, then the row. */
typedef struct Entry
{
	uint32_t	row;			/* its number in the table */
	uint64_t   *record;
} Entry;

static Entry
make_entry(const TestTable *table, uint32_t row, GsKeyLayout *layout)
{
	size_t		words_bytes = sizeof(uint64_t) * (size_t) layout->nwords;
	Entry		entry = {.row = row};
	uint32_t	offsets[GS_MAX_COLUMNS] = {0};
	uint32_t	nulls;

	entry.record = calloc(1, words_bytes + 8 + GS_ALIGN_ROW(table->keys_only ? 0 : table_row_bytes(table, row)));
	CHECK(entry.record != NULL);
	if (!table->keys_only)
		table_put_row(table, row, (char *) (entry.record + layout->nwords), offsets);
	nulls = table_put_key(table, row, layout, offsets, entry.record);
	if (!table->keys_only)
		entry.record[layout->nwords] = nulls;
	return entry;
}

/* Divides the rows into runs at random; some may be empty. */
static void
divide(Dice *dice, size_t nrows, uint32_t nruns, size_t *ends)
{
	for (uint32_t i = 0; i < nruns; i++)
		ends[i] = i + 1 == nruns ? nrows : dice_below(dice, nrows + 1);
	for (uint32_t i = 1; i + 1 < nruns; i++)
	{
		for (uint32_t j = i; j > 0 && ends[j - 1] > ends[j]; j--)
		{
			size_t		swap = ends[j];

			ends[j] = ends[j - 1];
			ends[j - 1] = swap;
		}
	}
}

/* Takes the next row of a run: the next in the whole order that the run has. */
static const uint64_t *
next_of_run(const Entry *entries, const uint32_t *order, size_t nrows,
			size_t start, size_t end, size_t *at)
{
	for (; *at < nrows; (*at)++)
	{
		if (order[*at] >= start && order[*at] < end)
			return entries[order[(*at)++]].record;
	}
	return NULL;
}

static void
check_merge(const TestTable *table, Dice *dice)
{
	uint32_t	nruns = 1 + (uint32_t) dice_below(dice, dice_one_in(dice, 3) ? 70 : 9);
	size_t		nrows = table->nrows;
	size_t	   *ends = calloc(nruns, sizeof(size_t));
	size_t	   *at = calloc(nruns, sizeof(size_t));
	const uint64_t **records = calloc(nruns, sizeof(uint64_t *));
	void	   *memory = malloc(gs_merge_tree_bytes(nruns));
	Entry	   *entries = calloc(nrows + 1, sizeof(Entry));
	uint32_t   *order = table_order(table);
	GsKeyLayout layout;
	GsMergeTree	merge;
	GsMergeOrder by = {.layout = &layout,.keys_decide = true};
	const uint64_t *record;
	size_t		n = 0;

	CHECK(ends != NULL && at != NULL && records != NULL && memory != NULL && entries != NULL);
	table_layout(table, &layout);
	for (size_t row = 0; row < nrows; row++)
		entries[row] = make_entry(table, (uint32_t) row, &layout);
	divide(dice, nrows, nruns, ends);
	for (uint32_t i = 0; i < nruns; i++)
		records[i] = next_of_run(entries, order, nrows, i == 0 ? 0 : ends[i - 1], ends[i], &at[i]);

	gs_merge_tree_begin(&merge, &by, records, nruns, memory);
	while ((record = gs_merge_tree_record(&merge)) != NULL)
	{
		uint32_t	winner = gs_merge_tree_winner(&merge);

		CHECK_MSG(n < nrows, "more rows came out than the %zu that went in", nrows);
		CHECK(winner < nruns);
		CHECK_MSG(record == entries[order[n]].record,
				  "place %zu of %zu, %u runs: a row of run %u, but row %u belongs there",
				  n, nrows, nruns, winner, order[n]);
		n++;
		gs_merge_tree_replace(&merge, next_of_run(entries, order, nrows,
												 winner == 0 ? 0 : ends[winner - 1],
												 ends[winner], &at[winner]));
	}
	CHECK_MSG(n == nrows, "%zu of %zu rows came out", n, nrows);

	for (size_t row = 0; row < nrows; row++)
		free(entries[row].record);
	free(entries);
	free(order);
	free(records);
	free(memory);
	free(ends);
	free(at);
}

static void
test_tables(void **unused)
{
	driver_check_tables(1, 1500, &(TableOptions) {.max_rows = 400}, check_merge);
}

static void
test_shapes(void **unused)
{
	driver_check_shapes(20000, 60, 600, check_merge);
}

static void
test_keys_only(void **unused)
{
	driver_check_tables(30000, 300, &(TableOptions) {.keys_only = true, .max_rows = 2000}, check_merge);
}

static void
test_strings(void **unused)
{
	driver_check_strings(40000, 150, &(TableOptions) {.max_rows = 300, .ncolumns = 1}, check_merge);
	driver_check_strings(50000, 150, &(TableOptions) {.max_rows = 300, .ncolumns = 3}, check_merge);
}

/* Words of all ones, as in a run that has ended. */
static void
test_largest_words(void **unused)
{
	const TestKind kinds[] = {TEST_INT64};
	Dice		dice = dice_of_seed(60000);
	TestTable  *table = table_make_empty(kinds, 1, 200);

	for (size_t row = 0; row < 200; row++)
		table_set_number(table, row, 0, row % 3 == 0 ? INT64_MIN : INT64_MAX);
	for (int i = 0; i < 50; i++)
		check_merge(table, &dice);
	table_free(table);
}

/* A row that is only compared: by its value, of which 0 is the greatest, and then by the rest. */
typedef struct ComparedRow
{
	uint64_t	location;
	uint64_t	value;
	uint64_t	rest;
} ComparedRow;

static uint64_t
locate_value(void *unused, const void *row)
{
	return ((const ComparedRow *) row)->value;
}

/* Leaves 0 to compare_rests(), as a driver does NULL. */
static int
compare_values(void *unused, uint64_t a, uint64_t b)
{
	return a == 0 || b == 0 ? 0 : (a > b) - (a < b);
}

static int
compare_rests(void *unused, GsLocatedRow a, GsLocatedRow b)
{
	const ComparedRow *x = a.row;
	const ComparedRow *y = b.row;

	CHECK(a.value == x->value && b.value == y->value);
	if (x->value != y->value)
		return (x->value == 0) - (y->value == 0);
	return (x->rest > y->rest) - (x->rest < y->rest);
}

/* Answers at random; the rows must be there all the same. */
static int
compare_by_dice(void *arg, GsLocatedRow a, GsLocatedRow b)
{
	(void) compare_rests(NULL, a, b);
	return (int) dice_below(arg, 3) - 1;
}

static int
compare_no_values(void *unused, uint64_t a, uint64_t b)
{
	return 0;
}

static const GsRowCompare by_value =
{
	.locate = locate_value,.compare_values = compare_values,.compare_rows = compare_rests
};
static const GsRowCompare by_dice =
{
	.locate = locate_value,.compare_values = compare_no_values,.compare_rows = compare_by_dice
};

/* Does a row belong after another one?  Equal ones are in the order of their numbers, which are their locations. */
static bool
belongs_after(const ComparedRow *a, const ComparedRow *b)
{
	const GsLocatedRow x = {a, a->value};
	const GsLocatedRow y = {b, b->value};
	int			order = compare_values(NULL, a->value, b->value);

	if (order == 0)
		order = compare_rests(NULL, x, y);
	return order > 0 || (order == 0 && a->location > b->location);
}

static void
sort_compared(ComparedRow *rows, size_t start, size_t end)
{
	for (size_t i = start + 1; i < end; i++)
	{
		for (size_t j = i; j > start && belongs_after(&rows[j - 1], &rows[j]); j--)
		{
			const ComparedRow swap = rows[j];

			rows[j] = rows[j - 1];
			rows[j - 1] = swap;
		}
	}
}

/* Merges sorted runs by comparisons alone; checks the order, or only that each row is returned once. */
static void
check_compared(Dice *dice, ComparedRow *rows, size_t nrows, const GsRowCompare *compare)
{
	const GsKeyLayout no_keys = {0};
	const GsMergeOrder by = {.layout = &no_keys,.compare = compare,.compare_arg = dice};
	const uint32_t nruns = 1 + (uint32_t) dice_below(dice, dice_one_in(dice, 3) ? 70 : 9);
	size_t	   *ends = calloc(nruns, sizeof(size_t));
	size_t	   *at = calloc(nruns, sizeof(size_t));
	const uint64_t **records = calloc(nruns, sizeof(uint64_t *));
	void	   *memory = malloc(gs_merge_tree_bytes(nruns));
	bool	   *seen = calloc(nrows + 1, sizeof(bool));
	const uint64_t *record;
	const ComparedRow *before = NULL;
	GsMergeTree	merge;
	size_t		n = 0;

	CHECK(ends != NULL && at != NULL && records != NULL && memory != NULL && seen != NULL);
	divide(dice, nrows, nruns, ends);
	for (uint32_t i = 0; i < nruns; i++)
	{
		at[i] = i == 0 ? 0 : ends[i - 1];
		sort_compared(rows, at[i], ends[i]);
		records[i] = at[i] < ends[i] ? (const uint64_t *) &rows[at[i]++] : NULL;
	}
	gs_merge_tree_begin(&merge, &by, records, nruns, memory);
	for (; (record = gs_merge_tree_record(&merge)) != NULL; n++)
	{
		const ComparedRow *row = (const ComparedRow *) record;
		const uint32_t winner = gs_merge_tree_winner(&merge);

		CHECK(n < nrows && !seen[row->location]);
		seen[row->location] = true;
		CHECK_MSG(compare == &by_dice || before == NULL || belongs_after(row, before),
				  "row %zu of %zu, %u runs, is in the wrong order", n, nrows, nruns);
		before = row;
		gs_merge_tree_replace(&merge, at[winner] < ends[winner] ?
							  (const uint64_t *) &rows[at[winner]++] : NULL);
	}
	CHECK_MSG(n == nrows, "%zu of %zu rows came out", n, nrows);
	free(ends);
	free(at);
	free(records);
	free(memory);
	free(seen);
}

static void
test_compared(void **unused)
{
	Dice		dice = dice_of_seed(70000);

	for (int i = 0; i < 600; i++)
	{
		const size_t nrows = (size_t) dice_below(&dice, 400);
		const uint64_t nvalues = dice_one_in(&dice, 2) ? 1 + dice_below(&dice, 30) : UINT64_MAX;
		ComparedRow *rows = calloc(nrows + 1, sizeof(ComparedRow));

		CHECK(rows != NULL);
		unit_case("case %d", i);
		for (size_t row = 0; row < nrows; row++)
			rows[row] = (ComparedRow) {
				.location = row,.value = dice_below(&dice, nvalues),.rest = dice_below(&dice, 3)
			};
		check_compared(&dice, rows, nrows, dice_one_in(&dice, 4) ? &by_dice : &by_value);
		free(rows);
	}
	unit_case("%s", "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_keys_only),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_largest_words),
		cmocka_unit_test(test_compared)
	};

	return cmocka_run_group_tests_name("merge_tree", tests, NULL, NULL);
}
