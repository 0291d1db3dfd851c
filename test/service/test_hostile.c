/*-------------------------------------------------------------------------
 *
 * test_hostile.c
 *	  Clients that violate the protocol get an error and are disconnected,
 *	  without effect on others.
 *
 * One gpusortd serves all tests.  A correct job is open all the time, and
 * finishes at the end.
 *
 *-------------------------------------------------------------------------
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "service_driver.h"
#include "unit_cmocka.h"

#define BUFFER_BYTES	((uint32_t) 64 << 10)
#define NBUFFERS		4
#define NROWS		10000

static Service service;
static Client good;
static Table good_table;

static int
begin(void **unused)
{
	GsAnyMessage message;

	service = service_start(NULL);
	good = client_open(&service, BUFFER_BYTES, NBUFFERS);
	good_table = table_make(77, NROWS, false);
	job_open(&good, &good_table, 0, 0);
	client_expect(&good, GS_MESSAGE_JOB_READY, &message);
	job_load(&good, &good_table, NROWS / 2);
	return 0;
}

static int
end(void **unused)
{
	job_load(&good, &good_table, NROWS);
	job_sort(&good, &good_table, GS_ALGORITHM_RADIX);
	job_fetch(&good, &good_table, 1, 0);
	client_close(&good);
	service_check_idle(&service);
	CHECK(service_logged(&service, "protocol violation"));
	service_stop(&service);
	return 0;
}

/* -------------------------------------------------------------------- HELLO */

static void
check_bad_hello(uint32_t buffer_bytes, uint32_t nbuffers, HelloOptions options, GsFailure failure)
{
	Client		client = client_connect(&service);

	client_send_hello(&client, buffer_bytes, nbuffers, &options);
	client_expect_dropped(&client, failure);
	client_close(&client);
}

static void
test_version(void **unused)
{
	Client		client;
	struct
	{
		GsHello		hello;
		char		more[24];
	}			longer = {.hello = {.magic = GS_WIRE_MAGIC,.version = GS_WIRE_VERSION + 1}};
	GsAnyMessage message;
	char		expected[50];

	check_bad_hello(BUFFER_BYTES, NBUFFERS, (HelloOptions) {.magic = 1}, GS_FAILED_VERSION);
	check_bad_hello(BUFFER_BYTES, NBUFFERS, (HelloOptions) {.version = 2}, GS_FAILED_VERSION);

	/* HELLO of another version may have another length; the text has both versions */
	client = client_connect(&service);
	client_send(&client, &longer, GS_MESSAGE_HELLO, sizeof(longer));
	client_expect(&client, GS_MESSAGE_FAILED, &message);
	CHECK(message.failed.failure == GS_FAILED_VERSION);
	snprintf(expected, sizeof(expected), "version %u ", GS_WIRE_VERSION + 1);
	CHECK(strstr(message.failed.text, expected) != NULL);
	snprintf(expected, sizeof(expected), "version %u ", GS_WIRE_VERSION);
	CHECK(strstr(message.failed.text, expected) != NULL);
	client_close(&client);
}

/* Number of lines of the log with a text. */
static int
count_logged(const char *text)
{
	FILE	   *log = fopen(service.log, "r");
	char		line[1000];
	int			nlines = 0;

	CHECK(log != NULL);
	while (fgets(line, sizeof(line), log) != NULL)
		nlines += strstr(line, text) != NULL;
	fclose(log);
	return nlines;
}

/* Clients of other builds get an error, which is logged once for each build. */
static void
test_build(void **unused)
{
	GsAnyMessage message;
	char		expected[50];

	for (int i = 0; i < 6; i++)
	{
		Client		client = client_connect(&service);

		client_send_hello(&client, BUFFER_BYTES, NBUFFERS, &(HelloOptions) {.build = i < 4 ? 1 : 2});
		client_expect(&client, GS_MESSAGE_FAILED, &message);
		CHECK(message.failed.failure == GS_FAILED_VERSION);
		snprintf(expected, sizeof(expected), "gpusortd has build %s", gs_build_id);
		CHECK_MSG(strstr(message.failed.text, expected) != NULL, "it says %s", message.failed.text);
		CHECK(client_receive(&client, &message, PATIENCE_MS) == 0);
		client_close(&client);
	}
	CHECK(count_logged("sort without the device: the client has build") == 2);
}

