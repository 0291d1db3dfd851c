-- Keys that are compressed or stored out of line.  The row keeps the toast pointer;
-- the bytes of the key are fetched once and kept next to it.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE FUNCTION pg_temp.noise(seed int, len int) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(md5(seed || ' ' || i), '') FROM generate_series(1, len / 32) i
$$;
-- a, e, f are compressed, b is stored out of line, c both, d neither;
-- they differ only in their last bytes, and some are NULL
CREATE TABLE gs_toast (id int, a text COLLATE "C", b text COLLATE "C", c text COLLATE "C", d text COLLATE "C",
					   e bytea, f bpchar COLLATE "C");
ALTER TABLE gs_toast ALTER b SET STORAGE EXTERNAL, ALTER d SET STORAGE PLAIN, ALTER a SET STORAGE MAIN;
INSERT INTO gs_toast SELECT id,
	repeat('a', 3000) || (id * 7 % 10),
	pg_temp.noise(1, 2400) || (id * 3 % 10),
	pg_temp.noise(2, 3200) || repeat('c', 5000) || (id * 11 % 13),
	repeat('d', 100) || id % 4,
	decode(repeat('00', 3000 + id % 3), 'hex') || convert_to(CASE id % 2 WHEN 0 THEN '' ELSE 'x' END, 'UTF8'),
	repeat('f', 3000 + id % 3) || repeat(' ', id % 7)
FROM generate_series(1, 40) id;
INSERT INTO gs_toast VALUES (41), (42);
INSERT INTO gs_toast VALUES (43, '', '', '', '', '', ''), (44, 'b', 'b', 'b', 'b', 'b', 'b');
-- the storage is as described
SELECT bool_and(pg_column_size(a) < 1000) AS a_compressed,
	   bool_and(pg_column_size(b) >= octet_length(b)) AS b_not_compressed,
	   bool_and(pg_column_size(c) BETWEEN 3000 AND 6000) AS c_compressed,
	   bool_or(pg_relation_size(reltoastrelid) > 100000) AS out_of_line
FROM gs_toast, pg_class WHERE oid = 'gs_toast'::regclass AND id <= 40;
SELECT pg_temp.check_column('gs_toast', col) FROM unnest('{a,b,c,d,e,f}'::text[]) col;

-- several in one row; with other columns; not in the output; in a computed row
SELECT pg_temp.rows_ok('gs_toast', 'a, b DESC, c'), pg_temp.rows_ok('gs_toast', 'e DESC, f, c NULLS FIRST, d'),
	   pg_temp.rows_ok('gs_toast', 'length(a), b, id % 3 DESC, c'),
	   pg_temp.same('SELECT id FROM gs_toast ORDER BY c, b', 'SELECT id FROM gs_toast ORDER BY c, b, id'),
	   pg_temp.rows_ok('(SELECT id, c, b || a AS ba FROM gs_toast OFFSET 0) x', 'ba DESC, c'),
	   pg_temp.rows_ok('(SELECT x.id, x.a, y.c FROM gs_toast x JOIN gs_toast y USING (id) OFFSET 0) z', 'a DESC, c');

-- rows as wide as 100 kB and 1 MB, sorted by all of them and by something else
SELECT pg_temp.rows_ok(format('(SELECT id, (repeat(chr(97 + id %% 5), %s) || id %% 3) COLLATE "C" AS wide FROM generate_series(1, 10) id OFFSET 0) x', width),
					   'wide ' || direction)
FROM unnest('{100000,1000000}'::int[]) width, unnest('{ASC,DESC}'::text[]) direction;
SELECT pg_temp.rows_ok('(SELECT id, id % 3 AS k, repeat(''w'', 1000000 + id) AS wide FROM generate_series(1, 10) id OFFSET 0) x', 'k DESC');
SELECT pg_temp.left_behind();
DROP TABLE gs_toast;
