/*-------------------------------------------------------------------------
 *
 * test_devices.c
 *	  Which devices there are, their table, and which one does a job.
 *
 *-------------------------------------------------------------------------
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/device_table.h"
#include "doubles/wrap.h"
#include "unit_cmocka.h"
#include "unit_random.h"

const char	gs_build_id[GS_BUILD_ID_BYTES + 1] = "0123456789abcdef";

#define MB	((uint64_t) 1 << 20)

/* ---------------------------------------------------------- gpusort.device */

/* This program has the parser of a test build; that of the product is the real one. */
GS_WRAP(gs_device_choice_parse);

static void
check_choice(const char *text, const char *numbers)
{
	GsDeviceChoice choice;
	char		found[100] = "";

	unit_case("%s", text);
	CHECK(gs_device_choice_parse(text, &choice));
	CHECK(choice.is_auto == (strcmp(text, "auto") == 0));
	for (uint32_t i = 0; i < 32; i++)
		if ((choice.devices & GS_DEVICE_BIT(i)) != 0)
			sprintf(found + strlen(found), "%s%u", found[0] == '\0' ? "" : " ", i);
	CHECK_MSG(strcmp(found, numbers) == 0, "\"%s\"", found);
	unit_case("%s", "");
}

static void
test_choice(void **unused)
{
	static const char *const wrong[] = {
		"", "cuda", "Auto", "auto ", "host ", "hosts", "host:", "host:0", "host:17", "host:1,2", "host:-1",
		"host:004", "host: 4", "-1", "16", "99", "100", "0,", ",0", "0,,1", "0 1", "0,0", "3,1,3", "0 ,1", "0x1", " 0",
		"0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16"
	};
	GsDeviceChoice choice;

	check_choice("auto", "");
	check_choice("0", "0");
	check_choice("15", "15");
	check_choice("2,0", "0 2");
	check_choice("0, 1,  7", "0 1 7");
	check_choice("0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15", "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
	check_choice("host", "0");
	check_choice("host:1", "0");
	check_choice("host:4", "0 1 2 3");
	check_choice("host:16", "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK_MSG(!gs_device_choice_parse(wrong[i], &choice), "\"%s\"", wrong[i]);

	CHECK(__real_gs_device_choice_parse("2,0", &choice) && choice.devices == 5);
	CHECK(!__real_gs_device_choice_parse("host", &choice));
	CHECK(!__real_gs_device_choice_parse("host:4", &choice));
}

/* ------------------------------------------------------------------ the table */

static char folder[] = "/tmp/gpusort-devices-XXXXXX";
static char path[sizeof(folder) + 10];	/* of the table, without the build ID */
static char file[sizeof(path) + 20];

static int
begin(void **unused)
{
	if (mkdtemp(folder) == NULL)
		return -1;
	sprintf(path, "%s/table", folder);
	sprintf(file, "%s.%s", path, gs_build_id);
	return 0;
}

static int
end(void **unused)
{
	unlink(file);
	return rmdir(folder);
}

static void
write_file(const void *bytes, size_t nbytes)
{
	int			fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0 && write(fd, bytes, nbytes) == (ssize_t) nbytes);
	close(fd);
}

static void
run(GsDeviceSlot *slot, GsDeviceKind kind, const char *name)
{
	slot->kind = kind;
	strcpy(slot->name, name);
	slot->pid = (uint32_t) getpid();
	slot->state = GS_DEVICE_RUNNING;
}

/* What one process writes, others read. */
static void
test_table(void **unused)
{
	GsDeviceTable *table;
	GsDeviceTable *same;
	GsDeviceTable copy;
	struct stat status;

	CHECK(!gs_device_table_read(path, &copy));
	table = gs_device_table_map(path);
	same = gs_device_table_map(path);
	CHECK(table != NULL && same != NULL && table != same);
	CHECK(stat(file, &status) == 0 && (status.st_mode & 0777) == 0600 &&
		  status.st_size == sizeof(GsDeviceTable));
	CHECK(gs_device_table_read(path, &copy) && gs_device_table_count(&copy) == 0);

	run(&table->slots[3], GS_DEVICE_KIND_CUDA, "three");
	table->slots[3].memory_limit = 7 * MB;
	table->slots[15].state = GS_DEVICE_STARTING;
	CHECK(same->slots[3].memory_limit == 7 * MB);
	CHECK(gs_device_table_read(path, &copy) && gs_device_table_count(&copy) == 2);
	CHECK(copy.slots[3].state == GS_DEVICE_RUNNING && copy.slots[15].state == GS_DEVICE_STARTING);
	CHECK(strcmp(copy.slots[3].name, "three") == 0 && copy.slots[3].memory_limit == 7 * MB);
	unlink(file);
	CHECK(!gs_device_table_read(path, &copy));
}

