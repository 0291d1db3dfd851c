/*-------------------------------------------------------------------------
 *
 * test_messages.c
 *	  Random messages of random clients, the same in each run.
 *
 *-------------------------------------------------------------------------
 */
#include "messages.h"
#include "unit_cmocka.h"

#define NCASES	400
#define NSTEPS	400

static MessagesReached reached;

static void
test_random_messages(void **unused)
{
	for (uint64_t seed = 1; seed <= NCASES; seed++)
	{
		Dice		dice = dice_of_seed(seed);

		unit_case("seed %llu", (unsigned long long) seed);
		messages_run(&dice, NSTEPS, &reached);
	}
	unit_case("%s", "");
}

/* Checks that the clients get far enough. */
static void
test_they_came_far(void **unused)
{
	print_message("# %u jobs, %u joined, %u fed, %u sorted, %u batches, %u by readers, %u without memory, "
				  "%u failed, %u dropped\n",
				  reached.jobs, reached.joined, reached.producer_done, reached.sorted, reached.batches, reached.batches_read,
				  reached.memory_failures, reached.other_failures, reached.dropped);
	CHECK(reached.jobs > NCASES);
	CHECK(reached.joined > NCASES);
	CHECK(reached.producer_done > NCASES / 2);
	CHECK(reached.sorted > NCASES / 2);
	CHECK(reached.batches > NCASES);
	CHECK(reached.batches_read > NCASES / 4);
	CHECK(reached.memory_failures > 20);
	CHECK(reached.other_failures > 100);
	CHECK(reached.dropped > 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_messages),
		cmocka_unit_test(test_they_came_far),
	};

	return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
