/*-------------------------------------------------------------------------
 *
 * sort_key.c
 *	  From the sort columns of a row to its key record.
 *
 * Which columns can be encoded is decided by what the sort operator means,
 * its operator family and input type, never by the type of the column: a
 * domain over int4 sorts by int4's operator, a varchar by text's, and a type
 * may have other orders than its default one.  Two questions remain for text:
 * whether its collation compares bytes, and whether the operator looks at the
 * collation at all (those of the pattern families do not).
 *
 * The record of `ORDER BY int4 DESC NULLS LAST, text`, for the row (7, 'gpu'),
 * whose text stands at byte 20 of the stored row:
 *
 *	  word 0	80000007 00000000		the int4, its sign bit flipped, and room
 *	  word 1	67707500 00000000		'g' 'p' 'u', padded
 *	  word 2	00000014 00000003		where the text stands, and its length
 *	  place		........ 00000000		where the row stands; no NULLs
 *
 * The DESC and the NULLS LAST show in none of them: the packing (key_pack.h)
 * applies both when the ranges are known.
 *
 * A value that is compressed or stored out of line is fetched here, once, and
 * its bytes are stored behind the row, since the row itself keeps only the
 * pointer, as it does in a stock sort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>

#include "batch.h"
#include "key_codec.h"
#include "pgcompat.h"
#include "sort_deform.h"
#include "sort_key.h"

#include "access/transam.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_opfamily_d.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "storage/itemptr.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_lsn.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

/* The input types of the operators that can be encoded. */
static const struct
{
	Oid			type;
	GsKeyKind	kind;
}			key_kinds[] =
{
	{BOOLOID, GS_KEY_BOOL},
	{CHAROID, GS_KEY_CHAR},
	{INT2OID, GS_KEY_INT16},
	{INT4OID, GS_KEY_INT32},
	{DATEOID, GS_KEY_INT32},
	{OIDOID, GS_KEY_UINT32},
	{INT8OID, GS_KEY_INT64},
	{MONEYOID, GS_KEY_INT64},
	{TIMEOID, GS_KEY_INT64},
	{TIMESTAMPOID, GS_KEY_INT64},
	{TIMESTAMPTZOID, GS_KEY_INT64},
	{XID8OID, GS_KEY_UINT64},
	{PG_LSNOID, GS_KEY_UINT64},
	{FLOAT4OID, GS_KEY_FLOAT4},
	{FLOAT8OID, GS_KEY_FLOAT8},
	{ANYENUMOID, GS_KEY_ENUM},
	{TIDOID, GS_KEY_TID},
	{TIMETZOID, GS_KEY_TIMETZ},
	{INTERVALOID, GS_KEY_INTERVAL},
	{UUIDOID, GS_KEY_UUID},
	{MACADDROID, GS_KEY_MACADDR},
	{MACADDR8OID, GS_KEY_MACADDR8},
	{INETOID, GS_KEY_INET},
	{TEXTOID, GS_KEY_TEXT},
	{BPCHAROID, GS_KEY_BPCHAR},
	{NAMEOID, GS_KEY_NAME},
	{BYTEAOID, GS_KEY_BYTEA}
};

/* An enum label and its place in the order. */
typedef struct EnumLabel
{
	Oid			oid;
	float4		sort_order;
} EnumLabel;

/* A variable-width value as loaded. */
typedef struct KeyBytes
{
	const char *data;
	uint32		len;
	bool		detoasted;		/* data is a copy of ours: store it */
} KeyBytes;

typedef struct KeyColumn
{
	GsKeyKind	kind;
	bool		by_value;		/* and of one field */
	AttrNumber	attno;
	GsKeyField *field;			/* the first of its fields */
	int			nlabels;		/* enum: 0 if the labels' OIDs are in order */
	EnumLabel  *labels;			/* enum: by OID */
	KeyBytes	bytes;			/* variable width: of the row at hand */
} KeyColumn;

