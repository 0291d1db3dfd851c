/*-------------------------------------------------------------------------
 *
 * key_bytes.c
 *	  Order-preserving codes of values of variable width.
 *
 * numeric
 * -------
 * A value is digits of base 10000 and the weight of the first.  Its code is a
 * string of bits:
 *
 *	  | magnitude | digit | digit | .. | 00 | zeros to a whole byte, the 8th at least |
 *		 6 bits     14      14			 2
 *
 * and all of them complemented if the value is negative.  The magnitude tells
 * zero, the weights from 10000^-8 to 10000^19, those below and above (whose
 * weight then follows in 17 bits), infinity and NaN apart.  A digit has 2^12
 * added, so that its first two bits are never 00: that ends the digits, below
 * any further one.  The number of digits shown after the point plays no part.
 *
 * Four digits make 64 bits, so every numeric(14,2), and every number of up to
 * 13 decimal digits wherever they begin, is decided by the prefix in the
 * record.  1234567.89 is 123, 4567, 8900 times 10000^1, 10000^0, 10000^-1:
 *
 *	  42		 123 + 4096		4567 + 4096		8900 + 4096		end
 *	  101010	 01000001111011	 10000111010111	 11001011000100	 00 00000000000000
 *
 * bit, varbit
 * -----------
 * The bits are compared as bytes, then their number.  They are cut into groups
 * of seven bytes, the last one padded with zeros, and each group is followed by
 * a byte that says how many of its bits are the value's, or that more groups
 * follow: which is more than any number.  A string of up to 56 bits is decided
 * by the prefix.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key_bytes.h"

#include "port/pg_bswap.h"
#include "utils/memutils.h"

/* ------------------------------------------------------------- the buffer */

void
gs_key_buffer_init(GsKeyBuffer *buffer)
{
	buffer->context = CurrentMemoryContext;
	buffer->size = 64;
	buffer->data = palloc(buffer->size);
	buffer->len = 0;
}

/* Makes room for so many more bytes and returns where they go. */
static inline unsigned char *
reserve(GsKeyBuffer *buffer, size_t nbytes)
{
	if (unlikely(buffer->size - buffer->len < nbytes))
	{
		buffer->size = Max(buffer->size * 2, buffer->len + nbytes);
		buffer->data = repalloc_huge(buffer->data, buffer->size);
	}
	return buffer->data + buffer->len;
}

/* ---------------------------------------------------------------- numeric */

/*
 * A numeric as it is stored: a header of 16 bits, in the long form another 16
 * with the weight, and the digits, of 16 bits each.  PostgreSQL keeps these
 * definitions to itself (numeric.c), but they are those of its files.
 */
#define NUMERIC_FORM			0xC000	/* the header's upper two bits */
#define NUMERIC_FORM_NEGATIVE	0x4000	/* long form; 0: positive */
#define NUMERIC_FORM_SPECIAL	0xC000
#define NUMERIC_SHORT			0x8000	/* there is no second half */
#define NUMERIC_SHORT_NEGATIVE	0x2000
#define NUMERIC_SHORT_WEIGHT	0x007F	/* two's complement */
#define NUMERIC_SPECIAL			0xF000	/* of special values */
#define NUMERIC_NAN				0xC000
#define NUMERIC_MINUS_INFINITY	0xF000

typedef struct NumericDigits
{
	bool		negative;
	int			weight;			/* of the first digit */
	int			ndigits;		/* 0 if the value is zero */
	const char *digits;
} NumericDigits;

/* The code's magnitudes. */
#define MAGNITUDE_BITS			6
#define MAGNITUDE_ZERO			0
#define MAGNITUDE_SMALL			1	/* and the weight follows */
#define MAGNITUDE_OF_WEIGHT_0	10
#define MAGNITUDE_LARGE			30	/* and the weight follows */
#define MAGNITUDE_INFINITE		31
#define MAGNITUDE_NAN			32

