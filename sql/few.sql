-- Sorts of few rows by comparisons, without an engine.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SET gpusort.force = off;
SET gpusort.min_rows = 0;
CREATE TEMP TABLE t AS SELECT id, (id * 37) % 11 AS k, nullif(id % 5, 0) AS n, ('same beginning ' || id % 7) COLLATE "C" AS s,
	(ARRAY['Apfel', 'apfel', 'a-pfel', 'APFEL', 'birne', 'a pfel'])[1 + id % 6] AS d,
	(ARRAY['NaN', '0', '-0', 'Infinity', '-1', NULL])[1 + id % 6]::float8 AS f, (ARRAY['1', '1.00', 'NaN', '-1e50', '1e50', '0.5'])[1 + id % 6]::numeric AS num,
	md5((id % 20)::text)::uuid AS u, ('10.0.0.' || id % 13)::inet AS a, decode(md5((id % 9)::text), 'hex') AS b, id % 3 = 0 AS yes,
	ARRAY[id % 4, id % 3] AS arr, repeat('x', id % 50) AS pad
FROM generate_series(1, 200) id;
ANALYZE t;

-- Who sorted, and how?
CREATE FUNCTION pg_temp.sorter(query text, OUT engine text, OUT method text, OUT has_keys boolean, OUT nrows int) LANGUAGE plpgsql AS $$
DECLARE
	f jsonb := pg_temp.figures(query);
BEGIN
	engine := CASE f ->> 'Engine' WHEN 'none' THEN 'none' ELSE 'some' END;
	method := CASE WHEN engine = 'none' THEN f ->> 'Sort Method' END;
	has_keys := f ? 'Packed Key Bits';
	nrows := f -> 'Sorted Rows';
END $$;

-- the largest number of rows that counts as few; it is smaller for long rows
SELECT n, s.* FROM unnest('{0,1,2,3,64,65,200}'::int[]) n, pg_temp.sorter(format('SELECT * FROM t WHERE id <= %s ORDER BY k', n)) s;
SELECT n, s.* FROM unnest('{0,1,64,65}'::int[]) n, pg_temp.sorter(format('SELECT n FROM t WHERE id <= %s ORDER BY n', n)) s;
SELECT nbytes, s.* FROM unnest('{200,1000,10000,100000}'::int[]) nbytes, pg_temp.sorter(format('SELECT id, repeat(''x'', %s) FROM t WHERE id <= 10 ORDER BY k', nbytes)) s;
SELECT l, s.* FROM unnest(ARRAY['LIMIT 1', 'LIMIT 3 OFFSET 2', 'LIMIT 1000']) l, pg_temp.sorter('SELECT * FROM t WHERE id <= 20 ORDER BY k ' || l) s;
-- gpusort.force always uses an engine
SET gpusort.force = on;
SELECT * FROM pg_temp.sorter('SELECT * FROM t WHERE id <= 3 ORDER BY k');
SET gpusort.force = off;

SELECT pg_temp.analyze('SELECT * FROM t WHERE id <= 3 ORDER BY k, s DESC');
SELECT pg_temp.analyze('SELECT g, (SELECT count(*) FROM (SELECT id FROM t WHERE id <= g ORDER BY k OFFSET 0) x) FROM generate_series(62, 64, 2) g');

