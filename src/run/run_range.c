/*-------------------------------------------------------------------------
 *
 * run_range.c
 *	  Divides sorted runs into ranges of rows, for several processes.
 *
 * A range begins with a row of some run, its *bound*, and in each run with the first row
 * that does not sort before the bound:
 *
 *	  run 0		| a   c   d   |	g	h	h	k |
 *	  run 1		| b   e | f	  i	  j			  |			bound of range 1: f
 *
 * Bounds are quantiles of samples: the first rows of extents at equal distances, counted
 * through all runs.  So a bound is off by half as many distances as there are runs at most, and
 * usually by much less than 1 % of all rows.  Where a bound would be in a run is found by a
 * binary search of its extents.
 *
 * The runs are counted in the order of their owners, which is the same in all processes.
 *
 * That samples at equal distances divide sorted runs evenly is from H. Shi and J. Schaeffer,
 * "Parallel sorting by regular sampling", 1992.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "run/run_set_state.h"

#include "miscadmin.h"

/* The most samples, which also take at most this part of the memory limit. */
#define MOST_SAMPLES	1024
#define MEMORY_PART		4

/* The bytes of a buffer to read single rows. */
#define READ_BYTES		((Size) 4 << 10)

/* A copy of a record and its row, from a reader. */
static const uint64 *
copy_record(const GsRunSet *set, const uint64 *record)
{
	const Size	nbytes = gs_run_record_bytes(set->layout, record);

	return memcpy(MemoryContextAllocHuge(set->context, nbytes), record, nbytes);
}

/* Begins to read single rows of a run.  The buffer is palloc'd. */
static void
begin_reading(const GsRunSet *set, GsRunReader *reader, const SetRun *run)
{
	gs_run_reader_begin(reader, run->store, set->layout, &run->run, false,
						palloc(READ_BYTES), READ_BYTES);
}

static void
end_reading(GsRunReader *reader)
{
	gs_run_reader_end(reader);
	pfree(reader->buffer);
}

/* ------------------------------------------------------------------ samples */

static int64
extents_of(const SetRun *run)
{
	return gs_run_full_extents(run->store, &run->run);
}

static int64
count_extents(const GsRunSet *set)
{
	int64		count = 0;

	for (int i = 0; i < set->nruns; i++)
		count += extents_of(&set->runs[i]);
	return count;
}

/* The number of extents of all runs that are counted before a run. */
static int64
extents_before(const GsRunSet *set, int run)
{
	const int	owner = set->runs[run].store->where.owner;
	int64		count = 0;

	for (int i = 0; i < set->nruns; i++)
	{
		const int	other = set->runs[i].store->where.owner;

		if (other < owner || (other == owner && i < run))
			count += extents_of(&set->runs[i]);
	}
	return count;
}

/* The rows that bounds are chosen from, in order. */
typedef struct Samples
{
	int			count;
	const uint64 **records;
} Samples;

/*
 * Copies the first rows of extents of a run, the first of them at least `first`, at this distance.
 * The first row of a run is none, because no rows are below it.
 */
static void
sample_run(GsRunSet *set, const SetRun *run, int64 first, int64 distance, Samples *samples)
{
	GsRunReader reader;

	begin_reading(set, &reader, run);
	for (int64 extent = first == 0 ? distance : first; extent < extents_of(run); extent += distance)
	{
		const int64 position = gs_run_row_position(run->store, &run->run, extent);

		CHECK_FOR_INTERRUPTS();
		if (position < 0)
			continue;
		gs_run_reader_move(&reader, &run->run, position);
		samples->records[samples->count++] = copy_record(set, gs_run_set_read(set, &reader));
	}
	end_reading(&reader);
}

static int
compare_samples(const void *a, const void *b, void *arg)
{
	return gs_merge_tree_compare(arg, *(const uint64 *const *) a, *(const uint64 *const *) b);
}

/* Samples all runs, and sorts the samples by `by`. */
static void
sample_runs(GsRunSet *set, const GsMergeOrder *by, Samples *samples)
{
	const int64 nextents = count_extents(set);
	/* not by the bytes of keys, as bounds must be the same in all processes */
	const int64 most = Min(MOST_SAMPLES,
						   set->memory_limit / (MEMORY_PART * 2 * set->longest + 1) + 1);
	const int64 distance = nextents / most + 1;

	samples->count = 0;
	samples->records = palloc(sizeof(uint64 *) * (nextents / distance + set->nruns + 1));
	for (int i = 0; i < set->nruns; i++)
	{
		/* those in the middle of each distance */
		const int64 past = (extents_before(set, i) + distance / 2) % distance;

		sample_run(set, &set->runs[i], (distance - past) % distance, distance, samples);
	}
	qsort_arg(samples->records, samples->count, sizeof(uint64 *), compare_samples,
			  unconstify(GsMergeOrder *, by));
}

static void
free_samples(Samples *samples)
{
	for (int i = 0; i < samples->count; i++)
		pfree(unconstify(uint64 *, samples->records[i]));
	pfree(samples->records);
}

/* The sample with which a range begins.  It is not the first, so that no range is empty. */
static const uint64 *
bound_of(const Samples *samples, int range, int nranges)
{
	return samples->records[(int64) samples->count * range / nranges];
}

