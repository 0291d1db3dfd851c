/*-------------------------------------------------------------------------
 *
 * key_bytes.c
 *	  Order-preserving codes of values of variable width.
 *
 * bit, varbit
 * -----------
 * The bits are compared as bytes, then their number.  They are split into groups of
 * seven bytes, the last one padded with zeros.  Each group is followed by a byte: the
 * number of its bits, or 0xFF if more groups follow, which is more than any number.
 * Bit strings of up to 56 bits fit the prefix.
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
 * The byte before a bound says that there is one.  No lower bound sorts below all lower
 * bounds, 01, no upper bound above all upper bounds, 02.  The byte after a bound orders
 * inclusive and exclusive ones: of lower bounds the inclusive is less, of upper bounds
 * the exclusive.
 *
 * elements
 * --------
 * Those of fixed width are the fields of their key record (key_fields.h), big-endian.
 * Text ends with a zero byte, which it does not contain.  So does its key under a
 * collation (key_collation.h), which contains at most one zero byte, between the two
 * parts that each key of the collation has.  bytea is split into groups like bit
 * strings.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "collation/key_collation.h"
#include "common/key_layout.h"
#include "key/key_bytes.h"
#include "key/key_fields.h"
#include "key/key_numeric.h"
#include "pg_compat.h"

#include "access/tupmacs.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"

/* The length of a tail is below this (key_pack.h). */
#define MAX_CODE_BYTES	((size_t) 1 << 30)

/* Words of the record of a value of fixed width. */
#define MAX_WORDS		6

/* Where codes are written.  Reused for the next code. */
typedef struct CodeBuffer
{
	unsigned char *data;
	size_t		len;
	size_t		size;
} CodeBuffer;

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
	struct Encoder *element;
} Encoder;

struct GsKeyMaker
{
	Encoder    *encoder;
	CodeBuffer	buffer;
};

/* Comparison functions use the type in the header of a value. */
static const char other_type[] = "a value has a different type than its column";

static bool put_value(CodeBuffer *buffer, const Encoder *encoder, Datum value,
					  const char **why_not);

/* ------------------------------------------------------------- the buffer */

/* Makes space for nbytes more, and returns where they go. */
static inline unsigned char *
reserve(CodeBuffer *buffer, size_t nbytes)
{
	if (unlikely(buffer->size - buffer->len < nbytes))
	{
		buffer->size = Max(buffer->size * 2, buffer->len + nbytes);
		buffer->data = repalloc_huge(buffer->data, buffer->size);
	}
	return buffer->data + buffer->len;
}

static inline void
put_byte(CodeBuffer *buffer, unsigned char byte)
{
	*reserve(buffer, 1) = byte;
	buffer->len++;
}

static void
put_bytes(CodeBuffer *buffer, const char *data, size_t nbytes)
{
	memcpy(reserve(buffer, nbytes), data, nbytes);
	buffer->len += nbytes;
}

/* Writes the upper nbytes of a word. */
static inline void
put_word(CodeBuffer *buffer, uint64 word, size_t nbytes)
{
	gs_store_be64(reserve(buffer, sizeof(word)), word);
	buffer->len += nbytes;
}

static inline void
put_int32(CodeBuffer *buffer, int32 value)
{
	put_word(buffer, gs_encode_int32(value) << 32, sizeof(int32));
}

/* ---------------------------------------------------------------- numeric */

static void
put_numeric(CodeBuffer *buffer, const Encoder *encoder, const char *data, size_t nbytes)
{
	unsigned char *to = reserve(buffer, nbytes + GS_NUMERIC_EXTRA_BYTES);

	buffer->len += gs_numeric_write_code(data, nbytes, encoder->fixed_weight, to);
}

/* ------------------------------------------------------------ bit, varbit */

#define GROUP_BYTES		7
#define GROUP_FOLLOWED	0xFF

static void
put_groups(CodeBuffer *buffer, const char *data, size_t nbits)
{
	size_t		nbytes = (nbits + 7) / 8;
	unsigned char *to = reserve(buffer, (nbytes / GROUP_BYTES + 1) * (GROUP_BYTES + 1));

	while (nbytes > GROUP_BYTES)
	{
		memcpy(to, data, GROUP_BYTES);
		to[GROUP_BYTES] = GROUP_FOLLOWED;
		data += GROUP_BYTES;
		nbytes -= GROUP_BYTES;
		nbits -= 8 * GROUP_BYTES;
		to += GROUP_BYTES + 1;
	}
	memset(to, 0, GROUP_BYTES);
	memcpy(to, data, nbytes);
	to[GROUP_BYTES] = (unsigned char) nbits;
	buffer->len = to + GROUP_BYTES + 1 - buffer->data;
}

