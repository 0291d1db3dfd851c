/*-------------------------------------------------------------------------
 *
 * device_steps.cuh
 *	  The steps of src/device/device.h that are not plain sorts, queued on a stream
 *	  (a cudaStream_t).
 *
 * device.h specifies them and their arguments.  As in device_sort.h, nothing blocks
 * or allocates, and d_temp has at least gs_*_temp_bytes().
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_STEPS_CUH
#define GPUSORT_DEVICE_STEPS_CUH

#include "device/device.h"
#include "device_sort.h"

/* kernel_pack.cu.  d_temp, if not NULL, gets what GsRadixSort.counted requires. */
extern size_t gs_pack_temp_bytes(void);
extern GsDeviceStatus gs_device_pack(const GsDeviceRows *rows, int chunk, int row_bits,
									 uint64_t *d_words, GsPackResults *d_results, void *d_temp,
									 void *stream);
extern GsDeviceStatus gs_device_tie_keys(const GsDeviceRows *rows, const GsTies *ties, int chunk,
										 uint64_t *d_keys, void *stream);

/* kernel_ties.cu */
extern GsDeviceStatus gs_device_same_words(uint64_t n, const uint64_t *d_words, int low_bit,
										   uint8_t *d_same, void *stream);
extern size_t gs_ties_temp_bytes(uint64_t n);
extern GsDeviceStatus gs_device_count_ties(uint64_t n, const uint8_t *d_same, GsTieCount *d_count,
										   void *d_temp, void *stream);
extern GsDeviceStatus gs_device_list_ties(uint64_t n, const uint8_t *d_same,
										  const uint64_t *d_words, int row_bits,
										  const GsTies *from, const GsTies *out,
										  const void *d_temp, void *stream);
extern size_t gs_sort_ties_temp_bytes(GsAlgorithm algorithm, uint64_t n);
extern GsDeviceStatus gs_device_sort_ties(GsAlgorithm algorithm, const GsTies *ties, int nbits,
										  uint64_t *const d_keys[2], void *d_temp, void *stream);
extern GsDeviceStatus gs_device_place_ties(const GsTies *ties, uint64_t *d_words, void *stream);

/* kernel_check.cu */
extern GsDeviceStatus gs_device_check_order(uint64_t n, const uint64_t *d_words, int row_bits,
											const uint32_t *d_rows, GsOrderCheck *d_check,
											void *stream);

/* kernel_tails.cu */
extern GsDeviceStatus gs_device_same_tails(const GsDeviceRows *rows, const GsTies *ties,
										   int component, uint8_t *d_same, void *stream);
extern size_t gs_sort_tails_temp_bytes(uint64_t n);
extern GsDeviceStatus gs_device_sort_tails(const GsDeviceRows *rows, const GsTies *ties,
										   int component, void *d_temp, void *stream);

/* kernel_rows.cu */
extern size_t gs_row_end_offsets_temp_bytes(uint64_t n);
extern GsDeviceStatus gs_device_row_end_offsets(const GsDeviceRows *rows, const uint64_t *d_words,
												int row_bits, uint64_t *d_end_offsets, void *d_temp,
												void *stream);
extern GsDeviceStatus gs_device_find_boundaries(uint64_t nrows, const uint64_t *d_end_offsets,
												uint64_t step,
												uint32_t nboundaries, uint64_t *d_boundaries,
												void *stream);
extern GsDeviceStatus gs_device_gather(const GsDeviceRows *rows, const uint64_t *d_words,
									   int row_bits, const uint64_t *d_end_offsets, uint64_t first,
									   uint32_t nrows, char *d_to, size_t to_bytes, void *stream);
extern GsDeviceStatus gs_device_gather_keys(const GsDeviceRows *rows, const uint64_t *d_words,
											int row_bits, uint64_t first, uint32_t nrows,
											uint64_t *d_to, void *stream);

/*
 * kernel_scan.cu: exclusive prefix sums of narrays contiguous arrays of n numbers
 * each; d_totals, if not NULL, gets the sums of the arrays.
 */
extern GsDeviceStatus gs_device_scan(uint64_t n, uint32_t narrays, uint64_t *d_sums,
									 uint64_t *d_totals, void *stream);

#endif /* GPUSORT_DEVICE_STEPS_CUH */
