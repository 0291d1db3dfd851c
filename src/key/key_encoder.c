/*-------------------------------------------------------------------------
 *
 * key_encoder.c
 *	  From the sort columns of a row to its key record.
 *
 * The record of `ORDER BY int4 DESC NULLS LAST, text`, for the row (7, 'gpu'),
 * whose text stands at byte 20 of the stored row:
 *
 *	  word 0	80000007 00000000		the int4, its sign bit flipped, and room
 *	  word 1	67707500 00000000		'g' 'p' 'u', padded
 *	  word 2	00000014 00000003		where the text stands, and its length
 *	  place		........ 00000000		where the row stands; no NULLs
 *
 * The DESC and the NULLS LAST show in none of them: the packing (key_pack.h)
 * applies both when the ranges are known.
 *
 * A value that is compressed or stored out of line is fetched here, once, and
 * its bytes are stored behind the row, since the row itself keeps only the
 * pointer, as it does in a stock sort.  So are codes that are made of a value
 * (key_bytes.h, key_collation.h), as far as the prefix does not have all of them.
 * For an engine that can compare, no more than the first GS_SORT_KEY_CUT bytes are
 * the key, and of a text that is compared byte by byte, no more are fetched.
 *
 * Texts whose keys would need a proof are counted in the first rows.  Where they are
 * few they get codes of a dictionary, and these rows other keys.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/batch.h"
#include "guc.h"
#include "key/key_sortsupport.h"
#include "key/key_bytes.h"
#include "common/key_codec.h"
#include "key/key_collation.h"
#include "key/key_dictionary.h"
#include "key/key_fields.h"
#include "key/key_numeric.h"
#include "key/key_order.h"
#include "pg_compat.h"
#include "key/key_deform.h"
#include "key/key_encoder.h"

#include "common/hashfn.h"
#include "fmgr.h"
#include "lib/hyperloglog.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/*
 * Where an engine can compare, no key is longer: more would have to be fetched or
 * made and stored for each row, and is hardly ever looked at.  Ties are for
 * the comparator, which fetches both values each time; so where more than one of two
 * keys is like another, they had better be whole.  That is asked at 10 cut keys, 20, 40
 * and so on to 320, or at the last of fewer: to count the distinct ones takes as long as
 * to sort them.  Where only the beginnings are fetched it is asked but once, in the end:
 * to be late costs little then, while whole keys can cost three times PostgreSQL's sort
 * if only the first few were alike.
 */
#define FIRST_TRUNCATION_CHECK	10
#define LAST_TRUNCATION_CHECK	320

/*
 * So many texts of a column are counted, and they are few if no more of them differ: some
 * less than a dictionary has room for, as the count is an estimate, and there are more rows.
 */
#define COUNTED_TEXTS	512
#define FEW_TEXTS		(GS_DICTIONARY_TEXTS - 32)

/* How many of the first texts of a column differ. */
typedef struct TextCount
{
	int			ncounted;
	hyperLogLogState distinct;
} TextCount;

/* A variable-width value as loaded. */
typedef struct KeyBytes
{
	uint64		prefix;			/* the first eight, or all and zeros */
	const char *data;			/* of more than eight */
	uint32		len;
	bool		separate;			/* data does not stand in the row: store it */
} KeyBytes;

typedef struct KeyColumn
{
	GsKeyKind	kind;
	GsKeyKind	value_kind;		/* the same, unless it is ABBREVIATED */
	bool		by_value;		/* and of one field */
	bool		is_integer;		/* and its code is (value ^ flip) & mask */
	uint64		flip;			/* the sign bit, if it has one */
	uint64		mask;
	AttrNumber	attno;
	GsKeyField *field;			/* the first of its fields */
	GsKeyLabels labels;			/* enum */
	GsKeySortSupport *abbreviation;	/* if it is all that there is */
	GsKeyCollation *collation;	/* text whose bytes are not the key */
	bool		needs_verification;	/* text of such a collation */
	GsKeyDictionary *dictionary;	/* text that has a code of it */
	TextCount  *count;			/* text that is counted; NULL: not, or no more */
	KeyBytes	bytes;			/* variable width: of the row at hand */
	GsKeyMaker *maker;			/* variable width: if its code has to be made */
	int			fixed_weight;	/* numeric: as the maker has it */
} KeyColumn;

struct GsKeyEncoder
{
	int			ncolumns;
	AttrNumber	last_attno;
	TupleDesc	desc;
	MemoryContext value_context;	/* detoasted values of the loaded row */
	bool		value_context_used;
	bool		direct;			/* no value has to be fetched or looked up */
	int			first_tied;		/* see gs_key_encoder_first_tied() */
	bool		needs_verification;	/* see gs_key_encoder_is_approximate() */
	bool		can_have_dictionaries;	/* and would not need one then */
	int			nuncounted;		/* columns of which it is not known whether texts are few;
								 * -1: they are not, or nobody wants to know */
	bool		texts_are_many; /* for a dictionary */
	bool		can_confirm;	/* see gs_key_encoder_can_confirm() */
	bool		may_be_low_cardinality;	/* see gs_key_encoder_keep_low_cardinality() */
	bool		may_truncate;		/* long keys, to GS_SORT_KEY_CUT */
	uint64		ntruncated;
	uint64		next_truncation_check;	/* at so many */
	hyperLogLogState truncated_keys;	/* how many of them differ, once there are any */
	GsDeform   *deform;			/* finds the columns in a tuple; NULL: the slot does */
	GsDeform   *first_deform;	/* the same, of the first column only */
	Datum	   *values;			/* the sort columns of the row at hand */
	bool	   *nulls;
	KeyColumn  *columns;
	GsKeyLayout layout;
};

