-- JIT-compiled expressions and tuple deforming above and below the node: the node's
-- slots must be of the kind that the code is compiled for.  Results are the same on a
-- server without JIT.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TEMP TABLE t AS SELECT id, id % 7 AS k, nullif(id % 5, 0) AS n, ('word ' || id % 3) COLLATE "C" AS s, (id % 8)::float8 AS f, id % 2 = 0 AS b
FROM generate_series(1, 500) id;
ANALYZE t;
SET jit = on;
SET jit_above_cost = 0;
SET jit_inline_above_cost = -1;
SET jit_optimize_above_cost = -1;
SET jit_tuple_deforming = on;
SET jit_expressions = on;
SELECT pg_temp.same(q, o) FROM (VALUES
	('SELECT k + 1, n * 2, s || ''x'', f / 2 FROM (SELECT * FROM t ORDER BY k, id OFFSET 0) x WHERE n > 1 AND f < 6 AND s <> ''word 1''', NULL),
	('SELECT n + 1 FROM (SELECT n FROM t ORDER BY n OFFSET 0) x WHERE n IS NULL OR n > 2', NULL),
	('SELECT f + 1 FROM (SELECT f FROM t ORDER BY f DESC OFFSET 0) x WHERE f <> 3', NULL),
	('SELECT s, length(s) FROM (SELECT s FROM t ORDER BY s OFFSET 0) x', NULL),
	('SELECT k, n, count(*), sum(id), max(s), bool_or(b) FROM (SELECT * FROM t ORDER BY k, n OFFSET 0) x GROUP BY k, n', NULL),
	('SELECT k, sum(id + 1) OVER (PARTITION BY k ORDER BY n, id), avg(f) OVER (ORDER BY s, id) FROM t', NULL),
	('SELECT DISTINCT k + n, b FROM (SELECT k, n, b FROM t WHERE k > 2 OFFSET 0) x ORDER BY 1, 2', NULL),
	('SELECT 1 AS one, NULL::int AS nothing, k, id, s FROM t ORDER BY k DESC, id', NULL),
	('SELECT x.*, x.k + x.id FROM (SELECT ''c'' AS c, * FROM t ORDER BY s OFFSET 0) x WHERE x.id > 10 AND c = ''c''',
	 'SELECT x.*, x.k + x.id FROM (SELECT ''c'' AS c, * FROM t ORDER BY s, id OFFSET 0) x WHERE x.id > 10 AND c = ''c''')) v(query, oracle),
	LATERAL (SELECT query AS q, coalesce(oracle, query) AS o) l;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT pg_temp.sorts('SELECT count(*), sum(a.id), sum(b.f) FROM t a JOIN t b ON a.k = b.k AND a.n < b.n'),
	   pg_temp.same('SELECT count(*), sum(a.id), sum(b.f) FROM t a JOIN t b ON a.k = b.k AND a.n < b.n',
					'SELECT count(*), sum(a.id), sum(b.f) FROM t a JOIN t b ON a.k = b.k AND a.n < b.n');
RESET enable_hashjoin;
RESET enable_nestloop;
SET enable_hashagg = off;
SELECT pg_temp.same(q, q) FROM unnest(ARRAY[
	'SELECT k, n, s, count(*), sum(f) FROM t GROUP BY GROUPING SETS ((k, n), (k), (s), ())',
	'SELECT k, b, count(DISTINCT n) FROM t GROUP BY ROLLUP (k, b)']) q;
-- once with optimization
SET jit_optimize_above_cost = 0;
SET jit_inline_above_cost = 0;
SELECT pg_temp.same('SELECT k + 1, n * 2, s, f FROM (SELECT * FROM t ORDER BY k, f OFFSET 0) x WHERE n > 1',
					'SELECT k + 1, n * 2, s, f FROM (SELECT * FROM t ORDER BY k, f, id OFFSET 0) x WHERE n > 1');
