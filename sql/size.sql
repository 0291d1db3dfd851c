-- Numbers of rows: none, one, few, and around the limits between sort methods and
-- between batches of rows, which start with 8 kB and double.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TEMP TABLE patterns (name text, k text);
INSERT INTO patterns VALUES
	('random', 'hashint4(id)'), ('wide', 'hashint8extended(id, 7)'), ('sorted', 'id'), ('reversed', '-id'),
	('sorted, ties', 'id / 3'), ('reversed, ties', '-(id / 3)'), ('equal', '7'), ('two values', 'hashint4(id) % 2'), ('few values', 'id * 7 % 10'),
	('inversion at the end', 'CASE id WHEN :n THEN 1 ELSE id END'), ('inversion at the start', 'CASE id WHEN 1 THEN :n ELSE id END'),
	('reversed but the last', 'CASE id WHEN :n THEN 0 ELSE -id END'), ('saw', 'id % 100'), ('pipe', 'least(id, :n - id)'),
	('NULLs', 'nullif(id % 5, 3)'), ('only NULLs', 'nullif(id, id)'), ('NULL at the end', 'nullif(id, :n)'),
	('extremes', 'CASE id % 3 WHEN 0 THEN 9223372036854775807 WHEN 1 THEN -9223372036854775808 END');

-- Rows, of a given width, in order; and the keys alone.  An aggregate's own ORDER BY
-- is PostgreSQL's sort.
CREATE FUNCTION pg_temp.check_size(n int, k text, direction text, width int DEFAULT 0) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	input text := format('(SELECT id, %s AS k, repeat(''w'', %s) AS w FROM generate_series(1, %s) id OFFSET 0) i', replace(k, ':n', n::text), width, n);
	query text := format('SELECT array_agg(id + length(w) - %s) FROM (SELECT * FROM %s ORDER BY k %s OFFSET 0) x', width, input, direction);
	keys text := format('SELECT array_agg(k) FROM (SELECT k FROM %s ORDER BY k %s OFFSET 0) x', input, direction);
	got_ids int[];
	got_keys int8[];
	want_ids int[];
	want_keys int8[];
BEGIN
	EXECUTE query INTO got_ids;
	EXECUTE keys INTO got_keys;
	EXECUTE format('SELECT array_agg(id ORDER BY k %s, id), array_agg(k ORDER BY k %s) FROM %s', direction, direction, input) INTO want_ids, want_keys;
	IF n < 2 THEN
		ASSERT pg_temp.gpusorts(query) = 1 AND pg_temp.gpusorts(keys) = 1, 'not taken over';
	END IF;
	RETURN got_ids IS NOT DISTINCT FROM want_ids AND got_keys IS NOT DISTINCT FROM want_keys;
END $$;

-- every number up to a few hundred, from which another method is used
SELECT name, count(*) AS checked, array_agg(n ORDER BY n) FILTER (WHERE NOT pg_temp.check_size(n, k, 'ASC')) AS wrong
FROM patterns, generate_series(0, 300) n WHERE name IN ('random', 'reversed, ties', 'few values') GROUP BY name ORDER BY name COLLATE "C";
SELECT name, direction, array_agg(n ORDER BY n) FILTER (WHERE NOT pg_temp.check_size(n, k, direction)) AS wrong
FROM patterns, unnest('{0,1,2,3,4,15,16,17,31,32,33,63,64,65,127,128,129,159,160,161,162,254,255,256,257,258}'::int[]) n,
	 unnest('{ASC,DESC NULLS LAST}'::text[]) direction
GROUP BY name, direction ORDER BY name COLLATE "C", direction COLLATE "C";

-- limits of batches: rows of 40 bytes with their keys, keys alone of 8 bytes, and longer rows
SELECT name, array_agg(n ORDER BY n) FILTER (WHERE NOT pg_temp.check_size(n, k, 'DESC')) AS wrong
FROM patterns, unnest('{203,204,205,613,614,615,1023,1024,1025,3071,3072,3073,3074,7167,7168,7169}'::int[]) n
WHERE name IN ('random', 'wide', 'reversed', 'NULLs', 'few values') GROUP BY name ORDER BY name COLLATE "C";
SELECT width, array_agg(n ORDER BY n) FILTER (WHERE NOT pg_temp.check_size(n, k, 'ASC', width)) AS wrong
FROM patterns, unnest('{1,2,3,7,8,9,50,100,101}'::int[]) n, unnest('{100,1000,4000,8100,8120,8140,8192,16000,33000}'::int[]) width
WHERE name = 'random' GROUP BY width ORDER BY width;

-- rows of very different widths in one sort
SELECT pg_temp.rows_ok('(SELECT id, hashint4(id) % 100 AS k, repeat(''x'', CASE id % 50 WHEN 0 THEN 50000 ELSE id % 300 END) AS w
						  FROM generate_series(1, 1000) id OFFSET 0) x', k)
FROM unnest('{k,"k DESC, id","length(w), k"}'::text[]) k;
