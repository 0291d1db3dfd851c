-- The settings: their ranges, and their effect on plans.
LOAD 'gpusort';
SET max_parallel_workers_per_gather = 0;

SELECT gpusort_version() = default_version AS version_ok FROM pg_available_extensions WHERE name = 'gpusort';
SELECT name, vartype, CASE WHEN vartype <> 'integer' THEN boot_val END AS boot_val, min_val, max_val, enumvals, context
FROM pg_settings
WHERE name IN ('gpusort.enabled', 'gpusort.enable_create_index', 'gpusort.engine', 'gpusort.min_rows', 'gpusort.force',
			   'gpusort.debug_plan', 'gpusort.libc_collations', 'gpusort.verify')
ORDER BY name COLLATE "C";

-- refused by the settings themselves
SET gpusort.min_rows = -1;
SET gpusort.min_rows = 3000000000;
SET gpusort.min_rows = 'many';
SET gpusort.engine = 'tpu';
SET gpusort.enabled = 'maybe';
SET gpusort.nonsense = 1;
SET gpusort.min_rows = 0;
SET gpusort.min_rows = 2147483647;
RESET gpusort.min_rows;
LOAD 'gpusort';		-- twice does no harm

-- min_rows: the estimated rows of the input
SET gpusort.enabled = on;
SET gpusort.force = off;
SET gpusort.min_rows = 1000;
SET work_mem = '64MB';
EXPLAIN (COSTS OFF) SELECT k FROM generate_series(1, 999) k ORDER BY k DESC;
EXPLAIN (COSTS OFF) SELECT k FROM generate_series(1, 1000) k ORDER BY k DESC;
SET gpusort.min_rows = 1001;
SET gpusort.debug_plan = on;
EXPLAIN (COSTS OFF) SELECT k FROM generate_series(1, 1000) k ORDER BY k DESC;

-- force ignores the size, enabled overrides it
SET gpusort.force = on;
EXPLAIN (COSTS OFF) SELECT k FROM generate_series(1, 1000) k ORDER BY k DESC;
SET gpusort.enabled = off;
EXPLAIN (COSTS OFF) SELECT k FROM generate_series(1, 1000) k ORDER BY k DESC;
SET gpusort.enabled = on;
SET gpusort.force = off;
SET gpusort.min_rows = 0;
EXPLAIN (COSTS OFF) SELECT k FROM generate_series(1, 1) k ORDER BY k DESC;
RESET gpusort.debug_plan;

-- an input that exceeds work_mem is sorted, too
SET work_mem = '1MB';
EXPLAIN (COSTS OFF) SELECT k FROM generate_series(1, 1000) k ORDER BY k DESC;
EXPLAIN (COSTS OFF) SELECT k FROM generate_series(1, 1000000) k ORDER BY k DESC;
EXPLAIN (COSTS OFF) SELECT k, repeat('x', 100)::char(3000) FROM generate_series(1, 1000) k ORDER BY k DESC;
SET work_mem = '64MB';

-- SET LOCAL, a function's own settings
BEGIN;
SET LOCAL gpusort.enabled = off;
EXPLAIN (COSTS OFF) SELECT k FROM generate_series(1, 10) k ORDER BY k DESC;
ROLLBACK;
EXPLAIN (COSTS OFF) SELECT k FROM generate_series(1, 10) k ORDER BY k DESC;
CREATE FUNCTION pg_temp.plain_plan() RETURNS SETOF text LANGUAGE plpgsql SET gpusort.enabled = off AS $$
BEGIN
	RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) SELECT k FROM generate_series(1, 10) k ORDER BY k DESC';
END $$;
SELECT pg_temp.plain_plan();
SHOW gpusort.enabled;

-- every engine returns the same rows; without a device, "cuda" sorts too and shows
-- the reason
SET gpusort.force = on;
SET gpusort.engine = cuda;
SELECT array_agg(k) FROM (SELECT k % 7 AS k FROM generate_series(1, 20) k ORDER BY 1 OFFSET 0) x;
SET gpusort.engine = cpu;
SELECT array_agg(k) FROM (SELECT k % 7 AS k FROM generate_series(1, 20) k ORDER BY 1 OFFSET 0) x;
SET gpusort.engine = auto;
SELECT array_agg(k) FROM (SELECT k % 7 AS k FROM generate_series(1, 20) k ORDER BY 1 OFFSET 0) x;
