/*-------------------------------------------------------------------------
 *
 * job_sort.c
 *	  One sort: the steps from batches to an order.
 *
 * The steps are those of device.h.  The job queues as many steps as it can,
 * copies the results that it needs to continue, and returns; gs_job_poll() calls the
 * next *continuation* when they have arrived:
 *
 *	  gs_job_sort()		queues pack, sort
 *	  after_first()		  results: are the records valid, which array has the order
 *						queues same, count
 *	  after_count()		  result: the number of ties
 *						queues list, sort these by the next chunk, place; then
 *						same, count, and after_count() again; or, at last,
 *						row_end_offsets, find_boundaries
 *	  after_all()		  result: the boundaries of batches; the job is sorted
 *
 * Ties need the most memory, though rarely.  When n words are sorted, one array
 * has the order, and the other 8 n bytes are scratch: for the flags of "same"
 * while there are ties, for the row end offsets at the end.  For T ties there are
 * two allocations of 16 T bytes.  One has the list (12 T), the other the keys
 * (2 * 8 T).  After the flags have been computed from the keys, the next list,
 * which is a subset of the previous one, replaces the keys, and the keys of the
 * next chunk replace the previous list.
 *
 *-------------------------------------------------------------------------
 */
#include "job/job_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/basics.h"

/* Of the radix sort, for the number of its passes. */
#define DIGIT_BITS		8

static void after_first(GsSortJob *job);
static void after_count(GsSortJob *job);
static void after_all(GsSortJob *job);

/* ------------------------------------------------------------------ memory */

/* Bytes of temporary storage of all steps over all rows. */
static size_t
temp_bytes(const GsSortJob *job, GsAlgorithm algorithm, uint64_t nrows)
{
	GsDevice   *device = job->device;
	size_t		sort = device->ops->temp_bytes(device, GS_STEP_SORT_WORDS, algorithm, nrows);
	size_t		ties = device->ops->temp_bytes(device, GS_STEP_LIST_TIES, algorithm, nrows);
	size_t		ends = device->ops->temp_bytes(device, GS_STEP_ROW_END_OFFSETS, algorithm, nrows);

	return Max(Max(sort, ties), ends);
}

/* Bytes of temporary storage of all steps over nties ties. */
static size_t
tie_temp_bytes(const GsSortJob *job, GsAlgorithm algorithm, uint64_t nties)
{
	GsDevice   *device = job->device;
	size_t		keys = device->ops->temp_bytes(device, GS_STEP_SORT_TIES, algorithm, nties);
	size_t		tails = device->ops->temp_bytes(device, GS_STEP_SORT_TAILS, algorithm, nties);

	return Max(keys, tails);
}

/* Boundaries of batches of sorted rows: one more than there can be batches. */
static uint32_t
max_boundaries(const GsSortJob *job, uint64_t nrows, uint64_t nunits, uint64_t step)
{
	return (uint32_t) ((2 * nunits + nrows) / step + 2);
}

/*
 * The blocks that are allocated below, if one row in eight is tied, which is more
 * than with most keys.  A sort with more ties may run out of memory later.
 */
uint64_t
gs_job_sort_bytes(const GsSortJob *job, uint64_t nrows, uint64_t nunits)
{
	int			narrays = job->keys_only ? 2 : 3;	/* words twice, locations */
	uint64_t	least_step = gs_job_buffer_bytes(job) / sizeof(uint32_t) / 2;

	return narrays * gs_device_pool_block_bytes(nrows * sizeof(uint64_t)) +
		gs_device_pool_block_bytes((job->nbatches + 1) * sizeof(GsDeviceBatch)) +
		gs_device_pool_block_bytes(sizeof(GsSortControl)) +
		gs_device_pool_block_bytes(temp_bytes(job, GS_ALGORITHM_RADIX, nrows)) +
		gs_device_pool_block_bytes(gs_job_buffer_bytes(job)) +
		gs_device_pool_block_bytes(max_boundaries(job, nrows, nunits,
												  least_step) * sizeof(uint64_t)) +
		2 * gs_device_pool_block_bytes(nrows / 8 * 2 * sizeof(uint64_t)) +
		gs_device_pool_block_bytes(tie_temp_bytes(job, GS_ALGORITHM_RADIX, nrows / 8));
}

/* Allocates device memory and stores its address in *d_memory; false: out of memory. */
static bool
allocate(GsSortJob *job, void *d_memory, size_t nbytes)
{
	void	   *d_taken = gs_device_pool_allocate(&job->memory, nbytes);

	memcpy(d_memory, &d_taken, sizeof(d_taken));
	return d_taken != NULL;
}

