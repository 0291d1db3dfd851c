# CLUSTER: the pages of the new table must be those that PostgreSQL would have written,
# with the versions that old snapshots see, update chains, and TOAST pointers.
# Everything else about the statement must be unchanged: progress, cancel, limits, a crash.

use strict;
use warnings;

use File::Temp;
use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('cluster');

$node->init(extra => [ '--locale=C', '--encoding=UTF8', '--data-checksums' ]);
$node->append_conf('postgresql.conf', join("\n",
	"shared_preload_libraries = 'gpusort'", 'gpusort.device = host', 'gpusort.device_min_rows = 0',
	'gpusort.force = on', 'gpusort.verify = on', 'gpusort.engine = cuda', 'autovacuum = off', 'jit = off',
	'synchronize_seqscans = off', 'enable_indexscan = off', 'wal_level = logical', 'restart_after_crash = on', ''));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
create_compared($node);
create_index_input($node);
ok(wait_for_service($node, 'running'), 'gpusortd runs');
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

# ------------------------------------------------------ the same pages as PostgreSQL's

# A table that was clustered on its index "by", as it is described before that is rolled back: its
# pages, without LSN and checksum, its rows in their order, and the number of its valid indexes.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION clustered(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	pages text;
	rows text;
	indexes int;
BEGIN
	EXECUTE format('CLUSTER %I USING %I', name, name || '_by');
	SELECT count(*) || ' pages ' || md5(string_agg(substr(page_of(name, block), 11), '')) INTO pages
	FROM generate_series(0, pg_relation_size(name) / current_setting('block_size')::int - 1) block;
	EXECUTE format('SELECT count(*) || '' rows '' || md5(string_agg(%1$I::text, chr(10))) FROM %1$I', name) INTO rows;
	SELECT count(*) INTO indexes FROM pg_index, LATERAL bt_index_parent_check(indexrelid, true, true)
	WHERE indrelid = name::regclass AND indisvalid;
	RAISE SQLSTATE 'ZZZZZ' USING MESSAGE = concat_ws(', ', pages, rows, indexes || ' indexes');
EXCEPTION WHEN SQLSTATE 'ZZZZZ' THEN
	RETURN SQLERRM;
