/*-------------------------------------------------------------------------
 *
 * key_dictionary.c
 *	  Codes for columns with few distinct values.
 *
 * A value is looked up by a hash and a memcmp() of its bytes as they are stored.  The comparator is
 * called only for a value that is stored as none before, in a binary search, which compares it with
 * both its neighbors.  The code is that of an equal value, or a number between those of the
 * neighbors:
 *
 *	  values in order	'HIGH'	'LOW'	'MEDIUM'	'URGENT'
 *	  order of arrival	3		4		1			2
 *	  code				1/4		9/32	1/2			9/16	of the range of codes
 *
 * Values that arrive in order would halve the gap each time, so a value next to the previous one
 * uses only an eighth.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_dictionary.h"
#include "key/key_distinct.h"
#include "key/key_sortsupport.h"
#include "pg_compat.h"

#include "access/detoast.h"
#include "utils/datum.h"

/* Places of the hash table; most are free. */
#define NPLACES		(4 * GS_DICTIONARY_VALUES)

/* All codes are below.  They are sums of few powers of two, so few of their bits vary. */
#define CODES_END	(UINT64CONST(1) << 63)

typedef struct DictionaryEntry
{
	uint32		hash;
	bool		toasted;
	Size		nbytes;
	const char *bytes;			/* as they are stored */
	Datum		value;			/* for the comparator: detoasted */
	uint64		code;
} DictionaryEntry;

struct GsKeyDictionary
{
	SortSupportData support;
	int16		attlen;
	Size		bytes_left;		/* for other values */
	int			nvalues;
	uint16		places[NPLACES];	/* by hash: index in values, plus 1; 0: free */
	uint16		order[GS_DICTIONARY_VALUES];	/* indexes in values, in order */
	DictionaryEntry values[GS_DICTIONARY_VALUES];	/* in order of arrival */
};

GsKeyDictionary *
gs_key_dictionary_create(const GsSortColumn *column, int16 attlen, Size max_bytes)
{
	GsKeyDictionary *dictionary = palloc0(sizeof(GsKeyDictionary));

	gs_key_sortsupport_prepare(&dictionary->support, column, false);
	dictionary->attlen = attlen;
	dictionary->bytes_left = max_bytes;
	return dictionary;
}

int
gs_key_dictionary_count(const GsKeyDictionary *dictionary)
{
	return dictionary->nvalues;
}

/* Copies a value.  Returns false if it takes too much memory. */
static bool
copy_value(GsKeyDictionary *dictionary, DictionaryEntry *entry, Datum value)
{
	const int16 attlen = dictionary->attlen;
	const bool	extended = attlen == -1 && VARATT_IS_EXTENDED(DatumGetPointer(value));
	const Size	nbytes =
		datumGetSize(value, false, attlen) + (extended ? toast_raw_datum_size(value) : 0);

	if (nbytes > dictionary->bytes_left)
		return false;
	dictionary->bytes_left -= nbytes;
	value = datumCopy(value, false, attlen);
	entry->toasted = gs_is_toasted(attlen, value);
	entry->bytes = gs_stored_bytes(attlen, value, &entry->nbytes);
	entry->value = extended ? PointerGetDatum(PG_DETOAST_DATUM(value)) : value;
	return true;
}

/* The number of values that sort before a new one; *equal: it is equal to the next one. */
static int
count_before(GsKeyDictionary *dictionary, const DictionaryEntry *entry, bool *equal)
{
	int			low = 0;
	int			high = dictionary->nvalues;

	*equal = false;
	while (low < high)
	{
		const int	middle = (low + high) / 2;
		const DictionaryEntry *other = &dictionary->values[dictionary->order[middle]];
		const int	order = dictionary->support.comparator(other->value, entry->value,
														   &dictionary->support);

		if (order < 0)
			low = middle + 1;
		else
		{
			high = middle;
			*equal = order == 0;
		}
	}
	return low;
}

/* A code for a value that has nbefore values before it; 0 if there is none. */
static uint64
choose_code(const GsKeyDictionary *dictionary, int nbefore)
{
	const int	last = dictionary->nvalues - 1; /* the previous one to arrive */
	const uint16 *next = &dictionary->order[nbefore];
	const bool	is_first = nbefore == 0;
	const bool	is_last = nbefore == dictionary->nvalues;
	const uint64 low = is_first ? 0 : dictionary->values[next[-1]].code;
	const uint64 high = is_last ? CODES_END : dictionary->values[next[0]].code;
	const uint64 gap = high - low;
	uint64		step = gap / 2;

	if (!is_first && next[-1] == last)
		step = gap / 8;
	else if (!is_last && next[0] == last)
		step = gap - gap / 8;
	return step == 0 || step == gap ? 0 : low + step;
}

/* Adds a value at a place of the hash table.  Returns false if there is no code for it. */
static pg_noinline bool
add_value(GsKeyDictionary *dictionary, int place, uint32 hash, Datum value)
{
	const int	nvalues = dictionary->nvalues;
	DictionaryEntry *entry = &dictionary->values[nvalues];
	bool		equal;
	int			nbefore;

	if (nvalues == GS_DICTIONARY_VALUES || !copy_value(dictionary, entry, value))
		return false;
	nbefore = count_before(dictionary, entry, &equal);
	entry->hash = hash;
	entry->code = equal ? dictionary->values[dictionary->order[nbefore]].code :
		choose_code(dictionary, nbefore);
	if (entry->code == 0)
		return false;
	memmove(&dictionary->order[nbefore + 1], &dictionary->order[nbefore],
			sizeof(dictionary->order[0]) * (nvalues - nbefore));
	dictionary->order[nbefore] = nvalues;
	dictionary->places[place] = ++dictionary->nvalues;
	return true;
}

bool
gs_key_dictionary_code(GsKeyDictionary *dictionary, Datum value, uint64 *code)
{
	const bool	toasted = gs_is_toasted(dictionary->attlen, value);
	Size		nbytes;
	const char *bytes = gs_stored_bytes(dictionary->attlen, value, &nbytes);
	const uint32 hash = gs_stored_hash(bytes, nbytes);
	int			place = hash % NPLACES;
	int			number;
	bool		added;
	MemoryContext old;

	while ((number = dictionary->places[place]) != 0)
	{
		const DictionaryEntry *entry = &dictionary->values[number - 1];

		if (entry->hash == hash && entry->nbytes == nbytes && entry->toasted == toasted &&
			memcmp(entry->bytes, bytes, nbytes) == 0)
		{
			*code = entry->code;
			return true;
		}
		place = (place + 1) % NPLACES;
	}
	/* the comparator may keep memory there, too */
	old = MemoryContextSwitchTo(dictionary->support.ssup_cxt);
	added = add_value(dictionary, place, hash, value);
	MemoryContextSwitchTo(old);
	if (!added)
		return false;
	*code = dictionary->values[dictionary->nvalues - 1].code;
	return true;
}
