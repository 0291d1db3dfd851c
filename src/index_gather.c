/*-------------------------------------------------------------------------
 *
 * index_gather.c
 *	  Merges the sorted entries of the participants of an index build.
 *
 * A heap of streams, by the entry that each gives next.  Mostly there is nothing to
 * merge, as all entries are in one job (index_parallel.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index_gather.h"
#include "sort_compare.h"
#include "sort_fetch.h"

#include "lib/binaryheap.h"
#include "miscadmin.h"

/* One participant's entries. */
typedef struct Stream
{
	TupleQueueReader *reader;	/* NULL: this process's own */
	MinimalTuple row;			/* that comes next; NULL after the last */
} Stream;

struct GsIndexGather
{
	GsSortState *own;
	GsSortCompare *compare;
	Stream	   *streams;
	binaryheap *order;			/* of those that have a row, by number; the least on top */
	bool		begun;
};

static int
compare_streams(Datum a, Datum b, void *arg)
{
	GsIndexGather *gather = arg;

	/* the largest is on top of a binaryheap */
	return gs_sort_compare_rows(gather->compare, gather->streams[DatumGetInt32(b)].row,
								gather->streams[DatumGetInt32(a)].row, 0);
}

/* Has the stream give its next row. */
static void
advance(GsIndexGather *gather, Stream *stream)
{
	bool		done;

	if (stream->reader != NULL)
		stream->row = TupleQueueReaderNext(stream->reader, false, &done);
	else if (gs_sort_next_rows(gather->own, 1, &stream->row) == 0)
		stream->row = NULL;
}

GsIndexGather *
gs_index_gather_create(GsSortState *own, TupleQueueReader **readers, int nreaders)
{
	GsIndexGather *gather = palloc0(sizeof(GsIndexGather));

	gather->own = own;
	gather->compare = gs_sort_compare_create(own->columns, own->ncolumns, own->desc);
	gather->streams = palloc0(sizeof(Stream) * (nreaders + 1));
	for (int i = 0; i < nreaders; i++)
		gather->streams[i + 1].reader = readers[i];
	gather->order = binaryheap_allocate(nreaders + 1, compare_streams, gather);

	for (int i = 0; i <= nreaders; i++)
	{
		advance(gather, &gather->streams[i]);
		if (gather->streams[i].row != NULL)
			binaryheap_add_unordered(gather->order, Int32GetDatum(i));
	}
	binaryheap_build(gather->order);
	return gather;
}

MinimalTuple
gs_index_gather_next(GsIndexGather *gather)
{
	Stream	   *stream;

	CHECK_FOR_INTERRUPTS();
	if (gather->begun)
	{
		/* the row given last was the first stream's, and not needed any more */
		stream = &gather->streams[DatumGetInt32(binaryheap_first(gather->order))];
		advance(gather, stream);
		if (stream->row != NULL)
			binaryheap_replace_first(gather->order, binaryheap_first(gather->order));
		else
			(void) binaryheap_remove_first(gather->order);
	}
	gather->begun = true;
	if (binaryheap_empty(gather->order))
		return NULL;
	return gather->streams[DatumGetInt32(binaryheap_first(gather->order))].row;
}
