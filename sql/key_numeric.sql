-- Keys that are numeric.  Four digits of base 10000 and a common weight fit into the
-- eight-byte prefix: values around that limit, in both storage formats of PostgreSQL,
-- of every weight; a column with a declared scale has digits at fixed positions.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- values without digits, and equal values with different display scales
SELECT setseed(0.51);
CREATE TEMP TABLE special AS SELECT id, pg_temp.pick('{NaN,Infinity,-Infinity,0,-0,0.0,0.000000000000000000000000000000000000000000000000000000000000000000000000000000,
	1,1.0,1.00000,-1,-1.000,10000,10000.0,0.0001,0.00010,0.3,-0.3}'::numeric[]) AS n,
	pg_temp.pick('{0.1,0.2,0.30000000000000000,-0.3}'::numeric[]) + pg_temp.pick('{0.2,0.1,-0,0.0000000}'::numeric[]) AS sum
FROM generate_series(1, 600) id;
SELECT pg_temp.check_column('special', col) FROM unnest('{n,sum}'::text[]) col;
SELECT pg_temp.rows_ok('special', 'n, sum DESC'), pg_temp.rows_ok('special', 'sum NULLS FIRST, n DESC NULLS LAST, id % 3');

-- every power of ten, as it is, a little more, a little less, and negative
CREATE TEMP TABLE powers AS SELECT row_number() OVER (ORDER BY md5(e::text || sign || d)) AS id, sign * (1 + d) * ('1e' || e)::numeric AS n
FROM generate_series(-90, 90) e, unnest('{1,-1}'::int[]) sign, unnest('{0,0.0000000000000001,-0.0000000000000001,0.5}'::numeric[]) d;
SELECT count(*), count(DISTINCT n) FROM powers;
SELECT pg_temp.check_column('powers', 'n');

-- the largest and the smallest, and all weights between
CREATE TEMP TABLE extremes AS SELECT row_number() OVER (ORDER BY md5(t || sign)) AS id, (sign || t)::numeric AS n
FROM unnest('{"","-"}'::text[]) sign, (
	SELECT unnest('{1e131071,9.99e131071,1e-16383,2e-16383,1e127,1e128,1e255,1e256,1e-252,1e-253,1e-256,1e-257,1e80,1e79,1e-32,1e-33,1e-36,1e-37}'::text[])
	UNION ALL SELECT format('1e%s', e) FROM generate_series(-16000, 130000, 3989) e
	UNION ALL SELECT '0.' || repeat('9', 16383) UNION ALL SELECT repeat('9', 20000) UNION ALL SELECT repeat('9', 19999) || '8') x(t);
SELECT pg_temp.check_column('extremes', 'n');

-- one to nine digits of base 10000 that are 0, 1, 9999 or random, of either sign;
-- some are prefixes of others
CREATE FUNCTION pg_temp.some_digits(n int) RETURNS numeric LANGUAGE sql VOLATILE AS $$
	SELECT ((CASE WHEN random() < 0.5 THEN '-' ELSE '' END) || string_agg(lpad(pg_temp.pick(ARRAY['0', '0', '1', '9999', '9998', '5000', (random() * 9999)::int::text]), 4, '0'), ''))::numeric
	FROM generate_series(1, n)
$$;
SELECT setseed(0.52);
CREATE TEMP TABLE digits AS SELECT id, pg_temp.some_digits(1 + id % 9) * ('1e' || 4 * (id % 13 - 8))::numeric AS n FROM generate_series(1, 2500) id;
SELECT count(DISTINCT n) > 1500 AS many FROM digits;
SELECT pg_temp.check_column('digits', 'n');
CREATE TEMP TABLE beginnings AS SELECT row_number() OVER (ORDER BY md5(i || sign::text)) AS id, sign * trunc(1234567899990000000100000000000000010001.000000010000000100019999, i) AS n
FROM generate_series(-40, 24) i, unnest('{1,-1}'::int[]) sign;
SELECT pg_temp.check_column('beginnings', 'n');

-- values of one scale, as amounts of money; the record decides between values of up to four digits
CREATE TEMP TABLE money AS SELECT id, ((random() - 0.3) * 10.0 ^ (id % 13))::numeric(14,2) AS n, (random() * 1000)::numeric(6,3) AS k,
	-trunc(random()::numeric * 999999999999.99, 2) AS low FROM generate_series(1, 2000) id;
