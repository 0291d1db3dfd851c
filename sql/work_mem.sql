-- An input that exceeds work_mem becomes sorted runs on disk, or, if rows may be fetched
-- backward or again, goes to a tuplesort, including the rows read before.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\set engine cpu
\i :include

SET work_mem = '64kB';
CREATE FUNCTION pg_temp.check(query text, oracle text DEFAULT NULL) RETURNS TABLE (engine text, reason text, ok bool) LANGUAGE plpgsql AS $$
DECLARE
	f jsonb := pg_temp.figures(query);
BEGIN
	engine := f ->> 'Engine';
	reason := f ->> 'Fallback Reason';
	ok := pg_temp.same(query, coalesce(oracle, query));
	RETURN NEXT;
END $$;
CREATE TEMP TABLE t AS SELECT id, (id * 7919) % 10007 AS k, nullif(id % 7, 0) AS n, ('word ' || id % 1000) COLLATE "C" AS s,
	CASE WHEN id % 3 > 0 THEN ((id * 31) % 5003)::float8 END AS f FROM generate_series(1, 10000) id;

SELECT q, c.* FROM unnest(ARRAY[
	'SELECT * FROM t WHERE id <= 100 ORDER BY k', 'SELECT * FROM t ORDER BY k', 'SELECT * FROM t ORDER BY s DESC, id', 'SELECT * FROM t ORDER BY n, f, id',
	'SELECT n FROM t ORDER BY n', 'SELECT n FROM t ORDER BY n DESC', 'SELECT n FROM t ORDER BY n DESC NULLS LAST', 'SELECT f FROM t ORDER BY f',
	'SELECT f FROM t WHERE f IS NULL ORDER BY f', 'SELECT nullif(f, f) AS f FROM t ORDER BY 1 DESC', 'SELECT s FROM t ORDER BY s',
	'SELECT id, md5(k::text)::uuid AS u FROM t ORDER BY u', 'SELECT -k AS k FROM t ORDER BY 1']) q, pg_temp.check(q) c;
-- ties keep their order
SELECT pg_temp.rows_ok('t', k) FROM unnest('{n,"n DESC","s DESC","f NULLS FIRST"}'::text[]) k;
SELECT f ->> 'Engine', f ->> 'Sort Space Type' AS space FROM pg_temp.figures('SELECT * FROM t ORDER BY n') f;
SELECT f ->> 'Engine', f ->> 'Sort Space Type' AS space, f ->> 'Sort Method' AS method FROM pg_temp.figures('SELECT * FROM t ORDER BY s, k') f;
SELECT bool_and(n >= before OR before IS NULL OR n IS NULL) AS in_order, count(*), count(n), sum(id)
FROM (SELECT n, id, lag(n) OVER () AS before FROM (SELECT * FROM t ORDER BY n OFFSET 0) x) y;

-- the signs of zeros and NaNs are preserved
SELECT x.bits, count(*) = (SELECT count(*) FROM t) / 4 AS ok
FROM (SELECT float8send(f) AS bits FROM (SELECT CASE id % 4 WHEN 0 THEN '-0' WHEN 1 THEN '0' WHEN 2 THEN 'NaN' ELSE -float8 'NaN' END::float8 AS f
	  FROM t ORDER BY f OFFSET 0) y) x GROUP BY 1 ORDER BY 1;

-- numbers of rows around the first run; rows larger than work_mem
SELECT n, c.ok FROM unnest('{100,500,1000,1500,2000,2500,3000,4000,8000}'::int[]) n,
	pg_temp.check(format('SELECT * FROM t WHERE id <= %s ORDER BY k', n)) c;
SELECT n, c.ok FROM unnest('{100,1000,2000,2200,2400,2600,2800,3000,4000,8000}'::int[]) n,
	pg_temp.check(format('SELECT f FROM t WHERE id <= %s ORDER BY f DESC', n)) c;
SELECT n, c.* FROM unnest('{1,2,3,10}'::int[]) n,
	pg_temp.check(format('SELECT -id AS k, repeat(''w'', 70000 + id) AS w FROM generate_series(1, %s) id ORDER BY k', n)) c;
SELECT c.* FROM pg_temp.check('SELECT (id % 3 || repeat(''k'', 30000) || id) COLLATE "C" AS k FROM generate_series(1, 10) id ORDER BY k DESC') c;
SELECT n, c.* FROM unnest('{1,20}'::int[]) n,
	pg_temp.check(format('SELECT -id AS k, repeat(''w'', CASE id WHEN %s THEN 100000 ELSE 10 END) AS w FROM generate_series(1, 20) id ORDER BY k', n)) c;

-- backward, rescanned, marked, executed again after the fallback
CREATE FUNCTION pg_temp.walk(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	c refcursor;
	r record;
BEGIN
	OPEN c SCROLL FOR EXECUTE query;
	FOR step IN 1 .. 300 LOOP
		IF step % 50 = 0 THEN
			MOVE LAST IN c;
		ELSIF step % 70 = 0 THEN
			FETCH ABSOLUTE step * 33 FROM c INTO r;
		ELSIF step / 20 % 2 = 0 THEN
			FETCH RELATIVE step % 9 FROM c INTO r;
		ELSE
			FETCH PRIOR FROM c INTO r;
		END IF;
		RETURN NEXT CASE WHEN FOUND THEN r::text ELSE 'none' END;
	END LOOP;
	CLOSE c;
END $$;
CREATE FUNCTION pg_temp.walk_ok(query text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	ours text[] := ARRAY(SELECT pg_temp.walk(query));
BEGIN
	ASSERT pg_temp.gpusorts(query) = 1;
	RETURN ours = pg_temp.plain_walk(query) AND (SELECT count(DISTINCT x) > 50 FROM unnest(ours) x);
END $$;
CREATE FUNCTION pg_temp.plain_walk(query text) RETURNS text[] LANGUAGE plpgsql SET gpusort.enabled = off AS $$
BEGIN
	RETURN ARRAY(SELECT pg_temp.walk(query));
END $$;
SELECT pg_temp.walk_ok(q) FROM unnest(ARRAY['SELECT * FROM t ORDER BY k', 'SELECT nullif(k, id % 9) AS k FROM t ORDER BY 1',
	'SELECT f FROM t ORDER BY f DESC', 'SELECT s, id FROM t ORDER BY s DESC, id']) q;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SELECT c.* FROM pg_temp.check('SELECT count(*), sum(a.id), sum(b.id) FROM t a JOIN t b ON a.n = b.n AND a.k = b.k') c;
SELECT c.* FROM pg_temp.check('SELECT count(*), sum(a.n) FROM (SELECT n FROM t WHERE id < 4000 OFFSET 0) a
	JOIN (SELECT n FROM t WHERE id < 4000 OFFSET 0) b ON a.n = b.n') c;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;
SELECT g, (SELECT md5(string_agg(x::text, ',')) = (SELECT md5(string_agg(t::text, ',' ORDER BY k, id)) FROM t WHERE id <= g)
		   FROM (SELECT * FROM t WHERE id <= g ORDER BY k OFFSET 0) x) AS ok
FROM unnest('{10,9000,0,20,10000,8000}'::int[]) g;

-- the tuplesort's temporary files count and are removed at the end
SET temp_file_limit = '100kB';
\set VERBOSITY sqlstate
SELECT count(*) FROM (SELECT * FROM t ORDER BY s, k OFFSET 0) x;
\set VERBOSITY default
RESET temp_file_limit;
SELECT pg_temp.left_behind();
