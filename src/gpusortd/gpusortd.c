/*-------------------------------------------------------------------------
 *
 * gpusortd.c
 *	  The program that owns a device and sorts for PostgreSQL's backends.
 *
 * This file has the options and the exit codes.  server.c has the loop,
 * connection.c and connection_message.c the protocol, src/job/ the sorts.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/basics.h"
#include "common/device_table.h"
#include "device/device.h"
#include "gpusortd/server.h"
#include "job/log.h"
#include "job/park_file.h"

#define DEFAULT_IDLE_SECONDS	60

/* The supervisor relies on these. */
typedef enum ExitCode
{
	EXIT_ENDED = 0,				/* by SIGTERM or SIGINT */
	EXIT_DEVICE_FAILED = 1,		/* start again */
	EXIT_USAGE = 2,
	EXIT_NO_DEVICE = GS_EXIT_NO_DEVICE,
	EXIT_NO_SOCKET = 4,			/* or another gpusortd has it; or no table */
	EXIT_WRONG_ORDER = GS_EXIT_WRONG_ORDER
} ExitCode;

typedef struct Options
{
	const char *socket;
	uint32_t	number;			/* of the device */
	bool		any_device;		/* no device was given */
	const char *table;			/* NULL: none */
	const char *park_folder;	/* NULL: none */
	uint64_t	park_limit;		/* bytes */
	uint64_t	memory_limit;	/* bytes; 0: the default */
	uint64_t	idle_us;
	int			ready_fd;		/* -1: none */
	int			watch_fd;		/* -1: none */
	bool		check;
} Options;

static const char usage[] =
"gpusortd sorts rows on a GPU for the backends of a PostgreSQL server.\n"
"\n"
"Usage: gpusortd --socket PATH [OPTION]...\n"
"       gpusortd --check [--device DEVICE]\n"
"\n"
"  --socket PATH       listen on this socket; only the same user may connect\n"
"  --device DEVICE     cuda:K, the CUDA device with this number (default: cuda:0)\n"
"  --table FILE        publish the state of the device in its slot of FILE.BUILD,\n"
"                      which gpusortd of all devices and backends share\n"
"  --memory-limit MB   limit of device memory; 0 (default): nine tenths of it\n"
"  --park-folder DIR   write sorted rows of idle clients to files in DIR if other\n"
"                      clients wait for their memory (default: do not)\n"
"  --park-limit MB     limit of these files; 0: write none (default: no limit)\n"
"  --idle-seconds N    release device memory and close connections after this\n"
"                      time without use (default: 60)\n"
"  --ready-fd N        write a line to this descriptor when ready, and close it\n"
"  --watch-fd N        send back each byte that this socket receives\n"
"  --check             print the device, or all CUDA devices, then exit\n"
"  --version           print version and build, then exit\n"
"  --help              print this help, then exit\n"
"\n"
"Exit codes: 0 ended by SIGTERM or SIGINT, 1 device failed, 2 wrong usage,\n"
"3 no such device, or another gpusortd uses it, 4 could not create the socket or the\n"
"table, or another gpusortd uses the socket, 5 the device sorted wrongly.\n";

/* The last value is for the switch in parse_options(): there are no short options. */
static const struct option long_options[] = {
	{"socket", required_argument, NULL, 's'},
	{"device", required_argument, NULL, 'd'},
	{"table", required_argument, NULL, 't'},
	{"memory-limit", required_argument, NULL, 'm'},
	{"park-folder", required_argument, NULL, 'f'},
	{"park-limit", required_argument, NULL, 'p'},
	{"idle-seconds", required_argument, NULL, 'i'},
	{"ready-fd", required_argument, NULL, 'r'},
	{"watch-fd", required_argument, NULL, 'w'},
	{"check", no_argument, NULL, 'c'},
	{"version", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0}
};

static void
wrong_usage(const char *why)
{
	gs_log("%s; try \"gpusortd --help\"", why);
	exit(EXIT_USAGE);
}

/* Parses the argument of an option as a number from 0 to max. */
static uint64_t
number_argument(const char *name, uint64_t max)
{
	char	   *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(optarg, &end, 10);
	if (optarg[0] < '0' || optarg[0] > '9' || *end != '\0' || errno != 0 || number > max)
	{
		char		why[100];

		snprintf(why, sizeof(why), "--%s requires a number from 0 to %llu", name,
				 (unsigned long long) max);
		wrong_usage(why);
	}
	return number;
}

