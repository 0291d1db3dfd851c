/*-------------------------------------------------------------------------
 *
 * group_merge.cu
 *	  Selects ranges of sorted runs, exchanges them between devices, and merges them.
 *
 * Each member divides its range into chunks and selects where each of them begins in each run
 * (kernel_group_split.cuh).  So a chunk consists of one piece of each run.  For each chunk:
 *
 *	  copy		pieces on other members, to a slot of its own memory, by a stream for
 *				each pair of members: links between devices add up
 *	  merge		pieces in pairs, by rounds; the last one writes the result
 *	  download	the result, if it belongs in host memory
 *
 * There are three slots, so the three steps of consecutive chunks overlap.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>
#include <vector>

#include "group_internal.cuh"
#include "kernel_group_merge.cuh"

/* A range is divided into about this many chunks, .. */
#define GS_GROUP_CHUNKS 32

/* .. but not into smaller ones than this, and results for the host not into larger ones. */
#ifndef GS_GROUP_MIN_CHUNK /* tests make them small */
#define GS_GROUP_MIN_CHUNK  (UINT64_C(1) << 22)
#define GS_GROUP_HOST_CHUNK (UINT64_C(1) << 24)
#endif

/* The tile of a merge: see tuning.cuh about odd numbers of items. */
template <int item_bytes>
struct GsPairShape
{
	static const int threads = 512;
	static const int items = item_bytes == 4 ? 19 : (item_bytes == 8 ? 15 : 11);
	static const int blocks = 2;
	static const int tile = threads * items;
};

/* A sorted sequence in the member's memory. */
typedef struct GsPiece
{
	const void *d_keys;
	const void *d_values;
	uint64_t nitems;
} GsPiece;

/* The memory of a range and how it is divided. */
typedef struct GsRangePlan
{
	uint64_t chunk; /* items in each chunk but the last */
	uint64_t nchunks;
	GsRunView *d_runs;
	uint64_t *d_ranks;
	uint64_t *d_splits;
	uint64_t *d_tile_begins;
	GsPiece staged[GS_GROUP_SLOTS]; /* space for the pieces of others */
	GsPiece between[2];             /* for the results of rounds */
	GsPiece out[GS_GROUP_SLOTS];    /* for results on the way to the host */
	uint64_t *splits;               /* pinned: [chunk][run] */
} GsRangePlan;

static GsPiece
gs_carve_items(GsCarver *carver, const GsGroupTypes *types, uint64_t nitems)
{
	GsPiece piece = {};

	piece.d_keys = gs_carve(carver, nitems, types->key_bytes);
	piece.d_values = types->value_bytes == 0 ? NULL : gs_carve(carver, nitems, types->value_bytes);
	return piece;
}

static void
gs_plan_range(GsRangePlan *plan, GsCarver *carver, const GsGroupTypes *types, uint32_t nruns,
			  uint64_t nitems, bool to_host)
{
	plan->chunk = std::max<uint64_t>((nitems + GS_GROUP_CHUNKS - 1) / GS_GROUP_CHUNKS,
									 GS_GROUP_MIN_CHUNK);
	if (to_host)
		plan->chunk = std::min<uint64_t>(plan->chunk, GS_GROUP_HOST_CHUNK);
	plan->chunk = (plan->chunk + 255) / 256 * 256;
	plan->nchunks = (nitems + plan->chunk - 1) / plan->chunk;
	plan->d_runs = (GsRunView *) gs_carve(carver, nruns, sizeof(GsRunView));
	plan->d_ranks = (uint64_t *) gs_carve(carver, plan->nchunks + 1, sizeof(uint64_t));
	plan->d_splits = (uint64_t *) gs_carve(carver, (plan->nchunks + 1) * nruns, sizeof(uint64_t));
	plan->d_tile_begins =
		(uint64_t *) gs_carve(carver, plan->chunk / GsPairShape<16>::tile + 2, sizeof(uint64_t));
	for (int slot = 0; slot < GS_GROUP_SLOTS; slot++)
	{
		plan->staged[slot] = gs_carve_items(carver, types, plan->chunk);
		if (to_host)
			plan->out[slot] = gs_carve_items(carver, types, plan->chunk);
	}
	if (nruns > 2)
		for (int i = 0; i < 2; i++)
			plan->between[i] = gs_carve_items(carver, types, plan->chunk);
}

size_t
gs_group_merge_temp_bytes(const GsGroupTypes *types, uint32_t nruns, uint64_t nitems, bool to_host)
{
	GsRangePlan plan = {};
	GsCarver carver = {};

	gs_plan_range(&plan, &carver, types, nruns, nitems, to_host);
	return carver.nbytes;
}

