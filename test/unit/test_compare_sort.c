/*-------------------------------------------------------------------------
 *
 * test_compare_sort.c
 *	  The CPU engine where keys do not decide: ties that the driver compares, and guesses of
 *	  their order.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "engine/word_sort.h"
#include "unit_cmocka.h"
#include "unit_driver.h"

#define lengthof(array)	(sizeof(array) / sizeof((array)[0]))

/* Rows with incomplete keys; the driver compares the remaining values. */
typedef struct TiedRows
{
	size_t		nrows;
	uint64_t   *keys;
	uint32_t   *rests;
	uint64_t	ncompared;
	size_t		nwrong;			/* rows at the end of which guesses are wrong */
} TiedRows;

static size_t
number_of_tied(const void *row)
{
	return (size_t) ((const uint64_t *) row)[1];
}

/* A row is located by its number; every other row by its complement, to tell the values from the rows. */
static uint64_t
locate_tied(void *unused, const void *row)
{
	const uint64_t number = number_of_tied(row);

	return number % 2 == 0 ? number : ~number;
}

/* The number of a row, which must have been located. */
static size_t
number_of_located(GsLocatedRow row)
{
	CHECK(row.value == locate_tied(NULL, row.row));
	return number_of_tied(row.row);
}

/* Leaves it to the rows. */
static int
compare_nothing(void *unused, uint64_t a, uint64_t b)
{
	return 0;
}

/* Values are prefetched, whatever they are. */
static bool
are_addresses(void *unused)
{
	return true;
}

static int
compare_rests(void *arg, GsLocatedRow a, GsLocatedRow b)
{
	TiedRows   *tied = arg;
	size_t		i = number_of_located(a);
	size_t		j = number_of_located(b);

	tied->ncompared++;
	CHECK_MSG(tied->keys[i] == tied->keys[j], "rows %zu and %zu have different keys", i, j);
	return (tied->rests[i] > tied->rests[j]) - (tied->rests[i] < tied->rests[j]);
}

/* There are two kinds of bytes for each rest, and few hashes. */
static uint32_t
hash_rest(void *arg, const void *row)
{
	const TiedRows *tied = arg;
	const size_t i = number_of_tied(row);

	return tied->rests[i] % 61 * 2 + i % 2;
}

static bool
are_same_rests(void *arg, const void *a, const void *b)
{
	const TiedRows *tied = arg;
	const size_t i = number_of_tied(a);
	const size_t j = number_of_tied(b);

	return tied->rests[i] == tied->rests[j] && i % 2 == j % 2;
}

static const GsRowCompare by_rests =
{
	.locate = locate_tied,.compare_values = compare_nothing,.are_addresses = are_addresses,.compare_rows = compare_rests,
	.hash = hash_rest,.are_same = are_same_rests
};

/* Opens a sort by their keys, and pushes them. */
static void
load_tied(RawSort *sort, const TiedRows *tied)
{
	raw_open(sort);
	for (size_t i = 0; i < tied->nrows; i++)
	{
		uint64_t   *record;

		CHECK(gs_engine_reserve(sort->engine, 16, &sort->batch) == GS_STATUS_OK);
		((uint64_t *) gs_batch_next_row(sort->batch))[1] = i;
		record = gs_batch_next_record(sort->batch);
		record[0] = tied->keys[i];
		if (sort->layout.nwords > 1)
			record[1] = ~(uint64_t) tied->rests[i];
		raw_push(sort, 16);
	}
}

/* The number of the row at a position of the result. */
static size_t
tied_at(RawSort *sort, size_t position)
{
	const void *row;

	CHECK(driver_fetch(sort->engine, position, 1, &row) == 1);
	return number_of_tied(row);
}

/*
 * Sorts them; the order is (key, rest, input).  If there is a column that is not
 * decisive, records have it in the opposite order of the rests.
 */
static void
check_tied_by(TiedRows *tied, bool descending, bool undecisive)
{
	RawSort		sort;
	size_t		before = 0;

	tied->ncompared = 0;
	raw_begin(&sort);
	raw_add_number(&sort, descending);
	if (undecisive)
	{
		raw_add_number(&sort, false);
		sort.layout.ndecisive = 1;
	}
	sort.request.compare = &by_rests;
	sort.request.compare_arg = tied;
	load_tied(&sort, tied);
	CHECK(gs_engine_sort(sort.engine) == GS_STATUS_OK);
	for (size_t i = 0; i < tied->nrows; i++)
	{
		size_t		row = tied_at(&sort, i);

		if (i > 0 && tied->keys[before] != tied->keys[row])
			CHECK((tied->keys[before] < tied->keys[row]) != descending);
		else if (i > 0)
			CHECK_MSG(tied->rests[before] < tied->rests[row] ||
					  (tied->rests[before] == tied->rests[row] && before < row),
					  "row %zu comes before row %zu", before, row);
		before = row;
	}
	raw_end(&sort);
}

