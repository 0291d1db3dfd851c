/*-------------------------------------------------------------------------
 *
 * warp_copy.cuh
 *	  A warp copies its slice of a tile from device memory to shared memory.
 *
 * The copy is asynchronous (cp.async, sm_80 and later) and needs no registers: registers, not
 * shared memory, limit the number of blocks on a multiprocessor in a radix pass.  Each warp
 * copies what only itself reads next, so no block barrier is needed, only gs_warp_copy_wait().
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WARP_COPY_CUH
#define GPUSORT_WARP_COPY_CUH

#include "warp_match.cuh"

static __device__ __forceinline__ void
gs_copy_16_bytes(void *s_to, const void *d_from)
{
#if __CUDA_ARCH__ >= 800
	const uint32_t to = (uint32_t) __cvta_generic_to_shared(s_to);

	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(d_from)
				 : "memory");
#else
	*(uint4 *) s_to = *(const uint4 *) d_from;
#endif
}

/* Ends a group: the copies started since the last call. */
static __device__ __forceinline__ void
gs_warp_copy_commit(void)
{
#if __CUDA_ARCH__ >= 800
	asm volatile("cp.async.commit_group;" ::
					 : "memory");
#endif
}

/* Waits for all but the last npending groups of this warp. */
template <int npending>
static __device__ __forceinline__ void
gs_warp_copy_wait(void)
{
#if __CUDA_ARCH__ >= 800
	asm volatile("cp.async.wait_group %0;" ::"n"(npending)
				 : "memory");
#endif
	__syncwarp();
}

/*
 * Starts the copy of nitems elements for each lane.  Both sides are aligned to 16
 * bytes.  Elements from nvalid on do not exist; their places get the padding.
 */
template <int nitems, typename T>
static __device__ __forceinline__ void
gs_warp_copy_slice(T *s_slice, const T *d_slice, int64_t nvalid, T padding)
{
	constexpr uint32_t nelements = nitems * GS_WARP_SIZE;
	constexpr uint32_t nchunks = nelements * sizeof(T) / 16;

	if (nvalid >= (int64_t) nelements)
	{
#pragma unroll
		for (uint32_t first = 0; first < nchunks; first += GS_WARP_SIZE)
		{
			uint32_t chunk = first + gs_lane();

			if (first + GS_WARP_SIZE <= nchunks || chunk < nchunks)
				gs_copy_16_bytes((char *) s_slice + 16 * chunk,
								 (const char *) d_slice + 16 * chunk);
		}
	}
	else
	{
		for (uint32_t i = gs_lane(); i < nelements; i += GS_WARP_SIZE)
			s_slice[i] = (int64_t) i < nvalid ? d_slice[i] : padding;
	}
}

#endif /* GPUSORT_WARP_COPY_CUH */
