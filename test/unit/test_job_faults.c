/*-------------------------------------------------------------------------
 *
 * test_job_faults.c
 *	  A job whose device fails, or whose client sends what it must not.
 *
 * Most tests make random tables (unit_table.h); a case that fails names its seed.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/key_pack.h"
#include "unit_client.h"
#include "unit_driver.h"
#include "unit_cmocka.h"

/* ------------------------------------------------------------ a broken device */

static void
test_device_breaks(void **unused)
{
	static const char *const ops[] = {
		"record_fence", "passed_fence", "copy_in", "copy_out", "pack", "sort_words", "same_words",
		"same_keys", "same_tails", "count_ties", "list_ties", "tie_keys", "sort_ties",
		"sort_tails", "place_ties", "check_order", "row_end_offsets", "find_boundaries", "gather", "gather_keys"
	};
	TableOptions options = {.shape = SHAPE_FEW, .ncolumns = 3};
	int			nfailed[sizeof(ops) / sizeof(ops[0])] = {0};

	for (uint64_t seed = 140000; seed < 140012; seed++)
	{
		Dice		dice;
		TestTable  *table;

		/* enough rows for several batches */
		options.keys_only = seed % 4 == 0;
		options.min_rows = options.max_rows = options.keys_only ? 30000 : 3000;
		options.kind = options.keys_only ? TEST_FLOAT8 : TEST_TEXT;
		table = table_of_seed(seed, &dice, &options);
		for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		{
			Service		service;
			Client		client;
			char		fault[40];

			snprintf(fault, sizeof(fault), "%s:%d:fail", ops[i],
					 seed % 3 == 0 ? 1 + (int) dice_below(&dice, 20) : 1);
			service_start(&service, 0, fault);
			CHECK(client_open(&client, &service, table, GS_MIN_BUFFER_BYTES, 4));
			if (client_load(&client, &dice) && client_sort(&client, GS_ALGORITHM_RADIX))
			{
				client_fetch(&client, 0);
				while (gs_job_busy(client.job))
					gs_job_poll(client.job);
			}
			if (client.failed)
			{
				CHECK_MSG(client.failure == GS_FAILED_DEVICE, "it failed: %s", client.text);
				CHECK(strstr(client.text, "injected failure") != NULL);
				CHECK(!gs_job_busy(client.job));
				gs_job_poll(client.job);
				nfailed[i]++;
			}
			client_close(&client);
			service_stop(&service);
		}
		table_free(table);
	}
	unit_case("%s", "");
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		CHECK_MSG(nfailed[i] > 0, "%s was never called", ops[i]);
}

/* The last result of a step is wrong, and the check notices it. */
static void
test_device_sorts_wrongly(void **unused)
{
	static const struct
	{
		const char *fault;
		bool		keys_only;
	}			cases[] = {
		{"sort_words:1:wrong", false}, {"sort_words:1:wrong", true},
		{"sort_ties:1:wrong", false}, {"sort_ties:1:wrong", true},
		{"place_ties:1:wrong", false}
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		const TableOptions options = {
			.min_rows = 3000,.max_rows = 3000,.ncolumns = 2,.shape = SHAPE_FEW,.kind = TEST_INT64,
			.keys_only = cases[i].keys_only
		};
		Dice		dice;
		TestTable  *table = table_of_seed(146000, &dice, &options);
		Service		service;
		Client		client;

		unit_case("%s, %s", cases[i].fault, cases[i].keys_only ? "keys only" : "rows");
		service_start(&service, 0, cases[i].fault);
		CHECK(client_open(&client, &service, table, GS_MIN_BUFFER_BYTES, 4));
		CHECK(client_load(&client, &dice));
		CHECK(!client_sort(&client, GS_ALGORITHM_RADIX));
		CHECK(client.failed && client.failure == GS_FAILED_ORDER);
		CHECK_MSG(strstr(client.text, "host processor (no driver) sorted wrongly: of 3000 rows") == client.text,
				  "%s", client.text);
		client_close(&client);
		service_stop(&service);
		table_free(table);
	}
	unit_case("%s", "");
}

