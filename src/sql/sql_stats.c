/*-------------------------------------------------------------------------
 *
 * sql_stats.c
 *	  The functions of the views pg_stat_gpusort, pg_stat_gpusort_activity and
 *	  pg_stat_gpusort_device, and of their reset.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "client/supervisor.h"
#include "common/basics.h"
#include "common/device_table.h"
#include "stats/stats.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

extern PGDLLEXPORT Datum gpusort_stat_databases(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(gpusort_stat_databases);
extern PGDLLEXPORT Datum gpusort_stat_activity(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(gpusort_stat_activity);
extern PGDLLEXPORT Datum gpusort_stat_device(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(gpusort_stat_device);
extern PGDLLEXPORT Datum gpusort_stat_reset(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(gpusort_stat_reset);

/* The result, as a set of rows of ncolumns. */
static ReturnSetInfo *
begin_result(FunctionCallInfo fcinfo, int ncolumns)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	if (result->setDesc->natts != ncolumns)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("the function must return %d columns", ncolumns),
				 errhint("Run ALTER EXTENSION gpusort UPDATE in this database.")));
	return result;
}

/* ------------------------------------------------------------ pg_stat_gpusort */

/* The database, the counters, and since when they count. */
#define STAT_COLUMNS	(GS_NSTATS + 2)

/* Times are in milliseconds, as in PostgreSQL's views. */
static Datum
counter_datum(GsStat stat, uint64 value)
{
	return stat >= GS_STAT_INPUT_US && stat <= GS_STAT_OUTPUT_US ?
		Float8GetDatum(value / 1000.0) : Int64GetDatum((int64) value);
}

static bool
has_counted(const GsDatabaseStats *database)
{
	for (int i = 0; i < GS_NSTATS; i++)
		if (database->counters[i] != 0)
			return true;
	return false;
}

