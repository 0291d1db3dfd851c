# suites.sh - runs suites of tests and counts.  Sourced after lib.sh, not run.
#
#	run_suite NAME regress|tap COMMAND...
#	run_installcheck				pg_regress, in the cluster of start_cluster
#	show_files FILE...				their ends, those that there are
#
# At exit the last line is "N passed, N failed".  A suite without tests counts
# as failed; what a test skips counts as neither.  The caller sets complete=1 when
# it is through: else something counts as failed.

passed=0
failed=0
complete=

at_exit()
{
	if [[ -z $complete ]]; then
		failed=$((failed + 1))
		((exit_status)) || exit_status=1
	fi
	say "$passed passed, $failed failed"
}

count_lines()
{
	grep -cE "$1" || true
}

# Tests in the output of pg_regress: ok, FAILED, nothing skipped.
count_regress()
{
	local line='^(test| {4,})[[:space:]]*[^[:space:]]+ +\.\.\. '

	ok=$(count_lines "${line}ok" <"$1")
	not_ok=$(count_lines "${line}(FAILED|failed)" <"$1")
	skipped=0
}

# Tests in TAP; subtests are part of a test.  Those that a program planned but
# did not come to have failed, and so has a file that died without one failing.
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

# run_suite NAME regress|tap COMMAND...
run_suite()
{
	local name=$1
	local format=$2
	local log=$workdir/suite.log
	local status=0
	local ok not_ok skipped

	shift 2
	say
	say "=== $name"
	"$@" </dev/null 2>&1 | tee "$log" || status=$?
	"count_$format" "$log"
	if ((ok + not_ok == 0)); then
		say "$name: no test ran"
		not_ok=1
	elif ((status != 0 && not_ok == 0)); then
		say "$name: ended with status $status"
		not_ok=1
	fi
	say "--- $name: $ok passed, $not_ok failed$( ((skipped == 0)) || echo ", $skipped skipped")"
	passed=$((passed + ok))
	failed=$((failed + not_ok))
	((not_ok == 0))
}

# Shows the end of files, those that there are.
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

# make installcheck, once for each of its two halves, so that both run.
run_installcheck()
{
	local installcheck=(as_user make -s -C "$tree" PG_CONFIG="$PG_CONFIG" installcheck)

	run_suite regression regress "${installcheck[@]}" ISOLATION= ||
		show_files "$tree/regression.diffs"
	run_suite isolation regress "${installcheck[@]}" REGRESS= ||
		show_files "$tree/output_iso/regression.diffs"
}
