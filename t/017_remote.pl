# Sorts of tables that are spread over three servers by postgres_fdw and partitions.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $nrows = 30000;
my @settings = ('gpusort.min_rows = 1000', 'gpusort.device = host');

my $main = gpusort_node('main', @settings);
plan skip_all => 'this server has no postgres_fdw'
  unless $main->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'");
my @shards = map { gpusort_node("shard$_", @settings, "session_preload_libraries = 'gpusort,auto_explain'",
		'auto_explain.log_min_duration = 0', 'auto_explain.log_verbose = on') } (0, 1);

$main->safe_psql('postgres', q{
	CREATE EXTENSION postgres_fdw;
	CREATE TABLE t (id int, k bigint, word text, name text COLLATE "C") PARTITION BY HASH (id);
	CREATE TABLE everything (LIKE t);
	CREATE TABLE t2 PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER 2);
});
foreach my $i (0, 1)
{
	my ($host, $port) = ($shards[$i]->host, $shards[$i]->port);

	$shards[$i]->safe_psql('postgres', 'CREATE TABLE t (id int, k bigint, word text, name text COLLATE "C")');
	$main->safe_psql('postgres', qq{
		CREATE SERVER shard$i FOREIGN DATA WRAPPER postgres_fdw
			OPTIONS (host '$host', port '$port', dbname 'postgres', async_capable 'true', fetch_size '5000');
		CREATE USER MAPPING FOR CURRENT_USER SERVER shard$i;
		CREATE FOREIGN TABLE t$i PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER $i)
			SERVER shard$i OPTIONS (table_name 't', use_remote_estimate 'true');
	});
}
$main->safe_psql('postgres', qq{
	INSERT INTO everything
		SELECT i, i * 7919::bigint % 10007, CASE WHEN i % 13 > 0 THEN md5((i % 999)::text) END, 'n' || i % 5000
		FROM generate_series(1, $nrows) i;
	INSERT INTO t SELECT * FROM everything;
	ANALYZE t2, everything;
});
$_->safe_psql('postgres', 'ANALYZE t') foreach @shards;

# The rows of t in this order, by the servers together, and those of the local table by
# PostgreSQL's sort.  Keys that end with the id have one order only.
sub is_sorted
{
	my ($keys, $settings, $what) = @_;
	my $query = "SELECT md5(string_agg(s::text, ' ')) FROM (SELECT * FROM %s ORDER BY $keys OFFSET 0) s";

	is($main->safe_psql('postgres', "$settings; " . sprintf($query, 't')),
		$main->safe_psql('postgres', 'SET gpusort.enabled = off; ' . sprintf($query, 'everything')), "$what: the order");
}

# How often the servers sorted with gpusort since last asked.
my @seen = (0, 0);

sub sorts_of_shards
{
	my @counts = map { count_in_log($_, qr/Custom Scan \(GpuSort\)/) } @shards;
	my @new = map { $counts[$_] - $seen[$_] } (0, 1);

	@seen = @counts;
	return "@new";
}

# ------------------------------------------------------------ sorted by the shards

my $merge = "SELECT * FROM t ORDER BY k, id";
my $plan = plan_of($main, $merge);

like($plan, qr/Merge Append.*Foreign Scan.*Foreign Scan.*GpuSort/s, 'shards sort, and so does this server');
sorts_of_shards();
is_sorted('k, id', 'SET gpusort.enabled = on', 'a merge');
like(sorts_of_shards(), qr/^[1-9]\d* [1-9]/, 'shards sort with gpusort');
is_sorted('name DESC, id', 'SET gpusort.enabled = on', 'a merge by text');
is_sorted('word NULLS FIRST, id', 'SET gpusort.enabled = on', 'a merge by text of the default collation, with NULLs');
like(sorts_of_shards(), qr/^[1-9]\d* [1-9]/, 'shards sort texts with gpusort');

my $top = 'SELECT id FROM t ORDER BY k DESC, id LIMIT 20000';
sorts_of_shards();
is($main->safe_psql('postgres', $top),
	$main->safe_psql('postgres', 'SET gpusort.enabled = off; ' . $top =~ s/FROM t/FROM everything/r), 'a LIMIT');
like(sorts_of_shards(), qr/^[1-9]\d* [1-9]/, 'shards sort for a LIMIT with gpusort');

# ------------------------------------------------- sorted here, from all shards at once

my $async = 'SET enable_partitionwise_aggregate = off; SET enable_incremental_sort = off';
$plan = plan_of($main, 'SELECT * FROM t ORDER BY k + random() * 0, id', "$async;");
like($plan, qr/GpuSort.*Append.*Async Foreign Scan.*Async Foreign Scan/s, 'rows come from all shards at once');
sorts_of_shards();
is_sorted('k + (random() * 0)::bigint, id', $async, 'a sort above Append');
is(sorts_of_shards(), '0 0', 'shards do not sort then');

# ------------------------------------------------------------------ a shard ends

$shards[1]->stop('immediate');
my ($code, undef, $stderr) = $main->psql('postgres', $merge);
isnt($code, 0, 'without a shard the query fails');
like($stderr, qr/could not connect to server "shard1"/, 'and names the server');
$shards[1]->start;
is_sorted('k, id', 'SET gpusort.enabled = on', 'with the shard again');

done_testing();
