/*-------------------------------------------------------------------------
 *
 * key_order.c
 *	  The order of a sort operator, and the kind of code that preserves it.
 *
 * An order is recognized by the comparison function of its btree operator family, support function
 * 1, which PostgreSQL's sort calls too, not by type or operator family: a domain over int4 is
 * compared by int4's function, a varchar by text's, an ISBN of contrib/isn by int8's; an operator
 * class that reverses int4 has a function that is not known here (GS_KEY_COMPARED).
 *
 * Functions are recognized by their address.  If the server calls one indirectly (SQL, SECURITY
 * DEFINER, SET), its address is another one.  Those of contrib modules are recognized by library
 * and symbol.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "collation/key_collation.h"
#include "key/key_order.h"
#include "pg_compat.h"

#include "access/nbtree.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

/* A comparison function, the representation of its arguments, and their order. */
typedef struct KnownFunction
{
	PGFunction	function;
	GsKeyKind	kind;
	int16		len;			/* as pg_type.typlen */
	bool		by_value;
	bool		collated;		/* it uses the collation */
} KnownFunction;

static const KnownFunction known_functions[] =
{
	{btboolcmp, GS_KEY_BOOL, 1, true},
	{btcharcmp, GS_KEY_CHAR, 1, true},
	{btint2cmp, GS_KEY_INT16, 2, true},
	{btint4cmp, GS_KEY_INT32, 4, true},
	{date_cmp, GS_KEY_INT32, 4, true},
	{btoidcmp, GS_KEY_UINT32, 4, true},
	{btint8cmp, GS_KEY_INT64, 8, true},
	{cash_cmp, GS_KEY_INT64, 8, true},
	{time_cmp, GS_KEY_INT64, 8, true},
	{timestamp_cmp, GS_KEY_INT64, 8, true},
	{xid8cmp, GS_KEY_UINT64, 8, true},
	{gs_oid8_cmp, GS_KEY_UINT64, 8, true},
	{pg_lsn_cmp, GS_KEY_UINT64, 8, true},
	{btfloat4cmp, GS_KEY_FLOAT4, 4, true},
	{btfloat8cmp, GS_KEY_FLOAT8, 8, true},
	{enum_cmp, GS_KEY_ENUM, 4, true},
	{bttidcmp, GS_KEY_TID, 6, false},
	{timetz_cmp, GS_KEY_TIMETZ, 12, false},
	{interval_cmp, GS_KEY_INTERVAL, 16, false},
	{uuid_cmp, GS_KEY_UUID, 16, false},
	{macaddr_cmp, GS_KEY_MACADDR, 6, false},
	{macaddr8_cmp, GS_KEY_MACADDR8, 8, false},
	{network_cmp, GS_KEY_INET, -1, false},
	{bttextcmp, GS_KEY_TEXT, -1, false, true},
	{bttext_pattern_cmp, GS_KEY_TEXT, -1, false},
	{bpcharcmp, GS_KEY_BPCHAR, -1, false, true},
	{btbpchar_pattern_cmp, GS_KEY_BPCHAR, -1, false},
	{btnamecmp, GS_KEY_NAME, NAMEDATALEN, false, true},
	{byteacmp, GS_KEY_BYTEA, -1, false},
	{numeric_cmp, GS_KEY_NUMERIC, -1, false},
	{bitcmp, GS_KEY_BIT, -1, false},
	{btoidvectorcmp, GS_KEY_OIDVECTOR, -1, false},
	{tsvector_cmp, GS_KEY_TSVECTOR, -1, false},
	{btarraycmp, GS_KEY_ARRAY, -1, false},
	{range_cmp, GS_KEY_RANGE, -1, false},
	{multirange_cmp, GS_KEY_MULTIRANGE, -1, false},
	{jsonb_cmp, GS_KEY_JSONB, -1, false},
	{btrecordcmp, GS_KEY_COMPOSITE, -1, false}
};

/* Comparison functions of contrib modules. */
static const struct ModuleFunction
{
	const char *library;
	const char *symbol;
	KnownFunction known;
}			module_functions[] =
{
	{"citext", "citext_cmp", {NULL, GS_KEY_CITEXT, -1, false}},
	{"citext", "citext_pattern_cmp", {NULL, GS_KEY_CITEXT_PATTERN, -1, false}},
	{"hstore", "hstore_cmp", {NULL, GS_KEY_HSTORE, -1, false}},
	{"ltree", "ltree_cmp", {NULL, GS_KEY_LTREE, -1, false}}
};

static bool order_of_elements(GsKeyOrder *order, Oid collation, char **why_not);
static bool order_of_columns(GsKeyOrder *order, char **why_not);

