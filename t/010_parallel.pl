# Participants of a parallel plan send their rows to one sort of gpusortd, or sort them and
# send them to the leader through streams: any number of participants, every kind of plan,
# and failures of each.  The device is the host's processor.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = PostgreSQL::Test::Cluster->new('parallel');
$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'gpusort'
	gpusort.device = host
	gpusort.engine = cuda
	gpusort.device_min_rows = 0
	gpusort.force = on
	gpusort.verify = on
	max_connections = 50
	max_worker_processes = 160
	max_parallel_workers = 150
	max_parallel_workers_per_gather = 8
	parallel_setup_cost = 0
	parallel_tuple_cost = 0
	min_parallel_table_scan_size = 0
	synchronize_seqscans = off
	shared_buffers = 64MB
	work_mem = 64MB
	autovacuum = off
	fsync = off
	jit = off
});
$node->start;

# id makes every order below total; some n and words are NULL.
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TYPE size AS ENUM ('s', 'l');
	ALTER TYPE size ADD VALUE 'm' BEFORE 'l';
	CREATE TYPE plain AS ENUM ('a', 'b', 'c');
});
$node->safe_psql('postgres', q{
	CREATE TABLE rows AS
		SELECT g AS id, hashint4(g) AS k, nullif(g % 997, 0) AS n, date '2020-01-01' + g % 300 AS day,
			hashint4(g)::bigint * g AS big, CASE WHEN g % 11 > 0 THEN md5((g / 3)::text) END COLLATE "C" AS word,
			g % 7 AS few, enum_range(NULL::size) AS sizes, (enum_range(NULL::size))[1 + g % 3] AS size, (g % 1000) / 8.0 AS num
		FROM generate_series(1, 100000) g;
	CREATE TABLE more AS SELECT * FROM rows UNION ALL SELECT * FROM rows;
	CREATE TABLE none (LIKE rows);
	CREATE TABLE parts (id int, k int) PARTITION BY RANGE (id);
	CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (30000);
	CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (30000) TO (60000);
	CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (60000) TO (200000);
	INSERT INTO parts SELECT id, k FROM rows;
	ALTER TABLE rows SET (parallel_workers = 3);
	ALTER TABLE none SET (parallel_workers = 3);
	ANALYZE;

	-- Fails at one row, wherever that is read.
	CREATE FUNCTION fail_at(id int, at int) RETURNS int VOLATILE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS $$
	BEGIN
		IF id = at THEN
			RAISE EXCEPTION 'row % fails', id;
		END IF;
		RETURN id;
	END $$;

	-- A label, of which one was added only when a participant asks for it.
	CREATE FUNCTION late(id int, at int, label text) RETURNS size VOLATILE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS $$
	BEGIN
		WHILE id = at AND NOT EXISTS (SELECT FROM pg_enum WHERE enumlabel = label) LOOP
			PERFORM pg_sleep(0.01);
		END LOOP;
		RETURN CASE WHEN id = at THEN label WHEN id % 3 = 0 THEN 'm' ELSE 'l' END;
	END $$;
});
create_linger($node);
create_fail_in($node, 500);
create_interrupt($node);
ok(wait_for_service($node, 'running'), 'gpusortd runs');

# A checksum of all rows in order.
sub digest_of
{
	my ($query) = @_;

	return "SELECT count(*), md5(string_agg(s::text, ',')) FROM ($query OFFSET 0) s";
}

# The checksum of all rows in order, by PostgreSQL alone.
my %right;

sub right_digest
{
	my ($query) = @_;

	return $right{$query} //= $node->safe_psql('postgres',
		'SET gpusort.enabled = off; SET max_parallel_workers_per_gather = 0; ' . digest_of($query));
}

