/*-------------------------------------------------------------------------
 *
 * device_cuda.cu
 *	  A CUDA device (src/device/device.h).
 *
 * Only stream_close and close wait for the device.  Each other call queues kernels
 * of kernel_*.cu, or operations of the CUDA runtime, on the stream.
 *
 * Fences are CUDA events.  A stream has a few events, which it reuses.  If more are needed, the
 * last event is recorded again and then stands for its fence and all later ones.  So a fence may
 * be reported late, but never early, and the first ones are reported in time.
 *
 * All kernels are loaded when the device is opened; otherwise the runtime would
 * load each at its first use, within the first sort.
 *
 * Streams and pinned memory are cached: creating them takes half a millisecond for
 * each job, and releasing pinned memory waits for all streams.
 *
 * A CUDA error is final: its text is stored, and all later calls fail.  Being out
 * of memory is not such an error, nor is a peer that cannot be used.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_steps.cuh"

#define GS_STREAM_EVENTS 32

/* Maximum number of cached streams, and of cached allocations of pinned memory, and their size. */
#define GS_MAX_CACHED       64
#define GS_MAX_CACHED_BYTES ((size_t) 256 << 10)

/* Precedes each allocation of pinned memory. */
typedef struct GsPinned
{
	size_t nbytes;         /* of the memory after it */
	struct GsPinned *next; /* in the cache */
} GsPinned;

/* Keeps the alignment of cudaHostAlloc(). */
#define GS_PINNED_HEADER 256

typedef struct GsCudaDevice
{
	GsDevice device; /* must be first */
	int number;
	GsPinned *cached_pinned;
	int ncached_pinned;
	GsStream *cached_streams[GS_MAX_CACHED];
	int ncached_streams;
} GsCudaDevice;

