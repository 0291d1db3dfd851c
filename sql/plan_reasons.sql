-- Sorts that are not replaced, whatever their size, and the reason given; and sorts of any type.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SET gpusort.debug_plan = on;
CREATE TYPE gs_pair AS (a int, b int);
CREATE TYPE gs_pair_range AS RANGE (subtype = gs_pair);
CREATE TEMP TABLE t AS SELECT id, id % 3 AS k, ROW(id % 5, id)::gs_pair AS r, ARRAY[ROW(id % 5, id)::gs_pair] AS a,
	('w' || id % 5)::tsquery AS j, gs_pair_range(ROW(id % 5, id)::gs_pair, NULL) AS pr, to_tsvector('simple', 'w' || id % 5) AS v
FROM generate_series(1, 20) id;

-- an operator, by its name, of a family without a comparison function
CREATE SCHEMA gs_family;
CREATE OPERATOR gs_family.<# (LEFTARG = int, RIGHTARG = int, FUNCTION = int4lt);
CREATE OPERATOR <# (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = int8lt);
CREATE OPERATOR FAMILY gs_family.incomplete USING btree;
ALTER OPERATOR FAMILY gs_family.incomplete USING btree
	ADD OPERATOR 1 gs_family.<# (int, int), OPERATOR 3 = (int, int), OPERATOR 1 <# (bigint, bigint), OPERATOR 3 = (bigint, bigint);
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY id USING OPERATOR(gs_family.<#);
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY id::bigint USING <#;
DROP OPERATOR FAMILY gs_family.incomplete USING btree;
DROP OPERATOR gs_family.<# (int, int);
DROP OPERATOR <# (bigint, bigint);
DROP SCHEMA gs_family;
SET client_min_messages = warning;
SELECT col, pg_temp.sorts('SELECT * FROM t ORDER BY ' || col)
FROM unnest('{a,r,j,pr,v,t,"ROW(k, id)",to_jsonb(k),gs_pair_multirange(pr),"ARRAY[t]","ARRAY[ARRAY[j]]"}'::text[]) col;

-- the largest number of columns, and of fields: a network address has six of them
\set ECHO none
SELECT 'CREATE TEMP TABLE wide AS SELECT id, ' ||
	   string_agg(format('(id * %s) %% 2 AS c%s, ''10.0.0.0''::inet + (id * %s) %% 2 AS i%s, '
						 'CASE WHEN id %% 10 <> %s %% 10 THEN (''text with number '' || id %% 2) END COLLATE "C" AS t%s',
						 i, i, i, i, i, i), ', ') || ' FROM t'
FROM generate_series(1, 33) i \gexec
\set ECHO all
SELECT c, n, pg_temp.sorts(q)
FROM (VALUES ('c', 32), ('c', 33), ('i', 10), ('i', 11), ('t', 32), ('t', 33)) v(c, n),
	 LATERAL (SELECT 'SELECT * FROM wide ORDER BY ' || string_agg(c || i || CASE i % 2 WHEN 0 THEN ' DESC' ELSE '' END, ', ' ORDER BY i) AS q
			  FROM generate_series(1, n) i) l;
SELECT c, n, pg_temp.rows_ok('wide', k)
FROM (VALUES ('c', 32), ('i', 10), ('t', 32)) v(c, n),
	 LATERAL (SELECT string_agg(c || i || CASE i % 2 WHEN 0 THEN ' DESC' ELSE '' END, ', ' ORDER BY i) AS k
			  FROM generate_series(1, n) i) l;
RESET client_min_messages;
SET gpusort.debug_plan = on;
EXPLAIN (COSTS OFF) SELECT c1 FROM wide
	ORDER BY c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17,
			 c18, c19, c20, c21, c22, c23, c24, c25, c26, c27, c28, c29, c30, c31, c32, c33;
EXPLAIN (COSTS OFF) SELECT c1 FROM wide ORDER BY i1, i2, i3, i4, i5, i6, i7, i8, i9, i10, i11;

-- input that is already sorted by some of the columns: an Incremental Sort
SET client_min_messages = warning;
CREATE INDEX ON t (id);
ANALYZE t;
SET enable_seqscan = off;
SET enable_sort = off;
SELECT pg_temp.sorts('SELECT * FROM t ORDER BY id, k');
SET enable_incremental_sort = off;
SELECT pg_temp.sorts('SELECT * FROM t ORDER BY id, k');
RESET enable_incremental_sort;
RESET enable_seqscan;
RESET enable_sort;

DROP TABLE t;
DROP TYPE gs_pair, gs_pair_range;
