/*-------------------------------------------------------------------------
 *
 * test_borrowers.c
 *	  Jobs that outgrow their device and borrow memory of others: order, limits,
 *	  parking, and processes that end.
 *
 *-------------------------------------------------------------------------
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/basics.h"
#include "common/device_table.h"
#include "doubles/daemon/device_host.h"
#include "unit_client.h"
#include "unit_driver.h"
#include "unit_cmocka.h"

#define MB	((uint64_t) 1 << 20)
#define LIMIT	(6 * MB)
#define NSERVICES	4
#define NBUFFERS	4

/* -------------------------------------------------------- several services */

static GsDeviceTable table_of_devices;
static Service services[NSERVICES];

/* fault: of the first device */
static void
start(const char *fault)
{
	memset(&table_of_devices, 0, sizeof(table_of_devices));
	for (uint32_t i = 0; i < NSERVICES; i++)
	{
		service_start(&services[i], LIMIT, i == 0 ? fault : NULL);
		service_join(&services[i], &table_of_devices, i);
	}
}

static uint64_t
lent_bytes(void)
{
	uint64_t	nbytes = 0;

	for (int i = 0; i < GS_MAX_DEVICES; i++)
		nbytes += gs_device_lent(&table_of_devices.slots[i]);
	return nbytes;
}

/* The turns of a loop in which a device releases what it has borrowed for jobs that have ended. */
static void
release_returned(Service *service)
{
	while (gs_device_pool_owes(service->pool))
		gs_device_pool_release_idle(service->pool, 1, UINT64_MAX);
}

/* Nothing is left, neither on the devices nor in the table. */
static void
stop_waiting(void)
{
	release_returned(&services[0]);
	assert_int_equal(lent_bytes(), 0);
	for (int i = 0; i < NSERVICES; i++)
	{
		assert_int_equal(table_of_devices.slots[i].committed, 0);
		service_stop(&services[i]);
	}
}

/* Rows of about 212 bytes, which hardly tie; with their records and the sort, 260. */
static TestTable *
make_rows(uint64_t seed, uint64_t nbytes)
{
	Dice		dice = dice_of_seed(seed);
	TestTable  *table = table_make_untied(&dice, nbytes / 220);

	table->max_payload = 400;
	return table;
}

/* The bytes of its rows and records. */
static uint64_t
bytes_of(const TestTable *table)
{
	uint64_t	nbytes = 0;

	for (size_t row = 0; row < table->nrows; row++)
		nbytes += GS_ALIGN_ROW(table_row_bytes(table, row)) + 2 * sizeof(uint64_t);
	return nbytes;
}

/* Sorts on the first device, which then returns what it has borrowed. */
static Outcome
sort_or_drain(const TestTable *table, Dice *dice)
{
	Outcome		outcome = client_sort_or_drain(&services[0], table, dice);

	release_returned(&services[0]);
	return outcome;
}

/* ---------------------------------------------------------- order and limits */

/* Three times the limit of one device. */
static void
test_three_times(void **unused)
{
	TestTable  *table = make_rows(1, 3 * LIMIT + MB / 2);
	Client		client;

	CHECK(bytes_of(table) > 3 * LIMIT);
	start(NULL);
	services[0].expected_bytes = 4 * LIMIT;
	CHECK(client_open(&client, &services[0], table, GS_MIN_BUFFER_BYTES, NBUFFERS));
	CHECK_MSG(client_load(&client, NULL), "it failed: %s", client.text);
	CHECK(lent_bytes() > 2 * LIMIT);
	for (int i = 0; i < NSERVICES; i++)
	{
		CHECK(services[i].pool->used == 0 || i == 0);
		CHECK(services[i].pool->committed + gs_device_pool_lent(services[i].pool) <= LIMIT);
	}
	CHECK_MSG(client_sort(&client, GS_ALGORITHM_RADIX), "it failed: %s", client.text);
	CHECK(client.result.device_bytes > 3 * LIMIT);
	client_fetch(&client, 0);
	client_check_batches(&client, 0, INT32_MAX);
	client_fetch(&client, table->nrows / 2);
	client_check_batches(&client, table->nrows / 2, 5);
	client_close(&client);
	stop_waiting();
	table_free(table);
}

