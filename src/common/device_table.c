/*-------------------------------------------------------------------------
 *
 * device_table.c
 *	  The devices of a server, for all its processes: which there are, their state,
 *	  memory and load, and which one does a job.
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
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/basics.h"

/* ---------------------------------------------------------- gpusort.device */

/* Parses a number of one or two digits; NULL: there is none. */
static const char *
parse_number(const char *text, uint32_t *number)
{
	int			ndigits = 0;

	*number = 0;
	for (; *text >= '0' && *text <= '9'; text++, ndigits++)
		*number = *number * 10 + (uint32_t) (*text - '0');
	return ndigits == 1 || ndigits == 2 ? text : NULL;
}

/* Numbers without repetition, separated by commas; spaces may follow these. */
static bool
parse_list(const char *text, GsDeviceSet *devices)
{
	for (;;)
	{
		uint32_t	number;

		text = parse_number(text, &number);
		if (text == NULL || number >= GS_MAX_DEVICES || (*devices & GS_DEVICE_BIT(number)) != 0)
			return false;
		*devices |= GS_DEVICE_BIT(number);
		if (*text == '\0')
			return true;
		if (*text++ != ',')
			return false;
		text += strspn(text, " ");
	}
}

bool
gs_device_choice_parse(const char *text, GsDeviceChoice *choice)
{
	choice->is_auto = strcmp(text, "auto") == 0;
	choice->devices = 0;
	return choice->is_auto || parse_list(text, &choice->devices);
}

/* ----------------------------------------------------------------- the file */

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

/* -------------------------------------------------------------------- loans */

uint64_t
gs_device_lent(const GsDeviceSlot *lender)
{
	uint64_t	nbytes = 0;

	for (int i = 0; i < GS_MAX_DEVICES; i++)
		nbytes += lender->lent[i];
	return nbytes;
}

uint64_t
gs_device_left(const GsDeviceSlot *slot)
{
	uint64_t	limit = slot->memory_limit;

	return limit - Min(limit, slot->committed + gs_device_lent(slot));
}

static bool
is_within_limit(const GsDeviceSlot *slot)
{
	return slot->committed + gs_device_lent(slot) <= slot->memory_limit;
}

bool
gs_device_commit(GsDeviceSlot *slot, uint64_t committed)
{
	atomic_store(&slot->committed, committed);
	return is_within_limit(slot);
}

bool
gs_device_borrow(GsDeviceSlot *lender, uint32_t borrower, uint64_t nbytes)
{
	atomic_fetch_add(&lender->lent[borrower], nbytes);
	if (is_within_limit(lender))
		return true;
	gs_device_return(lender, borrower, nbytes);
	return false;
}

void
gs_device_return(GsDeviceSlot *lender, uint32_t borrower, uint64_t nbytes)
{
	atomic_fetch_sub(&lender->lent[borrower], nbytes);
}

void
gs_device_return_all(GsDeviceTable *table, uint32_t borrower)
{
	for (int i = 0; i < GS_MAX_DEVICES; i++)
		atomic_store(&table->slots[i].lent[borrower], 0);
}

void
gs_device_clear(GsDeviceTable *table, uint32_t device)
{
	GsDeviceSlot *slot = &table->slots[device];

	if (slot->state != GS_DEVICE_UNUSED)
		slot->state = GS_DEVICE_FAILED;
	slot->njobs = 0;
	slot->nwaiting = 0;
	slot->used = 0;
	slot->turn_us = 0;
	gs_device_commit(slot, 0);
	gs_device_return_all(table, device);
}

/* ----------------------------------------------------------------- placement */

/* How good a device is. */
typedef struct Merit
{
	uint64_t	space;			/* that the job would get at once */
	uint32_t	njobs;
	bool		is_kept;
} Merit;

static Merit
merit_of(const GsDeviceTable *table, int device, const GsPlacementRequest *request)
{
	const GsDeviceSlot *slot = &table->slots[device];
	Merit		merit = {
		.space = Min(request->expected_bytes, gs_device_left(slot)),
		.njobs = slot->njobs + slot->nwaiting,
		.is_kept = (request->kept & GS_DEVICE_BIT(device)) != 0
	};

	if (merit.is_kept && merit.njobs > 0)
		merit.njobs--;
	return merit;
}

static bool
is_better(const Merit *merit, const Merit *than)
{
	if (merit->space != than->space)
		return merit->space > than->space;
	if (merit->njobs != than->njobs)
		return merit->njobs < than->njobs;
	return merit->is_kept && !than->is_kept;
}

static bool
is_candidate(const GsDeviceTable *table, int device, const GsPlacementRequest *request)
{
	const GsDeviceSlot *slot = &table->slots[device];

	return slot->state == GS_DEVICE_RUNNING && (request->excluded & GS_DEVICE_BIT(device)) == 0 &&
		(slot->kind == GS_DEVICE_KIND_CUDA || !request->only_cuda);
}

/*
 * The best device is, in this order, one that
 *
 *	  - has the most of the memory that the job expects; so the job need not wait
 *	  - has the fewest jobs
 *	  - has a connection of this process already
 *
 * and the next one from a number that depends on the process.  A new connection takes
 * some milliseconds, as long as a small sort, so one job more does not count at a
 * device that has a connection.
 */
int
gs_device_place(const GsDeviceTable *table, const GsPlacementRequest *request)
{
	int			candidates[GS_MAX_DEVICES];
	uint32_t	ncandidates = 0;
	int			best = -1;
	Merit		best_merit;

	for (int device = 0; device < GS_MAX_DEVICES; device++)
		if (is_candidate(table, device, request))
			candidates[ncandidates++] = device;
	for (uint32_t i = 0; i < ncandidates; i++)
	{
		int			device = candidates[(i + request->seed % ncandidates) % ncandidates];
		Merit		merit = merit_of(table, device, request);

		if (best < 0 || is_better(&merit, &best_merit))
		{
			best = device;
			best_merit = merit;
		}
	}
	return best;
}
