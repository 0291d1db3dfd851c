/*-------------------------------------------------------------------------
 *
 * collation_libc.c
 *	  Sort keys of the C library in a shorter code: the primary level, or all.
 *
 * A sort key of glibc has a string of weights for each of four levels, separated by bytes of 1.
 * Weights are numbers in the encoding of UTF-8.  In en_US.UTF-8:
 *
 *	  "ab"		51 5e   01 02 02   01 02 02   01 01 e2 94 92 01 e2 95 ae
 *	  "aB"		51 5e   01 02 02   01 02 07   01 01 e2 94 92 01 e2 ac 8e
 *	  "a-b"		51 5e   01 02 02   01 02 02   01 01 e2 94 92 01 c7 9c 01 e2 95 ae
 *
 * Letters and digits have a weight on each level: which letter, which accent, which case, and on
 * the fourth, where bytes of 1 separate weights, all of that again.  Punctuation has a weight on
 * the fourth level only, less than that of any letter.
 *
 * The primary weights of ASCII characters are numbered, and the code of the n-th of them is one
 * byte, 2 n; that of a weight between the n-th and the next one is 2 n + 1 and the weight itself.
 * The codes have the order of the weights, and few of their bits vary, so they pack well
 * (key_pack.h).
 *
 * A full key continues after a byte of 0, which is in no code.  The secondary and the tertiary
 * level are one byte of 2 if all their weights are the lowest (no accents, no capitals); otherwise
 * a byte of 3, the level, and 0.  Keys that are equal up to there have the same letters, so of the
 * fourth level only punctuation is left: for each punctuation character the number of letters
 * before it, and its weight.  Because punctuation sorts before letters, a smaller number sorts
 * first; but a text that ends sorts before one that continues with punctuation.
 *
 *	  "ab"		codes of a and b, 0 2 2 ENDED			of 15 bytes and the text
 *	  "aB"		codes of a and b, 0 2 3 02 07 0 ENDED
 *	  "a-b"		codes of a and b, 0 2 2 2 c7 9c ENDED	2 is 1 letter
 *
 * Characters without any weight are compared by the text, which follows the key if there are
 * other characters than ASCII.  Whether such a text sorts before the same text without them
 * depends on where the first of them is.
 *
 * Two characters may be a contraction, with other weights than each has alone (Czech "ch"), so all
 * pairs are tested beforehand.  glibc documents none of this, and its tables cannot be read, so the
 * order by these keys is verified.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "collation/collation_libc.h"

#include "mb/pg_wchar.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#define FIRST_CHAR	' '
#define NCHARS		('~' - FIRST_CHAR + 1)

/* The byte of a key that ends a level; it is in no weight. */
#define LEVEL_END	1

/* Bytes of a code after the primary level. */
#define PART_END	0
#define ALL_LOWEST	2
#define NOT_LOWEST	3

/* Bytes in its last part; up to MOST_LETTERS, the number of letters plus one. */
#define MOST_LETTERS	0xE0
#define MANY_LETTERS	0xE1	/* 4 bytes follow */
#define ENDED_BEFORE	0xEF
#define ENDED		0xF0
#define AFTER_ALL	0xF1

typedef struct CharWeights
{
	uint64		primary;		/* 0: none, and none on the next two levels */
	uint64		tertiary;
	uint64		quaternary;
} CharWeights;

/*
 * Characters of two bytes in UTF-8, U+0080 to U+07FF, and after them U+2000 to U+203F, which are
 * dashes and quotation marks.  The weights of combining marks depend on what is before them.
 */
#define FIRST_WIDE		0x80
#define NWIDE			(0x800 - FIRST_WIDE)
#define NWIDE_MARKS		0x40
#define NLETTERS		26
#define FIRST_COMBINING	0x300
#define LAST_COMBINING	0x36F

typedef enum WideState
{
	WIDE_NOT_LOOKED_UP,
	WIDE_HAS_CODE,
	WIDE_HAS_NONE				/* only strxfrm() knows its weights */
} WideState;

/* The primary level of such a character. */
typedef struct WideCode
{
	uint8		state;			/* a WideState */
	uint8		nbytes;
	char		bytes[6];
	uint32		after;			/* letters after which it has another one: a is bit 0 */
	uint32		before;			/* letters before which it has another one */
} WideCode;

