/*-------------------------------------------------------------------------
 *
 * key_sortsupport.c
 *	  Abbreviated keys of a type's SortSupport.
 *
 * A type's SortSupport abbreviates a value to a Datum, and has a function that compares such
 * Datums.  If that is one of PostgreSQL's three functions for plain numbers, any engine can sort by
 * the Datums, and the type's comparator resolves ties.  Other functions: README.md, "Truncated and
 * abbreviated keys".
 *
 * Under ICU, tables give the first 8 bytes of a text's sort key in a tenth of the time
 * (collation_icu.h), but only those of the primary level, because what follows when ICU makes a key
 * in parts is not specified.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "collation/collation_icu.h"
#include "common/key_codec.h"
#include "key/key_distinct.h"
#include "key/key_sortsupport.h"
#include "pg_compat.h"

#include "access/nbtree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/* The sample of texts: the first 640, then every eighth.  It is evaluated at 40 texts, 80 .. */
#define FIRST_SAMPLES	640
#define SAMPLE_EVERY	8
#define FIRST_CHECK		40

/*
 * Of texts up to so many bytes, the primary level costs less than the about twenty comparisons of a
 * row.  ICU makes the level in 10 ns a byte, tables in an eighth of that.
 */
#define CHEAP_BYTES		256
#define TABLES_SHARE	8

/*
 * Distinct codes as a share of distinct texts, or of all texts if columns follow: below the first,
 * codes are too short; below the second, if tables make full keys and columns follow; below the
 * third, they do not pay.  12 Latin letters and a bigint: 0.22 of PostgreSQL's time, and 0.28 with
 * full keys (AMD EPYC, Zen 5, PostgreSQL 15.20, 2026-11-23).
 */
#define SHORT_SHARE				0.5
#define MAPPED_SHARE			0.9
#define LOW_CARDINALITY_SHARE	0.2

/* How the Datums compare. */
typedef enum DatumOrder
{
	DATUM_UNSIGNED,
	DATUM_SIGNED,
	DATUM_INT32
} DatumOrder;

/* Texts under ICU, and a sample of them. */
typedef struct TextCodes
{
	GsIcuKeys  *icu_keys;
	bool		blank_padded;
	bool		columns_follow; /* in the ORDER BY */
	GsDistinct	texts;			/* of the sample */
	GsDistinct	codes;
	Size		nbytes;
	Size		nunmapped;		/* of these, in texts that the tables do not cover */
	bool		low_cardinality;
} TextCodes;

struct GsKeySortSupport
{
	SortSupportData support;
	DatumOrder	order;
	int64		ncodes;
	int64		next_check;		/* abbrev_abort: at this number of codes */
	TextCodes  *texts;			/* texts under ICU; else NULL */
	bool		approximate;	/* see gs_key_sortsupport_is_approximate() */
	bool		contradicted;	/* by the type's function */
	Datum		last;			/* the previous Datum, if approximate */
};

void
gs_key_sortsupport_prepare(SortSupport support, const GsSortColumn *column, bool abbreviate)
{
	*support = (SortSupportData) {
		.ssup_cxt = CurrentMemoryContext,
		.ssup_collation = column->collation,
		.ssup_nulls_first = column->nulls_first,
		.ssup_attno = column->attno,
		.abbreviate = abbreviate
	};
	PrepareSortSupportFromOrderingOp(column->sort_operator, support);
}

/* Finds out how abbreviated keys compare.  Returns false if there are none. */
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

/* Are there the functions without which PrepareSortSupportFromOrderingOp() raises an error? */
static bool
has_support(Oid sort_operator)
{
	Oid			family;
	Oid			type;
	bool		descending;

	return gs_ordering_operator(sort_operator, &family, &type, &descending) &&
		OidIsValid(get_opfamily_proc(family, type, type, BTSORTSUPPORT_PROC)) &&
		OidIsValid(get_opfamily_proc(family, type, type, BTORDER_PROC));
}

GsKeySortSupport *
gs_key_sortsupport_create(Oid sort_operator, Oid collation)
{
	const GsSortColumn column = {.sort_operator = sort_operator,.collation = collation};
	GsKeySortSupport *abbreviation;

	if (!has_support(sort_operator))
		return NULL;
	abbreviation = palloc0(sizeof(GsKeySortSupport));
	gs_key_sortsupport_prepare(&abbreviation->support, &column, true);
	abbreviation->next_check = 10;
	if (find_order(abbreviation))
		return abbreviation;
	pfree(abbreviation);
	return NULL;
}

void
gs_key_sortsupport_use_text(GsKeySortSupport *abbreviation, Oid collation, bool blank_padded,
							bool columns_follow)
{
	GsIcuKeys  *icu_keys = gs_icu_keys_lookup(collation);
	TextCodes  *texts;

	if (icu_keys == NULL)
		return;
	texts = palloc0(sizeof(TextCodes));
	texts->icu_keys = icu_keys;
	texts->blank_padded = blank_padded;
	texts->columns_follow = columns_follow;
	gs_distinct_init(&texts->texts, FIRST_CHECK);
	gs_distinct_init(&texts->codes, FIRST_CHECK);
	abbreviation->texts = texts;
}

/* Adds a text and its code to the sample. */
static void
sample_text(TextCodes *texts, const char *string, int len, uint64 code)
{
	gs_distinct_add(&texts->texts, string, len);
	gs_distinct_add(&texts->codes, &code, sizeof(code));
	texts->nbytes += len;
	if (gs_icu_keys_is_unmapped(texts->icu_keys, string, len))
		texts->nunmapped += len;
}

/* The code of a text under ICU, from tables if they cover it. */
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

/* Notes if the type orders a Datum and the previous one otherwise than as numbers. */
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
has_low_cardinality(GsKeySortSupport *abbreviation)
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
gs_key_sortsupport_why_not(GsKeySortSupport *abbreviation)
{
	if (abbreviation->contradicted)
		return "the type does not compare abbreviated keys as unsigned numbers";
	return has_low_cardinality(abbreviation) ? "abbreviated keys have too few distinct values" :
		NULL;
}

/* Do the codes decide the order of most rows?  Full keys also decide that of equal texts. */
static bool
codes_suffice(const TextCodes *texts)
{
	const double ncodes = gs_distinct_estimate(&texts->codes);
	const bool	mapped = texts->nunmapped < texts->nbytes / 2;

	return texts->columns_follow ?
		ncodes > texts->texts.nvalues * (mapped ? MAPPED_SHARE : SHORT_SHARE) :
		ncodes > gs_distinct_estimate(&texts->texts) * SHORT_SHARE;
}

bool
gs_key_sortsupport_prefix_is_short(GsKeySortSupport *abbreviation)
{
	TextCodes  *texts = abbreviation->texts;
	Size		cost;

	if (texts == NULL || !gs_distinct_check_is_due(&texts->texts))
		return false;
	if (codes_suffice(texts))
		return false;
	cost = texts->nbytes;		/* in bytes that ICU would process */
	if (gs_icu_keys_are_ready(texts->icu_keys))
		cost = texts->nunmapped + (texts->nbytes - texts->nunmapped) / TABLES_SHARE;
	if (cost <= texts->texts.nvalues * CHEAP_BYTES)
		return true;
	texts->low_cardinality = gs_distinct_estimate(&texts->codes) <=
		gs_distinct_estimate(&texts->texts) * LOW_CARDINALITY_SHARE;
	return false;
}
