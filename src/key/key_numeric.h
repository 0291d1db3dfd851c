/*-------------------------------------------------------------------------
 *
 * key_numeric.h
 *	  Order-preserving codes of numerics.
 *
 * A code is bytes that compare as the values do: a word, followed by more bytes if its last bit is
 * set.  The codes of most values are only the word, which is made inline.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_NUMERIC_H
#define GPUSORT_KEY_NUMERIC_H

#include "common/key_codec.h"

/*
 * The format of a stored numeric: a header of 16 bits, in the long form another 16 with
 * the weight, and digits of base 10000, of 16 bits each.  PostgreSQL does not export
 * these definitions (numeric.c), but cannot change them, as they are in its data files.
 */
#define GS_NUMERIC_FORM				0xC000	/* the upper two bits of the header */
#define GS_NUMERIC_SHORT			0x8000	/* no weight follows the header */
#define GS_NUMERIC_SHORT_NEGATIVE	0x2000
#define GS_NUMERIC_SHORT_WEIGHT		0x007F	/* two's complement */

#define GS_NUMERIC_BASE				10000

/* The word: sign, magnitude, digits, and whether more bytes follow; complemented if negative. */
#define GS_NUMERIC_WORD_DIGITS		4
#define GS_NUMERIC_POSITIVE			(UINT64_C(1) << 63)
#define GS_NUMERIC_MAGNITUDE_SHIFT	55
#define GS_NUMERIC_DIGITS_SHIFT		1
#define GS_NUMERIC_MORE				UINT64_C(1)

/* How many bytes a code can be longer than its value. */
#define GS_NUMERIC_EXTRA_BYTES		16

/*
 * The weight up to which values are fixed-point, for the type modifier of a column
 * (pg_attribute.atttypmod, or -1).  Codes that are compared must be made with the same
 * fixed weight.  They are correct with any, and short if the values are as declared.
 */
extern int	gs_numeric_fixed_weight(int32 typmod);

/* Writes the code of a value, given the bytes of its varlena; returns its length. */
extern size_t gs_numeric_write_code(const char *data, size_t nbytes, int fixed_weight,
									unsigned char *to);

/* The i-th digit. */
static inline uint16
gs_numeric_digit(const char *digits, int i)
{
	return gs_load_uint16(digits + i * sizeof(uint16));
}

/* The first n digits as one number, followed by zeros up to nplaces digits. */
static inline uint64
gs_numeric_digits(const char *digits, int n, int nplaces)
{
	static const uint64 powers[] = {1, 10000, 100000000, UINT64_C(1000000000000)};
	uint64		number = gs_numeric_digit(digits, 0);

	for (int i = 1; i < n; i++)
		number = number * GS_NUMERIC_BASE + gs_numeric_digit(digits, i);
	return number * powers[nplaces - n];
}

static inline uint64
gs_numeric_word(int magnitude, uint64 digits, bool more)
{
	return GS_NUMERIC_POSITIVE | (uint64) magnitude << GS_NUMERIC_MAGNITUDE_SHIFT |
		digits << GS_NUMERIC_DIGITS_SHIFT | (more ? GS_NUMERIC_MORE : 0);
}

/* Makes the code if it is only a word.  False: it is not, or the value has the rare long form. */
static inline bool
gs_numeric_code_is_word(const char *data, size_t nbytes, int fixed_weight, uint64 *word)
{
	const uint16 header = gs_numeric_digit(data, 0);
	const int	weight = ((header & GS_NUMERIC_SHORT_WEIGHT) ^ 0x40) - 0x40;
	const int	ndigits = (int) (nbytes / sizeof(uint16)) - 1;
	const int	magnitude = weight > fixed_weight ? weight - fixed_weight : 0;
	const int	nplaces =
		GS_NUMERIC_WORD_DIGITS - (weight < fixed_weight ? fixed_weight - weight : 0);

	if ((header & GS_NUMERIC_FORM) != GS_NUMERIC_SHORT || ndigits < 1 || ndigits > nplaces ||
		gs_numeric_digit(data, 1) == 0)
		return false;
	*word = gs_numeric_word(magnitude,
							gs_numeric_digits(data + sizeof(header), ndigits, nplaces), false);
	if (header & GS_NUMERIC_SHORT_NEGATIVE)
		*word = ~*word;
	return true;
}

#endif							/* GPUSORT_KEY_NUMERIC_H */
