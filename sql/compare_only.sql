-- Orders that gpusort knows only by their SortSupport: the abbreviated key is the
-- key, and the comparator decides ties, together with all following columns.
--
-- Operator classes with comparison functions that gpusort does not know, and the
-- sort support functions of built-in types.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

\set ECHO none
CREATE FUNCTION pg_temp.function_of(op text, t regtype) RETURNS regproc LANGUAGE sql AS $$
	SELECT oprcode FROM pg_operator WHERE oprname = op AND oprleft = t AND oprright = t
$$;
CREATE FUNCTION pg_temp.make_class(t regtype, cmp text, support text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE FUNCTION gs_cmp(%1$s, %1$s) RETURNS int IMMUTABLE STRICT LANGUAGE sql AS ''SELECT %2$s($1, $2)''', t, cmp);
	EXECUTE format('CREATE OPERATOR <# (LEFTARG = %1$s, RIGHTARG = %1$s, FUNCTION = %2$s, COMMUTATOR = >#)', t, pg_temp.function_of('<', t));
	EXECUTE format('CREATE OPERATOR ># (LEFTARG = %1$s, RIGHTARG = %1$s, FUNCTION = %2$s, COMMUTATOR = <#)', t, pg_temp.function_of('>', t));
	EXECUTE format('CREATE OPERATOR =# (LEFTARG = %1$s, RIGHTARG = %1$s, FUNCTION = %2$s, COMMUTATOR = =#)', t, pg_temp.function_of('=', t));
	EXECUTE format('CREATE OPERATOR CLASS gs_ops_%s FOR TYPE %s USING btree AS OPERATOR 1 <#, OPERATOR 3 =#, OPERATOR 5 >#, '
				   'FUNCTION 1 gs_cmp(%2$s, %2$s)%s',
				   t::oid, t, format(', FUNCTION 2 (%1$s, %1$s) ', t) || support || '(internal)');
END $$;
\set ECHO all
BEGIN;
SELECT pg_temp.make_class('text', 'bttextcmp', 'bttextsortsupport');
SELECT pg_temp.make_class('bpchar', 'bpcharcmp', 'bpchar_sortsupport');
SELECT pg_temp.make_class('bytea', 'byteacmp', 'bytea_sortsupport');
SELECT pg_temp.make_class('uuid', 'uuid_cmp', 'uuid_sortsupport');
SELECT pg_temp.make_class('inet', 'network_cmp', 'network_sortsupport');
SELECT pg_temp.make_class('macaddr', 'macaddr_cmp', 'macaddr_sortsupport');
SELECT pg_temp.make_class('int8', 'btint8cmp', 'btint8sortsupport');
SELECT pg_temp.make_class('int4', 'btint4cmp', 'btint4sortsupport');
SELECT pg_temp.make_class('numeric', 'numeric_cmp', 'numeric_sortsupport');
SELECT pg_temp.make_class('float8', 'btfloat8cmp', 'btfloat8sortsupport');
SELECT pg_temp.make_class('date', 'date_cmp', NULL);

-- values of which many share a prefix
SELECT setseed(0.45);
CREATE TEMP TABLE t AS SELECT id, id % 5 AS k,
	pg_temp.pick('{"",a,12345678,123456789,1234567,"12345678 ",abcdefghijk,abcdefghi,ABCDEFGHI,äbcdefgh,zz}'::text[]) AS s,
	(lpad((id % 100)::text, 8, '0') || id % 3) COLLATE "C" AS tied,
	decode(md5((id % 50)::text), 'hex') AS b,
	overlay(md5((id % 90)::text) placing '0123456789abcdef' from 1 + 16 * (id % 3 % 2))::uuid AS u,
	('10.1.' || id % 3 || '.' || id % 7 || '/' || 8 * (1 + id % 4))::inet AS n,
	('2001:db8::' || to_hex(id % 9))::inet AS n6,
	('08:00:2b:01:02:' || lpad(to_hex(id % 20), 2, '0'))::macaddr AS m,
	(id * 7919) % 101 - 50 AS i, ((id * 7919) % 101 - 50) * 10000000000 AS l,
	(id % 11) / 3.0 AS num, CASE WHEN id % 4 > 0 THEN date '2000-01-01' + id % 12 END AS d
FROM generate_series(1, 900) id;

SELECT c, pg_temp.check_column(format('(SELECT id, %s AS c FROM t) x', c), 'c', '{USING <#,USING >#}')
FROM unnest(ARRAY['s COLLATE "C"', 's COLLATE pg_temp.unicode', 'tied', 's::bpchar COLLATE "C"', 'b', 'u', 'n', 'n6', 'm', 'i', 'l']) c;

-- columns before, and columns after, which need no key
SELECT o, pg_temp.rows_ok('t', o)
FROM unnest(ARRAY['s COLLATE "C" USING <#, k', 'k, s COLLATE "C" USING ># NULLS FIRST, d', 'tied USING <#, num USING ># NULLS FIRST, s COLLATE "C" DESC',
				  'k DESC, u USING ># NULLS LAST, ROW(i, d), s COLLATE "POSIX"', 'n USING <#, n6 USING >#, m USING <#, d USING <# NULLS FIRST',
				  'i USING >#, l, s COLLATE "C" USING <#', 'l USING <#, to_jsonb(k) DESC', 's COLLATE "C" USING <#, s COLLATE pg_temp.unicode, k', 'k, m USING >#, k, m USING >#']) o;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY k, m USING >#, to_jsonb(i) DESC;

-- all equal, and equal abbreviated keys
CREATE TEMP TABLE same AS SELECT id, 'the same beginning'::bytea AS one, ('12345678' || (id * 7) % 13)::bytea AS tail FROM generate_series(1, 90) id;
SELECT pg_temp.check_column('same', c, '{USING <#,USING >#}') FROM unnest('{one,tail}'::text[]) c;

-- no abbreviated keys: comparisons alone (key_compared.sql)
SET LOCAL gpusort.debug_plan = on;
EXPLAIN (COSTS OFF) SELECT d FROM t ORDER BY d USING <#;
EXPLAIN (COSTS OFF) SELECT d FROM t ORDER BY k, num::float8 USING >#;
-- abbreviated keys with a comparator of the type: below a LIMIT rows are compared before they are dropped
SET LOCAL gpusort.force = off;
SET LOCAL gpusort.min_rows = 0;
EXPLAIN (COSTS OFF) SELECT num FROM t ORDER BY num USING <# LIMIT 3;
SET LOCAL gpusort.force = on;
SET LOCAL gpusort.debug_plan = off;

-- numeric's comparator reverses them: falls back to a tuplesort at once; if runs have been
-- written already, because the first rows were in order, each engine corrects its order
SELECT f ->> 'Engine' AS engine, f ->> 'Fallback Reason' AS reason
FROM pg_temp.figures('SELECT * FROM t ORDER BY (num + id) USING <#') f;
SELECT pg_temp.rows_ok('t', 'num USING <#, id'), pg_temp.rows_ok('t', 'k, num USING ># NULLS LAST, id');
SET LOCAL gpusort.engine = cpu;
SET LOCAL work_mem = '128kB';
CREATE TEMP TABLE numbers AS SELECT id, CASE WHEN id % 40 > 0 THEN (CASE WHEN id < 3000 THEN id / 2 ELSE (id * 7919) % 1999 END) * 1.5 END AS num, id % 3 AS k
FROM generate_series(1, 6000) id;
SELECT f ->> 'Engine' AS engine, f ->> 'Sort Method' AS method, (f -> 'Key Verification Retries')::int > 0 AS put_right
FROM pg_temp.figures('SELECT * FROM numbers WHERE num IS NOT NULL ORDER BY num USING <#') f;
SELECT pg_temp.rows_ok('(SELECT * FROM numbers WHERE num IS NOT NULL) x', o) FROM unnest(ARRAY['num USING <#', 'num USING <#, id']) o;
SELECT pg_temp.rows_ok('numbers', o || ', id') FROM unnest(ARRAY['num USING >#', 'k, num USING ># NULLS LAST']) o;
RESET work_mem;
SET LOCAL gpusort.engine = :engine;

-- an increasing share of values with a common prefix: falls back to a tuplesort
CREATE TEMP TABLE alike AS SELECT id, 'the same beginning ' || md5(id::text) AS s FROM generate_series(1, 20000) id;
SELECT f ->> 'Engine' AS engine, f ->> 'Fallback Reason' AS reason
FROM pg_temp.figures('SELECT * FROM alike ORDER BY s COLLATE "C" USING <#') f;
SELECT pg_temp.rows_ok('alike', 's COLLATE "C" USING <#'), pg_temp.rows_ok('alike', 'id % 3, s COLLATE "C" USING ># NULLS LAST');

-- devices cannot compare
SET LOCAL gpusort.engine = cuda;
SELECT f ->> 'Engine' AS engine, f ->> 'Device Not Used' AS reason FROM pg_temp.figures('SELECT * FROM t ORDER BY m USING <#, k') f;
SELECT pg_temp.left_behind();
ROLLBACK;
