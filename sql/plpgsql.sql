-- Sorts inside functions: loops over them, errors in the middle of them, and that
-- neither leaves anything behind.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE TEMP TABLE t AS SELECT id, id % 10 AS k, nullif(id % 4, 0) AS n, ('word ' || id % 3) COLLATE "C" AS s FROM generate_series(1, 500) id;
CREATE FUNCTION pg_temp.fail_at(i int, at int) RETURNS int VOLATILE LANGUAGE plpgsql AS $$
BEGIN
	IF i = at THEN
		RAISE EXCEPTION 'row %', i USING ERRCODE = 'GS001';
	END IF;
	RETURN i;
END $$;

-- a loop over a sort that ends normally, early, by an error, and by a caught error
CREATE FUNCTION pg_temp.loop(stop_at int, fail_at int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	log text := '';
BEGIN
	FOR r IN SELECT * FROM t WHERE id <= 30 ORDER BY k DESC, n NULLS FIRST, s LOOP
		log := log || r.id || ' ';
		EXIT WHEN r.id = stop_at;
		PERFORM pg_temp.fail_at(r.id, fail_at);
	END LOOP;
	RETURN log;
EXCEPTION WHEN SQLSTATE 'GS001' THEN
	RETURN log || SQLERRM;
END $$;
SELECT pg_temp.loop(0, 0);
SELECT pg_temp.loop(17, 0);
SELECT pg_temp.loop(0, 26);

-- an error while the rows are read, in each of several sorts, caught
CREATE FUNCTION pg_temp.retry() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	log text := '';
	n bigint;
BEGIN
	FOR i IN 1 .. 5 LOOP
		BEGIN
			SELECT count(*) INTO n FROM (SELECT k, pg_temp.fail_at(id, i * 120) AS f FROM t ORDER BY k, f OFFSET 0) x;
			log := log || n || ' ';
		EXCEPTION WHEN SQLSTATE 'GS001' THEN
			log := log || SQLERRM || ' ';
		END;
	END LOOP;
	RETURN log || pg_temp.left_behind();
END $$;
SELECT pg_temp.retry();
SELECT pg_temp.retry();
SELECT pg_temp.left_behind();

\set SHOW_CONTEXT never
-- errors that are not caught: while reading, in the key, above the sort, in a subtransaction
SELECT k, pg_temp.fail_at(id, 400) FROM t ORDER BY k;
SELECT pg_temp.fail_at(id, 400) AS k FROM t ORDER BY k;
SELECT pg_temp.fail_at(id, 10) FROM (SELECT id FROM t ORDER BY k DESC, id OFFSET 0) x;
SELECT id FROM t ORDER BY 100 / (id - 250);
SELECT pg_temp.left_behind();
BEGIN;
SAVEPOINT a;
DECLARE c CURSOR FOR SELECT pg_temp.fail_at(id, 499) AS f, s FROM t ORDER BY s, k;
FETCH c;
ROLLBACK TO a;
SELECT pg_temp.left_behind();
DECLARE d CURSOR FOR SELECT * FROM t ORDER BY s, k, id;
FETCH 2 FROM d;
SAVEPOINT b;
FETCH 2 FROM d;
SELECT * FROM t ORDER BY id / (k - 3);
ROLLBACK TO b;
FETCH 2 FROM d;
COMMIT;
SELECT pg_temp.left_behind();

-- nested sorts: a function in the key that sorts, and finally fails
CREATE FUNCTION pg_temp.nested(depth int) RETURNS int VOLATILE LANGUAGE plpgsql AS $$
DECLARE
	a int[];
BEGIN
	IF depth = 0 THEN
		RETURN 1;
	END IF;
	SELECT array_agg(x) INTO a FROM (SELECT pg_temp.nested(depth - 1) * id AS x FROM t WHERE id <= 3 ORDER BY x DESC OFFSET 0) y;
	RETURN a[1];
END $$;
SELECT pg_temp.nested(4);
SELECT pg_temp.nested(2 / (id - 1)) FROM t WHERE id < 5 ORDER BY 1;
SELECT id, pg_temp.nested(id % 3) AS x FROM t WHERE id < 7 ORDER BY x, id DESC;

-- RETURN QUERY, cursors that outlive the function, DO, statements with parameters
CREATE FUNCTION pg_temp.top(lowest int) RETURNS TABLE (a int, b text) LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT id, s FROM t WHERE id > lowest ORDER BY s DESC, id;
	RETURN QUERY EXECUTE 'SELECT id, s FROM t WHERE id > $1 ORDER BY n, s' USING lowest;
END $$;
SELECT * FROM pg_temp.top(494);
CREATE FUNCTION pg_temp.open() RETURNS refcursor LANGUAGE plpgsql AS $$
DECLARE
	c refcursor := 'opened';
BEGIN
	OPEN c SCROLL FOR SELECT id, n FROM t WHERE id < 9 ORDER BY n;
	MOVE 3 FROM c;
	RETURN c;
END $$;
BEGIN;
SELECT pg_temp.open();
FETCH 2 FROM opened;
FETCH BACKWARD ALL FROM opened;
COMMIT;
DO $$
DECLARE
	i int := 0;
	n int := 0;
	r record;
BEGIN
	FOR r IN SELECT k FROM t ORDER BY k LOOP
		IF r.k < i THEN
			RAISE EXCEPTION 'out of order';
		END IF;
		i := r.k;
		n := n + 1;
		IF n % 70 = 0 THEN
			COMMIT;		-- materializes the remaining rows
		END IF;
	END LOOP;
	RAISE NOTICE '% rows up to %', n, i;
END $$;
SELECT pg_temp.left_behind();
