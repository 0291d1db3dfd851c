/*-------------------------------------------------------------------------
 *
 * radix_sort.h
 *	  Sorts 64-bit words by some of their bits.
 *
 * C without PostgreSQL.  Nothing here fails or allocates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RADIX_SORT_H
#define GPUSORT_RADIX_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "common/runtime.h"

/*
 * Stably sorts words[0..n) by nbits bits (1..64), the lowest of which is low_bit.
 * scratch has room for n words.  Returns that of the two arrays that has the
 * result.  *passes, if not NULL, becomes the number of passes over the words.
 * Calls runtime->check_interrupts every few hundred microseconds.
 */
extern uint64_t *gs_radix_sort(uint64_t *words, uint64_t *scratch, size_t n,
							   int low_bit, int nbits, const GsRuntime *runtime,
							   int *passes);

/*
 * Sorts words[0..n) as whole numbers, in place; scratch as above.  For few words.
 */
extern void gs_merge_sort(uint64_t *words, uint64_t *scratch, size_t n);

/* Up to this number of words, gs_merge_sort() is faster than gs_radix_sort(). */
#define GS_MERGE_SORT_MAX	160

#endif							/* GPUSORT_RADIX_SORT_H */
