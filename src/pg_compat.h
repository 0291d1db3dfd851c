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

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "gpusort supports PostgreSQL 15 to 19; point PG_CONFIG at the pg_config of one of these"
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
#include "access/nbtree.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#include "miscadmin.h"
#include "optimizer/paths.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/lock.h"
#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#endif
#include "utils/arrayaccess.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"
#include "utils/syscache.h"
#include "utils/tuplesort.h"
#if PG_VERSION_NUM >= 170000
#include "utils/wait_event.h"
#endif
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#if PG_VERSION_NUM < 160000

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

#else							/* settings are in a hash table */

static inline void
gs_define_settings(const char *prefix, void (*define) (void))
{
	define();
}

#endif

/* ---------------------------------------------------------------- collations */

/* Does the collation compare byte by byte, as memcmp() does?  No collation does not. */
static inline bool
gs_collation_is_bytewise(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	return OidIsValid(collation) && pg_newlocale_from_collation(collation)->collate_is_c;
#else
	return lc_collate_is_c(collation);
#endif
}

/* An attribute of pg_database of this database. */
static inline Datum
gs_database_attribute(AttrNumber attribute, bool *is_null)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
	Datum		value;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	value = SysCacheGetAttr(DATABASEOID, tuple, attribute, is_null);
	if (!*is_null && attribute == Anum_pg_database_datcollate)
		value = PointerGetDatum(DatumGetTextPCopy(value));
	ReleaseSysCache(tuple);
	return value;
}

/* The provider of a collation, such as COLLPROVIDER_ICU.  From the catalogs. */
static inline char
gs_collation_provider(Oid collation)
{
	HeapTuple	tuple;
	char		provider;
	bool		is_null;

	if (collation == DEFAULT_COLLATION_OID)
		return DatumGetChar(gs_database_attribute(Anum_pg_database_datlocprovider, &is_null));
	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	provider = ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
	ReleaseSysCache(tuple);
	return provider;
}

/* The C library's name of a collation's order, palloc'd; "" if it is another provider's. */
static inline char *
gs_collation_libc_name(Oid collation)
{
	HeapTuple	tuple;
	Datum		name;
	bool		is_null;
	char	   *result;

	if (collation == DEFAULT_COLLATION_OID)
	{
		name = gs_database_attribute(Anum_pg_database_datcollate, &is_null);
		return TextDatumGetCString(name);
	}
	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	name = SysCacheGetAttr(COLLOID, tuple, Anum_pg_collation_collcollate, &is_null);
	result = is_null ? pstrdup("") : TextDatumGetCString(name);
	ReleaseSysCache(tuple);
	return result;
}

/* Do texts of different bytes always compare as different? */
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

#if PG_VERSION_NUM >= 190000
	return locale == NULL ? NULL : locale->lt;
#else
	return locale == NULL ? NULL : locale->info.lt;
#endif
}

#ifdef USE_ICU
static inline struct UCollator *
gs_collation_collator(Oid collation)
{
#if PG_VERSION_NUM >= 190000
	return pg_newlocale_from_collation(collation)->icu.ucol;
#else
	return pg_newlocale_from_collation(collation)->info.icu.ucol;
#endif
}
#endif

/* ---------------------------------------------------------------------- types */

/* The btree operator family and input type of an ordering operator; false if it has none. */
static inline bool
gs_ordering_operator(Oid operator, Oid *family, Oid *input_type, bool *descending)
{
#if PG_VERSION_NUM >= 180000
	CompareType type;

	if (!get_ordering_op_properties(operator, family, input_type, &type))
		return false;
	*descending = type == COMPARE_GT;
#else
	int16		strategy;

	if (!get_ordering_op_properties(operator, family, input_type, &strategy))
		return false;
	*descending = strategy == BTGreaterStrategyNumber;
#endif
	return true;
}

/* The operator that orders a path key's values of a type; InvalidOid if there is none. */
static inline Oid
gs_pathkey_operator(const PathKey *pathkey, Oid type)
{
#if PG_VERSION_NUM >= 180000
	return get_opfamily_member_for_cmptype(pathkey->pk_opfamily, type, type, pathkey->pk_cmptype);
#else
	return get_opfamily_member(pathkey->pk_opfamily, type, type, pathkey->pk_strategy);
#endif
}

/* An array's elements, of that size and alignment, one after the other: first, then each. */
static inline void
gs_array_begin(array_iter *iterator, AnyArrayType *array, int len, bool by_value, char align)
{
#if PG_VERSION_NUM >= 190000
	array_iter_setup(iterator, array, len, by_value, align);
#else
	array_iter_setup(iterator, array);
#endif
}