struct GsSortKey
{
	int			ncolumns;
	AttrNumber	last_attno;
	TupleDesc	desc;
	MemoryContext value_context;	/* detoasted values of the loaded row */
	bool		value_context_used;
	bool		direct;			/* no value has to be fetched or looked up */
	GsDeform   *deform;			/* finds the columns in a tuple; NULL: the slot does */
	GsDeform   *first_deform;	/* the same, of the first column only */
	Datum	   *values;			/* the sort columns of the row at hand */
	bool	   *nulls;
	KeyColumn  *columns;
	GsKeyLayout layout;
};

static bool type_has_kind(Oid type, GsKeyKind *kind);
static int	count_fields(GsKeyKind kind);
static void add_to_layout(GsKeyLayout *layout, GsKeyKind kind, bool bijective_floats);
static void load_enum_labels(KeyColumn *column, Oid enum_type);

/* ------------------------------------------------------- what can be encoded */

static bool
type_has_kind(Oid type, GsKeyKind *kind)
{
	for (int i = 0; i < lengthof(key_kinds); i++)
	{
		if (key_kinds[i].type == type)
		{
			*kind = key_kinds[i].kind;
			return true;
		}
	}
	return false;
}

bool
gs_sort_key_kind(const GsSortColumn *column, GsKeyKind *kind, bool *descending,
				 char **why_not)
{
	Oid			family;
	Oid			type;
	int16		strategy;
	bool		pattern;

	if (!get_ordering_op_properties(column->sort_operator, &family, &type, &strategy))
	{
		*why_not = psprintf("operator %u is not a btree ordering operator",
							column->sort_operator);
		return false;
	}
	*descending = strategy == BTGreaterStrategyNumber;
	if (!type_has_kind(type, kind))
	{
		*why_not = psprintf("type %s has no order-preserving code yet",
							format_type_be(type));
		return false;
	}
	pattern = family == TEXT_PATTERN_BTREE_FAM_OID ||
		family == BPCHAR_PATTERN_BTREE_FAM_OID;
	if (!pattern &&
		(family >= FirstGenbkiObjectId ||
		 lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf != family))
	{
		*why_not = psprintf("operator %u does not belong to the default order of type %s",
							column->sort_operator, format_type_be(type));
		return false;
	}
	if (!pattern && (*kind == GS_KEY_TEXT || *kind == GS_KEY_BPCHAR || *kind == GS_KEY_NAME) &&
		!(OidIsValid(column->collation) && gs_collation_is_bytewise(column->collation)))
	{
		char	   *name = get_collation_name(column->collation);

		*why_not = psprintf("collation \"%s\" does not compare bytes",
							name != NULL ? name : "?");
		return false;
	}
	return true;
}

bool
gs_sort_key_can_encode(const GsSortColumn *columns, int ncolumns, char **why_not)
{
	int			nfields = 0;

	if (ncolumns > GS_MAX_COLUMNS)
	{
		*why_not = psprintf("more than %d sort columns", GS_MAX_COLUMNS);
		return false;
	}
	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyKind	kind;
		bool		descending;
		char	   *reason;

		if (!gs_sort_key_kind(&columns[i], &kind, &descending, &reason))
		{
			*why_not = psprintf("sort column %d: %s", i + 1, reason);
			return false;
		}
		nfields += count_fields(kind);
	}
	if (nfields > GS_MAX_FIELDS)
	{
		*why_not = psprintf("the keys have more than %d fields", GS_MAX_FIELDS);
		return false;
	}
	return true;
}

/* ------------------------------------------------------------ the layout */

static int
count_fields(GsKeyKind kind)
{
	GsKeyLayout layout;

	gs_key_layout_init(&layout);
	gs_key_layout_add_column(&layout, false, false);
	add_to_layout(&layout, kind, false);
	return layout.nfields;
}

