/*-------------------------------------------------------------------------
 *
 * device_cuda.cu
 *	  A CUDA device, as src/gpusortd/device.h wants one.
 *
 * Nothing here waits for the device but stream_close and close; each call
 * queues what kernel_*.cu have, or what the CUDA runtime has, on the stream.
 *
 * Tickets are events, of which a stream has a few that it uses again and
 * again.  Where more are wanted than there are, the last one moves behind the
 * new work: it then stands for its ticket and all since.  So a ticket may show
 * late, never early, and the first ones show in time.
 *
 * Kernels are loaded when the device is opened, all at once; the runtime would
 * else load each when it is first used, within the first sort.
 *
 * Streams and pinned memory are kept for the next who wants some: making them
 * takes half a millisecond a job, and giving memory back waits for all streams.
 *
 * A CUDA error is final: the first one's text is kept, and every later call
 * fails.  What only says that there is no memory is none.
 *
 *-------------------------------------------------------------------------
 */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpusortd/device.h"
#include "device_sort.h"
#include "device_steps.cuh"

#define GS_STREAM_EVENTS 32

/* Kept at most: streams, and pieces of pinned memory of at most so many bytes. */
#define GS_KEPT       64
#define GS_KEPT_BYTES ((size_t) 256 << 10)

/* Before each piece of pinned memory. */
typedef struct GsPinned
{
	size_t nbytes;         /* behind it */
	struct GsPinned *next; /* kept */
} GsPinned;

/* So that what is behind it is aligned as cudaHostAlloc() aligns. */
#define GS_PINNED_HEADER 256

typedef struct GsCudaDevice
{
	GsDevice device; /* first */
	int number;
	GsPinned *kept_pinned;
	int nkept_pinned;
	GsStream *kept_streams[GS_KEPT];
	int nkept_streams;
} GsCudaDevice;

/* The events that the stream has not been seen to pass are a ring. */
struct GsStream
{
	GsCudaDevice *device;
	cudaStream_t stream;
	cudaEvent_t events[GS_STREAM_EVENTS];
	uint64_t tickets[GS_STREAM_EVENTS];
	uint32_t oldest;
	uint32_t npending;
	uint64_t last_fence;
	uint64_t passed;
};

static GsCudaDevice *
cuda_device(GsDevice *device)
{
	return (GsCudaDevice *) device;
}

static bool
is_broken(const GsDevice *device)
{
	return device->error[0] != '\0';
}

/* Keeps the first error's text; false if there was any, ever. */
static bool
is_done(GsCudaDevice *device, const char *what, cudaError_t error)
{
	if (error != cudaSuccess && !is_broken(&device->device))
		snprintf(device->device.error, sizeof(device->device.error), "%s: %s", what,
				 cudaGetErrorString(error));
	return !is_broken(&device->device);
}

/* The same of a step. */
static bool
is_queued(GsStream *stream, const char *what, GsDeviceStatus status)
{
	GsDevice *device = &stream->device->device;
	const char *text = "unsupported operation";

	if (status == GS_DEVICE_CUDA_ERROR)
		text = gs_device_last_error();
	else if (status == GS_DEVICE_TEMP_TOO_SMALL)
		text = "too little temporary storage";
	if (status != GS_DEVICE_OK && !is_broken(device))
		snprintf(device->error, sizeof(device->error), "%s: %s", what, text);
	return !is_broken(device);
}

/* The thread's current device becomes this one, if it still works. */
static bool
enter(GsCudaDevice *device)
{
	return !is_broken(&device->device) &&
		is_done(device, "cudaSetDevice", cudaSetDevice(device->number));
}

/*
 * A call failed that may, for want of memory or of what can be pinned.  A broken
 * device fails it too, and then any other call shows that.
 */
static void
look_if_broken(GsCudaDevice *device)
{
	size_t free_bytes;
	size_t total_bytes;

	cudaGetLastError(); /* not to be met again */
	is_done(device, "cudaMemGetInfo", cudaMemGetInfo(&free_bytes, &total_bytes));
}

