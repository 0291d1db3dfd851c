# What docs/inside-the-server.md says and no other test holds: gpusort with another extension that has
# the same hooks, relcache entries kept across transactions, the number of workers of an index build, a
# page whose all-visible bit is wrong, an error of writeback; and that whatever the page names is there.  And what docs/operations.md says of
# replicas without the library.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('hooks');
my ($help) = run_command([ 'initdb', '--help' ]);

# a page will be changed by hand
$node->init(allows_streaming => 1, extra => [ '--locale=C', '--encoding=UTF8', $help =~ /(--no-data-checksums)/ ]);
$node->append_conf('postgresql.conf', join("\n", 'autovacuum = off', 'jit = off', 'synchronize_seqscans = off', ''));
$node->start;

my $hooks = PostgreSQL::Test::Utils::tempdir() . '/hooks.so';

command_ok([ $node->config_data('--cc'), split(' ', $node->config_data('--cflags')), '-fPIC', '-shared', '-I', $node->config_data('--includedir-server'), '-I', "$FindBin::RealBin/../src",
		'-o', $hooks, "$FindBin::RealBin/../test/hooks/hooks.c" ], 'another extension is built');
$node->safe_psql('postgres', qq{
	CREATE FUNCTION hook_calls() RETURNS text LANGUAGE c AS '$hooks';
	CREATE TABLE rows AS SELECT i, hashint8(i) AS k, 'row ' || i AS v FROM generate_series(1, 20000) i;
	ANALYZE rows;
});

# ------------------------------------------------------------------- each hook is called

my $work = q{
	SELECT count(*) FROM (SELECT * FROM rows ORDER BY k OFFSET 0) x;
	SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM rows ORDER BY v, i;
	DROP INDEX IF EXISTS rows_k;
	CREATE INDEX rows_k ON rows (k);
	REINDEX INDEX CONCURRENTLY rows_k;
	SELECT i FROM rows WHERE k = hashint8(7);
	SELECT 'calls: ' || hook_calls();
};

sub calls_in
{
	return $_[0] =~ /^calls: (.*)$/m ? $1 : 'none';
}

my $alone = calls_in($node->safe_psql('postgres', "LOAD '$hooks'; $work"));

unlike($alone, qr/ 0\b/, "without gpusort: $alone");

my $query = '/*+ keep */ SELECT md5(string_agg(i::text, $$ $$)) FROM (SELECT i FROM rows ORDER BY v DESC, i OFFSET 0) x';
my $right = $node->safe_psql('postgres', $query);

foreach my $libraries ("LOAD '$hooks'; LOAD 'gpusort';", "LOAD 'gpusort'; LOAD '$hooks';")
{
	my $name = $libraries =~ /^LOAD 'gpusort/ ? 'after gpusort' : 'before gpusort';
	my (undef, $out, $err) = $node->psql('postgres', "$libraries SET gpusort.debug_plan = on; $work");

	is(calls_in($out), $alone, "an extension loaded $name: its hooks are called as often");
	like($out, qr/^20000\n.*Custom Scan \(GpuSort\).*^7\n/ms, "$name: gpusort sorts");
	is(scalar(() = $err =~ /NOTICE:  building index "\S+" with gpusort/g), 2, "$name: and builds both indexes");

	# A plan that lives longer than the query.  Other queries use the memory in between.
	my $others = join(' ', map { "SELECT count(*) FROM (SELECT * FROM rows WHERE i > $_ ORDER BY k, v OFFSET 0) x \\g /dev/null\n" } 1 .. 20);

	is($node->safe_psql('postgres', "$libraries SET gpusort.min_rows = 1000; $query;\n$others$query;\nSET gpusort.enabled = off; $query;\nSET gpusort.enabled = on; $query"),
		join("\n", ($right) x 4), "$name: a plan that the other hook keeps");
	like($node->safe_psql('postgres', "$libraries SET gpusort.verify = on; " . ($query =~ s/SELECT/EXPLAIN (COSTS OFF) SELECT/r)), qr/GpuSort/, "$name: gpusort sorts it");
}

