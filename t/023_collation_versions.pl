# The statements and commands of docs/after-an-upgrade-of-the-operating-system.md, as they
# are there, in a database and with collations whose versions are said to have changed.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $page = slurp_file("$FindBin::RealBin/../docs/after-an-upgrade-of-the-operating-system.md");
my ($before, $after) = split /^## Rebuilding$/m, $page;
my @views = ($page =~ /^```sql\n(?=CREATE TEMP VIEW)(.*?)^```$/msg);

sub statements
{
	return join("\\echo ==\n", $_[0] =~ /^```sql\n(.*?)^```$/msg);
}

my $node = PostgreSQL::Test::Cluster->new('versions');

$node->init(extra => [ '--locale=en_US.UTF-8', '--encoding=UTF8' ]);
$node->append_conf('postgresql.conf', join("\n", "session_preload_libraries = 'gpusort'", 'gpusort.min_rows = 1000', 'gpusort.debug_plan = on', 'autovacuum = off', ''));
$node->start;
plan skip_all => 'this server has no amcheck' unless has_extension($node, 'amcheck');

# ------------------------------------------------------------------ the database

$node->safe_psql('postgres', 'CREATE DATABASE shop');
$node->safe_psql('shop', <<'SQL');
CREATE COLLATION changed_too (provider = libc, locale = 'en_US.UTF-8');
CREATE COLLATION not_changed (provider = libc, locale = 'en_US.UTF-8');
CREATE TYPE texts AS RANGE (subtype = text, collation = changed_too);
CREATE TYPE c_texts AS RANGE (subtype = text, collation = "C");
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN word AS text;
CREATE TABLE customers (id int, name text, short varchar(9), fixed char(9), word word, ident name, list text[], pair pair, data jsonb,
	texts texts, c_texts c_texts, of_c text COLLATE "C", same text COLLATE not_changed, other text COLLATE changed_too,
	lowered text GENERATED ALWAYS AS (lower(name)) STORED, CONSTRAINT in_order CHECK (name > ''), EXCLUDE USING btree (name WITH =));
INSERT INTO customers SELECT i, v, left(v, 9), left(v, 9), v, v, ARRAY[v], ROW(i, v)::pair, to_jsonb(v), texts(v, NULL), c_texts(v, NULL), v, v, v
	FROM generate_series(1, 2000) i, format('%s-%s', CASE WHEN i % 2 = 0 THEN 'Name' ELSE 'name' END, i) v;
CREATE UNIQUE INDEX yes_unique ON customers (name);
CREATE INDEX yes_varchar ON customers (short DESC);
CREATE INDEX yes_char ON customers (id, fixed);
CREATE INDEX yes_domain ON customers (word);
CREATE INDEX yes_array ON customers (list);
CREATE INDEX yes_gin ON customers USING gin (list);
CREATE INDEX yes_brin ON customers USING brin (name);
CREATE INDEX yes_composite ON customers (pair);
CREATE INDEX yes_jsonb ON customers (data);
CREATE INDEX yes_range ON customers (texts);
CREATE INDEX yes_gist ON customers USING gist (texts);
CREATE INDEX yes_other ON customers (other);
CREATE INDEX yes_expression ON customers ((lower(name) < 'm'));
CREATE INDEX yes_predicate ON customers (id) WHERE name < 'm';
CREATE INDEX no_id ON customers (id) INCLUDE (name);
CREATE INDEX no_c ON customers (name COLLATE "C", of_c);
CREATE INDEX no_pattern ON customers (name text_pattern_ops, short varchar_pattern_ops, fixed bpchar_pattern_ops);
CREATE INDEX no_hash ON customers USING hash (name);
CREATE INDEX no_name ON customers (ident);
CREATE INDEX no_c_range ON customers (c_texts);
CREATE INDEX no_same ON customers (same);
CREATE MATERIALIZED VIEW totals AS SELECT same, max(name) AS name FROM customers GROUP BY same;
CREATE INDEX yes_view ON totals (name);
CREATE TABLE events (id int, name text) PARTITION BY RANGE (name);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM (MINVALUE) TO ('m');
CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('m') TO (MAXVALUE);
INSERT INTO events SELECT i, CASE WHEN i % 2 = 0 THEN 'a' ELSE 'N' END || i FROM generate_series(1, 2000) i;
CREATE INDEX yes_parted ON events (name);
CREATE TABLE words AS SELECT id, name FROM customers;
CREATE INDEX yes_wrong ON words (name COLLATE "C");

