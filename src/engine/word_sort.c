/*-------------------------------------------------------------------------
 *
 * word_sort.c
 *	  Sorts the rows of a set of batches by their key records, in memory.
 *
 * Only 64-bit *words* are moved: the first bits of the packed key, and below them
 * the number of the row (README.md).  5 M rows of 200 bytes have numbers of 28 bits and leave 36
 * for the key, so five radix passes over 8-byte words order them.  If the packed key is no wider,
 * the order is complete; otherwise tie_sort.c resolves ties.  For a random bigint, 36 bits leave
 * almost no ties; for a text, some.
 *
 * With few distinct keys, all rows would tie in the first bits, and would be sorted
 * again by bits that are equal as well.  So while the first words are computed, a
 * small hash table has one row for each first word.  If all rows with equal first words
 * have equal keys, no tie needs a further sort.
 *
 * Before it is sorted, the input is checked for being in ascending or descending
 * order, which costs little compared with computing the words.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/word_sort_state.h"

#include <string.h>

#include "common/key_compare.h"
#include "common/radix_sort.h"

/* With this many bits more than log2(rows), one random key in 2^14 ties. */
#define DISTINGUISHING_BITS	14

/*
 * A hash table with one row for each first word.  It is abandoned at the first row with
 * another key, and when it is half full, so it costs little if there are many distinct
 * keys.
 * Every row is checked, unlike in key/key_distinct.h, because the result is relied on.
 */
#define SAMPLE_BITS		12
#define NSAMPLES		((size_t) 1 << SAMPLE_BITS)

typedef struct KeySample
{
	uint64_t	word;
	const uint64_t *record;		/* NULL: free */
	const char *row;			/* the record if keys_only */
} KeySample;

typedef struct KeySamples
{
	bool		decisive;		/* so far, equal words have equal keys */
	size_t		nwords;
	KeySample	samples[NSAMPLES];
} KeySamples;

_Static_assert(sizeof(GsWordSortState) <= GS_WORD_SORT_STATE_BYTES, "GsWordSortState has grown");

