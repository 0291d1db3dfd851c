/*-------------------------------------------------------------------------
 *
 * read_tied.c
 *	  Estimates how many rows have the same key, by the first rows or by statistics.
 *
 * What counts is how many comparisons a row takes: a merge sort of n rows with the same key takes
 * log2(n) for each.
 *
 * The sample is one of keys, not of rows: all rows whose key has a hash value below a limit.
 * So the number of rows for each key is right in whatever order rows arrive.  It grows with the
 * number of rows if they arrive in random order, and not if rows with the same key arrive together:
 *
 *	  rows examined		 64		512		4096		(of 100,000 rows, 100 to a key)
 *	  random order		1.03	1.26	4.2
 *	  together			64		100		100
 *
 * So what there was after the first eighth of the rows is looked at, too, and the growth is
 * extrapolated.  Keys of which there are many rows already are counted one by one, and all others
 * together.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "common/key_compare.h"
#include "key/key_stored_row.h"
#include "key/key_distinct.h"
#include "read/read_tied.h"
#include "store/store_topn.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "nodes/primnodes.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "port/pg_bitutils.h"
#include "utils/syscache.h"

/* About so many rows are sampled, and at most twice as many different keys. */
#define SAMPLED_ROWS	512

/*
 * Keys of which the sample has so many rows are counted one by one; with fewer ties, the other keys
 * have none.
 */
#define MANY_ROWS	8

/* The number of rows whose values of the next column are looked at. */
#define SAMPLED_VALUES	16

/*
 * From so many comparisons of a row on, keys of the next column cost less; if these are expensive;
 * and if values have to be fetched for each comparison.  README.md has the figures.
 */
#define MANY_COMPARISONS	0.8
#define MANY_OF_EXPENSIVE	3.5
#define MANY_FETCHES		0.5

typedef struct SampledKey
{
	uint32		hash;			/* 0: none */
	uint32		nrows;
} SampledKey;

typedef struct KeySample
{
	uint64		nall;			/* rows to examine */
	uint64		nexamined;
	double		at_first;		/* rows_that_follow() after the first part of them */
	int			ntoasted;		/* of the first SAMPLED_VALUES values of the next column */
	double		nrows_of_key;	/* as statistics tell; 0: not known */

	uint64		limit;			/* of hash values */
	uint64		nrows;			/* of the sample */
	uint32		nkeys;
	uint32		nslots;
	SampledKey	keys[FLEXIBLE_ARRAY_MEMBER];
} KeySample;

static inline uint64
mix(uint64 hash, uint64 value)
{
	hash = (hash ^ value) * UINT64CONST(0x9E3779B97F4A7C15);
	return hash ^ hash >> 32;
}

/* A hash value of a row's key, never 0. */
static uint64
hash_key(const GsKeyLayout *layout, const uint64 *record, const char *row)
{
	const uint32 nulls = gs_record_nulls(record, layout->nwords);
	uint64		hash = mix(0, nulls);
	int			word = 0;

	for (int i = 0; i < layout->ncolumns; i++)
	{
		const GsKeyColumn *column = &layout->columns[i];
		uint64		tail;

		if (!column->variable)
			continue;
		tail = record[column->tail_word];
		for (; word < column->tail_word; word++)
			hash = mix(hash, record[word]);
		word++;
		if (i < layout->ndecisive && gs_tail_len(tail) > sizeof(uint64))
			hash = mix(hash, hash_bytes((const unsigned char *) row + gs_tail_offset(tail),
										gs_tail_len(tail)));
	}
	for (; word < layout->nwords; word++)
		hash = mix(hash, record[word]);
	return hash | 1;
}

/* Begins a sample; nrows rows will be examined. */
static KeySample *
create_sample(uint64 nrows)
{
	const uint32 nslots = pg_nextpower2_32(2 * (uint32) Min(nrows, 2 * SAMPLED_ROWS));
	KeySample  *sample = palloc0(offsetof(KeySample, keys) + sizeof(SampledKey) * nslots);

	sample->nall = nrows;
	sample->limit = nrows <= SAMPLED_ROWS ? PG_UINT64_MAX : PG_UINT64_MAX / nrows * SAMPLED_ROWS;
	sample->nslots = nslots;
	return sample;
}