struct GsLibcKeys
{
	Oid			collation;		/* hash key */
	locale_t	locale;			/* NULL: the process's */
	bool		usable;			/* the primary level is as expected */
	bool		full;			/* the others too */
	int			nweights;
	uint64		weights[NCHARS];	/* primary: ascending, no two the same */
	uint64		secondary;		/* of all characters that have one */
	uint64		tertiary;		/* the lowest */
	uint64		letters;		/* the lowest quaternary weight of a letter */
	CharWeights chars[NCHARS];
	char		codes[NCHARS];	/* of primary weights; 0: none */
	char		tertiary_codes[NCHARS];	/* the tertiary weights, as bytes */
	bool		simple[NCHARS]; /* all its weights are in chars[] */
	unsigned char kinds[NCHARS];	/* of a simple one: KIND_ bits */

	/* [previous][character]: is the pair a contraction, on the primary or any level? */
	bool		contracts_primary[NCHARS + 1][NCHARS];
	bool		contracts[NCHARS + 1][NCHARS];

	WideCode   *wide;			/* NULL: the encoding is not UTF-8 */
};

/* Before the first character.  contracts[NO_CHAR][] is true for characters that are not simple. */
#define NO_CHAR		NCHARS

#define KIND_PUNCTUATION	1
#define KIND_NOT_LOWEST		2	/* has another tertiary weight than the lowest */

/* ------------------------------------------------------------------ weights */

/* The next weight of a level, as a number that compares as its bytes do; 0 at the end of it. */
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

/* Skips the end of a level. */
static inline void
next_level(const unsigned char **at, const unsigned char *end)
{
	if (*at < end)
		(*at)++;
}

/* The number of numbered weights below a weight, and whether it is one of them. */
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

/* Writes the code of a primary weight; returns its end.  It is at most a byte longer. */
static inline char *
code_weight(const GsLibcKeys *libc_keys, uint64 weight, char *out)
{
	bool		found;
	int			nbelow = count_below(libc_keys, weight, &found);

	*out++ = 2 * nbelow + (found ? 2 : 1);
	return found ? out : put_weight(out, weight);
}

/* Writes the code of a punctuation character that has nletters letters before it. */
static inline char *
code_punctuation(char *out, uint32 nletters, bool after_all, uint64 weight)
{
	if (after_all)
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

/* --------------------------------------------- tables, made once in a session */

static Size
transform(const char *string, unsigned char *key, Size size, locale_t locale)
{
	return locale == NULL ? strxfrm((char *) key, string, size) :
		strxfrm_l((char *) key, string, size, locale);
}

/* The primary weights of one or two characters.  Returns how many, -1 if too many. */
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

/* Does a pair of characters have the primary weights that each has alone? */
static bool
is_context_free(const GsLibcKeys *libc_keys, int i, int j, locale_t locale)
{
	uint64		weights[2];
	int			n = probe(FIRST_CHAR + i, FIRST_CHAR + j, locale, weights);
	int			at = 0;

	if (libc_keys->chars[i].primary != 0 &&
		(at >= n || weights[at++] != libc_keys->chars[i].primary))
		return false;
	if (libc_keys->chars[j].primary != 0 &&
		(at >= n || weights[at++] != libc_keys->chars[j].primary))
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
			weights[0] = 0;		/* as if it had none; all its pairs are contractions */
		libc_keys->chars[i].primary = weights[0];
		if (weights[0] != 0)
			add_weight(libc_keys, weights[0]);
	}
	if (libc_keys->nweights == 0)
		return false;
	for (int i = 0; i < NCHARS; i++)
	{
		if (libc_keys->chars[i].primary != 0)
			(void) code_weight(libc_keys, libc_keys->chars[i].primary, &libc_keys->codes[i]);
		for (int j = 0; j < NCHARS; j++)
			libc_keys->contracts_primary[i][j] = !is_context_free(libc_keys, i, j, locale);
	}
	return true;
}

