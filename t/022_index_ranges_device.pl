# Index builds whose processes write a range of the index each, of entries that they read from
# one sort on a device: the order, the structure and the size must be those of PostgreSQL's
# index, and failures must be handled.  The device is the host's processor.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RangesTest;
use Test::More;

my $node = service_node('ranges_device', 'gpusort.verify = on', 'max_parallel_maintenance_workers = 3', 'max_worker_processes = 16',
	'min_parallel_table_scan_size = 0');

$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
create_ranged($node);
ok(wait_for_service($node, 'running'), 'gpusortd runs');
my $jobs = service_status($node, 'jobs_done');

# each index has pages enough for four ranges: short keys need more rows than long ones
fill($node, 60000, 2000000000, 3);
is_ranged($node, $_, 'of many values') foreach 's', 's COLLATE "en-x-icu"', 's, k DESC NULLS LAST, f', 'long';
fill($node, 150000, 2000000000, 3);
is_ranged($node, $_, 'of many values') foreach 'k', 'k DESC NULLS LAST', '(k::numeric / 3)', '(s::uuid)';
is_ranged($node, 'k', 'of options', %$_)
  foreach { rest => 'INCLUDE (s, long)' }, { rest => 'WITH (fillfactor = 40)' }, { rest => 'WHERE n > 100' };
is_ranged($node, 'id', 'of unique values', kind => 'UNIQUE');
is_ranged($node, 'k', 'by the leader alone', settings => 'SET gpusort.enable_parallel_index_write = off; ', alone => 1);
is_ranged($node, 'k', 'of few rows', rest => 'WHERE id < 20000', alone => 1);
is_ranged($node, 'k', 'with one connection of each process', settings => 'SET gpusort.device_session_sorts = 1; ');
ok(poll(sub { service_status($node, 'jobs_done') - $jobs == 15 }), 'each was one sort of the device');
fill($node, 400000, 3, 10);
is_ranged($node, $_, 'of few values') foreach 'k', 's';
is_ranged($node, '(1)', 'of one value');

# Workers that start when the leader has scanned the table: the postmaster, which starts them, is stopped meanwhile.
{
	my ($watcher) = session($node);
	my ($late, $leader) = session($node, "SET log_min_messages = debug1; ALTER TABLE input SET (parallel_workers = 3)");
	my $postmaster = postmaster_of($node);
	my $before = written_by($node, 4);

	kill 'STOP', $postmaster;
	$late->query_until(qr/started/, "\\echo started\nCREATE INDEX late ON input (s);\n");
	ok(poll(sub { ask($watcher, "SELECT wait_event FROM pg_stat_activity WHERE pid = $leader") =~ /^BgWorkerStartup$/i }), 'the leader has scanned the table');
	kill 'CONT', $postmaster;
	is(ask_error($late, 'RESET log_min_messages'), '', 'workers that are late');
	is(written_by($node, 4) - $before, 1, 'by all');
	is(ask($late, "SELECT count(*) FROM bt_index_parent_check('late', true, true)"), '1', 'the index is right');
	$_->quit foreach $late, $watcher;
}
$node->safe_psql('postgres', 'DROP TABLE input; CREATE TABLE input WITH (parallel_workers = 3) AS SELECT i AS k, i AS id FROM generate_series(1, 300000) i; INSERT INTO input VALUES (150000, 0)');
my ($ours, $theirs) = errors_of($node, 'UNIQUE INDEX never ON input (k)');

like($ours, qr/Key \(k\)=\(150000\) is duplicated/, 'a duplicate');
is($ours, $theirs, 'as PostgreSQL says');
ok(poll(sub { service_status($node, 'jobs') == 0 }), 'no sort is left on the device');

# --------------------------------------------------------------------- wrong rows

# An index is built of the right rows or not at all.  If keys of the C library may be why rows are wrong, it is
# built again, without the device.  All texts are of one length, so that any row can replace another.
# Whether the rows of a batch are used depends on which process reads it, so several are tried.
$node->safe_psql('postgres', q{
	CREATE COLLATION of_libc (provider = libc, locale = 'en_US.UTF-8');
	CREATE TABLE swapped WITH (parallel_workers = 3) AS SELECT 'text number ' || 1000000 + (x * 7919::bigint) % 70001 AS s FROM generate_series(1, 70000) x;
});
my %outcomes;

