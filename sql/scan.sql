-- Sequential scans below a sort are read a page at a time: the rows, and all
-- statistics, must be the same as for single rows.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- the counters of EXPLAIN ANALYZE below the sort, one line a node
CREATE FUNCTION pg_temp.counts(query text) RETURNS SETOF text LANGUAGE sql AS
$$
	SELECT line FROM pg_temp.explain('ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF', query) line
	WHERE line ~ 'Scan on|Append|Removed|Sort \(|GpuSort' AND line !~ 'Sort Key'
$$;

-- pages with dead tuples, tuples updated in place, NULLs, rows of all lengths
CREATE TABLE rows (id int, k int, pad text) WITH (autovacuum_enabled = off);
INSERT INTO rows SELECT i, hashint4(i) % 1000, repeat('x', i % 1900) FROM generate_series(1, 4000) i;
DELETE FROM rows WHERE id % 7 = 0;
UPDATE rows SET k = NULL WHERE id % 11 = 0;
ALTER TABLE rows ADD COLUMN late int DEFAULT 5, DROP COLUMN pad;
INSERT INTO rows SELECT i, hashint4(i) % 1000, i FROM generate_series(4001, 5000) i;

SELECT * FROM pg_temp.counts('SELECT * FROM rows ORDER BY k, id');
SELECT * FROM pg_temp.counts('SELECT * FROM rows WHERE id % 3 = 0 ORDER BY k, id');
SELECT * FROM pg_temp.counts('SELECT id + k, late FROM rows WHERE late > 5 ORDER BY 1');
SELECT * FROM pg_temp.counts('SELECT * FROM rows WHERE id < 0 ORDER BY k');
SELECT pg_temp.rows_ok('rows', 'id'), pg_temp.rows_ok('rows', 'id DESC'), pg_temp.rows_ok('rows', 'late, id');
SELECT pg_temp.rows_ok('rows', 'k, id'), pg_temp.rows_ok('rows WHERE id % 3 = 0', 'k DESC, id'),
	pg_temp.rows_ok('(SELECT id, id + k AS s, late FROM rows WHERE id % 3 = 0) x', 's, id'),
	pg_temp.rows_ok('(SELECT ctid AS place, * FROM rows) x', 'place DESC'),
	pg_temp.rows_ok('rows WHERE id IN (SELECT id / 2 FROM rows)', 'k, id');

-- cumulative statistics: all rows read, including those that the filter removed
CREATE FUNCTION pg_temp.rows_read(query text) RETURNS bigint LANGUAGE plpgsql AS
$$
DECLARE
	before bigint;
BEGIN
	before := pg_stat_get_xact_tuples_returned('rows'::regclass);
	EXECUTE 'SELECT count(*) FROM (' || query || ' OFFSET 0) x';
	RETURN pg_stat_get_xact_tuples_returned('rows'::regclass) - before;
END
$$;
BEGIN;
SELECT pg_temp.rows_read(q) FROM unnest('{SELECT * FROM rows ORDER BY k,SELECT id FROM rows WHERE k < 5 ORDER BY id,SELECT * FROM rows ORDER BY k LIMIT 3}'::text[]) q;
SELECT pg_temp.rows_read('SELECT * FROM rows ORDER BY k') = (SELECT count(*) FROM rows);
COMMIT;

-- partitions: one with columns in another order, one empty, one never analyzed
CREATE TABLE parts (id int, k int, t text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000);
CREATE TABLE parts_2 (t text, gone int, k int, id int);
ALTER TABLE parts_2 DROP COLUMN gone;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (1000) TO (2000);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (2000) TO (3000);
CREATE TABLE parts_4 PARTITION OF parts FOR VALUES FROM (3000) TO (4000);
INSERT INTO parts SELECT i, hashint4(i) % 100, 'text ' || i FROM generate_series(0, 3999) i WHERE i / 1000 <> 2;
SELECT * FROM pg_temp.counts('SELECT * FROM parts ORDER BY k, id');
SELECT * FROM pg_temp.counts('SELECT * FROM parts WHERE k % 2 = 0 ORDER BY k, id');
SELECT pg_temp.rows_ok('parts', 'k, id'), pg_temp.rows_ok('parts WHERE k % 2 = 0', 'k, id'),
	pg_temp.rows_ok('(SELECT * FROM parts UNION ALL SELECT id, k, late::text FROM rows) x', 'id, k, t');

-- a rescan with another parameter; a scan of rows that its own query changes
SELECT sum(x.n) FROM generate_series(1, 20) g, LATERAL (SELECT count(*) AS n FROM (SELECT * FROM rows WHERE id % g = 0 ORDER BY k, id OFFSET 1) r) x;
CREATE FUNCTION pg_temp.change(i int) RETURNS int LANGUAGE plpgsql AS 'BEGIN UPDATE rows SET late = late + 1 WHERE id = i; RETURN i; END';
SELECT count(*), sum(late), count(DISTINCT c) FROM (SELECT *, pg_temp.change(id) AS c FROM rows WHERE id < 500 ORDER BY k, c) x;
SELECT sum(late) FROM rows WHERE id < 500;

-- cursors: fetched in part, with concurrent changes; and under SERIALIZABLE
BEGIN ISOLATION LEVEL SERIALIZABLE;
DECLARE c CURSOR FOR SELECT id, k FROM rows ORDER BY k NULLS FIRST, id;
FETCH 2 FROM c;
DELETE FROM rows;
MOVE 1000 FROM c;
FETCH 2 FROM c;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT id, k FROM rows ORDER BY k, id FOR UPDATE;
FETCH 2 FROM c;
UPDATE rows SET k = -1 WHERE CURRENT OF c;
ROLLBACK;
-- a slow filter: a cancel takes effect at the next row, not at the next page
CREATE TEMP SEQUENCE evaluated;
SELECT id FROM rows WHERE nextval('evaluated') > 0 AND pg_cancel_backend(pg_backend_pid()) ORDER BY k;
SELECT last_value <= 2 AS heard FROM evaluated;
DROP TABLE rows, parts;
