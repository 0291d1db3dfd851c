/*-------------------------------------------------------------------------
 *
 * key_dictionary.c
 *	  Codes for texts with few distinct values.
 *
 * A column of states or countries has few distinct texts, each in many rows.
 * PostgreSQL's sort calls strcoll() for few pairs of them, because texts with the same
 * bytes are equal.  A key of strxfrm() for each row, comparing ties, and verifying the
 * order (key_collation.c) cost more than that.  A dictionary costs a hash and a
 * memcmp() for each row: strcoll() is called only for a new text, in a binary search.
 *
 * The binary search compares a new text with both its neighbors, so all neighbors are
 * in the order of the comparator and the codes need no verification.  The code is a
 * number between those of the neighbors:
 *
 *	  texts in order	'HIGH'	'LOW'	'MEDIUM'	'URGENT'
 *	  order of arrival	3		4		1			2
 *	  code				1/4		9/32	1/2			9/16	of the range of codes
 *
 * So a code never changes, and rows that are on disk or on a device keep theirs.  Texts
 * that arrive in order would halve the gap each time, so a text next to the previous one
 * uses only an eighth.  If a gap is too small, or there are too many texts, the row
 * cannot be encoded, and all rows are read again with other keys (sort/sort_reload.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "collation/key_dictionary.h"
#include "pg_compat.h"

#include "common/hashfn.h"
#include "utils/builtins.h"
#include "utils/sortsupport.h"

/* Places of the hash table; most are free. */
#define NPLACES		(4 * GS_DICTIONARY_TEXTS)

/* All codes are below.  They are sums of few powers of two, so few of their bits vary. */
#define CODES_END	(UINT64CONST(1) << 63)

typedef struct DictionaryEntry
{
	uint32		hash;
	uint32		len;
	const char *data;
	Datum		value;			/* contains the data, for the comparator */
	uint64		code;
} DictionaryEntry;

struct GsKeyDictionary
{
	SortSupportData support;
	bool		is_name;
	int			ntexts;
	uint16		places[NPLACES];	/* by hash: index in texts, plus 1; 0:
									 * free */
	uint16		order[GS_DICTIONARY_TEXTS]; /* indexes in texts, in order */
	DictionaryEntry texts[GS_DICTIONARY_TEXTS]; /* in order of arrival */
};

GsKeyDictionary *
gs_key_dictionary_create(Oid sort_operator, Oid collation, bool is_name)
{
	GsKeyDictionary *dictionary = palloc0(sizeof(GsKeyDictionary));
	SortSupport support = &dictionary->support;

	support->ssup_cxt = CurrentMemoryContext;
	support->ssup_collation = collation;
	PrepareSortSupportFromOrderingOp(sort_operator, support);
	dictionary->is_name = is_name;
	return dictionary;
}

int
gs_key_dictionary_count(const GsKeyDictionary *dictionary)
{
	return dictionary->ntexts;
}

/* Copies a text to a value of its type. */
static void
make_value(const GsKeyDictionary *dictionary, DictionaryEntry *entry, const char *string)
{
	MemoryContext old = MemoryContextSwitchTo(dictionary->support.ssup_cxt);

	if (dictionary->is_name)
	{
		Name		name = palloc0(sizeof(NameData));

		memcpy(NameStr(*name), string, entry->len);
		entry->data = NameStr(*name);
		entry->value = NameGetDatum(name);
	}
	else
	{
		struct varlena *copy = cstring_to_text_with_len(string, entry->len);

		entry->data = VARDATA(copy);
		entry->value = PointerGetDatum(copy);
	}
	MemoryContextSwitchTo(old);
}

/* The number of texts that sort before a new one.  Compares it with both its neighbors. */
static int
count_before(GsKeyDictionary *dictionary, const DictionaryEntry *entry)
{
	int			low = 0;
	int			high = dictionary->ntexts;

	while (low < high)
	{
		int			middle = (low + high) / 2;
		const DictionaryEntry *other = &dictionary->texts[dictionary->order[middle]];

		if (dictionary->support.comparator(other->value, entry->value, &dictionary->support) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A code for a text that has nbefore texts before it; 0 if there is none. */
static uint64
choose_code(const GsKeyDictionary *dictionary, int nbefore)
{
	const int	last = dictionary->ntexts - 1;	/* the previous one to arrive */
	const uint16 *next = &dictionary->order[nbefore];
	const bool	is_first = nbefore == 0;
	const bool	is_last = nbefore == dictionary->ntexts;
	const uint64 low = is_first ? 0 : dictionary->texts[next[-1]].code;
	const uint64 high = is_last ? CODES_END : dictionary->texts[next[0]].code;
	const uint64 gap = high - low;
	uint64		step = gap / 2;

	if (!is_first && next[-1] == last)
		step = gap / 8;
	else if (!is_last && next[0] == last)
		step = gap - gap / 8;
	return step == 0 || step == gap ? 0 : low + step;
}

/* Adds a text at a place of the hash table.  Returns false if there is no code for it. */
static bool
add_text(GsKeyDictionary *dictionary, int place, uint32 hash, const char *string, Size len,
		 uint64 *code)
{
	const int	ntexts = dictionary->ntexts;
	DictionaryEntry *entry = &dictionary->texts[ntexts];
	int			nbefore;

	if (ntexts == GS_DICTIONARY_TEXTS)
		return false;
	entry->hash = hash;
	entry->len = len;
	make_value(dictionary, entry, string);
	nbefore = count_before(dictionary, entry);
	entry->code = choose_code(dictionary, nbefore);
	if (entry->code == 0)
		return false;
	memmove(&dictionary->order[nbefore + 1], &dictionary->order[nbefore],
			sizeof(dictionary->order[0]) * (ntexts - nbefore));
	dictionary->order[nbefore] = ntexts;
	dictionary->places[place] = ++dictionary->ntexts;
	*code = entry->code;
	return true;
}

bool
gs_key_dictionary_code(GsKeyDictionary *dictionary, const char *string, Size len, uint64 *code)
{
	const uint32 hash = hash_bytes((const unsigned char *) string, len);
	int			place = hash % NPLACES;

	while (dictionary->places[place] != 0)
	{
		const DictionaryEntry *entry = &dictionary->texts[dictionary->places[place] - 1];

		if (entry->hash == hash && entry->len == len && memcmp(entry->data, string, len) == 0)
		{
			*code = entry->code;
			return true;
		}
		place = (place + 1) % NPLACES;
	}
	return add_text(dictionary, place, hash, string, len, code);
}
