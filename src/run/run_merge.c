/*-------------------------------------------------------------------------
 *
 * run_merge.c
 *	  A merge of some of the runs of a set: their buffers, and its next row.
 *
 * engine/merge_tree.c finds the run whose row is next.  run_set.c decides which runs to merge.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "run/run_set_state.h"

#include "utils/memutils.h"

/* The bytes of a buffer, depending on memory. */
#define LEAST_READ_BYTES	((Size) 4 << 10)
#define ENOUGH_READ_BYTES	((Size) 64 << 10)	/* beyond this, prefer to merge more runs */
#define ENOUGH_SHARED_BYTES	((Size) 16 << 10)	/* of runs of several processes */
#define MOST_READ_BYTES		((Size) 256 << 10)

/* Runs that are merged at once; more would not fit the processor's cache. */
#define LEAST_SOURCES	6
#define MOST_SOURCES	512

static Size
clamp(Size least, Size wanted, Size most)
{
	return Min(Max(wanted, least), most);
}

/* The bytes that a merge takes to verify approximate keys. */
static Size
block_bytes(const GsRunSet *set)
{
	return set->order.verify != NULL ? gs_run_block_bytes(set->memory_limit) : 0;
}

int
gs_run_merge_most(const GsRunSet *set, bool shared)
{
	Size		read_at_once = clamp(LEAST_READ_BYTES, set->memory_limit / 16,
									 shared ? ENOUGH_SHARED_BYTES : ENOUGH_READ_BYTES);
	Size		each = read_at_once + gs_run_set_longest(set) +
		gs_merge_tree_bytes(1) + sizeof(GsRunReader);
	Size		besides = set->store->extent_bytes + sizeof(GsRunSet) + block_bytes(set);

	return set->memory_limit <= besides ? LEAST_SOURCES :
		clamp(LEAST_SOURCES, (set->memory_limit - besides) / each, MOST_SOURCES);
}

int
gs_run_merge_limit(const GsRunSet *set)
{
	const Size	each = LEAST_READ_BYTES + set->longest + gs_merge_tree_bytes(1) +
		sizeof(GsRunReader);

	return clamp(LEAST_SOURCES, set->memory_limit / each, MOST_SOURCES);
}

/* The bytes of the buffer of each run. */
static Size
read_bytes(const GsRunSet *set, int nsources)
{
	Size		besides = set->store->extent_bytes + block_bytes(set);
	Size		left = set->memory_limit - Min(set->memory_limit, besides);

	return TYPEALIGN_DOWN(LEAST_READ_BYTES,
						  clamp(LEAST_READ_BYTES, left / nsources, MOST_READ_BYTES));
}

void
gs_run_merge_begin(GsRunSet *set, int first, int nruns, bool consume, const uint64 *positions,
				   const uint64 *ends)
{
	Size		nbytes = read_bytes(set, nruns);
	const uint64 **records = palloc(sizeof(uint64 *) * nruns);

	set->nreaders = nruns;
	set->first_read = first;
	set->readers = palloc(sizeof(GsRunReader) * nruns);
	set->buffers = MemoryContextAllocHuge(set->context, nbytes * nruns);
	set->merge_memory = palloc(gs_merge_tree_bytes(nruns));
	for (int i = 0; i < nruns; i++)
	{
		const SetRun *run = &set->runs[first + i];
		GsRun		part = run->run;

		if (ends != NULL)
			part.nbytes = ends[i];
		gs_run_reader_begin(&set->readers[i], run->store, set->layout, &part, consume,
							set->buffers + i * nbytes, nbytes);
		if (positions != NULL)
			gs_run_reader_move(&set->readers[i], &part, positions[i]);
		records[i] = gs_run_set_read(set, &set->readers[i]);
	}
	gs_merge_tree_begin(&set->merge, &set->order, records, nruns, set->merge_memory);
	set->block = set->order.verify != NULL ? gs_run_block_create(set->memory_limit, nruns) : NULL;
	set->begun = false;
	pfree(records);
}

void
gs_run_merge_end(GsRunSet *set)
{
	for (int i = 0; i < set->nreaders; i++)
		gs_run_reader_end(&set->readers[i]);
	pfree(set->readers);
	pfree(set->buffers);
	pfree(set->merge_memory);
	if (set->block != NULL)
		gs_run_block_free(set->block);
	set->readers = NULL;
}

/* The next record of a source of the merge. */
static const uint64 *
read_source(GsRunSet *set, uint32 source)
{
	const uint64 *returned = set->block == NULL ? NULL : gs_run_block_returned(set->block, source);

	return returned != NULL ? returned : gs_run_set_read(set, &set->readers[source]);
}

const uint64 *
gs_run_merge_next(GsRunSet *set)
{
	GsMergeTree *merge = &set->merge;
	const uint64 *record;

	if (set->block != NULL && gs_run_block_next(set, &record))
		return record;
	record = gs_merge_tree_record(merge);
	/* the previous row had to stay in place until now */
	if (set->begun && record != NULL)
	{
		gs_merge_tree_replace(merge, read_source(set, gs_merge_tree_winner(merge)));
		record = gs_merge_tree_record(merge);
	}
	set->begun = true;
	return record;
}

const void *
gs_run_set_next(GsRunSet *set)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);	/* in which comparators run, too */
	const uint64 *record = gs_run_merge_next(set);

	MemoryContextSwitchTo(old);
	return record == NULL || set->layout->keys_only ? (const void *) record :
		gs_run_tuple(set->layout, record);
}
