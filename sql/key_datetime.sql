-- Keys that are dates, times and intervals.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SET TimeZone = 'UTC';
SELECT setseed(0.5);
CREATE TEMP TABLE t AS SELECT id,
	pg_temp.pick('{-infinity,4713-01-01 BC,0001-12-31 BC,1999-12-31,2000-01-01,2026-02-28,5874897-12-31,infinity}'::date[]) AS d,
	pg_temp.pick('{00:00,00:00:00.000001,11:59:59.999999,12:00,23:59:59.999999,24:00}'::time[]) AS tm,
	pg_temp.pick('{00:00+15:59,00:00-15:59,12:00+00,13:00+01,11:00-01,12:00:00.000001+00,24:00+00,24:00-15:59}'::timetz[]) AS tz,
	pg_temp.pick('{-infinity,4713-01-01 BC,1999-12-31 23:59:59.999999,2000-01-01,294276-12-31 23:59:59.999999,infinity}'::timestamp[]) AS ts,
	pg_temp.pick('{-infinity,4713-01-01 BC,2000-01-01 00:00+00,2000-01-01 01:00+01,2000-01-01 00:00:00.000001+00,
				   294276-12-31 23:59:59.999999,infinity}'::timestamptz[]) AS tstz,
	pg_temp.pick('{-178000000 years,-1 mon,-30 days,-1 day,-24 hours,-1 us,0,1 us,24 hours,1 day,
				   30 days,1 mon,720 hours,1 mon -1 day,29 days,31 days,1 year,12 mons,360 days,365 days,
				   178000000 years}'::interval[]) AS iv
FROM generate_series(1, 300) id;
SELECT pg_temp.check_column('t', col) FROM unnest('{d,tm,tz,ts,tstz,iv}'::text[]) col;

-- the span of the widest intervals exceeds 64 bits, of some just so
CREATE TEMP TABLE spans AS SELECT id, i FROM unnest(ARRAY[
	make_interval(months => 2147483647, days => 2147483647, secs => 9223372036854),
	make_interval(months => 2147483647, days => 2147483647),
	make_interval(months => 2147483647),
	make_interval(months => 2147483646, days => 30),
	make_interval(days => 2147483647),
	'600000 years', '500000 years', '400000 years', '300000 years', '200000 years', '-300000 years', '-400000 years',
	make_interval(secs => 9223372036854),
	'0', '-1 us',
	make_interval(secs => -9223372036854),
	make_interval(days => -2147483648),
	make_interval(months => -2147483648),
	make_interval(months => -2147483648, days => -2147483648, secs => -9223372036854)]) WITH ORDINALITY x(i, id);
SELECT pg_temp.check_column('spans', 'i');

-- equal values stay in input order: a month is 30 days of 24 hours
SELECT string_agg(i::text, ', ') FROM (SELECT i FROM unnest(
	'{720 hours,1 mon,30 days,29 days 24 hours,31 days,1 mon -1 day}'::interval[]) i ORDER BY i OFFSET 0) x;
SELECT string_agg(i::text, ', ') FROM (SELECT i FROM unnest(
	'{720 hours,1 mon,30 days,29 days 24 hours,31 days,1 mon -1 day}'::interval[]) i ORDER BY i DESC OFFSET 0) x;

-- one instant in several zones is not equal: the zone decides
SELECT string_agg(z::text, ', ') FROM (SELECT z FROM unnest(
	'{12:00+00,13:00+01,11:00-01,02:00-10,12:00:00.000001+00}'::timetz[]) z ORDER BY z OFFSET 0) x;

-- microseconds over many years: timestamps that vary in more bits than a sort word has
SELECT setseed(0.6);
CREATE TEMP TABLE moments AS SELECT id,
	'2000-01-01'::timestamptz + make_interval(secs => (random() * 4e11 - 2e11)::int8) + (id % 5) * '1 us'::interval AS at,
	'2000-01-01'::date + (random() * 800)::int AS day
FROM generate_series(1, 2000) id;
SELECT pg_temp.check_column('moments', 'at'), pg_temp.check_column('moments', 'day');
SELECT pg_temp.rows_ok('moments', 'day DESC, at'), pg_temp.rows_ok('moments', 'at::time, day');
