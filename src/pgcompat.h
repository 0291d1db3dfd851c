/*-------------------------------------------------------------------------
 *
 * pgcompat.h
 *	  Every difference between the server versions that gpusort supports.
 *
 * No other file tests PG_VERSION_NUM.  Include it after postgres.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_PGCOMPAT_H
#define GPUSORT_PGCOMPAT_H

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 160000
#error "gpusort supports PostgreSQL 15 only; point PG_CONFIG at the pg_config of a PostgreSQL 15"
#endif

#if SIZEOF_DATUM < 8 || !defined(HAVE_INT128)
#error "gpusort needs a 64-bit platform with 128-bit integers"
#endif

/*
 * Of utils/pg_locale.h, which would want ICU's headers: a machine that builds
 * extensions need not have them.
 */
extern bool lc_collate_is_c(Oid collation);

/* Does the collation compare byte by byte, as memcmp() does? */
static inline bool
gs_collation_is_bytewise(Oid collation)
{
	return lc_collate_is_c(collation);
}

#endif							/* GPUSORT_PGCOMPAT_H */