/* Twice the limit of one device, without an estimate, or with one that is too low. */
static void
test_unexpected(void **unused)
{
	TestTable  *table = make_rows(2, 2 * LIMIT);
	Dice		dice = dice_of_seed(2);

	start(NULL);
	CHECK(sort_or_drain(table, &dice) == OUTCOME_SORTED);
	services[0].expected_bytes = LIMIT / 3;
	CHECK(sort_or_drain(table, &dice) == OUTCOME_SORTED);
	stop_waiting();
	table_free(table);
}

/* A job of half a device, as expected, borrows nothing. */
static void
test_fits(void **unused)
{
	TestTable  *table = make_rows(3, LIMIT * 4 / 10);
	Client		client;

	start(NULL);
	services[0].expected_bytes = LIMIT / 2;
	CHECK(client_open(&client, &services[0], table, GS_MIN_BUFFER_BYTES, NBUFFERS));
	CHECK_MSG(client_load(&client, NULL), "it failed: %s", client.text);
	CHECK(lent_bytes() == 0);
	client_close(&client);
	stop_waiting();
	table_free(table);
}

typedef enum Refusal
{
	REFUSAL_FULL,
	REFUSAL_WAITING,
	REFUSAL_KIND,
	REFUSAL_FAILED,
	REFUSAL_STARTING,
	REFUSAL_STALLED,
	REFUSAL_NO_MEMORY,
	NREFUSALS
} Refusal;

/* Devices that lend nothing: the job is refused as without them. */
static void
test_refusals(void **unused)
{
	TestTable  *table = make_rows(4, 2 * LIMIT);
	Dice		dice = dice_of_seed(4);

	for (int refusal = 0; refusal < NREFUSALS; refusal++)
	{
		GsJobMemory others[NSERVICES];

		unit_case("refusal %d", refusal);
		start(refusal == REFUSAL_NO_MEMORY ? "allocate_at:1:none" : NULL);
		for (int i = 1; i < NSERVICES; i++)
		{
			GsDeviceSlot *slot = &table_of_devices.slots[i];

			CHECK(gs_device_pool_admit(services[i].pool, refusal == REFUSAL_FULL ? LIMIT : 0, &others[i]));
			slot->nwaiting = refusal == REFUSAL_WAITING;
			if (refusal == REFUSAL_KIND)
				slot->kind = GS_DEVICE_KIND_CUDA;
			if (refusal == REFUSAL_FAILED)
				slot->state = GS_DEVICE_FAILED;
			if (refusal == REFUSAL_STARTING)
				slot->state = GS_DEVICE_STARTING;
			slot->turn_us = refusal == REFUSAL_STALLED ? gs_clock_us() - 1000000 : 0;
		}
		CHECK(sort_or_drain(table, &dice) == OUTCOME_FULL_IN_LOAD);
		assert_int_equal(lent_bytes(), 0);
		for (int i = 1; i < NSERVICES; i++)
			gs_device_pool_free_all(&others[i]);
		stop_waiting();
	}
	unit_case("%s", "");
	table_free(table);
}

static void *(*allocate_at) (GsDevice *device, int peer, size_t nbytes);

static void *
allocate_not_at_2(GsDevice *device, int peer, size_t nbytes)
{
	return peer == 2 ? NULL : allocate_at(device, peer, nbytes);
}

/* The first device cannot allocate memory at device 2 from now on; ops is for its calls. */
static void
fail_at_2(GsDeviceOps *ops)
{
	*ops = *services[0].device->ops;
	allocate_at = ops->allocate_at;
	ops->allocate_at = allocate_not_at_2;
	services[0].device->ops = ops;
}

/* A lender that has no memory, although its slot says so, is passed over. */
static void
test_next_lender(void **unused)
{
	GsDeviceOps ops;
	GsJobMemory memory;

	start(NULL);
	fail_at_2(&ops);
	CHECK(gs_device_pool_admit(services[0].pool, 0, &memory));
	CHECK(gs_device_pool_borrow_rows(&memory, MB, 0) != NULL);
	assert_int_equal(memory.borrowed, MB);
	assert_int_equal(gs_device_pool_lent(services[1].pool), MB);
	CHECK(gs_device_pool_borrow_rows(&memory, MB, 0) != NULL);
	assert_int_equal(gs_device_pool_lent(services[2].pool), 0);
	assert_int_equal(gs_device_pool_lent(services[3].pool), MB);
	assert_int_equal(services[0].pool->used, 0);
	CHECK(gs_device_pool_allocate_rows(&memory, MB, LIMIT - MB) != NULL);
	CHECK(gs_device_pool_allocate_rows(&memory, MB, LIMIT - 2 * MB + 1) == NULL);
	CHECK(gs_device_pool_borrow_rows(&memory, MB, LIMIT - MB + 1) == NULL);
	assert_int_equal(memory.peak, 3 * MB);
	gs_device_pool_free_all(&memory);
	stop_waiting();
}