static void
check_tied(TiedRows *tied, bool descending)
{
	check_tied_by(tied, descending, false);
	check_tied_by(tied, descending, true);
}

/* Without a column all rows are equal, and stay in input order. */
static void
test_no_columns(void **unused)
{
	enum
	{
		NROWS = 20000
	};
	RawSort		sort;

	raw_begin(&sort);
	raw_open(&sort);
	for (size_t i = 0; i < NROWS; i++)
	{
		CHECK(gs_engine_reserve(sort.engine, 16 + i % 40, &sort.batch) == GS_STATUS_OK);
		((uint64_t *) gs_batch_next_row(sort.batch))[1] = i;
		raw_push(&sort, 16 + i % 40);
	}
	CHECK(gs_engine_sort(sort.engine) == GS_STATUS_OK);
	CHECK(gs_engine_stats(sort.engine)->method == GS_METHOD_PRESORTED);
	CHECK(gs_engine_stats(sort.engine)->key_bits == 0);
	for (size_t i = 0; i < NROWS; i++)
		CHECK(tied_at(&sort, i) == i);
	raw_end(&sort);
}

/* Compares the rests, whatever the keys. */
static int
compare_all(void *arg, GsLocatedRow a, GsLocatedRow b)
{
	TiedRows   *tied = arg;
	uint32_t	x = tied->rests[number_of_located(a)];
	uint32_t	y = tied->rests[number_of_located(b)];

	tied->ncompared++;
	return (x > y) - (x < y);
}

static const GsRowCompare by_all =
{
	.locate = locate_tied,.compare_values = compare_nothing,.compare_rows = compare_all
};

/*
 * Approximate keys: wrong orders are corrected, with fewer comparisons if fewer rows
 * are wrong.
 */
static void
test_sort_again(void **unused)
{
	enum
	{
		NROWS = 20000
	};
	static const size_t nwrong[] = {0, 1, 100, NROWS};
	static const size_t at_most[] = {NROWS * 5 / 4, NROWS * 5 / 4 + 100, NROWS * 3 / 2, NROWS * 16};
	TiedRows	tied = {.nrows = NROWS};
	Dice		dice = dice_of_seed(18);

	tied.keys = malloc(sizeof(uint64_t) * NROWS);
	tied.rests = malloc(sizeof(uint32_t) * NROWS);
	CHECK(tied.keys != NULL && tied.rests != NULL);
	for (size_t w = 0; w < lengthof(nwrong); w++)
	{
		RawSort		sort;
		size_t		before = 0;

		unit_case("%zu wrong", nwrong[w]);
		for (size_t i = 0; i < NROWS; i++)
		{
			tied.rests[i] = (uint32_t) dice_below(&dice, UINT32_MAX) / 4 * 4;
			tied.keys[i] = tied.rests[i];
		}
		/* near its position, or anywhere */
		for (size_t i = 0; i < nwrong[w]; i++)
			tied.keys[i] = nwrong[w] == NROWS ? dice_word(&dice) : tied.keys[i] + 1000000;

		raw_begin(&sort);
		raw_add_number(&sort, false);
		load_tied(&sort, &tied);
		CHECK(gs_engine_sort(sort.engine) == GS_STATUS_OK);
		tied.ncompared = 0;
		sort.engine->request.memory_limit = 0;	/* it is not observed */
		CHECK(gs_engine_cpu_resort(sort.engine, &by_all, &tied) == GS_STATUS_OK);
		CHECK_MSG(tied.ncompared <= at_most[w], "%llu comparisons",
				  (unsigned long long) tied.ncompared);
		for (size_t i = 0; i < NROWS; i++)
		{
			size_t		row = tied_at(&sort, i);

			CHECK(i == 0 || tied.rests[before] <= tied.rests[row]);
			before = row;
		}
		raw_end(&sort);
	}
	free(tied.keys);
	free(tied.rests);
	unit_case("%s", "");
}

/*
 * Keys of no bits, of one chunk and of several, in any order; rests with few or many
 * distinct values; ties of all lengths.
 */
