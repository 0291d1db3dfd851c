/*-------------------------------------------------------------------------
 *
 * key_numeric.h
 *	  Order-preserving codes of numerics.
 *
 * A code is bytes that compare as the values do (key_bytes.h): a word, and
 * further bytes if the last bit of the word says so.  For most values the word
 * is all, and is made inline.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_NUMERIC_H
#define GPUSORT_KEY_NUMERIC_H

/*
 * A numeric as it is stored: a header of 16 bits, in the long form another 16
 * with the weight, and the digits, of 16 bits and base 10000 each.  PostgreSQL keeps
 * these definitions to itself (numeric.c), but they are those of its files.
 */
#define GS_NUMERIC_FORM				0xC000	/* the header's upper two bits */
#define GS_NUMERIC_SHORT			0x8000	/* there is no second half */
#define GS_NUMERIC_SHORT_NEGATIVE	0x2000
#define GS_NUMERIC_SHORT_WEIGHT		0x007F	/* two's complement */

#define GS_NUMERIC_BASE				10000

/* The word: sign, magnitude, digits, and whether there are more; complemented if negative. */
#define GS_NUMERIC_WORD_DIGITS		4
#define GS_NUMERIC_POSITIVE			(UINT64_C(1) << 63)
#define GS_NUMERIC_MAGNITUDE_SHIFT	55
#define GS_NUMERIC_DIGITS_SHIFT		1
#define GS_NUMERIC_MORE				UINT64_C(1)

/* A code takes at most so many bytes more than its value. */
#define GS_NUMERIC_EXTRA_BYTES		16

/*
 * The weight of the digits up to which values are of fixed point, given what a
 * column declares of them (pg_attribute.atttypmod; -1: nothing).  Codes of one
 * order must be made with the same.  Those of any numeric are right with any,
 * and short if it is as declared.
 */
extern int	gs_numeric_fixed_weight(int32 typmod);

/* Writes the code of the value in these bytes; returns its length. */
extern size_t gs_numeric_write_code(const char *data, size_t nbytes, int fixed_weight,
								  unsigned char *to);

/* The digit of 16 bits at an address. */
static inline uint16
gs_numeric_digit(const char *digits, int i)
{
	uint16		digit;

	memcpy(&digit, digits + i * sizeof(digit), sizeof(digit));
	return digit;
}

/* The first n digits and zeros for the rest of those that a word has room for. */
static inline uint64
gs_numeric_digits(const char *digits, int n, int room)
{
	static const uint64 powers[] = {1, 10000, 100000000, UINT64_C(1000000000000)};
	uint64		number = gs_numeric_digit(digits, 0);

	for (int i = 1; i < n; i++)
		number = number * GS_NUMERIC_BASE + gs_numeric_digit(digits, i);
	return number * powers[room - n];
}

static inline uint64
gs_numeric_word(int magnitude, uint64 digits, bool more)
{
	return GS_NUMERIC_POSITIVE | (uint64) magnitude << GS_NUMERIC_MAGNITUDE_SHIFT |
		digits << GS_NUMERIC_DIGITS_SHIFT | (more ? GS_NUMERIC_MORE : 0);
}

/*
 * The code of the value in these bytes, if it is but a word, and the value is in
 * the short form, as nearly all are.
 */
static inline bool
gs_numeric_code_is_word(const char *data, size_t nbytes, int fixed_weight, uint64 *word)
{
	const uint16 header = gs_numeric_digit(data, 0);
	const int	weight = ((header & GS_NUMERIC_SHORT_WEIGHT) ^ 0x40) - 0x40;
	const int	ndigits = (int) (nbytes / sizeof(uint16)) - 1;
	const int	magnitude = weight > fixed_weight ? weight - fixed_weight : 0;
	const int	room = GS_NUMERIC_WORD_DIGITS - (weight < fixed_weight ? fixed_weight - weight : 0);

	if ((header & GS_NUMERIC_FORM) != GS_NUMERIC_SHORT || ndigits < 1 || ndigits > room ||
		gs_numeric_digit(data, 1) == 0)
		return false;
	*word = gs_numeric_word(magnitude,
							gs_numeric_digits(data + sizeof(header), ndigits, room), false);
	if (header & GS_NUMERIC_SHORT_NEGATIVE)
		*word = ~*word;
	return true;
}

#endif							/* GPUSORT_KEY_NUMERIC_H */