/* Nobody is there any more to be told. */
static void
test_device_breaks_at_close(void **unused)
{
	static const char *const faults[] = {"record_fence:2:fail", "passed_fence:1:fail"};
	Dice		dice;
	TestTable  *table;

	table = table_of_seed(145000, &dice, &(TableOptions) {
		.min_rows = 100, .max_rows = 100, .ncolumns = 1
	});
	for (int i = 0; i < 2; i++)
	{
		Service		service;
		Client		client;

		service_start(&service, 0, faults[i]);
		CHECK(client_open(&client, &service, table, GS_MIN_BUFFER_BYTES, 8));
		CHECK(client_load(&client, NULL));
		CHECK(gs_job_close(client.job));
		CHECK(!client.failed);
		CHECK(service.device->error[0] != '\0');
		free(client.buffer_pool.base);
		service_stop(&service);
	}
	unit_case("%s", "");
	table_free(table);
}

static void
test_open_fails(void **unused)
{
	const TestKind kinds[] = {TEST_INT32};
	TestTable  *table = table_make_empty(kinds, 1, 0);
	Service		service;
	Client		client;

	service_start(&service, 0, "stream_open:1:fail");
	CHECK(!client_open(&client, &service, table, GS_MIN_BUFFER_BYTES, 2));
	service_stop(&service);
	service_start(&service, 0, "allocate_host:1:none");
	CHECK(!client_open(&client, &service, table, GS_MIN_BUFFER_BYTES, 2));
	service_stop(&service);
	table_free(table);
}

/* ---------------------------------------------------------- hostile clients */

/* Changes some bits of some records, or whole words of them. */
static void
tamper_with_records(Client *client, const GsBatch *batch)
{
	Dice	   *dice = client->tamper_dice;
	size_t		nwords = batch->record_bytes / sizeof(uint64_t);

	for (int i = 0; i < 3; i++)
	{
		size_t		buffer = dice_below(dice, batch->nrows);
		uint64_t   *word = (uint64_t *) gs_batch_record(batch, buffer) + dice_below(dice, nwords);

		switch (dice_below(dice, 4))
		{
			case 0:
				*word ^= UINT64_C(1) << dice_below(dice, 64);
				break;
			case 1:
				*word = dice_word(dice);
				break;
			case 2:
				*word += UINT64_C(1) << 32;
				break;
			default:
				*word = dice_any_width(dice, 64);
				break;
		}
	}
}

/* Whatever the order: as many rows as were sent, each within its batch. */
static void
check_any_order(Client *client)
{
	uint64_t	next = 0;

	client_fetch(client, 0);
	while (next < client->npushed)
	{
		GsBatchReady ready = client_take_batch(client);

		CHECK(ready.position == next && ready.nrows > 0);
		CHECK(ready.rows_bytes <= client->buffer_pool.buffer_bytes);
		next += ready.nrows;
		client_release(client, ready.buffer);
	}
	CHECK(next == client->npushed);
}

/* How sorts of a hostile client's rows came out. */
static int	nsorted;
static int	nrefused;

/* A sort that a client has tampered with: rows in any order, or this failure. */
static void
check_hostile(Client *client, GsFailure failure)
{
	if (client_sort(client, GS_ALGORITHM_RADIX))
	{
		check_any_order(client);
		nsorted++;
	}
	else
	{
		CHECK_MSG(client->failure == failure, "it failed: %s", client->text);
		nrefused++;
	}
}

/* Both occurred. */
static void
check_hostile_outcomes(void)
{
	print_message("# sorted %d, refused %d\n", nsorted, nrefused);
	CHECK(nsorted > 0 && nrefused > 0);
	nsorted = nrefused = 0;
}

static void
check_hostile_records(const TestTable *table, Dice *dice)
{
	Session		session;
	Client	   *client = &session.client;

	session_begin(&session, table, 3);
	client->tamper = tamper_with_records;
	client->tamper_dice = dice;
	CHECK(client_load(client, dice));
	check_hostile(client, GS_FAILED_ROWS);
	CHECK(!client->failed || !gs_job_busy(client->job));
	session_end(&session);
}

static void
test_hostile_records(void **unused)
{
	TableOptions options = {.min_rows = 1, .max_rows = 1000};

	driver_check_tables(150000, 80, &options, check_hostile_records);
	options.shape = SHAPE_FEW;
	driver_check_tables(151000, 80, &options, check_hostile_records);
	options.kind = TEST_BYTEA;
	driver_check_tables(152000, 100, &options, check_hostile_records);
	options.shape = SHAPE_ANY;
	driver_check_tables(153000, 100, &options, check_hostile_records);
	driver_check_tables(154000, 40, &(TableOptions) {.min_rows = 1, .max_rows = 1000, .keys_only = true},
						check_hostile_records);
	check_hostile_outcomes();
}

