/*-------------------------------------------------------------------------
 *
 * key_encoder.c
 *	  Chooses the encoding of each sort column, and so the layout of the key records.
 *
 * README.md lists the encodings.  key_encode_row.c encodes the rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/batch.h"
#include "key/key_encoder.h"
#include "key/key_encoder_state.h"
#include "key/key_numeric.h"

#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* ------------------------------------------------------ choosing an encoding */

/* Is it the order of texts, or of names, of the C library? */
static bool
is_libc_text(const GsKeyOrder *order)
{
	return (order->kind == GS_KEY_TEXT || order->kind == GS_KEY_BPCHAR ||
			order->kind == GS_KEY_NAME) && OidIsValid(gs_key_order_libc_collation(order));
}

/*
 * Chooses the encoding of a column.  full: the code has to order all values, since a
 * device sorts.  Otherwise it may leave ties to the comparator if mostly few rows tie:
 * those that are not the last column, only if samples show that (key_sortsupport.h).
 */
static void
choose_encoding(GsKeyEncoder *key, KeyColumn *column, const GsKeyOrder *order,
				const GsSortColumn *plan, bool full, bool last)
{
	const char *mismatch = gs_key_order_mismatch_reason(order);
	bool		abbreviate = order->kind == GS_KEY_ABBREVIATED;

	column->kind = order->kind;
	column->of_libc = is_libc_text(order);
	/* a comparison that contradicts itself finds no place for a value */
	if (mismatch != NULL && !order->approximate && !OidIsValid(gs_key_order_libc_collation(order)))
		column->choice = GS_DICTIONARY_REJECTED;
	if (column->choice == GS_DICTIONARY_WANTED)
	{
		column->dictionary = gs_key_dictionary_create(plan, column->attlen,
													  (Size) work_mem * 1024 / DICTIONARY_SHARE);
		column->kind = GS_KEY_ABBREVIATED;
		return;
	}
	if (OidIsValid(order->collation) && !full && order->kind != GS_KEY_NAME)
		abbreviate = key->truncation != GS_KEYS_WHOLE;
	if (abbreviate)
		column->abbreviation = gs_key_sortsupport_create(plan->sort_operator, plan->collation);
	if (column->abbreviation != NULL)
	{
		column->kind = GS_KEY_ABBREVIATED;
		if (OidIsValid(order->collation))
			gs_key_sortsupport_use_text(column->abbreviation, order->collation,
										order->kind == GS_KEY_BPCHAR, !last);
	}
	else if (OidIsValid(order->collation))
		column->collation = gs_key_collation_create(order->collation, full || !last);
	key->facts.approximate_type = order->approximate && key->facts.mismatch == NULL;
	if (key->facts.mismatch == NULL)
		key->facts.mismatch = mismatch;
}

static bool
leaves_ties(const KeyColumn *column)
{
	return column->kind == GS_KEY_COMPARED || column->abbreviation != NULL ||
		(column->collation != NULL && !gs_key_collation_is_full(column->collation));
}

/* Can a value be decoded from its code, and is it a Datum of its own? */
static bool
is_decodable(const KeyColumn *column)
{
	return gs_key_kind_is_by_value(column->kind) && column->kind != GS_KEY_ABBREVIATED &&
		(column->kind != GS_KEY_ENUM || !column->labels.placed);
}

/* The longest key of a column. */
static uint32
most_bytes(const GsKeyEncoder *key, const KeyColumn *column)
{
	if (key->truncation == GS_KEYS_WHOLE)
		return PG_UINT32_MAX;
	return key->truncation == GS_KEYS_SHORT && column->collation != NULL && column->of_libc ?
		SHORT_KEY_BYTES : GS_TRUNCATED_KEY_BYTES;
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
			/* placed labels are encoded as their sort order, a float */
			column->is_integer = !column->labels.placed;
	}
}

/* The type modifier of a column, or of the domain of its values; -1 if there is none. */
static int32
declared_typmod(const GsSortColumn *column, TupleDesc desc)
{
	int32		typmod = TupleDescAttr(desc, column->attno - 1)->atttypmod;

	if (typmod < 0)
		(void) getBaseTypeAndTypmod(column->type, &typmod);
	return typmod;
}

