# Peak memory: not higher than PostgreSQL 15's at the same work_mem, whether the rows
# fit or not; and temp_file_limit is enforced if they do not.
#
# Each measurement has a process of its own: its peak resident memory (VmHWM) less
# its resident memory before the query.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = gpusort_node('memory', 'shared_buffers = 16MB', 'fsync = off', 'gpusort.verify = off');

# Memory consists of huge pages.  A block of rows is filled from both ends, so two of its pages may be
# hardly used, and so may the last one of what a sort needs besides.
my $huge_pages_kb = 3 * 2048;

# Rows of about 200 bytes.
my $nrows = 600000;
$node->safe_psql('postgres', qq{
	CREATE UNLOGGED TABLE rows AS
		SELECT hashint8extended(g, 1) AS big, hashint8(g)::float8 / 1000 AS real,
			md5(g::text)::uuid AS id, date '2000-01-01' + hashint4(g) % 3000 AS day,
			hashint4(g + 1) % 1000 AS num, md5((g + 2)::text) COLLATE "C" AS word,
			repeat('filler', 14) AS filler
		FROM generate_series(1, $nrows) g;
	ANALYZE rows;
});

# The peak in kB of a query that only sorts, the number of rows that the sort
# returned, and the engine, or PostgreSQL's method.
sub peak_of
{
	my ($columns, $order, $enabled, $work_mem) = @_;

	# count(s) keeps all columns in the rows that are sorted
	my $query = "SELECT count(s) FROM (SELECT $columns FROM rows ORDER BY $order OFFSET 0) s";
	my ($psql, $pid) = session($node,
		"SET gpusort.enabled = $enabled; SET gpusort.force = on; SET work_mem = '$work_mem'");

	# memory of the scan and of catalog caches is not counted
	ask($psql, 'SELECT count(*) FROM rows');
	ask($psql, "EXPLAIN $query");

	my $before_kb = memory_kb($pid, 'VmRSS');
	my $plan = ask($psql, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query");
	my $peak_kb = memory_kb($pid, 'VmHWM') - $before_kb;
	my ($given) = $plan =~ /Sort\)? \(actual rows=(\d+)(?:\.00)? loops=1\)/;
	my ($who) = $plan =~ /Engine: (\w+)/;
	($who) = $plan =~ /Sort Method: (.*?)  / if !$who;

	$psql->quit;
	return ($peak_kb, $given, $who);
}

# A checksum of all rows and their positions.
sub digest_of
{
	my ($order, $settings) = @_;

	return $node->safe_psql('postgres', qq{
		$settings;
		SELECT count(*), bit_xor(hashint8extended(place, uuid_hash_extended(id, 0)))
		FROM (SELECT id, row_number() OVER () AS place
			FROM (SELECT * FROM rows ORDER BY $order OFFSET 0) s) t});
}

# --------------------------------------------------------- rows that fit

# PostgreSQL needs less since: 16 sorts any column alone as datums, not as tuples; 17 has no
# headers of chunks.
my $is_15 = $node->pg_version < 16;

# [name, columns, order, ratio to a later PostgreSQL's]
my @cases = (
	[ 'bigint, whole rows', '*', 'big', 1.1 ],
	[ 'text "C", whole rows', '*', 'word', 1.1 ],
	[ 'uuid, whole rows', '*', 'id', 1.1 ],
	[ 'float8, whole rows', '*', 'real', 1.1 ],
	[ '(date, int DESC, text "C"), whole rows', '*', 'day, num DESC, word', 1.1 ],
	[ 'bigint alone', 'big', 'big', 1.02 ],
	[ 'float8 alone', 'real', 'real', 1.02 ],
	[ 'int alone', 'num', 'num', 1.02 ],
	[ 'uuid alone', 'id', 'id', 1.7 ],
	[ 'text "C" alone', 'word', 'word', 1.45 ]);