static void
test_buffer_pools(void **unused)
{
	const HelloOptions fine = {0};

	check_bad_hello(GS_MIN_BUFFER_BYTES - 4096, 4, fine, GS_FAILED_PROTOCOL);
	check_bad_hello(GS_MAX_BUFFER_BYTES + 4096, 1, fine, GS_FAILED_PROTOCOL);
	check_bad_hello(BUFFER_BYTES + 8, 4, fine, GS_FAILED_PROTOCOL);
	check_bad_hello(BUFFER_BYTES, GS_MAX_BUFFERS + 1, fine, GS_FAILED_PROTOCOL);
	check_bad_hello(BUFFER_BYTES, 0, (HelloOptions) {.buffer_pool_bytes = BUFFER_BYTES}, GS_FAILED_PROTOCOL);
	check_bad_hello(BUFFER_BYTES, 4, (HelloOptions) {.buffer_pool_bytes = 4096}, GS_FAILED_PROTOCOL);
	check_bad_hello(BUFFER_BYTES, 4, (HelloOptions) {.buffer_pool_bytes = -4096}, GS_FAILED_PROTOCOL);
	check_bad_hello(BUFFER_BYTES, 4, (HelloOptions) {.memfd_bytes = 4096}, GS_FAILED_PROTOCOL);
	check_bad_hello(BUFFER_BYTES, 4, (HelloOptions) {.memfd_bytes = -4096}, GS_FAILED_PROTOCOL);
	check_bad_hello(BUFFER_BYTES, 4, (HelloOptions) {.unsealed = true}, GS_FAILED_PROTOCOL);
	check_bad_hello(BUFFER_BYTES, 4, (HelloOptions) {.no_memfd = true}, GS_FAILED_PROTOCOL);
	check_bad_hello(BUFFER_BYTES, 4, (HelloOptions) {.two_memfds = true}, GS_FAILED_PROTOCOL);

	/* some, but not all sizes of buffers */
	check_bad_hello(BUFFER_BYTES, 4, (HelloOptions) {.buffer_pool_bytes = -4 * (int64_t) BUFFER_BYTES},
					GS_FAILED_PROTOCOL);
	check_bad_hello(0, 0, fine, GS_FAILED_PROTOCOL);
}

/* A descriptor that is not a memfd. */
static void
test_other_descriptors(void **unused)
{
	GsHello		hello = {
		.message = {.type = GS_MESSAGE_HELLO,.nbytes = sizeof(hello)},
		.magic = GS_WIRE_MAGIC,
		.version = GS_WIRE_VERSION,
		.buffer_pool_bytes = BUFFER_BYTES,
		.buffer_bytes = BUFFER_BYTES,
		.nbuffers = 1
	};
	int			ends[2];
	int			file = open(service.log, O_RDONLY);

	memcpy(hello.build, gs_build_id, sizeof(hello.build));
	CHECK(pipe(ends) == 0 && file >= 0);
	for (int i = 0; i < 2; i++)
	{
		Client		client = client_connect(&service);

		CHECK(client_send_bytes(&client, &hello, sizeof(hello), i == 0 ? &file : &ends[0], 1));
		client_expect_dropped(&client, GS_FAILED_PROTOCOL);
		client_close(&client);
	}
	close(file);
	close(ends[0]);
	close(ends[1]);
}

/* ----------------------------------------------------------------- messages */

/* The phase in which a client misbehaves. */
typedef enum Phase
{
	CONNECTED,
	WATCHING,
	IDLE,
	LOADING,
	FEEDING,
	READING,					/* of a job that is not sorted yet */
	SORTED,
	PHASES
} Phase;

