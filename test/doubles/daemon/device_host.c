/*-------------------------------------------------------------------------
 *
 * device_host.c
 *	  The CPU as a device.
 *
 * It imitates a real device so that tests notice errors of its caller.  A call
 * with a stream only queues a work item:
 *
 *	  copy_in, copy_in, fence 1, pack, sort_words, copy_out, fence 2, ...
 *
 * Only passed_fence() performs work items, up to the next fence and no further.
 * A caller that uses a result, or frees memory, before the fence behind it has
 * passed gets wrong results at once.
 *
 * Memory is limited, and is filled with garbage when it is allocated.  That of a peer is
 * memory of this process, too, but does not count here.
 *
 *-------------------------------------------------------------------------
 */
#include "doubles/daemon/device_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doubles/daemon/device_host_steps.h"

#define DEVICE_ALIGNMENT	((size_t) 256)
#define UNINITIALIZED_BYTE				0xA5

/* The first word of the identity of each device of the host; the second is its number. */
#define IDENTITY_OF_HOST	UINT64_C(0x74736F68)

typedef struct HostDevice
{
	GsDevice	base;
	uint64_t	memory_bytes;	/* total */
	uint64_t	used_bytes;
	bool		failed;
} HostDevice;

/* Precedes each allocation of device memory. */
typedef struct Allocation
{
	size_t		nbytes;			/* that count; 0: of a peer */
} Allocation;

typedef struct Work Work;
typedef void (*WorkFunction) (HostDevice *device, const Work *work);

/* The base of every work item. */
struct Work
{
	Work	   *next;
	WorkFunction run;			/* NULL: a fence */
};

struct GsStream
{
	HostDevice *device;
	Work	   *first;			/* of the queue */
	Work	  **end;			/* where the next one is linked */
	uint64_t	last_fence;		/* recorded */
	uint64_t	passed_fence;
};

/* ------------------------------------------------------------------ memory */

static bool
host_memory(GsDevice *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
	HostDevice *device = (HostDevice *) base;

	*free_bytes = device->memory_bytes - device->used_bytes;
	*total_bytes = device->memory_bytes;
	return !device->failed;
}

/* Memory of which counted_bytes count. */
static void *
allocate_counted(HostDevice *device, size_t nbytes, size_t counted_bytes)
{
	void	   *block;

	if (posix_memalign(&block, DEVICE_ALIGNMENT, DEVICE_ALIGNMENT + nbytes) != 0)
		return NULL;
	((Allocation *) block)->nbytes = counted_bytes;
	device->used_bytes += counted_bytes;
	return memset((char *) block + DEVICE_ALIGNMENT, UNINITIALIZED_BYTE, nbytes);
}

static void *
host_allocate(GsDevice *base, size_t nbytes)
{
	HostDevice *device = (HostDevice *) base;

	if (nbytes > device->memory_bytes - device->used_bytes)
		return NULL;
	return allocate_counted(device, nbytes, nbytes);
}

static void
host_release(GsDevice *base, void *d_memory)
{
	HostDevice *device = (HostDevice *) base;
	Allocation *allocation = (Allocation *) ((char *) d_memory - DEVICE_ALIGNMENT);

	device->used_bytes -= allocation->nbytes;
	free(allocation);
}

static int
host_open_peer(GsDevice *base, GsDeviceIdentity identity)
{
	return identity.words[0] == IDENTITY_OF_HOST ? (int) identity.words[1] : -1;
}

static void *
host_allocate_at(GsDevice *base, int peer, size_t nbytes)
{
	return allocate_counted((HostDevice *) base, nbytes, 0);
}

static void *
host_allocate_host(GsDevice *base, size_t nbytes)
{
	return calloc(1, nbytes);
}

static void
host_release_host(GsDevice *base, void *memory)
{
	free(memory);
}

/* Host memory needs no pinning. */
static bool
host_pin(GsDevice *base, void *memory, size_t nbytes)
{
	return true;
}

static void
host_unpin(GsDevice *base, void *memory)
{
}

/* ----------------------------------------------------------------- streams */

