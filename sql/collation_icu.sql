-- Collations that do not compare bytes keep their stock Sort; the same column
-- under one that does is taken over.  Needs a server built with ICU.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SELECT count(*) = 0 AS no_icu FROM pg_collation WHERE collname = 'und-x-icu' \gset
\if :no_icu
\quit
\endif
SET gpusort.debug_plan = on;
CREATE COLLATION gs_ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION gs_c FROM "C";
CREATE TEMP TABLE t (id int, s text COLLATE "und-x-icu", i text COLLATE gs_ignore_case, c text COLLATE "C", b char(3) COLLATE "und-x-icu");
INSERT INTO t SELECT id, w, w, w, w FROM unnest('{b,B,a,A,ä,z,Z,"",aa}'::text[]) WITH ORDINALITY x(w, id);

EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY s;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY c, id, i DESC;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY b;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY s COLLATE "C", b COLLATE "POSIX" DESC, i COLLATE gs_c, s COLLATE "ucs_basic";
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY c COLLATE "und-x-icu";
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY s USING ~<~;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY s::name;

SELECT string_agg(s, ' ') FROM (SELECT s FROM t ORDER BY s OFFSET 0) x;
SELECT string_agg(s, ' ') FROM (SELECT s FROM t ORDER BY s COLLATE "C" OFFSET 0) x;
SELECT string_agg(s, ' ') FROM (SELECT s FROM t ORDER BY s USING ~>~ OFFSET 0) x;
SELECT string_agg(i, ' ') FROM (SELECT i FROM t ORDER BY i, id OFFSET 0) x;
SELECT string_agg(i, ' ') FROM (SELECT i FROM t ORDER BY i COLLATE "C" OFFSET 0) x;
SELECT string_agg(i, ' ') FROM (SELECT DISTINCT i COLLATE "C" AS i FROM t ORDER BY 1) x;
SELECT count(DISTINCT i), count(DISTINCT i COLLATE "C") FROM t;
SELECT pg_temp.rows_ok('t', 's COLLATE "C"'), pg_temp.rows_ok('t', 'i COLLATE "C" DESC, id'),
	   pg_temp.rows_ok('t', 'id % 2, s COLLATE "C"'), pg_temp.keys_ok('t', 'i COLLATE "C"', 'i COLLATE "C"');

-- equality under a nondeterministic collation above a sort by bytes
SET enable_hashagg = off;
SET client_min_messages = warning;
SELECT pg_temp.sorts('SELECT i, count(*) FROM t GROUP BY i'), pg_temp.sorts('SELECT c, count(*) FROM t GROUP BY c');
SELECT count(*) FROM (SELECT i FROM t GROUP BY i) x;
DROP TABLE t;
DROP COLLATION gs_ignore_case, gs_c;
