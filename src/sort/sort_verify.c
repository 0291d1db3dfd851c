/*-------------------------------------------------------------------------
 *
 * sort_verify.c
 *	  Is the order right?  Two checks by PostgreSQL's own comparators.
 *
 * A proof, for sorts whose keys are only a hint (texts under collations of
 * libc: key_collation.c): n - 1 comparisons where sorting by them would take
 * n log n, each of rows that come one after the other.  If it fails nothing has
 * left, and a tuplesort takes the rows.  Where the keys are a type's abbreviated keys, these are
 * compared, and the rows of those that are not decided: no value is looked at, let alone fetched.
 *
 * And a check that a user or a test asks for (gpusort.verify), of any sort: row
 * by row as they leave.  It holds the hand-out to the promise, the way out of
 * an engine included; what it finds is a bug, and an ERROR.  It looks at steps
 * forward only, those after a step back or a jump from there on.
 *
 * Rows of an engine may be gone once it is asked for more: what is needed of
 * them later is copied.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort/sort_compare.h"
#include "sort/sort_verify.h"

#include "executor/tuptable.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* A row that is ours. */
typedef struct RowCopy
{
	MemoryContext context;
	MinimalTuple row;			/* NULL: none yet */
	Size		size;			/* of the memory */
} RowCopy;

static void
copy_row(RowCopy *copy, MinimalTuple row)
{
	if (row->t_len > copy->size)
	{
		if (copy->row != NULL)
			pfree(copy->row);
		copy->row = NULL;
		copy->size = 0;
		copy->row = MemoryContextAllocHuge(copy->context, (Size) row->t_len * 2);
		copy->size = (Size) row->t_len * 2;
	}
	memcpy(copy->row, row, row->t_len);
}

/* ------------------------------------------------- before the first row leaves */

/* Rows fetched at a time: as in the hand-out, which engines are made for. */
#define WINDOW	8

/* Compares the rows of a window, before which `last` came unless it is the first. */
static bool
verify_window(GsSortCompare *compare, const void **rows, size_t nrows, RowCopy *last,
			 GsSortVerification *verification)
{
	size_t		i = 0;

	if (last->row == NULL)
		gs_sort_compare_begin(compare, (MinimalTuple) unconstify(void *, rows[i++]));
	for (; i < nrows; i++)
	{
		verification->ncomparisons++;
		if (gs_sort_compare_next(compare, (MinimalTuple) unconstify(void *, rows[i])) > 0)
			return false;
	}
	for (i = 0; i < nrows; i++)
		verification->checksum = gs_sort_checksum(verification->checksum,
										   (MinimalTuple) unconstify(void *, rows[i]));
	copy_row(last, (MinimalTuple) unconstify(void *, rows[nrows - 1]));
	gs_sort_compare_begin(compare, last->row);
	return true;
}

/* Compares all rows. */
static GsStatus
prove_by_rows(GsEngine *engine, GsSortCompare *compare, GsSortVerification *verification)
{
	RowCopy		last = {.context = CurrentMemoryContext};
	const void *rows[WINDOW];
	uint64		position = 0;
	size_t		nrows;
	GsStatus	status;

	while ((status = gs_engine_fetch(engine, position, WINDOW, rows, &nrows)) == GS_STATUS_OK &&
		   nrows > 0 && verification->succeeded)
	{
		CHECK_FOR_INTERRUPTS();
		verification->succeeded = verify_window(compare, rows, nrows, &last, verification);
		position += nrows;
	}
	if (last.row != NULL)
		pfree(last.row);
	verification->compared = verification->succeeded && status == GS_STATUS_OK;
	return status;
}

