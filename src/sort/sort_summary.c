/*-------------------------------------------------------------------------
 *
 * sort_summary.c
 *	  How a sort was sorted, in words: for EXPLAIN, and for the log.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "sort/sort_summary.h"

#include "mb/pg_wchar.h"

static const char *
method_name(GsMethod method)
{
	switch (method)
	{
		case GS_METHOD_PRESORTED:
			return "presorted";
		case GS_METHOD_REVERSED:
			return "reversed";
		case GS_METHOD_RADIX:
			return "radix sort";
		case GS_METHOD_WARP_MERGE:
		default:
			return "merge sort";
	}
}

const char *
gs_sort_engine_reason(const GsSortState *state)
{
	if (state->store.phase == GS_SORT_FALLBACK)
		return state->store.fallback_reason;
	return gpusort_engine == GS_ENGINE_CUDA || state->input.restarted ? state->store.device_reason :
		NULL;
}

/* Are the rows of this process in its engine, although they are merged with those of others? */
static bool
is_merged_from_engine(const GsSortState *state)
{
	return state->store.phase == GS_SORT_RUNS && state->store.engine != NULL;
}

void
gs_sort_summarize(const GsSortState *state, GsSortSummary *summary)
{
	const char *reason = gs_sort_engine_reason(state);

	memset(summary, 0, sizeof(*summary));
	summary->any = true;
	summary->nrows = state->store.nrows;
	summary->nsent = state->participants.nsent;
	if (state->store.phase == GS_SORT_FEW)
	{
		strlcpy(summary->method, "insertion sort", sizeof(summary->method));
		strlcpy(summary->engine, "none", sizeof(summary->engine));
		summary->kilobytes = (gs_few_bytes(state->store.few) + 1023) / 1024;
	}
	else if (state->store.phase == GS_SORT_ENGINE || is_merged_from_engine(state))
	{
		const GsEngineStats *stats = gs_engine_stats(state->store.engine);

		snprintf(summary->method, sizeof(summary->method), "%s%s",
				 state->store.top.dropped > 0 ? "top-N " : "", method_name(stats->method));
		strlcpy(summary->engine, stats->engine, sizeof(summary->engine));
		summary->devices = stats->devices;
		summary->kilobytes = (stats->peak_bytes + 1023) / 1024;
	}
	else if (state->store.phase == GS_SORT_RUNS)
	{
		const GsRunSetStats *stats = gs_run_set_stats(state->store.runs);

		summary->nrows = stats->nrows + state->store.nnulls;	/* although it may not return them */
		strlcpy(summary->method, "external merge", sizeof(summary->method));
		strlcpy(summary->engine, stats->device != NULL ? "cuda" : "cpu", sizeof(summary->engine));
		summary->devices = stats->devices;
		summary->kilobytes = (stats->disk_bytes + 1023) / 1024;
		summary->on_disk = true;
	}
	else
	{
		TuplesortInstrumentation stats;

		tuplesort_get_stats(state->store.fallback.state, &stats);
		strlcpy(summary->method, tuplesort_method_name(stats.sortMethod), sizeof(summary->method));
		strlcpy(summary->engine, "postgres", sizeof(summary->engine));
		summary->kilobytes = stats.spaceUsed;
		summary->on_disk = stats.spaceType == SORT_SPACE_TYPE_DISK;
	}
	if (reason != NULL && strcmp(summary->engine, "cuda") != 0)
		memcpy(summary->reason, reason,
			   pg_mbcliplen(reason, strlen(reason), sizeof(summary->reason) - 1));
}
