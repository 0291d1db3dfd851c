/*-------------------------------------------------------------------------
 *
 * engine_drain.c
 *	  Moves the rows of an engine somewhere else.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "store/engine_drain.h"

#include "miscadmin.h"

/* Rows fetched at a time. */
#define WINDOW	8

static GsStatus
drain_sorted(GsEngine *engine, GsTakeRow take, void *arg, bool *taken)
{
	const void *rows[WINDOW];
	uint64		position = 0;
	size_t		nrows;
	GsStatus	status;

	while ((status = gs_engine_fetch(engine, position, WINDOW, rows, &nrows)) == GS_STATUS_OK &&
		   nrows > 0 && *taken)
	{
		CHECK_FOR_INTERRUPTS();
		for (size_t i = 0; i < nrows && *taken; i++)
			*taken = take(arg, rows[i]);
		position += nrows;
	}
	return status;
}

static GsStatus
drain_unsorted(GsEngine *engine, GsTakeRow take, void *arg, bool *taken)
{
	const GsKeyLayout *layout = engine->request.layout;
	const GsBatch *batch;
	GsStatus	status = gs_engine_return_input(engine);

	while (*taken && status == GS_STATUS_OK &&
		   (status = gs_engine_next_batch(engine, &batch)) == GS_STATUS_OK && batch != NULL)
	{
		for (size_t i = 0; i < batch->nrows && *taken; i++)
		{
			CHECK_FOR_INTERRUPTS();
			*taken = take(arg, gs_batch_pushed(batch, layout, i));
		}
	}
	return status;
}

GsStatus
gs_engine_drain(GsEngine *engine, GsTakeRow take, void *arg, bool *taken)
{
	*taken = true;
	return gs_engine_stats(engine)->method == GS_METHOD_NONE ?
		drain_unsorted(engine, take, arg, taken) : drain_sorted(engine, take, arg, taken);
}
