# PostgreSQL's own regression suite, with every possible Sort replaced.
#
# Set PG_REGRESS_DIR to src/test/regress of the sources of the server's major
# version; nothing is written there.  The suite runs three times: on a stock
# server, and on two with gpusort.force, where EXPLAIN prints a GpuSort as a
# Sort: one sorts by the CPU engine, the other by gpusortd, from the first row.
# What they print must be the same.  (Comparing with what the sources expect
# would blame gpusort for the difference between the sources' minor version
# and the server's; a test that fails without gpusort, too, says nothing.)
#
# GpuSort is stable and stock sorts are not, so rows with equal keys may come in
# another order.  The tests where that shows are named below, and in them too a
# difference is accepted only if
#
#	- it is in the rows of a result, not in a plan, a message, a header or the
#	  number of rows;
#	- both runs give the same rows, in another order, but for the columns of
#	  such statements as pick a value by the order of ties;
#	- one column, the sort key or a part of it, reads the same from top to
#	  bottom in both, unless the statement does not show its sort key.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $source = $ENV{PG_REGRESS_DIR};

plan skip_all => 'PG_REGRESS_DIR does not name a src/test/regress folder of PostgreSQL 15'
  unless defined $source && $source ne '';
foreach ('parallel_schedule', 'sql', 'expected', 'regress.c')
{
	BAIL_OUT("PG_REGRESS_DIR = $source has no $_") unless -e "$source/$_";
}

# Named tests.  "picked": statements whose rows, in the columns named, depend
# on which of several tied rows comes first.  "unseen": statements that do not
# show what they sort by.  "lines": lines that only one of the two may have.
my %ties = (
	# ORDER BY f1 <-> '0,1': two points at an infinite distance
	create_index => { unseen => [qr/ORDER BY f1 <-> '0,1'/] },

	# ORDER BY distance, with many that are Infinity or NaN
	geometry => {},

	# ORDER BY coalesce(a,0)+coalesce(b,0), which several groups share
	groupingsets => { unseen => [qr/order by coalesce\(a,0\)\+coalesce\(b,0\)/] },

	# ORDER BY i, an inet that several rows have
	inet => {},

	# a merge full join by i, which is NULL in several rows
	join => {},

	# ORDER BY tid, where the merge has inserted another row with the same
	merge => {},

	# ORDER BY one column of CUBE's results; DISTINCT ON a set-returning function
	tsrf => { picked => [ [ qr/DISTINCT ON \(g\)/, qw(a b) ] ] },

	# window functions over ORDER BY with ties, and the tied rows themselves
	window => {
		picked => [
			[ qr/rn <= 1 AND c1 <= 3/, qw(empno salary enroll_date) ],
			[ qr/\bover\b/i, qw(first_value last_value nth_value nth_2 lead lag) ] ] },

	# EXPLAIN ANALYZE: a custom node has no figures of its workers
	select_parallel => { lines => qr/^ +Worker \d:  Sort Method: quicksort  Memory: xxx$/ });

# The server's pg_regress, and the library with the suite's C functions.
my $out = $PostgreSQL::Test::Utils::tmp_check;
my $pg_regress = $ENV{PG_REGRESS};

sub config_of
{
	my ($node, $what) = @_;

	chomp(my $value = $node->config_data($what));
	return $value;
}

sub build_library
{
	my ($node) = @_;
	my @cc = split(' ', config_of($node, '--cc'));

	mkdir "$out/dl";
	system_or_bail(@cc, '-O2', '-fPIC', '-shared', '-w', '-fno-strict-aliasing', '-fwrapv',
		'-I' . config_of($node, '--includedir-server'), "-I$source",
		'-o', "$out/dl/regress.so", "$source/regress.c");
}

