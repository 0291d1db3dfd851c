/*-------------------------------------------------------------------------
 *
 * service.c
 *	  What all connections share.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/service.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

bool
gs_service_open(GsService *service, GsDevice *device, GsDevicePool *pool, GsParkFile *disk)
{
	GsServiceStats *figures = &service->figures;
	uint64_t	free_bytes;

	service->device = device;
	service->pool = pool;
	service->disk = disk;
	gs_list_init(&service->all);
	gs_list_init(&service->active);
	gs_list_init(&service->idle);
	gs_list_init(&service->waiting);
	figures->device_kind = device->kind;
	memcpy(figures->device_name, device->name, sizeof(figures->device_name));
	device->ops->memory(device, &free_bytes, &figures->memory_total);
	figures->memory_limit = gs_device_pool_limit(pool);
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
gs_service_broke(GsService *service, const char *text)
{
	if (service->device_failed)
		return;
	service->device_failed = true;
	snprintf(service->device_error, sizeof(service->device_error), "%s", text);
}

void
gs_service_look(GsService *service)
{
	if (service->device->error[0] != '\0')
		gs_service_broke(service, service->device->error);
}

void
gs_service_publish(GsService *service)
{
	GsServiceStats *figures = &service->figures;

	atomic_store_explicit(&figures->memory_used, gs_device_pool_used(service->pool),
						  memory_order_relaxed);
	atomic_store_explicit(&figures->memory_reserved, gs_device_pool_reserved(service->pool),
						  memory_order_relaxed);
	atomic_store_explicit(&figures->jobs_done, service->jobs_done, memory_order_relaxed);
	atomic_store_explicit(&figures->njobs, service->njobs, memory_order_relaxed);
	atomic_store_explicit(&figures->nwaiting, service->nwaiting, memory_order_relaxed);
}
