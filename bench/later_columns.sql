-- later_columns.sql
--     ORDER BY a, b, where b is of variable width, and ORDER BY a: PostgreSQL and gpusort by turns, minima of 4.
--
-- psql -X -f bench/later_columns.sql [-v work_mem=4MB] [-v rows=20000]
--
-- Needs superuser rights and Linux, for the processor time of the session in /proc.
\if :{?work_mem}
\else
\set work_mem 256MB
\endif
\if :{?rows}
\else
\set rows 200000
\endif
\set QUIET on
LOAD 'gpusort';
SET work_mem = :'work_mem';
SET gpusort.engine = cpu;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET client_min_messages = warning;

CREATE FUNCTION pg_temp.processor_ms() RETURNS float8 LANGUAGE sql VOLATILE AS $$
	SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::float8 / 1e6
$$;
CREATE FUNCTION pg_temp.measure(query text, enabled bool) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	begun float8;
BEGIN
	PERFORM set_config('gpusort.enabled', enabled::text, false);
	begun := pg_temp.processor_ms();
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, COSTS OFF) ' || query;
	RETURN pg_temp.processor_ms() - begun;
END $$;

CREATE TEMP TABLE cases (n serial, what text, type text, value text);
INSERT INTO cases (what, type, value) VALUES
	('text "C" of 32 bytes', 'text COLLATE "C"', 'md5(x::text)'),
	('text of 32 bytes, en_US', 'text COLLATE "en_US"', 'md5(x::text)'),
	('numeric', 'numeric', '(x * 7919 % 100000007) / 7.0'),
	('int[]', 'int[]', 'ARRAY[x % 1000, x, x % 7]'),
	('jsonb of 4 keys', 'jsonb', $$jsonb_build_object('id', x, 'name', md5(x::text), 'flag', x % 2 = 0, 'tags', jsonb_build_array(x % 7, x % 11))$$);
CREATE TEMP TABLE results (n int, what text, ties int, side text, ms float8);
SELECT set_config('bench.rows', :'rows', false) \g /dev/null

DO $$
DECLARE
	nrows int := current_setting('bench.rows');
	c record;
	t int;
BEGIN
	FOR c IN SELECT * FROM cases ORDER BY n LOOP
		FOREACH t IN ARRAY ARRAY[1, 2, 10, 100, nrows] LOOP
			EXECUTE format('CREATE TEMP TABLE tied (id int, a bigint, b %s)', c.type);
			EXECUTE format('INSERT INTO tied SELECT g, hashint8extended(g %% %s, 0), %s FROM (SELECT g, g * 48271::bigint %% 2147483647 AS x FROM generate_series(1, %s) g) y ORDER BY hashint4(g)',
				nrows / t, c.value, nrows);
			ANALYZE tied;
			FOR i IN 0..4 LOOP
				INSERT INTO results SELECT c.n, c.what, t, 'PostgreSQL', pg_temp.measure('SELECT * FROM tied ORDER BY a, b', false) WHERE i > 0;
				INSERT INTO results SELECT c.n, c.what, t, 'gpusort', pg_temp.measure('SELECT * FROM tied ORDER BY a, b', true) WHERE i > 0;
				INSERT INTO results SELECT c.n, c.what, t, 'by a', pg_temp.measure('SELECT * FROM tied ORDER BY a', true) WHERE i > 0;
			END LOOP;
			DROP TABLE tied;
		END LOOP;
	END LOOP;
END $$;

SELECT what, ties AS rows_with_equal_a, round(p::numeric, 1) AS postgresql_ms, round(g::numeric, 1) AS gpusort_ms, round((p / nullif(g, 0))::numeric, 2) AS times_as_fast, round((a / nullif(g, 0))::numeric, 2) AS by_a_alone
FROM (SELECT n, what, ties, min(ms) FILTER (WHERE side = 'PostgreSQL') AS p, min(ms) FILTER (WHERE side = 'gpusort') AS g, min(ms) FILTER (WHERE side = 'by a') AS a
	  FROM results GROUP BY 1, 2, 3) r ORDER BY n, ties;
