/*-------------------------------------------------------------------------
 *
 * collation_icu.c
 *	  ICU's sort keys, put together from the collation elements of characters.
 *
 * A collation maps each character to a few elements of three weights: which letter,
 * which accent, which case.  A sort key is the weights of all elements, level by level,
 * the levels parted by bytes of 1.  In en:
 *
 *	  "ab"		2a 2c			01 06			01 06
 *	  "aB"		2a 2c			01 06			01 c5 dc
 *	  "ä"		2a				01 45 96		01 06			a letter, an accent
 *	  "жд"		61 2c 1a		01 06			01 06			61 2c, 61 1a
 *
 * Most weights of the second and the third level are the common one, of which a
 * run is written as a byte that says how long it is, up to 33 or 97, and whether what
 * follows is less.  Weights of the first level have up to 4 bytes; where the first one is
 * that of a large script, it is not repeated, and a byte of 3 or ff ends such a
 * sequence (Unicode Technical Standard 10; ICU's design of collation v2, "Sort keys").
 *
 * So a key of characters whose elements are known is put together from them in less than a tenth of
 * the time that ucol_getSortKey() takes, which looks for much that is not there: characters
 * that have other elements together (Czech "ch"), numbers, accents to be put
 * in order.  The keys are ICU's to the byte, so texts of other characters
 * have theirs made by ICU, and both can be compared.
 *
 * That they are the same is no guess.  The elements of a character come from the
 * collator, and so does the list of all sequences that have elements of their own: a text in
 * which one may begin is left to ICU, as is one with a combining mark, or with any character
 * that is not in the tables.  What the collator does beside (options, another format of
 * keys in another version) is found out by trying: each character alone, with itself and between others,
 * all pairs of ASCII's, and runs of all lengths.  A character that is not as expected is
 * not in the tables then, and if runs are not, none is: so it is with Danish, which has capitals first.
 *
 * The tables take as long to make as tens of thousands of keys (7 to 10 ms), so a session begins with
 * ICU, and makes them once there were that many.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/collation_icu.h"
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

/* the server's, if they are of the same version (key_collation.c) */
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

/* Characters in the tables: as far as U+053F, a byte or two of UTF-8. */
#define NCHARS			0x540
#define LEAST_LEAD		0xC2
#define MOST_LEAD		0xD4

#define FIRST_PRINTABLE	' '
#define LAST_PRINTABLE	'~'

/* Elements that a character may have: u, diaeresis, macron. */
#define MAX_CES	3

/* Texts that ICU makes keys of before we do, and those that it always does: for want of room. */
#define TEXTS_BEFORE	131072
#define LONG_TEXT		65536

/* Bytes of a key that are in no weight of the first level. */
#define LEVEL_END		1
#define LESS_FOLLOWS	3
#define MORE_FOLLOWS	0xFF

/* Weights of the other levels: a byte, and another one if it is not 0. */
#define COMMON_WEIGHT	0x0500

typedef struct Element
{
	uint32		original;		/* weight of the first level, as the collator has it */
	unsigned char first[4];		/* as it is in keys */
	unsigned char len;
	bool		compressible;	/* the first byte of it need not be repeated */
	uint16		second;
	uint16		third;
} Element;

/* A character: its elements, and KIND_ bits. */
typedef struct Character
{
	uint16		at;
	unsigned char nces;
	unsigned char kind;
} Character;

#define KIND_STARTS		1		/* a sequence, which one that goes on would go on with */
#define KIND_GOES_ON	2
#define KIND_UNKNOWN	4
#define KIND_SECOND		8		/* has a weight that is not the common one */
#define KIND_THIRD		16

/* Combining marks: what they are part of, and in which order, is ICU's to say. */
#define IS_MARK(c)		(((c) >= 0x300 && (c) <= 0x36F) || ((c) >= 0x483 && (c) <= 0x489))

/* How a level is written. */
typedef struct Level
{
	unsigned char sequence_before_less;	/* a run of 1; of more: more */
	unsigned char sequence_before_more;	/* a run of 1; of more: less */
	unsigned char longest_sequence;
	unsigned char part_of_sequence;	/* which is as long as that */
	uint16		raised;			/* what is added to weights above the common one */
} Level;

