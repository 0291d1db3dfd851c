/*-------------------------------------------------------------------------
 *
 * run_block.c
 *	  Rows of a merge by approximate keys, verified a block at a time.
 *
 * The merge goes by the keys, a block of rows ahead.  Before a row of the block is returned, each
 * one is compared with the one before, unless both are of the same run, and the last one with the
 * next row of each run.  That proves the order.  If it is wrong, the rows of the block go back to
 * their runs, and are merged again by comparisons, as are all that follow (README.md has the
 * reasons).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "run/run_set_state.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/* The last row is compared with one row of each run, so there should be more rows than runs. */
#define LEAST_BYTES		((Size) 4 << 10)
#define MOST_BYTES		((Size) 64 << 10)

/* It has so many rows at most; few rows have fewer bytes, with their keys. */
#define most_rows(nbytes)	((int) ((nbytes) / 64))

typedef struct BlockRow
{
	Size		offset;			/* of its record, in the block */
	int			source;			/* the number of its run in the merge */
	int			next;			/* of the same run; -1: none */
} BlockRow;

struct GsRunBlock
{
	MemoryContext context;
	char	   *bytes;
	Size		allocated;
	Size		used;
	int			nrows;
	int			most_rows;
	int			at;				/* the next row that is returned */
	bool		failed;			/* the order by keys was wrong */
	int		   *first;			/* after that: of each run, its next row here; -1: none */
	const uint64 **heads;		/* and the row that was read after these; NULL: none */
	BlockRow	rows[FLEXIBLE_ARRAY_MEMBER];
};

/* The bytes of the rows themselves. */
static Size
bytes_of_rows(Size memory_limit)
{
	return Min(Max(LEAST_BYTES, memory_limit / 64), MOST_BYTES);
}

Size
gs_run_block_bytes(Size memory_limit)
{
	const Size	nbytes = bytes_of_rows(memory_limit);

	return nbytes + offsetof(GsRunBlock, rows) + most_rows(nbytes) * sizeof(BlockRow);
}

GsRunBlock *
gs_run_block_create(Size memory_limit, int nsources)
{
	const Size	nbytes = bytes_of_rows(memory_limit);
	GsRunBlock *block = palloc(offsetof(GsRunBlock, rows) + most_rows(nbytes) * sizeof(BlockRow));

	block->context = CurrentMemoryContext;
	block->allocated = nbytes;
	block->most_rows = most_rows(nbytes);
	block->bytes = palloc(block->allocated);
	block->nrows = block->at = 0;
	block->failed = false;
	block->first = palloc(sizeof(int) * nsources);
	block->heads = palloc(sizeof(uint64 *) * nsources);
	return block;
}

void
gs_run_block_free(GsRunBlock *block)
{
	pfree(block->bytes);
	pfree(block->first);
	pfree(block->heads);
	pfree(block);
}

static const uint64 *
record_of(const GsRunBlock *block, int row)
{
	return (const uint64 *) (block->bytes + block->rows[row].offset);
}

/* Copies a row of the merge.  False: the block is full. */
static bool
add_row(GsRunBlock *block, const GsKeyLayout *layout, const uint64 *record, int source)
{
	const Size	nbytes = gs_run_record_bytes(layout, record);

	if (block->nrows == block->most_rows ||
		(block->nrows > 0 && nbytes > block->allocated - block->used))
		return false;
	if (nbytes > block->allocated)
	{
		pfree(block->bytes);
		block->bytes = MemoryContextAllocHuge(block->context, nbytes + nbytes / 2);
		block->allocated = nbytes + nbytes / 2;
	}
	memcpy(block->bytes + block->used, record, nbytes);
	block->rows[block->nrows++] = (BlockRow) {.offset = block->used,.source = source};
	block->used = Min(block->used + TYPEALIGN(sizeof(uint64), nbytes), block->allocated);
	return true;
}

/* Does a row sort before its predecessor? */
static bool
is_wrong(GsRunSet *set, GsLocatedRow before, GsLocatedRow row)
{
	set->stats.ncomparisons++;
	return gs_row_compare_located(set->order.verify, set->order.compare_arg, before, row) > 0;
}

static GsLocatedRow
locate(const GsMergeOrder *order, const uint64 *record)
{
	return gs_row_locate(order->verify, order->compare_arg, gs_run_row(order->layout, record));
}

/*
 * Fills the block with the next rows.  False: one of them sorts before its predecessor, or a row
 * that is not among them before the last one.
 */
static bool
fill(GsRunBlock *block, GsRunSet *set)
{
	const GsMergeOrder *order = &set->order;
	GsMergeTree *merge = &set->merge;
	GsLocatedRow last = {0};
	int			last_source = -1;
	const uint64 *record;

	CHECK_FOR_INTERRUPTS();
	block->nrows = block->at = 0;
	block->used = 0;
	while ((record = gs_merge_tree_record(merge)) != NULL)
	{
		const int	source = gs_merge_tree_winner(merge);
		GsLocatedRow row;

		if (!add_row(block, order->layout, record, source))
			break;
		row = locate(order, record_of(block, block->nrows - 1));
		gs_merge_tree_replace(merge, gs_run_set_read(set, &set->readers[source]));
		if (last_source >= 0 && source != last_source && is_wrong(set, last, row))
			return false;
		last = row;
		last_source = source;
	}
	for (int i = 0; i < set->nreaders && last_source >= 0; i++)
	{
		if (i != last_source && merge->records[i] != NULL &&
			is_wrong(set, last, locate(order, merge->records[i])))
			return false;
	}
	return true;
}

const uint64 *
gs_run_block_returned(GsRunBlock *block, int source)
{
	const int	row = block->first[source];
	const uint64 *head = block->heads[source];

	if (row >= 0)
	{
		block->first[source] = block->rows[row].next;
		return record_of(block, row);
	}
	block->heads[source] = NULL;
	return head;
}

/* Gives the rows of the block back to their runs. */
static void
give_back(GsRunBlock *block, const GsRunSet *set)
{
	for (int i = 0; i < set->nreaders; i++)
	{
		block->first[i] = -1;
		block->heads[i] = set->merge.records[i];
	}
	for (int row = block->nrows - 1; row >= 0; row--)
	{
		const int	source = block->rows[row].source;

		block->rows[row].next = block->first[source];
		block->first[source] = row;
	}
}

/* Begins the merge again, by comparisons. */
static void
merge_by_comparisons(GsRunBlock *block, GsRunSet *set)
{
	const uint64 **records = palloc(sizeof(uint64 *) * set->nreaders);
	const GsMergeOrder order = {
		.layout = set->layout,.compare = set->order.verify,.compare_arg = set->order.compare_arg
	};

	give_back(block, set);
	for (int i = 0; i < set->nreaders; i++)
		records[i] = gs_run_block_returned(block, i);
	gs_merge_tree_begin(&set->merge, &order, records, set->nreaders, set->merge_memory);
	pfree(records);
	block->failed = true;
	set->stats.nrepaired++;
}

bool
gs_run_block_next(GsRunSet *set, const uint64 **record)
{
	GsRunBlock *block = set->block;

	if (!block->failed && block->at == block->nrows && !fill(block, set))
		merge_by_comparisons(block, set);
	if (block->failed)
		return false;
	*record = block->nrows == 0 ? NULL : record_of(block, block->at++);
	return true;
}
