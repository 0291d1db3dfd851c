# How gpusortd is started, supervised and stopped.  In the first tests it is a shell
# script.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $node;
my $folder = PostgreSQL::Test::Utils::tempdir;
my $program = "$folder/gpusortd";
my $starts = "$folder/starts";
my $ready = 'echo "gpusortd: ready: Fake Device, 7 MB" >&3';

# Replaces the program: it records when and how it was started, and then does what
# is given.
sub write_program
{
	my ($what) = @_;
	my $new = "$program.new";

	unlink $starts;
	append_to_file($new, qq{#!/bin/sh
		echo "\$(date +%s.%N) \$*" >>$starts
		$what
	});
	chmod 0755, $new;
	rename $new, $program;
}

# Waits until a program that was started has run up to the line that says so, and is this one.
sub wait_for_title
{
	my ($title) = @_;

	poll(sub { my @titles = map { title_of($_) } service_processes($node); @titles == 1 && $titles[0] =~ $title })
	  or die "no program $title";
	return;
}

sub lines_of
{
	my ($file) = @_;

	return -e $file ? split(/\n/, slurp_file($file)) : ();
}

sub set
{
	my ($node, %settings) = @_;

	$node->append_conf('postgresql.conf', join("\n", map { "$_ = '$settings{$_}'" } keys %settings) . "\n");
	$node->reload;
}

$node = PostgreSQL::Test::Cluster->new('service');
$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
$node->append_conf('postgresql.conf', qq{
	shared_preload_libraries = 'gpusort'
	restart_after_crash = on
	gpusort.service_path = '$program'
	gpusort.service_timeout = 0		# a shell does not answer
});

# -------------------------------------------------------------------- it runs

write_program("$ready\nexec sleep 1000");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');

ok(poll(sub { $node->log_contains('gpusortd: ready: Fake Device, 7 MB') }), 'started with the server, its words are in the log');
wait_for_title(qr/^sleep 1000$/);	# the shell has another file open
is((lines_of($starts))[0] =~ s/^\S+ //r,
	'--socket pg_stat_tmp/gpusort.sock --device cuda:0 --table pg_stat_tmp/gpusort.devices --memory-limit 0 --park-folder base/pgsql_tmp --park-limit 10240 --idle-seconds 60 --ready-fd 3 --watch-fd 4',
	'its command line');
becomes(sub { service_status($node, 'state, detail, device, memory_total, pid') },
	'not answering|could not connect to pg_stat_tmp/gpusort.sock: No such file or directory|||',
	'a service that does not answer');

ok(poll(sub { join(', ', map { title_of($_) } supervisors($node)) =~ /^postgres: .*gpusort supervisor running *$/ }),
	'its supervisor, as ps shows it');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE '%gpusort%'"), '0',
	'which pg_stat_activity does not show');

my ($pid) = service_processes($node);
my $proc_status = slurp_file("/proc/$pid/status");

is(join(' ', sort map { m{/(\d+)$} } glob "/proc/$pid/fd/*"), '0 1 2 3 4', 'it has no file of the server');
is(readlink("/proc/$pid/fd/0"), '/dev/null', 'it reads nothing');
like($proc_status, qr/^SigBlk:\s+0+$/m, 'no signal is blocked');
like($proc_status, qr/^SigIgn:\s+0+$/m, 'no signal is ignored');

# --------------------------------------------------------------- it is killed

kill 'KILL', $pid;
ok(poll(sub { lines_of($starts) == 2 }), 'killed: it is restarted');
ok($node->log_contains('gpusortd terminated by signal 9'), 'and the log shows it');
is(scalar(service_processes($node)), 1, 'there is one');

# ------------------------------------------------------------------- settings

my ($before) = service_processes($node);
set($node, 'gpusort.min_rows' => 5);
sleep 0.5;
is((service_processes($node))[0], $before, 'a setting that is not its own: it stays');