static GsKeyBits
gs_key_bits_of(const GsGroupTypes *types)
{
	GsKeyBits bits;

	bits.left = 8 * types->key_bytes - types->end_bit;
	bits.right = bits.left + types->begin_bit;
	return bits;
}

/* ------------------------------------------------------------------ the split */

/* The keys of a run, as a member can read them: in its memory, a peer's, or the host's. */
static GsRunView
gs_run_view(const GsDeviceGroup *group, const GsGroupRun *run, uint32_t member)
{
	GsRunView view = {run->d_keys, run->d_values, run->nitems};

	if (group->through_host && run->member != member)
		view = {run->host_keys, run->host_values, run->nitems};
	return view;
}

/* Pinned space for the splits of all members; NULL: out of memory. */
static uint64_t *
gs_pinned_splits(GsDeviceGroup *group, uint64_t nsplits)
{
	if (nsplits > group->nsplits)
	{
		if (group->splits != NULL)
			cudaFreeHost(group->splits);
		group->splits = NULL;
		group->nsplits = 0;
		if (!gs_group_check(group, cudaMallocHost(&group->splits, nsplits * sizeof(uint64_t))))
			return NULL;
		group->nsplits = nsplits;
	}
	return group->splits;
}

/* Queues the selection of a member's chunks in all runs, and the copy to plan->splits. */
static void
gs_queue_split(GsDeviceGroup *group, uint32_t i, const GsGroupTypes *types, const GsGroupRun *runs,
			   uint32_t nruns, const GsGroupRange *range, GsRangePlan *plan,
			   std::vector<GsRunView> *views, std::vector<uint64_t> *ranks)
{
	const void *kernel = types->key_bytes == 4 ? (const void *) gs_group_split_kernel<uint32_t> :
												 (const void *) gs_group_split_kernel<uint64_t>;
	cudaStream_t stream = group->members[i].work;
	const uint32_t nranks = (uint32_t) plan->nchunks + 1;
	const size_t splits_bytes = (size_t) nranks * nruns * sizeof(uint64_t);
	GsKeyBits bits = gs_key_bits_of(types);
	void *args[] = {&plan->d_runs, &nruns, &plan->d_ranks, &bits, &plan->d_splits};

	if (plan->nchunks == 0 || !gs_group_select(group, i))
		return;
	for (uint32_t run = 0; run < nruns; run++)
		views->push_back(gs_run_view(group, &runs[run], i));
	for (uint64_t chunk = 0; chunk <= plan->nchunks; chunk++)
		ranks->push_back(range->first + std::min(chunk * plan->chunk, range->nitems));
	gs_group_check(group,
				   cudaMemcpyAsync(plan->d_runs, views->data(), nruns * sizeof(GsRunView),
								   cudaMemcpyHostToDevice, stream));
	gs_group_check(group,
				   cudaMemcpyAsync(plan->d_ranks, ranks->data(), nranks * sizeof(uint64_t),
								   cudaMemcpyHostToDevice, stream));
	gs_group_note(group, gs_launch(kernel, nranks, GS_GROUP_SPLIT_THREADS, 0, stream, false, args));
	gs_group_check(group,
				   cudaMemcpyAsync(plan->splits, plan->d_splits, splits_bytes,
								   cudaMemcpyDeviceToHost, stream));
}

/* ------------------------------------------------------------------ the merge */

