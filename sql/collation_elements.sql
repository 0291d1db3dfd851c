-- Text under ICU collations, with sort keys assembled from tables of collation elements.
-- A session builds the tables after many texts, or after a few with a common prefix.
-- Needs a server built with ICU.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

\if :has_icu
\else
\echo skipped: the server or gpusort was built without ICU
\quit
\endif

-- contractions (cs to cy), additional letters (sv, da), reordered scripts (ru, el), options of all kinds
CREATE TEMP TABLE collations AS SELECT l AS locale, 'gs_elements_' || n AS name, l !~ '-ks-level[12]' AS deterministic FROM unnest(ARRAY[
	'und', 'en', 'de', 'de-u-co-phonebk', 'cs', 'sk', 'hu', 'hr', 'cy', 'da', 'da-u-kf-false', 'es-u-co-trad', 'sv', 'fr-CA', 'fr-u-kb-true', 'ru', 'el', 'tr', 'lt', 'vi', 'th', 'ar', 'he', 'ja', 'ko', 'zh', 'zh-u-co-stroke', 'ja-u-ka-shifted',
	'und-u-kn-true', 'und-u-ka-shifted', 'th-u-ka-shifted', 'und-u-kf-upper', 'und-u-kf-lower', 'und-u-kc-true', 'und-u-kk-true', 'und-u-kr-grek-digit-latn',
	'und-u-ks-level1', 'und-u-ks-level2', 'und-u-ks-level1-kc-true', 'cs-u-ks-level2', 'und-u-ks-level4', 'und-u-ks-identic']) WITH ORDINALITY u(l, n);
SET client_min_messages = warning;		-- from 16 on, a NOTICE says how ICU spells a locale
DO $$
DECLARE
	c record;
BEGIN
	FOR c IN SELECT * FROM collations LOOP
		EXECUTE format('CREATE COLLATION %s (provider = icu, locale = %L, deterministic = %s)', c.name, c.locale, c.deterministic::text);
	END LOOP;
END $$;
RESET client_min_messages;

-- random texts of several alphabets
CREATE TEMP TABLE alphabets AS SELECT k, a FROM unnest(ARRAY['abcdefghijklmnopqrstuvwxyz', 'abcABC cdhlnstyz', 'aA-_ .,', '0123456789a', 'cChHdDzZsSlLjJ·',
	'abäöüßéèôçñåæøÿ', 'eéèêëœÆĳŁłŽžǅǆǖ', 'αβγάώΩς', 'абвгдёйЖѐ', 'aаαbб', 'ab日本語', 'かガがばパァアハー々ゝヽ、。 a', '日本語漢字一丁万三上下不与且世丘丙中文字符　〇〆', U&'かは\3099\309A゛\302A日é', '한국어日가각힣a', 'ابتسشعغقلمنهويىآأؤئءپچ ١٢', 'אבגדהוכךםמשת', U&'ش\064B\0653ا\0670', 'աբգև ԺՖ', U&'가나\1100\1161\11A8', 'aé😀ﬀ', 'ae' || U&'\0301\0308\0327', E'a\x01\x7f\t b', E'ab''"`~!@#$%^&*()+=[]{}|\\:;<>?/']) WITH ORDINALITY u(a, k);
INSERT INTO alphabets SELECT 100 + i % 3, string_agg(chr(i), '') FROM generate_series(12288, 55203, 31) i GROUP BY i % 3;
SELECT setseed(0.61);
CREATE TEMP TABLE texts AS SELECT row_number() OVER ()::int AS id, k, CASE WHEN i % 29 > 0 THEN (SELECT coalesce(string_agg(substr(a, 1 + g * 0 + floor(random() * length(a))::int, 1), ''), '')
	FROM generate_series(1, (i % 3 * 7 + floor(random() * CASE i % 50 WHEN 0 THEN 300 ELSE 9 END))::int) g) END AS s FROM alphabets, generate_series(1, 160) i;
