/*-------------------------------------------------------------------------
 *
 * key_level.h
 *	  A level's bits of one record: the packing, carried out.
 *
 * key_pack.c makes loops of it for processors, the device kernels of it for
 * themselves.
 *
 * ISO C, no PostgreSQL; CUDA too.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_LEVEL_H
#define GPUSORT_KEY_LEVEL_H

#include "common/batch.h"
#include "common/host_device.h"
#include "common/key_codec.h"
#include "common/key_pack.h"

/*
 * Always inlined, with the squeeze function a constant: so each function made
 * of these gets its own copy of everything.
 */
#ifdef __CUDACC__
#define GS_LEVEL_FUNCTION	static __host__ __device__ __forceinline__
#else
#define GS_LEVEL_FUNCTION	static inline __attribute__((always_inline))
#endif

/* Moves the bits under the mask together. */
GS_LEVEL_FUNCTION uint64_t
gs_squeeze(uint64_t value, uint64_t varying)
{
	uint64_t	result = 0;

	/* one run of mask bits after the other, from the top */
	while (varying != 0)
	{
		int			top = gs_bit_width(varying);	/* one past the run */
		uint64_t	below = top == 64 ? ~varying : ~varying & ((UINT64_C(1) << top) - 1);
		int			bottom = gs_bit_width(below);
		int			width = top - bottom;
		uint64_t	run = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;

		if (width == 64)
			return value;
		result = (result << width) | ((value >> bottom) & run);
		varying &= ~(run << bottom);
	}
	return result;
}

/* What a component contributes. */
GS_LEVEL_FUNCTION uint64_t
gs_component_value(const GsComponent *component, int nwords, const uint64_t *record,
				GsSqueezeFunction squeeze)
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
	if (component->canonical == GS_CANONICAL_FLOAT8)
		code = gs_float8_canonical(code);
	else if (component->canonical == GS_CANONICAL_FLOAT4)
		code = gs_float4_canonical(code);

	if (component->kind == GS_COMPONENT_RANGE)
		return component->descending ? component->base - code : code - component->base;
	return squeeze(component->descending ? ~code : code, component->varying);
}

/* The bits of a bit level. */
GS_LEVEL_FUNCTION uint64_t
gs_level_value(const GsKeyPacking *packing, const GsLevel *level,
			const uint64_t *record, GsSqueezeFunction squeeze)
{
	const GsPiece *piece = &packing->pieces[level->first_piece];
	uint64_t	bits = 0;

	for (int i = 0; i < level->npieces; i++, piece++)
	{
		uint64_t	value = gs_component_value(&packing->components[piece->component],
											packing->nwords, record, squeeze);

		if (piece->bits == 64)
			return value;
		bits = (bits << piece->bits) |
			((value >> piece->shift) & ((UINT64_C(1) << piece->bits) - 1));
	}
	return bits;
}

#endif							/* GPUSORT_KEY_LEVEL_H */
