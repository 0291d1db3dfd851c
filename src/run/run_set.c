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
make_own_key(GsRunSet *set)
{
	set->key = gs_key_encoder_create_twin(set->columns, set->ncolumns, set->desc,
										 set->driver_key);
	set->record = palloc(gs_record_bytes(set->layout));
}

GsRunSet *
gs_run_set_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc,
				const GsKeyEncoder *key, const GsMergeOrder *order, Size memory_limit,
				const GsRunFiles *where)
{
	GsRunSet    *set = palloc0(sizeof(GsRunSet));

	set->columns = columns;
	set->ncolumns = ncolumns;
	set->desc = desc;
	set->driver_key = key;
	set->order = *order;
	set->layout = order->layout;
	set->context = CurrentMemoryContext;
	set->memory_limit = memory_limit;
	set->store = gs_run_store_create(gs_run_set_writer_bytes(memory_limit), where);
	set->runs_allocated = 16;
	set->runs = palloc(sizeof(SetRun) * set->runs_allocated);
	set->cheap_key = set->layout->ncolumns > 0 && gs_key_encoder_is_cheap(key);
	if (set->cheap_key)
		make_own_key(set);
	return set;
}

void
gs_run_set_compare_ties(GsRunSet *set, GsRowCompare compare, void *compare_arg)
{
	if (!set->order.keys_decide)
		return;					/* all rows are compared */
	set->order.compare = compare;
	set->order.compare_arg = compare_arg;
}

