/*-------------------------------------------------------------------------
 *
 * radix_sort.c
 *	  Sorts 64-bit words by some of their bits: least significant digit first,
 *	  in parts that fit the cache.
 *
 * Of many random keys the first bits are different.  So if a sample says that they are, only the
 * digits that hold these bits have passes, and an insertion sort puts the few words that tie in
 * them in order.  If more tie than the sample showed, all digits have passes.
 *
 * Each pass distributes the words over 2^d lists by a d-bit digit and keeps the order within a
 * list.  Every pass is stable, so after the pass over the most significant digit the words are
 * sorted (Knuth, TAOCP vol. 3, 5.2.5).  The digits of all places are counted in one reading of
 * the input.  A place in which all words have the same digit is skipped.
 *
 *-------------------------------------------------------------------------
 */
#include "common/basics.h"
#include "common/key_pack.h"
#include "common/radix_sort.h"

#include <stdbool.h>
#include <string.h>

/*
 * The current cache lines of 256 lists fit the first-level cache, and their pages the TLB.  Wider
 * digits cost about as much if they save a pass, else more.  Fewer lists can be slower, at
 * distances at which they displace each other in the cache: 5 M random words by 20 bits take
 * 4.2 ns a word as 8 + 8 + 4, and 5.5 as 7 + 7 + 6 (Zen 5, 2026-11).
 */
#define DIGIT_BITS		8
#define WIDE_DIGIT_BITS	9		/* if it saves a pass; and the first one of parts */
#define ONLY_DIGIT_BITS	10		/* if it is the only one */

/*
 * More words than this are distributed by their most significant digit first, and each part is
 * sorted by the others: the words and the scratch of a part fit the second-level cache, which
 * each pass over all words would leave.  Uniform keys, all words at once and in parts, ns a word:
 * 1 M words 10.4 and 9.1, 20 M words 17.7 and 15.1 (Intel Xeon, Sapphire Rapids, 2 busy cores,
 * 2026-11-26).
 */
#define CACHED_WORDS	((size_t) 1 << 17)

/*
 * With this many bits more than log2(words), one random key in 16 to 32 ties in them.  By these
 * first bits and in all bits, ns a word on the same machine: 5,000 words of 27 bits 6.2 and 8.5,
 * 100,000 words of 31 bits 8.6 and 12.
 */
#define DISTINGUISHING_BITS	4

/*
 * The sample: about NSAMPLES words, not more than one in eight.  Their first bits are hashed to one
 * of 2^BUCKET_BITS buckets, where about one in 64 meets another by chance; one in MANY_MEET rarely
 * does.
 */
#define NSAMPLES		512
#define BUCKET_BITS		14
#define MANY_MEET		40

/*
 * Up to this many words with the same first bits are sorted by insertion, if they are not in order.
 */
#define MAX_TIED		32

/* up to 8 places of 8 bits, or 7 of 9 */
#define MAX_COUNTS		(7 << WIDE_DIGIT_BITS)

/* Words between two interrupt checks: about 0.2 ms of a pass. */
#define CHECK_EVERY		((size_t) 1 << 14)

#define WORDS_PER_LINE	(64 / sizeof(uint64_t))

static void
count_digits(const uint64_t *words, size_t n, int low_bit, int digit_bits,
			 int nplaces, size_t *counts, const GsRuntime *runtime)
{
	uint64_t	mask = (UINT64_C(1) << digit_bits) - 1;

	for (size_t start = 0; start < n; start += CHECK_EVERY)
	{
		size_t		end = Min(start + CHECK_EVERY, n);

		runtime->check_interrupts(runtime->arg);
		for (size_t i = start; i < end; i++)
		{
			uint64_t	rest = words[i] >> low_bit;

			for (int place = 0; place < nplaces; place++)
			{
				counts[(size_t) place << digit_bits | (rest & mask)]++;
				rest >>= digit_bits;
			}
		}
	}
}

/*
 * The next cache line of a list is prefetched with each word of this one.  Without that, a store
 * often waits for it: 2 M words to 512 lists in 3 ns a word instead of 9.5 (the same machine).
 */
static void
distribute(const uint64_t *from, uint64_t *to, size_t n, int shift,
		   uint64_t mask, size_t *next, const GsRuntime *runtime)
{
	for (size_t start = 0; start < n; start += CHECK_EVERY)
	{
		size_t		end = Min(start + CHECK_EVERY, n);

		runtime->check_interrupts(runtime->arg);
		for (size_t i = start; i < end; i++)
		{
			uint64_t	word = from[i];
			size_t		at = next[(word >> shift) & mask]++;

			__builtin_prefetch(&to[at + WORDS_PER_LINE], 1);
			to[at] = word;
		}
	}
}

