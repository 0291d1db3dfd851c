/*-------------------------------------------------------------------------
 *
 * plan.h
 *	  Which sorts gpusort replaces: what hooks call, and what the files of src/plan/ share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_H
#define GPUSORT_PLAN_H

#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "key/key_columns.h"
#include "plan/plan_cost.h"

/* The settings that decide which sorts are replaced. */
typedef struct GsReplaceSettings
{
	bool		enabled;
	bool		force;
	bool		debug_plan;
	int			min_rows;
	int			libc_collations;	/* a GsLibcChoice */
} GsReplaceSettings;

/* Their current values. */
extern GsReplaceSettings gs_replace_settings(void);

/* ------------------------------------------------------------------ the LIMIT */

/* How many rows of a sort are needed, as the planner knows it. */
typedef struct GsPlanLimit
{
	bool		may_stop;		/* a LIMIT, a cursor or a join above may leave rows
								 * unread, of this node or of one between */
	bool		bounded;
	bool		computable;		/* by the node, from count and offset */
	double		rows;			/* < 0: not known before execution */
	Node	   *count;			/* expressions of the LIMIT; may be NULL */
	Node	   *offset;
} GsPlanLimit;

extern const GsPlanLimit gs_plan_limit_none;

/* The bound that a Limit with these clauses sets for the node below it. */
extern GsPlanLimit gs_plan_limit_of_clauses(LimitOption option, Node *count, Node *offset);

/* The bound in a worker, below a Gather or Gather Merge: executor parameters are not computable. */
extern GsPlanLimit gs_plan_limit_in_worker(GsPlanLimit bound);

/* The list for custom_exprs of the plan node. */
extern List *gs_plan_limit_exprs(const GsPlanLimit *bound);

/* --------------------------------------------------- while a query is planned */

/*
 * Adds paths whose sorts will be GpuSorts to the relation of a query's ordered rows, if they are
 * cheaper than with PostgreSQL's sort.  saved: by the first partial path of the input, of what the
 * planner does not count in the other paths.
 */
extern void gs_plan_path_add(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel,
							 Cost saved);

/*
 * The sort of a path by a GpuSort; or a Gather Merge of the sorts of a partial path, after which
 * the target is computed from the rows.  NULL: it will not be replaced, is not cheaper than
 * PostgreSQL's, or needs disk unless on_disk.
 */
extern Path *gs_plan_path_sort(PlannerInfo *root, RelOptInfo *rel, Path *input, List *pathkeys,
							   const GsPlanLimit *bound, bool on_disk);
extern Path *gs_plan_path_merge(PlannerInfo *root, RelOptInfo *rel, Path *partial, List *pathkeys,
								const GsPlanLimit *bound, const PathTarget *target, bool on_disk);

/*
 * Estimates the sort of a path, and finds its columns, whose attnos are positions in the target of
 * the path; 0: an expression that is not in it.  False: it will not be replaced, or is not much
 * faster than PostgreSQL's.
 */
extern bool gs_plan_path_estimate(PlannerInfo *root, Path *input, List *pathkeys,
								  const GsPlanLimit *bound, GsSortColumn **columns,
								  GsKeyTraits *traits, GsPlanEstimate *estimate);

/* Are all these columns in the target? */
extern bool gs_plan_path_has_columns(const GsSortColumn *columns, int ncolumns);

/* May parts of the query run twice without visible effects? */
extern bool gs_plan_is_repeatable(Query *query);

/* ------------------------------------------------------------ a finished plan */

/*
 * Replaces Sort nodes of a finished plan in place, subplans included.  With gpusort.debug_plan,
 * reports the others and the reasons.  settings: those of the planner.  repeatable: what
 * gs_plan_is_repeatable() says of the query before it is planned.  may_stop: the query is planned
 * for its first rows.
 */
extern void gs_plan_rewrite(PlannedStmt *statement, const GsReplaceSettings *settings,
							bool repeatable, bool may_stop);

/*
 * A copy of a parallel plan, in the current memory context, whose GpuSorts are all parallel_aware;
 * the plan itself if it has none.
 */
extern PlannedStmt *gs_plan_with_reports(PlannedStmt *statement);

/* Adds EXPLAIN (GPUSORT), which shows why Sorts are not GpuSorts, from PostgreSQL 18 on. */
extern void gs_plan_explain_install(void);

/* ---------------------------------------------------------- what is replaced */

/* Is a sort of this many estimated rows left to PostgreSQL in any case? */
static inline bool
gs_plan_replace_is_small(const GsReplaceSettings *settings, double nrows)
{
	return nrows < settings->min_rows && !settings->force;
}

/* NULL if the sort is replaced, else the reason, a phrase that starts in lower case. */
extern char *gs_plan_replace_why_not(const GsReplaceSettings *settings,
									 const GsSortColumn *columns, int ncolumns,
									 double nrows, const GsPlanLimit *bound);

/*
 * The reason likewise for a sort of rows that arrive in the order of the first npresorted columns,
 * in groups of about group_rows rows.  Only if gs_plan_replace_why_not() returns NULL.
 */
extern char *gs_plan_replace_why_not_groups(const GsReplaceSettings *settings,
											 const GsSortColumn *columns, int ncolumns,
											 int npresorted, double group_rows,
											 const GsPlanLimit *bound);

#endif							/* GPUSORT_PLAN_H */
