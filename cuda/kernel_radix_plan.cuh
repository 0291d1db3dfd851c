/*-------------------------------------------------------------------------
 *
 * kernel_radix_plan.cuh
 *	  What the kernels of one radix sort share.
 *
 * The host decides what depends on sizes: the plan, which is passed by value.
 * The device decides what depends on the data: the control block in temporary
 * memory, with the digit places that vary and hence the number of passes.  The host
 * launches a pass for each place; passes beyond control.npasses end at once.
 *
 * Temporary memory: | GsRadixControl | look-back rows 0 | look-back rows 1 |.  Launch number s of
 * a sort (passes x portions) uses rows s % 2 and clears the others for its successor.  So only
 * one memset is necessary, at the start, for the control block and rows 0.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KERNEL_RADIX_PLAN_CUH
#define GPUSORT_KERNEL_RADIX_PLAN_CUH

#include "block_rank.cuh"

#define GS_MAX_PLACES 8

/*
 * One launch of a pass processes one portion of the input, because look-back counts have 30 bits.
 * Portions consist of complete tiles and have at most this many keys.
 */
#ifndef GS_PORTION_KEYS /* tests make it small */
#define GS_PORTION_KEYS (UINT64_C(1) << 29)
#endif
#define GS_MAX_PORTIONS 512

typedef struct GsRadixControl
{
	uint64_t counts[GS_MAX_PLACES][GS_NDIGITS];
	/* output place of the first key of a digit, in this portion and the next */
	uint64_t first[GS_MAX_PLACES][2][GS_NDIGITS];
	uint32_t next_tile[GS_MAX_PLACES][GS_MAX_PORTIONS]; /* dynamic tile IDs */
	uint32_t ncounted;                                  /* blocks that have added their counts */
	uint32_t npasses;                                   /* number of places that vary */
	uint32_t place_of[GS_MAX_PLACES];                   /* pass to place */
} GsRadixControl;

typedef struct GsRadixPlan
{
	uint64_t nitems;
	uint64_t *d_keys[2]; /* pass p reads [p % 2] and writes the other */
	uint32_t *d_values[2];
	uint32_t *d_selector;
	GsRadixControl *d_control;
	uint32_t *d_rows[2]; /* look-back */
	uint32_t nrows;      /* in each of them */
	uint32_t portion_tiles;
	uint32_t nportions;
	uint32_t nplaces;
	GsPlace places[GS_MAX_PLACES];
} GsRadixPlan;

/*
 * Divides a range of bits into digit places of at most 8 bits: as few as possible,
 * and of similar width.  Returns their number.
 */
static __host__ __device__ inline uint32_t
gs_radix_places(GsPlace *places, uint32_t begin_bit, uint32_t end_bit)
{
	uint32_t nbits = end_bit - begin_bit;
	uint32_t nplaces = (nbits + 7) / 8;
	uint32_t shift = begin_bit;

	for (uint32_t place = 0; place < nplaces; place++)
	{
		uint32_t bits = nbits / nplaces + (place < nbits % nplaces);

		places[place].shift = shift;
		places[place].mask = (1u << bits) - 1;
		shift += bits;
	}
	return nplaces;
}

#endif /* GPUSORT_KERNEL_RADIX_PLAN_CUH */
