# What the TAP tests of gpusort share.

package GpuSortTest;

use strict;
use warnings;

use Exporter 'import';
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
  gpusort_node plan_of contexts_of memory_kb session ask ask_error
);

# A running cluster with the library preloaded in every session; the other
# settings make times and figures repeatable.
sub gpusort_node
{
	my ($name, @settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
	$node->append_conf('postgresql.conf', join("\n",
		"session_preload_libraries = 'gpusort'",
		"autovacuum = off",
		"jit = off",
		"max_parallel_workers_per_gather = 0",
		@settings, ''));
	$node->start;
	return $node;
}

# The plan of a query, in text; $before are statements for the same session.
sub plan_of
{
	my ($node, $query, $before) = @_;

	return $node->safe_psql('postgres', ($before // '') . "EXPLAIN (COSTS OFF) $query");
}

# A figure of /proc/PID/status, in kB.
sub memory_kb
{
	my ($pid, $field) = @_;
	my $status = PostgreSQL::Test::Utils::slurp_file("/proc/$pid/status");

	$status =~ /^$field:\s+(\d+) kB/m or die "no $field in /proc/$pid/status";
	return $1;
}

# A session that goes on after errors, and its process.
sub session
{
	my ($node, $settings) = @_;
	my $psql = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $psql->query_safe('SELECT pg_backend_pid()');

	$psql->query_safe($settings) if $settings;
	return ($psql, $pid);
}

# Runs a statement that must succeed; its output.
sub ask
{
	my ($psql, $query) = @_;

	$psql->{stderr} = '';
	return $psql->query_safe($query);
}

# Runs a statement that may fail; what it wrote to stderr.
sub ask_error
{
	my ($psql, $query) = @_;
	my $error;

	$psql->{stderr} = '';
	$psql->query($query);
	$error = $psql->{stderr};
	$psql->{stderr} = '';
	return $error;
}

# How many memory contexts of GpuSorts the session has.
sub contexts_of
{
	my ($psql) = @_;

	return ask($psql, "SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'GpuSort'");
}

1;