/* Marks the device as failed; the first reason stays.  Returns false. */
static bool
break_device(HostDevice *device, const char *why)
{
	if (!device->failed)
		snprintf(device->base.error, sizeof(device->base.error), "%s", why);
	device->failed = true;
	return false;
}

/* Queues a copy of the work item. */
static bool
enqueue(GsStream *stream, WorkFunction run, Work *work, size_t nbytes)
{
	Work	   *copy;

	if (stream->device->failed)
		return false;
	copy = malloc(nbytes);
	if (copy == NULL)
		return break_device(stream->device, "out of memory");
	memcpy(copy, work, nbytes);
	copy->next = NULL;
	copy->run = run;
	*stream->end = copy;
	stream->end = &copy->next;
	return true;
}

/* For types of work items, whose first member is "Work work". */
#define ENQUEUE(stream, run, work_of_t) \
	enqueue(stream, run, &(work_of_t)->work, sizeof(*(work_of_t)))

/* Performs the first work item; true: it was a fence. */
static bool
run_first(GsStream *stream)
{
	Work	   *work = stream->first;
	bool		is_fence = work->run == NULL;

	if (is_fence)
		stream->passed_fence++;
	else if (!stream->device->failed)
		work->run(stream->device, work);
	stream->first = work->next;
	if (stream->first == NULL)
		stream->end = &stream->first;
	free(work);
	return is_fence;
}

static GsStream *
host_stream_open(GsDevice *base)
{
	HostDevice *device = (HostDevice *) base;
	GsStream   *stream = device->failed ? NULL : calloc(1, sizeof(GsStream));

	if (stream == NULL)
	{
		break_device(device, "out of memory");
		return NULL;
	}
	stream->device = device;
	stream->end = &stream->first;
	return stream;
}

static void
host_stream_close(GsStream *stream)
{
	while (stream->first != NULL)
		run_first(stream);
	free(stream);
}

static bool
host_record_fence(GsStream *stream, uint64_t *fence)
{
	Work		record_fence;

	if (!enqueue(stream, NULL, &record_fence, sizeof(record_fence)))
		return false;
	*fence = ++stream->last_fence;
	return true;
}

static bool
host_passed_fence(GsStream *stream, uint64_t *fence)
{
	/* work items behind the last fence stay queued */
	while (stream->passed_fence < stream->last_fence && !run_first(stream))
		;
	*fence = stream->passed_fence;
	return !stream->device->failed;
}

typedef struct CopyWork
{
	Work		work;
	void	   *to;
	const void *from;
	size_t		nbytes;
} CopyWork;

static void
run_copy(HostDevice *device, const Work *work)
{
	const CopyWork *copy = (const CopyWork *) work;

	memcpy(copy->to, copy->from, copy->nbytes);
}

static bool
host_copy_in(GsStream *stream, void *d_to, const void *from, size_t nbytes)
{
	CopyWork	copy = {.to = d_to,.from = from,.nbytes = nbytes};

	return ENQUEUE(stream, run_copy, &copy);
}

static bool
host_copy_out(GsStream *stream, void *to, const void *d_from, size_t nbytes)
{
	return host_copy_in(stream, to, d_from, nbytes);
}

/* -------------------------------------------------------- temporary storage */

/* What pack() stores for the following sort_words(): which words were counted. */
typedef struct Counted
{
	uint64_t	nrows;
	const uint64_t *d_words;
	int			low_bit;
	int			nbits;
} Counted;

/* What count_ties() stores for list_ties(). */
typedef struct TieScan
{
	uint64_t	n;
	const uint8_t *d_same;
	uint64_t	nties;
} TieScan;

static size_t
host_temp_bytes(GsDevice *base, GsDeviceStep step, GsAlgorithm algorithm, uint64_t n)
{
	switch (step)
	{
		case GS_STEP_SORT_WORDS:
			return sizeof(Counted);
		case GS_STEP_LIST_TIES:
			return sizeof(TieScan);
		case GS_STEP_SORT_TIES:
		case GS_STEP_SORT_TAILS:
			return (size_t) n * sizeof(uint32_t);
		case GS_STEP_ROW_END_OFFSETS:
			break;
	}
	return 0;
}

