-- Text under PostgreSQL's own collations, of versions 17 (C.UTF-8) and 18 (PG_UNICODE_FAST):
-- they compare bytes, so no row needs verification.  Needs a database in UTF8.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SELECT count(*) = 0 AS none FROM pg_collation WHERE collname = 'pg_c_utf8' \gset
\if :none
\echo skipped: needs PostgreSQL 17
\quit
\endif

SELECT setseed(0.17);
CREATE TEMP TABLE texts AS
SELECT id, pg_temp.pick(w) || CASE WHEN id % 3 = 0 THEN pg_temp.pick(w) ELSE '' END AS w
FROM generate_series(1, 600) id, (SELECT ARRAY[
	'', ' ', 'a', 'A', 'b', 'B', 'ä', 'Ä', 'ab', 'a-b', 'z', 'Z', '~', 'ß', 'ss', '10', '9', 'a' || chr(769), 'ﬀ', '日本', '😀', chr(65535),
	E'\x01', E'\x7f', repeat('long common prefix ', 5) || 'a', repeat('long common prefix ', 5) || 'A'] AS w) x;
SET gpusort.debug_plan = on;
SET gpusort.libc_collations = off;

-- all of them
CREATE COLLATION gs_builtin (provider = builtin, locale = 'C.UTF-8');
CREATE TEMP TABLE collations AS
SELECT quote_ident(collname) AS c FROM pg_collation
WHERE collname IN ('gs_builtin', 'pg_c_utf8', 'ucs_basic', 'pg_unicode_fast') AND collprovider = 'b';
SELECT count(*) = CASE WHEN current_setting('server_version_num')::int < 180000 THEN 3 ELSE 4 END AS is_complete FROM collations;
SELECT DISTINCT pg_temp.check_column(format('(SELECT id, w COLLATE %s AS s FROM texts) x', c), 's') FROM collations;
SELECT DISTINCT pg_temp.check_column(format('(SELECT id, w::varchar(3) COLLATE %s AS s FROM texts) x', c), 's') FROM collations;
SELECT DISTINCT f ? 'Collation Verification Comparisons' AS is_verified, f ->> 'Engine' <> 'postgres' AS is_sorted
FROM collations, pg_temp.figures(format('SELECT * FROM texts ORDER BY w COLLATE %s', c)) f;
SELECT bool_and(array_agg = bytes) AS as_bytes
FROM (SELECT array_agg(w ORDER BY w COLLATE "C") AS bytes FROM texts) x,
	 LATERAL (SELECT array_agg(w) FROM (SELECT w FROM texts ORDER BY w COLLATE gs_builtin OFFSET 0) y) z;

-- below a LIMIT, where rows could not be verified
SET gpusort.force = off;
SET gpusort.min_rows = 0;
SELECT pg_temp.same('SELECT w FROM texts ORDER BY w COLLATE gs_builtin LIMIT 20', 'SELECT w FROM texts ORDER BY w COLLATE "C" LIMIT 20');
SET gpusort.force = on;

-- an index
CREATE TABLE gs_texts AS TABLE texts;
CREATE INDEX gs_texts_w ON gs_texts (w COLLATE gs_builtin);
SET enable_seqscan = off;
SET enable_sort = off;
EXPLAIN (COSTS OFF) SELECT w FROM gs_texts ORDER BY w COLLATE gs_builtin;
SELECT array_agg(w) = (SELECT array_agg(w ORDER BY w COLLATE "C") FROM texts) AS as_bytes
FROM (SELECT w FROM gs_texts ORDER BY w COLLATE gs_builtin OFFSET 0) x;
DROP TABLE gs_texts;
DROP COLLATION gs_builtin;

-- as the collation of a database
CREATE DATABASE gs_builtin TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8';
SELECT current_database() AS database \gset
\c gs_builtin
\set ECHO none
\i :include
SELECT datlocprovider, datlocale FROM pg_database WHERE datname = current_database();
CREATE TEMP TABLE texts AS
SELECT id, md5(id::text) || chr(200 + id % 5) AS w FROM generate_series(1, 500) id;
SET gpusort.debug_plan = on;
SET gpusort.libc_collations = off;
SELECT pg_temp.check_column('texts', 'w');
SELECT f ? 'Collation Verification Comparisons' AS is_verified FROM pg_temp.figures('SELECT * FROM texts ORDER BY w') f;
\c :database
DROP DATABASE gs_builtin;
