# Every type with a btree order, in the server and in each installed contrib module:
# all its operator classes, default or not, in both directions, with NULLs first and
# last, under several collations, by both engines.
#
# The types are read from the catalogs, so that none can be forgotten; the values are
# those of test/values.sql.  A type without values there fails, unless it is named
# below with a reason.  The result is compared with PostgreSQL's sort, and pair by
# pair with the type's operator.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Operator classes that are not tested, and why.
my %untested = ();

# Those that only a comparator can sort, or whose ties need one, which a device cannot call.
my %compared = map { $_ => 1 } (
	'btree_geography_ops of geography', 'btree_geometry_ops of geometry', 'cube_ops of cube', 'record_image_ops of record', 'seg_ops of seg',
	'tsquery_ops of tsquery');

my $node = gpusort_node('types', 'gpusort.force = on', 'gpusort.device = host', 'gpusort.device_min_rows = 0');

plan skip_all => 'this server has no ICU' unless has_icu($node);
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort');
foreach my $extension (split(/\n/, $node->safe_psql('postgres', 'SELECT name FROM pg_available_extensions ORDER BY 1')))
{
	my ($rc, $out, $err) = $node->psql('postgres', "CREATE EXTENSION IF NOT EXISTS \"$extension\" CASCADE");

	note("no extension $extension: $err") if $rc != 0;
}
$node->safe_psql('postgres', slurp_file('test/values.sql'));
ok(wait_for_service($node, 'running'), 'gpusortd runs');

