/*-------------------------------------------------------------------------
 *
 * key_order.h
 *	  The order of a sort operator, and the kind of code that preserves it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_ORDER_H
#define GPUSORT_KEY_ORDER_H

#include "utils/typcache.h"

/* How values are encoded: one kind for each order, not for each type. */
typedef enum GsKeyKind
{
	GS_KEY_BOOL,
	GS_KEY_CHAR,				/* "char", unsigned */
	GS_KEY_INT16,
	GS_KEY_INT32,				/* int4, date */
	GS_KEY_UINT32,				/* oid */
	GS_KEY_INT64,				/* int8, money, time, timestamp[tz] */
	GS_KEY_UINT64,				/* xid8, pg_lsn */
	GS_KEY_FLOAT4,
	GS_KEY_FLOAT8,
	GS_KEY_ABBREVIATED,			/* abbreviated keys of any type:
								 * key_sortsupport.h */
	GS_KEY_ENUM,
	GS_KEY_TID,
	GS_KEY_TIMETZ,
	GS_KEY_INTERVAL,
	GS_KEY_UUID,
	GS_KEY_MACADDR,
	GS_KEY_MACADDR8,
	GS_KEY_INET,				/* inet, cidr */
	GS_KEY_TEXT,				/* text, varchar */
	GS_KEY_BPCHAR,
	GS_KEY_NAME,
	GS_KEY_BYTEA,
	GS_KEY_NUMERIC,				/* from here on, codes of key_bytes.h */
	GS_KEY_BIT,					/* bit, varbit */
	GS_KEY_OIDVECTOR,
	GS_KEY_ARRAY,
	GS_KEY_RANGE,
	GS_KEY_MULTIRANGE
} GsKeyKind;

typedef struct GsKeyOrder
{
	GsKeyKind	kind;
	Oid			type;			/* of the values; the base type of a domain */
	Oid			collation;		/* of text, if it is not compared byte by byte
								 * (key_collation.h); else InvalidOid */
	struct GsKeyOrder *element; /* of array elements or range bounds; else
								 * NULL */
	bool		approximate;	/* GS_KEY_ABBREVIATED: see key_sortsupport.h */
} GsKeyOrder;

/*
 * Finds the order of a sort operator for the values of a type under a collation, and
 * whether it is descending.  Returns false, and sets *why_not to a reason for the user
 * (palloc'd or constant), if it cannot be encoded.  Allocates in the current memory
 * context.
 */
extern bool gs_key_order_of_operator(Oid operator, Oid type, Oid collation,
									 GsKeyOrder *order, bool *descending, char **why_not);

/* Does the order, or that of its elements, use a collation of the C library? */
extern bool gs_key_order_uses_libc(const GsKeyOrder *order);

/* Does a sort by these keys have to be verified? */
extern bool gs_key_order_is_approximate(const GsKeyOrder *order);

/* The type cache entry of a range type, or of the range type of a multirange type. */
extern TypeCacheEntry *gs_key_order_range(const GsKeyOrder *order);

#endif							/* GPUSORT_KEY_ORDER_H */
