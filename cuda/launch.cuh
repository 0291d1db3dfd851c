/*-------------------------------------------------------------------------
 *
 * launch.cuh
 *	  What the host knows of the device and of each kernel, and how it starts
 *	  them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LAUNCH_CUH
#define GPUSORT_LAUNCH_CUH

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

#include "device_sort.h"

/* Devices past that number are asked anew each time. */
#define GS_MAX_DEVICES 16

typedef struct GsDeviceFacts
{
	int number;
	int nmultiprocessors;
	int shared_bytes;    /* that a block can have */
	int shared_bytes_sm; /* that a multiprocessor has */
	int capability;      /* 90 is 9.0 */
} GsDeviceFacts;

/* The current device.  Errors are kept for gs_device_last_error(). */
extern GsDeviceStatus gs_device_facts(GsDeviceFacts *properties);

extern GsDeviceStatus gs_cuda_status(cudaError_t error);

/*
 * What a kernel was found to need, by device.  One static of these stands
 * beside each launch; several threads may fill it at once, with the same
 * values.
 */
typedef struct GsKernelFacts
{
	int nblocks[GS_MAX_DEVICES]; /* a multiprocessor holds; 0: not asked */
} GsKernelFacts;

/*
 * Allows the kernel its dynamic shared memory and tells how many blocks the
 * whole device holds at once.
 */
extern GsDeviceStatus gs_kernel_resident_blocks(GsKernelFacts *known, const GsDeviceFacts *properties,
												const void *kernel, int nthreads,
												size_t shared_bytes, uint32_t *nblocks);

/* Blocks for n elements. */
static inline uint32_t
gs_blocks(uint64_t n, uint32_t ntile)
{
	return (uint32_t) ((n + ntile - 1) / ntile);
}

/*
 * With early, the kernel may start before its predecessor on the stream ends:
 * it waits by itself (cudaGridDependencySynchronize).
 */
extern GsDeviceStatus gs_launch(const void *kernel, uint32_t nblocks, uint32_t nthreads,
								size_t shared_bytes, void *stream, bool early, void **args);

#endif /* GPUSORT_LAUNCH_CUH */
