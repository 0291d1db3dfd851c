-- Text under ICU collations: deterministic ones, which compare bytes if the collation
-- finds no difference, and nondeterministic ones.  Needs a server built with ICU.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

\if :has_icu
\else
\echo skipped: the server or gpusort was built without ICU
\quit
\endif
SET gpusort.debug_plan = on;
SET client_min_messages = warning;		-- from 16 on, a NOTICE says how ICU spells a locale
CREATE COLLATION gs_ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION gs_ignore_accents (provider = icu, locale = 'und-u-ks-level1-kc-true', deterministic = false);
CREATE COLLATION gs_numeric (provider = icu, locale = 'en-u-kn-true');
CREATE COLLATION gs_shifted (provider = icu, locale = 'en-u-ka-shifted');
CREATE COLLATION gs_shifted_nd (provider = icu, locale = 'en-u-ka-shifted', deterministic = false);
CREATE COLLATION gs_upper_first (provider = icu, locale = 'en-u-kf-upper');
CREATE COLLATION gs_phonebook (provider = icu, locale = 'de-u-co-phonebk');
CREATE COLLATION gs_identical (provider = icu, locale = 'und-u-ks-identic');
CREATE COLLATION gs_backwards (provider = icu, locale = 'fr-CA-u-kb-true');
CREATE COLLATION gs_czech (provider = icu, locale = 'cs');
CREATE COLLATION gs_c FROM "C";
RESET client_min_messages;
CREATE TEMP TABLE t (id int, s text COLLATE "und-x-icu", i text COLLATE gs_ignore_case, c text COLLATE "C", b char(3) COLLATE "und-x-icu");
INSERT INTO t SELECT id, w, w, w, w FROM unnest('{b,B,a,A,ä,z,Z,"",aa}'::text[]) WITH ORDINALITY x(w, id);

EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY s;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY c, id, i DESC;
EXPLAIN (COSTS OFF) SELECT * FROM t ORDER BY s COLLATE "C", b COLLATE "POSIX" DESC, i COLLATE gs_c, s COLLATE "ucs_basic";

SELECT string_agg(s, ' ') FROM (SELECT s FROM t ORDER BY s OFFSET 0) x;
SELECT string_agg(s, ' ') FROM (SELECT s FROM t ORDER BY s COLLATE "C" OFFSET 0) x;
SELECT string_agg(s, ' ') FROM (SELECT s FROM t ORDER BY s USING ~>~ OFFSET 0) x;
SELECT string_agg(i, ' ') FROM (SELECT i FROM t ORDER BY i OFFSET 0) x;
SELECT string_agg(i, ' ') FROM (SELECT i FROM t ORDER BY i DESC, id OFFSET 0) x;
SELECT string_agg(i, ' ') FROM (SELECT i FROM t ORDER BY i COLLATE "C" OFFSET 0) x;
SELECT string_agg(i, ' ') FROM (SELECT DISTINCT i COLLATE "C" AS i FROM t ORDER BY 1) x;
SELECT count(DISTINCT i), count(DISTINCT i COLLATE "C") FROM t;
SELECT pg_temp.rows_ok('t', 's COLLATE "C"'), pg_temp.rows_ok('t', 'i COLLATE "C" DESC, id'),
	   pg_temp.rows_ok('t', 'id % 2, s COLLATE "C"'), pg_temp.keys_ok('t', 'i COLLATE "C"', 'i COLLATE "C"');

-- equality under a nondeterministic collation above a sort by it
SET enable_hashagg = off;
SELECT pg_temp.sorts('SELECT i, count(*) FROM t GROUP BY i'), pg_temp.sorts('SELECT c, count(*) FROM t GROUP BY c');
SELECT i, count(*) FROM t GROUP BY i ORDER BY i;
SELECT a.i, b.i FROM t a JOIN t b ON a.i = b.i WHERE a.id < b.id ORDER BY a.i;

-- words that differ, or do not, at the strengths of the collations
CREATE TEMP TABLE words AS SELECT w FROM unnest(ARRAY[
	'', ' ', 'a', 'A', 'ä', 'Ä', 'á', 'a ', ' a', 'a-b', 'ab', 'a b', 'Ab', 'aB', 'AB', 'a_b', 'æ', 'ae', 'aé', 'ae' || chr(769), 'ß', 'ss', 'SS', 'ſ',
	'cote', 'coté', 'côte', 'côté', 'c', 'ch', 'cz', 'd', 'h', 'CH', 'hi', 'résumé', 'Resume', 'resume', 'RÉSUMÉ',
	'1', '2', '10', '010', '1.5', '-1', 'a1', 'a2', 'a10', 'a01', '日本', '日', '本', '😀', '𐀀', 'ﬀ', 'ff', 'İ', 'i', 'I', 'ı',
	E'\x01', E'a\x01', E'\x7f', E'\t', '~', '!', '(a)', '12345678', '123456789', '1234567ä', 'x' || repeat(' ', 20), 'x',
	repeat('long common prefix ', 5) || 'a', repeat('long common prefix ', 5) || 'A', repeat('long common prefix ', 5) || 'ä']) w;
