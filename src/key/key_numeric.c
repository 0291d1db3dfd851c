/*-------------------------------------------------------------------------
 *
 * key_numeric.c
 *	  Order-preserving codes of numerics.
 *
 * A value has digits of base 10000, and the weight of the first.  Its code is a word,
 * and if that cannot hold all digits, a string of bits:
 *
 *	  | 1 | magnitude | four digits | more |   | digit | digit | .. | 00 | zeros to a whole byte |
 *		1	   8		   54			1		   14	   14			 2
 *
 * and the complement of all that if the value is negative.
 *
 * The four digits are one number: the fewer bits vary in keys, the fewer rows tie in the first bits
 * (key_pack.h).  For the same reason, values up to a *fixed weight* are fixed-point: their four
 * digits are those of that weight and the next three, and their magnitude is 0.  So there is no gap
 * between the codes of negative and positive values, and the codes of integers are as far apart as
 * the integers.  numeric(14,2) declares 2 decimal digits, which take one digit of base 10000; so
 * the fixed weight is 2, and fixed-point values are those below 10^12.  1234567.89 is
 *
 *	  1 00000000   0000 0123 4567 8900	 0
 *
 * Larger values have a magnitude, which is their weight minus the fixed weight, and
 * their four digits begin with the first one.  IEEE 754 is similar: its subnormal numbers
 * are fixed-point too.  Without a declared scale, only very small values are fixed-point.
 *
 * If a value is too small for any of the four digits, or too large for a magnitude, the
 * four digits are zero, and its weight precedes the digits in 17 bits.  Infinity and NaN
 * have magnitudes of their own.
 *
 * 2^12 is added to each further digit, so that its first two bits are not 00, which ends
 * the digits and sorts before any further one.  The display scale is not encoded.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/key_codec.h"
#include "key/key_numeric.h"

#define NUMERIC_FORM_NEGATIVE	0x4000	/* long form; 0: positive */
#define NUMERIC_FORM_SPECIAL	0xC000
#define NUMERIC_SPECIAL			0xF000	/* of special values */
#define NUMERIC_NAN				0xC000
#define NUMERIC_MINUS_INFINITY	0xF000

#define MAGNITUDE_LARGE			253 /* the weight follows */
#define MAGNITUDE_INFINITE		254
#define MAGNITUDE_NAN			255

/* Without a declared scale, values below 10^-12 are fixed-point. */
#define UNDECLARED_FIXED_WEIGHT	(-4)

/* With this, all weights of the short form, up to 63, have a magnitude. */
#define MIN_FIXED_WEIGHT		(-128)

#define WEIGHT_BITS				17
#define WEIGHT_BIAS				(1 << (WEIGHT_BITS - 1))

#define DIGIT_BITS				14
#define DIGIT_BIAS				(1 << (DIGIT_BITS - 2))
#define END_BITS				2

/* A value that is not special. */
typedef struct Number
{
	bool		negative;
	int			weight;			/* of the first digit */
	int			ndigits;		/* 0 if the value is zero */
	const char *digits;
} Number;

int
gs_numeric_fixed_weight(int32 typmod)
{
	int			scale;
	int			weight;

	if (typmod < (int32) VARHDRSZ)
		return UNDECLARED_FIXED_WEIGHT;
	scale = (((typmod - VARHDRSZ) & 0x7FF) ^ 0x400) - 0x400;	/* 11 bits, signed */

	/* the last of the four digits is the last one of the scale */
	weight = GS_NUMERIC_WORD_DIGITS - 1 - (scale > 0 ? (scale + 3) / 4 : scale / 4);
	return Max(weight, MIN_FIXED_WEIGHT);
}

static Number
read_number(uint16 header, const char *data, size_t nbytes)
{
	Number		number;
	size_t		header_bytes = sizeof(uint16);

	if (header & GS_NUMERIC_SHORT)
	{
		number.negative = (header & GS_NUMERIC_SHORT_NEGATIVE) != 0;
		number.weight = ((header & GS_NUMERIC_SHORT_WEIGHT) ^ 0x40) - 0x40;
	}
	else
	{
		number.negative = (header & GS_NUMERIC_FORM) == NUMERIC_FORM_NEGATIVE;
		number.weight = (int16) gs_numeric_digit(data, 1);
		header_bytes += sizeof(uint16);
	}
	number.digits = data + header_bytes;
	number.ndigits = (int) ((nbytes - header_bytes) / sizeof(uint16));

	/* ignore leading and trailing zeros, which the server does not store */
	while (number.ndigits > 0 && gs_numeric_digit(number.digits, number.ndigits - 1) == 0)
		number.ndigits--;
	while (number.ndigits > 0 && gs_numeric_digit(number.digits, 0) == 0)
	{
		number.digits += sizeof(uint16);
		number.ndigits--;
		number.weight--;
	}
	return number;
}

