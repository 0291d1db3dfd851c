-- Few distinct values of any width get codes of a dictionary, which finds them by their bytes: no keys are stored.
-- Needs a server built with ICU: keys of text under "C" cost nothing.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

\if :has_icu
\else
\echo skipped: the server or gpusort was built without ICU
\quit
\endif

-- this is known before rows move to a device
SET gpusort.device_min_rows = 1000;

-- Are there codes, and are the rows right?
CREATE FUNCTION pg_temp.codes(from_what text, o text, columns text DEFAULT '*', OUT entries text, OUT ok bool) LANGUAGE sql AS $$
	SELECT f ->> 'Dictionary Entries', pg_temp.rows_ok(from_what, o, columns) FROM pg_temp.figures(format('SELECT * FROM %s ORDER BY %s', from_what, o)) f
$$;
CREATE TABLE gs_few (id int, k int, n text, a text[], j jsonb, d numeric, v varbit, r numrange, c char(1200), e text, x jsonb);
ALTER TABLE gs_few ALTER e SET STORAGE EXTERNAL, ALTER x SET STORAGE EXTERNAL;
INSERT INTO gs_few SELECT id, id % 4, long, ARRAY[long, NULL, 'z'], to_jsonb(long), (repeat('7', 1000) || h)::numeric, (repeat('01', 3000) || h::bit(3)::text)::varbit,
	numrange((repeat('7', 500) || h)::numeric, NULL), long, repeat(long, 3), jsonb_build_object('k', repeat(long, 3))
FROM (SELECT id, h, repeat('The quick brown fox ', 50) || h AS long FROM generate_series(1, 1500) id, LATERAL (SELECT CASE WHEN id % 76 > 0 THEN id * 7919 % 1009 % 5 END AS h) y) x;
-- some of the values are compressed or out of line
SELECT bool_and(pg_column_size(n) < 1000) AS n_compressed, bool_and(pg_column_size(e) > 3000) AS e_not_compressed FROM gs_few WHERE n IS NOT NULL;

-- as the only, the first and the last column
SELECT o, c.*, pg_temp.rows_ok('gs_few', o || ' DESC NULLS LAST, k', 'id') AS first, pg_temp.rows_ok('gs_few', 'k, ' || o || ' NULLS FIRST', 'id') AS last
FROM unnest(ARRAY['n COLLATE pg_temp.unicode', 'a', 'a COLLATE pg_temp.unicode', 'j', 'd', 'v', 'r', 'c COLLATE pg_temp.unicode', 'e COLLATE "C"', 'e COLLATE pg_temp.unicode', 'x']) o,
	 pg_temp.codes('gs_few', o, 'id') c;
SELECT o, c.* FROM unnest(ARRAY['n COLLATE pg_temp.unicode DESC, j, d', 'k, a, e COLLATE "C", id DESC', 'd, md5(id::text) COLLATE pg_temp.unicode', 'e COLLATE "C", repeat(n, 2) COLLATE "C", k']) o, pg_temp.codes('gs_few', o) c;
-- the keys are in no memory
SET gpusort.engine = cpu;
SELECT o, (f -> 'Sort Space Used')::int < 1.1 * (g -> 'Sort Space Used')::int AS no_keys
FROM unnest(ARRAY['n COLLATE pg_temp.unicode', 'a', 'j', 'd', 'e COLLATE "C"', 'x']) o, pg_temp.figures(format('SELECT * FROM gs_few ORDER BY %s', o)) f,
	 pg_temp.figures('SELECT * FROM gs_few ORDER BY id % 5') g;
SET gpusort.engine = :engine;
-- in runs
SET work_mem = '256kB';
SELECT o, c.ok FROM unnest(ARRAY['j DESC', 'd, k', 'k, x']) o, pg_temp.codes('gs_few', o) c;
RESET work_mem;

-- equal, but not stored alike: they are ties
CREATE TEMP TABLE alike AS SELECT id, (ARRAY['7.', '7.0', '7.00', '8.', '-3.10'])[1 + id * 7919 % 1009 % 5] || repeat('0', 40) || id % 3 * 0 AS n,
	repeat('x', 300) || id * 7919 % 1009 % 3 AS t FROM generate_series(1, 1200) id;
SELECT o, c.* FROM unnest(ARRAY['n::numeric, id % 2', 'n::numeric DESC', 'ARRAY[n::numeric]', 'jsonb_build_array(n::numeric)', 'numrange(n::numeric, NULL)',
	'(t || repeat('' '', id % 2))::bpchar COLLATE pg_temp.unicode, id % 2', 'CASE id % 2 WHEN 0 THEN t ELSE upper(t) END COLLATE pg_temp.unicode']) o, pg_temp.codes('alike', o) c;
-- cheap values, alone and half of them; all equal; few rows; more values later than a dictionary has room for, or too long ones
SELECT o, c.* FROM unnest(ARRAY['(id * 7919 % 5)::numeric', 't COLLATE "C"', 'CASE WHEN id * 7919 % 1009 % 2 = 0 THEN 0 ELSE n::numeric END', 'left(t, 300) COLLATE pg_temp.unicode, id DESC']) o, pg_temp.codes('alike', o) c;
SELECT c.* FROM pg_temp.codes('(SELECT * FROM alike LIMIT 50) x', 'ARRAY[t]') c;
SELECT o, c.* FROM unnest(ARRAY['ARRAY[t, CASE WHEN id > 700 THEN id::text END]', 'jsonb_build_array(t, CASE WHEN id > 700 THEN id END) DESC, t COLLATE pg_temp.unicode, id % 2',
	'ARRAY[t, CASE WHEN id = 999 THEN repeat(''z'', 9000000) END], id']) o, pg_temp.codes('alike', o) c;
SET work_mem = '256kB';
SELECT o, c.ok FROM unnest(ARRAY['ARRAY[t, CASE WHEN id > 900 THEN id::text END]', 'n::numeric * CASE WHEN id > 900 THEN id ELSE 1 END']) o, pg_temp.codes('alike', o) c;
RESET work_mem;
SELECT pg_temp.left_behind();
DROP TABLE gs_few;
