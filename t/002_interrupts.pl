# Cancel, termination, statement_timeout and errors, in every phase of a sort:
# they take effect before its end, and leave no memory, file or lock behind.
#
# Advisory locks show the phase.  The query calls reached(PHASE) at the start of a
# phase, which takes the lock PHASE.  Another session sees the lock and interrupts.
# The locks of the session afterwards show in which phase it was interrupted:
#
#	count(reached(OUTPUT))						the first sorted row
#	  sort
#		  reached(LOAD)							the first row of the input
#		  the rows of the table words
#		  reached(SORT)							the last one

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# glibc's malloc keeps up to 64 MB of freed memory, and adapts this limit to the
# program.  With fixed limits it keeps little, so a leak shows.
$ENV{MALLOC_MMAP_THRESHOLD_} = 1024 * 1024;
$ENV{MALLOC_TRIM_THRESHOLD_} = 1024 * 1024;
my $allowed_kb = 8 * 1024;

my $node = gpusort_node('interrupts', 'shared_buffers = 16MB', 'work_mem = 1GB',
	'fsync = off', 'trace_sort = off');

create_interrupt($node);
$node->safe_psql('postgres', q{
	CREATE UNLOGGED TABLE words AS
		SELECT g AS id, 'https://www.example.org/articles/' || md5(g::text) AS v
		FROM generate_series(1, 1200000) g;
	CREATE UNLOGGED TABLE rows AS SELECT g AS id, hashint4(g) AS k FROM generate_series(1, 200000) g;
	ANALYZE;

	-- Takes the lock of a phase; in the phase wait.phase it first lets
	-- wait.ms pass since the start of the statement.
	CREATE FUNCTION reached(phase int) RETURNS int VOLATILE LANGUAGE plpgsql COST 1 AS $$
	BEGIN
		PERFORM pg_advisory_lock(phase);
		IF phase::text = current_setting('wait.phase', true) THEN
			PERFORM pg_sleep(current_setting('wait.ms')::float8 / 1000
				- extract(epoch FROM clock_timestamp() - statement_timestamp()));
		END IF;
		RETURN phase;
	END $$;

	-- The phases that a session has reached.
	CREATE FUNCTION phases(session int) RETURNS text LANGUAGE sql AS $$
		SELECT coalesce(string_agg(objid::text, ' ' ORDER BY objid), '')
		FROM pg_locks WHERE locktype = 'advisory' AND pid = session
	$$;

	-- Waits until a session has reached a phase, and has temporary files if
	-- wanted; interrupts it after a delay, and waits until it is done.
	CREATE FUNCTION interrupt_in(session int, how text, phase int, with_files bool, delay_ms float8)
	RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		deadline timestamptz := clock_timestamp() + '100 s';
	BEGIN
		WHILE phases(session) !~ ('\y' || phase || '\y') OR
			with_files AND NOT EXISTS (SELECT FROM pg_ls_tmpdir()) LOOP
			IF clock_timestamp() > deadline THEN
				RAISE 'the phase was never reached';
			END IF;
			PERFORM pg_sleep(0.001);
		END LOOP;
		PERFORM pg_sleep(delay_ms / 1000);
		PERFORM interrupt(session, how);
	END $$;

	-- How many milliseconds are between two phases of a session.
	CREATE FUNCTION lasted(session int, first int, second int) RETURNS numeric LANGUAGE plpgsql AS $$
	DECLARE
		start timestamptz;
	BEGIN
		WHILE phases(session) !~ ('\y' || first || '\y') LOOP
			PERFORM pg_sleep(0.001);
		END LOOP;
		start := clock_timestamp();
		WHILE phases(session) !~ ('\y' || second || '\y') LOOP
			PERFORM pg_sleep(0.001);
		END LOOP;
		RETURN round(extract(epoch FROM clock_timestamp() - start) * 1000, 1);
	END $$;
});

my ($load, $sort, $output) = (41, 42, 43);
my $query = qq{
	SELECT count(reached($output)) FROM (
		SELECT * FROM (
			SELECT reached($load) AS id, '' AS v
			UNION ALL SELECT * FROM words
			UNION ALL SELECT reached($sort), '') u
		ORDER BY v OFFSET 0) s};

my $control = $node->background_psql('postgres');
$control->set_query_timer_restart;

