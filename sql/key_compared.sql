-- Orders of which gpusort knows nothing but the comparison function: operator classes of users,
-- rows of any type, tsvector and others.  Rows that tie in the columns before are compared.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

\set ECHO none
CREATE FUNCTION pg_temp.make_class(class text, t regtype, language text, body text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE FUNCTION %s_cmp(%2$s, %2$s) RETURNS int IMMUTABLE STRICT LANGUAGE %3$s AS %4$L', class, t, language, body);
	EXECUTE format('CREATE SCHEMA %I', class);
	FOR i IN 1..3 LOOP
		EXECUTE format('CREATE FUNCTION %1$s_%2$s(%3$s, %3$s) RETURNS bool IMMUTABLE STRICT LANGUAGE sql AS ''SELECT %1$s_cmp($1, $2) %4$s 0''',
					   class, i, t, substr('<=>', i, 1));
		EXECUTE format('CREATE OPERATOR %1$s.%2$s (LEFTARG = %3$s, RIGHTARG = %3$s, FUNCTION = %1$s_%4$s)', class, substr('<=>', i, 1), t, i);
	END LOOP;
	EXECUTE format('CREATE OPERATOR CLASS %1$s.ops FOR TYPE %2$s USING btree AS OPERATOR 1 %1$s.<, OPERATOR 3 %1$s.=, OPERATOR 5 %1$s.>, '
				   'FUNCTION 1 %1$s_cmp(%2$s, %2$s)', class, t);
END $$;
-- what a query gives, with gpusort and without: its rows or its error
CREATE FUNCTION pg_temp.outcome(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE format('SELECT string_agg(x::text, '' '') FROM (%s) x', query) INTO result;
	RETURN result;
EXCEPTION WHEN OTHERS OR query_canceled THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
CREATE FUNCTION pg_temp.same_outcome(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ours text := pg_temp.outcome(query);
	theirs text;
BEGIN
	PERFORM set_config('gpusort.enabled', 'off', false);
	theirs := pg_temp.outcome(query);
	PERFORM set_config('gpusort.enabled', 'on', false);
	RETURN CASE WHEN ours = theirs THEN 'the same: ' || left(ours, 60) ELSE ours || ', but PostgreSQL: ' || theirs END;
END $$;
\set ECHO all
BEGIN;
SELECT pg_temp.make_class('by_abs', 'int', 'sql', 'SELECT btint4cmp(abs($1), abs($2))');
SELECT pg_temp.make_class('by_length', 'text', 'plpgsql', 'BEGIN RETURN length($1) - length($2); END');
SELECT pg_temp.make_class('by_end', 'uuid', 'sql', 'SELECT bttextcmp(reverse($1::text) COLLATE "C", reverse($2::text) COLLATE "C")');
SELECT setseed(0.5);
CREATE TEMP TABLE t AS SELECT id, id % 5 AS k, (id * 7919) % 41 - 20 AS i,
	CASE WHEN id % 6 > 0 THEN repeat(chr(97 + id % 7), (id * 7919) % 23) END AS s,
	CASE WHEN id % 50 = 0 THEN repeat(md5(id::text), 300) ELSE repeat('x', (id * 7919) % 23) END AS long,
	md5((id % 90)::text)::uuid AS u,
	to_tsvector('simple', 'w' || (id * 7919) % 43) AS v, ('w' || (id * 7919) % 43)::tsquery AS q
FROM generate_series(1, 700) id;

-- alone
SELECT o, pg_temp.rows_ok('t', o || n)
FROM unnest(ARRAY['i USING OPERATOR(by_abs.<)', 'i USING OPERATOR(by_abs.>)', 's USING OPERATOR(by_length.<)', 's USING OPERATOR(by_length.>)', 'long USING OPERATOR(by_length.<)']) o,
	 unnest('{" NULLS FIRST"," NULLS LAST"}'::text[]) n;
SELECT pg_temp.check_column('t', 'u', '{USING OPERATOR(by_end.<)}');
SELECT pg_temp.check_column('t', c) FROM unnest('{v,q}'::text[]) c;
SELECT pg_temp.rows_ok('(SELECT id, ROW(k, s) AS r FROM t) x', 'r');

-- PostgreSQL sorts such values without rows, which is faster
SET LOCAL gpusort.force = off;
SET LOCAL gpusort.min_rows = 0;
CREATE TEMP TABLE enough AS SELECT id, i FROM t, generate_series(1, 15) LIMIT 10000;
ANALYZE enough;
EXPLAIN (COSTS OFF) SELECT i FROM enough ORDER BY i USING OPERATOR(by_abs.<);
EXPLAIN (COSTS OFF) SELECT i, id FROM enough ORDER BY i USING OPERATOR(by_abs.<);
-- and so it is with fewer rows
DELETE FROM enough WHERE ctid = '(0,1)';
ANALYZE enough;
SET LOCAL gpusort.debug_plan = on;
EXPLAIN (COSTS OFF) SELECT i, id FROM enough ORDER BY i USING OPERATOR(by_abs.<);
SET LOCAL gpusort.debug_plan = off;
SET LOCAL gpusort.force = on;
RESET gpusort.min_rows;

-- columns before it have keys, the others are compared
SELECT o, pg_temp.rows_ok('t', o)
FROM unnest(ARRAY['k, v', 'k DESC, i USING OPERATOR(by_abs.<), s COLLATE "C"', 'q DESC NULLS LAST, k', 'i USING OPERATOR(by_abs.>), q, k',
				  's COLLATE "C" NULLS FIRST, u USING OPERATOR(by_end.>), k', 'k, s COLLATE pg_temp.unicode, v', 'long COLLATE "C", v', 's USING OPERATOR(by_length.<), long COLLATE "C"']) o;

-- a LIMIT, a rescan, a cursor backward, a merge join that marks and restores
SELECT o, n, pg_temp.same(format('SELECT * FROM t ORDER BY %s LIMIT %s', o, n), format('SELECT * FROM t ORDER BY %s, id LIMIT %s', o, n))
FROM unnest(ARRAY['i USING OPERATOR(by_abs.<)', 'v DESC', 'k, v', 'v, k', 's USING OPERATOR(by_length.>) NULLS FIRST']) o, unnest('{1,50,699}'::int[]) n;
SELECT pg_temp.same('SELECT a, x.id FROM generate_series(1, 3) a, LATERAL (SELECT id FROM t WHERE k <> a ORDER BY v, k OFFSET a) x',
					'SELECT a, x.id FROM generate_series(1, 3) a, LATERAL (SELECT id FROM t WHERE k <> a ORDER BY v, k, id OFFSET a) x');
DECLARE c SCROLL CURSOR FOR SELECT id, i FROM t WHERE id < 30 ORDER BY i USING OPERATOR(by_abs.<);
FETCH 3 FROM c;
MOVE LAST IN c;
FETCH BACKWARD 3 FROM c;
CLOSE c;
SET LOCAL enable_hashjoin = off;
SET LOCAL enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM t a JOIN t b ON a.v = b.v;
SELECT count(*), count(a.v) = count(b.v) AS ok FROM t a JOIN t b ON a.v = b.v;
SET LOCAL gpusort.enabled = off;
SELECT count(*) FROM t a JOIN t b ON a.v = b.v;
RESET gpusort.enabled;
RESET enable_hashjoin;
RESET enable_nestloop;

-- runs on disk; few distinct values; rows in order, in the opposite order, and one out of order
CREATE TEMP TABLE many AS SELECT id, (id * 7919) % 10007 - 5000 AS i, id % 3 AS few, ('w' || md5(id::text))::tsquery AS p, CASE WHEN id % 20 > 0 THEN md5(id::text)::uuid END AS u, id AS up, -id AS down,
	CASE WHEN id = 3000 THEN 0 ELSE id END AS late FROM generate_series(1, 4000) id;
SET LOCAL work_mem = '256kB';
SELECT f ->> 'Engine' AS engine, f ->> 'Sort Method' AS method FROM pg_temp.figures('SELECT * FROM many ORDER BY i USING OPERATOR(by_abs.<)') f;
SELECT o, pg_temp.rows_ok('many', o) FROM unnest(ARRAY['p', 'u USING OPERATOR(by_end.<)', 'i USING OPERATOR(by_abs.<)', 'few USING OPERATOR(by_abs.<), p',
	'up USING OPERATOR(by_abs.<)', 'down USING OPERATOR(by_abs.>)', 'up USING OPERATOR(by_abs.>)', 'late USING OPERATOR(by_abs.<)', 'few, p DESC']) o;
RESET work_mem;
SET LOCAL work_mem = '64MB';
SELECT o, pg_temp.rows_ok('many', o) FROM unnest(ARRAY['p', 'u USING OPERATOR(by_end.>) NULLS LAST, p', 'few USING OPERATOR(by_abs.<)', 'late USING OPERATOR(by_abs.<)']) o;

-- indexes
CREATE TABLE gs_many AS SELECT * FROM many;
SET LOCAL gpusort.debug_plan = on;
CREATE INDEX gs_many_abs ON gs_many (i by_abs.ops DESC, p);
RESET gpusort.debug_plan;
SET LOCAL enable_seqscan = off;
SET LOCAL gpusort.enabled = off;
SET LOCAL enable_sort = off;
EXPLAIN (COSTS OFF) SELECT i, p FROM gs_many ORDER BY i USING OPERATOR(by_abs.>), p;
CREATE TEMP TABLE by_index AS SELECT row_number() OVER () AS n, i, p FROM (SELECT i, p FROM gs_many ORDER BY i USING OPERATOR(by_abs.>), p OFFSET 0) x;
DROP INDEX gs_many_abs;
RESET enable_sort;
SELECT count(*) AS wrong FROM by_index b FULL JOIN (SELECT row_number() OVER () AS n, i, p FROM (SELECT i, p FROM gs_many ORDER BY i USING OPERATOR(by_abs.>), p OFFSET 0) x) s USING (n)
WHERE (abs(b.i), b.p) IS DISTINCT FROM (abs(s.i), s.p);
RESET enable_seqscan;
RESET gpusort.enabled;
SAVEPOINT s;
CREATE UNIQUE INDEX ON gs_many (i by_abs.ops);
ROLLBACK TO s;

-- errors of comparison functions are PostgreSQL's
SELECT pg_temp.make_class('failing', 'int', 'plpgsql', 'BEGIN RETURN CASE WHEN $1 = 17 OR $2 = 17 THEN 1 / 0 ELSE $1 - $2 END; END');
SELECT pg_temp.make_class('no_answer', 'int', 'sql', 'SELECT NULL::int');
SELECT pg_temp.same_outcome('SELECT id FROM t WHERE id < 200 ORDER BY id USING OPERATOR(failing.>)');
SELECT pg_temp.same_outcome('SELECT id FROM t WHERE id > 17 ORDER BY id USING OPERATOR(failing.>)');
SELECT pg_temp.same_outcome('SELECT id FROM t ORDER BY ROW(point(id, 1))');
SELECT pg_temp.same_outcome('SELECT id FROM t ORDER BY CASE WHEN id % 2 = 0 THEN ROW(id) ELSE ROW(id, 1) END');
SELECT pg_temp.same_outcome('SELECT id FROM t ORDER BY CASE WHEN id % 2 = 0 THEN ROW(id) ELSE ROW(id::text) END');
SELECT left(pg_temp.outcome('SELECT id FROM t ORDER BY id USING OPERATOR(no_answer.<)'), 5);

-- a function that contradicts itself: no order, but all rows
SET LOCAL gpusort.verify = off;
SELECT pg_temp.make_class('by_chance', 'int', 'sql', 'SELECT (random() * 3)::int - 1');
CREATE TEMP TABLE by_chance_rows AS SELECT id FROM many ORDER BY id USING OPERATOR(by_chance.<);
SELECT count(*), count(DISTINCT id) FROM by_chance_rows;
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM many ORDER BY id USING OPERATOR(by_chance.<) LIMIT 100) x;
SET LOCAL work_mem = '128kB';
SELECT count(*), count(DISTINCT id) FROM (SELECT id FROM many ORDER BY id USING OPERATOR(by_chance.>) OFFSET 0) x;
SET LOCAL work_mem = '64MB';

-- no more calls than PostgreSQL's sort, as a sequence counts
CREATE SEQUENCE calls;
SELECT pg_temp.make_class('counted', 'int', 'plpgsql', 'BEGIN PERFORM nextval(''calls''); RETURN $1 - $2; END');
CREATE FUNCTION pg_temp.calls(query text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	PERFORM setval('calls', 1);
	EXECUTE format('SELECT count(*) FROM (%s OFFSET 0) x', query);
	RETURN currval('calls');
END $$;
CREATE FUNCTION pg_temp.fewer_calls(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	ours bigint := pg_temp.calls(query);
	theirs bigint;
BEGIN
	PERFORM set_config('gpusort.enabled', 'off', false);
	theirs := pg_temp.calls(query);
	PERFORM set_config('gpusort.enabled', 'on', false);
	IF ours > theirs THEN RAISE NOTICE '% calls, PostgreSQL %: %', ours, theirs, query; END IF;
	RETURN ours <= theirs;
END $$;
SELECT o, pg_temp.fewer_calls('SELECT * FROM many ORDER BY ' || o)
FROM unnest(ARRAY['i USING OPERATOR(counted.<)', 'up USING OPERATOR(counted.<)', 'up USING OPERATOR(counted.>)', 'few USING OPERATOR(counted.<)', 'few, i USING OPERATOR(counted.<)']) o;

-- orders that gpusort guesses: about one call for each row, and a radix sort
CREATE FUNCTION pg_temp.calls_per_row(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ncalls bigint := pg_temp.calls(query);
BEGIN
	RETURN CASE WHEN ncalls <= 4200 THEN 'one' WHEN ncalls > 8200 THEN 'several' ELSE ncalls::text END;
END $$;
SELECT o, pg_temp.calls_per_row('SELECT * FROM many ORDER BY ' || o)
FROM unnest(ARRAY['i USING OPERATOR(counted.<)', 'i USING OPERATOR(counted.>) NULLS LAST, p', '(-i) USING OPERATOR(counted.<)', 'nullif(i % 2000, 7) USING OPERATOR(counted.<) NULLS FIRST']) o;
SELECT pg_temp.make_class('counted_abs', 'int', 'plpgsql', 'BEGIN PERFORM nextval(''calls''); RETURN abs($1) - abs($2); END');
SELECT o, pg_temp.calls_per_row('SELECT * FROM many ORDER BY ' || o)
FROM unnest(ARRAY['i USING OPERATOR(counted_abs.<)', 'abs(i) USING OPERATOR(counted_abs.<)']) o;
SELECT o, pg_temp.fewer_calls('SELECT * FROM many ORDER BY ' || o)
FROM unnest(ARRAY['i USING OPERATOR(counted_abs.<)', '(i % 40) USING OPERATOR(counted_abs.>)', 'few, i USING OPERATOR(counted_abs.<)']) o;

-- few distinct rows, found by their bytes, some of which differ but are equal: only they are compared
SELECT pg_temp.make_class('counted_mod', 'int', 'plpgsql', 'BEGIN PERFORM nextval(''calls''); RETURN abs($1) * 7919 % 1009 - abs($2) * 7919 % 1009; END');
CREATE TEMP TABLE repeated AS SELECT id, CASE WHEN id % 17 > 0 THEN hashint4(id) % 100 END AS v, hashint4(-id) % 2 AS w, repeat('x', id % 3) AS s
FROM generate_series(1, 8000) id;
SELECT o, pg_temp.rows_ok('repeated', o), pg_temp.calls('SELECT * FROM repeated ORDER BY ' || o) < 8000 AS few_calls
FROM unnest(ARRAY['v USING OPERATOR(counted_mod.<)', 'v USING OPERATOR(counted_mod.>) NULLS LAST', 's, v USING OPERATOR(counted_mod.<) NULLS FIRST', 'v USING OPERATOR(counted_mod.>), w USING OPERATOR(counted_mod.<)', 'v USING OPERATOR(counted_mod.<), w DESC']) o;
-- without fetching values, which would take half a minute
SELECT pg_temp.make_class('by_octets', 'text', 'sql', 'SELECT octet_length($1) - octet_length($2)');
CREATE TEMP TABLE large AS SELECT repeat(g || 'abc', 1000000 + g % 3) AS x FROM generate_series(1, 3) g;
SET LOCAL statement_timeout = '10s';
SELECT count(*) FROM (SELECT x FROM generate_series(1, 70000) i, large ORDER BY x USING OPERATOR(by_octets.<) OFFSET 0) s;
SET LOCAL statement_timeout = 0;
SELECT o, f ->> 'Sort Method' AS method
FROM unnest(ARRAY['i USING OPERATOR(by_abs.<)', 'i USING OPERATOR(counted.<)', 'p', 'few, i USING OPERATOR(counted.<)']) o,
	 LATERAL pg_temp.figures('SELECT * FROM many ORDER BY ' || o) f;

-- right guesses, those that are right for the sample only or but begin the order, and values of which a guess needs a part
SELECT pg_temp.make_class(t || '_guessed', t::regtype, 'sql', format('SELECT %s($1, $2)', f))
FROM (VALUES ('int8', 'btint8cmp'), ('int2', 'btint2cmp'), ('float8', 'btfloat8cmp'), ('float4', 'btfloat4cmp'), ('uuid', 'uuid_cmp'), ('bytea', 'byteacmp'),
			 ('interval', 'interval_cmp'), ('name', 'btnamecmp'), ('numeric', 'numeric_cmp'), ('timetz', 'timetz_cmp'), ('bool', 'btboolcmp')) c (t, f);
CREATE TEMP TABLE guessed AS SELECT id, CASE WHEN id % 9 > 0 THEN (h - 2^31)::int8 * (h % 3) END AS l, (h % 65536 - 32768)::int2 AS sh,
	CASE WHEN id % 400 = 0 THEN 'NaN' WHEN id % 401 = 0 THEN -0.0 WHEN id % 402 = 0 THEN 0 WHEN id % 403 = 0 THEN '-Infinity' ELSE h / 3.0 - 1e8 END::float8 AS f,
	(CASE WHEN id % 7 > 0 THEN h / 7.0 - 1e8 END)::float4 AS r, md5(h::text)::uuid AS u,
	CASE WHEN id % 500 = 0 THEN convert_to(repeat(md5(id::text), 300), 'SQL_ASCII') WHEN id % 501 = 0 THEN convert_to((SELECT string_agg(md5((id * 1000 + n)::text), '') FROM generate_series(1, 80) n), 'SQL_ASCII')
		WHEN id % 8 > 0 THEN decode(md5(h::text), 'hex') END AS b,
	make_interval(months => (id % 700 = 0)::int, secs => h / 1000.0) AS iv, md5(h::text)::name AS n, h / 10.0 - 1e8 AS num,
	(time '00:00' + make_interval(secs => h % 86400))::timetz AS tz,
	h % 3 = 0 AS bo, CASE WHEN id = 1999 THEN -h ELSE h END AS one_negative
FROM (SELECT id, hashint4(id) + 2147483648 AS h FROM generate_series(1, 3000) id) x;
SELECT o, pg_temp.rows_ok('guessed', o || n)
FROM unnest(ARRAY['l USING OPERATOR(int8_guessed.<)', 'l USING OPERATOR(int8_guessed.>)', 'sh USING OPERATOR(int2_guessed.<)', 'f USING OPERATOR(float8_guessed.<)',
				  'f USING OPERATOR(float8_guessed.>)', 'r USING OPERATOR(float4_guessed.<)', 'u USING OPERATOR(uuid_guessed.<)', 'b USING OPERATOR(bytea_guessed.<)',
				  'b USING OPERATOR(bytea_guessed.>)', 'iv USING OPERATOR(interval_guessed.<)', 'n USING OPERATOR(name_guessed.<)', 'num USING OPERATOR(numeric_guessed.>)',
				  'tz USING OPERATOR(timetz_guessed.<)', 'bo USING OPERATOR(bool_guessed.<)', 'one_negative USING OPERATOR(int8_guessed.<)',
				  '(one_negative % 100000)::int USING OPERATOR(by_abs.<)']) o, unnest('{" NULLS FIRST"," NULLS LAST"}'::text[]) n;
SELECT o, pg_temp.rows_ok('guessed', o)
FROM unnest(ARRAY['bo, l USING OPERATOR(int8_guessed.<), id DESC', '(l / 1000000) USING OPERATOR(int8_guessed.<), u USING OPERATOR(uuid_guessed.>)', 'bo USING OPERATOR(bool_guessed.<), b USING OPERATOR(bytea_guessed.<)']) o;
SELECT o, f ->> 'Sort Method' AS method
FROM unnest(ARRAY['l USING OPERATOR(int8_guessed.<)', 'sh USING OPERATOR(int2_guessed.<)', 'f USING OPERATOR(float8_guessed.>)', 'r USING OPERATOR(float4_guessed.<)', 'u USING OPERATOR(uuid_guessed.<)', 'b USING OPERATOR(bytea_guessed.>)',
				  'n USING OPERATOR(name_guessed.<)', 'one_negative USING OPERATOR(int8_guessed.<)', '(one_negative % 100000)::int USING OPERATOR(by_abs.<)']) o,
	 LATERAL pg_temp.figures('SELECT * FROM guessed ORDER BY ' || o) f;

-- cancel, and devices, which cannot compare all rows
SELECT pg_temp.make_class('slow', 'int', 'plpgsql', 'BEGIN PERFORM pg_sleep(0.001); RETURN $1 - $2; END');
SET LOCAL statement_timeout = '200ms';
SELECT pg_temp.outcome('SELECT id FROM many ORDER BY id USING OPERATOR(slow.>)');
SET LOCAL statement_timeout = 0;
SET LOCAL gpusort.engine = cuda;
SELECT f ->> 'Engine' AS engine, f ->> 'Device Not Used' AS reason FROM pg_temp.figures('SELECT * FROM t ORDER BY q, k') f;
SELECT pg_temp.left_behind();
ROLLBACK;
