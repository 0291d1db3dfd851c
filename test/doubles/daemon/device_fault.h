/*-------------------------------------------------------------------------
 *
 * device_fault.h
 *	  A device that fails on request.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_FAULT_H
#define GPUSORT_DEVICE_FAULT_H

#include "device/device.h"

/*
 * Wraps the device of this number, which the result owns from now on, and injects
 * faults.  The spec is a comma-separated list of [device:]op:call:kind: the number of
 * a device, by default each one; a member of GsDeviceOps, whose calls are counted from
 * 1 for each device; and what happens:
 *
 *	  pack:3:fail			the device fails at the third call
 *	  allocate:5:none		out of memory from the fifth call on
 *	  gather:2:kill			the second call kills the process
 *	  pack:1:hang			the first call does not return
 *	  copy_in:4:delay=500	the work that the fourth call queues takes 500 ms
 *	  release:1:block=500	the first call itself takes 500 ms
 *	  sort_words:1:wrong	the first result is wrong; also sort_ties, place_ties, and
 *							gather, which returns the first rows instead
 *	  2:pack:3:fail			the same as the first, of device 2
 *
 * NULL if the spec is invalid: why_not has the reason, and the caller still owns
 * the device.
 */
extern GsDevice *gs_device_fault_open(GsDevice *device, uint32_t number, const char *spec,
									  char *why_not, size_t size);

/* Is the spec valid?  If not, why_not has the reason. */
extern bool gs_device_fault_check(const char *spec, char *why_not, size_t size);

#endif							/* GPUSORT_DEVICE_FAULT_H */
