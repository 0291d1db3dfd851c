/*-------------------------------------------------------------------------
 *
 * unit_client.c
 *	  A client of a job over a random table.
 *
 *-------------------------------------------------------------------------
 */
#include "unit_client.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/basics.h"
#include "doubles/daemon/device_fault.h"
#include "doubles/daemon/device_host.h"
#include "unit_check.h"

/* device_table.c opens the file of this build. */
const char	gs_build_id[GS_BUILD_ID_BYTES + 1] = "0123456789abcdef";

#define GARBAGE			0x5A

/* Valgrind runs one thread at a time, so a poll must let those of the device run. */
#define LONGEST_WAIT_US	((uint64_t) 120 * 1000000)

/* Lets other threads run; false: it has waited for too long. */
static bool
may_wait(uint64_t start_us)
{
	sched_yield();
	return gs_clock_us() - start_us < LONGEST_WAIT_US;
}

/* ----------------------------------------------------------------- service */

GsDevice *
unit_open_device(uint64_t nbytes)
{
	char		why_not[200];
	GsDevice   *device = gs_device_host_open(0, nbytes, why_not, sizeof(why_not));

	CHECK_MSG(device != NULL, "%s", why_not);
	return device;
}

void
service_start(Service *service, uint64_t limit, const char *fault)
{
	char		why_not[200] = "";

	*service = (Service) {0};
	service->device = unit_open_device((uint64_t) 1 << 32);
	if (fault != NULL)
	{
		service->device = gs_device_fault_open(service->device, 0, fault, why_not, sizeof(why_not));
		CHECK_MSG(service->device != NULL, "%s", why_not);
	}
	service->pool = gs_device_pool_create(service->device, limit);
	CHECK(service->pool != NULL);
}

void
service_join(Service *service, GsDeviceTable *table, uint32_t number)
{
	GsDeviceSlot *slot = &table->slots[number];

	GsDeviceIdentity identity = gs_device_host_identity(number);

	gs_device_pool_join(service->pool, table, number);
	slot->identity[0] = identity.words[0];
	slot->identity[1] = identity.words[1];
	slot->kind = service->device->kind;
	slot->memory_limit = service->pool->limit;
	slot->state = GS_DEVICE_RUNNING;
}

void
service_stop(Service *service)
{
	uint64_t	free_bytes;
	uint64_t	total_bytes;

	CHECK(service->pool->used == 0);
	gs_device_pool_destroy(service->pool);
	if (service->device->ops->memory(service->device, &free_bytes, &total_bytes))
		CHECK(free_bytes == total_bytes);
	service->device->ops->close(service->device);
}

/* ------------------------------------------------------------------ events */

static char *
slot_start(const Client *client, uint32_t buffer)
{
	return client->buffer_pool.base + (size_t) buffer * client->buffer_pool.buffer_bytes;
}

static void
get_slot(Client *client, uint32_t buffer, BufferState from)
{
	CHECK(buffer < client->buffer_pool.nbuffers);
	CHECK_MSG(client->buffers[buffer] == from, "buffer %u is returned in the wrong state", buffer);
	client->buffers[buffer] = BUFFER_MINE;
}

static void
batch_free(void *arg, uint32_t buffer)
{
	Client	   *client = arg;

	get_slot(client, buffer, BUFFER_FILLED);
	CHECK_MSG(client->filled[buffer].first_row == client->nuploaded,
			  "batches are freed out of order");
	client->nuploaded += client->filled[buffer].nrows;
	memset(slot_start(client, buffer), GARBAGE, client->buffer_pool.buffer_bytes);
}

static void
sorted(void *arg, const GsSorted *result)
{
	Client	   *client = arg;

	CHECK(!client->sorted && !client->failed);
	CHECK_MSG(client->nuploaded == client->npushed, "sorted before all buffers were free");
	client->sorted = true;
	client->result = *result;
}

