/*-------------------------------------------------------------------------
 *
 * block_lookback.cuh
 *	  How many keys with my digit lie in the tiles before this one?
 *
 * The problem: a prefix sum over all tiles, within the one kernel that also
 * moves the keys, so that keys are read once and written once.
 *
 * The idea (decoupled look-back: Merrill & Garland 2016; for radix sorts,
 * Adinets & Merrill 2022): each tile has a row of 256 words, one a digit, each
 * a count and two flag bits.  A tile first publishes what it holds itself
 * (COUNT), then walks back over its predecessors' rows, adding their counts,
 * until it meets one that knows the sum over all tiles up to and including
 * itself (SUM); then it publishes its own SUM.
 *
 * Example, one digit, tiles holding 3, 1, 4, 1:
 *		tile 0: SUM 3
 *		tile 1: COUNT 1			still looking
 *		tile 2: COUNT 4			still looking
 *		tile 3: reads tile 2 (COUNT 4), tile 1 (COUNT 1), tile 0 (SUM 3): there
 *				are 8 before it, and it publishes SUM 9.
 *
 * Width.  Tiles follow each other faster than one step back takes: a pass
 * over 100 million 64-bit keys on an H200 finishes one of its 8,900 tiles
 * every 60 ns, against some 600 ns for a read that misses the first-level
 * cache.  Reading one predecessor at a time, the walk has to catch up with
 * SUMs that advance ahead of it; so each step reads several.  Too many only
 * load the memory (tuning.cuh).  A block that finds its nearest predecessor
 * without a COUNT sleeps a little: before it did, waiting blocks slowed down
 * those that they waited for.
 *
 * Invariants:
 *	- a word is written by one thread, COUNT then SUM, and carries all there is
 *	  to know: so relaxed accesses suffice and no fence is needed.  They must
 *	  go to the second-level cache (never a cached read, which could spin
 *	  on a stale line for ever);
 *	- tiles are handed out by a ticket counter, so every predecessor belongs to
 *	  a block that already runs: the wait ends;
 *	- rows are zero when the pass starts; the pass before clears them.
 *	- a portion has fewer than 2^30 keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BLOCK_LOOKBACK_CUH
#define GPUSORT_BLOCK_LOOKBACK_CUH

#include "block_scan.cuh"

#define GS_LOOKBACK_COUNT 0x40000000u
#define GS_LOOKBACK_SUM   0x80000000u
#define GS_LOOKBACK_VALUE 0x3fffffffu

static __device__ __forceinline__ void
gs_store_relaxed(uint32_t *d_word, uint32_t value)
{
	asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(d_word), "r"(value)
				 : "memory");
}

static __device__ __forceinline__ uint32_t
gs_load_relaxed(const uint32_t *d_word)
{
	uint32_t value;

	asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
				 : "=r"(value)
				 : "l"(d_word)
				 : "memory");
	return value;
}

/*
 * The nearest predecessor has not counted yet: leave the memory to it.
 */
static __device__ __forceinline__ void
gs_lookback_pause(void)
{
	__nanosleep(64);
}

/* Thread d publishes what this tile holds of digit d. */
static __device__ __forceinline__ void
gs_lookback_publish(uint32_t *d_rows, uint32_t tile, uint32_t count)
{
	gs_store_relaxed(&d_rows[(size_t) tile * GS_NDIGITS + threadIdx.x],
					 (tile == 0 ? GS_LOOKBACK_SUM : GS_LOOKBACK_COUNT) | count);
}

/*
 * Thread d learns the sum of digit d over the tiles before this one, and
 * publishes the sum that includes it.
 */
template <int width>
static __device__ __forceinline__ uint32_t
gs_lookback(uint32_t *d_rows, uint32_t tile, uint32_t count)
{
	uint32_t sum = 0;
	uint32_t end = tile; /* tiles from here on are accounted for */
	bool found = tile == 0;

	if (found)
		return 0;
	while (!found)
	{
		uint32_t words[width];
		uint32_t last_end = end;
		bool more = true;

#pragma unroll
		for (int i = 0; i < width; i++)
			words[i] = (int) end - 1 - i >= 0 ?
				gs_load_relaxed(&d_rows[(size_t) (end - 1 - i) * GS_NDIGITS + threadIdx.x]) :
				0;
#pragma unroll
		for (int i = 0; i < width; i++)
		{
			/* a word not yet published ends this step, not the walk */
			more = more && !found && words[i] != 0;
			if (more)
			{
				sum += words[i] & GS_LOOKBACK_VALUE;
				end--;
				found = (words[i] & GS_LOOKBACK_SUM) != 0;
			}
		}
		if (end == last_end)
			gs_lookback_pause();
	}
	gs_store_relaxed(&d_rows[(size_t) tile * GS_NDIGITS + threadIdx.x],
					 GS_LOOKBACK_SUM | (sum + count));
	return sum;
}

#endif /* GPUSORT_BLOCK_LOOKBACK_CUH */
