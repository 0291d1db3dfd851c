/*-------------------------------------------------------------------------
 *
 * group_sort.cu
 *	  Sorts arrays in the memory of several devices.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>

#include "group_internal.cuh"

/* The sort of a member's own items. */
static GsRadixSortGeneral
gs_member_sort(const GsGroupSort *sort, uint32_t i)
{
	GsRadixSortGeneral own = {};

	own.nitems = sort->nitems[i];
	own.key_bytes = sort->types.key_bytes;
	own.value_bytes = sort->types.value_bytes;
	own.begin_bit = sort->types.begin_bit;
	own.end_bit = sort->types.end_bit;
	for (int k = 0; k < 2; k++)
	{
		own.d_keys[k] = sort->d_keys[i][k];
		own.d_values[k] = sort->types.value_bytes == 0 ? NULL : sort->d_values[i][k];
	}
	return own;
}

/* The storage of a member: the selector, and the larger of what sort and merge need. */
static uint32_t *
gs_carve_member(GsCarver *carver, const GsDeviceGroup *group, const GsGroupSort *sort, uint32_t i,
				char **d_rest, size_t *rest_bytes)
{
	const GsRadixSortGeneral own = gs_member_sort(sort, i);
	uint32_t *d_selector = (uint32_t *) gs_carve(carver, 1, sizeof(uint32_t));

	*rest_bytes = std::max(gs_device_radix_general_temp_bytes(&own),
						   gs_group_merge_temp_bytes(&sort->types, group->nmembers,
													 sort->nsorted[i], false));
	*d_rest = (char *) gs_carve(carver, *rest_bytes, 1);
	return d_selector;
}

size_t
gs_group_temp_bytes(const GsDeviceGroup *group, const GsGroupSort *sort, uint32_t i)
{
	GsCarver carver = {};
	char *d_rest;
	size_t rest_bytes;

	if (!gs_group_types_are_right(&sort->types) || i >= group->nmembers)
		return 0;
	gs_carve_member(&carver, group, sort, i, &d_rest, &rest_bytes);
	return carver.nbytes;
}

static GsDeviceStatus
gs_check_sort(const GsDeviceGroup *group, const GsGroupSort *sort)
{
	uint64_t nitems = 0;
	uint64_t nsorted = 0;

	if (!gs_group_types_are_right(&sort->types))
		return GS_DEVICE_BAD_ARGUMENT;
	for (uint32_t i = 0; i < group->nmembers; i++)
	{
		const bool empty = sort->nitems[i] == 0 && sort->nsorted[i] == 0;
		const bool has_values = sort->types.value_bytes > 0;

		nitems += sort->nitems[i];
		nsorted += sort->nsorted[i];
		for (int k = 0; k < 2; k++)
			if (!empty &&
				(sort->d_keys[i][k] == NULL || (has_values && sort->d_values[i][k] == NULL)))
				return GS_DEVICE_BAD_ARGUMENT;
		if (sort->d_temp[i] == NULL)
			return GS_DEVICE_BAD_ARGUMENT;
		if (sort->temp_bytes[i] < gs_group_temp_bytes(group, sort, i))
			return GS_DEVICE_TEMP_TOO_SMALL;
	}
	if (nitems != nsorted)
		return GS_DEVICE_BAD_ARGUMENT;
	if (group->through_host && group->nmembers > 1 &&
		(sort->host_keys == NULL || (sort->types.value_bytes > 0 && sort->host_values == NULL)))
		return GS_DEVICE_BAD_ARGUMENT;
	return nitems > GS_DEVICE_MAX_ITEMS ? GS_DEVICE_TOO_MANY_ITEMS : GS_DEVICE_OK;
}

