-- A device sorts by the columns before one that is only compared; comparisons order the rows that are
-- equal in these, as they are returned: few of them, and a sort of larger groups, with runs.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include
CREATE FUNCTION pg_temp.by_digits(int, int) RETURNS int IMMUTABLE STRICT LANGUAGE plpgsql AS $$
BEGIN
	IF $1 = -1000 OR $2 = -1000 THEN
		RAISE EXCEPTION 'no order for -1000';
	END IF;
	RETURN btint4cmp(hashint4($1 / 2), hashint4($2 / 2));
END $$;
CREATE FUNCTION pg_temp.lt(int, int) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT pg_temp.by_digits($1, $2) < 0';
CREATE FUNCTION pg_temp.eq(int, int) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT pg_temp.by_digits($1, $2) = 0';
CREATE FUNCTION pg_temp.gt(int, int) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS 'SELECT pg_temp.by_digits($1, $2) > 0';
CREATE OPERATOR public.<## (LEFTARG = int, RIGHTARG = int, FUNCTION = pg_temp.lt);
CREATE OPERATOR public.=## (LEFTARG = int, RIGHTARG = int, FUNCTION = pg_temp.eq);
CREATE OPERATOR public.>## (LEFTARG = int, RIGHTARG = int, FUNCTION = pg_temp.gt);
CREATE OPERATOR CLASS public.digits_ops FOR TYPE int USING btree AS OPERATOR 1 <##, OPERATOR 3 =##, OPERATOR 5 >##, FUNCTION 1 pg_temp.by_digits(int, int);
\set ECHO all
BEGIN;
CREATE TEMP TABLE t AS SELECT id, hashint4(id) % 8000 AS one, hashint4(id) % 700 AS several, hashint4(id) % 40 AS many,
	nullif(hashint4(-id) % 97, 3) AS u, CASE WHEN id % 3 > 0 THEN md5((id % 50)::text) END AS s, repeat('x', id % 200) AS filler
FROM generate_series(1, 6000) id;

-- groups of a row, some rows and many, and all of them
SELECT o, pg_temp.rows_ok('t', o)
FROM unnest(ARRAY['one, u USING <##', 'several DESC, u USING >## NULLS FIRST', 'many, u USING <## NULLS FIRST, s DESC', 's COLLATE "C", u USING <##',
				  's COLLATE "C" NULLS FIRST, several, u USING >##, one', '(id > 0), u USING <##', '(one * one), many, u USING <##, id DESC']) o;
SELECT o, f ->> 'Engine' = current_setting('gpusort.engine') AS by_engine,
	f ->> 'Engine' <> 'cuda' OR (f ->> 'Rows Ordered by Comparison')::int BETWEEN least AND 6000 AS compared, f ->> 'Sorted Rows' AS sorted
FROM (VALUES ('one, u USING <##', 1000), ('several, u USING <##', 5900), ('many, u USING <##', 6000), ('(id > 0), u USING <##', 6000)) v (o, least),
	 LATERAL pg_temp.figures('SELECT * FROM t ORDER BY ' || o) f;
SET LOCAL work_mem = '64kB';
SELECT o, pg_temp.rows_ok('t', o) FROM unnest(ARRAY['several, u USING <##', 'many, u USING <##', '(id > 0), u USING <##']) o;
SELECT f ->> 'Engine' = current_setting('gpusort.engine') AS by_engine FROM pg_temp.figures('SELECT * FROM t ORDER BY many, u USING <##') f;
SELECT pg_temp.left_behind();
RESET work_mem;

-- large values, which are fetched once
CREATE TEMP TABLE toasted (id int, k int, x text, u int);
ALTER TABLE toasted ALTER x SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT id, id % 9, CASE WHEN id % 5 > 0 THEN repeat(md5((id % 11)::text), 300) END, hashint4(id) % 9 FROM generate_series(1, 300) id;
SELECT o, pg_temp.rows_ok('toasted', o) FROM unnest(ARRAY['k, u USING <##, x COLLATE "C"', 'k, u USING <##, x COLLATE "C" DESC NULLS LAST']) o;

-- rescans
SELECT pg_temp.same('SELECT x.* FROM generate_series(1, 3) n, LATERAL (SELECT id, u FROM t WHERE id % 3 = n - 1 ORDER BY several, u USING <##, id OFFSET 0) x',
					'SELECT x.* FROM generate_series(1, 3) n, LATERAL (SELECT id, u FROM t WHERE id % 3 = n - 1 ORDER BY several, u USING <##, id OFFSET 0) x');
-- forward and backward
DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY id % 10, u USING <##, id;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
CLOSE c;
-- a cursor that is closed within a group
DECLARE c NO SCROLL CURSOR FOR SELECT id FROM t ORDER BY id / 100, u USING <##, id;
MOVE 250 FROM c;
FETCH 2 FROM c;
CLOSE c;

-- what a device does not sort
SET LOCAL gpusort.engine = cuda;
SELECT o, f ->> 'Engine' AS engine, f ->> 'Device Not Used' AS reason
FROM unnest(ARRAY['SELECT * FROM t ORDER BY u USING <##, several', 'SELECT * FROM t ORDER BY several, u USING <## LIMIT 5', 'SELECT u FROM t ORDER BY u, u USING <##']) o,
	 LATERAL pg_temp.figures(o) f;
SET gpusort.engine = :engine;

-- errors of the comparison function, in few rows and in many
\set VERBOSITY terse
SAVEPOINT s;
UPDATE t SET u = -1000 WHERE id = 10;
SELECT count(*) FROM (SELECT * FROM t ORDER BY several, u USING <## OFFSET 0) x;
ROLLBACK TO s;
UPDATE t SET u = -1000 WHERE id = 10;
SELECT count(*) FROM (SELECT * FROM t ORDER BY many, u USING <## OFFSET 0) x;
ROLLBACK TO s;
SELECT pg_temp.left_behind();
ROLLBACK;
DROP OPERATOR FAMILY public.digits_ops USING btree CASCADE;
DROP OPERATOR public.<## (int, int);
DROP OPERATOR public.=## (int, int);
DROP OPERATOR public.>## (int, int);
