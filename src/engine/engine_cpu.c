/*-------------------------------------------------------------------------
 *
 * engine_cpu.c
 *	  The engine that sorts in this process.
 *
 * Rows stay where the caller wrote them; only 8-byte words are sorted (word_sort.h).  fetch()
 * returns rows a few at a time, and prefetches rows and records further on:
 *
 *	  words:	.. | returned | rows prefetched | records prefetched | ..
 *
 * The size of batches doubles from 8 kB, so that ten rows take one small allocation and a million
 * take few large ones, which can be backed by huge pages.  None is larger than a small part of the
 * memory limit, because next_batch() returns the input in whole batches while the caller stores
 * the rows elsewhere.
 *
 * Only the first batch may be larger: if few rows are expected, it has space for all of them.
 * Page faults take up to half of the time of a small sort, and malloc() keeps the memory of a sort
 * for the next one if it is less than twice the largest block that was freed.
 *
 * The memory limit covers batches as allocated, and the two words that each row needs to be
 * sorted.  So an engine that is full can still sort what it has.  The memory that is reported as
 * used does not include the part of the last batch that has not been written.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/engine.h"

#include <stdbool.h>
#include <string.h>

#include "common/basics.h"
#include "common/radix_sort.h"
#include "engine/word_sort.h"

#define FIRST_BATCH_BYTES	((size_t) 8 << 10)
#define MAX_BATCH_BYTES		((size_t) 16 << 20)
#define BATCHES_PER_LIMIT	32

/*
 * The first batch has space for all rows that are expected, if they take no more than this, and at
 * most so many quarters of the limit.  10,000 whole rows of 200 bytes, 4 MB, by turns with
 * PostgreSQL: of 24 ratios 5 are below 0.95 with two quarters, 2 with three (AMD EPYC, 2026-11-24).
 */
#define MAX_FIRST_BYTES		((size_t) 4 << 20)
#define FIRST_QUARTERS		3

#define PREFETCH_ROWS		32	/* how far ahead rows are prefetched */
#define PREFETCH_RECORDS	16	/* how far ahead records are prefetched, if they are returned */
#define PREFETCH_BYTES		192 /* of a row, at most; hardware prefetches the rest */

/* Rows between two interrupt checks. */
#define CHECK_EVERY			((size_t) 1 << 12)

#define FIRST_BATCHES		8	/* whose headers are part of CpuEngine */

typedef struct CpuEngine
{
	GsEngine	base;
	GsBatch    *batches;		/* first_batches, or allocated */
	size_t		nbatches;
	size_t		nblocks;		/* with those that are kept for later rows */
	size_t		batches_allocated;
	size_t		record_bytes;
	size_t		full_rows;		/* rows of all batches but the last */
	size_t		full_bytes;		/* of these rows and their records */
	size_t		held_bytes;		/* of all memory that is allocated, but for kept blocks */
	size_t		next_batch_bytes;

	/* sorted */
	GsRowNumbering numbering;
	uint64_t   *words;
	size_t		prefetch_bytes; /* of each row */

	size_t		input_returned; /* batches that next_batch() has returned */

	GsBatch		first_batches[FIRST_BATCHES];
} CpuEngine;

/* Bytes of a batch that have rows and records. */
static size_t
batch_used_bytes(const GsBatch *batch)
{
	return (size_t) (batch->rows_end - batch->base) +
		(size_t) (batch->top - batch->records);
}

static size_t
block_bytes(const GsBatch *batch)
{
	return (size_t) (batch->top - batch->base);
}

/* The last batch; NULL: there is none. */
static GsBatch *
last_batch(const CpuEngine *engine)
{
	return engine->nbatches == 0 ? NULL : &engine->batches[engine->nbatches - 1];
}

/* Adds allocated bytes to the statistics. */
static void
hold(CpuEngine *engine, size_t nbytes)
{
	const GsBatch *last = last_batch(engine);
	const size_t untouched = last == NULL ? 0 : block_bytes(last) - batch_used_bytes(last);

	engine->held_bytes += nbytes;
	engine->base.stats.peak_bytes = Max(engine->base.stats.peak_bytes,
										engine->held_bytes - untouched);
}