static const Level secondary_level = {0x05, 0x45, 0x21, 0x25, 0};
static const Level tertiary_level = {0x05, 0xC5, 0x61, 0x65, 0xC000};

struct GsIcuKeys
{
	Oid			collation;		/* hash key */
	bool		usable;
	int			ntexts;			/* that were left to ICU before there were tables */
	int			nstrengths;
	Character  *chars;			/* NCHARS; the first is unknown */
	Element    *icu_keys;
	int			nces;
	unsigned char plain[256];	/* by a byte of text: all that is to be known of it, or 0 */
};

/* ------------------------------------------------------------------ making keys */

static inline const Character *
next_character(const GsIcuKeys *icu_keys, const unsigned char **at,
			   const unsigned char *end)
{
	unsigned int c = *(*at)++;

	if (c >= 0x80)
	{
		if (c - LEAST_LEAD > MOST_LEAD - LEAST_LEAD || *at == end || (**at & 0xC0) != 0x80)
			return &icu_keys->chars[0];	/* no character of a text, so unknown */
		c = (c & 0x1F) << 6 | (*(*at)++ & 0x3F);
	}
	return &icu_keys->chars[c];
}

/* A weight of the first level where first bytes may be left out. */
static unsigned char *
put_compressed(const Element *element, unsigned char *before, unsigned char *out)
{
	const unsigned char lead = element->first[0];

	if (element->len == 0)
		return out;
	if (element->compressible && lead == *before)
	{
		memcpy(out, element->first + 1, element->len - 1);
		return out + element->len - 1;
	}
	if (*before != 0)
		*out++ = lead < *before ? LESS_FOLLOWS : MORE_FOLLOWS;
	*before = element->compressible ? lead : 0;
	memcpy(out, element->first, element->len);
	return out + element->len;
}

/*
 * The first level, or so much of it that there are `enough` bytes.  Returns NULL if it is for
 * ICU to make; *kinds and *nelements become those of all characters.
 */
