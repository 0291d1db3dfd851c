/*-------------------------------------------------------------------------
 *
 * test_producers.c
 *	  Jobs with several producers: who may join, the result, and what is left
 *	  when one of them disconnects.
 *
 *-------------------------------------------------------------------------
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service_driver.h"
#include "unit_cmocka.h"

#define BUFFER_BYTES	((uint32_t) 128 << 10)
#define PRODUCER_BYTES	((uint32_t) 64 << 10)
#define NBUFFERS		4

/* The rows of one participant: a part of the table. */
static Table
table_from(uint64_t seed, uint64_t nrows, uint64_t first, bool keys_only)
{
	Table		table = table_make(seed, nrows, keys_only);

	table.nloaded = first;
	return table;
}

/* Makes the table of the consumer that of all: statistics and number of rows. */
static void
merge(Table *consumer, const Table *producer, uint64_t nloaded)
{
	gs_key_layout_merge(&consumer->layout, &producer->layout);
	consumer->nloaded = nloaded;
}

/* A gpusortd, a consumer with a shared job, and a producer that has joined it. */
typedef struct Pair
{
	Service		service;
	Client		consumer;
	Client		producer;
	uint64_t	token;
	Table		consumers;
	Table		producers;
} Pair;

#define NROWS	20000

/* The producer has the rows from first on, and the higher number. */
static Pair
pair_begin(const char *const *options, uint64_t first_of_producer)
{
	Pair		pair = {.service = service_start(options)};

	pair.consumer = client_open(&pair.service, BUFFER_BYTES, NBUFFERS);
	pair.producer = client_open(&pair.service, PRODUCER_BYTES, NBUFFERS);
	pair.consumers = table_from(3, NROWS, 0, false);
	pair.producers = table_from(3, NROWS, first_of_producer, false);
	pair.token = job_share(&pair.consumer, &pair.consumers, 4);
	job_join(&pair.producer, &pair.producers, pair.token, 5);
	return pair;
}

static void
pair_end(Pair *pair)
{
	client_close(&pair->consumer);
	client_close(&pair->producer);
	service_check_idle(&pair->service);
	service_stop(&pair->service);
}

/* Receives messages up to the failure, which must be GS_FAILED_JOB. */
static void
expect_job_failed(Client *client)
{
	GsAnyMessage message;

	do
		CHECK(client_receive(client, &message, PATIENCE_MS) > 0);
	while (message.message.type == GS_MESSAGE_BATCH_FREE);
	CHECK_MSG(message.message.type == GS_MESSAGE_FAILED, "message %u came", message.message.type);
	CHECK_MSG(message.failed.failure == GS_FAILED_JOB, "failure %u: %s",
			  message.failed.failure, message.failed.text);
}

/* The client violated the protocol; messages in transit arrive before the error. */
static void
expect_dropped(Client *client)
{
	GsAnyMessage message;

	do
		CHECK(client_receive(client, &message, PATIENCE_MS) > 0);
	while (message.message.type == GS_MESSAGE_BATCH_FREE);
	CHECK(message.message.type == GS_MESSAGE_FAILED);
	CHECK(message.failed.failure == GS_FAILED_PROTOCOL);
	CHECK(client_receive(client, &message, PATIENCE_MS) == 0);
}

/* The connection can be used for a job of its own. */
static void
check_next_job(Client *client)
{
	job_close(client);
	job_run(client, 9, 3000, false);
}

/* ---------------------------------------------------------------- idle buffers */

/* Memory of the buffers of a client, in all processes. */
static uint64_t
buffer_memory(const Client *client)
{
	struct stat status;

	CHECK(fstat(client->memfd, &status) == 0);
	return (uint64_t) status.st_blocks * 512;
}

/* It has not been idle for longer than since start_ms. */
static void
expect_dropped_as_idle(Client *client, uint64_t start_ms)
{
	GsAnyMessage message;

	CHECK(buffer_memory(client) > 0 || now_ms() - start_ms >= 1000);
	CHECK(client_receive(client, &message, PATIENCE_MS) == GS_MESSAGE_FAILED);
	CHECK(message.failed.failure == GS_FAILED_SHUTDOWN);
	CHECK(client_receive(client, &message, PATIENCE_MS) == 0);
	for (uint64_t until = now_ms() + PATIENCE_MS; buffer_memory(client) > 0 && now_ms() < until;)
		sleep_ms(5);
	CHECK(buffer_memory(client) == 0);
}

