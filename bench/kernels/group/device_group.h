/*-------------------------------------------------------------------------
 *
 * device_group.h
 *	  Sorts arrays that are spread over several devices.
 *
 * What cuda/device_sort.h says about streams, alignment and types applies here, too,
 * with these differences: a group owns streams, events and little memory; a sort begins
 * at once, so what the caller has queued for its arrays must have ended, and blocks
 * until it is done; and one thread calls the functions of a group.
 *
 * ../README.md has the method.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_GROUP_H
#define GPUSORT_DEVICE_GROUP_H

#include "../../../cuda/device_sort.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GS_GROUP_MAX_DEVICES 16

typedef struct GsDeviceGroup GsDeviceGroup;

/*
 * Opens a group of 1 to GS_GROUP_MAX_DEVICES CUDA devices.  The same device may be
 * in it several times, which is for tests.  Devices that can access each other's
 * memory do.  through_host: none does, so all exchanges go through host memory.
 */
extern GsDeviceStatus gs_device_group_open(const int *devices, uint32_t ndevices, bool through_host,
										   GsDeviceGroup **group);
extern void gs_device_group_close(GsDeviceGroup *group);

/* Must exchanges go through host memory?  Then sorts need host_keys and host_values. */
extern bool gs_device_group_is_through_host(const GsDeviceGroup *group);

/* The keys and values of a sort. */
typedef struct GsGroupTypes
{
	uint32_t key_bytes;   /* 4 or 8 */
	uint32_t value_bytes; /* 0, 4 or 8 */
	uint32_t begin_bit;   /* the sort is by bits [begin_bit, end_bit) of the keys, .. */
	uint32_t end_bit;     /* .. as unsigned integers */
} GsGroupTypes;

/* How long the phases of a sort took, in milliseconds. */
typedef struct GsGroupTimes
{
	float upload_ms; /* host arrays only: until the last item was on its device */
	float sort_ms;   /* from then until all runs were sorted */
	float split_ms;  /* to find the ranges in the runs */
	float merge_ms;  /* to copy and merge pieces, and to download them */
	float total_ms;
} GsGroupTimes;

/*
 * A stable sort of items in device memory.  The input order is by device and place.  Device i has
 * nitems[i] items in d_keys[i][0] and d_values[i][0] before.  Afterwards it has nsorted[i] items,
 * which follow those of device i - 1, in d_keys[i][result[i]] and d_values[i][result[i]].  The
 * sums of both are equal, and all arrays of device i have space for the larger of the two.
 */
typedef struct GsGroupSort
{
	GsGroupTypes types;
	uint64_t nitems[GS_GROUP_MAX_DEVICES];
	uint64_t nsorted[GS_GROUP_MAX_DEVICES];
	void *d_keys[GS_GROUP_MAX_DEVICES][2];
	void *d_values[GS_GROUP_MAX_DEVICES][2]; /* NULL without values */
	void *d_temp[GS_GROUP_MAX_DEVICES];
	size_t temp_bytes[GS_GROUP_MAX_DEVICES];
	void *host_keys;                       /* pinned, for all items; or NULL: see above */
	void *host_values;                     /* the same */
	uint32_t result[GS_GROUP_MAX_DEVICES]; /* out: 0 or 1 */
	GsGroupTimes times;                    /* out */
} GsGroupSort;

/* Bytes of temporary storage on device i; 0 if the sort is wrong.  Pointers may be unset. */
extern size_t gs_group_temp_bytes(const GsDeviceGroup *group, const GsGroupSort *sort, uint32_t i);

extern GsDeviceStatus gs_group_sort(GsDeviceGroup *group, GsGroupSort *sort);

/*
 * A stable sort of items in pinned host memory, where the result is, too: device i
 * sorts the i-th part of it.  Uploads, sorts, exchanges and downloads overlap.
 */
typedef struct GsGroupHostSort
{
	GsGroupTypes types;
	uint64_t nitems;
	const void *keys_in;
	const void *values_in; /* NULL without values */
	void *keys_out;        /* may be keys_in */
	void *values_out;
	void *d_temp[GS_GROUP_MAX_DEVICES];
	size_t temp_bytes[GS_GROUP_MAX_DEVICES];
	void *host_keys; /* as in GsGroupSort; not keys_out */
	void *host_values;
	GsGroupTimes times; /* out */
} GsGroupHostSort;

extern size_t gs_group_host_temp_bytes(const GsDeviceGroup *group, const GsGroupHostSort *sort,
									   uint32_t i);

extern GsDeviceStatus gs_group_host_sort(GsDeviceGroup *group, GsGroupHostSort *sort);

#ifdef __cplusplus
}
#endif

#endif /* GPUSORT_DEVICE_GROUP_H */