/* The consumer of a job that the next producer or reader will violate. */
static Client sharer = {.socket = -1};

static void
end_sharing(void)
{
	if (sharer.socket >= 0)
		client_close(&sharer);
	sharer.socket = -1;
}

static void
join_a_job(Client *client, const Table *table, bool reads)
{
	uint64_t	token;

	end_sharing();
	sharer = client_open(&service, BUFFER_BYTES, NBUFFERS);
	token = job_share(&sharer, table, 0);
	if (reads)
		job_read(client, table, token);
	else
		job_join(client, table, token, 1);
}

static Client
client_in(Phase phase)
{
	HelloOptions options = {.no_buffers = true};
	Table		table = table_make(1, 100, false);
	Client		client;
	GsAnyMessage message;

	if (phase >= IDLE)
		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
	else
		client = client_connect(&service);
	if (phase == WATCHING)
	{
		client_send_hello(&client, 0, 0, &options);
		client_expect(&client, GS_MESSAGE_WELCOME, &message);
	}
	if (phase == FEEDING || phase == READING)
		join_a_job(&client, &table, phase == READING);
	else if (phase >= LOADING)
	{
		job_open(&client, &table, 0, 0);
		client_expect(&client, GS_MESSAGE_JOB_READY, &message);
	}
	if (phase == SORTED)
	{
		job_load(&client, &table, 100);
		job_sort(&client, &table, GS_ALGORITHM_RADIX);
	}
	return client;
}

/* Sends a message in a phase, and expects to be disconnected. */
static void
check_bad_bytes(Phase phase, const void *bytes, size_t nbytes)
{
	Client		client = client_in(phase);

	CHECK(client_send_bytes(&client, bytes, nbytes, NULL, 0));
	client_expect_dropped(&client, GS_FAILED_PROTOCOL);
	client_close(&client);
}

static void
check_bad(Phase phase, void *message, GsMessageType type, size_t nbytes)
{
	unit_case("message %d of %zu bytes in phase %d", type, nbytes, phase);
	*(GsMessage *) message = (GsMessage)
	{
		.type = type,.nbytes = (uint32_t) nbytes
	};
	check_bad_bytes(phase, message, nbytes);
	unit_case("%s", "");
}

static const size_t lengths[] = {
	[GS_MESSAGE_HELLO] = sizeof(GsHello),
	[GS_MESSAGE_JOB_OPEN] = sizeof(GsJobOpen),
	[GS_MESSAGE_JOB_JOIN] = sizeof(GsJobJoin),
	[GS_MESSAGE_JOB_READ] = sizeof(GsJobJoin),
	[GS_MESSAGE_BATCH_FILLED] = sizeof(GsBatchFilled),
	[GS_MESSAGE_PRODUCER_END] = sizeof(GsProducerEnd),
	[GS_MESSAGE_SORT] = sizeof(GsSortRequest),
	[GS_MESSAGE_FETCH] = sizeof(GsFetch),
	[GS_MESSAGE_BATCH_RELEASED] = sizeof(GsBufferMessage),
	[GS_MESSAGE_RETURN_INPUT] = sizeof(GsMessage),
	[GS_MESSAGE_JOB_CLOSE] = sizeof(GsMessage),
};