bool
gs_row_numbering(GsRowNumbering *numbering, size_t nbatches, size_t nunits)
{
	int			batch_bits = nbatches > 1 ? gs_bit_width(nbatches - 1) : 0;

	numbering->unit_bits = nunits > 1 ? gs_bit_width(nunits - 1) : 0;
	numbering->number_bits = numbering->unit_bits + batch_bits;
	if (numbering->number_bits > GS_MAX_NUMBER_BITS)
		return false;
	numbering->number_mask = (UINT64_C(1) << numbering->number_bits) - 1;
	return true;
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

static bool
allocate_scratch(GsWordSortState *state, size_t nwords)
{
	const GsRuntime *runtime = state->sort->runtime;

	state->scratch = runtime->allocate(runtime->arg, nwords * sizeof(uint64_t));
	state->scratch_words = nwords;
	return state->scratch != NULL;
}

static void
free_scratch(GsWordSortState *state)
{
	const GsRuntime *runtime = state->sort->runtime;

	if (state->scratch != NULL)
		runtime->release(runtime->arg, state->scratch, state->scratch_words * sizeof(uint64_t));
	state->scratch = NULL;
}

/* Has the row the same key as the previous rows with this word? */
static inline bool
agrees(KeySamples *samples, const GsKeyLayout *layout, const KeySample *row)
{
	size_t		place = (size_t) ((row->word * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - SAMPLE_BITS));
	KeySample  *sample = &samples->samples[place];

	while (sample->record != NULL && sample->word != row->word)
	{
		place = (place + 1) & (NSAMPLES - 1);
		sample = &samples->samples[place];
	}
	if (sample->record != NULL)
		return gs_key_compare(layout, sample->record, sample->row, row->record, row->row) == 0;
	*sample = *row;
	return ++samples->nwords <= NSAMPLES / 2;
}

/* Samples n rows of a batch; stops, with samples->decisive cleared, if one does not agree. */
static void
sample_keys(KeySamples *samples, const GsBatch *batch, size_t start, size_t n,
			const uint64_t *words, const GsKeyLayout *layout)
{
	for (size_t i = 0; i < n && samples->decisive; i++)
	{
		const KeySample row = {
			.word = words[i],
			.record = gs_batch_record(batch, start + i),
			.row = gs_batch_pushed(batch, layout, start + i)
		};

		samples->decisive = agrees(samples, layout, &row);
	}
}

/*
 * Computes the words of all rows, in input order.  Returns whether equal words can
 * belong to different keys, which samples (may be NULL) can rule out.  *method becomes PRESORTED
 * or REVERSED if the words are in order; else NONE.
 */
static bool
make_first_words(GsWordSortState *state, KeySamples *samples, GsMethod *method)
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

			sort->runtime->check_interrupts(sort->runtime->arg);
			if (chunk != NULL)
				chunk_bits_of(packing, chunk, gs_batch_record(batch, start),
							  -(ptrdiff_t) batch->record_bytes, end - start, out);
			else
				memset(out, 0, (end - start) * sizeof(uint64_t));
			if (samples != NULL && samples->decisive)
				sample_keys(samples, batch, start, end - start, out, sort->layout);
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
	*method = ascending ? GS_METHOD_PRESORTED : descending ? GS_METHOD_REVERSED : GS_METHOD_NONE;
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

/* Comparisons need two words for each row of a tie group.  False: out of memory. */
static bool
make_scratch_for_ties(GsWordSortState *state)
{
	const size_t nrows = state->sort->nrows;
	size_t		largest = 0;

	for (size_t group = 0, next; group < nrows && largest < nrows - group; group = next)
	{
		next = tie_group_end(state, group, nrows);
		largest = Max(largest, next - group);
	}
	if (2 * largest <= state->scratch_words)
		return true;
	free_scratch(state);
	return allocate_scratch(state, 2 * largest);
}

/* Sorts all rows: from records to words in order. */
static GsStatus
sort_all(GsWordSortState *state)
{
	const GsWordSort *sort = state->sort;
	GsEngineStats *stats = state->stats;
	bool		refine;
	KeySamples *samples = NULL;

	/* the scratch of the words is not used yet: put the table there */
	if (state->packing.nchunks > 1 && sort->compare == NULL &&
		sort->nrows * sizeof(uint64_t) >= sizeof(KeySamples))
	{
		if (!allocate_scratch(state, sort->nrows))
			return GS_STATUS_OOM;
		samples = (KeySamples *) state->scratch;
		samples->decisive = true;
		samples->nwords = 0;
		memset(samples->samples, 0, sizeof(samples->samples));
	}
	refine = make_first_words(state, samples, &stats->method);
	if (state->scratch == NULL && (refine || stats->method == GS_METHOD_NONE) &&
		!allocate_scratch(state, sort->nrows))
		return GS_STATUS_OOM;
	if (stats->method == GS_METHOD_REVERSED)
		reverse_all(state);
	else if (stats->method == GS_METHOD_NONE && sort->nrows <= GS_MERGE_SORT_MAX)
	{
		stats->method = GS_METHOD_MERGE;
		gs_merge_sort(state->words, state->scratch, sort->nrows);
	}
	else if (stats->method == GS_METHOD_NONE)
	{
		uint64_t   *sorted = gs_radix_sort(state->words, state->scratch, sort->nrows,
										   state->number_bits, state->packing.chunks[0].bits,
										   sort->runtime, &stats->passes);

		stats->method = GS_METHOD_RADIX;
		if (sorted != state->words)
		{
			state->scratch = state->words;
			state->words = sorted;
		}
	}
	if (refine)
	{
		if (sort->compare != NULL && !make_scratch_for_ties(state))
			return GS_STATUS_OOM;
		gs_tie_sort(state, state->packing.nchunks > 0 && !state->packing.chunks[0].is_tail ? 1 : 0);
	}
	return GS_STATUS_OK;
}

GsStatus
gs_word_sort(GsWordSort *sort, GsEngineStats *stats)
{
	const GsRuntime *runtime = sort->runtime;
	GsWordSortState *state = runtime->allocate(runtime->arg, sizeof(GsWordSortState));
	GsStatus	status;

	if (state == NULL)
		return GS_STATUS_OOM;
	state->sort = sort;
	state->stats = stats;
	state->extract_bits = gs_extract_bits_function();
	state->number_bits = sort->numbering.number_bits;
	state->scratch = NULL;
	state->words = runtime->allocate(runtime->arg, sort->nrows * sizeof(uint64_t));
	if (state->words == NULL)
	{
		runtime->release(runtime->arg, state, sizeof(GsWordSortState));
		return GS_STATUS_OOM;
	}
	state->chunk_bits = chunk_bits(sort);
	gs_key_packing_init(&state->packing, sort->layout, state->chunk_bits);
	stats->key_bits = state->packing.total_bits;
	stats->key_tails = state->packing.has_tails;
	stats->all_compared = false;

	status = sort_all(state);
	free_scratch(state);
	if (status == GS_STATUS_OK)
		sort->words = state->words;
	else
		runtime->release(runtime->arg, state->words, sort->nrows * sizeof(uint64_t));
	runtime->release(runtime->arg, state, sizeof(GsWordSortState));
	return status;
}
