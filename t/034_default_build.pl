# The default build, which packages and "make install" have: it can neither be told to fail
# nor to sort wrongly.  All other tests are of a test build, which shows here that what is
# looked for can be found.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('default_build');
my ($bindir, $libdir) = map { $node->config_data($_) } '--bindir', '--pkglibdir';
my $top = "$FindBin::RealBin/..";
my $temp = PostgreSQL::Test::Utils::tempdir_short();

# ------------------------------------------------------------------ what is installed

# the options of this build are not those of the other one
delete @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS CUDA_ARCHS WITH_CUDA NVCC COPT TEST_DOUBLES GPUSORT_BUILD_ID)};
mkdir "$temp/tree";
system_or_bail('sh', '-c', "tar -C '$top' --exclude=./.git --exclude='*.o' --exclude='*.so' --exclude=./build --exclude='./test/*/build'"
	  . " --exclude=./tmp_check -cf - . | tar -C '$temp/tree' -xf -");
command_ok([ 'make', '-s', '-j2', '-C', "$temp/tree", "PG_CONFIG=$bindir/pg_config", 'COPT=-O0', 'WITH_CUDA=no' ], 'the default build');
command_ok([ 'make', '-s', '-C', "$temp/tree", "PG_CONFIG=$bindir/pg_config", "DESTDIR=$temp/root", 'install' ], 'is installed');

my ($library, $program) = ("$temp/root$libdir/gpusort.so", "$temp/root$bindir/gpusortd");
my ($files) = run_command([ 'find', "$temp/root", '-type', 'f', '-printf', '%f\n' ]);
is(join(' ', sort grep { !/^gpusort--.*\.sql$/ } split(/\n/, $files)), 'gpusort.control gpusort.so gpusortd', 'nothing else is');

# What a program has of test doubles: names of functions and variables, and texts.
sub doubles_in
{
	my %found = map { $_ => 1 } slurp_file($_[0]) =~
	  /collation_fault|service_fault|gs_device_fault_|gs_device_host_|__wrap_main|__wrap_gs_|--fault|injected failure/g;

	return join(', ', sort keys %found);
}

is(doubles_in($library), '', 'the library has no test doubles');
like(doubles_in("$libdir/gpusort.so"), qr/collation_fault, service_fault/, 'that of a test build has');
is(doubles_in($program), '', 'gpusortd has no test doubles');
like(doubles_in("$bindir/gpusortd"), qr/--fault.*injected failure/, 'that of a test build has');

command_fails_like([ $program, '--check', '--device', 'host' ], qr/--device requires cuda:K; try/, 'gpusortd --device host: refused');
command_fails_like([ $program, '--check', '--fault', 'pack:1:fail' ], qr/unknown option/, 'gpusortd --fault: refused');
command_ok([ "$bindir/gpusortd", '--check', '--device', 'host', '--fault', 'pack:1:fail' ], 'a test build takes both');

# The two builds do not communicate.
sub build_of
{
	my ($version) = run_command([ $_[0], '--version' ]);

	return $version =~ /build ([0-9a-f]{16})/ ? $1 : '';
}

like(build_of($program), qr/./, 'gpusortd has a build ID');
isnt(build_of($program), build_of("$bindir/gpusortd"), 'not that of a test build');
isnt(index(slurp_file($library), build_of($program)), -1, 'but that of its library');

# ------------------------------------------------------------------------ in a server

# a short path: see docs/settings.md, "Loading by path"
my $copy = "$temp/gpusort.so";

system_or_bail('cp', $library, $copy);
$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
$node->append_conf('postgresql.conf', qq{
	session_preload_libraries = '$copy'
	gpusort.service_path = '$program'
	gpusort.engine = cuda
	gpusort.device_min_rows = 0
	max_parallel_workers_per_gather = 0
	jit = off
});
$node->start;
$node->safe_psql('postgres', qq{
	CREATE TABLE rows AS SELECT i, hashint8(i) AS k FROM generate_series(1, 20000) i;
	ANALYZE rows;
	CREATE FUNCTION status(OUT device_number int, OUT state text, OUT detail text, OUT device text, OUT device_kind text, OUT memory_total int8,
		OUT memory_limit int8, OUT memory_used int8, OUT memory_lent int8, OUT jobs int, OUT waiting int, OUT jobs_done int8, OUT pid int)
		RETURNS SETOF record AS '$copy', 'gpusort_service_status' LANGUAGE c;
});

foreach (
	[ 'SHOW gpusort.service_fault', qr/unrecognized configuration parameter "gpusort.service_fault"/ ],
	[ "ALTER SYSTEM SET gpusort.service_fault = 'pack:1:fail'", qr/[\w ]+ "gpusort.service_fault"/ ],
	[ 'SHOW gpusort.collation_fault', qr/unrecognized configuration parameter "gpusort.collation_fault"/ ],
	[ 'SET gpusort.collation_fault = on', qr/invalid configuration parameter name "gpusort.collation_fault"/ ],
	[ "ALTER SYSTEM SET gpusort.device = 'host'", qr/invalid value for parameter "gpusort.device": "host"\nHINT:  Valid values are "auto" and a list/ ],
	[ "ALTER SYSTEM SET gpusort.device = 'host:4'", qr/invalid value for parameter "gpusort.device": "host:4"/ ])
{
	my ($statement, $error) = @$_;
	my ($rc, $out, $err) = $node->psql('postgres', $statement);

	like($err, qr/ERROR:  $error/, $statement);
}

my $digest = "SELECT md5(string_agg(i::text, ',')) FROM (SELECT * FROM rows ORDER BY k, i OFFSET 0) s";

like(plan_of($node, 'SELECT * FROM rows ORDER BY k'), qr/GpuSort/, 'the default build sorts');
is($node->safe_psql('postgres', $digest), $node->safe_psql('postgres', "SET gpusort.enabled = off; $digest"), 'in the right order');
becomes(sub { $node->safe_psql('postgres', "DO \$\$ BEGIN PERFORM ($digest); END \$\$; SELECT state || ': ' || detail FROM status()") },
	'no device: built without CUDA', 'and has no device without a GPU');

# the configuration of a server that had the host device
$node->append_conf('postgresql.conf', "gpusort.device = host\ngpusort.service_fault = 'pack:1:fail'");
$node->restart;
is($node->safe_psql('postgres', 'SHOW gpusort.device'), 'auto', 'gpusort.device = host in the configuration file: the default');
ok($node->log_contains('WARNING:  invalid value for parameter "gpusort.device": "host"'), 'and a warning');
ok($node->log_contains('WARNING:  invalid configuration parameter name "gpusort.service_fault", removing it'), 'as for a setting that there is not');

$node->stop;
done_testing();
