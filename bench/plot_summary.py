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

# A bar: its label, the file, the contender, and the fields that select its runs.
Bar = namedtuple("Bar", "label file contender fields")
Panel = namedtuple("Panel", "title subtitle colour bars")

GPU_COLOUR = "#3f8f4f"
CPU_COLOUR = "#3b6fb6"
GREY = "#5a5a5a"

# All panels have the same scale, up to here.
RIGHT = 24


def order_by_gpu(label, query, run="2026-11-24-final", part="main", work_mem="32GB", contender="cuda"):
    return Bar(label, f"device/results/h200-{run}.csv", contender,
               {"part": part, "query": query, "work_mem": work_mem})


def order_by_cpu(label, key, run="-2026-11-24", distribution="random", shape="row"):
    return Bar(label, f"results/epyc-2-cores-5m{run}.csv", "gpusort",
               {"key": key, "distribution": distribution, "shape": shape})


def index_gpu(label, key):
    return Bar(label, "index/results/h200-2026-11-26-workers.csv", "cuda",
               {"key": key, "workers": "8", "memory": "9765MB"})


def index_cpu(label, key):
    return Bar(label, "index/results/epyc-2-cores-5m-2026-11-24.csv", "cpu",
               {"key": key, "workers": "0", "memory": "4882MB"})


XEON = "PostgreSQL 15.20, NVIDIA H200,\n16-core Intel Xeon, 10 million rows of 166 bytes"
EPYC = "PostgreSQL 15.20, 2 cores of an AMD EPYC\n(Zen 5), 5 million rows, no GPU"

PANELS = [
    Panel("ORDER BY, GPU engine", XEON, GPU_COLOUR, [
        order_by_gpu("bigint", "b"),
        order_by_gpu("date, bigint", "d,b"),
        order_by_gpu("text, ICU collation", "icu"),
        order_by_gpu("bigint, 8 workers", "b", part="parallel", work_mem="256MB"),
        order_by_gpu("the same, work_mem = 4MB", "b", part="parallel", work_mem="4MB"),
        order_by_gpu('text "C", 8 workers', "c", part="parallel", work_mem="256MB"),
        order_by_gpu('date DESC, numeric, text, 8 workers', "d desc,n,c", part="parallel", work_mem="256MB"),
    ]),
    Panel("ORDER BY, CPU engine", EPYC, CPU_COLOUR, [
        order_by_cpu("bigint", "bigint"),
        order_by_cpu("uuid", "uuid"),
        order_by_cpu('text "C"', "textC"),
        order_by_cpu('date, int DESC, text "C"', "date-int-text"),
        order_by_cpu("numeric", "numeric"),
        order_by_cpu("text, ICU collation", "textICU"),
        order_by_cpu("text, en_US.UTF-8 (libc)", "textLibc"),
        order_by_cpu("bigint, already in order", "bigint", "", distribution="sorted"),
        order_by_cpu("bigint, work_mem = 64MB", "bigint", shape="spill"),
        Bar("1 M uuids in order, alone (Xeon)", "results/xeon-2-cores-1m-in-order.csv", "gpusort",
            {"key": "uuid", "distribution": "sorted", "shape": "key"}),
    ]),
    Panel("CREATE INDEX, GPU engine, 8 workers", XEON, GPU_COLOUR, [
        index_gpu("bigint", "bigint"),
        index_gpu("date, bigint", "date-bigint"),
        index_gpu('text "C"', "textC"),
        index_gpu("numeric", "numeric"),
        index_gpu("text, ICU collation", "textICU"),
        index_gpu("text, en_US.UTF-8 (libc)", "textLibc"),
        index_gpu("UNIQUE bigint", "unique"),
    ]),
    Panel("CREATE INDEX, CPU engine", EPYC, CPU_COLOUR, [
        index_cpu("bigint", "bigint"),
        index_cpu("date, 366 values", "date366"),
        index_cpu('text "C"', "textC"),
        index_cpu("numeric", "numeric"),
        index_cpu("text, ICU collation", "textICU"),
        index_cpu("text, en_US.UTF-8 (libc)", "textLibc"),
        index_cpu("UNIQUE bigint", "unique"),
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
    return seconds(runs, bar, "stock") / seconds(runs, bar, bar.contender)


def draw_panel(axis, panel):
    ratios = [ratio(bar) for bar in panel.bars]
    places = range(len(ratios))
    axis.barh(places, ratios, height=0.68, color=panel.colour)
    for place, value in zip(places, ratios):
        axis.text(max(value, 1) + RIGHT * 0.012, place, f"{value:.1f}x", va="center", fontsize=9.5)
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
    figure.text(0.012, 0.012, "Median elapsed time of PostgreSQL 15.20 divided by that of gpusort. Tables in memory, whole rows, "
                "random order, one process, unless the label says otherwise.\n"
                "Dashed line: equal. Measured from 2026-11-21 to 2026-11-26; see docs/performance.md.",
                fontsize=8.5, color=GREY, linespacing=1.5)
    figure.tight_layout(rect=(0.005, 0.055, 0.995, 0.975), h_pad=2.2, w_pad=2.5)

    # few colours are enough, and make a small file
    pixels = io.BytesIO()
    figure.savefig(pixels, dpi=125)
    pyplot.close(figure)
    Image.open(pixels).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else OUT)
