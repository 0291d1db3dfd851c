/*-------------------------------------------------------------------------
 *
 * collation_icu.c
 *	  Sort keys of ICU, built from the collation elements of characters; key_collation.c calls ICU
 *	  itself.
 *
 * A collation maps each character to a few collation elements (CEs) of three weights: primary
 * (which letter), secondary (which accent) and tertiary (which case).  A sort key is the weights of
 * all elements, level by level, separated by bytes of 1.  In en:
 *
 *	  "ab"		2a 2c			01 06			01 06
 *	  "aB"		2a 2c			01 06			01 c5 dc
 *	  "ä"		2a				01 45 96		01 06			a letter, an accent
 *	  "жд"		61 2c 1a		01 06			01 06			61 2c, 61 1a
 *
 * Most secondary and tertiary weights are the *common* one.  A run of it is written as one byte,
 * which says how long the run is, up to 33 or 97, and whether the next weight is less.  Primary
 * weights have up to 4 bytes.  If the first byte is that of a large script, it is not repeated, and
 * a byte of 3 or ff ends such a sequence (Unicode Technical Standard 10; ICU's design of collation
 * v2, "Sort keys").
 *
 * A text is left to ICU if it has a combining mark, a character that is not in the tables
 * (collation_icu_tables.c), or two that may be a contraction, which has other elements than the
 * characters alone (Czech "ch").  The keys built here are ICU's to the byte, so both compare with
 * each other.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "collation/collation_icu_state.h"
#include "pg_compat.h"

#include "catalog/pg_collation.h"
#include "port/pg_bswap.h"
#include "utils/hsearch.h"

/*
 * So many texts are left to ICU at first, as to make the tables takes as long as tens of thousands
 * of keys (7 to 10 ms; Zen 5, ICU 72, 2026-11); longer texts always are.
 */
#define TEXTS_BEFORE	131072
#define LONG_TEXT		65536

/* Bytes of the primary level that are in no weight. */
#define LEVEL_END		1
#define LESS_FOLLOWS	3
#define MORE_FOLLOWS	0xFF

/* How runs of the common weight, and other weights, are written. */
typedef struct Level
{
	unsigned char run_before_less;	/* a run of 1; longer ones are higher */
	unsigned char run_before_more;	/* a run of 1; longer ones are lower */
	unsigned char longest_run;
	unsigned char part_of_run;	/* longest_run weights of a longer run */
	uint16		raised;			/* is added to weights above the common one */
} Level;

static const Level secondary_level = {0x05, 0x45, 0x21, 0x25, 0};
static const Level tertiary_level = {0x05, 0xC5, 0x61, 0x65, 0xC000};

/* --------------------------------------------------------------- building keys */

/* The character of three bytes; the first is IS_EAST_ASIAN_LEAD(). */
static inline Character *
east_asian_character(const GsIcuKeys *icu_keys, const unsigned char *bytes)
{
	const int	c = (bytes[0] & 0x0F) << 12 | (bytes[1] & 0x3F) << 6 | (bytes[2] & 0x3F);

	return &icu_keys->east_asian[c - FIRST_EAST_ASIAN];
}

/* The rest of next_character(), for a first byte that is not in chars[]. */
static pg_noinline const Character *
next_east_asian(GsIcuKeys *icu_keys, const unsigned char **at, const unsigned char *end)
{
	const unsigned char *bytes = *at - 1;
	Character  *character;

	if (icu_keys->east_asian == NULL || !IS_EAST_ASIAN_LEAD(bytes[0]) || end - bytes < 3)
		return &icu_keys->chars[0]; /* not in the tables */
	character = east_asian_character(icu_keys, bytes);
	*at = bytes + 3;
	if (unlikely(character->nces == 0 && (character->kind & KIND_UNKNOWN) == 0))
		gs_icu_tables_learn(icu_keys, character);
	return character;
}

static inline const Character *
next_character(GsIcuKeys *icu_keys, const unsigned char **at, const unsigned char *end)
{
	unsigned int c = *(*at)++;

	if (c >= 0x80)
	{
		if (c - MIN_LEAD > MAX_LEAD - MIN_LEAD || *at == end || (**at & 0xC0) != 0x80)
			return next_east_asian(icu_keys, at, end);
		c = (c & 0x1F) << 6 | (*(*at)++ & 0x3F);
	}
	return &icu_keys->chars[c];
}