static size_t
count_rows(const CpuEngine *engine)
{
	return engine->nbatches == 0 ? 0 : engine->full_rows + last_batch(engine)->nrows;
}

/*
 * The average bytes of a row and its record, less 3 %; first_bytes if there is no row
 * yet.
 */
static size_t
usual_bytes(const CpuEngine *engine, size_t first_bytes)
{
	size_t		nrows = count_rows(engine);
	size_t		nbytes;

	if (nrows == 0)
		return first_bytes;
	nbytes = (engine->full_bytes + batch_used_bytes(last_batch(engine))) / nrows;
	return nbytes - nbytes / 32;
}

/* The bytes that have to be allocated for one more entry of batches[]. */
static size_t
growth_bytes(const CpuEngine *engine)
{
	return engine->nbatches < engine->batches_allocated ? 0 :
		2 * engine->batches_allocated * sizeof(GsBatch);
}

/* Makes space for one more entry of batches[]. */
static GsStatus
grow_batches(CpuEngine *engine)
{
	const GsRuntime *runtime = &engine->base.request.runtime;
	size_t		nbytes = growth_bytes(engine);
	GsBatch    *batches;

	if (nbytes == 0)
		return GS_STATUS_OK;
	batches = runtime->allocate(runtime->arg, nbytes);
	if (batches == NULL)
		return GS_STATUS_OOM;
	hold(engine, nbytes);
	memcpy(batches, engine->batches, nbytes / 2);
	if (engine->batches != engine->first_batches)
	{
		runtime->release(runtime->arg, engine->batches, nbytes / 2);
		engine->held_bytes -= nbytes / 2;
	}
	engine->batches = batches;
	engine->batches_allocated *= 2;
	return GS_STATUS_OK;
}

/* Are rows with equal keys compared? */
static inline bool
is_compared(const CpuEngine *engine)
{
	return engine->base.request.compare != NULL;
}

/* Has the next batch a block that was kept, with space for `least` bytes? */
static bool
has_kept_block(const CpuEngine *engine, size_t least)
{
	return engine->nblocks > engine->nbatches &&
		block_bytes(&engine->batches[engine->nbatches]) >= least;
}

/*
 * The size of the next batch, given a row of row_bytes: that of its block, if it has one;
 * otherwise next_batch_bytes; or what the limit leaves.  0 if not even the row fits.
 *
 * The words of the batch's rows count too; their number is estimated from the average
 * row.  If there are more, sort_words() notices.
 */
static size_t
next_batch_bytes(const CpuEngine *engine, size_t row_bytes)
{
	size_t		nrows = count_rows(engine);
	size_t		least = GS_ALIGN_ROW(row_bytes) + engine->record_bytes;
	size_t		wanted = has_kept_block(engine, least) ?
		block_bytes(&engine->batches[engine->nbatches]) : Max(engine->next_batch_bytes, least);
	size_t		used = engine->held_bytes + growth_bytes(engine) +
		gs_word_sort_bytes(nrows + 1, is_compared(engine));
	size_t		usual = usual_bytes(engine, least);
	size_t		words = gs_word_sort_row_bytes(is_compared(engine));
	size_t		left;

	if (used >= engine->base.request.memory_limit ||
		engine->base.request.memory_limit - used < least)
		return 0;
	left = engine->base.request.memory_limit - used;
	if (wanted + wanted / usual * words > left)
		wanted = Max(least, left / (usual + words) * usual);
	return wanted & ~(size_t) (GS_ROW_ALIGN - 1);
}

static size_t
largest_batch(const CpuEngine *engine)
{
	return Min(MAX_BATCH_BYTES,
			   Max(FIRST_BATCH_BYTES, engine->base.request.memory_limit / BATCHES_PER_LIMIT));
}

