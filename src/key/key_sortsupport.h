/*-------------------------------------------------------------------------
 *
 * key_sortsupport.h
 *	  Abbreviated keys of a type's SortSupport.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_SORTSUPPORT_H
#define GPUSORT_KEY_SORTSUPPORT_H

#include "utils/sortsupport.h"

#include "key/key_columns.h"

/*
 * Finds the comparator of a column, in the current memory context; abbreviate: with abbreviated
 * keys, if the type has them.  May ereport what the type's function reports.
 */
extern void gs_key_sortsupport_prepare(SortSupport support, const GsSortColumn *column,
									   bool abbreviate);

typedef struct GsKeySortSupport GsKeySortSupport;

/* Creates the abbreviation in the current memory context.  NULL: the type has none. */
extern GsKeySortSupport *gs_key_sortsupport_create(Oid sort_operator, Oid collation);

/*
 * Declares that the values are texts of a collation that does not compare bytes;
 * blank_padded: trailing blanks do not count; columns_follow: equal texts are compared
 * by other columns.  To be called before the first code.
 */
extern void gs_key_sortsupport_use_text(GsKeySortSupport *abbreviation, Oid collation,
										bool blank_padded, bool columns_follow);

/* Does the type compare codes by a function of its own, so that their order has to be verified? */
extern bool gs_key_sortsupport_is_approximate(const GsKeySortSupport *abbreviation);

/* Compares two approximate codes as the type does: < 0 or > 0, or 0 if that is undecided. */
extern int	gs_key_sortsupport_compare(GsKeySortSupport *abbreviation, uint64 a, uint64 b);

/*
 * Returns the code of a value that is not NULL.  Codes ascend with the values; equal codes mean
 * that the values have to be compared.  May ereport what the type's function reports.
 */
extern uint64 gs_key_sortsupport_code(GsKeySortSupport *abbreviation, Datum value);

/*
 * Returns why the codes should be abandoned, or NULL: they have too few distinct values, or the
 * type has contradicted an approximate order.  To be called after each code.
 */
extern const char *gs_key_sortsupport_why_not(GsKeySortSupport *abbreviation);

/*
 * Would the primary level of the texts' sort keys, or the full keys if columns follow, have
 * so many more distinct values that it is worth its cost?  To be called after each code.
 */
extern bool gs_key_sortsupport_prefix_is_short(GsKeySortSupport *abbreviation);

#endif							/* GPUSORT_KEY_SORTSUPPORT_H */
