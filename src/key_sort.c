/*-------------------------------------------------------------------------
 *
 * key_sort.c
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
 * A tail level (the bytes of a text past the eighth) takes what the rows of
 * the run have in common for granted and loads the next eight bytes:
 *
 *	  http://www.example.org/a/001		common: "http://www.example.org/"
 *	  http://www.example.org/a/002		eight bytes: "a/001", padded with 0
 *	  http://www.example.org/b/001		varying bits: few, so they fit a word
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
 * decides the ties that its last level leaves, as one more level, by a merge
 * sort: it takes the fewest comparisons, is stable, and of few different rows it takes fewer
 * where it merges them many at a time (count_before()).
 *
 * Before every sort a run is checked for being in order already, which costs
 * nothing beside making its words; the whole input also for being in the
 * opposite order.
 *
 *-------------------------------------------------------------------------
 */
#include "key_sort.h"

#include <string.h>

#include "key_codec.h"
#include "key_pack.h"
#include "radix_sort.h"

#define Min(a, b)		((a) < (b) ? (a) : (b))
#define Max(a, b)		((a) > (b) ? (a) : (b))

/* Bits beyond log2(rows) that leave random keys few ties: 1 row in 2^n. */
#define DISTINGUISHING_BITS	14

/* Rows between two interrupt checks: about 0.5 ms if every access misses. */
#define CHECK_EVERY		((size_t) 1 << 12)

/* Bytes of tails compared between two: a few ms. */
#define CHECK_BYTES		((size_t) 16 << 20)

/* How far ahead records of scattered rows are prefetched. */
#define PREFETCH_DISTANCE	16

typedef struct SortState
{
	GsKeySort  *sort;
	GsFigures  *figures;
	GsKeyPacking packing;
	GsSqueezeFunction squeeze;
	int			number_bits;
	int			level_bits;
	uint64_t	number_mask;
	uint64_t   *words;
	uint64_t   *scratch;		/* NULL until something must be sorted */
} SortState;

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
typedef struct RunOrder
{
	bool		ascending;		/* no key is below the one before */
	bool		descending;		/* none is above */
} RunOrder;

/* Where a run is in the key. */
typedef struct KeyPosition
{
	int			level;
	uint32_t	depth;			/* in a tail level: bytes known to be equal */
} KeyPosition;

#define TAIL_START	8			/* the prefix field held the bytes before */

_Static_assert(sizeof(SortState) <= GS_KEY_SORT_STATE_BYTES, "SortState has grown");

static bool make_first_words(SortState *state, RunOrder *order, RecordSamples *samples);
static GsStatus sort_all(SortState *state);
static void reverse_all(SortState *state);
static void refine_ties(SortState *state, size_t start, size_t end, KeyPosition position);

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
level_bits(const GsKeySort *sort)
{
	int			most = 64 - sort->numbering.number_bits;
	int			enough = gs_bit_width(sort->nrows) + DISTINGUISHING_BITS;

	return Min(most, Max(enough, GS_MIN_LEVEL_BITS));
}