static void
batch_ready(void *arg, const GsBatchReady *ready)
{
	Client	   *client = arg;

	CHECK_MSG(ready->stream == client->stream, "a batch of stream %u, but %u is asked for",
			  ready->stream, client->stream);
	if (ready->nrows > 0)
		get_slot(client, ready->buffer, BUFFER_RELEASED);
	CHECK(client->nready <= GS_MAX_BUFFERS);
	client->ready[client->nready++] = *ready;
}

static void
failed(void *arg, GsFailure failure, const char *text)
{
	Client	   *client = arg;

	CHECK(!client->failed);
	CHECK(text[0] != '\0' && strlen(text) < sizeof(client->text));
	client->failed = true;
	client->failure = failure;
	strcpy(client->text, text);
}

/* -------------------------------------------------------------------- life */

bool
client_open(Client *client, Service *service, const TestTable *table,
			uint32_t buffer_bytes, uint32_t nbuffers)
{
	GsParticipant consumer = {
		.events = {client, batch_free, NULL, sorted, batch_ready, failed}
	};
	GsJobMemory memory;

	memset(client, 0, sizeof(*client));
	client->table = table;
	client->service = service;
	table_layout(table, &client->layout);
	client->buffer_pool.buffer_bytes = buffer_bytes;
	client->buffer_pool.nbuffers = nbuffers;
	client->buffer_pool.base = malloc((size_t) buffer_bytes * nbuffers);
	CHECK(client->buffer_pool.base != NULL);
	memset(client->buffer_pool.base, GARBAGE, (size_t) buffer_bytes * nbuffers);
	CHECK(gs_device_pool_admit(service->pool, service->expected_bytes, &memory));
	consumer.buffer_pool = client->buffer_pool;
	consumer.nwords = (uint32_t) client->layout.nwords;
	consumer.keys_only = table->keys_only;
	client->job = gs_job_open(service->device, &memory, &consumer);
	if (client->job != NULL)
		return true;
	gs_device_pool_free_all(&memory);
	free(client->buffer_pool.base);
	return false;
}

void
client_close(Client *client)
{
	const uint64_t start_us = gs_clock_us();

	while (!gs_job_close(client->job))
		CHECK(may_wait(start_us));
	client->job = NULL;
	free(client->buffer_pool.base);
	free(client->order);
	client->order = NULL;
}

void
client_poll(Client *client)
{
	CHECK_MSG(gs_job_busy(client->job), "the job waits for nothing, but has not done its work");
	gs_job_poll(client->job);
}

/* -------------------------------------------------------------------- upload */

/*
 * A buffer to write to, as soon as there is one; -1 if the job failed.  If there are
 * several, one is kept for the return of the input.
 */
static int
wait_for_slot(Client *client)
{
	const uint64_t start_us = gs_clock_us();

	while (!client->failed)
	{
		bool		may_take = client->buffer_pool.nbuffers == 1;

		CHECK(may_wait(start_us));
		for (uint32_t buffer = 0; buffer < client->buffer_pool.nbuffers; buffer++)
		{
			if (client->buffers[buffer] != BUFFER_MINE)
				continue;
			if (may_take)
				return (int) buffer;
			may_take = true;
		}
		client_poll(client);
	}
	return -1;
}

/* Writes the table's next row; false if the batch is full. */
static bool
push(Client *client, GsBatch *batch)
{
	const TestTable *table = client->table;
	size_t		row = client->npushed;
	size_t		row_bytes = table_row_bytes(table, row);
	uint32_t	offsets[GS_MAX_COLUMNS];
	uint64_t   *record;
	uint32_t	nulls;

	if (!gs_batch_has_space(batch, row_bytes))
		return false;
	record = gs_batch_next_record(batch);
	if (!table->keys_only)
		table_put_row(table, row, gs_batch_next_row(batch), offsets);
	nulls = table_put_key(table, row, &client->layout, offsets, record);
	if (!table->keys_only)
		record[client->layout.nwords] = gs_batch_next_location(batch, nulls);
	gs_batch_push(batch, row_bytes);
	client->npushed++;
	return true;
}

