/*-------------------------------------------------------------------------
 *
 * device_host_steps.c
 *	  The steps of a sort on the CPU.
 *
 * These are the reference of the kernels, so they are written for clarity, not
 * speed.
 *
 *-------------------------------------------------------------------------
 */
#include "doubles/daemon/device_host_steps.h"

#include <string.h>

#include "common/basics.h"
#include "common/key_pack.h"
#include "common/radix_sort.h"

static inline uint64_t
row_of_word(uint64_t word, int row_bits)
{
	return word & ((UINT64_C(1) << row_bits) - 1);
}

static const uint64_t *
record_in(const GsDeviceRows *rows, const GsDeviceBatch *batch, uint32_t entry)
{
	return (const uint64_t *) (batch->d_records_top -
							   ((size_t) entry + 1) * rows->record_bytes);
}

/* The record of a row: searches the last batch that begins at or before the row. */
static const uint64_t *
record_of(const GsDeviceRows *rows, uint64_t row)
{
	uint32_t	low = 0;
	uint32_t	high = rows->nbatches;

	while (high - low > 1)
	{
		uint32_t	mid = low + (high - low) / 2;

		if (rows->d_batches[mid].first_row <= row)
			low = mid;
		else
			high = mid;
	}
	return record_in(rows, &rows->d_batches[low],
					 (uint32_t) (row - rows->d_batches[low].first_row));
}

static const char *
row_at(uint64_t location)
{
	return (const char *) (uintptr_t) GS_LOCATION_ADDRESS(location);
}

static size_t
row_bytes(uint64_t location)
{
	return (size_t) GS_LOCATION_LENGTH(location) * GS_ROW_ALIGN;
}

/* ------------------------------------------------------- the first sort */

static uint64_t
chunk_value(const GsKeyPacking *packing, int chunk, const uint64_t *record)
{
	return gs_key_chunk_value(packing, &packing->chunks[chunk], record, gs_extract_bits);
}

/*
 * The location of an entry's row; if its record is invalid, counts it and returns the first unit.
 */
static uint64_t
locate(const GsDeviceRows *rows, const GsDeviceBatch *batch, uint32_t entry,
	   GsPackResults *results)
{
	int			nwords = rows->d_packing->nwords;
	size_t		start = gs_record_unit(record_in(rows, batch, entry), nwords);
	size_t		end = entry + 1 == batch->nrows ? batch->nunits :
		gs_record_unit(record_in(rows, batch, entry + 1), nwords);

	if (start >= end || end > batch->nunits || end - start > rows->max_row_units)
	{
		results->nfaults++;
		start = 0;
		end = 1;
	}
	if (end - start > results->max_row_units)
		results->max_row_units = (uint32_t) (end - start);
	return ((uintptr_t) batch->d_rows / GS_ROW_ALIGN + (uint64_t) start) <<
		GS_LOCATION_LENGTH_BITS | (end - start);
}

void
gs_host_pack(const GsDeviceRows *rows, int chunk, int row_bits, uint64_t *words,
			 GsPackResults *results)
{
	uint64_t	row = 0;

	for (uint32_t b = 0; b < rows->nbatches; b++)
	{
		const GsDeviceBatch *batch = &rows->d_batches[b];

		for (uint32_t entry = 0; entry < batch->nrows; entry++, row++)
		{
			uint64_t	bits = chunk < 0 ? 0 :
				chunk_value(rows->d_packing, chunk, record_in(rows, batch, entry));

			words[row] = bits << row_bits | row;
			if (!rows->keys_only)
				rows->d_locations[row] = locate(rows, batch, entry, results);
		}
	}
}

static void
check_nothing(void *arg)
{
}

void
gs_host_sort_words(uint64_t n, int low_bit, int nbits, uint64_t *const words[2],
				   uint32_t *selector)
{
	const GsRuntime runtime = {NULL, NULL, NULL, check_nothing};
	const uint64_t *sorted = gs_radix_sort(words[0], words[1], n, low_bit, nbits, &runtime, NULL);

	*selector = sorted == words[1];
}

/* ------------------------------------------------------------------ tails */

/* A variable-width value in a row. */
typedef struct Tail
{
	const char *bytes;
	uint32_t	len;
} Tail;

#define TAIL_START	8			/* the prefix field has the bytes before */

