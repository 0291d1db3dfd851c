-- What keeps its stock Sort whatever its size, and the reason that is given.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SET gpusort.debug_plan = on;
CREATE TYPE gs_pair AS (a int, b int);
CREATE TYPE gs_range AS RANGE (subtype = float8);
CREATE TEMP TABLE t AS SELECT id, id % 3 AS k, (id % 5)::numeric AS n, ARRAY[id % 5, id] AS a, ROW(id % 5, id)::gs_pair AS r,
	to_jsonb(id % 5) AS j, int4range(id % 5, id + 10) AS ir, gs_range(id % 5, id + 10) AS fr, (id % 5)::bit(4) AS b,
	to_tsvector('simple', 'w' || id % 5) AS v, ARRAY['x']::name[] AS na, '1 2'::oidvector AS ov
FROM generate_series(1, 20) id;

-- types without a code, alone or beside others
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY n;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY k, id, n DESC;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY r;
SET client_min_messages = warning;
SELECT col, pg_temp.sorts('SELECT * FROM t ORDER BY ' || col)
FROM unnest('{a,r,j,ir,fr,b,v,na,ov,t,"ROW(k, id)",b::varbit,j::text::tsquery,int4multirange(ir)}'::text[]) col;

-- as many columns as a key has bits for NULLs, as many fields as it has room for:
-- a network address has six of them
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

-- input that is sorted by some of the columns already: an Incremental Sort
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

-- an order of its own on a type that has a code in its default one (the message
-- has an OID)
SET client_min_messages = warning;
BEGIN;
CREATE FUNCTION gs_abs_cmp(int, int) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS 'SELECT btint4cmp(abs($1), abs($2))';
CREATE FUNCTION gs_abs_lt(int, int) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT abs($1) < abs($2)';
CREATE FUNCTION gs_abs_gt(int, int) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT abs($1) > abs($2)';
CREATE FUNCTION gs_abs_eq(int, int) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT abs($1) = abs($2)';
CREATE OPERATOR <# (LEFTARG = int, RIGHTARG = int, FUNCTION = gs_abs_lt, COMMUTATOR = >#);
CREATE OPERATOR ># (LEFTARG = int, RIGHTARG = int, FUNCTION = gs_abs_gt, COMMUTATOR = <#);
CREATE OPERATOR =# (LEFTARG = int, RIGHTARG = int, FUNCTION = gs_abs_eq);
CREATE OPERATOR CLASS gs_abs_ops FOR TYPE int4 USING btree AS OPERATOR 1 <#, OPERATOR 3 =#, OPERATOR 5 >#, FUNCTION 1 gs_abs_cmp(int, int);
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY 10 - id USING <#;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY 10 - id USING >#, k;
SELECT array_agg(id) FROM (SELECT id FROM t WHERE id < 13 ORDER BY 10 - id USING <#, k OFFSET 0) x;
ROLLBACK;

-- the default operators in another family too, the other way round
BEGIN;
CREATE FUNCTION gs_reverse_cmp(int, int) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS gs_reverse_ops FOR TYPE int4 USING btree AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 gs_reverse_cmp(int, int);
SELECT array_agg(id) FROM (SELECT id FROM t ORDER BY id % 7, id OFFSET 0) x;
SELECT array_agg(id) FROM (SELECT id FROM t ORDER BY id % 7 DESC, id USING < OFFSET 0) x;
ROLLBACK;

-- another default order of a type's own
BEGIN;
CREATE TYPE gs_int;
CREATE FUNCTION gs_int_in(cstring) RETURNS gs_int IMMUTABLE STRICT LANGUAGE internal AS 'int4in';
CREATE FUNCTION gs_int_out(gs_int) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'int4out';
CREATE TYPE gs_int (INPUT = gs_int_in, OUTPUT = gs_int_out, LIKE = int4);
CREATE FUNCTION gs_int_lt(gs_int, gs_int) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS 'int4lt';
CREATE FUNCTION gs_int_gt(gs_int, gs_int) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS 'int4gt';
CREATE FUNCTION gs_int_eq(gs_int, gs_int) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS 'int4eq';
CREATE FUNCTION gs_int_cmp(gs_int, gs_int) RETURNS int IMMUTABLE STRICT LANGUAGE internal AS 'btint4cmp';
CREATE OPERATOR < (LEFTARG = gs_int, RIGHTARG = gs_int, FUNCTION = gs_int_lt);
CREATE OPERATOR > (LEFTARG = gs_int, RIGHTARG = gs_int, FUNCTION = gs_int_gt);
CREATE OPERATOR = (LEFTARG = gs_int, RIGHTARG = gs_int, FUNCTION = gs_int_eq);
CREATE OPERATOR CLASS gs_int_ops DEFAULT FOR TYPE gs_int USING btree AS OPERATOR 1 <, OPERATOR 3 =, OPERATOR 5 >, FUNCTION 1 gs_int_cmp(gs_int, gs_int);
RESET client_min_messages;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY (k::text)::gs_int;
SELECT array_agg(id) FROM (SELECT id FROM t ORDER BY (k::text)::gs_int DESC, id OFFSET 0) x;
ROLLBACK;
DROP TABLE t;
DROP TYPE gs_pair, gs_range;