/* ------------------------------------------------------------------ memory */

static bool
cuda_memory(GsDevice *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
	size_t free_now = 0;
	size_t total = 0;
	bool ok = enter(cuda_device(device)) &&
		is_done(cuda_device(device), "cudaMemGetInfo", cudaMemGetInfo(&free_now, &total));

	*free_bytes = free_now;
	*total_bytes = total;
	return ok;
}

static void *
cuda_allocate(GsDevice *device, size_t nbytes)
{
	void *d_memory = NULL;
	cudaError_t error;

	if (!enter(cuda_device(device)))
		return NULL;
	error = cudaMalloc(&d_memory, nbytes);
	if (error == cudaSuccess)
		return d_memory;
	cudaGetLastError(); /* not to be met again */
	if (error != cudaErrorMemoryAllocation)
		is_done(cuda_device(device), "cudaMalloc", error);
	return NULL;
}

static void
cuda_release(GsDevice *device, void *d_memory)
{
	if (enter(cuda_device(device)))
		is_done(cuda_device(device), "cudaFree", cudaFree(d_memory));
}

/* A kept piece that is large enough and not much larger; NULL if there is none. */
static GsPinned *
take_kept_pinned(GsCudaDevice *device, size_t nbytes)
{
	for (GsPinned **link = &device->kept_pinned; *link != NULL; link = &(*link)->next)
	{
		GsPinned *pinned = *link;

		if (pinned->nbytes >= nbytes && pinned->nbytes / 4 <= nbytes)
		{
			*link = pinned->next;
			device->nkept_pinned--;
			return pinned;
		}
	}
	return NULL;
}

static void *
cuda_allocate_host(GsDevice *device, size_t nbytes)
{
	GsPinned *pinned;

	if (!enter(cuda_device(device)))
		return NULL;
	pinned = take_kept_pinned(cuda_device(device), nbytes);
	if (pinned == NULL)
	{
		void *memory;

		if (cudaHostAlloc(&memory, GS_PINNED_HEADER + nbytes, cudaHostAllocPortable) != cudaSuccess)
		{
			look_if_broken(cuda_device(device));
			return NULL;
		}
		pinned = (GsPinned *) memory;
		pinned->nbytes = nbytes;
	}
	memset((char *) pinned + GS_PINNED_HEADER, 0, nbytes);
	return (char *) pinned + GS_PINNED_HEADER;
}

static void
cuda_release_host(GsDevice *base, void *memory)
{
	GsCudaDevice *device = cuda_device(base);
	GsPinned *pinned = (GsPinned *) ((char *) memory - GS_PINNED_HEADER);

	if (pinned->nbytes <= GS_KEPT_BYTES && device->nkept_pinned < GS_KEPT)
	{
		pinned->next = device->kept_pinned;
		device->kept_pinned = pinned;
		device->nkept_pinned++;
	}
	else if (enter(device))
		is_done(device, "cudaFreeHost", cudaFreeHost(pinned));
}

static bool
cuda_pin(GsDevice *device, void *memory, size_t nbytes)
{
	if (!enter(cuda_device(device)))
		return false;
	if (cudaHostRegister(memory, nbytes, cudaHostRegisterPortable) == cudaSuccess)
		return true;
	look_if_broken(cuda_device(device));
	return false;
}

static void
cuda_unpin(GsDevice *device, void *memory)
{
	if (enter(cuda_device(device)))
		is_done(cuda_device(device), "cudaHostUnregister", cudaHostUnregister(memory));
}

/* ----------------------------------------------------------------- streams */

static void
destroy_stream(GsStream *stream)
{
	if (enter(stream->device))
	{
		for (int i = 0; i < GS_STREAM_EVENTS; i++)
			if (stream->events[i] != NULL)
				cudaEventDestroy(stream->events[i]);
		cudaStreamDestroy(stream->stream);
	}
	free(stream);
}