/* A real device would write beyond temporary storage that is too small. */
static bool
has_temp(GsStream *stream, GsDeviceStep step, uint64_t n, const void *d_temp, size_t temp_bytes)
{
	size_t		needed = host_temp_bytes(&stream->device->base, step, GS_ALGORITHM_RADIX, n);

	if (temp_bytes < needed || (needed > 0 && d_temp == NULL))
		return break_device(stream->device, "temporary storage of a step is too small");
	return true;
}

/* ---------------------------------------------------------- the first sort */

typedef struct PackWork
{
	Work		work;
	GsDeviceRows rows;
	int			chunk;
	int			row_bits;
	uint64_t   *d_words;
	GsPackResults *d_results;
	Counted	   *counted;
} PackWork;

static void
run_pack(HostDevice *device, const Work *work)
{
	const PackWork *pack = (const PackWork *) work;

	gs_host_pack(&pack->rows, pack->chunk, pack->row_bits, pack->d_words, pack->d_results);
	if (pack->counted != NULL)
		*pack->counted = (Counted)
	{
		.nrows = pack->rows.nrows,.d_words = pack->d_words,.low_bit = pack->row_bits,
		.nbits = pack->chunk < 0 ? 0 : pack->rows.d_packing->chunks[pack->chunk].bits
	};
}

static bool
host_pack(GsStream *stream, const GsDeviceRows *rows, int chunk, int row_bits,
		  uint64_t *d_words, GsPackResults *d_results, void *d_temp, size_t temp_bytes)
{
	PackWork	pack = {.rows = *rows,.chunk = chunk,.row_bits = row_bits,
		.d_words = d_words,.d_results = d_results,.counted = d_temp};

	if (d_temp != NULL &&
		!has_temp(stream, GS_STEP_SORT_WORDS, rows->nrows, d_temp, temp_bytes))
		return false;
	return ENQUEUE(stream, run_pack, &pack);
}

typedef struct SortWordsWork
{
	Work		work;
	uint64_t	n;
	int			low_bit;
	int			nbits;
	uint64_t   *d_words[2];
	uint32_t   *d_selector;
	const Counted *counted;
} SortWordsWork;

static void
run_sort_words(HostDevice *device, const Work *work)
{
	const SortWordsWork *sort = (const SortWordsWork *) work;
	const Counted *counted = sort->counted;

	/* with counts of other words, a real device would lose words */
	if (counted != NULL &&
		(counted->nrows != sort->n || counted->d_words != sort->d_words[0] ||
		 counted->low_bit != sort->low_bit || counted->nbits != sort->nbits))
		break_device(device, "the words to sort are not those that were counted");
	else
		gs_host_sort_words(sort->n, sort->low_bit, sort->nbits, sort->d_words,
						   sort->d_selector);
}

static bool
host_sort_words(GsStream *stream, GsAlgorithm algorithm, uint64_t n, int low_bit, int nbits,
				uint64_t *const d_words[2], uint32_t *d_selector, bool counted,
				void *d_temp, size_t temp_bytes)
{
	SortWordsWork sort = {.n = n,.low_bit = low_bit,.nbits = nbits,
		.d_words = {d_words[0], d_words[1]},.d_selector = d_selector,
	.counted = counted ? d_temp : NULL};

	return has_temp(stream, GS_STEP_SORT_WORDS, n, d_temp, temp_bytes) &&
		ENQUEUE(stream, run_sort_words, &sort);
}

/* ------------------------------------------------------------------- ties */

typedef struct SameWork
{
	Work		work;
	uint64_t	n;
	const uint64_t *d_words;
	int			low_bit;
	uint8_t	   *d_same;
} SameWork;

static void
run_same_words(HostDevice *device, const Work *work)
{
	const SameWork *same = (const SameWork *) work;

	gs_host_same_words(same->n, same->d_words, same->low_bit, same->d_same);
}

static bool
host_same_words(GsStream *stream, uint64_t n, const uint64_t *d_words, int low_bit,
				uint8_t *d_same)
{
	SameWork	same = {.n = n,.d_words = d_words,.low_bit = low_bit,.d_same = d_same};

	return ENQUEUE(stream, run_same_words, &same);
}

static bool
host_same_keys(GsStream *stream, uint64_t n, const uint64_t *d_keys, uint8_t *d_same)
{
	return host_same_words(stream, n, d_keys, 0, d_same);
}

