-- Collations for which ICU's comparison and its sort keys disagree, so that PostgreSQL
-- contradicts itself: a whole sort goes by the keys, and LIMIT and an index search by
-- comparisons.  Where ICU is mended, both are the same.  Needs a server built with ICU.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

\if :has_icu
\else
\echo skipped: the server or gpusort was built without ICU
\quit
\endif
SET client_min_messages = error;		-- ICU may contradict itself, which is a WARNING
CREATE COLLATION gs_digits_last (provider = icu, locale = 'en-u-kr-latn-digit');
CREATE COLLATION gs_digits_last_nd (provider = icu, locale = 'en-u-kr-latn-digit-ks-level2', deterministic = false);
CREATE COLLATION gs_currency_last (provider = icu, locale = 'en-u-kr-currency');
CREATE COLLATION gs_numbers (provider = icu, locale = 'da-u-kn-true');
CREATE COLLATION gs_normal (provider = icu, locale = 'nb-u-kk-true');
CREATE COLLATION gs_vietnamese (provider = icu, locale = 'vi');
CREATE COLLATION gs_ignoring (provider = icu, locale = 'en-u-ka-shifted');
CREATE COLLATION gs_thai (provider = icu, locale = 'th');
CREATE COLLATION gs_accents_last (provider = icu, locale = 'fr-CA');
DO $$ BEGIN		-- rules of a user, from 16 on
	EXECUTE format('CREATE COLLATION gs_rules (provider = icu, %s)', CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'locale = ''en-u-kb-true''' ELSE 'locale = ''und'', rules = ''&a < 9''' END);
END $$;
CREATE COLLATION gs_plain_numbers (provider = icu, locale = 'en-u-kn-true');
CREATE COLLATION gs_scripts (provider = icu, locale = 'en-u-kr-grek-cyrl-kf-upper');
CREATE TEMP TABLE collations AS SELECT c FROM unnest('{gs_digits_last,gs_digits_last_nd,gs_currency_last,gs_numbers,gs_normal,gs_vietnamese,gs_ignoring,gs_thai,gs_accents_last,gs_rules}'::text[]) c;

-- PostgreSQL's orders of a query's ids: by keys, and, without abbreviated keys, by comparisons.
CREATE FUNCTION pg_temp.ids(query text) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
	result int[];
BEGIN
	EXECUTE format('SELECT array_agg(id) FROM (%s) x', query) INTO result;
	RETURN result;
END $$;
CREATE FUNCTION pg_temp.is_one_of_two(query text, n int DEFAULT 1000000) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	got int[] := pg_temp.ids(query || ' LIMIT ' || n);
	whole int[] := pg_temp.ids(query || ' OFFSET 0');
	by_keys int[];
	compared int[];
BEGIN
	ASSERT pg_temp.gpusorts(query) = 1;
	PERFORM set_config('gpusort.enabled', 'off', false);
	by_keys := pg_temp.ids(query || ' OFFSET 0');
	compared := pg_temp.ids(query || ' LIMIT 1000000');
	PERFORM set_config('gpusort.enabled', 'on', false);
	RETURN (got = by_keys[:n] OR got = compared[:n]) AND (whole = by_keys OR whole = compared);
END $$;

-- Latin texts, whose comparisons are in no cycle; ties by id
SELECT setseed(0.43);
CREATE TEMP TABLE parts AS SELECT id, id % 7 AS k, CASE WHEN id % 50 > 0 THEN substr(md5(id::text), 1, 1 + id % 6) || CASE id % 9 WHEN 0 THEN '$' WHEN 1 THEN ' ' ELSE '' END END AS s FROM generate_series(1, 2000) id;
SELECT c, pg_temp.figures(format('SELECT * FROM parts ORDER BY s COLLATE %s, id', c)) ? 'Collation Verification Comparisons' AS verified
FROM (SELECT c FROM collations UNION ALL SELECT unnest(ARRAY['gs_scripts', 'gs_plain_numbers', '"und-x-icu"', '"el-x-icu"', '"ru-x-icu"'])) x ORDER BY c COLLATE "C";
SELECT pg_temp.figures('SELECT * FROM parts ORDER BY s COLLATE gs_digits_last, id')->>'Device Not Used' ~ 'ICU''s sort keys' IS NOT FALSE AS says_why;
CREATE TEMP TABLE few AS SELECT * FROM parts WHERE id <= 30;
SELECT c, bool_and(pg_temp.is_one_of_two(format('SELECT * FROM parts ORDER BY ' || o, c))) AS whole,
	   bool_and(pg_temp.is_one_of_two(format('SELECT * FROM parts ORDER BY ' || o, c), n)) AS top,
	   bool_and(pg_temp.is_one_of_two(format('SELECT * FROM few ORDER BY ' || o, c), n)) AS few