/* Events of fences that are not known to have passed are in a circular queue. */
struct GsStream
{
	GsCudaDevice *device;
	cudaStream_t stream;
	cudaEvent_t events[GS_STREAM_EVENTS];
	uint64_t fences[GS_STREAM_EVENTS];
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
has_failed(const GsDevice *device)
{
	return device->error[0] != '\0';
}

/* Stores the text of the first error; false if there was one at any time. */
static bool
check(GsCudaDevice *device, const char *what, cudaError_t error)
{
	if (error != cudaSuccess && !has_failed(&device->device))
		snprintf(device->device.error, sizeof(device->device.error), "%s: %s", what,
				 cudaGetErrorString(error));
	return !has_failed(&device->device);
}

/* Stores the text of the first error if a step failed; false if there was one at any time. */
static bool
check_step(GsStream *stream, const char *what, GsDeviceStatus status)
{
	GsDevice *device = &stream->device->device;
	const char *text = "invalid argument";

	if (status == GS_DEVICE_CUDA_ERROR)
		text = gs_device_last_error();
	else if (status == GS_DEVICE_TEMP_TOO_SMALL)
		text = "temporary storage is too small";
	if (status != GS_DEVICE_OK && !has_failed(device))
		snprintf(device->error, sizeof(device->error), "%s: %s", what, text);
	return !has_failed(device);
}

/* Makes this the current device of the thread; false if it failed. */
static bool
enter(GsCudaDevice *device)
{
	return !has_failed(&device->device) &&
		check(device, "cudaSetDevice", cudaSetDevice(device->number));
}

/*
 * After a call that may fail for lack of memory: checks if it failed because the
 * device did, by another call.
 */
static void
check_for_failure(GsCudaDevice *device)
{
	size_t free_bytes;
	size_t total_bytes;

	cudaGetLastError(); /* clears the error */
	check(device, "cudaMemGetInfo", cudaMemGetInfo(&free_bytes, &total_bytes));
}

/* ------------------------------------------------------------------ memory */

static bool
cuda_memory(GsDevice *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
	size_t free_now = 0;
	size_t total = 0;
	bool ok = enter(cuda_device(device)) &&
		check(cuda_device(device), "cudaMemGetInfo", cudaMemGetInfo(&free_now, &total));

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
	cudaGetLastError(); /* clears the error */
	if (error != cudaErrorMemoryAllocation)
		check(cuda_device(device), "cudaMalloc", error);
	return NULL;
}

static void
cuda_release(GsDevice *device, void *d_memory)
{
	if (enter(cuda_device(device)))
		check(cuda_device(device), "cudaFree", cudaFree(d_memory));
}

#define GS_PEER_CHECK_WORDS 4096

/*
 * Copies a pattern to the peer, from there to this device by a direct copy, and back.
 * Behind some IOMMUs direct copies succeed but arrive elsewhere.  The peer is the
 * current device, and later this one.
 */
static bool
copies_arrive(int number, uint64_t *d_peer, uint64_t *d_own)
{
	static const size_t nbytes = GS_PEER_CHECK_WORDS * sizeof(uint64_t);
	uint64_t pattern[GS_PEER_CHECK_WORDS];
	uint64_t arrived[GS_PEER_CHECK_WORDS] = {};

	for (uint64_t i = 0; i < GS_PEER_CHECK_WORDS; i++)
		pattern[i] = gs_row_hash(i);
	return cudaMemcpy(d_peer, pattern, nbytes, cudaMemcpyHostToDevice) == cudaSuccess &&
		cudaDeviceSynchronize() == cudaSuccess && cudaSetDevice(number) == cudaSuccess &&
		cudaMemcpy(d_own, d_peer, nbytes, cudaMemcpyDeviceToDevice) == cudaSuccess &&
		cudaMemcpy(arrived, d_own, nbytes, cudaMemcpyDeviceToHost) == cudaSuccess &&
		memcmp(pattern, arrived, nbytes) == 0;
}

static GsDeviceIdentity
identity_of(const cudaDeviceProp *properties)
{
	GsDeviceIdentity identity;

	static_assert(sizeof(properties->uuid) == sizeof(identity), "a UUID has 16 bytes");
	memcpy(&identity, &properties->uuid, sizeof(identity));
	return identity;
}

/* The number of a device in this process; -1: it has none. */
static int
find_device(GsDeviceIdentity identity)
{
	cudaDeviceProp properties;
	int ndevices = 0;

	if (cudaGetDeviceCount(&ndevices) != cudaSuccess)
		return -1;
	for (int number = 0; number < ndevices; number++)
		if (cudaGetDeviceProperties(&properties, number) == cudaSuccess &&
			gs_is_same_device(identity_of(&properties), identity))
			return number;
	return -1;
}

/* Creates a context of this process on the peer, too, which takes some memory there. */
static int
cuda_open_peer(GsDevice *base, GsDeviceIdentity identity)
{
	static const size_t nbytes = GS_PEER_CHECK_WORDS * sizeof(uint64_t);
	GsCudaDevice *device = cuda_device(base);
	uint64_t *d_own = NULL;
	uint64_t *d_peer = NULL;
	int peer;
	int can_access = 0;
	bool arrives = false;
	cudaError_t error;

	if (!enter(device))
		return -1;
	peer = find_device(identity);
	if (peer >= 0 && cudaDeviceCanAccessPeer(&can_access, device->number, peer) == cudaSuccess &&
		can_access)
	{
		error = cudaDeviceEnablePeerAccess(peer, 0);
		if ((error == cudaSuccess || error == cudaErrorPeerAccessAlreadyEnabled) &&
			cudaMalloc(&d_own, nbytes) == cudaSuccess && cudaSetDevice(peer) == cudaSuccess &&
			cudaMalloc(&d_peer, nbytes) == cudaSuccess)
			arrives = copies_arrive(device->number, d_peer, d_own);
		cudaFree(d_peer);
		cudaFree(d_own);
	}
	cudaGetLastError(); /* clears the error */
	if (enter(device))
		check_for_failure(device);
	return arrives && !has_failed(base) ? peer : -1;
}

/* Behind it, this device is the current one again. */
static void *
cuda_allocate_at(GsDevice *base, int peer, size_t nbytes)
{
	GsCudaDevice *device = cuda_device(base);
	void *d_memory = NULL;
	bool allocated;

	if (!enter(device))
		return NULL;
	allocated = cudaSetDevice(peer) == cudaSuccess && cudaMalloc(&d_memory, nbytes) == cudaSuccess;
	cudaGetLastError(); /* clears the error */
	if (!enter(device))
		return NULL;
	if (allocated)
		return d_memory;
	check_for_failure(device);
	return NULL;
}

/* A cached allocation that is large enough and not much larger; NULL: there is none. */
static GsPinned *
take_cached_pinned(GsCudaDevice *device, size_t nbytes)
{
	for (GsPinned **link = &device->cached_pinned; *link != NULL; link = &(*link)->next)
	{
		GsPinned *pinned = *link;

		if (pinned->nbytes >= nbytes && pinned->nbytes / 4 <= nbytes)
		{
			*link = pinned->next;
			device->ncached_pinned--;
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
	pinned = take_cached_pinned(cuda_device(device), nbytes);
	if (pinned == NULL)
	{
		void *memory;

		if (cudaHostAlloc(&memory, GS_PINNED_HEADER + nbytes, cudaHostAllocPortable) != cudaSuccess)
		{
			check_for_failure(cuda_device(device));
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

	if (pinned->nbytes <= GS_MAX_CACHED_BYTES && device->ncached_pinned < GS_MAX_CACHED)
	{
		pinned->next = device->cached_pinned;
		device->cached_pinned = pinned;
		device->ncached_pinned++;
	}
	else if (enter(device))
		check(device, "cudaFreeHost", cudaFreeHost(pinned));
}

static bool
cuda_pin(GsDevice *device, void *memory, size_t nbytes)
{
	if (!enter(cuda_device(device)))
		return false;
	if (cudaHostRegister(memory, nbytes, cudaHostRegisterPortable) == cudaSuccess)
		return true;
	check_for_failure(cuda_device(device));
	return false;
}

static void
cuda_unpin(GsDevice *device, void *memory)
{
	if (enter(cuda_device(device)))
		check(cuda_device(device), "cudaHostUnregister", cudaHostUnregister(memory));
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
		check(device, "cudaStreamSynchronize", cudaStreamSynchronize(stream->stream)) &&
		device->ncached_streams < GS_MAX_CACHED)
		device->cached_streams[device->ncached_streams++] = stream;
	else
		destroy_stream(stream);
}

static GsStream *
cuda_stream_open(GsDevice *device)
{
	GsStream *stream;

	if (!enter(cuda_device(device)))
		return NULL;
	if (cuda_device(device)->ncached_streams > 0)
	{
		stream = cuda_device(device)->cached_streams[--cuda_device(device)->ncached_streams];
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
		check_for_failure(stream->device);
		free(stream);
		return NULL;
	}
	for (int i = 0; i < GS_STREAM_EVENTS; i++)
	{
		if (cudaEventCreateWithFlags(&stream->events[i], cudaEventDisableTiming) != cudaSuccess)
		{
			stream->events[i] = NULL;
			check_for_failure(stream->device);
			destroy_stream(stream);
			return NULL;
		}
	}
	return stream;
}

/* Removes the events that the stream has passed from the queue. */
static bool
update_passed(GsStream *stream)
{
	while (stream->npending > 0)
	{
		const cudaError_t error = cudaEventQuery(stream->events[stream->oldest]);

		if (error == cudaErrorNotReady)
			return true;
		if (!check(stream->device, "cudaEventQuery", error))
			return false;
		stream->passed = stream->fences[stream->oldest];
		stream->oldest = (stream->oldest + 1) % GS_STREAM_EVENTS;
		stream->npending--;
	}
	return true;
}

static bool
cuda_record_fence(GsStream *stream, uint64_t *fence)
{
	uint32_t newest;

	if (!enter(stream->device) || !update_passed(stream))
		return false;
	if (stream->npending < GS_STREAM_EVENTS)
		stream->npending++;
	newest = (stream->oldest + stream->npending - 1) % GS_STREAM_EVENTS;
	stream->fences[newest] = ++stream->last_fence;
	*fence = stream->last_fence;
	return check(stream->device, "cudaEventRecord",
				 cudaEventRecord(stream->events[newest], stream->stream));
}

static bool
cuda_passed_fence(GsStream *stream, uint64_t *fence)
{
	const bool ok = enter(stream->device) && update_passed(stream);

	*fence = stream->passed;
	return ok;
}

static bool
cuda_copy_in(GsStream *stream, void *d_to, const void *from, size_t nbytes)
{
	return enter(stream->device) &&
		check(stream->device, "copy to the device",
			  cudaMemcpyAsync(d_to, from, nbytes, cudaMemcpyHostToDevice, stream->stream));
}

static bool
cuda_copy_out(GsStream *stream, void *to, const void *d_from, size_t nbytes)
{
	return enter(stream->device) &&
		check(stream->device, "copy from the device",
			  cudaMemcpyAsync(to, d_from, nbytes, cudaMemcpyDeviceToHost, stream->stream));
}

/* ------------------------------------------------------------------- steps */

static size_t
cuda_temp_bytes(GsDevice *device, GsDeviceStep step, GsAlgorithm algorithm, uint64_t n)
{
	if (!enter(cuda_device(device)))
		return 0;
	switch (step)
	{
		case GS_STEP_SORT_WORDS:
			if (algorithm == GS_ALGORITHM_MERGE)
				return std::max(gs_pack_temp_bytes(), gs_device_merge_temp_bytes(n, 0));
			return std::max(gs_pack_temp_bytes(), gs_device_radix_temp_bytes(n, false));
		case GS_STEP_LIST_TIES:
			return gs_ties_temp_bytes(n);
		case GS_STEP_SORT_TIES:
			return gs_sort_ties_temp_bytes(algorithm, n);
		case GS_STEP_SORT_TAILS:
			return gs_sort_tails_temp_bytes(n);
		case GS_STEP_ROW_END_OFFSETS:
			return gs_row_end_offsets_temp_bytes(n);
	}
	return 0;
}

/* A function of GsDeviceOps that queues a step of device_steps.cuh, which errors call `what`. */
template <auto step, const char *what, typename... Args>
static bool
queue(GsStream *stream, Args... args)
{
	return enter(stream->device) && check_step(stream, what, step(stream->stream, args...));
}

static const char pack[] = "pack";
static const char same_words[] = "same_words";
static const char same_tails[] = "same_tails";
static const char count_ties[] = "count_ties";
static const char list_ties[] = "list_ties";
static const char tie_keys[] = "tie_keys";
static const char sort_ties[] = "sort_ties";
static const char sort_tails[] = "sort_tails";
static const char place_ties[] = "place_ties";
static const char check_order[] = "check_order";
static const char row_end_offsets[] = "row_end_offsets";
static const char find_boundaries[] = "find_boundaries";
static const char gather[] = "gather";
static const char gather_keys[] = "gather_keys";

static bool
cuda_same_keys(GsStream *stream, uint64_t n, const uint64_t *d_keys, uint8_t *d_same)
{
	return queue<gs_device_same_words, same_words>(stream, n, d_keys, 0, d_same);
}

/*
 * The merge sort compares complete words, which gives the order of a stable sort, because the row
 * numbers in the words ascend before the sort.
 */
static bool
cuda_sort_words(GsStream *stream, GsAlgorithm algorithm, uint64_t n, int low_bit, int nbits,
				uint64_t *const d_words[2], uint32_t *d_selector, bool counted, void *d_temp,
				size_t temp_bytes)
{
	GsMergeSort merge = {};
	GsRadixSort radix = {};

	if (!enter(stream->device))
		return false;
	merge.nitems = radix.nitems = n;
	for (int i = 0; i < 2; i++)
		merge.d_keys[i] = radix.d_keys[i] = d_words[i];
	if (algorithm == GS_ALGORITHM_MERGE)
		return check_step(stream, "merge sort",
						  gs_device_merge_sort(&merge, d_temp, temp_bytes, stream->stream)) &&
			check(stream->device, "merge sort",
				  cudaMemsetAsync(d_selector, 0, sizeof(*d_selector), stream->stream));
	radix.begin_bit = low_bit;
	radix.end_bit = low_bit + nbits;
	radix.counted = counted;
	radix.d_selector = d_selector;
	return check_step(stream, "radix sort",
					  gs_device_radix_sort(&radix, d_temp, temp_bytes, stream->stream));
}

/* -------------------------------------------------------------- open, close */

static void
cuda_close(GsDevice *base)
{
	GsCudaDevice *device = cuda_device(base);

	if (enter(device))
		cudaDeviceSynchronize();
	while (device->ncached_streams > 0)
		destroy_stream(device->cached_streams[--device->ncached_streams]);
	while (device->cached_pinned != NULL)
	{
		GsPinned *pinned = device->cached_pinned;

		device->cached_pinned = pinned->next;
		if (enter(device))
			cudaFreeHost(pinned);
	}
	free(device);
}

static const GsDeviceOps cuda_ops = {
	cuda_memory,
	cuda_allocate,
	cuda_release,
	cuda_open_peer,
	cuda_allocate_at,
	cuda_allocate_host,
	cuda_release_host,
	cuda_pin,
	cuda_unpin,
	cuda_stream_open,
	cuda_stream_close,
	cuda_record_fence,
	cuda_passed_fence,
	cuda_copy_in,
	cuda_copy_out,
	cuda_temp_bytes,
	queue<gs_device_pack, pack>,
	cuda_sort_words,
	queue<gs_device_same_words, same_words>,
	cuda_same_keys,
	queue<gs_device_same_tails, same_tails>,
	queue<gs_device_count_ties, count_ties>,
	queue<gs_device_list_ties, list_ties>,
	queue<gs_device_tie_keys, tie_keys>,
	queue<gs_device_sort_ties, sort_ties>,
	queue<gs_device_sort_tails, sort_tails>,
	queue<gs_device_place_ties, place_ties>,
	queue<gs_device_check_order, check_order>,
	queue<gs_device_row_end_offsets, row_end_offsets>,
	queue<gs_device_find_boundaries, find_boundaries>,
	queue<gs_device_gather, gather>,
	queue<gs_device_gather_keys, gather_keys>,
	cuda_close};

/* The reason why cudaGetDeviceCount() failed. */
static const char *
why_no_device(cudaError_t error)
{
	switch (error)
	{
		case cudaErrorInsufficientDriver:
			/* also reported if there is no driver */
			return "no NVIDIA driver, or one that is too old";
		case cudaErrorNoDevice:
			return "no CUDA device";
		default:
			return cudaGetErrorString(error);
	}
}

uint32_t
gs_device_cuda_count(char *why_not, size_t size)
{
	cudaError_t error;
	int ndevices = 0;

	/* before the runtime starts; keeps a value that the user has set */
	setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	error = cudaGetDeviceCount(&ndevices);
	if (error == cudaSuccess && ndevices == 0)
		error = cudaErrorNoDevice;
	if (error == cudaSuccess)
		return (uint32_t) ndevices;
	snprintf(why_not, size, "%s", why_no_device(error));
	return 0;
}

GsDevice *
gs_device_cuda_open(int number, char *why_not, size_t size)
{
	cudaDeviceProp properties;
	int driver = 0;
	GsCudaDevice *device;
	int ndevices = (int) gs_device_cuda_count(why_not, size);

	if (ndevices == 0)
		return NULL;
	if (number < 0 || number >= ndevices)
	{
		snprintf(why_not, size, "no CUDA device %d: there are %d", number, ndevices);
		return NULL;
	}
	(void) cudaDriverGetVersion(&driver);
	device = (GsCudaDevice *) calloc(1, sizeof(GsCudaDevice));
	if (device == NULL)
	{
		snprintf(why_not, size, "out of memory");
		return NULL;
	}
	device->device.ops = &cuda_ops;
	snprintf(device->device.driver, sizeof(device->device.driver), "driver for CUDA %d.%d",
			 driver / 1000, driver % 1000 / 10);
	device->device.kind = GS_DEVICE_KIND_CUDA;
	device->number = number;
	/* cudaFree() creates the context */
	if (!enter(device) ||
		!check(device, "cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, number)) ||
		!check(device, "start", cudaFree(NULL)))
	{
		snprintf(why_not, size, "%s", device->device.error);
		free(device);
		return NULL;
	}
	device->device.identity = identity_of(&properties);
	snprintf(device->device.name, sizeof(device->device.name), "%.*s", GS_DEVICE_NAME_BYTES - 1,
			 properties.name);
	return &device->device;
}
