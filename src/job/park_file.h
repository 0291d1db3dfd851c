/*-------------------------------------------------------------------------
 *
 * park_file.h
 *	  Temporary files for the sorted rows of jobs that are parked.
 *
 * A file has no name, so it is gone when it is closed, or when the process
 * ends however it does.  Reads and writes are done by a thread, in the order in
 * which they were asked for; nothing here waits but destroy.  The thread is
 * started with the first file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PARK_FILE_H
#define GPUSORT_PARK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct GsParkFile GsParkFile;
typedef struct GsDiskFile GsDiskFile;

/* All files together take limit bytes at most.  NULL: out of memory. */
extern GsParkFile *gs_park_file_create(const char *folder, uint64_t limit);

/* All files are closed. */
extern void gs_park_file_destroy(GsParkFile *disk);

/* A file that will have so many bytes; NULL if it cannot be. */
extern GsDiskFile *gs_park_file_open(GsParkFile *disk, uint64_t nbytes);

/* All that was asked for is done. */
extern void gs_park_file_close(GsDiskFile *file);

/*
 * Asks for a write or a read of all the bytes; the buffer is the thread's until
 * it is done.  False: out of memory.
 */
extern bool gs_park_file_write(GsDiskFile *file, const void *from, size_t nbytes, uint64_t offset);
extern bool gs_park_file_read(GsDiskFile *file, void *to, size_t nbytes, uint64_t offset);

/* How many times it was asked, and how many of these are done, well or not. */
extern uint64_t gs_park_file_asked(const GsDiskFile *file);
extern uint64_t gs_park_file_done(GsDiskFile *file);

/* The errno of the first one that failed; 0: none. */
extern int	gs_park_file_error(GsDiskFile *file);

#endif							/* GPUSORT_PARK_FILE_H */
