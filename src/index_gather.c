/*-------------------------------------------------------------------------
 *
 * index_gather.c
 *	  The entries that workers of an index build have sorted, on their way to the leader.
 *
 * They travel as those of PostgreSQL's own builds do: as sorted runs in files that all may open,
 * which the leader merges; by keys here (sort_spill.h).  It makes runs of its own entries,
 * too.  Where all entries are in one job of a device there is nothing to
 * gather (index_parallel.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index_gather.h"
#include "sort_room.h"

struct GsIndexGather
{
	SharedFileSet files;
	int			nworkers;
	GsSharedRuns runs[FLEXIBLE_ARRAY_MEMBER];	/* of each; none yet: no rows */
};

Size
gs_index_gather_bytes(int nworkers)
{
	return add_size(offsetof(GsIndexGather, runs), mul_size(sizeof(GsSharedRuns), nworkers));
}

void
gs_index_gather_init(GsIndexGather *gather, int nworkers, dsm_segment *segment)
{
	memset(gather, 0, gs_index_gather_bytes(nworkers));
	gather->nworkers = nworkers;
	SharedFileSetInit(&gather->files, segment);
}

void
gs_index_gather_attach(GsIndexGather *gather, dsm_segment *segment)
{
	SharedFileSetAttach(&gather->files, segment);
}

GsRunFiles
gs_index_gather_files(GsIndexGather *gather, int worker)
{
	return (GsRunFiles) {.set = &gather->files,.owner = worker};
}

bool
gs_index_gather_put(GsIndexGather *gather, int worker, GsSortState *sort)
{
	return sort->nread == 0 ||
		gs_sort_share_runs(sort, &gather->runs[worker]) == GS_STATUS_OK;
}

/* Workers write theirs meanwhile, if they have any, which is as good as sure without a device. */
bool
gs_index_gather_prepare(GsSortState *sort)
{
	return sort->nread == 0 ||
		(sort->phase == GS_SORT_ENGINE && gs_sort_is_device(sort->engine)) ||
		gs_sort_make_runs(sort) == GS_STATUS_OK;
}

bool
gs_index_gather_merge(GsIndexGather *gather, GsSortState *sort)
{
	GsRunFiles *where = palloc(sizeof(GsRunFiles) * gather->nworkers);
	GsStatus	status;

	for (int i = 0; i < gather->nworkers; i++)
		where[i] = gs_index_gather_files(gather, i);
	status = gs_sort_merge_shared(sort, gather->runs, where, gather->nworkers);
	pfree(where);
	return status == GS_STATUS_OK;
}
