/*-------------------------------------------------------------------------
 *
 * test_radix_sort.c
 *	  The sorts of 64-bit words (radix_sort.h).
 *
 * The reference is qsort() on the same words with their places.  Words are
 * compared as a whole afterwards: the bits outside the key distinguish equal
 * keys, so a sort that is not stable fails.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "common/radix_sort.h"
#include "unit_cmocka.h"
#include "unit_host.h"
#include "unit_random.h"

/* In radix_sort.c: up to this number, all passes are over all words. */
#define CACHED_WORDS	((size_t) 1 << 17)

/* Up to 2^22 words: the most passes that are by the first digits only, and may be made in vain. */
#define FIRST_PASSES	3

/* Up to this many words that tie in them are sorted without another pass. */
#define MAX_TIED		32

typedef struct Placed
{
	uint64_t	word;
	uint64_t	key;
	size_t		place;
} Placed;

static int
compare_placed(const void *a, const void *b)
{
	const Placed *x = a;
	const Placed *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->place > y->place) - (x->place < y->place);
}

static uint64_t
key_of(uint64_t word, int low_bit, int nbits)
{
	return (word >> low_bit) & (UINT64_MAX >> (64 - nbits));
}

/* What the words of a case are like. */
enum
{
	WORDS_ANY,
	WORDS_FEW,					/* distinct */
	WORDS_EQUAL,
	WORDS_ASCENDING,
	WORDS_DESCENDING,
	WORDS_SPARSE,				/* a few bits vary */
	WORDS_SKEWED,				/* a third of them begins with zeros */
	WORDS_TIED,					/* groups tie in their first bits */
	WORDS_RARELY_TIED,			/* one group does: a sample does not show it */
	WORDS_STYLES
};

static void
draw_words(Dice *dice, uint64_t *words, size_t n, int style)
{
	uint64_t	base = dice_word(dice);
	uint64_t	mask = dice_word(dice) & dice_word(dice) & dice_word(dice);
	uint64_t	step = n == 0 ? 0 : UINT64_MAX / n;
	uint64_t	ngroups = n / (1 + base % 64) + 1;
	uint64_t	low_bits = (UINT64_C(1) << (8 + base % 33)) - 1;

	for (size_t i = 0; i < n; i++)
	{
		switch (style)
		{
			case WORDS_ANY:
				words[i] = dice_word(dice);
				break;
			case WORDS_FEW:
				words[i] = mix64(base + dice_below(dice, 7));
				break;
			case WORDS_EQUAL:
				words[i] = base;
				break;
			case WORDS_ASCENDING:
				words[i] = i * step;
				break;
			case WORDS_DESCENDING:
				words[i] = (n - i) * step;
				break;
			case WORDS_TIED:
				words[i] = (mix64(base + dice_below(dice, ngroups)) & ~low_bits) |
					(dice_word(dice) & low_bits);
				break;
			case WORDS_RARELY_TIED:
				words[i] = dice_word(dice);
				if (dice_below(dice, n) < 50)
					words[i] = (base & ~low_bits) | (words[i] & low_bits);
				break;
			case WORDS_SKEWED:
				words[i] = dice_word(dice) >> dice_below(dice, 12);
				break;
			default:
				words[i] = base ^ (dice_word(dice) & mask);
				break;
		}
	}
}

/* Returns the number of passes. */
static int
check_radix_sort(const uint64_t *input, size_t n, int low_bit, int nbits)
{
	/* exact sizes: the sanitizer sees an overrun */
	uint64_t   *words = malloc(n * sizeof(uint64_t) + (n == 0));
	uint64_t   *scratch = malloc(n * sizeof(uint64_t) + (n == 0));
	Placed	   *expected = malloc(n * sizeof(Placed) + 1);
	uint64_t	ever_set = 0;
	uint64_t	always_set = UINT64_MAX;
	uint64_t   *sorted;
	UnitHost	host;
	int			passes = -1;

	CHECK(words != NULL && scratch != NULL && expected != NULL);
	unit_host_init(&host);
	for (size_t i = 0; i < n; i++)
	{
		words[i] = input[i];
		scratch[i] = ~UINT64_C(0);
		expected[i] = (Placed)
		{
			input[i], key_of(input[i], low_bit, nbits), i
		};
		ever_set |= expected[i].key;
		always_set &= expected[i].key;
	}
	qsort(expected, n, sizeof(Placed), compare_placed);

	sorted = gs_radix_sort(words, scratch, n, low_bit, nbits, &host.callbacks, &passes);
	CHECK(sorted == words || sorted == scratch);
	for (size_t i = 0; i < n; i++)
		CHECK_MSG(sorted[i] == expected[i].word, "bits %d to %d of %zu words: wrong at %zu",
				  low_bit, low_bit + nbits - 1, n, i);

	/* digit places that never vary cost no pass */
	CHECK(passes >= 0 && passes <= (nbits + 7) / 8 + FIRST_PASSES);
	if (n == 0 || ever_set == always_set)
		CHECK_MSG(passes == 0, "%d passes over equal keys", passes);
	else
		CHECK_MSG((passes >= 1 || n <= MAX_TIED) && passes <= 2 * __builtin_popcountll(ever_set & ~always_set),
				  "%d passes", passes);
	CHECK((passes % 2 == 0) == (sorted == words) || (n > CACHED_WORDS && sorted == words));
	unit_host_end(&host);

	/* and without anybody to count */
	memcpy(words, input, n * sizeof(uint64_t));
	unit_host_init(&host);
	sorted = gs_radix_sort(words, scratch, n, low_bit, nbits, &host.callbacks, NULL);
	for (size_t i = 0; i < n; i++)
		CHECK(sorted[i] == expected[i].word);
	unit_host_end(&host);
	free(words);
	free(scratch);
	free(expected);
	return passes;
}