# Nothing is left of an interrupted sort, in a session that continues.
sub check_remains
{
	my ($what, $psql, $pid, $start_kb) = @_;
	my $remains;

	ask($psql, 'SELECT pg_advisory_unlock_all()');
	$remains = join(' ',
		'contexts=' . contexts_of($psql),
		'files=' . ask($control, 'SELECT count(*) FROM pg_ls_tmpdir()'),
		'locks=' . ask($control, "SELECT count(*) FROM pg_locks WHERE pid = $pid"),
		'state=' . ask($control, "SELECT state FROM pg_stat_activity WHERE pid = $pid"));
	is($remains, 'contexts=0 files=0 locks=0 state=idle', "$what: no memory, file or lock is left");

	my $kb = memory_kb($pid, 'RssAnon') - $start_kb;
	cmp_ok($kb, '<', $allowed_kb, "$what: the memory was returned to the system (except for $kb kB)");
}

# A session ready for the query, and its memory, which includes catalog caches
# and plans.
sub fresh_session
{
	my ($settings) = @_;
	my ($psql, $pid) = session($node, $settings);

	ask($psql, "EXPLAIN $query");
	contexts_of($psql);
	ask($psql, 'SELECT count(reached(1)) FROM rows LIMIT 1');
	ask($psql, 'SELECT pg_advisory_unlock_all()');
	return ($psql, $pid, memory_kb($pid, 'RssAnon'));
}

# ------------------------------------------------ cancel, terminate, time out

# Interrupts a query in a phase.  The locks show afterwards whether that was the phase: it may be over if the
# interrupt comes late on a busy machine, or if that was busier when the sort was timed; then again, earlier.
# Returns the session, its process and memory, the error, and the phases.
sub interrupt_query
{
	my ($query, $settings, $how, $phase, $with_files, $delay_ms, $phases) = @_;
	my ($psql, $pid, $start_kb, $error, $reached);

	foreach my $try (1 .. 20)
	{
		eval { $psql->quit } if $psql;
		($psql, $pid, $start_kb) = fresh_session("SET $settings; SET gpusort.force = on");
		$psql->query_until(qr/started/, "\\echo started\n$query;\n");
		ask($control, "SELECT interrupt_in($pid, '$how', $phase, $with_files, $delay_ms)");
		last if $how eq 'terminate';
		$error = ask_error($psql, 'SELECT 1');
		$reached = ask($control, "SELECT phases($pid)");
		last if $reached eq $phases;
		$delay_ms /= 2;
	}
	return ($psql, $pid, $start_kb, $error, $reached);
}

# How long the sort takes.
my $sort_ms;
{
	my ($psql, $pid) = fresh_session('SET gpusort.force = on');

	$psql->query_until(qr/started/, "\\echo started\n$query;\n");
	$sort_ms = ask($control, "SELECT lasted($pid, $sort, $output)");
	$psql->quit;
}
my $later_ms = int($sort_ms / 4);

# Small work_mem: sorted runs in files; very small: runs are merged to longer runs
# before the first row is returned.
my @cases = (
	[ 'load', "work_mem = '1GB'", $load, 'false', 30, "$load" ],
	[ 'sort', "work_mem = '1GB'", $sort, 'false', 0, "$load $sort" ],
	[ 'later in the sort', "work_mem = '1GB'", $sort, 'false', $later_ms, "$load $sort" ],
	[ 'output', "work_mem = '1GB'", $output, 'false', 0, "$load $sort $output" ],
	[ 'load into runs', "work_mem = '32MB'", $load, 'true', 0, "$load" ],
	[ 'merges of runs', "work_mem = '64kB'", $sort, 'true', 0, "$load $sort" ],
	[ 'the last merge', "work_mem = '32MB'", $output, 'true', 0, "$load $sort $output" ]);

foreach my $case (@cases)
{
	my ($name, $settings, $phase, $with_files, $delay_ms, $phases) = @$case;

	foreach my $how ('cancel', 'terminate')
	{
		my $what = "$how in $name";
		my ($psql, $pid, $start_kb, $error, $reached) =
		  interrupt_query($query, $settings, $how, $phase, $with_files, $delay_ms, $phases);

		if ($how eq 'cancel')
		{
			like($error, qr/ERROR:  canceling statement due to user request/, "$what: the statement was canceled");
			is($reached, $phases, "$what: in that phase");
			check_remains($what, $psql, $pid, $start_kb);
			$psql->quit;
		}
		else
		{
			ok( $node->poll_query_until('postgres', qq{
					SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid) AND
						NOT EXISTS (SELECT FROM pg_locks WHERE pid = $pid) AND
						NOT EXISTS (SELECT FROM pg_ls_tmpdir())}),
				"$what: the process is gone, and its locks and files");
			eval { $psql->{run}->finish };
		}
	}
}

