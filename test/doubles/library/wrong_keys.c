/*-------------------------------------------------------------------------
 *
 * wrong_keys.c
 *	  Wrong keys of text, if gpusort.collation_fault is on.
 *
 * They are those of a locale that disagrees with the comparison of the collation: the
 * bytes of the text, with capitals last.  Every text of a collation that does not compare
 * bytes gets such a key, because nothing else makes a key or replaces it: no tables, no
 * abbreviated keys, no dictionary.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "collation/key_collation.h"
#include "doubles/library/double_settings.h"
#include "doubles/wrap.h"
#include "key/key_encoder.h"
#include "key/key_order.h"
#include "key/key_sortsupport.h"
#include "pg_compat.h"

#include "utils/lsyscache.h"
#include "utils/memutils.h"

GS_WRAP(gs_key_collation_create);
GS_WRAP(gs_key_collation_is_full);
GS_WRAP(gs_key_collation_key);
GS_WRAP(gs_key_sortsupport_create);
GS_WRAP(gs_key_encoder_count_values);

/* What the product takes for a GsKeyCollation. */
typedef struct MaybeWrongCollation
{
	GsKeyCollation *right;		/* NULL: the keys are wrong */
	bool		deterministic;
	MemoryContext context;
	char	   *key;			/* the last wrong one; NULL: none yet */
} MaybeWrongCollation;

GsKeyCollation *
__wrap_gs_key_collation_create(Oid collation, bool full)
{
	MaybeWrongCollation *result;
	GsKeyCollation *right = NULL;

	if (gs_collation_is_bytewise(collation))
		return NULL;
	if (!gpusort_collation_fault)
	{
		right = __real_gs_key_collation_create(collation, full);
		if (right == NULL)
			return NULL;
	}
	result = palloc0(sizeof(MaybeWrongCollation));
	result->right = right;
	result->deterministic = gs_collation_is_deterministic(collation);
	result->context = CurrentMemoryContext;
	return (GsKeyCollation *) result;
}

bool
__wrap_gs_key_collation_is_full(const GsKeyCollation *collation)
{
	const MaybeWrongCollation *maybe_wrong = (const MaybeWrongCollation *) collation;

	return maybe_wrong->right == NULL || __real_gs_key_collation_is_full(maybe_wrong->right);
}

bool
__wrap_gs_key_collation_key(GsKeyCollation *collation, const char *string, Size len, Size most,
							const char **key, uint32 *key_len, const char **why_not)
{
	MaybeWrongCollation *maybe_wrong = (MaybeWrongCollation *) collation;

	if (maybe_wrong->right != NULL)
		return __real_gs_key_collation_key(maybe_wrong->right, string, len, most, key, key_len,
										   why_not);
	if (len > MaxAllocSize / 4)
	{
		*why_not = "a text is too long for a wrong sort key";
		return false;
	}
	if (maybe_wrong->key != NULL)
		pfree(maybe_wrong->key);
	maybe_wrong->key = MemoryContextAlloc(maybe_wrong->context, 2 * len + 1);
	for (Size i = 0; i < len; i++)
	{
		bool		is_letter = !IS_HIGHBIT_SET(string[i]) && isalpha((unsigned char) string[i]);

		maybe_wrong->key[i] = is_letter ? string[i] ^ 0x20 : string[i];
	}
	maybe_wrong->key[len] = '\0';
	memcpy(maybe_wrong->key + len + 1, string, len);
	*key = maybe_wrong->key;
	*key_len = maybe_wrong->deterministic ? 2 * len + 1 : len;
	return true;
}

/* No abbreviated keys of text, but of other types. */
GsKeySortSupport *
__wrap_gs_key_sortsupport_create(Oid sort_operator, Oid collation)
{
	if (gpusort_collation_fault)
	{
		GsKeyOrder	order;
		Oid			left;
		Oid			right;
		bool		descending;
		char	   *why_not;

		op_input_types(sort_operator, &left, &right);
		if (gs_key_order_of_operator(sort_operator, left, collation, &order, &descending,
									 &why_not) && OidIsValid(order.collation))
			return NULL;
	}
	return __real_gs_key_sortsupport_create(sort_operator, collation);
}

void
__wrap_gs_key_encoder_count_values(GsKeyEncoder *key)
{
	if (!gpusort_collation_fault)
		__real_gs_key_encoder_count_values(key);
}