/* Every field of bits that there is, on a few words. */
static void
test_all_fields(void **unused)
{
	Dice		dice = dice_of_seed(1);
	uint64_t	words[60];

	for (int nbits = 1; nbits <= 64; nbits++)
	{
		for (int low_bit = 0; low_bit + nbits <= 64; low_bit++)
		{
			size_t		n = dice_below(&dice, 61);

			draw_words(&dice, words, n, (int) dice_below(&dice, WORDS_STYLES));
			check_radix_sort(words, n, low_bit, nbits);
		}
	}
}

static void
test_all_sizes(void **unused)
{
	Dice		dice = dice_of_seed(2);
	uint64_t   *words = malloc(1000 * sizeof(uint64_t));

	CHECK(words != NULL);
	for (size_t n = 0; n <= 1000; n++)
	{
		int			nbits = 1 + (int) dice_below(&dice, 64);
		int			low_bit = (int) dice_below(&dice, (uint64_t) (65 - nbits));

		draw_words(&dice, words, n, (int) dice_below(&dice, WORDS_STYLES));
		check_radix_sort(words, n, low_bit, nbits);
	}
	free(words);
}

static void
check_large(Dice *dice, size_t n, int ncases)
{
	uint64_t   *words = malloc(n * sizeof(uint64_t));

	CHECK(words != NULL);
	for (int i = 0; i < ncases; i++)
	{
		int			nbits = i < 4 ? 64 - i : 1 + (int) dice_below(dice, 64);
		int			low_bit = (int) dice_below(dice, (uint64_t) (65 - nbits));

		draw_words(dice, words, n, i % WORDS_STYLES);
		check_radix_sort(words, n, low_bit, nbits);
	}
	free(words);
}

static void
test_large(void **unused)
{
	Dice		dice = dice_of_seed(3);

	check_large(&dice, 100003, 2 * WORDS_STYLES);
	check_large(&dice, CACHED_WORDS, 2);
}

/* So many that they are sorted in parts, and the parts of skewed words in parts again. */
static void
test_parts(void **unused)
{
	Dice		dice = dice_of_seed(6);

	check_large(&dice, CACHED_WORDS + 1, 2 * WORDS_STYLES);
	check_large(&dice, 5 * CACHED_WORDS, WORDS_STYLES);
	check_large(&dice, 32 * CACHED_WORDS, 1);
}

/* A few words that tie in the first bits take no pass; many do. */
static void
test_tied(void **unused)
{
	Dice		dice = dice_of_seed(7);
	uint64_t	words[3000];
	size_t		n = sizeof(words) / sizeof(words[0]);

	for (size_t ntied = 0; ntied < 100; ntied++)
	{
		int			passes;

		draw_words(&dice, words, n, WORDS_ANY);
		for (size_t i = 0; i < ntied; i++)
			words[i * 30 + 1] = UINT64_C(0x123) << 52 | (dice_word(&dice) & 0xFFFFFFFF);
		passes = check_radix_sort(words, n, 0, 64);
		/* another word may tie with them by chance */
		CHECK_MSG(ntied == MAX_TIED || passes == (ntied < MAX_TIED ? 2 : 2 + 8),
				  "%d passes, %zu tie", passes, ntied);
	}
}

/* A constant digit takes no pass, whatever its position; nor do the last ones, if the first ones are distinct. */
static void
test_passes(void **unused)
{
	Dice		dice = dice_of_seed(4);
	uint64_t	words[1000];
	size_t		n = sizeof(words) / sizeof(words[0]);
	int			passes;

	for (unsigned varying = 0; varying < 256; varying++)
	{
		uint64_t	base = dice_word(&dice);
		uint64_t	mask = 0;

		for (int byte = 0; byte < 8; byte++)
		{
			if (varying >> byte & 1)
				mask |= UINT64_C(0xFF) << 8 * byte;
		}
		for (size_t i = 0; i < n; i++)
			words[i] = base ^ (dice_word(&dice) & mask);
		passes = check_radix_sort(words, n, 0, 64);
		CHECK_MSG(passes == (varying >= 0xC0 ? 2 : __builtin_popcount(varying)),
				  "%d passes for bytes %x", passes, varying);
	}

	/* bits outside the key take no pass */
	for (size_t i = 0; i < n; i++)
		words[i] = (dice_word(&dice) & ~(UINT64_C(0xFFF) << 20)) | UINT64_C(0x123) << 20;
	CHECK(check_radix_sort(words, n, 20, 12) == 0);
}

