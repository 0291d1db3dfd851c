# The ways to load the library, and what happens without it: plans, settings,
# the extension, parallel workers, cached plans, servers of other versions.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('loading');
$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
$node->append_conf('postgresql.conf', "jit = off\nmax_parallel_workers_per_gather = 0\n");
$node->start;

$node->safe_psql('postgres', q{
	CREATE TABLE rows AS
		SELECT i, hashint8(i) AS k, 'row ' || i AS v FROM generate_series(1, 20000) i;
	ANALYZE rows;
});

my $query = 'SELECT * FROM rows ORDER BY k';
my $digest = "SELECT md5(string_agg(i::text, ',')) FROM ($query, i OFFSET 0) s";
my $sort_plan = qr/^Sort\n/;
my $gpu_plan = qr/^Custom Scan \(GpuSort\)\n  Sort Key: k\n  ->  Seq Scan on rows$/;

sub stderr_of
{
	my ($sql) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', $sql);

	return $err;
}

# ---------------------------------------------------------- how it is loaded

my $right_digest = $node->safe_psql('postgres', $digest);

like(plan_of($node, $query), $sort_plan, 'not loaded: a Sort');
like(plan_of($node, $query, "LOAD 'gpusort';"), $gpu_plan, 'LOAD gives a GpuSort');
is($node->safe_psql('postgres', "LOAD 'gpusort'; $digest"), $right_digest,
	'and it sorts as PostgreSQL does');
like(plan_of($node, $query), $sort_plan, 'a Sort in the next session');

$node->safe_psql('postgres', "ALTER DATABASE postgres SET session_preload_libraries = 'gpusort'");
like(plan_of($node, $query), $gpu_plan, 'session_preload_libraries of a database gives a GpuSort');
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET session_preload_libraries');
like(plan_of($node, $query), $sort_plan, 'reset: a Sort again');

$node->append_conf('postgresql.conf', "session_preload_libraries = 'gpusort'");
$node->reload;
ok($node->poll_query_until('postgres', 'SHOW session_preload_libraries', 'gpusort'),
	'session_preload_libraries of the server is set');
like(plan_of($node, $query), $gpu_plan, 'and gives a GpuSort');

$node->append_conf('postgresql.conf',
	"session_preload_libraries = ''\nshared_preload_libraries = 'gpusort'");
$node->restart;
like(plan_of($node, $query), $gpu_plan, 'shared_preload_libraries gives a GpuSort');
like(plan_of($node, $query, "LOAD 'gpusort';"), $gpu_plan, 'loading it twice does no harm');
is($node->safe_psql('postgres', $digest), $right_digest, 'preloaded, it sorts as PostgreSQL does');

# ------------------------------------------------------------- the extension

my $members = q{
	SELECT string_agg(DISTINCT classid::regclass::text, ',') FROM pg_depend
	WHERE deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gpusort')
};

$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
# those of the views' row types, too, from PostgreSQL 18 on
like($node->safe_psql('postgres', $members), qr/^pg_class,pg_proc(,pg_type)?$/, 'CREATE EXTENSION adds functions, and views of them');
like($node->safe_psql('postgres', 'SELECT gpusort_version()'), qr/^\d+\.\d+$/,
	'gpusort_version() gives a version');
is($node->safe_psql('postgres', 'SELECT gpusort_version()'),
	$node->safe_psql('postgres', "SELECT extversion FROM pg_extension WHERE extname = 'gpusort'"),
	'library and extension have the same version');
SKIP:
{
	skip 'pg_get_loaded_modules() is of PostgreSQL 18', 1 if $node->pg_version < 18;
	is($node->safe_psql('postgres', "SELECT version = gpusort_version() FROM pg_get_loaded_modules() WHERE module_name = 'gpusort'"),
		't', 'the server knows its name and version');
}
is($node->safe_psql('postgres', "DROP EXTENSION gpusort; $digest"), $right_digest,
	'DROP EXTENSION leaves sorting working');
