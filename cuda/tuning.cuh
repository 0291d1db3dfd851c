/*-------------------------------------------------------------------------
 *
 * tuning.cuh
 *	  Every tile size, with the measurement that chose it.
 *
 * Measured on one NVIDIA H200 (132 multiprocessors, CUDA 13.0, driver 580),
 * 2026-11-21, with 100 million uniform random keys of full width, medians of 5,
 * compared with CUB (CCCL of CUDA 13.0) with double buffers in the same process.
 * bench/kernels/run sweep repeats the last of several rounds; choices that it does
 * not try are from earlier ones, with kernels that were up to 3 % slower.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_TUNING_CUH
#define GPUSORT_TUNING_CUH

#include "block_rank.cuh"

/*
 * All values are those of sm_90.  For the other architectures they are estimates: tiles
 * are smaller where shared memory is (sm_75), and launch bounds ask for fewer blocks
 * where a multiprocessor holds fewer threads.
 */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
#define GS_MIN_BLOCKS(nthreads, nblocks) ((nthreads) * (nblocks) <= 1024 ? (nblocks) : 1024 / (nthreads))
#else
#define GS_MIN_BLOCKS(nthreads, nblocks) (nblocks)
#endif

/* Number of runs that a round of the merge sort merges into one. */
#define GS_MERGE_WAYS 8

/*
 * The tile of a pass has threads x items keys.  blocks is how many must fit on a
 * multiprocessor, which limits the registers of a thread.  lookback is the number
 * of predecessors that a step of the look-back reads.  staged is the path of
 * values (kernel_radix_pass.cuh).
 *
 * More keys in a tile make longer runs and fewer look-backs.  More threads on a
 * multiprocessor hide more latency.  Shared memory limits the product.
 *
 *	u64 keys only, 64 bits, CUB 6.19 ms:
 *		512x22 b2 4.77	512x20 b2 4.88	384x16 b3 5.14	640x16 b2 4.89
 *		384x24 b2 5.21	768x14 b2 5.61 (spills)			1024x20 b1 5.31
 *		512x10 b4 and 384x14 b4 spill: over 12
 *		look-back 1, 2, 4, 8 at a time, 512x20: 5.00 4.88 4.93 5.03
 *		match.any in place of ballots, first version: 18.7 against 11.4
 *		keys read with an evict-first policy: 5.17 against 4.94
 *	u32 keys only, 32 bits, CUB 2.39 ms:
 *		512x40 b2 1.87	384x32 b3 2.06	512x32 b2 1.96	512x20 b3 2.13
 *		512x44 b2 2.10	1024x32 b1 2.17
 *	look-back 1, 2, 3, 4 at a time, CUB 7.55, 2.81 and 9.26 ms:
 *		u64 + u32 7.08 7.19 7.20 7.20 (10 M keys: 0.836 0.831 0.829 0.835)
 *		u32 + u32, 2, 3, 4: 2.75 2.78 2.80		u64 + u64, 2, 4: 8.96 9.00
 *	u64 + u32, 64 bits, CUB 7.57 ms:
 *		384x24 b2 7.20 through registers; staged: 384x20 b2 7.55
 *		384x22 b2 7.54	512x12 b2 7.50	512x14 b2 7.67	384x14 b3 9.24 (spills)
 *	u32 + u32, 32 bits, CUB 2.81 ms:
 *		384x24 b2 2.79 staged, 2.98 through registers
 *		384x28 b2 2.95	384x32 b2 2.87	384x20 b3 3.07	768x16 b2 3.08
 *	u64 + u64, 64 bits, CUB 9.26 ms:
 *		384x16 b2 9.01 through registers, 9.26 staged
 *		384x14 b2 9.33 staged	512x12 b2 9.02 through registers
 * The others were not measured; they have the values of the most similar types.
 */
template <int key_bytes, int value_bytes>
struct GsRadixTile /* 1, 2 or 4 + 4 */
{
	static const int threads = 384;
	static const int items = 24;
	static const int blocks = 2;
	static const int lookback = 2;
	static const bool staged = true;
};

template <int key_bytes>
struct GsRadixTile<key_bytes, 0> /* 1, 2 or 4 */
{
	static const int threads = 512;
	static const int items = 40;
	static const int blocks = 2;
	static const int lookback = 4;
	static const bool staged = true;
};