/* Allocates everything but the memory for ties. */
static bool
allocate_memory(GsSortJob *job)
{
	GsSortContext *sort = &job->sort;
	size_t		words_bytes = (size_t) job->nrows * sizeof(uint64_t);

	sort->temp_bytes = temp_bytes(job, sort->algorithm, job->nrows);
	return allocate(job, &sort->d_words[0], words_bytes) &&
		allocate(job, &sort->d_words[1], words_bytes) &&
		(job->keys_only || allocate(job, &sort->rows.d_locations, words_bytes)) &&
		allocate(job, &sort->rows.d_batches, job->nbatches * sizeof(GsDeviceBatch)) &&
		allocate(job, &sort->d_control, sizeof(GsSortControl)) &&
		allocate(job, &sort->d_temp, sort->temp_bytes) &&
		allocate(job, &job->d_staging, gs_job_buffer_bytes(job));
}

/* Lists the batches in input order, in pinned memory. */
static bool
list_batches(GsSortJob *job)
{
	GsDeviceBatch *batches = job->device->ops->allocate_host(job->device,
															 job->nbatches * sizeof(GsDeviceBatch));

	if (batches == NULL)
		return false;
	gs_job_order_batches(job);
	for (uint32_t i = 0; i < job->nbatches; i++)
		batches[i] = job->batches[job->order[i]].device;
	job->sort.batches = batches;
	return true;
}

static void
release_block(GsSortJob *job, void *d_memory)
{
	if (d_memory != NULL)
		gs_device_pool_free(&job->memory, d_memory);
}

static void
fail_for_memory(GsSortJob *job)
{
	gs_job_fail(job, GS_FAILED_MEMORY, "out of device memory while sorting");
}

/* -------------------------------------------------------------- first sort */

static const GsKeyPacking *
packing_of(const GsSortJob *job)
{
	return &job->pinned->control.packing;
}

/* gs_job_poll() is to call the continuation when all queued work is done. */
static bool
set_continuation(GsSortJob *job, GsSortContinuation continuation)
{
	if (!gs_job_record_fence(job, &job->sort.fence))
		return false;
	job->sort.continuation = continuation;
	return true;
}

/* Queues the copy of the results, and the continuation. */
static bool
copy_results(GsSortJob *job, GsSortContinuation continuation)
{
	return gs_job_check(job, job->device->ops->copy_out(job->stream, &job->pinned->control.results,
														&job->sort.d_control->results,
														sizeof(GsSortResults))) &&
		set_continuation(job, continuation);
}

static bool
queue_first_sort(GsSortJob *job)
{
	const GsDeviceOps *ops = job->device->ops;
	GsSortContext *sort = &job->sort;
	GsSortResults *d_results = &sort->d_control->results;
	const GsKeyPacking *packing = packing_of(job);
	bool		has_bits = packing->nchunks > 0 && !packing->chunks[0].is_tail;
	bool		counts = has_bits && sort->algorithm == GS_ALGORITHM_RADIX;

	sort->chunk = has_bits ? 1 : 0;
	if (!ops->copy_in(job->stream, sort->d_control, &job->pinned->control, sizeof(GsSortControl)) ||
		!ops->copy_in(job->stream, (void *) sort->rows.d_batches, sort->batches,
					  job->nbatches * sizeof(GsDeviceBatch)) ||
		!ops->pack(job->stream, &sort->rows, has_bits ? 0 : -1, sort->row_bits,
				   sort->d_words[0], &d_results->pack,
				   counts ? sort->d_temp : NULL, counts ? sort->temp_bytes : 0))
		return false;
	return !has_bits ||
		ops->sort_words(job->stream, sort->algorithm, job->nrows, sort->row_bits,
						packing->chunks[0].bits, sort->d_words, &d_results->selector,
						counts, sort->d_temp, sort->temp_bytes);
}

/* Stores the statistics of the key for SORTED. */
static void
save_key_stats(GsSortJob *job)
{
	GsSorted   *result = &job->sort.result;
	const GsKeyPacking *packing = packing_of(job);

	result->nrows = job->nrows;
	result->algorithm = job->sort.algorithm;
	result->key_bits = (uint32_t) packing->total_bits;
	result->key_tails = packing->has_tails;
	if (packing->nchunks > 0 && job->sort.algorithm == GS_ALGORITHM_RADIX)
		result->passes = ((uint32_t) packing->chunks[0].bits + DIGIT_BITS - 1) / DIGIT_BITS;
}

