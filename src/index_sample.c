/*-------------------------------------------------------------------------
 *
 * index_sample.c
 *	  Does a table have its rows in the order of an index to be built?
 *
 * Many do, by the column that they were loaded by.  PostgreSQL's sort notices, and
 * then all that it costs is to have copied the entries; to have them sorted
 * by us first would be one more copy, for nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index_sample.h"
#include "index_sort.h"
#include "sort_compare.h"

#include "access/tableam.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define SAMPLE_BLOCKS	16

typedef struct Sample
{
	GsSortCompare *compare;
	TupleDesc	desc;
	MemoryContext context;
	MinimalTuple last;			/* NULL before the first */
	bool		in_order;
} Sample;

/* An IndexBuildCallback. */
static void
compare_entry(Relation index, ItemPointer tid, Datum *values, bool *nulls, bool alive, void *arg)
{
	Sample	   *sample = arg;
	MemoryContext old = MemoryContextSwitchTo(sample->context);
	MinimalTuple entry = heap_form_minimal_tuple(sample->desc, values, nulls);

	if (sample->last == NULL)
		gs_sort_compare_begin(sample->compare, entry);
	else
	{
		if (gs_sort_compare_next(sample->compare, entry) > 0)
			sample->in_order = false;
		pfree(sample->last);
	}
	sample->last = entry;
	MemoryContextSwitchTo(old);
}

bool
gs_index_sample_in_order(Relation heap, Relation index, IndexInfo *info)
{
	const BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	const BlockNumber step = Max(nblocks / SAMPLE_BLOCKS, 1);
	Sample		sample = {.desc = RelationGetDescr(index), .in_order = true};
	GsSortColumn *columns;
	int			ncolumns;
	MemoryContext old;

	sample.context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort sample",
										   ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(sample.context);
	columns = gs_index_sort_columns(index, &ncolumns);
	sample.compare = gs_sort_compare_create(columns, ncolumns, sample.desc);
	MemoryContextSwitchTo(old);
	for (BlockNumber block = 0; block < nblocks && sample.in_order; block += step)
		(void) table_index_build_range_scan(heap, index, info, false, false, false, block, 1,
											compare_entry, &sample, NULL);
	MemoryContextDelete(sample.context);
	return sample.in_order;
}
