-- Keys that are jsonb: by type, then by the number of elements or pairs, then by
-- these; strings and the keys of objects under the default collation.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- every type, and what PostgreSQL orders unlike other software: [] is less than a scalar, a
-- scalar less than an array of it, a longer array greater than a shorter one
CREATE TEMP TABLE literals AS SELECT row_number() OVER (ORDER BY md5(j || i)) AS id, j::jsonb FROM generate_series(1, 2) i,
	unnest(ARRAY['null', 'true', 'false', '0', '-0', '0.0', '1', '1.00', '-1', '12345.6789', '1e100', '-1e100', '1e-100', '1e16000', '-1e16000',
		'123456789012345678901234567890', '123456789012345678901234567891', '""', '"a"', '"A"', '"ab"', '"ä"', '"\u0001"', '"abcdefghij"', '"null"', '"1"',
		'[]', '[[]]', '[{}]', '[null]', '[false]', '[0]', '[1]', '[1.0]', '["a"]', '["a", null]', '[[1]]', '[[1], 2]', '[1, [2]]', '[1, 2]', '[2, 1]', '[[], []]', '[[[]]]',
		'{}', '{"a": null}', '{"a": 1}', '{"a": 1.0}', '{"a": 2}', '{"b": 1}', '{"A": 1}', '{"aa": 0}', '{"": 5}', '{"a": []}', '{"a": {}}', '{"a": [1]}', '{"a": {"b": 1}}',
		'{"b": 1, "a": 2}', '{"a": 1, "bb": 2}', '{"ä": 1}', '{"a": {"b": {"c": [1, {"d": null}]}}}']) j;
SELECT count(*), count(DISTINCT j) FROM literals;
SELECT pg_temp.check_column('literals', 'j');

-- arrays and objects of up to 300 elements, whose numbers have more than one byte
CREATE TEMP TABLE many AS SELECT row_number() OVER (ORDER BY md5(n || ' ' || k)) AS id,
	jsonb_agg(CASE WHEN e = n THEN k ELSE 0 END) AS a, jsonb_object_agg('k' || e, CASE WHEN e = n THEN k ELSE 0 END) AS o
FROM unnest('{1,32,33,126,127,128,129,254,255,256,300}'::int[]) n, generate_series(1, 2) k, generate_series(1, n) e GROUP BY n, k;
SELECT pg_temp.check_column('many', col) FROM unnest('{a,o}'::text[]) col;

-- random values, nested
CREATE FUNCTION pg_temp.json(depth int) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
	CASE floor(random() * CASE WHEN depth > 0 THEN 8 ELSE 4 END)
		WHEN 0 THEN RETURN to_jsonb(pg_temp.pick('{-1,0,0.0,1,1.0,10000,1e40,-1e-40}'::numeric[]));
		WHEN 1 THEN RETURN to_jsonb(pg_temp.pick('{"",a,A,b,ab,ä,"a b",a-b,abcdefgh,😀}'::text[]));
		WHEN 2 THEN RETURN to_jsonb(random() < 0.5);
		WHEN 3 THEN RETURN 'null';
		WHEN 4, 5 THEN RETURN coalesce((SELECT jsonb_agg(pg_temp.json(depth - 1)) FROM generate_series(1, (random() * 2.9)::int) i), '[]');
		ELSE RETURN coalesce((SELECT jsonb_object_agg(coalesce(pg_temp.pick('{a,b,A,aa,""}'::text[]), 'ß'), pg_temp.json(depth - 1))
							  FROM generate_series(1, (random() * 2.9)::int) i), '{}');
	END CASE;
END $$;
CREATE DOMAIN gs_document AS jsonb;
SELECT setseed(0.65);
CREATE TEMP TABLE t AS SELECT id, id % 3 AS k, CASE WHEN id % 20 > 0 THEN pg_temp.json(3) END AS j, pg_temp.json(2)::gs_document AS d FROM generate_series(1, 500) id;
SELECT pg_temp.check_column('t', col) FROM unnest('{j,d}'::text[]) col;
SELECT pg_temp.check_column('(SELECT id, ARRAY[j, d] AS a FROM t) x', 'a');
SELECT k, pg_temp.rows_ok('t', k) FROM unnest('{"k, j","j DESC, k","d, j NULLS FIRST, k DESC","j -> 0, j -> ''a'', k"}'::text[]) k;
SELECT l, pg_temp.same(format('SELECT * FROM t ORDER BY j DESC NULLS LAST, k LIMIT %s', l), format('SELECT * FROM t ORDER BY j DESC NULLS LAST, k, id LIMIT %s', l))
FROM unnest('{1,10,100}'::int[]) l;

-- runs in files, whose keys are made again
SET work_mem = '64kB';
CREATE TEMP TABLE large AS SELECT id, CASE id % 3 WHEN 0 THEN jsonb_build_object('kind', id % 2, 'name', md5((id % 700)::text)) WHEN 1 THEN to_jsonb(id % 100)
	ELSE jsonb_build_array(id % 10, md5((id % 50)::text)) END AS j FROM generate_series(1, 5000) id;
SELECT pg_temp.rows_ok('large', 'j'), pg_temp.rows_ok('large', 'id % 2, j DESC');
RESET work_mem;

-- compressed, out of line; the same for the first 1000 bytes, so that truncated keys tie
CREATE TEMP TABLE toast AS SELECT id, jsonb_build_object('a', repeat('x', 900 + id % 3), 'b', repeat('y', 3000 + id % 5), 'c', id % 7) AS j,
	jsonb_build_object('list', (SELECT jsonb_agg(md5(i::text)) FROM generate_series(1, 300) i), 'n', id % 5) AS l
FROM generate_series(1, 60) id;
SELECT bool_and(pg_column_size(j) < 600) AS compressed, bool_and(pg_column_size(l) > 5000) AS out_of_line FROM toast;
SELECT pg_temp.check_column('toast', col) FROM unnest('{j,l}'::text[]) col;
SELECT pg_temp.rows_ok('toast', 'j DESC, l, id % 2');
SELECT pg_temp.left_behind();
DROP TABLE t, toast;
DROP DOMAIN gs_document;