FROM collations, unnest(ARRAY['s COLLATE %s, id', 's COLLATE %s DESC NULLS LAST, id', 'k, s COLLATE %s, id', 'ARRAY[s, ''x''] COLLATE %s, id', 's::char(6) COLLATE %s, id', 's::name COLLATE %s, id']) o, unnest('{12,700}'::int[]) n GROUP BY c ORDER BY c COLLATE "C";
SET gpusort.force = off;				-- few rows are sorted without an engine
SET gpusort.min_rows = 0;
SELECT c, pg_temp.is_one_of_two(format('SELECT * FROM few ORDER BY s COLLATE %s, id', c), 12) AS few FROM collations ORDER BY c COLLATE "C";
RESET gpusort.min_rows;
SET gpusort.force = on;
SET work_mem = '64kB';
SELECT c, bool_and(pg_temp.is_one_of_two(format('SELECT id FROM parts ORDER BY s COLLATE %s %s, id', c, d), 700)) AS merged FROM collations, unnest('{ASC,DESC}'::text[]) d GROUP BY c ORDER BY c COLLATE "C";
SET work_mem = '64MB';

-- texts of all kinds, whose comparisons may be in cycles: each row is returned once, and in
-- PostgreSQL's order if that is the same by keys and by comparisons
CREATE TEMP TABLE hostile AS SELECT id, id % 3 AS k, (SELECT string_agg(substr(E'ж\u0416aAbz019 $-\u00e9\u0301\u0328\u034f\u0660\u0966\u0e41\u200b\u0001e\u4e00\u00f2\u031bo', 1 + (random() * random() * 26 + g * 0)::int, 1), '') FROM generate_series(1, 1 + id % 7) g) AS s FROM generate_series(1, 2400) id;
INSERT INTO hostile SELECT 2400 + id, 0, (SELECT string_agg(substr('жЖaA9', 1 + (random() * 4 + g * 0)::int, 1), '') FROM generate_series(1, 1 + id % 8) g) FROM generate_series(1, 2400) id;
CREATE FUNCTION pg_temp.has_all(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	got int[] := pg_temp.ids(query);
BEGIN
	ASSERT pg_temp.gpusorts(query) > 0;
	RETURN (SELECT array_agg(id ORDER BY id) FROM unnest(got) id) = (SELECT array_agg(id ORDER BY id) FROM hostile);
END $$;
CREATE TEMP TABLE queries AS SELECT c, format('SELECT * FROM hostile ORDER BY %s OFFSET 0', replace(o, '%s', c)) AS q FROM collations, unnest('{s COLLATE %s,"k, s COLLATE %s DESC","s COLLATE %s, id",ARRAY[s] COLLATE %s}'::text[]) o;
SELECT c, bool_and(pg_temp.has_all(q)) AS all FROM queries GROUP BY c ORDER BY c COLLATE "C";
SET work_mem = '64kB';
SELECT c, bool_and(pg_temp.has_all(q)) AS all FROM queries GROUP BY c ORDER BY c COLLATE "C";
SET work_mem = '64MB';
CREATE FUNCTION pg_temp.is_consistent(c text, first int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	q text := format('SELECT id FROM (SELECT * FROM hostile WHERE id %% 160 = %s OFFSET 0) x ORDER BY s COLLATE %s, id', first, c);
	by_keys int[];
	compared int[];
BEGIN
	PERFORM set_config('gpusort.enabled', 'off', false);
	by_keys := pg_temp.ids(q || ' OFFSET 0');
	compared := pg_temp.ids(q || ' LIMIT 1000000');
	PERFORM set_config('gpusort.enabled', 'on', false);
	IF by_keys <> compared THEN
		RETURN NULL;
	END IF;
	RETURN pg_temp.ids(q || ' OFFSET 0') = by_keys AND pg_temp.ids(q || ' LIMIT 9') = by_keys[:9];
END $$;
SELECT c, bool_and(pg_temp.is_consistent(c, first)) IS NOT FALSE AS consistent FROM collations, generate_series(0, 39) first GROUP BY c ORDER BY c COLLATE "C";

-- rows that arrive in the order of an index of PostgreSQL, which is that of keys
SET gpusort.enable_create_index = off;
CREATE INDEX by_keys ON hostile (s COLLATE gs_digits_last);
RESET gpusort.enable_create_index;
SET enable_sort = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT pg_temp.sorts('SELECT * FROM hostile ORDER BY s COLLATE gs_digits_last, id OFFSET 0') <> '', pg_temp.has_all('SELECT * FROM hostile ORDER BY s COLLATE gs_digits_last, id OFFSET 0');
RESET enable_sort;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP INDEX by_keys;

-- PostgreSQL's sort takes over after rows that abbreviated keys suit in its eyes only
CREATE TABLE taken_over AS SELECT id, chr(CASE WHEN p % 3 = 0 THEN 48 + p % 10 ELSE 97 + p % 26 END) || lpad(p::text, 7, '0') || repeat(chr(3585), 120) || id AS s
FROM (SELECT id, CASE WHEN id <= 640 OR id % 8 = 0 THEN id % 140 ELSE id END AS p FROM generate_series(1, 4000) id) x;
SELECT count(DISTINCT id) FROM (SELECT * FROM taken_over ORDER BY s COLLATE gs_digits_last OFFSET 0) x;
SET max_parallel_maintenance_workers = 0;
CREATE INDEX ON taken_over (s COLLATE gs_digits_last);
SET gpusort.verify = off;
CREATE INDEX ON taken_over (s COLLATE gs_digits_last);
SET gpusort.verify = on;
DROP TABLE taken_over;

-- indexes are built, and of Latin texts each is found
CREATE FUNCTION pg_temp.build(source text, workers int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	c text;
BEGIN
	EXECUTE format('CREATE TABLE built AS SELECT * FROM %s', source);
	EXECUTE format('ALTER TABLE built SET (parallel_workers = %s)', workers);
	FOREACH c IN ARRAY '{gs_digits_last,gs_digits_last_nd,gs_numbers}'::text[] LOOP
		EXECUTE format('CREATE INDEX ON built (s COLLATE %s)', c);
		EXECUTE format('CREATE UNIQUE INDEX ON built (k, s COLLATE %s DESC, id)', c);
	END LOOP;
	CREATE INDEX ordered ON built (s COLLATE gs_digits_last);
	REINDEX TABLE built;
	CLUSTER built USING ordered;
	RETURN count(*) FROM built;
END $$;
CREATE FUNCTION pg_temp.not_found(c text) RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
DECLARE
	n bigint;
BEGIN
	EXECUTE format('SELECT count(*) FROM parts WHERE s IS NOT NULL AND NOT EXISTS (SELECT FROM built WHERE s COLLATE %s = parts.s COLLATE %1$s AND id = parts.id)', c) INTO n;
	RETURN n;
END $$;
SET min_parallel_table_scan_size = 0;
SET max_parallel_maintenance_workers = 2;
SELECT pg_temp.build('parts', 0), pg_temp.not_found('gs_digits_last'), pg_temp.not_found('gs_digits_last_nd'), pg_temp.not_found('gs_numbers');
DROP TABLE built;
SELECT pg_temp.build('parts', 2), pg_temp.not_found('gs_digits_last'), pg_temp.not_found('gs_digits_last_nd'), pg_temp.not_found('gs_numbers');
DROP TABLE built;
SET maintenance_work_mem = '1MB';
SELECT pg_temp.build('hostile', 0);
DROP TABLE built;
SELECT pg_temp.build('hostile', 2);
DROP TABLE built;
SET gpusort.verify = off;
SELECT pg_temp.build('hostile', 2);

-- workers sort and merge
SET gpusort.verify = on;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET enable_indexscan = off;
SELECT pg_temp.nodes(q) ~ 'Gather Merge' AS parallel, pg_temp.has_all(q) FROM (SELECT 'SELECT * FROM built ORDER BY s COLLATE gs_digits_last, id OFFSET 0' AS q) x;
SET work_mem = '64kB';
SELECT pg_temp.nodes(q) ~ 'Gather Merge' AS parallel, pg_temp.has_all(q) FROM (SELECT 'SELECT * FROM built ORDER BY s COLLATE gs_digits_last, id OFFSET 0' AS q) x;
DROP TABLE built;

SELECT pg_temp.left_behind();
DROP COLLATION gs_digits_last, gs_digits_last_nd, gs_currency_last, gs_numbers, gs_normal, gs_vietnamese, gs_ignoring, gs_thai, gs_accents_last, gs_rules, gs_scripts, gs_plain_numbers;
