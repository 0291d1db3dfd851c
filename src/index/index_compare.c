/*-------------------------------------------------------------------------
 *
 * index_compare.c
 *	  Compares index tuples by the comparators of the index.
 *
 * By SortSupport without abbreviation, for each tuple of an index that is built, so calls of
 * comparators are avoided.  PostgreSQL's three comparators for integer Datums are recognized by
 * their addresses, as PostgreSQL's sort does.  Values with the same bytes are equal.  And values
 * with a one-byte header, as short ones are stored, are copied behind a four-byte header, because
 * the comparators of many types would otherwise allocate memory for that.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index/index_write.h"
#include "key/key_numeric.h"
#include "pg_compat.h"
#include "order/order_compare.h"

#include "access/nbtree.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"

/* How two values of a column are compared. */
typedef enum CompareMethod
{
	COMPARE_INT32,
	COMPARE_SIGNED,
	COMPARE_UNSIGNED,
	COMPARE_OTHER,				/* by a comparator, like those below */
	COMPARE_VARLENA,
	COMPARE_NUMERIC,
	COMPARE_TEXT				/* a varlena whose comparator accepts short headers */
} CompareMethod;

typedef struct CompareColumn
{
	CompareMethod method;
	SortSupportData comparator;
} CompareColumn;

struct GsIndexCompare
{
	TupleDesc	desc;
	int			ncolumns;		/* key columns, without those of INCLUDE */
	CompareColumn columns[FLEXIBLE_ARRAY_MEMBER];
};

/* A value with a four-byte header. */
typedef union LongHeader
{
	int32		header;
	uint64		align;
	char		bytes[VARHDRSZ + VARATT_SHORT_MAX];
} LongHeader;

/* Is that the comparison function of a column? */
static bool
is_compared_by(Relation index, int i, Oid function)
{
	const Oid	type = index->rd_opcintype[i];

	return get_opfamily_proc(index->rd_opfamily[i], type, type, BTORDER_PROC) == function;
}

static CompareMethod
compare_method(Relation index, int i, const SortSupportData *comparator)
{
	Form_pg_attribute column = TupleDescAttr(RelationGetDescr(index), i);

	if (comparator->comparator == ssup_datum_int32_cmp && column->attlen == sizeof(int32))
		return COMPARE_INT32;
	if (comparator->comparator == ssup_datum_signed_cmp && column->attlen == sizeof(int64))
		return COMPARE_SIGNED;
	if (comparator->comparator == ssup_datum_unsigned_cmp)
		return COMPARE_UNSIGNED;
	if (column->attlen != -1)
		return COMPARE_OTHER;
	if (is_compared_by(index, i, F_NUMERIC_CMP))
		return COMPARE_NUMERIC;
	return OidIsValid(comparator->ssup_collation) ? COMPARE_TEXT : COMPARE_VARLENA;
}

GsIndexCompare *
gs_index_compare_create(Relation index)
{
	int			ncolumns = IndexRelationGetNumberOfKeyAttributes(index);
	GsIndexCompare *compare = palloc0(offsetof(GsIndexCompare, columns) +
								  sizeof(CompareColumn) * ncolumns);

	compare->desc = RelationGetDescr(index);
	compare->ncolumns = ncolumns;
	for (int i = 0; i < ncolumns; i++)
	{
		SortSupport comparator = &compare->columns[i].comparator;
		int16		option = index->rd_indoption[i];

		comparator->ssup_cxt = CurrentMemoryContext;
		comparator->ssup_collation = index->rd_indcollation[i];
		comparator->ssup_nulls_first = (option & INDOPTION_NULLS_FIRST) != 0;
		comparator->ssup_attno = i + 1;
		gs_prepare_index_comparator(index, (option & INDOPTION_DESC) != 0, comparator);
		compare->columns[i].method = compare_method(index, i, comparator);
	}
	return compare;
}

/* Returns the value with a four-byte header, in the buffer if necessary. */
static inline Datum
with_long_header(Datum value, LongHeader *buffer)
{
	const char *from = DatumGetPointer(value);
	Size		nbytes;

	if (!VARATT_IS_SHORT(from))
		return value;
	nbytes = VARSIZE_SHORT(from) - VARHDRSZ_SHORT;
	SET_VARSIZE(buffer->bytes, VARHDRSZ + nbytes);
	for (Size i = 0; i < nbytes; i++)
		buffer->bytes[VARHDRSZ + i] = from[VARHDRSZ_SHORT + i];
	return PointerGetDatum(buffer->bytes);
}

static int
compare_varlenas(Datum a, Datum b, SortSupport comparator)
{
	LongHeader	a_long;
	LongHeader	b_long;

	if (gs_have_same_bytes(a, b))
		return 0;
	return comparator->comparator(with_long_header(a, &a_long), with_long_header(b, &b_long),
								  comparator);
}

/*
 * Compares two numerics with one-byte headers.  If they have the same sign and weight, the first
 * digits that differ decide; otherwise returns 0, which means unknown.
 */