static int	count_fields(GsKeyKind kind);
static void add_to_layout(GsKeyLayout *layout, GsKeyKind kind, bool bijective_floats);

/* ------------------------------------------------------- what can be encoded */

/* The column's order and direction; false, and why, if it cannot be encoded. */
static bool
column_order(const GsSortColumn *column, GsKeyOrder *order, bool *descending, char **why_not)
{
	GsKeySortSupport *abbreviation;

	if (gs_key_order_of_operator(column->sort_operator, column->type, column->collation,
								 order, descending, why_not))
		return true;
	/* under libc no text is abbreviated, and to ask would open the locale */
	if (OidIsValid(column->collation) ? gs_key_collation_is_approximate(column->collation) :
		type_is_collatable(column->type))
		return false;
	abbreviation = gs_key_sortsupport_create(column->sort_operator, column->collation);
	if (abbreviation == NULL)
		return false;
	order->kind = GS_KEY_ABBREVIATED;
	order->type = column->type;
	order->collation = InvalidOid;
	order->element = NULL;
	order->approximate = gs_key_sortsupport_is_approximate(abbreviation);
	return true;
}

bool
gs_key_columns_can_encode(const GsSortColumn *columns, int ncolumns, char **why_not)
{
	int			nfields = 0;

	if (ncolumns > GS_MAX_COLUMNS)
	{
		*why_not = psprintf("more than %d sort columns", GS_MAX_COLUMNS);
		return false;
	}
	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyOrder	order;
		bool		descending;
		char	   *reason;

		if (!column_order(&columns[i], &order, &descending, &reason))
		{
			*why_not = psprintf("sort column %d: %s", i + 1, reason);
			return false;
		}
		nfields += count_fields(order.kind);
		if (order.kind == GS_KEY_ABBREVIATED)
			break;				/* the columns after it only decide ties */
	}
	if (nfields > GS_MAX_FIELDS)
	{
		*why_not = psprintf("the keys have more than %d fields", GS_MAX_FIELDS);
		return false;
	}
	return true;
}

/* Is an order, or that of its elements, a collation's of libc? */
static bool
order_is_of_libc(const GsKeyOrder *order)
{
	for (; order != NULL; order = order->element)
	{
		if (OidIsValid(order->collation) && gs_key_collation_is_approximate(order->collation))
			return true;
	}
	return false;
}

/* Does it need a proof? */
static bool
order_is_approximate(const GsKeyOrder *order)
{
	return order->approximate || order_is_of_libc(order);
}

/* Is it that of a text, or of something that looks like one?  Then it can have a dictionary. */
static bool
text_needs_proof(const GsKeyOrder *order)
{
	return (order->kind == GS_KEY_TEXT || order->kind == GS_KEY_BPCHAR ||
			order->kind == GS_KEY_NAME) && order_is_approximate(order);
}

/* Has one of the columns an order of some kind? */
static bool
any_order(const GsSortColumn *columns, int ncolumns, bool (*is) (const GsKeyOrder *order))
{
	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyOrder	order;
		bool		descending;
		char	   *why_not;

		if (column_order(&columns[i], &order, &descending, &why_not) && is(&order))
			return true;
	}
	return false;
}

bool
gs_key_columns_are_approximate(const GsSortColumn *columns, int ncolumns)
{
	return any_order(columns, ncolumns, order_is_approximate);
}

bool
gs_key_encoder_uses_libc(const GsSortColumn *columns, int ncolumns)
{
	return any_order(columns, ncolumns, order_is_of_libc);
}

bool
gs_key_columns_leave_ties(const GsSortColumn *columns, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyOrder	order;
		bool		descending;
		char	   *why_not;

		if (!column_order(&columns[i], &order, &descending, &why_not) ||
			order.kind == GS_KEY_ABBREVIATED)
			return true;
	}
	return false;
}

double
gs_key_columns_collated_bytes(const GsSortColumn *columns, int ncolumns, int width)
{
	double		nbytes = 0;

	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyOrder	order;
		bool		descending;
		char	   *why_not;
		const bool	whole = i + 1 < ncolumns;

		if (!column_order(&columns[i], &order, &descending, &why_not) ||
			order.kind == GS_KEY_ABBREVIATED)
			break;
		if (OidIsValid(order.collation))
			nbytes += gs_key_collation_expansion(order.collation, whole) *
				Min(width, get_typavgwidth(columns[i].type, -1));
	}
	return nbytes;
}

/* ------------------------------------------------------------ the layout */

static int
count_fields(GsKeyKind kind)
{
	GsKeyLayout layout;

	gs_key_layout_init(&layout);
	gs_key_layout_add_column(&layout, false, false);
	add_to_layout(&layout, kind, false);
	return layout.nfields;
}

/* Gives the layout's last column the fields of its kind. */
static void
add_to_layout(GsKeyLayout *layout, GsKeyKind kind, bool bijective_floats)
{
	switch (kind)
	{
		case GS_KEY_TEXT:
		case GS_KEY_BPCHAR:
		case GS_KEY_NAME:
			gs_key_layout_add_bytes(layout, true);
			break;
		case GS_KEY_BYTEA:
			gs_key_layout_add_bytes(layout, false);
			break;
		default:
			if (gs_key_kind_is_made(kind))
				gs_key_layout_add_bytes(layout, false);
			else
				gs_key_fields_add(layout, kind, bijective_floats);
			break;
	}
}