static void
cuda_stream_close(GsStream *stream)
{
	GsCudaDevice *device = stream->device;

	if (enter(device) &&
		is_done(device, "cudaStreamSynchronize", cudaStreamSynchronize(stream->stream)) &&
		device->nkept_streams < GS_KEPT)
		device->kept_streams[device->nkept_streams++] = stream;
	else
		destroy_stream(stream);
}

static GsStream *
cuda_stream_open(GsDevice *device)
{
	GsStream *stream;

	if (!enter(cuda_device(device)))
		return NULL;
	if (cuda_device(device)->nkept_streams > 0)
	{
		stream = cuda_device(device)->kept_streams[--cuda_device(device)->nkept_streams];
		stream->npending = 0;
		stream->last_fence = 0;
		stream->passed = 0;
		return stream;
	}
	stream = (GsStream *) calloc(1, sizeof(GsStream));
	if (stream == NULL)
		return NULL;
	stream->device = cuda_device(device);
	if (cudaStreamCreateWithFlags(&stream->stream, cudaStreamNonBlocking) != cudaSuccess)
	{
		look_if_broken(stream->device);
		free(stream);
		return NULL;
	}
	for (int i = 0; i < GS_STREAM_EVENTS; i++)
	{
		if (cudaEventCreateWithFlags(&stream->events[i], cudaEventDisableTiming) != cudaSuccess)
		{
			stream->events[i] = NULL;
			look_if_broken(stream->device);
			destroy_stream(stream);
			return NULL;
		}
	}
	return stream;
}

/* The oldest events that the stream has passed leave the ring. */
static bool
look_what_passed(GsStream *stream)
{
	while (stream->npending > 0)
	{
		const cudaError_t error = cudaEventQuery(stream->events[stream->oldest]);

		if (error == cudaErrorNotReady)
			return true;
		if (!is_done(stream->device, "cudaEventQuery", error))
			return false;
		stream->passed = stream->tickets[stream->oldest];
		stream->oldest = (stream->oldest + 1) % GS_STREAM_EVENTS;
		stream->npending--;
	}
	return true;
}

static bool
cuda_mark(GsStream *stream, uint64_t *fence)
{
	uint32_t newest;

	if (!enter(stream->device) || !look_what_passed(stream))
		return false;
	if (stream->npending < GS_STREAM_EVENTS)
		stream->npending++;
	newest = (stream->oldest + stream->npending - 1) % GS_STREAM_EVENTS;
	stream->tickets[newest] = ++stream->last_fence;
	*fence = stream->last_fence;
	return is_done(stream->device, "cudaEventRecord",
				   cudaEventRecord(stream->events[newest], stream->stream));
}

static bool
cuda_reached(GsStream *stream, uint64_t *fence)
{
	const bool ok = enter(stream->device) && look_what_passed(stream);

	*fence = stream->passed;
	return ok;
}

static bool
cuda_copy_in(GsStream *stream, void *d_to, const void *from, size_t nbytes)
{
	return enter(stream->device) &&
		is_done(stream->device, "copy to the device",
				cudaMemcpyAsync(d_to, from, nbytes, cudaMemcpyHostToDevice, stream->stream));
}

static bool
cuda_copy_out(GsStream *stream, void *to, const void *d_from, size_t nbytes)
{
	return enter(stream->device) &&
		is_done(stream->device, "copy from the device",
				cudaMemcpyAsync(to, d_from, nbytes, cudaMemcpyDeviceToHost, stream->stream));
}

/* ------------------------------------------------------------------- steps */

static GsRadixSort
radix_sort_of_words(uint64_t n)
{
	GsRadixSort sort = {};

	sort.nitems = n;
	sort.key_bytes = sizeof(uint64_t);
	sort.end_bit = 64;
	return sort;
}

static GsMergeSort
merge_sort_of_words(uint64_t n)
{
	GsMergeSort sort = {};

	sort.nitems = n;
	return sort;
}

