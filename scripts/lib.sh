# lib.sh - functions of the other scripts.  Sourced, not run.
#
#	use_postgres ARGUMENT...		runs the script again with the PostgreSQL of --postgres
#	install_packages PACKAGE...		installs missing Debian packages
#	install_optional_packages PACKAGE...	the same, for tests that can be skipped
#	debian_mirror					prints the mirror of Debian that apt uses here
#	debian_postgres					prints the major version of this Debian's PostgreSQL
#	make_locales LOCALE...			creates missing locales, in UTF-8
#	make_workdir					makes a temporary folder, removed at exit
#	make_cache						makes a permanent folder: $TMPDIR/gpusort-test-UID
#	copy_tree FOLDER				copies the sources; $tree is the folder
#	build_and_install [OPTION...]	builds $tree, by default a copy in the temporary
#									folder, with options of make, and installs gpusort
#	start_cluster SETTING...		starts a temporary cluster in the temporary folder,
#									or in its subfolder $cluster if that is set
#
# They are called in that order.  Outside of these folders only packages, locales and
# gpusort's files in PostgreSQL's folders change.  Existing clusters are not touched.
#
# PostgreSQL refuses to run as root.  If root runs the script, everything but the
# installation is done as an unprivileged user (as_user); otherwise the installation
# needs sudo (as_root).
#
# After the cleanup at exit, the caller's function at_exit is called if it exists;
# $exit_status is the exit status.
#
# Environment: PG_CONFIG, the pg_config of the PostgreSQL to use, by default Debian's;
# TMPDIR; KEEP=1 keeps the temporary folder; WITH_CUDA and CUDA_ARCHS as for make, by
# default for the devices that this machine has.

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
workdir=
cache=
tree=			# the copy of $top
cluster=		# the subfolder of a cluster
run_user=		# the user that runs PostgreSQL
bindir=
pgxs_dir=

say()
{
	printf '%s\n' "$*"
}

