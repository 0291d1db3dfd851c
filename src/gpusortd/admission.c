/*-------------------------------------------------------------------------
 *
 * admission.c
 *	  Which jobs get device memory, which wait, and which give theirs back.
 *
 * The policy:
 *
 *	- In the order of arrival, each job that fits is let in.  One that does not
 *	  fit keeps nobody waiting.
 *	- Once the oldest has waited for AGED_US, what the jobs at work give back is
 *	  kept for it: a later one is let in only if the oldest will fit all the same
 *	  when these have ended.  Nobody is held back so for longer than HELD_US, nor
 *	  for a job that would not fit even then, since others rest on the memory.
 *	- A sorted job that rests for REST_US, as its client does not ask for more, is
 *	  parked (job_park.c) if that makes room for one that waits: the one that has
 *	  rested longest, and one at a time.
 *	- A job waits as long as its client says, and not at all if it is its own
 *	  session that has the memory.
 *
 * A job that rests in the middle of its load keeps its memory, and counts as one
 * that will not give it back.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/admission.h"

#include <stdlib.h>

#include "gpusortd/connection.h"
#include "gpusortd/log.h"

#define REST_US		250000
#define AGED_US		500000
#define HELD_US		1000000

/* While someone waits, time passes for all of this; it need not be exact. */
#define LOOK_US		10000

/* A parking that failed is not tried again at once. */
#define PARK_AGAIN_US	1000000

#define Min(a, b)		((a) < (b) ? (a) : (b))

/* ----------------------------------------------------------------- sessions */

GsMemoryAccount *
gs_admission_session(GsService *service, int session)
{
	GsMemoryAccount *account = service->sessions;

	while (account != NULL && account->session != session)
		account = account->next;
	if (account == NULL)
	{
		account = calloc(1, sizeof(GsMemoryAccount));
		if (account == NULL)
			return NULL;
		account->session = session;
		account->next = service->sessions;
		service->sessions = account;
	}
	account->nusers++;
	return account;
}

void
gs_admission_leave(GsService *service, GsMemoryAccount *account)
{
	GsMemoryAccount **link = &service->sessions;

	if (--account->nusers > 0)
		return;
	while (*link != account)
		link = &(*link)->next;
	*link = account->next;
	free(account);
}

/* ------------------------------------------------------------------ letting in */

/* Has it rested for so long? */
static bool
rests(const GsSortJob *job, uint64_t now)
{
	uint64_t	since = gs_job_rests_since(job);

	return since != 0 && now - Min(since, now) >= REST_US;
}

/*
 * Of what the oldest does not need once the jobs at work have ended: how much
 * later jobs may take now.  UINT64_MAX: whatever there is.
 */
static uint64_t
spare_for_later(const GsService *service, const GsConnection *oldest, uint64_t now)
{
	uint64_t	limit = gs_device_pool_limit(service->pool);
	uint64_t	taken = gs_connection_need(oldest);

	if (now - Min(gs_connection_waits_since(oldest), now) < AGED_US)
		return UINT64_MAX;
	for (const GsConnection *connection = gs_connection_first_active(service);
		 connection != NULL; connection = gs_connection_next_active(connection))
	{
		const GsSortJob *job = gs_connection_job(connection);

		if (job != NULL && rests(job, now))
			taken += gs_job_commitment(job);
	}
	if (taken > limit)
		return UINT64_MAX;

	/* those that were let in before it did */
	for (const GsConnection *connection = gs_connection_first_active(service);
		 connection != NULL; connection = gs_connection_next_active(connection))
	{
		const GsSortJob *job = gs_connection_job(connection);

		if (job != NULL && !rests(job, now) &&
			gs_connection_arrival(connection) > gs_connection_arrival(oldest))
			taken += gs_job_commitment(job);
	}
	return limit - Min(taken, limit);
}

/* Lets in who may be; sends away those whose time is over. */
static void
let_in(GsService *service, uint64_t now)
{
	GsConnection *next;
	GsConnection *oldest = NULL;
	uint64_t	spare = UINT64_MAX;

	for (GsConnection *connection = gs_connection_first_waiting(service);
		 connection != NULL && !service->device_failed; connection = next)
	{
		uint64_t	need = gs_connection_need(connection);
		bool		held = need > spare &&
			now - Min(gs_connection_waits_since(connection), now) < HELD_US;

		next = gs_connection_next_waiting(connection);
		if (gs_connection_is_over_share(connection))
			gs_connection_refuse(connection, "gpusort.device_session_memory is used up");
		else if (!held && gs_connection_admit(connection))
			spare -= spare == UINT64_MAX ? 0 : Min(need, spare);
		else if (gs_connection_deadline_us(connection) <= now)
			gs_connection_refuse(connection, "other sorts use the device memory");
		else if (oldest == NULL)
		{
			oldest = connection;
			spare = spare_for_later(service, oldest, now);
		}
	}
}

/* -------------------------------------------------------------------- parking */

static bool
can_be_parked(const GsConnection *connection, uint64_t now)
{
	const GsSortJob *job = gs_connection_job(connection);

	return job != NULL && gs_job_can_be_parked(job) && rests(job, now) &&
		gs_connection_park_again_us(connection) <= now;
}

/* Has one job parked, if that helps one that waits and none is on its way. */
static void
make_room(GsService *service, uint64_t now)
{
	uint64_t	limit = gs_device_pool_limit(service->pool);
	uint64_t	now_free = limit - Min(limit, gs_device_pool_committed(service->pool));
	uint64_t	room = now_free;
	GsConnection *longest = NULL;

	for (GsConnection *connection = gs_connection_first_active(service);
		 connection != NULL; connection = gs_connection_next_active(connection))
	{
		const GsSortJob *job = gs_connection_job(connection);

		if (job != NULL && gs_job_is_being_parked(job))
			return;
		if (!can_be_parked(connection, now))
			continue;
		room += gs_job_commitment(job);
		if (longest == NULL ||
			gs_job_rests_since(job) < gs_job_rests_since(gs_connection_job(longest)))
			longest = connection;
	}
	if (longest == NULL)
		return;
	for (const GsConnection *connection = gs_connection_first_waiting(service);
		 connection != NULL; connection = gs_connection_next_waiting(connection))
	{
		uint64_t	need = gs_connection_need(connection);

		if (need > now_free && need <= room)
		{
			if (!gs_job_park(gs_connection_job(longest), service->disk))
				gs_connection_set_park_again(longest, now + PARK_AGAIN_US);
			return;
		}
	}
}

/* -------------------------------------------------------------------- a look */

uint64_t
gs_admission_run(GsAdmission *admission, GsService *service)
{
	uint64_t	now;

	if (service->nwaiting == 0)
		return GS_NEVER;
	now = gs_clock_us();
	if (now < admission->next_us && admission->narrivals == service->narrivals &&
		admission->committed == gs_device_pool_committed(service->pool))
		return admission->next_us;

	let_in(service, now);
	if (service->disk != NULL && service->nwaiting > 0)
		make_room(service, now);
	admission->narrivals = service->narrivals;
	admission->committed = gs_device_pool_committed(service->pool);
	admission->next_us = now + LOOK_US;
	for (const GsConnection *connection = gs_connection_first_waiting(service);
		 connection != NULL; connection = gs_connection_next_waiting(connection))
		admission->next_us = Min(admission->next_us, gs_connection_deadline_us(connection));
	return service->nwaiting == 0 ? GS_NEVER : admission->next_us;
}
