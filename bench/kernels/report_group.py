#!/usr/bin/env python3
"""A table and a plot of what bench/kernels/run group measured.

usage: report_group.py NAME

Reads NAME.csv; writes NAME.md and, with matplotlib, NAME.png.
"""

import csv
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")]

import report

# RMG sort's own program (github.com/hpides/rmg-sort) on the same kind of machine, built with CUDA 13 for
# sm_90, 2026-11-22: giga keys a second of u32 between pinned host arrays, 2e9 keys, by number of devices.
RMG_HOST = {1: 6.1, 2: 12.4, 4: 16.5}

PHASES = ["upload ms", "sort ms", "split ms", "merge ms"]


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def table(lines, arrays):
    return "\n".join(report.table(
        ["million keys", "type", "distribution", "devices", *PHASES, "total ms (min - max)", "giga keys/s"],
        [[line["million keys"], line["type"], line["distribution"], line["devices"], *(line[phase] for phase in PHASES),
          f"{line['total ms']} ({line['minimum ms']} - {line['maximum ms']})", line["giga keys/s"]]
         for line in lines if line["arrays"] == arrays]))


def plot(lines, path):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5))
    u32 = [line for line in lines if line["type"] == "u32"]
    for arrays, style in (("device", "-"), ("host", "--")):
        for devices in sorted({line["devices"] for line in u32}):
            points = [(float(line["million keys"]), float(line["giga keys/s"])) for line in u32
                      if line["arrays"] == arrays and line["devices"] == devices and line["distribution"] == "uniform"]
            left.plot(*zip(*points), style, marker="o",
                      label=f"{'GPU memory' if arrays == 'device' else 'host to host'}, {devices} GPU{'s' if devices != '1' else ''}")
    for devices, rate in RMG_HOST.items():
        if str(devices) in {line["devices"] for line in u32}:
            left.plot([2000], [rate], "kx", label="RMG sort, host to host" if devices == 1 else None)
    left.set_xscale("log")
    left.set_yscale("log")
    left.set_xlabel("million u32 keys, uniform")
    left.set_ylabel("giga keys a second")
    left.legend()

    most = max(float(line["million keys"]) for line in u32)
    devices = max(line["devices"] for line in u32)
    bars = [line for line in u32 if float(line["million keys"]) == most and line["devices"] == devices and line["arrays"] == "host"]
    bottoms = [0.0] * len(bars)
    for phase in PHASES:
        heights = [float(line[phase]) for line in bars]
        right.bar([line["distribution"] for line in bars], heights, bottom=bottoms, label=phase[:-3])
        bottoms = [bottom + height for bottom, height in zip(bottoms, heights)]
    right.set_ylabel(f"milliseconds, {most:.0f} million u32 keys, host to host, {devices} GPUs")
    right.tick_params(axis="x", rotation=30)
    right.legend(loc="lower center", ncol=4)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    name = sys.argv[1]
    lines = read(name + ".csv")
    with open(name + ".md", "w") as file:
        file.write("# Sorts over several GPUs\n\n"
                   "`sort` is what remains of the local sorts after the upload; `merge` includes exchange and download.\n\n"
                   "## Arrays in GPU memory\n\n" + table(lines, "device") +
                   "\n\n## From pinned host memory to pinned host memory\n\n" + table(lines, "host") + "\n")
    try:
        plot(lines, name + ".png")
    except ImportError:
        print("no plot: matplotlib is missing", file=sys.stderr)


if __name__ == "__main__":
    main()