/* Prepares the code of a value of one field that is passed by value. */
static void
prepare_code(KeyColumn *column)
{
	const uint64 mask = gs_key_field_mask(column->field);

	column->mask = mask;
	column->is_integer = false;
	switch (column->kind)
	{
		case GS_KEY_INT16:
		case GS_KEY_INT32:
		case GS_KEY_INT64:
			column->flip = mask ^ (mask >> 1);
			column->is_integer = true;
			break;
		case GS_KEY_FLOAT4:
		case GS_KEY_FLOAT8:
			break;
		default:
			/* an enum's sort_order is a float */
			column->is_integer = !column->labels.placed;
	}
}

/* Can a value of this kind be had back from its code, and does it fit a Datum? */
static bool
is_decodable(const KeyColumn *column)
{
	return gs_key_kind_is_by_value(column->kind) && column->kind != GS_KEY_ABBREVIATED &&
		(column->kind != GS_KEY_ENUM || !column->labels.placed);
}

/*
 * Chooses how the values of a column become codes.  Texts may leave ties to a
 * comparator, and with them all columns after, only if there are none: then
 * mostly few are tied, or they are equal.
 */
static void
choose_code(GsKeyEncoder *key, KeyColumn *column, const GsKeyOrder *order,
			const GsSortColumn *plan, bool whole, bool use_dictionary)
{
	bool		abbreviate = order->kind == GS_KEY_ABBREVIATED;

	column->kind = order->kind;
	column->value_kind = order->kind;
	column->needs_verification = text_needs_proof(order);
	if (use_dictionary && column->needs_verification)
	{
		column->dictionary = gs_key_dictionary_create(plan->sort_operator, plan->collation,
													  order->kind == GS_KEY_NAME);
		column->kind = GS_KEY_ABBREVIATED;
		return;
	}
	if (OidIsValid(order->collation) && !whole && order->kind != GS_KEY_NAME)
		abbreviate = key->may_truncate && !gpusort_collation_fault;
	if (abbreviate)
		column->abbreviation = gs_key_sortsupport_create(plan->sort_operator, plan->collation);
	if (column->abbreviation != NULL)
	{
		column->kind = GS_KEY_ABBREVIATED;
		if (OidIsValid(order->collation))
			gs_key_sortsupport_use_text(column->abbreviation, order->collation,
										 order->kind == GS_KEY_BPCHAR);
	}
	else if (OidIsValid(order->collation))
		column->collation = gs_key_collation_create(order->collation, whole);
	key->can_confirm = order->approximate && !key->needs_verification;
	key->needs_verification |= order_is_approximate(order);
	key->can_have_dictionaries &= column->needs_verification || !order_is_approximate(order);
}

/* What a column, or the domain that its values are of, declares of them; -1: nothing. */
static int32
declared_typmod(const GsSortColumn *column, TupleDesc desc)
{
	int32		typmod = TupleDescAttr(desc, column->attno - 1)->atttypmod;

	if (typmod < 0)
		(void) getBaseTypeAndTypmod(column->type, &typmod);
	return typmod;
}

static void
make_maker(KeyColumn *column, const GsKeyOrder *order, int32 typmod)
{
	column->maker = gs_key_maker_create(order, typmod);
	column->fixed_weight = gs_numeric_fixed_weight(typmod);
}

/* Does the code of a column leave ties? */
static bool
leaves_ties(const KeyColumn *column)
{
	return column->abbreviation != NULL ||
		(column->collation != NULL && !gs_key_collation_is_full(column->collation));
}

static GsKeyEncoder *
create_key(const GsSortColumn *columns, int ncolumns, TupleDesc desc, bool whole, bool may_truncate,
		   bool use_dictionaries)
{
	GsKeyEncoder  *key = palloc(sizeof(GsKeyEncoder));
	AttrNumber *attnos = palloc(sizeof(AttrNumber) * ncolumns);
	bool		keys_only;

	key->ncolumns = ncolumns;
	key->last_attno = 0;
	key->desc = desc;
	key->value_context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort key",
											   ALLOCSET_SMALL_SIZES);
	key->value_context_used = false;
	key->direct = true;
	key->first_tied = -1;
	key->needs_verification = false;
	key->can_have_dictionaries = true;
	key->nuncounted = -1;
	key->texts_are_many = false;
	key->can_confirm = false;
	key->may_be_low_cardinality = false;
	key->may_truncate = may_truncate;
	key->ntruncated = 0;
	key->next_truncation_check = FIRST_TRUNCATION_CHECK;
	key->values = palloc(sizeof(Datum) * ncolumns);
	key->nulls = palloc(sizeof(bool) * ncolumns);
	key->columns = palloc0(sizeof(KeyColumn) * ncolumns);
	gs_key_layout_init(&key->layout);

	for (int i = 0; i < ncolumns && key->first_tied < 0; i++)
	{
		KeyColumn  *column = &key->columns[i];
		GsKeyOrder	order;
		bool		descending;
		char	   *why_not;

		if (!column_order(&columns[i], &order, &descending, &why_not))
			elog(ERROR, "sort column %d cannot be encoded: %s", i + 1, why_not);
		choose_code(key, column, &order, &columns[i], whole || i + 1 < ncolumns,
					use_dictionaries);
		if (leaves_ties(column))
			key->first_tied = i;
		column->attno = columns[i].attno;
		key->last_attno = Max(key->last_attno, column->attno);
		if (column->kind == GS_KEY_ENUM)
			gs_key_labels_read(&column->labels, order.type);
		gs_key_layout_add_column(&key->layout, descending, columns[i].nulls_first);
		keys_only = ncolumns == 1 && desc->natts == 1 && is_decodable(column);
		add_to_layout(&key->layout, column->kind, keys_only);
		if (column->kind == GS_KEY_ENUM || column->kind == GS_KEY_ABBREVIATED ||
			key->layout.columns[i].variable)
			key->direct = false;
		key->layout.keys_only = keys_only;
		key->layout.ascending = keys_only;
		column->by_value = gs_key_kind_is_by_value(column->kind);
		column->field = &key->layout.fields[key->layout.columns[i].first_field];
		if (column->by_value)
			prepare_code(column);
		if (gs_key_kind_is_made(column->kind))
			make_maker(column, &order, declared_typmod(&columns[i], desc));
		attnos[i] = column->attno;
	}
	if (key->first_tied >= 0)
		key->ncolumns = key->first_tied + 1;
	key->deform = gs_deform_create(desc, attnos, key->ncolumns);
	key->first_deform = gs_deform_create(desc, attnos, 1);
	pfree(attnos);
	return key;
}

