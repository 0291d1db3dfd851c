-- Top-N: a GpuSort below a LIMIT drops the rows that cannot be among the first.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\set engine cpu
\i :include

SELECT setseed(0.25);
CREATE TEMP TABLE t AS SELECT id, (random() * 1e6)::int AS k, id % 7 AS few, NULL::int AS none,
	CASE WHEN random() < 0.8 THEN (random() * 300)::int END AS n, repeat('x', id % 90) AS pad,
	(md5(id::text)) COLLATE "C" AS c, ('common prefix ' || (random() * 2000)::int) COLLATE "C" AS p
FROM generate_series(1, 30000) id;
ANALYZE t;

-- Were rows dropped, and only few kept?
CREATE FUNCTION pg_temp.drops(query text, bound int) RETURNS boolean LANGUAGE sql AS $$
	SELECT coalesce((f -> 'Rows Removed by Limit')::int, 0) > 0 AND f ->> 'Sort Method' LIKE 'top-N %' AND
		   (f -> 'Sorted Rows')::int BETWEEN bound AND greatest(8 * bound, 16384)
	FROM pg_temp.figures(query) f
$$;

-- What EXPLAIN ANALYZE prints.
CREATE FUNCTION pg_temp.lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query;
END $$;

-- bounds from one row to more than all
SELECT n, pg_temp.same(q || n, o || n), pg_temp.drops(q || n, n) AS drops
FROM unnest('{1,2,10,999,3000,14999,29999,30000,30001,1000000}'::int[]) n,
	 (VALUES ('SELECT * FROM t ORDER BY k LIMIT ', 'SELECT * FROM t ORDER BY k, id LIMIT ')) v(q, o);
SELECT n, pg_temp.same(q || n, q || n) FROM unnest('{0,1,700,29000,30000}'::int[]) n, (VALUES ('SELECT k FROM t ORDER BY k DESC LIMIT ')) v(q);
SELECT l, pg_temp.same(q || l, o || l) FROM unnest(ARRAY['LIMIT 10 OFFSET 5', 'LIMIT 10 OFFSET 4000', 'LIMIT 1 OFFSET 29999', 'LIMIT 5 OFFSET 30000',
	'LIMIT NULL', 'LIMIT ALL', 'LIMIT 5 OFFSET NULL', 'LIMIT 9223372036854775807', 'LIMIT 9223372036854775807 OFFSET 29990',
	'FETCH FIRST 10 ROWS WITH TIES', 'LIMIT (SELECT 5)', 'LIMIT 3 + 4 OFFSET (SELECT 2)', 'LIMIT length(''four'')']) l,
	(VALUES ('SELECT id, k FROM t ORDER BY k, id ', 'SELECT id, k FROM t ORDER BY k, id ')) v(q, o);
SELECT pg_temp.figures('SELECT * FROM t ORDER BY few, k FETCH FIRST 10 ROWS WITH TIES') -> 'Rows Removed by Limit' AS with_ties,
	   pg_temp.figures('SELECT * FROM t ORDER BY few, k LIMIT NULL') -> 'Rows Removed by Limit' AS no_limit,
	   pg_temp.figures('SELECT * FROM t ORDER BY few, k OFFSET 10') -> 'Rows Removed by Limit' AS no_count;
SELECT * FROM t ORDER BY k LIMIT 0;
SELECT * FROM t ORDER BY k LIMIT -1;
SELECT * FROM t ORDER BY k LIMIT 1 OFFSET -1;

-- ties: the first rows of the input, in input order
SELECT k, n, pg_temp.same(format('SELECT * FROM t ORDER BY %s LIMIT %s', k, n), format('SELECT * FROM t ORDER BY %s, id LIMIT %s', k, n))
FROM unnest('{few,none,n,n DESC,n DESC NULLS LAST,n NULLS FIRST,few,"few, n DESC","none, n, p",p,p DESC,"n, c",c DESC,length(pad)}'::text[]) k,
	 unnest('{1,100,2500}'::int[]) n;
SELECT k, n, pg_temp.same(q, q) FROM unnest('{few,none,n,n DESC,n NULLS FIRST,n DESC NULLS LAST}'::text[]) k, unnest('{1,100,7000}'::int[]) n,
	LATERAL (SELECT format('SELECT %s AS v FROM t ORDER BY %s LIMIT %s', split_part(k, ' ', 1), k, n) AS q) l;

-- input in order, in reverse order, with the first rows at the end
SELECT o, n, pg_temp.same(format(q, o, 'x.k DESC', n), format(q, o, 'x.k DESC, x.id', n))
FROM unnest('{k,k DESC,id,id DESC,k > 500000}'::text[]) o, unnest('{10,2500}'::int[]) n,
	 (VALUES ('SELECT k, pad FROM (SELECT k, pad, row_number() OVER () AS id FROM (SELECT * FROM t ORDER BY %s, id OFFSET 0) y OFFSET 0) x ORDER BY %s LIMIT %s')) v(q);

