/*-------------------------------------------------------------------------
 *
 * run_file.c
 *	  Sorted runs in temporary files: see run_file.h.  store/store_space.c decides when.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/basics.h"
#include "run/run_file.h"
#include "stats/stats.h"

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

/* The end of a full extent: see run_file.h. */
typedef struct Link
{
	int64		next;
	int64		first_row;		/* its offset; -1: none begins in this extent */
} Link;

#define LINK_BYTES		sizeof(Link)

/* The most bytes of a length. */
#define MOST_LENGTH_BYTES	5

/* The bytes of the next row that are prefetched, at most; hardware prefetches the rest. */
#define PREFETCH_BYTES	256

/* ------------------------------------------------------------------ the store */

GsRunStore *
gs_run_store_open(Size extent_bytes, const GsRunPlace *where, bool owned_elsewhere)
{
	GsRunStore *store = palloc0(sizeof(GsRunStore));

	store->context = CurrentMemoryContext;
	store->where = *where;
	store->owned_elsewhere = owned_elsewhere;
	store->extent_bytes = extent_bytes;
	store->free_allocated = 64;
	store->free_extents = palloc(sizeof(int64) * store->free_allocated);
	store->files = palloc(sizeof(File));
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
	file = store->owned_elsewhere ? FileSetOpen(&set->fs, name, O_RDONLY) :
		FileSetCreate(&set->fs, name);
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

/* Counts a transfer as BufFiles do, in blocks, and its time, if track_io_timing is on. */
static void
count_transfer(bool writes, int nbytes, instr_time start)
{
	const int64 nblocks = (nbytes + BLCKSZ - 1) / BLCKSZ;

	if (track_io_timing)
	{
		instr_time	end;

		INSTR_TIME_SET_CURRENT(end);
		INSTR_TIME_ACCUM_DIFF(*(writes ? &pgBufferUsage.temp_blk_write_time :
								&pgBufferUsage.temp_blk_read_time), end, start);
	}
	if (writes)
	{
		pgBufferUsage.temp_blks_written += nblocks;
		gs_stats_add(GS_STAT_TEMP_BYTES, nbytes);
	}
	else
		pgBufferUsage.temp_blks_read += nblocks;
}

/* Reads or writes nbytes of an extent, from an offset on. */
static void
transfer(GsRunStore *store, int64 extent, Size at, char *data, Size nbytes, bool writes)
{
	off_t		offset;
	File		file = locate(store, extent, &offset);

	offset += at;
	while (nbytes > 0)
	{
		const int	most = (int) Min(nbytes, MAX_TRANSFER_BYTES);
		instr_time	start = {0};
		int			done;

		CHECK_FOR_INTERRUPTS();
		if (track_io_timing)
			INSTR_TIME_SET_CURRENT(start);
		done = writes ? FileWrite(file, data, most, offset, WAIT_EVENT_BUFFILE_WRITE) :
			FileRead(file, data, most, offset, WAIT_EVENT_BUFFILE_READ);
		if (writes && done <= 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not write to file \"%s\": %m", FilePathName(file))));
		if (done < 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not read file \"%s\": %m", FilePathName(file))));
		if (done == 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("could not read file \"%s\": unexpected end of file",
							FilePathName(file))));
		count_transfer(writes, done, start);
		data += done;
		nbytes -= done;
		offset += done;
	}
}

/* ------------------------------------------------------------------ writing */

void
gs_run_writer_begin(GsRunWriter *writer, GsRunStore *store, char *buffer)
{
	const int64 extent = allocate_extent(store);

	*writer = (GsRunWriter) {
		.store = store,
		.extent = extent,
		.buffer = buffer,
		.room = store->extent_bytes - LINK_BYTES,
		.first_row = -1,
		.run = {.first_extent = extent,.in_order = true}
	};
}

