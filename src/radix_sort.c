/*-------------------------------------------------------------------------
 *
 * radix_sort.c
 *	  Sorts 64-bit words by some of their bits: least significant digit first.
 *
 * Each pass distributes the words over 2^d lists by one d-bit digit, keeping
 * the order within a list; after the pass over the most significant digit the
 * words are sorted.  As every pass is stable, so is the sort.
 *
 * One reading of the input counts the digits of all places at once.  A place
 * where all words have the same digit costs nothing more: its pass would copy
 * the words as they are.
 *
 * Digits are 8 bits wide, a few less where that needs no more passes: the 256
 * lists then have their current lines in the first-level cache and their pages
 * in the TLB.  11-bit digits save passes and lose more to both (5 M random
 * words of 40 bits: 8-bit digits 41-48 M words/s, 11-bit 20-34; Zen 3,
 * 2026-10).
 *
 *-------------------------------------------------------------------------
 */
#include "radix_sort.h"

#include <stdbool.h>
#include <string.h>

#define DIGIT_BITS		8
#define NDIGITS			(1 << DIGIT_BITS)
#define MAX_PLACES		((64 + DIGIT_BITS - 1) / DIGIT_BITS)

/* Words between two interrupt checks: about 0.2 ms of a pass. */
#define CHECK_EVERY		((size_t) 1 << 14)

#define Min(a, b)		((a) < (b) ? (a) : (b))

static void
count_digits(const uint64_t *words, size_t n, int low_bit, int digit_bits,
			 int nplaces, size_t counts[][NDIGITS], const GsHost *host)
{
	uint64_t	mask = (UINT64_C(1) << digit_bits) - 1;

	for (size_t start = 0; start < n; start += CHECK_EVERY)
	{
		size_t		end = Min(start + CHECK_EVERY, n);

		host->check_interrupts(host->arg);
		for (size_t i = start; i < end; i++)
		{
			uint64_t	rest = words[i] >> low_bit;

			for (int place = 0; place < nplaces; place++)
			{
				counts[place][rest & mask]++;
				rest >>= digit_bits;
			}
		}
	}
}

static void
distribute(const uint64_t *from, uint64_t *to, size_t n, int shift,
		   uint64_t mask, size_t *next, const GsHost *host)
{
	for (size_t start = 0; start < n; start += CHECK_EVERY)
	{
		size_t		end = Min(start + CHECK_EVERY, n);

		host->check_interrupts(host->arg);
		for (size_t i = start; i < end; i++)
		{
			uint64_t	word = from[i];

			to[next[(word >> shift) & mask]++] = word;
		}
	}
}

uint64_t *
gs_radix_sort(uint64_t *words, uint64_t *scratch, size_t n, int low_bit,
			  int nbits, const GsHost *host, int *passes)
{
	int			nplaces = (nbits + DIGIT_BITS - 1) / DIGIT_BITS;
	int			digit_bits = (nbits + nplaces - 1) / nplaces;
	uint64_t	key_mask = nbits == 64 ? UINT64_MAX : (UINT64_C(1) << nbits) - 1;
	int			npasses = 0;
	size_t		counts[MAX_PLACES][NDIGITS];

	memset(counts, 0, sizeof(counts[0]) * (size_t) nplaces);
	count_digits(words, n, low_bit, digit_bits, nplaces, counts, host);

	for (int place = 0; place < nplaces; place++)
	{
		int			shift = place * digit_bits;
		uint64_t	mask = (key_mask >> shift) & ((UINT64_C(1) << digit_bits) - 1);
		size_t	   *next = counts[place];
		size_t		sum = 0;
		bool		constant = false;
		uint64_t   *swap;

		/*
		 * Turn the counts into where each list starts.  The top place may be
		 * narrower than the others: what the counting saw above the key then
		 * belongs to the digit below its mask.
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
		distribute(words, scratch, n, low_bit + shift, mask, next, host);
		swap = words;
		words = scratch;
		scratch = swap;
		npasses++;
	}
	if (passes != NULL)
		*passes = npasses;
	return words;
}

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
