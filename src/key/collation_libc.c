/*-------------------------------------------------------------------------
 *
 * collation_libc.c
 *	  libc's sort keys, densely coded: the first level, or all.
 *
 * A sort key of glibc is a string of weights for each level, the levels
 * parted by bytes of 1; weights are written as UTF-8 writes numbers.  In
 * en_US.UTF-8:
 *
 *	  "ab"		51 5e   01 02 02   01 02 02   01 01 e2 94 92 01 e2 95 ae
 *	  "aB"		51 5e   01 02 02   01 02 07   01 01 e2 94 92 01 e2 ac 8e
 *	  "a-b"		51 5e   01 02 02   01 02 02   01 01 e2 94 92 01 c7 9c 01 e2 95 ae
 *
 * Letters and digits have a weight on each level: which letter, which accent, which case,
 * and on the fourth, where the bytes of 1 part weights, once more all of that.
 * Punctuation has one on the fourth only, less than any letter's.
 *
 * Of the many weights of the first level most texts have those of ASCII characters
 * only.  So these are numbered, and a weight becomes one byte: 2 n for the n-th of
 * them; 2 n + 1, and the weight itself, for one between it and the next.  The
 * codes order as the weights do, and their bytes have few bits that vary, which
 * is what packing wants (key_pack.h).  Where an engine can compare, that will do as
 * a key; what it leaves open is left to strcoll().
 *
 * A whole key goes on behind a byte of 0, which is in no code.  For the second and the
 * third level there is one of 2 if all weights are the least (no accents, no
 * capitals); else one of 3, the level, and 0.  Where these levels agree so do the letters,
 * and only punctuation is left of the fourth: for each piece of it how many letters are
 * before it, and its weight.  As it is less than a letter, the fewer the
 * sooner; but a text that ends there comes before one that goes on with punctuation.
 *
 *	  "ab"		codes of a and b, 0 2 2 ENDED			of 15 bytes and the text
 *	  "aB"		codes of a and b, 0 2 3 02 07 0 ENDED
 *	  "a-b"		codes of a and b, 0 2 2 2 c7 9c ENDED	2 is 1 letter
 *
 * Characters that have no weight at all are left to the text, which goes behind the key of any
 * that has other characters than those of ASCII; whether it comes before what it
 * would be without them depends on where the first one is.
 *
 * The code of an ASCII text is put together from those of its characters, in
 * a twentieth of the time that strxfrm() takes.  Two characters may have other
 * weights together (Czech "ch"), so all pairs are tried beforehand.  All
 * this is a guess about a library whose
 * tables are not ours to read; sorts whose keys rest on it prove their order
 * (key_collation.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/collation_libc.h"

#include "utils/hsearch.h"

#define FIRST_CHAR	' '
#define NCHARS		('~' - FIRST_CHAR + 1)

/* A byte of a key that is in no weight. */
#define LEVEL_END	1

/* Bytes of a code behind the first level. */
#define PART_END	0
#define ALL_LEAST	2
#define NOT_LEAST	3

/* The same in its last part: letters before a piece of punctuation, plus one; more than that; ... */
#define MOST_LETTERS	0xE0
#define MANY_LETTERS	0xE1	/* 4 bytes follow */
#define ENDED_BEFORE	0xEF
#define ENDED		0xF0
#define AFTER_ALL	0xF1

/* Of a character whose weights are too many or too long. */
#define NO_WEIGHTS	-1

typedef struct CharWeights
{
	uint64		first;			/* 0: none, and none on the next two */
	uint64		third;
	uint64		fourth;
} CharWeights;

struct GsLibcKeys
{
	Oid			collation;		/* hash key */
	bool		usable;			/* the first level is as expected */
	bool		whole;			/* the others too */
	int			nweights;
	uint64		weights[NCHARS];	/* of the first level: ascending, no two the same */
	uint64		second;			/* of all characters that have one */
	uint64		third;			/* the least */
	uint64		letters;		/* on the fourth, no letter has less */
	CharWeights chars[NCHARS];
	char		codes[NCHARS];	/* of the first level; 0: none */
	bool		simple[NCHARS]; /* all its weights are in chars[] */
	unsigned char kinds[NCHARS];	/* of a simple one: KIND_ bits */

	/* by the one before: have the two others together, on the first level, and on any? */
	bool		together[NCHARS + 1][NCHARS];
	bool		linked[NCHARS + 1][NCHARS];
};

/* The one before the first: together with none; linked with those that are not simple. */
#define NO_CHAR		NCHARS

