/*-------------------------------------------------------------------------
 *
 * pg_compat.c
 *	  What differs between versions of PostgreSQL, or reaches into its structs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pg_compat.h"

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/pg_collation.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"
#include "utils/syscache.h"

/* ----------------------------------------------------------------- settings */

/* The order of the names of settings in PostgreSQL, which ignores the case of ASCII letters. */
static int
compare_names(const char *a, const char *b, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++)
	{
		char		ca = a[i] >= 'A' && a[i] <= 'Z' ? a[i] + ('a' - 'A') : a[i];
		char		cb = b[i] >= 'A' && b[i] <= 'Z' ? b[i] + ('a' - 'A') : b[i];

		if (ca != cb)
			return ca - cb;
		if (ca == '\0')
			break;
	}
	return 0;
}

/*
 * PostgreSQL 15 keeps all settings in a sorted array, and sorts it again for each
 * setting that is added: 50 us, a millisecond for all of ours in each new session.
 * (16 has a hash table.)  Therefore the settings of others are taken out of the
 * array meanwhile.  A setting without a name, which sorts in a hundredth of that
 * time, takes their places.  Values that were assigned to our settings before the
 * library was loaded are placeholders in the array, and stay there.
 */
void
gs_define_settings(const char *prefix, void (*define) (void))
{
	static struct config_generic nameless = {.name = ""};
	size_t		nprefix = strlen(prefix);
	int			nbefore = GetNumConfigOptions();
	struct config_generic **all = get_guc_variables();
	struct config_generic **before = palloc(nbefore * sizeof(*all));
	int			first = 0;		/* of ours */
	int			end;			/* of ours */
	int			nothers;

	memcpy(before, all, nbefore * sizeof(*all));
	while (first < nbefore && compare_names(before[first]->name, prefix, nprefix) < 0)
		first++;
	end = first;
	while (end < nbefore && compare_names(before[end]->name, prefix, nprefix) == 0)
		end++;
	nothers = nbefore - (end - first);

	for (int i = 0; i < nothers; i++)
		all[i] = &nameless;
	memcpy(all + nothers, before + first, (end - first) * sizeof(*all));
	PG_TRY();
	{
		define();
	}
	PG_FINALLY();
	{
		int			nours = GetNumConfigOptions() - nothers;

		all = get_guc_variables();
		memmove(all + first, all + nothers, nours * sizeof(*all));
		memcpy(all, before, first * sizeof(*all));
		memcpy(all + first + nours, before + end, (nbefore - end) * sizeof(*all));
	}
	PG_END_TRY();
	pfree(before);
}

/* --------------------------------------------------------------- collations */

bool
gs_collation_is_bytewise(Oid collation)
{
	return lc_collate_is_c(collation);
}

char
gs_collation_provider(Oid collation)
{
	HeapTuple	tuple;
	char		provider;

	if (collation == DEFAULT_COLLATION_OID)
		return default_locale.provider == COLLPROVIDER_ICU ? COLLPROVIDER_ICU : COLLPROVIDER_LIBC;
	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	provider = ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
	ReleaseSysCache(tuple);
	return provider;
}

bool
gs_collation_is_deterministic(Oid collation)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);

	return locale == NULL || locale->deterministic;
}

locale_t
gs_collation_libc_locale(Oid collation)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);

	return locale == NULL ? NULL : locale->info.lt;
}

#ifdef USE_ICU
UCollator *
gs_collation_collator(Oid collation)
{
	return pg_newlocale_from_collation(collation)->info.icu.ucol;
}
#endif

/* ------------------------------------------------------------- index builds */

void
gs_set_ambuild(Relation index, ambuild_function build)
{
	index->rd_indam->ambuild = build;
}

void
gs_keep_relation(Relation relation)
{
	relation->rd_refcnt++;
}

void
gs_forget_relation(Relation relation)
{
	relation->rd_refcnt--;
}

void
gs_prepare_index_comparator(Relation index, bool descending, SortSupport column)
{
	PrepareSortSupportFromIndexRel(index, descending ? BTGreaterStrategyNumber :
								   BTLessStrategyNumber, column);
}

void
gs_log_index_page(Relation index, BlockNumber block, char *page)
{
	log_newpage(&index->rd_node, MAIN_FORKNUM, block, page, true);
}

/* --------------------------------------------------------------- heap scans */

bool
gs_is_heap(Relation relation)
{
	return relation->rd_tableam == GetHeapamTableAmRoutine();
}

bool
gs_is_pagemode(HeapScanDesc scan)
{
	return (scan->rs_base.rs_flags & SO_ALLOW_PAGEMODE) != 0;
}

void
gs_skip_tuples(HeapScanDesc scan)
{
	OffsetNumber last = PageGetMaxOffsetNumber(BufferGetPage(scan->rs_cbuf));

	if (gs_is_pagemode(scan))
		scan->rs_cindex = scan->rs_ntuples - 1;
	else
		ItemPointerSetOffsetNumber(&scan->rs_ctup.t_self, Max(last, FirstOffsetNumber));
}

BlockNumber
gs_next_block(HeapScanDesc scan)
{
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;
	ParallelBlockTableScanWorker mine = scan->rs_parallelworkerdata;

	if (gs_is_pagemode(scan))
		return InvalidBlockNumber;
	if (shared == NULL)
		return scan->rs_cblock + 1 < scan->rs_nblocks ? scan->rs_cblock + 1 : InvalidBlockNumber;
	/* from the blocks that are allocated to this process, which may be more than there are */
	return mine->phsw_chunk_remaining > 0 && mine->phsw_nallocated + 1 < shared->phs_nblocks ?
		(mine->phsw_nallocated + 1 + shared->phs_startblock) % shared->phs_nblocks :
		InvalidBlockNumber;
}

void
gs_go_to_next_block(HeapScanDesc scan, Buffer buffer)
{
	if (scan->rs_base.rs_parallel != NULL)
		(void) table_block_parallelscan_nextpage(scan->rs_base.rs_rd, scan->rs_parallelworkerdata,
												 (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel);
	ReleaseBuffer(scan->rs_cbuf);
	scan->rs_cbuf = buffer;
	scan->rs_cblock = BufferGetBlockNumber(buffer);
}

BlockNumber
gs_blocks_done(HeapScanDesc scan)
{
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;

	return shared == NULL ? scan->rs_cblock :
		(scan->rs_cblock + shared->phs_nblocks - shared->phs_startblock) % shared->phs_nblocks;
}

void
gs_count_heap_rows(Relation relation, int64 nrows)
{
	if (pgstat_should_count_relation(relation))
		relation->pgstat_info->t_counts.t_tuples_returned += nrows;
}
