/*-------------------------------------------------------------------------
 *
 * host_arguments.c
 *	  The command line of a gpusortd of a test build (../daemon/gpusortd_double.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "client/service_process.h"
#include "doubles/library/double_settings.h"
#include "doubles/wrap.h"
#include "guc.h"

GS_WRAP(gs_service_arguments);

/* The device of gpusort.device = host; NULL: another value. */
static char *
host_device(int device)
{
	GsDeviceChoice choice;

	if (strncmp(gpusort_device, "host", 4) != 0 || !gs_device_choice_parse(gpusort_device, &choice))
		return NULL;
	return psprintf("host:%d/%d", device, __builtin_popcount(choice.devices));
}

char **
__wrap_gs_service_arguments(int device)
{
	char	  **before = __real_gs_service_arguments(device);
	char	   *host = host_device(device);
	char	  **argv;
	int			argc = 0;

	while (before[argc] != NULL)
		argc++;
	argv = palloc((argc + 3) * sizeof(char *));
	memcpy(argv, before, argc * sizeof(char *));
	for (int i = 1; i < argc && host != NULL; i++)
		if (strcmp(argv[i - 1], "--device") == 0)
			argv[i] = host;
	if (gpusort_service_fault[0] != '\0')
	{
		argv[argc++] = "--fault";
		argv[argc++] = pstrdup(gpusort_service_fault);
	}
	argv[argc] = NULL;
	return argv;
}
