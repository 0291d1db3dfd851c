/*-------------------------------------------------------------------------
 *
 * collation_icu.c
 *	  Sort keys as ICU makes them, from tables of the collation elements of characters;
 *	  key_collation.c calls ICU itself.
 *
 * A collation maps each character to a few collation elements (CEs) of three
 * weights: primary (which letter), secondary (which accent) and tertiary (which
 * case).  A sort key is the weights of all elements, level by level, separated by
 * bytes of 1.  In en:
 *
 *	  "ab"		2a 2c			01 06			01 06
 *	  "aB"		2a 2c			01 06			01 c5 dc
 *	  "ä"		2a				01 45 96		01 06			a letter, an accent
 *	  "жд"		61 2c 1a		01 06			01 06			61 2c, 61 1a
 *
 * Most secondary and tertiary weights are the *common* one.  A run of it is written as
 * one byte, which says how long the run is, up to 33 or 97, and whether the next weight
 * is less.  Primary weights have up to 4 bytes.  If the first byte is that of a large
 * script, it is not repeated, and a byte of 3 or ff ends such a sequence (Unicode
 * Technical Standard 10; ICU's design of collation v2, "Sort keys").
 *
 * So the key of characters whose elements are known can be built in less than a tenth
 * of the time of ucol_getSortKey(), which has to handle much that rarely occurs:
 * contractions, which are characters that have other elements together (Czech "ch"),
 * numbers, and accents that have to be reordered.  The keys are ICU's to the byte, so
 * keys that ICU makes of texts with other characters compare with them.
 *
 * That they are ICU's is ensured as follows.  The elements of each character come from
 * the collator, and so does the list of contractions.  A text in which a contraction
 * may start is left to ICU, and so is one with a combining mark or a character that is
 * not in the tables.  Other properties of the collator (options, another format of keys
 * in another version) are found by tests: each character alone, twice and between
 * others, all pairs of ASCII characters, and runs of the common weight of all lengths.
 * A character whose keys are not as expected is removed from the tables.  If runs are
 * not as expected, there are no tables: so it is in Danish, which sorts capitals first.
 *
 * Making the tables takes as long as tens of thousands of keys (7 to 10 ms), so a
 * session starts with ICU, and makes the tables after 131,072 texts.  East Asian
 * characters are too many for that: each is added, and tested, when a text has it for the
 * first time, which takes as long as three keys (1.3 us; Zen 5, ICU 72, 2026-11).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "collation/collation_icu.h"
#include "pg_compat.h"

#include "catalog/pg_collation.h"
#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#ifdef USE_ICU
#include <unicode/ucol.h>
#include <unicode/ucoleitr.h>
#include <unicode/uiter.h>
#include <unicode/uset.h>

/* weak: those of the server, if it has the same version of ICU (key_collation.c) */
extern __typeof__(ucol_getSortKey) ucol_getSortKey __attribute__((weak));
extern __typeof__(ucol_nextSortKeyPart) ucol_nextSortKeyPart __attribute__((weak));
extern __typeof__(ucol_getStrength) ucol_getStrength __attribute__((weak));
extern __typeof__(ucol_getContractionsAndExpansions) ucol_getContractionsAndExpansions __attribute__((weak));
extern __typeof__(ucol_openElements) ucol_openElements __attribute__((weak));
extern __typeof__(ucol_setText) ucol_setText __attribute__((weak));
extern __typeof__(ucol_next) ucol_next __attribute__((weak));
extern __typeof__(ucol_closeElements) ucol_closeElements __attribute__((weak));
extern __typeof__(uiter_setUTF8) uiter_setUTF8 __attribute__((weak));
extern __typeof__(uset_openEmpty) uset_openEmpty __attribute__((weak));
extern __typeof__(uset_getItemCount) uset_getItemCount __attribute__((weak));
extern __typeof__(uset_getItem) uset_getItem __attribute__((weak));
extern __typeof__(uset_close) uset_close __attribute__((weak));
#endif

/* Characters in the tables from the beginning: up to U+06FF, one or two bytes of UTF-8. */
#define NCHARS			0x700
#define MIN_LEAD		0xC2
#define MAX_LEAD		0xDB

/*
 * Characters of three bytes of UTF-8 with these first bytes: punctuation, kana and Han up
 * to U+9FFF, and Hangul, are added when they occur.
 */
