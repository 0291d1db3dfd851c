/*-------------------------------------------------------------------------
 *
 * device_group.cu
 *	  Opens and closes groups of devices.
 *
 *-------------------------------------------------------------------------
 */
#include <new>

#include "group_internal.cuh"

/* Lets the members access each other's memory; otherwise exchanges go through the host. */
static void
gs_group_enable_access(GsDeviceGroup *group)
{
	for (uint32_t i = 0; i < group->nmembers && !group->through_host; i++)
		for (uint32_t j = 0; j < group->nmembers; j++)
		{
			int possible = 0;
			cudaError_t error;

			if (group->members[i].number == group->members[j].number)
				continue;
			error = cudaDeviceCanAccessPeer(&possible, group->members[i].number,
											group->members[j].number);
			if (error == cudaSuccess && possible && gs_group_select(group, i))
				error = cudaDeviceEnablePeerAccess(group->members[j].number, 0);
			if (!possible || (error != cudaSuccess && error != cudaErrorPeerAccessAlreadyEnabled))
				group->through_host = true;
			cudaGetLastError(); /* it may be enabled already */
		}
}

static void
gs_group_open_event(GsDeviceGroup *group, cudaEvent_t *event)
{
	gs_group_check(group, cudaEventCreateWithFlags(event, cudaEventDisableTiming));
}

static void
gs_group_open_stream(GsDeviceGroup *group, cudaStream_t *stream)
{
	gs_group_check(group, cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
}

static void
gs_group_open_member(GsDeviceGroup *group, uint32_t i)
{
	GsGroupMember *member = &group->members[i];

	if (!gs_group_select(group, i))
		return;
	gs_group_open_stream(group, &member->work);
	gs_group_open_stream(group, &member->upload);
	gs_group_open_stream(group, &member->download);
	for (uint32_t j = 0; j < group->nmembers; j++)
	{
		gs_group_open_stream(group, &member->from[j]);
		gs_group_open_event(group, &member->copied[j]);
	}
	for (int k = 0; k < 2; k++)
	{
		gs_group_open_event(group, &member->sorted[k]);
		gs_group_open_event(group, &member->uploaded[k]);
	}
	for (int slot = 0; slot < GS_GROUP_SLOTS; slot++)
	{
		gs_group_open_event(group, &member->merged[slot]);
		gs_group_open_event(group, &member->downloaded[slot]);
	}
}

GsDeviceStatus
gs_device_group_open(const int *devices, uint32_t ndevices, bool through_host,
					 GsDeviceGroup **result)
{
	GsDeviceGroup *group;
	GsDeviceStatus status;

	if (ndevices == 0 || ndevices > GS_GROUP_MAX_DEVICES)
		return GS_DEVICE_BAD_ARGUMENT;
	group = new (std::nothrow) GsDeviceGroup();
	if (group == NULL)
		return gs_cuda_status(cudaErrorMemoryAllocation);
	group->nmembers = ndevices;
	group->through_host = through_host;
	for (uint32_t i = 0; i < ndevices; i++)
		group->members[i].number = devices[i];
	gs_group_enable_access(group);
	for (uint32_t i = 0; i < ndevices; i++)
		gs_group_open_member(group, i);
	status = group->status;
	if (status != GS_DEVICE_OK)
	{
		gs_device_group_close(group);
		group = NULL;
	}
	*result = group;
	return status;
}

static void
gs_close_stream(cudaStream_t stream)
{
	if (stream != NULL)
		cudaStreamDestroy(stream);
}

static void
gs_close_event(cudaEvent_t event)
{
	if (event != NULL)
		cudaEventDestroy(event);
}

void
gs_device_group_close(GsDeviceGroup *group)
{
	gs_group_wait(group);
	for (uint32_t i = 0; i < group->nmembers; i++)
	{
		GsGroupMember *member = &group->members[i];

		cudaSetDevice(member->number);
		gs_close_stream(member->work);
		gs_close_stream(member->upload);
		gs_close_stream(member->download);
		for (uint32_t j = 0; j < group->nmembers; j++)
		{
			gs_close_stream(member->from[j]);
			gs_close_event(member->copied[j]);
		}
		for (int k = 0; k < 2; k++)
		{
			gs_close_event(member->sorted[k]);
			gs_close_event(member->uploaded[k]);
		}
		for (int slot = 0; slot < GS_GROUP_SLOTS; slot++)
		{
			gs_close_event(member->merged[slot]);
			gs_close_event(member->downloaded[slot]);
		}
	}
	if (group->splits != NULL)
		cudaFreeHost(group->splits);
	delete group;
}

bool
gs_device_group_is_through_host(const GsDeviceGroup *group)
{
	return group->through_host;
}

void
gs_group_wait(GsDeviceGroup *group)
{
	for (uint32_t i = 0; i < group->nmembers; i++)
	{
		GsGroupMember *member = &group->members[i];

		cudaSetDevice(member->number);
		if (member->work != NULL)
			gs_group_check(group, cudaStreamSynchronize(member->work));
		if (member->upload != NULL)
			gs_group_check(group, cudaStreamSynchronize(member->upload));
		if (member->download != NULL)
			gs_group_check(group, cudaStreamSynchronize(member->download));
		for (uint32_t j = 0; j < group->nmembers; j++)
			if (member->from[j] != NULL)
				gs_group_check(group, cudaStreamSynchronize(member->from[j]));
	}
}

void
gs_group_copy(GsDeviceGroup *group, const GsGroupTypes *types, const void *keys_to,
			  const void *values_to, const void *keys_from, const void *values_from,
			  uint64_t nitems, cudaStream_t stream)
{
	if (nitems == 0)
		return;
	gs_group_check(group,
				   cudaMemcpyAsync((void *) keys_to, keys_from, nitems * types->key_bytes,
								   cudaMemcpyDefault, stream));
	if (types->value_bytes > 0)
		gs_group_check(group,
					   cudaMemcpyAsync((void *) values_to, values_from,
									   nitems * types->value_bytes, cudaMemcpyDefault, stream));
}

bool
gs_group_types_are_right(const GsGroupTypes *types)
{
	return (types->key_bytes == 4 || types->key_bytes == 8) &&
		(types->value_bytes == 0 || types->value_bytes == 4 || types->value_bytes == 8) &&
		types->begin_bit < types->end_bit && types->end_bit <= 8 * types->key_bytes;
}
