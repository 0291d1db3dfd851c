-- A plan with GpuSorts reads as PostgreSQL's own in all formats, but for the name of
-- the node, the method and the properties that only a GpuSort has.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/oracle.sql'
\set ECHO none
\i :include

SET gpusort.planner_cost = off;	-- with costs
CREATE TEMP TABLE t AS SELECT id, (id * 37) % 100 AS k, ('word ' || id % 7) COLLATE "C" AS s FROM generate_series(1, 1000) id;
-- tables and columns with the name of the node
CREATE TEMP TABLE odd AS SELECT id AS "GpuSort", -id AS "Custom Scan" FROM t;
ANALYZE t;
ANALYZE odd;
CREATE FUNCTION pg_temp.plan(options text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text := string_agg(line || E'\n', '') FROM pg_temp.explain(options, query) line;
BEGIN
	-- a GpuSort as a Sort: its name, the property that names its provider, its own properties
	plan := regexp_replace(plan, '^( *(?:->  )?)Custom Scan \(GpuSort\)(?=  \(|$)', '\1Sort', 'gn');
	plan := regexp_replace(plan, '(Node.Type[^\w\n]+)Custom Scan(?="|<)(?=[^\n]*\n(?:[^\n]*\n){0,2}[^\n]*Custom.Plan.Provider[^\w\n]+GpuSort)', '\1Sort', 'g');
	plan := regexp_replace(plan, '^[ "<]*(?:Custom.Plan.Provider[">:]+ ?"?GpuSort|(?:Engine|Packed.Key.Bits|Truncated.Keys|Rows.Tied.in.First.Pass|Sorted.Rows|'
		'Verification.\w+|Rows.Removed.by.Limit|Device|Device.Numbers|Fallback.Reason|Radix.Passes|Device.Peak.Memory.Usage|Data.\w+.(?:to|from).Device)[">:]).*\n', '', 'gn');
	plan := regexp_replace(plan, '(Sort.Method\W{1,4})[-\w]+( \w+)*', '\1M', 'g');
	-- what the two sorts need differs
	plan := regexp_replace(plan, '(Memory: )\d+', '\1N', 'g');
	plan := regexp_replace(plan, '(Space.Used\W{1,3})\d+', '\1N', 'g');
	RETURN regexp_replace(plan, '((Peak|Average) .{0,20}Memory.{0,10}?|Peak Memory Usage: |Memory Usage: )\d+', '\1N', 'g');
END $$;
CREATE FUNCTION pg_temp.as_sort(options text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	ours text;
	plain text;
	line text;
BEGIN
	IF pg_temp.gpusorts(query) = 0 THEN
		RETURN 'not taken over';
	END IF;
	ours := pg_temp.plan(options, query);
	SET gpusort.enabled = off;
	plain := pg_temp.plan(options, query);
	SET gpusort.enabled = on;
	RETURN CASE WHEN ours = plain THEN 'same' ELSE 'another plan' END;
END $$;

CREATE TEMP TABLE queries (n int GENERATED ALWAYS AS IDENTITY, q text);
INSERT INTO queries (q) VALUES
	('SELECT * FROM t ORDER BY k'),
	('SELECT k FROM t ORDER BY k DESC NULLS LAST'),
	('SELECT * FROM t ORDER BY s COLLATE "POSIX" USING ~>~, id'),
	('SELECT ''Custom Scan (GpuSort)'', ''"GpuSort"'' FROM t ORDER BY k'),
	('SELECT "GpuSort", "Custom Scan" FROM odd ORDER BY "GpuSort", "Custom Scan" DESC'),
	('SELECT * FROM (SELECT * FROM t ORDER BY k OFFSET 0) x ORDER BY id'),
	('SELECT DISTINCT ON (k) k, id FROM t ORDER BY k, id'),
	('SELECT k, sum(id) OVER (PARTITION BY s ORDER BY k) FROM t ORDER BY 2'),
	('SELECT *, (SELECT array_agg(id) FROM (SELECT id FROM t y WHERE y.id < 3 ORDER BY y.k) z) FROM t ORDER BY k'),
	('SELECT * FROM t WHERE id < 0 ORDER BY k');
CREATE TEMP VIEW different AS
SELECT n, options, pg_temp.as_sort(options, q)
FROM queries, unnest('{COSTS OFF,VERBOSE,"FORMAT JSON","VERBOSE, FORMAT JSON","VERBOSE, FORMAT XML","FORMAT YAML","VERBOSE, FORMAT YAML",
	"ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF","ANALYZE, VERBOSE, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT JSON",
	"ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT XML","ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT YAML"}'::text[]) WITH ORDINALITY o(options, nr)
WHERE pg_temp.as_sort(options, q) <> 'same'
ORDER BY n, nr;
TABLE different;
-- from 18 on a plan says which of its nodes are disabled: the input; the sort and its input; the sort
SET enable_seqscan = off;
TABLE different;
SET enable_sort = off;
TABLE different;
RESET enable_seqscan;
TABLE different;
RESET enable_sort;

SELECT pg_temp.plan('COSTS OFF', 'SELECT * FROM t ORDER BY k');
SELECT pg_temp.plan('COSTS OFF, VERBOSE, FORMAT JSON', 'SELECT k FROM t ORDER BY k');
