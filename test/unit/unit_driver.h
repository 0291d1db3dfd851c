/*-------------------------------------------------------------------------
 *
 * unit_driver.h
 *	  A driver of the engine frontier (engine.h) over a random table, or over rows
 *	  that a test writes itself.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UNIT_DRIVER_H
#define GPUSORT_UNIT_DRIVER_H

#include "engine/engine.h"
#include "unit_host.h"
#include "unit_random.h"
#include "unit_table.h"

typedef struct Driver
{
	const TestTable *table;
	UnitHost   *host;
	GsKeyLayout layout;
	GsEngine   *engine;
	GsBatch    *batch;
	size_t		npushed;		/* rows 0 to npushed - 1 of the table */
	size_t		engine_bytes;	/* of the engine itself, as allocated */
} Driver;

/* Opens an engine; false if the host had no memory for it. */
extern bool driver_open(Driver *driver, const TestTable *table, UnitHost *host,
						size_t memory_limit);

/* Pushes the next row of the table. */
extern GsStatus driver_push(Driver *driver);

/* Pushes all of them, or up to the first status that is not OK. */
extern GsStatus driver_load(Driver *driver);

/* Opens an engine with a new host and no limit, loads all rows, and sorts them. */
extern void driver_open_loaded(Driver *driver, const TestTable *table, UnitHost *host);
extern void driver_open_sorted(Driver *driver, const TestTable *table, UnitHost *host);

extern void driver_close(Driver *driver);

/* gs_engine_fetch() of an engine that does not fail; returns how many. */
extern size_t driver_fetch(GsEngine *engine, uint64_t position, size_t nrows,
						   const void **rows);

/*
 * After a sort: the rows are all there, in the reference order and intact, in
 * whatever portions and from wherever they are fetched.
 */
extern void driver_check_sorted(Driver *driver, Dice *dice);

/*
 * Drains, up to max_rows: the rows pushed come in input order and intact,
 * each once.
 */
extern void driver_check_drain(Driver *driver, size_t max_rows);

/* Everything: open, load, sort, check, close, nothing left. */
extern void driver_check_table(const TestTable *table, Dice *dice);

/* A check of a table; dice are what else is random about it. */
typedef void (*TableCheck) (const TestTable *table, Dice *dice);

/* Checks tables of consecutive seeds, and says which one if a check fails. */
extern void driver_check_tables(uint64_t first_seed, int ntables, const TableOptions *options,
								TableCheck check);

/* driver_check_tables() for each shape, and for each kind of strings in the first column. */
extern void driver_check_shapes(uint64_t first_seed, int ntables, size_t max_rows, TableCheck check);
extern void driver_check_strings(uint64_t first_seed, int ntables, const TableOptions *options,
								 TableCheck check);

/* ------------------------------------------------------- without a table */

/* A sort whose rows and keys a test writes itself. */
typedef struct RawSort
{
	UnitHost	host;
	GsKeyLayout layout;
	GsEngineRequest request;
	GsEngine   *engine;
	GsBatch    *batch;
} RawSort;

/* Columns may then be added, and the job changed, before it is opened. */
extern void raw_begin(RawSort *sort);
extern void raw_add_number(RawSort *sort, bool descending);
extern void raw_open(RawSort *sort);

/* Pushes the row that is being written, whose record has its key words from the first on. */
extern void raw_push(RawSort *sort, size_t row_bytes);

extern void raw_end(RawSort *sort);

#endif							/* GPUSORT_UNIT_DRIVER_H */
