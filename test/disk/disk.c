/*-------------------------------------------------------------------------
 *
 * disk.c
 *	  A full disk, for a server that is started with this library in LD_PRELOAD.
 *
 * While the file that FULL_DISK names is there, large files whose path contains what that file contains
 * cannot grow: ENOSPC.  Small ones can, as the tables of the catalog are among them.  If it contains
 * "holes " before that, files can grow, but their holes cannot be written.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE				/* SEEK_HOLE */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define LARGE_BYTES		(4 << 20)
#define HOLES			"holes "

/* Reads a file, or a link if it is one, as a string. */
static int
read_name(const char *path, char *name, size_t size)
{
	ssize_t		nbytes = readlink(path, name, size - 1);
	int			file;

	if (nbytes < 0 && (file = open(path, O_RDONLY)) >= 0)
	{
		nbytes = read(file, name, size - 1);
		close(file);
	}
	name[nbytes > 0 ? nbytes : 0] = '\0';
	return nbytes > 0;
}

static int
is_full(int fd, off_t offset, off_t nbytes)
{
	char		link[64];
	char		part[1024];
	char		path[1024];
	struct stat status;
	const off_t end = offset + nbytes;
	int			of_holes;
	int			is_refused;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (!read_name(getenv("FULL_DISK"), part, sizeof(part)) || fstat(fd, &status) != 0 ||
		status.st_size < LARGE_BYTES || !read_name(link, path, sizeof(path)))
		return 0;
	of_holes = strncmp(part, HOLES, strlen(HOLES)) == 0;
	is_refused = of_holes ? end <= status.st_size && lseek(fd, offset, SEEK_HOLE) < end : end > status.st_size;
	return is_refused && strstr(path, part + (of_holes ? strlen(HOLES) : 0)) != NULL;
}

ssize_t
pwrite(int fd, const void *data, size_t nbytes, off_t offset)
{
	if (is_full(fd, offset, (off_t) nbytes))
	{
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, data, nbytes, offset);
}

ssize_t
pwritev(int fd, const struct iovec *parts, int nparts, off_t offset)
{
	if (is_full(fd, offset, 1))
	{
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_pwritev, fd, parts, nparts, offset, 0);
}

int
posix_fallocate(int fd, off_t offset, off_t nbytes)
{
	if (is_full(fd, offset, nbytes))
		return ENOSPC;
	return syscall(SYS_fallocate, fd, 0, offset, nbytes) == 0 ? 0 : errno;
}
