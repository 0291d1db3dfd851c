/*-------------------------------------------------------------------------
 *
 * service_arguments.c
 *	  The command line of the gpusortd of one device, and its socket.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "guc.h"
#include "client/service_process.h"

#include "common/file_utils.h"
#include "miscadmin.h"
#include "storage/fd.h"

/*
 * The program that "make install" has installed with this library: in the folder of
 * the server's programs, or, if the library is not in the server's folder, in the
 * folder bin above or beside its own.
 */
static void
find_program(char *path)
{
	char		folder[MAXPGPATH];

	strlcpy(folder, gs_library_path(), MAXPGPATH);
	get_parent_directory(folder);
	for (int i = 0; i < 2 && strcmp(folder, pkglib_path) != 0; i++)
	{
		get_parent_directory(folder);
		join_path_components(path, folder, "bin/gpusortd");
		if (access(path, X_OK) == 0)
			return;
	}
	strlcpy(path, my_exec_path, MAXPGPATH);
	get_parent_directory(path);
	join_path_components(path, path, "gpusortd");
}

char *
gs_service_socket(int device)
{
	return device == 0 ? pstrdup(GS_SERVICE_SOCKET) : psprintf("%s.%d", GS_SERVICE_SOCKET, device);
}

char **
gs_service_arguments(int device)
{
	char	  **argv = palloc(20 * sizeof(char *));
	int			argc = 0;
	char		path[MAXPGPATH];

	if (gpusort_service_path[0] != '\0')
		strlcpy(path, gpusort_service_path, MAXPGPATH);
	else
		find_program(path);

	argv[argc++] = pstrdup(path);
	argv[argc++] = "--socket";
	argv[argc++] = gs_service_socket(device);
	argv[argc++] = "--device";
	argv[argc++] = psprintf("cuda:%d", device);
	argv[argc++] = "--table";
	argv[argc++] = GS_DEVICE_TABLE;
	argv[argc++] = "--memory-limit";
	argv[argc++] = psprintf("%d", gpusort_device_memory_limit);
	if (gpusort_device_park_limit != 0)
	{
		argv[argc++] = "--park-folder";
		argv[argc++] = GS_SERVICE_PARK_FOLDER;
	}
	if (gpusort_device_park_limit > 0)
	{
		argv[argc++] = "--park-limit";
		argv[argc++] = psprintf("%d", gpusort_device_park_limit);
	}
	argv[argc++] = "--idle-seconds";
	argv[argc++] = psprintf("%d", gpusort_device_idle);
	argv[argc++] = "--ready-fd";
	argv[argc++] = psprintf("%d", GS_SERVICE_READY_FD);
	argv[argc++] = "--watch-fd";
	argv[argc++] = psprintf("%d", GS_SERVICE_WATCH_FD);
	argv[argc] = NULL;
	return argv;
}
