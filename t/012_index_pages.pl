# The pages that gpusort writes must be those that PostgreSQL's
# build would have written, byte by byte except for LSN and checksum, whatever they
# depend on: fillfactor, the lengths and the number of equal keys, suffix truncation,
# the height of the tree.  And they must survive a crash.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = gpusort_node('index_pages', 'gpusort.force = on', 'gpusort.engine = cpu', 'max_parallel_maintenance_workers = 0');

$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
create_compared($node);
$node->safe_psql('postgres', <<'SQL');
-- By gpusort and by PostgreSQL: the same?  Then how high the tree is, or the error.
CREATE FUNCTION same(index text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(difference, error, 'same, ' || height) FROM compared(index, 'gpusort.enable_create_index', '{on}')
$$;
-- The rows are shuffled.
CREATE FUNCTION fill(n int, columns text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	DROP TABLE IF EXISTS input;
	EXECUTE format('CREATE TABLE input AS SELECT %s FROM (SELECT (x * 7919::bigint) %% %s AS i FROM generate_series(1, %s) x) x', columns, n, n);
END $$;
SQL

sub is_same
{
	my ($index, $what) = @_;

	like($node->safe_psql('postgres', "SELECT same(\$x\$$index\$x\$)"), qr/^same, \d$/, "$index $what");
}

sub fill
{
	$node->safe_psql('postgres', "SELECT fill($_[0], \$x\$$_[1]\$x\$)");
}

# ------------------------------------------------------------------ the pages

# numbers of rows around a full page, and of many levels
foreach my $nrows (0, 1, 2, 366, 367, 368, 407, 408)
{
	fill($nrows || 1, 'i, i % 7 AS k');
	$node->safe_psql('postgres', 'DELETE FROM input') if $nrows == 0;
	is_same($_, "of $nrows rows") foreach ('(i)', 'unique (i)', '(k)', '(k) WITH (deduplicate_items = off)');
}
fill(9973, 'i, lpad(i::text, 1200, md5(i::text)) AS long');
is($node->safe_psql('postgres', q{ALTER TABLE input ALTER long SET STORAGE EXTERNAL; SELECT same('(i)'), same('(long) WITH (fillfactor = 10)')}),
	'same, 1|same, 6', 'levels of a tree');

# equal keys: posting lists of all lengths, and pages full of them
foreach my $equal (1, 2, 3, 129, 130, 131, 132, 133, 134, 1000, 9973)
{
	fill(9973, "i / $equal AS k, repeat('k', (i / $equal % 9)::int) || i / $equal AS s, repeat('q', 700) || i / $equal AS long");
	foreach my $fillfactor (10, 50, 90, 100)
	{
		is_same("$_ WITH (fillfactor = $fillfactor)", "of $equal equal keys") foreach ('(k)', '(s, k)', '(k) INCLUDE (s)');
	}
	is_same($_, "of $equal equal keys") foreach ('(long)', '(k, s) WITH (deduplicate_items = off)');
}

# long keys that cannot be compressed: lengths up to a third of a page, pages of two items
fill(2003, q{i, left((SELECT string_agg(md5(i::text || j), '') FROM generate_series(1, 84) j), (CASE WHEN i % 5 = 0 THEN 2000 + i % 670 ELSE i * 7 % 2600 END)::int) AS long, i % 3 AS k, nullif(i % 4, 0) AS n});
$node->safe_psql('postgres', 'ALTER TABLE input ALTER long SET STORAGE EXTERNAL');
foreach my $fillfactor (20, 90, 100)
{
	is_same("$_ WITH (fillfactor = $fillfactor)", 'of long keys') foreach ('(long)', '(left(long, 2), long DESC)', '(k, long)', '(n, long)', 'unique (i) INCLUDE (long)');
}

# nulls, the bitmap of several columns; types whose equal values are not of the same bytes
fill(9973, q{nullif(i % 3, 0) AS a, nullif(i % 10, 1) AS b, CASE i % 3 WHEN 0 THEN 1.0 WHEN 1 THEN 1.00 ELSE i END AS c,
	CASE i % 3 WHEN 0 THEN -0.0::float8 WHEN 1 THEN 0.0 END AS d, md5((i % 100)::text) AS e, i % 2 = 0 AS f, 1 AS g, 2::smallint AS h, 3 AS j, i});
is_same($_, 'of nulls and several columns')
  foreach ('(a)', '(a, b)', '(b DESC, a NULLS FIRST)', '(a, b, c, d, e, f, g)', '(a, b, c, d, e, f, g, h)', '(a, b, d, e, f, g, h, j, i)', '(c)', '(d)', '(c, d)', '(c) INCLUDE (a, b)',
	'(e) INCLUDE (d)', '(e, a) WITH (fillfactor = 63)', '(e COLLATE "en-x-icu", b)', '((nullif(i, i)))', '(f, (nullif(i, i)), h)', 'unique (i, a, b)', '(e) WHERE a IS NULL', '(a) WHERE false');

# runs on disk
fill(29989, 'i, md5((i % 500)::text) AS e');
like($node->safe_psql('postgres', "SET maintenance_work_mem = '1MB'; SELECT same('$_')"), qr/^same, \d$/, "$_ of runs on disk") foreach ('(i)', '(e, i)', '(e)');

# without gpusort.verify: entries are returned eight at a time, and keys of texts are verified only here
fill(9973, q{i, nullif(i % 77, 0) AS k, CASE WHEN i % 3 = 0 THEN 'Zebra ' WHEN i % 3 = 1 THEN 'aal-' ELSE 'Äpfel' END || i % 1500 AS s,
	CASE i % 5 WHEN 0 THEN i * 0.37 WHEN 1 THEN -i / 7.0 WHEN 2 THEN (i % 40) * 1e10 WHEN 3 THEN (i % 9)::numeric(10, 4) ELSE nullif('NaN'::numeric, i % 20) END AS n,
	repeat('long ', 50 + (i % 97)::int) || i % 300 AS long});
$node->safe_psql('postgres', q{INSERT INTO input SELECT -i, NULL, NULL, 'Infinity', NULL FROM generate_series(1, 5) i; INSERT INTO input SELECT -i, NULL, NULL, '-Infinity', '' FROM generate_series(6, 10) i;
	CREATE COLLATION of_libc (provider = libc, locale = 'en_US.UTF-8')});
like($node->safe_psql('postgres', "SET gpusort.verify = off; SELECT same(\$x\$$_\$x\$)"), qr/^same, \d$/, "$_ without gpusort.verify")
  foreach ('(i)', 'unique (i)', '(k)', '(k DESC, i)', '(n)', '(n DESC NULLS LAST)', '(n, s)', '(i) INCLUDE (s)', '(s)', '(s COLLATE "en-x-icu")', '(s COLLATE of_libc)', '(s COLLATE of_libc DESC, k)',
	'(k, s COLLATE of_libc)', '(s COLLATE of_libc, n) WITH (fillfactor = 40)', '(s COLLATE of_libc) INCLUDE (k)', '(s COLLATE of_libc) WITH (deduplicate_items = off)', 'unique (s COLLATE of_libc, i)',
	map { "$_ WHERE i < 2500" } '(long COLLATE of_libc)', '(long COLLATE of_libc, i)', 'unique (long COLLATE of_libc, i)');
like($node->safe_psql('postgres', "SET gpusort.verify = off; SELECT same('unique ($_)')"), qr/23505.* of \(,,"23505|^23505/, "unique ($_) without gpusort.verify") foreach ('s COLLATE of_libc', 'n', 'k', 'long COLLATE of_libc');

# values that are too long unless compressed, and the size of their files
fill(251, 'i, i % 3 AS k');
is_same($_, 'of compressed values') foreach ("((repeat('q', 100000) || i::text))", "((repeat('q', (9000 * k)::int) || i::text) DESC, k) INCLUDE (i)", "(k, (repeat('q', 100000)))", "unique ((repeat('q', 3000)), i)");
like($node->safe_psql('postgres', q{SET temp_file_limit = '4MB'; SET maintenance_work_mem = '1MB'; SELECT same($$((i::text || repeat('q', 100000)))$$)}), qr/^same, \d$/, 'they take no more space in files');

# the same text compressed in one row and not in the other
fill(1009, q{i::text || repeat('z', 400) AS s, CASE WHEN i = 5 THEN (SELECT string_agg(md5(j::text), '') FROM generate_series(1, 58) j) END AS pad});
$node->safe_psql('postgres', q{ALTER TABLE input ALTER pad SET STORAGE MAIN; INSERT INTO input SELECT s || '', 'x' FROM input WHERE pad IS NOT NULL});
is($node->safe_psql('postgres', q{SELECT count(DISTINCT pg_column_size(s)) FROM input WHERE s LIKE '5z%'}), '2', 'one text, stored in two ways');
like($node->safe_psql('postgres', "SET gpusort.verify = off; SELECT same('unique (s COLLATE of_libc)')"), qr/^23505/, 'is a duplicate');
like($node->safe_psql('postgres', "SET gpusort.verify = off; SELECT same('(s COLLATE of_libc)')"), qr/^same/, 'and the index is the same');

# ----------------------------------------------------------------- the errors

fill(1009, 'i, nullif(i, 77) AS n, 1.0 AS c');
$node->safe_psql('postgres', 'INSERT INTO input VALUES (500, NULL, 2.00), (2000, 9, 2.000)');
is($node->safe_psql('postgres', "SELECT same('$_->[0]')"), $_->[1], $_->[0])
  foreach ([ 'unique (i)', '23505 / could not create unique index "tested" / Key (i)=(500) is duplicated.' ],
	[ 'unique (n)', '23505 / could not create unique index "tested" / Key (n)=(9) is duplicated.' ],
	[ 'unique ((nullif(i, i))) NULLS NOT DISTINCT', '23505 / could not create unique index "tested" / Key (NULLIF(i, i))=(null) is duplicated.' ],
	[ 'unique ((nullif(i, i)))', 'same, 1' ]);
like($node->safe_psql('postgres', q{SELECT same($x$((CASE WHEN i = 77 THEN (SELECT string_agg(md5(j::text), '') FROM generate_series(1, 100) j) END))$x$)}),
	qr/^0A000/, 'an index of a subquery is none');
$node->safe_psql('postgres', q{CREATE FUNCTION long(i bigint) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT CASE WHEN i = 77 THEN string_agg(md5(j::text), '') ELSE 'x' || i END FROM generate_series(1, 100) j $$});
is($node->safe_psql('postgres', "SELECT same('(long(i))') = same('(long(i)) WITH (deduplicate_items = off)'), same('(long(i))') LIKE '54000 / index row size % exceeds btree version 4 maximum 2704%in relation \"input\".'"),
	't|t', 'a key of more than a third of a page');
$node->safe_psql('postgres', q{CREATE FUNCTION longer(i bigint) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT CASE WHEN i = 77 THEN string_agg(md5(j::text), '') ELSE 'x' || i END FROM generate_series(1, 300) j $$});
is($node->safe_psql('postgres', 'SELECT same($x$unique (longer(i) DESC)$x$)'), '54000 / index row requires 9616 bytes, maximum size is 8191 / ', 'a key of more than a page comes before a duplicate');

# a wrong order, under a collation that is not verified: capitals after all others
SKIP:
{
	skip 'this server has no ICU', 2 unless has_icu($node);

	$node->safe_psql('postgres', q{CREATE TABLE wrong AS SELECT CASE WHEN i % 2 = 0 THEN 'A' ELSE 'b' END || i % 4 AS s FROM generate_series(1, 20) i});
	my ($rc, $out, $err) = $node->psql('postgres', qq{\\set VERBOSITY verbose
		SET gpusort.verify = off; SET gpusort.collation_fault = on; CREATE INDEX ON wrong (s COLLATE "en-x-icu")});
	like($err, qr/XX000: sort returned rows in wrong order.*does not sort after the previous one in index.*HINT: .*Set gpusort.enable_create_index to off/s, 'a wrong order is an internal error');
	is($node->safe_psql('postgres', q{SET gpusort.verify = off; SET gpusort.collation_fault = on; SET gpusort.enable_create_index = off;
		CREATE INDEX wrong_s ON wrong (s COLLATE "en-x-icu"); SELECT bt_index_parent_check('wrong_s', true, true)}), '', 'the hint avoids it');
}

# the same under one whose keys are only approximate: the index is built again
my $wrong_keys = 'SET gpusort.verify = off; SET gpusort.collation_fault = on; SET client_min_messages = debug1;';
my $again = qr/LOG:  entries of index "\w+" were sorted in wrong order/;

fill(9973, q{i, chr(65 + (i % 2)::int * 32) || i AS s, repeat('x', 150) || chr(65 + (i % 2)::int * 32) || i AS long});
foreach my $case ([ '(s COLLATE of_libc)', '64MB' ], [ '(s COLLATE of_libc)', '1MB' ], [ 'unique (s COLLATE of_libc)', '1MB' ], [ '(long COLLATE of_libc)', '64MB' ], [ '(long COLLATE of_libc, i)', '1MB' ])
{
	my ($index, $memory) = @$case;
	my (undef, $out, $err) = $node->psql('postgres', "$wrong_keys SET maintenance_work_mem = '$memory'; SELECT same('$index')");

	like($out, qr/^same, \d$/, "$index in $memory of wrong keys");
	is(scalar(() = $err =~ /$again/g), 1, 'was built again');
}
like($node->safe_psql('postgres', "INSERT INTO input SELECT * FROM input WHERE i = 77; $wrong_keys SELECT same('unique (s COLLATE of_libc)')"), qr/^23505.*\(A77\)|^23505.*\(a77\)/, 'and a duplicate is found');

# so it is under a collation of ICU whose comparison and sort keys may disagree
SKIP:
{
	skip 'this server has no ICU', 4 unless has_icu($node);

	$node->safe_psql('postgres', q{CREATE COLLATION accents_last (provider = icu, locale = 'fr-CA'); CREATE COLLATION digits_last (provider = icu, locale = 'en-u-kr-latn-digit')});
	my (undef, $out, $err) = $node->psql('postgres', "$wrong_keys SELECT same('(s COLLATE accents_last)')");
	like($out, qr/^same, \d$/, 'an index of ICU of wrong keys');
	is(scalar(() = $err =~ /$again/g), 1, 'was built again');

	# PostgreSQL's sort takes over, and goes by keys: of each eighth text few begin differently
	$node->safe_psql('postgres', q{CREATE TABLE taken_over AS SELECT chr(CASE WHEN p % 3 = 0 THEN 48 + p % 10 ELSE 97 + p % 26 END) || lpad(p::text, 7, '0') || repeat(chr(3585), 120) || id AS s
		FROM (SELECT id, CASE WHEN id <= 640 OR id % 8 = 0 THEN id % 140 ELSE id END AS p FROM generate_series(1, 4000) id) x});
	foreach my $verify ('off', 'on')
	{
		(my $rc, $out, $err) = $node->psql('postgres', "SET gpusort.verify = $verify; SET max_parallel_maintenance_workers = 0; CREATE INDEX ON taken_over (s COLLATE digits_last)");
		ok($rc == 0 && $err =~ /^$|^(?!.*bug in gpusort).*HINT:  ICU contradicts itself/s, "what is said of its order names ICU, with verify = $verify") or diag($err);
	}
}

# -------------------------------------------------------------------- a crash

# indexes that are in the WAL, and with wal_level = minimal those that are not
foreach my $level ('replica', 'minimal')
{
	$node->append_conf('postgresql.conf', "wal_level = $level\nmax_wal_senders = 0\nfsync = on");
	$node->restart;
	$node->safe_psql('postgres', "CHECKPOINT; BEGIN; CREATE TABLE of_$level AS SELECT i * 7919 % 10007 AS i, i % 50 AS k, chr(65 + i % 2 * 32) || i AS s FROM generate_series(1, 20000) i;
		CREATE INDEX ON of_$level (i); CREATE INDEX ON of_$level (k); $wrong_keys CREATE INDEX ON of_$level (s COLLATE of_libc); COMMIT");
	$node->stop('immediate');
	$node->start;
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_index, LATERAL bt_index_parent_check(indexrelid, true, true) WHERE indrelid = 'of_$level'::regclass"),
		'3', "indexes after a crash, wal_level = $level");
}

done_testing();
