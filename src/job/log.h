/*-------------------------------------------------------------------------
 *
 * log.h
 *	  Log lines of gpusortd, on stderr.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_LOG_H
#define GPUSORT_LOG_H

/* Writes "gpusortd: ", the text and a newline, by one write(). */
extern void gs_log(const char *format,...) __attribute__((format(printf, 1, 2)));

/*
 * Like gs_log(), but writes only a few messages each second: for those that a client
 * can cause at will.
 */
extern void gs_log_limited(const char *format,...) __attribute__((format(printf, 1, 2)));

#endif							/* GPUSORT_LOG_H */
