# The documents against the program and each other: settings, columns of views and functions, names of settings, links.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/lib";

use File::Basename qw(dirname);
use GpuSortTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = "$FindBin::RealBin/..";
my @documents = map { s{^\Q$top\E/}{}r } glob("$top/*.md $top/*/*.md $top/src/*/*.md $top/test/*/*.md $top/bench/*/results/*.md");

# Its code blocks are left out.
sub lines_of
{
	my ($document) = @_;

	return split(/\n/, slurp_file("$top/$document") =~ s/^(```|~~~).*?^\1//mgrs);
}

# The cells of a line of a table.
sub cells
{
	my ($line) = @_;

	return map { s/^\s+|\s+$//gr } split(/(?<!\\)\|/, $line =~ s/^\||\|\s*$//gr);
}

my $node = PostgreSQL::Test::Cluster->new('documents');
$node->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
$node->append_conf('postgresql.conf', "session_preload_libraries = 'gpusort'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION gpusort; CREATE ROLE other');

# ---------------------------------------------------------------------- settings

# Name, default and context of each setting, and whether only superusers see it.  The server
# has a test build, whose own settings are in another document.
sub documented_settings
{
	my $context = '';
	my @settings;

	foreach (lines_of('docs/settings.md'), lines_of('test/doubles/README.md'))
	{
		$context = 'user' if /^## Settings of a session/ || /^These are for tests/;
		$context = 'superuser' if /^Only superusers/;
		$context = 'sighup' if /^## Settings of the server/;
		next unless /^\| `gpusort\./;
		my ($name, $default, $meaning) = cells($_);

		push @settings, join(' ', $name =~ tr/`//dr, $default eq 'empty' ? '' : $default =~ tr/`//dr,
			$meaning =~ /Superusers only/ ? 'superuser' : $context, $meaning =~ /Visible to superusers only/ ? 'f' : 't');
	}
	return join("\n", sort @settings);
}

my %seen = map { $_ => 1 } split(/\n/, $node->safe_psql('postgres', 'SET ROLE other; SELECT name FROM pg_settings'));
my %unit_of;
my @settings;

foreach (split(/\n/, $node->safe_psql('postgres', q{SELECT name, current_setting(name), context, unit FROM pg_settings WHERE name LIKE 'gpusort.%'})))
{
	my ($name, $default, $context, $unit) = split(/\|/, $_, -1);

	push @settings, join(' ', $name, $default, $context, $seen{$name} ? 't' : 'f');
	$unit_of{$name} = $unit;
}
is(documented_settings(), join("\n", sort @settings), 'settings.md, or the document of test doubles, has all settings, with their defaults and who sets and sees them');

# a number without a unit would be taken for one in this unit
my %words = (ms => qr/milliseconds|`\d+m?s`/, s => qr/seconds|`\d+(s|min)`/, MB => qr/in MB|`\d+GB`/);
my @without = grep { my $name = $_; my ($line) = grep { /^\| `\Q$name\E`/ } lines_of('docs/settings.md'); $unit_of{$name} && $line !~ $words{ $unit_of{$name} } } keys %unit_of;
is("@without", '', 'and their units');

# -------------------------------------------------- columns of views and functions

# What the table below a heading says: a name and a type a line.
sub documented_columns
{
	my ($document, $heading) = @_;
	my $here = 0;
	my @columns;

	foreach (lines_of($document))
	{
		$here = /^#+ \Q$heading\E$/ if /^#/;
		next unless $here && /^\| `/;
		my ($names, $types) = cells($_);
		my @types = split(/, /, $types);

		foreach my $name ($names =~ /`(\w+)`/g)
		{
			push @columns, "$name " . (@types > 1 ? shift @types : $types[0]);
		}
	}
	return join("\n", @columns) =~ s/timestamptz/timestamp with time zone/gr;
}

foreach (
	[ 'docs/monitoring.md', 'pg_stat_gpusort' ],
	[ 'docs/monitoring.md', 'pg_stat_gpusort_activity' ],
	[ 'docs/monitoring.md', 'pg_stat_gpusort_device' ],
	[ 'docs/what-would-gain.md', 'gpusort_advise_indexes()' ],
	[ 'docs/explain.md', 'gpusort_service_status()' ])
{
	my ($document, $what) = @$_;

	is(documented_columns($document, $what),
		$node->safe_psql('postgres', "CREATE TEMP VIEW columns AS SELECT * FROM $what;"
			  . " SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute"
			  . " WHERE attrelid = 'columns'::regclass AND attnum > 0 ORDER BY attnum"),
		"$document has the columns of $what");
}
$node->stop;

# ------------------------------------------------------------- names and links

# files, also those in pg_stat_tmp
my %others = map { ("gpusort.$_" => 1) } qw(c so control spec conf sock status);
my @unknown;

# results of a day have the settings of that day
foreach my $document (grep { !m{/results/} } @documents)
{
	push @unknown, map { "$document: $_" } grep { !exists $unit_of{$_} && !$others{$_} } slurp_file("$top/$document") =~ /\b(gpusort\.[a-z_]+)\b/g;
}
is(join("\n", @unknown), '', 'settings that documents name exist');

# The anchors of a document, as GitHub makes them of its headings.
my %anchors;

sub anchors_of
{
	my ($document) = @_;

	$anchors{$document} //= { map { lc(s/[^\w -]//gr) =~ tr/ /-/r => 1 } map { /^#+ +(.*)/ ? $1 : () } lines_of($document) };
	return $anchors{$document};
}

my @dead;
my $nlinks = 0;

foreach my $document (@documents)
{
	foreach my $link (map { /\]\(([^)\s]+)\)/g } lines_of($document))
	{
		next if $link =~ m{^https?://};
		my ($path, $anchor) = $link =~ /^([^#]*)#?(.*)$/;
		my $target = $path eq '' ? $document : dirname($document) . "/$path";

		$target =~ s{^\./}{};
		1 while $target =~ s{[^/]+/\.\./}{};
		$nlinks++;
		push @dead, "$document: $link" unless -e "$top/$target" && ($anchor eq '' || anchors_of($target)->{$anchor});
	}
}
is(join("\n", @dead), '', 'links lead somewhere');
cmp_ok($nlinks, '>', 100, 'links are found');

done_testing();
