/*-------------------------------------------------------------------------
 *
 * park_file.h
 *	  Temporary files for the sorted rows of parked jobs.
 *
 * A file has no name, so it disappears when it is closed or the process ends in
 * any way.  A thread reads and writes, in the order of the requests.  Only
 * gs_park_folder_destroy() blocks.  The first file starts the thread.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARK_FILE_H
#define GPUSORT_PARK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct GsParkFolder GsParkFolder;
typedef struct GsParkFile GsParkFile;

/* All files together have at most limit bytes.  NULL: out of memory. */
extern GsParkFolder *gs_park_folder_create(const char *path, uint64_t limit);

/* All files must have been closed. */
extern void gs_park_folder_destroy(GsParkFolder *folder);

/* Creates a file for nbytes; NULL if the limit or an error prevents it. */
extern GsParkFile *gs_park_file_open(GsParkFolder *folder, uint64_t nbytes);

/* All requests must have been completed. */
extern void gs_park_file_close(GsParkFile *file);

/*
 * Requests a write or a read of nbytes.  The buffer must stay until the request
 * has been completed.  False: out of memory.
 */
extern bool gs_park_file_request(GsParkFile *file, bool is_write, void *buffer, size_t nbytes,
								 uint64_t offset);

/* Number of requests so far, and of those completed, with or without success. */
extern uint64_t gs_park_file_nrequested(const GsParkFile *file);
extern uint64_t gs_park_file_ncompleted(GsParkFile *file);

/* The errno of the first request that failed; 0: none. */
extern int	gs_park_file_error(GsParkFile *file);

#endif							/* GPUSORT_PARK_FILE_H */
