-- The planner knows the cost of a GpuSort at the top of a query.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SET gpusort.force = off;
SET gpusort.engine = cpu;
SET gpusort.min_rows = 20000;
SET seq_page_cost = 1;
SET random_page_cost = 4;
SET cpu_tuple_cost = 0.01;
SET cpu_index_tuple_cost = 0.005;
SET cpu_operator_cost = 0.0025;
SET effective_cache_size = '4GB';
SELECT setseed(0.5);
-- from 16 on an Incremental Sort costs less, so that a GpuSort costs less than that only for larger groups
SELECT CASE WHEN current_setting('server_version_num')::int < 160000 THEN 300 ELSE 10000 END AS group_size \gset
CREATE TEMP TABLE t AS SELECT id, (random() * 1e9)::int AS k, id / :group_size AS slow, id % 100 AS few, md5(id::text) COLLATE "C" AS c
FROM generate_series(1, 300000) id;
CREATE INDEX t_slow ON t (slow);
CREATE INDEX t_few ON t (few);
ANALYZE t;

-- The plan's nodes, from the top, and the cost of its sort without its input.
CREATE FUNCTION pg_temp.plan(query text, OUT nodes text, OUT cost numeric) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	sort jsonb;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	SELECT string_agg(coalesce(n ->> 'Custom Plan Provider', n ->> 'Node Type'), ' <- ') INTO nodes
	FROM jsonb_path_query(plan, 'strict $.**{0 to last} ? (exists (@."Node Type"))') n;
	sort := jsonb_path_query_first(plan, 'strict $.**{0 to last} ? ((@."Node Type" == "Sort" || @."Custom Plan Provider" == "GpuSort") && !exists (@."Presorted Key"))');
	cost := (sort -> 'Startup Cost')::numeric - (sort #> '{Plans,0,Total Cost}')::numeric;
END $$;

-- The plan with and without gpusort.planner_cost; is it cheaper?
CREATE FUNCTION pg_temp.compare(query text, OUT untold text, OUT told text, OUT cheaper boolean) LANGUAGE plpgsql AS $$
DECLARE
	plain_cost numeric;
	told_cost numeric;
BEGIN
	PERFORM set_config('gpusort.planner_cost', 'off', false);
	SELECT nodes, cost INTO untold, plain_cost FROM pg_temp.plan(query);
	PERFORM set_config('gpusort.planner_cost', 'on', false);
	SELECT nodes, cost INTO told, told_cost FROM pg_temp.plan(query);
	cheaper := told_cost < plain_cost;
	told := CASE WHEN told = untold THEN 'the same' ELSE told END;
END $$;

-- the cost is lower where a GpuSort will sort
SELECT q, c.* FROM unnest(ARRAY[
	'SELECT * FROM t ORDER BY k', 'SELECT k FROM t ORDER BY k', 'SELECT * FROM t ORDER BY c DESC, k', 'SELECT id, k + 1 FROM t ORDER BY 2', 'SELECT random() FROM t ORDER BY 1',
	'SELECT DISTINCT ON (c) c, k FROM t ORDER BY c, k', 'SELECT k, count(*) FROM t GROUP BY k ORDER BY count(*), k',
	'SELECT a.k FROM t a JOIN t b USING (id) ORDER BY a.k', 'SELECT k FROM t UNION ALL SELECT few FROM t ORDER BY 1',
	'SELECT * FROM t ORDER BY k LIMIT 200000', 'SELECT * FROM t ORDER BY k OFFSET 10', 'SELECT * FROM t ORDER BY k FETCH FIRST 10 ROWS WITH TIES',
	'SELECT * FROM t ORDER BY ROW(k)', 'SELECT * FROM t ORDER BY k, ROW(id)', 'SELECT * FROM t WHERE id < 10000 ORDER BY k', 'SELECT * FROM t WHERE id < 25000 ORDER BY k',
	'SELECT * FROM t ORDER BY k LIMIT 10', 'SELECT * FROM t ORDER BY k LIMIT (random() * 1e6)::int', 'SELECT unnest(ARRAY[1, 2]), k FROM t ORDER BY k']) q,
	pg_temp.compare(q) c;

-- and the same where a Sort stays
CREATE FUNCTION pg_temp.cheaper_with(setting text, value text) RETURNS boolean LANGUAGE sql AS $$
	SELECT set_config(setting, value, true);
	SELECT cheaper FROM pg_temp.compare('SELECT * FROM t ORDER BY k')
$$;
SELECT pg_temp.cheaper_with('gpusort.enabled', 'on');
SELECT pg_temp.cheaper_with('gpusort.enabled', 'off');
SELECT pg_temp.cheaper_with('gpusort.min_rows', '300001');
SELECT pg_temp.cheaper_with('work_mem', '64kB');
SELECT pg_temp.cheaper_with('enable_sort', 'off');

-- so the plan can change, where PostgreSQL's sort costs more than an index scan or an
-- incremental sort, and a GpuSort less; but not below a small LIMIT
SELECT p, q, c.* FROM (VALUES ('2', 'SELECT * FROM t ORDER BY few'), ('8.2', 'SELECT * FROM t ORDER BY few'), ('20', 'SELECT * FROM t ORDER BY few'),
	('8.2', 'SELECT * FROM t ORDER BY few LIMIT 10'), ('8.2', 'SELECT few FROM t ORDER BY few'),
	('4', 'SELECT * FROM t ORDER BY slow, k'), ('4', 'SELECT * FROM t ORDER BY slow, k LIMIT 10')) v(p, q),
	LATERAL (SELECT set_config('random_page_cost', p, false)) s, pg_temp.compare(q) c;
SET random_page_cost = 8.2;
SELECT pg_temp.same('SELECT * FROM t ORDER BY few', 'SELECT * FROM t ORDER BY few, id');
SET random_page_cost = 4;
SELECT pg_temp.same('SELECT * FROM t ORDER BY slow, k', 'SELECT * FROM t ORDER BY slow, k, id');
SELECT pg_temp.same('SELECT id, few * random() * 0 FROM t ORDER BY slow, k', 'SELECT id, few * random() * 0 FROM t ORDER BY slow, k, id');
-- a parameter of a generic plan
PREPARE sorted(int) AS SELECT * FROM t WHERE id > $1 ORDER BY few;
PREPARE bounded(int) AS SELECT * FROM t ORDER BY few, slow LIMIT $1;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE sorted(10);
EXPLAIN (COSTS OFF) EXECUTE bounded(10);
RESET plan_cache_mode;

-- workers: each sorts its part, and the parts are merged
CREATE TABLE gs_plan_cost AS SELECT * FROM t;
ANALYZE gs_plan_cost;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0.001;
SELECT q, c.* FROM unnest(ARRAY['SELECT * FROM gs_plan_cost ORDER BY k', 'SELECT id FROM gs_plan_cost ORDER BY k + 1 LIMIT 50000',
	'SELECT * FROM gs_plan_cost WHERE md5(c) > ''8'' ORDER BY k', 'SELECT * FROM gs_plan_cost ORDER BY k LIMIT (SELECT 10)']) q, pg_temp.compare(q) c;
SET parallel_tuple_cost = 10;
SELECT q, c.* FROM unnest(ARRAY['SELECT * FROM gs_plan_cost ORDER BY k']) q, pg_temp.compare(q) c;
-- PostgreSQL frees a path of the input that is in order, to which the input still points
CREATE FUNCTION gs_expensive(int) RETURNS text IMMUTABLE STRICT PARALLEL SAFE COST 5000 LANGUAGE plpgsql AS 'BEGIN RETURN $1::text; END';
SET parallel_tuple_cost = 0;
SET enable_seqscan = off;
DO $$ BEGIN EXECUTE 'EXPLAIN SELECT id, gs_expensive(id) AS x, lower(c) AS l, upper(c) AS u, k + 1 AS z FROM gs_plan_cost ORDER BY z, x, l, u, id'; END $$;
RESET enable_seqscan;
DROP FUNCTION gs_expensive;
DROP TABLE gs_plan_cost;
