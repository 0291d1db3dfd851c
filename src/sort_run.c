/*-------------------------------------------------------------------------
 *
 * sort_run.c
 *	  Sorted runs in temporary files: see sort_run.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sort_run.h"

#include "commands/tablespace.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

/* At most so much in one system call, between two interrupt checks. */
#define MAX_TRANSFER_BYTES	((Size) 1 << 20)

/* ------------------------------------------------------------------- files */

GsRunFile *
gs_run_file_create(void)
{
	GsRunFile  *file = palloc(sizeof(GsRunFile));

	PrepareTempTablespaces();
	file->file = OpenTemporaryFile(false);
	file->nusers = 1;
	file->nbytes = 0;
	return file;
}

void
gs_run_file_release(GsRunFile *file)
{
	if (--file->nusers > 0)
		return;
	FileClose(file->file);
	pfree(file);
}

/* As a BufFile counts: in blocks. */
static int64
blocks_of(Size nbytes)
{
	return (nbytes + BLCKSZ - 1) / BLCKSZ;
}

/* Begins and ends the time of a transfer, if anyone wants to know. */
static void
begin_io(instr_time *start)
{
	CHECK_FOR_INTERRUPTS();
	if (track_io_timing)
		INSTR_TIME_SET_CURRENT(*start);
}

static void
end_io(instr_time *start, instr_time *sum)
{
	if (track_io_timing)
	{
		instr_time	end;

		INSTR_TIME_SET_CURRENT(end);
		INSTR_TIME_ACCUM_DIFF(*sum, end, *start);
	}
}

/* Writes to the end of a file. */
static void
append(GsRunFile *file, const char *data, Size nbytes)
{
	while (nbytes > 0)
	{
		instr_time	start;
		int			written;

		begin_io(&start);
		errno = 0;
		written = FileWrite(file->file, unconstify(char *, data),
							(int) Min(nbytes, MAX_TRANSFER_BYTES), file->nbytes,
							WAIT_EVENT_BUFFILE_WRITE);
		if (written <= 0)
		{
			if (errno == 0)
				errno = ENOSPC;
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not write to file \"%s\": %m", FilePathName(file->file))));
		}
		end_io(&start, &pgBufferUsage.temp_blk_write_time);
		pgBufferUsage.temp_blks_written += blocks_of(written);
		file->nbytes += written;
		data += written;
		nbytes -= written;
	}
}

static void
read_at(GsRunFile *file, char *data, Size nbytes, off_t offset)
{
	while (nbytes > 0)
	{
		instr_time	start;
		int			got;

		begin_io(&start);
		got = FileRead(file->file, data, (int) Min(nbytes, MAX_TRANSFER_BYTES), offset,
					   WAIT_EVENT_BUFFILE_READ);
		if (got < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read file \"%s\": %m", FilePathName(file->file))));
		if (got == 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("could not read file \"%s\": it is shorter than what was written to it",
							FilePathName(file->file))));
		end_io(&start, &pgBufferUsage.temp_blk_read_time);
		pgBufferUsage.temp_blks_read += blocks_of(got);
		data += got;
		nbytes -= got;
		offset += got;
	}
}

/* ------------------------------------------------------------------ writing */

void
gs_run_writer_begin(GsRunWriter *writer, const GsKeyLayout *layout, GsRunFile *file,
					char *buffer, Size buffer_bytes, GsRun *run)
{
	writer->layout = layout;
	writer->file = file;
	writer->buffer = buffer;
	writer->buffer_bytes = buffer_bytes;
	writer->used = 0;
	file->nusers++;
	run->file = file;
	run->start = run->end = file->nbytes;
}

static void
flush(GsRunWriter *writer)
{
	append(writer->file, writer->buffer, writer->used);
	writer->used = 0;
}

/* Adds bytes, however many. */
static void
write_bytes(GsRunWriter *writer, const void *data, Size nbytes)
{
	if (nbytes > writer->buffer_bytes - writer->used)
		flush(writer);
	if (nbytes > writer->buffer_bytes)
		append(writer->file, data, nbytes);
	else
	{
		memcpy(writer->buffer + writer->used, data, nbytes);
		writer->used += nbytes;
	}
}

