/*-------------------------------------------------------------------------
 *
 * fsync.c
 *	  Makes an fsync() fail, of a server that is started with this library in LD_PRELOAD.
 *
 * The next fsync() of a relation's file fails with EIO once the file that FAIL_FSYNC names is there, and
 * removes that file.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int
fsync(int fd)
{
	char		link[64];
	char		path[1024];
	ssize_t		nbytes;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	nbytes = readlink(link, path, sizeof(path) - 1);
	path[nbytes > 0 ? nbytes : 0] = '\0';
	if (strstr(path, "/base/") != NULL && unlink(getenv("FAIL_FSYNC")) == 0)
	{
		errno = EIO;
		return -1;
	}
	return (int) syscall(SYS_fsync, fd);
}
