/*-------------------------------------------------------------------------
 *
 * order_verify.c
 *	  Verifies the order of rows by PostgreSQL's comparators: what approximate keys
 *	  have sorted, and with gpusort.verify all rows that are returned.
 *
 * sort/README.md has the reasons.  What the verification of the output finds is a bug of gpusort,
 * and an ERROR.  If rows arrived ordered by the first columns, it may be an index that is not in
 * order.  If ICU contradicts itself, it is a WARNING for each sort.
 *
 * Rows of an engine are valid until the next call, so those that are compared with later ones are
 * copied.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_stored_row.h"
#include "order/order.h"

#include "executor/tuptable.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* ----------------------------------------------------------------- the keys */

/* Rows fetched at a time: as many as sort_output.c does, for which engines are tuned. */
#define WINDOW	8

/* Compares the rows of a window with each other, and the first with `last`, if there is one. */
static bool
verify_window(GsOrderCompare *compare, const void **rows, size_t nrows, GsRowCopy *last,
			  GsKeyVerification *verification)
{
	size_t		i = 0;

	if (last->row == NULL)
		gs_order_compare_begin(compare, rows[i++]);
	for (; i < nrows; i++)
	{
		verification->ncomparisons++;
		if (gs_order_compare_next(compare, rows[i]) > 0)
			return false;
	}
	gs_order_compare_begin(compare, gs_row_copy(last, rows[nrows - 1]));
	return true;
}

/* Compares all rows. */
static GsStatus
verify_by_rows(GsEngine *engine, GsOrderCompare *compare, GsKeyVerification *verification)
{
	GsRowCopy	last = {.context = CurrentMemoryContext};
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
	return status;
}

/* Compares records, and rows where these do not decide.  Windows overlap by a row. */
static GsStatus
verify_by_records(GsEngine *engine, const GsKeyEncoder *key, GsOrderCompare *compare,
				  GsKeyVerification *verification)
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
			if (gs_key_encoder_proves_order(key, records[i - 1], records[i]))
				continue;
			verification->ncomparisons++;
			verification->succeeded = gs_order_compare_rows(compare, rows[i - 1], rows[i]) <= 0;
		}
		position += nrows - 1;
	}
	return status;
}

GsStatus
gs_verify_keys(GsEngine *engine, const GsKeyEncoder *key, GsOrderCompare *compare,
			   GsKeyVerification *verification)
{
	GsStatus	status;
	instr_time	start;
	instr_time	end;

	*verification = (GsKeyVerification) {
		.succeeded = true
	};
	INSTR_TIME_SET_CURRENT(start);
	status = gs_key_encoder_can_prove_order(key) ?
		verify_by_records(engine, key, compare, verification) :
		verify_by_rows(engine, compare, verification);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	verification->us = INSTR_TIME_GET_MICROSEC(end);
	return status;
}

/* --------------------------------------------------------------- the output */

#define BUG_HINT	"This is a bug in gpusort. Set gpusort.enabled to off to sort without it."

struct GsOutputVerification
{
	GsOrderCompare *compare;
	const GsSortColumn *columns;
	int			npresorted;		/* the first of them, by which batches follow each other */
	TupleDesc	desc;
	GsRowCopy	rows[2];		/* the last row and the one before, alternately */
	int			last;
	bool		any;			/* is there a last row? */
	bool		warned;			/* that ICU contradicts itself */
	bool		all;			/* nreturned counts from the first row */
	uint64		nreturned;
};

GsOutputVerification *
gs_verify_output_begin(const GsSortColumn *columns, int ncolumns, int npresorted, TupleDesc desc)
{
	GsOutputVerification *output = palloc0(sizeof(GsOutputVerification));

	output->compare = gs_order_compare_create(columns, ncolumns, desc);
	output->columns = columns;
	output->npresorted = npresorted;
	output->desc = desc;
	output->rows[0].context = CurrentMemoryContext;
	output->rows[1].context = CurrentMemoryContext;
	gs_verify_output_restart(output, true);
	return output;
}

void
gs_verify_output_restart(GsOutputVerification *output, bool at_first_row)
{
	output->any = false;
	output->all = at_first_row;
	output->nreturned = 0;
}

static void
report_wrong_order(GsOutputVerification *output)
{
	int			i = gs_order_compare_decisive(output->compare);
	const GsSortColumn *column = &output->columns[i];
	/* each batch is sorted by all columns, so only the first row of one can be wrong by these */
	const bool	of_input = i < output->npresorted;
	const bool	of_icu = gs_key_columns_icu_disagrees(column, 1);
	char	   *type;
	char	   *collation;

	if (of_icu && output->warned)
		return;
	output->warned = of_icu;
	type = format_type_be(TupleDescAttr(output->desc, column->attno - 1)->atttypid);
	collation = OidIsValid(column->collation) ? get_collation_name(column->collation) : NULL;
	ereport(of_icu ? WARNING : ERROR,
			(errcode(of_icu ? ERRCODE_WARNING : of_input ? ERRCODE_DATA_CORRUPTED :
					 ERRCODE_INTERNAL_ERROR),
			 of_input ? errmsg("rows of an incremental sort arrived in wrong order") :
			 errmsg("sort returned rows in wrong order"),
			 collation != NULL ?
			 errdetail("Row " UINT64_FORMAT " sorts before the previous row by sort column %d, "
					   "of type %s and collation \"%s\".",
					   output->nreturned, i + 1, type, collation) :
			 errdetail("Row " UINT64_FORMAT " sorts before the previous row by sort column %d, "
					   "of type %s.",
					   output->nreturned, i + 1, type),
			 of_icu ?
			 errhint("ICU contradicts itself: its sort keys and its comparison disagree "
					 "for some texts of this collation.") :
			 of_input ?
			 errhint("The index that they were read from may be corrupted. "
					 "Check it with amcheck, or rebuild it with REINDEX.") :
			 errhint(BUG_HINT)));
}

void
gs_verify_output_row(GsOutputVerification *output, TupleTableSlot *slot)
{
	bool		should_free;
	MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &should_free);
	GsRowCopy  *row = &output->rows[1 - output->last];

	(void) gs_row_copy(row, tuple);
	if (should_free)
		pfree(tuple);
	output->last = 1 - output->last;
	output->nreturned++;
	if (!output->any)
		gs_order_compare_begin(output->compare, row->row);
	else if (gs_order_compare_next(output->compare, row->row) > 0)
		report_wrong_order(output);
	output->any = true;
}

void
gs_verify_output_end(GsOutputVerification *output, uint64 nread)
{
	if (output->all && output->nreturned != nread)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("sort returned " UINT64_FORMAT " rows, expected " UINT64_FORMAT,
						output->nreturned, nread),
				 errhint(BUG_HINT)));
}