static void
test_comparison(void **unused)
{
	static const size_t sizes[] = {0, 1, 2, 3, 6, 7, 12, 13, 25, 100, 1000, 20000};
	static const uint64_t nkeys[] = {1, 2, 10, 300, UINT64_MAX};
	static const uint64_t nrests[] = {1, 2, 10, UINT32_MAX};
	Dice		dice = dice_of_seed(17);

	for (size_t s = 0; s < lengthof(sizes); s++)
	{
		TiedRows	tied = {.nrows = sizes[s]};

		tied.keys = malloc(sizeof(uint64_t) * (tied.nrows + 1));
		tied.rests = malloc(sizeof(uint32_t) * (tied.nrows + 1));
		CHECK(tied.keys != NULL && tied.rests != NULL);
		for (size_t shape = 0; shape < lengthof(nkeys) * lengthof(nrests) * 3; shape++)
		{
			uint64_t	k = nkeys[shape % lengthof(nkeys)];
			uint64_t	r = nrests[shape / lengthof(nkeys) % lengthof(nrests)];
			size_t		order = shape / (lengthof(nkeys) * lengthof(nrests));

			unit_case("%zu rows, shape %zu", tied.nrows, shape);
			for (size_t i = 0; i < tied.nrows; i++)
			{
				size_t		rank = order == 0 ? 0 : order == 1 ? i : tied.nrows - i;

				tied.keys[i] = order == 0 ? dice_below(&dice, k) * (UINT64_MAX / k) :
					rank / (tied.nrows / (k < tied.nrows ? k : tied.nrows) + 1);
				tied.rests[i] = (uint32_t) dice_below(&dice, r);
			}
			check_tied(&tied, shape % 2 == 1);
		}
		free(tied.keys);
		free(tied.rests);
	}

	/* rows in order take little more than one comparison each; few distinct values take few comparisons */
	{
		TiedRows	tied = {.nrows = 20000};

		tied.keys = calloc(tied.nrows, sizeof(uint64_t));
		tied.rests = calloc(tied.nrows, sizeof(uint32_t));
		CHECK(tied.keys != NULL && tied.rests != NULL);
		check_tied(&tied, false);
		CHECK(tied.ncompared < tied.nrows * 5 / 4);
		for (uint32_t nvalues = 4; nvalues <= 1024; nvalues *= 4)
		{
			for (size_t i = 0; i < tied.nrows; i++)
				tied.rests[i] = (uint32_t) dice_below(&dice, nvalues);
			check_tied(&tied, false);
			CHECK_MSG(tied.ncompared < 2 * nvalues * (2 + gs_bit_width(2 * nvalues)),
					  "%u values, %llu comparisons", nvalues, (unsigned long long) tied.ncompared);
		}
		free(tied.keys);
		free(tied.rests);
	}
	unit_case("%s", "");
}

/* A row is located by its rest; 0 is NULL, which sorts last. */
static uint64_t
locate_rest(void *arg, const void *row)
{
	const TiedRows *tied = arg;

	return tied->rests[number_of_tied(row)];
}

static int
compare_rest_values(void *arg, uint64_t a, uint64_t b)
{
	TiedRows   *tied = arg;

	if (a == 0 || b == 0)
		return 0;
	tied->ncompared++;
	return (a > b) - (a < b);
}

static int
compare_nulls(void *unused, GsLocatedRow a, GsLocatedRow b)
{
	return (a.value == 0) - (b.value == 0);
}

/* The first three guesses are useless, wrong, and right only for some of the sample; the last leaves ties. */
static uint64_t
guess_rest(void *arg, const void *row, int guess)
{
	const TiedRows *tied = arg;
	const size_t number = number_of_tied(row);
	const uint64_t rest = tied->rests[number];

	if (rest == 0)
		return UINT64_MAX;
	if (number >= tied->nrows - tied->nwrong)
		return number * UINT64_C(0x9E3779B97F4A7C15) | 1;
	return guess == 0 ? 1 : guess == 1 ? ~rest : guess == 2 ? rest << 40 : rest / 8 + 1;
}

static const GsRowCompare by_guess =
{
	.locate = locate_rest,.compare_values = compare_rest_values,.compare_rows = compare_nulls,
	.nguesses = 4,.guess = guess_rest
};

/* Checks that they are in the order of the rests, of 0 last, and of the input. */
static void
check_guessed(TiedRows *tied)
{
	RawSort		sort;
	size_t		before = 0;

	tied->ncompared = 0;
	raw_begin(&sort);
	raw_add_number(&sort, false);
	sort.request.compare = &by_guess;
	sort.request.compare_arg = tied;
	load_tied(&sort, tied);
	CHECK(gs_engine_sort(sort.engine) == GS_STATUS_OK);
	for (size_t i = 0; i < tied->nrows; i++)
	{
		const size_t row = tied_at(&sort, i);
		const uint32_t x = tied->rests[before] - 1;	/* 0 is the greatest then */
		const uint32_t y = tied->rests[row] - 1;

		CHECK_MSG(i == 0 || x < y || (x == y && before < row), "row %zu comes before row %zu", before, row);
		before = row;
	}
	raw_end(&sort);
}

