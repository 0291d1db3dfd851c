# GIN indexes that gpusort builds, by one process and several, by the CPU engine and a device: the
# keys and TIDs must be those of PostgreSQL's index, the structure must be right, and failures must
# be handled.  t/036_gin_pages.pl has the pages.  The device is the host's processor.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use RangesTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('gin');

$node->init(extra => [ '--locale=C.UTF-8', '--encoding=UTF8', '--data-checksums' ], allows_streaming => 1);
$node->append_conf('postgresql.conf', join("\n",
	"shared_preload_libraries = 'gpusort'", 'gpusort.device = host', 'gpusort.device_min_rows = 0', 'gpusort.force = on', 'gpusort.verify = on',
	'gpusort.engine = cuda', 'autovacuum = off', 'jit = off', 'max_parallel_maintenance_workers = 3', 'max_worker_processes = 16',
	'min_parallel_table_scan_size = 0', "maintenance_work_mem = '160MB'", 'log_min_messages = debug1', 'wal_keep_size = 4GB', ''));
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
create_gin_functions($node);
ok(wait_for_service($node, 'running'), 'gpusortd runs');
$node->safe_psql('postgres', 'ALTER DATABASE postgres SET gpusort.engine = cpu');
my $has_contrib = !grep { !has_extension($node, $_) } qw(pg_trgm hstore intarray btree_gin);
$node->safe_psql('postgres', 'CREATE EXTENSION pg_trgm; CREATE EXTENSION hstore; CREATE EXTENSION intarray; CREATE EXTENSION btree_gin') if $has_contrib;
my $compare = <<'SQL';
-- What is wrong with gpusort's index, compared with PostgreSQL's.
CREATE FUNCTION verdict(ours regclass, theirs regclass, ranges int DEFAULT 1) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	a record := gin_check(ours);
	b record := gin_check(theirs);
BEGIN
	PERFORM gin_index_check(ours);
	RETURN CASE WHEN (a.keys, a.tids) <> (b.keys, b.tids) THEN format('%s and %s', a, b)
		WHEN gin_contents(ours) <> gin_contents(theirs) THEN 'other entries'
		WHEN a.meta <> format('%s %s %s %s', a.keys, a.entry_pages, a.data_pages, a.blocks) THEN a::text
		WHEN a.blocks - a.free_pages > b.blocks + CASE ranges WHEN 1 THEN 0 ELSE ranges END THEN format('larger: %s than %s', a, b)
		WHEN (SELECT reltuples FROM pg_class WHERE oid = ours) <> a.tids::float4 THEN 'reltuples'
		ELSE 'same' END;