# ------------------------------------------- CLUSTER beside what other extensions bring

$node->safe_psql('postgres', qq{
	CREATE FUNCTION like_heap_handler(internal) RETURNS table_am_handler LANGUAGE c AS '$hooks';
	CREATE ACCESS METHOD like_heap TYPE TABLE HANDLER like_heap_handler;
	CREATE TABLE of_other_method USING like_heap AS SELECT * FROM rows;
	CREATE INDEX of_other_method_k ON of_other_method (k);
	CREATE TABLE hypothetical AS SELECT * FROM rows;
	CREATE INDEX hypothetical_k ON hypothetical (k);
	ANALYZE of_other_method, hypothetical;
});

my $in_order = 'SELECT count(*), bool_and(k >= before) FROM (SELECT k, lag(k, 1, k) OVER (ORDER BY ctid) AS before FROM %s) x';

foreach my $table ('of_other_method', 'hypothetical')
{
	my (undef, $out, $err) = $node->psql('postgres', "LOAD '$hooks'; LOAD 'gpusort'; SET gpusort.debug_plan = on; CLUSTER VERBOSE $table USING ${table}_k;"
		. "SET gpusort.enabled = off; " . sprintf($in_order, $table));

	is($out, '20000|t', "$table: CLUSTER puts the rows in order");
	if ($table eq 'hypothetical')
	{
		like($err, qr/clustering table "hypothetical" with gpusort/, 'gpusort sorts beside an index that does not exist');
	}
	else
	{
		unlike($err, qr/clustering table/, 'gpusort leaves a table of another access method');
		like($err, qr/using index scan on "of_other_method_k"/, 'to PostgreSQL, which scans the index');
	}
}

# ---------------------------------------------- relcache entries kept across transactions

# 40 indexes, each built in a transaction of its own, while entries of the others are kept.  One of these
# transactions creates 40 relations, after which PostgreSQL looks at all entries; another is aborted.
my $many = '';

