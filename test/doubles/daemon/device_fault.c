/*-------------------------------------------------------------------------
 *
 * device_fault.c
 *	  A device that fails on request.
 *
 * Every call is counted and forwarded to the inner device, unless a fault is
 * due.  After a failure only calls that release something are forwarded.
 *
 * A delay does not block, because queued work does not.  Instead, fences that
 * were not yet recorded at the time of the slow call are not reported as passed
 * before the delay is over.  Calls that queue nothing can block, as releasing
 * memory does while a device works.
 *
 * A wrong result is one with a row twice, instead of another one.
 *
 *-------------------------------------------------------------------------
 */
#include "doubles/daemon/device_fault.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/basics.h"

/* The calls that can fail, in the order of GsDeviceOps. */
#define FAULT_OPS(OP) \
	OP(memory, false, false, false) \
	OP(allocate, true, false, false) \
	OP(release, false, false, false) \
	OP(allocate_at, true, false, false) \
	OP(allocate_host, true, false, false) \
	OP(pin, true, false, false) \
	OP(unpin, false, false, false) \
	OP(stream_open, false, false, false) \
	OP(record_fence, false, true, false) \
	OP(passed_fence, false, true, false) \
	OP(copy_in, false, true, false) \
	OP(copy_out, false, true, false) \
	OP(pack, false, true, false) \
	OP(sort_words, false, true, true) \
	OP(same_words, false, true, false) \
	OP(same_keys, false, true, false) \
	OP(same_tails, false, true, false) \
	OP(count_ties, false, true, false) \
	OP(list_ties, false, true, false) \
	OP(tie_keys, false, true, false) \
	OP(sort_ties, false, true, true) \
	OP(sort_tails, false, true, false) \
	OP(place_ties, false, true, true) \
	OP(check_order, false, true, false) \
	OP(row_end_offsets, false, true, false) \
	OP(find_boundaries, false, true, false) \
	OP(gather, false, true, true) \
	OP(gather_keys, false, true, false)

typedef enum FaultOp
{
#define OP(name, may_have_none, queues, may_be_wrong) FAULT_OP_##name,
	FAULT_OPS(OP)
#undef OP
	NFAULT_OPS
} FaultOp;

static const struct
{
	const char *name;
	bool		may_have_none;	/* can be out of memory instead of failing */
	bool		queues;			/* queues work on a stream */
	bool		may_be_wrong;	/* can have a wrong result */
}			fault_ops[NFAULT_OPS] = {
#define OP(name, may_have_none, queues, may_be_wrong) {#name, may_have_none, queues, may_be_wrong},
	FAULT_OPS(OP)
#undef OP
};

typedef enum FaultKind
{
	FAULT_FAIL,
	FAULT_NONE,
	FAULT_KILL,
	FAULT_HANG,
	FAULT_DELAY,
	FAULT_BLOCK,
	FAULT_WRONG
} FaultKind;

typedef struct Fault
{
	FaultOp		op;
	FaultKind	kind;
	uint64_t	call;
	uint64_t	delay_us;
	bool		is_of_one;		/* device; otherwise of each */
	uint32_t	number;			/* of that one */
} Fault;

#define MAX_FAULTS	16

typedef struct FaultDevice
{
	GsDevice	base;
	GsDevice   *inner;
	bool		failed;
	uint64_t	ncalls[NFAULT_OPS];
	int			nfaults;
	Fault		faults[MAX_FAULTS];
} FaultDevice;

struct GsStream
{
	FaultDevice *device;
	GsStream   *inner;
	uint64_t	last_fence;		/* recorded */
	uint64_t	held_fence;		/* later ones have not passed .. */
	uint64_t	held_until_us;	/* .. before this time */
};

static void
delay_fences(GsStream *stream, uint64_t delay_us)
{
	uint64_t	now = gs_clock_us();

	if (stream->held_until_us <= now)
	{
		stream->held_until_us = now;
		stream->held_fence = stream->last_fence;
	}
	stream->held_until_us += delay_us;
}

