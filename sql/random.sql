-- Random ORDER BY clauses over random rows of all types, against PostgreSQL's sort.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- values from few to many, with NULLs
SELECT setseed(0.61);
CREATE TYPE gs_color AS ENUM ('red', 'green', 'blue');
ALTER TYPE gs_color ADD VALUE 'orange' AFTER 'red';
CREATE DOMAIN gs_positive AS int CHECK (VALUE > 0);
CREATE TABLE gs_random AS SELECT id,
	pg_temp.pick('{t,f}'::bool[]) AS c1, (id % 7 - 3)::"char" AS c2, (random() * 100 - 50)::int2 AS c3, nullif((random() * 9)::int, 4) AS c4,
	(random() * 2e9 - 1e9)::int4 AS c5, ((random() - 0.5) * 1e18)::int8 << 3 AS c6, (random() * 4e9)::int8::oid AS c7,
	pg_temp.pick('{0,1,18446744073709551615}'::xid8[]) AS c8, pg_temp.pick('{0/0,1/1,FFFFFFFF/0}'::pg_lsn[]) AS c9, (random() * 1e3 - 500)::numeric::money AS c10,
	pg_temp.pick('{-0,0,NaN,1,-1,Infinity,-Infinity,1e-40}'::float4[]) AS c11,
	CASE WHEN random() < 0.3 THEN pg_temp.pick('{-0,0,NaN,5e-324}'::float8[]) ELSE random() - 0.5 END AS c12,
	'2020-01-01'::date + (random() * 30)::int AS c13, '00:00'::time + random() * '24 hours'::interval AS c14, pg_temp.pick('{12:00+00,13:00+01,11:00-01}'::timetz[]) AS c15,
	'2020-01-01'::timestamp + random() * '10 days'::interval AS c16, pg_temp.pick('{infinity,-infinity,2020-01-01}'::timestamptz[]) AS c17,
	pg_temp.pick('{1 mon,30 days,720 hours,-1 day,0}'::interval[]) AS c18, md5((random() * 300)::int::text)::uuid AS c19,
	('08:00:2b:00:00:' || lpad(to_hex((random() * 255)::int), 2, '0'))::macaddr AS c20, ('08:00:2b:01:02:03:04:' || lpad(to_hex(id % 99), 2, '0'))::macaddr8 AS c21,
	set_masklen('10.0.0.0'::inet + (random() * 1000)::int, (random() * 32)::int) AS c22, pg_temp.pick('{10.0.0.0/8,10.0.0.0/9,::/0,fe80::/10}'::cidr[]) AS c23,
	format('(%s,%s)', (random() * 5)::int, id % 11)::tid AS c24, pg_temp.pick(enum_range(NULL::gs_color)) AS c25, (1 + (random() * 5)::int)::gs_positive AS c26,
	pg_temp.pick('{"",a,ab,abcdefgh,abcdefghi,abcdefghij,ä}'::text[]) COLLATE "C" AS c27,
	(repeat('long prefix ', (random() * 3)::int) || (random() * 20)::int) COLLATE "C" AS c28,
	left(md5(random()::text), (random() * 32)::int)::varchar COLLATE "POSIX" AS c29, pg_temp.pick(ARRAY['a', 'a ', '', 'b', 'a  b'])::bpchar COLLATE "C" AS c30,
	('name ' || id % 20)::name COLLATE "C" AS c31, decode(repeat('00', (random() * 12)::int) || pg_temp.pick('{"",01,ff00}'::text[]), 'hex') AS c32,
	convert_to(md5((random() * 500)::int::text), 'UTF8') AS c33
FROM generate_series(1, 700) id;
ANALYZE gs_random;

-- ORDER BY of up to six columns, each with its own direction
CREATE FUNCTION pg_temp.random_order(ncolumns int, max_column int) RETURNS text VOLATILE LANGUAGE sql AS $$
	SELECT string_agg('c' || (1 + floor(random() * max_column)::int)
					  || (ARRAY['', ' ASC', ' DESC', ' DESC'])[1 + floor(random() * 4)::int]
					  || (ARRAY['', ' NULLS FIRST', ' NULLS LAST'])[1 + floor(random() * 3)::int], ', ')
	FROM generate_series(1, ncolumns)
$$;

SELECT setseed(0.62);
CREATE TEMP TABLE clauses AS
	SELECT i, pg_temp.random_order(1 + floor(random() * 6)::int, 33) AS order_by, floor(random() * 800)::int AS n,
		   pg_temp.pick(ARRAY['*', 'id', 'id, c1, c28', 'c32, c12, id']) AS columns
	FROM generate_series(1, 350) i;
SELECT count(*), count(DISTINCT order_by) > 300 AS many FROM clauses;
SELECT count(*) AS wrong FROM clauses
WHERE NOT pg_temp.rows_ok(format('(SELECT * FROM gs_random WHERE id <= %s) x', n), order_by, coalesce(columns, 'c5, id, c33'));

-- the same with computed rows, and with input in the order of another clause
SELECT count(*) AS wrong FROM clauses
WHERE i <= 60 AND NOT pg_temp.rows_ok(format('(SELECT id, %s FROM gs_random WHERE id > %s OFFSET 0) x',
											  (SELECT string_agg(format('coalesce(c%s, NULL) AS c%s', c, c), ', ') FROM generate_series(1, 33) c), n / 2), order_by);
DO $$
DECLARE
	wrong int := 0;
	c record;
BEGIN
	FOR c IN SELECT a.order_by AS input, b.order_by FROM clauses a JOIN clauses b ON b.i = a.i + a.i % 2 WHERE a.i <= 60 ORDER BY a.i LOOP
		SET LOCAL gpusort.enabled = off;
		EXECUTE format('CREATE TEMP TABLE reordered AS SELECT row_number() OVER (ORDER BY %s, id) AS id, %s FROM gs_random ORDER BY 1', c.input,
					   (SELECT string_agg('c' || i, ', ') FROM generate_series(1, 33) i));
		SET LOCAL gpusort.enabled = on;
		wrong := wrong + (NOT pg_temp.rows_ok('reordered', c.order_by))::int;
		DROP TABLE reordered;
	END LOOP;
	RAISE NOTICE '% wrong', wrong;
END $$;

-- each column alone, in each direction
SELECT count(*) AS checked, count(*) FILTER (WHERE NOT pg_temp.keys_ok('gs_random', format('c%s %s %s', c, d, n), 'c' || c)) AS wrong
FROM generate_series(1, 33) c, unnest('{ASC,DESC}'::text[]) d, unnest('{NULLS FIRST,NULLS LAST}'::text[]) n;
SELECT pg_temp.left_behind();
DROP TABLE gs_random;
DROP DOMAIN gs_positive;
DROP TYPE gs_color;
