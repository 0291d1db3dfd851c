/*-------------------------------------------------------------------------
 *
 * run_set.c
 *	  The runs of a sort that exceeds memory, and their merge.
 *
 * When memory is full, its rows are sorted and written as a run.  The runs are merged
 * while rows are returned, with a buffer for each:
 *
 *	  engine		| run 0 | run 1 | run 2 | run 3 | run 4 | run 5 |
 *	  a merge		| run 0 | run 1 |	  run 2		| run 4 | run 5 |
 *	  the last one	|		 rows as they are returned			   |
 *
 * Memory limits the number of buffers.  If there are more runs, some are merged to one
 * first: adjacent ones, so that rows with equal keys stay in input order; those with the
 * fewest bytes in total; and just so many that each later merge has as many runs as
 * there are buffers (Knuth, TAOCP vol. 3, 5.4.9).  So rows are moved again only if
 * necessary.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "engine/run_merge.h"
#include "run/run_set.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* Rows fetched from an engine at a time. */
#define WINDOW			64

/* The bytes of a buffer, depending on memory. */
#define LEAST_READ_BYTES	((Size) 4 << 10)
#define ENOUGH_READ_BYTES	((Size) 64 << 10)	/* beyond this, prefer to merge more runs */
#define MOST_READ_BYTES		((Size) 256 << 10)
#define LEAST_WRITE_BYTES	((Size) 8 << 10)
#define MOST_WRITE_BYTES	((Size) 256 << 10)

/* Runs that are merged at once; more would not fit the processor's cache. */
#define LEAST_SOURCES	6
#define MOST_SOURCES	512

/* A run, and how to read it. */
typedef struct SetRun
{
	GsRun		run;
	GsRunStore *store;
	const GsKeyLayout *layout;	/* of its records */
} SetRun;

struct GsRunSet
{
	GsMergeOrder order;
	const GsKeyLayout *layout;	/* the order's */
	MemoryContext context;
	Size		memory_limit;

	/* makes records again if an engine or a run does not have them */
	const GsSortColumn *columns;
	int			ncolumns;
	TupleDesc	desc;
	const GsKeyEncoder *driver_key;
	GsKeyEncoder *key;			/* NULL before the first */
	bool		cheap_key;		/* runs do not have most records */
	uint64	   *record;
	char	   *row;			/* a copy, if keys are stored behind it */
	Size		row_allocated;

	GsRunSetStats stats;
	GsRunStore *store;

	GsRunWriter writer;			/* of the last run, which can be appended to */
	bool		writing;

	/* the other runs, in input order */
	SetRun	   *runs;
	int			nruns;
	int			runs_allocated;
	Size		longest;		/* bytes of the longest row and its keys */
	List	   *owned_elsewhere;	/* stores of adopted runs */

	/* a merge */
	GsRunMerge	merge;
	void	   *merge_memory;
	GsRunReader *readers;		/* NULL if there is none */
	int			nreaders;
	char	   *buffers;		/* of the readers */
	bool		begun;			/* the winner was returned */
};

/*
 * Creates the encoder that makes records again.  The driver's has counted the rows
 * already, and may be in use for another row.
 */
static void
make_own_key(GsRunSet *spill)
{
	spill->key = gs_key_encoder_create_twin(spill->columns, spill->ncolumns, spill->desc,
										 spill->driver_key);
	spill->record = palloc(gs_record_bytes(spill->layout));
}

GsRunSet *
gs_run_set_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc,
				const GsKeyEncoder *key, const GsMergeOrder *order, Size memory_limit,
				const GsRunFiles *where)
{
	GsRunSet    *spill = palloc0(sizeof(GsRunSet));

	spill->columns = columns;
	spill->ncolumns = ncolumns;
	spill->desc = desc;
	spill->driver_key = key;
	spill->order = *order;
	spill->layout = order->layout;
	spill->context = CurrentMemoryContext;
	spill->memory_limit = memory_limit;
	spill->store = gs_run_store_create(gs_run_set_writer_bytes(memory_limit), where);
	spill->runs_allocated = 16;
	spill->runs = palloc(sizeof(SetRun) * spill->runs_allocated);
	spill->cheap_key = spill->layout->ncolumns > 0 && gs_key_encoder_is_cheap(key);
	if (spill->cheap_key)
		make_own_key(spill);
	return spill;
}

