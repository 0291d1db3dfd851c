#!/usr/bin/env python3
"""The report of the runs of bench/defaults/run: results.py RESULTS.csv"""

import csv
import os
import sys
from collections import namedtuple

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")]

import queries
import report
from figures import cell, figure, ratio, select, times
from report import MISSED, NO_CASE_BELOW, NOT_MEASURED, REACHED, Line

# The contenders: what gpusort.enabled is set to.
OFF, ON = "off", "on"

GPUSORT = "GpuSort"

# One line of the results.  cpu_seconds is that of the backend and its workers, or empty;
# plan is its nodes but sequential scans; sorts is what sorted, and how; reason is why gpusort
# left sorts to PostgreSQL.
Run = namedtuple("Run", "rows case contender repetition seconds cpu_seconds plan sorts reason")

# A case with gpusort beside the same without.  reason is "" if gpusort took all sorts.
Comparison = namedtuple("Comparison", "rows case off on ratio cpu_ratio off_plan on_plan sorts reason")


def read(path):
    with open(path, newline="") as file:
        return [Run(**line)._replace(rows=int(line["rows"]), repetition=int(line["repetition"]),
                                     seconds=float(line["seconds"]), cpu_seconds=float(line["cpu_seconds"] or 0))
                for line in csv.DictReader(file)]


def compare(runs):
    """A Comparison for each case of which there are runs of both."""
    comparisons = []
    for rows, case in dict.fromkeys(run[:2] for run in runs):
        off, on = (select(runs, rows=rows, case=case, contender=contender) for contender in (OFF, ON))
        if not off or not on:
            continue
        by_cpu = [figure([run._replace(seconds=run.cpu_seconds) for run in side if run.cpu_seconds])
                  for side in (off, on)]
        comparisons.append(Comparison(
            rows, case, figure(off), figure(on), ratio(figure(off), figure(on)), ratio(*by_cpu), off[-1].plan,
            on[-1].plan, on[-1].sorts, on[-1].reason))
    return comparisons


def is_used(comparison):
    return GPUSORT in comparison.sorts


def has_same_plan(comparison):
    """But for the node that sorts?"""
    return comparison.on_plan.replace(GPUSORT, "Sort") == comparison.off_plan


def is_noise(comparison):
    """Did PostgreSQL do the same on both sides?"""
    return not is_used(comparison) and has_same_plan(comparison)


def is_loss(comparison):
    return comparison.ratio < NO_CASE_BELOW and not is_noise(comparison)


def _losses_line(comparisons, rows):
    what = f"{report.format_rows(rows)} rows: no case below {NO_CASE_BELOW}x"
    found = [c for c in select(comparisons, rows=rows) if not is_noise(c)]
    if not found:
        return Line(what, NOT_MEASURED, "")
    losses = [c for c in found if is_loss(c)]
    worst = min(found, key=lambda c: c.ratio)
    left = len(select(comparisons, rows=rows)) - len(found)
    return Line(what, MISSED if losses else REACHED,
                f"{len(losses)} of {len(found)} cases below; worst {times(worst.ratio)}: {worst.case}; "
                f"{left} more have the same plan on both sides")


def asked(runs):
    """The requirements, and whether they are reached."""
    comparisons = compare(runs)
    return [_losses_line(comparisons, rows) for rows in dict.fromkeys(run.rows for run in runs)]


def _sorted_by(comparison):
    """What sorted with gpusort."""
    return "; ".join([comparison.sorts] * is_used(comparison)
                     + [f"left to PostgreSQL: {comparison.reason}"] * bool(comparison.reason))


def _plan(comparison):
    return comparison.on_plan + (
        "" if has_same_plan(comparison) else f"; without gpusort: {comparison.off_plan}")


def _ratio_cell(comparison):
    text = times(comparison.ratio)
    if is_noise(comparison):
        return f"({text})"
    if is_loss(comparison):
        return f"**{text} LOSS**" + (", ranges overlap" if comparison.off.high >= comparison.on.low else "")
    return text


def _case_table(comparisons):
    head = ["rows", "case", "gpusort off", "gpusort on", "off / on", "processor time", "sorted by", "plan"]
    lines = [[report.format_rows(c.rows), c.case, cell(c.off), cell(c.on), _ratio_cell(c), times(c.cpu_ratio),
              _sorted_by(c), _plan(c)] for c in comparisons]
    return report.table(head, lines) if lines else ["None.", ""]


def _noise(comparisons):
    ratios = [c.ratio for c in comparisons if is_noise(c)]
    return f"{len(ratios)} cases, {times(min(ratios))} to {times(max(ratios))}" if ratios else "no case"


def markdown(runs, about):
    comparisons = compare(runs)
    losses = sorted(filter(is_loss, comparisons), key=lambda c: c.ratio)
    about = [*about, ("Off / on where both sides have PostgreSQL's plan", _noise(comparisons))]
    out = ["# A server as installed", "", *report.table(["", ""], about)]
    out += [f"## Losing cases, below {NO_CASE_BELOW}x", "", *_case_table(losses)]
    out += ["## Must reach", "", *report.table(["what", "", "measured"], asked(runs))]
    for rows in dict.fromkeys(c.rows for c in comparisons):
        out += [f"## {report.format_rows(rows)} rows", "", *_case_table(select(comparisons, rows=rows))]
    out += ["## Statements", ""]
    out += report.table(["case", "statement"], [[name, f"`{queries.by_name(name).sql}`"]
                                                for name in dict.fromkeys(c.case for c in comparisons)])
    return "\n".join(out)


if __name__ == "__main__":
    print(markdown(read(sys.argv[1]), []))
