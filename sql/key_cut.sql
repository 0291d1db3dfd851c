-- Keys longer than 1 kB are truncated if the engine can compare, and ties are compared;
-- if most of them tie, keys are not truncated.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- out of line or compressed, and next to others of them that are neither
CREATE TABLE gs_cut (id int, k int, few text COLLATE "C", x text COLLATE "C", b bytea, c bpchar COLLATE "C", en text COLLATE pg_temp.unicode, n numeric, v varbit, a int[]);
ALTER TABLE gs_cut ALTER x SET STORAGE EXTERNAL, ALTER n SET STORAGE EXTERNAL, ALTER a SET STORAGE EXTERNAL;
-- lengths around the limit, some with a common prefix; equal values; values that are prefixes of others
CREATE FUNCTION pg_temp.long(seed int, beginning text, len int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT left(beginning || repeat(md5(seed::text), 1 + len / 32), len)
$$;
INSERT INTO gs_cut SELECT id, id % 5, CASE WHEN id % 4 = 0 THEN 'few' ELSE repeat('few', 1000) END, x, convert_to(x, 'UTF8') || decode(repeat('00', id % 3), 'hex'), x || repeat(' ', id % 4), x,
	('1' || translate(x, 'abcdef', '012345'))::numeric / CASE WHEN id % 2 = 0 THEN 1 ELSE 10::numeric ^ 1000 END,
	('x' || x)::varbit, ARRAY[id % 3] || (SELECT array_agg(ascii(substr(x, g, 1)) + 0 * g) FROM generate_series(1, length(x), 3) g)
FROM (SELECT id, pg_temp.long(id * 7 % 40, CASE id % 3 WHEN 0 THEN repeat('ab', 520) WHEN 1 THEN '' ELSE repeat('c', 1010) END,
							  CASE id % 8 WHEN 0 THEN 1023 WHEN 1 THEN 1024 WHEN 2 THEN 1025 WHEN 3 THEN 1026 WHEN 4 THEN 40 ELSE 2000 + 500 * (id % 4) END) AS x
	  FROM generate_series(1, 120) id) y;
INSERT INTO gs_cut (id, k) VALUES (121, 1), (122, 2), (123, 1);
-- rows are placed in earlier pages with free space
CREATE TEMP VIEW cut AS SELECT * FROM gs_cut ORDER BY id OFFSET 0;
SELECT count(DISTINCT x) AS x, count(DISTINCT left(x, 1024)) AS beginnings, count(DISTINCT n) AS n, max(pg_column_size(n)) > 1024 AS long FROM cut;
SELECT pg_temp.check_column('cut', col) FROM unnest('{x,b,c,en,n,v,a}'::text[]) col;
-- other columns before and after, which are compared after a truncated key
SELECT o, pg_temp.rows_ok('cut', o)
FROM unnest('{"k, x","x, k DESC","k DESC, x DESC, n","few, x","few DESC, k, b","few, id DESC","c, en DESC, k","n NULLS FIRST, x","v, a, k","a DESC, few, k DESC","length(x), few, k, x"}'::text[]) o;
-- computed rows; the key alone; a LIMIT
SELECT pg_temp.rows_ok('(SELECT id, k, (x || ''y'') COLLATE "C" AS x FROM cut OFFSET 0) z', 'x, k'),
	   pg_temp.keys_ok('cut', 'x', 'x'), pg_temp.keys_ok('cut', 'n DESC', 'n');
SELECT o, n, pg_temp.same(format('SELECT * FROM cut ORDER BY %s LIMIT %s', o, n), format('SELECT * FROM cut ORDER BY %s, id LIMIT %s', o, n))
FROM unnest('{x,"x DESC NULLS LAST, k","few, x","k, n",en}'::text[]) o, unnest('{1,10,100}'::int[]) n;
-- long values after runs have been written; cursors that move backward
CREATE TEMP TABLE late AS SELECT id, few, k, CASE WHEN id > 3000 THEN x ELSE md5((id % 1000)::text) END COLLATE "C" AS x
FROM (SELECT row_number() OVER (ORDER BY y.id % 17, g, y.id)::int AS id, few, k, x FROM cut y, generate_series(1, 50) g WHERE few IS NOT NULL) z;
SET work_mem = '256kB';
SELECT o, pg_temp.rows_ok('late', o) FROM unnest('{x,"x DESC, k","k, x","few, x, k"}'::text[]) o;
SELECT pg_temp.rows_ok('cut', 'x'), pg_temp.rows_ok('cut', 'n, few');
RESET work_mem;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id FROM cut ORDER BY x, k;
MOVE ABSOLUTE 100 FROM c;
FETCH BACKWARD 2 FROM c;
ROLLBACK;

-- a first value that is out of line or not, longer and shorter ones after it, that begin alike or not
CREATE FUNCTION pg_temp.mixed_ok(first int, beginning int) RETURNS text LANGUAGE plpgsql SET client_min_messages = warning AS $$
BEGIN
	DROP TABLE IF EXISTS mixed;
	CREATE TEMP TABLE mixed (id int, s text COLLATE "C");
	ALTER TABLE mixed ALTER s SET STORAGE EXTERNAL;
	INSERT INTO mixed SELECT id, left(repeat('b', beginning) || repeat(md5((id * 7919 % 200)::text), 100),
									  CASE WHEN id = 1 THEN first ELSE (ARRAY[NULL, 0, 10, 31, 32, 33, 50, 1023, 1024, 1025, 3100])[1 + id * 31 % 11] END) FROM generate_series(1, 600) id;
	RETURN concat_ws(' ', pg_temp.rows_ok('mixed', 's'), pg_temp.rows_ok('mixed', 's DESC, id % 3'), pg_temp.rows_ok('mixed', 'id % 3, s DESC'));
END $$;
SELECT result, count(*) FROM unnest('{NULL,0,2,40,3000}'::int[]) first, unnest('{0,20,31,32,40,1100}'::int[]) beginning, pg_temp.mixed_ok(first, beginning) result GROUP BY 1;

-- runs of values that are out of line, though shorter than a truncated key, after one that is not
CREATE TEMP TABLE short_toast (id int, s text COLLATE "C", t text COLLATE "C") WITH (toast_tuple_target = 128);
ALTER TABLE short_toast ALTER s SET STORAGE EXTERNAL, ALTER t SET STORAGE PLAIN;
INSERT INTO short_toast SELECT id, repeat('b', 40) || CASE WHEN id > 1 THEN repeat(md5((id * 7919 % 500)::text), 10) ELSE '' END, CASE WHEN id > 1 THEN repeat('x', 1900) END FROM generate_series(1, 1000) id;
SET work_mem = '64kB';
SELECT pg_temp.rows_ok('(SELECT id, s FROM short_toast OFFSET 0) x', 's'), pg_temp.rows_ok('(SELECT id, s FROM short_toast OFFSET 0) x', 's DESC, id % 3');
RESET work_mem;
-- memory: 200 texts of 30 kB that share a prefix in pairs, or with 200 prefixes, or with two
CREATE TABLE gs_docs (id int, x text COLLATE "C");
ALTER TABLE gs_docs ALTER x SET STORAGE EXTERNAL;
INSERT INTO gs_docs SELECT id, repeat(md5(greatest(id, 40)::text), 940) FROM generate_series(1, 200) id;
CREATE TABLE gs_alike (id int, x text COLLATE "C");
ALTER TABLE gs_alike ALTER x SET STORAGE EXTERNAL;
INSERT INTO gs_alike SELECT id, repeat(md5((id % 2)::text), 900) || md5(id::text) FROM generate_series(1, 200) id;
SET work_mem = '64MB';
SELECT name, :'engine' <> 'cpu' OR kept < most AND kept > least AS kept, pg_temp.rows_ok(name, 'x'), pg_temp.rows_ok(name, 'x DESC, id')
FROM (VALUES ('gs_docs', 20, 100), ('gs_alike', 5500, 7000)) AS cases (name, least, most),
	 pg_temp.figures(format('SELECT id FROM %s ORDER BY x', name)) f, CAST(f ->> 'Sort Space Used' AS int) AS kept;
-- temporary files: out-of-line values are not written, however long the keys; nor does PostgreSQL
SET work_mem = '1MB';
SELECT name, :'engine' <> 'cpu' OR (f ->> 'Sort Space Used')::int < 800 AS little, pg_temp.rows_ok(name, 'x'), pg_temp.rows_ok(name, 'x DESC, id')
FROM unnest('{gs_docs,gs_alike}'::text[]) name, pg_temp.figures(format('SELECT id FROM %s ORDER BY x', name)) f;
RESET work_mem;
SELECT pg_temp.left_behind();
DROP VIEW cut;
DROP TABLE gs_cut, gs_docs, gs_alike;
