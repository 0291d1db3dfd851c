/*-------------------------------------------------------------------------
 *
 * row_record.cuh
 *	  From a row number to its record, the bits of a key chunk, and its bytes.
 *
 * Records come from a client and are not trusted.  Every reference in them is
 * checked where it is read, or has been checked by kernel_pack.cu, after which each
 * location is within its batch.  The packing was computed by gpusortd.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ROW_RECORD_CUH
#define GPUSORT_ROW_RECORD_CUH

#include "device/device.h"
#include "device_sort.h"
#include "key_compare.cuh"
#include "common/key_pack.h"

/* The last of the batches low .. high that begins at or before row. */
static __device__ __forceinline__ uint32_t
gs_find_batch(const GsDeviceBatch *d_batches, uint32_t low, uint32_t high, uint64_t row)
{
	while (low < high)
	{
		const uint32_t middle = low + (high - low + 1) / 2;

		if (d_batches[middle].first_row <= row)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static __device__ __forceinline__ const uint64_t *
gs_record_in(const GsDeviceRows &rows, const GsDeviceBatch &batch, uint64_t row)
{
	const uint64_t entry = row - batch.first_row;

	return (const uint64_t *) (batch.d_records_top - (entry + 1) * rows.record_bytes);
}

/* The record of any row. */
static __device__ __forceinline__ const uint64_t *
gs_record_of(const GsDeviceRows &rows, uint64_t row)
{
	return gs_record_in(rows,
						rows.d_batches[gs_find_batch(rows.d_batches, 0, rows.nbatches - 1, row)],
						row);
}

static __device__ __forceinline__ uint64_t
gs_row_of_word(uint64_t word, int row_bits)
{
	return word & ((UINT64_C(1) << row_bits) - 1);
}

/*
 * Copies the packing to shared memory, because every row of a block uses it.  All
 * threads call it; a barrier of the caller must precede its use.
 */
static __device__ __forceinline__ void
gs_share_packing(GsKeyPacking *s_packing, const GsKeyPacking *d_packing)
{
	static_assert(sizeof(GsKeyPacking) % sizeof(uint64_t) == 0, "");
	for (uint32_t i = threadIdx.x; i < sizeof(GsKeyPacking) / sizeof(uint64_t); i += blockDim.x)
		((uint64_t *) s_packing)[i] = ((const uint64_t *) d_packing)[i];
}

/* By far the most frequent kind of chunk: one number that is never NULL. */
static __device__ __forceinline__ bool
gs_chunk_is_range(const GsKeyPacking &packing, const GsKeyChunk &chunk)
{
	const GsComponent &first = packing.components[packing.pieces[chunk.first_piece].component];

	return chunk.npieces == 1 && first.kind == GS_COMPONENT_RANGE && !first.nullable &&
		first.canonical == GS_CANONICAL_NONE;
}

static __device__ __forceinline__ uint64_t
gs_range_value(const GsKeyPacking &packing, const GsKeyChunk &chunk, const uint64_t *record)
{
	const GsPiece piece = packing.pieces[chunk.first_piece];
	const GsComponent &component = packing.components[piece.component];
	const uint64_t code = (record[component.word] >> component.shift) & component.field_mask;
	const uint64_t value = component.descending ? component.base - code : code - component.base;

	return (value >> piece.shift) & (UINT64_MAX >> (64 - piece.bits));
}

/*
 * The string of a tail component, truncated to the row.  That of a NULL is empty;
 * its tie group has only NULLs.
 */
static __device__ __forceinline__ GsTail
gs_row_tail(const GsDeviceRows &rows, int component_number, uint32_t row)
{
	const GsComponent &component = rows.d_packing->components[component_number];
	const uint64_t *record = gs_record_of(rows, row);
	const uint64_t location = rows.d_locations[row];
	const uint32_t row_bytes = GS_LOCATION_LENGTH(location) * GS_ROW_ALIGN;
	const uint64_t where = record[component.word];
	GsTail tail = {0, 0, row};

	if (component.nullable &&
		(gs_record_nulls(record, rows.d_packing->nwords) >> component.column & 1) != 0)
		return tail;
	if (gs_tail_offset(where) >= row_bytes)
		return tail;
	tail.address = GS_LOCATION_ADDRESS(location) + gs_tail_offset(where) + GS_PREFIX_BYTES;
	tail.length = min(gs_tail_len(where), row_bytes - gs_tail_offset(where));
	return tail;
}

#endif /* GPUSORT_ROW_RECORD_CUH */
