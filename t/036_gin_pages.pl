# The pages of GIN indexes that gpusort writes: a module of the tests copies indexes that PostgreSQL
# has built, by gpusort's writer, as a whole and in ranges (test/gin/).  Each copy is walked through
# page by page, must have the same entries as the original, and must not be larger.  Then PostgreSQL
# changes copies: inserts, the pending list, VACUUM, deletion of pages, replay after a crash.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('gin_pages');

my ($help) = run_command([ 'initdb', '--help' ]);

# pages will be changed by hand
$node->init(extra => [ '--locale=C', '--encoding=UTF8', $help =~ /(--no-data-checksums)/ ]);
$node->append_conf('postgresql.conf', join("\n", 'autovacuum = off', 'jit = off', 'max_parallel_maintenance_workers = 0',
	"maintenance_work_mem = '256MB'", 'enable_seqscan = off', 'max_parallel_workers_per_gather = 0', ''));
$node->start;

create_gin_functions($node);
$node->safe_psql('postgres', <<'SQL');
-- Is the copy right?  A range may have a leaf that is not full, and blocks that are left over.
CREATE FUNCTION verdict(original regclass, copy regclass, ranges int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	a record;
	b record;
BEGIN
	PERFORM gin_copy(original, copy, ranges);
	a := gin_check(original);
	b := gin_check(copy);
	PERFORM gin_index_check(copy);
	RETURN CASE WHEN (a.keys, a.tids) <> (b.keys, b.tids) THEN format('%s and %s', a, b)
		WHEN b.meta <> format('%s %s %s %s', b.keys, b.entry_pages, b.data_pages, b.blocks) THEN b::text
		WHEN b.blocks - b.free_pages > a.blocks + CASE ranges WHEN 1 THEN 0 ELSE ranges END OR b.free_pages > 8 * ranges THEN format('larger: %s than %s', b, a)
		WHEN ranges = 1 AND b.free_pages > 0 THEN 'free pages: ' || b
		WHEN gin_contents(original) <> gin_contents(copy) THEN 'other entries'
		ELSE 'right' END;
END $$;
-- Results with the index and without it.
CREATE FUNCTION answers(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	by_index text;
	by_scan text;
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	IF plan::text !~ 'Bitmap Index Scan' THEN
		RETURN 'no index: ' || plan;
	END IF;
	EXECUTE query INTO by_index;
	SET LOCAL enable_bitmapscan = off;
	EXECUTE query INTO by_scan;
	RESET enable_bitmapscan;
	RETURN CASE WHEN by_index = by_scan THEN 'same' ELSE format('%s and %s', by_index, by_scan) END;
END $$;
SQL

# An index of PostgreSQL's and a copy of it, which is the index "copy" of the table input.
sub is_copied
{
	my ($what, $columns, @rows) = @_;

	$node->safe_psql('postgres', "DROP TABLE IF EXISTS input; CREATE TABLE input AS @rows;") if @rows;
	$node->safe_psql('postgres', "DROP INDEX IF EXISTS original, copy; CREATE INDEX original ON input USING gin ($columns); CREATE INDEX copy ON input USING gin ($columns)");
	is($node->safe_psql('postgres', "SELECT verdict('original', 'copy', n) FROM unnest(ARRAY[2, 7, 300, 1]) n"), join("\n", ('right') x 4), $what);
}

# ------------------------------------------------------------------------ contents

is_copied('an empty index', 'v', 'SELECT ARRAY[i] AS v FROM generate_series(1, 0) i');
is_copied('one row', 'v', 'SELECT ARRAY[1] AS v');
is_copied('placeholders only', 'v', q{SELECT CASE i % 3 WHEN 0 THEN NULL WHEN 1 THEN '{}' ELSE '{NULL}' END::int[] AS v FROM generate_series(1, 30000) i});
is_copied('arrays of integers', 'v', q{
	SELECT CASE WHEN i % 100 = 0 THEN NULL WHEN i % 100 = 1 THEN '{}' WHEN i % 100 = 2 THEN ARRAY[NULL, i % 7]
		ELSE ARRAY[i % 3, (i * 7919) % 1000, i % 20000, i] END::int[] AS v, i % 50 AS n, md5((i % 5000)::text) AS t
	FROM generate_series(1, 50000) i});
is_copied('several columns', 'v, (ARRAY[t, NULL]), (ARRAY[n])');
is_copied('texts of a tsvector', 'v', q{
	SELECT array_to_tsvector(array_agg(DISTINCT md5((i * j % (j * j + 10000))::text))) AS v FROM generate_series(1, 5000) i, generate_series(1, 20) j GROUP BY i});
is_copied('a key of all rows', 'v', q{SELECT ARRAY[7] AS v FROM generate_series(1, 200000) i});
is_copied('keys of all numbers of TIDs', 'v', q{SELECT ARRAY[k] AS v FROM generate_series(1, 100) k, generate_series(1, k * k) i ORDER BY hashint4(i), k});
is_copied('numeric', 'v', q{SELECT ARRAY[i % 100, i / 7.0, 'NaN'] AS v FROM generate_series(1, 10000) i});
is_copied('float8', 'v', q{SELECT ARRAY[(i % 100) / 3.0, -0.0, 'NaN', '-Infinity']::float8[] AS v FROM generate_series(1, 10000) i});
is_copied('keys up to the longest', 'v', q{
	SELECT ARRAY[left(repeat_text, n)] AS v FROM (SELECT string_agg(md5(i::text), '') AS repeat_text FROM generate_series(1, 90) i) x,
		generate_series(2600, 2690) n, generate_series(1, CASE n % 3 WHEN 0 THEN 1 WHEN 1 THEN 2 ELSE 300 END)});
is_copied('few keys of a page', 'v', q{
	SELECT ARRAY[i || (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 80) j)] AS v FROM generate_series(1, 3000) i});

# --------------------------------------------------------------------------- height

$node->safe_psql('postgres', q{CREATE TABLE filled (v int[]); CREATE INDEX filled_v ON filled USING gin (v)});
foreach my $case ([ 1, 1, '0|1' ], [ 2, 2600, '1|1' ], [ 1, 4_000_000, '3|1' ], [ 2000, 700, '0|3' ])
{
	my ($keys, $tids, $heights) = @$case;

	$node->safe_psql('postgres', "SELECT gin_fill('filled_v', $keys, $tids, 1000)");
	is($node->safe_psql('postgres', q{SELECT tree_height, height, keys, tids, free_pages, meta = format('%s %s %s %s', keys, entry_pages, data_pages, blocks)
		FROM gin_check('filled_v'), gin_index_check('filled_v')}),
		"$heights|$keys|" . $keys * $tids . '|0|t', "$keys keys with $tids TIDs each");
}

# ---------------------------------------------------------------------- what follows

# The copy is the only index; PostgreSQL changes it.  In the end it must be as a new one.
sub is_maintained
{
	my ($what, $columns, $insert, $delete, @conditions) = @_;
	my $queries = join(', ', map { "answers(\$x\$SELECT count(*) || ' ' || coalesce(sum(id), 0) FROM input WHERE $_\$x\$)" } @conditions);
	my $same = join('|', ('same') x @conditions);

	$node->safe_psql('postgres', 'DROP INDEX original');
	is($node->safe_psql('postgres', "VACUUM ANALYZE input; SELECT $queries"), $same, "$what: queries");
	foreach my $fast ('off', 'on')
	{
		$node->safe_psql('postgres', "ALTER INDEX copy SET (fastupdate = $fast); $insert; VACUUM ANALYZE input");
		is($node->safe_psql('postgres', "SELECT list_pages, $queries FROM gin_clean_pending_list('copy'), gin_check('copy'), gin_index_check('copy')"),
			"0|$same", "$what: inserts with fastupdate = $fast");
	}
	$node->safe_psql('postgres', "$delete; VACUUM ANALYZE input");
	is($node->safe_psql('postgres', "SELECT tids >= 0, free_pages > 0, $queries FROM gin_check('copy'), gin_index_check('copy')"),
		"t|t|$same", "$what: deletes and deleted pages");
	$node->safe_psql('postgres', "$insert; VACUUM ANALYZE input; CREATE INDEX original ON input USING gin ($columns)");
	is($node->safe_psql('postgres', "SELECT $queries, gin_contents('original') = gin_contents('copy') FROM gin_check('copy'), gin_index_check('copy')"),
		"$same|t", "$what: inserts after that");
}

foreach my $ranges (1, 3)
{
	my $rows = 'SELECT i AS id, CASE WHEN i % 100 = 0 THEN NULL ELSE ARRAY[1, i % 20, (i * 7919) % 5000, i] END AS v';

	is_copied('to be changed', 'v', "$rows FROM generate_series(1, 60000) i");
	$node->safe_psql('postgres', "SELECT gin_copy('original', 'copy', $ranges)");
	is_maintained("arrays, of $ranges ranges", 'v', "INSERT INTO input $rows FROM generate_series(30000, 40000) i",
		'DELETE FROM input WHERE id BETWEEN 10000 AND 50000', "v \@> '{1, 7}'", "v \@> '{1}'", "v && '{3, 4000}'", "v <\@ '{1, 2, 12}'");
}

# ------------------------------------------------------- does the walk find what is wrong?

$node->safe_psql('postgres', q{
	DROP TABLE IF EXISTS input; CREATE TABLE input AS SELECT ARRAY[1, 2 + i % 3000] AS v FROM generate_series(1, 60000) i;
	CREATE INDEX original ON input USING gin (v); CREATE INDEX copy ON input USING gin (v)});

# Flags of pages: leaves of the entry tree and of posting trees, pages above these.
my ($leaf, $data_leaf, $data) = (0x02, 0x83, 0x01);

# Changes the first page with these flags and a right link, or that block, or adds that page to the file.
sub is_found
{
	my ($what, $message, $change, $flags) = @_;

	$node->safe_psql('postgres', q{SELECT gin_copy('original', 'copy', 1)});
	my $file = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('copy')});
	my $contents = slurp_file($file);
	my @pages = unpack('(a8192)*', $contents);
	my ($block) = grep { my ($link, undef, $found) = unpack('LSS', substr($pages[$_], -8)); $link != 0xffffffff && $found == $flags } 0 .. $#pages;

	$block = 0 unless defined $flags;
	$change->($pages[$block], \@pages);
	open(my $handle, '+<:raw', $file) or die "cannot open $file: $!";
	print $handle join('', @pages);
	close($handle) or die "cannot write $file: $!";
	my (undef, undef, $error) = $node->psql('postgres', q{SELECT gin_check('copy')});
	like($error, qr/ERROR:  index "copy", block \d+: $message/, $what);
}

