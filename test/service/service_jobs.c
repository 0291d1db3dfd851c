/*-------------------------------------------------------------------------
 *
 * service_jobs.c
 *	  Jobs of a correct client of gpusortd, whose rows are checked.
 *
 *-------------------------------------------------------------------------
 */
#include "service_driver.h"

#include <string.h>

#include "common/key_codec.h"
#include "unit_random.h"

#define ROW_HEADER_BYTES	24	/* length, buffer, key, number */
#define MAX_PADDING			5	/* words */

static int64_t
table_key(const Table *table, uint64_t i)
{
	uint64_t	number = mix64(table->seed + i) % (table->nrows / 2 + 1);

	return table->seed % 2 == 0 ? (int64_t) number - 1000 : (int64_t) mix64(number);
}

static uint32_t
row_bytes(const Table *table, uint64_t i)
{
	return ROW_HEADER_BYTES + 8 * (uint32_t) (mix64(table->seed ^ i) % (MAX_PADDING + 1));
}

static void
write_row(const Table *table, uint64_t i, char *row)
{
	uint32_t	nbytes = row_bytes(table, i);
	int64_t		key = table_key(table, i);

	memset(row, (int) (i & 0xFF), nbytes);
	memcpy(row, &nbytes, sizeof(nbytes));
	memcpy(row + 8, &key, sizeof(key));
	memcpy(row + 16, &i, sizeof(i));
}

/* Checks a row, without the bytes that the batch owns; returns its number. */
static uint64_t
check_row(const Table *table, const char *row, uint64_t nbytes)
{
	char		expected[ROW_HEADER_BYTES + 8 * MAX_PADDING];
	uint64_t	i;

	CHECK(nbytes >= ROW_HEADER_BYTES);
	memcpy(&i, row + 16, sizeof(i));
	CHECK(i < table->nrows);
	CHECK_MSG(nbytes == row_bytes(table, i), "row %llu has %llu bytes instead of %u",
			  (unsigned long long) i, (unsigned long long) nbytes, row_bytes(table, i));
	write_row(table, i, expected);
	CHECK(memcmp(row, expected, GS_ROW_ENTRY_OFFSET) == 0);
	CHECK(memcmp(row + 8, expected + 8, nbytes - 8) == 0);
	return i;
}

Table
table_make(uint64_t seed, uint64_t nrows, bool keys_only)
{
	Table		table = {.seed = seed,.nrows = nrows,.keys_only = keys_only};

	gs_key_layout_init(&table.layout);
	gs_key_layout_add_column(&table.layout, false, false);
	gs_key_layout_add_field(&table.layout, 64, GS_CANONICAL_NONE);
	table.layout.keys_only = keys_only;
	return table;
}

void
job_open(Client *client, const Table *table, uint64_t expected_bytes, uint32_t wait_ms)
{
	GsJobOpen	open = {
		.nwords = 1,
		.keys_only = table->keys_only,
		.expected_bytes = expected_bytes,
		.wait_ms = wait_ms
	};

	client->free_buffers = UINT64_MAX >> (64 - client->nbuffers);
	client_send(client, &open, GS_MESSAGE_JOB_OPEN, sizeof(open));
}

uint64_t
job_share(Client *client, const Table *table, uint32_t participant)
{
	GsJobOpen	open = {
		.nwords = 1,
		.keys_only = table->keys_only,
		.shared = 1,
		.participant = participant
	};
	GsAnyMessage message;

	client->free_buffers = UINT64_MAX >> (64 - client->nbuffers);
	client_send(client, &open, GS_MESSAGE_JOB_OPEN, sizeof(open));
	client_expect(client, GS_MESSAGE_JOB_READY, &message);
	CHECK(message.job_ready.token != 0);
	return message.job_ready.token;
}

