-- Text under collations of the C library: sorted by strxfrm(), verified by strcoll().
-- Needs the locales en_US.UTF-8, de_DE.UTF-8 and cs_CZ.UTF-8, and a database in UTF8.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

CREATE FUNCTION pg_temp.has_locale(name text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE COLLATION gs_try (provider = libc, locale = %L)', name);
	DROP COLLATION gs_try;
	RETURN true;
EXCEPTION WHEN undefined_object OR invalid_parameter_value THEN
	RETURN false;
END $$;
SELECT NOT bool_and(pg_temp.has_locale(l)) AS no_locales FROM unnest('{en_US.UTF-8,de_DE.UTF-8,cs_CZ.UTF-8,C.UTF-8}'::text[]) l \gset
\if :no_locales
\echo skipped: not all of the locales en_US.UTF-8, de_DE.UTF-8 and cs_CZ.UTF-8 are there
\quit
\endif
SET gpusort.debug_plan = on;
CREATE COLLATION gs_en (provider = libc, locale = 'en_US.UTF-8');
CREATE COLLATION gs_de (provider = libc, locale = 'de_DE.UTF-8');
CREATE COLLATION gs_cs (provider = libc, locale = 'cs_CZ.UTF-8');
CREATE COLLATION gs_bytes (provider = libc, locale = 'C.UTF-8');
CREATE TEMP TABLE t (id int, s text COLLATE gs_en, c char(3) COLLATE gs_en, b text COLLATE gs_bytes);
INSERT INTO t SELECT id, w, w, w FROM unnest('{b,B,a,A,ä,z,Z,"",aa,a-b,ab}'::text[]) WITH ORDINALITY x(w, id);

EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY s;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY id % 2, c DESC, b;
SET gpusort.libc_collations = off;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY s;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY id % 2, b;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY s COLLATE "C", s USING ~<~;
SET gpusort.libc_collations = verify;
SELECT string_agg(s, ' ') FROM (SELECT s FROM t ORDER BY s OFFSET 0) x;
SELECT string_agg(s, ' ') FROM (SELECT s FROM t ORDER BY c DESC, id OFFSET 0) x;
SELECT string_agg(b, ' ') FROM (SELECT b FROM t ORDER BY b OFFSET 0) x;

-- words that differ, or do not, at the strengths of the collations
CREATE TEMP TABLE words AS SELECT w FROM unnest(ARRAY[
	'', ' ', 'a', 'A', 'ä', 'Ä', 'á', 'a ', ' a', 'a-b', 'ab', 'a b', 'Ab', 'aB', 'AB', 'a_b', 'æ', 'ae', 'aé', 'ae' || chr(769), 'ß', 'ss', 'SS', 'ſ',
	'cote', 'coté', 'côte', 'côté', 'c', 'ch', 'cz', 'd', 'h', 'CH', 'hi', 'cH', 'ach', 'ac', 'ah', 'chch', 'č', 'ř',
	'1', '2', '10', '010', '1.5', '-1', 'a1', '日本', '日', '本', '😀', '𐀀', 'ﬀ', 'ff', 'İ', 'i', 'I', 'ı', '--', '-', '_', '.', ',', '...',
	E'\x01', E'a\x01', E'\x7f', E'\t', '~', '!', '(a)', '12345678', '123456789', '1234567ä', 'x' || repeat(' ', 20), 'x',
	repeat('long common prefix ', 5) || 'a', repeat('long common prefix ', 5) || 'A', repeat('long common prefix ', 5) || 'ä']) w;
SELECT setseed(0.43);
CREATE TEMP TABLE texts AS SELECT id, pg_temp.pick(w) || CASE WHEN id % 3 = 0 THEN pg_temp.pick(w) ELSE '' END AS w FROM generate_series(1, 600) id, (SELECT array_agg(w) AS w FROM words) x;
SELECT c, pg_temp.check_column(format('(SELECT id, w COLLATE %s AS s FROM texts) x', c), 's')
FROM unnest(ARRAY['gs_en','gs_de','gs_cs','gs_bytes','"default"']) c;
SELECT c, pg_temp.check_column(format('(SELECT id, w::char(12) COLLATE %s AS s FROM texts) x', c), 's'),
	   pg_temp.check_column(format('(SELECT id, w::varchar(3) COLLATE %s AS s FROM texts) x', c), 's'),
	   pg_temp.check_column(format('(SELECT id, left(w, 60)::name COLLATE %s AS s FROM texts) x', c), 's')
FROM unnest('{gs_en,gs_cs,gs_bytes}'::text[]) c;

-- bounds of ranges; the collation belongs to the range type
CREATE TYPE gs_text_range AS RANGE (subtype = text, collation = gs_en);
CREATE TEMP TABLE ranges AS SELECT id, gs_text_range(left(w, 1), CASE WHEN id % 5 > 0 THEN w || 'zz' END) AS r FROM texts
WHERE left(w, 1) COLLATE gs_en <= w || 'zz';
SELECT pg_temp.check_column('ranges', 'r'), pg_temp.check_column('(SELECT id, gs_text_multirange(r) AS m FROM ranges) x', 'm'),
	   pg_temp.check_column('(SELECT id, ARRAY[r, gs_text_range(lower(r), NULL)] AS a FROM ranges) x', 'a');

-- before and after other columns; the same column twice; a domain; toasted values
CREATE DOMAIN gs_word AS text COLLATE gs_en;
CREATE TEMP TABLE more AS SELECT id, id % 7 AS k, left(w, 1) COLLATE gs_en AS few, left(w, 2) COLLATE gs_de AS two,
	w::gs_word AS d, CASE WHEN id % 6 = 0 THEN repeat(w, 400) ELSE w END COLLATE gs_en AS long FROM texts;
SELECT o, pg_temp.rows_ok('more', o)
FROM unnest(ARRAY['k, few', 'few, k DESC', 'few DESC NULLS LAST, two, k', 'two, few, d DESC', 'd', 'd, d DESC', 'd COLLATE "C", few', 'lower(d), few DESC',
				  'long, id', 'long DESC, k, id', 'k, long, id', 'd COLLATE gs_bytes, d', 'ARRAY[few, two, d] COLLATE gs_en', 'k, ARRAY[two, NULL, few] COLLATE gs_cs DESC, id', 'ARRAY[d::bpchar, few::bpchar] COLLATE gs_bytes']) o;
SELECT pg_temp.rows_ok('(SELECT id, (upper(few) || two) COLLATE gs_en AS s, d FROM more OFFSET 0) x', 's DESC, d');

-- many rows: random characters, a long common prefix
SELECT setseed(0.44);
CREATE TEMP TABLE many AS SELECT id,
	(SELECT coalesce(string_agg(chr(32 + (random() * random() * CASE id % 3 WHEN 0 THEN 60 WHEN 1 THEN 400 ELSE 9000 END)::int + g % 1), ''), '')
	 FROM generate_series(1, (random() * 14 + id % 2)::int) g) AS s
FROM generate_series(1, 5000) id;
SELECT count(DISTINCT s) > 3000 AS many FROM many;
SELECT c, pg_temp.rows_ok('many', format('s COLLATE %s', c)), pg_temp.rows_ok('many', format('s COLLATE %s DESC', c)),
	   pg_temp.rows_ok('many', format('left(s, 1) COLLATE %s, id %% 10, s', c)),
	   pg_temp.rows_ok('many', format('(repeat(''beginning '', 9) || s) COLLATE %s', c))
FROM unnest('{gs_en,gs_de,gs_cs,gs_bytes}'::text[]) c;

-- texts that strxfrm() of glibc 2.36 orders differently than strcoll()
CREATE TEMP TABLE disagreed AS SELECT row_number() OVER () AS id, w COLLATE gs_en AS w
FROM unnest(ARRAY['[/$=C]', '[ /$''=C#-,!#,]', '[0!I]', '[:-"+0I /]', '[5#F#!]', '[5F]']) w, generate_series(1, 9) g;
SELECT o, pg_temp.rows_ok('disagreed', o) FROM unnest('{w,"w DESC","id % 2, w","w DESC, id % 2"}'::text[]) o;

-- more than work_mem
CREATE TEMP TABLE hex AS SELECT id, md5((id % 3000)::text) AS s FROM generate_series(1, 5000) id;
SET work_mem = '256kB';
SELECT c, pg_temp.rows_ok('hex', format('s COLLATE %s, id %% 10', c)), pg_temp.rows_ok('hex', format('id %% 10, s COLLATE %s DESC', c))
FROM unnest('{gs_en,gs_cs,gs_bytes}'::text[]) c;
SELECT pg_temp.rows_ok('many', 's COLLATE pg_temp.unicode, id % 10');
SET gpusort.collation_fault = on;
SELECT pg_temp.rows_ok('many', 's COLLATE gs_en, id'), pg_temp.rows_ok('many', 'id % 10, s COLLATE gs_bytes, id');
SET gpusort.collation_fault = off;
RESET work_mem;

-- verification: n - 1 comparisons of n rows; none where bytes are compared
SELECT c, f -> 'Collation Verification Comparisons' AS compared, f ->> 'Engine' <> 'postgres' AS taken_over
FROM unnest(ARRAY['gs_en','gs_bytes','"C"']) c, pg_temp.figures(format('SELECT * FROM texts ORDER BY w COLLATE %s', c)) f;
SELECT f -> 'Collation Verification Comparisons' AS compared FROM pg_temp.figures('SELECT s FROM t WHERE id = 1 ORDER BY s') f;
SELECT f -> 'Collation Verification Comparisons' AS compared FROM pg_temp.figures('SELECT s FROM t WHERE id = 0 ORDER BY s') f;

-- keys assembled from those of characters: short words of capitals, accents, digraphs,
-- punctuation and ignored characters, in an order that strcoll() confirms
CREATE TEMP TABLE alphabets AS SELECT n, l AS letters FROM (VALUES
	(1, ARRAY['a', 'A', 'z', 'Z', '-', '_', ' ', '']), (2, ARRAY['e', 'é', 'E', 'É', '-', '.', '"', 'x']),
	(3, ARRAY['c', 'h', 'C', 'H', 'x', 'z', 'ě', ' ']), (4, ARRAY['a', 'ß', 'ss', 'ae', 'ä', E'\x01', E'\x7f', '–'])) x(n, l);
CREATE TEMP TABLE spelt AS SELECT row_number() OVER (ORDER BY hashtext(w)) AS id, n, w
FROM (SELECT DISTINCT n, a || b || c || d AS w FROM alphabets, unnest(letters) a, unnest(letters) b, unnest(letters) c, unnest('{"",A,-}'::text[]) d) x;
SELECT n, c, f ->> 'Engine' <> 'postgres' AND NOT f ? 'Collation Verification Retries' AS agrees, pg_temp.rows_ok(format('(SELECT * FROM spelt WHERE n = %s) x', n), format('w COLLATE %s', c))
FROM generate_series(1, 4) n, unnest('{gs_en,gs_de,gs_cs}'::text[]) c,
	pg_temp.figures(format('SELECT * FROM spelt WHERE n = %s ORDER BY w COLLATE %s', n, c)) f;

-- keys of the beginnings of long texts, also of letters and punctuation that are not ASCII; more of it where many begin alike
CREATE TEMP TABLE sentences AS SELECT id,
	(SELECT string_agg((ARRAY['the', 'Data', 'Größe', '«naïve»', 'ž–', '’s', 'Äpfel', 'co' || chr(776) || 'operate', 'chata', 'ČAS', 'ch', '日本'])[1 + (hashint8extended(id * 50 + g, 7) & 1048575) % 12], ' ') FROM generate_series(1, 60) g) AS s
FROM generate_series(1, 3000) id;
SELECT c, pg_temp.rows_ok('sentences', format('s COLLATE %s, id %% 3', c)), pg_temp.rows_ok('sentences', format('left(s, 1 + id %% 70) COLLATE %s DESC, id %% 3', c)),
	   pg_temp.rows_ok('sentences', format('(''Größenordnung – wie üblich, und länger'' || left(s, 1 + id %% 300)) COLLATE %s, id %% 3 DESC', c))
FROM unnest('{gs_en,gs_de,gs_cs}'::text[]) c;
SET gpusort.engine = cpu;
SELECT c, f ? 'Collation Verification Retries' AS wrong, f ->> 'Sort Space Type' = 'Memory' AND (f -> 'Sort Space Used')::int < 1.25 * (g -> 'Sort Space Used')::int AS short
FROM unnest('{gs_en,gs_de,gs_cs}'::text[]) c, pg_temp.figures(format('SELECT * FROM sentences ORDER BY s COLLATE %s, id', c)) f, pg_temp.figures('SELECT * FROM sentences ORDER BY s COLLATE "C", id') g;
SET work_mem = '256kB';
SELECT c, pg_temp.rows_ok('sentences', format('s COLLATE %s, id %% 3', c)), pg_temp.rows_ok('sentences', format('(''Größenordnung – wie üblich, und länger'' || s) COLLATE %s', c))
FROM unnest('{gs_en,gs_de,gs_cs}'::text[]) c;
RESET work_mem;
SET gpusort.engine = :engine;

-- few different texts get dictionary codes and need no verification;
-- this is known before rows move to a device
SET gpusort.device_min_rows = 1000;
CREATE FUNCTION pg_temp.codes(from_what text, o text, OUT dictionary_texts text, OUT proven boolean, OUT ok text) LANGUAGE sql AS $$
	SELECT f ->> 'Dictionary Entries', f ? 'Collation Verification Comparisons', pg_temp.rows_ok(from_what, o) FROM pg_temp.figures(format('SELECT * FROM %s ORDER BY %s', from_what, o)) f
$$;
CREATE TEMP TABLE few AS SELECT id, p COLLATE gs_en AS p, p::char(20) COLLATE gs_de AS c, p::name COLLATE gs_en AS n, p COLLATE gs_bytes AS b,
	CASE WHEN id % 9 > 0 THEN repeat(p, id % 2 * 350 + 1) END COLLATE gs_cs AS long, id % 4 AS k, chr(97 + id * 7 % 26) COLLATE gs_en AS letter
FROM generate_series(1, 3000) id, LATERAL (SELECT (ARRAY['1-URGENT', '2-high', '2-HIGH', '3 medium', '3-MEDIUM', 'ä', '', 'a', 'A'])[1 + id % 1009 * 31 % 9] AS p) x;
SELECT o, c.* FROM unnest(ARRAY['p', 'p DESC, id', 'c', 'n DESC', 'b', 'long', 'long DESC NULLS LAST', 'letter, p', 'k, p DESC', 'p, k, id DESC', 'k DESC, letter DESC, c',
								'p, md5(id::text) COLLATE gs_en', 'p, ARRAY[p]', 'p, letter COLLATE "C"']) o, pg_temp.codes('few', o) c;
-- more distinct texts later than there are codes; not in random order; in order; too few rows
CREATE TEMP TABLE later AS SELECT id, CASE WHEN id < 2000 THEN id % 7 ELSE id END::text COLLATE gs_en AS s FROM generate_series(1, 3000) id;
SELECT o, c.* FROM unnest('{s,s DESC}'::text[]) o, pg_temp.codes('later', o) c;
SELECT pg_temp.codes(format('(SELECT id, lpad((%s)::text, 3, ''0'') COLLATE gs_en AS s FROM generate_series(1, 3000) id) x', e), 's') AS codes, e
FROM unnest(ARRAY['id * 7 % 200', 'id % 200', '200 - id % 200', 'CASE id % 2 WHEN 0 THEN id / 2 % 8 ELSE 16 - id / 2 % 8 END', 'CASE id % 2 WHEN 0 THEN id / 2 % 60 ELSE 120 - id / 2 % 60 END', 'id / 20']) e;
SELECT pg_temp.codes('(SELECT * FROM few LIMIT 500) x', 'p');
-- in runs, with dictionary codes; without them once there are too many
SET work_mem = '512kB';
CREATE TEMP TABLE more_of_few AS SELECT id + g * 3000 AS id, p, n, k, letter FROM few, generate_series(0, 3) g ORDER BY 1;
SELECT o, c.* FROM unnest('{"p, k","letter DESC"}'::text[]) o, pg_temp.codes('more_of_few', o) c;
-- the codes are not in the files: they are made again
SELECT (pg_temp.figures('SELECT * FROM more_of_few ORDER BY p') ->> 'Sort Space Used')::int <= 1.02 * (pg_temp.figures('SELECT * FROM more_of_few ORDER BY k') ->> 'Sort Space Used')::int AS no_codes_on_disk;
CREATE TEMP TABLE much_later AS SELECT id, repeat('x', 100) AS pad, CASE WHEN id < 8000 THEN id % 7 ELSE id END::text COLLATE gs_en AS s FROM generate_series(1, 10000) id;
SELECT o, c.* FROM unnest('{s,"s DESC, id"}'::text[]) o, pg_temp.codes('much_later', o) c;
RESET work_mem;
SET gpusort.device_min_rows = 0;

-- keys that do not agree with strcoll(): detected and corrected
SET gpusort.collation_fault = on;
-- by the CPU engine, also after a device
SELECT c, f -> 'Collation Verification Retries' = '1' AND (:'engine' = 'cpu' OR f ->> 'Device Not Used' = 'strxfrm() and strcoll() disagree') AS put_right,
	   (f -> 'Collation Verification Comparisons')::int BETWEEN 1 AND 598 AS compared
FROM unnest('{gs_en,gs_bytes}'::text[]) c, pg_temp.figures(format('SELECT * FROM texts ORDER BY w COLLATE %s', c)) f;
SELECT f ->> 'Engine' <> 'postgres' AND NOT f ? 'Collation Verification Retries' AS proven FROM pg_temp.figures('SELECT * FROM texts WHERE w ~ ''^[0-9]*$'' ORDER BY w COLLATE gs_en') f;
SELECT o, pg_temp.rows_ok('more', o) FROM unnest('{"few, id","k, d, id","long, id","ARRAY[d, few], id"}'::text[]) o;
SELECT o, pg_temp.rows_ok('ranges', o) FROM unnest('{"r, id","r DESC, id"}'::text[]) o;
SELECT c, pg_temp.rows_ok('many', format('s COLLATE %s, id', c)) FROM unnest('{gs_en,gs_cs,gs_bytes}'::text[]) c;
-- equal rows stay in input order
CREATE TEMP TABLE tied AS SELECT id, CASE id % 2 WHEN 0 THEN 'A' ELSE 'b' END || id * 7919 % 40 AS s FROM generate_series(1, 3000) id;
SELECT pg_temp.rows_ok('tied', 's COLLATE gs_en'), pg_temp.rows_ok('tied', 'id % 3, s COLLATE gs_cs DESC');
-- backward, and again from the start
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT s FROM t ORDER BY s, id;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
MOVE ABSOLUTE 0 FROM c;
FETCH 1 FROM c;
ROLLBACK;
-- with little memory
SET work_mem = '64kB';
SELECT pg_temp.rows_ok('many', 's COLLATE gs_en');
-- each run is in order, but not two rows of different runs: noticed while they are merged
CREATE TEMP TABLE halves AS SELECT i AS id, lpad((i * 4801 % 8000)::text, 4, '0') || CASE i WHEN 4321 THEN 'A' WHEN 12321 THEN 'b' ELSE '' END AS s
FROM generate_series(0, 15999) i;
SELECT pg_temp.rows_ok('halves', 's COLLATE gs_en, id'), pg_temp.rows_ok('halves', 's COLLATE gs_en DESC, id');
SELECT o, CASE :'engine' WHEN 'cpu' THEN (f -> 'Runs')::int > 2 AND (f -> 'Collation Verification Retries')::int > 0 ELSE true END AS put_right
FROM unnest('{"","DESC"}'::text[]) o, pg_temp.figures(format('SELECT * FROM halves ORDER BY s COLLATE gs_en %s', o)) f;
SET gpusort.collation_fault = off;
SELECT o, CASE :'engine' WHEN 'cpu' THEN (f -> 'Runs')::int > 2 AND NOT f ? 'Collation Verification Retries' ELSE true END AS right
FROM unnest('{"","DESC"}'::text[]) o, pg_temp.figures(format('SELECT * FROM halves ORDER BY s COLLATE gs_en %s', o)) f;
SELECT pg_temp.rows_ok('halves', 's COLLATE gs_en, id');
RESET work_mem;
-- below a LIMIT: no row is dropped by a key that is only approximate
CREATE FUNCTION pg_temp.firsts(n int, o text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ids text;
BEGIN
	EXECUTE format('SELECT md5(string_agg(id::text, '','')) FROM (SELECT id FROM halves ORDER BY %s LIMIT %s) x', o, n) INTO ids;
	RETURN ids;
END $$;
CREATE TEMP TABLE wanted (n int, o text, ids text);
SET gpusort.enabled = off;
INSERT INTO wanted SELECT n, o, pg_temp.firsts(n, o) FROM unnest('{1,10,999,2243,3999,9000,20000}'::int[]) n,
	unnest(ARRAY['s COLLATE gs_en, id', 's COLLATE gs_en DESC, id', 'id % 3, s COLLATE gs_bytes, id', 's COLLATE gs_cs DESC, id % 2, id', 'ARRAY[s COLLATE gs_en], id']) o;
RESET gpusort.enabled;
SELECT count(*), bool_and(ids = pg_temp.firsts(n, o)) AS same FROM wanted;
SET gpusort.collation_fault = on;
SELECT count(*), bool_and(ids = pg_temp.firsts(n, o)) AS same FROM wanted;
SET work_mem = '64kB';
SELECT count(*), bool_and(ids = pg_temp.firsts(n, o)) AS same FROM wanted;
RESET work_mem;
SET gpusort.collation_fault = off;
SELECT f ->> 'Sort Method' LIKE 'top-N%' AS top_n FROM pg_temp.figures('SELECT * FROM halves ORDER BY s COLLATE gs_en LIMIT 10') f;
-- few distinct texts at first, and after rows were dropped more than a dictionary holds: rows that were kept stay
CREATE TEMP TABLE late AS SELECT id, (CASE WHEN id <= 30000 THEN 'z' || id % 7 ELSE 'y' || 99999 - id END) COLLATE gs_en AS s FROM generate_series(1, 30600) id;
SELECT count(*), md5(string_agg(id::text, ',')) AS ids FROM (SELECT id FROM late ORDER BY s LIMIT 6000) x \gset
SET gpusort.enabled = off;
SELECT :count AS count, :'ids' = md5(string_agg(id::text, ',')) AS same FROM (SELECT id FROM late ORDER BY s, id LIMIT 6000) x;
RESET gpusort.enabled;
DROP TABLE late;
SELECT pg_temp.left_behind();

DROP TABLE t, more, ranges, disagreed, few, more_of_few, later, much_later;
DROP TYPE gs_text_range;
DROP DOMAIN gs_word;
DROP COLLATION gs_en, gs_de, gs_cs, gs_bytes;
