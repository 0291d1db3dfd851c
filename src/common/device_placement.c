/*-------------------------------------------------------------------------
 *
 * device_placement.c
 *	  Which device does a job.
 *
 * The best device is, in this order, one that
 *
 *	  - has the most of the memory that the job expects; so the job need not wait
 *	  - has the fewest jobs
 *	  - has a connection of this process already
 *
 * and the next one from a number that depends on the process.  A new connection takes
 * some milliseconds, as long as a small sort, so one job more does not count at a
 * device that has a connection.
 *
 *-------------------------------------------------------------------------
 */
#include "common/device_placement.h"

#include "common/device_loan.h"
#include "common/min_max.h"

/* How good a device is. */
typedef struct Merit
{
	uint64_t	space;			/* that the job would get at once */
	uint32_t	njobs;
	bool		is_kept;
} Merit;

static Merit
merit_of(const GsDeviceTable *table, int device, const GsPlacementRequest *request)
{
	const GsDeviceSlot *slot = &table->slots[device];
	Merit		merit = {
		.space = Min(request->expected_bytes, gs_device_left(slot)),
		.njobs = slot->njobs + slot->nwaiting,
		.is_kept = (request->kept & GS_DEVICE_BIT(device)) != 0
	};

	if (merit.is_kept && merit.njobs > 0)
		merit.njobs--;
	return merit;
}

static bool
is_better(const Merit *merit, const Merit *than)
{
	if (merit->space != than->space)
		return merit->space > than->space;
	if (merit->njobs != than->njobs)
		return merit->njobs < than->njobs;
	return merit->is_kept && !than->is_kept;
}

static bool
is_candidate(const GsDeviceTable *table, int device, const GsPlacementRequest *request)
{
	const GsDeviceSlot *slot = &table->slots[device];

	return slot->state == GS_DEVICE_RUNNING && (request->excluded & GS_DEVICE_BIT(device)) == 0 &&
		(slot->kind == GS_DEVICE_KIND_CUDA || !request->only_cuda);
}

int
gs_device_place(const GsDeviceTable *table, const GsPlacementRequest *request)
{
	int			candidates[GS_MAX_DEVICES];
	uint32_t	ncandidates = 0;
	int			best = -1;
	Merit		best_merit;

	for (int device = 0; device < GS_MAX_DEVICES; device++)
		if (is_candidate(table, device, request))
			candidates[ncandidates++] = device;
	for (uint32_t i = 0; i < ncandidates; i++)
	{
		int			device = candidates[(i + request->seed % ncandidates) % ncandidates];
		Merit		merit = merit_of(table, device, request);

		if (best < 0 || is_better(&merit, &best_merit))
		{
			best = device;
			best_merit = merit;
		}
	}
	return best;
}
