-- Keys that are ranges and multiranges: empty first, then by the lower bound, then
-- by the upper bound.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TYPE gs_mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE gs_mood ADD VALUE 'fine' AFTER 'ok';
CREATE TYPE gs_text_range AS RANGE (subtype = text, collation = "C");
CREATE TYPE gs_float_range AS RANGE (subtype = float8);
CREATE TYPE gs_bytes_range AS RANGE (subtype = bytea);
CREATE TYPE gs_list_range AS RANGE (subtype = int[]);
CREATE TYPE gs_range_range AS RANGE (subtype = int4range);
CREATE TYPE gs_inet_range AS RANGE (subtype = inet);
CREATE TYPE gs_mood_range AS RANGE (subtype = gs_mood);

-- all ranges with bounds from a list of ascending values, or unbounded
CREATE FUNCTION pg_temp.ranges(bounds text[]) RETURNS TABLE (literal text) LANGUAGE sql AS $$
	SELECT 'empty'
	UNION ALL
	SELECT opening || coalesce('"' || bounds[l] || '"', '') || ',' || coalesce('"' || bounds[u] || '"', '') || closing
	FROM generate_series(0, cardinality(bounds)) l, generate_series(1, cardinality(bounds) + 1) u,
		 unnest('{[,(}'::text[]) opening, unnest('{],)}'::text[]) closing
	WHERE l <= u
$$;
-- these ranges, each of them twice, and multiranges of up to four of them
CREATE FUNCTION pg_temp.check_ranges(type regtype, bounds text[]) RETURNS TABLE (checked text, "values" bigint) LANGUAGE plpgsql AS $$
DECLARE
	multirange regtype := (SELECT rngmultitypid FROM pg_range WHERE rngtypid = type);
BEGIN
	EXECUTE format('CREATE TEMP TABLE ranges AS SELECT row_number() OVER (ORDER BY md5(literal || i)) AS id, literal::%s AS r
					FROM pg_temp.ranges($1), generate_series(1, 2) i', type) USING bounds;
	INSERT INTO ranges VALUES (0), (10000);
	EXECUTE format('CREATE TEMP TABLE multiranges AS
					SELECT i AS id, (SELECT %s(VARIADIC array_agg(r)) FROM (SELECT r FROM ranges WHERE r IS NOT NULL ORDER BY md5(i || r::text) LIMIT i %% 5) x) AS m
					FROM generate_series(1, 300) i', multirange);
	RETURN QUERY SELECT replace(pg_temp.check_column('ranges', 'r'), 'r:', type || ':'), (SELECT count(DISTINCT r) FROM ranges);
	RETURN QUERY SELECT replace(pg_temp.check_column('multiranges', 'm'), 'm:', multirange || ':'), (SELECT count(DISTINCT m) FROM multiranges);
	DROP TABLE ranges, multiranges;
END $$;

SELECT * FROM pg_temp.check_ranges('int4range', '{-2147483648,-1,0,1,2147483646}');
SELECT * FROM pg_temp.check_ranges('int8range', '{-9223372036854775808,0,9223372036854775806}');
SELECT * FROM pg_temp.check_ranges('numrange', '{-Infinity,-1.5,-1.25,0,1.000,1.0001,Infinity,NaN}');
SELECT * FROM pg_temp.check_ranges('daterange', '{-infinity,2026-01-01,2026-01-02,infinity}');
SELECT * FROM pg_temp.check_ranges('tsrange', '{-infinity,2026-01-01 00:00,2026-01-01 00:00:01,infinity}');
SELECT * FROM pg_temp.check_ranges('tstzrange', '{2026-01-01 00:00+01,2026-01-01 00:00+00}');
SELECT * FROM pg_temp.check_ranges('gs_float_range', '{-Infinity,-1,-0,0,1e-310,Infinity,NaN}');
SELECT * FROM pg_temp.check_ranges('gs_text_range', '{"",A,a,ab,abcdefghijkl,b}');
SELECT * FROM pg_temp.check_ranges('gs_bytes_range', '{\\\\x00,\\\\x0000,\\\\x61}');
SELECT * FROM pg_temp.check_ranges('gs_list_range', '{"{}","{1}","{1,2}","{1,NULL}","{2}"}');
SELECT * FROM pg_temp.check_ranges('gs_range_range', '{empty,"(,5)","[1,5)","[1,6)","[2,)"}');
SELECT * FROM pg_temp.check_ranges('gs_inet_range', '{10.0.0.0/8,10.0.0.1/8,10.0.0.1,::1}');
SELECT * FROM pg_temp.check_ranges('gs_mood_range', '{sad,ok,fine,happy}');

-- with other columns; not in the output; as a domain; of different lengths
CREATE DOMAIN gs_days AS daterange;
SELECT setseed(0.56);
CREATE TEMP TABLE t AS SELECT id, int4range(nullif(id % 4, 0), 4 + nullif(id % 3, 0)) AS i, daterange('2026-01-01', '2026-01-02'::date + id % 5)::gs_days AS d,
	numrange((random() * 3)::int, 3 + (random() * 3)::int, ('{[],[),(],()}'::text[])[1 + id % 4]) AS n,
	gs_text_range(repeat('x', id * 7 % 90), repeat('x', 90) || id % 3) AS s
FROM generate_series(1, 400) id;
SELECT pg_temp.check_column('t', col) FROM unnest('{d,s}'::text[]) col;
SELECT pg_temp.rows_ok('t', 'i, d DESC, n'), pg_temp.rows_ok('t', 'n NULLS FIRST, s DESC, id % 2'), pg_temp.rows_ok('t', 'i * int4range(2, 5) DESC, d'),
	   pg_temp.same('SELECT id FROM t ORDER BY d, s', 'SELECT id FROM t ORDER BY d, s, id');

-- compressed bounds
CREATE TEMP TABLE toast AS SELECT id, gs_text_range(repeat('a', 9000) || id % 4, repeat('b', 5000) || id % 3) AS r FROM generate_series(1, 30) id;
SELECT bool_and(pg_column_size(r) < 1000) AS compressed FROM toast;
SELECT pg_temp.check_column('toast', 'r');

-- bounds without an encoding, alone and in a multirange: comparisons alone
SET gpusort.debug_plan = on;
CREATE TYPE gs_query_range AS RANGE (subtype = tsquery);
SELECT pg_temp.rows_ok('(SELECT id, gs_query_range((id % 7)::text::tsquery, NULL) AS r FROM t) x', 'r');
SELECT pg_temp.rows_ok('(SELECT id, gs_query_multirange(gs_query_range((id % 7)::text::tsquery, NULL)) AS r FROM t) x', 'r DESC');
RESET gpusort.debug_plan;
SELECT pg_temp.left_behind();
DROP TABLE t, toast;
DROP DOMAIN gs_days;
DROP TYPE gs_text_range, gs_float_range, gs_bytes_range, gs_list_range, gs_range_range, gs_inet_range, gs_mood_range, gs_query_range, gs_mood;
