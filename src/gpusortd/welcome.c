/*-------------------------------------------------------------------------
 *
 * welcome.c
 *	  The status of the daemon, as WELCOME reports it.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/welcome.h"

#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/device_loan.h"
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
gs_welcome_of(const GsDeviceSlot *slot)
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