# Each value of a type some times, and NULLs, in random order; the first rows
# are each value once.
$node->safe_psql('postgres', <<'SQL');
CREATE FUNCTION fill(type text, literals text[], ncopies int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	literal text;
BEGIN
	DROP TABLE IF EXISTS filled, input;
	EXECUTE format('CREATE TABLE filled (n int, v %s)', type);
	FOR n IN 1..cardinality(literals) LOOP
		EXECUTE format('INSERT INTO filled SELECT %s, %L::%s', n, literals[n], type);
	END LOOP;
	-- rows lie in the order of their id, as nothing is inserted into space left free
	CREATE TABLE input AS
		SELECT n AS id, v FROM filled
		UNION ALL
		SELECT cardinality(literals) + row_number() OVER (ORDER BY hashint8(copy * 1000 + n)), v
		FROM (SELECT n, v, copy FROM filled, generate_series(1, ncopies) copy UNION ALL SELECT -n, NULL, n FROM filled WHERE n < 10) x
		ORDER BY id;
END $$;

-- The rows of the input in an order, and who sorted; NULL if they are right.
CREATE FUNCTION wrong(key text, direction text, before text, nvalues int, OUT sorter text, OUT why text) LANGUAGE plpgsql AS $$
DECLARE
	query text := format('SELECT array_agg(id) FROM (SELECT id, v FROM input ORDER BY %s %s) x', key, direction);
	plan jsonb;
	got int[];
	want int[];
	npairs bigint;
	columns text;
BEGIN
	EXECUTE query INTO got;
	EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF, SUMMARY OFF, FORMAT JSON) ' || query INTO plan;
	sorter := coalesce(jsonb_path_query_first(plan, 'strict $.** ? (@."Custom Plan Provider" == "GpuSort")."Engine"') #>> '{}', 'Sort');
	PERFORM set_config('gpusort.enabled', 'off', false);
	EXECUTE format('SELECT array_agg(id ORDER BY place) FROM (SELECT id, row_number() OVER (ORDER BY %s %s, id) place FROM input) x', key, direction) INTO want;
	IF sorter IN ('cpu', 'cuda') THEN
		IF got IS DISTINCT FROM want THEN
			why := format('row %s is another one than by PostgreSQL''s sort',
						  (SELECT min(i) FROM generate_subscripts(want, 1) i WHERE got[i] IS DISTINCT FROM want[i]));
		END IF;
	ELSIF ARRAY(SELECT unnest(got) ORDER BY 1) IS DISTINCT FROM ARRAY(SELECT unnest(want) ORDER BY 1) THEN
		why := 'not the rows of the input';
	END IF;
	-- a later row before an earlier one: of the values all pairs, of the rows the neighbours
	EXECUTE format('WITH sorted AS MATERIALIZED (SELECT place, id, %1$s AS k FROM unnest($1) WITH ORDINALITY AS o (id, place) JOIN input USING (id))'
				   ', pairs AS (SELECT a.k AS earlier, b.k AS later FROM sorted a JOIN sorted b ON b.place = a.place + 1'
				   ' UNION ALL SELECT a.k, b.k FROM sorted a JOIN sorted b ON b.place > a.place + 1 WHERE a.id <= %3$s AND b.id <= %3$s)'
				   ' SELECT count(*) FROM pairs'
				   ' WHERE later %2$s earlier OR (%4$s (earlier IS NOT DISTINCT FROM NULL) AND NOT %4$s (later IS NOT DISTINCT FROM NULL))',
				   key, before, nvalues, CASE WHEN direction LIKE '%NULLS LAST' THEN '' ELSE 'NOT' END)
		INTO npairs USING got;
	PERFORM set_config('gpusort.enabled', 'on', false);
	IF npairs > 0 THEN
		why := concat_ws('; ', why, format('%s pairs are in the wrong order', npairs));
	END IF;
END $$;
SQL

# Operator classes, their operators, and the types whose values they can order,
# each with the collations to sort under.
my $classes = $node->safe_psql('postgres', <<'SQL');
CREATE COLLATION gs_nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT format('%s of %s', opcname, opcintype::regtype), opcdefault,
	format('OPERATOR(%I.%s)', ln.nspname, l.oprname), format('OPERATOR(%I.%s)', gn.nspname, g.oprname), t.type, cardinality(t.literals),
	CASE WHEN t.typcollation != 0 THEN (SELECT string_agg(collname, ' ' ORDER BY collname) FROM pg_collation
		WHERE collname IN ('C', 'default', 'C.utf8', 'en_US.utf8', 'en-x-icu', 'gs_nocase')) END
FROM pg_opclass c
	JOIN pg_am ON pg_am.oid = opcmethod AND amname = 'btree'
	JOIN pg_amop less ON less.amopfamily = opcfamily AND less.amoplefttype = opcintype AND less.amoprighttype = opcintype AND less.amopstrategy = 1
	JOIN pg_amop greater ON greater.amopfamily = opcfamily AND greater.amoplefttype = opcintype AND greater.amoprighttype = opcintype AND greater.amopstrategy = 5
	JOIN pg_operator l ON l.oid = less.amopopr JOIN pg_namespace ln ON ln.oid = l.oprnamespace
	JOIN pg_operator g ON g.oid = greater.amopopr JOIN pg_namespace gn ON gn.oid = g.oprnamespace
	LEFT JOIN LATERAL (
		SELECT v.type, v.literals, b.typcollation
		FROM type_values v JOIN pg_type d ON d.oid = to_regtype(v.type) JOIN pg_type b ON b.oid = coalesce(nullif(d.typbasetype, 0), d.oid)
		WHERE CASE opcintype
			WHEN 'anyarray'::regtype THEN b.typsubscript = 'array_subscript_handler'::regproc
			WHEN 'anyenum'::regtype THEN b.typtype = 'e'
			WHEN 'anyrange'::regtype THEN b.typtype = 'r'
			WHEN 'anymultirange'::regtype THEN b.typtype = 'm'
			WHEN 'record'::regtype THEN b.typtype = 'c'
			WHEN 'text'::regtype THEN b.oid IN ('text'::regtype, 'varchar'::regtype)
			WHEN 'inet'::regtype THEN b.oid IN ('inet'::regtype, 'cidr'::regtype)
			ELSE b.oid = opcintype END) t ON true
ORDER BY 1, 5
SQL

# Lines "collation|direction|sorter|what is wrong", of an engine.
sub orders_of
{
	my ($engine, $less, $greater, $nvalues, @collations) = @_;
	my @keys = map { $_ eq '' ? 'v' : "v COLLATE \"$_\"" } @collations;
	my $values = join(', ', map { "('$_')" } @keys);

	return split(/\n/, $node->safe_psql('postgres', <<SQL));
SET gpusort.engine = $engine;
SELECT key, direction, sorter, why
FROM (VALUES $values) k (key), (VALUES ('$less'), ('$greater')) o (before), (VALUES ('NULLS FIRST'), ('NULLS LAST')) n (nulls),
	LATERAL (SELECT format('USING %s %s', before, nulls)) d (direction), LATERAL wrong(key, direction, before, $nvalues) w
SQL
}

my %sorted;		# number of orders by who sorted
my %kept;		# operator classes with an order that PostgreSQL's Sort had

foreach my $line (split(/\n/, $classes))
{
	my ($class, $default, $less, $greater, $type, $nvalues, $collations) = split(/\|/, $line, -1);
	my @wrong;
	my $norders = 0;

	if (defined $untested{$class})
	{
		note("$class is not tested: $untested{$class}");
		next;
	}
	if ($type eq '')
	{
		fail("$class: test/values.sql has no values of such a type");
		next;
	}

	# enough rows for gpusort to guess an order that it does not know
	my $ncopies = $compared{$class} ? 12 + int(1200 / $nvalues) : 12;

	$node->safe_psql('postgres', "SELECT fill(type, literals, $ncopies) FROM type_values WHERE type = '$type'");
	foreach my $engine ('cpu', 'cuda')
	{
		foreach (orders_of($engine, $less, $greater, $nvalues, $collations eq '' ? ('') : split(/ /, $collations)))
		{
			my ($key, $direction, $sorter, $why) = split(/\|/, $_, 4);

			$norders++;
			$sorted{$sorter}++;
			$kept{$class}{$key} = 1 if $sorter ne ($compared{$class} ? 'cpu' : $engine);
			push @wrong, "$engine, ORDER BY $key $direction, by $sorter: $why" if $why ne '';
		}
	}
	ok($norders > 0 && !@wrong, "$class, values of $type: $norders orders" . ($default eq 't' ? '' : ', not the default'));
	diag($_) foreach @wrong;
}

# The only type whose abbreviated keys have their own comparator, with many values.
SKIP:
{
	skip 'PostGIS is not installed in this server', 5
	  if $node->safe_psql('postgres', q{SELECT count(*) FROM pg_extension WHERE extname = 'postgis'}) == 0;
	my $plan = 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)';
	my ($stdout, $stderr);

	$node->safe_psql('postgres', q{
		CREATE TABLE shapes AS SELECT i AS id, CASE WHEN i % 100 = 0 THEN 'POINT EMPTY'::geometry
			ELSE st_buffer(st_makepoint(hashint4(i) % 500, hashint4(-i) % 500), 1, CASE WHEN i % 50 = 0 THEN 200 ELSE 1 END) END AS shape
		FROM generate_series(1, 5000) i});
	like($node->safe_psql('postgres', "$plan SELECT * FROM shapes ORDER BY shape"),
		qr/GpuSort.*radix sort.*Engine: cpu.*Key Verification Comparisons: 1\b/s, 'geometry: abbreviated keys are verified, and only ties of them are compared');
	like($node->safe_psql('postgres', "SET work_mem = '256kB'; $plan SELECT * FROM shapes ORDER BY shape DESC"),
		qr/GpuSort.*external merge.*Engine: cpu/s, 'geometry: runs');
	is($node->safe_psql('postgres', q{
		SET work_mem = '256kB';
		CREATE TABLE ours AS SELECT row_number() OVER (), id FROM (SELECT * FROM shapes ORDER BY shape DESC, id) x;
		SET gpusort.enabled = off;
		CREATE TABLE expected AS SELECT row_number() OVER (), id FROM (SELECT * FROM shapes ORDER BY shape DESC, id) x;
		SELECT count(*) FROM ours JOIN expected USING (row_number, id)}), 5000, 'geometry: the order of many');
	is($node->safe_psql('postgres', q{
		CREATE TABLE named AS SELECT id, shape, repeat(md5((id / 2)::text), 60) COLLATE "C" AS name FROM shapes;
		CREATE TABLE ours_named AS SELECT row_number() OVER (), id FROM (SELECT * FROM named ORDER BY name, shape DESC, id) x;
		SET gpusort.enabled = off;
		CREATE TABLE expected_named AS SELECT row_number() OVER (), id FROM (SELECT * FROM named ORDER BY name, shape DESC, id) x;
		SELECT count(*) FROM ours_named JOIN expected_named USING (row_number, id)}), 5000, 'geometry: after a long text');
	$node->psql('postgres', q{SET gpusort.debug_plan = on; CREATE INDEX shapes_by_shape ON shapes (shape) WHERE id % 50 > 0;
		SELECT bt_index_parent_check('shapes_by_shape', true, true)}, stdout => \$stdout, stderr => \$stderr);
	is($stderr, 'psql:<stdin>:1: NOTICE:  building index "shapes_by_shape" with gpusort', 'geometry: an index');
}

diag('sorted by ', join(', ', map { "$_: $sorted{$_}" } sort keys %sorted));
diag('left to PostgreSQL: ', join('; ', sort keys %kept));
is(join('; ', map { "$_ (" . join(', ', sort keys %{ $kept{$_} }) . ')' } sort keys %kept), '',
	'PostgreSQL keeps no sort but those that are named here');
cmp_ok($sorted{cpu} // 0, '>', 100, 'the CPU engine has sorted');
cmp_ok($sorted{cuda} // 0, '>', 100, 'gpusortd has sorted');
ok(!$node->log_contains('terminated by signal|TRAP: |PANIC: '), 'no process has crashed');
$node->stop;

done_testing();