/* The word of the code of the absolute value; *nwritten becomes the number of digits in it. */
static uint64
first_word(const Number *number, int fixed_weight, int *nwritten)
{
	int			magnitude = Max(number->weight - fixed_weight, 0);
	int			nplaces = GS_NUMERIC_WORD_DIGITS - Max(fixed_weight - number->weight, 0);
	uint64		digits = 0;

	*nwritten = 0;
	if (number->ndigits == 0)
		return gs_numeric_word(0, 0, false);
	if (magnitude >= MAGNITUDE_LARGE)
		magnitude = MAGNITUDE_LARGE;
	else if (nplaces > 0)
	{
		*nwritten = Min(number->ndigits, nplaces);
		digits = gs_numeric_digits(number->digits, *nwritten, nplaces);
	}
	return gs_numeric_word(magnitude, digits, *nwritten < number->ndigits);
}

/* Writes bits to bytes. */
typedef struct BitWriter
{
	unsigned char *to;
	uint64		complement;		/* bytes are xored with it */
	int			nbits;			/* pending, fewer than 8 */
	uint64		bits;			/* the pending ones; above them, written ones */
} BitWriter;

static inline void
write_bits(BitWriter *writer, uint64 value, int nbits)
{
	writer->bits = writer->bits << nbits | value;
	writer->nbits += nbits;
	while (writer->nbits >= 8)
	{
		writer->nbits -= 8;
		*writer->to++ = (unsigned char) ((writer->bits >> writer->nbits) ^ writer->complement);
	}
}

static inline uint64
biased_digit(const Number *number, int i)
{
	return gs_numeric_digit(number->digits, i) + DIGIT_BIAS;
}

/* Writes four digits, which have as many bits as seven bytes, so as many bits stay pending. */
static inline void
write_four_digits(BitWriter *writer, const Number *number, int i)
{
	uint64		bits = 0;

	for (int j = 0; j < 4; j++)
		bits = bits << DIGIT_BITS | biased_digit(number, i + j);
	gs_store_be64(writer->to,
				  ((writer->bits << 56 | bits) << (8 - writer->nbits)) ^ writer->complement);
	writer->to += 7;
	writer->bits = bits;
}

/* Writes the digits from the i-th on; returns the end of their code. */
static unsigned char *
put_more_digits(const Number *number, int i, unsigned char *to)
{
	BitWriter	writer = {.to = to,.complement = number->negative ? UINT64_MAX : 0};

	if (i == 0)
		write_bits(&writer, number->weight + WEIGHT_BIAS, WEIGHT_BITS);
	for (; i + 4 <= number->ndigits; i += 4)
		write_four_digits(&writer, number, i);
	for (; i < number->ndigits; i++)
		write_bits(&writer, biased_digit(number, i), DIGIT_BITS);
	write_bits(&writer, 0, END_BITS);
	if (writer.nbits > 0)
		write_bits(&writer, 0, 8 - writer.nbits);
	return writer.to;
}

size_t
gs_numeric_write_code(const char *data, size_t nbytes, int fixed_weight, unsigned char *to)
{
	const uint16 header = gs_numeric_digit(data, 0);
	unsigned char *end = to + sizeof(uint64);
	uint64		word;
	bool		negative;

	if ((header & GS_NUMERIC_FORM) == NUMERIC_FORM_SPECIAL)
	{
		word = gs_numeric_word((header & NUMERIC_SPECIAL) == NUMERIC_NAN ?
							   MAGNITUDE_NAN : MAGNITUDE_INFINITE, 0, false);
		negative = (header & NUMERIC_SPECIAL) == NUMERIC_MINUS_INFINITY;
	}
	else
	{
		Number		number = read_number(header, data, nbytes);
		int			nwritten;

		word = first_word(&number, fixed_weight, &nwritten);
		negative = number.negative && number.ndigits > 0;
		if (nwritten < number.ndigits)
			end = put_more_digits(&number, nwritten, end);
	}
	gs_store_be64(to, negative ? ~word : word);
	return end - to;
}
