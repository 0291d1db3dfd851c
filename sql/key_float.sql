-- Keys that are floats.  PostgreSQL sorts every NaN as one value above infinity,
-- and -0 as equal to +0: ties stay in input order and keep their own bits.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- floats by their bits: a type with the input function of an integer and a binary
-- cast to a float
SET client_min_messages = warning;
CREATE TYPE pg_temp.bits8;
CREATE FUNCTION pg_temp.bits8_in(cstring) RETURNS pg_temp.bits8 IMMUTABLE STRICT LANGUAGE internal AS 'int8in';
CREATE FUNCTION pg_temp.bits8_out(pg_temp.bits8) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'int8out';
CREATE TYPE pg_temp.bits8 (INPUT = pg_temp.bits8_in, OUTPUT = pg_temp.bits8_out, LIKE = int8);
CREATE CAST (pg_temp.bits8 AS float8) WITHOUT FUNCTION;
CREATE TYPE pg_temp.bits4;
CREATE FUNCTION pg_temp.bits4_in(cstring) RETURNS pg_temp.bits4 IMMUTABLE STRICT LANGUAGE internal AS 'int4in';
CREATE FUNCTION pg_temp.bits4_out(pg_temp.bits4) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'int4out';
CREATE TYPE pg_temp.bits4 (INPUT = pg_temp.bits4_in, OUTPUT = pg_temp.bits4_out, LIKE = int4);
CREATE CAST (pg_temp.bits4 AS float4) WITHOUT FUNCTION;
RESET client_min_messages;

CREATE TEMP TABLE doubles AS SELECT f FROM unnest(
	'{-Infinity,-1.7976931348623157e308,-1e300,-1.0000000000000002,-1,-1e-300,
	  -2.2250738585072014e-308,-2.2250738585072009e-308,-4.9406564584124654e-324,-0,
	  0,4.9406564584124654e-324,9.8813129168249309e-324,2.2250738585072014e-308,
	  1e-300,1,1.0000000000000002,1.7976931348623157e308,Infinity,NaN}'::float8[]) f
UNION ALL SELECT b::text::pg_temp.bits8::float8 FROM unnest(ARRAY[
	x'7ff0000000000001'::int8,		-- the lowest NaN, a signalling one
	x'7ff8000000000001'::int8,
	x'7fffffffffffffff'::int8,		-- the highest
	x'fff0000000000001'::int8,		-- the same with a sign
	x'fff8000000000000'::int8,
	x'ffffffffffffffff'::int8]) b;
CREATE TEMP TABLE singles AS SELECT f FROM unnest(
	'{-Infinity,-3.4028235e38,-1.0000001,-1,-1.17549435e-38,-1e-45,-0,
	  0,1e-45,3e-45,1.17549435e-38,1,1.0000001,3.4028235e38,Infinity,NaN}'::float4[]) f
UNION ALL SELECT b::text::pg_temp.bits4::float4 FROM unnest(ARRAY[
	x'7f800001'::int4, x'7fc00001'::int4, x'7fffffff'::int4,
	x'ff800001'::int4, x'ffc00000'::int4, x'ffffffff'::int4]) b;

-- the bits are preserved
SELECT count(*), count(DISTINCT float8send(f)), count(DISTINCT f) FROM doubles;
SELECT count(*), count(DISTINCT float4send(f)), count(DISTINCT f) FROM singles;

SELECT setseed(0.3);
CREATE TEMP TABLE t AS
	SELECT id, pg_temp.pick(d) AS f8, pg_temp.pick(s) AS f4, random() - 0.5 AS r8, (random() * 100)::float4 AS r4,
		   pg_temp.pick('{-0,0}'::float8[]) AS z8, pg_temp.pick('{-0,0}'::float4[]) AS z4,
		   pg_temp.pick(nans) AS n8
	FROM generate_series(1, 400) id, (SELECT array_agg(f) AS d, array_agg(f) FILTER (WHERE f = 'NaN') AS nans FROM doubles) x,
		 (SELECT array_agg(f) AS s FROM singles) y;
SELECT pg_temp.check_column('t', col) FROM unnest('{f8,f4,r8,r4,z8,z4,n8}'::text[]) col;

-- what a user sees
SELECT string_agg(coalesce(f8::text, '-'), ' ') FROM (SELECT DISTINCT f8 FROM t WHERE f8 <> 0 ORDER BY f8) x;
SELECT string_agg(f8::text, ' ') FROM (SELECT f8 FROM t WHERE f8 > 1e308 AND id < 60 ORDER BY f8 DESC) x;

-- zeros, ties in input order: rows, values alone, presorted, reversed
CREATE TEMP TABLE zeros (id int, f float8);
INSERT INTO zeros VALUES (1, '0'), (2, '-0'), (3, '-0'), (4, '0'), (5, '-1e-320'), (6, '-0'), (7, '1e-320');
SELECT string_agg(id::text, ' ') FROM (SELECT * FROM zeros ORDER BY f OFFSET 0) x;
SELECT string_agg(id::text, ' ') FROM (SELECT * FROM zeros ORDER BY f DESC OFFSET 0) x;
SELECT string_agg(f::text, ' ') FROM (SELECT f FROM zeros ORDER BY f OFFSET 0) x;
SELECT string_agg(f::text, ' ') FROM (SELECT f FROM zeros ORDER BY f DESC OFFSET 0) x;
SELECT string_agg(f::text, ' ') FROM (SELECT f FROM zeros WHERE f = 0 ORDER BY f OFFSET 0) x;

-- a NaN does not disturb the order of the others, nor tie with them (a second key
-- decides only between equal values)
SELECT pg_temp.rows_ok('t', 'f8, r4 DESC'), pg_temp.rows_ok('t', 'f4 DESC, f8, r8'),
	   pg_temp.rows_ok('t', 'n8, z8 DESC, z4 NULLS FIRST, r8');

-- keys wider than a sort word, alone
SELECT setseed(0.4);
CREATE TEMP TABLE alone AS SELECT id, CASE WHEN id % 97 = 0 THEN pg_temp.pick(d) ELSE exp(random() * 1400 - 700) * (id % 2 * 2 - 1) END AS f
	FROM generate_series(1, 5000) id, (SELECT array_agg(f) AS d FROM doubles) x;
SELECT pg_temp.check_column('alone', 'f');
DROP CAST (pg_temp.bits8 AS float8);
DROP CAST (pg_temp.bits4 AS float4);
