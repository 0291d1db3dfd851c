# Participants of a parallel plan return ranges of the rows that all have sorted: interrupts, errors
# and crashes while they read, wait, and return; on both engines, with a leader that takes part or not.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('ranges');
$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
$node->append_conf('postgresql.conf', q{
	shared_preload_libraries = 'gpusort'
	gpusort.device = host
	gpusort.device_min_rows = 0
	gpusort.force = on
	gpusort.verify = on
	restart_after_crash = on
	max_connections = 50
	max_worker_processes = 40
	max_parallel_workers = 32
	max_parallel_workers_per_gather = 3
	parallel_setup_cost = 0
	parallel_tuple_cost = 0
	min_parallel_table_scan_size = 0
	synchronize_seqscans = off
	work_mem = 1MB
	autovacuum = off
	fsync = off
	jit = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE rows AS SELECT g AS id, g * 7919 % 1000 AS k, hashint4(g) AS v, md5(g::text) AS word FROM generate_series(1, 60000) g;
	ALTER TABLE rows SET (parallel_workers = 3);
	ANALYZE rows;
});
create_linger($node);
create_fail_in($node, 499);
create_interrupt($node);
$node->safe_psql('postgres', q{
	-- a leader that is fast would sort and return all rows alone
	CREATE FUNCTION with_worker(id int) RETURNS int VOLATILE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS $$
	BEGIN
		WHILE id = 30000 AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = pg_backend_pid() AND leader_pid <> pid
			OR leader_pid = pg_backend_pid() AND pid <> leader_pid AND wait_event_type = 'Extension') LOOP
			PERFORM pg_stat_clear_snapshot(), pg_sleep(0.01);
		END LOOP;
		RETURN id;
	END $$;
});
ok(wait_for_service($node, 'running'), 'gpusortd runs');

# The rows are read by f, and returned through g.
sub ranked
{
	my ($read, $returned) = @_;

	return sprintf('SELECT count(*), sum(hashint8(n + id)) FROM (SELECT %s AS id, rank() OVER (PARTITION BY k ORDER BY v, word) AS n'
		  . ' FROM rows WHERE %s > 0) s', $returned, $read);
}

my $query = ranked('id', 'id');
my $right = $node->safe_psql('postgres', "SET gpusort.enabled = off; SET max_parallel_workers_per_gather = 0; $query");
my $files = q{SELECT count(*) FROM pg_ls_tmpdir()};
my ($control) = session($node);

