# Sessions that share the device's memory: which sort waits for it and for how long,
# which one releases it while its client is idle, and the limits of a plain user.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = gpusort_node('admission', 'gpusort.device = host', 'gpusort.engine = cuda',
	'gpusort.device_min_rows = 0', 'gpusort.min_rows = 0', 'gpusort.device_memory_limit = 40MB',
	'gpusort.device_park_limit = 0', 'work_mem = 64MB');

# Two sorts of the table rows do not fit at the same time; one of few fits with either.
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE rows AS SELECT i, hashint4(i) AS k, repeat('x', 300) AS pad FROM generate_series(1, 60000) i;
	CREATE TABLE few AS SELECT * FROM rows WHERE i <= 5000;
	ANALYZE rows, few;
	CREATE ROLE plain;
	GRANT SELECT ON rows, few TO plain});
my $all = 'SELECT * FROM rows ORDER BY k, i';
my $digest = "SELECT md5(string_agg(i::text, ',')) || max(length(pad)) FROM ($all OFFSET 0) s";
my $right = $node->safe_psql('postgres', "SET gpusort.enabled = off; $digest");

# What EXPLAIN ANALYZE shows of the engine.
sub engine_of
{
	my ($psql, $query) = @_;

	return join('; ', ask($psql, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query") =~ /^ +((?:Engine|Fallback Reason|Device Not Used): .*)$/mg);
}

# Opens a cursor in a session and fetches one row.
sub open_cursor
{
	my ($psql) = @_;

	return ask($psql, "BEGIN; DECLARE c NO SCROLL CURSOR FOR $all; FETCH 1 FROM c");
}

engine_of((session($node))[0], 'SELECT * FROM few ORDER BY k');
ok(wait_for_service($node, 'running'), 'gpusortd runs');

# ---------------------------------------------- one that fits does not wait

my ($cursor) = session($node);
my $first = open_cursor($cursor);
my ($waiter, $waiter_pid) = session($node, "SET gpusort.device_wait = '1h'");

$waiter->query_until(qr/started/, "\\echo started\n$digest;\n");
ok(poll(sub { service_status($node, 'waiting') eq '1' }), 'a large sort waits for an idle cursor');
becomes(sub { $node->safe_psql('postgres', "SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = $waiter_pid") },
	$node->safe_psql('postgres', 'SHOW server_version_num') >= 170000 ?
	'Extension|GpusortDeviceMemory' : 'Extension|Extension', 'pg_stat_activity shows what it waits for');

my ($small) = session($node, "SET gpusort.device_wait = 0");
foreach my $when ('at first', 'after some time')
{
	is(engine_of($small, 'SELECT * FROM few ORDER BY k'), 'Engine: cuda', "$when: a small one does not");
	sleep 1 if $when eq 'at first';
}
is(service_status($node, 'waiting'), '1', 'and the large one waits');
ask($small, "SELECT pg_cancel_backend($waiter_pid)");
like(ask_error($waiter, 'SELECT 1'), qr/canceling statement/, 'until it is canceled');
ask($cursor, 'COMMIT');

# ------------------------------------------------ an idle cursor releases its memory

restart_service($node, 'gpusort.device_park_limit' => '1GB');
$first = open_cursor($cursor);
is(ask($waiter, $digest), $right, 'an idle cursor releases its memory for a large sort that waits');
becomes(sub { service_status($node, 'jobs, waiting, memory_used') }, '1|0|0', 'which it no longer has');
is(engine_of($waiter, $all), 'Engine: cuda', 'the device is free');

ask($cursor, q{
	CREATE TEMP TABLE fetched (place serial, i int);
	DO $$
	DECLARE
		c refcursor := 'c';
		r record;
	BEGIN
		LOOP
			FETCH c INTO r;
			EXIT WHEN NOT FOUND;
			INSERT INTO fetched (i) VALUES (r.i);
		END LOOP;
	END $$});
is(ask($cursor, "SELECT md5('" . (split(/\|/, $first))[0] . ",' || string_agg(i::text, ',' ORDER BY place)) || 300 FROM fetched"),
	$right, 'and it continues, with all rows');
ask($cursor, 'COMMIT');
is_idle($node, 'parked');

# More than gpusort.device_park_limit: it keeps its memory, and the other one continues without.
restart_service($node, 'gpusort.device_park_limit' => '5MB');
open_cursor($cursor);
ask($waiter, "SET gpusort.device_wait = '700ms'");
is(engine_of($waiter, $all), "Engine: cpu; Device Not Used: other sorts use the device memory",
	'above the limit of files: the cursor keeps its memory');
is($node->safe_psql('postgres', "SELECT device_refusals_memory > 0 FROM pg_stat_gpusort WHERE datname = 'postgres'"),
	't', 'which the statistics show');
ask($cursor, 'MOVE ALL FROM c; COMMIT');
is_idle($node, 'not parked');

# ----------------------------------------------------- what a user may have

foreach ('device_wait = 1', 'device_session_sorts = 100', 'device_park_limit = -1')
{
	isnt($node->psql('postgres', "SET ROLE plain; SET gpusort.$_"), 0, "a plain user cannot set gpusort.$_");
}
my ($user) = session($node, "SET gpusort.device_session_sorts = 2; SET ROLE plain");
ask($user, 'BEGIN');
ask($user, "DECLARE c$_ CURSOR FOR SELECT * FROM few ORDER BY k; FETCH 1 FROM c$_") foreach 1 .. 2;
is(engine_of($user, 'SELECT * FROM few ORDER BY k'),
	'Engine: cpu; Device Not Used: too many concurrent device sorts in this session', 'so many sorts');
ask($user, 'COMMIT');
is_idle($node, 'what it gives back');
$user->quit;

$node->stop;
done_testing();
