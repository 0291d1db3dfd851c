/*-------------------------------------------------------------------------
 *
 * sql_advise.c
 *	  gpusort_advise(): which statements gain by gpusort, and how much.
 *
 * Plans the statements of pg_stat_statements with gpusort and without, and compares
 * the costs of the plans.  Nothing is executed.  Constants are parameters there, so
 * the plans are generic, as those of prepared statements are.
 *
 * The planner runs functions, those of users included, to estimate and to simplify
 * expressions.  Therefore each statement is planned by the role that has run it, in a
 * security-restricted operation, as REINDEX runs the functions of an index; and only
 * if the caller has the privileges of that role anyway.  A superuser's statement may
 * have been about a table that is now a view with functions of somebody else, so
 * functions that no superuser owns are not run for it: the statement is skipped.
 *
 * Each statement is planned in a subtransaction that is rolled back.  That releases
 * its locks, and an ERROR, such as of a table that does not exist any more, is the
 * reason why the statement is skipped.  A cancel ends all.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "guc.h"
#include "pg_compat.h"
#include "plan/plan_sorts.h"

#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"
#include "utils/varlena.h"

extern PGDLLEXPORT Datum gpusort_advise(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(gpusort_advise);

/* How long to wait for a lock of a table, in ms; others may hold it for hours. */
#define LOCK_TIMEOUT	"100"

/* A statement, as the planner estimates it; what cannot be planned costs nothing. */
typedef struct Estimate
{
	double		cost_postgres;
	double		cost_gpusort;
	GsPlanSorts postgres;		/* the sorts of the plan without gpusort */
	GsPlanSorts gpusort;		/* and with it */
	const char *why_not;		/* the reason if it cannot be planned */
} Estimate;

/* ---------------------------------------------------- functions that are not run */

static needs_fmgr_hook_type next_needs_hook = NULL;

/* A needs_fmgr_hook, which is called before any function is that is not built in. */
static bool
check_function(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));

	if (HeapTupleIsValid(tuple))
	{
		Oid			owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;

		ReleaseSysCache(tuple);
		if (superuser() && !superuser_arg(owner))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("planning by a superuser would run function %s, which no superuser owns",
							get_func_name(function))));
	}
	return next_needs_hook != NULL && next_needs_hook(function);
}

static void
set_check(bool on)
{
	if (on)
	{
		next_needs_hook = needs_fmgr_hook;
		needs_fmgr_hook = check_function;
	}
	else
		needs_fmgr_hook = next_needs_hook;
}

/* ---------------------------------------------------------------------- planning */

static void
set_option(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/* The part of a statement that is planned: of some utility statements it is a query. */
static Node *
planned_part(Node *statement)
{
	if (IsA(statement, PrepareStmt))	/* pg_stat_statements counts what EXECUTE runs by this text */
		return ((PrepareStmt *) statement)->query;
	if (IsA(statement, CreateTableAsStmt))
		return ((CreateTableAsStmt *) statement)->query;
	if (IsA(statement, CopyStmt) && ((CopyStmt *) statement)->query != NULL)
		return ((CopyStmt *) statement)->query;
	return statement;
}

/* The cost of the statement's plans, and their sorts. */
static double
plan_queries(List *queries, const char *string, GsPlanSorts *sorts)
{
	double		cost = 0;
	ListCell   *lc;

	foreach(lc, queries)
	{
		PlannedStmt *plan;
		Query	   *query = copyObject(lfirst_node(Query, lc));

		if (query->commandType == CMD_UTILITY)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("not planned: a utility statement")));
		/* pg_stat_statements does not count it as planned */
		query->queryId = 0;
		plan = gs_plan_query(query, string);
		gs_plan_sorts_add(plan, sorts);
		cost += plan->planTree->total_cost;
	}
	return cost;
}

/* Plans a statement twice, as a role.  The caller ends the subtransaction. */
static void
plan_statement(const char *string, Oid role, Estimate *estimate)
{
	List	   *statements;
	RawStmt    *statement;
	List	   *queries;
	Oid		   *types = NULL;
	int			ntypes = 0;
	Oid			user;
	int			sec_context;

	GetUserIdAndSecContext(&user, &sec_context);
	SetUserIdAndSecContext(role, sec_context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
	(void) NewGUCNestLevel();
	set_option("lock_timeout", LOCK_TIMEOUT);
	/* neither the notices of functions nor those of gpusort.debug_plan */
	set_option("client_min_messages", "error");

	statements = pg_parse_query(string);
	if (list_length(statements) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("not planned: not a single statement")));
	statement = linitial_node(RawStmt, statements);
	statement->stmt = planned_part(statement->stmt);
	queries = pg_analyze_and_rewrite_varparams(statement, string, &types, &ntypes, NULL);

	set_option("gpusort.enabled", "off");
	estimate->cost_postgres = plan_queries(queries, string, &estimate->postgres);
	set_option("gpusort.enabled", "on");
	estimate->cost_gpusort = plan_queries(queries, string, &estimate->gpusort) - estimate->gpusort.saved;
}

