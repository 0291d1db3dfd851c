"""Summaries of measurements, Markdown, and requirements."""

import csv
import os
import platform
import re
import subprocess
import time
from collections import namedtuple
from statistics import median

from cases import SHAPES
from measure import Measurement
from server import Failure

# A case's contender: median, least and most seconds, what ran, and why not gpusort.
Timing = namedtuple("Timing", "median low high engine method memory_kb reason")

Summary = namedtuple("Summary", "case rows key distribution shape timings")

# What is asked for in random order, at 5 M rows: key, shape, times stock.
MUST_REACH_ROWS = 5_000_000
MUST_REACH = [
    ("bigint", "row", 2.0), ("float8", "row", 2.2), ("uuid", "row", 1.8), ("textC", "row", 1.8),
    ("date-int-text", "row", 4.0), ("textLibc", "row", 5.0), ("numeric", "row", 1.7), ("textICU", "row", 1.2),
    ("bigint", "spill", 1.3),
]
NO_CASE_BELOW = 0.95
SMALL_ROWS = 10
SMALL_MICROSECONDS = 2.0

SHAPE_TITLES = {
    "row": "whole rows", "key": "sort columns alone", "spill": f"whole rows, work_mem {SHAPES['spill'].work_mem}",
    "top-1e-5": "a 100,000th, by LIMIT", "top-1%": "1 %, by LIMIT", "top-20%": "20 %, by LIMIT",
}

REACHED, MISSED, NOT_MEASURED = "reached", "missed", "not measured"


def write_csv(path, kind, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(kind._fields)
        writer.writerows(rows)


def append_csv(path, rows):
    with open(path, "a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            row._replace(seconds=f"{row.seconds:.9f}",
                         cpu_seconds="" if row.cpu_seconds is None else f"{row.cpu_seconds:.9f}") for row in rows)


def read_csv(path):
    with open(path, newline="") as file:
        for line in csv.DictReader(file):
            yield Measurement(**line)._replace(
                rows=int(line["rows"]), repetition=int(line["repetition"]), seconds=float(line["seconds"]),
                cpu_seconds=float(line["cpu_seconds"]) if line["cpu_seconds"] else None)


def summarize(measurements, cpu_time=False):
    """One Summary a case, in the order measured; of processor time if so wanted."""
    groups = {}
    for m in measurements:
        groups.setdefault(m.case, {}).setdefault(m.contender, []).append(m)
    summaries = []
    for contenders in groups.values():
        first = next(iter(contenders.values()))[0]
        timings = {}
        for name, runs in contenders.items():
            seconds = [run.cpu_seconds if cpu_time else run.seconds for run in runs]
            if None in seconds:
                raise Failure("this server's processor time cannot be told: leave --cpu-time out")
            timings[name] = Timing(median(seconds), min(seconds), max(seconds), runs[-1].engine, runs[-1].method,
                                   runs[-1].memory_kb, runs[-1].reason)
        if all(name in timings for name in ("stock", "gpusort", "floor")):
            summaries.append(Summary(*first[:5], timings))
    return summaries


def ratio(summary, contender="gpusort"):
    return summary.timings["stock"].median / summary.timings[contender].median


def left_to_postgres(summary):
    """Did the Sort stay in the plan, so that both plans are equal?"""
    return summary.timings["gpusort"].engine == "postgres"


def format_time(seconds):
    if seconds < 1e-3:
        return f"{seconds * 1e6:.2f} us" if seconds < 1e-4 else f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.2f} s"


def format_rows(rows):
    for unit, suffix in ((1_000_000, " M"), (1_000, " k")):
        if rows >= unit and rows % unit == 0:
            return f"{rows // unit}{suffix}"
    return str(rows)


def format_memory(kilobytes):
    if kilobytes < 10 * 1024:
        return f"{kilobytes} kB"
    return f"{kilobytes / 1024:.1f} MB" if kilobytes < 100 * 1024 else f"{kilobytes / 1024:.0f} MB"


def describe(summary):
    """A case in one line, for the terminal."""
    t = summary.timings
    note = f" (kept by PostgreSQL: {t['gpusort'].reason})" if left_to_postgres(summary) else ""
    forced = f", forced {format_time(t['forced'].median)}" if "forced" in t else ""
    return (f"{summary.case:40} stock {format_time(t['stock'].median)}, gpusort {format_time(t['gpusort'].median)}"
            f"{forced}, floor {format_time(t['floor'].median)}: {ratio(summary):.2f}x{note}")


# --- must reach ---------------------------------------------------------------

Line = namedtuple("Line", "what verdict detail")


