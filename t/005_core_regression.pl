# PostgreSQL's own regression suite, with every possible Sort replaced, and every
# possible btree built of entries sorted by gpusort.
#
# Set PG_REGRESS_DIR to src/test/regress of the sources of the server's major
# version; nothing is written there.  The suite runs three times: on a stock
# server, and on two with gpusort.force: one sorts by the CPU engine, the other by
# gpusortd, from the first row.  What they print must be the same, but that plans
# have a GpuSort in place of a Sort.  (Comparing with what the sources expect
# would blame gpusort for the difference between the sources' minor version
# and the server's; a test that fails without gpusort, too, says nothing.)
#
# Rows with equal keys may be in another order: RegressTest.pm distinguishes that
# from errors.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RegressTest;
use Test::More;

my $source = $ENV{PG_REGRESS_DIR};

plan skip_all => 'PG_REGRESS_DIR does not name a src/test/regress folder of PostgreSQL'
  unless defined $source && $source ne '';
foreach ('parallel_schedule', 'sql', 'expected', 'regress.c')
{
	BAIL_OUT("PG_REGRESS_DIR = $source has no $_") unless -e "$source/$_";
}

# Tests that show the order of ties, or the cost of sorts.
my %ties = (
	# ORDER BY f1 <-> '0,1': two points at an infinite distance
	create_index => { unseen => [qr/ORDER BY f1 <-> '0,1'/] },

	# a device sorts what a Sort with so little work_mem writes to disk
	explain => { plans => [qr/final result is disk/] },

	# ORDER BY distance, with many that are Infinity or NaN
	geometry => {},

	# ORDER BY coalesce(a,0)+coalesce(b,0), which several groups share
	groupingsets => { unseen => [qr/order by coalesce\(a,0\)\+coalesce\(b,0\)/] },

	# gpusortd sorts for less than an Incremental Sort is estimated to cost
	incremental_sort => { plans => [ qr/order by four\) t order by four, ten/, qr/union select \* from t order by 1,3/ ] },

	# ORDER BY i, an inet that several rows have
	inet => {},

	# a merge full join by i, which is NULL in several rows
	join => {},

	# ORDER BY tid, where the merge has inserted another row with the same
	merge => {},

	# a GroupAggregate above a GpuSort, for less than a HashAggregate is estimated to cost
	partition_aggregate => { plans => [qr/WHERE 1 = 2 GROUP BY c/] },

	# by ranges, which check_outputs() accepts only of tests that are named
	partition_join => {},

	# a Unique above a GpuSort, instead of a HashAggregate
	select_distinct => { plans => [qr/SELECT DISTINCT distinct_func\(1\)/] },

	# aggregates over a window whose rows come in the order of ties
	sqljson => {
		picked => [ [ qr/OVER \(PARTITION BY foo\.bar % 2\)/, 'json_arrayagg' ] ],
		unseen => [qr/OVER \(PARTITION BY foo\.bar % 2\)/] },

	# the contexts of an open cursor over a sort
	sysviews => { contexts => [qr/name = 'Caller tuples'/] },

	# ORDER BY one column of CUBE's results; DISTINCT ON a set-returning function
	tsrf => { picked => [ [ qr/DISTINCT ON \(g\)/, qw(a b) ] ] },

	# the first and last rows after CLUSTER by a column that several rows lack
	tuplesort => { picked => [ [ qr/^FROM abbrev_abort_uuids\nORDER BY ctid/m, 'id' ] ] },

	# window functions over ORDER BY with ties, and the tied rows themselves
	window => {
		plans => [qr/UNBOUNDED PRECEDING AND (?:UNBOUNDED|10000) FOLLOWING\)\nFROM tenk1 t1 INNER JOIN tenk1 t2/],
		picked => [
			[ qr/first_emp = 1 OR last_emp = 1/, qw(empno salary first_emp last_emp) ],
			[ qr/rn <= 1 AND c1 <= 3/, qw(empno salary enroll_date) ],
			[ qr/count\(\*\) OVER \(PARTITION BY depname ORDER BY enroll_date RANGE/, 'empno' ],
			[ qr/\bover\b/i, qw(first_value last_value nth_value nth_2 lead lag) ] ] });

