/*-------------------------------------------------------------------------
 *
 * index_gather.c
 *	  Passes entries that workers of an index build have sorted to the leader.
 *
 * As in PostgreSQL's own builds, a worker leaves them as sorted runs in files that
 * all processes can open, and the leader merges them; here by their keys (run_set.h).
 * The leader makes runs of its own entries, too.  If all entries are in one job of a
 * device, there is nothing to merge (index_parallel.c).
 *
 * Keys of two processes can be merged if they have the same form (key_encoder.h).  If
 * not, because one process has met values that are better compared, or none that was
 * out of order, all runs are merged by comparisons.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index/index_gather.h"
#include "sort/sort_external.h"

struct GsIndexGather
{
	SharedFileSet files;
	int			nworkers;
	GsSharedRuns runs[FLEXIBLE_ARRAY_MEMBER];	/* of each worker; nread = 0: none */
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

/* --------------------------------------------------------------------- runs */

bool
gs_index_gather_emit(GsIndexGather *gather, int worker, GsSortState *sort)
{
	if (sort->input.nread == 0)
		return true;
	if (!gs_sort_make_runs(sort))
		return false;
	gs_sort_share_runs(sort, &gather->runs[worker]);
	return true;
}

bool
gs_index_gather_prepare(GsSortState *sort)
{
	/* workers write theirs meanwhile, if they have any, which is as good as sure without a device */
	return sort->input.nread == 0 || gs_sort_is_on_device(sort) || gs_sort_make_runs(sort);
}

bool
gs_index_gather_merge(GsIndexGather *gather, GsSortState *sort)
{
	if (!gs_sort_make_runs(sort))
		return false;
	for (int i = 0; i < gather->nworkers; i++)
	{
		const GsRunFiles where = gs_index_gather_files(gather, i);

		if (gather->runs[i].nread > 0)
			gs_sort_adopt_runs(sort, &gather->runs[i], &where);
	}
	gs_sort_begin_merge(sort);
	return true;
}