/* Removes the batches from batches[first] on, but keeps their blocks. */
static void
empty_batches(CpuEngine *engine, size_t first)
{
	for (size_t i = first; i < engine->nbatches; i++)
		engine->held_bytes -= block_bytes(&engine->batches[i]);
	engine->nbatches = first;
}

/* Frees the block of a batch, unless next_batch() has. */
static void
free_block(const CpuEngine *engine, GsBatch *batch)
{
	const GsRuntime *runtime = &engine->base.request.runtime;

	if (batch->base != NULL)
		runtime->release(runtime->arg, batch->base, block_bytes(batch));
	batch->base = NULL;
}

/* Frees the blocks that no batch uses. */
static void
free_kept_blocks(CpuEngine *engine)
{
	while (engine->nblocks > engine->nbatches)
		free_block(engine, &engine->batches[--engine->nblocks]);
}

/*
 * Gives the next batch a block: the one that was kept, if it has this size; otherwise all of these
 * are freed.
 */
static GsStatus
add_block(CpuEngine *engine, size_t nbytes)
{
	const GsRuntime *runtime = &engine->base.request.runtime;
	GsBatch    *batch = &engine->batches[engine->nbatches];
	char	   *block;

	if (engine->nblocks > engine->nbatches && block_bytes(batch) == nbytes)
		block = batch->base;
	else
	{
		free_kept_blocks(engine);
		block = runtime->allocate(runtime->arg, nbytes);
		if (block == NULL)
			return GS_STATUS_OOM;
		engine->nblocks++;
		engine->next_batch_bytes = Min(engine->next_batch_bytes * 2, largest_batch(engine));
	}
	gs_batch_init(batch, block, nbytes, engine->record_bytes);
	return GS_STATUS_OK;
}

static GsStatus
cpu_reserve(GsEngine *base, size_t row_bytes, GsBatch **batch)
{
	CpuEngine  *engine = (CpuEngine *) base;
	GsBatch    *last = last_batch(engine);
	size_t		nbytes;
	GsRowNumbering numbering;
	GsStatus	status;

	if (last != NULL && gs_batch_has_space(last, row_bytes))
	{
		*batch = last;
		return GS_STATUS_OK;
	}
	nbytes = next_batch_bytes(engine, row_bytes);
	if (nbytes == 0)
		return GS_STATUS_FULL;

	/* the number of bits of a row number is limited */
	if (!gs_row_numbering(&numbering, engine->nbatches + 1,
						  Max(MAX_BATCH_BYTES, nbytes) / GS_ROW_ALIGN))
		return GS_STATUS_FULL;

	status = grow_batches(engine);
	if (status != GS_STATUS_OK)
		return status;
	status = add_block(engine, nbytes);
	if (status != GS_STATUS_OK)
		return status;
	last = last_batch(engine);
	if (last != NULL)
	{
		engine->full_rows += last->nrows;
		engine->full_bytes += batch_used_bytes(last);
	}
	*batch = &engine->batches[engine->nbatches++];
	hold(engine, block_bytes(*batch));
	return GS_STATUS_OK;
}

/* One more than the highest unit of a row in a batch. */
static size_t
units_of(const CpuEngine *engine, const GsBatch *batch)
{
	const GsKeyLayout *layout = engine->base.request.layout;

	if (layout->keys_only || batch->nrows == 0)
		return batch->nrows;
	return gs_record_unit(gs_batch_record(batch, batch->nrows - 1), layout->nwords) + 1;
}

/* The row of a word, or in a keys_only layout its record. */
static inline const char *
row_of(const CpuEngine *engine, uint64_t word)
{
	const GsBatch *batch = gs_word_batch(&engine->numbering, engine->batches, word);
	size_t		unit = gs_word_unit(&engine->numbering, word);

	return engine->base.request.layout->keys_only ?
		(const char *) gs_batch_record(batch, unit) : gs_batch_row(batch, unit);
}

