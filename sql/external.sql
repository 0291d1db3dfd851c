-- Sorted runs in temporary files, and their merge: few rows, and even less memory.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\set engine cpu
\i :include

SET work_mem = '64kB';
SELECT setseed(0.25);
CREATE TEMP TABLE t AS SELECT id, (id * 7919) % 10007 AS k, nullif(id % 7, 0) AS n, ('word ' || hashint4(id) % 1000) COLLATE "C" AS s,
	CASE id % 11 WHEN 0 THEN NULL WHEN 1 THEN 'NaN'::float8 WHEN 2 THEN '-0' WHEN 3 THEN 0 ELSE hashint4(id) / 7 END AS f,
	hashint8extended(id, 1) AS b, date '2000-01-01' + hashint4(id) % 300 AS d, md5((id % 3000)::text)::uuid AS u,
	decode(repeat('00', id % 12), 'hex') AS z, make_interval(days => hashint4(id) % 100) AS i, hashint4(id) % 2 = 0 AS o,
	CASE WHEN id % 5 > 0 THEN repeat('a common prefix ', 3) || id % 97 END COLLATE "C" AS p,
	(repeat(' ', id % 9))::char(8) COLLATE "C" AS c, ('10.' || id % 3 || '.0.0/' || 8 + id % 20)::inet AS a
	FROM generate_series(1, 20000) id;

-- Sorted in runs, and as PostgreSQL sorts?
CREATE FUNCTION pg_temp.runs(query text, oracle text) RETURNS TABLE (method text, runs text, ok bool) LANGUAGE plpgsql AS $$
DECLARE
	f jsonb := pg_temp.figures(query);
BEGIN
	method := f ->> 'Sort Method';
	runs := CASE WHEN (f -> 'Runs')::int > 100 THEN '> 100' WHEN (f -> 'Runs')::int > 12 THEN '> 12' WHEN (f -> 'Runs')::int > 1 THEN '> 1' ELSE f ->> 'Runs' END
		|| CASE WHEN (f -> 'Intermediate Merges')::int > 0 THEN ', merges' ELSE '' END;
	ok := pg_temp.same(query, oracle);
	RETURN NEXT;
END $$;

-- whole rows, with ties, in both directions; NULLs on both sides; half of the orders of a column without NULLs
SELECT k, d, r.* FROM unnest('{id,k,n,s,f,b,d,u,z,i,o,p,c,a}'::text[]) WITH ORDINALITY k (k, n), unnest('{ASC,DESC,ASC NULLS FIRST,DESC NULLS LAST}'::text[]) WITH ORDINALITY d (d, m),
	pg_temp.runs(format('SELECT * FROM t ORDER BY %s %s', k, d), format('SELECT * FROM t ORDER BY %s %s, id', k, d)) r
WHERE k IN ('n', 'f', 'p') OR n % 2 = (m IN (2, 3))::int ORDER BY m, n;
SELECT k, r.* FROM unnest('{"n, s DESC, b","o DESC, p, f DESC NULLS LAST","p DESC, z, a","d, u, k","c, z DESC, n NULLS FIRST"}'::text[]) k,
	pg_temp.runs(format('SELECT * FROM t ORDER BY %s', k), format('SELECT * FROM t ORDER BY %s, id', k)) r;

-- one column alone, where the key is the whole row
SELECT k, d, r.* FROM unnest('{id,k,b,d,f,n}'::text[]) k, unnest('{ASC,DESC,ASC NULLS FIRST,DESC NULLS LAST}'::text[]) d,
	pg_temp.runs(format('SELECT %s FROM t ORDER BY %1$s %s', k, d), format('SELECT %s FROM t ORDER BY %1$s %s, id', k, d)) r;
SELECT r.* FROM pg_temp.runs('SELECT nullif(id, id) AS n FROM t ORDER BY 1', 'SELECT nullif(id, id) AS n FROM t') r;
SELECT r.* FROM pg_temp.runs('SELECT CASE WHEN id = 17 THEN id END AS n FROM generate_series(1, 20000) id ORDER BY 1',
							 'SELECT CASE WHEN id = 17 THEN id END AS n FROM generate_series(1, 20000) id ORDER BY 1') r;

