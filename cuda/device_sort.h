/*-------------------------------------------------------------------------
 *
 * device_sort.h
 *	  Sorts arrays in device memory: the public header of cuda/, in addition to
 *	  src/device/device.h, which device_cuda.cu implements with it.
 *
 * C, without CUDA headers.  A stream is a void pointer (a cudaStream_t).
 * Device pointers are plain pointers, which the host must not dereference.
 *
 * Every call only queues work on the stream: nothing blocks, allocates or exits.  The caller owns
 * all memory, including temporary storage, and keeps it until the stream has passed the sort.
 * All arrays are aligned to 16 bytes.  Errors that occur later, on the device, are reported at
 * the caller's next synchronization.  Calls on different streams are independent if their memory
 * does not overlap.  Calls from several threads are safe.
 *
 * Legal order: gs_device_*_temp_bytes(), then gs_device_*_sort() with at least
 * that much temporary storage, on the same device.
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
								 * the header does not allow */
	GS_DEVICE_TOO_MANY_ITEMS, /* more than GS_DEVICE_MAX_ITEMS */
	GS_DEVICE_TEMP_TOO_SMALL, /* see gs_device_*_temp_bytes() */
	GS_DEVICE_CUDA_ERROR,     /* gs_device_last_error() has the text */
} GsDeviceStatus;

/* Far more than fit the memory of any device. */
#define GS_DEVICE_MAX_ITEMS (UINT64_C(1) << 36)

/*
 * A stable sort of nitems 64-bit keys, and 32-bit values if has_values, by the
 * bits [begin_bit, end_bit) of the keys as unsigned integers.
 *
 * The input is in d_keys[0] and d_values[0].  The result is in d_keys[s] and d_values[s], where s
 * is *d_selector and depends on the data.  The other array of each pair is scratch.
 */
typedef struct GsRadixSort
{
	uint64_t nitems;    /* may be 0 */
	uint32_t begin_bit; /* first bit to sort by */
	uint32_t end_bit;   /* one past the last; at most 64 */
	bool has_values;
	bool counted;          /* temporary storage begins with a GsRadixControl
								 * (kernel_radix_plan.cuh) that has the counts of
								 * the keys' digits and is zero otherwise */
	uint64_t *d_keys[2];   /* nitems keys each */
	uint32_t *d_values[2]; /* nitems values each; NULL without values */
	uint32_t *d_selector;  /* device memory; out: 0 or 1 */
} GsRadixSort;

/*
 * Bytes of temporary storage for this sort, or one of fewer items, on the current
 * device: about 60 kB, and for each item one byte for the first quarter million,
 * half a byte for the first three millions, or a fifth of a byte for more.  0 if
 * there are too many items, or CUDA failed.
 */
extern size_t gs_device_radix_temp_bytes(uint64_t nitems, bool has_values);

/*
 * Queues the sort.  The device determines the digit places where all keys agree;
 * each of them costs an empty launch.
 */
extern GsDeviceStatus gs_device_radix_sort(const GsRadixSort *sort,
										   void *d_temp, size_t temp_bytes,
										   void *stream);

/*
 * A byte string in device memory, without its first 8 bytes.  The aligned 8-byte
 * words that contain its bytes must be readable.
 */
typedef struct GsTail
{
	uint64_t address; /* of the ninth byte; undefined if there is none */
	uint32_t length;  /* of the whole string */
	uint32_t row;     /* for the caller */
} GsTail;

/* How strings are compared; in device memory. */
typedef struct GsTailOrder
{
	uint32_t skip; /* number of bytes, at least 8, that are equal if keys are */
	bool descends;
} GsTailOrder;

/*
 * A stable sort of nitems 64-bit keys, and the values beside them, by comparison.
 *
 * With tails, equal keys are compared by the strings d_tails[v], where v is the value of a key:
 * by memcmp(), a prefix before its extensions; or in reverse order.  The first 8 bytes of the
 * strings, padded with zeros, must be equal if the keys are equal.  (For example, a key is the
 * first 8 bytes as a big-endian number.)
 *
 * Input and result are in d_keys[0] and d_values[0].
 */
typedef struct GsMergeSort
{
	uint64_t nitems;
	uint32_t value_bytes;            /* 0 (keys only) or 4; 4 with tails */
	uint64_t *d_keys[2];             /* nitems keys each; [1] is scratch */
	void *d_values[2];               /* nitems values each; [1] is scratch; NULL if
								 * value_bytes is 0 */
	const GsTail *d_tails;           /* NULL: compares keys only */
	const GsTailOrder *d_tail_order; /* not NULL with tails */
} GsMergeSort;

/*
 * Bytes of temporary storage for this sort, or one of fewer items, on the current device: at most
 * a 40th of a byte for each item.  0 if the arguments are wrong, or CUDA failed.
 */
extern size_t gs_device_merge_temp_bytes(uint64_t nitems, uint32_t value_bytes);

extern GsDeviceStatus gs_device_merge_sort(const GsMergeSort *sort,
										   void *d_temp, size_t temp_bytes,
										   void *stream);

/* The text of the last CUDA error in a call of this thread. */
extern const char *gs_device_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* GPUSORT_DEVICE_SORT_H */
