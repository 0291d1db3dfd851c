"""Medians of runs, which have fields and seconds, and whether requirements are reached."""

import csv
from collections import namedtuple
from statistics import median

import report
from report import MISSED, NOT_MEASURED, REACHED, Line

Figure = namedtuple("Figure", "median low high count runs")


def append(path, run):
    with open(path, "a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(run)


def select(runs, **fields):
    return [run for run in runs if all(getattr(run, name) == value for name, value in fields.items())]


def figure(runs, **fields):
    """The median of the runs with these fields; None if there are none."""
    found = select(runs, **fields)
    if not found:
        return None
    seconds = [run.seconds for run in found]
    return Figure(median(seconds), min(seconds), max(seconds), len(found), found)


def ratio(base, other):
    return base.median / other.median if base and other else None


def at_least(what, value, least, rows, asked_rows):
    """Is a ratio, for a number of rows, at least the required one?"""
    if value is None:
        return Line(what, NOT_MEASURED, "")
    text = f"{value:.2f}x"
    if rows != asked_rows:
        return Line(what, NOT_MEASURED, f"{text} at {report.format_rows(rows)} rows")
    return Line(what, REACHED if value >= least else MISSED, text)


def at_most(what, value, most, show):
    if value is None:
        return Line(what, NOT_MEASURED, "")
    return Line(what, REACHED if value <= most else MISSED, show(value))


def cell(found):
    if found is None:
        return ""
    return f"{report.format_time(found.median)} ({report.format_time(found.low)} - {report.format_time(found.high)})"


def times(value):
    return "" if value is None else f"{value:.2f}x"
