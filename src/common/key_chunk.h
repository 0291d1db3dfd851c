/*-------------------------------------------------------------------------
 *
 * key_chunk.h
 *	  Computes the bits of one key chunk of a record (key_pack.h).
 *
 * Applies NULLS FIRST or LAST, and DESC.  Where there are no packed bits, key_compare.h,
 * gs_topn_first() and value_at() in sort_output.c do so.
 *
 * key_pack.c instantiates these functions for processors, cuda/ for devices.
 *
 * ISO C, no PostgreSQL; CUDA too.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_CHUNK_H
#define GPUSORT_KEY_CHUNK_H

#include "common/batch.h"
#include "common/host_device.h"
#include "common/key_pack.h"

/*
 * Always inlined with a constant extract_bits, so that each instance is compiled
 * for its way to extract bits.
 */
#ifdef __CUDACC__
#define GS_KEY_CHUNK_FUNCTION	static __host__ __device__ __forceinline__
#else
#define GS_KEY_CHUNK_FUNCTION	static inline __attribute__((always_inline))
#endif

/* Moves the bits of value that are set in varying to the low end, as pext does. */
GS_KEY_CHUNK_FUNCTION uint64_t
gs_extract_bits(uint64_t value, uint64_t varying)
{
	uint64_t	result = 0;

	/* one group of adjacent mask bits after the other, from the top */
	while (varying != 0)
	{
		int			top = gs_bit_width(varying);	/* one past the group */
		uint64_t	below = top == 64 ? ~varying : ~varying & ((UINT64_C(1) << top) - 1);
		int			bottom = gs_bit_width(below);
		int			width = top - bottom;
		uint64_t	group = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;

		if (width == 64)
			return value;
		result = (result << width) | ((value >> bottom) & group);
		varying &= ~(group << bottom);
	}
	return result;
}

/* The bits that a component contributes. */
GS_KEY_CHUNK_FUNCTION uint64_t
gs_component_value(const GsComponent *component, int nwords, const uint64_t *record,
				   GsExtractBitsFunction extract_bits)
{
	uint64_t	code;

	if (component->nullable)
	{
		bool		is_null = (gs_record_nulls(record, nwords) >> component->column) & 1;

		if (component->kind == GS_COMPONENT_NULL_FLAG)
			return is_null != component->nulls_first;
		if (is_null)
			return 0;
	}
	code = (record[component->word] >> component->shift) & component->field_mask;
	code = gs_canonical_code(component->canonical, code);
	if (component->kind == GS_COMPONENT_RANGE)
		return component->descending ? component->base - code : code - component->base;
	return extract_bits(component->descending ? ~code : code, component->varying);
}

/* The bits of a chunk that is not a tail. */
GS_KEY_CHUNK_FUNCTION uint64_t
gs_key_chunk_value(const GsKeyPacking *packing, const GsKeyChunk *chunk,
				   const uint64_t *record, GsExtractBitsFunction extract_bits)
{
	const GsPiece *piece = &packing->pieces[chunk->first_piece];
	uint64_t	bits = 0;

	for (int i = 0; i < chunk->npieces; i++, piece++)
	{
		uint64_t	value = gs_component_value(&packing->components[piece->component],
											   packing->nwords, record, extract_bits);

		if (piece->bits == 64)
			return value;
		bits = (bits << piece->bits) |
			((value >> piece->shift) & ((UINT64_C(1) << piece->bits) - 1));
	}
	return bits;
}

#endif							/* GPUSORT_KEY_CHUNK_H */