static Tail
tail_of(const GsDeviceRows *rows, const GsComponent *component, uint32_t row)
{
	const uint64_t *record = record_of(rows, row);
	uint64_t	location = rows->d_locations[row];
	size_t		size = row_bytes(location);
	uint32_t	offset = gs_tail_offset(record[component->word]);
	Tail		tail = {NULL, 0};

	if (component->nullable &&
		(gs_record_nulls(record, rows->d_packing->nwords) >> component->column & 1) != 0)
		return tail;
	if (offset >= size)
		return tail;
	tail.bytes = row_at(location) + offset;
	tail.len = (uint32_t) Min((size_t) gs_tail_len(record[component->word]), size - offset);
	return tail;
}

static int
compare_tails(const GsDeviceRows *rows, int component_number, uint32_t row_a, uint32_t row_b)
{
	const GsComponent *component = &rows->d_packing->components[component_number];
	Tail		a = tail_of(rows, component, row_a);
	Tail		b = tail_of(rows, component, row_b);
	uint32_t	shared = Min(a.len, b.len);
	int			result = 0;

	if (shared > TAIL_START)
		result = memcmp(a.bytes + TAIL_START, b.bytes + TAIL_START, shared - TAIL_START);
	if (result == 0)
		result = (a.len > b.len) - (a.len < b.len);
	return component->descending ? -result : result;
}

/* ------------------------------------------------------------------- ties */

void
gs_host_check_order(uint64_t n, const uint64_t *words, int row_bits, const uint32_t *rows,
					GsOrderCheck *check)
{
	uint64_t	last_key = 0;
	uint64_t	last_row = 0;

	for (uint64_t i = 0; i < n; i++)
	{
		uint64_t	key = words[i] >> row_bits;
		uint64_t	row = rows != NULL ? rows[i] : words[i] - (key << row_bits);

		check->row_sum += gs_row_hash(row) - gs_row_hash(i);
		if (i > 0 && (key < last_key || (key == last_key && row <= last_row)))
			check->nmisplaced++;
		last_key = key;
		last_row = row;
	}
}

void
gs_host_same_words(uint64_t n, const uint64_t *words, int low_bit, uint8_t *same)
{
	for (uint64_t i = 0; i < n; i++)
		same[i] = i > 0 && words[i] >> low_bit == words[i - 1] >> low_bit;
}

void
gs_host_same_tails(const GsDeviceRows *rows, const GsTies *ties, int component, uint8_t *same)
{
	for (uint64_t i = 0; i < ties->nties; i++)
		same[i] = i > 0 && ties->d_groups[i] == ties->d_groups[i - 1] &&
			compare_tails(rows, component, ties->d_rows[i], ties->d_rows[i - 1]) == 0;
}

static bool
is_tied(uint64_t n, const uint8_t *same, uint64_t i)
{
	return same[i] || (i + 1 < n && same[i + 1]);
}

void
gs_host_count_ties(uint64_t n, const uint8_t *same, GsTieCount *count)
{
	count->nties = 0;
	count->ngroups = 0;
	for (uint64_t i = 0; i < n; i++)
	{
		if (!is_tied(n, same, i))
			continue;
		count->nties++;
		if (!same[i])
			count->ngroups++;
	}
}

void
gs_host_list_ties(uint64_t n, const uint8_t *same, const uint64_t *words, int row_bits,
				  const GsTies *from, const GsTies *out)
{
	uint64_t	k = 0;
	uint32_t	ngroups = 0;

	for (uint64_t i = 0; i < n; i++)
	{
		if (!is_tied(n, same, i))
			continue;
		if (!same[i])
			ngroups++;
		out->d_places[k] = from != NULL ? from->d_places[i] : (uint32_t) i;
		out->d_rows[k] = from != NULL ? from->d_rows[i] :
			(uint32_t) row_of_word(words[i], row_bits);
		out->d_groups[k] = ngroups - 1;
		k++;
	}
}

void
gs_host_tie_keys(const GsDeviceRows *rows, const GsTies *ties, int chunk, uint64_t *keys)
{
	int			bits = rows->d_packing->chunks[chunk].bits;

	for (uint64_t k = 0; k < ties->nties; k++)
		keys[k] = (uint64_t) ties->d_groups[k] << bits |
			chunk_value(rows->d_packing, chunk, record_of(rows, ties->d_rows[k]));
}

