-- A GpuSort that is executed again: with the same rows, with others, with another
-- number of rows.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TEMP TABLE t AS SELECT id, id % 7 AS k, nullif(id % 5, 0) AS n, ('word ' || id % 3) COLLATE "C" AS s FROM generate_series(1, 200) id;
CREATE TEMP TABLE o AS SELECT g AS outer_id, (g * 37) % 200 AS m FROM generate_series(0, 30) g;
ANALYZE t;
ANALYZE o;

-- loops counts the executions of the sort
CREATE FUNCTION pg_temp.check(query text, oracle text DEFAULT NULL) RETURNS TABLE (plan text, loops int, ok bool) LANGUAGE plpgsql AS $$
BEGIN
	plan := pg_temp.sorts(query);
	loops := pg_temp.figures(query) -> 'Actual Loops';
	ok := pg_temp.same(query, coalesce(oracle, query));
	RETURN NEXT;
END $$;

-- correlated subqueries: the parameter is in the filter, in the key, in the output
SELECT c.* FROM (VALUES
	('SELECT outer_id, (SELECT array_agg(id) FROM (SELECT id FROM t WHERE id > m ORDER BY k, id DESC OFFSET 0) x) FROM o', NULL),
	('SELECT outer_id, (SELECT array_agg(id) FROM (SELECT id FROM t WHERE id < 20 ORDER BY (id * m) % 13, id OFFSET 0) x) FROM o', NULL),
	('SELECT outer_id, (SELECT array_agg(id + m) FROM (SELECT id, m FROM t WHERE k = outer_id % 8 ORDER BY n, id OFFSET 0) x) FROM o', NULL),
	('SELECT outer_id, (SELECT array_agg(n) FROM (SELECT n FROM t WHERE id > m ORDER BY n OFFSET 0) x) FROM o', NULL),
	('SELECT outer_id, ARRAY(SELECT s FROM t WHERE id > m AND id < m + 10 ORDER BY s DESC, id) FROM o', NULL),
	('SELECT outer_id FROM o WHERE m = ANY (SELECT id FROM t WHERE k <> outer_id ORDER BY n, id OFFSET 3)', NULL),
	('SELECT outer_id, (SELECT id FROM t WHERE id > m ORDER BY k DESC, id OFFSET 2 FETCH FIRST ROW WITH TIES) FROM o', NULL)) v(q, n),
	pg_temp.check(q) c;

-- LATERAL, with a varying number of rows
SELECT c.* FROM (VALUES
	('SELECT o.*, x.* FROM o, LATERAL (SELECT * FROM t WHERE id > m ORDER BY k, id OFFSET 5) x'),
	('SELECT o.*, x.* FROM o LEFT JOIN LATERAL (SELECT s, id FROM t WHERE id > m + 190 ORDER BY s, id OFFSET 1) x ON true'),
	('SELECT outer_id, y.* FROM o, LATERAL (SELECT k, count(*), min(id) FROM (SELECT * FROM t WHERE id < m ORDER BY k OFFSET 0) x GROUP BY k) y'),
	('SELECT outer_id, y.* FROM o, LATERAL (SELECT id, sum(id) OVER (ORDER BY n, id) FROM t WHERE id < m) y'),
	('SELECT g, x.* FROM generate_series(0, 3) g, LATERAL (SELECT n FROM t WHERE id <= g * 60 ORDER BY n DESC OFFSET 1) x')) v(q),
	pg_temp.check(q) c;

-- the inner side of a nested loop: the same rows each time, sorted once and rescanned
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT c.* FROM (VALUES
	('SELECT o.outer_id, x.* FROM o LEFT JOIN (SELECT id, k FROM t WHERE id < 9 ORDER BY k, id OFFSET 1) x ON true'),
	('SELECT o.outer_id, x.* FROM o LEFT JOIN (SELECT n FROM t WHERE id < 99 ORDER BY n OFFSET 0) x ON true'),
	('SELECT o.outer_id, x.id, y.id AS other FROM o LEFT JOIN (SELECT * FROM t ORDER BY k, id OFFSET 190) x ON true
		LEFT JOIN (SELECT * FROM t ORDER BY s DESC, id OFFSET 195) y ON true WHERE o.outer_id < 4')) v(q),
	pg_temp.check(q) c;
RESET enable_material;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- a merge join with mark and restore that is executed again
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT c.* FROM pg_temp.check('SELECT outer_id, (SELECT count(*) FROM t a JOIN t b USING (k) WHERE a.id > m AND b.id < m + 50) FROM o WHERE outer_id < 8') c;
RESET enable_hashjoin;
RESET enable_nestloop;

-- abandoned half way: the outer side stops early
SELECT c.* FROM (VALUES
	('SELECT outer_id, EXISTS (SELECT FROM (SELECT id FROM t WHERE id > m ORDER BY k OFFSET 0) x WHERE id % 3 = outer_id % 3) FROM o'),
	('SELECT outer_id, (SELECT x.id FROM (SELECT id FROM t WHERE id > m ORDER BY k, id DESC OFFSET 0) x WHERE id % 3 = outer_id % 3 LIMIT 1) FROM o'),
	('SELECT outer_id, (SELECT max(y) FROM (SELECT nullif(id % 9, m % 9) AS y FROM t WHERE id > m ORDER BY y DESC OFFSET 3) x) FROM o')) v(q),
	pg_temp.check(q) c;

-- one row at most, none at all, some again
SELECT g, ARRAY(SELECT id FROM t WHERE id <= g ORDER BY k DESC OFFSET 0), ARRAY(SELECT n FROM t WHERE id <= g ORDER BY n OFFSET 0)
FROM unnest('{0,1,2,0,5,0,NULL,6}'::int[]) WITH ORDINALITY x(g, o) ORDER BY o;

-- a set-returning function and a recursive one
CREATE FUNCTION pg_temp.sorted(lowest int) RETURNS SETOF int LANGUAGE sql STABLE AS 'SELECT id FROM t WHERE id > $1 ORDER BY k, id DESC OFFSET 0';
SELECT c.* FROM pg_temp.check('SELECT outer_id, f FROM o, pg_temp.sorted(m + 180) f') c;
WITH RECURSIVE r AS (
	SELECT 1 AS level, 200 AS id
	UNION ALL
	SELECT level + 1, x.id FROM r, LATERAL (SELECT id FROM t WHERE t.id < r.id / 2 ORDER BY k DESC, id DESC FETCH FIRST ROW WITH TIES) x)
SELECT * FROM r;

-- many times, and nothing is left
SELECT sum(x) FROM generate_series(1, 5000) g, LATERAL (SELECT sum(id) AS x FROM (SELECT id FROM t WHERE id < g % 20 ORDER BY s, id DESC OFFSET 0) y) z;
SELECT pg_temp.left_behind();
