/*-------------------------------------------------------------------------
 *
 * key_collation.c
 *	  Keys of text under a collation: bytes whose order is the collation's.
 *
 *	  collation			key										verification
 *	  C, POSIX			the text								no
 *	  ICU				sort key, 0, text						no
 *	  nondeterministic	sort key								no
 *	  ICU, not full		primary level of the sort key			no
 *	  ICU, disagreeing	as above								of neighbors
 *	  libc				result of strxfrm(), 0, text			of neighbors
 *	  libc, not full	its primary level						of neighbors
 *	  libc's C.UTF-8	the text								of neighbors
 *
 * The text after the sort key is PostgreSQL's tie-break.  Neither sort keys nor texts have zero
 * bytes, so no two keys differ only in zeros at their ends (nul_free in key_layout.h).
 *
 * Only its name says that C.UTF-8 orders by bytes, so such sorts are verified, too; but comparing
 * bytes is ten times as fast as strcoll().
 *
 * A key takes 0.5 us for 32 letters, longer than to sort it.  So the key of the previous text is
 * kept in case the next one is equal.
 *
 * ICU's functions are weak references to those that the server is linked with, whose names contain
 * ICU's version.  To link this library with ICU could load another version, which cannot use the
 * server's collators.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "collation/collation_icu.h"
#include "collation/collation_libc.h"
#include "collation/key_collation.h"
#include "guc.h"
#include "pg_compat.h"

#include "catalog/pg_collation.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#include "utils/syscache.h"

#ifdef USE_ICU
#include <unicode/ucol.h>
#include <unicode/ustring.h>

extern __typeof__(ucol_getSortKey) ucol_getSortKey __attribute__((weak));
extern __typeof__(u_strFromUTF8) u_strFromUTF8 __attribute__((weak));
#endif

/* Longer texts and keys cannot be encoded; the length of a tail is below 2^30 (key_pack.h). */
#define MAX_STRING_BYTES	((Size) 1 << 26)
#define MAX_KEY_BYTES	((Size) 1 << 30)

/* The code of two weights at most (collation_libc.c): 7 bytes each. */
#define CUT_BYTES		14

/* A buffer that grows, and loses its contents then. */
typedef struct ByteBuffer
{
	MemoryContext context;
	char	   *data;
	Size		size;
} ByteBuffer;

struct GsKeyCollation
{
	bool		deterministic;
	locale_t	libc_locale;	/* NULL: the process's own */
	bool		full;			/* else the key has the primary level only */
	const GsLibcKeys *libc_keys;	/* encodes keys of libc; NULL: none does */
	ByteBuffer	transformed;	/* the result of strxfrm() */
#ifdef USE_ICU
	UCollator  *collator;		/* NULL: of libc */
	GsIcuKeys  *icu_keys;		/* NULL: ICU makes all keys */
	ByteBuffer	utf16;			/* the text for ICU */
#endif
	ByteBuffer	terminated;		/* the text for libc */
	ByteBuffer	key;			/* sort key, 0, text: of the previous text */
	Size		sort_key_len;
	Size		text_len;
	bool		with_text;		/* the text is part of the key */
	bool		any;			/* there is a previous text */
};

/* ------------------------------------------------------- what can be encoded */

/* Is it C.UTF-8, in any spelling? */
static bool
is_c_utf8(Oid collation)
{
	char	   *name = gs_collation_libc_name(collation);
	bool		result =
		pg_strcasecmp(name, "C.UTF-8") == 0 || pg_strcasecmp(name, "C.UTF8") == 0;

	pfree(name);
	return result;
}

/* Can ICU's functions be called? */
static bool
has_icu(char **why_not)
{
#ifdef USE_ICU
	if (ucol_getSortKey != NULL && u_strFromUTF8 != NULL)
		return true;
	*why_not = "gpusort was built for another version of ICU";
#else
	*why_not = "gpusort was built without ICU's headers";
#endif
	return false;
}

bool
gs_key_collation_is_libc(Oid collation)
{
	return !gs_collation_is_bytewise(collation) &&
		gs_collation_provider(collation) == COLLPROVIDER_LIBC;
}

bool
gs_key_collation_can_encode(Oid collation, char **why_not)
{
	if (!OidIsValid(collation))
		*why_not = "no collation was derived";
	else if (gs_collation_is_bytewise(collation))
		return true;
	else if (!gs_key_collation_is_libc(collation))
		return has_icu(why_not);
	else if (gpusort_libc_collations != GS_LIBC_OFF)
		return true;
	else
		*why_not = gs_key_collation_libc_off(collation);
	return false;
}