die()
{
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# The first argument may be --postgres VERSION.
use_postgres()
{
	[[ ${1:-} == --postgres ]] || return 0
	[[ ${2:-} =~ ^[0-9]+$ ]] || die "--postgres needs a major version of PostgreSQL"
	exec "$top/scripts/postgres" "$2" "$top/scripts/$(basename "$0")" "${@:3}"
}

# ------------------------------------------------------------------- cleanup

# Also stops the clusters of tests that were killed.
remove_workdir()
{
	local pid_file

	[[ -n $workdir && -d $workdir ]] || return 0
	find "$workdir" -name postmaster.pid 2>/dev/null | while read -r pid_file; do
		as_user "$bindir/pg_ctl" stop -s -m immediate -D "$(dirname "$pid_file")" || true
	done
	if [[ -n ${KEEP:-} ]]; then
		say "Kept: $workdir"
	else
		rm -rf "$workdir"
	fi
}

on_exit()
{
	exit_status=$?
	trap - EXIT
	trap '' INT TERM HUP
	set +e
	if declare -F end_jobs >/dev/null; then
		end_jobs </dev/null >&2
	fi
	remove_workdir </dev/null >&2
	if declare -F at_exit >/dev/null; then
		at_exit
	fi
	exit "$exit_status"
}

trap on_exit EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# ----------------------------------------------------------------- users

as_root()
{
	if ((EUID == 0)); then
		"$@"
	else
		sudo "$@"
	fi
}

# Runs in $workdir, since the user may be unable to read the current folder.
as_user()
{
	(
		cd "$workdir"
		if ((EUID == 0)); then
			exec setpriv --reuid="$run_user" --regid="$(id -g "$run_user")" --init-groups \
				env HOME="$workdir" TMPDIR="$workdir/tmp" "$@"
		else
			exec env TMPDIR="$workdir/tmp" "$@"
		fi
	)
}

# Runs a command; its output is shown only if it fails.
quietly()
{
	local log

	log=$(mktemp "${workdir:-${TMPDIR:-/tmp}}/log.XXXXXX")
	if ! "$@" >"$log" 2>&1 </dev/null; then
		cat "$log" >&2
		rm -f "$log"
		die "failed: $*"
	fi
	rm -f "$log"
}

# -------------------------------------------------------------------- packages

# Keeps Debian's packages of servers from creating and starting a cluster.
readonly no_cluster=/etc/postgresql-common/createcluster.d/gpusort.conf

install_packages()
{
	local missing=()
	local package

	if ((EUID != 0)) && ! command -v sudo >/dev/null; then
		die "the installation needs root, or sudo"
	fi
	if ! command -v dpkg-query >/dev/null; then
		say "Packages: this is not Debian; nothing is installed."
		return
	fi
	for package; do
		if [[ $package == postgresql-* && -n ${PG_CONFIG:-} ]]; then
			continue			# the user's PostgreSQL
		fi
		if ! dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed; then
			missing+=("$package")
		fi
	done
	if ((${#missing[@]} == 0)); then
		say "Packages: nothing to install."
		return
	fi

	say "Packages: installing ${missing[*]} and what they need; this can take some minutes."
	quietly apt_get update
	for package in "${missing[@]}"; do
		if [[ -z $(apt-cache madison "$package" 2>/dev/null) ]]; then
			die "apt has no package $package (PostgreSQL's own apt repository has all versions of PostgreSQL)"
		fi
	done
	as_root mkdir -p "$(dirname "$no_cluster")"
	as_root tee "$no_cluster" >/dev/null <<<'create_main_cluster = false'
	quietly apt_get install --no-install-recommends "${missing[@]}"
	as_root rm -f "$no_cluster"
}

# Installs packages, but continues without them if that fails.
install_optional_packages()
{
	if ! (install_packages "$@"); then
		say "Packages: continuing without $*; the tests that need them are skipped."
	fi
}

# Needs Debian's package locales.
make_locales()
{
	local locale

	for locale; do
		if ! locale -a | grep -qix "$locale\.utf-\?8"; then
			quietly as_root localedef -i "$locale" -f UTF-8 "$locale.UTF-8"
		fi
	done
}

apt_get()
{
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300 "$@"
}

# Where this machine has its packages from.
debian_mirror()
{
	local mirror

	mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
		grep -oE '^(deb .*|URIs: *)https?://[^ ]+/debian/?( |$)' | grep -oE 'https?://[^ ]+' | head -n 1) || true
	echo "${mirror:-http://deb.debian.org/debian}"
}

# The first one that is installed, or else that of the package postgresql.
debian_postgres()
{
	local servers=(/usr/lib/postgresql/1[5-9]/bin/postgres)
	local version=

	if [[ -e ${servers[0]} ]]; then
		version=${servers[0]#/usr/lib/postgresql/}
		version=${version%%/*}
	elif command -v apt-cache >/dev/null; then
		[[ -n $(apt-cache madison postgresql 2>/dev/null) ]] || quietly apt_get update
		version=$(apt-cache depends postgresql 2>/dev/null | sed -nE 's/^ *Depends: postgresql-(1[5-9])$/\1/p')
	fi
	echo "${version:-15}"
}

# --------------------------------------------------------------------- the rest

make_workdir()
{
	local base=${TMPDIR:-/tmp}
	local variable

	((${#base} < 50)) || base=/tmp	# a socket's path has 107 bytes
	workdir=$(mktemp -d "$base/gpusort.XXXXXX")

	if [[ -z ${PG_CONFIG:-} ]]; then
		PG_CONFIG=/usr/lib/postgresql/$(debian_postgres)/bin/pg_config
		[[ -x $PG_CONFIG ]] || PG_CONFIG=$(command -v pg_config) ||
			die "no pg_config: set PG_CONFIG, or use --postgres"
	fi
	export PG_CONFIG
	bindir=$("$PG_CONFIG" --bindir)
	pgxs_dir=$(cd "$(dirname "$("$PG_CONFIG" --pgxs)")/../.." && pwd) ||
		die "$PG_CONFIG knows no PGXS: install the package postgresql-server-dev of its version"

	# the caller's client settings do not affect our clients
	for variable in "${!PG@}"; do
		[[ $variable == PG_* ]] || unset "$variable"
	done

	mkdir "$workdir/tmp"
	if ((EUID == 0)); then
		run_user=postgres
		id -u "$run_user" >/dev/null 2>&1 || run_user=nobody
		chown -R "$run_user" "$workdir"
		setpriv --reuid="$run_user" --clear-groups --regid="$(id -g "$run_user")" test -w "$workdir" ||
			die "user $run_user cannot get to $workdir: set TMPDIR to another folder"
	fi
}

has_nvcc()
{
	command -v nvcc >/dev/null || [[ -x /usr/local/cuda/bin/nvcc ]]
}

has_device()
{
	nvidia-smi -L >/dev/null 2>&1
}

# The architectures of this machine's GPUs, or one to test the build.
device_archs()
{
	local archs

	archs=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sort -un) || archs=
	[[ $archs =~ ^[0-9[:space:]]+$ ]] || archs=90
	echo $archs
}

# Programs are run from there, so other users must not be able to write to it.
make_cache()
{
	cache=${TMPDIR:-/tmp}/gpusort-test-$UID
	mkdir -p -m 755 "$cache"
	[[ -O $cache && ! -L $cache ]] || die "$cache belongs to somebody else"
}

# Copies files with their modification times, so that make rebuilds only what has
# changed.  Files that no longer exist are removed from the copy.
copy_tree()
{
	tree=$1
	mkdir -p "$tree"
	tar -C "$top" --exclude=./.git --exclude='*.o' --exclude='*.bc' --exclude='*.so' \
		--exclude=./build --exclude='./test/*/build' --exclude=./results \
		--exclude=./output_iso --exclude=./tmp_check --exclude=./compile_commands.json \
		--exclude=./debian/control -cf - . |
		tar -C "$tree" -xvf - | LC_ALL=C sort >"$tree.files"
	if [[ -e $tree.files.before ]]; then
		LC_ALL=C comm -23 "$tree.files.before" "$tree.files" | grep -v '/$' |
			(cd "$tree" && tr '\n' '\0' | xargs -0 -r rm -f) || true
	fi
	mv "$tree.files" "$tree.files.before"
	if ((EUID == 0)); then
		chown -R "$run_user" "$tree"
	fi
}

# Options that affect objects must be the same for all builds of a tree.
build_and_install()
{
	local options=(PG_CONFIG="$PG_CONFIG" COPT=-Werror
		CUDA_ARCHS="${CUDA_ARCHS:-$(device_archs)}" ${WITH_CUDA:+WITH_CUDA="$WITH_CUDA"} "$@")

	[[ -n $tree ]] || copy_tree "$workdir/tree"
	say "Building gpusort for $("$PG_CONFIG" --version)."
	quietly as_user make -C "$tree" -j"$(nproc)" "${options[@]}"
	quietly as_root make -C "$tree" "${options[@]}" install
}

# Arguments are lines for postgresql.conf.  Sets the environment for psql.
start_cluster()
{
	local folder=$workdir${cluster:+/$cluster}
	local datadir=$folder/data

	say "Starting a temporary cluster in $folder."
	as_user mkdir -p "$folder"
	quietly as_user "$bindir/initdb" -D "$datadir" -U postgres -A trust -N --locale=C.UTF-8 -E UTF8
	{
		printf "listen_addresses = ''\n"
		printf "unix_socket_directories = '%s'\n" "$folder"
		printf "fsync = off\n"
		printf '%s\n' "$@"
	} >>"$datadir/postgresql.conf"
	if ! as_user "$bindir/pg_ctl" start -s -w -D "$datadir" -l "$folder/server.log" </dev/null; then
		cat "$folder/server.log" >&2
		die "the cluster did not start"
	fi
	export PGHOST=$folder PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
}