like(plan_of($node, $query), $gpu_plan, 'by GpuSort');

# The extension belongs to the database, loading to the session.
# (PostgreSQL loads the library to check the functions that it creates.)
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
like(plan_of($node, $query), $sort_plan, 'with the extension, not loaded: a Sort');
like(plan_of($node, $query, 'DO $$ BEGIN PERFORM gpusort_version(); END $$;'), $gpu_plan, 'calling its function loads the library');
$node->safe_psql('postgres', 'DROP EXTENSION gpusort');

# ---------------------------------------------------------- loaded by path

# Another copy of the library, where the bare name finds the installed one or none: all
# processes of a build load the copy, and so does the supervisor.
{
	my $folder = PostgreSQL::Test::Utils::tempdir_short() . '/lib';
	my $far = $folder . '/far' x 30;
	my $installed = $node->config_data('--pkglibdir') . '/gpusort.so';
	my $status = 'CREATE FUNCTION pg_temp.status(OUT device_number int, OUT state text, OUT detail text, OUT device text, OUT device_kind text, OUT memory_total int8, '
	  . 'OUT memory_limit int8, OUT memory_used int8, OUT memory_lent int8, OUT jobs int, OUT waiting int, OUT jobs_done int8, OUT pid int) RETURNS SETOF record AS \'%s\', \'gpusort_service_status\' LANGUAGE c';

	system_or_bail('mkdir', '-p', $far);
	system_or_bail('cp', $installed, $_) foreach $folder, $far;
	$node->append_conf('postgresql.conf', "log_min_messages = debug1\ngpusort.device = host");
	$node->reload;
	foreach my $bare ('$libdir', '/nowhere')
	{
		$node->append_conf('postgresql.conf', "dynamic_library_path = '$bare'");
		$node->reload;
		$node->poll_query_until('postgres', 'SHOW dynamic_library_path', $bare) or die 'the setting does not come';
		my $start = -s $node->logfile;
		my ($rc, $out, $err) = $node->psql('postgres', "
			LOAD '$folder/gpusort';
			SET gpusort.force = on; SET gpusort.engine = cpu; SET max_parallel_maintenance_workers = 2; SET min_parallel_table_scan_size = 0;
			ALTER TABLE rows SET (parallel_workers = 2); CREATE INDEX of_rows ON rows (k); SELECT relpages > 10 FROM pg_class WHERE relname = 'of_rows'; DROP INDEX of_rows");
		is("$rc$out$err", '0t', "loaded by path, the bare name finding $bare: an index is built");
		like(slurp_file($node->logfile, $start), qr/background worker process "parallel worker/, 'by workers');
	}

	# Another build takes the place of the library while a session uses it: its workers load that one.
	my ($psql) = session($node, "LOAD '$folder/gpusort'; SET gpusort.force = on; SET gpusort.engine = cpu; SET min_parallel_table_scan_size = 0; "
		  . 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET max_parallel_workers_per_gather = 2; SET max_parallel_maintenance_workers = 2');
	my $replaced = qr/ERROR:  gpusort was replaced by another build while this session uses it\nDETAIL:  The session has loaded build [0-9a-f]{16}, and a parallel worker build 0123456789abcdef\./;
	my ($program) = run_command([ $node->config_data('--bindir') . '/gpusortd', '--version' ]);
	my ($build) = $program =~ /build ([0-9a-f]{16})/;
	my $library = slurp_file("$folder/gpusort.so");
	is($library =~ s/$build/0123456789abcdef/, 1, 'a library of another build');
	append_to_file("$folder/new.so", $library);
	chmod 0755, "$folder/new.so";
	like(ask($psql, "EXPLAIN (COSTS OFF) $query"), qr/Gather Merge.*GpuSort/s, 'a parallel plan');
	rename "$folder/new.so", "$folder/gpusort.so";
	like(ask_error($psql, $_), $replaced, "a library that was replaced: $_") foreach $query, 'CREATE INDEX of_rows ON rows (k)';
	is(ask($psql, "SET max_parallel_workers_per_gather = 0; SELECT count(*) FROM ($query OFFSET 0) x"), 20000, 'without workers the session goes on');
	$psql->quit;
	unlink "$folder/gpusort.so";
	system_or_bail('cp', $installed, $folder);

	foreach my $path ($folder, $far)
	{
		my ($psql) = session($node, "LOAD '$path/gpusort'; SET gpusort.engine = cuda; SET gpusort.force = on; SET gpusort.device_min_rows = 0; " . sprintf($status, "$path/gpusort"));
		my $state;

		poll(sub { ask($psql, $digest); ($state = ask($psql, 'SELECT state || detail FROM pg_temp.status()')) =~ /longer than/ || ask($psql, 'SELECT state FROM pg_temp.status()') eq 'running' });
		$path eq $folder ? is(ask($psql, 'SELECT state FROM pg_temp.status()'), 'running', 'loaded by path: gpusortd runs')
		  : like($state, qr/^not startedthe path of the gpusort library is longer than 95 bytes$/, 'a path that is too long: the status shows the reason');
		$psql->quit;
		$node->append_conf('postgresql.conf', 'log_min_messages = warning');
		$node->restart;
	}
	$node->append_conf('postgresql.conf', "gpusort.device = auto\ndynamic_library_path = '\$libdir'");
	$node->restart;
}

# --------------------------------------------------------------- settings

my @refused = (
	[ "SET gpusort.min_rows = -1",
		qr/-1 is outside the valid range for parameter "gpusort.min_rows" \(0 \.\. 2147483647\)/ ],
	[ "SET gpusort.min_rows = 2147483648",
		qr/invalid value for parameter "gpusort.min_rows": "2147483648"/ ],
	[ "SET gpusort.min_rows = 'many'",
		qr/invalid value for parameter "gpusort.min_rows": "many"/ ],
	[ "SET gpusort.engine = 'nope'",
		qr/invalid value for parameter "gpusort.engine": "nope"\nHINT:  Available values: auto, cpu, cuda\./ ],
	[ "SET gpusort.enabled = 'perhaps'",
		qr/parameter "gpusort.enabled" requires a Boolean value/ ],
	[ "SET gpusort.force = 2", qr/parameter "gpusort.force" requires a Boolean value/ ],
	[ "SET gpusort.nonsense = 1",
		qr/invalid configuration parameter name "gpusort.nonsense"\nDETAIL:  "gpusort" is a reserved prefix\./ ]);

like(stderr_of("LOAD 'gpusort'; $_->[0]"), qr/ERROR:  $_->[1]/, "refused: $_->[0]")
  foreach @refused;

is($node->safe_psql('postgres', q{
		LOAD 'gpusort';
		SELECT context, string_agg(substr(name, 9), ' ' ORDER BY name)
		FROM pg_settings WHERE name LIKE 'gpusort.%' GROUP BY context ORDER BY context}),
	"sighup|device device_idle device_memory_limit device_park_limit service_fault service_path service_timeout\nsuperuser|collation_fault device_session_sorts device_wait log_min_duration\n"
	  . 'user|algorithm debug_plan device_min_rows enable_cluster enable_create_index enable_gin enable_index_validation enable_parallel_index_write enable_ranges enabled engine force libc_collations min_rows planner_cost verify',
	'the settings are there, and any user may set those of a session, but not what it takes of what all share');

# Settings from before the load are checked when the library is loaded.
like(stderr_of("SET gpusort.min_rows = -1; LOAD 'gpusort'"),
	qr/WARNING:  -1 is outside the valid range for parameter "gpusort.min_rows"/,
	'a value set before the load is checked');
is($node->safe_psql('postgres', q{
		SET gpusort.min_rows = -1;
		LOAD 'gpusort';
		SELECT setting = boot_val FROM pg_settings WHERE name = 'gpusort.min_rows'}),
	't', 'and replaced by the default');
is($node->safe_psql('postgres', "SET gpusort.min_rows = 7; LOAD 'gpusort'; SHOW gpusort.min_rows"),
	'7', 'a valid one is kept');
like(stderr_of("SET gpusort.nonsense = 1; LOAD 'gpusort'"),
	qr/WARNING:  invalid configuration parameter name "gpusort.nonsense", removing it/,
	'an unknown setting from before the load is removed');

# Settings of other extensions, before and after gpusort's in the server's array, are
# found after the load, and after a load that fails.
my $others = "SET gpu.one = 1; SET GPUsort_x.one = 2; SET gpusortx.one = 3; SET \x{c3}\x{a9}.one = 4; SET zz.one = 5; SET GPUSORT.Engine = 'cpu';";
my $find_all = "SELECT count(*) > 300, count(current_setting(name)) = count(*) FROM pg_settings;"
  . "SELECT string_agg(current_setting(n), ' ') FROM unnest('{gpu.one,gpusort_x.one,gpusortx.one,\x{c3}\x{a9}.one,zz.one,gpusort.engine}'::text[]) n";
my $copy = PostgreSQL::Test::Utils::tempdir() . '/copy.so';

append_to_file($copy, slurp_file($node->config_data('--pkglibdir') . '/gpusort.so'));
chmod 0755, $copy;
is($node->safe_psql('postgres', "$others LOAD 'gpusort'; $find_all"), "t|t\n1 2 3 4 5 cpu",
	'all settings are found after the load');
my ($rc, $out, $err) = $node->psql('postgres', "$others LOAD 'gpusort'; LOAD '$copy'; $find_all", on_error_stop => 0);
like($err, qr/attempt to redefine parameter "gpusort\.\w+"/, 'a copy cannot define them again');
is($out, "t|t\n1 2 3 4 5 cpu", 'and all are found after that');

# min_rows, enabled and debug_plan
like(plan_of($node, $query, "LOAD 'gpusort'; SET gpusort.min_rows = 20001;"), $sort_plan,
	'fewer rows than gpusort.min_rows: a Sort');
like(plan_of($node, $query, "LOAD 'gpusort'; SET gpusort.min_rows = 20000;"), $gpu_plan,
	'as many as gpusort.min_rows: GpuSort');
like(plan_of($node, $query, "LOAD 'gpusort'; SET gpusort.min_rows = 20001; SET gpusort.force = on;"),
	$gpu_plan, 'gpusort.force does not ask for rows');
like(plan_of($node, $query, "LOAD 'gpusort'; SET gpusort.enabled = off;"), $sort_plan,
	'gpusort.enabled = off: a Sort');
like(stderr_of("LOAD 'gpusort'; SET gpusort.debug_plan = on; SET gpusort.min_rows = 20001; EXPLAIN $query"),
	qr/NOTICE:  GpuSort not used: the estimated number of rows, 20000, is less than gpusort.min_rows \(20001\)$/m,
	'gpusort.debug_plan shows the reason');

# --------------------------------------- with a planner hook that changes settings

# It restores them after planning, before or after gpusort's hook sees the plan.
my $hint = PostgreSQL::Test::Utils::tempdir() . '/hint.so';
my @cflags = split(' ', $node->config_data('--cflags'));

command_ok([ $node->config_data('--cc'), @cflags, '-fPIC', '-shared', '-I', $node->config_data('--includedir-server'),
		'-I', "$FindBin::RealBin/../src", '-o', $hint, "$FindBin::RealBin/../test/hint/hint.c" ], 'a library with such a hook is built');
$node->safe_psql('postgres', q{
	CREATE COLLATION of_libc (provider = libc, locale = 'en_US.UTF-8');
	CREATE TABLE names AS SELECT ('name ' || hashint8(i)) COLLATE of_libc AS name FROM generate_series(1, 20000) i;
	ANALYZE names;
	CREATE FUNCTION planned(query text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		EXECUTE query;
		RETURN 1;
	EXCEPTION WHEN division_by_zero THEN
		RETURN 1;
	END $$;
});

foreach my $libraries ("'$hint'; LOAD 'gpusort'", "'gpusort'; LOAD '$hint'")
{
	my $name = $libraries =~ /^'gpusort/ ? 'after gpusort' : 'before gpusort';
	my $hinted = sub {
		my ($set, $settings, $q) = @_;

		return $node->safe_psql('postgres', "LOAD $libraries; $settings /*+ $set */ EXPLAIN (COSTS OFF) " . ($q // $query));
	};
	my $by_name = 'SELECT * FROM names ORDER BY name';

	like($hinted->('gpusort.enabled off', ''), $sort_plan, "a hint $name: gpusort.enabled off");
	like($hinted->('gpusort.min_rows 20001', ''), $sort_plan, "a hint $name: gpusort.min_rows, more rows");
	like($hinted->('gpusort.min_rows 20000', 'SET gpusort.min_rows = 20001;'), $gpu_plan, "a hint $name: gpusort.min_rows, fewer");
	like($hinted->('gpusort.force on', 'SET gpusort.min_rows = 20001;'), $gpu_plan, "a hint $name: gpusort.force");
	like($hinted->('gpusort.libc_collations off', '', $by_name), $sort_plan, "a hint $name: gpusort.libc_collations off");
	like(stderr_of("LOAD $libraries; SET gpusort.debug_plan = on; /*+ gpusort.libc_collations off */ EXPLAIN $by_name"),
		qr/NOTICE:  GpuSort not used: sort column 1: collation "of_libc" belongs to the C library, and gpusort.libc_collations is off$/m,
		"a hint $name: the reason");
	like($hinted->('work_mem 8MB', '', $by_name), qr/GpuSort/, "a hint $name: another setting");

	# planned while another query is
	foreach my $inner ("/*+ gpusort.enabled off */ $query", '/*+ gpusort.enabled off */ SELECT 1 / 0')
	{
		like(plan_of($node, "SELECT * FROM rows WHERE i > planned('$inner') ORDER BY k", "LOAD $libraries; SET gpusort.min_rows = 1000;"), qr/GpuSort/,
			"a hint $name: $inner, in a function");
	}
	like($hinted->('gpusort.enabled off', 'SET gpusort.min_rows = 1000;', "SELECT * FROM rows WHERE i > planned('$query') ORDER BY k"), qr/^Sort\n/,
		"a hint $name: a function plans without one");
	is($node->safe_psql('postgres', "LOAD $libraries; /*+ gpusort.enabled off */ $digest"), $right_digest, "a hint $name: the rows");
}

# ------------------------------------------------------- parallel workers

# Only the leader's session has LOADed the library; workers load it with the leader's state.
my $workers = q{
	SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0;
	SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SET parallel_leader_participation = off;
	LOAD 'gpusort'; SET gpusort.min_rows = 0;	-- each worker has a part of the rows
};
like(plan_of($node, "$query, i", "LOAD 'gpusort'; $workers"),
	qr/Gather Merge\n  Workers Planned: 2\n  ->  Parallel Custom Scan \(GpuSort\)/,
	'a GpuSort below Gather Merge');
is($node->safe_psql('postgres', "LOAD 'gpusort'; $workers $digest"), $right_digest,
	'workers of a session that has only LOADed the library sort');

# ------------------------------------------------------------ cached plans

my $cached = $node->safe_psql('postgres', qq{
	LOAD 'gpusort';
	SET plan_cache_mode = force_generic_plan;
	PREPARE cached AS $digest;
	EXECUTE cached;
	SET gpusort.enabled = off;
	EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE cached;
	EXECUTE cached;
	SET gpusort.enabled = on;
	EXECUTE cached;
	EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE cached;
});
is(scalar(() = $cached =~ /^\Q$right_digest\E$/mg), 3,
	'a cached plan gives the same rows before, without, and after gpusort.enabled');
like($cached, qr/Custom Scan \(GpuSort\).*Engine: postgres\s+Fallback Reason: gpusort.enabled is off/s,
	'switched off, its rows go to PostgreSQL');
like($cached, qr/Engine: cpu(?!.*Engine: postgres)/s, 'switched on, back to the engine');

# A plan cached before the library was loaded stays as it is.
like($node->safe_psql('postgres', qq{
		SET plan_cache_mode = force_generic_plan;
		PREPARE cached AS $query;
		EXPLAIN (COSTS OFF) EXECUTE cached;
		LOAD 'gpusort';
		EXPLAIN (COSTS OFF) EXECUTE cached}),
	qr/^Sort\n.*^Sort\n/ms, 'a plan from before the load keeps its Sorts');

# ---------------------------------------------------- servers of other versions

my ($symbols) = run_command([ 'nm', '-D', $node->config_data('--pkglibdir') . '/gpusort.so' ]);
is(join(' ', sort($symbols =~ / [TDBR] ((?!__|_edata|_end|_init|_fini)\w+)/g)),
	'Pg_magic_func _PG_init gpusort_advise_indexes gpusort_calibrate gpusort_service_status gpusort_stat_activity gpusort_stat_databases gpusort_stat_device gpusort_stat_reset gpusort_version gs_gin_build_worker gs_index_btree_worker gs_supervisor_main '
	  . 'pg_finfo_gpusort_advise_indexes pg_finfo_gpusort_calibrate pg_finfo_gpusort_service_status pg_finfo_gpusort_stat_activity pg_finfo_gpusort_stat_databases '
	  . 'pg_finfo_gpusort_stat_device pg_finfo_gpusort_stat_reset pg_finfo_gpusort_version',
	'the library exports what PostgreSQL calls, and nothing else');
# The server may have no ICU, or another version, whose functions have other names.
like($symbols, qr/ w ucol_getSortKey/, 'ICU is asked for');
unlike($symbols, qr/ U (u|ucol|uiter|icu)_/, 'and not needed to load the library');

# A copy of the library with another major version in its magic block.
my $library = slurp_file($node->config_data('--pkglibdir') . '/gpusort.so');
my $major = int($node->safe_psql('postgres', 'SHOW server_version_num') / 10000);
my ($length, $version) = map { quotemeta(pack('V', $_)) } $major < 18 ? 56 : 72, 100 * $major;
my $magic = qr/($length)($version)(.{16}PostgreSQL\0)/s;
my $foreign = PostgreSQL::Test::Utils::tempdir() . '/foreign.so';

is(scalar(() = $library =~ /$magic/g) / 3, 1, 'the library has one magic block, for PostgreSQL ' . $major);
$library =~ s/$magic/$1 . pack('V', 100 * ($major + 1)) . $3/e;
append_to_file($foreign, $library);
chmod 0755, $foreign;
like(stderr_of("LOAD '$foreign'"),
	qr/ERROR:  incompatible library .*: version mismatch\nDETAIL:  Server is version $major, library is version @{[$major + 1]}/,
	'a server refuses a library built for another version');

# The build refuses other servers, in one line.
my $fake_pg_config = PostgreSQL::Test::Utils::tempdir() . '/pg_config';
append_to_file($fake_pg_config, "#!/bin/sh\necho 'PostgreSQL 14.1'\n");
chmod 0755, $fake_pg_config;
my $build = `make -s -n -C "$FindBin::RealBin/.." PG_CONFIG="$fake_pg_config" 2>&1`;
isnt($?, 0, 'the build fails for another server version');
like($build, qr/^[^\n]*gpusort supports PostgreSQL 15 to 19, but \S+ is of PostgreSQL 14: set PG_CONFIG[^\n]*\n$/,
	'with one clear line');

$node->stop;
done_testing();
