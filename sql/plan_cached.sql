-- Cached plans: settings and tables change after they were made.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SET plan_cache_mode = force_generic_plan;
CREATE TABLE gs_cached (id int, k int, s text COLLATE "C");
INSERT INTO gs_cached SELECT id, id * 7 % 10, 'x' || id % 3 FROM generate_series(1, 20) id;
PREPARE q(int) AS SELECT id, k FROM gs_cached WHERE id <= $1 ORDER BY k;
PREPARE keys(int) AS SELECT nullif(k, 3) AS k FROM gs_cached WHERE id <= $1 ORDER BY 1 DESC;
EXPLAIN (COSTS OFF) EXECUTE q(5);
EXECUTE q(5);
EXECUTE q(0);
EXECUTE q(3);

-- switched off, the cached node uses a tuplesort; and on again
CREATE FUNCTION pg_temp.engine(query text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN f ->> 'Engine' = 'postgres' THEN 'postgres: ' || (f ->> 'Fallback Reason') ELSE 'gpusort' END FROM pg_temp.figures(query) f
$$;
SELECT pg_temp.engine('EXECUTE q(20)'), pg_temp.engine('EXECUTE keys(20)');
SET gpusort.enabled = off;
EXPLAIN (COSTS OFF) EXECUTE q(5);
SELECT pg_temp.engine('EXECUTE q(20)'), pg_temp.engine('EXECUTE keys(20)');
EXECUTE q(5);
EXECUTE keys(20);
SET gpusort.enabled = on;
SELECT pg_temp.engine('EXECUTE q(20)'), pg_temp.engine('EXECUTE keys(20)');
EXECUTE q(5);
EXECUTE keys(20);

-- switched off between two rescans of one execution
CREATE FUNCTION pg_temp.switch(g int) RETURNS int VOLATILE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('gpusort.enabled', CASE g % 2 WHEN 0 THEN 'off' ELSE 'on' END, false);
	RETURN g;
END $$;
SELECT g, (SELECT array_agg(k) FROM (SELECT k FROM gs_cached WHERE id <= switched ORDER BY k OFFSET 0) x)
FROM (SELECT g, pg_temp.switch(g) AS switched FROM generate_series(1, 6) g OFFSET 0) y;
SHOW gpusort.enabled;
SET gpusort.enabled = on;

-- a plan made without gpusort stays the same until it is made again
SET gpusort.enabled = off;
PREPARE plain AS SELECT id, k FROM gs_cached ORDER BY k, id;
EXPLAIN (COSTS OFF) EXECUTE plain;
SET gpusort.enabled = on;
EXPLAIN (COSTS OFF) EXECUTE plain;
DISCARD PLANS;
EXPLAIN (COSTS OFF) EXECUTE plain;

-- the table changes: rows, columns, the column's own type
DELETE FROM gs_cached WHERE id > 4;
EXECUTE q(5);
ALTER TABLE gs_cached ADD COLUMN later int DEFAULT 77;
EXECUTE q(5);
ALTER TABLE gs_cached DROP COLUMN s;
EXECUTE q(2);
PREPARE by_k AS SELECT id FROM gs_cached ORDER BY k DESC;
EXPLAIN (COSTS OFF) EXECUTE by_k;
EXECUTE by_k;
ALTER TABLE gs_cached ALTER k TYPE tsquery USING k::text::tsquery;
EXPLAIN (COSTS OFF) EXECUTE by_k;
EXECUTE by_k;
ALTER TABLE gs_cached ALTER k TYPE text COLLATE "C" USING k::text;
EXPLAIN (COSTS OFF) EXECUTE by_k;
EXECUTE by_k;
CREATE INDEX gs_cached_k ON gs_cached (k);
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) EXECUTE by_k;
RESET enable_seqscan;
DROP INDEX gs_cached_k;
EXECUTE by_k;

-- generic and custom plans of one statement; parameters in the keys
PREPARE mixed(int, text) AS SELECT id, k FROM gs_cached ORDER BY (id * $1) % 3, k || $2 COLLATE "C" DESC;
EXPLAIN (COSTS OFF) EXECUTE mixed(2, 'y');
EXECUTE mixed(2, 'y');
SET plan_cache_mode = force_custom_plan;
EXPLAIN (COSTS OFF) EXECUTE mixed(2, 'y');
EXECUTE mixed(2, 'y');
EXECUTE mixed(1, NULL);
SELECT pg_temp.left_behind();
DEALLOCATE ALL;
DROP TABLE gs_cached;