is_found('a wrong right link', 'is not the one that the page before it links to', sub { substr($_[0], -8, 4) = pack('L', 1) }, $leaf);
is_found('a missing right link', 'has no right link', sub { substr($_[0], -8, 4) = pack('L', 0xffffffff) }, $data_leaf);
is_found('keys in wrong order', 'has keys in wrong order', sub { substr($_[0], 24, 8) = substr($_[0], 28, 4) . substr($_[0], 24, 4) }, $leaf);
is_found('a lost key', 'has another last key than its downlink', sub { substr($_[0], 12, 2) = pack('S', unpack('S', substr($_[0], 12, 2)) - 4) }, $leaf);
is_found('wrong flags', 'has wrong flags', sub { substr($_[0], -2, 2) = pack('S', 0x03) }, $data_leaf);
is_found('a wrong right bound', 'has another right bound', sub { substr($_[0], 28, 2) = pack('S', 1 + unpack('S', substr($_[0], 28, 2))) }, $data_leaf);
is_found('TIDs in wrong order', 'has TIDs in wrong order', sub { substr($_[0], 32, 384) = substr($_[0], 32 + 384, 384) }, $data_leaf);
is_found('an empty page', 'is not a page of a GIN index', sub { $_[0] = "\0" x 8192 }, $leaf);
is_found('a page without a link to it', 'is not reached', sub { push @{ $_[1] }, $_[0] }, $leaf);
is_found('another version', 'has another version', sub { substr($_[0], 24 + 48, 4) = pack('L', 1) });

# Ranges that do not follow each other.
foreach my $ranges (2, 7)
{
	my (undef, undef, $error) = $node->psql('postgres', qq{SELECT gin_copy('original', 'copy', -$ranges)});
	like($error, qr/ERROR:  range 1 does not follow the one before/, "$ranges ranges in descending order");
}

# ---------------------------------------------------------------------------- a crash

foreach my $persistence ('', 'UNLOGGED')
{
	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS input; CREATE $persistence TABLE input AS SELECT ARRAY[1, i % 3000, i] AS v FROM generate_series(1, 50000) i;
		CREATE INDEX original ON input USING gin (v); CREATE INDEX copy ON input USING gin (v); CHECKPOINT;
		SELECT gin_copy('original', 'copy', 1), gin_copy('original', 'copy', 3)});
	$node->stop('immediate');
	$node->start;
	is($node->safe_psql('postgres', q{SELECT gin_contents('original') = gin_contents('copy'), tids FROM gin_check('copy'), gin_index_check('copy')}),
		$persistence ? 't|0' : 't|146984', "$persistence after a crash");
}

done_testing();