/* Gives the layout's last column the fields of its kind. */
static void
add_to_layout(GsKeyLayout *layout, GsKeyKind kind, bool bijective_floats)
{
	switch (kind)
	{
		case GS_KEY_BOOL:
		case GS_KEY_CHAR:
			gs_key_layout_add_field(layout, 8, GS_CANONICAL_NONE);
			break;
		case GS_KEY_INT16:
			gs_key_layout_add_field(layout, 16, GS_CANONICAL_NONE);
			break;
		case GS_KEY_INT32:
		case GS_KEY_UINT32:
		case GS_KEY_ENUM:
			gs_key_layout_add_field(layout, 32, GS_CANONICAL_NONE);
			break;
		case GS_KEY_INT64:
		case GS_KEY_UINT64:
		case GS_KEY_MACADDR8:
			gs_key_layout_add_field(layout, 64, GS_CANONICAL_NONE);
			break;
		case GS_KEY_FLOAT4:
			gs_key_layout_add_field(layout, 32, bijective_floats ?
									GS_CANONICAL_FLOAT4 : GS_CANONICAL_NONE);
			break;
		case GS_KEY_FLOAT8:
			gs_key_layout_add_field(layout, 64, bijective_floats ?
									GS_CANONICAL_FLOAT8 : GS_CANONICAL_NONE);
			break;
		case GS_KEY_TID:
		case GS_KEY_MACADDR:
			gs_key_layout_add_field(layout, 48, GS_CANONICAL_NONE);
			break;
		case GS_KEY_TIMETZ:		/* time in UTC, zone */
			gs_key_layout_add_field(layout, 64, GS_CANONICAL_NONE);
			gs_key_layout_add_field(layout, 32, GS_CANONICAL_NONE);
			break;
		case GS_KEY_INTERVAL:	/* 128-bit span */
		case GS_KEY_UUID:
			gs_key_layout_add_field(layout, 64, GS_CANONICAL_NONE);
			gs_key_layout_add_field(layout, 64, GS_CANONICAL_NONE);
			break;
		case GS_KEY_INET:		/* family, network, prefix length, address */
			gs_key_layout_add_field(layout, 8, GS_CANONICAL_NONE);
			gs_key_layout_add_field(layout, 64, GS_CANONICAL_NONE);
			gs_key_layout_add_field(layout, 64, GS_CANONICAL_NONE);
			gs_key_layout_add_field(layout, 8, GS_CANONICAL_NONE);
			gs_key_layout_add_field(layout, 64, GS_CANONICAL_NONE);
			gs_key_layout_add_field(layout, 64, GS_CANONICAL_NONE);
			break;
		case GS_KEY_TEXT:
		case GS_KEY_BPCHAR:
		case GS_KEY_NAME:
			gs_key_layout_add_bytes(layout, true);
			break;
		case GS_KEY_BYTEA:
			gs_key_layout_add_bytes(layout, false);
			break;
	}
}

static int
compare_labels(const void *a, const void *b)
{
	Oid			x = ((const EnumLabel *) a)->oid;
	Oid			y = ((const EnumLabel *) b)->oid;

	return x < y ? -1 : x > y;
}

/*
 * Labels whose OID is even were given OIDs in their order when the type was
 * made.  One added between two others later has an odd OID, and then all
 * labels are placed by their pg_enum.enumsortorder.
 */
static void
load_enum_labels(KeyColumn *column, Oid enum_type)
{
	CatCList   *list = SearchSysCacheList1(ENUMTYPOIDNAME, ObjectIdGetDatum(enum_type));
	bool		in_order = true;

	column->labels = palloc(sizeof(EnumLabel) * Max(list->n_members, 1));
	for (int i = 0; i < list->n_members; i++)
	{
		Form_pg_enum label = (Form_pg_enum) GETSTRUCT(&list->members[i]->tuple);

		column->labels[i].oid = label->oid;
		column->labels[i].sort_order = label->enumsortorder;
		if (label->oid & 1)
			in_order = false;
	}
	column->nlabels = in_order ? 0 : list->n_members;
	ReleaseCatCacheList(list);
	qsort(column->labels, column->nlabels, sizeof(EnumLabel), compare_labels);
}

