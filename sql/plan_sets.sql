-- Set operations, and an aggregate with ORDER BY, above GpuSorts: each of PostgreSQL 16, 17
-- and 18 has another plan for them, and so an expected file (CONTRIBUTING.md).
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TEMP TABLE t AS SELECT id, id % 10 AS k, nullif(id % 4, 0) AS n, ('word ' || id % 3) COLLATE "C" AS s, (id % 8)::float8 AS f
FROM generate_series(1, 300) id;
CREATE TEMP TABLE u AS SELECT id, id % 15 AS k, nullif(id % 5, 0) AS n, ('word ' || id % 4) COLLATE "C" AS s FROM generate_series(1, 200) id;
ANALYZE t;
ANALYZE u;

SET enable_hashagg = off;
SELECT pg_temp.nodes(q) AS plan, pg_temp.same(q, q) AS ok FROM unnest(ARRAY[
	'SELECT count(DISTINCT k), array_agg(id ORDER BY s DESC, id), percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM (SELECT * FROM t ORDER BY f OFFSET 0) x',
	'SELECT k FROM t UNION SELECT k FROM u',
	'SELECT k, n FROM t INTERSECT SELECT k, n FROM u',
	'SELECT s FROM u EXCEPT SELECT s FROM t',
	'SELECT k FROM t EXCEPT ALL SELECT k FROM u']) q;