/* A right guess takes little more than one comparison for each row; a wrong one, about as many as none. */
static void
test_guesses(void **unused)
{
	static const size_t sizes[] = {511, 512, 20000};
	static const uint32_t nrests[] = {12, 200, 1 << 20, UINT32_MAX};
	static const size_t nwrong[] = {0, 1, 300, SIZE_MAX};
	Dice		dice = dice_of_seed(23);

	for (size_t shape = 0; shape < lengthof(sizes) * lengthof(nrests) * lengthof(nwrong); shape++)
	{
		TiedRows	tied = {.nrows = sizes[shape % lengthof(sizes)]};
		const uint32_t r = nrests[shape / lengthof(sizes) % lengthof(nrests)];
		const size_t wrong = nwrong[shape / lengthof(sizes) / lengthof(nrests)];

		unit_case("%zu rows, %u rests, %zu wrong", tied.nrows, r, wrong);
		tied.nwrong = wrong < tied.nrows ? wrong : tied.nrows;
		tied.keys = calloc(tied.nrows, sizeof(uint64_t));
		tied.rests = malloc(sizeof(uint32_t) * tied.nrows);
		CHECK(tied.keys != NULL && tied.rests != NULL);
		for (size_t i = 0; i < tied.nrows; i++)
			tied.rests[i] = dice_below(&dice, 10) == 0 ? 0 : 1 + (uint32_t) dice_below(&dice, r - 1);
		check_guessed(&tied);
		CHECK_MSG(tied.ncompared < tied.nrows * (wrong == 0 && tied.nrows >= 512 ? 2 : 16), "%llu comparisons",
				  (unsigned long long) tied.ncompared);
		free(tied.keys);
		free(tied.rests);
	}
	unit_case("%s", "");
}

/* Decides about two rows of an odd number, whose values are complements. */
static int
compare_by_parity(void *unused, uint64_t a, uint64_t b)
{
	return (int64_t) a < 0 && (int64_t) b < 0 ? 1 : 0;
}

/* Answers at random. */
static int
compare_by_dice(void *arg, GsLocatedRow a, GsLocatedRow b)
{
	(void) number_of_located(a);
	(void) number_of_located(b);
	return (int) dice_below(arg, 3) - 1;
}

static const GsRowCompare by_dice =
{
	.locate = locate_tied,.compare_values = compare_by_parity,.are_addresses = are_addresses,.compare_rows = compare_by_dice
};

/* For few_by_dice, which answers at random about few distinct rows. */
static uint32_t
hash_number(void *unused, const void *row)
{
	return number_of_tied(row) % 13;
}

static bool
are_same_numbers(void *unused, const void *a, const void *b)
{
	return number_of_tied(a) % 13 == number_of_tied(b) % 13;
}

static const GsRowCompare few_by_dice =
{
	.locate = locate_tied,.compare_values = compare_by_parity,.compare_rows = compare_by_dice,
	.hash = hash_number,.are_same = are_same_numbers
};

/* A comparison function that contradicts itself: the sort ends, and returns each row once. */
static void
check_contradictions(const GsRowCompare *compare)
{
	Dice		dice = dice_of_seed(19);

	for (size_t nrows = 1; nrows < 9000; nrows += 1 + nrows / 7)
	{
		TiedRows	tied = {.nrows = nrows};
		RawSort		sort;
		unsigned char *seen = calloc(nrows, 1);

		unit_case("%zu rows", nrows);
		tied.keys = calloc(nrows, sizeof(uint64_t));
		tied.rests = calloc(nrows, sizeof(uint32_t));
		CHECK(seen != NULL && tied.keys != NULL && tied.rests != NULL);
		raw_begin(&sort);
		raw_add_number(&sort, false);
		sort.request.compare = compare;
		sort.request.compare_arg = &dice;
		load_tied(&sort, &tied);
		CHECK(gs_engine_sort(sort.engine) == GS_STATUS_OK);
		for (size_t i = 0; i < nrows; i++)
		{
			CHECK(!seen[tied_at(&sort, i)]);
			seen[tied_at(&sort, i)] = 1;
		}
		raw_end(&sort);
		free(seen);
		free(tied.keys);
		free(tied.rests);
	}
	unit_case("%s", "");
}

static void
test_contradictions(void **unused)
{
	check_contradictions(&by_dice);
	check_contradictions(&few_by_dice);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comparison),
		cmocka_unit_test(test_no_columns),
		cmocka_unit_test(test_sort_again),
		cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_contradictions)
	};

	return cmocka_run_group_tests_name("compare_sort", tests, NULL, NULL);
}
