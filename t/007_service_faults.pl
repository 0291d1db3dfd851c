# Sorts by gpusortd when it dies, fails, is slow or has no memory, in every phase:
# rows are right or there is an error, at once, and nothing is left behind.  The
# device is the host's processor; gpusort.service_fault says where it fails
# (test/doubles/daemon/device_fault.h).

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node = service_node('service_faults', 'max_connections = 50', 'work_mem = 256MB', 'log_temp_files = 0');
create_interrupt($node);
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE rows (i int, g int, k int, v text);
	CREATE TABLE few (LIKE rows);

	-- Values that differ late, and some that several rows have: each step of a
	-- sort is needed.
	CREATE PROCEDURE fill(nrows int, pad text) LANGUAGE sql AS $$
		TRUNCATE rows, few;
		INSERT INTO rows
			SELECT i, i % 5, hashint4(i), 'https://www.example.org/' || md5((i % (nrows / 3))::text) || pad
			FROM generate_series(1, nrows) i;
		INSERT INTO few SELECT * FROM rows WHERE i <= 5000;
	$$;
});

# More rows than the shared buffer pool holds.
sub fill
{
	my ($nrows, $pad) = @_;

	$node->safe_psql('postgres', "CALL fill($nrows, '$pad'); ANALYZE rows; ANALYZE few");
}
fill(60000, 'x' x 300);

my $by_text = 'SELECT md5(string_agg(i::text, \',\')) FROM (SELECT * FROM rows ORDER BY g, v, k OFFSET 0) s';
my $by_key = 'SELECT md5(string_agg(k::text, \',\')) FROM (SELECT k FROM rows ORDER BY k OFFSET 0) s';
my $volatile = 'SELECT md5(string_agg(i::text, \',\')) FROM '
  . '(SELECT * FROM (SELECT *, random() FROM rows OFFSET 0) r ORDER BY g, v, k OFFSET 0) s';
my $of_few = 'SELECT md5(string_agg(i::text, \',\')) FROM (SELECT * FROM few ORDER BY g, v, k OFFSET 0) s';
my $in_runs = 'SELECT md5(string_agg(i::text, \',\')) FROM (SELECT * FROM rows ORDER BY k, v, g OFFSET 0) s';
my $volatile_in_runs = $volatile =~ s/ORDER BY g, v, k/ORDER BY k, v, g/r;

# by texts with dictionary codes, which are known before the rows move
my $few_in_runs = 'SELECT md5(string_agg(i::text, \',\')) FROM '
  . '(SELECT *, chr(97 + i % 7) COLLATE "en_US" AS letter FROM rows ORDER BY letter, k, v, g OFFSET 0) s';

# by a column that only a function compares, last: the device leaves ties, few in the first and many in the second
my ($few_ties, $many_ties) = map { 'SELECT md5(string_agg(i::text, \',\')) FROM '
	  . "(SELECT *, ('w' || hashint4(i) % 43)::tsquery AS q FROM rows ORDER BY $_, q, i OFFSET 0) s" } 'k % 20000', 'g';
my $ties_in_runs = $few_ties =~ s/q, i/q, v, i/r;

# by columns that all have keys
my $keys_in_runs = 'SELECT md5(string_agg(i || right(v, 1), \',\')) FROM (SELECT * FROM rows ORDER BY k, g, i OFFSET 0) s';

my %right = map { $_ => $node->safe_psql('postgres', "SET gpusort.enabled = off; $_") }
  $by_text, $by_key, $volatile, $of_few, $in_runs, $volatile_in_runs, $few_in_runs, $few_ties, $many_ties, $ties_in_runs, $keys_in_runs;

