/*-------------------------------------------------------------------------
 *
 * node_explain.c
 *	  What EXPLAIN shows of a GpuSort.
 *
 * The Sort Key must read as below a Sort, since people and tests compare plans.
 * PostgreSQL does not export its code for that, so this is another implementation of
 * the documented behavior: the expression, then COLLATE if the collation is not
 * that of the type, DESC or USING if the operator is not the type's "<", and NULLS
 * FIRST/LAST if it is not what the direction implies.
 *
 * With ANALYZE, it shows all statistics of this process, and some of each worker, which
 * sort_summary.c describes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "node/node_gpusort.h"
#include "pg_compat.h"
#include "sort/sort_summary.h"

#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/tlist.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
#include "utils/typcache.h"

static char *
describe_column(const GsSortColumn *column, Expr *expr, List *context, bool use_prefix)
{
	StringInfoData buf;
	Oid			type = exprType((Node *) expr);
	TypeCacheEntry *order = lookup_type_cache(type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	bool		descending = false;

	initStringInfo(&buf);
	appendStringInfoString(&buf, deparse_expression((Node *) expr, context, use_prefix, true));

	if (OidIsValid(column->collation) && column->collation != get_typcollation(type))
	{
		char	   *name = get_collation_name(column->collation);

		if (name == NULL)
			elog(ERROR, "cache lookup failed for collation %u", column->collation);
		appendStringInfo(&buf, " COLLATE %s", quote_identifier(name));
	}

	if (column->sort_operator == order->gt_opr)
	{
		descending = true;
		appendStringInfoString(&buf, " DESC");
	}
	else if (column->sort_operator != order->lt_opr)
	{
		char	   *name = get_opname(column->sort_operator);

		if (name == NULL)
			elog(ERROR, "cache lookup failed for operator %u", column->sort_operator);
		appendStringInfo(&buf, " USING %s", name);
		(void) get_equality_op_for_ordering_op(column->sort_operator, &descending);
	}

	if (column->nulls_first != descending)
		appendStringInfoString(&buf, column->nulls_first ? " NULLS FIRST" : " NULLS LAST");
	return buf.data;
}

/* Window functions are the columns after those of the rows. */
static void
explain_window(const CustomScan *scan, List *context, ExplainState *es)
{
	List	   *functions = NIL;

	for (int i = list_length(outerPlan(scan)->targetlist);
		 i < list_length(scan->custom_scan_tlist); i++)
	{
		TargetEntry *entry = list_nth_node(TargetEntry, scan->custom_scan_tlist, i);

		functions = lappend(functions, deparse_expression((Node *) entry->expr, context,
														  gs_explain_uses_prefixes(es), true));
	}
	ExplainPropertyList("Window Functions", functions, es);
}

static void
explain_sort_key(const GsSortState *state, Plan *plan, List *ancestors, ExplainState *es)
{
	List	   *context = set_deparse_context_plan(es->deparse_cxt, plan, ancestors);
	bool		use_prefix = gs_explain_uses_prefixes(es);
	List	   *columns = NIL;
	List	   *presorted = NIL;
	List	   *grouped = NIL;

	for (int i = 0; i < state->spec.ncolumns; i++)
	{
		const GsSortColumn *column = &state->spec.columns[i];
		TargetEntry *entry = get_tle_by_resno(((CustomScan *) plan)->custom_scan_tlist,
											  column->attno);

		if (entry == NULL)
			elog(ERROR, "no target list entry for sort column %d", column->attno);
		columns = lappend(columns, describe_column(column, entry->expr, context, use_prefix));
		if (state->spec.groups != NULL && i < state->spec.groups->npresorted)
			presorted = lappend(presorted, deparse_expression((Node *) entry->expr, context,
															  use_prefix, true));
		if (i < state->spec.ngrouped)
			grouped = lappend(grouped, deparse_expression((Node *) entry->expr, context,
														  use_prefix, true));
	}
	ExplainPropertyList("Sort Key", columns, es);
	if (presorted != NIL)
		ExplainPropertyList("Presorted Key", presorted, es);
	if (grouped != NIL)
		ExplainPropertyList("Range Key", grouped, es);
	if (state->spec.numbers_rows)
		explain_window((CustomScan *) plan, context, es);
	if (state->spec.group_limit == GS_GROUP_MIDDLE)
		ExplainPropertyText("Rows per Range Key", "middle", es);
	else if (state->spec.group_limit > 0)
		ExplainPropertyInteger("Rows per Range Key", NULL, state->spec.group_limit, es);
}

