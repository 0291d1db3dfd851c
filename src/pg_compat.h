/*-------------------------------------------------------------------------
 *
 * pg_compat.h
 *	  What differs between versions of PostgreSQL, or reaches into its structs.
 *
 * Only this header and pg_compat.c test PG_VERSION_NUM.  Include it after
 * postgres.h, and before utils/pg_locale.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PG_COMPAT_H
#define GPUSORT_PG_COMPAT_H

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "gpusort compiles for PostgreSQL 15 to 19; point PG_CONFIG at the pg_config of one of these"
#endif

#if SIZEOF_DATUM < 8 || !defined(HAVE_INT128)
#error "gpusort needs a 64-bit platform with 128-bit integers"
#endif

/*
 * utils/pg_locale.h of a server with ICU includes ICU's headers, which a machine
 * that builds extensions may not have.  Without them, a union of pointers lacks
 * ICU's member, and the layout of everything else is the same.
 */
#if defined(USE_ICU) && !__has_include(<unicode/ucol.h>)
#undef USE_ICU
#endif

#include "access/amapi.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
#include "storage/block.h"
#include "storage/buf.h"
#include "storage/bufpage.h"
#include "storage/lockdefs.h"
#include "utils/relcache.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

struct ExplainState;
struct HeapScanDescData;
struct IndexInfo;
struct LOCKTAG;
struct ParallelTableScanDescData;
struct PathKey;
struct Plan;
struct PlannedStmt;
struct PlanState;
struct Query;
struct SnapshotData;
struct SortSupportData;
struct TableScanDescData;
struct Tuplesortstate;
struct ValidateIndexState;

/* Marks the library as built for this server; from PostgreSQL 18 on with its name and version. */
#if PG_VERSION_NUM >= 180000
#define GS_MODULE_MAGIC(library_name, library_version) \
	PG_MODULE_MAGIC_EXT(.name = library_name, .version = library_version)
#else
#define GS_MODULE_MAGIC(library_name, library_version)	PG_MODULE_MAGIC
#endif

/* -------------------------------------------------------------- wait events */

/* What a process waits for. */
typedef enum GsWait
{
	GS_WAIT_SERVICE,			/* gpusortd's answer to a new connection */
	GS_WAIT_DEVICE_MEMORY,		/* admission of a sort to the device */
	GS_WAIT_SORT,				/* gpusortd to sort */
	GS_WAIT_BATCH,				/* gpusortd to take or send rows */
	GS_WAIT_PARTICIPANTS		/* other participants of a parallel sort */
} GsWait;

/*
 * The wait event for WaitLatch() and the like.  pg_stat_activity of PostgreSQL 17 and
 * later shows its name, such as GpusortSort; others show "Extension".
 */
extern uint32 gs_wait_event(GsWait wait);

/* --------------------------------------------------------------- collations */

/* Does the collation compare byte by byte, as memcmp() does? */
extern bool gs_collation_is_bytewise(Oid collation);

/* The provider of a collation, such as COLLPROVIDER_ICU.  From the catalogs. */
extern char gs_collation_provider(Oid collation);

/* The C library's name of a collation's order, palloc'd; "" if it is another provider's. */
extern char *gs_collation_libc_name(Oid collation);

/* Has a collation of ICU rules of its creator (PostgreSQL 16 and later)?  From the catalogs. */
extern bool gs_collation_has_icu_rules(Oid collation);

/* Are texts equal only if their bytes are? */
extern bool gs_collation_is_deterministic(Oid collation);

/* The locale of a collation of the C library; NULL: that of the process. */
extern locale_t gs_collation_libc_locale(Oid collation);

#ifdef USE_ICU
struct UCollator;
extern struct UCollator *gs_collation_collator(Oid collation);
#endif

/* -------------------------------------------------------------- types, sorts */

/* The btree operator family and input type of an ordering operator; false if it has none. */
extern bool gs_ordering_operator(Oid operator, Oid *family, Oid *input_type, bool *descending);

/* The operator that orders a path key's values of a type; InvalidOid if there is none. */
extern Oid	gs_pathkey_operator(const struct PathKey *pathkey, Oid type);

/* Completes a tuple descriptor to which all attributes were added. */
extern void gs_finish_tuple_desc(TupleDesc desc);

