/*-------------------------------------------------------------------------
 *
 * fuzz_engine.c
 *	  libFuzzer drives the engine: make fuzz.
 *
 * The first bytes say what is to happen (sort, drain, a small memory limit, a
 * failing allocation, an interrupt that does not return), the others make the
 * table, choice by choice (unit_random.h).  The checks are those of the tests.
 *
 *-------------------------------------------------------------------------
 */
#include "unit_check.h"
#include "unit_driver.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* One life of an engine, with whatever the host was told to do to it. */
static void
drive(TestTable *table, UnitHost *host, Dice *dice, size_t limit, bool return_input)
{
	Driver		driver;
	GsStatus	status;

	if (!driver_open(&driver, table, host, limit))
		return;
	status = driver_load(&driver);
	table->nrows = driver.npushed;
	if (status == GS_STATUS_FULL && !return_input)
		status = GS_STATUS_OK;	/* a run of what there is */
	if (status == GS_STATUS_OK && !return_input)
		status = gs_engine_sort(driver.engine);
	if (status == GS_STATUS_OK && !return_input)
		driver_check_sorted(&driver, dice);
	else
		driver_check_drain(&driver, dice_one_in(dice, 4) ?
						   dice_below(dice, table->nrows + 1) : SIZE_MAX);
	driver_close(&driver);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	Dice		dice = dice_of_bytes(data, nbytes);
	uint64_t	mode = dice_bytes(&dice, 1);
	uint64_t	event = dice_bytes(&dice, 1);
	TableOptions options = {0};
	TestTable  *table;
	UnitHost	host;
	size_t		limit = (size_t) 1 << 40;

	options.keys_only = (mode & 7) == 1;
	options.max_len = mode & 8 ? 400 : 30;
	options.max_rows = mode & 16 ? 2000 : 40;
	if ((mode & 7) == 2)
		limit = event * 1024;

	table = table_make(&dice, &options);
	unit_host_init(&host);
	if ((mode & 7) == 3)
	{
		host.fail_at = event % 16;
		host.fail_after = event & 16;
	}
	if ((mode & 7) == 4)
		host.jump_at = event;
	if (setjmp(host.jump) == 0)
		drive(table, &host, &dice, limit, (mode & 7) == 5);
	else
		unit_host_reset(&host);
	unit_host_end(&host);
	table_free(table);
	return 0;
}
