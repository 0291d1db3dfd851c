-- Index builds: which ones gpusort sorts, and their results, against PostgreSQL's own.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SET gpusort.debug_plan = on;
CREATE TABLE ix WITH (autovacuum_enabled = off) AS SELECT id, (id * 7919) % 1009 AS k, nullif(id % 10, 0) AS n, md5(id::text) COLLATE "C" AS s,
	(id % 100)::float8 AS f, 'a rather long common prefix ' || id % 50 AS p, (id % 7)::text::tsquery AS j FROM generate_series(1, 5000) id;
ANALYZE ix;

-- who builds which index, and why
SET gpusort.force = off;
SET gpusort.min_rows = 100000;
CREATE INDEX ix_few ON ix (k);
SET gpusort.min_rows = 100;
SET gpusort.engine = cpu;
SET max_parallel_maintenance_workers = 0;
CREATE INDEX ix_k ON ix (k);
CREATE INDEX ix_in_order ON ix (id);
CREATE INDEX ix_equal ON ix ((id * 0));
CREATE INDEX ix_descending ON ix (id DESC);
CREATE INDEX ix_query ON ix (j);
SET maintenance_work_mem = '1MB';
INSERT INTO ix SELECT i, i, i, i FROM generate_series(1, 20000) i;
ANALYZE ix;
CREATE INDEX ix_numeric ON ix ((k::numeric));
CREATE INDEX ix_outgrows ON ix (k);
DELETE FROM ix WHERE s IS NULL OR length(s) < 10;
VACUUM (ANALYZE) ix;
RESET maintenance_work_mem;
CREATE INDEX ix_hash ON ix USING hash (k);
SET gpusort.enable_create_index = off;
CREATE INDEX ix_off ON ix (k);
RESET gpusort.enable_create_index;
SET gpusort.enabled = off;
CREATE INDEX ix_off_2 ON ix (k);
SET gpusort.enabled = on;
SET gpusort.engine = cpu;
SET max_parallel_maintenance_workers = 2;
ALTER TABLE ix SET (parallel_workers = 2);
CREATE INDEX ix_parallel ON ix ((k::numeric));
SET max_parallel_maintenance_workers = 0;
CREATE FUNCTION ix_setting(int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN current_setting('max_parallel_maintenance_workers'); END $$;
CREATE INDEX ix_serial ON ix (k, ix_setting(k)) WHERE ix_setting(k) = '0';
SELECT reltuples = (SELECT count(*) FROM ix) AS as_set FROM pg_class WHERE relname = 'ix_serial';
SHOW max_parallel_maintenance_workers;
RESET max_parallel_maintenance_workers;
SET gpusort.engine = :engine;
ALTER TABLE ix RESET (parallel_workers);
SET gpusort.force = on;
CREATE TEMP TABLE ix_temp AS SELECT * FROM ix;
CREATE INDEX ON ix_temp (k);
-- int4's operators in an operator family with another order, which no ORDER BY could use
CREATE FUNCTION ix_backward(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS ix_backward FOR TYPE int4 USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 ix_backward(int, int);
CREATE INDEX ix_family ON ix (k ix_backward);
-- int4's operators in another operator family with the same order
CREATE OPERATOR CLASS ix_alias FOR TYPE int4 USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int);
CREATE TABLE ix_aliased AS SELECT k, id FROM ix;
CREATE INDEX ON ix_aliased (k ix_alias DESC, id);
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT k FROM ix_aliased WHERE k > 100;
SELECT count(*) > 1000 AS many, bool_and(k <= before) AS in_order FROM (SELECT k, lag(k) OVER () AS before FROM (SELECT k FROM ix_aliased WHERE k > 100 OFFSET 0) x) y;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE ix_temp, ix_aliased;
DROP INDEX ix_family;
DROP OPERATOR FAMILY ix_alias USING btree;
DROP OPERATOR FAMILY ix_backward USING btree;
DROP FUNCTION ix_backward;
DROP INDEX ix_few, ix_in_order, ix_equal, ix_descending, ix_query, ix_numeric, ix_outgrows, ix_hash, ix_off, ix_off_2, ix_parallel, ix_serial;

-- every statement that builds an index
CREATE INDEX CONCURRENTLY ix_f ON ix (f DESC, id);
ALTER TABLE ix ADD PRIMARY KEY (id), ADD CONSTRAINT ix_unique UNIQUE (k, id) INCLUDE (n);
REINDEX INDEX ix_k;
REINDEX INDEX CONCURRENTLY ix_k;
ALTER TABLE ix ALTER k TYPE int8;
SET enable_indexscan = off;	-- so that CLUSTER sorts
CLUSTER ix USING ix_k;
RESET enable_indexscan;
VACUUM (FULL) ix;
SET max_parallel_maintenance_workers = 0;
VACUUM FULL ix;
-- the same, from 19 on
SELECT CASE WHEN current_setting('server_version_num')::int < 190000 THEN 'VACUUM FULL ix' ELSE 'REPACK ix' END AS repack \gset
:repack;
REINDEX TABLE CONCURRENTLY ix;
CREATE INDEX CONCURRENTLY ix_n ON ix (n);
DROP INDEX ix_n;
RESET max_parallel_maintenance_workers;
CREATE MATERIALIZED VIEW ix_view AS SELECT k, s FROM ix;
CREATE INDEX ix_view_s ON ix_view (s);
REFRESH MATERIALIZED VIEW ix_view;
CREATE TABLE ix_parted (k int, s text) PARTITION BY RANGE (k);
CREATE TABLE ix_part_1 PARTITION OF ix_parted FOR VALUES FROM (0) TO (500);
CREATE TABLE ix_part_2 PARTITION OF ix_parted FOR VALUES FROM (500) TO (2000);
INSERT INTO ix_parted SELECT k, s FROM ix;
CREATE INDEX ix_parted_s ON ix_parted (s);
CREATE UNLOGGED TABLE ix_unlogged AS SELECT k, s FROM ix;
CREATE INDEX ix_unlogged_s ON ix_unlogged (s);

-- the index is the same as PostgreSQL's: order of the entries, and size
SET gpusort.debug_plan = off;
SET max_parallel_maintenance_workers = 0;
CREATE FUNCTION pg_temp.entries(columns text, predicate text, ordering text, OUT ctids text[], OUT bytes bigint) LANGUAGE plpgsql AS $$
DECLARE
	scan text;
	line text;
	by_index bool := false;
BEGIN
	EXECUTE format('CREATE INDEX ix_tested ON ix (%s) WHERE %s', columns, predicate);
	bytes := pg_relation_size('ix_tested');
	scan := format('SELECT ctid FROM ix WHERE %s ORDER BY %s', predicate, ordering);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || scan LOOP
		by_index := by_index OR line LIKE '%ix_tested%';
	END LOOP;
	ASSERT by_index, scan;
	EXECUTE format('SELECT array_agg(ctid::text) FROM (%s) x', scan) INTO ctids;
	DROP INDEX ix_tested;
END $$ SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off;
CREATE FUNCTION pg_temp.same_index(columns text, predicate text DEFAULT 'true', ordering text DEFAULT NULL) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	ours record;
	plain record;
BEGIN
	ordering := coalesce(ordering, columns);
	SET LOCAL gpusort.enable_create_index = on;
	ours := pg_temp.entries(columns, predicate, ordering);
	SET LOCAL gpusort.enable_create_index = off;
	plain := pg_temp.entries(columns, predicate, ordering);
	SET LOCAL gpusort.enable_create_index = on;
	RETURN ours = plain AND cardinality(ours.ctids) > 1000;
END $$;
ALTER TABLE ix DROP CONSTRAINT ix_pkey, DROP CONSTRAINT ix_unique;
DROP INDEX ix_k, ix_f;
-- HOT chains: entries are not in TID order
ALTER TABLE ix SET (fillfactor = 50);
VACUUM FULL ix;
UPDATE ix SET j = '1' WHERE id % 3 = 0;
UPDATE ix SET j = '2' WHERE id % 5 = 0;
DELETE FROM ix WHERE id % 11 = 0;
SELECT c, pg_temp.same_index(c) FROM unnest(ARRAY['k', 'k DESC', 'n', 'n DESC NULLS LAST', 'n NULLS FIRST, k', 's', 's DESC', 'f, n, id',
	'p, k DESC', 'p COLLATE "POSIX", f DESC', '(k * 0)', 'lower(s), (k % 10) DESC', '(s::name)', '(s::bytea)', '(s::varchar(5))',
	'(k::numeric / 7)', '(ARRAY[n, k])', '(int8range(k, k + n))', '(k::text)', '(lpad(id::text, 10, ''  x'')::char(10))',
	'(CASE WHEN id % 2 = 0 THEN ''-0''::float8 ELSE f END)', '((''{"k": ['' || k::text || '', "'' || s || ''"]}'')::jsonb) DESC', '(to_tsvector(''simple''::regconfig, s))']) c;
SELECT pg_temp.same_index('s', 'n > 3'), pg_temp.same_index('n', 'k % 2 = 0'), pg_temp.same_index('n) INCLUDE (s, j', 'true', 'n'),
	pg_temp.same_index('s text_pattern_ops, n', 'true', 's USING ~<~, n');
SET maintenance_work_mem = '1MB';		-- runs on disk
INSERT INTO ix SELECT id + 5000, (id * 7919) % 20011, id % 10, md5((id + 5000)::text), id, 'a rather long common prefix ' || id % 500, 'null' FROM generate_series(1, 20000) id;
SELECT c, pg_temp.same_index(c) FROM unnest(ARRAY['k', 'n', 's', 'p, k DESC', '(k::numeric / 7), s']) c;
-- long values, compressed and out of line
UPDATE ix SET p = repeat(id % 13 || p, 200) WHERE id % 49 = 7;
ALTER TABLE ix ALTER p SET STORAGE EXTERNAL;
UPDATE ix SET p = (SELECT string_agg(md5((id % 17 * i)::text), '') FROM generate_series(1, 65) i) WHERE id % 25 = 10;
SELECT pg_column_size(p) AS bytes, length(p) > 2000 AS long FROM ix WHERE id IN (7, 10) ORDER BY id;
SELECT pg_temp.same_index('p'), pg_temp.same_index('n, p'), pg_temp.same_index('k) INCLUDE (p', 'true', 'k');
RESET maintenance_work_mem;

-- uniqueness: the same errors as PostgreSQL's
CREATE FUNCTION pg_temp.says(statement text, enabled bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	PERFORM set_config('gpusort.enable_create_index', enabled::text, true);
	EXECUTE statement;
	RAISE 'nothing';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN concat_ws(' / ', SQLSTATE, SQLERRM, detail);
END $$;
CREATE TABLE ix_dup AS SELECT (id * 7919) % 10007 AS a, nullif(id, 77) AS b, md5(id::text) AS s FROM generate_series(1, 3000) id;
INSERT INTO ix_dup VALUES (7919, 3001, 'x'), (-1, NULL, md5('5'));
SELECT c, regexp_replace(pg_temp.says(c, true), '\(\d+,\d+\)', '(TID)') AS ours, pg_temp.says(c, true) = pg_temp.says(c, false) AS same
FROM unnest(ARRAY['CREATE UNIQUE INDEX ix_u ON ix_dup (a)', 'CREATE UNIQUE INDEX ix_u ON ix_dup (b)',
	'CREATE UNIQUE INDEX ix_u ON ix_dup (b) NULLS NOT DISTINCT', 'ALTER TABLE ix_dup ADD PRIMARY KEY (a)', 'CREATE UNIQUE INDEX ix_u ON ix_dup (s) INCLUDE (a)',
	'CREATE UNIQUE INDEX ix_u ON ix_dup (lower(s), (a * 0))', 'ALTER TABLE ix_dup ADD UNIQUE (a, b)', 'CREATE UNIQUE INDEX ix_u ON ix_dup (a) WHERE b <= 3000',
	'CREATE INDEX ix_u ON ix_dup ((1 / (a + 1)))', 'CREATE INDEX ix_u ON ix (id, (repeat(md5(k::text), 1000) || p)) WHERE id % 1000 = 10']) c;
-- dead tuples are in the index, but do not violate uniqueness
BEGIN;
DELETE FROM ix_dup WHERE a = 7919 OR a = -1;
INSERT INTO ix_dup VALUES (7919, 5, 'y');
CREATE UNIQUE INDEX ix_dup_a ON ix_dup (a);
SELECT count(*) FROM ix_dup WHERE a = 7919;
COMMIT;
INSERT INTO ix_dup VALUES (7919, 6, 'z');
-- an entry too long for a page, and a duplicate after it, which PostgreSQL reports first
CREATE TABLE ix_long (id int, k text COLLATE "C", n int);
ALTER TABLE ix_long ALTER k SET STORAGE EXTERNAL;
INSERT INTO ix_long SELECT id, 'k' || lpad(id::text, 5, '0'), id FROM generate_series(1, 3000) id;
INSERT INTO ix_long VALUES (0, 'k' || repeat('0', 3000), 0), (3001, 'l', NULL), (3002, 'l', NULL), (3003, repeat('0', 9000), 3003);
SELECT c, left(pg_temp.says(c, true), 80) AS ours, pg_temp.says(c, true) = pg_temp.says(c, false) AS same
FROM unnest(ARRAY['CREATE UNIQUE INDEX ix_u ON ix_long (k) WHERE id < 3003', 'CREATE UNIQUE INDEX ix_u ON ix_long (k DESC) WHERE id < 3003', 'CREATE UNIQUE INDEX ix_u ON ix_long (k) WHERE id < 3002',
	'CREATE INDEX ix_u ON ix_long (k) WHERE id < 3003', 'CREATE UNIQUE INDEX ix_u ON ix_long (k)', 'CREATE UNIQUE INDEX ix_u ON ix_long (n) INCLUDE (k) WHERE id < 3003',
	'CREATE UNIQUE INDEX ix_u ON ix_long (n NULLS FIRST) INCLUDE (k) NULLS NOT DISTINCT WHERE id < 3003', 'ALTER TABLE ix_long ADD UNIQUE (k)']) c;
SET client_min_messages = warning;
DROP TABLE ix_long;
DROP TABLE ix, ix_parted, ix_unlogged, ix_dup CASCADE;