/* Does a pg_proc.probin, such as $libdir/citext, name the library? */
static bool
is_library(const char *path, const char *library)
{
	const char *slash = last_dir_separator(path);
	const char *name = slash != NULL ? slash + 1 : path;
	const size_t len = strlen(library);

	return strncmp(name, library, len) == 0 &&
		(name[len] == '\0' || strcmp(name + len, DLSUFFIX) == 0);
}

/* The library and the symbol of a C function, palloc'd.  False: it is none. */
static bool
find_symbol(Oid function, char **library, char **symbol)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Datum		value;
	bool		is_null;

	if (!HeapTupleIsValid(tuple))
		return false;
	value = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_probin, &is_null);
	if (!is_null)
	{
		*library = TextDatumGetCString(value);
		*symbol = TextDatumGetCString(SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc,
													  &is_null));
	}
	ReleaseSysCache(tuple);
	return !is_null;
}

bool
gs_key_order_is_function(Oid function, const char *library, const char *symbol)
{
	char	   *found_library;
	char	   *found_symbol;

	return find_symbol(function, &found_library, &found_symbol) &&
		strcmp(found_symbol, symbol) == 0 && is_library(found_library, library);
}

static const KnownFunction *
find_module_function(Oid function)
{
	char	   *library;
	char	   *symbol;

	if (!find_symbol(function, &library, &symbol))
		return NULL;
	for (int i = 0; i < lengthof(module_functions); i++)
	{
		if (strcmp(symbol, module_functions[i].symbol) == 0 &&
			is_library(library, module_functions[i].library))
			return &module_functions[i].known;
	}
	return NULL;
}

static const KnownFunction *
find_function(const FmgrInfo *function)
{
	for (int i = 0; i < lengthof(known_functions); i++)
	{
		if (known_functions[i].function == function->fn_addr)
			return &known_functions[i];
	}
	return find_module_function(function->fn_oid);
}

/* Are values stored as the function expects, and is the type of the right class? */
static bool
suits_type(const KnownFunction *known, Oid type)
{
	int16		len;
	bool		by_value;

	get_typlenbyval(type, &len, &by_value);
	if (known->len != len || known->by_value != by_value)
		return false;
	switch (known->kind)
	{
		case GS_KEY_ENUM:
			return type_is_enum(type);
		case GS_KEY_ARRAY:
			return OidIsValid(get_element_type(type));
		case GS_KEY_RANGE:
			return type_is_range(type);
		case GS_KEY_MULTIRANGE:
			return type_is_multirange(type);
		case GS_KEY_COMPOSITE:
			return get_typtype(type) == TYPTYPE_COMPOSITE;	/* not that of any row */
		default:
			return true;
	}
}

/* Makes it an order that only comparisons know, of which order->type is set. */
static void
order_by_comparison(GsKeyOrder *order)
{
	*order = (GsKeyOrder) {.kind = GS_KEY_COMPARED,.type = order->type};
}

/* False: PostgreSQL has to sort, because a collation may not be used or does not exist. */
static bool
order_of_function(const FmgrInfo *function, Oid type, Oid collation,
				  GsKeyOrder *order, char **why_not)
{
	const KnownFunction *known = find_function(function);

	if (known == NULL || !suits_type(known, type))
	{
		order->type = type;
		order_by_comparison(order);
		return true;
	}
	if (known->collated && !gs_key_collation_can_encode(collation, why_not))
		return false;
	*order = (GsKeyOrder) {.kind = known->kind,.type = type};
	if (known->collated && !gs_collation_is_bytewise(collation))
		order->collation = collation;
	if (known->kind == GS_KEY_COMPOSITE)
		return order_of_columns(order, why_not);
	return known->kind >= GS_KEY_ARRAY ? order_of_elements(order, collation, why_not) : true;
}

/* The order of a part of a value.  If the part has no code, nor has the whole value. */
static bool
order_of_element(GsKeyOrder *order, const FmgrInfo *function, Oid type, Oid collation,
				 GsKeyOrder **element, char **why_not)
{
	char	   *reason;

	*element = palloc(sizeof(GsKeyOrder));
	if (OidIsValid(function->fn_oid))
	{
		if (!order_of_function(function, getBaseType(type), collation, *element, &reason))
		{
			*why_not = psprintf("elements of %s: %s", format_type_be(order->type), reason);
			return false;
		}
		if ((*element)->kind != GS_KEY_COMPARED)
			return true;
	}
	order_by_comparison(order);
	return true;
}

