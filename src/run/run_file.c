/*-------------------------------------------------------------------------
 *
 * run_file.c
 *	  Sorted runs in temporary files: see run_file.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "run/run_file.h"

#include "commands/tablespace.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

/* The most bytes of one system call, between two interrupt checks. */
#define MAX_TRANSFER_BYTES	((Size) 1 << 20)

#define FILE_BYTES		((int64) 1 << 30)

#define LINK_BYTES		sizeof(int64)

/* The most bytes of a length and its bit, or of NULL bits. */
#define MOST_NUMBER_BYTES	5

/* ------------------------------------------------------------------ the store */

GsRunStore *
gs_run_store_create(Size extent_bytes, const GsRunFiles *where)
{
	GsRunStore *store = palloc0(sizeof(GsRunStore));

	store->context = CurrentMemoryContext;
	store->where = *where;
	store->extent_bytes = extent_bytes;
	store->free_allocated = 64;
	store->free_extents = palloc(sizeof(int64) * store->free_allocated);
	store->files = palloc(sizeof(File));
	return store;
}

GsRunStore *
gs_run_store_open(Size extent_bytes, const GsRunFiles *where)
{
	GsRunStore *store = gs_run_store_create(extent_bytes, where);

	store->owned_elsewhere = true;
	return store;
}

void
gs_run_store_close(GsRunStore *store)
{
	for (int i = 0; i < store->nfiles; i++)
		FileClose(store->files[i]);
	pfree(store->files);
	pfree(store->free_extents);
	pfree(store);
}

static int64
allocate_extent(GsRunStore *store)
{
	return store->nfree > 0 ? store->free_extents[--store->nfree] : store->nextents++;
}

static void
free_extent(GsRunStore *store, int64 extent)
{
	if (store->nfree == store->free_allocated)
	{
		store->free_allocated *= 2;
		store->free_extents = repalloc_huge(store->free_extents,
											sizeof(int64) * store->free_allocated);
	}
	store->free_extents[store->nfree++] = extent;
}

/* The next file of a store. */
static File
open_file(const GsRunStore *store)
{
	SharedFileSet *set = store->where.set;
	char		name[MAXPGPATH];
	File		file;

	if (set == NULL)
	{
		PrepareTempTablespaces();
		return OpenTemporaryFile(false);
	}
	snprintf(name, sizeof(name), "%d.%d", store->where.owner, store->nfiles);
	file = store->owned_elsewhere ? FileSetOpen(&set->fs, name, O_RDONLY) : FileSetCreate(&set->fs, name);
	if (file <= 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open the shared temporary file \"%s\": %m", name)));
	return file;
}

/* The file that has an extent, and the offset of the extent in it. */
static File
locate(GsRunStore *store, int64 extent, off_t *start)
{
	int64		per_file = FILE_BYTES / store->extent_bytes;
	int			number = (int) (extent / per_file);

	while (number >= store->nfiles)
	{
		store->files = repalloc(store->files, sizeof(File) * (store->nfiles + 1));
		store->files[store->nfiles] = open_file(store);
		store->nfiles++;
	}
	*start = (off_t) (extent % per_file) * store->extent_bytes;
	return store->files[number];
}

/* Counts a transfer as BufFiles do, in blocks. */
static int64
blocks_of(Size nbytes)
{
	return (nbytes + BLCKSZ - 1) / BLCKSZ;
}

/* Measures the time of a transfer, if track_io_timing is on. */
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

/* Writes the first nbytes of an extent. */
static void
write_extent(GsRunStore *store, int64 extent, char *data, Size nbytes)
{
	off_t		offset;
	File		file = locate(store, extent, &offset);

	while (nbytes > 0)
	{
		instr_time	start = {0};
		int			written;

		begin_io(&start);
		written = FileWrite(file, data, (int) Min(nbytes, MAX_TRANSFER_BYTES), offset,
							WAIT_EVENT_BUFFILE_WRITE);
		if (written <= 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not write to file \"%s\": %m", FilePathName(file))));
		end_io(&start, &pgBufferUsage.temp_blk_write_time);
		pgBufferUsage.temp_blks_written += blocks_of(written);
		data += written;
		nbytes -= written;
		offset += written;
	}
}

