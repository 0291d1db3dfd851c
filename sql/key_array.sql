-- Keys that are arrays: by their elements, NULL above all others, then by the number
-- of elements, then by the dimensions.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- some elements of an array, none, or NULL
CREATE FUNCTION pg_temp.some(anyarray) RETURNS anyarray LANGUAGE sql VOLATILE AS $$
	SELECT CASE WHEN random() < 0.95 THEN coalesce(array_agg(pg_temp.pick($1)), '{}') END
	FROM generate_series(1, (random() * 4)::int)
$$;
CREATE TYPE gs_mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE gs_mood ADD VALUE 'fine' AFTER 'ok';
CREATE DOMAIN gs_small AS int2 CHECK (VALUE < 1000);
CREATE DOMAIN gs_list AS int[];
SELECT setseed(0.55);
CREATE TEMP TABLE t AS SELECT id,
	pg_temp.some('{t,f}'::bool[]) AS a_bool,
	pg_temp.some('{a,b,~}'::"char"[]) AS a_char,
	pg_temp.some('{-32768,-1,0,7}'::gs_small[]) AS a_domain,
	pg_temp.some('{-2147483648,-1,0,1,256,2147483647}'::int[]) AS a_int4,
	pg_temp.some('{-9223372036854775808,0,1,9223372036854775807}'::int8[]) AS a_int8,
	pg_temp.some('{0,1,4294967295}'::oid[]) AS a_oid,
	pg_temp.some('{-Infinity,-1,-0,0,1e-40,NaN}'::float4[]) AS a_float4,
	pg_temp.some('{-Infinity,-1,-0,0,1e-310,NaN}'::float8[]) AS a_float8,
	pg_temp.some('{-1.5,-1.50,0,1.00,1.000000000000000000001,NaN,Infinity}'::numeric[]) AS a_numeric,
	pg_temp.some('{-infinity,2026-01-01,infinity}'::date[]) AS a_date,
	pg_temp.some('{-infinity,2026-01-01 12:00,infinity}'::timestamp[]) AS a_timestamp,
	pg_temp.some('{1 mon,30 days,29 days}'::interval[]) AS a_interval,
	pg_temp.some('{12:00+00,13:00+01,11:00-01}'::timetz[]) AS a_timetz,
	pg_temp.some('{10.0.0.0/8,10.0.0.1/8,10.0.0.1,::1}'::inet[]) AS a_inet,
	pg_temp.some('{00000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff}'::uuid[]) AS a_uuid,
	pg_temp.some('{"(0,1)","(0,2)","(1,1)"}'::tid[]) AS a_tid,
	pg_temp.some('{08:00:2b:01:02:03,ff:00:00:00:00:00}'::macaddr[]) AS a_macaddr,
	pg_temp.some(ARRAY['', 'a', E'a\x01', 'ab', 'abcdefgh', 'abcdefghi', 'ä'] COLLATE "C") AS a_text,
	pg_temp.some('{"",a,b,abc}'::char(3)[] COLLATE "C") AS a_bpchar,
	pg_temp.some('{"",a,ab}'::name[]) AS a_name,
	pg_temp.some('{"\\x","\\x00","\\x0000","\\x00000000000000","\\x0000000000000000","\\x61"}'::bytea[]) AS a_bytea,
	pg_temp.some(ARRAY[B'', B'0', B'00', B'1', repeat('0', 56)::varbit, repeat('0', 57)::varbit]) AS a_varbit,
	pg_temp.some(enum_range(NULL::gs_mood)) AS a_enum,
	pg_temp.some('{empty,"[1,5)","[1,6)","(,5)","[2,)","(,)"}'::int4range[]) AS a_range,
	pg_temp.pick(ARRAY['{}', '{"{1,2}"}', '{"{1}","{NULL}"}', '{"{1}",NULL}', '{"{{1},{2}}"}', '{"{}"}', '{NULL}', '{"{1}","{}"}'])::gs_list[] AS a_list
