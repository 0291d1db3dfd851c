#!/usr/bin/env python3
"""gpusortd on a real device: right, and harmless when it fails.  TAP; run by test/gpu/run.

Wants a database with the extension, in a server with gpusort preloaded, gpusort.engine = cuda,
gpusort.device_min_rows = 0 and gpusort.device_idle = 1s, found by PGHOST and PGPORT, and to be
its user: it kills gpusortd.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ROWS = 1_000_000
SECONDS = 120  # that anything may take
INTERRUPT_MS = 2000  # half of what a delayed call of the device takes: an interrupt does not wait for it

# Of every session: plans as they are written here, and all sorts taken over.
SETTINGS = (f"-c statement_timeout={SECONDS}s -c gpusort.force=on -c max_parallel_workers_per_gather=0 "
            "-c synchronize_seqscans=off")

# What a sort may do when the device breaks: never give a wrong row.
RIGHT = "right"
SYSTEM_ERROR = "error 58000"
CANCELLED = "error 57014"


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, passed, what, why=""):
        self.count += 1
        self.failed += not passed
        print(f"{'ok' if passed else 'not ok'} {self.count} - {what}", flush=True)
        if not passed and why != "":
            print(f"# {str(why)[:500]}", flush=True)

    def equal(self, got, want, what):
        self.ok(got == want, what, f"got {got!r}, wanted {want!r}")

    def one_of(self, got, allowed, what):
        self.ok(got in allowed, f"{what}: {got}", f"allowed: {', '.join(allowed)}")

    def skip(self, what, why):
        self.count += 1
        print(f"ok {self.count} - {what} # SKIP {why}", flush=True)

    def end(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0


tap = Tap()


class Failed(Exception):
    """A statement that must succeed did not."""


def start(sql, settings="", name="test"):
    env = dict(os.environ, PGOPTIONS=f"{SETTINGS} {settings}", PGAPPNAME=name)
    command = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=sqlstate"]
    for statement in [sql] if isinstance(sql, str) else sql:
        command += ["-c", statement]
    return subprocess.Popen(command, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def finish(process):
    """Output, or "error SQLSTATE"."""
    try:
        out, err = process.communicate(timeout=SECONDS + 20)
    except subprocess.TimeoutExpired:
        process.kill()
        return "error: it did not end"
    if process.returncode == 0:
        return out.rstrip("\n")
    state = re.search(r"(?:ERROR|FATAL):  (\w{5})", err)
    return f"error {state.group(1)}" if state else "error: " + err.strip()


def sql(statement, settings=""):
    answer = finish(start(statement, settings))
    if answer.startswith("error"):
        raise Failed(f"{answer}: {str(statement)[:300]}")
    return answer


def poll(condition, seconds=30):
    deadline = time.time() + seconds
    while not condition():
        if time.time() > deadline:
            return False
        time.sleep(0.02)
    return True


# ---------------------------------------------------------------- the service

def status(column):
    return sql(f"SELECT {column} FROM gpusort_service_status()")


def running():
    return status("state") == "running"


def set_fault(fault):
    """A service that fails so; or, with none, a sound one."""
    before = status("pid")
    sql([f"ALTER SYSTEM SET gpusort.service_fault = '{fault}'", "SELECT pg_reload_conf()"])
    return poll(lambda: status("pid") not in ("", before) and running())


def idle():
    return status("jobs, waiting, memory_used") == "0|0|0"


def device_megabytes():
    """What is taken of the GPU's memory, by whomever; None without a GPU."""
    try:
        out = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], text=True,
                             capture_output=True, timeout=30)
        return sum(map(int, out.stdout.split())) if out.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


# ------------------------------------------------------------------ the sorts

# Rows, the sum of their ids, the bytes of their text, and how many come after a larger one.
WALK = """SELECT count(*), sum(id), sum(length(pad)), count(*) FILTER (WHERE k < last_k) FROM (
	SELECT id, k, pad, lag(k) OVER () AS last_k FROM (SELECT id, k, pad FROM {} ORDER BY k OFFSET 0) s) w"""
ORDERED = WALK.format("gs_rows")
expected = None