#define KIND_PUNCTUATION	1
#define KIND_NOT_LEAST		2	/* on the third level */

/* ------------------------------------------------------------------ weights */

/*
 * Takes the next weight of a level; its bytes are a number that compares as
 * they do.  0 at the end of the level.
 */
static inline uint64
next_weight(const unsigned char **at, const unsigned char *end)
{
	const unsigned char *p = *at;
	uint64		weight;
	int			nbytes;

	if (p == end || *p == LEVEL_END)
		return 0;
	nbytes = *p < 0xC0 ? 1 : *p < 0xE0 ? 2 : *p < 0xF0 ? 3 : *p < 0xF8 ? 4 : *p < 0xFC ? 5 : 6;
	weight = 0;
	for (int i = 0; i < nbytes; i++)
		weight |= (uint64) (p + i < end ? p[i] : 0) << (8 * (7 - i));
	*at = Min(p + nbytes, end);
	return weight;
}

static inline char *
put_weight(char *out, uint64 weight)
{
	for (; weight != 0; weight <<= 8)
		*out++ = weight >> 56;
	return out;
}

/* Steps over what ends a level. */
static inline void
next_level(const unsigned char **at, const unsigned char *end)
{
	if (*at < end)
		(*at)++;
}

/* How many of the numbered weights are below one, and whether it is one of them. */
static inline int
count_below(const GsLibcKeys *libc_keys, uint64 weight, bool *found)
{
	int			low = 0;
	int			high = libc_keys->nweights;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (libc_keys->weights[middle] < weight)
			low = middle + 1;
		else
			high = middle;
	}
	*found = low < libc_keys->nweights && libc_keys->weights[low] == weight;
	return low;
}

/* Codes a weight; returns behind the code, which is no more than a byte longer. */
static inline char *
code_weight(const GsLibcKeys *libc_keys, uint64 weight, char *out)
{
	bool		found;
	int			nbelow = count_below(libc_keys, weight, &found);

	*out++ = 2 * nbelow + (found ? 2 : 1);
	return found ? out : put_weight(out, weight);
}

/* Punctuation, with so many letters before it. */
static inline char *
code_punctuation(char *out, uint32 nletters, bool behind_all, uint64 weight)
{
	if (behind_all)
		*out++ = (char) AFTER_ALL;
	else if (nletters + 1 <= MOST_LETTERS)
		*out++ = (char) (nletters + 1);
	else
	{
		*out++ = (char) MANY_LETTERS;
		for (int shift = 24; shift >= 0; shift -= 8)
			*out++ = nletters >> shift;
	}
	return put_weight(out, weight);
}

/* ----------------------------------------------------------- made once in a session */

static Size
transform(const char *string, unsigned char *key, Size size, locale_t locale)
{
	return locale == NULL ? strxfrm((char *) key, string, size) :
		strxfrm_l((char *) key, string, size, locale);
}

/* The weights of the first level of a text of one or two characters: how many, -1 if too many. */
static int
probe(char first, char second, locale_t locale, uint64 weights[2])
{
	char		terminated[3] = {first, second, '\0'};
	unsigned char key[256];
	const unsigned char *at = key;
	Size		len = transform(terminated, key, sizeof(key), locale);
	uint64		weight;
	int			n = 0;

	if (len >= sizeof(key))
		return -1;
	while ((weight = next_weight(&at, key + len)) != 0)
	{
		if (n == 2)
			return -1;
		weights[n++] = weight;
	}
	return n;
}

static void
add_weight(GsLibcKeys *libc_keys, uint64 weight)
{
	bool		found;
	int			place = count_below(libc_keys, weight, &found);

	if (found)
		return;
	memmove(&libc_keys->weights[place + 1], &libc_keys->weights[place],
			sizeof(uint64) * (libc_keys->nweights - place));
	libc_keys->weights[place] = weight;
	libc_keys->nweights++;
}

/* Has a pair of characters the weights of the first level that each has alone? */
static bool
is_context_free(const GsLibcKeys *libc_keys, int i, int j, locale_t locale)
{
	uint64		weights[2];
	int			n = probe(FIRST_CHAR + i, FIRST_CHAR + j, locale, weights);
	int			at = 0;

	if (libc_keys->chars[i].first != 0 && (at >= n || weights[at++] != libc_keys->chars[i].first))
		return false;
	if (libc_keys->chars[j].first != 0 && (at >= n || weights[at++] != libc_keys->chars[j].first))
		return false;
	return at == n;
}