-- input in order, in reverse order, in order except for the end; all equal, and every other row; rows in order are one run
SELECT k, r.* FROM unnest('{id,-id,"CASE id WHEN 20000 THEN 1 ELSE id END","7","id % 2","id / 100","-(id / 100)"}'::text[]) k,
	pg_temp.runs(format('SELECT * FROM (SELECT id, %s AS k, s FROM t OFFSET 0) x ORDER BY k', k),
				 format('SELECT * FROM (SELECT id, %s AS k, s FROM t OFFSET 0) x ORDER BY k, id', k)) r;

-- numbers of rows around one run, two runs, and as many runs as one merge takes
SELECT count(*), array_agg(n) FILTER (WHERE NOT pg_temp.rows_ok(format('(SELECT id, k, b FROM t WHERE id <= %s) x', n), 'k DESC')) AS wrong
FROM (SELECT generate_series(900, 1100, 5) UNION ALL SELECT generate_series(1800, 2000, 10) UNION ALL SELECT generate_series(10000, 12000, 100)) v(n);

-- rows of all lengths, some of them longer than work_mem; keys longer than work_mem
CREATE TEMP TABLE lengths AS SELECT id, hashint4(id) % 100 AS k,
	repeat('x', CASE id % 50 WHEN 0 THEN 50000 WHEN 1 THEN 100000 WHEN 2 THEN 4000 + id WHEN 3 THEN 8100 + id % 100 ELSE id % 300 END) AS w
	FROM generate_series(1, 1000) id;
SELECT k, r.* FROM unnest('{k,"k DESC, id","length(w), k"}'::text[]) k,
	pg_temp.runs(format('SELECT id, k, length(w), w || '''' AS w FROM lengths ORDER BY %s', k), format('SELECT id, k, length(w), w || '''' AS w FROM lengths ORDER BY %s, id', k)) r;
SELECT r.* FROM pg_temp.runs('SELECT id, (w || k) COLLATE "C" AS w FROM lengths ORDER BY 2 DESC', 'SELECT id, (w || k) COLLATE "C" AS w FROM lengths ORDER BY 2 DESC, id') r;
-- keys that are detoasted for comparisons, out of line and compressed
CREATE TABLE gs_external (id int, s text COLLATE "C", c text COLLATE "C");
ALTER TABLE gs_external ALTER s SET STORAGE EXTERNAL;
INSERT INTO gs_external SELECT id, repeat('x', 3000) || hashint4(id) % 50, repeat('y' || hashint4(id) % 30, 3000) FROM generate_series(1, 5000) id;
SELECT k, r.* FROM unnest('{"s, c DESC","c DESC, s","c, id DESC"}'::text[]) k,
	pg_temp.runs('SELECT id FROM gs_external ORDER BY ' || k, 'SELECT id FROM gs_external ORDER BY ' || k || ', ctid') r;
DROP TABLE gs_external;

-- in memory or in runs, depending on a parameter; abandoned; no rows
SELECT g, (SELECT md5(string_agg(x::text, ',')) = (SELECT md5(string_agg(t::text, ',' ORDER BY n, id)) FROM t WHERE id <= g)
		   FROM (SELECT * FROM t WHERE id <= g ORDER BY n OFFSET 0) x) AS ok
FROM unnest('{10,9000,0,20,20000,8000}'::int[]) g;
SELECT g, (SELECT max(id) FROM (SELECT * FROM t WHERE id > g ORDER BY n DESC, k LIMIT 15000) x) FROM generate_series(0, 2) g;
BEGIN;
DECLARE c NO SCROLL CURSOR FOR SELECT id, n FROM t ORDER BY n DESC;
FETCH 2 FROM c;
SELECT pg_temp.left_behind();
CLOSE c;
SELECT pg_temp.left_behind();
DECLARE c SCROLL CURSOR FOR SELECT id, n FROM t ORDER BY n DESC, id;
FETCH 2 FROM c;
FETCH LAST FROM c;
FETCH PRIOR FROM c;
FETCH FIRST FROM c;
COMMIT;
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT id, n FROM t ORDER BY n DESC, id;
COMMIT;
FETCH ABSOLUTE 19000 FROM h;
CLOSE h;

