-- oracle.sql
--     What most tests need: gpusort switched on for sorts of any size, and
--     functions that compare it with PostgreSQL's own sort.
--
-- A sort by gpusort is stable, one by PostgreSQL is not.  So the expected result of
-- ORDER BY keys is PostgreSQL's ORDER BY keys, id, where id numbers the rows of
-- the input.  Rows are compared in binary format, which shows what the text format
-- hides: the sign of a zero, the bits of a NaN, trailing blanks.
--
-- The engine is that of the psql variable engine if a test sets it, else that of the
-- environment variable GPUSORT_TEST_ENGINE, else the CPU engine.
--
-- gpusort.verify is on.
--
-- Everything is temporary, so that files do not depend on each other.
--
-- All versions of PostgreSQL are to print the same: explain() leaves out what differs
-- between them.

LOAD 'gpusort';
SET gpusort.enabled = on;
\if :{?engine}
\else
\set engine cpu
\getenv engine GPUSORT_TEST_ENGINE
\endif
SET gpusort.engine = :engine;
SET gpusort.device_min_rows = 0;
SET gpusort.force = on;
SET gpusort.verify = on;
SET work_mem = '64MB';
SET jit = off;
SET max_parallel_workers_per_gather = 0;
SET synchronize_seqscans = off;
SET extra_float_digits = 1;
SET default_toast_compression = pglz;	-- whose sizes are the same everywhere

-- pg_temp.unicode: a collation of ICU, or "C" if the server or gpusort was built without ICU, which a message in
-- the library shows
SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu')
	AND position('built without ICU'::bytea IN pg_read_binary_file(setting || '/gpusort.so')) = 0 AS has_icu
FROM pg_config WHERE name = 'PKGLIBDIR' \gset
\if :has_icu
CREATE COLLATION pg_temp.unicode (provider = icu, locale = 'und');
\else
CREATE COLLATION pg_temp.unicode FROM "C";
\endif
-- pg_temp.english: a collation of the C library, or its C.UTF-8 on a machine without English
SELECT CASE WHEN count(*) > 0 THEN 'en_US.UTF-8' ELSE 'C.UTF-8' END AS english FROM pg_collation WHERE collname = 'en_US.utf8' \gset
CREATE COLLATION pg_temp.english (provider = libc, locale = :'english');