/* Changes a layout somewhere, mostly in relevant fields. */
static void
tamper_with_layout(Dice *dice, GsKeyLayout *layout)
{
	int			colno = (int) dice_below(dice, (uint64_t) layout->ncolumns);
	int			fieldno = (int) dice_below(dice, (uint64_t) layout->nfields);
	GsKeyColumn *column = &layout->columns[colno];
	GsKeyField *field = &layout->fields[fieldno];
	unsigned char *bytes = (unsigned char *) layout;

	switch (dice_below(dice, 16))
	{
		case 0:
			bytes[dice_below(dice, sizeof(*layout))] ^= (unsigned char) (1 + dice_below(dice, 255));
			break;
		case 1:
			((unsigned char *) column)[dice_below(dice, sizeof(*column))] =
				(unsigned char) dice_below(dice, 256);
			break;
		case 2:
			((unsigned char *) field)[dice_below(dice, sizeof(*field))] =
				(unsigned char) dice_below(dice, 256);
			break;
		case 3:
			field->word = (uint8_t) dice_below(dice, 4);
			break;
		case 4:
			field->shift = (uint8_t) dice_below(dice, 80);
			break;
		case 5:
			field->bits = (uint8_t) dice_below(dice, 80);
			break;
		case 6:
			field->canonical = (uint8_t) dice_below(dice, 4);
			break;
		case 7:
			field->min = dice_any_width(dice, 64);
			break;
		case 8:
			field->max = dice_any_width(dice, 64);
			break;
		case 9:
			field->ever_set = dice_any_width(dice, 64);
			break;
		case 10:
			field->always_set = dice_any_width(dice, 64);
			break;
		case 11:
			column->nnulls = dice_below(dice, layout->nrows + 2);
			break;
		case 12:
			column->tail_word = (uint8_t) dice_below(dice, 5);
			column->min_len = (uint32_t) dice_below(dice, 20);
			break;
		case 13:
			column->max_len = (uint32_t) dice_any_width(dice, 32);
			break;
		case 14:
			bytes = (unsigned char *) &column->variable;
			*bytes = (unsigned char) dice_below(dice, 3);
			break;
		default:
			layout->nfields += (int) dice_below(dice, 3) - 1;
			layout->ncolumns += (int) dice_below(dice, 3) - 1;
			layout->ndecisive = layout->ncolumns;
			break;
	}
}

static void
check_hostile_layouts(const TestTable *table, Dice *dice)
{
	Session		session;
	GsKeyLayout *layout = &session.client.layout;

	session_begin(&session, table, 3);
	CHECK(client_load(&session.client, NULL));
	for (int i = 1 + (int) dice_below(dice, 3); i > 0; i--)
	{
		if (layout->ncolumns > 0 && layout->nfields > 0 &&
			layout->ncolumns <= GS_MAX_COLUMNS && layout->nfields <= GS_MAX_FIELDS)
			tamper_with_layout(dice, layout);
	}
	check_hostile(&session.client, GS_FAILED_PROTOCOL);
	session_end(&session);
}

static void
test_hostile_layouts(void **unused)
{
	TableOptions options = {.min_rows = 1, .max_rows = 60};

	for (options.ncolumns = 1; options.ncolumns <= 5; options.ncolumns++)
	{
		options.shape = SHAPE_ANY;
		driver_check_tables(160000 + (uint64_t) options.ncolumns * 1000, 360, &options, check_hostile_layouts);
		options.shape = SHAPE_FEW;
		driver_check_tables(160500 + (uint64_t) options.ncolumns * 1000, 360, &options, check_hostile_layouts);
	}
	driver_check_tables(166000, 400, &(TableOptions) {.min_rows = 1, .max_rows = 60, .keys_only = true},
						check_hostile_layouts);
	check_hostile_outcomes();
}

/* A float4 with NULLs, a text and a float8, with statistics as a driver would have them. */
static void
make_layout(GsKeyLayout *layout)
{
	GsKeyColumn *column;

	memset(layout, 0, sizeof(*layout));
	gs_key_layout_init(layout);
	column = gs_key_layout_add_column(layout, false, false);
	gs_key_layout_add_field(layout, 32, GS_CANONICAL_FLOAT4);
	column->nnulls = 1;
	column = gs_key_layout_add_column(layout, true, false);
	gs_key_layout_add_bytes(layout, true);
	column->min_len = 0;
	column->max_len = 10;
	gs_key_layout_add_column(layout, false, true);
	gs_key_layout_add_field(layout, 64, GS_CANONICAL_FLOAT8);
	layout->nrows = 10;
	for (int i = 0; i < 3; i++)
	{
		gs_key_field_update_range(&layout->fields[i], 3);
		gs_key_field_update_range(&layout->fields[i], 9);
	}
}

