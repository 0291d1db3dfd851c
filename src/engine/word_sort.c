/*-------------------------------------------------------------------------
 *
 * word_sort.c
 *	  Sorts the rows of a set of batches by their key records, in memory.
 *
 * Only 64-bit *words* are moved: the first bits of the packed key, and below them
 * the number of the row.
 *
 *	   63                        number_bits              0
 *	  | first chunk of the key  | batch no. | unit in batch |
 *
 * 5 M rows of 200 bytes have numbers of 28 bits and leave 36 for the key, so five
 * radix passes over 8-byte words order them: completely, if the packed key is no
 * wider, otherwise up to ties.  Row numbers ascend in input order, so any correct
 * sort of the words is a stable sort of the rows, and no two words are equal.
 *
 * Ties are then resolved chunk by chunk (key_pack.h): a tie group, rows with equal
 * keys, is sorted again by words with the bits of the next chunk, its ties by the
 * chunk after that.  For a random bigint, 36 bits leave almost no ties; for a text,
 * some.  The bytes of a text after the eighth are a tail chunk: tail_sort.c.
 *
 * Most tie groups have 2 rows.  The packing is computed once for all of them, so a
 * group of 2 costs two record reads and a comparison.
 *
 * With few distinct keys, all rows would tie in the first bits, and would be sorted
 * again by bits that are equal as well.  So while the first words are computed, a
 * small hash table has one record for each first word.  If all rows with the same
 * first word have the same record, ties are equal keys and need no further sort.
 *
 * If keys only begin an order, the driver's comparison function (engine.h) resolves
 * the ties of the last chunk: compare_sort.c.
 *
 * Each tie group is checked for being in order before it is sorted, which costs
 * little compared with computing its words; the whole input also for being in
 * descending order.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/word_sort_state.h"

#include <string.h>

#include "common/radix_sort.h"

/* With this many bits more than log2(rows), one random key in 2^14 ties. */
#define DISTINGUISHING_BITS	14

/*
 * A hash table with one record for each first word.  It is abandoned at the first
 * row with another record, and when it is half full, so it costs little if there are
 * many distinct keys.
 *
 * This is not an estimate of distinct values as in key/key_distinct.h: every row has
 * to be checked, because the result is relied on.
 */
#define SAMPLE_BITS		12
#define NSAMPLES		((size_t) 1 << SAMPLE_BITS)

typedef struct RecordSamples
{
	bool		decisive;		/* so far, equal words have equal records */
	size_t		nkeys;
	uint64_t	keys[NSAMPLES];
	const uint64_t *records[NSAMPLES];	/* NULL: free */
} RecordSamples;

/* In which order the first words are. */
typedef struct InputOrder
{
	bool		ascending;		/* no key is below the previous one */
	bool		descending;		/* no key is above the previous one */
} InputOrder;

_Static_assert(sizeof(GsWordSortState) <= GS_WORD_SORT_STATE_BYTES, "GsWordSortState has grown");

static bool make_first_words(GsWordSortState *state, InputOrder *order, RecordSamples *samples);
static GsStatus sort_all(GsWordSortState *state);
static void reverse_all(GsWordSortState *state);
static void refine_ties(GsWordSortState *state, size_t start, size_t end, GsKeyPosition position);

bool
gs_row_numbering(GsRowNumbering *numbering, size_t nbatches, size_t nunits)
{
	int			batch_bits = nbatches > 1 ? gs_bit_width(nbatches - 1) : 0;

	numbering->unit_bits = nunits > 1 ? gs_bit_width(nunits - 1) : 0;
	numbering->number_bits = numbering->unit_bits + batch_bits;
	return numbering->number_bits <= GS_MAX_NUMBER_BITS;
}

/*
 * The width of a chunk: what the row number leaves, but no more than should resolve
 * most ties.  More bits cost passes over all rows, while the next chunk costs only
 * for rows that tie.
 */
static int
chunk_bits(const GsWordSort *sort)
{
	int			available = 64 - sort->numbering.number_bits;
	int			enough = gs_bit_width(sort->nrows) + DISTINGUISHING_BITS;

	return Min(available, Max(enough, GS_MIN_KEY_CHUNK_BITS));
}

