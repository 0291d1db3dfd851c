/*-------------------------------------------------------------------------
 *
 * launch.cuh
 *	  Properties of the device and of kernels, and kernel launches.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LAUNCH_CUH
#define GPUSORT_LAUNCH_CUH

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

#include "device_sort.h"

/* Results for devices with higher numbers are not cached. */
#define GS_MAX_DEVICES 16

typedef struct GsDeviceProperties
{
	int number;
	int nmultiprocessors;
	int shared_bytes; /* maximum for a block */
	int capability;   /* 90 is 9.0 */
} GsDeviceProperties;

/* Properties of the current device. */
extern GsDeviceStatus gs_device_properties(GsDeviceProperties *properties);

/* Converts an error, and stores it for gs_device_last_error(). */
extern GsDeviceStatus gs_cuda_status(cudaError_t error);

/*
 * A cache of the occupancy of a kernel, by device.  Each launch has a static one;
 * several threads may fill it at the same time, with the same values.
 */
typedef struct GsKernelOccupancy
{
	int nblocks[GS_MAX_DEVICES]; /* per multiprocessor; 0: unknown */
} GsKernelOccupancy;

/*
 * Permits the kernel its dynamic shared memory and stores the number of blocks that
 * the whole device can hold at the same time.
 */
extern GsDeviceStatus gs_kernel_resident_blocks(GsKernelOccupancy *known,
												const GsDeviceProperties *properties,
												const void *kernel, int nthreads,
												size_t shared_bytes, uint32_t *nblocks);

/* Number of blocks for n elements. */
static inline uint32_t
gs_blocks(uint64_t n, uint32_t ntile)
{
	return (uint32_t) ((n + ntile - 1) / ntile);
}

/*
 * Launches a kernel.  early: it may start before its predecessor on the stream ends,
 * and waits itself, by cudaGridDependencySynchronize().
 */
extern GsDeviceStatus gs_launch(const void *kernel, uint32_t nblocks, uint32_t nthreads,
								size_t shared_bytes, void *stream, bool early, void **args);

#endif /* GPUSORT_LAUNCH_CUH */