#define MIN_SHORT_WEIGHT		(MAGNITUDE_SMALL + 1 - MAGNITUDE_OF_WEIGHT_0)
#define MAX_SHORT_WEIGHT		(MAGNITUDE_LARGE - 1 - MAGNITUDE_OF_WEIGHT_0)

#define WEIGHT_BITS				17
#define WEIGHT_BIAS				(1 << (WEIGHT_BITS - 1))

#define DIGIT_BITS				14
#define DIGIT_BIAS				(1 << (DIGIT_BITS - 2))
#define END_BITS				2
#define MAX_PREFIX_DIGITS		4

static inline uint16
load_uint16(const char *from)
{
	uint16		value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static inline int
digit_at(const NumericDigits *number, int i)
{
	return load_uint16(number->digits + i * sizeof(uint16));
}

/* What is behind the header of a number that is not special. */
static inline NumericDigits
numeric_digits(uint16 header, const char *data, int nbytes)
{
	NumericDigits number;
	int			header_bytes = sizeof(uint16);

	if (header & NUMERIC_SHORT)
	{
		number.negative = (header & NUMERIC_SHORT_NEGATIVE) != 0;
		number.weight = ((header & NUMERIC_SHORT_WEIGHT) ^ 0x40) - 0x40;
	}
	else
	{
		number.negative = (header & NUMERIC_FORM) == NUMERIC_FORM_NEGATIVE;
		number.weight = (int16) load_uint16(data + sizeof(uint16));
		header_bytes += sizeof(uint16);
	}
	number.digits = data + header_bytes;
	number.ndigits = (nbytes - header_bytes) / sizeof(uint16);

	/* the server stores no zeros at the ends; they would not count */
	while (number.ndigits > 0 && digit_at(&number, number.ndigits - 1) == 0)
		number.ndigits--;
	while (number.ndigits > 0 && digit_at(&number, 0) == 0)
	{
		number.digits += sizeof(uint16);
		number.ndigits--;
		number.weight--;
	}
	return number;
}

/* The first word of a code before it is complemented: its magnitude. */
static inline uint64
magnitude_word(int magnitude, bool negative)
{
	return (uint64) (magnitude + 31 + negative) << (64 - MAGNITUDE_BITS);
}

/* Bits on their way to bytes. */
typedef struct BitWriter
{
	unsigned char *to;
	unsigned char complement;	/* what bytes are xored with */
	int			nbits;			/* not written yet */
	uint64		bits;
} BitWriter;

static inline void
write_bits(BitWriter *writer, uint64 value, int nbits)
{
	writer->bits = writer->bits << nbits | value;
	writer->nbits += nbits;
	while (writer->nbits >= 8)
	{
		writer->nbits -= 8;
		*writer->to++ = (unsigned char) (writer->bits >> writer->nbits) ^ writer->complement;
	}
}

/* A number whose weight or digits a word cannot hold. */
static pg_noinline void
put_long_number(GsKeyBuffer *buffer, const NumericDigits *number, int magnitude)
{
	unsigned char *start = reserve(buffer, sizeof(uint64) + (number->ndigits + 2) * sizeof(uint16));
	BitWriter	writer = {.to = start,.complement = number->negative ? 0xFF : 0};

	write_bits(&writer, magnitude_word(magnitude, number->negative) >> (64 - MAGNITUDE_BITS),
			   MAGNITUDE_BITS);
	if (magnitude == MAGNITUDE_SMALL || magnitude == MAGNITUDE_LARGE)
		write_bits(&writer, number->weight + WEIGHT_BIAS, WEIGHT_BITS);
	for (int i = 0; i < number->ndigits; i++)
		write_bits(&writer, digit_at(number, i) + DIGIT_BIAS, DIGIT_BITS);
	write_bits(&writer, 0, END_BITS);
	while (writer.nbits > 0 || writer.to - start < sizeof(uint64))
		write_bits(&writer, 0, 8 - writer.nbits);
	buffer->len += writer.to - start;
}

static inline void
put_word(GsKeyBuffer *buffer, uint64 word)
{
	word = pg_hton64(word);
	memcpy(reserve(buffer, sizeof(word)), &word, sizeof(word));
	buffer->len += sizeof(word);
}

static void
put_numeric(GsKeyBuffer *buffer, const char *data, int nbytes)
{
	uint16		header = load_uint16(data);
	NumericDigits number;
	int			magnitude;
	uint64		word;

	if ((header & NUMERIC_FORM) == NUMERIC_FORM_SPECIAL)
	{
		bool		negative = (header & NUMERIC_SPECIAL) == NUMERIC_MINUS_INFINITY;

		word = magnitude_word((header & NUMERIC_SPECIAL) == NUMERIC_NAN ?
							  MAGNITUDE_NAN : MAGNITUDE_INFINITE, negative);
		put_word(buffer, negative ? ~word : word);
		return;
	}
	number = numeric_digits(header, data, nbytes);
	if (number.ndigits == 0)
	{
		put_word(buffer, magnitude_word(MAGNITUDE_ZERO, false));
		return;
	}
	magnitude = number.weight < MIN_SHORT_WEIGHT ? MAGNITUDE_SMALL :
		number.weight > MAX_SHORT_WEIGHT ? MAGNITUDE_LARGE :
		number.weight + MAGNITUDE_OF_WEIGHT_0;
	if (number.ndigits > MAX_PREFIX_DIGITS ||
		magnitude == MAGNITUDE_SMALL || magnitude == MAGNITUDE_LARGE)
	{
		put_long_number(buffer, &number, magnitude);
		return;
	}
	word = magnitude_word(magnitude, number.negative);
	for (int i = 0; i < number.ndigits; i++)
		word |= (uint64) (digit_at(&number, i) + DIGIT_BIAS) <<
			(64 - MAGNITUDE_BITS - (i + 1) * DIGIT_BITS);
	put_word(buffer, number.negative ? ~word : word);
}

/* ------------------------------------------------------------ bit, varbit */

#define GROUP_BYTES		7
#define GROUP_FOLLOWED	0xFF

static void
put_groups(GsKeyBuffer *buffer, const char *data, size_t nbits)
{
	size_t		nbytes = (nbits + 7) / 8;
	unsigned char *to = reserve(buffer, (nbytes / GROUP_BYTES + 1) * (GROUP_BYTES + 1));

	while (nbytes > GROUP_BYTES)
	{
		memcpy(to, data, GROUP_BYTES);
		to[GROUP_BYTES] = GROUP_FOLLOWED;
		data += GROUP_BYTES;
		nbytes -= GROUP_BYTES;
		nbits -= 8 * GROUP_BYTES;
		to += GROUP_BYTES + 1;
	}
	memset(to, 0, GROUP_BYTES);
	memcpy(to, data, nbytes);
	to[GROUP_BYTES] = (unsigned char) nbits;
	buffer->len = to + GROUP_BYTES + 1 - buffer->data;
}

static void
put_bit(GsKeyBuffer *buffer, const char *data)
{
	int32		nbits;			/* the first part of a VarBit */

	memcpy(&nbits, data, sizeof(nbits));
	put_groups(buffer, data + sizeof(nbits), nbits);
}

/* ------------------------------------------------------------------ values */

void
gs_key_bytes_put(GsKeyBuffer *buffer, const GsKeyOrder *order, const struct varlena *value)
{
	switch (order->kind)
	{
		case GS_KEY_NUMERIC:
			put_numeric(buffer, VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
			break;
		case GS_KEY_BIT:
			put_bit(buffer, VARDATA_ANY(value));
			break;
		default:
			elog(ERROR, "key kind %d is not made of bytes", (int) order->kind);
	}
}