static void
test_lengths(void **unused)
{
	static char bytes[2 * sizeof(GsAnyMessage)];
	GsMessage  *message = (GsMessage *) bytes;

	/* shorter than a header; a length that is not its own; longer than any */
	check_bad_bytes(CONNECTED, bytes, 1);
	check_bad_bytes(CONNECTED, bytes, sizeof(GsMessage) - 1);
	*message = (GsMessage)
	{
		.type = GS_MESSAGE_HELLO,.nbytes = sizeof(GsHello) + 8
	};
	check_bad_bytes(CONNECTED, bytes, sizeof(GsHello));
	check_bad(CONNECTED, bytes, GS_MESSAGE_HELLO, sizeof(bytes));

	/* each type, in a phase where it is legal, too short and too long */
	for (int type = GS_MESSAGE_JOB_OPEN; type <= GS_MESSAGE_JOB_CLOSE; type++)
	{
		Phase		phase = type >= GS_MESSAGE_JOB_OPEN && type <= GS_MESSAGE_JOB_READ ? IDLE :
			type == GS_MESSAGE_PRODUCER_END ? FEEDING :
			type == GS_MESSAGE_FETCH || type == GS_MESSAGE_BATCH_RELEASED ? SORTED : LOADING;

		memset(bytes, 0, sizeof(bytes));
		check_bad(phase, bytes, type, lengths[type] + 8);
		if (lengths[type] > sizeof(GsMessage))
		{
			check_bad(phase, bytes, type, lengths[type] - 8);
			check_bad(phase, bytes, type, sizeof(GsMessage));
		}
		check_bad(phase, bytes, type, 4);
	}
	check_bad(CONNECTED, bytes, GS_MESSAGE_HELLO, sizeof(GsMessage));
}

static void
test_unknown_types(void **unused)
{
	static const int types[] = {0, GS_MESSAGE_JOB_CLOSE + 1, 63, 64, 65, 69, 1000, -1};
	GsMessage	message;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (Phase phase = CONNECTED; phase < PHASES; phase++)
			check_bad(phase, &message, types[i], sizeof(message));
}

/* Well-formed messages in phases where they are not legal. */
static void
test_order(void **unused)
{
	static const unsigned legal[] = {
		[GS_MESSAGE_HELLO] = 1 << CONNECTED | 1 << WATCHING,
		[GS_MESSAGE_JOB_OPEN] = 1 << IDLE,
		[GS_MESSAGE_JOB_JOIN] = 1 << IDLE,
		[GS_MESSAGE_JOB_READ] = 1 << IDLE,
		[GS_MESSAGE_BATCH_FILLED] = 1 << LOADING | 1 << FEEDING,
		[GS_MESSAGE_PRODUCER_END] = 1 << FEEDING,
		[GS_MESSAGE_SORT] = 1 << LOADING,
		[GS_MESSAGE_FETCH] = 1 << SORTED,
		[GS_MESSAGE_BATCH_RELEASED] = 1 << LOADING | 1 << READING | 1 << SORTED,
		[GS_MESSAGE_RETURN_INPUT] = 1 << LOADING,
		[GS_MESSAGE_JOB_CLOSE] = 1 << LOADING | 1 << FEEDING | 1 << READING | 1 << SORTED,
	};
	GsAnyMessage message;

	for (int type = GS_MESSAGE_HELLO; type <= GS_MESSAGE_JOB_CLOSE; type++)
		for (Phase phase = CONNECTED; phase < PHASES; phase++)
		{
			if (legal[type] >> phase & 1)
				continue;
			memset(&message, 0, sizeof(message));
			if (type == GS_MESSAGE_JOB_OPEN)
				message.job_open.nwords = 1;
			if (type == GS_MESSAGE_BATCH_FILLED)
				message.filled = (GsBatchFilled)
				{
					.nrows = 1,.rows_bytes = 24
				};
			check_bad(phase, &message, type, lengths[type]);
		}
}

static void
test_open(void **unused)
{
	static const GsJobOpen opens[] = {
		{.nwords = 0},
		{.nwords = 2 * GS_MAX_FIELDS + 1},
		{.nwords = UINT32_MAX},
		{.nwords = 1,.keys_only = 2},
		{.nwords = 2,.keys_only = 1},
		{.nwords = 1,.shared = 2},
		{.nwords = 1,.participant = GS_MAX_PARTICIPANTS},
	};

	for (size_t i = 0; i < sizeof(opens) / sizeof(opens[0]); i++)
	{
		GsJobOpen	open = opens[i];

		check_bad(IDLE, &open, GS_MESSAGE_JOB_OPEN, sizeof(open));
	}
}

