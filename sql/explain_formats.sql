-- EXPLAIN in its other formats: each number is a separate value.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\set engine cpu
\i :include

CREATE TEMP TABLE t AS SELECT id, (id * 37) % 100 AS k, id % 10 AS d, ('word ' || id % 7) COLLATE "C" AS s FROM generate_series(1, 1000) id;
ANALYZE t;
SELECT pg_temp.explain('COSTS OFF, FORMAT JSON', 'SELECT * FROM t ORDER BY s COLLATE "POSIX" DESC, k');
SELECT pg_temp.explain('COSTS OFF, FORMAT YAML', 'SELECT * FROM t ORDER BY s, k NULLS FIRST');
SELECT pg_temp.explain('COSTS OFF, FORMAT XML', 'SELECT * FROM t ORDER BY s, k DESC');

-- the properties of a sort
CREATE FUNCTION pg_temp.show_figures(query text) RETURNS TABLE (method text, used bool, space text, engine text, bits int, tails bool, tied bool, rows int)
LANGUAGE sql AS $$
	SELECT f ->> 'Sort Method', f -> 'Sort Space Used' > '0', f ->> 'Sort Space Type', f ->> 'Engine', (f -> 'Packed Key Bits')::int,
		   (f -> 'Keys Longer Than Prefix')::bool, f -> 'Rows Tied After First Sort' > '0', (f -> 'Sorted Rows')::int
	FROM pg_temp.figures(query) f
$$;
SELECT q, f.* FROM unnest(ARRAY['id', 'id DESC', 'k', 'k, id', 'd', 'd DESC, k', 's', 's, id', 'id WHERE id < 0', 'nullif(d, 0)',
	'd::float8', 's, k, d DESC', 'md5(s)::uuid', 'md5(s) COLLATE "C"', 'id % 2 = 0']) q,
	pg_temp.show_figures('SELECT * FROM t ' || CASE WHEN q ~ 'WHERE' THEN 'WHERE id < 0 ORDER BY id' ELSE 'ORDER BY ' || q END) f;
SELECT q, f.* FROM unnest(ARRAY['id', 'd', 'nullif(d, 0)', 'd::float8']) q, pg_temp.show_figures(format('SELECT %s FROM t ORDER BY %s', q, q)) f;
SELECT f.* FROM pg_temp.show_figures('SELECT * FROM t WHERE id <= 100 ORDER BY k') f;

-- each property once, with one value
SELECT key, jsonb_typeof(value) FROM pg_temp.figures('SELECT * FROM t ORDER BY md5(s) COLLATE "C", k') f, jsonb_each(f)
WHERE key NOT IN ('Plans', 'Device Not Used') ORDER BY key COLLATE "C";

-- no properties of the execution in a plan that was not run
SELECT f - 'Plans' FROM pg_temp.figures('SELECT * FROM (SELECT * FROM t ORDER BY d OFFSET 0) x WHERE (SELECT false)') f;
SELECT pg_temp.explain('COSTS OFF, FORMAT JSON', 'SELECT k FROM t ORDER BY k');

-- the text of XML and YAML under ANALYZE
CREATE FUNCTION pg_temp.properties(format text, query text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT btrim(regexp_replace(line, '(Space.Used\W{1,3})\d+', '\1N'))
	FROM pg_temp.explain('ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, FORMAT ' || format, query) line
	WHERE line ~ 'Provider|Sort|Engine>|Engine:|Key|Rows' AND line !~ 'Not Used'
$$;
SELECT pg_temp.properties('xml', 'SELECT * FROM t ORDER BY d DESC, s');
SELECT pg_temp.properties('yaml', 'SELECT * FROM t ORDER BY d DESC, s');
