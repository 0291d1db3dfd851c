/*-------------------------------------------------------------------------
 *
 * device_table.h
 *	  The devices of a server, for all its processes: their state, memory and load.
 *
 * The table is a file.  Each device has a gpusortd and a slot, by the number of the
 * device.  gpusortd maps the file and changes its slot, and in those of others what it
 * borrows (device_loan.h); a backend reads a copy of the table to choose a device,
 * without asking anyone.  So a value can be behind, and those of a slot can be of
 * different moments.
 *
 * The name of the file ends with the build ID, so all who use a file agree on its
 * layout.  Zeros are a valid table, in which no device is used.
 *
 * ISO C.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_TABLE_H
#define GPUSORT_DEVICE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/device_identity.h"
#include "common/protocol.h"

/* Of a server; their numbers are lower. */
#define GS_MAX_DEVICES	16

/* A set of devices, a bit for each. */
typedef uint32_t GsDeviceSet;

#define GS_DEVICE_BIT(device)	((GsDeviceSet) 1 << (device))

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
	_Atomic uint64_t lent[GS_MAX_DEVICES];	/* to other devices: device_loan.h */
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

#endif							/* GPUSORT_DEVICE_TABLE_H */
