/*-------------------------------------------------------------------------
 *
 * device_fault.h
 *	  A device that fails on request, for tests.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_FAULT_H
#define GPUSORT_DEVICE_FAULT_H

#include "device/device.h"

/*
 * Wraps a device, which the result owns from now on, and injects faults.  The
 * spec is a comma-separated list of op:call:kind, where op is a member of
 * GsDeviceOps whose calls are counted from 1:
 *
 *	  pack:3:fail			the device fails at the third call
 *	  allocate:5:none		out of memory from the fifth call on
 *	  gather:2:kill			the second call kills the process
 *	  pack:1:hang			the first call does not return
 *	  copy_in:4:delay=500	the work that the fourth call queues takes 500 ms
 *	  release:1:block=500	the first call itself takes 500 ms
 *	  sort_words:1:wrong	the first result is wrong; also sort_ties, place_ties, and
 *							gather, which returns the first rows instead
 *
 * NULL if the spec is invalid: why_not has the reason, and the caller still owns
 * the device.
 */
extern GsDevice *gs_device_fault_open(GsDevice *device, const char *spec,
									  char *why_not, size_t size);

#endif							/* GPUSORT_DEVICE_FAULT_H */
