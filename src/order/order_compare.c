/*-------------------------------------------------------------------------
 *
 * order_compare.c
 *	  Compares two stored rows by PostgreSQL's comparators.
 *
 * It does not use keys: there is a SortSupport without abbreviation for each column.  Who sorts by
 * it: engine/tie_sort.c and engine/compare_sort.c; after a device sort/sort_device_ties.c.
 *
 * A value that is compressed or out of line is fetched when a comparison reaches its column, and
 * kept as long as its row is one of the two rows.  So a row that is compared with both its
 * neighbors, or in a merge with several rows of the other half, fetches its values once.
 *
 * A comparison function that is called through fmgr usually copies a value with a one-byte header,
 * which costs more than the comparison.  So while an engine sorts, such values are copied once, and
 * values that must be fetched are fetched once, as far as memory permits (gs_order_compare_keep()).
 * So are short values of a fixed width that are passed by reference: a sort of many rows compares
 * them in any order, and in rows they are far from each other.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key/key_deform.h"
#include "key/key_distinct.h"
#include "key/key_stored_row.h"
#include "key/key_sortsupport.h"
#include "pg_compat.h"
#include "order/order.h"

#include "access/detoast.h"
#include "access/nbtree.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* Memory for short values is allocated in such chunks. */
#define KEPT_CHUNK_BYTES	((Size) 32 << 10)

/*
 * The widest values of a fixed width that are copied: a cache line.  ORDER BY of 1 M rows of
 * 150 bytes by one of 16 bytes: 404 ms without copies, 378 with them (work_mem = 1GB; AMD EPYC,
 * Zen 5, busy, PostgreSQL 15.20, 2026-11-24).
 */
#define MOST_COPIED_BYTES	64

/*
 * The share of memory for copies of values of variable width, of which nothing is known: they are
 * mostly shorter than a quarter of their rows and what else is stored for these.
 */
#define VARIABLE_COPIES_SHARE	0.25

/* The sort columns of a row. */
typedef struct RowColumns
{
	Datum	   *values;
	bool	   *nulls;
	MemoryContext context;		/* of fetched values; NULL before the first */
	bool		any_fetched;
} RowColumns;

/* A value that was fetched, and where it is referred to. */
typedef struct FetchedValue
{
	const void *of;				/* NULL: none */
	Datum		value;
	MemoryContext context;		/* NULL before the first */
} FetchedValue;

/* Values that were copied or fetched for all comparisons. */
typedef struct KeptValues
{
	MemoryContext context;		/* NULL: none are kept */
	Size		limit;
	Size		used;
	char	   *chunk;			/* where short values go */
	Size		chunk_bytes;	/* that are left of it */
} KeptValues;

struct GsOrderCompare
{
	int			ncolumns;
	SortSupport columns;
	bool	   *variable;		/* values may have to be fetched */
	FunctionCallInfo *calls;	/* of comparison functions; NULL: the comparator of a SortSupport */
	TupleDesc	desc;
	GsDeform   *deform;			/* locates all columns */
	GsDeform  **deform_column;	/* locates one column; NULL: not yet */
	int			first;			/* column by which rows are located; -1: none yet */
	FunctionCallInfo first_call;	/* of its comparison function, or NULL */
	bool		first_variable; /* its values may have to be fetched */
	bool		first_reverse;	/* DESC */
	Size		first_width;	/* of values that are copied whatever they are; 0: they are not */
	FetchedValue fetched[2];	/* of located rows */
	KeptValues	kept;			/* of located rows, too */
	RowColumns	before;
	RowColumns	row;
	int			decisive;
	MemoryContext context;		/* in which comparators run; they may keep memory */
};

static inline Form_pg_attribute
attribute_of(const GsOrderCompare *compare, int i)
{
	return TupleDescAttr(compare->desc, compare->columns[i].ssup_attno - 1);
}