/* The name of a column as its table or subquery has it; of an expression, its type. */
static const char *
name_of_expression(Expr *expr, List *rtable)
{
	const Var  *var = (const Var *) expr;

	if (IsA(expr, Var) && var->varnosyn > 0 && var->varnosyn <= list_length(rtable) &&
		var->varattnosyn > 0)
	{
		List	   *names = rt_fetch(var->varnosyn, rtable)->eref->colnames;

		if (var->varattnosyn <= list_length(names))
			return strVal(list_nth(names, var->varattnosyn - 1));
	}
	return format_type_be(exprType((Node *) expr));
}

/* Without ruleutils.c, which needs all nodes above this one, and raises an ERROR without them. */
char *
gs_node_describe_key(CustomScanState *node)
{
	const GsSortSpec *spec = &gs_node_sort(node)->spec;
	const CustomScan *scan = (const CustomScan *) node->ss.ps.plan;
	List	   *rtable = node->ss.ps.state->es_range_table;
	StringInfoData key;

	initStringInfo(&key);
	for (int i = 0; i < spec->ncolumns; i++)
	{
		const GsSortColumn *column = &spec->columns[i];
		const TargetEntry *entry =
			list_nth_node(TargetEntry, scan->custom_scan_tlist, column->attno - 1);
		bool		descending = false;

		(void) get_equality_op_for_ordering_op(column->sort_operator, &descending);
		appendStringInfo(&key, "%s%s%s%s", i == 0 ? "" : ", ",
						 name_of_expression(entry->expr, rtable),
						 descending ? " DESC" : "",
						 column->nulls_first == descending ? "" : column->nulls_first ?
						 " NULLS FIRST" : " NULLS LAST");
	}
	return key.data;
}

/*
 * From version 18 on, PostgreSQL says of each node whether it is disabled.  A node above a disabled
 * one is not, but a CustomScan appears so, since its outer plan does not count as an input.  This
 * changes what EXPLAIN has just printed, in every format; the property's bytes are those that it
 * prints again.
 */
static void
correct_disabled(const Plan *plan, ExplainState *es)
{
	StringInfo	output = es->str;
	StringInfoData wrong;
	StringInfoData right;
	char	   *found = NULL;
	char	   *rest;

	if (!gs_appears_disabled_by_input(plan))
		return;
	initStringInfo(&wrong);
	initStringInfo(&right);
	es->str = &wrong;
	ExplainPropertyBool("Disabled", true, es);
	es->str = &right;
	if (es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyBool("Disabled", false, es);
	es->str = output;

	/* the last one, which only the target list of VERBOSE follows */
	for (char *next = output->data; (next = strstr(next, wrong.data)) != NULL; next++)
		found = next;
	if (found == NULL)
		return;
	rest = pstrdup(found + wrong.len);
	output->len = found - output->data;
	appendStringInfo(output, "%s%s", right.data, rest);
}

/* PostgreSQL's three properties of a finished sort, in its format, and the engine. */
static void
explain_summary(const GsSortSummary *summary, ExplainState *es)
{
	const char *space = summary->on_disk ? "Disk" : "Memory";

	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		/* the first line of a worker has been started */
		if (es->str->len == 0 || es->str->data[es->str->len - 1] == '\n')
			appendStringInfoSpaces(es->str, es->indent * 2);
		appendStringInfo(es->str, "Sort Method: %s  %s: " INT64_FORMAT "kB\n",
						 summary->method, space, summary->kilobytes);
	}
	else
	{
		ExplainPropertyText("Sort Method", summary->method, es);
		ExplainPropertyInteger("Sort Space Used", "kB", summary->kilobytes, es);
		ExplainPropertyText("Sort Space Type", space, es);
	}
	ExplainPropertyText("Engine", summary->engine, es);
}

