/*-------------------------------------------------------------------------
 *
 * run_set.c
 *	  The runs of a sort that exceeds memory: how they are written, and which are merged first.
 *
 * When memory is full, its rows are sorted and written as a run.  The runs are merged
 * while rows are returned, with a buffer for each:
 *
 *	  engine		| run 0 | run 1 | run 2 | run 3 | run 4 | run 5 |
 *	  a merge		| run 0 | run 1 |	  run 2		| run 4 | run 5 |
 *	  the last one	|		 rows as they are returned			   |
 *
 * Memory limits the number of buffers.  If there are more runs, some are merged to one first.
 * These are adjacent, so that rows with equal keys stay in input order, and have the fewest bytes
 * in total.  There are just so many of them that each later merge has as many runs as there are
 * buffers (Knuth, TAOCP vol. 3, 5.4.9).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "run/run_set_state.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* The bytes of an extent, depending on memory. */
#define LEAST_WRITE_BYTES	((Size) 8 << 10)
#define MOST_WRITE_BYTES	((Size) 256 << 10)

/*
 * The longest approximate keys by which runs are merged.  ORDER BY a text in en_US.UTF-8 and an
 * integer.  Texts of 65 bytes: by comparisons 660 ms, by keys 540 ms.  Of 98 bytes: 560 and 560 ms.
 * Of 329 bytes: 840 and 1,015 ms (4 MB; AMD EPYC, PostgreSQL 15.20, 2026-11-24).
 */
#define MOST_APPROXIMATE_BYTES	((Size) 100)

GsRunSet *
gs_run_set_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc,
				  const GsKeyEncoder *key, const GsMergeOrder *order, Size memory_limit,
				  const GsRunPlace *where)
{
	GsRunSet   *set = palloc0(sizeof(GsRunSet));

	set->order = *order;
	set->layout = order->layout;
	set->context = CurrentMemoryContext;
	set->memory_limit = memory_limit;
	set->store = gs_run_store_open(gs_run_set_writer_bytes(memory_limit), where, false);
	set->runs_allocated = 16;
	set->runs = palloc(sizeof(SetRun) * set->runs_allocated);
	/* the caller's encoder has counted the rows already, and may be in use for another row */
	if (gs_run_has_records(set))
	{
		set->key = gs_key_encoder_create_same(columns, ncolumns, desc, key);
		set->direct_key = gs_key_encoder_facts(set->key)->direct;
	}
	return set;
}

void
gs_run_set_compare_ties(GsRunSet *set, const GsRowCompare *compare, void *compare_arg)
{
	if (!set->order.keys_decide)
		return;					/* all rows are compared */
	set->order.compare = set->order.verify != NULL ? set->order.verify : compare;
	set->order.compare_arg = compare_arg;
}

const GsRunSetStats *
gs_run_set_stats(GsRunSet *set)
{
	set->stats.disk_bytes = gs_run_store_disk_bytes(set->store);
	return &set->stats;
}

/* The bytes of an extent: a power of two. */
Size
gs_run_set_writer_bytes(Size memory_limit)
{
	Size		nbytes = LEAST_WRITE_BYTES;

	while (nbytes < MOST_WRITE_BYTES && nbytes < memory_limit / 64)
		nbytes *= 2;
	return nbytes;
}

/* -------------------------------------------------------------------- runs */

static void
begin_run(GsRunSet *set, GsRunWriter *writer)
{
	gs_run_writer_begin(writer, set->store,
						MemoryContextAlloc(set->context, set->store->extent_bytes));
}

static GsRun
end_run(GsRunWriter *writer)
{
	GsRun		run = gs_run_writer_end(writer);

	pfree(writer->buffer);
	return run;
}

static void
add_run(GsRunSet *set, const SetRun *run)
{
	if (set->nruns == set->runs_allocated)
	{
		set->runs_allocated *= 2;
		set->runs = repalloc_huge(set->runs, sizeof(SetRun) * set->runs_allocated);
	}
	set->runs[set->nruns++] = *run;
	if (run->store == NULL)
		set->nunbuffered++;
}

static void
forget_last_row(GsRunSet *set)
{
	if (set->last != NULL)
		pfree(set->last);
	set->last = NULL;
}

