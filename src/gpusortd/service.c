/*-------------------------------------------------------------------------
 *
 * service.c
 *	  The state that all connections share.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/service.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

bool
gs_service_open(GsService *service, GsDevice *device, GsDevicePool *pool,
				GsParkFolder *park_folder, GsDeviceSlot *slot)
{
	uint64_t	free_bytes;
	uint64_t	total_bytes = 0;

	service->device = device;
	service->slot = slot;
	service->pool = pool;
	service->park_folder = park_folder;
	gs_list_init(&service->all);
	gs_list_init(&service->active);
	gs_list_init(&service->idle);
	gs_list_init(&service->waiting);
	slot->kind = device->kind;
	memcpy(slot->name, device->name, sizeof(slot->name));
	device->ops->memory(device, &free_bytes, &total_bytes);
	slot->memory_total = total_bytes;
	slot->memory_limit = gs_device_pool_limit(pool);
	slot->turn_us = 0;
	gs_service_publish(service);
	service->epoll = epoll_create1(EPOLL_CLOEXEC);
	return service->epoll >= 0;
}

void
gs_service_close(GsService *service)
{
	if (service->epoll >= 0)
		close(service->epoll);
	service->epoll = -1;
}

void
gs_service_fail_device(GsService *service, const char *text)
{
	if (service->device_failed)
		return;
	service->device_failed = true;
	snprintf(service->device_error, sizeof(service->device_error), "%s", text);
}

void
gs_service_check_device(GsService *service)
{
	if (service->device->error[0] != '\0')
		gs_service_fail_device(service, service->device->error);
}

void
gs_service_publish(GsService *service)
{
	GsDeviceSlot *slot = service->slot;

	atomic_store_explicit(&slot->used, gs_device_pool_used(service->pool), memory_order_relaxed);
	atomic_store_explicit(&slot->reserved, gs_device_pool_reserved(service->pool),
						  memory_order_relaxed);
	atomic_store_explicit(&slot->jobs_done, service->jobs_done, memory_order_relaxed);
	atomic_store_explicit(&slot->njobs, service->njobs, memory_order_relaxed);
	atomic_store_explicit(&slot->nwaiting, service->nwaiting, memory_order_relaxed);
}
