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
#include "access/nbtree.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "commands/defrem.h"
#include "commands/explain.h"
#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#if PG_VERSION_NUM >= 170000
#include "storage/bulk_write.h"
#endif
#include "storage/lock.h"
#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#endif
#include "storage/smgr.h"
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
#include "utils/wait_event.h"

/* ----------------------------------------------------------------- settings */

#if PG_VERSION_NUM < 160000

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

#else							/* they are in a hash table */

void
gs_define_settings(const char *prefix, void (*define) (void))
{
	define();
}

#endif

/* -------------------------------------------------------------- wait events */

uint32
gs_wait_event(GsWait wait)
{
#if PG_VERSION_NUM >= 170000
	static const char *const names[] = {
		[GS_WAIT_SERVICE] = "GpusortService",
		[GS_WAIT_DEVICE_MEMORY] = "GpusortDeviceMemory",
		[GS_WAIT_SORT] = "GpusortSort",
		[GS_WAIT_BATCH] = "GpusortBatch",
		[GS_WAIT_PARTICIPANTS] = "GpusortParticipants"
	};
	static uint32 events[lengthof(names)];	/* 0: not asked for in this process */

	if (events[wait] == 0)
		events[wait] = WaitEventExtensionNew(names[wait]);
	return events[wait];
#else
	return PG_WAIT_EXTENSION;
#endif
}

/* --------------------------------------------------------------- collations */

bool
gs_collation_is_bytewise(Oid collation)
{
#if PG_VERSION_NUM >= 180000
	return OidIsValid(collation) && pg_newlocale_from_collation(collation)->collate_is_c;
#else
	return lc_collate_is_c(collation);
#endif
}

/* The row of a collation in pg_collation; that of the database for the default one. */
static HeapTuple
collation_row(Oid collation)
{
	const bool	is_default = collation == DEFAULT_COLLATION_OID;
	const Oid	oid = is_default ? MyDatabaseId : collation;
	HeapTuple	row = SearchSysCache1(is_default ? DATABASEOID : COLLOID, ObjectIdGetDatum(oid));

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for %s %u", is_default ? "database" : "collation", oid);
	return row;
}

char
gs_collation_provider(Oid collation)
{
	HeapTuple	row = collation_row(collation);
	char		provider;

	if (collation == DEFAULT_COLLATION_OID)
		provider = ((Form_pg_database) GETSTRUCT(row))->datlocprovider;
	else
		provider = ((Form_pg_collation) GETSTRUCT(row))->collprovider;
	ReleaseSysCache(row);
	return provider;
}

char *
gs_collation_libc_name(Oid collation)
{
	HeapTuple	row = collation_row(collation);
	Datum		name;
	bool		is_null;
	char	   *result;

	if (collation == DEFAULT_COLLATION_OID)
		name = SysCacheGetAttr(DATABASEOID, row, Anum_pg_database_datcollate, &is_null);
	else
		name = SysCacheGetAttr(COLLOID, row, Anum_pg_collation_collcollate, &is_null);
	result = is_null ? pstrdup("") : TextDatumGetCString(name);
	ReleaseSysCache(row);
	return result;
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

#if PG_VERSION_NUM >= 190000
	return locale == NULL ? NULL : locale->lt;
#else
	return locale == NULL ? NULL : locale->info.lt;
#endif
}

#ifdef USE_ICU
struct UCollator *
gs_collation_collator(Oid collation)
{
#if PG_VERSION_NUM >= 190000
	return pg_newlocale_from_collation(collation)->icu.ucol;
#else
	return pg_newlocale_from_collation(collation)->info.icu.ucol;
#endif
}
#endif

/* -------------------------------------------------------------- types, sorts */

bool
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

Oid
gs_pathkey_operator(const PathKey *pathkey, Oid type)
{
#if PG_VERSION_NUM >= 180000
	return get_opfamily_member_for_cmptype(pathkey->pk_opfamily, type, type, pathkey->pk_cmptype);
#else
	return get_opfamily_member(pathkey->pk_opfamily, type, type, pathkey->pk_strategy);
#endif
}

void
gs_finish_tuple_desc(TupleDesc desc)
{
#if PG_VERSION_NUM >= 190000
	TupleDescFinalize(desc);
#endif
}

bool
gs_get_tuplesort_datum(Tuplesortstate *state, bool forward, Datum *value, bool *is_null)
{
#if PG_VERSION_NUM >= 160000
	return tuplesort_getdatum(state, forward, false, value, is_null, NULL);
#else
	return tuplesort_getdatum(state, forward, value, is_null, NULL);
#endif
}

/* ------------------------------------------------------------------- planner */

bool
gs_explain_uses_prefixes(const ExplainState *es)
{
#if PG_VERSION_NUM >= 180000
	return es->rtable_size > 1 || es->verbose;
#else
	return list_length(es->rtable) > 1 || es->verbose;
#endif
}

bool
gs_appears_disabled_by_input(const Plan *plan)
{
#if PG_VERSION_NUM >= 180000
	return plan->disabled_nodes > 0 && plan->disabled_nodes <= outerPlan(plan)->disabled_nodes;
#else
	return false;
#endif
}

#if PG_VERSION_NUM >= 180000

static int	explain_id;			/* of the option's state in an ExplainState */
static GsExplainNode explain_print;
static explain_per_node_hook_type next_explain_node_hook;

/* The option's state is not NULL if it is on. */
static void
set_explain_option(ExplainState *es, DefElem *option, ParseState *pstate)
{
	SetExplainExtensionState(es, explain_id, defGetBoolean(option) ? es : NULL);
}