/* Queues the merge of two sequences. */
template <typename Key, typename Value>
static void
gs_queue_pair_typed(GsDeviceGroup *group, uint32_t i, const GsGroupTypes *types,
					const GsRangePlan *plan, GsPiece a, GsPiece b, GsPiece to)
{
	typedef GsPairShape<sizeof(Key) + (GsHasValue<Value>::yes ? sizeof(Value) : 0)> Shape;
	static GsKernelOccupancy known;
	const void *begin_kernel = (const void *) gs_pair_begin_kernel<Key, Shape::tile>;
	const void *merge_kernel = (const void *) gs_pair_merge_kernel<Key, Value, Shape>;
	const size_t shared_bytes = sizeof(GsPairShared<Key, Value, Shape>);
	const uint64_t ntiles = (a.nitems + b.nitems + Shape::tile - 1) / Shape::tile;
	uint64_t nbegins = ntiles + 1;
	const uint32_t begin_blocks = gs_blocks(nbegins * GS_WARP_SIZE, GS_PAIR_BEGIN_THREADS);
	cudaStream_t stream = group->members[i].work;
	GsPairMerge merge = {};
	GsDeviceProperties properties;
	uint32_t resident;
	void *begin_args[] = {&merge, &nbegins};
	void *merge_args[] = {&merge};

	merge.d_keys_from[0] = a.d_keys;
	merge.d_keys_from[1] = b.d_keys;
	merge.d_values_from[0] = a.d_values;
	merge.d_values_from[1] = b.d_values;
	merge.nitems[0] = a.nitems;
	merge.nitems[1] = b.nitems;
	merge.d_keys_to = (void *) to.d_keys;
	merge.d_values_to = (void *) to.d_values;
	merge.bits = gs_key_bits_of(types);
	merge.d_tile_begins = plan->d_tile_begins;
	if (ntiles > 0 && gs_group_note(group, gs_device_properties(&properties)) &&
		gs_group_note(group,
					  gs_kernel_resident_blocks(&known, &properties, merge_kernel, Shape::threads,
												shared_bytes, &resident)) &&
		gs_group_note(group,
					  gs_launch(begin_kernel, begin_blocks, GS_PAIR_BEGIN_THREADS, 0, stream, false,
								begin_args)))
		gs_group_note(group,
					  gs_launch(merge_kernel, (uint32_t) ntiles, Shape::threads, shared_bytes,
								stream, false, merge_args));
}

template <typename Key>
static void
gs_queue_pair_keyed(GsDeviceGroup *group, uint32_t i, const GsGroupTypes *types,
					const GsRangePlan *plan, GsPiece a, GsPiece b, GsPiece to)
{
	switch (types->value_bytes)
	{
		case 0:
			gs_queue_pair_typed<Key, GsNoValue>(group, i, types, plan, a, b, to);
			break;
		case 4:
			gs_queue_pair_typed<Key, uint32_t>(group, i, types, plan, a, b, to);
			break;
		default:
			gs_queue_pair_typed<Key, uint64_t>(group, i, types, plan, a, b, to);
	}
}

static void
gs_queue_pair(GsDeviceGroup *group, uint32_t i, const GsGroupTypes *types, const GsRangePlan *plan,
			  GsPiece a, GsPiece b, GsPiece to)
{
	if (types->key_bytes == 4)
		gs_queue_pair_keyed<uint32_t>(group, i, types, plan, a, b, to);
	else
		gs_queue_pair_keyed<uint64_t>(group, i, types, plan, a, b, to);
}

static GsPiece
gs_piece_at(const GsGroupTypes *types, const void *d_keys, const void *d_values, uint64_t first,
			uint64_t nitems)
{
	return {gs_at(d_keys, first, types->key_bytes), gs_at(d_values, first, types->value_bytes),
			nitems};
}

/* Queues the rounds; pieces are in input order.  A piece without partner is merged with nothing. */
static void
gs_queue_rounds(GsDeviceGroup *group, uint32_t i, const GsGroupTypes *types,
				const GsRangePlan *plan, GsPiece *pieces, uint32_t npieces, GsPiece to)
{
	if (npieces == 1)
		gs_group_copy(group, types, to.d_keys, to.d_values, pieces[0].d_keys, pieces[0].d_values,
					  pieces[0].nitems, group->members[i].work);
	for (int round = 0; npieces > 1; round++)
	{
		GsPiece into = npieces == 2 ? to : plan->between[round % 2];
		uint64_t first = 0;
		uint32_t nmerged = 0;

		for (uint32_t k = 0; k < npieces; k += 2)
		{
			const GsPiece none = {};
			const GsPiece other = k + 1 < npieces ? pieces[k + 1] : none;
			const GsPiece both = gs_piece_at(types, into.d_keys, into.d_values, first,
											 pieces[k].nitems + other.nitems);

			gs_queue_pair(group, i, types, plan, pieces[k], other, both);
			first += both.nitems;
			pieces[nmerged++] = both;
		}
		npieces = nmerged;
	}
}

