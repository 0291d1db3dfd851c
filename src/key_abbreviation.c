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
 * Under ICU a text becomes the first 8 bytes of its sort key.  Where these can be had from
 * tables, in a tenth of the time (key_elements.h), they are; but only those of the first level,
 * since what follows can be had from ICU as well, and no further is it one's own business how it
 * makes them piece by piece.
 *
 * Whether it pays depends on the values.  The type counts the distinct ones, and
 * a tuplesort asks it at 10 rows, 20, 40 and so on; so do we.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key_abbreviation.h"
#include "key_codec.h"
#include "key_elements.h"

#include "access/nbtree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"

/* Texts whose codes the type makes, as it counts the distinct ones; it is asked at as many. */
#define COUNTED_TEXTS	2560

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
	GsKeyElements *elements;	/* of texts under ICU */
	bool		blank_padded;
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

void
gs_key_abbreviation_of_texts(GsKeyAbbreviation *abbreviation, Oid collation, bool blank_padded)
{
	abbreviation->elements = gs_key_elements_of(collation);
	abbreviation->blank_padded = blank_padded;
}

/* The code of a text, unless SortSupport has to make it. */
static inline bool
code_by_elements(const GsKeyAbbreviation *abbreviation, Datum value, uint64 *code)
{
	struct varlena *bytes = (struct varlena *) DatumGetPointer(value);
	char	   *string;
	int			len;

	if (VARATT_IS_COMPRESSED(bytes) || VARATT_IS_EXTERNAL(bytes))
		return false;
	string = VARDATA_ANY(bytes);
	len = VARSIZE_ANY_EXHDR(bytes);
	if (abbreviation->blank_padded)
		len = bpchartruelen(string, len);
	return gs_key_elements_begin(abbreviation->elements, string, len, code);
}

uint64
gs_key_abbreviation_code(GsKeyAbbreviation *abbreviation, Datum value)
{
	SortSupport support = &abbreviation->support;
	Datum		datum = value;
	uint64		code;

	abbreviation->ncodes++;
	if (abbreviation->elements != NULL && abbreviation->ncodes > COUNTED_TEXTS &&
		code_by_elements(abbreviation, value, &code))
		return code;
	if (support->abbrev_converter != NULL)
		datum = support->abbrev_converter(value, support);
	if (abbreviation->elements != NULL)
		return gs_key_elements_begin_of(datum);
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
