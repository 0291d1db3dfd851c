/*-------------------------------------------------------------------------
 *
 * index_gather.c
 *	  The entries that workers of an index build have sorted, on their way to the leader.
 *
 * They travel as those of PostgreSQL's own builds do: as sorted runs in files that all may open,
 * which the leader merges; by keys here (run_set.h).  It makes runs of its own entries,
 * too.  Where all entries are in one job of a device there is nothing to gather
 * (index_parallel.c).
 *
 * Keys of two processes can be merged if they are of the same form (key_encoder.h).  If not, for
 * one has met values that are better compared, or none that was out of order, all are merged by
 * comparisons.
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
