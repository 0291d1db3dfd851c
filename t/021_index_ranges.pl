# Index builds whose processes write a range of the index each: the order, the structure and
# the size must be those of PostgreSQL's index, and failures of each process must be handled.
# The entries come from sorted runs of the CPU engine; t/022 has those of a device.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use RangesTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = PostgreSQL::Test::Cluster->new('ranges');

$node->init(extra => [ '--locale=C', '--encoding=UTF8', '--data-checksums' ], allows_streaming => 1);
$node->append_conf('postgresql.conf', join("\n",
	"shared_preload_libraries = 'gpusort'", 'gpusort.force = on', 'gpusort.verify = on', 'gpusort.engine = cpu', 'autovacuum = off', 'jit = off',
	'max_parallel_maintenance_workers = 3', 'max_worker_processes = 16', 'min_parallel_table_scan_size = 0', 'wal_keep_size = 4GB', ''));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
create_ranged($node);

# -------------------------------------------------------- the same as PostgreSQL's

# each index has pages enough for four ranges: short keys need more rows than long ones
fill($node, 60000, 2000000000, 3);
is_ranged($node, $_, 'of many values')
  foreach 's', 's COLLATE "en-x-icu"', 'long', 'long COLLATE "en-x-icu" DESC', '(ARRAY[k, n])', 'n, s', 's, k DESC NULLS LAST, f';
fill($node, 150000, 2000000000, 3);
is_ranged($node, $_, 'of many values')
  foreach 'k', 'k DESC NULLS LAST', '(k::numeric / 3)', '(f::float8)', '(s::uuid)', '(timestamp \'2000-01-01\' + k * interval \'1 second\'), id';
is_ranged($node, 'k', 'of options', %$_)
  foreach { rest => 'INCLUDE (s, long)' }, { rest => 'WITH (fillfactor = 40)' }, { rest => 'WITH (deduplicate_items = off)' }, { rest => 'WHERE n > 100' };
is_ranged($node, 'id', 'of unique values', kind => 'UNIQUE');
is_ranged($node, 'id', 'of unique values, with others', kind => 'UNIQUE', rest => 'INCLUDE (k)');
is_ranged($node, 'id DESC', 'of rows in reverse order');
is_ranged($node, 'id', 'of rows in order');
is_ranged($node, 'long COLLATE "en-x-icu", k', 'in little memory', settings => "SET maintenance_work_mem = '12MB'; ");
is_ranged($node, 'k', 'by the leader alone', settings => 'SET gpusort.enable_parallel_index_write = off; ', alone => 1);
is_ranged($node, 'k', 'of few rows', rest => 'WHERE id < 20000', alone => 1);
is_ranged($node, 'k', 'without a worker to be had', settings => 'SET max_parallel_workers = 0; ', alone => 1);
is_ranged($node, 's', 'of runs that were merged', settings => "SET maintenance_work_mem = '1MB'; ", alone => 1);
fill($node, 400000, 3, 10);
is_ranged($node, $_, 'of few values') foreach 'k', 's', 'n NULLS FIRST, f';
is_ranged($node, '(1)', 'of one value');
is_ranged($node, '(NULL::int)', 'of NULLs');
$node->safe_psql('postgres', q{
	DROP TABLE input;
	CREATE TABLE input AS SELECT i AS id, CASE WHEN i % 3000 = 0 THEN repeat('long ', 20000) || i ELSE md5(i::text) || repeat('middle', i % 70) END AS s FROM generate_series(1, 60000) i;
});
is_ranged($node, 's', 'of long values that are compressed');
is_ranged($node, 's COLLATE "en-x-icu", id', 'of long values that are compressed');
$node->safe_psql('postgres', 'CALL fill_hot_chains(200000)');
my ($old) = session($node);

ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
ask($old, 'SELECT count(*) FROM pg_am');
$node->safe_psql('postgres', 'CALL leave_dead_rows()');
is_ranged($node, 'few', 'with dead tuples');
is_ranged($node, 'id', 'with dead tuples', kind => 'UNIQUE');
ask($old, 'COMMIT');

