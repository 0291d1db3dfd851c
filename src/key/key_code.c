/*-------------------------------------------------------------------------
 *
 * key_code.c
 *	  A string of bytes that orders a value, while it is written.
 *
 * jsonb
 * -----
 * What JsonbIteratorNext() returns, in that order, since jsonb_cmp() compares that: the
 * type of each value, as a byte, then the value; of an array or object the number of its
 * elements or pairs.  So a larger object sorts above a smaller one.  {"k": [true]}:
 *
 *	  11 01				6B 00	10 02			03 01
 *	  object, 1 pair	"k"		array, twice 1	true
 *
 * A scalar is an array with one element, and sorts below all other arrays of one element,
 * but above the empty array: its number is one less.
 *
 * tsvector
 * --------
 * The size of the value and the number of its lexemes, which are compared first.
 * Lexemes with positions precede those without, more positions precede fewer, higher
 * ones lower ones; so these are complemented.
 *
 * hstore
 * ------
 * 00 if empty, otherwise the bytes of all keys and values as one string, and their number and ends.
 *
 * ltree
 * -----
 * The labels, each after 01 and before a zero byte, and 00.
 *
 * hstore and ltree belong to contrib modules, so the layout of their values is stated here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_code.h"
#include "key/key_numeric.h"

#include "miscadmin.h"

void
gs_key_code_add_bytes(GsKeyCode *code, const char *data, size_t nbytes)
{
	memcpy(gs_key_code_reserve(code, nbytes), data, nbytes);
	code->len += nbytes;
}

void
gs_key_code_add_numeric(GsKeyCode *code, int fixed_weight, const char *data, size_t nbytes)
{
	unsigned char *to = gs_key_code_reserve(code, nbytes + GS_NUMERIC_EXTRA_BYTES);

	code->len += gs_numeric_write_code(data, nbytes, fixed_weight, to);
}

#define GROUP_BYTES		7
#define GROUP_FOLLOWED	0xFF

void
gs_key_code_add_groups(GsKeyCode *code, const char *data, size_t nbits)
{
	size_t		nbytes = (nbits + 7) / 8;
	unsigned char *to = gs_key_code_reserve(code, (nbytes / GROUP_BYTES + 1) * (GROUP_BYTES + 1));

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
	code->len = to + GROUP_BYTES + 1 - code->data;
}

bool
gs_key_code_add_text(GsKeyCode *code, GsKeyCollation *collation, const char *data, size_t nbytes,
					 const char **why_not)
{
	if (collation != NULL)
	{
		uint32		key_len;

		if (!gs_key_collation_key(collation, data, nbytes, PG_UINT32_MAX, &data, &key_len, why_not))
			return false;
		nbytes = key_len;
	}
	gs_key_code_add_bytes(code, data, nbytes);
	gs_key_code_add_byte(code, 0);
	return true;
}

/* ------------------------------------------------------------------ jsonb */

/* Lower numbers take one byte. */
#define LARGE_COUNT		0xFF

static void
put_count(GsKeyCode *code, uint32 count)
{
	gs_key_code_add_byte(code, Min(count, LARGE_COUNT));
	if (count >= LARGE_COUNT)
		gs_key_code_add_word(code, (uint64) count << 32, sizeof(count));
}

static bool
put_json_value(GsKeyCode *code, GsKeyCollation *collation, int fixed_weight,
			   const JsonbValue *value, const char **why_not)
{
	switch (value->type)
	{
		case jbvNull:
			return true;
		case jbvString:
			return gs_key_code_add_text(code, collation, value->val.string.val,
										value->val.string.len, why_not);
		case jbvNumeric:
			gs_key_code_add_numeric(code, fixed_weight, VARDATA_ANY(value->val.numeric),
									VARSIZE_ANY_EXHDR(value->val.numeric));
			return true;
		case jbvBool:
			gs_key_code_add_byte(code, value->val.boolean ? 1 : 0);
			return true;
		case jbvArray:
			put_count(code, 2 * (uint32) value->val.array.nElems -
					  (value->val.array.rawScalar ? 1 : 0));
			return true;
		case jbvObject:
			put_count(code, value->val.object.nPairs);
			return true;
		default:
			*why_not = "a jsonb value has a type that is not known";
			return false;
	}
}

