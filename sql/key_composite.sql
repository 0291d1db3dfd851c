-- Composite types: their columns in turn, by the default order of each column's type; a NULL in a
-- column sorts last, whatever NULLS FIRST says, and two NULLs are equal.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TYPE gs_mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE gs_mood ADD VALUE 'none' BEFORE 'sad';
CREATE TYPE gs_pair AS (a int, b text COLLATE "C");
CREATE TYPE gs_nested AS (p gs_pair, q numeric, r int[], m gs_mood, f float8);
CREATE TYPE gs_words AS (a text, b text COLLATE "POSIX", c char(5));
CREATE TYPE gs_empty AS ();
CREATE TYPE gs_json AS (a int, j tsquery);
CREATE TYPE gs_changing AS (a int, gone text, b text COLLATE "C");
CREATE DOMAIN gs_positive_pair AS gs_pair CHECK ((VALUE).a > 0);

SELECT setseed(0.6);
CREATE TEMP TABLE t AS SELECT id, id % 5 AS k,
	CASE WHEN id % 9 > 0 THEN ROW(nullif((id * 7919) % 7, 0) - 3, pg_temp.pick('{"",a,b,abc,abcdefgh,abcdefghi}'::text[]))::gs_pair END AS p,
	CASE WHEN id % 9 > 0 THEN ROW(1 + (id * 7919) % 3, nullif(id % 4, 0)::text)::gs_positive_pair END AS d,
	ROW(CASE WHEN id % 4 > 0 THEN ROW(id % 2, nullif(id % 3, 0)::text)::gs_pair END, (id % 5) / 3.0, ARRAY[nullif(id % 7, 0), 1],
		pg_temp.pick(enum_range(NULL::gs_mood)), pg_temp.pick('{NaN,-0,0,-Infinity,1}'::float8[]))::gs_nested AS n,
	ROW(pg_temp.pick('{ab,aB,Ab,a b,äb,""}'::text[]), pg_temp.pick('{ab,aB,äb}'::text[]), pg_temp.pick('{a,"a ",b}'::bpchar[]))::gs_words AS w,
	ROW()::gs_empty AS e, ROW(id % 3, ('w' || id % 13)::tsquery)::gs_json AS j,
	ARRAY[ROW(id % 3, 'x')::gs_pair, NULL, ROW(NULL, (id % 5)::text)::gs_pair] AS a,
	ROW(1, repeat('x', (id % 3) * 3000) || id % 7)::gs_pair AS long
FROM generate_series(1, 500) id;

SELECT pg_temp.check_column('t', c) FROM unnest('{p,d,n,e,j,a,long}'::text[]) c;
SELECT pg_temp.check_column('(SELECT id, w FROM t) x', 'w');
SELECT o, pg_temp.rows_ok('t', o) FROM unnest(ARRAY['k, p DESC', 'p, k', 'n DESC NULLS FIRST, long', 'e, k', 'j, k DESC', 'w, p', 'd, long DESC']) o;
SELECT pg_temp.rows_ok('(SELECT id, t AS r FROM t) x', 'r DESC'), pg_temp.rows_ok('(SELECT id, ROW(k, p, e) AS r FROM t) x', 'r');
SELECT o, n, pg_temp.same(format('SELECT * FROM t ORDER BY %s LIMIT %s', o, n), format('SELECT * FROM t ORDER BY %s, id LIMIT %s', o, n))
FROM unnest('{p,long DESC,j}'::text[]) o, unnest('{1,70}'::int[]) n;
SET work_mem = '64kB';
SELECT o, pg_temp.rows_ok('t', o) FROM unnest(ARRAY['p', 'long DESC', 'j', 'k, n']) o;
SET work_mem = '64MB';

-- a type whose columns were dropped and added after values were stored
CREATE TABLE gs_rows AS SELECT id, ROW(id % 3, 'gone', id % 5)::gs_changing AS c FROM generate_series(1, 60) id;
ALTER TYPE gs_changing DROP ATTRIBUTE gone;
ALTER TYPE gs_changing ADD ATTRIBUTE added int;
INSERT INTO gs_rows SELECT id, ROW(id % 3, id % 5, nullif(id % 4, 0))::gs_changing FROM generate_series(61, 120) id;
SELECT pg_temp.check_column('gs_rows', 'c');
CREATE INDEX gs_rows_c ON gs_rows (c, id);
SET enable_seqscan = off;
SET enable_sort = off;
SELECT bool_and(ordered) FROM (SELECT c >= lag(c) OVER () AS ordered FROM (SELECT c, id FROM gs_rows ORDER BY c, id OFFSET 0) x) y;
RESET enable_seqscan;
RESET enable_sort;

SELECT pg_temp.left_behind();
DROP TABLE gs_rows, t;
DROP DOMAIN gs_positive_pair;
DROP TYPE gs_changing, gs_nested, gs_pair, gs_words, gs_empty, gs_json, gs_mood;