void
gs_run_set_compare_ties(GsRunSet *spill, GsRowCompare compare, void *compare_arg)
{
	if (!spill->order.keys_decide)
		return;					/* all rows are compared */
	spill->order.compare = compare;
	spill->order.compare_arg = compare_arg;
}

const GsRunSetStats *
gs_run_set_stats(GsRunSet *spill)
{
	spill->stats.disk_bytes = gs_run_store_bytes(spill->store);
	return &spill->stats;
}

/* ------------------------------------------------------------------ memory */

static Size
clamp(Size least, Size wanted, Size most)
{
	return Min(Max(wanted, least), most);
}

/* The bytes of an extent: a power of two. */
Size
gs_run_set_writer_bytes(Size memory_limit)
{
	Size		nbytes = LEAST_WRITE_BYTES;

	while (nbytes < MOST_WRITE_BYTES && nbytes < memory_limit / 16)
		nbytes *= 2;
	return nbytes;
}

/*
 * How many runs can be merged at once.  The next row of each is in memory, however long
 * it is.  If rows are so long that only few fit, exceeding the limit is better than
 * moving all rows many times.
 */
static int
most_sources(const GsRunSet *spill)
{
	Size		read_at_once = clamp(LEAST_READ_BYTES, spill->memory_limit / 16, ENOUGH_READ_BYTES);
	Size		each = read_at_once + spill->longest +
		gs_run_merge_bytes(1) + sizeof(GsRunReader);
	Size		besides = spill->store->extent_bytes + sizeof(GsRunSet);

	return spill->memory_limit <= besides ? LEAST_SOURCES :
		clamp(LEAST_SOURCES, (spill->memory_limit - besides) / each, MOST_SOURCES);
}

/* The bytes of the buffer of each run. */
static Size
read_bytes(const GsRunSet *spill, int nsources)
{
	Size		left = spill->memory_limit - Min(spill->memory_limit, spill->store->extent_bytes);

	return TYPEALIGN_DOWN(LEAST_READ_BYTES,
						  clamp(LEAST_READ_BYTES, left / nsources, MOST_READ_BYTES));
}

/* -------------------------------------------------------------------- runs */

static void
begin_run(GsRunSet *spill, GsRunWriter *writer)
{
	gs_run_writer_begin(writer, spill->store, spill->layout,
						palloc(spill->store->extent_bytes));
}

static GsRun
end_run(GsRunWriter *writer)
{
	GsRun		run = gs_run_writer_end(writer);

	pfree(writer->buffer);
	return run;
}

static void
add_run(GsRunSet *spill, const GsRun *run, GsRunStore *store, const GsKeyLayout *layout)
{
	if (spill->nruns == spill->runs_allocated)
	{
		spill->runs_allocated *= 2;
		spill->runs = repalloc_huge(spill->runs, sizeof(SetRun) * spill->runs_allocated);
	}
	spill->runs[spill->nruns++] = (SetRun) {.run = *run,.store = store,.layout = layout};
}

/* Completes the last run. */
static void
end_last_run(GsRunSet *spill)
{
	GsRun		run;

	if (!spill->writing)
		return;
	run = end_run(&spill->writer);
	add_run(spill, &run, spill->store, spill->layout);
	spill->longest = Max(spill->longest, spill->writer.longest);
	spill->writing = false;
}

static void
begin_next_run(GsRunSet *spill)
{
	end_last_run(spill);
	begin_run(spill, &spill->writer);
	spill->writing = true;
	spill->stats.nruns++;
}

/* Copies a row; there is space for extra_bytes after the copy. */
static char *
copy_row(GsRunSet *spill, const char *row, Size row_bytes, Size extra_bytes)
{
	Size		nbytes = GS_ALIGN_ROW(row_bytes + extra_bytes);

	if (nbytes > spill->row_allocated)
	{
		if (spill->row != NULL)
			pfree(spill->row);
		spill->row_allocated = nbytes + nbytes / 4;
		spill->row = MemoryContextAllocHuge(spill->context, spill->row_allocated);
	}
	memcpy(spill->row, row, row_bytes);
	return spill->row;
}

/*
 * Is the record of a row made again when the row is read?  Not if a key is truncated,
 * because our encoder truncates none (make_own_key()).
 */
