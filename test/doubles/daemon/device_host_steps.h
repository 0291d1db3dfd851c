/*-------------------------------------------------------------------------
 *
 * device_host_steps.h
 *	  The steps of a sort on the CPU, as specified in device.h.
 *
 * Each step has finished when it returns; device_host.c queues them.  Device
 * memory is host memory.  Records are validated as on any device, because they
 * come from a client.
 *
 * C without PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_HOST_STEPS_H
#define GPUSORT_DEVICE_HOST_STEPS_H

#include "device/device.h"

extern void gs_host_pack(const GsDeviceRows *rows, int chunk, int row_bits,
						 uint64_t *words, GsPackResults *results);
extern void gs_host_sort_words(uint64_t n, int low_bit, int nbits,
							   uint64_t *const words[2], uint32_t *selector);

extern void gs_host_check_order(uint64_t n, const uint64_t *words, int row_bits,
								const uint32_t *rows,
								GsOrderCheck *check);
extern void gs_host_same_words(uint64_t n, const uint64_t *words, int low_bit, uint8_t *same);
extern void gs_host_same_tails(const GsDeviceRows *rows, const GsTies *ties, int component,
							   uint8_t *same);
extern void gs_host_count_ties(uint64_t n, const uint8_t *same, GsTieCount *count);

/* from is NULL, or the list that replaces words. */
extern void gs_host_list_ties(uint64_t n, const uint8_t *same, const uint64_t *words,
							  int row_bits, const GsTies *from, const GsTies *out);
extern void gs_host_tie_keys(const GsDeviceRows *rows, const GsTies *ties, int chunk,
							 uint64_t *keys);

/* scratch has space for ties->nties row numbers. */
extern void gs_host_sort_ties(const GsTies *ties, int nbits, uint64_t *const keys[2],
							  uint32_t *scratch);
extern void gs_host_sort_tails(const GsDeviceRows *rows, const GsTies *ties, int component,
							   uint32_t *scratch);
extern void gs_host_place_ties(const GsTies *ties, uint64_t *words);

extern void gs_host_row_end_offsets(const GsDeviceRows *rows, const uint64_t *words, int row_bits,
									uint64_t *ends);
extern void gs_host_find_boundaries(uint64_t nrows, const uint64_t *ends, uint64_t step,
									uint32_t nboundaries,
									uint64_t *boundaries);

/* False: the rows exceed to_bytes. */
extern bool gs_host_gather(const GsDeviceRows *rows, const uint64_t *words, int row_bits,
						   uint64_t first, uint32_t nrows, char *to, size_t to_bytes);
extern void gs_host_gather_keys(const GsDeviceRows *rows, const uint64_t *words, int row_bits,
								uint64_t first, uint32_t nrows, uint64_t *to);

#endif							/* GPUSORT_DEVICE_HOST_STEPS_H */