/* A step over a list of ties. */
typedef struct TiesWork
{
	Work		work;
	GsDeviceRows rows;
	GsTies		ties;
	int			number;			/* of a chunk, a component or bits */
	uint8_t	   *d_same;
	uint64_t   *d_keys[2];		/* or words */
	uint32_t   *scratch;
} TiesWork;

static void
run_same_tails(HostDevice *device, const Work *work)
{
	const TiesWork *step = (const TiesWork *) work;

	gs_host_same_tails(&step->rows, &step->ties, step->number, step->d_same);
}

static bool
host_same_tails(GsStream *stream, const GsDeviceRows *rows, const GsTies *ties, int component,
				uint8_t *d_same)
{
	TiesWork	step = {.rows = *rows,.ties = *ties,.number = component,.d_same = d_same};

	return ENQUEUE(stream, run_same_tails, &step);
}

typedef struct ListWork
{
	Work		work;
	uint64_t	n;
	const uint8_t *d_same;
	GsTieCount *d_count;
	const uint64_t *d_words;
	int			row_bits;
	bool		from_ties;		/* and not from d_words */
	GsTies		from;
	GsTies		out;
	TieScan	   *scan;
} ListWork;

static void
run_count_ties(HostDevice *device, const Work *work)
{
	const ListWork *count = (const ListWork *) work;

	gs_host_count_ties(count->n, count->d_same, count->d_count);
	*count->scan = (TieScan)
	{
		.n = count->n,.d_same = count->d_same,.nties = count->d_count->nties
	};
}

static bool
host_count_ties(GsStream *stream, uint64_t n, const uint8_t *d_same, GsTieCount *d_count,
				void *d_temp, size_t temp_bytes)
{
	ListWork	count = {.n = n,.d_same = d_same,.d_count = d_count,.scan = d_temp};

	return has_temp(stream, GS_STEP_LIST_TIES, n, d_temp, temp_bytes) &&
		ENQUEUE(stream, run_count_ties, &count);
}

static void
run_list_ties(HostDevice *device, const Work *work)
{
	const ListWork *list = (const ListWork *) work;

	if (list->scan->n != list->n || list->scan->d_same != list->d_same ||
		list->scan->nties != list->out.nties)
		break_device(device, "the ties to list are not those that were counted");
	else
		gs_host_list_ties(list->n, list->d_same, list->d_words, list->row_bits,
						  list->from_ties ? &list->from : NULL, &list->out);
}

static bool
host_list_ties(GsStream *stream, uint64_t n, const uint8_t *d_same, const uint64_t *d_words,
			   int row_bits, const GsTies *from, GsTies *out, void *d_temp, size_t temp_bytes)
{
	ListWork	list = {.n = n,.d_same = d_same,.d_words = d_words,.row_bits = row_bits,
		.from_ties = from != NULL,.out = *out,.scan = d_temp};

	if (from != NULL)
		list.from = *from;
	return has_temp(stream, GS_STEP_LIST_TIES, n, d_temp, temp_bytes) &&
		ENQUEUE(stream, run_list_ties, &list);
}

static void
run_tie_keys(HostDevice *device, const Work *work)
{
	const TiesWork *step = (const TiesWork *) work;

	gs_host_tie_keys(&step->rows, &step->ties, step->number, step->d_keys[0]);
}

static bool
host_tie_keys(GsStream *stream, const GsDeviceRows *rows, const GsTies *ties, int chunk,
			  uint64_t *d_keys)
{
	TiesWork	step = {.rows = *rows,.ties = *ties,.number = chunk,.d_keys = {d_keys, NULL}};

	return ENQUEUE(stream, run_tie_keys, &step);
}

static void
run_sort_ties(HostDevice *device, const Work *work)
{
	const TiesWork *step = (const TiesWork *) work;

	gs_host_sort_ties(&step->ties, step->number, step->d_keys, step->scratch);
}