/* Counts a call and applies its faults; true: it is to be forwarded. */
static bool
count_call(FaultDevice *device, GsStream *stream, FaultOp op)
{
	uint64_t	call = ++device->ncalls[op];

	for (int i = 0; i < device->nfaults && !device->failed; i++)
	{
		const Fault *fault = &device->faults[i];

		if (fault->op != op)
			continue;
		if (fault->kind == FAULT_NONE && call >= fault->call)
			return false;
		if (call != fault->call)
			continue;
		if (fault->kind == FAULT_KILL)
			raise(SIGKILL);
		else if (fault->kind == FAULT_HANG)
		{
			for (;;)
				pause();
		}
		else if (fault->kind == FAULT_DELAY)
			delay_fences(stream, fault->delay_us);
		else if (fault->kind == FAULT_BLOCK)
			usleep((useconds_t) fault->delay_us);
		else if (fault->kind == FAULT_FAIL)
		{
			device->failed = true;
			snprintf(device->base.error, sizeof(device->base.error),
					 "%s, call %llu: injected failure", fault_ops[op].name,
					 (unsigned long long) call);
		}
	}
	return !device->failed;
}

/* Takes over a failure of the inner device. */
static bool
check_inner(FaultDevice *device, bool fine)
{
	if (!fine)
	{
		device->failed = true;
		memcpy(device->base.error, device->inner->error, sizeof(device->base.error));
	}
	return fine;
}

