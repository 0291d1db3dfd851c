-- EXPLAIN (GPUSORT) of PostgreSQL 18 and later: why a Sort is not a GpuSort.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SELECT current_setting('server_version_num')::int < 180000 AS too_old \gset
\if :too_old
EXPLAIN (GPUSORT) SELECT 1;
\echo skipped: needs PostgreSQL 18
\quit
\endif
SET gpusort.force = off;
SET gpusort.min_rows = 50;
CREATE TEMP TABLE few AS SELECT i, i::text::tsquery AS j FROM generate_series(1, 20) i;
CREATE TEMP TABLE many AS SELECT i, i::text::tsquery AS j FROM generate_series(1, 100) i;
ANALYZE few, many;

-- every reason, and only with the option
EXPLAIN (GPUSORT, COSTS OFF) SELECT * FROM few ORDER BY i;
EXPLAIN (GPUSORT, COSTS OFF) SELECT * FROM many ORDER BY i;
EXPLAIN (GPUSORT, COSTS OFF) SELECT * FROM many ORDER BY j;
EXPLAIN (GPUSORT, COSTS OFF) SELECT * FROM many ORDER BY i LIMIT (random() * 10)::int;
EXPLAIN (GPUSORT, COSTS OFF) SELECT * FROM many ORDER BY i LIMIT 10;
EXPLAIN (GPUSORT off, COSTS OFF) SELECT * FROM few ORDER BY i;
EXPLAIN (GPUSORT off, GPUSORT, COSTS OFF) SELECT * FROM few ORDER BY i;
EXPLAIN (COSTS OFF) SELECT * FROM few ORDER BY i;
EXPLAIN (GPUSORT 'perhaps') SELECT 1;
SET gpusort.enabled = off;
EXPLAIN (GPUSORT, COSTS OFF) SELECT * FROM many ORDER BY i;
SET gpusort.enabled = on;

-- several Sorts, below and above a GpuSort, in a subplan and in an Append
SET enable_hashagg = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT pg_temp.explain('GPUSORT, COSTS OFF',
	'SELECT m.i, (SELECT array_agg(f.j) FROM (SELECT j FROM few ORDER BY j) f) FROM many m JOIN few USING (i) ORDER BY m.j');
EXPLAIN (GPUSORT, COSTS OFF)
SELECT * FROM (SELECT * FROM few ORDER BY j LIMIT 5) a ORDER BY i;
EXPLAIN (GPUSORT, COSTS OFF)
SELECT i FROM (SELECT i FROM (SELECT i, j FROM many ORDER BY j OFFSET 0) a ORDER BY i OFFSET 0) b ORDER BY i % 2;
EXPLAIN (GPUSORT, COSTS OFF)
(SELECT i FROM few ORDER BY i) UNION ALL (SELECT i FROM many ORDER BY i);
RESET enable_hashagg;
RESET enable_hashjoin;
RESET enable_nestloop;

-- a cursor, of which only the first rows may be needed
CREATE TEMP TABLE grouped AS SELECT i / 20 AS g, i FROM generate_series(1, 2000) i;
CREATE INDEX ON grouped (g);
ANALYZE grouped;
SET enable_sort = off;
SET enable_seqscan = off;
EXPLAIN (GPUSORT, COSTS OFF) DECLARE c CURSOR FOR SELECT * FROM grouped ORDER BY g, i;
RESET enable_sort;
RESET enable_seqscan;

-- a plan that was made with other settings
SET plan_cache_mode = force_generic_plan;
SET gpusort.min_rows = 1000;
PREPARE p AS SELECT * FROM many ORDER BY i;
EXPLAIN (GPUSORT, COSTS OFF) EXECUTE p;
SET gpusort.min_rows = 50;
EXPLAIN (GPUSORT, COSTS OFF) EXECUTE p;

-- other formats
EXPLAIN (GPUSORT, COSTS OFF, FORMAT YAML) SELECT j FROM few ORDER BY i;
EXPLAIN (GPUSORT, ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT * FROM few WHERE i < 0 ORDER BY i;

