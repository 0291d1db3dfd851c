/*-------------------------------------------------------------------------
 *
 * gin_copy.c
 *	  SQL functions that write GIN indexes by src/gin/gin_pages.c, without a sort.
 *
 *	  gin_copy(source regclass, target regclass, ranges int4) RETURNS float8
 *	  gin_fill(target regclass, keys int4, tids int4, step int4) RETURNS void
 *
 * Both replace what the target has.  gin_copy() writes the contents of another index, which has the
 * same columns.  ranges: into how many the keys are cut, as if so many processes wrote them; some
 * are empty if there are more of them than keys.  Negative: they are in descending order, which is
 * an ERROR.  1: the index is written as a whole.  Returns the seconds that the writer took, without
 * the walk through the source.
 *
 * gin_fill() writes as many int4 keys, each with as many TIDs, one in a block, `step` blocks apart.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "gin/gin_walk.h"
#include "gin/gin_write.h"

#include "access/genam.h"
#include "access/xact.h"
#include "catalog/storage.h"
#include "fmgr.h"
#include "portability/instr_time.h"
#include "storage/sharedfileset.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(gin_copy);
PG_FUNCTION_INFO_V1(gin_fill);

/* TIDs of a call. */
#define CHUNK		1000

typedef struct GinCopy
{
	Relation	target;
	int64		nkeys;			/* of the source */
	int64		nadded;
	GsBuildPart part;			/* of the range that is written */
	int			nwritten;		/* ranges */
	bool		descending;
	GsGinPages *pages;
	instr_time	time;
} GinCopy;

/* Removes the contents.  As a build, this has a transaction ID, so the commit waits for the log. */
static void
empty_index(Relation index)
{
	(void) GetCurrentTransactionId();
	RelationTruncate(index, 0);
}

static void
begin_range(GinCopy *copy)
{
	copy->part.number = copy->descending ? copy->part.ranges->nranges - 1 - copy->nwritten :
		copy->nwritten;
	copy->pages = gs_gin_pages_begin(copy->target, copy->part.ranges ? &copy->part : NULL);
}

static void
end_range(GinCopy *copy)
{
	gs_gin_pages_end(copy->pages);
	copy->nwritten++;
}

/* The number of the first key that is not in the current range. */
static int64
end_of_range(const GinCopy *copy)
{
	return copy->nkeys * (copy->nwritten + 1) / copy->part.ranges->nranges;
}

static void
copy_entries(void *arg, bool first, OffsetNumber attribute, Datum key, GinNullCategory category,
			 ItemPointerData *tids, int ntids)
{
	GinCopy    *copy = arg;
	instr_time	start;
	instr_time	end;

	INSTR_TIME_SET_CURRENT(start);
	if (first)
	{
		while (copy->part.ranges && copy->nadded == end_of_range(copy))
		{
			end_range(copy);
			begin_range(copy);
		}
		gs_gin_pages_add_key(copy->pages, attribute, key, category);
		copy->nadded++;
	}
	gs_gin_pages_add_tids(copy->pages, tids, ntids);
	if (copy->part.ranges)
		(void) gs_build_ranges_add_rows(copy->part.ranges, copy->part.number, ntids);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(copy->time, end, start);
}

static void
open_ranges(GinCopy *copy, int nranges, const GinWalkCounts *counts)
{
	copy->part.ranges = palloc0(gs_build_ranges_bytes(nranges));
	copy->part.files = palloc0(sizeof(SharedFileSet));
	SharedFileSetInit(copy->part.files, NULL);
	gs_build_ranges_init(copy->part.ranges, GIN_ROOT_BLKNO + 1);
	gs_build_ranges_open(copy->part.ranges, copy->target, nranges, counts->nblocks, counts->ntids);
}

static void
write_rest(GinCopy *copy)
{
	int			gap;

	end_range(copy);
	if (copy->part.ranges == NULL)
		return;
	while (copy->nwritten < copy->part.ranges->nranges)
	{
		begin_range(copy);
		end_range(copy);
	}
	gap = gs_gin_pages_write_upper(copy->target, &copy->part);
	if (gap > 0)
		elog(ERROR, "range %d does not follow the one before", gap);
	FileSetDeleteAll(&copy->part.files->fs);
}

Datum
gin_copy(PG_FUNCTION_ARGS)
{
	Relation	source = index_open(PG_GETARG_OID(0), AccessShareLock);
	GinCopy		copy = {.target = index_open(PG_GETARG_OID(1), AccessExclusiveLock)};
	const GinWalkCounts counts = gin_walk(source, NULL, NULL);
	const int	nranges = abs(PG_GETARG_INT32(2));
	instr_time	start;
	instr_time	end;

	copy.nkeys = counts.nkeys;
	copy.descending = PG_GETARG_INT32(2) < 0;
	empty_index(copy.target);
	INSTR_TIME_SET_CURRENT(start);
	if (nranges > 1)
		open_ranges(&copy, nranges, &counts);
	begin_range(&copy);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(copy.time, end, start);
	(void) gin_walk(source, copy_entries, &copy);
	INSTR_TIME_SET_CURRENT(start);
	write_rest(&copy);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(copy.time, end, start);
	index_close(source, AccessShareLock);
	index_close(copy.target, NoLock);
	PG_RETURN_FLOAT8(INSTR_TIME_GET_DOUBLE(copy.time));
}

static void
fill_key(GsGinPages *pages, int key, int64 ntids, int64 step)
{
	ItemPointerData tids[CHUNK];
	int			n = 0;

	gs_gin_pages_add_key(pages, FirstOffsetNumber, Int32GetDatum(key), GIN_CAT_NORM_KEY);
	for (int64 i = 0; i < ntids; i++)
	{
		ItemPointerSet(&tids[n], i * step, FirstOffsetNumber);
		if (++n == CHUNK || i == ntids - 1)
		{
			gs_gin_pages_add_tids(pages, tids, n);
			n = 0;
		}
	}
}

Datum
gin_fill(PG_FUNCTION_ARGS)
{
	Relation	target = index_open(PG_GETARG_OID(0), AccessExclusiveLock);
	GsGinPages *pages;

	empty_index(target);
	pages = gs_gin_pages_begin(target, NULL);
	for (int key = 0; key < PG_GETARG_INT32(1); key++)
		fill_key(pages, key, PG_GETARG_INT32(2), PG_GETARG_INT32(3));
	gs_gin_pages_end(pages);
	index_close(target, NoLock);
	PG_RETURN_VOID();
}