#define FORWARD(name, ...) \
	(count_call(stream->device, stream, FAULT_OP_##name) && \
	 check_inner(stream->device, \
		  stream->device->inner->ops->name(stream->inner, __VA_ARGS__)))

/* ----------------------------------------------------- memory and streams */

static bool
fault_memory(GsDevice *base, uint64_t *free_bytes, uint64_t *total_bytes)
{
	FaultDevice *device = (FaultDevice *) base;

	return count_call(device, NULL, FAULT_OP_memory) &&
		check_inner(device, device->inner->ops->memory(device->inner, free_bytes, total_bytes));
}

static void *
fault_allocate(GsDevice *base, size_t nbytes)
{
	FaultDevice *device = (FaultDevice *) base;

	if (!count_call(device, NULL, FAULT_OP_allocate))
		return NULL;
	return device->inner->ops->allocate(device->inner, nbytes);
}

static void
fault_release(GsDevice *base, void *d_memory)
{
	FaultDevice *device = (FaultDevice *) base;

	count_call(device, NULL, FAULT_OP_release);
	device->inner->ops->release(device->inner, d_memory);
}

static int
fault_open_peer(GsDevice *base, GsDeviceIdentity identity)
{
	FaultDevice *device = (FaultDevice *) base;

	return device->inner->ops->open_peer(device->inner, identity);
}

static void *
fault_allocate_at(GsDevice *base, int peer, size_t nbytes)
{
	FaultDevice *device = (FaultDevice *) base;

	if (!count_call(device, NULL, FAULT_OP_allocate_at))
		return NULL;
	return device->inner->ops->allocate_at(device->inner, peer, nbytes);
}

static void *
fault_allocate_host(GsDevice *base, size_t nbytes)
{
	FaultDevice *device = (FaultDevice *) base;

	if (!count_call(device, NULL, FAULT_OP_allocate_host))
		return NULL;
	return device->inner->ops->allocate_host(device->inner, nbytes);
}

static void
fault_release_host(GsDevice *base, void *memory)
{
	FaultDevice *device = (FaultDevice *) base;

	device->inner->ops->release_host(device->inner, memory);
}

static bool
fault_pin(GsDevice *base, void *memory, size_t nbytes)
{
	FaultDevice *device = (FaultDevice *) base;

	return count_call(device, NULL, FAULT_OP_pin) &&
		device->inner->ops->pin(device->inner, memory, nbytes);
}

static void
fault_unpin(GsDevice *base, void *memory)
{
	FaultDevice *device = (FaultDevice *) base;

	count_call(device, NULL, FAULT_OP_unpin);
	device->inner->ops->unpin(device->inner, memory);
}

static GsStream *
fault_stream_open(GsDevice *base)
{
	FaultDevice *device = (FaultDevice *) base;
	GsStream   *stream;

	if (!count_call(device, NULL, FAULT_OP_stream_open))
		return NULL;
	stream = calloc(1, sizeof(GsStream));
	if (stream == NULL)
		return NULL;
	stream->device = device;
	stream->inner = device->inner->ops->stream_open(device->inner);
	if (!check_inner(device, stream->inner != NULL))
	{
		free(stream);
		return NULL;
	}
	return stream;
}

static void
fault_stream_close(GsStream *stream)
{
	stream->device->inner->ops->stream_close(stream->inner);
	free(stream);
}

static bool
fault_record_fence(GsStream *stream, uint64_t *fence)
{
	if (!FORWARD(record_fence, fence))
		return false;
	stream->last_fence = *fence;
	return true;
}

static bool
fault_passed_fence(GsStream *stream, uint64_t *fence)
{
	if (!FORWARD(passed_fence, fence))
		return false;
	if (*fence > stream->held_fence && gs_clock_us() < stream->held_until_us)
		*fence = stream->held_fence;
	return true;
}

static size_t
fault_temp_bytes(GsDevice *base, GsDeviceStep step, GsAlgorithm algorithm, uint64_t n)
{
	FaultDevice *device = (FaultDevice *) base;

	return device->inner->ops->temp_bytes(device->inner, step, algorithm, n);
}

static void
fault_close(GsDevice *base)
{
	FaultDevice *device = (FaultDevice *) base;

	device->inner->ops->close(device->inner);
	free(device);
}

/* ------------------------------------------------------ copies and steps */

static bool
fault_copy_in(GsStream *stream, void *d_to, const void *from, size_t nbytes)
{
	return FORWARD(copy_in, d_to, from, nbytes);
}

static bool
fault_copy_out(GsStream *stream, void *to, const void *d_from, size_t nbytes)
{
	return FORWARD(copy_out, to, d_from, nbytes);
}

static bool
fault_pack(GsStream *stream, const GsDeviceRows *rows, int chunk, int row_bits,
		   uint64_t *d_words, GsPackResults *d_results, void *d_temp, size_t temp_bytes)
{
	return FORWARD(pack, rows, chunk, row_bits, d_words, d_results, d_temp, temp_bytes);
}

/* Will the next call of an operation have a wrong result? */
static bool
is_next_wrong(const GsStream *stream, FaultOp op)
{
	const FaultDevice *device = stream->device;

	for (int i = 0; i < device->nfaults; i++)
	{
		const Fault *fault = &device->faults[i];

		if (fault->kind == FAULT_WRONG && fault->op == op && fault->call == device->ncalls[op] + 1)
			return true;
	}
	return false;
}

/* Queues the overwriting of a word with zeros. */
static bool
clear_word(GsStream *stream, uint64_t *d_word)
{
	static const uint64_t zeros = 0;
	FaultDevice *device = stream->device;

	return check_inner(device,
					   device->inner->ops->copy_in(stream->inner, d_word, &zeros, sizeof(zeros)));
}

static bool
fault_sort_words(GsStream *stream, GsAlgorithm algorithm, uint64_t n, int low_bit, int nbits,
				 uint64_t *const d_words[2], uint32_t *d_selector, bool counted,
				 void *d_temp, size_t temp_bytes)
{
	bool		is_wrong = is_next_wrong(stream, FAULT_OP_sort_words);

	/* either array may have the result */
	return FORWARD(sort_words, algorithm, n, low_bit, nbits, d_words, d_selector, counted,
				   d_temp, temp_bytes) &&
		(!is_wrong || (clear_word(stream, &d_words[0][n / 2]) &&
					   clear_word(stream, &d_words[1][n / 2])));
}

static bool
fault_same_words(GsStream *stream, uint64_t n, const uint64_t *d_words, int low_bit,
				 uint8_t *d_same)
{
	return FORWARD(same_words, n, d_words, low_bit, d_same);
}

static bool
fault_same_keys(GsStream *stream, uint64_t n, const uint64_t *d_keys, uint8_t *d_same)
{
	return FORWARD(same_keys, n, d_keys, d_same);
}

static bool
fault_same_tails(GsStream *stream, const GsDeviceRows *rows, const GsTies *ties,
				 int component, uint8_t *d_same)
{
	return FORWARD(same_tails, rows, ties, component, d_same);
}

static bool
fault_count_ties(GsStream *stream, uint64_t n, const uint8_t *d_same, GsTieCount *d_count,
				 void *d_temp, size_t temp_bytes)
{
	return FORWARD(count_ties, n, d_same, d_count, d_temp, temp_bytes);
}

static bool
fault_list_ties(GsStream *stream, uint64_t n, const uint8_t *d_same, const uint64_t *d_words,
				int row_bits, const GsTies *from, GsTies *out, void *d_temp, size_t temp_bytes)
{
	return FORWARD(list_ties, n, d_same, d_words, row_bits, from, out, d_temp, temp_bytes);
}

static bool
fault_tie_keys(GsStream *stream, const GsDeviceRows *rows, const GsTies *ties, int chunk,
			   uint64_t *d_keys)
{
	return FORWARD(tie_keys, rows, ties, chunk, d_keys);
}

static bool
fault_sort_ties(GsStream *stream, GsAlgorithm algorithm, const GsTies *ties, int nbits,
				uint64_t *const d_keys[2], void *d_temp, size_t temp_bytes)
{
	bool		is_wrong = is_next_wrong(stream, FAULT_OP_sort_ties);

	return FORWARD(sort_ties, algorithm, ties, nbits, d_keys, d_temp, temp_bytes) &&
		(!is_wrong || clear_word(stream, &d_keys[0][ties->nties / 2]));
}

static bool
fault_sort_tails(GsStream *stream, const GsDeviceRows *rows, const GsTies *ties,
				 int component, void *d_temp, size_t temp_bytes)
{
	return FORWARD(sort_tails, rows, ties, component, d_temp, temp_bytes);
}

static bool
fault_place_ties(GsStream *stream, const GsTies *ties, uint64_t *d_words)
{
	bool		is_wrong = is_next_wrong(stream, FAULT_OP_place_ties);

	return FORWARD(place_ties, ties, d_words) && (!is_wrong || clear_word(stream, d_words));
}

static bool
fault_check_order(GsStream *stream, uint64_t n, const uint64_t *d_words, int row_bits,
				  const uint32_t *d_rows, GsOrderCheck *d_check)
{
	return FORWARD(check_order, n, d_words, row_bits, d_rows, d_check);
}

static bool
fault_row_end_offsets(GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words,
					  int row_bits, uint64_t *d_end_offsets, void *d_temp, size_t temp_bytes)
{
	return FORWARD(row_end_offsets, rows, d_words, row_bits, d_end_offsets, d_temp, temp_bytes);
}

static bool
fault_find_boundaries(GsStream *stream, uint64_t nrows, const uint64_t *d_end_offsets,
					  uint64_t step,
					  uint32_t nboundaries, uint64_t *d_boundaries)
{
	return FORWARD(find_boundaries, nrows, d_end_offsets, step, nboundaries, d_boundaries);
}

static bool
fault_gather(GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words, int row_bits,
			 const uint64_t *d_end_offsets, uint64_t first, uint32_t nrows, char *d_to,
			 size_t to_bytes)
{
	if (is_next_wrong(stream, FAULT_OP_gather))
		first = 0;
	return FORWARD(gather, rows, d_words, row_bits, d_end_offsets, first, nrows, d_to, to_bytes);
}

static bool
fault_gather_keys(GsStream *stream, const GsDeviceRows *rows, const uint64_t *d_words,
				  int row_bits, uint64_t first, uint32_t nrows, uint64_t *d_to)
{
	return FORWARD(gather_keys, rows, d_words, row_bits, first, nrows, d_to);
}

static const GsDeviceOps ops = {
	.memory = fault_memory,
	.allocate = fault_allocate,
	.release = fault_release,
	.open_peer = fault_open_peer,
	.allocate_at = fault_allocate_at,
	.allocate_host = fault_allocate_host,
	.release_host = fault_release_host,
	.pin = fault_pin,
	.unpin = fault_unpin,
	.stream_open = fault_stream_open,
	.stream_close = fault_stream_close,
	.record_fence = fault_record_fence,
	.passed_fence = fault_passed_fence,
	.copy_in = fault_copy_in,
	.copy_out = fault_copy_out,
	.temp_bytes = fault_temp_bytes,
	.pack = fault_pack,
	.sort_words = fault_sort_words,
	.same_words = fault_same_words,
	.same_keys = fault_same_keys,
	.same_tails = fault_same_tails,
	.count_ties = fault_count_ties,
	.list_ties = fault_list_ties,
	.tie_keys = fault_tie_keys,
	.sort_ties = fault_sort_ties,
	.sort_tails = fault_sort_tails,
	.place_ties = fault_place_ties,
	.check_order = fault_check_order,
	.row_end_offsets = fault_row_end_offsets,
	.find_boundaries = fault_find_boundaries,
	.gather = fault_gather,
	.gather_keys = fault_gather_keys,
	.close = fault_close
};

/* New members of GsDeviceOps must be forwarded here; 5 members cannot fail. */
_Static_assert(sizeof(GsDeviceOps) == (NFAULT_OPS + 5) * sizeof(void (*) (void)),
			   "all members of GsDeviceOps are forwarded");

/* -------------------------------------------------------------------- spec */

/* Parses one [device:]op:call:kind.  Returns NULL, or an error text. */
static const char *
parse_fault(const char *text, Fault *fault)
{
	char		op[32];
	char		what[32];
	unsigned long long call;
	unsigned	delay_ms;
	unsigned	number = 0;
	int			start = 0;
	int			end = 0;
	int			i = 0;

	if (sscanf(text, "%2u:%n", &number, &start) == 1)
		text += start;
	if (sscanf(text, "%31[a-z_]:%llu:%31[a-z0-9=]%n", op, &call, what, &end) != 3 ||
		text[end] != '\0' || call == 0)
		return "it is not of the form op:call:kind or device:op:call:kind";
	while (i < NFAULT_OPS && strcmp(fault_ops[i].name, op) != 0)
		i++;
	if (i == NFAULT_OPS)
		return "unknown op, or one that cannot fail";

	*fault = (Fault)
	{
		.op = (FaultOp) i,.call = call,.is_of_one = start > 0,.number = number
	};
	end = 0;
	if (strcmp(what, "kill") == 0)
		fault->kind = FAULT_KILL;
	else if (strcmp(what, "hang") == 0)
		fault->kind = FAULT_HANG;
	else if (strcmp(what, "fail") == 0 && !fault_ops[i].may_have_none)
		fault->kind = FAULT_FAIL;
	else if (strcmp(what, "wrong") == 0 && fault_ops[i].may_be_wrong)
		fault->kind = FAULT_WRONG;
	else if (strcmp(what, "none") == 0 && fault_ops[i].may_have_none)
		fault->kind = FAULT_NONE;
	else if (sscanf(what, "delay=%u%n", &delay_ms, &end) == 1 && what[end] == '\0' &&
			 fault_ops[i].queues)
	{
		fault->kind = FAULT_DELAY;
		fault->delay_us = (uint64_t) delay_ms * 1000;
	}
	else if (sscanf(what, "block=%u%n", &delay_ms, &end) == 1 && what[end] == '\0' &&
			 !fault_ops[i].queues)
	{
		fault->kind = FAULT_BLOCK;
		fault->delay_us = (uint64_t) delay_ms * 1000;
	}
	else
		return "this op does not support this kind";
	return NULL;
}

/* Stores the faults of the device of this number. */
static bool
parse_faults(FaultDevice *device, uint32_t number, const char *spec, char *why_not, size_t size)
{
	char		copy[512];
	char	   *rest = NULL;
	const char *wrong = NULL;

	if (spec[0] == '\0' || strlen(spec) >= sizeof(copy))
	{
		snprintf(why_not, size, "it is empty or too long");
		return false;
	}
	strcpy(copy, spec);
	for (char *one = strtok_r(copy, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest))
	{
		Fault		fault;

		wrong = device->nfaults == MAX_FAULTS ? "too many faults" : parse_fault(one, &fault);
		if (wrong != NULL)
		{
			snprintf(why_not, size, "fault \"%s\": %s", one, wrong);
			return false;
		}
		if (!fault.is_of_one || fault.number == number)
			device->faults[device->nfaults++] = fault;
	}
	return true;
}

bool
gs_device_fault_check(const char *spec, char *why_not, size_t size)
{
	FaultDevice device = {.failed = false};

	return parse_faults(&device, 0, spec, why_not, size);
}

GsDevice *
gs_device_fault_open(GsDevice *inner, uint32_t number, const char *spec, char *why_not, size_t size)
{
	FaultDevice *device = calloc(1, sizeof(FaultDevice));

	if (device == NULL)
	{
		snprintf(why_not, size, "out of memory");
		return NULL;
	}
	if (!parse_faults(device, number, spec, why_not, size))
	{
		free(device);
		return NULL;
	}
	device->base = *inner;
	device->base.ops = &ops;
	device->inner = inner;
	return &device->base;
}
