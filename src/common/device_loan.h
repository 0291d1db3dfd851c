/*-------------------------------------------------------------------------
 *
 * device_loan.h
 *	  Memory of a device that gpusortd of other devices use.
 *
 * A gpusortd *borrows* by allocating on the other device.  The slot of that device, the
 * *lender*, has the sum for each borrower, which only the borrower changes:
 *
 *	  committed + lent <= memory_limit
 *
 * There is no lock.  Each side first changes its own number, then adds up all, and
 * takes its change back if the sum is too large.  So one of two that do so at the same
 * time sees the other; if both do, both fail, and may try again.
 *
 * ISO C.  Any thread may call.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_DEVICE_LOAN_H
#define GPUSORT_DEVICE_LOAN_H

#include "common/device_table.h"

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

#endif							/* GPUSORT_DEVICE_LOAN_H */