foreach my $engine ('cpu', 'cuda')
{
	foreach my $leader ('on', 'off')
	{
		my $title = "$engine, leader $leader";
		my ($psql, $pid) = session($node, "SET gpusort.engine = $engine; SET parallel_leader_participation = $leader");
		my $lingers = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND $pid IN (pid, leader_pid))";

		like(ask($psql, "EXPLAIN $query"), qr/Range Key: rows\.k|Range Key: k/, "$title: by ranges");
		is(ask($psql, $query), $right, "$title: right");

		# while rows are read, and while they are returned
		foreach my $where ([ 'read', 'linger(id, %d)', 'id' ], [ 'return', 'with_worker(id)', 'linger(id, %d)' ])
		{
			my ($phase, $read, $returned) = @$where;

			foreach my $how ('cancel', 'terminate a worker')
			{
				my $done = 0;

				foreach my $row (map { $_ * 4999 % 60000 } 1 .. 20)
				{
					$psql->query_until(qr/started/, "\\echo started\n" . ranked(map { s/%d/$row/r } $read, $returned) . ";\n");
					ok($node->poll_query_until('postgres', $lingers), "$title, $phase: a participant waits");
					if ($how eq 'cancel')
					{
						ask($control, "SELECT interrupt($pid, 'cancel')");
						like(ask_error($psql, 'SELECT 1'), qr/ERROR:  canceling statement due to user request/, "$title, $phase: canceled");
						$done = 1;
					}
					elsif ($node->safe_psql('postgres', "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
						  . " WHERE wait_event = 'PgSleep' AND leader_pid = $pid AND pid <> $pid") ne '')
					{
						like(ask_error($psql, 'SELECT 1'),
							qr/ERROR:  (terminating background worker "parallel worker" due to administrator command|lost connection to parallel worker)/,
							"$title, $phase: terminated, the worker takes the query along");
						$done = 1;
					}
					else
					{
						ask($control, "SELECT interrupt($pid, 'cancel')");
						ask_error($psql, 'SELECT 1');
					}
					last if $done;
				}
				ok($done, "$title, $phase: $how");
				is(contexts_of($psql), '0', 'nothing is left in the leader');
				ok($node->poll_query_until('postgres', $files, '0'), 'no file is left');
			}

			like(ask_error($psql, ranked(map { s/linger\(id, %d\)/fail_in(id, true)/r } $read, $returned)),
				qr/ERROR:  row \d+ fails/, "$title, $phase: an error in a worker is that of the query");
			like(ask_error($psql, ranked(map { s/linger\(id, %d\)/fail_in(id, false)/r } $read, $returned)),
				qr/ERROR:  row \d+ fails/, "$title, $phase: one in the leader too") if $leader eq 'on';
			ok($node->poll_query_until('postgres', $files, '0'), 'no file is left');
		}
		is(ask($psql, $query), $right, "$title: right again");

		# the first rows only, and a rescan of the Gather
		is(ask($psql, 'SELECT count(*) FROM (SELECT rank() OVER (PARTITION BY k ORDER BY v) AS n FROM rows LIMIT 5) s'), '5', "$title: LIMIT");
		is(ask($psql, 'SET enable_material = off; SELECT sum(n) FROM generate_series(1, 3) i, LATERAL (SELECT count(*) AS n FROM (SELECT DISTINCT ON (k) k, v FROM rows ORDER BY k, v) s'
				  . ' WHERE v % 2 < i) c'), '3000', "$title: DISTINCT ON, again and again");
		$psql->quit;
	}
}

# Between both phases each participant writes its rows to files, or what is left of them, and waits for the others.  One
# that is stopped keeps them there: it waits for another one, which holds at a row, and does not notice that it is done.
$node->safe_psql('postgres', q{
	CREATE FUNCTION hold(id int) RETURNS int VOLATILE PARALLEL SAFE LANGUAGE plpgsql COST 1 AS $$
	BEGIN
		WHILE id = 30000 AND (pg_stat_file('released', true)).size IS NULL LOOP
			PERFORM pg_sleep(0.01);
		END LOOP;
		RETURN id;
	END $$;
	CREATE FUNCTION cancel_others(session int, stopped int) RETURNS numeric LANGUAGE plpgsql AS $$
	DECLARE
		start timestamptz := clock_timestamp();
	BEGIN
		PERFORM pg_cancel_backend(session);
		LOOP
			PERFORM pg_stat_clear_snapshot();
			EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity
				WHERE session IN (pid, leader_pid) AND pid <> stopped AND wait_event_type = 'Extension');
			IF clock_timestamp() > start + interval '1 minute' THEN
				RAISE 'an interrupt has no effect';
			END IF;
			PERFORM pg_sleep(0.0005);
		END LOOP;
		RETURN round(extract(epoch FROM clock_timestamp() - start) * 1000, 1);
	END $$;
});

# Calls a function while a session and its workers are in that phase, with the process that is stopped and another worker.
sub while_shared
{
	my ($psql, $pid, $nsorters, $call) = @_;
	my $released = $node->data_dir . '/released';
	my $waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND $pid IN (pid, leader_pid) ORDER BY pid = $pid";
	my @waiting;
	my $wait_for = sub {
		my ($count) = @_;

		poll(sub { @waiting = split /\n/, $node->safe_psql('postgres', $waiting); @waiting == $count });
	};

	$psql->query_until(qr/started/, "\\echo started\n" . ranked('hold(id)', 'id') . ";\n");
	ok($wait_for->($nsorters - 1), 'all but one wait until it has sorted, too');
	my $stopped = $waiting[0];
	kill 'STOP', $stopped;
	append_to_file($released, 'x');
	my $is_shared = $wait_for->($nsorters);
	$call->($stopped, (grep { $_ != $stopped } @waiting)[0]);
	kill 'CONT', $stopped;
	unlink $released;
	ok($is_shared, 'all but one have shared their rows');
	return;
}