/*
 * For keys_only layouts: replaces the words by the keys, which take the same space,
 * and frees the batches.
 */
static void
gather_keys(CpuEngine *engine)
{
	const GsRuntime *runtime = &engine->base.request.runtime;
	uint64_t   *words = engine->words;
	size_t		nrows = (size_t) engine->base.stats.nrows;

	for (size_t i = 0; i < nrows; i++)
	{
		if ((i & (CHECK_EVERY - 1)) == 0)
			runtime->check_interrupts(runtime->arg);
		if (i + PREFETCH_ROWS < nrows)
			__builtin_prefetch(row_of(engine, words[i + PREFETCH_ROWS]));
		words[i] = *(const uint64_t *) row_of(engine, words[i]);
	}
	empty_batches(engine, 0);
	free_kept_blocks(engine);
}

/*
 * Did the rows of a keys_only layout arrive in order?  Then they are only copied:
 * PostgreSQL's sort takes 16 ns a row for these, so each pass counts.
 */
static bool
keys_are_presorted(const GsKeyLayout *layout)
{
	return layout->keys_only && layout->ascending && !layout->columns[0].descending;
}

static GsStatus
use_presorted_keys(CpuEngine *engine)
{
	const GsRuntime *runtime = &engine->base.request.runtime;
	GsEngineStats *stats = &engine->base.stats;
	const GsKeyField *field = &engine->base.request.layout->fields[0];
	uint64_t   *word = runtime->allocate(runtime->arg, stats->nrows * sizeof(uint64_t));

	if (word == NULL)
		return GS_STATUS_OOM;
	engine->words = word;
	hold(engine, stats->nrows * sizeof(uint64_t));
	for (size_t i = 0; i < engine->nbatches; i++)
	{
		const GsBatch *batch = &engine->batches[i];

		runtime->check_interrupts(runtime->arg);
		for (size_t entry = 0; entry < batch->nrows; entry++)
			*word++ = *gs_batch_record(batch, entry);
	}
	empty_batches(engine, 0);
	free_kept_blocks(engine);
	stats->method = GS_METHOD_PRESORTED;
	stats->key_bits = gs_bit_width(field->max - field->min);
	return GS_STATUS_OK;
}

/* A sort of all rows, by what the request says or by another comparison function. */
static GsWordSort
make_word_sort(const CpuEngine *engine, const GsRowCompare *compare, void *compare_arg)
{
	const GsEngine *base = &engine->base;

	return (GsWordSort) {
		.layout = base->request.layout,
		.batches = engine->batches,
		.nbatches = engine->nbatches,
		.nrows = base->stats.nrows,
		.numbering = engine->numbering,
		.runtime = &base->request.runtime,
		.compare = compare,
		.compare_arg = compare_arg,
		.words = engine->words
	};
}

/* Sorts the words of all rows; the batches stay as they are. */
static GsStatus
sort_words(CpuEngine *engine)
{
	GsEngine   *base = &engine->base;
	GsWordSort	sort;
	size_t		nunits = 0;
	size_t		nbytes = gs_word_sort_bytes(base->stats.nrows, is_compared(engine));
	GsStatus	status;

	free_kept_blocks(engine);
	for (size_t i = 0; i < engine->nbatches; i++)
		nunits = Max(nunits, units_of(engine, &engine->batches[i]));
	if (!gs_row_numbering(&engine->numbering, engine->nbatches, nunits))
		return GS_STATUS_FULL;
	if (engine->held_bytes + nbytes > base->request.memory_limit)
		return GS_STATUS_FULL;
	hold(engine, nbytes);
	sort = make_word_sort(engine, base->request.compare, base->request.compare_arg);
	status = gs_word_sort(&sort, &base->stats);
	engine->held_bytes -= nbytes;
	if (status == GS_STATUS_OK)
	{
		engine->words = sort.words;
		hold(engine, sort.nrows * sizeof(uint64_t));
	}
	else
		base->stats.method = GS_METHOD_NONE;	/* the input can be returned */
	return status;
}

