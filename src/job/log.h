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
 * The same for messages that a client can cause at will: only a few are written
 * each second.
 */
extern void gs_log_limited(const char *format,...) __attribute__((format(printf, 1, 2)));

#endif							/* GPUSORT_LOG_H */
