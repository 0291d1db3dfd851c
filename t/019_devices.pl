# Several devices, which are parts of the host: sorts are spread over them; one that dies,
# fails, hangs or sorts wrongly affects only its own sorts; a reload brings it back.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = service_node('devices', "gpusort.device = 'host:4'", 'work_mem = 256MB', 'max_connections = 100',
	'max_worker_processes = 40', 'max_parallel_workers = 32', 'min_parallel_table_scan_size = 0',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0');
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE rows AS
		SELECT i, i % 5 AS g, hashint4(i) AS k, md5((i % 20000)::text) || repeat('x', 300) AS v FROM generate_series(1, 60000) i;
	CREATE TABLE few AS SELECT * FROM rows WHERE i <= 5000;
	ANALYZE;
});

my $by_text = 'SELECT md5(string_agg(i::text, \',\')) FROM (SELECT * FROM rows ORDER BY g, v, k OFFSET 0) s';
my $of_few = 'SELECT md5(string_agg(i::text, \',\')) FROM (SELECT * FROM few ORDER BY g, v, k OFFSET 0) s';
my %right = map { $_ => $node->safe_psql('postgres', "SET gpusort.enabled = off; $_") } $by_text, $of_few;

# A column of all devices, in the order of their numbers.
sub all_devices
{
	my ($column) = @_;

	return $node->safe_psql('postgres', "SELECT string_agg($column, ' ' ORDER BY device_number) FROM gpusort_service_status()");
}

# Are these the jobs of all devices?  A client has its rows shortly before gpusortd counts
# the end of its job, and the place of the next job depends on that number.
sub jobs_become
{
	my ($expected, $what) = @_;

	becomes(sub { all_devices('jobs::text') }, $expected, $what);
	return;
}

