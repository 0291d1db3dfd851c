-- gpusort.verify: a right order raises no error, in every way that rows can be returned.
-- verify_fault.sql has wrong orders.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TEMP TABLE t AS SELECT id, id % 3 AS k, CASE WHEN id % 2 = 0 THEN 'A' ELSE 'b' END || id % 4 AS s FROM generate_series(1, 20) id;

-- rescans, backward steps, mark and restore, NULLs, a fallback to a
-- tuplesort, parameters, rows that are never fetched
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT count(*), sum(a.id + b.id) FROM t a JOIN t b USING (k);
RESET enable_hashjoin;
RESET enable_nestloop;
SELECT array_agg(k) FROM (SELECT nullif(k, 1) AS k FROM t ORDER BY 1 DESC OFFSET 0) x;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY k, id DESC;
FETCH 2 FROM c;
FETCH LAST FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FIRST FROM c;
MOVE FORWARD ALL FROM c;
FETCH RELATIVE 1 FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;
SELECT k, (SELECT array_agg(id) FROM (SELECT id FROM t i WHERE i.k = o.k ORDER BY s, id DESC OFFSET 0) x) FROM generate_series(0, 3) o(k);
SELECT id FROM t ORDER BY k, id LIMIT (SELECT 3);
SET work_mem = '64kB';
SELECT count(*) FROM (SELECT id FROM generate_series(1, 20000) id ORDER BY id % 7, id::text COLLATE "C" OFFSET 0) x;
RESET work_mem;
SELECT pg_temp.left_behind();
