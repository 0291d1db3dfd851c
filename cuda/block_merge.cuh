/*-------------------------------------------------------------------------
 *
 * block_merge.cuh
 *	  A block merges adjacent sorted sequences in shared memory.
 *
 * The idea: levels of pairwise merging.  At each level every thread produces the same number of
 * consecutive outputs.  It finds the start of its part in the two sequences by binary search on a
 * diagonal (merge path: Odeh, Green et al. 2012).  Outputs go to registers first and, after a
 * barrier, back to shared memory, so one buffer suffices.
 *
 * Keys are moved.  Instead of values, 16-bit numbers are moved: the original place of the element
 * in the tile.  The values are moved once, at the end.  Sorts of keys alone have no numbers.
 *
 * The caller defines the sequences: begins(i) is the place of the first element of
 * sequence i, for i up to and including the number of sequences.
 *
 * The merge is stable: of equal keys, those of the left sequence come first.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BLOCK_MERGE_CUH
#define GPUSORT_BLOCK_MERGE_CUH

#include "key_compare.cuh"
#include "warp_match.cuh"

/*
 * The number of elements of a among the first "diagonal" elements of the merged
 * sequence.  b_before_a(i, j): does element i of b precede element j of a?
 */
template <typename Before>
static __device__ __forceinline__ uint32_t
gs_merge_path(uint32_t na, uint32_t nb, uint32_t diagonal, Before b_before_a)
{
	uint32_t low = diagonal > nb ? diagonal - nb : 0;
	uint32_t high = min(diagonal, na);

	while (low < high)
	{
		uint32_t middle = (low + high) / 2;

		if (b_before_a(diagonal - 1 - middle, middle))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * One level: merges sequences 2i * width .. (2i + 1) * width - 1, which have been
 * merged already, with the next width sequences.  All threads call it.  s_keys has
 * space for one element past the end; only nvalid elements are used.  precedes(key_b, b,
 * key_a, a), for an element of a right sequence at place b and one of its left
 * sequence at place a: must b come first?  Ends with a barrier.
 *
 * The bottleneck is reads of shared memory at random places.  So of the two current
 * keys, only the one that was output is replaced by a read.
 */
template <int nthreads, int nitems, bool has_numbers, typename Key, typename Begins,
		  typename Precedes>
static __device__ __forceinline__ void
gs_block_merge_level(Key *s_keys, uint16_t *s_numbers, uint32_t nvalid,
					 uint32_t nsequences, uint32_t width, Begins begins, Precedes precedes)
{
	const uint32_t start = threadIdx.x * nitems;
	Key keys[nitems];
	uint16_t numbers[has_numbers ? nitems : 1];

	if (start < nvalid)
	{
		/* the last pair that begins at or before start; it is not empty */
		uint32_t pair = 0;
		uint32_t last = (nsequences + 2 * width - 1) / (2 * width) - 1;

		while (pair < last)
		{
			uint32_t middle = (pair + last + 1) / 2;

			if (begins(middle * 2 * width) <= start)
				pair = middle;
			else
				last = middle - 1;
		}

		const uint32_t a_first = begins(pair * 2 * width);
		uint32_t a_end = begins(min(nsequences, (pair * 2 + 1) * width));
		uint32_t b_end = begins(min(nsequences, (pair * 2 + 2) * width));
		auto b_before_a = [&](uint32_t i, uint32_t j) {
			return precedes(s_keys[a_end + i], a_end + i, s_keys[a_first + j], a_first + j);
		};
		uint32_t a = a_first +
			gs_merge_path(a_end - a_first, b_end - a_end, start - a_first, b_before_a);
		uint32_t b = a_end + (start - a);
		Key key_a = s_keys[a];
		Key key_b = s_keys[b];

#pragma unroll
		for (int item = 0; item < nitems; item++)
		{
			if (start + item < nvalid)
			{
				while (a >= a_end && b >= b_end)
				{
					pair++;
					a = b_end;
					b = a_end = begins(min(nsequences, (pair * 2 + 1) * width));
					b_end = begins(min(nsequences, (pair * 2 + 2) * width));
					key_a = s_keys[a];
					key_b = s_keys[b];
				}

				const bool from_b = a >= a_end || (b < b_end && precedes(key_b, b, key_a, a));
				const uint32_t place = from_b ? b : a;
				const Key next = s_keys[place + 1];

				keys[item] = from_b ? key_b : key_a;
				if constexpr (has_numbers)
					numbers[item] = s_numbers[place];
				if (from_b)
				{
					b++;
					key_b = next;
				}
				else
				{
					a++;
					key_a = next;
				}
			}
		}
	}
	__syncthreads();
#pragma unroll
	for (int item = 0; item < nitems; item++)
	{
		if (start + item < nvalid)
		{
			s_keys[start + item] = keys[item];
			if constexpr (has_numbers)
				s_numbers[start + item] = numbers[item];
		}
	}
	__syncthreads();
}

#endif /* GPUSORT_BLOCK_MERGE_CUH */
