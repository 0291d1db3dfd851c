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
 * pg_trgm, by a call for each ASCII character, and one for a word of all of them.  Words that have
 * other characters are extracted by pg_trgm, all those of a text together.
 *
 * All bytes of a character that is not ASCII have their high bit set in each encoding of a server.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "gin/gin_trigrams.h"
#include "key/key_order.h"
#include "pg_compat.h"

#include "miscadmin.h"

/* Trigrams that are added together. */
#define NBUFFERED		512

/* What a byte is, if it is not an ASCII character of words. */
#define NO_WORD			0x00
#define FOR_PG_TRGM		0xFF

struct GsGinTrigrams
{
	FmgrInfo   *extract;
	Oid			collation;
	uint8		lower[256];		/* the character in lower case, or one of the above */
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
extract(const GsGinTrigrams *trigrams, const char *string, int nbytes, int *nkeys)
{
	bool	   *nulls = NULL;
	struct varlena *value = palloc(VARHDRSZ + nbytes);
	Datum		keys;

	SET_VARSIZE(value, VARHDRSZ + nbytes);
	memcpy(VARDATA(value), string, nbytes);
	*nkeys = 0;
	keys = FunctionCall3Coll(trigrams->extract, trigrams->collation, PointerGetDatum(value),
							 PointerGetDatum(nkeys), PointerGetDatum(&nulls));
	return (const Datum *) DatumGetPointer(keys);
}

/* -------------------------------------------------------------------- the words */

/* The characters of a trigram before the first one of a word. */
#define TWO_SPACES		((uint32) ' ' << 8 | ' ')

static inline uint32
next_trigram(uint32 trigram, uint8 character)
{
	return (trigram << 8 | character) & 0xFFFFFF;
}

static void
add_word(const GsGinTrigrams *trigrams, Adder *adder, const char *word, const char *end)
{
	uint32		trigram = TWO_SPACES;

	for (; word < end; word++)
	{
		trigram = next_trigram(trigram, trigrams->lower[(uint8) *word]);
		add_trigram(adder, trigram);
	}
	add_trigram(adder, next_trigram(trigram, ' '));
}

/*
 * Adds the words of a text that are ASCII.  The others are appended to others, which has as many
 * bytes as the text and one more, each followed by a space; returns the number of bytes.
 */
static int
add_words(const GsGinTrigrams *trigrams, Adder *adder, const char *string, int nbytes, char **others)
{
	const char *const end = string + nbytes;
	int			nothers = 0;

	while (string < end)
	{
		const char *word = string;
		uint8		all = NO_WORD;
		uint8		lower;

		while (string < end && (lower = trigrams->lower[(uint8) *string]) != NO_WORD)
		{
			all |= lower;
			string++;
		}
		if (string > word && (all & 0x80) == 0)
			add_word(trigrams, adder, word, string);
		else if (string > word)
		{
			if (*others == NULL)
				*others = palloc(nbytes + 1);
			memcpy(*others + nothers, word, string - word);
			nothers += string - word;
			(*others)[nothers++] = ' ';
		}
		string++;
	}
	return nothers;
}

bool
gs_gin_trigrams_add(const GsGinTrigrams *trigrams, GsGinAccumulator *accumulator,
					OffsetNumber attribute, Datum value, uint64 tid)
{
	struct varlena *packed = pg_detoast_datum_packed((struct varlena *) DatumGetPointer(value));
	char	   *others = NULL;
	int			nothers;
	Adder		adder;

	adder.accumulator = accumulator;
	adder.attribute = attribute;
	adder.tid = tid;
	adder.has_added = false;
	adder.nkeys = 0;
	nothers = add_words(trigrams, &adder, VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed), &others);
	add_keys(&adder, adder.keys, adder.nkeys);
	if (nothers > 0)
	{
		int			nkeys;
		const Datum *keys = extract(trigrams, others, nothers, &nkeys);

		add_keys(&adder, keys, nkeys);
	}
	return adder.has_added;
}

/* -------------------------------------------------------------------- learning */

/* What a character is, of which pg_trgm makes a word or not. */
static uint8
learn_character(const GsGinTrigrams *trigrams, char character)
{
	int			nkeys;
	const Datum *keys = extract(trigrams, &character, 1, &nkeys);
	uint32		lower;

	if (nkeys == 0)
		return NO_WORD;
	lower = DatumGetUInt32(keys[0]) & 0xFF;
	if (nkeys == 2 && lower != NO_WORD && lower < 0x80 &&
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
	int			n = 0;

	qsort(keys, nkeys, sizeof(Datum), compare_keys);
	for (int i = 0; i < nkeys; i++)
	{
		if (i == 0 || keys[i] != keys[n - 1])
			keys[n++] = keys[i];
	}
	return n;
}

/* Are the trigrams of a word of all ASCII characters that are in words those of pg_trgm? */
static bool
agrees(const GsGinTrigrams *trigrams)
{
	char		word[256];
	int			nbytes = 0;
	int			nexpected;
	int			nkeys;
	const Datum *keys;
	Datum	   *expected;
	Adder		adder;

	for (int c = 1; c < 0x80; c++)
	{
		if (trigrams->lower[c] < 0x80 && trigrams->lower[c] != NO_WORD)
			word[nbytes++] = c;
	}
	if (nbytes == 0)
		return false;
	adder.nkeys = 0;
	add_word(trigrams, &adder, word, word + nbytes);
	keys = extract(trigrams, word, nbytes, &nkeys);
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
	for (int c = 1; c < 0x80; c++)
		trigrams->lower[c] = learn_character(trigrams, c);
	return agrees(trigrams) ? trigrams : NULL;
}
