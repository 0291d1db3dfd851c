# GpuSorts in parallel workers: each participant sorts its own rows, the
# leader merges.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = gpusort_node('parallel',
	'max_worker_processes = 16', 'max_parallel_workers = 8', 'work_mem = 64MB',
	'max_parallel_workers_per_gather = 3', 'parallel_setup_cost = 0',
	'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0',
	'gpusort.force = on', 'restart_after_crash = on', 'fsync = off');

# id makes every order below total; some words are NULL.
$node->safe_psql('postgres', q{
	CREATE TABLE rows AS
		SELECT g AS id, hashint4(g) AS k, CASE WHEN g % 11 > 0 THEN md5(g::text) END COLLATE "C" AS word,
			g % 7 AS few, (hashint4(g) % 1000)::float8 AS real
		FROM generate_series(1, 100000) g;
	CREATE TABLE parts (id int, k int) PARTITION BY RANGE (id);
	CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (30000);
	CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (30000) TO (60000);
	CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (60000) TO (200000);
	INSERT INTO parts SELECT id, k FROM rows;
	ANALYZE;
});
create_linger($node);

# A checksum of all rows in order.
sub digest_of
{
	my ($query) = @_;

	return "SELECT count(*), md5(string_agg(id::text, ',')) FROM ($query OFFSET 0) s";
}

# ---------------------------------------------------- right, and in parallel

my $by_workers = qr/Gather Merge\n\s+Workers Planned: \d\n\s+->  Parallel Custom Scan \(GpuSort\)\n\s+Sort Key/;

# [name, query, settings, plan]
my @cases = (
	[ 'int', 'SELECT id FROM rows ORDER BY k, id', '', $by_workers ],
	[ 'text DESC, NULLs last', 'SELECT id FROM rows ORDER BY word DESC NULLS LAST, id', '', $by_workers ],
	[ 'float8', 'SELECT id, real FROM rows ORDER BY real DESC, id', '', $by_workers ],
	[ 'without the leader', 'SELECT id FROM rows ORDER BY k, id',
		'SET parallel_leader_participation = off;', $by_workers ],
	[ 'one worker to be had, without the leader', 'SELECT id FROM rows ORDER BY word, id',
		'SET parallel_leader_participation = off; SET max_parallel_workers = 1;', $by_workers ],
	[ 'no worker to be had', 'SELECT id FROM rows ORDER BY k, id',
		'SET max_parallel_workers = 0;', $by_workers ],
	[ 'rows that outgrow work_mem', 'SELECT id, word FROM rows ORDER BY word, id',
		"SET work_mem = '1MB';", $by_workers ],
	[ 'two below a merge join', 'SELECT a.id FROM rows a JOIN parts b USING (id) ORDER BY a.id',
		'SET enable_hashjoin = off; SET enable_nestloop = off;',
		qr/Merge Join(.*Gather Merge[^>]*->  Parallel Custom Scan \(GpuSort\)[^>]*->  Parallel){2}/s ],
	[ 'below a grouping', 'SELECT k % 1000 AS id, count(*) FROM rows GROUP BY 1 ORDER BY 1',
		'SET enable_hashagg = off;', qr/GroupAggregate.*Gather Merge.*Custom Scan \(GpuSort\)/s ],
	[ 'of partitions', 'SELECT id FROM parts ORDER BY k, id', '',
		qr/Gather Merge\n.*Custom Scan \(GpuSort\)\n.*Parallel Append/s ],
	[ 'all workers', 'SELECT id FROM rows ORDER BY few, word, real, id',
		'SET max_parallel_workers_per_gather = 8; ALTER TABLE rows SET (parallel_workers = 8);', $by_workers ]);

foreach my $case (@cases)
{
	my ($name, $query, $settings, $plan) = @$case;
	my $reset = 'ALTER TABLE rows RESET (parallel_workers)';

	like(plan_of($node, $query, $settings), $plan, "$name: GpuSorts in workers");
	is( $node->safe_psql('postgres', "$settings " . digest_of($query)),
		$node->safe_psql('postgres',
			'SET gpusort.enabled = off; SET max_parallel_workers_per_gather = 0; ' . digest_of($query)),
		"$name: the rows of a serial Sort");
	$node->safe_psql('postgres', $reset);
}

# A Gather Merge that is executed repeatedly with other parameters; its workers
# start again each time.
my $rescans = q{
	SET max_parallel_workers = %d; SET gpusort.enabled = %s;
	SELECT g, (SELECT string_agg(id::text, ',') FROM
		(SELECT id FROM rows WHERE few = g ORDER BY k, id OFFSET 14280) s)
	FROM generate_series(0, 6) g};