char *
gs_key_collation_libc_off(Oid collation)
{
	return psprintf("collation \"%s\" belongs to the C library, and gpusort.libc_collations is off",
					get_collation_name(collation));
}

double
gs_key_collation_expansion(Oid collation, bool full)
{
	if (gs_key_collation_is_libc(collation))
		return is_c_utf8(collation) ? 0 : full ? 2 : 1; /* en_US.UTF-8: 1.3 to 2.3, 1.0 */
	return gs_collation_is_bytewise(collation) ? 0 : 2.5;	/* en-x-icu: 2.2 to 2.5 */
}

/* -------------------------------------------------------------------- keys */

static inline void
reserve(ByteBuffer *buffer, Size nbytes)
{
	if (nbytes <= buffer->size)
		return;
	if (buffer->data != NULL)
		pfree(buffer->data);
	buffer->data = NULL;
	buffer->size = 0;
	buffer->data = MemoryContextAllocHuge(buffer->context, nbytes + nbytes / 2);
	buffer->size = nbytes + nbytes / 2;
}

GsKeyCollation *
gs_key_collation_create(Oid collation, bool full)
{
	GsKeyCollation *result;
	bool		libc = gs_key_collation_is_libc(collation);

	if (gs_collation_is_bytewise(collation) || (libc && is_c_utf8(collation)))
		return NULL;
	result = palloc0(sizeof(GsKeyCollation));
	result->deterministic = gs_collation_is_deterministic(collation);
	result->full = full;
	if (libc)
	{
		result->libc_locale = gs_collation_libc_locale(collation);
		result->libc_keys = gs_libc_keys_lookup(collation, result->libc_locale);
		if (full && result->libc_keys != NULL && !gs_libc_keys_are_full(result->libc_keys))
			result->libc_keys = NULL;
	}
#ifdef USE_ICU
	else
	{
		result->collator = gs_collation_collator(collation);
		result->icu_keys = gs_icu_keys_lookup(collation);
	}
	result->utf16.context = CurrentMemoryContext;
#endif
	if (libc && result->libc_keys == NULL)
		result->full = true;
	result->transformed.context = CurrentMemoryContext;
	result->terminated.context = CurrentMemoryContext;
	result->key.context = CurrentMemoryContext;
	reserve(&result->key, 512);
	return result;
}

bool
gs_key_collation_is_full(const GsKeyCollation *collation)
{
	return collation->full;
}

/* Calls strxfrm() for a text; returns the length of the result, which is in the buffer. */
static Size
transform(GsKeyCollation *collation, const char *string, Size len, ByteBuffer *key)
{
	reserve(&collation->terminated, len + 1);
	memcpy(collation->terminated.data, string, len);
	collation->terminated.data[len] = '\0';
	for (;;)
	{
		Size		needed = collation->libc_locale == NULL ?
			strxfrm(key->data, collation->terminated.data, key->size) :
			strxfrm_l(key->data, collation->terminated.data, key->size, collation->libc_locale);

		if (needed < key->size)
			return needed;
		reserve(key, needed + 1 + len);
	}
}

/*
 * Makes the primary level of the beginning of a text, if that has more than most bytes.  What
 * follows in the text can change only the last weight or two of its beginning, which are left out.
 */
static bool
make_first_bytes(GsKeyCollation *collation, const char *string, Size len, Size most, Size *key_len)
{
	for (Size limit = 3 * most / 2 + CUT_BYTES; limit < 2 * len / 3; limit *= 2)
	{
		const Size	begin_len = pg_mbcliplen(string, len, limit);
		const Size	level_len = transform(collation, string, begin_len, &collation->transformed);
		Size		nbytes;

		reserve(&collation->key, gs_libc_keys_max_key_bytes(level_len, false));
		nbytes = gs_libc_keys_encode(collation->libc_keys, collation->transformed.data, level_len,
									 string, begin_len,
									 false, collation->key.data);
		if (nbytes > most + CUT_BYTES)
		{
			*key_len = nbytes - CUT_BYTES;
			return true;
		}
	}
	return false;
}

/* Makes the key of libc, full or not; returns its length. */
static Size
make_libc_key(GsKeyCollation *collation, const char *string, Size len, Size most)
{
	const GsLibcKeys *libc_keys = collation->libc_keys;
	bool		full = collation->full;
	Size		key_len;

	if (libc_keys == NULL)
		return transform(collation, string, len, &collation->key);
	reserve(&collation->key, gs_libc_keys_max_text_bytes(len, full));
	if (gs_libc_keys_encode_text(libc_keys, string, len, full, most, collation->key.data,
								 &key_len) ||
		make_first_bytes(collation, string, len, most, &key_len))
	{
		collation->with_text = false;
		return key_len;
	}
	key_len = transform(collation, string, len, &collation->transformed);
	reserve(&collation->key, gs_libc_keys_max_key_bytes(key_len, full));
	return gs_libc_keys_encode(libc_keys, collation->transformed.data, key_len, string, len, full,
							   collation->key.data);
}

