/*-------------------------------------------------------------------------
 *
 * sql_status.c
 *	  gpusort_service_status(): the state of the gpusortd of each device.
 *
 * gpusortd answers with the welcome message that every client gets.  If it does not
 * answer, the supervisor has saved the reason.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "client/gpu_client.h"
#include "client/supervisor.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

extern PGDLLEXPORT Datum gpusort_service_status(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(gpusort_service_status);

/* The columns of the result. */
enum
{
	COLUMN_DEVICE_NUMBER,
	COLUMN_STATE,
	COLUMN_DETAIL,
	COLUMN_DEVICE,
	COLUMN_DEVICE_KIND,
	COLUMN_MEMORY_TOTAL,
	COLUMN_MEMORY_LIMIT,
	COLUMN_MEMORY_USED,
	COLUMN_MEMORY_LENT,
	COLUMN_JOBS,
	COLUMN_WAITING,
	COLUMN_JOBS_DONE,
	COLUMN_PID,
	NCOLUMNS
};

/* Sets the columns of a gpusortd that answers. */
static void
set_running(const GsWelcome *welcome, Datum *values, bool *nulls)
{
	memset(nulls, false, sizeof(bool) * NCOLUMNS);
	nulls[COLUMN_DETAIL] = true;
	values[COLUMN_DEVICE] = CStringGetTextDatum(welcome->device_name);
	values[COLUMN_DEVICE_KIND] =
		CStringGetTextDatum(welcome->device_kind == GS_DEVICE_KIND_CUDA ? "cuda" : "host");
	values[COLUMN_MEMORY_TOTAL] = Int64GetDatum((int64) welcome->memory_total);
	values[COLUMN_MEMORY_LIMIT] = Int64GetDatum((int64) welcome->memory_limit);
	values[COLUMN_MEMORY_USED] = Int64GetDatum((int64) welcome->memory_used);
	values[COLUMN_MEMORY_LENT] = Int64GetDatum((int64) welcome->memory_lent);
	values[COLUMN_JOBS] = Int32GetDatum((int32) welcome->njobs);
	values[COLUMN_WAITING] = Int32GetDatum((int32) welcome->nwaiting);
	values[COLUMN_JOBS_DONE] = Int64GetDatum((int64) welcome->jobs_done);
	values[COLUMN_PID] = Int32GetDatum((int32) welcome->pid);
}

/* Adds the row of a device, whose state the supervisor has recorded. */
static void
add_row(ReturnSetInfo *result, const GsDeviceStatus *recorded)
{
	Datum		values[NCOLUMNS] = {0};
	bool		nulls[NCOLUMNS];
	GsWelcome	welcome;
	const char *state;
	const char *why_not = "";

	memset(nulls, true, sizeof(nulls));
	gs_gpu_client_status(Max(recorded->device, 0), &welcome, GS_WELCOME_MS, &state, &why_not);
	if (strcmp(state, "running") == 0)
		set_running(&welcome, values, nulls);
	else
	{
		if (strcmp(state, "not answering") == 0 &&
			strcmp(recorded->state, GS_SUPERVISOR_RUNNING) != 0)
		{
			state = recorded->state;
			why_not = recorded->why;
		}
		values[COLUMN_DETAIL] = CStringGetTextDatum(why_not);
		nulls[COLUMN_DETAIL] = why_not[0] == '\0';
	}
	values[COLUMN_DEVICE_NUMBER] = Int32GetDatum(recorded->device);
	nulls[COLUMN_DEVICE_NUMBER] = recorded->device < 0;
	values[COLUMN_STATE] = CStringGetTextDatum(state);
	nulls[COLUMN_STATE] = false;
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

Datum
gpusort_service_status(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	const GsDeviceStatus *devices;
	int			ndevices;

	InitMaterializedSRF(fcinfo, 0);
	if (result->setDesc->natts != NCOLUMNS)
		elog(ERROR, "gpusort_service_status() must return %d columns", NCOLUMNS);
	devices = gs_supervisor_status(&ndevices);
	for (int i = 0; i < ndevices; i++)
		add_row(result, &devices[i]);
	return (Datum) 0;
}
