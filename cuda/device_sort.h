/*-------------------------------------------------------------------------
 *
 * device_sort.h
 *	  Sorts arrays that lie in device memory: the public header of cuda/, beside
 *	  src/device/device.h, which device_cuda.cu implements with it.
 *
 * ISO C; nothing of CUDA is needed to include it.  A stream is a void pointer
 * (a cudaStream_t), a device pointer a plain pointer that the host must not
 * follow.
 *
 * Every call here only queues work on the stream and returns: nothing blocks,
 * nothing allocates, nothing exits.  The caller owns all memory, temporary
 * storage included, and keeps it until the stream has passed the sort.  All
 * arrays come from plain device allocations and are aligned to 16 bytes.  What
 * goes wrong later, on the device, shows at the caller's next synchronisation.
 * Calls on different streams do not disturb each other if their memory does
 * not overlap; calls from several threads are safe.
 *
 * Legal order: gs_device_*_temp_bytes(), then gs_device_*_sort() with at
 * least that much temporary storage, on the same device.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_SORT_H
#define GPUSORT_DEVICE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum GsDeviceStatus
{
	GS_DEVICE_OK = 0,
	GS_DEVICE_BAD_ARGUMENT,   /* a width, bit range, flag or alignment that
								 * this header does not allow */
	GS_DEVICE_TOO_MANY_ITEMS, /* more than GS_DEVICE_MAX_ITEMS, or than the
								 * row numbers can name */
	GS_DEVICE_TEMP_TOO_SMALL, /* see gs_device_*_temp_bytes() */
	GS_DEVICE_CUDA_ERROR,     /* gs_device_last_error() has the text */
} GsDeviceStatus;

/* A sort of that many items is far past any device's memory. */
#define GS_DEVICE_MAX_ITEMS (UINT64_C(1) << 36)

/* No values come in: value i is the row number i.  Nothing is read for it. */
#define GS_RADIX_ROW_NUMBERS 0x01

/* The sorted keys are not wanted: only the values are right afterwards. */
#define GS_RADIX_NO_KEYS_OUT 0x02

/*
 * The input is raw 64-bit key words; what is sorted is
 *		(raw - key_min) << row_bits | row number
 * made on the way, at no extra pass.  The bits that the shift would lose must
 * be zero: raw - key_min < 2^(64 - row_bits), row_bits < 64, and
 * nitems <= 2^row_bits.
 */
#define GS_RADIX_PACK_ROWS 0x04

/*
 * The digits are counted: the temporary storage begins with a GsRadixControl
 * (kernel_radix_plan.cuh) whose counts are those of the keys, zero otherwise.
 * Not with GS_RADIX_PACK_ROWS.
 */
#define GS_RADIX_COUNTED 0x08

/*
 * A stable sort of nitems keys, and the values beside them, by the bits
 * [begin_bit, end_bit) of the keys as unsigned integers.
 *
 * Where the input is and where the result comes to lie:
 *	- d_keys_in NULL: the input is in d_keys[0] (and d_values[0]).  The result
 *	  is in d_keys[s], d_values[s], where s depends on the data: *d_selector.
 *	- d_keys_in not NULL: the input is there (and in d_values_in) and stays as
 *	  it is; it overlaps none of the others.  The result is in d_keys[0],
 *	  d_values[0], and *d_selector is 0.
 * The other array of each pair is scratch.
 */
typedef struct GsRadixSort
{
	uint64_t nitems;         /* rows in each array; 0 is allowed */
	uint32_t key_bytes;      /* 1, 2, 4 or 8 */
	uint32_t value_bytes;    /* 0 (keys only), 4 or 8 */
	uint32_t begin_bit;      /* first bit that counts */
	uint32_t end_bit;        /* one past the last; at most 8 * key_bytes */
	uint32_t flags;          /* GS_RADIX_* */
	uint32_t row_bits;       /* for GS_RADIX_PACK_ROWS, else 0 */
	uint64_t key_min;        /* for GS_RADIX_PACK_ROWS, else 0 */
	const void *d_keys_in;   /* NULL, or nitems keys */
	const void *d_values_in; /* nitems values, if d_keys_in, values and no
								 * GS_RADIX_ROW_NUMBERS; else NULL */
	void *d_keys[2];         /* nitems keys each */
	void *d_values[2];       /* nitems values each; NULL if value_bytes is 0 */
	uint32_t *d_selector;    /* device memory; out: 0 or 1.  May be NULL if
								 * d_keys_in is not */
} GsRadixSort;

/*
 * Bytes of temporary storage that the sort, and any of fewer items, needs on
 * the current device: about 60 kB, and one byte an item for the first quarter
 * million, half of one for the first three millions, or a fifth beyond that.
 * The pointers need not be set yet.  0 if the arguments are wrong.
 */
extern size_t gs_device_radix_temp_bytes(const GsRadixSort *sort);

/*
 * Queues the sort.  The digit places where all keys agree are found on the
 * device and cost an empty launch each.
 */
extern GsDeviceStatus gs_device_radix_sort(const GsRadixSort *sort,
										   void *d_temp, size_t temp_bytes,
										   void *stream);

/*
 * A byte string in device memory, but for its first 8 bytes.  The words of 8
 * bytes, aligned, that its bytes lie in can be read whole.
 */
typedef struct GsTail
{
	uint64_t address; /* of its ninth byte; any if there is none */
	uint32_t length;  /* of the whole string */
	uint32_t row;     /* the caller's */
} GsTail;

/* How strings are compared, in device memory. */
typedef struct GsTailOrder
{
	uint32_t skip; /* bytes, 8 or more, that equal keys make equal */
	bool descends;
} GsTailOrder;

/*
 * A stable sort of nitems 64-bit keys, and the values beside them, by
 * comparison.  With tails, equal keys are told apart by the strings
 * d_tails[v], where v is the key's value, whose first 8 bytes, zero padded, are
 * equal where keys are: as memcmp does, and a shorter one sorts before its
 * extensions; or the other way round.  (For instance, key i is the big-endian
 * first 8 bytes.)
 *
 * The input is in d_keys[0], d_values[0]; so is the result.
 */
typedef struct GsMergeSort
{
	uint64_t nitems;
	uint32_t value_bytes;            /* 0 (keys only), 4 or 8; 4 with tails */
	uint64_t *d_keys[2];             /* nitems keys each; [1] is scratch */
	void *d_values[2];               /* nitems values each; [1] is scratch; NULL if
								 * value_bytes is 0 */
	const GsTail *d_tails;           /* NULL: keys are all */
	const GsTailOrder *d_tail_order; /* not NULL with tails */
} GsMergeSort;

/* The same of a merge sort: a 40th of a byte an item, or less. */
extern size_t gs_device_merge_temp_bytes(const GsMergeSort *sort);

extern GsDeviceStatus gs_device_merge_sort(const GsMergeSort *sort,
										   void *d_temp, size_t temp_bytes,
										   void *stream);

/* The text of the last CUDA error that a call of this thread met. */
extern const char *gs_device_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* GPUSORT_DEVICE_SORT_H */