END $$;
CREATE FUNCTION same(columns text, rest text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE INDEX ours ON input USING gin (%s) %s', columns, rest);
	PERFORM set_config('gpusort.enable_gin', 'off', true);
	EXECUTE format('CREATE INDEX theirs ON input USING gin (%s) %s', columns, rest);
	PERFORM set_config('gpusort.enable_gin', 'on', true);
	RETURN verdict('ours', 'theirs', 4);
END $$;
SQL
$node->safe_psql('postgres', "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); $compare");

# Builds an index by gpusort and by PostgreSQL, and compares them.  Option writers: of how many processes.
sub is_same
{
	my ($what, $columns, %options) = @_;
	my $rest = $options{rest} // '';
	my $before = written_by($node, $options{writers} // 4);
	my ($rc, $result, $errors) = $node->psql('postgres',
		"SET gpusort.debug_plan = on; " . ($options{settings} // '') . "SELECT same(\$x\$$columns\$x\$, \$x\$$rest\$x\$)");

	is($result, 'same', "$what: $columns $rest") or diag($errors);
	like($errors, qr/building index "ours" with gpusort/, 'by gpusort') unless $options{by_postgres};
	is(written_by($node, $options{writers} // 4) - $before, 1, 'by all processes') if $options{writers};
	$node->safe_psql('postgres', 'DROP INDEX IF EXISTS ours, theirs');
	return;
}

sub fill_with
{
	my ($rows, $storage) = @_;

	$node->safe_psql('postgres', "DROP TABLE IF EXISTS input; CREATE TABLE input ($storage) AS $rows") if $storage;
	$node->safe_psql('postgres', "DROP TABLE IF EXISTS input; CREATE TABLE input AS $rows") unless $storage;
	return;
}

# ---------------------------------------------------------------- operator classes

my $mixed = q{SELECT id,
	CASE WHEN id % 7 = 0 THEN NULL WHEN id % 11 = 0 THEN '{}' ELSE ARRAY[id % 1000, id % 13, (id * 7919::bigint) % 100000, NULL, id % 13]::int[] END AS i,
	CASE WHEN id % 9 = 0 THEN NULL ELSE ARRAY['w' || id % 100, 'é' || id % 77, 'Z' || id % 10, 'a b', ''] END AS t,
	ARRAY[(id % 50)::numeric, (id % 50)::numeric(10, 2), (id % 100) / 3.0, 'NaN'] AS n,
	ARRAY[(id % 100)::float8 / 7, 'NaN', '-0', '0', 'Infinity'] AS f,
	ARRAY[md5((id % 500)::text)::uuid] AS u, ARRAY[(id % 100 || ' seconds')::interval, '30 days', '1 month'] AS iv,
	ARRAY[(id % 8)::bit(3)::varbit] AS b, ARRAY[row(id % 5, 'x')::text] AS r, ARRAY[(id % 3 = 0), NULL] AS bo,
	CASE WHEN id % 5 = 0 THEN NULL ELSE to_tsvector('simple', 'lorem ' || id % 1000 || ' ipsum ' || id % 17 || ' ' || md5(id::text)) END AS ts,
	jsonb_build_object('k' || id % 10, id % 100, 'n', NULL, 'arr', jsonb_build_array(id % 33, 'q' || id % 44, 1.5, 1.50), 'o', '{}'::jsonb,
		'deep', jsonb_build_object('x', id, 'long', repeat('l', id % 300))) AS j,
	(enum_range(NULL::mood))[id % 3 + 1] AS m, 'tràs ' || md5((id % 2000)::text) || ' Fin' AS s, id % 1000 AS k
	FROM generate_series(1, 12000) id};
my @core = ('i', 't', 't COLLATE "C"', 'n', 'f', 'u', 'iv', 'b', 'r', 'bo', 'ts', 'j', 'j jsonb_path_ops', 'i, ts, j, t', 'ts, i, j jsonb_path_ops');
my @contrib = ('s gin_trgm_ops', 'hstore(s, t[1])', '(ARRAY[k, id % 17]) gin__int_ops', 'k', '(k::numeric)', '(k::bigint)', '(k::float4)', 'm', 's', "(date '2020-01-01' + k)",
	"(timestamp '2020-01-01' + k * interval '1 hour')", '(k::text::bpchar)', '(s::bytea)', '(k % 2 = 0)', '(md5(s)::uuid)', '(\'10.0.0.0\'::inet + k)', '(s::name)',
	's gin_trgm_ops, k, m, t', '((k % 100)::"char")', '(k::bit(10))');

@contrib = () unless $has_contrib;
push @core, 't COLLATE "de-x-icu"', 't COLLATE "und-x-icu"' if has_icu($node);
fill_with($mixed);
$node->safe_psql('postgres', q{DELETE FROM input WHERE id % 50 = 1; ALTER TABLE input SET (parallel_workers = 3)});
is_same('several processes', $_) foreach @core, @contrib;
is_same('one process', $_, settings => 'SET max_parallel_maintenance_workers = 0; ') foreach @core, grep { /,/ } @contrib;
is_same('in runs', $_, settings => "SET max_parallel_maintenance_workers = 0; SET maintenance_work_mem = '1MB'; ") foreach 'i', 'ts', 'j', 'i, ts, j, t';
is_same('options', 'ts', %$_)
  foreach { rest => 'WHERE id % 3 = 1' }, { rest => 'WHERE false' }, { rest => 'WITH (fastupdate = off)' }, { rest => 'WITH (gin_pending_list_limit = 64)' };
is_same('expressions', $_, rest => 'WHERE id > 100') foreach q{to_tsvector('simple', s)}, q{string_to_array(s, ' '), (j -> 'arr') jsonb_path_ops}, '(i || k)';

# equal keys with other bytes: the list of one is emitted before an older one of the other
fill_with(q{SELECT ARRAY[CASE WHEN id % 5000 = 2 THEN 1.00 ELSE 1.0 END] AS n, ARRAY[CASE WHEN id % 50 = 2 THEN '-0'::float8 ELSE 0 END] AS f
	FROM generate_series(1, 20000) id});
is_same('equal keys', $_, settings => 'SET max_parallel_maintenance_workers = 0; ') foreach 'n', 'f', 'n, f';

# words of ASCII characters, others, both in a text, and none; one text is long
if ($has_contrib)
{
	fill_with(q{SELECT id, CASE id % 20 WHEN 0 THEN '' WHEN 1 THEN NULL WHEN 2 THEN ' ., _' WHEN 3 THEN 'öÄ ß' WHEN 4 THEN 'İı' WHEN 5 THEN 'a' ELSE
			(SELECT string_agg(substr('abcxyzABCXYZ0189_.-@  ÄöéİΣσ漢字', 1 + (hashint8extended(id * 1000 + n, 0) & 1023)::int % (5 + id % 27), 1), '')
			FROM generate_series(1, id % 300) n) END AS s FROM generate_series(1, 6000) id
		UNION ALL SELECT 0, string_agg(md5(n::text) || ' Ö', ' ') FROM generate_series(1, 20000) n});
	is_same('trigrams', 's gin_trgm_ops', settings => $_) foreach '', 'SET max_parallel_maintenance_workers = 0; ';

	# what is in words, and what lower case is; a Turkish I has none in ASCII
	foreach my $case ([ "LOCALE 'C' ENCODING 'UTF8'", 'c3b6c4b1c3a9' ], [ "LOCALE 'C' ENCODING 'LATIN5'", 'd6efdd' ], [ "LOCALE 'C' ENCODING 'SQL_ASCII'", 'd6efdd' ],
		has_icu($node) ? [ "LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR' LOCALE 'C.UTF-8' ENCODING 'UTF8'", 'c3b6c4b1c3a9' ] : ())
	{
		my ($locale, $word) = @$case;

		$node->safe_psql('postgres', "CREATE DATABASE other TEMPLATE template0 $locale");
		create_gin_functions($node, 'other');
		$node->safe_psql('other', qq{CREATE EXTENSION pg_trgm; $compare
			CREATE TABLE input AS SELECT id, CASE id % 3 WHEN 0 THEN upper(md5(id::text)) || ' I'
					ELSE (SELECT string_agg(chr(1 + (hashint8extended(id * 1000 + n, 0) & 127)::int % 127), '') FROM generate_series(1, id % 100) n) END ||
				CASE id % 5 WHEN 0 THEN convert_from('\\x$word', current_setting('server_encoding')) || 'I x' ELSE '' END AS s
			FROM generate_series(1, 3000) id});
		is($node->safe_psql('other', q{CREATE INDEX ours ON input USING gin (s gin_trgm_ops); SET gpusort.enable_gin = off;
			CREATE INDEX theirs ON input USING gin (s gin_trgm_ops); SELECT verdict('ours', 'theirs')}), 'same', "trigrams: $locale");
		$node->safe_psql('postgres', 'DROP DATABASE other');
	}
}
fill_with($mixed);

# an order that is not known
$node->safe_psql('postgres', q{
	CREATE FUNCTION compare_reversed(int, int) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE sql AS 'SELECT btint4cmp($2, $1)';
	CREATE OPERATOR CLASS reversed FOR TYPE int[] USING gin AS OPERATOR 1 &&(anyarray, anyarray), OPERATOR 2 @>(anyarray, anyarray),
		FUNCTION 1 compare_reversed(int, int), FUNCTION 2 ginarrayextract(anyarray, internal, internal),
		FUNCTION 3 ginqueryarrayextract(anyarray, internal, smallint, internal, internal, internal, internal),
		FUNCTION 4 ginarrayconsistent(internal, smallint, anyarray, integer, internal, internal, internal, internal), STORAGE int;
});
my ($rc, $out, $errors) = $node->psql('postgres', 'SET gpusort.debug_plan = on; CREATE INDEX unknown ON input USING gin (i reversed)');
like($errors, qr/building index "unknown" without gpusort\nDETAIL:  The order of keys of type integer by the operator class is not known/, 'an operator class of another order is left to PostgreSQL');
is($node->safe_psql('postgres', "DROP INDEX unknown; SELECT 1"), '1', 'which builds it');

# ---------------------------------------------------------------- many rows, ranges

fill_with('SELECT id, ARRAY[id, id % 10, (id * 7919::bigint) % 20000, (id * 104729::bigint) % 1000] AS i, ARRAY[1] AS one, ARRAY[hashint4(id)] AS h, id % 3 AS few FROM generate_series(1, 300000) id');
$node->safe_psql('postgres', 'ALTER TABLE input SET (parallel_workers = 3)');
foreach my $engine ('cpu', 'cuda')
{
	my $settings = "SET gpusort.engine = $engine; ";

	is_same("ranges by $engine", $_, writers => 4, settings => $settings) foreach 'i', 'i, h';
	is_same("a million keys by $engine", 'h', writers => 4, settings => $settings);
	is_same("one key by $engine", 'one', settings => $settings);
	is_same("by the leader alone, $engine", 'i', settings => "$settings SET gpusort.enable_parallel_index_write = off; ");
	is_same("one process, $engine", 'i', settings => "$settings SET max_parallel_maintenance_workers = 0; ");
	is_same("in little memory, $engine", 'i, h', settings => "$settings SET maintenance_work_mem = '4MB'; SET max_parallel_maintenance_workers = 0; ");
	is_same("CONCURRENTLY would, $engine", 'i', rest => 'WHERE few = 1', settings => $settings);
}

# gpusortd is lost, or has little memory
my $lost = qr/sort engine "cuda" failed, sorting again without it/;

foreach my $fault ('copy_in:1:kill', 'pack:1:kill', 'sort_words:1:fail')
{
	restart_service($node, 'gpusort.service_fault' => $fault);
	foreach my $workers (0, 3)
	{
		my $before = count_in_log($node, $lost);

		is_same("$fault, $workers workers", 'i', settings => "SET gpusort.engine = cuda; SET max_parallel_maintenance_workers = $workers; ");
		cmp_ok(count_in_log($node, $lost), '>', $before, 'the table was scanned again') if $fault ne 'sort_words:1:fail';
	}
}
restart_service($node, 'gpusort.service_fault' => '', 'gpusort.device_memory_limit' => '1MB');
is_same('1 MB of device memory', 'i, h', settings => 'SET gpusort.engine = cuda; SET gpusort.device_wait = 100; ');
restart_service($node, 'gpusort.device_memory_limit' => '0');

# wrong keys of texts of the C library: the index is built again
SKIP:
{
	skip 'no collation en_US.utf8', 4 unless $node->safe_psql('postgres', "SELECT count(*) FROM pg_collation WHERE collname = 'en_US.utf8'");
	foreach my $workers (0, 3)
	{
		my $before = count_in_log($node, qr/entries of index "ours" were sorted in wrong order/);

		is_same("wrong keys, $workers workers", '(ARRAY[CASE WHEN id % 2 = 0 THEN \'a\' ELSE \'A\' END || i[3] % 50, md5(id::text)] COLLATE "en_US.utf8")',
			settings => "SET gpusort.verify = off; SET gpusort.collation_fault = on; SET max_parallel_maintenance_workers = $workers; ");
		cmp_ok(count_in_log($node, qr/entries of index "ours" were sorted in wrong order/), '>', $before, 'it was built again');
	}
}

# the number of processes, also where PostgreSQL builds with one
foreach my $case ([ 'SET max_parallel_maintenance_workers = 1; ', 2 ], [ 'SET max_parallel_maintenance_workers = 2; ', 3 ], [ 'SET maintenance_work_mem = \'64MB\'; ', 4 ])
{
	is_same("$case->[1] processes", 'i', settings => $case->[0], writers => $case->[1]);
}
is_same('no workers', 'i', settings => 'SET max_parallel_workers = 0; ');

# ------------------------------------------------------------- other statements

# Both indexes of a statement that builds them, by gpusort and by PostgreSQL.
sub is_rebuilt
{
	my ($what, $statement, $setting) = @_;

	foreach my $index ('ours', 'theirs')
	{
		my ($enabled, $sql) = ($index eq 'ours' ? 'on' : 'off', $statement =~ s/INDEX_NAME/$index/gr);
		my (undef, undef, $messages) = $node->psql('postgres', "SET gpusort.enable_gin = $enabled; SET gpusort.debug_plan = on; $sql", on_error_stop => 0);

		like($messages, qr/building index "$index[_a-z0-9]*" with gpusort/, "$what: by gpusort") if $enabled eq 'on';
		unlike($messages, qr/ERROR/, "$what: no ERROR");
	}
	is($node->safe_psql('postgres', "SELECT verdict('ours', 'theirs', 4)"), 'same', $what);
	return;
}

is_rebuilt('CREATE INDEX CONCURRENTLY', 'CREATE INDEX CONCURRENTLY INDEX_NAME ON input USING gin (i)');
is_rebuilt('REINDEX', 'REINDEX INDEX INDEX_NAME');
is_rebuilt('REINDEX CONCURRENTLY', 'REINDEX INDEX CONCURRENTLY INDEX_NAME');
$node->safe_psql('postgres', 'DELETE FROM input WHERE id % 3 = 0; DROP INDEX theirs');
like(($node->psql('postgres', 'SET gpusort.debug_plan = on; VACUUM FULL input'))[2], qr/building index "ours" with gpusort/, 'VACUUM FULL');
$node->safe_psql('postgres', 'SET gpusort.enable_gin = off; CREATE INDEX theirs ON input USING gin (i)');
is($node->safe_psql('postgres', "SELECT verdict('ours', 'theirs', 4)"), 'same', 'VACUUM FULL');
is_rebuilt('REINDEX without the planner', 'SET max_parallel_maintenance_workers = 0; REINDEX INDEX INDEX_NAME');

# unlogged and partitioned tables
fill_with('SELECT id, ARRAY[id % 100, id % 7] AS i FROM generate_series(1, 20000) id');
$node->safe_psql('postgres', 'ALTER TABLE input SET UNLOGGED');
is_same('unlogged', 'i');
$node->safe_psql('postgres', q{
	CREATE TABLE parts (id int, i int[]) PARTITION BY RANGE (id);
	CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10000);
	CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10000) TO (30000);
	INSERT INTO parts SELECT * FROM input;
});
like(($node->psql('postgres', 'SET gpusort.debug_plan = on; CREATE INDEX ON parts USING gin (i)'))[2],
	qr/building index "parts_1_i_idx" with gpusort.*building index "parts_2_i_idx" with gpusort/s, 'partitions');
is($node->safe_psql('postgres', q{SET gpusort.enable_gin = off; CREATE INDEX theirs ON parts_2 USING gin (i); SELECT verdict('parts_2_i_idx', 'theirs', 4)}), 'same', 'of a partition');
$node->safe_psql('postgres', 'DROP TABLE parts');

# what is not committed, deleted, or in HOT chains
fill_with('SELECT id, ARRAY[id % 100, id % 7] AS i, 0 AS other FROM generate_series(1, 20000) id', '');
$node->safe_psql('postgres', q{
	DROP TABLE input;
	CREATE TABLE input (id int, i int[], other int) WITH (fillfactor = 40, parallel_workers = 3);
	INSERT INTO input SELECT id, ARRAY[id % 100, id % 7], 0 FROM generate_series(1, 20000) id;
	CREATE INDEX hot ON input (id);
	UPDATE input SET other = 1 WHERE id % 2 = 0;
	UPDATE input SET other = 2 WHERE id % 3 = 0;
});
my ($old) = session($node);
ask($old, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
ask($old, 'SELECT count(*) FROM pg_am');
$node->safe_psql('postgres', 'DELETE FROM input WHERE id % 5 = 0; UPDATE input SET i = i || 1000 WHERE id % 7 = 0');
is_same('HOT chains and dead tuples', 'i');
is_same('HOT chains and dead tuples, one process', 'i', settings => 'SET max_parallel_maintenance_workers = 0; ');
ask($old, 'COMMIT');
$old->quit;

# rows that change while an index is built CONCURRENTLY
my ($writer) = session($node);
ask($writer, 'BEGIN');
ask($writer, 'INSERT INTO input SELECT id, ARRAY[-id], 0 FROM generate_series(1, 100) id RETURNING 1');
my $builder = $node->background_psql('postgres');
$builder->query_until(qr/started/, "\\echo started\nCREATE INDEX CONCURRENTLY ours ON input USING gin (i);\n");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting for writers%'"), 'it waits for a writer');
ask($writer, 'COMMIT');
$writer->quit;
$builder->quit;
$node->safe_psql('postgres', 'SET gpusort.enable_gin = off; CREATE INDEX theirs ON input USING gin (i)');
is($node->safe_psql('postgres', q{SELECT indisvalid FROM pg_index WHERE indexrelid = 'ours'::regclass}), 't', 'the index is valid');
is($node->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM input WHERE i @> '{-50}'}), '1', 'and has the rows of that writer');

# ------------------------------------------------------------------ later changes

foreach my $fastupdate ('on', 'off')
{
	fill_with('SELECT id, ARRAY[id % 100, id % 7, id % 10000] AS i FROM generate_series(1, 60000) id');
	$node->safe_psql('postgres', qq{
		ALTER TABLE input SET (parallel_workers = 3);
		CREATE INDEX ours ON input USING gin (i) WITH (fastupdate = $fastupdate);
		INSERT INTO input SELECT id, ARRAY[id % 101, id % 9, id] FROM generate_series(1, 20000) id;
		UPDATE input SET i = i || -id WHERE id % 10 = 0;
		DELETE FROM input WHERE id % 4 = 0;
		VACUUM input;
		DELETE FROM input WHERE i[1] < 50;
		VACUUM input;
		INSERT INTO input SELECT id, ARRAY[id % 30] FROM generate_series(1, 20000) id;
		SELECT gin_clean_pending_list('ours');
		VACUUM input;
		SET gpusort.enable_gin = off;
		CREATE INDEX theirs ON input USING gin (i) WITH (fastupdate = $fastupdate);
	});
	is($node->safe_psql('postgres', "SELECT count(gin_index_check('ours')) >= 0, gin_contents('ours') = gin_contents('theirs')"), 't|t', "inserts, deletes and VACUUM with fastupdate = $fastupdate");
}

# ------------------------------------------------------------------------ errors

# The error of an index, by gpusort and by PostgreSQL.
sub is_same_error
{
	my ($what, $index, $expected, $settings) = @_;
	my %errors;

	foreach my $enabled ('on', 'off')
	{
		(undef, undef, $errors{$enabled}) = $node->psql('postgres', ($settings // '') . "SET gpusort.enable_gin = $enabled; CREATE INDEX never ON input USING gin ($index)", extra_params => [ '-v', 'VERBOSITY=verbose' ]);
		$errors{$enabled} =~ s/^(psql:\S+ |LOCATION:.*\n?|CONTEXT:.*\n?)//mg;
	}
	like($errors{on}, $expected, $what);
	is($errors{on}, $errors{off}, 'as PostgreSQL says');
	return;
}

fill_with(q{SELECT id, ARRAY[id::text, CASE WHEN id = 15000 THEN (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 100) i) END] AS t, ARRAY[CASE WHEN id = 15000 THEN (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 400) i) END] AS u, ARRAY[id] AS i FROM generate_series(1, 20000) id});
foreach my $workers (0, 3)
{
	$node->safe_psql('postgres', "ALTER TABLE input SET (parallel_workers = $workers)");
	is_same_error("a key that is too long, $workers workers", 't', qr/ERROR:  54000: index row size \d+ exceeds maximum \d+ for index "never"/);
	is_same_error("a key that is too long for a page, $workers workers", 'u', qr/ERROR:  54000: index row requires \d+ bytes, maximum size is \d+/);
	is_same_error("an error of an expression, $workers workers", '(ARRAY[1 / (id - 15000)])', qr/ERROR:  22012: division by zero/);
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_class WHERE relname = \'never\''), '0', 'nothing is left');
fill_with('SELECT id, ARRAY[hashint4(id), hashint4(-id), hashint4(id + 1000000)] AS i FROM generate_series(1, 300000) id');
$node->safe_psql('postgres', 'ALTER TABLE input SET (parallel_workers = 3)');
foreach my $workers (0, 3)
{
	my $settings = "SET max_parallel_maintenance_workers = $workers; SET temp_file_limit = '2MB'; SET maintenance_work_mem = '" . ($workers ? '128MB' : '1MB') . "'; ";

	like(($node->psql('postgres', "$settings CREATE INDEX never ON input USING gin (i)"))[2], qr/ERROR:  temporary file size exceeds "?temp_file_limit/, "temp_file_limit, $workers workers");
}

# cancel and termination, while it scans and while it writes
create_interrupt($node);
my ($control) = session($node);
fill_with('SELECT id, ARRAY[hashint4(id), id % 10, hashint4(-id), hashint4(id + 1000000)] AS i FROM generate_series(1, 1000000) id');
foreach my $workers (0, 3)
{
	$node->safe_psql('postgres', "ALTER TABLE input SET (parallel_workers = $workers)");
	foreach my $phase ('blocks_done > 0', 'tuples_done > 0')
	{
		foreach my $how ('cancel', 'terminate')
		{
			my ($psql, $pid) = session($node);

			$psql->query_until(qr/started/, "\\echo started\nCREATE INDEX never ON input USING gin (i);\n");
			$node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_progress_create_index WHERE pid = $pid AND $phase) OR NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid AND state = 'active')");
			cmp_ok(ask($control, "SELECT interrupt($pid, '$how')"), '<', 20000, "$how at $phase, $workers workers");
			eval { $psql->quit };
			$node->safe_psql('postgres', 'DROP INDEX IF EXISTS never');
		}
	}
}
$control->quit;
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_ls_tmpdir()"), '0', 'no temporary files are left');

# -------------------------------------------------------------- standby and crash

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('gin_standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', 'CREATE INDEX ours ON input USING gin (i); CHECKPOINT; REINDEX INDEX ours');
my $contents = $node->safe_psql('postgres', "SELECT gin_contents('ours')");
$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
is($standby->safe_psql('postgres', "SELECT gin_contents('ours')"), $contents, 'a standby has the index');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SELECT gin_contents('ours')"), $contents, 'and so does recovery after a crash');
is($node->safe_psql('postgres', "SELECT count(gin_index_check('ours')) >= 0, (gin_check('ours')).tids > 0"), 't|t', 'which is right');
$node->safe_psql('postgres', 'DROP INDEX ours; ALTER TABLE input SET UNLOGGED; CREATE INDEX ours ON input USING gin (i)');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SELECT (gin_check('ours')).tids"), '0', 'an index of an unlogged table is empty after a crash');

$standby->stop;

# a crash while an index is built, or once it is
fill_with('SELECT id, ARRAY[hashint4(id), id % 10, hashint4(-id), hashint4(id + 1000000)] AS i FROM generate_series(1, 1000000) id');
foreach my $workers (0, 3)
{
	$node->safe_psql('postgres', "ALTER TABLE input SET (parallel_workers = $workers); CHECKPOINT");
	foreach my $phase ('blocks_done > 0', 'tuples_done > 0')
	{
		my ($psql, $pid) = session($node);

		$psql->query_until(qr/started/, "\\echo started\nCREATE INDEX never ON input USING gin (i);\n");
		$node->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_progress_create_index WHERE pid = $pid AND $phase) OR NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid AND state = 'active')");
		$node->stop('immediate');
		eval { $psql->quit };
		$node->start;
		is($node->safe_psql('postgres', "SELECT count(*) - count(gin_check(oid)) FROM pg_class WHERE relname = 'never'"), '0', "a crash at $phase, $workers workers: there is no index, or a right one");
		is($node->safe_psql('postgres', 'DROP INDEX IF EXISTS never; SELECT count(*) FROM input'), '1000000', 'and the rows are there');
	}
}
fill_with('SELECT id, ARRAY[hashint4(id), hashint4(-id), hashint4(id + 1000000)] AS i FROM generate_series(1, 300000) id');
$node->safe_psql('postgres', 'ALTER TABLE input SET (parallel_workers = 3)');
is_same('after crashes', 'i', writers => 4);