static inline int
compare_short_numerics(const char *a, const char *b)
{
	const uint16 a_header = gs_numeric_digit(VARDATA_SHORT(a), 0);
	const uint16 b_header = gs_numeric_digit(VARDATA_SHORT(b), 0);
	const uint16 alike = GS_NUMERIC_FORM | GS_NUMERIC_SHORT_NEGATIVE | GS_NUMERIC_SHORT_WEIGHT;
	const Size	nbytes = Min(VARSIZE_SHORT(a), VARSIZE_SHORT(b)) - VARHDRSZ_SHORT;

	if ((a_header & GS_NUMERIC_FORM) != GS_NUMERIC_SHORT || ((a_header ^ b_header) & alike) != 0)
		return 0;
	for (int i = 1; (i + 1) * sizeof(uint16) <= nbytes; i++)
	{
		const int	difference = gs_numeric_digit(VARDATA_SHORT(a), i) -
			gs_numeric_digit(VARDATA_SHORT(b), i);

		if (difference != 0)
			return (a_header & GS_NUMERIC_SHORT_NEGATIVE) != 0 ? -difference : difference;
	}
	return 0;
}

static int
compare_numerics(Datum a, Datum b, SortSupport comparator)
{
	int			result = 0;

	if (VARATT_IS_SHORT(DatumGetPointer(a)) && VARATT_IS_SHORT(DatumGetPointer(b)))
		result = compare_short_numerics(DatumGetPointer(a), DatumGetPointer(b));
	return result != 0 ? result : compare_varlenas(a, b, comparator);
}

static inline int
compare_int64(int64 a, int64 b)
{
	return a < b ? -1 : a > b;
}

static inline int
compare_values(const CompareColumn *column, Datum a, Datum b)
{
	SortSupport comparator = unconstify(SortSupportData *, &column->comparator);
	int			result;

	switch (column->method)
	{
		case COMPARE_INT32:
			result = compare_int64(DatumGetInt32(a), DatumGetInt32(b));
			break;
		case COMPARE_SIGNED:
			result = compare_int64(DatumGetInt64(a), DatumGetInt64(b));
			break;
		case COMPARE_UNSIGNED:
			result = a < b ? -1 : a > b;
			break;
		case COMPARE_VARLENA:
			result = compare_varlenas(a, b, comparator);
			break;
		case COMPARE_NUMERIC:
			result = compare_numerics(a, b, comparator);
			break;
		case COMPARE_TEXT:
			result = gs_have_same_bytes(a, b) ? 0 : comparator->comparator(a, b, comparator);
			break;
		default:
			result = comparator->comparator(a, b, comparator);
			break;
	}
	if (comparator->ssup_reverse)
		INVERT_COMPARE_RESULT(result);
	return result;
}

/* Compares the columns from the first one given. */
static pg_noinline int
compare_columns(GsIndexCompare *compare, IndexTuple a, IndexTuple b, int first)
{
	for (int i = first; i < compare->ncolumns; i++)
	{
		CompareColumn *column = &compare->columns[i];
		bool		a_null;
		bool		b_null;
		Datum		a_value = index_getattr(a, i + 1, compare->desc, &a_null);
		Datum		b_value = index_getattr(b, i + 1, compare->desc, &b_null);
		int			result;

		if (likely(!a_null && !b_null))
			result = compare_values(column, a_value, b_value);
		else if (a_null && b_null)
			result = 0;
		else
			result = a_null == column->comparator.ssup_nulls_first ? -1 : 1;
		if (result != 0)
			return result;
	}
	return 0;
}

/* The offset of the first column of a tuple without NULLs. */
#define FIRST_OFFSET	MAXALIGN(sizeof(IndexTupleData))

int
gs_index_compare_entries(GsIndexCompare *compare, IndexTuple a, IndexTuple b)
{
	const char *a_first = (const char *) a + FIRST_OFFSET;
	const char *b_first = (const char *) b + FIRST_OFFSET;
	int			result;

	if (unlikely(IndexTupleHasNulls(a) || IndexTupleHasNulls(b)))
		return compare_columns(compare, a, b, 0);
	switch (compare->columns[0].method)
	{
		case COMPARE_INT32:
			result = compare_int64(*(const int32 *) a_first, *(const int32 *) b_first);
			break;
		case COMPARE_SIGNED:
			result = compare_int64(*(const int64 *) a_first, *(const int64 *) b_first);
			break;
		default:
			return compare_columns(compare, a, b, 0);
	}
	if (result == 0)
		return compare->ncolumns == 1 ? 0 : compare_columns(compare, a, b, 1);
	return compare->columns[0].comparator.ssup_reverse ? -result : result;
}

bool
gs_index_compare_has_null(const GsIndexCompare *compare, IndexTuple tuple)
{
	for (int i = 0; i < compare->ncolumns; i++)
	{
		bool		null;

		(void) index_getattr(tuple, i + 1, compare->desc, &null);
		if (null)
			return true;
	}
	return false;
}
