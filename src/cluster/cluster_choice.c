/*-------------------------------------------------------------------------
 *
 * cluster_choice.c
 *	  Who puts the rows of a table in the order of an index, and how.
 *
 * PostgreSQL compares the costs of an index scan with those of its own sort.  An index scan is
 * cheap by its costs if the table fits into effective_cache_size, but it finds each row by itself.
 * CLUSTER of 5 M rows of 120 bytes by a bigint, in memory, with gpusort's build of the index
 * (2 cores of an AMD EPYC, Zen 5, PostgreSQL 15.20, 2026-11-24):
 *
 *						index scan	PostgreSQL's sort	gpusort's sort
 *		random order	6.0 s		4.3 s				2.2 s
 *		in order		2.3 s		3.2 s				1.7 s
 *
 * On disks an index scan of a table that is nearly in order reads it once, while a sort also writes
 * and reads temporary files.  So such tables are left to PostgreSQL's choice; others are sorted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "cluster/cluster_choice.h"
#include "guc.h"
#include "index/index_sort.h"
#include "key/key_columns.h"

#include "access/htup_details.h"
#include "catalog/catalog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/*
 * The correlation of the first column, which is the share of pages that PostgreSQL expects an index scan
 * to read in their order if it is squared.
 */
#define NEARLY_IN_ORDER		0.9

/* How much longer a row is in a temporary file than in the table, at most; rows of a few bytes may be longer. */
#define MOST_WRITTEN		2.0

char *
gs_cluster_why_not(Relation heap, Relation index, double nrows)
{
	char	   *reason;

	if (IsSystemRelation(heap))
		return "the table is a system catalog";
	reason = gs_index_sort_why_not(index);
	if (reason != NULL || gpusort_force)
		return reason;
	if (nrows < gpusort_min_rows)
		return psprintf("the estimated number of rows, %.0f, is less than gpusort.min_rows (%d)",
						nrows, gpusort_min_rows);
	return NULL;
}

/* The correlation between the order of a column and that of the table; 0 if it is not known. */
static double
correlation_of(Oid table, AttrNumber attno)
{
	HeapTuple	statistics = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table), Int16GetDatum(attno),
											 BoolGetDatum(false));
	AttStatsSlot slot;
	double		correlation = 0;

	if (!HeapTupleIsValid(statistics))
		return 0;
	if (get_attstatsslot(&slot, statistics, STATISTIC_KIND_CORRELATION, InvalidOid, ATTSTATSSLOT_NUMBERS))
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
	GsSortColumn *columns = gs_index_sort_columns(index, &ncolumns);

	return gs_key_columns_are_collated(columns, ncolumns) || gs_key_columns_leave_ties(columns, ncolumns);
}

/* May a sort write all rows of a table of so many pages, with their keys, to temporary files? */
static bool
may_write(BlockNumber npages)
{
	return temp_file_limit < 0 || MOST_WRITTEN * npages * BLCKSZ <= temp_file_limit * 1024.0;
}

bool
gs_cluster_prefers_sort(Relation heap, Relation index, const IndexOptInfo *info, const RelOptInfo *table)
{
	return enable_sort && info->relam == BTREE_AM_OID && info->indexprs == NIL &&
		gs_cluster_why_not(heap, index, table->tuples) == NULL && !are_keys_expensive(index) &&
		fabs(correlation_of(RelationGetRelid(heap), info->indexkeys[0])) < NEARLY_IN_ORDER &&
		may_write(table->pages);
}