# EXPLAIN ANALYZE.
sub analyzed
{
	my ($query, $settings) = @_;

	return $node->safe_psql('postgres', ($settings // '')
		  . "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $query");
}

# One job with rows of several participants, as EXPLAIN ANALYZE shows it.  On a
# busy machine one may have read them all before the others start.
sub is_shared
{
	my ($query, $settings, $what, $shared) = @_;
	my $plan;

	$shared //= qr/Gather Merge.*Parallel Custom Scan \(GpuSort\)(?=.*Engine: cuda).*Rows Sent to Shared Sort: /s;
	poll(sub { $plan = analyzed($query, $settings); $plan =~ $shared });
	like($plan, $shared, "$what: several send rows to one sort");
}

# ----------------------------------------------------------- all kinds of keys

my $by_key = 'SELECT id, k FROM rows ORDER BY k, id';
my $by_n = 'SELECT n FROM rows ORDER BY n';
my $by_text = 'SELECT word, id FROM rows ORDER BY word, id';

my %keys = (
	'an int' => $by_key,
	'a column alone, with NULLs' => $by_n,
	'the same, DESC' => 'SELECT n FROM rows ORDER BY n DESC',
	'the same, NULLS FIRST' => 'SELECT n FROM rows ORDER BY n NULLS FIRST',
	'text' => $by_text,
	'text alone' => 'SELECT word FROM rows ORDER BY word DESC NULLS LAST',
	'date and bigint, DESC' => 'SELECT day, big, id FROM rows ORDER BY day DESC, big DESC, id',
	'whole rows' => 'SELECT * FROM rows ORDER BY few, word, id',
	'numeric' => 'SELECT num, id FROM rows ORDER BY num, id',
	'an enum whose labels are placed' => 'SELECT size, id FROM rows ORDER BY size, id',
	'an enum alone' => 'SELECT (enum_range(NULL::plain))[1 + id % 3] AS e FROM rows ORDER BY e DESC',
	'an array of such' => 'SELECT sizes, id FROM rows ORDER BY sizes, size DESC, id',
	'text by C.UTF-8, verified' => 'SELECT word, id FROM rows ORDER BY word COLLATE "C.utf8", id',
	'rows longer than a worker can send' =>
		'SELECT id, CASE WHEN id % 997 = 0 THEN repeat(md5(id::text), 4000) END AS long FROM rows ORDER BY k, id',
	'an expression above the sort' => 'SELECT upper(word), id FROM rows ORDER BY id',
	'no rows' => 'SELECT * FROM none ORDER BY k, id');

foreach my $what (sort keys %keys)
{
	my $query = $keys{$what};

	is($node->safe_psql('postgres', digest_of($query)), right_digest($query), "$what: right rows");
	is_shared($query, '', $what) unless $what =~ /no rows|longer/;
}
is_idle($node, 'keys');

# Ties in the order of the participants, and within each in input order: each reads in
# order, so wherever id descends the next participant begins.
my $stable = q{SELECT few, count(*) FILTER (WHERE id < before) AS steps_back
	FROM (SELECT few, id, lag(id) OVER (PARTITION BY few ORDER BY place) AS before
		FROM (SELECT few, id, row_number() OVER () AS place FROM (SELECT few, id, word FROM rows ORDER BY few OFFSET 0) a) b) c
	GROUP BY few};
is($node->safe_psql('postgres', "SELECT count(*), max(steps_back) <= 3 FROM ($stable) s"), '7|t',
	'a stable sort of the rows of each participant, one after the other');

# ------------------------------------------- any number of workers, and leaders

foreach my $nworkers (0 .. 8)
{
	foreach my $leader ('on', 'off')
	{
		my $settings = "SET max_parallel_workers_per_gather = $nworkers; SET parallel_leader_participation = $leader; ";

		$node->safe_psql('postgres', "ALTER TABLE rows SET (parallel_workers = $nworkers)");
		is($node->safe_psql('postgres', $settings . digest_of($_)), right_digest($_),
			"$nworkers workers, leader $leader: $_")
		  foreach $by_key, $by_n, $by_text;
		is_shared($by_key, $settings, "$nworkers workers, leader $leader")
		  if $nworkers > 1 || ($nworkers == 1 && $leader eq 'on');
	}
}
$node->safe_psql('postgres', 'ALTER TABLE rows SET (parallel_workers = 3)');

foreach my $nworkers (0 .. 2)
{
	foreach my $leader ('on', 'off')
	{
		my $settings = "SET max_parallel_workers = $nworkers; SET parallel_leader_participation = $leader; ";

		is($node->safe_psql('postgres', $settings . digest_of($by_text)), right_digest($by_text),
			"$nworkers of 3 workers to be had, leader $leader");
		like(analyzed($by_key, $settings), qr/Workers Launched: $nworkers\n.*Engine: cuda/s, 'in one sort');
	}
}

unlike(analyzed('SELECT id, word FROM rows WHERE id < 5000 ORDER BY word, id', 'SET gpusort.device_min_rows = 1000000; '), qr/Rows Sent to Shared Sort/,
	'too few rows: each sorts its own');

# ------------------------------------------------------------ streams, no device

# Workers send sorted rows to the leader, which merges them: from runs on disk, if they exceed work_mem.
my $by_runs = "SET gpusort.engine = cpu; SET work_mem = '1MB'; ";
my $as_runs = qr/Parallel Custom Scan \(GpuSort\)[^\n]*\n +Sort Key[^\n]*\n +Sort Method: external merge  Disk[^\n]*\n +Engine: cpu\n.*Worker \d:  Sort Method: external merge  Disk[^\n]*\n +Engine: cpu\n +Rows Sent to Shared Sort: \d+\n +Sorted Rows: \d+\n/s;
my $temporary_files = 'SELECT count(*) FROM pg_ls_tmpdir()';

foreach my $what (sort keys %keys)
{
	my $query = $keys{$what};

	foreach my $work_mem ('256kB', '1MB', '3MB')
	{
		is($node->safe_psql('postgres', "$by_runs SET work_mem = '$work_mem'; " . digest_of($query)), right_digest($query),
			"$what, runs, work_mem $work_mem: right rows");
	}
}
is_shared($keys{$_}, $by_runs, "runs, $_", $as_runs) foreach 'text', 'whole rows', 'an enum whose labels are placed';
unlike(analyzed($by_text, "$by_runs SET $_; "), qr/Rows Sent to Shared Sort/, "$_: each returns its own rows")
  foreach 'parallel_leader_participation = off';
is($node->safe_psql('postgres', "$by_runs SELECT count(*), max(steps_back) <= 3 FROM ($stable) s"), '7|t',
	'runs: a stable sort of the rows of each participant, one after the other');
foreach my $nworkers (0 .. 3)
{
	my $settings = "$by_runs SET max_parallel_workers = $nworkers; ";

	is($node->safe_psql('postgres', $settings . digest_of($by_text)), right_digest($by_text), "runs, $nworkers of 3 workers to be had");
}
is($node->safe_psql('postgres', "$by_runs " . digest_of("$by_text LIMIT 50000")), right_digest("$by_text LIMIT 50000"), 'runs, a LIMIT');
is($node->safe_psql('postgres', "$by_runs BEGIN; DECLARE c CURSOR FOR $by_text; FETCH 1 FROM c; COMMIT; " . digest_of($by_text)),
	join("\n", $node->safe_psql('postgres', "SET gpusort.enabled = off; $by_text LIMIT 1"), right_digest($by_text)), 'runs, a cursor');

# Workers whose rows are in memory send them from there.
my $in_memory = "SET gpusort.engine = cpu; SET work_mem = '64MB'; ";
$node->safe_psql('postgres', 'ALTER TABLE rows SET (parallel_workers = 6)');
is_shared($keys{$_}, $in_memory, "rows in memory, $_",
	qr/Sort Method: [^\n]*sort  Memory: [^\n]*\n +Engine: cpu\n.*Worker \d:  Sort Method: [^\n]*sort  Memory[^\n]*\n +Engine: cpu\n +Rows Sent to Shared Sort: \d+\n +Sorted Rows: \d+\n/s)
  foreach 'text', 'whole rows', 'an enum whose labels are placed';
foreach my $what (sort keys %keys)
{
	is($node->safe_psql('postgres', "$in_memory SET work_mem = '$_'; " . digest_of($keys{$what})), right_digest($keys{$what}),
		"$what, 7 participants, work_mem $_: right rows")
	  foreach '1MB', '2MB', '4MB', '64MB';
}
is($node->safe_psql('postgres', "$in_memory SELECT count(*), max(steps_back) <= 6 FROM ($stable) s"), '7|t',
	'rows in memory: a stable sort of the rows of each participant, one after the other');
is_shared($keys{'a column alone, with NULLs'}, $in_memory, 'a column alone',
	qr/Engine: cpu\n.*Worker \d:  Sort Method: [^\n]*sort  Memory[^\n]*\n +Engine: cpu\n +Rows Sent to Shared Sort: \d+\n/s);

# The leader has codes of its texts, of which there are few, and the workers have too few texts to count them, and keys.
{
	my $query = q{SELECT count(*) FROM (SELECT id, thin(id, repeat(chr(97 + abs(k) % 5), 40)) COLLATE "C.utf8" AS long FROM rows ORDER BY long OFFSET 0) s};

	$node->safe_psql('postgres', q{
		CREATE FUNCTION thin(id int, word text) RETURNS text VOLATILE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS $$
		BEGIN
			RETURN CASE WHEN id % 100 = 0 OR pg_backend_pid()::text = current_setting('test.leader') THEN word END;
		END $$});
	is($node->safe_psql('postgres', "$in_memory SELECT set_config('test.leader', pg_backend_pid()::text, false) IS NULL; $query;"), "f\n100000",
		'a leader with a dictionary: right order');
}

# A cached plan, and a setting that changes: participants fall back before they have a key.
is($node->safe_psql('postgres', "$in_memory PREPARE q AS " . digest_of($keys{'text by C.UTF-8, verified'}) . "; EXECUTE q; SET gpusort.libc_collations = off; EXECUTE q"),
	join("\n", (right_digest($keys{'text by C.UTF-8, verified'})) x 2), 'a cached plan whose collation may not be used any more');

# Many workers merge for the leader; not if the keys of one are of another form: here those of a worker that has
# rows in order, which get no keys.
foreach my $nworkers (4, 5, 11, 16)
{
	my $settings = "$in_memory SET max_parallel_workers_per_gather = $nworkers; ";

	$node->safe_psql('postgres', "ALTER TABLE rows SET (parallel_workers = $nworkers)");
	my $nkeys = 0;

	foreach my $what (sort keys %keys)
	{
		# the numbers between the least and the most have half of the sizes each
		my @sizes = $nworkers == 4 || $nworkers == 16 ? ('256kB', '64MB') : (($nkeys++ + $nworkers) % 4 > 1 ? '256kB' : '64MB');

		is($node->safe_psql('postgres', "$settings SET work_mem = '$_'; " . digest_of($keys{$what})), right_digest($keys{$what}),
			"$what, $nworkers workers, work_mem $_: right rows")
		  foreach @sizes;
	}
	is($node->safe_psql('postgres', "$settings SELECT max(steps_back) <= $nworkers FROM ($stable) s"), 't',
		"$nworkers workers: a stable sort of the rows of each participant, one after the other");
	is($node->safe_psql('postgres', "$settings " . digest_of($_)), right_digest($_), "$nworkers workers, rows in order: $_")
	  foreach 'SELECT word, id FROM rows ORDER BY id / 30000, word, id', 'SELECT id, word FROM rows ORDER BY id, word',
		'SELECT id FROM rows WHERE id > 60000 ORDER BY id';
	is($node->safe_psql('postgres', "$settings BEGIN; DECLARE c CURSOR FOR $by_text; FETCH 1 FROM c; COMMIT; " . digest_of($by_text)),
		join("\n", $node->safe_psql('postgres', "SET gpusort.enabled = off; $by_text LIMIT 1"), right_digest($by_text)),
		"$nworkers workers, a cursor");
}
$node->safe_psql('postgres', 'ALTER TABLE rows SET (parallel_workers = 6)');
{
	my $loop = 'SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off; ';
	my $query = q{SELECT g, count(*), md5(string_agg(id::text, ',')) FROM generate_series(1, 20) g
		LEFT JOIN (SELECT id, few, word FROM rows ORDER BY word, id OFFSET 0) s ON s.few >= g GROUP BY g ORDER BY g};
	my $parameters = q{SELECT g, (SELECT md5(string_agg(id::text, ',')) FROM
		(SELECT id, word FROM rows WHERE id % 2 < g ORDER BY word, id OFFSET 0) s) FROM generate_series(1, 4) g};

	is($node->safe_psql('postgres', "$in_memory $loop $_"), $node->safe_psql('postgres', "SET gpusort.enabled = off; $loop $_"), "rows in memory, rescans: $_")
	  foreach $query, $parameters;
}
$node->safe_psql('postgres', 'ALTER TABLE rows SET (parallel_workers = 3)');

# The leader stops before it has all rows: the workers that wait to send more must end, also before a rescan.
{
	my $loop = "SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET statement_timeout = '60s'; ";
	my @queries = (
		'SELECT g, (SELECT id FROM (SELECT id, few, word FROM rows ORDER BY word, id OFFSET 0) s WHERE s.few >= g LIMIT 1) FROM generate_series(1, 5) g',
		'SELECT g FROM generate_series(1, 5) g WHERE EXISTS (SELECT FROM (SELECT id, few, word FROM rows ORDER BY word, id OFFSET 0) s WHERE s.few = g)');

	foreach my $memory ($by_runs, $in_memory)
	{
		is_shared($queries[0], "$memory $loop", 'rescans of a part', qr/loops=5.*Gather Merge.*Rows Sent to Shared Sort: /s);
		is($node->safe_psql('postgres', "$memory $loop $_"), $node->safe_psql('postgres', "SET gpusort.enabled = off; $loop $_"), "rescans of a part: $_")
		  foreach @queries;
	}
}

# The leader has returned a row, and the workers wait.
{
	my $workers = 'SELECT count(*) FROM pg_stat_activity WHERE leader_pid = %d AND pid <> leader_pid';
	my ($psql, $pid) = session($node, $in_memory);

	$node->safe_psql('postgres', 'ALTER TABLE more SET (parallel_workers = 6)');
	# each worker but the last ones may merge the rows of others
	foreach my $how ('cancel', ('terminate') x 4)
	{
		$psql->query_until(qr/started/, "\\echo started\nSELECT count(linger(id, 1)), count(s) FROM (SELECT * FROM more ORDER BY id % 3 <> 1, id OFFSET 0) s;\n");
		ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE leader_pid = $pid AND pid <> leader_pid AND wait_event_type = 'Extension'"),
			'workers wait for the leader');
		$node->safe_psql('postgres', "SELECT pg_${how}_backend(pid) FROM pg_stat_activity WHERE "
			  . ($how eq 'cancel' ? "pid = $pid" : "leader_pid = $pid AND pid <> leader_pid AND wait_event_type = 'Extension' ORDER BY random() LIMIT 1"));
		like(ask_error($psql, 'SELECT 1'),
			$how eq 'cancel' ? qr/ERROR:  canceling statement due to user request/ :
			qr/ERROR:  (terminating background worker "parallel worker" due to administrator command|lost connection to parallel worker)/,
			"$how");
		ok($node->poll_query_until('postgres', sprintf($workers, $pid), '0'), 'and the workers end');
	}
	is(ask($psql, digest_of($by_text)), right_digest($by_text), 'the session sorts again');
	$psql->quit;
	$node->safe_psql('postgres', 'ALTER TABLE more RESET (parallel_workers)');
}

