-- Sorts below INSERT, UPDATE and MERGE; tables whose tuples have fewer columns
-- than the table; generated and dropped columns.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- dropped columns, and columns added to a table with rows
CREATE TEMP TABLE old (id int, gone text, k int, also_gone int, s text COLLATE "C");
INSERT INTO old SELECT id, 'gone ' || id, id % 5, id, 'word ' || id % 3 FROM generate_series(1, 20) id;
ALTER TABLE old DROP COLUMN gone, DROP COLUMN also_gone;
ALTER TABLE old ADD COLUMN g int GENERATED ALWAYS AS (k * 2) STORED;	-- this rewrites the rows, the others do not
ALTER TABLE old ADD COLUMN d int DEFAULT 42, ADD COLUMN t text COLLATE "C" DEFAULT 'a default longer than eight bytes', ADD COLUMN n int;
ALTER TABLE old ADD COLUMN f float8 DEFAULT '-0', ADD COLUMN b bytea DEFAULT '\x00';
INSERT INTO old (id, k, s, d, t, n, f, b)
	SELECT id, id % 5, 'word ' || id % 3, id % 4, 'another text ' || id % 2, id % 2, id % 3, '\x0000' FROM generate_series(21, 40) id;
SELECT count(*) FROM pg_attribute WHERE attrelid = 'old'::regclass AND atthasmissing;
SELECT k, pg_temp.rows_ok('old', k) FROM unnest(ARRAY['d', 'd DESC, t', 't DESC, d', 'n', 'n DESC NULLS LAST, f', 'f, k', 'b, t', 'b DESC, g',
	'k, d, t, n, f, b, g', 's, t', 'g DESC, s', 'old.*::text COLLATE "C"']) k;
SELECT k, pg_temp.keys_ok('old', k, k) FROM unnest(ARRAY['d', 'n', 'f', 'g', 'b', 't']) k;
SELECT pg_temp.same('SELECT old FROM old ORDER BY t, d', 'SELECT old FROM old ORDER BY t, d, id'),
	   pg_temp.same('SELECT a, b.n FROM old a JOIN old b USING (id) ORDER BY b.t DESC, a.d', 'SELECT a, b.n FROM old a JOIN old b USING (id) ORDER BY b.t DESC, a.d, id');

-- into tables with such columns; the serial column shows the order
CREATE TEMP TABLE target (nr serial, gone int, id int, s text COLLATE "C", also_gone text, d int);
ALTER TABLE target DROP COLUMN gone, DROP COLUMN also_gone;
SELECT pg_temp.explain('COSTS OFF, VERBOSE', 'INSERT INTO target (id, s, d) SELECT id, s, d FROM old ORDER BY s DESC, id');
INSERT INTO target (id, s, d) SELECT id, s, d FROM old ORDER BY s DESC, id;
SELECT array_agg(id ORDER BY nr) FROM target;
INSERT INTO target (d, id) SELECT 1, id FROM old WHERE id < 5 ORDER BY id DESC RETURNING nr, id, s, d;
ALTER TABLE target ADD COLUMN later int DEFAULT 9;
INSERT INTO target SELECT 100 + id, id, s, NULL, 10 FROM old WHERE id < 4 ORDER BY k DESC, id RETURNING *;
INSERT INTO target TABLE target ORDER BY id DESC, s, nr OFFSET 42 RETURNING *;
CREATE TEMP TABLE plain (id int, s text);
SELECT pg_temp.explain('COSTS OFF', 'INSERT INTO plain SELECT id, s FROM old ORDER BY s DESC, id');
INSERT INTO plain SELECT id, s FROM old ORDER BY s DESC, id;
SELECT array_agg(id ORDER BY ctid) = (SELECT array_agg(id ORDER BY s DESC, id) FROM old) AS in_order FROM plain;
CREATE TEMP TABLE copy AS SELECT s, id, t FROM old ORDER BY s, id DESC;
SELECT array_agg(id ORDER BY ctid) = (SELECT array_agg(id ORDER BY s, id DESC) FROM old) AS in_order FROM copy;
COPY (SELECT id, s FROM old WHERE id < 5 ORDER BY s DESC, id) TO STDOUT;
CREATE TEMP VIEW sorted AS SELECT id, d FROM old ORDER BY d, id DESC;
SELECT array_agg(id) FROM (SELECT * FROM sorted OFFSET 0) x;
CREATE MATERIALIZED VIEW gs_mat AS SELECT g, g % 3 AS k FROM generate_series(1, 7) g ORDER BY k DESC, g;
SELECT array_agg(g ORDER BY ctid) FROM gs_mat;
REFRESH MATERIALIZED VIEW gs_mat;
SELECT array_agg(g ORDER BY ctid) FROM gs_mat;
DROP MATERIALIZED VIEW gs_mat;

-- UPDATE, DELETE, MERGE, ON CONFLICT from sorted rows; CTEs that write
CREATE TEMP TABLE acc (k int PRIMARY KEY, log text DEFAULT '');
INSERT INTO acc SELECT k FROM (SELECT DISTINCT k FROM old WHERE k < 4 ORDER BY k DESC) x;
INSERT INTO acc SELECT DISTINCT ON (k) k, 'i' || id FROM old ORDER BY k, id DESC ON CONFLICT (k) DO UPDATE SET log = excluded.log RETURNING *;
UPDATE acc SET log = x.a FROM (SELECT k, string_agg(id::text, ',') AS a FROM (SELECT * FROM old WHERE id < 12 ORDER BY id DESC OFFSET 0) y GROUP BY k) x
	WHERE x.k = acc.k;
MERGE INTO acc USING (SELECT k + 3 AS k, min(id) AS id FROM old GROUP BY 1 ORDER BY 1 DESC) x ON acc.k = x.k
	WHEN MATCHED AND acc.k = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET log = 'm' || id WHEN NOT MATCHED THEN INSERT VALUES (x.k, 'n' || id);
SELECT * FROM acc ORDER BY k;
WITH d AS (DELETE FROM acc WHERE k > 4 RETURNING *), i AS (INSERT INTO acc SELECT k + 100, log FROM d ORDER BY k DESC RETURNING *)
SELECT * FROM i UNION ALL SELECT * FROM d ORDER BY 1, 2;
SELECT * FROM acc ORDER BY log COLLATE "C" DESC, k FOR UPDATE;

-- rows passed to triggers, and transition tables
CREATE FUNCTION pg_temp.show() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE '%: %', TG_OP, (SELECT array_agg(id) FROM (SELECT id FROM changed ORDER BY t DESC, d, n, id DESC OFFSET 0) x);
	RETURN NULL;
END $$;
CREATE TRIGGER show_old AFTER DELETE ON old REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.show();
CREATE TRIGGER show_new AFTER UPDATE ON old REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.show();
UPDATE old SET k = k + 1 WHERE id % 10 = 3;
DELETE FROM old WHERE id % 10 = 4;
SELECT pg_temp.left_behind();
