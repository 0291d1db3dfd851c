# suites.sh - runs suites of tests and counts results.  Sourced after lib.sh, not run.
#
#	run_suite NAME regress|tap COMMAND...
#	run_jobs						the functions in the array jobs, several at a time
#	run_installcheck [TITLE]		pg_regress, in the cluster of start_cluster
#	show_files FILE...				the ends of files that exist
#
# At exit it prints the tests that failed with the lines around them, a table of the
# suites with their times, and "N passed, N failed".
# A suite without tests counts as failed; skipped tests count as neither.  The caller
# sets complete=1 at the end; otherwise one failure is counted.
#
# Environment: JOBS, how many jobs run at a time: by default one more than there are
# processors, since tests wait much of their time.

passed=0
failed=0
complete=
summary=()				# lines of the table
failures=()				# lines about failed tests
jobs=()					# each a function and its arguments
max_jobs=${JOBS:-$(($(nproc) + 1))}
declare -A running=()	# job numbers by process

at_exit()
{
	if [[ -z $complete ]]; then
		failed=$((failed + 1))
		((exit_status)) || exit_status=1
	fi
	if ((${#failures[@]} > 0)); then
		say
		say "What failed:"
		printf '%s\n' "${failures[@]}"
	fi
	if ((${#summary[@]} > 0)); then
		say
		printf '%-36s %8s %8s %8s %9s\n' suite passed failed skipped seconds
		printf '%-36s %8d %8d %8d %9.1f\n' "${summary[@]}"
		say "All of it took $SECONDS s."
		say
	fi
	say "$passed passed, $failed failed"
}

count_lines()
{
	grep -cE "$1" || true
}

# Counts the tests in the output of pg_regress.  From PostgreSQL 16 on
# that is TAP.  To pg_regress, a skipped test is ok.
count_regress()
{
	local line='^(test| {4,})[[:space:]]*[^[:space:]]+ +\.\.\. '

	ok=$(count_lines "${line}ok|^ok [0-9]+" <"$1")
	not_ok=$(count_lines "${line}(FAILED|failed)|^not ok [0-9]+" <"$1")
	skipped=$(count_lines '^# skipped ' <"$1")
	ok=$((ok - skipped))
}

# Counts the tests in TAP, without subtests.  Planned tests that did not run have
# failed, and so has a file that died without a failed test.
count_tap()
{
	local skip='^(not )?ok [0-9]+.*# *[Ss][Kk][Ii][Pp]|\.\. skipped: '
	local planned ran

	ok=$(grep -vE "$skip" "$1" | count_lines '^ok [0-9]+')
	not_ok=$(grep -vE "$skip" "$1" | grep -viE '# *todo' | count_lines '^not ok [0-9]+')
	skipped=$(count_lines "$skip" <"$1")

	planned=$(sed -nE 's/^1\.\.([0-9]+).*/\1/p' "$1" | awk '{n += $1} END {print n + 0}')
	ran=$(count_lines '^(not )?ok [0-9]+' <"$1")
	if ((planned > ran)); then
		not_ok=$((not_ok + planned - ran))
	fi
	not_ok=$((not_ok + $(count_lines '\(Wstat: [1-9].* Failed: 0\)$' <"$1")))
}

# The lines of failed tests, for the end of the output.
note_failures()
{
	local lines

	if lines=$(grep -E -B 1 -A 2 '^not ok [0-9]+|\.\.\. (FAILED|failed)' "$2"); then
		failures+=("$1:" "$lines")
	fi
}

# run_suite NAME regress|tap COMMAND...
run_suite()
{
	local name=$1
	local format=$2
	local start=$EPOCHREALTIME
	local status=0
	local ok not_ok skipped log seconds

	shift 2
	log=$(mktemp "$workdir/suite.XXXXXX")
	say
	say "=== $name"
	"$@" </dev/null 2>&1 | tee "$log" || status=$?
	"count_$format" "$log"
	note_failures "$name" "$log"
	rm -f "$log"
	if ((ok + not_ok + skipped == 0)); then
		say "$name: no test ran"
		not_ok=1
	elif ((status != 0 && not_ok == 0)); then
		say "$name: ended with status $status"
		not_ok=1
	fi
	seconds=$(LC_ALL=C awk -v from="$start" -v to="$EPOCHREALTIME" 'BEGIN {printf "%.1f", to - from}')
	say "--- $name: $ok passed, $not_ok failed$( ((skipped == 0)) || echo ", $skipped skipped") in $seconds s"
	passed=$((passed + ok))
	failed=$((failed + not_ok))
	summary+=("$name" "$ok" "$not_ok" "$skipped" "$seconds")
	((not_ok == 0))
}

# ------------------------------------------------------------ several at a time

# A job is a function that calls run_suite.  It runs in a process and a process
# group of its own; its output, its counts and its lines of the table go to files.
start_job()
{
	local number=$1
	local folder=$workdir/job.$1

	mkdir "$folder"
	set -m
	(
		set +m
		passed=0
		failed=0
		summary=()
		failures=()
		${jobs[number]}
		printf '%s\n' "$passed" "$failed" "${summary[@]}" >"$folder/counts"
		((${#failures[@]} == 0)) || printf '%s\n' "${failures[@]}" >"$folder/failures"
	) </dev/null >"$folder/output" 2>&1 &
	running[$!]=$number
	set +m
}

show_job()
{
	local folder=$workdir/job.$1
	local counts=()

	cat "$folder/output"
	[[ ! -e $folder/counts ]] || mapfile -t counts <"$folder/counts"
	if ((${#counts[@]} == 0)); then
		say "${jobs[$1]}: did not finish"
		counts=(0 1)
	fi
	passed=$((passed + counts[0]))
	failed=$((failed + counts[1]))
	summary+=("${counts[@]:2}")
	[[ ! -e $folder/failures ]] || failures+=("$(<"$folder/failures")")
	rm -rf "$folder"
}

# Shows their outputs in the order of the jobs, each when it is complete.
run_jobs()
{
	local started=0
	local shown=0
	local ended=()
	local pid

	if ((${#jobs[@]} == 1)); then
		${jobs[0]}
	else
		while ((shown < ${#jobs[@]})); do
			while ((started < ${#jobs[@]} && ${#running[@]} < max_jobs)); do
				start_job "$started"
				started=$((started + 1))
			done
			wait -n -p pid "${!running[@]}" || true
			ended[running[$pid]]=1
			unset "running[$pid]"
			while [[ -n ${ended[shown]:-} ]]; do
				show_job "$shown"
				shown=$((shown + 1))
			done
		done
	fi
	jobs=()
}

# Called before the temporary folder is removed.
end_jobs()
{
	local pid

	for pid in "${!running[@]}"; do
		kill -TERM -- "-$pid" || true
	done
}

# Shows the ends of files that exist.
show_files()
{
	local file

	for file; do
		if [[ -s $file ]]; then
			say
			say ">>> ${file#"$tree"/}"
			tail -n 300 "$file"
		fi
	done
}

# make installcheck, once for regression and once for isolation tests, so that both
# run.  TITLE distinguishes several of them.  If the arrays regress_tests and
# isolation_tests exist, only these tests are run.
run_installcheck()
{
	local title=${1:+ $1}
	local output=$workdir/regress${1:+-${1// /-}}

	as_user mkdir -p "$output/isolation"
	if ! declare -p regress_tests >/dev/null 2>&1; then
		run_half "regression$title" "$output" ISOLATION=
		run_half "isolation$title" "$output/isolation" REGRESS=
		return
	fi
	if ((${#regress_tests[@]} > 0)); then
		run_half "regression$title" "$output" ISOLATION= REGRESS="${regress_tests[*]}"
	fi
	if ((${#isolation_tests[@]} > 0)); then
		run_half "isolation$title" "$output/isolation" REGRESS= ISOLATION="${isolation_tests[*]}"
	fi
}

run_half()
{
	local name=$1
	local output=$2

	shift 2
	run_suite "$name" regress installcheck "$output" "$@" || show_files "$output/regression.diffs"
}

# Afterwards, the reasons of tests that ended at once because this server or machine lacks something.
installcheck()
{
	local output=$1
	local status=0

	shift
	as_user make -s -C "$tree" PG_CONFIG="$PG_CONFIG" EXTRA_REGRESS_OPTS="--outputdir=$output" installcheck "$@" || status=$?
	grep -s '^skipped: ' "$output"/results/*.out | sed -E 's|.*/(\w+)\.out:skipped:|# skipped \1:|' || true
	return $status
}
