-- Keys stored as integers: the extremes of each type with NULLs, which no value
-- may represent, and with adjacent values that differ in the last bit.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SELECT setseed(0.1);
CREATE TEMP TABLE t AS SELECT id,
	pg_temp.pick('{t,f}'::bool[]) AS b,
	pg_temp.pick(ARRAY[-128, -127, -1, 0, 1, 65, 126, 127]::"char"[]) AS c,
	pg_temp.pick('{-32768,-32767,-1,0,1,32766,32767}'::int2[]) AS i2,
	pg_temp.pick('{-2147483648,-2147483647,-65536,-1,0,1,65535,2147483646,2147483647}'::int4[]) AS i4,
	pg_temp.pick('{-9223372036854775808,-9223372036854775807,-4294967296,-1,0,1,2,4294967295,
				   9223372036854775806,9223372036854775807}'::int8[]) AS i8,
	pg_temp.pick('{0,1,2147483647,2147483648,4294967294,4294967295}'::oid[]) AS o,
	pg_temp.pick('{0,1,9223372036854775807,9223372036854775808,18446744073709551615}'::xid8[]) AS x8,
	pg_temp.pick('{0/0,0/1,0/FFFFFFFF,1/0,7FFFFFFF/FFFFFFFF,80000000/0,FFFFFFFF/FFFFFFFF}'::pg_lsn[]) AS lsn,
	pg_temp.pick('{-92233720368547758.08,-92233720368547758.07,-0.01,0,0.01,92233720368547758.07}'::money[]) AS m,
	pg_temp.pick(ARRAY[1247, 1249, 1255, 1259]::oid[])::regclass AS rc
FROM generate_series(1, 200) id;

SELECT pg_temp.check_column('t', col)
FROM unnest('{b,c,i2,i4,i8,o,x8,lsn,m,rc}'::text[]) col;

-- oid, "char" and bool are unsigned
SELECT DISTINCT o FROM t ORDER BY o;
SELECT string_agg(c::int::text, ' ') FROM (SELECT DISTINCT c FROM t ORDER BY c) x;
SELECT string_agg(coalesce(b::text, '-'), ' ') FROM (SELECT DISTINCT b FROM t ORDER BY b DESC) x;

-- wide and narrow ranges of values, packed into as many bits as needed
SELECT setseed(0.2);
CREATE TEMP TABLE ranges AS SELECT id,
	(random() * 18446744073709551615 - 9223372036854775808)::numeric::int8 & -4096 | (id & 7) AS all_bits,
	9223372036854775807 - (random() * 3)::int8 AS top,
	-9223372036854775808 + (random() * 3)::int8 AS bottom,
	(random() * 1000)::int8 AS few_bits,
	(random() * 7)::int8 << 40 AS high_bits,
	((random() * 3)::int8 << 60) + (random() * 3)::int8 AS both_ends,
	42::int8 AS one,
	nullif((random() * 3)::int8, 0) AS some_null,
	NULL::int8 AS all_null
FROM generate_series(1, 1500) id;
SELECT pg_temp.check_column('ranges', col)
FROM unnest('{all_bits,top,bottom,few_bits,high_bits,both_ends,one,some_null,all_null}'::text[]) col;