static uint64_t
bit_mask(int low_bit, int nbits)
{
	return (nbits == 64 ? UINT64_MAX : (UINT64_C(1) << nbits) - 1) << low_bit;
}

static int
count_places(int nbits, int digit_bits)
{
	return (nbits + digit_bits - 1) / digit_bits;
}

static int
choose_digit_bits(int nbits)
{
	if (nbits <= ONLY_DIGIT_BITS)
		return nbits;
	return count_places(nbits, WIDE_DIGIT_BITS) < count_places(nbits, DIGIT_BITS) ?
		WIDE_DIGIT_BITS : DIGIT_BITS;
}

/*
 * Turns the number of words of each digit into the place of its first one.  Returns the largest
 * number.
 */
static size_t
turn_into_starts(size_t *counts, size_t ndigits)
{
	size_t		sum = 0;
	size_t		most = 0;

	for (size_t digit = 0; digit < ndigits; digit++)
	{
		const size_t count = counts[digit];

		most = Max(most, count);
		counts[digit] = sum;
		sum += count;
	}
	return most;
}

/* Sorts by all digits, the least significant first; the same as gs_radix_sort() otherwise. */
static uint64_t *
sort_by_digits(uint64_t *words, uint64_t *scratch, size_t n, int low_bit,
			   int nbits, const GsRuntime *runtime, int *passes)
{
	int			digit_bits = choose_digit_bits(nbits);
	int			nplaces = count_places(nbits, digit_bits);
	uint64_t	key_mask = bit_mask(0, nbits);
	size_t		counts[MAX_COUNTS];

	memset(counts, 0, sizeof(size_t) * ((size_t) nplaces << digit_bits));
	count_digits(words, n, low_bit, digit_bits, nplaces, counts, runtime);

	for (int place = 0; place < nplaces; place++)
	{
		int			shift = place * digit_bits;
		uint64_t	mask = (key_mask >> shift) & ((UINT64_C(1) << digit_bits) - 1);
		size_t	   *next = counts + ((size_t) place << digit_bits);
		uint64_t   *swap;

		/*
		 * The top place may be narrower than the others; then bits above the key were counted with
		 * its digits, and these counts are added to the digit under the mask.
		 */
		for (size_t digit = (size_t) mask + 1; digit < ((size_t) 1 << digit_bits); digit++)
			next[digit & mask] += next[digit];
		if (turn_into_starts(next, (size_t) mask + 1) == n)
			continue;
		distribute(words, scratch, n, low_bit + shift, mask, next, runtime);
		swap = words;
		words = scratch;
		scratch = swap;
		(*passes)++;
	}
	return words;
}

/* Do few words share these bits with others?  A sample decides. */
static bool
are_distinct(const uint64_t *words, size_t n, uint64_t bits)
{
	uint64_t	seen[(1 << BUCKET_BITS) / 64] = {0};
	size_t		step = Max(n / NSAMPLES, 8);
	size_t		nsamples = 0;
	size_t		nseen = 0;

	for (size_t i = 0; i < n; i += step)
	{
		uint64_t	bucket =
			((words[i] & bits) * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - BUCKET_BITS);
		uint64_t	bit = UINT64_C(1) << (bucket % 64);

		nseen += (seen[bucket / 64] & bit) != 0;
		seen[bucket / 64] |= bit;
		nsamples++;
	}
	/* so many more meet if each word ties with two others */
	return nseen <= nsamples / MANY_MEET + nsamples / step;
}

/* Sorts by these bits; stable. */
static void
insertion_sort(uint64_t *words, size_t n, uint64_t bits)
{
	for (size_t i = 1; i < n; i++)
	{
		uint64_t	word = words[i];
		size_t		j = i;

		for (; j > 0 && (words[j - 1] & bits) > (word & bits); j--)
			words[j] = words[j - 1];
		words[j] = word;
	}
}

/*
 * Sorts by these bits words that are in order by the first of them.  False: too many
 * tie in the first ones, and the words are still in that order.
 */
static bool
sort_tied(uint64_t *words, size_t n, uint64_t bits, uint64_t first_bits, const GsRuntime *runtime)
{
	for (size_t i = 1; i < n; i++)
	{
		size_t		start = i - 1;
		size_t		end = i + 1;

		if (i % CHECK_EVERY == 0)
			runtime->check_interrupts(runtime->arg);
		if ((words[i] & bits) >= (words[i - 1] & bits))
			continue;
		while (start > 0 && end - start <= MAX_TIED &&
			   ((words[start - 1] ^ words[i]) & first_bits) == 0)
			start--;
		while (end < n && end - start <= MAX_TIED && ((words[end] ^ words[i]) & first_bits) == 0)
			end++;
		if (end - start > MAX_TIED)
			return false;
		insertion_sort(words + start, end - start, bits);
	}
	return true;
}

