/*-------------------------------------------------------------------------
 *
 * cluster_row.c
 *	  A version of a table's row as a row to be sorted, and back.
 *
 * A stored row is a MinimalTuple, which lacks what the header of a heap tuple says about its
 * version.  That follows the columns, so a row is
 *
 *	  columns of the table | expressions of the index | version, 24 bytes
 *
 * In its row type the version is three bigints, which nobody reads as such.
 *
 * Usually there are no expressions.  Then the row is the body of the tuple with the version
 * behind it; as that adds no columns to the tuple's number of columns, they are NULL.  Otherwise,
 * and if the table has columns that were added with a value that is not in the tuples, the row is
 * formed of values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cluster/cluster.h"
#include "index/index_columns.h"
#include "pg_compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "catalog/index.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "storage/bufpage.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* What is known of a version besides its infomasks, which the row has. */
typedef struct Version
{
	HeapTupleFields fields;
	ItemPointerData next;		/* t_ctid */
	ItemPointerData self;
} Version;

#define VERSION_COLUMNS		3

StaticAssertDecl(sizeof(Version) == VERSION_COLUMNS * sizeof(int64), "a version has three columns");

/* ------------------------------------------------------------------ row type */

static int
count_expressions(const IndexInfo *info)
{
	return list_length(info->ii_Expressions);
}

static TupleDesc
make_type(TupleDesc table, Relation index, const IndexInfo *info)
{
	const int	ncolumns = table->natts + count_expressions(info) + VERSION_COLUMNS;
	TupleDesc	desc = CreateTemplateTupleDesc(ncolumns);
	int			n = 0;

	while (n < table->natts)
	{
		n++;
		TupleDescCopyEntry(desc, n, table, n);
	}
	for (int i = 0; i < info->ii_NumIndexAttrs; i++)
	{
		if (info->ii_IndexAttrNumbers[i] == InvalidAttrNumber)
			TupleDescCopyEntry(desc, ++n, RelationGetDescr(index), i + 1);
	}
	while (n < ncolumns)
		TupleDescInitEntry(desc, ++n, "version", INT8OID, -1, 0);
	gs_finish_tuple_desc(desc);
	return desc;
}

/* The key columns of the index, as columns of the row. */
static void
set_columns(GsClusterRows *rows, Relation index, const IndexInfo *info)
{
	AttrNumber	expression = rows->table->natts;

	rows->columns = gs_index_columns(index, &rows->ncolumns);
	for (int i = 0; i < rows->ncolumns; i++)
	{
		GsSortColumn *column = &rows->columns[i];

		column->attno = info->ii_IndexAttrNumbers[i];
		if (column->attno == InvalidAttrNumber)
			column->attno = ++expression;
		else
			column->type = TupleDescAttr(rows->table, column->attno - 1)->atttypid;
	}
}

static bool
has_dropped_columns(TupleDesc desc)
{
	for (int i = 0; i < desc->natts; i++)
	{
		if (TupleDescAttr(desc, i)->attisdropped)
			return true;
	}
	return false;
}

GsClusterRows *
gs_cluster_rows_create(Relation heap, Relation index)
{
	GsClusterRows *rows = palloc0(sizeof(GsClusterRows));
	IndexInfo  *info = BuildIndexInfo(index);
	const TupleDesc table = RelationGetDescr(heap);
	const bool	has_missing = table->constr != NULL && table->constr->missing != NULL;

	rows->table = table;
	rows->desc = make_type(table, index, info);
	set_columns(rows, index, info);
	rows->has_dropped = has_dropped_columns(table);
	rows->slot = MakeSingleTupleTableSlot(rows->desc, &TTSOpsMinimalTuple);
	rows->row = palloc(BLCKSZ + sizeof(Version));
	rows->values = palloc(sizeof(Datum) * rows->desc->natts);
	rows->nulls = palloc(sizeof(bool) * rows->desc->natts);
	rows->tuple = palloc0(BLCKSZ);
	rows->info = info;
	if (has_missing || count_expressions(info) > 0)
	{
		rows->virtual = MakeSingleTupleTableSlot(rows->desc, &TTSOpsVirtual);
		rows->estate = CreateExecutorState();
		rows->of_table = MakeSingleTupleTableSlot(table, &TTSOpsHeapTuple);
		GetPerTupleExprContext(rows->estate)->ecxt_scantuple = rows->of_table;
	}
	return rows;
}

