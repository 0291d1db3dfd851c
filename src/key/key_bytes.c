/*-------------------------------------------------------------------------
 *
 * key_bytes.c
 *	  Order-preserving codes of values of variable width.
 *
 * bit, varbit
 * -----------
 * The bits are compared as bytes, then their number, as their groups are (key_code.h).
 *
 * arrays
 * ------
 * The elements, each after a byte that announces it, the end, and what distinguishes
 * arrays of the same elements.  {7,NULL} of int4:
 *
 *	  01 80000007	02		00		01			80000001
 *	  element		NULL	end		dimensions	lower bound
 *
 * A NULL sorts above any element, the end below.  With one dimension, its length
 * follows from the elements; with more, all lengths precede the lower bounds.
 *
 * ranges, multiranges
 * -------------------
 * 00 if empty, otherwise both bounds; a multirange is the bounds of its ranges and 00.
 * [7,9) of int4, and (,9):
 *
 *	  02 80000007 00   01 80000009 00		01   01 80000009 00
 *	  lower       [	   upper       )		none
 *
 * The byte before a bound says that there is one.  No lower bound sorts below all lower bounds, 01,
 * no upper bound above all upper bounds, 02.  The byte after a bound orders inclusive and exclusive
 * ones: of lower bounds the inclusive is less, of upper bounds the exclusive.
 *
 * composite types
 * ---------------
 * The columns, each after a byte that announces it, 01, or a NULL, 02, which sorts above any value.
 *
 * elements
 * --------
 * Those of fixed width are the fields of their key record (key_fields.h), big-endian.
 * bytea is split into groups like bit strings.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/key_layout.h"
#include "key/key_bytes.h"
#include "key/key_code.h"
#include "key/key_fields.h"
#include "key/key_numeric.h"
#include "pg_compat.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "catalog/pg_collation.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"

/* The length of a tail is below this (key_pack.h). */
#define MAX_CODE_BYTES	((size_t) 1 << 30)

/* Words of the record of a value of fixed width. */
#define MAX_WORDS		6

/* How the values of an order are encoded as elements. */
typedef struct Encoder
{
	GsKeyKind	kind;
	int16		len;			/* as pg_type has it */
	bool		by_value;
	char		align;
	GsKeyLayout *layout;		/* fixed width: of one value */
	GsKeyLabels labels;			/* enum */
	uint8		word_bytes[MAX_WORDS];	/* fixed width: used bytes of each
										 * word */
	Oid			type;			/* the element type in an array's header, or
								 * the type in a range's */
	TypeCacheEntry *range;		/* ranges and multiranges */
	GsKeyCollation *collation;	/* text; NULL if compared byte by byte */
	int			fixed_weight;	/* numeric */
	TupleDesc	desc;			/* composite types */
	Datum	   *values;			/* of its columns */
	bool	   *nulls;
	struct Encoder *element;	/* of the first column of a composite type */
	struct Encoder *next;		/* of its next column */
} Encoder;

struct GsKeyMaker
{
	Encoder    *encoder;
	GsKeyCode	code;
};

/* Comparison functions use the type in the header of a value. */
static const char other_type[] = "a value has a different type than its column";

static bool put_value(GsKeyCode *code, const Encoder *encoder, Datum value,
					  const char **why_not);

/* ------------------------------------------------------------ bit, varbit */

static void
put_bit(GsKeyCode *code, const char *data)
{
	int32		nbits;			/* VarBit.bit_len */

	memcpy(&nbits, data, sizeof(nbits));
	gs_key_code_add_groups(code, data + sizeof(nbits), nbits);
}

/* ----------------------------------------------------------------- arrays */

enum
{
	ARRAY_END,
	ARRAY_ELEMENT,
	ARRAY_NULL
};

/* Elements passed by value, without NULLs: they are adjacent in the array. */
static void
put_numbers(GsKeyCode *code, const Encoder *element, const char *numbers, int nitems)
{
	const GsKeyField *field = element->layout->fields;
	int			nbytes = element->word_bytes[0];
	unsigned char *to = gs_key_code_reserve(code, nitems * (size_t) (1 + nbytes) + sizeof(uint64));

	for (int i = 0; i < nitems; i++)
	{
		Datum		value = fetch_att(numbers, true, element->len);

		CHECK_FOR_INTERRUPTS();
		*to = ARRAY_ELEMENT;
		gs_store_be64(to + 1, gs_key_value_code(element->kind, field, NULL, value) << field->shift);
		to += 1 + nbytes;
		numbers += element->len;
	}
	code->len = to - code->data;
}