# a participant without rows
$node->safe_psql('postgres', q{
	DROP TABLE input;
	CREATE TABLE input WITH (parallel_workers = 1) AS SELECT hashint8(i) AS k, i AS id FROM generate_series(1, 300000) i;
	-- whose rows are not wanted waits at the first one until the other has read all others, and waits for it
	CREATE FUNCTION wanted(id int, of_leader bool) RETURNS bool IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
	DECLARE
		leader int := current_setting('gpusort_test.leader')::int;
	BEGIN
		IF of_leader = (pg_backend_pid() = leader) THEN
			RETURN true;
		END IF;
		WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE leader IN (pid, leader_pid) AND pid <> pg_backend_pid() AND wait_event_type IN ('IPC', 'Extension')) LOOP
			PERFORM pg_sleep(0.01);
			PERFORM pg_stat_clear_snapshot();
		END LOOP;
		RETURN false;
	END $$;
});
foreach my $of_leader ('true', 'false')
{
	my $before = written_by($node, 2);

	$node->safe_psql('postgres', qq{
		SELECT set_config('gpusort_test.leader', pg_backend_pid()::text, false);
		SET log_min_messages = debug1;
		CREATE INDEX of_some ON input (k) WHERE wanted(id, $of_leader);
		SELECT bt_index_parent_check('of_some', false, true)});
	is(written_by($node, 2) - $before, 1, "of the leader alone: $of_leader: by all");
	is($node->safe_psql('postgres', "SELECT reltuples > 270000 FROM pg_class WHERE relname = 'of_some'; DROP INDEX of_some"), 't', 'it has nearly all rows');
}

# ------------------------------------------------------------------ unique keys

# one key whose first and last row are live, and all others dead, in all ranges
$node->safe_psql('postgres', 'DROP TABLE input; CREATE TABLE input WITH (parallel_workers = 3) AS SELECT 1 AS k, i AS id FROM generate_series(1, 300000) i');
ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
ask($old, 'SELECT count(*) FROM pg_am');
$node->safe_psql('postgres', 'DELETE FROM input WHERE id NOT IN (1, 300000)');
my ($ours, $theirs) = errors_of($node, 'UNIQUE INDEX never ON input (k)');
like($ours, qr/ERROR:  23505: could not create unique index "never"\nDETAIL:  Key \(k\)=\(1\) is duplicated/, 'two live rows of one key in different ranges');
is($ours, $theirs, 'as PostgreSQL says');
$node->safe_psql('postgres', 'DELETE FROM input WHERE id = 1');
is_ranged($node, 'k', 'of one live row and dead ones', kind => 'UNIQUE');
ask($old, 'COMMIT');

# every key has a live row and dead ones, so that borders are between them
$node->safe_psql('postgres', 'DROP TABLE input; CREATE TABLE input WITH (parallel_workers = 3) AS SELECT i / 50 AS k, i AS id FROM generate_series(1, 300000) i');
ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
ask($old, 'SELECT count(*) FROM pg_am');
$node->safe_psql('postgres', 'DELETE FROM input WHERE id % 50 <> k % 50');
is_ranged($node, 'k', 'of keys with a live row each', kind => 'UNIQUE');
ask($old, 'COMMIT');
$old->quit;

# a table that is rewritten, with an index whose build has failed because of duplicates, which must not fail again
$node->safe_psql('postgres', 'DROP TABLE input; CREATE TABLE input WITH (parallel_workers = 3) AS SELECT i / 2 AS k, i AS id FROM generate_series(1, 300000) i');
(undef, undef, $ours) = $node->psql('postgres', 'CREATE UNIQUE INDEX CONCURRENTLY invalid ON input (k)');
like($ours, qr/could not create unique index "invalid"/, 'a concurrent build finds duplicates');
is($node->safe_psql('postgres', 'CREATE UNIQUE INDEX valid ON input (id); VACUUM FULL input; CLUSTER input USING valid; SELECT count(*) FROM input'), '300000', 'the table can be rewritten');
is($node->safe_psql('postgres', "SELECT string_agg(relname || ' ' || indisvalid || ' ' || indisunique, ', ' ORDER BY relname) FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE indrelid = 'input'::regclass"),
	'invalid false true, valid true true', 'and its indexes are as they were');