/*
 * Array elements are compared by the default order of their type under the array's
 * collation, range bounds as the range type defines.  jsonb compares its strings under
 * the default collation, whatever the column's is.
 */
static bool
order_of_elements(GsKeyOrder *order, Oid collation, char **why_not)
{
	const FmgrInfo *function;
	Oid			type;

	check_stack_depth();		/* an element can be a domain over an array, and so on */
	if (order->kind == GS_KEY_RANGE || order->kind == GS_KEY_MULTIRANGE)
	{
		TypeCacheEntry *range = gs_key_order_range(order);

		type = range->rngelemtype->type_id;
		collation = range->rng_collation;
		function = &range->rng_cmp_proc_finfo;
	}
	else
	{
		if (order->kind == GS_KEY_JSONB)
			collation = DEFAULT_COLLATION_OID;
		else if (order->kind == GS_KEY_CITEXT_PATTERN)
			collation = C_COLLATION_OID;
		type = order->kind == GS_KEY_ARRAY ? get_element_type(order->type) : TEXTOID;
		function = &lookup_type_cache(type, TYPECACHE_CMP_PROC_FINFO)->cmp_proc_finfo;
	}
	return order_of_element(order, function, type, collation, &order->element, why_not);
}

/* Columns of a composite type are compared by the default orders of their types. */
static bool
order_of_columns(GsKeyOrder *order, char **why_not)
{
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(order->type, -1);
	GsKeyOrder **column = &order->element;

	check_stack_depth();
	for (int i = 0; i < desc->natts; i++)
	{
		const FormData_pg_attribute *attribute = TupleDescAttr(desc, i);
		const TypeCacheEntry *type;

		if (attribute->attisdropped)
			continue;
		type = lookup_type_cache(attribute->atttypid, TYPECACHE_CMP_PROC_FINFO);
		if (!order_of_element(order, &type->cmp_proc_finfo, attribute->atttypid,
							  attribute->attcollation, column, why_not))
			return false;
		if (order->kind == GS_KEY_COMPARED)
			break;
		column = &(*column)->next;
	}
	FreeTupleDesc(desc);
	return true;
}

/*
 * The first collation that an order or its elements use, and that is as asked for; or InvalidOid.
 */
static Oid
find_collation(const GsKeyOrder *order, bool (*is_wanted) (Oid collation))
{
	for (; order != NULL; order = order->next)
	{
		Oid			collation = order->collation;

		if (!OidIsValid(collation) || !is_wanted(collation))
			collation = find_collation(order->element, is_wanted);
		if (OidIsValid(collation))
			return collation;
	}
	return InvalidOid;
}

Oid
gs_key_order_libc_collation(const GsKeyOrder *order)
{
	return find_collation(order, gs_key_collation_is_libc);
}

bool
gs_key_order_icu_disagrees(const GsKeyOrder *order)
{
	return OidIsValid(find_collation(order, gs_icu_disagrees));
}

const char *
gs_key_order_mismatch_reason(const GsKeyOrder *order)
{
	if (order->approximate)
		return "the type compares abbreviated keys in another order";
	if (OidIsValid(gs_key_order_libc_collation(order)))
		return "strxfrm() and strcoll() disagree";
	if (gs_key_order_icu_disagrees(order))
		return "ICU's sort keys and its comparison disagree";
	return NULL;
}

bool
gs_key_order_is_expensive(const GsKeyOrder *order)
{
	return OidIsValid(order->collation) ||
		(order->kind > GS_KEY_NUMERIC && order->kind != GS_KEY_BIT);
}

TypeCacheEntry *
gs_key_order_range(const GsKeyOrder *order)
{
	return order->kind == GS_KEY_RANGE ?
		lookup_type_cache(order->type, TYPECACHE_RANGE_INFO) :
		lookup_type_cache(order->type, TYPECACHE_MULTIRANGE_INFO)->rngtype;
}

bool
gs_key_order_of_operator(Oid operator, Oid type, Oid collation,
						 GsKeyOrder *order, bool *descending, char **why_not)
{
	Oid			family;
	Oid			input_type;
	Oid			procedure;
	FmgrInfo	function;

	if (!gs_ordering_operator(operator, &family, &input_type, descending))
	{
		*why_not = psprintf("operator %s is not a btree ordering operator",
							format_operator(operator));
		return false;
	}
	procedure = get_opfamily_proc(family, input_type, input_type, BTORDER_PROC);
	if (!OidIsValid(procedure))
	{
		*why_not = psprintf("operator %s has no comparison function in its operator family",
							format_operator(operator));
		return false;
	}
	fmgr_info(procedure, &function);
	return order_of_function(&function, getBaseType(type), collation, order, why_not);
}