static inline Datum
gs_array_next(array_iter *iterator, bool *is_null, int i, int len, bool by_value, char align)
{
#if PG_VERSION_NUM >= 190000
	return array_iter_next(iterator, is_null, i);
#else
	return array_iter_next(iterator, is_null, i, len, by_value, align);
#endif
}

/* A tuple descriptor has all its attributes. */
static inline void
gs_finish_tuple_desc(TupleDesc desc)
{
#if PG_VERSION_NUM >= 190000
	TupleDescFinalize(desc);
#endif
}

/* The next value of a tuplesort of datums, not copied; false after the last. */
static inline bool
gs_tuplesort_getdatum(Tuplesortstate *state, bool forward, Datum *value, bool *is_null)
{
#if PG_VERSION_NUM >= 160000
	return tuplesort_getdatum(state, forward, false, value, is_null, NULL);
#else
	return tuplesort_getdatum(state, forward, value, is_null, NULL);
#endif
}

/* -------------------------------------------------------------------- planner */

#if PG_VERSION_NUM >= 190000
#define GS_PLANNER_PARAMS	Query *parse, const char *query_string, int cursor_options, \
							ParamListInfo bound_params, ExplainState *explain
#define GS_PLANNER_ARGS		parse, query_string, cursor_options, bound_params, explain
#else
#define GS_PLANNER_PARAMS	Query *parse, const char *query_string, int cursor_options, \
							ParamListInfo bound_params
#define GS_PLANNER_ARGS		parse, query_string, cursor_options, bound_params
#endif

/* The hook that is called for each table of a query, and its parameters. */
#if PG_VERSION_NUM >= 190000
#define gs_table_hook		build_simple_rel_hook
typedef build_simple_rel_hook_type GsTableHook;
#define GS_TABLE_HOOK_PARAMS	PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define GS_TABLE_HOOK_ARGS	root, rel, rte
#define GS_TABLE_HOOK_TABLE	(rte->relid)
#define GS_TABLE_HOOK_INHERITS	(rte->inh)
#else
#define gs_table_hook		get_relation_info_hook
typedef get_relation_info_hook_type GsTableHook;
#define GS_TABLE_HOOK_PARAMS	PlannerInfo *root, Oid table, bool inherits, RelOptInfo *rel
#define GS_TABLE_HOOK_ARGS	root, table, inherits, rel
#define GS_TABLE_HOOK_TABLE	table
#define GS_TABLE_HOOK_INHERITS	inherits
#endif

/* Does EXPLAIN print names of columns with their tables? */
static inline bool
gs_explain_uses_prefixes(const ExplainState *es)
{
#if PG_VERSION_NUM >= 180000
	return es->rtable_size > 1 || es->verbose;
#else
	return list_length(es->rtable) > 1 || es->verbose;
#endif
}

/* ---------------------------------------------------------------------- heaps */

/* Is the table a heap, whose scans are HeapScanDescs? */
static inline bool
gs_is_heap(Relation relation)
{
	return relation->rd_tableam == GetHeapamTableAmRoutine();
}

/* Has an open index built by another function. */
static inline void
gs_set_ambuild(Relation index, ambuild_function build)
{
#if PG_VERSION_NUM >= 190000
	/* all indexes share one routine, so this one gets its own */
	if (index->rd_indam->ambuild != build)
	{
		IndexAmRoutine *routine = MemoryContextAlloc(index->rd_indexcxt, sizeof(IndexAmRoutine));

		*routine = *index->rd_indam;
		routine->ambuild = build;
		index->rd_indam = routine;
	}
#else
	index->rd_indam->ambuild = build;
#endif
}

