"""How one case is measured: see "Method" in the README."""

import contextlib
import json
import mmap
import os
import re
from collections import namedtuple

import cases

# Up to this number of rows a sort is timed in a loop inside the server, above it by
# EXPLAIN ANALYZE.
LOOP_ROWS = 10_000

# The fastest of so many short loops counts: other processes only make one slower.
LOOP_SLICES = 5

# Executes a statement without returning its rows.  Counting buffers, the default from PostgreSQL 18 on, costs each node 20 ns a row.
EXPLAIN_ANALYZE = "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS OFF, FORMAT JSON)"

# Smaller sorts take too little memory to be worth warming.
WARM_FROM_BYTES = 16 << 20

CONTENDERS = {
    "stock": [("gpusort.enabled", "off"), ("gpusort.force", "off")],
    "gpusort": [("gpusort.enabled", "on"), ("gpusort.force", "off")],
    "forced": [("gpusort.enabled", "on"), ("gpusort.force", "on")],
    "floor": [("gpusort.enabled", "off"), ("gpusort.force", "off")],
}

# One line of the results.  cpu_seconds is the processor time of the backend, or empty
# if unknown; reason is why a sort was not replaced.
Measurement = namedtuple(
    "Measurement", "case rows key distribution shape contender repetition seconds cpu_seconds engine method memory_kb reason",
    defaults=("",))

# One line of the memory results: the peak of a backend that did nothing else.
Peak = namedtuple("Peak", "case rows key distribution shape contender anonymous_kb hwm_kb sort_space_kb")

Plan = namedtuple("Plan", "seconds engine method memory_kb reason")


def statement(case, contender):
    return cases.floor_query(case) if contender == "floor" else cases.query(case)


