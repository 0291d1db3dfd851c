/*-------------------------------------------------------------------------
 *
 * sort_stats.c
 *	  What a sort tells the statistics and the log.
 *
 * A sort is counted when its rows are sorted, because nobody may ever read them to the end; an
 * index build when the index is written (gs_build_sort_report()).  What is known later, which is
 * the time of the output and the bytes that a device returned, is added when the sort ends in good
 * order.  Bytes of temporary files are counted as they are written (run_file.c), and failures where
 * they are noticed.
 *
 * Few rows that need no engine are counted, but neither timed nor shown: reading the clock
 * twice would take a twentieth of the time of such a sort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/basics.h"
#include "guc.h"
#include "sort/sort_stats.h"
#include "sort/sort_summary.h"

#include "lib/stringinfo.h"

/* The memory context of the sort is reset: if the sort has not ended before, an ERROR ends it. */
static void
notice_reset(void *arg)
{
	GsSortStats *stats = arg;

	if (!stats->active)
		return;
	stats->active = false;
	gs_stats_end_activity(&stats->activity);
	if (stats->activity.step != GS_STEP_OUTPUT || stats->activity.of_index)
		gs_stats_add(GS_STAT_ABORTED, 1);
}

void
gs_sort_stats_begin(GsSortState *state)
{
	GsSortStats *stats = &state->stats;
	const uint64 now = gs_clock_us();

	if (state->spec.of_ties)
		return;
	*stats = (GsSortStats) {
		.activity = {.of_index = state->spec.of_index,.start_us = now},
			.active = true,
			.step_start_us = now,
			.callback = {.func = notice_reset,.arg = stats}
	};
	MemoryContextRegisterResetCallback(state->store.context, &stats->callback);
	gs_stats_begin_activity(&stats->activity);
}

GsSorter
gs_sort_sorter(const GsSortState *state)
{
	const GsStore *store = &state->store;

	if (store->phase == GS_STORE_FALLBACK)
		return GS_SORTER_POSTGRES;
	if (gs_store_is_on_device(store) || state->participants.nsent > 0 ||
		(store->runs != NULL && gs_run_set_stats(store->runs)->device != NULL))
		return GS_SORTER_DEVICE;
	return store->phase == GS_STORE_ENGINE || store->phase == GS_STORE_RUNS ?
		GS_SORTER_CPU : GS_SORTER_NONE;
}

void
gs_sort_stats_show(GsSortState *state)
{
	GsActivity *activity = &state->stats.activity;

	if (!state->stats.active)
		return;
	activity->nrows = state->store.nread;
	activity->sorter = gs_sort_sorter(state);
	activity->devices = gs_store_is_on_device(&state->store) ? state->store.engine->stats.devices :
		0;
	gs_stats_show_activity(activity);
}

/* Ends a step. */
static void
end_step(GsSortStats *stats)
{
	const uint64 now = gs_clock_us();

	stats->us[stats->activity.step] += now - stats->step_start_us;
	stats->step_start_us = now;
}

void
gs_sort_stats_begin_step(GsSortState *state, GsSortStep step)
{
	GsSortStats *stats = &state->stats;

	end_step(stats);
	stats->activity.step = step;
	gs_sort_stats_show(state);
}

/* Are all its rows in the sort of another participant of the plan? */
static bool
has_sent_all(const GsSortState *state)
{
	return state->participants.nsent > 0 && state->store.nread == 0;
}

/* The temporary files of a tuplesort. */
static void
count_fallback(GsSortState *state)
{
	TuplesortInstrumentation stats;

	tuplesort_get_stats(state->store.fallback, &stats);
	if (stats.spaceType == SORT_SPACE_TYPE_DISK)
		gs_stats_add(GS_STAT_TEMP_BYTES, (uint64) stats.spaceUsed * 1024);
}

