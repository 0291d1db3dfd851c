/*-------------------------------------------------------------------------
 *
 * admission.c
 *	  Which jobs get device memory, which wait, and which are parked.
 *
 * README.md has the policy.  gs_connection_admit() asks gs_device_pool_admit(), which
 * decides whether a job fits, and reserves.  Of the jobs that can be parked, the one that
 * has been idle longest goes first, one at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "gpusortd/connection.h"

#include "common/basics.h"

/* A job whose client has requested nothing for this time can be parked. */
#define IDLE_US		250000

/* After this time memory is reserved for the oldest waiting job .. */
#define RESERVE_AFTER_US		500000

/* .. which delays no later job by more than this. */
#define MAX_HELD_US		1000000

/* While a job waits, the times above are checked this often. */
#define CHECK_INTERVAL_US		10000

/* The interval while no job waits but one has borrowed memory, in case other devices need it. */
#define LOAN_CHECK_INTERVAL_US		100000

/* Delay before parking is tried again after a failure. */
#define PARK_RETRY_US	1000000

/* ------------------------------------------------------------------- admission */

/* Has the job been idle for IDLE_US? */
static bool
is_idle(const GsSortJob *job, uint64_t now)
{
	uint64_t	since = gs_job_idle_since(job);

	return since != 0 && now - Min(since, now) >= IDLE_US;
}

/* Bytes of device memory that a job waits for. */
static uint64_t
need_of(const GsConnection *connection)
{
	return gs_device_pool_reservation(connection->service->pool, connection->open.expected_bytes);
}

/* How long it has waited. */
static uint64_t
waited_us(const GsConnection *connection, uint64_t now)
{
	return now - Min(connection->waiting_since_us, now);
}

/*
 * How much memory jobs after the oldest may get now, so that the oldest will fit when the
 * active jobs have ended.  Jobs that are idle, even in the middle of their input, and
 * other devices that have borrowed memory are assumed not to release it; these borrow
 * none while jobs wait (device_pool.c).  UINT64_MAX: no limit.
 */
static uint64_t
spare_for_later(const GsService *service, const GsConnection *oldest, uint64_t now)
{
	uint64_t	limit = service->pool->limit;
	uint64_t	taken = need_of(oldest) + gs_device_pool_lent(service->pool);
	uint64_t	later = 0;		/* of later jobs that were admitted before */

	if (waited_us(oldest, now) < RESERVE_AFTER_US)
		return UINT64_MAX;
	GS_LIST_FOREACH(const GsConnection, connection, active, &service->active)
	{
		if (connection->job == NULL)
			continue;
		if (is_idle(connection->job, now))
			taken += gs_device_pool_commitment(gs_job_memory(connection->job));
		else if (connection->arrival > oldest->arrival)
			later += gs_device_pool_commitment(gs_job_memory(connection->job));
	}
	return taken > limit ? UINT64_MAX : limit - Min(taken + later, limit);
}

/* Admits waiting jobs; refuses those whose time is over. */
static void
admit_waiting(GsService *service, uint64_t now)
{
	GsConnection *oldest = NULL;
	uint64_t	spare = UINT64_MAX;

	GS_LIST_FOREACH(GsConnection, connection, waiting, &service->waiting)
	{
		uint64_t	need = need_of(connection);
		bool		held = need > spare && waited_us(connection, now) < MAX_HELD_US;

		if (service->device_failed)
			return;
		if (!held && gs_connection_admit(connection))
			spare -= spare == UINT64_MAX ? 0 : Min(need, spare);
		else if (connection->deadline_us <= now)
			gs_connection_refuse_job(connection, GS_FAILED_MEMORY,
									 "other sorts use the device memory");
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
	return connection->job != NULL && gs_job_can_be_parked(connection->job) &&
		is_idle(connection->job, now) && connection->park_retry_us <= now;
}

static void
park(GsService *service, GsConnection *connection, uint64_t now)
{
	if (!gs_job_park(connection->job, service->park_folder))
		connection->park_retry_us = now + PARK_RETRY_US;
}

/* Of two jobs, or NULL and a job: the one that has been idle longer. */
static GsConnection *
longer_idle(GsConnection *a, GsConnection *b)
{
	return a != NULL && gs_job_idle_since(a->job) <= gs_job_idle_since(b->job) ? a : b;
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

	GS_LIST_FOREACH(GsConnection, connection, active, &service->active)
	{
		if (connection->job != NULL && gs_job_is_being_parked(connection->job))
			return;
		if (!can_be_parked(connection, now))
			continue;
		free_after += gs_device_pool_commitment(gs_job_memory(connection->job));
		longest = longer_idle(longest, connection);
		if (gs_device_pool_is_wanted(gs_job_memory(connection->job)))
			wanted = longer_idle(wanted, connection);
	}
	if (wanted != NULL)
	{
		park(service, wanted, now);
		return;
	}
	if (longest == NULL)
		return;
	GS_LIST_FOREACH(const GsConnection, connection, waiting, &service->waiting)
	{
		uint64_t	need = need_of(connection);

		if (need > free_now && need <= free_after)
		{
			park(service, longest, now);
			return;
		}
	}
}

/* -------------------------------------------------------------------- check */

uint64_t
gs_admission_run(GsService *service)
{
	uint64_t	now;

	if (service->nwaiting == 0 && service->pool->borrowed == 0)
		return GS_NEVER;
	now = gs_clock_us();
	if (now < service->next_check_us && service->checked_arrivals == service->narrivals &&
		service->checked_committed == service->pool->committed)
		return service->next_check_us;

	admit_waiting(service, now);
	if (service->park_folder != NULL)
		park_one(service, now);
	service->checked_arrivals = service->narrivals;
	service->checked_committed = service->pool->committed;
	service->next_check_us = now +
		(service->nwaiting > 0 ? CHECK_INTERVAL_US : LOAN_CHECK_INTERVAL_US);
	GS_LIST_FOREACH(const GsConnection, connection, waiting, &service->waiting)
	{
		service->next_check_us = Min(service->next_check_us, connection->deadline_us);
	}
	return service->nwaiting == 0 && service->pool->borrowed == 0 ? GS_NEVER :
		service->next_check_us;
}