const GsRunSetStats *
gs_run_set_stats(GsRunSet *set)
{
	set->stats.disk_bytes = gs_run_store_bytes(set->store);
	return &set->stats;
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
most_sources(const GsRunSet *set)
{
	Size		read_at_once = clamp(LEAST_READ_BYTES, set->memory_limit / 16, ENOUGH_READ_BYTES);
	Size		each = read_at_once + set->longest +
		gs_run_merge_bytes(1) + sizeof(GsRunReader);
	Size		besides = set->store->extent_bytes + sizeof(GsRunSet);

	return set->memory_limit <= besides ? LEAST_SOURCES :
		clamp(LEAST_SOURCES, (set->memory_limit - besides) / each, MOST_SOURCES);
}

/* The bytes of the buffer of each run. */
static Size
read_bytes(const GsRunSet *set, int nsources)
{
	Size		left = set->memory_limit - Min(set->memory_limit, set->store->extent_bytes);

	return TYPEALIGN_DOWN(LEAST_READ_BYTES,
						  clamp(LEAST_READ_BYTES, left / nsources, MOST_READ_BYTES));
}

/* -------------------------------------------------------------------- runs */

static void
begin_run(GsRunSet *set, GsRunWriter *writer)
{
	gs_run_writer_begin(writer, set->store, set->layout,
						palloc(set->store->extent_bytes));
}

static GsRun
end_run(GsRunWriter *writer)
{
	GsRun		run = gs_run_writer_end(writer);

	pfree(writer->buffer);
	return run;
}

static void
add_run(GsRunSet *set, const GsRun *run, GsRunStore *store, const GsKeyLayout *layout)
{
	if (set->nruns == set->runs_allocated)
	{
		set->runs_allocated *= 2;
		set->runs = repalloc_huge(set->runs, sizeof(SetRun) * set->runs_allocated);
	}
	set->runs[set->nruns++] = (SetRun) {.run = *run,.store = store,.layout = layout};
}

/* Completes the last run. */
static void
end_last_run(GsRunSet *set)
{
	GsRun		run;

	if (!set->writing)
		return;
	run = end_run(&set->writer);
	add_run(set, &run, set->store, set->layout);
	set->longest = Max(set->longest, set->writer.longest);
	set->writing = false;
}

static void
begin_next_run(GsRunSet *set)
{
	end_last_run(set);
	begin_run(set, &set->writer);
	set->writing = true;
	set->stats.nruns++;
}

/* Copies a row; there is space for extra_bytes after the copy. */
static char *
copy_row(GsRunSet *set, const char *row, Size row_bytes, Size extra_bytes)
{
	Size		nbytes = GS_ALIGN_ROW(row_bytes + extra_bytes);

	if (nbytes > set->row_allocated)
	{
		if (set->row != NULL)
			pfree(set->row);
		set->row_allocated = nbytes + nbytes / 4;
		set->row = MemoryContextAllocHuge(set->context, set->row_allocated);
	}
	memcpy(set->row, row, row_bytes);
	return set->row;
}

/*
 * Is the record of a row made again when the row is read?  Not if a key is truncated,
 * because our encoder truncates none (make_own_key()).
 */
static inline bool
is_remade(const GsRunSet *set, const uint64 *record)
{
	const GsKeyLayout *layout = set->layout;

	for (int i = 0; i < layout->ncolumns && set->cheap_key; i++)
	{
		if (layout->columns[i].variable)
		{
			if (gs_tail_len(record[layout->columns[i].tail_word]) == GS_TRUNCATED_KEY_BYTES)
				return false;
		}
	}
	return set->cheap_key;
}

/* Writes a row to a run, with its record unless that is made again. */
static inline void
write_row(GsRunSet *set, GsRunWriter *writer, const uint64 *record, const char *row, Size row_len)
{
	gs_run_write_row(writer, record, row, row_len,
					 set->layout->ncolumns > 0 && !is_remade(set, record));
}

/* Writes a row whose record a device has not returned: makes it again. */
static void
write_without_record(GsRunSet *set, GsRunWriter *writer, const char *tuple)
{
	char	   *row = unconstify(char *, tuple);
	const GsRowSource source = {.body = row,.nbytes = ((MinimalTuple) row)->t_len};
	const char *why_not;
	Size		extra_bytes;
	uint32		nulls;

	if (set->key == NULL)
		make_own_key(set);
	if (!gs_key_record_read_row(set->key, &source, &extra_bytes, &why_not))
		elog(ERROR, "could not re-encode sort key: %s", why_not);
	if (extra_bytes > 0)
		row = copy_row(set, row, source.nbytes, extra_bytes);
	nulls = gs_key_record_write(set->key, &source, row, source.nbytes, set->record);
	set->record[set->layout->nwords] = nulls;
	write_row(set, writer, set->record, row, source.nbytes);
}

/* Writes sorted rows of an engine, with their keys. */
static void
write_with_key(GsRunSet *set, const void **rows, const uint64_t **records, size_t nrows)
{
	for (size_t i = 0; i < nrows; i++)
	{
		if (records[i] != NULL)
			write_row(set, &set->writer, records[i], rows[i],
					  set->layout->keys_only ? 0 : ((const MinimalTupleData *) rows[i])->t_len);
		else
			write_without_record(set, &set->writer, rows[i]);
	}
}

/* Writes rows without keys. */
static void
write_without_key(GsRunSet *set, const void **rows, size_t nrows)
{
	static const uint64 no_nulls = 0;

	for (size_t i = 0; i < nrows; i++)
		gs_run_write_row(&set->writer, &no_nulls, rows[i],
						 ((const MinimalTupleData *) rows[i])->t_len, false);
}

/* Writes all rows of an engine to the last run, and counts them. */
static GsStatus
write_rows(GsRunSet *set, GsEngine *engine)
{
	const bool	keyed = set->layout->ncolumns > 0;
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
			write_with_key(set, rows, records, fetched);
		else
			write_without_key(set, rows, fetched);
		position += fetched;
	}
	set->stats.nrows += position;
	return status;
}

GsStatus
gs_run_set_write_run(GsRunSet *set, GsEngine *engine, bool lengthen)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);
	GsStatus	status;

	if (!(lengthen && set->writing))
		begin_next_run(set);
	status = write_rows(set, engine);
	if (engine->capabilities->on_device)
	{
		if (set->stats.device_runs++ == 0)
			set->stats.device = MemoryContextStrdup(set->context, engine->stats.device);
	}
	MemoryContextSwitchTo(old);
	return status;
}