static void
send_batch(Client *client, uint32_t buffer, const GsBatch *batch)
{
	FilledBatch *filled = &client->filled[buffer];

	filled->nrows = (uint32_t) batch->nrows;
	filled->first_row = client->npushed - filled->nrows;
	filled->rows_bytes = (uint32_t) (batch->rows_end - batch->base);
	client->buffers[buffer] = BUFFER_FILLED;
	gs_member_batch_filled(gs_job_consumer(client->job), buffer, filled->nrows, filled->rows_bytes);
}

bool
client_load(Client *client, Dice *dice)
{
	while (client->npushed < client->table->nrows)
	{
		int			buffer = wait_for_slot(client);
		uint64_t	most = dice != NULL && dice_one_in(dice, 2) ?
			1 + dice_below(dice, 200) : UINT64_MAX;
		GsBatch		batch;

		if (buffer < 0)
			return false;
		gs_batch_init(&batch, slot_start(client, (uint32_t) buffer), client->buffer_pool.buffer_bytes,
					  gs_record_bytes(&client->layout));
		while (client->npushed < client->table->nrows && batch.nrows < most &&
			   push(client, &batch))
			;
		CHECK(batch.nrows > 0);
		if (client->tamper != NULL)
			client->tamper(client, &batch);
		send_batch(client, (uint32_t) buffer, &batch);
	}
	return !client->failed;
}

bool
client_sort(Client *client, GsAlgorithm algorithm)
{
	const uint64_t start_us = gs_clock_us();

	gs_job_sort(client->job, algorithm, false, true, &client->layout);
	while (!client->sorted && !client->failed)
	{
		CHECK(may_wait(start_us));
		client_poll(client);
	}
	return client->sorted;
}

/* ------------------------------------------------------------------ streams */

void
client_release(Client *client, uint32_t buffer)
{
	memset(slot_start(client, buffer), GARBAGE, client->buffer_pool.buffer_bytes);
	client->buffers[buffer] = BUFFER_RELEASED;
	gs_member_buffer_released(gs_job_consumer(client->job), buffer);
}

static void
release_all(Client *client)
{
	for (uint32_t buffer = 0; buffer < client->buffer_pool.nbuffers; buffer++)
	{
		if (client->buffers[buffer] == BUFFER_MINE)
			client_release(client, buffer);
	}
}

GsBatchReady
client_take_batch(Client *client)
{
	const uint64_t start_us = gs_clock_us();
	GsBatchReady ready;

	while (client->nready == 0)
	{
		CHECK(may_wait(start_us));
		CHECK_MSG(!client->failed, "it failed: %s", client->text);
		client_poll(client);
	}
	ready = client->ready[0];
	memmove(&client->ready[0], &client->ready[1],
			sizeof(GsBatchReady) * (size_t) --client->nready);
	return ready;
}

void
client_fetch(Client *client, uint64_t position)
{
	/* before or after: what was ready in the old stream comes back either way */
	if (client->stream % 2 == 0)
		release_all(client);
	client->nready = 0;
	CHECK(gs_member_fetch(gs_job_consumer(client->job), ++client->stream, position) == (position < client->result.nrows));
	release_all(client);
}

static void
check_keys(const Client *client, const GsBatchReady *ready)
{
	const char *keys = slot_start(client, ready->buffer);

	CHECK(ready->rows_bytes == ready->nrows * sizeof(uint64_t));
	for (uint32_t i = 0; i < ready->nrows; i++)
		CHECK_MSG(table_row_is(client->table, client->order[ready->position + i],
							   &client->layout, keys + i * sizeof(uint64_t)),
				  "position %llu: another key belongs there",
				  (unsigned long long) (ready->position + i));
}

