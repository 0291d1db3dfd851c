/*-------------------------------------------------------------------------
 *
 * key_fields.h
 *	  The fields of a key record, and codes of values of fixed width.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_FIELDS_H
#define GPUSORT_KEY_FIELDS_H

#include "common/key_codec.h"
#include "common/key_layout.h"
#include "key/key_order.h"

#include "utils/pg_lsn.h"

/* Adds a kind's fields to the last column.  bijective_floats: codes of floats can be decoded. */
extern void gs_key_fields_add(GsKeyLayout *layout, GsKeyKind kind, bool bijective_floats);

/* Are values of this kind passed by value?  Then they have one field. */
static inline bool
gs_key_kind_is_by_value(GsKeyKind kind)
{
	return kind <= GS_KEY_ENUM || kind == GS_KEY_ABBREVIATED;
}

/* ----------------------------------------------------------------- enums */

/* A label and its position in the order. */
typedef struct GsKeyLabel
{
	Oid			oid;
	float4		sort_order;
} GsKeyLabel;

/*
 * Labels with even OIDs are in the order of their OIDs.  A label that was added later and
 * is not in that order has an odd OID; then all labels are *placed*, that is, encoded as
 * their pg_enum.enumsortorder (see enum_cmp_internal() in PostgreSQL).
 */
typedef struct GsKeyLabels
{
	bool		placed;			/* else the code is the OID */
	int			nlabels;
	GsKeyLabel *labels;			/* in the order of OIDs */
} GsKeyLabels;

/* Reads the labels of a type from the catalog, into the current memory context. */
extern void gs_key_labels_read(GsKeyLabels *labels, Oid enum_type);

/*
 * Replaces a label by its enumsortorder if the labels are placed.  Returns false, and
 * sets *why_not, if it was added after the labels were read.
 */
extern bool gs_key_labels_find(const GsKeyLabels *labels, Datum *value, const char **why_not);

/* Adds the positions to a hash; returns seed if the labels are not placed. */
extern uint64 gs_key_labels_hash(const GsKeyLabels *labels, uint64 seed);

/* --------------------------------------------------------------- encoding */

/* Writes a code to its field of the record, and updates the statistics; returns it canonical. */
static inline uint64
gs_key_field_write(GsKeyField *field, uint64 *record, uint64 code)
{
	const uint64 canonical = gs_canonical_code(field->canonical, code);

	gs_key_field_update_range(field, canonical);
	record[field->word] |= code << field->shift;
	return canonical;
}

/* The Datum of a float has its bits. */
static inline uint64
gs_float8_code(Datum value, bool bijective)
{
	const uint64 code = gs_encode_float8_bits(DatumGetUInt64(value));

	return bijective ? code : gs_float8_canonical(code);
}

static inline uint64
gs_float4_code(Datum value, bool bijective)
{
	const uint64 code = gs_encode_float4_bits(DatumGetUInt32(value));

	return bijective ? code : gs_float4_canonical(code);
}

/* The code of a value that is passed by value; labels as gs_key_labels_find() returns them. */
static inline uint64
gs_key_value_code(GsKeyKind kind, const GsKeyField *field, const GsKeyLabels *labels,
				  Datum value)
{
	bool		bijective = field->canonical != GS_CANONICAL_NONE;

	switch (kind)
	{
		case GS_KEY_BOOL:
			return DatumGetBool(value) ? 1 : 0;
		case GS_KEY_CHAR:
			return (unsigned char) DatumGetChar(value);
		case GS_KEY_INT16:
			return gs_encode_int16(DatumGetInt16(value));
		case GS_KEY_INT32:
			return gs_encode_int32(DatumGetInt32(value));
		case GS_KEY_UINT32:
			return DatumGetUInt32(value);
		case GS_KEY_INT64:
			return gs_encode_int64(DatumGetInt64(value));
		case GS_KEY_UINT64:
		case GS_KEY_ABBREVIATED:
			return DatumGetUInt64(value);
		case GS_KEY_FLOAT4:
			return gs_float4_code(value, bijective);
		case GS_KEY_FLOAT8:
			return gs_float8_code(value, bijective);
		default:
			Assert(kind == GS_KEY_ENUM);
			return labels->placed ? gs_float4_code(value, false) : DatumGetObjectId(value);
	}
}

/* Writes a value of fixed width that is passed by reference to its fields of the record. */
extern void gs_key_fields_write(GsKeyKind kind, GsKeyField *fields, Datum value, uint64 *record);

/* Decodes a value that is passed by value; not for placed labels. */
extern Datum gs_key_value_decode(GsKeyKind kind, uint64 code);

#endif							/* GPUSORT_KEY_FIELDS_H */