/* Reads the weights of one character from its key.  Returns false if they are not as expected. */
static bool
read_weights(GsLibcKeys *libc_keys, int i, const unsigned char *key, Size len)
{
	const unsigned char *at = key;
	const unsigned char *end = key + len;
	CharWeights *weights = &libc_keys->chars[i];
	uint64		secondary;

	if (next_weight(&at, end) != weights->primary)
		return false;
	next_level(&at, end);
	secondary = next_weight(&at, end);
	next_level(&at, end);
	weights->tertiary = next_weight(&at, end);
	next_level(&at, end);
	next_level(&at, end);
	weights->quaternary = next_weight(&at, end);
	if (at != end || weights->quaternary == 0 || (weights->primary == 0) != (secondary == 0) ||
		(weights->primary == 0) != (weights->tertiary == 0) || weights->tertiary << 8 != 0)
		return false;
	if (weights->primary != 0)
	{
		if (libc_keys->secondary == 0)
			libc_keys->secondary = secondary;
		if (libc_keys->tertiary == 0 || weights->tertiary < libc_keys->tertiary)
			libc_keys->tertiary = weights->tertiary;
	}
	return secondary == 0 || secondary == libc_keys->secondary;
}

/* The expected key of two simple characters. */
static Size
make_key(const GsLibcKeys *libc_keys, const int chars[2], unsigned char *key)
{
	char	   *out = (char *) key;

	for (int i = 0; i < 2; i++)
		out = put_weight(out, libc_keys->chars[chars[i]].primary);
	*out++ = LEVEL_END;
	for (int i = 0; i < 2; i++)
		out = put_weight(out, libc_keys->chars[chars[i]].primary == 0 ? 0 : libc_keys->secondary);
	*out++ = LEVEL_END;
	for (int i = 0; i < 2; i++)
		out = put_weight(out, libc_keys->chars[chars[i]].tertiary);
	*out++ = LEVEL_END;
	for (int i = 0; i < 2; i++)
	{
		*out++ = LEVEL_END;
		out = put_weight(out, libc_keys->chars[chars[i]].quaternary);
	}
	return out - (char *) key;
}

/* Do two simple characters have other weights together than each alone? */
static bool
is_contraction(const GsLibcKeys *libc_keys, int i, int j, locale_t locale)
{
	const int	chars[2] = {i, j};
	char		terminated[3] = {FIRST_CHAR + i, FIRST_CHAR + j, '\0'};
	unsigned char key[256];
	unsigned char expected[64];
	Size		len = transform(terminated, key, sizeof(key), locale);

	return len != make_key(libc_keys, chars, expected) || memcmp(key, expected, len) != 0;
}

/* Do two simple characters have different codes? */
static bool
differ(const CharWeights *a, const CharWeights *b)
{
	return a->primary != b->primary ||
		(a->primary == 0 ? a->quaternary != b->quaternary : a->tertiary != b->tertiary);
}

/* Fails unless the quaternary weights of punctuation are below those of letters. */
static bool
probe_full(GsLibcKeys *libc_keys, locale_t locale)
{
	uint64		max_punctuation = 0;

	libc_keys->letters = PG_UINT64_MAX;
	for (int i = 0; i < NCHARS; i++)
	{
		char		terminated[2] = {FIRST_CHAR + i, '\0'};
		unsigned char key[256];
		Size		len = transform(terminated, key, sizeof(key), locale);

		libc_keys->simple[i] = len < sizeof(key) && read_weights(libc_keys, i, key, len);
		for (int j = 0; j < i && libc_keys->simple[i]; j++)
			libc_keys->simple[i] =
				!libc_keys->simple[j] || differ(&libc_keys->chars[i], &libc_keys->chars[j]);
		if (!libc_keys->simple[i])
			continue;
		if (libc_keys->chars[i].primary != 0)
			libc_keys->letters = Min(libc_keys->letters, libc_keys->chars[i].quaternary);
		else
			max_punctuation = Max(max_punctuation, libc_keys->chars[i].quaternary);
	}
	if (libc_keys->secondary == 0 || max_punctuation >= libc_keys->letters)
		return false;
	for (int i = 0; i < NCHARS; i++)
	{
		libc_keys->kinds[i] = libc_keys->chars[i].primary == 0 ? KIND_PUNCTUATION :
			libc_keys->chars[i].tertiary != libc_keys->tertiary ? KIND_NOT_LOWEST : 0;
		libc_keys->tertiary_codes[i] = libc_keys->chars[i].tertiary >> 56;
		libc_keys->contracts[NO_CHAR][i] = !libc_keys->simple[i];
		for (int j = 0; j < NCHARS; j++)
			libc_keys->contracts[i][j] = !libc_keys->simple[i] || !libc_keys->simple[j] ||
				is_contraction(libc_keys, i, j, locale);
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
		libc_keys->locale = locale;
		if (GetDatabaseEncoding() == PG_UTF8)
			libc_keys->wide = MemoryContextAllocZero(TopMemoryContext,
													 sizeof(WideCode) * (NWIDE + NWIDE_MARKS));
		libc_keys->usable = probe_primary(libc_keys, locale);
		libc_keys->full = libc_keys->usable && probe_full(libc_keys, locale);
	}
	return libc_keys->usable ? libc_keys : NULL;
}

