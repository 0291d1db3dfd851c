/*-------------------------------------------------------------------------
 *
 * min_max.h
 *	  Min() and Max() for sources without PostgreSQL.
 *
 * PostgreSQL's c.h defines the same macros.  An argument is evaluated twice.
 *
 * ISO C.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_MIN_MAX_H
#define GPUSORT_MIN_MAX_H

#define Min(a, b)		((a) < (b) ? (a) : (b))
#define Max(a, b)		((a) > (b) ? (a) : (b))

#endif							/* GPUSORT_MIN_MAX_H */
