/*-------------------------------------------------------------------------
 *
 * group_host_sort.cu
 *	  Sorts arrays in host memory on several devices.
 *
 * Each member uploads its part in several steps and sorts what one step brought while
 * the next is uploaded, so that only the sort of the last step is not hidden.  Its
 * runs are merged on the way back: the merge of a chunk is far faster than its
 * download.  So the time is that of the transfers and little more.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>
#include <vector>

#include "group_internal.cuh"

/* Uploads of a member: this many, but no smaller ones than that. */
#define GS_GROUP_UPLOADS 8
#ifndef GS_GROUP_MIN_UPLOAD /* tests make it small */
#define GS_GROUP_MIN_UPLOAD (UINT64_C(1) << 22)
#endif

static_assert(GS_GROUP_UPLOADS * GS_GROUP_MAX_DEVICES <= GS_GROUP_MAX_RUNS, "");

/* A member's part of the input, and its memory. */
typedef struct GsHostPart
{
	uint64_t first;
	uint64_t nitems;
	uint64_t step; /* items in each upload but the last */
	uint32_t nsteps;
	void *d_runs[2];       /* keys and values of the sorted runs */
	void *d_uploads[2][2]; /* of two uploads */
	void *d_scratch[2];
	uint32_t *d_selector; /* always 0 afterwards */
	char *d_sort_temp;
	size_t sort_temp_bytes;
	char *d_merge_temp;
} GsHostPart;

static void
gs_carve_both(GsCarver *carver, const GsGroupTypes *types, uint64_t nitems, void *d_both[2])
{
	d_both[0] = gs_carve(carver, nitems, types->key_bytes);
	d_both[1] = types->value_bytes == 0 ? NULL : gs_carve(carver, nitems, types->value_bytes);
}

static GsRadixSortGeneral
gs_step_sort(const GsGroupTypes *types, const GsHostPart *part, uint32_t step)
{
	GsRadixSortGeneral sort = {};

	sort.nitems = std::min(part->step, part->nitems - step * part->step);
	sort.key_bytes = types->key_bytes;
	sort.value_bytes = types->value_bytes;
	sort.begin_bit = types->begin_bit;
	sort.end_bit = types->end_bit;
	sort.d_keys_in = part->d_uploads[step % 2][0];
	sort.d_values_in = part->d_uploads[step % 2][1];
	sort.d_keys[0] = gs_at(part->d_runs[0], step * part->step, types->key_bytes);
	sort.d_keys[1] = part->d_scratch[0];
	if (types->value_bytes > 0)
	{
		sort.d_values[0] = gs_at(part->d_runs[1], step * part->step, types->value_bytes);
		sort.d_values[1] = part->d_scratch[1];
	}
	sort.d_selector = part->d_selector;
	return sort;
}

static uint64_t
gs_part_begin(const GsDeviceGroup *group, uint64_t nitems, uint32_t i)
{
	return nitems / group->nmembers * i + std::min((uint64_t) i, nitems % group->nmembers);
}

/* The number of runs depends on all parts, so steps are planned before memory. */
static void
gs_plan_part(GsHostPart *part, const GsDeviceGroup *group, uint64_t nitems, uint32_t i)
{
	part->first = gs_part_begin(group, nitems, i);
	part->nitems = gs_part_begin(group, nitems, i + 1) - part->first;
	part->step = std::max<uint64_t>((part->nitems + GS_GROUP_UPLOADS - 1) / GS_GROUP_UPLOADS,
									GS_GROUP_MIN_UPLOAD);
	part->step = (part->step + 255) / 256 * 256; /* aligned runs */
	part->nsteps = (uint32_t) ((part->nitems + part->step - 1) / part->step);
}

static uint32_t
gs_plan_parts(GsHostPart *parts, const GsDeviceGroup *group, uint64_t nitems)
{
	uint32_t nruns = 0;

	for (uint32_t i = 0; i < group->nmembers; i++)
	{
		gs_plan_part(&parts[i], group, nitems, i);
		nruns += parts[i].nsteps;
	}
	return nruns;
}

static void
gs_carve_part(GsCarver *carver, GsHostPart *part, const GsGroupTypes *types, uint32_t nruns)
{
	const uint64_t step = std::min(part->step, part->nitems);
	size_t merge_bytes = gs_group_merge_temp_bytes(types, nruns, part->nitems, true);
	GsRadixSortGeneral sort;

	gs_carve_both(carver, types, part->nitems, part->d_runs);
	gs_carve_both(carver, types, step, part->d_uploads[0]);
	gs_carve_both(carver, types, step, part->d_uploads[1]);
	gs_carve_both(carver, types, step, part->d_scratch);
	part->d_selector = (uint32_t *) gs_carve(carver, 1, sizeof(uint32_t));
	sort = gs_step_sort(types, part, 0);
	part->sort_temp_bytes = gs_device_radix_general_temp_bytes(&sort);
	part->d_sort_temp = (char *) gs_carve(carver, part->sort_temp_bytes, 1);
	part->d_merge_temp = (char *) gs_carve(carver, merge_bytes, 1);
}

size_t
gs_group_host_temp_bytes(const GsDeviceGroup *group, const GsGroupHostSort *sort, uint32_t i)
{
	GsHostPart parts[GS_GROUP_MAX_DEVICES] = {};
	GsCarver carver = {};
	uint32_t nruns;

	if (!gs_group_types_are_right(&sort->types) || i >= group->nmembers)
		return 0;
	nruns = gs_plan_parts(parts, group, sort->nitems);
	gs_carve_part(&carver, &parts[i], &sort->types, nruns);
	return carver.nbytes;
}

