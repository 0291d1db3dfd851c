/*-------------------------------------------------------------------------
 *
 * runtime.h
 *	  What sorting code needs of the program that it runs in.
 *
 * ISO C, no PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUNTIME_H
#define GPUSORT_RUNTIME_H

#include <stddef.h>

/*
 * check_interrupts may leave by longjmp: it is called only where nothing would
 * be left behind but memory from allocate, which the program frees by itself.
 */
typedef struct GsRuntime
{
	void	   *arg;			/* passed to every callback */
	void	   *(*allocate) (void *arg, size_t nbytes); /* NULL if there is none */
	void		(*release) (void *arg, void *memory);
	void		(*check_interrupts) (void *arg);	/* may not return */
} GsRuntime;

#endif							/* GPUSORT_RUNTIME_H */
