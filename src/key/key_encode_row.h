/*-------------------------------------------------------------------------
 *
 * key_encode_row.h
 *	  Encodes the sort columns of a row in its key record.
 *
 * For each row, gs_key_record_read() locates the sort columns and computes their keys; the caller
 * stores the row in a batch; then gs_key_record_write() writes the record, as common/key_layout.h
 * has it, without the location word (batch.h).  A record refers to the bytes of a text where they
 * are in the stored row.  Bytes that were fetched or computed are stored behind the row, so their
 * number must be known before.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_ENCODE_ROW_H
#define GPUSORT_KEY_ENCODE_ROW_H

#include "executor/tuptable.h"

#include "key/key_encoder.h"
#include "key/key_stored_row.h"

/*
 * Reads the sort columns of the slot's row, and no column after the last of them; source is
 * gs_row_source_init() of the slot.  *extra_bytes becomes the number of bytes to be stored behind
 * the row.  What was read is valid until the next call.
 *
 * Returns false, and sets *why_not, if this value cannot be encoded although its type can: an enum
 * label that was added while the sort runs, a key of more than 1 GB, one value too many for a
 * dictionary, or an abbreviated key that does not pay.  May ereport what detoasting reports.
 */
extern bool gs_key_record_read(GsKeyEncoder *key, TupleTableSlot *slot,
							   const GsRowSource *source, size_t *extra_bytes,
							   const char **why_not);

/* Reads the sort columns of a stored row, of which source is, as gs_key_record_read() does. */
extern bool gs_key_record_read_row(GsKeyEncoder *key, const GsRowSource *source,
								   size_t *extra_bytes, const char **why_not);

/*
 * Reads only the first sort column of the slot's row: *is_null, or the *code of
 * its first field.  Returns false if it cannot be encoded, as gs_key_record_read()
 * will.  Discards what was read before.
 */
extern bool gs_key_record_read_first(GsKeyEncoder *key, TupleTableSlot *slot, bool *is_null,
									 uint64 *code);

/*
 * Writes the record of what was read.  row is the stored row of row_bytes bytes,
 * followed by room for the extra bytes.  Returns the NULL bits.
 */
extern uint32 gs_key_record_write(GsKeyEncoder *key, const GsRowSource *source,
								  char *row, size_t row_bytes, uint64 *record);

/*
 * Reads and writes in one step, for encoders that are direct: no value has to be fetched, looked up
 * or stored behind the row.  These cannot fail.  A stored row was counted when it was stored, so
 * the second one need not count it again in the statistics of the layout.
 */
extern uint32 gs_key_record_write_direct(GsKeyEncoder *key, TupleTableSlot *slot,
										 const GsRowSource *source, uint64 *record);
extern uint32 gs_key_record_write_direct_row(GsKeyEncoder *key, const GsRowSource *source,
											 uint64 *record);

/* Does so for a tuple.  False: it has NULLs or lacks columns, and nothing was written. */
extern bool gs_key_record_write_tuple(GsKeyEncoder *key, HeapTupleHeader tuple, uint64 *record);

/*
 * For keys_only layouts: writes the record of a value that is not NULL, and
 * returns as gs_key_record_read() does; and decodes the value of a record.
 */
extern bool gs_key_record_write_value(GsKeyEncoder *key, Datum value, uint64 *record,
									  const char **why_not);
extern Datum gs_key_record_decode(const GsKeyEncoder *key, const uint64 *record);

#endif							/* GPUSORT_KEY_ENCODE_ROW_H */