static inline bool
is_remade(const GsRunSet *spill, const uint64 *record)
{
	const GsKeyLayout *layout = spill->layout;

	for (int i = 0; i < layout->ncolumns && spill->cheap_key; i++)
	{
		if (layout->columns[i].variable)
		{
			if (gs_tail_len(record[layout->columns[i].tail_word]) == GS_TRUNCATED_KEY_BYTES)
				return false;
		}
	}
	return spill->cheap_key;
}

/* Writes a row to a run, with its record unless that is made again. */
static inline void
write_row(GsRunSet *spill, GsRunWriter *writer, const uint64 *record, const char *row, Size row_len)
{
	gs_run_write_row(writer, record, row, row_len,
					 spill->layout->ncolumns > 0 && !is_remade(spill, record));
}

/* Writes a row whose record a device has not returned: makes it again. */
static void
write_without_record(GsRunSet *spill, GsRunWriter *writer, const char *tuple)
{
	char	   *row = unconstify(char *, tuple);
	const GsRowSource source = {.body = row,.nbytes = ((MinimalTuple) row)->t_len};
	const char *why_not;
	Size		extra_bytes;
	uint32		nulls;

	if (spill->key == NULL)
		make_own_key(spill);
	if (!gs_key_record_read_row(spill->key, &source, &extra_bytes, &why_not))
		elog(ERROR, "could not re-encode sort key: %s", why_not);
	if (extra_bytes > 0)
		row = copy_row(spill, row, source.nbytes, extra_bytes);
	nulls = gs_key_record_write(spill->key, &source, row, source.nbytes, spill->record);
	spill->record[spill->layout->nwords] = nulls;
	write_row(spill, writer, spill->record, row, source.nbytes);
}

/* Writes sorted rows of an engine, with their keys. */
static void
write_with_key(GsRunSet *spill, const void **rows, const uint64_t **records, size_t nrows)
{
	for (size_t i = 0; i < nrows; i++)
	{
		if (records[i] != NULL)
			write_row(spill, &spill->writer, records[i], rows[i],
					  spill->layout->keys_only ? 0 : ((const MinimalTupleData *) rows[i])->t_len);
		else
			write_without_record(spill, &spill->writer, rows[i]);
	}
}

/* Writes rows without keys. */
static void
write_without_key(GsRunSet *spill, const void **rows, size_t nrows)
{
	static const uint64 no_nulls = 0;

	for (size_t i = 0; i < nrows; i++)
		gs_run_write_row(&spill->writer, &no_nulls, rows[i],
						 ((const MinimalTupleData *) rows[i])->t_len, false);
}

/* Writes all rows of an engine to the last run, and counts them. */
static GsStatus
write_rows(GsRunSet *spill, GsEngine *engine)
{
	const bool	keyed = spill->layout->ncolumns > 0;
	const void *rows[WINDOW];
	const uint64_t *records[WINDOW];
	uint64		position = 0;
	size_t		fetched;
	GsStatus	status;

	for (;;)
	{
		status = keyed ?
			gs_engine_fetch_records(engine, position, WINDOW, rows, records, &fetched) :
			gs_engine_fetch(engine, position, WINDOW, rows, &fetched);
		if (status != GS_STATUS_OK || fetched == 0)
			break;
		CHECK_FOR_INTERRUPTS();
		if (keyed)
			write_with_key(spill, rows, records, fetched);
		else
			write_without_key(spill, rows, fetched);
		position += fetched;
	}
	spill->stats.nrows += position;
	return status;
}

GsStatus
gs_run_set_write_run(GsRunSet *spill, GsEngine *engine, bool lengthen)
{
	MemoryContext old = MemoryContextSwitchTo(spill->context);
	GsStatus	status;

	if (!(lengthen && spill->writing))
		begin_next_run(spill);
	status = write_rows(spill, engine);
	if (engine->capabilities->on_device)
	{
		if (spill->stats.device_runs++ == 0)
			spill->stats.device = MemoryContextStrdup(spill->context, engine->stats.device);
	}
	MemoryContextSwitchTo(old);
	return status;
}

void
gs_run_set_write_tuple(GsRunSet *spill, MinimalTuple row)
{
	MemoryContext old = MemoryContextSwitchTo(spill->context);
	const void *rows[] = {row};

	if (!spill->writing)
		begin_next_run(spill);
	write_without_key(spill, rows, 1);
	spill->stats.nrows++;
	MemoryContextSwitchTo(old);
}

/* ------------------------------------------------------------------- merges */