static bool
probe_primary(GsLibcKeys *libc_keys, locale_t locale)
{
	for (int i = 0; i < NCHARS; i++)
	{
		uint64		weights[2] = {0, 0};

		if (probe(FIRST_CHAR + i, '\0', locale, weights) > 1)
			weights[0] = 0;		/* as if it had none: it differs in pairs then */
		libc_keys->chars[i].first = weights[0];
		if (weights[0] != 0)
			add_weight(libc_keys, weights[0]);
	}
	if (libc_keys->nweights == 0)
		return false;
	for (int i = 0; i < NCHARS; i++)
	{
		if (libc_keys->chars[i].first != 0)
			(void) code_weight(libc_keys, libc_keys->chars[i].first, &libc_keys->codes[i]);
		for (int j = 0; j < NCHARS; j++)
			libc_keys->together[i][j] = !is_context_free(libc_keys, i, j, locale);
	}
	return true;
}

/* Takes the weights of all levels from the key of one character, if they are as is expected. */
static bool
take_weights(GsLibcKeys *libc_keys, int i, const unsigned char *key, Size len)
{
	const unsigned char *at = key;
	const unsigned char *end = key + len;
	CharWeights *weights = &libc_keys->chars[i];
	uint64		second;

	if (next_weight(&at, end) != weights->first)
		return false;
	next_level(&at, end);
	second = next_weight(&at, end);
	next_level(&at, end);
	weights->third = next_weight(&at, end);
	next_level(&at, end);
	next_level(&at, end);
	weights->fourth = next_weight(&at, end);
	if (at != end || weights->fourth == 0 || (weights->first == 0) != (second == 0) ||
		(weights->first == 0) != (weights->third == 0) || weights->third << 8 != 0)
		return false;
	if (weights->first != 0)
	{
		if (libc_keys->second == 0)
			libc_keys->second = second;
		if (libc_keys->third == 0 || weights->third < libc_keys->third)
			libc_keys->third = weights->third;
	}
	return second == 0 || second == libc_keys->second;
}

/* The key of two simple characters as it should be. */
static Size
make_key(const GsLibcKeys *libc_keys, const int chars[2], unsigned char *key)
{
	char	   *out = (char *) key;

	for (int i = 0; i < 2; i++)
		out = put_weight(out, libc_keys->chars[chars[i]].first);
	*out++ = LEVEL_END;
	for (int i = 0; i < 2; i++)
		out = put_weight(out, libc_keys->chars[chars[i]].first == 0 ? 0 : libc_keys->second);
	*out++ = LEVEL_END;
	for (int i = 0; i < 2; i++)
		out = put_weight(out, libc_keys->chars[chars[i]].third);
	*out++ = LEVEL_END;
	for (int i = 0; i < 2; i++)
	{
		*out++ = LEVEL_END;
		out = put_weight(out, libc_keys->chars[chars[i]].fourth);
	}
	return out - (char *) key;
}

/* Have two simple characters other weights together than each alone? */
static bool
are_linked(const GsLibcKeys *libc_keys, int i, int j, locale_t locale)
{
	const int	chars[2] = {i, j};
	char		terminated[3] = {FIRST_CHAR + i, FIRST_CHAR + j, '\0'};
	unsigned char key[256];
	unsigned char expected[64];
	Size		len = transform(terminated, key, sizeof(key), locale);

	return len != make_key(libc_keys, chars, expected) || memcmp(key, expected, len) != 0;
}

/* Are two simple characters told apart by their codes? */
static bool
differ(const CharWeights *a, const CharWeights *b)
{
	return a->first != b->first || (a->first == 0 ? a->fourth != b->fourth : a->third != b->third);
}