GsStatus
gs_key_sort(GsKeySort *sort, GsFigures *figures)
{
	const GsHost *host = sort->host;
	SortState  *state = host->allocate(host->arg, sizeof(SortState));
	GsStatus	status;

	if (state == NULL)
		return GS_STATUS_OOM;
	state->sort = sort;
	state->figures = figures;
	state->squeeze = gs_squeeze_function();
	state->number_bits = sort->numbering.number_bits;
	state->number_mask = (UINT64_C(1) << state->number_bits) - 1;
	state->scratch = NULL;
	state->words = host->allocate(host->arg, sort->nrows * sizeof(uint64_t));
	if (state->words == NULL)
	{
		host->release(host->arg, state);
		return GS_STATUS_OOM;
	}
	state->level_bits = level_bits(sort);
	gs_key_packing_init(&state->packing, sort->layout, state->level_bits);
	figures->key_bits = state->packing.total_bits;
	figures->key_tails = state->packing.has_tails;
	figures->all_compared = false;

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

/* For loops over words: checks at every CHECK_EVERY-th. */
static inline void
check_interrupts(const SortState *state, size_t i)
{
	if ((i & (CHECK_EVERY - 1)) == 0)
		state->sort->host->check_interrupts(state->sort->host->arg);
}

static inline const GsBatch *
batch_of(const SortState *state, uint64_t word)
{
	return gs_row_batch(&state->sort->numbering, state->sort->batches,
						word & state->number_mask);
}

static inline const char *
row_of(const SortState *state, uint64_t word)
{
	return gs_batch_row(batch_of(state, word),
						gs_row_unit(&state->sort->numbering, word & state->number_mask));
}

static inline const uint64_t *
record_of(const SortState *state, uint64_t word)
{
	if (state->sort->layout->keys_only)
		return gs_batch_record(batch_of(state, word),
							   gs_row_unit(&state->sort->numbering,
										   word & state->number_mask));
	return gs_batch_record_of_row(batch_of(state, word), row_of(state, word));
}

/* Sorts words[start..end) as whole numbers. */
static void
sort_words(SortState *state, size_t start, size_t end, int key_bits)
{
	uint64_t   *words = state->words + start;
	uint64_t   *scratch = state->scratch + start;
	size_t		n = end - start;

	/* in order by its first bits, perhaps, but not by the rest */
	if (state->figures->method != GS_METHOD_RADIX)
		state->figures->method = n <= GS_MERGE_SORT_MAX ? GS_METHOD_MERGE : GS_METHOD_RADIX;
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
sort_all(SortState *state)
{
	GsKeySort  *sort = state->sort;
	const GsHost *host = sort->host;
	bool		refine;
	RunOrder	order;
	RecordSamples *samples = NULL;
	KeyPosition next = {0, TAIL_START};

	/* the words' scratch is not in use yet */
	if (state->packing.nlevels > 1 && !state->packing.has_tails && sort->compare == NULL &&
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
		state->figures->method = GS_METHOD_PRESORTED;
	else if (order.descending)
	{
		state->figures->method = GS_METHOD_REVERSED;
		reverse_all(state);
	}
	else
		state->figures->method = sort->nrows <= GS_MERGE_SORT_MAX ?
			GS_METHOD_MERGE : GS_METHOD_RADIX;

	if (state->scratch == NULL && (refine || !(order.ascending || order.descending)))
	{
		state->scratch = host->allocate(host->arg, sort->nrows * sizeof(uint64_t));
		if (state->scratch == NULL)
			return GS_STATUS_OOM;
	}
	if (state->figures->method == GS_METHOD_MERGE)
		gs_merge_sort(state->words, state->scratch, sort->nrows);
	else if (state->figures->method == GS_METHOD_RADIX)
	{
		uint64_t   *sorted = gs_radix_sort(state->words, state->scratch, sort->nrows,
										   state->number_bits,
										   state->packing.levels[0].bits, host,
										   &state->figures->passes);

		if (sorted != state->words)
		{
			state->scratch = state->words;
			state->words = sorted;
		}
	}
	if (refine)
	{
		if (state->packing.nlevels > 0 && !state->packing.levels[0].is_tail)
			next.level = 1;
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
make_first_words(SortState *state, RunOrder *order, RecordSamples *samples)
{
	const GsKeySort *sort = state->sort;
	const GsKeyPacking *packing = &state->packing;
	bool		keys_only = sort->layout->keys_only;
	const GsLevel *level = NULL;
	GsLevelsFunction levels_values = NULL;
	uint64_t   *out = state->words;
	uint64_t	previous = 0;
	bool		ascending = true;
	bool		descending = true;

	if (packing->nlevels > 0 && !packing->levels[0].is_tail)
	{
		level = &packing->levels[0];
		levels_values = gs_levels_function(packing, level);
	}

	for (size_t b = 0; b < sort->nbatches; b++)
	{
		const GsBatch *batch = &sort->batches[b];

		for (size_t start = 0; start < batch->nrows; start += CHECK_EVERY)
		{
			size_t		end = Min(start + CHECK_EVERY, batch->nrows);

			sort->host->check_interrupts(sort->host->arg);
			if (level != NULL)
				levels_values(packing, level, gs_batch_record(batch, start),
							  -(ptrdiff_t) batch->record_bytes, end - start, out);
			else
				memset(out, 0, (end - start) * sizeof(uint64_t));
			if (samples != NULL && samples->decisive)
				sample_records(samples, batch, start, end - start, out, sort->layout);
			if (out == state->words)
				previous = *out;
			for (size_t slot = start; slot < end; slot++)
			{
				uint64_t	key = *out;
				size_t		unit = keys_only ? slot :
					gs_record_unit(gs_batch_record(batch, slot), packing->nwords);

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
	return packing->nlevels > 1 || (packing->nlevels == 1 && level == NULL) ||
		sort->compare != NULL;
}

/*
 * Input in descending order: reversed as a whole, then each run of equal keys
 * once more, since equal keys stay in input order.
 */
static void
reverse_range(SortState *state, size_t start, size_t end)
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
run_end(const SortState *state, size_t start, size_t end)
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
reverse_all(SortState *state)
{
	size_t		n = state->sort->nrows;

	reverse_range(state, 0, n);
	for (size_t start = 0, end; start < n; start = end)
	{
		check_interrupts(state, start);
		end = run_end(state, start, n);
		reverse_range(state, start, end);
	}
}

/* ------------------------------------------------------------------- ties */

/*
 * Brings what is needed of the rows further on in a run into the cache: first
 * the row, which knows its record, then the record.
 */
static inline void
prefetch(const SortState *state, size_t i, size_t end)
{
	if (!state->sort->layout->keys_only && i + 2 * PREFETCH_DISTANCE < end)
		__builtin_prefetch(row_of(state, state->words[i + 2 * PREFETCH_DISTANCE]));
	if (i + PREFETCH_DISTANCE < end)
		__builtin_prefetch(record_of(state, state->words[i + PREFETCH_DISTANCE]));
}

/* Puts another key over the number of words[i]; notes if that breaks the order. */
static inline void
set_key(SortState *state, size_t i, uint64_t key, uint64_t *previous, bool *ascending)
{
	uint64_t   *word = &state->words[i];

	*ascending &= key >= *previous;
	*previous = key;
	*word = key << state->number_bits | (*word & state->number_mask);
}

/* Sorts a run by the bits of one level. */
static void
sort_by_bits(SortState *state, size_t start, size_t end, KeyPosition *position)
{
	const GsLevel *level = &state->packing.levels[position->level];
	GsLevelFunction level_value = gs_level_function(&state->packing, level);
	uint64_t	previous = 0;
	bool		ascending = true;

	for (size_t i = start; i < end; i++)
	{
		check_interrupts(state, i);
		prefetch(state, i, end);
		set_key(state, i, level_value(&state->packing, level, record_of(state, state->words[i])),
				&previous, &ascending);
	}
	if (!ascending)
		sort_words(state, start, end, level->bits);
	position->level++;
	position->depth = TAIL_START;
}

/* The bytes of a variable-width value. */
typedef struct Bytes
{
	const unsigned char *data;
	uint32_t	len;
} Bytes;

static inline Bytes
tail_bytes(const SortState *state, const GsComponent *tail, uint64_t word)
{
	const char *row = row_of(state, word);
	uint64_t	place = gs_batch_record_of_row(batch_of(state, word), row)[tail->word];
	Bytes		bytes;

	bytes.data = (const unsigned char *) row + gs_tail_offset(place);
	bytes.len = gs_tail_len(place);
	return bytes;
}

static inline uint64_t
bytes_at(Bytes bytes, uint32_t depth)
{
	return bytes.len <= depth ? 0 : gs_load_prefix(bytes.data + depth, bytes.len - depth);
}

/* The first place from `at` to `end` where a and b differ, or end. */
static uint32_t
first_difference(const unsigned char *a, const unsigned char *b, uint32_t at, uint32_t end)
{
	while (at + 8 <= end && memcmp(a + at, b + at, 8) == 0)
		at += 8;
	while (at < end && a[at] == b[at])
		at++;
	return at;
}

/* The first byte from `at` to `end` that is not zero, or end. */
static uint32_t
first_nonzero(const unsigned char *a, uint32_t at, uint32_t end)
{
	static const unsigned char zeros[8];

	while (at + 8 <= end && memcmp(a + at, zeros, 8) == 0)
		at += 8;
	while (at < end && a[at] == 0)
		at++;
	return at;
}

/* A stretch of a value in which all bytes are zero; what is behind it is not known. */
typedef struct ZeroStretch
{
	uint32_t	start;
	uint32_t	end;
} ZeroStretch;

/*
 * first_nonzero() for many places in one value, each byte of which is looked
 * at about once.
 */
static uint32_t
zeros_end(const unsigned char *a, uint32_t at, uint32_t end, ZeroStretch *known)
{
	if (at < known->start)
	{
		uint32_t	stop = first_nonzero(a, at, Min(known->start, end));

		if (stop < known->start)
			known->end = stop;
		known->start = at;
	}
	else if (at > known->end)
		known->start = known->end = at;
	if (known->end < end)
		known->end = first_nonzero(a, known->end, end);
	return Min(known->end, end);
}

/*
 * How many bytes all values of a run have in common, the shorter ones padded
 * with zeros, given that depth of them are.  The work is in proportion to the
 * bytes of the values.
 */
static uint32_t
common_length(const SortState *state, const GsComponent *tail,
			  size_t start, size_t end, uint32_t depth, uint32_t max_len)
{
	Bytes		longest = {NULL, 0};
	ZeroStretch zeros = {depth, depth};
	uint32_t	common = max_len;
	size_t		compared = 0;

	for (size_t i = start; i < end && longest.len < max_len; i++)
	{
		check_interrupts(state, i);
		longest = tail_bytes(state, tail, state->words[i]);
	}
	for (size_t i = start; i < end && common > depth; i++)
	{
		Bytes		bytes = tail_bytes(state, tail, state->words[i]);
		uint32_t	shared = Min(bytes.len, common);

		prefetch(state, i, end);
		check_interrupts(state, i);
		compared += shared;
		if (compared >= CHECK_BYTES)
		{
			state->sort->host->check_interrupts(state->sort->host->arg);
			compared = 0;
		}
		if (shared > depth)
			shared = first_difference(longest.data, bytes.data, depth, shared);
		else
			shared = depth;
		common = shared < Min(bytes.len, common) ? shared :
			zeros_end(longest.data, Max(shared, depth), common, &zeros);
	}
	return common;
}

/*
 * Sorts a run by the next bytes of a tail.  position moves on by the bytes
 * consumed, or to the next level when the tail is done with.
 */
static void
sort_by_tail(SortState *state, size_t start, size_t end, KeyPosition *position)
{
	const GsLevel *level = &state->packing.levels[position->level];
	const GsComponent *tail = &state->packing.components[level->tail_component];
	int			key_bits = state->level_bits;
	uint32_t	min_len = UINT32_MAX;
	uint32_t	max_len = 0;
	uint64_t	ever_set = 0;
	uint64_t	always_set = UINT64_MAX;
	uint64_t	varying;
	uint64_t	previous = 0;
	bool		ascending = true;

	/* the next eight bytes of each, kept in the scratch */
	for (size_t i = start; i < end; i++)
	{
		Bytes		bytes = tail_bytes(state, tail, state->words[i]);
		uint64_t	code = bytes_at(bytes, position->depth);

		check_interrupts(state, i);
		prefetch(state, i, end);
		state->scratch[i] = code;
		ever_set |= code;
		always_set &= code;
		if (bytes.len < min_len)
			min_len = bytes.len;
		if (bytes.len > max_len)
			max_len = bytes.len;
	}
	varying = ever_set & ~always_set;

	if (varying == 0 && position->depth + 8 < max_len)
	{
		/* nothing to tell: skip all that they have in common */
		position->depth = common_length(state, tail, start, end,
										position->depth + 8, max_len);
		return;
	}
	if (varying == 0)
	{
		/* equal but for zeros at the end: the shorter value is the smaller */
		position->level++;
		position->depth = TAIL_START;
		if (min_len == max_len)
			return;
		for (size_t i = start; i < end; i++)
		{
			uint32_t	len = tail_bytes(state, tail, state->words[i]).len;

			check_interrupts(state, i);
			set_key(state, i, tail->descending ? max_len - len : len - min_len,
					&previous, &ascending);
		}
		if (!ascending)
			sort_words(state, start, end, gs_bit_width(max_len - min_len));
		return;
	}

	/* as many of the varying bits as fit, from the first byte on */
	while (__builtin_popcountll(varying) > key_bits)
		varying &= varying - 1;
	for (size_t i = start; i < end; i++)
	{
		uint64_t	code = state->scratch[i];

		check_interrupts(state, i);
		set_key(state, i, state->squeeze(tail->descending ? ~code : code, varying),
				&previous, &ascending);
	}
	if (!ascending)
		sort_words(state, start, end, __builtin_popcountll(varying));

	/* bytes whose varying bits were all used are equal in what ties now */
	{
		uint64_t	left = (ever_set & ~always_set) & ~varying;

		position->depth += left == 0 ? 8 : (uint32_t) __builtin_clzll(left) / 8;
	}
}

/* Runs of so many rows are sorted by insertion, then merged. */
#define INSERTION_ROWS	6

/* Rows that are compared next to each other are prefetched, and so much of them. */
#define ROWS_AHEAD		6
#define LINES_AHEAD		4
#define CACHE_LINE		64

/* See count_before(). */
#define FIRST_FEW		3

/* The columns of rows are compared: brings the beginning of one further on into the cache. */
static inline void
prefetch_row(const SortState *state, const uint64_t *words, size_t i, size_t n)
{
	if (i + ROWS_AHEAD < n)
	{
		const char *row = row_of(state, words[i + ROWS_AHEAD]);

		for (int line = 0; line < LINES_AHEAD; line++)
			__builtin_prefetch(row + line * CACHE_LINE);
	}
}

static inline bool
is_above(const SortState *state, uint64_t a, uint64_t b)
{
	const GsKeySort *sort = state->sort;

	sort->host->check_interrupts(sort->host->arg);
	return sort->compare(sort->compare_arg, row_of(state, a), row_of(state, b)) > 0;
}

/* Does the first of two rows come before the second, or is it equal if that will do? */
static inline bool
comes_before(const SortState *state, uint64_t a, uint64_t b, bool or_equal)
{
	return or_equal ? !is_above(state, a, b) : is_above(state, b, a);
}

/* How many of the words in order come before another, given the least and the most. */
static size_t
search(const SortState *state, const uint64_t *words, size_t low, size_t high, uint64_t word,
	   bool or_equal)
{
	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;

		if (comes_before(state, words[middle], word, or_equal))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Sorts the first n words of nall. */
static void
insertion_sort(const SortState *state, uint64_t *words, size_t n, size_t nall)
{
	prefetch_row(state, words, 0, nall);
	for (size_t i = 1; i < n; i++)
	{
		uint64_t	word = words[i];
		size_t		place;

		prefetch_row(state, words, i, nall);
		if (!is_above(state, words[i - 1], word))
			continue;
		place = search(state, words, 0, i - 1, word, true);
		memmove(words + place + 1, words + place, (i - place) * sizeof(uint64_t));
		words[place] = word;
	}
}

/*
 * How many of n words in order come before another; so many of the first are known to.
 * Where the first few do, more are looked for at distances that double: equal
 * rows stand together, so merges of few different ones take few comparisons.
 */
static size_t
count_before(const SortState *state, const uint64_t *words, size_t n, uint64_t word,
			 bool or_equal, size_t nknown)
{
	size_t		low = nknown;
	size_t		step = 1;

	for (; low < n && low < FIRST_FEW; low++)
	{
		prefetch_row(state, words, low, n);
		if (!comes_before(state, words[low], word, or_equal))
			return low;
	}
	for (; low + step <= n && comes_before(state, words[low + step - 1], word, or_equal); step *= 2)
		low += step;
	return search(state, words, low, Min(low + step - 1, n), word, or_equal);
}

/*
 * Merges [0..mid) and [mid..n) of words; scratch has room for the first of them.
 * What is in its place already takes next to no comparisons.
 */
static void
merge(const SortState *state, uint64_t *words, uint64_t *scratch, size_t mid, size_t n)
{
	size_t		a = 0;
	size_t		b = mid;
	size_t		out;
	size_t		nmoved;
	size_t		ntaken;

	if (!is_above(state, words[mid - 1], words[mid]))
		return;
	out = count_before(state, words, mid, words[mid], true, 0);
	nmoved = mid - out;
	memcpy(scratch, words + out, nmoved * sizeof(uint64_t));

	/* the right one's first row comes before the left one's, then the other way round */
	for (;;)
	{
		ntaken = count_before(state, words + b, n - b, scratch[a], false, 1);
		memmove(words + out, words + b, ntaken * sizeof(uint64_t));
		out += ntaken;
		b += ntaken;
		if (b == n)
			break;
		ntaken = count_before(state, scratch + a, nmoved - a, words[b], true, 1);
		memcpy(words + out, scratch + a, ntaken * sizeof(uint64_t));
		out += ntaken;
		a += ntaken;
		if (a == nmoved)
			break;
	}
	memcpy(words + out, scratch + a, (nmoved - a) * sizeof(uint64_t));
}

/* Sorts a run by the driver's comparison function. */
static void
sort_by_comparison(SortState *state, size_t start, size_t end)
{
	uint64_t   *words = state->words + start;
	size_t		n = end - start;

	for (size_t i = 0; i < n; i += INSERTION_ROWS)
		insertion_sort(state, words + i, Min(INSERTION_ROWS, n - i), n - i);
	for (size_t width = INSERTION_ROWS; width < n; width *= 2)
	{
		for (size_t i = 0; i + width < n; i += 2 * width)
			merge(state, words + i, state->scratch + start, width, Min(2 * width, n - i));
	}
}

GsStatus
gs_key_sort_again(GsKeySort *sort)
{
	const GsHost *host = sort->host;
	SortState  *state = host->allocate(host->arg, sizeof(SortState));
	uint64_t   *scratch = host->allocate(host->arg, sort->nrows * sizeof(uint64_t));

	if (state != NULL && scratch != NULL)
	{
		state->sort = sort;
		state->number_mask = (UINT64_C(1) << sort->numbering.number_bits) - 1;
		state->words = sort->words;
		state->scratch = scratch;
		sort_by_comparison(state, 0, sort->nrows);
	}
	if (scratch != NULL)
		host->release(host->arg, scratch);
	if (state != NULL)
		host->release(host->arg, state);
	return state != NULL && scratch != NULL ? GS_STATUS_OK : GS_STATUS_OOM;
}

/*
 * Sorts words[start..end), equal in everything before position, by the rest
 * of the key.  Recurses into all runs of ties but the largest, so that the
 * depth stays within log2 of the rows.
 */
static void
sort_run(SortState *state, size_t start, size_t end, KeyPosition position)
{
	while (end - start > 1)
	{
		size_t		largest = start;
		size_t		largest_end = start + 1;

		if (position.level == state->packing.nlevels)
		{
			if (state->sort->compare != NULL)
			{
				sort_by_comparison(state, start, end);
				state->figures->all_compared = end - start == state->sort->nrows;
			}
			return;
		}
		if (state->packing.levels[position.level].is_tail)
			sort_by_tail(state, start, end, &position);
		else
			sort_by_bits(state, start, end, &position);
		if (position.level == state->packing.nlevels && state->sort->compare == NULL)
			return;

		for (size_t run = start, next; run < end; run = next)
		{
			next = run_end(state, run, end);
			if (next - run > largest_end - largest)
			{
				if (largest_end - largest > 1)
					sort_run(state, largest, largest_end, position);
				largest = run;
				largest_end = next;
			}
			else if (next - run > 1)
				sort_run(state, run, next, position);
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
is_tied(const SortState *state, size_t i)
{
	return state->words[i] >> state->number_bits ==
		state->words[i + 1] >> state->number_bits;
}

static inline void
prefetch_ties(const SortState *state, size_t i, size_t end)
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
refine_ties(SortState *state, size_t start, size_t end, KeyPosition position)
{
	for (size_t run = start, next; run < end; run = next)
	{
		check_interrupts(state, run);
		prefetch_ties(state, run, end);
		next = run_end(state, run, end);
		if (next - run > 1)
		{
			state->figures->tied_rows += next - run;
			sort_run(state, run, next, position);
		}
	}
}
