/*-------------------------------------------------------------------------
 *
 * collation_icu_tables.c
 *	  Makes the tables from which sort keys of ICU are built, once in a session.
 *
 * The elements of each character and the contractions come from the collator.  Other properties of
 * the collator (options, another format of keys in another version) are found by tests: each
 * character alone, twice and between others, all pairs of ASCII characters, and runs of the common
 * weight of all lengths.  A character whose keys are not as expected is removed from the tables.
 * If runs are not as expected, there are no tables, as in Danish, which sorts capitals first.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "collation/collation_icu_state.h"
#include "pg_compat.h"

#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"
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
extern __typeof__(ucol_getContractionsAndExpansions)
			ucol_getContractionsAndExpansions __attribute__((weak));
extern __typeof__(ucol_openElements) ucol_openElements __attribute__((weak));
extern __typeof__(ucol_setText) ucol_setText __attribute__((weak));
extern __typeof__(ucol_next) ucol_next __attribute__((weak));
extern __typeof__(ucol_closeElements) ucol_closeElements __attribute__((weak));
extern __typeof__(uiter_setUTF8) uiter_setUTF8 __attribute__((weak));
extern __typeof__(uset_openEmpty) uset_openEmpty __attribute__((weak));
extern __typeof__(uset_getItemCount) uset_getItemCount __attribute__((weak));
extern __typeof__(uset_getItem) uset_getItem __attribute__((weak));
extern __typeof__(uset_close) uset_close __attribute__((weak));

/* The East Asian characters that are learned are up to the first of these, and Hangul syllables. */
#define LAST_HAN		0x9FFF
#define IS_HANGUL(c)	((c) >= 0xAC00 && (c) <= 0xD7A3)

/* The letters of which Hangul syllables consist. */
#define FIRST_JAMO		0x1100
#define LAST_JAMO		0x11C2

#define FIRST_PRINTABLE	' '
#define LAST_PRINTABLE	'~'

/* Combining marks, which ICU may reorder or combine with other characters. */
#define IS_MARK(c) \
	(((c) >= 0x300 && (c) <= 0x36F) || ((c) >= 0x483 && (c) <= 0x489) || \
	 ((c) >= 0x302A && (c) <= 0x302F) || (c) == 0x3099 || (c) == 0x309A)

bool
gs_icu_tables_can_be_made(void)
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
	unsigned char *end = (unsigned char *) out;

	for (int i = 0; i < len; i++)
	{
		unicode_to_utf8(string[i], end);
		end += pg_utf_mblen(end);
	}
	return (char *) end - out;
}

/* Is the key of a text ICU's?  True if the text has to be left to ICU. */
static bool
key_matches(GsIcuKeys *icu_keys, Probe *probe, const UChar *string, int32_t len)
{
	char		utf8[512];
	unsigned char key[512 * 17 + 32];
	Size		nbytes = to_utf8(string, len, utf8);
	unsigned char *end = gs_icu_keys_put(icu_keys, utf8, nbytes, icu_keys->nstrengths, key);

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

	if (!gs_icu_keys_put_prefix(icu_keys, utf8, nbytes, &code))
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

/* Notes that two characters may start a contraction.  East Asian ones are left to ICU then. */
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
		n = c < 0x80 && n >= 0 ? 0 : -1;	/* it has none, or an option ignores it */
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

/* Adds the letters of Hangul, of which syllables consist; texts with letters are left to ICU. */
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

void
gs_icu_tables_learn(GsIcuKeys *icu_keys, Character *character)
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

void
gs_icu_tables_make(GsIcuKeys *icu_keys)
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
bool
gs_icu_tables_can_be_made(void)
{
	return false;
}

void
gs_icu_tables_make(GsIcuKeys *icu_keys)
{
}

void
gs_icu_tables_learn(GsIcuKeys *icu_keys, Character *character)
{
}
#endif