GsKeyEncoder *
gs_key_encoder_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc, bool whole)
{
	return create_key(columns, ncolumns, desc, whole, !whole, false);
}

GsKeyEncoder *
gs_key_encoder_create_next(const GsSortColumn *columns, int ncolumns, TupleDesc desc,
						const GsKeyEncoder *before)
{
	const bool	few = gs_key_encoder_texts_are_few(before);
	GsKeyEncoder  *key;

	if (few || before->texts_are_many)
		return create_key(columns, ncolumns, desc, !before->may_truncate, before->may_truncate, few);
	key = create_key(columns, ncolumns, desc, false, false, false);
	if (before->nuncounted > 0)
		gs_key_encoder_look_for_few(key);
	return key;
}

GsKeyEncoder *
gs_key_encoder_create_twin(const GsSortColumn *columns, int ncolumns, TupleDesc desc,
						const GsKeyEncoder *of)
{
	GsKeyEncoder  *key = create_key(columns, ncolumns, desc, true, false,
								 gs_key_encoder_dictionary_texts(of) > 0);

	for (int i = 0; i < key->ncolumns; i++)
	{
		KeyColumn  *column = &key->columns[i];

		column->labels = of->columns[i].labels;
		if (column->by_value)
			prepare_code(column);
		if (column->maker != NULL)
			gs_key_maker_share_labels(column->maker, of->columns[i].maker);
		column->dictionary = of->columns[i].dictionary;
	}
	return key;
}

/* How the key of a column is made, as far as that is a choice. */
static unsigned char
encoding_of_column(const GsKeyEncoder *key, int i)
{
	const KeyColumn *column = &key->columns[i];

	return (column->abbreviation != NULL ? 1 : 0) |
		(column->collation != NULL && gs_key_collation_is_full(column->collation) ? 2 : 0) |
		(key->may_truncate && key->layout.columns[i].variable ? 4 : 0);
}

uint64
gs_key_encoder_fingerprint(const GsKeyEncoder *key)
{
	uint64		hash = 0;

	for (int i = 0; i < key->layout.ncolumns; i++)
	{
		const KeyColumn *column = &key->columns[i];
		const unsigned char way = encoding_of_column(key, i);

		hash = hash_bytes_extended(&way, sizeof(way), hash);
		hash = gs_key_labels_hash(&column->labels, hash);
		if (column->maker != NULL)
			hash = gs_key_maker_labels(column->maker, hash);
	}
	return hash;
}

GsKeyLayout *
gs_key_encoder_layout(GsKeyEncoder *key)
{
	return &key->layout;
}

bool
gs_key_encoder_is_cheap(const GsKeyEncoder *key)
{
	for (int i = 0; i < key->ncolumns; i++)
	{
		const KeyColumn *column = &key->columns[i];

		if (leaves_ties(column) || column->needs_verification ||
			(column->collation != NULL && !gs_key_collation_is_cheap(column->collation)) ||
			(column->maker != NULL && !gs_key_maker_is_cheap(column->maker)))
			return false;
	}
	return true;
}

bool
gs_key_encoder_is_direct(const GsKeyEncoder *key)
{
	return key->direct;
}

int
gs_key_encoder_first_tied(const GsKeyEncoder *key)
{
	return key->first_tied;
}

void
gs_key_encoder_tie_from(GsKeyEncoder *key, int column)
{
	if (key->first_tied < 0 || column < key->first_tied)
		key->first_tied = column;
	key->layout.ndecisive = Min(key->layout.ndecisive, column + 1);
}

void
gs_key_encoder_keep_low_cardinality(GsKeyEncoder *key)
{
	key->may_be_low_cardinality = true;
}

void
gs_key_encoder_keep_full(GsKeyEncoder *key)
{
	key->may_truncate = false;
}