/* Each rule by itself; none may depend on the others. */
static void
test_layout_rules(void **unused)
{
	const unsigned char two = 2;
	GsKeyLayout good;
	GsKeyLayout layout;

#define REFUSED(change) \
	do { \
		layout = good; \
		change; \
		CHECK_MSG(!gs_job_layout_is_valid(&layout, 4, false), "accepted: %s", #change); \
	} while (0)
#define ACCEPTED(change) \
	do { \
		layout = good; \
		change; \
		CHECK_MSG(gs_job_layout_is_valid(&layout, 4, false), "refused: %s", #change); \
	} while (0)

	make_layout(&good);
	ACCEPTED((void) 0);
	REFUSED(layout.ndecisive = layout.ncolumns = 0);
	REFUSED(layout.ndecisive = layout.ncolumns = 2);
	REFUSED(layout.ndecisive = layout.ncolumns = -1);
	REFUSED(layout.ndecisive = layout.ncolumns = GS_MAX_COLUMNS + 1);
	REFUSED(layout.ndecisive = 0);
	REFUSED(layout.ndecisive = 2);
	REFUSED(layout.nfields = 0);
	REFUSED(layout.nfields = 2);
	REFUSED(layout.nfields = 4);
	REFUSED(layout.nfields = GS_MAX_FIELDS + 1);
	REFUSED(layout.nwords = 3);
	REFUSED(layout.nwords = -1);
	REFUSED(layout.keys_only = true);
	REFUSED(memcpy(&layout.keys_only, &two, 1));
	REFUSED(memcpy(&layout.columns[0].descending, &two, 1));
	REFUSED(memcpy(&layout.columns[1].nulls_first, &two, 1));
	REFUSED(memcpy(&layout.columns[2].variable, &two, 1));
	REFUSED(memcpy(&layout.columns[2].nul_free, &two, 1));
	REFUSED(layout.columns[0].first_field = 1);
	REFUSED(layout.columns[2].first_field = 255);
	REFUSED(layout.columns[0].nfields = 0);
	REFUSED(layout.columns[0].nfields = 0; layout.columns[1].first_field = 0;
			layout.columns[2].first_field = 1; layout.nfields = 2);
	REFUSED(layout.columns[2].nfields = 2);
	REFUSED(layout.columns[2].nfields = 255);
	REFUSED(layout.columns[1].tail_word = 4);
	REFUSED(layout.columns[0].nnulls = 11);
	ACCEPTED(layout.columns[0].nnulls = 10);
	REFUSED(layout.fields[0].word = 4);
	REFUSED(layout.fields[0].bits = 0);
	REFUSED(layout.fields[1].bits = 0);
	REFUSED(layout.fields[1].bits = 65);
	REFUSED(layout.fields[1].bits = 255);
	REFUSED(layout.fields[1].shift = 1);
	REFUSED(layout.fields[0].shift = 33);
	ACCEPTED(layout.fields[0].shift = 32);
	REFUSED(layout.fields[0].canonical = GS_CANONICAL_FLOAT8);
	REFUSED(layout.fields[1].canonical = GS_CANONICAL_FLOAT4);
	REFUSED(layout.fields[0].canonical = 3);
	REFUSED(layout.fields[0].min = 10);
	REFUSED(layout.fields[0].max = UINT64_C(1) << 32);
	REFUSED(layout.fields[0].ever_set |= UINT64_C(1) << 32);
	REFUSED(layout.fields[0].always_set = 16);

	/* a column that has only NULLs has no statistics */
	make_layout(&good);
	good.columns[0].nnulls = good.nrows;
	ACCEPTED(layout.fields[0].min = UINT64_MAX);
	REFUSED(layout.fields[0].word = 4);

	/* a byte string has one field */
	make_layout(&good);
	REFUSED(layout.columns[1].nfields = 2; layout.ndecisive = layout.ncolumns = 2);

	/* and a record that is the row has one word */
	gs_key_layout_init(&good);
	gs_key_layout_add_column(&good, false, false);
	gs_key_layout_add_field(&good, 64, GS_CANONICAL_NONE);
	good.nrows = 2;
	gs_key_field_update_range(&good.fields[0], 1);
	good.keys_only = true;
	CHECK(gs_job_layout_is_valid(&good, 1, true));
	layout = good;
	layout.columns[0].nnulls = 1;
	CHECK(!gs_job_layout_is_valid(&layout, 1, true));
	layout = good;
	layout.columns[0].variable = true;
	CHECK(!gs_job_layout_is_valid(&layout, 1, true));
	layout = good;
	layout.nwords = 2;
	CHECK(!gs_job_layout_is_valid(&layout, 2, true));
#undef REFUSED
#undef ACCEPTED
}

/* A layout with another number of rows than were sent. */
static void
test_layout_of_other_rows(void **unused)
{
	Dice		dice;
	TestTable  *table;
	Session		session;
	Client	   *client = &session.client;

	table = table_of_seed(170000, &dice, &(TableOptions) {
		.min_rows = 100, .max_rows = 100, .keys_only = true
	});
	session_begin(&session, table, 3);
	CHECK(client_load(client, NULL));
	client->layout.nrows--;
	CHECK(!client_sort(client, GS_ALGORITHM_RADIX));
	CHECK(client->failure == GS_FAILED_PROTOCOL);
	session_end(&session);
	table_free(table);
	unit_case("%s", "");
}

/* A row takes at most half a buffer. */
static void
test_row_too_long(void **unused)
{
	const TestKind kinds[] = {TEST_BYTEA};
	const uint32_t most = GS_MAX_ROW_BYTES(GS_MIN_BUFFER_BYTES) - 8;	/* less the row's header */
	unsigned char *bytes = calloc(1, most + 1);

	CHECK(bytes != NULL);
	for (uint32_t len = most; len <= most + 1; len++)
	{
		TestTable  *table = table_make_empty(kinds, 1, 3);
		Session		session;
		Client	   *client = &session.client;

		for (size_t row = 0; row < 3; row++)
			table_set_bytes(table, row, 0, bytes, row == 1 ? len : 10);
		session_begin(&session, table, 3);
		CHECK(client_load(client, NULL));
		if (client_sort(client, GS_ALGORITHM_RADIX))
		{
			CHECK(len == most);
			client_fetch(client, 0);
			client_check_batches(client, 0, INT32_MAX);
		}
		else
			CHECK(len == most + 1 && client->failure == GS_FAILED_ROWS);
		session_end(&session);
		table_free(table);
	}
	free(bytes);
}

/* The widest possible layout: all arrays of the packing are full. */
static void
test_largest_layout(void **unused)
{
	GsKeyLayout layout;
	GsKeyPacking packing;

	gs_key_layout_init(&layout);
	for (int colno = 0; colno < GS_MAX_COLUMNS; colno++)
	{
		GsKeyColumn *column = gs_key_layout_add_column(&layout, colno % 2 == 0, colno % 3 == 0);

		gs_key_layout_add_field(&layout, 64, GS_CANONICAL_NONE);
		gs_key_layout_add_field(&layout, 64, GS_CANONICAL_NONE);
		column->nnulls = 1;
	}
	layout.nrows = 3;
	for (int i = 0; i < layout.nfields; i++)
	{
		gs_key_field_update_range(&layout.fields[i], 0);
		gs_key_field_update_range(&layout.fields[i], UINT64_MAX);
	}
	assert_true(gs_job_layout_is_valid(&layout, GS_MAX_FIELDS, false));
	for (int bits = GS_MIN_KEY_CHUNK_BITS; bits <= 64; bits++)
	{
		gs_key_packing_init(&packing, &layout, bits);
		CHECK(packing.nchunks <= GS_MAX_KEY_CHUNKS && packing.npieces <= GS_MAX_PIECES &&
			  packing.ncomponents <= GS_MAX_COMPONENTS);
	}
	assert_false(gs_job_layout_is_valid(&layout, GS_MAX_FIELDS - 1, false));
	assert_false(gs_job_layout_is_valid(&layout, GS_MAX_FIELDS, true));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device_breaks),
		cmocka_unit_test(test_device_sorts_wrongly),
		cmocka_unit_test(test_device_breaks_at_close),
		cmocka_unit_test(test_open_fails),
		cmocka_unit_test(test_hostile_records),
		cmocka_unit_test(test_hostile_layouts),
		cmocka_unit_test(test_layout_rules),
		cmocka_unit_test(test_layout_of_other_rows),
		cmocka_unit_test(test_row_too_long),
		cmocka_unit_test(test_largest_layout)
	};

	return cmocka_run_group_tests_name("job_faults", tests, NULL, NULL);
}