# The leader merges its own runs on disk before, if they are many, and no worker's.
{
	my $settings = "SET gpusort.engine = cpu; SET work_mem = '128kB'; ";
	my $query = 'SELECT * FROM more ORDER BY id, word';

	is_shared($query, $settings, 'many runs', qr/Gather Merge.*Rows Sent to Shared Sort: /s);
	is($node->safe_psql('postgres', $settings . digest_of($query)), right_digest($query), 'many runs: right rows');
	is($node->safe_psql('postgres', "$settings SET temp_file_limit = '35MB'; " . digest_of($query)), right_digest($query),
		'many runs: the leader writes no worker\'s rows');
}

# Rows that are longer than what a stream sends at a time.
{
	my $long = q{SELECT id, repeat(coalesce(word, 'none'), CASE WHEN id % 400 = 0 THEN 5000 ELSE 1 END) AS word FROM rows WHERE id <= 40000 ORDER BY word, id};

	is_shared($long, $in_memory, 'long rows', qr/Engine: cpu\n.*Rows Sent to Shared Sort: /s);
	is($node->safe_psql('postgres', "$in_memory " . digest_of($long)), right_digest($long), 'long rows: right');
	is($node->safe_psql('postgres', "$by_runs " . digest_of($long)), right_digest($long), 'long rows from disk: right');
}

