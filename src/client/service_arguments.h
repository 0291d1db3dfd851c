/*-------------------------------------------------------------------------
 *
 * service_arguments.h
 *	  The command line of the gpusortd of one device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_ARGUMENTS_H
#define GPUSORT_SERVICE_ARGUMENTS_H

/* The folder for files of gpusortd, where those of the server's sorts are, too. */
#define GS_SERVICE_PARK_FOLDER	"base/" PG_TEMP_FILES_DIR

/* The descriptors of the pipe for the supervisor, and of the socket that gpusortd answers. */
#define GS_SERVICE_READY_FD		3
#define GS_SERVICE_WATCH_FD		4

/*
 * The program, and its options for a device and the current settings; terminated by NULL.
 * Allocated in the current memory context.
 */
extern char **gs_service_arguments(int device);

#endif							/* GPUSORT_SERVICE_ARGUMENTS_H */
