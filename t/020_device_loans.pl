# Memory that devices lend each other: a sort of three times the memory of a device needs no
# temporary file, and devices and processes that end leave nothing behind.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use constant LIMIT_KB => 16 * 1024;

my $node = service_node('loans', "gpusort.device = 'host:4'", "gpusort.device_memory_limit = '16MB'", 'work_mem = 4MB');
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE rows AS
		SELECT i, hashint4(i) AS k, md5(i::text) || repeat('x', 260) AS v FROM generate_series(1, 150500) i;
	CREATE TABLE few AS SELECT * FROM rows WHERE i <= 1000;
	ANALYZE;
});
ok(wait_for_service($node, 'running'), 'four devices run');

my $large = "SELECT i FROM (SELECT i, v FROM rows ORDER BY k, i OFFSET 0) s WHERE v <> ''";
my $order = "SELECT md5(string_agg(i || v, ',')) FROM (SELECT i, v FROM rows ORDER BY k, i OFFSET 0) s";
my $right = $node->safe_psql('postgres', "SET gpusort.enabled = off; $order");
my $few = 'SELECT i FROM few ORDER BY k, i';

sub lent_by_all
{
	return service_status($node, 'sum(memory_lent)');
}

# The process of the only device that has a job with memory of others.
sub borrower
{
	return $node->safe_psql('postgres', 'SELECT pid FROM gpusort_service_status() WHERE memory_lent = 0 AND jobs = 1');
}

# A cursor that has returned its first row; a small one is on another device than the others.
sub cursor_of
{
	my ($query) = @_;
	my ($psql) = session($node);

	ask($psql, "BEGIN; DECLARE c CURSOR FOR $query; FETCH 1 FROM c");
	return $psql;
}

# How many rows it still returns, or the error.
sub rest_of
{
	my ($psql) = @_;
	my $nrows = count_rest($psql);

	return $psql->{stderr} =~ /ERROR/ ? $psql->{stderr} : $nrows;
}

# ------------------------------------------------------------------ three times

my $holder = cursor_of($few);
my $plan = $node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $large");
my ($sent_kb) = $plan =~ /Data Sent to Device: (\d+) ?kB/;
my ($peak_kb) = $plan =~ /Device Peak Memory Usage: (\d+) ?kB/;

like($plan, qr/Engine: cuda/, 'the large sort is on a device');
unlike($plan, qr/Runs|Disk/, 'and not on disk');
cmp_ok($sent_kb, '>=', 3 * LIMIT_KB, "its rows are three times the memory of a device: $sent_kb kB");
cmp_ok($peak_kb, '>=', $sent_kb, "they were all on devices: $peak_kb kB");
$node->pgbench('-n -c 2 -j 2 -t 50', 0, [qr{actually processed: 100/100}], [qr{^$}], 'small sorts on the other devices meanwhile',
	{
		'020_small@9' => "SELECT 1 / ((SELECT count(*) FROM ($few OFFSET 0) s) = 1000)::int;",
		'020_large@1' => "SELECT 1 / (($order) = '$right')::int;"
	});
is($node->safe_psql('postgres', $order), $right, 'the rows are right');
is(rest_of($holder), 999, 'a cursor on another device continues');
$holder->quit;
is_idle($node, 'three times');

# Only a session that has ended is sure to have reported its files.
{
	my $files = sub {
		wait_for_sessions($node);
		return $node->safe_psql('postgres', 'SELECT temp_files FROM pg_stat_database WHERE datname = current_database()');
	};
	my $before = $files->();

	is($node->safe_psql('postgres', "SET work_mem = '1GB'; $order"), $right, 'the rows are right again');
	is($files->(), $before, 'without temporary files');
}

# ---------------------------------------------------------------------- failures

# The process of a lender is killed: memory that it had lent is another process's.
{
	my $psql = cursor_of($large);
	my $borrower = borrower();
	my ($lender) = grep { $_ != $borrower } service_processes($node);

	cmp_ok(lent_by_all(), '>', 2 * 1024 * LIMIT_KB, 'a cursor uses memory of the other devices');
	kill 'KILL', $lender;
	ok(poll(sub { my @now = service_processes($node); @now == 4 && !grep { $_ == $lender } @now }), 'a lender is killed and started again');
	ok(wait_for_service($node, 'running'), 'it runs');
	cmp_ok(lent_by_all(), '>', 2 * 1024 * LIMIT_KB, 'the new process knows what is lent');
	is(rest_of($psql), 150499, 'the cursor continues');
	$psql->quit;
	is_idle($node, 'a lender that was killed');
}

# The process of the borrower is killed: its memory is free when it has started again.
{
	my $psql = cursor_of($large);
	my $borrower = borrower();

	kill 'KILL', $borrower;
	like(rest_of($psql), qr/ERROR/, 'the borrower is killed: its cursor fails');
	ok(poll(sub { my @now = service_processes($node); @now == 4 && !grep { $_ == $borrower } @now }), 'it is started again');
	ok(wait_for_service($node, 'running'), 'it runs');
	$psql->quit;
	is_idle($node, 'a borrower that was killed');
	is($node->safe_psql('postgres', $order), $right, 'the next large sort is right');
}

# A session that is cancelled.
{
	my ($psql) = session($node);

	like(ask_error($psql, "SET statement_timeout = '100ms'; $order"), qr/canceling statement/, 'a large sort is cancelled');
	$psql->quit;
	is_idle($node, 'a sort that was cancelled');
}

# What is borrowed is returned when a cursor is parked for a sort that waits.
{
	my $psql = cursor_of($large);

	is($node->safe_psql('postgres', "SET gpusort.device_wait = '1min'; $order"), $right, 'a second large sort waits for the first');
	ok(poll(sub { lent_by_all() == 0 }), 'which was parked');
	is(rest_of($psql), 150499, 'and continues from its file');
	$psql->quit;
	is_idle($node, 'parked');
}

$node->stop;
done_testing();
