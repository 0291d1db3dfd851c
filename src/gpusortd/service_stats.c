/*-------------------------------------------------------------------------
 *
 * service_stats.c
 *	  The status of gpusortd, as WELCOME reports it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/service_stats.h"

#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/min_max.h"

/* How long the current turn of the loop has taken; 0: the loop waits. */
static uint32_t
stalled_ms(uint64_t turn_us)
{
	uint64_t	now = gs_clock_us();

	return turn_us == 0 || now < turn_us ? 0 :
		(uint32_t) Min((now - turn_us) / 1000, UINT32_MAX);
}

GsWelcome
gs_service_stats_welcome(GsServiceStats *stats)
{
	GsWelcome	welcome = {
		.message = {.type = GS_MESSAGE_WELCOME,.nbytes = sizeof(GsWelcome)},
		.version = GS_WIRE_VERSION,
		.device_kind = stats->device_kind,
		.memory_total = stats->memory_total,
		.memory_limit = stats->memory_limit,
		.memory_used = atomic_load(&stats->memory_used),
		.memory_reserved = atomic_load(&stats->memory_reserved),
		.njobs = atomic_load(&stats->njobs),
		.nwaiting = atomic_load(&stats->nwaiting),
		.jobs_done = atomic_load(&stats->jobs_done),
		.pid = (uint32_t) getpid(),
		.stalled_ms = stalled_ms(atomic_load(&stats->turn_us))
	};

	memcpy(welcome.device_name, stats->device_name, sizeof(welcome.device_name));
	return welcome;
}
