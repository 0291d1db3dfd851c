-- Keys of 100 kB of each type that can be that long, which differ at the start, at
-- the end, or in length; many rows whose keys are equal, or nearly so.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- Rows in both orders, and the keys alone; the keys are few, each several times.
CREATE FUNCTION pg_temp.check_long(type text, value text) RETURNS TABLE (rows_asc bool, rows_desc bool, keys bool, long bool) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TEMP TABLE long_keys AS SELECT id, CASE WHEN id %% 11 > 0 THEN %s END AS k'
				   ' FROM (SELECT id, (id * 7 %% 5)::text AS d FROM generate_series(1, 13) id OFFSET 0) x', value);
	rows_asc := pg_temp.rows_ok('long_keys', 'k');
	rows_desc := pg_temp.rows_ok('long_keys', 'k IS NULL, id % 2 DESC, k DESC');
	keys := pg_temp.keys_ok('long_keys', 'k NULLS FIRST', 'k');
	EXECUTE 'SELECT min(octet_length(k::text)) > 10000 FROM long_keys' INTO long;
	DROP TABLE long_keys;
	RETURN NEXT;
END $$;
CREATE TEMP TABLE long_values (n serial, type text, what text, value text);
INSERT INTO long_values (type, what, value) VALUES
	('text', 'end', $$(repeat('x', 100000) || d) COLLATE "C"$$),
	('text', 'beginning', $$(d || repeat('x', 100000)) COLLATE "C"$$),
	('text', 'middle', $$(repeat('x', 50000) || d || repeat('y', 50000)) COLLATE "C"$$),
	('text', 'length', $$repeat('x', 100000 + d::int) COLLATE "C"$$),
	('char(n)', 'blanks', $$(repeat('x', 100000) || repeat(' ', d::int))::bpchar COLLATE "C"$$),
	('bytea', 'end', $$convert_to(repeat('x', 100000) || d, 'UTF8')$$),
	('bytea', 'zeros', $$decode(repeat('00', 100000 + d::int), 'hex')$$),
	('varbit', 'end', $$(repeat('01', 400000) || lpad(d::int::bit(3)::text, 3, '0'))::varbit$$),
	('varbit', 'length', $$repeat('0', 800000 + d::int)::varbit$$),
	('numeric', 'digits', $$(repeat('9', 100000) || d)::numeric$$),
	('numeric', 'fraction', $$('-0.' || repeat('3', 16000) || d)::numeric$$),
	('int[]', 'end', $$array_fill(7, ARRAY[25000]) || d::int$$),
	('int[]', 'NULL at the end', $$array_fill(7, ARRAY[25000]) || nullif(d::int, 2)$$),
	('int[]', 'length', $$array_fill(7, ARRAY[25000 + d::int])$$),
	('text[]', 'end', $$ARRAY[repeat('x', 100000), d] COLLATE "C"$$),
	('text[]', 'first of two', $$ARRAY[repeat('x', 100000) || d, 'y'] COLLATE "C"$$),
	('numrange', 'lower bound', $$numrange((repeat('9', 50000) || d)::numeric, NULL)$$);
SELECT type, what, c.* FROM long_values, pg_temp.check_long(type, value) c ORDER BY n;
-- two of them in one key
SELECT pg_temp.rows_ok('(SELECT id, (repeat(''x'', 100000) || id % 3) COLLATE "C" AS s, array_fill(7, ARRAY[25000]) || id % 4 AS a FROM generate_series(1, 20) id OFFSET 0) x', k)
FROM unnest('{"s, a DESC, id","a, s DESC, id","s, s DESC, a, id DESC"}'::text[]) k;

-- thirty thousand rows: with a common prefix of 200 bytes; with equal keys; with
-- keys of which only one differs
CREATE TEMP TABLE many AS SELECT id, (repeat('the same for all ', 12) || hashint4(id) % 50000) COLLATE "C" AS differ, repeat('all the same', 20) COLLATE "C" AS same,
	repeat('all the same', 20 - (id = 17777)::int) COLLATE "C" AS but_one, ARRAY[1, 2, id % 100] AS a, (id % 1000)::numeric / 8 AS n
FROM generate_series(1, 30000) id;
SELECT k, pg_temp.same('SELECT id FROM many ORDER BY ' || k, 'SELECT id FROM many ORDER BY ' || k || ', id')
FROM unnest('{differ,differ DESC,same,but_one DESC,"same, differ","but_one, a DESC, n","n DESC, same"}'::text[]) k;
SELECT pg_temp.left_behind();
