/*-------------------------------------------------------------------------
 *
 * key_sortsupport.c
 *	  What a type's SortSupport makes of a value: the beginning of an order.
 *
 * A type tells a tuplesort how to turn a value into a Datum, and which function
 * compares these.  Where that is one of the three that compare Datums as plain
 * numbers, the Datum is a key that any engine can sort by, up to ties; those
 * are for the type's comparator.  So a type needs no code of ours.
 *
 * A type can also compare these Datums by a function of its own, as PostGIS's geometry
 * does, where 0 stands for a value that only the full comparison can place.  Its order is not
 * known, but nearly always that of unsigned numbers.  So the Datum is an approximate
 * key: before the first row leaves, the type's function compares the Datums of neighbors, and the
 * type's comparator those that it does not decide (sort_verify.h).  Where it contradicts two
 * Datums as they come, the attempt ends there.
 *
 * A type whose values are compared by one of the three themselves needs not
 * even be turned into something.
 *
 * Under ICU a text becomes the first 8 bytes of its sort key.  Where these can be had from
 * tables, in a tenth of the time (collation_icu.h), they are; but only those of the first level,
 * since how ICU goes on when it makes a key piece by piece is its own affair.  Where
 * that tells few texts apart (they begin alike), their whole first level may be a better
 * key (key_collation.h).
 *
 * Whether it pays depends on the values.  The type counts the distinct ones, and
 * a tuplesort asks it at 10 rows, 20, 40 and so on; so do we, unless we count ourselves.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_sortsupport.h"
#include "common/key_codec.h"
#include "key/collation_icu.h"

#include "access/nbtree.h"
#include "common/hashfn.h"
#include "lib/hyperloglog.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"

/*
 * Texts that are looked at: the first ones, then one of so many.  What was seen is thought
 * about at 40 of them, 80 and so on.
 */
#define FIRST_SAMPLES		640
#define SAMPLE_EVERY	64
#define FIRST_CHECK	40

/*
 * Bytes of a text up to which its first level costs less than to compare ties, of which a row takes
 * part in some twenty: ICU makes it at 10 ns a byte, tables give it in an eighth of that.
 */
#define CHEAP_BYTES		256
#define TABLES_SHARE	8

/* With fewer distinct codes than that of the texts, codes are too short; or had better not be made. */
#define SHORT_SHARE		0.5
#define LOW_CARDINALITY_SHARE		0.2

/* How the Datums compare. */
typedef enum DatumOrder
{
	DATUM_UNSIGNED,
	DATUM_SIGNED,
	DATUM_INT32
} DatumOrder;

/* Texts under ICU, and what was seen of some. */
typedef struct TextCodes
{
	GsIcuKeys *icu_keys;
	bool		blank_padded;
	int64		nsampled;
	int64		next_check;	/* at so many of them */
	hyperLogLogState distinct_texts;
	hyperLogLogState distinct_codes;
	Size		nbytes;
	Size		nunmapped;		/* of these, in texts that are not for tables */
	bool		low_cardinality;
} TextCodes;

struct GsKeySortSupport
{
	SortSupportData support;
	DatumOrder	order;
	int64		ncodes;
	int64		next_check;	/* at so many codes */
	TextCodes  *texts;			/* of texts under ICU; else NULL */
	bool		approximate;	/* see gs_key_sortsupport_is_approximate() */
	bool		contradicted;	/* by the type's comparator */
	Datum		last;			/* of the last value, if approximate */
};

