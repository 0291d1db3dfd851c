-- The rows themselves: whatever their columns and tuple slots, they are returned
-- unchanged.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- columns of every alignment and storage, with short and long headers
CREATE TYPE gs_point AS (x int, y text);
CREATE TABLE gs_rows AS SELECT id, (id * 37) % 20 AS k,
	id % 2 = 0 AS b1, (id % 100)::"char" AS c1, id % 3 = 0 AS b2, id::int8 AS i8, (id % 50)::int2 AS i2, ('a name ' || id % 50)::name AS n, id::float4 AS f4,
	repeat('x', id % 5) AS t1, repeat('y', 125 + id % 4) AS t2, repeat('z', 5000 + id) AS t3, (id || '.' || id)::numeric AS num, id * '1 day 1 us'::interval AS iv,
	ARRAY[id, NULL, id + 1] AS a, ARRAY['a', repeat('b', id)] AS ta, jsonb_build_object('id', id, 'x', repeat('j', id)) AS j, ROW(id, 'p' || id)::gs_point AS p,
	md5(id::text)::uuid AS u, ('10.0.0.' || id)::inet AS ip, ('0/' || to_hex(id))::pg_lsn AS lsn, (id % 128)::bit(7) AS bits, point(id, id) AS pt,
	int4range(id, id + 5) AS r, decode(repeat('00', id), 'hex') AS y, (id::text)::char(10) AS bp, '12:00+00'::timetz + id * '1 s'::interval AS tz, 'some text ' || id % 30 AS s
FROM generate_series(1, 60) id;
-- the same with NULLs, from one to all but the first
SELECT format('INSERT INTO gs_rows SELECT id + 60, k, %s FROM gs_rows',
			  string_agg(format('CASE WHEN (id * %s) %% 7 > id %% 7 OR id = 60 THEN %I END', attnum, attname), ', ' ORDER BY attnum))
FROM pg_attribute WHERE attrelid = 'gs_rows'::regclass AND attnum > 2 \gset insert_
\set ECHO none
:insert_format;
-- in the order of ids, which INSERT does not ensure
ALTER TABLE gs_rows RENAME TO gs_inserted;
CREATE TABLE gs_rows AS SELECT * FROM gs_inserted ORDER BY id;
DROP TABLE gs_inserted;
\set ECHO all
SELECT count(*), count(b1) BETWEEN 61 AND 119 AS some FROM gs_rows;
ANALYZE gs_rows;

-- from a table; from a projection; from other nodes
SELECT pg_temp.rows_ok(source, k)
FROM unnest(ARRAY['gs_rows', '(SELECT *, id + 1 AS one_more FROM gs_rows OFFSET 0) x', '(SELECT DISTINCT ON (id) * FROM gs_rows ORDER BY id) x',
				  '(SELECT x.* FROM gs_rows x JOIN gs_rows y USING (id) OFFSET 0) x', '(SELECT * FROM gs_rows UNION ALL SELECT * FROM gs_rows WHERE false) x',
				  '(SELECT * FROM (SELECT * FROM gs_rows ORDER BY id DESC OFFSET 0) y ORDER BY id) x', '(SELECT * FROM gs_rows TABLESAMPLE SYSTEM (100)) x',
				  '(WITH c AS MATERIALIZED (SELECT * FROM gs_rows) SELECT * FROM c OFFSET 0) x',
				  -- all values are short: from the table, and computed, which have long headers
				  '(SELECT id, k, b1, c1, b2, i8, i2, n, f4, t1, num, iv, a, p, u, ip, lsn, bits, pt, r, y, bp, tz, s, id + 1 AS one_more FROM gs_rows) x',
				  '(SELECT id, k, b1, lower(t1) || id AS t4, n, num * 2 AS num, i8, c1, substr(t2, 1, id % 126) AS t5, u, t1 || repeat(''e'', 126) AS t6, tz, upper(s) AS s, a || 7 AS a FROM gs_rows) x',
				  -- and all are of fixed width
				  '(SELECT id + 0 AS id, k, i8, b1, u, c1, n, tz, iv, lsn, s::name AS s FROM gs_rows) x']) source,
	 unnest(ARRAY['k', 'i8 NULLS FIRST, k', 'tz DESC, k, u', 'n COLLATE "C", b1', 's COLLATE "C" DESC, k']) k;
