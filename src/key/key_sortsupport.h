/*-------------------------------------------------------------------------
 *
 * key_sortsupport.h
 *	  What a type's SortSupport makes of a value: the beginning of an order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_SORTSUPPORT_H
#define GPUSORT_KEY_SORTSUPPORT_H

typedef struct GsKeySortSupport GsKeySortSupport;

/*
 * For the values of a sort operator under a collation; in the current memory
 * context.  NULL if there is none.
 */
extern GsKeySortSupport *gs_key_sortsupport_create(Oid sort_operator, Oid collation);

/*
 * Does the type compare abbreviated keys by a function of its own, so that the order of the codes
 * has to be verified?
 */
extern bool gs_key_sortsupport_is_approximate(const GsKeySortSupport *abbreviation);

/* < 0 or > 0 as the type compares two codes if approximate, 0 if it does not say. */
extern int	gs_key_sortsupport_compare(GsKeySortSupport *abbreviation, uint64 a, uint64 b);

/*
 * The values are texts of a collation that does not compare bytes: trailing blanks may
 * not count.  Before the first code.
 */
extern void gs_key_sortsupport_use_text(GsKeySortSupport *abbreviation, Oid collation,
										 bool blank_padded);

/*
 * The code of a value that is not NULL: codes ascend with the values, and equal
 * codes say nothing.
 */
extern uint64 gs_key_sortsupport_code(GsKeySortSupport *abbreviation, Datum value);

/*
 * Why the codes had better be abandoned, NULL as long as they need not: they have too few distinct
 * values, as the type estimates at 10 codes, 20 and so on, and of texts under ICU is_short(); or
 * the type has contradicted an approximate order.  To be asked after each code.
 */
extern const char *gs_key_sortsupport_reason_not(GsKeySortSupport *abbreviation);

/*
 * Would the first level of the texts' sort keys tell far more of them apart, at a price that is
 * worth it?  To be asked after each code.
 */
extern bool gs_key_sortsupport_prefix_is_short(GsKeySortSupport *abbreviation);

#endif							/* GPUSORT_KEY_SORTSUPPORT_H */