is($node->safe_psql('postgres', sprintf($rescans, 8, 'on')),
	$node->safe_psql('postgres', sprintf($rescans, 0, 'off')), 'rescans with parameters');

# A setting puts whole plans into a worker.
my $forced = $node->pg_version < 16 ? 'force_parallel_mode' : 'debug_parallel_query';
foreach my $query ('SELECT id FROM rows ORDER BY k, id', 'SELECT k AS id FROM rows ORDER BY k')
{
	my $settings = "SET $forced = on; SET max_parallel_workers_per_gather = 1; "
	  . 'ALTER TABLE rows SET (parallel_workers = 0);';

	like(plan_of($node, $query, $settings),
		qr/^Gather\n  Workers Planned: 1\n  Single Copy: true\n  ->  Custom Scan \(GpuSort\)/,
		"a worker does it all: $query");
	is( $node->safe_psql('postgres', "$settings " . digest_of($query)),
		$node->safe_psql('postgres', 'SET gpusort.enabled = off; ' . digest_of($query)),
		'and returns the rows of a serial Sort');
	$node->safe_psql('postgres', 'ALTER TABLE rows RESET (parallel_workers)');
}

# ----------------------------------------------------------- EXPLAIN ANALYZE

# Its output for a query.
sub analyzed
{
	my ($query, $settings, $format) = @_;

	return $node->safe_psql('postgres', "$settings EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF, FORMAT $format) $query");
}

# Each participant sorts by itself: below a LIMIT, or a merge join.
my $bounded = 'SELECT id FROM rows ORDER BY k, id LIMIT 10';
my $one_worker = 'SET parallel_leader_participation = off; SET max_parallel_workers = 1;';

like(analyzed($bounded, $one_worker, 'TEXT'),
	qr/->  Custom Scan \(GpuSort\) [^\n]*\n +Sort Key: k, id\n +Worker 0:  Sort Method: top-N [^\n]*\n +Engine: cpu\n +Sorted Rows: \d+\n +->/,
	'how a worker sorted');
