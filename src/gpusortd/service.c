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

#include "common/basics.h"
#include "common/device_table.h"

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
	gs_list_init(&service->shared);
	slot->kind = device->kind;
	memcpy(slot->name, device->name, sizeof(slot->name));
	device->ops->memory(device, &free_bytes, &total_bytes);
	slot->memory_total = total_bytes;
	slot->memory_limit = pool->limit;
	slot->turn_us = 0;
	gs_service_publish(service);
	service->epoll = epoll_create1(EPOLL_CLOEXEC);
	return service->epoll >= 0;
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
gs_service_publish(GsService *service)
{
	GsDeviceSlot *slot = service->slot;

	atomic_store_explicit(&slot->used, service->pool->used, memory_order_relaxed);
	atomic_store_explicit(&slot->reserved, gs_device_pool_reserved(service->pool),
						  memory_order_relaxed);
	atomic_store_explicit(&slot->jobs_done, service->jobs_done, memory_order_relaxed);
	atomic_store_explicit(&slot->njobs, service->njobs, memory_order_relaxed);
	atomic_store_explicit(&slot->nwaiting, service->nwaiting, memory_order_relaxed);
}

/* How long the current turn of the loop has taken; 0: the loop waits. */
static uint32_t
stalled_ms(uint64_t turn_us)
{
	uint64_t	now = gs_clock_us();

	return turn_us == 0 || now < turn_us ? 0 :
		(uint32_t) Min((now - turn_us) / 1000, UINT32_MAX);
}

GsWelcome
gs_service_welcome(const GsDeviceSlot *slot)
{
	GsWelcome	welcome = {
		.message = {.type = GS_MESSAGE_WELCOME,.nbytes = sizeof(GsWelcome)},
		.version = GS_WIRE_VERSION,
		.device_kind = slot->kind,
		.memory_total = atomic_load(&slot->memory_total),
		.memory_limit = atomic_load(&slot->memory_limit),
		.memory_used = atomic_load(&slot->used),
		.memory_lent = gs_device_lent(slot),
		.memory_reserved = atomic_load(&slot->reserved),
		.njobs = atomic_load(&slot->njobs),
		.nwaiting = atomic_load(&slot->nwaiting),
		.jobs_done = atomic_load(&slot->jobs_done),
		.pid = (uint32_t) getpid(),
		.stalled_ms = stalled_ms(atomic_load(&slot->turn_us))
	};

	memcpy(welcome.device_name, slot->name, sizeof(welcome.device_name));
	return welcome;
}

bool
gs_service_watch(int epoll, int fd, void *data)
{
	struct epoll_event event = {.events = EPOLLIN,.data.ptr = data};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}