/* Kinds whose values are Datums in themselves. */
static bool
is_by_value(GsKeyKind kind)
{
	switch (kind)
	{
		case GS_KEY_BOOL:
		case GS_KEY_CHAR:
		case GS_KEY_INT16:
		case GS_KEY_INT32:
		case GS_KEY_UINT32:
		case GS_KEY_INT64:
		case GS_KEY_UINT64:
		case GS_KEY_FLOAT4:
		case GS_KEY_FLOAT8:
		case GS_KEY_ENUM:
			return true;
		default:
			return false;
	}
}

/* Can a value of this kind be had back from its code, and does it fit a Datum? */
static bool
is_decodable(const KeyColumn *column)
{
	return is_by_value(column->kind) &&
		(column->kind != GS_KEY_ENUM || column->nlabels == 0);
}

GsSortKey *
gs_sort_key_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc)
{
	GsSortKey  *key = palloc(sizeof(GsSortKey));
	AttrNumber *attnos = palloc(sizeof(AttrNumber) * ncolumns);
	bool		keys_only;

	key->ncolumns = ncolumns;
	key->last_attno = 0;
	key->desc = desc;
	key->value_context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort key",
											   ALLOCSET_SMALL_SIZES);
	key->value_context_used = false;
	key->direct = true;
	key->values = palloc(sizeof(Datum) * ncolumns);
	key->nulls = palloc(sizeof(bool) * ncolumns);
	key->columns = palloc0(sizeof(KeyColumn) * ncolumns);
	gs_key_layout_init(&key->layout);

	for (int i = 0; i < ncolumns; i++)
	{
		KeyColumn  *column = &key->columns[i];
		bool		descending;
		char	   *why_not;

		if (!gs_sort_key_kind(&columns[i], &column->kind, &descending, &why_not))
			elog(ERROR, "sort column %d cannot be encoded: %s", i + 1, why_not);
		column->attno = columns[i].attno;
		key->last_attno = Max(key->last_attno, column->attno);
		if (column->kind == GS_KEY_ENUM)
			load_enum_labels(column,
							 getBaseType(TupleDescAttr(desc, column->attno - 1)->atttypid));
		gs_key_layout_add_column(&key->layout, descending, columns[i].nulls_first);
		keys_only = ncolumns == 1 && desc->natts == 1 && is_decodable(column);
		add_to_layout(&key->layout, column->kind, keys_only);
		if (column->kind == GS_KEY_ENUM || key->layout.columns[i].variable)
			key->direct = false;
		key->layout.keys_only = keys_only;
		key->layout.ascending = keys_only;
		column->by_value = is_by_value(column->kind);
		column->field = &key->layout.fields[key->layout.columns[i].first_field];
		attnos[i] = column->attno;
	}
	key->deform = gs_deform_create(desc, attnos, ncolumns);
	key->first_deform = gs_deform_create(desc, attnos, 1);
	pfree(attnos);
	return key;
}

GsKeyLayout *
gs_sort_key_layout(GsSortKey *key)
{
	return &key->layout;
}

bool
gs_sort_key_is_direct(const GsSortKey *key)
{
	return key->direct;
}

/* ------------------------------------------------------------------ loading */

/* Finds the bytes of a text-like value, fetching it if need be. */
static void
load_bytes(GsSortKey *key, KeyColumn *column, Datum datum, size_t *extra_bytes)
{
	KeyBytes   *bytes = &column->bytes;
	struct varlena *value;

	bytes->detoasted = false;
	if (column->kind == GS_KEY_NAME)
	{
		bytes->data = NameStr(*DatumGetName(datum));
		bytes->len = strnlen(bytes->data, NAMEDATALEN);
		return;
	}

	value = (struct varlena *) DatumGetPointer(datum);
	if (VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value))
	{
		MemoryContext old = MemoryContextSwitchTo(key->value_context);

		value = pg_detoast_datum_packed(value);
		MemoryContextSwitchTo(old);
		key->value_context_used = true;
		bytes->detoasted = true;
	}
	bytes->data = VARDATA_ANY(value);
	bytes->len = VARSIZE_ANY_EXHDR(value);
	if (column->kind == GS_KEY_BPCHAR)
		bytes->len = bpchartruelen(unconstify(char *, bytes->data), bytes->len);
	if (bytes->detoasted)
		*extra_bytes += bytes->len;
}