static void
report_sorted(GsSortJob *job)
{
	const GsJobEvents *events = &job->consumer.participant.events;
	GsSorted   *result = &job->sort.result;

	job->phase = GS_JOB_SORTED;
	gs_device_pool_release_reservation(&job->memory);
	result->device_bytes = job->memory.peak;
	result->upload_us = job->upload_us;
	result->sort_us = gs_clock_us() - job->sort.start_us;
	events->sorted(events->arg, result);
}

/* Bits of a row number. */
static int
bits_of_rows(uint64_t nrows)
{
	return nrows > 1 ? gs_bit_width(nrows - 1) : 1;
}

void
gs_job_sort(GsSortJob *job, GsAlgorithm algorithm, bool partial, bool find_equal,
			const GsKeyLayout *layout)
{
	GsSortContext *sort = &job->sort;
	bool		is_full = job->phase == GS_JOB_FULL ||
		(job->phase == GS_JOB_INPUT && job->consumer.state == GS_MEMBER_FULL);

	/* a client that wants all rows sorted may not have learned yet that some were refused */
	if (is_full ? !partial : job->phase != GS_JOB_INPUT)
		return;
	if (sort->start_us > 0)
	{
		fail_for_memory(job);	/* as at the first attempt */
		return;
	}
	if (!gs_job_layout_is_valid(layout, job->consumer.participant.nwords, job->keys_only) ||
		layout->nrows < job->nrows)
	{
		gs_job_fail(job, GS_FAILED_PROTOCOL, "invalid key layout");
		return;
	}
	job->phase = GS_JOB_SORTING;
	sort->start_us = gs_clock_us();
	sort->algorithm = algorithm;
	sort->find_equal = find_equal;
	sort->row_bits = bits_of_rows(job->nrows);
	gs_key_packing_init(&job->pinned->control.packing, layout, 64 - sort->row_bits);
	save_key_stats(job);
	if (job->nrows == 0)
	{
		sort->result.all_differ = find_equal;
		report_sorted(job);
		return;
	}
	if (!allocate_memory(job) || !list_batches(job))
	{
		fail_for_memory(job);
		return;
	}
	sort->rows.nrows = job->nrows;
	sort->rows.nbatches = job->nbatches;
	sort->rows.record_bytes = job->record_bytes;
	sort->rows.max_row_units = GS_MAX_ROW_UNITS(gs_job_buffer_bytes(job));
	sort->rows.keys_only = job->keys_only;
	sort->rows.d_packing = &sort->d_control->packing;
	if (gs_job_check(job, queue_first_sort(job)))
		copy_results(job, after_first);
}

/* --------------------------------------------------------------------- ties */

static uint64_t *
sorted_words(const GsSortJob *job)
{
	return job->sort.d_words[job->sort.sorted];
}

/* 8 bytes for each row. */
static void *
scratch_words(const GsSortJob *job)
{
	return job->sort.d_words[!job->sort.sorted];
}

static bool
has_chunks_left(const GsSortJob *job)
{
	return job->sort.chunk < packing_of(job)->nchunks;
}

/*
 * Are ties counted after a chunk: to sort them by the next one, or to know whether there are any?
 */
static bool
counts_ties(const GsSortJob *job)
{
	return has_chunks_left(job) || job->sort.find_equal;
}

/* The arrays of a list of n ties in an allocation. */
static GsTies
ties_at(char *d_list, uint64_t n)
{
	size_t		array_bytes = GS_DEVICE_ALIGN(n * sizeof(uint32_t));
	GsTies		ties = {
		.nties = n,
		.d_places = (uint32_t *) d_list,
		.d_rows = (uint32_t *) (d_list + array_bytes),
		.d_groups = (uint32_t *) (d_list + 2 * array_bytes)
	};

	return ties;
}

/* Size of an allocation for a list of n ties, or for two arrays of their keys. */
static size_t
list_bytes(uint64_t n)
{
	return Max(3 * GS_DEVICE_ALIGN(n * sizeof(uint32_t)),
			   2 * GS_DEVICE_ALIGN(n * sizeof(uint64_t)));
}

/* The two arrays of keys are in the allocation without the list. */
static void
find_tie_keys(const GsSortJob *job, uint64_t *d_keys[2])
{
	char	   *d_result = job->sort.d_lists[!job->sort.list];

	d_keys[0] = (uint64_t *) d_result;
	d_keys[1] = (uint64_t *) (d_result + GS_DEVICE_ALIGN(job->sort.ties.nties * sizeof(uint64_t)));
}

