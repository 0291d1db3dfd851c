-- What PostgreSQL sorts without a Sort node, with gpusort on: index builds, CLUSTER,
-- aggregates with ORDER BY.  Results must not change.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TABLE gs_index AS SELECT id, (id * 7919) % 1009 AS k, nullif(id % 10, 0) AS n, ('a rather long common prefix ' || id % 50) COLLATE "C" AS s,
	(id % 100)::float8 AS f FROM generate_series(1, 3000) id;
CREATE INDEX gs_index_k ON gs_index (k);
CREATE INDEX gs_index_ks ON gs_index (k DESC NULLS LAST, s) INCLUDE (id);
CREATE INDEX gs_index_s ON gs_index (s text_pattern_ops, n NULLS FIRST);
CREATE INDEX gs_index_x ON gs_index (lower(s), (k % 10) DESC) WHERE n IS NOT NULL;
CREATE UNIQUE INDEX gs_index_id ON gs_index (id);
CREATE UNIQUE INDEX gs_index_few ON gs_index (n);
CREATE UNIQUE INDEX gs_index_nulls ON gs_index (nullif(id, id));
CREATE UNIQUE INDEX gs_index_not ON gs_index (nullif(id, id)) NULLS NOT DISTINCT;
ALTER TABLE gs_index ADD PRIMARY KEY (id), ADD UNIQUE (k, id);
INSERT INTO gs_index SELECT 3001, k, n, s, f FROM gs_index WHERE id = 7;
INSERT INTO gs_index SELECT * FROM gs_index WHERE id = 7;

-- index scans return the same as sorts
ANALYZE gs_index;
CREATE FUNCTION pg_temp.by_index(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	ours text[];
	indexed text[];
BEGIN
	SET enable_indexscan = off;
	SET enable_indexonlyscan = off;
	ASSERT pg_temp.gpusorts(query) = 1;
	EXECUTE format('SELECT array_agg(x::text) FROM (%s) x', query) INTO ours;
	SET enable_indexscan = on;
	SET enable_indexonlyscan = on;
	SET enable_seqscan = off;
	SET enable_sort = off;
	SET enable_bitmapscan = off;
	ASSERT pg_temp.sorts(query) = '', 'no index for ' || query;
	EXECUTE format('SELECT array_agg(x::text) FROM (%s) x', query) INTO indexed;
	RESET enable_seqscan;
	RESET enable_sort;
	RESET enable_bitmapscan;
	RETURN ours = indexed AND cardinality(ours) > 2000;
END $$;
SELECT q, pg_temp.by_index(q) FROM unnest(ARRAY['SELECT k FROM gs_index ORDER BY k', 'SELECT k FROM gs_index ORDER BY k DESC',
	'SELECT k, s FROM gs_index ORDER BY k DESC NULLS LAST, s',
	'SELECT s, n FROM gs_index ORDER BY s USING ~<~, n NULLS FIRST', 'SELECT lower(s), k % 10 FROM gs_index WHERE n IS NOT NULL ORDER BY lower(s), (k % 10) DESC']) q;
REINDEX TABLE gs_index;
SELECT pg_temp.by_index('SELECT k, s FROM gs_index ORDER BY k DESC NULLS LAST, s');
REINDEX INDEX CONCURRENTLY gs_index_k;
CREATE INDEX CONCURRENTLY gs_index_f ON gs_index (f DESC, id);
SELECT pg_temp.by_index('SELECT f, id FROM gs_index ORDER BY f DESC, id'), pg_temp.by_index('SELECT k FROM gs_index ORDER BY k');

-- CLUSTER, also on an expression; ctid shows the order
CREATE FUNCTION pg_temp.physical(order_by text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	ok bool;
BEGIN
	EXECUTE format('SELECT (SELECT array_agg(x ORDER BY ctid) FROM (SELECT ctid, row(%1$s)::text AS x FROM gs_index) y)
						   = (SELECT array_agg(row(%1$s)::text ORDER BY %2$s) FROM gs_index)',
				   replace(order_by, ' DESC', ''), order_by) INTO ok;
	RETURN ok;
END $$;
SET enable_indexscan = off;		-- so that CLUSTER sorts
CLUSTER gs_index USING gs_index_ks;
SELECT pg_temp.physical('k DESC, s'), pg_temp.physical('f DESC, id');
CREATE INDEX gs_index_whole ON gs_index (lower(s), (k % 10));
CLUSTER gs_index USING gs_index_whole;
SELECT pg_temp.physical('lower(s), (k % 10)'), pg_temp.physical('k DESC, s');
CLUSTER gs_index USING gs_index_f;
SELECT pg_temp.physical('f DESC, id');
VACUUM FULL gs_index;
SELECT pg_temp.physical('f DESC, id');
RESET enable_indexscan;
SELECT pg_temp.by_index('SELECT k FROM gs_index ORDER BY k');

-- within aggregates
SELECT array_agg(k ORDER BY f DESC, id) = (SELECT array_agg(k) FROM (SELECT k FROM gs_index ORDER BY f DESC, id OFFSET 0) x) AS array_agg,
	   count(DISTINCT s) AS distinct, percentile_disc(0.5) WITHIN GROUP (ORDER BY k) AS median, rank(50) WITHIN GROUP (ORDER BY f) AS rank
FROM (SELECT * FROM gs_index ORDER BY n OFFSET 0) x;
DROP TABLE gs_index;
