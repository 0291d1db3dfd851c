/*-------------------------------------------------------------------------
 *
 * device_fault.h
 *	  A device that breaks when it is told to: for tests.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_FAULT_H
#define GPUSORT_DEVICE_FAULT_H

#include "device/device.h"

/*
 * Puts faults before a device, which belongs to the result from now on.  The
 * spec is a list, with commas, of op:call:what, the op being named as in
 * GsDeviceOps and its calls being counted from 1:
 *
 *	  pack:3:fail			the third call finds the device broken
 *	  allocate:5:none		from the fifth call on there is no memory
 *	  gather:2:kill			the second call kills the process
 *	  pack:1:hang			the first call does not return
 *	  copy_in:4:delay=500	what the fourth call queues takes 500 ms
 *	  release:1:block=500	the first call itself takes 500 ms
 *	  gather:3:first		the third call gets the first rows, whichever are asked for
 *
 * NULL if the spec is wrong: why_not says how, and the device is as it was.
 */
extern GsDevice *gs_device_fault_open(GsDevice *device, const char *spec,
									  char *why_not, size_t size);

#endif							/* GPUSORT_DEVICE_FAULT_H */
