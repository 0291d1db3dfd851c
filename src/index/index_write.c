/*-------------------------------------------------------------------------
 *
 * index_write.c
 *	  Writes an index of sorted entries, or a range of its leaf pages.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index/index_tuples.h"
#include "index/index_write.h"

#include "access/nbtree.h"

/* Adds all rows, and compares those after the range, until one is in wrong order. */
static void
add_rows(GsIndexLeafBuilder *builder, GsIndexSort *sort)
{
	MinimalTuple rows[GS_INDEX_ROWS];
	int			nrows;

	while ((nrows = gs_index_sort_next_rows(sort, GS_INDEX_ROWS, rows)) > 0)
	{
		for (int i = 0; i < nrows; i++)
			if (!gs_index_tuples_add(builder, rows[i]))
				return;
	}
	do
		rows[0] = gs_index_sort_next_beyond(sort);
	while (rows[0] != NULL && gs_index_tuples_add_beyond(builder, rows[0]));
}

bool
gs_index_write(Relation heap, Relation index, const IndexInfo *info, GsIndexSort *sort,
			   const GsIndexRange *range)
{
	GsIndexLeafBuilder *builder =
		gs_index_tuples_begin(heap, index, info, gs_index_sort_may_be_wrong(sort), range);

	add_rows(builder, sort);
	if (!gs_index_tuples_are_right(builder))
	{
		gs_index_tuples_abandon(builder);
		return false;
	}
	gs_index_tuples_end(builder);
	return true;
}

void
gs_index_write_upper(Relation heap, Relation index, const GsIndexRange *range)
{
	gs_index_pages_write_upper(heap, index, _bt_allequalimage(index, false), range->ranges,
							   range->files);
}
