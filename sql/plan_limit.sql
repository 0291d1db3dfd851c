-- A LIMIT above a Sort: the GpuSort computes the bound itself if possible.
-- top_n.sql tests its use.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SET gpusort.debug_plan = on;
CREATE TEMP TABLE t AS SELECT id, (id * 7919) % 1000 AS k FROM generate_series(1, 1000) id;
ANALYZE t;

EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY k LIMIT 10;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY k LIMIT 500;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY k LIMIT 501;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY k LIMIT 10 OFFSET 490;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY k LIMIT 10 OFFSET 491;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY k LIMIT 0;
SET client_min_messages = warning;

-- no bound: OFFSET alone, ties, NULL, ALL
SELECT q, pg_temp.sorts('SELECT * FROM t ORDER BY k ' || q) FROM unnest(ARRAY[
	'OFFSET 10', 'OFFSET 0', 'FETCH FIRST 10 ROWS WITH TIES', 'LIMIT NULL', 'LIMIT ALL', 'LIMIT NULL OFFSET 3',
	'LIMIT 9223372036854775807', 'LIMIT 9223372036854775807 OFFSET 9223372036854775807']) q;
-- a bound: constant, known only at run time, volatile
SELECT q, pg_temp.sorts('SELECT * FROM t ORDER BY k ' || q) FROM unnest(ARRAY[
	'LIMIT 1', 'LIMIT 10 OFFSET NULL', 'LIMIT 10 OFFSET 0', 'FETCH FIRST ROW ONLY', 'LIMIT (SELECT 900)',
	'LIMIT 1 OFFSET (SELECT 900)', 'LIMIT 5 + 5', 'LIMIT (random() * 1000)::int', 'LIMIT 5 OFFSET (random() * 1000)::int', 'LIMIT CASE WHEN 3 IN (SELECT id FROM t) THEN 3 END', 'FOR UPDATE LIMIT 10']) q;

-- a bound passes through nodes that keep the number of rows, and no others
SELECT n, pg_temp.sorts(q) FROM (VALUES
	('subquery', 'SELECT * FROM (SELECT * FROM t ORDER BY k OFFSET 0) x LIMIT 10'),
	('its expressions', 'SELECT k + id FROM (SELECT *, random() AS r FROM t ORDER BY k OFFSET 0) x LIMIT 10'),
	('WHERE above it', 'SELECT * FROM (SELECT * FROM t ORDER BY k OFFSET 0) x WHERE id > 5 LIMIT 10'),
	('two limits', 'SELECT * FROM (SELECT * FROM t ORDER BY k LIMIT 900) x LIMIT 10'),
	('two limits', 'SELECT * FROM (SELECT * FROM t ORDER BY k LIMIT 10) x LIMIT 900'),
	('UNION ALL', '(SELECT * FROM t ORDER BY k OFFSET 0) UNION ALL (SELECT * FROM t ORDER BY id OFFSET 0) LIMIT 10'),
	('DISTINCT', 'SELECT DISTINCT k, id FROM t ORDER BY k LIMIT 10'),
	('DISTINCT ON', 'SELECT DISTINCT ON (k) k, id FROM t ORDER BY k, id LIMIT 10'),
	('window', 'SELECT k, sum(id) OVER (ORDER BY k) FROM t LIMIT 10'),
	('grouping', 'SELECT k, array_agg(id) FROM (SELECT * FROM t ORDER BY k OFFSET 0) x GROUP BY k LIMIT 10'),
	('row locks', 'SELECT * FROM (SELECT * FROM t ORDER BY k FOR UPDATE) x LIMIT 10'),
	('join', 'SELECT * FROM (SELECT * FROM t ORDER BY k OFFSET 0) x, (VALUES (1), (2)) v LIMIT 10')) x(n, q);
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT 'merge join' AS n, pg_temp.sorts('SELECT * FROM t a JOIN t b USING (k) LIMIT 10');
RESET enable_hashjoin;
RESET enable_nestloop;

-- a bound that a generic plan does not know
PREPARE first_rows(int) AS SELECT * FROM t ORDER BY k LIMIT $1;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE first_rows(900);
SET plan_cache_mode = force_custom_plan;
EXPLAIN (COSTS OFF) EXECUTE first_rows(900);
EXPLAIN (COSTS OFF) EXECUTE first_rows(9);
EXPLAIN (COSTS OFF) EXECUTE first_rows(NULL);
RESET plan_cache_mode;

-- the rows, for bounds around the number of rows
SELECT n, pg_temp.same(format('SELECT * FROM t ORDER BY k %s LIMIT %s', d, n), format('SELECT * FROM t ORDER BY k %s, id LIMIT %s', d, n))
FROM unnest('{501,999,1000,1001,1000000}'::int[]) n, unnest('{ASC,DESC}'::text[]) d;
SELECT n, pg_temp.same(format('SELECT id, k / 10 FROM t ORDER BY k / 10 OFFSET %s', n), format('SELECT id, k / 10 FROM t ORDER BY k / 10, id OFFSET %s', n))
FROM unnest('{0,1,999,1000,1001}'::int[]) n;
SELECT n, pg_temp.same(format('SELECT k / 10 FROM t ORDER BY k / 10 FETCH FIRST %s ROWS WITH TIES', n),
					   format('SELECT k / 10 FROM t ORDER BY k / 10 FETCH FIRST %s ROWS WITH TIES', n))
FROM unnest('{0,1,5,10,11,999,1000,1001}'::int[]) n;
SELECT array_agg(id) FROM (SELECT * FROM t ORDER BY k / 100 FETCH FIRST ROW WITH TIES) x WHERE id < 100;

-- a bound that changes from one rescan to the next
SELECT n, (SELECT array_agg(k) FROM (SELECT k FROM t WHERE k > 10 * n ORDER BY k LIMIT n) x) FROM generate_series(0, 4) n;
SELECT n, (SELECT array_agg(k) FROM (SELECT k FROM t WHERE k < 10 ORDER BY k OFFSET n) x) FROM generate_series(0, 11, 3) n;
