-- The functions that the other tests use can fail: each must detect what it is
-- meant to detect.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TEMP TABLE t AS SELECT id, id % 3 AS k, 0.0::float8 AS f FROM generate_series(1, 9) id;
SELECT pg_temp.gpusorts('SELECT * FROM t ORDER BY k') AS on;
SELECT pg_temp.gpusorts('SELECT * FROM (SELECT * FROM t ORDER BY k OFFSET 0) x ORDER BY id') AS two;
SET gpusort.enabled = off;
SELECT pg_temp.gpusorts('SELECT * FROM t ORDER BY k') AS off;
SET gpusort.enabled = on;

-- the same, another order, other rows, one row less, not replaced
SELECT pg_temp.same('SELECT * FROM t ORDER BY k', 'SELECT * FROM t ORDER BY k, id');
SELECT pg_temp.same('SELECT * FROM t ORDER BY k', 'SELECT * FROM t ORDER BY k, id DESC');
SELECT pg_temp.same('SELECT * FROM t ORDER BY k', 'SELECT id, k, -f FROM t ORDER BY k, id');
SELECT pg_temp.same('SELECT * FROM t ORDER BY k', 'SELECT * FROM t WHERE id < 9 ORDER BY k, id');
SELECT pg_temp.same('SELECT * FROM t', 'SELECT * FROM t');
SHOW gpusort.enabled;

-- stability: a sort by k alone is not one by k, id DESC, of rows or of zeros
SELECT pg_temp.rows_ok('t', 'k'), pg_temp.rows_ok('(SELECT * FROM t ORDER BY id DESC) x', 'k');
CREATE TEMP TABLE zeros AS
	SELECT id, CASE WHEN id % 2 = 0 THEN '-0' ELSE '0' END::float8 AS f FROM generate_series(1, 8) id;
SELECT pg_temp.keys_ok('zeros', 'f', 'f');
SELECT pg_temp.same('SELECT f FROM zeros ORDER BY f',
					'SELECT f FROM (SELECT * FROM zeros ORDER BY id DESC OFFSET 0) x');

SELECT pg_temp.check_column('t', 'k');
SET client_min_messages = warning;	-- one notice for each of the 48
SET gpusort.force = off;
SET gpusort.min_rows = 1000000;
SELECT pg_temp.check_column('t', 'to_jsonb(f)');
SET gpusort.force = on;
RESET gpusort.min_rows;
RESET client_min_messages;

SELECT f ? 'Engine' AS engine, f ->> 'Sorted Rows' AS rows, f -> 'Sort Key' AS key
FROM pg_temp.figures('SELECT * FROM t ORDER BY k') f;
SELECT pg_temp.figures('SELECT * FROM t') IS NULL AS no_sort;
SELECT pg_temp.left_behind();
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM t ORDER BY k;
MOVE 1 FROM c;
SELECT pg_temp.left_behind();
ROLLBACK;