/*
 * A lender is found by its identity: when its gpusortd has started again, its number may
 * stand for another device, or for none that this process has.
 */
static void
test_identity(void **unused)
{
	const GsDeviceIdentity five = gs_device_host_identity(5);
	GsDeviceSlot *slot = &table_of_devices.slots[1];
	GsDeviceOps ops;
	GsJobMemory memory;

	start(NULL);
	for (uint32_t i = 2; i < NSERVICES; i++)
		table_of_devices.slots[i].state = GS_DEVICE_FAILED;
	fail_at_2(&ops);
	CHECK(gs_device_pool_admit(services[0].pool, 0, &memory));
	CHECK(gs_device_pool_borrow_rows(&memory, MB, 0) != NULL);
	slot->identity[1] = 2;
	CHECK(gs_device_pool_borrow_rows(&memory, MB, 0) == NULL);
	slot->identity[1] = five.words[1];
	CHECK(gs_device_pool_borrow_rows(&memory, MB, 0) != NULL);
	slot->identity[0] = 1;
	CHECK(gs_device_pool_borrow_rows(&memory, MB, 0) == NULL);
	assert_int_equal(gs_device_pool_lent(services[1].pool), 2 * MB);
	gs_device_pool_free_all(&memory);
	stop_waiting();
}

/* Any limits and tables: rows that were taken are sorted, if they do not tie. */
static void
test_any_limits(void **unused)
{
	int			outcomes[NOUTCOMES] = {0};

	for (uint64_t seed = 1000; seed < 1150; seed++)
	{
		Dice		dice = dice_of_seed(seed);
		TestTable  *table = make_rows(seed, MB + dice_below(&dice, 8 * MB));

		unit_case("seed %llu", (unsigned long long) seed);
		table->keys_only = seed % 2 == 0;
		memset(&table_of_devices, 0, sizeof(table_of_devices));
		for (uint32_t i = 0; i < NSERVICES; i++)
		{
			service_start(&services[i], MB / 2 + dice_below(&dice, 3 * MB / 2), NULL);
			service_join(&services[i], &table_of_devices, i);
		}
		if (dice_one_in(&dice, 2))
			services[0].expected_bytes = dice_below(&dice, 8 * MB);
		outcomes[sort_or_drain(table, &dice)]++;
		stop_waiting();
		table_free(table);
	}
	unit_case("%s", "");
	print_message("# sorted %d, full in the load %d\n", outcomes[OUTCOME_SORTED], outcomes[OUTCOME_FULL_IN_LOAD]);
	CHECK(outcomes[OUTCOME_SORTED] > 20);
	CHECK(outcomes[OUTCOME_FULL_IN_LOAD] > 10);
	assert_int_equal(outcomes[OUTCOME_FULL_IN_SORT], 0);
}

/* Each allocation on other devices fails in turn, once the memory there is used up. */
static void
test_memory_runs_out(void **unused)
{
	TestTable  *table = make_rows(6, 3 * LIMIT);
	int			outcomes[NOUTCOMES] = {0};
	Dice		dice = dice_of_seed(6);

	for (int call = 1; outcomes[OUTCOME_SORTED] == 0; call++)
	{
		char		fault[40];

		snprintf(fault, sizeof(fault), "allocate_at:%d:none", call);
		unit_case("%s", fault);
		CHECK(call < 1000);
		start(fault);
		services[0].expected_bytes = 4 * LIMIT;
		outcomes[sort_or_drain(table, &dice)]++;
		stop_waiting();
	}
	unit_case("%s", "");
	CHECK(outcomes[OUTCOME_FULL_IN_LOAD] > 3);
	assert_int_equal(outcomes[OUTCOME_FULL_IN_SORT], 0);
	table_free(table);
}

/* ------------------------------------------------------------------ the lender */

/* Starts all, of which only service 1 can lend to service 0. */
static GsDevicePool *
start_lender(void)
{
	start(NULL);
	for (uint32_t i = 2; i < NSERVICES; i++)
		table_of_devices.slots[i].state = GS_DEVICE_FAILED;
	return services[1].pool;
}