/* Completes the last run. */
static void
end_last_run(GsRunSet *set)
{
	if (!set->writing)
		return;
	forget_last_row(set);
	add_run(set, &(SetRun) {.run = end_run(&set->writer),.store = set->store});
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

/* Appends a row of an engine, or its key word, to the last run. */
static inline void
write_row(GsRunSet *set, const void *row)
{
	if (set->layout->keys_only)
		gs_run_write_key(&set->writer, *(const uint64 *) row);
	else
		gs_run_write_row(&set->writer, row, ((const MinimalTupleData *) row)->t_len);
}

void
gs_run_set_limit_groups(GsRunSet *set, const GsRunGroups *groups)
{
	set->groups = *groups;
}

/* Is a row among the first of its group?  *first is the first row of the group before. */
static bool
is_needed(const GsRunGroups *groups, const void *row, const void **first, uint64 *nrows)
{
	if (*first == NULL || !groups->is_one_group(groups->arg, *first, row))
	{
		*first = row;
		*nrows = 0;
	}
	return (*nrows)++ < (uint64) groups->limit;
}

/*
 * If so far fewer rows are not needed than one in so many, all are written from then on.
 * DISTINCT ON of 3 M rows of 167 bytes takes as long with all of them, or without three tenths;
 * without nearly all 0.3 s, and 0.7 s with them (2 cores of a Xeon, PostgreSQL 18.6, 2026-11-29).
 */
#define LEAST_DROPPED	4
#define CHECKED_ROWS	4096

/* Leaves out rows that are not needed, as long as these are many.  Returns how many are left. */
static size_t
drop_rows(GsRunSet *set, const void **rows, size_t nrows, const void **first, uint64 *nfirst)
{
	size_t		nkept = 0;

	for (size_t i = 0; i < nrows; i++)
	{
		if (is_needed(&set->groups, rows[i], first, nfirst))
			rows[nkept++] = rows[i];
	}
	set->stats.ndropped += nrows - nkept;
	set->nchecked += nrows;
	if (set->nchecked >= CHECKED_ROWS && set->stats.ndropped < set->nchecked / LEAST_DROPPED)
		set->groups.limit = 0;
	return nkept;
}

/* Writes the rows of an engine that are needed to the last run, and counts them. */
static GsStatus
write_rows(GsRunSet *set, GsEngine *engine)
{
	const void *rows[GS_ENGINE_WINDOW];
	const void *first = NULL;
	uint64		nfirst = 0;
	uint64		position = 0;
	size_t		fetched;
	GsStatus	status;

	for (;;)
	{
		status = gs_engine_fetch(engine, position, GS_ENGINE_WINDOW, rows, &fetched);
		if (status != GS_STATUS_OK || fetched == 0)
			break;
		CHECK_FOR_INTERRUPTS();
		position += fetched;
		/* the first row of a group, too, must be valid: a device's is not */
		if (set->groups.limit > 0 && !engine->on_device)
			fetched = drop_rows(set, rows, fetched, &first, &nfirst);
		for (size_t i = 0; i < fetched; i++)
			write_row(set, rows[i]);
		set->stats.nrows += fetched;
	}
	return status;
}

/* Does no row that an engine has sorted sort before the last row of the last run? */
static bool
follows_last_row(GsRunSet *set, GsEngine *engine)
{
	MemoryContext old;
	uint64	   *first;
	bool		follows;

	if (set->last == NULL || engine->on_device)
		return false;
	old = MemoryContextSwitchTo(set->context);	/* in which comparators run, too */
	first = gs_run_copy_of_engine(set, engine, 0);
	follows = gs_merge_tree_compare(&set->order, first, set->last) >= 0;
	pfree(first);
	MemoryContextSwitchTo(old);
	return follows;
}

GsStatus
gs_run_set_write_run(GsRunSet *set, GsEngine *engine, bool in_order)
{
	GsStatus	status;

	if (!(in_order && set->writing) && !follows_last_row(set, engine))
		gs_run_set_begin_run(set, engine);
	status = write_rows(set, engine);
	forget_last_row(set);
	if (status == GS_STATUS_OK && !in_order && !engine->on_device)
		set->last = gs_run_copy_of_engine(set, engine, engine->stats.nrows - 1);
	return status;
}

void
gs_run_set_begin_run(GsRunSet *set, const GsEngine *engine)
{
	begin_next_run(set);
	if (engine->on_device)
	{
		if (set->stats.device_runs++ == 0)
			set->stats.device = MemoryContextStrdup(set->context, engine->stats.device);
		set->stats.devices |= engine->stats.devices;
	}
}

void
gs_run_set_write_tuple(GsRunSet *set, MinimalTuple row)
{
	if (!set->writing)
		begin_next_run(set);
	forget_last_row(set);
	write_row(set, row);
	set->stats.nrows++;
}

/* ------------------------------------------------------------------- merges */

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

/* The runs that are read through a buffer, which come before the others. */
static int
buffered_runs(const GsRunSet *set)
{
	return set->nruns - set->nunbuffered;
}

/* The first of `count` adjacent runs, of these, with the fewest bytes in total. */
static int
smallest_runs(const GsRunSet *set, int count)
{
	int			best = 0;
	int64		best_bytes = PG_INT64_MAX;
	int64		nbytes = 0;

	for (int i = 0; i < buffered_runs(set); i++)
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
	gs_run_merge_begin(set, first, count, true, NULL, NULL);
	while ((record = gs_run_merge_next(set)) != NULL)
	{
		if ((nrows++ & 1023) == 0)
			CHECK_FOR_INTERRUPTS();
		if (set->layout->keys_only)
			gs_run_write_key(&writer, *record);
		else
			gs_run_write_row(&writer, gs_run_row(set->layout, record),
							 gs_run_row_len(set->layout, record));
	}
	gs_run_merge_end(set);
	set->runs[first] = (SetRun) {.run = end_run(&writer),.store = set->store};
	memmove(&set->runs[first + 1], &set->runs[first + count],
			sizeof(SetRun) * (set->nruns - first - count));
	set->nruns -= count - 1;
	set->stats.nmerges++;
}

/* Merges runs that need a buffer until there are at most `most` of them. */
static void
merge_down_to(GsRunSet *set, int most)
{
	while (buffered_runs(set) > most)
	{
		int			count = next_merge_runs(buffered_runs(set), most);

		merge_runs(set, smallest_runs(set, count), count);
	}
}

/* Merges by comparisons, if approximate keys are too long.  Once, as other processes rely on it. */
static void
choose_order(GsRunSet *set)
{
	static const GsKeyLayout no_keys = {0};
	const GsMergeOrder *order = &set->order;
	const GsMergeOrder compared = {
		.layout = &no_keys,.compare = order->instead,.compare_arg = order->compare_arg
	};

	if (!set->order_chosen && order->instead != NULL &&
		gs_run_longest_key(order->layout) > MOST_APPROXIMATE_BYTES)
		gs_run_set_drop_keys(set, &compared);
	set->order_chosen = true;
}

void
gs_run_set_complete(GsRunSet *set, Size memory_limit)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);

	end_last_run(set);
	choose_order(set);
	set->memory_limit = memory_limit;
	merge_down_to(set, gs_run_merge_most(set, set->owned_elsewhere != NIL));
	MemoryContextSwitchTo(old);
}

