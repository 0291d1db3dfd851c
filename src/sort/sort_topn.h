/*-------------------------------------------------------------------------
 *
 * sort_topn.h
 *	  The rows that can still be among the first so many.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SORT_TOPN_H
#define GPUSORT_SORT_TOPN_H

#include "access/tupdesc.h"
#include "utils/sortsupport.h"

#include "engine/engine.h"
#include "common/key_compare.h"
#include "key/key_columns.h"

/* A top-N sort while it loads. */
typedef struct GsTopN
{
	int64		bound;			/* N; GS_UNBOUNDED (sort_limit.h): no top-N */
	bool		may_prune;		/* the engine is one that can drop rows */
	uint64		dropped;		/* rows */

	/* the bound-th of the rows so far: none like it or after it is wanted */
	bool		has_cutoff;
	uint64		first;			/* gs_topn_first_of_record() of it */
	uint64	   *record;
	char	   *row;

	/* the same, as values of the first sort column; NULL if that is not asked for */
	SortSupport order;
	bool		order_decides;	/* there is no other sort column */
	TupleDesc	desc;
	Datum		value;
	bool		is_null;
} GsTopN;

extern void gs_topn_begin(GsTopN *top, int64 bound);

/*
 * Has rows dropped by a comparison of their first sort column, for those whose
 * key costs more than that.  In the current memory context.
 */
extern void gs_topn_compare_values(GsTopN *top, const GsSortColumn *columns, int ncolumns,
								  TupleDesc desc);

/* So many rows have to fit in memory to find the first `bound` of them. */
#define gs_topn_min_rows(bound)	((bound) * 1.25)

/*
 * Has the engine, which is the CPU's, and is loading, drop the rows that are
 * behind the bound, if that is worth while: if there are enough of them, or,
 * when memory is at its end, if there are some.  True if it did: a batch that
 * was reserved is then no longer valid.  The cutoff is kept in the context.
 */
extern bool gs_topn_prune(GsTopN *top, GsEngine *engine, MemoryContext context,
					   bool memory_is_short);

/* Will it, of so many rows to come in all?  Not if it has already. */
extern bool gs_topn_will_prune(const GsTopN *top, double expected_rows);

/* How many of so many rows the engine gets to keep. */
extern double gs_topn_expected_rows(const GsTopN *top, double expected_rows);

/* How many rows have been loaded into a CPU engine and are still there. */
extern uint64 gs_topn_rows_of_engine(const GsEngine *engine);

/* How many of the sorted rows are right, counted from the first. */
static inline int64
gs_topn_nrows(const GsTopN *top)
{
	return top->dropped > 0 ? top->bound : PG_INT64_MAX;
}

/*
 * A word of the first sort column: rows with a smaller one come first, and
 * among rows with the same anything can follow.  code is that of the column's
 * first field.
 */
static inline uint64
gs_topn_first(const GsKeyLayout *layout, bool is_null, uint64 code)
{
	if (is_null)
		return layout->columns[0].nulls_first ? 0 : PG_UINT64_MAX;
	return layout->columns[0].descending ? ~code : code;
}

static inline uint64
gs_topn_first_of_record(const GsKeyLayout *layout, const uint64 *record)
{
	bool		is_null = !layout->keys_only && (gs_record_nulls(record, layout->nwords) & 1) != 0;

	return gs_topn_first(layout, is_null, gs_key_field_code(&layout->fields[0], record));
}

/*
 * Is a row not wanted, as far as its first word tells?  Counts it if not.
 * There must be a cutoff.
 */
static inline bool
gs_topn_drops_first(GsTopN *top, uint64 first)
{
	if (first <= top->first)
		return false;
	top->dropped++;
	return true;
}

/* The same, as far as the value of its first column tells, which may leave memory behind. */
static inline bool
gs_topn_drops_value(GsTopN *top, Datum value, bool is_null)
{
	int			order = ApplySortComparator(value, is_null, top->value, top->is_null, top->order);

	if (order < 0 || (order == 0 && !top->order_decides))
		return false;
	top->dropped++;
	return true;
}

/* Does a row come before the cutoff?  Ties do not, if nothing decides them. */
static inline bool
gs_topn_is_before(const GsTopN *top, const GsJob *job, const uint64 *record, const char *row)
{
	uint64		first = gs_topn_first_of_record(job->layout, record);
	int			order;

	if (first != top->first)
		return first < top->first;
	order = gs_key_compare(job->layout, record, row, top->record, top->row);
	if (order == 0 && job->compare != NULL)
		order = job->compare(job->compare_arg, row, top->row);
	return order < 0;
}

/* Is a row not wanted?  The same, with its whole key, which was observed already. */
static inline bool
gs_topn_drops(GsTopN *top, const GsJob *job, const uint64 *record, const char *row)
{
	GsKeyLayout *layout = job->layout;

	if (gs_topn_is_before(top, job, record, row))
		return false;
	gs_key_layout_remove_row(layout, layout->keys_only ? 0 : gs_record_nulls(record, layout->nwords));
	top->dropped++;
	return true;
}

#endif							/* GPUSORT_SORT_TOPN_H */