/* The next value of a tuplesort of datums, not copied; false after the last. */
extern bool gs_get_tuplesort_datum(struct Tuplesortstate *state, bool forward, Datum *value,
								   bool *is_null);

/* Iterate over the elements of an array, which have that size and alignment (array_iter). */
#if PG_VERSION_NUM >= 190000
#define gs_array_begin(iterator, array, len, by_value, align) \
	array_iter_setup(iterator, array, len, by_value, align)
#define gs_array_next(iterator, is_null, i, len, by_value, align) \
	array_iter_next(iterator, is_null, i)
#else
#define gs_array_begin(iterator, array, len, by_value, align) \
	array_iter_setup(iterator, array)
#define gs_array_next(iterator, is_null, i, len, by_value, align) \
	array_iter_next(iterator, is_null, i, len, by_value, align)
#endif

/* The comparison function of oid8; NULL: there is no such type. */
#if PG_VERSION_NUM >= 190000
#define gs_oid8_cmp		btoid8cmp
#else
#define gs_oid8_cmp		NULL
#endif

/* ------------------------------------------------------------------- planner */

/* The parameters of planner_hook. */
#if PG_VERSION_NUM >= 190000
#define GS_PLANNER_PARAMS	Query *parse, const char *query_string, int cursor_options, \
							ParamListInfo bound_params, ExplainState *explain
#define GS_PLANNER_ARGS		parse, query_string, cursor_options, bound_params, explain
#else
#define GS_PLANNER_PARAMS	Query *parse, const char *query_string, int cursor_options, \
							ParamListInfo bound_params
#define GS_PLANNER_ARGS		parse, query_string, cursor_options, bound_params
#endif

/* The path of a Unique node. */
#if PG_VERSION_NUM >= 190000
#define GS_T_UNIQUE_PATH	T_UniquePath
typedef struct UniquePath GsUniquePath;
#else
#define GS_T_UNIQUE_PATH	T_UpperUniquePath
typedef struct UpperUniquePath GsUniquePath;
#endif

/* A path has another input than the one that it was copied from; before is NULL if it had none. */
struct Path;
extern void gs_path_change_disabled(struct Path *path, const struct Path *before,
									const struct Path *input);

/* The condition on its window functions with which a WindowAgg ends a partition early, or NIL. */
#if PG_VERSION_NUM >= 170000
#define gs_run_condition(path)	((path)->runCondition)
#else
#define gs_run_condition(path)	((path)->winclause->runCondition)
#endif

/* Does a window function skip NULLs, from 19 on? */
#if PG_VERSION_NUM >= 190000
#define gs_window_ignores_nulls(function)	((function)->ignore_nulls > 0)
#else
#define gs_window_ignores_nulls(function)	false
#endif

/* How many of the query's group_pathkeys are those of GROUP BY: from 16 on, others can follow. */
#if PG_VERSION_NUM >= 160000
#define gs_count_group_pathkeys(root)	((root)->num_groupby_pathkeys)
#else
#define gs_count_group_pathkeys(root)	list_length((root)->group_pathkeys)
#endif

/* One of the equal calls of an aggregate that an AggInfo stands for. */
#if PG_VERSION_NUM >= 160000
#define gs_aggregate(info)		linitial_node(Aggref, (info)->aggrefs)
#else
#define gs_aggregate(info)		((info)->representative_aggref)
#endif

/* The hook that the planner calls for each table of a query. */
#if PG_VERSION_NUM >= 190000
#define gs_table_hook			build_simple_rel_hook
#define GsTableHook				build_simple_rel_hook_type
#define GS_TABLE_HOOK_PARAMS	PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define GS_TABLE_HOOK_ARGS		root, rel, rte
#define GS_TABLE_HOOK_TABLE		(rte->relid)
#define GS_TABLE_HOOK_INHERITS	(rte->inh)
#else
#define gs_table_hook			get_relation_info_hook
#define GsTableHook				get_relation_info_hook_type
#define GS_TABLE_HOOK_PARAMS	PlannerInfo *root, Oid table, bool inherits, RelOptInfo *rel
#define GS_TABLE_HOOK_ARGS		root, table, inherits, rel
#define GS_TABLE_HOOK_TABLE		table
#define GS_TABLE_HOOK_INHERITS	inherits
#endif