# The devices that sorted, according to EXPLAIN ANALYZE.
sub device_of
{
	my ($psql, $query) = @_;

	return ask($psql, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query") =~ /^ +Device Numbers: (.*)$/m ? $1 : 'none';
}

# A session that chooses this device, if that is as good as any other: it then depends on
# the process ID (src/common/device_table.c).
sub session_on
{
	my ($device, $settings) = @_;

	for (;;)
	{
		my ($psql, $pid) = session($node, $settings);

		return $psql if $pid % 4 == $device;
		$psql->quit;
		system_or_bail('true');		# so that not each other number is skipped
	}
}

# A session on this device with a sort: a cursor that has returned its first rows.
sub hold_on
{
	my ($device) = @_;
	my $psql = session_on($device);

	ask($psql, 'BEGIN; DECLARE c CURSOR FOR SELECT i FROM few ORDER BY g, v, k; FETCH 10 FROM c');
	return $psql;
}

# Do these sessions get the rest of their rows?
sub all_continue
{
	my ($what, @holders) = @_;
	my $nrows = 0;

	foreach my $psql (@holders)
	{
		$nrows += count_rest($psql);
		ask($psql, 'COMMIT');
		$psql->quit;
	}
	is($nrows, 4990 * @holders, "$what: the sorts on other devices continue");
	return;
}

# The outcome of a query in a session: "right rows", "wrong rows", or its error.
sub outcome
{
	my ($psql, $query) = @_;
	my $rows;

	$psql->{stderr} = '';
	$rows = $psql->query("\\set VERBOSITY verbose\n$query");
	return "error $1" if $psql->{stderr} =~ /ERROR:  (\w{5}): /;
	return $rows eq $right{$query} ? 'right rows' : 'wrong rows';
}

# The process of gpusortd of each device.
sub pids
{
	my %pids = map { title_of($_) =~ m{--device host:(\d)/} ? ($1 => $_) : () } service_processes($node);

	return join(' ', map { $pids{$_} // 'none' } 0 .. 3);
}

sub all_run
{
	return poll(sub { all_devices('state') eq 'running running running running' });
}

# ----------------------------------------------------------------- four of them

ok(all_run(), 'gpusortd of all devices run');
is(all_devices('device_number::text'), '0 1 2 3', 'the status has a row for each device');
is(all_devices('device_kind'), 'host host host host', 'with its kind');
is(all_devices('pid::text'), pids(), 'and its process');
is($node->safe_psql('postgres', 'SELECT count(DISTINCT memory_total) FROM gpusort_service_status()'), '1', 'they have the same memory');
is(join(' ', map { -S $node->data_dir . "/pg_stat_tmp/gpusort.sock$_" ? 'yes' : 'no' } '', '.1', '.2', '.3', '.4'),
	'yes yes yes yes no', 'each has a socket');
like(join(', ', map { title_of($_) } supervisors($node)), qr/^postgres: .*gpusort supervisor running *$/, 'one supervisor has started them');
ok($node->log_contains('gpusortd of device 3: ready: host processor, \d+ MB'), 'the log names the device');

# --------------------------------------------------------------- they are spread

{
	my $psql = session_on(1);

	is(device_of($psql, $of_few), 1, 'EXPLAIN ANALYZE shows the device');
	jobs_become('0 0 0 0', 'no job is left of it');
	my @holders = map { hold_on(1) } 1 .. 4;
	jobs_become('1 1 1 1', 'four sorts at a time are on four devices');
	is(device_of($psql, $of_few), 1, 'the session stays with its device');
	jobs_become('1 1 1 1', 'no job is left of it');
	push @holders, map { hold_on(1) } 1 .. 4;
	jobs_become('2 2 2 2', 'eight sorts, too');
	all_continue('spread', splice(@holders, 0, 8));
	is_idle($node, 'spread');

	# one sort more is no reason to go elsewhere; two are
	my $holder = hold_on(1);
	is(device_of($psql, $of_few), 1, 'the session stays although there is another sort');
	my @pair = map { session_on(1) } 1 .. 2;
	foreach my $other (@pair)
	{
		jobs_become('0 1 0 0', 'one sort on the device');
		is(device_of($other, $of_few), 2, 'another session goes elsewhere');
	}
	jobs_become('0 1 0 0', 'one sort on the device');
	ask($psql, 'BEGIN; DECLARE c CURSOR FOR SELECT i FROM few ORDER BY g, v, k; FETCH 10 FROM c');
	jobs_become('0 2 0 0', 'two sorts on the device');
	isnt(device_of($psql, $of_few), 1, 'a third one of the session goes elsewhere');
	is(ask($psql, $of_few), $right{$of_few}, 'the rows are right');
	all_continue('two of them', $holder, $psql);
	$_->quit foreach @pair;
	is_idle($node, 'two of them');
}

# A session that had sorts on all devices keeps two connections.
{
	my ($psql, $pid) = session($node);
	my $sockets = sub { scalar(grep { (readlink($_) // '') =~ /^socket:/ } glob "/proc/$pid/fd/*") };
	my $before = $sockets->();

	ask($psql, 'BEGIN');
	ask($psql, "DECLARE c$_ CURSOR FOR SELECT i FROM few ORDER BY g, v, k; FETCH 1 FROM c$_") foreach 1 .. 4;
	jobs_become('1 1 1 1', 'four sorts of a session are on four devices');
	is($sockets->(), $before + 4, 'by a connection to each');
	ask($psql, 'COMMIT');
	is($sockets->(), $before + 2, 'of which it keeps two');
	jobs_become('0 0 0 0', 'no job is left of it');
	my $kept = device_of($psql, $of_few);
	jobs_become('0 0 0 0', 'nor of the next one');
	is(device_of($psql, $of_few), $kept, 'for its next sorts');
	is($sockets->(), $before + 2, 'which need no other one');
	$psql->quit;
	is_idle($node, 'four sorts of a session');
}

$node->pgbench('-n -c 64 -j 2 -t 4', 0, [qr{actually processed: 256/256}], [qr{^$}], '64 sessions at once',
	{ '019_many' => "SELECT 1 / (($of_few) = '$right{$of_few}')::int;" });
is_idle($node, '64 sessions');
my @done = split / /, all_devices('jobs_done::text');
cmp_ok((sort { $a <=> $b } @done)[0], '>=', 20, "each device has done a part: @done");

# ------------------------------------------------------------------------- memory

# A sort that would have to wait goes to a device that has the memory.
{
	my $large = 'SELECT * FROM rows WHERE i <= 15000 ORDER BY k';

	restart_service($node, 'gpusort.device_memory_limit' => '12MB', 'gpusort.device_park_limit' => '0');
	my @holders = map { session_on($_) } 0, 1, 3;
	ask($_, "BEGIN; DECLARE c CURSOR FOR $large; FETCH 1 FROM c") foreach @holders;
	jobs_become('1 1 0 1', 'three large sorts');
	foreach my $device (0 .. 3)
	{
		my $psql = session_on($device, "SET gpusort.device_wait = '1min'");

		is(device_of($psql, $large), 2, "session $device gets memory without waiting");
		jobs_become('1 1 0 1', 'and returns it');
		$psql->quit;
	}
	ask($_, 'COMMIT'), $_->quit foreach @holders;
	restart_service($node, 'gpusort.device_memory_limit' => '0', 'gpusort.device_park_limit' => '10GB');
}

# --------------------------------------------------------- participants of one sort

{
	my $settings = 'SET max_parallel_workers_per_gather = 3; SET gpusort.force = on';
	my $query = 'SELECT i FROM rows ORDER BY v, i';
	my @before = split / /, all_devices('jobs_done::text');
	my $psql = session_on(2, $settings);
	my $plan = ask($psql, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query");
	my @after;

	like($plan, qr/Engine: cuda\n +Device: host processor\n +Device Numbers: [0-3]\n/, 'a parallel plan');
	like($plan, qr/Worker \d: +Rows Sent to Shared Sort: \d+/, 'whose workers send their rows to one sort');
	poll(sub { @after = split / /, all_devices('jobs_done::text'); "@after" ne "@before" });
	is(join(' ', sort map { $after[$_] - $before[$_] } 0 .. 3), '0 0 0 1', 'of one device');
	$psql->quit;
	$node->pgbench('-n -c 8 -j 2 -t 3', 0, [qr{actually processed: 24/24}], [qr{^$}], 'parallel plans of eight sessions',
		{ '019_parallel' => "$settings; SELECT 1 / ((SELECT md5(string_agg(i::text, ',')) FROM ($query OFFSET 0) s) = '"
			  . $node->safe_psql('postgres', "SET gpusort.enabled = off; SELECT md5(string_agg(i::text, ',')) FROM ($query) s") . "')::int;" });
	is_idle($node, 'parallel plans');
}

# ------------------------------------------------------------------ one of them fails

# The query gets what it gets if a single device fails; the others notice nothing.
sub check_fault
{
	my ($device, $fault, $expected, $query, $settings) = @_;
	my $what = "device $device, $fault" . ($settings ? ', in parallel' : '');
	my @others = grep { $_ != $device } 0 .. 3;

	restart_service($node, 'gpusort.service_fault' => "$device:$fault");
	my @before = split / /, pids();
	my @holders = map { hold_on($_) } @others;
	my $psql = session_on($device, $settings);
	my $outcome = outcome($psql, $query);

	like($outcome, qr/^(?:$expected)$/, "$what: $outcome");
	ok(poll(sub { all_run() && (split / /, pids())[$device] != $before[$device] }), "$what: the device is started again");
	is(join(' ', (split / /, pids())[@others]), "@before[@others]", "$what: the others go on");
	all_continue($what, @holders);
	$psql->quit;
	return;
}

$right{''} = '';
foreach my $device (0, 2)
{
	check_fault($device, $_, 'right rows', $by_text) foreach 'copy_in:20:kill', 'copy_in:20:fail', 'sort_words:1:kill', 'sort_tails:1:fail';
	check_fault($device, $_, 'right rows|error 58000', $by_text) foreach 'gather:4:fail', 'copy_out:12:kill';
}
check_fault(1, 'copy_in:20:kill', 'error 58000', $by_text,
	'SET max_parallel_workers_per_gather = 3; SET gpusort.force = on');

# an index is built again, or the device fails and so does the statement
{
	my $index = 'CREATE INDEX of_rows ON rows (v, i)';

	$node->safe_psql('postgres', 'CREATE EXTENSION amcheck') if has_extension($node, 'amcheck');
	$right{$index} = '';
	foreach my $fault ('copy_in:20:kill', 'sort_words:1:fail', 'gather:3:kill')
	{
		check_fault(3, $fault, 'right rows|error 58000', $index, 'SET max_parallel_maintenance_workers = 3; SET gpusort.force = on');
		is($node->safe_psql('postgres', has_extension($node, 'amcheck') ?
			"SELECT bt_index_parent_check(oid, true, true) FROM pg_class WHERE relname = 'of_rows'; DROP INDEX IF EXISTS of_rows" :
			'DROP INDEX IF EXISTS of_rows'), '', "$fault: the index is right");
	}
}

# A call that never returns: the supervisor kills that process only.
$node->append_conf('postgresql.conf', 'gpusort.service_timeout = 1s');
check_fault(2, 'copy_in:20:hang', 'right rows', $by_text);
ok($node->log_contains('gpusortd of device 2 did not answer for 1000 ms and was killed'), 'the log shows which one was killed');
$node->append_conf('postgresql.conf', 'gpusort.service_timeout = 10s');

# A device that sorts wrongly is not used any more, until a reload.
{
	restart_service($node, 'gpusort.service_fault' => '1:sort_words:1:wrong');
	my @before = split / /, pids();
	my @holders = map { hold_on($_) } 0, 2, 3;
	my $psql = session_on(1, 'SET gpusort.verify = off');

	is(outcome($psql, $by_text), 'right rows', 'device 1 sorts wrongly: right rows');
	ok(poll(sub { all_devices('state') eq 'running no device running running' }), 'it is not used any more');
	like($node->safe_psql('postgres', 'SELECT detail FROM gpusort_service_status() WHERE device_number = 1'),
		qr/^host processor \(no driver\) sorted wrongly: of 60000 rows/, 'the status shows the reason');
	ok($node->log_contains('LOG:  gpusort stopped using device 1: host processor'), 'so does the log');
	like(join(', ', map { title_of($_) } supervisors($node)), qr/gpusort supervisor 3 of 4 running *$/, 'the supervisor shows three');
	like(device_of($psql, $of_few), qr/^[023]$/, 'the session uses another one');
	all_continue('wrong', @holders);
	$node->reload;
	ok(all_run(), 'a reload tries it again');
	is(join(' ', (split / /, pids())[ 0, 2, 3 ]), "@before[0, 2, 3]", 'the others go on');
	$psql->quit;
}

# ---------------------------------------------------------- the list of devices

restart_service($node, 'gpusort.service_fault' => '', 'gpusort.device' => 'host:2');
is(all_devices('device_number::text'), '0 1', 'two devices');
is(scalar(service_processes($node)), 2, 'two processes');
is(outcome(session_on(3), $by_text), 'right rows', 'they sort');
restart_service($node, 'gpusort.device' => 'host');
is(all_devices('device_number::text'), '0', 'one device');
{
	my ($psql) = session($node);

	like(ask($psql, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $of_few"), qr/Engine: cuda\n +Device: host processor\n +Packed/,
		'EXPLAIN ANALYZE shows no number of a single device');
	$psql->quit;
}
restart_service($node, 'gpusort.device' => 'host:3');
is(all_devices('device_number::text'), '0 1 2', 'three devices');
my (undef, undef, $error) = $node->psql('postgres', "ALTER SYSTEM SET gpusort.device = 'host:0'");
like($error, qr/ERROR:  invalid value for parameter "gpusort.device": "host:0"\nHINT:  Valid values are "auto"/, 'an invalid list');
is(outcome(session_on(0), $of_few), 'right rows', 'they sort');

$node->stop;
ok(poll(sub { service_processes($node) == 0 }), 'all end with the server');
done_testing();