SELECT pg_temp.check_column('money', col) FROM unnest('{n,k,low}'::text[]) col;
SELECT pg_temp.figures('SELECT * FROM money ORDER BY ' || col) -> 'Keys Longer Than Prefix' AS tails FROM unnest('{n,low,"n, k DESC"}'::text[]) col;
SELECT pg_temp.rows_ok('money', 'k, n DESC'), pg_temp.rows_ok('money', 'trunc(n, -3), k DESC, id % 2'),
	   pg_temp.rows_ok('(SELECT id, n * k AS nk, k FROM money OFFSET 0) x', 'nk DESC, k');

-- A declared scale makes keys fixed-point.  Values with another scale, which no
-- statement can store, are still in order.
CREATE FUNCTION pg_temp.declare_numeric(tab text, col text, digits int, scale int) RETURNS void LANGUAGE sql AS $$
	UPDATE pg_attribute SET atttypmod = (digits << 16) + (scale & 2047) + 4 WHERE attrelid = tab::regclass AND attname = col
$$;
CREATE FUNCTION pg_temp.check_declared(tab text, digits int, scale int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_temp.declare_numeric(tab, 'n', digits, scale);
	RETURN pg_temp.check_column(tab, 'n');
END $$;
SELECT digits, scale, array_agg(DISTINCT pg_temp.check_declared(tab, digits, scale)) AS checked
FROM unnest('{special,powers,extremes,digits,beginnings}'::text[]) tab, unnest('{14,1,1000,20,9,30,1000}'::int[], '{2,0,1000,8,-5,16,-1000}'::int[]) x(digits, scale)
GROUP BY 1, 2 ORDER BY 1, 2;
SELECT format_type('numeric'::regtype, atttypmod) FROM pg_attribute WHERE attrelid = 'extremes'::regclass AND attname = 'n';

-- around the largest values for four digits of the declared scale
CREATE DOMAIN pg_temp.price AS numeric(20,3);
CREATE TEMP TABLE declared AS SELECT id, s * x AS few, (s * x)::numeric(22,5) AS five, (s * x)::pg_temp.price AS price, (s * x * 1e9)::numeric(30,-2) AS round,
	ARRAY[s * x, id % 3]::numeric(20,4)[] AS a, numrange(least(s * x, 5), NULL) AS r
FROM (SELECT row_number() OVER (ORDER BY md5(i || t::text || s::text)) AS id, s, t + (i - 2) * 0.0001 AS x
	FROM generate_series(0, 4) i, unnest('{0,0.1,0.9999,1,9999,10000,99999999,100000000,999999999999,1000000000000,9999999999999,10000000000000}'::numeric[]) t,
		unnest('{1,-1}'::int[]) s) x;
ALTER TABLE declared ALTER few TYPE numeric(20,4);
SELECT pg_temp.check_column('declared', col) FROM unnest('{few,five,price,round,a,r}'::text[]) col;
SELECT pg_temp.rows_ok('declared', 'price, few DESC'), pg_temp.rows_ok('declared', 'a DESC, r');

-- how many bits the same values take, by their declared type
SELECT type, pg_temp.figures(format('SELECT id, (id - 1500)::%s AS n FROM generate_series(1, 3000) id ORDER BY n', type)) -> 'Packed Key Bits' AS bits
FROM unnest('{"numeric","numeric(14,0)","numeric(14,2)","numeric(14,4)","numeric(14,5)"}'::text[]) type;

-- compressed and out of line
CREATE TEMP TABLE toast AS SELECT id, (repeat('1234', 12000) || id % 9)::numeric AS long, (repeat((id % 3 + 1)::text, 9000) || '.' || id % 4)::numeric AS n
FROM generate_series(1, 30) id;
SELECT bool_and(pg_column_size(long) < 6000) AS compressed FROM toast;
ALTER TABLE toast ALTER n SET STORAGE EXTERNAL;
UPDATE toast SET n = n + 1;
SELECT pg_temp.check_column('toast', col) FROM unnest('{long,n}'::text[]) col;
SELECT pg_temp.rows_ok('toast', 'n DESC, long');

-- random sums, products and quotients
SELECT setseed(0.53);
CREATE TEMP TABLE random_numbers AS SELECT id, CASE id % 3 WHEN 0 THEN a + b WHEN 1 THEN a * b ELSE a / (b + 2) END AS n
FROM (SELECT id, trunc((random() - 0.5)::numeric * ('1e' || (random() * 50 - 20)::int)::numeric, (random() * 30)::int) AS a,
			 trunc(random()::numeric * ('1e' || (random() * 50 - 20)::int)::numeric, (random() * 30)::int) AS b FROM generate_series(1, 4000) id) x;
SELECT pg_temp.check_column('random_numbers', 'n');
SELECT pg_temp.left_behind();