/* Prepares to call the comparison function of a column.  NULL: its SortSupport has a comparator. */
static FunctionCallInfo
prepare_call(const GsSortColumn *column)
{
	Oid			family;
	Oid			type;
	bool		descending;
	FmgrInfo   *function;
	FunctionCallInfo call;

	if (!gs_ordering_operator(column->sort_operator, &family, &type, &descending) ||
		OidIsValid(get_opfamily_proc(family, type, type, BTSORTSUPPORT_PROC)))
		return NULL;
	function = palloc(sizeof(FmgrInfo));
	call = palloc(SizeForFunctionCallInfo(2));
	fmgr_info(get_opfamily_proc(family, type, type, BTORDER_PROC), function);
	InitFunctionCallInfoData(*call, function, 2, column->collation, NULL, NULL);
	call->args[0].isnull = false;
	call->args[1].isnull = false;
	return call;
}

GsOrderCompare *
gs_order_compare_create(const GsSortColumn *columns, int ncolumns, TupleDesc desc)
{
	GsOrderCompare *compare = palloc0(sizeof(GsOrderCompare));
	AttrNumber *attnos = palloc(sizeof(AttrNumber) * ncolumns);

	compare->ncolumns = ncolumns;
	compare->first = -1;
	compare->desc = desc;
	compare->columns = palloc(sizeof(SortSupportData) * ncolumns);
	compare->variable = palloc(sizeof(bool) * ncolumns);
	compare->calls = palloc(sizeof(FunctionCallInfo) * ncolumns);
	compare->deform_column = palloc0(sizeof(GsDeform *) * ncolumns);
	for (int i = 0; i < ncolumns; i++)
	{
		gs_key_sortsupport_prepare(&compare->columns[i], &columns[i], false);
		attnos[i] = columns[i].attno;
		compare->variable[i] = TupleDescAttr(desc, attnos[i] - 1)->attlen == -1;
		compare->calls[i] = prepare_call(&columns[i]);
	}
	compare->deform = gs_deform_create(desc, attnos, ncolumns);
	pfree(attnos);
	compare->before.values = palloc(sizeof(Datum) * ncolumns);
	compare->before.nulls = palloc(sizeof(bool) * ncolumns);
	compare->row.values = palloc(sizeof(Datum) * ncolumns);
	compare->row.nulls = palloc(sizeof(bool) * ncolumns);
	compare->context = CurrentMemoryContext;
	return compare;
}

static void
find_columns(const GsOrderCompare *compare, const void *row, RowColumns *found)
{
	if (found->any_fetched)
		MemoryContextReset(found->context);
	found->any_fetched = false;
	gs_deform_any(compare->deform, gs_row_header(row), found->values, found->nulls);
}