#define FIRST_EAST_ASIAN	0x3000
#define LAST_EAST_ASIAN		0xDFFF
#define LAST_HAN			0x9FFF
#define IS_HANGUL(c)		((c) >= 0xAC00 && (c) <= 0xD7A3)
#define IS_EAST_ASIAN(c)	((c) >= FIRST_EAST_ASIAN && (c) <= LAST_EAST_ASIAN)
#define IS_EAST_ASIAN_LEAD(byte)	((byte) >= 0xE3 && (byte) <= 0xED)

/* The letters of which Hangul syllables consist. */
#define FIRST_JAMO		0x1100
#define LAST_JAMO		0x11C2

#define FIRST_PRINTABLE	' '
#define LAST_PRINTABLE	'~'

/* Elements of a character: u, diaeresis, macron. */
#define MAX_CES			3

/* How many texts are left to ICU at first, and texts of how many bytes always are. */
#define TEXTS_BEFORE	131072
#define LONG_TEXT		65536

/* Bytes of the primary level that are in no weight. */
#define LEVEL_END		1
#define LESS_FOLLOWS	3
#define MORE_FOLLOWS	0xFF

/* Secondary and tertiary weights: a byte, and another one if that is not 0. */
#define COMMON_WEIGHT	0x0500

typedef struct Element
{
	uint32		original;		/* primary weight, as the collator returns it */
	unsigned char primary[4];	/* as it is in keys */
	unsigned char len;
	bool		compressible;	/* its first byte is not repeated */
	uint16		secondary;
	uint16		tertiary;
} Element;

/* A character: its elements, from elements[at] on, and KIND_ bits. */
typedef struct Character
{
	uint16		at;
	unsigned char nces;
	unsigned char kind;
} Character;

#define KIND_STARTS_CONTRACTION		1	/* if a character of the next kind
										 * follows */
#define KIND_CONTINUES_CONTRACTION	2
#define KIND_UNKNOWN				4
#define KIND_SECONDARY				8	/* has a weight that is not the common
										 * one */
#define KIND_TERTIARY				16

/* Combining marks, which ICU may reorder or combine with other characters. */
#define IS_MARK(c) \
	(((c) >= 0x300 && (c) <= 0x36F) || ((c) >= 0x483 && (c) <= 0x489) || \
	 ((c) >= 0x302A && (c) <= 0x302F) || (c) == 0x3099 || (c) == 0x309A)

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

struct GsIcuKeys
{
	Oid			collation;		/* hash key */
	bool		usable;
	int			ntexts;			/* left to ICU before the tables are made */
	int			nstrengths;
	Character  *chars;			/* NCHARS; the first is unknown.  NULL: no
								 * tables */
	Character  *east_asian;		/* from FIRST_EAST_ASIAN on; without elements
								 * if it has not occurred.  NULL: all are
								 * unknown */
	Element    *elements;
	int			nces;
	int			ces_allocated;
	bool		has_jamo;		/* elements[] has those of the letters of
								 * Hangul */
	unsigned char plain[256];	/* of an ASCII character: its only primary
								 * byte, if nothing else is special about it;
								 * else 0 */
};

/* --------------------------------------------------------------- building keys */

static void learn_character(GsIcuKeys *icu_keys, Character *character);

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
		learn_character(icu_keys, character);
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
	unsigned char before = 0;	/* the first byte that is not repeated; 0:
								 * none */
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
			break;				/* no contraction starts with the last
								 * character */
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

