/*-------------------------------------------------------------------------
 *
 * sql_calibrate.c
 *	  gpusort_calibrate(): the number of rows from which a device is faster.
 *
 * Sorts generated rows with both engines through engine.h, and so measures all of a
 * sort but its child plan: copying rows in, transfer, sort, and returning rows.  The
 * device starts as in a query that has reached the same number of rows: they are in
 * the CPU engine, and move.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <float.h>
#include <limits.h>

#include "engine/engine.h"
#include "guc.h"
#include "store/store_device_choice.h"
#include "store/store_space.h"

#include "common/pg_prng.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

extern PGDLLEXPORT Datum gpusort_calibrate(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(gpusort_calibrate);

/* The generated rows: their width, and the numbers that are tried. */
#define ROW_BYTES	104
#define FIRST_NROWS	((uint64) 1 << 10)
#define LAST_NROWS	((uint64) 1 << 21)

/* How often each number is tried, by both engines in turn; the best time counts. */
#define NRUNS		3

/* Memory of the CPU engine for the largest number. */
#define MEMORY_BYTES	((size_t) 1 << 30)

/* Rows fetched at a time, as in the node. */
#define WINDOW		8

/* A layout with one 64-bit column. */
static void
init_layout(GsKeyLayout *layout)
{
	gs_key_layout_init(layout);
	gs_key_layout_add_column(layout, false, false);
	gs_key_layout_add_field(layout, 64, GS_CANONICAL_NONE);
}

static void
report_no_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("Failed while measuring the speed of the engines.")));
}

static void
push_row(GsEngine *engine, GsBatch **batch, uint64 key)
{
	GsKeyLayout *layout = engine->request.layout;
	uint64	   *record;

	if ((*batch == NULL || !gs_engine_has_space(*batch, ROW_BYTES)) &&
		gs_engine_reserve(engine, ROW_BYTES, batch) != GS_STATUS_OK)
		report_no_memory();
	memset(gs_batch_next_row(*batch), (int) key, ROW_BYTES);
	record = gs_batch_next_record(*batch);
	record[0] = key;
	record[1] = gs_batch_next_location(*batch, 0);
	gs_key_field_update_range(&layout->fields[0], key);
	layout->nrows++;
	gs_batch_push(*batch, ROW_BYTES);
}

/* Measures one sort, in ms.  on_device: the rows then move to the device. */
static double
measure(uint64 nrows, bool on_device)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort calibration",
												  ALLOCSET_DEFAULT_SIZES);
	pg_prng_state random;
	instr_time	start;
	instr_time	elapsed;
	GsKeyLayout layout;
	GsEngineRequest request = {0};
	GsEngine   *engine;
	GsBatch    *batch = NULL;
	GsStatus	status;
	const void *rows[WINDOW];
	size_t		fetched;

	init_layout(&layout);
	request.layout = &layout;
	request.memory_limit = MEMORY_BYTES;
	gs_store_runtime_init(&request.runtime, context);
	pg_prng_seed(&random, 42);

	INSTR_TIME_SET_CURRENT(start);
	engine = gs_engine_cpu_open(&request);
	if (engine == NULL)
		report_no_memory();
	for (uint64 i = 0; i < nrows; i++)
		push_row(engine, &batch, pg_prng_uint64(&random));
	if (on_device)
	{
		const char *why_not;

		engine = gs_device_move(engine, context, (double) nrows,
								ROW_BYTES + gs_record_bytes(&layout), false, &why_not);
		if (engine == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("no device is available"),
					 errdetail_internal("%s", why_not),
					 errhint("Call gpusort_calibrate() again when gpusort_service_status() "
							 "shows state \"running\".")));
	}
	status = gs_engine_sort(engine);
	for (uint64 at = 0; status == GS_STATUS_OK && at < nrows; at += fetched)
	{
		CHECK_FOR_INTERRUPTS();
		status = gs_engine_fetch(engine, at, WINDOW, rows, &fetched);
		for (size_t i = 0; i < fetched; i++)
			(void) *(const volatile uint64 *) rows[i];
	}
	if (status != GS_STATUS_OK)
		ereport(ERROR,
				(errcode(ERRCODE_SYSTEM_ERROR),
				 errmsg("sort engine \"%s\" failed", engine->stats.engine),
				 engine->stats.detail ? errdetail_internal("%s", engine->stats.detail) : 0));
	gs_engine_close(engine);
	INSTR_TIME_SET_CURRENT(elapsed);
	INSTR_TIME_SUBTRACT(elapsed, start);
	MemoryContextDelete(context);
	return INSTR_TIME_GET_MILLISEC(elapsed);
}

/*
 * gpusort_calibrate() returns setof (rows bigint, cpu_ms float8, device_ms
 * float8).  Sets gpusort.device_min_rows for the session to the smallest number
 * tried from which the device was never slower.
 */
Datum
gpusort_calibrate(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	uint64		min_rows = INT_MAX;
	char	   *value;

	InitMaterializedSRF(fcinfo, 0);

	/* connect, and load the kernels */
	measure(FIRST_NROWS, true);
	for (uint64 nrows = FIRST_NROWS; nrows <= LAST_NROWS; nrows *= 2)
	{
		double		best[2] = {DBL_MAX, DBL_MAX};
		Datum		values[3];
		bool		nulls[3] = {false};

		for (int run = 0; run < NRUNS; run++)
			for (int on_device = 0; on_device < 2; on_device++)
				best[on_device] = Min(best[on_device], measure(nrows, on_device));
		if (best[1] > best[0])
			min_rows = INT_MAX;
		else if (min_rows == INT_MAX)
			min_rows = nrows;
		values[0] = Int64GetDatum((int64) nrows);
		values[1] = Float8GetDatum(best[0]);
		values[2] = Float8GetDatum(best[1]);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	value = psprintf(UINT64_FORMAT, min_rows);
	SetConfigOption("gpusort.device_min_rows", value, PGC_USERSET, PGC_S_SESSION);
	ereport(NOTICE,
			(errmsg("gpusort.device_min_rows is set to %s in this session", value),
			 min_rows == INT_MAX ? errdetail("The device was never faster than the CPU engine.") :
			 0,
			 errhint("To keep this value, run ALTER SYSTEM SET gpusort.device_min_rows = %s.",
					 value)));
	return (Datum) 0;
}