void
gs_run_set_write_tuple(GsRunSet *set, MinimalTuple row)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);
	const void *rows[] = {row};

	if (!set->writing)
		begin_next_run(set);
	write_without_key(set, rows, 1);
	set->stats.nrows++;
	MemoryContextSwitchTo(old);
}

/* ------------------------------------------------------------------- merges */

/* Makes the record of a row that was read; returns where it is, as it may have been moved. */
static uint64 *
make_record(GsRunSet *set, GsRunReader *reader, uint64 *record)
{
	const int	nwords = set->layout->nwords;
	const Size	row_len = gs_run_row_len(set->layout, record);
	GsRowSource source = {.body = (char *) (record + nwords),.nbytes = row_len};
	const char *why_not;
	Size		extra_bytes;
	uint32		nulls;

	if (gs_key_encoder_is_direct(set->key))
		nulls = gs_key_record_write_direct_row(set->key, &source, record);
	else
	{
		for (;;)
		{
			Size		nbytes = sizeof(uint64) * nwords + row_len;

			if (!gs_key_record_read_row(set->key, &source, &extra_bytes, &why_not))
				elog(ERROR, "could not re-encode sort key: %s", why_not);
			nbytes += extra_bytes;
			if (likely(gs_run_reader_has_room(reader, nbytes)))
				break;
			/* repeat, because values may point into the row, which is moved */
			CHECK_FOR_INTERRUPTS();
			record = gs_run_reader_reserve(reader, nbytes);
			source.body = (char *) (record + nwords);
		}
		nulls = gs_key_record_write(set->key, &source, (char *) (record + nwords), row_len, record);
		if (extra_bytes > 0)
			CHECK_FOR_INTERRUPTS();
	}
	record[nwords] = gs_run_last_word(row_len, nulls);
	return record;
}

/* The next record of a run, made again if it has none; only the row if keys are not used. */
static inline const uint64 *
read_next(GsRunSet *set, GsRunReader *reader)
{
	bool		has_record;
	uint64	   *record = gs_run_reader_next(reader, &has_record);

	if (record == NULL)
		return NULL;
	if (set->layout->ncolumns == 0)
		return record + reader->layout->nwords;
	return has_record ? record : make_record(set, reader, record);
}

/* Begins to merge some of the runs; consume: frees their extents. */
static void
begin_merge(GsRunSet *set, int first, int nruns, bool consume)
{
	Size		nbytes = read_bytes(set, nruns);
	const uint64 **records = palloc(sizeof(uint64 *) * nruns);

	set->nreaders = nruns;
	set->readers = palloc(sizeof(GsRunReader) * nruns);
	set->buffers = MemoryContextAllocHuge(set->context, nbytes * nruns);
	set->merge_memory = palloc(gs_run_merge_bytes(nruns));
	for (int i = 0; i < nruns; i++)
	{
		const SetRun *run = &set->runs[first + i];

		gs_run_reader_begin(&set->readers[i], run->store, run->layout, &run->run, consume,
							set->buffers + i * nbytes, nbytes);
		records[i] = read_next(set, &set->readers[i]);
	}
	gs_run_merge_begin(&set->merge, &set->order, records, nruns, set->merge_memory);
	set->begun = false;
	pfree(records);
}

static void
end_merge(GsRunSet *set)
{
	for (int i = 0; i < set->nreaders; i++)
		gs_run_reader_end(&set->readers[i]);
	pfree(set->readers);
	pfree(set->buffers);
	pfree(set->merge_memory);
	set->readers = NULL;
}

/* The record of the next row, followed by the row. */
static const uint64 *
next_record(GsRunSet *set)
{
	GsRunMerge *merge = &set->merge;
	const uint64 *record = gs_run_merge_record(merge);

	/* the previous row had to stay in place until now */
	if (set->begun && record != NULL)
	{
		gs_run_merge_replace(merge,
							 read_next(set, &set->readers[gs_run_merge_winner(merge)]));
		record = gs_run_merge_record(merge);
	}
	set->begun = true;
	return record;
}

