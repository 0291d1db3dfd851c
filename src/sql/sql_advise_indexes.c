/*-------------------------------------------------------------------------
 *
 * sql_advise_indexes.c
 *	  gpusort_advise_indexes(): which indexes gpusort would build, and how much faster.
 *
 * An index whose table another session has locked is not waited for.
 *
 * Anyone may ask, also about tables of others, so no code of the owner of a table may run.  This
 * function reads catalogs, opens relations, and asks for the sizes of their files.  It plans no
 * query of a table: the planner would evaluate constant parts of index expressions and predicates.
 * Nor does it ask the relcache for these (RelationGetIndexExpressions()) or for IndexInfos
 * (BuildIndexInfo()), which would do so, too.  What does run are handlers of access methods,
 * SortSupport functions, and functions for the options of operator classes.  All of them have a
 * parameter of type internal, so only superusers can create them.  Comparison functions are looked
 * up, and not called.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "guc.h"
#include "index/index_columns.h"
#include "index/index_hook.h"
#include "plan/plan_cost.h"
#include "store/store_device_choice.h"

#include "access/genam.h"
#include "access/relation.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"

extern PGDLLEXPORT Datum gpusort_advise_indexes(PG_FUNCTION_ARGS);
PG_FUNCTION_INFO_V1(gpusort_advise_indexes);

/* The columns of the result. */
enum
{
	COLUMN_INDEX,
	COLUMN_TABLE,
	COLUMN_SIZE,				/* from here on of indexes that are not locked */
	COLUMN_ROWS,
	COLUMN_ENGINE,
	COLUMN_GAIN_PERCENT,
	COLUMN_REASON,
	NCOLUMNS
};

/* Indexes of tables and materialized views of users, the largest first. */
#define QUERY \
	"SELECT i.indexrelid, i.indrelid FROM pg_catalog.pg_index i " \
	"JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid " \
	"JOIN pg_catalog.pg_class t ON t.oid = i.indrelid " \
	"JOIN pg_catalog.pg_am a ON a.oid = c.relam " \
	"WHERE a.amname = 'btree' AND c.relkind = 'i' AND t.relkind IN ('r', 'm') " \
	"AND c.relpersistence <> 't' AND t.oid >= 16384 " \
	"ORDER BY c.relpages DESC, c.oid"

/*
 * Reads them by SPI, with the operators of pg_catalog, whatever the search_path has before these.
 */