static size_t
step_temp_bytes(GsDeviceStep step, GsAlgorithm algorithm, uint64_t n)
{
	const GsRadixSort radix = radix_sort_of_words(n);
	const GsMergeSort merge = merge_sort_of_words(n);

	switch (step)
	{
		case GS_STEP_SORT_WORDS:
			return algorithm == GS_ALGORITHM_MERGE ? gs_device_merge_temp_bytes(&merge) :
													 gs_device_radix_temp_bytes(&radix);
		case GS_STEP_LIST_TIES:
			return gs_ties_temp_bytes(n);
		case GS_STEP_SORT_TIES:
			return gs_sort_ties_temp_bytes(algorithm, n);
		case GS_STEP_SORT_TAILS:
			return gs_sort_tails_temp_bytes(n);
		case GS_STEP_ROW_END_OFFSETS:
			return gs_row_ends_temp_bytes(n);
	}
	return 0;
}

static size_t
cuda_temp_bytes(GsDevice *device, GsDeviceStep step, GsAlgorithm algorithm, uint64_t n)
{
	size_t nbytes;

	if (!enter(cuda_device(device)))
		return 0;
	nbytes = step_temp_bytes(step, algorithm, n);
	if (step == GS_STEP_SORT_WORDS && nbytes < gs_pack_temp_bytes())
		return gs_pack_temp_bytes();
	return nbytes;
}

/* Is the storage as large as cuda_temp_bytes() said? */
static bool
has_temp(GsStream *stream, GsDeviceStep step, GsAlgorithm algorithm, uint64_t n, size_t temp_bytes)
{
	return temp_bytes >= cuda_temp_bytes(&stream->device->device, step, algorithm, n) ||
		is_queued(stream, "temporary storage", GS_DEVICE_TEMP_TOO_SMALL);
}

static bool
cuda_pack(GsStream *stream, const GsDeviceRows *rows, int chunk, int row_bits, uint64_t *d_words,
		  GsPackResults *d_results, void *d_temp, size_t temp_bytes)
{
	if (!enter(stream->device))
		return false;
	if (d_temp != NULL && temp_bytes < gs_pack_temp_bytes())
		return is_queued(stream, "pack", GS_DEVICE_TEMP_TOO_SMALL);
	return is_queued(stream, "pack", gs_device_pack(rows, chunk, row_bits, d_words, d_results, d_temp, stream->stream));
}

/*
 * The row numbers in the words ascend before the sort.  So if bits up to the
 * highest that is set count, whole words are in the order that a stable sort
 * gives.
 */
static bool
merge_sort_words(GsStream *stream, uint64_t n, uint64_t *const d_words[2], uint32_t *d_selector,
				 void *d_temp, size_t temp_bytes)
{
	GsMergeSort sort = merge_sort_of_words(n);

	sort.d_keys[0] = d_words[0];
	sort.d_keys[1] = d_words[1];
	return is_queued(stream, "merge sort",
					 gs_device_merge_sort(&sort, d_temp, temp_bytes, stream->stream)) &&
		is_done(stream->device, "merge sort",
				cudaMemsetAsync(d_selector, 0, sizeof(*d_selector), stream->stream));
}

static bool
cuda_sort_words(GsStream *stream, GsAlgorithm algorithm, uint64_t n, int low_bit, int nbits,
				uint64_t *const d_words[2], uint32_t *d_selector, bool counted, void *d_temp,
				size_t temp_bytes)
{
	GsRadixSort sort = radix_sort_of_words(n);

	if (!enter(stream->device))
		return false;
	if (algorithm == GS_ALGORITHM_MERGE)
		return merge_sort_words(stream, n, d_words, d_selector, d_temp, temp_bytes);
	sort.begin_bit = low_bit;
	sort.end_bit = low_bit + nbits;
	sort.flags = counted ? GS_RADIX_COUNTED : 0;
	sort.d_keys[0] = d_words[0];
	sort.d_keys[1] = d_words[1];
	sort.d_selector = d_selector;
	return is_queued(stream, "radix sort",
					 gs_device_radix_sort(&sort, d_temp, temp_bytes, stream->stream));
}

static bool
cuda_same_words(GsStream *stream, uint64_t n, const uint64_t *d_words, int low_bit, uint8_t *d_same)
{
	return enter(stream->device) &&
		is_queued(stream, "same_words", gs_device_same_words(n, d_words, low_bit, d_same, stream->stream));
}