# ------------------------------------------------------------------- a full disk

$node->stop;
my $full = start_on_disk($node);
my $database = $node->safe_psql('postgres', "SELECT '/base/' || oid || '/' FROM pg_database WHERE datname = 'postgres'");
my $files = "CHECKPOINT; SELECT string_agg(file, ' ' ORDER BY file) FROM pg_ls_dir('.$database') file WHERE file ~ '^[0-9.]+\$'; SELECT count(*) FROM pg_ls_tmpdir()";

foreach my $workers (0, 3)
{
	foreach my $folder ('/pgsql_tmp/', $database)
	{
		my $memory = $workers ? '128MB' : '4MB';
		my $settings = "SET maintenance_work_mem = '$memory'; SET max_parallel_maintenance_workers = $workers; ";
		my $before = $node->safe_psql('postgres', $files);

		append_to_file($full, $folder);
		like(($node->psql('postgres', "\\set VERBOSITY verbose\n${settings}CREATE INDEX never ON input USING gin (i)"))[2],
			qr/ERROR:  53100: could not (write to|extend) file .*No space left on device/, "no space in $folder, $workers workers");
		unlink($full) or die "$full: $!";
		is($node->safe_psql('postgres', $files), $before, 'no file is left');
		is_same('with space', 'i', settings => $settings);
	}
}
$node->stop;
done_testing();
