/*-------------------------------------------------------------------------
 *
 * gin_build.h
 *	  Builds a GIN index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_GIN_BUILD_H
#define GPUSORT_GIN_BUILD_H

#include "access/genam.h"
#include "nodes/execnodes.h"
#include "storage/dsm.h"
#include "storage/shm_toc.h"

/*
 * Does what ginbuild() does, for an index the order of whose keys is known (gin_columns.h), also
 * where PostgreSQL does not determine the number of workers.
 */
extern IndexBuildResult *gs_gin_build(Relation heap, Relation index, IndexInfo *info,
									  double expected_rows);

/* The main function of a worker. */
extern PGDLLEXPORT void gs_gin_build_worker(dsm_segment *segment, shm_toc *toc);

#endif							/* GPUSORT_GIN_BUILD_H */
