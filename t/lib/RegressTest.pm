# Shared by the tests that run PostgreSQL's own regression tests: pg_regress, and a
# comparison of the output with and without gpusort.
#
# GpuSort is stable and Sort is not, so rows with equal keys may be in another order.
# Each test file names the tests that show this, and even in these a difference is
# accepted only if
#
#	- it is in the rows of a result, not in a plan, a message, a header or the
#	  number of rows; plans are compared with each GpuSort as a Sort;
#	- both runs return the same rows, in another order, except for columns of
#	  statements that select a value by the order of ties;
#	- one column, the sort key or a part of it, reads the same from top to
#	  bottom in both, unless the statement does not show its sort key.
#
# A test is named with "picked": statements whose rows, in the columns named,
# depend on which of several tied rows comes first; "unseen": statements that do
# not show what they sort by; "plans": statements for which a GpuSort makes another
# plan the cheapest, or that show how it sorted (plans by ranges are others anyway);
# "contexts": statements that show memory contexts of a tuplesort, of which a GpuSort
# has none.

package RegressTest;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(config_of regress_node run_pg_regress wrong_in check_outputs);

sub config_of
{
	my ($node, $what) = @_;

	chomp(my $value = $node->config_data($what));
	return $value;
}

# A running cluster with the settings of the regression tests.
sub regress_node
{
	my ($name, @settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
	$node->append_conf('postgresql.conf', join("\n",
		'max_connections = 60', 'max_prepared_transactions = 10',
		'log_statement = none', 'log_min_messages = warning', @settings, ''));
	$node->start;
	return $node;
}

# Runs pg_regress in the folder of its tests; returns each test's result, ok or
# FAILED.
sub run_pg_regress
{
	my ($node, $source, $folder, @arguments) = @_;
	my $pg_regress = $ENV{PG_REGRESS};
	my $output;
	my %result;

	mkdir $folder;
	if (!defined $pg_regress || !-x $pg_regress)
	{
		($pg_regress = config_of($node, '--pgxs')) =~ s{/src/makefiles/pgxs\.mk$}{/src/test/regress/pg_regress};
	}
	IPC::Run::run([
			$pg_regress, "--inputdir=$source", "--outputdir=$folder",
			'--bindir=' . config_of($node, '--bindir'),
			'--host=' . $node->host, '--port=' . $node->port, @arguments ],
		'<', \'', '>', \$output, '2>&1', init => sub { chdir $source or die "chdir $source: $!" });
	while ($output =~ /^(?:test| ) +(\w[\w.]*) +\.\.\. (ok|FAILED)/mg)
	{
		$result{$1} = $2;
	}
	# in TAP from PostgreSQL 16 on
	while ($output =~ /^(ok|not ok) \d+ +[-+] (\w[\w.]*) /mg)
	{
		$result{$2} = $1 eq 'ok' ? 'ok' : 'FAILED';
	}
	return \%result;
}

# What EXPLAIN prints of a GpuSort and not of a Sort.
my @own_properties = ('Custom Plan Provider', 'Engine', 'Fallback Reason', 'Device Not Used', 'Device', 'Packed Key Bits', 'Keys Longer Than Prefix', 'Rows Tied After First Sort',
	'Sorted Rows', 'Batches', 'Dictionary Entries', '(?:Collation|Key) Verification (?:Comparisons|Retries|Time)', 'Rows Removed by Limit',
	'Runs', 'Device Runs', 'Intermediate Merges', 'Radix Passes', 'Device Peak Memory Usage', 'Data Sent to Device', 'Data Received from Device',
	'Transfer Time to Device', 'Device Sort Time', 'Output Wait Time', 'Worker Wait Time', 'Rows Sent to Shared Sort');
my $own_property = qr/^\s*"?(?:@{[ join '|', @own_properties ]})"?: /;
my $method = qr/(?:top-N )?(?:insertion sort|presorted|reversed|radix sort|merge sort|quicksort|heapsort)/;

# The rows of a result of one column, such as a plan, without its width, and with each
# GpuSort as a Sort or, if it has a presorted key, as an Incremental Sort.
sub as_sort
{
	my @rows = grep { !/$own_property/ } map { s/\s*\+?$//r } @_;
	my $is_json = grep { /"Node Type": / } @rows;
	my $is_ours;
	my $ours;

	foreach (@rows)
	{
		undef $ours if /->|"Node Type"/;
		$ours = \$_ if s/^(\s*(?:->  )?)(?:Parallel )?Custom Scan \(GpuSort\)/$1Sort/;
		$$ours =~ s/Sort/Incremental Sort/ if $ours && /Presorted Key/;
		s/(Sort Method"?: "?)$method/$1quicksort/;
		next if !$is_json;
		s/,$//;    # which the last property of a node does not have
		$is_ours = s/("Node Type": )"Custom Scan"/$1"Sort"/ if /"Node Type": /;
		$ours = \$_ if $is_ours && /"Node Type": /;
		s/("Parallel Aware": )true/$1false/ if $is_ours;
	}
	return \@rows;
}

# A test's output as a list of lines, and results with their columns and rows.
sub parse
{
	my ($file) = @_;
	my @lines = split(/\n/, slurp_file($file), -1);
	my @parts;

	for (my $i = 0; $i < @lines; $i++)
	{
		my $end = $i + 2;

		if ($i + 1 < @lines && $lines[ $i + 1 ] =~ /^---+(\+-+)*$/ && $lines[$i] =~ /\S/ && $lines[$i] !~ /^--/)
		{
			$end++ while $end < @lines && $lines[$end] !~ /^\(\d+ rows?\)$/;
		}
		if ($end < @lines && $lines[$end] =~ /^\(\d+ rows?\)$/ && $lines[ $i + 1 ] =~ /^---+(\+-+)*$/)
		{
			my @columns = map { s/^ +| +$//gr } split(/\|/, $lines[$i]);
			my @rows = @lines[ $i + 2 .. $end - 1 ];

			push @parts, {
				header => @columns == 1 ? $columns[0] : $lines[$i],
				columns => \@columns,
				rows => @columns == 1 ? as_sort(@rows) : \@rows };
			$i = $end;
		}
		else
		{
			push @parts, { line => $lines[$i] };
		}
	}
	return @parts;
}

# A test's output as text, with each GpuSort of a plan as a Sort.
sub as_text
{
	return join("\n", map { $_->{line} // ($_->{header}, @{ $_->{rows} }) } parse($_[0]));
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

# The differences between two outputs of a test that its entry in %ties does not
# allow, or ''.
sub wrong_in
{
	my ($core_file, $file, $spec) = @_;
	my @core = parse($core_file);
	my @gpu = parse($file);
	my $statement = '';
	my $after_result = 0;

	return 'another number of lines or results' if @core != @gpu;
	foreach my $n (0 .. $#core)
	{
		my ($a, $b) = ($core[$n], $gpu[$n]);

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
		next if $a->{header} =~ /QUERY PLAN|explain_filter/ &&
		  ((grep { $statement =~ $_ } @{ $spec->{plans} // [] }) || grep { /Range Key:/ } @{ $b->{rows} });
		next if !@{ $b->{rows} } && grep { $statement =~ $_ } @{ $spec->{contexts} // [] };
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

# One test for each pair of outputs of two runs of pg_regress; returns the names of
# those that differ.
sub check_outputs
{
	my ($name, $core_folder, $folder, $ties, @tests) = @_;
	my @differing;

	foreach my $test (@tests)
	{
		my ($core, $gpu) = map { "$_/results/$test.out" } $core_folder, $folder;
		my $same = as_text($core) eq as_text($gpu);
		my $wrong = $same ? '' : wrong_in($core, $gpu, $ties->{$test} // {});

		push @differing, $test unless $same;
		if (!$same && !$ties->{$test})
		{
			fail("$name: $test prints something else" . ($wrong ? ": $wrong" : ' (ties)'));
		}
		else
		{
			is($wrong, '', "$name: $test prints the same" . ($same ? '' : ' but for ties'));
		}
	}
	return @differing;
}

1;