/* Adds the fields of a column to the layout and prepares its codes. */
static void
add_column(GsKeyEncoder *key, KeyColumn *column, const GsKeyOrder *order, bool descending,
		   const GsSortColumn *plan, bool is_whole_row)
{
	GsKeyLayout *layout = &key->layout;
	const GsKeyColumn *added;
	bool		keys_only;

	column->by_value = gs_key_kind_is_by_value(column->kind);
	column->most_bytes = most_bytes(key, column);
	if (column->kind == GS_KEY_ENUM)
		gs_key_labels_read(&column->labels, order->type);
	added = gs_key_layout_add_column(layout, descending, plan->nulls_first);
	keys_only = is_whole_row && is_decodable(column);
	layout->keys_only = keys_only;
	layout->ascending = keys_only;
	gs_key_fields_add(layout, column->kind, keys_only);
	column->field = &layout->fields[added->first_field];
	if (column->by_value)
		prepare_code(column);
	if (gs_key_kind_is_made(column->kind))
	{
		const int32 typmod = declared_typmod(plan, key->desc);

		column->maker = gs_key_maker_create(order, typmod);
		column->fixed_weight = gs_numeric_fixed_weight(typmod);
	}
	column->is_read = column->kind != GS_KEY_ENUM && column->kind != GS_KEY_ABBREVIATED &&
		!added->variable;
	column->is_plain = (column->kind == GS_KEY_TEXT || column->kind == GS_KEY_BYTEA) &&
		column->collation == NULL && !column->of_libc;
	/* a row must be stored before it is compared */
	key->facts.direct &= column->is_read;
}

/*
 * May ties that a device leaves be found, by comparing each row with the next one?  That costs
 * little only by columns that are passed by value.  Approximate keys have to be verified before.
 */
static bool
ties_can_be_found(const GsKeyEncoder *key, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		if (!TupleDescAttr(key->desc, key->columns[i].attno - 1)->attbyval)
			return false;
	}
	return key->facts.mismatch == NULL;
}

/* Does the key end before column i, so that rows which tie before it are compared? */
static bool
ends_key(const GsKeyEncoder *key, int i, const GsKeyOrder *order)
{
	return i > 0 && (order->kind == GS_KEY_COMPARED ||
					 (i >= key->nkeyed && gs_key_order_is_variable(order, key->columns[i].attlen) &&
					  (!key->full || ties_can_be_found(key, i))));
}

/* Does encoding a value cost more than comparing two, or tell nothing? */
static bool
is_expensive(const KeyColumn *column)
{
	/* of two jsonb values the first differences decide, and the code has all of one */
	return column->kind == GS_KEY_COMPARED || column->abbreviation != NULL ||
		column->collation != NULL || column->kind == GS_KEY_JSONB;
}

/* The choice of a dictionary for a column of another encoder. */
static GsDictionaryChoice
choice_of(const KeyColumn *column, bool same_records)
{
	if (!same_records)
		return column->choice;
	/* it may be wanted only since records were made */
	return column->dictionary != NULL ? GS_DICTIONARY_WANTED : GS_DICTIONARY_REJECTED;
}

