/*-------------------------------------------------------------------------
 *
 * key_compare.h
 *	  Compares two key records.
 *
 * Records are compared as they were written, without the statistics of other
 * rows.  So rows of different runs can be compared, or a row and a bound.  Sorts
 * pack keys first (key_pack.h), which is faster.
 *
 * C without PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_KEY_COMPARE_H
#define GPUSORT_KEY_COMPARE_H

#include "common/batch.h"
#include "common/key_layout.h"

/* The canonical code of a field. */
static inline uint64_t
gs_key_field_code(const GsKeyField *field, const uint64_t *record)
{
	return gs_canonical_code(field->canonical,
							 (record[field->word] >> field->shift) & gs_key_field_mask(field));
}

/* Compares byte strings that are equal in their first eight bytes, given their tail words. */
static inline int
gs_key_compare_tails(const char *row_a, uint64_t tail_a, const char *row_b, uint64_t tail_b)
{
	uint32_t	len_a = gs_tail_len(tail_a);
	uint32_t	len_b = gs_tail_len(tail_b);
	uint32_t	len = len_a < len_b ? len_a : len_b;

	if (len > sizeof(uint64_t))
	{
		int			order = memcmp(row_a + gs_tail_offset(tail_a) + sizeof(uint64_t),
								   row_b + gs_tail_offset(tail_b) + sizeof(uint64_t),
								   len - sizeof(uint64_t));

		if (order != 0)
			return order;
	}
	return len_a < len_b ? -1 : len_a > len_b;
}

/*
 * Returns < 0, 0 or > 0 as record a sorts before, with or after record b.  Tail
 * words are offsets from the rows, which are not used if the layout has no tails.
 */
static inline int
gs_key_compare(const GsKeyLayout *layout, const uint64_t *a, const char *row_a,
			   const uint64_t *b, const char *row_b)
{
	uint32_t	nulls_a = layout->keys_only ? 0 : gs_record_nulls(a, layout->nwords);
	uint32_t	nulls_b = layout->keys_only ? 0 : gs_record_nulls(b, layout->nwords);

	for (int i = 0; i < layout->ndecisive; i++)
	{
		const GsKeyColumn *column = &layout->columns[i];
		const bool	null_a = (nulls_a >> i) & 1;
		const bool	null_b = (nulls_b >> i) & 1;
		int			order = 0;

		if (null_a != null_b)
			return null_a == column->nulls_first ? -1 : 1;
		if (null_a)
			continue;
		for (int f = column->first_field; f < column->first_field + column->nfields &&
			 order == 0; f++)
		{
			const uint64_t code_a = gs_key_field_code(&layout->fields[f], a);
			const uint64_t code_b = gs_key_field_code(&layout->fields[f], b);

			order = code_a < code_b ? -1 : code_a > code_b;
		}
		if (order == 0 && column->variable)
			order = gs_key_compare_tails(row_a, a[column->tail_word], row_b, b[column->tail_word]);
		if (order != 0)
			return column->descending ? -order : order;
	}
	return 0;
}

#endif							/* GPUSORT_KEY_COMPARE_H */