SELECT count(*), count(DISTINCT s) > 1700 AS many, max(length(s)) > 250 AS long FROM texts;

CREATE FUNCTION pg_temp.check_collations(source text, ordering text) RETURNS TABLE (checked bigint, wrong text) LANGUAGE sql AS $$
	SELECT count(*), string_agg(locale, ', ') FILTER (WHERE NOT pg_temp.rows_ok(source, replace(ordering, '@', name))) FROM collations
$$;

-- without tables, and with them; as the last sort column, and before another one
SELECT * FROM pg_temp.check_collations('texts', 's COLLATE @');
DO $$
DECLARE
	name text;
BEGIN
	SET LOCAL gpusort.engine = cpu;
	FOR name IN SELECT c.name FROM collations c LOOP
		EXECUTE format('SELECT count(*) FROM (SELECT FROM generate_series(1, 200) i ORDER BY (''beginning '' || md5(i::text)) COLLATE %s OFFSET 0) x', name);
	END LOOP;
END $$;
SELECT * FROM pg_temp.check_collations('texts', 's COLLATE @');
-- orders of a third of the texts each
SELECT o, c.* FROM unnest(ARRAY['s COLLATE @ DESC', 's COLLATE @, id % 3', 'k, s COLLATE @ DESC NULLS LAST, k', 's::char(9) COLLATE @', 's::name COLLATE @, k', 'ARRAY[s] COLLATE @',
	'(repeat(''beginning '', 9) || s) COLLATE @', '(repeat(''日本 '', 30) || s) COLLATE @', 'lower(s) COLLATE @, s COLLATE @']) WITH ORDINALITY o (o, n),
	pg_temp.check_collations(format('(SELECT * FROM texts WHERE id %% 3 = %s) x', n % 3), o) c ORDER BY n;
SELECT k, c.* FROM alphabets, pg_temp.check_collations(format('(SELECT id, s FROM texts WHERE k = %s) x', k), 's COLLATE @') c ORDER BY k;

-- more than work_mem; below a LIMIT; toasted values
SET work_mem = '64kB';
SELECT o, c.* FROM unnest(ARRAY['s COLLATE @', 's COLLATE @, k']) o, pg_temp.check_collations('texts', o) c;
RESET work_mem;
SELECT count(*) FILTER (WHERE NOT pg_temp.same(format(q, name, '', n), format(q, name, ', id', n))) AS wrong
FROM collations, unnest('{1,30,700}'::int[]) n, unnest(ARRAY['s', '(repeat(''beginning '', 9) || s)']) e, LATERAL (SELECT 'SELECT * FROM texts ORDER BY ' || e || ' COLLATE %s%s LIMIT %s' AS q) q;
CREATE TEMP TABLE toasted (id int, s text);
ALTER TABLE toasted ALTER s SET STORAGE EXTERNAL;
INSERT INTO toasted SELECT id, CASE WHEN id % 5 = 0 THEN s || repeat('x', 3000) || s ELSE s END FROM texts WHERE id % 3 = 0;
SELECT * FROM pg_temp.check_collations('toasted', 's COLLATE @');

-- prefix codes with few distinct values are replaced by primary weights, unless that costs too much
SELECT f ->> 'Fallback Reason' AS reason FROM pg_temp.figures('SELECT * FROM texts ORDER BY (repeat(''beginning '', 9) || s) COLLATE gs_elements_2') f;
SELECT (coalesce(f ->> 'Fallback Reason', '') ~ 'few distinct') = (:'engine' = 'cpu') AS reason FROM pg_temp.figures('SELECT * FROM texts ORDER BY (repeat(''ไทย'', 99) || s) COLLATE gs_elements_2') f;

DO $$
DECLARE
	c record;
BEGIN
	FOR c IN SELECT * FROM collations LOOP
		EXECUTE format('DROP COLLATION %s', c.name);
	END LOOP;
END $$;