static bool
cuda_same_keys(GsStream *stream, uint64_t n, const uint64_t *d_keys, uint8_t *d_same)
{
	return cuda_same_words(stream, n, d_keys, 0, d_same);
}

static bool
cuda_same_tails(GsStream *stream, const GsDeviceRows *rows, const GsTies *ties, int component,
				uint8_t *d_same)
{
	return enter(stream->device) &&
		is_queued(stream, "same_tails",
				  gs_device_same_tails(rows, ties, component, d_same, stream->stream));
}

static bool
cuda_count_ties(GsStream *stream, uint64_t n, const uint8_t *d_same, GsTieCount *d_count, void *d_temp,
				size_t temp_bytes)
{
	return enter(stream->device) &&
		has_temp(stream, GS_STEP_LIST_TIES, GS_ALGORITHM_AUTO, n, temp_bytes) &&
		is_queued(stream, "count_ties", gs_device_count_ties(n, d_same, d_count, d_temp, stream->stream));
}

static bool
cuda_list_ties(GsStream *stream, uint64_t n, const uint8_t *d_same, const uint64_t *d_words, int row_bits,
			   const GsTies *from, GsTies *out, void *d_temp, size_t temp_bytes)
{
	return enter(stream->device) &&
		has_temp(stream, GS_STEP_LIST_TIES, GS_ALGORITHM_AUTO, n, temp_bytes) &&
		is_queued(stream, "list_ties", gs_device_list_ties(n, d_same, d_words, row_bits, from, out, d_temp, stream->stream));
}

static bool
cuda_tie_keys(GsStream *stream, const GsDeviceRows *rows, const GsTies *ties, int chunk, uint64_t *d_keys)
{
	return enter(stream->device) &&
		is_queued(stream, "tie_keys", gs_device_tie_keys(rows, ties, chunk, d_keys, stream->stream));
}

static bool
cuda_sort_ties(GsStream *stream, GsAlgorithm algorithm, const GsTies *ties, int nbits,
			   uint64_t *const d_keys[2], void *d_temp, size_t temp_bytes)
{
	return enter(stream->device) &&
		has_temp(stream, GS_STEP_SORT_TIES, algorithm, ties->nties, temp_bytes) &&
		is_queued(stream, "sort_ties",
				  gs_device_sort_ties(algorithm, ties, nbits, d_keys, d_temp, stream->stream));
}

static bool
cuda_sort_tails(GsStream *stream, const GsDeviceRows *rows, const GsTies *ties, int component,
				void *d_temp, size_t temp_bytes)
{
	return enter(stream->device) &&
		has_temp(stream, GS_STEP_SORT_TAILS, GS_ALGORITHM_MERGE, ties->nties, temp_bytes) &&
		is_queued(stream, "sort_tails",
				  gs_device_sort_tails(rows, ties, component, d_temp, stream->stream));
}

static bool
cuda_place_ties(GsStream *stream, const GsTies *ties, uint64_t *d_words)
{
	return enter(stream->device) &&
		is_queued(stream, "place_ties", gs_device_place_ties(ties, d_words, stream->stream));
}

static bool
cuda_row_ends(GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words, int row_bits,
			  uint64_t *d_end_offsets, void *d_temp, size_t temp_bytes)
{
	return enter(stream->device) &&
		has_temp(stream, GS_STEP_ROW_END_OFFSETS, GS_ALGORITHM_AUTO, rows->nrows, temp_bytes) &&
		is_queued(stream, "row_ends",
				  gs_device_row_ends(rows, d_words, row_bits, d_end_offsets, d_temp, stream->stream));
}

static bool
cuda_cut(GsStream *stream, uint64_t nrows, const uint64_t *d_end_offsets, uint64_t step, uint32_t nboundaries,
		 uint64_t *d_boundaries)
{
	return enter(stream->device) &&
		is_queued(stream, "cut", gs_device_cut(nrows, d_end_offsets, step, nboundaries, d_boundaries, stream->stream));
}