void
gs_run_write_row(GsRunWriter *writer, const uint64 *record, const char *row)
{
	const GsKeyLayout *layout = writer->layout;
	Size		words_bytes = sizeof(uint64) * layout->nwords;
	Size		row_bytes;
	uint64		place;
	char	   *to;

	if (layout->keys_only)
	{
		write_bytes(writer, record, words_bytes);
		return;
	}
	place = (uint64) ((MinimalTuple) unconstify(char *, row))->t_len << 32 |
		gs_record_nulls(record, layout->nwords);
	row_bytes = gs_run_row_bytes(layout, record, place >> 32);
	if (words_bytes + row_bytes > writer->buffer_bytes)
	{
		write_bytes(writer, record, words_bytes);
		write_bytes(writer, &place, sizeof(place));
		write_bytes(writer, row + sizeof(place), row_bytes - sizeof(place));
		return;
	}
	if (words_bytes + row_bytes > writer->buffer_bytes - writer->used)
		flush(writer);
	to = writer->buffer + writer->used;
	memcpy(to, record, words_bytes);
	to += words_bytes;
	memcpy(to, &place, sizeof(place));
	memcpy(to + sizeof(place), row + sizeof(place), row_bytes - sizeof(place));
	writer->used += words_bytes + row_bytes;
}

void
gs_run_write_entry(GsRunWriter *writer, const uint64 *record)
{
	write_bytes(writer, record, gs_run_entry_bytes(writer->layout, record));
}

void
gs_run_writer_end(GsRunWriter *writer, GsRun *run)
{
	flush(writer);
	run->end = writer->file->nbytes;
}

/* ------------------------------------------------------------------ reading */

void
gs_run_reader_begin(GsRunReader *reader, const GsKeyLayout *layout, const GsRun *run,
					char *buffer, Size buffer_bytes)
{
	reader->layout = layout;
	reader->file = run->file;
	reader->next = run->start;
	reader->end = run->end;
	reader->context = CurrentMemoryContext;
	reader->own = NULL;
	reader->buffer = buffer;
	reader->buffer_bytes = buffer_bytes;
	reader->at = reader->limit = buffer;
}

/* Has at least so many bytes at hand, if the run has any more. */
static void
fill(GsRunReader *reader, Size wanted)
{
	Size		left = reader->limit - reader->at;
	char	   *before = reader->own;
	char	   *to;
	Size		nbytes;

	reader->own = wanted <= reader->buffer_bytes ? NULL :
		MemoryContextAllocHuge(reader->context, wanted);
	to = reader->own != NULL ? reader->own : reader->buffer;
	memmove(to, reader->at, left);
	if (before != NULL)
		pfree(before);
	nbytes = Min((off_t) (Max(wanted, reader->buffer_bytes) - left), reader->end - reader->next);
	read_at(reader->file, to + left, nbytes, reader->next);
	reader->next += nbytes;
	reader->at = to;
	reader->limit = to + left + nbytes;
}

const uint64 *
gs_run_reader_next(GsRunReader *reader)
{
	const GsKeyLayout *layout = reader->layout;
	const uint64 *record;
	Size		nbytes;

	if (reader->limit - reader->at < gs_run_head_bytes(layout))
	{
		fill(reader, gs_run_head_bytes(layout));
		if (reader->at == reader->limit)
			return NULL;
	}
	record = (const uint64 *) reader->at;
	nbytes = gs_run_entry_bytes(layout, record);
	if (reader->limit - reader->at < nbytes)
	{
		fill(reader, nbytes);
		record = (const uint64 *) reader->at;
	}
	reader->at += nbytes;
	return record;
}

void
gs_run_reader_end(GsRunReader *reader)
{
	if (reader->own != NULL)
		pfree(reader->own);
	reader->own = NULL;
}