/* Makes the record of a row that was read; returns where it is, as it may have been moved. */
static uint64 *
make_record(GsRunSet *spill, GsRunReader *reader, uint64 *record)
{
	const int	nwords = spill->layout->nwords;
	const Size	row_len = gs_run_row_len(spill->layout, record);
	GsRowSource source = {.body = (char *) (record + nwords),.nbytes = row_len};
	const char *why_not;
	Size		extra_bytes;
	uint32		nulls;

	if (gs_key_encoder_is_direct(spill->key))
		nulls = gs_key_record_write_direct_row(spill->key, &source, record);
	else
	{
		for (;;)
		{
			Size		nbytes = sizeof(uint64) * nwords + row_len;

			if (!gs_key_record_read_row(spill->key, &source, &extra_bytes, &why_not))
				elog(ERROR, "could not re-encode sort key: %s", why_not);
			nbytes += extra_bytes;
			if (likely(gs_run_reader_has_room(reader, nbytes)))
				break;
			/* repeat, because values may point into the row, which is moved */
			CHECK_FOR_INTERRUPTS();
			record = gs_run_reader_reserve(reader, nbytes);
			source.body = (char *) (record + nwords);
		}
		nulls = gs_key_record_write(spill->key, &source, (char *) (record + nwords), row_len, record);
		if (extra_bytes > 0)
			CHECK_FOR_INTERRUPTS();
	}
	record[nwords] = gs_run_last_word(row_len, nulls);
	return record;
}

/* The next record of a run, made again if it has none; only the row if keys are not used. */
static inline const uint64 *
read_next(GsRunSet *spill, GsRunReader *reader)
{
	bool		has_record;
	uint64	   *record = gs_run_reader_next(reader, &has_record);

	if (record == NULL)
		return NULL;
	if (spill->layout->ncolumns == 0)
		return record + reader->layout->nwords;
	return has_record ? record : make_record(spill, reader, record);
}

/* Begins to merge some of the runs; consume: frees their extents. */
static void
begin_merge(GsRunSet *spill, int first, int nruns, bool consume)
{
	Size		nbytes = read_bytes(spill, nruns);
	const uint64 **records = palloc(sizeof(uint64 *) * nruns);

	spill->nreaders = nruns;
	spill->readers = palloc(sizeof(GsRunReader) * nruns);
	spill->buffers = MemoryContextAllocHuge(spill->context, nbytes * nruns);
	spill->merge_memory = palloc(gs_run_merge_bytes(nruns));
	for (int i = 0; i < nruns; i++)
	{
		const SetRun *run = &spill->runs[first + i];

		gs_run_reader_begin(&spill->readers[i], run->store, run->layout, &run->run, consume,
							spill->buffers + i * nbytes, nbytes);
		records[i] = read_next(spill, &spill->readers[i]);
	}
	gs_run_merge_begin(&spill->merge, &spill->order, records, nruns, spill->merge_memory);
	spill->begun = false;
	pfree(records);
}

static void
end_merge(GsRunSet *spill)
{
	for (int i = 0; i < spill->nreaders; i++)
		gs_run_reader_end(&spill->readers[i]);
	pfree(spill->readers);
	pfree(spill->buffers);
	pfree(spill->merge_memory);
	spill->readers = NULL;
}

/* The record of the next row, followed by the row. */
static const uint64 *
next_record(GsRunSet *spill)
{
	GsRunMerge *merge = &spill->merge;
	const uint64 *record = gs_run_merge_record(merge);

	/* the previous row had to stay in place until now */
	if (spill->begun && record != NULL)
	{
		gs_run_merge_replace(merge,
							 read_next(spill, &spill->readers[gs_run_merge_winner(merge)]));
		record = gs_run_merge_record(merge);
	}
	spill->begun = true;
	return record;
}

const void *
gs_run_set_next(GsRunSet *spill)
{
	const uint64 *record = next_record(spill);

	return record == NULL || spill->layout->keys_only ? (const void *) record :
		gs_run_tuple(spill->layout, record);
}

/*
 * How many runs to merge next, so that all later merges, including the last one, can have
 * `most` runs.
 */
static int
next_merge_runs(int nruns, int most)
{
	int			rest = (nruns - most) % (most - 1);

	return rest == 0 ? most : rest + 1;
}