bool
gs_key_encoder_prefix_is_poor(GsKeyEncoder *key, bool at_last)
{
	const uint64 question = key->next_truncation_check;

	if (key->first_tied >= 0 && key->columns[key->first_tied].abbreviation != NULL &&
		gs_key_sortsupport_prefix_is_short(key->columns[key->first_tied].abbreviation))
		return true;
	if (question > LAST_TRUNCATION_CHECK ||
		(key->ntruncated < question && !(at_last && question == LAST_TRUNCATION_CHECK)))
		return false;
	key->next_truncation_check *= 2;
	return estimateHyperLogLog(&key->truncated_keys) < key->ntruncated / 2.0;
}

bool
gs_key_encoder_is_approximate(const GsKeyEncoder *key)
{
	return key->needs_verification;
}

void
gs_key_encoder_look_for_few(GsKeyEncoder *key)
{
	if (!key->needs_verification || !key->can_have_dictionaries || gpusort_collation_fault)
		return;
	key->nuncounted = 0;
	for (int i = 0; i < key->ncolumns; i++)
	{
		if (key->columns[i].needs_verification)
		{
			key->columns[i].count = palloc0(sizeof(TextCount));
			initHyperLogLog(&key->columns[i].count->distinct, 10);
			key->nuncounted++;
		}
	}
}

bool
gs_key_encoder_texts_are_few(const GsKeyEncoder *key)
{
	return key->nuncounted == 0;
}

bool
gs_key_encoder_texts_are_many(const GsKeyEncoder *key)
{
	return key->texts_are_many;
}

int
gs_key_encoder_dictionary_texts(const GsKeyEncoder *key)
{
	int			ntexts = 0;

	for (int i = 0; i < key->ncolumns; i++)
	{
		if (key->columns[i].dictionary != NULL)
			ntexts += gs_key_dictionary_count(key->columns[i].dictionary);
	}
	return ntexts;
}

bool
gs_key_encoder_can_confirm(const GsKeyEncoder *key)
{
	return key->can_confirm;
}

bool
gs_key_encoder_confirms(const GsKeyEncoder *key, const uint64 *before, const uint64 *record)
{
	const KeyColumn *column = &key->columns[key->first_tied];
	const int	nwords = key->layout.nwords;
	const int	word = column->field->word;
	int			order;

	Assert(word == nwords - 1);
	if (gs_record_nulls(before, nwords) != gs_record_nulls(record, nwords) ||
		memcmp(before, record, sizeof(uint64) * word) != 0)
		return false;
	if (before[word] == record[word])
		return true;			/* tied: the engine has compared the rows */
	order = gs_key_sortsupport_compare(column->abbreviation, before[word], record[word]);
	return key->layout.columns[key->first_tied].descending ? order > 0 : order < 0;
}

const char *
gs_key_encoder_disproof(const GsKeyEncoder *key)
{
	return key->can_confirm ? "the type compares abbreviated keys in another order" :
		"strxfrm() and strcoll() disagree";
}

/* ------------------------------------------------------------------ loading */

/* Is all of it in the prefix?  Then nobody looks at the bytes themselves. */
static inline bool
fits_prefix(const KeyBytes *bytes)
{
	return bytes->len <= sizeof(uint64);
}

/* Is the beginning of a value the beginning of its key? */
static inline bool
prefix_suffices(const GsKeyEncoder *key, const KeyColumn *column)
{
	return key->may_truncate && column->maker == NULL && column->collation == NULL &&
		(column->kind == GS_KEY_TEXT || column->kind == GS_KEY_BYTEA);
}

/* Is a value compressed or out of line? */
static inline bool
must_be_fetched(const struct varlena *value)
{
	return VARATT_IS_COMPRESSED(value) || VARATT_IS_EXTERNAL(value);
}

/* Fetches it, as much of it as is wanted. */
static struct varlena *
fetch_value(GsKeyEncoder *key, const KeyColumn *column, struct varlena *value)
{
	MemoryContext old = MemoryContextSwitchTo(key->value_context);

	/* one byte more than a key has says that it is cut */
	value = prefix_suffices(key, column) ?
		pg_detoast_datum_slice(value, 0, GS_SORT_KEY_CUT + 1) : pg_detoast_datum_packed(value);
	MemoryContextSwitchTo(old);
	key->value_context_used = true;
	return value;
}

/* Makes the code of a value that has been fetched. */
static bool
make_bytes(GsKeyEncoder *key, KeyColumn *column, struct varlena *value, const char **why_not)
{
	KeyBytes   *bytes = &column->bytes;
	MemoryContext old = MemoryContextSwitchTo(key->value_context);
	bool		made = gs_key_maker_make(column->maker, PointerGetDatum(value),
										 &bytes->data, &bytes->len, why_not);

	MemoryContextSwitchTo(old);
	key->value_context_used = true;
	bytes->separate = true;
	return made;
}

/* Finds or makes the bytes of a value of variable width, fetching it if need be. */
static bool
find_bytes(GsKeyEncoder *key, KeyColumn *column, Datum datum, const char **why_not)
{
	KeyBytes   *bytes = &column->bytes;
	struct varlena *value;

	bytes->separate = false;
	if (column->value_kind == GS_KEY_NAME)
	{
		bytes->data = NameStr(*DatumGetName(datum));
		bytes->len = strnlen(bytes->data, NAMEDATALEN);
		return true;
	}

	value = (struct varlena *) DatumGetPointer(datum);
	if (must_be_fetched(value))
	{
		value = fetch_value(key, column, value);
		bytes->separate = true;
	}
	if (column->maker != NULL)
		return make_bytes(key, column, value, why_not);
	bytes->data = VARDATA_ANY(value);
	bytes->len = VARSIZE_ANY_EXHDR(value);
	if (column->value_kind == GS_KEY_BPCHAR)
		bytes->len = bpchartruelen(unconstify(char *, bytes->data), bytes->len);
	return true;
}