#ifdef USE_ICU

/* Converts a text in UTF-8 to UTF-16 in its buffer; returns the number of code units. */
static int32_t
utf8_to_utf16(GsKeyCollation *collation, const char *string, Size len)
{
	UErrorCode	status = U_ZERO_ERROR;
	UChar	   *out;
	int32_t		out_len;

	reserve(&collation->utf16, sizeof(UChar) * (len + 1));
	out = (UChar *) collation->utf16.data;
	for (Size i = 0; i < len; i++)
	{
		if (IS_HIGHBIT_SET(string[i]))
		{
			u_strFromUTF8(out + i, len + 1 - i, &out_len, string + i, len - i, &status);
			if (U_FAILURE(status))
				ereport(ERROR,
						(errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
						 errmsg("could not convert text to UTF-16: ICU error %d", (int) status)));
			return i + out_len;
		}
		out[i] = string[i];
	}
	return len;
}

/* Converts a text to UTF-16 in its buffer; returns the number of code units. */
static int32_t
to_utf16(GsKeyCollation *collation, const char *string, Size len)
{
	char	   *utf8 = GetDatabaseEncoding() == PG_UTF8 ? unconstify(char *, string) :
		pg_server_to_any(string, len, PG_UTF8);
	int32_t		utf16_len;

	if (utf8 == string)
		return utf8_to_utf16(collation, string, len);
	utf16_len = utf8_to_utf16(collation, utf8, strlen(utf8));
	pfree(utf8);
	return utf16_len;
}

/* Makes the key of ICU, from tables if possible; returns its length. */
static Size
make_icu_key(GsKeyCollation *collation, const char *string, Size len)
{
	Size		key_len;
	int32_t		utf16_len;

	if (collation->icu_keys != NULL)
	{
		reserve(&collation->key, gs_icu_keys_max_bytes(len));
		if (gs_icu_keys_key(collation->icu_keys, string, len, collation->full,
							collation->key.data, &key_len))
			return key_len;
	}
	utf16_len = to_utf16(collation, string, len);
	for (;;)
	{
		Size		size = Min(collation->key.size, PG_INT32_MAX);
		int32_t		needed = ucol_getSortKey(collation->collator,
											 (const UChar *) collation->utf16.data, utf16_len,
											 (uint8_t *) collation->key.data, size);

		if (needed <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
					 errmsg("ICU sort key generation failed")));
		if (needed <= size)
			return collation->full ? needed - 1 :
				gs_icu_keys_primary(collation->key.data, needed - 1);
		reserve(&collation->key, (Size) needed + len);
	}
}
#endif

/* Makes the sort key; returns its length. */
static Size
make_sort_key(GsKeyCollation *collation, const char *string, Size len, Size most)
{
#ifdef USE_ICU
	if (collation->collator != NULL)
		return make_icu_key(collation, string, len);
#endif
	return make_libc_key(collation, string, len, most);
}

/* Appends 0 and the text to the sort key. */
static void
add_text(GsKeyCollation *collation, const char *string, Size len)
{
	Size		start = collation->sort_key_len + 1;
	ByteBuffer *key = &collation->key;

	if (start + len > key->size)
	{
		ByteBuffer	larger = {.context = key->context};

		reserve(&larger, start + len);
		memcpy(larger.data, key->data, collation->sort_key_len);
		pfree(key->data);
		*key = larger;
	}
	key->data[start - 1] = '\0';
	memcpy(key->data + start, string, len);
	collation->text_len = len;
}

bool
gs_key_collation_key(GsKeyCollation *collation, const char *string, Size len, Size most,
					 const char **key, uint32 *key_len, const char **why_not)
{
	Size		total = MAX_KEY_BYTES;

	if (len <= MAX_STRING_BYTES)
	{
		if (!collation->any || len != collation->text_len ||
			memcmp(collation->key.data + collation->sort_key_len + 1, string, len) != 0)
		{
			collation->any = false; /* until the key is complete: what follows can raise an error */
			collation->with_text = collation->deterministic && collation->full;
			collation->sort_key_len = make_sort_key(collation, string, len, most);
			add_text(collation, string, len);
			collation->any = true;
		}
		total = collation->sort_key_len + (collation->with_text ? 1 + len : 0);
	}
	if (total >= MAX_KEY_BYTES)
	{
		*why_not = "a text is too long for a sort key of its collation";
		return false;
	}
	*key = collation->key.data;
	*key_len = total;
	return true;
}