/* The first of `count` adjacent runs with the fewest bytes in total. */
static int
smallest_runs(const GsRunSet *spill, int count)
{
	int			best = 0;
	int64		best_bytes = PG_INT64_MAX;
	int64		nbytes = 0;

	for (int i = 0; i < spill->nruns; i++)
	{
		nbytes += spill->runs[i].run.nbytes;
		if (i >= count)
			nbytes -= spill->runs[i - count].run.nbytes;
		if (i >= count - 1 && nbytes < best_bytes)
		{
			best = i - (count - 1);
			best_bytes = nbytes;
		}
	}
	return best;
}

/* Merges adjacent runs to one, which replaces them. */
static void
merge_runs(GsRunSet *spill, int first, int count)
{
	const uint64 *record;
	GsRunWriter writer;
	uint64		nrows = 0;

	begin_run(spill, &writer);
	begin_merge(spill, first, count, true);
	while ((record = next_record(spill)) != NULL)
	{
		if ((nrows++ & 1023) == 0)
			CHECK_FOR_INTERRUPTS();
		write_row(spill, &writer, record, gs_run_row(spill->layout, record),
				  spill->layout->keys_only ? 0 : gs_run_row_len(spill->layout, record));
	}
	end_merge(spill);
	spill->runs[first] = (SetRun) {
		.run = end_run(&writer),.store = spill->store,.layout = spill->layout
	};
	memmove(&spill->runs[first + 1], &spill->runs[first + count],
			sizeof(SetRun) * (spill->nruns - first - count));
	spill->nruns -= count - 1;
	spill->stats.nmerges++;
}

/* Merges runs until there are at most `most`. */
static void
merge_down_to(GsRunSet *spill, int most)
{
	while (spill->nruns > most)
	{
		int			count = next_merge_runs(spill->nruns, most);

		merge_runs(spill, smallest_runs(spill, count), count);
	}
}

void
gs_run_set_begin_merge(GsRunSet *spill, Size memory_limit)
{
	MemoryContext old = MemoryContextSwitchTo(spill->context);

	end_last_run(spill);
	spill->memory_limit = memory_limit;
	merge_down_to(spill, most_sources(spill));
	begin_merge(spill, 0, spill->nruns, false);
	MemoryContextSwitchTo(old);
}

/* ------------------------------------------------- runs of several processes */

void
gs_run_set_share(GsRunSet *spill, GsSharedRuns *shared)
{
	MemoryContext old = MemoryContextSwitchTo(spill->context);

	end_last_run(spill);
	merge_down_to(spill, Min(most_sources(spill), GS_MAX_SHARED_RUNS));
	shared->nrows = spill->stats.nrows;
	shared->longest = spill->longest;
	shared->extent_bytes = spill->store->extent_bytes;
	shared->layout = *spill->layout;
	shared->nruns = spill->nruns;
	for (int i = 0; i < spill->nruns; i++)
		shared->runs[i] = spill->runs[i].run;
	MemoryContextSwitchTo(old);
}

void
gs_run_set_adopt(GsRunSet *spill, const GsSharedRuns *shared, const GsRunFiles *where)
{
	MemoryContext old = MemoryContextSwitchTo(spill->context);
	GsRunStore *store = gs_run_store_open(shared->extent_bytes, where);

	end_last_run(spill);
	if (spill->layout->ncolumns > 0 && spill->key == NULL)
		make_own_key(spill);	/* that process may have written no records */
	for (int i = 0; i < shared->nruns; i++)
		add_run(spill, &shared->runs[i], store, &shared->layout);
	spill->owned_elsewhere = lappend(spill->owned_elsewhere, store);
	spill->longest = Max(spill->longest, shared->longest);
	spill->stats.nruns += shared->nruns;
	spill->stats.nrows += shared->nrows;
	MemoryContextSwitchTo(old);
}

bool
gs_run_set_has_keys(const GsRunSet *spill)
{
	return spill->layout->ncolumns > 0;
}

void
gs_run_set_drop_keys(GsRunSet *spill, const GsMergeOrder *order)
{
	end_last_run(spill);
	spill->order = *order;
	spill->layout = order->layout;
}

void
gs_run_set_close(GsRunSet *spill)
{
	ListCell   *lc;

	if (spill->readers != NULL)
		end_merge(spill);
	if (spill->writing)
		pfree(spill->writer.buffer);
	foreach(lc, spill->owned_elsewhere)
		gs_run_store_close(lfirst(lc));
	gs_run_store_close(spill->store);
	list_free(spill->owned_elsewhere);
	pfree(spill->runs);
	pfree(spill);
}