foreach my $call ((15 .. 28) x 8)
{
	my $collation = $call % 2 ? 'of_libc' : '"C"';

	last if $call == 15 && $outcomes{'again of_libc'} && $outcomes{noticed};
	restart_service($node, 'gpusort.service_fault' => "gather:$call:wrong");
	my (undef, undef, $error) = $node->psql('postgres', "SET gpusort.verify = off; SET client_min_messages = debug1; CREATE INDEX of_swapped ON swapped (s COLLATE $collation)");
	my (undef, undef, $damage) = $node->psql('postgres', "SELECT bt_index_parent_check(oid, true, true) FROM pg_class WHERE relname = 'of_swapped'; DROP INDEX IF EXISTS of_swapped");

	$damage =~ s/^.*NOTICE:  index "of_swapped" does not exist, skipping\n?//m;
	diag("gather $call: $error $damage") if $damage ne '';
	$outcomes{$damage ne '' ? $damage : $error !~ /ERROR/ ? ($error =~ /were sorted in wrong order/ ? "again $collation" : 'built') : $error =~ /ERROR:  sort returned (rows in wrong order|\d+ rows, expected 70000)/ ? 'noticed' : $error}++;
}

delete $outcomes{built};		# of the rows of a batch that nobody used
is_deeply([ sort keys %outcomes ], [ 'again of_libc', 'noticed' ], 'no index of wrong rows');
restart_service($node, 'gpusort.service_fault' => '');

# ------------------------------------------------------ failures while they read

# the leader gets up to eight batches before it knows whether the others read
foreach my $call (10, 20, 40)
{
	restart_service($node, 'gpusort.service_fault' => "gather:$call:fail");
	my (undef, undef, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\nCREATE INDEX never ON input (k)");

	like($error, qr/ERROR:  58000: sort engine "cuda" failed\nDETAIL:  gather, call $call: injected failure/, "the device fails in gather $call");
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname = 'never'"), '0', 'and there is no index');
}
restart_service($node, 'gpusort.service_fault' => 'gather:20:kill');
my (undef, undef, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\nCREATE INDEX never ON input (k)");

like($error, qr/ERROR:  58000: sort engine "cuda" failed\nDETAIL:  gpusortd closed the connection/, 'gpusortd is killed');
my ($builder, $pid) = session($node);

foreach my $how ('terminate', 'cancel')
{
	restart_service($node, 'gpusort.service_fault' => 'gather:20:delay=10000');
	$builder->query_until(qr/started/, "\\echo started\nCREATE INDEX never ON input (k);\n");
	ok($node->poll_query_until('postgres', "SELECT count(*) >= 1 FROM pg_stat_progress_create_index, pg_stat_activity WHERE phase LIKE '%loading tuples%'
		AND leader_pid = $pid AND pg_stat_activity.pid <> $pid AND wait_event_type = 'Extension'"), 'a worker waits');
	$node->safe_psql('postgres', "SELECT pg_${how}_backend(pid) FROM pg_stat_activity WHERE " . ($how eq 'cancel' ? "pid = $pid" : "leader_pid = $pid AND pid <> $pid LIMIT 1"));
	like(ask_error($builder, 'SELECT 1'), qr/terminating background worker|lost connection to parallel worker|canceling statement due to user request/, "$how one that waits for rows");
	ok($node->poll_query_until('postgres', "SELECT count(*) FROM pg_stat_activity WHERE leader_pid = $pid AND pid <> $pid", '0'), 'no worker is left');
}
$builder->quit;
ok(poll(sub { service_status($node, 'jobs') == 0 }), 'nor a sort on the device');
restart_service($node, 'gpusort.service_fault' => '');
$node->safe_psql('postgres', "CREATE INDEX works ON input (k); SELECT bt_index_parent_check('works', true, true)");
$node->stop;
done_testing();