/* The verification of approximate keys, successful or not. */
static void
explain_verification(const GsSortDetails *details, ExplainState *es)
{
	const char *what = details->verified;

	ExplainPropertyInteger(psprintf("%s Verification Comparisons", what), NULL,
						   details->ncomparisons, es);
	if (details->nretries > 0)
		ExplainPropertyInteger(psprintf("%s Verification Retries", what), NULL,
							   details->nretries, es);
	if (es->timing)
		ExplainPropertyFloat(psprintf("%s Verification Time", what), "ms",
							 details->verification_us / 1000.0, 3, es);
}

/* The numbers of the devices that sorted, if there are several to choose from: such as "0,2". */
static void
explain_device_numbers(GsDeviceSet devices, ExplainState *es)
{
	StringInfoData numbers;

	initStringInfo(&numbers);
	for (int device = 0; device < GS_MAX_DEVICES; device++)
		if (devices & GS_DEVICE_BIT(device))
			appendStringInfo(&numbers, "%s%d", numbers.len == 0 ? "" : ",", device);
	if (numbers.len > 0)
		ExplainPropertyText("Device Numbers", numbers.data, es);
}

/* Why PostgreSQL sorted, or the CPU engine instead of a device. */
static void
explain_reason(const char *reason, const char *engine, ExplainState *es)
{
	if (reason != NULL && reason[0] != '\0')
		ExplainPropertyText(strcmp(engine, "postgres") == 0 ? "Fallback Reason" : "Device Not Used",
							reason, es);
}

static void
explain_engine(const GsEngineStats *stats, ExplainState *es)
{
	ExplainPropertyInteger("Packed Key Bits", NULL, stats->key_bits, es);
	if (stats->key_tails)
		ExplainPropertyBool("Keys Longer Than Prefix", true, es);
	if (stats->tied_rows > 0)
		ExplainPropertyInteger("Rows Tied After First Sort", NULL, stats->tied_rows, es);
}

static void
explain_runs(const GsRunSetStats *stats, ExplainState *es)
{
	ExplainPropertyInteger("Runs", NULL, stats->nruns, es);
	if (stats->device != NULL)
		ExplainPropertyInteger("Device Runs", NULL, stats->device_runs, es);
	if (stats->nmerges > 0)
		ExplainPropertyInteger("Intermediate Merges", NULL, stats->nmerges, es);
}

/* The statistics of a device, which works at the same time as the rest of the query. */
static void
explain_device(const GsEngineStats *stats, ExplainState *es)
{
	if (stats->method == GS_METHOD_RADIX)
		ExplainPropertyInteger("Radix Passes", NULL, stats->passes, es);
	ExplainPropertyInteger("Device Peak Memory Usage", "kB", (stats->device_bytes + 1023) / 1024,
						   es);
	ExplainPropertyInteger("Data Sent to Device", "kB", (stats->bytes_up + 1023) / 1024, es);
	ExplainPropertyInteger("Data Received from Device", "kB", (stats->bytes_down + 1023) / 1024,
						   es);
	if (es->timing)
	{
		ExplainPropertyFloat("Transfer Time to Device", "ms", stats->upload_us / 1000.0, 3, es);
		ExplainPropertyFloat("Device Sort Time", "ms", stats->sort_us / 1000.0, 3, es);
		ExplainPropertyFloat("Output Wait Time", "ms", stats->stream_us / 1000.0, 3, es);
	}
}

/* All of a sort of this process but its summary. */
static void
explain_details(const GsSortDetails *details, const char *engine, ExplainState *es)
{
	if (details->device != NULL)
		ExplainPropertyText("Device", details->device, es);
	else
		explain_reason(details->reason, engine, es);
	explain_device_numbers(details->devices, es);
	if (details->engine != NULL)
		explain_engine(details->engine, es);
	if (details->runs != NULL)
		explain_runs(details->runs, es);
	if (details->shows_keyed)
		ExplainPropertyInteger("Key Columns", NULL, details->nkeyed, es);
	if (details->shows_compared)
		ExplainPropertyInteger("Rows Ordered by Comparison", NULL, details->ncompared, es);
	if (details->shows_rows)
		ExplainPropertyInteger("Sorted Rows", NULL, details->nrows, es);
	if (details->ndictionary > 0)
		ExplainPropertyInteger("Dictionary Entries", NULL, details->ndictionary, es);
	if (details->verified != NULL)
		explain_verification(details, es);
	if (details->ndropped > 0)
		ExplainPropertyInteger("Rows Removed by Limit", NULL, details->ndropped, es);
	if (details->engine != NULL && details->device != NULL)
		explain_device(details->engine, es);
	if (details->wait_us > 0 && es->timing)
		ExplainPropertyFloat("Worker Wait Time", "ms", details->wait_us / 1000.0, 3, es);
}