static bool
put_elements(GsKeyCode *code, const Encoder *element, ArrayType *array, int nitems,
			 const char **why_not)
{
	array_iter	iterator;

	gs_array_begin(&iterator, (AnyArrayType *) array, element->len, element->by_value,
				   element->align);
	for (int i = 0; i < nitems && code->len <= code->enough; i++)
	{
		bool		is_null;
		Datum		value = gs_array_next(&iterator, &is_null, i, element->len,
										  element->by_value, element->align);

		CHECK_FOR_INTERRUPTS();
		gs_key_code_add_byte(code, is_null ? ARRAY_NULL : ARRAY_ELEMENT);
		if (!is_null && !put_value(code, element, value, why_not))
			return false;
	}
	return true;
}

static bool
put_array(GsKeyCode *code, const Encoder *encoder, ArrayType *array, const char **why_not)
{
	const Encoder *element = encoder->element;
	int			ndims = ARR_NDIM(array);
	int			nitems = ArrayGetNItems(ndims, ARR_DIMS(array));

	if (ARR_ELEMTYPE(array) != encoder->type)
	{
		*why_not = other_type;
		return false;
	}
	if (gs_key_kind_is_by_value(element->kind) && element->kind != GS_KEY_ENUM &&
		!ARR_HASNULL(array))
		put_numbers(code, element, ARR_DATA_PTR(array), nitems);
	else if (!put_elements(code, element, array, nitems, why_not))
		return false;
	gs_key_code_add_byte(code, ARRAY_END);
	gs_key_code_add_byte(code, ndims);
	for (int i = 0; ndims > 1 && i < ndims; i++)
		gs_key_code_add_int32(code, ARR_DIMS(array)[i]);
	for (int i = 0; i < ndims; i++)
		gs_key_code_add_int32(code, ARR_LBOUND(array)[i]);
	return true;
}

/* Unlike arrays, oidvectors are compared by their length first. */
static void
put_oidvector(GsKeyCode *code, const oidvector *vector)
{
	gs_key_code_add_int32(code, vector->dim1);
	for (int i = 0; i < vector->dim1; i++)
		gs_key_code_add_word(code, (uint64) vector->values[i] << 32, sizeof(Oid));
}

/* ----------------------------------------------------------------- ranges */

enum
{
	RANGE_END,
	RANGE_NO_LOWER,
	RANGE_LOWER
};

enum
{
	RANGE_UPPER = 1,
	RANGE_NO_UPPER
};

static bool
put_bounds(GsKeyCode *code, const Encoder *element, const RangeBound *lower,
		   const RangeBound *upper, const char **why_not)
{
	CHECK_FOR_INTERRUPTS();
	gs_key_code_add_byte(code, lower->infinite ? RANGE_NO_LOWER : RANGE_LOWER);
	if (!lower->infinite)
	{
		if (!put_value(code, element, lower->val, why_not))
			return false;
		gs_key_code_add_byte(code, lower->inclusive ? 0 : 1);
	}
	gs_key_code_add_byte(code, upper->infinite ? RANGE_NO_UPPER : RANGE_UPPER);
	if (!upper->infinite)
	{
		if (!put_value(code, element, upper->val, why_not))
			return false;
		gs_key_code_add_byte(code, upper->inclusive ? 1 : 0);
	}
	return true;
}

static bool
put_range(GsKeyCode *code, const Encoder *encoder, RangeType *range, const char **why_not)
{
	RangeBound	lower;
	RangeBound	upper;
	bool		empty;

	if (RangeTypeGetOid(range) != encoder->type)
	{
		*why_not = other_type;
		return false;
	}
	range_deserialize(encoder->range, range, &lower, &upper, &empty);
	if (!empty)
		return put_bounds(code, encoder->element, &lower, &upper, why_not);
	gs_key_code_add_byte(code, RANGE_END);
	return true;
}

static bool
put_multirange(GsKeyCode *code, const Encoder *encoder, MultirangeType *multirange,
			   const char **why_not)
{
	if (MultirangeTypeGetOid(multirange) != encoder->type)
	{
		*why_not = other_type;
		return false;
	}
	for (int i = 0; i < multirange->rangeCount; i++)
	{
		RangeBound	lower;
		RangeBound	upper;

		multirange_get_bounds(encoder->range, multirange, i, &lower, &upper);
		if (!put_bounds(code, encoder->element, &lower, &upper, why_not))
			return false;
	}
	gs_key_code_add_byte(code, RANGE_END);
	return true;
}

/* -------------------------------------------------------- composite types */