/* The record of a word's row; reads the row.  Not for keys_only. */
static inline const uint64_t *
record_of(const CpuEngine *engine, uint64_t word)
{
	return gs_batch_record_of_row(gs_word_batch(&engine->numbering, engine->batches, word),
								  row_of(engine, word));
}

/*
 * The records of the first n of nleft words.  Prefetches records whose rows have been
 * prefetched by previous calls.
 */
static void
find_records(const CpuEngine *engine, const uint64_t *words, size_t n, uint64_t nleft,
			 const uint64_t **records)
{
	for (size_t i = 0; i < n && i + PREFETCH_RECORDS < nleft; i++)
		__builtin_prefetch(record_of(engine, words[i + PREFETCH_RECORDS]));
	for (size_t i = 0; i < n; i++)
		records[i] = record_of(engine, words[i]);
}

static GsStatus
cpu_sort(GsEngine *base)
{
	CpuEngine  *engine = (CpuEngine *) base;
	GsStatus	status;

	base->stats.nrows = count_rows(engine);
	if (base->stats.nrows == 0)
		return GS_STATUS_OK;
	engine->prefetch_bytes = Min(PREFETCH_BYTES, usual_bytes(engine, 0) + 1);
	if (keys_are_presorted(base->request.layout))
		return use_presorted_keys(engine);
	status = sort_words(engine);
	if (status == GS_STATUS_OK && base->request.layout->keys_only)
		gather_keys(engine);
	return status;
}

GsStatus
gs_engine_cpu_resort(GsEngine *base, const GsRowCompare *compare, void *compare_arg)
{
	CpuEngine  *engine = (CpuEngine *) base;
	size_t		nrows = (size_t) base->stats.nrows;
	size_t		nbytes = gs_word_sort_bytes(nrows, true) - nrows * sizeof(uint64_t);
	GsWordSort	sort = make_word_sort(engine, compare, compare_arg);
	GsStatus	status;

	hold(engine, nbytes);
	status = gs_word_sort_by_comparison(&sort);
	engine->held_bytes -= nbytes;
	return status;
}

/* Frees the words of nrows rows. */
static void
free_words(CpuEngine *engine, size_t nrows)
{
	const GsRuntime *runtime = &engine->base.request.runtime;

	runtime->release(runtime->arg, engine->words, nrows * sizeof(uint64_t));
	engine->held_bytes -= nrows * sizeof(uint64_t);
	engine->words = NULL;
	engine->base.stats.method = GS_METHOD_NONE;
	engine->base.stats.tied_rows = 0;
	engine->base.stats.compared_rows = 0;
}

void
gs_engine_cpu_unsort(GsEngine *base)
{
	free_words((CpuEngine *) base, (size_t) base->stats.nrows);
}

void
gs_engine_cpu_restart(GsEngine *base, size_t memory_limit)
{
	CpuEngine  *engine = (CpuEngine *) base;

	if (engine->words != NULL)
		free_words(engine, (size_t) base->stats.nrows);
	empty_batches(engine, 0);
	engine->full_rows = 0;
	engine->full_bytes = 0;
	base->request.memory_limit = memory_limit;
	base->stats = (GsEngineStats)
	{
		.engine = "cpu",.method = GS_METHOD_NONE,.peak_bytes = base->stats.peak_bytes
	};
}

/*
 * Frees the batches after the last one that has rows, and counts rows and bytes
 * again.  The next batch will be as small as that one.
 */
static void
free_batches_behind(CpuEngine *engine, size_t last)
{
	empty_batches(engine, last + 1);
	free_kept_blocks(engine);
	engine->next_batch_bytes = Min(Max(block_bytes(&engine->batches[last]), FIRST_BATCH_BYTES),
								   largest_batch(engine));
	engine->full_rows = 0;
	engine->full_bytes = 0;
	for (size_t i = 0; i < last; i++)
	{
		engine->full_rows += engine->batches[i].nrows;
		engine->full_bytes += batch_used_bytes(&engine->batches[i]);
	}
}