# Runs the suite; gives each test's result, ok or FAILED, and where the output is.
sub run_suite
{
	my ($name, @settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	my $folder = "$out/core_$name";
	my $output;
	my %result;

	$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
	$node->append_conf('postgresql.conf', join("\n",
		'max_connections = 60', 'max_prepared_transactions = 10',
		'log_statement = none', 'log_min_messages = warning', @settings, ''));
	$node->start;
	build_library($node) unless -e "$out/dl/regress.so";
	mkdir $folder;
	if (!defined $pg_regress || !-x $pg_regress)
	{
		my $pgxs = config_of($node, '--pgxs');

		($pg_regress = $pgxs) =~ s{/src/makefiles/pgxs\.mk$}{/src/test/regress/pg_regress};
	}
	IPC::Run::run([
			$pg_regress, "--inputdir=$source", "--outputdir=$folder",
			'--bindir=' . config_of($node, '--bindir'), "--dlpath=$out/dl",
			"--schedule=$source/parallel_schedule",
			'--host=' . $node->host, '--port=' . $node->port ],
		'<', \'', '>', \$output, '2>&1');
	while ($output =~ /^(?:test| ) +(\w[\w.]*) +\.\.\. (ok|FAILED)/mg)
	{
		$result{$1} = $2;
	}
	return ($node, \%result, "$folder/results");
}

# A test's output as a list of lines, and results with their columns and rows.
sub parse
{
	my ($file, $spec) = @_;
	my @lines = split(/\n/, slurp_file($file), -1);
	my @parts;

	for (my $i = 0; $i < @lines; $i++)
	{
		my $end = $i + 2;

		if ($i + 1 < @lines && $lines[ $i + 1 ] =~ /^-+(\+-+)*$/ && $lines[$i] !~ /^--/)
		{
			$end++ while $end < @lines && $lines[$end] !~ /^\(\d+ rows?\)$/;
		}
		if ($end < @lines && $lines[$end] =~ /^\(\d+ rows?\)$/ && $lines[ $i + 1 ] =~ /^-+(\+-+)*$/)
		{
			my @rows = grep { !($spec->{lines} && $_ =~ $spec->{lines}) } @lines[ $i + 2 .. $end - 1 ];

			push @parts, {
				header => $lines[$i],
				columns => [ map { s/^ +| +$//gr } split(/\|/, $lines[$i]) ],
				rows => \@rows };
			$i = $end;
		}
		else
		{
			push @parts, { line => $lines[$i] };
		}
	}
	return @parts;
}

# A row without some columns.
sub without
{
	my ($row, $columns, $dropped) = @_;
	my @cells = split(/\|/, $row, -1);

	return join('|', map { $cells[$_] // '' }
		  grep { my $c = $columns->[$_]; !grep { $_ eq $c } @$dropped } 0 .. $#$columns);
}

# Is one column the same from top to bottom?
sub column_agrees
{
	my ($a, $b) = @_;

	foreach my $i (0 .. $#{ $a->{columns} })
	{
		my $same = 1;

		foreach my $r (0 .. $#{ $a->{rows} })
		{
			my ($x, $y) = map { (split(/\|/, $_->{rows}[$r], -1))[$i] // '' } $a, $b;

			$same = 0 if $x ne $y;
		}
		return 1 if $same;
	}
	return 0;
}

# What is wrong with the differences between two outputs of a test; '' if
# they are those that its entry in %ties allows.
sub wrong_in
{
	my ($stock_file, $file, $spec) = @_;
	my @stock = parse($stock_file, $spec);
	my @gpu = parse($file, $spec);
	my $statement = '';
	my $after_result = 0;

	return 'another number of lines or results' if @stock != @gpu;
	foreach my $n (0 .. $#stock)
	{
		my ($a, $b) = ($stock[$n], $gpu[$n]);

		if (defined $a->{line})
		{
			return "line \"$a->{line}\"" if !defined $b->{line} || $a->{line} ne $b->{line};
			$statement = '' if $after_result;
			$statement .= "$a->{line}\n";
			$after_result = 0;
			next;
		}
		$after_result = 1;
		return "no result after $statement" if !defined $b->{rows};
		return "columns after $statement" if $a->{header} ne $b->{header};
		return "number of rows after $statement" if @{ $a->{rows} } != @{ $b->{rows} };
		next if join("\n", @{ $a->{rows} }) eq join("\n", @{ $b->{rows} });
		return "plan after $statement" if $a->{header} =~ /QUERY PLAN/;

		my ($picked) = grep { $statement =~ $_->[0] && join("\n", sort @{ $a->{rows} }) ne
			  join("\n", sort @{ $b->{rows} }) } @{ $spec->{picked} // [] };
		my @dropped = $picked ? @$picked[ 1 .. $#$picked ] : ();
		my ($x, $y) = map { my $part = $_;
			join("\n", sort map { without($_, $part->{columns}, \@dropped) } @{ $part->{rows} }) } $a, $b;

		return "rows after $statement" if $x ne $y;
		return "order after $statement"
		  unless column_agrees($a, $b) || grep { $statement =~ $_ } @{ $spec->{unseen} // [] };
	}
	return '';
}

# ------------------------------------------------------------------ the runs

my $ntests = 0;
$ntests += split(' ', $_) foreach slurp_file("$source/parallel_schedule") =~ /^test:(.*)$/mg;

my ($stock_node, $stock_result, $stock_folder) = run_suite('stock');
is(scalar(keys %$stock_result), $ntests, "stock: all $ntests tests ran");
$stock_node->stop;

# Runs the suite with every possible Sort replaced, and compares.
sub check_suite
{
	my ($name, @settings) = @_;
	my ($node, $result, $folder) = run_suite($name,
		"shared_preload_libraries = 'gpusort'", 'gpusort.force = on', 'gpusort.verify = on',
		'gpusort.explain_as_sort = on', @settings);
	my @differing;

	is(scalar(keys %$result), $ntests, "$name: all $ntests tests ran");
	like($node->safe_psql('regression',
			'SET gpusort.explain_as_sort = off; EXPLAIN (COSTS OFF) SELECT * FROM tenk1 ORDER BY two'),
		qr/Custom Scan \(GpuSort\)/, "$name: the sessions of the suite had GpuSorts");
	ok(!$node->log_contains('terminated by signal|TRAP: |PANIC: '), "$name: no process has crashed");
	like($node->safe_psql('regression',
			'SET gpusort.explain_as_sort = off; EXPLAIN (ANALYZE, COSTS OFF) SELECT * FROM tenk1 ORDER BY two'),
		qr/Engine: cuda/, "$name: they were sorted by gpusortd") if $name eq 'service';
	$node->stop;

	foreach my $test (sort keys %$result)
	{
		my ($a, $b) = map { slurp_file("$_/$test.out") } $stock_folder, $folder;
		my $wrong = $a eq $b ? '' : wrong_in("$stock_folder/$test.out", "$folder/$test.out", $ties{$test} // {});

		push @differing, $test if $a ne $b;
		if ($a ne $b && !$ties{$test})
		{
			fail("$name: $test prints something else" . ($wrong ? ": $wrong" : ' (ties)'));
		}
		else
		{
			is($wrong, '', "$name: $test prints the same" . ($a eq $b ? '' : ' but for ties'));
		}
	}
	diag("core regression suite, $name: $ntests tests; ", scalar(@differing),
		' differ in the order of ties or in figures of workers (', join(', ', @differing), ')');
}

check_suite('cpu', 'gpusort.engine = cpu');
check_suite('service', 'gpusort.engine = cuda', 'gpusort.device = host', 'gpusort.device_min_rows = 0');

my @failing = sort grep { $stock_result->{$_} ne 'ok' } keys %$stock_result;
diag('without gpusort, too, ', scalar(@failing), ' differ from what these sources expect',
	@failing ? ' (' . join(', ', @failing) . ')' : '');

done_testing();