/* Counts the text at hand, and at the last one says whether few differ. */
static pg_noinline void
count_text(GsKeyEncoder *key, KeyColumn *column)
{
	TextCount  *count = column->count;

	addHyperLogLog(&count->distinct,
				   hash_bytes((const unsigned char *) column->bytes.data, column->bytes.len));
	if (++count->ncounted < COUNTED_TEXTS)
		return;
	if (key->nuncounted > 0 && estimateHyperLogLog(&count->distinct) <= FEW_TEXTS)
		key->nuncounted--;
	else
		key->nuncounted = -1;
	freeHyperLogLog(&count->distinct);
	pfree(count);
	column->count = NULL;
}

/* Loads the bytes that are the key of a value of variable width. */
static bool
read_value_bytes(GsKeyEncoder *key, KeyColumn *column, Datum datum, const char **why_not)
{
	KeyBytes   *bytes = &column->bytes;

	if (!find_bytes(key, column, datum, why_not))
		return false;
	if (column->count != NULL)
		count_text(key, column);
	if (column->collation != NULL)
	{
		if (!gs_key_collation_key(column->collation, bytes->data, bytes->len,
								  &bytes->data, &bytes->len, why_not))
			return false;
		bytes->separate = true;
	}
	bytes->prefix = gs_load_prefix((const unsigned char *) bytes->data, bytes->len);
	return true;
}

/* The same for a numeric whose code is all in the prefix, as most are.  False: it is not. */
static inline bool
read_word(KeyColumn *column, Datum datum)
{
	const struct varlena *value = (const struct varlena *) DatumGetPointer(datum);

	if (column->kind != GS_KEY_NUMERIC || must_be_fetched(value) ||
		!gs_numeric_code_is_word(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value),
								 column->fixed_weight, &column->bytes.prefix))
		return false;
	column->bytes.len = sizeof(uint64);
	return true;
}

/* Puts the code in place of the value. */
static bool
read_abbreviation(const GsKeyEncoder *key, KeyColumn *column, Datum *value, const char **why_not)
{
	*value = UInt64GetDatum(gs_key_sortsupport_code(column->abbreviation, *value));
	*why_not = gs_key_sortsupport_reason_not(column->abbreviation);
	return *why_not == NULL || key->may_be_low_cardinality;
}

/* Puts the code of a dictionary in place of a text. */
static bool
load_dictionary_code(GsKeyEncoder *key, KeyColumn *column, Datum *value, const char **why_not)
{
	uint64		code;

	if (!find_bytes(key, column, *value, why_not))
		return false;
	if (!gs_key_dictionary_code(column->dictionary, column->bytes.data, column->bytes.len, &code))
	{
		*why_not = "there are too many texts for a dictionary";
		key->texts_are_many = true;
		return false;
	}
	*value = UInt64GetDatum(code);
	return true;
}

static inline HeapTupleHeader
source_tuple(const GsRowSource *source)
{
	return (HeapTupleHeader) (source->body - MINIMAL_TUPLE_OFFSET);
}

/* Are the sort columns to be found in the tuple?  Else its slot does it, or has done it. */
static inline bool
deforms_tuple(const GsKeyEncoder *key, TupleTableSlot *slot, const GsRowSource *source)
{
	return slot->tts_nvalid < key->last_attno && source->body != NULL && key->deform != NULL;
}

/* Finds the sort columns of the slot's row. */
static void
find_values(GsKeyEncoder *key, TupleTableSlot *slot, const GsRowSource *source)
{
	if (deforms_tuple(key, slot, source) &&
		gs_deform(key->deform, source_tuple(source), key->values, key->nulls))
		return;
	slot_getsomeattrs(slot, key->last_attno);
	for (int i = 0; i < key->ncolumns; i++)
	{
		key->values[i] = slot->tts_values[key->columns[i].attno - 1];
		key->nulls[i] = slot->tts_isnull[key->columns[i].attno - 1];
	}
}

/* Forgets what was fetched for the row before. */
static inline void
reset_values(GsKeyEncoder *key)
{
	if (key->value_context_used)
	{
		MemoryContextReset(key->value_context);
		key->value_context_used = false;
	}
}

/* Fetches or looks up the value found for a column, if it is of a kind that needs it. */
static inline bool
read_column(GsKeyEncoder *key, int colno, const char **why_not)
{
	KeyColumn  *column = &key->columns[colno];

	if (key->nulls[colno])
		return true;
	if (column->kind == GS_KEY_ENUM)
		return gs_key_labels_find(&column->labels, &key->values[colno], why_not);
	if (column->dictionary != NULL)
		return load_dictionary_code(key, column, &key->values[colno], why_not);
	if (column->kind == GS_KEY_ABBREVIATED)
		return read_abbreviation(key, column, &key->values[colno], why_not);
	if (key->layout.columns[colno].variable)
		return read_word(column, key->values[colno]) ||
			read_value_bytes(key, column, key->values[colno], why_not);
	return true;
}