my $readies = count_in_log($node, 'gpusortd: ready');
write_program("trap 'echo ended >>$starts; exit 0' TERM\n$ready\nwhile :; do sleep 0.05; done");
kill 'KILL', $before;
ok(poll(sub { lines_of($starts) == 1 && count_in_log($node, 'gpusortd: ready') > $readies }), 'a new program, which has set its trap');
set($node, 'gpusort.device' => 'host', 'gpusort.device_memory_limit' => '3GB',
	'gpusort.device_park_limit' => '0', 'gpusort.device_idle' => '2min', 'gpusort.service_fault' => 'pack:1:fail');
ok(poll(sub { lines_of($starts) == 3 }), 'settings of its own: it is started again');
is((lines_of($starts))[1], 'ended', 'after a request to end');
is((lines_of($starts))[2] =~ s/^\S+ //r,
	'--socket pg_stat_tmp/gpusort.sock --device host:0/1 --table pg_stat_tmp/gpusort.devices --memory-limit 3072 --idle-seconds 120 --ready-fd 3 --watch-fd 4 '
	  . '--fault pack:1:fail',
	'and has them on its command line');

# ------------------------------------------------------------ it always fails

write_program('echo "gpusortd: first line"; echo "gpusortd: something broke" >&2; exit 1');
kill 'KILL', service_processes($node);
ok(poll(sub { lines_of($starts) >= 5 }), 'it fails again and again');
becomes(sub { service_status($node, 'state, detail') }, 'failed|exited with status 1: something broke', 'which the status shows');

my @times = map { (split)[0] } lines_of($starts);
my @pauses = map { $times[$_] - $times[ $_ - 1 ] } 1 .. 4;
my $least = 0.2;				# the kill was the first
my $too_early = 0;

foreach (@pauses)
{
	$too_early = 1 if $_ < $least * 0.9;
	$least *= 2;
}
ok(!$too_early, 'each pause is twice as long as the one before: ' . join(', ', @pauses));

# A setting ends the pause.
write_program("$ready\nexec sleep 1000");
set($node, 'gpusort.service_fault' => '');
ok(poll(sub { lines_of($starts) == 1 }), 'another setting: it is started at once');
ok(!grep({ /--fault/ } lines_of($starts)), 'without a fault');

# ------------------------------------------- the server ends, in several ways

foreach my $how ('fast', 'immediate', 'kill9')
{
	ok(poll(sub { service_processes($node) == 1 }), "$how: it runs");
	my $postmaster = postmaster_of($node);
	$how eq 'kill9' ? $node->kill9 : $node->stop($how);
	ok(poll(sub { service_processes($node) == 0 }), "$how: it ends with the server");
	wait_for_end($node, $postmaster);
	write_program("$ready\nexec sleep 1000");
	$node->start;
	ok(poll(sub { lines_of($starts) == 1 }), "$how: and comes back with it");
}

# It ignores the request to end.
$readies = count_in_log($node, 'gpusortd: ready');
write_program("trap '' TERM\n$ready\nwhile :; do sleep 0.05; done");
kill 'KILL', service_processes($node);
ok(poll(sub { lines_of($starts) == 1 && count_in_log($node, 'gpusortd: ready') > $readies }), 'a program that ignores SIGTERM');
$node->stop('fast');
ok(poll(sub { service_processes($node) == 0 }), 'is killed when the server stops');
write_program("$ready\nexec sleep 1000");
$node->start;

# A backend crashes: the server restarts, and so does gpusortd.
ok(poll(sub { service_processes($node) == 1 }), 'before a crash it runs');
($pid) = service_processes($node);
my ($psql, $backend) = session($node);
kill 'KILL', $backend;
eval { $psql->{run}->finish };
ok(poll(sub { my ($now) = service_processes($node); $now && $now != $pid }), 'after a crash it is another');
ok(is_back($node), 'and the server is back');
ok(poll(sub { service_processes($node) == 1 }), 'there is one');

# ----------------------------------------------------------- several devices

# The state of each device, and how often its program was started.
sub states
{
	return $node->safe_psql('postgres', q{SELECT string_agg(device_number || ' ' || state, ', ' ORDER BY device_number) FROM gpusort_service_status()});
}

sub nstarts
{
	my ($device) = @_;

	return scalar(grep { /--device cuda:$device / } lines_of($starts));
}

