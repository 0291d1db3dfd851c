-- Keys over domains: the order is that of the operator, not of the column's type.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE DOMAIN gs_int AS int CHECK (VALUE > -1000);
CREATE DOMAIN gs_int_of_int AS gs_int;
CREATE DOMAIN gs_float AS float8;
CREATE DOMAIN gs_text_c AS text COLLATE "C";
CREATE DOMAIN gs_char AS char(5) COLLATE "C";
CREATE DOMAIN gs_date AS date NOT NULL;
CREATE DOMAIN gs_inet AS inet;
CREATE DOMAIN gs_uuid AS uuid;
CREATE DOMAIN gs_bool AS bool;
CREATE DOMAIN gs_ints AS int[];
SELECT setseed(0.15);
CREATE TEMP TABLE t AS SELECT id,
	pg_temp.pick('{-999,-1,0,1,2147483647}'::int[])::gs_int_of_int AS i,
	pg_temp.pick('{-0,0,NaN,1,-Infinity}'::float8[])::gs_float AS f,
	pg_temp.pick('{"",a,B,b,abcdefgh,abcdefghi,ä}'::text[])::gs_text_c AS s,
	pg_temp.pick('{"",a,"a  ",b,"B    "}'::text[])::gs_char AS c,
	('2026-01-01'::date + (random() * 10)::int)::gs_date AS d,
	pg_temp.pick('{10.0.0.1,10.0.0.0/8,::1}'::inet[])::gs_inet AS n,
	md5((id % 50)::text)::uuid::gs_uuid AS u,
	pg_temp.pick('{t,f}'::bool[])::gs_bool AS b
FROM generate_series(1, 150) id;
SELECT pg_temp.check_column('t', col) FROM unnest('{i,f,s,c,d,n,u,b}'::text[]) col;
EXPLAIN (COSTS OFF, VERBOSE) SELECT i, s FROM t ORDER BY i DESC, s;
SELECT pg_temp.rows_ok('t', 'b, i DESC, s, f, d');

-- a domain over an array, an array of a domain
SELECT pg_temp.check_column('(SELECT id, ARRAY[i, id]::gs_ints AS a FROM t) x', 'a');
SELECT pg_temp.check_column('(SELECT id, ARRAY[i, 7] AS a FROM t) x', 'a');

-- a CHECK constraint that fails while the sort runs; nothing is left behind
SELECT (id * -10)::gs_int AS k FROM t ORDER BY k;
SELECT (id * -10)::gs_int AS k, id FROM t ORDER BY k;
SELECT pg_temp.left_behind();
DROP TABLE t;
DROP DOMAIN gs_int_of_int, gs_int, gs_float, gs_text_c, gs_char, gs_date, gs_inet, gs_uuid, gs_bool, gs_ints;