/* ------------------------------------------------------------------- bounds */

/* Does the row of a reader's next record sort before the bound?  False at the end. */
static bool
next_comes_before(GsRunSet *set, GsRunReader *reader, const GsMergeOrder *by, const uint64 *bound)
{
	const uint64 *record = gs_run_set_read(set, reader);

	return record != NULL && gs_merge_tree_compare(by, record, bound) < 0;
}

/*
 * The position of a row from which on the bound is searched for: the first row of the last extent
 * whose first row sorts before the bound.
 */
static uint64
search_extents(GsRunSet *set, const SetRun *run, GsRunReader *reader, const GsMergeOrder *by,
			   const uint64 *bound)
{
	/* extents before `low` are too early, `high` and those after it too late */
	int64		low = 0;
	int64		high = gs_run_full_extents(run->store, &run->run);
	uint64		found = 0;

	while (low < high)
	{
		const int64 middle = low + (high - low) / 2;
		int64		extent = middle;
		int64		position;

		CHECK_FOR_INTERRUPTS();
		/* extents in which no row begins are like the one before */
		while ((position = gs_run_row_position(run->store, &run->run, extent)) < 0 && extent > low)
			extent--;
		if (position >= 0)
			gs_run_reader_move(reader, &run->run, position);
		if (position < 0)
			low = middle + 1;
		else if (next_comes_before(set, reader, by, bound))
		{
			found = position;
			low = middle + 1;
		}
		else
			high = extent;
	}
	return found;
}

/* The position of the first row of a run that does not sort before the bound. */
static uint64
find_bound(GsRunSet *set, const SetRun *run, const GsMergeOrder *by, const uint64 *bound)
{
	GsRunReader reader;
	uint64		position;

	begin_reading(set, &reader, run);
	gs_run_reader_move(&reader, &run->run, search_extents(set, run, &reader, by, bound));
	do
	{
		CHECK_FOR_INTERRUPTS();
		position = gs_run_reader_position(&reader, &run->run);
	} while (next_comes_before(set, &reader, by, bound));
	end_reading(&reader);
	return position;
}

/* The row of a record, as a tuple. */
static MinimalTuple
copy_row(const GsRunSet *set, const uint64 *record)
{
	MinimalTuple row = gs_run_tuple(set->layout, record);

	return memcpy(palloc(row->t_len), row, row->t_len);
}

static bool
are_in_order(const GsRunSet *set)
{
	for (int i = 0; i < set->nruns; i++)
		if (!set->runs[i].run.in_order)
			return false;
	return true;
}

uint64 *
gs_run_range_find(GsRunSet *set, int range, int nranges, MinimalTuple *end)
{
	Samples		samples;
	uint64	   *positions = NULL;

	Assert(!set->layout->keys_only);
	if (!are_in_order(set))
		return NULL;
	sample_runs(set, &set->order, &samples);
	if (samples.count >= nranges)
	{
		positions = palloc0(sizeof(uint64) * set->nruns);
		for (int i = 0; i < set->nruns && range > 0; i++)
			positions[i] = find_bound(set, &set->runs[i], &set->order,
										bound_of(&samples, range, nranges));
		*end = range + 1 == nranges ? NULL :
			copy_row(set, bound_of(&samples, range + 1, nranges));
	}
	free_samples(&samples);
	return positions;
}

/*
 * Finds the bounds of ranges of groups, once for all of them: the samples are many single rows of
 * files.  False: there are too few samples.
 */
static bool
find_group_bounds(GsRunSet *set, int nranges, const GsMergeOrder *by)
{
	Samples		samples;

	if (set->bounds != NULL)
		return true;
	sample_runs(set, by, &samples);
	if (samples.count >= nranges)
	{
		set->bounds = palloc(sizeof(uint64 *) * nranges);
		for (int range = 1; range < nranges; range++)
			set->bounds[range] = copy_record(set, bound_of(&samples, range, nranges));
	}
	free_samples(&samples);
	return set->bounds != NULL;
}

/* Where a range of groups begins in each run. */
static void
find_groups(GsRunSet *set, int range, int nranges, const GsMergeOrder *by, uint64 *positions)
{
	for (int i = 0; i < set->nruns; i++)
	{
		const SetRun *run = &set->runs[i];

		positions[i] = range == 0 ? 0 : range == nranges ? run->run.nbytes :
			find_bound(set, run, by, set->bounds[range]);
	}
}

uint64 *
gs_run_range_find_groups(GsRunSet *set, int range, int nranges, const GsMergeOrder *groups)
{
	GsMergeOrder by = *groups;
	uint64	   *positions;

	Assert(!set->layout->keys_only);
	/* not by keys, which may be approximate: bounds must be in order */
	by.layout = set->layout;
	if (!are_in_order(set) || !find_group_bounds(set, nranges, &by))
		return NULL;
	positions = palloc(sizeof(uint64) * set->nruns * 2);
	find_groups(set, range, nranges, &by, positions);
	find_groups(set, range + 1, nranges, &by, positions + set->nruns);
	return positions;
}