static void
send_join(Client *client, const Table *table, GsMessageType type, uint64_t token,
		  uint32_t participant)
{
	GsJobJoin	join = {
		.token = token,
		.nwords = 1,
		.keys_only = table->keys_only,
		.participant = participant
	};

	client->free_buffers = UINT64_MAX >> (64 - client->nbuffers);
	client_send(client, &join, type, sizeof(join));
}

static void
expect_joined(Client *client)
{
	GsAnyMessage message;

	client_expect(client, GS_MESSAGE_JOB_READY, &message);
	CHECK(message.job_ready.token == 0);
}

void
job_send_join(Client *client, const Table *table, uint64_t token, uint32_t participant)
{
	send_join(client, table, GS_MESSAGE_JOB_JOIN, token, participant);
}

void
job_join(Client *client, const Table *table, uint64_t token, uint32_t participant)
{
	job_send_join(client, table, token, participant);
	expect_joined(client);
}

void
job_read(Client *client, const Table *table, uint64_t token)
{
	send_join(client, table, GS_MESSAGE_JOB_READ, token, 0);
	expect_joined(client);
}

void
job_send_producer_end(Client *client, bool partial)
{
	GsProducerEnd end = {.partial = partial};

	client_send(client, &end, GS_MESSAGE_PRODUCER_END, sizeof(end));
}

uint64_t
job_end_producer(Client *client, bool partial)
{
	GsAnyMessage message;
	int			type;

	job_send_producer_end(client, partial);
	while ((type = client_receive(client, &message, PATIENCE_MS)) == GS_MESSAGE_BATCH_FREE)
		client->free_buffers |= UINT64_C(1) << message.buffer.buffer;
	CHECK_MSG(type == GS_MESSAGE_PRODUCER_DONE, "message %d came instead of FED: %s", type,
			  type == GS_MESSAGE_FAILED ? message.failed.text : "");
	return message.producer_done.nrows;
}

/* Fills a buffer with the next rows, and sends it. */
static void
send_batch(Client *client, Table *table, uint32_t buffer, uint64_t end)
{
	GsBatch		batch;
	GsBatchFilled filled = {.buffer = buffer};

	gs_batch_init(&batch, client->buffer_pool + (size_t) buffer * client->buffer_bytes,
				  client->buffer_bytes, gs_record_bytes(&table->layout));
	while (table->nloaded < end)
	{
		uint64_t	i = table->nloaded;
		size_t		nbytes = table->keys_only ? 0 : row_bytes(table, i);
		uint64_t	code = gs_encode_int64(table_key(table, i));
		uint64_t   *record = gs_batch_next_record(&batch);

		if (!gs_batch_has_space(&batch, nbytes))
			break;
		record[0] = code;
		if (!table->keys_only)
		{
			record[1] = gs_batch_next_location(&batch, 0);
			write_row(table, i, gs_batch_next_row(&batch));
		}
		gs_batch_push(&batch, nbytes);
		gs_key_field_update_range(&table->layout.fields[0], code);
		table->layout.nrows++;
		table->nloaded++;
	}
	filled.nrows = (uint32_t) batch.nrows;
	filled.rows_bytes = (uint32_t) (batch.rows_end - batch.base);
	client->free_buffers &= ~(UINT64_C(1) << buffer);
	client_send(client, &filled, GS_MESSAGE_BATCH_FILLED, sizeof(filled));
}

/* Waits for BATCH_FREE; false: out of memory. */
static bool
take_free(Client *client, int timeout_ms)
{
	GsAnyMessage message;
	int			type = client_receive(client, &message, timeout_ms);

	if (type == -1)
		return true;
	if (type == GS_MESSAGE_FAILED)
	{
		CHECK_MSG(message.failed.failure == GS_FAILED_MEMORY, "%s", message.failed.text);
		return false;
	}
	CHECK_MSG(type == GS_MESSAGE_BATCH_FREE, "message %d came while loading", type);
	CHECK(message.buffer.buffer < client->nbuffers);
	CHECK(!(client->free_buffers >> message.buffer.buffer & 1));
	client->free_buffers |= UINT64_C(1) << message.buffer.buffer;
	return true;
}