/* Everything of the result is in the current memory context. */
static Estimate
estimate_statement(const char *string, Oid role)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	Estimate	estimate = {0};
	Estimate   *volatile result = &estimate;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	set_check(true);
	PG_TRY();
	{
		plan_statement(string, role, result);
		set_check(false);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		set_check(false);
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
			ReThrowError(error);
		*result = (Estimate) {.why_not = error->message};
	}
	PG_END_TRY();
	/* the user and the settings are the caller's again */
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return estimate;
}

/* ------------------------------------------------------------------- the library */

/* Does a list of libraries, a setting, have gpusort? */
static bool
has_gpusort(const char *setting)
{
	List	   *libraries;
	ListCell   *lc;

	if (setting == NULL || !SplitDirectoriesString(pstrdup(setting), ',', &libraries))
		return false;
	foreach(lc, libraries)
	{
		const char *path = lfirst(lc);
		const char *slash = last_dir_separator(path);
		const char *name = slash == NULL ? path : slash + 1;

		if (strcmp(name, "gpusort") == 0 || strcmp(name, "gpusort" DLSUFFIX) == 0)
			return true;
	}
	return false;
}

/* Does gpusort sort in all sessions that have the settings of this one? */
static bool
is_active(void)
{
	return gpusort_enabled &&
		(has_gpusort(shared_preload_libraries_string) || has_gpusort(session_preload_libraries_string) ||
		 has_gpusort(local_preload_libraries_string));
}

/* ------------------------------------------------------------ pg_stat_statements */

/* What is read of pg_stat_statements. */
enum
{
	INPUT_ROLE = 1,
	INPUT_ROLE_NAME,
	INPUT_QUERY_ID,
	INPUT_QUERY,
	INPUT_CALLS,
	INPUT_TIME
};

/* A statement has a row for its calls by functions, too; what the caller may not see has no number. */
#define QUERY \
	"SELECT s.userid, r.rolname, s.queryid, pg_catalog.min(s.query), " \
	"pg_catalog.sum(s.calls)::pg_catalog.int8, pg_catalog.sum(s.total_exec_time) " \
	"FROM %s.pg_stat_statements s " \
	"JOIN pg_catalog.pg_database d ON d.oid = s.dbid AND d.datname = pg_catalog.current_database() " \
	"JOIN pg_catalog.pg_roles r ON r.oid = s.userid " \
	"WHERE s.queryid IS NOT NULL AND s.query IS NOT NULL " \
	"GROUP BY s.userid, r.rolname, s.queryid ORDER BY 6 DESC, 3, 1 LIMIT $1"

