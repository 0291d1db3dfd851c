/*-------------------------------------------------------------------------
 *
 * log.h
 *	  Log lines on stderr, and the clock that the service goes by.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LOG_H
#define GPUSORT_LOG_H

/* Writes "gpusortd: ", the text and a newline, in one piece. */
extern void gs_log(const char *format,...) __attribute__((format(printf, 1, 2)));

/*
 * The same for what a client can cause at will: of many in a second only the
 * first few are written.
 */
extern void gs_log_limited(const char *format,...) __attribute__((format(printf, 1, 2)));

#endif							/* GPUSORT_LOG_H */