static void
read_extent(GsRunStore *store, int64 extent, Size at, char *data, Size nbytes)
{
	off_t		offset;
	File		file = locate(store, extent, &offset);

	offset += at;
	while (nbytes > 0)
	{
		instr_time	start = {0};
		int			got;

		begin_io(&start);
		got = FileRead(file, data, (int) Min(nbytes, MAX_TRANSFER_BYTES), offset,
					   WAIT_EVENT_BUFFILE_READ);
		if (got < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read file \"%s\": %m", FilePathName(file))));
		if (got == 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("could not read file \"%s\": unexpected end of file",
							FilePathName(file))));
		end_io(&start, &pgBufferUsage.temp_blk_read_time);
		pgBufferUsage.temp_blks_read += blocks_of(got);
		data += got;
		nbytes -= got;
		offset += got;
	}
}

/* ------------------------------------------------------------------ writing */

void
gs_run_writer_begin(GsRunWriter *writer, GsRunStore *store, const GsKeyLayout *layout,
					char *buffer)
{
	writer->store = store;
	writer->layout = layout;
	writer->extent = allocate_extent(store);
	writer->buffer = buffer;
	writer->room = store->extent_bytes - LINK_BYTES;
	writer->used = 0;
	writer->longest = 0;
	writer->run.first_extent = writer->extent;
	writer->run.nbytes = 0;
}

/* Writes the full buffer and begins the next extent. */
static void
next_extent(GsRunWriter *writer)
{
	int64		next = allocate_extent(writer->store);

	memcpy(writer->buffer + writer->room, &next, LINK_BYTES);
	write_extent(writer->store, writer->extent, writer->buffer, writer->store->extent_bytes);
	writer->extent = next;
	writer->run.nbytes += writer->used;
	writer->used = 0;
}

/* Writes any number of bytes. */
static void
write_bytes(GsRunWriter *writer, const void *data, Size nbytes)
{
	for (;;)
	{
		Size		piece = Min(nbytes, writer->room - writer->used);

		memcpy(writer->buffer + writer->used, data, piece);
		writer->used += piece;
		nbytes -= piece;
		if (nbytes == 0)
			break;
		data = (const char *) data + piece;
		next_extent(writer);
	}
}

/* Appends a number to a header: seven bits a byte, the lowest ones first. */
static inline char *
put_number(char *to, uint64 number)
{
	for (; number >= 0x80; number >>= 7)
		*to++ = (char) (number | 0x80);
	*to++ = (char) number;
	return to;
}

void
gs_run_write_row(GsRunWriter *writer, const uint64 *record, const char *row, Size row_len,
				 bool with_record)
{
	const GsKeyLayout *layout = writer->layout;
	const Size	words_bytes = sizeof(uint64) * layout->nwords;
	const Size	row_bytes = layout->keys_only ? 0 : gs_run_row_bytes(layout, record, row_len);
	char		header[2 * MOST_NUMBER_BYTES];
	char	   *end;

	if (layout->keys_only)
	{
		write_bytes(writer, record, words_bytes);
		return;
	}
	end = put_number(header, (uint64) row_len << 1 | with_record);
	if (with_record)
		end = put_number(end, gs_record_nulls(record, layout->nwords));
	writer->longest = Max(writer->longest, words_bytes + row_bytes);
	write_bytes(writer, header, end - header);
	if (with_record)
		write_bytes(writer, record, words_bytes);
	write_bytes(writer, row + MINIMAL_TUPLE_DATA_OFFSET,
				(with_record ? row_bytes : row_len) - MINIMAL_TUPLE_DATA_OFFSET);
}

GsRun
gs_run_writer_end(GsRunWriter *writer)
{
	write_extent(writer->store, writer->extent, writer->buffer, writer->used);
	writer->run.nbytes += writer->used;
	return writer->run;
}

/* ------------------------------------------------------------------ reading */

void
gs_run_reader_begin(GsRunReader *reader, GsRunStore *store, const GsKeyLayout *layout,
					const GsRun *run, bool consume, char *buffer, Size buffer_bytes)
{
	reader->store = store;
	reader->layout = layout;
	reader->consume = consume;
	reader->extent = run->first_extent;
	reader->offset = 0;
	reader->left = run->nbytes;
	reader->buffer = buffer;
	reader->buffer_bytes = buffer_bytes;
	reader->at = reader->limit = buffer;
	reader->entry = NULL;
	reader->entry_bytes = 0;
}

/* Reads up to nbytes of the run; overwrites up to a link after them. */
static Size
read_on(GsRunReader *reader, char *to, Size nbytes)
{
	Size		in_extent = reader->store->extent_bytes - LINK_BYTES - reader->offset;
	Size		piece = Min(Min(nbytes, in_extent), reader->left);
	bool		ends_extent = piece == in_extent && reader->left > piece;
	int64		extent = reader->extent;

	read_extent(reader->store, extent, reader->offset, to,
				piece + (ends_extent ? LINK_BYTES : 0));
	reader->offset += piece;
	reader->left -= piece;
	if (ends_extent)
	{
		memcpy(&reader->extent, to + piece, LINK_BYTES);
		reader->offset = 0;
	}
	if (reader->consume && (ends_extent || reader->left == 0))
		free_extent(reader->store, extent);
	return piece;
}