static bool
cuda_gather(GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words, int row_bits,
			const uint64_t *d_end_offsets, uint64_t first, uint32_t nrows, char *d_to, size_t to_bytes)
{
	return enter(stream->device) &&
		is_queued(stream, "gather", gs_device_gather(rows, d_words, row_bits, d_end_offsets, first, nrows, d_to, to_bytes, stream->stream));
}

static bool
cuda_gather_keys(GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words, int row_bits,
				 uint64_t first, uint32_t nrows, uint64_t *d_to)
{
	return enter(stream->device) &&
		is_queued(stream, "gather_keys", gs_device_gather_keys(rows, d_words, row_bits, first, nrows, d_to, stream->stream));
}

/* -------------------------------------------------------------- open, close */

static void
cuda_close(GsDevice *base)
{
	GsCudaDevice *device = cuda_device(base);

	if (enter(device))
		cudaDeviceSynchronize();
	while (device->nkept_streams > 0)
		destroy_stream(device->kept_streams[--device->nkept_streams]);
	while (device->kept_pinned != NULL)
	{
		GsPinned *pinned = device->kept_pinned;

		device->kept_pinned = pinned->next;
		if (enter(device))
			cudaFreeHost(pinned);
	}
	free(device);
}

static const GsDeviceOps cuda_ops = {
	cuda_memory,
	cuda_allocate,
	cuda_release,
	cuda_allocate_host,
	cuda_release_host,
	cuda_pin,
	cuda_unpin,
	cuda_stream_open,
	cuda_stream_close,
	cuda_mark,
	cuda_reached,
	cuda_copy_in,
	cuda_copy_out,
	cuda_temp_bytes,
	cuda_pack,
	cuda_sort_words,
	cuda_same_words,
	cuda_same_keys,
	cuda_same_tails,
	cuda_count_ties,
	cuda_list_ties,
	cuda_tie_keys,
	cuda_sort_ties,
	cuda_sort_tails,
	cuda_place_ties,
	cuda_row_ends,
	cuda_cut,
	cuda_gather,
	cuda_gather_keys,
	cuda_close};

/* What is said where cudaGetDeviceCount() finds nothing. */
static const char *
why_no_device(cudaError_t error)
{
	switch (error)
	{
		case cudaErrorInsufficientDriver:
			/* also said where there is none at all */
			return "no NVIDIA driver, or one that is too old";
		case cudaErrorNoDevice:
			return "no CUDA device";
		default:
			return cudaGetErrorString(error);
	}
}

GsDevice *
gs_device_cuda_open(int number, char *why_not, size_t size)
{
	cudaDeviceProp properties;
	GsCudaDevice *device;
	cudaError_t error;
	int ndevices = 0;

	/* must be said before the runtime starts; whoever set it knows better */
	setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	error = cudaGetDeviceCount(&ndevices);
	if (error == cudaSuccess && ndevices == 0)
		error = cudaErrorNoDevice;
	if (error != cudaSuccess)
	{
		snprintf(why_not, size, "%s", why_no_device(error));
		return NULL;
	}
	if (number < 0 || number >= ndevices)
	{
		snprintf(why_not, size, "no CUDA device %d: there are %d", number, ndevices);
		return NULL;
	}
	device = (GsCudaDevice *) calloc(1, sizeof(GsCudaDevice));
	if (device == NULL)
	{
		snprintf(why_not, size, "out of memory");
		return NULL;
	}
	device->device.ops = &cuda_ops;
	device->device.kind = GS_DEVICE_KIND_CUDA;
	device->number = number;
	/* the first call that needs the device starts it */
	if (!enter(device) ||
		!is_done(device, "cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, number)) ||
		!is_done(device, "start", cudaFree(NULL)))
	{
		snprintf(why_not, size, "%s", device->device.error);
		free(device);
		return NULL;
	}
	snprintf(device->device.name, sizeof(device->device.name), "%.*s", GS_DEVICE_NAME_BYTES - 1,
			 properties.name);
	return &device->device;
}
