-- Keys of types of contrib modules, and of tsvector.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- without the modules, with other types: this prints the same
\set ECHO none
SELECT count(*) = 3 AS has_modules FROM pg_available_extensions WHERE name IN ('citext', 'hstore', 'ltree') \gset
\if :has_modules
SET client_min_messages = warning;
CREATE EXTENSION citext;
CREATE EXTENSION hstore;
CREATE EXTENSION ltree;
RESET client_min_messages;
\else
CREATE DOMAIN citext AS text;
CREATE DOMAIN hstore AS text;
CREATE DOMAIN ltree AS text;
\endif
\set ECHO all
CREATE DOMAIN gs_word AS citext;
SELECT setseed(0.75);
CREATE TEMP TABLE t AS SELECT id, id % 3 AS k,
	pg_temp.pick('{"",a,A,aa,Ab,aB,AB,b,B,abcdefg,ABCDEFGH,abcdefghI,ä,Ä,ß,É,é,"a b",a-b}'::text[])::citext AS c,
	pg_temp.pick('{a,A,b,B}'::text[])::gs_word AS w,
	pg_temp.pick(ARRAY['', 'a=>1', 'a=>2', 'a=>NULL', 'a=>""', 'b=>1', 'a=>1,b=>2', 'a=>1,b=>NULL', 'a=>NULL,b=>1', 'aa=>1', 'a=>a1', '""=>""', '""=>NULL',
					   'abcdefgh=>abcdefghijklmnop', 'abcdefg=>habcdefghijklmnop', 'a=>"1234567"', 'a=>"12345678"'])::hstore AS h,
	pg_temp.pick('{"",a,A,a.b,a.b.c,a.a,aa,ab.c,b,abcdefg.h,abcdefgh,Top.Science.Astronomy,Top.Science.Astronomy.Stars,Top.Sciences}'::text[])::ltree AS l,
	pg_temp.pick(ARRAY['', 'a', 'b', 'a b', 'ab', 'a:1', 'a:1,2', 'a:1,3', 'a:2', 'a:1A', 'a:1B', 'a:1 b', 'a b:1', 'abcdefgh', 'abcdefghi', 'ä', 'a:1A,2B,16383'])::tsvector AS v
FROM generate_series(1, 400) id;
SELECT pg_temp.check_column('t', col) FROM unnest('{c,w,h,l,v}'::text[]) col;
SELECT pg_temp.check_column(format('(SELECT id, ARRAY[%s, %1$s] AS a FROM t) x', col), 'a') FROM unnest('{c,h,l,v}'::text[]) col;
SELECT pg_temp.check_column('(SELECT id, c COLLATE "C" AS c FROM t) x', 'c');
SELECT pg_temp.check_column('(SELECT id, c COLLATE pg_temp.unicode AS c FROM t) x', 'c');
SELECT k, pg_temp.rows_ok('t', k) FROM unnest('{"c, k","k DESC, c DESC, h","h, l DESC, c","v, c, l","l, k, v DESC","c COLLATE \"C\" DESC, v"}'::text[]) k;

-- runs in files; a LIMIT
SET work_mem = '64kB';
SELECT k, pg_temp.rows_ok('(SELECT t.* FROM t, generate_series(1, 20)) x', k || ', id') FROM unnest('{c,h,l,v}'::text[]) k;
RESET work_mem;
SELECT k, pg_temp.same(format('SELECT * FROM t ORDER BY %s LIMIT 20', k), format('SELECT * FROM t ORDER BY %s, id LIMIT 20', k)) FROM unnest('{c,h,l,v}'::text[]) k;

-- compressed and out of line
CREATE TEMP TABLE toast AS SELECT id, (CASE id % 2 WHEN 0 THEN repeat('A', 3000) ELSE repeat('a', 3000) END || id % 7)::citext AS c,
	('a=>' || repeat('x', 3000) || ',b=>' || id % 5)::hstore AS h,
	(repeat('Label.', 400) || 'n' || id % 5)::ltree AS l,
	(SELECT string_agg('w' || i || ':' || i, ' ') || ' z:' || 1 + id % 5 FROM generate_series(1, 400) i)::tsvector AS v
FROM generate_series(1, 40) id;
SELECT pg_temp.check_column('toast', col) FROM unnest('{c,h,l,v}'::text[]) col;

SELECT pg_temp.left_behind();
DROP TABLE t, toast;
DROP DOMAIN gs_word;
\set ECHO none
\if :has_modules
DROP EXTENSION citext, hstore, ltree;
\else
DROP DOMAIN citext, hstore, ltree;
\endif
