-- Rows that arrive in order are only compared with the previous row, and get no keys
-- until a row is out of order.  Needs a database in UTF8.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- "C", which is unicode without ICU, has keys for rows in order, too
\if :has_icu
\else
DROP COLLATION pg_temp.unicode;
CREATE COLLATION pg_temp.unicode FROM pg_temp.english;
\endif
-- in order by s: ties of three rows; if given, one row is out of order
CREATE FUNCTION pg_temp.rows_in_order(n int, low int DEFAULT 0, nulls int DEFAULT 0)
RETURNS TABLE (id int, s text, k int) LANGUAGE sql AS $$
	SELECT id, s, id % 7 FROM (
		SELECT id, CASE WHEN id <= n - nulls THEN 'Row ' || lpad(((CASE WHEN id = low THEN 0 ELSE id + 2 END) / 3)::text, 6, '0') END AS s
		FROM generate_series(1, n) id) x
$$;
CREATE FUNCTION pg_temp.source(n int, low int DEFAULT 0, nulls int DEFAULT 0) RETURNS text LANGUAGE sql AS $$
	SELECT format('(SELECT id, s COLLATE pg_temp.english AS s, k FROM pg_temp.rows_in_order(%s, %s, %s)) x', n, low, nulls)
$$;
-- no key bits if all rows arrived in order
CREATE FUNCTION pg_temp.unkeyed(query text) RETURNS boolean LANGUAGE sql AS $$
	SELECT f ->> 'Sort Method' = 'presorted' AND f -> 'Packed Key Bits' = '0' FROM pg_temp.figures(query) f
$$;

CREATE TEMP TABLE cases (what text, n int, low int, nulls int);
INSERT INTO cases VALUES ('none', 0, 0, 0), ('one', 1, 0, 0), ('two', 2, 0, 0), ('two, wrong', 6, 6, 0), ('in order', 3000, 0, 0),
	('NULLs at the end', 3000, 0, 40), ('all NULL', 300, 0, 300), ('second row', 3000, 2, 0), ('fourth row', 3000, 4, 0), ('in the middle', 3000, 1500, 0),
	('last row', 3000, 3000, 0), ('before the NULLs', 3000, 2960, 40);
SELECT what, pg_temp.unkeyed(q || 's') AS s, pg_temp.unkeyed(q || 's NULLS FIRST') AS nulls_first,
	   pg_temp.rows_ok(source, 's') AND pg_temp.rows_ok(source, 's NULLS FIRST') AND pg_temp.rows_ok(source, 's DESC')
	   AND pg_temp.rows_ok(source, 's, k') AND pg_temp.rows_ok(source, 'id / 100, s')
	   AND pg_temp.rows_ok(source, 's COLLATE pg_temp.unicode, id') AND pg_temp.rows_ok(source, 's COLLATE "C.utf8"') AS right
FROM cases, pg_temp.source(n, low, nulls) AS source,
	 format('SELECT * FROM %s ORDER BY ', source) AS q;

-- n rows, n - 1 comparisons
SELECT f -> 'Collation Verification Comparisons' AS compared, f -> 'Sorted Rows' AS sorted FROM pg_temp.figures(format('SELECT * FROM %s ORDER BY s', pg_temp.source(3000))) f;
-- a LIMIT; cursors that move backward
SELECT o, low, pg_temp.same(format('SELECT * FROM %s ORDER BY %s LIMIT 10 OFFSET 5', source, o), format('SELECT * FROM %s ORDER BY %s, id LIMIT 10 OFFSET 5', source, o))
FROM unnest('{s,"s DESC, k","s COLLATE pg_temp.unicode, k"}'::text[]) o, unnest('{0,3000}'::int[]) low, pg_temp.source(3000, low) AS source;
CREATE TEMP TABLE t AS SELECT id, s COLLATE pg_temp.english AS s FROM pg_temp.rows_in_order(6000);
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY s;
MOVE ABSOLUTE 1000 FROM c;
FETCH 2 FROM c;
FETCH BACKWARD 3 FROM c;
FETCH LAST FROM c;
ROLLBACK;
-- more rows than memory: in order to the end, or not
SET work_mem = '128kB';
SELECT what, :'engine' <> 'cpu' OR f ->> 'Sort Method' = 'external merge' AS merged, pg_temp.rows_ok(source, 's'), pg_temp.rows_ok(source, 's, k DESC')
FROM (VALUES ('in order', 6000, 0), ('last row', 6000, 6000), ('in the middle', 6000, 3000), ('just before memory ends', 6000, 900)) AS cases (what, n, low),
	 pg_temp.source(n, low) AS source, pg_temp.figures(format('SELECT * FROM %s ORDER BY s', source)) f;
