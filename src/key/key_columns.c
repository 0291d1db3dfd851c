/*-------------------------------------------------------------------------
 *
 * key_columns.c
 *	  Which sort columns can be encoded, and what their keys will be like.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "collation/key_collation.h"
#include "common/key_layout.h"
#include "key/key_columns.h"
#include "key/key_fields.h"
#include "key/key_sortsupport.h"

#include "utils/lsyscache.h"

bool
gs_key_columns_order(const GsSortColumn *column, GsKeyOrder *order, bool *descending,
					 char **why_not)
{
	GsKeySortSupport *abbreviation;

	if (!gs_key_order_of_operator(column->sort_operator, column->type, column->collation,
								  order, descending, why_not))
		return false;

	/* PostgreSQL abbreviates no text of the C library, and asking would open the locale */
	if (order->kind != GS_KEY_COMPARED ||
		(OidIsValid(column->collation) ? gs_key_collation_is_libc(column->collation) :
		 type_is_collatable(column->type)))
		return true;
	abbreviation = gs_key_sortsupport_create(column->sort_operator, column->collation);
	if (abbreviation == NULL)
		return true;
	*order = (GsKeyOrder) {
		.kind = GS_KEY_ABBREVIATED,.type = column->type,
		.approximate = gs_key_sortsupport_is_approximate(abbreviation)
	};
	return true;
}

/* Do the keys end with this column?  Ties are compared by it and those after it. */
static bool
ends_keys(const GsKeyOrder *order)
{
	return order->kind == GS_KEY_ABBREVIATED || order->kind == GS_KEY_COMPARED;
}

static int
count_fields(GsKeyKind kind)
{
	GsKeyLayout layout;

	gs_key_layout_init(&layout);
	gs_key_layout_add_column(&layout, false, false);
	gs_key_fields_add(&layout, kind, false);
	return layout.nfields;
}

/* A reason for the user that concerns one column; `column` counts from 0. */
static char *
reason_of_column(int column, const char *reason)
{
	return psprintf("sort column %d: %s", column + 1, reason);
}

bool
gs_key_columns_can_encode(const GsSortColumn *columns, int ncolumns, char **why_not)
{
	int			nfields = 0;

	if (ncolumns > GS_MAX_COLUMNS)
	{
		*why_not = psprintf("more than %d sort columns are not supported", GS_MAX_COLUMNS);
		return false;
	}
	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyOrder	order;
		bool		descending;
		char	   *reason;

		if (!gs_key_columns_order(&columns[i], &order, &descending, &reason))
		{
			*why_not = reason_of_column(i, reason);
			return false;
		}
		nfields += count_fields(order.kind);
		if (ends_keys(&order))
			break;
	}
	if (nfields > GS_MAX_FIELDS)
	{
		*why_not = psprintf("more than %d key fields are not supported", GS_MAX_FIELDS);
		return false;
	}
	return true;
}

/* The order of a column.  False: it cannot be encoded. */
static bool
find_order(const GsSortColumn *column, GsKeyOrder *order)
{
	bool		descending;
	char	   *why_not;

	return gs_key_columns_order(column, order, &descending, &why_not);
}

GsKeyTraits
gs_key_columns_traits(const GsSortColumn *columns, int ncolumns)
{
	GsKeyTraits traits = {0};

	for (int i = 0; i < ncolumns && !traits.leave_ties; i++)
	{
		GsKeyOrder	order;
		const bool	found = find_order(&columns[i], &order);

		traits.compared |= i == 0 && found && order.kind == GS_KEY_COMPARED;
		traits.collated |= found && OidIsValid(order.collation);
		traits.leave_ties = !found || ends_keys(&order);
	}
	return traits;
}

static bool
any_order(const GsSortColumn *columns, int ncolumns, bool (*is_so) (const GsKeyOrder *order))
{
	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyOrder	order;

		if (find_order(&columns[i], &order) && is_so(&order))
			return true;
	}
	return false;
}

static bool
is_approximate(const GsKeyOrder *order)
{
	return gs_key_order_mismatch_reason(order) != NULL;
}

bool
gs_key_columns_are_approximate(const GsSortColumn *columns, int ncolumns)
{
	return any_order(columns, ncolumns, is_approximate);
}

bool
gs_key_columns_icu_disagrees(const GsSortColumn *columns, int ncolumns)
{
	return any_order(columns, ncolumns, gs_key_order_icu_disagrees);
}

bool
gs_key_columns_is_expensive(const GsSortColumn *column)
{
	return any_order(column, 1, gs_key_order_is_expensive);
}

bool
gs_key_columns_is_variable(const GsSortColumn *column, TupleDesc desc)
{
	GsKeyOrder	order;

	return find_order(column, &order) &&
		gs_key_order_is_variable(&order, TupleDescAttr(desc, column->attno - 1)->attlen);
}

char *
gs_key_columns_libc_off(const GsSortColumn *columns, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyOrder	order;
		Oid			collation = InvalidOid;

		if (find_order(&columns[i], &order))
			collation = gs_key_order_libc_collation(&order);
		if (OidIsValid(collation))
			return reason_of_column(i, gs_key_collation_libc_off(collation));
	}
	return NULL;
}

double
gs_key_columns_collated_bytes(const GsSortColumn *columns, int ncolumns, int width)
{
	double		nbytes = 0;

	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyOrder	order;
		const bool	full = i + 1 < ncolumns;

		if (!find_order(&columns[i], &order) || ends_keys(&order))
			break;
		if (OidIsValid(order.collation))
			nbytes += gs_key_collation_expansion(order.collation, full) *
				Min(width, get_typavgwidth(columns[i].type, -1));
	}
	return nbytes;
}