$node->safe_psql('postgres', "SELECT bt_index_parent_check('valid', true, true)");

# several NULLs are no duplicates, unless they are not distinct
$node->safe_psql('postgres', 'DROP TABLE input; CREATE TABLE input WITH (parallel_workers = 3) AS SELECT NULL::int AS k, i AS id FROM generate_series(1, 200000) i');
is_ranged($node, 'k', 'of NULLs that are distinct', kind => 'UNIQUE');
is_ranged($node, 'k, id', 'of NULLs and values', kind => 'UNIQUE');
($ours, $theirs) = errors_of($node, 'UNIQUE INDEX never ON input (k) NULLS NOT DISTINCT');
like($ours, qr/ERROR:  23505: .*Key \(k\)=\(null\) is duplicated/s, 'NULLs that are not');
is($ours, $theirs, 'as PostgreSQL says');

# a key that is too long for a page
$node->safe_psql('postgres', q{
	DROP TABLE input;
	CREATE TABLE input (id int, s text) WITH (parallel_workers = 3);
	ALTER TABLE input ALTER s SET STORAGE PLAIN;
	INSERT INTO input SELECT i, md5(i::text) FROM generate_series(1, 120000) i;
	INSERT INTO input VALUES (0, '0' || repeat('too long', 400));
});
($ours, $theirs) = errors_of($node, "$_ INDEX never ON input (s)"), is($ours, $theirs, "$_ index of a key that is too long"), like($ours, qr/ERROR:  54000: index row size \d+ exceeds/, 'is an error')
  foreach '', 'UNIQUE';

# ------------------------------------------------------- a process ends, or is stopped

$node->safe_psql('postgres', 'DROP TABLE input; CREATE TABLE input AS SELECT hashint8(i) AS k, i AS id FROM generate_series(1, 1000000) i; ALTER TABLE input SET (parallel_workers = 3)');
my ($builder, $pid) = session($node);
my $writes = "SELECT count(*) FROM pg_stat_progress_create_index WHERE phase LIKE '%loading tuples%' AND tuples_done > 0";
my $workers = "SELECT count(*) FROM pg_stat_activity WHERE leader_pid = $pid AND pid <> $pid";

# Stops a worker that has more rows to write, and waits until all others have written their ranges.  Whoever is
# stopped may have a lock for which nobody can be interrupted, and which a query needs; then it continues for a moment.
# Returns its process, and what pg_stat_progress_create_index shows.
sub stop_a_worker
{
	my $is_idle = "EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid AND state = 'idle' AND query LIKE 'CREATE INDEX%')";

	for (my $try = 1; $try <= 20; $try++)
	{
		my ($stopped, $how);

		$builder->query_until(qr/started/, "\\echo started\nCREATE INDEX stopped ON input (k);\n");
		poll(sub { $node->safe_psql('postgres', "SELECT ($writes) > 0 OR $is_idle") eq 't' });
		($stopped) = split /\n/, $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE leader_pid = $pid AND pid <> $pid");
		if ($stopped)
		{
			my $query = "SELECT CASE WHEN $is_idle OR NOT EXISTS (SELECT FROM pg_stat_progress_create_index WHERE tuples_done < tuples_total - 10000) THEN 'late'
				WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE $pid IN (pid, leader_pid) AND pid <> $stopped
					AND wait_event_type IS DISTINCT FROM 'Extension')
				THEN (SELECT concat_ws('|', phase, tuples_done BETWEEN 1 AND tuples_total, tuples_total) FROM pg_stat_progress_create_index) END";
			my $look = sub { $how = ''; $node->psql('postgres', $query, stdout => \$how, timeout => 3, timed_out => \my $timed_out); return $how ne '' };

			kill 'STOP', $stopped;
			while (!$look->())
			{
				kill 'CONT', $stopped;
				usleep(10_000);
				kill 'STOP', $stopped;
			}
			sleep 1;
			return ($stopped, $how) if $look->() && $how ne 'late';
			kill 'CONT', $stopped;
		}
		ask($builder, 'DROP INDEX stopped');
	}
	die 'no build was stopped while it wrote';
}

