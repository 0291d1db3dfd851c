# Index builds: the pages of an index must be those that PostgreSQL would have written,
# whatever its columns.  Everything else about an index or a build must be unchanged:
# concurrent writers, old snapshots, progress, cancel, limits, a crash, a standby, a
# server without the library.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $node = PostgreSQL::Test::Cluster->new('create_index');

$node->init(allows_streaming => 1, extra => [ '--locale=C', '--encoding=UTF8', '--data-checksums' ]);
$node->append_conf('postgresql.conf', join("\n",
	"shared_preload_libraries = 'gpusort'", 'gpusort.device = host', 'gpusort.device_min_rows = 0',
	'gpusort.force = on', 'gpusort.verify = on', 'gpusort.engine = cuda', 'autovacuum = off', 'jit = off',
	'synchronize_seqscans = off', 'max_parallel_maintenance_workers = 0', ''));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
create_compared($node);
create_index_input($node);
ok(wait_for_service($node, 'running'), 'gpusortd runs');

# ------------------------------------------------------ the same pages as PostgreSQL's

# By two engines and by PostgreSQL alone.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION same(index text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(difference, CASE WHEN error IS NULL THEN 'same' ELSE 'same error' END)
	FROM compared(index, 'gpusort.engine', '{cpu,cuda}')
$$;
SQL

foreach my $input ([ 1, 1, 0 ], [ 700, 3, 10 ], [ 6000, 40, 5 ], [ 6000, 30000, 0 ], [ 6000, 30000, 98 ])
{
	$node->safe_psql('postgres', "SELECT fill($input->[0], $input->[1], $input->[2])");
	foreach my $columns (@index_columns)
	{
		is($node->safe_psql('postgres', qq{SELECT same(\$x\$($columns)\$x\$)}), 'same', "($columns) of (@$input)");
	}
}
$node->safe_psql('postgres', 'SELECT fill(20000, 3000, 5)');
foreach my $options ('(k) INCLUDE (s, long)', '(s) INCLUDE (k) WHERE n > 100', '(k) WITH (fillfactor = 40)', '(k, s) WITH (deduplicate_items = off)',
	'(n) WHERE k < 30', '(k) WHERE false', 'unique (id)', 'unique (s, id) INCLUDE (k)', 'unique ((k * 0), id)', 'unique ((nullif(id, id)))')
{
	is($node->safe_psql('postgres', "SELECT same(\$x\$$options\$x\$)"), 'same', $options);
}
is($node->safe_psql('postgres', "SELECT same('unique ((nullif(id, id))) NULLS NOT DISTINCT')"), 'same error', 'NULLs that are not distinct');
$node->safe_psql('postgres', 'UPDATE input SET id = id + 1 WHERE id = 777');
is($node->safe_psql('postgres', "SELECT same('unique (id)')"), 'same error', 'a duplicate');

# more than maintenance_work_mem: runs on disk
foreach my $columns ('(k)', '(s)', '(long COLLATE "en-x-icu", k)', '(n, s) INCLUDE (long)')
{
	is($node->safe_psql('postgres', "SET maintenance_work_mem = '1MB'; SELECT same(\$x\$$columns\$x\$)"), 'same', "$columns, runs on disk");
}

# HOT chains: entries of a page do not come in the order of their TIDs
$node->safe_psql('postgres', 'CALL fill_hot_chains(10000)');
is($node->safe_psql('postgres', "SELECT same(\$x\$$_\$x\$)"), 'same', "$_ of HOT chains") foreach ('(few)', '(few DESC, id)', 'unique (id)');

# the same after VACUUM, when all tuples are visible and chains have no dead members
$node->safe_psql('postgres', 'VACUUM input');
is($node->safe_psql('postgres', "SELECT same(\$x\$$_\$x\$)"), 'same', "$_ after VACUUM") foreach ('(few)', '(few DESC, id)', 'unique (id)');

# columns added later than tuples, a column twice, values out of line, dropped columns
$node->safe_psql('postgres', q{
	ALTER TABLE input ADD COLUMN late int DEFAULT 7, ADD COLUMN later text;
	UPDATE input SET late = id % 5, later = 'x' WHERE id % 1000 < 9;
	ALTER TABLE input ADD COLUMN gone int;
	ALTER TABLE input DROP COLUMN gone;
	ALTER TABLE input ADD COLUMN long text;
	ALTER TABLE input ALTER long SET STORAGE EXTERNAL;
	UPDATE input SET long = repeat('away', 540) || id WHERE id % 100 = 1;
});
foreach my $vacuum ('', 'VACUUM input; ')
{
	$node->safe_psql('postgres', $vacuum) if $vacuum;
	is($node->safe_psql('postgres', "SELECT same(\$x\$$_\$x\$)"), 'same', "$_, $vacuum")
	  foreach ('(late)', '(later, late)', '(few, id, few)', '(long)', '(few) INCLUDE (long, late)', 'unique (id)');
}
$node->safe_psql('postgres', 'ALTER TABLE input DROP COLUMN late, DROP COLUMN later, DROP COLUMN long');

