# pg_stat_gpusort, pg_stat_gpusort_activity, pg_stat_gpusort_device and gpusort.log_min_duration.
#
# GPUSORT_STATISTICS_STATEMENTS sets how many statements the sessions run that end in every way, GPUSORT_STATISTICS_SEED
# which.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use IPC::Run;
use List::Util qw(sum0);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $nstatements = $ENV{GPUSORT_STATISTICS_STATEMENTS} // 1000;
my $nsessions = 16;
my $nrows = 2000;

# Columns of the view in a database, summed up.
sub statistics
{
	my ($node, $columns, $database) = @_;

	return $node->safe_psql('postgres', "SELECT $columns FROM pg_stat_gpusort WHERE datname = '" . ($database // 'postgres') . "'");
}

sub reset_statistics
{
	my ($node) = @_;

	return $node->safe_psql('postgres', 'SELECT pg_stat_gpusort_reset()');
}

# Tables, and functions that end their session, or the statement, while a sort or an index build reads its input.
sub create_tables
{
	my ($node) = @_;

	$node->safe_psql('postgres', qq{
		CREATE EXTENSION gpusort;
		CREATE TABLE t AS SELECT i AS id, md5(i::text) AS word FROM generate_series(1, $nrows) i;
		CREATE FUNCTION end_by(id int, how text) RETURNS bool VOLATILE LANGUAGE plpgsql AS \$\$
		BEGIN
			IF id = $nrows AND how = 'cancel' THEN
				PERFORM pg_cancel_backend(pg_backend_pid());
			ELSIF id = $nrows AND how = 'terminate' THEN
				PERFORM pg_terminate_backend(pg_backend_pid());
			ELSIF id = $nrows AND how = 'error' THEN
				RAISE 'ended';
			END IF;
			RETURN true;
		END \$\$;
		CREATE FUNCTION end_build_by(id int, how text) RETURNS bool IMMUTABLE LANGUAGE plpgsql
			AS \$\$ BEGIN RETURN public.end_by(id, how); END \$\$;
	});
	$node->safe_psql('postgres', "CREATE TABLE t$_ AS TABLE t") foreach 0 .. $nsessions;
	return;
}

my $cpu = 'SET gpusort.engine = cpu;';
my $cuda = 'SET gpusort.engine = cuda;';
my $sort = 'SELECT count(*) FROM (SELECT * FROM t ORDER BY word OFFSET 0) s;';

# ---------------------------------------------------------------- ways of loading

# With shared_preload_libraries the rest of the file; here the others.
{
	my $node = PostgreSQL::Test::Cluster->new('loading');

	$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
	$node->append_conf('postgresql.conf', "autovacuum = off\nmax_parallel_workers_per_gather = 0\nrestart_after_crash = on\ngpusort.engine = cpu\n");
	$node->start;
	create_tables($node);
	my $before = $node->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_gpusort WHERE sorts_cpu > 0');
	is($before, '0', 'nothing was sorted');
	$node->safe_psql('postgres', "LOAD 'gpusort'; $sort $sort");
	is(statistics($node, 'sorts_cpu, rows'), '2|' . 2 * $nrows, 'LOAD: counted, after the session has ended');
	$node->append_conf('postgresql.conf', "session_preload_libraries = 'gpusort'");
	$node->reload;
	ok(poll(sub { $node->safe_psql('postgres', 'SHOW session_preload_libraries') eq 'gpusort' }), 'reload');
	$node->safe_psql('postgres', $sort);
	is(statistics($node, 'sorts_cpu, rows'), '3|' . 3 * $nrows, 'session_preload_libraries: the same memory');
	$node->safe_psql('template1', 'SELECT count(*) FROM (SELECT * FROM generate_series(1, 5000) i ORDER BY -i OFFSET 0) s');
	is(statistics($node, 'sorts_cpu, rows', 'template1'), '1|5000', 'another database');
	$node->restart;
	$node->safe_psql('postgres', $sort);
	is(statistics($node, 'sorts_cpu'), '1', 'a new server counts from zero');

	my ($session, $pid) = session($node, $sort);
	kill 'KILL', $pid;
	$session->{run}->kill_kill;
	ok(poll(sub { count_in_log($node, 'all server processes terminated; reinitializing') == 1 }), 'a crash');
	ok(is_back($node), 'the server is back');
	$node->safe_psql('postgres', $sort);
	is(statistics($node, 'sorts_cpu'), '1', 'after a crash, too');

	# no dynamic shared memory can be created
	$node->append_conf('postgresql.conf', 'dynamic_shared_memory_type = mmap');
	$node->restart;
	chmod 0500, $node->data_dir . '/pg_dynshmem';
	is($node->safe_psql('postgres', "$sort $sort SELECT count(*) FROM pg_stat_gpusort, pg_stat_gpusort_activity"), "$nrows\n$nrows\n0", 'sorts without statistics');
	is($node->safe_psql('postgres', 'SELECT pg_stat_gpusort_reset()'), '', 'a reset, too');
	is(count_in_log($node, 'could not map the statistics of gpusort'), 2, 'the log has a line for each session');
	chmod 0700, $node->data_dir . '/pg_dynshmem';
	$node->safe_psql('postgres', $sort);
	is(statistics($node, 'sorts_cpu'), '1', 'and with memory again');
	$node->stop;
}

my $node = service_node('statistics', 'shared_buffers = 32MB', 'log_min_messages = log');
create_tables($node);
wait_for_service($node, 'running') or die 'gpusortd does not run';

# --------------------------------------------------------------- what is counted

reset_statistics($node);
is(statistics($node, 'sorts_small + sorts_cpu + sorts_device + sorts_postgres + index_builds_cpu + index_builds_device + rows + temp_bytes + aborted'),
	'0', 'reset');
$node->safe_psql('postgres', $sort);
is(statistics($node, 'sorts_device, rows, device_bytes_sent > rows * 30, device_bytes_received > rows * 30, input_time > 0, sort_time > 0, output_time > 0'),
	"1|$nrows|t|t|t|t|t", 'a sort on a device');
$node->safe_psql('postgres', 'CREATE INDEX ON t0 (word)');
is(statistics($node, 'index_builds_device, sorts_device, rows'), '1|1|' . 2 * $nrows, 'an index build on a device');
reset_statistics($node);
$node->safe_psql('postgres', "$cuda SELECT count(*) FROM (SELECT * FROM t ORDER BY id % 5, (word || '_')::tsquery, id OFFSET 0) s");
is(statistics($node, 'sorts_small + sorts_cpu + sorts_postgres + aborted, sorts_device, rows'), "0|1|$nrows", 'a device that leaves ties');

reset_statistics($node);
$node->safe_psql('postgres', "$cpu SELECT * FROM t WHERE id < 10 ORDER BY word; SELECT * FROM t WHERE id < 20 ORDER BY word");
is(statistics($node, 'sorts_small, rows, sort_time'), '2|28|0', 'few rows');
$node->safe_psql('postgres', "$cpu SET work_mem = '64kB'; $sort");
is(statistics($node, "sorts_cpu, temp_bytes > $nrows * 30, device_bytes_sent"), '1|t|0', 'runs on disk');
$node->safe_psql('postgres', "$cpu SET work_mem = '64kB'; BEGIN; DECLARE c SCROLL CURSOR FOR SELECT * FROM t ORDER BY word; FETCH 1 FROM c; COMMIT");
is(statistics($node, 'sorts_postgres, fallbacks_memory, fallbacks_key, fallbacks_order'), '1|1|0|0', 'a fallback');
$node->safe_psql('postgres', 'SET gpusort.device_session_sorts = 0;' . $sort);
is(statistics($node, 'device_refusals_session, device_refusals_unavailable'), '1|0', 'a refusal: too many sorts of the session');
$node->safe_psql('postgres', "SET gpusort.engine = auto; $sort");
is(statistics($node, 'device_refusals_session, device_refusals_unavailable'), '1|1', 'a refusal: no device that the session may use');
is(statistics($node, 'orders_repaired'), '0', 'no order was wrong');
SKIP:
{
	my $locale = $node->safe_psql('postgres', q{SELECT collname FROM pg_collation WHERE collname IN ('en_US.utf8', 'en_US') AND collprovider = 'c' AND collencoding = 6 LIMIT 1});

	skip 'this machine has no locale en_US', 1 unless $locale;
	$node->safe_psql('postgres', qq{$cpu SET gpusort.collation_fault = on; SELECT count(*) FROM (SELECT * FROM t ORDER BY (chr(65 + id % 2 * 32) || id) COLLATE "$locale" OFFSET 0) s});
	is(statistics($node, 'orders_repaired'), '1', 'a wrong order was repaired');
}

# ------------------------------------------------------------------ in progress

my ($session, $pid) = session($node, $cpu);
ask($session, 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM t ORDER BY word; FETCH 1 FROM c');
my $activity = 'SELECT operation, phase, engine, rows, now() - sort_start < interval \'1 hour\', datname FROM pg_stat_gpusort_activity';
is($node->safe_psql('postgres', "$activity WHERE pid = $pid"), "sort|output|cpu|$nrows|t|postgres", 'an open cursor');
ask($session, 'COMMIT');
is($node->safe_psql('postgres', $activity), '', 'no sort');

$node->safe_psql('postgres', 'CREATE FUNCTION wait(id int) RETURNS int VOLATILE LANGUAGE plpgsql AS '
	  . "\$\$ BEGIN IF id = 10000 THEN PERFORM pg_advisory_xact_lock(1); END IF; RETURN id; END \$\$");
ask($session, 'SELECT pg_advisory_lock(1)');
{
	my $query = 'SELECT count(*) FROM (SELECT wait(i) FROM generate_series(1, 12000) i ORDER BY 1 DESC OFFSET 0) s';
	my ($stdout, $stderr) = ('', '');
	my $psql = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $query ], \'', \$stdout, \$stderr);

	ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'}), 'a sort waits in its input');
	is($node->safe_psql('postgres', "SELECT phase, rows FROM pg_stat_gpusort_activity"), 'input|8192', 'it is shown, with its rows');

	# for others, only that it sorts
	$node->safe_psql('postgres', 'CREATE ROLE other LOGIN; CREATE ROLE monitor LOGIN; GRANT pg_read_all_stats TO monitor');
	my $rows = 'SELECT datname, phase, rows FROM pg_stat_gpusort_activity';
	is($node->safe_psql('postgres', "SET ROLE other; $rows"), 'postgres||', 'another role sees no details');
	is($node->safe_psql('postgres', "SET ROLE monitor; $rows"), 'postgres|input|8192', 'pg_read_all_stats does');
	is($node->safe_psql('postgres', "SET ROLE other; SELECT count(*) FROM pg_stat_gpusort"), '1', 'pg_stat_gpusort is for all');
	like(($node->psql('postgres', 'SET ROLE monitor; SELECT pg_stat_gpusort_reset()'))[2], qr/permission denied/, 'the reset is not');
	ask($session, 'SELECT pg_advisory_unlock(1)');
	$psql->finish;
	is($stdout, "12000\n", 'the sort ends');
}
$session->quit;

# ---------------------------------------------------------------------- the log

# a path in a message may contain the name
is(count_in_log($node, '(?:LOG|WARNING|NOTICE): (?! statement: )[^\n/]*gpusort'), 1, 'one line is logged, for the start of gpusortd');
$node->safe_psql('postgres', "SET gpusort.log_min_duration = 0; $cpu $sort; CREATE INDEX logged ON t0 (id, word)");
ok(count_in_log($node, "gpusort sorted $nrows rows by word in [0-9.]+ ms\n.*DETAIL:  Engine: cpu, method: radix sort, memory: [0-9]+ kB, input: [0-9.]+ ms, sort: [0-9.]+ ms\\.") == 1, 'a sort is logged');
ok(count_in_log($node, "gpusort built index public.logged of $nrows rows in") == 1, 'and an index build');
unlike(($node->psql('postgres', "SET gpusort.log_min_duration = 0; SET client_min_messages = log; $cpu CREATE INDEX CONCURRENTLY unseen ON t0 (id, word)"))[2],
	qr/gpusort built/, 'but not to the client');
is(count_in_log($node, "gpusort built index public.unseen of $nrows rows in"), 1, 'only to the log');
$node->safe_psql('postgres', "SET gpusort.log_min_duration = '1h'; $sort");
$node->safe_psql('postgres', "SET gpusort.log_min_duration = 0; SET gpusort.engine = auto; $sort");
ok(count_in_log($node, 'gpusort sorted') == 2 && count_in_log($node, 'device not used: gpusortd has no CUDA device') == 1, 'with the reason');
like(($node->psql('postgres', 'SET ROLE other; SET gpusort.log_min_duration = 0'))[2], qr/permission denied/, 'for superusers');

# -------------------------------------------------- all that sessions run, exactly

# Statements in any order, most of one sort or index build.  Some end it, or the session; gpusortd is killed meanwhile.
# Returns the last process of it that was killed, or 0.
sub count_all
{
	my ($seed) = @_;
	my %expected = (sorts => 0, small => 0, builds => 0, postgres => 0, aborted => 0, rows => 0);
	my @commands;
	my @outputs = ('') x $nsessions;
	my $killed = 0;

	srand($seed);
	foreach my $session (1 .. $nsessions)
	{
		my ($table, $index) = ("t$session", "i$session");
		my $query = "SELECT count(*) FROM (SELECT * FROM $table ORDER BY word OFFSET 0) s;";
		my $ended = "$cpu SELECT count(*) FROM (SELECT * FROM $table WHERE end_by(id, 'HOW') ORDER BY word OFFSET 0) s;";
		my $ended_build = "$cpu CREATE INDEX $index ON $table (end_build_by(id, 'HOW'));";
		my @kinds = (
			[ "$cpu $query", sorts => 1, rows => $nrows ],
			[ "$cuda $query", sorts => 1, rows => $nrows ],
			[ "$cpu SET work_mem = '64kB'; $query RESET work_mem;", sorts => 1, rows => $nrows ],
			[ "$cpu SELECT count(*) FROM generate_series(1, 3) i, LATERAL (SELECT * FROM $table WHERE id > i ORDER BY word OFFSET 0) s;",
				sorts => 3, rows => 3 * $nrows - 6 ],
			[ "$cpu SELECT count(*) FROM (SELECT * FROM $table WHERE id <= 10 ORDER BY word OFFSET 0) s;", small => 1, rows => 10 ],
			[ "$cpu CREATE INDEX $index ON $table (word, id); DROP INDEX $index;", builds => 1, rows => $nrows ],
			# if gpusortd is killed while the index is written, it fails
			[ "$cuda CREATE INDEX $index ON $table (word, id);\n\\if :ERROR\n\\echo failed\n\\else\nDROP INDEX $index;\n\\endif", builds => 1, rows => $nrows ],
			[ "$cpu SET work_mem = '64kB'; BEGIN; DECLARE c SCROLL CURSOR FOR SELECT * FROM $table ORDER BY word; FETCH 1 FROM c; COMMIT; RESET work_mem;",
				postgres => 1, rows => $nrows ],
			[ "$cpu CREATE UNIQUE INDEX $index ON $table ((id / 2));", aborted => 1, rows => $nrows ],
			map { ([ $ended =~ s/HOW/$_/r, aborted => 1 ], [ $ended_build =~ s/HOW/$_/r, aborted => 1 ]) } qw(cancel error terminate));
		my @scripts = ('');
		my $share = int($nstatements / $nsessions) + ($session <= $nstatements % $nsessions ? 1 : 0);

		foreach (1 .. $share)
		{
			my ($statement, %counts) = @{ $kinds[ int(rand(@kinds)) ] };

			$expected{$_} += $counts{$_} foreach keys %counts;
			$scripts[-1] .= "$statement\n";
			push @scripts, '' if $statement =~ /terminate/;
		}
		# the last session of some is terminated while it is idle
		$scripts[-1] .= "SELECT pg_terminate_backend(pg_backend_pid());\n" if $session % 3 == 0;
		push @commands, join("\n", map { "psql -XAtq -d '" . $node->connstr('postgres') . "' -o /dev/null 2>/dev/null <<'SQL'\n${_}SQL" } @scripts);
	}
	reset_statistics($node);
	my @runs = map { IPC::Run::start([ 'bash', '-c', $commands[$_] ], '>', \$outputs[$_]) } 0 .. $#commands;
	while (grep { $_->pumpable } @runs)
	{
		my ($gpusortd) = service_processes($node);

		kill 'KILL', $killed = $gpusortd if defined $gpusortd && rand() < 0.2;
		select(undef, undef, undef, 0.1);
		# one may end between the two calls
		eval { $_->pump_nb if $_->pumpable } foreach @runs;
	}
	$_->finish foreach @runs;
	my $failed = () = join('', @outputs) =~ /failed/g;
	$expected{builds} -= $failed;
	$expected{aborted} += $failed;
	my $total = sum0(@expected{qw(sorts small builds postgres aborted)});
	ok(poll(sub { statistics($node, 'aborted') >= $expected{aborted} }), "$nstatements statements of $nsessions sessions, $total sorts and builds");
	is(statistics($node, 'sorts_cpu + sorts_device, sorts_small, index_builds_cpu + index_builds_device, sorts_postgres, aborted, rows, fallbacks_memory'),
		"$expected{sorts}|$expected{small}|$expected{builds}|$expected{postgres}|$expected{aborted}|$expected{rows}|$expected{postgres}", 'are counted exactly');
	note('device: ' . statistics($node, 'sorts_device, index_builds_device, device_refusals_unavailable, device_faults') . ", builds that failed: $failed");
	becomes(sub { $node->safe_psql('postgres', 'SELECT count(*) FROM pg_stat_gpusort_activity') }, '0', 'no sort is left');
	return $killed;
}

my $last_killed = count_all($ENV{GPUSORT_STATISTICS_SEED} // 1);

# -------------------------------------------------------------------- the device

my $gpusortd;

# once there is another one, the failure of the last one is counted
poll(sub { ($gpusortd) = service_processes($node); defined $gpusortd && $gpusortd != $last_killed }) or die 'gpusortd is not started again';
wait_for_service($node, 'running') or die 'gpusortd does not run';
my $failures = $node->safe_psql('postgres', 'SELECT failures FROM pg_stat_gpusort_device');
kill 'KILL', $gpusortd;
ok($node->poll_query_until('postgres', "SELECT state = 'running' AND failures = $failures + 1 FROM pg_stat_gpusort_device"), 'a gpusortd that was killed is a failure');
reset_statistics($node);
$node->safe_psql('postgres', "$sort $sort");
ok($node->poll_query_until('postgres', 'SELECT sorts = 2 FROM pg_stat_gpusort_device'), 'sorts of a device');
becomes(sub { $node->safe_psql('postgres', "SELECT device_number, device, failures, bytes_in > $nrows * 30, bytes_out > $nrows * 30, busy_time > 0, memory_limit > 0 FROM pg_stat_gpusort_device") },
	'0|host processor|0|t|t|t|t', 'and what it did since the reset');
($gpusortd) = service_processes($node);
kill 'KILL', $gpusortd;
ok($node->poll_query_until('postgres', "SELECT state = 'running' AND failures = 1 FROM pg_stat_gpusort_device"), 'restarted');
is($node->safe_psql('postgres', 'SELECT sorts FROM pg_stat_gpusort_device'), '2', 'counters survive a restart of gpusortd');
is($node->safe_psql('postgres', 'SET ROLE other; SELECT count(*) FROM pg_stat_gpusort_device'), '1', 'for all roles');

ok($node->log_contains('gpusortd: ready: host processor, \d+ MB, no driver, build [0-9a-f]+'), 'the log has the start of gpusortd');
ok($node->log_contains('gpusortd terminated by signal 9.*\n.*DETAIL:  It will be restarted in \d+ ms'), 'its end and restart');
is(count_in_log($node, 'gpusortd stopped'), 0, 'it was not stopped');
$node->stop;
# the supervisor may see its end before it gets the signal itself
is(count_in_log($node, 'gpusortd (stopped|exited with status 0)'), 1, 'and now it was');
done_testing();