/* Fetches a value into a context, which is created if necessary. */
static pg_noinline Datum
fetch_value(MemoryContext *context, Datum value)
{
	MemoryContext old;

	if (*context == NULL)
		*context = AllocSetContextCreate(CurrentMemoryContext, "GpuSort compared values",
										 ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(*context);
	value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
	MemoryContextSwitchTo(old);
	return value;
}

/* Fetches a column's value if necessary. */
static inline void
prepare_value(const GsOrderCompare *compare, RowColumns *row, int i)
{
	if (compare->variable[i] && !row->nulls[i] && gs_is_toasted(-1, row->values[i]))
	{
		row->values[i] = fetch_value(&row->context, row->values[i]);
		row->any_fetched = true;
	}
}

static pg_noinline void
report_null(const FmgrInfo *function)
{
	elog(ERROR, "function %u returned NULL", function->fn_oid);
}

/* Calls a comparison function, as FunctionCall2Coll() does. */
static inline int
call_function(FunctionCallInfo call, Datum a, Datum b)
{
	Datum		result;

	call->args[0].value = a;
	call->args[1].value = b;
	call->isnull = false;
	result = FunctionCallInvoke(call);
	if (unlikely(call->isnull))
		report_null(call->flinfo);
	return DatumGetInt32(result);
}

/* Compares two values of a column, not NULL, that need not be fetched. */
static inline int
compare_full(const GsOrderCompare *compare, int i, Datum a, Datum b)
{
	const SortSupport order = &compare->columns[i];
	const FunctionCallInfo call = compare->calls[i];
	int			result;

	if (call == NULL)
		result = order->comparator(a, b, order);
	else
		result = call_function(call, a, b);
	if (order->ssup_reverse)
		INVERT_COMPARE_RESULT(result);
	return result;
}

/* Is it known without fetching them that two values are equal? */
static inline bool
are_alike_unfetched(Datum a, Datum b)
{
	return (gs_is_toasted(-1, a) || gs_is_toasted(-1, b)) && gs_have_same_bytes(a, b);
}

/* Compares the two rows from column `first` on. */
static inline int
compare_columns(GsOrderCompare *compare, int first)
{
	MemoryContext old = MemoryContextSwitchTo(compare->context);
	int			order = 0;

	for (int i = first; i < compare->ncolumns; i++)
	{
		if (compare->variable[i] && !compare->before.nulls[i] && !compare->row.nulls[i] &&
			are_alike_unfetched(compare->before.values[i], compare->row.values[i]))
			continue;
		prepare_value(compare, &compare->before, i);
		prepare_value(compare, &compare->row, i);
		order = ApplySortComparator(compare->before.values[i], compare->before.nulls[i],
									compare->row.values[i], compare->row.nulls[i],
									&compare->columns[i]);
		if (order != 0)
		{
			compare->decisive = i;
			break;
		}
	}
	MemoryContextSwitchTo(old);
	return order;
}

/* Are the rows compared by one value, not NULL, that is quick to find? */
static inline bool
has_one_value(const GsDeform *deform, HeapTupleHeader row)
{
	return deform->only != NULL && deform->only->by_value && gs_deform_can_visit(deform, row);
}

static int
compare_one_value(GsOrderCompare *compare, Datum a, Datum b)
{
	MemoryContext old;
	int			order;

	if (a == b)
		return 0;
	old = MemoryContextSwitchTo(compare->context);
	order = ApplySortComparator(a, false, b, false, &compare->columns[0]);
	MemoryContextSwitchTo(old);
	compare->decisive = 0;
	return order;
}

int
gs_order_compare_rows(GsOrderCompare *compare, const void *a, const void *b)
{
	const GsDeform *deform = compare->deform;

	if (has_one_value(deform, gs_row_header(a)) && has_one_value(deform, gs_row_header(b)))
		return compare_one_value(compare, gs_deform_only(deform, gs_row_header(a)),
								 gs_deform_only(deform, gs_row_header(b)));
	find_columns(compare, a, &compare->before);
	find_columns(compare, b, &compare->row);
	return compare_columns(compare, 0);
}

/* --------------------------------------------------------------- located rows */

static pg_noinline void
create_deform(GsOrderCompare *compare, int column)
{
	MemoryContext old = MemoryContextSwitchTo(compare->context);
	const AttrNumber attno = compare->columns[column].ssup_attno;

	compare->deform_column[column] = gs_deform_create(compare->desc, &attno, 1);
	MemoryContextSwitchTo(old);
}

/* The width of the values of a column, if they are copied whatever they are. */
static Size
copied_width(const GsOrderCompare *compare, int column)
{
	const Form_pg_attribute attribute = attribute_of(compare, column);

	return !attribute->attbyval && attribute->attlen > 0 && attribute->attlen <= MOST_COPIED_BYTES ?
		attribute->attlen : 0;
}

static pg_noinline void
set_first(GsOrderCompare *compare, int first)
{
	compare->first = first;
	compare->first_call = compare->calls[first];
	compare->first_variable = compare->variable[first];
	compare->first_reverse = compare->columns[first].ssup_reverse;
	compare->first_width = copied_width(compare, first);
	if (compare->deform_column[first] == NULL)
		create_deform(compare, first);
}

MemoryContext
gs_order_compare_context(const GsOrderCompare *compare)
{
	return compare->context;
}

double
gs_order_compare_copies_share(const GsOrderCompare *compare, int first, double row_bytes)
{
	const Size	width = copied_width(compare, first);

	if (width > 0)
		return MAXALIGN(width) / (row_bytes + MAXALIGN(width));
	return compare->variable[first] && compare->calls[first] != NULL ? VARIABLE_COPIES_SHARE : 0;
}

Size
gs_order_compare_keep(GsOrderCompare *compare, Size nbytes)
{
	KeptValues *kept = &compare->kept;
	const Size	used = kept->used;

	if (kept->context != NULL)
		MemoryContextDelete(kept->context);
	*kept = (KeptValues) {
		.limit = nbytes
	};
	if (nbytes > 0)
		kept->context = AllocSetContextCreate(compare->context, "GpuSort kept values",
											  ALLOCSET_DEFAULT_SIZES);
	return used;
}

/* Counts memory for a copy.  False: there is none left. */
static inline bool
may_keep(KeptValues *kept, Size nbytes)
{
	if (nbytes > kept->limit - kept->used)
		return false;
	kept->used += nbytes;
	return true;
}

/* Memory for a short copy. */
static inline void *
keep_short(KeptValues *kept, Size nbytes)
{
	void	   *at;

	if (kept->chunk_bytes < nbytes)
	{
		kept->chunk_bytes = KEPT_CHUNK_BYTES;
		kept->chunk = MemoryContextAlloc(kept->context, KEPT_CHUNK_BYTES);
	}
	at = kept->chunk;
	kept->chunk += nbytes;
	kept->chunk_bytes -= nbytes;
	return at;
}

/* A copy of a value of a fixed width; or the value, if there is no memory. */
static inline Datum
kept_fixed(GsOrderCompare *compare, Datum value)
{
	const Size	nbytes = MAXALIGN(compare->first_width);
	void	   *to;

	if (!may_keep(&compare->kept, nbytes))
		return value;
	to = keep_short(&compare->kept, nbytes);
	memcpy(to, DatumGetPointer(value), compare->first_width);
	return PointerGetDatum(to);
}

/*
 * A value of a variable width with a four-byte header, copied or fetched; or the value, if there is
 * no need or no memory.
 */
static Datum
kept_variable(GsOrderCompare *compare, Datum value)
{
	KeptValues *kept = &compare->kept;
	struct varlena *from = (struct varlena *) DatumGetPointer(value);
	struct varlena *to = from;
	MemoryContext old;
	Size		nbytes;

	if (!VARATT_IS_EXTENDED(from))
		return value;
	nbytes = MAXALIGN(toast_raw_datum_size(value));
	if (!may_keep(kept, nbytes))
		return value;
	if (gs_is_toasted(-1, value))
	{
		old = MemoryContextSwitchTo(kept->context);
		to = pg_detoast_datum(from);
		MemoryContextSwitchTo(old);
	}
	else if (compare->calls[compare->first] != NULL)
	{
		to = keep_short(kept, nbytes);
		SET_VARSIZE(to, VARSIZE_SHORT(from) - VARHDRSZ_SHORT + VARHDRSZ);
		memcpy(VARDATA(to), VARDATA_SHORT(from), VARSIZE_SHORT(from) - VARHDRSZ_SHORT);
	}
	return PointerGetDatum(to);
}

/* The value of a row by which it is located, as it is stored. */
static inline Datum
first_value(GsOrderCompare *compare, const void *row, int first, bool *is_null)
{
	Datum		value;

	if (first != compare->first)
		set_first(compare, first);
	gs_deform_any(compare->deform_column[first], gs_row_header(row), &value, is_null);
	return value;
}

/* The value by which a row is located: of column `first`; 0: NULL. */
static inline uint64
locate(GsOrderCompare *compare, const void *row, int first)
{
	bool		is_null;
	const Datum value = first_value(compare, row, first, &is_null);

	if (is_null)
		return 0;
	/* another row was here before */
	for (int i = 0; i < lengthof(compare->fetched); i++)
	{
		if (compare->fetched[i].of == DatumGetPointer(value))
			compare->fetched[i].of = NULL;
	}
	if (compare->kept.context == NULL)
		return value;
	if (compare->first_width > 0)
		return kept_fixed(compare, value);
	return compare->variable[first] ? kept_variable(compare, value) : value;
}

static uint64
locate_first(void *arg, const void *row)
{
	return locate(((const GsOrder *) arg)->compare, row, 0);
}

static uint64
locate_tied(void *arg, const void *row)
{
	const GsOrder *order = arg;

	return locate(order->compare, row, gs_order_first_tied(order));
}

static bool
are_addresses(void *arg)
{
	const GsOrderCompare *compare = ((const GsOrder *) arg)->compare;

	return !attribute_of(compare, compare->first)->attbyval;
}

static uint64
guess_tied(void *arg, const void *row, int guess)
{
	const GsOrder *order = arg;
	const int	first = gs_order_first_tied(order);
	bool		is_null;
	const Datum value = first_value(order->compare, row, first, &is_null);
	const SortSupport column = &order->compare->columns[first];

	if (is_null)
		return column->ssup_nulls_first ? 0 : PG_UINT64_MAX;
	return gs_guess_code(attribute_of(order->compare, first), value, guess);
}

/* The value of a row, fetched; that of the other row stays. */
static pg_noinline Datum
fetched_value(GsOrderCompare *compare, Datum value, Datum other)
{
	const void *at = DatumGetPointer(value);
	FetchedValue *fetched = compare->fetched;

	if (!gs_is_toasted(-1, value))
		return value;
	if (fetched->of != at && (fetched[1].of == at || fetched->of == DatumGetPointer(other)))
		fetched++;
	if (fetched->of != at)
	{
		fetched->of = NULL;
		if (fetched->context != NULL)
			MemoryContextReset(fetched->context);
		fetched->value = fetch_value(&fetched->context, value);
		fetched->of = at;
	}
	return fetched->value;
}

/* Two values of variable width. */
static inline int
compare_variable(GsOrderCompare *compare, Datum a, Datum b)
{
	Datum		x;
	Datum		y;

	if (gs_have_same_bytes(a, b))
		return 0;
	if (!gs_is_toasted(-1, a) && !gs_is_toasted(-1, b))
		return compare_full(compare, compare->first, a, b);
	x = fetched_value(compare, a, b);
	y = fetched_value(compare, b, a);
	return gs_have_same_bytes(x, y) ? 0 : compare_full(compare, compare->first, x, y);
}

/* Two values of the column by which rows are located, in any context. */
static pg_noinline int
compare_located_values(GsOrderCompare *compare, Datum a, Datum b)
{
	MemoryContext old = MemoryContextSwitchTo(compare->context);
	const int	order = compare->variable[compare->first] ? compare_variable(compare, a, b) :
		compare_full(compare, compare->first, a, b);

	MemoryContextSwitchTo(old);
	return order;
}

/* Must one of two values of the column by which rows are located be fetched? */
static inline bool
is_one_fetched(const GsOrderCompare *compare, Datum a, Datum b)
{
	return compare->first_variable && (gs_is_toasted(-1, a) || gs_is_toasted(-1, b));
}

/*
 * A merge sort of a million rows comes here 19 million times, so what is usual is little more than
 * the call.
 */
static int
compare_values(void *arg, uint64 a, uint64 b)
{
	GsOrderCompare *compare = ((const GsOrder *) arg)->compare;
	const FunctionCallInfo call = compare->first_call;
	int			order;

	if (a == 0 || b == 0)
		return 0;				/* the rows tell NULL and 0 apart */
	if (a == b)
		return 0;
	CHECK_FOR_INTERRUPTS();
	if (call == NULL || CurrentMemoryContext != compare->context || is_one_fetched(compare, a, b))
		return compare_located_values(compare, a, b);
	order = call_function(call, a, b);
	if (compare->first_reverse)
		INVERT_COMPARE_RESULT(order);
	return order;
}

static int
compare_rows(void *arg, GsLocatedRow a, GsLocatedRow b)
{
	GsOrderCompare *compare = ((const GsOrder *) arg)->compare;
	const bool	first_decides = a.value == 0 || b.value == 0;
	const int	first = compare->first + (first_decides ? 0 : 1);

	if (first == compare->ncolumns)
		return 0;
	CHECK_FOR_INTERRUPTS();
	find_columns(compare, a.row, &compare->before);
	find_columns(compare, b.row, &compare->row);
	return compare_columns(compare, first);
}

/* -------------------------------------------------------------------- same bytes */

static uint32
hash_stored(Form_pg_attribute attribute, Datum value)
{
	const char *bytes = (const char *) &value;
	Size		nbytes = sizeof(Datum);

	if (!attribute->attbyval)
		bytes = gs_stored_bytes(attribute->attlen, value, &nbytes);
	return gs_stored_hash(bytes, nbytes);
}

static bool
are_stored_alike(Form_pg_attribute attribute, Datum a, Datum b)
{
	if (attribute->attbyval)
		return a == b;
	if (attribute->attlen == -1)
		return gs_have_same_bytes(a, b);
	return attribute->attlen == -2 ? strcmp(DatumGetCString(a), DatumGetCString(b)) == 0 :
		memcmp(DatumGetPointer(a), DatumGetPointer(b), attribute->attlen) == 0;
}

/* Finds at least the columns from `first` on. */
static inline void
find_columns_from(GsOrderCompare *compare, const void *row, int first, RowColumns *found)
{
	if (first == compare->ncolumns - 1)
		found->values[first] = first_value(compare, row, first, &found->nulls[first]);
	else
		find_columns(compare, row, found);
}

uint32
gs_order_compare_hash(GsOrderCompare *compare, const void *row, int first, int end)
{
	RowColumns *found = &compare->row;
	uint32		hash = 0;

	CHECK_FOR_INTERRUPTS();
	find_columns_from(compare, row, first, found);
	for (int i = first; i < end; i++)
		hash = hash_combine(hash, found->nulls[i] ? 0 :
							hash_stored(attribute_of(compare, i), found->values[i]));
	return hash;
}

static uint32
hash_tied(void *arg, const void *row)
{
	const GsOrder *order = arg;

	return gs_order_compare_hash(order->compare, row, gs_order_first_tied(order), order->ncolumns);
}

static bool
are_same_tied(void *arg, const void *a, const void *b)
{
	const int	first = gs_order_first_tied(arg);
	GsOrderCompare *compare = ((const GsOrder *) arg)->compare;
	RowColumns *before = &compare->before;
	RowColumns *found = &compare->row;

	CHECK_FOR_INTERRUPTS();
	find_columns_from(compare, a, first, before);
	find_columns_from(compare, b, first, found);
	for (int i = first; i < compare->ncolumns; i++)
	{
		if (before->nulls[i] != found->nulls[i])
			return false;
		if (!found->nulls[i] &&
			!are_stored_alike(attribute_of(compare, i), before->values[i], found->values[i]))
			return false;
	}
	return true;
}

const GsRowCompare gs_order_tied_rows =
{
	locate_tied, compare_values, are_addresses, compare_rows, hash_tied, are_same_tied, GS_GUESSES,
		guess_tied
};

const GsRowCompare gs_order_all_rows =
{
	.locate = locate_first,
	.compare_values = compare_values,
	.are_addresses = are_addresses,
	.compare_rows = compare_rows
};

/* ------------------------------------------------------------------ sequences */

void
gs_order_compare_begin(GsOrderCompare *compare, const void *row)
{
	find_columns(compare, row, &compare->row);
}

int
gs_order_compare_next(GsOrderCompare *compare, const void *row)
{
	RowColumns	before = compare->row;

	compare->row = compare->before;
	compare->before = before;
	find_columns(compare, row, &compare->row);
	return compare_columns(compare, 0);
}

int
gs_order_compare_decisive(const GsOrderCompare *compare)
{
	return compare->decisive;
}