static bool
host_sort_ties(GsStream *stream, GsAlgorithm algorithm, const GsTies *ties, int nbits,
			   uint64_t *const d_keys[2], void *d_temp, size_t temp_bytes)
{
	TiesWork	step = {.ties = *ties,.number = nbits,.d_keys = {d_keys[0], d_keys[1]},
	.scratch = d_temp};

	return has_temp(stream, GS_STEP_SORT_TIES, ties->nties, d_temp, temp_bytes) &&
		ENQUEUE(stream, run_sort_ties, &step);
}

static void
run_sort_tails(HostDevice *device, const Work *work)
{
	const TiesWork *step = (const TiesWork *) work;

	gs_host_sort_tails(&step->rows, &step->ties, step->number, step->scratch);
}

static bool
host_sort_tails(GsStream *stream, const GsDeviceRows *rows, const GsTies *ties, int component,
				void *d_temp, size_t temp_bytes)
{
	TiesWork	step = {.rows = *rows,.ties = *ties,.number = component,.scratch = d_temp};

	return has_temp(stream, GS_STEP_SORT_TAILS, ties->nties, d_temp, temp_bytes) &&
		ENQUEUE(stream, run_sort_tails, &step);
}

static void
run_place_ties(HostDevice *device, const Work *work)
{
	const TiesWork *step = (const TiesWork *) work;

	gs_host_place_ties(&step->ties, step->d_keys[0]);
}

static bool
host_place_ties(GsStream *stream, const GsTies *ties, uint64_t *d_words)
{
	TiesWork	step = {.ties = *ties,.d_keys = {d_words, NULL}};

	return ENQUEUE(stream, run_place_ties, &step);
}

/* ------------------------------------------------------------------- check */

typedef struct CheckWork
{
	Work		work;
	uint64_t	n;
	const uint64_t *d_words;
	int			row_bits;
	const uint32_t *d_rows;
	GsOrderCheck *d_check;
} CheckWork;

static void
run_check_order(HostDevice *device, const Work *work)
{
	const CheckWork *step = (const CheckWork *) work;

	gs_host_check_order(step->n, step->d_words, step->row_bits, step->d_rows, step->d_check);
}

static bool
host_check_order(GsStream *stream, uint64_t n, const uint64_t *d_words, int row_bits,
				 const uint32_t *d_rows, GsOrderCheck *d_check)
{
	CheckWork	step = {
		.n = n,.d_words = d_words,.row_bits = row_bits,.d_rows = d_rows,.d_check = d_check
	};

	return ENQUEUE(stream, run_check_order, &step);
}

/* ------------------------------------------------- batches of sorted rows */

/* A step over the rows in order. */
typedef struct OrderWork
{
	Work		work;
	GsDeviceRows rows;
	const uint64_t *d_words;
	int			row_bits;
	uint64_t	first;
	uint32_t	nrows;
	void	   *d_to;
	size_t		to_bytes;
} OrderWork;

static void
run_row_end_offsets(HostDevice *device, const Work *work)
{
	const OrderWork *step = (const OrderWork *) work;

	gs_host_row_end_offsets(&step->rows, step->d_words, step->row_bits, step->d_to);
}

static bool
host_row_end_offsets(GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words,
					 int row_bits,
					 uint64_t *d_end_offsets, void *d_temp, size_t temp_bytes)
{
	OrderWork	step = {.rows = *rows,.d_words = d_words,.row_bits = row_bits,.d_to = d_end_offsets};

	return has_temp(stream, GS_STEP_ROW_END_OFFSETS, rows->nrows, d_temp, temp_bytes) &&
		ENQUEUE(stream, run_row_end_offsets, &step);
}

typedef struct BoundaryWork
{
	Work		work;
	uint64_t	nrows;
	const uint64_t *d_end_offsets;
	uint64_t	step;
	uint32_t	nboundaries;
	uint64_t   *d_boundaries;
} BoundaryWork;

static void
run_find_boundaries(HostDevice *device, const Work *work)
{
	const BoundaryWork *step = (const BoundaryWork *) work;

	gs_host_find_boundaries(step->nrows, step->d_end_offsets, step->step, step->nboundaries,
							step->d_boundaries);
}

