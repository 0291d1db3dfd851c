-- Keys that are enums.  Labels of a new type have ascending OIDs; after a label was
-- added between two others, labels are compared by their sort position.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TYPE gs_mood AS ENUM ('sad', 'ok', 'happy');
SELECT setseed(0.9);
CREATE TEMP TABLE t AS SELECT id, pg_temp.pick(enum_range(NULL::gs_mood)) AS m, pg_temp.pick('{1,2,3}'::int[]) AS k
FROM generate_series(1, 60) id;
SELECT pg_temp.check_column('t', 'm');
SELECT string_agg(m::text, ' ') FROM (SELECT DISTINCT m FROM t ORDER BY m) x;

-- a label added at the end
ALTER TYPE gs_mood ADD VALUE 'ecstatic';
INSERT INTO t SELECT 60 + id, 'ecstatic', id % 3 FROM generate_series(1, 10) id;
SELECT pg_temp.check_column('t', 'm');
SELECT string_agg(m::text, ' ') FROM (SELECT DISTINCT m FROM t ORDER BY m) x;

-- labels added before and between others; none of their rows is there yet
ALTER TYPE gs_mood ADD VALUE 'desperate' BEFORE 'sad';
ALTER TYPE gs_mood ADD VALUE 'fine' AFTER 'ok';
SELECT pg_temp.check_column('t', 'm');
INSERT INTO t SELECT 70 + id, pg_temp.pick(enum_range(NULL::gs_mood)), id % 3 FROM generate_series(1, 100) id;
SELECT pg_temp.check_column('t', 'm');
SELECT string_agg(m::text, ' ') FROM (SELECT DISTINCT m FROM t ORDER BY m) x;
SELECT string_agg(m::text, ' ') FROM (SELECT DISTINCT m FROM t ORDER BY m DESC) x;

-- so many that sort positions are fractions
DO $$
BEGIN
	FOR i IN 1 .. 30 LOOP
		EXECUTE format('ALTER TYPE gs_mood ADD VALUE %L %s', 'between ' || i,
					   CASE WHEN i = 1 THEN $x$AFTER 'sad'$x$ WHEN i % 2 = 0 THEN format('BEFORE %L', 'between ' || i - 1)
							ELSE format('AFTER %L', 'between ' || i - 1) END);
	END LOOP;
END $$;
INSERT INTO t SELECT 200 + id, pg_temp.pick(enum_range(NULL::gs_mood)), id % 3 FROM generate_series(1, 400) id;
SELECT pg_temp.check_column('t', 'm');
SELECT pg_temp.same('SELECT DISTINCT m FROM t WHERE m IS NOT NULL ORDER BY m',
					'SELECT unnest(enum_range(NULL::gs_mood))');
SELECT pg_temp.rows_ok('t', 'm DESC, k'), pg_temp.rows_ok('t', 'k, m NULLS FIRST');

-- renaming a label does not change the order
ALTER TYPE gs_mood RENAME VALUE 'happy' TO 'a bit happy';
SELECT pg_temp.rows_ok('t', 'm');

-- a plan made before a label was added
PREPARE by_mood AS
	SELECT m, count(*)
	FROM (SELECT m FROM t WHERE m IN ('sad', 'ok') OR id > 600 ORDER BY m OFFSET 0) x
	GROUP BY m ORDER BY m;
EXPLAIN (COSTS OFF) EXECUTE by_mood;
EXECUTE by_mood;
ALTER TYPE gs_mood ADD VALUE 'zero' BEFORE 'desperate';
INSERT INTO t VALUES (601, 'zero'), (602, 'sad');
EXECUTE by_mood;

-- an enum and its domain; an enum of one label; a type of this transaction
CREATE DOMAIN gs_mood_domain AS gs_mood CHECK (VALUE <> 'sad');
SELECT pg_temp.same('SELECT m::gs_mood_domain AS m, id FROM t WHERE m <> ''sad'' ORDER BY 1',
					'SELECT m::gs_mood_domain AS m, id FROM t WHERE m <> ''sad'' ORDER BY 1, id'),
	   pg_temp.same('SELECT m::gs_mood_domain AS m FROM t WHERE m <> ''sad'' ORDER BY 1',
					'SELECT m::gs_mood_domain AS m FROM t WHERE m <> ''sad'' ORDER BY 1');
CREATE TYPE gs_single AS ENUM ('only');
CREATE TEMP TABLE singles AS SELECT id, CASE WHEN id % 2 = 0 THEN 'only'::gs_single END AS e FROM generate_series(1, 9) id;
SELECT pg_temp.check_column('singles', 'e');
BEGIN;
CREATE TYPE gs_fresh AS ENUM ('b', 'a');
SELECT string_agg(e::text, ' ') FROM (SELECT e FROM unnest('{a,b,a,b,b}'::gs_fresh[]) e ORDER BY e OFFSET 0) x;
ROLLBACK;
DROP TABLE t, singles;
DROP DOMAIN gs_mood_domain;
DROP TYPE gs_mood, gs_single;
