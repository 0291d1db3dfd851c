/*-------------------------------------------------------------------------
 *
 * supervisor.h
 *	  Keeps gpusortd running: what backends see of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SUPERVISOR_H
#define GPUSORT_SUPERVISOR_H

/*
 * Where gpusortd listens.  Relative, like all paths of a server: a socket's
 * path has 107 bytes, and the data directory is every server process's own.
 * This folder is in no backup.
 */
#define GS_SERVICE_SOCKET	"pg_stat_tmp/gpusort.sock"

/* From _PG_init: starts the supervisor with the server, if that loads us. */
extern void gs_supervisor_register(void);

/*
 * To be called when a sort finds no gpusortd: sees to it that a supervisor
 * is there soon.  Does not wait; cheap to call for every sort.
 */
extern void gs_supervisor_want(void);

/*
 * What became of gpusortd, as its supervisor has noted: in a word or two, and
 * why; both palloc'd.  "running" means that it listened when that was noted.
 */
extern void gs_supervisor_status(char **state, char **why);

#endif							/* GPUSORT_SUPERVISOR_H */