static void
check_rows(const Client *client, const GsBatchReady *ready)
{
	const TestTable *table = client->table;
	const char *start = slot_start(client, ready->buffer);
	const uint32_t *offset = (const uint32_t *) (start + client->buffer_pool.buffer_bytes);
	size_t		at = 0;

	CHECK(ready->rows_bytes + ready->nrows * sizeof(uint32_t) <= client->buffer_pool.buffer_bytes);
	for (uint32_t i = 0; i < ready->nrows; i++)
	{
		uint32_t	expected = client->order[ready->position + i];

		CHECK((size_t) *--offset * GS_ROW_ALIGN == at);
		CHECK(at < ready->rows_bytes);
		CHECK_MSG(table_row_number(start + at) == expected,
				  "position %llu: row %u, but row %u belongs there",
				  (unsigned long long) (ready->position + i), table_row_number(start + at),
				  expected);
		CHECK_MSG(table_row_is(table, expected, &client->layout, start + at),
				  "row %u is damaged", expected);
		at += GS_ALIGN_ROW(table_row_bytes(table, expected));
	}
	CHECK(at == ready->rows_bytes);
}

/* Computes the order that is expected, and checks whether any keys are equal. */
static void
expect_order(Client *client)
{
	const TestTable *table = client->table;
	bool		all_differ = true;

	client->order = table_order(table);
	for (size_t i = 1; i < table->nrows && all_differ; i++)
		all_differ = table_compare(table, client->order[i - 1], client->order[i]) != 0;
	CHECK_MSG(client->result.all_differ == all_differ, "%llu rows: all differ %d",
			  (unsigned long long) client->result.nrows, all_differ);
}

void
client_check_batches(Client *client, uint64_t position, int nbatches)
{
	uint64_t	next = position;

	if (client->order == NULL)
		expect_order(client);
	for (int i = 0; i < nbatches && next < client->npushed; i++)
	{
		GsBatchReady ready = client_take_batch(client);

		CHECK(ready.nrows > 0 && ready.position + ready.nrows <= client->npushed);
		CHECK_MSG(i == 0 ? ready.position <= next && next < ready.position + ready.nrows :
				  ready.position == next, "a batch from %llu, but %llu is due",
				  (unsigned long long) ready.position, (unsigned long long) next);
		if (client->table->keys_only)
			check_keys(client, &ready);
		else
			check_rows(client, &ready);
		next = ready.position + ready.nrows;
		client_release(client, ready.buffer);
	}
}

/* -------------------------------------------------------------------- return of the input */

/* A batch has the table's next rows and their records, as they were written. */
static void
check_batch(Client *client, const char *start, size_t first_row, uint32_t nrows,
			uint32_t rows_bytes)
{
	const TestTable *table = client->table;
	size_t		record_bytes = gs_record_bytes(&client->layout);
	GsKeyLayout observed = client->layout;
	GsBatch		batch;
	char	   *row = malloc(client->buffer_pool.buffer_bytes);

	CHECK(row != NULL);
	gs_batch_init(&batch, (char *) start, client->buffer_pool.buffer_bytes, record_bytes);
	for (uint32_t i = 0; i < nrows; i++)
	{
		size_t		number = first_row + i;
		size_t		row_bytes = table_row_bytes(table, number);
		const uint64_t *record = gs_batch_record(&batch, i);
		uint64_t	expected[GS_MAX_FIELDS + GS_MAX_COLUMNS + 1];
		uint32_t	offsets[GS_MAX_COLUMNS];
		uint32_t	nulls;

		if (!table->keys_only)
			table_put_row(table, number, row, offsets);
		nulls = table_put_key(table, number, &observed, offsets, expected);
		if (!table->keys_only)
		{
			expected[client->layout.nwords] = gs_batch_next_location(&batch, nulls);
			CHECK_MSG(table_row_is(table, number, &client->layout, batch.rows_end),
					  "row %zu is another one, or damaged", number);
		}
		CHECK(memcmp(record, expected, record_bytes) == 0);
		batch.rows_end += GS_ALIGN_ROW(row_bytes);
	}
	CHECK((size_t) (batch.rows_end - batch.base) == rows_bytes);
	free(row);
}

