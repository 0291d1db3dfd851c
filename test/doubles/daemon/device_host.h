/*-------------------------------------------------------------------------
 *
 * device_host.h
 *	  The CPU as a device.
 *
 * C without PostgreSQL, and CUDA.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_HOST_H
#define GPUSORT_DEVICE_HOST_H

#include "device/device.h"

#ifdef __cplusplus
extern "C"
{
#endif

/*
 * A device of memory_bytes of memory; 0: half of that of the machine.  NULL: out of
 * memory, which why_not says.
 */
extern GsDevice *gs_device_host_open(uint32_t number, uint64_t memory_bytes, char *why_not,
									 size_t size);

/* The identity of a device of the host. */
extern GsDeviceIdentity gs_device_host_identity(uint32_t number);

/* The memory that the host device has by default. */
extern uint64_t gs_device_host_memory(void);

#ifdef __cplusplus
}
#endif

#endif							/* GPUSORT_DEVICE_HOST_H */