/* Raises an ERROR unless the user may execute a function. */
extern void gs_check_execute(Oid function);

/* Does EXPLAIN print the names of columns with their tables? */
extern bool gs_explain_uses_prefixes(const struct ExplainState *es);

/* Does EXPLAIN say that a custom scan is disabled, although only its outer plan is? */
extern bool gs_appears_disabled_by_input(const struct Plan *plan);

/* Prints properties of a node of a plan. */
typedef void (*GsExplainNode) (struct PlanState *node, struct ExplainState *es);

/*
 * Adds a Boolean option to EXPLAIN, with which print is called for each node.  Called
 * at most once.  Does nothing before PostgreSQL 18, whose EXPLAIN has fixed options.
 */
extern void gs_explain_add_option(const char *name, GsExplainNode print);

/* ------------------------------------------------------------- index builds */

/* The functions of an open index, which the caller may replace for this index only. */
extern IndexAmRoutine *gs_index_functions(Relation index);

/* Those of its access method. */
extern const IndexAmRoutine *gs_access_method_functions(Relation index);

/* Keeps a relcache entry beyond the transaction, although nothing has the relation open. */
extern void gs_keep_relation(Relation relation);

/* Reverses gs_keep_relation(). */
extern void gs_forget_relation(Relation relation);

/*
 * Does this process hold the exclusive lock on a relation with which statements build an index or
 * copy a table?
 */
extern bool gs_holds_exclusive_lock(Oid relation);

/* Sets up the comparator of a btree column, column->ssup_attno. */
extern void gs_prepare_index_comparator(Relation index, bool descending,
										struct SortSupportData *column);

/* The size of the longest item of a btree. */
extern Size gs_longest_btree_item(Page page);

/* Validates an index that was built CONCURRENTLY.  False: it has done nothing, PostgreSQL shall. */
typedef bool (*GsValidateFunction) (Relation heap, Relation index, struct IndexInfo *info,
									struct SnapshotData *snapshot,
									struct ValidateIndexState *state);

/*
 * The function is called when a statement scans this open heap to validate an index, unless another
 * scan of the heap begins first.  There is one function for all heaps.  Returns whether this is a
 * heap.
 */
extern bool gs_set_validate(Relation heap, GsValidateFunction function);

/*
 * Is a block all-visible, and has VACUUM made it so?  *map is a pinned buffer of the visibility
 * map, at first InvalidBuffer, which the caller releases.
 */
extern bool gs_block_was_vacuumed(Relation heap, BlockNumber block, Buffer *map);

/*
 * Can tuples that a snapshot sees be removed, because it is too old (old_snapshot_threshold of 15
 * and 16)?
 */
extern bool gs_snapshots_expire(void);

/*
 * Does index_build() determine the number of workers for GIN, too?  And what
 * pg_stat_progress_create_index shows; before PostgreSQL 18 it has no names for phases of GIN.
 */
#if PG_VERSION_NUM >= 180000
#define GS_GIN_BUILDS_ARE_PARALLEL	true
#define GS_GIN_SCAN_PHASE	PROGRESS_GIN_PHASE_INDEXBUILD_TABLESCAN
#define GS_GIN_SORT_PHASE	PROGRESS_GIN_PHASE_PERFORMSORT_2
#define GS_GIN_WRITE_PHASE	PROGRESS_GIN_PHASE_MERGE_2
#else
#define GS_GIN_BUILDS_ARE_PARALLEL	false
#define GS_GIN_SCAN_PHASE	2
#define GS_GIN_SORT_PHASE	3
#define GS_GIN_WRITE_PHASE	4
#endif

/* The pages of a new relation are written without shared buffers, by one process or several. */

/* Memory for a page. */
extern Page gs_page_alloc(MemoryContext context);

/* Extends the file of a relation to nblocks. */
extern void gs_extend_relation(Relation relation, BlockNumber nblocks);

/*
 * The most pages of a log record.  A new file of 214 MB takes 34 ms by calls of 32 pages and 86 ms
 * by calls of one (ext4, Linux 6.18, 2 cores of an AMD EPYC, 2026-11-24).
 */