/* Adds a row to the sample if its key belongs to it. */
static inline void
add_to_sample(KeySample *sample, uint64 hash)
{
	const uint32 key = (uint32) hash;
	uint32		slot = key >> 1 & (sample->nslots - 1);

	if (hash > sample->limit || sample->nkeys == sample->nslots / 2)
		return;
	while (sample->keys[slot].hash != 0 && sample->keys[slot].hash != key)
		slot = (slot + 1) & (sample->nslots - 1);
	sample->nrows++;
	sample->nkeys += sample->keys[slot].hash == 0;
	sample->keys[slot].hash = key;
	sample->keys[slot].nrows++;
}

/* How many rows of a key follow the first, on average. */
static double
rows_that_follow(uint64 nrows, uint64 nkeys)
{
	return nkeys == 0 ? 0 : (double) (nrows - nkeys) / nkeys;
}

/*
 * How many comparisons a row takes, on average, if the number of rows that follow the first of a
 * key grows by a factor.
 */
static double
comparisons_of_row(const KeySample *sample, double factor)
{
	uint64		nrows = sample->nrows;
	uint64		nkeys = sample->nkeys;
	double		ncomparisons = 0;

	for (uint32 slot = 0; slot < sample->nslots; slot++)
	{
		const SampledKey *key = &sample->keys[slot];

		if (key->nrows < MANY_ROWS)
			continue;
		ncomparisons += key->nrows * log2(key->nrows * factor);
		nrows -= key->nrows;
		nkeys--;
	}
	if (nrows - nkeys >= MANY_ROWS)
		ncomparisons += nrows * log2(1 + rows_that_follow(nrows, nkeys) * factor);
	else if (nrows > nkeys && sample->nrows_of_key > 1)
		ncomparisons += nrows * log2(sample->nrows_of_key);
	return ncomparisons / Max(sample->nrows, 1);
}

/*
 * Will a row take so many comparisons, of nrows_expected rows, that keys of the column cost less?
 * Frees the sample.
 */
static bool
want_keys(KeySample *sample, const GsTiedColumn *column, double nrows_expected)
{
	const double at_end = rows_that_follow(sample->nrows, sample->nkeys);
	double		growth = 1;
	double		ncomparisons;
	const double least = sample->ntoasted > SAMPLED_VALUES / 2 ? MANY_FETCHES :
		column->is_expensive ? MANY_OF_EXPENSIVE : MANY_COMPARISONS;

	if (sample->at_first > 0 && at_end > 0)
		growth = Max(Min(log(at_end / sample->at_first) / log(GS_TIED_CHECK_FACTOR), 1), 0);
	ncomparisons = comparisons_of_row(sample, pow(Max(nrows_expected / sample->nall, 1), growth));
	pfree(sample);
	return ncomparisons >= least;
}

/* Is a value of a row out of line or compressed? */
static bool
is_toasted(const void *row, TupleDesc desc, AttrNumber attno)
{
	HeapTupleData tuple = gs_row_tuple(row);
	bool		is_null;
	const Datum value = heap_getattr(&tuple, attno, desc, &is_null);

	return !is_null && gs_is_toasted(TupleDescAttr(desc, attno - 1)->attlen, value);
}

/* Examines the next row, whose key has this hash value. */
static inline void
examine_row(KeySample *sample, const GsTiedColumn *column, const void *row, uint64 hash)
{
	if (sample->nexamined == sample->nall / GS_TIED_CHECK_FACTOR)
		sample->at_first = rows_that_follow(sample->nrows, sample->nkeys);
	if (sample->nexamined++ < SAMPLED_VALUES)
		sample->ntoasted += is_toasted(row, column->desc, column->attno);
	add_to_sample(sample, hash);
}

bool
gs_tied_rows_want_keys(const GsTiedColumn *column, const GsEngine *engine, double nrows_expected)
{
	const GsKeyLayout *layout = engine->request.layout;
	KeySample  *sample = create_sample(gs_topn_rows_of_engine(engine));
	size_t		nbatches;
	const GsBatch *batches = gs_engine_cpu_batches(engine, &nbatches);

	for (size_t b = 0; b < nbatches; b++)
	{
		for (size_t i = 0; i < batches[b].nrows; i++)
		{
			const char *row = gs_batch_pushed(&batches[b], layout, i);

			examine_row(sample, column, row,
						hash_key(layout, gs_batch_record(&batches[b], i), row));
		}
	}
	return want_keys(sample, column, nrows_expected);
}