/* before: NULL, or an encoder to take choices of dictionaries from; same_records: those in use. */
static GsKeyEncoder *
create_encoder(const GsSortColumn *columns, int ncolumns, TupleDesc desc, int nkeyed, bool full,
			   GsKeyTruncation truncation, const GsKeyEncoder *before, bool same_records)
{
	GsKeyEncoder *key = palloc0(sizeof(GsKeyEncoder));
	AttrNumber *attnos = palloc(sizeof(AttrNumber) * ncolumns);

	key->desc = desc;
	key->columns = palloc0(sizeof(KeyColumn) * ncolumns);
	key->facts.direct = true;
	key->facts.first_tied = -1;
	key->nkeyed = nkeyed;
	key->full = full;
	key->truncation = truncation;
	key->truncated_keys.next_check = FIRST_TRUNCATION_CHECK;
	key->values = palloc(sizeof(Datum) * ncolumns);
	key->nulls = palloc(sizeof(bool) * ncolumns);
	key->value_context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort key",
											   ALLOCSET_SMALL_SIZES);
	gs_key_layout_init(&key->layout);
	/* also those of columns that are not encoded now, so that each is made once */
	for (int i = 0; before != NULL && i < ncolumns; i++)
		key->columns[i].choice = choice_of(&before->columns[i], same_records);

	/* rows that tie on a column are compared by it and those after it */
	while (key->ncolumns < ncolumns && key->facts.first_tied < 0)
	{
		const int	i = key->ncolumns;
		KeyColumn  *column = &key->columns[i];
		GsKeyOrder	order;
		bool		descending;
		char	   *why_not;

		if (!gs_key_columns_order(&columns[i], &order, &descending, &why_not))
			elog(ERROR, "could not encode sort column %d: %s", i + 1, why_not);
		column->attno = columns[i].attno;
		column->attlen = TupleDescAttr(desc, column->attno - 1)->attlen;
		if (ends_key(key, i, &order))
		{
			key->facts.first_tied = i;
			key->facts.can_key_more = order.kind != GS_KEY_COMPARED;
			key->facts.more_is_expensive =
				order.kind == GS_KEY_JSONB || gs_key_order_mismatch_reason(&order) != NULL;
			break;
		}
		key->ncolumns++;
		choose_encoding(key, column, &order, &columns[i], full, i + 1 == ncolumns);
		if (leaves_ties(column))
			key->facts.first_tied = i;
		add_column(key, column, &order, descending, &columns[i],
				   ncolumns == 1 && desc->natts == 1);
		attnos[i] = column->attno;
		key->last_attno = Max(key->last_attno, column->attno);
	}
	key->facts.first_is_expensive = is_expensive(&key->columns[0]);
	key->facts.first_is_numeric = key->columns[0].kind == GS_KEY_NUMERIC;
	key->deform = gs_deform_create(desc, attnos, key->ncolumns);
	key->first_deform = gs_deform_create(desc, attnos, 1);
	pfree(attnos);
	return key;
}

GsKeyEncoder *
gs_key_encoder_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc, int nkeyed,
					  bool full)
{
	return create_encoder(columns, ncolumns, desc, nkeyed, full,
						  full ? GS_KEYS_WHOLE : GS_KEYS_SHORT, NULL, false);
}

GsKeyEncoder *
gs_key_encoder_create_next(const GsSortColumn *columns, int ncolumns, TupleDesc desc,
						   const GsKeyEncoder *before)
{
	GsKeyEncoder *key;

	/* what made keys long may be in the dictionary now, so their length is chosen anew */
	if (before->wants_dictionary || before->facts.dictionary_overflowed)
		key = create_encoder(columns, ncolumns, desc, before->nkeyed, before->full,
							 before->full ? GS_KEYS_WHOLE : GS_KEYS_SHORT, before, false);
	else if (before->facts.can_key_more)
		key = create_encoder(columns, ncolumns, desc, before->facts.first_tied + 1, before->full,
							 before->truncation, before, false);
	else
		key = create_encoder(columns, ncolumns, desc, before->nkeyed, false,
							 before->short_was_truncated ? GS_KEYS_LONG : GS_KEYS_WHOLE,
							 before, false);
	if (before->counts_values)
		gs_key_encoder_count_values(key);
	return key;
}

GsKeyEncoder *
gs_key_encoder_create_same(const GsSortColumn *columns, int ncolumns, TupleDesc desc,
						   const GsKeyEncoder *of)
{
	GsKeyEncoder *key = create_encoder(columns, ncolumns, desc, of->nkeyed, of->full,
									   of->truncation, of, true);

	/* the keys are those that were chosen, whatever values come */
	key->truncation = Min(key->truncation, GS_KEYS_LONG);
	key->truncated_keys.next_check = LAST_TRUNCATION_CHECK + 1;
	key->may_be_low_cardinality = true;
	for (int i = 0; i < key->ncolumns; i++)
	{
		KeyColumn  *column = &key->columns[i];

		column->most_bytes = of->columns[i].most_bytes;
		column->labels = of->columns[i].labels;
		if (column->by_value)
			prepare_code(column);
		if (column->maker != NULL)
			gs_key_maker_share_labels(column->maker, of->columns[i].maker);
		column->dictionary = of->columns[i].dictionary;
	}
	return key;
}

