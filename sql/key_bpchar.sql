-- Keys that are char(n): trailing blanks are not significant, but stay in the value.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SELECT setseed(0.23);
CREATE TEMP TABLE t AS SELECT id,
	pg_temp.pick(ARRAY['', 'a', 'a ', 'a  ', E'a\t', E'a\x01', 'a!', 'ab', 'b', '1234567', '1234567 ', '12345678',
					   '12345678 ', '12345678 x', '123456781234567', '1234567812345678 ', 'ä', 'ä ']) COLLATE "C" AS s
FROM generate_series(1, 300) id;
-- with one declared length, and without
CREATE TEMP TABLE c AS SELECT id, s::char(20) COLLATE "C" AS c20, s::bpchar COLLATE "C" AS c, s::char(9) COLLATE "C" AS c9,
	s::char(1) COLLATE "C" AS c1, rpad(s, length(s) + id % 4)::bpchar COLLATE "C" AS padded FROM t;
SELECT pg_temp.check_column('c', col) FROM unnest('{c20,c,c9,c1,padded}'::text[]) col;
SELECT pg_temp.check_column('(SELECT id, padded COLLATE "default" AS p FROM c) x', 'p', '{USING ~<~,USING ~>~}');

-- ties in input order, each with its own blanks
CREATE TEMP TABLE blanks (id int, c bpchar COLLATE "C");
INSERT INTO blanks VALUES (1, 'a  '), (2, 'a'), (3, E'a\t'), (4, 'a    '), (5, ''), (6, '  '), (7, E'a \x01'), (8, 'a ');
SELECT id, octet_length(c) FROM blanks ORDER BY c;
SELECT id, octet_length(c) FROM blanks ORDER BY c DESC;
SELECT octet_length(c) FROM (SELECT c FROM blanks ORDER BY c OFFSET 0) x;

-- a cast to text removes the blanks; in bytea they are significant
SELECT pg_temp.rows_ok('blanks', 'c::text COLLATE "C" DESC'),
	   pg_temp.rows_ok('c', 'padded, c20 DESC, c1'),
	   pg_temp.rows_ok('c', 'convert_to(rpad(padded, 30), ''UTF8'')');

-- leading and trailing blanks, around the eight-byte prefix
CREATE TEMP TABLE inner_blanks AS SELECT id,
	(repeat(' ', id % 30) || CASE id % 3 WHEN 0 THEN 'x' ELSE '' END || repeat(' ', id % 5))::bpchar COLLATE "C" AS c
FROM generate_series(1, 200) id;
SELECT pg_temp.check_column('inner_blanks', 'c');