/* Finds the code of an enum label that has none in itself. */
static bool
load_label(const KeyColumn *column, Datum *value, const char **why_not)
{
	Oid			oid = DatumGetObjectId(*value);
	EnumLabel  *label = NULL;

	if (column->nlabels == 0)
	{
		if ((oid & 1) == 0)
			return true;
	}
	else
	{
		EnumLabel	wanted = {.oid = oid};

		label = bsearch(&wanted, column->labels, column->nlabels,
						sizeof(EnumLabel), compare_labels);
	}
	if (label == NULL)
	{
		*why_not = "an enum label was added while the sort ran";
		return false;
	}
	*value = Float4GetDatum(label->sort_order);
	return true;
}

/* Finds the sort columns of the slot's row. */
static inline void
find_values(GsSortKey *key, TupleTableSlot *slot, const GsRowSource *source)
{
	if (slot->tts_nvalid < key->last_attno && source->body != NULL && key->deform != NULL &&
		gs_deform(key->deform, (HeapTupleHeader) (source->body - MINIMAL_TUPLE_OFFSET),
				  key->values, key->nulls))
		return;
	slot_getsomeattrs(slot, key->last_attno);
	for (int i = 0; i < key->ncolumns; i++)
	{
		key->values[i] = slot->tts_values[key->columns[i].attno - 1];
		key->nulls[i] = slot->tts_isnull[key->columns[i].attno - 1];
	}
}

/* Forgets what was fetched for the row before. */
static inline void
forget_values(GsSortKey *key)
{
	if (key->value_context_used)
	{
		MemoryContextReset(key->value_context);
		key->value_context_used = false;
	}
}

/* Fetches or looks up the value found for a column, if it is of a kind that needs it. */
static inline bool
load_column(GsSortKey *key, int colno, size_t *extra_bytes, const char **why_not)
{
	KeyColumn  *column = &key->columns[colno];

	if (key->nulls[colno])
		return true;
	if (column->kind == GS_KEY_ENUM)
	{
		if (!load_label(column, &key->values[colno], why_not))
			return false;
	}
	else if (key->layout.columns[colno].variable)
		load_bytes(key, column, key->values[colno], extra_bytes);
	return true;
}

bool
gs_sort_key_load(GsSortKey *key, TupleTableSlot *slot, const GsRowSource *source,
				 size_t *extra_bytes, const char **why_not)
{
	*extra_bytes = 0;
	find_values(key, slot, source);
	forget_values(key);
	for (int i = 0; i < key->ncolumns; i++)
	{
		if (!load_column(key, i, extra_bytes, why_not))
			return false;
	}
	return true;
}

/* ------------------------------------------------------------------ writing */

/* Notes a code of a field and puts it in its place in the record; returns it canonical. */
static inline uint64
put_field(GsKeyField *field, uint64 *record, uint64 code)
{
	uint64		canonical = code;

	if (field->canonical == GS_CANONICAL_FLOAT8)
		canonical = gs_float8_canonical(code);
	else if (field->canonical == GS_CANONICAL_FLOAT4)
		canonical = gs_float4_canonical(code);
	gs_key_field_observe(field, canonical);
	record[field->word] |= code << field->shift;
	return canonical;
}

static uint64
float8_code(Datum value, bool bijective)
{
	float8		v = DatumGetFloat8(value);
	uint64		bits;
	uint64		code;

	memcpy(&bits, &v, sizeof(bits));
	code = gs_encode_float8_bits(bits);
	return bijective ? code : gs_float8_canonical(code);
}

