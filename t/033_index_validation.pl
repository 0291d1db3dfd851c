# The validation of indexes that are built CONCURRENTLY: the rows that are newer than the build, and those of
# them that the index lacks.

use strict;
use warnings;

use File::Basename;
use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

# GPUSORT_VALIDATION_ROUNDS: the number of builds beside writers
my $rounds = $ENV{GPUSORT_VALIDATION_ROUNDS} // 10;

my $node = gpusort_node('index_validation', 'max_prepared_transactions = 5', 'max_connections = 30', 'restart_after_crash = on');
my $has_amcheck = has_extension($node, 'amcheck');

$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
$node->safe_psql('postgres', 'CREATE EXTENSION amcheck') if $has_amcheck;

# Starts psql with statements, each a transaction.
sub start_psql
{
	my (@statements) = @_;
	my %run = (out => '', err => '');

	$run{harness} = IPC::Run::start([ 'psql', '-X', '-A', '-t', '-q', '-h', $node->host, '-p', $node->port, '-d', 'postgres', map { ('-c', $_) } @statements ],
		'<', \undef, '>', \$run{out}, '2>', \$run{err});
	return \%run;
}

# Waits for its end; returns its messages.
sub messages_of
{
	my ($run) = @_;

	IPC::Run::finish($run->{harness});
	return $run->{err};
}

# Kills a process.  Its client learns of that before the server, which accepts connections until then.
sub crash
{
	my ($pid) = @_;
	my $reinitializes = qr/all server processes terminated; reinitializing/;
	my $ncrashes = count_in_log($node, $reinitializes);

	kill 'KILL', $pid;
	poll(sub { count_in_log($node, $reinitializes) > $ncrashes }) or die 'the server does not restart';
	is_back($node) or die 'the server does not come back';
	return;
}

# ------------------------------------------------------- rows between the snapshots

# Updates of extra are HOT, those of k are not.  Half of the time VACUUM has been there, and its pages but those with
# writes, in the middle and at the end, are not read again.
my $nfill = 10000;
my $ntables = 0;
sub create_table
{
	$node->safe_psql('postgres', qq{
		DROP TABLE IF EXISTS input;
		CREATE TABLE input (id int, k int, extra int DEFAULT 0, a int[], p point, s text) WITH (fillfactor = 50);
		INSERT INTO input SELECT i, abs(i) % 50, 0, ARRAY[abs(i) % 50], point(abs(i) % 50, i), 's' || i FROM generate_series(-$nfill / 2, -1) i;
		INSERT INTO input SELECT i, i % 50, 0, ARRAY[i % 50], point(i % 50, i), 's' || i FROM generate_series(1, 2000) i;
		INSERT INTO input SELECT i, abs(i) % 50, 0, ARRAY[abs(i) % 50], point(abs(i) % 50, i), 's' || i FROM generate_series(-$nfill, -$nfill / 2 - 1) i});
	$node->safe_psql('postgres', 'VACUUM input') if $ntables++ % 2;
	return;
}

sub insert_rows
{
	my ($first, $last) = @_;

	# the new ones have other keys than those before the build
	return "INSERT INTO input SELECT i, k, 0, ARRAY[k], point(k, i), 's' || i FROM generate_series($first, $last) i, LATERAL (SELECT i % 50 + CASE WHEN i > 2010 THEN 1000 ELSE 0 END) x (k)";
}

# It knows by then for which transactions it waits.
sub wait_for_phase
{
	my ($phase) = @_;

	poll(sub { $node->safe_psql('postgres', 'SELECT phase FROM pg_stat_progress_create_index WHERE lockers_total > 0') eq $phase }) or die "not $phase";
	return;
}