/* Reads the statements, by SPI. */
static SPITupleTable *
read_statements(int64 max_statements)
{
	Datum		limit = Int64GetDatum(max_statements);
	Oid			type = INT8OID;
	char	   *schema;

	if (!OidIsValid(get_extension_oid("pg_stat_statements", true)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"pg_stat_statements\" is not installed in this database"),
				 errhint("Add pg_stat_statements to \"shared_preload_libraries\", restart the server, and run CREATE EXTENSION pg_stat_statements.  gpusort_advise_indexes() does not need it.")));
	if (SPI_execute("SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension e "
					"JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace "
					"WHERE e.extname = 'pg_stat_statements'", true, 1) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "could not read the schema of pg_stat_statements");
	schema = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	if (SPI_execute_with_args(psprintf(QUERY, schema), 1, &type, &limit, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read pg_stat_statements");
	return SPI_tuptable;
}

/* ------------------------------------------------------------------------- result */

enum
{
	COLUMN_QUERY_ID,
	COLUMN_ROLE_NAME,
	COLUMN_CALLS,
	COLUMN_TIME,
	COLUMN_ACTIVE,
	COLUMN_SORTS,				/* from here to COLUMN_TIME_GPUSORT of planned statements */
	COLUMN_GPUSORTS,
	COLUMN_SORT_PERCENT,
	COLUMN_GAIN_PERCENT,
	COLUMN_TIME_POSTGRES,
	COLUMN_TIME_GPUSORT,
	COLUMN_REASON,
	COLUMN_QUERY,
	NCOLUMNS
};

static double
percent(double part, double whole)
{
	return whole > 0 ? rint(1000 * Max(Min(part / whole, 1), 0)) / 10 : 0;
}

/* The estimated gain, in percent of the cost without gpusort. */
static double
gain_percent(const Estimate *estimate)
{
	return percent(estimate->cost_postgres - estimate->cost_gpusort, estimate->cost_postgres);
}

/* The sorts of the plan with gpusort are those that are replaced or not; it may have others. */
static void
set_estimate(const Estimate *estimate, double time, bool active, Datum *values, bool *nulls)
{
	const double ratio = 1 - gain_percent(estimate) / 100;

	for (int i = COLUMN_SORTS; i <= COLUMN_TIME_GPUSORT; i++)
		nulls[i] = false;
	values[COLUMN_SORTS] = Int32GetDatum(estimate->gpusort.nsorts);
	values[COLUMN_GPUSORTS] = Int32GetDatum(estimate->gpusort.nreplaced);
	values[COLUMN_SORT_PERCENT] = Float8GetDatum(percent(estimate->postgres.cost, estimate->cost_postgres));
	values[COLUMN_GAIN_PERCENT] = Float8GetDatum(gain_percent(estimate));
	values[COLUMN_TIME_POSTGRES] = Float8GetDatum(active && ratio > 0 ? time / ratio : time);
	values[COLUMN_TIME_GPUSORT] = Float8GetDatum(active ? time : time * ratio);
}

/* Adds the row of a statement if it gains enough. */
static void
add_statement(ReturnSetInfo *result, HeapTuple statement, TupleDesc desc, double min_gain, bool active)
{
	bool		is_null;
	Oid			role = DatumGetObjectId(SPI_getbinval(statement, desc, INPUT_ROLE, &is_null));
	char	   *query = SPI_getvalue(statement, desc, INPUT_QUERY);
	Datum		time = SPI_getbinval(statement, desc, INPUT_TIME, &is_null);
	Datum		values[NCOLUMNS] = {0};
	bool		nulls[NCOLUMNS] = {false};
	Estimate	estimate = {0};
	const char *reason;

	if (has_privs_of_role(GetUserId(), role))
		estimate = estimate_statement(query, role);
	else
		estimate.why_not = "it is planned only for members of the role that runs it, and for superusers";
	if (gain_percent(&estimate) < min_gain)
		return;

	values[COLUMN_QUERY_ID] = SPI_getbinval(statement, desc, INPUT_QUERY_ID, &is_null);
	values[COLUMN_ROLE_NAME] = SPI_getbinval(statement, desc, INPUT_ROLE_NAME, &is_null);
	values[COLUMN_CALLS] = SPI_getbinval(statement, desc, INPUT_CALLS, &is_null);
	values[COLUMN_TIME] = time;
	values[COLUMN_ACTIVE] = BoolGetDatum(active);
	values[COLUMN_QUERY] = CStringGetTextDatum(query);
	for (int i = COLUMN_SORTS; i <= COLUMN_TIME_GPUSORT; i++)
		nulls[i] = true;
	reason = estimate.why_not;
	if (reason == NULL)
	{
		set_estimate(&estimate, DatumGetFloat8(time), active, values, nulls);
		reason = estimate.gpusort.why_not;
	}
	nulls[COLUMN_REASON] = reason == NULL;
	if (reason != NULL)
		values[COLUMN_REASON] = CStringGetTextDatum(reason);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* gpusort_advise(min_gain_percent float8, max_statements integer) returns setof record */
Datum
gpusort_advise(PG_FUNCTION_ARGS)
{
	const double min_gain = PG_GETARG_FLOAT8(0);
	const int32 max_statements = PG_GETARG_INT32(1);
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	const bool	active = is_active();
	MemoryContext context;
	SPITupleTable *statements;

	/* by a function that the planner runs */
	if (needs_fmgr_hook == check_function)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("gpusort_advise() cannot be called while it plans a statement")));
	if (max_statements < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_statements must not be negative")));
	InitMaterializedSRF(fcinfo, 0);
	if (result->setDesc->natts != NCOLUMNS)
		elog(ERROR, "gpusort_advise() must return %d columns", NCOLUMNS);
	SPI_connect();
	statements = read_statements(max_statements);
	context = AllocSetContextCreate(CurrentMemoryContext, "gpusort_advise", ALLOCSET_DEFAULT_SIZES);
	for (uint64 i = 0; i < statements->numvals; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		CHECK_FOR_INTERRUPTS();
		add_statement(result, statements->vals[i], statements->tupdesc, min_gain, active);
		MemoryContextSwitchTo(old);
		MemoryContextReset(context);
	}
	SPI_finish();
	return (Datum) 0;
}
