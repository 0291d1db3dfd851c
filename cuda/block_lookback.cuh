/*-------------------------------------------------------------------------
 *
 * block_lookback.cuh
 *	  Decoupled look-back: the number of keys with each digit in the tiles before
 *	  a tile.
 *
 * The problem: a prefix sum over all tiles, in the same kernel that moves the
 * keys, so that keys are read once and written once.
 *
 * The idea (Merrill & Garland 2016; for radix sorts, Adinets & Merrill 2022): each
 * tile has a row of 256 words, one for each digit, with a count and two flag bits.
 * A tile first publishes its own counts (COUNT).  Then it goes back over the rows
 * of its predecessors and adds their counts, until it finds one that has the sum
 * over all tiles up to itself (SUM), and publishes its own SUM.
 *
 * Example, one digit, tiles with 3, 1, 4, 1 keys:
 *		tile 0: SUM 3
 *		tile 1: COUNT 1			still looking back
 *		tile 2: COUNT 4			still looking back
 *		tile 3: reads tile 2 (COUNT 4), tile 1 (COUNT 1), tile 0 (SUM 3): 8 keys
 *				precede it, and it publishes SUM 9.
 *
 * Width.  Tiles follow each other faster than one step back takes: a pass over 100 million 64-bit
 * keys on an H200 finishes one of its 8,900 tiles every 60 ns, and a read that misses the
 * first-level cache takes about 600 ns.  If it read one predecessor at a time, the walk would
 * have to catch up with SUMs that advance ahead of it.  So each step reads several; too many only
 * load the memory (tuning.cuh).  A block whose nearest predecessor has no COUNT yet sleeps for a
 * short time, because waiting blocks would slow down those they wait for.
 *
 * Invariants:
 *	- A word is written by one thread, first COUNT, then SUM, and is complete by
 *	  itself.  So relaxed accesses suffice and no fence is needed.  They must go to
 *	  the second-level cache, because a cached read could spin on a stale line
 *	  forever.
 *	- Tile IDs are assigned dynamically, so every predecessor belongs to a block
 *	  that runs already, and the wait ends.
 *	- Rows are zero when the pass starts; the previous pass clears them.
 *	- A portion has fewer than 2^30 keys.
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

/* Waits a moment if the nearest predecessor has not counted yet. */
static __device__ __forceinline__ void
gs_lookback_pause(void)
{
	__nanosleep(64);
}

/* Thread d publishes the number of keys with digit d in this tile. */
static __device__ __forceinline__ void
gs_lookback_publish(uint32_t *d_rows, uint32_t tile, uint32_t count)
{
	gs_store_relaxed(&d_rows[(size_t) tile * GS_NDIGITS + threadIdx.x],
					 (tile == 0 ? GS_LOOKBACK_SUM : GS_LOOKBACK_COUNT) | count);
}

/*
 * Thread d returns the number of keys with digit d in the tiles before this one,
 * and publishes the sum that includes this tile.
 */
template <int width>
static __device__ __forceinline__ uint32_t
gs_lookback(uint32_t *d_rows, uint32_t tile, uint32_t count)
{
	uint32_t sum = 0;
	uint32_t end = tile; /* tiles from here on have been added */
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
			/* an unpublished word ends this step, but not the walk */
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