/* ------------------------------------------------------------- the encodings */

const GsKeyFacts *
gs_key_encoder_facts(const GsKeyEncoder *key)
{
	return &key->facts;
}

GsKeyLayout *
gs_key_encoder_layout(GsKeyEncoder *key)
{
	return &key->layout;
}

/* The choices made for a column, as bits. */
static unsigned char
encoding_of_column(const GsKeyEncoder *key, int i)
{
	const KeyColumn *column = &key->columns[i];

	return (column->abbreviation != NULL ? 1 : 0) |
		(column->collation != NULL && gs_key_collation_is_full(column->collation) ? 2 : 0) |
		(column->dictionary != NULL ? 4 : 0) |
		(key->layout.columns[i].variable ? 8 : 0);
}

uint64
gs_key_encoder_fingerprint(const GsKeyEncoder *key)
{
	uint64		hash = 0;

	for (int i = 0; i < key->layout.ncolumns; i++)
	{
		const KeyColumn *column = &key->columns[i];
		const unsigned char encoding = encoding_of_column(key, i);

		hash = hash_bytes_extended(&encoding, sizeof(encoding), hash);
		if (key->layout.columns[i].variable)
			hash = hash_bytes_extended((const unsigned char *) &column->most_bytes,
									   sizeof(column->most_bytes), hash);
		hash = gs_key_labels_hash(&column->labels, hash);
		if (column->maker != NULL)
			hash = gs_key_maker_labels(column->maker, hash);
	}
	return hash;
}

/* --------------------------------------------------------------------- ties */

bool
gs_key_encoder_decides(const GsKeyEncoder *key)
{
	return key->facts.first_tied < 0 && key->facts.mismatch == NULL;
}

void
gs_key_encoder_tie_from(GsKeyEncoder *key, int column)
{
	if (key->facts.first_tied < 0 || column < key->facts.first_tied)
		key->facts.first_tied = column;
	key->layout.ndecisive = Min(key->layout.ndecisive, column + 1);
}

void
gs_key_encoder_keep_full(GsKeyEncoder *key)
{
	key->truncation = GS_KEYS_WHOLE;
	for (int i = 0; i < key->ncolumns; i++)
		key->columns[i].most_bytes = PG_UINT32_MAX;
}

void
gs_key_encoder_keep_low_cardinality(GsKeyEncoder *key)
{
	key->may_be_low_cardinality = true;
}

/* Does the abbreviated key of the last column have too few distinct values? */
static bool
abbreviated_key_is_short(const GsKeyEncoder *key)
{
	GsKeySortSupport *abbreviation = key->facts.first_tied < 0 ? NULL :
		key->columns[key->facts.first_tied].abbreviation;

	return abbreviation != NULL && gs_key_sortsupport_prefix_is_short(abbreviation);
}

bool
gs_key_encoder_wants_full_keys(GsKeyEncoder *key, bool at_end)
{
	GsDistinct *distinct = &key->truncated_keys;
	const int64 check = distinct->next_check;

	if (abbreviated_key_is_short(key))
		return true;
	if (check > LAST_TRUNCATION_CHECK)
		return false;
	if (!gs_distinct_check_is_due(distinct))
	{
		if (!at_end || check != LAST_TRUNCATION_CHECK)
			return false;
		distinct->next_check *= 2;	/* decided once, here */
	}
	return gs_distinct_estimate(distinct) < distinct->nvalues / 2.0;
}

/* ------------------------------------------------------------- verification */

bool
gs_key_encoder_can_prove_order(const GsKeyEncoder *key)
{
	/* not if the key ends before the abbreviated column, with a truncated one */
	return key->facts.approximate_type && key->columns[key->facts.first_tied].abbreviation != NULL;
}

