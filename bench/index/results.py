#!/usr/bin/env python3
"""The report of the runs of bench/index/run: results.py RESULTS.csv"""

import csv
import os
import sys
from collections import Counter, namedtuple

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")]

import report
from figures import at_least, at_most, cell, figure, ratio, select, times
from indexes import EXTERNAL_MEMORY, GIN
from report import MISSED, NO_CASE_BELOW, NOT_MEASURED, REACHED, Line

# One line of the results.  cpu_seconds is the backend's, of builds without workers;
# engine is what sorted: postgres, cpu, or cuda, whatever the device; amcheck is CLEAN or
# what it found, if it was asked; reason is why gpusort left the index to PostgreSQL.
Run = namedtuple(
    "Run", "key rows workers memory contender repetition seconds cpu_seconds engine index_bytes amcheck reason")

# A case's contender beside stock.
Comparison = namedtuple("Comparison", "key workers memory contender stock own ratio cpu_ratio engines reason sizes")

# What must be reached: rows; then key, workers, times stock.
DEVICE_ROWS = 10_000_000
DEVICE_BARS = [("bigint", 0, 3.0), ("textICU", 0, 2.0), ("textLibc", 0, 5.0), ("bigint", 8, 1.5), ("numeric", 8, 3.0)]
DEVICE_SECONDS = 1.45
CPU_ROWS = 5_000_000
CPU_BARS = [("bigint", 0, 1.6), ("date366", 0, 2.0), ("textLibc", 0, 4.0)]
SIZE_DIFFERENCE = 0.01

# GIN, at 2 M rows: key, workers, contender, seconds; and pg_trgm, times stock.
GIN_ROWS = 2_000_000
GIN_SECONDS = [
    ("gin-array", 0, "cpu", 9), ("gin-tsvector", 0, "cpu", 15), ("gin-jsonb", 0, "cpu", 5),
    ("gin-array", 8, "cpu", 2.5), ("gin-tsvector", 8, "cpu", 4), ("gin-jsonb", 8, "cpu", 1.5),
    ("gin-array", 8, "cuda", 2), ("gin-tsvector", 8, "cuda", 3), ("gin-jsonb", 8, "cuda", 1.2),
]
GIN_BARS = [("cpu", "gin-trigram", 0, 4.0), ("cpu", "gin-trigram", 8, 4.0), ("cuda", "gin-trigram", 8, 4.0)]
GIN_KEYS = [index.key for index in GIN]

FORCED = ", forced"

CLEAN = "clean"


def contender_name(engine, device, forced):
    """Measurements with gpusort.device = host are not those of a GPU."""
    return ("host" if (engine, device) == ("cuda", "host") else engine) + (FORCED if forced else "")


def read(path):
    with open(path, newline="") as file:
        return [Run(**line)._replace(rows=int(line["rows"]), workers=int(line["workers"]),
                                     repetition=int(line["repetition"]), seconds=float(line["seconds"]),
                                     cpu_seconds=float(line["cpu_seconds"] or 0), index_bytes=int(line["index_bytes"]))
                for line in csv.DictReader(file)]


def compare(runs):
    """A Comparison for each case and contender that is not stock, forced ones too."""
    comparisons = []
    for key, workers, memory, contender in dict.fromkeys(run[:1] + run[2:5] for run in runs):
        case = {"key": key, "workers": workers, "memory": memory}
        stock, own = (select(runs, contender=name, **case) for name in ("stock", contender))
        if contender == "stock" or not stock:
            continue
        by_cpu = [figure([run._replace(seconds=run.cpu_seconds) for run in side if run.cpu_seconds])
                  for side in (stock, own)]
        comparisons.append(Comparison(
            key, workers, memory, contender, figure(stock), figure(own), ratio(figure(stock), figure(own)),
            ratio(*by_cpu), {run.engine for run in own}, own[-1].reason,
            [run.index_bytes / stock[0].index_bytes for run in own]))
    return comparisons


def is_default(comparison):
    """With default settings, and sorted by gpusort?"""
    return not comparison.reason and not comparison.contender.endswith(FORCED)