bool
gs_tied_few_want_keys(const GsTiedColumn *column, const GsFew *few, GsOrderCompare *compare,
					  int ncolumns, double nrows_expected, double nrows_of_key)
{
	const int	nrows = gs_few_count(few);
	KeySample  *sample = create_sample(nrows);

	sample->nrows_of_key = Min(nrows_of_key, nrows_expected);
	for (int i = 0; i < nrows; i++)
	{
		const MinimalTuple row = gs_few_row(few, i);

		examine_row(sample, column, row,
					mix(0, gs_order_compare_hash(compare, row, 0, ncolumns)) | 1);
	}
	return want_keys(sample, column, nrows_expected);
}

/* --------------------------------------------------------------- statistics */

/*
 * A device leaves tied rows to the server, which finds them as it returns rows: this takes less
 * time than keys of a column of variable width, unless many rows tie.  From so many rows with the
 * same key on, many tie; if keys of the next column are expensive, and otherwise.  Rows that tie
 * with one other row are too many, and the first thousands of millions of rows do not show them.
 *
 * ORDER BY a bigint and a text "C" of 32 bytes, 2 M rows, 1 and 2 to each bigint: 335 and 236 ms
 * with keys of the text, 203 and 725 without (H200, PostgreSQL 18.6, 2026-11-27).
 */
#define MANY_EXPENSIVE_ROWS	1.5
#define MANY_ROWS_OF_KEY	1.1

/* The column of a table that a plan returns as attno; NULL: it computes it, or reads no table. */
static const Var *
find_column(const Plan *plan, AttrNumber attno)
{
	while (plan != NULL)
	{
		const TargetEntry *entry = get_tle_by_resno(plan->targetlist, attno);
		const Var  *var = entry == NULL ? NULL : (const Var *) entry->expr;

		if (var == NULL || !IsA(var, Var))
			return NULL;
		if (var->varno != OUTER_VAR && var->varno != INNER_VAR)
			return IS_SPECIAL_VARNO(var->varno) || var->varattno <= 0 ? NULL : var;
		plan = var->varno == OUTER_VAR ? outerPlan(plan) : innerPlan(plan);
		attno = var->varattno;
	}
	return NULL;
}

static double
rows_of_table(Oid table)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	double		nrows = 0;

	if (HeapTupleIsValid(tuple))
	{
		nrows = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
		ReleaseSysCache(tuple);
	}
	return nrows;
}

/*
 * How many of nrows rows, at least of those of the table, have the same value in a column, on
 * average; 0: not known.
 */
static double
rows_of_value(Oid table, AttrNumber attno, double nrows)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(table),
										Int16GetDatum(attno),
										BoolGetDatum(false));
	const double ntable = rows_of_table(table);
	double		ndistinct = 0;

	if (HeapTupleIsValid(tuple))
	{
		ndistinct = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
		ReleaseSysCache(tuple);
	}
	if (ndistinct < 0)			/* a share of the rows */
		ndistinct *= -ntable;
	return ndistinct > 0 ? Max(nrows, ntable) / ndistinct : 0;
}

double
gs_tied_rows_of_key(const PlanState *child, const GsSortColumn *columns, int ncolumns)
{
	double		least = 0;

	for (int i = 0; i < ncolumns; i++)
	{
		const Var  *var = find_column(child->plan, columns[i].attno);
		const RangeTblEntry *entry = var == NULL ? NULL : exec_rt_fetch(var->varno, child->state);
		const double nrows = entry == NULL || entry->rtekind != RTE_RELATION ? 0 :
			rows_of_value(entry->relid, var->varattno, child->plan->plan_rows);

		if (nrows > 0 && (least == 0 || nrows < least))
			least = nrows;
	}
	return least;
}

int
gs_tied_keyed_on_device(const PlanState *child, const GsSortColumn *columns, int ncolumns,
							  TupleDesc desc, bool in_job)
{
	int			n = 1;
	bool		expensive;
	double		nrows;

	while (n < ncolumns && !gs_key_columns_is_variable(&columns[n], desc))
		n++;
	if (n == ncolumns)
		return ncolumns;
	expensive = gs_key_columns_is_expensive(&columns[n]);
	/* all participants make cheap keys, while one alone looks for ties */
	if (in_job && !expensive)
		return ncolumns;
	nrows = gs_tied_rows_of_key(child, columns, n);
	if (nrows > 0 && nrows < (expensive ? MANY_EXPENSIVE_ROWS : MANY_ROWS_OF_KEY))
		return 0;
	while (n < ncolumns &&
		   !(gs_key_columns_is_variable(&columns[n], desc) &&
			 gs_key_columns_is_expensive(&columns[n])))
		n++;
	return in_job ? ncolumns : n;
}