/*
 * Sorts by the first digits, and by the others only words that tie in them; the same as
 * gs_radix_sort() otherwise.
 */
static uint64_t *
sort_by_first_digits(uint64_t *words, uint64_t *scratch, size_t n, int low_bit,
					 int nbits, const GsRuntime *runtime, int *passes)
{
	int			nfirst = gs_bit_width(n) + DISTINGUISHING_BITS;
	int			nplaces = count_places(nfirst, WIDE_DIGIT_BITS);
	int			nlast;
	uint64_t	first_bits;
	uint64_t   *sorted;

	if (nplaces >= count_places(nbits, WIDE_DIGIT_BITS))
		return sort_by_digits(words, scratch, n, low_bit, nbits, runtime, passes);
	nfirst = nplaces * Max((nfirst + nplaces - 1) / nplaces, DIGIT_BITS);
	nlast = nbits - nfirst;
	first_bits = bit_mask(low_bit + nlast, nfirst);
	if (!are_distinct(words, n, first_bits))
		return sort_by_digits(words, scratch, n, low_bit, nbits, runtime, passes);

	sorted = sort_by_digits(words, scratch, n, low_bit + nlast, nfirst, runtime, passes);
	if (sort_tied(sorted, n, bit_mask(low_bit, nbits), first_bits, runtime))
		return sorted;
	return sort_by_digits(sorted, sorted == words ? scratch : words, n, low_bit, nbits, runtime,
						  passes);
}

/*
 * Distributes the words to the scratch by their first digit, and sorts each part of it back to
 * where the words were.  False: nothing was done, as one part would have most of the words.
 */
static bool
sort_in_parts(uint64_t *words, uint64_t *scratch, size_t n, int low_bit,
			  int nbits, const GsRuntime *runtime, int *passes)
{
	const int	rest_bits = nbits - WIDE_DIGIT_BITS;
	const size_t nparts = (size_t) 1 << WIDE_DIGIT_BITS;
	size_t		ends[1 << WIDE_DIGIT_BITS];
	size_t		start = 0;
	int			most_passes = 0;

	memset(ends, 0, sizeof(ends));
	count_digits(words, n, low_bit + rest_bits, WIDE_DIGIT_BITS, 1, ends, runtime);
	if (turn_into_starts(ends, nparts) > n / 2)
		return false;
	distribute(words, scratch, n, low_bit + rest_bits, nparts - 1, ends, runtime);
	for (size_t part = 0; part < nparts; part++)
	{
		const size_t length = ends[part] - start;
		int			part_passes;
		uint64_t   *sorted = gs_radix_sort(scratch + start, words + start, length, low_bit,
										   rest_bits, runtime,
										   &part_passes);

		if (sorted != words + start)
			memcpy(words + start, sorted, length * sizeof(uint64_t));
		most_passes = Max(most_passes, part_passes);
		start += length;
	}
	*passes = 1 + most_passes;
	return true;
}

uint64_t *
gs_radix_sort(uint64_t *words, uint64_t *scratch, size_t n, int low_bit,
			  int nbits, const GsRuntime *runtime, int *passes)
{
	int			npasses = 0;

	if (n <= CACHED_WORDS || nbits <= ONLY_DIGIT_BITS ||
		!sort_in_parts(words, scratch, n, low_bit, nbits, runtime, &npasses))
		words = sort_by_first_digits(words, scratch, n, low_bit, nbits, runtime, &npasses);
	if (passes != NULL)
		*passes = npasses;
	return words;
}

/* Words that are sorted by insertion before merging. */
#define RUN_LENGTH	16

void
gs_merge_sort(uint64_t *words, uint64_t *scratch, size_t n)
{
	uint64_t   *from = words;
	uint64_t   *to = scratch;

	for (size_t start = 0; start < n; start += RUN_LENGTH)
		insertion_sort(words + start, Min(RUN_LENGTH, n - start), UINT64_MAX);
	for (size_t width = RUN_LENGTH; width < n; width *= 2)
	{
		uint64_t   *swap;

		for (size_t start = 0; start < n; start += 2 * width)
		{
			size_t		mid = Min(start + width, n);
			size_t		end = Min(start + 2 * width, n);
			size_t		a = start;
			size_t		b = mid;

			for (size_t out = start; out < end; out++)
				to[out] = (b == end || (a < mid && from[a] <= from[b])) ? from[a++] : from[b++];
		}
		swap = from;
		from = to;
		to = swap;
	}
	if (from != words)
		memcpy(words, from, n * sizeof(uint64_t));
}