END $$;
CREATE FUNCTION same(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	expected text;
	ours text;
	engine text;
BEGIN
	PERFORM set_config('gpusort.enable_cluster', 'off', true);
	expected := clustered(name);
	PERFORM set_config('gpusort.enable_cluster', 'on', true);
	FOREACH engine IN ARRAY '{cpu,cuda}'::text[] LOOP
		PERFORM set_config('gpusort.engine', engine, true);
		ours := clustered(name);
		IF ours IS DISTINCT FROM expected THEN
			RETURN format('%s: %s instead of %s', engine, ours, expected);
		END IF;
	END LOOP;
	RETURN 'same';
END $$;
SQL

# CLUSTER of a table by PostgreSQL, the CPU engine and the device.  is_linked: PostgreSQL writes the rows that gpusort has sorted.
sub is_same
{
	my ($table, $what, $before, $is_linked) = @_;
	my (undef, $out, $notices) = $node->psql('postgres', ($before // '') . "SET gpusort.debug_plan = on; SELECT same('$table')");

	is($out, 'same', $what);
	is(scalar(() = $notices =~ /clustering table "$table" with gpusort/g), 2, "$what: by gpusort") or diag($notices);
	is(scalar(() = $notices =~ /sorted rows of table "$table" are written by PostgreSQL/g), $is_linked ? 2 : 0, "$what: written by " . ($is_linked ? 'PostgreSQL' : 'gpusort')) or diag($notices);
	return;
}

# Tables of many types.  Indexes end in id, because equal keys have no order in PostgreSQL.
foreach my $input ([ 700, 3, 10 ], [ 3000, 30000, 5 ])
{
	$node->safe_psql('postgres', "SELECT fill($input->[0], $input->[1], $input->[2])");
	foreach my $columns ('id', @index_columns)
	{
		is_same('input', "($columns) of (@$input)", "CREATE INDEX input_by ON input ($columns, id);");
		$node->safe_psql('postgres', 'DROP INDEX input_by');
	}
}

# more than maintenance_work_mem: runs on disk
$node->safe_psql('postgres', 'SELECT fill(20000, 3000, 5)');
foreach my $columns ('k, id', 's, id', 'long COLLATE "en-x-icu", id', '(k % 7), id', 'id DESC')
{
	$node->safe_psql('postgres', "CREATE INDEX input_by ON input ($columns) INCLUDE (n)");
	is_same('input', "($columns), runs on disk", "SET maintenance_work_mem = '1MB';");
	$node->safe_psql('postgres', 'DROP INDEX input_by');
}

# values out of line and compressed, as keys too; columns added and dropped later; generated ones
$node->safe_psql('postgres', q{
	CREATE TABLE odd (gone text, id int, padded char(20), long text, compressed text, twice int GENERATED ALWAYS AS (id * 2) STORED, gone_too int);
	ALTER TABLE odd ALTER long SET STORAGE EXTERNAL;
	INSERT INTO odd (gone, id, padded, long, compressed, gone_too) SELECT repeat('gone', i % 5), i, i % 9, CASE i % 4 WHEN 0 THEN repeat('away', 600 + i % 7) || i WHEN 1 THEN 'short' END,
		repeat('packed', (i % 13) * 300), i FROM generate_series(1, 1000) i;
	ALTER TABLE odd DROP COLUMN gone;
	CREATE INDEX odd_by ON odd (long, id);
});
is_same('odd', 'a dropped column, values out of line');
is_same('odd', 'an expression of values out of line', 'DROP INDEX odd_by; CREATE INDEX odd_by ON odd (coalesce(long, compressed), id);');
is_same('odd', 'columns added later', q{
	ALTER TABLE odd DROP COLUMN gone_too, ADD COLUMN late int DEFAULT 7, ADD COLUMN later text;
	INSERT INTO odd (id, padded, long, compressed, late, later) SELECT i, 'x', 'y', 'z', i % 11, i FROM generate_series(3001, 3500) i;
	DROP INDEX odd_by; CREATE INDEX odd_by ON odd (late DESC, later NULLS FIRST, id);});
$node->safe_psql('postgres', q{
	CREATE TABLE late AS SELECT i AS id FROM generate_series(1, 900) i;
	ALTER TABLE late ADD COLUMN later text, ADD COLUMN latest int;
	UPDATE late SET latest = id % 5 WHERE id % 3 = 0;
	CREATE INDEX late_by ON late (latest, later, id);
	CREATE TABLE one AS SELECT hashint8(i) AS id FROM generate_series(1, 900) i;
	CREATE INDEX one_by ON one (id);
	CREATE UNLOGGED TABLE unlogged WITH (fillfactor = 30) AS SELECT id, s FROM input;
	CREATE UNIQUE INDEX unlogged_by ON unlogged (id DESC);
	CREATE TABLE empty (id int);
	CREATE INDEX empty_by ON empty (id);
	CREATE MATERIALIZED VIEW seen AS SELECT id, long FROM input;
	CREATE INDEX seen_by ON seen (long, id);
});
is_same('late', 'columns added without a value');
is_same('one', 'a table of one column');
is_same('unlogged', 'an unlogged table with a fillfactor');
is_same('empty', 'an empty table');
is_same('seen', 'a materialized view');
is_same('temporary', 'a temporary table', q{
	CREATE TEMPORARY TABLE temporary AS SELECT id, k, long FROM input;
	CREATE INDEX temporary_by ON temporary (k, id);});

# pages are written 32 at a time
$node->safe_psql('postgres', 'CREATE TABLE pages (id int, s text); ALTER TABLE pages ALTER s SET STORAGE PLAIN; CREATE INDEX pages_by ON pages (s, id)');
foreach my $npages (31, 32, 33, 64, 97)
{
	$node->safe_psql('postgres', "TRUNCATE pages; INSERT INTO pages SELECT i, rpad(md5(i::text), 1900, 'x') FROM generate_series(1, 4 * $npages) i");
	is($node->safe_psql('postgres', "SELECT pg_relation_size('pages') / 8192"), $npages, "$npages pages");
	is_same('pages', "$npages pages of 4 rows");
}
is_same('pages', 'a table that logical decoding uses as a catalog', 'ALTER TABLE pages SET (user_catalog_table = true);', 1);

# ------------------------------------------------------------------- versions of rows

# HOT chains with members that are dead
$node->safe_psql('postgres', 'DROP MATERIALIZED VIEW seen; CALL fill_hot_chains(10000); CREATE INDEX input_by ON input (few, id)');
is_same('input', 'HOT chains');
$node->safe_psql('postgres', 'DELETE FROM input WHERE id % 11 = 0');
is_same('input', 'dead tuples');

# tuples that are frozen, that have to be, and that must not be; deleted, but not updated
$node->safe_psql('postgres', 'CREATE TABLE aged (id int, s text); CREATE INDEX aged_by ON aged (s, id)');
foreach my $options ('FREEZE', '', '')
{
	$node->safe_psql('postgres', 'INSERT INTO aged SELECT i, md5(i::text) FROM generate_series((SELECT count(*) + 1 FROM aged), (SELECT count(*) + 300 FROM aged)) i');
	$node->safe_psql('postgres', "VACUUM $options aged");
}
is_same('aged', 'frozen tuples, and others of several transactions');
my ($reader) = session($node);

ask($reader, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
ask($reader, 'SELECT count(*) FROM pg_am');
$node->safe_psql('postgres', $_) foreach ('INSERT INTO aged SELECT i, md5(i::text) FROM generate_series(901, 1200) i',
	'DELETE FROM aged WHERE id % 7 = 0');
is_same('aged', 'tuples that an old snapshot does not see, or only it sees');
ask($reader, 'ROLLBACK');
$reader->quit;

# tuples of this transaction: inserted, updated and deleted, also by a subtransaction that was rolled back
is_same('input', 'tuples of the same transaction', q{
	BEGIN;
	INSERT INTO input SELECT i, i % 4, i FROM generate_series(20001, 21000) i;
	UPDATE input SET few = few + 1 WHERE id % 9 = 0;
	DELETE FROM input WHERE id % 8 = 0;
	SAVEPOINT s;
	UPDATE input SET few = 9 WHERE id % 7 = 0;
	INSERT INTO input SELECT i, 3, i FROM generate_series(30001, 31000) i;
	ROLLBACK TO s;}, 1);

# row locks, and updates of locked rows: xmax is a multixact
my ($locks) = session($node);

ask($locks, 'BEGIN');
ask($locks, 'SELECT count(*) FROM (SELECT FROM input WHERE id % 5 = 0 FOR KEY SHARE) x');
$node->safe_psql('postgres', 'UPDATE input SET other = 5 WHERE id % 10 = 0');
ask($locks, 'COMMIT');
$locks->quit;
is_same('input', 'locked and updated rows');

# versions that an old snapshot sees
my ($old) = session($node);
my $seen = 'SELECT count(*), sum(id), sum(few), sum(other), count(DISTINCT ctid), md5(string_agg(id || few::text, \'\' ORDER BY id)) FROM input';

ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
ask($old, 'SELECT count(*) FROM pg_am');
my $visible = $node->safe_psql('postgres', $seen);
$node->safe_psql('postgres', 'DROP INDEX input_by; CALL leave_dead_rows(); CREATE INDEX input_by ON input (few, id)');
$node->safe_psql('postgres', 'UPDATE input SET few = 8 - few WHERE id % 3 = 0');
is_same('input', 'update chains that an old snapshot sees', '', 1);
foreach my $engine ('cpu', 'cuda')
{
	my $now = $node->safe_psql('postgres', $seen);

	is($node->safe_psql('postgres', "SET gpusort.engine = $engine; CLUSTER input USING input_by; $seen"), $now, "the rows, $engine");
	is(ask($old, $seen), $visible, "the rows that the old snapshot sees, $engine") if $engine eq 'cuda';
}
# a writer of the old snapshot follows the chain of versions, whose links the copy has kept
like(ask_error($old, 'UPDATE input SET other = 0 WHERE id = 30'), qr/could not serialize access due to concurrent update/,
	'an update of an old version follows its chain');
ask($old, 'ROLLBACK');
$old->quit;
is_same('input', 'when the old snapshot is gone');

# ------------------------------------------------------------------ the choice

my ($rc, $out, $notices);

# without a setting, PostgreSQL chooses to sort a table in random order that exceeds the cache
$node->safe_psql('postgres', q{
	CREATE TABLE chosen AS SELECT hashint8(i) AS id, repeat('x', 500) AS s FROM generate_series(1, 20000) i;
	CREATE INDEX chosen_by ON chosen (id);
	ANALYZE chosen;});
my $choice = 'SET gpusort.debug_plan = on; SET enable_indexscan = on;';

($rc, $out, $notices) = $node->psql('postgres', "$choice SET effective_cache_size = '1MB'; CLUSTER chosen USING chosen_by");
like($notices, qr/clustering table "chosen" with gpusort/, 'rows that PostgreSQL chooses to sort');
($rc, $out, $notices) = $node->psql('postgres', "$choice ANALYZE chosen; CLUSTER chosen");
unlike($notices, qr/clustering table/, 'the index of a table in order is scanned');

# and gpusort in other cases, unless a sort may take longer or is not wanted
$node->safe_psql('postgres', q{
	CREATE TABLE scattered AS SELECT hashint8(i) AS id, (i - 10000) AS unscattered, md5(i::text) AS s FROM generate_series(1, 20000) i;
	CREATE INDEX scattered_by ON scattered (id);
	CREATE INDEX scattered_by_two ON scattered (id DESC, s COLLATE "C");
	CREATE INDEX scattered_by_absolute ON scattered (abs(id));
	CREATE INDEX scattered_by_text ON scattered (s COLLATE "en-x-icu");
	CREATE INDEX scattered_by_unscattered ON scattered (unscattered DESC);
	CREATE TABLE kept AS SELECT *, row_number() OVER () AS place FROM scattered;
	ANALYZE scattered;});

sub is_sorted
{
	my ($sql, $index) = @_;

	# in their first order, so that each column has its correlation; PostgreSQL scans the index
	$node->safe_psql('postgres', 'TRUNCATE scattered; INSERT INTO scattered SELECT id, unscattered, s FROM kept ORDER BY place; ANALYZE scattered');
	($rc, $out, $notices) = $node->psql('postgres', "$choice SET random_page_cost = 1; $sql; CLUSTER VERBOSE scattered USING scattered_$index");
	is($rc, 0, "$index, $sql: succeeds");
	return $notices =~ /using sequential scan and sort/ ? $notices =~ /clustering table "scattered" with gpusort/ :
		$notices =~ /using index scan on "scattered_$index"/ && $notices !~ /clustering table/ ? '' : "unknown: $notices";
}

is(is_sorted('SET gpusort.force = off', 'by'), 1, 'rows in random order are sorted');
is($node->safe_psql('postgres', 'SELECT bool_and(id >= before) FROM (SELECT id, lag(id, 1, id) OVER (ORDER BY ctid) AS before FROM scattered) x'), 't', 'and are in order then');
is(is_sorted('SET gpusort.force = off', 'by_two'), 1, 'by two columns');
is(is_sorted('SET temp_file_limit = 2500; SET maintenance_work_mem = 10240', 'by'), '', 'but not if temporary files are limited');
is(is_sorted('SET gpusort.enable_cluster = off', 'by'), '', 'without gpusort, the index is scanned');
is(is_sorted('SET gpusort.enabled = off', 'by'), '', 'gpusort.enabled = off');
is(is_sorted('SET enable_sort = off', 'by'), '', 'enable_sort = off');
is(is_sorted('SET gpusort.force = off; SET gpusort.min_rows = 100000', 'by'), '', 'few rows');
is(is_sorted('SET gpusort.force = off', 'by_absolute'), '', 'an expression');
is(is_sorted('SET gpusort.force = off', 'by_text'), '', 'text under a collation');
is(is_sorted('SET gpusort.force = off', 'by_unscattered'), '', 'rows in the opposite order');
$node->safe_psql('postgres', "CREATE INDEX scattered_by_c ON scattered (s COLLATE \"C\")");
is(is_sorted('SET gpusort.force = off', 'by_c'), 1, 'text that is compared byte by byte');
$node->safe_psql('postgres', "DROP INDEX scattered_by_two, scattered_by_absolute, scattered_by_text, scattered_by_unscattered; UPDATE kept SET s = repeat('x', 90) || s");
is(is_sorted('SET gpusort.force = off', 'by_c'), '', 'long texts');
is(is_sorted('SET gpusort.force = off', 'by'), 1, 'beside which a number is not long');
$node->safe_psql('postgres', "DROP INDEX scattered_by_c; UPDATE kept SET s = repeat('x', 1000) || s; ALTER TABLE scattered ALTER s SET STORAGE PLAIN");
is(is_sorted('SET gpusort.force = off', 'by'), '', 'wide rows');
($rc, $out, $notices) = $node->psql('postgres', 'SET gpusort.debug_plan = on; VACUUM FULL chosen; ALTER TABLE chosen ALTER id TYPE bigint');
unlike($notices, qr/clustering table/, 'so are statements that do not sort');
($rc, $out, $notices) = $node->psql('postgres', 'SET gpusort.debug_plan = on; SET gpusort.enable_cluster = off; CLUSTER chosen');
unlike($notices, qr/clustering table/, 'gpusort.enable_cluster = off');
($rc, $out, $notices) = $node->psql('postgres', 'SET gpusort.debug_plan = on; SET gpusort.enabled = off; CLUSTER chosen');
unlike($notices, qr/clustering table/, 'gpusort.enabled = off');
($rc, $out, $notices) = $node->psql('postgres', 'SET gpusort.debug_plan = on; SET gpusort.force = off; SET gpusort.min_rows = 100000; CLUSTER chosen');
like($notices, qr/clustering table "chosen" without gpusort\n.*is less than gpusort.min_rows/, 'gpusort.min_rows');
($rc, $out, $notices) = $node->psql('postgres', 'SET gpusort.debug_plan = on; CLUSTER pg_description USING pg_description_o_c_o_index');
like($notices, qr/clustering table "pg_description" without gpusort\n.*a system catalog/, 'a system catalog');
is($node->safe_psql('postgres', "SELECT same('chosen')"), 'same', 'the table can be clustered after all that');

SKIP:
{
	skip 'REPACK is of PostgreSQL 19', 2 if $version < 190000;
	($rc, $out, $notices) = $node->psql('postgres', 'SET gpusort.debug_plan = on; REPACK chosen USING INDEX chosen_by');
	like($notices, qr/clustering table "chosen" with gpusort/, 'REPACK');
	($rc, $out, $notices) = $node->psql('postgres', 'SET gpusort.debug_plan = on; REPACK chosen');
	unlike($notices, qr/clustering table/, 'REPACK without an index');
}

# all tables, and the partitions of a table: each in a transaction of its own
$node->safe_psql('postgres', q{
	CREATE TABLE parts (id int, s text) PARTITION BY RANGE (id);
	CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (1000);
	CREATE TABLE part_2 PARTITION OF parts FOR VALUES FROM (1000) TO (MAXVALUE);
	CREATE INDEX parts_by ON parts (s);
	INSERT INTO parts SELECT i, md5(i::text) FROM generate_series(1, 3000) i;});
($rc, $out, $notices) = $node->psql('postgres', 'SET gpusort.debug_plan = on; CLUSTER parts USING parts_by; CLUSTER');
like($notices, qr/clustering table "part_$_" with gpusort.*clustering table "part_$_" with gpusort/s, "partition $_, by name and with all tables") foreach (1, 2);
is($node->safe_psql('postgres', 'SELECT tableoid::regclass, count(*), bool_and(s > before) FROM (SELECT tableoid, s, lag(s, 1, \'\') OVER (PARTITION BY tableoid ORDER BY ctid) AS before FROM parts) x GROUP BY 1 ORDER BY 1'),
	"part_1|999|t\npart_2|2001|t", 'the rows of partitions are in order');

# a statement that is rolled back
$node->safe_psql('postgres', 'BEGIN; CLUSTER one USING one_by; ROLLBACK');
is($node->safe_psql('postgres', "SELECT count(*) FILTER (WHERE id < before) > 100 FROM (SELECT id, lag(id) OVER (ORDER BY ctid) AS before FROM one) x"), 't', 'a CLUSTER that is rolled back');

# A session in which the relcache callback acts accepts what another one has changed.
# If the callback read the catalogs for each relation, it would be called again by that, and so on.
sub stack_kb
{
	my ($pid) = @_;

	return slurp_file("/proc/$pid/status") =~ /^VmStk:\s*(\d+) kB/m ? $1 : die 'no VmStk';
}

my ($accepts, $accepts_pid) = session($node, 'CREATE TEMPORARY TABLE own (id int)');

$node->safe_psql('postgres', "DO 'BEGIN FOR i IN 1 .. 1000 LOOP EXECUTE format(''CREATE TABLE many_%s (id int)'', i); END LOOP; END'");
ask($accepts, 'BEGIN; INSERT INTO own VALUES (1)');
my $stack_before = stack_kb($accepts_pid);

$node->safe_psql('postgres', "DO 'BEGIN FOR i IN 1 .. 1000 LOOP EXECUTE format(''ALTER TABLE many_%s SET (fillfactor = 90)'', i); END LOOP; END'");
ask($accepts, 'SELECT count(*) FROM many_1; COMMIT');
cmp_ok(stack_kb($accepts_pid), '<', $stack_before + 256, 'relations that another session has changed take no stack');
$accepts->quit;
$node->safe_psql('postgres', "DO 'BEGIN FOR i IN 1 .. 1000 LOOP EXECUTE format(''DROP TABLE many_%s'', i); END LOOP; END'");

# ---------------------------------------------------------------- while it copies

create_watched($node);
$node->safe_psql('postgres', 'CREATE INDEX watched_by ON watched (slow(id))');
my ($holder) = session($node, 'SELECT pg_advisory_lock(1)');
my ($copies, $copies_pid) = session($node);
my $waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";

$copies->query_until(qr/^$/, "CLUSTER watched USING watched_by;\n\\echo copied\n");
ok($node->poll_query_until('postgres', $waits, '1'), 'a CLUSTER waits in its scan');
is($node->safe_psql('postgres', 'SELECT phase, heap_tuples_scanned BETWEEN 9000 AND 9400, heap_tuples_written, heap_blks_total > heap_blks_scanned, heap_blks_scanned > 0 FROM pg_stat_progress_cluster'),
	'seq scanning heap|t|0|t|t', 'its progress');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($copies_pid)");
ok($node->poll_query_until('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $copies_pid", 'idle'), 'it can be canceled');
like(ask_error($copies, 'SELECT 1'), qr/canceling statement due to user request/, 'with the standard message');
is(ask($copies, "SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'GpuSort%'"), '0', 'and leaves no memory behind');
is(ask_error($copies, 'CREATE INDEX watched_id ON watched (id); VACUUM watched; DROP INDEX watched_id'), '', 'the session can use the table');

# gpusortd dies while it has rows
$copies->query_until(qr/^$/, "CLUSTER watched USING watched_by;\n\\echo copied\n");
ok($node->poll_query_until('postgres', $waits, '1'), 'a CLUSTER has rows on the device');
kill 'KILL', service_processes($node);
ask($holder, 'SELECT pg_advisory_unlock(1)');
is(ask_error($copies, 'SELECT 1'), '', 'when gpusortd dies the table is scanned again');
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id), bool_and(id < before) FROM (SELECT id, lag(id, 1, 99999) OVER (ORDER BY ctid) AS before FROM watched) x'),
	'10000|10000|t', 'and the new table has all rows in order');
ok(wait_for_service($node, 'running'), 'gpusortd runs again');
is(ask($copies, "SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'GpuSort%'"), '0', 'no memory is left behind');

# cancel while the sort writes runs and while the table is written
create_interrupt($node);
$node->safe_psql('postgres', q{
	CREATE TABLE large AS SELECT hashint8(i) AS id, md5(i::text) || md5((i + 1)::text) AS s FROM generate_series(1, 200000) i;
	CREATE INDEX large_by ON large (s);
	CREATE FUNCTION interrupt_in(session int, awaited text) RETURNS numeric LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. 60000 LOOP
			IF EXISTS (SELECT FROM pg_stat_progress_cluster WHERE phase = awaited AND heap_tuples_scanned > 1000
				AND (heap_tuples_written > 1000 OR phase = 'seq scanning heap')) THEN
				RETURN interrupt(session, 'cancel');
			END IF;
			-- on a busy machine it may end before it is seen in this phase
			IF EXISTS (SELECT FROM pg_stat_activity WHERE pid = session AND state = 'idle' AND query LIKE 'CLUSTER%') THEN
				RETURN NULL;
			END IF;
			PERFORM pg_stat_clear_snapshot();
			PERFORM pg_sleep(0.001);
		END LOOP;
		RAISE 'the phase "%" has not come', awaited;
	END $$;
});
foreach my $engine ('cpu', 'cuda')
{
	foreach my $phase ('seq scanning heap', 'writing new heap')
	{
		my ($ms, $error) = ('', '');

		foreach my $try (1 .. 50)
		{
			ask($copies, "SET gpusort.engine = $engine; SET maintenance_work_mem = '4MB'");
			$copies->query_until(qr/^$/, "CLUSTER large USING large_by;\n\\echo copied\n");
			$ms = $node->safe_psql('postgres', "SELECT interrupt_in($copies_pid, '$phase')");
			$error = ask_error($copies, 'SELECT 1');
			last if $ms ne '';
			$node->safe_psql('postgres', 'CREATE INDEX large_id ON large (id); CLUSTER large USING large_id; DROP INDEX large_id');
		}
		like($error, qr/canceling statement due to user request/, "$phase, $engine: canceled");
	}
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no file is left behind');
$copies->quit;

# temp_file_limit
($rc, $out, $notices) = $node->psql('postgres', "SET gpusort.engine = cpu; SET maintenance_work_mem = '1MB'; SET temp_file_limit = 500;
	\\set VERBOSITY verbose\nCLUSTER large USING large_by");
like($notices, qr/53400: temporary file size exceeds "?temp_file_limit"?/, 'temp_file_limit is enforced');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', 'no file is left behind');
($rc, $out, $notices) = $node->psql('postgres', 'CREATE FUNCTION fails(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN RETURN id / current_setting(\'test.divisor\')::int; END $$;
	SET test.divisor = 1;
	CREATE INDEX one_fails ON one (fails(id));
	SET test.divisor = 0;
	CLUSTER one USING one_fails;');
like($notices, qr/ERROR:  division by zero/, 'an error of an expression');

# ----------------------------------------------------------------- crashes

# Waits when the new table has been written, and its index is built.
$node->safe_psql('postgres', q{
	CREATE FUNCTION slow_index(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM pg_advisory_lock_shared(1);
		RETURN id;
	END $$;
	CREATE INDEX large_slow ON large (slow_index(id)) WHERE id = hashint8(7);
});
$holder->quit;

sub large_rows
{
	return $node->safe_psql('postgres', 'SELECT count(*), sum(id), count(*) FILTER (WHERE s < before) > 50000
		FROM (SELECT s, id, lag(s) OVER (ORDER BY ctid) AS before FROM large) x');
}

my $ncrashes = 0;

foreach my $wal_level ('replica', 'minimal')
{
	my ($dies, $dies_pid, $rows, $blocks);

	$node->append_conf('postgresql.conf', "wal_level = $wal_level\nmax_wal_senders = 0");
	$node->restart;
	$rows = large_rows();
	like($rows, qr/\|t$/, "the rows are not in order, wal_level = $wal_level");
	($blocks) = session($node, 'SELECT pg_advisory_lock(1)');
	($dies, $dies_pid) = session($node, 'SET gpusort.engine = cpu');
	$dies->query_until(qr/^$/, "CLUSTER large USING large_by;\n\\echo copied\n");
	ok($node->poll_query_until('postgres', $waits, '1'), 'a CLUSTER has written the new table');
	is($node->safe_psql('postgres', 'SELECT heap_tuples_written FROM pg_stat_progress_cluster'), '200000', 'all of it');
	kill 'KILL', $dies_pid;
	ok(poll(sub { count_in_log($node, qr/all server processes terminated; reinitializing/) > $ncrashes }), 'the server restarts');
	eval { $_->{run}->finish } foreach ($blocks, $dies);
	$ncrashes++;
	ok(is_back($node), 'and recovers');
	is(large_rows(), $rows, 'the table is as it was');
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname LIKE 'pg\\_temp\\_%'"), '0', 'the new one is gone');
	$node->safe_psql('postgres', 'CLUSTER large USING large_by');
	$node->stop('immediate');
	$node->start;
	is(large_rows(), $rows =~ s/t$/f/r, 'a table that was clustered before a crash is in order');
	is($node->safe_psql('postgres', "SELECT count(*) FROM bt_index_parent_check('large_by', true, true)"), '1', 'and its index is valid');
	$node->safe_psql('postgres', 'CREATE INDEX large_id ON large (id); CLUSTER large USING large_id; DROP INDEX large_id');
}

# ---------------------------------------------------------------- a full disk

$node->append_conf('postgresql.conf', 'wal_level = replica');
$node->stop;
my $full = start_on_disk($node);
ok(wait_for_service($node, 'running'), 'gpusortd runs');
$node->safe_psql('postgres', q{
	DROP INDEX large_slow;
	CREATE INDEX large_id ON large (id);
	CREATE TABLE narrow AS SELECT i AS id FROM generate_series(1, 100000) i;
	CREATE INDEX narrow_by ON narrow ((md5(id::text) || md5((id + 1)::text)));});

# A table, its indexes and the files of the database.
sub state_of
{
	my ($table) = @_;

	return $node->safe_psql('postgres', qq{
		SET max_parallel_workers_per_gather = 0;
		CHECKPOINT;	-- removes files
		SELECT pg_relation_filenode('$table'), count(*), md5(string_agg(x::text, '')) FROM $table x;
		SELECT indexrelid::regclass, indisvalid, bt_index_check(indexrelid, true), pg_relation_filenode(indexrelid) FROM pg_index WHERE indrelid = '$table'::regclass ORDER BY 1;
		SELECT string_agg(file, ' ' ORDER BY file) FROM pg_ls_dir('base/' || (SELECT oid FROM pg_database WHERE datname = 'postgres')) file WHERE file ~ '^[0-9.]+\$';
		SELECT count(*) FROM pg_ls_tmpdir()});
}

# The error of CLUSTER while large files of a folder cannot grow, without their names.
sub error_on_full_disk
{
	my ($table, $folder, $settings) = @_;
	my $messages;

	append_to_file($full, $folder);
	(undef, undef, $messages) = $node->psql('postgres', "SET gpusort.debug_plan = on; SET maintenance_work_mem = '4MB'; $settings\\set VERBOSITY verbose\nCLUSTER $table USING ${table}_by");
	unlink($full) or die "$full: $!";
	return $messages;
}

my $database = $node->safe_psql('postgres', "SELECT '/base/' || oid || '/' FROM pg_database WHERE datname = 'postgres'");

foreach my $case ([ 'large', '/pgsql_tmp/', 'temporary files', 'cpu' ], [ 'large', $database, 'the new table', 'cpu', 'cuda' ], [ 'narrow', $database, 'the new index', 'cpu', 'cuda' ])
{
	my ($table, $folder, $what, @engines) = @$case;
	my $before = state_of($table);
	my @errors;

	foreach my $settings ('SET gpusort.enabled = off;', map { "SET gpusort.engine = $_;" } @engines)
	{
		my $messages = error_on_full_disk($table, $folder, $settings);

		like($messages, qr/clustering table "$table" with gpusort/, "$what: by gpusort ($settings)") if @errors;
		push @errors, join("\n", map { s{base/[\w/.]+}{base/...}r } grep { !/^LOCATION/ } $messages =~ /^.*?(ERROR: .*)/s ? split(/\n/, $1) : ());
		is($errors[-1], $errors[0], "$what: the error of PostgreSQL on a full disk") if @errors > 1;
		is(state_of($table), $before, "the table and the files are as they were ($settings)");
	}
	like($errors[0], qr/^ERROR:  53100: could not (?:write to|extend) file "base.*No space left on device/, "$what: SQLSTATE 53100");
	like($node->safe_psql('postgres', "CLUSTER $table USING ${table}_by; SELECT 'clustered'"), qr/clustered/, 'with space it can be clustered');
	isnt(state_of($table), $before, 'which changes its state');
}

# the pages of an index are written to holes of its file, by one process and by several
my $sparse = File::Temp->new(DIR => $node->data_dir);

truncate($sparse, 1 << 20) or die "$sparse: $!";
SKIP:
{
	skip 'the file system does not tell where holes are', 6 if (sysseek($sparse, 0, 4) // -1) != 0;	# SEEK_HOLE
	foreach my $workers (0, 2)
	{
		my $before = state_of('narrow');
		my $build = "SET max_parallel_maintenance_workers = $workers; SET min_parallel_table_scan_size = 0; SET maintenance_work_mem = '64MB'; CREATE INDEX narrow_more ON narrow ((md5(id::text) || md5((id + 1)::text) || 'more'))";
		my $messages;

		append_to_file($full, "holes $database");
		(undef, undef, $messages) = $node->psql('postgres', "\\set VERBOSITY verbose\n$build");
		unlink($full) or die "$full: $!";
		like($messages, qr/ERROR:  53100: could not write blocks? .*No space left on device/, "the holes of an index cannot be written ($workers workers)");
		is(state_of('narrow'), $before, 'the table and the files are as they were');
		is($node->safe_psql('postgres', "$build; SELECT bt_index_parent_check('narrow_more', true, true); DROP INDEX narrow_more"), '', 'with space it can be built');
	}
}
is_idle($node, 'after a full disk');
$node->safe_psql('postgres', 'DROP INDEX large_id');

# ------------------------------------------------------------------ damage

# a line pointer with the greatest length, or none
foreach my $length (32767, 4)
{
	my $path = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('one')");
	my $pointer;

	$node->stop;
	open(my $file, '+<:raw', $path) or die "$path: $!";
	seek($file, 24, 0);
	read($file, $pointer, 4) == 4 or die "$path: $!";
	seek($file, 24, 0);
	print $file pack('L', (unpack('L', $pointer) & 0x1FFFF) | $length << 17);
	close($file);
	$node->start;
	($rc, $out, $notices) = $node->psql('postgres', 'SET ignore_checksum_failure = on; DROP INDEX IF EXISTS one_fails; CLUSTER one USING one_by');
	like($notices, qr/ERROR:  tuple at \(0,1\) in table "one" has an invalid length of $length bytes/, "a line pointer of length $length");
}

done_testing();
