/*-------------------------------------------------------------------------
 *
 * wrap.h
 *	  Functions of the product that a test build replaces.
 *
 * GS_WRAP(function) declares __wrap_function(), which the double defines, and
 * __real_function(), which is the product's, both of the product's type.  The linker
 * gives calls of function() to the former (ld --wrap), but for those in the file that
 * defines function().  The Makefiles find the functions by these lines, so each stands
 * alone on one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WRAP_H
#define GPUSORT_WRAP_H

#define GS_WRAP(function) extern __typeof__(function) __real_##function, __wrap_##function

#endif							/* GPUSORT_WRAP_H */