template <int key_bytes>
struct GsRadixTile<key_bytes, 8> /* 1, 2, 4 or 8 + 8 */
{
	static const int threads = 384;
	static const int items = 16;
	static const int blocks = 2;
	static const int lookback = 2;
	static const bool staged = false;
};

template <>
struct GsRadixTile<8, 0>
{
	static const int threads = 512;
	static const int items = 22;
	static const int blocks = 2;
	static const int lookback = 2;
	static const bool staged = true;
};

template <>
struct GsRadixTile<8, 4>
{
	static const int threads = 384;
	static const int items = 24;
	static const int blocks = 2;
	static const int lookback = 1;
	static const bool staged = false;
};

/*
 * For few keys, so that all multiprocessors get some and a tile takes little time.
 * The smallest is also for devices where a large tile does not fit (sm_75).
 *
 *	u64 + u32, 64 bits, microseconds:	100 K	200 K	500 K
 *		512x4, look-back 16				66		75		120
 *		256x4, 4						70		83		122
 *		256x8, 8						70		83		105
 *		512x8, 16						78		81		98
 *		1024x4, 16						84		84		100
 *
 * Values through registers, not staged, microseconds:
 *									65 K	100 K	200 K	262 K
 *	u64 + u32	512x4 staged		63		68		84		89
 *				512x4				64		65		74		79
 *				384x4				60		65		74		95
 *	(CUB's radix sort 111 113 120 125, its merge sort 56 64 - 76)
 *	u64 + u32, 512x4, low latency (kernel_radix_pass.cuh): 60 at both 65 K and 100 K.
 *	Low latency with large tiles costs registers: 100 M u64 + u32 8.65 ms instead of 7.09.
 *									500 K	1 M		2 M		3 M
 *	u64 + u32	512x8 staged		112		137		221		324
 *				512x8				110		131		216		315
 *				512x9				110		129		216		294
 *	u64 + u64	512x8 staged		118		148		263		374
 *				512x9				118		141		249		341
 *	u64			512x8				97		115		179		244
 *				512x9				97		114		175		227
 *
 * From which number of keys large tiles are faster, milliseconds:
 *									2 M		3 M		4 M		8 M
 *	u64 + u32	512x8 b2			0.217	0.321	0.409	0.747
 *				512x8 b1			0.257	0.363	0.462	0.855
 *				large				0.222	0.351	0.402	0.674
 *	u32			512x8 b2			0.087	0.116	0.140	0.256
 *				large				0.115	0.121	0.131	0.221
 *	u64			512x8 b2			0.179	0.242	0.308	0.568
 *				large				0.191	0.215	0.276	0.483
 */
#define GS_FEW_THREADS  512
#define GS_FEW_ITEMS    4
#define GS_FEW_LOOKBACK 16
#ifndef GS_FEW_KEYS /* tests make them small */
#define GS_FEW_KEYS  (1 << 18)
#define GS_SOME_KEYS (3 << 20)
#endif
#define GS_SOME_THREADS  512
#define GS_SOME_ITEMS    9
#define GS_SOME_BLOCKS   2
#define GS_SOME_LOOKBACK 8
#define GS_FEW_STAGED    false /* both */

/* One block sorts at most this many keys, in one launch. */
#define GS_BLOCK_SORT_THREADS 256
#define GS_BLOCK_SORT_ITEMS   8

#define GS_RANK_METHOD GS_RANK_BALLOT

#define GS_COUNT_THREADS 512

/* Up to this number of keys, kernels start early (programmatic dependent launch). */
#define GS_EARLY_LAUNCH_KEYS (1 << 24)

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
 * Milliseconds, stride 128 unless stated:
 *						2 M		4.2 M	10 M	67 M	100 M
 *	u64
 *		640x15			0.240	0.439	0.960	6.31	9.53
 *		512x15			0.250	-		0.979	6.66	9.83
 *		512x27			-		0.477	0.955	6.20	9.20
 *	u64 + u32			-		0.587	1.335	8.77	13.63	(CUB)
 *		512x15			0.303	0.642	1.245	8.74	12.92
 *		640x11			-		0.611	1.251	8.66	12.83	(with tails it spills)
 *		768x9			-		0.606	1.242	8.67	12.90	(the same)
 *	u64 + u64			-		0.709	1.651	11.11	17.26	(CUB)
 *		640x9			0.326	0.658	1.349	9.45	14.19
 *		512x15			0.397	0.871	1.872	13.76	20.43 (one block)
 *		512x7 b3 s64	0.348	0.623	1.321	9.25	13.86
 */
