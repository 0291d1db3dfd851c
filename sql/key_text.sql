-- Keys that are text under a collation that compares bytes.  The first eight bytes
-- are sorted first, the rest in steps of eight: lengths around these limits, values
-- that are prefixes of others, the lowest and the highest bytes.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TEMP TABLE words AS SELECT w FROM unnest(ARRAY[
	'', ' ', 'a', E'a\x01', 'a ', 'aa', 'A', 'b', 'ä', 'é', '日本', E'\x01', E'\x7f', '𐀀', '~',
	'1234567', '12345678', '123456789', E'1234567\x01', E'12345678\x01', '1234567ä',
	'123456781234567', '1234567812345678', '12345678123456789', E'1234567812345678\x01',
	'12345678123456781234567', '123456781234567812345678', '1234567812345678123456789',
	'12345678123456781234567 ', 'zzzzzzzz', 'zzzzzzzzz', 'zzzzzzzzzzzzzzzz']) w;
SELECT setseed(0.21);
CREATE TEMP TABLE t AS SELECT id, pg_temp.pick(w) COLLATE "C" AS s, pg_temp.pick(w)::varchar COLLATE "POSIX" AS v,
	pg_temp.pick(w)::varchar(9) COLLATE "C" AS v9, pg_temp.pick(w)::name COLLATE "C" AS n
FROM generate_series(1, 500) id, (SELECT array_agg(w) AS w FROM words) x;
SELECT pg_temp.check_column('t', col) FROM unnest('{s,v,v9,n}'::text[]) col;

-- values of up to seven, exactly eight, at most eight bytes
CREATE TEMP TABLE short AS SELECT id, substr(s, 1, 7) COLLATE "C" AS s7, rpad(s, 8, '.') COLLATE "C" AS p8,
	substr(s, 1, 8) COLLATE "C" AS s8, substr(s, 1, 9) COLLATE "C" AS s9
FROM t WHERE octet_length(s) = length(s) OR s IS NULL;
SELECT pg_temp.check_column('short', col) FROM unnest('{s7,p8,s8,s9}'::text[]) col;

-- all the same; all the same and long; all NULL; one that differs
CREATE TEMP TABLE same AS SELECT id, 'x'::text COLLATE "C" AS one, repeat('x', 100) COLLATE "C" AS long,
	NULL::text COLLATE "C" AS none,
	(repeat('x', 100) || CASE id WHEN 77 THEN '' ELSE 'y' END) COLLATE "C" AS shorter,
	overlay(repeat('x', 100) placing CASE id WHEN 77 THEN 'w' ELSE 'x' END from 90) COLLATE "C" AS other
FROM generate_series(1, 200) id;
SELECT pg_temp.check_column('same', col) FROM unnest('{one,long,none,shorter,other}'::text[]) col;

-- long common prefixes, few distinct values, differences at any position after the prefix
SELECT setseed(0.22);
CREATE TEMP TABLE urls AS SELECT id,
	(repeat('http://www.example.org/', 9) || (random() * 1000)::int) COLLATE "C" AS s,
	(repeat('p', (random() * 40)::int) || (random() * 9)::int) COLLATE "C" AS p,
	repeat('p', (random() * 300)::int) COLLATE "C" AS q,
	(repeat('a', 200) || (id % 3) || repeat('b', 200) || (id % 7)) COLLATE "C" AS two_places,
	md5((id % 90)::text) COLLATE "C" AS hex
FROM generate_series(1, 1000) id;
SELECT pg_temp.check_column('urls', col) FROM unnest('{s,p,q,two_places,hex}'::text[]) col;

-- random characters of few or many kinds, of random length
CREATE TEMP TABLE random_text AS SELECT id,
	(SELECT coalesce(string_agg(chr(1 + (random() * (CASE id % 3 WHEN 0 THEN 1 WHEN 1 THEN 126 ELSE g + 1000 END))::int), ''), '')
	 FROM generate_series(1, (random() * 30 + id % 2)::int) g) COLLATE "C" AS s
FROM generate_series(1, 1500) id;
SELECT count(DISTINCT s) > 500 AS many FROM random_text;
SELECT pg_temp.check_column('random_text', 's');

-- pattern operators compare bytes under any collation
SELECT pg_temp.check_column('(SELECT id, s COLLATE "default" AS s, v COLLATE "default" AS v FROM t) x', col, '{USING ~<~,USING ~>~}')
FROM unnest('{s,v}'::text[]) col;

-- expressions, and columns of computed rows
SELECT pg_temp.rows_ok('(SELECT id, s || v9 AS sv, upper(s) AS u, s FROM t OFFSET 0) x', 'sv, u DESC'),
	   pg_temp.keys_ok('(SELECT id, repeat(s, 3) AS r FROM t OFFSET 0) x', 'r DESC', 'r'),
	   pg_temp.rows_ok('(SELECT a.id * 1000 + b.id AS id, a.s, b.n FROM t a, t b WHERE a.id <= 40 AND b.id <= 40 OFFSET 0) x', 's, n DESC');
SELECT string_agg(w, ' ') FROM (SELECT w FROM words WHERE w ~ '^12345678[0-9]*$' ORDER BY w COLLATE "C" DESC) x;
