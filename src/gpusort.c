/*-------------------------------------------------------------------------
 *
 * gpusort.c
 *	  The door: what happens when the library is loaded.
 *
 * DESIGN.md has the way of a row, by file.
 *
 * Loading the library is all it takes, by LOAD, session_preload_libraries or
 * shared_preload_libraries; CREATE EXTENSION adds SQL functions only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>
#include <limits.h>

#include "guc.h"
#include "index/index_hook.h"
#include "pg_compat.h"
#include "common/protocol.h"
#include "plan/plan_choice.h"
#include "node/node_gpusort.h"
#include "sort/sort_parallel.h"
#include "plan/plan_path.h"
#include "plan/plan_rewrite.h"
#include "client/supervisor.h"

#include "executor/executor.h"
#include "fmgr.h"
#include "optimizer/planner.h"
#include "utils/builtins.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

extern PGDLLEXPORT Datum gpusort_version(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(gpusort_version);

#define GPUSORT_VERSION "1.0"

/*
 * Where no measured sort loses any more.  What loses below: a single column
 * that is in order already (0.83 to 0.93x of stock up to 10 k rows), whole rows
 * with few distinct keys (0.79x at 10 k in a session that sorted with both, as
 * each of them meets the other's malloc thresholds), an int4 without ties before
 * a text that a stock sort never looks at (0.91x at 1000, 1.26x at 10 k).  Most
 * others gain from 100 rows on, but tens of microseconds only (Zen 5,
 * PostgreSQL 15.20, 2026-11).
 */
#define DEFAULT_MIN_ROWS 20000

/*
 * From here on a device was always the faster.  ORDER BY bigint, whole rows of
 * 166 bytes, ratio to the CPU engine: 10 k 0.43, 20 k 0.64, 50 k 1.35, 100 k
 * 1.21, 200 k 1.50, 5 M 1.80; (date, bigint): 20 k 0.75, 50 k 1.26, 100 k 1.19, 5 M
 * 1.80 (Xeon, H200, PostgreSQL 15.20, 2026-11).
 */
#define DEFAULT_DEVICE_MIN_ROWS 100000

/* How long a sort waits for device memory that other sorts hold, in ms. */
#define DEFAULT_DEVICE_WAIT 1000

/*
 * How long gpusortd may not answer, in ms.  The longest that it was seen to be in a
 * call of the driver, one that gives much memory back, is a second.
 */
#define DEFAULT_SERVICE_TIMEOUT 10000

/* More than a query has, less than a server minds: each pins 4 MB. */
#define DEFAULT_DEVICE_SESSION_SORTS 32

/* Of files of sorted rows, in MB: some large cursors, and not the disk. */
#define DEFAULT_DEVICE_PARK_LIMIT 10240

/* Settings: guc.h. */
bool		gpusort_enabled = true;
bool		gpusort_enable_create_index = true;
int			gpusort_index_loader = GS_INDEX_LOADER_AUTO;
int			gpusort_engine = GS_ENGINE_AUTO;
int			gpusort_min_rows = DEFAULT_MIN_ROWS;
int			gpusort_device_min_rows = DEFAULT_DEVICE_MIN_ROWS;
int			gpusort_device_wait = DEFAULT_DEVICE_WAIT;
int			gpusort_device_session_memory = 0;
int			gpusort_device_session_sorts = DEFAULT_DEVICE_SESSION_SORTS;
int			gpusort_algorithm = GS_ALGORITHM_AUTO;
int			gpusort_libc_collations = GS_LIBC_VERIFY;
bool		gpusort_verify = false;
bool		gpusort_planner_cost = true;
bool		gpusort_force = false;
bool		gpusort_debug_plan = false;
bool		gpusort_explain_as_sort = false;
bool		gpusort_collation_fault = false;

int			gpusort_device = GS_DEVICE_CHOICE_AUTO;
int			gpusort_device_memory_limit = 0;
int			gpusort_device_park_limit = DEFAULT_DEVICE_PARK_LIMIT;
int			gpusort_device_idle = 60;
int			gpusort_service_timeout = DEFAULT_SERVICE_TIMEOUT;
char	   *gpusort_service_path = "";
char	   *gpusort_service_fault = "";

static const struct config_enum_entry engine_options[] = {
	{"auto", GS_ENGINE_AUTO, false},
	{"cpu", GS_ENGINE_CPU, false},
	{"cuda", GS_ENGINE_CUDA, false},
	{NULL, 0, false}
};

static const struct config_enum_entry device_options[] = {
	{"auto", GS_DEVICE_CHOICE_AUTO, false},
	{"host", GS_DEVICE_CHOICE_HOST, false},
	{NULL, 0, false}
};