def with_workers(workers):
    return f"{workers} workers" if workers else "serial"


def other_engine(comparison):
    """The engine that sorted instead of the requested one, or None."""
    other = comparison.engines - {"cpu" if comparison.contender.startswith("cpu") else "cuda"}
    return f", sorted by {' and '.join(sorted(other))}" if other else ""


def in_memory(comparisons, contender, key, workers):
    """The one comparison, or None."""
    found = select(comparisons, contender=contender, key=key, workers=workers)
    return next((c for c in found if c.memory != EXTERNAL_MEMORY), None)


def _bar(comparisons, contender, key, workers, bar, rows, asked_rows):
    what = f"{report.format_rows(asked_rows)} rows, {with_workers(workers)}, {key}: {contender} >= {bar}x stock"
    found = in_memory(comparisons, contender, key, workers)
    if found and found.reason:
        return Line(what, MISSED if rows == asked_rows else NOT_MEASURED, f"left to PostgreSQL: {found.reason}")
    line = at_least(what, found and found.ratio, bar, rows, asked_rows)
    return line._replace(detail=line.detail + other_engine(found)) if found else line


def _seconds_line(comparisons, key, workers, contender, seconds, rows, asked_rows):
    what = f"{report.format_rows(asked_rows)} rows, {with_workers(workers)}, {key}: {contender} at most {seconds} s"
    found = in_memory(comparisons, contender, key, workers)
    return at_most(what, found.own.median if found and rows == asked_rows else None, seconds, report.format_time)


def _losses_line(comparisons, rows):
    what = f"{report.format_rows(CPU_ROWS)} rows, cpu: no index below {NO_CASE_BELOW}x stock"
    ours = [c for c in select(comparisons, contender="cpu") if is_default(c)]
    if not ours:
        return Line(what, NOT_MEASURED, "")
    worst = min(ours, key=lambda c: c.ratio)
    left = len(select(comparisons, contender="cpu")) - len(ours)
    line = at_least(what, worst.ratio, NO_CASE_BELOW, rows, CPU_ROWS)
    return line._replace(
        detail=f"worst of {len(ours)}: {line.detail}, {title(worst)}; {left} more are left to PostgreSQL")


def _size_lines(comparisons):
    ours = [c for c in comparisons if not c.reason]
    ratios = [size for c in ours if c.key not in GIN_KEYS for size in c.sizes]
    gin_ratios = [size for c in ours if c.key in GIN_KEYS for size in c.sizes]
    return [
        at_most(f"every btree's size within {SIZE_DIFFERENCE:.0%} of stock's",
                max((abs(size - 1) for size in ratios), default=None), SIZE_DIFFERENCE,
                lambda most: f"{len(ratios)} indexes, {most:.4%} at most"),
        at_most("no GIN index larger than stock's", max(gin_ratios, default=None), 1,
                lambda most: f"{len(gin_ratios)} indexes, {most:.3f} of stock's at most"),
    ]


def _amcheck_line(runs):
    what = "amcheck finds all entries, in order, from the root too"
    checked = [run for run in runs if run.amcheck]
    faults = [run for run in checked if run.amcheck != CLEAN]
    if faults:
        return Line(what, MISSED, f"{len(faults)} of {len(checked)} indexes not: {faults[0].key}: {faults[0].amcheck}")
    return Line(what, REACHED, f"{len(checked)} indexes") if checked else Line(what, NOT_MEASURED, "")


def asked(runs):
    """The requirements, and whether they are reached."""
    comparisons = compare(runs)
    rows = runs[0].rows if runs else 0
    return [
        *(_bar(comparisons, "cuda", *bar, rows, DEVICE_ROWS) for bar in DEVICE_BARS),
        _seconds_line(comparisons, "bigint", 8, "cuda", DEVICE_SECONDS, rows, DEVICE_ROWS),
        *(_bar(comparisons, "cpu", *bar, rows, CPU_ROWS) for bar in CPU_BARS),
        _losses_line(comparisons, rows),
        *(_seconds_line(comparisons, *bar, rows, GIN_ROWS) for bar in GIN_SECONDS),
        *(_bar(comparisons, *bar, rows, GIN_ROWS) for bar in GIN_BARS),
        *_size_lines(comparisons),
        _amcheck_line(runs),
    ]


