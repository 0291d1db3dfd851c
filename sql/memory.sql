-- Memory: within work_mem, in one context that ends with the query, and no more of it
-- after the thousandth sort than after the first.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\set engine cpu
\i :include

CREATE TEMP TABLE t AS SELECT id, (id * 7919) % 10007 AS k, nullif(id % 7, 0) AS n, md5(id::text) COLLATE "C" AS s FROM generate_series(1, 10000) id;
CREATE TEMP TABLE few AS SELECT * FROM t WHERE id < 30;
ANALYZE t;
ANALYZE few;
CREATE FUNCTION pg_temp.used(name_like text DEFAULT '%') RETURNS bigint VOLATILE LANGUAGE sql AS $$
	SELECT coalesce(sum(total_bytes), 0) FROM pg_backend_memory_contexts	-- memory of the executor, without caches and buffers
	WHERE name LIKE name_like AND name ~ 'GpuSort|ExecutorState|ExprContext|TupleSort|Caller tuples|PortalContext|SPI'
$$;
-- with the names of their parents; since 18 there is no column with the name, but the path of the parents' numbers
CREATE FUNCTION pg_temp.contexts() RETURNS TABLE (name text, parent text, level int) LANGUAGE sql AS $$
	WITH c AS (SELECT c.name, c.level, to_jsonb(c) AS c FROM pg_backend_memory_contexts c)
	SELECT name, coalesce(c.c ->> 'parent', (SELECT p.name FROM c p WHERE p.c -> 'path' = (c.c -> 'path') - -1)), level FROM c
$$;

-- one context below the executor's while the rows are there
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT * FROM t ORDER BY k;
SELECT name, parent FROM pg_temp.contexts() WHERE name LIKE 'GpuSort%' ORDER BY level;
FETCH 1 FROM c;
SELECT name, parent FROM pg_temp.contexts() WHERE name LIKE 'GpuSort%' ORDER BY level;
SELECT pg_temp.used('GpuSort%') BETWEEN 500000 AND 3000000 AS as_large_as_the_rows;
MOVE LAST IN c;
MOVE FIRST IN c;
SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'GpuSort%';
CLOSE c;
SELECT pg_temp.left_behind();

-- detoasted values are freed row by row
CREATE TABLE gs_memory (id int, s text COLLATE "C", k int);
ALTER TABLE gs_memory ALTER s SET STORAGE EXTERNAL;
INSERT INTO gs_memory SELECT id, repeat('x', 8000) || id, id FROM generate_series(1, 500) id;
DECLARE c CURSOR FOR SELECT id FROM gs_memory ORDER BY s, k;
FETCH 1 FROM c;
SELECT pg_temp.used('GpuSort key') < 100000 AS small, pg_temp.used('GpuSort') BETWEEN 4000000 AND 12000000 AS holds_their_bytes;
ROLLBACK;
SELECT pg_temp.left_behind();

