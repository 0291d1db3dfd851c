/*-------------------------------------------------------------------------
 *
 * key_pack.h
 *	  The fewest bits that order the rows.
 *
 * Once all rows are seen, most bits of a key turn out to be idle: a bigint
 * that counts to a million needs 20 of its 64 bits, a date column of one year
 * 9 of 32, eight hexadecimal digits 48 of 64.  The packing strings together,
 * from the most significant sort column to the least, only the bits that vary:
 *
 *	  NULL flag	  1 bit, only where the column has both NULLs and values
 *	  range		  code - min, or max - code for DESC
 *	  squeezed	  the bits of the code that were ever set and ever clear,
 *				  moved together (bits that never vary never decide)
 *
 * whichever of the last two is shorter.  Variable-width columns end the
 * string of bits with a *tail* where eight bytes cannot decide.
 *
 * The string is consumed in *levels*, each as wide as one sort can take: bits
 * first, then perhaps a tail, then the bits of the columns after it.  For
 * `(date, text, int4)` over rows with NULL dates, at 40 bits a level:
 *
 *	  level 0	bits: flag(date) range(date) squeezed(text[0..7]), first 40
 *	  level 1	bits: the rest of squeezed(text[0..7])
 *	  level 2	tail: text[8..]
 *	  level 3	bits: range(int4)
 *
 * Rows that a level leaves equal are told apart by the next one.
 *
 * ISO C, no PostgreSQL.  Nothing here fails or allocates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_PACK_H
#define GPUSORT_KEY_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/host_device.h"
#include "common/key_layout.h"

#ifdef __cplusplus
extern "C"
{
#endif

/* What a component contributes. */
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
	bool		nullable;		/* NULLs were seen: they contribute zeros */
	bool		nul_free;		/* tail: no zero bytes in it */
	uint64_t	field_mask;
	uint64_t	base;			/* range: the code that becomes 0 */
	uint64_t	varying;		/* squeezed: the bits to keep */
} GsComponent;

#define GS_MAX_COMPONENTS	(GS_MAX_FIELDS + 2 * GS_MAX_COLUMNS)

/* Part of one component within a level: (value >> shift) & mask. */
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
	uint8_t		bits;			/* width of the level; 0 for a tail */
	uint16_t	first_piece;
	uint16_t	npieces;
} GsKeyChunk;

/*
 * The narrowest level still has room for the length of any value, which is
 * below 2^30.  A column ends at most 64 / 30 levels a field, one more where a
 * tail cuts them short, and the tail.
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
	GsKeyChunk		chunks[GS_MAX_KEY_CHUNKS];
	GsPiece		pieces[GS_MAX_PIECES];
} GsKeyPacking;

/*
 * Works out the packing from what was observed.  level_bits, at least
 * GS_MIN_KEY_CHUNK_BITS and at most 64, is the width of a level.
 */
extern void gs_key_packing_init(GsKeyPacking *packing, const GsKeyLayout *layout,
								int chunk_bits);

/*
 * Functions that give the bits of a bit level: for one record, and for n of
 * them, stride bytes from one to the next.  Chosen once for the level and the
 * processor at hand.
 */
typedef uint64_t (*GsKeyChunkFunction) (const GsKeyPacking *packing,
									 const GsKeyChunk *chunk, const uint64_t *record);
typedef void (*GsKeyChunksFunction) (const GsKeyPacking *packing,
								  const GsKeyChunk *chunk, const uint64_t *record,
								  ptrdiff_t stride, size_t n, uint64_t *bits);

extern GsKeyChunkFunction gs_key_chunk_function(const GsKeyPacking *packing, const GsKeyChunk *chunk);
extern GsKeyChunksFunction gs_key_chunks_function(const GsKeyPacking *packing, const GsKeyChunk *chunk);

/* Squeezes a number: moves the bits under the mask together. */
typedef uint64_t (*GsExtractBitsFunction) (uint64_t value, uint64_t varying);

extern GsExtractBitsFunction gs_extract_bits_function(void);

/* Its reference. */
extern uint64_t gs_extract_bits_portable(uint64_t value, uint64_t varying);

GS_HOST_DEVICE int
gs_bit_width(uint64_t v)
{
#ifdef __CUDA_ARCH__
	return 64 - __clzll((long long) v);
#else
	return v == 0 ? 0 : 64 - __builtin_clzll(v);
#endif
}

#ifdef __cplusplus
}
#endif

#endif							/* GPUSORT_KEY_PACK_H */