# Rescans delete the runs of the last time.
{
	my $loop = 'SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off; ';
	my $query = q{SELECT g, count(*), md5(string_agg(id::text, ',')) FROM generate_series(1, 4) g
		LEFT JOIN (SELECT id, few, word FROM rows ORDER BY word, id OFFSET 0) s ON s.few >= g GROUP BY g ORDER BY g};
	my $parameters = q{SELECT g, (SELECT md5(string_agg(id::text, ',')) FROM
		(SELECT id, word FROM rows WHERE id % 2 < g ORDER BY word, id OFFSET 0) s) FROM generate_series(1, 4) g};

	is_shared($query, "$by_runs $loop", 'runs below a nested loop', $as_runs);
	is($node->safe_psql('postgres', "$by_runs $loop $_"), $node->safe_psql('postgres', "SET gpusort.enabled = off; $loop $_"), "runs, rescans: $_")
	  foreach $query, $parameters;
}

# temp_file_limit holds for each participant.
like(ask_error((session($node, "$by_runs SET temp_file_limit = '1MB'"))[0], "\\set VERBOSITY verbose\n" . digest_of($by_text)),
	qr/ERROR:  53400: temporary file size exceeds/, 'runs: temp_file_limit');
ok($node->poll_query_until('postgres', $temporary_files, '0'), 'no file is left');