#define GS_MAX_LOGGED_PAGES		32

/*
 * Logs and writes up to GS_MAX_LOGGED_PAGES pages, in the order of their blocks; consecutive ones
 * by one call of the operating system.  If the last one is beyond the file, which has nblocks, the
 * file is extended up to it.
 */
extern void gs_write_pages(Relation relation, int npages, const BlockNumber *blocks, Page *pages,
						   BlockNumber nblocks);

/*
 * Ensures that no crash after the end of the transaction loses the pages.  One process calls both,
 * before the first page is written and after the last one.
 */
extern XLogRecPtr gs_page_sync_begin(void);
extern void gs_page_sync_end(Relation relation, XLogRecPtr start);

/* ------------------------------------------------------------------ CLUSTER */

/* A table that CLUSTER copies, and the results. */
typedef struct GsClusterCopy
{
	Relation	old_heap;
	Relation	new_heap;
	Relation	index;
	TransactionId oldest_xmin;	/* tuples deleted before are dead */
	TransactionId freeze_xid;
	MultiXactId freeze_multi;
	double		ntuples;		/* copied */
	double		ndead;			/* not copied */
	double		nrecently_dead; /* copied although they are deleted */
} GsClusterCopy;

/*
 * Copies the live tuples in the order of the index.  False: it has done nothing, PostgreSQL shall.
 */
typedef bool (*GsClusterFunction) (GsClusterCopy *copy);

/*
 * The function is called when a statement copies this open heap by a sort, unless it scans it
 * before.  There is one function for all heaps.  Returns whether this is a heap.
 */
extern bool gs_set_cluster(Relation heap, GsClusterFunction function);

/*
 * While CLUSTER decides whether to sort by an index, it calls the planner, unless index scans are
 * disabled.  Then this finds the table that is copied to a new relation; InvalidOid: it is no copy.
 */
extern Oid	gs_copied_table(Oid new_heap);

/* The lock on a page under which it is determined which tuples are dead. */
extern void gs_lock_cluster_page(Buffer buffer);

/* pg_stat_progress_cluster; from PostgreSQL 19 on also pg_stat_progress_repack. */
typedef enum GsClusterPhase
{
	GS_CLUSTER_SCAN,
	GS_CLUSTER_SORT,
	GS_CLUSTER_WRITE
} GsClusterPhase;

extern void gs_report_cluster_phase(GsClusterPhase phase);
extern void gs_report_cluster_blocks(BlockNumber total);
extern void gs_report_cluster_scanned(BlockNumber nblocks, int64 ntuples);
extern void gs_report_cluster_written(int64 ntuples);

/* --------------------------------------------------------------- heap scans */

/* Is the relation's access method heap, so that its scans are HeapScanDescs? */
extern bool gs_is_heap(Relation relation);

/* Does the scan determine the visible tuples of a page at once? */
extern bool gs_is_pagemode(struct HeapScanDescData *scan);

/* Moves the scan to the end of its page. */
extern void gs_skip_tuples(struct HeapScanDescData *scan);

/*
 * Reads the next page of the scan, if it can be known before the scan comes to it: pins it and
 * returns its buffer, or else InvalidBuffer.  The caller passes the buffer to gs_enter_page() or
 * gs_return_page().
 */
extern Buffer gs_read_next_page(struct HeapScanDescData *scan);

/* Moves the scan to the page that was read, and transfers its pin. */
extern void gs_enter_page(struct HeapScanDescData *scan, Buffer buffer);

/* Leaves the page that was read to the scan. */
extern void gs_return_page(struct HeapScanDescData *scan, Buffer buffer);

/* Begins the scan of one participant of a parallel scan. */
extern struct TableScanDescData *gs_beginscan_parallel(Relation relation,
													   struct ParallelTableScanDescData *shared);

/* The number of blocks before the current one that all processes of the scan have read. */
extern BlockNumber gs_blocks_done(struct HeapScanDescData *scan);

/* Counts rows that the scan returned, like pgstat_count_heap_getnext() for each. */
extern void gs_count_heap_rows(Relation relation, int64 nrows);

#endif							/* GPUSORT_PG_COMPAT_H */
