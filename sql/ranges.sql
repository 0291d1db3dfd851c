-- Window functions, aggregates and DISTINCT ON in each participant of a parallel plan, which has
-- ranges of the sorted rows.
LOAD 'gpusort';
SET gpusort.force = on;
SET gpusort.verify = on;
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET jit = off;

-- The values of a property in a plan.
CREATE FUNCTION in_plan(query text, property text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
	RETURN (SELECT string_agg(element::text, ' ') FROM jsonb_path_query(plan, format('strict $.**.%I', property)::jsonpath) element);
END $$;

-- What a query returns by ranges and by PostgreSQL, and its Range Keys.
CREATE FUNCTION by_ranges(query text, OUT keys text, OUT returns text) LANGUAGE plpgsql AS $$
DECLARE
	rows text = format('SELECT concat(count(*), '' '', sum(hashtextextended(r::text, 0)::numeric)) FROM (%s) r', query);
	got text;
	want text;
BEGIN
	keys := in_plan(query, 'Range Key');
	EXECUTE rows INTO got;
	PERFORM set_config('gpusort.enabled', 'off', true), set_config('max_parallel_workers_per_gather', '0', true);
	EXECUTE rows INTO want;
	PERFORM set_config('gpusort.enabled', 'on', true), set_config('max_parallel_workers_per_gather', '2', true);
	returns := CASE WHEN got = want THEN 'the same ' || split_part(got, ' ', 1) || ' rows' ELSE format('%s instead of %s', got, want) END;
END $$;

CREATE TABLE sales AS
	SELECT i AS id, i * 7919 % 100 AS shop, i * 104729 % 1000003 AS amount, nullif(i % 7, 0) AS kind, (i % 3)::numeric / CASE WHEN i % 2 = 0 THEN 1 ELSE 1.00 END AS rate,
		CASE i % 5 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN '0' ELSE i::text END::float8 AS weight,
		(repeat('x', i % 300) || (i % 50)::text) COLLATE "C" AS name,
		CASE WHEN i * 7919 % 100 > 90 OR i % 3 = 0 THEN NULL ELSE make_interval(secs => i * 7 % 1000) END AS wait
	FROM generate_series(1, 5000) i;
CREATE TABLE one_shop AS SELECT id, 1 AS shop, amount, kind, rate, weight, name, wait FROM sales;
CREATE TABLE no_sales AS SELECT * FROM sales LIMIT 0;
ANALYZE sales, one_shop, no_sales;

-- Windows: by their common columns, not by those of one of them alone; frames, FILTER, run conditions.
SELECT * FROM by_ranges('SELECT id, row_number() OVER (PARTITION BY shop ORDER BY amount DESC, id) FROM sales');
SELECT * FROM by_ranges('SELECT id, sum(amount) OVER (PARTITION BY kind, shop ORDER BY id ROWS 2 PRECEDING), count(*) OVER (PARTITION BY kind) FROM sales');
SELECT * FROM by_ranges('SELECT id, rank() OVER (PARTITION BY shop ORDER BY amount), rank() OVER (PARTITION BY kind ORDER BY amount) FROM sales');
SELECT * FROM by_ranges('SELECT id, rank() OVER (ORDER BY amount) FROM sales');
SELECT * FROM by_ranges('SELECT id, count(*) FILTER (WHERE amount > 9) OVER (PARTITION BY rate ORDER BY amount RANGE BETWEEN 1000 PRECEDING AND CURRENT ROW) FROM sales');
SELECT * FROM by_ranges('SELECT id, lag(name) OVER (PARTITION BY weight ORDER BY name, id) FROM sales');
SELECT * FROM by_ranges('SELECT * FROM (SELECT id, shop, row_number() OVER (PARTITION BY shop ORDER BY amount, id) AS n FROM sales) s WHERE n < 4');

-- Only the first rows of each group are returned by the sort, if nothing else needs the others.
CREATE TABLE first_sales (query text);
INSERT INTO first_sales VALUES
	('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY shop ORDER BY amount DESC, id) AS n FROM sales) s WHERE n <= 3'),
	('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY shop ORDER BY amount, id) AS n FROM sales) s WHERE n < 3 AND id % 2 = 0'),
	('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY weight ORDER BY amount, id) AS n FROM sales) s WHERE n = 1'),
	('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY weight, rate ORDER BY id) AS n FROM sales) s WHERE n <= 2'),
	('SELECT * FROM (SELECT *, row_number() OVER w AS n, lead(id) OVER w AS next FROM sales WINDOW w AS (PARTITION BY shop ORDER BY amount, id)) s WHERE n <= 3'),
	('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY shop ORDER BY amount, id) AS n, sum(id) OVER (PARTITION BY shop) AS total FROM sales) s WHERE n <= 3'),
	('SELECT * FROM (SELECT *, rank() OVER (PARTITION BY shop ORDER BY rate) AS n FROM sales) s WHERE n <= 3'),
	('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY shop ORDER BY amount, id) AS n FROM sales) s WHERE n <= 49'),
	('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY shop ORDER BY amount, id) AS n FROM sales) s WHERE n <= 0'),
	('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY shop ORDER BY amount, id) AS n FROM sales) s WHERE n >= 3'),
	('SELECT DISTINCT ON (shop) * FROM sales ORDER BY shop, amount DESC, id'),
	('SELECT DISTINCT ON (weight, rate) id FROM sales ORDER BY rate, weight DESC, id'),
	('SELECT DISTINCT ON (id) id, amount FROM sales ORDER BY id, amount');
SELECT r.*, in_plan(query, 'Rows per Range Key') AS group_limit FROM first_sales, by_ranges(query) r;
DROP TABLE first_sales;

-- The sort computes row_number() and lag() of columns itself.
CREATE TABLE windows (query text);
INSERT INTO windows VALUES
	('SELECT id, row_number() OVER (PARTITION BY shop ORDER BY amount, id) FROM sales'),
	('SELECT id, amount - lag(amount) OVER (PARTITION BY shop ORDER BY amount, id) AS gap FROM sales'),
	('SELECT id, lag(name) OVER w AS a, lag(rate, 1) OVER w AS b, lag(weight) OVER w AS c, lag(amount) OVER w AS d, row_number() OVER w * 2 AS e, row_number() OVER w AS f FROM sales WINDOW w AS (PARTITION BY kind ORDER BY amount DESC, id)'),
	('SELECT * FROM (SELECT *, lag(name) OVER w AS last, row_number() OVER w AS n FROM sales WINDOW w AS (PARTITION BY weight ORDER BY id)) s WHERE n <= 2 AND last IS NOT NULL'),
	('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY shop, kind ORDER BY id) AS n FROM sales) s WHERE n BETWEEN 2 AND 3'),
	('SELECT kind, max(n) FROM (SELECT kind, row_number() OVER (PARTITION BY kind ORDER BY id) AS n FROM sales) s GROUP BY kind'),
	('SELECT id, lag(rate) OVER (PARTITION BY kind ORDER BY id) FROM no_sales'),
	('SELECT id, ''number '' || row_number() OVER w, (lag(id) OVER w)::text, lag(id) OVER w + 1 FROM sales WINDOW w AS (PARTITION BY kind ORDER BY id)'),
	('SELECT kind, amount, id, row_number() OVER (PARTITION BY kind ORDER BY amount, id), lag(name) OVER (PARTITION BY kind ORDER BY amount, id, name) FROM (SELECT kind, amount, id, name FROM sales) s'),
	('SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY kind ORDER BY id) AS n FROM sales) s WHERE n <= kind'),
	-- it does not: other functions, offsets, expressions, frames that may be wrong, several windows
	('SELECT id, row_number() OVER (PARTITION BY kind ORDER BY id ROWS 1 PRECEDING), lag(id) OVER (PARTITION BY kind ORDER BY id ROWS 1 PRECEDING) FROM sales'),
	('SELECT id, row_number() OVER w, sum(amount) OVER w FROM sales WINDOW w AS (PARTITION BY kind ORDER BY id)'),
	('SELECT id, lag(amount, 2) OVER w, lag(amount, 1, 0::bigint) OVER w FROM sales WINDOW w AS (PARTITION BY kind ORDER BY id)'),
	('SELECT id, lag(amount % 7) OVER (PARTITION BY kind ORDER BY id) FROM sales'),
	('SELECT id, lag(id) OVER (PARTITION BY kind ORDER BY id) AS a, lag(id) OVER (PARTITION BY kind, shop ORDER BY id) AS b FROM sales');
SELECT r.*, in_plan(query, 'Window Functions') AS functions FROM windows, by_ranges(query) r;
DROP TABLE windows;

-- Groups: aggregates of sorted or distinct values, and those that PostgreSQL cannot combine.
SELECT * FROM by_ranges('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount), mode() WITHIN GROUP (ORDER BY kind) FROM sales GROUP BY shop');
SELECT * FROM by_ranges('SELECT rate, count(DISTINCT amount), min(id) FROM sales GROUP BY rate HAVING count(*) > 1');
SELECT * FROM by_ranges('SELECT kind, array_agg(id ORDER BY amount, id) FROM sales GROUP BY kind');
SELECT * FROM by_ranges('SELECT shop, kind, string_agg(name, '','' ORDER BY id) FROM sales GROUP BY shop, kind');
SELECT * FROM by_ranges('SELECT shop, kind, count(DISTINCT id) FROM sales GROUP BY ROLLUP (shop, kind)');
SELECT * FROM by_ranges('SELECT count(DISTINCT amount) FROM sales');

-- The rows of groups arrive in the order in which an aggregate sorts them, if that is worth it.
CREATE TABLE sorting (query text);
INSERT INTO sorting VALUES
	('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM sales GROUP BY shop'),
	('SELECT shop, max(id), percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY kind DESC) FILTER (WHERE id > 9) FROM sales GROUP BY shop'),
	('SELECT kind, percentile_cont(0.5) WITHIN GROUP (ORDER BY weight), percentile_disc(0.6) WITHIN GROUP (ORDER BY name) FROM sales GROUP BY kind'),
	('SELECT shop, kind, percentile_disc(0.5) WITHIN GROUP (ORDER BY name), mode() WITHIN GROUP (ORDER BY weight) FROM sales GROUP BY shop, kind'),
	('SELECT kind, array_agg(id ORDER BY amount DESC NULLS LAST, id) FROM sales GROUP BY kind'),
	('SELECT kind, string_agg(DISTINCT name, '','' ORDER BY name) FROM sales GROUP BY kind'),
	('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM no_sales GROUP BY shop'),
	-- it is not: what is sorted is compared fast, is no column, or is a group column; another row is sorted, too
	('SELECT shop, mode() WITHIN GROUP (ORDER BY kind) FROM sales GROUP BY shop'),
	('SELECT kind, percentile_cont(0.5) WITHIN GROUP (ORDER BY rate) FROM sales GROUP BY kind'),
	('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount % 7) FROM sales GROUP BY shop'),
	('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY shop) FROM sales GROUP BY shop'),
	('SELECT shop, rank(500) WITHIN GROUP (ORDER BY amount) FROM sales GROUP BY shop');
SELECT r.*, in_plan(query, 'Sort Key') AS sort_key FROM sorting, by_ranges(query) r;
DROP TABLE sorting;

-- Of medians, only the rows in the middle of each group are returned by the sort.
CREATE TABLE medians (query text);
INSERT INTO medians VALUES
	('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM sales GROUP BY shop'),
	('SELECT shop, kind, percentile_disc(0.5) WITHIN GROUP (ORDER BY amount DESC) FROM sales GROUP BY kind, shop'),
	('SELECT shop, percentile_disc(0.5) WITHIN GROUP (ORDER BY kind), percentile_cont(0.5) WITHIN GROUP (ORDER BY kind) FROM sales GROUP BY shop'),
	('SELECT kind, percentile_cont(0.5) WITHIN GROUP (ORDER BY weight DESC) FROM sales GROUP BY kind HAVING kind > 2'),
	('SELECT kind, percentile_disc(0.5) WITHIN GROUP (ORDER BY rate) FROM sales GROUP BY kind'),
	('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY wait) FROM sales GROUP BY shop'),
	('SELECT shop, percentile_disc(0.5) WITHIN GROUP (ORDER BY wait DESC) FROM sales GROUP BY shop'),
	('SELECT rate, percentile_disc(0.5) WITHIN GROUP (ORDER BY name) FROM sales GROUP BY rate'),
	('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM one_shop GROUP BY shop'),
	('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM no_sales GROUP BY shop'),
	-- another row may be needed
	('SELECT shop, percentile_cont(0.4) WITHIN GROUP (ORDER BY amount) FROM sales GROUP BY shop'),
	('SELECT shop, percentile_cont(ARRAY[0.5]) WITHIN GROUP (ORDER BY amount) FROM sales GROUP BY shop'),
	('SELECT shop, percentile_disc(NULL) WITHIN GROUP (ORDER BY amount) FROM sales GROUP BY shop'),
	('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FILTER (WHERE id > 9) FROM sales GROUP BY shop'),
	('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount), count(*) FROM sales GROUP BY shop'),
	('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM sales GROUP BY shop HAVING max(id) > 9'),
	('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount), percentile_cont(0.5) WITHIN GROUP (ORDER BY kind) FROM sales GROUP BY shop'),
	('SELECT shop, percentile_cont(0.5) WITHIN GROUP (ORDER BY rate) FROM sales GROUP BY shop'),
	('SELECT shop, percentile_disc(0.5) WITHIN GROUP (ORDER BY amount::int2) FROM sales WHERE amount < 9999 GROUP BY shop');
SELECT r.*, in_plan(query, 'Rows per Range Key') AS group_limit FROM medians, by_ranges(query) r;
SET work_mem = '64kB';
SELECT r.*, in_plan(query, 'Rows per Range Key') AS group_limit FROM medians, by_ranges(query) r WHERE query LIKE '%one_shop%';
RESET work_mem;
DROP TABLE medians;

-- DISTINCT ON; and in subqueries, below other nodes.
SELECT * FROM by_ranges('SELECT DISTINCT ON (shop) * FROM sales ORDER BY shop, amount DESC, id');
SELECT * FROM by_ranges('SELECT DISTINCT ON (weight, kind) id FROM sales ORDER BY weight DESC NULLS FIRST, kind, id');
SELECT * FROM by_ranges('SELECT shop, sum(n) FROM (SELECT shop, rank() OVER (PARTITION BY shop ORDER BY amount) AS n FROM sales) s GROUP BY shop');
SELECT * FROM by_ranges('SELECT s.id FROM sales s JOIN (SELECT DISTINCT ON (kind) id FROM sales ORDER BY kind, amount, id) f USING (id)');
SELECT * FROM by_ranges('SELECT id FROM sales UNION SELECT n FROM (SELECT rank() OVER (PARTITION BY shop ORDER BY amount)::int AS n FROM sales) s');

-- One group, no rows, and one column, which would be sorted without rows.
SELECT * FROM by_ranges('SELECT id, rank() OVER (PARTITION BY shop ORDER BY amount) FROM one_shop');
SELECT * FROM by_ranges('SELECT id, rank() OVER (PARTITION BY shop ORDER BY amount) FROM no_sales');
SELECT * FROM by_ranges('SELECT kind, count(DISTINCT id) FROM no_sales GROUP BY kind');
SELECT * FROM by_ranges('SELECT rank() OVER (PARTITION BY shop) FROM sales');

-- What must not run in workers, and the setting.
CREATE FUNCTION restricted(int) RETURNS int LANGUAGE plpgsql PARALLEL RESTRICTED AS 'BEGIN RETURN $1; END';
CREATE AGGREGATE total(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0');
CREATE AGGREGATE safe_total(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0', PARALLEL = SAFE);
SELECT * FROM by_ranges('SELECT id, lag(restricted(id)) OVER (PARTITION BY shop ORDER BY amount, id) FROM sales');
SELECT * FROM by_ranges('SELECT id, total(kind) OVER (PARTITION BY shop ORDER BY amount, id) FROM sales');
SELECT * FROM by_ranges('SELECT id, safe_total(kind) OVER (PARTITION BY shop ORDER BY amount, id) FROM sales');
SELECT * FROM by_ranges('SELECT id, count(*) OVER (PARTITION BY shop ORDER BY amount, id ROWS restricted(2) PRECEDING) FROM sales');
SELECT * FROM by_ranges('SELECT * FROM (SELECT id, shop, row_number() OVER (PARTITION BY shop ORDER BY amount, id) AS n FROM sales) s WHERE n < restricted(4)');
SET gpusort.enable_ranges = off;
SELECT * FROM by_ranges('SELECT id, rank() OVER (PARTITION BY shop ORDER BY amount) FROM sales');
RESET gpusort.enable_ranges;

-- Little memory, a leader that does not sort, and workers that do not start.
SET work_mem = '64kB';
SELECT * FROM by_ranges('SELECT id, rank() OVER (PARTITION BY shop ORDER BY name) FROM sales');
SELECT * FROM by_ranges('SELECT id, rank() OVER (PARTITION BY shop ORDER BY name) FROM one_shop');
RESET work_mem;
SET parallel_leader_participation = off;
SELECT * FROM by_ranges('SELECT id, rank() OVER (PARTITION BY shop ORDER BY amount) FROM sales');
RESET parallel_leader_participation;
SET max_parallel_workers = 0;
SELECT * FROM by_ranges('SELECT id, rank() OVER (PARTITION BY shop ORDER BY amount) FROM sales');
RESET max_parallel_workers;

-- A plan is kept, and gpusort turned off.
PREPARE ranked AS SELECT sum(n) FROM (SELECT rank() OVER (PARTITION BY shop ORDER BY amount) AS n, id FROM sales) s WHERE id > 0;
EXECUTE ranked;
SET gpusort.enabled = off;
EXECUTE ranked;
RESET gpusort.enabled;

-- Who may not execute a function gets PostgreSQL's error where the sort computes it, too.
BEGIN;
CREATE ROLE regress_gpusort;
GRANT SELECT ON sales TO regress_gpusort;
REVOKE EXECUTE ON FUNCTION row_number() FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION lag(anyelement) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION percentile_disc(float8, anyelement) FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION int84le(int8, int4) FROM PUBLIC;
SAVEPOINT before;
REVOKE EXECUTE ON FUNCTION int4eq(int, int) FROM PUBLIC;
SET LOCAL ROLE regress_gpusort;
SELECT count(*) FROM (SELECT DISTINCT ON (shop) shop, id FROM sales ORDER BY shop, amount OFFSET 0) s;
ROLLBACK TO before;
REVOKE EXECUTE ON FUNCTION min(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION percentile_disc(float8, anyelement) TO regress_gpusort;
SET LOCAL ROLE regress_gpusort;
SELECT count(n) FROM (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) AS n FROM sales GROUP BY shop OFFSET 0) s;
ROLLBACK TO before;
GRANT EXECUTE ON FUNCTION row_number() TO regress_gpusort;
SET LOCAL ROLE regress_gpusort;
SELECT count(n) FROM (SELECT row_number() OVER (PARTITION BY shop ORDER BY amount) AS n, id FROM sales) s WHERE n <= 2;
ROLLBACK TO before;
SET LOCAL ROLE regress_gpusort;
SAVEPOINT before;
SELECT count(n) FROM (SELECT row_number() OVER (PARTITION BY shop ORDER BY amount) AS n, id FROM sales OFFSET 0) s;
ROLLBACK TO before;
SELECT count(n) FROM (SELECT lag(id) OVER (PARTITION BY shop ORDER BY amount) AS n, id FROM sales OFFSET 0) s;
ROLLBACK TO before;
SELECT count(n) FROM (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) AS n FROM sales GROUP BY shop OFFSET 0) s;
ROLLBACK TO before;
RESET ROLE;
SELECT in_plan('SELECT count(n) FROM (SELECT lag(id) OVER (PARTITION BY shop ORDER BY amount) AS n, id FROM sales OFFSET 0) s', 'Window Functions');
SELECT in_plan('SELECT count(n) FROM (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) AS n FROM sales GROUP BY shop OFFSET 0) s', 'Rows per Range Key');
ROLLBACK;

-- Only the first rows; rescans.
SELECT count(*) FROM (SELECT id, rank() OVER (PARTITION BY shop ORDER BY amount) FROM sales LIMIT 10) s;
SET enable_material = off;
SELECT sum(n) FROM (VALUES (1), (2)) v (i), LATERAL (SELECT count(*) AS n FROM (SELECT DISTINCT ON (shop) shop, amount FROM sales ORDER BY shop, amount) s WHERE amount % 2 < i) c;

SELECT sum(n) FROM (VALUES (1), (2), (1)) v (i), LATERAL (SELECT count(*) AS n FROM (SELECT amount, row_number() OVER (PARTITION BY shop ORDER BY amount, id) AS r FROM sales) s WHERE r <= 3 AND amount % 2 < i) c;
SELECT sum(n) FROM (VALUES (1), (2), (1)) v (i), LATERAL (SELECT count(*) AS n FROM (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) AS m FROM sales GROUP BY shop) s WHERE m % 2 < i) c;

DROP TABLE sales, one_shop, no_sales;
DROP FUNCTION in_plan, by_ranges, restricted;
DROP AGGREGATE total(int), safe_total(int);