# dead tuples that an old snapshot sees: in the index, but they do not violate uniqueness
my ($old) = session($node);

ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
ask($old, 'SELECT count(*) FROM pg_am');
$node->safe_psql('postgres', 'CALL leave_dead_rows()');
is($node->safe_psql('postgres', "SELECT same('$_')"), 'same', "$_ with dead tuples") foreach ('unique (id)', '(few)');
$node->safe_psql('postgres', 'CREATE UNIQUE INDEX of_dead ON input (id)');
SKIP:
{
	skip 'this server has no pageinspect', 1 unless has_extension($node, 'pageinspect');
	$node->safe_psql('postgres', 'CREATE EXTENSION pageinspect');
	is($node->safe_psql('postgres', "SELECT tuples > 19000 FROM bt_page_stats('of_dead', 1),
		LATERAL (SELECT sum(CASE WHEN tids IS NULL THEN 1 ELSE cardinality(tids) END) AS tuples
				 FROM generate_series(1, pg_relation_size('of_dead') / 8192 - 1) block, bt_page_items('of_dead', block::int) i
				 WHERE (SELECT type FROM bt_page_stats('of_dead', block::int)) = 'l') x"), 't', 'dead tuples are in the index');
}
ask($old, 'COMMIT');
$old->quit;

# ---------------------------------------------------------------- while it builds

create_watched($node);
my ($holder) = session($node, 'SELECT pg_advisory_lock(1)');
my ($builder, $builder_pid) = session($node);
my $waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
my $progress = 'SELECT phase, blocks_done > 0 AND blocks_done < blocks_total, tuples_done FROM pg_stat_progress_create_index';

$builder->query_until(qr/^$/, "SET statement_timeout = '60s';\nCREATE INDEX watched_slow ON watched (slow(id));\n\\echo built\n");
ok($node->poll_query_until('postgres', $waits, '1'), 'a build waits in its scan');
is($node->safe_psql('postgres', $progress), 'building index: scanning table|t|0', 'its progress');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($builder_pid)");
ok($node->poll_query_until('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $builder_pid", 'idle'), 'it can be canceled');
like(ask_error($builder, 'SELECT 1'), qr/canceling statement due to user request/, 'with the standard message');
is(ask($builder, 'SHOW max_parallel_maintenance_workers'), '0', 'and leaves no setting behind');
is(ask($builder, 'SHOW maintenance_work_mem'), '64MB', 'neither of these two');
is(ask($builder, "SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'GpuSort%'"), '0', 'nor memory');
ask($holder, 'SELECT pg_advisory_unlock(1)');
$holder->quit;
ask($builder, 'CREATE INDEX watched_slow ON watched (slow(id))');
is(ask($builder, "SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'GpuSort%'"), '0', 'a build that ends leaves no memory either');
is(ask($builder, 'SHOW maintenance_work_mem'), '64MB', 'and the setting is as it was');
$builder->quit;

# writers while an index is built CONCURRENTLY
$node->safe_psql('postgres', 'CREATE TABLE written AS SELECT i AS id, i % 100 AS k, md5(i::text) AS s FROM generate_series(1, 50000) i; CREATE INDEX ON written (id)');
my $script = $node->basedir . '/write.sql';

append_to_file($script, "\\set id random(1, 50000)\nUPDATE written SET k = k + 1 WHERE id = :id;\nDELETE FROM written WHERE id = :id + 1;\nINSERT INTO written VALUES (:id + 1, :id % 100, md5(:id::text));\n");
my $pgbench = IPC::Run::start([ 'pgbench', '-n', '-c', '2', '-T', '8', '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres' ],
	'<', \'', '>', \my $bench_out, '2>', \my $bench_err);
$node->safe_psql('postgres', 'CREATE INDEX CONCURRENTLY written_k ON written (k); CREATE INDEX CONCURRENTLY written_s ON written (s, k) INCLUDE (id)');
foreach (1 .. 3)
{
	$node->safe_psql('postgres', 'REINDEX TABLE CONCURRENTLY written');
	usleep(200_000);
}
ok(IPC::Run::finish($pgbench), 'writers wrote all the while') or diag($bench_err);
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_index, LATERAL bt_index_parent_check(indexrelid, true, true) WHERE indrelid = 'written'::regclass AND indisvalid"),
	'3', 'indexes built CONCURRENTLY have all entries');

# max_parallel_maintenance_workers is not changed: functions that run meanwhile can read and set it
$node->safe_psql('postgres', q{
	CREATE FUNCTION sees(at text) RETURNS void IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		RAISE NOTICE '% sees %', at, current_setting('max_parallel_maintenance_workers');
	END $$;
	CREATE FUNCTION index_sees(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM public.sees('index');	-- whose search_path has no public since 17
		RETURN id;
	END $$;
	CREATE FUNCTION trigger_sees() RETURNS event_trigger LANGUAGE plpgsql AS $$
	DECLARE
		change text[] := string_to_array(current_setting('test.change', true), ' ');
	BEGIN
		PERFORM sees(tg_event);
		IF tg_event = 'ddl_command_start' AND cardinality(change) = 2 THEN
			PERFORM set_config('max_parallel_maintenance_workers', change[1], change[2]::bool);
		END IF;
	END $$;
	CREATE TABLE one_row AS SELECT 1 AS id;
	CREATE EVENT TRIGGER sees_start ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION trigger_sees();
	CREATE EVENT TRIGGER sees_end ON ddl_command_end WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION trigger_sees();
});
foreach my $case ([ '', '0 0 0 0' ], [ '2 true', '0 2 2 0' ], [ '3 false', '0 3 3 3' ])
{
	my ($change, $seen) = @$case;

	foreach my $build ('btree', 'hash', 'btree without gpusort')
	{
		my $method = $build =~ s/ .*//r;
		my $enabled = $build eq $method ? 'on' : 'off';
		my ($rc, $out, $err) = $node->psql('postgres', qq{
			SET gpusort.enabled = $enabled;
			SET test.change = '$change';
			CREATE INDEX ON one_row USING $method (index_sees(id));
			SHOW max_parallel_maintenance_workers;});

		is(join(' ', $err =~ / sees (\d+)/g, $out), $seen, "who sees which max_parallel_maintenance_workers, changed to '$change': $build");
	}
}
$node->safe_psql('postgres', 'DROP EVENT TRIGGER sees_start; DROP EVENT TRIGGER sees_end; DROP TABLE one_row');

# an index that CREATE INDEX CONCURRENTLY created but did not build
my ($writer) = session($node, 'BEGIN');
my ($waits_for_writer) = session($node, "SET lock_timeout = '10ms'");

ask($writer, 'INSERT INTO written VALUES (0, 0, 0)');
like(ask_error($waits_for_writer, 'CREATE INDEX CONCURRENTLY not_built ON written (id, k)'), qr/canceling statement due to lock timeout/,
	'CREATE INDEX CONCURRENTLY ends before it builds');
ask($writer, 'COMMIT');
$writer->quit;
is(ask_error($waits_for_writer, 'REINDEX INDEX not_built; DROP INDEX not_built'), '', 'the session can build and drop it');
$waits_for_writer->quit;

# gpusortd dies while it has entries
my ($holds) = session($node, 'SELECT pg_advisory_lock(1)');
my ($loses) = session($node);

$loses->query_until(qr/^$/, "CREATE INDEX watched_lost ON watched ((slow(id) + 2));\n\\echo built\n");
ok($node->poll_query_until('postgres', $waits, '1'), 'a build has entries on the device');
kill 'KILL', service_processes($node);
ask($holds, 'SELECT pg_advisory_unlock(1)');
$holds->quit;
is(ask_error($loses, 'SELECT 1'), '', 'when gpusortd dies the table is scanned again');
is(ask($loses, "SELECT count(*) FROM bt_index_parent_check('watched_lost', true, true)"), '1', 'and the index has all of them');
ok(wait_for_service($node, 'running'), 'gpusortd runs again');
$loses->quit;

# temp_file_limit
my ($rc, $out, $err) = $node->psql('postgres', "SET gpusort.engine = cpu; SET maintenance_work_mem = '1MB'; SET temp_file_limit = 500;
	\\set VERBOSITY verbose\nCREATE INDEX too_large ON written (s)");
like($err, qr/53400: temporary file size exceeds "?temp_file_limit"?/, 'temp_file_limit is enforced');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no file is left behind');

# files of more than one segment, written by one process and by several; and as many columns as an index may have, to which
# several processes add the TID
$node->safe_psql('postgres', 'CREATE UNLOGGED TABLE wide WITH (parallel_workers = 2) AS SELECT i * 7919::bigint % 400000 AS a FROM generate_series(1, 400000) i');
foreach my $case ([ 0, 32, 10, 't' ], [ 2, 28, 10, 't' ], [ 2, 32, 90, 'f' ])
{
	my ($workers, $ncolumns, $fillfactor, $several) = @$case;
	my $columns = join(', ', ('a') x $ncolumns);

	is($node->safe_psql('postgres', qq{
		SET max_parallel_maintenance_workers = $workers; SET min_parallel_table_scan_size = 0; SET gpusort.engine = cpu; SET maintenance_work_mem = '512MB';
		CREATE INDEX wide_a ON wide ($columns) WITH (fillfactor = $fillfactor);
		SELECT pg_relation_size('wide_a') > 1024::bigint * 1024 * 1024 FROM bt_index_parent_check('wide_a', true, true);
		DROP INDEX wide_a}), $several, "$ncolumns columns, $workers workers, fillfactor $fillfactor");
}
$node->safe_psql('postgres', 'DROP TABLE wide');

# ------------------------------------------------------------- afterwards

# a standby
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');

$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', 'SELECT fill(20000, 500, 5); CREATE INDEX replayed_k ON input (k); CREATE INDEX replayed_s ON input (s, long); CREATE UNIQUE INDEX replayed_id ON input (id)');
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', "SELECT count(*) FROM pg_index, LATERAL bt_index_check(indexrelid, true) WHERE indrelid = 'input'::regclass"),
	'3', 'a standby has the indexes');
$standby->stop;

# a crash right after a build, and in the middle of one
$node->safe_psql('postgres', 'CHECKPOINT; CREATE INDEX survives ON input (long, k)');
my ($holder_2) = session($node, 'SELECT pg_advisory_lock(1)');
my ($dies) = session($node);

$dies->query_until(qr/^$/, "CREATE INDEX dies ON watched ((slow(id) + 1));\n\\echo built\n");
ok($node->poll_query_until('postgres', $waits, '1'), 'another build is on its way');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_index, LATERAL bt_index_parent_check(indexrelid, true, true) WHERE indrelid = 'input'::regclass"),
	'4', 'after a crash the indexes are there');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname = 'dies'"), '0', 'and not the one that was not built');

# an unlogged index after a crash: empty, and works
$node->safe_psql('postgres', 'CREATE UNLOGGED TABLE unlogged AS SELECT * FROM input; CREATE INDEX unlogged_k ON unlogged (k)');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "INSERT INTO unlogged SELECT * FROM input WHERE id <= 10; SELECT count(*) FROM unlogged, LATERAL bt_index_parent_check('unlogged_k', true, true)"),
	'10', 'an unlogged index is reset');

# a table that is rewritten while others use it
SKIP:
{
	skip 'REPACK (CONCURRENTLY) is of PostgreSQL 19', 2 if $node->safe_psql('postgres', 'SHOW server_version_num') < 190000;
	$node->append_conf('postgresql.conf', 'wal_level = logical');
	$node->restart;
	my (undef, $rows, $notices) = $node->psql('postgres', q{
		CREATE TABLE repacked AS SELECT id, k, s FROM input;
		ALTER TABLE repacked ADD PRIMARY KEY (id);
		CREATE INDEX repacked_s ON repacked (s);
		DELETE FROM repacked WHERE id % 7 = 0;
		SET gpusort.debug_plan = on;
		REPACK (CONCURRENTLY) repacked USING INDEX repacked_s;
		SELECT count(*) FROM pg_index, LATERAL bt_index_parent_check(indexrelid, true, true) WHERE indrelid = 'repacked'::regclass});

	like($notices, qr/building index "repacked_pkey\w*" with gpusort.*building index "repacked_s\w*" with gpusort/s, 'REPACK (CONCURRENTLY)');
	is($rows, '2', 'its indexes');
}

# without the library
$node->safe_psql('postgres', 'DROP EXTENSION gpusort');
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_index, LATERAL bt_index_parent_check(indexrelid, true, true) WHERE indrelid = 'input'::regclass"),
	'4', 'without the library the indexes are as they were');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; INSERT INTO input SELECT id + 30000, k, s, f, n, long FROM input;
	SELECT count(*) FROM input WHERE k = 77'),
	2 * $node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM input WHERE k = 77 AND id <= 30000'),
	'and are read and written');

done_testing();
