/*-------------------------------------------------------------------------
 *
 * tie_sort.c
 *	  Sorts rows whose words are equal by the rest of their keys.
 *
 * A tie group, rows with equal words, is sorted chunk by chunk (key_pack.h): its words
 * get the bits of the next chunk, are sorted again, and the ties that are left are
 * sorted by the chunk after that.  If keys only begin an order, the caller's comparison
 * function orders the ties of the last chunk: by a guess of its order, which it confirms, or
 * else by compare_sort.c.
 *
 * Most tie groups have 2 rows.  The packing is computed once for all of them, so a
 * group of 2 costs two record reads and a comparison.  Each group is checked for being
 * in order before it is sorted, which costs little compared with computing its words.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/word_sort_state.h"

#include <string.h>

#include "common/key_codec.h"
#include "common/radix_sort.h"

/* Bytes of tails that are compared between two interrupt checks: a few ms. */
#define CHECK_BYTES		((size_t) 16 << 20)

#define TAIL_START		8			/* the prefix field has the bytes before it */

/*
 * A sample adds 63 comparisons to the 4,000 or so that this many rows take without a guess.
 * 300,000 rows by a cube, an ip4, a prefix_range: 247, 210, 286 ms with guesses, 458, 314, 601
 * without; PostgreSQL 1087, 450, 956 (AMD EPYC, PostgreSQL 15, 2026-11-28).
 */
#define LEAST_ROWS		512

#define SAMPLED_ROWS	64

/* A guess has to tell most of the sampled rows apart. */
#define LEAST_DIFFERENT	(SAMPLED_ROWS / 2)

/* More guesses, which agree with the sample too, are not worth their time if these were wrong. */
#define MOST_TRIED		2

/* How many rows ahead rows are prefetched, and how many cache lines of each, to confirm a guess. */
#define ROWS_AHEAD		8
#define LINES_AHEAD		2

/* Up to where in the key the rows of a tie group are equal. */
typedef struct KeyPosition
{
	int			chunk;
	uint32_t	depth;			/* in a tail chunk: bytes known to be equal */
} KeyPosition;

/* Sorts words[start..end) by their keys of key_bits bits; row numbers break ties. */
static void
sort_words(GsWordSortState *state, size_t start, size_t end, int key_bits)
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
										   key_bits, state->sort->runtime, NULL);

		if (sorted != words)
			memcpy(words, sorted, n * sizeof(uint64_t));
	}
}

/* Sorts a tie group by the bits of one chunk. */
static void
sort_by_bits(GsWordSortState *state, size_t start, size_t end, KeyPosition *position)
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
		sort_words(state, start, end, chunk->bits);
	position->chunk++;
	position->depth = TAIL_START;
}

/* --------------------------------------------------------------------- tails */

/* The bytes of a variable-width value. */
typedef struct Bytes
{
	const unsigned char *data;
	uint32_t	len;
} Bytes;

static inline Bytes
tail_bytes(const GsWordSortState *state, const GsComponent *tail, uint64_t word)
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

/* The first offset from `at` to `end` at which a and b differ, or end. */
static uint32_t
first_difference(const unsigned char *a, const unsigned char *b, uint32_t at, uint32_t end)
{
	while (at + 8 <= end && memcmp(a + at, b + at, 8) == 0)
		at += 8;
	while (at < end && a[at] == b[at])
		at++;
	return at;
}

/* The offset of the first byte from `at` to `end` that is not zero, or end. */
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

/* A segment of a value that is known to be zero; the byte after it is not known. */
typedef struct ZeroSegment
{
	uint32_t	start;
	uint32_t	end;
} ZeroSegment;

/* first_nonzero() for many offsets in the same value; reads each byte about once. */
static uint32_t
zeros_end(const unsigned char *a, uint32_t at, uint32_t end, ZeroSegment *known)
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
 * The number of bytes that all values of a tie group have in common, the shorter
 * ones padded with zeros; at least depth.  Takes time in proportion to the bytes of
 * the values.
 */