void
client_check_drain(Client *client)
{
	size_t		next = 0;
	int			nkept = 0;

	release_all(client);
	client->failed = false;
	client->stream = 0;
	client->nready = 0;
	gs_job_return_input(client->job);
	for (;;)
	{
		GsBatchReady ready = client_take_batch(client);

		if (ready.nrows == 0)
			break;
		CHECK(ready.position == next);
		check_batch(client, slot_start(client, ready.buffer), next, ready.nrows, ready.rows_bytes);
		next += ready.nrows;
		client_release(client, ready.buffer);
	}
	CHECK(client->nready == 0 && !gs_job_busy(client->job));
	CHECK(next == client->nuploaded);

	/* the others are where they were */
	for (bool found = true; found;)
	{
		found = false;
		for (uint32_t buffer = 0; buffer < client->buffer_pool.nbuffers; buffer++)
		{
			const FilledBatch *filled = &client->filled[buffer];

			if (client->buffers[buffer] != BUFFER_FILLED || filled->first_row != next)
				continue;
			check_batch(client, slot_start(client, buffer), next, filled->nrows,
						filled->rows_bytes);
			next += filled->nrows;
			nkept++;
			found = true;
		}
	}
	CHECK_MSG(next == client->npushed, "%zu of %zu rows came back, %d batches of them kept",
			  next, client->npushed, nkept);
}

/* --------------------------------------------------------------- everything */

Outcome
client_sort_or_drain(Service *service, const TestTable *table, Dice *dice)
{
	Client		client;
	Outcome		outcome = OUTCOME_SORTED;

	CHECK(client_open(&client, service, table, GS_MIN_BUFFER_BYTES, 4));
	if (!client_load(&client, dice))
	{
		/* a client sends this before it knows of the failure */
		gs_job_sort(client.job, GS_ALGORITHM_RADIX, false, true, &client.layout);
		outcome = OUTCOME_FULL_IN_LOAD;
	}
	else if (!client_sort(&client, GS_ALGORITHM_RADIX))
		outcome = OUTCOME_FULL_IN_SORT;
	if (outcome == OUTCOME_SORTED)
	{
		client_fetch(&client, 0);
		client_check_batches(&client, 0, INT32_MAX);
	}
	else
	{
		CHECK_MSG(client.failure == GS_FAILED_MEMORY, "it failed: %s", client.text);
		client_check_drain(&client);
	}
	client_close(&client);
	return outcome;
}

void
client_check_table(const TestTable *table, Dice *dice)
{
	uint32_t	buffer_bytes = GS_MIN_BUFFER_BYTES << dice_below(dice, 2);
	uint32_t	nbuffers = 1 + (uint32_t) dice_below(dice, 6);
	GsAlgorithm algorithm = (GsAlgorithm) dice_below(dice, 3);
	uint64_t	nrows = table->nrows;
	Service		service;
	Client		client;

	service_start(&service, 0, NULL);
	CHECK(client_open(&client, &service, table, buffer_bytes, nbuffers));
	CHECK(client_load(&client, dice));
	CHECK_MSG(client_sort(&client, algorithm), "it failed: %s", client.text);
	CHECK(client.result.nrows == nrows);
	CHECK(client.result.algorithm == algorithm);
	CHECK(client.result.tied_rows <= nrows);
	CHECK(nrows == 0 || client.result.device_bytes >= 2 * nrows * sizeof(uint64_t));

	/* all, then from anywhere, some streams being left before their end */
	client_fetch(&client, 0);
	client_check_batches(&client, 0, INT32_MAX);
	for (int i = 0; i < 6 && nrows > 0; i++)
	{
		uint64_t	position = dice_below(dice, nrows);
		int			npolls = (int) dice_below(dice, 4);

		client_fetch(&client, position);
		while (npolls-- > 0 && gs_job_busy(client.job))
			client_poll(&client);
		if (!dice_one_in(dice, 3))
			client_check_batches(&client, position, 1 + (int) dice_below(dice, 5));
	}
	client_fetch(&client, 0);
	client_check_batches(&client, 0, INT32_MAX);
	client_close(&client);
	service_stop(&service);
}

void
session_begin(Session *session, const TestTable *table, uint32_t nbuffers)
{
	service_start(&session->service, 0, NULL);
	CHECK(client_open(&session->client, &session->service, table, GS_MIN_BUFFER_BYTES, nbuffers));
}

void
session_end(Session *session)
{
	client_close(&session->client);
	service_stop(&session->service);
}
