# A value in TOAST that was lost: it is missed only where a sort has to look at it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('later');

$node->init;
$node->append_conf('postgresql.conf', join("\n", "session_preload_libraries = 'gpusort'", 'gpusort.min_rows = 1000', 'autovacuum = off', ''));
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE TABLE event (id int, at timestamptz, payload text COLLATE "C", doc jsonb);
ALTER TABLE event ALTER payload SET STORAGE EXTERNAL;
INSERT INTO event SELECT g, timestamptz '2026-01-01' + hashint4(g) * interval '1 second', repeat(md5(g::text), 200) FROM generate_series(1, 3000) g;
ANALYZE event;
CHECKPOINT;
SQL
my $file = $node->data_dir . '/' . $node->safe_psql('postgres', q(SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE oid = 'event'::regclass));

# the first page of its table: an empty one
$node->stop;
open my $toast, '+<:raw', $file or die "could not open $file: $!";
print $toast "\0" x 8192;
close $toast or die $!;
$node->start;

my @answered = (
	'SELECT count(*) FROM (SELECT id, at FROM event ORDER BY at, payload OFFSET 1) s',
	'SELECT string_agg(id::text, \' \') FROM (SELECT id FROM event ORDER BY at, payload OFFSET 0) s',
	'SELECT id FROM event ORDER BY at DESC, payload LIMIT 3',
	'SELECT count(*) FROM (SELECT DISTINCT ON (at) id FROM event ORDER BY at, payload OFFSET 1) s',
	'SELECT count(*) FROM (SELECT id FROM event ORDER BY at, doc, payload OFFSET 1) s',
	'SET work_mem = \'64kB\'; SELECT count(*) FROM (SELECT id, at FROM event ORDER BY at, payload OFFSET 1) s');

for my $query (@answered)
{
	my $expected = $node->safe_psql('postgres', "SET gpusort.enabled = off; $query");

	is($node->safe_psql('postgres', $query), $expected, $query);
}

for my $enabled ('off', 'on')
{
	my ($status, undef, $error) = $node->psql('postgres', "SET gpusort.enabled = $enabled; SELECT id FROM event ORDER BY payload OFFSET 1", on_error_stop => 1);

	isnt($status, 0, "the value is needed, gpusort.enabled = $enabled");
	like($error, qr/missing chunk number 0|unexpected chunk/, "what is missing, gpusort.enabled = $enabled");
}

# CREATE INDEX stores the value
for my $enabled ('off', 'on')
{
	my ($status) = $node->psql('postgres', "SET gpusort.enabled = $enabled; CREATE INDEX ON event (at, md5(payload))");

	isnt($status, 0, "an index on the value, gpusort.enabled = $enabled");
}
$node->safe_psql('postgres', 'CREATE INDEX ON event (at, id)');
$node->stop;

done_testing();