void
gs_sort_stats_sorted(GsSortState *state)
{
	GsSortStats *stats = &state->stats;
	GsSortGroups *groups = state->spec.groups;

	gs_sort_stats_begin_step(state, GS_STEP_OUTPUT);
	if (groups != NULL)
	{
		groups->input_us += stats->us[GS_STEP_INPUT];
		groups->sort_us += stats->us[GS_STEP_SORT];
	}
	if (state->spec.of_ties)
		return;
	if (!state->spec.of_index && !has_sent_all(state) && (groups == NULL || groups->nbatches == 1))
		gs_stats_add(GS_STAT_SORTS_SMALL + stats->activity.sorter, 1);
	gs_stats_add(GS_STAT_ROWS, state->store.nread);
	gs_stats_add(GS_STAT_INPUT_US, stats->us[GS_STEP_INPUT]);
	gs_stats_add(GS_STAT_SORT_US, stats->us[GS_STEP_SORT]);
	if (state->store.phase == GS_STORE_FALLBACK)
		count_fallback(state);
}

void
gs_sort_stats_end(GsSortState *state)
{
	GsSortStats *stats = &state->stats;

	if (!stats->active)
		return;
	stats->active = false;
	gs_stats_end_activity(&stats->activity);
	if (state->store.runs != NULL)
		gs_stats_add(GS_STAT_REPAIRS, gs_run_set_stats(state->store.runs)->nrepaired);
	end_step(stats);
	if (stats->activity.step == GS_STEP_OUTPUT)
		gs_stats_add(GS_STAT_OUTPUT_US, stats->us[GS_STEP_OUTPUT]);
}

/* ---------------------------------------------------------------------- log */

/*
 * Whoever asks for the rows of a node takes time, too, so only the output of an index build counts.
 */
static uint64
duration_us(const GsSortState *state)
{
	const GsSortStats *stats = &state->stats;
	const GsSortGroups *groups = state->spec.groups;

	if (groups != NULL)
		return groups->input_us + groups->sort_us;
	return stats->us[GS_STEP_INPUT] + stats->us[GS_STEP_SORT] + stats->us[GS_STEP_OUTPUT];
}

bool
gs_sort_is_slow(const GsSortState *state)
{
	const GsSortGroups *groups = state->spec.groups;

	if (gpusort_log_min_duration < 0)
		return false;
	if (groups != NULL ? !groups->at_end :
		state->store.phase == GS_STORE_FEW || has_sent_all(state))
		return false;
	return duration_us(state) >= (uint64) gpusort_log_min_duration * 1000;
}

/* Why no device sorted; NULL: one did, or none was asked. */
static const char *
why_no_device(const GsSortState *state)
{
	if (state->stats.activity.sorter == GS_SORTER_DEVICE)
		return NULL;
	return state->store.phase == GS_STORE_FALLBACK ? state->store.fallback_reason :
		state->store.device_reason;
}

void
gs_sort_log_duration(const GsSortState *state, const char *of_what)
{
	const GsSortGroups *groups = state->spec.groups;
	const uint64 input_us = groups != NULL ? groups->input_us : state->stats.us[GS_STEP_INPUT];
	const uint64 sort_us = groups != NULL ? groups->sort_us : state->stats.us[GS_STEP_SORT];
	const uint64 nrows = groups != NULL ? groups->nrows : state->store.nread;
	const double ms = duration_us(state) / 1000.0;
	const char *why_not = why_no_device(state);
	GsSortSummary summary;
	StringInfoData detail;

	if (groups != NULL)
		summary = groups->largest;
	else
		gs_sort_summarize(state, &summary);
	initStringInfo(&detail);
	appendStringInfo(&detail,
					 "Engine: %s, method: %s, %s: " INT64_FORMAT " kB, input: %.3f ms, sort: %.3f ms",
					 summary.engine, summary.method, summary.on_disk ? "disk" : "memory",
					 summary.kilobytes,
					 input_us / 1000.0, sort_us / 1000.0);
	if (state->spec.of_index)
		appendStringInfo(&detail, ", output: %.3f ms", state->stats.us[GS_STEP_OUTPUT] / 1000.0);
	if (why_not != NULL)
		appendStringInfo(&detail, ", device not used: %s", why_not);
	/* the client may be a user of a function or view whose tables it may not read */
	ereport(LOG_SERVER_ONLY,
			(state->spec.of_index ?
			 errmsg("gpusort built index %s of " UINT64_FORMAT " rows in %.3f ms", of_what, nrows,
					ms) :
			 errmsg("gpusort sorted " UINT64_FORMAT " rows by %s in %.3f ms", nrows, of_what, ms),
			 errdetail_internal("%s.", detail.data)));
	pfree(detail.data);
}