def warm_memory(nbytes):
    """Touches memory and frees it again, so that the host provides it.

    Where the host takes back what the guest has freed, the first touch of a
    page costs 50 times the second, and hits whoever happens to get that page.
    """
    with open("/proc/meminfo") as info:
        available = int(re.search(r"MemAvailable:\s*(\d+)", info.read()).group(1)) * 1024
    nbytes = min(nbytes, int(available * 0.8)) // mmap.PAGESIZE * mmap.PAGESIZE
    memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            memory.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            pass
    memory[::mmap.PAGESIZE] = bytes(nbytes // mmap.PAGESIZE)
    memory.close()


def _use(session, contender):
    for name, value in CONTENDERS[contender]:
        session.set(name, value)


def explain_analyze(session, sql):
    """Runs a statement without returning its rows; what EXPLAIN tells of it."""
    return json.loads(session.run(f"{EXPLAIN_ANALYZE} {sql}"))[0]


def explain(session, case, contender):
    """Runs the statement under EXPLAIN ANALYZE; settings are as _use left them."""
    report = explain_analyze(session, statement(case, contender))
    node = report["Plan"]
    if node["Node Type"] == "Limit":
        node = node["Plans"][0]
    engine = node.get("Engine", "")
    reason = node.get("Fallback Reason") or node.get("Device Not Used", "")
    if node["Node Type"] == "Sort":
        engine = "postgres"
        if contender == "gpusort":
            reason = why_kept(session, statement(case, contender))
    elif contender == "stock":
        raise RuntimeError(f"expected a Sort on top, but got: {json.dumps(report)}")
    # what a GpuSort hands to PostgreSQL's sort is told from a plain Sort
    elif engine == "postgres":
        engine = "gpusort->postgres"
    return Plan(report["Execution Time"] / 1000, engine, node.get("Sort Method", ""), node.get("Sort Space Used", ""),
                reason)


def why_kept(session, sql):
    """gpusort's reasons why the plan of a statement keeps Sorts; "" if it does not."""
    session.run("SET gpusort.debug_plan = on; SET client_min_messages = notice")
    answer = session.run(f"EXPLAIN {sql}")
    session.run("SET gpusort.debug_plan = off; SET client_min_messages = warning")
    reasons = re.findall(r"NOTICE: +GpuSort not used: +(.*)", answer)
    return "; ".join(dict.fromkeys(reasons))


def _create_loop(session, case, contender):
    """A function that runs the statement n times, discards the rows, and returns the seconds.

    Its plan is made under the function's own settings, once.  A cursor with
    no backward scan, moved to its end, runs the executor as EXPLAIN ANALYZE
    does, without the instrumentation.
    """
    settings = " ".join(f"SET {name} = '{value}'" for name, value in CONTENDERS[contender])
    session.run(f"""
        CREATE FUNCTION pg_temp.{contender}(nloops int) RETURNS float8 LANGUAGE plpgsql {settings} AS $$
        DECLARE
            sorted NO SCROLL CURSOR FOR {statement(case, contender)};
            start timestamptz := clock_timestamp();
        BEGIN
            FOR i IN 1..nloops LOOP
                OPEN sorted;
                MOVE FORWARD ALL FROM sorted;
                CLOSE sorted;
            END LOOP;
            RETURN extract(epoch FROM clock_timestamp() - start);
        END $$""")


def local_backend(session):
    """The process id of a session's backend, if it is a process of this machine."""
    pid = session.run("SELECT pg_backend_pid()")
    try:
        with open(f"/proc/{pid}/comm") as comm:
            return pid if "postgres" in comm.read() else None
    except OSError:
        return None


class CpuClock:
    """The processor time of a session's backend, if that is local, and of its parallel workers.

    Workers are children of the postmaster, which has waited for them before the
    backend continues.  Their time has a resolution of 10 ms, and includes that of
    other processes of the server that end meanwhile.
    """

    def __init__(self, session, with_workers=False):
        pid = local_backend(session)
        self.path = f"/proc/{pid}/schedstat"
        self.postmaster = _status(pid)["PPid"] if pid and with_workers else None
        self.last = None

    def start(self):
        self.last = self._read()

    def seconds(self):
        """Since start(), or None."""
        now = self._read()
        return None if now is None or self.last is None else (now - self.last) / 1e9

    def _read(self):
        try:
            with open(self.path) as schedstat:
                own = int(schedstat.read().split()[0])
            return own + self._ended_children()
        except (OSError, ValueError):
            return None

    def _ended_children(self):
        if self.postmaster is None:
            return 0
        with open(f"/proc/{self.postmaster}/stat") as stat:
            user, system = stat.read().rpartition(")")[2].split()[13:15]
        return (int(user) + int(system)) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def measure(sessions, case, repetitions, options):
    """Yields Measurements: contender by contender, round by round.

    sessions: a session for each contender, which may be the same; or, above LOOP_ROWS,
    a function that opens one for each run.
    """
    runner = _measure_loop if case.rows <= LOOP_ROWS else _measure_explain
    for contender, repetition, seconds, cpu_seconds, plan in runner(sessions, case, repetitions, options):
        yield Measurement(cases.title(case), case.rows, case.key.name, case.distribution, case.shape, contender,
                          repetition, seconds, cpu_seconds, plan.engine, plan.method, plan.memory_kb, plan.reason)


def _measure_loop(sessions, case, repetitions, options):
    names = ["stock", "gpusort", "forced", "floor"]
    plans = {}
    for name in names:
        _use(sessions[name], name)
        plans[name] = explain(sessions[name], case, name)
    if plans["gpusort"].engine != "postgres":
        names.remove("forced")
    for name in names:
        _create_loop(sessions[name], case, name)
        sessions[name].run(f"SELECT pg_temp.{name}(3)")
    once = float(sessions["stock"].run("SELECT pg_temp.stock(10)")) / 10
    nloops = max(1, min(20_000, int(options.loop_seconds / LOOP_SLICES / max(once, 1e-7))))
    clocks = {name: CpuClock(sessions[name]) for name in names}

    # round 0 warms caches and code, and is not told
    for repetition in range(repetitions + 1):
        slices = {name: [] for name in names}
        cpu_slices = {name: [] for name in names}
        for _ in range(LOOP_SLICES):
            for name in names:
                clocks[name].start()
                slices[name].append(float(sessions[name].run(f"SELECT pg_temp.{name}({nloops})")) / nloops)
                cpu_slices[name].append(clocks[name].seconds())
        if repetition > 0:
            for name in names:
                cpu_seconds = None if None in cpu_slices[name] else min(cpu_slices[name]) / nloops
                yield name, repetition, min(slices[name]), cpu_seconds, plans[name]


def _measure_explain(sessions, case, repetitions, options):
    warm_bytes = int(options.table_bytes * 1.5 * 1.25)
    warm = options.warm_memory and warm_bytes >= WARM_FROM_BYTES
    for repetition in range(repetitions + 1):
        for name in ["stock", "gpusort", "floor"]:
            with sessions() if callable(sessions) else contextlib.nullcontext(sessions[name]) as session:
                _use(session, name)
                if warm:
                    warm_memory(warm_bytes)
                clock = CpuClock(session)
                clock.start()
                plan = explain(session, case, name)
                cpu_seconds = clock.seconds()
            if repetition > 0:
                yield name, repetition, plan.seconds, cpu_seconds, plan


def _status(pid):
    fields = {}
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            name, _, value = line.partition(":")
            if value.endswith("kB\n") or name == "PPid":
                fields[name] = int(value.split()[0])
    return fields


def own_peak_kb(session):
    """The most memory that a session's backend ever had for itself.

    VmHWM counts the table's pages in shared_buffers too: what is left without
    them is the backend's own.  None where the kernel does not tell.
    """
    try:
        status = _status(local_backend(session))
        return status["VmHWM"] - status["RssFile"] - status["RssShmem"]
    except (OSError, KeyError):
        return None


def peak(session, case, contender):
    """The peak memory of a statement, in a session that ran no other; None where it is unknown."""
    _use(session, contender)
    plan = explain(session, case, contender)
    anonymous = own_peak_kb(session)
    if anonymous is None:
        return None
    hwm = _status(local_backend(session))["VmHWM"]
    return Peak(cases.title(case), case.rows, case.key.name, case.distribution, case.shape, contender,
                anonymous, hwm, plan.memory_kb)