-- without keys they are one run; after a row that is out of order there are more runs, whether it is
-- below a row in memory or below the last one that was written
CREATE FUNCTION pg_temp.runs(query text) RETURNS int LANGUAGE sql AS $$ SELECT (pg_temp.figures(query) ->> 'Runs')::int $$;
CREATE TEMP TABLE orders AS SELECT row_number() OVER () AS i, o
FROM unnest(ARRAY['s', 's COLLATE pg_temp.unicode', 's || repeat(''x'', 150), s', 'repeat(''x'', 150 + k * 0) COLLATE pg_temp.english, s COLLATE pg_temp.unicode']) o;
SELECT o, low, :'engine' <> 'cpu' OR CASE WHEN low = 0 THEN runs = 1 ELSE runs > 1 END AS runs, pg_temp.rows_ok(source, o || ', k') AS right
FROM orders, unnest('{0,5999,6000}'::int[]) low, pg_temp.source(6000, low) AS source, pg_temp.runs(format('SELECT * FROM %s ORDER BY %s', source, o)) AS runs
ORDER BY i, low;
SELECT bool_and(pg_temp.rows_ok(source, 's, k') AND pg_temp.rows_ok(source, 's COLLATE pg_temp.unicode, k')) AS right
FROM generate_series(900, 1700, 8) low, pg_temp.source(2000, low) AS source;
-- NULLs; rows of all lengths, one of which exceeds memory and is too long for a device, so that a tuplesort takes
-- over; otherwise ties stay in input order
CREATE TEMP TABLE lengths AS SELECT id, CASE WHEN id < 3900 THEN lpad((id / 50)::text, 5, '0') END COLLATE pg_temp.english AS s,
	repeat('l', CASE WHEN id = 3000 THEN 300000 ELSE id % 97 * 5 END) AS long, id % 3 AS k FROM generate_series(1, 4000) id;
SELECT o, pg_temp.rows_ok('(SELECT id, s, k, long || k AS long FROM lengths OFFSET 0) x', CASE :'engine' WHEN 'cpu' THEN o ELSE o || ', id' END) AS right
FROM unnest(ARRAY['s', 's, k', 's COLLATE pg_temp.unicode, k DESC', 's NULLS FIRST', 's, long DESC']) o;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY s;
FETCH LAST FROM c;
FETCH ABSOLUTE 3 FROM c;
ROLLBACK;
RESET work_mem;
-- wrong keys are not made, or are made and detected
SET gpusort.collation_fault = on;
SELECT low, pg_temp.unkeyed(format('SELECT * FROM %s ORDER BY s', source)), pg_temp.rows_ok(source, 's') FROM unnest('{0,3000}'::int[]) low, pg_temp.source(3000, low) AS source;
SET gpusort.collation_fault = off;

-- keys that decide alone: none either, if the first rows are in order, which are kept; but a number costs less than a
-- comparison, and more rows than memory get keys
SET gpusort.force = off;
SET gpusort.min_rows = 0;
CREATE TEMP TABLE decided AS SELECT row_number() OVER () AS i, o, o <> 'id' AS compared
FROM unnest('{"s COLLATE \"C\"","s COLLATE \"C\", id","id / 70, s COLLATE \"C\" NULLS LAST",id}'::text[]) o;
SELECT what, o, :'engine' <> 'cpu' OR pg_temp.unkeyed(format('SELECT * FROM %s ORDER BY %s', source, o)) = (compared AND low = 0) AS expected,
	   pg_temp.rows_ok(source, o) AS right
FROM cases, decided, pg_temp.source(n, low, nulls) AS source
WHERE n > 64 AND (low = 0 OR compared) ORDER BY what COLLATE "C", i;
SELECT bool_and(pg_temp.rows_ok(source, o)) AS right FROM decided, generate_series(60, 70) low, pg_temp.source(100, low) AS source;
SET work_mem = '128kB';
SELECT o, low, :'engine' <> 'cpu' OR NOT pg_temp.unkeyed(format('SELECT * FROM %s ORDER BY %s', source, o)) AS keyed, pg_temp.rows_ok(source, o) AS right
FROM decided, unnest('{0,900,6000}'::int[]) low, pg_temp.source(6000, low) AS source WHERE compared ORDER BY i, low;
-- with keys, too, they are one run
SELECT o, low, :'engine' <> 'cpu' OR CASE WHEN low > 0 AND o LIKE 's%' THEN runs > 1 ELSE runs = 1 END AS runs, pg_temp.rows_ok(source, o) AS right
FROM decided, unnest('{0,3000,6000}'::int[]) low, pg_temp.source(6000, low) AS source, pg_temp.runs(format('SELECT * FROM %s ORDER BY %s', source, o)) AS runs ORDER BY i, low;
SELECT o, :'engine' <> 'cpu' OR CASE WHEN o = 'v DESC' THEN runs > 1 ELSE runs = 1 END AS runs
FROM unnest('{v,"v NULLS FIRST",v DESC,"-v DESC"}'::text[]) o, pg_temp.runs(format('SELECT v FROM generate_series(1, 50000) v ORDER BY %s', o)) AS runs;
SELECT count(*), bool_and(v = n) AS right FROM (SELECT v, row_number() OVER () AS n FROM (SELECT v FROM generate_series(1, 50000) v ORDER BY v OFFSET 0) x) y;
RESET work_mem;
-- a single column that is passed by value, whose first values are kept without rows
CREATE TYPE gs_step AS ENUM ('low', 'high');
ALTER TYPE gs_step ADD VALUE 'middle' BEFORE 'high';
SELECT type, count(*), bool_and(v >= before) AS right FROM (
	SELECT 'enum' AS type, v, lag(v) OVER () AS before FROM (SELECT (CASE WHEN i < 200 THEN 'low' WHEN i < 400 THEN 'middle' ELSE 'high' END)::gs_step AS v FROM generate_series(1, 600) i ORDER BY 1) x
) y GROUP BY type;
SELECT count(*), bool_and(v >= before) AS right FROM (
	SELECT v, lag(v) OVER () AS before FROM (SELECT i::oid AS v FROM generate_series(1, 600) i ORDER BY 1) x) y;
DROP TYPE gs_step;

SELECT pg_temp.left_behind();
DROP TABLE t, lengths;