$many .= "CREATE INDEX many_$_ ON many ((i % $_), i);\n" foreach (10 .. 49);
$node->safe_psql('postgres', qq{
	CREATE TABLE many AS SELECT i FROM generate_series(1, 2000) i;
	ANALYZE many;
	CREATE FUNCTION at_500(i int, action text) RETURNS int LANGUAGE plpgsql SET search_path = public AS \$\$
	BEGIN
		IF i = 500 THEN
			EXECUTE action;
		END IF;
		RETURN i;
	END \$\$;
	CREATE TABLE switch (action text);
	CREATE FUNCTION switched(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE SET search_path = public AS \$\$
	BEGIN
		RETURN at_500(i, coalesce((SELECT action FROM switch), 'SELECT 1'));
	END \$\$;
	CREATE INDEX many_switched ON many (switched(i));	-- built first
	$many
});

my $reindex = q{
	LOAD 'gpusort';
	SET max_parallel_maintenance_workers = 0;
	SET gpusort.debug_plan = on;
	REINDEX TABLE CONCURRENTLY many;
};
my $all_valid = q{SELECT count(*), bool_and(indisvalid) FROM pg_index WHERE indrelid = 'many'::regclass};
my (undef, undef, $notices) = $node->psql('postgres', $reindex);

is(scalar(() = $notices =~ /building index "\S+" with gpusort/g), 41, 'REINDEX CONCURRENTLY of 41 indexes: gpusort builds each');
$node->safe_psql('postgres', q{INSERT INTO switch VALUES ('DO $x$ BEGIN FOR k IN 1 .. 40 LOOP EXECUTE format($y$CREATE TABLE made_%s ()$y$, k); END LOOP; END $x$')});
(undef, undef, $notices) = $node->psql('postgres', $reindex);
is(scalar(() = $notices =~ /building index "\S+" with gpusort/g), 41, 'also if one transaction creates 40 tables');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_class WHERE relname LIKE 'made%'"), '40', 'which it did');
is($node->safe_psql('postgres', $all_valid), '41|t', 'all are valid');
$node->safe_psql('postgres', q{UPDATE switch SET action = 'SELECT 1 / 0'});

my ($session) = session($node);
my $error = ask_error($session, $reindex);

like($error, qr/ERROR:  division by zero/, 'one build fails');
is(ask($session, 'DELETE FROM switch; ' . $all_valid =~ s/bool_and\(indisvalid\)/count(*) FILTER (WHERE indisvalid)/r), '82|41', 'the old indexes stay');
like(ask_error($session, $reindex), qr/building index "many_10_ccnew\d*" with gpusort/, 'the session goes on');
$session->quit;

# ------------------------------------------------------ a page whose all-visible bit is wrong

# A page with dead and live rows of the same keys, which is not pruned because it has free space.
# PD_ALL_VISIBLE is bit 2 of pd_flags, at byte 10 of a page.
$node->safe_psql('postgres', q{
	CREATE TABLE wrong AS SELECT i AS id FROM generate_series(1, 100) i;
	DELETE FROM wrong WHERE id % 2 = 0;
	INSERT INTO wrong SELECT i FROM generate_series(2, 100, 2) i;
});

my $file = $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('wrong')");

$node->stop;
open my $pages, '+<:raw', $file or die "$file: $!";
seek $pages, 10, 0;
read $pages, my $flags, 2;
seek $pages, 10, 0;
print $pages pack('S', unpack('S', $flags) | 4);
close $pages;
$node->start;

my (undef, undef, $message) = $node->psql('postgres', "LOAD 'gpusort'; SET gpusort.min_rows = 0; CREATE UNIQUE INDEX ON wrong (id)");

like($message, qr/ERROR:  could not create unique index/, 'dead rows of a page that says that all are visible are duplicates');
is($node->safe_psql('postgres', 'SELECT count(*) FROM wrong'), '150', "as PostgreSQL's own scans see them");
is($node->psql('postgres', "LOAD 'gpusort'; SET gpusort.enable_create_index = off; CREATE UNIQUE INDEX ON wrong (id)"), 0, "PostgreSQL's index build does not ask the page");
$node->stop;

# ------------------------------------------------------------- a replica without the library

# The primary has a gpusortd, whose files are not part of a backup.
$node->append_conf('postgresql.conf', join("\n", "session_preload_libraries = 'gpusort'", 'gpusort.device = host', 'gpusort.engine = cuda', 'gpusort.device_min_rows = 0', ''));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
ok(poll(sub { $node->safe_psql('postgres', $query); service_status($node, 'state') eq 'running' }), 'a primary with the library');
$node->safe_psql('postgres', 'DROP TABLE many CASCADE; CREATE INDEX of_primary ON rows (v)');
$node->backup('backup');
is(join(' ', map { s{.*/}{}r } glob $node->backup_dir . '/backup/{pg_stat_tmp,base/pgsql_tmp}/*'), '', 'a base backup has no files of gpusort');

my $standby = PostgreSQL::Test::Cluster->new('standby');

$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "session_preload_libraries = ''\n");
$standby->start;
$node->safe_psql('postgres', 'CREATE UNIQUE INDEX later ON rows (i DESC)');
$node->wait_for_catchup($standby);
unlike(plan_of($standby, 'SELECT * FROM rows ORDER BY k, v'), qr/GpuSort/, 'a replica without the library');
is($standby->safe_psql('postgres', $query), $right, 'sorts');
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT (SELECT i FROM rows WHERE v = $$row 77$$), (SELECT k = hashint8(78) FROM rows WHERE i = 78)'), '77|t', 'reads the indexes');
is($standby->safe_psql('postgres', 'SHOW gpusort.engine'), 'cuda', 'and does not mind the settings');

