/*-------------------------------------------------------------------------
 *
 * build_index.h
 *	  Builds an index of entries that gpusort has sorted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUILD_INDEX_H
#define GPUSORT_BUILD_INDEX_H

#include "access/genam.h"

#include "build/build_method.h"

/*
 * Does what ambuild does, with info->ii_ParallelWorkers workers, for an index whose rows gpusort
 * can sort (GsBuildMethod.columns).
 */
extern IndexBuildResult *gs_build_index(const GsBuildMethod *method, Relation heap, Relation index,
										IndexInfo *info, double expected_rows);

#endif							/* GPUSORT_BUILD_INDEX_H */