/* Writes a primary weight whose first byte, or that of the previous one, is compressible. */
static unsigned char *
put_compressed(const Element *element, unsigned char *before, unsigned char *out)
{
	const unsigned char lead = element->primary[0];

	if (element->len == 0)
		return out;
	if (element->compressible && lead == *before)
	{
		memcpy(out, element->primary + 1, element->len - 1);
		return out + element->len - 1;
	}
	if (*before != 0)
		*out++ = lead < *before ? LESS_FOLLOWS : MORE_FOLLOWS;
	*before = element->compressible ? lead : 0;
	memcpy(out, element->primary, element->len);
	return out + element->len;
}

/*
 * Writes the primary level, or at least its first `enough` bytes.  Returns its end, or
 * NULL if the text has to be left to ICU.  *kinds becomes the kinds of all characters,
 * *nces the number of their elements.
 */
static pg_attribute_always_inline unsigned char *
put_primary(GsIcuKeys *icu_keys, const char *string, Size len, Size enough,
			unsigned char *out, unsigned int *kinds, Size *nces)
{
	const unsigned char *at = (const unsigned char *) string;
	const unsigned char *end = at + len;
	const unsigned char *start = out;
	unsigned char before = 0;	/* the first byte that is not repeated; 0: none */
	unsigned int last = 0;
	unsigned int all = 0;
	Size		n = 0;

	while (at < end)
	{
		const Character *c;
		const Element *element;

		if (likely(icu_keys->plain[*at] != 0 && before == 0))
		{
			if (out - start >= enough)
				break;
			*out++ = icu_keys->plain[*at++];
			n++;
			last = 0;
			continue;
		}
		c = next_character(icu_keys, &at, end);
		element = &icu_keys->elements[c->at];
		if (unlikely((c->kind & KIND_UNKNOWN) != 0 ||
					 (last & KIND_STARTS_CONTRACTION & c->kind >> 1) != 0))
			return NULL;
		if (out - start >= enough)
			break;				/* no contraction starts with the last character */
		for (int i = 0; i < c->nces; i++, element++)
		{
			if (unlikely(before != 0 || element->compressible))
				out = put_compressed(element, &before, out);
			else
			{
				memcpy(out, element->primary, sizeof(element->primary));
				out += element->len;
			}
		}
		n += c->nces;
		last = c->kind;
		all |= c->kind;
	}
	*kinds = all;
	*nces = n;
	return out;
}

/* Writes a run of n common weights; less_follows: the next weight is less, or it is the end. */
static inline unsigned char *
put_common_run(const Level *level, Size n, bool less_follows, unsigned char *out)
{
	if (n == 0)
		return out;
	for (n--; n >= level->longest_run; n -= level->longest_run)
		*out++ = level->part_of_run;
	*out++ = less_follows ? level->run_before_less + n : level->run_before_more - n;
	return out;
}

/* Writes the secondary or tertiary level, of which not all weights are common. */
static unsigned char *
put_level(GsIcuKeys *icu_keys, const char *string, Size len, const Level *level,
		  unsigned char *out)
{
	const unsigned char *at = (const unsigned char *) string;
	const unsigned char *end = at + len;
	Size		ncommon = 0;

	while (at < end)
	{
		const Character *c = next_character(icu_keys, &at, end);

		for (int i = 0; i < c->nces; i++)
		{
			const Element *element = &icu_keys->elements[c->at + i];
			uint16		weight = level == &secondary_level ? element->secondary : element->tertiary;

			if (weight == COMMON_WEIGHT)
			{
				ncommon++;
				continue;
			}
			out = put_common_run(level, ncommon, weight < COMMON_WEIGHT, out);
			ncommon = 0;
			if (weight > COMMON_WEIGHT)
				weight += level->raised;
			*out++ = weight >> 8;
			if ((weight & 0xFF) != 0)
				*out++ = weight & 0xFF;
		}
	}
	return put_common_run(level, ncommon, true, out);
}

unsigned char *
gs_icu_keys_put(GsIcuKeys *icu_keys, const char *string, Size len, int nstrengths,
				unsigned char *out)
{
	unsigned int kinds;
	Size		nces;

	out = put_primary(icu_keys, string, len, SIZE_MAX, out, &kinds, &nces);
	if (out == NULL || nstrengths == 1)
		return out;
	*out++ = LEVEL_END;
	out = (kinds & KIND_SECONDARY) == 0 ? put_common_run(&secondary_level, nces, true, out) :
		put_level(icu_keys, string, len, &secondary_level, out);
	if (nstrengths == 2)
		return out;
	*out++ = LEVEL_END;
	return (kinds & KIND_TERTIARY) == 0 ? put_common_run(&tertiary_level, nces, true, out) :
		put_level(icu_keys, string, len, &tertiary_level, out);
}

