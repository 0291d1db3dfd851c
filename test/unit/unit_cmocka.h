/*-------------------------------------------------------------------------
 *
 * unit_cmocka.h
 *	  cmocka with the headers that it wants before it, and nothing else.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UNIT_CMOCKA_H
#define GPUSORT_UNIT_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit_check.h"

#endif							/* GPUSORT_UNIT_CMOCKA_H */
