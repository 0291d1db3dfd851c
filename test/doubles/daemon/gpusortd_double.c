/*-------------------------------------------------------------------------
 *
 * gpusortd_double.c
 *	  What gpusortd of a test build can do besides: the host device, and faults.
 *
 * Both are options of the program.  They are taken out of its arguments before its own
 * main() sees these, and --device host:K/N becomes --device cuda:K.  When it opens that
 * device, it gets the host device instead.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device_table.h"
#include "doubles/daemon/device_fault.h"
#include "doubles/daemon/device_host.h"
#include "doubles/wrap.h"
#include "job/log.h"

/* As in gpusortd.c. */
#define EXIT_USAGE	2

static const char usage[] =
"\n"
"This is a test build, which also has:\n"
"\n"
"  --device DEVICE     host, the CPU, or host:K/N, one of N parts of it\n"
"  --fault SPEC        inject faults into calls of the device (device.h): a\n"
"                      comma-separated list of op:call:kind, where kind is fail,\n"
"                      none (out of memory from then on), wrong (a wrong result),\n"
"                      kill, hang, delay=MS (the queued work) or block=MS (the\n"
"                      call), for example\n"
"                      pack:3:fail,allocate:5:none,gather:2:kill,copy_in:4:delay=500\n"
"                      K: before op means only the device with this number\n";

int			main(int argc, char **argv);

GS_WRAP(main);
GS_WRAP(gs_device_cuda_open);
GS_WRAP(gs_device_cuda_count);

static bool is_host = false;	/* the device */
static unsigned nparts = 1;		/* of the host's memory */
static const char *fault = NULL;

static void
print_usage(void)
{
	fputs(usage, stdout);
}

/* The argument of --device for the program. */
static char *
take_device(char *device)
{
	static char name[16];
	unsigned	number = 0;
	unsigned	n = 1;
	int			end = 0;

	is_host = strcmp(device, "host") == 0 ||
		(sscanf(device, "host:%2u/%2u%n", &number, &n, &end) == 2 && device[end] == '\0' &&
		 n <= GS_MAX_DEVICES && number < n);
	if (!is_host)
		return device;
	nparts = n;
	snprintf(name, sizeof(name), "cuda:%u", number);
	return name;
}

int
__wrap_main(int argc, char **argv)
{
	static char **kept;			/* as long as the program uses its arguments */
	int			nkept = 0;
	char		why_not[GS_FAILED_TEXT_BYTES];

	kept = calloc((size_t) argc + 1, sizeof(char *));
	if (kept == NULL)
		return EXIT_FAILURE;
	for (int i = 0; i < argc; i++)
	{
		if (strcmp(argv[i], "--fault") == 0 && i + 1 < argc)
		{
			fault = argv[++i];
			continue;
		}
		kept[nkept++] = argv[i];
		if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
			kept[nkept++] = take_device(argv[++i]);
		else if (strcmp(argv[i], "--help") == 0)
			atexit(print_usage);
	}
	if (fault != NULL && !gs_device_fault_check(fault, why_not, sizeof(why_not)))
	{
		gs_log("%s", why_not);
		return EXIT_USAGE;
	}
	return __real_main(nkept, kept);
}

GsDevice *
__wrap_gs_device_cuda_open(int number, char *why_not, size_t size)
{
	GsDevice   *device;
	GsDevice   *faulty;

	if (is_host)
		device = gs_device_host_open((uint32_t) number, gs_device_host_memory() / nparts, why_not,
									 size);
	else
		device = __real_gs_device_cuda_open(number, why_not, size);
	if (device == NULL || fault == NULL)
		return device;
	faulty = gs_device_fault_open(device, (uint32_t) number, fault, why_not, size);
	if (faulty == NULL)
		device->ops->close(device);
	return faulty;
}

uint32_t
__wrap_gs_device_cuda_count(char *why_not, size_t size)
{
	return is_host ? 0 : __real_gs_device_cuda_count(why_not, size);
}