static void
put_bit(CodeBuffer *buffer, const char *data)
{
	int32		nbits;			/* VarBit.bit_len */

	memcpy(&nbits, data, sizeof(nbits));
	put_groups(buffer, data + sizeof(nbits), nbits);
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
put_numbers(CodeBuffer *buffer, const Encoder *element, const char *numbers, int nitems)
{
	const GsKeyField *field = element->layout->fields;
	int			nbytes = element->word_bytes[0];
	unsigned char *to = reserve(buffer, nitems * (size_t) (1 + nbytes) + sizeof(uint64));

	for (int i = 0; i < nitems; i++)
	{
		Datum		value = fetch_att(numbers, true, element->len);

		CHECK_FOR_INTERRUPTS();
		*to = ARRAY_ELEMENT;
		gs_store_be64(to + 1, gs_key_value_code(element->kind, field, NULL, value) << field->shift);
		to += 1 + nbytes;
		numbers += element->len;
	}
	buffer->len = to - buffer->data;
}

static bool
put_elements(CodeBuffer *buffer, const Encoder *element, ArrayType *array, int nitems,
			 const char **why_not)
{
	array_iter	iterator;

	gs_array_begin(&iterator, (AnyArrayType *) array, element->len, element->by_value,
				   element->align);
	for (int i = 0; i < nitems; i++)
	{
		bool		is_null;
		Datum		value = gs_array_next(&iterator, &is_null, i, element->len,
										  element->by_value, element->align);

		CHECK_FOR_INTERRUPTS();
		put_byte(buffer, is_null ? ARRAY_NULL : ARRAY_ELEMENT);
		if (!is_null && !put_value(buffer, element, value, why_not))
			return false;
	}
	return true;
}

static bool
put_array(CodeBuffer *buffer, const Encoder *encoder, ArrayType *array, const char **why_not)
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
		put_numbers(buffer, element, ARR_DATA_PTR(array), nitems);
	else if (!put_elements(buffer, element, array, nitems, why_not))
		return false;
	put_byte(buffer, ARRAY_END);
	put_byte(buffer, ndims);
	for (int i = 0; ndims > 1 && i < ndims; i++)
		put_int32(buffer, ARR_DIMS(array)[i]);
	for (int i = 0; i < ndims; i++)
		put_int32(buffer, ARR_LBOUND(array)[i]);
	return true;
}

/* Unlike arrays, oidvectors are compared by their length first. */
static void
put_oidvector(CodeBuffer *buffer, const oidvector *vector)
{
	put_int32(buffer, vector->dim1);
	for (int i = 0; i < vector->dim1; i++)
		put_word(buffer, (uint64) vector->values[i] << 32, sizeof(Oid));
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
put_bounds(CodeBuffer *buffer, const Encoder *element, const RangeBound *lower,
		   const RangeBound *upper, const char **why_not)
{
	CHECK_FOR_INTERRUPTS();
	put_byte(buffer, lower->infinite ? RANGE_NO_LOWER : RANGE_LOWER);
	if (!lower->infinite)
	{
		if (!put_value(buffer, element, lower->val, why_not))
			return false;
		put_byte(buffer, lower->inclusive ? 0 : 1);
	}
	put_byte(buffer, upper->infinite ? RANGE_NO_UPPER : RANGE_UPPER);
	if (!upper->infinite)
	{
		if (!put_value(buffer, element, upper->val, why_not))
			return false;
		put_byte(buffer, upper->inclusive ? 1 : 0);
	}
	return true;
}

static bool
put_range(CodeBuffer *buffer, const Encoder *encoder, RangeType *range, const char **why_not)
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
		return put_bounds(buffer, encoder->element, &lower, &upper, why_not);
	put_byte(buffer, RANGE_END);
	return true;
}

static bool
put_multirange(CodeBuffer *buffer, const Encoder *encoder, MultirangeType *multirange,
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
		if (!put_bounds(buffer, encoder->element, &lower, &upper, why_not))
			return false;
	}
	put_byte(buffer, RANGE_END);
	return true;
}

/* --------------------------------------------------------------- elements */

static bool
put_text(CodeBuffer *buffer, const Encoder *encoder, const char *data, size_t nbytes,
		 const char **why_not)
{
	if (encoder->collation != NULL)
	{
		uint32		key_len;

		if (!gs_key_collation_key(encoder->collation, data, nbytes, &data, &key_len, why_not))
			return false;
		nbytes = key_len;
	}
	put_bytes(buffer, data, nbytes);
	put_byte(buffer, 0);
	return true;
}