/*
 * Buffers that have not been used for a second are freed, except those of a
 * client with a job, or of a former producer, because they may have rows that
 * were not taken.
 */
static void
test_idle_buffers(void **unused)
{
	Service		service = service_start((const char *[]) {"--idle-seconds", "1", NULL});
	Client		consumer = client_open(&service, BUFFER_BYTES, NBUFFERS);
	Client		producer = client_open(&service, PRODUCER_BYTES, NBUFFERS);
	Client		idle = client_open(&service, BUFFER_BYTES, NBUFFERS);
	Table		consumers = table_from(3, NROWS, 0, false);
	Table		producers = table_from(3, NROWS, NROWS / 2, false);
	uint64_t	token = job_share(&consumer, &consumers, 0);
	char		kept[64];
	uint64_t	start;
	GsAnyMessage message;

	job_join(&producer, &producers, token, 1);
	job_load(&producer, &producers, NROWS);
	CHECK(job_end_producer(&producer, false) == NROWS - NROWS / 2);
	memcpy(kept, producer.buffer_pool, sizeof(kept));
	job_load(&consumer, &consumers, NROWS / 2);
	start = now_ms();
	job_run(&idle, 9, 3000, false);

	expect_dropped_as_idle(&idle, start);
	CHECK(client_receive(&producer, &message, 500) == -1);
	CHECK(buffer_memory(&consumer) > 0 && buffer_memory(&producer) > 0);
	CHECK(memcmp(kept, producer.buffer_pool, sizeof(kept)) == 0);

	merge(&consumers, &producers, NROWS);
	job_sort(&consumer, &consumers, GS_ALGORITHM_RADIX);
	job_fetch(&consumer, &consumers, 1, 0);
	start = now_ms();
	job_run(&producer, 8, 1000, false);
	expect_dropped_as_idle(&producer, start);
	client_close(&consumer);
	client_close(&producer);
	client_close(&idle);
	service_check_idle(&service);
	service_stop(&service);
}

/* --------------------------------------------------------------------- order */

/*
 * Participants send in turns, and at the end a late producer.  After
 * PRODUCER_DONE the connection of a producer is free, while the consumer
 * sorts.
 */
static void
check_turns(bool keys_only)
{
	const uint64_t third = NROWS / 3;
	Service		service = service_start(NULL);
	Client		consumer = client_open(&service, BUFFER_BYTES, NBUFFERS);
	Client		producer = client_open(&service, PRODUCER_BYTES, NBUFFERS);
	Client		last = client_open(&service, PRODUCER_BYTES, 2);
	Table		consumers = table_from(3, NROWS, 0, keys_only);
	Table		producers = table_from(3, NROWS, third, keys_only);
	Table		lasts = table_from(3, NROWS, 2 * third, keys_only);
	uint64_t	token = job_share(&consumer, &consumers, 0);

	job_join(&producer, &producers, token, 1);
	for (uint64_t n = 500; n < third; n += 500)
	{
		job_load(&producer, &producers, third + n);
		job_load(&consumer, &consumers, n);
	}
	job_join(&last, &lasts, token, GS_MAX_PARTICIPANTS - 1);
	job_load(&last, &lasts, NROWS);
	CHECK(job_end_producer(&last, false) == NROWS - 2 * third);
	job_load(&consumer, &consumers, third);
	job_load(&producer, &producers, 2 * third);
	CHECK(job_end_producer(&producer, false) == third);
	merge(&consumers, &producers, NROWS);
	merge(&consumers, &lasts, NROWS);
	job_sort(&consumer, &consumers, GS_ALGORITHM_RADIX);
	job_run(&producer, 8, 1000, keys_only);
	job_fetch(&consumer, &consumers, 1, 0);
	client_close(&consumer);
	client_close(&producer);
	client_close(&last);
	service_check_idle(&service);
	service_stop(&service);
}

static void
test_order(void **unused)
{
	check_turns(false);
	check_turns(true);
}

/* The producer has the lower number, so its rows are first, whenever they arrive. */
static void
test_return_input(void **unused)
{
	Service		service = service_start(NULL);
	Client		consumer = client_open(&service, BUFFER_BYTES, NBUFFERS);
	Client		producer = client_open(&service, PRODUCER_BYTES, NBUFFERS);
	Table		consumers = table_from(3, NROWS, NROWS / 2, false);
	Table		producers = table_from(3, NROWS, 0, false);
	uint64_t	token = job_share(&consumer, &consumers, 1);

	job_load(&consumer, &consumers, NROWS);
	job_join(&producer, &producers, token, 0);
	job_load(&producer, &producers, NROWS / 2);
	CHECK(job_end_producer(&producer, false) == NROWS / 2);
	job_return_input(&consumer, &consumers);
	job_close(&consumer);
	client_close(&consumer);
	client_close(&producer);
	service_check_idle(&service);
	service_stop(&service);
}

