-- Aggregates with ORDER BY or DISTINCT.  From PostgreSQL 16 on the planner sorts their
-- input below the Agg, where gpusort replaces the Sort; PostgreSQL 15 sorts in the Agg, and
-- its input may be sorted in the same order, by cost.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

-- Is the sort of the aggregate's input a GpuSort by these columns, if the server has such sorts?
CREATE FUNCTION pg_temp.sorted_by(query text, columns text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
	keys text;
BEGIN
	EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
	SELECT string_agg(key, ', ') INTO keys
	FROM jsonb_path_query_first(plan, '$.**{0 to last} ? (@."Custom Plan Provider" == "GpuSort")."Sort Key"') k,
		 jsonb_array_elements_text(k) key;
	RETURN keys IS NOT DISTINCT FROM columns OR current_setting('server_version_num')::int < 160000;
END $$;

-- Does the query give the same rows with gpusort off?
CREATE FUNCTION pg_temp.same_rows(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	all_rows text := format('SELECT array_agg(r::text) FROM (%s) r', query);
	got text[];
	want text[];
BEGIN
	EXECUTE all_rows INTO got;
	SET LOCAL gpusort.enabled = off;
	EXECUTE all_rows INTO want;
	SET LOCAL gpusort.enabled = on;
	RETURN got = want AND cardinality(got) > 0;
END $$;

CREATE TEMP TABLE t AS
SELECT i, i % 7 AS g, hashint4(i) % 1000 AS n, ('text ' || hashint4(i + 1) % 1000) COLLATE "C" AS s
FROM generate_series(1, 5000) i;
INSERT INTO t SELECT i, i % 7, NULL, NULL FROM generate_series(5001, 5010) i;
ANALYZE t;
SET enable_hashagg = off;

SELECT query, pg_temp.sorted_by(query, keys), pg_temp.same_rows(query)
FROM (VALUES
	('SELECT count(DISTINCT n) FROM t', 'n'),
	('SELECT count(DISTINCT s) FROM t', 's COLLATE "C"'),
	('SELECT count(DISTINCT n), sum(DISTINCT n) FROM t', 'n'),
	('SELECT string_agg(s, '','' ORDER BY n DESC NULLS LAST, i) FROM t', 'n DESC NULLS LAST, i'),
	('SELECT array_agg(n ORDER BY s, i) FILTER (WHERE g > 2) FROM t', 's COLLATE "C", i'),
	('SELECT string_agg(DISTINCT s, '','' ORDER BY s DESC) FROM t', 's COLLATE "C" DESC'),
	('SELECT array_agg(i ORDER BY n, i), array_agg(i ORDER BY n, i DESC), max(i) FROM t', 'n, i'),
	('SELECT g, count(DISTINCT n), string_agg(s, '','' ORDER BY n, i) FROM t GROUP BY g', 'g, n, i'),
	('SELECT g, array_agg(i ORDER BY s DESC, i) FROM t GROUP BY g HAVING count(*) > 715', 'g, s COLLATE "C" DESC, i')) q(query, keys);

-- ordered-set aggregates sort by themselves
SELECT query, pg_temp.gpusorts(query) AS gpusorts, pg_temp.same_rows(query)
FROM (VALUES
	('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM t'),
	('SELECT mode() WITHIN GROUP (ORDER BY s) FROM t')) q(query);
