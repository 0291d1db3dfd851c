-- EXPLAIN, which differs from that of a Sort only in the name of the node.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\set engine cpu
\i :include

-- the two plans of a query, line by line; nothing if only the name differs
CREATE FUNCTION pg_temp.differences(options text, query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	ours text[] := '{}';
	plain text[] := '{}';
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		ours := ours || replace(line, 'Custom Scan (GpuSort)', 'Sort');
	END LOOP;
	IF pg_temp.gpusorts(query) = 0 THEN
		RETURN NEXT 'not taken over: ' || query;
	END IF;
	PERFORM set_config('gpusort.enabled', 'off', false);
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		plain := plain || line;
	END LOOP;
	PERFORM set_config('gpusort.enabled', 'on', false);
	RETURN QUERY SELECT format('%s instead of %s', o, s) FROM unnest(ours, plain) x(o, s) WHERE o IS DISTINCT FROM s;
END $$;

CREATE TEMP TABLE t (id int, i int, f float8, s text COLLATE "C", v varchar(10) COLLATE "POSIX", c char(3) COLLATE "C",
					 n name, b bytea, "Odd ""name" int, d date, e bool);
INSERT INTO t SELECT id FROM generate_series(1, 10) id;
ANALYZE t;
CREATE TEMP TABLE queries (q text);
INSERT INTO queries SELECT 'SELECT * FROM t ORDER BY ' || k FROM unnest(ARRAY[
	'i', 'i DESC', 'i NULLS FIRST', 'i DESC NULLS LAST', 'i ASC NULLS LAST', 'i DESC NULLS FIRST', 'i USING >', 'i USING > NULLS LAST',
	's', 's DESC', 's COLLATE "POSIX"', 's COLLATE "POSIX" DESC NULLS LAST', 's COLLATE "ucs_basic"', 's USING ~<~', 's USING ~>~',
	's COLLATE "default" USING ~>~ NULLS LAST', 'v', 'v COLLATE "C"', 'c USING ~<~ NULLS FIRST', 'n', 'n::text COLLATE "C"', 'b DESC',
	'"Odd ""name"', 'i + id, -f DESC', 'lower(s), upper(v COLLATE "C")', '(i > 3), i IS NULL', 'CASE WHEN e THEN d END',
	'(SELECT max(id) FROM t x WHERE x.i = t.i)', 'i, id, f, s, v, c, n, b, d, e', 'd + 1, ctid, ctid::text COLLATE "C"', 'i, i DESC, i']) k;
INSERT INTO queries VALUES
	('SELECT i AS "GpuSort", s AS "Sort" FROM t ORDER BY i'),
	('SELECT t FROM t ORDER BY (t).i'),
	('SELECT x.i, y.s FROM t x JOIN t y USING (id) ORDER BY x.i, y.s DESC'),
	('SELECT i, count(*) FROM t GROUP BY i ORDER BY count(*) DESC, i'),
	('SELECT i, sum(id) OVER w, rank() OVER (ORDER BY f DESC) FROM t WINDOW w AS (PARTITION BY i ORDER BY d)'),
	('SELECT DISTINCT ON (i) i, f FROM t ORDER BY i, f DESC'),
	('SELECT i FROM t UNION ALL SELECT id FROM t ORDER BY 1'),
	('SELECT * FROM (VALUES (3, ''x''), (1, ''y'')) v(a, b) ORDER BY a'),
	('SELECT * FROM generate_series(1, 3) g ORDER BY g DESC'),
	('WITH x AS MATERIALIZED (SELECT * FROM t ORDER BY i) SELECT * FROM x ORDER BY x.d'),
	('SELECT *, (SELECT array_agg(s) FROM (SELECT s FROM t y WHERE y.i = t.i ORDER BY s) z) FROM t ORDER BY (SELECT 1), f'),
	('INSERT INTO t SELECT * FROM t ORDER BY i'),
	('UPDATE t SET i = x.i FROM (SELECT * FROM t ORDER BY d OFFSET 0) x WHERE x.id = t.id'),
	('SELECT * FROM t ORDER BY i FOR UPDATE'),
	('SELECT 1 AS one, NULL::int AS nothing, i FROM t ORDER BY i, random()');
SELECT options, q, d
FROM unnest('{COSTS OFF,"COSTS OFF, VERBOSE","FORMAT TEXT"}'::text[]) options, queries, pg_temp.differences(options, q) d;
SELECT count(*) FROM queries;

-- the whole plan
EXPLAIN SELECT id FROM generate_series(1, 10) id ORDER BY id;
EXPLAIN (COSTS OFF, VERBOSE) SELECT s, 1 AS one, f FROM t ORDER BY lower(s) DESC, i NULLS FIRST;
EXPLAIN (COSTS OFF) SELECT a.i FROM t a, t b WHERE a.id = b.id ORDER BY a.s COLLATE "POSIX" DESC, b.d USING > NULLS LAST;

-- with ANALYZE; memory and engine depend on the machine
SELECT pg_temp.analyze('SELECT * FROM t ORDER BY id DESC');
SELECT pg_temp.analyze('SELECT * FROM t ORDER BY id % 3, md5(id::text)::uuid, (id % 2)::text || repeat(''x'', 30) COLLATE "C"');
SELECT pg_temp.analyze('SELECT i FROM t WHERE id < 0 ORDER BY i');
SELECT pg_temp.analyze('SELECT * FROM (SELECT * FROM t ORDER BY i OFFSET 0) x WHERE pg_backend_pid() = 0');
SELECT pg_temp.analyze('SELECT g, (SELECT count(*) FROM (SELECT id FROM t WHERE id > g ORDER BY id DESC OFFSET 0) x) FROM generate_series(1, 3) g');

-- gpusort.engine = cuda without a device: shows the engine that sorted instead, and the reason
SET gpusort.engine = cuda;
SELECT count(*) > 0 AS says FROM pg_temp.analyze('SELECT * FROM t ORDER BY id DESC') a WHERE a ~ 'Engine';
