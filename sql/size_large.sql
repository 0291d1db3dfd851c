-- Ten thousand to some hundred thousand rows, in many orders and of several types.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE FUNCTION pg_temp.check_large(n int, k text, direction text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	input text := format('(SELECT id, %s AS k FROM generate_series(1, %s) id OFFSET 0) i', replace(k, ':n', n::text), n);
	query text := format('SELECT array_agg(id) FROM (SELECT * FROM %s ORDER BY k %s OFFSET 0) x', input, direction);
	got int[];
	want int[];
BEGIN
	EXECUTE query INTO got;
	EXECUTE format('SELECT array_agg(id ORDER BY k %s, id) FROM %s', direction, input) INTO want;
	ASSERT cardinality(got) = n;
	RETURN pg_temp.gpusorts(query) = 1 AND got = want;
END $$;
CREATE TEMP TABLE keys (name text, k text);
INSERT INTO keys VALUES
	('int4', 'hashint4(id)'), ('int8', 'hashint8extended(id, 7)'), ('few values', 'id * 7 % 366'), ('reversed, ties', '-(id / 3)'),
	('inversion at the end', 'CASE id WHEN :n THEN 1 ELSE id END'), ('NULLs', 'nullif(hashint4(id) % 4, 1)'), ('equal', '0::int2'),
	('float8', 'CASE id % 1000 WHEN 0 THEN ''NaN'' WHEN 1 THEN ''-0'' WHEN 2 THEN 0 ELSE ln(id) - 10 END'),
	('uuid', 'md5(id::text)::uuid'), ('text', 'md5(id::text) COLLATE "C"'), ('few texts', '(''a common prefix '' || id * 7 % 100) COLLATE "C"'),
	('interval', 'make_interval(days => hashint4(id) % 100, hours => id % 24)');
SELECT name, pg_temp.check_large(20000, k, 'ASC') AS asc, pg_temp.check_large(20011, k, 'DESC') AS desc FROM keys;
SELECT name, pg_temp.check_large(200000, k, 'ASC') AS asc FROM keys WHERE name IN ('int8', 'few values', 'reversed, ties', 'float8', 'text');

-- several keys, as rows of a table and alone
SELECT setseed(0.51);
CREATE TEMP TABLE t AS SELECT id, '2020-01-01'::date + (random() * 2000)::int AS d, (random() * 1e6)::int AS i, md5((id % 5000)::text) COLLATE "C" AS s,
	nullif((random() * 10)::int, 5) AS n, repeat('x', (random() * 200)::int) AS filler FROM generate_series(1, 50000) id;
SELECT k, pg_temp.same('SELECT id FROM t ORDER BY ' || k, 'SELECT id FROM t ORDER BY ' || k || ', id')
FROM unnest(ARRAY['d, i DESC, s', 'n, d DESC', 's, n NULLS FIRST', 'n DESC, s DESC, d', 'filler COLLATE "C"']) k;
SELECT pg_temp.rows_ok('t', 'd, n'), pg_temp.keys_ok('t', 'n', 'n'), pg_temp.keys_ok('t', 'd DESC', 'd'), pg_temp.keys_ok('t', 's', 's');
SELECT pg_temp.left_behind();

-- rows too long for a device, in a statement that cannot be restarted
CREATE TEMP TABLE long_rows (place serial, k int, len int);
INSERT INTO long_rows (k, len)
	SELECT k, length(w) FROM (
		SELECT -id AS k, repeat('w', CASE WHEN id = 20 THEN 300000 WHEN id = 40 THEN 262080 + id WHEN id % 7 = 0 THEN 20000 ELSE id END) AS w
		FROM generate_series(1, 300) id ORDER BY k OFFSET 0) x;
SELECT bool_and(k = place - 301) AS in_order, count(*), sum(len) FROM long_rows;
