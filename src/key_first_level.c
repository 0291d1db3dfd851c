/*-------------------------------------------------------------------------
 *
 * key_first_level.c
 *	  The first level of libc's sort keys, densely coded.
 *
 * A sort key of glibc is a string of weights for each level, the levels
 * parted by bytes of 1; weights are written as UTF-8 writes numbers.  In
 * en_US.UTF-8:
 *
 *	  "ab"		51 61   01 02 02   01 02 02   01 01 e2 94 92 01 e2 95 9e
 *	  "aB"		51 61   01 02 02   01 02 07   01 01 e2 94 92 01 e2 ac 9a
 *	  "a-b"		51 61   01 02 02   01 02 02   01 01 e2 94 92 01 e2 95 9e 02 c7 9c
 *
 * Nearly all of it only says what accents, capitals and punctuation decide.
 * Where an engine can compare, the first level will do as a key; what that
 * leaves open is left to strcoll().
 *
 * Of the many weights there are, most texts have those of ASCII characters
 * only.  So these are numbered, and a weight becomes one byte: 2 n for the n-th of
 * them; 2 n + 1, and the weight itself, for one between it and the next.  The
 * codes order as the weights do, and their bytes have few bits that vary, which
 * is what packing wants (key_pack.h).
 *
 * The code of an ASCII text is put together from those of its characters, in
 * a twentieth of the time that strxfrm() takes.  Some characters have no weight
 * on this level, and two may have another one together (Czech "ch"), for which
 * all pairs are tried beforehand.  All this is a guess about a library whose
 * tables are not ours to read; sorts whose keys rest on it prove their order
 * (key_collation.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key_first_level.h"

#include "utils/hsearch.h"

#define FIRST_CHAR	' '
#define NCHARS		('~' - FIRST_CHAR + 1)
#define LEVEL_END	1			/* a byte that is in no weight */

struct GsFirstLevel
{
	Oid			collation;		/* hash key */
	bool		usable;
	int			nweights;
	uint64		weights[NCHARS];	/* ascending, and no two the same */
	uint64		char_weights[NCHARS];	/* 0: it has none */
	char		codes[NCHARS];
	bool		together[NCHARS][NCHARS];	/* the two have others together */
};

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

/* How many of the numbered weights are below one, and whether it is one of them. */
static inline int
count_below(const GsFirstLevel *level, uint64 weight, bool *found)
{
	int			low = 0;
	int			high = level->nweights;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (level->weights[middle] < weight)
			low = middle + 1;
		else
			high = middle;
	}
	*found = low < level->nweights && level->weights[low] == weight;
	return low;
}

/* Codes a weight; returns behind the code, which is no more than a byte longer. */
static inline char *
code_weight(const GsFirstLevel *level, uint64 weight, char *out)
{
	bool		found;
	int			nbelow = count_below(level, weight, &found);

	if (found)
	{
		*out++ = 2 * (nbelow + 1);
		return out;
	}
	*out++ = 2 * nbelow + 1;
	for (; weight != 0; weight <<= 8)
		*out++ = weight >> 56;
	return out;
}

/* ----------------------------------------------------------- made once in a session */

/* The weights of a text of one or two characters: how many, -1 if too many. */
static int
probe(char first, char second, locale_t locale, uint64 weights[2])
{
	char		terminated[3] = {first, second, '\0'};
	unsigned char key[256];
	const unsigned char *at = key;
	Size		len = locale == NULL ? strxfrm((char *) key, terminated, sizeof(key)) :
		strxfrm_l((char *) key, terminated, sizeof(key), locale);
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
add_weight(GsFirstLevel *level, uint64 weight)
{
	bool		found;
	int			place = count_below(level, weight, &found);

	if (found)
		return;
	memmove(&level->weights[place + 1], &level->weights[place],
			sizeof(uint64) * (level->nweights - place));
	level->weights[place] = weight;
	level->nweights++;
}

/* Has a pair of characters the weights that each has alone? */
static bool
is_as_alone(const GsFirstLevel *level, int i, int j, locale_t locale)
{
	uint64		weights[2];
	int			n = probe(FIRST_CHAR + i, FIRST_CHAR + j, locale, weights);
	int			at = 0;

	if (level->char_weights[i] != 0 && (at >= n || weights[at++] != level->char_weights[i]))
		return false;
	if (level->char_weights[j] != 0 && (at >= n || weights[at++] != level->char_weights[j]))
		return false;
	return at == n;
}

static bool
probe_all(GsFirstLevel *level, locale_t locale)
{
	level->nweights = 0;
	for (int i = 0; i < NCHARS; i++)
	{
		uint64		weights[2] = {0, 0};

		if (probe(FIRST_CHAR + i, '\0', locale, weights) > 1)
			weights[0] = 0;		/* as if it had none: it differs in pairs then */
		level->char_weights[i] = weights[0];
		if (weights[0] != 0)
			add_weight(level, weights[0]);
	}
	if (level->nweights == 0)
		return false;
	for (int i = 0; i < NCHARS; i++)
	{
		level->codes[i] = 0;
		if (level->char_weights[i] != 0)
			(void) code_weight(level, level->char_weights[i], &level->codes[i]);
		for (int j = 0; j < NCHARS; j++)
			level->together[i][j] = !is_as_alone(level, i, j, locale);
	}
	return true;
}

const GsFirstLevel *
gs_first_level_of(Oid collation, locale_t locale)
{
	static HTAB *known = NULL;
	GsFirstLevel *level;
	bool		found;

	if (known == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(GsFirstLevel)};

		known = hash_create("gpusort first levels", 8, &ctl, HASH_ELEM | HASH_BLOBS);
	}
	level = hash_search(known, &collation, HASH_ENTER, &found);
	if (!found)
		level->usable = probe_all(level, locale);
	return level->usable ? level : NULL;
}

/* ------------------------------------------------------------------- coding */

bool
gs_first_level_code_ascii(const GsFirstLevel *level, const char *string, Size len,
						  char *out, Size *out_len)
{
	char	   *start = out;
	unsigned int before = 0;

	for (Size i = 0; i < len; i++)
	{
		unsigned int c = (unsigned char) string[i] - (unsigned int) FIRST_CHAR;

		if (c >= NCHARS || (i > 0 && level->together[before][c]))
			return false;
		*out = level->codes[c];
		out += level->codes[c] != 0;
		before = c;
	}
	*out_len = out - start;
	return true;
}

Size
gs_first_level_code_key(const GsFirstLevel *level, const char *key, Size len, char *out)
{
	const unsigned char *at = (const unsigned char *) key;
	const unsigned char *end = at + len;
	char	   *start = out;
	uint64		weight;

	while ((weight = next_weight(&at, end)) != 0)
		out = code_weight(level, weight, out);
	return out - start;
}