bool
gs_key_code_add_jsonb(GsKeyCode *code, GsKeyCollation *collation, Jsonb *jsonb,
					  const char **why_not)
{
	const int	fixed_weight = gs_numeric_fixed_weight(-1);
	JsonbIterator *iterator = JsonbIteratorInit(&jsonb->root);
	JsonbIteratorToken token;
	JsonbValue	value;

	while (code->len <= code->enough &&
		   (token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE)
	{
		CHECK_FOR_INTERRUPTS();
		if (token == WJB_END_ARRAY || token == WJB_END_OBJECT)
			continue;			/* the number of elements implies it */
		if (token != WJB_KEY)	/* which is always a string */
			gs_key_code_add_byte(code, value.type);
		if (!put_json_value(code, collation, fixed_weight, &value, why_not))
			return false;
	}
	return true;
}

/* --------------------------------------------------------------- tsvector */

static void
put_lexeme(GsKeyCode *code, TSVector vector, const WordEntry *lexeme)
{
	const WordEntryPos *positions;
	int			npositions;

	gs_key_code_add_byte(code, lexeme->haspos ? 0 : 1);
	gs_key_code_add_bytes(code, STRPTR(vector) + lexeme->pos, lexeme->len);
	gs_key_code_add_byte(code, 0);
	if (!lexeme->haspos)
		return;
	positions = POSDATAPTR(vector, lexeme);
	npositions = POSDATALEN(vector, lexeme);
	gs_key_code_add_word(code, ~(uint64) npositions << 48, sizeof(uint16));
	for (int i = 0; i < npositions; i++)
	{
		const uint64 position = WEP_GETPOS(positions[i]) << 2 | WEP_GETWEIGHT(positions[i]);

		gs_key_code_add_word(code, ~position << 48, sizeof(uint16));
	}
}

void
gs_key_code_add_tsvector(GsKeyCode *code, TSVector vector)
{
	gs_key_code_add_int32(code, VARSIZE(vector));
	gs_key_code_add_int32(code, vector->size);
	for (int i = 0; i < vector->size && code->len <= code->enough; i++)
		put_lexeme(code, vector, &ARRPTR(vector)[i]);
}

/* ----------------------------------------------------------------- hstore */

/*
 * An hstore is a header, the ends of all keys and values in turn, and their bytes.  An
 * end can have the flag of a NULL.  Values of PostgreSQL 8 lack the flag in the header.
 */
#define HSTORE_CURRENT		UINT32_C(0x80000000)
#define HSTORE_COUNT		UINT32_C(0x0FFFFFFF)
#define HSTORE_NULL			UINT32_C(0x40000000)
#define HSTORE_END			UINT32_C(0x3FFFFFFF)

bool
gs_key_code_add_hstore(GsKeyCode *code, const char *data, const char **why_not)
{
	const uint32 header = gs_load_uint32(data);
	const uint32 nends = 2 * (header & HSTORE_COUNT);
	const char *ends = data + sizeof(header);
	const char *strings = ends + nends * sizeof(uint32);

	if (!(header & HSTORE_CURRENT))
	{
		*why_not = "an hstore value has the format of PostgreSQL 8";
		return false;
	}
	gs_key_code_add_byte(code, nends > 0 ? 1 : 0);
	if (nends == 0)
		return true;
	gs_key_code_add_groups(code, strings,
						   8 * (size_t) (gs_load_uint32(strings - sizeof(uint32)) & HSTORE_END));
	gs_key_code_add_int32(code, nends);
	for (uint32 i = 0; i < nends && code->len <= code->enough; i++)
	{
		const uint32 end = gs_load_uint32(ends + i * sizeof(end));

		gs_key_code_add_int32(code, (end & HSTORE_END) << 1 | (end & HSTORE_NULL ? 1 : 0));
	}
	return true;
}

/* ------------------------------------------------------------------ ltree */

/*
 * An ltree is the number of its labels, padding, and the labels, each after its length and
 * padded.  The longer of two labels that begin alike is greater.
 */
enum
{
	LTREE_END,
	LTREE_LABEL
};

#define LTREE_HEADER	(MAXALIGN(VARHDRSZ + sizeof(uint16)) - VARHDRSZ)

void
gs_key_code_add_ltree(GsKeyCode *code, const char *data)
{
	const int	nlabels = gs_load_uint16(data);
	const char *label = data + LTREE_HEADER;

	for (int i = 0; i < nlabels && code->len <= code->enough; i++)
	{
		const size_t len = gs_load_uint16(label);

		gs_key_code_add_byte(code, LTREE_LABEL);
		gs_key_code_add_bytes(code, label + sizeof(uint16), len);
		gs_key_code_add_byte(code, 0);
		label += MAXALIGN(sizeof(uint16) + len);
	}
	gs_key_code_add_byte(code, LTREE_END);
}