SELECT pg_temp.same('SELECT k, x FROM (SELECT k, id, gs_rows AS x FROM gs_rows) y ORDER BY k',
					'SELECT k, x FROM (SELECT k, id, gs_rows AS x FROM gs_rows) y ORDER BY k, id'),
	   pg_temp.same('SELECT (x).* FROM (SELECT gs_rows AS x FROM gs_rows OFFSET 0) y ORDER BY (x).k',
					'SELECT (x).* FROM (SELECT gs_rows AS x FROM gs_rows OFFSET 0) y ORDER BY (x).k, (x).id'),
	   pg_temp.same('SELECT tableoid, ctid, xmin, * FROM gs_rows ORDER BY k', 'SELECT tableoid, ctid, xmin, * FROM gs_rows ORDER BY k, id');

-- values that are not in a table: constants, functions, expanded arrays and records
CREATE FUNCTION pg_temp.array_of(n int) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
	a int[];
BEGIN
	FOR i IN 1 .. n LOOP
		a[i] := i;
	END LOOP;
	RETURN a;
END $$;
CREATE FUNCTION pg_temp.record_of(n int) RETURNS gs_point LANGUAGE plpgsql AS $$
DECLARE
	p gs_point;
BEGIN
	p.x := n;
	p.y := repeat('r', n);
	RETURN p;
END $$;
SELECT pg_temp.rows_ok(source, 'k') FROM unnest(ARRAY[
	'(SELECT id, id % 5 AS k, pg_temp.array_of(id) AS a, pg_temp.record_of(id) AS p FROM generate_series(1, 50) id OFFSET 0) x',
	'(SELECT id, id % 5 AS k, pg_temp.array_of(id)::text COLLATE "C" AS s FROM generate_series(1, 50) id OFFSET 0) x',
	'(VALUES (1, 2, ''b''), (2, 1, NULL), (3, 2, ''a''), (4, NULL, ''c'')) v(id, k, s)',
	'json_to_recordset(''[{"id":1,"k":3},{"id":2},{"id":3,"k":1,"s":"x"}]'') AS x(id int, k int, s text)',
	'(SELECT ordinality AS id, k, s FROM unnest(ARRAY[3, 1, 2, 1], ARRAY[''a'', NULL, ''c'', ''d'']) WITH ORDINALITY u(k, s)) x']) source;
SELECT pg_temp.rows_ok('(SELECT id, id % 5 AS k, (pg_temp.array_of(id)::text || repeat(''long'', 20)) COLLATE "C" AS s
						  FROM generate_series(1, 50) id OFFSET 0) x', 's DESC, k');

-- the key alone; a column that is both key and output; the same column twice
SELECT pg_temp.same('SELECT FROM gs_rows ORDER BY k', 'SELECT FROM gs_rows ORDER BY k'),
	   pg_temp.same('SELECT k, k FROM gs_rows ORDER BY k', 'SELECT k, k FROM gs_rows ORDER BY k'),
	   pg_temp.same('SELECT 1 AS one FROM gs_rows ORDER BY k DESC', 'SELECT 1 AS one FROM gs_rows ORDER BY k DESC'),
	   pg_temp.same('SELECT i8 FROM gs_rows ORDER BY i8 DESC, i8', 'SELECT i8 FROM gs_rows ORDER BY i8 DESC, i8');

-- as many columns as a table can have, most of them NULL
SELECT format('CREATE TABLE gs_wide (id int, %s)', string_agg(format('c%s %s', i, (ARRAY['int', 'bool', 'float8', 'text COLLATE "C"'])[1 + i % 4]), ', '))
FROM generate_series(1, 1500) i \gset create_
\set ECHO none
:create_format;
\set ECHO all
INSERT INTO gs_wide (id, c1, c1499, c1500, c3) SELECT id, id % 2 = 0, 'word ' || id % 3, id % 7, 'a longer word ' || id % 5 FROM generate_series(1, 50) id;
SELECT pg_temp.rows_ok('gs_wide', k) FROM unnest('{c1500,"c1499 DESC, c3","c1, c1500 DESC","c700, c1499"}'::text[]) k;
SELECT pg_temp.left_behind();
DROP TABLE gs_rows, gs_wide;
DROP FUNCTION pg_temp.record_of(int);
DROP TYPE gs_point;