static uint32_t
common_length(const GsWordSortState *state, const GsComponent *tail,
			  size_t start, size_t end, uint32_t depth, uint32_t max_len)
{
	Bytes		longest = {NULL, 0};
	ZeroSegment zeros = {depth, depth};
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
			state->sort->runtime->check_interrupts(state->sort->runtime->arg);
			compared = 0;
		}
		shared = shared <= depth ? depth :
			first_difference(longest.data, bytes.data, depth, shared);
		common = shared < Min(bytes.len, common) ? shared :
			zeros_end(longest.data, Max(shared, depth), common, &zeros);
	}
	return common;
}

/*
 * Sorts a tie group by the next bytes of a tail.  *position advances by the bytes consumed, or to
 * the next chunk at the end of the tail.  What all rows of the group have in common is skipped:
 *
 *	  http://www.example.org/a/001		common: "http://www.example.org/"
 *	  http://www.example.org/a/002		the next eight bytes: "a/001", padded with 0
 *	  http://www.example.org/b/001		bits that vary in them: few, so they fit a word
 */
static void
sort_by_tail(GsWordSortState *state, size_t start, size_t end, KeyPosition *position)
{
	const GsKeyChunk *chunk = &state->packing.chunks[position->chunk];
	const GsComponent *tail = &state->packing.components[chunk->tail_component];
	int			key_bits = state->chunk_bits;
	uint32_t	min_len = UINT32_MAX;
	uint32_t	max_len = 0;
	uint64_t	ever_set = 0;
	uint64_t	always_set = UINT64_MAX;
	uint64_t	varying;
	uint64_t	left;
	uint64_t	previous = 0;
	bool		ascending = true;

	/* load the next eight bytes of each into the scratch */
	for (size_t i = start; i < end; i++)
	{
		Bytes		bytes = tail_bytes(state, tail, state->words[i]);
		uint64_t	code = bytes_at(bytes, position->depth);

		check_interrupts(state, i);
		prefetch(state, i, end);
		state->scratch[i] = code;
		ever_set |= code;
		always_set &= code;
		min_len = Min(min_len, bytes.len);
		max_len = Max(max_len, bytes.len);
	}
	varying = ever_set & ~always_set;

	if (varying == 0 && position->depth + 8 < max_len)
	{
		/* these eight bytes are equal: skip all bytes in common */
		position->depth = common_length(state, tail, start, end,
										position->depth + 8, max_len);
		return;
	}
	if (varying == 0)
	{
		/* equal except for zeros at the end: the shorter value sorts first */
		position->chunk++;
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

	/* use the most significant varying bits, as many as fit */
	while (__builtin_popcountll(varying) > key_bits)
		varying &= varying - 1;
	for (size_t i = start; i < end; i++)
	{
		const uint64_t code = tail->descending ? ~state->scratch[i] : state->scratch[i];

		check_interrupts(state, i);
		set_key(state, i, state->extract_bits(code, varying), &previous, &ascending);
	}
	if (!ascending)
		sort_words(state, start, end, __builtin_popcountll(varying));

	/* rows that still tie are equal in the bytes whose varying bits were all used */
	left = (ever_set & ~always_set) & ~varying;
	position->depth += left == 0 ? 8 : (uint32_t) __builtin_clzll(left) / 8;
}

/* ------------------------------------------------------------------- guesses */

/* What the comparison function has said about them. */
typedef struct Guesses
{
	bool		are_wrong[GS_MAX_GUESSES];
	int			ndifferent[GS_MAX_GUESSES]; /* pairs of rows with different codes */
} Guesses;

/* Of all codes but 0 and UINT64_MAX, which tie with the least and the greatest of the others. */
typedef struct CodeRange
{
	uint64_t	min;
	uint64_t	max;
	uint64_t	ever_set;
	uint64_t	always_set;
} CodeRange;

static inline GsLocatedRow
located_row(const GsWordSortState *state, size_t i)
{
	return gs_row_locate(state->sort->compare, state->sort->compare_arg,
						 row_of(state, state->words[i]));
}

static inline uint64_t
code_of(const GsWordSortState *state, const void *row, int guess)
{
	return state->sort->compare->guess(state->sort->compare_arg, row, guess);
}

/* May two rows with these codes be in this order?  Ties are compared. */
static inline bool
agrees(uint64_t a, uint64_t b, int order)
{
	return order < 0 ? a <= b : order > 0 ? a >= b : a == b;
}

/* Asks the comparison function about two rows, and finds the guesses that disagree. */
static void
check_guesses(const GsWordSortState *state, Guesses *guesses, GsLocatedRow a, GsLocatedRow b)
{
	const GsRowCompare *compare = state->sort->compare;
	const int	order = compare->compare_values(state->sort->compare_arg, a.value, b.value);

	/* of 0 it is not known whether it is NULL */
	for (int guess = 0; guess < compare->nguesses && a.value != 0 && b.value != 0; guess++)
	{
		uint64_t	a_code;
		uint64_t	b_code;

		if (guesses->are_wrong[guess])
			continue;
		a_code = code_of(state, a.row, guess);
		b_code = code_of(state, b.row, guess);
		guesses->are_wrong[guess] = !agrees(a_code, b_code, order);
		guesses->ndifferent[guess] += a_code != b_code;
	}
}

/* At uneven distances, as values may alternate. */
static void
check_sample(const GsWordSortState *state, Guesses *guesses, size_t start, size_t end)
{
	const size_t step = (end - start) / SAMPLED_ROWS;
	GsLocatedRow before = located_row(state, start);

	for (size_t i = 1; i < SAMPLED_ROWS; i++)
	{
		const size_t offset = (i * UINT64_C(0x9E3779B97F4A7C15) >> 32) % step;
		const GsLocatedRow row = located_row(state, start + i * step + offset);

		check_guesses(state, guesses, before, row);
		before = row;
	}
}

/* The codes of words[start..end) go to the scratch. */
static CodeRange
compute_codes(GsWordSortState *state, size_t start, size_t end, int guess)
{
	CodeRange	range = {.min = UINT64_MAX,.max = 0,.ever_set = 0,.always_set = UINT64_MAX};

	for (size_t i = start; i < end; i++)
	{
		const uint64_t code = code_of(state, row_of(state, state->words[i]), guess);

		check_interrupts(state, i);
		state->scratch[i] = code;
		if (code == 0 || code == UINT64_MAX)
			continue;
		range.min = Min(range.min, code);
		range.max = Max(range.max, code);
		range.ever_set |= code;
		range.always_set &= code;
	}
	return range;
}

/*
 * Sorts words[start..end) by the most significant bits of their codes, as many as fit: those of
 * the distance to the least code, or those that vary, if these are fewer, as in text.
 */
static void
sort_by_codes(GsWordSortState *state, size_t start, size_t end, int guess)
{
	const CodeRange range = compute_codes(state, start, end, guess);
	const int	width = gs_bit_width(range.max - range.min);
	uint64_t	varying = range.ever_set & ~range.always_set;
	const int	nvarying = __builtin_popcountll(varying);
	const int	distance_bits = varying == 0 ? 0 : width - __builtin_ctzll(varying);
	const bool	extracts = nvarying < distance_bits;
	const int	key_bits = Min(extracts ? nvarying : distance_bits, state->chunk_bits);
	uint64_t	previous = 0;
	bool		ascending = true;

	while (extracts && __builtin_popcountll(varying) > key_bits)
		varying &= varying - 1;
	for (size_t i = start; i < end; i++)
	{
		const uint64_t code = Min(Max(state->scratch[i], range.min), range.max);

		check_interrupts(state, i);
		set_key(state, i, extracts ? state->extract_bits(code, varying) :
				(code - range.min) >> (width - key_bits), &previous, &ascending);
	}
	if (!ascending)
		sort_words(state, start, end, key_bits);
}

/* Are two neighbors in the wrong order? */
static inline bool
are_wrong(const GsWordSortState *state, GsLocatedRow a, GsLocatedRow b, size_t i)
{
	const GsWordSort *sort = state->sort;
	const int	order = gs_row_compare_located(sort->compare, sort->compare_arg, a, b);

	return order > 0 || (order == 0 && is_later(state, state->words[i - 1], state->words[i]));
}

/*
 * Sorts the ties that are left.  Returns whether all rows are in order; if not, finds other
 * guesses that are wrong.
 */
static bool
confirm(GsWordSortState *state, Guesses *guesses, size_t start, size_t end)
{
	GsLocatedRow last = {NULL, 0};

	for (size_t group = start, next; group < end; group = next)
	{
		GsLocatedRow first;

		check_interrupts(state, group);
		for (int line = 0; group + ROWS_AHEAD < end && line < LINES_AHEAD; line++)
			__builtin_prefetch(row_of(state, state->words[group + ROWS_AHEAD]) +
							   line * GS_CACHE_LINE);
		next = tie_group_end(state, group, end);
		if (next - group > 1)
			gs_compare_sort(state, group, next);
		first = located_row(state, group);
		if (group > start && are_wrong(state, last, first, group))
		{
			check_guesses(state, guesses, last, first);
			return false;
		}
		last = next - group > 1 ? located_row(state, next - 1) : first;
	}
	return true;
}

/*
 * Sorts a tie group by a guess of its order, which comparisons confirm.  Stable.  False: there
 * is no guess, or it was wrong.
 *
 * Most comparison functions order values as their bits suggest: as integers, as floating-point
 * numbers, or byte by byte.  The caller offers codes of values in these orders.  If the function
 * agrees with one of them about a sample of the rows, the words get the codes as their keys.  The
 * function then sorts the ties that are left, and is asked about all neighbors: n comparisons
 * instead of n log2 n.
 *
 * If two neighbors are in the wrong order, the guess was wrong.  Another guess that agrees about
 * these two may be right.  Otherwise the rows have to be sorted by comparisons; a guess that holds
 * for the sample is wrong for few rows, so they are nearly in order then.
 */
static bool
sort_by_guess(GsWordSortState *state, size_t start, size_t end)
{
	const int	nguesses = state->sort->compare->nguesses;
	Guesses		guesses = {0};
	int			ntried = 0;

	if (nguesses == 0 || end - start < LEAST_ROWS)
		return false;
	check_sample(state, &guesses, start, end);
	for (int guess = 0; guess < nguesses && ntried < MOST_TRIED; guess++)
	{
		if (guesses.are_wrong[guess] || guesses.ndifferent[guess] < LEAST_DIFFERENT)
			continue;
		ntried++;
		sort_by_codes(state, start, end, guess);
		if (confirm(state, &guesses, start, end))
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------- tie groups */

/* Sorts a tie group by the caller's comparison function. */
static void
sort_by_comparison(GsWordSortState *state, size_t start, size_t end)
{
	GsEngineStats *stats = state->stats;
	const bool	guessed = sort_by_guess(state, start, end);

	if (!guessed)
		gs_compare_sort(state, start, end);
	stats->compared_rows += end - start;
	stats->all_compared = end - start == state->sort->nrows;
	if (stats->all_compared)
		stats->method = guessed ? GS_METHOD_RADIX : GS_METHOD_MERGE;
}

/*
 * Sorts words[start..end), which are equal before position, by the rest of the key.
 * Recurses into all groups of remaining ties but the largest, so that the depth is
 * at most log2 of the number of rows.
 */
static void
sort_tie_group(GsWordSortState *state, size_t start, size_t end, KeyPosition position)
{
	while (end - start > 1)
	{
		size_t		largest = start;
		size_t		largest_end = start + 1;

		if (position.chunk == state->packing.nchunks)
		{
			if (state->sort->compare != NULL)
				sort_by_comparison(state, start, end);
			return;
		}
		if (state->packing.chunks[position.chunk].is_tail)
			sort_by_tail(state, start, end, &position);
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

void
gs_tie_sort(GsWordSortState *state, int chunk)
{
	const KeyPosition position = {chunk, TAIL_START};
	const size_t end = state->sort->nrows;

	for (size_t group = 0, next; group < end; group = next)
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
