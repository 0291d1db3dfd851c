/*-------------------------------------------------------------------------
 *
 * key_stored.h
 *	  The bytes of a value as it is stored.
 *
 * Values that are stored alike, with the same bytes and both toasted or neither, are equal
 * in every order.  A value that is compressed need not be decompressed for this.
 * Values that are equal can be stored differently: the numerics 1.0 and 1.00,
 * or with other compression.
 *
 * attlen is that of pg_attribute; the values are not passed by value.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_STORED_H
#define GPUSORT_KEY_STORED_H

#include "pg_compat.h"

/* Is a value compressed or out of line?  Then its header tells more than its length. */
static inline bool
gs_is_toasted(int16 attlen, Datum value)
{
	const void *at = DatumGetPointer(value);

	return attlen == -1 && (VARATT_IS_COMPRESSED(at) || VARATT_IS_EXTERNAL(at));
}

/* The bytes of a value, without a header that tells only their number. */
static inline const char *
gs_stored_bytes(int16 attlen, Datum value, Size *nbytes)
{
	const char *at = DatumGetPointer(value);

	if (attlen == -1 && !gs_is_toasted(attlen, value))
	{
		*nbytes = VARSIZE_ANY_EXHDR(at);
		return VARDATA_ANY(at);
	}
	*nbytes = attlen > 0 ? attlen : attlen == -1 ? VARSIZE_ANY(at) : strlen(at);
	return at;
}

/* A hash of such bytes. */
extern uint32 gs_stored_hash(const char *bytes, Size nbytes);

#endif							/* GPUSORT_KEY_STORED_H */