-- the rows and their order, ties in input order, up to the largest such number and beyond
CREATE FUNCTION pg_temp.check(keys text[], sizes int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	key text;
	size int;
	direction text;
	source text;
	checked int := 0;
	wrong int := 0;
BEGIN
	FOREACH key IN ARRAY keys LOOP
		FOREACH size IN ARRAY sizes LOOP
			FOREACH direction IN ARRAY '{ASC,DESC NULLS LAST,NULLS FIRST}'::text[] LOOP
				source := format('(SELECT * FROM t WHERE id <= %s OFFSET 0) x', size);
				checked := checked + 2;
				wrong := wrong + (NOT pg_temp.rows_ok(source, key || ' ' || direction))::int
					+ (NOT pg_temp.keys_ok(source, key || ' ' || direction, key))::int;
			END LOOP;
		END LOOP;
	END LOOP;
	RETURN format('%s orders checked, %s wrong', checked, wrong);
END $$;
SELECT pg_temp.check('{k,n,s,d,f,num,u,a,b,yes,arr}', '{1,2,3,10,63,64,65,100}');
SELECT pg_temp.check('{id,-id}', '{0,1,2,64,65}');
SELECT key, bool_and(pg_temp.rows_ok(format('(SELECT * FROM t WHERE id <= %s OFFSET 0) x', size), key))
FROM unnest('{"k, n","n DESC, s","yes, num DESC NULLS FIRST, d","s, s COLLATE \"POSIX\" DESC, k","f, arr, u","d, b DESC, f","d COLLATE \"C\", a DESC"}'::text[]) key,
	 unnest('{2,20,64,65}'::int[]) size
GROUP BY key ORDER BY key COLLATE "C";
-- not for toasted values, which each comparison would have to fetch
CREATE TEMP TABLE long (id int, k int, s text COLLATE "C", n numeric, e text COLLATE "C");
ALTER TABLE long ALTER e SET STORAGE EXTERNAL;
INSERT INTO long SELECT id, id % 3, repeat(chr(97 + id % 5), 5000), repeat('9', 1000 + id % 3)::numeric, repeat(chr(97 + id % 4), 5000) FROM generate_series(1, 20) id;
SELECT key, pg_temp.rows_ok('long', key), (SELECT engine FROM pg_temp.sorter('SELECT * FROM long ORDER BY ' || key)) AS engine
FROM unnest('{s,e,k,n,"k, s DESC","k DESC, e","left(s, 4), n"}'::text[]) key;

-- repeatedly, with few and many rows alternating
SELECT q, pg_temp.same(q, q) FROM unnest(ARRAY[
	'SELECT g, (SELECT array_agg(id) FROM (SELECT id FROM t WHERE id <= g * 37 % 130 ORDER BY k, id DESC OFFSET 0) x) FROM generate_series(1, 50) g',
	'SELECT g, (SELECT array_agg(s) FROM (SELECT s FROM t WHERE id <= g * 37 % 130 ORDER BY s OFFSET 0) x) FROM generate_series(1, 50) g',
	'SELECT g, (SELECT array_agg(n) FROM (SELECT n FROM t WHERE id <= g * 37 % 130 ORDER BY n DESC OFFSET 0) x) FROM generate_series(1, 50) g',
	'SELECT g, (SELECT array_agg(id) FROM (SELECT id FROM t WHERE id <= g * 37 % 130 ORDER BY k, id LIMIT g % 7 OFFSET 1) x) FROM generate_series(1, 50) g',
	'SELECT g, x.* FROM generate_series(1, 9) g LEFT JOIN LATERAL (SELECT * FROM t WHERE id % 30 = g ORDER BY num, id OFFSET 0) x ON true']) q;

-- the same rows again, from the start, from a mark, backward
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT pg_temp.same(q, q) FROM (VALUES ('SELECT g, x.* FROM generate_series(1, 5) g LEFT JOIN (SELECT id, k, s FROM t WHERE id <= 20 ORDER BY k, id OFFSET 1) x ON true')) v(q);
RESET enable_mergejoin;
RESET enable_material;
SET enable_nestloop = off;
SELECT pg_temp.sorts(q), pg_temp.same(q, q) FROM (VALUES ('SELECT count(*), sum(a.id * b.id) FROM (SELECT * FROM t WHERE id < 50) a JOIN (SELECT * FROM t WHERE id < 60) b USING (k)')) v(q);
RESET enable_hashjoin;
RESET enable_nestloop;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, k FROM t WHERE id <= 5 ORDER BY k;
FETCH BACKWARD c;
FETCH 2 FROM c;
FETCH BACKWARD 3 FROM c;
FETCH ABSOLUTE 4 FROM c;
FETCH RELATIVE -2 FROM c;
FETCH LAST FROM c;
FETCH c;
FETCH PRIOR FROM c;
FETCH FIRST FROM c;
MOVE ABSOLUTE 0 IN c;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT n FROM t WHERE id <= 5 ORDER BY n NULLS FIRST;
FETCH 2 FROM c;
FETCH LAST FROM c;
FETCH BACKWARD ALL FROM c;
CLOSE c;
COMMIT;

-- in parallel workers
CREATE TABLE gs_few AS SELECT id, k FROM t WHERE id <= 20;
ALTER TABLE gs_few SET (parallel_workers = 2);
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
EXPLAIN (COSTS OFF) SELECT * FROM gs_few ORDER BY k, id;
SELECT engine, pg_temp.same(q, q) FROM (VALUES ('SELECT * FROM gs_few ORDER BY k, id')) v(q), unnest('{cpu,cuda}'::text[]) engine, set_config('gpusort.engine', engine, false);
SET gpusort.engine = :engine;
RESET max_parallel_workers_per_gather;
DROP TABLE gs_few;

-- switched off under a cached plan
SET plan_cache_mode = force_generic_plan;
PREPARE few(int) AS SELECT id FROM t WHERE id <= $1 ORDER BY k, id;
EXECUTE few(3);
SET gpusort.enabled = off;
SELECT pg_temp.analyze('EXECUTE few(3)');
EXECUTE few(3);
SET gpusort.enabled = on;
EXECUTE few(3);
RESET plan_cache_mode;

-- nothing is left, and the last of many sorts takes no more memory than those before
CREATE FUNCTION pg_temp.used() RETURNS bigint VOLATILE LANGUAGE sql AS $$
	SELECT sum(total_bytes)::bigint FROM pg_backend_memory_contexts WHERE name ~ 'GpuSort|ExecutorState|ExprContext|TupleSort|Caller tuples'
$$;
CREATE FUNCTION pg_temp.leak(query text, times int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	u bigint[];
BEGIN
	EXECUTE format('SELECT array_agg(u) FILTER (WHERE u IS NOT NULL)
		FROM (SELECT g, (%s) AS x, CASE WHEN g %% %s = 0 THEN pg_temp.used() END AS u FROM generate_series(1, %s) g OFFSET 0) y WHERE x = 3', query, times / 5, times) INTO u;
	RETURN CASE WHEN cardinality(u) = 5 AND u[5] - u[1] < 20000 THEN 'none' ELSE u::text END;
END $$;
CREATE TEMP TABLE three AS SELECT * FROM t WHERE id <= 3;
SELECT times, key, pg_temp.leak(format('SELECT count(*) FROM (SELECT * FROM three WHERE id > g * 0 ORDER BY %s OFFSET 0) x', key), times)
FROM (VALUES (100000, 'd'), (20000, 's'), (20000, 'arr, num')) v(times, key);
SELECT pg_temp.leak('SELECT count(*) FROM (SELECT k FROM three WHERE id > g * 0 ORDER BY k OFFSET 0) x', 20000) AS values;
SELECT pg_temp.left_behind();
