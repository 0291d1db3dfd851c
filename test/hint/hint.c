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

PG_MODULE_MAGIC;

void		_PG_init(void);

static planner_hook_type next_planner_hook = NULL;

static PlannedStmt *
plan_query(Query *parse, const char *query_string, int cursor_options, ParamListInfo bound_params)
{
	if (next_planner_hook)
		return next_planner_hook(parse, query_string, cursor_options, bound_params);
	return standard_planner(parse, query_string, cursor_options, bound_params);
}

static PlannedStmt *
hint_planner(Query *parse, const char *query_string, int cursor_options,
			 ParamListInfo bound_params)
{
	char		name[64];
	char		value[64];
	int			nest_level;
	PlannedStmt *statement;

	if (sscanf(query_string, " /*+ %63s %63s */", name, value) != 2)
		return plan_query(parse, query_string, cursor_options, bound_params);
	nest_level = NewGUCNestLevel();
	PG_TRY();
	{
		(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
								 ERROR, false);
		statement = plan_query(parse, query_string, cursor_options, bound_params);
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