foreach my $case (@cases)
{
	my ($name, $columns, $order, $ratio) = @$case;
	my ($core_kb, $core_given, $core_method) = peak_of($columns, $order, 'off', '1GB');
	my ($kb, $given, $engine) = peak_of($columns, $order, 'on', '1GB');

	is("$given $engine", "$nrows cpu", "$name: all rows, by the engine");
	is("$core_given $core_method", "$nrows quicksort", "$name: PostgreSQL sorts in memory");
	cmp_ok($kb, '<=', int($core_kb * ($is_15 ? 1.02 : $ratio)) + $huge_pages_kb, sprintf('%s: peak %d kB, PostgreSQL %d kB (%.2f)',
		$name, $kb, $core_kb, $kb / $core_kb));
}

# ---------------------------------------------------- rows that do not fit

# 48 MB for about 130 MB: sorted runs on disk.
foreach my $case (
	[ 'bigint', 'big, id' ],
	[ 'text "C"', 'word' ],
	[ '(date, int DESC, text "C")', 'day, num DESC, word' ])
{
	my ($name, $order) = @$case;
	my ($core_kb, $core_given, $core_method) = peak_of('*', $order, 'off', '48MB');
	my ($kb, $given, $engine) = peak_of('*', $order, 'on', '48MB');

	is("$given $engine", "$nrows cpu", "$name in 48 MB: all rows, by the engine");
	is("$core_given $core_method", "$nrows external merge", "$name in 48 MB: PostgreSQL sorts on disk");
	cmp_ok($kb, '<=', int($core_kb * 1.1) + $huge_pages_kb, sprintf('%s in 48 MB: peak %d kB, PostgreSQL %d kB (%.2f)',
		$name, $kb, $core_kb, $kb / $core_kb));
	is( digest_of($order, "SET gpusort.force = on; SET work_mem = '48MB'"),
		digest_of($order, "SET gpusort.enabled = off; SET work_mem = '48MB'"),
		"$name in 48 MB: in the right order");
}

# Around the work_mem at which they fit.
foreach my $work_mem_mb (110, 120, 130)
{
	my ($core_kb) = peak_of('*', 'big', 'off', "${work_mem_mb}MB");
	my ($kb, $given, $engine) = peak_of('*', 'big', 'on', "${work_mem_mb}MB");

	is($given, $nrows, "in $work_mem_mb MB: all rows");
	cmp_ok($kb, '<=', int($core_kb * 1.1) + $huge_pages_kb,
		sprintf('in %d MB: peak %d kB, PostgreSQL %d kB (%.2f), sorted by %s', $work_mem_mb,
			$kb, $core_kb, $kb / $core_kb, $engine));
}

# ---------------------------------------------- temp_file_limit, log_temp_files

foreach my $enabled ('off', 'on')
{
	my ($psql, $pid) = session($node,
		"SET gpusort.enabled = $enabled; SET gpusort.force = on; SET work_mem = '48MB'");
	my $query = 'SELECT count(s) FROM (SELECT * FROM rows ORDER BY big OFFSET 0) s';

	is(ask($psql, "SET temp_file_limit = '1GB'; $query"), $nrows,
		"enabled $enabled: a sort within temp_file_limit");
	like(ask_error($psql, "SET temp_file_limit = '50MB'; $query"),
		qr/ERROR:  temporary file size exceeds "?temp_file_limit"? \(51200kB\)/,
		"enabled $enabled: a sort over temp_file_limit is refused");
	is(ask($psql, 'SELECT count(*) FROM pg_ls_tmpdir()'), '0', "enabled $enabled: and leaves no file");
	is(contexts_of($psql), '0', "enabled $enabled: nor memory");
	is(ask($psql, "SET temp_file_limit = -1; $query"), $nrows,
		"enabled $enabled: the session can sort");

	# log_temp_files: each file with its size, when it is deleted
	my $offset = -s $node->logfile;
	is(ask($psql, "SET log_temp_files = 0; $query"), $nrows, "enabled $enabled: files are logged");
	$psql->quit;
	my $log = slurp_file($node->logfile, $offset);
	my $logged = 0;
	$logged += $1 while $log =~ /LOG:  temporary file: path "[^"]*pgsql_tmp$pid\.\d+", size (\d+)/g;
	cmp_ok($logged, '>', 50 << 20, "enabled $enabled: with their size, $logged bytes");
}

# ------------------------------------------------------------- no memory left

