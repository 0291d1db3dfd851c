/*-------------------------------------------------------------------------
 *
 * radix_sort.h
 *	  Sorts 64-bit words by some of their bits.
 *
 * ISO C, no PostgreSQL.  Nothing here fails or allocates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RADIX_SORT_H
#define GPUSORT_RADIX_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "common/runtime.h"

/*
 * Stably sorts words[0..n) by the nbits bits (1..64) from low_bit up; scratch
 * has room for n words.  Returns the one of the two arrays that holds the
 * result.  *passes, if not NULL, becomes the number of digit places sorted by.
 * Calls host->check_interrupts every few hundred microseconds.
 */
extern uint64_t *gs_radix_sort(uint64_t *words, uint64_t *scratch, size_t n,
							   int low_bit, int nbits, const GsRuntime *host,
							   int *passes);

/*
 * Sorts words[0..n) as whole numbers, in place; scratch as above.  For few
 * words, or words whose low bits make each of them different.
 */
extern void gs_merge_sort(uint64_t *words, uint64_t *scratch, size_t n);

/* Up to here gs_merge_sort() is the faster: see radix_sort.c. */
#define GS_MERGE_SORT_MAX	160

#endif							/* GPUSORT_RADIX_SORT_H */
