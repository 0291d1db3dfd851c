/*-------------------------------------------------------------------------
 *
 * runtime.h
 *	  What sorting code needs from the program that it runs in.
 *
 * C without PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_RUNTIME_H
#define GPUSORT_RUNTIME_H

#include <stddef.h>

/*
 * check_interrupts may exit by longjmp.  It is called only where nothing but
 * memory of allocate would be leaked, which the program frees with its context.
 */
typedef struct GsRuntime
{
	void	   *arg;			/* passed to every callback */
	void	   *(*allocate) (void *arg, size_t nbytes); /* NULL if out of memory */
	void		(*release) (void *arg, void *memory, size_t nbytes);	/* as allocated */
	void		(*check_interrupts) (void *arg);	/* may not return */
} GsRuntime;

#endif							/* GPUSORT_RUNTIME_H */
