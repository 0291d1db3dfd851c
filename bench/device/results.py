#!/usr/bin/env python3
"""The report of the runs of bench/device/run: results.py RESULTS.csv [PLOT.png]"""

import csv
import os
import sys
from collections import namedtuple
from statistics import median

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")]

import orders
import report
from figures import at_least, at_most, cell, figure, ratio, select, times
from report import MISSED, NOT_MEASURED, REACHED, Line

# One line of the results.  temp_kb is what was written to files; own_kb the
# backend's peak, without what it shares.
Run = namedtuple("Run", "part query rows contender work_mem repetition seconds method space_kb temp_kb own_kb")

# What is asked for, at 10 M rows; and at many more than the device may hold.
ASKED_ROWS = 10_000_000
ASKED_LARGE_ROWS = 100_000_000
STOCK_BARS = [("b", 3.3), ("d,b", 5.0)]
FURTHER_STOCK_BARS = [("d desc,n,c", 10.0), ("libc", 8.0), ("icu", 1.5)]
PARALLEL_BARS = [("b", 3.5), ("c", 3.5), ("d desc,n,c", 8.0)]
PARALLEL_SECONDS = 0.60
CPU_BAR = 2.0
SMALL_WORK_MEM_BAR = 4.0
OWN_MEMORY_KB = 100 * 1024
CONNECT_SECONDS = 0.020


def read(path):
    with open(path, newline="") as file:
        return [Run(**line)._replace(rows=int(line["rows"]), repetition=int(line["repetition"]),
                                     seconds=float(line["seconds"]), temp_kb=int(line["temp_kb"]),
                                     own_kb=int(line["own_kb"] or 0))
                for line in csv.DictReader(file)]


def largest(runs, part):
    return max((run.rows for run in runs if run.part == part), default=0)


def sweep(runs, query, contender):
    """Rows and medians, ascending; the largest size is that of the part main."""
    found = [run for run in select(runs, query=query, contender=contender) if run.part in ("sizes", "main")]
    return [(rows, figure(found, rows=rows)) for rows in sorted({run.rows for run in found})]


def crossover(runs, query):
    """The smallest size from which on the device is never slower than the CPU engine, or None."""
    cpu = dict(sweep(runs, query, "cpu"))
    wins = [(rows, figure.median < cpu[rows].median) for rows, figure in sweep(runs, query, "cuda") if rows in cpu]
    while wins and wins[-1][1]:
        least, _ = wins.pop()
        if not wins or not wins[-1][1]:
            return least
    return None


def asked(runs):
    """The requirements, and whether they are reached."""
    rows = largest(runs, "main")
    lines = []
    for query, bar in STOCK_BARS:
        of = {name: figure(runs, part="main", query=query, contender=name, rows=rows)
              for name in ("floor", "stock", "cpu", "cuda")}
        lines.append(at_least(f"ORDER BY {query}: cuda >= {bar}x stock", ratio(of["stock"], of["cuda"]), bar, rows,
                              ASKED_ROWS))
        lines.append(at_least(f"ORDER BY {query}: cuda >= {CPU_BAR}x the CPU engine", ratio(of["cpu"], of["cuda"]),
                              CPU_BAR, rows, ASKED_ROWS))
    for query, bar in FURTHER_STOCK_BARS:
        of = {name: figure(runs, part="main", query=query, contender=name, rows=rows) for name in ("stock", "cuda")}
        lines.append(at_least(f"ORDER BY {query}: cuda >= {bar}x stock", ratio(of["stock"], of["cuda"]), bar, rows,
                              ASKED_ROWS))
    rows = largest(runs, "parallel")
    for work_mem in dict.fromkeys(run.work_mem for run in select(runs, part="parallel")):
        for query, bar in PARALLEL_BARS:
            of = {name: figure(runs, part="parallel", query=query, contender=name, rows=rows, work_mem=work_mem)
                  for name in ("stock", "cuda")}
            lines.append(at_least(f"ORDER BY {query} with workers, work_mem {work_mem}: cuda >= {bar}x stock",
                                  ratio(of["stock"], of["cuda"]), bar, rows, ASKED_ROWS))
    fastest = figure(runs, part="parallel", query="b", contender="cuda", rows=rows)
    if rows == ASKED_ROWS:
        lines.append(at_most("ORDER BY b with workers: at most 0.60 s", fastest.median if fastest else None,
                             PARALLEL_SECONDS, lambda seconds: f"{seconds:.3f} s"))
    of = {name: figure(runs, part="many", contender=name) for name in ("stock", "cuda")}
    few = {name: figure(runs, part="parallel", query="b", contender=name, work_mem="256MB") for name in ("stock", "cuda")}
    lines.append(at_least("100 M rows with workers: the ratio to stock no lower than at 10 M",
                          ratio(of["stock"], of["cuda"]), ratio(few["stock"], few["cuda"]) or 0, largest(runs, "many"), ASKED_LARGE_ROWS))
    of = {name: figure(runs, part="together", contender=name) for name in ("one by one", "at once")}
    lines.append(at_least("16 parallel sorts at once: no less throughput than one by one",
                          ratio(of["one by one"], of["at once"]), 1.0, ASKED_ROWS, ASKED_ROWS))
    rows = largest(runs, "large")
    of = {name: figure(runs, part="large", contender=name) for name in ("stock", "cuda")}
    lines.append(at_least("more rows than the device may hold, in order: faster than stock",
                          ratio(of["stock"], of["cuda"]), 1.0, rows, ASKED_LARGE_ROWS))
    rows = largest(runs, "memory")
    small = {name: figure(runs, part="memory", contender=name, work_mem="4MB") for name in ("stock", "cuda")}
    lines.append(at_least(f"ORDER BY b, work_mem 4MB: cuda >= {SMALL_WORK_MEM_BAR}x stock",
                          ratio(small["stock"], small["cuda"]), SMALL_WORK_MEM_BAR, rows, ASKED_ROWS))
    ours = [run for run in select(runs, part="memory", contender="cuda")]
    lines.append(at_most("no temporary file", max((run.temp_kb for run in ours), default=None), 0,
                         report.format_memory))
    lines.append(at_most("the backend's own memory < 100 MB", max((run.own_kb for run in ours), default=None),
                         OWN_MEMORY_KB, report.format_memory))
    first, second = (select(runs, part="connect", contender="cuda", repetition=n) for n in (1, 2))
    later = [a.seconds - b.seconds for a, b in zip(first, second)]
    lines.append(at_most("a connection's first sort within 20 ms of its second (median of connections)",
                         median(later) if later else None, CONNECT_SECONDS,
                         lambda seconds: f"{seconds * 1e3:+.1f} ms"))
    for query in orders.BARS:
        what = f"ORDER BY {query}: a size from which cuda is always ahead of the CPU engine"
        if min(len(sweep(runs, query, name)) for name in ("cpu", "cuda")) < 2:
            lines.append(Line(what, NOT_MEASURED, ""))
            continue
        least = crossover(runs, query)
        lines.append(Line(what, REACHED if least else MISSED, f"{report.format_rows(least)} rows" if least else "none"))
    return lines


