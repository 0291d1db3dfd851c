/*-------------------------------------------------------------------------
 *
 * device_choice.h
 *	  The value of gpusort.device: which devices there are.
 *
 *	  auto		all devices that CUDA shows
 *	  0,2		some of them, as CUDA counts them
 *
 * ISO C.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_CHOICE_H
#define GPUSORT_DEVICE_CHOICE_H

#include <stdbool.h>

#include "common/device_table.h"

typedef struct GsDeviceChoice
{
	bool		is_auto;		/* all devices; the parser does not know how many */
	uint32_t	ndevices;		/* 0: not known */
	uint32_t	numbers[GS_MAX_DEVICES];	/* each below GS_MAX_DEVICES */
} GsDeviceChoice;

/* False: the text is invalid. */
extern bool gs_device_choice_parse(const char *text, GsDeviceChoice *choice);

/* Is it one of the numbers? */
extern bool gs_device_choice_has(const GsDeviceChoice *choice, uint32_t number);

/* Sets the numbers to 0 .. ndevices - 1, at most GS_MAX_DEVICES. */
extern void gs_device_choice_set_all(GsDeviceChoice *choice, uint32_t ndevices);

#endif							/* GPUSORT_DEVICE_CHOICE_H */
