/*-------------------------------------------------------------------------
 *
 * service_driver.h
 *	  Runs gpusortd, and communicates with it as a correct or a hostile
 *	  client.
 *
 * The environment variable GPUSORTD has the program, GPUSORTD_DEVICE the
 * device (host by default).  Failed checks fail the running test, or end the
 * child process in which they occur.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_SERVICE_DRIVER_H
#define GPUSORT_SERVICE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/batch.h"
#include "common/protocol.h"
#include "unit_check.h"

/* Long enough for a slow machine under sanitizers. */
#define PATIENCE_MS		20000

/* ------------------------------------------------------------- the service */

typedef struct Service
{
	pid_t		pid;			/* 0: it has ended */
	int			nfds;			/* open descriptors when it was ready */
	char		dir[40];		/* its own folder */
	char		socket[60];
	char		log[60];		/* its stderr */
	char		ready[200];		/* the line in which it reports that */
} Service;

/*
 * Limit of descriptors for a gpusortd that is started from now on; 0: that of
 * this process.
 */
extern int	service_descriptor_limit;

/*
 * Starts gpusortd with further options, terminated by NULL, and waits until it
 * is ready.
 */
extern Service service_start(const char *const *options);

/*
 * Starts gpusortd again in the folder of one that has ended, with the same socket, and
 * waits until it is ready.
 */
extern void service_start_again(Service *service, const char *const *options);

/* Starts another one with the same socket; returns its exit code. */
extern int	service_exit_code(const Service *service, const char *const *options);

/* Runs only the program; returns its exit code, and its stdout and stderr. */
extern int	program_run(const char *const *arguments, char *output, size_t size);

/* Ends it by SIGTERM, checks the exit code, and removes the folder. */
extern void service_stop(Service *service);

/* Waits until it ends; returns the status of waitpid(). */
extern int	service_wait(Service *service);

/* Removes the folder of one that has ended. */
extern void service_remove(Service *service);

/* Its status, by a client without buffers. */
extern GsWelcome service_status(const Service *service);

/* Waits until everything of all other clients has been freed. */
extern void service_check_idle(const Service *service);

/* Waits until this number of jobs wait for memory. */
extern void service_check_waiting(const Service *service, uint32_t nwaiting);

extern bool service_logged(const Service *service, const char *text);
extern int	service_count_fds(const Service *service);

/* Waits until it has been seen asleep several times, which a loop that never waits is not. */
extern void service_check_asleep(const Service *service);

extern uint64_t now_ms(void);
extern void sleep_ms(int ms);

/* --------------------------------------------------------------- a client */

typedef struct Client
{
	int			socket;
	int			memfd;			/* of the buffers; -1: closed */
	char	   *buffer_pool;	/* NULL: none */
	uint32_t	buffer_bytes;
	uint32_t	nbuffers;
	uint64_t	free_buffers;	/* a bit for each: owned by the client */
} Client;

/* Errors in HELLO; all zero: none. */
typedef struct HelloOptions
{
	uint32_t	magic;			/* XORed to the correct value */
	uint32_t	version;
	char		build;			/* XORed to its last digit */
	int64_t		buffer_pool_bytes; /* added to the correct value */
	int64_t		memfd_bytes;
	bool		unsealed;
	bool		no_memfd;
	bool		two_memfds;
	bool		no_buffers;
} HelloOptions;

extern Client client_connect(const Service *service);

/* Only connect(); false if it is refused. */
extern bool client_try_connect(const Service *service, Client *client);

/* Creates the buffers and sends HELLO; does not wait for the answer. */
extern void client_send_hello(Client *client, uint32_t buffer_bytes, uint32_t nbuffers,
							  const HelloOptions *options);

/* Connects, sends HELLO with valid buffers, and waits for WELCOME. */
extern Client client_open(const Service *service, uint32_t buffer_bytes, uint32_t nbuffers);
extern void client_close(Client *client);

/* Sends a message, whose GsMessage it fills in. */
extern void client_send(Client *client, void *message, GsMessageType type, size_t nbytes);
extern void client_send_plain(Client *client, GsMessageType type);
extern void client_send_buffer(Client *client, GsMessageType type, uint32_t buffer);

/* Sends any bytes and descriptors.  False: an error. */
extern bool client_send_bytes(Client *client, const void *bytes, size_t nbytes,
							  const int *descriptors, int ndescriptors);

/*
 * Receives the next message and returns its type; 0: the connection has ended;
 * -1: timeout.
 */
extern int	client_receive(Client *client, GsAnyMessage *message, int timeout_ms);

/* Expects a message of this type. */
extern void client_expect(Client *client, GsMessageType type, GsAnyMessage *message);

/* Expects this failure. */
extern void client_expect_failed(Client *client, GsFailure failure);

/* Expects this failure, and then the end of the connection. */
extern void client_expect_dropped(Client *client, GsFailure failure);

/* --------------------------------------------------------------------- a job */

/*
 * A table with a bigint that has duplicates, and rows of several widths.  Keys
 * have few bits if the seed is even, and more than the first sort can use if
 * it is odd.  Row i can be computed at any time, so rows are not stored.
 */
typedef struct Table
{
	uint64_t	seed;
	uint64_t	nrows;
	bool		keys_only;
	GsKeyLayout layout;
	uint64_t	nloaded;
} Table;

extern Table table_make(uint64_t seed, uint64_t nrows, bool keys_only);

/* Sends JOB_OPEN, without waiting for the answer. */
extern void job_open(Client *client, const Table *table, uint64_t expected_bytes, uint32_t wait_ms);

/* Sends JOB_OPEN for a shared job, waits for the answer and returns the token. */
extern uint64_t job_share(Client *client, const Table *table, uint32_t participant);

/* Sends JOB_JOIN, without waiting for the answer. */
extern void job_send_join(Client *client, const Table *table, uint64_t token,
						  uint32_t participant);

/* Sends JOB_JOIN, waits for the answer and expects success. */
extern void job_join(Client *client, const Table *table, uint64_t token, uint32_t participant);

/* JOB_READ, up to JOB_READY. */
extern void job_read(Client *client, const Table *table, uint64_t token);

/* Sends PRODUCER_END and waits for PRODUCER_DONE; returns the number of rows taken. */
extern void job_send_producer_end(Client *client, bool partial);
extern uint64_t job_end_producer(Client *client, bool partial);

/* Sends rows up to this one.  False: out of memory. */
extern bool job_load(Client *client, Table *table, uint64_t end);

/* Sends SORT, waits for SORTED. */
extern void job_sort(Client *client, Table *table, GsAlgorithm algorithm);
extern void job_send_sort(Client *client, Table *table, GsAlgorithm algorithm);

/* Sends FETCH, and checks all rows from this position on, and their order. */
extern void job_fetch(Client *client, Table *table, uint32_t stream, uint64_t position);

/* The two halves of it; position is that of FETCH. */
extern void job_send_fetch(Client *client, uint32_t stream, uint64_t position);
extern void job_read_stream(Client *client, Table *table, uint32_t stream, uint64_t position);

/* Sends RETURN_INPUT, and checks that the input is returned unchanged. */
extern void job_return_input(Client *client, Table *table);

extern void job_release_buffers(Client *client);
extern void job_close(Client *client);

/* A complete job, from JOB_OPEN to JOB_CLOSE. */
extern void job_run(Client *client, uint64_t seed, uint64_t nrows, bool keys_only);

#endif							/* GPUSORT_SERVICE_DRIVER_H */