/* Writes the full buffer and begins the next extent. */
static void
next_extent(GsRunWriter *writer)
{
	const Link	link = {.next = allocate_extent(writer->store),.first_row = writer->first_row};

	memcpy(writer->buffer + writer->room, &link, LINK_BYTES);
	transfer(writer->store, writer->extent, 0, writer->buffer, writer->store->extent_bytes, true);
	writer->run.in_order &= link.next == writer->extent + 1;
	writer->extent = link.next;
	writer->run.nbytes += writer->used;
	writer->used = 0;
	writer->first_row = -1;
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

/* Appends a length: seven bits a byte, the lowest ones first. */
static inline char *
put_length(char *to, Size length)
{
	for (; length >= 0x80; length >>= 7)
		*to++ = (char) (length | 0x80);
	*to++ = (char) length;
	return to;
}

/* A row begins in an extent, maybe its first. */
static pg_noinline void
begin_first_row(GsRunWriter *writer)
{
	if (writer->used == writer->room)
		next_extent(writer);
	if (writer->first_row < 0)
		writer->first_row = writer->used;
}

/* Writes a row that may not fit the rest of the extent. */
static pg_noinline void
write_row_slowly(GsRunWriter *writer, Size row_len, const char *data, Size nbytes)
{
	char		length[MOST_LENGTH_BYTES];

	write_bytes(writer, length, put_length(length, row_len) - length);
	write_bytes(writer, data, nbytes);
}

void
gs_run_write_row(GsRunWriter *writer, const char *row, Size row_len)
{
	const char *data = row + MINIMAL_TUPLE_DATA_OFFSET;
	const Size	nbytes = row_len - MINIMAL_TUPLE_DATA_OFFSET;

	if (unlikely(writer->first_row < 0 || writer->used == writer->room))
		begin_first_row(writer);
	writer->longest = Max(writer->longest, row_len);
	if (likely(writer->room - writer->used >= MOST_LENGTH_BYTES + nbytes))
	{
		char	   *to = put_length(writer->buffer + writer->used, row_len);

		memcpy(to, data, nbytes);
		writer->used = to + nbytes - writer->buffer;
	}
	else
		write_row_slowly(writer, row_len, data, nbytes);
}

void
gs_run_write_key(GsRunWriter *writer, uint64 key)
{
	write_bytes(writer, &key, sizeof(key));
}

GsRun
gs_run_writer_end(GsRunWriter *writer)
{
	transfer(writer->store, writer->extent, 0, writer->buffer, writer->used, true);
	writer->run.nbytes += writer->used;
	return writer->run;
}

/* ------------------------------------------------------------------ reading */

void
gs_run_reader_begin(GsRunReader *reader, GsRunStore *store, const GsKeyLayout *layout,
					const GsRun *run, bool consume, char *buffer, Size buffer_bytes)
{
	*reader = (GsRunReader) {
		.store = store,
		.layout = layout,
		.consume = consume,
		.extent = run->first_extent,
		.left = run->nbytes,
		.buffer = buffer,
		.buffer_bytes = buffer_bytes,
		.at = buffer,
		.limit = buffer
	};
}

/* Reads up to nbytes of the run; overwrites up to a link after them. */
static Size
read_on(GsRunReader *reader, char *to, Size nbytes)
{
	Size		in_extent = reader->store->extent_bytes - LINK_BYTES - reader->offset;
	Size		piece = Min(Min(nbytes, in_extent), reader->left);
	bool		ends_extent = piece == in_extent && reader->left > piece;
	int64		extent = reader->extent;

	transfer(reader->store, extent, reader->offset, to,
			 piece + (ends_extent ? LINK_BYTES : 0), false);
	reader->offset += piece;
	reader->left -= piece;
	if (ends_extent)
	{
		Link		link;

		memcpy(&link, to + piece, LINK_BYTES);
		reader->extent = link.next;
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

static pg_noinline Size
take_length_slowly(GsRunReader *reader)
{
	Size		length = 0;

	for (int shift = 0;; shift += 7)
	{
		uint8		byte;

		if (unlikely(reader->at == reader->limit))
			take_bytes_slowly(reader, (char *) &byte, 1);
		else
			byte = *reader->at++;
		length |= (Size) (byte & 0x7F) << shift;
		if (byte < 0x80)
			return length;
	}
}

static inline Size
take_length(GsRunReader *reader)
{
	return likely(reader->at < reader->limit && (uint8) *reader->at < 0x80) ?
		(uint8) *reader->at++ : take_length_slowly(reader);
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
gs_run_reader_next(GsRunReader *reader)
{
	const GsKeyLayout *layout = reader->layout;
	const Size	words_bytes = sizeof(uint64) * layout->nwords;
	Size		row_len;
	char	   *row;

	if (reader->at == reader->limit && !fill(reader))
		return NULL;
	if (layout->keys_only)
	{
		reserve(reader, words_bytes);
		take_bytes(reader, reader->entry, words_bytes);
		return (uint64 *) reader->entry;
	}
	row_len = take_length(reader);
	reserve(reader, words_bytes + row_len);
	row = reader->entry + words_bytes;
	gs_run_begin_row(row, row_len, 0);
	take_bytes(reader, row + MINIMAL_TUPLE_DATA_OFFSET, row_len - MINIMAL_TUPLE_DATA_OFFSET);
	/* a merge of many runs returns here late */
	for (Size ahead = 0; ahead < Min(row_len, PREFETCH_BYTES); ahead += GS_CACHE_LINE)
		__builtin_prefetch(reader->at + ahead);
	return (uint64 *) reader->entry;
}

void
gs_run_reader_end(GsRunReader *reader)
{
	if (reader->entry != NULL)
		pfree(reader->entry);
	reader->entry = NULL;
}

/* ------------------------------------------------------------------ positions */

static uint64
room_of(const GsRunStore *store)
{
	return store->extent_bytes - LINK_BYTES;
}

int64
gs_run_full_extents(const GsRunStore *store, const GsRun *run)
{
	/* the last extent has no link, even if it is full */
	return run->nbytes == 0 ? 0 : (run->nbytes - 1) / room_of(store);
}

int64
gs_run_row_position(GsRunStore *store, const GsRun *run, int64 extent)
{
	Link		link;

	transfer(store, run->first_extent + extent, room_of(store), (char *) &link, LINK_BYTES, false);
	return link.first_row < 0 ? -1 : extent * (int64) room_of(store) + link.first_row;
}

void
gs_run_reader_move(GsRunReader *reader, const GsRun *run, uint64 position)
{
	const uint64 room = room_of(reader->store);

	reader->extent = run->first_extent + position / room;
	reader->offset = position % room;
	reader->left = run->nbytes - position;
	reader->at = reader->limit = reader->buffer;
}

uint64
gs_run_reader_position(const GsRunReader *reader, const GsRun *run)
{
	return run->nbytes - reader->left - (reader->limit - reader->at);
}
