/*-------------------------------------------------------------------------
 *
 * store_topn.h
 *	  A top-N sort: rows that a LIMIT cannot return are dropped.
 *
 * Rows equal to the cutoff are dropped, because they arrived later, so the sort is stable.  Nothing
 * here blocks or fails, but comparators may raise errors.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_TOPN_H
#define GPUSORT_STORE_TOPN_H

#include "access/tupdesc.h"
#include "utils/sortsupport.h"

#include "common/key_compare.h"
#include "engine/engine.h"
#include "key/key_columns.h"

/* A top-N sort while it reads rows. */
typedef struct GsTopN
{
	int64		bound;			/* N; GS_UNBOUNDED (read_limit.h): no top-N */
	bool		may_prune;		/* the engine can drop rows */
	uint64		dropped;		/* rows */

	/* the bound-th of the rows so far: rows equal to it or after it are dropped */
	bool		has_cutoff;
	uint64		first;			/* gs_topn_first_of_record() of it */
	uint64	   *record;
	char	   *row;

	/* its value of the first sort column; order is NULL unless values are compared */
	SortSupport order;
	bool		order_decides;	/* there is no other sort column */
	TupleDesc	desc;
	Datum		value;
	bool		is_null;

	const GsRowCompare *compare;	/* decides; NULL: keys do */
	void	   *compare_arg;
} GsTopN;

extern void gs_topn_begin(GsTopN *top, int64 bound);

/*
 * Compares the values of the first sort column before keys are made, for keys that cost more than a
 * comparison.  In the current memory context.
 */
extern void gs_topn_compare_values(GsTopN *top, const GsSortColumn *columns, int ncolumns,
								   TupleDesc desc);

/*
 * Keys are approximate: rows are compared with the cutoff by this function, and the order of
 * the engine is verified before it drops rows.
 */
extern void gs_topn_compare_rows(GsTopN *top, const GsRowCompare *compare, void *compare_arg);

/* How many rows memory must hold to find the first `bound` of all rows. */
#define gs_topn_min_rows(bound)	((bound) * 1.25)

/*
 * Has the engine, which can prune, enough rows after the bound?  If memory_is_short, fewer are
 * enough.
 */
extern bool gs_topn_should_prune(const GsTopN *top, const GsEngine *engine, bool memory_is_short);

/*
 * Then drops them.  True: it did, and a batch that was reserved is no longer valid.  The cutoff is
 * stored in the context.
 */
extern bool gs_topn_prune(GsTopN *top, GsEngine *engine, MemoryContext context);

/*
 * No more rows are dropped until the engine has dropped some again; for rows that it keeps and gets
 * again.
 */
extern void gs_topn_forget_cutoff(GsTopN *top);

/* Will it do so for the first time, if there are expected_rows rows in all? */
extern bool gs_topn_will_prune(const GsTopN *top, double expected_rows);

/* How many of expected_rows rows will be in the engine at most. */
extern double gs_topn_expected_rows(const GsTopN *top, double expected_rows);

/* How many rows a CPU engine has, before it sorts. */
extern uint64 gs_topn_rows_of_engine(const GsEngine *engine);

/* How many of the sorted rows are the first ones of all rows. */
static inline int64
gs_topn_nrows(const GsTopN *top)
{
	return top->dropped > 0 ? top->bound : PG_INT64_MAX;
}

/*
 * A word of the first sort column: rows with a smaller word sort first; equal words do not decide.
 * code is that of the column's first field.
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
	bool		has_code = layout->columns[0].nfields > 0;	/* values are not only compared */

	return gs_topn_first(layout, is_null,
						 has_code ? gs_key_field_code(&layout->fields[0], record) : 0);
}

/*
 * Is a row after the cutoff by its first word?  Then it is counted as dropped.  There must be a
 * cutoff.
 */
static inline bool
gs_topn_drops_first(GsTopN *top, uint64 first)
{
	if (first <= top->first)
		return false;
	top->dropped++;
	return true;
}

/*
 * Is a row after the cutoff by the value of its first column, or equal to it if there is no other
 * column?  Then it is counted as dropped.  There must be a cutoff.  Comparators may leave memory
 * behind.
 */
static inline bool
gs_topn_drops_value(GsTopN *top, Datum value, bool is_null)
{
	int			order = ApplySortComparator(value, is_null, top->value, top->is_null, top->order);

	if (order < 0 || (order == 0 && !top->order_decides))
		return false;
	top->dropped++;
	return true;
}

/* Does a row sort before the cutoff?  Rows equal to it do not. */
static inline bool
gs_topn_is_before(const GsTopN *top, const GsEngineRequest *request, const uint64 *record,
				  const char *row)
{
	uint64		first;
	int			order;

	if (top->compare != NULL)
		return gs_row_compare(top->compare, top->compare_arg, row, top->row) < 0;
	first = gs_topn_first_of_record(request->layout, record);
	if (first != top->first)
		return first < top->first;
	order = gs_key_compare(request->layout, record, row, top->record, top->row);
	if (order == 0 && request->compare != NULL)
		order = gs_row_compare(request->compare, request->compare_arg, row, top->row);
	return order < 0;
}

/* Drops a row that does not.  Its key is in the layout's statistics already. */
static inline bool
gs_topn_drops(GsTopN *top, const GsEngineRequest *request, const uint64 *record, const char *row)
{
	GsKeyLayout *layout = request->layout;

	if (gs_topn_is_before(top, request, record, row))
		return false;
	gs_key_layout_remove_row(layout,
							 layout->keys_only ? 0 : gs_record_nulls(record, layout->nwords));
	top->dropped++;
	return true;
}

#endif							/* GPUSORT_STORE_TOPN_H */