static pg_attribute_always_inline unsigned char *
put_primary(const GsIcuKeys *icu_keys, const char *string, Size len, Size enough,
				unsigned char *out, unsigned int *kinds, Size *nces)
{
	const unsigned char *at = (const unsigned char *) string;
	const unsigned char *end = at + len;
	const unsigned char *start = out;
	unsigned char before = 0;	/* the first byte that may be left out now */
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
		element = &icu_keys->icu_keys[c->at];
		if (unlikely((c->kind & KIND_UNKNOWN) != 0 || (last & KIND_STARTS & c->kind >> 1) != 0))
			return NULL;
		if (out - start >= enough)
			break;				/* having looked at the one behind */
		for (int i = 0; i < c->nces; i++, element++)
		{
			if (unlikely(before != 0 || element->compressible))
				out = put_compressed(element, &before, out);
			else
			{
				memcpy(out, element->first, sizeof(element->first));
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

/* A run of the common weight, before a weight that is less, or the end, or one that is more. */
static inline unsigned char *
put_sequence(const Level *ce_level, Size n, bool less_follows, unsigned char *out)
{
	if (n == 0)
		return out;
	for (n--; n >= ce_level->longest_sequence; n -= ce_level->longest_sequence)
		*out++ = ce_level->part_of_sequence;
	*out++ = less_follows ? ce_level->sequence_before_less + n : ce_level->sequence_before_more - n;
	return out;
}

/* The second or the third level, of which not all weights are the common one. */
static unsigned char *
put_level(const GsIcuKeys *icu_keys, const char *string, Size len, const Level *ce_level,
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
			const Element *element = &icu_keys->icu_keys[c->at + i];
			uint16		weight = ce_level == &secondary_level ? element->second : element->third;

			if (weight == COMMON_WEIGHT)
			{
				ncommon++;
				continue;
			}
			out = put_sequence(ce_level, ncommon, weight < COMMON_WEIGHT, out);
			ncommon = 0;
			if (weight > COMMON_WEIGHT)
				weight += ce_level->raised;
			*out++ = weight >> 8;
			if ((weight & 0xFF) != 0)
				*out++ = weight & 0xFF;
		}
	}
	return put_sequence(ce_level, ncommon, true, out);
}

static unsigned char *
put_key(const GsIcuKeys *icu_keys, const char *string, Size len, int nstrengths,
		unsigned char *out)
{
	unsigned int kinds;
	Size		nces;

	out = put_primary(icu_keys, string, len, SIZE_MAX, out, &kinds, &nces);
	if (out == NULL || nstrengths == 1)
		return out;
	*out++ = LEVEL_END;
	out = (kinds & KIND_SECOND) == 0 ? put_sequence(&secondary_level, nces, true, out) :
		put_level(icu_keys, string, len, &secondary_level, out);
	if (nstrengths == 2)
		return out;
	*out++ = LEVEL_END;
	return (kinds & KIND_THIRD) == 0 ? put_sequence(&tertiary_level, nces, true, out) :
		put_level(icu_keys, string, len, &tertiary_level, out);
}

static bool
put_prefix(const GsIcuKeys *icu_keys, const char *string, Size len, uint64 *code)
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

/* ------------------------------------------------------- made once in a session */

#ifdef USE_ICU

/* Are ICU's functions those that this was built for? */
static bool
has_icu(void)
{
	return ucol_getSortKey != NULL && ucol_nextSortKeyPart != NULL && ucol_getStrength != NULL &&
		ucol_getContractionsAndExpansions != NULL && ucol_openElements != NULL &&
		ucol_setText != NULL && ucol_next != NULL && ucol_closeElements != NULL &&
		uiter_setUTF8 != NULL && uset_openEmpty != NULL && uset_getItemCount != NULL &&
		uset_getItem != NULL && uset_close != NULL;
}

/* What characters are tried with. */
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

/* How long the first level of the key is. */
static int
primary_len(const Probe *probe)
{
	return gs_icu_keys_primary((const char *) probe->key, probe->key_len);
}

/* Characters of the tables as UTF-8; returns how many bytes. */
static Size
to_utf8(const UChar *string, int32_t len, char *out)
{
	char	   *start = out;

	for (int i = 0; i < len; i++)
	{
		if (string[i] >= 0x80)
		{
			*out++ = 0xC0 | string[i] >> 6;
			*out++ = 0x80 | (string[i] & 0x3F);
		}
		else
			*out++ = string[i];
	}
	return out - start;
}

/* Is a key that we make what ICU makes?  One that we do not make is. */
static bool
key_matches(const GsIcuKeys *icu_keys, Probe *probe, const UChar *string, int32_t len)
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

/* The same of its first bytes, as PostgreSQL asks for them (varstr_abbrev_convert()). */
static bool
prefix_matches(const GsIcuKeys *icu_keys, Probe *probe, const UChar *string, int32_t len)
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

/* Two characters may have other elements together. */
static void
link_characters(GsIcuKeys *icu_keys, UChar first, UChar second)
{
	if (first < NCHARS && second < NCHARS)
	{
		icu_keys->chars[first].kind |= KIND_STARTS;
		icu_keys->chars[second].kind |= KIND_GOES_ON;
	}
}

/* Those that do, by the collator's list of sequences. */
static void
link_sequences(GsIcuKeys *icu_keys, Probe *probe)
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
			link_characters(icu_keys, string[0], string[1]);
	}
	uset_close(set);
}

/* Takes the next element; false if there is none.  An element can be two of the iterator's. */
static bool
next_element(Probe *probe, int32_t *ahead, Element *element)
{
	uint32		half;

	if (*ahead == UCOL_NULLORDER)
		return false;
	half = (uint32) *ahead;
	*element = (Element) {.original = half & 0xFFFF0000, .second = half & 0xFF00, .third = (half & 0x3F) << 8};
	*ahead = ucol_next(probe->iterator, &probe->status);
	if (*ahead != UCOL_NULLORDER && (*ahead & 0xC0) == 0xC0)
	{
		half = (uint32) *ahead;
		element->original |= half >> 16;
		element->second |= half >> 8 & 0xFF;
		element->third |= half & 0x3F;
		*ahead = ucol_next(probe->iterator, &probe->status);
	}
	return true;
}

