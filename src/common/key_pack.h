/*-------------------------------------------------------------------------
 *
 * key_pack.h
 *	  The fewest bits that order the rows.
 *
 * A bigint that counts to a million needs 20 of its 64 bits, eight hexadecimal digits 48 of
 * 64.  The packing concatenates, from the most significant sort column to the least, only what
 * varies:
 *
 *	  NULL flag	  1 bit, if the column has both NULLs and values
 *	  range		  code - min, or max - code for DESC
 *	  extracted	  the bits of the code that are not the same in all codes
 *
 * whichever of the last two is shorter.  A variable-width column ends with a
 * *tail* if its first eight bytes do not resolve the order.
 *
 * The bits are consumed in *chunks*, each as wide as one sort can take: bits
 * first, then perhaps a tail, then the bits of the following columns.  For
 * `(date, text, int4)` with NULL dates, in chunks of 40 bits:
 *
 *	  chunk 0	bits: flag(date) range(date) extracted(text[0..7]), first 40
 *	  chunk 1	bits: the rest of extracted(text[0..7])
 *	  chunk 2	tail: text[8..]
 *	  chunk 3	bits: range(int4)
 *
 * Rows that are equal in one chunk are ordered by the next one.
 *
 * C without PostgreSQL.  Nothing here fails or allocates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_PACK_H
#define GPUSORT_KEY_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/batch.h"

#ifdef __cplusplus
extern "C"
{
#endif

/* What a component of the key contributes to its bits. */
typedef enum GsComponentKind
{
	GS_COMPONENT_NULL_FLAG,
	GS_COMPONENT_RANGE,
	GS_COMPONENT_EXTRACTED,
	GS_COMPONENT_TAIL
} GsComponentKind;

typedef struct GsComponent
{
	GsComponentKind kind;
	uint8_t		column;
	uint8_t		word;			/* of the field, or the tail word */
	uint8_t		shift;
	uint8_t		canonical;
	uint8_t		bits;			/* contributed; 0 for a tail */
	bool		descending;
	bool		nulls_first;
	bool		nullable;		/* there are NULLs, which contribute zeros */
	bool		nul_free;		/* tail: no byte is zero */
	uint64_t	field_mask;
	uint64_t	base;			/* range: the code that becomes 0 */
	uint64_t	varying;		/* extracted: the bits to keep */
} GsComponent;

#define GS_MAX_COMPONENTS	(GS_MAX_FIELDS + 2 * GS_MAX_COLUMNS)

/* Part of a component within a chunk: (value >> shift) & mask. */
typedef struct GsPiece
{
	uint8_t		component;
	uint8_t		shift;
	uint8_t		bits;
} GsPiece;

typedef struct GsKeyChunk
{
	bool		is_tail;
	uint8_t		tail_component;
	uint8_t		bits;			/* width; 0 for a tail */
	uint16_t	first_piece;
	uint16_t	npieces;
} GsKeyChunk;

/*
 * The narrowest chunk can hold the length of any value, which is below 2^30.  The
 * number of chunks: at most 64 / 30, rounded up, for each field, and for each
 * column a tail and the incomplete chunk before it.
 */
#define GS_MIN_KEY_CHUNK_BITS	30
#define GS_MAX_KEY_CHUNKS	(3 * GS_MAX_FIELDS + 2 * GS_MAX_COLUMNS)
#define GS_MAX_PIECES	(GS_MAX_COMPONENTS + GS_MAX_KEY_CHUNKS)

typedef struct GsKeyPacking
{
	int			nwords;
	int			ncomponents;
	int			nchunks;
	int			npieces;
	int			total_bits;		/* without tails */
	bool		has_tails;
	GsComponent components[GS_MAX_COMPONENTS];
	GsKeyChunk	chunks[GS_MAX_KEY_CHUNKS];
	GsPiece		pieces[GS_MAX_PIECES];
} GsKeyPacking;

/*
 * Computes the packing from the statistics of a layout.  chunk_bits, from
 * GS_MIN_KEY_CHUNK_BITS to 64, is the width of a chunk.
 */
extern void gs_key_packing_init(GsKeyPacking *packing, const GsKeyLayout *layout,
								int chunk_bits);

/*
 * Functions that compute the bits of a chunk that is not a tail: for one record,
 * and for n records that are stride bytes apart.  They are chosen once for a chunk
 * and this processor.
 */
typedef uint64_t (*GsKeyChunkFunction) (const GsKeyPacking *packing,
										const GsKeyChunk *chunk, const uint64_t *record);
typedef void (*GsKeyChunksFunction) (const GsKeyPacking *packing,
									 const GsKeyChunk *chunk, const uint64_t *record,
									 ptrdiff_t stride, size_t n, uint64_t *bits);

extern GsKeyChunkFunction gs_key_chunk_function(const GsKeyPacking *packing,
												const GsKeyChunk *chunk);
extern GsKeyChunksFunction gs_key_chunks_function(const GsKeyPacking *packing,
												  const GsKeyChunk *chunk);

/* Moves the bits of value that are set in varying to the low end, as pext does. */
typedef uint64_t (*GsExtractBitsFunction) (uint64_t value, uint64_t varying);

extern GsExtractBitsFunction gs_extract_bits_function(void);

GS_HOST_DEVICE int
gs_bit_width(uint64_t v)
{
#ifdef __CUDA_ARCH__
	return 64 - __clzll((long long) v);
#else
	return v == 0 ? 0 : 64 - __builtin_clzll(v);
#endif
}

/* ------------------------------------------------------------ bits of a record */

/*
 * The following functions compute the bits of a chunk, with NULLS FIRST or LAST and DESC.
 * Where there are no packed bits, key_compare.h, gs_topn_first() and value_at() in
 * sort_output.c apply these.  key_pack.c instantiates the functions for processors, cuda/ for
 * devices: they are always inlined with a constant extract_bits, so that each instance is
 * compiled for its way to extract bits.
 */
#ifdef __CUDACC__
#define GS_KEY_CHUNK_FUNCTION	static __host__ __device__ __forceinline__
#else
#define GS_KEY_CHUNK_FUNCTION	static inline __attribute__((always_inline))
#endif

/* The implementation without pext. */
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

#ifdef __cplusplus
}
#endif

#endif							/* GPUSORT_KEY_PACK_H */