# The system provides some more memory to the process, and then no more.
{
	my ($psql, $pid) = session($node, "SET gpusort.force = on; SET work_mem = '1GB'");
	my $query = 'SELECT count(s) FROM (SELECT * FROM rows ORDER BY big OFFSET 0) s';

	ask($psql, "EXPLAIN $query");
	contexts_of($psql);
	# whether memory is left to sort what has been read, or not
	foreach my $mb (70, 60, 56, 50, 40)
	{
		my $limit = (memory_kb($pid, 'VmSize') + $mb * 1024) * 1024;

		system_or_bail('prlimit', "--pid=$pid", "--as=$limit:");
		is(ask($psql, $query), $nrows, "no memory left after $mb MB: the rows go to disk");
		is(contexts_of($psql), '0', 'and nothing of the sort is left');
	}
	is(ask($psql, "SET work_mem = '16MB'; $query"), $nrows, 'with less work_mem, the session can sort');
	system_or_bail('prlimit', "--pid=$pid", '--as=unlimited:');
	is(ask($psql, "SET work_mem = '1GB'; $query"), $nrows, 'and with more again, once there is more');
	$psql->quit;
}

# ------------------------------------------------------------- idle sessions

# The memory of an idle session: its private memory, and the buffer pool that it shares with
# gpusortd.  (Pages of shared_buffers can be reported as private and are left out.)
sub kept_kb
{
	my ($pid) = @_;
	my ($kb, $pool_kb, $file) = (0, 0, '');

	foreach (split(/\n/, slurp_file("/proc/$pid/smaps")))
	{
		$file = $1 if /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+\s*(.*)$/;
		$pool_kb += $1 if $file =~ /memfd:gpusort/ && /^Rss:\s+(\d+) kB/;
		$kb += $1 if $file =~ m{^(\[heap\]|\[stack\]||.*\.so.*)$} && /^Private_Dirty:\s+(\d+) kB/;
	}
	return ($kb + $pool_kb, $pool_kb);
}

{
	my $allowed_kb = 200;
	my $query = 'SELECT count(s) FROM (SELECT * FROM rows ORDER BY day, word OFFSET 0) s';
	my $gpusort = "LOAD 'gpusort'; SET gpusort.device_min_rows = 0; SET gpusort.engine =";

	$node->append_conf('postgresql.conf', "session_preload_libraries = ''\nwork_mem = '1GB'\n"
		. "gpusort.device = host\ngpusort.device_idle = 5");
	$node->restart;
	$node->safe_psql('postgres', "$gpusort cuda; CREATE EXTENSION gpusort; $query");
	ok(wait_for_service($node, 'running'), 'gpusortd runs');

	my %sessions = map { $_ => [ session($node, $_ eq 'core' ? '' : "$gpusort $_") ] } 'core', 'cpu', 'cuda';
	my ($psql, $pid) = @{ $sessions{cuda} };

	ask($_->[0], "EXPLAIN $query") foreach values %sessions;
	my ($core_kb) = kept_kb($sessions{core}[1]);
	foreach ('cpu', 'cuda')
	{
		my ($kb, $pool_kb) = kept_kb($sessions{$_}[1]);

		cmp_ok($kb, '<', $core_kb + $allowed_kb, "a session that has planned, engine $_: $kb kB, PostgreSQL's $core_kb kB");
		is($pool_kb, 0, 'no buffer pool');
	}

	like(ask($psql, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query"), qr/Engine: cuda/, 'a sort on the device');
	is((kept_kb($pid))[1], 4096, 'uses a buffer pool');
	ask($_->[0], $query) foreach values %sessions;
	ok(poll(sub { (kept_kb($pid))[1] == 0 }), 'which is released while the session is idle');
	($core_kb) = kept_kb($sessions{core}[1]);
	foreach ('cpu', 'cuda')
	{
		my ($kb) = kept_kb($sessions{$_}[1]);

		cmp_ok($kb, '<', $core_kb + $allowed_kb, "a session that has sorted, engine $_: $kb kB, PostgreSQL's $core_kb kB");
	}
	foreach my $what ('again', 'at once')
	{
		like(ask($psql, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query"), qr/Engine: cuda/, "the session sorts on the device $what");
	}
	$_->[0]->quit foreach values %sessions;
}

$node->stop;
done_testing();