SELECT setseed(0.41);
CREATE TEMP TABLE texts AS SELECT id, pg_temp.pick(w) || CASE WHEN id % 3 = 0 THEN pg_temp.pick(w) ELSE '' END AS w FROM generate_series(1, 600) id, (SELECT array_agg(w) AS w FROM words) x;
SELECT c, pg_temp.check_column(format('(SELECT id, w COLLATE %s AS s FROM texts) x', c), 's')
FROM unnest(ARRAY['"und-x-icu"','"en-x-icu"','gs_ignore_case','gs_ignore_accents','gs_numeric','gs_shifted','gs_shifted_nd','gs_upper_first','gs_phonebook','gs_identical','gs_backwards','gs_czech']) c;
SELECT c, pg_temp.check_column(format('(SELECT id, w::char(12) COLLATE %s AS s FROM texts) x', c), 's'),
	   pg_temp.check_column(format('(SELECT id, w::varchar(3) COLLATE %s AS s FROM texts) x', c), 's')
FROM unnest(ARRAY['"en-x-icu"','gs_ignore_case','gs_numeric']) c;
SELECT c, pg_temp.check_column(format('(SELECT id, left(w, 60)::name COLLATE %s AS s FROM texts) x', c), 's')
FROM unnest(ARRAY['"en-x-icu"','gs_ignore_case']) c;

-- bounds of ranges; the collation belongs to the range type
CREATE TYPE gs_text_range AS RANGE (subtype = text, collation = "en-x-icu");
CREATE TEMP TABLE ranges AS SELECT id, gs_text_range(left(w, 1), CASE WHEN id % 5 > 0 THEN w || 'zz' END) AS r FROM texts
WHERE left(w, 1) COLLATE "en-x-icu" <= w || 'zz';
SELECT pg_temp.check_column('ranges', 'r'), pg_temp.check_column('(SELECT id, gs_text_multirange(r) AS m FROM ranges) x', 'm'),
	   pg_temp.check_column('(SELECT id, ARRAY[r, gs_text_range(lower(r), NULL)] AS a FROM ranges) x', 'a');

-- before and after other columns; the same column twice; a domain; toasted values
CREATE DOMAIN gs_word AS text COLLATE "en-x-icu";
CREATE TEMP TABLE more AS SELECT id, id % 7 AS k, left(w, 1) COLLATE "en-x-icu" AS few, left(w, 2) COLLATE gs_ignore_case AS two,
	w::gs_word AS d, CASE WHEN id % 6 = 0 THEN repeat(w, 400) ELSE w END COLLATE "en-x-icu" AS long, w COLLATE gs_shifted_nd AS n FROM texts;
SELECT o, pg_temp.rows_ok('more', o)
FROM unnest(ARRAY['k, few', 'few, k DESC', 'few DESC NULLS LAST, two, k', 'two, few, d DESC', 'd', 'd, d DESC', 'd COLLATE "C", few', 'lower(d), n DESC',
				  'long, id', 'long DESC, k, id', 'k, long, id', 'n', 'n DESC, k', 'ARRAY[few, d]', 'k, ARRAY[two, NULL, n] COLLATE gs_ignore_case DESC', 'ARRAY[few::name, d::name] COLLATE gs_shifted_nd']) o;
SELECT pg_temp.rows_ok('(SELECT id, (upper(few) || two) COLLATE "en-x-icu" AS s, d FROM more OFFSET 0) x', 's DESC, d');

-- many rows: random characters, few different characters, a long common prefix
SELECT setseed(0.42);
CREATE TEMP TABLE many AS SELECT id,
	(SELECT coalesce(string_agg(chr(32 + (random() * random() * CASE id % 3 WHEN 0 THEN 60 WHEN 1 THEN 400 ELSE 9000 END)::int + g % 1), ''), '')
	 FROM generate_series(1, (random() * 14 + id % 2)::int) g) AS s
FROM generate_series(1, 5000) id;
SELECT count(DISTINCT s) > 3000 AS many FROM many;
SELECT c, pg_temp.rows_ok('many', format('s COLLATE %s', c)), pg_temp.rows_ok('many', format('s COLLATE %s DESC', c)),
	   pg_temp.rows_ok('many', format('left(s, 1) COLLATE %s, id %% 10, s', c)),
	   pg_temp.rows_ok('many', format('(repeat(''beginning '', 9) || s) COLLATE %s, id', c))
FROM unnest(ARRAY['"en-x-icu"','gs_ignore_case','gs_shifted','gs_numeric','gs_czech']) c;

-- below a LIMIT: rows are dropped by comparisons, which also decide ties
SELECT c, k, count(*) AS checked, count(*) FILTER (WHERE NOT pg_temp.same(format(q, c, '', n), format(q, c, ', id', n))) AS wrong,
	   bool_and(n = 700 OR pg_temp.figures(format(q, c, '', n)) ? 'Rows Removed by Limit') AS drops
FROM unnest(ARRAY['"en-x-icu"','gs_ignore_case','gs_shifted_nd']) c, unnest(ARRAY['%s', '%s DESC', '%s NULLS FIRST, -id', 'id / 1000, %s DESC']) k,
	 LATERAL (SELECT 'SELECT * FROM many ORDER BY ' || replace(k, '%s', 's COLLATE %s') || '%s LIMIT %s' AS q) l, unnest('{1,20,700}'::int[]) n
GROUP BY c, k ORDER BY c COLLATE "C", k COLLATE "C";


DROP TABLE t, more, ranges;
DROP TYPE gs_text_range;
DROP DOMAIN gs_word;
DROP COLLATION gs_ignore_case, gs_ignore_accents, gs_numeric, gs_shifted, gs_shifted_nd, gs_upper_first, gs_phonebook, gs_identical, gs_backwards, gs_czech, gs_c;
