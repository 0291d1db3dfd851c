/*-------------------------------------------------------------------------
 *
 * device_table.h
 *	  The devices of a server, for all its processes: which there are, their state,
 *	  memory and load, and which one does a job.
 *
 * The table is a file, with a slot for each device and its gpusortd, by the number of the
 * device.  gpusortd maps the file and changes its slot, and in those of others what it
 * borrows; a backend reads a copy of the table to choose a device, without asking anyone.
 * So a value can be behind, and those of a slot can be of different moments.
 *
 * The name of the file ends with the build ID, so all who use a file agree on its
 * layout.  Zeros are a valid table, in which no device is used.
 *
 * C without PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_TABLE_H
#define GPUSORT_DEVICE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/protocol.h"

/* Of a server; their numbers are lower. */
#define GS_MAX_DEVICES	16

/* A set of devices, a bit for each. */
typedef uint32_t GsDeviceSet;

#define GS_DEVICE_BIT(device)	((GsDeviceSet) 1 << (device))
#define GS_DEVICES_BELOW(number)	(GS_DEVICE_BIT(number) - 1)

/*
 * The value of gpusort.device: "auto", all devices that CUDA shows; or some of them, as CUDA
 * counts them, such as "0,2".
 */
typedef struct GsDeviceChoice
{
	bool		is_auto;
	GsDeviceSet devices;		/* if auto: those that are known so far */
} GsDeviceChoice;

/* False: the text is invalid. */
extern bool gs_device_choice_parse(const char *text, GsDeviceChoice *choice);

typedef enum GsDeviceState
{
	GS_DEVICE_UNUSED,			/* no gpusortd */
	GS_DEVICE_STARTING,
	GS_DEVICE_RUNNING,			/* gpusortd accepts clients */
	GS_DEVICE_FAILED
} GsDeviceState;

/* What all gpusortd of a device have done since counted_since of the table. */
typedef struct GsDeviceCounters
{
	_Atomic uint64_t jobs;		/* that have ended */
	_Atomic uint64_t bytes_in;	/* of rows and keys */
	_Atomic uint64_t bytes_out;
	_Atomic uint64_t busy_us;	/* in which the device had work */
	_Atomic uint64_t failures;	/* of gpusortd, by itself or by a signal */
} GsDeviceCounters;

typedef struct GsDeviceSlot
{
	_Atomic uint32_t state;		/* a GsDeviceState */
	_Atomic uint32_t pid;		/* of gpusortd */
	_Atomic uint64_t identity[2];	/* of the device that it has opened */
	uint32_t	kind;			/* a GsDeviceKind; constant while RUNNING, like the
								 * following three */
	char		name[GS_DEVICE_NAME_BYTES];
	_Atomic uint64_t memory_total;	/* bytes of the device */
	_Atomic uint64_t memory_limit;	/* that jobs may use */
	_Atomic uint64_t committed;	/* to jobs of its own */
	_Atomic uint64_t lent[GS_MAX_DEVICES];	/* to other devices: see gs_device_lent() */
	_Atomic uint64_t used;		/* by jobs */
	_Atomic uint64_t reserved;	/* allocated, including free blocks */
	_Atomic uint64_t jobs_done;
	_Atomic uint32_t njobs;		/* open */
	_Atomic uint32_t nwaiting;	/* waiting for memory */
	_Atomic uint64_t turn_us;	/* when the turn of the loop began; 0: it waits */
	GsDeviceCounters counters;
} GsDeviceSlot;

typedef struct GsDeviceTable
{
	GsDeviceSlot slots[GS_MAX_DEVICES];
	_Atomic int64_t counted_since;	/* of the counters, like time() */
} GsDeviceTable;

/*
 * Maps the table, which is created if it does not exist, for the rest of the life of
 * the process.  path is the name of the file without the build ID.  NULL: errno has
 * the error.
 */
extern GsDeviceTable *gs_device_table_map(const char *path);

/*
 * Publishes the identity of the device that gpusortd of this number has opened.  Returns
 * the number of another gpusortd that uses the same device; -1: none does.  Of two that
 * claim it at the same time, at most one gets -1.
 */
extern int	gs_device_table_claim(GsDeviceTable *table, uint32_t number, GsDeviceIdentity identity);

/*
 * Copies the table.  A device whose gpusortd does not exist any more is FAILED, and
 * invalid contents are replaced by valid ones.  False: there is no table of this build.
 */
extern bool gs_device_table_read(const char *path, GsDeviceTable *table);

/* Sets all counters to zero, without mapping the file.  False: errno has the error. */
extern bool gs_device_table_reset_counters(const char *path);

/* Adds to a counter. */
static inline void
gs_device_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* The identity that gpusortd has published. */
static inline GsDeviceIdentity
gs_device_slot_identity(const GsDeviceSlot *slot)
{
	GsDeviceIdentity identity = {{slot->identity[0], slot->identity[1]}};

	return identity;
}

/* The number of devices that are used, whether they are running or not. */
static inline int
gs_device_table_count(const GsDeviceTable *table)
{
	int			n = 0;

	for (int i = 0; i < GS_MAX_DEVICES; i++)
		n += table->slots[i].state != GS_DEVICE_UNUSED;
	return n;
}

/*
 * Loans: a gpusortd *borrows* by allocating on the device of another one, the *lender*, whose
 * slot has the sum for each borrower, which only the borrower changes:
 *
 *	  committed + lent <= memory_limit
 *
 * There is no lock.  Each side first changes its own number, then adds up all, and takes its
 * change back if the sum is too large.  So one of two that do so at the same time sees the
 * other; if both do, both fail, and may try again.  Any thread may call.
 */

/* Bytes that all borrowers have of the device. */
extern uint64_t gs_device_lent(const GsDeviceSlot *lender);

/* Bytes that are neither committed nor lent. */
extern uint64_t gs_device_left(const GsDeviceSlot *slot);

/* Sets what the device has committed to its own jobs.  False: that is too much now. */
extern bool gs_device_commit(GsDeviceSlot *slot, uint64_t committed);

/* Counts a loan; false: the lender does not have so much left. */
extern bool gs_device_borrow(GsDeviceSlot *lender, uint32_t borrower, uint64_t nbytes);

/* Ends a loan, after its memory has been released. */
extern void gs_device_return(GsDeviceSlot *lender, uint32_t borrower, uint64_t nbytes);

/* Ends all loans of a borrower whose process has ended, or is about to. */
extern void gs_device_return_all(GsDeviceTable *table, uint32_t borrower);

/* The gpusortd of a device has ended, perhaps killed: it has no jobs and no loans any more. */
extern void gs_device_clear(GsDeviceTable *table, uint32_t device);

typedef struct GsPlacementRequest
{
	uint64_t	expected_bytes; /* of device memory */
	GsDeviceSet kept;			/* there is a connection to these */
	GsDeviceSet excluded;		/* these are not available */
	bool		only_cuda;
	uint32_t	seed;			/* so that processes that see the same choose
								 * different devices */
} GsPlacementRequest;

/* The best device for a job; -1: none is running. */
extern int	gs_device_place(const GsDeviceTable *table, const GsPlacementRequest *request);

#endif							/* GPUSORT_DEVICE_TABLE_H */