static void
test_join(void **unused)
{
	static const GsJobJoin joins[] = {
		{.nwords = 0},
		{.nwords = 2 * GS_MAX_FIELDS + 1},
		{.nwords = 1,.keys_only = 2},
		{.nwords = 2,.keys_only = 1},
		{.nwords = 1,.participant = GS_MAX_PARTICIPANTS},
		{.nwords = 1,.participant = UINT32_MAX},
	};
	GsProducerEnd producer_end = {.partial = 2};

	for (size_t i = 0; i < sizeof(joins) / sizeof(joins[0]); i++)
	{
		GsJobJoin	join = joins[i];

		check_bad(IDLE, &join, GS_MESSAGE_JOB_JOIN, sizeof(join));
		check_bad(IDLE, &join, GS_MESSAGE_JOB_READ, sizeof(join));
	}
	check_bad(FEEDING, &producer_end, GS_MESSAGE_PRODUCER_END, sizeof(producer_end));
}

static void
test_filled(void **unused)
{
	/* records are of 16 bytes here */
	static const GsBatchFilled batches[] = {
		{.buffer = NBUFFERS,.nrows = 1,.rows_bytes = 24},
		{.buffer = UINT32_MAX,.nrows = 1,.rows_bytes = 24},
		{.nrows = 0,.rows_bytes = 24},
		{.nrows = 1,.rows_bytes = 28},
		{.nrows = 1,.rows_bytes = 0},
		{.nrows = 1,.rows_bytes = 8},
		{.nrows = 2,.rows_bytes = 24},
		{.nrows = 1,.rows_bytes = BUFFER_BYTES},
		{.nrows = 1,.rows_bytes = BUFFER_BYTES - 8},
		{.nrows = 1,.rows_bytes = UINT32_MAX - 7},
		{.nrows = BUFFER_BYTES / 16,.rows_bytes = BUFFER_BYTES},
		{.nrows = UINT32_MAX,.rows_bytes = UINT32_MAX - 7},
		{.nrows = UINT32_C(1) << 28,.rows_bytes = 1024},
	};

	for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++)
	{
		GsBatchFilled filled = batches[i];

		check_bad(LOADING, &filled, GS_MESSAGE_BATCH_FILLED, sizeof(filled));
		check_bad(FEEDING, &filled, GS_MESSAGE_BATCH_FILLED, sizeof(filled));
	}
}

/* A batch with rows in a keys-only job. */
static void
test_filled_keys_only(void **unused)
{
	static const GsBatchFilled batches[] = {
		{.nrows = 1,.rows_bytes = 8},
		{.nrows = BUFFER_BYTES / 8 + 1},
	};

	for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++)
	{
		Client		client = client_open(&service, BUFFER_BYTES, NBUFFERS);
		Table		table = table_make(1, 100, true);
		GsBatchFilled filled = batches[i];
		GsAnyMessage message;

		job_open(&client, &table, 0, 0);
		client_expect(&client, GS_MESSAGE_JOB_READY, &message);
		client_send(&client, &filled, GS_MESSAGE_BATCH_FILLED, sizeof(filled));
		client_expect_dropped(&client, GS_FAILED_PROTOCOL);
		client_close(&client);
	}
}

/* A buffer that the client does not own any more. */
static void
test_buffers(void **unused)
{
	Client		client = client_in(SORTED);

	client_send_buffer(&client, GS_MESSAGE_BATCH_RELEASED, 1);
	client_send_buffer(&client, GS_MESSAGE_BATCH_RELEASED, 1);
	client_expect_dropped(&client, GS_FAILED_PROTOCOL);
	client_close(&client);

	client = client_in(SORTED);
	client_send_buffer(&client, GS_MESSAGE_BATCH_RELEASED, NBUFFERS);
	client_expect_dropped(&client, GS_FAILED_PROTOCOL);
	client_close(&client);
}