foreach my $work_mem ('64kB', '64MB')
{
	foreach my $leader ('on', 'off')
	{
		my $title = "work_mem $work_mem, leader $leader, share";
		my ($psql, $pid) = session($node, "SET gpusort.engine = cpu; SET work_mem = '$work_mem'; SET parallel_leader_participation = $leader");
		my $nsorters = $leader eq 'on' ? 4 : 3;
		my $terminated = qr/ERROR:  (terminating background worker "parallel worker" due to administrator command|lost connection to parallel worker)/;
		my $ms;

		while_shared($psql, $pid, $nsorters, sub { $node->safe_psql('postgres', "SELECT pg_terminate_backend($_[1])") });
		like(ask_error($psql, 'SELECT 1'), $terminated, "$title: a worker that has shared its rows is terminated");
		while_shared($psql, $pid, $nsorters, sub { $node->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])") });
		like(ask_error($psql, 'SELECT 1'), $terminated, "$title: one that has not");

		# a busy machine may be too slow
		foreach (1 .. 5)
		{
			while_shared($psql, $pid, $nsorters, sub { $ms = ask($control, "SELECT cancel_others($pid, $_[0])") });
			like(ask_error($psql, 'SELECT 1'), qr/ERROR:  canceling statement due to user request/, "$title: canceled");
			last if $ms < 100;
		}
		cmp_ok($ms, '<', 100, "$title: canceled within 100 ms");
		is(ask($psql, $query), $right, "$title: right again");
		is(contexts_of($psql), '0', 'nothing is left in the leader');
		ok($node->poll_query_until('postgres', $files, '0'), 'no file is left');
		$psql->quit;
	}
}

# Each participant sees other values of a column with few, and one sees no rows.
my $icu = $node->safe_psql('postgres', "SELECT count(*) FROM pg_collation WHERE collname = 'en-x-icu'") ? 'en-x-icu' : 'C';

$node->safe_psql('postgres', qq{
	CREATE TABLE rare AS SELECT g AS id, (CASE WHEN g % 103 = 0 THEN 'rare ' || g / 103 % 150 ELSE 'often ' || g % 50 END) COLLATE "$icu" AS k, hashint4(g) AS v
		FROM generate_series(1, 60000) g;
	CREATE TABLE parted (id int, k text COLLATE "$icu", v int) PARTITION BY RANGE (id);
	CREATE TABLE first_part PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (50000);
	CREATE TABLE last_part PARTITION OF parted FOR VALUES FROM (50000) TO (MAXVALUE);
	INSERT INTO parted SELECT * FROM rare;
	ANALYZE rare, parted;
});
foreach my $settings ('', 'SET gpusort.engine = cpu', 'SET gpusort.engine = cuda', 'SET gpusort.force = off; SET parallel_tuple_cost = 0; SET work_mem = 256; SET gpusort.min_rows = 0')
{
	foreach my $table ('rare', 'parted', '(SELECT * FROM first_part UNION ALL SELECT * FROM last_part)')
	{
		my $windows = "SELECT sum(hashint8(n * 1000003 + id)) FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY v, id) AS n FROM $table r) s";
		my $groups = "SELECT md5(string_agg(ids::text, ' ' ORDER BY ids)) FROM (SELECT array_agg(id ORDER BY v, id) AS ids FROM $table r GROUP BY k) s";

		is($node->safe_psql('postgres', "$settings; $windows; $groups"),
			$node->safe_psql('postgres', "SET gpusort.enabled = off; SET max_parallel_workers_per_gather = 0; $windows; $groups"), "$table: right, $settings");
	}
}

# The leader may read another child of an Append first, while workers wait for nothing of it.
is($node->safe_psql('postgres', "SET gpusort.engine = cuda; SET statement_timeout = '60s'; SELECT count(*) FROM (SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY v) FROM rare GROUP BY k"
	. ' UNION ALL SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY v) FROM parted GROUP BY k LIMIT 10) s'), '10', 'below an Append, with a LIMIT');

