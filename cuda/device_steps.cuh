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

#include <type_traits>

#include "device/device.h"
#include "launch.cuh"
#include "tuning.cuh"

/* kernel_pack.cu.  d_temp, if not NULL, gets what GsRadixSort.counted requires. */
extern size_t gs_pack_temp_bytes(void);
extern GsDeviceStatus gs_device_pack(void *stream, const GsDeviceRows *rows, int chunk,
									 int row_bits, uint64_t *d_words, GsPackResults *d_results,
									 void *d_temp, size_t temp_bytes);
extern GsDeviceStatus gs_device_tie_keys(void *stream, const GsDeviceRows *rows, const GsTies *ties,
										 int chunk, uint64_t *d_keys);

/* kernel_ties.cu */
extern GsDeviceStatus gs_device_same_words(void *stream, uint64_t n, const uint64_t *d_words,
										   int low_bit, uint8_t *d_same);
extern size_t gs_ties_temp_bytes(uint64_t n);
extern GsDeviceStatus gs_device_count_ties(void *stream, uint64_t n, const uint8_t *d_same,
										   GsTieCount *d_count, void *d_temp, size_t temp_bytes);
extern GsDeviceStatus gs_device_list_ties(void *stream, uint64_t n, const uint8_t *d_same,
										  const uint64_t *d_words, int row_bits, const GsTies *from,
										  const GsTies *out, const void *d_temp, size_t temp_bytes);
extern size_t gs_sort_ties_temp_bytes(GsAlgorithm algorithm, uint64_t n);
extern GsDeviceStatus gs_device_sort_ties(void *stream, GsAlgorithm algorithm, const GsTies *ties,
										  int nbits, uint64_t *const d_keys[2], void *d_temp,
										  size_t temp_bytes);
extern GsDeviceStatus gs_device_place_ties(void *stream, const GsTies *ties, uint64_t *d_words);

/* kernel_check.cu */
extern GsDeviceStatus gs_device_check_order(void *stream, uint64_t n, const uint64_t *d_words,
											int row_bits, const uint32_t *d_rows,
											GsOrderCheck *d_check);

/* kernel_tails.cu */
extern GsDeviceStatus gs_device_same_tails(void *stream, const GsDeviceRows *rows,
										   const GsTies *ties, int component, uint8_t *d_same);
extern size_t gs_sort_tails_temp_bytes(uint64_t n);
extern GsDeviceStatus gs_device_sort_tails(void *stream, const GsDeviceRows *rows,
										   const GsTies *ties, int component, void *d_temp,
										   size_t temp_bytes);

/* kernel_rows.cu */
extern size_t gs_row_end_offsets_temp_bytes(uint64_t n);
extern GsDeviceStatus gs_device_row_end_offsets(void *stream, const GsDeviceRows *rows,
												const uint64_t *d_words, int row_bits,
												uint64_t *d_end_offsets, void *d_temp,
												size_t temp_bytes);
extern GsDeviceStatus gs_device_find_boundaries(void *stream, uint64_t nrows,
												const uint64_t *d_end_offsets, uint64_t step,
												uint32_t nboundaries, uint64_t *d_boundaries);
extern GsDeviceStatus gs_device_gather(void *stream, const GsDeviceRows *rows,
									   const uint64_t *d_words, int row_bits,
									   const uint64_t *d_end_offsets, uint64_t first,
									   uint32_t nrows, char *d_to, size_t to_bytes);
extern GsDeviceStatus gs_device_gather_keys(void *stream, const GsDeviceRows *rows,
											const uint64_t *d_words, int row_bits, uint64_t first,
											uint32_t nrows, uint64_t *d_to);

/*
 * kernel_scan.cu: exclusive prefix sums of narrays contiguous arrays of n numbers
 * each; d_totals, if not NULL, gets the sums of the arrays.
 */
extern GsDeviceStatus gs_device_scan(void *stream, uint64_t n, uint32_t narrays, uint64_t *d_sums,
									 uint64_t *d_totals);

/* Launches a kernel of GS_STEP_THREADS for n elements, if there are any, ntile to a block. */
template <typename... Params>
static GsDeviceStatus
gs_launch_step(void *stream, void (*kernel)(Params...), uint64_t n, uint32_t ntile,
			   std::remove_reference_t<Params>... params)
{
	void *args[] = {(void *) &params...};

	return n == 0 ? GS_DEVICE_OK :
					gs_launch((const void *) kernel, gs_blocks(n, ntile), GS_STEP_THREADS, 0,
							  stream, false, args);
}

#endif /* GPUSORT_DEVICE_STEPS_CUH */
