# ALTER EXTENSION gpusort UPDATE: the objects of version 1.0 become those that CREATE EXTENSION makes.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = gpusort_node('extension_update');

# The objects of the extension in a database, with all that a script can define: what they are, their texts,
# rights and comments.
sub objects_of
{
	my ($database) = @_;

	return $node->safe_psql($database, q{
		SELECT pg_describe_object(d.classid, d.objid, 0), pg_get_functiondef(p.oid), proowner::regrole, proacl,
			pg_get_viewdef(c.oid), relowner::regrole, relacl,
			(SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid),
			i.privtype, i.initprivs, description
		FROM pg_depend d
			LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
			LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
			LEFT JOIN pg_init_privs i ON i.classoid = d.classid AND i.objoid = d.objid AND i.objsubid = 0
			LEFT JOIN pg_description t ON t.classoid = d.classid AND t.objoid = d.objid AND t.objsubid = 0
		WHERE d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
			AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'gpusort')
		ORDER BY 1}) . "\n"
	  . $node->safe_psql($database, q{SELECT extversion, extrelocatable, extconfig FROM pg_extension WHERE extname = 'gpusort'});
}

$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
my $created = objects_of('postgres');
like($created, qr/^function gpusort_advise_indexes\(.*\n1\.1\|t\|$/s, 'the objects of version 1.1');

# Version 1.0 had one function more, whose symbol the library does not have any more.
sub make_1_0
{
	my ($database) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, q{
		CREATE EXTENSION gpusort;
		CREATE FUNCTION gpusort_advise(min_gain_percent float8 DEFAULT 5, max_statements integer DEFAULT 50, OUT queryid bigint, OUT query text)
			RETURNS SETOF record AS '$libdir/gpusort', 'gpusort_advise_indexes' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE ROWS 10;
		COMMENT ON FUNCTION gpusort_advise(float8, integer) IS 'which statements would gain';
		UPDATE pg_proc SET prosrc = 'gpusort_advise' WHERE proname = 'gpusort_advise';
		ALTER EXTENSION gpusort ADD FUNCTION gpusort_advise(float8, integer);
		UPDATE pg_extension SET extversion = '1.0' WHERE extname = 'gpusort'});
	return;
}

make_1_0('older');
like(($node->psql('older', 'SELECT * FROM gpusort_advise()'))[2], qr/ERROR:  could not find function "gpusort_advise" in file/, 'before the update');
is($node->safe_psql('older', 'SELECT count(*) > 0 FROM gpusort_service_status()'), 't', 'the other functions work');
$node->safe_psql('older', 'ALTER EXTENSION gpusort UPDATE');
is(objects_of('older'), $created, 'an update leaves what CREATE EXTENSION makes');

# a user's view
make_1_0('used');
$node->safe_psql('used', 'CREATE VIEW used AS SELECT queryid FROM gpusort_advise()');
like(($node->psql('used', "\\set VERBOSITY verbose\nALTER EXTENSION gpusort UPDATE"))[2],
	qr/ERROR:  2BP01: cannot drop function gpusort_advise\(.*\nDETAIL:  view used depends on function gpusort_advise/, 'a view that uses what is gone');
is($node->safe_psql('used', q{SELECT extversion FROM pg_extension WHERE extname = 'gpusort'}), '1.0', 'prevents the update');
$node->safe_psql('used', 'DROP VIEW used; ALTER EXTENSION gpusort UPDATE');
is(objects_of('used'), $created, 'until it is dropped');

# pg_dump has CREATE EXTENSION without a version, so it restores the present one
make_1_0('dumped');
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
command_ok([ 'pg_dump', '--file', $dump, $node->connstr('dumped') ], 'pg_dump');
$node->safe_psql('postgres', 'CREATE DATABASE restored');
command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('restored'), '-f', $dump ], 'a dump of version 1.0 is restored');
is(objects_of('restored'), $created, 'as version 1.1');

$node->stop;
done_testing();
