-- few_distinct.sql
--     ORDER BY few distinct long values: PostgreSQL and gpusort by turns, medians of 7.
--
-- psql -X -f bench/few_distinct.sql [-v work_mem=4MB]
--
-- Needs superuser rights and Linux, for the processor time of the session in /proc.
\if :{?work_mem}
\else
\set work_mem 200MB
\endif
\set QUIET on
LOAD 'gpusort';
SET work_mem = :'work_mem';
SET gpusort.engine = cpu;
SET jit = off;
SET max_parallel_workers_per_gather = 0;

CREATE FUNCTION pg_temp.processor_ms() RETURNS float8 LANGUAGE sql VOLATILE AS $$
	SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::float8 / 1e6
$$;
CREATE FUNCTION pg_temp.measure(query text, enabled bool, OUT ms float8, OUT kb int) LANGUAGE plpgsql AS $$
DECLARE
	begun float8;
	plan jsonb;
BEGIN
	PERFORM set_config('gpusort.enabled', enabled::text, false);
	begun := pg_temp.processor_ms();
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, COSTS OFF, FORMAT JSON) ' || query INTO plan;
	ms := pg_temp.processor_ms() - begun;
	kb := jsonb_path_query_first(plan, '$.**."Sort Space Used"');
END $$;

CREATE TEMP TABLE cases (n serial, what text, type text, value text);
INSERT INTO cases (what, type, value) VALUES
	('ICU, 1 kB, 2 values', 'text COLLATE "und-x-icu"', $$repeat('The quick brown fox ', 50) || h % 2$$),
	('ICU, 1 kB, 5 values', 'text COLLATE "und-x-icu"', $$repeat('The quick brown fox ', 50) || h % 5$$),
	('ICU, 1 kB, all equal', 'text COLLATE "und-x-icu"', $$repeat('The quick brown fox ', 50)$$),
	('ICU, 20 kB, compressed', 'text COLLATE "und-x-icu"', $$repeat('The quick brown fox ', 1000) || h % 3$$),
	('text[] under ICU, 1 kB', 'text[] COLLATE "und-x-icu"', $$ARRAY[repeat('The quick brown fox ', 50) || h % 2]$$),
	('jsonb, 1 kB', 'jsonb', $$jsonb_build_object('a', repeat('z', 1000) || h % 2)$$),
	('numeric, 1,000 digits', 'numeric', $$(repeat('7', 1000) || h % 2)::numeric$$),
	('en_US, 300 bytes', 'text COLLATE "en_US"', $$repeat('The quick brown fox ', 15) || h % 2$$),
	('ICU, md5', 'text COLLATE "und-x-icu"', $$md5(h::text)$$),
	('jsonb, md5', 'jsonb', $$to_jsonb(md5(h::text))$$);
CREATE TEMP TABLE results (n int, what text, side text, ms float8, kb int);

DO $$
DECLARE
	c record;
BEGIN
	FOR c IN SELECT * FROM cases ORDER BY n LOOP
		EXECUTE format('CREATE TEMP TABLE few (id int, x %s)', c.type);
		EXECUTE format('INSERT INTO few SELECT id, %s FROM (SELECT id, abs(hashint4(id)) AS h FROM generate_series(1, 30000) id) y', c.value);
		ANALYZE few;
		FOR i IN 0..7 LOOP
			INSERT INTO results SELECT c.n, c.what, 'PostgreSQL', m.* FROM pg_temp.measure('SELECT id FROM few ORDER BY x', false) m WHERE i > 0;
			INSERT INTO results SELECT c.n, c.what, 'gpusort', m.* FROM pg_temp.measure('SELECT id FROM few ORDER BY x', true) m WHERE i > 0;
		END LOOP;
		DROP TABLE few;
	END LOOP;
END $$;

SELECT what, p.ms AS postgresql_ms, g.ms AS gpusort_ms, round((p.ms / g.ms)::numeric, 2) AS times_as_fast, p.kb AS postgresql_kb, g.kb AS gpusort_kb
FROM (SELECT n, what, percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) AS ms, max(kb) AS kb FROM results WHERE side = 'PostgreSQL' GROUP BY 1, 2) p
JOIN (SELECT n, percentile_cont(0.5) WITHIN GROUP (ORDER BY ms) AS ms, max(kb) AS kb FROM results WHERE side = 'gpusort' GROUP BY 1) g USING (n) ORDER BY n;
