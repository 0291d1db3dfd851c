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

void
gs_index_write(Relation heap, Relation index, const IndexInfo *info, GsIndexSort *sort,
			   const GsIndexRange *range)
{
	GsIndexLeafBuilder *builder = gs_index_tuples_begin(heap, index, info,
														gs_index_sort_is_verified(sort), range);
	MinimalTuple rows[GS_INDEX_ROWS];
	int			nrows;

	while ((nrows = gs_index_sort_next_rows(sort, GS_INDEX_ROWS, rows)) > 0)
	{
		for (int i = 0; i < nrows; i++)
			gs_index_tuples_add(builder, rows[i]);
	}
	do
		rows[0] = gs_index_sort_next_beyond(sort);
	while (rows[0] != NULL && gs_index_tuples_add_beyond(builder, rows[0]));
	gs_index_tuples_end(builder);
}

void
gs_index_write_upper(Relation heap, Relation index, const GsIndexRange *range)
{
	gs_index_pages_write_upper(heap, index, _bt_allequalimage(index, false), range->ranges, range->files);
}