/*
 * Compacts the batches to the rows of these ascending numbers, in place: no row moves
 * to a later position, because only rows that were before it remain before it.
 * *cutoff_batch and *cutoff_entry become the position of the row whose number is
 * cutoff.
 */
static void
compact(CpuEngine *engine, const uint64_t *numbers, size_t nrows, uint64_t cutoff,
		const GsBatch **cutoff_batch, size_t *cutoff_entry)
{
	const GsRuntime *runtime = &engine->base.request.runtime;
	const GsKeyLayout *layout = engine->base.request.layout;
	size_t		from_index = 0;
	GsBatch		from = engine->batches[0];
	GsBatch    *to = &engine->batches[0];

	gs_batch_clear(to);
	for (size_t i = 0; i < nrows; i++)
	{
		size_t		entry = gs_word_unit(&engine->numbering, numbers[i]);
		size_t		index = (size_t) (numbers[i] >> engine->numbering.unit_bits);
		size_t		row_bytes;

		if ((i & (CHECK_EVERY - 1)) == 0)
			runtime->check_interrupts(runtime->arg);
		if (index != from_index)
		{
			from_index = index;
			from = engine->batches[index];
		}
		if (!layout->keys_only)
			entry = gs_batch_entry_of_row(gs_batch_row(&from, entry));
		row_bytes = gs_batch_row_bytes(&from, layout, entry);
		while (!gs_batch_has_space(to, row_bytes))
			gs_batch_clear(++to);
		gs_batch_push_copy(to, &from, layout, entry, row_bytes);
		if (numbers[i] == cutoff)
		{
			*cutoff_batch = to;
			*cutoff_entry = to->nrows - 1;
		}
	}
	free_batches_behind(engine, (size_t) (to - engine->batches));
}

GsStatus
gs_engine_cpu_keep_first(GsEngine *base, uint64_t nrows, const GsBatch **batch, size_t *entry)
{
	CpuEngine  *engine = (CpuEngine *) base;
	const GsRuntime *runtime = &base->request.runtime;
	size_t		total = count_rows(engine);
	uint64_t	cutoff;
	uint64_t   *scratch;
	GsStatus	status = GS_STATUS_OK;

	base->stats.nrows = total;
	if (engine->words == NULL)
		status = sort_words(engine);
	if (status != GS_STATUS_OK)
		return status;
	scratch = runtime->allocate(runtime->arg, nrows * sizeof(uint64_t));
	if (scratch == NULL)
	{
		free_words(engine, total);
		return GS_STATUS_OOM;
	}
	hold(engine, nrows * sizeof(uint64_t));

	for (size_t i = 0; i < nrows; i++)
		engine->words[i] &= engine->numbering.number_mask;
	cutoff = engine->words[nrows - 1];
	compact(engine,
			gs_radix_sort(engine->words, scratch, nrows, 0,
						  engine->numbering.number_bits, runtime, NULL),
			nrows, cutoff, batch, entry);
	runtime->release(runtime->arg, scratch, nrows * sizeof(uint64_t));
	engine->held_bytes -= nrows * sizeof(uint64_t);
	free_words(engine, total);
	return GS_STATUS_OK;
}