/* Writes a key of nstrengths levels.  Returns its end, or NULL if it has to be left to ICU. */
static unsigned char *
put_key(GsIcuKeys *icu_keys, const char *string, Size len, int nstrengths,
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

/* The first 8 bytes of the primary level.  Returns false if the text has to be left to ICU. */
static bool
put_prefix(GsIcuKeys *icu_keys, const char *string, Size len, uint64 *code)
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

/* --------------------------------------------- tables, made once in a session */

#ifdef USE_ICU

/* Does the server have the version of ICU that this was built for? */
static bool
has_icu(void)
{
	return ucol_getSortKey != NULL && ucol_nextSortKeyPart != NULL && ucol_getStrength != NULL &&
		ucol_getContractionsAndExpansions != NULL && ucol_openElements != NULL &&
		ucol_setText != NULL && ucol_next != NULL && ucol_closeElements != NULL &&
		uiter_setUTF8 != NULL && uset_openEmpty != NULL && uset_getItemCount != NULL &&
		uset_getItem != NULL && uset_close != NULL;
}

/* What characters are tested with. */
typedef struct Probe
{
	UCollator  *collator;
	UCollationElements *iterator;
	UErrorCode	status;
	uint8_t		key[1024];
	int32_t		key_len;
} Probe;

static void
make_key(Probe *probe, const UChar *string, int32_t len)
{
	probe->key_len = ucol_getSortKey(probe->collator, string, len, probe->key,
									 sizeof(probe->key)) - 1;
}

/* The length of the primary level of the key. */
static int
primary_len(const Probe *probe)
{
	return gs_icu_keys_primary((const char *) probe->key, probe->key_len);
}

/* Converts characters of the tables to UTF-8; returns the number of bytes. */
static Size
to_utf8(const UChar *string, int32_t len, char *out)
{
	char	   *start = out;

	for (int i = 0; i < len; i++)
	{
		if (string[i] >= 0x800)
		{
			*out++ = 0xE0 | string[i] >> 12;
			*out++ = 0x80 | (string[i] >> 6 & 0x3F);
			*out++ = 0x80 | (string[i] & 0x3F);
		}
		else if (string[i] >= 0x80)
		{
			*out++ = 0xC0 | string[i] >> 6;
			*out++ = 0x80 | (string[i] & 0x3F);
		}
		else
			*out++ = string[i];
	}
	return out - start;
}

/* Is the key of a text ICU's?  True if the text has to be left to ICU. */
static bool
key_matches(GsIcuKeys *icu_keys, Probe *probe, const UChar *string, int32_t len)
{
	char		utf8[512];
	unsigned char key[512 * 17 + 32];
	Size		nbytes = to_utf8(string, len, utf8);
	unsigned char *end = put_key(icu_keys, utf8, nbytes, icu_keys->nstrengths, key);

	if (end == NULL)
		return true;
	make_key(probe, string, len);
	return end - key == probe->key_len && memcmp(key, probe->key, probe->key_len) == 0;
}

/*
 * Are the first 8 bytes of the primary level of a text ICU's, as PostgreSQL gets them
 * (varstr_abbrev_convert())?  True if the text has to be left to ICU.
 */
static bool
prefix_matches(GsIcuKeys *icu_keys, Probe *probe, const UChar *string, int32_t len)
{
	char		utf8[32];
	Size		nbytes = to_utf8(string, len, utf8);
	uint64		code;
	uint64		part = 0;
	uint32_t	state[2] = {0, 0};
	UCharIterator iterator;

	if (!put_prefix(icu_keys, utf8, nbytes, &code))
		return true;
	uiter_setUTF8(&iterator, utf8, nbytes);
	(void) ucol_nextSortKeyPart(probe->collator, &iterator, state, (uint8_t *) &part,
								sizeof(part), &probe->status);
	return gs_icu_keys_prefix_of_datum(pg_ntoh64(part)) == code;
}

/* The character of the tables; NULL if they cannot have it. */
static Character *
character_of(const GsIcuKeys *icu_keys, UChar c)
{
	if (c < NCHARS)
		return &icu_keys->chars[c];
	return IS_EAST_ASIAN(c) && icu_keys->east_asian != NULL ?
		&icu_keys->east_asian[c - FIRST_EAST_ASIAN] : NULL;
}

/*
 * Records that two characters may start a contraction.  An East Asian one that continues
 * one, as the sign for a long vowel does, is left to ICU.
 */
static void
mark_contraction(GsIcuKeys *icu_keys, UChar first, UChar second)
{
	Character  *starts = character_of(icu_keys, first);
	Character  *continues = character_of(icu_keys, second);

	if (starts == NULL || continues == NULL)
		return;					/* one of them is left to ICU in any case */
	if (IS_EAST_ASIAN(second))
		continues->kind |= KIND_UNKNOWN;
	else if (IS_EAST_ASIAN(first))
		starts->kind |= KIND_UNKNOWN;
	else
	{
		starts->kind |= KIND_STARTS_CONTRACTION;
		continues->kind |= KIND_CONTINUES_CONTRACTION;
	}
}

/* Records all contractions of the collator. */
static void
mark_contractions(GsIcuKeys *icu_keys, Probe *probe)
{
	USet	   *set = uset_openEmpty();
	int32_t		nitems;

	ucol_getContractionsAndExpansions(probe->collator, set, NULL, true, &probe->status);
	nitems = uset_getItemCount(set);
	for (int32_t i = 0; i < nitems && U_SUCCESS(probe->status); i++)
	{
		UChar32		from;
		UChar32		to;
		UChar		string[64];
		int32_t		len = uset_getItem(set, i, &from, &to, string, lengthof(string),
									   &probe->status);

		if (len >= 2)
			mark_contraction(icu_keys, string[0], string[1]);
	}
	uset_close(set);
}

/* Reads the next element, one or two of the iterator's.  Returns false at the end. */
static bool
read_element(Probe *probe, int32_t *ahead, Element *element)
{
	uint32		half;

	if (*ahead == UCOL_NULLORDER)
		return false;
	half = (uint32) *ahead;
	*element = (Element)
	{
		.original = half & 0xFFFF0000,.secondary = half & 0xFF00,.tertiary = (half & 0x3F) << 8
	};
	*ahead = ucol_next(probe->iterator, &probe->status);
	if (*ahead != UCOL_NULLORDER && (*ahead & 0xC0) == 0xC0)
	{
		half = (uint32) *ahead;
		element->original |= half >> 16;
		element->secondary |= half >> 8 & 0xFF;
		element->tertiary |= half & 0x3F;
		*ahead = ucol_next(probe->iterator, &probe->status);
	}
	return true;
}

/* The elements of a character.  Returns how many, or -1 if a table cannot have them. */
static int
collation_elements_of(Probe *probe, UChar c, Element *found)
{
	const int	max = c < 0x80 ? 1 : MAX_CES;
	Element		element;
	int32_t		ahead;
	int			n = 0;

	ucol_setText(probe->iterator, &c, 1, &probe->status);
	ahead = ucol_next(probe->iterator, &probe->status);
	while (read_element(probe, &ahead, &element))
	{
		if (element.original == 0 && element.secondary == 0 && element.tertiary == 0)
			continue;
		if (n == max || element.secondary == 0 || element.tertiary == 0)
			return -1;
		found[n++] = element;
	}
	return n;
}

/* Reads a primary weight, as it is in keys, from the key of a character that has only this one. */
static bool
read_primary_weight(Probe *probe, UChar c, Element *element)
{
	const UChar twice[2] = {c, c};
	int			len_of_two;

	for (uint32 rest = element->original; rest != 0; rest <<= 8)
		element->len++;
	make_key(probe, twice, 2);
	len_of_two = primary_len(probe);
	make_key(probe, twice, 1);
	memcpy(element->primary, probe->key, element->len);
	element->compressible = len_of_two == 2 * element->len - 1;
	return primary_len(probe) == element->len;
}

/* Copies a primary weight that another character has too. */
static bool
copy_primary_weight(const GsIcuKeys *icu_keys, Element *element)
{
	for (int i = 0; i < icu_keys->nces; i++)
	{
		const Element *other = &icu_keys->elements[i];

		if (other->original != element->original)
			continue;
		memcpy(element->primary, other->primary, sizeof(element->primary));
		element->len = other->len;
		element->compressible = other->compressible;
		return true;
	}
	return false;
}

/*
 * Adds a character that has one primary weight, or several that are known already.
 * ASCII characters without any are added too, because none of them is an accent.
 */
static void
add_character(GsIcuKeys *icu_keys, Probe *probe, UChar c)
{
	Character  *character = character_of(icu_keys, c);
	Element    *found = &icu_keys->elements[icu_keys->nces];
	int			n = collation_elements_of(probe, c, found);
	int			nprimary = 0;
	int			last = 0;

	make_key(probe, &c, 1);
	if (primary_len(probe) == 0)
		n = c < 0x80 && n >= 0 ? 0 : -1;	/* it has none, or an option
											 * ignores it */
	for (int i = 0; i < n; i++)
	{
		if (found[i].original != 0)
		{
			nprimary++;
			last = i;
		}
		if (found[i].secondary != COMMON_WEIGHT)
			character->kind |= KIND_SECONDARY;
		if (found[i].tertiary != COMMON_WEIGHT)
			character->kind |= KIND_TERTIARY;
	}
	if (n < 0 || (n > 0 && found[0].original == 0) ||
		(nprimary == 1 && !read_primary_weight(probe, c, &found[last])))
		return;
	for (int i = 0; i < n && nprimary > 1; i++)
	{
		if (found[i].original != 0 && !copy_primary_weight(icu_keys, &found[i]))
			return;
	}
	character->at = icu_keys->nces;
	character->nces = n;
	character->kind &= ~KIND_UNKNOWN;
	icu_keys->nces += n;
}

/* Are keys with this character ICU's: alone, twice, and between others? */
static bool
character_matches(GsIcuKeys *icu_keys, Probe *probe, UChar c)
{
	const UChar strings[] = {c, c, 'a', c, 'B', c, c, c, c, c};

	return key_matches(icu_keys, probe, strings, 1) && key_matches(icu_keys, probe, strings, 2) &&
		key_matches(icu_keys, probe, strings, 5) && key_matches(icu_keys, probe, strings + 2, 2) &&
		prefix_matches(icu_keys, probe, strings, 3) &&
		prefix_matches(icu_keys, probe, strings, lengthof(strings));
}

/* There is space for another character. */
static void
reserve_elements(GsIcuKeys *icu_keys)
{
	if (icu_keys->nces + MAX_CES <= icu_keys->ces_allocated)
		return;
	icu_keys->elements = repalloc(icu_keys->elements,
								  sizeof(Element) * 2 * icu_keys->ces_allocated);
	icu_keys->ces_allocated *= 2;
}

/*
 * Adds the elements of the letters of Hangul, which are those of its syllables; texts with
 * the letters themselves are left to ICU.
 */
static void
add_jamo(GsIcuKeys *icu_keys, Probe *probe)
{
	icu_keys->has_jamo = true;
	for (UChar c = FIRST_JAMO; c <= LAST_JAMO; c++)
	{
		Element    *found;

		reserve_elements(icu_keys);
		found = &icu_keys->elements[icu_keys->nces];
		if (collation_elements_of(probe, c, found) == 1 && read_primary_weight(probe, c, found))
			icu_keys->nces++;
	}
}

/*
 * Adds an East Asian character that occurs for the first time, or leaves it to ICU from
 * now on.
 */
static void
learn_character(GsIcuKeys *icu_keys, Character *character)
{
	const UChar c = FIRST_EAST_ASIAN + (character - icu_keys->east_asian);
	Probe		probe = {.collator = gs_collation_collator(icu_keys->collation)};

	character->kind = KIND_UNKNOWN;
	if ((c > LAST_HAN && !IS_HANGUL(c)) || IS_MARK(c) ||
		icu_keys->nces + MAX_CES > PG_UINT16_MAX)
		return;
	probe.status = U_ZERO_ERROR;
	probe.iterator = ucol_openElements(probe.collator, NULL, 0, &probe.status);
	if (U_FAILURE(probe.status))
		return;
	if (IS_HANGUL(c) && !icu_keys->has_jamo)
		add_jamo(icu_keys, &probe);
	reserve_elements(icu_keys);
	add_character(icu_keys, &probe, c);
	ucol_closeElements(probe.iterator);
	if (!character_matches(icu_keys, &probe, c) || U_FAILURE(probe.status))
		character->kind |= KIND_UNKNOWN;
}

static void
test_pairs(GsIcuKeys *icu_keys, Probe *probe)
{
	for (UChar i = FIRST_PRINTABLE; i <= LAST_PRINTABLE; i++)
	{
		for (UChar j = FIRST_PRINTABLE; j <= LAST_PRINTABLE; j++)
		{
			const UChar pair[2] = {i, j};

			if (!key_matches(icu_keys, probe, pair, 2))
				mark_contraction(icu_keys, i, j);
		}
	}
}

/* The first character of a kind; 0 if there is none. */
static UChar
any_character(const GsIcuKeys *icu_keys, unsigned char kind)
{
	for (UChar c = 1; c < NCHARS; c++)
	{
		if ((icu_keys->chars[c].kind & (KIND_UNKNOWN | kind)) == kind)
			return c;
	}
	return 0;
}

/* Are runs of the common weight as expected, of any length, at the end and before `last`? */
static bool
common_runs_match(GsIcuKeys *icu_keys, Probe *probe, UChar last)
{
	UChar		string[210];

	for (int n = 0; n < lengthof(string); n++)
	{
		string[n] = last;
		if (!key_matches(icu_keys, probe, string, n) ||
			!key_matches(icu_keys, probe, string, n + 1))
			return false;
		string[n] = 'a';
	}
	return true;
}

/* ASCII characters of one element with a primary weight of one byte and common others. */
static void
find_plain(GsIcuKeys *icu_keys)
{
	for (int c = 0; c < 0x80; c++)
	{
		const Character *character = &icu_keys->chars[c];
		const Element *element = &icu_keys->elements[character->at];

		if (character->kind == 0 && character->nces == 1 && element->len == 1 &&
			!element->compressible)
			icu_keys->plain[c] = element->primary[0];
	}
}

static bool
fill_tables(GsIcuKeys *icu_keys, Probe *probe)
{
	const UChar nchars = GetDatabaseEncoding() == PG_UTF8 ? NCHARS : 0x80;
	const UColAttributeValue strength = ucol_getStrength(probe->collator);

	if (strength > UCOL_TERTIARY)
		return false;
	icu_keys->nstrengths = strength - UCOL_PRIMARY + 1;
	for (int c = 0; c < NCHARS; c++)
		icu_keys->chars[c].kind = KIND_UNKNOWN;
	mark_contractions(icu_keys, probe);
	for (int pass = 1; pass <= 2; pass++)	/* characters with several weights
											 * need those of others */
	{
		for (UChar c = 1; c < nchars; c++)
		{
			if ((icu_keys->chars[c].kind & KIND_UNKNOWN) != 0 && !IS_MARK(c))
				add_character(icu_keys, probe, c);
		}
	}
	for (UChar c = 1; c < nchars; c++)
	{
		if (!character_matches(icu_keys, probe, c))
			icu_keys->chars[c].kind |= KIND_UNKNOWN;
	}
	test_pairs(icu_keys, probe);
	find_plain(icu_keys);
	return (icu_keys->chars['a'].kind & KIND_UNKNOWN) == 0 &&
		common_runs_match(icu_keys, probe, any_character(icu_keys, KIND_SECONDARY)) &&
		common_runs_match(icu_keys, probe, any_character(icu_keys, KIND_TERTIARY)) &&
		U_SUCCESS(probe->status);
}

static void
make_tables(GsIcuKeys *icu_keys)
{
	Probe		probe = {.collator = gs_collation_collator(icu_keys->collation)};

	probe.status = U_ZERO_ERROR;
	icu_keys->chars = MemoryContextAllocZero(TopMemoryContext, sizeof(Character) * NCHARS);
	if (GetDatabaseEncoding() == PG_UTF8)
		icu_keys->east_asian =
			MemoryContextAllocZero(TopMemoryContext, sizeof(Character) *
								   (LAST_EAST_ASIAN - FIRST_EAST_ASIAN + 1));
	icu_keys->ces_allocated = MAX_CES * (NCHARS + 1);
	icu_keys->elements = MemoryContextAllocZero(TopMemoryContext,
												sizeof(Element) * icu_keys->ces_allocated);
	probe.iterator = ucol_openElements(probe.collator, NULL, 0, &probe.status);
	icu_keys->usable = U_SUCCESS(probe.status) && fill_tables(icu_keys, &probe);
	if (probe.iterator != NULL)
		ucol_closeElements(probe.iterator);
}
#else
static void
learn_character(GsIcuKeys *icu_keys, Character *character)
{
	/* there are no tables */
}
#endif

GsIcuKeys *
gs_icu_keys_lookup(Oid collation)
{
#ifdef USE_ICU
	static HTAB *known = NULL;
	GsIcuKeys  *icu_keys;
	bool		found;

	if (!has_icu() || gs_collation_is_bytewise(collation) ||
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
#else
	return NULL;
#endif
}

bool
gs_icu_keys_are_ready(GsIcuKeys *icu_keys)
{
#ifdef USE_ICU
	if (icu_keys->chars == NULL)
		make_tables(icu_keys);
#endif
	return icu_keys->usable;
}

/* -------------------------------------------------------------------- interface */

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
	/*
	 * 2 bytes of text have up to 3 elements, of up to 5 primary, 3 secondary and 3
	 * tertiary bytes
	 */
	return 17 * Min(len, LONG_TEXT) + 32;
}

bool
gs_icu_keys_key(GsIcuKeys *icu_keys, const char *string, Size len, bool full,
				char *out, Size *out_len)
{
	unsigned char *end;

	if (len > LONG_TEXT || !has_tables(icu_keys))
		return false;
	end = put_key(icu_keys, string, len, full ? icu_keys->nstrengths : 1, (unsigned char *) out);
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
	return has_tables(icu_keys) && put_prefix(icu_keys, string, len, code);
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
