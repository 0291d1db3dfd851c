-- GIN indexes: which ones gpusort builds, and searches in them, against scans.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include
SET gpusort.debug_plan = on;
CREATE TABLE gi WITH (autovacuum_enabled = off) AS SELECT id,
	CASE WHEN id % 7 = 0 THEN NULL WHEN id % 11 = 0 THEN '{}' ELSE ARRAY[id % 100, id % 13, NULL, id, id % 13]::int[] END AS i,
	CASE WHEN id % 9 <> 0 THEN ARRAY['w' || id % 100, 'é' || id % 17, 'Z' || id % 10, 'a b', ''] END COLLATE "C" AS t,
	ARRAY[(id % 50)::numeric, (id % 50)::numeric(10, 2), 'NaN'] AS n, ARRAY['-0', '0', 'NaN', (id % 9)::float8 / 7] AS f,
	CASE WHEN id % 5 <> 0 THEN to_tsvector('simple', 'lorem ' || id % 100 || ' ipsum ' || id % 17 || ' ' || id) END AS v,
	jsonb_build_object('k' || id % 10, id % 100, 'n', NULL, 'a', jsonb_build_array(id % 33, 'q' || id % 44, 1.50), 'o', '{}'::jsonb) AS j
	FROM generate_series(1, 6000) id;
DELETE FROM gi WHERE id % 50 = 1;
ANALYZE gi;
-- the numbers of rows by an index and by a scan
CREATE FUNCTION pg_temp.found(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	by_index int;
	by_scan int;
	plan json;
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = on;
	EXECUTE 'EXPLAIN (FORMAT JSON) SELECT * FROM gi WHERE ' || condition INTO plan;
	ASSERT plan::text ~ 'Bitmap Index Scan', condition;
	EXECUTE 'SELECT count(*) FROM gi WHERE ' || condition INTO by_index;
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_bitmapscan = off;
	EXECUTE 'SELECT count(*) FROM gi WHERE ' || condition INTO by_scan;
	RETURN CASE WHEN by_index = by_scan THEN by_scan::text ELSE format('%s by index, %s by scan', by_index, by_scan) END;
END $$;
\set ECHO all

-- who builds which index, and why
SET max_parallel_maintenance_workers = 0;
SET gpusort.force = off;
SET gpusort.min_rows = 100000;
CREATE INDEX gi_few ON gi USING gin (i);
SET gpusort.min_rows = 100;
SET gpusort.enable_gin = off;
CREATE INDEX gi_off ON gi USING gin (i);
RESET gpusort.enable_gin;
SET gpusort.enable_create_index = off;
CREATE INDEX gi_i ON gi USING gin (i);
RESET gpusort.enable_create_index;
CREATE TEMP TABLE gi_temp AS SELECT i FROM gi;
CREATE INDEX ON gi_temp USING gin (i);
CREATE FUNCTION compare_reversed(int, int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS gi_reversed FOR TYPE int[] USING gin AS OPERATOR 2 @>(anyarray, anyarray),
	FUNCTION 1 compare_reversed(int, int), FUNCTION 2 ginarrayextract(anyarray, internal, internal),
	FUNCTION 3 ginqueryarrayextract(anyarray, internal, smallint, internal, internal, internal, internal),
	FUNCTION 4 ginarrayconsistent(internal, smallint, anyarray, integer, internal, internal, internal, internal), STORAGE int;
CREATE INDEX gi_unknown ON gi USING gin (i gi_reversed);
DROP INDEX gi_few, gi_off, gi_unknown;

-- searches
CREATE INDEX gi_t ON gi USING gin (t);
CREATE INDEX gi_n ON gi USING gin (n);
CREATE INDEX gi_f ON gi USING gin (f);
CREATE INDEX gi_v ON gi USING gin (v) WITH (fastupdate = off);
CREATE INDEX gi_j ON gi USING gin (j);
CREATE INDEX gi_p ON gi USING gin (j jsonb_path_ops);
SELECT c, pg_temp.found(c) FROM unnest(ARRAY['i @> ''{17}''', 'i && ''{17, 5000}''', 'i <@ ''{1, 2, 3, 101}''', 'i @> ''{}''', 'i = ''{}''',
	't @> ''{w17, Z7}''', 't && ARRAY['''']', 't @> ARRAY[''é3'']', 'n @> ''{7.000}''', 'n && ''{NaN}''', 'f @> ''{0}''', 'f @> ''{NaN}''',
	'v @@ ''lorem & 17''', 'v @@ ''1:*''', 'v @@ ''lorem & !ipsum''', 'v @@ ''nobody''',
	'j ? ''k3''', 'j ?| ''{k3, k4}''', 'j ?& ''{k3, a}''', 'j @> ''{"a": [5]}''', 'j @> ''{"a": [1.5]}''', 'j @? ''$.a[*] ? (@ == "q7")''', 'j @@ ''$.k3 == 3''']) c;

-- several columns, expressions and predicates
DROP INDEX gi_i, gi_t, gi_n, gi_f, gi_v, gi_j, gi_p;
CREATE INDEX gi_all ON gi USING gin (i, t, v, j jsonb_path_ops);
CREATE INDEX gi_some ON gi USING gin ((ARRAY[id % 10, id % 3])) WHERE id > 3000;
SELECT c, pg_temp.found(c) FROM unnest(ARRAY['i @> ''{17}'' AND v @@ ''lorem''', 't @> ''{w17}'' AND j @> ''{"k7": 17}''', 'v @@ ''ipsum & 3''',
	'j @> ''{"a": ["q7"]}''', 'ARRAY[id % 10, id % 3] @> ''{9, 2}'' AND id > 3000']) c;

-- later changes, and other statements
INSERT INTO gi SELECT id + 10000, i || 10000, t, n, f, v, j FROM gi WHERE id % 3 = 0;
UPDATE gi SET i = '{20000}' WHERE id % 10 = 0;
DELETE FROM gi WHERE id % 4 = 0;
VACUUM gi;
SELECT c, pg_temp.found(c) FROM unnest(ARRAY['i @> ''{17}''', 'i @> ''{10000}''', 'i @> ''{20000}'' AND t @> ''{w30}''']) c;
REINDEX INDEX gi_all;
REINDEX INDEX CONCURRENTLY gi_some;
VACUUM FULL gi;
CREATE INDEX CONCURRENTLY gi_late ON gi USING gin (n);
SELECT c, pg_temp.found(c) FROM unnest(ARRAY['i @> ''{17}''', 'i @> ''{10000}''', 'n @> ''{7}''', 'ARRAY[id % 10, id % 3] @> ''{9, 2}'' AND id > 3000']) c;

-- a key that is too long
DROP INDEX gi_all, gi_late;
INSERT INTO gi (t) SELECT ARRAY[string_agg(md5(i::text), '')] FROM generate_series(1, 90) i;
CREATE INDEX gi_never ON gi USING gin (t);
DROP TABLE gi;
DROP OPERATOR CLASS gi_reversed USING gin CASCADE;
DROP FUNCTION compare_reversed(int, int);
