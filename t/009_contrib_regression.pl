# The regression tests of contrib modules that define btree orders, or the keys of GIN indexes, with every
# possible Sort and index build replaced.
#
# Set PG_CONTRIB_DIR to contrib of the sources of the server's major version;
# nothing is written there.  The modules are those that are installed.  Their
# tests run on a server without gpusort and on two with gpusort.force, by the CPU
# engine and by gpusortd; the output of the three must be the same: see RegressTest.pm.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RegressTest;
use Test::More;

my @modules = qw(btree_gin btree_gist citext cube hstore intarray isn ltree pg_trgm seg);
my $source = $ENV{PG_CONTRIB_DIR};

plan skip_all => 'PG_CONTRIB_DIR does not name the contrib folder of the sources of PostgreSQL'
  unless defined $source && $source ne '';
foreach (@modules)
{
	BAIL_OUT("PG_CONTRIB_DIR = $source has no $_/Makefile") unless -e "$source/$_/Makefile";
}

# Tests that show the order of ties.
my %ties = (
	# ORDER BY c~>1 LIMIT 15: two cubes have the same bound
	cube => {});

# The tests of a module, as its Makefile lists them.
sub tests_of
{
	my ($module) = @_;
	my $makefile = slurp_file("$source/$module/Makefile") =~ s/\\\n/ /gr;

	$makefile =~ /^REGRESS\s*=\s*(.*)$/m or BAIL_OUT("$source/$module/Makefile has no REGRESS");
	return split(' ', $1);
}

# Runs the tests of all modules, each in a database of its own; the cluster, and
# where the output is.
sub run_modules
{
	my ($name, @settings) = @_;
	my $node = regress_node("contrib_$name", @settings);
	my $folder = "$PostgreSQL::Test::Utils::tmp_check/contrib_$name";

	mkdir $folder;
	foreach my $module (@modules)
	{
		my @tests = tests_of($module);
		my $result = run_pg_regress($node, "$source/$module", "$folder/$module", "--dbname=$module", @tests);

		is(scalar(keys %$result), scalar(@tests), "$name: all " . @tests . " tests of $module ran");
		if ($name eq 'core')
		{
			my @failing = grep { $result->{$_} ne 'ok' } sort keys %$result;

			diag("without gpusort, too, $module prints something else than its sources expect: @failing") if @failing;
		}
	}
	return ($node, $folder);
}

my ($core_node, $core_folder) = run_modules('core');
$core_node->stop;

# What sorts, in a database that a module has left.
sub plan_in
{
	my ($node) = @_;

	return $node->safe_psql('btree_gist',
		'EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM int4tmp ORDER BY a');
}

sub check_modules
{
	my ($name, $engine, @settings) = @_;
	my ($node, $folder) = run_modules($name, "shared_preload_libraries = 'gpusort'", 'gpusort.force = on', @settings);
	my @differing;

	like(plan_in($node), qr/Custom Scan \(GpuSort\).*Engine: $engine/s, "$name: the sessions of the tests had GpuSorts");
	ok(!$node->log_contains('terminated by signal|TRAP: |PANIC: '), "$name: no process has crashed");
	$node->stop;
	push @differing, check_outputs("$name, $_", "$core_folder/$_", "$folder/$_", \%ties, tests_of($_)) foreach @modules;
	diag("contrib modules, $name: ", scalar(@differing), ' tests differ in the order of ties',
		@differing ? " (@differing)" : '');
}

check_modules('cpu', 'cpu', 'gpusort.engine = cpu');
check_modules('service', 'cuda', 'gpusort.engine = cuda', 'gpusort.device = host', 'gpusort.device_min_rows = 0');

done_testing();