FROM generate_series(1, 250) id;
SELECT pg_temp.check_column(format('(SELECT id, %s FROM t) x', attname), attname) FROM pg_attribute WHERE attrelid = 't'::regclass AND attname LIKE 'a\_%' ORDER BY attnum;
SELECT pg_temp.rows_ok('t', 'a_bool, a_int4 DESC, a_text'), pg_temp.rows_ok('t', 'a_enum DESC NULLS LAST, id % 2, a_bytea'),
	   pg_temp.rows_ok('t', 'a_int4 || a_int4 DESC, a_bool'), pg_temp.rows_ok('t', 'cardinality(a_text), a_name');

-- the same elements in other dimensions, and from other lower bounds
CREATE TEMP TABLE shapes AS SELECT row_number() OVER (ORDER BY md5(a::text || i)) AS id, a FROM generate_series(1, 2) i,
	unnest(ARRAY['{}', '{1,2,3,4}', '{{1,2},{3,4}}', '{{1},{2},{3},{4}}', '{{1,2,3,4}}', '{{{1,2}},{{3,4}}}', '{{{1},{2}},{{3},{4}}}', '[0:3]={1,2,3,4}',
				 '[-5:-2]={1,2,3,4}', '[2:5]={1,2,3,4}', '[0:1][1:2]={{1,2},{3,4}}', '[1:2][0:1]={{1,2},{3,4}}', '[0:0][1:4]={{1,2,3,4}}',
				 '{1,2,3}', '{1,2,3,5}', '{{1,2},{3,5}}', '{{1,2},{3,NULL}}', '{1}', '{{1}}', '{NULL}', '{{NULL}}', '{NULL,1}']::gs_list[]) a;
SELECT count(*), count(DISTINCT a::int[]) FROM shapes;
SELECT pg_temp.check_column('shapes', 'a');
SELECT pg_temp.check_column('(SELECT id, a::int[] AS a FROM shapes) x', 'a');

-- arrays of other kinds
CREATE TEMP TABLE vectors AS SELECT id, array_to_string(pg_temp.some('{0,1,255,256}'::text[]), ' ')::oidvector AS o,
	array_to_string(pg_temp.some('{-1,0,256}'::text[]), ' ')::int2vector AS i FROM generate_series(1, 200) id;
SELECT pg_temp.check_column('vectors', col) FROM unnest('{o,i}'::text[]) col;

-- long, compressed, out of line
CREATE TEMP TABLE toast AS SELECT id, array_fill(7, ARRAY[3000]) || id % 5 AS a, array_fill('x'::text, ARRAY[500]) || md5((id % 7)::text) COLLATE "C" AS s
FROM generate_series(1, 30) id;
ALTER TABLE toast ALTER a SET STORAGE EXTERNAL;
INSERT INTO toast SELECT 30 + id, a || NULL, s || 'a'::text FROM toast;
SELECT pg_temp.check_column('toast', col) FROM unnest('{a,s}'::text[]) col;
SELECT pg_temp.rows_ok('toast', 's DESC, a');

-- an enum label added after the plan was made
PREPARE by_moods AS SELECT id FROM (SELECT id, a_enum FROM t WHERE id <= 2 ORDER BY a_enum OFFSET 0) x;
UPDATE t SET a_enum = CASE id WHEN 1 THEN '{ok,sad}' ELSE '{ok,happy}' END::gs_mood[] WHERE id <= 2;
EXECUTE by_moods;
ALTER TYPE gs_mood ADD VALUE 'gloomy' BEFORE 'sad';
UPDATE t SET a_enum = '{ok,gloomy}' WHERE id = 2;
EXECUTE by_moods;

-- elements without an encoding: comparisons alone
SET gpusort.debug_plan = on;
CREATE TYPE gs_pair AS (a int, b int);
SELECT pg_temp.rows_ok('(SELECT id, ARRAY[ROW(id % 7, 1)::gs_pair] AS a FROM (SELECT id FROM t ORDER BY id OFFSET 0) t) x', 'a DESC');
SELECT pg_temp.rows_ok('(SELECT id, ARRAY[(id % 7)::text::tsquery] AS a FROM (SELECT id FROM t ORDER BY id OFFSET 0) t) x', 'a');
RESET gpusort.debug_plan;
SELECT pg_temp.left_behind();
DROP TABLE t, shapes;
DROP DOMAIN gs_small, gs_list;
DROP TYPE gs_mood, gs_pair;
