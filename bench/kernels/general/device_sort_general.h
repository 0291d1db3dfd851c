/*-------------------------------------------------------------------------
 *
 * device_sort_general.h
 *	  Sorts of more types, and with more options, than gpusortd needs.
 *
 * For tests (test/gpu), comparisons with CUB, and the sorts over several devices (../group).
 * What cuda/device_sort.h says about memory, streams and errors applies here, too.
 *
 * A sort that cuda/device_sort.h supports is passed on to it, so tests of these
 * functions also test the kernels of gpusortd.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_SORT_GENERAL_H
#define GPUSORT_DEVICE_SORT_GENERAL_H

#include "../../../cuda/device_sort.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The values are the row numbers 0, 1, ...; no values are read. */
#define GS_RADIX_ROW_NUMBERS 0x01

/* Only the values are needed: the keys are undefined afterwards. */
#define GS_RADIX_NO_KEYS_OUT 0x02

/*
 * The input has raw 64-bit words.  The keys to sort are computed from them in the first pass:
 *		(raw - key_min) << row_bits | row number
 * where raw - key_min < 2^(64 - row_bits), row_bits < 64, nitems <= 2^row_bits and
 * begin_bit >= row_bits.
 */
#define GS_RADIX_PACK_ROWS 0x04

/*
 * A stable sort of nitems keys, and the values beside them, by the bits
 * [begin_bit, end_bit) of the keys as unsigned integers.
 *
 *	- Without d_keys_in, the input is in d_keys[0] and d_values[0].  The result is
 *	  in d_keys[s] and d_values[s], where s is *d_selector.
 *	- With d_keys_in, the input is there and in d_values_in, does not change, and
 *	  overlaps none of the other arrays.  The result is in d_keys[0] and
 *	  d_values[0], and *d_selector is 0.
 * The other array of each pair is scratch.
 */
typedef struct GsRadixSortGeneral
{
	uint64_t nitems;         /* may be 0 */
	uint32_t key_bytes;      /* 1, 2, 4 or 8 */
	uint32_t value_bytes;    /* 0 (keys only), 4 or 8 */
	uint32_t begin_bit;      /* first bit to sort by */
	uint32_t end_bit;        /* one past the last; at most 8 * key_bytes */
	uint32_t flags;          /* GS_RADIX_* */
	uint32_t row_bits;       /* for GS_RADIX_PACK_ROWS, otherwise 0 */
	uint64_t key_min;        /* for GS_RADIX_PACK_ROWS, otherwise 0 */
	const void *d_keys_in;   /* NULL, or nitems keys */
	const void *d_values_in; /* nitems values if there are d_keys_in and values,
								 * but no GS_RADIX_ROW_NUMBERS; otherwise NULL */
	void *d_keys[2];         /* nitems keys each */
	void *d_values[2];       /* nitems values each; NULL if value_bytes is 0 */
	uint32_t *d_selector;    /* device memory; out: 0 or 1 */
} GsRadixSortGeneral;

/* The pointers do not matter, also whether there are d_keys_in: memory may be divided by this. */
extern size_t gs_device_radix_general_temp_bytes(const GsRadixSortGeneral *sort);

extern GsDeviceStatus gs_device_radix_general_sort(const GsRadixSortGeneral *sort,
												   void *d_temp, size_t temp_bytes,
												   void *stream);

/* gs_device_merge_sort(), also with value_bytes 8. */
extern size_t gs_device_merge_general_temp_bytes(const GsMergeSort *sort);

extern GsDeviceStatus gs_device_merge_general_sort(const GsMergeSort *sort,
												   void *d_temp, size_t temp_bytes,
												   void *stream);

#ifdef __cplusplus
}
#endif

#endif /* GPUSORT_DEVICE_SORT_GENERAL_H */