void
gs_run_set_begin_merge(GsRunSet *set, Size memory_limit)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);

	gs_run_set_complete(set, memory_limit);
	gs_run_merge_begin(set, 0, set->nruns, false, NULL, NULL);
	MemoryContextSwitchTo(old);
}

bool
gs_run_set_begin_range(GsRunSet *set, Size memory_limit, int range, int nranges, MinimalTuple *end)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);
	uint64	   *positions;

	end_last_run(set);
	choose_order(set);
	set->memory_limit = memory_limit;
	positions = set->nruns > gs_run_merge_most(set, false) ? NULL :
		gs_run_range_find(set, range, nranges, end);
	if (positions != NULL)
	{
		gs_run_merge_begin(set, 0, set->nruns, false, positions, NULL);
		pfree(positions);
	}
	MemoryContextSwitchTo(old);
	return positions != NULL;
}

bool
gs_run_set_begin_groups(GsRunSet *set, Size memory_limit, int range, int nranges,
						const GsMergeOrder *groups)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);
	uint64	   *positions;

	end_last_run(set);
	choose_order(set);
	set->memory_limit = memory_limit;
	if (set->readers != NULL)
		gs_run_merge_end(set);
	positions = set->nruns > gs_run_merge_limit(set) ? NULL :
		gs_run_range_find_groups(set, range, nranges, groups);
	if (positions != NULL)
	{
		gs_run_merge_begin(set, 0, set->nruns, false, positions, positions + set->nruns);
		pfree(positions);
	}
	MemoryContextSwitchTo(old);
	return positions != NULL;
}