# The timeout fires soon after the start of the phase: reached() waits for that.
# If the machine is too slow to get there, the next try waits longer; if it is faster
# than when the sort was timed, the next timeout fires earlier.
foreach my $case (grep { $_->[0] !~ /later|load into/ } @cases)
{
	my ($name, $settings, $phase, $with_files, $delay_ms, $phases) = @$case;
	my $what = "statement_timeout in $name";
	my ($psql, $pid, $start_kb) = fresh_session("SET $settings; SET gpusort.force = on");
	my ($wait_ms, $after_ms) = (1000, $later_ms);
	my ($error, $reached);

	foreach my $try (1 .. 8)
	{
		my $timeout_ms = $wait_ms + $after_ms;

		ask($psql, "SET \"wait.phase\" = $phase; SET \"wait.ms\" = $wait_ms;");
		ask($psql, "SET statement_timeout = $timeout_ms");
		$error = ask_error($psql, $query);
		ask($psql, 'SET statement_timeout = 0');
		$reached = ask($control, "SELECT phases($pid)");
		last if $reached eq $phases;
		ask($psql, 'SELECT pg_advisory_unlock_all()');
		if (length $reached < length $phases)
		{
			$wait_ms *= 2;
		}
		else
		{
			$after_ms = int($after_ms / 2);
		}
	}
	like($error, qr/ERROR:  canceling statement due to statement timeout/, "$what: it fires");
	is($reached, $phases, "$what: in that phase");
	check_remains($what, $psql, $pid, $start_kb);
	is( ask($psql, 'SELECT count(*), count(*) FILTER (WHERE k < before) FROM '
			  . '(SELECT k, lag(k) OVER () AS before FROM (SELECT * FROM rows ORDER BY k OFFSET 0) s) t'),
		'200000|0', "$what: and the session can sort");
	$psql->quit;
}

# Long values that differ only at the end: few rows and many bytes.
$node->safe_psql('postgres', q{
	CREATE UNLOGGED TABLE long_values AS
		SELECT g AS id, repeat('x', 400000) || lpad((g * 7919 % 1000)::text, 4, '0') AS v
		FROM generate_series(1, 1000) g});
{
	my ($psql, $pid, undef, $error, $reached) =
	  interrupt_query($query =~ s/FROM words/FROM long_values/r, "work_mem = '2GB'", 'cancel', $sort, 'false', 0, "$load $sort");

	like($error, qr/ERROR:  canceling statement due to user request/, 'cancel among long values: the statement was canceled');
	is($reached, "$load $sort", 'cancel among long values: in the sort');
	$psql->quit;

	# The values are not written to files: to delete 400 MB would take the kernel 100 ms.
	($psql, $pid) = session($node, 'SET gpusort.force = on; SET work_mem = \'32MB\'');
	ask($psql, "BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT * FROM long_values ORDER BY v; FETCH 1 FROM c");
	like(ask($control, "SELECT sum(size) FROM pg_ls_tmpdir() WHERE name LIKE 'pgsql_tmp$pid.%'"), qr/^\d{1,8}$/,
		'the files of a sort of long values are short');
	ask($psql, 'ROLLBACK');
	$psql->quit;
}

# ------------------------------------------------------------------- errors

# The child of the sort fails at its second to last row, then the parent.
my $child_fails = q{
	SELECT count(x) FROM (SELECT id, 1 / (id - 199999) AS x, k FROM rows ORDER BY k OFFSET 0) s};
my $parent_fails = q{
	SELECT sum(1 / CASE WHEN id = 100000 THEN 0 ELSE 1 END) FROM
		(SELECT id, k FROM rows ORDER BY k OFFSET 0) s};

foreach my $work_mem ('1GB', '1MB')
{
	my ($psql, $pid, $start_kb) = fresh_session("SET gpusort.force = on; SET work_mem = '$work_mem'");
	my $where = $work_mem eq '1MB' ? ', in runs' : '';

	foreach ([ 'an error of the child', $child_fails ], [ 'an error of the parent', $parent_fails ])
	{
		my ($what, $failing) = @$_;

		like(ask($psql, "EXPLAIN $failing"), qr/GpuSort/, "$what$where: a GpuSort");
		like(ask_error($psql, $failing), qr/ERROR:  division by zero/, "$what$where: is reported");
		check_remains("$what$where", $psql, $pid, $start_kb);

		# What a caught error leaves is visible in the same transaction.
		is( ask($psql, qq{
				BEGIN;
				DO \$\$
				BEGIN
					FOR i IN 1..20 LOOP
						BEGIN
							EXECUTE '$failing';
						EXCEPTION WHEN division_by_zero THEN
							NULL;
						END;
					END LOOP;
				END \$\$;
				SELECT (SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'GpuSort'),
					(SELECT count(*) FROM pg_ls_tmpdir());
				COMMIT}),
			'0|0', "$what$where: caught twenty times, nothing is left");
		check_remains("$what$where, caught", $psql, $pid, $start_kb);
	}
	$psql->quit;
}