bool
gs_libc_keys_are_full(const GsLibcKeys *libc_keys)
{
	return libc_keys->full;
}

/* ------------------------------------------------- characters beyond ASCII */

/* Writes the code of the primary level of a text, which is short; NULL if it is too long. */
static char *
code_primary(const GsLibcKeys *libc_keys, const char *string, char *out, const char *end)
{
	unsigned char key[256];
	const unsigned char *at = key;
	Size		len = transform(string, key, sizeof(key), libc_keys->locale);
	uint64		weight;

	if (len >= sizeof(key))
		return NULL;
	while ((weight = next_weight(&at, key + len)) != 0)
	{
		char		code[1 + sizeof(uint64)];
		const int	nbytes = code_weight(libc_keys, weight, code) - code;

		if (nbytes > end - out)
			return NULL;
		memcpy(out, code, nbytes);
		out += nbytes;
	}
	return out;
}

/* Does a text of a letter and a wide character, in any order, have another code than both alone? */
static bool
contracts_with(const GsLibcKeys *libc_keys, const char *string, char letter, bool letter_first,
			   const WideCode *code)
{
	const char	of_letter = libc_keys->codes[letter - FIRST_CHAR];
	char		found[2 * sizeof(code->bytes)];
	const char *end = code_primary(libc_keys, string, found, found + sizeof(found));

	return end == NULL || of_letter == 0 || end - found != 1 + code->nbytes ||
		found[letter_first ? 0 : code->nbytes] != of_letter ||
		memcmp(found + (letter_first ? 1 : 0), code->bytes, code->nbytes) != 0;
}

static pg_noinline void
look_up_wide(const GsLibcKeys *libc_keys, const char *at, int nbytes, WideCode *code)
{
	char		string[8] = {0};
	char	   *character = string + 1;
	char	   *end;

	memcpy(character, at, nbytes);
	end = code_primary(libc_keys, character, code->bytes, code->bytes + sizeof(code->bytes));
	code->state = end == NULL ? WIDE_HAS_NONE : WIDE_HAS_CODE;
	code->nbytes = end == NULL ? 0 : end - code->bytes;
	for (int i = 0; i < NLETTERS && end != NULL; i++)
	{
		const char	letter = 'a' + i;

		string[0] = letter;
		character[nbytes] = '\0';
		if (contracts_with(libc_keys, string, letter, true, code))
			code->after |= 1U << i;
		character[nbytes] = letter;
		if (contracts_with(libc_keys, character, letter, false, code))
			code->before |= 1U << i;
	}
}

/* The bit of an ASCII letter; 0 of another character.  Capitals have the same contractions. */
static inline uint32
bit_of_letter(unsigned int c)
{
	const unsigned int letter = ((c + FIRST_CHAR) | ('a' ^ 'A')) - 'a';

	return letter < NLETTERS ? 1U << letter : 0;
}

