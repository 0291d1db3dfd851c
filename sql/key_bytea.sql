-- Keys that are bytea: zero bytes are significant, and a value is less than the same
-- value with more of them.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TEMP TABLE bytes AS SELECT b FROM unnest(ARRAY[
	'', '\x00', '\x0000', '\x00000000000000', '\x0000000000000000', '\x000000000000000000', '\x0001', '\x01', '\x0100',
	'\x61', '\x6100', '\x610000', '\x610001', '\x6101', '\x61000000000000', '\x6100000000000000', '\x610000000000000000',
	'\x610000000000000001', '\x61000000000000000000', '\x6100000000000000ff', '\x61000000000000ff',
	'\x31323334353637', '\x3132333435363700', '\x313233343536370000', '\x3132333435363738', '\x313233343536373800',
	'\x31323334353637380000000000000000', '\x3132333435363738000000000000000000', '\x3132333435363738000000000000000001',
	'\x31323334353637380000000000000001', '\x7f', '\x80', '\xff', '\xff00', '\xffffffffffffffff', '\xffffffffffffffff00',
	'\xffffffffffffffffff']::bytea[]) b;
SELECT setseed(0.24);
CREATE TEMP TABLE t AS SELECT id, pg_temp.pick(b) AS b, pg_temp.pick(b) || '\x6161'::bytea AS c
FROM generate_series(1, 600) id, (SELECT array_agg(b) AS b FROM bytes) x;
SELECT pg_temp.check_column('t', col) FROM unnest('{b,c}'::text[]) col;

-- zero bytes only: the length decides, for DESC too
CREATE TEMP TABLE zeros AS SELECT id, decode(repeat('00', (id * 37) % 83), 'hex') AS z,
	decode('61' || repeat('00', (id * 37) % 3), 'hex') AS a,
	decode(repeat('61', 20) || repeat('00', (id * 37) % 83) || CASE id % 4 WHEN 0 THEN '01' ELSE '' END, 'hex') AS tail,
	decode(repeat('00', (id * 37) % 7), 'hex') AS few
FROM generate_series(1, 300) id;
SELECT pg_temp.check_column('zeros', col) FROM unnest('{z,a,tail,few}'::text[]) col;
SELECT b FROM bytes WHERE b < '\x61ff' AND b >= '\x61' ORDER BY b;
SELECT b FROM bytes WHERE b < '\x61ff' AND b >= '\x61' ORDER BY b DESC;

-- following columns decide only between equal values
SELECT pg_temp.rows_ok('t', 'b, c DESC'), pg_temp.rows_ok('t', 'b DESC, c'),
	   pg_temp.rows_ok('zeros', 'z, few DESC, a'), pg_temp.rows_ok('zeros', 'few DESC NULLS LAST, tail, z DESC');

-- random bytes, of two values and of all
SELECT setseed(0.25);
CREATE TEMP TABLE random_bytes AS SELECT id,
	decode((SELECT coalesce(string_agg(lpad(to_hex((random() * CASE id % 2 WHEN 0 THEN least(g, 1) ELSE 255 END)::int), 2, '0'), ''), '')
			FROM generate_series(1, (random() * 40 + id % 2)::int) g), 'hex') AS b
FROM generate_series(1, 1500) id;
SELECT count(DISTINCT b) > 500 AS many FROM random_bytes;
SELECT pg_temp.check_column('random_bytes', 'b');