/* Queues one chunk of a member's range. */
static void
gs_queue_chunk(GsDeviceGroup *group, uint32_t i, const GsGroupTypes *types, const GsGroupRun *runs,
			   uint32_t nruns, const GsGroupRange *range, const GsRangePlan *plan, uint64_t chunk)
{
	GsGroupMember *member = &group->members[i];
	const int slot = (int) (chunk % GS_GROUP_SLOTS);
	const uint64_t *begins = plan->splits + chunk * nruns;
	const uint64_t first = chunk * plan->chunk;
	const uint64_t nitems = std::min(plan->chunk, range->nitems - first);
	const GsPiece result = range->to_host ? plan->out[slot] :
											gs_piece_at(types, range->keys_to, range->values_to,
														first, nitems);
	bool copies[GS_GROUP_MAX_DEVICES] = {};
	GsPiece pieces[GS_GROUP_MAX_RUNS];
	uint32_t npieces = 0;
	uint64_t nstaged = 0;

	if (!gs_group_select(group, i))
		return;
	for (uint32_t run = 0; run < nruns; run++)
	{
		const uint64_t begin = begins[run];
		const uint64_t n = begins[nruns + run] - begin;
		const GsRunView view = gs_run_view(group, &runs[run], i);
		const uint32_t source = runs[run].member;

		if (n == 0)
			continue;
		pieces[npieces] = gs_piece_at(types, view.d_keys, view.d_values, begin, n);
		if (source != i)
		{
			const GsPiece staged = gs_piece_at(types, plan->staged[slot].d_keys,
											   plan->staged[slot].d_values, nstaged, n);

			if (!copies[source] && chunk >= GS_GROUP_SLOTS)
				gs_group_check(group,
							   cudaStreamWaitEvent(member->from[source], member->merged[slot], 0));
			copies[source] = true;
			gs_group_copy(group, types, staged.d_keys, staged.d_values, pieces[npieces].d_keys,
						  pieces[npieces].d_values, n, member->from[source]);
			pieces[npieces] = staged;
			nstaged += n;
		}
		npieces++;
	}
	for (uint32_t source = 0; source < group->nmembers; source++)
		if (copies[source])
		{
			gs_group_check(group, cudaEventRecord(member->copied[source], member->from[source]));
			gs_group_check(group, cudaStreamWaitEvent(member->work, member->copied[source], 0));
		}
	if (range->to_host && chunk >= GS_GROUP_SLOTS)
		gs_group_check(group, cudaStreamWaitEvent(member->work, member->downloaded[slot], 0));
	gs_queue_rounds(group, i, types, plan, pieces, npieces, result);
	gs_group_check(group, cudaEventRecord(member->merged[slot], member->work));
	if (range->to_host)
	{
		gs_group_check(group, cudaStreamWaitEvent(member->download, member->merged[slot], 0));
		gs_group_copy(group, types, gs_at(range->keys_to, first, types->key_bytes),
					  gs_at(range->values_to, first, types->value_bytes), result.d_keys,
					  result.d_values, nitems, member->download);
		gs_group_check(group, cudaEventRecord(member->downloaded[slot], member->download));
	}
}

void
gs_group_merge(GsDeviceGroup *group, const GsGroupTypes *types, const GsGroupRun *runs,
			   uint32_t nruns, const GsGroupRange *ranges, GsGroupTimes *times)
{
	std::vector<GsRunView> views[GS_GROUP_MAX_DEVICES];
	std::vector<uint64_t> ranks[GS_GROUP_MAX_DEVICES];
	GsRangePlan plans[GS_GROUP_MAX_DEVICES] = {};
	const double start = gs_group_ms();
	double split;
	uint64_t nsplits = 0;
	uint64_t most_chunks = 0;
	uint64_t *splits;

	for (uint32_t i = 0; i < group->nmembers; i++)
	{
		GsCarver carver = {ranges[i].d_temp, 0};

		gs_plan_range(&plans[i], &carver, types, nruns, ranges[i].nitems, ranges[i].to_host);
		nsplits += (plans[i].nchunks + 1) * nruns;
		most_chunks = std::max(most_chunks, plans[i].nchunks);
	}
	splits = gs_pinned_splits(group, nsplits);
	for (uint32_t i = 0; i < group->nmembers && splits != NULL; i++)
	{
		plans[i].splits = splits;
		splits += (plans[i].nchunks + 1) * nruns;
		gs_queue_split(group, i, types, runs, nruns, &ranges[i], &plans[i], &views[i], &ranks[i]);
	}
	for (uint32_t i = 0; i < group->nmembers; i++)
		if (gs_group_select(group, i))
			gs_group_check(group, cudaStreamSynchronize(group->members[i].work));
	split = gs_group_ms();
	for (uint64_t chunk = 0; chunk < most_chunks && group->status == GS_DEVICE_OK; chunk++)
		for (uint32_t i = 0; i < group->nmembers; i++)
			if (chunk < plans[i].nchunks)
				gs_queue_chunk(group, i, types, runs, nruns, &ranges[i], &plans[i], chunk);
	gs_group_wait(group);
	times->split_ms = (float) (split - start);
	times->merge_ms = (float) (gs_group_ms() - split);
}
