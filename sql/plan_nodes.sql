-- Every node that can be above a Sort, above a GpuSort: the plan, and the same rows
-- as without gpusort.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE FUNCTION pg_temp.check(query text, oracle text DEFAULT NULL) RETURNS TABLE (plan text, ok bool) LANGUAGE sql AS $$
	SELECT pg_temp.nodes(query), pg_temp.same(query, coalesce(oracle, query))
$$;

CREATE TEMP TABLE t AS SELECT id, id % 10 AS k, nullif(id % 4, 0) AS n, ('word ' || id % 3) COLLATE "C" AS s, (id % 8)::float8 AS f
FROM generate_series(1, 300) id;
CREATE TEMP TABLE u AS SELECT id, id % 15 AS k, nullif(id % 5, 0) AS n, ('word ' || id % 4) COLLATE "C" AS s FROM generate_series(1, 200) id;
ANALYZE t;
ANALYZE u;

-- merge joins: the inner side is marked and restored at duplicates
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT c.* FROM unnest(ARRAY[
	'SELECT t.k, t.id, u.id AS uid FROM t JOIN u ON t.k = u.k',
	'SELECT t.s, t.id, u.id AS uid FROM t JOIN u ON t.s = u.s',
	'SELECT t.k, t.id, u.id AS uid FROM t LEFT JOIN u ON t.k = u.k AND t.n = u.n',
	'SELECT t.n, t.id, u.id AS uid FROM t FULL JOIN u ON t.n = u.n',
	'SELECT t.n, t.id, u.id AS uid FROM t RIGHT JOIN u ON t.n = u.n AND t.id < u.id',
	'SELECT t.k, t.id FROM t WHERE EXISTS (SELECT FROM u WHERE u.k = t.k AND u.id > 100)',
	'SELECT t.n, t.id FROM t WHERE NOT EXISTS (SELECT FROM u WHERE u.n = t.n)']) q,
	pg_temp.check(format('SELECT * FROM (%s) x ORDER BY x::text COLLATE "C"', q)) c;
-- equal keys of another type, and keys in another order
SELECT c.* FROM pg_temp.check('SELECT t.k, u.k AS uk FROM t JOIN (SELECT k::int8 FROM u) u ON t.k = u.k ORDER BY t.k') c;
SELECT c.* FROM pg_temp.check('SELECT count(*), sum(a.id), sum(b.id) FROM t a JOIN t b ON a.k = b.k JOIN u ON b.k = u.k AND a.n = u.n') c;
RESET enable_hashjoin;
RESET enable_nestloop;

-- groups, distinct, unique, windows; plan_sets.sql has set operations
SET enable_hashagg = off;
SELECT c.* FROM (VALUES
	('SELECT k, count(*), sum(id), max(s) FROM t GROUP BY k', NULL),
	('SELECT s, n, count(*) FROM t GROUP BY s, n', NULL),
	('SELECT n, array_agg(id) FROM (SELECT * FROM t ORDER BY n OFFSET 0) x GROUP BY n',
	 'SELECT n, array_agg(id) FROM (SELECT * FROM t ORDER BY n, id OFFSET 0) x GROUP BY n'),
	('SELECT k, n, s, count(*), grouping(k, n, s) FROM t GROUP BY ROLLUP (k, n, s)', NULL),
	('SELECT k, n, count(*), sum(id) FROM t GROUP BY GROUPING SETS ((k, n), (n), ())', NULL),
	('SELECT k, s, count(DISTINCT f) FROM t GROUP BY CUBE (k, s)', NULL),
	('SELECT DISTINCT k, s FROM t', NULL),
	('SELECT DISTINCT f FROM t ORDER BY f DESC', NULL),
	('SELECT DISTINCT ON (k, s) k, s, id FROM t ORDER BY k, s', 'SELECT DISTINCT ON (k, s) k, s, id FROM t ORDER BY k, s, id'),
	('SELECT id, sum(id) OVER (PARTITION BY k ORDER BY f, id), rank() OVER (ORDER BY n DESC), lag(s) OVER (ORDER BY s, id) FROM t',
	 'SELECT id, sum(id) OVER (PARTITION BY k ORDER BY f, id), rank() OVER (ORDER BY n DESC), lag(s) OVER (ORDER BY s, id) FROM t'),
	('SELECT id, array_agg(id) OVER (ORDER BY f ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t',
	 'SELECT id, array_agg(id) OVER (ORDER BY f, id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t'),
	('SELECT k, row_number() OVER (PARTITION BY k), id FROM t ORDER BY k', 'SELECT k, row_number() OVER (PARTITION BY k ORDER BY id), id FROM t ORDER BY k')) v(q, o),
	pg_temp.check(q, o) c;
RESET enable_hashagg;

-- below Append, MergeAppend, SubqueryScan, CTE scans, function scans, materialisation
CREATE TEMP TABLE parts (id int, k int) PARTITION BY RANGE (id);
CREATE TEMP TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (5000);
CREATE TEMP TABLE parts_2 PARTITION OF parts FOR VALUES FROM (5000) TO (10000);
CREATE TEMP TABLE parts_3 PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT id, id % 11 FROM generate_series(1, 10100) id;
CREATE INDEX ON parts_1 (k, id);
CREATE INDEX ON parts_2 (k, id);
VACUUM ANALYZE parts;
SELECT c.* FROM pg_temp.check('SELECT * FROM parts ORDER BY k DESC, id') c;
SELECT c.* FROM pg_temp.check('SELECT * FROM parts ORDER BY k, id') c;
SELECT c.* FROM pg_temp.check('SELECT * FROM parts_3 ORDER BY k', 'SELECT * FROM parts_3 ORDER BY k, id') c;
SELECT c.* FROM (VALUES
	('(SELECT k, id FROM t ORDER BY k, id OFFSET 3) UNION ALL (SELECT k, id FROM u ORDER BY k DESC, id DESC OFFSET 5)'),
	('WITH x AS MATERIALIZED (SELECT * FROM t ORDER BY s, id DESC) SELECT a.id, b.id AS other FROM x a, x b WHERE a.id = b.k'),
	('WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL (SELECT i + 1 FROM (SELECT i FROM r ORDER BY i DESC OFFSET 0) x WHERE i < 5)) SELECT * FROM r ORDER BY i DESC'),
	('SELECT x.*, g FROM (SELECT * FROM t ORDER BY f, id OFFSET 290) x, generate_series(1, 3) g'),
	('SELECT unnest(ARRAY[k, id]) AS v, k FROM t ORDER BY k DESC, v'),
	('SELECT * FROM ROWS FROM (generate_series(3, 1, -1), json_to_recordset(''[{"a":2},{"a":1}]'') AS (a int)) x(g, a) ORDER BY a, g'),
	('SELECT ''x'' AS c, NULL::int AS d, k, id FROM t ORDER BY k, id DESC'),
	('SELECT t, u FROM t JOIN u USING (id) ORDER BY t.s, u.k, id'),
	('SELECT * FROM t TABLESAMPLE BERNOULLI (100) ORDER BY s DESC, id')) v(q), pg_temp.check(q) c;