/* A gpusortd that was killed has not said so. */
static void
test_dead_process(void **unused)
{
	GsDeviceTable *table = gs_device_table_map(path);
	GsDeviceTable copy;
	pid_t		child = fork();

	if (child == 0)
		_exit(0);
	CHECK(table != NULL && child > 0 && waitpid(child, NULL, 0) == child);
	run(&table->slots[0], GS_DEVICE_KIND_HOST, "host");
	run(&table->slots[1], GS_DEVICE_KIND_HOST, "host");
	table->slots[1].pid = (uint32_t) child;
	CHECK(gs_device_table_read(path, &copy));
	CHECK(copy.slots[0].state == GS_DEVICE_RUNNING && copy.slots[1].state == GS_DEVICE_FAILED);
	unlink(file);
}

/* Two gpusortd never use one device, whatever numbers it has for them. */
static void
test_claim(void **unused)
{
	static GsDeviceTable table;
	const GsDeviceIdentity a = {{1, 2}};
	const GsDeviceIdentity b = {{2, 1}};
	const GsDeviceIdentity c = {{1, 1}};
	const GsDeviceIdentity unknown = {{0, 0}};
	pid_t		child = fork();

	if (child == 0)
		_exit(0);
	CHECK(child > 0 && waitpid(child, NULL, 0) == child);
	for (int i = 0; i < 4; i++)
	{
		table.slots[i].pid = (uint32_t) getpid();
		table.slots[i].state = GS_DEVICE_STARTING;
	}
	CHECK(gs_device_table_claim(&table, 1, a) == -1);
	CHECK(gs_is_same_device(gs_device_slot_identity(&table.slots[1]), a));
	CHECK(gs_device_table_claim(&table, 1, a) == -1);
	CHECK(gs_device_table_claim(&table, 2, b) == -1);
	CHECK(gs_device_table_claim(&table, 3, c) == -1);
	table.slots[1].state = table.slots[2].state = GS_DEVICE_RUNNING;

	/* starting again after another device was lost, it finds that of device 2 */
	CHECK(gs_device_table_claim(&table, 1, b) == 2);
	CHECK(gs_device_table_claim(&table, 0, c) == 3);

	/* it is free when that has ended, by itself or not */
	table.slots[2].state = GS_DEVICE_FAILED;
	CHECK(gs_device_table_claim(&table, 1, b) == -1);
	table.slots[3].pid = (uint32_t) child;
	CHECK(gs_device_table_claim(&table, 0, c) == -1);

	/* which is not known is no other's */
	CHECK(gs_device_table_claim(&table, 0, unknown) == -1);
	CHECK(gs_device_table_claim(&table, 1, unknown) == -1);
}

/* Two processes that claim a device at the same time. */
typedef struct Claims
{
	GsDeviceTable table;
	_Atomic int	arrived[2];
	bool		got[2];
	bool		wrong;
} Claims;

/* Waits until both are there. */
static void
meet(Claims *claims, int own, int point)
{
	claims->arrived[own] = point;
	while (claims->arrived[1 - own] < point)
		sched_yield();
}

/* Not both get it. */
static void
claim_often(Claims *claims, int own)
{
	for (int round = 1; round <= 2000; round++)
	{
		const GsDeviceIdentity identity = {{(uint64_t) round, 1}};

		meet(claims, own, 2 * round);
		claims->got[own] = gs_device_table_claim(&claims->table, (uint32_t) own, identity) < 0;
		meet(claims, own, 2 * round + 1);
		if (own == 0 && claims->got[0] && claims->got[1])
			claims->wrong = true;
	}
}