# The middle of a group: of many rows, of few, and of so many that they exceed work_mem.
foreach my $settings ('engine = cpu', 'engine = cuda')
{
	foreach my $group ('k % 2', 'k', 'id / 5')
	{
		my $medians = 'SELECT count(*), sum(hashint4(g) # hashint4(m)) FROM (SELECT g, percentile_disc(0.5) WITHIN GROUP (ORDER BY v DESC) AS m FROM'
		  . " (SELECT $group AS g, v FROM rows WHERE with_worker(id) > 0) r GROUP BY g) s";

		like($node->safe_psql('postgres', "EXPLAIN $medians"), qr/Rows per Range Key: middle/, "median by $group: only the rows in the middle");
		is($node->safe_psql('postgres', "SET gpusort.$settings; SET work_mem = '64kB'; $medians"),
			$node->safe_psql('postgres', "SET gpusort.enabled = off; SET max_parallel_workers_per_gather = 0; " . ($medians =~ s/WHERE with_worker\(id\) > 0//r)),
			"median by $group: right, $settings");
	}
}

# Medians of integers, numerics with a scale, dates and timestamps: min() and max() of the rows in the middle, in every way in which these are found.
$node->safe_psql('postgres', q{
	CREATE TABLE integers AS SELECT g AS id, hashint4(g) AS i, (hashint4(g) % 1000)::int2 AS s, CASE WHEN g % 7 > 0 THEN hashint8extended(g, 1) END AS l, hashint4(g) / 7.0::float8 AS f, (hashint4(g) / 7)::numeric(14, 2) AS n, (hashint4(g) / 7)::numeric AS m,
			date '2020-01-01' + hashint4(g) % 100000 AS d, timestamp '2020-01-01' + hashint4(g) % 1000000 * interval '1 s' AS t, CASE WHEN g % 1000 = 0 THEN '-infinity' ELSE now() + hashint4(g) * interval '1 s' END AS z
		FROM generate_series(1, 60000) g;
	CREATE TABLE large AS SELECT i::bigint FROM integers;
	ALTER TABLE integers SET (parallel_workers = 3);
	ALTER TABLE large SET (parallel_workers = 3);
	ANALYZE integers, large;
	CREATE FUNCTION digit_less(int, int) RETURNS bool IMMUTABLE PARALLEL SAFE LANGUAGE sql AS 'SELECT abs($1 % 10000) < abs($2 % 10000)';
	CREATE FUNCTION digit_greater(int, int) RETURNS bool IMMUTABLE PARALLEL SAFE LANGUAGE sql AS 'SELECT abs($1 % 10000) > abs($2 % 10000)';
	CREATE FUNCTION digit_equal(int, int) RETURNS bool IMMUTABLE PARALLEL SAFE LANGUAGE sql AS 'SELECT abs($1 % 10000) = abs($2 % 10000)';
	CREATE FUNCTION digit_compare(int, int) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE sql AS 'SELECT btint4cmp(abs($1 % 10000), abs($2 % 10000))';
	CREATE OPERATOR |<| (FUNCTION = digit_less, LEFTARG = int, RIGHTARG = int, COMMUTATOR = |>|);
	CREATE OPERATOR |>| (FUNCTION = digit_greater, LEFTARG = int, RIGHTARG = int, COMMUTATOR = |<|);
	CREATE OPERATOR |=| (FUNCTION = digit_equal, LEFTARG = int, RIGHTARG = int, COMMUTATOR = |=|);
	CREATE OPERATOR CLASS digit_ops FOR TYPE int USING btree AS OPERATOR 1 |<|, OPERATOR 3 |=|, OPERATOR 5 |>|, FUNCTION 1 digit_compare(int, int);
	CREATE FUNCTION in_function(query text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE result text; BEGIN EXECUTE query INTO result; RETURN result; END $$;
});
foreach my $case (
	[ 'percentile_cont(0.5) WITHIN GROUP (ORDER BY i)', 1 ], [ 'percentile_cont(0.5) WITHIN GROUP (ORDER BY l DESC)', 1 ],
	[ 'percentile_disc(0.5) WITHIN GROUP (ORDER BY s DESC NULLS LAST), -percentile_cont(0.5) WITHIN GROUP (ORDER BY s DESC NULLS LAST)', 1 ],
	[ 'percentile_disc(0.5) WITHIN GROUP (ORDER BY l), percentile_cont(0.5) WITHIN GROUP (ORDER BY l)', 1 ], [ 'percentile_disc(0.5) WITHIN GROUP (ORDER BY i::float8)', 1 ],
	[ 'percentile_cont(0.5) WITHIN GROUP (ORDER BY n), percentile_disc(0.5) WITHIN GROUP (ORDER BY n)', 1 ], [ 'percentile_disc(0.5) WITHIN GROUP (ORDER BY m)', 0 ],
	[ 'percentile_disc(0.5) WITHIN GROUP (ORDER BY d DESC)', 1 ], [ 'percentile_disc(0.5) WITHIN GROUP (ORDER BY t)', 1 ], [ 'percentile_disc(0.5) WITHIN GROUP (ORDER BY z)', 1 ],
	[ 'percentile_cont(0.5) WITHIN GROUP (ORDER BY f)', 0 ], [ 'abs(percentile_disc(0.5) WITHIN GROUP (ORDER BY i USING |<|) % 10000)', 0 ])
{
	my ($medians, $replaced) = @$case;

	foreach my $group ('id % 2', 'id / 5', 'id / 2 % 10000', 'id')
	{
		my $from = "FROM (SELECT $group AS g, * FROM integers) r GROUP BY g HAVING count(*) > 0";
		my $query = "SELECT md5(string_agg(s::text, ' ' ORDER BY g)) FROM (SELECT g, $medians $from) s";

		(my $ranges = $query) =~ s/ HAVING count\(\*\) > 0//;
		my $right = $node->safe_psql('postgres', "SET gpusort.enabled = off; SET max_parallel_workers_per_gather = 0; $query");
		my $explained = $node->safe_psql('postgres', "EXPLAIN (VERBOSE) $ranges");

		like($explained, qr/Rows per Range Key: middle/, "$medians by $group: only the rows in the middle");
		is($explained =~ /Output:.*\bmin\(|Output:.*\bmax\(/ ? 1 : 0, $replaced, "$medians by $group: min() and max() if equal values are identical");
		foreach my $settings ('gpusort.engine = cpu', 'gpusort.engine = cuda', "work_mem = '64kB'", 'max_parallel_workers = 0', 'gpusort.verify = on')
		{
			is($node->safe_psql('postgres', "SET $settings; $ranges"), $right, "$medians by $group: right, $settings");
		}
		is($node->safe_psql('postgres', "SET work_mem = '64kB'; SELECT in_function(\$\$$ranges\$\$)"), $right, "$medians by $group: right in a function");
	}
}

# A numeric may exceed double precision, if not its declaration.
$node->safe_psql('postgres', q{
	CREATE TABLE numerics AS SELECT g AS id, g % 100 AS k, g::numeric AS a, g::numeric(14, 2) AS b, g::numeric(400, 2) AS c, round(g::numeric, -1)::numeric(5, -1) AS d, 0::numeric(5, 400) AS e FROM generate_series(1, 60000) g;
	ALTER TABLE numerics SET (parallel_workers = 3);
	ANALYZE numerics;
});
foreach my $case ([ 'a', 0 ], [ 'b', 1 ], [ 'c', 0 ], [ 'd', 0 ], [ 'e', 0 ])
{
	my ($column, $middle) = @$case;
	my $medians = "SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY $column) FROM numerics GROUP BY k";

	is($node->safe_psql('postgres', "EXPLAIN (VERBOSE) $medians") =~ /min\(.*Rows per Range Key: middle/s ? 1 : 0, $middle, "$medians: only the middle, if no value can exceed double precision");
}

# Columns that a join makes equal may have two types.
my $joined = 'SELECT a.s, percentile_disc(0.5) WITHIN GROUP (ORDER BY a.i) AS d, percentile_cont(0.5) WITHIN GROUP (ORDER BY b.i) AS c FROM integers a JOIN large b ON a.i = b.i GROUP BY a.s';
my $explained = $node->safe_psql('postgres', "EXPLAIN (VERBOSE) $joined");
ok($explained =~ /Output:.*percentile_disc.*Rows per Range Key: middle/s && $explained !~ /\bmin\(/, 'medians of two types are not replaced');
is($node->safe_psql('postgres', "SELECT md5(string_agg(r::text, ' ' ORDER BY s)) FROM ($joined) r"),
	$node->safe_psql('postgres', "SET gpusort.enabled = off; SET max_parallel_workers_per_gather = 0; SELECT md5(string_agg(r::text, ' ' ORDER BY s)) FROM ($joined) r"), 'and right');

# EXPLAIN (GPUSORT) walks the finished plan again.
like($node->safe_psql('postgres', "SET gpusort.force = off; SET gpusort.min_rows = 15000; SET parallel_tuple_cost = 1;"
	. ' EXPLAIN (GPUSORT) SELECT * FROM (SELECT s, percentile_cont(0.5) WITHIN GROUP (ORDER BY i) FROM integers GROUP BY s OFFSET 0) r ORDER BY 2'),
	qr/GpuSort Not Used.*Rows per Range Key: middle/s, 'with a sort that is not replaced above it') if $node->pg_version >= 18;

# The first rows of each group: of few groups, others are not written to files.
foreach my $case ([ 'k % 100', 1 ], [ 'k % 100', 3 ], [ 'nullif(k % 100, 5)::text', 2 ], [ 'k', 2 ])
{
	my ($group, $limit) = @$case;
	my $rows = "(SELECT id, $group AS g, v, repeat('x', 50) AS pad FROM rows WHERE with_worker(id) > 0) r";
	my $first = "SELECT count(*), sum(hashint8(id)) FROM " . ($limit == 1 ? "(SELECT DISTINCT ON (g) * FROM $rows ORDER BY g, v DESC, id) s"
		: "(SELECT *, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS n FROM $rows) s WHERE n <= $limit");
	my $settings = "SET gpusort.engine = cpu; SET work_mem = '256kB'";
	my $explained = $node->safe_psql('postgres', "$settings; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $first");
	my $disk = 0;

	like($explained, qr/Rows per Range Key: $limit/, "first $limit by $group: only these");
	$disk += $1 while $explained =~ /external merge  Disk: (\d+)kB/g;
	cmp_ok($disk, '<', 400, "first $limit by $group: files of $disk kB") if $group =~ /100/;
	is($node->safe_psql('postgres', "$settings; $first"),
		$node->safe_psql('postgres', "SET gpusort.enabled = off; SET max_parallel_workers_per_gather = 0; " . ($first =~ s/WHERE with_worker\(id\) > 0//r)),
		"first $limit by $group: right");
}

# Window functions that the sort computes: in runs, on a device, in one process; of values that are not passed by value,
# some of them out of line; in a plan for all values of a parameter, which may end a window early.
$node->safe_psql('postgres', q{CREATE TABLE valued AS SELECT id, k % 1000 AS k, v, CASE id % 50 WHEN 0 THEN NULL WHEN 1 THEN repeat(md5(id::text), 300) ELSE md5(id::text) END AS text,
	CASE WHEN id % 7 > 0 THEN id::numeric / 7 END AS number FROM rows; ALTER TABLE valued SET (parallel_workers = 3); ANALYZE valued});
my $valued = q{SELECT count(*), sum(hashtextextended(s::text, 0)) FROM (SELECT id, lag(text) OVER w AS text, lag(number) OVER w AS number, lag(v) OVER w AS v,
	row_number() OVER w AS n FROM valued WHERE with_worker(id) > 0 WINDOW w AS (PARTITION BY k ORDER BY v, id)) s};
my $of_valued = $valued =~ s/WHERE with_worker\(id\) > 0//r;
my %want = map { $_ => $node->safe_psql('postgres', "SET gpusort.enabled = off; SET max_parallel_workers_per_gather = 0; $of_valued $_") } '', 'WHERE n <= 3', 'WHERE n > 2 AND text IS NULL';

foreach my $engine ('cpu', 'cuda')
{
	foreach my $settings ("work_mem = '256kB'", "work_mem = '64MB'", 'max_parallel_workers = 0', 'parallel_leader_participation = off')
	{
		my $set = "SET gpusort.engine = $engine; SET $settings";

		foreach my $where (sort keys %want)
		{
			my $text = $settings =~ /workers/ ? $of_valued : $valued;

			is($node->safe_psql('postgres', "$set; $text $where"), $want{$where}, "values of the row before, $engine, $settings, $where");
		}
		is($node->safe_psql('postgres', "$set; SET plan_cache_mode = force_generic_plan; PREPARE first(int) AS $of_valued WHERE n <= \$1; EXECUTE first(3)"),
			$want{'WHERE n <= 3'}, "values of the row before, $engine, $settings, of a parameter");
	}
}
like($node->safe_psql('postgres', "EXPLAIN (VERBOSE) $valued"), qr/Window Functions: lag\(.*text\), lag\(.*number\), lag\(.*v\), row_number\(\)/, 'the sort computes them');

# Without parallel mode, where a device leaves ties that exceed work_mem; and the same column twice.
$node->safe_psql('postgres', q{
	CREATE TABLE tied AS SELECT g AS id, g % 2 AS k, int4range(hashint4(g) / 1000, hashint4(g) / 1000 + 5) AS r, 'key ' || g % 37 AS a, repeat('x', 60) AS pad
		FROM generate_series(1, 60000) g;
	ALTER TABLE tied SET (parallel_workers = 3);
	ANALYZE tied;
	CREATE FUNCTION first_of_each(OUT c bigint, OUT s bigint) LANGUAGE plpgsql AS $$ BEGIN
		SELECT count(*), sum(id) INTO c, s FROM (SELECT DISTINCT ON (k) k, id, r, pad FROM tied ORDER BY k, r, id) x; END $$;
	CREATE FUNCTION first_three(OUT c bigint, OUT s bigint) LANGUAGE plpgsql AS $$ BEGIN
		SELECT count(*), sum(id) INTO c, s FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY r, id) AS n FROM tied) x WHERE n <= 3; END $$;
});
my $tied = 'SELECT * FROM first_of_each(), first_three()';
my $twice = 'SELECT count(*), sum(hashtext(a) # id) FROM (SELECT DISTINCT ON (a COLLATE "C", a COLLATE "POSIX") * FROM tied ORDER BY a COLLATE "C" DESC NULLS LAST, a COLLATE "POSIX", id DESC) s';
foreach my $engine ('cpu', 'cuda')
{
	is($node->safe_psql('postgres', "SET gpusort.engine = $engine; SET work_mem = '256kB'; $tied"),
		$node->safe_psql('postgres', "SET gpusort.enabled = off; $tied"), "first rows without parallel mode, $engine");
	is($node->safe_psql('postgres', "SET gpusort.engine = $engine; SET work_mem = '512kB'; SET max_parallel_workers = 0; $twice"),
		$node->safe_psql('postgres', "SET gpusort.enabled = off; $twice"), "a column in two collations, $engine");
}

# Rows of unlike width, a wide row without a value, rows from before a column was added, and another order.
$node->safe_psql('postgres', q{
	CREATE TABLE unlike AS SELECT g AS id, g / 9 AS k, CASE WHEN g % 9 < 3 THEN 'a' || g % 9 || repeat('w', 370) WHEN g % 9 < 8 THEN 'b' || g % 9
		ELSE 'c' || repeat('z', 1900) END COLLATE "C" AS x FROM generate_series(1, 40000) g;
	CREATE TABLE wide AS SELECT g AS id, lpad((g / 4)::text, 600, 'k') AS k, CASE WHEN g % 4 = 3 THEN g END AS x FROM generate_series(1, 40000) g;
	CREATE TABLE late AS SELECT g AS k FROM generate_series(1, 60000) g;
	ALTER TABLE late ADD COLUMN x int, ADD COLUMN y int DEFAULT 5;
	INSERT INTO late SELECT g, g, g FROM generate_series(1, 60000) g, generate_series(1, 4);
	CREATE FUNCTION abs_less(float8, float8) RETURNS bool IMMUTABLE PARALLEL SAFE LANGUAGE sql AS 'SELECT abs($1) < abs($2)';
	CREATE FUNCTION abs_greater(float8, float8) RETURNS bool IMMUTABLE PARALLEL SAFE LANGUAGE sql AS 'SELECT abs($1) > abs($2)';
	CREATE FUNCTION abs_compare(float8, float8) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE sql AS 'SELECT btfloat8cmp(abs($1), abs($2))';
	CREATE OPERATOR |<| (FUNCTION = abs_less, LEFTARG = float8, RIGHTARG = float8, COMMUTATOR = |>|);
	CREATE OPERATOR |>| (FUNCTION = abs_greater, LEFTARG = float8, RIGHTARG = float8, COMMUTATOR = |<|);
	CREATE OPERATOR CLASS abs_ops FOR TYPE float8 USING btree AS OPERATOR 1 |<|, OPERATOR 3 =, OPERATOR 5 |>|, FUNCTION 1 abs_compare(float8, float8);
	CREATE TABLE signed AS SELECT g AS id, g % 20 AS k, (g - 30001) * 2 + (g > 30001)::int AS x FROM generate_series(1, 60000) g;
	ANALYZE unlike, wide, late, signed;
});
foreach my $engine ('cpu', 'cuda')
{
	foreach my $case (
		[ 'unlike', '64MB', 'x', '(SELECT k, x FROM unlike WHERE with_worker(id) > 0) r' ],
		[ 'wide', '64kB', 'x', '(SELECT k, x FROM wide WHERE with_worker(id) > 0) r' ],
		[ 'late', '4MB', 'x', '(SELECT k, x FROM late WHERE with_worker(k) > 0) r' ],
		[ 'late', '4MB', 'y', '(SELECT k, y FROM late WHERE with_worker(k) > 0) r' ],
		[ 'signed', '4MB', 'x::float8 USING |<|', '(SELECT k, x FROM signed WHERE with_worker(id) > 0) r' ])
	{
		my ($table, $memory, $by, $from) = @$case;
		my $medians = "SELECT count(*), count(m), sum(hashtext(k::text || m::text)) FROM (SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY $by) AS m FROM $from GROUP BY k) s";

		is($node->safe_psql('postgres', "SET statement_timeout = '120s'; SET gpusort.engine = $engine; SET work_mem = '$memory'; $medians"),
			$node->safe_psql('postgres', "SET gpusort.enabled = off; SET max_parallel_workers_per_gather = 0; " . ($medians =~ s/WHERE with_worker\(\w+\) > 0//r)),
			"medians of $table by $by, $engine");
	}
}

# A worker is killed while others wait for it, and the server recovers.
foreach my $phase ('linger(id, 30000)', 'id')
{
	my $psql = $node->background_psql('postgres', on_error_stop => 0);
	my ($pid, $worker) = $psql->query_safe('SET gpusort.engine = cpu; SET parallel_leader_participation = off; SELECT pg_backend_pid()');

	$psql->query_until(qr/started/, "\\echo started\n" . ranked($phase, $phase eq 'id' ? 'linger(id, 30000)' : 'id') . ";\n");
	ok(poll(sub { ($worker = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND leader_pid = $pid")) ne '' }),
		'a worker waits');
	kill 'KILL', $worker;
	ok(poll(sub { title_of($pid) eq '' }), 'killed');
	ok(is_back($node), 'the server is back');
	eval { $psql->quit };
	is($node->safe_psql('postgres', $query), $right, 'and right');
	is($node->safe_psql('postgres', $files), '0', 'no file is left');
}
$node->stop;
done_testing();