static SPITupleTable *
read_indexes(void)
{
	const int	nest_level = NewGUCNestLevel();

	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	if (SPI_execute(QUERY, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the indexes");
	AtEOXact_GUC(false, nest_level);
	return SPI_tuptable;
}

/*
 * The estimated gain of a build, in percent of its cost without gpusort: of the scan of
 * the table, the sort, and writing the index.  One process does all on both sides.
 */
static double
gain_percent(Relation heap, Relation index, double nrows, double nentries, bool *on_device)
{
	int			ncolumns;
	const GsSortColumn *columns = gs_index_columns(index, &ncolumns);
	const double npages =
		(double) RelationGetNumberOfBlocks(heap) + RelationGetNumberOfBlocks(index);
	const double rest = nrows * cpu_tuple_cost + nentries * cpu_index_tuple_cost +
		npages * seq_page_cost;
	const double postgres = gs_plan_cost_comparisons(nentries);
	const GsKeyTraits traits = gs_key_columns_traits(columns, ncolumns);
	double		gain;

	*on_device = gs_device_is_likely(nentries) && !traits.leave_ties;
	if (traits.compared)
		return 0;
	gain = postgres - gs_plan_cost_expected(postgres, nentries, *on_device);
	return rint(1000 * gain / (postgres + rest)) / 10;
}

/* Sets the columns of an index that is open.  Returns the gain. */
static double
set_index(Relation heap, Relation index, Datum *values, bool *nulls)
{
	double		nrows;
	const char *reason = gs_index_hook_why_not(heap, index, &nrows);
	double		nentries = index->rd_rel->reltuples > 0 ? index->rd_rel->reltuples : nrows;
	bool		on_device = false;
	double		gain = 0;

	if (reason == NULL && !gpusort_enable_create_index)
		reason = "gpusort.enable_create_index is off";
	if (reason == NULL)
		gain = gain_percent(heap, index, nrows, nentries, &on_device);

	values[COLUMN_SIZE] = Int64GetDatum((int64) RelationGetNumberOfBlocks(index) * BLCKSZ);
	values[COLUMN_ROWS] = Int64GetDatum((int64) nentries);
	values[COLUMN_ENGINE] =
		CStringGetTextDatum(reason != NULL ? "postgres" : on_device ? "cuda" : "cpu");
	values[COLUMN_GAIN_PERCENT] = Float8GetDatum(gain);
	nulls[COLUMN_SIZE] = nulls[COLUMN_ROWS] = nulls[COLUMN_ENGINE] = nulls[COLUMN_GAIN_PERCENT] =
		false;
	nulls[COLUMN_REASON] = reason == NULL;
	if (reason != NULL)
		values[COLUMN_REASON] = CStringGetTextDatum(reason);
	return gain;
}

/* Opens a relation.  NULL: another session has locked it, or it does not exist any more. */
static Relation
try_open(Oid oid, bool *is_locked)
{
	Relation	relation;

	*is_locked = !ConditionalLockRelationOid(oid, AccessShareLock);
	if (*is_locked)
		return NULL;
	relation = try_relation_open(oid, NoLock);
	if (relation == NULL)
		UnlockRelationOid(oid, AccessShareLock);
	return relation;
}

/* Adds the row of an index if it gains enough. */
static void
add_index(ReturnSetInfo *result, Oid index_oid, Oid table_oid, double min_gain)
{
	Datum		values[NCOLUMNS] = {0};
	bool		nulls[NCOLUMNS];
	double		gain = 0;
	bool		is_locked;
	Relation	heap = try_open(table_oid, &is_locked);
	Relation	index = heap == NULL ? NULL : try_open(index_oid, &is_locked);

	memset(nulls, true, sizeof(nulls));
	nulls[COLUMN_INDEX] = nulls[COLUMN_TABLE] = false;
	values[COLUMN_INDEX] = ObjectIdGetDatum(index_oid);
	values[COLUMN_TABLE] = ObjectIdGetDatum(table_oid);
	if (index != NULL)
		gain = set_index(heap, index, values, nulls);
	else if (is_locked)
	{
		values[COLUMN_REASON] =
			CStringGetTextDatum("another session has locked the table or the index");
		nulls[COLUMN_REASON] = false;
	}

	if ((index != NULL || is_locked) && gain >= min_gain)
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	if (index != NULL)
		relation_close(index, AccessShareLock);
	if (heap != NULL)
		relation_close(heap, AccessShareLock);
}

/* gpusort_advise_indexes(min_gain_percent float8) returns setof record */
Datum
gpusort_advise_indexes(PG_FUNCTION_ARGS)
{
	const double min_gain = PG_GETARG_FLOAT8(0);
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext context;
	SPITupleTable *indexes;

	InitMaterializedSRF(fcinfo, 0);
	if (result->setDesc->natts != NCOLUMNS)
		elog(ERROR, "gpusort_advise_indexes() must return %d columns", NCOLUMNS);
	SPI_connect();
	indexes = read_indexes();
	context = AllocSetContextCreate(CurrentMemoryContext, "gpusort_advise_indexes",
									ALLOCSET_DEFAULT_SIZES);
	for (uint64 i = 0; i < indexes->numvals; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(context);
		bool		is_null;

		CHECK_FOR_INTERRUPTS();
		add_index(result,
				  DatumGetObjectId(SPI_getbinval(indexes->vals[i], indexes->tupdesc, 1, &is_null)),
				  DatumGetObjectId(SPI_getbinval(indexes->vals[i], indexes->tupdesc, 2, &is_null)),
				  min_gain);
		MemoryContextSwitchTo(old);
		MemoryContextReset(context);
	}
	SPI_finish();
	return (Datum) 0;
}