static uint64
float4_code(Datum value, bool bijective)
{
	float4		v = DatumGetFloat4(value);
	uint32		bits;
	uint64		code;

	memcpy(&bits, &v, sizeof(bits));
	code = gs_encode_float4_bits(bits);
	return bijective ? code : gs_float4_canonical(code);
}

/* The code of a value of one field that is passed by value. */
static inline uint64
by_value_code(const KeyColumn *column, const GsKeyField *field, Datum value)
{
	bool		bijective = field->canonical != GS_CANONICAL_NONE;

	switch (column->kind)
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
			return DatumGetUInt64(value);
		case GS_KEY_FLOAT4:
			return float4_code(value, bijective);
		case GS_KEY_FLOAT8:
			return float8_code(value, bijective);
		default:
			Assert(column->kind == GS_KEY_ENUM);
			return column->nlabels == 0 ? DatumGetObjectId(value) : float4_code(value, false);
	}
}

static void
put_timetz(GsKeyField *field, uint64 *record, const TimeTzADT *value)
{
	put_field(&field[0], record,
			  gs_encode_int64(value->time + value->zone * USECS_PER_SEC));
	put_field(&field[1], record, gs_encode_int32(value->zone));
}

/* As interval's comparison has it: a month is 30 days, a day 24 hours. */
static void
put_interval(GsKeyField *field, uint64 *record, const Interval *value)
{
	int64		days = value->month * INT64CONST(30) + value->day;
	int128		span = (int128) days * USECS_PER_DAY + value->time;

	put_field(&field[0], record, gs_encode_int64((int64) (span >> 64)));
	put_field(&field[1], record, (uint64) span);
}

/*
 * Networks sort by family, then by the bits that both prefixes have, then the
 * shorter prefix first, then by the whole address.  Comparing the addresses
 * masked to their own prefixes gives the first two: where one masked address
 * differs within the common bits the order is the same, and where it does not,
 * the one with the shorter prefix has zeros and is the smaller or equal one.
 *
 * IPv4 addresses go to the low ends of the fields, so that a column without
 * IPv6 has no idle bits to pack.
 */
static void
put_inet(GsKeyField *field, uint64 *record, inet *value)
{
	int			nbytes = ip_addrsize(value);
	int			prefix = ip_bits(value);
	unsigned char address[16] = {0};
	unsigned char network[16] = {0};

	memcpy(address + 16 - nbytes, ip_addr(value), nbytes);
	for (int i = 0; i < nbytes; i++)
	{
		int			bits = Min(Max(prefix - 8 * i, 0), 8);

		network[16 - nbytes + i] = address[16 - nbytes + i] & (0xFF00 >> bits);
	}
	put_field(&field[0], record, ip_family(value));
	put_field(&field[1], record, gs_load_be64(network));
	put_field(&field[2], record, gs_load_be64(network + 8));
	put_field(&field[3], record, prefix);
	put_field(&field[4], record, gs_load_be64(address));
	put_field(&field[5], record, gs_load_be64(address + 8));
}

/* The first bytes of a text-like value, as an unsigned number. */
static inline uint64
bytes_prefix(const KeyBytes *bytes)
{
	return gs_load_prefix((const unsigned char *) bytes->data, bytes->len);
}

/*
 * A text-like value: its first bytes, and where all of them stand, counted
 * from the row.  *extra is where bytes that do not stand in the row go.
 */
