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

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 160000
#error "gpusort supports PostgreSQL 15 only; point PG_CONFIG at the pg_config of a PostgreSQL 15"
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
#include "storage/block.h"
#include "storage/buf.h"
#include "utils/relcache.h"

struct HeapScanDescData;
struct SortSupportData;

/* ----------------------------------------------------------------- settings */

/* Defines the settings whose names start with the prefix, by calling define(). */
extern void gs_define_settings(const char *prefix, void (*define) (void));

/* --------------------------------------------------------------- collations */

/* Does the collation compare byte by byte, as memcmp() does? */
extern bool gs_collation_is_bytewise(Oid collation);

/* The provider of a collation that does not: COLLPROVIDER_ICU or _LIBC. */
extern char gs_collation_provider(Oid collation);

/* Are texts equal only if their bytes are? */
extern bool gs_collation_is_deterministic(Oid collation);

/* The locale of a collation of the C library; NULL: that of the process. */
extern locale_t gs_collation_libc_locale(Oid collation);

#ifdef USE_ICU
struct UCollator;
extern struct UCollator *gs_collation_collator(Oid collation);
#endif

/* ------------------------------------------------------------- index builds */

/* Sets the ambuild function of an open index.  Its relcache entry has its own IndexAmRoutine. */
extern void gs_set_ambuild(Relation index, ambuild_function build);

/* Keeps the relcache entry of a relation that is not open beyond the transaction. */
extern void gs_keep_relation(Relation relation);

/* Reverses gs_keep_relation(). */
extern void gs_forget_relation(Relation relation);

/* Sets up the comparator of a btree column, column->ssup_attno. */
extern void gs_prepare_index_comparator(Relation index, bool descending,
										struct SortSupportData *column);

/* WAL-logs a page of an index that is built outside of shared buffers. */
extern void gs_log_index_page(Relation index, BlockNumber block, char *page);

/* --------------------------------------------------------------- heap scans */

/* Is the relation's access method heap, so that its scans are HeapScanDescs? */
extern bool gs_is_heap(Relation relation);

/* Does the scan determine the visible tuples of a page at once? */
extern bool gs_is_pagemode(struct HeapScanDescData *scan);

/* Moves the scan to the end of its page. */
extern void gs_skip_tuples(struct HeapScanDescData *scan);

/* The next block of the scan, or InvalidBlockNumber if it cannot be known yet. */
extern BlockNumber gs_next_block(struct HeapScanDescData *scan);

/* Moves the scan to the block that gs_next_block() returned, and transfers its pin. */
extern void gs_go_to_next_block(struct HeapScanDescData *scan, Buffer buffer);

/* The number of blocks before the current one that all processes of the scan have read. */
extern BlockNumber gs_blocks_done(struct HeapScanDescData *scan);

/* Counts rows that the scan returned, like pgstat_count_heap_getnext() for each. */
extern void gs_count_heap_rows(Relation relation, int64 nrows);

#endif							/* GPUSORT_PG_COMPAT_H */