like(analyzed($bounded, $one_worker, 'JSON'),
	qr/"Parallel Aware": false,[^{}]*"Sort Key": \["k", "id"\],\s+"Workers": \[\s+\{\s+"Worker Number": 0,\s+"Sort Method": "top-N [^{}]*"Engine": "cpu",/,
	'the same in JSON');
unlike(analyzed($bounded, 'SET max_parallel_workers = 0;', 'TEXT'), qr/Worker \d/, 'no worker');

# auto_explain asks for it, too, before gpusort's hook if it is loaded after gpusort; otherwise
# without lines of workers.
SKIP:
{
	skip 'this server has no auto_explain', 2 unless -e $node->config_data('--pkglibdir') . '/auto_explain.so';

	foreach my $libraries ('gpusort,auto_explain', 'auto_explain,gpusort')
	{
		local $ENV{PGOPTIONS} = "-c session_preload_libraries=$libraries -c auto_explain.log_min_duration=0 -c auto_explain.log_analyze=on";
		my (undef, undef, $logged) = $node->psql('postgres', "$one_worker SET client_min_messages = log; $bounded");
		my $next = $libraries =~ /^gpusort/ ? 'Worker 0:  Sort Method: top-N ' : '->';

		like($logged, qr/->  Custom Scan \(GpuSort\) [^\n]*\n\s+Sort Key: k, id\n\s+$next/, "auto_explain, $libraries");
	}
}

# The inner side, which each worker reads whole and may rescan, has long keys in workers.
$node->safe_psql('postgres', q{
	CREATE FUNCTION long_in_worker(id int) RETURNS text STABLE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS $$
	BEGIN
		RETURN CASE WHEN id % 100 = 0 AND EXISTS (SELECT FROM pg_stat_activity WHERE pid = pg_backend_pid() AND leader_pid IS NOT NULL)
			THEN repeat('long', 5000) ELSE id::text END;
	END $$;
	CREATE TABLE inner_side AS SELECT id FROM rows WHERE id <= 5000;
	ANALYZE inner_side;
});
my $joined = 'SELECT count(*) FROM rows a JOIN inner_side b ON a.id::text = long_in_worker(b.id)';
my $by_merge = "SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off; SET work_mem = '512kB';";
my $differing = qr/->  Custom Scan \(GpuSort\) [^\n]*\n +Sort Key: [^\n]*long_in_worker[^\n]*\n +Sort Method: [^\n]*\n +Engine: cpu\n(?: +[A-Z][^\n]*\n)*? +Worker \d:  Sort Method: [^\n]*\n +Engine: postgres\n +Fallback Reason: the rows exceed work_mem\n/;
my $plan;

# on a busy machine one of them may have read all of the outer side before the other comes
foreach (1 .. 20)
{
	$plan = analyzed($joined, $by_merge, 'TEXT');
	last if $plan =~ $differing;
}
like($plan, $differing, 'participants whose engines differ');

# Shared memory that is reused, and some that is gone.
foreach my $again ('LIMIT 3', 'OFFSET 3')
{
	like(analyzed("SELECT count(*) FROM generate_series(1, 3) g, LATERAL (SELECT id FROM (SELECT * FROM rows ORDER BY k, id $again) x WHERE x.few <> g) y",
			'SET enable_material = off;', 'TEXT'),
		qr/Custom Scan \(GpuSort\) .*Worker \d:  Sort Method/s, "a Gather Merge that is run again: $again");
}

# --------------------------------------------------------- workers that end

my $lingering = 'SELECT linger(id, %d) AS id FROM rows ORDER BY k, id';
my $workers_of = q{SELECT pid FROM pg_stat_activity WHERE leader_pid = %d AND
	wait_event = 'PgSleep' AND backend_type = 'parallel worker'};

# A worker is terminated while it reads: an error of the query, nothing else.
{
	my ($psql, $pid) = session($node, 'SET parallel_leader_participation = off');

	like(ask($psql, 'EXPLAIN (COSTS OFF) ' . sprintf($lingering, 50000)),
		qr/Gather Merge.*GpuSort.*Parallel Seq Scan/s, 'a worker that waits while it reads');
	$psql->query_until(qr/started/, "\\echo started\n" . digest_of(sprintf($lingering, 50000)) . ";\n");
	ok($node->poll_query_until('postgres', 'SELECT EXISTS (' . sprintf($workers_of, $pid) . ')'),
		'it is there');
	$node->safe_psql('postgres', 'SELECT pg_terminate_backend(pid) FROM ('
		  . sprintf($workers_of, $pid) . ') s');
	like(ask_error($psql, 'SELECT 1'),
		qr/ERROR:  (terminating background worker "parallel worker" due to administrator command|lost connection to parallel worker)/,
		'terminated, it takes the query along');
	is(contexts_of($psql), '0', 'nothing is left in the leader');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE leader_pid = $pid"),
		'all workers are gone');
	is( ask($psql, digest_of('SELECT id FROM rows ORDER BY k, id')),
		$node->safe_psql('postgres', 'SET gpusort.enabled = off; '
			  . digest_of('SELECT id FROM rows ORDER BY k, id')),
		'and the session sorts with new ones');

	# canceled while workers read
	$psql->query_until(qr/started/, "\\echo started\n" . digest_of(sprintf($lingering, 50000)) . ";\n");
	ok($node->poll_query_until('postgres', 'SELECT EXISTS (' . sprintf($workers_of, $pid) . ')'),
		'another one waits');
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	like(ask_error($psql, 'SELECT 1'), qr/ERROR:  canceling statement due to user request/,
		'the query is canceled');
	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE leader_pid = $pid"),
		'and its workers with it');

	# an error in a worker
	like(ask_error($psql, 'SELECT 1 / (id - 50000) FROM rows ORDER BY k, id'),
		qr/ERROR:  division by zero/, 'an error in a worker is that of the query');
	is(contexts_of($psql), '0', 'and leaves nothing in the leader');
	$psql->quit;
}

# A worker is killed: PostgreSQL restarts all its processes, and sorts succeed
# afterwards; no files are left.
{
	my ($psql, $pid) = session($node, "SET parallel_leader_participation = off; SET work_mem = '64kB'");

	$psql->query_until(qr/started/, "\\echo started\n" . digest_of(sprintf($lingering, 99000)) . ";\n");
	ok($node->poll_query_until('postgres', 'SELECT EXISTS (' . sprintf($workers_of, $pid) . ')'),
		'a worker waits with its rows on disk');
	my ($worker) = split(/\n/, $node->safe_psql('postgres', sprintf($workers_of, $pid)));
	kill('KILL', $worker);
	$psql->{timeout}->start(60);
	$psql->{run}->pump until $psql->{stderr} =~ /server closed the connection|terminating connection/;
	eval { $psql->{run}->finish };
	pass('its session ends');
	ok($node->poll_query_until('postgres', 'SELECT 1', '1'), 'the server is back');
	is( $node->safe_psql('postgres', digest_of('SELECT id FROM rows ORDER BY k, id')),
		$node->safe_psql('postgres', 'SET gpusort.enabled = off; '
			  . digest_of('SELECT id FROM rows ORDER BY k, id')),
		'and sorts');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no files are left');
}

$node->stop;
done_testing();