/* -------------------------------------------------------------- tuple to row */

static inline Version
version_of_tuple(const HeapTupleData *tuple)
{
	return (Version) {
		.fields = tuple->t_data->t_choice.t_heap,.next = tuple->t_data->t_ctid,.self = tuple->t_self
	};
}

static inline Version
version_of_row(const MinimalTupleData *row)
{
	Version		version;

	memcpy(&version, (const char *) row + row->t_len - sizeof(Version), sizeof(Version));
	return version;
}

/* Sets the expressions of the index, from the first of these columns on. */
static void
compute_expressions(GsClusterRows *rows, HeapTuple tuple, Datum *values, bool *nulls)
{
	const IndexInfo *info = rows->info;
	Datum		index_values[INDEX_MAX_KEYS];
	bool		index_nulls[INDEX_MAX_KEYS];

	ExecStoreHeapTuple(tuple, rows->of_table, false);
	FormIndexDatum(rows->info, rows->of_table, rows->estate, index_values, index_nulls);
	for (int i = 0; i < info->ii_NumIndexAttrs; i++)
	{
		if (info->ii_IndexAttrNumbers[i] != InvalidAttrNumber)
			continue;
		*values++ = index_values[i];
		*nulls++ = index_nulls[i];
	}
}

/* Fills in the slot of values. */
static void
set_values(GsClusterRows *rows, HeapTuple tuple)
{
	TupleTableSlot *slot = ExecClearTuple(rows->virtual);
	const Version version = version_of_tuple(tuple);
	const int	first = rows->desc->natts - VERSION_COLUMNS;

	heap_deform_tuple(tuple, rows->table, slot->tts_values, slot->tts_isnull);
	for (int i = 0; i < rows->table->natts && rows->has_dropped; i++)
		slot->tts_isnull[i] |= TupleDescAttr(rows->table, i)->attisdropped;
	if (count_expressions(rows->info) > 0)
		compute_expressions(rows, tuple, slot->tts_values + rows->table->natts,
							slot->tts_isnull + rows->table->natts);
	memcpy(slot->tts_values + first, &version, sizeof(version));
	memset(slot->tts_isnull + first, 0, sizeof(bool) * VERSION_COLUMNS);
	ExecStoreVirtualTuple(slot);
}

static pg_noinline MinimalTuple
form_of_values(GsClusterRows *rows, HeapTuple tuple)
{
	MemoryContext old;
	MinimalTuple row;

	ResetPerTupleExprContext(rows->estate);
	set_values(rows, tuple);
	old = MemoryContextSwitchTo(GetPerTupleMemoryContext(rows->estate));
	row = ExecCopySlotMinimalTuple(rows->virtual);
	MemoryContextSwitchTo(old);
	row->t_infomask |= tuple->t_data->t_infomask & HEAP_XACT_MASK;
	row->t_infomask2 |= tuple->t_data->t_infomask2 & HEAP2_XACT_MASK;
	return row;
}

static pg_noinline void
report_length(const HeapTupleData *tuple)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("tuple at (%u,%u) in table \"%s\" has an invalid length of %u bytes",
					ItemPointerGetBlockNumber(&tuple->t_self),
					ItemPointerGetOffsetNumber(&tuple->t_self), get_rel_name(tuple->t_tableOid),
					tuple->t_len)));
}