Datum
gpusort_stat_databases(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = begin_result(fcinfo, STAT_COLUMNS);
	TimestampTz since;
	int			ndatabases;
	const GsDatabaseStats *databases = gs_stats_read(&ndatabases, &since);

	for (int i = 0; i < ndatabases; i++)
	{
		Datum		values[STAT_COLUMNS];
		bool		nulls[STAT_COLUMNS] = {false};

		/* the first one has those beyond the maximum number */
		if (i == 0 && !has_counted(&databases[i]))
			continue;
		values[0] = ObjectIdGetDatum(databases[i].database);
		for (int k = 0; k < GS_NSTATS; k++)
			values[1 + k] = counter_datum(k, databases[i].counters[k]);
		values[1 + GS_NSTATS] = TimestampTzGetDatum(since);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

Datum
gpusort_stat_reset(PG_FUNCTION_ARGS)
{
	gs_stats_reset();
	/* ENOENT: no supervisor has run yet */
	if (!gs_device_table_reset_counters(GS_DEVICE_TABLE) && errno != ENOENT)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", GS_DEVICE_TABLE)));
	PG_RETURN_VOID();
}

/* --------------------------------------------------- pg_stat_gpusort_activity */

enum
{
	ACTIVITY_PID,
	ACTIVITY_DATABASE,
	ACTIVITY_OPERATION,			/* from here on for those who may see other sessions */
	ACTIVITY_PHASE,
	ACTIVITY_ENGINE,
	ACTIVITY_DEVICES,
	ACTIVITY_ROWS,
	ACTIVITY_START,
	ACTIVITY_COLUMNS
};

static const char *const step_names[] = {
	[GS_STEP_INPUT] = "input",
	[GS_STEP_SORT] = "sort",
	[GS_STEP_OUTPUT] = "output"
};

static const char *const sorter_names[] = {
	[GS_SORTER_NONE] = "none",
	[GS_SORTER_CPU] = "cpu",
	[GS_SORTER_DEVICE] = "cuda",
	[GS_SORTER_POSTGRES] = "postgres"
};

/* The numbers of devices, as an array. */
static Datum
devices_datum(GsDeviceSet devices)
{
	Datum		numbers[GS_MAX_DEVICES];
	int			n = 0;

	for (int device = 0; device < GS_MAX_DEVICES; device++)
		if (devices & GS_DEVICE_BIT(device))
			numbers[n++] = Int32GetDatum(device);
	return PointerGetDatum(construct_array(numbers, n, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

/* As of PostgreSQL's own statistics. */
static bool
may_see(Oid role)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		has_privs_of_role(GetUserId(), role);
}

Datum
gpusort_stat_activity(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = begin_result(fcinfo, ACTIVITY_COLUMNS);
	int			nprocesses;
	const GsProcessActivity *processes = gs_stats_read_activity(&nprocesses);
	const TimestampTz now = GetCurrentTimestamp();
	const uint64 now_us = gs_clock_us();

	for (int i = 0; i < nprocesses; i++)
	{
		const GsActivity *activity = &processes[i].activity;
		Datum		values[ACTIVITY_COLUMNS] = {0};
		bool		nulls[ACTIVITY_COLUMNS];

		memset(nulls, true, sizeof(nulls));
		values[ACTIVITY_PID] = Int32GetDatum(processes[i].pid);
		values[ACTIVITY_DATABASE] = ObjectIdGetDatum(processes[i].database);
		nulls[ACTIVITY_PID] = nulls[ACTIVITY_DATABASE] = false;
		if (may_see(processes[i].role))
		{
			memset(nulls, false, sizeof(nulls));
			values[ACTIVITY_OPERATION] =
				CStringGetTextDatum(activity->of_index ? "index build" : "sort");
			values[ACTIVITY_PHASE] = CStringGetTextDatum(step_names[activity->step]);
			values[ACTIVITY_ENGINE] = CStringGetTextDatum(sorter_names[activity->sorter]);
			nulls[ACTIVITY_DEVICES] = activity->devices == 0;
			values[ACTIVITY_DEVICES] = devices_datum(activity->devices);
			values[ACTIVITY_ROWS] = Int64GetDatum((int64) activity->nrows);
			values[ACTIVITY_START] =
				TimestampTzGetDatum(now - (TimestampTz) (now_us - activity->start_us));
		}
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* ----------------------------------------------------- pg_stat_gpusort_device */

enum
{
	DEVICE_NUMBER,
	DEVICE_NAME,
	DEVICE_STATE,
	DEVICE_MEMORY_TOTAL,
	DEVICE_MEMORY_LIMIT,
	DEVICE_MEMORY_USED,
	DEVICE_MEMORY_LENT,
	DEVICE_RUNNING,
	DEVICE_WAITING,
	DEVICE_SORTS,
	DEVICE_BYTES_IN,
	DEVICE_BYTES_OUT,
	DEVICE_BUSY_TIME,
	DEVICE_FAILURES,
	DEVICE_STATS_RESET,
	DEVICE_COLUMNS
};

static const char *const state_names[] = {
	[GS_DEVICE_STARTING] = "starting",
	[GS_DEVICE_RUNNING] = "running",
	[GS_DEVICE_FAILED] = "failed"
};

static void
set_device(int number, const GsDeviceSlot *slot, time_t since, Datum *values, bool *nulls)
{
	const GsDeviceCounters *counters = &slot->counters;

	/* a gpusortd that has not opened its device yet knows no more than its number */
	nulls[DEVICE_NAME] = slot->name[0] == '\0';
	nulls[DEVICE_MEMORY_TOTAL] = nulls[DEVICE_MEMORY_LIMIT] = slot->memory_total == 0;
	values[DEVICE_NUMBER] = Int32GetDatum(number);
	values[DEVICE_NAME] = CStringGetTextDatum(slot->name);
	values[DEVICE_STATE] = CStringGetTextDatum(state_names[slot->state]);
	values[DEVICE_MEMORY_TOTAL] = Int64GetDatum((int64) slot->memory_total);
	values[DEVICE_MEMORY_LIMIT] = Int64GetDatum((int64) slot->memory_limit);
	values[DEVICE_MEMORY_USED] = Int64GetDatum((int64) slot->used);
	values[DEVICE_MEMORY_LENT] = Int64GetDatum((int64) gs_device_lent(slot));
	values[DEVICE_RUNNING] = Int32GetDatum((int32) slot->njobs);
	values[DEVICE_WAITING] = Int32GetDatum((int32) slot->nwaiting);
	values[DEVICE_SORTS] = Int64GetDatum((int64) counters->jobs);
	values[DEVICE_BYTES_IN] = Int64GetDatum((int64) counters->bytes_in);
	values[DEVICE_BYTES_OUT] = Int64GetDatum((int64) counters->bytes_out);
	values[DEVICE_BUSY_TIME] = Float8GetDatum(counters->busy_us / 1000.0);
	values[DEVICE_FAILURES] = Int64GetDatum((int64) counters->failures);
	values[DEVICE_STATS_RESET] = TimestampTzGetDatum(time_t_to_timestamptz(since));
}

Datum
gpusort_stat_device(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = begin_result(fcinfo, DEVICE_COLUMNS);
	GsDeviceTable table;

	if (!gs_device_table_read(GS_DEVICE_TABLE, &table))
		return (Datum) 0;
	for (int number = 0; number < GS_MAX_DEVICES; number++)
	{
		Datum		values[DEVICE_COLUMNS];
		bool		nulls[DEVICE_COLUMNS] = {false};

		if (table.slots[number].state == GS_DEVICE_UNUSED)
			continue;
		set_device(number, &table.slots[number], (time_t) table.counted_since, values, nulls);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
