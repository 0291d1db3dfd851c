/*-------------------------------------------------------------------------
 *
 * key_abbreviation.c
 *	  What a type's SortSupport makes of a value: the beginning of an order.
 *
 * A type tells a tuplesort how to turn a value into a Datum, and which function
 * compares these.  Where that is one of the three that compare Datums as plain
 * numbers, the Datum is a key that any engine can sort by, up to ties; those
 * are for the type's comparator.  So a type needs no code of ours: PostGIS's
 * geometry and a user's own are sorted like this.
 *
 * A type whose values are compared by one of the three themselves needs not
 * even be turned into something.
 *
 * Whether it pays depends on the values.  The type counts the distinct ones, and
 * a tuplesort asks it at 10 rows, 20, 40 and so on; so do we.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key_abbreviation.h"
#include "key_codec.h"

#include "access/nbtree.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"

/* How the Datums compare. */
typedef enum DatumOrder
{
	DATUM_UNSIGNED,
	DATUM_SIGNED,
	DATUM_INT32
} DatumOrder;

struct GsKeyAbbreviation
{
	SortSupportData support;
	DatumOrder	order;
	int64		ncodes;
	int64		next_question;	/* at so many codes */
};

static bool
order_of_comparator(SortSupport support, DatumOrder *order)
{
	if (support->comparator == ssup_datum_unsigned_cmp)
		*order = DATUM_UNSIGNED;
	else if (support->comparator == ssup_datum_signed_cmp)
		*order = DATUM_SIGNED;
	else if (support->comparator == ssup_datum_int32_cmp)
		*order = DATUM_INT32;
	else
		return false;
	return true;
}

/* Has the operator's family the functions that are asked?  Without, the server reports an error. */
static bool
has_support(Oid sort_operator)
{
	Oid			family;
	Oid			type;
	int16		strategy;

	return get_ordering_op_properties(sort_operator, &family, &type, &strategy) &&
		OidIsValid(get_opfamily_proc(family, type, type, BTSORTSUPPORT_PROC)) &&
		OidIsValid(get_opfamily_proc(family, type, type, BTORDER_PROC));
}

GsKeyAbbreviation *
gs_key_abbreviation_create(Oid sort_operator, Oid collation)
{
	GsKeyAbbreviation *abbreviation;
	SortSupport support;

	if (!has_support(sort_operator))
		return NULL;
	abbreviation = palloc0(sizeof(GsKeyAbbreviation));
	support = &abbreviation->support;
	support->ssup_cxt = CurrentMemoryContext;
	support->ssup_collation = collation;
	support->abbreviate = true;
	PrepareSortSupportFromOrderingOp(sort_operator, support);
	abbreviation->next_question = 10;
	if (order_of_comparator(support, &abbreviation->order))
		return abbreviation;
	pfree(abbreviation);
	return NULL;
}

uint64
gs_key_abbreviation_code(GsKeyAbbreviation *abbreviation, Datum value)
{
	SortSupport support = &abbreviation->support;
	Datum		datum = support->abbrev_converter == NULL ? value :
		support->abbrev_converter(value, support);

	abbreviation->ncodes++;
	switch (abbreviation->order)
	{
		case DATUM_SIGNED:
			return gs_encode_int64(DatumGetInt64(datum));
		case DATUM_INT32:
			return gs_encode_int32(DatumGetInt32(datum));
		default:
			return datum;
	}
}

bool
gs_key_abbreviation_is_poor(GsKeyAbbreviation *abbreviation)
{
	if (abbreviation->ncodes < abbreviation->next_question ||
		abbreviation->support.abbrev_converter == NULL)
		return false;
	abbreviation->next_question *= 2;
	return abbreviation->support.abbrev_abort(Min(abbreviation->ncodes, PG_INT32_MAX),
											  &abbreviation->support);
}
