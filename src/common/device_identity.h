/*-------------------------------------------------------------------------
 *
 * device_identity.h
 *	  What identifies a device, because its number may be another one in another process.
 *
 * CUDA counts the devices when a process starts.  After one was lost, or became
 * available again, later processes give others its number.
 *
 * ISO C and CUDA.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_IDENTITY_H
#define GPUSORT_DEVICE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

/* The UUID of a GPU, or of a slice of one; zeros: not known. */
typedef struct GsDeviceIdentity
{
	uint64_t	words[2];
} GsDeviceIdentity;

static inline bool
gs_is_same_device(GsDeviceIdentity a, GsDeviceIdentity b)
{
	return (a.words[0] | a.words[1]) != 0 && a.words[0] == b.words[0] && a.words[1] == b.words[1];
}

#endif							/* GPUSORT_DEVICE_IDENTITY_H */