/* The elements of a character: how many, or -1 if too many or not to be had by a table. */
static int
collation_elements_of(Probe *probe, UChar c, Element *found)
{
	const int	most = c < 0x80 ? 1 : MAX_CES;
	Element		element;
	int32_t		ahead;
	int			n = 0;

	ucol_setText(probe->iterator, &c, 1, &probe->status);
	ahead = ucol_next(probe->iterator, &probe->status);
	while (next_element(probe, &ahead, &element))
	{
		if (element.original == 0 && element.second == 0 && element.third == 0)
			continue;
		if (n == most || element.second == 0 || element.third == 0)
			return -1;
		found[n++] = element;
	}
	return n;
}

/* How a weight of the first level is in keys: as in those of a character with no other such weight. */
static bool
take_first_weight(Probe *probe, UChar c, Element *element)
{
	const UChar twice[2] = {c, c};
	int			len_of_two;

	for (uint32 rest = element->original; rest != 0; rest <<= 8)
		element->len++;
	make_key(probe, twice, 2);
	len_of_two = primary_len(probe);
	make_key(probe, twice, 1);
	memcpy(element->first, probe->key, element->len);
	element->compressible = len_of_two == 2 * element->len - 1;
	return primary_len(probe) == element->len;
}

/* The same of a weight that another character has. */
static bool
copy_first_weight(const GsIcuKeys *icu_keys, Element *element)
{
	for (int i = 0; i < icu_keys->nces; i++)
	{
		const Element *other = &icu_keys->icu_keys[i];

		if (other->original != element->original)
			continue;
		memcpy(element->first, other->first, sizeof(element->first));
		element->len = other->len;
		element->compressible = other->compressible;
		return true;
	}
	return false;
}

/*
 * Adds a character that has a weight of the first level, or several of those that are known
 * already.  Of ASCII, one without any is added too: no accent is among them.
 */
static void
add_character(GsIcuKeys *icu_keys, Probe *probe, UChar c)
{
	Character  *character = &icu_keys->chars[c];
	Element    *found = &icu_keys->icu_keys[icu_keys->nces];
	int			n = collation_elements_of(probe, c, found);
	int			nfirst = 0;
	int			last = 0;

	make_key(probe, &c, 1);
	if (primary_len(probe) == 0)
		n = c < 0x80 && n >= 0 ? 0 : -1;	/* none, or one that an option ignores */
	for (int i = 0; i < n; i++)
	{
		if (found[i].original != 0)
		{
			nfirst++;
			last = i;
		}
		if (found[i].second != COMMON_WEIGHT)
			character->kind |= KIND_SECOND;
		if (found[i].third != COMMON_WEIGHT)
			character->kind |= KIND_THIRD;
	}
	if (n < 0 || (n > 0 && found[0].original == 0) ||
		(nfirst == 1 && !take_first_weight(probe, c, &found[last])))
		return;
	for (int i = 0; i < n && nfirst > 1; i++)
	{
		if (found[i].original != 0 && !copy_first_weight(icu_keys, &found[i]))
			return;
	}
	character->at = icu_keys->nces;
	character->nces = n;
	character->kind &= ~KIND_UNKNOWN;
	icu_keys->nces += n;
}

/* Are the keys of a character as ICU has them: alone, with itself, and between others? */
static bool
character_matches(const GsIcuKeys *icu_keys, Probe *probe, UChar c)
{
	const UChar strings[] = {c, c, 'a', c, 'B', c, c, c, c, c};

	return key_matches(icu_keys, probe, strings, 1) && key_matches(icu_keys, probe, strings, 2) &&
		key_matches(icu_keys, probe, strings, 5) && key_matches(icu_keys, probe, strings + 2, 2) &&
		prefix_matches(icu_keys, probe, strings, 3) &&
		prefix_matches(icu_keys, probe, strings, lengthof(strings));
}

