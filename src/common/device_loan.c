/*-------------------------------------------------------------------------
 *
 * device_loan.c
 *	  Memory of a device that gpusortd of other devices use.
 *
 *-------------------------------------------------------------------------
 */
#include "common/device_loan.h"

#include "common/min_max.h"

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
