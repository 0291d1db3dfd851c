/*-------------------------------------------------------------------------
 *
 * build_id.c
 *	  Which sources this program was built of.
 *
 * A file of its own: it is all that is compiled again when any source changes.
 *
 *-------------------------------------------------------------------------
 */
#include "common/build_id.h"

_Static_assert(sizeof(GPUSORT_BUILD_ID) == GS_BUILD_ID_BYTES + 1, "the id has another length");

const char	gs_build_id[GS_BUILD_ID_BYTES + 1] = GPUSORT_BUILD_ID;