static GsStatus
cpu_fetch(GsEngine *base, uint64_t position, size_t nrows, const void **rows,
		  const uint64_t **records, size_t *fetched)
{
	const CpuEngine *engine = (const CpuEngine *) base;
	const uint64_t *words;
	uint64_t	nleft;
	size_t		n;
	size_t		nfollowing;		/* rows to prefetch, from PREFETCH_ROWS on */

	*fetched = 0;
	if (position >= base->stats.nrows)
		return GS_STATUS_OK;
	words = engine->words + position;
	nleft = base->stats.nrows - position;
	n = (size_t) Min((uint64_t) nrows, nleft);
	*fetched = n;
	if (base->request.layout->keys_only)
	{
		for (size_t i = 0; i < n; i++)
			rows[i] = &words[i];
		for (size_t i = 0; i < n && records != NULL; i++)
			records[i] = &words[i];
		return GS_STATUS_OK;
	}
	nfollowing = nleft <= PREFETCH_ROWS ? 0 : (size_t) Min((uint64_t) n, nleft - PREFETCH_ROWS);
	for (size_t i = 0; i < nfollowing; i++)
	{
		const char *row = row_of(engine, words[i + PREFETCH_ROWS]);

		for (size_t at = 0; at < engine->prefetch_bytes; at += GS_CACHE_LINE)
			__builtin_prefetch(row + at);
		__builtin_prefetch(row + engine->prefetch_bytes - 1);
	}
	for (size_t i = 0; i < n; i++)
		rows[i] = row_of(engine, words[i]);
	if (records != NULL)
		find_records(engine, words, n, nleft, records);
	return GS_STATUS_OK;
}

static GsStatus
cpu_return_input(GsEngine *base)
{
	CpuEngine  *engine = (CpuEngine *) base;

	free_kept_blocks(engine);
	engine->input_returned = 0;
	return GS_STATUS_OK;
}

static GsStatus
cpu_next_batch(GsEngine *base, const GsBatch **batch)
{
	CpuEngine  *engine = (CpuEngine *) base;

	*batch = NULL;
	if (engine->words != NULL)
		return GS_STATUS_OK;	/* sorted: no row was left out */
	if (engine->input_returned > 0)
		free_block(engine, &engine->batches[engine->input_returned - 1]);
	if (engine->input_returned < engine->nbatches)
		*batch = &engine->batches[engine->input_returned++];
	return GS_STATUS_OK;
}

const GsBatch *
gs_engine_cpu_batches(const GsEngine *base, size_t *nbatches)
{
	const CpuEngine *engine = (const CpuEngine *) base;

	*nbatches = engine->nbatches;
	return engine->batches;
}

static void
cpu_close(GsEngine *base)
{
	CpuEngine  *engine = (CpuEngine *) base;
	GsRuntime	runtime = base->request.runtime;

	for (size_t i = 0; i < engine->nblocks; i++)
		free_block(engine, &engine->batches[i]);
	if (engine->batches != engine->first_batches)
		runtime.release(runtime.arg, engine->batches, engine->batches_allocated * sizeof(GsBatch));
	if (engine->words != NULL)
		runtime.release(runtime.arg, engine->words, base->stats.nrows * sizeof(uint64_t));
	runtime.release(runtime.arg, engine, sizeof(CpuEngine));
}

static const GsEngineOps cpu_ops = {
	.reserve = cpu_reserve,
	.sort = cpu_sort,
	.fetch = cpu_fetch,
	.return_input = cpu_return_input,
	.next_batch = cpu_next_batch,
	.close = cpu_close
};

/* The size of the first batch. */
static size_t
first_batch_bytes(const GsEngineRequest *request)
{
	size_t		expected = Min(request->expected_bytes,
							   request->memory_limit / 4 * FIRST_QUARTERS);

	return request->expected_bytes > MAX_FIRST_BYTES ? FIRST_BATCH_BYTES :
		Max(FIRST_BATCH_BYTES, expected);
}

GsEngine *
gs_engine_cpu_open(const GsEngineRequest *request)
{
	CpuEngine  *engine = request->runtime.allocate(request->runtime.arg, sizeof(CpuEngine));

	if (engine == NULL)
		return NULL;
	memset(engine, 0, sizeof(CpuEngine));
	engine->base.ops = &cpu_ops;
	engine->base.request = *request;
	engine->base.stats.engine = "cpu";
	engine->batches = engine->first_batches;
	engine->batches_allocated = FIRST_BATCHES;
	engine->record_bytes = gs_record_bytes(request->layout);
	engine->next_batch_bytes = first_batch_bytes(request);
	hold(engine, sizeof(CpuEngine));
	return &engine->base;
}