/* The code of the character that begins there, and its bytes; NULL if strxfrm() is needed. */
static inline const WideCode *
wide_code(const GsLibcKeys *libc_keys, const char *at, Size len, int *nbytes)
{
	const unsigned char *bytes = (const unsigned char *) at;
	WideCode   *code;

	if (libc_keys->wide == NULL)
		return NULL;
	if (len >= 2 && bytes[0] >= 0xC2 && bytes[0] < 0xE0)
	{
		const unsigned int c = (bytes[0] & 0x1F) << 6 | (bytes[1] & 0x3F);

		if (c >= FIRST_COMBINING && c <= LAST_COMBINING)
			return NULL;
		*nbytes = 2;
		code = &libc_keys->wide[c - FIRST_WIDE];
	}
	else if (len >= 3 && bytes[0] == 0xE2 && bytes[1] == 0x80)
	{
		*nbytes = 3;
		code = &libc_keys->wide[NWIDE + (bytes[2] & 0x3F)];
	}
	else
		return NULL;
	if (unlikely(code->state == WIDE_NOT_LOOKED_UP))
		look_up_wide(libc_keys, at, *nbytes, code);
	return code->state == WIDE_HAS_CODE ? code : NULL;
}

/* ------------------------------------- the code of a text, without strxfrm() */

Size
gs_libc_keys_max_text_bytes(Size len, bool full)
{
	/* a letter has 2 bytes, punctuation 5 and a weight of 6; a wide character, 6 primary ones */
	return full ? 11 * len + 16 : 3 * len;
}

/* Writes the tertiary weights of the characters that have a primary one. */
static inline char *
encode_ascii_tertiary(const GsLibcKeys *libc_keys, const char *string, Size len, char *out)
{
	for (Size i = 0; i < len; i++)
	{
		const int	c = string[i] - FIRST_CHAR;

		*out = libc_keys->tertiary_codes[c];
		out += libc_keys->codes[c] != 0;
	}
	*out++ = PART_END;
	return out;
}

/* Writes the quaternary weights of the others, which are punctuation. */
static inline char *
encode_ascii_punctuation(const GsLibcKeys *libc_keys, const char *string, Size len, char *out)
{
	Size		letters_end = len;
	uint32		nletters = 0;

	while (letters_end > 0 && libc_keys->codes[string[letters_end - 1] - FIRST_CHAR] == 0)
		letters_end--;
	for (Size i = 0; i < len; i++)
	{
		const int	c = string[i] - FIRST_CHAR;

		if (libc_keys->codes[c] != 0)
			nletters++;
		else
			out = code_punctuation(out, nletters, i >= letters_end, libc_keys->chars[c].quaternary);
	}
	return out;
}

/* Writes the second to the fourth level. */
static char *
encode_ascii_rest(const GsLibcKeys *libc_keys, const char *string, Size len, unsigned int kinds,
				  char *out)
{
	const bool	any_tertiary = kinds & KIND_NOT_LOWEST;

	*out++ = PART_END;
	*out++ = ALL_LOWEST;
	*out++ = any_tertiary ? NOT_LOWEST : ALL_LOWEST;
	if (any_tertiary)
		out = encode_ascii_tertiary(libc_keys, string, len, out);
	if (kinds & KIND_PUNCTUATION)
		out = encode_ascii_punctuation(libc_keys, string, len, out);
	*out++ = (char) ENDED;
	return out;
}

bool
gs_libc_keys_encode_text(const GsLibcKeys *libc_keys, const char *string, Size len,
						 bool full, Size most, char *out, Size *out_len)
{
	const bool	(*contraction)[NCHARS] = full ? libc_keys->contracts : libc_keys->contracts_primary;
	char	   *start = out;
	unsigned int before = NO_CHAR;
	unsigned int kinds = 0;
	const WideCode *wide = NULL;	/* the previous character, if it is one */
	bool		any_wide = false;

	for (Size i = 0; i < len && out - start <= most; i++)
	{
		unsigned int c = (unsigned char) string[i] - (unsigned int) FIRST_CHAR;

		if (likely(c < NCHARS))
		{
			char		code = libc_keys->codes[c];

			if (contraction[before][c] || (wide != NULL && (wide->before & bit_of_letter(c)) != 0))
				return false;
			*out = code;
			out += code != 0;
			kinds |= libc_keys->kinds[c];
			before = c;
			wide = NULL;
		}
		else
		{
			int			nbytes;

			wide = wide_code(libc_keys, string + i, len - i, &nbytes);
			if (wide == NULL || (wide->after & bit_of_letter(before)) != 0)
				return false;
			memcpy(out, wide->bytes, sizeof(wide->bytes));
			out += wide->nbytes;
			i += nbytes - 1;
			before = NO_CHAR;
			any_wide = true;
		}
	}
	if (full && out - start <= most)
	{
		if (any_wide)
			return false;
		out = encode_ascii_rest(libc_keys, string, len, kinds, out);
	}
	*out_len = out - start;
	return true;
}

