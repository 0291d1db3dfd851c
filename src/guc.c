/*-------------------------------------------------------------------------
 *
 * guc.c
 *	  Defines the settings.
 *
 * docs/settings.md documents them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>
#include <limits.h>

#include "common/device_table.h"
#include "guc.h"
#include "pg_compat.h"

#include "utils/guc.h"

/*
 * From here on sorts were faster than PostgreSQL's or as fast, in random order and in
 * order, whole rows and columns alone (bench/results/zen3-2-cores-small.md), and with
 * planning included.  At 300 rows several columns take up to 1.2 times as long.  An
 * index of 1,000 rows takes 0.97 of the time, because most of it is not the sort
 * (Zen 3, PostgreSQL 15.20, 2026-11).
 */
#define DEFAULT_MIN_ROWS 1000

/*
 * From here on a device was always faster.  ORDER BY bigint, whole rows of 166
 * bytes, ratio to the CPU engine: 10 k 0.43, 20 k 0.64, 50 k 1.35, 100 k 1.21,
 * 200 k 1.50, 5 M 1.80; (date, bigint): 20 k 0.75, 50 k 1.26, 100 k 1.19, 5 M 1.80
 * (Xeon, H200, PostgreSQL 15.20, 2026-11).
 */
#define DEFAULT_DEVICE_MIN_ROWS 100000

/* ms */
#define DEFAULT_DEVICE_WAIT 1000

/*
 * In ms.  The longest driver call that was seen, one that released much memory,
 * took a second.
 */
#define DEFAULT_SERVICE_TIMEOUT 10000

/* More than a query has, and few enough for a server: each pins 4 MB. */
#define DEFAULT_DEVICE_SESSION_SORTS 32

/* In MB: enough for some large cursors, without filling the disk. */
#define DEFAULT_DEVICE_PARK_LIMIT 10240

/* s */
#define DEFAULT_DEVICE_IDLE 60

bool		gpusort_enabled = true;
bool		gpusort_enable_cluster = true;
bool		gpusort_enable_create_index = true;
bool		gpusort_enable_gin = true;
bool		gpusort_enable_index_validation = true;
bool		gpusort_enable_ranges = true;
bool		gpusort_enable_parallel_index_write = true;
int			gpusort_engine = GS_ENGINE_AUTO;
int			gpusort_min_rows = DEFAULT_MIN_ROWS;
int			gpusort_device_min_rows = DEFAULT_DEVICE_MIN_ROWS;
int			gpusort_device_wait = DEFAULT_DEVICE_WAIT;
int			gpusort_device_session_sorts = DEFAULT_DEVICE_SESSION_SORTS;
int			gpusort_algorithm = GS_ALGORITHM_RADIX;
int			gpusort_libc_collations = GS_LIBC_VERIFY;
bool		gpusort_verify = false;
bool		gpusort_planner_cost = true;
bool		gpusort_force = false;
bool		gpusort_debug_plan = false;
int			gpusort_log_min_duration = -1;

char	   *gpusort_device = "auto";
int			gpusort_device_memory_limit = 0;
int			gpusort_device_park_limit = DEFAULT_DEVICE_PARK_LIMIT;
int			gpusort_device_idle = DEFAULT_DEVICE_IDLE;
int			gpusort_service_timeout = DEFAULT_SERVICE_TIMEOUT;
char	   *gpusort_service_path = "";

static const struct config_enum_entry engine_options[] = {
	{"auto", GS_ENGINE_AUTO, false},
	{"cpu", GS_ENGINE_CPU, false},
	{"cuda", GS_ENGINE_CUDA, false},
	{NULL, 0, false}
};