/* Its jobs do not get what it has lent, but always what they have reserved. */
static void
test_lender(void **unused)
{
	GsDevicePool *lender;
	GsJobMemory borrower;
	GsJobMemory job;
	GsJobMemory other;

	lender = start_lender();
	CHECK(gs_device_pool_admit(lender, MB, &job));
	CHECK(gs_device_pool_admit(services[0].pool, 0, &borrower));
	CHECK(gs_device_pool_borrow_rows(&borrower, 4 * MB, 0) != NULL);
	assert_int_equal(gs_device_pool_lent(lender), 4 * MB);
	assert_int_equal(gs_device_pool_uncommitted(lender), MB);
	assert_int_equal(gs_device_pool_available(&job), 2 * MB);
	CHECK(!gs_device_pool_admit(lender, MB + 1, &other));
	CHECK(gs_device_pool_admit(lender, MB, &other));
	CHECK(gs_device_pool_borrow_rows(&borrower, 1, 0) == NULL);
	assert_int_equal(borrower.borrowed, 4 * MB);
	assert_int_equal(gs_device_pool_available(&job), MB);
	CHECK(gs_device_pool_allocate(&other, MB) != NULL);
	CHECK(gs_device_pool_allocate(&other, 1) == NULL);

	/* another process is about to find out that it cannot have so much */
	table_of_devices.slots[1].lent[5] += 3 * MB;
	assert_int_equal(gs_device_pool_available(&job), MB);
	assert_int_equal(gs_device_pool_uncommitted(lender), 0);
	CHECK(gs_device_pool_allocate(&job, MB) != NULL);
	CHECK(gs_device_pool_allocate(&job, 1) == NULL);
	table_of_devices.slots[1].lent[5] -= 3 * MB;

	gs_device_pool_free_all(&borrower);
	release_returned(&services[0]);
	CHECK(gs_device_pool_allocate(&job, 4 * MB) != NULL);
	gs_device_pool_free_all(&job);
	gs_device_pool_free_all(&other);
	stop_waiting();
}

/* Blocks that it keeps for its next job are released if others need the memory. */
static void
test_idle_blocks(void **unused)
{
	GsDevicePool *lender;
	GsJobMemory borrower;
	GsJobMemory job;

	lender = start_lender();
	CHECK(gs_device_pool_can_lend(lender));
	CHECK(gs_device_pool_admit(lender, 0, &job));
	for (int i = 0; i < 5; i++)
		CHECK(gs_device_pool_allocate(&job, MB) != NULL);
	gs_device_pool_free_all(&job);
	assert_int_equal(gs_device_pool_reserved(lender), 5 * MB);
	CHECK(gs_device_pool_admit(services[0].pool, 0, &borrower));
	CHECK(gs_device_pool_borrow_rows(&borrower, 4 * MB, 0) != NULL);
	assert_int_equal(borrower.borrowed, 4 * MB);
	gs_device_pool_release_idle(lender, 1000, 1000000);
	assert_int_equal(gs_device_pool_reserved(lender), 2 * MB);
	gs_device_pool_free_all(&borrower);
	stop_waiting();
}

/* Blocks that a turn of the loop releases. */
#define PER_TURN	16

/*
 * Many borrowed blocks are released some in each turn, before idle ones of the device itself;
 * the lenders count them as long.
 */
static void
test_many_loans(void **unused)
{
	enum
	{
		NBLOCKS = 100,
		NOWN = 20
	};
	const uint64_t block_bytes = 64 << 10;
	GsDevicePool *pool;
	GsJobMemory memory;
	int			nleft = NBLOCKS + NOWN;

	start(NULL);
	pool = services[0].pool;
	CHECK(gs_device_pool_admit(pool, 0, &memory));
	for (int i = 0; i < NBLOCKS; i++)
		CHECK(gs_device_pool_borrow_rows(&memory, block_bytes, 0) != NULL);
	for (int i = 0; i < NOWN; i++)
		CHECK(gs_device_pool_allocate(&memory, block_bytes) != NULL);
	CHECK(!gs_device_pool_owes(pool));
	gs_device_pool_free_all(&memory);
	CHECK(gs_device_pool_owes(pool) && pool->borrowed == 0);
	assert_int_equal(lent_bytes(), NBLOCKS * block_bytes);
	for (bool more = true; more;)
	{
		more = gs_device_pool_release_idle(pool, 1000, 0);
		nleft -= nleft < PER_TURN ? nleft : PER_TURN;
		CHECK(more == (nleft > 0));
		CHECK(gs_device_pool_owes(pool) == (nleft > NOWN));
		assert_int_equal(lent_bytes(), (nleft > NOWN ? nleft - NOWN : 0) * block_bytes);
		assert_int_equal(gs_device_pool_reserved(pool), (nleft < NOWN ? nleft : NOWN) * block_bytes);
	}
	assert_int_equal(nleft, 0);
	stop_waiting();
}

