/*-------------------------------------------------------------------------
 *
 * sql_status.c
 *	  gpusort_service_status(): the state of gpusortd.
 *
 * gpusortd answers with the welcome message that every client gets.  If it does not
 * answer, the supervisor has saved the reason.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "client/gpu_client.h"
#include "client/supervisor.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"

extern PGDLLEXPORT Datum gpusort_service_status(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(gpusort_service_status);

/* The columns of the result. */
enum
{
	COLUMN_STATE,
	COLUMN_DETAIL,
	COLUMN_DEVICE,
	COLUMN_DEVICE_KIND,
	COLUMN_MEMORY_TOTAL,
	COLUMN_MEMORY_LIMIT,
	COLUMN_MEMORY_USED,
	COLUMN_JOBS,
	COLUMN_WAITING,
	COLUMN_JOBS_DONE,
	COLUMN_PID,
	NCOLUMNS
};

Datum
gpusort_service_status(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor;
	Datum		values[NCOLUMNS] = {0};
	bool		nulls[NCOLUMNS];
	GsWelcome	welcome;
	const char *state;
	const char *why_not;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE ||
		descriptor->natts != NCOLUMNS)
		elog(ERROR, "gpusort_service_status() must return a row of %d columns", NCOLUMNS);
	memset(nulls, true, sizeof(nulls));
	nulls[COLUMN_STATE] = false;

	gs_gpu_client_status(&welcome, GS_WELCOME_MS, &state, &why_not);
	if (strcmp(state, "running") == 0)
	{
		memset(nulls, false, sizeof(nulls));
		nulls[COLUMN_DETAIL] = true;
		values[COLUMN_DEVICE] = CStringGetTextDatum(welcome.device_name);
		values[COLUMN_DEVICE_KIND] = CStringGetTextDatum(
			welcome.device_kind == GS_DEVICE_KIND_CUDA ? "cuda" : "host");
		values[COLUMN_MEMORY_TOTAL] = Int64GetDatum((int64) welcome.memory_total);
		values[COLUMN_MEMORY_LIMIT] = Int64GetDatum((int64) welcome.memory_limit);
		values[COLUMN_MEMORY_USED] = Int64GetDatum((int64) welcome.memory_used);
		values[COLUMN_JOBS] = Int32GetDatum((int32) welcome.njobs);
		values[COLUMN_WAITING] = Int32GetDatum((int32) welcome.nwaiting);
		values[COLUMN_JOBS_DONE] = Int64GetDatum((int64) welcome.jobs_done);
		values[COLUMN_PID] = Int32GetDatum((int32) welcome.pid);
	}
	else
	{
		char	   *noted;
		char	   *why;

		gs_supervisor_status(&noted, &why);
		if (strcmp(state, "not answering") == 0 && strcmp(noted, "running") != 0)
		{
			state = noted;
			why_not = why;
		}
		values[COLUMN_DETAIL] = CStringGetTextDatum(why_not);
		nulls[COLUMN_DETAIL] = why_not[0] == '\0';
	}
	values[COLUMN_STATE] = CStringGetTextDatum(state);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls)));
}
