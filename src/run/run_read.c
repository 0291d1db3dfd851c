/*-------------------------------------------------------------------------
 *
 * run_read.c
 *	  Reads the rows of a run: of a file, an engine, or a stream.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "run/run_set_state.h"

#include "miscadmin.h"
#include "utils/memutils.h"

Size
gs_run_longest_key(const GsKeyLayout *layout)
{
	Size		nbytes = 0;

	for (int i = 0; i < layout->ncolumns; i++)
	{
		if (layout->columns[i].variable)
			nbytes += layout->columns[i].max_len;
	}
	return nbytes;
}

/* Keys that are part of the row count twice; that is little, unless rows are long. */
Size
gs_run_set_longest(const GsRunSet *set)
{
	return gs_record_bytes(set->layout) + set->longest + gs_run_longest_key(set->layout);
}

/* ------------------------------------------------------------------- files */

/*
 * Makes the record of a row that was read, for a key that is not direct; returns where it is, as it
 * may have been moved.
 */
static pg_noinline uint64 *
make_indirect_record(GsRunSet *set, GsRunReader *reader, uint64 *record)
{
	const int	nwords = set->layout->nwords;
	const Size	row_len = gs_run_row_len(set->layout, record);
	GsRowSource source = {.body = (char *) (record + nwords),.nbytes = row_len};
	const char *why_not;
	Size		extra_bytes;
	uint32		nulls;

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
	record[nwords] = gs_run_last_word(row_len, nulls);
	if (extra_bytes > 0)
		CHECK_FOR_INTERRUPTS();
	return record;
}

/* Makes the record of a row that was read; returns where it is, as it may have been moved. */
static inline uint64 *
make_record(GsRunSet *set, GsRunReader *reader, uint64 *record)
{
	const int	nwords = set->layout->nwords;
	const Size	row_len = gs_run_row_len(set->layout, record);
	const GsRowSource source = {.body = (char *) (record + nwords),.nbytes = row_len};

	if (!set->direct_key)
		return make_indirect_record(set, reader, record);
	record[nwords] = gs_run_last_word(row_len,
									  gs_key_record_write_direct_row(set->key, &source, record));
	return record;
}

/* ------------------------------------------------------------ other sources */

/* Fetches the next rows of the engine.  False: there are none. */
static bool
fill_window(GsRunSet *set)
{
	EngineReader *reader = &set->in_engine;
	size_t		fetched;
	GsStatus	status;

	CHECK_FOR_INTERRUPTS();
	status = gs_engine_fetch_records(reader->engine, reader->position, GS_ENGINE_WINDOW,
									 reader->rows, gs_run_has_records(set) ? reader->records : NULL,
									 &fetched);
	if (status != GS_STATUS_OK)
		elog(ERROR, "could not read sorted rows");
	reader->position += fetched;
	reader->at = 0;
	reader->nrows = (int) fetched;
	return fetched > 0;
}

/* A row as it was fetched from an engine. */
static GsEngineRow
engine_row(const GsRunSet *set, const void *row, const uint64 *record)
{
	GsEngineRow fetched = {0};
	Size		row_len;

	if (set->layout->keys_only)
	{
		fetched.record = row;
		return fetched;
	}
	fetched.row = row;
	fetched.record = gs_run_has_records(set) ? record : NULL;
	row_len = ((const MinimalTupleData *) row)->t_len;
	fetched.nbytes = fetched.record == NULL ? row_len :
		gs_run_row_bytes(set->layout, record, row_len);
	return fetched;
}

bool
gs_run_engine_next(GsRunSet *set, GsEngineRow *next)
{
	EngineReader *reader = &set->in_engine;

	if (reader->at == reader->nrows && !fill_window(set))
		return false;
	*next = engine_row(set, reader->rows[reader->at], reader->records[reader->at]);
	reader->at++;
	return true;
}

void
gs_run_engine_copy(const GsRunSet *set, const GsEngineRow *from, char *to)
{
	const int	nwords = set->layout->nwords;

	if (from->record != NULL)
		memcpy(to, from->record, sizeof(uint64) * nwords);
	if (from->row == NULL)
		return;
	to += sizeof(uint64) * nwords;
	memcpy(to, from->row, from->nbytes);
	gs_run_begin_row(to, ((const MinimalTupleData *) from->row)->t_len,
					 from->record == NULL ? 0 : gs_record_nulls(from->record, nwords));
}

uint64 *
gs_run_copy_of_engine(const GsRunSet *set, GsEngine *engine, uint64 position)
{
	const void *row;
	const uint64_t *record = NULL;
	size_t		fetched;
	GsEngineRow from;
	char	   *copy;

	if (gs_engine_fetch_records(engine, position, 1, &row, gs_run_has_records(set) ? &record : NULL,
								&fetched) != GS_STATUS_OK || fetched == 0)
		elog(ERROR, "could not read sorted rows");
	from = engine_row(set, row, record);
	copy = MemoryContextAllocHuge(set->context,
								  sizeof(uint64) * set->layout->nwords + from.nbytes);
	gs_run_engine_copy(set, &from, copy);
	return (uint64 *) copy;
}

static const uint64 *
read_engine(GsRunSet *set)
{
	EngineReader *reader = &set->in_engine;
	const Size	words_bytes = sizeof(uint64) * set->layout->nwords;
	GsEngineRow	next;

	if (!gs_run_engine_next(set, &next))
		return NULL;
	if (next.row == NULL)
		return next.record;
	if (words_bytes + next.nbytes > reader->entry_bytes)
	{
		if (reader->entry != NULL)
			pfree(reader->entry);
		reader->entry_bytes = words_bytes + next.nbytes + next.nbytes / 2;
		reader->entry = MemoryContextAllocHuge(set->context, reader->entry_bytes);
	}
	gs_run_engine_copy(set, &next, reader->entry);
	return (const uint64 *) reader->entry;
}

/* The next record of a stream; only the row, if keys are not used here. */
static const uint64 *
read_stream(const GsRunSet *set, RunStream *stream)
{
	char	   *entry = gs_run_stream_next(&stream->reader);

	return entry == NULL ? NULL :
		(const uint64 *) (entry + stream->words_bytes - sizeof(uint64) * set->layout->nwords);
}

const uint64 *
gs_run_set_read(GsRunSet *set, GsRunReader *reader)
{
	uint64	   *record;

	if (reader->store == NULL)
	{
		RunStream  *stream = set->runs[set->first_read + (reader - set->readers)].stream;

		return stream != NULL ? read_stream(set, stream) : read_engine(set);
	}
	record = gs_run_reader_next(reader);
	return record == NULL || !gs_run_has_records(set) ? record : make_record(set, reader, record);
}
