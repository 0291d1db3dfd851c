/*-------------------------------------------------------------------------
 *
 * basics.h
 *	  Min() and Max(), as PostgreSQL's c.h has them, the cache line, and the monotonic clock.
 *
 * C without PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BASICS_H
#define GPUSORT_BASICS_H

#include <stdint.h>
#include <time.h>

/* An argument is evaluated twice. */
#ifndef Min
#define Min(a, b)		((a) < (b) ? (a) : (b))
#define Max(a, b)		((a) > (b) ? (a) : (b))
#endif

/* The bytes that a processor fetches at once. */
#define GS_CACHE_LINE	64

/* Microseconds since an arbitrary point in the past. */
static inline uint64_t
gs_clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

#endif							/* GPUSORT_BASICS_H */