my ($stopped, $progress) = stop_a_worker();

is($progress, 'building index: loading tuples in tree|t|1000000', 'progress of all');
kill 'INT', $pid;		# without a query
kill 'CONT', $stopped;
like(ask_error($builder, 'SELECT 1'), qr/canceling statement due to user request/, 'the writing can be canceled');
is(contexts_of($builder), '0', 'nothing is left in the leader');
ok($node->poll_query_until('postgres', $workers, '0'), 'nor a worker');

($stopped) = stop_a_worker();
kill 'TERM', $stopped;
kill 'CONT', $stopped;
like(ask_error($builder, 'SELECT 1'), qr/ERROR:  (terminating background worker "parallel worker" due to administrator command|lost connection to parallel worker)/,
	'terminated, a writer takes the build along');
ok($node->poll_query_until('postgres', $workers, '0'), 'no worker is left');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'nor a file');

# a worker is killed: the server restarts all processes, and the index is gone
($stopped) = stop_a_worker();
kill 'KILL', $stopped;
eval { $builder->quit };	# psql may have ended with its connection
ok(poll(sub { !-e $node->data_dir . '/postmaster.pid' }), 'the server ends');	# a test's server does not restart
$node->_update_pid(0);
$node->start;
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname = 'stopped'"), '0', 'without the index');

# ------------------------------------------------------ crashes, checkpoints, a standby

$node->safe_psql('postgres', 'TRUNCATE input; INSERT INTO input SELECT hashint8(i), i FROM generate_series(1, 400000) i');
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');

$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
my ($checkpoints) = session($node, "SET statement_timeout = 0");

$checkpoints->query_until(qr/started/, "\\echo started\nDO \$\$ BEGIN FOR i IN 1 .. 40 LOOP PERFORM pg_sleep(0.05); PERFORM pg_switch_wal(); END LOOP; END \$\$;\n");
my $pgbench = IPC::Run::start([ 'pgbench', '-n', '-c', '1', '-T', '3', '-f', '-', '-h', $node->host, '-p', $node->port, 'postgres' ],
	'<', \"CHECKPOINT;\n", '>', \my $bench_out, '2>', \my $bench_err);
my $before = written_by($node, 4);

$node->safe_psql('postgres', 'SET log_min_messages = debug1; CREATE INDEX a ON input (k); CREATE UNIQUE INDEX b ON input (id); CREATE INDEX c ON input (k, id); CREATE INDEX CONCURRENTLY d ON input (k)');
is(written_by($node, 4) - $before, 4, 'four indexes are written by all');

# keys that are only approximate, and wrong: the leader truncates what all have written, and builds the index again
$node->safe_psql('postgres', q{
	CREATE COLLATION of_libc (provider = libc, locale = 'en_US.UTF-8');
	CREATE TABLE texts WITH (parallel_workers = 3) AS SELECT chr(65 + i % 2 * 32) || hashint4(i) AS s, repeat('x', 150) || chr(65 + i % 2 * 32) || hashint4(i) AS long, i FROM generate_series(1, 100000) i});
foreach my $index ('INDEX ON texts (s COLLATE of_libc)', 'UNIQUE INDEX ON texts (s COLLATE of_libc, i)', 'INDEX ON texts (long COLLATE of_libc)', 'INDEX CONCURRENTLY ON texts (s COLLATE of_libc DESC)')
{
	my $written = written_by($node, 4);
	my (undef, undef, $messages) = $node->psql('postgres', "SET gpusort.verify = off; SET client_min_messages = debug1; SET log_min_messages = debug1; SET gpusort.collation_fault = on; CREATE $index");

	is(written_by($node, 4) - $written, 1, "$index is written by all");
	is(scalar(() = $messages =~ /entries of index "\w+" were sorted in wrong order/g), 1, 'and built again');
}
my $checks_of_texts = "SELECT count(*) FROM pg_index, LATERAL bt_index_check(indexrelid, true) WHERE indrelid = 'texts'::regclass";