/* So are idle blocks that take memory that has been lent. */
static void
test_many_idle_blocks(void **unused)
{
	const uint64_t block_bytes = 64 << 10;
	GsDevicePool *lender;
	GsJobMemory job;
	GsJobMemory borrower;
	uint64_t	reserved = 0;

	lender = start_lender();
	CHECK(gs_device_pool_admit(lender, 0, &job));
	while (gs_device_pool_allocate(&job, block_bytes) != NULL)
		reserved += block_bytes;
	gs_device_pool_free_all(&job);
	CHECK(!gs_device_pool_owes(lender));
	CHECK(gs_device_pool_admit(services[0].pool, 0, &borrower));
	CHECK(gs_device_pool_borrow_rows(&borrower, 4 * MB, 0) != NULL);
	while (gs_device_pool_owes(lender))
	{
		uint64_t	before = gs_device_pool_reserved(lender);

		gs_device_pool_release_idle(lender, 1000, UINT64_MAX);
		CHECK(before - gs_device_pool_reserved(lender) <= PER_TURN * block_bytes);
	}
	assert_int_equal(gs_device_pool_reserved(lender), reserved - 4 * MB);
	gs_device_pool_free_all(&borrower);
	stop_waiting();
}

/* What a killed gpusortd leaves in the table. */
static void
test_clear(void **unused)
{
	GsJobMemory memory;
	GsDeviceSlot *slot = &table_of_devices.slots[1];

	start(NULL);
	CHECK(gs_device_borrow(&table_of_devices.slots[0], 1, MB) && gs_device_borrow(&table_of_devices.slots[2], 1, MB));
	CHECK(gs_device_pool_admit(services[1].pool, MB, &memory));
	slot->nwaiting = slot->njobs = 1;
	slot->turn_us = 1;
	assert_int_equal(gs_device_left(&table_of_devices.slots[0]), LIMIT - MB);
	gs_device_clear(&table_of_devices, 1);
	assert_int_equal(lent_bytes(), 0);
	assert_int_equal(gs_device_left(&table_of_devices.slots[0]), LIMIT);
	assert_int_equal(gs_device_left(slot), LIMIT);
	CHECK(slot->state == GS_DEVICE_FAILED && slot->nwaiting == 0 && slot->njobs == 0 && slot->turn_us == 0);
	gs_device_pool_free_all(&memory);
	stop_waiting();
}

/* A parked job has nothing on any device. */
static void
test_parking(void **unused)
{
	TestTable  *table = make_rows(7, 2 * LIMIT);
	GsParkFolder *folder = gs_park_folder_create("/tmp", (uint64_t) 1 << 30);
	Client		client;

	start(NULL);
	services[0].expected_bytes = 3 * LIMIT;
	CHECK(client_open(&client, &services[0], table, GS_MIN_BUFFER_BYTES, NBUFFERS));
	CHECK(client_load(&client, NULL) && client_sort(&client, GS_ALGORITHM_RADIX));
	CHECK(lent_bytes() > LIMIT / 2);
	gs_job_poll(client.job);
	CHECK(services[0].pool->borrowed > 0);
	table_of_devices.slots[0].nwaiting = 1;
	CHECK(!gs_device_pool_is_wanted(gs_job_memory(client.job)));
	table_of_devices.slots[3].nwaiting = 1;
	CHECK(gs_device_pool_is_wanted(gs_job_memory(client.job)));
	CHECK(gs_job_can_be_parked(client.job) && gs_job_park(client.job, folder));
	while (gs_job_is_being_parked(client.job))
		gs_job_poll(client.job);
	release_returned(&services[0]);
	CHECK(services[0].pool->used == 0 && lent_bytes() == 0);
	CHECK(services[0].pool->borrowed == 0 && !gs_device_pool_is_wanted(gs_job_memory(client.job)));
	client_fetch(&client, 0);
	client_check_batches(&client, 0, INT32_MAX);
	client_close(&client);
	gs_park_folder_destroy(folder);
	stop_waiting();
	table_free(table);
}