static void
put_bytes(GsSortKey *key, int colno, const GsRowSource *source,
		  char *row, char **extra, uint64 *record)
{
	KeyColumn  *column = &key->columns[colno];
	GsKeyColumn *layout = &key->layout.columns[colno];
	KeyBytes   *bytes = &column->bytes;
	const char *stored;

	put_field(&key->layout.fields[layout->first_field], record, bytes_prefix(bytes));
	if (bytes->len < layout->min_len)
		layout->min_len = bytes->len;
	if (bytes->len > layout->max_len)
		layout->max_len = bytes->len;

	if (bytes->detoasted)
	{
		memcpy(*extra, bytes->data, bytes->len);
		stored = *extra;
		*extra += bytes->len;
	}
	else if (bytes->len <= sizeof(uint64))
		stored = row;			/* the prefix has it all: never looked at */
	else if (gs_row_source_contains(source, bytes->data))
		stored = row + (bytes->data - source->body);
	else
	{
		/* the row was formed from loose values: look where this one went */
		HeapTupleData tuple;
		Datum		value;
		bool		is_null;

		tuple.t_len = ((MinimalTuple) row)->t_len + MINIMAL_TUPLE_OFFSET;
		tuple.t_data = (HeapTupleHeader) (row - MINIMAL_TUPLE_OFFSET);
		value = heap_getattr(&tuple, column->attno, key->desc, &is_null);
		stored = column->kind == GS_KEY_NAME ?
			NameStr(*DatumGetName(value)) : VARDATA_ANY(DatumGetPointer(value));
	}
	record[layout->tail_word] = gs_tail_make((uint32) (stored - row), bytes->len);
}