is($node->safe_psql('postgres', $checks_of_texts), '4', 'indexes that were built again');
$pgbench->finish;
$checkpoints->quit;
$node->wait_for_catchup($standby);
my $checks = "SELECT count(*) FROM pg_index, LATERAL bt_index_parent_check(indexrelid, true, true) WHERE indrelid = 'input'::regclass";

is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_index, LATERAL bt_index_check(indexrelid, true) WHERE indrelid = 'input'::regclass"), '4', 'a standby has them');
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM (SELECT k FROM input ORDER BY k OFFSET 0) x'), '400000', 'and uses them');
is($standby->safe_psql('postgres', $checks_of_texts), '4', 'also on the standby');
$standby->stop;
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', $checks_of_texts), '4', 'and after a crash');
is($node->safe_psql('postgres', $checks), '4', 'so does the server after a crash');
$node->safe_psql('postgres', 'CREATE INDEX e ON input (id, k)');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', $checks), '5', 'without a checkpoint, too');
$node->safe_psql('postgres', 'INSERT INTO input SELECT i, i FROM generate_series(400001, 420000) i; DELETE FROM input WHERE id % 3 = 0; VACUUM input');
is($node->safe_psql('postgres', $checks), '5', 'they can be inserted into, and vacuumed');
$node->safe_psql('postgres', q{
	CREATE UNLOGGED TABLE unlogged WITH (parallel_workers = 3) AS SELECT hashint8(i) AS k FROM generate_series(1, 300000) i;
	SET log_min_messages = debug1; CREATE INDEX unlogged_k ON unlogged (k);
});
is($node->safe_psql('postgres', "SELECT count(*) FROM bt_index_parent_check('unlogged_k', true, true)"), '1', 'an unlogged index');
$node->restart;
is($node->safe_psql('postgres', "SELECT count(*) FROM bt_index_parent_check('unlogged_k', true, true)"), '1', 'after a restart');
$node->safe_psql('postgres', q{
	CREATE TABLE parts (k int, id int) PARTITION BY RANGE (id);
	CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (200000) WITH (parallel_workers = 3);
	CREATE TABLE part_2 PARTITION OF parts FOR VALUES FROM (200000) TO (400000) WITH (parallel_workers = 3);
	INSERT INTO parts SELECT hashint8(i), i FROM generate_series(0, 399999) i;
	CREATE INDEX ON parts (k);
	REINDEX TABLE part_1;
});
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_index, LATERAL bt_index_parent_check(indexrelid, true, true) WHERE indrelid IN ('part_1'::regclass, 'part_2'::regclass)"),
	'2', 'indexes of partitions');

# a table that is created in the same transaction is not logged, and its index is synced at the end
$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0\n");
$node->restart;
$node->safe_psql('postgres', q{
	BEGIN;
	CREATE TABLE fresh WITH (parallel_workers = 3) AS SELECT hashint8(i) AS k FROM generate_series(1, 300000) i;
	CREATE INDEX fresh_k ON fresh (k);
	COMMIT;
});
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SELECT count(*) FROM bt_index_parent_check('fresh_k', true, true)"), '1', 'an index that was not logged');

# ------------------------------------------------------------------------ limits

# the limit is below a quarter of the runs, so that a participant exceeds it however rows are divided
my (undef, undef, $full) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET temp_file_limit = '256kB'; CREATE INDEX never ON input (k)");

like($full, qr/ERROR:  53400: temporary file size exceeds "?temp_file_limit"?/, 'temp_file_limit holds for each participant');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no file is left');
$node->stop;
done_testing();