/* Allocates memory for n ties; there are never more of them later. */
static bool
allocate_tie_memory(GsSortJob *job, uint64_t n)
{
	GsSortContext *sort = &job->sort;

	sort->tie_temp_bytes = tie_temp_bytes(job, sort->algorithm, n);
	return allocate(job, &sort->d_lists[0], list_bytes(n)) &&
		allocate(job, &sort->d_lists[1], list_bytes(n)) &&
		allocate(job, &sort->d_tie_temp, sort->tie_temp_bytes);
}

/* Queues the count of ties among n elements, whose flags have been queued. */
static bool
queue_count(GsSortJob *job, uint64_t n)
{
	GsSortContext *sort = &job->sort;

	return gs_job_check(job, job->device->ops->count_ties(job->stream, n, scratch_words(job),
														  &sort->d_control->results.ties,
														  sort->d_temp, sort->temp_bytes)) &&
		copy_results(job, after_count);
}

/* Queues the list of ties, from all words or from the previous list. */
static bool
queue_list(GsSortJob *job, uint64_t nties)
{
	GsSortContext *sort = &job->sort;
	bool		is_first = sort->ties.nties == 0;
	int			list = is_first ? 0 : !sort->list;
	GsTies		out = ties_at(sort->d_lists[list], nties);

	if (!gs_job_check(job, job->device->ops->list_ties(job->stream,
													   is_first ? job->nrows : sort->ties.nties,
													   scratch_words(job), sorted_words(job),
													   sort->row_bits,
													   is_first ? NULL : &sort->ties, &out,
													   sort->d_temp, sort->temp_bytes)))
		return false;
	sort->ties = out;
	sort->list = list;
	return true;
}

/* Queues the sort of the list by the next chunk, and the flags of the remaining ties. */
static bool
queue_chunk(GsSortJob *job, uint64_t ngroups)
{
	const GsDeviceOps *ops = job->device->ops;
	GsSortContext *sort = &job->sort;
	const GsKeyChunk *chunk = &packing_of(job)->chunks[sort->chunk];
	int			key_bits = gs_bit_width(ngroups - 1) + chunk->bits;
	uint64_t   *d_keys[2];
	bool		fine;

	find_tie_keys(job, d_keys);
	if (chunk->is_tail)
		fine = ops->sort_tails(job->stream, &sort->rows, &sort->ties, chunk->tail_component,
							   sort->d_tie_temp, sort->tie_temp_bytes);
	else
		fine = ops->tie_keys(job->stream, &sort->rows, &sort->ties, sort->chunk, d_keys[0]) &&
			ops->sort_ties(job->stream, sort->algorithm, &sort->ties, key_bits, d_keys,
						   sort->d_tie_temp, sort->tie_temp_bytes) &&
			ops->check_order(job->stream, sort->ties.nties, d_keys[0], 0, sort->ties.d_rows,
							 &sort->d_control->results.ties_check);
	fine = fine && ops->place_ties(job->stream, &sort->ties, sorted_words(job));
	sort->chunk++;
	if (fine && counts_ties(job))
	{
		if (chunk->is_tail)
			fine = ops->same_tails(job->stream, &sort->rows, &sort->ties,
								   chunk->tail_component, scratch_words(job));
		else
			fine = ops->same_keys(job->stream, sort->ties.nties, d_keys[0], scratch_words(job));
	}
	return gs_job_check(job, fine);
}

/* ----------------------------------------------------------------- the check */

/* Queues the check of all words, after which there are results. */
static bool
queue_check(GsSortJob *job, GsOrderCheck *d_check)
{
	return gs_job_check(job, job->device->ops->check_order(job->stream, job->nrows,
														   sorted_words(job),
														   job->sort.row_bits, NULL, d_check));
}

/*
 * Did the device sort correctly?  Kernels that are right can be compiled wrongly for
 * a new device, and memory can fail.  The order of tails is not checked, but that no
 * row is missing or there twice.
 */
static bool
order_is_right(GsSortJob *job)
{
	const GsSortResults *results = &job->pinned->control.results;
	const GsSorted *sorted = &job->sort.result;
	uint64_t	nmisplaced = results->words_check.nmisplaced + results->ties_check.nmisplaced;
	bool		has_rows = results->words_check.row_sum == 0 && results->rows_check.row_sum == 0;
	char		text[GS_FAILED_TEXT_BYTES];

	if (nmisplaced == 0 && has_rows)
		return true;
	snprintf(text, sizeof(text),
			 "%s (%s) sorted wrongly: of %llu rows, sorted by %u bits, %llu are misplaced%s",
			 job->device->name, job->device->driver, (unsigned long long) sorted->nrows,
			 sorted->key_bits, (unsigned long long) nmisplaced,
			 has_rows ? "" : ", and rows are missing");
	gs_job_fail(job, GS_FAILED_ORDER, text);
	return false;
}

