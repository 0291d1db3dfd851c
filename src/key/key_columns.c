/*-------------------------------------------------------------------------
 *
 * key_columns.c
 *	  Which sort columns can be encoded, and what their keys will be like.
 *
 * A column can be encoded if the comparison function of its order is known
 * (key_order.h).  Otherwise the abbreviated keys of its type may serve, if the
 * type has any (key_sortsupport.h): such keys only begin an order, so rows that
 * tie on them have to be compared.  If it has none, all rows tie on the column.
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

	/*
	 * PostgreSQL abbreviates no text of the C library, and asking would open
	 * the locale
	 */
	if (order->kind != GS_KEY_COMPARED ||
		(OidIsValid(column->collation) ? gs_key_collation_is_libc(column->collation) :
		 type_is_collatable(column->type)))
		return true;
	abbreviation = gs_key_sortsupport_create(column->sort_operator, column->collation);
	if (abbreviation == NULL)
		return true;
	order->kind = GS_KEY_ABBREVIATED;
	order->type = column->type;
	order->collation = InvalidOid;
	order->element = NULL;
	order->next = NULL;
	order->approximate = gs_key_sortsupport_is_approximate(abbreviation);
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

bool
gs_key_columns_are_approximate(const GsSortColumn *columns, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyOrder	order;
		bool		descending;
		char	   *why_not;

		if (gs_key_columns_order(&columns[i], &order, &descending, &why_not) &&
			gs_key_order_mismatch_reason(&order) != NULL)
			return true;
	}
	return false;
}

bool
gs_key_columns_icu_disagrees(const GsSortColumn *columns, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyOrder	order;
		bool		descending;
		char	   *why_not;

		if (gs_key_columns_order(&columns[i], &order, &descending, &why_not) &&
			gs_key_order_icu_disagrees(&order))
			return true;
	}
	return false;
}

char *
gs_key_columns_libc_off(const GsSortColumn *columns, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyOrder	order;
		bool		descending;
		char	   *why_not;
		Oid			collation = InvalidOid;

		if (gs_key_columns_order(&columns[i], &order, &descending, &why_not))
			collation = gs_key_order_libc_collation(&order);
		if (OidIsValid(collation))
			return reason_of_column(i, gs_key_collation_libc_off(collation));
	}
	return NULL;
}

bool
gs_key_columns_are_collated(const GsSortColumn *columns, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyOrder	order;
		bool		descending;
		char	   *why_not;

		if (gs_key_columns_order(&columns[i], &order, &descending, &why_not) &&
			OidIsValid(order.collation))
			return true;
	}
	return false;
}

bool
gs_key_columns_is_variable(const GsSortColumn *column, TupleDesc desc)
{
	GsKeyOrder	order;
	bool		descending;
	char	   *why_not;

	return gs_key_columns_order(column, &order, &descending, &why_not) &&
		gs_key_order_is_variable(&order, TupleDescAttr(desc, column->attno - 1)->attlen);
}

bool
gs_key_columns_is_expensive(const GsSortColumn *column)
{
	GsKeyOrder	order;
	bool		descending;
	char	   *why_not;

	return gs_key_columns_order(column, &order, &descending, &why_not) &&
		gs_key_order_is_expensive(&order);
}

bool
gs_key_columns_are_compared(const GsSortColumn *columns, int ncolumns)
{
	GsKeyOrder	order;
	bool		descending;
	char	   *why_not;

	return ncolumns > 0 && gs_key_columns_order(&columns[0], &order, &descending, &why_not) &&
		order.kind == GS_KEY_COMPARED;
}

bool
gs_key_columns_leave_ties(const GsSortColumn *columns, int ncolumns)
{
	for (int i = 0; i < ncolumns; i++)
	{
		GsKeyOrder	order;
		bool		descending;
		char	   *why_not;

		if (!gs_key_columns_order(&columns[i], &order, &descending, &why_not) ||
			ends_keys(&order))
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
		const bool	full = i + 1 < ncolumns;

		if (!gs_key_columns_order(&columns[i], &order, &descending, &why_not) ||
			ends_keys(&order))
			break;
		if (OidIsValid(order.collation))
			nbytes += gs_key_collation_expansion(order.collation, full) *
				Min(width, get_typavgwidth(columns[i].type, -1));
	}
	return nbytes;
}