/* Cuts a long key; the comparator has its ties from now on, and the columns after it. */
static pg_noinline void
truncate_key(GsKeyEncoder *key, int colno)
{
	KeyBytes   *bytes = &key->columns[colno].bytes;

	if (key->ntruncated++ == 0)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(key));

		initHyperLogLog(&key->truncated_keys, 10);
		MemoryContextSwitchTo(old);
		if (prefix_suffices(key, &key->columns[colno]))
			key->next_truncation_check = LAST_TRUNCATION_CHECK;
	}
	bytes->len = GS_SORT_KEY_CUT;
	if (key->next_truncation_check <= LAST_TRUNCATION_CHECK)
		addHyperLogLog(&key->truncated_keys,
					   hash_bytes((const unsigned char *) bytes->data, GS_SORT_KEY_CUT));
	key->ncolumns = colno + 1;
	key->layout.ndecisive = colno + 1;
	key->first_tied = colno;
}

/* How many bytes of the key of a column go behind the row, once it is loaded. */
static inline size_t
separate_bytes(GsKeyEncoder *key, int colno)
{
	const KeyBytes *bytes = &key->columns[colno].bytes;

	if (key->nulls[colno] || !key->layout.columns[colno].variable)
		return 0;
	if (bytes->len > GS_SORT_KEY_CUT && key->may_truncate)
		truncate_key(key, colno);
	return bytes->separate && !fits_prefix(bytes) ? bytes->len : 0;
}

/* Loads the values that were found. */
static inline bool
load_values(GsKeyEncoder *key, size_t *extra_bytes, const char **why_not)
{
	*extra_bytes = 0;
	reset_values(key);
	for (int i = 0; i < key->ncolumns; i++)
	{
		if (!read_column(key, i, why_not))
			return false;
		*extra_bytes += separate_bytes(key, i);
	}
	return true;
}

bool
gs_key_encoder_read(GsKeyEncoder *key, TupleTableSlot *slot, const GsRowSource *source,
				 size_t *extra_bytes, const char **why_not)
{
	find_values(key, slot, source);
	return load_values(key, extra_bytes, why_not);
}

/* Finds those of a stored row. */
static void
find_values_of_row(GsKeyEncoder *key, const GsRowSource *source)
{
	HeapTupleData tuple = {
		.t_len = source->nbytes + MINIMAL_TUPLE_OFFSET,.t_data = source_tuple(source)
	};

	if (key->deform != NULL &&
		gs_deform(key->deform, source_tuple(source), key->values, key->nulls))
		return;
	for (int i = 0; i < key->ncolumns; i++)
		key->values[i] = heap_getattr(&tuple, key->columns[i].attno, key->desc,
									  &key->nulls[i]);
}

bool
gs_key_encoder_load_row(GsKeyEncoder *key, const GsRowSource *source, size_t *extra_bytes,
					 const char **why_not)
{
	find_values_of_row(key, source);
	return load_values(key, extra_bytes, why_not);
}

/* ------------------------------------------------------------------ writing */

/*
 * A text-like value: its first bytes, and where all of them stand, counted
 * from the row.  *extra is where bytes that do not stand in the row go.
 */
static void
write_value_bytes(GsKeyEncoder *key, int colno, const GsRowSource *source,
		  char *row, char **extra, uint64 *record)
{
	KeyColumn  *column = &key->columns[colno];
	GsKeyColumn *layout = &key->layout.columns[colno];
	KeyBytes   *bytes = &column->bytes;
	const char *stored;

	gs_key_field_write(&key->layout.fields[layout->first_field], record, bytes->prefix);
	if (bytes->len < layout->min_len)
		layout->min_len = bytes->len;
	if (bytes->len > layout->max_len)
		layout->max_len = bytes->len;

	if (fits_prefix(bytes))
		stored = row;
	else if (bytes->separate)
	{
		memcpy(*extra, bytes->data, bytes->len);
		stored = *extra;
		*extra += bytes->len;
	}
	else if (gs_row_source_contains(source, bytes->data))
		stored = row + (bytes->data - source->body);
	else
	{
		/* the row was formed from loose values: look where this one went */
		HeapTupleData tuple;
		Datum		value;
		bool		is_null;

		tuple.t_len = ((MinimalTuple) row)->t_len + MINIMAL_TUPLE_OFFSET;
		tuple.t_data = (HeapTupleHeader) (row - MINIMAL_TUPLE_OFFSET);
		value = heap_getattr(&tuple, column->attno, key->desc, &is_null);
		stored = column->kind == GS_KEY_NAME ?
			NameStr(*DatumGetName(value)) : VARDATA_ANY(DatumGetPointer(value));
	}
	record[layout->tail_word] = gs_tail_make((uint32) (stored - row), bytes->len);
}

/* The code of a value of one field that is passed by value. */
static inline uint64
value_code(const KeyColumn *column, Datum value)
{
	return column->is_integer ? (value ^ column->flip) & column->mask :
		gs_key_value_code(column->kind, column->field, &column->labels, value);
}

/* Puts a value of fixed width that is no integer in its place in the record. */
static pg_noinline void
write_by_kind(const KeyColumn *column, Datum value, uint64 *record)
{
	if (column->by_value)
		gs_key_field_write(column->field, record, value_code(column, value));
	else
		gs_key_fields_write(column->kind, column->field, value, record);
}

/*
 * Puts a value of fixed width in its place in the record.  Integers are most,
 * and few instructions; with the rest inline, too, no register would be left.
 */
