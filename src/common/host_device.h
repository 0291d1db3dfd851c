/*-------------------------------------------------------------------------
 *
 * host_device.h
 *	  Marks functions that are compiled for the host, and by nvcc for devices too.
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