# Runs a statement that builds an index while there are
#	old		writes that are committed before the build, by a transaction that began before the statement
#	mid		those of a transaction that ends after the build, before which the index was not ready
#	ready	those of transactions that insert into the index
# end commits or aborts `mid`; settings are those of the statement.  Returns the psql that runs it.
sub start_build
{
	my ($statement, %writes) = @_;
	my ($old) = session($node, 'BEGIN');
	my ($mid) = session($node, 'BEGIN');
	my $run;

	ask($old, insert_rows(2001, 2010));
	$run = start_psql('SET gpusort.debug_plan = on', $writes{settings} // 'SELECT', $statement);
	wait_for_phase('waiting for writers before build');
	ask($mid, $writes{mid});
	ask($old, 'COMMIT');
	wait_for_phase('waiting for writers before validation');
	$node->safe_psql('postgres', $writes{ready}) if $writes{ready};
	ask($mid, $writes{end} // 'COMMIT');
	$node->safe_psql('postgres', $writes{after}) if $writes{after};
	$_->quit foreach ($old, $mid);
	return $run;
}

sub build
{
	my (@arguments) = @_;

	create_table();
	return messages_of(start_build(@arguments));
}

# How many rows a validation has looked for, and how many it has inserted.
sub counts_of
{
	my ($messages) = @_;

	return $messages =~ /validating index ".*" with gpusort\nDETAIL:  (\d+) rows were newer than the build, and (\d+) of them were not in the index\./ ?
	  "$1, $2" : $messages;
}

# 5 rows are new, by a subtransaction; one is new and updated by HOT; 3 have other keys, 7 are HOT, and 4 were aborted
my $mid = 'SAVEPOINT b; ' . insert_rows(3001, 3005) . '; RELEASE b; ' . insert_rows(3006, 3006) . '; UPDATE input SET extra = 1 WHERE id = 3006'
  . '; UPDATE input SET k = k + 1, a = ARRAY[k + 1], p = p + point(1, 0), s = s || 1 WHERE id BETWEEN 101 AND 103'
  . '; UPDATE input SET extra = 1 WHERE id BETWEEN 201 AND 207'
  . '; DELETE FROM input WHERE id BETWEEN 301 AND 302; SAVEPOINT a; ' . insert_rows(4001, 4004) . '; ROLLBACK TO a';

# 6 rows are new, 2 have other keys, 2 are HOT, and 2 were aborted
my $ready = insert_rows(5001, 5006)
  . '; UPDATE input SET k = k + 1, a = ARRAY[k + 1], p = p + point(1, 0), s = s || 1 WHERE id BETWEEN 111 AND 112'
  . '; UPDATE input SET extra = 1 WHERE id BETWEEN 211 AND 212; BEGIN; ' . insert_rows(6001, 6002) . '; ROLLBACK';

# All rows by an index on a column that is compared for equality.
sub rows_by
{
	my ($condition) = @_;

	return "SELECT md5(string_agg(i::text, ' ' ORDER BY id)) FROM generate_series(0, 1060) x (k), LATERAL (SELECT * FROM input WHERE $condition OFFSET 0) i";
}

# each: the index, a condition of the rows that are read by it, and how many rows are inserted of those 26
foreach my $case (
	[ 'btree (k)', 'k >= 0', 9 ],
	[ 'btree (k)', 'k >= 0', 9 ],
	[ 'btree (k, (id + 1)) INCLUDE (s)', 'k >= 0', 9 ],
	[ 'btree (k) WHERE id >= 0', 'k >= 0 AND id >= 0', 9 ],
	[ 'btree (id) WHERE id < 0', 'id < 0', 0 ],
	[ 'hash (k)', undef, 9 ],
	[ 'gin (a)', undef, 9 ],
	[ 'gist (p)', q{p <@ box '((-1e9,-1e9),(1e9,1e9))'}, 9 ],
	[ 'spgist (p)', q{p <@ box '((-1e9,-1e9),(1e9,1e9))'}, 9 ],
	# brin reports no TIDs, as to PostgreSQL
	[ 'brin (k)', 'k >= 1000', 26 ])
{
	my ($index, $condition, $ninserted) = @$case;
	my $messages = build("CREATE INDEX CONCURRENTLY input_i ON input USING $index", mid => $mid, ready => $ready);
	# hash has no condition for all rows, and gin reads all of an index for none
	my $rows = $index =~ /^hash/ ? rows_by('input.k = x.k') : $index =~ /^gin/ ? rows_by('input.a @> ARRAY[x.k]')
	  : "SELECT md5(string_agg(i::text, ' ' ORDER BY id)) FROM (SELECT * FROM input WHERE $condition) i";

	is(counts_of($messages), "26, $ninserted", "$index: new and missing rows");
	like($node->safe_psql('postgres', "SET enable_seqscan = off; EXPLAIN $rows"), qr/Scan (using|on) input_i/, "$index is used");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; $rows"),
		$node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $rows"), 'and has all rows');
	SKIP:
	{
		skip 'no btree, or no amcheck', 1 if $index !~ /^btree/ || !$has_amcheck;
		is($node->safe_psql('postgres', "SELECT bt_index_parent_check('input_i', true, true)"), '', 'amcheck');
	}
}

# as many as PostgreSQL's own validation leaves
is(build('CREATE INDEX CONCURRENTLY input_i ON input (k)', mid => $mid, ready => $ready, settings => 'SET gpusort.enable_index_validation = off') =~ /validating/ ? 1 : 0,
	0, 'PostgreSQL can be told to validate');
is(build('CREATE INDEX CONCURRENTLY input_i ON input (k)', mid => $mid, ready => $ready, settings => 'SET gpusort.enabled = off') =~ /validating/ ? 1 : 0,
	0, 'also by gpusort.enabled');

# the settings of the session decide when it begins, and when it validates
foreach my $settings ('SET max_parallel_maintenance_workers = 0', 'SET max_parallel_maintenance_workers = 2; SET min_parallel_table_scan_size = 0',
	q{SET default_transaction_isolation = 'repeatable read'}, q{SET default_transaction_isolation = 'serializable'}, 'SET gpusort.enable_create_index = off')
{
	is(counts_of(build('CREATE INDEX CONCURRENTLY input_i ON input (k)', mid => $mid, ready => $ready, settings => $settings)), '26, 9', $settings);
}

# REINDEX, also of the index of TOAST
create_table();
$node->safe_psql('postgres', 'CREATE INDEX input_k ON input (k); CREATE UNIQUE INDEX input_id ON input (id, k)');
my $long = q{UPDATE input SET s = (SELECT string_agg(md5(input.id || '.' || i), '') FROM generate_series(1, 300) i) WHERE id BETWEEN %d AND %d};
is(join('; ', messages_of(start_build('REINDEX TABLE CONCURRENTLY input', mid => "$mid; " . sprintf($long, 401, 403), ready => "$ready; " . sprintf($long, 404, 405)))
	  =~ /DETAIL:  (\d+ rows were newer .*)/g),
	join('; ', ('31 rows were newer than the build, and 9 of them were not in the index.') x 2), 'REINDEX of two indexes');
is($node->safe_psql('postgres', q{SELECT count(*) FROM input WHERE id BETWEEN 401 AND 405 AND s = (SELECT string_agg(md5(input.id || '.' || i), '') FROM generate_series(1, 300) i)}),
	'5', 'values in TOAST are found');
is($node->safe_psql('postgres', "SELECT count(bt_index_parent_check(indexrelid, true, true)) FROM pg_index WHERE indrelid IN (SELECT unnest(ARRAY[oid, reltoastrelid]) FROM pg_class WHERE relname = 'input')"),
	'3', 'amcheck') if $has_amcheck;

# REINDEX of partitions
create_table();
$node->safe_psql('postgres', q{
	CREATE TABLE partitioned (LIKE input) PARTITION BY RANGE (id);
	ALTER TABLE partitioned ATTACH PARTITION input FOR VALUES FROM (MINVALUE) TO (1000000);
	CREATE TABLE partition PARTITION OF partitioned FOR VALUES FROM (1000000) TO (MAXVALUE);
	INSERT INTO partitioned (id, k) SELECT 1000000 + i, i FROM generate_series(1, 100) i;
	CREATE INDEX partitioned_k ON partitioned (k)});
my $reindex = messages_of(start_build('REINDEX INDEX CONCURRENTLY partitioned_k', mid => $mid, ready => $ready));
is(join('; ', sort $reindex =~ /DETAIL:  (\d+ rows were newer .*)/g),
	join('; ', map { "$_->[0] rows were newer than the build, and $_->[1] of them were not in the index." } [ 0, 0 ], [ 26, 9 ]), 'REINDEX of partitions');
is($node->safe_psql('postgres', q{SELECT count(bt_index_parent_check(indexrelid, true, true)) FROM pg_index WHERE indrelid IN ('input'::regclass, 'partition'::regclass) AND indisvalid}),
	'2', 'amcheck') if $has_amcheck;
$node->safe_psql('postgres', 'DROP TABLE partitioned');

# a prepared transaction
is(counts_of(build('CREATE INDEX CONCURRENTLY input_i ON input (k)', mid => insert_rows(3001, 3005), end => q{PREPARE TRANSACTION 'mid'}, after => q{COMMIT PREPARED 'mid'})),
	'5, 5', 'rows of a prepared transaction');

# a transaction that began before, with more subtransactions than a snapshot has
foreach my $nsub (2, 100)
{
	my ($overflows) = session($node, 'CREATE TEMP TABLE other (i int)');

	create_table();
	ask($overflows, 'BEGIN; ' . join('; ', map { "SAVEPOINT s$_; INSERT INTO other VALUES ($_)" } 1 .. $nsub));
	$node->safe_psql('postgres', insert_rows(7001, 7100));
	is(counts_of(messages_of(start_build('CREATE INDEX CONCURRENTLY input_i ON input (k)', mid => insert_rows(3001, 3005)))),
		$nsub == 2 ? '5, 5' : '115, 5', "rows that are newer than a transaction in progress with $nsub subtransactions");
	ask($overflows, 'COMMIT');
	$overflows->quit;
}

# more rows than maintenance_work_mem has room for
my $messages = build('CREATE INDEX CONCURRENTLY input_i ON input (k)', mid => insert_rows(10001, 150000), ready => $ready, settings => q{SET maintenance_work_mem = '1MB'});
like($messages, qr/validating index "input_i" without gpusort\nDETAIL:  The rows that are newer than the build exceed maintenance_work_mem\./, 'too many rows: PostgreSQL validates');
is($node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_indexonlyscan = off; SELECT count(*) FROM input WHERE k >= 0"), $nfill + 2000 + 10 + 140000 + 6, 'and no row is missing');
is($node->safe_psql('postgres', "SELECT bt_index_parent_check('input_i', true, true)"), '', 'amcheck') if $has_amcheck;

# duplicates that only the validation meets
my %ends;
foreach my $enabled ('off', 'on')
{
	$ends{$enabled} = build('CREATE UNIQUE INDEX CONCURRENTLY input_i ON input (id)', mid => insert_rows(2000, 2000), settings => "SET gpusort.enable_index_validation = $enabled");
	$ends{$enabled} =~ s/^NOTICE.*\n(DETAIL:  The .*\n)?//mg;
	is($node->safe_psql('postgres', q{SELECT indisready, indisvalid FROM pg_index WHERE indexrelid = 'input_i'::regclass}), 't|f', "duplicates: the index is not valid ($enabled)");
}
like($ends{off}, qr/ERROR:  duplicate key value violates unique constraint "input_i"/, 'PostgreSQL finds them');
is($ends{on}, $ends{off}, 'and so does gpusort');

becomes(sub { $node->safe_psql('postgres', 'SELECT index_validations, index_validations_postgres FROM pg_stat_gpusort WHERE datname = current_database()') },
	'23|1', 'the statistics');

# ------------------------------------------------------------- interrupts and errors

# a function that waits for a row which is inserted by the validation
$node->safe_psql('postgres', q{
	CREATE FUNCTION waits(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		IF id = 3001 THEN
			PERFORM pg_advisory_lock_shared(1);
		END IF;
		RETURN id;
	END $$});
foreach my $how ('cancel', 'terminate', 'crash', 'postmaster')
{
	my ($holder) = session($node);
	my $run;
	my $waits = 'SELECT phase FROM pg_stat_progress_create_index p JOIN pg_stat_activity a USING (pid) WHERE wait_event = \'advisory\'';

	create_table();
	ask($holder, 'SELECT pg_advisory_lock(1)');
	$run = start_build('CREATE INDEX CONCURRENTLY input_i ON input ((waits(id)))', mid => $mid, ready => $ready);
	ok(poll(sub { $node->safe_psql('postgres', $waits) eq 'index validation: scanning table' }), "$how: a validation inserts a row");
	if ($how eq 'crash')
	{
		crash($node->safe_psql('postgres', 'SELECT pid FROM pg_stat_progress_create_index'));
	}
	elsif ($how eq 'postmaster')
	{
		my $pid = $node->{_pid};

		$node->kill9;
		poll(sub { !kill 0, $pid }) or die 'the postmaster does not end';
	}
	else
	{
		$node->safe_psql('postgres', "SELECT pg_${how}_backend(pid) FROM pg_stat_progress_create_index");
	}
	like(messages_of($run), $how eq 'cancel' ? qr/canceling statement due to user request/ : qr/terminating connection|server closed the connection|connection to server was lost/, 'it ends');
	if ($how eq 'postmaster')
	{
		# as soon as no process is left
		poll(sub { $node->start(fail_ok => 1) }) or die 'the server does not start';
	}
	$holder->{run}->kill_kill;
	is($node->safe_psql('postgres', q{SELECT indisvalid FROM pg_index WHERE indexrelid = 'input_i'::regclass}), 'f', 'the index is not valid');
	is($node->safe_psql('postgres', 'DROP INDEX input_i; INSERT INTO input (id) VALUES (1); CREATE INDEX CONCURRENTLY input_i ON input (id)'), '', 'and can be built again');
}

# in a session that goes on after an error
my ($goes_on) = session($node, 'SET gpusort.debug_plan = on');

create_table();
$node->safe_psql('postgres', 'CREATE UNIQUE INDEX input_id ON input (id)');
like(ask_error($goes_on, 'CREATE UNIQUE INDEX CONCURRENTLY input_k ON input (k)'), qr/could not create unique index "input_k"/, 'a build fails');
like(ask_error($goes_on, 'DROP INDEX input_k; REINDEX INDEX CONCURRENTLY input_id'), qr/validating index "input_id_ccnew" with gpusort/, 'the session builds another one');
unlike(ask_error($goes_on, 'VACUUM input; DROP TABLE input'), qr/ERROR|validating/, 'and uses both');
is(ask($goes_on, "SELECT count(*) FROM pg_backend_memory_contexts WHERE name LIKE 'GpuSort%'"), '0', 'no memory is left');
$goes_on->quit;

# a transaction that creates an index, and drops it before it ends
$node->safe_psql('postgres', q{
	CREATE TABLE audit (statement text);
	CREATE FUNCTION drops() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		DROP INDEX input_dropped;
		RETURN NULL;
	END $$;
	CREATE CONSTRAINT TRIGGER drops AFTER INSERT ON audit DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION drops();
	CREATE FUNCTION audits() RETURNS event_trigger LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO public.audit VALUES (tg_tag);
	END $$;
	CREATE EVENT TRIGGER audits ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION audits()});
($goes_on) = session($node);
create_table();
like(ask_error($goes_on, 'CREATE INDEX CONCURRENTLY input_dropped ON input (k)'), qr/ERROR:  could not open relation with OID/, 'an index that is dropped by the transaction that creates it');
is(ask_error($goes_on, 'DROP EVENT TRIGGER audits; CREATE INDEX CONCURRENTLY input_k ON input (k); DROP INDEX input_k'), '', 'the session goes on');
$goes_on->quit;

# PostgreSQL's own tests, if there are its sources
SKIP:
{
	my $isolation = ($ENV{PG_REGRESS_DIR} // '') . '/../isolation';
	my $program = dirname($ENV{PG_REGRESS} // '') . '/../isolation/pg_isolation_regress';
	my @tests = grep { -e "$isolation/specs/$_.spec" } qw(reindex-concurrently reindex-concurrently-toast reindex-schema multiple-cic prepared-transactions-cic);

	skip 'PG_REGRESS_DIR does not name a src/test/regress folder of PostgreSQL, or there is no pg_isolation_regress', 1 unless @tests && -x $program;
	my $out;

	ok(IPC::Run::run([ $program, '--bindir=', "--host=" . $node->host, '--port=' . $node->port, '--dbname=isolation', "--inputdir=$isolation", '--outputdir=' . $node->basedir, @tests ],
			'>', \$out, '2>&1'),
		"PostgreSQL's isolation tests: @tests")
	  or diag($out . (-e $node->basedir . '/regression.diffs' ? PostgreSQL::Test::Utils::slurp_file($node->basedir . '/regression.diffs') : ''));
}

# ------------------------------------------------------------------- beside writers

# every validation is verified by PostgreSQL's (gpusort.verify), and every valid index by amcheck
create_table();
$node->safe_psql('postgres', 'CREATE INDEX input_i ON input (id)');

my %scripts = (
	'rows.sql@20' => <<'SQL',
\set id random(1, 2000)
\set new random(100000, 100000000)
UPDATE input SET extra = extra + 1 WHERE id = :id;
BEGIN;
UPDATE input SET k = k + 1 WHERE id = :id + 1;
SAVEPOINT a;
INSERT INTO input (id, k) VALUES (:new, 7) ON CONFLICT DO NOTHING;
ROLLBACK TO a;
INSERT INTO input (id, k) VALUES (:new, 8) ON CONFLICT DO NOTHING;
COMMIT;
BEGIN;
UPDATE input SET k = k + 1, extra = 5 WHERE id = :id + 2;
ROLLBACK;
DELETE FROM input WHERE id = :new;
BEGIN;
SELECT count(*) FROM input WHERE id = :id;
UPDATE input SET extra = extra + 1 WHERE id = :id + 3;
UPDATE input SET extra = extra + 1 WHERE id = :id + 3;
INSERT INTO input (id, k) VALUES (:id, 9) ON CONFLICT DO NOTHING;
DELETE FROM input WHERE id = :id AND k = 9 AND extra = 0;
END;
SQL
	'prepared.sql@5' => <<'SQL',
\set id random(1, 2000)
BEGIN;
UPDATE input SET k = k + 1 WHERE id = :id;
UPDATE input SET extra = extra + 1 WHERE id = :id + 1;
PREPARE TRANSACTION 'client:client_id';
COMMIT PREPARED 'client:client_id';
SQL
	'table.sql@1' => <<'SQL',
VACUUM (SKIP_LOCKED) input;
DO $$ BEGIN SET LOCAL lock_timeout = '5ms'; TRUNCATE input; RAISE EXCEPTION 'undone'; EXCEPTION WHEN OTHERS THEN NULL; END $$;
DO $$ BEGIN SET LOCAL lock_timeout = '5ms'; DROP TABLE input; RAISE EXCEPTION 'undone'; EXCEPTION WHEN OTHERS THEN NULL; END $$;
SQL
);
my @script_options;
foreach my $script (sort keys %scripts)
{
	my ($name, $weight) = split /@/, $script;

	append_to_file($node->basedir . "/$name", $scripts{$script});
	push @script_options, '-f', $node->basedir . "/$name\@$weight";
}

my $bench;
my $bench_log = $node->basedir . '/writers.log';
sub start_writers
{
	# they write until the rounds have ended; to a file, as nobody reads their warnings before
	$bench = IPC::Run::start([ 'pgbench', '-n', '-c', '3', '-T', '3600', @script_options, '-h', $node->host, '-p', $node->port, 'postgres' ],
		'<', \undef, '>', $bench_log, '2>&1');
	return;
}

# They end if they had errors.
sub errors_of_writers
{
	return PostgreSQL::Test::Utils::slurp_file($bench_log) =~ /(.*(?:ERROR|aborted).*)/ ? $1 : '';
}

sub stop_writers
{
	# not INT, which is ignored in the background of a script
	IPC::Run::signal($bench, 'TERM');
	IPC::Run::finish($bench);
	return;
}

my $check = $has_amcheck ? q{SELECT count(bt_index_check(indexrelid, true)) FROM pg_index WHERE indrelid = 'input'::regclass AND indisvalid} : 'SELECT';
my $drop = q{SELECT format('DROP INDEX %s', indexrelid::regclass) FROM pg_index WHERE NOT indisvalid AND indrelid IN (SELECT unnest(ARRAY[oid, reltoastrelid]) FROM pg_class WHERE oid = 'input'::regclass) \gexec};
my $failed = '';
my $nnew = 0;

# Runs statements that may fail in the ways that are expected.
sub run_round
{
	my ($expected, @statements) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', join(";\n", 'SET gpusort.debug_plan = on', @statements));

	$failed .= $err if $rc != 0 && !($expected && $err =~ $expected);
	$nnew += $1 while $err =~ /DETAIL:  (\d+) rows were newer/g;
	($rc, $out, $err) = $node->psql('postgres', "$check;\n$drop\nDROP INDEX IF EXISTS input_k");
	$failed .= $err if $rc != 0;
	return;
}

# Kills the process that builds an index, at some time.
sub run_kill
{
	my ($ms) = @_;
	my ($builder, $pid) = session($node);

	$builder->query_until(qr/^$/, "CREATE INDEX CONCURRENTLY input_k ON input (k);\n");
	usleep(1000 * $ms);
	is(errors_of_writers(), '', 'the writers write');
	crash($pid);
	$builder->{run}->finish;
	IPC::Run::finish($bench);
	# what the writers had prepared survives
	$node->safe_psql('postgres', q{SELECT format('COMMIT PREPARED %L', gid) FROM pg_prepared_xacts \gexec});
	start_writers();
	run_round(undef, 'SELECT');
	return;
}

# Indexes that amcheck does not know: a row too few or too many in a snapshot is an error.
my @others = ([ 'hash (k)', 'input.k = x.k' ], [ 'gin ((ARRAY[k]))', 'ARRAY[input.k] @> ARRAY[x.k]' ], [ 'gist ((point(k, id)))', 'point(input.k, input.id) <@ box(point(x.k, -1e9), point(x.k, 1e9))' ]);
sub same_by_index
{
	my ($condition) = @_;

	return "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_seqscan = off; SELECT count(*) AS n FROM generate_series(0, 1060) x (k), LATERAL (SELECT * FROM input WHERE $condition OFFSET 0) i \\gset by_index_\n"
	  . "SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = on; SELECT count(*) AS n FROM input WHERE k BETWEEN 0 AND 1060 \\gset by_table_\n"
	  . "SELECT 1 / (:by_index_n = :by_table_n)::int; COMMIT";
}

start_writers();
for my $round (1 .. $rounds)
{
	my $ms = ($round * 37) % 150;

	if ($round % 10 == 9)
	{
		run_kill($ms);
	}
	elsif ($round % 5 == 3)
	{
		run_round(qr/canceling statement due to statement timeout/, "SET statement_timeout = '${ms}ms'", 'CREATE INDEX CONCURRENTLY input_k ON input (k)', 'REINDEX TABLE CONCURRENTLY input');
	}
	elsif ($round % 5 == 4)
	{
		run_round(qr/could not create unique index|duplicate key value violates unique constraint/, 'CREATE UNIQUE INDEX CONCURRENTLY input_k ON input (id)');
	}
	else
	{
		run_round(undef, 'CREATE INDEX CONCURRENTLY input_k ON input (k) INCLUDE (extra)', $check, 'REINDEX TABLE CONCURRENTLY input');
		run_round(undef, map { ("CREATE INDEX CONCURRENTLY input_k ON input USING $_->[0]", same_by_index($_->[1]), 'DROP INDEX input_k') } @others[$round % 3]);
	}
	$failed = "round $round: $failed" if $failed;
	last if $failed;
}
stop_writers();
is(substr($failed, 0, 100) . substr($failed, -1500), '', "$rounds rounds of builds beside writers");
ok($nnew > 0, "rows were newer than the builds: $nnew");
is(errors_of_writers(), '', 'the writers had no errors');

# snapshots that expire, in versions that have that
SKIP:
{
	skip 'snapshots do not expire', 1 if $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000;
	$node->append_conf('postgresql.conf', "old_snapshot_threshold = 1h\n");
	$node->restart;
	unlike(build('CREATE INDEX CONCURRENTLY input_i ON input (k)', mid => $mid, ready => $ready), qr/validating/, 'snapshots may expire: PostgreSQL validates');
}

done_testing();
