/*-------------------------------------------------------------------------
 *
 * service_driver.h
 *	  Runs gpusortd, and talks to it as a client would, or as none should.
 *
 * The program is that of the environment's GPUSORTD, on the device of
 * GPUSORTD_DEVICE (host, if that is not set).  What must not happen fails the
 * running test, or ends the child process that it happens in.
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
	pid_t		pid;			/* 0: it has been waited for */
	int			nfds;			/* open descriptors once it was ready */
	char		dir[40];		/* a folder of its own */
	char		socket[60];
	char		log[60];		/* its stderr */
	char		ready[200];		/* its line */
} Service;

/* Descriptors that a gpusortd started from now on may have; 0: as many as this process. */
extern int	service_descriptor_limit;

/* Starts gpusortd with more options, up to a NULL, and waits until it is ready. */
extern Service service_start(const char *const *options);

/* The same in the folder of one that was waited for, at its socket. */
extern void service_start_again(Service *service, const char *const *options);

/* Starts one more at the same socket; returns its exit code. */
extern int	service_exit_code(const Service *service, const char *const *options);

/* Runs the program alone; returns its exit code, and its stdout and stderr. */
extern int	program_run(const char *const *arguments, char *output, size_t size);

/* Ends it by SIGTERM, checks that it ends well, and removes the folder. */
extern void service_stop(Service *service);

/* Waits for its end; returns what waitpid() says of it. */
extern int	service_wait(Service *service);

/* Removes the folder of one that was waited for. */
extern void service_remove(Service *service);

/* How it is now, by a client without a buffers. */
extern GsWelcome service_status(const Service *service);

/* Waits until no client but the one that asks has left anything behind. */
extern void service_check_idle(const Service *service);

/* Waits until so many jobs wait for memory. */
extern void service_check_waiting(const Service *service, uint32_t nwaiting);

extern bool service_logged(const Service *service, const char *text);
extern int	service_count_fds(const Service *service);

/* Processor time so far. */
extern uint64_t service_cpu_us(const Service *service);

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
	uint64_t	free_buffers;	/* a bit each: the client's */
} Client;

/* How a HELLO may be wrong; all zero: it is not. */
typedef struct HelloOptions
{
	uint32_t	magic;			/* XORed to what is right */
	uint32_t	version;
	char		build;			/* its last digit */
	int64_t		buffer_pool_bytes; /* added to what is right */
	int64_t		memfd_bytes;
	bool		unsealed;
	bool		no_memfd;
	bool		two_memfds;
	bool		no_buffers;
} HelloOptions;

extern Client client_connect(const Service *service);

/* connect() as it is: false if it is refused. */
extern bool client_try_connect(const Service *service, Client *client);

/* Makes a buffers and sends HELLO; does not wait for the answer. */
extern void client_send_hello(Client *client, uint32_t buffer_bytes, uint32_t nbuffers,
							  const HelloOptions *options);

/* Connects, says HELLO with a good buffers, and takes WELCOME. */
extern Client client_open(const Service *service, uint32_t buffer_bytes, uint32_t nbuffers);
extern void client_close(Client *client);

/* Sends a message that begins with a GsMessage, which is filled in. */
extern void client_send(Client *client, void *message, GsMessageType type, size_t nbytes);
extern void client_send_plain(Client *client, GsMessageType type);
extern void client_send_buffer(Client *client, GsMessageType type, uint32_t buffer);

/* Sends whatever bytes, with whatever descriptors. False: it cannot be sent. */
extern bool client_send_bytes(Client *client, const void *bytes, size_t nbytes,
							  const int *descriptors, int ndescriptors);

/*
 * The next message's type; 0: the connection has ended; -1: none came in time.
 */
extern int	client_receive(Client *client, GsAnyMessage *message, int timeout_ms);

/* The next message has to be of this type. */
extern void client_expect(Client *client, GsMessageType type, GsAnyMessage *message);

/* The next message has to be this failure. */
extern void client_expect_failed(Client *client, GsFailure failure);

/* The same, and then the connection ends. */
extern void client_expect_dropped(Client *client, GsFailure failure);

/* --------------------------------------------------------------------- a job */

/*
 * A table with a bigint that comes more than once, and rows of several widths.
 * Keys take few bits if the seed is even, and more than a first sort can take if
 * it is odd.
 * Row i can be made anew at any time, so none is kept.
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

/* What the next JOB_OPENs say of all jobs of the process; 0: nothing. */
extern uint64_t job_session_bytes;

/* JOB_OPEN, without waiting for the answer. */
extern void job_open(Client *client, const Table *table, uint64_t expected_bytes, uint32_t wait_ms);

/* The same of a job that others may join, and waits for the answer: its token. */
extern uint64_t job_share(Client *client, const Table *table, uint32_t participant);

/* JOB_JOIN, without waiting for the answer. */
extern void job_send_join(Client *client, const Table *table, uint64_t token,
						  uint32_t participant);

/* The same, and it can be joined. */
extern void job_join(Client *client, const Table *table, uint64_t token, uint32_t participant);

/* FEED_END, and FED: how many rows were taken. */
extern void job_send_producer_end(Client *client, bool partial);
extern uint64_t job_end_producer(Client *client, bool partial);

/* Fills buffers up to that row.  False: FAILED(MEMORY) came. */
extern bool job_load(Client *client, Table *table, uint64_t end);

/* SORT, and SORTED. */
extern void job_sort(Client *client, Table *table, GsAlgorithm algorithm);
extern void job_send_sort(Client *client, Table *table, GsAlgorithm algorithm);

/* FETCH, and checks all rows from that position on, and the order of all. */
extern void job_fetch(Client *client, Table *table, uint32_t stream, uint64_t position);

/* The two halves of it; position is that of the FETCH. */
extern void job_send_fetch(Client *client, uint32_t stream, uint64_t position);
extern void job_read_stream(Client *client, Table *table, uint32_t stream, uint64_t position);

/* DRAIN, and checks that what was loaded comes back as it was. */
extern void job_return_input(Client *client, Table *table);

extern void job_release_buffers(Client *client);
extern void job_close(Client *client);

/* All of it, from JOB_OPEN to JOB_CLOSE. */
extern void job_run(Client *client, uint64_t seed, uint64_t nrows, bool keys_only);

#endif							/* GPUSORT_SERVICE_DRIVER_H */