# Many times as many rows: seconds, to be interrupted.
LONG = """SELECT count(pad) FROM (SELECT k, pad FROM gs_rows, generate_series(1, 16) ORDER BY k OFFSET 0) s"""


def outcome(process):
    answer = finish(process)
    if answer.startswith("error"):
        return answer
    return RIGHT if answer == expected else f"wrong: {answer} instead of {expected}"


def sort_outcome(settings=""):
    return outcome(start(ORDERED, settings))


def engine(query="SELECT * FROM gs_rows ORDER BY k", settings=""):
    plan = json.loads(sql(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {query}", settings))[0]["Plan"]
    reason = plan.get("Fallback Reason") or plan.get("Device Not Used")
    return plan.get("Engine", plan["Node Type"]) + (f" ({reason})" if reason else "")


def make_tables():
    sql(["DROP TABLE IF EXISTS gs_rows",
         f"""CREATE UNLOGGED TABLE gs_rows AS SELECT g AS id, hashint8(g) % 400000 AS k,
				date '2020-01-01' + (hashint8(g + 1) & 1023) AS d, hashint8extended(g, 2) AS b,
				CASE WHEN g % 11 > 0 THEN hashint8extended(g, 3) / 1e9::float8 END AS f,
				md5(g::text)::uuid AS u, md5((g % 50000)::text) COLLATE "C" AS c,
				('https://www.example.org/' || (hashint8(g) & 4194303)) COLLATE "C" AS url,
				repeat('-', 1 + (g % 90)::int) AS pad
			FROM generate_series(1::int8, {ROWS}) g""",
         "VACUUM (FREEZE, ANALYZE) gs_rows",
         # waits until the session is at work, and a bit; interrupts it; milliseconds until it is done
         """CREATE OR REPLACE FUNCTION gs_interrupt(victim text, how text, delay float8) RETURNS float8
			LANGUAGE plpgsql AS $$
			DECLARE
				victim_pid int;
				started timestamptz;
			BEGIN
				LOOP
					PERFORM pg_stat_clear_snapshot();
					SELECT pid INTO victim_pid FROM pg_stat_activity WHERE application_name = victim AND state = 'active';
					EXIT WHEN FOUND;
					PERFORM pg_sleep(0.001);
				END LOOP;
				PERFORM pg_sleep(delay);
				started := clock_timestamp();
				PERFORM CASE how WHEN 'cancel' THEN pg_cancel_backend(victim_pid)
					ELSE pg_terminate_backend(victim_pid) END;
				LOOP
					PERFORM pg_stat_clear_snapshot();
					EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = victim_pid AND state = 'active');
					PERFORM pg_sleep(0.0005);
				END LOOP;
				RETURN round(extract(epoch FROM clock_timestamp() - started) * 1000, 1);
			END $$"""])


def test_ready():
    global expected

    tap.ok(poll(running, 60), "the service runs")
    tap.equal(status("device_kind"), os.environ.get("GPUSORT_TEST_DEVICE", "cuda"), "on the device wanted")
    make_tables()
    expected = sql(ORDERED, "-c gpusort.enabled=off")
    tap.equal(engine(), "cuda", "a sort runs there")
    tap.equal(sort_outcome(), RIGHT, f"{ROWS} rows come back, whole and in order")


# Both engines sort stably, so they agree on every row.
ORDERS = ["k", "k DESC", "b", "b DESC", "d, b", "d DESC, k, c", "f", "f DESC NULLS LAST", "f NULLS FIRST, d", "u", "c",
          "c DESC, k", "url", "url DESC, b", "d, url, f", "id", "id DESC", "d"]


def test_orders():
    def digest(order, choice, work_mem):
        return sql(f"""SELECT md5(string_agg(id::text, ',')) || sum(length(pad))
			FROM (SELECT id, pad FROM gs_rows ORDER BY {order} OFFSET 0) s""", f"-c gpusort.engine={choice} -c work_mem={work_mem}")

    for order in ORDERS:
        tap.equal(engine(f"SELECT * FROM gs_rows ORDER BY {order}"), "cuda", f"ORDER BY {order}: on the device")
        tap.equal(digest(order, "cuda", "4MB"), digest(order, "cpu", "4GB"),
                  f"ORDER BY {order}: as the CPU engine")
    for algorithm in ("radix", "merge"):
        tap.equal(sort_outcome(f"-c gpusort.algorithm={algorithm}"), RIGHT, f"by {algorithm} sort")


def test_shapes():
    for what, source in [("no row", "gs_rows WHERE id < 0"), ("one row", "gs_rows WHERE id = 7"),
                         ("two rows", "gs_rows WHERE id < 3"),
                         ("rows of 100 kB", "(SELECT id, k, repeat(pad, 1000) AS pad FROM gs_rows LIMIT 3000) x"),
                         ("rows of 3 MB", "(SELECT id, k, repeat('x', 3000000) AS pad FROM gs_rows LIMIT 40) x"),
                         ("all equal", "(SELECT id, 5 AS k, pad FROM gs_rows) x"),
                         ("in order already", "(SELECT id, id AS k, pad FROM gs_rows) x"),
                         ("in reverse", "(SELECT id, -id AS k, pad FROM gs_rows) x")]:
        want = sql(f"SELECT count(*), sum(id), sum(length(pad)) FROM {source}") + "|0"
        tap.equal(sql(WALK.format(source)), want, what)
    for repeats in (1, 7):
        steps = "; ".join("MOVE FORWARD 700000 FROM c; FETCH 2 FROM c; "
                          "MOVE BACKWARD 600000 FROM c; FETCH BACKWARD 2 FROM c; "
                          f"FETCH LAST FROM c; FETCH {repeats} FROM c; FETCH FIRST FROM c" for _ in range(repeats))
        cursor = f"BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id, k FROM gs_rows ORDER BY k, id; {steps}; COMMIT"
        tap.equal(sql(cursor), sql(cursor, "-c gpusort.enabled=off"), f"a cursor to and fro, {repeats} times")


# ----------------------------------------------------------------- the faults

FAULTS = [
    # no memory is no error: the rows go to the CPU, or to files
    ("allocate:1:none", [RIGHT]),
    ("allocate:3:none", [RIGHT]),
    ("allocate:6:none", [RIGHT]),
    ("copy_in:4:delay=500", [RIGHT]),
    ("gather:2:delay=500", [RIGHT]),
    # a broken device: as PostgreSQL says of a failed system, or sorted again
    ("copy_in:3:fail", [RIGHT, SYSTEM_ERROR]),
    ("pack:1:fail", [RIGHT, SYSTEM_ERROR]),
    ("sort_words:1:fail", [RIGHT, SYSTEM_ERROR]),
    ("row_end_offsets:1:fail", [RIGHT, SYSTEM_ERROR]),
    ("gather:1:fail", [RIGHT, SYSTEM_ERROR]),
    ("gather:3:fail", [RIGHT, SYSTEM_ERROR]),
    ("copy_out:2:fail", [RIGHT, SYSTEM_ERROR]),
    ("stream_open:1:fail", [RIGHT, SYSTEM_ERROR]),
    ("copy_in:5:kill", [RIGHT, SYSTEM_ERROR]),
    ("pack:1:kill", [RIGHT, SYSTEM_ERROR]),
    ("gather:2:kill", [RIGHT, SYSTEM_ERROR]),
]


def test_faults():
    for fault, allowed in FAULTS:
        if not set_fault(fault):
            tap.ok(False, f"{fault}: the service starts", status("state, detail"))
            continue
        tap.one_of(sort_outcome(), allowed, fault)
    tap.ok(set_fault(""), "no fault: the service starts")
    tap.equal(engine(), "cuda", "and sorts again")
    tap.ok(poll(idle), "nothing is left of the sorts that failed", status("jobs, waiting, memory_used"))


def test_kill():
    """kill -9 while sorts run: some fail, none is wrong, and the server stays as it is."""
    postmaster = sql("SELECT pg_postmaster_start_time()")
    bystander = start("SELECT pg_sleep(20)", name="bystander")
    outcomes = []
    for delay in (0.05, 0.2, 0.4, 0.6, 1.0):
        if not poll(running):
            tap.ok(False, "the service comes back", status("state, detail"))
            return
        victim = int(status("pid"))
        sorts = [start([ORDERED] * 3) for _ in range(4)]
        time.sleep(delay)
        os.kill(victim, signal.SIGKILL)
        for sort in sorts:
            answer = finish(sort)
            outcomes.append(answer if answer.startswith("error") else
                            RIGHT if set(answer.split("\n")) == {expected} else f"wrong: {answer}")
    tap.ok(set(outcomes) <= {RIGHT, SYSTEM_ERROR},
           f"killed five times under four sessions: {outcomes.count(RIGHT)} "
           f"sessions right, {outcomes.count(SYSTEM_ERROR)} with an error", outcomes)
    tap.ok(poll(running), "the service comes back", status("state, detail"))
    tap.equal(sort_outcome(), RIGHT, "and sorts")
    tap.equal(engine(), "cuda", "on the device")
    tap.equal(sql("SELECT pg_postmaster_start_time()"), postmaster, "the server has not restarted")
    tap.equal(finish(bystander), "", "nor was another session ended")


def interrupted(how, delay, what, query=LONG, least_state=CANCELLED):
    victim = start(query, name="victim")
    ms = float(sql(f"SELECT gs_interrupt('victim', '{how}', {delay})"))
    answer = finish(victim)
    tap.ok(answer == least_state and ms <= INTERRUPT_MS, f"{what}: {ms} ms", f"{answer} after {ms} ms")


def test_cancel():
    for delay in (0.02, 0.1, 0.3, 0.6, 1.0):
        interrupted("cancel", delay, f"cancelled after {delay} s")
    interrupted("terminate", 0.3, "terminated", least_state="error 57P01")
    before = time.time()
    answer = finish(start(["SET statement_timeout = '300ms'", LONG]))
    took = time.time() - before
    tap.ok(answer == CANCELLED and took * 1000 <= 300 + INTERRUPT_MS, f"statement_timeout of 300 ms: psql took {took * 1000:.0f} ms",
           answer)
    tap.ok(poll(idle), "nothing is left of them", status("jobs, waiting, memory_used"))
    for fault in ("copy_in:2:delay=4000", "sort_words:1:delay=4000", "gather:2:delay=4000"):
        tap.ok(set_fault(fault), f"{fault}: the service starts")
        interrupted("cancel", 1.0, f"cancelled while the device is at work ({fault})", ORDERED)
    tap.ok(poll(idle), "the device lets go in the end", status("jobs, waiting, memory_used"))
    tap.ok(set_fault(""), "no fault: the service starts")
    tap.equal(sort_outcome(), RIGHT, "and sorts")


def test_many():
    """More sessions than processors, each with sorts of its own."""
    done = int(status("jobs_done"))

    def work(number):
        part = f"gs_rows WHERE id % 4 = {number % 4}"
        query = WALK.format(f"(SELECT id, (k * {number + 1}) % 99991 AS k, pad FROM {part}) x")
        want = sql(f"SELECT count(*), sum(id), sum(length(pad)) FROM {part}") + "|0"
        got = finish(start([query] * 3)).split("\n")
        return RIGHT if got == [want] * 3 else f"wrong: {got} instead of {want}"

    with ThreadPoolExecutor(32) as pool:
        outcomes = list(pool.map(work, range(32)))
    tap.equal(set(outcomes), {RIGHT}, "32 sessions at once")
    tap.ok(int(status("jobs_done")) >= done + 96, "all on the device", status("jobs_done"))
    tap.ok(poll(idle), "nothing is left of them", status("jobs, waiting, memory_used"))


def test_memory(before):
    """Once nobody sorts, the device's memory goes back."""
    what = "the device's memory is back"
    if before is None or device_megabytes() is None:
        tap.skip(what, "no nvidia-smi")
        return
    tap.ok(poll(lambda: device_megabytes() <= before + 64, 20),
           f"{what}: {before} MB before, {device_megabytes()} MB after")


def main():
    try:
        test_ready()
        # what a first sort loads stays: kernels, streams
        time.sleep(3)
        before = device_megabytes()
        test_orders()
        test_shapes()
        test_many()
        test_cancel()
        test_memory(before)
        test_faults()
        test_kill()
        test_many()
        time.sleep(1)
        test_memory(before)
    except Failed as failure:
        tap.ok(False, "a statement that must succeed", str(failure))
    sys.exit(tap.end())


if __name__ == "__main__":
    main()
