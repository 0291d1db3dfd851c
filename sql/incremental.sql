-- Incremental Sorts become GpuSorts, which sort the rows batch by batch: a batch ends where a group
-- of rows that are equal in the presorted columns does.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
SET enable_hashagg = off;
SELECT setseed(0.5);
-- groups of 1 to 4000 rows, one of NULLs; ties in k
CREATE TEMP TABLE t AS
SELECT id, CASE WHEN id > 11000 THEN NULL WHEN id > 7000 THEN 99999 WHEN id > 3000 THEN 1000 + id / 100 ELSE id / 3 END AS g, id % 7 AS h,
	nullif((random() * 20)::int, 20) AS k, (random() * 20)::numeric(6, 2) AS n, md5((random() * 20)::int::text) COLLATE "C" AS c,
	md5((random() * 20)::int::text) COLLATE pg_temp.unicode AS u, repeat(md5((id % 5)::text), CASE WHEN id % 1000 = 0 THEN 300 ELSE 1 END) AS long
FROM generate_series(1, 12000) id;
CREATE INDEX t_g ON t (g);
CREATE INDEX t_gh ON t (g, h);
CREATE INDEX t_g_nulls_first ON t (g NULLS FIRST);
CREATE INDEX t_c ON t (c);
CREATE INDEX t_u ON t (u DESC);
CREATE INDEX t_expression ON t ((g / 2));
ANALYZE t;

SELECT line FROM pg_temp.explain('COSTS OFF', 'SELECT * FROM t ORDER BY g DESC, h DESC, k DESC NULLS LAST, n') line;
SELECT line FROM pg_temp.explain('COSTS OFF, FORMAT JSON', 'SELECT * FROM t ORDER BY g, k') line WHERE line ~ 'Key|Provider';
SELECT o, pg_temp.sorts('SELECT * FROM t ORDER BY ' || o), pg_temp.rows_ok('t', o) FROM unnest(ARRAY[
	'g, k', 'g DESC, k DESC, h, id', 'g NULLS FIRST, k NULLS FIRST', 'g, h, k', 'g, n, k', 'g, c', 'g, u DESC', 'g, long, k', 'c, k DESC', 'u DESC, k', 'g / 2, k',
	'c, u']) o;
-- with the ties of PostgreSQL's own incremental sort, columns decide
SELECT q, pg_temp.same(q, q) FROM unnest(ARRAY[
	'SELECT id, rank() OVER (PARTITION BY g ORDER BY k), sum(h) OVER (PARTITION BY g ORDER BY id) FROM t ORDER BY id',
	'SELECT DISTINCT ON (g) g, id FROM t ORDER BY g, id DESC',
	'SELECT g, k + 1 AS k, id + 1 AS id FROM (SELECT * FROM t ORDER BY g, k, id OFFSET 0) x',
	'SELECT a.g, b.id FROM t a JOIN t b ON b.g = a.g AND b.id = a.id ORDER BY a.g, b.k, b.id',
	'SELECT g, id FROM t WHERE id > 12000 ORDER BY g, id', 'SELECT g, id FROM t WHERE g IS NULL ORDER BY g, id',
	'SELECT x, (SELECT sum(i * id) FROM (SELECT row_number() OVER (ORDER BY g, k, id) AS i, id FROM t WHERE g >= x) y) FROM generate_series(3, 1200, 399) x']) q;

-- groups that end before, at and after the end of a batch, and rows that do
CREATE FUNCTION pg_temp.in_groups(nrows int, size int) RETURNS text LANGUAGE plpgsql SET client_min_messages = warning AS $$
BEGIN
	DROP TABLE IF EXISTS s;
	CREATE TEMP TABLE s AS SELECT id, (id - 1) / size AS g, id * 7919 % 101 AS k FROM generate_series(1, nrows) id;
	CREATE INDEX ON s (g);
	ANALYZE s;
	RETURN pg_temp.gpusorts('SELECT * FROM s ORDER BY g, k') || ' ' || pg_temp.rows_ok('s', 'g, k') || ' ' || pg_temp.rows_ok('s', 'g DESC, k DESC, id');