static void
try_pairs(GsIcuKeys *icu_keys, Probe *probe)
{
	for (UChar i = FIRST_PRINTABLE; i <= LAST_PRINTABLE; i++)
	{
		for (UChar j = FIRST_PRINTABLE; j <= LAST_PRINTABLE; j++)
		{
			const UChar pair[2] = {i, j};

			if (!key_matches(icu_keys, probe, pair, 2))
				link_characters(icu_keys, i, j);
		}
	}
}

/* A character of a kind; 0 if there is none. */
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

/* Are runs of the common weight as expected, from none on: before the end, and before a character? */
static bool
sequences_match(const GsIcuKeys *icu_keys, Probe *probe, UChar last)
{
	UChar		string[210];

	for (int n = 0; n < lengthof(string); n++)
	{
		string[n] = last;
		if (!key_matches(icu_keys, probe, string, n) || !key_matches(icu_keys, probe, string, n + 1))
			return false;
		string[n] = 'a';
	}
	return true;
}

/* ASCII characters of one element, whose one byte of the first level is all that is unusual. */
static void
find_plain(GsIcuKeys *icu_keys)
{
	for (int c = 0; c < 0x80; c++)
	{
		const Character *character = &icu_keys->chars[c];
		const Element *element = &icu_keys->icu_keys[character->at];

		if (character->kind == 0 && character->nces == 1 && element->len == 1 &&
			!element->compressible)
			icu_keys->plain[c] = element->first[0];
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
	link_sequences(icu_keys, probe);
	for (int pass = 1; pass <= 2; pass++)	/* those of several weights find these the second time */
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
	try_pairs(icu_keys, probe);
	find_plain(icu_keys);
	return (icu_keys->chars['a'].kind & KIND_UNKNOWN) == 0 &&
		sequences_match(icu_keys, probe, any_character(icu_keys, KIND_SECOND)) &&
		sequences_match(icu_keys, probe, any_character(icu_keys, KIND_THIRD)) &&
		U_SUCCESS(probe->status);
}

static void
make_tables(GsIcuKeys *icu_keys)
{
	Probe		probe = {.collator = gs_collation_collator(icu_keys->collation)};

	probe.status = U_ZERO_ERROR;
	icu_keys->chars = MemoryContextAllocZero(TopMemoryContext, sizeof(Character) * NCHARS);
	icu_keys->icu_keys = MemoryContextAllocZero(TopMemoryContext,
												sizeof(Element) * MAX_CES * (NCHARS + 1));
	probe.iterator = ucol_openElements(probe.collator, NULL, 0, &probe.status);
	icu_keys->usable = U_SUCCESS(probe.status) && fill_tables(icu_keys, &probe);
	if (probe.iterator != NULL)
		ucol_closeElements(probe.iterator);
}
#endif

GsIcuKeys *
gs_icu_keys_lookup(Oid collation)
{
#ifdef USE_ICU
	static HTAB *known = NULL;
	GsIcuKeys *icu_keys;
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

/* ---------------------------------------------------------------- what is asked */

/* Are there tables?  They are made once they are worth it. */
static inline bool
has_tables(GsIcuKeys *icu_keys)
{
	if (likely(icu_keys->usable))
		return true;
	return icu_keys->ntexts < TEXTS_BEFORE && ++icu_keys->ntexts == TEXTS_BEFORE &&
		gs_icu_keys_are_ready(icu_keys);
}

bool
gs_icu_keys_is_unmapped(const char *string, Size len)
{
	for (Size i = 0; i < len; i++)
	{
		if ((unsigned char) string[i] > MOST_LEAD)
			return true;
	}
	return false;
}

Size
gs_icu_keys_max_bytes(Size len)
{
	/* an element has up to 5 bytes of the first level and 3 each of the others; 2 bytes have 3 */
	return 17 * Min(len, LONG_TEXT) + 32;
}

bool
gs_icu_keys_key(GsIcuKeys *icu_keys, const char *string, Size len, bool whole,
					char *out, Size *out_len)
{
	unsigned char *end;

	if (len > LONG_TEXT || !has_tables(icu_keys))
		return false;
	end = put_key(icu_keys, string, len, whole ? icu_keys->nstrengths : 1, (unsigned char *) out);
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
