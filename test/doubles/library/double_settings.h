/*-------------------------------------------------------------------------
 *
 * double_settings.h
 *	  The settings that only a test build has.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DOUBLE_SETTINGS_H
#define GPUSORT_DOUBLE_SETTINGS_H

extern bool gpusort_collation_fault;
extern char *gpusort_service_fault; /* "": none */

#endif							/* GPUSORT_DOUBLE_SETTINGS_H */