static void
explain_node(PlanState *node, List *ancestors, const char *relationship, const char *plan_name,
			 ExplainState *es)
{
	if (next_explain_node_hook)
		next_explain_node_hook(node, ancestors, relationship, plan_name, es);
	if (GetExplainExtensionState(es, explain_id) != NULL)
		explain_print(node, es);
}

void
gs_explain_add_option(const char *name, GsExplainNode print)
{
	explain_id = GetExplainExtensionId(name);
	explain_print = print;
#if PG_VERSION_NUM >= 190000
	RegisterExtensionExplainOption(name, set_explain_option, GUCCheckBooleanExplainOption);
#else
	RegisterExtensionExplainOption(name, set_explain_option);
#endif
	next_explain_node_hook = explain_per_node_hook;
	explain_per_node_hook = explain_node;
}

#else							/* the options of EXPLAIN are fixed */

void
gs_explain_add_option(const char *name, GsExplainNode print)
{
}

#endif

/* ------------------------------------------------------------- index builds */

void
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

bool
gs_holds_lock(const LOCKTAG *tag, LOCKMODE mode)
{
#if PG_VERSION_NUM >= 170000
	return LockHeldByMe(tag, mode, false);
#else
	return LockHeldByMe(tag, mode);
#endif
}

void
gs_prepare_index_comparator(Relation index, bool descending, SortSupport column)
{
#if PG_VERSION_NUM >= 180000
	PrepareSortSupportFromIndexRel(index, descending, column);
#else
	PrepareSortSupportFromIndexRel(index, descending ? BTGreaterStrategyNumber :
								   BTLessStrategyNumber, column);
#endif
}

Size
gs_longest_btree_item(Page page)
{
#if PG_VERSION_NUM >= 180000
	return BTMaxItemSize;
#else
	return BTMaxItemSize(page);
#endif
}

#if PG_VERSION_NUM >= 170000

GsPageWriter *
gs_page_writer_begin(Relation relation)
{
	return smgr_bulk_start_rel(relation, MAIN_FORKNUM);
}

Page
gs_page_writer_alloc(GsPageWriter *writer)
{
	return (Page) smgr_bulk_get_buf(writer);
}

void
gs_page_writer_write(GsPageWriter *writer, BlockNumber block, Page page)
{
	smgr_bulk_write(writer, block, (BulkWriteBuffer) page, true);
}

void
gs_page_writer_end(GsPageWriter *writer)
{
	smgr_bulk_finish(writer);
}

#else							/* there are no bulk writes */

struct GsPageWriter
{
	Relation	relation;
	MemoryContext context;
	BlockNumber nwritten;		/* pages of the file */
	Page		zeroes;			/* a page of them */
};

GsPageWriter *
gs_page_writer_begin(Relation relation)
{
	GsPageWriter *writer = palloc0(sizeof(GsPageWriter));

	writer->relation = relation;
	writer->context = CurrentMemoryContext;
	writer->zeroes = gs_page_writer_alloc(writer);
	memset(writer->zeroes, 0, BLCKSZ);
	return writer;
}

Page
gs_page_writer_alloc(GsPageWriter *writer)
{
#if PG_VERSION_NUM >= 160000
	return MemoryContextAllocAligned(writer->context, BLCKSZ, PG_IO_ALIGN_SIZE, 0);
#else
	return MemoryContextAlloc(writer->context, BLCKSZ);
#endif
}

void
gs_page_writer_write(GsPageWriter *writer, BlockNumber block, Page page)
{
	Relation	relation = writer->relation;
	SMgrRelation file;

	if (RelationNeedsWAL(relation))
#if PG_VERSION_NUM >= 160000
		log_newpage(&relation->rd_locator, MAIN_FORKNUM, block, page, true);
#else
		log_newpage(&relation->rd_node, MAIN_FORKNUM, block, page, true);
#endif
	file = RelationGetSmgr(relation);
	/* pages that are not complete yet: zeroes, which nobody reads */
	while (writer->nwritten < block)
		smgrextend(file, MAIN_FORKNUM, writer->nwritten++, writer->zeroes, true);
	PageSetChecksumInplace(page, block);
	if (block == writer->nwritten)
	{
		smgrextend(file, MAIN_FORKNUM, block, page, true);
		writer->nwritten++;
	}
	else
		smgrwrite(file, MAIN_FORKNUM, block, page, true);
	pfree(page);
}

/*
 * Pages were logged, but a checkpoint that began meanwhile does not know of the file.  A
 * relation that needs no WAL is synced at the end of the transaction.
 */
void
gs_page_writer_end(GsPageWriter *writer)
{
	if (RelationNeedsWAL(writer->relation))
		smgrimmedsync(RelationGetSmgr(writer->relation), MAIN_FORKNUM);
}

#endif

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
		scan->rs_cindex = scan->rs_ntuples > 0 ? scan->rs_ntuples - 1 : 0;
	else
#if PG_VERSION_NUM >= 160000
		scan->rs_coffset = Max(last, FirstOffsetNumber);
#else
		ItemPointerSetOffsetNumber(&scan->rs_ctup.t_self, Max(last, FirstOffsetNumber));
#endif
}

Buffer
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

void
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

void
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

TableScanDesc
gs_beginscan_parallel(Relation relation, ParallelTableScanDesc shared)
{
#if PG_VERSION_NUM >= 190000
	return table_beginscan_parallel(relation, shared, SO_NONE);
#else
	return table_beginscan_parallel(relation, shared);
#endif
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
#if PG_VERSION_NUM >= 160000
		relation->pgstat_info->counts.tuples_returned += nrows;
#else
		relation->pgstat_info->t_counts.t_tuples_returned += nrows;
#endif
}