/* Puts a value of fixed width that is passed by reference in its place in the record. */
static pg_noinline void
put_by_reference(const KeyColumn *column, GsKeyField *field, Datum value, uint64 *record)
{
	switch (column->kind)
	{
		case GS_KEY_TID:
			{
				ItemPointer tid = (ItemPointer) DatumGetPointer(value);

				put_field(field, record,
						  (uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 |
						  ItemPointerGetOffsetNumberNoCheck(tid));
				break;
			}
		case GS_KEY_TIMETZ:
			put_timetz(field, record, DatumGetTimeTzADTP(value));
			break;
		case GS_KEY_INTERVAL:
			put_interval(field, record, DatumGetIntervalP(value));
			break;
		case GS_KEY_UUID:
			{
				pg_uuid_t  *uuid = DatumGetUUIDP(value);

				put_field(&field[0], record, gs_load_be64(uuid->data));
				put_field(&field[1], record, gs_load_be64(uuid->data + 8));
				break;
			}
		case GS_KEY_MACADDR:
			put_field(field, record,
					  gs_load_be((unsigned char *) DatumGetMacaddrP(value), 6));
			break;
		case GS_KEY_MACADDR8:
			put_field(field, record,
					  gs_load_be64((unsigned char *) DatumGetMacaddr8P(value)));
			break;
		case GS_KEY_INET:
			put_inet(field, record, DatumGetInetPP(value));
			break;
		default:
			break;				/* by value, or put_bytes() */
	}
}

/* The code of a field of a value that is passed by reference. */
static pg_noinline uint64
by_reference_code(const KeyColumn *column, GsKeyField *field, Datum value)
{
	uint64		record[GS_MAX_FIELDS] = {0};

	put_by_reference(column, field, value, record);
	return (record[field->word] >> field->shift) & gs_key_field_mask(field);
}

/* The code of the first column's first field, of a value that is loaded and not NULL. */
static inline uint64
first_code(const GsSortKey *key)
{
	const KeyColumn *column = &key->columns[0];

	if (column->by_value)
		return by_value_code(column, column->field, key->values[0]);
	if (key->layout.columns[0].variable)
		return bytes_prefix(&column->bytes);
	return by_reference_code(column, column->field, key->values[0]);
}

bool
gs_sort_key_peek(GsSortKey *key, TupleTableSlot *slot, bool *is_null, uint64 *code)
{
	Size		nbytes;
	const char *body = gs_row_body(slot, &nbytes);
	AttrNumber	attno = key->columns[0].attno;
	size_t		extra_bytes = 0;
	const char *why_not;

	if (slot->tts_nvalid >= attno || body == NULL ||
		!gs_deform(key->first_deform, (HeapTupleHeader) (body - MINIMAL_TUPLE_OFFSET),
				   key->values, key->nulls))
		key->values[0] = slot_getattr(slot, attno, &key->nulls[0]);
	*is_null = key->nulls[0];
	if (*is_null)
		return true;
	forget_values(key);
	if (!load_column(key, 0, &extra_bytes, &why_not))
		return false;
	*code = first_code(key);
	return true;
}

/* The record of the values found, all of fixed width if direct.  Returns the NULL bits. */
static inline __attribute__((always_inline)) uint32
put_values(GsSortKey *key, bool direct, const GsRowSource *source, char *row,
		   char *extra, uint64 *record)
{
	GsKeyLayout *layout = &key->layout;
	uint32		nulls = 0;

	layout->nrows++;
	for (int w = 0; w < layout->nwords; w++)
		record[w] = 0;
	for (int i = 0; i < key->ncolumns; i++)
	{
		const KeyColumn *column = &key->columns[i];

		if (key->nulls[i])
		{
			layout->columns[i].nnulls++;
			nulls |= UINT32_C(1) << i;
		}
		else if (!direct && layout->columns[i].variable)
			put_bytes(key, i, source, row, &extra, record);
		else if (column->by_value)
			put_field(column->field, record,
					  by_value_code(column, column->field, key->values[i]));
		else
			put_by_reference(column, column->field, key->values[i], record);
	}
	return nulls;
}

uint32
gs_sort_key_write(GsSortKey *key, const GsRowSource *source, char *row,
				  size_t row_bytes, uint64 *record)
{
	return put_values(key, false, source, row, row + row_bytes, record);
}

uint32
gs_sort_key_write_direct(GsSortKey *key, TupleTableSlot *slot, const GsRowSource *source,
						 uint64 *record)
{
	find_values(key, slot, source);
	return put_values(key, true, source, NULL, NULL, record);
}

/* ----------------------------------------------------------------- keys only */

bool
gs_sort_key_write_value(GsSortKey *key, Datum value, uint64 *record, const char **why_not)
{
	KeyColumn  *column = &key->columns[0];
	GsKeyField *field = &key->layout.fields[0];

	if (column->kind == GS_KEY_ENUM && !load_label(column, &value, why_not))
		return false;
	key->layout.nrows++;
	record[0] = 0;
	gs_key_layout_observe_order(&key->layout,
								put_field(field, record, by_value_code(column, field, value)));
	return true;
}

Datum
gs_sort_key_decode(const GsSortKey *key, const uint64 *record)
{
	const GsKeyField *field = &key->layout.fields[0];
	uint64		code = (record[0] >> field->shift) & gs_key_field_mask(field);

	switch (key->columns[0].kind)
	{
		case GS_KEY_BOOL:
			return BoolGetDatum(code != 0);
		case GS_KEY_CHAR:
			return CharGetDatum((char) code);
		case GS_KEY_INT16:
			return Int16GetDatum(gs_decode_int16(code));
		case GS_KEY_INT32:
			return Int32GetDatum(gs_decode_int32(code));
		case GS_KEY_UINT32:
		case GS_KEY_ENUM:
			return UInt32GetDatum((uint32) code);
		case GS_KEY_INT64:
			return Int64GetDatum(gs_decode_int64(code));
		case GS_KEY_UINT64:
			return UInt64GetDatum(code);
		case GS_KEY_FLOAT4:
			{
				uint32		bits = gs_decode_float4_bits(code);
				float4		v;

				memcpy(&v, &bits, sizeof(v));
				return Float4GetDatum(v);
			}
		case GS_KEY_FLOAT8:
			{
				uint64		bits = gs_decode_float8_bits(code);
				float8		v;

				memcpy(&v, &bits, sizeof(v));
				return Float8GetDatum(v);
			}
		default:
			elog(ERROR, "key kind %d has no row in its key", (int) key->columns[0].kind);
	}
}
