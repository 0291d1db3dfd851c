/*-------------------------------------------------------------------------
 *
 * device_none.c
 *	  No device: in place of cuda/ in a program that is built without CUDA.
 *
 *-------------------------------------------------------------------------
 */
#include "device/device.h"

#include <stdio.h>

GsDevice *
gs_device_cuda_open(int number, char *why_not, size_t size)
{
	(void) gs_device_cuda_count(why_not, size);
	return NULL;
}

uint32_t
gs_device_cuda_count(char *why_not, size_t size)
{
	snprintf(why_not, size, "built without CUDA");
	return 0;
}