static bool
find_order(GsKeySortSupport *abbreviation)
{
	SortSupport support = &abbreviation->support;

	abbreviation->order = DATUM_UNSIGNED;
	if (support->comparator == ssup_datum_signed_cmp)
		abbreviation->order = DATUM_SIGNED;
	else if (support->comparator == ssup_datum_int32_cmp)
		abbreviation->order = DATUM_INT32;
	else if (support->comparator != ssup_datum_unsigned_cmp)
		abbreviation->approximate = true;
	return !abbreviation->approximate || support->abbrev_converter != NULL;
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

GsKeySortSupport *
gs_key_sortsupport_create(Oid sort_operator, Oid collation)
{
	GsKeySortSupport *abbreviation;
	SortSupport support;

	if (!has_support(sort_operator))
		return NULL;
	abbreviation = palloc0(sizeof(GsKeySortSupport));
	support = &abbreviation->support;
	support->ssup_cxt = CurrentMemoryContext;
	support->ssup_collation = collation;
	support->abbreviate = true;
	PrepareSortSupportFromOrderingOp(sort_operator, support);
	abbreviation->next_check = 10;
	if (find_order(abbreviation))
		return abbreviation;
	pfree(abbreviation);
	return NULL;
}

void
gs_key_sortsupport_use_text(GsKeySortSupport *abbreviation, Oid collation, bool blank_padded)
{
	GsIcuKeys *icu_keys = gs_icu_keys_lookup(collation);
	TextCodes  *texts;

	if (icu_keys == NULL)
		return;
	texts = palloc0(sizeof(TextCodes));
	texts->icu_keys = icu_keys;
	texts->blank_padded = blank_padded;
	texts->next_check = FIRST_CHECK;
	initHyperLogLog(&texts->distinct_texts, 10);
	initHyperLogLog(&texts->distinct_codes, 10);
	abbreviation->texts = texts;
}

/* Looks at a text and its code. */
static void
sample_text(TextCodes *texts, const char *string, int len, uint64 code)
{
	addHyperLogLog(&texts->distinct_texts, hash_bytes((const unsigned char *) string, len));
	addHyperLogLog(&texts->distinct_codes,
				   hash_bytes((const unsigned char *) &code, sizeof(code)));
	texts->nsampled++;
	texts->nbytes += len;
	if (gs_icu_keys_is_unmapped(string, len))
		texts->nunmapped += len;
}

/* The code of a text: from tables, or by its type. */
static uint64
text_code(GsKeySortSupport *abbreviation, Datum value)
{
	TextCodes  *texts = abbreviation->texts;
	SortSupport support = &abbreviation->support;
	struct varlena *bytes = (struct varlena *) DatumGetPointer(value);
	uint64		code;
	char	   *string;
	int			len;

	if (VARATT_IS_COMPRESSED(bytes) || VARATT_IS_EXTERNAL(bytes))
		return gs_icu_keys_prefix_of_datum(support->abbrev_converter(value, support));
	string = VARDATA_ANY(bytes);
	len = VARSIZE_ANY_EXHDR(bytes);
	if (texts->blank_padded)
		len = bpchartruelen(string, len);
	if (!gs_icu_keys_prefix(texts->icu_keys, string, len, &code))
		code = gs_icu_keys_prefix_of_datum(support->abbrev_converter(value, support));
	if (abbreviation->ncodes <= FIRST_SAMPLES || abbreviation->ncodes % SAMPLE_EVERY == 0)
		sample_text(texts, string, len, code);
	return code;
}

bool
gs_key_sortsupport_is_approximate(const GsKeySortSupport *abbreviation)
{
	return abbreviation->approximate;
}

int
gs_key_sortsupport_compare(GsKeySortSupport *abbreviation, uint64 a, uint64 b)
{
	SortSupport support = &abbreviation->support;

	return support->comparator(UInt64GetDatum(a), UInt64GetDatum(b), support);
}

/* Does the type find a Datum and the last one in another order than numbers? */
static inline void
check_order(GsKeySortSupport *abbreviation, Datum datum)
{
	const Datum last = abbreviation->last;
	const int	order = gs_key_sortsupport_compare(abbreviation, last, datum);

	if ((order < 0 && last > datum) || (order > 0 && last < datum))
		abbreviation->contradicted = true;
	abbreviation->last = datum;
}

uint64
gs_key_sortsupport_code(GsKeySortSupport *abbreviation, Datum value)
{
	SortSupport support = &abbreviation->support;
	Datum		datum;

	abbreviation->ncodes++;
	if (abbreviation->texts != NULL)
		return text_code(abbreviation, value);
	datum = support->abbrev_converter == NULL ? value : support->abbrev_converter(value, support);
	if (abbreviation->approximate)
		check_order(abbreviation, datum);
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

/* Do the codes have too few distinct values? */
static bool
is_poor(GsKeySortSupport *abbreviation)
{
	if (abbreviation->texts != NULL)
		return abbreviation->texts->low_cardinality;
	if (abbreviation->ncodes < abbreviation->next_check ||
		abbreviation->support.abbrev_converter == NULL)
		return false;
	abbreviation->next_check *= 2;
	return abbreviation->support.abbrev_abort(Min(abbreviation->ncodes, PG_INT32_MAX),
											  &abbreviation->support);
}

const char *
gs_key_sortsupport_reason_not(GsKeySortSupport *abbreviation)
{
	if (abbreviation->contradicted)
		return "the type does not compare abbreviated keys as unsigned numbers";
	return is_poor(abbreviation) ? "abbreviated keys have too few distinct values" : NULL;
}

bool
gs_key_sortsupport_prefix_is_short(GsKeySortSupport *abbreviation)
{
	TextCodes  *texts = abbreviation->texts;
	double		ncodes;
	double		ntexts;
	Size		cost;

	if (texts == NULL || texts->nsampled < texts->next_check)
		return false;
	texts->next_check *= 2;
	ncodes = estimateHyperLogLog(&texts->distinct_codes);
	ntexts = estimateHyperLogLog(&texts->distinct_texts);
	if (ncodes > ntexts * SHORT_SHARE)
		return false;
	cost = texts->nbytes;
	if (gs_icu_keys_are_ready(texts->icu_keys))
		cost = texts->nunmapped + (texts->nbytes - texts->nunmapped) / TABLES_SHARE;
	if (cost <= texts->nsampled * CHEAP_BYTES)
		return true;
	texts->low_cardinality = ncodes <= ntexts * LOW_CARDINALITY_SHARE;
	return false;
}