/* ------------------------------------------------- runs of several processes */

void
gs_run_set_describe(const GsRunSet *set, GsSharedRows *rows)
{
	rows->nrows = set->stats.nrows;
	rows->longest = set->longest;
	rows->layout = *set->layout;
}

void
gs_run_set_share(GsRunSet *set, GsSharedRuns *shared, int nsets)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);
	const int	most = Min(gs_run_merge_limit(set) / nsets, GS_MAX_SHARED_RUNS);

	end_last_run(set);
	choose_order(set);
	/* ranges of merged runs cannot be found */
	merge_down_to(set, Max(most, 2));
	gs_run_set_describe(set, &shared->rows);
	shared->extent_bytes = set->store->extent_bytes;
	shared->nruns = set->nruns;
	for (int i = 0; i < set->nruns; i++)
		shared->runs[i] = set->runs[i].run;
	MemoryContextSwitchTo(old);
}

void
gs_run_set_adopt(GsRunSet *set, const GsSharedRuns *shared, const GsRunPlace *where)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);
	GsRunStore *store = gs_run_store_open(shared->extent_bytes, where, true);

	end_last_run(set);
	for (int i = 0; i < shared->nruns; i++)
		add_run(set, &(SetRun) {.run = shared->runs[i],.store = store});
	set->owned_elsewhere = lappend(set->owned_elsewhere, store);
	set->longest = Max(set->longest, shared->rows.longest);
	set->stats.nruns += shared->nruns;
	set->stats.nrows += shared->rows.nrows;
	MemoryContextSwitchTo(old);
}

void
gs_run_set_adopt_stream(GsRunSet *set, const GsSharedRows *rows, GsRunStream *stream,
						dsa_area *memory)
{
	end_last_run(set);
	set->stats.nrows += rows->nrows;
	if (stream != NULL)
	{
		RunStream  *from = MemoryContextAlloc(set->context, sizeof(RunStream));

		*from = (RunStream) {
			.reader = {.stream = stream,.memory = memory},
			.words_bytes = sizeof(uint64) * rows->layout.nwords
		};
		add_run(set, &(SetRun) {.stream = from});
	}
}

/* Sends rows that are all in the engine, directly from there. */
static void
send_engine(GsRunSet *set, GsStreamWriter *writer)
{
	const Size	words_bytes = sizeof(uint64) * set->layout->nwords;
	GsEngineRow	next;
	char	   *entry;

	while (gs_run_engine_next(set, &next) &&
		   (entry = gs_run_stream_reserve(writer, words_bytes + next.nbytes)) != NULL)
		gs_run_engine_copy(set, &next, entry);
}

static void
send_merged(GsRunSet *set, GsStreamWriter *writer)
{
	const uint64 *record;

	while ((record = gs_run_merge_next(set)) != NULL)
	{
		const Size	nbytes = gs_run_record_bytes(set->layout, record);
		char	   *entry = gs_run_stream_reserve(writer, nbytes);

		if (entry == NULL)
			break;
		memcpy(entry, record, nbytes);
	}
}

void
gs_run_set_send(GsRunSet *set, GsRunStream *stream, dsa_area *memory)
{
	GsStreamWriter writer = {.stream = stream,.memory = memory};

	if (set->readers == NULL)
		send_engine(set, &writer);
	else
		send_merged(set, &writer);
	gs_run_stream_end_write(&writer);
}

void
gs_run_set_add_engine(GsRunSet *set, GsEngine *engine)
{
	end_last_run(set);
	set->in_engine = (EngineReader) {.engine = engine};
	add_run(set, &(SetRun) {0});
	set->stats.nruns++;
	set->stats.nrows += engine->stats.nrows;
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
		gs_run_merge_end(set);
	if (set->writing)
		pfree(set->writer.buffer);
	foreach(lc, set->owned_elsewhere)
		gs_run_store_close(lfirst(lc));
	gs_run_store_close(set->store);
	list_free(set->owned_elsewhere);
	pfree(set->runs);
	pfree(set);
}