-- The lines of a plan.  From 18 on PostgreSQL prints rows with decimals, and in all
-- formats but text whether a node is disabled; from 19 on it names subqueries differently.
CREATE FUNCTION pg_temp.explain(options text, query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	part text;
	plan text := '';
BEGIN
	IF options ~ 'ANALYZE' THEN
		options := options || CASE WHEN options ~ 'BUFFERS' THEN '' ELSE ', BUFFERS OFF' END;	-- the default of 18 is on
	END IF;
	FOR part IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		plan := concat_ws(E'\n', nullif(plan, ''), part);
	END LOOP;
	plan := regexp_replace(plan, '((?:Init|Sub)Plan )expr_', '\1', 'g');
	plan := regexp_replace(plan, '((?:rows=|Actual.Rows\W{1,3})\d+)\.00', '\1', 'g');
	plan := regexp_replace(plan, ',?\n *["<]?Disabled\W{1,3}false(?:</Disabled>)?(?=,?(?:\n|$))', '', 'g');
	plan := replace(plan, '"*SELECT*"', 'unnamed_subquery');
	RETURN QUERY SELECT string_to_table(plan, E'\n');
END $$;

-- How many nodes of a query's plan are GpuSorts.
CREATE FUNCTION pg_temp.gpusorts(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	line text;
	n int := 0;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		n := n + (line LIKE '%Custom Scan (GpuSort)%')::int;
	END LOOP;
	RETURN n;
END $$;

-- The sorts of its plan, from the top.
CREATE FUNCTION pg_temp.sorts(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	names text[] := '{}';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		names := names || substring(line FROM '^(?:  *->  )?(?:(?:Parallel )?Custom Scan \()?((?:Gpu|Incremental )?Sort)\)?$');
	END LOOP;
	RETURN array_to_string(names, ', ');	-- which skips the other lines' NULLs
END $$;

-- The nodes of its plan, from the top.
CREATE FUNCTION pg_temp.nodes(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ '->' OR plan = '' THEN
			plan := concat_ws(' / ', nullif(plan, ''), regexp_replace(btrim(line, ' ->'), 'Custom Scan \((GpuSort)\)| on .*', '\1'));
		END IF;
	END LOOP;
	RETURN plan;
END $$;

-- What EXPLAIN ANALYZE says of a query's first GpuSort.
CREATE FUNCTION pg_temp.figures(query text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	plan := string_agg(line, E'\n') FROM pg_temp.explain('ANALYZE, TIMING OFF, COSTS OFF, FORMAT JSON', query) line;
	RETURN jsonb_path_query_first(plan, '$.**{0 to last} ? (@."Custom Plan Provider" == "GpuSort")');
END $$;

-- The text of EXPLAIN ANALYZE, without what differs from run to run.
CREATE FUNCTION pg_temp.analyze(query text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT regexp_replace(line, '\d+kB', 'NkB') FROM pg_temp.explain('ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF', query) line
$$;

-- The rows of a query in binary format, and how many GpuSorts they went through.
CREATE FUNCTION pg_temp.rows_of(query text, OUT nodes int, OUT rows bytea[]) LANGUAGE plpgsql AS $$
DECLARE
	all_rows text := format('SELECT array_agg(record_send(gs_row)) FROM (%s) gs_row', query);
BEGIN
	nodes := pg_temp.gpusorts(all_rows);
	EXECUTE all_rows INTO rows;
END $$;

-- Are the rows of a query, run through at least one GpuSort, these, in this order?  Says where they differ.
CREATE FUNCTION pg_temp.are_right(query text, nodes int, got bytea[], want bytea[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	IF nodes = 0 THEN
		RAISE NOTICE 'not taken over: %', query;
		RETURN false;
	END IF;
	IF got IS NOT DISTINCT FROM want THEN
		RETURN true;
	END IF;
	IF cardinality(got) IS DISTINCT FROM cardinality(want) THEN
		RAISE NOTICE '% rows instead of %: %', cardinality(got), cardinality(want), query;
	ELSE
		RAISE NOTICE 'row % of % is wrong: %',
			(SELECT min(i) FROM generate_subscripts(got, 1) i WHERE got[i] IS DISTINCT FROM want[i]),
			cardinality(want), query;
	END IF;
	RETURN false;
END $$;

-- Does a query, run through at least one GpuSort, give the rows that another
-- one gives without, in that order?
CREATE FUNCTION pg_temp.same(query text, oracle text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	ours record := pg_temp.rows_of(query);
	theirs record;
BEGIN
	PERFORM set_config('gpusort.enabled', 'off', false);
	theirs := pg_temp.rows_of(oracle);
	PERFORM set_config('gpusort.enabled', 'on', false);
	ASSERT theirs.nodes = 0, 'the oracle uses gpusort';
	RETURN pg_temp.are_right(query, ours.nodes, ours.rows, theirs.rows);
END $$;

-- Whole rows of a table with a column id, ordered; id breaks the ties.
CREATE FUNCTION pg_temp.rows_ok(source text, order_by text, columns text DEFAULT '*')
RETURNS boolean LANGUAGE sql AS $$
	SELECT pg_temp.same(format('SELECT %s FROM %s ORDER BY %s', columns, source, order_by),
						format('SELECT %s FROM %s ORDER BY %s, id', columns, source, order_by))
$$;

-- One column alone, where the key can be all that is stored of a row.
CREATE FUNCTION pg_temp.keys_ok(source text, order_by text, col text)
RETURNS boolean LANGUAGE sql AS $$
	SELECT pg_temp.same(format('SELECT %s FROM %s ORDER BY %s', col, source, order_by),
						format('SELECT %s FROM (SELECT * FROM %s ORDER BY %s, id OFFSET 0) x',
							   col, source, order_by))
$$;

-- All that one column of a table can be asked for: both directions, NULLs on
-- either side or absent; input as it is, in order, in reverse order with its
-- ties; whole rows and the column alone.  The three inputs have one order, which
-- PostgreSQL makes once; without NULLs it is the same wherever they are to be.
CREATE FUNCTION pg_temp.check_column(source text, col text, operator text[] DEFAULT '{ASC,DESC}')
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	filter text;
	inputs text[] := ARRAY['id', col || ', id', col || ' DESC, id'];
	direction text;
	nulls text;
	order_by text;
	want_rows bytea[];
	want_keys bytea[];
	query text;
	ours record;
	checked int := 0;
	wrong int := 0;
BEGIN
	FOREACH filter IN ARRAY '{IS NOT NULL,IS NULL OR true}'::text[] LOOP
		PERFORM set_config('gpusort.enabled', 'off', false);
		FOR i IN 1..3 LOOP
			EXECUTE format('CREATE TEMP TABLE check_input%s AS SELECT * FROM %s WHERE %s %s ORDER BY %s', i, source, col, filter, inputs[i]);
		END LOOP;
		PERFORM set_config('gpusort.enabled', 'on', false);
		FOREACH direction IN ARRAY operator LOOP
			FOREACH nulls IN ARRAY '{NULLS FIRST,NULLS LAST}'::text[] LOOP
				order_by := concat_ws(' ', col, direction, nulls);
				IF filter <> 'IS NOT NULL' OR nulls = 'NULLS FIRST' THEN
					PERFORM set_config('gpusort.enabled', 'off', false);
					query := format('SELECT array_agg(record_send(gs_row)), array_agg(record_send(gs_key)) FROM (SELECT gs_row, ROW(%s) AS gs_key FROM '
									'(SELECT * FROM check_input1 ORDER BY %s, id OFFSET 0) gs_row OFFSET 0) x', col, order_by);
					ASSERT pg_temp.gpusorts(query) = 0, 'the oracle uses gpusort';
					EXECUTE query INTO want_rows, want_keys;
					PERFORM set_config('gpusort.enabled', 'on', false);
				END IF;
				FOR i IN 1..3 LOOP
					checked := checked + 2;
					query := format('SELECT * FROM check_input%s ORDER BY %s', i, order_by);
					ours := pg_temp.rows_of(query);
					wrong := wrong + (NOT pg_temp.are_right(query, ours.nodes, ours.rows, want_rows))::int;
					query := format('SELECT %s FROM check_input%s ORDER BY %s', col, i, order_by);
					ours := pg_temp.rows_of(query);
					wrong := wrong + (NOT pg_temp.are_right(query, ours.nodes, ours.rows, want_keys))::int;
				END LOOP;
			END LOOP;
		END LOOP;
		DROP TABLE check_input1, check_input2, check_input3;
	END LOOP;
	RETURN format('%s: %s orders checked, %s wrong', col, checked, wrong);
END $$;

-- Some element of an array, or NULL.
CREATE FUNCTION pg_temp.pick(anyarray) RETURNS anyelement LANGUAGE sql VOLATILE AS $$
	SELECT $1[1 + floor(random() * (cardinality($1) + 1))::int]
$$;

-- Memory contexts and temporary files that a finished sort has left behind.  The list of
-- contexts is not to become a temporary file itself.
CREATE FUNCTION pg_temp.left_behind() RETURNS text LANGUAGE sql SET work_mem = '64MB' AS $$
	SELECT format('%s contexts, %s files',
				  (SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'GpuSort%'),
				  (SELECT count(*) FROM pg_ls_tmpdir()
				   WHERE name LIKE format('pgsql_tmp%s.%%', pg_backend_pid())))
$$;

\set ECHO all
