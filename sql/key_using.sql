-- ORDER BY ... USING: the operator gives the direction and the order.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SELECT setseed(0.31);
CREATE TEMP TABLE t AS SELECT id, pg_temp.pick('{1,2,3}'::int[]) AS i, pg_temp.pick('{-0,0,NaN,1}'::float8[]) AS f,
	pg_temp.pick('{a,B,ab,"",abcdefghij}'::text[]) COLLATE "C" AS s, pg_temp.pick('{"a ",a,B}'::text[])::char(4) COLLATE "C" AS c,
	pg_temp.pick('{1 mon,30 days,1 day}'::interval[]) AS v
FROM generate_series(1, 100) id;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY i USING <, f USING >, s USING ~<~ NULLS FIRST, c USING ~>~ NULLS LAST;
SELECT pg_temp.check_column('t', col, '{USING <,USING >}') FROM unnest('{i,f,s,c,v}'::text[]) col;
SELECT pg_temp.check_column('t', col, '{USING ~<~,USING ~>~}') FROM unnest('{s,c}'::text[]) col;

-- PostgreSQL rejects operators without a btree order
SELECT * FROM t ORDER BY i USING <=;
SELECT * FROM t ORDER BY i USING =;

-- an operator of another input type than the column's
SELECT pg_temp.rows_ok('t', 'i::int2 USING >'), pg_temp.rows_ok('t', 's::varchar USING <'), pg_temp.rows_ok('t', 'i::oid::regclass USING >'),
	   pg_temp.rows_ok('t', 'v USING >, f USING < NULLS FIRST, s USING ~>~');