# Workers that start when the leader has merged all rows.
{
	my ($psql) = session($node, $by_runs);
	my $postmaster = postmaster_of($node);

	ask($psql, 'SELECT 1');
	kill 'STOP', $postmaster;
	$psql->query_until(qr/started/, "\\echo started\n" . digest_of($by_text) . ";\n");
	sleep 1.5;
	kill 'CONT', $postmaster;
	like($psql->query('SELECT 1'), qr/^\Q@{[right_digest($by_text)]}\E\n/, 'runs, late workers');
	$psql->quit;
}

# The leader waits for a worker, and is canceled; or the worker is terminated.
{
	my ($psql, $pid) = session($node, $by_runs);
	# whoever reads the row waits there; the leader then waits for it, unless it is the leader
	my $lingerer = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND $pid IN (pid, leader_pid)";
	my %done;

	foreach my $row (map { $_ * 7919 % 100000 } 1 .. 30)
	{
		my $how = $done{cancel} ? 'terminate' : 'cancel';
		my ($waits, $who);

		$psql->query_until(qr/started/, "\\echo started\n" . digest_of("SELECT linger(id, $row) AS id, word FROM rows ORDER BY word, 1") . ";\n");
		poll(sub { ($who = $node->safe_psql('postgres', $lingerer)) ne '' }) or die 'no participant waits';
		$waits = $who != $pid;
		ok($node->poll_query_until('postgres', "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid"), 'the leader waits for it') if $waits;
		if ($waits && $how eq 'terminate')
		{
			$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND leader_pid = $pid AND pid <> $pid");
			like(ask_error($psql, 'SELECT 1'),
				qr/ERROR:  (terminating background worker "parallel worker" due to administrator command|lost connection to parallel worker)/,
				'runs: terminated, the worker takes the query along');
		}
		else
		{
			my ($canceler) = session($node);

			ask($canceler, "SELECT interrupt($pid, 'cancel')");
			like(ask_error($psql, 'SELECT 1'), qr/ERROR:  canceling statement due to user request/, 'runs: canceled');
			$canceler->quit;
		}
		is(contexts_of($psql), '0', 'nothing is left in the leader');
		ok($node->poll_query_until('postgres', $temporary_files, '0'), 'no file is left');
		$done{$how} = 1 if $waits;
		last if $done{terminate};
	}
	ok($done{cancel} && $done{terminate}, 'runs: the leader waited for a worker, twice');
	is(ask($psql, digest_of($by_text)), right_digest($by_text), 'the session sorts again');
	$psql->quit;
}

# ------------------------------------------------------------- costs

# With default settings, workers are worth their cost if nothing is merged.
my $of_more = 'SELECT * FROM more ORDER BY k, id';
my $costs = 'SET parallel_setup_cost = 1000; SET parallel_tuple_cost = 0.1; ';
like(plan_of($node, $of_more, $costs), qr/^Gather Merge\n.*Parallel Custom Scan/s, 'the planner chooses workers for a shared sort');
unlike(plan_of($node, $of_more, $costs . $_), qr/Gather/, "but not with $_")
  foreach 'SET gpusort.engine = cpu; ', 'SET parallel_leader_participation = off; ', 'SET gpusort.planner_cost = off; ';

# The planner counts on the device from gpusort.device_min_rows on.
my $of_some = 'SELECT * FROM more WHERE id <= 40000 ORDER BY k, id';
my $serial = 'SET max_parallel_workers_per_gather = 0; ';
sub startup_cost
{
	my ($plan) = $node->safe_psql('postgres', "$_[0]EXPLAIN $of_some") =~ /cost=([\d.]+)/;
	return $plan;
}
like(plan_of($node, $of_some, $costs), qr/^Gather Merge\n.*Parallel Custom Scan/s, 'workers send rows to a device from a low number of rows on');
unlike(plan_of($node, $of_some, "${costs}SET gpusort.device_min_rows = 200000; "), qr/Gather/, 'but not from a higher one on');
cmp_ok(startup_cost($serial), '<', startup_cost("${serial}SET gpusort.device_min_rows = 200000; "), 'the cost is lower with a device from a low number of rows on');