/* A client joins two jobs in sequence, and then opens its own. */
static void
test_reuse(void **unused)
{
	Pair		pair = pair_begin(NULL, NROWS / 2);
	Client		other = client_open(&pair.service, BUFFER_BYTES, NBUFFERS);
	Table		others = table_from(6, NROWS, 0, false);
	Table		second = table_from(6, NROWS, NROWS / 4, false);
	uint64_t	token = job_share(&other, &others, 0);

	CHECK(token != pair.token);
	job_load(&pair.producer, &pair.producers, NROWS);
	CHECK(job_end_producer(&pair.producer, false) == NROWS / 2);
	job_join(&pair.producer, &second, token, 1);
	job_load(&pair.producer, &second, NROWS);
	CHECK(job_end_producer(&pair.producer, false) == NROWS - NROWS / 4);
	job_run(&pair.producer, 7, 5000, false);

	job_load(&other, &others, NROWS / 4);
	merge(&others, &second, NROWS);
	job_sort(&other, &others, GS_ALGORITHM_RADIX);
	job_fetch(&other, &others, 1, 0);
	job_load(&pair.consumer, &pair.consumers, NROWS / 2);
	merge(&pair.consumers, &pair.producers, NROWS);
	job_sort(&pair.consumer, &pair.consumers, GS_ALGORITHM_RADIX);
	job_fetch(&pair.consumer, &pair.consumers, 1, 0);
	client_close(&other);
	CHECK(service_status(&pair.service).jobs_done >= 1);
	pair_end(&pair);
}

/* ---------------------------------------------------------------------- join */

/* A job that cannot be joined; the connection stays open. */
static void
check_cannot_join(Client *client, const Table *table, uint64_t token)
{
	job_send_join(client, table, token, 1);
	client_expect_failed(client, GS_FAILED_JOB);
	job_close(client);
}

static void
test_tokens(void **unused)
{
	Pair		pair = pair_begin(NULL, NROWS / 2);
	Client		client = client_open(&pair.service, PRODUCER_BYTES, NBUFFERS);
	Client		large = client_open(&pair.service, 2 * BUFFER_BYTES, NBUFFERS);
	Table		table = table_make(3, NROWS, false);
	Table		keys = table_make(3, NROWS, true);
	GsJobJoin	join = {.token = pair.token,.nwords = 2};
	GsAnyMessage message;

	check_cannot_join(&client, &table, 0);
	check_cannot_join(&client, &table, pair.token + 1);
	check_cannot_join(&client, &keys, pair.token);
	check_cannot_join(&large, &table, pair.token);
	client_send(&client, &join, GS_MESSAGE_JOB_JOIN, sizeof(join));
	client_expect_failed(&client, GS_FAILED_JOB);
	job_close(&client);

	/* the token of a job that is not shared is 0 */
	job_open(&large, &table, 0, 0);
	client_expect(&large, GS_MESSAGE_JOB_READY, &message);
	CHECK(message.job_ready.token == 0);
	check_cannot_join(&client, &table, 0);

	/* sorted, then closed */
	job_load(&pair.producer, &pair.producers, NROWS);
	job_end_producer(&pair.producer, false);
	merge(&pair.consumers, &pair.producers, NROWS / 2);
	job_sort(&pair.consumer, &pair.consumers, GS_ALGORITHM_RADIX);
	check_cannot_join(&client, &table, pair.token);
	job_close(&pair.consumer);
	check_cannot_join(&client, &table, pair.token);
	job_run(&client, 1, 2000, false);
	client_close(&client);
	client_close(&large);
	pair_end(&pair);
}

/* SORT and RETURN_INPUT are not legal while there is a producer. */
static void
test_too_early(void **unused)
{
	for (int returns_input = 0; returns_input < 2; returns_input++)
	{
		Pair		pair = pair_begin(NULL, NROWS / 2);

		job_load(&pair.consumer, &pair.consumers, 10);
		job_load(&pair.producer, &pair.producers, NROWS);
		if (returns_input)
			client_send_plain(&pair.consumer, GS_MESSAGE_RETURN_INPUT);
		else
			job_send_sort(&pair.consumer, &pair.consumers, GS_ALGORITHM_RADIX);
		expect_dropped(&pair.consumer);
		expect_job_failed(&pair.producer);
		check_next_job(&pair.producer);
		pair_end(&pair);
	}
}

