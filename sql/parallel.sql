-- Parallel plans: each participant sorts its share, Gather Merge merges them.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TABLE gs_parallel AS
	SELECT id, (id * 7919) % 1000 AS k, nullif(id % 5, 0) AS n, ('word ' || id % 77) COLLATE "C" AS s, (id % 100)::float8 AS f FROM generate_series(1, 20000) id;
ALTER TABLE gs_parallel SET (parallel_workers = 2);
ANALYZE gs_parallel;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;

EXPLAIN (COSTS OFF) SELECT * FROM gs_parallel ORDER BY k, id;
EXPLAIN (COSTS OFF) SELECT n FROM gs_parallel ORDER BY n DESC;
-- participants sort together, unless it is cheaper that they share computations on sorted rows
CREATE FUNCTION gs_after(id int) RETURNS int VOLATILE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS 'BEGIN RETURN id; END';
EXPLAIN (COSTS OFF) SELECT gs_after(id) FROM gs_parallel ORDER BY k;
ALTER FUNCTION gs_after COST 100;
EXPLAIN (COSTS OFF) SELECT gs_after(id) FROM gs_parallel ORDER BY k;
DROP FUNCTION gs_after;
-- (what was merged is compared by value: id makes the order total)
SELECT pg_temp.same(q, q) FROM unnest(ARRAY[
	'SELECT * FROM gs_parallel ORDER BY k, id', 'SELECT * FROM gs_parallel ORDER BY s DESC, f, id', 'SELECT n FROM gs_parallel ORDER BY n',
	'SELECT n FROM gs_parallel ORDER BY n DESC', 'SELECT s FROM gs_parallel ORDER BY s', 'SELECT f FROM gs_parallel ORDER BY f DESC']) q;

-- the workers have the library, also when it was only loaded by this session
SET parallel_leader_participation = off;
SELECT pg_temp.same('SELECT * FROM gs_parallel ORDER BY n NULLS FIRST, id', 'SELECT * FROM gs_parallel ORDER BY n NULLS FIRST, id');
RESET parallel_leader_participation;
SELECT f ? 'Engine' AS engine FROM pg_temp.figures('SELECT * FROM gs_parallel ORDER BY k, id') f;

-- EXPLAIN ANALYZE has details for each worker, as for PostgreSQL's nodes
CREATE FUNCTION pg_temp.workers_told(format text, pattern text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, FORMAT ' || format || ') SELECT * FROM gs_parallel ORDER BY k, id' LOOP
		plan := plan || line || E'\n';
	END LOOP;
	IF format = 'json' THEN
		PERFORM plan::json;
	END IF;
	RETURN (SELECT count(*) FROM regexp_matches(plan, pattern, 'g')) || ' of ' || substring(plan FROM 'Workers.Launched\D*(\d+)');
END $$;
SELECT format, pg_temp.workers_told(format, pattern) FROM (VALUES
	('text', 'Worker \d:  actual[^\n]*\n +(Sort Method|Rows Sent to Shared Sort): '),
	('json', '"Worker Number": \d,[^}]*"(Engine|Rows Sent to Shared Sort)": '),
	('yaml', 'Worker Number: \d\n[^-]* (Engine|Rows Sent to Shared Sort): '),
	('xml', '<Worker-Number>\d</Worker-Number>\s*(<Actual-[^\n]*\s*)*<(Sort-Method|Rows-Sent-to-Shared-Sort)>')) f (format, pattern);

-- in nested plans
SET enable_hashagg = off;
EXPLAIN (COSTS OFF) SELECT s, count(*), sum(id) FROM gs_parallel GROUP BY s;
SELECT pg_temp.same(q, q) FROM unnest(ARRAY[
	'SELECT s, count(*), sum(id) FROM gs_parallel GROUP BY s', 'SELECT DISTINCT k, n FROM gs_parallel ORDER BY k, n']) q;
RESET enable_hashagg;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT pg_temp.gpusorts('SELECT count(*) FROM gs_parallel a JOIN gs_parallel b USING (k, n)') > 0 AS sorts,
	   pg_temp.same('SELECT count(*), sum(a.id) FROM gs_parallel a JOIN gs_parallel b USING (k, n)',
					'SELECT count(*), sum(a.id) FROM gs_parallel a JOIN gs_parallel b USING (k, n)');
RESET enable_hashjoin;
RESET enable_nestloop;

-- a small work_mem in each participant; a LIMIT above the merge; settings reach the workers
SET work_mem = '64kB';
SELECT pg_temp.same('SELECT * FROM gs_parallel ORDER BY k DESC, id', 'SELECT * FROM gs_parallel ORDER BY k DESC, id'),
	   pg_temp.same('SELECT n FROM gs_parallel ORDER BY n', 'SELECT n FROM gs_parallel ORDER BY n');
SELECT f ? 'Engine' AS engine FROM pg_temp.figures('SELECT * FROM gs_parallel ORDER BY k, id') f;
SET work_mem = '64MB';
SELECT pg_temp.sorts('SELECT * FROM gs_parallel ORDER BY k, id LIMIT 10'), pg_temp.sorts('SELECT * FROM gs_parallel ORDER BY k, id LIMIT 19000');
SELECT pg_temp.same('SELECT * FROM gs_parallel ORDER BY k, id LIMIT 19000', 'SELECT * FROM gs_parallel ORDER BY k, id LIMIT 19000');

-- below a nested loop, executed again; ended early; with an error in a worker
SET enable_material = off;
SELECT count(*), sum(id) FROM generate_series(1, 3) g, LATERAL (SELECT id FROM (SELECT * FROM gs_parallel ORDER BY k, id OFFSET 0) x WHERE x.n <> g) y;
BEGIN;
DECLARE c CURSOR FOR SELECT k, id FROM gs_parallel ORDER BY k, id;
FETCH 3 FROM c;
COMMIT;
\set VERBOSITY sqlstate
SELECT id / (id - 15000) AS d FROM gs_parallel ORDER BY d;
\set VERBOSITY default
SELECT pg_temp.left_behind();
-- the whole query in a worker
SELECT set_config(name, 'on', false) AS forced FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode');	-- the name before 16
SELECT pg_temp.same('SELECT * FROM (SELECT id % 3 AS a, id FROM generate_series(1, 9) id) x ORDER BY a',
					'SELECT * FROM (SELECT id % 3 AS a, id FROM generate_series(1, 9) id) x ORDER BY a, id');
SELECT set_config(name, 'off', false) AS forced FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode');
DROP TABLE gs_parallel;