# ------------------------------------------------------------ all kinds of plans

# A Gather Merge that is executed repeatedly with other parameters.
foreach my $leader ('on', 'off')
{
	my $rescans = "SET parallel_leader_participation = $leader; SET gpusort.enabled = %s; " . q{
		SELECT g, (SELECT string_agg(id::text, ',') FROM
			(SELECT id FROM rows WHERE few = g ORDER BY k, id OFFSET 14280) s)
		FROM generate_series(0, 6) g};

	is($node->safe_psql('postgres', sprintf($rescans, 'on')),
		$node->safe_psql('postgres', sprintf($rescans, 'off')), "rescans with parameters, leader $leader");

	# the inner side of a nested loop, without parameters; enable_material off
	my $loop = "SET parallel_leader_participation = $leader; SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off; ";
	my $query = q{SELECT g, count(*), md5(string_agg(id::text, ',')) FROM generate_series(1, 4) g
		LEFT JOIN (SELECT id, few FROM rows ORDER BY k, id OFFSET 0) s ON s.few >= g GROUP BY g ORDER BY g};

	like(plan_of($node, $query, $loop), qr/Nested Loop.*Gather Merge.*Parallel Custom Scan/s, 'below a nested loop');
	is($node->safe_psql('postgres', "$loop $query"),
		$node->safe_psql('postgres', "SET gpusort.enabled = off; $loop $query"), "rescans in a nested loop, leader $leader");
}

# [name, query, settings, plan]
my @plans = (
	[ 'partitions', 'SELECT id FROM parts ORDER BY k, id', '',
		qr/Gather Merge\n.*Parallel Custom Scan \(GpuSort\)\n.*Parallel Append/s ],
	[ 'two below a merge join', 'SELECT a.id FROM rows a JOIN parts b USING (id) ORDER BY a.id',
		'SET enable_hashjoin = off; SET enable_nestloop = off;',
		qr/Merge Join(.*Gather Merge[^>]*->  Parallel Custom Scan \(GpuSort\)[^>]*->  Parallel){2}/s ],
	[ 'a parallel hash join', 'SELECT a.id FROM rows a JOIN parts b USING (id) ORDER BY a.k, a.id',
		'SET enable_mergejoin = off; SET enable_nestloop = off;',
		qr/Gather Merge.*Parallel Custom Scan \(GpuSort\).*Parallel Hash Join/s ],
	[ 'a grouping', 'SELECT k % 1000 AS id, count(*) FROM rows GROUP BY 1 ORDER BY 1',
		'SET enable_hashagg = off;', qr/GroupAggregate.*Gather Merge.*Custom Scan \(GpuSort\)/s ],
	[ 'a merge join in the workers', 'SELECT a.id, b.id AS other FROM rows a JOIN rows b ON a.k = b.k ORDER BY a.k, a.id, b.id',
		'SET enable_hashjoin = off; SET enable_nestloop = off;', qr/Merge Join/ ],
	[ 'a LIMIT', 'SELECT id FROM rows ORDER BY k, id LIMIT 1000', '',
		qr/Limit\n.*Gather Merge\n.*->  Custom Scan \(GpuSort\)/s ]);

foreach (@plans)
{
	my ($name, $query, $settings, $plan) = @$_;

	like(plan_of($node, $query, $settings), $plan, "$name: the plan");
	is($node->safe_psql('postgres', "$settings " . digest_of($query)), right_digest($query), "$name: right rows");
}
is_idle($node, 'plans');

# A cursor, left in the middle; a prepared statement whose setting changes.
is($node->safe_psql('postgres', "BEGIN; DECLARE c CURSOR FOR $by_key; FETCH 1 FROM c; COMMIT; " . digest_of($by_n)),
	join("\n", $node->safe_psql('postgres', "SET gpusort.enabled = off; $by_key LIMIT 1"), right_digest($by_n)), 'a cursor');
is($node->safe_psql('postgres', 'SET plan_cache_mode = force_generic_plan; PREPARE q AS ' . digest_of($by_key)
		. '; EXECUTE q; SET gpusort.engine = cpu; EXECUTE q; SET gpusort.enabled = off; EXECUTE q'),
	join("\n", (right_digest($by_key)) x 3), 'a cached plan under other settings');

# ------------------------------------------------------- the device has no memory

my @queries = map { $keys{$_} } sort keys %keys;

