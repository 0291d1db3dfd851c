-- Virtual generated columns of PostgreSQL 18 and later: sorts compute them from the row.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SELECT current_setting('server_version_num')::int < 180000 AS too_old \gset
\if :too_old
\echo skipped: needs PostgreSQL 18
\quit
\endif
CREATE TEMP TABLE t (
	id int, n int, s text COLLATE "C",
	twice bigint GENERATED ALWAYS AS (n::bigint * 2) VIRTUAL,
	reversed text COLLATE "C" GENERATED ALWAYS AS (reverse(s)) VIRTUAL,
	both_of text COLLATE "C" GENERATED ALWAYS AS (s || ':' || n) VIRTUAL,
	stored int GENERATED ALWAYS AS (n % 10) STORED,
	nothing int GENERATED ALWAYS AS (NULL) VIRTUAL);
INSERT INTO t (id, n, s)
SELECT i, nullif(hashint4(i) % 50, 7), CASE WHEN i % 11 > 0 THEN 'text ' || hashint4(i + 1) % 40 END FROM generate_series(1, 500) i;
ANALYZE t;

EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM t ORDER BY twice, stored;
SELECT c, pg_temp.check_column('t', c) FROM unnest('{twice,reversed,both_of,nothing}'::text[]) c;
SELECT o, pg_temp.rows_ok('t', o)
FROM unnest('{"reversed DESC, twice","stored, twice NULLS FIRST","twice / 3, both_of","nothing, reversed"}'::text[]) o;
SELECT pg_temp.same('SELECT * FROM t ORDER BY twice, id LIMIT 7', 'SELECT * FROM t ORDER BY twice, id LIMIT 7');

-- where an outer join makes them NULL
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT pg_temp.same(q, q) FROM (VALUES
	('SELECT a.id, b.* FROM t a LEFT JOIN t b ON a.id = b.twice ORDER BY b.reversed, b.both_of DESC, a.id, b.id'),
	('SELECT a.id, b.id, b.twice FROM t a FULL JOIN t b ON a.twice = b.n ORDER BY a.id, b.id')) v(q);

-- changed by UPDATE; PostgreSQL builds no index of them
UPDATE t SET n = -n WHERE id % 3 = 0;
SELECT pg_temp.rows_ok('t', 'twice, id');
CREATE INDEX ON t (twice);
CREATE INDEX ON t ((twice + 1));
CREATE INDEX ON t (n) INCLUDE (reversed);
CREATE INDEX ON t (n) WHERE twice > 0;
SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass;