static bool
host_find_boundaries(GsStream *stream, uint64_t nrows, const uint64_t *d_end_offsets, uint64_t step,
					 uint32_t nboundaries, uint64_t *d_boundaries)
{
	BoundaryWork work = {.nrows = nrows,.d_end_offsets = d_end_offsets,.step = step,
		.nboundaries = nboundaries,.d_boundaries = d_boundaries};

	return ENQUEUE(stream, run_find_boundaries, &work);
}

static void
run_gather(HostDevice *device, const Work *work)
{
	const OrderWork *step = (const OrderWork *) work;

	if (!gs_host_gather(&step->rows, step->d_words, step->row_bits, step->first, step->nrows,
						step->d_to, step->to_bytes))
		break_device(device, "a batch of sorted rows exceeds its buffer");
}

static bool
host_gather(GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words, int row_bits,
			const uint64_t *d_end_offsets, uint64_t first, uint32_t nrows, char *d_to,
			size_t to_bytes)
{
	OrderWork	step = {.rows = *rows,.d_words = d_words,.row_bits = row_bits,
		.first = first,.nrows = nrows,.d_to = d_to,.to_bytes = to_bytes};

	return ENQUEUE(stream, run_gather, &step);
}

static void
run_gather_keys(HostDevice *device, const Work *work)
{
	const OrderWork *step = (const OrderWork *) work;

	gs_host_gather_keys(&step->rows, step->d_words, step->row_bits, step->first, step->nrows,
						step->d_to);
}

static bool
host_gather_keys(GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words,
				 int row_bits, uint64_t first, uint32_t nrows, uint64_t *d_to)
{
	OrderWork	step = {.rows = *rows,.d_words = d_words,.row_bits = row_bits,
		.first = first,.nrows = nrows,.d_to = d_to};

	return ENQUEUE(stream, run_gather_keys, &step);
}

/* -------------------------------------------------------------- the device */

static void
host_close(GsDevice *base)
{
	free(base);
}

static const GsDeviceOps host_ops = {
	.memory = host_memory,
	.allocate = host_allocate,
	.release = host_release,
	.open_peer = host_open_peer,
	.allocate_at = host_allocate_at,
	.allocate_host = host_allocate_host,
	.release_host = host_release_host,
	.pin = host_pin,
	.unpin = host_unpin,
	.stream_open = host_stream_open,
	.stream_close = host_stream_close,
	.record_fence = host_record_fence,
	.passed_fence = host_passed_fence,
	.copy_in = host_copy_in,
	.copy_out = host_copy_out,
	.temp_bytes = host_temp_bytes,
	.pack = host_pack,
	.sort_words = host_sort_words,
	.same_words = host_same_words,
	.same_keys = host_same_keys,
	.same_tails = host_same_tails,
	.count_ties = host_count_ties,
	.list_ties = host_list_ties,
	.tie_keys = host_tie_keys,
	.sort_ties = host_sort_ties,
	.sort_tails = host_sort_tails,
	.place_ties = host_place_ties,
	.check_order = host_check_order,
	.row_end_offsets = host_row_end_offsets,
	.find_boundaries = host_find_boundaries,
	.gather = host_gather,
	.gather_keys = host_gather_keys,
	.close = host_close
};

uint64_t
gs_device_host_memory(void)
{
	return (uint64_t) sysconf(_SC_PHYS_PAGES) * (uint64_t) sysconf(_SC_PAGESIZE) / 2;
}

GsDeviceIdentity
gs_device_host_identity(uint32_t number)
{
	return (GsDeviceIdentity)
	{
		{
			IDENTITY_OF_HOST, number
		}
	};
}

GsDevice *
gs_device_host_open(uint32_t number, uint64_t memory_bytes, char *why_not, size_t size)
{
	HostDevice *device = calloc(1, sizeof(HostDevice));

	if (device == NULL)
	{
		snprintf(why_not, size, "out of memory");
		return NULL;
	}
	device->base.ops = &host_ops;
	device->base.kind = GS_DEVICE_KIND_HOST;
	device->base.identity = gs_device_host_identity(number);
	snprintf(device->base.name, sizeof(device->base.name), "host processor");
	snprintf(device->base.driver, sizeof(device->base.driver), "no driver");
	device->memory_bytes = memory_bytes > 0 ? memory_bytes : gs_device_host_memory();
	return &device->base;
}
