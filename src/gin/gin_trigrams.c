/*-------------------------------------------------------------------------
 *
 * gin_trigrams.c
 *	  The trigrams of a text, as the operator class gin_trgm_ops of pg_trgm extracts them.
 *
 * pg_trgm sorts the trigrams of each text and removes duplicates, which takes three fifths of a
 * build by this library.  The accumulator needs neither, so words of ASCII characters are taken
 * apart here:
 *
 *	  Big cats		->	"  b" " bi" "big" "ig "  "  c" " ca" "cat" "ats" "ts "
 *
 * Which characters are in words, and what they are in lower case, depends on the version of
 * pg_trgm, on how it was compiled, and on the locale of the database.  So it is learned from
 * pg_trgm, by a call for each ASCII character, and one for a word of all of them.  In no locale
 * does the lower case of an ASCII character depend on other ASCII characters.
 *
 * Words that have other characters, or ASCII ones that are not ASCII in lower case, are extracted
 * by pg_trgm, all those of a text together.  In each encoding of a server, all bytes of a character
 * that is not ASCII have their high bit set.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "gin/gin_trigrams.h"
#include "key/key_order.h"
#include "pg_compat.h"

#include "lib/qunique.h"
#include "miscadmin.h"

/* Trigrams that are added together. */
#define NBUFFERED		512

#define NO_WORD			0x00	/* a byte that ends a word */
#define FOR_PG_TRGM		0xFF	/* one whose word pg_trgm must extract */
#define HIGH_BIT		0x80	/* which ASCII characters do not have */

struct GsGinTrigrams
{
	FmgrInfo   *extract;
	Oid			collation;
	uint8		lower[256];		/* of a byte: the character, or one of the above */
};

/* Adds the trigrams of a value. */
typedef struct Adder
{
	GsGinAccumulator *accumulator;
	OffsetNumber attribute;
	uint64		tid;
	bool		has_added;
	int			nkeys;
	Datum		keys[NBUFFERED];
} Adder;

/* --------------------------------------------------------------------- adding */

static void
add_keys(Adder *adder, const Datum *keys, int nkeys)
{
	if (nkeys == 0)
		return;
	CHECK_FOR_INTERRUPTS();
	gs_gin_accumulator_add(adder->accumulator, adder->attribute, keys, NULL, nkeys, adder->tid);
	adder->has_added = true;
}

static inline void
add_trigram(Adder *adder, uint32 trigram)
{
	if (unlikely(adder->nkeys == NBUFFERED))
	{
		add_keys(adder, adder->keys, NBUFFERED);
		adder->nkeys = 0;
	}
	adder->keys[adder->nkeys++] = Int32GetDatum((int32) trigram);
}

/* ---------------------------------------------------------------------- pg_trgm */

/* The keys that pg_trgm extracts from a text. */
static const Datum *
extract(const GsGinTrigrams *trigrams, struct varlena *value, int *nkeys)
{
	bool	   *nulls = NULL;
	Datum		keys;

	*nkeys = 0;
	keys = FunctionCall3Coll(trigrams->extract, trigrams->collation, PointerGetDatum(value),
							 PointerGetDatum(nkeys), PointerGetDatum(&nulls));
	return (const Datum *) DatumGetPointer(keys);
}

/* A text of spaces. */
static struct varlena *
make_spaces(Size nbytes)
{
	struct varlena *value = palloc(VARHDRSZ + nbytes);

	SET_VARSIZE(value, VARHDRSZ + nbytes);
	memset(VARDATA(value), ' ', nbytes);
	return value;
}

/* -------------------------------------------------------------------- the words */

/* The characters of a trigram before the first one of a word. */
#define TWO_SPACES		((uint32) ' ' << 8 | ' ')

static inline uint32
next_trigram(uint32 trigram, uint8 character)
{
	return (trigram << 8 | character) & 0xFFFFFF;
}

/* Adds the trigrams of a word of ASCII characters, which may be empty. */
static void
add_word(const GsGinTrigrams *trigrams, Adder *adder, const char *word, const char *end)
{
	uint32		trigram = TWO_SPACES;

	if (word == end)
		return;
	for (; word < end; word++)
	{
		trigram = next_trigram(trigram, trigrams->lower[(uint8) *word]);
		add_trigram(adder, trigram);
	}
	add_trigram(adder, next_trigram(trigram, ' '));
}

/*
 * Adds the words of a text that are ASCII.  Returns a text of the same length that has the others
 * where they are in this one, and spaces elsewhere; NULL: there are no others.
 */
