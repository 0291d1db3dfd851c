-- check.sql
--     Runs a case with and without gpusort, inside the server.
--
-- Rows are compared in binary format, which shows what the text format hides: the
-- sign of a zero, the bits of a NaN, trailing blanks, the scale of a numeric.

CREATE SCHEMA differential;

-- Some types of extensions have no binary format.
DO $$
DECLARE
	name text;
BEGIN
	FOREACH name IN ARRAY '{ean13,isbn,isbn13,seg}'::text[] LOOP
		IF to_regtype(name) IS NOT NULL THEN
			EXECUTE format('CREATE FUNCTION differential.send(%1$s) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS'
						   ' $f$ SELECT convert_to($1::text, ''UTF8'') $f$; ALTER TYPE %1$s SET (SEND = differential.send)', name);
		END IF;
	END LOOP;
END $$;

-- Types like integer and text, which are sorted by a function of a user: by the distance from 1000, and from the end.
CREATE FUNCTION differential.make_type(name text, base text, comparison text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	operator text;
	place int;
BEGIN
	EXECUTE format('CREATE TYPE %1$s; CREATE FUNCTION %1$s_in(cstring) RETURNS %1$s LANGUAGE internal IMMUTABLE STRICT AS ''%2$sin'';'
				   'CREATE FUNCTION %1$s_out(%1$s) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS ''%2$sout'';'
				   'CREATE FUNCTION %1$s_send(%1$s) RETURNS bytea LANGUAGE internal IMMUTABLE STRICT AS ''%2$ssend'';'
				   'CREATE TYPE %1$s (INPUT = %1$s_in, OUTPUT = %1$s_out, SEND = %1$s_send, LIKE = %2$s);'
				   'CREATE CAST (%1$s AS %2$s) WITHOUT FUNCTION; CREATE CAST (%2$s AS %1$s) WITHOUT FUNCTION;'
				   'CREATE FUNCTION %1$s_cmp(%1$s, %1$s) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS'
				   ' $f$ DECLARE a %2$s = $1; b %2$s = $2; BEGIN RETURN %3$s; END $f$', name, base, comparison);
	FOR operator, place IN SELECT * FROM unnest('{<,<=,=,>=,>}'::text[]) WITH ORDINALITY LOOP
		EXECUTE format('CREATE FUNCTION %1$s_%3$s(%1$s, %1$s) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS'
					   ' $f$ BEGIN RETURN %1$s_cmp($1, $2) %2$s 0; END $f$; CREATE OPERATOR %2$s (LEFTARG = %1$s, RIGHTARG = %1$s,'
					   ' FUNCTION = %1$s_%3$s, COMMUTATOR = OPERATOR(%4$s)%5$s)', name, operator, place, translate(operator, '<>', '><'),
					   CASE operator WHEN '=' THEN ', MERGES' ELSE '' END);
	END LOOP;
	EXECUTE format('CREATE OPERATOR CLASS %1$s_ops DEFAULT FOR TYPE %1$s USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,'
				   ' OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 %1$s_cmp(%1$s, %1$s)', name);
END $$;

SELECT differential.make_type('gs_distance', 'int4', 'btint4cmp(abs(a - 1000), abs(b - 1000))'),
	differential.make_type('gs_reversed', 'text', 'bttextcmp(reverse(a) COLLATE "C", reverse(b) COLLATE "C")');

-- Sorts texts with a common prefix by each ICU collation, so that the session builds its tables of collation elements.
CREATE FUNCTION differential.warm_up(collations text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	name text;
BEGIN
	SET LOCAL gpusort.engine = cpu;
	FOR name IN SELECT collname FROM pg_collation WHERE collprovider = 'i' AND collname = ANY (collations) LOOP
		EXECUTE format('SELECT count(*) FROM (SELECT FROM generate_series(1, 200) i ORDER BY (''beginning '' || md5(i::text)) COLLATE %I OFFSET 0) x', name);
	END LOOP;
END $$;

-- The rows that a cursor returns.  A step is {kind, n}: 0 fetches RELATIVE n, 1
-- ABSOLUTE n, 2 the next n rows, or the previous -n.
CREATE FUNCTION differential.walk(query text, steps int[]) RETURNS bytea[] LANGUAGE plpgsql AS $$
DECLARE
	sorted refcursor;
	step int[];
	fetched record;
	rows bytea[];
BEGIN
	OPEN sorted SCROLL FOR EXECUTE query;
	FOREACH step SLICE 1 IN ARRAY steps LOOP
		IF step[1] = 0 THEN
			FETCH RELATIVE step[2] FROM sorted INTO fetched;
			rows := rows || CASE WHEN FOUND THEN record_send(fetched) END;
		ELSIF step[1] = 1 THEN
			FETCH ABSOLUTE step[2] FROM sorted INTO fetched;
			rows := rows || CASE WHEN FOUND THEN record_send(fetched) END;
		ELSE
			FOR i IN 1..abs(step[2]) LOOP
				IF step[2] > 0 THEN
					FETCH NEXT FROM sorted INTO fetched;
				ELSE
					FETCH PRIOR FROM sorted INTO fetched;
				END IF;
				EXIT WHEN NOT FOUND;
				rows := rows || record_send(fetched);
			END LOOP;
		END IF;
	END LOOP;
	CLOSE sorted;
	RETURN rows;
END $$;

-- The ranks of the rows that a statement returns; NULL for an unknown row.  This does not
-- show the order of ties.  Followed by all the rows if they must be the same, or the number
-- of rows that were returned more than once.
CREATE FUNCTION differential.places(statement text, ranks text, whole boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	rows bytea[];
	gpusort text := current_setting('gpusort.enabled');
	places text;
BEGIN
	EXECUTE statement INTO rows;
	PERFORM set_config('gpusort.enabled', 'off', false);
	EXECUTE format('SELECT array_agg(rank ORDER BY place)::text FROM unnest($1) WITH ORDINALITY AS r (bytes, place)'
				   ' LEFT JOIN (SELECT DISTINCT * FROM (%s) x) AS ranks (bytes, rank) USING (bytes)', ranks)
		INTO places USING rows;
	places := concat(places, CASE WHEN whole THEN (SELECT array_agg(bytes ORDER BY bytes)::text FROM unnest(rows) bytes)
							 ELSE (SELECT format(' %s rows more than once', count(*) - count(DISTINCT bytes)) FROM unnest(rows) bytes) END);
	PERFORM set_config('gpusort.enabled', gpusort, false);
	RETURN places;
END $$;

-- The pages of an index but for their LSN and checksum, or the SQLSTATE of the error.
CREATE FUNCTION differential.index_pages(statement text, indexed regclass, workers int) RETURNS bytea[] LANGUAGE plpgsql AS $$
DECLARE
	pages bytea[];
BEGIN
	PERFORM set_config('max_parallel_maintenance_workers', workers::text, true);
	PERFORM set_config('gpusort.enable_parallel_index_write', 'off', true);	-- several writers divide pages differently
	EXECUTE format('ALTER TABLE %s SET (parallel_workers = 2)', indexed);
	EXECUTE statement;
	SELECT array_agg(substr(pg_read_binary_file(pg_relation_filepath('tested'), block * current_setting('block_size')::int, current_setting('block_size')::int), 11) ORDER BY block) INTO pages
	FROM generate_series(0, pg_relation_size('tested') / current_setting('block_size')::int - 1) block;
	DROP INDEX tested;
	EXECUTE format('ALTER TABLE %s RESET (parallel_workers)', indexed);
	RETURN pages;
EXCEPTION WHEN OTHERS THEN
	-- PostgreSQL reports duplicates before an entry that is too long for a page
	RETURN ARRAY[replace(SQLSTATE, '54000', '23505')::bytea];
END $$;

-- A hash of the TIDs of each key of a GIN index in order, or the SQLSTATE of the error.  Which of equal keys is stored
-- is not defined, so it has only their numbers.
CREATE FUNCTION differential.gin_entries(statement text, indexed regclass, workers int) RETURNS bytea[] LANGUAGE plpgsql AS $$
DECLARE
	contents text;
BEGIN
	PERFORM set_config('max_parallel_maintenance_workers', workers::text, true);
	EXECUTE format('ALTER TABLE %s SET (parallel_workers = 2)', indexed);
	EXECUTE statement;
	SELECT md5(string_agg(concat_ws(' ', attribute, category, number, tid), ',' ORDER BY place)) INTO contents
	FROM (SELECT *, sum(changes::int) OVER (ORDER BY place) AS number
		  FROM (SELECT *, (attribute, category, key) IS DISTINCT FROM lag((attribute, category, key)) OVER (ORDER BY place) AS changes
				FROM gin_entries('tested') WITH ORDINALITY AS e (attribute, category, key, tid, place)) x) y;
	IF to_regprocedure('gin_index_check(regclass)') IS NOT NULL THEN
		PERFORM gin_index_check('tested');
	END IF;
	DROP INDEX tested;
	EXECUTE format('ALTER TABLE %s RESET (parallel_workers)', indexed);
	RETURN ARRAY[contents::bytea];
EXCEPTION WHEN OTHERS THEN
	RETURN ARRAY[SQLSTATE::bytea];
END $$;

-- The rows of a table in their order after CLUSTER by the last of these indexes, which is rolled
-- back, or the SQLSTATE of the error.
CREATE FUNCTION differential.clustered(index text, clustered text, selected text, last_index text DEFAULT NULL)
RETURNS bytea[] LANGUAGE plpgsql AS $$
DECLARE
	rows bytea[];
BEGIN
	EXECUTE 'CREATE INDEX tested ON ' || index;
	IF last_index IS NOT NULL THEN
		DROP INDEX tested;
		EXECUTE 'CREATE INDEX tested ON ' || last_index;
	END IF;
	EXECUTE format('CLUSTER %I USING tested', clustered);
	IF to_regprocedure('bt_index_parent_check(regclass,boolean,boolean)') IS NOT NULL THEN
		PERFORM bt_index_parent_check('tested', true, true);
	END IF;
	EXECUTE format('SELECT array_agg(record_send(ROW(%s))) FROM %I', selected, clustered) INTO rows;
	RAISE SQLSTATE 'ZZZZZ';
EXCEPTION
	WHEN SQLSTATE 'ZZZZZ' THEN
		RETURN rows;
	WHEN OTHERS THEN
		RETURN ARRAY[SQLSTATE::bytea];
END $$;

-- Runs a case with and without gpusort; returns the plan, and the difference.  "loosely": but for the order of ties.
CREATE FUNCTION differential.check(query text, got text, want text, loose_got text, loose_want text)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	result jsonb;
	got_rows bytea[];
	want_rows bytea[];
	got_text text;
	want_text text;
	by_postgres boolean;
	loosely text;
BEGIN
	PERFORM set_config('gpusort.enabled', 'on', false);
	EXECUTE got INTO got_rows;
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	result := jsonb_build_object(
		'gpusorts', jsonb_path_query_array(plan, 'strict $.** ? (@."Custom Plan Provider" == "GpuSort")."Custom Plan Provider"'),
		'engines', jsonb_path_query_array(plan, 'strict $.** ? (@."Custom Plan Provider" == "GpuSort" && exists(@."Engine"))."Engine"'),
		'methods', jsonb_path_query_array(plan, 'strict $.** ? (@."Custom Plan Provider" == "GpuSort" && exists(@."Sort Method"))."Sort Method"'),
		'reasons', jsonb_path_query_array(plan, 'strict $.** ? (@."Custom Plan Provider" == "GpuSort").keyvalue() ? (@.key == "Fallback Reason" || @.key == "Device Not Used").value'),
		'ranges', jsonb_path_exists(plan, 'strict $.**."Range Key"'),
		'sorts', jsonb_path_query_array(plan, 'strict $.** ? (@."Node Type" == "Sort" || @."Node Type" == "Incremental Sort")."Node Type"'),
		'gathers', jsonb_path_query_array(plan, 'strict $.** ? (@."Node Type" == "Gather Merge" || @."Node Type" == "Gather")."Node Type"'));
	PERFORM set_config('gpusort.enabled', 'off', false);
	EXECUTE want INTO want_rows;
	IF got_rows IS NOT DISTINCT FROM want_rows THEN
		RETURN result || '{"differs": ""}';
	END IF;
	IF cardinality(got_rows) IS DISTINCT FROM cardinality(want_rows) THEN
		RETURN result || jsonb_build_object('differs', format('%s rows instead of %s', cardinality(got_rows), cardinality(want_rows)));
	END IF;
	by_postgres := result->'sorts' != '[]' OR result->'gathers' != '[]' OR result->'engines' @> '["postgres"]';
	-- with little memory a tuplesort may have run unseen: EXPLAIN shows only the last engine of a sort that was executed
	-- repeatedly, and does not run a cursor as if it could move backward
	IF current_setting('work_mem') != '64MB' OR current_setting('gpusort.device_memory_limit') != '0' THEN
		by_postgres := by_postgres OR query LIKE 'DECLARE%'
			OR jsonb_path_exists(plan, 'strict $.** ? (@."Custom Plan Provider" == "GpuSort" && @."Actual Loops" > 1)');
	END IF;
	PERFORM set_config('gpusort.enabled', 'on', false);
	EXECUTE loose_got INTO got_text;
	PERFORM set_config('gpusort.enabled', 'off', false);
	EXECUTE loose_want INTO want_text;
	loosely := CASE WHEN got_text IS DISTINCT FROM want_text THEN 'more than the order of ties' ELSE '' END;
	IF NOT by_postgres THEN
		result := result || jsonb_build_object('loosely', loosely);
		loosely := format('row %s of %s',
			(SELECT min(i) FROM generate_subscripts(got_rows, 1) i WHERE got_rows[i] IS DISTINCT FROM want_rows[i]), cardinality(want_rows));
	END IF;
	RETURN result || jsonb_build_object('differs', loosely);
END $$;