/* Fills the empty buffer.  Returns false at the end of the run. */
static pg_noinline bool
fill(GsRunReader *reader)
{
	reader->at = reader->limit = reader->buffer;
	if (reader->left > 0)
		reader->limit += read_on(reader, reader->buffer, reader->buffer_bytes - LINK_BYTES);
	return reader->limit > reader->at;
}

/* Reads bytes of which some are not in the buffer; overwrites up to a link after them. */
static pg_noinline void
take_bytes_slowly(GsRunReader *reader, char *to, Size nbytes)
{
	while (nbytes > 0)
	{
		Size		piece = Min(nbytes, reader->limit - reader->at);

		if (piece > 0)
		{
			memcpy(to, reader->at, piece);
			reader->at += piece;
		}
		else if (nbytes >= reader->buffer_bytes && reader->left > 0)
			piece = read_on(reader, to, nbytes);
		else if (!fill(reader))
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg_internal("unexpected end of sorted run")));
		to += piece;
		nbytes -= piece;
	}
}

static inline void
take_bytes(GsRunReader *reader, char *to, Size nbytes)
{
	if (likely(reader->limit - reader->at >= nbytes))
	{
		memcpy(to, reader->at, nbytes);
		reader->at += nbytes;
	}
	else
		take_bytes_slowly(reader, to, nbytes);
}

static inline uint64
take_number(GsRunReader *reader)
{
	uint64		number = 0;

	for (int shift = 0;; shift += 7)
	{
		uint8		byte;

		if (unlikely(reader->at == reader->limit))
			take_bytes_slowly(reader, (char *) &byte, 1);
		else
			byte = *reader->at++;
		number |= (uint64) (byte & 0x7F) << shift;
		if (byte < 0x80)
			return number;
	}
}

uint64 *
gs_run_reader_reserve(GsRunReader *reader, Size nbytes)
{
	const Size	larger_bytes = nbytes + nbytes / 2;
	char	   *larger = MemoryContextAllocHuge(reader->store->context, larger_bytes + LINK_BYTES);

	if (reader->entry != NULL)
	{
		memcpy(larger, reader->entry, reader->entry_bytes);
		pfree(reader->entry);
	}
	reader->entry = larger;
	reader->entry_bytes = larger_bytes;
	return (uint64 *) larger;
}

static inline void
reserve(GsRunReader *reader, Size nbytes)
{
	if (unlikely(!gs_run_reader_has_room(reader, nbytes)))
		(void) gs_run_reader_reserve(reader, nbytes);
}

uint64 *
gs_run_reader_next(GsRunReader *reader, bool *has_record)
{
	const GsKeyLayout *layout = reader->layout;
	const Size	words_bytes = sizeof(uint64) * layout->nwords;
	uint64		number;
	Size		row_len;
	Size		row_bytes;
	uint32		nulls = 0;
	char	   *row;

	if (reader->at == reader->limit && !fill(reader))
		return NULL;
	*has_record = true;
	if (layout->keys_only)
	{
		reserve(reader, words_bytes);
		take_bytes(reader, reader->entry, words_bytes);
		return (uint64 *) reader->entry;
	}
	number = take_number(reader);
	*has_record = number & 1;
	row_len = row_bytes = number >> 1;
	reserve(reader, words_bytes + row_bytes);
	if (*has_record)
	{
		nulls = (uint32) take_number(reader);
		take_bytes(reader, reader->entry, words_bytes);
		row_bytes = gs_run_row_bytes(layout, (const uint64 *) reader->entry, row_len);
		reserve(reader, words_bytes + row_bytes);
	}
	row = reader->entry + words_bytes;
	number = gs_run_last_word(row_len, nulls);
	memcpy(row, &number, sizeof(number));
	memset(row + sizeof(number), 0, MINIMAL_TUPLE_DATA_OFFSET - sizeof(number));
	take_bytes(reader, row + MINIMAL_TUPLE_DATA_OFFSET, row_bytes - MINIMAL_TUPLE_DATA_OFFSET);
	return (uint64 *) reader->entry;
}

void
gs_run_reader_end(GsRunReader *reader)
{
	if (reader->entry != NULL)
		pfree(reader->entry);
	reader->entry = NULL;
}