/* A buffer that is sent twice, before gpusortd can have freed it. */
static void
test_filled_twice(void **unused)
{
	Service		slow = service_start((const char *[])
									 {
									 "--fault", "copy_in:1:delay=2000", NULL
									 });
	Client		client = client_open(&slow, BUFFER_BYTES, NBUFFERS);
	Table		table = table_make(1, 10, false);
	GsBatchFilled filled = {.buffer = 0,.nrows = 1,.rows_bytes = 24};
	GsAnyMessage message;

	job_open(&client, &table, 0, 0);
	client_expect(&client, GS_MESSAGE_JOB_READY, &message);
	job_load(&client, &table, 10);
	client_send(&client, &filled, GS_MESSAGE_BATCH_FILLED, sizeof(filled));
	client_expect_dropped(&client, GS_FAILED_PROTOCOL);
	client_close(&client);
	service_check_idle(&slow);
	service_stop(&slow);
}

static void
test_fetch(void **unused)
{
	GsFetch		fetch = {.position = 100};

	check_bad(SORTED, &fetch, GS_MESSAGE_FETCH, sizeof(fetch));
	fetch.position = UINT64_MAX;
	check_bad(SORTED, &fetch, GS_MESSAGE_FETCH, sizeof(fetch));
}

/* SORT with a layout that is invalid, or not that of the rows. */
static void
check_bad_layout(const GsKeyLayout *layout)
{
	Client		client = client_in(LOADING);
	Table		table = table_make(1, 100, false);
	GsSortRequest request = {.layout = *layout};
	GsAnyMessage message;

	job_load(&client, &table, 100);
	client_send(&client, &request, GS_MESSAGE_SORT, sizeof(request));
	do
		CHECK(client_receive(&client, &message, PATIENCE_MS) > 0);
	while (message.message.type == GS_MESSAGE_BATCH_FREE);
	CHECK(message.message.type == GS_MESSAGE_FAILED);
	CHECK(message.failed.failure == GS_FAILED_PROTOCOL);
	CHECK(client_receive(&client, &message, PATIENCE_MS) == 0);
	client_close(&client);
}

static void
test_layouts(void **unused)
{
	Table		table = table_make(1, 100, false);
	GsSortRequest request = {.algorithm = 99,.layout = table.layout};
	GsKeyLayout layout;

	check_bad(LOADING, &request, GS_MESSAGE_SORT, sizeof(request));

	table.layout.nrows = 100;
	table.layout.fields[0].min = 0;
	table.layout.fields[0].max = UINT64_MAX;
	table.layout.fields[0].ever_set = UINT64_MAX;
	table.layout.fields[0].always_set = 0;
	layout = table.layout;
	layout.nrows = 99;
	check_bad_layout(&layout);
	layout = table.layout;
	layout.nwords = 2;
	check_bad_layout(&layout);
	layout = table.layout;
	layout.fields[0].word = 200;
	check_bad_layout(&layout);
	layout = table.layout;
	layout.ndecisive = layout.ncolumns = 1000;
	check_bad_layout(&layout);
	layout = table.layout;
	layout.nfields = -1;
	check_bad_layout(&layout);
	memset(&layout, 0xFF, sizeof(layout));
	check_bad_layout(&layout);
}

/* Records that point outside their batch: the job fails, the connection stays open. */
static void
test_bad_rows(void **unused)
{
	Client		client = client_in(LOADING);
	Table		table = table_make(1, 100, false);
	GsBatchFilled filled = {.buffer = 0,.nrows = 100,.rows_bytes = 2400};
	GsAnyMessage message;

	/* its buffer is filled correctly, then modified */
	job_load(&client, &table, 100);
	client_expect(&client, GS_MESSAGE_BATCH_FREE, &message);
	CHECK(message.buffer.buffer == 0);
	memset(client.buffer_pool, 0xEE, BUFFER_BYTES);
	client_send(&client, &filled, GS_MESSAGE_BATCH_FILLED, sizeof(filled));
	table.layout.nrows += 100;
	table.layout.fields[0].ever_set = UINT64_MAX;
	table.layout.fields[0].always_set = 0;
	table.layout.fields[0].min = 0;
	table.layout.fields[0].max = UINT64_MAX;
	job_send_sort(&client, &table, GS_ALGORITHM_RADIX);
	client_expect(&client, GS_MESSAGE_BATCH_FREE, &message);
	client_expect_failed(&client, GS_FAILED_ROWS);

	/* messages that were sent before the failure arrived are ignored */
	client_send_buffer(&client, GS_MESSAGE_BATCH_RELEASED, 1);
	job_close(&client);
	job_run(&client, 1, 100, false);
	client_close(&client);
}

