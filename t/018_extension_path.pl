# An installation in a folder of its own, which the server finds by extension_control_path
# and dynamic_library_path, beside the one in the server's folders.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('extension_path');
plan skip_all => 'extension_control_path is of PostgreSQL 18' if $node->pg_version < 18;

my $folder = PostgreSQL::Test::Utils::tempdir() . '/own';
delete @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS)};
command_ok([ 'make', '-s', '-C', "$FindBin::RealBin/..", 'install', "prefix=$folder",
		'PG_CONFIG=' . $node->config_data('--bindir') . '/pg_config' ], 'make install prefix=... installs');
my ($control) = grep { -e } glob("$folder/share/extension/gpusort.control $folder/share/postgresql/extension/gpusort.control");
my ($library) = grep { -e } glob("$folder/lib/gpusort.so $folder/lib/postgresql/gpusort.so");
my ($share) = $control =~ m{(.*)/extension/};
my ($lib) = $library =~ m{(.*)/};

$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
$node->append_conf('postgresql.conf', qq{
	extension_control_path = '$share:\$system'
	dynamic_library_path = '$lib:\$libdir'
	session_preload_libraries = 'gpusort'
	gpusort.device = host
	gpusort.engine = cuda
	gpusort.device_min_rows = 0
	max_parallel_maintenance_workers = 2
	min_parallel_table_scan_size = 0
	log_min_messages = debug1
});
$node->start;

# The files named gpusort.so that a session has loaded.
sub libraries
{
	my ($pid) = @_;
	my %files = map { $_ => 1 } slurp_file("/proc/$pid/maps") =~ m{(/\S*/gpusort\.so)}g;

	return join(' ', sort keys %files);
}

my ($psql, $pid) = session($node);
ask($psql, 'CREATE EXTENSION gpusort');
is(ask($psql, "SELECT gpusort_version() = extversion FROM pg_extension WHERE extname = 'gpusort'"), 't', 'the extension is created');
ask($psql, 'CREATE TABLE rows AS SELECT i, hashint4(i) AS k FROM generate_series(1, 20000) i; ANALYZE rows');
like(ask($psql, 'EXPLAIN (COSTS OFF) SELECT * FROM rows ORDER BY k'), qr/GpuSort/, 'a GpuSort');
ask($psql, 'SELECT count(*) FROM (SELECT * FROM rows ORDER BY k OFFSET 0) x');
is(libraries($pid), $library, 'the functions and the node are of the one library there');

ok(wait_for_service($node, 'running'), 'gpusortd runs');
my ($service) = service_processes($node);
is(readlink("/proc/$service/exe"), "$folder/bin/gpusortd", 'that of the same folder');
like(ask($psql, 'EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM rows ORDER BY k'), qr/Engine: cuda/, 'and sorts');

my $start = -s $node->logfile;
ask($psql, 'CREATE INDEX rows_k ON rows (k)');
like(slurp_file($node->logfile, $start), qr/parallel worker/, 'an index is built by workers');
is(ask($psql, 'SET enable_seqscan = off; SET enable_sort = off; SELECT count(*) FROM (SELECT k, lag(k) OVER (ORDER BY k) AS before FROM rows) x WHERE before > k'),
	'0', 'and is right');

# the other one is still there
$node->append_conf('postgresql.conf', "dynamic_library_path = '\$libdir'");
$node->restart;
($psql, $pid) = session($node);
is(ask($psql, 'SELECT gpusort_version() IS NOT NULL'), 't', 'the extension finds the library in the folder of the server');
is(libraries($pid), $node->config_data('--pkglibdir') . '/gpusort.so', 'if the path leads there');
$psql->quit;

$node->stop;
done_testing();