GsStatus
gs_word_sort(GsWordSort *sort, GsEngineStats *stats)
{
	const GsRuntime *host = sort->host;
	GsWordSortState *state = host->allocate(host->arg, sizeof(GsWordSortState));
	GsStatus	status;

	if (state == NULL)
		return GS_STATUS_OOM;
	state->sort = sort;
	state->stats = stats;
	state->extract_bits = gs_extract_bits_function();
	state->number_bits = sort->numbering.number_bits;
	state->number_mask = (UINT64_C(1) << state->number_bits) - 1;
	state->scratch = NULL;
	state->words = host->allocate(host->arg, sort->nrows * sizeof(uint64_t));
	if (state->words == NULL)
	{
		host->release(host->arg, state);
		return GS_STATUS_OOM;
	}
	state->chunk_bits = chunk_bits(sort);
	gs_key_packing_init(&state->packing, sort->layout, state->chunk_bits);
	stats->key_bits = state->packing.total_bits;
	stats->key_tails = state->packing.has_tails;
	stats->all_compared = false;

	status = sort_all(state);
	if (state->scratch != NULL)
		host->release(host->arg, state->scratch);
	sort->words = state->words;
	if (status != GS_STATUS_OK)
	{
		host->release(host->arg, state->words);
		sort->words = NULL;
	}
	host->release(host->arg, state);
	return status;
}

void
gs_sort_words(GsWordSortState *state, size_t start, size_t end, int key_bits)
{
	uint64_t   *words = state->words + start;
	uint64_t   *scratch = state->scratch + start;
	size_t		n = end - start;

	/* the input may have been in order by its first bits, but not by these */
	if (state->stats->method != GS_METHOD_RADIX)
		state->stats->method = n <= GS_MERGE_SORT_MAX ? GS_METHOD_MERGE : GS_METHOD_RADIX;
	if (n <= GS_MERGE_SORT_MAX)
		gs_merge_sort(words, scratch, n);
	else
	{
		uint64_t   *sorted = gs_radix_sort(words, scratch, n, state->number_bits,
										   key_bits, state->sort->host, NULL);

		if (sorted != words)
			memcpy(words, sorted, n * sizeof(uint64_t));
	}
}

/* Sorts all rows: from records to words in order. */
static GsStatus
sort_all(GsWordSortState *state)
{
	GsWordSort *sort = state->sort;
	const GsRuntime *host = sort->host;
	bool		refine;
	InputOrder	order;
	RecordSamples *samples = NULL;
	GsKeyPosition next = {0, TAIL_START};

	/* the scratch of the words is not used yet: put the table there */
	if (state->packing.nchunks > 1 && !state->packing.has_tails && sort->compare == NULL &&
		sort->nrows * sizeof(uint64_t) >= sizeof(RecordSamples))
	{
		state->scratch = host->allocate(host->arg, sort->nrows * sizeof(uint64_t));
		if (state->scratch == NULL)
			return GS_STATUS_OOM;
		samples = (RecordSamples *) state->scratch;
		samples->decisive = true;
		samples->nkeys = 0;
		memset(samples->records, 0, sizeof(samples->records));
	}
	refine = make_first_words(state, &order, samples);
	if (order.ascending)
		state->stats->method = GS_METHOD_PRESORTED;
	else if (order.descending)
	{
		state->stats->method = GS_METHOD_REVERSED;
		reverse_all(state);
	}
	else
		state->stats->method = sort->nrows <= GS_MERGE_SORT_MAX ?
			GS_METHOD_MERGE : GS_METHOD_RADIX;

	if (state->scratch == NULL && (refine || !(order.ascending || order.descending)))
	{
		state->scratch = host->allocate(host->arg, sort->nrows * sizeof(uint64_t));
		if (state->scratch == NULL)
			return GS_STATUS_OOM;
	}
	if (state->stats->method == GS_METHOD_MERGE)
		gs_merge_sort(state->words, state->scratch, sort->nrows);
	else if (state->stats->method == GS_METHOD_RADIX)
	{
		uint64_t   *sorted = gs_radix_sort(state->words, state->scratch, sort->nrows,
										   state->number_bits,
										   state->packing.chunks[0].bits, host,
										   &state->stats->passes);

		if (sorted != state->words)
		{
			state->scratch = state->words;
			state->words = sorted;
		}
	}
	if (refine)
	{
		if (state->packing.nchunks > 0 && !state->packing.chunks[0].is_tail)
			next.chunk = 1;
		refine_ties(state, 0, sort->nrows, next);
	}
	return GS_STATUS_OK;
}