-- the memory that EXPLAIN shows is within work_mem, or the rows went to disk
CREATE FUNCTION pg_temp.within(work_mem int, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	f jsonb;
BEGIN
	PERFORM set_config('work_mem', work_mem || 'kB', true);
	f := pg_temp.figures(query);
	RETURN CASE WHEN f ->> 'Sort Space Type' = 'Disk' THEN 'on disk' WHEN (f -> 'Sort Space Used')::int <= work_mem THEN 'yes' ELSE f::text END;
END $$;
CREATE TEMP TABLE within AS SELECT work_mem, query, pg_temp.within(work_mem, query)
	FROM unnest('{64,128,256,512,1024,2048,4096,65536}'::int[]) work_mem,
		 unnest(ARRAY['SELECT * FROM t ORDER BY k', 'SELECT n FROM t ORDER BY n', 'SELECT id FROM t ORDER BY s', 'SELECT * FROM t WHERE id <= 100 ORDER BY k',
					  'SELECT repeat(''w'', 30000) || id, id FROM t WHERE id < 25 ORDER BY -id']) query;
SELECT query, array_agg(DISTINCT within COLLATE "C") FROM within GROUP BY query ORDER BY query COLLATE "C";

-- rows that may be read twice and exceed it only with their keys: PostgreSQL's sort gets all of it, and they fit
SET work_mem = '1MB';
CREATE TEMP TABLE wide AS SELECT hashint8extended(id, 1) AS a, hashint8extended(id, 2) AS b, hashint8extended(id, 3) AS c, hashint8extended(id, 4) AS d,
	hashint8extended(id, 5) AS e, hashint8extended(id, 6) AS f, hashint8extended(id, 7) AS g, hashint8extended(id, 8) AS h FROM generate_series(1, 8000) id;
SELECT f ->> 'Engine' AS engine, f ->> 'Fallback Reason' AS reason,
	   f ->> 'Sort Space Type' = 'Memory' OR (current_setting('debug_assertions')::bool AND current_setting('server_version_num')::int < 160000) AS in_memory	-- with assertions, 15 needs more for a row
FROM pg_temp.figures('SELECT count(x) FROM generate_series(1, 1), (SELECT * FROM wide ORDER BY a, b, c, d, e, f, g, h OFFSET 0) x') f;
SET work_mem = '64MB';

-- and so is the additional memory of the backend
CREATE FUNCTION pg_temp.growth(work_mem text, query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	before bigint;
	c refcursor;
	r record;
	growth bigint;
BEGIN
	PERFORM set_config('work_mem', work_mem, true);
	before := pg_temp.used();
	OPEN c FOR EXECUTE query;
	FETCH c INTO r;
	growth := pg_temp.used() - before;
	CLOSE c;
	RETURN growth;
END $$;
SELECT pg_temp.growth('1MB', 'SELECT k FROM t ORDER BY k') < 1200000 AS keys, pg_temp.growth('2MB', 'SELECT * FROM t ORDER BY k') < 2300000 AS rows,
	   pg_temp.growth('1MB', 'SELECT * FROM t ORDER BY s, k') < 1500000 AS runs,
	   pg_temp.growth('64kB', 'SELECT * FROM t ORDER BY k') < 300000 * (1 + current_setting('debug_assertions')::bool::int) AS many_runs;

-- executed again and again: rows, keys alone, many rows, abandoned, in runs
CREATE FUNCTION pg_temp.leak(query text, times int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	u bigint[] := '{}';
	r record;
BEGIN
	FOR r IN EXECUTE format('SELECT g, (%s) AS x, CASE WHEN g %% %s = 0 THEN pg_temp.used() END AS u FROM generate_series(1, %s) g', query, times / 5, times) LOOP
		u := u || r.u;
	END LOOP;
	u := array_remove(u, NULL);
	RETURN CASE WHEN u[5] - u[2] < 20000 THEN 'none' ELSE u::text END;
END $$;
SELECT times, query, pg_temp.leak(query, times) FROM (VALUES
	(2000, 'SELECT count(*) FROM (SELECT * FROM few WHERE id < 20 + g * 0 ORDER BY k OFFSET 0) x'),
	(2000, 'SELECT count(*) FROM (SELECT n FROM few WHERE id < 20 + g * 0 ORDER BY n OFFSET 0) x'),
	(100, 'SELECT max(k) FROM (SELECT * FROM t WHERE id > g * 0 ORDER BY s OFFSET 9990) x'),
	(1000, 'SELECT EXISTS (SELECT FROM (SELECT s FROM few WHERE id < 20 + g * 0 ORDER BY s, k OFFSET 0) x)')) v(times, query);
SET work_mem = '64kB';
SELECT pg_temp.leak('SELECT max(k) FROM (SELECT * FROM t WHERE id > g * 0 ORDER BY s OFFSET 9990) x', 50) AS runs;
SET work_mem = '64MB';
CREATE FUNCTION pg_temp.fail(n int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		BEGIN
			PERFORM * FROM t ORDER BY k, 1 / (id - 5000);
		EXCEPTION WHEN division_by_zero THEN
		END;
	END LOOP;
	RETURN pg_temp.used();
END $$;
SELECT pg_temp.fail(20) - pg_temp.fail(20) < 100000 AS no_leak, abs(pg_temp.fail(100) - pg_temp.fail(20)) < 100000 AS nor_later;
SELECT pg_temp.left_behind();