# The program of device 0 says how many there are.  Each has a file with its process.
my $counts = qq{case "\$*" in *cuda:0*) echo "gpusortd: devices: 3" >&3;; esac
	for k in 0 1 2; do case "\$*" in *cuda:\$k*) echo \$\$ >$folder/pid.\$k;; esac; done};

write_program("$counts\n$ready\nexec sleep 1000");
set($node, 'gpusort.device' => 'auto', 'gpusort.device_idle' => '61s');
ok(poll(sub { lines_of($starts) == 3 }), 'auto: a process for each device');
is(join(', ', sort map { m{--socket (\S+) --device (\S+) } } lines_of($starts)),
	'cuda:0, cuda:1, cuda:2, pg_stat_tmp/gpusort.sock, pg_stat_tmp/gpusort.sock.1, pg_stat_tmp/gpusort.sock.2', 'each with its socket');
ok(poll(sub { states() eq '0 not answering, 1 not answering, 2 not answering' }), 'the status has a row for each');
ok($node->log_contains('gpusortd of device 2: ready: Fake Device, 7 MB'), 'the log names the device');
ok(poll(sub { title_of((supervisors($node))[0]) =~ /supervisor running *$/ }), 'all run, as ps shows');

kill 'KILL', lines_of("$folder/pid.2");
ok(poll(sub { nstarts(2) == 2 }), 'one is killed: it is restarted');
is(nstarts(0) + nstarts(1), 2, 'only that one');
ok($node->log_contains('gpusortd of device 2 terminated by signal 9'), 'the log names it');

# one finds no device
write_program(qq{$counts\ncase "\$*" in *cuda:1*) echo "gpusortd: no device: it is lost" >&2; exit 3;; esac\n$ready\nexec sleep 1000});
kill 'KILL', lines_of("$folder/pid.1");
ok(poll(sub { states() eq '0 not answering, 1 no device, 2 not answering' }), 'a device is lost');
is($node->safe_psql('postgres', 'SELECT detail FROM gpusort_service_status() WHERE device_number = 1'), 'it is lost', 'and why');
ok(poll(sub { title_of((supervisors($node))[0]) =~ /supervisor 2 of 3 running *$/ }), 'as ps shows');
sleep 0.5;
is(nstarts(1), 1, 'it is not tried again');
set($node, 'gpusort.service_path' => $program, 'gpusort.min_rows' => 6);
ok(poll(sub { nstarts(1) == 2 }), 'before a reload');
ok(poll(sub { nstarts(0) + nstarts(2) == 2 }), 'at which the others, whose program has changed, are restarted');
ok(poll(sub { states() eq '0 not answering, 1 no device, 2 not answering' }), 'it is still lost');
$node->reload;
ok(poll(sub { nstarts(1) == 3 }), 'at each reload');
is(nstarts(0) + nstarts(2), 2, 'and the others are not if nothing has changed');

# a reload while it looks for its device
write_program(qq{$counts\ncase "\$*" in *cuda:1*) until [ -e $folder/go ]; do sleep 0.05; done; echo "gpusortd: no device: it is lost" >&2; exit 3;; esac\n$ready\nexec sleep 1000});
$node->reload;
ok(poll(sub { nstarts(1) == 1 && nstarts(0) + nstarts(2) == 2 }), 'all are started, and one does not fail yet');
$node->reload;
append_to_file("$folder/go", '');
ok(poll(sub { nstarts(1) == 2 }), 'a reload meanwhile: it is tried once more');
ok(poll(sub { states() eq '0 not answering, 1 no device, 2 not answering' }), 'it is lost for good');
sleep 0.5;
is(nstarts(1), 2, 'and not tried again');

# device 0 is the one that cannot be used
write_program(qq{$counts\ncase "\$*" in *cuda:0*) echo "gpusortd: no device: it is lost" >&2; exit 3;; esac\n$ready\nexec sleep 1000});
$node->restart;
ok(poll(sub { states() eq '0 no device, 1 not answering, 2 not answering' }), 'device 0 is lost: the others are found');

