/*-------------------------------------------------------------------------
 *
 * icu_agreement.h
 *	  Whether ICU's comparison of texts agrees with its sort keys.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ICU_AGREEMENT_H
#define GPUSORT_ICU_AGREEMENT_H

/*
 * Is it a collation of ICU for which ICU's comparison and its sort keys may disagree?  Then an
 * order by keys has to be verified by comparing neighbors, and comparisons may contradict each
 * other, so that no order is right by all of them.  May ereport what PostgreSQL reports of a locale
 * that it cannot open.
 */
extern bool gs_icu_disagrees(Oid collation);

#endif							/* GPUSORT_ICU_AGREEMENT_H */
