# gpusort_advise() and gpusort_advise_indexes(): estimates, what is skipped and why, whose rights planning has.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $library = `$ENV{PG_CONFIG} --pkglibdir`;
chomp $library;
my $has_statements = -e "$library/pg_stat_statements.so";
my $node = gpusort_node('advise', 'gpusort.engine = cpu', $has_statements ? "shared_preload_libraries = 'pg_stat_statements'" : '');

sub ask_as
{
	my ($role, $query) = @_;

	return $node->safe_psql('postgres', "SET SESSION AUTHORIZATION $role; $query");
}

# Columns of the advice about the statements whose text begins so, of any gain.
sub advice
{
	my ($columns, $beginning, $before) = @_;

	return $node->safe_psql('postgres', ($before // '') . "SELECT $columns FROM gpusort_advise(0, 1000) WHERE query LIKE '$beginning%' ORDER BY query");
}

$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE TABLE t AS SELECT i AS id, hashint4(i) AS a, md5(i::text) AS word FROM generate_series(1, 50000) i;
	CREATE TABLE small AS SELECT i AS id FROM generate_series(1, 100) i;
	CREATE INDEX t_word ON t (word);
	CREATE INDEX t_expression ON t ((a + 1));
	CREATE INDEX t_hash ON t USING hash (a);
	CREATE INDEX small_id ON small (id);
	CREATE TABLE part (id int) PARTITION BY RANGE (id);
	CREATE INDEX ON part (id);
	ANALYZE;
});

# ------------------------------------------------------------------------ indexes

is($node->safe_psql('postgres', q{
	SELECT indexrelid, indrelid, size > 8192, rows, engine, estimated_gain_percent BETWEEN 5 AND 90, reason FROM gpusort_advise_indexes() ORDER BY indexrelid::text
}), "t_expression|t|t|50000|cpu|t|\nt_word|t|t|50000|cpu|t|", 'indexes that gain');
like($node->safe_psql('postgres', 'SELECT indexrelid, engine, estimated_gain_percent, reason FROM gpusort_advise_indexes(0) WHERE estimated_gain_percent = 0'),
	qr/^small_id\|postgres\|0\|the estimated number of rows, [\d]+, is less than gpusort.min_rows \(1000\)$/, 'and one that does not');
is($node->safe_psql('postgres', 'SET gpusort.enable_create_index = off; SELECT count(*) FROM gpusort_advise_indexes()'), '0', 'none without index builds');
is($node->safe_psql('postgres', "SET gpusort.enable_create_index = off; SELECT DISTINCT reason FROM gpusort_advise_indexes(0) WHERE indrelid = 't'::regclass"),
	'gpusort.enable_create_index is off', 'for that reason');
{
	my ($session) = session($node, '');

	ask($session, 'BEGIN; LOCK t IN ACCESS EXCLUSIVE MODE;');
	is($node->safe_psql('postgres', "SELECT indexrelid::oid::regclass, size, reason FROM gpusort_advise_indexes(0) WHERE indrelid = 't'::regclass ORDER BY indexrelid::text"),
		"t_expression||another session has locked the table or the index\nt_word||another session has locked the table or the index",
		'a locked table is not waited for');
	ask($session, 'ROLLBACK');
	$session->quit;
}
is($node->safe_psql('postgres', "BEGIN; SELECT count(*) FROM gpusort_advise_indexes(0); SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass"),
	"3\n0", 'no lock is kept');

# ------------------------------------------------------------- pg_stat_statements

my ($rc, $out, $err) = $node->psql('postgres', 'SELECT * FROM gpusort_advise()');
like($err, qr/extension "pg_stat_statements" is not installed.*HINT:.*CREATE EXTENSION pg_stat_statements/s, 'without pg_stat_statements');

if (!$has_statements)
{
	diag('this server has no pg_stat_statements: nothing else is tested');
	done_testing();
	exit;
}

$node->safe_psql('postgres', q{
	CREATE SCHEMA "The statements";
	CREATE EXTENSION pg_stat_statements SCHEMA "The statements";
	SELECT count("The statements".pg_stat_statements_reset());
});
is($node->safe_psql('postgres', 'SELECT * FROM gpusort_advise()'), '', 'nothing would gain');

$node->safe_psql('postgres', q{
	CREATE TABLE log (LIKE t);
	CREATE TABLE gone AS TABLE t;
	CREATE TABLE copy AS SELECT a, word FROM t ORDER BY a, word;
	SELECT /* top */ FROM t ORDER BY a, id;
});
$node->safe_psql('postgres', $_) foreach (
	'SELECT * FROM t ORDER BY a DESC, id',
	'SELECT max(rank) FROM (SELECT rank() OVER (ORDER BY a) FROM t WHERE id > 5) s',
	'SELECT * FROM small ORDER BY id DESC',
	'SELECT a FROM t WHERE id = 3',
	'SELECT * FROM t ORDER BY a LIMIT random() * 10',
	'SELECT * FROM t JOIN LATERAL (SELECT s.word AS other FROM t s WHERE s.id < t.id ORDER BY s.a FETCH FIRST ROW ONLY) s ON true WHERE t.id < 5',
	'INSERT INTO log SELECT * FROM t ORDER BY a',
	"SELECT now() - interval '1 day'",
	'SELECT * FROM gone ORDER BY a',
	'PREPARE p AS SELECT * FROM t WHERE id > $1 ORDER BY a; EXECUTE p(5)',
	'COPY (SELECT a FROM t ORDER BY a) TO STDOUT',
	'VACUUM small');
