/*-------------------------------------------------------------------------
 *
 * order_guess.c
 *	  Guesses the order of a type of which only the comparison function is known.
 *
 * Most types of extensions and users are like a built-in one, or begin with a number that decides
 * most comparisons.  So a guess takes the first bytes of a value for a number, or for bytes to
 * compare one by one, ascending or descending.  engine/tie_sort.c finds out whether it is right.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/key_codec.h"
#include "key/key_distinct.h"
#include "order/order_compare.h"

#include "access/tupmacs.h"
#include "fmgr.h"

/* What the bytes of a value, or those after an integer, are taken for. */
typedef enum GuessFormat
{
	FORMAT_INT64,
	FORMAT_FLOAT8,
	FORMAT_INT32,
	FORMAT_FLOAT4,
	FORMAT_INT16,
	FORMAT_BYTES,
	FORMAT_UINT64,
	FORMAT_UINT32,
	FORMAT_FLOAT8_LATER
} GuessFormat;

/* Shorter values have no such code. */
static const uint8 least_bytes[] =
{
	[FORMAT_INT64] = sizeof(int64),
	[FORMAT_FLOAT8] = sizeof(float8),
	[FORMAT_INT32] = sizeof(int32),
	[FORMAT_FLOAT4] = sizeof(float4),
	[FORMAT_INT16] = sizeof(int16),
	[FORMAT_BYTES] = 0,
	[FORMAT_UINT64] = sizeof(uint64),
	[FORMAT_UINT32] = sizeof(uint32),
	[FORMAT_FLOAT8_LATER] = sizeof(int32) + sizeof(float8)
};

StaticAssertDecl(GS_GUESSES == 2 * (FORMAT_FLOAT8_LATER + 1),
				 "each format, ascending and descending");

/* The most bytes that a code is made of. */
#define MOST_BYTES	(sizeof(int32) + sizeof(float8))

/* The first bytes of a value; others are 0. */
typedef struct FirstBytes
{
	unsigned char bytes[MOST_BYTES];
	Size		nbytes;
} FirstBytes;

static inline FirstBytes
first_bytes(const void *from, Size nbytes)
{
	FirstBytes	first = {.nbytes = Min(nbytes, MOST_BYTES)};

	memcpy(first.bytes, from, first.nbytes);
	return first;
}

static pg_noinline FirstBytes
fetched_bytes(struct varlena *value)
{
	struct varlena *slice = pg_detoast_datum_slice(value, 0, MOST_BYTES);
	const FirstBytes first = first_bytes(VARDATA_ANY(slice), VARSIZE_ANY_EXHDR(slice));

	pfree(slice);
	return first;
}

static inline FirstBytes
bytes_of(Form_pg_attribute column, Datum value)
{
	const char *bytes;
	Size		nbytes;

	if (column->attbyval)
	{
		FirstBytes	first = {.nbytes = column->attlen};

		store_att_byval(first.bytes, value, column->attlen);
		return first;
	}
	if (gs_is_toasted(column->attlen, value))
		return fetched_bytes((struct varlena *) DatumGetPointer(value));
	bytes = gs_stored_bytes(column->attlen, value, &nbytes);
	return first_bytes(bytes, nbytes);
}

static inline uint64
code_of(FirstBytes first, GuessFormat format)
{
	uint64		bits;

	if (first.nbytes < least_bytes[format])
		return 0;
	switch (format)
	{
		case FORMAT_INT64:
			return gs_encode_int64((int64) gs_load_uint64(first.bytes));
		case FORMAT_FLOAT8:
			return gs_float8_canonical(gs_encode_float8_bits(gs_load_uint64(first.bytes)));
		case FORMAT_INT32:
			return gs_encode_int32((int32) gs_load_uint32(first.bytes)) << 32;
		case FORMAT_FLOAT4:
			return gs_float4_canonical(gs_encode_float4_bits(gs_load_uint32(first.bytes))) << 32;
		case FORMAT_INT16:
			return gs_encode_int16((int16) gs_load_uint16(first.bytes)) << 48;
		case FORMAT_BYTES:
			return gs_load_be64(first.bytes);
		case FORMAT_UINT64:
			return gs_load_uint64(first.bytes);
		case FORMAT_UINT32:
			return (uint64) gs_load_uint32(first.bytes) << 32;
		case FORMAT_FLOAT8_LATER:
			bits = gs_load_uint64(first.bytes + sizeof(int32));
			return gs_float8_canonical(gs_encode_float8_bits(bits));
	}
	pg_unreachable();
}

uint64
gs_guess_code(Form_pg_attribute column, Datum value, int guess)
{
	const uint64 code = code_of(bytes_of(column, value), guess / 2);

	return guess % 2 == 0 ? code : ~code;
}