# Where the name of the library is a row of a catalog.
$node->safe_psql('template1', q{ALTER DATABASE postgres SET session_preload_libraries = 'a_library_that_is_not_there'});
$standby->poll_query_until('template1', 'SELECT count(*) = 1 FROM pg_db_role_setting');
$standby->connect_fails('dbname=postgres', 'ALTER DATABASE ... SET session_preload_libraries reaches it',
	expected_stderr => qr/FATAL:  could not access file "a_library_that_is_not_there"/);
{
	local $ENV{PGOPTIONS} = '-c session_preload_libraries=';
	is($standby->safe_psql('postgres', 'SELECT 1'), '1', 'a superuser connects without');
}
$node->safe_psql('template1', 'ALTER DATABASE postgres RESET session_preload_libraries');
$standby->stop;
$node->append_conf('postgresql.conf', "session_preload_libraries = ''\ngpusort.engine = cpu\n");
$node->stop;

# -------------------------------------------------------------------- an error of writeback

# The sync of a file that several processes have written fails, by the leader of the build or, from
# PostgreSQL 17 on, by a checkpoint: a PANIC, after which the index is there or not, but never wrong.
my $fsync = PostgreSQL::Test::Utils::tempdir() . '/fsync.so';
my $armed = PostgreSQL::Test::Utils::tempdir() . '/fail';

command_ok([ $node->config_data('--cc'), '-O2', '-fPIC', '-shared', '-o', $fsync, "$FindBin::RealBin/../test/fsync/fsync.c" ], 'an fsync() that fails');
$node->append_conf('postgresql.conf', join("\n", 'fsync = on', 'restart_after_crash = on', ''));
{
	local $ENV{LD_PRELOAD} = $fsync;
	local $ENV{FAIL_FSYNC} = $armed;
	$node->start;
}
$node->safe_psql('postgres', q{
	CREATE TABLE large WITH (parallel_workers = 3) AS SELECT hashint8(i) AS k FROM generate_series(1, 400000) i;
	CHECKPOINT;
});
append_to_file($armed, '');
$node->psql('postgres', "LOAD 'gpusort'; SET max_parallel_maintenance_workers = 3; SET log_min_messages = debug1; CREATE INDEX large_k ON large (k); CHECKPOINT");
ok(poll(sub { count_in_log($node, qr/PANIC:  could not fsync file "base.*Input\/output error/) == 1 }), 'the sync of an index fails');
is(count_in_log($node, qr/4 processes write index "large_k"/), 1, 'which four processes have written');
ok(is_back($node), 'the server recovers');
$node->psql('postgres', 'DROP INDEX IF EXISTS large_k_again; CREATE INDEX large_k_again ON large (k)');
is($node->safe_psql('postgres', q{
	SET enable_seqscan = off; SET enable_sort = off;
	SELECT count(*), bool_and(indisvalid) FROM (SELECT k FROM large ORDER BY k OFFSET 0) x, (SELECT bool_and(indisvalid) AS indisvalid FROM pg_index WHERE indrelid = 'large'::regclass) y}),
	'400000|t', 'each index is whole');
$node->stop;

# ------------------------------------------------- docs/inside-the-server.md names what exists

my $root = "$FindBin::RealBin/..";
my $page = slurp_file("$root/docs/inside-the-server.md");
my $sources = join('', map { slurp_file($_) } glob "$root/src/*.[ch] $root/src/*/*.[ch] $root/test/doubles/*/*.[ch]");
my @missing;

foreach my $name ($page =~ /`([^`\n]+)`/g)
{
	my @files = $name =~ m{^(?:t|sql|specs|test)/[\w/.]+$} ? ($name)
	  : $name =~ m{^(?!base/)[a-z_]+/\w+(?:\.[ch])?$} ? ("src/$name", "src/$name.c", "src/$name.h") : ();

	push @missing, $name if @files && !grep { -e "$root/$_" } @files;
	push @missing, $name if $name =~ /^((?:gs_|gpusort)\w+)\(\)$/ && $sources !~ /^$1\(/m;
	push @missing, $name if $name =~ /^(gpusort\.[a-z_]{4,})(?: = \w+)?$/ && $sources !~ /"\Q$1\E"/;
}
is(join(' ', @missing), '', 'what docs/inside-the-server.md names is there');
done_testing();
