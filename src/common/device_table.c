/*-------------------------------------------------------------------------
 *
 * device_table.c
 *	  The devices of a server, for all its processes: their state, memory and load.
 *
 * A backend does not map the file, but reads it: then nothing that happens to the file
 * can raise SIGBUS, and a file that was replaced is found at once.  With eight devices
 * this takes 17 us (2 busy cores of an AMD EPYC, 2026-11), and it is done once for each
 * large sort and in its planning.
 *
 *-------------------------------------------------------------------------
 */
#include "common/device_table.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/build_id.h"

/* Opens the file of this build; -1: errno has the error. */
static int
open_table(const char *path, int flags)
{
	char		name[1024];
	int			nbytes = snprintf(name, sizeof(name), "%s.%s", path, gs_build_id);

	if (nbytes >= (int) sizeof(name))
	{
		errno = ENAMETOOLONG;
		return -1;
	}
	return open(name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Gives a new file its size.  Several processes may do so at the same time. */
static bool
set_size(int file)
{
	struct stat status;

	if (fstat(file, &status) != 0)
		return false;
	if (status.st_size == 0)
		return ftruncate(file, sizeof(GsDeviceTable)) == 0;
	if (status.st_size == sizeof(GsDeviceTable))
		return true;
	errno = EINVAL;
	return false;
}

GsDeviceTable *
gs_device_table_map(const char *path)
{
	int			file = open_table(path, O_RDWR | O_CREAT);
	void	   *table = MAP_FAILED;
	int			error;

	if (file < 0)
		return NULL;
	if (set_size(file))
		table = mmap(NULL, sizeof(GsDeviceTable), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	error = errno;
	close(file);
	errno = error;
	return table == MAP_FAILED ? NULL : table;
}

bool
gs_device_table_reset_counters(const char *path)
{
	static const GsDeviceCounters zeros;
	const int64_t now = time(NULL);
	int			file = open_table(path, O_RDWR);
	bool		written;

	if (file < 0)
		return false;
	written = pwrite(file, &now, sizeof(now),
					 offsetof(GsDeviceTable, counted_since)) == sizeof(now);
	for (int i = 0; i < GS_MAX_DEVICES; i++)
		written &= pwrite(file, &zeros, sizeof(zeros),
						  offsetof(GsDeviceTable, slots) + i * sizeof(GsDeviceSlot) +
						  offsetof(GsDeviceSlot, counters)) == sizeof(zeros);
	close(file);
	return written;
}

static bool
process_exists(uint32_t pid)
{
	return pid > 1 && pid <= INT32_MAX && (kill((pid_t) pid, 0) == 0 || errno == EPERM);
}

/* Has it a gpusortd, which may have opened a device? */
static bool
is_in_use(const GsDeviceSlot *slot)
{
	return (slot->state == GS_DEVICE_STARTING || slot->state == GS_DEVICE_RUNNING) &&
		process_exists(slot->pid);
}

int
gs_device_table_claim(GsDeviceTable *table, uint32_t number, GsDeviceIdentity identity)
{
	/* before the look at the others: of two at the same time, one sees the other */
	for (int i = 0; i < 2; i++)
		atomic_store(&table->slots[number].identity[i], identity.words[i]);
	for (uint32_t i = 0; i < GS_MAX_DEVICES; i++)
		if (i != number && is_in_use(&table->slots[i]) &&
			gs_is_same_device(gs_device_slot_identity(&table->slots[i]), identity))
			return (int) i;
	return -1;
}

bool
gs_device_table_read(const char *path, GsDeviceTable *table)
{
	int			file = open_table(path, O_RDONLY);
	ssize_t		nbytes;

	if (file < 0)
		return false;
	nbytes = read(file, table, sizeof(*table));
	close(file);
	if (nbytes != sizeof(*table))
		return false;
	for (int i = 0; i < GS_MAX_DEVICES; i++)
	{
		GsDeviceSlot *slot = &table->slots[i];

		slot->name[GS_DEVICE_NAME_BYTES - 1] = '\0';
		if (slot->state > GS_DEVICE_FAILED)
			slot->state = GS_DEVICE_UNUSED;
		if (slot->state == GS_DEVICE_RUNNING &&
			((slot->kind != GS_DEVICE_KIND_HOST && slot->kind != GS_DEVICE_KIND_CUDA) ||
			 !process_exists(slot->pid)))
			slot->state = GS_DEVICE_FAILED;
	}
	return true;
}