/* Parses the argument of --device. */
static void
parse_device(Options *options)
{
	int			end = 0;

	options->any_device = false;
	if (sscanf(optarg, "cuda:%2u%n", &options->number, &end) != 1 || optarg[end] != '\0' ||
		options->number >= GS_MAX_DEVICES)
		wrong_usage("--device requires cuda:K");
}

static Options
parse_options(int argc, char **argv)
{
	Options		options = {
		.any_device = true,
		.park_limit = INT64_MAX,
		.idle_us = DEFAULT_IDLE_SECONDS * UINT64_C(1000000),
		.ready_fd = -1,
		.watch_fd = -1
	};
	int			option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
	{
		switch (option)
		{
			case 's':
				options.socket = optarg;
				break;
			case 'd':
				parse_device(&options);
				break;
			case 't':
				options.table = optarg;
				break;
			case 'm':
				options.memory_limit = number_argument("memory-limit", UINT32_MAX) << 20;
				break;
			case 'f':
				options.park_folder = optarg;
				break;
			case 'p':
				options.park_limit = number_argument("park-limit", UINT32_MAX) << 20;
				break;
			case 'i':
				options.idle_us = number_argument("idle-seconds", UINT32_MAX) * 1000000;
				break;
			case 'r':
				options.ready_fd = (int) number_argument("ready-fd", INT32_MAX);
				break;
			case 'w':
				options.watch_fd = (int) number_argument("watch-fd", INT32_MAX);
				break;
			case 'c':
				options.check = true;
				break;
			case 'v':
				printf("gpusortd %s, build %s\n", GPUSORT_VERSION, gs_build_id);
				exit(EXIT_ENDED);
			case 'h':
				fputs(usage, stdout);
				exit(EXIT_ENDED);
			default:
				wrong_usage("unknown option or missing argument");
		}
	}
	if (optind < argc)
		wrong_usage("too many arguments");
	if (options.socket == NULL && !options.check)
		wrong_usage("--socket is missing");
	return options;
}

/* NULL: the log has the reason. */
static GsDevice *
open_device(const Options *options)
{
	char		why_not[GS_FAILED_TEXT_BYTES];
	GsDevice   *device = gs_device_cuda_open((int) options->number, why_not, sizeof(why_not));

	if (device == NULL)
		gs_log("no device: %s", why_not);
	return device;
}

/* The number of devices; 0: none, or the program does not support them. */
static uint32_t
count_devices(void)
{
	char		why_not[GS_FAILED_TEXT_BYTES];

	return gs_device_cuda_count(why_not, sizeof(why_not));
}

/* Prints the device.  Returns the exit code. */
static int
check_device(const Options *options)
{
	int			code = EXIT_ENDED;
	GsDevice   *device = open_device(options);
	uint64_t	free_bytes;
	uint64_t	total_bytes;

	if (device == NULL)
		return EXIT_NO_DEVICE;
	if (device->ops->memory(device, &free_bytes, &total_bytes))
		printf("device %u: %s, %llu MB, of which %llu MB are free\n", options->number, device->name,
			   (unsigned long long) total_bytes >> 20, (unsigned long long) free_bytes >> 20);
	else
	{
		gs_log("no device: %s", device->error);
		code = EXIT_NO_DEVICE;
	}
	device->ops->close(device);
	return code;
}

/* Prints all CUDA devices, unless one was given.  Returns the exit code of the worst. */
static int
check_devices(Options *options)
{
	uint32_t	ndevices = options->any_device ? count_devices() : 0;
	int			code = check_device(options);

	for (options->number = 1; options->number < ndevices; options->number++)
		code = Max(code, check_device(options));
	return code;
}

/*
 * Opens the descriptor for the lines that the supervisor waits for; NULL: the log has the reason.
 */
static FILE *
open_ready(int ready_fd)
{
	FILE	   *ready = ready_fd < 0 ? stderr : fdopen(ready_fd, "w");

	if (ready == NULL)
		gs_log("could not write to descriptor %d: %s", ready_fd, strerror(errno));
	return ready;
}

/*
 * Tells the supervisor how many devices there are, before this one is opened, so that it
 * knows that even if this one fails.
 */
