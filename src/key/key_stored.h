/*-------------------------------------------------------------------------
 *
 * key_stored.h
 *	  The bytes of a value as it is stored.
 *
 * Values that are stored alike are equal in every order: equal bytes are equal.  A
 * value that is compressed need not be decompressed for this.  Values that are equal
 * can be stored in several ways: 1.0 and 1.00, with headers of one byte and of four.
 *
 * attlen is that of pg_attribute; the values are not passed by value.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_STORED_H
#define GPUSORT_KEY_STORED_H

#include "pg_compat.h"

/* Are two values of variable width stored alike? */
static inline bool
gs_have_same_bytes(Datum a, Datum b)
{
	const char *a_bytes = DatumGetPointer(a);
	const char *b_bytes = DatumGetPointer(b);
	const Size	nbytes = VARSIZE_ANY(a_bytes);
	uint64		a_last;
	uint64		b_last;

	if (nbytes != VARSIZE_ANY(b_bytes))
		return false;
	/* in an order, values next to each other often begin alike, but they seldom end alike */
	if (nbytes >= sizeof(uint64))
	{
		memcpy(&a_last, a_bytes + nbytes - sizeof(uint64), sizeof(uint64));
		memcpy(&b_last, b_bytes + nbytes - sizeof(uint64), sizeof(uint64));
		if (a_last != b_last)
			return false;
	}
	return memcmp(a_bytes, b_bytes, nbytes) == 0;
}

/* The same for any attlen. */
static inline bool
gs_are_stored_alike(int16 attlen, Datum a, Datum b)
{
	if (attlen == -1)
		return gs_have_same_bytes(a, b);
	return attlen == -2 ? strcmp(DatumGetCString(a), DatumGetCString(b)) == 0 :
		memcmp(DatumGetPointer(a), DatumGetPointer(b), attlen) == 0;
}

/* The number of bytes of a value. */
static inline Size
gs_stored_bytes(int16 attlen, Datum value)
{
	return attlen > 0 ? attlen : attlen == -1 ? VARSIZE_ANY(DatumGetPointer(value)) :
		strlen(DatumGetCString(value)) + 1;
}

/* A hash of all of them. */
extern uint32 gs_stored_hash(int16 attlen, Datum value);

#endif							/* GPUSORT_KEY_STORED_H */
