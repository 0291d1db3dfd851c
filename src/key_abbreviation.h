/*-------------------------------------------------------------------------
 *
 * key_abbreviation.h
 *	  What a type's SortSupport makes of a value: the beginning of an order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_ABBREVIATION_H
#define GPUSORT_KEY_ABBREVIATION_H

typedef struct GsKeyAbbreviation GsKeyAbbreviation;

/*
 * For the values of a sort operator under a collation; in the current memory
 * context.  NULL if there is none, or none whose order is known.
 */
extern GsKeyAbbreviation *gs_key_abbreviation_create(Oid sort_operator, Oid collation);

/*
 * The values are texts of a collation that does not compare bytes: trailing blanks may
 * not count.  Before the first code.
 */
extern void gs_key_abbreviation_of_texts(GsKeyAbbreviation *abbreviation, Oid collation,
										 bool blank_padded);

/*
 * The code of a value that is not NULL: codes ascend with the values, and equal
 * codes say nothing.
 */
extern uint64 gs_key_abbreviation_code(GsKeyAbbreviation *abbreviation, Datum value);

/*
 * Do the codes tell too few values apart to be worth their while?  So PostgreSQL says, who thinks
 * about it now and then; of texts under ICU it is what is_short() has found.  To be asked after
 * each code.
 */
extern bool gs_key_abbreviation_is_poor(GsKeyAbbreviation *abbreviation);

/*
 * Would the first level of the texts' sort keys tell far more of them apart, at a price that is
 * worth it?  To be asked after each code.
 */
extern bool gs_key_abbreviation_is_short(GsKeyAbbreviation *abbreviation);

#endif							/* GPUSORT_KEY_ABBREVIATION_H */
