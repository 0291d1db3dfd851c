"""Draws stock / gpusort over rows from a results file: plot.py RESULTS.csv OUT.png [--cpu-time]"""

import sys

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

import report
from cases import DISTRIBUTIONS, KEYS, SHAPES

DISTRIBUTION_TITLES = {"distinct366": "366 distinct"}
KEY_TITLES = {"textICU": "text, ICU", "textLibc": "text, libc", "textC": 'text "C"', "textC-url": 'text "C", URLs', "date-int-text": "date, int DESC, text"}

# Colours that can be told apart without seeing red and green (Okabe and Ito),
# told apart further by their markers.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C564B", "#7F7F7F", "#AA0000", "#332288",
           "#44AA99", "#DDCC77"]
MARKERS = "osD^vP*X<>dhp"


def draw(summaries, path):
    panels = [name for name in DISTRIBUTIONS if name != "prefix"]
    panels = [name for name in panels if any(panel_of(s) == name for s in summaries)]
    shapes = [shape for shape in SHAPES if any(s.shape == shape for s in summaries)]
    size = (3.6 * len(panels) + 1.8, 3.3 * len(shapes) + 0.9)
    figure, axes = pyplot.subplots(len(shapes), len(panels), figsize=size, sharex=True, sharey=True, squeeze=False)
    axes[0][0].set_xscale("log")
    axes[0][0].set_yscale("log", base=2)
    for shape, line in zip(shapes, axes):
        for distribution, axis in zip(panels, line):
            draw_panel(axis, [s for s in summaries if s.shape == shape and panel_of(s) == distribution])
            order = DISTRIBUTION_TITLES.get(distribution, distribution)
            axis.set_title(f"{report.SHAPE_TITLES[shape]}, {order}", fontsize=10)
    low = min(report.ratio(s) for s in summaries)
    high = max(report.ratio(s) for s in summaries)
    sizes = [s.rows for s in summaries]
    axes[0][0].set_xlim(min(sizes) / 1.8, max(sizes) * 1.8)
    axes[0][0].set_ylim(min(low * 0.93, 0.75), max(high * 1.1, 1.5))
    for axis in axes[-1]:
        axis.set_xlabel("rows")
    for line in axes:
        line[0].set_ylabel("stock / gpusort, times")
    caption = f"Dotted: {report.NO_CASE_BELOW}x, the bar."
    if any(report.left_to_postgres(s) for s in summaries):
        caption += " Grey: too few rows by the settings, the Sort stays PostgreSQL's."
    figure.text(0.01, 0.01, caption, fontsize=8.5, color="#555555")
    handles = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    figure.suptitle("How many times faster than PostgreSQL's Sort", fontsize=12)
    figure.legend(handles.values(), handles.keys(), loc="center right", fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.03, 1 - 1.7 / figure.get_figwidth(), 1))
    figure.savefig(path, dpi=130)


def panel_of(summary):
    """The url, whose order is random but for its prefix, belongs with the random ones."""
    return "random" if summary.distribution == "prefix" else summary.distribution


def draw_panel(axis, summaries):
    axis.yaxis.set_major_locator(FixedLocator([0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16]))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_locator(NullLocator())
    rows = sorted({s.rows for s in summaries})
    axis.xaxis.set_major_locator(FixedLocator([10 ** n for n in range(0, 10)]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: report.format_rows(int(value)).replace(" ", "")))
    axis.grid(True, color="#E5E5E5", linewidth=0.6)
    axis.axhline(1, color="#333333", linewidth=1)
    axis.axhline(report.NO_CASE_BELOW, color="#333333", linewidth=0.8, linestyle=":")
    left = [s.rows for s in summaries if report.left_to_postgres(s)]
    if left and rows:
        taken = min((size for size in rows if size > max(left)), default=max(left))
        axis.axvspan(0.1, (max(left) * taken) ** 0.5, color="#F2F2F2", linewidth=0, zorder=0)
    for number, key in enumerate(KEYS):
        points = sorted((s.rows, report.ratio(s)) for s in summaries if s.key == key.name)
        if points:
            axis.plot(*zip(*points), label=KEY_TITLES.get(key.name, key.name), color=COLOURS[number % len(COLOURS)],
                      marker=MARKERS[number % len(MARKERS)], markersize=4, linewidth=1.3)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


if __name__ == "__main__":
    draw(report.summarize(report.read_csv(sys.argv[1]), "--cpu-time" in sys.argv[3:]), sys.argv[2])