/* Does this process hold that lock? */
static inline bool
gs_holds_lock(const LOCKTAG *tag, LOCKMODE mode)
{
#if PG_VERSION_NUM >= 170000
	return LockHeldByMe(tag, mode, false);
#else
	return LockHeldByMe(tag, mode);
#endif
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

/* Moves the scan of a heap to the end of its page. */
static inline void
gs_skip_tuples(HeapScanDesc scan)
{
	OffsetNumber last = PageGetMaxOffsetNumber(BufferGetPage(scan->rs_cbuf));

	if (gs_is_pagemode(scan))
		scan->rs_cindex = scan->rs_ntuples > 0 ? scan->rs_ntuples - 1 : 0;
	else
#if PG_VERSION_NUM >= 160000
		scan->rs_coffset = Max(last, FirstOffsetNumber);
#else
		ItemPointerSetOffsetNumber(&scan->rs_ctup.t_self, Max(last, FirstOffsetNumber));
#endif
}

/*
 * Reads the next page of the scan of a heap, if it can be known before the scan comes to it: pins it
 * and returns its buffer, or else InvalidBuffer.  The buffer is to be given to
 * gs_enter_page() or gs_return_page().
 */
static inline Buffer
gs_read_next_page(HeapScanDesc scan)
{
#if PG_VERSION_NUM >= 170000
	/* the scan's own pages come from the stream, which is ahead of it */
	if (gs_is_pagemode(scan) || scan->rs_read_stream == NULL)
		return InvalidBuffer;
	return read_stream_next_buffer(scan->rs_read_stream, NULL);
#else
	ParallelBlockTableScanDesc shared = (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel;
	ParallelBlockTableScanWorker mine = scan->rs_parallelworkerdata;
	BlockNumber next = InvalidBlockNumber;

	if (gs_is_pagemode(scan))
		return InvalidBuffer;
	if (shared == NULL)
	{
		if (scan->rs_cblock + 1 < scan->rs_nblocks)
			next = scan->rs_cblock + 1;
	}
	/* the next of the blocks that this process has allocated already, which may be more than there are */
	else if (mine->phsw_chunk_remaining > 0 && mine->phsw_nallocated + 1 < shared->phs_nblocks)
		next = (mine->phsw_nallocated + 1 + shared->phs_startblock) % shared->phs_nblocks;
	return next == InvalidBlockNumber ? InvalidBuffer :
		ReadBufferExtended(scan->rs_base.rs_rd, MAIN_FORKNUM, next, RBM_NORMAL, scan->rs_strategy);
#endif
}

/* Moves the scan of a heap to the page that was read, whose pin it takes over. */
static inline void
gs_enter_page(HeapScanDesc scan, Buffer buffer)
{
#if PG_VERSION_NUM < 170000
	if (scan->rs_base.rs_parallel != NULL)
		(void) table_block_parallelscan_nextpage(scan->rs_base.rs_rd, scan->rs_parallelworkerdata,
												 (ParallelBlockTableScanDesc) scan->rs_base.rs_parallel);
#endif
	ReleaseBuffer(scan->rs_cbuf);
	scan->rs_cbuf = buffer;
	scan->rs_cblock = BufferGetBlockNumber(buffer);
}

/* Leaves the page that was read to the scan. */
static inline void
gs_return_page(HeapScanDesc scan, Buffer buffer)
{
#if PG_VERSION_NUM >= 170000
	/* a stream takes nothing back: the scan goes on before the first tuple of the page */
	gs_enter_page(scan, buffer);
	scan->rs_coffset = InvalidOffsetNumber;
#else
	ReleaseBuffer(buffer);
#endif
}

/* Begins the scan of one participant of a parallel scan. */
static inline TableScanDesc
gs_beginscan_parallel(Relation relation, ParallelTableScanDesc shared)
{
#if PG_VERSION_NUM >= 190000
	return table_beginscan_parallel(relation, shared, SO_NONE);
#else
	return table_beginscan_parallel(relation, shared);
#endif
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
#if PG_VERSION_NUM >= 160000
		relation->pgstat_info->counts.tuples_returned += nrows;
#else
		relation->pgstat_info->t_counts.t_tuples_returned += nrows;
#endif
}

/* -------------------------------------------------------------------- btrees */

/* The comparator of a column of a btree: ssup_attno says which. */
static inline void
gs_prepare_index_comparator(Relation index, bool descending, SortSupport column)
{
#if PG_VERSION_NUM >= 180000
	PrepareSortSupportFromIndexRel(index, descending, column);
#else
	PrepareSortSupportFromIndexRel(index, descending ? BTGreaterStrategyNumber :
								   BTLessStrategyNumber, column);
#endif
}

/* Memory of a page that is written to a file as it is. */
static inline char *
gs_alloc_page(MemoryContext context)
{
#if PG_VERSION_NUM >= 160000
	return MemoryContextAllocAligned(context, BLCKSZ, PG_IO_ALIGN_SIZE, 0);
#else
	return MemoryContextAlloc(context, BLCKSZ);
#endif
}

/* The bytes of the longest item of a btree. */
static inline Size
gs_longest_btree_item(Page page)
{
#if PG_VERSION_NUM >= 180000
	return BTMaxItemSize;
#else
	return BTMaxItemSize(page);
#endif
}

static inline void
gs_set_page_checksum(Page page, BlockNumber block)
{
#if PG_VERSION_NUM >= 190000
	PageSetChecksum(page, block);
#else
	PageSetChecksumInplace(page, block);
#endif
}

/* Logs a page of an index that is built outside of shared buffers. */
static inline void
gs_log_index_page(Relation index, BlockNumber block, char *page)
{
#if PG_VERSION_NUM >= 160000
	log_newpage(&index->rd_locator, MAIN_FORKNUM, block, page, true);
#else
	log_newpage(&index->rd_node, MAIN_FORKNUM, block, page, true);
#endif
}

#endif							/* GPUSORT_PG_COMPAT_H */