bool
job_load(Client *client, Table *table, uint64_t end)
{
	while (table->nloaded < end)
	{
		/* one is kept, to return the input */
		while ((client->free_buffers & (client->free_buffers - 1)) == 0)
			if (!take_free(client, PATIENCE_MS))
				return false;
		send_batch(client, table, (uint32_t) __builtin_ctzll(client->free_buffers), end);
	}
	return true;
}

void
job_send_sort(Client *client, Table *table, GsAlgorithm algorithm)
{
	GsSortRequest request = {.algorithm = algorithm,.layout = table->layout};

	client_send(client, &request, GS_MESSAGE_SORT, sizeof(request));
}

void
job_sort(Client *client, Table *table, GsAlgorithm algorithm)
{
	GsAnyMessage message;
	int			type;

	job_send_sort(client, table, algorithm);
	while ((type = client_receive(client, &message, PATIENCE_MS)) == GS_MESSAGE_BATCH_FREE)
		client->free_buffers |= UINT64_C(1) << message.buffer.buffer;
	CHECK_MSG(type == GS_MESSAGE_SORTED, "message %d came instead of SORTED: %s", type,
			  type == GS_MESSAGE_FAILED ? message.failed.text : "");
	CHECK(message.sorted.nrows == table->nloaded);
	CHECK(message.sorted.device_bytes > 0);
}

void
job_release_buffers(Client *client)
{
	for (; client->free_buffers != 0; client->free_buffers &= client->free_buffers - 1)
		client_send_buffer(client, GS_MESSAGE_BATCH_RELEASED,
						   (uint32_t) __builtin_ctzll(client->free_buffers));
}

/* What has been returned so far. */
typedef struct Order
{
	bool		any;
	int64_t		key;
	uint64_t	number;
	uint64_t	sum;			/* a hash of row numbers: which rows there were */
} Order;

static void
check_next(Order *order, int64_t key, uint64_t number, bool keys_only)
{
	if (order->any)
	{
		CHECK(key >= order->key);
		if (!keys_only && key == order->key)
			CHECK_MSG(number > order->number, "rows of equal keys are not in input order");
	}
	order->any = true;
	order->key = key;
	order->number = number;
	order->sum += mix64(keys_only ? (uint64_t) key : number);
}

static void
check_sorted_batch(const Client *client, const Table *table, const GsBatchReady *ready, Order *order)
{
	const char *buffer = client->buffer_pool + (size_t) ready->buffer * client->buffer_bytes;
	const uint32_t *begins = (const uint32_t *) (buffer + client->buffer_bytes);

	for (uint32_t i = 0; i < ready->nrows; i++)
	{
		if (table->keys_only)
			check_next(order, gs_decode_int64(((const uint64_t *) buffer)[i]), i, true);
		else
		{
			uint64_t	begin = (uint64_t) begins[-1 - (int64_t) i] * 8;
			uint64_t	end = i + 1 < ready->nrows ?
				(uint64_t) begins[-2 - (int64_t) i] * 8 : ready->rows_bytes;
			uint64_t	number;

			CHECK(begin <= end && end <= client->buffer_bytes);
			number = check_row(table, buffer + begin, end - begin);
			check_next(order, table_key(table, number), number, false);
		}
	}
}

void
job_send_fetch(Client *client, uint32_t stream, uint64_t position)
{
	GsFetch		fetch = {.position = position,.stream = stream};

	job_release_buffers(client);
	client_send(client, &fetch, GS_MESSAGE_FETCH, sizeof(fetch));
}

void
job_fetch(Client *client, Table *table, uint32_t stream, uint64_t position)
{
	job_send_fetch(client, stream, position);
	job_read_stream(client, table, stream, position);
}