/* --------------------------------------------- the code of a key of strxfrm() */

Size
gs_libc_keys_max_key_bytes(Size len, bool full)
{
	/* a primary weight of 1 byte can become 2; a quaternary weight and its separator 11 */
	return full ? 6 * len + 16 : 2 * len;
}

/* The weights of a level. */
typedef struct StrengthProperties
{
	Size		nweights;
	bool		all_lowest;
} StrengthProperties;

/* Writes the secondary or tertiary level, which should have a weight for each primary one. */
static char *
encode_strength(const unsigned char **at, const unsigned char *end, uint64 lowest, Size nprimary,
				StrengthProperties *properties, char *out)
{
	const unsigned char *start = *at;
	uint64		weight;

	*properties = (StrengthProperties)
	{
		.all_lowest = true
	};
	for (; (weight = next_weight(at, end)) != 0; properties->nweights++)
		properties->all_lowest &= weight == lowest;
	properties->all_lowest &= properties->nweights == nprimary;
	if (properties->all_lowest)
		*out++ = ALL_LOWEST;
	else
	{
		*out++ = NOT_LOWEST;
		memcpy(out, start, *at - start);
		out += *at - start;
		*out++ = PART_END;
	}
	next_level(at, end);
	return out;
}

/*
 * Reads the next quaternary weight.  Before it is its distance from the previous one,
 * written as a weight: 1, unless there are characters without a quaternary weight
 * between them; then *far becomes true.
 */
static inline uint64
next_quaternary(const unsigned char **at, const unsigned char *end, bool *far)
{
	*far = *at < end && **at != LEVEL_END;
	if (*at < end)
		(*at)++;
	return next_weight(at, end);
}

/* Do all letters have a quaternary weight? */
static bool
quaternary_is_full(const GsLibcKeys *libc_keys, const unsigned char *at, const unsigned char *end,
				   Size nletters)
{
	bool		far;
	uint64		weight;

	while ((weight = next_quaternary(&at, end, &far)) != 0)
	{
		if (far)
			return false;
		nletters -= weight >= libc_keys->letters;
	}
	return nletters == 0 && at == end;
}

/* Writes the punctuation of the quaternary level. */
static char *
encode_quaternary(const GsLibcKeys *libc_keys, const unsigned char *at, const unsigned char *end,
				  Size nall, bool before, char *out)
{
	uint32		nletters = 0;
	bool		far;
	uint64		weight;

	while ((weight = next_quaternary(&at, end, &far)) != 0)
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
 * If the characters of a text that are not ASCII have no weight, does the text sort
 * by its bytes before the same text without them?  Only if the first of them is a
 * control character, which is less than what follows it, and something follows.
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
					const char *string, Size string_len, bool full, char *out)
{
	const unsigned char *at = (const unsigned char *) key;
	const unsigned char *end = at + len;
	char	   *start = out;
	Size		nprimary = 0;
	StrengthProperties secondary;
	StrengthProperties tertiary;
	uint64		weight;

	for (; (weight = next_weight(&at, end)) != 0; nprimary++)
		out = code_weight(libc_keys, weight, out);
	if (!full)
		return out - start;
	next_level(&at, end);
	*out++ = PART_END;
	out = encode_strength(&at, end, libc_keys->secondary, nprimary, &secondary, out);
	out = encode_strength(&at, end, libc_keys->tertiary, nprimary, &tertiary, out);

	/*
	 * Letters with accents, with several weights or without a quaternary weight can be equal on
	 * the previous levels.  Of texts that are equal on those, all or none have such letters, so
	 * the quaternary level is copied as it is.
	 */
	if (!secondary.all_lowest || tertiary.nweights != nprimary ||
		!quaternary_is_full(libc_keys, at, end, nprimary))
	{
		memcpy(out, at, end - at);
		return out + (end - at) - start;
	}
	out = encode_quaternary(libc_keys, at, end, nprimary, is_less_than_without(string, string_len),
							out);
	return out - start;
}
