/*-------------------------------------------------------------------------
 *
 * unit_check.h
 *	  Checks that serve the cmocka programs and the fuzzer alike.
 *
 * cmocka's own assertions need its runner around them, which the fuzzer has
 * not.  So the shared files report through unit_fail(), and each program
 * links the one that suits it: unit_check.c, or the one in fuzz_engine.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UNIT_CHECK_H
#define GPUSORT_UNIT_CHECK_H

/* Says what is being checked, for the report: a seed, a size. */
extern void unit_case(const char *format,...) __attribute__((format(printf, 1, 2)));

/* Reports a failed check; does not return. */
extern void unit_fail(const char *file, int line, const char *format,...)
			__attribute__((noreturn, format(printf, 3, 4)));

#define CHECK(condition) \
	((condition) ? (void) 0 : unit_fail(__FILE__, __LINE__, "%s", #condition))

/* CHECK() with something to say about the values at hand. */
#define CHECK_MSG(condition, ...) \
	((condition) ? (void) 0 : unit_fail(__FILE__, __LINE__, __VA_ARGS__))

#endif							/* GPUSORT_UNIT_CHECK_H */
