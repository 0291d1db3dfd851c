/*-------------------------------------------------------------------------
 *
 * double_settings.c
 *	  The settings that only a test build has.
 *
 * ../README.md documents them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "doubles/library/double_settings.h"
#include "doubles/wrap.h"
#include "guc.h"

#include "utils/guc.h"

GS_WRAP(gs_guc_define);

bool		gpusort_collation_fault = false;
char	   *gpusort_service_fault = "";

/* Before the product's, which end with the removal of all unknown settings of the prefix. */
void
__wrap_gs_guc_define(void)
{
	DefineCustomBoolVariable("gpusort.collation_fault",
							 "Creates wrong sort keys for text that is not compared byte by byte.",
							 NULL,
							 &gpusort_collation_fault, false,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomStringVariable("gpusort.service_fault",
							   "Makes gpusortd fail at the given step.",
							   NULL,
							   &gpusort_service_fault, "",
							   PGC_SIGHUP, GUC_NOT_IN_SAMPLE | GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	__real_gs_guc_define();
}
