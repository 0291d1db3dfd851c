-- A later sort column of variable width is looked at only for rows that tie in the columns before it, as by
-- PostgreSQL's sort; if many tie, it gets keys after all.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include
-- The pages that a query reads, without and with gpusort.
CREATE FUNCTION pg_temp.pages(query text, OUT postgres int, OUT gpusort int) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	FOREACH plan IN ARRAY '{true,false}'::jsonb[] LOOP
		PERFORM set_config('gpusort.enabled', CASE WHEN plan = 'true' THEN 'off' ELSE 'on' END, false);
		EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, FORMAT JSON) ' || query INTO plan;
		postgres := coalesce(postgres, gpusort);
		gpusort := (plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::int + (plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::int;
	END LOOP;
END $$;
\set ECHO all
-- not by INSERT, which puts some rows where earlier pages have space
CREATE TABLE gs_later AS SELECT id, hashint8extended(id, 0) AS one, hashint8extended(id / 2, 0) AS two, hashint8extended(id % 150, 0) AS several, nullif(id % 3, 2) AS few,
	(CASE WHEN id % 7 > 0 THEN (SELECT string_agg(md5(i || ' ' || hashint4(id) % 9), '') FROM generate_series(1, 90) i) END) COLLATE "C" AS body,
	jsonb_build_object('a', id % 4, 'b', md5((hashint4(id) % 11)::text), 'c', repeat('y', id % 300)) AS doc,
	(hashint4(id) % 5) * (ARRAY[1, 1.0, 1.000])[1 + id % 3] AS number, ARRAY[id % 2, NULL, hashint4(id) % 13] AS list,
	CASE WHEN id % 9 > 0 THEN 'Wörter ' || hashint4(id) % 17 END AS word
FROM generate_series(1, 3000) id;
VACUUM ANALYZE gs_later;

-- the values in TOAST are not read where PostgreSQL does not read them; a device may keep the first rows
SET gpusort.engine = cpu;
SELECT q, gpusort <= postgres + 3 AS no_more_pages, postgres < 200 AS no_values
FROM unnest(ARRAY['SELECT id FROM gs_later ORDER BY one, body', 'SELECT id FROM gs_later ORDER BY one DESC, few, body LIMIT 10',
	'SELECT id FROM gs_later ORDER BY one, body LIMIT 500', 'SELECT DISTINCT ON (one) id FROM gs_later ORDER BY one, body',
	'SELECT id FROM gs_later ORDER BY one, number, body']) q, pg_temp.pages(q);
SET gpusort.engine = :engine;
-- LIMIT, DISTINCT ON, and rows that arrive ordered by the first column
SELECT pg_temp.same('SELECT * FROM gs_later ORDER BY one, doc LIMIT ' || n, 'SELECT * FROM gs_later ORDER BY one, doc, id LIMIT ' || n),
	   pg_temp.same('SELECT * FROM gs_later ORDER BY several, body DESC LIMIT ' || n, 'SELECT * FROM gs_later ORDER BY several, body DESC, id LIMIT ' || n),
	   pg_temp.same('SELECT * FROM gs_later ORDER BY few, number LIMIT ' || n, 'SELECT * FROM gs_later ORDER BY few, number, id LIMIT ' || n)
FROM unnest('{1,10,900,2999}'::int[]) n;
SELECT c, pg_temp.same(format('SELECT DISTINCT ON (%s) * FROM gs_later ORDER BY %1$s, doc DESC, word COLLATE pg_temp.unicode', c),
					   format('SELECT DISTINCT ON (%s) * FROM gs_later ORDER BY %1$s, doc DESC, word COLLATE pg_temp.unicode, id', c))
FROM unnest('{one,two,several,few}'::text[]) c;

-- distinct first columns, two, 20 and 1,000 rows that tie; one column after another that has to be keyed; whole rows
-- of some orders, since the values in TOAST take long
SELECT count(*) AS orders, count(*) FILTER (WHERE NOT pg_temp.rows_ok('gs_later', o, CASE a WHEN 'two' THEN '*' ELSE 'id' END)) AS wrong
FROM unnest('{one,two,several,few,"few, one","few, several DESC","few, number","number, several","few, list, number"}'::text[]) a,
	 unnest('{body,doc DESC,"number NULLS FIRST",list DESC,"word COLLATE pg_temp.unicode","doc, body","list, word COLLATE \"C\", one","number DESC, few, doc"}'::text[]) b,
	 concat_ws(', ', a, b) o;
-- with little memory, in runs and their merge
SET work_mem = '64kB';
SELECT count(*) AS orders, count(*) FILTER (WHERE NOT pg_temp.rows_ok('gs_later', o, CASE a WHEN 'two' THEN '*' ELSE 'id' END)) AS wrong
FROM unnest('{one,two,several,few,"few, number"}'::text[]) a, unnest('{body DESC,doc,list,"word COLLATE pg_temp.unicode, number"}'::text[]) b, concat_ws(', ', a, b) o;
RESET work_mem;
SET work_mem = '64MB';

-- the choice, and its place in EXPLAIN
SET gpusort.engine = cpu;
SELECT o, f ->> 'Key Columns' AS key_columns, f -> 'Rows Ordered by Comparison' AS compared
FROM unnest('{"one, doc","one, few, doc","few, one, doc","two, doc","few, doc","few, number","few, number, body","several, list, number","one","doc"}'::text[]) o,
	 pg_temp.figures('SELECT * FROM gs_later ORDER BY ' || o) f;
-- also if the first rows are not like the others
SELECT o, f ->> 'Key Columns' AS key_columns
FROM unnest('{"id / 700, doc","least(id, 1500), doc","greatest(id, 1500), doc"}'::text[]) o, pg_temp.figures('SELECT * FROM gs_later ORDER BY ' || o) f;
SELECT o, pg_temp.rows_ok('gs_later', o) FROM unnest('{"id / 700, doc","least(id, 1500), doc","greatest(id, 1500), doc"}'::text[]) o;
-- rows that arrive in order get none
SELECT f ->> 'Sort Method' AS method, f -> 'Packed Key Bits' AS bits FROM pg_temp.figures('SELECT * FROM gs_later ORDER BY id, doc') f;
SELECT pg_temp.analyze('SELECT id FROM gs_later ORDER BY one, doc');
-- few rows: the first column decides without a key
RESET gpusort.force;
SELECT q, gpusort <= postgres + 3 AS no_more_pages FROM unnest('{"SELECT id FROM gs_later WHERE id < 60 ORDER BY one, body"}'::text[]) q, pg_temp.pages(q);
SELECT pg_temp.left_behind();
DROP TABLE gs_later;
