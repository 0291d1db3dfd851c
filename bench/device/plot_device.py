"""Draws the runs of bench/device/run: times by query, and rows a second by size."""

import figures
import orders
import report
import results
from plot import COLOURS, MARKERS, pyplot

NAMES = {"floor": "the scan alone", "stock": "PostgreSQL", "cpu": "CPU engine", "cuda": "cuda"}
STYLES = {name: (COLOURS[i], MARKERS[i]) for i, name in enumerate(["cpu", "stock", "cuda", "floor"])}


def draw(runs, path):
    figure, axes = pyplot.subplots(1, 1 + len(orders.BARS), figsize=(15, 4.6),
                                   gridspec_kw={"width_ratios": [2] + [1] * len(orders.BARS)})
    draw_queries(axes[0], runs)
    for query, axis in zip(orders.BARS, axes[1:]):
        draw_sweep(axis, runs, query)
    for axis in axes:
        axis.grid(True, axis="y", color="#E5E5E5", linewidth=0.6)
        axis.set_axisbelow(True)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def draw_queries(axis, runs):
    rows = results.largest(runs, "main")
    queries = list(dict.fromkeys(run.query for run in figures.select(runs, part="main")))
    width = 0.8 / len(NAMES)
    for number, contender in enumerate(NAMES):
        found = [(i, figures.figure(runs, part="main", rows=rows, query=query, contender=contender))
                 for i, query in enumerate(queries)]
        found = [(i, figure) for i, figure in found if figure]
        if not found:
            continue
        axis.bar([i + (number - 1.5) * width for i, _ in found], [figure.median for _, figure in found], width,
                 color=STYLES[contender][0], label=NAMES[contender],
                 yerr=[[figure.median - figure.low for _, figure in found],
                       [figure.high - figure.median for _, figure in found]], error_kw={"linewidth": 0.8})
    axis.set_xticks(range(len(queries)), queries, rotation=25, ha="right")
    axis.set_ylabel("seconds")
    axis.set_title(f"SELECT ... ORDER BY, {report.format_rows(rows)} rows", fontsize=10)
    axis.legend(frameon=False, fontsize=9)


def draw_sweep(axis, runs, query):
    for contender in ("stock", "cpu", "cuda"):
        points = [(rows, rows / found.median / 1e6) for rows, found in results.sweep(runs, query, contender)]
        if points:
            colour, marker = STYLES[contender]
            axis.plot(*zip(*points), color=colour, marker=marker, markersize=4, linewidth=1.3, label=NAMES[contender])
    axis.set_xscale("log")
    axis.set_xlabel("rows")
    axis.set_ylabel("million rows a second")
    axis.set_title(f"ORDER BY {query}", fontsize=10)
