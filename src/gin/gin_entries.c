/*-------------------------------------------------------------------------
 *
 * gin_entries.c
 *	  The entries of a GIN index that is built, from the table to the sort.
 *
 *		heap scan ---> extract the keys of an item ---> accumulate ---> rows ---> sort
 *
 * The operator class extracts the keys of each value that is indexed, except for trigrams of ASCII
 * words (gin_trigrams.c).  GIN itself sorts the keys of an item and removes duplicates, by
 * comparisons; here the accumulator drops a TID that a key already has.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "build/build_scan.h"
#include "gin/gin_accumulate.h"
#include "gin/gin_columns.h"
#include "gin/gin_entries.h"
#include "gin/gin_trigrams.h"
#include "pg_compat.h"

#include "access/gin_private.h"
#include "catalog/pg_type_d.h"
#include "executor/tuptable.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* What extracted keys may take before their memory is freed: to do so takes 20 ns. */
#define EXTRACTED_BYTES		((Size) 256 << 10)

/*
 * The rows of a block that may be collected: values of an expression may have 1 MB each.  The order
 * of TIDs only makes lists longer.
 */
#define BLOCK_BYTES		((Size) 256 << 10)

typedef struct EntryWriter
{
	GsBuildSort *sort;
	GinState	state;
	GsGinAccumulator *accumulator;
	GsGinTrigrams *trigrams[INDEX_MAX_KEYS];	/* NULL: extractValue is called */
	GsGinLayout layout;
	int			natts;			/* columns of the index */
	MemoryContext extracted;	/* what the operator classes allocate */
	TupleTableSlot *row;		/* virtual */
} EntryWriter;

/* ------------------------------------------------------------------ rows out */

/* A GsGinEmit: adds a row to the sort. */
static void
emit(void *arg, const GsGinItem *item)
{
	EntryWriter *writer = arg;
	const GsGinLayout *layout = &writer->layout;
	Datum	   *values = writer->row->tts_values;
	bool	   *nulls = writer->row->tts_isnull;
	const int	key = layout->key + item->attribute - 1;

	if (layout->attribute >= 0)
	{
		values[layout->attribute] = Int16GetDatum(item->attribute);
		memset(nulls + layout->key, true, writer->natts);
	}
	values[key] = item->key;
	nulls[key] = item->category != GIN_CAT_NORM_KEY;
	values[layout->category] = CharGetDatum(item->category);
	values[layout->rest] = PointerGetDatum(item->rest);
	values[layout->tid] = Int64GetDatum(gs_build_row_tid(gs_gin_block_of(item->first),
														 gs_gin_offset_of(item->first), true));
	gs_build_sort_add(writer->sort, writer->row);
}

/* -------------------------------------------------------------------- items in */

/* Adds the keys of a value of an attribute.  False: it has none. */
static bool
add_keys(EntryWriter *writer, OffsetNumber attribute, Datum value, uint64 tid)
{
	const GsGinTrigrams *trigrams = writer->trigrams[attribute - 1];
	int32		nkeys = 0;
	bool	   *nulls = NULL;
	Datum	   *keys;

	if (trigrams != NULL)
		return gs_gin_trigrams_add(trigrams, writer->accumulator, attribute, value, tid);
	keys = (Datum *)
		DatumGetPointer(FunctionCall3Coll(&writer->state.extractValueFn[attribute - 1],
										  writer->state.supportCollation[attribute - 1],
										  value, PointerGetDatum(&nkeys),
										  PointerGetDatum(&nulls)));
	if (keys == NULL || nkeys <= 0)
		return false;
	gs_gin_accumulator_add(writer->accumulator, attribute, keys, nulls, nkeys, tid);
	return true;
}

