/*-------------------------------------------------------------------------
 *
 * host_device.h
 *	  Functions that both the C compiler and nvcc make something of.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_HOST_DEVICE_H
#define GPUSORT_HOST_DEVICE_H

#ifdef __CUDACC__
#define GS_HOST_DEVICE	static __host__ __device__ inline
#else
#define GS_HOST_DEVICE	static inline
#endif

#endif							/* GPUSORT_HOST_DEVICE_H */
