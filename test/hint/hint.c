/*-------------------------------------------------------------------------
 *
 * hint.c
 *	  A planner hook that changes a setting for the planner, as hints do.
 *
 * A query that begins with a comment of a plus sign, a setting's name and its value is planned with
 * that value.  The setting is as before when the planner is done, or fails.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "optimizer/planner.h"
#include "utils/guc.h"

#include "pg_compat.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static planner_hook_type next_planner_hook = NULL;

static PlannedStmt *
plan_query(GS_PLANNER_PARAMS)
{
	if (next_planner_hook)
		return next_planner_hook(GS_PLANNER_ARGS);
	return standard_planner(GS_PLANNER_ARGS);
}

static PlannedStmt *
hint_planner(GS_PLANNER_PARAMS)
{
	char		name[64];
	char		value[64];
	int			nest_level;
	PlannedStmt *statement;

	if (sscanf(query_string, " /*+ %63s %63s */", name, value) != 2)
		return plan_query(GS_PLANNER_ARGS);
	nest_level = NewGUCNestLevel();
	PG_TRY();
	{
		(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
								 ERROR, false);
		statement = plan_query(GS_PLANNER_ARGS);
	}
	PG_FINALLY();
	{
		AtEOXact_GUC(true, nest_level);
	}
	PG_END_TRY();
	return statement;
}

void
_PG_init(void)
{
	next_planner_hook = planner_hook;
	planner_hook = hint_planner;
}
