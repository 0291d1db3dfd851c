/*-------------------------------------------------------------------------
 *
 * word_sort.c
 *	  Sorts the records of a set of batches: on this processor, in memory.
 *
 * The idea is to move as little as possible: what is sorted are 64-bit
 * *words*, the first bits of the packed key above the number of the row.
 *
 *	   63                        number_bits              0
 *	  | first level of the key  | batch no. | unit in batch |
 *
 * 5 M rows of 200 bytes have numbers of 28 bits and leave 36 for the key, so
 * five radix passes over 8-byte words order them: by everything, if the packed
 * key is no wider; otherwise up to ties.  Row numbers ascend in input order and stay
 * with their words, so any correct sort of the words is a stable sort of the
 * rows, and a word never equals another.
 *
 * Ties are then refined level by level (key_pack.h): a run of equal words is
 * sorted again by words that hold the next level's bits, its ties by the level
 * after.  For a random bigint the first 36 bits leave next to no ties; for a
 * text, some.
 *
 * The bytes of a text past the eighth are a tail level: tail_sort.c.
 *
 * Runs of 2 are the most frequent by far; all runs of one level share its
 * precomputed pieces, so a small one costs two record reads and a comparison.
 *
 * Few distinct keys, each many times, would make all rows ties of the first
 * bits, to be sorted again by bits that say nothing new.  So while the first
 * words are made, a small table remembers one record for each first word; as
 * long as every row with that word has that very record, ties are equal keys,
 * and nothing is left to refine.
 *
 * Where a key only begins an order, the driver's comparison function (engine.h)
 * decides the ties that its last level leaves, as one more level: compare_sort.c.
 *
 * Before every sort a run is checked for being in order already, which costs
 * nothing beside making its words; the whole input also for being in the
 * opposite order.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/word_sort_state.h"

#include <string.h>

#include "common/radix_sort.h"

/* Bits beyond log2(rows) that leave random keys few ties: 1 row in 2^n. */
#define DISTINGUISHING_BITS	14

/*
 * A hash table with one record for each first word seen, while first words
 * decide records.  A row with another record ends it, and so does a table half
 * full: it costs next to nothing where keys are many.
 */
#define SAMPLE_BITS		12
#define NSAMPLES		((size_t) 1 << SAMPLE_BITS)

typedef struct RecordSamples
{
	bool		decisive;		/* so far, equal words had equal records */
	size_t		nkeys;
	uint64_t	keys[NSAMPLES];
	const uint64_t *records[NSAMPLES];	/* NULL if the place is free */
} RecordSamples;

/* What making the words of a run found out. */
typedef struct TieGroupOrder
{
	bool		ascending;		/* no key is below the one before */
	bool		descending;		/* none is above */
} TieGroupOrder;

_Static_assert(sizeof(GsWordSortState) <= GS_WORD_SORT_STATE_BYTES, "SortState has grown");

static bool make_first_words(GsWordSortState *state, TieGroupOrder *order, RecordSamples *samples);
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
 * How wide a level is: what the row number leaves, but for few rows no more
 * than it should take to tell most of them apart.  Bits of a level cost passes
 * over all rows; the next level costs only where there are ties.
 */
static int
chunk_bits(const GsWordSort *sort)
{
	int			most = 64 - sort->numbering.number_bits;
	int			enough = gs_bit_width(sort->nrows) + DISTINGUISHING_BITS;

	return Min(most, Max(enough, GS_MIN_KEY_CHUNK_BITS));
}