/* One pass of a radix sort of pairs, by the byte at shift. */
static void
distribute(uint64_t n, int shift, const uint64_t *keys, const uint32_t *rows,
		   uint64_t *keys_to, uint32_t *rows_to)
{
	uint64_t	next[257] = {0};

	for (uint64_t i = 0; i < n; i++)
		next[(keys[i] >> shift & 255) + 1]++;
	for (int digit = 0; digit < 256; digit++)
		next[digit + 1] += next[digit];
	for (uint64_t i = 0; i < n; i++)
	{
		uint64_t	to = next[keys[i] >> shift & 255]++;

		keys_to[to] = keys[i];
		rows_to[to] = rows[i];
	}
}

void
gs_host_sort_ties(const GsTies *ties, int nbits, uint64_t *const keys[2], uint32_t *scratch)
{
	/* two passes at a time, so that the result is in keys[0] */
	for (int shift = 0; shift < nbits; shift += 16)
	{
		distribute(ties->nties, shift, keys[0], ties->d_rows, keys[1], scratch);
		distribute(ties->nties, shift + 8, keys[1], scratch, keys[0], ties->d_rows);
	}
}

/* Merges the sorted from[start..mid) and from[mid..end) into to[start..end). */
static void
merge_tails(const GsDeviceRows *rows, int component, const uint32_t *from,
			uint64_t start, uint64_t mid, uint64_t end, uint32_t *to)
{
	uint64_t	a = start;
	uint64_t	b = mid;

	for (uint64_t out = start; out < end; out++)
		to[out] = b == end ||
			(a < mid && compare_tails(rows, component, from[a], from[b]) <= 0) ?
			from[a++] : from[b++];
}

void
gs_host_sort_tails(const GsDeviceRows *rows, const GsTies *ties, int component,
				   uint32_t *scratch)
{
	for (uint64_t start = 0, end; start < ties->nties; start = end)
	{
		end = start + 1;
		while (end < ties->nties && ties->d_groups[end] == ties->d_groups[start])
			end++;
		for (uint64_t width = 1; width < end - start; width *= 2)
		{
			for (uint64_t at = start; at < end; at += 2 * width)
				merge_tails(rows, component, ties->d_rows, at, Min(at + width, end),
							Min(at + 2 * width, end), scratch);
			memcpy(ties->d_rows + start, scratch + start, (end - start) * sizeof(uint32_t));
		}
	}
}

void
gs_host_place_ties(const GsTies *ties, uint64_t *words)
{
	for (uint64_t k = 0; k < ties->nties; k++)
		words[ties->d_places[k]] = ties->d_rows[k];
}

/* ------------------------------------------------- batches of sorted rows */

void
gs_host_row_end_offsets(const GsDeviceRows *rows, const uint64_t *words, int row_bits,
						uint64_t *ends)
{
	uint64_t	end = 0;

	for (uint64_t i = 0; i < rows->nrows; i++)
	{
		uint64_t	location = rows->d_locations[row_of_word(words[i], row_bits)];

		end += 2 * GS_LOCATION_LENGTH(location) + 1;
		ends[i] = end;
	}
}

void
gs_host_find_boundaries(uint64_t nrows, const uint64_t *ends, uint64_t step, uint32_t nboundaries,
						uint64_t *boundaries)
{
	uint64_t	row = 0;

	for (uint32_t b = 0; b < nboundaries; b++)
	{
		while (row < nrows && ends[row] <= b * step)
			row++;
		boundaries[b] = row;
	}
}

bool
gs_host_gather(const GsDeviceRows *rows, const uint64_t *words, int row_bits,
			   uint64_t first, uint32_t nrows, char *to, size_t to_bytes)
{
	size_t		at = 0;
	size_t		left = to_bytes;

	for (uint32_t k = 0; k < nrows; k++)
	{
		uint64_t	location = rows->d_locations[row_of_word(words[first + k], row_bits)];
		size_t		nbytes = row_bytes(location);
		uint32_t	unit = (uint32_t) (at / GS_ROW_ALIGN);

		if (left < nbytes + sizeof(unit))
			return false;
		memcpy(to + at, row_at(location), nbytes);
		memcpy(to + to_bytes - ((size_t) k + 1) * sizeof(unit), &unit, sizeof(unit));
		at += nbytes;
		left -= nbytes + sizeof(unit);
	}
	return true;
}

void
gs_host_gather_keys(const GsDeviceRows *rows, const uint64_t *words, int row_bits,
					uint64_t first, uint32_t nrows, uint64_t *to)
{
	for (uint32_t k = 0; k < nrows; k++)
		to[k] = *record_of(rows, row_of_word(words[first + k], row_bits));
}
