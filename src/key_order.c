/*-------------------------------------------------------------------------
 *
 * key_order.c
 *	  What an ordering compares values by, and so which code keeps it.
 *
 * An order is what the comparison function of its btree operator family says,
 * support function 1.  So it is known by that function, not by types or
 * families: a domain over int4 is compared by int4's function, a varchar by
 * text's, an ISBN of contrib/isn by int8's; text's pattern operators have a
 * function of their own, and an operator class that turns int4 around has one
 * that is not known here.  A stock sort asks the same function.
 *
 * Functions are told apart by their address.  One that the server calls
 * through something else (SQL, SECURITY DEFINER, SET) has another address.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key_collation.h"
#include "key_order.h"
#include "pgcompat.h"

#include "access/nbtree.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/* A comparison function, the values that it reads, and their order. */
typedef struct KnownFunction
{
	PGFunction	function;
	GsKeyKind	kind;
	int16		len;			/* as pg_type.typlen */
	bool		by_value;
	bool		collated;		/* it looks at the collation */
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
	{bitcmp, GS_KEY_BIT, -1, false}
};

static const KnownFunction *
find_function(PGFunction function)
{
	for (int i = 0; i < lengthof(known_functions); i++)
	{
		if (known_functions[i].function == function)
			return &known_functions[i];
	}
	return NULL;
}

/* The order of a type's values, a base type, by a comparison function. */
static bool
order_of_function(const FmgrInfo *function, Oid type, Oid collation,
				  GsKeyOrder *order, char **why_not)
{
	const KnownFunction *known = find_function(function->fn_addr);
	int16		len;
	bool		by_value;

	get_typlenbyval(type, &len, &by_value);
	if (known == NULL || known->len != len || known->by_value != by_value ||
		(known->kind == GS_KEY_ENUM && !type_is_enum(type)))
	{
		char	   *name = get_func_name(function->fn_oid);

		*why_not = psprintf("type %s has no order-preserving code yet where %s compares it",
							format_type_be(type), name != NULL ? name : "?");
		return false;
	}
	if (known->collated && !gs_key_collation_can_encode(collation, why_not))
		return false;
	order->kind = known->kind;
	order->type = type;
	order->collation = known->collated && !gs_collation_is_bytewise(collation) ?
		collation : InvalidOid;
	return true;
}

bool
gs_key_order_of_operator(Oid operator, Oid type, Oid collation,
						 GsKeyOrder *order, bool *descending, char **why_not)
{
	Oid			family;
	Oid			input_type;
	Oid			procedure;
	int16		strategy;
	FmgrInfo	function;

	if (!get_ordering_op_properties(operator, &family, &input_type, &strategy))
	{
		*why_not = psprintf("operator %u is not a btree ordering operator", operator);
		return false;
	}
	procedure = get_opfamily_proc(family, input_type, input_type, BTORDER_PROC);
	if (!OidIsValid(procedure))
	{
		*why_not = psprintf("operator %u has no comparison function", operator);
		return false;
	}
	fmgr_info(procedure, &function);
	*descending = strategy == BTGreaterStrategyNumber;
	return order_of_function(&function, getBaseType(type), collation, order, why_not);
}