void
job_read_stream(Client *client, Table *table, uint32_t stream, uint64_t position)
{
	uint64_t	next = UINT64_MAX;
	uint64_t	sum = 0;
	Order		order = {0};
	GsAnyMessage message;

	while (next != table->nloaded)
	{
		client_expect(client, GS_MESSAGE_BATCH_READY, &message);
		CHECK(message.ready.buffer < client->nbuffers);
		if (message.ready.stream == stream)
		{
			if (next == UINT64_MAX)
				CHECK(message.ready.position <= position &&
					  position < message.ready.position + message.ready.nrows);
			else
				CHECK(message.ready.position == next);
			next = message.ready.position + message.ready.nrows;
			check_sorted_batch(client, table, &message.ready, &order);
		}
		client_send_buffer(client, GS_MESSAGE_BATCH_RELEASED, message.ready.buffer);
	}
	if (position > 0)
		return;
	for (uint64_t i = 0; i < table->nloaded; i++)
		sum += mix64(table->keys_only ? (uint64_t) table_key(table, i) : i);
	CHECK_MSG(sum == order.sum, "the rows that came out are not those that went in");
}

void
job_return_input(Client *client, Table *table)
{
	uint64_t	next = 0;
	uint64_t	kept = 0;
	GsAnyMessage message;
	uint32_t	record_bytes = (uint32_t) gs_record_bytes(&table->layout);

	job_release_buffers(client);
	client_send_plain(client, GS_MESSAGE_RETURN_INPUT);
	for (;;)
	{
		int			type = client_receive(client, &message, PATIENCE_MS);
		GsBatch		batch;

		if (type == GS_MESSAGE_BATCH_FREE)
		{
			client_send_buffer(client, GS_MESSAGE_BATCH_RELEASED, message.buffer.buffer);
			continue;
		}
		CHECK_MSG(type == GS_MESSAGE_BATCH_READY, "message %d came while returning the input", type);
		if (message.ready.nrows == 0)
			break;
		CHECK(message.ready.position == next);
		gs_batch_init(&batch, client->buffer_pool + (size_t) message.ready.buffer * client->buffer_bytes,
					  client->buffer_bytes, record_bytes);
		for (uint32_t i = 0; i < message.ready.nrows; i++, next++)
		{
			const uint64_t *record = gs_batch_record(&batch, i);

			CHECK(gs_decode_int64(record[0]) == table_key(table, next));
			if (!table->keys_only)
				CHECK(check_row(table, gs_batch_row(&batch, gs_record_unit(record, 1)),
								row_bytes(table, next)) == next);
		}
		client_send_buffer(client, GS_MESSAGE_BATCH_RELEASED, message.ready.buffer);
	}

	/* rows that were not returned were never taken; they are still in the buffers */
	CHECK(next <= table->nloaded);
	kept = table->nloaded - next;
	CHECK(kept * record_bytes <= (uint64_t) client->buffer_bytes * client->nbuffers);
}

void
job_close(Client *client)
{
	client_send_plain(client, GS_MESSAGE_JOB_CLOSE);
}

void
job_run(Client *client, uint64_t seed, uint64_t nrows, bool keys_only)
{
	Table		table = table_make(seed, nrows, keys_only);
	GsAnyMessage message;

	job_open(client, &table, 0, 1000);

	/* buffers of the previous job may still be reported */
	do
		CHECK(client_receive(client, &message, PATIENCE_MS) > 0);
	while (message.message.type == GS_MESSAGE_BATCH_READY ||
		   message.message.type == GS_MESSAGE_BATCH_FREE);
	CHECK_MSG(message.message.type == GS_MESSAGE_JOB_READY, "message %u came instead of JOB_READY",
			  message.message.type);
	CHECK(job_load(client, &table, nrows));
	job_sort(client, &table, GS_ALGORITHM_RADIX);
	job_fetch(client, &table, 1, 0);
	if (nrows > 1)
		job_fetch(client, &table, 2, nrows / 2);
	job_close(client);
}
