-- Keys of several columns, each with its own direction and placement of NULLs.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- two columns, their extremes with NULLs, all combinations, all input orders
SELECT setseed(0.41);
CREATE TEMP TABLE pairs AS SELECT id,
	pg_temp.pick('{-9223372036854775808,-9223372036854775807,0,9223372036854775806,9223372036854775807}'::int8[]) AS a,
	pg_temp.pick('{-2147483648,0,2147483647}'::int4[]) AS b
FROM generate_series(1, 120) id;
CREATE TEMP TABLE presorted AS SELECT * FROM pairs ORDER BY a, b, id;
CREATE TEMP TABLE reversed AS SELECT * FROM pairs ORDER BY a DESC, b DESC, id;
SELECT t, count(*) AS checked, count(*) FILTER (WHERE pg_temp.rows_ok(t, format('%s %s %s, %s %s %s', x, d1, n1, y, d2, n2))) AS ok
FROM unnest('{pairs,presorted,reversed}'::text[]) t, (VALUES ('a', 'b'), ('b', 'a')) v(x, y),
	 unnest('{ASC,DESC}'::text[]) d1, unnest('{ASC,DESC}'::text[]) d2,
	 unnest('{NULLS FIRST,NULLS LAST}'::text[]) n1, unnest('{NULLS FIRST,NULLS LAST}'::text[]) n2
GROUP BY t ORDER BY t COLLATE "C";

-- text in the middle, what follows it decides only between equal texts
CREATE TEMP TABLE t AS SELECT id,
	id % 2 = 0 AS b, pg_temp.pick('{1,2}'::int2[]) AS s, pg_temp.pick('{1,-1,100000}'::int4[]) AS i,
	pg_temp.pick('{"",a,ab,abcdefgh,abcdefghi,abcdefghj,abcdefghijklmnop,abcdefghijklmnopq}'::text[]) COLLATE "C" AS t,
	pg_temp.pick('{"",a,bcdefghijk}'::text[]) COLLATE "C" AS u,
	pg_temp.pick('{"\\x00","\\x0000","\\x","\\x61","\\x6100"}'::bytea[]) AS y,
	pg_temp.pick('{NaN,-0,0,1e-320}'::float8[]) AS f,
	pg_temp.pick('{10.0.0.0/8,10.0.0.1/8,::1}'::inet[]) AS n,
	pg_temp.pick('{1 mon,30 days}'::interval[]) AS v,
	pg_temp.pick('{12:00+00,13:00+01}'::timetz[]) AS z,
	md5((id % 4)::text)::uuid AS g
FROM generate_series(1, 500) id;
SELECT k, pg_temp.rows_ok('t', k) FROM unnest(ARRAY[
	't, i', 't DESC, i', 'i, t, s', 'i DESC, t DESC, s DESC', 't, u, i', 't DESC, u, i DESC', 't NULLS FIRST, u DESC NULLS LAST',
	'y, i', 'y DESC, t, i DESC', 't, y, u, i', 's, t, b, u, i, y', 'i NULLS FIRST, t DESC, f, y', 'b, s, i, f', 'b DESC, f DESC, t',
	'f, t, i', 'n, t, f', 'n DESC, i', 'v, z, t', 'v DESC, i, z DESC, u', 'g, t, i', 'g DESC, n, f, t', 't, t DESC, i', 'i, -i, t',
	'b, s, i, t, u, y, f, n, v, z, g', 'g, z, v, n, f, y, u, t, i, s, b',
	'b DESC, s DESC, i DESC, t DESC, u DESC, y DESC, f DESC, n DESC, v DESC, z DESC, g DESC',
	't, b, u, s, y, i, f NULLS FIRST, n DESC NULLS LAST, v, z DESC, g', 'length(t), t, u', 'coalesce(t, u), y, i']) k;

-- constant and all-NULL columns
CREATE TEMP TABLE idle AS SELECT id, 1 AS one, NULL::int AS none, 'x'::text COLLATE "C" AS x, NULL::text COLLATE "C" AS nothing,
	'constant and long' COLLATE "C" AS c, (id * 7) % 10 AS k FROM generate_series(1, 100) id;
SELECT k, pg_temp.rows_ok('idle', k) FROM unnest(ARRAY[
	'one', 'none DESC', 'x, one, none', 'one, k', 'none, k DESC, one', 'c, k', 'c DESC, nothing, k, x', 'nothing NULLS FIRST, none, c',
	'k, c, none']) k;

-- a NULL beside a value: the fields of the next column must not be read
CREATE TEMP TABLE gaps AS SELECT id, nullif(id % 3, 0) AS a, nullif(id % 2, 0) AS b, nullif(id % 5, 0)::int8 * 1152921504606846976 AS c
FROM generate_series(1, 60) id;
SELECT k, pg_temp.rows_ok('gaps', k) FROM unnest(ARRAY[
	'a, b, c', 'a DESC, b, c DESC', 'c, a, b', 'c DESC NULLS LAST, b NULLS FIRST, a DESC', 'b, c NULLS FIRST', 'a NULLS FIRST, c DESC']) k;

-- the last columns of a wide row, and keys that are not in the output
\set ECHO none
SELECT 'CREATE TEMP TABLE wide AS SELECT id, ' || string_agg(format('(id * %s) %% 11 AS c%s', i, i), ', ') ||
	   ' FROM generate_series(1, 200) id' FROM generate_series(1, 100) i \gexec
\set ECHO all
SELECT pg_temp.rows_ok('wide', 'c100, c50 DESC, c1'), pg_temp.rows_ok('wide', 'c99 % 2, c98', 'id, c1'),
	   pg_temp.same('SELECT c3 FROM wide ORDER BY c100 DESC', 'SELECT c3 FROM wide ORDER BY c100 DESC, id');
