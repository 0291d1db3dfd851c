/*-------------------------------------------------------------------------
 *
 * clock.h
 *	  The monotonic clock.
 *
 * ISO C and POSIX, no PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CLOCK_H
#define GPUSORT_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Microseconds since an arbitrary point in the past. */
static inline uint64_t
gs_clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

#endif							/* GPUSORT_CLOCK_H */
