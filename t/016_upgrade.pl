# pg_upgrade from an older version, with the library loaded on both sides.
#
# Set OLD_INSTALL to the installation of the older version, which has gpusort, too;
# scripts/test upgrade does.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old_install = $ENV{OLD_INSTALL};

plan skip_all => 'OLD_INSTALL does not name an older PostgreSQL with gpusort'
  unless $old_install && -x "$old_install/bin/postgres";

my @init = ('--locale=C', '--encoding=UTF8');
my @settings = ("shared_preload_libraries = 'gpusort'", 'autovacuum = off', 'jit = off',
	'max_parallel_workers_per_gather = 0', 'gpusort.verify = on', 'gpusort.device = host');
my $digest = q{
	SELECT md5(string_agg(s.id::text, ' ')) FROM (
		SELECT id, row_number() OVER (ORDER BY word DESC NULLS LAST, id) AS n FROM t) s
	WHERE s.n % 7 = 0};

# What must hold on both sides.
sub check_cluster
{
	my ($node, $where) = @_;

	like(plan_of($node, 'SELECT * FROM t ORDER BY word DESC NULLS LAST, id'), qr/GpuSort/, "$where: ORDER BY");
	is($node->safe_psql('postgres', $digest),
		$node->safe_psql('postgres', "SET gpusort.enabled = off; $digest"), "$where: the order");
	is($node->safe_psql('postgres', "SELECT setting FROM pg_settings WHERE name = 'gpusort.min_rows'"),
		'777', "$where: a setting of the database");
	is($node->safe_psql('postgres', 'SELECT state IS NOT NULL FROM service'), 't', "$where: a view of a function");
	$node->safe_psql('postgres', "SELECT bt_index_parent_check(c.oid, true) FROM pg_class c JOIN pg_index i ON indexrelid = c.oid WHERE indrelid = 't'::regclass");
	pass("$where: the indexes");
}

my $old = PostgreSQL::Test::Cluster->new('old', install_path => $old_install);
$old->init(extra => \@init);
$old->append_conf('postgresql.conf', join("\n", @settings, ''));
$old->start;
$old->safe_psql('postgres', <<'SQL');
CREATE EXTENSION gpusort;
CREATE EXTENSION amcheck;
ALTER DATABASE postgres SET gpusort.min_rows = 777;
CREATE VIEW service AS SELECT * FROM gpusort_service_status();
CREATE TABLE t AS
	SELECT i AS id, CASE WHEN i % 11 > 0 THEN md5((i % 5003)::text) END AS word, (i * 7919 % 20011)::numeric / 16 AS number
	FROM generate_series(1, 20000) i;
CREATE INDEX ON t (word, number);
CREATE UNIQUE INDEX ON t (number DESC, id) INCLUDE (word);
ANALYZE t;
SQL
check_cluster($old, 'before');
my $digest_before = $old->safe_psql('postgres', $digest);
$old->stop;

my $new = PostgreSQL::Test::Cluster->new('new');
my ($help) = run_command([ 'initdb', '--help' ]);
$new->init(extra => [ @init, $help =~ /(--no-data-checksums)/ ]);
$new->append_conf('postgresql.conf', join("\n", @settings, ''));

# it leaves files in the current folder
chdir PostgreSQL::Test::Utils::tempdir();
command_ok([ 'pg_upgrade', '--no-sync',
		'--old-datadir', $old->data_dir, '--new-datadir', $new->data_dir,
		'--old-bindir', "$old_install/bin", '--new-bindir', $new->config_data('--bindir'),
		'--socketdir', $new->host, '--old-port', $old->port, '--new-port', $new->port ],
	'pg_upgrade');
$new->start;
$new->safe_psql('postgres', 'ANALYZE');
check_cluster($new, 'after');
is($new->safe_psql('postgres', $digest), $digest_before, 'the same order as before');
$new->safe_psql('postgres', 'REINDEX TABLE t');
check_cluster($new, 'after REINDEX');
$new->stop;

done_testing();
