# What the TAP tests of gpusort share.

package GpuSortTest;

use strict;
use warnings;

use Exporter 'import';
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
  gpusort_node service_node plan_of contexts_of memory_kb session ask ask_error count_rest
  poll becomes is_back count_in_log service_status wait_for_service service_processes
  supervisors title_of stop_process restart_service is_idle wait_for_sessions postmaster_of wait_for_end
  create_linger create_fail_in create_interrupt interrupt_delayed create_compared create_watched
  has_icu has_extension create_index_input @index_columns create_gin_functions start_on_disk
);

# A running cluster with the library preloaded in every session; the other settings
# make results repeatable.  gpusort.verify is on.
sub gpusort_node
{
	my ($name, @settings) = @_;

	return start_node($name, "session_preload_libraries = 'gpusort'", @settings);
}

# A running cluster with the library preloaded by the server: all sorts are gpusortd's,
# whose device is the host's processor.
sub service_node
{
	my ($name, @settings) = @_;

	return start_node($name,
		"shared_preload_libraries = 'gpusort'",
		"gpusort.device = host",
		"gpusort.engine = cuda",
		"gpusort.device_min_rows = 0",
		"gpusort.min_rows = 0",
		"shared_buffers = 64MB",
		@settings);
}

sub start_node
{
	my ($name, @settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
	$node->append_conf('postgresql.conf', join("\n",
		"autovacuum = off",
		"jit = off",
		"max_parallel_workers_per_gather = 0",
		"default_toast_compression = pglz",
		"gpusort.verify = on",
		@settings, ''));
	$node->start;
	return $node;
}

# The plan of a query, in text; $before are statements for the same session.
sub plan_of
{
	my ($node, $query, $before) = @_;

	return $node->safe_psql('postgres', ($before // '') . "EXPLAIN (COSTS OFF) $query");
}

# A field of /proc/PID/status, in kB.
sub memory_kb
{
	my ($pid, $field) = @_;
	my $status = PostgreSQL::Test::Utils::slurp_file("/proc/$pid/status");

	$status =~ /^$field:\s+(\d+) kB/m or die "no $field in /proc/$pid/status";
	return $1;
}

# A session that continues after errors, and its process.
sub session
{
	my ($node, $settings) = @_;
	my $psql = $node->background_psql('postgres', on_error_stop => 0);
	$psql->set_query_timer_restart;
	my $pid = $psql->query_safe('SELECT pg_backend_pid()');

	$psql->query_safe($settings) if $settings;
	return ($psql, $pid);
}

# Runs a statement that must succeed; returns its output.
sub ask
{
	my ($psql, $query) = @_;

	$psql->{stderr} = '';
	return $psql->query_safe($query);
}

# Runs a statement that may fail; returns its messages.
sub ask_error
{
	my ($psql, $query) = @_;
	my $error;

	$psql->{stderr} = '';
	$psql->query($query);
	$error = $psql->{stderr};
	$psql->{stderr} = '';
	return $error;
}

# The number of rows that cursor c still returns.  The rows are not part of the output.
sub count_rest
{
	my ($psql) = @_;

	$psql->{stderr} = '';
	return $psql->query('FETCH ALL FROM c \g | wc -l') =~ /^(\d+)$/m ? $1 : 0;
}

# How many memory contexts of GpuSorts the session has.
sub contexts_of
{
	my ($psql) = @_;

	return ask($psql, "SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'GpuSort'");
}

# Waits until a condition holds; false if it takes too long.
sub poll
{
	my ($condition) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	# a condition may be a query, which takes more time than it waits
	for (my $pause = 0.01; !$condition->(); $pause *= 1.5)
	{
		return 0 if time > $deadline;
		sleep($pause < 0.1 ? $pause : 0.1);
	}
	return 1;
}

# Stops a process by a signal, and waits until all of its threads are stopped.
sub stop_process
{
	my ($pid) = @_;

	kill 'STOP', $pid;
	return poll(sub {
		foreach my $status (glob("/proc/$pid/task/*/status"))
		{
			return 0 if PostgreSQL::Test::Utils::slurp_file($status) !~ /^State:\s*T/m;
		}
		return 1;
	});
}

# Does the server accept connections again, after a crash?  poll_query_until() would end the test
# if a psql that cannot connect ends before its query is written.
sub is_back
{
	my ($node) = @_;

	return poll(sub { system('pg_isready', '-q', '-h', $node->host, '-p', $node->port) == 0 });
}

# A test of a value that takes some time to become what it should be, such as a number that another
# process counts after its client has its rows.
sub becomes
{
	my ($value, $expected, $what) = @_;
	my $last;

	poll(sub { $last = $value->(); $last eq $expected });
	is($last, $expected, $what);
	return;
}

# Waits until no session is left.  A client ends before its session, which only then has reported its statistics.
sub wait_for_sessions
{
	my ($node) = @_;

	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'")
	  or die 'a session does not end';
	return;
}

sub postmaster_of
{
	my ($node) = @_;

	return (split /\n/, PostgreSQL::Test::Utils::slurp_file($node->data_dir . '/postmaster.pid'))[0];
}

# Waits until no process of a server is left that has been killed, so that it can be started again.
sub wait_for_end
{
	my ($node, $postmaster) = @_;

	poll(sub { !-e "/proc/$postmaster" && processes_in($node->data_dir) == 0 }) or die 'a process of the server does not end';
	return;
}

# How often the server's log has something.
sub count_in_log
{
	my ($node, $regexp) = @_;

	return scalar(() = PostgreSQL::Test::Utils::slurp_file($node->logfile) =~ /$regexp/g);
}

# A column of gpusort_service_status(), in a row for each device.
sub service_status
{
	my ($node, $column) = @_;

	return $node->safe_psql('postgres', "SELECT $column FROM gpusort_service_status()");
}

# Waits until gpusortd of each device is in a state; false if it takes too long.
sub wait_for_service
{
	my ($node, $state) = @_;

	# without DISTINCT, which is a sort from PostgreSQL 16 on: it could meet the fault that waits for the next one
	return $node->poll_query_until('postgres', "SELECT bool_and(state = '$state') FROM gpusort_service_status()");
}

# Changes settings of gpusortd and restarts it, also if they are what they were.  For that
# gpusort.device_idle has another value each time, by which the new process is recognized:
# after a fault, gpusortd may have been restarted before the reload, with the old settings.
my $nrestarts = 0;

sub restart_service
{
	my ($node, %settings) = @_;
	my $idle = 60 + ++$nrestarts;

	$settings{'gpusort.device_idle'} = $idle;
	$node->append_conf('postgresql.conf', join("\n", map { "$_ = '$settings{$_}'" } keys %settings) . "\n");
	$node->reload;
	poll(sub { my @titles = map { title_of($_) } service_processes($node); @titles && !grep { !/ --idle-seconds $idle / } @titles })
	  or die 'gpusortd is not started again';
	wait_for_service($node, 'running') or die 'gpusortd does not run';
	return;
}

# gpusortd has no job, and no memory of earlier ones.
sub is_idle
{
	my ($node, $what) = @_;

	becomes(sub { service_status($node, 'sum(jobs), sum(waiting), sum(memory_used + memory_lent)') }, '0|0|0',
		"$what: no job is left, and no memory");
	return;
}

# Of the processes in the server's folder: gpusortd, and its supervisors.
sub service_processes
{
	my ($node) = @_;

	return grep { (readlink("/proc/$_/exe") // '/postgres') !~ m{/postgres$} } processes_in($node->data_dir);
}

sub supervisors
{
	my ($node) = @_;

	return grep { title_of($_) =~ /gpusort supervisor/ } processes_in($node->data_dir);
}

sub processes_in
{
	my ($folder) = @_;

	return grep { (readlink("/proc/$_/cwd") // '') eq $folder } map { m{(\d+)$} } glob '/proc/[0-9]*';
}

# A process title as shown by ps; '' if the process is gone.
sub title_of
{
	my ($pid) = @_;

	open(my $file, '<', "/proc/$pid/cmdline") or return '';
	return join(' ', split(/\0/, <$file> // ''));
}

# fail_in(id, worker) returns id, and fails in a worker, or in the leader, at one row of so many; the other processes
# wait there, so that there are rows for all.
sub create_fail_in
{
	my ($node, $every) = @_;

	$node->safe_psql('postgres', qq{
		CREATE FUNCTION fail_in(id int, worker boolean) RETURNS int VOLATILE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS \$\$
		BEGIN
			IF id % $every = 0 THEN
				IF worker = EXISTS (SELECT FROM pg_stat_activity WHERE pid = pg_backend_pid() AND leader_pid IS NOT NULL) THEN
					RAISE EXCEPTION 'row % fails', id;
				END IF;
				PERFORM pg_sleep(100);
			END IF;
			RETURN id;
		END \$\$;
	});
	return;
}

# A function that waits at a given row, in a worker or the leader, until it is interrupted.
sub create_linger
{
	my ($node) = @_;

	$node->safe_psql('postgres', q{
		CREATE FUNCTION linger(id int, at int) RETURNS int VOLATILE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS $$
		BEGIN
			IF id = at THEN
				PERFORM pg_sleep(100);
			END IF;
			RETURN id;
		END $$;
	});
	return;
}

# Starts a node on a disk that is full while a file is there: test/disk/disk.c.  Returns the name of
# that file.
sub start_on_disk
{
	my ($node) = @_;
	my $disk = PostgreSQL::Test::Utils::tempdir() . '/disk.so';
	my $full = PostgreSQL::Test::Utils::tempdir() . '/full';
	local $ENV{LD_PRELOAD} = $disk;
	local $ENV{FULL_DISK} = $full;

	{
		local $ENV{LD_PRELOAD};
		PostgreSQL::Test::Utils::command_ok([ $node->config_data('--cc'), '-O2', '-fPIC', '-shared', '-o', $disk, "$FindBin::RealBin/../test/disk/disk.c" ],
			'a disk that can be full');
	}
	$node->start;
	return $full;
}

# A function that cancels or terminates a session, and returns after how many milliseconds it
# and its workers were done.  Another one does so once the session has waited for gpusortd for a
# while; NULL: its query with a string_agg() has ended before.
sub create_interrupt
{
	my ($node) = @_;

	$node->safe_psql('postgres', q{
		CREATE FUNCTION interrupt(session int, how text) RETURNS numeric LANGUAGE plpgsql AS $$
		DECLARE
			start timestamptz := clock_timestamp();
		BEGIN
			IF how = 'cancel' THEN
				PERFORM pg_cancel_backend(session);
			ELSE
				PERFORM pg_terminate_backend(session);
			END IF;
			LOOP
				PERFORM pg_stat_clear_snapshot();
				EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity
					WHERE pid = session AND state = 'active' OR leader_pid = session AND pid <> session);
				IF clock_timestamp() > start + interval '1 minute' THEN
					RAISE 'an interrupt has no effect';
				END IF;
				PERFORM pg_sleep(0.0005);
			END LOOP;
			RETURN round(extract(epoch FROM clock_timestamp() - start) * 1000, 1);
		END $$;
		CREATE FUNCTION interrupt_waiting(session int, how text) RETURNS numeric LANGUAGE plpgsql AS $$
		DECLARE
			deadline timestamptz := clock_timestamp() + '100 s';
			looks int := 0;
		BEGIN
			WHILE looks < 5 LOOP
				PERFORM pg_stat_clear_snapshot();
				looks := CASE WHEN EXISTS (SELECT FROM pg_stat_activity
					WHERE pid = session AND wait_event_type = 'Extension') THEN looks + 1 ELSE 0 END;
				IF EXISTS (SELECT FROM pg_stat_activity WHERE pid = session AND state = 'idle' AND query LIKE '%string_agg%') THEN
					RETURN NULL;
				END IF;
				IF clock_timestamp() > deadline THEN
					RAISE 'it never waited';
				END IF;
				PERFORM pg_sleep(0.01);
			END LOOP;
			RETURN interrupt(session, how);
		END $$;
	});
	return;
}

# Interrupts a query with a string_agg() while a call of the device is delayed, which must take effect in half of
# the delay.  A busy machine may be too slow for that, so it is tried again with longer delays.
sub interrupt_delayed
{
	my ($node, $control, $where, $how, $query) = @_;
	my ($psql, $pid, $ms, $in_time);

	foreach my $delay_ms (1000, 4000, 16000)
	{
		eval { $psql->quit } if $psql;
		($psql, $pid) = session($node);
		restart_service($node, 'gpusort.service_fault' => "$where:delay=$delay_ms");
		$psql->query_until(qr/started/, "\\echo started\n$query;\n");
		$ms = ask($control, "SELECT interrupt_waiting($pid, '$how')");
		$in_time = $ms ne '' && $ms < $delay_ms / 2;
		last if $in_time;
		note("$how in $where: $ms ms, of a delay of $delay_ms ms");
	}
	ok($in_time, "$how in $where: it takes effect before the device returns");
	return $psql;
}

# The functions of amcheck; on a server without contrib modules they do nothing.
sub create_amcheck
{
	my ($node) = @_;

	if (has_extension($node, 'amcheck'))
	{
		$node->safe_psql('postgres', 'CREATE EXTENSION amcheck');
		return;
	}
	note('this server has no amcheck: the structure of indexes is not checked');
	$node->safe_psql('postgres', "CREATE FUNCTION $_ RETURNS void LANGUAGE sql AS ''")
	  foreach ('bt_index_check(regclass, boolean)', 'bt_index_parent_check(regclass, boolean, boolean)');
	return;
}

# Functions that check, compare and write GIN indexes (test/gin/), and amcheck's gin_index_check(), which
# does nothing before PostgreSQL 18.
my $gin_library;	# built once

sub create_gin_functions
{
	my ($node, $database) = @_;
	my $root = "$FindBin::RealBin/..";

	$database //= 'postgres';
	if (!$gin_library)
	{
		$gin_library = PostgreSQL::Test::Utils::tempdir() . '/gin.so';
		PostgreSQL::Test::Utils::command_ok([ $node->config_data('--cc'), split(' ', $node->config_data('--cflags')), '-Wno-declaration-after-statement',
				'-fPIC', '-shared', '-I', $node->config_data('--includedir-server'), '-I', "$root/src", '-I', "$root/test", '-o', $gin_library,
				glob("$root/test/gin/*.c $root/src/gin/gin_p*.c"), map { "$root/src/$_.c" } qw(build/build_blocks build/build_ranges pg_compat) ],
			'the functions for GIN indexes are built');
	}
	$node->safe_psql($database, qq{
		CREATE FUNCTION gin_entries(index regclass, OUT attribute int2, OUT category int2, OUT key text, OUT tid tid)
			RETURNS SETOF record LANGUAGE c STRICT AS '$gin_library';
		CREATE FUNCTION gin_check(index regclass, OUT keys int8, OUT tids int8, OUT entry_pages int8, OUT data_pages int8,
				OUT list_pages int8, OUT free_pages int8, OUT blocks int8, OUT height int4, OUT tree_height int4, OUT meta text)
			LANGUAGE c STRICT AS '$gin_library';
		CREATE FUNCTION gin_copy(source regclass, target regclass, ranges int4) RETURNS float8 LANGUAGE c STRICT AS '$gin_library';
		CREATE FUNCTION gin_fill(target regclass, keys int4, tids int4, step int4) RETURNS void LANGUAGE c STRICT AS '$gin_library';
		-- The number of entries and a hash of them, which does not depend on their order.
		CREATE FUNCTION gin_contents(index regclass) RETURNS text LANGUAGE sql AS \$\$
			SELECT count(*) || ' ' || coalesce(sum(hash_record_extended(e, 0)), 0) FROM gin_entries(index) e
		\$\$;
	});
	return if has_extension($node, 'amcheck') &&
	  $node->safe_psql($database, q{CREATE EXTENSION IF NOT EXISTS amcheck; SELECT count(*) FROM pg_proc WHERE proname = 'gin_index_check'});
	$node->safe_psql($database, "CREATE FUNCTION gin_index_check(regclass) RETURNS void LANGUAGE sql AS ''");
	return;
}

sub has_icu
{
	my ($node) = @_;

	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_collation WHERE collname = 'en-x-icu' AND collprovider = 'i'");
}

sub has_extension
{
	my ($node, $name) = @_;

	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = '$name'");
}

# A function that builds an index of the table input by PostgreSQL, and by gpusort with each
# value of a setting.  It returns the difference, if any, the height of the tree, or the error.
# LSN and checksum of pages are ignored.  amcheck takes longer than a build, and examines one
# of the indexes, since the others have the same pages.
sub create_compared
{
	my ($node) = @_;

	create_amcheck($node);
	if (!has_icu($node))
	{
		note('this server has no ICU: "en-x-icu" is a collation of the C library');
		$node->safe_psql('postgres', q{CREATE COLLATION "en-x-icu" (provider = libc, locale = 'en_US.UTF-8')});
	}
	$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION page_of(index text, block bigint) RETURNS bytea LANGUAGE sql
	AS 'SELECT pg_read_binary_file(pg_relation_filepath(index), block * current_setting(''block_size'')::int, current_setting(''block_size'')::int)';
CREATE FUNCTION built(index text, examined bool, OUT pages text, OUT height int, OUT error text) LANGUAGE plpgsql AS $$
DECLARE
	detail text;
BEGIN
	EXECUTE format('CREATE %s INDEX tested ON input %s', CASE WHEN index LIKE 'unique %' THEN 'UNIQUE' END, replace(index, 'unique ', ''));
	IF examined THEN
		PERFORM bt_index_parent_check('tested', true, true);
	END IF;
	-- without ORDER BY, which would be a GpuSort from PostgreSQL 16 on
	SELECT count(*) || ' ' || md5(string_agg(substr(page_of('tested', block), 11), '')) INTO pages
	FROM generate_series(0, pg_relation_size('tested') / current_setting('block_size')::int - 1) block;
	height := get_byte(page_of('tested', 0), 36);	-- btm_level
	DROP INDEX tested;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	error := concat_ws(' / ', SQLSTATE, SQLERRM, detail);
END $$;
CREATE FUNCTION compared(index text, setting text, choices text[], OUT difference text, OUT height int, OUT error text)
LANGUAGE plpgsql AS $$
DECLARE
	expected record;
	ours record;
	choice text;
BEGIN
	PERFORM set_config('gpusort.enable_create_index', 'off', true);
	expected := built(index, false);
	height := expected.height;
	error := expected.error;
	PERFORM set_config('gpusort.enable_create_index', 'on', true);
	FOREACH choice IN ARRAY choices LOOP
		PERFORM set_config(setting, choice, true);
		ours := built(index, choice = choices[1]);
		IF ours IS DISTINCT FROM expected THEN
			difference := format('%s: %s instead of %s', choice, ours, expected);
			RETURN;
		END IF;
	END LOOP;
END $$;
SQL
	return;
}

# A function that fills the table input with rows of many types, for the indexes below.
sub create_index_input
{
	my ($node) = @_;

	$node->safe_psql('postgres', <<'SQL');
-- Rows of many types, 1 to n, whose values come from few or many, and some are NULL.
CREATE FUNCTION fill(n int, spread int, nulls int) RETURNS void LANGUAGE sql AS $$
	SELECT setseed(0.5);
	DROP TABLE IF EXISTS input;
	CREATE TABLE input AS
	SELECT id, CASE WHEN id % 100 >= nulls THEN k END AS k, CASE WHEN id % 100 >= nulls THEN md5(k::text) END AS s,
		CASE WHEN (id + 7) % 100 >= nulls THEN k * 0.37 END AS f, CASE WHEN id % 13 > 0 THEN k END AS n,
		CASE WHEN id % 100 >= nulls THEN repeat('prefix', k % 50) || k END AS long
	FROM (SELECT id, (random() * spread)::int AS k FROM generate_series(1, n) id) x;
$$;
-- Rows of HOT chains, so that the entries of a page do not come in the order of their TIDs.
CREATE PROCEDURE fill_hot_chains(n int) LANGUAGE plpgsql AS $$
BEGIN
	DROP TABLE input;
	CREATE TABLE input (id int, few int, other int) WITH (fillfactor = 60);
	INSERT INTO input SELECT i, i % 3, i FROM generate_series(1, n) i;
	UPDATE input SET other = 0 WHERE id % 2 = 0;
	UPDATE input SET other = 1 WHERE id % 7 = 0;
END $$;
-- Versions of them that only older snapshots see.
CREATE PROCEDURE leave_dead_rows() LANGUAGE plpgsql AS $$
BEGIN
	CREATE INDEX hinders_hot ON input (other);
	UPDATE input SET other = 2;
	DELETE FROM input WHERE id > 9000;
	INSERT INTO input SELECT i, 0, i FROM generate_series(9001, 9500) i;
	DROP INDEX hinders_hot;
END $$;
SQL
	return;
}

our @index_columns = ('k', 'k DESC', 'k NULLS FIRST', 'k DESC NULLS LAST', '(k::int8)', '(k::int2)', '(k::numeric / 3)', '(f::float8)', '(f::float4)',
	'(k::oid)', '(k % 2 = 0)', '(k::text::"char")', 's', 's COLLATE "en-x-icu"', 's text_pattern_ops', '(s::name)', '(s::bytea)', '(s::uuid)', '(s::char(40))',
	'long', 'long COLLATE "en-x-icu" DESC', '(date \'2000-01-01\' + k)', '(timestamp \'2000-01-01\' + k * interval \'1 minute\')',
	'(k * interval \'1 hour\')', '(\'10.0.0.0\'::inet + k)', '(k::bit(32))', '(ARRAY[k, n])', '(int4range(k, k + 3))', '(ARRAY[s, long])',
	'n, s', 's, k DESC NULLS LAST, f', 'k, n, s, f', 'long, s', '(k % 2 IS NULL), n');

# A table for statements that can be watched: an expression of it, slow(id), waits for a lock at one row.
sub create_watched
{
	my ($node) = @_;

	$node->safe_psql('postgres', q{
		CREATE FUNCTION slow(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
		BEGIN
			IF id = 9400 THEN
				PERFORM pg_advisory_lock_shared(1);
			END IF;
			RETURN -id;
		END $$;
		CREATE TABLE watched WITH (fillfactor = 10) AS SELECT i AS id FROM generate_series(1, 10000) i;
	});
	return;
}

1;
