/*-------------------------------------------------------------------------
 *
 * sort_summary.c
 *	  Describes a sort whose rows were sorted, for EXPLAIN and the log.
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

static const char *
engine_reason(const GsSortState *state)
{
	if (state->store.phase == GS_STORE_FALLBACK)
		return state->store.fallback_reason;
	return gpusort_engine == GS_ENGINE_CUDA || state->input.restarted ? state->store.device_reason :
		NULL;
}

void
gs_sort_summarize(const GsSortState *state, GsSortSummary *summary)
{
	const GsStore *store = &state->store;
	const char *reason = engine_reason(state);
	const char *prefix = "";
	const char *method;
	const char *engine;

	memset(summary, 0, sizeof(*summary));
	summary->any = true;
	summary->nrows = store->nrows;
	summary->nsent = state->participants.nsent;
	if (store->phase == GS_STORE_FEW)
	{
		method = "insertion sort";
		engine = "none";
		summary->kilobytes = (gs_few_bytes(store->few) + 1023) / 1024;
	}
	/* with runs if the rows of the engine are merged with those of other processes */
	else if (store->phase == GS_STORE_ENGINE ||
			 (store->phase == GS_STORE_RUNS && store->engine != NULL))
	{
		const GsEngineStats *stats = gs_engine_stats(store->engine);

		prefix = store->top.dropped > 0 ? "top-N " : "";
		method = method_name(stats->method);
		engine = stats->engine;
		summary->devices = stats->devices;
		summary->kilobytes = (stats->peak_bytes + 1023) / 1024;
	}
	else if (store->phase == GS_STORE_RUNS)
	{
		const GsRunSetStats *stats = gs_run_set_stats(store->runs);

		method = "external merge";
		engine = stats->device != NULL ? "cuda" : "cpu";
		/* although it may not return them */
		summary->nrows = stats->nrows + store->nnulls + store->ndropped;
		summary->devices = stats->devices;
		summary->kilobytes = (stats->disk_bytes + 1023) / 1024;
		summary->on_disk = true;
	}
	else
	{
		TuplesortInstrumentation stats;

		tuplesort_get_stats(store->fallback, &stats);
		method = tuplesort_method_name(stats.sortMethod);
		engine = "postgres";
		summary->kilobytes = stats.spaceUsed;
		summary->on_disk = stats.spaceType == SORT_SPACE_TYPE_DISK;
	}
	snprintf(summary->method, sizeof(summary->method), "%s%s", prefix, method);
	strlcpy(summary->engine, engine, sizeof(summary->engine));
	if (reason != NULL && strcmp(engine, "cuda") != 0)
		memcpy(summary->reason, reason,
			   pg_mbcliplen(reason, strlen(reason), sizeof(summary->reason) - 1));
}

static void
get_verification(const GsStore *store, GsSortDetails *details)
{
	const GsKeyVerification *verification = &store->order.verification;

	details->verified = gs_key_encoder_facts(store->order.key)->approximate_type ? "Key" :
		"Collation";
	details->ncomparisons = verification->ncomparisons;
	details->nretries = verification->ncorrected;
	details->verification_us = verification->us;
	if (store->runs != NULL)
	{
		details->ncomparisons += gs_run_set_stats(store->runs)->ncomparisons;
		details->nretries += gs_run_set_stats(store->runs)->nrepaired;
	}
}

/* By how many columns rows were sorted, if not by all, and how many tied rows were compared. */
static void
get_ties(const GsSortState *state, uint64 ncompared_by_engine, GsSortDetails *details)
{
	const GsStore *store = &state->store;

	details->nkeyed = gs_key_encoder_layout(store->order.key)->ncolumns;
	details->ncompared = ncompared_by_engine + store->nordered;
	details->shows_keyed = details->nkeyed < state->spec.ncolumns;
	details->shows_compared = details->ncompared > 0 ||
		(details->shows_keyed && gs_store_is_on_device(store));
}

/* Of rows that have keys: how their order was made certain, and what participants did. */
static void
get_values(const GsSortState *state, GsSortDetails *details)
{
	const GsStore *store = &state->store;

	details->ndictionary = gs_key_encoder_dictionary_values(store->order.key);
	if (gs_key_encoder_facts(store->order.key)->mismatch != NULL)
		get_verification(store, details);
	details->wait_us = state->participants.wait_us;
}

void
gs_sort_get_details(const GsSortState *state, GsSortDetails *details)
{
	const GsStore *store = &state->store;

	*details = (GsSortDetails) {
		.nrows = state->spec.ngrouped > 0 ? store->nread : store->nrows,
		.shows_rows = store->phase != GS_STORE_FALLBACK
	};
	if (store->phase != GS_STORE_FEW)
		details->reason = engine_reason(state);
	if (store->phase == GS_STORE_ENGINE)
	{
		details->engine = gs_engine_stats(store->engine);
		details->device = details->engine->device;
		details->devices = details->engine->devices;
		details->ndropped = store->top.dropped;
		if (!store->order.presorted)
			get_ties(state, details->engine->compared_rows, details);
		get_values(state, details);
	}
	else if (store->phase == GS_STORE_RUNS)
	{
		details->runs = gs_run_set_stats(store->runs);
		details->device = details->runs->device;
		details->devices = details->runs->devices;
		if (gs_run_set_has_keys(store->runs))
			get_ties(state, 0, details);
		get_values(state, details);
	}
	else if (store->phase == GS_STORE_FALLBACK && store->order.verification.ncomparisons > 0)
		get_verification(store, details);
}