def _speed_lines(summaries):
    largest = max((s.rows for s in summaries), default=0)
    for key, shape, bar in MUST_REACH:
        at = {s.rows: s for s in summaries if (s.key, s.distribution, s.shape) == (key, "random", shape)}
        what = f"5 M rows, {SHAPE_TITLES[shape]}, {key} >= {bar}x"
        if MUST_REACH_ROWS in at:
            value = ratio(at[MUST_REACH_ROWS])
            kept = at[MUST_REACH_ROWS].timings["gpusort"].reason
            yield Line(what, REACHED if value >= bar else MISSED, f"{value:.2f}x" + (f"; kept by PostgreSQL: {kept}" if kept else ""))
        else:
            detail = f"{ratio(at[largest]):.2f}x at {format_rows(largest)} rows" if largest in at else ""
            yield Line(what, NOT_MEASURED, detail)


def _losses_line(summaries):
    what = f"no case below {NO_CASE_BELOW}x"
    ours = [s for s in summaries if not left_to_postgres(s)]
    left = len(summaries) - len(ours)
    if not ours:
        return Line(what, NOT_MEASURED, "")
    losses = [s for s in ours if ratio(s) < NO_CASE_BELOW]
    worst = min(ours, key=ratio)
    return Line(what, MISSED if losses else REACHED,
                f"{len(losses)} of {len(ours)} cases below; worst {ratio(worst):.2f}x: {worst.case}; "
                f"{left} more keep their Sort by default, so their plans are equal")


def _small_line(summaries):
    what = f"a Sort of {SMALL_ROWS} rows within {SMALL_MICROSECONDS:g} us of stock"
    small = [s for s in summaries if s.rows == SMALL_ROWS]
    if not small:
        return Line(what, NOT_MEASURED, "")

    def extra(summary, contender):
        return (summary.timings[contender].median - summary.timings["stock"].median) * 1e6

    forced = {s.case: extra(s, "forced" if "forced" in s.timings else "gpusort") for s in small}
    worst = max(forced, key=forced.get)
    return Line(what, REACHED if forced[worst] <= SMALL_MICROSECONDS else MISSED,
                f"gpusort.force: {forced[worst]:+.2f} us at worst ({worst}), median {median(forced.values()):+.2f} us; "
                f"default settings: {max(extra(s, 'gpusort') for s in small):+.2f} us at worst")


def _memory_line(peaks):
    """Compares what each backend took for itself; 1 % and 1 MB are within the kernel's counting."""
    what = "peak memory no higher than stock's"
    pairs = memory_pairs(peaks)
    if not pairs:
        return Line(what, NOT_MEASURED, "")
    higher = [(stock, gpusort) for stock, gpusort in pairs
              if gpusort.anonymous_kb > stock.anonymous_kb * 1.01 + 1024]
    worst = max(pairs, key=lambda pair: pair[1].anonymous_kb / pair[0].anonymous_kb)
    return Line(what, MISSED if higher else REACHED,
                f"{len(higher)} of {len(pairs)} cases higher; worst {worst[1].anonymous_kb / worst[0].anonymous_kb:.2f}x "
                f"of stock's: {worst[0].case}, {format_memory(worst[0].anonymous_kb)} -> "
                f"{format_memory(worst[1].anonymous_kb)}; sort space {format_memory(worst[0].sort_space_kb)} -> "
                f"{format_memory(worst[1].sort_space_kb)}")


def memory_pairs(peaks):
    stock = {p.case: p for p in peaks if p.contender == "stock"}
    return [(stock[p.case], p) for p in peaks if p.contender == "gpusort" and p.case in stock]


def must_reach(summaries, peaks):
    return [*_speed_lines(summaries), _losses_line(summaries), _small_line(summaries), _memory_line(peaks)]


# --- the machine ----------------------------------------------------------------

def _read(path, default=""):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return default


def machine(session, settings):
    """What all results depend on: a list of (what, value)."""
    model = re.search(r"model name\s*:\s*(.*)", _read("/proc/cpuinfo"))
    memory = re.search(r"MemTotal:\s*(\d+)", _read("/proc/meminfo"))
    huge = re.search(r"\[(\w+)\]", _read("/sys/kernel/mm/transparent_hugepage/enabled"))
    reporting = os.path.exists("/sys/module/page_reporting")
    try:
        version = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=os.path.dirname(__file__), check=True,
                                 capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        version = "unknown"

    return [
        ("Date", time.strftime("%Y-%m-%d")),
        ("CPU", f"{model.group(1) if model else platform.machine()}, {os.cpu_count()} cores"),
        ("Memory", f"{int(memory.group(1)) / 1048576:.0f} GB" if memory else "unknown"),
        ("Kernel", f"{platform.system()} {platform.release()}"),
        ("gpusort", version),
        ("PostgreSQL", session.run("SELECT version()")),
        ("Settings", ", ".join(f"{name} = {session.run('SHOW ' + name)}" for name in settings)),
        ("Huge pages", f"transparent: {huge.group(1) if huge else 'unknown'}; "
                       f"reserved: {_read('/proc/sys/vm/nr_hugepages', 'unknown')}"),
        ("Free page reporting", "the kernel can: the host may take back free memory" if reporting else "no"),
    ]


