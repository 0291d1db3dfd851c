/*-------------------------------------------------------------------------
 *
 * supervisor.h
 *	  Keeps gpusortd running: the functions for backends.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SUPERVISOR_H
#define GPUSORT_SUPERVISOR_H

/*
 * The socket of gpusortd.  The path is relative to the data directory, the working
 * directory of all processes of the server, because it may have 107 bytes only.
 * Backups do not include this folder.
 */
#define GS_SERVICE_SOCKET	"pg_stat_tmp/gpusort.sock"

/* From _PG_init(): starts the supervisor with the server, if it preloads the library. */
extern void gs_supervisor_register(void);

/*
 * Requests a supervisor if there is none, for a sort that finds no gpusortd.  Does
 * not wait; cheap enough for every sort.
 */
extern void gs_supervisor_request(void);

/*
 * The status of gpusortd, as the supervisor has recorded it, and the reason; both
 * palloc'd.  "running" means that gpusortd listened at that time.
 */
extern void gs_supervisor_status(char **state, char **why);

#endif							/* GPUSORT_SUPERVISOR_H */
