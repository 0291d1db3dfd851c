-- Keys that are bit strings: their bytes, then their number of bits.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- zeros, ones, and a one among zeros, of all lengths around multiples of seven and eight
CREATE TEMP TABLE lengths AS SELECT row_number() OVER (ORDER BY md5(n || b)) AS id, b::varbit AS v
FROM generate_series(0, 180) n,
	 LATERAL (VALUES (repeat('0', n)), (repeat('1', n)), (repeat('0', n) || '1'), (repeat('10', n / 2)), (repeat('1', n) || '00000000')) x(b);
SELECT count(*), count(DISTINCT v) FROM lengths;
SELECT pg_temp.check_column('lengths', 'v');

-- of one length, short and long; random; many with a common prefix
SELECT setseed(0.54);
CREATE TEMP TABLE t AS SELECT id,
	nullif(id % 11, 0)::bit(3) AS b3, ((random() * 1e9)::int % 70)::bit(32) AS b32,
	((random() * 1e9)::int::bit(32) || (random() * 1e9)::int::bit(32)) AS b64,
	(repeat('0', (random() * 200)::int) || (random() * 1e9)::int::bit(32)::text)::varbit AS v,
	(repeat('1', 80) || repeat('0', (random() * 40)::int))::varbit AS w,
	(random() * 3)::int::bit(2)::varbit AS few
FROM generate_series(1, 800) id;
SELECT pg_temp.check_column('t', col) FROM unnest('{b3,b32,b64,v,w,few}'::text[]) col;
SELECT pg_temp.rows_ok('t', 'few, b3 DESC, v'), pg_temp.rows_ok('t', 'w DESC, b32 NULLS FIRST, few'), pg_temp.rows_ok('t', 'few || b3, v DESC');
SELECT pg_temp.figures('SELECT * FROM t ORDER BY ' || col) -> 'Keys Longer Than Prefix' AS tails FROM unnest('{b3,b32,few,b64}'::text[]) col;

-- compressed and out of line
CREATE TEMP TABLE toast AS SELECT id, (repeat('01', 50000) || repeat('1', id % 10))::varbit AS v, repeat(md5('x'), 1000)::text::bytea::text AS other
FROM generate_series(1, 30) id;
ALTER TABLE toast ALTER v SET STORAGE EXTERNAL;
INSERT INTO toast SELECT 30 + id, v || B'0' FROM toast;
SELECT pg_temp.check_column('toast', 'v');
SELECT pg_temp.left_behind();