/* Punctuation has to be less than all letters, on the fourth level. */
static bool
probe_full(GsLibcKeys *libc_keys, locale_t locale)
{
	uint64		most_punctuation = 0;

	libc_keys->letters = PG_UINT64_MAX;
	for (int i = 0; i < NCHARS; i++)
	{
		char		terminated[2] = {FIRST_CHAR + i, '\0'};
		unsigned char key[256];
		Size		len = transform(terminated, key, sizeof(key), locale);

		libc_keys->simple[i] = len < sizeof(key) && take_weights(libc_keys, i, key, len);
		for (int j = 0; j < i && libc_keys->simple[i]; j++)
			libc_keys->simple[i] = !libc_keys->simple[j] || differ(&libc_keys->chars[i], &libc_keys->chars[j]);
		if (!libc_keys->simple[i])
			continue;
		if (libc_keys->chars[i].first != 0)
			libc_keys->letters = Min(libc_keys->letters, libc_keys->chars[i].fourth);
		else
			most_punctuation = Max(most_punctuation, libc_keys->chars[i].fourth);
	}
	if (libc_keys->second == 0 || most_punctuation >= libc_keys->letters)
		return false;
	for (int i = 0; i < NCHARS; i++)
	{
		libc_keys->kinds[i] = libc_keys->chars[i].first == 0 ? KIND_PUNCTUATION :
			libc_keys->chars[i].third != libc_keys->third ? KIND_NOT_LEAST : 0;
		libc_keys->linked[NO_CHAR][i] = !libc_keys->simple[i];
		for (int j = 0; j < NCHARS; j++)
			libc_keys->linked[i][j] = !libc_keys->simple[i] || !libc_keys->simple[j] ||
				are_linked(libc_keys, i, j, locale);
	}
	return true;
}

const GsLibcKeys *
gs_libc_keys_lookup(Oid collation, locale_t locale)
{
	static HTAB *known = NULL;
	GsLibcKeys *libc_keys;
	bool		found;

	if (known == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(GsLibcKeys)};

		known = hash_create("gpusort key levels", 8, &ctl, HASH_ELEM | HASH_BLOBS);
	}
	libc_keys = hash_search(known, &collation, HASH_ENTER, &found);
	if (!found)
	{
		memset(libc_keys, 0, sizeof(*libc_keys));
		libc_keys->collation = collation;
		libc_keys->usable = probe_primary(libc_keys, locale);
		libc_keys->whole = libc_keys->usable && probe_full(libc_keys, locale);
	}
	return libc_keys->usable ? libc_keys : NULL;
}

bool
gs_libc_keys_are_full(const GsLibcKeys *libc_keys)
{
	return libc_keys->whole;
}

/* ---------------------------------------------------------- of an ASCII text */

Size
gs_libc_keys_max_ascii_bytes(Size len, bool whole)
{
	/* a character has 1 byte of the first level, 1 of the third, or 5 and 6 of punctuation */
	return whole ? 11 * len + 16 : len;
}

/* The second to the fourth level. */
static char *
encode_ascii_rest(const GsLibcKeys *libc_keys, const char *string, Size len, unsigned int kinds,
				char *out)
{
	const bool	any_third = kinds & KIND_NOT_LEAST;
	const bool	any_punctuation = kinds & KIND_PUNCTUATION;
	Size		letters_end = 0;
	uint32		nletters = 0;

	*out++ = PART_END;
	*out++ = ALL_LEAST;
	*out++ = any_third ? NOT_LEAST : ALL_LEAST;
	for (Size i = 0; i < len && (any_third || any_punctuation); i++)
	{
		const CharWeights *weights = &libc_keys->chars[string[i] - FIRST_CHAR];

		if (weights->first != 0)
			letters_end = i + 1;
		if (any_third && weights->first != 0)
			*out++ = weights->third >> 56;
	}
	if (any_third)
		*out++ = PART_END;
	for (Size i = 0; i < len && any_punctuation; i++)
	{
		const CharWeights *weights = &libc_keys->chars[string[i] - FIRST_CHAR];

		if (weights->first != 0)
			nletters++;
		else
			out = code_punctuation(out, nletters, i >= letters_end, weights->fourth);
	}
	*out++ = (char) ENDED;
	return out;
}

bool
gs_libc_keys_encode_ascii(const GsLibcKeys *libc_keys, const char *string, Size len,
						 bool whole, char *out, Size *out_len)
{
	const bool (*apart)[NCHARS] = whole ? libc_keys->linked : libc_keys->together;
	char	   *start = out;
	unsigned int before = NO_CHAR;
	unsigned int kinds = 0;

	for (Size i = 0; i < len; i++)
	{
		unsigned int c = (unsigned char) string[i] - (unsigned int) FIRST_CHAR;
		char		code;

		if (c >= NCHARS || apart[before][c])
			return false;
		code = libc_keys->codes[c];
		*out = code;
		out += code != 0;
		kinds |= libc_keys->kinds[c];
		before = c;
	}
	if (whole)
		out = encode_ascii_rest(libc_keys, string, len, kinds, out);
	*out_len = out - start;
	return true;
}

/* ------------------------------------------------------- of what strxfrm() gave */