-- another library: an index is in the order that the collation had once, a row is in the partition where it was
UPDATE pg_index SET indcollation = '100' WHERE indexrelid = 'yes_wrong'::regclass;
UPDATE pg_attribute SET attcollation = 100 WHERE attrelid = 'yes_wrong'::regclass;
UPDATE pg_class SET relispartition = false WHERE oid = 'events_2'::regclass;
INSERT INTO events_2 VALUES (-1, 'A');
UPDATE pg_class SET relispartition = true WHERE oid = 'events_2'::regclass;
UPDATE pg_collation SET collversion = 'old' WHERE collname = 'changed_too';
UPDATE pg_database SET datcollversion = 'old' WHERE datname = 'shop';
SQL

my $built = 'SELECT relname, relfilenode FROM pg_class WHERE relkind = \'i\' AND (relname ~ \'^(yes|no)_\' OR relname ~ \'events\') ORDER BY relname';
my %built_before = map { split /\|/ } split /\n/, $node->safe_psql('shop', $built);

# ----------------------------------------------------------------- what is affected

my (undef, $out, $err) = $node->psql('shop', statements($before), on_error_stop => 0);
my @outputs = split /^==\n/m, "$out\n";

like($err, qr/WARNING:  database "shop" has a collation version mismatch/, 'PostgreSQL warns');
like($outputs[0], qr/^shop\|old\|[\d.]+\n$/, 'the database');
like($outputs[1], qr/^old\|[\d.]+\|2\|changed_too\n$/, 'the collations');

my @indexes = map { (split /\|/)[0] } split /\n/, $outputs[2];

is(join(' ', grep { /^no_/ } @indexes), '', 'no index that does not depend on them');
is(join(' ', sort grep { /^yes_/ } @indexes), join(' ', sort grep { /^yes_/ && $_ ne 'yes_parted' } keys %built_before), 'all that do');
is(join(' ', sort grep { !/^yes_/ } @indexes), 'customers_name_excl events_1_name_idx events_2_name_idx', 'those of partitions and constraints');
is($outputs[3], <<'EOT', 'other objects');
check constraint|customers in_order
column of ranges|customers texts
exclusion constraint|customers customers_name_excl
generated column|customers lowered
materialized view|totals
partitioned table|events
EOT
is($outputs[4], "events_1|0\nevents_2|1\n", 'a row in the wrong partition');
is(join(' ', sort $outputs[5] =~ /^(\w+)\|$/mg), join(' ', sort grep { !/_(wrong|gin|brin|gist)$/ } @indexes), 'btrees that are in order');
is(join(' ', $err =~ /ERROR:  (.*)/g), 'item order invariant violated for index "yes_wrong"', 'one is not');

# -------------------------------------------------------------------- the rebuild

$node->safe_psql('shop', 'UPDATE events SET name = name WHERE id = -1');
(undef, $out, $err) = $node->psql('shop', join("\n", @views) . statements($after), on_error_stop => 0);
unlike($err, qr/ERROR/, 'the indexes are rebuilt, and the versions recorded');
like($err, qr/building index "yes_other_ccnew" with gpusort/, 'by gpusort');

my %built_after = map { split /\|/ } split /\n/, $node->safe_psql('shop', $built);

is(join(' ', sort grep { $built_after{$_} ne $built_before{$_} } keys %built_before), join(' ', sort grep { $_ ne 'customers_name_excl' } @indexes), 'the affected ones');
(undef, $out, $err) = $node->psql('shop', 'SET gpusort.debug_plan = off;' . join("\n", @views) . 'SELECT count(*) FROM changed');
is("$out$err", '0', 'nothing is affected any more, and there is no warning');

# ------------------------------------------------------------- the other commands

$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
foreach my $command (map { split /\n/ } $page =~ /^```sh\n(.*?)^```$/msg)
{
	my ($settings, @words) = ('', split / /, $command);

	($settings, @words) = ($1, split / /, $2) if $command =~ /^PGOPTIONS='(.*)' (.*)/;
	local $ENV{PGOPTIONS} = $settings;
	ok(run_log([ @words ]), $command);
}
$node->stop;
done_testing();
