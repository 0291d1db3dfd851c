-- An order is identified by its comparison function, whatever the type or operator
-- family: what compares like a built-in type is sorted like it, and what only looks
-- like one is not.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- a new type with the functions of another: its default order is the other's
SET client_min_messages = warning;
CREATE FUNCTION pg_temp.make_type(name text, like_type text, prefix text, cmp text, settings text DEFAULT '', collatable text DEFAULT 'false')
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TYPE %1$s;
		CREATE FUNCTION %1$s_in(cstring) RETURNS %1$s IMMUTABLE STRICT LANGUAGE internal AS ''%2$sin'';
		CREATE FUNCTION %1$s_out(%1$s) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS ''%2$sout'';
		CREATE FUNCTION %1$s_send(%1$s) RETURNS bytea IMMUTABLE STRICT LANGUAGE internal AS ''%2$ssend'';
		CREATE TYPE %1$s (INPUT = %1$s_in, OUTPUT = %1$s_out, SEND = %1$s_send, LIKE = %2$s, COLLATABLE = %6$s);
		CREATE FUNCTION %1$s_lt(%1$s, %1$s) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS ''%3$slt'';
		CREATE FUNCTION %1$s_eq(%1$s, %1$s) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS ''%7$seq'';
		CREATE FUNCTION %1$s_gt(%1$s, %1$s) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS ''%3$sgt'';
		CREATE FUNCTION %1$s_cmp(%1$s, %1$s) RETURNS int IMMUTABLE STRICT LANGUAGE internal %5$s AS ''%4$s'';
		CREATE OPERATOR < (LEFTARG = %1$s, RIGHTARG = %1$s, FUNCTION = %1$s_lt);
		CREATE OPERATOR = (LEFTARG = %1$s, RIGHTARG = %1$s, FUNCTION = %1$s_eq);
		CREATE OPERATOR > (LEFTARG = %1$s, RIGHTARG = %1$s, FUNCTION = %1$s_gt);
		CREATE OPERATOR CLASS %1$s_ops DEFAULT FOR TYPE %1$s USING btree AS OPERATOR 1 <, OPERATOR 3 =, OPERATOR 5 >, FUNCTION 1 %1$s_cmp(%1$s, %1$s)',
		name, like_type, prefix, cmp, settings, collatable, rtrim(prefix, '_'));
END $$;
SELECT pg_temp.make_type('gs_int', 'int4', 'int4', 'btint4cmp');
SELECT pg_temp.make_type('gs_number', 'int8', 'int8', 'btint8cmp');
SELECT pg_temp.make_type('gs_float', 'float8', 'float8', 'btfloat8cmp');
SELECT pg_temp.make_type('gs_bytes', 'bytea', 'bytea', 'byteacmp');
SELECT pg_temp.make_type('gs_word', 'text', 'text_', 'bttextcmp', '', 'true');
CREATE DOMAIN gs_small AS gs_int;
SELECT setseed(0.61);
CREATE TEMP TABLE t AS SELECT id,
	pg_temp.pick('{-2147483648,-1,0,2147483647}'::text[])::gs_int AS i,
	pg_temp.pick('{-9223372036854775808,-1,0,9223372036854775807}'::text[])::gs_number AS n,
	pg_temp.pick('{-Infinity,-0,0,NaN}'::text[])::gs_float AS f,
	pg_temp.pick('{"\\x","\\x00","\\x61","\\x6100"}'::text[])::gs_bytes AS b,
	pg_temp.pick('{a,B,ab,abcdefghij,""}'::text[])::gs_word COLLATE "C" AS w,
	pg_temp.pick('{1,2}'::text[])::gs_int::gs_small AS d, pg_temp.pick('{-2,-1,0,1,2}'::int[]) AS k
FROM generate_series(1, 200) id;
SELECT pg_temp.check_column('t', col) FROM unnest('{i,n,f,b,w,d}'::text[]) col;
SELECT pg_temp.check_column('(SELECT id, ARRAY[i, d] AS a FROM t) x', 'a');
SELECT pg_temp.rows_ok('t', 'd DESC, w, n'), pg_temp.rows_ok('t', 'f, b DESC, i');

-- another order of a type that has one, by a function that is known
CREATE FUNCTION gs_text_bytes_cmp(text, text) RETURNS int IMMUTABLE STRICT LANGUAGE internal AS 'byteacmp';
CREATE FUNCTION gs_text_bytes_lt(text, text) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS 'bytealt';
CREATE FUNCTION gs_text_bytes_gt(text, text) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS 'byteagt';
CREATE OPERATOR <# (LEFTARG = text, RIGHTARG = text, FUNCTION = gs_text_bytes_lt);
CREATE OPERATOR ># (LEFTARG = text, RIGHTARG = text, FUNCTION = gs_text_bytes_gt);
CREATE OPERATOR CLASS gs_text_bytes_ops FOR TYPE text USING btree AS OPERATOR 1 <#, OPERATOR 3 =, OPERATOR 5 >#, FUNCTION 1 gs_text_bytes_cmp(text, text);
SELECT pg_temp.check_column('(SELECT id, w::text COLLATE "default" AS w FROM t) x', 'w', '{USING <#,USING >#}');