static pg_attribute_always_inline void
write_fixed(const KeyColumn *column, Datum value, uint64 *record)
{
	if (likely(column->is_integer))
	{
		GsKeyField *field = column->field;
		uint64		code = value_code(column, value);

		gs_key_field_update_range(field, code);
		record[field->word] |= code << field->shift;
	}
	else
		write_by_kind(column, value, record);
}

/* The code of a field of a value that is passed by reference. */
static pg_noinline uint64
by_reference_code(const KeyColumn *column, GsKeyField *field, Datum value)
{
	uint64		record[GS_MAX_FIELDS] = {0};

	gs_key_fields_write(column->kind, field, value, record);
	return (record[field->word] >> field->shift) & gs_key_field_mask(field);
}

/* The code of the first column's first field, of a value that is loaded and not NULL. */
static inline uint64
first_code(const GsKeyEncoder *key)
{
	const KeyColumn *column = &key->columns[0];

	if (column->by_value)
		return value_code(column, key->values[0]);
	if (key->layout.columns[0].variable)
		return column->bytes.prefix;
	return by_reference_code(column, column->field, key->values[0]);
}

bool
gs_key_encoder_first_is_expensive(const GsKeyEncoder *key)
{
	return key->columns[0].abbreviation != NULL || key->columns[0].collation != NULL;
}

bool
gs_key_encoder_read_first(GsKeyEncoder *key, TupleTableSlot *slot, bool *is_null, uint64 *code)
{
	Size		nbytes;
	const char *body = gs_row_body(slot, &nbytes);
	AttrNumber	attno = key->columns[0].attno;
	const char *why_not;

	if (slot->tts_nvalid >= attno || body == NULL ||
		!gs_deform(key->first_deform, (HeapTupleHeader) (body - MINIMAL_TUPLE_OFFSET),
				   key->values, key->nulls))
		key->values[0] = slot_getattr(slot, attno, &key->nulls[0]);
	*is_null = key->nulls[0];
	if (*is_null)
		return true;
	reset_values(key);
	if (!read_column(key, 0, &why_not))
		return false;
	*code = first_code(key);
	return true;
}

/* Begins the record of another row. */
static inline void
begin_record(GsKeyLayout *layout, uint64 *record)
{
	layout->nrows++;
	for (int w = 0; w < layout->nwords; w++)
		record[w] = 0;
}

/* Notes a NULL; returns its bit. */
static inline uint32
write_null(GsKeyLayout *layout, int column)
{
	layout->columns[column].nnulls++;
	return UINT32_C(1) << column;
}

uint32
gs_key_encoder_write(GsKeyEncoder *key, const GsRowSource *source, char *row,
				  size_t row_bytes, uint64 *record)
{
	char	   *extra = row + row_bytes;
	uint32		nulls = 0;

	begin_record(&key->layout, record);
	for (int i = 0; i < key->ncolumns; i++)
	{
		if (key->nulls[i])
			nulls |= write_null(&key->layout, i);
		else if (key->layout.columns[i].variable)
			write_value_bytes(key, i, source, row, &extra, record);
		else
			write_fixed(&key->columns[i], key->values[i], record);
	}
	return nulls;
}

/* Where a value that is found in a tuple goes. */
typedef struct RecordTarget
{
	const KeyColumn *columns;
	uint64	   *record;
} RecordTarget;

static pg_attribute_always_inline void
write_found(void *arg, int column, Datum value)
{
	const RecordTarget *target = arg;

	write_fixed(&target->columns[column], value, target->record);
}

/* Writes the record of a tuple, all in one.  False: it has NULLs, or not all columns. */
static inline bool
write_visiting(GsKeyEncoder *key, const GsRowSource *source, uint64 *record)
{
	RecordTarget target = {key->columns, record};

	if (unlikely(!gs_deform_can_visit(key->deform, source_tuple(source))))
		return false;
	begin_record(&key->layout, record);
	gs_deform_visit(key->deform, source_tuple(source), write_found, &target);
	return true;
}

uint32
gs_key_encoder_write_direct(GsKeyEncoder *key, TupleTableSlot *slot, const GsRowSource *source,
						 uint64 *record)
{
	if (likely(deforms_tuple(key, slot, source) && write_visiting(key, source, record)))
		return 0;
	find_values(key, slot, source);
	return gs_key_encoder_write(key, source, NULL, 0, record);
}

uint32
gs_key_encoder_write_direct_row(GsKeyEncoder *key, const GsRowSource *source, uint64 *record)
{
	if (likely(key->deform != NULL && write_visiting(key, source, record)))
		return 0;
	find_values_of_row(key, source);
	return gs_key_encoder_write(key, source, NULL, 0, record);
}

/* ----------------------------------------------------------------- keys only */

bool
gs_key_encoder_write_value(GsKeyEncoder *key, Datum value, uint64 *record, const char **why_not)
{
	KeyColumn  *column = &key->columns[0];

	if (column->kind == GS_KEY_ENUM && !gs_key_labels_find(&column->labels, &value, why_not))
		return false;
	key->layout.nrows++;
	record[0] = 0;
	gs_key_layout_update_order(&key->layout,
								gs_key_field_write(column->field, record,
												 value_code(column, value)));
	return true;
}

Datum
gs_key_encoder_decode(const GsKeyEncoder *key, const uint64 *record)
{
	const GsKeyField *field = &key->layout.fields[0];
	uint64		code = (record[0] >> field->shift) & gs_key_field_mask(field);

	return gs_key_value_decode(key->columns[0].kind, code);
}