static bool
put_fixed_width(CodeBuffer *buffer, const Encoder *encoder, Datum value, const char **why_not)
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
		put_word(buffer, record[i], encoder->word_bytes[i]);
	return true;
}

/* ----------------------------------------------------------------- values */

/* Values that are read as structs must be aligned. */
static inline void *
aligned(Datum value)
{
	return pg_detoast_datum((struct varlena *) DatumGetPointer(value));
}

static bool
put_value(CodeBuffer *buffer, const Encoder *encoder, Datum value, const char **why_not)
{
	const struct varlena *bytes = (const struct varlena *) DatumGetPointer(value);

	switch (encoder->kind)
	{
		case GS_KEY_TEXT:
			if (!put_text(buffer, encoder, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), why_not))
				return false;
			break;
		case GS_KEY_BPCHAR:
			if (!put_text(buffer, encoder, VARDATA_ANY(bytes),
						  bpchartruelen(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes)), why_not))
				return false;
			break;
		case GS_KEY_NAME:
			if (!put_text(buffer, encoder, NameStr(*DatumGetName(value)),
						  strnlen(NameStr(*DatumGetName(value)), NAMEDATALEN), why_not))
				return false;
			break;
		case GS_KEY_BYTEA:
			put_groups(buffer, VARDATA_ANY(bytes), 8 * (size_t) VARSIZE_ANY_EXHDR(bytes));
			break;
		case GS_KEY_NUMERIC:
			put_numeric(buffer, encoder, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
			break;
		case GS_KEY_BIT:
			put_bit(buffer, VARDATA_ANY(bytes));
			break;
		case GS_KEY_OIDVECTOR:
			put_oidvector(buffer, aligned(value));
			break;
		case GS_KEY_ARRAY:
			if (!put_array(buffer, encoder, aligned(value), why_not))
				return false;
			break;
		case GS_KEY_RANGE:
			if (!put_range(buffer, encoder, aligned(value), why_not))
				return false;
			break;
		case GS_KEY_MULTIRANGE:
			if (!put_multirange(buffer, encoder, aligned(value), why_not))
				return false;
			break;
		default:
			if (!put_fixed_width(buffer, encoder, value, why_not))
				return false;
			break;
	}
	if (likely(buffer->len < MAX_CODE_BYTES))
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
	if (order->kind == GS_KEY_NUMERIC)
		encoder->fixed_weight = gs_numeric_fixed_weight(typmod);
	encoder->type = order->kind == GS_KEY_ARRAY ? get_element_type(order->type) : order->type;
	if (order->element != NULL)
		encoder->element = create_encoder(order->element, order->kind == GS_KEY_ARRAY ? typmod : -1);
	return encoder;
}

GsKeyMaker *
gs_key_maker_create(const GsKeyOrder *order, int32 typmod)
{
	GsKeyMaker *maker = palloc(sizeof(GsKeyMaker));

	maker->encoder = create_encoder(order, typmod);
	maker->buffer.len = 0;
	maker->buffer.size = 64;
	maker->buffer.data = palloc(maker->buffer.size);
	return maker;
}

void
gs_key_maker_share_labels(GsKeyMaker *maker, const GsKeyMaker *with)
{
	const Encoder *from = with->encoder;

	for (Encoder *to = maker->encoder; to != NULL; to = to->element, from = from->element)
		to->labels = from->labels;
}

uint64
gs_key_maker_labels(const GsKeyMaker *maker, uint64 seed)
{
	for (const Encoder *encoder = maker->encoder; encoder != NULL; encoder = encoder->element)
		seed = gs_key_labels_hash(&encoder->labels, seed);
	return seed;
}

bool
gs_key_maker_is_cheap(const GsKeyMaker *maker)
{
	for (const Encoder *encoder = maker->encoder; encoder != NULL; encoder = encoder->element)
	{
		if (encoder->collation != NULL && !gs_key_collation_is_cheap(encoder->collation))
			return false;
	}
	return true;
}

bool
gs_key_maker_make(GsKeyMaker *maker, Datum value, const char **code, uint32 *len,
				  const char **why_not)
{
	maker->buffer.len = 0;
	if (!put_value(&maker->buffer, maker->encoder, value, why_not))
		return false;
	*code = (const char *) maker->buffer.data;
	*len = maker->buffer.len;
	return true;
}