/* Compares records, and rows where these do not decide.  The last of a window is in the next. */
static GsStatus
prove_by_records(GsEngine *engine, const GsKeyEncoder *key, GsSortCompare *compare,
				 GsSortVerification *verification)
{
	const void *rows[WINDOW];
	const uint64 *records[WINDOW];
	uint64		position = 0;
	size_t		nrows;
	GsStatus	status;

	while ((status = gs_engine_fetch_records(engine, position, WINDOW, rows, records,
											 &nrows)) == GS_STATUS_OK &&
		   nrows > 1 && verification->succeeded)
	{
		CHECK_FOR_INTERRUPTS();
		for (size_t i = 1; i < nrows && verification->succeeded; i++)
		{
			if (gs_key_encoder_confirms(key, records[i - 1], records[i]))
				continue;
			verification->ncomparisons++;
			verification->succeeded = gs_sort_compare_rows(compare,
												(MinimalTuple) unconstify(void *, rows[i - 1]),
												(MinimalTuple) unconstify(void *, rows[i]),
												0) <= 0;
		}
		position += nrows - 1;
	}
	return status;
}

GsStatus
gs_sort_verify_rows(GsEngine *engine, const GsKeyEncoder *key, GsSortCompare *compare, GsSortVerification *verification)
{
	GsStatus	status;
	instr_time	start;
	instr_time	end;

	memset(verification, 0, sizeof(*verification));
	verification->succeeded = true;
	INSTR_TIME_SET_CURRENT(start);
	status = gs_key_encoder_can_confirm(key) ?
		prove_by_records(engine, key, compare, verification) : prove_by_rows(engine, compare, verification);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	verification->us = INSTR_TIME_GET_MICROSEC(end);
	return status;
}

/* ----------------------------------------------------------- while rows leave */

struct GsSortVerify
{
	GsSortCompare *compare;
	const GsSortColumn *columns;
	TupleDesc	desc;
	RowCopy		rows[2];		/* the last one and the one before, in turns */
	int			last;
	bool		any;			/* is there a last one? */
	bool		all;			/* have all before it been seen, from the first on? */
	uint64		nleft;
};

GsSortVerify *
gs_sort_verify_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc)
{
	GsSortVerify *verify = palloc0(sizeof(GsSortVerify));

	verify->compare = gs_sort_compare_create(columns, ncolumns, desc);
	verify->columns = columns;
	verify->desc = desc;
	verify->rows[0].context = CurrentMemoryContext;
	verify->rows[1].context = CurrentMemoryContext;
	gs_sort_verify_restart(verify, true);
	return verify;
}

void
gs_sort_verify_restart(GsSortVerify *verify, bool at_first_row)
{
	verify->any = false;
	verify->all = at_first_row;
	verify->nleft = 0;
}

static void
report_wrong_order(const GsSortVerify *verify)
{
	int			i = gs_sort_compare_decisive(verify->compare);
	const GsSortColumn *column = &verify->columns[i];
	char	   *type = format_type_be(TupleDescAttr(verify->desc, column->attno - 1)->atttypid);
	char	   *collation = OidIsValid(column->collation) ?
		get_collation_name(column->collation) : NULL;

	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("sort returned rows in wrong order"),
			 collation != NULL ?
			 errdetail("Row " UINT64_FORMAT " sorts before the previous row by sort column %d, of type %s and collation \"%s\".",
					   verify->nleft, i + 1, type, collation) :
			 errdetail("Row " UINT64_FORMAT " sorts before the previous row by sort column %d, of type %s.",
					   verify->nleft, i + 1, type),
			 errhint("This is a bug in gpusort. Set gpusort.enabled to off to sort without it.")));
}

void
gs_sort_verify_row(GsSortVerify *verify, TupleTableSlot *slot)
{
	bool		should_free;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &should_free);
	RowCopy    *row = &verify->rows[1 - verify->last];

	copy_row(row, tuple);
	if (should_free)
		pfree(tuple);
	verify->last = 1 - verify->last;
	verify->nleft++;
	if (!verify->any)
		gs_sort_compare_begin(verify->compare, row->row);
	else if (gs_sort_compare_next(verify->compare, row->row) > 0)
		report_wrong_order(verify);
	verify->any = true;
}

void
gs_sort_verify_end(GsSortVerify *verify, uint64 ncame)
{
	if (verify->all && verify->nleft != ncame)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("sort returned " UINT64_FORMAT " rows, expected " UINT64_FORMAT,
						verify->nleft, ncame),
				 errhint("This is a bug in gpusort. Set gpusort.enabled to off to sort without it.")));
}