/* Sorts the items of each member; sort->result then says where they are. */
static void
gs_sort_members(GsDeviceGroup *group, GsGroupSort *sort, uint32_t **d_selectors, char **d_rests,
				const size_t *rest_bytes)
{
	for (uint32_t i = 0; i < group->nmembers; i++)
	{
		GsRadixSortGeneral own = gs_member_sort(sort, i);

		own.d_selector = d_selectors[i];
		sort->result[i] = 0;
		if (own.nitems > 0 && gs_group_select(group, i))
			gs_group_note(group,
						  gs_device_radix_general_sort(&own, d_rests[i], rest_bytes[i],
													   group->members[i].work));
	}
	for (uint32_t i = 0; i < group->nmembers; i++)
		if (sort->nitems[i] > 0 && gs_group_select(group, i))
		{
			cudaStream_t stream = group->members[i].work;

			gs_group_check(group,
						   cudaMemcpyAsync(&sort->result[i], d_selectors[i], sizeof(uint32_t),
										   cudaMemcpyDeviceToHost, stream));
			gs_group_check(group, cudaStreamSynchronize(stream));
		}
}

/* Copies runs to host memory, for members that cannot access each other's. */
static void
gs_copy_runs(GsDeviceGroup *group, const GsGroupTypes *types, GsGroupRun *runs, uint32_t nruns,
			 void *host_keys, void *host_values)
{
	uint64_t first = 0;

	for (uint32_t run = 0; run < nruns; run++)
	{
		GsGroupRun *copied = &runs[run];

		copied->host_keys = gs_at(host_keys, first, types->key_bytes);
		copied->host_values = gs_at(host_values, first, types->value_bytes);
		first += copied->nitems;
		if (!gs_group_select(group, copied->member))
			return;
		gs_group_copy(group, types, copied->host_keys, copied->host_values, copied->d_keys,
					  copied->d_values, copied->nitems, group->members[copied->member].work);
	}
	gs_group_wait(group);
}

GsDeviceStatus
gs_group_sort(GsDeviceGroup *group, GsGroupSort *sort)
{
	const double start = gs_group_ms();
	uint32_t *d_selectors[GS_GROUP_MAX_DEVICES];
	char *d_rests[GS_GROUP_MAX_DEVICES];
	size_t rest_bytes[GS_GROUP_MAX_DEVICES];
	GsGroupRun runs[GS_GROUP_MAX_DEVICES] = {};
	GsGroupRange ranges[GS_GROUP_MAX_DEVICES] = {};
	uint64_t first = 0;

	sort->times = {};
	group->status = gs_check_sort(group, sort);
	if (group->status != GS_DEVICE_OK)
		return group->status;
	for (uint32_t i = 0; i < group->nmembers; i++)
	{
		GsCarver carver = {(char *) sort->d_temp[i], 0};

		d_selectors[i] = gs_carve_member(&carver, group, sort, i, &d_rests[i], &rest_bytes[i]);
	}
	gs_sort_members(group, sort, d_selectors, d_rests, rest_bytes);
	sort->times.sort_ms = (float) (gs_group_ms() - start);
	if (group->nmembers > 1 && group->status == GS_DEVICE_OK)
	{
		for (uint32_t i = 0; i < group->nmembers; i++)
		{
			const uint32_t from = sort->result[i];
			const uint32_t to = 1 - from;

			runs[i] = {i, sort->nitems[i], sort->d_keys[i][from], sort->d_values[i][from],
					   NULL, NULL};
			sort->result[i] = to;
			ranges[i] = {first, sort->nsorted[i], sort->d_keys[i][to], sort->d_values[i][to],
						 false, d_rests[i]};
			first += sort->nsorted[i];
		}
		if (group->through_host)
			gs_copy_runs(group, &sort->types, runs, group->nmembers, sort->host_keys,
						 sort->host_values);
		gs_group_merge(group, &sort->types, runs, group->nmembers, ranges, &sort->times);
	}
	gs_group_wait(group); /* also after an error */
	sort->times.total_ms = (float) (gs_group_ms() - start);
	return group->status;
}
