/*-------------------------------------------------------------------------
 *
 * build_id.h
 *	  Which sources this program was built of.
 *
 * What passes between gpusort.so and gpusortd lies in memory as the compiler
 * laid it out, and means what both sources say.  So they work together only if
 * both are of one build.  The id is a hash of all sources (scripts/build-id).
 *
 * ISO C.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUILD_ID_H
#define GPUSORT_BUILD_ID_H

#define GS_BUILD_ID_BYTES	16

/* Hexadecimal digits, and a zero. */
extern const char gs_build_id[GS_BUILD_ID_BYTES + 1];

#endif							/* GPUSORT_BUILD_ID_H */
