/*-------------------------------------------------------------------------
 *
 * share_gather.c
 *	  Rows that several processes have sorted, as runs that all of them can read.
 *
 * As in PostgreSQL's own index builds, a participant leaves them as sorted runs in files
 * that all processes can open.  Then the leader merges all runs, or each participant a
 * range of them; unlike in PostgreSQL by their keys (run_set.h).  If all rows are in one
 * job of a device, there is nothing to merge.
 *
 * Keys of two processes can be merged if they have the same form (key_encoder.h).  If
 * not, because one process has met values that are better compared, or none that was
 * out of order, all runs are merged by comparisons.
 *
 * Files are deleted with the parallel context, also after errors.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "share/share_gather.h"
#include "store/store_runs.h"

struct GsSortGather
{
	dsm_handle	segment;
	SharedFileSet files;
	int			nparticipants;
	GsSharedRuns runs[FLEXIBLE_ARRAY_MEMBER];	/* of each; rows.nread = 0: none */
};

Size
gs_sort_gather_bytes(int nparticipants)
{
	return add_size(offsetof(GsSortGather, runs), mul_size(sizeof(GsSharedRuns), nparticipants));
}

void
gs_sort_gather_init(GsSortGather *gather, int nparticipants, dsm_segment *segment)
{
	memset(gather, 0, gs_sort_gather_bytes(nparticipants));
	gather->nparticipants = nparticipants;
	gather->segment = dsm_segment_handle(segment);
	SharedFileSetInit(&gather->files, segment);
}

void
gs_sort_gather_attach(GsSortGather *gather)
{
	SharedFileSetAttach(&gather->files, dsm_find_mapping(gather->segment));
}

SharedFileSet *
gs_sort_gather_file_set(GsSortGather *gather)
{
	return &gather->files;
}

GsRunPlace
gs_sort_gather_files(GsSortGather *gather, int participant)
{
	return (GsRunPlace) {.set = &gather->files,.owner = participant};
}

bool
gs_sort_gather_emit(GsSortGather *gather, int participant, GsStore *store)
{
	if (store->nread == 0)
		return true;
	if (!gs_store_make_runs(store))
		return false;
	gs_store_share_runs(store, &gather->runs[participant]);
	return true;
}

bool
gs_sort_gather_adopt(GsSortGather *gather, int participant, GsStore *store)
{
	if (!gs_store_make_runs(store))
		return false;
	for (int i = 0; i < gather->nparticipants; i++)
	{
		const GsSharedRuns *shared = &gather->runs[i];
		const GsRunPlace where = gs_sort_gather_files(gather, i);

		if (i != participant && shared->rows.nread > 0)
			gs_store_adopt_runs(store, shared, &where);
	}
	return true;
}

uint64
gs_sort_gather_run_bytes(const GsSortGather *gather)
{
	uint64		nbytes = 0;

	for (int i = 0; i < gather->nparticipants; i++)
	{
		const GsSharedRuns *shared = &gather->runs[i];

		for (int k = 0; k < shared->nruns; k++)
			nbytes += shared->runs[k].nbytes;
	}
	return nbytes;
}
