/*-------------------------------------------------------------------------
 *
 * key_fields.c
 *	  The fields of a key record, and codes of values of fixed width.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>

#include "key/key_fields.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "common/hashfn.h"
#include "storage/itemptr.h"
#include "utils/catcache.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

/* The bits of the fields of values of fixed width. */
static const uint8 field_bits[GS_KEY_TEXT][6] =
{
	[GS_KEY_BOOL] = {8},
	[GS_KEY_CHAR] = {8},
	[GS_KEY_INT16] = {16},
	[GS_KEY_INT32] = {32},
	[GS_KEY_UINT32] = {32},
	[GS_KEY_INT64] = {64},
	[GS_KEY_UINT64] = {64},
	[GS_KEY_FLOAT4] = {32},
	[GS_KEY_FLOAT8] = {64},
	[GS_KEY_ABBREVIATED] = {64},
	[GS_KEY_ENUM] = {32},
	[GS_KEY_TID] = {48},
	[GS_KEY_TIMETZ] = {64, 32}, /* time in UTC, zone */
	[GS_KEY_INTERVAL] = {64, 64},	/* 128-bit span */
	[GS_KEY_UUID] = {64, 64},
	[GS_KEY_MACADDR] = {48},
	[GS_KEY_MACADDR8] = {64},
	[GS_KEY_INET] = {8, 64, 64, 8, 64, 64}, /* family, network, prefix length, address */
	[GS_KEY_COMPARED] = {0}
};

void
gs_key_fields_add(GsKeyLayout *layout, GsKeyKind kind, bool bijective_floats)
{
	GsCanonical canonical = GS_CANONICAL_NONE;

	if (kind >= GS_KEY_TEXT)
	{
		gs_key_layout_add_bytes(layout, kind <= GS_KEY_NAME);
		return;
	}
	if (bijective_floats && kind == GS_KEY_FLOAT4)
		canonical = GS_CANONICAL_FLOAT4;
	else if (bijective_floats && kind == GS_KEY_FLOAT8)
		canonical = GS_CANONICAL_FLOAT8;
	for (int i = 0; i < lengthof(field_bits[0]) && field_bits[kind][i] != 0; i++)
		gs_key_layout_add_field(layout, field_bits[kind][i], canonical);
}

/* ----------------------------------------------------------------- enums */

static int
compare_labels(const void *a, const void *b)
{
	Oid			x = ((const GsKeyLabel *) a)->oid;
	Oid			y = ((const GsKeyLabel *) b)->oid;

	return x < y ? -1 : x > y;
}

void
gs_key_labels_read(GsKeyLabels *labels, Oid enum_type)
{
	CatCList   *list = SearchSysCacheList1(ENUMTYPOIDNAME, ObjectIdGetDatum(enum_type));

	labels->placed = false;
	labels->labels = palloc(sizeof(GsKeyLabel) * Max(list->n_members, 1));
	for (int i = 0; i < list->n_members; i++)
	{
		Form_pg_enum label = (Form_pg_enum) GETSTRUCT(&list->members[i]->tuple);

		labels->labels[i].oid = label->oid;
		labels->labels[i].sort_order = label->enumsortorder;
		if (label->oid & 1)
			labels->placed = true;
	}
	labels->nlabels = list->n_members;
	ReleaseCatCacheList(list);
	qsort(labels->labels, labels->nlabels, sizeof(GsKeyLabel), compare_labels);
}

bool
gs_key_labels_find(const GsKeyLabels *labels, Datum *value, const char **why_not)
{
	Oid			oid = DatumGetObjectId(*value);
	GsKeyLabel *label = NULL;

	if (!labels->placed)
	{
		if ((oid & 1) == 0)
			return true;
	}
	else
	{
		GsKeyLabel	wanted = {.oid = oid};

		label = bsearch(&wanted, labels->labels, labels->nlabels,
						sizeof(GsKeyLabel), compare_labels);
	}
	if (label == NULL)
	{
		*why_not = "an enum label was added while the sort ran";
		return false;
	}
	*value = Float4GetDatum(label->sort_order);
	return true;
}

