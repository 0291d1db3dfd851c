/*-------------------------------------------------------------------------
 *
 * pg_compat.h
 *	  Every difference between the server versions that gpusort supports.
 *
 * No other file tests PG_VERSION_NUM.  Include it after postgres.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PG_COMPAT_H
#define GPUSORT_PG_COMPAT_H

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 160000
#error "gpusort supports PostgreSQL 15 only; point PG_CONFIG at the pg_config of a PostgreSQL 15"
#endif

#if SIZEOF_DATUM < 8 || !defined(HAVE_INT128)
#error "gpusort needs a 64-bit platform with 128-bit integers"
#endif

/*
 * utils/pg_locale.h of a server with ICU wants ICU's headers, which a machine
 * that builds extensions need not have.  Without them, ICU's member of a union
 * of pointers is left out, and nothing else changes its place.
 */
#if defined(USE_ICU) && !__has_include(<unicode/ucol.h>)
#undef USE_ICU
#endif

#include "access/amapi.h"
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

/* How PostgreSQL orders the names of settings: ASCII letters of either case are the same. */
static inline int
gs_compare_setting_names(const char *a, const char *b, size_t nbytes)
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
 * Defines the settings whose names begin so, by calling define().
 *
 * PostgreSQL 15 keeps all settings in a sorted array, and sorts it anew for each
 * that it adds: 50 us, a millisecond for all of ours in each new session.  (16 has
 * a hash table.)  So the others are out of the array meanwhile: their places are
 * taken by one without a name, which sorts in a hundredth of that.  Values that were
 * given to our settings before are placeholders in the array, and stay in it.
 */
static inline void
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
	while (first < nbefore && gs_compare_setting_names(before[first]->name, prefix, nprefix) < 0)
		first++;
	end = first;
	while (end < nbefore && gs_compare_setting_names(before[end]->name, prefix, nprefix) == 0)
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

/* Does the collation compare byte by byte, as memcmp() does? */
static inline bool
gs_collation_is_bytewise(Oid collation)
{
	return lc_collate_is_c(collation);
}

/* Who compares, if it does not: COLLPROVIDER_ICU or _LIBC.  From the catalog. */
static inline char
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

/* Are texts that compare equal one, whatever their bytes? */
static inline bool
gs_collation_is_deterministic(Oid collation)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);

	return locale == NULL || locale->deterministic;
}

/* The locale of a collation of libc; NULL: the process's own. */
static inline locale_t
gs_collation_libc_locale(Oid collation)
{
	pg_locale_t locale = pg_newlocale_from_collation(collation);

	return locale == NULL ? NULL : locale->info.lt;
}

#ifdef USE_ICU
static inline UCollator *
gs_collation_collator(Oid collation)
{
	return pg_newlocale_from_collation(collation)->info.icu.ucol;
}
#endif

/* Is the table a heap, whose scans are HeapScanDescs? */
static inline bool
gs_is_heap(Relation relation)
{
	return relation->rd_tableam == GetHeapamTableAmRoutine();
}

/* Has an open index built by another function: its relcache entry has a routine of its own. */
static inline void
gs_set_ambuild(Relation index, ambuild_function build)
{
	index->rd_indam->ambuild = build;
}

/* Keeps the relcache entry of a relation that is not open, from one transaction to another. */
static inline void
gs_keep_relation(Relation relation)
{
	relation->rd_refcnt++;
}

/* Ends that. */
static inline void
gs_forget_relation(Relation relation)
{
	relation->rd_refcnt--;
}

/* Has the scan of a heap looked up which tuples of its page are visible? */
static inline bool
gs_is_pagemode(HeapScanDesc scan)
{
	return (scan->rs_base.rs_flags & SO_ALLOW_PAGEMODE) != 0;
}

/* Has the scan of a heap be at the end of its page. */
static inline void
gs_skip_tuples(HeapScanDesc scan)
{
	OffsetNumber last = PageGetMaxOffsetNumber(BufferGetPage(scan->rs_cbuf));

	if (gs_is_pagemode(scan))
		scan->rs_cindex = scan->rs_ntuples - 1;
	else
		ItemPointerSetOffsetNumber(&scan->rs_ctup.t_self, Max(last, FirstOffsetNumber));
}

/* The block that the scan of a heap would come to next, if it is known before it does. */
static inline BlockNumber
gs_next_block(HeapScanDesc scan)
{
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;
	ParallelBlockTableScanWorker mine = scan->rs_parallelworkerdata;

	if (gs_is_pagemode(scan))
		return InvalidBlockNumber;
	if (shared == NULL)
		return scan->rs_cblock + 1 < scan->rs_nblocks ? scan->rs_cblock + 1 : InvalidBlockNumber;
	/* the next of the blocks that this process has taken already, which may be more than there are */
	return mine->phsw_chunk_remaining > 0 && mine->phsw_nallocated + 1 < shared->phs_nblocks ?
		(mine->phsw_nallocated + 1 + shared->phs_startblock) % shared->phs_nblocks :
		InvalidBlockNumber;
}

/* Has the scan of a heap go to that block, whose pin it takes over. */
static inline void
gs_go_to_next_block(HeapScanDesc scan, Buffer buffer)
{
	if (scan->rs_base.rs_parallel != NULL)
		(void) table_block_parallelscan_nextpage(scan->rs_base.rs_rd, scan->rs_parallelworkerdata,
												 (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel);
	ReleaseBuffer(scan->rs_cbuf);
	scan->rs_cbuf = buffer;
	scan->rs_cblock = BufferGetBlockNumber(buffer);
}

/* How many blocks the scan of a heap has come to, before this one; all of its processes. */
static inline BlockNumber
gs_blocks_done(HeapScanDesc scan)
{
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;

	return shared == NULL ? scan->rs_cblock :
		(scan->rs_cblock + shared->phs_nblocks - shared->phs_startblock) % shared->phs_nblocks;
}

/* Counts rows that a scan of a heap has read, as pgstat_count_heap_getnext() each. */
static inline void
gs_count_heap_rows(Relation relation, int64 nrows)
{
	if (pgstat_should_count_relation(relation))
		relation->pgstat_info->t_counts.t_tuples_returned += nrows;
}

/* The comparator of a column of a btree: ssup_attno says which. */
static inline void
gs_prepare_index_comparator(Relation index, bool descending, SortSupport column)
{
	PrepareSortSupportFromIndexRel(index, descending ? BTGreaterStrategyNumber :
								   BTLessStrategyNumber, column);
}

/* Logs a page of an index that is built outside of shared buffers. */
static inline void
gs_log_index_page(Relation index, BlockNumber block, char *page)
{
	log_newpage(&index->rd_node, MAIN_FORKNUM, block, page, true);
}

#endif							/* GPUSORT_PG_COMPAT_H */