/* ------------------------------------------------------------------ processes */

/* What processes may use of each device, as they know from the outcome of their calls. */
typedef struct Shared
{
	GsDeviceTable table;
	_Atomic uint64_t granted[2];
	_Atomic bool wrong;
} Shared;

#define UNITS	10				/* of a device, which both want most of */

/* Uses memory for a moment. */
static void
use(Shared *shared, int device, uint64_t nbytes)
{
	atomic_fetch_add(&shared->granted[device], nbytes);
	for (int i = 0; i < 20; i++)
		if (shared->granted[device] > UNITS)
			shared->wrong = true;
	atomic_fetch_sub(&shared->granted[device], nbytes);
}

/* Commits memory of its own device, and borrows of the other one, or not. */
static void
hammer(Shared *shared, int own, int nrounds)
{
	GsDeviceSlot *slot = &shared->table.slots[own];
	GsDeviceSlot *lender = &shared->table.slots[1 - own];
	Dice		dice = dice_of_seed((uint64_t) own);

	for (int i = 0; i < nrounds; i++)
	{
		uint64_t	nbytes = 1 + dice_below(&dice, UNITS);

		if (gs_device_commit(slot, nbytes))
			use(shared, own, nbytes);
		gs_device_commit(slot, 0);
		nbytes = 1 + dice_below(&dice, UNITS);
		if (gs_device_borrow(lender, (uint32_t) own, nbytes))
		{
			use(shared, 1 - own, nbytes);
			gs_device_return(lender, (uint32_t) own, nbytes);
		}
	}
}

/* Processes of two devices never use more than there is. */
static void
test_processes(void **unused)
{
	Shared	   *shared = mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t		pids[2];

	CHECK(shared != MAP_FAILED);
	for (int i = 0; i < 2; i++)
		shared->table.slots[i].memory_limit = UNITS;
	for (int i = 0; i < 2; i++)
	{
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (pids[i] == 0)
		{
			hammer(shared, i, 3000000);
			_exit(0);
		}
	}
	for (int i = 0; i < 2; i++)
	{
		int			status;

		CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
	}
	CHECK_MSG(!shared->wrong, "more was used than there is");
	for (int i = 0; i < 2; i++)
		CHECK(gs_device_left(&shared->table.slots[i]) == UNITS);
	munmap(shared, sizeof(Shared));
}

/* What a process that is killed had borrowed is returned when the next one starts. */
static void
test_killed(void **unused)
{
	GsDeviceTable *table = mmap(NULL, sizeof(GsDeviceTable), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	Service		lender;
	Service		again;
	GsJobMemory job;
	pid_t		pid;
	int			status;

	CHECK(table != MAP_FAILED);
	service_start(&lender, LIMIT, NULL);
	service_join(&lender, table, 1);
	table->slots[1].lent[3] = MB;	/* of another one */
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
	{
		Service		borrower;

		service_start(&borrower, LIMIT, NULL);
		service_join(&borrower, table, 0);
		CHECK(gs_device_pool_admit(borrower.pool, LIMIT, &job));
		CHECK(gs_device_pool_borrow_rows(&job, 4 * MB, 0) != NULL);
		raise(SIGKILL);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(gs_device_pool_lent(lender.pool), 5 * MB);
	CHECK(!gs_device_pool_admit(lender.pool, 2 * MB, &job));
	service_start(&again, LIMIT, NULL);
	service_join(&again, table, 0);
	assert_int_equal(gs_device_pool_lent(lender.pool), MB);
	assert_int_equal(table->slots[0].committed, 0);
	CHECK(gs_device_pool_admit(lender.pool, 5 * MB, &job));
	gs_device_pool_free_all(&job);
	service_stop(&again);
	service_stop(&lender);
	munmap(table, sizeof(GsDeviceTable));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_three_times),
		cmocka_unit_test(test_unexpected),
		cmocka_unit_test(test_fits),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_next_lender),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_any_limits),
		cmocka_unit_test(test_memory_runs_out),
		cmocka_unit_test(test_lender),
		cmocka_unit_test(test_idle_blocks),
		cmocka_unit_test(test_many_loans),
		cmocka_unit_test(test_many_idle_blocks),
		cmocka_unit_test(test_clear),
		cmocka_unit_test(test_parking),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_killed)
	};

	return cmocka_run_group_tests_name("borrowers", tests, NULL, NULL);
}