# ------------------------------------------------------------------ cursors

foreach my $work_mem ('1GB', '1MB')
{
	my ($psql, $pid, $start_kb) = fresh_session("SET gpusort.force = on; SET work_mem = '$work_mem'");
	my $where = $work_mem eq '1MB' ? ', in runs' : '';
	my $remains = q{
		SELECT (SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'GpuSort'),
			(SELECT count(*) FROM pg_ls_tmpdir()) > 0};

	ask($psql, 'BEGIN');
	ask($psql, 'DECLARE c SCROLL CURSOR FOR SELECT id, k FROM rows ORDER BY k, id');
	is(ask($psql, "MOVE 100000 FROM c;\n\\echo :ROW_COUNT"), 100000, "half of a cursor is read$where");
	is(ask($psql, $remains), $work_mem eq '1MB' ? '1|t' : '1|f', "the sort is there$where");
	ask($psql, 'CLOSE c');
	is(ask($psql, $remains), '0|f', "a cursor closed half-way leaves nothing$where");
	ask($psql, 'COMMIT');
	check_remains("a cursor closed half-way$where", $psql, $pid, $start_kb);

	# The transaction ends with the cursor open.
	foreach my $end ('COMMIT', 'ROLLBACK')
	{
		ask($psql, 'BEGIN');
		ask($psql, 'DECLARE c CURSOR FOR SELECT id, k FROM rows ORDER BY k, id');
		ask($psql, 'FETCH 10 FROM c');
		ask($psql, $end);
		check_remains("$end with an open cursor$where", $psql, $pid, $start_kb);
	}

	# The cursor belongs to a savepoint that is rolled back.
	ask($psql, 'BEGIN; SAVEPOINT before');
	ask($psql, 'DECLARE c CURSOR FOR SELECT id, k FROM rows ORDER BY k, id');
	ask($psql, 'FETCH 10 FROM c');
	is(ask($psql, $remains), $work_mem eq '1MB' ? '1|t' : '1|f', "a sort in a savepoint$where");
	ask($psql, 'ROLLBACK TO before');
	is(ask($psql, $remains), '0|f', "ends with it$where");
	ask($psql, 'COMMIT');
	check_remains("a cursor of a savepoint$where", $psql, $pid, $start_kb);

	# A node that never ran.
	ask($psql, 'BEGIN');
	ask($psql, 'DECLARE c CURSOR FOR SELECT id, k FROM rows ORDER BY k');
	ask($psql, 'CLOSE c');
	ask($psql, 'COMMIT');
	check_remains("a cursor never read$where", $psql, $pid, $start_kb);

	# A sort that is executed repeatedly with other parameters: each one frees the
	# previous one.
	ask($psql, 'BEGIN');
	ask($psql, q{
		DECLARE c CURSOR FOR SELECT id FROM generate_series(1, 20) g,
			LATERAL (SELECT id FROM rows WHERE id > g ORDER BY k OFFSET 1) s});
	is(ask($psql, "MOVE 3000000 FROM c;\n\\echo :ROW_COUNT"), 3000000, "fifteen sorts by one node$where");
	is(ask($psql, $remains), $work_mem eq '1MB' ? '1|t' : '1|f', "the last is there$where");
	is(ask($psql, "MOVE ALL FROM c;\n\\echo :ROW_COUNT"),
		20 * 200000 - 20 * 21 / 2 - 20 - 3000000, "the rest of twenty$where");
	ask($psql, 'COMMIT');
	check_remains("rescans$where", $psql, $pid, $start_kb);
	$psql->quit;
}

# --------------------------------------------------------- the server afterwards

is($node->safe_psql('postgres', "SELECT count(*) FROM pg_ls_tmpdir()"), '0', 'no temporary file at the end');
ok(!$node->log_contains('terminated by signal|server process .* exited with exit code 2'),
	'no process has crashed');

$control->quit;
$node->stop;
done_testing();
