/*-------------------------------------------------------------------------
 *
 * run_set_state.h
 *	  The state of a set of runs, and what the files that merge and divide them call.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUN_SET_STATE_H
#define GPUSORT_RUN_SET_STATE_H

#include "nodes/pg_list.h"

#include "engine/merge_tree.h"
#include "run/run_set.h"

/* Rows that are fetched from an engine at a time. */
#define GS_ENGINE_WINDOW	64

/* Rows of a merge by approximate keys, of which the order is verified: run_block.c. */
typedef struct GsRunBlock GsRunBlock;

/* Rows that an engine has sorted, read as a run. */
typedef struct EngineReader
{
	GsEngine   *engine;			/* NULL: there are none */
	uint64		position;		/* of the rows after the window */
	int			at;				/* the next row in the window */
	int			nrows;			/* in the window */
	const void *rows[GS_ENGINE_WINDOW];
	const uint64_t *records[GS_ENGINE_WINDOW];	/* unless it has no keys */
	char	   *entry;			/* the current record and its row */
	Size		entry_bytes;	/* allocated */
} EngineReader;

/* Rows that another process sends. */
typedef struct RunStream
{
	GsStreamReader reader;
	Size		words_bytes;	/* of the records before them */
} RunStream;

/* A run, and how to read it. */
typedef struct SetRun
{
	GsRun		run;
	GsRunStore *store;			/* NULL: its rows are in an engine, or come as a stream */
	RunStream  *stream;			/* NULL: they do not */
} SetRun;

struct GsRunSet
{
	GsMergeOrder order;
	const GsKeyLayout *layout;	/* the order's */
	bool		order_chosen;	/* keys are kept, or were dropped */
	MemoryContext context;
	Size		memory_limit;

	/* makes the records of rows that are read */
	GsKeyEncoder *key;			/* NULL if there are none */
	bool		direct_key;		/* GsKeyFacts.direct of it */

	GsRunSetStats stats;
	GsRunStore *store;
	GsRunGroups groups;			/* of which the first rows are needed */
	uint64		nchecked;		/* rows that may have been dropped */

	GsRunWriter writer;			/* of the last run, which can be appended to */
	bool		writing;
	uint64	   *last;			/* a copy of the record of its last row, followed by the row, if an
								 * engine of this process has written it; else NULL */

	/* the other runs, in input order */
	SetRun	   *runs;
	int			nruns;
	int			runs_allocated;
	Size		longest;		/* bytes of the longest row */
	List	   *owned_elsewhere;	/* stores of adopted runs */
	EngineReader in_engine;
	int			nunbuffered;	/* the last ones: of the engine, and streams */
	const uint64 **bounds;		/* the records of the first rows of ranges of groups, from the
								 * second one on; NULL: not found yet */

	/* a merge */
	GsMergeTree	merge;
	void	   *merge_memory;
	GsRunBlock *block;			/* of rows that are verified; NULL: none are */
	GsRunReader *readers;		/* NULL if there is none */
	int			nreaders;
	int			first_read;		/* the number of the first run that is merged */
	char	   *buffers;		/* of the readers */
	bool		begun;			/* the winner was returned */
};

/* Bytes of a row and the keys after it, given the length of the row. */
static inline Size
gs_run_row_bytes(const GsKeyLayout *layout, const uint64 *record, Size row_len)
{
	Size		nbytes = row_len;

	for (int i = 0; i < layout->ncolumns; i++)
	{
		const GsKeyColumn *column = &layout->columns[i];

		if (column->variable)
		{
			uint64		tail = record[column->tail_word];

			nbytes = Max(nbytes, (Size) gs_tail_offset(tail) + gs_tail_len(tail));
		}
	}
	return nbytes;
}

/* Bytes of a record, the row after it, and the keys after that. */
static inline Size
gs_run_record_bytes(const GsKeyLayout *layout, const uint64 *record)
{
	const Size	words_bytes = sizeof(uint64) * layout->nwords;

	return layout->keys_only ? words_bytes :
		words_bytes + gs_run_row_bytes(layout, record, gs_run_row_len(layout, record));
}