$node->safe_psql('postgres', 'DROP TABLE gone');

my $judged = 'sorts, sorts_gpusort, estimated_sort_percent BETWEEN 20 AND 100, estimated_gain_percent BETWEEN 5 AND 60, reason';
foreach my $beginning ('SELECT * FROM t ORDER BY a DESC', 'SELECT max(rank)', 'INSERT INTO log', 'PREPARE p', 'COPY (', 'CREATE TABLE copy')
{
	is(advice($judged, $beginning), '1|1|t|t|', "gains: $beginning");
	is($node->safe_psql('postgres', "SELECT count(*) FROM gpusort_advise() WHERE query LIKE '$beginning%'"), '1', 'by default, too');
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM log'), '50000', 'nothing is executed');
is(advice('sorts, sorts_gpusort, estimated_gain_percent, reason', 'SELECT * FROM small'),
	'1|0|0|the estimated number of rows, 100, is less than gpusort.min_rows (1000)', 'a small sort');
is(advice('sorts, sorts_gpusort, estimated_gain_percent, estimated_sort_percent, reason', 'SELECT a FROM t'), '0|0|0|0|', 'no sort');
is(advice('sorts, sorts_gpusort, estimated_gain_percent, reason', 'SELECT * FROM t ORDER BY a LIMIT'),
	'1|0|0|the LIMIT cannot be computed at execution time', 'a sort that is not replaced');
is(advice('sorts, sorts_gpusort, estimated_gain_percent, reason', 'SELECT * FROM t JOIN LATERAL'),
	'1|1|0|a GpuSort of which the LIMIT needs too few rows for a known gain', 'a sort that is replaced, but may gain nothing');
my $unplanned = 'sorts, sorts_gpusort, estimated_gain_percent, estimated_time_postgres, reason';
is(advice($unplanned, 'SELECT * FROM gone'), '||||relation "gone" does not exist', 'a table that is gone');
like(advice($unplanned, 'SELECT now() - interval'), qr/^\|\|\|\|syntax error/, 'a text that cannot be parsed');
is(advice($unplanned, 'VACUUM small'), '||||not planned: a utility statement', 'a utility statement');
is($node->safe_psql('postgres', "SELECT count(*) FROM gpusort_advise() WHERE query !~ '^(SELECT [*] FROM t ORDER BY a DESC|SELECT max|INSERT INTO log|PREPARE p|COPY|CREATE TABLE copy|SELECT /[*] top)'"),
	'0', 'only what gains is listed by default');
is($node->safe_psql('postgres', 'SELECT count(*) FROM gpusort_advise(0, 3)'), '3', 'the number of statements');

my $times = 'gpusort_active, estimated_time_gpusort < estimated_time_postgres, estimated_time_gpusort = total_exec_time, estimated_time_postgres = total_exec_time';
is(advice($times, 'SELECT * FROM t ORDER BY a DESC'), 't|t|t|f', 'the measured time is that with gpusort');
is(advice($times, 'SELECT * FROM t ORDER BY a DESC', 'SET gpusort.enabled = off;'), 'f|t|f|t', 'or that without');
is($node->safe_psql('postgres', "SET gpusort.enabled = off; SET client_min_messages = debug1; SELECT count(*) FROM gpusort_advise(0); SHOW gpusort.enabled; SHOW client_min_messages; SHOW lock_timeout") =~ s/^\d+\n//r,
	"off\ndebug1\n0", 'the settings are what they were');

# planning is not counted as planning of the statements
$node->safe_psql('postgres', "ALTER SYSTEM SET pg_stat_statements.track_planning = on; SELECT pg_reload_conf()");
ok(poll(sub { $node->safe_psql('postgres', 'SHOW pg_stat_statements.track_planning') eq 'on' }), 'reload');
$node->safe_psql('postgres', 'SELECT count(*) FROM gpusort_advise(0)');
is($node->safe_psql('postgres', q{SELECT sum(plans) FROM "The statements".pg_stat_statements WHERE query LIKE 'SELECT * FROM %'}), '0', 'no plans are counted');

# --------------------------------------------------------------- locks and cancels

{
	my ($session) = session($node, '');

	ask($session, 'BEGIN; LOCK t IN ACCESS EXCLUSIVE MODE;');
	is(advice($unplanned, 'SELECT * FROM t ORDER BY a DESC'), '||||canceling statement due to lock timeout', 'a locked table is not waited for long');
	ask($session, 'ROLLBACK');
	$session->quit;
}
is($node->safe_psql('postgres', "BEGIN; SELECT count(*) > 5 FROM gpusort_advise(0); SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass"),
	"t\n0", 'no lock is kept');

$node->safe_psql('postgres', q{
	CREATE TABLE delay AS SELECT 0 AS seconds;
	CREATE FUNCTION slow() RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(seconds) FROM delay; RETURN 1; END $$;
});
$node->safe_psql('postgres', 'SELECT /* slow */ slow()');
$node->safe_psql('postgres', 'UPDATE delay SET seconds = 600');
($rc, $out, $err) = $node->psql('postgres', "SET statement_timeout = '1s'; SELECT count(*) FROM gpusort_advise(0)");
like($err, qr/canceling statement due to statement timeout/, 'a cancel while a statement is planned');
$node->safe_psql('postgres', 'UPDATE delay SET seconds = 0');

# ------------------------------------------------------------------------- rights

$node->safe_psql('postgres', q{
	CREATE ROLE mallory;
	CREATE ROLE reader IN ROLE pg_read_all_stats;
	GRANT USAGE ON SCHEMA "The statements" TO PUBLIC;
	GRANT CREATE ON SCHEMA public TO mallory;
});
ask_as('mallory', q{
	CREATE TABLE did (what text, whose text);
	CREATE FUNCTION escalate() RETURNS text VOLATILE LANGUAGE plpgsql AS $$
	BEGIN
		IF current_setting('role') = 'none' AND session_user <> 'mallory' OR current_user <> 'mallory' THEN
			ALTER ROLE mallory SUPERUSER;
		END IF;
		RETURN current_user;
	END $$;
	CREATE FUNCTION resets() RETURNS text VOLATILE LANGUAGE plpgsql AS $$
	BEGIN
		IF session_user <> 'mallory' THEN
			EXECUTE 'RESET SESSION AUTHORIZATION';
			ALTER ROLE mallory SUPERUSER;
		END IF;
		RETURN current_user;
	END $$;
	CREATE FUNCTION innocent() RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN escalate(); END $$;
	CREATE FUNCTION harmless() RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN resets(); END $$;
	CREATE TABLE bait AS SELECT i AS a FROM generate_series(1, 10) i;
	GRANT SELECT ON bait TO PUBLIC;
});
ask_as('mallory', 'SELECT /* escalates */ innocent()');
ask_as('mallory', 'SELECT /* resets */ harmless()');
ask_as('mallory', 'SELECT a AS b FROM bait ORDER BY a');
$node->safe_psql('postgres', 'SELECT /* trapped */ a FROM bait ORDER BY a');
ask_as('mallory', 'DROP TABLE bait; CREATE VIEW bait AS SELECT 1 AS a WHERE innocent() IS NOT NULL; GRANT SELECT ON bait TO PUBLIC');

ask_as('mallory', q{
	CREATE FUNCTION nested() RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM gpusort_advise(0)); END $$;
});
ask_as('mallory', 'SELECT /* nested */ nested() > 0');
is(advice('rolname, reason', 'SELECT /* nested'), 'mallory|gpusort_advise() cannot be called while it plans a statement', 'no call in a call');
is(ask_as('mallory', "SELECT count(*) > 0 FROM gpusort_advise(0)"), 't', 'of a plain user, too');

