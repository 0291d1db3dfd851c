/*-------------------------------------------------------------------------
 *
 * park_file.c
 *	  Temporary files for the sorted rows of jobs that are parked.
 *
 * One queue, one thread.  The two threads share the queue, under its lock, and
 * of each file how much is done and the first error, which are atomic: what the
 * thread has read is seen by whoever has seen that it is done.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/park_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpusortd/log.h"

typedef struct Request
{
	struct Request *next;
	GsDiskFile *file;
	char	   *buffer;
	size_t		nbytes;
	uint64_t	offset;
	bool		writes;
} Request;

struct GsParkFile
{
	char	   *folder;
	uint64_t	limit;
	uint64_t	used;			/* by files, whether written yet or not */
	bool		has_thread;
	pthread_t	thread;

	pthread_mutex_t lock;		/* of what follows */
	pthread_cond_t wakes;
	Request    *first;
	Request   **end;
	bool		ends;
};

struct GsDiskFile
{
	GsParkFile	   *disk;
	int			fd;
	uint64_t	nbytes;
	uint64_t	nasked;
	_Atomic uint64_t ndone;
	_Atomic int error;
};

/* -------------------------------------------------------------- the thread */

/* All of it.  Returns 0 or an errno; a file that ends too early is damaged. */
static int
transfer(const Request *request)
{
	size_t		ndone = 0;

	while (ndone < request->nbytes)
	{
		char	   *at = request->buffer + ndone;
		size_t		left = request->nbytes - ndone;
		off_t		offset = (off_t) (request->offset + ndone);
		ssize_t		n = request->writes ? pwrite(request->file->fd, at, left, offset) :
			pread(request->file->fd, at, left, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return EIO;
		ndone += (size_t) n;
	}
	return 0;
}

/* The next request; NULL: there is none, and will be none. */
static Request *
next_request(GsParkFile *disk)
{
	Request    *request;

	pthread_mutex_lock(&disk->lock);
	while (disk->first == NULL && !disk->ends)
		pthread_cond_wait(&disk->wakes, &disk->lock);
	request = disk->first;
	if (request != NULL)
	{
		disk->first = request->next;
		if (disk->first == NULL)
			disk->end = &disk->first;
	}
	pthread_mutex_unlock(&disk->lock);
	return request;
}

static void *
disk_main(void *arg)
{
	GsParkFile	   *disk = arg;
	Request    *request;

	while ((request = next_request(disk)) != NULL)
	{
		GsDiskFile *file = request->file;
		int			error = atomic_load(&file->error) == 0 ? transfer(request) : 0;

		if (error != 0)
			atomic_store(&file->error, error);
		free(request);

		/* the last use of the file: its owner may close it now */
		atomic_fetch_add(&file->ndone, 1);
	}
	return NULL;
}

/* ---------------------------------------------------------------- the files */

GsParkFile *
gs_park_file_create(const char *folder, uint64_t limit)
{
	GsParkFile	   *disk = calloc(1, sizeof(GsParkFile));
	size_t		nbytes = snprintf(NULL, 0, "%s", folder) + 1;

	if (disk == NULL)
		return NULL;
	disk->folder = malloc(nbytes);
	if (disk->folder == NULL)
	{
		free(disk);
		return NULL;
	}
	snprintf(disk->folder, nbytes, "%s", folder);
	disk->limit = limit;
	disk->end = &disk->first;
	pthread_mutex_init(&disk->lock, NULL);
	pthread_cond_init(&disk->wakes, NULL);
	return disk;
}

void
gs_park_file_destroy(GsParkFile *disk)
{
	if (disk->has_thread)
	{
		pthread_mutex_lock(&disk->lock);
		disk->ends = true;
		pthread_cond_signal(&disk->wakes);
		pthread_mutex_unlock(&disk->lock);
		pthread_join(disk->thread, NULL);
	}
	pthread_cond_destroy(&disk->wakes);
	pthread_mutex_destroy(&disk->lock);
	free(disk->folder);
	free(disk);
}

/*
 * A file without a name.  Where the file system has no such thing it has one for
 * a moment, by which the server would know it for a temporary file and remove it.
 */
static int
make_file(const char *folder)
{
	int			fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char		path[4096];

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	if (snprintf(path, sizeof(path), "%s/pgsql_tmp_gpusortd_XXXXXX", folder) >= (int) sizeof(path))
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

GsDiskFile *
gs_park_file_open(GsParkFile *disk, uint64_t nbytes)
{
	GsDiskFile *file;

	if (nbytes > disk->limit - disk->used)
		return NULL;
	if (!disk->has_thread)
		disk->has_thread = pthread_create(&disk->thread, NULL, disk_main, disk) == 0;
	file = disk->has_thread ? calloc(1, sizeof(GsDiskFile)) : NULL;
	if (file == NULL)
		return NULL;
	file->fd = make_file(disk->folder);
	if (file->fd < 0)
	{
		gs_log_limited("could not create a temporary file in %s: %m", disk->folder);
		free(file);
		return NULL;
	}
	file->disk = disk;
	file->nbytes = nbytes;
	disk->used += nbytes;
	return file;
}

void
gs_park_file_close(GsDiskFile *file)
{
	close(file->fd);
	file->disk->used -= file->nbytes;
	free(file);
}

/* ------------------------------------------------------------- the requests */

static bool
ask(GsDiskFile *file, bool writes, void *buffer, size_t nbytes, uint64_t offset)
{
	GsParkFile	   *disk = file->disk;
	Request    *request = malloc(sizeof(Request));

	if (request == NULL)
		return false;
	*request = (Request)
	{
		.file = file,.buffer = buffer,.nbytes = nbytes,.offset = offset,.writes = writes
	};
	file->nasked++;
	pthread_mutex_lock(&disk->lock);
	*disk->end = request;
	disk->end = &request->next;
	pthread_cond_signal(&disk->wakes);
	pthread_mutex_unlock(&disk->lock);
	return true;
}

bool
gs_park_file_write(GsDiskFile *file, const void *from, size_t nbytes, uint64_t offset)
{
	return ask(file, true, (void *) from, nbytes, offset);
}

bool
gs_park_file_read(GsDiskFile *file, void *to, size_t nbytes, uint64_t offset)
{
	return ask(file, false, to, nbytes, offset);
}

uint64_t
gs_park_file_asked(const GsDiskFile *file)
{
	return file->nasked;
}

uint64_t
gs_park_file_done(GsDiskFile *file)
{
	return atomic_load(&file->ndone);
}

int
gs_park_file_error(GsDiskFile *file)
{
	return atomic_load(&file->error);
}
