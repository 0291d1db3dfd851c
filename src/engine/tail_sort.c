/*-------------------------------------------------------------------------
 *
 * tail_sort.c
 *	  Sorts ties by the bytes of a variable-width value after the eighth.
 *
 * A tail chunk skips what all rows of the tie group have in common, loads the next
 * eight bytes, and sorts by the bits that vary in them:
 *
 *	  http://www.example.org/a/001		common: "http://www.example.org/"
 *	  http://www.example.org/a/002		eight bytes: "a/001", padded with 0
 *	  http://www.example.org/b/001		varying bits: few, so they fit a word
 *
 *-------------------------------------------------------------------------
 */
#include "engine/word_sort_state.h"

#include <string.h>

#include "common/key_codec.h"

/* Bytes that are compared between two interrupt checks: a few ms. */
#define CHECK_BYTES		((size_t) 16 << 20)

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

/*
 * first_nonzero() for many offsets in the same value; reads each byte about once.
 */
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
		if (shared > depth)
			shared = first_difference(longest.data, bytes.data, depth, shared);
		else
			shared = depth;
		common = shared < Min(bytes.len, common) ? shared :
			zeros_end(longest.data, Max(shared, depth), common, &zeros);
	}
	return common;
}

void
gs_tail_sort(GsWordSortState *state, size_t start, size_t end, GsKeyPosition *position)
{
	const GsKeyChunk *chunk = &state->packing.chunks[position->chunk];
	const GsComponent *tail = &state->packing.components[chunk->tail_component];
	int			key_bits = state->chunk_bits;
	uint32_t	min_len = UINT32_MAX;
	uint32_t	max_len = 0;
	uint64_t	ever_set = 0;
	uint64_t	always_set = UINT64_MAX;
	uint64_t	varying;
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
		if (bytes.len < min_len)
			min_len = bytes.len;
		if (bytes.len > max_len)
			max_len = bytes.len;
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
			gs_sort_words(state, start, end, gs_bit_width(max_len - min_len));
		return;
	}

	/* use the most significant varying bits, as many as fit */
	while (__builtin_popcountll(varying) > key_bits)
		varying &= varying - 1;
	for (size_t i = start; i < end; i++)
	{
		uint64_t	code = state->scratch[i];

		check_interrupts(state, i);
		set_key(state, i, state->extract_bits(tail->descending ? ~code : code, varying),
				&previous, &ascending);
	}
	if (!ascending)
		gs_sort_words(state, start, end, __builtin_popcountll(varying));

	/*
	 * rows that still tie are equal in the bytes whose varying bits were all
	 * used
	 */
	{
		uint64_t	left = (ever_set & ~always_set) & ~varying;

		position->depth += left == 0 ? 8 : (uint32_t) __builtin_clzll(left) / 8;
	}
}