/* -------------------------------------------------------------------- memory */

/*
 * The device is out of memory for the producer; the rows that it took are
 * sorted with those of the consumer.
 */
static void
test_no_memory(void **unused)
{
	const uint64_t many = 1000000;

	for (int returns_input = 0; returns_input < 2; returns_input++)
	{
		Service		service = service_start((const char *[]) {"--memory-limit", "8", NULL});
		Client		consumer = client_open(&service, BUFFER_BYTES, NBUFFERS);
		Client		producer = client_open(&service, PRODUCER_BYTES, NBUFFERS);
		Client		other = client_open(&service, PRODUCER_BYTES, NBUFFERS);
		Table		consumers = table_from(3, many, 0, false);
		Table		producers = table_from(3, many, 2000, false);
		Table		others = table_from(3, many, 1000, false);
		uint64_t	token = job_share(&consumer, &consumers, 0);
		uint64_t	nrows;

		/* sent while there is memory */
		job_join(&other, &others, token, 1);
		job_load(&other, &others, 2000);
		job_load(&consumer, &consumers, 1000);
		job_join(&producer, &producers, token, 2);
		CHECK_MSG(!job_load(&producer, &producers, many), "there was no end to 8 MB");

		/* a client that does not know of it yet sends this, which is ignored */
		job_send_producer_end(&producer, false);
		nrows = job_end_producer(&producer, true);
		CHECK(nrows > 0 && nrows < producers.nloaded - 2000);
		CHECK(job_end_producer(&other, false) == 1000);
		merge(&consumers, &others, 2000);
		merge(&consumers, &producers, 2000 + nrows);
		if (returns_input)
			job_return_input(&consumer, &consumers);
		else
		{
			job_sort(&consumer, &consumers, GS_ALGORITHM_RADIX);
			job_fetch(&consumer, &consumers, 1, 0);
		}
		job_close(&consumer);
		job_run(&producer, 5, 1000, false);
		client_close(&consumer);
		client_close(&producer);
		client_close(&other);
		service_check_idle(&service);
		service_stop(&service);
	}
}

/* --------------------------------------------------------------- those who go */

typedef enum HowToGo
{
	GO_CLOSE_JOB,
	GO_CLOSE_SOCKET,
	GO_BREAK_RULES,
	WAYS_TO_GO
} HowToGo;

static void
go(Client *client, HowToGo how)
{
	GsMessage	message;

	if (how == GO_CLOSE_JOB)
		job_close(client);
	else if (how == GO_CLOSE_SOCKET)
		shutdown(client->socket, SHUT_RDWR);
	else
		client_send(client, &message, GS_MESSAGE_HELLO, sizeof(message));
}

/* A producer disconnects, with or without rows: the job fails, and nothing is left. */
static void
test_producer_leaves(void **unused)
{
	for (int how = 0; how < WAYS_TO_GO; how++)
		for (uint64_t nrows = 0; nrows <= NROWS / 2; nrows += NROWS / 2)
		{
			Pair		pair = pair_begin(NULL, NROWS / 2);
			Client		other = client_open(&pair.service, PRODUCER_BYTES, NBUFFERS);

			unit_case("way %d, %llu rows", how, (unsigned long long) nrows);
			job_load(&pair.consumer, &pair.consumers, NROWS / 2);
			job_load(&pair.producer, &pair.producers, pair.producers.nloaded + nrows);
			job_join(&other, &pair.consumers, pair.token, 7);
			go(&pair.producer, how);
			expect_job_failed(&pair.consumer);
			expect_job_failed(&other);

			/* messages that were sent before the failure arrived are ignored */
			job_send_sort(&pair.consumer, &pair.consumers, GS_ALGORITHM_RADIX);
			job_send_producer_end(&other, false);
			check_next_job(&other);
			check_cannot_join(&other, &pair.consumers, pair.token);
			check_next_job(&pair.consumer);
			client_close(&other);
			pair_end(&pair);
		}
	unit_case("%s", "");
}

