-- Cursors over a GpuSort, in both directions and beyond both ends.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TABLE gs_cursor AS SELECT id, (id * 3) % 10 AS k FROM generate_series(1, 10) id;
CREATE TEMP TABLE with_nulls AS SELECT nullif(k, 5) AS k FROM gs_cursor;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT id, k FROM gs_cursor ORDER BY k;
FETCH BACKWARD c;
FETCH 2 FROM c;
FETCH BACKWARD 3 FROM c;
FETCH c;
FETCH ABSOLUTE 7 FROM c;
FETCH RELATIVE -2 FROM c;
FETCH 0 FROM c;
FETCH LAST FROM c;
FETCH c;
FETCH c;
FETCH PRIOR FROM c;
FETCH FIRST FROM c;
FETCH BACKWARD c;
FETCH ABSOLUTE -3 FROM c;
FETCH ABSOLUTE 11 FROM c;
FETCH BACKWARD 2 FROM c;
MOVE ABSOLUTE 0 IN c;
FETCH FORWARD ALL FROM c;
FETCH BACKWARD ALL FROM c;
FETCH FORWARD 1 FROM c;
CLOSE c;

-- one column alone, NULLs at either end
DECLARE c SCROLL CURSOR FOR SELECT k FROM with_nulls ORDER BY k;
FETCH LAST FROM c;
FETCH BACKWARD ALL FROM c;
FETCH FIRST FROM c;
FETCH ABSOLUTE -2 FROM c;
CLOSE c;
DECLARE c SCROLL CURSOR FOR SELECT k FROM with_nulls ORDER BY k DESC;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
FETCH LAST FROM c;
CLOSE c;

-- neither SCROLL nor NO SCROLL: a Sort can be read backward, and so can a GpuSort
DECLARE c CURSOR FOR SELECT id FROM gs_cursor ORDER BY k DESC;
FETCH 3 FROM c;
FETCH BACKWARD 1 FROM c;
CLOSE c;

-- no rows
DECLARE c SCROLL CURSOR FOR SELECT k FROM gs_cursor WHERE k < 0 ORDER BY k;
FETCH c;
FETCH BACKWARD c;
FETCH LAST FROM c;
FETCH ABSOLUTE 1 FROM c;
CLOSE c;
COMMIT;

-- every step between any two positions, forward and backward, against PostgreSQL's sort;
-- more rows than one fetch from the engine returns
CREATE FUNCTION pg_temp.walk(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	c refcursor;
	r record;
BEGIN
	OPEN c SCROLL FOR EXECUTE query;
	FOR step IN 1 .. 400 LOOP
		IF step % 50 = 0 THEN
			MOVE LAST IN c;
		ELSIF step % 70 = 0 THEN
			MOVE ABSOLUTE 0 IN c;
		ELSIF step % 31 = 0 THEN
			FETCH ABSOLUTE step % 110 FROM c INTO r;
		ELSIF step % 3 = 0 THEN
			FETCH RELATIVE (step * 7919) % 41 - 20 FROM c INTO r;
		ELSIF step / 20 % 2 = 0 THEN
			FETCH NEXT FROM c INTO r;
		ELSE
			FETCH PRIOR FROM c INTO r;
		END IF;
		RETURN NEXT CASE WHEN FOUND THEN r::text ELSE 'none' END;
	END LOOP;
	CLOSE c;
END $$;
CREATE FUNCTION pg_temp.walk_ok(query text, oracle text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	ours text[] := ARRAY(SELECT pg_temp.walk(query));
	plain text[];
BEGIN
	ASSERT pg_temp.gpusorts(query) = 1;
	SET gpusort.enabled = off;
	plain := ARRAY(SELECT pg_temp.walk(oracle));
	SET gpusort.enabled = on;
	RETURN ours = plain AND 'none' = ANY (ours);
END $$;
CREATE TEMP TABLE t AS SELECT id, id % 9 AS k, CASE WHEN id % 10 > 0 THEN (id * 37) % 101 END AS v FROM generate_series(1, 100) id;
SELECT pg_temp.walk_ok('SELECT * FROM t ORDER BY k', 'SELECT * FROM t ORDER BY k, id'),
	   pg_temp.walk_ok('SELECT * FROM t ORDER BY k DESC', 'SELECT * FROM t ORDER BY k DESC, id'),
	   pg_temp.walk_ok('SELECT v FROM t ORDER BY v', 'SELECT v FROM t ORDER BY v'),
	   pg_temp.walk_ok('SELECT v FROM t ORDER BY v DESC NULLS LAST', 'SELECT v FROM t ORDER BY v DESC NULLS LAST'),
	   pg_temp.walk_ok('SELECT nullif(v, v) AS v FROM t ORDER BY 1', 'SELECT nullif(v, v) AS v FROM t ORDER BY 1'),
	   pg_temp.walk_ok('SELECT v FROM t WHERE id < 0 ORDER BY v', 'SELECT v FROM t WHERE id < 0 ORDER BY v');
SELECT count(DISTINCT w) > 50 AS many_places FROM pg_temp.walk('SELECT * FROM t ORDER BY k') w;

-- WITH HOLD, row locks, CURRENT OF, and an error while the cursor is open
BEGIN;
DECLARE h SCROLL CURSOR WITH HOLD FOR SELECT id, k FROM gs_cursor ORDER BY k DESC;
FETCH 2 FROM h;
COMMIT;
SELECT pg_temp.left_behind();
DELETE FROM gs_cursor WHERE id = 7;
FETCH 1 FROM h;
FETCH BACKWARD ALL FROM h;
CLOSE h;
BEGIN;
DECLARE f CURSOR FOR SELECT * FROM gs_cursor ORDER BY k FOR UPDATE;
FETCH 2 FROM f;
UPDATE gs_cursor SET k = 100 WHERE CURRENT OF f RETURNING *;
SAVEPOINT s;
SELECT 1 / 0;
ROLLBACK TO s;
FETCH 1 FROM f;
DELETE FROM gs_cursor WHERE CURRENT OF f RETURNING *;
FETCH 1 FROM f;
ROLLBACK;
SELECT pg_temp.left_behind();
DROP TABLE gs_cursor;