def title(comparison):
    return f"{comparison.key}, {with_workers(comparison.workers)}, maintenance_work_mem {comparison.memory}"


def _own_cell(comparison):
    if comparison is None:
        return ""
    if comparison.reason:
        return "left to PostgreSQL"
    return cell(comparison.own) + other_engine(comparison)


def _ratio_cell(comparison):
    if comparison is None or comparison.reason:
        return ""
    return times(comparison.ratio) + (" LOSS" if comparison.ratio < NO_CASE_BELOW else "")


def _case_table(runs, comparisons):
    """A line a key, of cases with the same workers and memory."""
    contenders = list(dict.fromkeys(c.contender for c in comparisons if not c.contender.endswith(FORCED)))
    head = ["index", "size", "stock", *contenders, *(f"stock / {name}" for name in contenders)]
    has_cpu_time = any(c.cpu_ratio for c in select(comparisons, contender="cpu"))
    lines = []
    for key in dict.fromkeys(run.key for run in runs):
        of = {c.contender: c for c in select(comparisons, key=key)}
        found = [of.get(name) for name in contenders]
        stock = select(runs, key=key, contender="stock")
        line = [key, report.format_memory(stock[0].index_bytes // 1024), cell(figure(stock)),
                *map(_own_cell, found), *map(_ratio_cell, found)]
        if has_cpu_time:
            line.append(times(of["cpu"].cpu_ratio) if "cpu" in of and not of["cpu"].reason else "")
        lines.append(line)
    return report.table(head + ["stock / cpu, processor time"] * has_cpu_time, lines)


def _loss_table(losses):
    head = ["index", "engine", "stock", "gpusort", "stock / gpusort"]
    lines = [[title(c), c.contender, cell(c.stock), cell(c.own), _ratio_cell(c)] for c in losses]
    return report.table(head, lines) if lines else ["None.", ""]


def _left_table(comparisons):
    forced = {c[:4]: c for c in comparisons if c.contender.endswith(FORCED)}
    head = ["index", "engine", "reason", "stock", "gpusort.force", "stock / forced"]
    lines = []
    for c in comparisons:
        if c.reason:
            other = forced.get((*c[:3], c.contender + FORCED))
            lines.append([title(c), c.contender, c.reason, cell(c.stock), cell(other and other.own),
                          times(other and other.ratio)])
    return report.table(head, lines) if lines else ["None.", ""]


def _repetitions(runs):
    """The repetitions of each case by each contender: fewer if the time was over."""
    counts = Counter(run[:1] + run[2:5] for run in runs).values()
    return " to ".join(str(n) for n in sorted({min(counts, default=0), max(counts, default=0)}))


def markdown(runs, about):
    comparisons = compare(runs)
    about = [*about, ("Repetitions", _repetitions(runs) + ", after one of the first index that is not counted")]
    losses = sorted((c for c in comparisons if is_default(c) and c.ratio < 1), key=lambda c: c.ratio)
    out = ["# CREATE INDEX", "", *report.table(["", ""], about), "## Must reach", ""]
    out += report.table(["what", "", "measured"], asked(runs))
    out += ["## Losses", "", *_loss_table(losses)]
    for workers, memory in dict.fromkeys((run.workers, run.memory) for run in runs):
        group = {"workers": workers, "memory": memory}
        found = select(runs, **group)
        out += [f"## {report.format_rows(found[0].rows)} rows, {with_workers(workers)}, "
                f"maintenance_work_mem {memory}", ""]
        out += _case_table(found, select(comparisons, **group))
    out += ["## Left to PostgreSQL by default settings", "", *_left_table(comparisons)]
    return "\n".join(out)


if __name__ == "__main__":
    print(markdown(read(sys.argv[1]), []))