uint64
gs_key_labels_hash(const GsKeyLabels *labels, uint64 seed)
{
	if (!labels->placed)
		return seed;
	return hash_bytes_extended((const unsigned char *) labels->labels,
							   labels->nlabels * (int) sizeof(GsKeyLabel), seed + 1);
}

/* --------------------------------------------------------------- encoding */

static void
write_timetz(GsKeyField *fields, uint64 *record, const TimeTzADT *value)
{
	gs_key_field_write(&fields[0], record,
					   gs_encode_int64(value->time + value->zone * USECS_PER_SEC));
	gs_key_field_write(&fields[1], record, gs_encode_int32(value->zone));
}

/* As interval_cmp() does: a month is 30 days, a day 24 hours. */
static void
write_interval(GsKeyField *fields, uint64 *record, const Interval *value)
{
	int64		days = value->month * INT64CONST(30) + value->day;
	int128		span = (int128) days * USECS_PER_DAY + value->time;

	gs_key_field_write(&fields[0], record, gs_encode_int64((int64) (span >> 64)));
	gs_key_field_write(&fields[1], record, (uint64) span);
}

/*
 * network_cmp() orders by family, then by the bits that both prefixes cover, then by
 * the length of the prefix, then by the whole address.  Instead of the common bits, the
 * addresses masked to their own prefixes can be compared: if they differ in the common
 * bits, the order is the same; if not, the one with the shorter prefix has zeros after
 * these bits, so it sorts first or with the other one.
 *
 * IPv4 addresses are in the low bits of the fields, so that the other bits do not vary
 * in a column without IPv6.
 */
static void
write_inet(GsKeyField *fields, uint64 *record, inet *value)
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
	gs_key_field_write(&fields[0], record, ip_family(value));
	gs_key_field_write(&fields[1], record, gs_load_be64(network));
	gs_key_field_write(&fields[2], record, gs_load_be64(network + 8));
	gs_key_field_write(&fields[3], record, prefix);
	gs_key_field_write(&fields[4], record, gs_load_be64(address));
	gs_key_field_write(&fields[5], record, gs_load_be64(address + 8));
}

void
gs_key_fields_write(GsKeyKind kind, GsKeyField *fields, Datum value, uint64 *record)
{
	switch (kind)
	{
		case GS_KEY_TID:
			{
				ItemPointer tid = (ItemPointer) DatumGetPointer(value);

				gs_key_field_write(fields, record,
								   (uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 |
								   ItemPointerGetOffsetNumberNoCheck(tid));
				break;
			}
		case GS_KEY_TIMETZ:
			write_timetz(fields, record, DatumGetTimeTzADTP(value));
			break;
		case GS_KEY_INTERVAL:
			write_interval(fields, record, DatumGetIntervalP(value));
			break;
		case GS_KEY_UUID:
			{
				pg_uuid_t  *uuid = DatumGetUUIDP(value);

				gs_key_field_write(&fields[0], record, gs_load_be64(uuid->data));
				gs_key_field_write(&fields[1], record, gs_load_be64(uuid->data + 8));
				break;
			}
		case GS_KEY_MACADDR:
			gs_key_field_write(fields, record,
							   gs_load_be((unsigned char *) DatumGetMacaddrP(value), 6));
			break;
		case GS_KEY_MACADDR8:
			gs_key_field_write(fields, record,
							   gs_load_be64((unsigned char *) DatumGetMacaddr8P(value)));
			break;
		case GS_KEY_INET:
			write_inet(fields, record, DatumGetInetPP(value));
			break;
		case GS_KEY_COMPARED:
			break;
		default:
			elog(ERROR, "key kind %d is not passed by reference", (int) kind);
	}
}

Datum
gs_key_value_decode(GsKeyKind kind, uint64 code)
{
	switch (kind)
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
			return Int32GetDatum((int32) gs_decode_float4_bits(code));
		case GS_KEY_FLOAT8:
			return Int64GetDatum((int64) gs_decode_float8_bits(code));
		default:
			elog(ERROR, "key kind %d cannot be decoded", (int) kind);
	}
}
