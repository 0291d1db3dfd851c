/*-------------------------------------------------------------------------
 *
 * tuning.cuh
 *	  Every tile size and number of threads.
 *
 * Figures are of one NVIDIA H200 (132 multiprocessors, CUDA 13.0, driver 580) and
 * uniform random keys of full width, medians of 5 or more, 2026-11-21 unless stated.
 * CUB is that of CUDA 13.0, in the same process.  bench/kernels/run sweep tries other
 * tiles; bench/kernels/results has what it and bench/kernels/run measured.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TUNING_CUH
#define GPUSORT_TUNING_CUH

/*
 * All values are those of sm_90.  For the other architectures they are estimates: tiles
 * are smaller where shared memory is (sm_75), and launch bounds ask for fewer blocks
 * where a multiprocessor holds fewer threads.
 */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
#define GS_MIN_BLOCKS(nthreads, nblocks) \
	((nthreads) * (nblocks) <= 1024 ? (nblocks) : 1024 / (nthreads))
#else
#define GS_MIN_BLOCKS(nthreads, nblocks) (nblocks)
#endif

/*
 * The tile of a radix pass.  blocks is how many must fit on a multiprocessor, which
 * limits the registers of a thread.  lookback is the number of predecessors that a step
 * of the look-back reads.
 *
 * More keys in a tile make longer runs and fewer look-backs.  More threads on a
 * multiprocessor hide more latency.  Shared memory limits the product.
 */
template <int threads_, int items_, int blocks_, int lookback_>
struct GsRadixShape
{
	static const int threads = threads_;
	static const int items = items_;
	static const int blocks = blocks_;
	static const int lookback = lookback_;
	static const int tile = threads * items;
};

/* 100 M keys: 4.77 ms, CUB 6.19; with 32-bit values 7.08 ms, CUB 7.55. */
template <bool has_values>
struct GsRadixLarge : GsRadixShape<512, 22, 2, 2>
{
};

template <>
struct GsRadixLarge<true> : GsRadixShape<384, 24, 2, 1>
{
};

/*
 * For fewer keys, so that all multiprocessors get some and a tile takes little time.
 * The smallest is also for devices where a large tile does not fit (sm_75).
 *
 * Keys with values: small 100 K 0.060 ms, CUB 0.064 (its merge sort); middle 1 M 0.129
 * ms, CUB 0.187.
 */
typedef GsRadixShape<512, 4, 1, 16> GsRadixSmall;
typedef GsRadixShape<512, 9, 2, 8> GsRadixMiddle;

/*
 * Up to the first number of keys small tiles, up to the second middle ones.  Middle and
 * large tiles: with values 0.321 and 0.351 ms at 3 M, 0.409 and 0.402 at 4 M; keys alone
 * 0.179 and 0.191 at 2 M, 0.242 and 0.215 at 3 M.
 */
#ifndef GS_RADIX_SMALL_KEYS /* tests make them small */
#define GS_RADIX_SMALL_KEYS  (1 << 18)
#define GS_RADIX_MIDDLE_KEYS (3 << 20)
#endif

/* One block sorts at most this many keys, in one launch. */
#define GS_BLOCK_SORT_THREADS 256
#define GS_BLOCK_SORT_ITEMS   8

#define GS_COUNT_THREADS 512

/* Up to this number of keys, kernels start early (programmatic dependent launch). */
#define GS_EARLY_LAUNCH_KEYS (1 << 24)

/* Number of runs that a round of the merge sort merges into one. */
#define GS_MERGE_WAYS 8

/*
 * Merge sort.  A block sorts a tile, and also merges pieces of at most this size.
 * Runs are sampled every stride elements, and pieces have as many samples as never
 * exceed a tile (kernel_merge.cuh).  The number of items is odd, so that threads that
 * read adjacent parts of shared memory access different banks.
 */
template <int threads_, int items_, int blocks_, int stride_>
struct GsMergeShape
{
	static const int threads = threads_;
	static const int items = items_;
	static const int blocks = blocks_;
	static const int stride = stride_;
	static const int tile = threads * items;
	static const int samples = (tile - GS_MERGE_WAYS * (stride - 1)) / stride;
};

/*
 * Two blocks must fit on a multiprocessor, so larger values need smaller tiles.
 *
 * 100 M keys: 9.53 ms, CUB 10.16; with 32-bit values 12.92 ms, CUB 13.63.  (Keys alone
 * in tiles of 512x27 take 9.20 ms, but 4.2 M of them 0.477 instead of 0.439 ms.)
 */
template <int value_bytes>
struct GsMergeLarge : GsMergeShape<512, 15, 2, 128>
{
};

template <>
struct GsMergeLarge<0> : GsMergeShape<640, 15, 2, 128>
{
};

/*
 * For few keys, and for devices where the large tile does not fit: up to the first
 * number of keys small tiles, up to the second middle ones.
 *
 * Keys with values, 2026-11-23: small 256 K 0.073 ms, CUB 0.077; middle 1 M 0.136 ms
 * (large 0.177), CUB 0.161.
 */
typedef GsMergeShape<512, 5, 2, 32> GsMergeSmall;
typedef GsMergeShape<512, 9, 2, 64> GsMergeMiddle;

#ifndef GS_MERGE_SMALL_KEYS /* tests make them small */
#define GS_MERGE_SMALL_KEYS  (1 << 18)
#define GS_MERGE_MIDDLE_KEYS (3 << 19)
#endif

/*
 * The steps of device.h, not tuned.  Ties of 10 M rows, all of which are tied: list_ties
 * 0.10 ms, tie_keys 0.45, sort_ties 0.64, each other step 0.05 at most (test/gpu/time_device).
 */
#define GS_STEP_THREADS 256

/*
 * The check of an order: eight blocks for each multiprocessor of an H200, not tuned.
 * 100 M words: 0.424 ms (1.9 TB/s), 2026-11-23.
 */
#define GS_CHECK_BLOCKS 1056

/*
 * Pack: rows per thread in a tile.  10 M rows: 0.107 ms (3.0 TB/s), and 0.124 with counts
 * of the digits, which save their sort 0.039 of 0.372 ms.
 */
#define GS_PACK_THREADS 256
#define GS_PACK_ITEMS   8

/* Row end offsets: rows per thread in a tile.  10 M rows: 0.255 ms. */
#define GS_END_OFFSETS_ITEMS 8

/* The scan of the sums of tiles, by one block. */
#define GS_SCAN_THREADS 1024
#define GS_SCAN_ITEMS   4

/*
 * Gather: pieces of 16 bytes that each thread writes.  A batch of 16 MB is one wave
 * of blocks, so the number of dependent steps from the first read to the last write
 * matters.  Rows of 160 to 224 bytes, batch after batch: 1012 GB/s written, and 875
 * with one search over all rows and without an early launch.
 */
#define GS_GATHER_THREADS 256
#define GS_GATHER_ITEMS   4

#endif /* GPUSORT_TUNING_CUH */
