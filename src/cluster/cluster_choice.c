/*-------------------------------------------------------------------------
 *
 * cluster_choice.c
 *	  Who puts the rows of a table in the order of an index, and how.
 *
 * PostgreSQL compares the costs of an index scan with those of its own sort.  An index scan is
 * cheap by its costs if the table fits into effective_cache_size, but it finds each row by
 * itself, and a sort by gpusort is faster (docs/cluster.md has the times).  But a sort writes and
 * reads temporary files, which an index scan does not.  So tables that are nearly in order, which
 * an index scan reads once, and those of wide rows are left to PostgreSQL's choice, and so are
 * long keys, which temporary files store a second time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "cluster/cluster.h"
#include "index/index_columns.h"
#include "key/key_columns.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "storage/bufmgr.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/*
 * The correlation of the first column, which is the share of pages that PostgreSQL expects an index
 * scan to read in their order if it is squared.
 */
#define NEARLY_IN_ORDER		0.9

/*
 * The fewest rows of an average page.  With rows of 256, 640 and 1,500 bytes an index scan takes
 * 2.3, 1.7 and 0.7 times as long as gpusort's sort (2 cores of an AMD EPYC, Zen 5, 2026-11-24).
 */
#define LEAST_ROWS_OF_PAGE	12

/* The widest keys, in bytes as they are stored. */
#define MOST_KEY_BYTES		64

char *
gs_cluster_why_not(Relation heap, Relation index, double nrows)
{
	if (IsSystemRelation(heap))
		return "the table is a system catalog";
	return gs_index_columns_why_not(index, nrows);
}

/* The correlation between the order of a column and that of the table; 0 if it is not known. */
static double
correlation_of(Oid table, AttrNumber attno)
{
	HeapTuple	statistics = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table),
											 Int16GetDatum(attno), BoolGetDatum(false));
	AttStatsSlot slot;
	double		correlation = 0;

	if (!HeapTupleIsValid(statistics))
		return 0;
	if (get_attstatsslot(&slot, statistics, STATISTIC_KIND_CORRELATION, InvalidOid,
						 ATTSTATSSLOT_NUMBERS))
	{
		if (slot.nnumbers == 1)
			correlation = slot.numbers[0];
		free_attstatsslot(&slot);
	}
	ReleaseSysCache(statistics);
	return correlation;
}

/* Does encoding or comparing a row cost more than a few comparisons of numbers? */
static bool
are_keys_expensive(Relation index)
{
	int			ncolumns;
	const GsSortColumn *columns = gs_index_columns(index, &ncolumns);
	const GsKeyTraits traits = gs_key_columns_traits(columns, ncolumns);

	return traits.collated || traits.leave_ties;
}

/* Has a table values out of line? */
static bool
has_toast(Relation heap)
{
	Relation	toast;
	BlockNumber npages;

	if (!OidIsValid(heap->rd_rel->reltoastrelid))
		return false;
	toast = table_open(heap->rd_rel->reltoastrelid, AccessShareLock);
	npages = RelationGetNumberOfBlocks(toast);
	table_close(toast, AccessShareLock);
	return npages > 0;
}

/* Can the keys take much more space in temporary files than a few numbers? */
static bool
are_keys_long(Relation heap, Relation index, const IndexOptInfo *info)
{
	int32		width = 0;
	bool		are_variable = false;

	for (int i = 0; i < info->nkeycolumns; i++)
	{
		const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(index), i);
		const int32 average = get_attavgwidth(RelationGetRelid(heap), info->indexkeys[i]);

		width += average > 0 ? average : get_typavgwidth(attribute->atttypid, attribute->atttypmod);
		are_variable |= attribute->attlen < 0;
	}
	return width > MOST_KEY_BYTES || (are_variable && has_toast(heap));
}

bool
gs_cluster_prefers_sort(Relation heap, Relation index, const IndexOptInfo *info,
						const RelOptInfo *table)
{
	return enable_sort && temp_file_limit < 0 && info->relam == BTREE_AM_OID &&
		info->indexprs == NIL &&
		table->tuples >= LEAST_ROWS_OF_PAGE * (double) table->pages &&
		gs_cluster_why_not(heap, index, table->tuples) == NULL &&
		!are_keys_expensive(index) && !are_keys_long(heap, index, info) &&
		fabs(correlation_of(RelationGetRelid(heap), info->indexkeys[0])) < NEARLY_IN_ORDER;
}