static void
report_devices(FILE *ready)
{
	uint32_t	ndevices = count_devices();

	if (ready == NULL || ready == stderr || ndevices == 0)
		return;
	fprintf(ready, "gpusortd: devices: %u\n", ndevices);
	fflush(ready);
}

/* Writes the line that the supervisor waits for, and closes the descriptor. */
static void
report_ready(const GsDevice *device, uint64_t memory_limit, FILE *ready)
{
	if (ready == NULL)
		return;
	fprintf(ready, "gpusortd: ready: %s, %llu MB, %s, build %s\n", device->name,
			(unsigned long long) memory_limit >> 20, device->driver, gs_build_id);
	if (ready != stderr)
		fclose(ready);
}

/* The table, or a private one; NULL: the log has the reason. */
static GsDeviceTable *
open_table(const Options *options)
{
	static GsDeviceTable private_table;
	GsDeviceTable *table =
		options->table == NULL ? &private_table : gs_device_table_map(options->table);
	GsDeviceSlot *slot;

	if (table == NULL)
	{
		gs_log("could not map \"%s\": %s", options->table, strerror(errno));
		return NULL;
	}
	slot = &table->slots[options->number];
	slot->identity[0] = slot->identity[1] = 0;
	slot->state = GS_DEVICE_STARTING;
	slot->pid = (uint32_t) getpid();
	return table;
}

/* False: another gpusortd uses the device that this one has opened; the log says which. */
static bool
claim_device(const Options *options, const GsDevice *device, GsDeviceTable *table)
{
	int			other = gs_device_table_claim(table, options->number, device->identity);

	if (other >= 0)
		gs_log("no device: device %u is the one that gpusortd of device %d uses", options->number,
			   other);
	return other < 0;
}

/* Serves clients.  Returns the exit code. */
static int
serve(const Options *options, GsServer *server, GsDevice *device, GsParkFolder *park_folder,
	  GsDeviceTable *table, FILE *ready)
{
	GsDeviceSlot *slot = &table->slots[options->number];
	bool		stopped;

	if (!gs_server_listen(server, device, options->memory_limit, park_folder, table,
						  options->number))
		return device->error[0] != '\0' ? EXIT_DEVICE_FAILED : EXIT_NO_SOCKET;
	slot->state = GS_DEVICE_RUNNING;
	report_ready(device, slot->memory_limit, ready);
	stopped = gs_server_run(server, options->idle_us);
	slot->state = stopped ? GS_DEVICE_UNUSED : GS_DEVICE_FAILED;
	if (stopped)
		return EXIT_ENDED;
	return gs_server_device_was_wrong(server) ? EXIT_WRONG_ORDER : EXIT_DEVICE_FAILED;
}

int
main(int argc, char **argv)
{
	Options		options = parse_options(argc, argv);
	GsServer   *server;
	GsDevice   *device;
	GsDeviceTable *table;
	GsParkFolder *park_folder = NULL;
	FILE	   *ready;
	int			code = EXIT_NO_DEVICE;

	signal(SIGPIPE, SIG_IGN);
	if (options.check)
		return check_devices(&options);

	/* before the device, which takes seconds to open */
	server = gs_server_create(options.socket, options.watch_fd);
	if (server == NULL)
		return EXIT_NO_SOCKET;
	table = open_table(&options);
	if (table == NULL)
	{
		gs_server_destroy(server);
		return EXIT_NO_SOCKET;
	}
	ready = open_ready(options.ready_fd);
	report_devices(ready);
	device = open_device(&options);
	if (options.park_folder != NULL && options.park_limit > 0)
		park_folder = gs_park_folder_create(options.park_folder, options.park_limit);
	if (device != NULL && claim_device(&options, device, table))
		code = serve(&options, server, device, park_folder, table, ready);
	if (code != EXIT_ENDED)
		table->slots[options.number].state = GS_DEVICE_FAILED;

	/* a device that still uses memory cannot be closed */
	if (!gs_server_destroy(server))
	{
		gs_device_return_all(table, options.number);
		_exit(EXIT_DEVICE_FAILED);
	}
	if (park_folder != NULL)
		gs_park_folder_destroy(park_folder);
	if (device != NULL)
		device->ops->close(device);
	return code;
}
