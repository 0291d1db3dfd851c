/*-------------------------------------------------------------------------
 *
 * unit_client.h
 *	  A client of a job (src/job/job.h) over a random table, and the
 *	  connection between them.
 *
 * It implements the client's side of protocol.h and checks the job's: a buffer is used
 * only by its owner, and is filled with garbage when its owner changes; the job may
 * not wait for anything while it reports that it is not busy.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_UNIT_CLIENT_H
#define GPUSORT_UNIT_CLIENT_H

#include "job/job.h"
#include "unit_random.h"
#include "unit_table.h"

/* A host device with so much memory. */
extern GsDevice *unit_open_device(uint64_t nbytes);

/* A device and its memory, for any number of jobs. */
typedef struct Service
{
	GsDevice   *device;
	GsDevicePool *pool;
	uint64_t	expected_bytes; /* of each job; 0 at first */
} Service;

/* limit 0: as much as it takes.  fault: see ../doubles/daemon/device_fault.h; NULL for none. */
extern void service_start(Service *service, uint64_t limit, const char *fault);

/* Joins a table of devices, as one that is running. */
extern void service_join(Service *service, GsDeviceTable *table, uint32_t number);

/* Insists that no memory is left with jobs, nor on the device. */
extern void service_stop(Service *service);

typedef enum BufferState
{
	BUFFER_MINE,
	BUFFER_FILLED,				/* the job's, with a batch */
	BUFFER_RELEASED				/* the job's, to be filled */
} BufferState;

/* The batch in a buffer. */
typedef struct FilledBatch
{
	size_t		first_row;
	uint32_t	nrows;
	uint32_t	rows_bytes;
} FilledBatch;

typedef struct Client Client;

struct Client
{
	const TestTable *table;
	Service    *service;
	GsSortJob  *job;
	GsBufferPool		buffer_pool;
	GsKeyLayout layout;
	BufferState	buffers[GS_MAX_BUFFERS];
	FilledBatch filled[GS_MAX_BUFFERS];
	size_t		npushed;		/* rows 0 to npushed - 1 of the table */
	size_t		nuploaded;		/* of which so many are freed */
	bool		sorted;
	GsSorted	result;
	bool		failed;
	GsFailure	failure;
	char		text[GS_FAILED_TEXT_BYTES];
	GsBatchReady ready[GS_MAX_BUFFERS + 1];
	int			nready;
	uint32_t	stream;
	uint32_t   *order;			/* the reference, once asked for */

	/* if set, is called with each batch before it is sent */
	void		(*tamper) (Client *client, const GsBatch *batch);
	Dice	   *tamper_dice;
};

/* False if the job could not be opened. */
extern bool client_open(Client *client, Service *service, const TestTable *table,
						uint32_t buffer_bytes, uint32_t nbuffers);

/* Polls until the job is closed; may be called at any time. */
extern void client_close(Client *client);

/* Polls once. */
extern void client_poll(Client *client);

/*
 * Sends all rows, in batches of any size if dice, else in full ones; false if
 * the job failed.
 */
extern bool client_load(Client *client, Dice *dice);

/* False if it failed. */
extern bool client_sort(Client *client, GsAlgorithm algorithm);

/* Starts a stream; all buffers then belong to the job. */
extern void client_fetch(Client *client, uint64_t position);

/* Waits for the next batch; its buffer belongs to the client. */
extern GsBatchReady client_take_batch(Client *client);

/* Gives a buffer to the job. */
extern void client_release(Client *client, uint32_t buffer);

/* Takes and checks so many batches, or up to the last row. */
extern void client_check_batches(Client *client, uint64_t position, int nbatches);

/* Has the input returned, and checks that all rows that were sent are there. */
extern void client_check_drain(Client *client);

/* How the sort of a table ended. */
typedef enum Outcome
{
	OUTCOME_SORTED,
	OUTCOME_FULL_IN_LOAD,
	OUTCOME_FULL_IN_SORT,
	NOUTCOMES
} Outcome;

/* Sorts; if memory does not suffice, has the input returned.  All rows are there. */
extern Outcome client_sort_or_drain(Service *service, const TestTable *table, Dice *dice);

/* Everything: open, load, sort, streams from anywhere, close. */
extern void client_check_table(const TestTable *table, Dice *dice);

/* A client that is alone with a device. */
typedef struct Session
{
	Service		service;
	Client		client;
} Session;

extern void session_begin(Session *session, const TestTable *table, uint32_t nbuffers);
extern void session_end(Session *session);

#endif							/* GPUSORT_UNIT_CLIENT_H */