END $$;
SELECT result, count(*) FROM unnest('{1,3,64,127,128,129,300}'::int[]) size, unnest('{0,128,129,256,900}'::int[]) nrows, pg_temp.in_groups(nrows, size) result GROUP BY 1;
-- batches grow; few rows, without an engine, and again after the last batch that had one
SELECT size, pg_temp.in_groups(12000, size), f -> 'Batches' AS batches, f -> 'Sorted Rows' AS sorted, f -> 'Actual Rows' AS returned
FROM unnest('{1,10,12000}'::int[]) size, LATERAL (SELECT pg_temp.in_groups(12000, size)) i, LATERAL (SELECT pg_temp.figures('SELECT * FROM s ORDER BY g, k') AS f WHERE i IS NOT NULL) x;
SET gpusort.force = off;
SET gpusort.min_rows = 0;
SELECT nrows, pg_temp.in_groups(nrows, 12) FROM unnest('{5,60,140,150,900}'::int[]) nrows;
SET gpusort.force = on;

-- a group that exceeds memory, before and after others
SET work_mem = '64kB';
SELECT o, f ->> 'Sort Method' AS method, pg_temp.rows_ok('t', o) FROM unnest(ARRAY['g, k', 'g DESC, n, k, id', 'g, u, k']) o, pg_temp.figures('SELECT * FROM t ORDER BY ' || o) f;
RESET work_mem;
SELECT pg_temp.left_behind();

-- rescans, with and without parameters
SET enable_material = off;
SELECT pg_temp.same(q, q) FROM (VALUES ('SELECT x, y.id FROM (VALUES (3), (900), (1050), (70000), (100000)) v(x), LATERAL (SELECT * FROM t WHERE g >= x ORDER BY g, k, id OFFSET 0) y'),
	('SELECT x, y.id FROM generate_series(1, 3) x LEFT JOIN (SELECT * FROM t ORDER BY g, k, id OFFSET 0) y ON y.id % 500 = x')) v(q);
RESET enable_material;

-- a cursor cannot move backward, as over an Incremental Sort, unless it asks for it; one that ends early
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM t ORDER BY g, id DESC;
FETCH 4 FROM c;
MOVE 300 FROM c;
FETCH 2 FROM c;
SAVEPOINT s;
FETCH BACKWARD 1 FROM c;
ROLLBACK TO s;
DECLARE s SCROLL CURSOR FOR SELECT id FROM t ORDER BY g, id DESC;
MOVE 300 FROM s;
FETCH BACKWARD 2 FROM s;
FETCH LAST FROM s;
FETCH FIRST FROM s;
COMMIT;
SELECT pg_temp.left_behind();

-- switched off under a cached plan: PostgreSQL's sort takes each batch
PREPARE cached(int) AS SELECT g, id FROM t WHERE id > $1 ORDER BY g, id DESC;
SET plan_cache_mode = force_generic_plan;
SELECT pg_temp.gpusorts('EXECUTE cached(0)');
SET gpusort.enabled = off;
SELECT f ->> 'Engine' AS engine, f -> 'Sorted Rows' AS sorted, (f -> 'Batches')::int > 5 AS batches, f ->> 'Fallback Reason' AS reason FROM pg_temp.figures('EXECUTE cached(0)') f;
SET gpusort.enabled = on;
RESET plan_cache_mode;

-- workers
CREATE TABLE gs_incremental AS SELECT * FROM t;
CREATE INDEX ON gs_incremental (g);
ANALYZE gs_incremental;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT pg_temp.nodes(q), pg_temp.same(q, q) FROM (VALUES ('SELECT g, id FROM gs_incremental ORDER BY g, id')) v(q);
SET parallel_leader_participation = off;
-- EXPLAIN shows how each worker sorted all its batches
SELECT count(*) FILTER (WHERE line ~ 'Worker .*Sort Method') = max(substring(line from 'Workers Launched: (.*)'))::int AS workers,
	sum(substring(line from 'Sorted Rows: (.*)')::int) AS sorted
FROM pg_temp.explain('ANALYZE, COSTS OFF, TIMING OFF', 'SELECT g, id FROM gs_incremental ORDER BY g, id') line;
RESET parallel_leader_participation;
SET max_parallel_workers_per_gather = 0;
DROP TABLE gs_incremental;

-- who may not execute the equality function may sort, as in PostgreSQL
BEGIN;
CREATE ROLE regress_gpusort;
GRANT SELECT ON t TO regress_gpusort;
REVOKE EXECUTE ON FUNCTION int4eq(int, int) FROM PUBLIC;
SET LOCAL ROLE regress_gpusort;
SELECT count(*) FROM (SELECT * FROM t ORDER BY g, k OFFSET 0) x;
ROLLBACK;

