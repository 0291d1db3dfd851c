package RangesTest;

# For the tests of indexes whose processes write a range each.

use strict;
use warnings;

use Exporter 'import';

use GpuSortTest;
use Test::More;

our @EXPORT = qw(create_ranged written_by is_ranged fill errors_of);

# SQL functions that fill a table, and that compare an index of it with PostgreSQL's.
sub create_ranged
{
	my ($node) = @_;

	create_compared($node);
	create_index_input($node);
	$node->safe_psql('postgres', <<'SQL');
-- The rows in the order of an index, which must be the only one; or of the table, if the order is by a constant.
CREATE FUNCTION in_order(columns text, condition text) RETURNS text LANGUAGE plpgsql
SET gpusort.enabled = off SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off
SET enable_indexonlyscan = off SET max_parallel_workers_per_gather = 0 SET synchronize_seqscans = off AS $$
DECLARE
	query text := format('SELECT ctid FROM input WHERE %s ORDER BY %s', condition, columns);
	step text;
	result text;
BEGIN
	FOR step IN EXECUTE 'EXPLAIN ' || query LOOP
		IF step LIKE '%Sort%' THEN
			RETURN 'a plan with ' || step;
		END IF;
	END LOOP;
	EXECUTE format('SELECT count(*) || %L || md5(string_agg(ctid::text, %L)) FROM (%s) x', ' ', ' ', query) INTO result;
	RETURN result;
END $$;
-- Compares gpusort's index, by several writers, with PostgreSQL's.
CREATE FUNCTION ranged(columns text, rest text, kind text DEFAULT '') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	condition text := coalesce(substring(rest FROM 'WHERE (.*)'), 'true');
	expected text;
	expected_pages bigint;
	ours text;
	pages bigint;
BEGIN
	ALTER TABLE input SET (parallel_workers = 3);
	SET LOCAL gpusort.enable_create_index = off;
	EXECUTE format('CREATE %s INDEX tested ON input (%s) %s', kind, columns, rest);
	expected := in_order(columns, condition);
	expected_pages := pg_relation_size('tested') / current_setting('block_size')::int;
	DROP INDEX tested;
	SET LOCAL gpusort.enable_create_index = on;
	SET LOCAL log_min_messages = debug1;
	EXECUTE format('CREATE %s INDEX tested ON input (%s) %s', kind, columns, rest);
	SET LOCAL log_min_messages = warning;
	PERFORM bt_index_parent_check('tested', true, true);
	ours := in_order(columns, condition);
	pages := pg_relation_size('tested') / current_setting('block_size')::int;
	DROP INDEX tested;
	IF ours <> expected THEN
		RETURN format('%s instead of %s', ours, expected);
	END IF;
	RETURN CASE WHEN abs(pages - expected_pages) <= expected_pages * 0.01 + 4 THEN 'same' ELSE format('%s pages instead of %s', pages, expected_pages) END;
END $$;
SQL
	return;
}

# How often this many processes have written an index.
sub written_by
{
	my ($node, $nwriters) = @_;

	return count_in_log($node, qr/$nwriters processes write index/);
}

# The writers are checked, too.
sub is_ranged
{
	my ($node, $columns, $what, %options) = @_;
	my $before = written_by($node, 4);
	my ($rest, $kind) = ($options{rest} // '', $options{kind} // '');
	my $result = $node->safe_psql('postgres', ($options{settings} // '') . "SELECT ranged(\$x\$$columns\$x\$, \$x\$$rest\$x\$, '$kind')");

	is($result, 'same', "$columns $rest $what");
	is(written_by($node, 4) - $before, $options{alone} ? 0 : 1, $options{alone} ? 'by the leader' : 'by all');
	return;
}

sub fill
{
	my ($node, $nrows, $nvalues, $null_percent) = @_;

	$node->safe_psql('postgres', "SELECT fill($nrows, $nvalues, $null_percent); VACUUM input");
	return;
}

# The error of an index, by gpusort and by PostgreSQL.
sub errors_of
{
	my ($node, $index) = @_;
	my @errors;

	foreach my $by ('on', 'off')
	{
		my (undef, undef, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET gpusort.enable_create_index = $by; CREATE $index");

		$error =~ s/^LOCATION.*//mg;
		$error =~ s/^psql:<stdin>:\d+: //mg;
		$error =~ s/^CONTEXT:  parallel worker\n//mg;
		push @errors, $error;
	}
	return @errors;
}

1;
