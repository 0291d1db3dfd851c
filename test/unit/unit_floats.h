/*-------------------------------------------------------------------------
 *
 * unit_floats.h
 *	  Floats as their bits, and PostgreSQL's order of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UNIT_FLOATS_H
#define GPUSORT_UNIT_FLOATS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t
bits_of_double(double v)
{
	uint64_t	bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static inline double
double_of_bits(uint64_t bits)
{
	double		v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static inline uint32_t
bits_of_float(float v)
{
	uint32_t	bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static inline float
float_of_bits(uint32_t bits)
{
	float		v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* PostgreSQL's order of floats, from its documentation. */
static inline int
compare_floats(double a, double b)
{
	if (isnan(a) || isnan(b))
		return (isnan(a) != 0) - (isnan(b) != 0);
	return (a > b) - (a < b);
}

#endif							/* GPUSORT_UNIT_FLOATS_H */