-- every kind of key
CREATE TEMP TABLE kinds AS SELECT id, (r > 0.5) AS bool, chr(32 + (r * 90)::int)::"char" AS chr, (r * 999)::int2 AS i2, CASE WHEN id % 5 > 0 THEN (r * 1e9 - 5e8)::int4 END AS i4, (r * 1e18 - 5e17)::int8 AS i8,
	(CASE id % 4000 WHEN 0 THEN 'NaN' WHEN 1 THEN '-Infinity' WHEN 2 THEN '-0' ELSE r - 0.5 END)::float4 AS f4,
	(CASE id % 4000 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-0' WHEN 3 THEN NULL ELSE r - 0.5 END)::float8 AS f8,
	(r * 4e9)::int8::oid AS oid, date '2000-01-01' + (r * 9999)::int AS date, time '00:00' + r * interval '1 day' AS time, timestamp '2000-01-01' + r * interval '99 years' AS ts,
	((time '00:00' + r * interval '1 day')::text || '+' || id % 12)::timetz AS timetz, r * interval '1 year' AS iv, CASE WHEN id % 5 > 0 THEN md5(id::text)::uuid END AS uuid,
	('10.' || id % 256 || '.' || (r * 255)::int || '.1/' || 8 + id % 25)::inet AS inet, ('08:00:2b:01:02:' || lpad(to_hex((r * 255)::int), 2, '0'))::macaddr AS mac,
	format('(%s,%s)', (r * 999)::int, id % 9)::tid AS tid, decode(md5(id::text), 'hex') AS bytea, CASE WHEN id % 5 > 0 THEN left(md5(id::text), id % 20) END COLLATE "C" AS txt,
	(left(md5(id::text), id % 20))::char(25) COLLATE "C" AS chars, ('n' || md5((id % 9000)::text))::name COLLATE "C" AS name, pg_temp.pick(ARRAY['read', 'write']) COLLATE "C" AS two
FROM (SELECT id, random() AS r FROM generate_series(1, 9000) id OFFSET 0) x;
ANALYZE kinds;
SELECT col, count(*) AS checked, count(*) FILTER (WHERE NOT pg_temp.same(format(q, '*', col, o, '', n), format(q, '*', col, o, ', id', n))) AS wrong,
	   count(*) FILTER (WHERE NOT pg_temp.same(format(q, col, col, o, '', n), format('SELECT %s FROM (SELECT * FROM kinds ORDER BY %1$s %s, id LIMIT %s) x', col, o, n))) AS wrong_alone,
	   count(*) FILTER (WHERE NOT pg_temp.drops(format(q, '*', col, o, '', n), n)) AS all_kept
FROM unnest('{bool,chr,i2,i4,i8,f4,f8,oid,date,time,ts,timetz,iv,uuid,inet,mac,tid,bytea,txt,chars,name,two,"i2 % 10, txt","two, f8 DESC, i4"}'::text[]) col,
	 unnest('{ASC,DESC,ASC NULLS FIRST,DESC NULLS LAST}'::text[]) o, unnest('{3,600}'::int[]) n, (VALUES ('SELECT %s FROM kinds ORDER BY %s %s%s LIMIT %s')) v(q)
GROUP BY col ORDER BY col COLLATE "C";

-- memory stays bounded, whatever the number of rows
SELECT (pg_temp.figures('SELECT *, repeat(''y'', 200) FROM t ORDER BY k DESC LIMIT 100') -> 'Sort Space Used')::int < 4096 AS little;
SET work_mem = '1MB';
SELECT n, f ->> 'Engine' AS engine, (f -> 'Sort Space Used')::int <= 1024 AS within, pg_temp.same(q || n, o || n), pg_temp.drops(q || n, n) AS drops
FROM unnest('{10,1000,3000}'::int[]) n, (VALUES ('SELECT * FROM t ORDER BY k LIMIT ', 'SELECT * FROM t ORDER BY k, id LIMIT ')) v(q, o), pg_temp.figures(q || n) f;
SELECT o, n, pg_temp.same(q, q) FROM unnest('{k DESC,id DESC,"p, id","n DESC, id"}'::text[]) o, unnest('{10,2000,20000}'::int[]) n,
	LATERAL (SELECT format('SELECT * FROM t ORDER BY %s, id LIMIT %s', o, n) AS q) l;
-- rows of a tenth of work_mem
SELECT n, pg_temp.same(q || n, o || n) FROM unnest('{1,5,8,30}'::int[]) n,
	(VALUES ('SELECT id, repeat(c, 3000) FROM t WHERE id <= 400 ORDER BY k DESC LIMIT ', 'SELECT id, repeat(c, 3000) FROM t WHERE id <= 400 ORDER BY k DESC, id LIMIT ')) v(q, o);
-- toasted keys, long and with ties
CREATE TEMP TABLE toasted (id int, s text COLLATE "C");
ALTER TABLE toasted ALTER s SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT id, repeat('long ', 500) || (id * 7919) % 3000 FROM generate_series(1, 6000) id;
SELECT work_mem, n, set_config('work_mem', work_mem, false) IS NOT NULL, pg_temp.same(q || n, o || n) FROM unnest('{1MB,64MB}'::text[]) work_mem, unnest('{1,20,200}'::int[]) n,
	(VALUES ('SELECT * FROM toasted ORDER BY s LIMIT ', 'SELECT * FROM toasted ORDER BY s, id LIMIT ')) v(q, o);
SET work_mem = '64MB';

-- prepared statements: a bound that is known when the plan runs
PREPARE first_rows(int, int) AS SELECT array_agg(id) FROM (SELECT id FROM t ORDER BY k, id LIMIT $1 OFFSET $2) x;
SET plan_cache_mode = force_generic_plan;
SELECT pg_temp.sorts('EXECUTE first_rows(1, 1)');
EXECUTE first_rows(5, 0);
EXECUTE first_rows(2, 3);
EXECUTE first_rows(5, NULL);
EXECUTE first_rows(0, 3);
EXECUTE first_rows(NULL, 29995);
EXECUTE first_rows(-1, 3);
SELECT pg_temp.drops('EXECUTE first_rows(100, 0)', 100), pg_temp.drops('EXECUTE first_rows(NULL, 0)', 100) AS all_rows;
SET plan_cache_mode = force_custom_plan;
EXECUTE first_rows(5, 0);
SELECT pg_temp.drops('EXECUTE first_rows(100, 0)', 100);
RESET plan_cache_mode;
CREATE FUNCTION pg_temp.first_ids(m int) RETURNS int[] LANGUAGE plpgsql AS $$ BEGIN RETURN ARRAY(SELECT id FROM t ORDER BY k, id LIMIT m); END $$;
SELECT m, cardinality(pg_temp.first_ids(m)), (pg_temp.first_ids(m))[m - 1:m] FROM generate_series(1, 12) m;

-- bounds that change between rescans: a lower bound reuses the sorted rows
CREATE TEMP TABLE bounds AS SELECT i, m FROM unnest('{3,5,2,8000,NULL,1,8001,4,20000,6}'::int[]) WITH ORDINALITY b(m, i);
CREATE FUNCTION pg_temp.check(query text) RETURNS TABLE (loops int, drops boolean, ok boolean) LANGUAGE sql AS $$
	SELECT (f -> 'Actual Loops')::int, (f -> 'Rows Removed by Limit') IS NOT NULL, pg_temp.same(query, query) FROM pg_temp.figures(query) f
$$;
SELECT c.* FROM (VALUES
	('SELECT * FROM bounds, LATERAL (SELECT id, k FROM t ORDER BY k, id LIMIT m) x'),
	('SELECT * FROM bounds, LATERAL (SELECT k FROM t ORDER BY k LIMIT m) x'),
	('SELECT * FROM bounds, LATERAL (SELECT k FROM t ORDER BY k DESC LIMIT m / 1000) x'),
	('SELECT * FROM bounds, LATERAL (SELECT id, k FROM t WHERE id > m ORDER BY k, id LIMIT 5 OFFSET m) x'),
	('SELECT * FROM bounds, LATERAL (SELECT id, few FROM (SELECT * FROM t ORDER BY k, id OFFSET 0) y LIMIT m) x'),
	('SELECT i, (SELECT max(k) FROM (SELECT * FROM t ORDER BY k, id LIMIT m) x) FROM bounds'),
	('SELECT i, (SELECT id FROM t ORDER BY k, id LIMIT 1 OFFSET m) FROM bounds')) v(q), pg_temp.check(q) c;
-- the same rows repeatedly
SET enable_material = off;
SELECT c.* FROM (VALUES ('SELECT * FROM bounds LEFT JOIN (SELECT * FROM t ORDER BY k, id LIMIT 3) x ON true')) v(q), pg_temp.check(q) c;
RESET enable_material;

-- cursors, backward too
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, k FROM t ORDER BY k, id LIMIT 7;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ALL FROM c;
FETCH FORWARD 1 FROM c;
FETCH BACKWARD ALL FROM c;
FETCH LAST FROM c;
FETCH ABSOLUTE 2 FROM c;
FETCH RELATIVE 3 FROM c;
MOVE FIRST FROM c;
FETCH ALL FROM c;
COMMIT;
SELECT array_agg(id ORDER BY k, id) FROM (SELECT * FROM t ORDER BY k, id LIMIT 7) x;

-- through nodes that pass the bound down
CREATE TEMP TABLE parts (id int, k int) PARTITION BY LIST ((id % 3));
CREATE TEMP TABLE part0 PARTITION OF parts FOR VALUES IN (0);
CREATE TEMP TABLE part1 PARTITION OF parts FOR VALUES IN (1);
CREATE TEMP TABLE part2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts SELECT id, k FROM t;
CREATE INDEX ON part1 (k, id);
ANALYZE parts;
SET enable_seqscan = off;
SELECT pg_temp.sorts(q), pg_temp.drops(q, 20), pg_temp.same(q, q) FROM (VALUES ('SELECT * FROM parts ORDER BY k, id LIMIT 20')) v(q);
RESET enable_seqscan;
SELECT n, pg_temp.sorts(q), pg_temp.drops(q, 20), pg_temp.same(q, q) FROM (VALUES
	('subquery', 'SELECT k + 1 FROM (SELECT * FROM t ORDER BY k, id OFFSET 0) x LIMIT 20'),
	('UNION ALL', '(SELECT id FROM t ORDER BY k, id OFFSET 0) UNION ALL (SELECT few FROM t ORDER BY id DESC OFFSET 0) LIMIT 20'),
	('volatile', 'SELECT id, random() < 2 FROM t ORDER BY k, id LIMIT 20'),
	('WHERE above it', 'SELECT * FROM (SELECT * FROM t ORDER BY k, id OFFSET 0) x WHERE few = 3 LIMIT 20'),
	('DISTINCT', 'SELECT DISTINCT p, n FROM t ORDER BY p, n LIMIT 20'),
	('DISTINCT ON', 'SELECT DISTINCT ON (few) few, k, id FROM t ORDER BY few, k DESC, id LIMIT 20'),
	('two limits', 'SELECT * FROM (SELECT * FROM t ORDER BY k, id LIMIT 5000) x LIMIT 20')) v(n, q);
SELECT DISTINCT ON (few) few, k, id FROM t ORDER BY few, k DESC, id LIMIT 4;

-- an Incremental Sort has its bound from PostgreSQL
CREATE INDEX ON t (few);
SET enable_sort = off;
SET enable_seqscan = off;
SELECT pg_temp.sorts('SELECT * FROM t ORDER BY few, k LIMIT 10');
RESET enable_sort;
RESET enable_seqscan;

-- switched off under a cached plan: PostgreSQL's heap
PREPARE cached(int) AS SELECT array_agg(id) FROM (SELECT id FROM t ORDER BY k, id LIMIT $1) x;
SET plan_cache_mode = force_generic_plan;
EXECUTE cached(4);
SET gpusort.enabled = off;
EXECUTE cached(4);
SELECT f ->> 'Engine' AS engine, f ->> 'Sort Method' AS method FROM pg_temp.figures('EXECUTE cached(4)') f;
SELECT f -> 'Rows Removed by Limit' AS dropped FROM pg_temp.figures('EXECUTE cached(4)') f;
RESET plan_cache_mode;
SET gpusort.enabled = on;

-- rows that are much wider than those before: memory is full, and no more rows can be dropped
SET work_mem = '4MB';
CREATE TEMP TABLE uneven AS SELECT id, 1000000 + id AS k, '' AS pad FROM generate_series(1, 50000) id
	UNION ALL SELECT 50000 + id, 1000000 - id, repeat('x', 1500) FROM generate_series(1, 2000) id;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, k FROM uneven ORDER BY k, pad COLLATE "C" LIMIT 20000;
MOVE FORWARD ALL IN c;
FETCH BACKWARD 2 FROM c;
FETCH ABSOLUTE 1 FROM c;
COMMIT;
-- a run with NULLs, followed by rows of which only those without NULLs are kept
CREATE TEMP TABLE run_with_nulls AS SELECT id, CASE WHEN id % 100 = 0 THEN NULL WHEN id = 1 THEN 0 ELSE id * 1000 END AS k, repeat('x', 1500) AS pad
	FROM generate_series(1, 3000) id
	UNION ALL SELECT id, id, '' FROM generate_series(3001, 203000) id;
SELECT pg_temp.same(q, q) FROM (VALUES ('SELECT id, k FROM run_with_nulls ORDER BY k, pad COLLATE "C" LIMIT 10000')) v(q);
RESET work_mem;
SELECT pg_temp.left_behind();