class Noise:
    """How much other processes used the machine meanwhile."""

    def __init__(self):
        self.load = os.getloadavg()[0]
        self.start = self._cpu()

    @staticmethod
    def _cpu():
        first = _read("/proc/stat").split("\n")[0].split()[1:]
        return [int(field) for field in first]

    def describe(self, own="1 is this run's own"):
        spent = [after - before for after, before in zip(self._cpu(), self.start)]
        total = sum(spent[:8]) or 1
        busy = total - spent[3] - spent[4]
        stolen = spent[7] if len(spent) > 7 else 0
        return (f"load {self.load:.2f} at the start; meanwhile {busy * os.cpu_count() / total:.2f} cores busy "
                f"({own}), {100 * stolen / total:.1f} % stolen by the hypervisor")


# --- Markdown ---------------------------------------------------------------------

def _spread(timing):
    return f"{format_time(timing.median)} ({format_time(timing.low)} - {format_time(timing.high)})"


def _ratio_cell(summary):
    value = ratio(summary)
    text = f"{value:.2f}x"
    if left_to_postgres(summary):
        return text
    return f"**{text} LOSS**" if value < NO_CASE_BELOW else f"**{text}**" if value < 1 else text


def _method(summary):
    t = summary.timings
    if left_to_postgres(summary):
        return f"{t['gpusort'].method} (left to PostgreSQL: {t['gpusort'].reason})"
    return f"{t['gpusort'].method}, {t['gpusort'].engine}"


def _space(summary):
    return " -> ".join(format_memory(int(summary.timings[name].memory_kb)) for name in ("stock", "gpusort"))


def table(head, lines):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for line in lines:
        yield "| " + " | ".join(line) + " |"
    yield ""


def _about_case(summary):
    return [format_rows(summary.rows), summary.key, summary.distribution, summary.shape]


def _case_table(summaries):
    return table(
        ["rows", "key", "distribution", "selects", "stock", "gpusort", "floor", "stock / gpusort", "sorted by",
         "sort space"],
        [_about_case(s) + [_spread(s.timings[name]) for name in ("stock", "gpusort", "floor")]
         + [_ratio_cell(s), _method(s), _space(s)] for s in summaries])


def _small_table(summaries):
    def extra(s):
        return f"{(s.timings['forced'].median - s.timings['stock'].median) * 1e6:+.2f} us"

    return table(
        ["rows", "key", "distribution", "selects", "stock", "gpusort.force", "difference", "stock / forced",
         "forced sorts by"],
        [_about_case(s) + [_spread(s.timings["stock"]), _spread(s.timings["forced"]), extra(s),
                           f"{ratio(s, 'forced'):.2f}x", s.timings["forced"].method] for s in summaries])


def _memory_table(peaks):
    def cells(peak):
        return [format_memory(int(kb)) for kb in (peak.anonymous_kb, peak.hwm_kb, peak.sort_space_kb)]

    return table(
        ["case", "stock: own peak", "VmHWM", "sort space", "gpusort: own peak", "VmHWM", "sort space",
         "gpusort / stock"],
        [[stock.case] + cells(stock) + cells(gpusort) + [f"{gpusort.anonymous_kb / stock.anonymous_kb:.2f}"]
         for stock, gpusort in memory_pairs(peaks)])


def markdown(name, about, summaries, peaks, plot=None):
    """The report, as text.  about: a list of (what, value)."""
    losses = sorted((s for s in summaries if ratio(s) < 1 and not left_to_postgres(s)), key=ratio)
    forced = [s for s in summaries if "forced" in s.timings]
    out = [f"# gpusort against PostgreSQL's Sort: {name}", ""]
    out += table(["", ""], [[what, value] for what, value in about])
    out += ["## Must reach", ""]
    out += table(["what", "", "measured"], must_reach(summaries, peaks))
    out += ["## Losses", "",
            f"Cases in which a GpuSort ran and took longer than the Sort; below {NO_CASE_BELOW}x they are marked LOSS.", ""]
    out += _case_table(losses) if losses else ["None.", ""]
    if plot:
        out += [f"![ratio over rows]({plot})", ""]
    out += ["## All cases", "",
            "Default settings. Medians, with the least and the most; the floor is the same query without ORDER BY. "
            "\"Left to PostgreSQL\" marks plans that keep their Sort, so that both sides run the same plan.", ""]
    out += _case_table(summaries)
    if forced:
        out += ["## Small sorts, forced", "",
                "With gpusort.force = on every sort is a GpuSort, however small. Time of one execution.", ""]
        out += _small_table(forced)
    if peaks:
        out += ["## Peak memory", "",
                "Each in a fresh backend. Own peak: VmHWM less the shared and file pages; "
                "sort space: as EXPLAIN ANALYZE tells it.", ""]
        out += _memory_table(peaks)
    return "\n".join(out)