/* ------------------------------------------------------------------ the end */

/*
 * Queues the computation of the boundaries of batches.  A batch is smaller than a
 * step and the longest row together, which is the size of a buffer.  There may be
 * more boundaries than necessary, because nunits is an upper bound.
 */
static bool
queue_boundaries(GsSortJob *job)
{
	const GsDeviceOps *ops = job->device->ops;
	GsDevice   *device = job->device;
	GsSortContext *sort = &job->sort;
	uint64_t   *d_end_offsets = scratch_words(job);
	size_t		boundaries_bytes;

	sort->step = gs_job_buffer_bytes(job) / sizeof(uint32_t) -
		(2 * (uint64_t) job->pinned->control.results.pack.max_row_units + 1);
	sort->nboundaries = max_boundaries(job, job->nrows, job->nunits, sort->step);
	boundaries_bytes = sort->nboundaries * sizeof(uint64_t);
	sort->boundaries = ops->allocate_host(device, boundaries_bytes);
	if (sort->boundaries == NULL || !allocate(job, &sort->d_boundaries, boundaries_bytes))
	{
		fail_for_memory(job);
		return false;
	}
	return gs_job_check(job,
						ops->row_end_offsets(job->stream, &sort->rows, sorted_words(job),
											 sort->row_bits, d_end_offsets, sort->d_temp,
											 sort->temp_bytes) &&
						ops->find_boundaries(job->stream, job->nrows, d_end_offsets, sort->step,
											 sort->nboundaries,
											 sort->d_boundaries) &&
						ops->copy_out(job->stream, sort->boundaries, sort->d_boundaries,
									  boundaries_bytes));
}

static void
finish(GsSortJob *job)
{
	if (job->sort.result.tied_rows > 0 &&
		!queue_check(job, &job->sort.d_control->results.rows_check))
		return;
	if (job->keys_only || queue_boundaries(job))
		copy_results(job, after_all);
}

/* The rows are sorted by the first chunk. */
static void
after_first(GsSortJob *job)
{
	const GsSortResults *results = &job->pinned->control.results;
	GsSortContext *sort = &job->sort;
	char		text[GS_FAILED_TEXT_BYTES];

	if (results->pack.nfaults > 0)
	{
		snprintf(text, sizeof(text), "%u rows have invalid records",
				 results->pack.nfaults);
		gs_job_fail(job, GS_FAILED_ROWS, text);
		return;
	}
	sort->sorted = results->selector == 1;
	if (!queue_check(job, &sort->d_control->results.words_check))
		return;
	if (!counts_ties(job))
		finish(job);
	else if (gs_job_check(job, job->device->ops->same_words(job->stream, job->nrows,
															sorted_words(job), sort->row_bits,
															scratch_words(job))))
		queue_count(job, job->nrows);
}

static void
after_count(GsSortJob *job)
{
	const GsTieCount *count = &job->pinned->control.results.ties;
	GsSortContext *sort = &job->sort;

	if (!order_is_right(job))
		return;
	sort->result.all_differ = count->nties == 0;
	if (count->nties == 0 || !has_chunks_left(job))
	{
		finish(job);
		return;
	}
	if (sort->result.tied_rows == 0)
	{
		sort->result.tied_rows = count->nties;
		if (!allocate_tie_memory(job, count->nties))
		{
			fail_for_memory(job);
			return;
		}
	}
	if (!queue_list(job, count->nties) || !queue_chunk(job, count->ngroups))
		return;
	if (counts_ties(job))
		queue_count(job, sort->ties.nties);
	else
		finish(job);
}

static void
after_all(GsSortJob *job)
{
	GsSortContext *sort = &job->sort;

	if (!order_is_right(job))
		return;
	release_block(job, sort->d_temp);
	release_block(job, sort->d_lists[0]);
	release_block(job, sort->d_lists[1]);
	release_block(job, sort->d_tie_temp);
	release_block(job, sort->d_boundaries);
	if (job->keys_only)
	{
		release_block(job, scratch_words(job));
		job->nout = (job->nrows - 1) / (gs_job_buffer_bytes(job) / sizeof(uint64_t)) + 1;
	}
	else
	{
		while (sort->boundaries[job->nout] < job->nrows)
			job->nout++;
	}
	report_sorted(job);
}