foreach my $limit ('4MB', '6MB', '9MB')
{
	restart_service($node, 'gpusort.device_memory_limit' => $limit);
	foreach my $work_mem ('64MB', '256kB')
	{
		foreach my $leader ('on', 'off')
		{
			my $settings = "SET work_mem = '$work_mem'; SET parallel_leader_participation = $leader; SET gpusort.device_wait = 100; ";

			# every second query, so that each meets each of these settings
			foreach my $i (grep { ($_ + ($limit eq '6MB') + ($work_mem eq '64MB') + ($leader eq 'on')) % 2 } 0 .. $#queries)
			{
				is($node->safe_psql('postgres', $settings . digest_of($queries[$i])), right_digest($queries[$i]),
					"$limit of device memory, work_mem $work_mem, leader $leader: $queries[$i]");
			}
		}
	}
	is_idle($node, "$limit of device memory");
}
is_shared('SELECT * FROM rows ORDER BY few, word, id', '', 'what a worker cannot give it sorts itself',
	qr/Rows Sent to Shared Sort: \d+\n +Sorted Rows: \d+/);
restart_service($node, 'gpusort.device_memory_limit' => '0');

foreach ('allocate:1:none', 'allocate:2:none', 'allocate:4:none', 'pin:1:none', 'pin:3:none')
{
	restart_service($node, 'gpusort.service_fault' => $_);
	is($node->safe_psql('postgres', digest_of($by_text)), right_digest($by_text), "$_: right rows");
	is_idle($node, $_);
}

# ------------------------------------------------------------ gpusortd is lost

foreach my $fault ('copy_in:1:kill', 'copy_in:9:kill', 'copy_in:9:fail', 'pack:1:kill', 'sort_words:1:fail', 'gather:1:kill', 'copy_out:5:kill')
{
	foreach my $leader ('on', 'off')
	{
		my ($status, $rows, $error);

		restart_service($node, 'gpusort.service_fault' => $fault);
		($status, $rows, $error) = $node->psql('postgres',
			"\\set VERBOSITY verbose\nSET parallel_leader_participation = $leader; " . digest_of('SELECT * FROM rows ORDER BY word, id'));
		isnt($status, 0, "$fault, leader $leader: an error");
		like($error, qr/ERROR:  58000: sort engine "cuda" failed.*HINT: /s, 'with the reason');
	}
}
restart_service($node, 'gpusort.service_fault' => '');
is($node->safe_psql('postgres', digest_of($by_text)), right_digest($by_text), 'the device sorts again');

# ------------------------------------------------- participants that end, errors

my $lingering = 'SELECT linger(id, %d) AS id, k FROM rows ORDER BY k, 1';
my $lingers = q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND %d IN (pid, leader_pid))};
my ($control) = session($node);

