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
	GS_KEY_UINT64,				/* oid8, xid8, pg_lsn */
	GS_KEY_FLOAT4,
	GS_KEY_FLOAT8,
	GS_KEY_ABBREVIATED,			/* of any type: key_sortsupport.h */
	GS_KEY_ENUM,
	GS_KEY_TID,
	GS_KEY_TIMETZ,
	GS_KEY_INTERVAL,
	GS_KEY_UUID,
	GS_KEY_MACADDR,
	GS_KEY_MACADDR8,
	GS_KEY_INET,				/* inet, cidr */
	GS_KEY_COMPARED,			/* any order: values have no code */
	GS_KEY_TEXT,				/* text, varchar */
	GS_KEY_BPCHAR,
	GS_KEY_NAME,
	GS_KEY_BYTEA,
	GS_KEY_NUMERIC,				/* from here on, codes of key_bytes.h */
	GS_KEY_BIT,					/* bit, varbit */
	GS_KEY_OIDVECTOR,
	GS_KEY_TSVECTOR,
	GS_KEY_HSTORE,
	GS_KEY_LTREE,
	GS_KEY_ARRAY,				/* from here on, codes of elements */
	GS_KEY_RANGE,
	GS_KEY_MULTIRANGE,
	GS_KEY_JSONB,				/* the elements are its strings */
	GS_KEY_CITEXT,				/* the element is the text in lower case */
	GS_KEY_CITEXT_PATTERN,
	GS_KEY_COMPOSITE			/* of its columns */
} GsKeyKind;

typedef struct GsKeyOrder
{
	GsKeyKind	kind;
	Oid			type;			/* of the values; the base type of a domain */
	Oid			collation;		/* of text that is not compared byte by byte; else InvalidOid */
	struct GsKeyOrder *element; /* of array elements, range bounds, texts in a value, or the first
								 * column of a composite type; else NULL */
	struct GsKeyOrder *next;	/* of the next column of that; else NULL */
	bool		approximate;	/* GS_KEY_ABBREVIATED: see key_sortsupport.h */
} GsKeyOrder;

/*
 * Finds the order of a sort operator for the values of a type under a collation, and
 * whether it is descending.  Sets *why_not to a reason for the user (palloc'd or constant)
 * if it has no code: GS_KEY_COMPARED.  Returns false, with a reason, if PostgreSQL has to
 * sort by it.  Allocates in the current memory context.
 */
extern bool gs_key_order_of_operator(Oid operator, Oid type, Oid collation,
									 GsKeyOrder *order, bool *descending, char **why_not);

/* Is a function this C function of a module, such as "citext"? */
extern bool gs_key_order_is_function(Oid function, const char *library, const char *symbol);

/* The collation of the C library that the order, or that of its elements, uses; or InvalidOid. */
extern Oid	gs_key_order_libc_collation(const GsKeyOrder *order);

/* Does it, or do its elements, use a collation for which gs_icu_disagrees()? */
extern bool gs_key_order_icu_disagrees(const GsKeyOrder *order);

/* For the user, why a sort by approximate keys may have to be repaired; NULL: they are exact. */
extern const char *gs_key_order_mismatch_reason(const GsKeyOrder *order);

/* Are keys of values of variable width?  Those of inet are not. */
static inline bool
gs_key_order_is_variable(const GsKeyOrder *order, int16 attlen)
{
	return attlen == -1 && order->kind != GS_KEY_INET;
}

/* Does the key of a value of variable width cost much more than to copy the value? */
extern bool gs_key_order_is_expensive(const GsKeyOrder *order);

/* The type cache entry of a range type, or of the range type of a multirange type. */
extern TypeCacheEntry *gs_key_order_range(const GsKeyOrder *order);

#endif							/* GPUSORT_KEY_ORDER_H */
