/*-------------------------------------------------------------------------
 *
 * radix_sort.c
 *	  Sorts 64-bit words by some of their bits: least significant digit first.
 *
 * Each pass distributes the words over 2^d lists by a d-bit digit and keeps the
 * order within a list.  Every pass is stable, so after the pass over the most
 * significant digit the words are sorted (Knuth, TAOCP vol. 3, 5.2.5).
 *
 * The digits of all places are counted in one reading of the input.  A place in
 * which all words have the same digit is skipped: its pass would copy the words as
 * they are.
 *
 * Digits have 8 bits: the current cache lines of 256 lists fit the first-level
 * cache, and their pages the TLB.  9 bits cost about as much and are used if they
 * save a pass, and 10 if one pass is then enough.  Wider digits lose more than
 * they save.  Fewer lists can be slower too: 64 lists of 5 M words are at
 * distances at which they displace each other in the cache (ns a word, 5 M random
 * words: 36 bits as 5 x 8: 6.3, as 4 x 9: 5.1; 20 bits as 8 + 8 + 4: 4.2, as
 * 7 + 7 + 6: 5.5; 11 bits as one digit: 3.6, as 8 + 3: 2.9; Zen 5, 2026-11).
 *
 *-------------------------------------------------------------------------
 */
#include "common/min_max.h"
#include "common/radix_sort.h"

#include <stdbool.h>
#include <string.h>

#define DIGIT_BITS		8
#define WIDE_DIGIT_BITS	9		/* if it saves a pass */
#define ONLY_DIGIT_BITS	10		/* if it is the only one */

/* up to 8 places of 8 bits, or 7 of 9 */
#define MAX_COUNTS		(7 << WIDE_DIGIT_BITS)

/* Words between two interrupt checks: about 0.2 ms of a pass. */
#define CHECK_EVERY		((size_t) 1 << 14)

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

			to[next[(word >> shift) & mask]++] = word;
		}
	}
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

uint64_t *
gs_radix_sort(uint64_t *words, uint64_t *scratch, size_t n, int low_bit,
			  int nbits, const GsRuntime *runtime, int *passes)
{
	int			digit_bits = choose_digit_bits(nbits);
	int			nplaces = count_places(nbits, digit_bits);
	uint64_t	key_mask = nbits == 64 ? UINT64_MAX : (UINT64_C(1) << nbits) - 1;
	int			npasses = 0;
	size_t		counts[MAX_COUNTS];

	memset(counts, 0, sizeof(size_t) * ((size_t) nplaces << digit_bits));
	count_digits(words, n, low_bit, digit_bits, nplaces, counts, runtime);

	for (int place = 0; place < nplaces; place++)
	{
		int			shift = place * digit_bits;
		uint64_t	mask = (key_mask >> shift) & ((UINT64_C(1) << digit_bits) - 1);
		size_t	   *next = counts + ((size_t) place << digit_bits);
		size_t		sum = 0;
		bool		constant = false;
		uint64_t   *swap;

		/*
		 * Turn the counts into the start of each list.  The top place may be
		 * narrower than the others; then bits above the key were counted with
		 * its digits, and these counts are added to the digit under the mask.
		 */
		for (size_t digit = (size_t) mask + 1; digit < ((size_t) 1 << digit_bits); digit++)
			next[digit & mask] += next[digit];
		for (size_t digit = 0; digit <= mask; digit++)
		{
			size_t		count = next[digit];

			if (count == n)
				constant = true;
			next[digit] = sum;
			sum += count;
		}
		if (constant)
			continue;
		distribute(words, scratch, n, low_bit + shift, mask, next, runtime);
		swap = words;
		words = scratch;
		scratch = swap;
		npasses++;
	}
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
	{
		size_t		end = Min(start + RUN_LENGTH, n);

		for (size_t i = start + 1; i < end; i++)
		{
			uint64_t	word = words[i];
			size_t		j = i;

			for (; j > start && words[j - 1] > word; j--)
				words[j] = words[j - 1];
			words[j] = word;
		}
	}
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
