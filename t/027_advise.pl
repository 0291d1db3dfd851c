# gpusort_advise_indexes(): estimates, what is skipped and why, and that no code of users runs.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = gpusort_node('advise', 'gpusort.engine = cpu');

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

# ------------------------------------------------------------- nobody's code runs

# Functions of a user wherever a table and its indexes can have some, and operators before those of
# pg_catalog; each call takes a number of a sequence, which no rollback gives back.
$node->safe_psql('postgres', q{
	CREATE ROLE mallory;
	GRANT CREATE ON SCHEMA public TO mallory;
	SET SESSION AUTHORIZATION mallory;
	CREATE SEQUENCE calls;
	CREATE FUNCTION spy(value int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM pg_catalog.nextval('public.calls');
		RETURN value;
	END $$;
	CREATE FUNCTION spy_compares(a int, b int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT public.spy(pg_catalog.btint4cmp(a, b))';
	CREATE FUNCTION spy_equals(a oid, b oid) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT public.spy(1) OPERATOR(pg_catalog.=) 1 AND a OPERATOR(pg_catalog.=) b';
	CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = oid, FUNCTION = spy_equals);
	RESET SESSION AUTHORIZATION;
	CREATE OPERATOR CLASS spied FOR TYPE int USING btree AS
		OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 spy_compares(int, int);
	SET SESSION AUTHORIZATION mallory;
	CREATE DOMAIN spied AS int CHECK (spy(VALUE) > 0);
	CREATE TABLE bait (a int, b spied, c int GENERATED ALWAYS AS (spy(a)) STORED);
	INSERT INTO bait SELECT i, i FROM generate_series(1, 2000) i;
	CREATE INDEX bait_a ON bait (a spied);
	CREATE INDEX bait_b ON bait (b);
	CREATE INDEX bait_expression ON bait (spy(a));
	CREATE INDEX bait_predicate ON bait (a) WHERE spy(1) > 0;
	CREATE STATISTICS bait_statistics ON spy(a), (a + 1) FROM bait;
	CREATE POLICY bait_policy ON bait USING (spy(1) > 0);
	ALTER TABLE bait ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
	ANALYZE bait;
});

# Of a statement of a superuser in a session of its own: how many calls it makes, and its output.
sub calls_of
{
	my ($statement) = @_;
	my $last = $node->safe_psql('postgres', 'SELECT last_value FROM calls');
	my $output = $node->safe_psql('postgres', $statement);

	return ($node->safe_psql('postgres', 'SELECT last_value FROM calls') - $last, $output);
}

my ($calls, $output) = calls_of("SELECT count(*) FROM gpusort_advise_indexes(0) WHERE indrelid = 'bait'::regclass");
is($output, '4', 'indexes with functions of a user');
is($calls, 0, 'no function is called');
($calls) = calls_of('EXPLAIN SELECT FROM bait WHERE a = 1');
cmp_ok($calls, '>', 0, 'as the planner would');

my $path = 'SET search_path = public, pg_catalog;';
($calls, $output) = calls_of("$path SELECT count(*) >= 7 FROM gpusort_advise_indexes(0)");
is("$output $calls", 't 0', 'nor an operator of the search_path');
($calls) = calls_of("$path SELECT 1::oid = 1::oid; SHOW search_path");
is($calls, 1, 'as a query would');
is($node->safe_psql('postgres', "$path SELECT count(*) >= 7 FROM gpusort_advise_indexes(0); SHOW search_path"), "t\npublic, pg_catalog", 'the setting is what it was');
is($node->safe_psql('postgres', "SET SESSION AUTHORIZATION mallory; SELECT count(*) FROM gpusort_advise_indexes() WHERE indrelid = 't'::regclass"), '2', 'anyone may ask');

$node->stop;
done_testing();
