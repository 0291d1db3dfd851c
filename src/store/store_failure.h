/*-------------------------------------------------------------------------
 *
 * store_failure.h
 *	  Reports that an engine has failed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_STORE_FAILURE_H
#define GPUSORT_STORE_FAILURE_H

#include "store/store.h"

/*
 * The engine failed and has lost the rows: raises the ERROR; or only logs it, as they come again.
 */
extern void gs_store_report_failure(const GsStore *store) __attribute__((noreturn));
extern void gs_store_log_failure(const GsStore *store);

/* There is no memory for rows that have to be in memory: raises the ERROR. */
extern void gs_store_report_no_memory(void) __attribute__((noreturn));

#endif							/* GPUSORT_STORE_FAILURE_H */