static struct varlena *
add_words(const GsGinTrigrams *trigrams, Adder *adder, const char *string, Size nbytes)
{
	struct varlena *others = NULL;
	Size		place = 0;

	while (place < nbytes)
	{
		const Size	word = place;
		uint8		all = NO_WORD;
		uint8		lower;

		while (place < nbytes && (lower = trigrams->lower[(uint8) string[place]]) != NO_WORD)
		{
			all |= lower;
			place++;
		}
		if ((all & HIGH_BIT) == 0)
			add_word(trigrams, adder, string + word, string + place);
		else
		{
			if (others == NULL)
				others = make_spaces(nbytes);
			memcpy(VARDATA(others) + word, string + word, place - word);
		}
		place++;
	}
	return others;
}

bool
gs_gin_trigrams_add(const GsGinTrigrams *trigrams, GsGinAccumulator *accumulator,
					OffsetNumber attribute, Datum value, uint64 tid)
{
	struct varlena *packed = pg_detoast_datum_packed((struct varlena *) DatumGetPointer(value));
	struct varlena *others;
	Adder		adder;

	adder.accumulator = accumulator;
	adder.attribute = attribute;
	adder.tid = tid;
	adder.has_added = false;
	adder.nkeys = 0;
	others = add_words(trigrams, &adder, VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed));
	add_keys(&adder, adder.keys, adder.nkeys);
	if (others != NULL)
	{
		int			nkeys;
		const Datum *keys = extract(trigrams, others, &nkeys);

		add_keys(&adder, keys, nkeys);
	}
	return adder.has_added;
}

/* -------------------------------------------------------------------- learning */

/* What a character is, of which pg_trgm makes a word or not. */
static uint8
learn_character(const GsGinTrigrams *trigrams, char character)
{
	struct varlena *value = make_spaces(1);
	int			nkeys;
	const Datum *keys;
	uint32		lower;

	*VARDATA(value) = character;
	keys = extract(trigrams, value, &nkeys);
	if (nkeys == 0)
		return NO_WORD;
	lower = DatumGetUInt32(keys[0]) & 0xFF;
	if (nkeys == 2 && lower != NO_WORD && (lower & HIGH_BIT) == 0 &&
		DatumGetUInt32(keys[0]) == next_trigram(TWO_SPACES, lower) &&
		DatumGetUInt32(keys[1]) == next_trigram(DatumGetUInt32(keys[0]), ' '))
		return lower;
	return FOR_PG_TRGM;
}

static int
compare_keys(const void *a, const void *b)
{
	const Datum x = *(const Datum *) a;
	const Datum y = *(const Datum *) b;

	return (x > y) - (x < y);
}

/* Sorts some keys and removes duplicates; returns how many are left. */
static int
sort_unique(Datum *keys, int nkeys)
{
	qsort(keys, nkeys, sizeof(Datum), compare_keys);
	return qunique(keys, nkeys, sizeof(Datum), compare_keys);
}

/* Are the trigrams of a word of all ASCII characters that are in words those of pg_trgm? */
static bool
agrees(const GsGinTrigrams *trigrams)
{
	struct varlena *value = make_spaces(HIGH_BIT);
	char	   *word = VARDATA(value);
	int			nbytes = 0;
	int			nexpected;
	int			nkeys;
	const Datum *keys;
	Datum	   *expected;
	Adder		adder;

	for (int c = 1; c < HIGH_BIT; c++)
	{
		if (trigrams->lower[c] != FOR_PG_TRGM && trigrams->lower[c] != NO_WORD)
			word[nbytes++] = c;
	}
	adder.nkeys = 0;
	add_word(trigrams, &adder, word, word + nbytes);
	keys = extract(trigrams, value, &nkeys);
	expected = palloc(sizeof(Datum) * (nkeys + 1));
	if (nkeys > 0)
		memcpy(expected, keys, sizeof(Datum) * nkeys);
	nexpected = sort_unique(expected, nkeys);
	return sort_unique(adder.keys, adder.nkeys) == nexpected &&
		memcmp(adder.keys, expected, sizeof(Datum) * nexpected) == 0;
}

GsGinTrigrams *
gs_gin_trigrams_create(FmgrInfo *extract, Oid collation)
{
	GsGinTrigrams *trigrams;

	if (!gs_key_order_is_function(extract->fn_oid, "pg_trgm", "gin_extract_value_trgm"))
		return NULL;
	trigrams = palloc(sizeof(GsGinTrigrams));
	trigrams->extract = extract;
	trigrams->collation = collation;
	memset(trigrams->lower, FOR_PG_TRGM, sizeof(trigrams->lower));
	for (int c = 1; c < HIGH_BIT; c++)
		trigrams->lower[c] = learn_character(trigrams, c);
	return trigrams->lower[' '] == NO_WORD && agrees(trigrams) ? trigrams : NULL;
}