/* Are rows merged by records? */
static inline bool
gs_run_has_records(const GsRunSet *set)
{
	return set->layout->ncolumns > 0 && !set->layout->keys_only;
}

/* The most bytes of a key, without its record. */
extern Size gs_run_longest_key(const GsKeyLayout *layout);

/* The most bytes of a row, its record and its keys. */
extern Size gs_run_set_longest(const GsRunSet *set);

/*
 * The next record of a run, followed by its row, or NULL at the end.  If keys are not used,
 * there is only the row.
 */
extern const uint64 *gs_run_set_read(GsRunSet *set, GsRunReader *reader);

/* The next row of the engine. */
typedef struct GsEngineRow
{
	const uint64 *record;		/* NULL: there are no keys */
	const char *row;			/* NULL: keys_only */
	Size		nbytes;			/* with its keys */
} GsEngineRow;

/* The next row of the engine that is one of the runs.  False: there is none. */
extern bool gs_run_engine_next(GsRunSet *set, GsEngineRow *next);

/* Copies its record, followed by the row, as a reader of a run has it. */
extern void gs_run_engine_copy(const GsRunSet *set, const GsEngineRow *from, char *to);

/* A copy of the record of a row that an engine has sorted, followed by the row. */
extern uint64 *gs_run_copy_of_engine(const GsRunSet *set, GsEngine *engine, uint64 position);

/* ---------------------------------------------------------- run_merge.c */

/*
 * How many runs can be merged at once.  The next row of each is in memory, however long it is.  If
 * rows are so long that only few fit, exceeding the limit is better than moving all rows many
 * times.  shared: the runs are those of several processes, whose extents a merge to a run does not
 * free, so small buffers are better than such a merge.
 */
extern int	gs_run_merge_most(const GsRunSet *set, bool shared);

/*
 * How many can be with the smallest buffers, if that is better than to merge some first.  It is the
 * same in all processes that have adopted the same runs, whatever their keys.
 */
extern int	gs_run_merge_limit(const GsRunSet *set);

/*
 * Begins to merge some of the runs.  consume: frees their extents; positions, ends: begins and ends
 * there in each run; NULL: with the first and the last row.  gs_run_merge_end() frees what this
 * allocates.
 */
extern void gs_run_merge_begin(GsRunSet *set, int first, int nruns, bool consume,
							   const uint64 *positions, const uint64 *ends);
extern void gs_run_merge_end(GsRunSet *set);

/*
 * The record of the next row of the merge, followed by the row, or NULL at the end; by keys that
 * are only approximate, as long as they prove right.
 */
extern const uint64 *gs_run_merge_next(GsRunSet *set);

/* ---------------------------------------------------------- run_block.c */

/* The bytes of a block, within this limit of the sort's memory. */
extern Size gs_run_block_bytes(Size memory_limit);

/* For a merge of nsources runs that has begun.  In the current memory context. */
extern GsRunBlock *gs_run_block_create(Size memory_limit, int nsources);
extern void gs_run_block_free(GsRunBlock *block);

/*
 * Sets *record to that of the next row, followed by the row; NULL: there is none.  False: the order
 * by keys was wrong.  Then the set's merge has begun again, with the next row, and is to be
 * continued.
 */
extern bool gs_run_block_next(GsRunSet *set, const uint64 **record);

/* After that: the next of the rows that went back to a run; NULL: it has to be read. */
extern const uint64 *gs_run_block_returned(GsRunBlock *block, int source);

/*
 * Returns, in palloc'd memory, where a range begins in each run; and in *end what
 * gs_run_set_begin_range() does.  NULL: the runs cannot be divided.  All runs are complete.
 */
extern uint64 *gs_run_range_find(GsRunSet *set, int range, int nranges, MinimalTuple *end);

/*
 * Returns, in palloc'd memory, where a range of groups begins in each run, and, after these, where
 * it ends.  groups, whose layout is not used, compares the columns that are equal in a group.
 * Ranges may be empty.  NULL as above.
 */
extern uint64 *gs_run_range_find_groups(GsRunSet *set, int range, int nranges,
										const GsMergeOrder *groups);

#endif							/* GPUSORT_RUN_SET_STATE_H */
