-- gpusort.verify: a wrong order is detected when a row is returned, in every way
-- that rows can be returned.  Needs a server built with ICU: keys of the C library's
-- collations are proven anyway.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

\if :has_icu
\else
\echo skipped: the server or gpusort was built without ICU
\quit
\endif
CREATE TEMP TABLE t AS SELECT id, id % 3 AS k, CASE WHEN id % 2 = 0 THEN 'A' ELSE 'b' END || id % 4 AS s FROM generate_series(1, 20) id;

-- wrong keys of a collation that is not verified: capitals after all others
SET gpusort.collation_fault = on;
SET gpusort.verify = off;
SELECT string_agg(s, ' ') FROM (SELECT s FROM t ORDER BY s COLLATE "und-x-icu" OFFSET 0) x;
SET gpusort.verify = on;
SELECT s FROM t ORDER BY s COLLATE "und-x-icu" OFFSET 0;
\echo :SQLSTATE
SELECT s FROM t ORDER BY s COLLATE "und-x-icu" DESC NULLS LAST, k OFFSET 0;
SELECT s FROM t ORDER BY s::char(5) COLLATE "und-x-icu" OFFSET 0;
-- the first rows are in order
SELECT s FROM (SELECT s FROM t ORDER BY s COLLATE "und-x-icu" OFFSET 0) x FETCH FIRST 10 ROWS ONLY;
-- only forward steps are checked
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT s FROM t ORDER BY s COLLATE "und-x-icu";
FETCH 2 FROM c;
FETCH LAST FROM c;
ROLLBACK;
BEGIN;
SET LOCAL gpusort.verify = off;
DECLARE c SCROLL CURSOR FOR SELECT s FROM t ORDER BY s COLLATE "und-x-icu";
SET LOCAL gpusort.verify = on;	-- not for this one any more
MOVE LAST FROM c;
FETCH BACKWARD 3 FROM c;
ROLLBACK;
SET gpusort.collation_fault = off;
SELECT string_agg(s, ' ') FROM (SELECT s FROM t ORDER BY s COLLATE "und-x-icu" OFFSET 0) x;
