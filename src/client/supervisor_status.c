/*-------------------------------------------------------------------------
 *
 * supervisor_status.c
 *	  What the supervisor tells backends: its lock, and the status of each gpusortd.
 *
 * The lock is on a file; the kernel releases it when the process ends in any way.  The status is
 * in another file, with the start time of the server, so that that of a previous server is
 * ignored.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "client/supervisor_status.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

#define LOCK_FILE		PG_STAT_TMP_DIR "/gpusort.supervisor.lock"
#define STATUS_FILE		PG_STAT_TMP_DIR "/gpusort.status"

static struct flock
lock_of_file(void)
{
	struct flock lock = {.l_type = F_WRLCK,.l_whence = SEEK_SET};

	return lock;
}

bool
gs_supervisor_lock(void)
{
	int			fd = BasicOpenFile(LOCK_FILE, O_RDWR | O_CREAT);
	struct flock lock = lock_of_file();

	if (fd < 0)
		ereport(FATAL,
				(errcode_for_file_access(),
				 errmsg("could not open file \"%s\": %m", LOCK_FILE)));

	/* the worker of a previous server may be about to exit */
	for (int tries = 0; fcntl(fd, F_SETLK, &lock) != 0; tries++)
	{
		if (tries == 20)
			return false;
		pg_usleep(10000);
	}
	return true;
}

bool
gs_supervisor_is_locked(void)
{
	int			fd = BasicOpenFile(LOCK_FILE, O_RDWR);
	struct flock lock = lock_of_file();
	bool		taken;

	if (fd < 0)
		return false;
	taken = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	close(fd);
	return taken;
}

void
gs_supervisor_write_status(GsSupervisorStatus *status)
{
	FILE	   *file = AllocateFile(STATUS_FILE ".new", PG_BINARY_W);

	if (file != NULL)
	{
		fprintf(file, INT64_FORMAT " " INT64_FORMAT " %d\n",
				PgStartTime, GetCurrentTimestamp(), status->ndevices);
		for (int i = 0; i < status->ndevices; i++)
			fprintf(file, "%d\n%s\n%s\n", status->devices[i].device, status->devices[i].state,
					status->devices[i].why);
		if (FreeFile(file) == 0 && rename(STATUS_FILE ".new", STATUS_FILE) == 0)
			return;
	}
	ereport(LOG,
			(errcode_for_file_access(),
			 errmsg("could not write file \"%s\": %m", STATUS_FILE)));
}

/* Reads a line, without the newline, and without what does not fit. */
static bool
read_line(FILE *file, char *line, int size)
{
	size_t		nbytes;

	if (fgets(line, size, file) == NULL)
		return false;
	nbytes = strcspn(line, "\n");
	if (line[nbytes] == '\0')
		for (int c = getc(file); c != '\n' && c != EOF; c = getc(file))
			;
	line[nbytes] = '\0';
	return true;
}

static bool
read_device(FILE *file, GsDeviceStatus *status)
{
	char		number[16];

	if (!read_line(file, number, sizeof(number)) ||
		!read_line(file, status->state, sizeof(status->state)) ||
		!read_line(file, status->why, sizeof(status->why)))
		return false;
	status->device = atoi(number);
	return status->device >= 0 && status->device < GS_MAX_DEVICES;
}

bool
gs_supervisor_read_status(GsSupervisorStatus *status)
{
	FILE	   *file = AllocateFile(STATUS_FILE, PG_BINARY_R);
	char		times[64];
	bool		whole;

	if (file == NULL)
		return false;
	whole = read_line(file, times, sizeof(times)) &&
		sscanf(times, INT64_FORMAT " " INT64_FORMAT " %d",
			   &status->server_start, &status->written, &status->ndevices) == 3 &&
		status->ndevices > 0 && status->ndevices <= GS_MAX_DEVICES;
	for (int i = 0; whole && i < status->ndevices; i++)
		whole = read_device(file, &status->devices[i]);
	FreeFile(file);
	return whole && status->server_start == PgStartTime;
}

bool
gs_supervisor_is_final(const GsDeviceStatus *status)
{
	return strcmp(status->state, GS_SUPERVISOR_NO_DEVICE) == 0 ||
		strcmp(status->state, GS_SUPERVISOR_NO_PROGRAM) == 0;
}
