/*-------------------------------------------------------------------------
 *
 * key_order.h
 *	  What an ordering compares values by, and so which code keeps it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_ORDER_H
#define GPUSORT_KEY_ORDER_H

#include "utils/typcache.h"

/* How values become codes; one per order, not per type. */
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
	GS_KEY_ABBREVIATED,			/* a code of any type's: key_sortsupport.h */
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
	GS_KEY_NUMERIC,				/* from here on, bytes that are made: key_bytes.h */
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
	Oid			collation;		/* of text that it does not compare byte by byte
								 * (key_collation.h), else InvalidOid */
	struct GsKeyOrder *element; /* of an array's elements, of a range's bounds */
	bool		approximate;	/* GS_KEY_ABBREVIATED: see key_sortsupport.h */
} GsKeyOrder;

/*
 * The order that a sort operator gives to the values of a type under a
 * collation.  If it can be encoded, fills in order (in the current memory
 * context) and descending; if not, sets *why_not to a reason for people (palloc'd or constant).
 */
extern bool gs_key_order_of_operator(Oid operator, Oid type, Oid collation,
									 GsKeyOrder *order, bool *descending, char **why_not);

/* Does the order, or that of its elements, use a collation of the C library? */
extern bool gs_key_order_uses_libc(const GsKeyOrder *order);

/* Does an order by these keys have to be verified?  So it does if it uses the C library. */
extern bool gs_key_order_is_approximate(const GsKeyOrder *order);

/* The type cache's entry of the type of ranges: the order's own, or of its multiranges. */
extern TypeCacheEntry *gs_key_order_range(const GsKeyOrder *order);

#endif							/* GPUSORT_KEY_ORDER_H */