# a list
write_program("$ready\nexec sleep 1000");
set($node, 'gpusort.device' => '2, 0');
ok(poll(sub { states() eq '0 not answering, 2 not answering' }), 'a list: two of them');
ok(poll(sub { service_processes($node) == 2 }), 'the other one is ended');
is($node->safe_psql('postgres', 'SELECT string_agg(device_number::text, $$ $$) FROM gpusort_service_status()'), '0 2', 'in the order of their numbers');
set($node, 'gpusort.device' => 'host');
ok(poll(sub { states() eq '0 not answering' && service_processes($node) == 1 }), 'one device again');
ok(poll(sub { (lines_of($starts))[-1] =~ /--device host:0\/1 / }), 'of the host');

# ------------------------------------------------------- it is of no use

write_program('echo "gpusortd: no device: no CUDA driver here" >&2; exit 3');
kill 'KILL', service_processes($node);
ok(wait_for_service($node, 'no device'), 'no device');
is(service_status($node, 'detail'), 'no CUDA driver here', 'and why');
sleep 1;
is(scalar(lines_of($starts)), 1, 'it is not tried again');
becomes(sub { scalar(supervisors($node)) }, 0, 'no supervisor stays');

set($node, 'gpusort.service_path' => "$folder/nowhere");
$node->restart;
ok(wait_for_service($node, 'no program'), 'no program');
is(service_status($node, 'detail'), 'No such file or directory', 'and why, without the path, which superusers may see');
is(count_in_log($node, "gpusortd: \Q$folder\E/nowhere: No such file or directory"), 1, 'it is in the log');

# No session wants a device.
write_program("$ready\nexec sleep 1000");
set($node, 'gpusort.service_path' => $program, 'gpusort.engine' => 'cpu');
$node->restart;
sleep 0.5;
ok(!-e $starts, 'gpusort.engine = cpu: it is not started');
$node->safe_psql('postgres', q{
	SET gpusort.engine = cuda;
	SET gpusort.device_min_rows = 0;
	SET gpusort.force = on;
	SELECT count(*) FROM (SELECT * FROM generate_series(1, 10) g ORDER BY g OFFSET 0) s});
ok(poll(sub { lines_of($starts) == 1 }), 'unless a session wants it');
$node->stop;

# ------------------------------------------------------------------ on demand

# A machine without a device, whatever it has.
$ENV{CUDA_VISIBLE_DEVICES} = '';
$node = gpusort_node('demand', 'gpusort.engine = cuda', 'gpusort.device_min_rows = 0',
	'work_mem = 64MB', 'max_connections = 50', 'wal_level = replica', 'max_wal_senders = 4',
	'gpusort.service_timeout = 5min');		# it is stopped by a signal, and must not be killed
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE rows AS SELECT i, hashint4(i) AS k FROM generate_series(1, 30000) i;
	ANALYZE rows});
my $query = 'SELECT * FROM rows ORDER BY k';
my $digest = "SELECT md5(string_agg(i::text, ',')) FROM ($query OFFSET 0) s";
my $right = $node->safe_psql('postgres', "SET gpusort.enabled = off; $digest");

# What EXPLAIN ANALYZE shows of the engine.
sub engine_of
{
	my $plan = $node->safe_psql('postgres', "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query");

	return join('; ', $plan =~ /^ +((?:Engine|Fallback Reason|Device Not Used|Device): .*)$/mg);
}

is(service_status($node, 'state, detail'), 'not started|the first large sort starts it, if max_worker_processes allows another worker',
	'not yet started');
is($node->safe_psql('postgres', "SET gpusort.engine = cpu; $digest"), $right, 'a sort of the CPU');
is(service_status($node, 'state'), 'not started', 'does not start it');
is($node->safe_psql('postgres', $digest), $right, 'a sort that wants a device need not have one');
ok(wait_for_service($node, 'no device'), 'but starts the service, which finds none');
isnt(service_status($node, 'detail'), '', 'and the reason: ' . service_status($node, 'detail'));
is(engine_of(), 'Engine: cpu; Device Not Used: gpusortd: no device: ' . service_status($node, 'detail'),
	'which EXPLAIN ANALYZE shows too');
