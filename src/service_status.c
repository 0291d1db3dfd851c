/*-------------------------------------------------------------------------
 *
 * service_status.c
 *	  gpusort_service_status(): how gpusortd is.
 *
 * gpusortd is asked itself, by the greeting that every client sends.  Where it
 * does not answer, its supervisor has noted why.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "supervisor.h"
#include "protocol.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#define ANSWER_MS	1000

PG_FUNCTION_INFO_V1(gpusort_service_status);

/* The columns of its row. */
enum
{
	COLUMN_STATE,
	COLUMN_DETAIL,
	COLUMN_DEVICE,
	COLUMN_DEVICE_KIND,
	COLUMN_MEMORY_TOTAL,
	COLUMN_MEMORY_LIMIT,
	COLUMN_MEMORY_USED,
	COLUMN_JOBS,
	COLUMN_WAITING,
	COLUMN_JOBS_DONE,
	COLUMN_PID,
	NCOLUMNS
};

/* A socket that does not block; or -1, with errno set. */
static int
connect_to_service(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX,.sun_path = GS_SERVICE_SOCKET};
	int			fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *) &address, sizeof(address)) != 0)
	{
		int			save_errno = errno;

		close(fd);
		errno = save_errno;
		fd = -1;
	}
	return fd;
}

/* Waits for the answer; false if there is none in time. */
static bool
receive_welcome(int fd, GsWelcome *welcome)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ANSWER_MS);
	ssize_t		nbytes;

	while ((nbytes = recv(fd, welcome, sizeof(*welcome), 0)) < 0)
	{
		long		left_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);

		if ((errno != EAGAIN && errno != EINTR) || left_ms == 0)
			return false;
		(void) WaitLatchOrSocket(MyLatch,
								 WL_LATCH_SET | WL_SOCKET_READABLE | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
								 fd, left_ms, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return nbytes == sizeof(*welcome) &&
		welcome->message.type == GS_MESSAGE_WELCOME &&
		welcome->version == GS_WIRE_VERSION;
}

/* Asks gpusortd how it is; false, and why, if it does not say. */
static bool
ask_service(GsWelcome *welcome, char **why)
{
	GsHello		hello = {
		.message = {.type = GS_MESSAGE_HELLO, .nbytes = sizeof(hello)},
		.magic = GS_WIRE_MAGIC,
		.version = GS_WIRE_VERSION
	};
	int			fd = connect_to_service();
	volatile bool answered = false;

	if (fd < 0)
	{
		*why = psprintf("could not connect to %s: %m", GS_SERVICE_SOCKET);
		return false;
	}
	PG_TRY();
	{
		answered = send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello) &&
			receive_welcome(fd, welcome);
	}
	PG_FINALLY();
	{
		close(fd);
	}
	PG_END_TRY();
	if (!answered)
		*why = "gpusortd does not answer";
	return answered;
}

Datum
gpusort_service_status(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor;
	Datum		values[NCOLUMNS] = {0};
	bool		nulls[NCOLUMNS];
	GsWelcome	welcome;
	char	   *no_answer;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE ||
		descriptor->natts != NCOLUMNS)
		elog(ERROR, "gpusort_service_status() is declared otherwise");
	memset(nulls, true, sizeof(nulls));
	nulls[COLUMN_STATE] = false;

	if (ask_service(&welcome, &no_answer))
	{
		memset(nulls, false, sizeof(nulls));
		nulls[COLUMN_DETAIL] = true;
		welcome.device_name[GS_DEVICE_NAME_BYTES - 1] = '\0';
		values[COLUMN_STATE] = CStringGetTextDatum("running");
		values[COLUMN_DEVICE] = CStringGetTextDatum(welcome.device_name);
		values[COLUMN_DEVICE_KIND] = CStringGetTextDatum(
			welcome.device_kind == GS_DEVICE_KIND_CUDA ? "cuda" : "host");
		values[COLUMN_MEMORY_TOTAL] = Int64GetDatum((int64) welcome.memory_total);
		values[COLUMN_MEMORY_LIMIT] = Int64GetDatum((int64) welcome.memory_limit);
		values[COLUMN_MEMORY_USED] = Int64GetDatum((int64) welcome.memory_used);
		values[COLUMN_JOBS] = Int32GetDatum((int32) welcome.njobs);
		values[COLUMN_WAITING] = Int32GetDatum((int32) welcome.nwaiting);
		values[COLUMN_JOBS_DONE] = Int64GetDatum((int64) welcome.jobs_done);
		values[COLUMN_PID] = Int32GetDatum((int32) welcome.pid);
	}
	else
	{
		char	   *state;
		char	   *why;

		gs_supervisor_status(&state, &why);
		if (strcmp(state, "running") == 0)
		{
			state = "not answering";
			why = no_answer;
		}
		values[COLUMN_STATE] = CStringGetTextDatum(state);
		values[COLUMN_DETAIL] = CStringGetTextDatum(why);
		nulls[COLUMN_DETAIL] = why[0] == '\0';
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls)));
}