static bool
put_composite(GsKeyCode *code, const Encoder *encoder, HeapTupleHeader row, const char **why_not)
{
	const Encoder *column = encoder->element;
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(row),.t_data = row};

	if (HeapTupleHeaderGetTypeId(row) != encoder->type ||
		HeapTupleHeaderGetNatts(row) > encoder->desc->natts)
	{
		*why_not = other_type;
		return false;
	}
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	heap_deform_tuple(&tuple, encoder->desc, encoder->values, encoder->nulls);
	for (int i = 0; i < encoder->desc->natts; i++)
	{
		const FormData_pg_attribute *attribute = TupleDescAttr(encoder->desc, i);
		Datum		value = encoder->values[i];

		if (attribute->attisdropped)
			continue;
		gs_key_code_add_byte(code, encoder->nulls[i] ? ARRAY_NULL : ARRAY_ELEMENT);
		if (!encoder->nulls[i])
		{
			if (attribute->attlen == -1)
				value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
			if (!put_value(code, column, value, why_not))
				return false;
		}
		column = column->next;
	}
	return true;
}

/* --------------------------------------------------------------- elements */

/* Writes the text in lower case, as citext compares it. */
static bool
put_citext(GsKeyCode *code, const Encoder *encoder, const char *data, size_t nbytes,
		   const char **why_not)
{
	char	   *lower = str_tolower(data, nbytes, DEFAULT_COLLATION_OID);
	bool		result =
		gs_key_code_add_text(code, encoder->element->collation, lower, strlen(lower), why_not);

	pfree(lower);
	return result;
}

static bool
put_fixed_width(GsKeyCode *code, const Encoder *encoder, Datum value, const char **why_not)
{
	GsKeyField *fields = encoder->layout->fields;
	uint64		record[MAX_WORDS] = {0};

	if (encoder->kind == GS_KEY_ENUM && !gs_key_labels_find(&encoder->labels, &value, why_not))
		return false;
	if (gs_key_kind_is_by_value(encoder->kind))
		gs_key_field_write(fields, record,
						   gs_key_value_code(encoder->kind, fields, &encoder->labels, value));
	else
		gs_key_fields_write(encoder->kind, fields, value, record);
	for (int i = 0; i < encoder->layout->nwords; i++)
		gs_key_code_add_word(code, record[i], encoder->word_bytes[i]);
	return true;
}

/* ----------------------------------------------------------------- values */

/* Values that are read as structs must be aligned. */
static inline void *
aligned(Datum value)
{
	return pg_detoast_datum((struct varlena *) DatumGetPointer(value));
}

/* Writes a value; it may exceed MAX_CODE_BYTES. */
static bool
put_kind(GsKeyCode *code, const Encoder *encoder, Datum value, const char **why_not)
{
	const struct varlena *bytes = (const struct varlena *) DatumGetPointer(value);
	const bool	is_varlena = encoder->len == -1;
	const char *data = is_varlena ? VARDATA_ANY(bytes) : NULL;
	const size_t nbytes = is_varlena ? VARSIZE_ANY_EXHDR(bytes) : 0;
	GsKeyCollation *collation = encoder->collation;

	switch (encoder->kind)
	{
		case GS_KEY_TEXT:
			return gs_key_code_add_text(code, collation, data, nbytes, why_not);
		case GS_KEY_BPCHAR:
			return gs_key_code_add_text(code, collation, data,
										bpchartruelen(unconstify(char *, data), nbytes), why_not);
		case GS_KEY_NAME:
			data = NameStr(*DatumGetName(value));
			return gs_key_code_add_text(code, collation, data, strnlen(data, NAMEDATALEN), why_not);
		case GS_KEY_BYTEA:
			gs_key_code_add_groups(code, data, 8 * nbytes);
			return true;
		case GS_KEY_NUMERIC:
			gs_key_code_add_numeric(code, encoder->fixed_weight, data, nbytes);
			return true;
		case GS_KEY_BIT:
			put_bit(code, data);
			return true;
		case GS_KEY_OIDVECTOR:
			put_oidvector(code, aligned(value));
			return true;
		case GS_KEY_ARRAY:
			return put_array(code, encoder, aligned(value), why_not);
		case GS_KEY_RANGE:
			return put_range(code, encoder, aligned(value), why_not);
		case GS_KEY_MULTIRANGE:
			return put_multirange(code, encoder, aligned(value), why_not);
		case GS_KEY_JSONB:
			return gs_key_code_add_jsonb(code, encoder->element->collation, aligned(value),
										 why_not);
		case GS_KEY_CITEXT:
		case GS_KEY_CITEXT_PATTERN:
			return put_citext(code, encoder, data, nbytes, why_not);
		case GS_KEY_TSVECTOR:
			gs_key_code_add_tsvector(code, aligned(value));
			return true;
		case GS_KEY_HSTORE:
			return gs_key_code_add_hstore(code, data, why_not);
		case GS_KEY_LTREE:
			gs_key_code_add_ltree(code, data);
			return true;
		case GS_KEY_COMPOSITE:
			return put_composite(code, encoder, aligned(value), why_not);
		default:
			return put_fixed_width(code, encoder, value, why_not);
	}
}