is($node->safe_psql('postgres', $digest), $right, 'the rows are right');

is(count_in_log($node, 'gpusortd: no device'), 1, 'the device was looked for once');
$node->reload;
ok(poll(sub { engine_of(); count_in_log($node, 'gpusortd: no device') == 2 }), 'after a reload it is looked for again');
engine_of();
sleep 0.5;
is(count_in_log($node, 'gpusortd: no device'), 2, 'once');

# another reason to have none: until it is known, there is none, instead of the one before
my $is_stopped = 'stopped|the next large sort starts it again';

set($node, 'gpusort.service_path' => "$folder/nowhere");
becomes(sub { $node->safe_psql('postgres', 'SHOW gpusort.service_path') }, "$folder/nowhere", 'another program');
is(service_status($node, 'state, detail'), $is_stopped, 'the status has no reason yet');
my $without = 'Engine: cpu; Device Not Used: gpusortd: ';
my $no_program = $without . 'no program: No such file or directory';
my $any = join('|', map { quotemeta } $without . $is_stopped =~ s/\|/: /r, "${without}starting", $no_program);

# its sort makes the supervisor look for the program, which may have begun or be done before the reason is shown
like(engine_of(), qr/^(?:$any)$/, 'EXPLAIN ANALYZE does not have the one before');
ok(wait_for_service($node, 'no program'), 'the supervisor looks for the program');
is(engine_of(), $no_program, 'the new reason');
set($node, 'gpusort.service_path' => '');
becomes(sub { $node->safe_psql('postgres', 'SHOW gpusort.service_path') }, '', 'the program is there again');

set($node, 'gpusort.device' => 'host', 'gpusort.device_memory_limit' => '50MB');
ok(poll(sub { engine_of(); service_status($node, 'state') eq 'running' }), 'another device: it runs');
is_idle($node, 'another device');
my $done = service_status($node, 'jobs_done');
is(engine_of(), 'Engine: cuda; Device: host processor', 'and sorts');
is($node->safe_psql('postgres', $digest), $right, 'the rows are right');
becomes(sub { service_status($node, 'detail, device, device_kind, memory_limit, jobs, waiting, jobs_done') },
	'|host processor|host|52428800|0|0|' . ($done + 2), 'its status');
is(service_status($node, 'pid'), (service_processes($node))[0], 'its process');
is($node->safe_psql('postgres', "CREATE ROLE someone; SET ROLE someone; SELECT state FROM gpusort_service_status()"),
	'running', 'which everyone may see');
isnt($node->psql('postgres', "SET ROLE someone; SHOW gpusort.service_path"), 0, 'but not which program that is');
isnt($node->psql('postgres', "SET gpusort.service_path = '/bin/true'"), 0, 'which cannot be set in a session');

# No session can reach it.
my $socket = $node->data_dir . '/pg_stat_tmp/gpusort.sock';
my $number = (service_processes($node))[0];
SKIP:
{
	skip 'root may do everything', 2 if $> == 0;
	chmod 0, $socket;
	is(service_status($node, 'state, detail'),
		'not answering|could not connect to pg_stat_tmp/gpusort.sock: Permission denied', 'no permission');
	like(engine_of(), qr/^Engine: cpu; Device Not Used: .*Permission denied/, 'a sort goes without');
}
unlink $socket;
is(service_status($node, 'state, detail'),
	'not answering|could not connect to pg_stat_tmp/gpusort.sock: No such file or directory', 'the socket is gone');
like(engine_of(), qr/^Engine: cpu; Device Not Used: .*No such file/, 'a sort goes without');
is((service_processes($node))[0], $number, 'it runs all the same');

# It is stopped by a signal: it has the connection, but does not answer.
$node->restart;
engine_of();
ok(wait_for_service($node, 'running'), 'it runs again');
my ($stopped) = service_processes($node);
stop_process($stopped);
is(service_status($node, 'state, detail'), 'not answering|gpusortd does not answer', 'it does not answer');
isnt($node->psql('postgres', "SET statement_timeout = 100; SELECT * FROM gpusort_service_status()"), 0,
	'one does not have to wait for that');