static inline MinimalTuple
form_of_body(GsClusterRows *rows, const HeapTupleData *tuple)
{
	const MinimalTuple row = rows->row;
	const Version version = version_of_tuple(tuple);

	/* the length is that of a line pointer, which may be damaged */
	if (unlikely(tuple->t_len < SizeofHeapTupleHeader || tuple->t_len > MaxHeapTupleSize))
		report_length(tuple);
	row->t_len = tuple->t_len - MINIMAL_TUPLE_OFFSET + sizeof(Version);
	memcpy(&row->t_infomask2, &tuple->t_data->t_infomask2,
		   tuple->t_len - offsetof(HeapTupleHeaderData, t_infomask2));
	memcpy((char *) row + row->t_len - sizeof(Version), &version, sizeof(Version));
	return row;
}

TupleTableSlot *
gs_cluster_row_form(GsClusterRows *rows, HeapTuple tuple)
{
	const MinimalTuple row = rows->virtual != NULL ? form_of_values(rows, tuple) :
		form_of_body(rows, tuple);

	return ExecStoreMinimalTuple(row, rows->slot, false);
}

uint64
gs_cluster_row_hash(const MinimalTupleData *row)
{
	const Version version = version_of_row(row);
	const uint64 tid = (uint64) ItemPointerGetBlockNumberNoCheck(&version.self) << 16 |
		ItemPointerGetOffsetNumberNoCheck(&version.self);
	const uint64 mixed = tid * UINT64CONST(0x9E3779B97F4A7C15);

	/* not linear, so that other rows have another sum */
	return (mixed ^ mixed >> 32) * mixed;
}

/* -------------------------------------------------------------- row to tuple */

/* The body of a row, as that of a heap tuple, whose header must not be touched. */
static inline HeapTupleData
tuple_of_row(MinimalTuple row)
{
	return (HeapTupleData) {
		.t_len = row->t_len - sizeof(Version) + MINIMAL_TUPLE_OFFSET,
			.t_data = (HeapTupleHeader) ((char *) row - MINIMAL_TUPLE_OFFSET)
	};
}

/* Does the row have exactly the columns that a new tuple of the table has? */
static inline bool
has_body_of_tuple(const GsClusterRows *rows, const MinimalTupleData *row)
{
	return rows->virtual == NULL && !rows->has_dropped &&
		HeapTupleHeaderGetNatts(row) == rows->table->natts &&
		(row->t_infomask & HEAP_HASOID_OLD) == 0;
}

/* Adds a tuple that has the contents of a row to the new table. */
static void
add_tuple(const MinimalTupleData *row, HeapTuple tuple, GsClusterWriter *writer)
{
	const Version version = version_of_row(row);
	HeapTupleHeaderData header = {
		.t_choice.t_heap = version.fields,.t_ctid = version.next,
		.t_infomask = row->t_infomask,.t_infomask2 = row->t_infomask2
	};
	HeapTupleData old = {.t_self = version.self,.t_len = tuple->t_len,.t_data = &header};

	gs_cluster_write_add(writer, &old, tuple);
}

void
gs_cluster_row_write(GsClusterRows *rows, MinimalTuple row, GsClusterWriter *writer)
{
	HeapTupleData body = tuple_of_row(row);
	HeapTuple	formed;

	if (has_body_of_tuple(rows, row))
	{
		HeapTupleHeader header = (HeapTupleHeader) rows->tuple;

		memcpy(&header->t_infomask2, &row->t_infomask2,
			   body.t_len - offsetof(HeapTupleHeaderData, t_infomask2));
		body.t_data = header;
		add_tuple(row, &body, writer);
		return;
	}
	heap_deform_tuple(&body, rows->desc, rows->values, rows->nulls);
	for (int i = 0; i < rows->table->natts && rows->has_dropped; i++)
		rows->nulls[i] |= TupleDescAttr(rows->table, i)->attisdropped;
	formed = heap_form_tuple(rows->table, rows->values, rows->nulls);
	add_tuple(row, formed, writer);
	heap_freetuple(formed);
}

void
gs_cluster_rows_free(GsClusterRows *rows)
{
	ExecDropSingleTupleTableSlot(rows->slot);
	if (rows->virtual == NULL)
		return;
	ExecDropSingleTupleTableSlot(rows->virtual);
	ExecDropSingleTupleTableSlot(rows->of_table);
	FreeExecutorState(rows->estate);
}
