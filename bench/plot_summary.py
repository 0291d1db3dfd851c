#!/usr/bin/env python3
"""Draws docs/figures/summary.png from the committed results: plot_summary.py [OUT.png]

Each bar is the median time of PostgreSQL's own sort divided by that of gpusort, both
from the same run.  All figures come from the CSV files under bench/**/results.  Needs
matplotlib, which brings Pillow.  No test runs this script.
"""

import csv
import io
import os
import sys
from collections import namedtuple
from statistics import median

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from PIL import Image

BENCH = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(BENCH, "..", "docs", "figures", "summary.png")

# A bar: its label, the file, the names of the two contenders, and the fields that select its runs.
Bar = namedtuple("Bar", "label file stock contender fields")
Panel = namedtuple("Panel", "title subtitle colour bars")

GPU_COLOUR = "#3f8f4f"
CPU_COLOUR = "#3b6fb6"
GREY = "#5a5a5a"

# All panels have the same scale, up to here.
RIGHT = 28


def query_gpu(label, statement, run="2026-11-28"):
    return Bar(label, f"comparison/results/h200-{run}.csv", "PostgreSQL", "gpusort", {"statement": statement})


def index_gpu(label, key, run="2026-11-28-workers", memory="9765MB"):
    return Bar(label, f"index/results/h200-{run}.csv", "stock", "cuda", {"key": key, "workers": "8", "memory": memory})


def gin_gpu(label, key):
    return index_gpu(label, key, "2026-11-28-gin", "8GB")


def as_installed(label, case, run="2026-11-28"):
    return Bar(label, f"defaults/results/xeon-2-cores-3m-{run}.csv", "off", "on", {"case": case})


def window_as_installed(label, case):
    return as_installed(label, case, "2026-11-29-window-functions")


XEON = "NVIDIA H200, 16 cores of an Intel Xeon,\n8 workers, 10 million rows of 166 bytes"
GIN_TOO = "NVIDIA H200, 16 cores of an Intel Xeon,\n8 workers, 10 million rows; GIN: 2 million"
TWO_CORES = "2 cores of an Intel Xeon, settings of initdb,\n3 million rows of 126 bytes; GIN: 300,000"

PANELS = [
    Panel("ORDER BY, GPU", XEON, GPU_COLOUR, [
        query_gpu("bigint", "bigint"),
        query_gpu("date, bigint", "date-bigint"),
        query_gpu("uuid", "uuid"),
        query_gpu('text "C"', "text-C"),
        query_gpu("text, ICU collation", "text-ICU"),
        query_gpu("numeric", "numeric"),
        query_gpu("date DESC, numeric, text", "date-numeric-text"),
    ]),
    Panel("Windows and groups, GPU", XEON, GPU_COLOUR, [
        query_gpu("DISTINCT ON", "distinct-on"),
        query_gpu("first 3 of each group", "top-3"),
        query_gpu("median of each of 1 M groups", "median-g", "2026-11-28-medians"),
        query_gpu("median of each of 3,000 groups", "median-d", "2026-11-28-medians"),
        query_gpu("count(DISTINCT)", "count-distinct"),
        query_gpu("sum() OVER (PARTITION BY)", "window-sum"),
        query_gpu("lag() OVER (PARTITION BY)", "window-lag"),
        query_gpu("array_agg(ORDER BY)", "array-agg"),
    ]),
    Panel("CREATE INDEX, GPU", GIN_TOO, GPU_COLOUR, [
        index_gpu("bigint", "bigint"),
        index_gpu("bigint, CONCURRENTLY", "concurrently"),
        index_gpu("date, bigint", "date-bigint"),
        index_gpu('text "C"', "textC"),
        index_gpu("text, ICU collation", "textICU"),
        index_gpu("text, en_US.UTF-8 (libc)", "textLibc"),
        index_gpu("numeric", "numeric"),
        gin_gpu("GIN: int[]", "gin-array"),
        gin_gpu("GIN: tsvector", "gin-tsvector"),
    ]),
    Panel("A server as installed, no GPU", TWO_CORES, CPU_COLOUR, [
        as_installed("ORDER BY bigint", "order-bigint"),
        as_installed("ORDER BY text, en_US.UTF-8", "order-text"),
        as_installed("ORDER BY text LIMIT 10", "top-10-text"),
        window_as_installed("first 3 of each group", "window-top-3"),
        window_as_installed("sum() OVER (PARTITION BY)", "window-sum-group"),
        window_as_installed("count(DISTINCT) of each group", "count-distinct-group"),
        as_installed("CREATE INDEX, bigint", "index-bigint"),
        as_installed("CREATE INDEX CONCURRENTLY, text", "index-text-concurrently"),
        as_installed("GIN: trigrams", "index-gin-trigram"),
        as_installed("CLUSTER, bigint", "cluster-bigint-as-planned"),
    ]),
]


def read(file):
    with open(os.path.join(BENCH, file), newline="") as lines:
        return list(csv.DictReader(lines))


def seconds(runs, bar, contender):
    found = [float(run["seconds"]) for run in runs
             if run["contender"] == contender and all(run[name] == value for name, value in bar.fields.items())]
    if not found:
        sys.exit(f"{bar.file}: no runs of {contender} with {bar.fields}")
    return median(found)


def ratio(bar):
    runs = read(bar.file)
    return seconds(runs, bar, bar.stock) / seconds(runs, bar, bar.contender)


def draw_panel(axis, panel):
    ratios = [ratio(bar) for bar in panel.bars]
    places = range(len(ratios))
    axis.barh(places, ratios, height=0.68, color=panel.colour)
    for place, value in zip(places, ratios):
        axis.text(max(value, 1) + RIGHT * 0.012, place, f"{value:.1f}x" if value >= 1 else f"{value:.2f}x", va="center", fontsize=9.5)
    axis.axvline(1, color="#b03030", linewidth=1.2, linestyle="--", zorder=3)
    axis.set_yticks(places, [bar.label for bar in panel.bars], fontsize=9.5)
    axis.set_ylim(len(ratios) - 0.45, -0.55)
    axis.set_xlim(0, RIGHT)
    axis.tick_params(axis="y", length=0)
    axis.tick_params(axis="x", labelsize=8.5, colors=GREY)
    axis.xaxis.grid(True, color="#e4e4e4")
    axis.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.set_title(panel.title, loc="left", fontsize=11.5, fontweight="bold", pad=32)
    axis.text(0, 1.02, panel.subtitle, transform=axis.transAxes, fontsize=8.5, color=GREY, va="bottom")


def draw(path):
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 7.6), facecolor="white")
    for axis, panel in zip(axes.flat, PANELS):
        draw_panel(axis, panel)
    for axis in axes[-1]:
        axis.set_xlabel("times as fast as PostgreSQL", fontsize=9.5)
    figure.suptitle("gpusort: speed relative to PostgreSQL without it", x=0.012, ha="left", fontsize=14.5,
                    fontweight="bold")
    figure.text(0.012, 0.012, "Median elapsed time of PostgreSQL 18.6 divided by that of gpusort.  Tables are cached, rows in random order.  "
                "Dashed line: equal.\nMeasured on 2026-11-28 and 29; see docs/performance.md, also for the cases that are slower.",
                fontsize=8.5, color=GREY, linespacing=1.5)
    figure.tight_layout(rect=(0.005, 0.055, 0.995, 0.975), h_pad=2.2, w_pad=2.5)

    # few colours are enough, and make a small file
    pixels = io.BytesIO()
    figure.savefig(pixels, dpi=125)
    pyplot.close(figure)
    Image.open(pixels).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else OUT)
