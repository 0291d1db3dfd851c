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
	GS_COMPONENT_SQUEEZED,
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

typedef struct GsLevel
{
	bool		is_tail;
	uint8_t		tail_component;
	uint8_t		bits;			/* width of the level; 0 for a tail */
	uint16_t	first_piece;
	uint16_t	npieces;
} GsLevel;

/*
 * The narrowest level still has room for the length of any value, which is
 * below 2^30.  A column ends at most 64 / 30 levels a field, one more where a
 * tail cuts them short, and the tail.
 */
#define GS_MIN_LEVEL_BITS	30
#define GS_MAX_LEVELS	(3 * GS_MAX_FIELDS + 2 * GS_MAX_COLUMNS)
#define GS_MAX_PIECES	(GS_MAX_COMPONENTS + GS_MAX_LEVELS)

typedef struct GsKeyPacking
{
	int			nwords;
	int			ncomponents;
	int			nlevels;
	int			npieces;
	int			total_bits;		/* without tails */
	bool		has_tails;
	GsComponent components[GS_MAX_COMPONENTS];
	GsLevel		levels[GS_MAX_LEVELS];
	GsPiece		pieces[GS_MAX_PIECES];
} GsKeyPacking;

/*
 * Works out the packing from what was observed.  level_bits, at least
 * GS_MIN_LEVEL_BITS and at most 64, is the width of a level.
 */
extern void gs_key_packing_init(GsKeyPacking *packing, const GsKeyLayout *layout,
								int level_bits);

/*
 * Functions that give the bits of a bit level: for one record, and for n of
 * them, stride bytes from one to the next.  Chosen once for the level and the
 * processor at hand.
 */
typedef uint64_t (*GsLevelFunction) (const GsKeyPacking *packing,
									 const GsLevel *level, const uint64_t *record);
typedef void (*GsLevelsFunction) (const GsKeyPacking *packing,
								  const GsLevel *level, const uint64_t *record,
								  ptrdiff_t stride, size_t n, uint64_t *bits);

extern GsLevelFunction gs_level_function(const GsKeyPacking *packing, const GsLevel *level);
extern GsLevelsFunction gs_levels_function(const GsKeyPacking *packing, const GsLevel *level);

/* Squeezes a number: moves the bits under the mask together. */
typedef uint64_t (*GsSqueezeFunction) (uint64_t value, uint64_t varying);

extern GsSqueezeFunction gs_squeeze_function(void);

/* Its reference. */
extern uint64_t gs_squeeze_portable(uint64_t value, uint64_t varying);

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
