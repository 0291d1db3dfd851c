/*-------------------------------------------------------------------------
 *
 * build_id.c
 *	  The build ID.
 *
 * Only this file is compiled again when any other source changes.
 *
 *-------------------------------------------------------------------------
 */
#include "common/protocol.h"

_Static_assert(sizeof(GPUSORT_BUILD_ID) == GS_BUILD_ID_BYTES + 1,
			   "the build ID has another length");

const char	gs_build_id[GS_BUILD_ID_BYTES + 1] = GPUSORT_BUILD_ID;