/*
 * One call of check_interrupts for at most 2^16 words of each pass, which take
 * a few hundred microseconds.
 */
static void
check_interrupts_of(const uint64_t *input, size_t n, int expected_passes)
{
	uint64_t   *words = malloc(n * sizeof(uint64_t));
	uint64_t   *scratch = malloc(n * sizeof(uint64_t));
	UnitHost	host;
	uint64_t	ncalls;
	int			passes;

	CHECK(words != NULL && scratch != NULL);
	unit_host_init(&host);
	memcpy(words, input, n * sizeof(uint64_t));
	gs_radix_sort(words, scratch, n, 0, 64, &host.callbacks, &passes);
	CHECK_MSG(passes == expected_passes, "%d passes", passes);
	ncalls = host.ninterrupts;
	CHECK_MSG(ncalls >= (n >> 16) * 9, "%llu calls", (unsigned long long) ncalls);

	/* every one of them may not return */
	for (uint64_t k = 1; k <= ncalls; k++)
	{
		host.ninterrupts = 0;
		host.jump_at = k;
		memcpy(words, input, n * sizeof(uint64_t));
		if (setjmp(host.jump) == 0)
		{
			gs_radix_sort(words, scratch, n, 0, 64, &host.callbacks, &passes);
			fail_msg("call %llu came back", (unsigned long long) k);
		}
		CHECK(host.ninterrupts == k);
	}
	unit_host_end(&host);
	free(words);
	free(scratch);
}

/* In parts, by the first digits, and then by all of them. */
static void
test_interrupts(void **unused)
{
	Dice		dice = dice_of_seed(5);
	size_t		n = 200000;
	uint64_t   *words = malloc(n * sizeof(uint64_t));

	CHECK(words != NULL);
	draw_words(&dice, words, n, WORDS_ANY);
	check_interrupts_of(words, n, 3);
	check_interrupts_of(words, n / 2, 3);
	for (int i = 0; i <= MAX_TIED; i++)
		words[i * 100 + 1] = UINT64_C(0x123) << 52 | (dice_word(&dice) & 0xFFFFFFFF);
	check_interrupts_of(words, n / 2, 3 + 8);
	free(words);
}

/* -------------------------------------------------------------- merge sort */

static int
compare_words(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

static void
check_merge_sort(Dice *dice, size_t n, int style)
{
	uint64_t   *words = malloc(n * sizeof(uint64_t) + (n == 0));
	uint64_t   *scratch = malloc(n * sizeof(uint64_t) + (n == 0));
	uint64_t   *expected = malloc(n * sizeof(uint64_t) + 1);

	CHECK(words != NULL && scratch != NULL && expected != NULL);
	draw_words(dice, words, n, style);
	memcpy(expected, words, n * sizeof(uint64_t));
	qsort(expected, n, sizeof(uint64_t), compare_words);
	gs_merge_sort(words, scratch, n);
	CHECK_MSG(memcmp(words, expected, n * sizeof(uint64_t)) == 0, "%zu words", n);
	free(words);
	free(scratch);
	free(expected);
}

static void
test_merge_sort(void **unused)
{
	Dice		dice = dice_of_seed(6);

	for (size_t n = 0; n <= 1000; n++)
	{
		for (int style = 0; style < WORDS_STYLES; style++)
			check_merge_sort(&dice, n, style);
	}
	for (int style = 0; style < WORDS_STYLES; style++)
		check_merge_sort(&dice, 100003, style);
}

/* On few words every order of them; each merge has its own uneven end. */
static void
test_merge_sort_permutations(void **unused)
{
	uint64_t	order[7];
	uint64_t	words[7];
	uint64_t	scratch[7];
	int			counters[7] = {0};

	for (uint64_t i = 0; i < 7; i++)
		order[i] = i;
	for (int i = 0; i < 7;)		/* Heap's algorithm */
	{
		memcpy(words, order, sizeof(words));
		gs_merge_sort(words, scratch, 7);
		for (uint64_t k = 0; k < 7; k++)
			CHECK(words[k] == k);
		if (counters[i] < i)
		{
			int			other = i & 1 ? counters[i] : 0;
			uint64_t	swap = order[other];

			order[other] = order[i];
			order[i] = swap;
			counters[i]++;
			i = 0;
		}
		else
			counters[i++] = 0;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_fields),
		cmocka_unit_test(test_all_sizes),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_tied),
		cmocka_unit_test(test_passes),
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_merge_sort),
		cmocka_unit_test(test_merge_sort_permutations)
	};

	return cmocka_run_group_tests_name("radix_sort", tests, NULL, NULL);
}
