/*-------------------------------------------------------------------------
 *
 * key_documents.h
 *	  Order-preserving codes of jsonb, tsvector, hstore and ltree.
 *
 * A value is aligned and neither compressed nor out of line; of hstore and ltree, what is
 * behind its header.  A function that returns false sets *why_not to why the value has no
 * code.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_DOCUMENTS_H
#define GPUSORT_KEY_DOCUMENTS_H

#include "key/key_code.h"

#include "tsearch/ts_type.h"
#include "utils/jsonb.h"

/* The collation is that of the strings; NULL: they are compared as bytes. */
extern bool gs_key_jsonb_write(GsKeyCode *code, GsKeyCollation *collation, Jsonb *jsonb,
							   const char **why_not);
extern void gs_key_tsvector_write(GsKeyCode *code, TSVector vector);
extern bool gs_key_hstore_write(GsKeyCode *code, const char *data, const char **why_not);
extern void gs_key_ltree_write(GsKeyCode *code, const char *data);

#endif							/* GPUSORT_KEY_DOCUMENTS_H */