const void *
gs_run_set_next(GsRunSet *set)
{
	const uint64 *record = next_record(set);

	return record == NULL || set->layout->keys_only ? (const void *) record :
		gs_run_tuple(set->layout, record);
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
smallest_runs(const GsRunSet *set, int count)
{
	int			best = 0;
	int64		best_bytes = PG_INT64_MAX;
	int64		nbytes = 0;

	for (int i = 0; i < set->nruns; i++)
	{
		nbytes += set->runs[i].run.nbytes;
		if (i >= count)
			nbytes -= set->runs[i - count].run.nbytes;
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
merge_runs(GsRunSet *set, int first, int count)
{
	const uint64 *record;
	GsRunWriter writer;
	uint64		nrows = 0;

	begin_run(set, &writer);
	begin_merge(set, first, count, true);
	while ((record = next_record(set)) != NULL)
	{
		if ((nrows++ & 1023) == 0)
			CHECK_FOR_INTERRUPTS();
		write_row(set, &writer, record, gs_run_row(set->layout, record),
				  set->layout->keys_only ? 0 : gs_run_row_len(set->layout, record));
	}
	end_merge(set);
	set->runs[first] = (SetRun) {
		.run = end_run(&writer),.store = set->store,.layout = set->layout
	};
	memmove(&set->runs[first + 1], &set->runs[first + count],
			sizeof(SetRun) * (set->nruns - first - count));
	set->nruns -= count - 1;
	set->stats.nmerges++;
}

/* Merges runs until there are at most `most`. */
static void
merge_down_to(GsRunSet *set, int most)
{
	while (set->nruns > most)
	{
		int			count = next_merge_runs(set->nruns, most);

		merge_runs(set, smallest_runs(set, count), count);
	}
}

void
gs_run_set_begin_merge(GsRunSet *set, Size memory_limit)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);

	end_last_run(set);
	set->memory_limit = memory_limit;
	merge_down_to(set, most_sources(set));
	begin_merge(set, 0, set->nruns, false);
	MemoryContextSwitchTo(old);
}

/* ------------------------------------------------- runs of several processes */

void
gs_run_set_share(GsRunSet *set, GsSharedRuns *shared)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);

	end_last_run(set);
	merge_down_to(set, Min(most_sources(set), GS_MAX_SHARED_RUNS));
	shared->nrows = set->stats.nrows;
	shared->longest = set->longest;
	shared->extent_bytes = set->store->extent_bytes;
	shared->layout = *set->layout;
	shared->nruns = set->nruns;
	for (int i = 0; i < set->nruns; i++)
		shared->runs[i] = set->runs[i].run;
	MemoryContextSwitchTo(old);
}

void
gs_run_set_adopt(GsRunSet *set, const GsSharedRuns *shared, const GsRunFiles *where)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);
	GsRunStore *store = gs_run_store_open(shared->extent_bytes, where);

	end_last_run(set);
	if (set->layout->ncolumns > 0 && set->key == NULL)
		make_own_key(set);	/* that process may have written no records */
	for (int i = 0; i < shared->nruns; i++)
		add_run(set, &shared->runs[i], store, &shared->layout);
	set->owned_elsewhere = lappend(set->owned_elsewhere, store);
	set->longest = Max(set->longest, shared->longest);
	set->stats.nruns += shared->nruns;
	set->stats.nrows += shared->nrows;
	MemoryContextSwitchTo(old);
}

bool
gs_run_set_has_keys(const GsRunSet *set)
{
	return set->layout->ncolumns > 0;
}

void
gs_run_set_drop_keys(GsRunSet *set, const GsMergeOrder *order)
{
	end_last_run(set);
	set->order = *order;
	set->layout = order->layout;
}

void
gs_run_set_close(GsRunSet *set)
{
	ListCell   *lc;

	if (set->readers != NULL)
		end_merge(set);
	if (set->writing)
		pfree(set->writer.buffer);
	foreach(lc, set->owned_elsewhere)
		gs_run_store_close(lfirst(lc));
	gs_run_store_close(set->store);
	list_free(set->owned_elsewhere);
	pfree(set->runs);
	pfree(set);
}
