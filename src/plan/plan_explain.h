/*-------------------------------------------------------------------------
 *
 * plan_explain.h
 *	  EXPLAIN (GPUSORT): why Sorts of a plan are not GpuSorts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PLAN_EXPLAIN_H
#define GPUSORT_PLAN_EXPLAIN_H

/* Adds the option to EXPLAIN, from PostgreSQL 18 on. */
extern void gs_plan_explain_install(void);

#endif							/* GPUSORT_PLAN_EXPLAIN_H */