-- an index that is not in the order that it promises: gpusort.verify notices it where a batch begins
SELECT pg_temp.in_groups(900, 64) \gset groups_
BEGIN;
UPDATE pg_index SET indoption = '3' WHERE indexrelid = 's_g_idx'::regclass;	-- DESC
SELECT count(*) FROM (SELECT * FROM s ORDER BY g DESC, k OFFSET 0) x;
ROLLBACK;
SELECT count(*) FROM (SELECT * FROM s ORDER BY g DESC, k OFFSET 0) x;

-- left to PostgreSQL below a LIMIT; and without force, if groups are small, columns are only compared, or a LIMIT is further up
SET gpusort.debug_plan = on;
SELECT pg_temp.sorts('SELECT * FROM t ORDER BY g, k LIMIT 10');
SELECT pg_temp.sorts('SELECT rank() OVER (PARTITION BY g ORDER BY k) FROM t LIMIT 10');
SET gpusort.force = off;
SET gpusort.min_rows = 1000;
SET client_min_messages = warning;
CREATE TEMP TABLE sizes AS SELECT id, (id / 2)::bigint AS two, (id / 20)::bigint AS twenty, id % 3 AS k, md5(id::text) COLLATE pg_temp.unicode AS u, to_char(id / 20, '00000') COLLATE pg_temp.english AS e, ('w' || id % 5)::tsquery AS r FROM generate_series(0, 19999) id;
ALTER TABLE sizes ADD PRIMARY KEY (id);
CREATE INDEX ON sizes (two);
CREATE INDEX ON sizes (twenty);
CREATE INDEX ON sizes (e);
ANALYZE sizes;
SET client_min_messages = notice;
SELECT pg_temp.sorts('SELECT * FROM sizes ORDER BY id, k');
SET client_min_messages = warning;
SELECT NOT :'has_icu' OR pg_temp.sorts('SELECT * FROM sizes ORDER BY two, u') = 'Incremental Sort' AS left;
SET client_min_messages = notice;
SELECT pg_temp.sorts('SELECT * FROM sizes ORDER BY twenty, r');
SELECT pg_temp.sorts('SELECT * FROM sizes ORDER BY e, k');
SELECT pg_temp.sorts('SELECT * FROM sizes WHERE id < 100 ORDER BY twenty, k');
SELECT pg_temp.sorts('SELECT rank() OVER (PARTITION BY twenty ORDER BY k) FROM sizes LIMIT 10');
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM sizes ORDER BY twenty, k;
SET LOCAL cursor_tuple_fraction = 1;
DECLARE whole CURSOR FOR SELECT * FROM sizes ORDER BY twenty, k;
COMMIT;
SELECT pg_temp.sorts('SELECT FROM generate_series(1, 5) x WHERE EXISTS (SELECT FROM (SELECT rank() OVER (PARTITION BY twenty ORDER BY k) AS r FROM sizes OFFSET 0) s WHERE s.r > x)');
SELECT pg_temp.sorts('SELECT EXISTS (SELECT FROM (SELECT rank() OVER (PARTITION BY twenty ORDER BY k) AS r FROM sizes OFFSET 0) s WHERE s.r > x) FROM generate_series(1, 5) x');
SELECT pg_temp.sorts('SELECT x < ALL (SELECT rank() OVER (PARTITION BY twenty ORDER BY k) FROM sizes WHERE id <> x) FROM generate_series(1, 5) x');
SELECT pg_temp.sorts('SELECT x, (SELECT sum(r) FROM (SELECT rank() OVER (PARTITION BY twenty ORDER BY k) AS r FROM sizes WHERE id <> x OFFSET 0) s) FROM generate_series(1, 5) x');
SELECT pg_temp.sorts(q) FROM unnest(ARRAY['SELECT * FROM sizes ORDER BY two, k', 'SELECT * FROM sizes ORDER BY twenty, u',
	'SELECT sum(r) FROM (SELECT rank() OVER (PARTITION BY twenty ORDER BY k) AS r, id FROM sizes) x LIMIT 10',
	'SELECT rank() OVER (PARTITION BY twenty ORDER BY k) AS r FROM sizes ORDER BY r LIMIT 10']) q;
DROP TABLE sizes;
