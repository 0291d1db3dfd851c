/*-------------------------------------------------------------------------
 *
 * order_guess.h
 *	  Guesses the order of a type of which only the comparison function is known.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_ORDER_GUESS_H
#define GPUSORT_ORDER_GUESS_H

#include "access/tupdesc.h"

/* The number of guesses, of any type. */
#define GS_GUESSES	18

/*
 * The code of a value, not NULL, of a column, by a guess from 0 to GS_GUESSES - 1.  Equal bytes
 * have equal codes.  A value that is compressed or out of line is fetched in part; may ereport.
 */
extern uint64 gs_guess_code(Form_pg_attribute column, Datum value, int guess);

#endif							/* GPUSORT_ORDER_GUESS_H */