bool
gs_key_encoder_proves_order(const GsKeyEncoder *key, const uint64 *before, const uint64 *record)
{
	const KeyColumn *column = &key->columns[key->facts.first_tied];
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
	return key->layout.columns[key->facts.first_tied].descending ? order > 0 : order < 0;
}

/* ------------------------------------------------------------- dictionaries */

/* Could a dictionary suit the column?  Abbreviated keys whose order is not known are only tried. */
static bool
may_have_dictionary(const GsKeyEncoder *key, int i)
{
	const KeyColumn *column = &key->columns[i];

	return column->choice == GS_DICTIONARY_UNDECIDED &&
		(column->attlen == -1 || column->collation != NULL) &&
		(key->layout.columns[i].variable ||
		 (column->abbreviation != NULL &&
		  !gs_key_sortsupport_is_approximate(column->abbreviation)));
}

void
gs_key_encoder_count_values(GsKeyEncoder *key)
{
	key->counts_values = true;
	for (int i = 0; i < key->ncolumns; i++)
	{
		if (may_have_dictionary(key, i))
		{
			key->columns[i].counted = palloc0(sizeof(CountedValues));
			gs_distinct_init(&key->columns[i].counted->distinct, FIRST_COUNTED_VALUES);
		}
	}
}

bool
gs_key_encoder_is_counting(const GsKeyEncoder *key)
{
	for (int i = 0; i < key->ncolumns; i++)
	{
		if (key->columns[i].counted != NULL)
			return true;
	}
	return false;
}

/*
 * What the values that were counted so far tell.  If they have few distinct ones, hardly any are
 * new in the second half of them; where most are one value and each of the others is another one,
 * half are.
 */
static GsDictionaryChoice
choose_dictionary(const KeyColumn *column, bool all_counted)
{
	CountedValues *counted = column->counted;
	const int64 nvalues = counted->distinct.nvalues;
	const double before = counted->ndistinct;
	double		ndistinct;

	if (counted->ncheap >= MAX_CHEAP_VALUES)
		return GS_DICTIONARY_REJECTED;
	ndistinct = gs_distinct_estimate(&counted->distinct);
	counted->ndistinct = ndistinct;
	if (ndistinct <= nvalues / 4 && (ndistinct < 1.25 * before || all_counted))
		return GS_DICTIONARY_WANTED;
	if (nvalues >= COUNTED_VALUES && ndistinct <= MAX_DICTIONARY_VALUES && ndistinct < 1.5 * before)
		return GS_DICTIONARY_WANTED;
	if (all_counted || nvalues >= COUNTED_VALUES)
		return GS_DICTIONARY_REJECTED;
	/* so few repetitions: too many distinct values for a dictionary, unless they arrive in turn */
	if (before > 0 && ndistinct > 0.95 * nvalues && !column->of_libc)
		return GS_DICTIONARY_REJECTED;
	return GS_DICTIONARY_UNDECIDED;
}

void
gs_key_column_choose_dictionary(GsKeyEncoder *key, KeyColumn *column, bool all_counted)
{
	column->choice = choose_dictionary(column, all_counted);
	if (column->choice == GS_DICTIONARY_UNDECIDED)
		return;
	key->wants_dictionary |= column->choice == GS_DICTIONARY_WANTED;
	gs_distinct_free(&column->counted->distinct);
	pfree(column->counted);
	column->counted = NULL;
}

bool
gs_key_encoder_wants_dictionary(GsKeyEncoder *key, bool at_end)
{
	for (int i = 0; at_end && i < key->ncolumns; i++)
	{
		KeyColumn  *column = &key->columns[i];

		if (column->counted != NULL && column->counted->distinct.nvalues > 0)
			gs_key_column_choose_dictionary(key, column, true);
	}
	return key->wants_dictionary;
}

int
gs_key_encoder_dictionary_values(const GsKeyEncoder *key)
{
	int			nvalues = 0;

	for (int i = 0; i < key->ncolumns; i++)
	{
		if (key->columns[i].dictionary != NULL)
			nvalues += gs_key_dictionary_count(key->columns[i].dictionary);
	}
	return nvalues;
}