static bool
put_value(GsKeyCode *code, const Encoder *encoder, Datum value, const char **why_not)
{
	if (!put_kind(code, encoder, value, why_not))
		return false;
	if (likely(code->len < MAX_CODE_BYTES))
		return true;
	*why_not = "a sort key exceeds 1 GB";
	return false;
}

/* --------------------------------------------------------------- interface */

static bool
is_of_fixed_width(GsKeyKind kind)
{
	return kind < GS_KEY_TEXT;
}

static void
init_fixed_width(Encoder *encoder, const GsKeyOrder *order)
{
	GsKeyLayout *layout = palloc(sizeof(GsKeyLayout));

	gs_key_layout_init(layout);
	gs_key_layout_add_column(layout, false, false);
	gs_key_fields_add(layout, order->kind, false);
	Assert(layout->nwords <= MAX_WORDS);
	for (int i = 0; i < layout->nfields; i++)
		encoder->word_bytes[layout->fields[i].word] = (64 - layout->fields[i].shift + 7) / 8;
	encoder->layout = layout;
	if (order->kind == GS_KEY_ENUM)
		gs_key_labels_read(&encoder->labels, order->type);
}

static Encoder *
create_encoder(const GsKeyOrder *order, int32 typmod)
{
	Encoder    *encoder = palloc0(sizeof(Encoder));

	encoder->kind = order->kind;
	get_typlenbyvalalign(order->type, &encoder->len, &encoder->by_value, &encoder->align);
	if (is_of_fixed_width(order->kind))
		init_fixed_width(encoder, order);
	if (order->kind == GS_KEY_RANGE || order->kind == GS_KEY_MULTIRANGE)
		encoder->range = gs_key_order_range(order);
	if (OidIsValid(order->collation))
		encoder->collation = gs_key_collation_create(order->collation, true);
	encoder->fixed_weight = gs_numeric_fixed_weight(typmod);
	encoder->type = order->kind == GS_KEY_ARRAY ? get_element_type(order->type) : order->type;
	if (order->kind == GS_KEY_COMPOSITE)
	{
		encoder->desc = lookup_rowtype_tupdesc_copy(order->type, -1);
		encoder->values = palloc(sizeof(Datum) * encoder->desc->natts);
		encoder->nulls = palloc(sizeof(bool) * encoder->desc->natts);
	}
	if (order->element != NULL)
		encoder->element = create_encoder(order->element,
										  order->kind == GS_KEY_ARRAY ? typmod : -1);
	if (order->next != NULL)
		encoder->next = create_encoder(order->next, -1);
	return encoder;
}

GsKeyMaker *
gs_key_maker_create(const GsKeyOrder *order, int32 typmod)
{
	GsKeyMaker *maker = palloc(sizeof(GsKeyMaker));

	maker->encoder = create_encoder(order, typmod);
	maker->code.len = 0;
	maker->code.size = 64;
	maker->code.data = palloc(maker->code.size);
	return maker;
}

static void
share_labels(Encoder *to, const Encoder *from)
{
	for (; to != NULL; to = to->next, from = from->next)
	{
		to->labels = from->labels;
		share_labels(to->element, from->element);
	}
}

void
gs_key_maker_share_labels(GsKeyMaker *maker, const GsKeyMaker *with)
{
	share_labels(maker->encoder, with->encoder);
}

static uint64
hash_labels(const Encoder *encoder, uint64 seed)
{
	for (; encoder != NULL; encoder = encoder->next)
		seed = hash_labels(encoder->element, gs_key_labels_hash(&encoder->labels, seed));
	return seed;
}

uint64
gs_key_maker_labels(const GsKeyMaker *maker, uint64 seed)
{
	return hash_labels(maker->encoder, seed);
}

bool
gs_key_maker_make(GsKeyMaker *maker, Datum value, uint32 enough, const char **code, uint32 *len,
				  const char **why_not)
{
	maker->code.len = 0;
	maker->code.enough = enough;
	if (!put_value(&maker->code, maker->encoder, value, why_not))
		return false;
	*code = (const char *) maker->code.data;
	*len = maker->code.len;
	return true;
}