def _speed_rows(runs, part, keys):
    """A line a key: the four contenders, and the ratios."""
    for title, fields in keys:
        of = {name: figure(runs, part=part, contender=name, **fields) for name in ("floor", "stock", "cpu", "cuda")}
        yield [title] + [cell(of[name]) for name in ("floor", "stock", "cpu", "cuda")] + [
            times(ratio(of["stock"], of["cpu"])), times(ratio(of["stock"], of["cuda"])),
            times(ratio(of["cpu"], of["cuda"]))]


def markdown(runs, about):
    out = ["# ORDER BY on the GPU", "", *report.table(["", ""], about), "## Asked for", ""]
    out += report.table(["what", "", "measured"], asked(runs))
    speed_head = ["", "floor", "stock", "CPU engine", "cuda", "stock / CPU", "stock / cuda", "CPU / cuda"]
    for part, title in (("main", "Everything in memory"), ("parallel", "With workers"), ("many", "With workers, many rows"),
                        ("large", "More than the device may hold")):
        queries = list(dict.fromkeys((run.query, run.work_mem) for run in select(runs, part=part)))
        if queries:
            rows = largest(runs, part)
            out += [f"## {title}, {report.format_rows(rows)} rows", ""]
            out += report.table(speed_head, _speed_rows(runs, part, [
                (f"ORDER BY {query}, work_mem {work_mem}", {"query": query, "work_mem": work_mem, "rows": rows})
                for query, work_mem in queries]))
    together = select(runs, part="together")
    if together:
        out += [f"## 16 sorts with workers, {report.format_rows(largest(runs, 'together'))} rows each, ORDER BY b", ""]
        out += report.table(["", "time of all"], [
            [name, cell(figure(together, contender=name))] for name in ("one by one", "at once")])
    memory = select(runs, part="memory")
    if memory:
        out += ["## Little work_mem, fresh backends, ORDER BY b", ""]
        out += report.table(
            ["work_mem", "", "time", "files", "own memory at most"],
            [[work_mem, name, cell(figure(memory, work_mem=work_mem, contender=name)),
              report.format_memory(max(run.temp_kb for run in found)),
              report.format_memory(max(run.own_kb for run in found))]
             for work_mem in dict.fromkeys(run.work_mem for run in memory) for name in ("stock", "cuda")
             if (found := select(memory, work_mem=work_mem, contender=name))])
    connect = select(runs, part="connect")
    if connect:
        out += [f"## The first sorts of a connection, {report.format_rows(connect[0].rows)} rows, ORDER BY b", ""]
        out += report.table(
            ["", "first", "second", "third", "fourth"],
            [[name] + [cell(figure(connect, contender=name, repetition=n)) for n in range(1, 5)]
             for name in dict.fromkeys(run.contender for run in connect)])
    for query in orders.BARS:
        sizes = sorted({run.rows for run in select(runs, part="sizes", query=query)})
        if sizes:
            out += [f"## From small to large, ORDER BY {query}", ""]
            out += report.table(speed_head, _speed_rows(runs, "sizes", [
                (report.format_rows(rows), {"query": query, "rows": rows}) for rows in sizes]))
    return "\n".join(out)


if __name__ == "__main__":
    measured = read(sys.argv[1])
    print(markdown(measured, []))
    if len(sys.argv) > 2:
        import plot_device

        plot_device.draw(measured, sys.argv[2])
