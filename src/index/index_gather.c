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
#include "sort/sort_place.h"

#include "miscadmin.h"

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

/* ------------------------------------------------------------------ own runs */

/* Writes the rows of a tuplesort as a run. */
static void
write_tuplesort_run(GsSortState *sort)
{
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		gs_fallback_get(&sort->fallback, true, sort->slot);
		if (TupIsNull(sort->slot))
			break;
		gs_run_set_write_tuple(sort->spill, ((MinimalTupleTableSlot *) sort->slot)->mintuple);
	}
	gs_fallback_end(&sort->fallback);
}

/* Makes runs of all rows of a performed sort, none of which was returned.  False: they are lost. */
static bool
make_runs(GsSortState *sort)
{
	if (sort->nread == 0)
		sort->presorted = false; /* without rows the form of the keys is not known */
	gs_sort_begin_runs(sort);
	if (sort->phase == GS_SORT_FALLBACK)
		write_tuplesort_run(sort);
	else if (sort->phase == GS_SORT_ENGINE && gs_sort_append_run(sort) != GS_STATUS_OK)
		return false;
	if (sort->engine != NULL)
		gs_engine_close(sort->engine);
	sort->engine = NULL;
	sort->window_rows = 0;
	sort->phase = GS_SORT_MERGE;
	return true;
}

bool
gs_index_gather_emit(GsIndexGather *gather, int worker, GsSortState *sort)
{
	GsSharedRuns *runs = &gather->runs[worker];

	if (sort->nread == 0)
		return true;
	if (!make_runs(sort))
		return false;
	gs_run_set_share(sort->spill, runs);
	if (gs_run_set_has_keys(sort->spill))
	{
		runs->form = gs_key_encoder_fingerprint(sort->key);
		runs->first_tied = gs_key_encoder_first_tied(sort->key);
	}
	runs->nread = sort->nread;
	return true;
}

bool
gs_index_gather_prepare(GsSortState *sort)
{
	/* meanwhile the workers write theirs; without a device they almost certainly have some */
	return sort->nread == 0 ||
		(sort->phase == GS_SORT_ENGINE && gs_sort_is_device(sort->engine)) || make_runs(sort);
}

/* ---------------------------------------------------------- runs of workers */

/* Prepares a merge of runs by keys, or by comparisons of rows if the keys have another form. */
static void
match_keys(GsSortState *sort, const GsSharedRuns *runs)
{
	GsMergeOrder order;

	if (gs_run_set_has_keys(sort->spill) && runs->layout.ncolumns > 0 &&
		runs->form == gs_key_encoder_fingerprint(sort->key))
	{
		gs_key_layout_merge(gs_key_encoder_layout(sort->key), &runs->layout);
		if (runs->first_tied >= 0)
		{
			gs_key_encoder_tie_from(sort->key, runs->first_tied);
			gs_sort_compare_ties(sort);
		}
		return;
	}
	order = gs_sort_compared_order(sort);
	gs_run_set_drop_keys(sort->spill, &order);
}

bool
gs_index_gather_merge(GsIndexGather *gather, GsSortState *sort)
{
	if (sort->phase != GS_SORT_MERGE && !make_runs(sort))
		return false;
	for (int i = 0; i < gather->nworkers; i++)
	{
		const GsSharedRuns *runs = &gather->runs[i];
		const GsRunFiles where = gs_index_gather_files(gather, i);

		if (runs->nread == 0)
			continue;
		match_keys(sort, runs);
		gs_run_set_adopt(sort->spill, runs, &where);
		sort->nread += runs->nread;
	}
	gs_sort_begin_merge(sort);
	return true;
}