/* ------------------------------------------------------------------- workers */

/*
 * EXPLAIN prints the properties of each worker to a buffer of the worker, and
 * appends all buffers to the node at the end.  PostgreSQL does not export the
 * functions that switch to a buffer and back.  In every format but text, the
 * properties of a worker are two levels further in; the stack says whether a group
 * has members yet.
 */
static void
open_worker(int n, ExplainState *es)
{
	ExplainWorkersState *workers = es->workers_state;
	bool		is_text = es->format == EXPLAIN_FORMAT_TEXT;
	bool		begins = !workers->worker_inited[n];

	workers->prev_str = es->str;
	es->str = &workers->worker_str[n];
	if (begins)
	{
		initStringInfo(es->str);
		workers->worker_inited[n] = true;
		workers->worker_state_save[n] = 0;
	}
	if (is_text)
	{
		if (begins)
		{
			appendStringInfoSpaces(es->str, es->indent * 2);
			appendStringInfo(es->str, "Worker %d:  ", n);
		}
		es->indent++;
		return;
	}
	es->indent += 2;
	if (es->format != EXPLAIN_FORMAT_XML)
		es->grouping_stack = lcons_int(workers->worker_state_save[n], es->grouping_stack);
	if (begins)
		ExplainPropertyInteger("Worker Number", NULL, n, es);
}

static void
close_worker(int n, ExplainState *es)
{
	ExplainWorkersState *workers = es->workers_state;

	es->indent -= es->format == EXPLAIN_FORMAT_TEXT ? 1 : 2;
	if (es->format == EXPLAIN_FORMAT_JSON || es->format == EXPLAIN_FORMAT_YAML)
	{
		workers->worker_state_save[n] = linitial_int(es->grouping_stack);
		es->grouping_stack = list_delete_first(es->grouping_stack);
	}
	es->str = workers->prev_str;
}

/* A worker that sent all its rows to the shared sort has sorted none. */
static void
explain_worker(const GsSortSummary *summary, ExplainState *es)
{
	if (summary->nrows > 0 || summary->nsent == 0)
		explain_summary(summary, es);
	explain_reason(summary->reason, summary->engine, es);
	explain_device_numbers(summary->devices, es);
	if (summary->nsent > 0)
		ExplainPropertyInteger("Rows Sent to Shared Sort", NULL, summary->nsent, es);
	if (summary->nrows > 0)
		ExplainPropertyInteger("Sorted Rows", NULL, summary->nrows, es);
}

static void
explain_workers(const GsSortState *state, ExplainState *es)
{
	if (es->workers_state == NULL || state->participants.summaries == NULL)
		return;
	for (int n = 0; n < es->workers_state->num_workers &&
		 n + 1 < state->participants.nparticipants; n++)
	{
		if (!state->participants.summaries[n + 1].any)
			continue;
		open_worker(n, es);
		explain_worker(&state->participants.summaries[n + 1], es);
		close_worker(n, es);
	}
}

/* Of a sort in batches, the largest one. */
static void
explain_batches(const GsSortGroups *groups, ExplainState *es)
{
	if (groups->nbatches == 0)
		return;
	explain_summary(&groups->largest, es);
	explain_reason(groups->largest.reason, groups->largest.engine, es);
	ExplainPropertyInteger("Batches", NULL, groups->nbatches, es);
	ExplainPropertyInteger("Sorted Rows", NULL, groups->nrows, es);
}

void
gs_node_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	GsSortState *state = gs_node_sort(node);
	GsSortSummary summary;
	GsSortDetails details;

	correct_disabled(node->ss.ps.plan, es);
	explain_sort_key(state, node->ss.ps.plan, ancestors, es);
	if (!es->analyze)
		return;
	if (state->spec.groups != NULL)
		explain_batches(state->spec.groups, es);
	else if (state->store.phase != GS_STORE_IDLE)
	{
		gs_sort_summarize(state, &summary);
		gs_sort_get_details(state, &details);
		explain_summary(&summary, es);
		explain_details(&details, summary.engine, es);
	}
	explain_workers(state, es);
}