# The outcome of a query: "right rows", "wrong rows", or its error.
sub outcome
{
	my ($query, $settings) = @_;
	my ($status, $rows, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\n" . ($settings // '') . $query);

	return $rows eq $right{$query} ? 'right rows' : 'wrong rows' if $status == 0;
	return "error $1" . ($error =~ /^HINT: /m ? ' with a hint' : ' without a hint')
	  if $error =~ /ERROR:  (\w{5}): /;
	return $error;
}

# What EXPLAIN ANALYZE shows of the engine.
sub engine_of
{
	my ($query, $settings) = @_;
	my $plan = $node->safe_psql('postgres', ($settings // '') . "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query");

	return join('; ', $plan =~ /^ +((?:Engine|Fallback Reason|Device Not Used|Device): .*)$/mg);
}

sub nfiles
{
	my ($pid) = @_;

	return scalar(() = glob "/proc/$pid/fd/*");
}

# gpusortd has no job, no memory of earlier ones, and as many files open as before.
sub is_idle_with
{
	my ($what, $files) = @_;
	my ($pid) = service_processes($node);

	is_idle($node, $what);
	ok(poll(sub { nfiles($pid) == $files }), "$what: and no file");
}

# A session that lives through all of it.
my ($witness, $witness_pid) = session($node, 'CREATE TEMP TABLE mine AS SELECT 42 AS a; BEGIN');
my ($control) = session($node);

# ------------------------------------------------------------------- no faults

ok(wait_for_service($node, 'running'), 'gpusortd runs');
foreach ($by_text, $by_key, $volatile, $of_few, $few_ties, $many_ties)
{
	is(engine_of($_), 'Engine: cuda; Device: host processor', 'the device sorts');
	is(outcome($_), 'right rows', 'as PostgreSQL does');
}
$node->pgbench('-n -c 32 -j 2 -t 4', 0, [qr{actually processed: 128/128}], [qr{^$}], '32 sessions at once',
	{ '007_many' => "SELECT 1 / (($of_few) = '$right{$of_few}')::int;" });
is_idle($node, '32 sessions');

# ------------------------------------------------- it is killed between sorts

{
	my ($psql) = session($node);
	my ($pid) = service_processes($node);

	is(ask($psql, $by_key), $right{$by_key}, 'a session that has a connection');
	kill 'KILL', $pid;
	is(ask($psql, $by_key), $right{$by_key}, 'killed while idle: the next sort of that session');
	ok(poll(sub { my ($now) = service_processes($node); $now && $now != $pid }), 'it is started again');
	wait_for_service($node, 'running');
	is(ask($psql, $by_key), $right{$by_key}, 'and sorts for that session');
	ok(poll(sub { service_status($node, 'jobs_done') == 1 }), 'itself');

	# Half of the rows have been returned: the sort cannot be restarted.
	ask($psql, 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM rows ORDER BY g, v; FETCH 10 FROM c');
	kill 'KILL', service_processes($node);
	like(ask_error($psql, "\\set VERBOSITY verbose\nMOVE ALL FROM c"),
		qr/ERROR:  58000: sort engine "cuda" failed\nDETAIL:  .*\nHINT:  /, 'killed after the first rows: an error');
	ask($psql, 'ROLLBACK');
	wait_for_service($node, 'running');
	is(ask($psql, $by_text), $right{$by_text}, 'the session continues');
	$psql->quit;
}

# ------------------------------------------------------ faults in a sort

# Before the first row is returned the sort is restarted without the device.
my @faults = (
	map({ [ $_, 'right rows' ] }
		'copy_in:1:kill', 'copy_in:20:kill', 'copy_in:20:fail', 'pack:1:kill', 'pack:1:fail',
		'sort_words:1:kill', 'sort_words:1:fail', 'same_words:1:kill', 'count_ties:1:kill', 'list_ties:1:kill',
		'same_tails:1:kill', 'sort_tails:1:kill', 'sort_tails:1:fail', 'tie_keys:1:kill', 'sort_ties:1:kill',
		'place_ties:1:kill', 'row_end_offsets:1:kill', 'find_boundaries:1:kill', 'find_boundaries:1:fail'),
	map({ [ $_, 'right rows|error 58000 with a hint' ] }
		'gather:1:kill', 'gather:1:fail', 'gather:4:kill', 'gather:4:fail', 'copy_out:12:kill', 'copy_out:12:fail'));

foreach (@faults)
{
	my ($fault, $expected) = @$_;
	my $trace = $fault =~ /kill/ ? 'gpusortd terminated by signal 9' : 'the device failed';
	my $traces = count_in_log($node, $trace);
	my $outcome;

	restart_service($node, 'gpusort.service_fault' => $fault);
	$outcome = outcome($by_text);
	like($outcome, qr/^(?:$expected)$/, "$fault: $outcome");
	ok(poll(sub { count_in_log($node, $trace) > $traces }), "$fault: it has happened");
}
foreach (@faults)
{
	my ($fault, $expected) = @$_;

	next if $fault !~ /copy_in:20|sort_words|gather|copy_out/;
	foreach my $query ($few_ties, $many_ties)
	{
		restart_service($node, 'gpusort.service_fault' => $fault);
		like(outcome($query), qr/^(?:$expected)$/, "$fault, ties: right rows or an error");
		is_idle($node, "$fault, ties");
	}
}
restart_service($node, 'gpusort.service_fault' => 'gather_keys:1:kill');
like(outcome($by_key), qr/^right rows$|^error 58000 with a hint$/, 'keys only');

# Rows that differ when they are read again.
foreach my $fault ('copy_in:5:kill', 'pack:1:fail')
{
	restart_service($node, 'gpusort.service_fault' => $fault);
	is(outcome($volatile), 'error 58000 with a hint', "$fault: rows that are not the same a second time");
}

restart_service($node, 'gpusort.service_fault' => '');
is(outcome($by_text), 'right rows', 'the device sorts again');

# ------------------------------------------------------- it returns wrong rows

# An index is built of the right rows or not at all; of texts of the C library, whose keys may be why
# rows are in wrong order, it is built again, without the device.  All are of one length, so that any
# row can replace another.
$node->safe_psql('postgres', q{
	CREATE TABLE swapped AS SELECT 100000 + (x * 7919::bigint) % 40009 AS i, 'text number ' || 100000 + (x * 7919::bigint) % 40009 AS s FROM generate_series(1, 40000) x;
	CREATE COLLATION of_libc (provider = libc, locale = 'en_US.UTF-8');
	CREATE EXTENSION amcheck;
});
foreach my $column ('i', 's COLLATE of_libc')
{
	my %errors;

	foreach my $call (2 .. 12)
	{
		my ($rc, $out, $err);

		restart_service($node, 'gpusort.service_fault' => "gather:$call:wrong");
		($rc, $out, $err) = $node->psql('postgres', "SET gpusort.force = on; SET gpusort.verify = off; SET max_parallel_maintenance_workers = 0; SET client_min_messages = debug1;
			CREATE INDEX of_swapped ON swapped ($column); SELECT bt_index_parent_check('of_swapped', true, true); DROP INDEX of_swapped");
		$errors{$err =~ /DETAIL:  (Index tuple)/ ? $1 : $err =~ /ERROR.*/ ? $& : $err =~ /(sorted in wrong order)/ ? $1 : ''}++;
	}
	is(join(', ', sort grep { $_ } keys %errors), $column eq 'i' ? 'Index tuple' : 'sorted in wrong order', "($column): no index of wrong rows");
}
restart_service($node, 'gpusort.service_fault' => '');

# ------------------------------------------------------------ it sorts wrongly

# gpusortd checks each sort.  If a check fails it ends, and is not started again before
# a reload; the query sorts again with the CPU engine.
foreach ([ 'sort_words:1', $by_key ], [ 'sort_words:1', $by_text ], [ 'sort_ties:1', $by_text ], [ 'place_ties:2', $by_text ])
{
	my ($step, $query) = @$_;

	restart_service($node, 'gpusort.service_fault' => "$step:wrong");
	is(outcome($query, 'SET gpusort.verify = off; '), 'right rows', "$step sorts wrongly: right rows");
	ok(wait_for_service($node, 'no device'), "$step sorts wrongly: the device is not used any more");
	like(service_status($node, 'detail'), qr/^host processor \(no driver\) sorted wrongly: of 60000 rows, sorted by \d+ bits, \d+ are misplaced/,
		"$step sorts wrongly: the status names the device");
	is(engine_of($query), 'Engine: cpu; Device Not Used: gpusortd: no device: ' . service_status($node, 'detail'),
		"$step sorts wrongly: then the CPU engine sorts");

	# the first sort after a reload starts gpusortd again
	$node->append_conf('postgresql.conf', "gpusort.service_fault = ''\n");
	$node->reload;
	ok(poll(sub { outcome($query); service_status($node, 'state') eq 'running' }), "$step sorts wrongly: a reload tries the device again");
}
is(count_in_log($node, qr/LOG:  gpusort stopped using the device: host processor/), 4, 'the log has it');

# ------------------------------------------------------------ it has no memory

foreach my $work_mem ('256MB', '64kB')
{
	my $settings = "SET work_mem = '$work_mem'; ";

	foreach ('allocate:1:none', 'allocate:2:none', 'allocate:4:none', 'allocate:7:none', 'pin:1:none')
	{
		restart_service($node, 'gpusort.service_fault' => $_);
		is(outcome($by_text, $settings), 'right rows', "$_, work_mem $work_mem: right rows");
		is(outcome($by_key, $settings), 'right rows', "$_, work_mem $work_mem: right keys");
		is_idle($node, $_);
	}
}
restart_service($node, 'gpusort.service_fault' => 'allocate:1:none');
is(engine_of($by_text), "Engine: cpu; Device Not Used: the rows exceed device memory",
	'without memory the CPU engine sorts');

restart_service($node, 'gpusort.service_fault' => '', 'gpusort.device_memory_limit' => '5MB');
foreach ($by_text, $by_key)
{
	foreach my $work_mem ('256MB', '64kB')
	{
		is(outcome($_, "SET work_mem = '$work_mem'; "), 'right rows', "5 MB of device memory, work_mem $work_mem");
	}
}
$node->pgbench('-n -c 32 -j 2 -t 4', 0, [qr{actually processed: 128/128}], [qr{^$}], '32 sessions share 5 MB',
	{ '007_share' => "SET gpusort.device_wait = 50; SELECT 1 / (($of_few) = '$right{$of_few}')::int;" });
is_idle($node, '32 sessions sharing');

# It leaves ties, in memory and in runs; the rows come back where it cannot sort them.
foreach my $limit (5, 12, 28, 30, 32, 34)
{
	restart_service($node, 'gpusort.device_memory_limit' => "${limit}MB");
	foreach my $work_mem ('256MB', '64kB')
	{
		is(outcome($_, "SET work_mem = '$work_mem'; "), 'right rows', "$limit MB of device memory, work_mem $work_mem, ties")
		  foreach $few_ties, $many_ties;
	}
	is_idle($node, "$limit MB, ties");
}

# It sorts in runs, by a key with few ties, since ties take memory; it is lost, or out
# of memory, in a later run.
restart_service($node, 'gpusort.device_memory_limit' => '12MB');
is(outcome($ties_in_runs, "SET work_mem = '64kB'; "), 'right rows', 'runs with ties: right rows');
like($node->safe_psql('postgres', "SET work_mem = '64kB'; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $ties_in_runs"),
	qr/Sort Method: external merge.*Engine: cuda.*Device Runs: ([2-9]|\d\d).*Key Columns: 1\n *Rows Ordered by Comparison: [1-9]/s, 'its runs have the ties in order');
like($node->safe_psql('postgres', "SET work_mem = '64kB'; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $_"),
	qr/Sort Method: external merge.*Engine: cuda.*Device Runs: ([2-9]|\d\d)/s, 'the device sorts in runs') foreach $in_runs, $keys_in_runs;
{
	my $settings = "SET work_mem = '1MB'; SET gpusort.device_min_rows = 1000; ";

	is(outcome($few_in_runs, $settings), 'right rows', 'runs with dictionary codes: right rows');
	like($node->safe_psql('postgres', "${settings}EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $few_in_runs"),
		qr/Device Runs: ([2-9]|\d\d).*Dictionary Entries: 7/s, 'the device sorts by them');
}
foreach my $fault ('pack:2:kill', 'pack:3:fail', 'gather:20:kill', 'copy_out:30:fail', 'copy_in:60:kill', 'allocate:20:none')
{
	foreach my $query ($in_runs, $ties_in_runs, $keys_in_runs)
	{
		restart_service($node, 'gpusort.service_fault' => $fault);
		is(outcome($query, "SET work_mem = '64kB'; "), 'right rows', "$fault, in runs: right rows");
		is_idle($node, $fault);
	}
}
restart_service($node, 'gpusort.service_fault' => 'pack:2:kill');
is(outcome($volatile_in_runs, "SET work_mem = '64kB'; "), 'error 58000 with a hint', 'rows of lost runs that are not the same a second time');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no temporary file is left');
restart_service($node, 'gpusort.service_fault' => '', 'gpusort.device_memory_limit' => '0');

# ----------------------------------------------------------------- it is slow

my $files = 11;					# of gpusortd without clients

foreach my $where ('copy_in:3', 'pack:1', 'sort_words:1', 'sort_tails:1', 'gather:1', 'copy_out:5')
{
	foreach my $how ('cancel', 'terminate')
	{
		my $what = "$how in $where";
		my $psql = interrupt_delayed($node, $control, $where, $how, $by_text);

		isnt(service_status($node, 'jobs'), '', "$what: it answers");
		if ($how eq 'cancel')
		{
			like(ask_error($psql, 'SELECT 1'), qr/ERROR:  canceling statement due to user request/,
				"$what: the statement was canceled");
			is(contexts_of($psql), 0, "$what: no memory of the sort is left");
			is(ask($psql, $by_text), $right{$by_text}, "$what: the session sorts again");
			$psql->quit;
		}
		else
		{
			eval { $psql->{run}->finish };
		}
		is_idle_with($what, $files);
	}

	my ($outcome, $in_time);

	foreach my $delay_s (2, 8, 32)
	{
		restart_service($node, 'gpusort.service_fault' => "$where:delay=${delay_s}000");
		my $start = time;
		$outcome = outcome($by_text, 'SET statement_timeout = 700; ');
		$in_time = time - $start < $delay_s;
		last if $in_time;
	}
	is($outcome, 'error 57014 without a hint', "statement_timeout in $where: fires");
	ok($in_time, "statement_timeout in $where: before the device returns");
	is_idle_with("statement_timeout in $where", $files);
}

# ------------------------------------------------------------------- it hangs

# Stopped by a signal, or in a call that never returns: it does nothing, and closes no socket.
# Its supervisor kills it, or, if that is stopped too, the session notices.
{
	my $hung = 'did not answer for 1000 ms and was killed';

	# Runs a statement until it waits for gpusortd, and stops processes: the outcome of the statement.
	my $is_ended = sub {
		my ($sql, $expected, $what, @supervisors) = @_;
		my ($psql, $pid) = session($node, 'SET max_parallel_maintenance_workers = 2; SET min_parallel_table_scan_size = 0');
		my $is = sub { $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid AND $_[0]") };
		my $rows;

		$psql->{stderr} = '';
		$psql->query_until(qr/started/, "\\set VERBOSITY verbose\n\\echo started\n$sql;\n");
		poll(sub { service_status($node, 'jobs') eq '1' && $is->("wait_event_type = 'Extension'") }) or die "it does not wait: $sql";
		kill 'STOP', @supervisors, service_processes($node);
		ok(poll(sub { $is->("state = 'idle'") }), "stopped $what: the statement ends");
		kill 'CONT', @supervisors, service_processes($node);
		$rows = $psql->query('SELECT 1') =~ s/\n?1$//r;
		$rows = $psql->{stderr} =~ /ERROR:  (\w{5}): / ? "error $1" : $rows;
		is($rows, $expected, "stopped $what: $expected");
		$psql->quit;
		wait_for_service($node, 'running');
	};

	$node->append_conf('postgresql.conf', 'gpusort.service_timeout = 1s');
	restart_service($node, 'gpusort.service_fault' => 'copy_in:3:delay=1000000');
	my $kills = count_in_log($node, $hung);
	$is_ended->($by_text, $right{$by_text}, 'while a query loads');
	$is_ended->($volatile, 'error 58000', 'while a query loads that cannot begin again');
	$is_ended->('CREATE INDEX of_rows ON rows (v)', '', 'in CREATE INDEX');
	cmp_ok(count_in_log($node, $hung), '>=', $kills + 3, 'it was killed each time, and the log shows the reason');
	is($node->safe_psql('postgres', 'SELECT bt_index_parent_check($$of_rows$$, true, true); DROP INDEX of_rows'), '', 'the index is right');
	$is_ended->($by_text, $right{$by_text}, 'and its supervisor', supervisors($node));

	# after the first row the sort cannot be restarted
	restart_service($node, 'gpusort.service_fault' => '');
	my ($psql) = session($node);

	# on a machine under load gpusortd may not have answered in time, and the CPU engine sorts
	for (my $tries = 0; $tries < 10; $tries++)
	{
		ask($psql, 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM rows ORDER BY g, v; FETCH 10 FROM c');
		last if $node->safe_psql('postgres', "SELECT state = 'running' AND jobs = 1 FROM gpusort_service_status()") eq 't';
		ask($psql, 'ROLLBACK');
		sleep 1;
	}
	kill 'STOP', service_processes($node);
	like(ask_error($psql, "\\set VERBOSITY verbose\nMOVE ALL FROM c"), qr/ERROR:  58000: sort engine "cuda" failed\n/, 'stopped while a cursor fetches: an error');
	$psql->quit;
	wait_for_service($node, 'running');

	foreach my $fault ('pack:1:hang', 'gather:1:hang')
	{
		restart_service($node, 'gpusort.service_fault' => $fault);
		is(outcome($by_text), 'right rows', "$fault: a call of the device does not return");
	}
	restart_service($node, 'gpusort.service_fault' => '');

	# a call while it starts may take ten times as long
	$kills = count_in_log($node, 'did not answer for 100 ms');
	$node->append_conf('postgresql.conf', "gpusort.service_timeout = 100\ngpusort.service_fault = 'memory:1:hang'");
	$node->reload;
	ok(poll(sub { count_in_log($node, 'did not answer for 100 ms') > $kills }), 'it hangs as it starts');

	# without a limit it may take any time
	restart_service($node, 'gpusort.service_timeout' => 0, 'gpusort.service_fault' => '');
	my ($pid) = service_processes($node);
	kill 'STOP', $pid;
	sleep 1;
	kill 'CONT', $pid;
	is(outcome($by_text), 'right rows', 'without a limit it continues');
	is((service_processes($node))[0], $pid, 'the same');
	$node->append_conf('postgresql.conf', 'gpusort.service_timeout = 10s');
	$node->reload;
}

# Sessions wait for a slow device.
restart_service($node, 'gpusort.service_fault' => 'copy_in:3:delay=300,pack:1:delay=300,gather:2:delay=300');
is(outcome($by_text), 'right rows', 'a slow device: right rows');

# --------------------------------------------------- the server ends meanwhile

restart_service($node, 'gpusort.service_fault' => 'pack:1:delay=20000');
foreach my $how ('fast', 'immediate', 'kill9')
{
	my ($psql, $pid) = session($node);
	my $postmaster = postmaster_of($node);

	if ($how eq 'fast')
	{
		is(ask($witness, 'SELECT a FROM mine'), 42, 'another session has seen nothing of all this');
		$witness->quit;
		$control->quit;
		ok(!$node->log_contains('server process .* was terminated|reinitializing'), 'no process has crashed');
	}
	$psql->query_until(qr/started/, "\\echo started\n$by_text;\n");
	ok($node->poll_query_until('postgres',
			"SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid"), "$how in a sort");
	$how eq 'kill9' ? $node->kill9 : $node->stop($how);
	ok(poll(sub { service_processes($node) == 0 }), "$how: gpusortd ends with the server");
	eval { $psql->{run}->finish };
	wait_for_end($node, $postmaster);
	$node->start;
	ok(wait_for_service($node, 'running'), "$how: and comes back with it");
}
restart_service($node, 'gpusort.service_fault' => '');
fill(1000000, '');

# --------------------------------------------------- more rows than work_mem

{
	my $settings = "SET work_mem = '64kB'; ";
	my $query = 'SELECT md5(string_agg(i::text, \',\')) FROM (SELECT * FROM rows ORDER BY k, i OFFSET 0) s';

	$right{$query} = $node->safe_psql('postgres', "SET gpusort.enabled = off; $query");
	my $temporary = count_in_log($node, 'temporary file');
	is(engine_of($query, $settings), 'Engine: cuda; Device: host processor', 'a million rows, work_mem 64 kB: the device sorts');
	is(outcome($query, $settings), 'right rows', 'right rows');
	is(count_in_log($node, 'temporary file'), $temporary, 'without a temporary file');
	is(outcome($query, "SET gpusort.engine = cpu; $settings"), 'right rows', 'without the device');
	cmp_ok(count_in_log($node, 'temporary file'), '>', $temporary, 'there are some');
}

# -------------------------------------------------------- repeatedly

{
	my ($psql, $pid) = session($node);
	my ($service) = service_processes($node);
	my $sort = 'SELECT count(*) FROM (SELECT * FROM few ORDER BY g, v, k OFFSET 0) s';
	my ($kb, $service_kb, $nfiles, $service_nfiles);

	foreach my $round (1 .. 110)
	{
		if ($round == 11)
		{
			($kb, $service_kb) = map { memory_kb($_, 'RssAnon') } $pid, $service;
			($nfiles, $service_nfiles) = map { nfiles($_) } $pid, $service;
		}

		# after ten to warm up: fifty sorts, fifty that are interrupted
		if ($round <= 60)
		{
			ask($psql, $sort);
		}
		else
		{
			ask_error($psql, 'SET statement_timeout = ' . (1 + ($round - 60) / 2) . '; ' . $sort);
			1 while ask_error($psql, 'SET statement_timeout = 0') =~ /timeout/;
		}
	}
	ask($psql, $sort);
	cmp_ok(memory_kb($pid, 'RssAnon'), '<', $kb + 4096, 'a hundred sorts: the memory of the session stays');
	cmp_ok(memory_kb($service, 'RssAnon'), '<', $service_kb + 8192, 'that of gpusortd too');
	is(nfiles($pid), $nfiles, 'so do the files of the session');
	becomes(sub { nfiles($service) }, $service_nfiles, 'and those of gpusortd');
	is((service_processes($node))[0], $service, 'it is still the same');
	$psql->quit;
	is_idle_with('again and again', $files);
}

# ---------------------------------------------------- many sorts at a time

{
	my ($psql) = session($node);

	# more than a session may have; each sort stays half read
	ask($psql, q{
		DO $do$
		DECLARE
			c refcursor;
			names text[];
			r record;
			second int := (SELECT k FROM few ORDER BY v, k OFFSET 1 LIMIT 1);
		BEGIN
			FOR n IN 1 .. 100 LOOP
				c := NULL;
				OPEN c FOR SELECT k FROM few ORDER BY v, k;
				FETCH c INTO r;
				names[n] := c;
			END LOOP;
			ASSERT (SELECT jobs = 32 FROM gpusort_service_status()), 'so many on the device';
			FOR n IN 1 .. 100 LOOP
				c := names[n];
				FETCH c INTO r;
				ASSERT r.k = second, 'each continues';
			END LOOP;
		END $do$});
	pass('a hundred sorts at a time in one session, 32 of them on the device');
	$psql->quit;
	is_idle_with('many at a time', $files);
}

$node->stop;
done_testing();