# The library with the suite's C functions.
my $out = $PostgreSQL::Test::Utils::tmp_check;

sub build_library
{
	my ($node) = @_;
	my @cc = split(' ', config_of($node, '--cc'));

	mkdir "$out/dl";
	system_or_bail(@cc, '-O2', '-fPIC', '-shared', '-w', '-fno-strict-aliasing', '-fwrapv',
		'-I' . config_of($node, '--includedir-server'), "-I$source",
		'-o', "$out/dl/regress.so", "$source/regress.c");
}

# Runs the suite; the cluster, each test's result, and where the output is.
sub run_suite
{
	my ($name, @settings) = @_;
	my $node = regress_node($name, @settings);

	build_library($node) unless -e "$out/dl/regress.so";
	return ($node, run_pg_regress($node, $source, "$out/core_$name",
			"--dlpath=$out/dl", "--schedule=$source/parallel_schedule"), "$out/core_$name");
}

# ------------------------------------------------------------------ the runs

my $ntests = 0;
$ntests += split(' ', $_) foreach slurp_file("$source/parallel_schedule") =~ /^test:(.*)$/mg;

my ($core_node, $core_result, $core_folder) = run_suite('core');
is(scalar(keys %$core_result), $ntests, "without gpusort: all $ntests tests ran");
$core_node->stop;

# Checks all btrees that the suite has left by amcheck; returns their number.
sub check_btrees
{
	my ($node, $name) = @_;
	my ($rc, $checked, $errors) = $node->psql('regression', q{
		CREATE EXTENSION amcheck;
		SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam,
			LATERAL bt_index_parent_check(c.oid, true, true)
		WHERE a.amname = 'btree' AND c.relkind = 'i' AND c.relpersistence <> 't' AND i.indisready AND i.indisvalid
	});

	is($rc, 0, "$name: amcheck finds the btrees as they should be") or diag($errors);
	cmp_ok($checked, '>', 300, "$name: it has checked $checked");
	return $checked;
}

# Runs the suite with every possible Sort replaced, and compares.
sub check_suite
{
	my ($name, @settings) = @_;
	my ($node, $result, $folder) = run_suite($name,
		"shared_preload_libraries = 'gpusort'", 'gpusort.force = on', 'gpusort.verify = on', @settings);

	is(scalar(keys %$result), $ntests, "$name: all $ntests tests ran");
	like($node->safe_psql('regression',
			'EXPLAIN (COSTS OFF) SELECT * FROM tenk1 ORDER BY two'),
		qr/Custom Scan \(GpuSort\)/, "$name: the sessions of the suite had GpuSorts");
	ok(!$node->log_contains('terminated by signal|TRAP: |PANIC: '), "$name: no process has crashed");
	like($node->safe_psql('regression',
			'EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM tenk1 ORDER BY two'),
		qr/Engine: cuda/, "$name: they were sorted by gpusortd") if $name eq 'service';
	my ($rc, $out, $notices) = $node->psql('regression',
		'SET gpusort.debug_plan = on; REINDEX INDEX tenk1_unique1');
	like($notices, qr/building index "tenk1_unique1" with gpusort/, "$name: the suite's indexes were built by gpusort");
	my $nindexes = check_btrees($node, $name);

	$node->stop;
	my @differing = check_outputs($name, $core_folder, $folder, \%ties, sort keys %$result);

	diag("core regression suite, $name: $ntests tests; $nindexes btrees checked; ", scalar(@differing),
		' differ in the order of ties (', join(', ', @differing), ')');
}

check_suite('cpu', 'gpusort.engine = cpu');
check_suite('service', 'gpusort.engine = cuda', 'gpusort.device = host', 'gpusort.device_min_rows = 0');

my @failing = sort grep { $core_result->{$_} ne 'ok' } keys %$core_result;
diag('without gpusort, too, ', scalar(@failing), ' differ from what these sources expect',
	@failing ? ' (' . join(', ', @failing) . ')' : '');

done_testing();