/* The producer is a process that is killed. */
static void
test_producer_dies(void **unused)
{
	Pair		pair = pair_begin(NULL, NROWS / 2);
	int			ends[2];
	char		byte;
	pid_t		child;
	int			status;

	CHECK(pipe(ends) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
	{
		Client		client = client_open(&pair.service, PRODUCER_BYTES, NBUFFERS);

		job_join(&client, &pair.producers, pair.token, 9);
		job_load(&client, &pair.producers, NROWS);
		CHECK(write(ends[1], "x", 1) == 1);
		pause();
	}
	CHECK(read(ends[0], &byte, 1) == 1);
	kill(child, SIGKILL);
	CHECK(waitpid(child, &status, 0) == child);
	expect_job_failed(&pair.consumer);
	expect_job_failed(&pair.producer);
	close(ends[0]);
	close(ends[1]);
	pair_end(&pair);
}

typedef enum ProducerState
{
	PRODUCER_LOADS,
	PRODUCER_ENDS,
	PRODUCER_CLOSES,
	PRODUCER_LEAVES,
	PRODUCER_STATES
} ProducerState;

static Pair
pair_of_slow_device(int delay_ms)
{
	char		spec[40];

	snprintf(spec, sizeof(spec), "copy_in:1:delay=%d", delay_ms);
	return pair_begin((const char *[]) {"--fault", spec, NULL}, NROWS / 2);
}

/*
 * The consumer disconnects while the device reads the buffers of the producer,
 * which then acts in several ways.  It gets the error at once; its buffers are
 * freed when the device has finished.  Returns after how many milliseconds the
 * producer had the error.
 */
static int
consumer_leaves(HowToGo how, ProducerState state, int delay_ms)
{
	Pair		pair = pair_of_slow_device(delay_ms);
	uint64_t	start = now_ms();
	int			heard_ms = 0;

	job_load(&pair.producer, &pair.producers, NROWS / 2 + 500);
	if (state == PRODUCER_ENDS)
		job_send_producer_end(&pair.producer, false);
	go(&pair.consumer, how);
	if (state == PRODUCER_LEAVES)
		shutdown(pair.producer.socket, SHUT_RDWR);
	else
	{
		expect_job_failed(&pair.producer);
		heard_ms = (int) (now_ms() - start);
		if (state == PRODUCER_CLOSES)
		{
			check_next_job(&pair.producer);
			CHECK_MSG((int) (now_ms() - start) >= delay_ms, "the buffers are used after %d ms",
					  (int) (now_ms() - start));
		}
	}
	pair_end(&pair);
	return heard_ms;
}

/* The producer disconnects while the device reads its buffers; the same. */
static int
producer_leaves(HowToGo how, ProducerState state, int delay_ms)
{
	Pair		pair = pair_of_slow_device(delay_ms);
	uint64_t	start = now_ms();
	int			heard_ms;

	job_load(&pair.producer, &pair.producers, NROWS / 2 + 500);
	go(&pair.producer, how);
	expect_job_failed(&pair.consumer);
	heard_ms = (int) (now_ms() - start);
	if (how == GO_CLOSE_JOB)
	{
		job_run(&pair.producer, 9, 3000, false);
		CHECK((int) (now_ms() - start) >= delay_ms);
	}
	pair_end(&pair);
	return heard_ms;
}

/* The error comes before the device has finished; on a busy machine, with a longer delay of the device. */
static void
check_heard(int (*leaves) (HowToGo, ProducerState, int), HowToGo how, ProducerState state)
{
	static const int delays_ms[] = {400, 2000, 10000};
	int			heard_ms = 0;

	unit_case("way %d, state %d", how, state);
	for (int i = 0; i < 3; i++)
	{
		heard_ms = leaves(how, state, delays_ms[i]);
		if (heard_ms < delays_ms[i] * 3 / 4)
		{
			unit_case("%s", "");
			return;
		}
	}
	CHECK_MSG(false, "the error came after %d ms", heard_ms);
}

static void
test_consumer_leaves(void **unused)
{
	for (HowToGo how = 0; how < WAYS_TO_GO; how++)
		for (ProducerState state = 0; state < PRODUCER_STATES; state++)
			check_heard(consumer_leaves, how, state);
}

static void
test_producer_of_slow_device(void **unused)
{
	for (HowToGo how = 0; how < WAYS_TO_GO; how++)
		check_heard(producer_leaves, how, PRODUCER_LOADS);
}

/* PRODUCER_DONE is sent only after the rows have been uploaded. */
static void
test_fed_waits(void **unused)
{
	Pair		pair = pair_begin((const char *[])
								  {
								  "--fault", "copy_in:1:delay=300", NULL
								  }, 0);
	uint64_t	start = now_ms();

	job_load(&pair.producer, &pair.producers, 500);
	CHECK(job_end_producer(&pair.producer, false) == 500);
	CHECK_MSG(now_ms() - start >= 300, "FED came after %d ms", (int) (now_ms() - start));
	merge(&pair.consumers, &pair.producers, 500);
	job_sort(&pair.consumer, &pair.consumers, GS_ALGORITHM_RADIX);
	job_fetch(&pair.consumer, &pair.consumers, 1, 0);
	pair_end(&pair);
}

/* The device fails: all clients get an error. */
static void
test_broken_device(void **unused)
{
	Pair		pair = pair_begin((const char *[]) {"--fault", "copy_in:1:fail", NULL}, 0);
	int			status;

	job_load(&pair.producer, &pair.producers, 100);
	client_expect_dropped(&pair.producer, GS_FAILED_DEVICE);
	client_expect_dropped(&pair.consumer, GS_FAILED_DEVICE);
	client_close(&pair.consumer);
	client_close(&pair.producer);
	status = service_wait(&pair.service);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	service_remove(&pair.service);
}

/* --------------------------------------------------------------------- many */

#define NSESSIONS	16
#define NFEEDERS	8

/* A producer in its own process, with a part of the rows. */
static void
producer(const Service *service, Table *table, uint64_t token, uint32_t participant, uint64_t end)
{
	Client		client = client_open(service, PRODUCER_BYTES, 2);
	uint64_t	nrows = end - table->nloaded;

	job_join(&client, table, token, participant);
	job_load(&client, table, end);
	CHECK(job_end_producer(&client, false) == nrows);
	client_close(&client);
	_exit(0);
}

/* A complete sort with producers. */
static void
run_session(const Service *service, uint64_t seed, uint64_t nrows)
{
	Client		consumer = client_open(service, BUFFER_BYTES, NBUFFERS);
	Table	   *tables = mmap(NULL, sizeof(Table) * NFEEDERS, PROT_READ | PROT_WRITE,
							  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t	share = nrows / (NFEEDERS + 1);
	Table		own = table_from(seed, nrows, 0, seed % 3 == 0);
	pid_t		children[NFEEDERS];
	uint64_t	token = job_share(&consumer, &own, 0);

	CHECK(tables != MAP_FAILED);
	for (uint32_t i = 0; i < NFEEDERS; i++)
	{
		tables[i] = table_from(seed, nrows, share * (i + 1), own.keys_only);
		children[i] = fork();
		CHECK(children[i] >= 0);
		if (children[i] == 0)
			producer(service, &tables[i], token, i + 1,
					 i + 1 == NFEEDERS ? nrows : share * (i + 2));
	}
	job_load(&consumer, &own, share);
	for (int i = 0; i < NFEEDERS; i++)
	{
		int			status;

		CHECK(waitpid(children[i], &status, 0) == children[i]);
		CHECK_MSG(status == 0, "producer %d failed", i);
		merge(&own, &tables[i], nrows);
	}
	job_sort(&consumer, &own, GS_ALGORITHM_RADIX);
	job_fetch(&consumer, &own, 1, 0);
	client_close(&consumer);
	munmap(tables, sizeof(Table) * NFEEDERS);
}

static void
test_many_at_once(void **unused)
{
	Service		service = service_start(NULL);
	pid_t		children[NSESSIONS];

	for (int i = 0; i < NSESSIONS; i++)
	{
		children[i] = fork();
		CHECK(children[i] >= 0);
		if (children[i] == 0)
		{
			run_session(&service, (uint64_t) i, 9000);
			_exit(0);
		}
	}
	for (int i = 0; i < NSESSIONS; i++)
	{
		int			status;

		CHECK(waitpid(children[i], &status, 0) == children[i]);
		CHECK_MSG(status == 0, "session %d failed", i);
	}
	service_check_idle(&service);
	CHECK(service_status(&service).jobs_done == NSESSIONS);
	service_stop(&service);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_return_input),
		cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_too_early),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_idle_buffers),
		cmocka_unit_test(test_producer_leaves),
		cmocka_unit_test(test_producer_dies),
		cmocka_unit_test(test_consumer_leaves),
		cmocka_unit_test(test_producer_of_slow_device),
		cmocka_unit_test(test_fed_waits),
		cmocka_unit_test(test_broken_device),
		cmocka_unit_test(test_many_at_once),
	};

	return cmocka_run_group_tests_name("producers", tests, NULL, NULL);
}