/* Is the record the same as that of the previous rows with this key? */
static inline bool
agrees(RecordSamples *samples, uint64_t key, const uint64_t *record, size_t nbytes)
{
	size_t		place = (size_t) ((key * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - SAMPLE_BITS));

	while (samples->records[place] != NULL && samples->keys[place] != key)
		place = (place + 1) & (NSAMPLES - 1);
	if (samples->records[place] != NULL)
		return memcmp(samples->records[place], record, nbytes) == 0;
	samples->keys[place] = key;
	samples->records[place] = record;
	return ++samples->nkeys <= NSAMPLES / 2;
}

/* The same for n records of a batch.  A NULL is not in the key words, so it ends the check. */
static void
sample_records(RecordSamples *samples, const GsBatch *batch, size_t start, size_t n,
			   const uint64_t *keys, const GsKeyLayout *layout)
{
	for (size_t i = 0; i < n && samples->decisive; i++)
	{
		const uint64_t *record = gs_batch_record(batch, start + i);

		samples->decisive =
			agrees(samples, keys[i], record, (size_t) layout->nwords * sizeof(uint64_t)) &&
			(layout->keys_only || gs_record_nulls(record, layout->nwords) == 0);
	}
}

/*
 * Computes the words of all rows, in input order.  Returns whether equal words can
 * belong to different keys, which samples (may be NULL) can rule out.
 */
static bool
make_first_words(GsWordSortState *state, InputOrder *order, RecordSamples *samples)
{
	const GsWordSort *sort = state->sort;
	const GsKeyPacking *packing = &state->packing;
	bool		keys_only = sort->layout->keys_only;
	const GsKeyChunk *chunk = NULL;
	GsKeyChunksFunction chunk_bits_of = NULL;
	uint64_t   *out = state->words;
	uint64_t	previous = 0;
	bool		ascending = true;
	bool		descending = true;

	if (packing->nchunks > 0 && !packing->chunks[0].is_tail)
	{
		chunk = &packing->chunks[0];
		chunk_bits_of = gs_key_chunks_function(packing, chunk);
	}

	for (size_t b = 0; b < sort->nbatches; b++)
	{
		const GsBatch *batch = &sort->batches[b];

		for (size_t start = 0; start < batch->nrows; start += CHECK_EVERY)
		{
			size_t		end = Min(start + CHECK_EVERY, batch->nrows);

			sort->host->check_interrupts(sort->host->arg);
			if (chunk != NULL)
				chunk_bits_of(packing, chunk, gs_batch_record(batch, start),
							  -(ptrdiff_t) batch->record_bytes, end - start, out);
			else
				memset(out, 0, (end - start) * sizeof(uint64_t));
			if (samples != NULL && samples->decisive)
				sample_records(samples, batch, start, end - start, out, sort->layout);
			if (out == state->words)
				previous = *out;
			for (size_t entry = start; entry < end; entry++)
			{
				uint64_t	key = *out;
				size_t		unit = keys_only ? entry :
					gs_record_unit(gs_batch_record(batch, entry), packing->nwords);

				ascending &= key >= previous;
				descending &= key <= previous;
				previous = key;
				*out++ = key << state->number_bits |
					gs_row_number(&sort->numbering, b, unit);
			}
		}
	}
	order->ascending = ascending;
	order->descending = descending;
	if (samples != NULL && samples->decisive)
		return false;
	return packing->nchunks > 1 || (packing->nchunks == 1 && chunk == NULL) ||
		sort->compare != NULL;
}

/*
 * Input in descending order is reversed as a whole, and then each group of equal
 * keys once more, because equal keys keep their input order.
 */
static void
reverse_range(GsWordSortState *state, size_t start, size_t end)
{
	uint64_t   *words = state->words;

	for (size_t i = start, j = end; i + 1 < j; i++)
	{
		uint64_t	swap = words[--j];

		check_interrupts(state, i);
		words[j] = words[i];
		words[i] = swap;
	}
}

