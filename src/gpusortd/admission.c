/*-------------------------------------------------------------------------
 *
 * admission.c
 *	  Which jobs get device memory, which wait, and which are parked.
 *
 * gs_connection_admit() asks gs_device_pool_admit(), which decides whether a job fits, and
 * reserves.
 *
 * The policy:
 *
 *	- Each job that fits is admitted, in the order of arrival.  A job that does
 *	  not fit does not make later ones wait.
 *	- After the oldest waiting job has waited for RESERVE_AFTER_US, the memory
 *	  that active jobs will release is reserved for it: a later job is admitted
 *	  only if the oldest will still fit when the active jobs have ended.  This
 *	  delays no job by more than MAX_HELD_US, and it is not done if the oldest
 *	  would not fit even then because idle jobs hold the memory.
 *	- A sorted job whose client has requested nothing for IDLE_US is parked
 *	  (job_park.c) if that makes a waiting job fit, or if it has borrowed memory of
 *	  a device where jobs wait.  The job that has been idle longest goes first, one
 *	  at a time.
 *	- A job waits as long as its client allows, and not at all if its own
 *	  session holds the memory.
 *
 * A job that is idle in the middle of its input keeps its memory and is assumed
 * not to release it, and so are other devices that have borrowed memory.  They borrow
 * none while jobs wait (device_pool.c).
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/admission.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/min_max.h"
#include "gpusortd/connection.h"

#define IDLE_US		250000
#define RESERVE_AFTER_US		500000
#define MAX_HELD_US		1000000

/* While a job waits, the times above are checked this often. */
#define CHECK_INTERVAL_US		10000

/* The interval while no job waits but one has borrowed memory, in case other devices need it. */
#define LOAN_CHECK_INTERVAL_US		100000

/* Delay before parking is tried again after a failure. */
#define PARK_RETRY_US	1000000

/* ----------------------------------------------------------------- sessions */

GsMemoryAccount *
gs_admission_acquire_session(GsService *service, int session)
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
gs_admission_release_session(GsService *service, GsMemoryAccount *account)
{
	GsMemoryAccount **link = &service->sessions;

	if (--account->nusers > 0)
		return;
	while (*link != account)
		link = &(*link)->next;
	*link = account->next;
	free(account);
}

/* ------------------------------------------------------------------- admission */

/* Has the job been idle for IDLE_US? */
static bool
is_idle(const GsSortJob *job, uint64_t now)
{
	uint64_t	since = gs_job_idle_since(job);

	return since != 0 && now - Min(since, now) >= IDLE_US;
}

/*
 * How much memory jobs after the oldest may get now, so that the oldest will fit
 * when the active jobs have ended.  UINT64_MAX: no limit.
 */
static uint64_t
spare_for_later(const GsService *service, const GsConnection *oldest, uint64_t now)
{
	uint64_t	limit = gs_device_pool_limit(service->pool);
	uint64_t	taken = gs_connection_need(oldest) + gs_device_pool_lent(service->pool);

	if (now - Min(gs_connection_waiting_since(oldest), now) < RESERVE_AFTER_US)
		return UINT64_MAX;
	for (const GsConnection *connection = gs_connection_first_active(service);
		 connection != NULL; connection = gs_connection_next_active(connection))
	{
		const GsSortJob *job = gs_connection_job(connection);

		if (job != NULL && is_idle(job, now))
			taken += gs_job_commitment(job);
	}
	if (taken > limit)
		return UINT64_MAX;

	/* later jobs that were admitted before */
	for (const GsConnection *connection = gs_connection_first_active(service);
		 connection != NULL; connection = gs_connection_next_active(connection))
	{
		const GsSortJob *job = gs_connection_job(connection);

		if (job != NULL && !is_idle(job, now) &&
			gs_connection_arrival(connection) > gs_connection_arrival(oldest))
			taken += gs_job_commitment(job);
	}
	return limit - Min(taken, limit);
}

/* Admits waiting jobs; refuses those whose time is over. */
static void
admit_waiting(GsService *service, uint64_t now)
{
	GsConnection *next;
	GsConnection *oldest = NULL;
	uint64_t	spare = UINT64_MAX;

	for (GsConnection *connection = gs_connection_first_waiting(service);
		 connection != NULL && !service->device_failed; connection = next)
	{
		uint64_t	need = gs_connection_need(connection);
		bool		held = need > spare &&
			now - Min(gs_connection_waiting_since(connection), now) < MAX_HELD_US;

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

	return job != NULL && gs_job_can_be_parked(job) && is_idle(job, now) &&
		gs_connection_park_retry_us(connection) <= now;
}

static void
park(GsService *service, GsConnection *connection, uint64_t now)
{
	if (!gs_job_park(gs_connection_job(connection), service->park_folder))
		gs_connection_set_park_retry(connection, now + PARK_RETRY_US);
}

/*
 * Starts to park a job, if that makes a waiting one fit, or if jobs wait for what it has
 * borrowed, and none is being parked.
 */
static void
park_one(GsService *service, uint64_t now)
{
	uint64_t	free_now = gs_device_pool_uncommitted(service->pool);
	uint64_t	free_after = free_now;
	GsConnection *longest = NULL;
	GsConnection *wanted = NULL;

	for (GsConnection *connection = gs_connection_first_active(service);
		 connection != NULL; connection = gs_connection_next_active(connection))
	{
		const GsSortJob *job = gs_connection_job(connection);

		if (job != NULL && gs_job_is_being_parked(job))
			return;
		if (!can_be_parked(connection, now))
			continue;
		free_after += gs_job_commitment(job);
		if (longest == NULL ||
			gs_job_idle_since(job) < gs_job_idle_since(gs_connection_job(longest)))
			longest = connection;
		if (gs_job_is_wanted(job) && (wanted == NULL ||
			gs_job_idle_since(job) < gs_job_idle_since(gs_connection_job(wanted))))
			wanted = connection;
	}
	if (wanted != NULL)
	{
		park(service, wanted, now);
		return;
	}
	if (longest == NULL)
		return;
	for (const GsConnection *connection = gs_connection_first_waiting(service);
		 connection != NULL; connection = gs_connection_next_waiting(connection))
	{
		uint64_t	need = gs_connection_need(connection);

		if (need > free_now && need <= free_after)
		{
			park(service, longest, now);
			return;
		}
	}
}

/* -------------------------------------------------------------------- check */

uint64_t
gs_admission_run(GsAdmission *admission, GsService *service)
{
	uint64_t	now;

	if (service->nwaiting == 0 && !gs_device_pool_borrows(service->pool))
		return GS_NEVER;
	now = gs_clock_us();
	if (now < admission->next_us && admission->narrivals == service->narrivals &&
		admission->committed == gs_device_pool_committed(service->pool))
		return admission->next_us;

	admit_waiting(service, now);
	if (service->park_folder != NULL)
		park_one(service, now);
	admission->narrivals = service->narrivals;
	admission->committed = gs_device_pool_committed(service->pool);
	admission->next_us = now + (service->nwaiting > 0 ? CHECK_INTERVAL_US : LOAN_CHECK_INTERVAL_US);
	for (const GsConnection *connection = gs_connection_first_waiting(service);
		 connection != NULL; connection = gs_connection_next_waiting(connection))
		admission->next_us = Min(admission->next_us, gs_connection_deadline_us(connection));
	return service->nwaiting == 0 && !gs_device_pool_borrows(service->pool) ? GS_NEVER :
		admission->next_us;
}
