/*-------------------------------------------------------------------------
 *
 * sort_spec.h
 *	  What a caller asks a sort to do.
 *
 * The caller fills in a GsSortSpec and passes it to gs_sort_init(), which copies
 * it.  It does not change afterwards, however often the sort runs.  Fields that
 * are left zero ask for nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_SPEC_H
#define GPUSORT_SORT_SPEC_H

#include "executor/tuptable.h"
#include "nodes/execnodes.h"

#include "engine/engine.h"
#include "key/key_encoder.h"
#include "run/run_file.h"

/* The number of rows that a LIMIT asks for, if there is none. */
#define GS_UNBOUNDED	PG_INT64_MAX

/*
 * Of each group, rows are needed of which the middle is that of the group, by the column after
 * those of the group.
 */
#define GS_GROUP_MIDDLE	(-1)

typedef struct GsSortGroups GsSortGroups;
typedef struct GsReadLimit GsReadLimit;

typedef struct GsSortSpec
{
	/* the rows */
	TupleDesc	desc;
	double		expected_rows;
	int			expected_width; /* of a row's values, in bytes */
	bool		of_index;		/* entries of an index that is built */
	bool		of_ties;		/* some rows of another sort, which is the one that is counted */
	PlanState  *child;			/* returns the rows; NULL: gs_sort_add() does */
	GsSortGroups *groups;		/* reads the child's rows in batches, each of which is a sort, in
								 * the CPU engine; NULL: all at once */
	bool		repeatable;		/* child can run again without being noticed, and
								 * returns the same rows */

	/* their order */
	const GsSortColumn *columns;
	int			ncolumns;
	int			nstable;		/* further columns: rows with equal keys arrive in
								 * their order, so a stable sort ignores them */

	/* how they are returned */
	GsReadLimit *limit;			/* only the first rows; NULL: all */
	ExprContext *econtext;		/* of the limit */
	GsStatus	(*write_tied) (void *sort);	/* set by gs_sort_init(): writes rows that a device
											 * leaves tied as a run, in order */
	bool		random_access;	/* may be rewound, marked, read backward */
	bool		verify_output;	/* gpusort.verify: see gs_verify_output_begin() (order.h) */
	bool		caller_verifies;	/* approximate keys are taken for exact: the caller compares
									 * the rows that are returned, and sorts again if their
									 * order is wrong */
	TupleTableSlot *slot;		/* of a minimal tuple; rows are returned in it */

	/* other processes */
	bool		may_share;		/* a job with the other participants of the plan */
	int			ngrouped;		/* rows with so many equal leading columns are a group: if there
								 * are several participants, each returns ranges of the rows of
								 * all, which do not divide a group; 0: none are */
	int			group_limit;	/* of a group, only the first so many rows are needed; 0: all, or
								 * GS_GROUP_MIDDLE */
	bool		numbers_rows;	/* rows of a group are counted; not with GS_GROUP_MIDDLE */
	bool		merged_elsewhere;	/* the caller begins the merge of its runs, and
									 * adds those of other processes */
	GsRunPlace	run_files;		/* where its runs are, if another process merges
								 * them; known once participants start */

	MemoryContext parent_context;	/* parent of the sort's own context */
} GsSortSpec;

#endif							/* GPUSORT_SORT_SPEC_H */
