# pg_repack: gpusort sorts the rows of the copy, and the entries of its indexes, and changes that other sessions
# make meanwhile are in the result.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = service_node('repack', 'gpusort.min_rows = 1000', 'gpusort.log_min_duration = 0');

plan skip_all => 'this server has no pg_repack; Debian has it in postgresql-N-repack'
  unless has_extension($node, 'pg_repack');
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort; CREATE EXTENSION amcheck; CREATE EXTENSION pg_repack');
wait_for_service($node, 'running') or die 'gpusortd does not run';
create_watched($node);
$node->safe_psql('postgres', q{
	CREATE TABLE orders (id int, gone text, word text, n numeric, long text);
	INSERT INTO orders SELECT i, 'gone', md5(i::text), i % 100 * 1.1, repeat(md5(i::text), i % 100) FROM generate_series(1, 10000) i;
	ALTER TABLE orders DROP COLUMN gone, ADD PRIMARY KEY (id);
	CREATE INDEX orders_word ON orders (word);
	CREATE INDEX orders_part ON orders (n) WHERE id > 100;
	CREATE INDEX orders_by ON orders ((id % 7), word);
	ALTER TABLE orders CLUSTER ON orders_by;
	ALTER TABLE watched ADD PRIMARY KEY (id), ADD COLUMN changed bool;
	CREATE INDEX watched_by ON watched (slow(id));
	ALTER TABLE watched CLUSTER ON watched_by;
});

# What the log has from now on.
my $log_offset;

sub start_log
{
	$log_offset = -s $node->logfile;
	return;
}

# The sorts and index builds that it has, each with its engine.
sub logged
{
	my $log = slurp_file($node->logfile, $log_offset);
	my @lines;

	push @lines, "$1: $2" while $log =~ /LOG:  gpusort ((?:sorted|built) .*) in [0-9.]+ ms\n.*DETAIL:  Engine: (\w+)/g;
	s/\bindex_\d+/INDEX/ foreach @lines;
	return join("\n", sort @lines);
}

# The rows of a table, by their ids or in the order in which they are stored.
sub rows_of
{
	my ($table, $order) = @_;

	return $node->safe_psql('postgres', 'SET gpusort.enabled = off; SET enable_indexscan = off;'
		  . "SELECT count(*), md5(string_agg(t::text, chr(10) ORDER BY $order)) FROM $table t");
}

# pg_repack of a table, with a setting of gpusort.
sub repack
{
	my ($setting, $what, @options) = @_;
	local $ENV{PGOPTIONS} = "-c gpusort.$setting";

	start_log();
	$node->command_ok([ 'pg_repack', '-d', 'postgres', '-t', 'orders', @options ], $what);
	return;
}

# The number of indexes of a table that have an entry for each row, in their order.
sub count_indexes
{
	my ($table) = @_;

	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_index, LATERAL bt_index_check(indexrelid, true) WHERE indrelid = '$table'::regclass AND indisvalid");
}

my @index = ();
my @columns = ('-o', 'n DESC, id', '-j', '2');

repack('enabled=off', 'PostgreSQL: in the order of an index', @index);
is(logged(), '', 'without gpusort');
my $by_index = rows_of('orders', 'ctid');
repack('enabled=off', 'PostgreSQL: in the order of columns', @columns);
my $by_columns = rows_of('orders', 'ctid');
isnt($by_columns, $by_index, 'which is another order');

foreach my $engine ('cpu', 'cuda')
{
	my @builds = map { "built index repack.INDEX of $_ rows: $engine" } 10000, 10000, 10000, 9900;

	repack("engine=$engine", "$engine: in the order of an index", @index);
	is(logged(), join("\n", @builds, "sorted 10000 rows by integer, word: $engine"), "$engine: gpusort sorts the copy and builds the indexes");
	is(rows_of('orders', 'ctid'), $by_index, "$engine: the rows, where PostgreSQL stores them");
	is(count_indexes('orders'), 4, "$engine: the indexes");

	repack("engine=$engine", "$engine: in the order of columns, two index builds at a time", @columns);
	is(logged(), join("\n", @builds, "sorted 10000 rows by n DESC, id: $engine"), "$engine: gpusort sorts");
	is(rows_of('orders', 'ctid'), $by_columns, "$engine: the rows");
	is(count_indexes('orders'), 4, "$engine: the indexes");

	repack("engine=$engine", "$engine: indexes alone", '-x');
	is(logged(), join("\n", map { s/repack/public/r } @builds), "$engine: gpusort builds them");
	is(count_indexes('orders'), 4, "$engine: the indexes");
}

# --------------------------------------------------- changes while the copy is sorted

foreach my $engine ('cpu', 'cuda')
{
	local $ENV{PGOPTIONS} = "-c gpusort.engine=$engine -c enable_indexscan=off";
	my ($stdout, $stderr) = ('', '');
	my ($session) = session($node);

	ask($session, 'SELECT pg_advisory_lock(1)');
	start_log();
	my $repack = IPC::Run::start([ 'pg_repack', '-d', 'postgres', '-h', $node->host, '-p', $node->port, '-t', 'watched' ], \'', \$stdout, \$stderr);
	ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE 'INSERT INTO repack.%'}),
		"$engine: the copy waits while it reads");
	ask($session, 'INSERT INTO watched SELECT i FROM generate_series(10001, 10500) i; DELETE FROM watched WHERE id % 10 = 0; UPDATE watched SET id = -id, changed = true WHERE id % 10 = 1');
	my $changed = rows_of('watched', 'id');
	ask($session, 'SELECT pg_advisory_unlock(1)');
	ok($repack->finish, "$engine: it ends") or diag($stderr);
	like(logged(), qr/^sorted \d+ rows by integer: $engine$/m, "$engine: gpusort sorted");
	is(rows_of('watched', 'id'), $changed, "$engine: with all changes");
	is(count_indexes('watched'), 2, "$engine: in the indexes, too");
	ask($session, 'TRUNCATE watched; INSERT INTO watched SELECT generate_series(1, 10000)');
	$session->quit;
}

done_testing();
