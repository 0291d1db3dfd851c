# Index builds whose table several processes scan, for one job of gpusortd or each for
# itself, and whose leader writes alone: the pages must be those that PostgreSQL would have
# written, and failures of each process must be handled.  The device is the host's processor.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = PostgreSQL::Test::Cluster->new('index_workers');

$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
$node->append_conf('postgresql.conf', join("\n",
	"shared_preload_libraries = 'gpusort'", 'gpusort.device = host', 'gpusort.device_min_rows = 0',
	'gpusort.force = on', 'gpusort.verify = on', 'gpusort.engine = cuda', 'autovacuum = off', 'jit = off', 'fsync = off',
	'gpusort.enable_parallel_index_write = off', 'max_parallel_maintenance_workers = 3', 'max_worker_processes = 16', 'min_parallel_table_scan_size = 0', ''));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
create_compared($node);
create_index_input($node);
ok(wait_for_service($node, 'running'), 'gpusortd runs');
$node->safe_psql('postgres', <<'SQL');
-- Of a scan by workers: gpusort's index, of one job and of sorts each for itself, and PostgreSQL's own.
CREATE FUNCTION same(index text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	ALTER TABLE input SET (parallel_workers = 3);
	RETURN (SELECT coalesce(difference, CASE WHEN error IS NULL THEN 'same' ELSE error END)
			FROM compared(index, 'gpusort.engine', '{cuda,cpu}'));
END $$;
SQL

sub is_same
{
	my ($index, $what, $settings) = @_;

	is($node->safe_psql('postgres', ($settings // '') . "SELECT same(\$x\$$index\$x\$)"), 'same', "$index $what");
}

sub fill
{
	$node->safe_psql('postgres', "SELECT fill($_[0], $_[1], $_[2])");
}

# --------------------------------------------------- the same pages as PostgreSQL's

foreach my $input ([ 1, 1, 0 ], [ 700, 3, 10 ], [ 12000, 40, 5 ], [ 12000, 30000, 0 ])
{
	fill(@$input);
	$node->safe_psql('postgres', 'VACUUM input') if $input->[1] == 40;
	is_same("($_)", "of (@$input)") foreach @index_columns;
}

# so many columns that the key has no space for the TID: tuplesorts sort the rows
my $most_columns = '(' . join(', ', ('k', 's') x 16) . ')';

foreach my $nrows (0, 12000)
{
	fill($nrows, 30000, 5);
	is_same($_, "of $nrows rows") foreach '(k)', $most_columns, "$most_columns WHERE id < 300", '(k) WHERE false', "$most_columns WHERE false";
}

# only workers keep rows: the leader, which is slow, drops its own
$node->safe_psql('postgres', q{
	CREATE FUNCTION is_in_worker(id int) RETURNS bool IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
	BEGIN
		IF pg_backend_pid() = current_setting('gpusort_test.leader')::int THEN
			PERFORM pg_sleep(0.005);
			RETURN false;
		END IF;
		RETURN true;
	END $$;
});
foreach my $columns ('(k)', '(s, k)', $most_columns)
{
	foreach my $engine ('cuda', 'cpu')
	{
		is($node->safe_psql('postgres', "SET gpusort.engine = $engine; ALTER TABLE input SET (parallel_workers = 3);
			SELECT FROM set_config('gpusort_test.leader', pg_backend_pid()::text, false);
			CREATE INDEX of_workers ON input $columns WHERE is_in_worker(id);
			SELECT reltuples > 0, (SELECT count(*) FROM bt_index_parent_check('of_workers', false, true))
			FROM pg_class WHERE relname = 'of_workers';
			DROP INDEX of_workers"), 't|1', "$engine: $columns of workers only");
	}
}
fill(30000, 3000, 5);
is_same($_, 'of options')
  foreach '(k) INCLUDE (s, long)', '(s) INCLUDE (k) WHERE n > 100', '(n) WHERE k < 30', '(k) WHERE false', 'unique (id)', '(s, k)', 'unique (s, id) INCLUDE (k)',
  'unique ((nullif(id, id)))';
is_same($_, 'of compressed values') foreach "((repeat('q', 20000) || s)) WHERE id <= 4000", "(k, (repeat('q', 20000)), s) WHERE id < 999";
is_same($_, 'in little memory', "SET maintenance_work_mem = '1MB'; ") foreach '(k)', '(long COLLATE "en-x-icu", k)', '(n, s) INCLUDE (long)';
is_same('(k, s)', 'without a worker to be had', 'SET max_parallel_workers = 0; ');
$node->safe_psql('postgres', 'UPDATE input SET id = id + 1 WHERE id = 777');
is($node->safe_psql('postgres', "SELECT same('unique (id)')"), '23505 / could not create unique index "tested" / Key (id)=(778) is duplicated.', 'a duplicate');

# HOT chains, and dead tuples that an old snapshot sees
$node->safe_psql('postgres', 'CALL fill_hot_chains(20000)');
my ($old) = session($node);

ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
ask($old, 'SELECT count(*) FROM pg_am');
is_same($_, 'of HOT chains') foreach '(few)', '(few DESC, id)', 'unique (id)';
$node->safe_psql('postgres', 'CALL leave_dead_rows()');
is_same($_, 'with dead tuples') foreach 'unique (id)', '(few)';
is($node->safe_psql('postgres', "CREATE INDEX broken ON input (other); SELECT indcheckxmin FROM pg_index WHERE indexrelid = 'broken'::regclass"),
	$node->safe_psql('postgres', "SET gpusort.enabled = off; CREATE INDEX broken_2 ON input (other); SELECT indcheckxmin FROM pg_index WHERE indexrelid = 'broken_2'::regclass"),
	'whether old snapshots may use it');
ask($old, 'COMMIT');
$old->quit;

# ------------------------------------------------- runs that the leader merges

# The process with the first row sleeps, and others read the remaining rows.
$node->safe_psql('postgres', q{
	CREATE FUNCTION dawdle(id int) RETURNS bool IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
	BEGIN
		IF id = 1 THEN
			PERFORM pg_sleep(0.3);
		END IF;
		RETURN true;
	END $$;
});

sub fill_with
{
	my ($s, $nrows) = @_;

	$node->safe_psql('postgres', "DROP TABLE input; CREATE TABLE input AS SELECT i AS id, $s AS s FROM generate_series(1, $nrows) i");
}

fill_with(q{CASE WHEN i < 4 OR i > 29997 THEN i % 2 || repeat('long ', 300) || i ELSE (i * 7919 % 30011)::text END}, 30000);
is_same("$_ WHERE dawdle(id)", 'of a few truncated keys') foreach '(s)', '(s COLLATE "C" DESC, id)';
fill_with(q{CASE WHEN i < 300 THEN repeat('long ', 300) || i % 200 ELSE (i * 7919 % 30011)::text END}, 30000);
is_same("$_ WHERE dawdle(id)", 'of many equal truncated keys') foreach '(s)', '(s COLLATE "C" DESC, id)';
fill_with(q{CASE WHEN i < 15000 THEN lpad(i::text, 8, '0') ELSE md5(i::text) END COLLATE "en-x-icu"}, 30000);
is_same("$_ WHERE dawdle(id)", 'of texts in order, and others') foreach '(s)', '(s DESC)';
fill_with(q{lpad(i::text, 8, '0') COLLATE "en-x-icu"}, 30000);
is_same('(s) WHERE dawdle(id)', 'of texts in order');
# keys of Han are kept in runs, those of Latin are made again: the leader has the few of the first kind
fill_with(q{(CASE WHEN i < 60 THEN chr(20000 + i) ELSE '' END || md5(i::text)) COLLATE "en-x-icu"}, 60000);
is_same('(s, id) WHERE dawdle(id)', 'of runs with keys and others without', "SET maintenance_work_mem = '1MB'; ");
fill_with(q{CASE WHEN i = 20000 THEN 'the only one' END}, 30000);
is_same("(s) WHERE dawdle(id)$_", 'of one value') foreach '', ' AND s IS NOT NULL';
SKIP:
{
	skip 'no collation en_US.utf8', 2 unless $node->safe_psql('postgres', "SELECT count(*) FROM pg_collation WHERE collname = 'en_US.utf8'");
	fill_with(q{CASE i % 3 WHEN 0 THEN md5(i::text) ELSE upper(md5(i::text)) END COLLATE "en_US.utf8"}, 30000);
	is_same('(s) WHERE dawdle(id)', 'of libc');
	is_same('(s) WHERE dawdle(id)', 'of libc whose keys are wrong', 'SET gpusort.collation_fault = on; ');
}
fill_with(q{hashint8(i)}, 1200000);
is_same('(s)', 'of more runs than a worker may leave', "SET maintenance_work_mem = '1MB'; ");
my (undef, undef, $full) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET gpusort.engine = cpu; SET temp_file_limit = '1MB'; CREATE INDEX never ON input (s)");
like($full, qr/ERROR:  53400: temporary file size exceeds "?temp_file_limit"?/, 'temp_file_limit holds for each participant');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no file is left');

# The leader uses only its share of the memory while workers run: here the leader has all but a
# few rows, in runs, and workers wait.
$node->safe_psql('postgres', q{
	-- and the leader first waits for the three workers
	CREATE FUNCTION wait_in_worker(id int) RETURNS bool IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
	BEGIN
		IF pg_backend_pid() <> current_setting('gpusort_test.leader')::int THEN
			PERFORM pg_advisory_lock_shared(1);
		ELSIF id % 1000 = 0 THEN
			WHILE (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted) < 3 LOOP
				PERFORM pg_sleep(0.01);
			END LOOP;
		END IF;
		RETURN true;
	END $$;
});
fill_with(q{hashint8(i)}, 300000);
my ($keeper) = session($node, 'SELECT pg_advisory_lock(1)');
my ($leads, $leader) = session($node, "SET gpusort.engine = cpu; SET maintenance_work_mem = '1MB'; ALTER TABLE input SET (parallel_workers = 3)");
ask($leads, "SET gpusort_test.leader = $leader");
$leads->query_until(qr/started/, "\\echo started\nCREATE INDEX shared ON input (s) WHERE wait_in_worker(id);\n");
ok($node->poll_query_until('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $leader AND wait_event = 'ParallelCreateIndexScan'", '1'), 'the leader waits');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"), '3', 'for three workers');
$node->safe_psql('postgres', "SELECT pg_log_backend_memory_contexts($leader)");
ok(poll(sub { count_in_log($node, qr/GpuSort: \d+ total in/) > 0 }), 'its memory is in the log');
ask($keeper, 'SELECT pg_advisory_unlock(1)');
is(ask_error($leads, 'SELECT 1'), '', 'the index is built');
my @held = PostgreSQL::Test::Utils::slurp_file($node->logfile) =~ /GpuSort: (\d+) total in/g;
cmp_ok($held[-1], '<', 400 * 1024, 'the leader held no more than its share, about');
$_->quit foreach $keeper, $leads;

# ------------------------------------------------------- what the device does not take

foreach my $limit ('1MB', '3MB', '6MB')
{
	fill(60000, 100000, 5);
	restart_service($node, 'gpusort.device_memory_limit' => $limit);
	is_same($_, "with $limit of device memory", 'SET gpusort.device_wait = 100; ') foreach '(k)', '(long, id)', '(s) INCLUDE (f)', 'unique (id)';
}
restart_service($node, 'gpusort.device_memory_limit' => '0');
foreach my $fault ('allocate:1:none', 'allocate:2:none', 'pin:1:none', 'pin:3:none')
{
	restart_service($node, 'gpusort.service_fault' => $fault);
	is_same('(s)', $fault);
}

# ------------------------------------------------------------ gpusortd is lost

my $lost = qr/sort engine "cuda" failed, sorting again without it/;

foreach my $fault ('copy_in:1:kill', 'copy_in:4:kill', 'copy_in:4:fail', 'pack:1:kill', 'sort_words:1:fail')
{
	my $before = count_in_log($node, $lost);

	restart_service($node, 'gpusort.service_fault' => $fault);
	is($node->safe_psql('postgres', "SELECT difference FROM compared('(s, id)', 'gpusort.engine', '{cuda}')"), '', "$fault: the same index");
	cmp_ok(count_in_log($node, $lost), '>', $before, "$fault: the table was scanned again");
}
foreach my $fault ('gather:1:kill', 'copy_out:2:kill')
{
	my ($status, $out, $error);

	restart_service($node, 'gpusort.service_fault' => $fault);
	($status, $out, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\nCREATE INDEX never ON input (s, id)");
	like($error, qr/^$|ERROR:  58000: sort engine "cuda" failed.*HINT: /s, "$fault: success, or an error with the reason");
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS never');
}
restart_service($node, 'gpusort.service_fault' => '');

# --------------------------------------------- participants that wait, end, fail

$node->safe_psql('postgres', q{
	-- waits in a worker, or in the leader, at a row, or at any, as long as another session has a lock
	CREATE FUNCTION linger(id int, at int) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
	BEGIN
		IF id = at OR at = 0 THEN
			PERFORM pg_advisory_lock_shared(1);
		END IF;
		RETURN -id;
	END $$;
	CREATE FUNCTION fail(id int, at int) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
	BEGIN
		IF id = at THEN
			RAISE 'row % fails', id;
		END IF;
		RETURN -id;
	END $$;
	-- the others wait for the error, so that there are rows for all
	CREATE FUNCTION fail_in(id int, worker bool) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
	BEGIN
		IF worker = (pg_backend_pid() <> current_setting('gpusort_test.leader')::int) THEN
			RAISE 'row % fails', id;
		END IF;
		PERFORM pg_sleep(100);
		RETURN -id;
	END $$;
});
my ($holder) = session($node, 'SELECT pg_advisory_lock(1)');
my ($builder, $pid) = session($node);
my $waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
my $workers = "SELECT count(*) FROM pg_stat_activity WHERE leader_pid = $pid AND pid <> $pid";

foreach my $engine ('cuda', 'cpu')
{
	ask($builder, "SET gpusort.engine = $engine");
	foreach my $row (0, 30000)
	{
		$builder->query_until(qr/started/, "\\echo started\nCREATE INDEX lingers ON input (linger(id, $row));\n");
		ok($node->poll_query_until('postgres', $waits, $row == 0 ? 4 : 1), "$engine: " . ($row == 0 ? 'all four wait' : 'one waits'));
		is($node->safe_psql('postgres', 'SELECT phase, blocks_done <= blocks_total AND blocks_total > 0, command FROM pg_stat_progress_create_index'),
			'building index: scanning table|t|CREATE INDEX', 'its progress') if $row == 0;
		$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
		like(ask_error($builder, 'SELECT 1'), qr/canceling statement due to user request/, 'it can be canceled');
		is(contexts_of($builder), '0', 'nothing is left in the leader');
		ok($node->poll_query_until('postgres', $workers, '0'), 'nor a worker');
		is_idle($node, 'canceled');
	}

	# a worker that is terminated
	$builder->query_until(qr/started/, "\\echo started\nCREATE INDEX lingers ON input (linger(id, 0));\n");
	ok($node->poll_query_until('postgres', $waits, '4'), 'all wait');
	$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE leader_pid = $pid AND pid <> $pid LIMIT 1");
	like(ask_error($builder, 'SELECT 1'), qr/ERROR:  (terminating background worker "parallel worker" due to administrator command|lost connection to parallel worker)/,
		'terminated, a worker takes the build along');
	is_idle($node, 'terminated');

	# errors, of a worker or of the leader
	ask($builder, "SET gpusort_test.leader = $pid");
	foreach my $worker ('true', 'false')
	{
		like(ask_error($builder, "CREATE INDEX fails ON input (fail_in(id, $worker))"), qr/ERROR:  row \d+ fails/, "an error in a worker ($worker) is that of the build");
		is_idle($node, 'an error');
	}
	my @hidden = grep { !/ERROR:  row \d+ fails/ } map { ask_error($builder, "CREATE INDEX fails ON input (fail(id, $_))") } map { $_ * 1999 } 1 .. 20;
	is_deeply(\@hidden, [], 'errors of the others, whose job fails because of it, do not hide it');
	is_idle($node, 'errors of one');
}
ask($holder, 'SELECT pg_advisory_unlock(1)');
$holder->quit;

# gpusortd dies while one waits; then all is scanned again
my ($holds) = session($node, 'SELECT pg_advisory_lock(1)');

ask($builder, 'SET gpusort.engine = cuda');
$builder->query_until(qr/started/, "\\echo started\nCREATE INDEX lost ON input (linger(id, 77));\n\\echo built\n");
ok($node->poll_query_until('postgres', $waits, '1'), 'a build has entries on the device');
kill 'KILL', service_processes($node);
usleep(300_000);
ask($holds, 'SELECT pg_advisory_unlock(1)');
$holds->quit;
is(ask_error($builder, 'SELECT 1'), '', 'it needs no gpusortd');
is(ask($builder, "SELECT count(*) FROM bt_index_parent_check('lost', true, true)"), '1', 'and the index is complete');
is(contexts_of($builder), '0', 'nothing is left');
ok(wait_for_service($node, 'running'), 'gpusortd runs again');
$builder->quit;

# ---------------------------------------------------------- a late worker

# Blocks are assigned two at a time, and one at a time when others are near the end of the
# table; but a late process takes two where only one is left.  A toasted value in the first
# block and one in the second to last wait for their index; then the process with the first
# continues while the other is stopped.
$node->safe_psql('postgres', q{
	CREATE TABLE late (k text, wide text) WITH (parallel_workers = 1);
	ALTER TABLE late ALTER k SET STORAGE EXTERNAL, ALTER wide SET STORAGE PLAIN;
	INSERT INTO late SELECT CASE WHEN i IN (0, 4095) THEN repeat('away', 20) ELSE '' END || i, repeat('x', 7500) FROM generate_series(0, 4096) i;
});
is($node->safe_psql('postgres', "SELECT pg_relation_size('late') / 8192, count(*) FROM late WHERE ctid >= '(4095,0)'"), '4097|2', 'an odd number of blocks');
my $toast = $node->safe_psql('postgres', "SELECT indexrelid::regclass FROM pg_index, pg_class c WHERE indrelid = reltoastrelid AND c.oid = 'late'::regclass");
my $waiting = "FROM pg_locks WHERE relation = '$toast'::regclass AND NOT granted";

foreach my $engine ('cuda', 'cpu')
{
	my ($reindexes) = session($node, "BEGIN; REINDEX INDEX $toast");
	my ($builds) = session($node, "SET gpusort.engine = $engine");
	my ($ahead, $error);

	$builds->query_until(qr/started/, "\\echo started\nCREATE UNIQUE INDEX late_k ON late (k);\n");
	ok($node->poll_query_until('postgres', "SELECT count(*) $waiting", '2'), "$engine: both wait");
	$ahead = $node->safe_psql('postgres', "SELECT pid $waiting ORDER BY waitstart DESC LIMIT 1");
	kill 'STOP', $ahead;
	ask($reindexes, 'COMMIT');
	usleep(500_000);
	kill 'CONT', $ahead;
	is(ask_error($builds, 'SELECT 1'), '', 'no block is read twice');
	is(ask($builds, "SELECT reltuples, (SELECT count(*) FROM bt_index_parent_check('late_k', true, true)) FROM pg_class WHERE relname = 'late_k'"), '4097|1', 'and none is missed');
	ask($builds, 'DROP INDEX late_k');
	$_->quit foreach $reindexes, $builds;
}

# ------------------------------------------------------------- concurrently

fill(60000, 1000, 5);
$node->safe_psql('postgres', 'ALTER TABLE input SET (parallel_workers = 3); CREATE INDEX ON input (id)');
my $script = $node->basedir . '/write.sql';

append_to_file($script, "\\set id random(1, 60000)\nUPDATE input SET k = k + 1 WHERE id = :id;\nDELETE FROM input WHERE id = :id + 1;\nINSERT INTO input (id, k) VALUES (:id + 1, :id % 100);\n");
my $pgbench = IPC::Run::start([ 'pgbench', '-n', '-c', '2', '-T', '6', '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres' ],
	'<', \'', '>', \my $bench_out, '2>', \my $bench_err);
$node->safe_psql('postgres', 'CREATE INDEX CONCURRENTLY written_k ON input (k); CREATE INDEX CONCURRENTLY written_s ON input (s, k) INCLUDE (id)');
$node->safe_psql('postgres', 'REINDEX TABLE CONCURRENTLY input') foreach 1 .. 3;
ok(IPC::Run::finish($pgbench), 'writers wrote all the while') or diag($bench_err);
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_index, LATERAL bt_index_parent_check(indexrelid, true, true) WHERE indrelid = 'input'::regclass AND indisvalid"),
	'3', 'indexes built CONCURRENTLY have all entries');

done_testing();