/* No rows at all. */
static void
test_no_rows(void **unused)
{
	Client		client = client_in(LOADING);
	Table		table = table_make(1, 100, false);
	GsAnyMessage message;
	int			type;

	job_send_sort(&client, &table, GS_ALGORITHM_RADIX);
	type = client_receive(&client, &message, PATIENCE_MS);
	CHECK_MSG(type == GS_MESSAGE_SORTED && message.sorted.nrows == 0, "message %d came: %s", type,
			  type == GS_MESSAGE_FAILED ? message.failed.text : "");
	job_close(&client);
	job_run(&client, 1, 100, false);
	client_close(&client);
}

/* Descriptors with messages that must have none, up to the maximum of the kernel. */
static void
test_stuffed_descriptors(void **unused)
{
	int			descriptors[8];
	GsMessage	close_job = {.type = GS_MESSAGE_JOB_CLOSE,.nbytes = sizeof(close_job)};

	for (int i = 0; i < 8; i++)
		descriptors[i] = STDOUT_FILENO;
	for (int n = 1; n <= 8; n++)
	{
		Client		client = client_in(LOADING);

		CHECK(client_send_bytes(&client, &close_job, sizeof(close_job), descriptors, n));
		client_expect_dropped(&client, GS_FAILED_PROTOCOL);
		client_close(&client);
	}
}

/* A client that sends and sends and never reads. */
static void
test_deaf(void **unused)
{
	Client		client = client_connect(&service);
	GsHello		hello = {
		.message = {.type = GS_MESSAGE_HELLO,.nbytes = sizeof(hello)},
		.magic = GS_WIRE_MAGIC,
		.version = GS_WIRE_VERSION
	};
	int			n = 0;

	memcpy(hello.build, gs_build_id, sizeof(hello.build));

	/*
	 * the number of such lines per second is limited, and others were written
	 * in this second
	 */
	sleep_ms(1100);
	while (n < 100000 && client_send_bytes(&client, &hello, sizeof(hello), NULL, 0))
		n++;
	CHECK_MSG(n < 100000, "the service keeps a client that does not read");
	client_close(&client);
	CHECK(service_logged(&service, "does not read its messages"));
}

/* Nothing of them is left. */
static void
test_nothing_is_left(void **unused)
{
	uint64_t	until = now_ms() + PATIENCE_MS;

	end_sharing();

	/* the good job's connection is one descriptor */
	while (service_status(&service).njobs != 1 ||
		   service_count_fds(&service) != service.nfds + 1)
	{
		CHECK_MSG(now_ms() < until, "%d descriptors more are open, and %u jobs",
				  service_count_fds(&service) - service.nfds, service_status(&service).njobs);
		sleep_ms(2);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_build),
		cmocka_unit_test(test_buffer_pools),
		cmocka_unit_test(test_other_descriptors),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_unknown_types),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_filled),
		cmocka_unit_test(test_filled_keys_only),
		cmocka_unit_test(test_buffers),
		cmocka_unit_test(test_filled_twice),
		cmocka_unit_test(test_fetch),
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_bad_rows),
		cmocka_unit_test(test_no_rows),
		cmocka_unit_test(test_stuffed_descriptors),
		cmocka_unit_test(test_deaf),
		cmocka_unit_test(test_nothing_is_left),
	};

	return cmocka_run_group_tests_name("hostile clients", tests, begin, end);
}
