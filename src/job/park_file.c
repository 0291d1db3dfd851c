/*-------------------------------------------------------------------------
 *
 * park_file.c
 *	  Temporary files for the sorted rows of parked jobs.
 *
 * There is one queue of requests and one thread that performs them.  The two
 * threads share the queue, which a lock protects, and the completed requests
 * and the first error of each file, which are atomic.  A thread that sees a
 * read as completed also sees the data.
 *
 *-------------------------------------------------------------------------
 */
#include "job/park_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/log.h"

typedef struct Request
{
	struct Request *next;
	GsParkFile *file;
	char	   *buffer;
	size_t		nbytes;
	uint64_t	offset;
	bool		is_write;
} Request;

struct GsParkFolder
{
	char	   *path;
	uint64_t	limit;
	uint64_t	used;			/* by files, whether written yet or not */
	bool		has_thread;
	pthread_t	thread;

	pthread_mutex_t lock;		/* protects what follows */
	pthread_cond_t wakeup;
	Request	   *first;
	Request	  **end;
	bool		stopping;
};

struct GsParkFile
{
	GsParkFolder *folder;
	int			fd;
	uint64_t	nbytes;
	uint64_t	nrequested;
	_Atomic uint64_t ncompleted;
	_Atomic int error;
};

/* -------------------------------------------------------------- the thread */

/* Performs a request.  Returns 0 or an errno; EIO if the file is too short. */
static int
transfer(const Request *request)
{
	size_t		ncompleted = 0;

	while (ncompleted < request->nbytes)
	{
		char	   *at = request->buffer + ncompleted;
		size_t		left = request->nbytes - ncompleted;
		off_t		offset = (off_t) (request->offset + ncompleted);
		ssize_t		n = request->is_write ? pwrite(request->file->fd, at, left, offset) :
			pread(request->file->fd, at, left, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return EIO;
		ncompleted += (size_t) n;
	}
	return 0;
}

/* Waits for the next request; NULL: the thread is to end. */
static Request *
next_request(GsParkFolder *folder)
{
	Request	   *request;

	pthread_mutex_lock(&folder->lock);
	while (folder->first == NULL && !folder->stopping)
		pthread_cond_wait(&folder->wakeup, &folder->lock);
	request = folder->first;
	if (request != NULL)
	{
		folder->first = request->next;
		if (folder->first == NULL)
			folder->end = &folder->first;
	}
	pthread_mutex_unlock(&folder->lock);
	return request;
}

static void *
thread_main(void *arg)
{
	GsParkFolder *folder = arg;
	Request	   *request;

	while ((request = next_request(folder)) != NULL)
	{
		GsParkFile *file = request->file;
		int			error = atomic_load(&file->error) == 0 ? transfer(request) : 0;

		if (error != 0)
			atomic_store(&file->error, error);
		free(request);

		/* last, because the file may be closed from now on */
		atomic_fetch_add(&file->ncompleted, 1);
	}
	return NULL;
}

/* ---------------------------------------------------------------- the files */

GsParkFolder *
gs_park_folder_create(const char *path, uint64_t limit)
{
	GsParkFolder *folder = calloc(1, sizeof(GsParkFolder));

	if (folder == NULL)
		return NULL;
	folder->path = strdup(path);
	if (folder->path == NULL)
	{
		free(folder);
		return NULL;
	}
	folder->limit = limit;
	folder->end = &folder->first;
	pthread_mutex_init(&folder->lock, NULL);
	pthread_cond_init(&folder->wakeup, NULL);
	return folder;
}

void
gs_park_folder_destroy(GsParkFolder *folder)
{
	if (folder->has_thread)
	{
		pthread_mutex_lock(&folder->lock);
		folder->stopping = true;
		pthread_cond_signal(&folder->wakeup);
		pthread_mutex_unlock(&folder->lock);
		pthread_join(folder->thread, NULL);
	}
	pthread_cond_destroy(&folder->wakeup);
	pthread_mutex_destroy(&folder->lock);
	free(folder->path);
	free(folder);
}

/*
 * Creates a file without a name.  If the file system does not support that, the
 * file has a name for a moment, which the server recognizes as a temporary file
 * and removes if we crash.
 */
static int
make_file(const char *path)
{
	int			fd = open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char		name[4096];

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	if (snprintf(name, sizeof(name), "%s/pgsql_tmp_gpusortd_XXXXXX", path) >= (int) sizeof(name))
		return -1;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	return fd;
}

GsParkFile *
gs_park_file_open(GsParkFolder *folder, uint64_t nbytes)
{
	GsParkFile *file;

	if (nbytes > folder->limit - folder->used)
		return NULL;
	if (!folder->has_thread)
		folder->has_thread = pthread_create(&folder->thread, NULL, thread_main, folder) == 0;
	file = folder->has_thread ? calloc(1, sizeof(GsParkFile)) : NULL;
	if (file == NULL)
		return NULL;
	file->fd = make_file(folder->path);
	if (file->fd < 0)
	{
		gs_log_limited("could not create a temporary file in \"%s\": %m", folder->path);
		free(file);
		return NULL;
	}
	file->folder = folder;
	file->nbytes = nbytes;
	folder->used += nbytes;
	return file;
}

void
gs_park_file_close(GsParkFile *file)
{
	close(file->fd);
	file->folder->used -= file->nbytes;
	free(file);
}

/* ------------------------------------------------------------- the requests */

bool
gs_park_file_request(GsParkFile *file, bool is_write, void *buffer, size_t nbytes,
					 uint64_t offset)
{
	GsParkFolder *folder = file->folder;
	Request	   *request = malloc(sizeof(Request));

	if (request == NULL)
		return false;
	*request = (Request)
	{
		.file = file,.buffer = buffer,.nbytes = nbytes,.offset = offset,.is_write = is_write
	};
	file->nrequested++;
	pthread_mutex_lock(&folder->lock);
	*folder->end = request;
	folder->end = &request->next;
	pthread_cond_signal(&folder->wakeup);
	pthread_mutex_unlock(&folder->lock);
	return true;
}

uint64_t
gs_park_file_nrequested(const GsParkFile *file)
{
	return file->nrequested;
}

uint64_t
gs_park_file_ncompleted(GsParkFile *file)
{
	return atomic_load(&file->ncompleted);
}

int
gs_park_file_error(GsParkFile *file)
{
	return atomic_load(&file->error);
}
