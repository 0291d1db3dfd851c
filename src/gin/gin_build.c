/*-------------------------------------------------------------------------
 *
 * gin_build.c
 *	  Builds a GIN index.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "build/build_index.h"
#include "build/build_parallel.h"
#include "gin/gin_build.h"
#include "gin/gin_columns.h"
#include "gin/gin_entries.h"
#include "gin/gin_tuples.h"
#include "gin/gin_write.h"
#include "pg_compat.h"

#include "access/gin.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "utils/rel.h"

static int
write_upper(Relation heap, Relation index, const GsBuildPart *part)
{
	return gs_gin_pages_write_upper(index, part);
}

/*
 * The sort has half of the memory, and the accumulator the other half.  The accumulator emits the
 * lists of keys that are equal but have other bytes in no order.
 */
static const GsBuildMethod method = {
	.setting = "enable_gin",
	.worker_main = "gs_gin_build_worker",
	.first_block = GIN_ROOT_BLKNO + 1,
	.scan_phase = GS_GIN_SCAN_PHASE,
	.sort_phase = GS_GIN_SORT_PHASE,
	.write_phase = GS_GIN_WRITE_PHASE,
	.memory_parts = 2,
	.row_type = gs_gin_row_type,
	.columns = gs_gin_columns,
	.sorts_tids = true,
	.keeps_groups = true,
	.scan = gs_gin_entries_scan,
	.write = gs_gin_tuples_write,
	.write_upper = write_upper
};

IndexBuildResult *
gs_gin_build(Relation heap, Relation index, IndexInfo *info, double expected_rows)
{
	if (!GS_GIN_BUILDS_ARE_PARALLEL)
		info->ii_ParallelWorkers = plan_create_index_workers(RelationGetRelid(heap),
															 RelationGetRelid(index));
	return gs_build_index(&method, heap, index, info, expected_rows);
}

void
gs_gin_build_worker(dsm_segment *segment, shm_toc *toc)
{
	gs_build_parallel_work(&method, toc);
}