Size
gs_libc_keys_max_key_bytes(Size len, bool whole)
{
	/* a weight of one byte may become two; one of the fourth level, with what parts it, 11 */
	return whole ? 6 * len + 16 : 2 * len;
}

/* What a level has. */
typedef struct StrengthProperties
{
	Size		nweights;
	bool		all_least;
} StrengthProperties;

/* The second or the third level, which should have a weight for each of the first. */
static char *
encode_strength(const unsigned char **at, const unsigned char *end, uint64 least, Size nfirst,
		   StrengthProperties *properties, char *out)
{
	const unsigned char *start = *at;
	uint64		weight;

	*properties = (StrengthProperties)
	{
		.all_least = true
	};
	for (; (weight = next_weight(at, end)) != 0; properties->nweights++)
		properties->all_least &= weight == least;
	properties->all_least &= properties->nweights == nfirst;
	if (properties->all_least)
		*out++ = ALL_LEAST;
	else
	{
		*out++ = NOT_LEAST;
		memcpy(out, start, *at - start);
		out += *at - start;
		*out++ = PART_END;
	}
	next_level(at, end);
	return out;
}

/*
 * Takes the next weight of the fourth level, before which stands how far it is from the
 * one before, written as a weight: 1, unless a character between them has no weight there.
 */
static inline uint64
next_fourth(const unsigned char **at, const unsigned char *end, bool *far)
{
	*far = *at < end && **at != LEVEL_END;
	if (*at < end)
		(*at)++;
	return next_weight(at, end);
}

/* Have all letters a weight on the fourth level? */
static bool
fourth_is_full(const GsLibcKeys *libc_keys, const unsigned char *at, const unsigned char *end,
			   Size nletters)
{
	bool		far;
	uint64		weight;

	while ((weight = next_fourth(&at, end, &far)) != 0)
	{
		if (far)
			return false;
		nletters -= weight >= libc_keys->letters;
	}
	return nletters == 0 && at == end;
}

static char *
encode_quaternary(const GsLibcKeys *libc_keys, const unsigned char *at, const unsigned char *end,
				  Size nall, bool before, char *out)
{
	uint32		nletters = 0;
	bool		far;
	uint64		weight;

	while ((weight = next_fourth(&at, end, &far)) != 0)
	{
		if (weight >= libc_keys->letters)
			nletters++;
		else
			out = code_punctuation(out, nletters, nletters == nall, weight);
	}
	*out++ = (char) (before ? ENDED_BEFORE : ENDED);
	return out;
}

/*
 * If a text's other characters than ASCII's have no weight, is the text less by its bytes than it would be
 * without them?  Only if the first is a control character, which is less than what comes
 * after it, if anything does.
 */
static bool
is_less_than_without(const char *string, Size len)
{
	for (Size i = 0; i < len; i++)
	{
		if ((unsigned char) (string[i] - FIRST_CHAR) < NCHARS)
			continue;
		if ((unsigned char) string[i] > (unsigned char) FIRST_CHAR)
			return false;
		while (++i < len)
		{
			if ((unsigned char) (string[i] - FIRST_CHAR) < NCHARS)
				return true;
		}
	}
	return false;
}

Size
gs_libc_keys_encode(const GsLibcKeys *libc_keys, const char *key, Size len,
					   const char *string, Size string_len, bool whole, char *out)
{
	const unsigned char *at = (const unsigned char *) key;
	const unsigned char *end = at + len;
	char	   *start = out;
	Size		nfirst = 0;
	StrengthProperties	second;
	StrengthProperties	third;
	uint64		weight;

	for (; (weight = next_weight(&at, end)) != 0; nfirst++)
		out = code_weight(libc_keys, weight, out);
	if (!whole)
		return out - start;
	next_level(&at, end);
	*out++ = PART_END;
	out = encode_strength(&at, end, libc_keys->second, nfirst, &second, out);
	out = encode_strength(&at, end, libc_keys->third, nfirst, &third, out);

	/*
	 * Letters that have accents, or several weights, or none on the fourth level,
	 * are not all told apart by the levels before.  Texts that agree on
	 * those are all of this kind or none: it is taken as it is.
	 */
	if (!second.all_least || third.nweights != nfirst || !fourth_is_full(libc_keys, at, end, nfirst))
	{
		memcpy(out, at, end - at);
		return out + (end - at) - start;
	}
	out = encode_quaternary(libc_keys, at, end, nfirst, is_less_than_without(string, string_len), out);
	return out - start;
}
