/*-------------------------------------------------------------------------
 *
 * index_btree.c
 *	  Builds a btree.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "build/build_index.h"
#include "build/build_parallel.h"
#include "build/build_scan.h"
#include "build/build_sort.h"
#include "index/index_btree.h"
#include "index/index_columns.h"
#include "index/index_write.h"
#include "pg_compat.h"

#include "access/nbtree.h"
#include "catalog/pg_type_d.h"
#include "utils/rel.h"

static TupleDesc
row_type(Relation index)
{
	TupleDesc	of_index = RelationGetDescr(index);
	TupleDesc	desc = CreateTemplateTupleDesc(of_index->natts + 1);

	for (int i = 1; i <= of_index->natts; i++)
		TupleDescCopyEntry(desc, i, of_index, i);
	TupleDescInitEntry(desc, of_index->natts + 1, "tid", INT8OID, -1, 0);
	gs_finish_tuple_desc(desc);
	return desc;
}

static void
add_to_sort(void *arg, TupleTableSlot *row)
{
	gs_build_sort_add(arg, row);
}

static double
scan(GsBuildSort *sort, Relation heap, Relation index, IndexInfo *info,
	 ParallelTableScanDesc parallel, bool progress)
{
	const GsBuildSink sink = {
		.desc = sort->sort.spec.desc,
		.any_order = sort->sort.spec.nstable == 0,
		.stored = true,
		.add = add_to_sort,
		.arg = sort
	};

	return gs_build_scan(&sink, heap, index, info, parallel, progress);
}

static int
write_upper(Relation heap, Relation index, const GsBuildPart *part)
{
	const int	gap = gs_build_ranges_find_gap(part->ranges);

	if (gap == 0)
		gs_index_pages_write_upper(heap, index, part);
	return gap;
}

static const GsBuildMethod method = {
	.setting = "enable_create_index",
	.worker_main = "gs_index_btree_worker",
	.first_block = BTREE_METAPAGE + 1,
	.scan_phase = PROGRESS_BTREE_PHASE_INDEXBUILD_TABLESCAN,
	.sort_phase = PROGRESS_BTREE_PHASE_PERFORMSORT_1,
	.write_phase = PROGRESS_BTREE_PHASE_LEAF_LOAD,
	.memory_parts = 1,
	.row_type = row_type,
	.columns = gs_index_columns,
	.scan = scan,
	.write = gs_index_tuples_write,
	.write_upper = write_upper
};

IndexBuildResult *
gs_index_btree_build(Relation heap, Relation index, IndexInfo *info, double expected_rows)
{
	return gs_build_index(&method, heap, index, info, expected_rows);
}

void
gs_index_btree_worker(dsm_segment *segment, shm_toc *toc)
{
	gs_build_parallel_work(&method, toc);
}