GsStatus
gs_word_sort(GsWordSort *sort, GsEngineStats *stats)
{
	const GsRuntime *host = sort->host;
	GsWordSortState  *state = host->allocate(host->arg, sizeof(GsWordSortState));
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

	/* in order by its first bits, perhaps, but not by the rest */
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

/* The whole input, from records to an order. */
static GsStatus
sort_all(GsWordSortState *state)
{
	GsWordSort  *sort = state->sort;
	const GsRuntime *host = sort->host;
	bool		refine;
	TieGroupOrder	order;
	RecordSamples *samples = NULL;
	GsKeyPosition next = {0, TAIL_START};

	/* the words' scratch is not in use yet */
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

/* Does the record agree with that of the rows before with the same key? */
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

/* The same for n records of a batch; a NULL ends it, being in no key word. */
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
 * Makes the words of all rows, in input order.  Returns whether equal words
 * can still belong to different keys; samples, if given, help to tell.
 */
static bool
make_first_words(GsWordSortState *state, TieGroupOrder *order, RecordSamples *samples)
{
	const GsWordSort *sort = state->sort;
	const GsKeyPacking *packing = &state->packing;
	bool		keys_only = sort->layout->keys_only;
	const GsKeyChunk *chunk = NULL;
	GsKeyChunksFunction levels_values = NULL;
	uint64_t   *out = state->words;
	uint64_t	previous = 0;
	bool		ascending = true;
	bool		descending = true;

	if (packing->nchunks > 0 && !packing->chunks[0].is_tail)
	{
		chunk = &packing->chunks[0];
		levels_values = gs_key_chunks_function(packing, chunk);
	}

	for (size_t b = 0; b < sort->nbatches; b++)
	{
		const GsBatch *batch = &sort->batches[b];

		for (size_t start = 0; start < batch->nrows; start += CHECK_EVERY)
		{
			size_t		end = Min(start + CHECK_EVERY, batch->nrows);

			sort->host->check_interrupts(sort->host->arg);
			if (chunk != NULL)
				levels_values(packing, chunk, gs_batch_record(batch, start),
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
 * Input in descending order: reversed as a whole, then each run of equal keys
 * once more, since equal keys stay in input order.
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

/* Sorts a run by the bits of one level. */
static void
sort_by_bits(GsWordSortState *state, size_t start, size_t end, GsKeyPosition *position)
{
	const GsKeyChunk *chunk = &state->packing.chunks[position->chunk];
	GsKeyChunkFunction level_value = gs_key_chunk_function(&state->packing, chunk);
	uint64_t	previous = 0;
	bool		ascending = true;

	for (size_t i = start; i < end; i++)
	{
		check_interrupts(state, i);
		prefetch(state, i, end);
		set_key(state, i, level_value(&state->packing, chunk, record_of(state, state->words[i])),
				&previous, &ascending);
	}
	if (!ascending)
		gs_sort_words(state, start, end, chunk->bits);
	position->chunk++;
	position->depth = TAIL_START;
}

/*
 * Sorts words[start..end), equal in everything before position, by the rest
 * of the key.  Recurses into all runs of ties but the largest, so that the
 * depth stays within log2 of the rows.
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

		for (size_t run = start, next; run < end; run = next)
		{
			next = tie_group_end(state, run, end);
			if (next - run > largest_end - largest)
			{
				if (largest_end - largest > 1)
					sort_tie_group(state, largest, largest_end, position);
				largest = run;
				largest_end = next;
			}
			else if (next - run > 1)
				sort_tie_group(state, run, next, position);
		}
		start = largest;
		end = largest_end;
	}
}

/*
 * Most runs are short, and their records are nowhere near each other: so those
 * of runs further on are brought into the cache, the row first, which knows its
 * record.
 */
static inline bool
is_tied(const GsWordSortState *state, size_t i)
{
	return state->words[i] >> state->number_bits ==
		state->words[i + 1] >> state->number_bits;
}

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

/* Sorts every run of equal words by what position says comes next. */
static void
refine_ties(GsWordSortState *state, size_t start, size_t end, GsKeyPosition position)
{
	for (size_t run = start, next; run < end; run = next)
	{
		check_interrupts(state, run);
		prefetch_ties(state, run, end);
		next = tie_group_end(state, run, end);
		if (next - run > 1)
		{
			state->stats->tied_rows += next - run;
			sort_tie_group(state, run, next, position);
		}
	}
}