template <int value_bytes>
struct GsMergeLarge : GsMergeShape<512, 15, 2, 128>
{
};

template <>
struct GsMergeLarge<0> : GsMergeShape<640, 15, 2, 128>
{
};

template <>
struct GsMergeLarge<8> : GsMergeShape<640, 9, 2, 128>
{
};

/*
 * For few keys, and for devices where the large tile does not fit: up to the first
 * number of keys small tiles, up to the second middle ones.  Microseconds, 2026-11-23,
 * medians of 25; small tiles up to 256 K, large ones from 512 K on:
 *						65 K	256 K	512 K	1 M		2 M
 *	u64
 *		small, large	50		71		96		137		195
 *		middle			-		77		90		134		-
 *		(CUB)			53		73		97		142		232
 *	u64 + u32
 *		small, large	55		73		107		177		291
 *		middle			-		81		103		136		-
 *		(CUB)			57		77		106		161		299
 */
typedef GsMergeShape<512, 5, 2, 32> GsMergeSmall;
typedef GsMergeShape<512, 9, 2, 64> GsMergeMiddle;

#ifndef GS_MERGE_SMALL_KEYS /* tests make them small */
#define GS_MERGE_SMALL_KEYS  (1 << 18)
#define GS_MERGE_MIDDLE_KEYS (3 << 19)
#endif

/*
 * The steps of device.h, and for comparison the sorts, milliseconds
 * (test/gpu/time_device):
 *
 *								10 M rows		10 M rows		100 M keys
 *								of 160..224 B	of 24..40 B		only
 *	pack						0.107			0.104			0.49
 *	pack, digits counted		0.124			0.125			0.65
 *	radix sort, of its own		0.372			0.370			3.01
 *	radix sort, counted			0.333			0.331			2.73
 *	merge sort					0.98			0.98			9.90
 *	row_end_offsets				0.255			0.256
 *	find_boundaries				0.013			0.013
 *	gather						1.90			0.82			2.96 (keys)
 *
 * Pack moves 3.0 to 3.3 TB/s; counting digits in it saves a third of the cost of
 * counting.  Ties of 10 M rows of two columns, 1.4 M and all of them:
 * same_words 0.03, 0.03; count_ties 0.02, 0.02; list_ties 0.03, 0.10; tie_keys
 * 0.08, 0.45; sort_ties 0.15, 0.64; place_ties 0.03, 0.05.  2 M strings in one
 * group: sort_tails below 3.0, of which a third is the test's own copy;
 * same_tails 0.13.  Without skipping the bytes that all strings have in common,
 * 4 after the first 8: 9.5.
 */
#define GS_STEP_THREADS 256

/*
 * The check of an order: eight blocks for each multiprocessor of an H200; other numbers
 * were not measured.  10 M words take 0.050 ms and 100 M 0.424 ms (1.9 TB/s), 2026-11-23.
 */
#define GS_CHECK_BLOCKS 1056

/* Pack: rows per thread in a tile. */
#define GS_PACK_THREADS 256
#define GS_PACK_ITEMS   8

/* Row end offsets: the same. */
#define GS_END_OFFSETS_ITEMS 8

/* The scan of the sums of tiles, by one block. */
#define GS_SCAN_THREADS 1024
#define GS_SCAN_ITEMS   4

/*
 * Gather: pieces of 16 bytes that each thread writes.  A batch of 16 MB is one wave
 * of blocks, so the number of dependent steps from the first read to the last write
 * matters.  GB/s written, batch after batch:
 *
 *	rows of 160 to 224 bytes	875		one search over all rows
 *								1012	the first row is guessed, early launch
 */
#define GS_GATHER_THREADS 256
#define GS_GATHER_ITEMS   4

#endif /* GPUSORT_TUNING_CUH */
