/*-------------------------------------------------------------------------
 *
 * connection_message.h
 *	  Reads and validates the messages of a client.
 *
 *-------------------------------------------------------------------------
 */
#ifndef GPUSORT_CONNECTION_MESSAGE_H
#define GPUSORT_CONNECTION_MESSAGE_H

#include "gpusortd/connection.h"

/* Reads and handles some of the messages that have arrived. */
extern void gs_connection_read(GsConnection *connection);

#endif							/* GPUSORT_CONNECTION_MESSAGE_H */
