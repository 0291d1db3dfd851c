# Whose rights functions have that gpusort's index builds and CLUSTER call, as docs/security.md says: those of the
# owner of the table, in a security-restricted operation, also in workers and when the table is scanned again.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = service_node('rights', 'gpusort.debug_plan = on', 'log_min_messages = log');

# A function may not run in workers if it starts subtransactions.
$node->safe_psql('postgres', q{
	CREATE EXTENSION gpusort;
	CREATE ROLE mallory;
	GRANT CREATE ON SCHEMA public TO mallory;
	SET SESSION AUTHORIZATION mallory;
	CREATE FUNCTION tell(id int) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
	BEGIN
		IF id % 5000 = 0 THEN
			IF pg_catalog.current_setting('application_name') = pg_catalog.pg_backend_pid()::text THEN
				RAISE LOG 'in the leader by %.', current_user;
				PERFORM pg_catalog.pg_sleep(0.5);	-- leave the other rows to workers
			ELSE
				RAISE LOG 'in a worker by %.', current_user;
			END IF;
		END IF;
		RETURN -id;
	END $$;
	CREATE FUNCTION escape(id int) RETURNS int IMMUTABLE PARALLEL UNSAFE LANGUAGE plpgsql AS $$
	BEGIN
		IF id = 5000 THEN
			PERFORM pg_catalog.set_config('role', 'none', false);
			RAISE LOG 'escaped, and is %.', current_user;
		END IF;
		RETURN -id;
	EXCEPTION WHEN insufficient_privilege THEN
		RAISE LOG 'refused to %.', current_user;
		RETURN -id;
	END $$;
	CREATE FUNCTION is_less(a int, b int) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT a OPERATOR(pg_catalog.<) b';
	CREATE FUNCTION compare(a int, b int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT pg_catalog.btint4cmp(-public.escape(a), b)';
	CREATE OPERATOR <<< (LEFTARG = int, RIGHTARG = int, FUNCTION = is_less);
	RESET SESSION AUTHORIZATION;
	CREATE OPERATOR CLASS compared FOR TYPE int USING btree AS OPERATOR 1 <<<, FUNCTION 1 compare(int, int);
	SET SESSION AUTHORIZATION mallory;
	CREATE TABLE bait WITH (parallel_workers = 2) AS SELECT i AS id FROM generate_series(1, 20000) i;
	CREATE INDEX bait_workers ON bait (tell(id));
	CREATE INDEX bait_escape ON bait (escape(id));
	SET max_parallel_maintenance_workers = 0;
	CREATE INDEX bait_compared ON bait (id compared);
	CREATE INDEX bait_predicate ON bait (id) WHERE escape(id) < 0;
});

# What a superuser's statement adds to the log.
sub log_of
{
	my ($statement, $regexp) = @_;
	my $at = -s $node->logfile;
	my $messages = ($node->psql('postgres', "SELECT set_config('application_name', pg_backend_pid()::text, false); $statement"))[2];

	unlike($messages, qr/ERROR|without gpusort/, $statement);
	like($messages, qr/clustering table "bait" with gpusort/, 'by gpusort') if $statement =~ /CLUSTER/;
	return slurp_file($node->logfile, $at) =~ /$regexp/g;
}

my $in_workers = 'SET min_parallel_table_scan_size = 0;';
my $told = 'in (?:a|the) (\w+ by \w+)\.';
my @told = log_of("$in_workers SET gpusort.engine = cpu; REINDEX INDEX bait_workers", $told);
is(scalar(grep { / by mallory$/ } @told), 4, 'functions of an index run as the owner of its table');
isnt(scalar(grep { /^worker/ } @told), 0, 'also in workers');

my $refused = '(refused to \w+|escaped, and is \w+)\.';
foreach my $engine ('cpu', 'cuda')
{
	is(join(' ', log_of("SET gpusort.engine = $engine; REINDEX INDEX $_", $refused)),
		'refused to mallory', "$_, $engine: who cannot become the caller") foreach 'bait_escape', 'bait_predicate';
	foreach my $statement ('REINDEX INDEX bait_compared', 'CLUSTER bait USING bait_compared', 'CLUSTER bait USING bait_escape')
	{
		my %refused = map { $_ => 1 } log_of("SET max_parallel_maintenance_workers = 0; SET enable_indexscan = off; SET gpusort.engine = $engine; $statement", $refused);
		is(join(' ', keys %refused), 'refused to mallory', "$engine: nor by $statement");
	}
}

restart_service($node, 'gpusort.service_fault' => 'pack:1:fail');
is(join(' ', log_of('REINDEX INDEX bait_escape', $refused)), 'refused to mallory refused to mallory', 'nor if the table is scanned again');
is(count_in_log($node, 'sort engine "cuda" failed, sorting again without it'), 1, 'as it was');
restart_service($node, 'gpusort.service_fault' => 'pack:1:fail');
@told = log_of("$in_workers REINDEX INDEX bait_workers", $told);
is(join(', ', sort keys %{ { map { $_ => 1 } @told } }), 'leader by mallory, worker by mallory', 'nor if workers have scanned it before');
cmp_ok(scalar(@told), '>', 4, 'and the leader scans it again');
restart_service($node, 'gpusort.service_fault' => '');


# The error of a duplicate shows its key only to those who may read all rows.
$node->safe_psql('postgres', q{
	SET SESSION AUTHORIZATION mallory;
	CREATE TABLE twice AS SELECT least(i, 19999) AS id FROM generate_series(1, 20000) i});
foreach my $case ([ 'NO FORCE', 'Key (id)=(19999) is duplicated.' ], [ 'FORCE', 'Duplicate keys exist.' ])
{
	my ($force, $detail) = @$case;

	foreach my $engine ('cpu', 'cuda')
	{
		my $error = ($node->psql('postgres', "SET SESSION AUTHORIZATION mallory; ALTER TABLE twice ENABLE ROW LEVEL SECURITY, $force ROW LEVEL SECURITY;"
			  . " SET gpusort.engine = $engine; CREATE UNIQUE INDEX twice_id ON twice (id)"))[2];
		like($error, qr/building index "twice_id" with gpusort.*DETAIL:  \Q$detail\E/s, "$force ROW LEVEL SECURITY, $engine");
	}
}

$node->stop;
done_testing();
