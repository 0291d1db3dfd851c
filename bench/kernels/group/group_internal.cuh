/*-------------------------------------------------------------------------
 *
 * group_internal.cuh
 *	  What the files of a group share; only they include it.
 *
 *	  device_group		opens and closes groups
 *	  group_merge		selects ranges of runs, exchanges and merges them
 *	  group_sort		sorts arrays on the devices
 *	  group_host_sort	sorts arrays in host memory
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GROUP_INTERNAL_CUH
#define GPUSORT_GROUP_INTERNAL_CUH

#include <chrono>
#include <cuda_runtime.h>

#include "../general/device_sort_general.h"
#include "../../../cuda/launch.cuh"
#include "device_group.h"
#include "kernel_group_split.cuh"

/* Chunks of a range that are in work at the same time: one copied, one merged, one downloaded. */
#define GS_GROUP_SLOTS 3

/* The device side of a member of a group. */
typedef struct GsGroupMember
{
	int number;                               /* of the CUDA device */
	cudaStream_t work;                        /* sorts and merges */
	cudaStream_t upload;                      /* from the host */
	cudaStream_t download;                    /* to the host */
	cudaStream_t from[GS_GROUP_MAX_DEVICES];  /* copies of each other member's items */
	cudaEvent_t sorted[2];                    /* the upload buffer may be reused */
	cudaEvent_t uploaded[2];                  /* the upload buffer is filled */
	cudaEvent_t copied[GS_GROUP_MAX_DEVICES]; /* its pieces of the chunk have arrived */
	cudaEvent_t merged[GS_GROUP_SLOTS];       /* the slot's pieces have been read */
	cudaEvent_t downloaded[GS_GROUP_SLOTS];   /* the slot's output has been read */
} GsGroupMember;

struct GsDeviceGroup
{
	uint32_t nmembers;
	bool through_host;
	GsGroupMember members[GS_GROUP_MAX_DEVICES];
	uint64_t *splits;      /* pinned */
	uint64_t nsplits;      /* space */
	GsDeviceStatus status; /* of the sort; the first error stays */
};

/* A sorted run on a member. */
typedef struct GsGroupRun
{
	uint32_t member;
	uint64_t nitems;
	const void *d_keys;
	const void *d_values;
	const void *host_keys; /* its copy in host memory, if the group goes through the host */
	const void *host_values;
} GsGroupRun;

/* What a member has to produce: a range of ranks. */
typedef struct GsGroupRange
{
	uint64_t first;
	uint64_t nitems;
	void *keys_to; /* device memory of the member, or pinned host memory */
	void *values_to;
	bool to_host;
	char *d_temp; /* gs_group_merge_temp_bytes() */
} GsGroupRange;

/* Arrays in temporary storage, one after the other.  With d_base NULL only counts bytes. */
typedef struct GsCarver
{
	char *d_base;
	size_t nbytes;
} GsCarver;

static inline void *
gs_carve(GsCarver *carver, uint64_t nitems, size_t item_bytes)
{
	void *d_array = carver->d_base == NULL ? NULL : carver->d_base + carver->nbytes;

	carver->nbytes += (size_t) ((nitems * item_bytes + 255) / 256 * 256);
	return d_array;
}

/* Notes the first error of a sort; false: there has been one. */
static inline bool
gs_group_check(GsDeviceGroup *group, cudaError_t error)
{
	if (group->status == GS_DEVICE_OK)
		group->status = gs_cuda_status(error);
	return group->status == GS_DEVICE_OK;
}

static inline bool
gs_group_note(GsDeviceGroup *group, GsDeviceStatus status)
{
	if (group->status == GS_DEVICE_OK)
		group->status = status;
	return group->status == GS_DEVICE_OK;
}

/* Makes the member's device the current one. */
static inline bool
gs_group_select(GsDeviceGroup *group, uint32_t member)
{
	return gs_group_check(group, cudaSetDevice(group->members[member].number));
}

/* Waits for all work of the group, also after an error. */
extern void gs_group_wait(GsDeviceGroup *group);

static inline void *
gs_at(const void *array, uint64_t item, uint32_t item_bytes)
{
	return array == NULL ? NULL : (char *) array + item * item_bytes;
}

/* Queues a copy of items on a stream; values only if there are. */
extern void gs_group_copy(GsDeviceGroup *group, const GsGroupTypes *types, const void *keys_to,
						  const void *values_to, const void *keys_from, const void *values_from,
						  uint64_t nitems, cudaStream_t stream);

/* A clock, in milliseconds. */
static inline double
gs_group_ms(void)
{
	const auto now = std::chrono::steady_clock::now().time_since_epoch();

	return std::chrono::duration<double, std::milli>(now).count();
}

extern bool gs_group_types_are_right(const GsGroupTypes *types);

/* Bytes of temporary storage that a member needs to produce nitems items of nruns runs. */
extern size_t gs_group_merge_temp_bytes(const GsGroupTypes *types, uint32_t nruns, uint64_t nitems,
										bool to_host);

/*
 * All members produce their ranges of the merged runs, which are sorted already; blocks
 * until that is done.  Runs are in input order.  Stores split_ms and merge_ms.
 */
extern void gs_group_merge(GsDeviceGroup *group, const GsGroupTypes *types, const GsGroupRun *runs,
						   uint32_t nruns, const GsGroupRange *ranges, GsGroupTimes *times);

#endif /* GPUSORT_GROUP_INTERNAL_CUH */
