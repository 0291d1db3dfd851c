/*-------------------------------------------------------------------------
 *
 * welcome.h
 *	  The status of the daemon, as WELCOME reports it.
 *
 * The server loop updates the slot before each message that it sends, so the status is
 * never behind what a client knows.  The greeter's thread reads it at any time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_WELCOME_H
#define GPUSORT_WELCOME_H

#include "common/device_table.h"

extern GsWelcome gs_welcome_of(const GsDeviceSlot *slot);

#endif							/* GPUSORT_WELCOME_H */