static const struct config_enum_entry algorithm_options[] = {
	{"radix", GS_ALGORITHM_RADIX, false},
	{"auto", GS_ALGORITHM_RADIX, true},	/* its name up to 1.0 */
	{"merge", GS_ALGORITHM_MERGE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry libc_options[] = {
	{"verify", GS_LIBC_VERIFY, false},
	{"off", GS_LIBC_OFF, false},
	{NULL, 0, false}
};

static bool
check_device(char **value, void **extra, GucSource source)
{
	GsDeviceChoice choice;

	if (gs_device_choice_parse(*value, &choice))
		return true;
	GUC_check_errhint("Valid values are \"auto\" and a list of CUDA device numbers "
					  "such as \"0,2\".");
	return false;
}

/*
 * In alphabetical order: PostgreSQL 15 sorts its array of settings for each one that is
 * added, unless it is in order.  Any other order takes 0.08 ms more of each connection (Zen
 * 5, 2026-11).
 *
 * A session may not change its share of the device (PGC_SUSET).  Settings of gpusortd belong
 * to the server, so they are in the configuration file only (PGC_SIGHUP).
 */
void
gs_guc_define(void)
{
	DefineCustomEnumVariable("gpusort.algorithm",
							 "Selects the sort algorithm of the device.",
							 "This setting is for tests and benchmarks.",
							 &gpusort_algorithm, GS_ALGORITHM_RADIX, algorithm_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.debug_plan",
							 "Reports sorts that are not replaced, index builds, and CLUSTER.",
							 "A NOTICE shows the reason.",
							 &gpusort_debug_plan, false,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomStringVariable("gpusort.device",
							   "Selects the devices, each of which has a gpusortd.",
							   "\"auto\" selects all CUDA devices, and a list such as \"0,2\" "
							   "some of them.",
							   &gpusort_device, "auto",
							   PGC_SIGHUP, 0, check_device, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_idle",
							"Sets the time after which unused device memory is released.",
							NULL,
							&gpusort_device_idle, DEFAULT_DEVICE_IDLE, 0, INT_MAX / 1000,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_memory_limit",
							"Sets the maximum memory of each device for all sorts.",
							"Zero means nine tenths of the device's memory.",
							&gpusort_device_memory_limit, 0, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_min_rows",
							"Sets the minimum number of rows of a sort that uses the device.",
							"gpusort_calibrate() measures the best value.",
							&gpusort_device_min_rows, DEFAULT_DEVICE_MIN_ROWS, 0, INT_MAX,
							PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_park_limit",
							"Sets the maximum size of all temporary files of a device with the rows of idle cursors.",
							"They are written when another sort waits for device memory. "
							"0 means that idle cursors keep their device memory, -1 means no limit.",
							&gpusort_device_park_limit, DEFAULT_DEVICE_PARK_LIMIT, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_session_sorts",
							"Sets the maximum number of sorts of one process on the device at the same time.",
							"Open cursors are counted. Further sorts use the CPU engine.",
							&gpusort_device_session_sorts, DEFAULT_DEVICE_SESSION_SORTS, 0, 1000,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.device_wait",
							"Sets the maximum time to wait for device memory that other sorts hold.",
							"After that, a sort continues without the device.",
							&gpusort_device_wait, DEFAULT_DEVICE_WAIT, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.enable_cluster",
							 "Enables sorting by gpusort in CLUSTER.",
							 NULL,
							 &gpusort_enable_cluster, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.enable_create_index",
							 "Enables sorting by gpusort in btree index builds.",
							 NULL,
							 &gpusort_enable_create_index, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.enable_gin",
							 "Enables sorting by gpusort in GIN index builds.",
							 NULL,
							 &gpusort_enable_gin, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.enable_index_validation",
							 "Enables the validation by gpusort of indexes that are built CONCURRENTLY.",
							 "gpusort looks only for rows that are newer than the build.",
							 &gpusort_enable_index_validation, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.enable_parallel_index_write",
							 "Enables writing of an index by all processes of a parallel build.",
							 "If off, the leader alone writes the index.",
							 &gpusort_enable_parallel_index_write, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.enable_ranges",
							 "Enables parallel window functions, sorted aggregates and DISTINCT ON.",
							 "Each process of the plan gets a range of the sorted rows.",
							 &gpusort_enable_ranges, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.enabled",
							 "Enables the replacement of sorts by gpusort.",
							 "If off, new plans keep their Sort nodes, and cached plans "
							 "use PostgreSQL's sort.",
							 &gpusort_enabled, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpusort.engine",
							 "Selects the sort engine.",
							 "\"auto\" selects the CPU engine, and the device for sorts of at "
							 "least gpusort.device_min_rows rows. If \"cuda\" finds no device, "
							 "the CPU engine sorts, and EXPLAIN ANALYZE shows the reason.",
							 &gpusort_engine, GS_ENGINE_AUTO, engine_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.force",
							 "Replaces every supported sort, whatever its size.",
							 "This setting is for tests. Even few rows are sorted by an engine.",
							 &gpusort_force, false,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomEnumVariable("gpusort.libc_collations",
							 "Controls the replacement of sorts by collations of the C library.",
							 "\"verify\" sorts by strxfrm() and verifies the order with strcoll() "
							 "before the first row is returned. \"off\" leaves such sorts to PostgreSQL.",
							 &gpusort_libc_collations, GS_LIBC_VERIFY, libc_options,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.log_min_duration",
							"Sets the minimum duration of sorts and index builds that are logged.",
							"Zero logs all that need an engine. -1 logs none.",
							&gpusort_log_min_duration, -1, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.min_rows",
							"Sets the minimum estimated number of rows of a sort that is replaced.",
							"This applies to index builds and CLUSTER, too.",
							&gpusort_min_rows, DEFAULT_MIN_ROWS, 0, INT_MAX,
							PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.planner_cost",
							 "Enables the planner's use of the cost of gpusort's sorts.",
							 "If off, plans are chosen as if PostgreSQL performed all sorts.",
							 &gpusort_planner_cost, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("gpusort.service_path",
							   "Sets the path of the program gpusortd.",
							   "If empty, gpusortd is where it was installed with the library.",
							   &gpusort_service_path, "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
	DefineCustomIntVariable("gpusort.service_timeout",
							"Sets the time after which a gpusortd that does not answer is restarted.",
							"Its sorts start again without it, or end with an error. "
							"Zero disables the timeout.",
							&gpusort_service_timeout, DEFAULT_SERVICE_TIMEOUT, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomBoolVariable("gpusort.verify",
							 "Verifies the order and the number of the rows that a sort returns.",
							 "Each row is compared with the previous one by PostgreSQL's comparators. "
							 "A wrong order or number is an error.",
							 &gpusort_verify, false,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("gpusort");
}

int
gs_errdetail_reason(const char *reason)
{
	return errdetail_internal("%c%s.", pg_toupper((unsigned char) reason[0]), reason + 1);
}

int
gs_errhint_bug(const char *setting, const char *what)
{
	return errhint("This is a bug in gpusort. Set gpusort.%s to off to %s without it.", setting,
				   what);
}

void
gs_report_choice(const char *what, const char *name, bool by_gpusort, const char *detail)
{
	if (gpusort_debug_plan)
		ereport(NOTICE,
				(errmsg("%s \"%s\" %s gpusort", what, name, by_gpusort ? "with" : "without"),
				 detail != NULL ? gs_errdetail_reason(detail) : 0));
}

const char *
gs_library_path(void)
{
	Dl_info		info;

	/* a static object: another library may export the same global name */
	if (dladdr(&engine_options, &info) == 0 || info.dli_fname == NULL)
		elog(ERROR, "could not determine the path of the gpusort library");
	return info.dli_fname;
}
