/*-------------------------------------------------------------------------
 *
 * build_id.h
 *	  The build ID: a hash of all sources (scripts/build-id).
 *
 * gpusort.so and gpusortd exchange structs as the compiler lays them out, so they
 * work together only if both are of the same build.
 *
 * ISO C.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_BUILD_ID_H
#define GPUSORT_BUILD_ID_H

#define GS_BUILD_ID_BYTES	16

/* Hexadecimal digits and a terminating zero. */
extern const char gs_build_id[GS_BUILD_ID_BYTES + 1];

#endif							/* GPUSORT_BUILD_ID_H */