-- below a merge join, an aggregate, a window, a set operation, another sort
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
SELECT q, pg_temp.same(q, q) FROM unnest(ARRAY['SELECT count(*), sum(a.id), sum(b.id) FROM t a JOIN t b ON a.u = b.u AND a.k = b.k', 'SELECT count(*), sum(a.n) FROM t a LEFT JOIN t b ON a.b = b.b + 1']) q;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;
SET enable_hashagg = off;
SELECT q, pg_temp.same(q, q) FROM unnest(ARRAY['SELECT u, count(*) FROM t GROUP BY u', 'SELECT DISTINCT s, n FROM t', 'SELECT id, sum(id) OVER (PARTITION BY n ORDER BY k, id) FROM t ORDER BY id',
	'SELECT k FROM t INTERSECT SELECT id FROM t']) q;
RESET enable_hashagg;

-- temp_file_limit; nothing is left behind, and the next sort succeeds
\set VERBOSITY sqlstate
SET temp_file_limit = '100kB';
SELECT count(x) FROM (SELECT * FROM t ORDER BY s, k OFFSET 0) x;
SELECT pg_temp.left_behind();
SET temp_file_limit = '2MB';
SELECT count(x) FROM (SELECT * FROM t ORDER BY s, k OFFSET 0) x;
RESET temp_file_limit;
-- an error while rows are read, and while rows are returned
SELECT count(x) FROM (SELECT 1 / (id - 15000) AS d, * FROM t ORDER BY k OFFSET 0) x;
SELECT count(1 / (id - 15000)) FROM (SELECT * FROM t ORDER BY k OFFSET 0) x;
\set VERBOSITY default
SELECT pg_temp.left_behind();
SELECT count(*) FROM (SELECT * FROM t ORDER BY s, k OFFSET 0) x;