static GsDeviceStatus
gs_check_host_sort(const GsDeviceGroup *group, const GsGroupHostSort *sort)
{
	const bool has_values = sort->types.value_bytes > 0;

	if (!gs_group_types_are_right(&sort->types))
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->nitems > GS_DEVICE_MAX_ITEMS)
		return GS_DEVICE_TOO_MANY_ITEMS;
	if (sort->nitems > 0 && (sort->keys_in == NULL || sort->keys_out == NULL))
		return GS_DEVICE_BAD_ARGUMENT;
	if (sort->nitems > 0 && has_values && (sort->values_in == NULL || sort->values_out == NULL))
		return GS_DEVICE_BAD_ARGUMENT;
	if (group->through_host && group->nmembers > 1 &&
		(sort->host_keys == NULL || (has_values && sort->host_values == NULL)))
		return GS_DEVICE_BAD_ARGUMENT;
	for (uint32_t i = 0; i < group->nmembers; i++)
	{
		if (sort->d_temp[i] == NULL)
			return GS_DEVICE_BAD_ARGUMENT;
		if (sort->temp_bytes[i] < gs_group_host_temp_bytes(group, sort, i))
			return GS_DEVICE_TEMP_TOO_SMALL;
	}
	return GS_DEVICE_OK;
}

/* Queues the upload of a step, its sort, and for a group through the host the copy of the run. */
static void
gs_queue_step(GsDeviceGroup *group, const GsGroupHostSort *sort, uint32_t i, const GsHostPart *part,
			  uint32_t step, GsGroupRun *run)
{
	GsGroupMember *member = &group->members[i];
	const GsGroupTypes *types = &sort->types;
	GsRadixSortGeneral own = gs_step_sort(types, part, step);
	const uint64_t first = part->first + step * part->step;
	const int buffer = step % 2;

	if (!gs_group_select(group, i))
		return;
	if (step >= 2)
		gs_group_check(group, cudaStreamWaitEvent(member->upload, member->sorted[buffer], 0));
	gs_group_copy(group, types, part->d_uploads[buffer][0], part->d_uploads[buffer][1],
				  gs_at(sort->keys_in, first, types->key_bytes),
				  gs_at(sort->values_in, first, types->value_bytes), own.nitems, member->upload);
	gs_group_check(group, cudaEventRecord(member->uploaded[buffer], member->upload));
	gs_group_check(group, cudaStreamWaitEvent(member->work, member->uploaded[buffer], 0));
	gs_group_note(group,
				  gs_device_radix_general_sort(&own, part->d_sort_temp, part->sort_temp_bytes,
											   member->work));
	gs_group_check(group, cudaEventRecord(member->sorted[buffer], member->work));
	*run = {i, own.nitems, own.d_keys[0], own.d_values[0], NULL, NULL};
	if (group->through_host)
	{
		run->host_keys = gs_at(sort->host_keys, first, types->key_bytes);
		run->host_values = gs_at(sort->host_values, first, types->value_bytes);
		gs_group_copy(group, types, run->host_keys, run->host_values, run->d_keys, run->d_values,
					  own.nitems, member->work);
	}
}

/* Waits for one of two streams of all members. */
static void
gs_wait_members(GsDeviceGroup *group, bool uploads)
{
	for (uint32_t i = 0; i < group->nmembers; i++)
		if (gs_group_select(group, i))
		{
			const GsGroupMember *member = &group->members[i];

			gs_group_check(group, cudaStreamSynchronize(uploads ? member->upload : member->work));
		}
}

GsDeviceStatus
gs_group_host_sort(GsDeviceGroup *group, GsGroupHostSort *sort)
{
	const double start = gs_group_ms();
	GsHostPart parts[GS_GROUP_MAX_DEVICES] = {};
	GsGroupRange ranges[GS_GROUP_MAX_DEVICES] = {};
	std::vector<GsGroupRun> runs;
	uint32_t first_runs[GS_GROUP_MAX_DEVICES];
	uint32_t nruns = 0;
	double uploaded;

	sort->times = {};
	group->status = gs_check_host_sort(group, sort);
	if (group->status != GS_DEVICE_OK || sort->nitems == 0)
		return group->status;
	runs.resize(gs_plan_parts(parts, group, sort->nitems));
	for (uint32_t i = 0; i < group->nmembers; i++)
	{
		const uint64_t first = parts[i].first;
		GsCarver carver = {(char *) sort->d_temp[i], 0};

		first_runs[i] = nruns;
		nruns += parts[i].nsteps;
		gs_carve_part(&carver, &parts[i], &sort->types, (uint32_t) runs.size());
		ranges[i] = {first, parts[i].nitems, gs_at(sort->keys_out, first, sort->types.key_bytes),
					 gs_at(sort->values_out, first, sort->types.value_bytes), true,
					 parts[i].d_merge_temp};
	}
	for (uint32_t step = 0; step < GS_GROUP_UPLOADS; step++)
		for (uint32_t i = 0; i < group->nmembers; i++)
			if (step < parts[i].nsteps)
				gs_queue_step(group, sort, i, &parts[i], step, &runs[first_runs[i] + step]);
	gs_wait_members(group, true);
	uploaded = gs_group_ms();
	sort->times.upload_ms = (float) (uploaded - start);
	gs_wait_members(group, false);
	sort->times.sort_ms = (float) (gs_group_ms() - uploaded);
	if (group->status == GS_DEVICE_OK)
		gs_group_merge(group, &sort->types, runs.data(), nruns, ranges, &sort->times);
	gs_group_wait(group);
	sort->times.total_ms = (float) (gs_group_ms() - start);
	return group->status;
}