foreach my $leader ('on', 'off')
{
	my ($psql, $pid) = session($node, "SET parallel_leader_participation = $leader");
	my @rows = map { $_ * 7919 % 100000 } 1 .. 3;

	# canceled, whichever participant waits; the leader then waits for it
	foreach my $row (@rows)
	{
		$psql->query_until(qr/started/, "\\echo started\n" . digest_of(sprintf($lingering, $row)) . ";\n");
		ok($node->poll_query_until('postgres', sprintf($lingers, $pid)), "leader $leader: a participant waits at row $row");
		sleep 0.3;
		ask($control, "SELECT interrupt($pid, 'cancel')");
		like(ask_error($psql, 'SELECT 1'), qr/ERROR:  canceling statement due to user request/, 'the query is canceled');
		is(contexts_of($psql), '0', 'nothing is left in the leader');
		is_idle($node, 'canceled');
	}

	# a worker that is terminated
	my $done = 0;
	foreach my $row (1 .. 20)
	{
		$psql->query_until(qr/started/, "\\echo started\n" . digest_of(sprintf($lingering, $row * 4999)) . ";\n");
		ok($node->poll_query_until('postgres', sprintf($lingers, $pid)), "leader $leader: a participant waits");
		my $worker = $node->safe_psql('postgres',
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND leader_pid = $pid AND pid <> $pid");
		if ($worker eq '')
		{
			ask($control, "SELECT interrupt($pid, 'cancel')");
			ask_error($psql, 'SELECT 1');
			next;
		}
		like(ask_error($psql, 'SELECT 1'),
			qr/ERROR:  (terminating background worker "parallel worker" due to administrator command|lost connection to parallel worker)/,
			'terminated, the worker takes the query along');
		is(contexts_of($psql), '0', 'nothing is left in the leader');
		is_idle($node, 'terminated');
		$done = 1;
		last;
	}
	ok($done, "leader $leader: a worker was terminated");

	# errors, of a worker or of the leader
	like(ask_error($psql, 'SELECT fail_in(id, true) FROM rows ORDER BY k, 1'), qr/ERROR:  row \d+ fails/, 'an error in a worker is that of the query');
	is_idle($node, 'an error in a worker');
	if ($leader eq 'on')
	{
		like(ask_error($psql, 'SELECT fail_in(id, false) FROM rows ORDER BY k, 1'), qr/ERROR:  row \d+ fails/, 'one in the leader too');
		is_idle($node, 'an error in the leader');
	}

	# errors of the other participants, whose job fails because of it, do not hide it
	my @hidden = grep { !/ERROR:  row \d+ fails/ }
	  map { ask_error($psql, 'SELECT fail_at(id, ' . $_ * 331 . ') FROM rows ORDER BY k, 1') } 1 .. 150;
	is_deeply(\@hidden, [], "leader $leader: the error of one is that of the query, not those of the others, whose job fails because of it");
	is_idle($node, 'errors of one');
	is(ask($psql, digest_of($by_key)), right_digest($by_key), 'the session sorts again');
	$psql->quit;
}

# A label that is added to an enum meanwhile: the participant that reads it falls back to
# a tuplesort, a worker with the rows that it has not sent, the leader with all.
foreach my $try (1 .. 6)
{
	my $leader = $try % 2 ? 'on' : 'off';
	my $query = digest_of('SELECT id, late(id, ' . $try * 13331 . ", 'late $try') AS l FROM rows ORDER BY l, id");
	my ($psql, $pid) = session($node, "SET parallel_leader_participation = $leader");

	$psql->query_until(qr/started/, "\\echo started\n$query;\n\\echo done\n");
	ok($node->poll_query_until('postgres', sprintf($lingers, $pid)), "leader $leader: a participant waits for a label");
	sleep 0.3;
	$node->safe_psql('postgres', "ALTER TYPE size ADD VALUE 'late $try' BEFORE 's'");
	my $got = $psql->query('SELECT 1');
	$got =~ s/\s*\b1\s*$//;
	$got =~ s/\s*done\s*//;
	is($got, $node->safe_psql('postgres', "SET gpusort.enabled = off; SET max_parallel_workers_per_gather = 0; $query"),
		'it is in its position');
	$psql->quit;
	is_idle($node, 'a late label');
}

# Canceled while the device is slow: uploading, sorting, returning rows.
foreach my $where ('copy_in:3', 'pack:1', 'sort_words:1', 'gather:1', 'copy_out:5')
{
	my $psql = interrupt_delayed($node, $control, $where, 'cancel', digest_of('SELECT * FROM rows ORDER BY word, id'));

	like(ask_error($psql, 'SELECT 1'), qr/ERROR:  canceling statement due to user request/, 'the query was canceled');
	is_idle($node, "canceled in $where");
	$psql->quit;
}

# Canceled while the leader waits for the device, and all others for the leader.
restart_service($node, 'gpusort.service_fault' => '', 'gpusort.device_memory_limit' => '30MB', 'gpusort.device_park_limit' => 0);
foreach my $leader ('on', 'off')
{
	my ($holder) = session($node, 'SET max_parallel_workers_per_gather = 0');
	my ($psql, $pid) = session($node, "SET parallel_leader_participation = $leader; SET gpusort.device_wait = '1min'");

	ask($holder, 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM rows ORDER BY word, id; FETCH 1 FROM c');
	$psql->query_until(qr/started/, "\\echo started\n" . digest_of('SELECT * FROM rows ORDER BY word, id') . ";\n");
	ok($node->poll_query_until('postgres', 'SELECT waiting FROM gpusort_service_status()', '1'), "leader $leader: a sort waits for memory");
	ask($control, "SELECT interrupt($pid, 'cancel')");
	like(ask_error($psql, 'SELECT 1'), qr/ERROR:  canceling statement due to user request/, 'the query was canceled');

	# it waits again, until there is memory; or not so long
	$psql->query_until(qr/started/, "\\echo started\n" . digest_of($by_text) . ";\n");
	ok($node->poll_query_until('postgres', 'SELECT waiting FROM gpusort_service_status()', '1'), 'the next one waits, too');
	ask($holder, 'COMMIT');
	like($psql->query('SELECT 1'), qr/^\Q$right{$by_text}\E\n/, 'and gets it');
	ask($holder, 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM rows ORDER BY word, id; FETCH 1 FROM c');
	is(ask($psql, 'SET gpusort.device_wait = 50; ' . digest_of($by_text)), $right{$by_text}, 'or each sorts its own rows');
	unlike($psql->query('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM rows ORDER BY word, id'), qr/Engine: cuda/,
		'and does not wait for the device once more');

	# in runs, of keys that were made for a device, if the leader wanted a job and has none
	if ($leader eq 'on')
	{
		my $settings = "SET work_mem = '1MB'; SET gpusort.device_wait = 50; ";

		is_shared('SELECT * FROM rows ORDER BY word, id', $settings, 'runs instead of a job', qr/Engine: cpu\n +Device Not Used: .*Rows Sent to Shared Sort: /s);
		is($node->safe_psql('postgres', $settings . digest_of($_)), right_digest($_), 'runs instead of a job: right rows')
		  foreach $by_text, $keys{numeric}, $keys{'whole rows'};
	}
	$psql->quit;
	$holder->quit;
	is_idle($node, 'waiting');
}
restart_service($node, 'gpusort.device_memory_limit' => '0');

# ------------------------------------------------------------- many at a time

right_digest($_) foreach $by_key, $by_n;
$node->pgbench('-n -c 16 -j 2 -t 3', 0, [qr{actually processed: 48/48}], [qr{^$}], '16 sessions of up to 9 participants at once',
	{ '010_many' => join('', map {
			my ($count, $digest) = split(/\|/, right_digest($_));
			"SELECT 1 / (count = $count AND md5 = '$digest')::int FROM (" . digest_of($_) . ") d;\n" } $by_key, $by_n) });
is_idle($node, '16 sessions');
ok(!$node->log_contains('server process .* was terminated|reinitializing|TRAP: |PANIC: '), 'no process of the server has crashed');

$node->stop;
done_testing();