-- unknown orders
CREATE FUNCTION gs_abs_cmp(int, int) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS 'SELECT btint4cmp(abs($1), abs($2))';
CREATE FUNCTION gs_abs_lt(int, int) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT abs($1) < abs($2)';
CREATE FUNCTION gs_abs_gt(int, int) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT abs($1) > abs($2)';
CREATE OPERATOR <# (LEFTARG = int, RIGHTARG = int, FUNCTION = gs_abs_lt, COMMUTATOR = >#);
CREATE OPERATOR ># (LEFTARG = int, RIGHTARG = int, FUNCTION = gs_abs_gt, COMMUTATOR = <#);
CREATE FUNCTION gs_abs_eq(int, int) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT abs($1) = abs($2)';
CREATE OPERATOR =# (LEFTARG = int, RIGHTARG = int, FUNCTION = gs_abs_eq);
CREATE OPERATOR CLASS gs_abs_ops FOR TYPE int4 USING btree AS OPERATOR 1 <#, OPERATOR 3 =#, OPERATOR 5 >#, FUNCTION 1 gs_abs_cmp(int, int);
SET gpusort.debug_plan = on;
RESET client_min_messages;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY k USING <#;
SELECT array_agg(abs(k)) FROM (SELECT k FROM t WHERE id < 13 ORDER BY k USING >#, k OFFSET 0) x;

-- the operators of another family, reversed
BEGIN;
CREATE FUNCTION gs_reverse_cmp(int, int) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS 'SELECT btint4cmp($2, $1)';
CREATE OPERATOR CLASS gs_reverse_ops FOR TYPE int4 USING btree AS
	OPERATOR 1 >, OPERATOR 2 >=, OPERATOR 3 =, OPERATOR 4 <=, OPERATOR 5 <, FUNCTION 1 gs_reverse_cmp(int, int);
SET client_min_messages = warning;	-- OIDs decide which family is used
SELECT array_agg(id) FROM (SELECT id FROM t WHERE id < 21 ORDER BY id % 7, id OFFSET 0) x;
SELECT array_agg(id) FROM (SELECT id FROM t WHERE id < 21 ORDER BY id % 7 DESC, id USING < OFFSET 0) x;
ROLLBACK;

-- operators that contradict the function: PostgreSQL's sort uses the function
BEGIN;
CREATE FUNCTION gs_down_lt(int, int) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS 'int4gt';
CREATE FUNCTION gs_down_gt(int, int) RETURNS bool IMMUTABLE STRICT LANGUAGE internal AS 'int4lt';
CREATE OPERATOR <## (LEFTARG = int, RIGHTARG = int, FUNCTION = gs_down_lt);
CREATE OPERATOR >## (LEFTARG = int, RIGHTARG = int, FUNCTION = gs_down_gt);
CREATE OPERATOR CLASS gs_down_ops FOR TYPE int4 USING btree AS OPERATOR 1 <##, OPERATOR 3 =, OPERATOR 5 >##, FUNCTION 1 btint4cmp(int, int);
SELECT pg_temp.check_column('t', 'k', '{USING <##,USING >##}');
ROLLBACK;

-- known functions that are wrapped, or called for values of another type
BEGIN;
SET LOCAL client_min_messages = warning;
SELECT pg_temp.make_type('gs_definer', 'int4', 'int4', 'btint4cmp', 'SECURITY DEFINER');
SELECT pg_temp.make_type('gs_setting', 'int4', 'int4', 'btint4cmp', 'SET enable_sort = on');
SELECT pg_temp.make_type('gs_wide', 'int8', 'int8', 'btint4cmp');
RESET client_min_messages;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY id::text::gs_definer;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY id::text::gs_setting;
EXPLAIN (COSTS OFF) SELECT id FROM t ORDER BY id::text::gs_wide;
ROLLBACK;

RESET gpusort.debug_plan;
SET client_min_messages = warning;
DROP TABLE t;
DROP OPERATOR FAMILY gs_abs_ops USING btree;
DROP OPERATOR FAMILY gs_text_bytes_ops USING btree;
DROP OPERATOR <# (int, int), ># (int, int), =# (int, int), <# (text, text), ># (text, text);
DROP FUNCTION gs_abs_cmp, gs_abs_lt, gs_abs_eq, gs_abs_gt, gs_text_bytes_cmp, gs_text_bytes_lt, gs_text_bytes_gt;
DROP TYPE gs_int, gs_number, gs_float, gs_bytes, gs_word CASCADE;