static void
test_claims_at_once(void **unused)
{
	Claims	   *claims = mmap(NULL, sizeof(Claims), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t		child;
	int			status;

	CHECK(claims != MAP_FAILED);
	for (int i = 0; i < 2; i++)
		run(&claims->table.slots[i], GS_DEVICE_KIND_CUDA, "same");
	child = fork();
	CHECK(child >= 0);
	claim_often(claims, child == 0 ? 1 : 0);
	if (child == 0)
		_exit(0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(!claims->wrong);
	munmap(claims, sizeof(Claims));
}

/* Files that no gpusortd writes. */
static void
test_hostile_table(void **unused)
{
	static unsigned char bytes[sizeof(GsDeviceTable) + 1];
	GsDeviceTable copy;
	GsPlacementRequest request = {.expected_bytes = MB};
	char		target[sizeof(path) + 10];

	for (size_t nbytes = 0; nbytes < sizeof(GsDeviceTable); nbytes += 1 + nbytes / 3)
	{
		write_file(bytes, nbytes);
		CHECK(!gs_device_table_read(path, &copy));
		if (nbytes > 0)
			CHECK(gs_device_table_map(path) == NULL);
	}
	write_file(bytes, sizeof(GsDeviceTable) + 1);
	CHECK(gs_device_table_map(path) == NULL);

	for (uint64_t seed = 0; seed < 2000; seed++)
	{
		Dice		dice = dice_of_seed(seed);

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = seed % 4 == 0 ? 0xFF : (unsigned char) dice_below(&dice, seed % 2 == 0 ? 256 : 3);
		write_file(bytes, sizeof(GsDeviceTable));
		CHECK(gs_device_table_read(path, &copy));
		for (int i = 0; i < GS_MAX_DEVICES; i++)
		{
			CHECK(copy.slots[i].state <= GS_DEVICE_FAILED);
			CHECK(memchr(copy.slots[i].name, 0, GS_DEVICE_NAME_BYTES) != NULL);
		}
		CHECK(gs_device_table_count(&copy) <= GS_MAX_DEVICES);
		CHECK(gs_device_place(&copy, &request) < GS_MAX_DEVICES);
	}
	unlink(file);

	/* a link elsewhere is not followed */
	sprintf(target, "%s/target", folder);
	CHECK(symlink(target, file) == 0);
	CHECK(gs_device_table_map(path) == NULL && !gs_device_table_read(path, &copy));
	CHECK(access(target, F_OK) != 0);
	unlink(file);
}

/* ------------------------------------------------------------------ placement */

/* A table of n running devices with 100 MB each. */
static GsDeviceTable
table_of(int n)
{
	GsDeviceTable table;

	memset(&table, 0, sizeof(table));
	for (int i = 0; i < n; i++)
	{
		run(&table.slots[i], GS_DEVICE_KIND_HOST, "host");
		table.slots[i].memory_limit = 100 * MB;
	}
	return table;
}

static int
place(const GsDeviceTable *table, uint64_t expected_bytes, GsDeviceSet kept)
{
	GsPlacementRequest request = {.expected_bytes = expected_bytes,.kept = kept};

	return gs_device_place(table, &request);
}

static void
test_no_device(void **unused)
{
	GsDeviceTable table = table_of(3);
	GsPlacementRequest request = {0};

	request.only_cuda = true;
	CHECK(gs_device_place(&table, &request) == -1);
	table.slots[2].kind = GS_DEVICE_KIND_CUDA;
	CHECK(gs_device_place(&table, &request) == 2);
	request.excluded = GS_DEVICE_BIT(2);
	CHECK(gs_device_place(&table, &request) == -1);
	request.only_cuda = false;
	CHECK(gs_device_place(&table, &request) == 0);
	table.slots[0].state = GS_DEVICE_FAILED;
	CHECK(gs_device_place(&table, &request) == 1);
	table.slots[1].state = GS_DEVICE_STARTING;
	CHECK(gs_device_place(&table, &request) == -1);
	memset(&table, 0, sizeof(table));
	CHECK(gs_device_place(&table, &request) == -1);
}

/* The memory that the job would get decides first. */
static void
test_space(void **unused)
{
	GsDeviceTable table = table_of(3);

	table.slots[0].committed = 90 * MB;
	table.slots[1].committed = 60 * MB;
	table.slots[2].committed = 70 * MB;
	table.slots[1].njobs = 9;
	CHECK(place(&table, 40 * MB, 0) == 1);
	CHECK(place(&table, 80 * MB, 0) == 1);
	CHECK(place(&table, 40 * MB, GS_DEVICE_BIT(2)) == 1);

	/* it fits two of them, so the number of jobs decides */
	CHECK(place(&table, 30 * MB, 0) == 2);
	CHECK(place(&table, 5 * MB, 0) == 0);
	CHECK(place(&table, 0, 0) == 0);

	/* borrowers may have committed more than the limit */
	table.slots[1].committed = UINT64_MAX;
	CHECK(place(&table, 40 * MB, 0) == 2);
}

static void
test_jobs(void **unused)
{
	GsDeviceTable table = table_of(4);

	table.slots[0].njobs = 2;
	table.slots[1].njobs = 1;
	table.slots[2].njobs = 1;
	table.slots[3].nwaiting = 2;
	CHECK(place(&table, MB, 0) == 1);
	table.slots[1].nwaiting = 1;
	CHECK(place(&table, MB, 0) == 2);

	/* one more does not count where there is a connection; two do */
	CHECK(place(&table, MB, GS_DEVICE_BIT(1)) == 1);
	CHECK(place(&table, MB, GS_DEVICE_BIT(1) | GS_DEVICE_BIT(2)) == 2);
	table.slots[2].njobs = 0;
	CHECK(place(&table, MB, GS_DEVICE_BIT(1)) == 2);
}

/* Processes that see the same choose different devices; one process the same again. */
static void
test_spread(void **unused)
{
	GsDeviceTable table = table_of(4);
	int			chosen[GS_MAX_DEVICES] = {0};
	GsPlacementRequest request = {.expected_bytes = MB};

	table.slots[1].state = GS_DEVICE_FAILED;
	for (request.seed = 1000; request.seed < 1030; request.seed++)
	{
		int			device = gs_device_place(&table, &request);

		CHECK(gs_device_place(&table, &request) == device);
		chosen[device]++;
		request.kept = GS_DEVICE_BIT(3);
		CHECK(gs_device_place(&table, &request) == 3);
		request.kept = 0;
	}
	CHECK(chosen[0] == 10 && chosen[1] == 0 && chosen[2] == 10 && chosen[3] == 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_dead_process),
		cmocka_unit_test(test_claim),
		cmocka_unit_test(test_claims_at_once),
		cmocka_unit_test(test_hostile_table),
		cmocka_unit_test(test_no_device),
		cmocka_unit_test(test_space),
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_spread),
	};

	return cmocka_run_group_tests_name("devices", tests, begin, end);
}