bool
gs_icu_keys_put_prefix(GsIcuKeys *icu_keys, const char *string, Size len, uint64 *code)
{
	unsigned char bytes[sizeof(uint64) + MAX_CES * (sizeof(uint32) + 1)] = {0};
	unsigned int kinds;
	Size		nces;

	if (put_primary(icu_keys, string, len, sizeof(uint64), bytes, &kinds, &nces) == NULL)
		return false;
	memcpy(code, bytes, sizeof(uint64));
	*code = pg_ntoh64(*code);
	return true;
}

/* -------------------------------------------------------------------- interface */

GsIcuKeys *
gs_icu_keys_lookup(Oid collation)
{
	static HTAB *known = NULL;
	GsIcuKeys  *icu_keys;
	bool		found;

	if (!gs_icu_tables_can_be_made() || gs_collation_is_bytewise(collation) ||
		gs_collation_provider(collation) != COLLPROVIDER_ICU)
		return NULL;
	if (known == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(GsIcuKeys)};

		known = hash_create("gpusort key elements", 8, &ctl, HASH_ELEM | HASH_BLOBS);
	}
	icu_keys = hash_search(known, &collation, HASH_ENTER, &found);
	if (!found)
	{
		memset(icu_keys, 0, sizeof(*icu_keys));
		icu_keys->collation = collation;
	}
	return icu_keys;
}

bool
gs_icu_keys_are_ready(GsIcuKeys *icu_keys)
{
	if (icu_keys->chars == NULL)
		gs_icu_tables_make(icu_keys);
	return icu_keys->usable;
}

/* Are there tables?  Makes them after TEXTS_BEFORE texts. */
static inline bool
has_tables(GsIcuKeys *icu_keys)
{
	if (likely(icu_keys->usable))
		return true;
	return icu_keys->ntexts < TEXTS_BEFORE && ++icu_keys->ntexts == TEXTS_BEFORE &&
		gs_icu_keys_are_ready(icu_keys);
}

bool
gs_icu_keys_is_unmapped(const GsIcuKeys *icu_keys, const char *string, Size len)
{
	const unsigned char *bytes = (const unsigned char *) string;

	for (Size i = 0; i < len; i++)
	{
		if (bytes[i] <= MAX_LEAD)
			continue;
		if (!IS_EAST_ASIAN_LEAD(bytes[i]) || len - i < 3)
			return true;
		if (icu_keys->chars != NULL &&
			(icu_keys->east_asian == NULL ||
			 (east_asian_character(icu_keys, bytes + i)->kind & KIND_UNKNOWN) != 0))
			return true;
		i += 2;
	}
	return false;
}

Size
gs_icu_keys_max_bytes(Size len)
{
	/* 2 bytes of text: up to 3 elements, of up to 5 primary, 3 secondary and 3 tertiary bytes */
	return 17 * Min(len, LONG_TEXT) + 32;
}

bool
gs_icu_keys_key(GsIcuKeys *icu_keys, const char *string, Size len, bool full,
				char *out, Size *out_len)
{
	unsigned char *end;

	if (len > LONG_TEXT || !has_tables(icu_keys))
		return false;
	end = gs_icu_keys_put(icu_keys, string, len, full ? icu_keys->nstrengths : 1,
						  (unsigned char *) out);
	if (end == NULL)
		return false;
	*out_len = end - (unsigned char *) out;
	return true;
}

Size
gs_icu_keys_primary(const char *key, Size len)
{
	const char *end = memchr(key, LEVEL_END, len);

	return end != NULL ? end - key : len;
}

bool
gs_icu_keys_prefix(GsIcuKeys *icu_keys, const char *string, Size len, uint64 *code)
{
	return has_tables(icu_keys) && gs_icu_keys_put_prefix(icu_keys, string, len, code);
}

uint64
gs_icu_keys_prefix_of_datum(uint64 key)
{
	for (int shift = 56; shift >= 0; shift -= 8)
	{
		if ((key >> shift & 0xFF) <= LEVEL_END)
			return shift == 56 ? 0 : key >> (shift + 8) << (shift + 8);
	}
	return key;
}
