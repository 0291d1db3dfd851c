# The build of gpusortd: what is compiled, for which GPUs, and with which test doubles.  nvcc
# is a script that counts its calls.

use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = "$FindBin::RealBin/..";
my $temp = PostgreSQL::Test::Utils::tempdir();
my $calls = "$temp/calls";
my @sources = glob("$top/cuda/*.cu");

sub program
{
	my ($path, $text) = @_;

	unlink $path;
	append_to_file($path, "#!/bin/sh\n$text\n");
	chmod 0755, $path;
}

mkdir "$temp/$_" foreach ('cuda', 'cuda/bin', 'cuda/lib64', 'bin');
program("$temp/cuda/bin/nvcc", qq{
	[ "\$1" != --list-gpu-arch ] || exec printf 'compute_%s\\n' 70 75 80 86 90
	echo "\$*" >>'$calls'
	while [ "\$1" != -o ]; do shift; done
	echo | cc -x c -c - -o "\$2"});
system_or_bail('ar', 'rcs', "$temp/cuda/lib64/libcudart_static.a");

# This machine's GPUs, its compiler and the options of this build are ignored.
delete @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS CUDA_ARCHS WITH_CUDA NVCC COPT TEST_DOUBLES)};
$ENV{PATH} = "$temp/bin:$ENV{PATH}";
program("$temp/bin/nvidia-smi", 'exit 9');
symlink "$temp/cuda/bin/nvcc", "$temp/bin/nvcc";

# Runs make; returns its calls of nvcc and of the C compiler, and for which GPUs.
sub built
{
	my ($folder, @arguments) = @_;

	unlink $calls;
	my ($out, $err) = run_command([ 'make', '-j2', '-C', "$top/$folder", "BUILD=$temp/build", @arguments ]);
	my $text = -e $calls ? slurp_file($calls) : '';
	my %archs = map { $_ => 1 } $text =~ /code=sm_(\d+)/g;
	die $err if $err =~ /\*\*\*/;
	return join(', ', ($text =~ tr/\n//) . ' by nvcc', scalar(() = $out =~ / -c -o /g) . ' by cc', 'for ' . join(' ', sort keys %archs));
}

my $all = @sources;
my @quickly = ('CFLAGS=-O0', 'LDFLAGS=-Wl,--unresolved-symbols=ignore-all');
my $install = [ 'install', "DESTDIR=$temp/root", 'bindir=/bin', @quickly ];

like(built('src/gpusortd', 'CUDA_ARCHS=90', 'COPT=-DGIVEN', @quickly), qr/^$all by nvcc, [1-9]\d* by cc, for 90$/,
	'make CUDA_ARCHS=90 compiles for one kind of GPU');
is(built('src/gpusortd', @$install), '0 by nvcc, 0 by cc, for ', 'make install compiles nothing');
is(slurp_file("$temp/root/bin/gpusortd"), slurp_file("$temp/build/gpusortd"), 'and installs what was built');
is(built('src/gpusortd', @quickly), '0 by nvcc, 0 by cc, for ', 'nor does make');
is(built('src/gpusortd', 'CUDA_ARCHS=80 86', @quickly), "$all by nvcc, 0 by cc, for 80 86", 'other kinds are compiled for');
is(built('src/gpusortd', @$install), '0 by nvcc, 0 by cc, for ', 'and installed');
like(built('src/gpusortd', 'WITH_CUDA=no', @quickly), qr/^0 by nvcc, [1-9]\d* by cc, for $/, 'without CUDA');
is(built('src/gpusortd', @$install), '0 by nvcc, 0 by cc, for ', 'it is installed without');

# with test doubles, until the option says no
sub doubles
{
	my ($symbols) = run_command([ 'nm', "$temp/root/bin/gpusortd" ]);
	my %names = map { $_ => 1 } $symbols =~ / T (gs_device_host_open|gs_device_fault_open|__wrap_main)$/mg;

	return join(' ', sort keys %names);
}
my $doubles = '__wrap_main gs_device_fault_open gs_device_host_open';

is(doubles(), '', 'without test doubles');
like(built('src/gpusortd', 'TEST_DOUBLES=yes', @quickly), qr/^0 by nvcc, [1-9]\d* by cc, for $/, 'a test build');
is(built('src/gpusortd', @$install), '0 by nvcc, 0 by cc, for ', 'is installed');
is(doubles(), $doubles, 'with test doubles');
like(built('src/gpusortd', 'WITH_CUDA=yes', 'CUDA_ARCHS=90', @quickly), qr/^\d+ by nvcc, [1-9]\d* by cc, for (90)?$/, 'a test build with CUDA');
built('src/gpusortd', @$install);
is(doubles(), $doubles, 'has them, too');
like(built('src/gpusortd', 'TEST_DOUBLES=no', @quickly), qr/^0 by nvcc, [1-9]\d* by cc, for $/, 'no test build any more');
is(built('src/gpusortd', @$install), '0 by nvcc, 0 by cc, for ', 'it is installed');
is(doubles(), '', 'without test doubles again');

# which kinds, if none is named
built('src/gpusortd', 'clean');
is(built('cuda'), "$all by nvcc, 0 by cc, for 75 80 86 90", 'no GPU: all kinds that the compiler knows');
built('cuda', 'clean');
program("$temp/bin/nvidia-smi", q{printf '8.6\n9.0\n8.6\n'});
is(built('cuda'), "$all by nvcc, 0 by cc, for 86 90", 'two kinds of GPU: both');
is(built('cuda', 'CUDA_ARCHS=all'), "$all by nvcc, 0 by cc, for 75 80 86 90", 'all, with a GPU');
built('cuda', 'clean');
program("$temp/bin/nvidia-smi", q{printf '13.7\n'});
is(built('cuda'), "$all by nvcc, 0 by cc, for 75 80 86 90", 'a GPU that the compiler does not know: all');

done_testing();
