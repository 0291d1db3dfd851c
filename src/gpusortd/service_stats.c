/*-------------------------------------------------------------------------
 *
 * service_stats.c
 *	  How the service is, as WELCOME says it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/service_stats.h"

#include <string.h>
#include <unistd.h>

#include "common/clock.h"

#define Min(a, b)		((a) < (b) ? (a) : (b))

/* For how long the loop has been busy with one thing; 0: it is not. */
static uint32_t
stalled_ms(uint64_t turn_us)
{
	uint64_t	now = gs_clock_us();

	return turn_us == 0 || now < turn_us ? 0 :
		(uint32_t) Min((now - turn_us) / 1000, UINT32_MAX);
}

GsWelcome
gs_service_stats_welcome(GsServiceStats *figures)
{
	GsWelcome	welcome = {
		.message = {.type = GS_MESSAGE_WELCOME,.nbytes = sizeof(GsWelcome)},
		.version = GS_WIRE_VERSION,
		.device_kind = figures->device_kind,
		.memory_total = figures->memory_total,
		.memory_limit = figures->memory_limit,
		.memory_used = atomic_load(&figures->memory_used),
		.memory_reserved = atomic_load(&figures->memory_reserved),
		.njobs = atomic_load(&figures->njobs),
		.nwaiting = atomic_load(&figures->nwaiting),
		.jobs_done = atomic_load(&figures->jobs_done),
		.pid = (uint32_t) getpid(),
		.stalled_ms = stalled_ms(atomic_load(&figures->turn_us))
	};

	memcpy(welcome.device_name, figures->device_name, sizeof(welcome.device_name));
	return welcome;
}