-- EXPLAIN: PostgreSQL's properties, and additional ones
SELECT regexp_replace(line, '[0-9]+(kB|$)', 'N\1') FROM pg_temp.explain('ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF', 'SELECT * FROM t ORDER BY k') line;
SELECT f - '{Sort Space Used,Runs,Plans}'::text[] AS figures, (f -> 'Sort Space Used')::int BETWEEN 150 AND 200 AS disk, (f -> 'Runs')::int > 5 AS runs
FROM pg_temp.figures('SELECT k FROM t ORDER BY k') f;
-- temporary blocks are counted as those of BufFiles
CREATE FUNCTION pg_temp.blocks(query text) RETURNS TABLE (read bool, written bool) LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ' || query INTO plan;
	read := (plan #> '{0,Plan,Temp Read Blocks}')::int > 200;
	written := (plan #> '{0,Plan,Temp Written Blocks}')::int > 200;
	RETURN NEXT;
END $$;
SELECT b.* FROM pg_temp.blocks('SELECT * FROM t ORDER BY k') b;
SELECT pg_temp.left_behind();

-- at most a tenth more disk space than PostgreSQL's sort, for rows of 70 bytes
SET work_mem = '1MB';
CREATE TEMP TABLE short_rows AS SELECT hashint8extended(id, 1) AS b, id, date '2000-01-01' + hashint4(id) % 300 AS d, left(md5(id::text), 12) COLLATE "C" AS s,
	left(md5(id::text), 12) COLLATE pg_temp.unicode AS icu, (id % 7)::text AS few, hashint4(id) % 1000000 / 100.0 AS n, md5(id::text)::uuid AS u, NULLIF(id % 3, 0) AS k
	FROM generate_series(1, 50000) id;
CREATE FUNCTION pg_temp.disk_kb(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) ' || query INTO plan;
	RETURN jsonb_path_query_first(plan, '$.**{0 to last} ? (@."Sort Space Type" == "Disk")."Sort Space Used"');
END $$;
CREATE FUNCTION pg_temp.takes_as_little(o text, source text DEFAULT 'short_rows', factor float8 DEFAULT 1.1) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
	query text := format('SELECT * FROM %s ORDER BY %s', source, o);
	kb int := pg_temp.disk_kb(query);
	plain_kb int;
BEGIN
	SET LOCAL gpusort.enabled = off;
	plain_kb := pg_temp.disk_kb(query);
	SET LOCAL gpusort.enabled = on;
	IF kb > factor * plain_kb THEN
		RAISE NOTICE '% kB for % kB', kb, plain_kb;
	END IF;
	RETURN kb <= factor * plain_kb;
END $$;
SELECT o, pg_temp.takes_as_little(o) FROM unnest('{b,s,"d, id, s","d DESC, b, u",icu,few,n,"n, k DESC, s","u, b"}'::text[]) o;
SELECT o, pg_temp.rows_ok('short_rows', o) FROM unnest('{b,"d DESC, b, u","n, k DESC, s"}'::text[]) o;

-- the same for keys of variable width, which are made again as a run is read
CREATE TEMP TABLE made_keys AS SELECT id, left(md5(id::text), 12) COLLATE pg_temp.unicode AS icu, (hashint8extended(id, 3)::numeric * 1000 + id % 1000) / 1000000 AS long_n,
	ARRAY[id % 100, hashint4(id)] AS ints, ARRAY[left(md5(id::text), 6), NULL] COLLATE pg_temp.unicode AS texts, int4range(hashint4(id) % 1000, 1000 + id) AS r, hashint4(id)::bit(32)::varbit AS v,
	chr(19968 + h) || chr(20968 + id % 999) COLLATE pg_temp.unicode AS han, chr(12353 + h % 80) || chr(12449 + id % 80) || chr(19968 + h) COLLATE pg_temp.unicode AS kana,
	chr(44032 + h) || chr(48032 + id % 999) COLLATE pg_temp.unicode AS hangul, chr(1569 + h % 26) || chr(1488 + id % 27) || chr(1377 + h % 38) || (id % 1000)::text COLLATE pg_temp.unicode AS arabic
	FROM generate_series(1, 30000) id, LATERAL (SELECT abs(hashint4(id) % 4000) AS h) x;
SELECT o, pg_temp.takes_as_little(o, 'made_keys'), pg_temp.rows_ok('made_keys', o, 'id') FROM unnest('{"icu, id","han, id","kana DESC, id","hangul, id","arabic, id","icu DESC, long_n","long_n, id","ints, id","texts DESC, id","r, id","v, id"}'::text[]) o;
-- characters of which ICU makes the keys: distinct texts, few texts, texts that begin alike
CREATE TEMP TABLE icu_keys AS SELECT id, (SELECT string_agg(chr(3585 + abs(hashint4(id + n)) % 46), '') FROM generate_series(1, 12) n) COLLATE pg_temp.unicode AS thai,
	repeat(chr(3585 + abs(hashint4(id)) % 40), 12) COLLATE pg_temp.unicode AS few, repeat(chr(2325), 12) || chr(2325 + id % 37) || (hashint4(id) % 1000)::text COLLATE pg_temp.unicode AS alike, repeat('x', 20) AS other
	FROM generate_series(1, 30000) id;
SELECT o, pg_temp.takes_as_little(o, 'icu_keys'), pg_temp.rows_ok('icu_keys', o, 'id') FROM unnest('{thai,"thai, id","thai DESC, few DESC, id","few, id","alike, id","few, alike DESC"}'::text[]) o;
-- truncated keys of values that have to be fetched: no run has the 1 kB of each
CREATE TEMP TABLE fetched (id int, t text COLLATE "C");
ALTER TABLE fetched ALTER t SET STORAGE EXTERNAL;
INSERT INTO fetched SELECT id, CASE WHEN id % 8 = 0 THEN md5((id % 80)::text) ELSE md5((id * 7)::text) END || repeat('t', 2500) || id % 3 FROM generate_series(1, 12000) id;
SET work_mem = '512kB';
SELECT o, pg_temp.takes_as_little(o, 'fetched', 2), pg_temp.rows_ok('fetched', o, 'id') FROM unnest('{t,"t DESC, id"}'::text[]) o;
SET work_mem = '1MB';
-- characters of which ICU makes the keys, from the first row on and only later; empty, equal and long keys
CREATE TEMP TABLE mixed AS SELECT id, CASE WHEN id % 50 = 0 THEN '' WHEN id % 1500 = 7 THEN repeat(chr(4304 + id % 7), 9000) WHEN id BETWEEN low AND 20000 THEN chr(4304 + id % 33) || left(md5((id % 900)::text), 6)
		ELSE left(md5(id::text), 6) END COLLATE pg_temp.unicode AS icu, k
	FROM generate_series(1, 30000) id, (VALUES (1), (10000)) v(low), LATERAL (SELECT low AS k) x;
SELECT k, pg_temp.rows_ok('(SELECT * FROM mixed WHERE k = ' || k || ') x', 'icu DESC, k') FROM unnest('{1,10000}'::int[]) k;