# A sort waits for it once, for a second, and then none does for a while: on a busy machine one of them at least
# takes less than that.
my ($hung) = session($node);
my $ask_hung = sub {
	my $start = time;

	like(ask($hung, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query"),
		qr/Engine: cpu\n +Device Not Used: gpusortd does not answer/, 'then the CPU engine sorts');
	return time - $start;
};
cmp_ok($ask_hung->(), '>=', 0.9, 'after a second');
ok(poll(sub { $ask_hung->() < 0.9 }), 'and the next time without waiting');
$hung->quit;
kill 'CONT', $stopped;
ok(wait_for_service($node, 'running'), 'now it does');

# ---------------------------------------------------------- of another build

# The program of another build: the same except for its build ID.  A reload makes the supervisor
# notice that the program has been replaced.
{
	my $own = slurp_file($node->config_data('--bindir') . '/gpusortd');
	my ($id) = `'@{[ $node->config_data('--bindir') ]}/gpusortd' --version` =~ /build ([0-9a-f]{16})$/;
	my $other_id = reverse $id;

	ok(defined $id, 'gpusortd has a build ID') or die;

	# installs a program, reloads, and waits for it
	my $install = sub {
		my ($bytes) = @_;
		my ($old) = service_processes($node);

		append_to_file("$program.new", $bytes);
		chmod 0755, "$program.new";
		rename "$program.new", $program;
		$node->reload;
		return poll(sub { my ($now) = service_processes($node); $now && $now != $old && $node->safe_psql('postgres', 'SELECT state FROM gpusort_service_status()') =~ /^(running|other build)$/ });
	};

	set($node, 'gpusort.service_path' => $program);
	ok($install->($own), 'a copy of the program');
	like(engine_of(), qr/^Engine: cuda/, 'sorts');
	my ($before) = service_processes($node);
	set($node, 'gpusort.min_rows' => 0);
	sleep 0.5;
	is((service_processes($node))[0], $before, 'a reload that finds the same program lets it run');
	ok($install->($own =~ s/\Q$id\E/$other_id/gr), 'a reload that finds another program in its place starts that');
	is(service_status($node, 'state, detail'),
		"other build|gpusortd is of a different build: the client has build $id, gpusortd has build $other_id", 'which is of another build');
	is(engine_of(), "Engine: cpu; Device Not Used: gpusortd is of a different build: the client has build $id, gpusortd has build $other_id",
		'so a sort goes without');
	is($node->safe_psql('postgres', $digest), $right, 'the rows are right');
	becomes(sub { count_in_log($node, "sort without the device: the client has build $id") }, 1, 'one line in the log');
	ok($install->($own), 'the right one again');
	like(engine_of(), qr/^Engine: cuda/, 'sorts');
}
$node->stop;
ok(poll(sub { service_processes($node) == 0 }), 'it ends with the server');

# Many sessions request it at the same time: one is started.
$readies = count_in_log($node, 'gpusortd: ready');
$node->start;
$node->pgbench('-n -c 32 -j 2 -t 5', 0, [qr{actually processed: 160/160}], [qr{^$}],
	'many sessions want it at once',
	{ '006_many' => "SELECT 1 / (($digest) = '$right')::int;" });
ok(wait_for_service($node, 'running'), 'it runs');
is(scalar(service_processes($node)), 1, 'there is one');
ok(poll(sub { supervisors($node) == 1 }), 'and one supervisor');
is(count_in_log($node, 'gpusortd: ready') - $readies, 1, 'which was started once');
$node->stop;

# ------------------------------------------------------------------ a standby

$node->start;
$node->backup('standby');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'standby', has_streaming => 1);
$standby->start;
is($standby->safe_psql('postgres', $digest), $right, 'a standby sorts');
ok(wait_for_service($standby, 'running'), 'and has a service of its own');
is($standby->safe_psql('postgres', $digest), $right, 'that sorts');
ok(poll(sub { $standby->safe_psql('postgres', $digest); service_status($standby, 'jobs_done') > 0 }), 'according to its status');
$standby->stop;
$node->stop;

done_testing();
