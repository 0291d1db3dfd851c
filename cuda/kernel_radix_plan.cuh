/*-------------------------------------------------------------------------
 *
 * kernel_radix_plan.cuh
 *	  What the kernels of one radix sort know of each other.
 *
 * The host decides what depends on sizes (the plan, passed by value); the
 * device decides what depends on the data (the control block in temporary
 * memory): which digit places vary, and so how many passes run, and which
 * buffer each reads.  The host launches a pass for each place; passes beyond
 * control.npasses end at once.
 *
 * Temporary memory: | GsRadixControl | look-back rows 0 | look-back rows 1 |.
 * Launch number s of a sort (passes x portions) uses rows s % 2 and clears
 * the others for its successor; so one memset at the start, over the control
 * block and rows 0, is all the clearing there is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KERNEL_RADIX_PLAN_CUH
#define GPUSORT_KERNEL_RADIX_PLAN_CUH

#include "block_rank.cuh"
#include "device_sort.h"
#include "no_value.cuh"

#define GS_MAX_PLACES 8

/*
 * One launch of a pass works on one portion of the input: look-back counts
 * have 30 bits.  Portions are whole tiles and at most this many keys.
 */
#ifndef GS_PORTION_KEYS /* tests make it small */
#define GS_PORTION_KEYS (UINT64_C(1) << 29)
#endif
#define GS_MAX_PORTIONS 512

typedef struct GsRadixControl
{
	uint64_t counts[GS_MAX_PLACES][GS_NDIGITS];
	/* where the first key of a digit goes: this portion's and the next's */
	uint64_t first[GS_MAX_PLACES][2][GS_NDIGITS];
	uint32_t tickets[GS_MAX_PLACES][GS_MAX_PORTIONS];
	uint32_t ncounted;                /* blocks that have added their counts */
	uint32_t npasses;                 /* places that vary */
	uint32_t place_of[GS_MAX_PLACES]; /* pass to place */
} GsRadixControl;

typedef struct GsRadixPlan
{
	uint64_t nitems;
	const void *d_keys_in; /* what pass 0 reads */
	const void *d_values_in;
	void *d_keys[2];
	void *d_values[2];
	uint32_t *d_selector;
	GsRadixControl *d_control;
	uint32_t *d_rows[2]; /* look-back */
	uint32_t nrows;      /* in each of them */
	uint32_t portion_tiles;
	uint32_t nportions;
	uint32_t nplaces;
	uint32_t flags;       /* GS_RADIX_* */
	uint32_t input_apart; /* d_keys_in is none of d_keys */
	uint32_t row_bits;
	uint64_t key_min;
	GsPlace places[GS_MAX_PLACES];
} GsRadixPlan;

/*
 * The buffer that a pass writes.  With the input in d_keys[0] the buffers
 * simply take turns; with an input apart, the last pass must write d_keys[0].
 */
static __device__ __forceinline__ uint32_t
gs_pass_output(const GsRadixPlan &plan, uint32_t pass, uint32_t npasses)
{
	return plan.input_apart ? (npasses - 1 - pass) % 2 : (pass + 1) % 2;
}

/*
 * The places for some bits: as few as 8 bits each allow, and as even as
 * possible.  Returns how many.
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

/* The key of row number row as it is sorted, from what the input holds. */
template <typename Key>
static __device__ __forceinline__ Key
gs_pack_row(const GsRadixPlan &plan, Key raw, uint64_t row)
{
	return (Key) (((uint64_t) raw - plan.key_min) << plan.row_bits | row);
}

#endif /* GPUSORT_KERNEL_RADIX_PLAN_CUH */