like(advice('rolname, reason', 'SELECT /* escalates'), qr/^mallory\|(must be superuser|permission denied)/, 'a function is run as the role of the statement');
like(advice('rolname, reason', 'SELECT /* resets'), qr/^mallory\|cannot set parameter "session_authorization" within security-(restricted operation|definer function)/,
	'and cannot become the caller');
is(advice('rolname, reason', 'SELECT /* trapped'), $node->safe_psql('postgres', 'SELECT current_user') .
	'|planning by a superuser would run function innocent, which no superuser owns', 'a superuser plans without functions of others');
is($node->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"), 'f', 'no superuser was made');
is($node->safe_psql('postgres', 'BEGIN; SELECT count(*) > 5 FROM gpusort_advise(0); SELECT current_user = session_user; SELECT innocent() = session_user; ROLLBACK'),
	"t\nt\nt", 'the user is the caller again, whose own statements may run functions of others');

like(ask_as('mallory', "SELECT count(*), count(*) FILTER (WHERE rolname <> 'mallory') FROM gpusort_advise(0)"), qr/^[1-9]\d*\|0$/, 'a plain user: his own statements');
is(ask_as('reader', "SELECT DISTINCT estimated_gain_percent, reason FROM gpusort_advise(0) WHERE rolname <> 'reader'"),
	'|it is planned only for members of the role that runs it, and for superusers', 'a reader of statistics may not plan as others');
is(ask_as('reader', "SELECT count(*) FROM gpusort_advise_indexes()"), '2', 'indexes: anyone');

$node->stop;
done_testing();
