/*-------------------------------------------------------------------------
 *
 * gin_check.c
 *	  SQL functions that look into GIN indexes.
 *
 *	  gin_entries(index regclass, OUT attribute int2, OUT category int2, OUT key text, OUT tid tid)
 *	  gin_check(index regclass, OUT keys int8, OUT tids int8, OUT entry_pages int8,
 *				OUT data_pages int8, OUT list_pages int8, OUT free_pages int8, OUT blocks int8,
 *				OUT height int4, OUT tree_height int4, OUT meta text)
 *
 * Both raise an ERROR if anything is wrong (gin_walk.c).  meta: the numbers of keys, entry pages,
 * data pages and blocks that the metapage has.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "gin/gin_walk.h"

#include "access/genam.h"
#include "catalog/pg_am_d.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(gin_entries);
PG_FUNCTION_INFO_V1(gin_check);

typedef struct GinOutput
{
	ReturnSetInfo *result;
	FmgrInfo	functions[INDEX_MAX_KEYS];	/* for the keys of each column */
	MemoryContext row;
} GinOutput;

static Relation
open_gin(Oid oid)
{
	Relation	index = index_open(oid, AccessShareLock);

	if (index->rd_rel->relam != GIN_AM_OID)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a GIN index", RelationGetRelationName(index))));
	return index;
}

static void
return_entries(void *arg, bool first, OffsetNumber attribute, Datum key, GinNullCategory category,
			   ItemPointerData *tids, int ntids)
{
	GinOutput  *output = arg;
	MemoryContext caller = MemoryContextSwitchTo(output->row);
	const bool	is_null = category != GIN_CAT_NORM_KEY;
	bool		nulls[4] = {false, false, is_null, false};
	Datum		values[4] = {Int16GetDatum(attribute), Int16GetDatum(category)};

	if (!is_null)
		values[2] = CStringGetTextDatum(OutputFunctionCall(&output->functions[attribute - 1], key));
	for (int i = 0; i < ntids; i++)
	{
		values[3] = PointerGetDatum(&tids[i]);
		tuplestore_putvalues(output->result->setResult, output->result->setDesc, values, nulls);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextReset(output->row);
}

Datum
gin_entries(PG_FUNCTION_ARGS)
{
	Relation	index = open_gin(PG_GETARG_OID(0));
	GinOutput	output = {.result = (ReturnSetInfo *) fcinfo->resultinfo};
	GinState   *state = palloc(sizeof(GinState));

	InitMaterializedSRF(fcinfo, 0);
	output.row = AllocSetContextCreate(CurrentMemoryContext, "entries", ALLOCSET_DEFAULT_SIZES);
	initGinState(state, index);
	for (int i = 0; i < state->origTupdesc->natts; i++)
	{
		Oid			function;
		bool		is_varlena;

		getTypeOutputInfo(TupleDescAttr(state->origTupdesc, i)->atttypid, &function, &is_varlena);
		fmgr_info(function, &output.functions[i]);
	}
	(void) gin_walk(index, return_entries, &output);
	index_close(index, AccessShareLock);
	return (Datum) 0;
}

Datum
gin_check(PG_FUNCTION_ARGS)
{
	Relation	index = open_gin(PG_GETARG_OID(0));
	const GinWalkCounts counts = gin_walk(index, NULL, NULL);
	Datum		values[] = {
		Int64GetDatum(counts.nkeys), Int64GetDatum(counts.ntids),
		Int64GetDatum(counts.nentry_pages), Int64GetDatum(counts.ndata_pages),
		Int64GetDatum(counts.nlist_pages), Int64GetDatum(counts.nfree_pages),
		Int64GetDatum(counts.nblocks), Int32GetDatum(counts.height),
		Int32GetDatum(counts.tree_height),
		CStringGetTextDatum(psprintf("%lld %u %u %u", (long long) counts.meta.nEntries,
									 counts.meta.nEntryPages, counts.meta.nDataPages,
									 counts.meta.nTotalPages))
	};
	bool		nulls[lengthof(values)] = {false};
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE ||
		desc->natts != lengthof(values))
		elog(ERROR, "gin_check() is not declared as its source says");
	index_close(index, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