/* The add function of a sink: a row of the table. */
static void
add_item(void *arg, TupleTableSlot *row)
{
	EntryWriter *writer = arg;
	MemoryContext old;
	uint64		tid;

	slot_getallattrs(row);
	tid = gs_gin_number_of_column(DatumGetInt64(row->tts_values[writer->natts]));
	old = MemoryContextSwitchTo(writer->extracted);
	for (int i = 0; i < writer->natts; i++)
	{
		if (row->tts_isnull[i])
			gs_gin_accumulator_add_placeholder(writer->accumulator, i + 1, GIN_CAT_NULL_ITEM, tid);
		else if (!add_keys(writer, i + 1, row->tts_values[i], tid))
			gs_gin_accumulator_add_placeholder(writer->accumulator, i + 1, GIN_CAT_EMPTY_ITEM, tid);
	}
	MemoryContextSwitchTo(old);
	if (MemoryContextMemAllocated(writer->extracted, false) > EXTRACTED_BYTES)
		MemoryContextReset(writer->extracted);
}

/* -------------------------------------------------------------------- the scan */

/* The type of the values of the table, or of expressions, that are indexed, and the heap TID. */
static TupleDesc
item_type(Relation heap, const IndexInfo *info)
{
	const int	natts = info->ii_NumIndexAttrs;
	TupleDesc	desc = CreateTemplateTupleDesc(natts + 1);
	ListCell   *expression = list_head(info->ii_Expressions);

	for (int i = 0; i < natts; i++)
	{
		const AttrNumber column = info->ii_IndexAttrNumbers[i];

		if (column != 0)
			TupleDescCopyEntry(desc, i + 1, RelationGetDescr(heap), column);
		else
		{
			Node	   *node = lfirst(expression);

			TupleDescInitEntry(desc, i + 1, NULL, exprType(node), exprTypmod(node), 0);
			expression = lnext(info->ii_Expressions, expression);
		}
	}
	TupleDescInitEntry(desc, natts + 1, "tid", INT8OID, -1, 0);
	gs_finish_tuple_desc(desc);
	return desc;
}

/* No column is NULL at first. */
static TupleTableSlot *
make_row(TupleDesc desc)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);

	memset(slot->tts_isnull, 0, sizeof(bool) * desc->natts);
	return ExecStoreVirtualTuple(slot);
}

/* In the current memory context. */
static EntryWriter *
create_writer(GsBuildSort *sort, Relation index)
{
	EntryWriter *writer = palloc0(sizeof(EntryWriter));
	const Size	memory_limit = (Size) sort->memory_kb * 1024;

	writer->sort = sort;
	initGinState(&writer->state, index);
	writer->accumulator =
		gs_gin_accumulator_create(&writer->state, memory_limit - memory_limit /
								  sort->method->memory_parts, emit, writer);
	writer->natts = RelationGetNumberOfAttributes(index);
	for (int i = 0; i < writer->natts; i++)
		writer->trigrams[i] = gs_gin_trigrams_create(&writer->state.extractValueFn[i],
													 writer->state.supportCollation[i]);
	writer->layout = gs_gin_layout(index);
	writer->extracted = AllocSetContextCreate(CurrentMemoryContext, "GpuSort GIN keys",
											  ALLOCSET_DEFAULT_SIZES);
	writer->row = make_row(sort->sort.spec.desc);
	return writer;
}

double
gs_gin_entries_scan(GsBuildSort *sort, Relation heap, Relation index, IndexInfo *info,
					ParallelTableScanDesc parallel, bool progress)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort GIN entries",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	EntryWriter *writer = create_writer(sort, index);
	GsBuildSink sink = {
		.desc = item_type(heap, info),
		.block_bytes = BLOCK_BYTES,
		.add = add_item,
		.arg = writer
	};
	double		ntuples;

	MemoryContextSwitchTo(old);
	ntuples = gs_build_scan(&sink, heap, index, info, parallel, progress);
	gs_gin_accumulator_flush(writer->accumulator);
	ExecDropSingleTupleTableSlot(writer->row);
	MemoryContextDelete(context);
	return ntuples;
}