/* Where the group of equal keys that starts at `start` ends. */
static size_t
tie_group_end(const GsWordSortState *state, size_t start, size_t end)
{
	uint64_t	key = state->words[start] >> state->number_bits;
	size_t		i = start + 1;

	while (i < end && state->words[i] >> state->number_bits == key)
	{
		check_interrupts(state, i);
		i++;
	}
	return i;
}

static void
reverse_all(GsWordSortState *state)
{
	size_t		n = state->sort->nrows;

	reverse_range(state, 0, n);
	for (size_t start = 0, end; start < n; start = end)
	{
		check_interrupts(state, start);
		end = tie_group_end(state, start, n);
		reverse_range(state, start, end);
	}
}

/* ------------------------------------------------------------------- ties */

/* Sorts a tie group by the bits of one chunk. */
static void
sort_by_bits(GsWordSortState *state, size_t start, size_t end, GsKeyPosition *position)
{
	const GsKeyChunk *chunk = &state->packing.chunks[position->chunk];
	GsKeyChunkFunction bits_of = gs_key_chunk_function(&state->packing, chunk);
	uint64_t	previous = 0;
	bool		ascending = true;

	for (size_t i = start; i < end; i++)
	{
		check_interrupts(state, i);
		prefetch(state, i, end);
		set_key(state, i, bits_of(&state->packing, chunk, record_of(state, state->words[i])),
				&previous, &ascending);
	}
	if (!ascending)
		gs_sort_words(state, start, end, chunk->bits);
	position->chunk++;
	position->depth = TAIL_START;
}

/*
 * Sorts words[start..end), which are equal before position, by the rest of the key.
 * Recurses into all groups of remaining ties but the largest, so that the depth is
 * at most log2 of the number of rows.
 */
static void
sort_tie_group(GsWordSortState *state, size_t start, size_t end, GsKeyPosition position)
{
	while (end - start > 1)
	{
		size_t		largest = start;
		size_t		largest_end = start + 1;

		if (position.chunk == state->packing.nchunks)
		{
			if (state->sort->compare != NULL)
			{
				gs_compare_sort(state, start, end);
				state->stats->all_compared = end - start == state->sort->nrows;
			}
			return;
		}
		if (state->packing.chunks[position.chunk].is_tail)
			gs_tail_sort(state, start, end, &position);
		else
			sort_by_bits(state, start, end, &position);
		if (position.chunk == state->packing.nchunks && state->sort->compare == NULL)
			return;

		for (size_t group = start, next; group < end; group = next)
		{
			next = tie_group_end(state, group, end);
			if (next - group > largest_end - largest)
			{
				if (largest_end - largest > 1)
					sort_tie_group(state, largest, largest_end, position);
				largest = group;
				largest_end = next;
			}
			else if (next - group > 1)
				sort_tie_group(state, group, next, position);
		}
		start = largest;
		end = largest_end;
	}
}

/* Is words[i] equal to the next one? */
static inline bool
is_tied(const GsWordSortState *state, size_t i)
{
	return state->words[i] >> state->number_bits ==
		state->words[i + 1] >> state->number_bits;
}

/*
 * Most tie groups are short, and their records are far from each other.  Prefetches
 * for the groups further on: first the row, which leads to its record, then the
 * record.
 */
static inline void
prefetch_ties(const GsWordSortState *state, size_t i, size_t end)
{
	size_t		row = i + 4 * PREFETCH_DISTANCE;
	size_t		record = i + 2 * PREFETCH_DISTANCE;

	if (row + 1 >= end)
		return;
	if (!state->sort->layout->keys_only && is_tied(state, row))
	{
		__builtin_prefetch(row_of(state, state->words[row]));
		__builtin_prefetch(row_of(state, state->words[row + 1]));
	}
	if (is_tied(state, record))
	{
		__builtin_prefetch(record_of(state, state->words[record]));
		__builtin_prefetch(record_of(state, state->words[record + 1]));
	}
}

/* Sorts each group of equal words by the rest of the key, from position on. */
static void
refine_ties(GsWordSortState *state, size_t start, size_t end, GsKeyPosition position)
{
	for (size_t group = start, next; group < end; group = next)
	{
		check_interrupts(state, group);
		prefetch_ties(state, group, end);
		next = tie_group_end(state, group, end);
		if (next - group > 1)
		{
			state->stats->tied_rows += next - group;
			sort_tie_group(state, group, next, position);
		}
	}
}