static const struct config_enum_entry algorithm_options[] = {
	{"auto", GS_ALGORITHM_AUTO, false},
	{"radix", GS_ALGORITHM_RADIX, false},
	{"merge", GS_ALGORITHM_MERGE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry index_loader_options[] = {
	{"auto", GS_INDEX_LOADER_AUTO, false},
	{"native", GS_INDEX_LOADER_NATIVE, false},
	{"direct", GS_INDEX_LOADER_DIRECT, false},
	{NULL, 0, false}
};

static const struct config_enum_entry libc_options[] = {
	{"verify", GS_LIBC_VERIFY, false},
	{"off", GS_LIBC_OFF, false},
	{NULL, 0, false}
};

static planner_hook_type next_planner_hook = NULL;
static create_upper_paths_hook_type next_upper_paths_hook = NULL;
static ExecutorStart_hook_type next_executor_start_hook = NULL;

/*
 * A query that is being planned.  A planner hook between ours and the planner, as a hint's, may change
 * settings for the planner and put them back; so we look at them from within.
 */
typedef struct Planning
{
	GsChoiceSettings settings;
	struct Planning *outer;		/* of the query whose planning calls a function with this one */
} Planning;

static Planning *planning = NULL;

static PlannedStmt *
gpusort_planner(Query *parse, const char *query_string, int cursor_options,
				ParamListInfo bound_params)
{
	Planning	mine = {.settings = gs_choice_settings(), .outer = planning};
	PlannedStmt *statement;
	bool		repeatable;

	/* the planner scribbles on the query */
	repeatable = gpusort_enabled && gpusort_engine != GS_ENGINE_CPU &&
		gs_plan_is_repeatable(parse);
	planning = &mine;
	PG_TRY();
	{
		if (next_planner_hook)
			statement = next_planner_hook(parse, query_string, cursor_options, bound_params);
		else
			statement = standard_planner(parse, query_string, cursor_options, bound_params);
	}
	PG_FINALLY();
	{
		planning = mine.outer;
	}
	PG_END_TRY();
	/* a plan runs with the settings outside */
	if (gpusort_enabled && mine.settings.enabled)
		gs_plan_rewrite(statement, &mine.settings, repeatable);
	return statement;
}

static void
gpusort_create_upper_paths(PlannerInfo *root, UpperRelationKind stage,
						   RelOptInfo *input_rel, RelOptInfo *output_rel, void *extra)
{
	if (next_upper_paths_hook)
		next_upper_paths_hook(root, stage, input_rel, output_rel, extra);
	/* the last stage of every query */
	if (stage == UPPERREL_FINAL && planning != NULL)
		planning->settings = gs_choice_settings();
	if (gpusort_enabled && gpusort_planner_cost && stage == UPPERREL_ORDERED)
		gs_plan_path_add(root, input_rel, output_rel);
}

static void
gpusort_executor_start(QueryDesc *query, int eflags)
{
	gs_sort_parallel_prepare(query, eflags);
	if (next_executor_start_hook)
		next_executor_start_hook(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

/*
 * In alphabetical order: PostgreSQL 15 sorts its array of settings for each one that is added, unless
 * it is in order.  Any other order takes 0.08 ms more of each connection (Zen 5, 2026-11).
 *
 * A session may not change its share of the device (PGC_SUSET).  Settings of gpusortd belong to the
 * server, so they are in the configuration file only (PGC_SIGHUP).
 */
static void
define_settings(void)
{
	DefineCustomEnumVariable("gpusort.algorithm",
							 "Chooses how the device sorts.",
							 "\"auto\" takes the faster for the keys at hand.",
							 &gpusort_algorithm, GS_ALGORITHM_AUTO, algorithm_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.collation_fault",
							 "Makes wrong keys of texts whose collation does not compare bytes.",
							 "For tests.",
							 &gpusort_collation_fault, false,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.debug_plan",
							 "Says of each Sort and index left to PostgreSQL why it was.",
							 NULL,
							 &gpusort_debug_plan, false,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpusort.device",
							 "Chooses the device that gpusortd sorts on.",
							 "\"auto\" is the first CUDA device; \"host\" is no "
							 "device at all, for tests and development.",
							 &gpusort_device, GS_DEVICE_CHOICE_AUTO, device_options,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_idle",
							"Gives device memory back that no sort has wanted for so long.",
							NULL,
							&gpusort_device_idle, 60, 0, INT_MAX / 1000,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_memory_limit",
							"Sets how much device memory all sorts together may take.",
							"0 is nine tenths of the device's.",
							&gpusort_device_memory_limit, 0, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_min_rows",
							"Moves sorts to the device once they have so many rows.",
							"Up to there the CPU engine is as fast. gpusort_calibrate() "
							"measures it.",
							&gpusort_device_min_rows, DEFAULT_DEVICE_MIN_ROWS, 0, INT_MAX,
							PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_park_limit",
							"Limits the temporary files that hold sorted rows of idle cursors.",
							"They are written if another sort waits for the device memory. "
							"0 means that idle cursors keep it, -1 means no limit.",
							&gpusort_device_park_limit, DEFAULT_DEVICE_PARK_LIMIT, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_session_memory",
							"Sets how much device memory the sorts of one process may take together.",
							"0 means no limit but that of all sorts.",
							&gpusort_device_session_memory, 0, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_session_sorts",
							"Sets how many sorts of one process may be on the device at a time.",
							"Open cursors count. Further sorts do without the device.",
							&gpusort_device_session_sorts, DEFAULT_DEVICE_SESSION_SORTS, 0, 1000,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_wait",
							"How long a sort waits for device memory that others hold.",
							"After that it goes on without the device.",
							&gpusort_device_wait, DEFAULT_DEVICE_WAIT, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.enable_create_index",
							 "Lets gpusort sort for btree indexes that are built.",
							 NULL,
							 &gpusort_enable_create_index, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.enabled",
							 "Lets gpusort take over sorts.",
							 "Turned off, new plans keep their Sort nodes, and "
							 "cached ones sort as PostgreSQL does.",
							 &gpusort_enabled, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpusort.engine",
							 "Chooses what sorts the rows.",
							 "\"auto\" takes the fastest there is. Where \"cuda\" has "
							 "no device, the CPU engine sorts and EXPLAIN ANALYZE "
							 "says why.",
							 &gpusort_engine, GS_ENGINE_AUTO, engine_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.explain_as_sort",
							 "Has EXPLAIN print a GpuSort as if it were a Sort.",
							 "For tests that compare plans with PostgreSQL's own.",
							 &gpusort_explain_as_sort, false,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.force",
							 "Takes over every possible sort, whatever its size.",
							 "For tests. Engines sort, however few the rows are.",
							 &gpusort_force, false,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpusort.index_loader",
							 "Chooses what writes the pages of an index that gpusort has sorted for.",
							 "\"native\" gives the entries in order to PostgreSQL's own build; "
							 "\"direct\" writes the same pages without it, which \"auto\" does, too.",
							 &gpusort_index_loader, GS_INDEX_LOADER_AUTO, index_loader_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpusort.libc_collations",
							 "Takes over sorts by collations of the C library.",
							 "\"verify\" sorts by strxfrm() and compares all neighbours "
							 "with strcoll() before the first row leaves; \"off\" leaves "
							 "such sorts to PostgreSQL.",
							 &gpusort_libc_collations, GS_LIBC_VERIFY, libc_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.min_rows",
							"Leaves sorts of fewer estimated rows to PostgreSQL.",
							NULL,
							&gpusort_min_rows, DEFAULT_MIN_ROWS, 0, INT_MAX,
							PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.planner_cost",
							 "Tells the planner what gpusort's sorts cost.",
							 "Turned off, plans are chosen as if all sorts were "
							 "PostgreSQL's.",
							 &gpusort_planner_cost, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("gpusort.service_fault",
							   "Makes gpusortd fail at a place.",
							   "For tests.",
							   &gpusort_service_fault, "",
							   PGC_SIGHUP, GUC_NOT_IN_SAMPLE | GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("gpusort.service_path",
							   "Names the program gpusortd.",
							   "If empty, the one in the folder of the server's programs.",
							   &gpusort_service_path, "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.service_timeout",
							"Ends and restarts gpusortd if it does not answer for so long.",
							"Sorts that it has begin again without it, or end with an error. "
							"0 lets it take as long as it likes.",
							&gpusort_service_timeout, DEFAULT_SERVICE_TIMEOUT, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.verify",
							 "Checks the order of rows as they leave a sort.",
							 "Each is compared with the one before by PostgreSQL's own "
							 "comparators, and they are counted. An ERROR says what is wrong.",
							 &gpusort_verify, false,
							 PGC_USERSET, 0, NULL, NULL, NULL);
}

void
_PG_init(void)
{
	gs_define_settings("gpusort.", define_settings);
	MarkGUCPrefixReserved("gpusort");
	RegisterCustomScanMethods(&gs_node_scan_methods);
	next_planner_hook = planner_hook;
	planner_hook = gpusort_planner;
	next_upper_paths_hook = create_upper_paths_hook;
	create_upper_paths_hook = gpusort_create_upper_paths;
	next_executor_start_hook = ExecutorStart_hook;
	ExecutorStart_hook = gpusort_executor_start;
	gs_index_hook_install();
	gs_supervisor_register();
}

const char *
gs_library_path(void)
{
	Dl_info		info;

	/* something static: of what is global another library may have the like */
	if (dladdr(&engine_options, &info) == 0 || info.dli_fname == NULL)
		elog(ERROR, "could not find the file of the gpusort library");
	return info.dli_fname;
}

/* gpusort_version() returns text: the version of the loaded library. */
Datum
gpusort_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(GPUSORT_VERSION));
}
