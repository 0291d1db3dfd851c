#!/usr/bin/env python3
"""A table and a plot of what bench/kernels/run measured.

usage: report.py NAME

Reads NAME.csv, NAME-cpu.csv and NAME-sweep.csv; writes NAME.md and, with matplotlib, NAME.png.
"""

import csv
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")]

import report

NUMBERS = {"n": int, "right": str, "sort": str, "entropy": str, "what": str, "type": str, "without": str}
ENTROPIES = ["1.0", "0.544", "0.201"]

# What the text says of a pass with nothing left out, by the tile that the product has.
PARTS = ["", "look-back", "rank", "look-back and rank", "scatter", "look-back and scatter"]

# The sizes of the table.
SHOWN = [10 ** 5, 10 ** 6, 10 ** 7, 10 ** 8, 2 ** 30]

# The panels of the plot, from the top left.
PANELS = [["u64", "u64+u32", "u64+u64"], ["u32", "u32+u32", "u16+u32", "u8+u32"],
          ["u64+u32 as used", "36-bit key+row as used", "36-bit packed as used"], ["merge u64", "merge u64+u32", "merge u64+u64"]]


def read(path):
    if not os.path.exists(path):
        return []
    with open(path, newline="") as file:
        return [{name: NUMBERS.get(name, float)(value) if value else None for name, value in line.items()}
                for line in csv.DictReader(file)]


def rows(n):
    """100000 as 100 k, 65536 as 2^16."""
    return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 else report.format_rows(n)


def ms(line, name="ms"):
    if line is None or line.get(name) is None:
        return ""
    return f"{line[name]:.4g} ({line[name + '_least']:.4g}-{line[name + '_most']:.4g})"


def percent(value):
    return "" if value is None else f"{value:.0f} %"


def losses(lines):
    """Configurations in which CUB is faster, the worst first; its merge sort is also compared with our radix sort."""
    best = {}
    for line in lines:
        if line["sort"].startswith("merge "):
            best[line["sort"][len("merge "):], line["n"], line["entropy"]] = line["cub_ms"]
    for line in lines:
        rival, of = line["cub_ms"], "CUB"
        merge = best.get((line["sort"], line["n"], line["entropy"]))
        if merge and merge < rival:
            rival, of = merge, "CUB's merge sort"
        if line["ms"] > rival:
            yield rival / line["ms"], line, of, rival


def markdown(lines, cpu, sweep):
    wrong = [line for line in lines + sweep if line.get("right") == "NO"]
    out = [f"{len(lines)} configurations, {len(wrong)} with a wrong result.", ""]

    lost = sorted(losses(lines), key=lambda loss: loss[0])
    out += [f"## Where CUB is ahead: {len(lost)} of {len(lines)}", ""]
    out += report.table(["sort", "n", "entropy", "ours, ms", "theirs, ms", "whose", "theirs / ours"],
                        [[line["sort"], rows(line["n"]), line["entropy"], f"{line['ms']:.4g}", f"{rival:.4g}", of,
                          f"{share:.2f}"] for share, line, of, rival in lost]) if lost else ["Nowhere.", ""]

    cpu_at = {(line["sort"], line["n"]): line for line in cpu}
    out += ["## All, by decades", "",
            "Milliseconds: median (least-most). CPU: the CPU engine's radix sort on one core. With transfer: keys and "
            "row numbers from pinned host memory, the sort, and both back.", ""]
    shown = [line for line in lines if line["entropy"] == "1.0" and line["n"] in SHOWN]
    entropy = {(line["sort"], line["n"], line["entropy"]): line for line in lines}
    out += report.table(
        ["sort", "n", "ours", "CUB", "of CUB", "of CUB, entropy 0.544", "0.201", "of bandwidth", "CPU",
         "with transfer"],
        [[line["sort"], rows(line["n"]), ms(line), ms(line, "cub_ms"), percent(line["percent_of_cub"])]
         + [percent(entropy.get((line["sort"], line["n"], name), {}).get("percent_of_cub")) for name in ENTROPIES[1:]]
         + [percent(line["percent_of_bandwidth"]), ms(cpu_at.get((line["sort"], line["n"])), "cpu_ms"),
            ms(line, "transfer_ms")] for line in shown])

    passes = [line for line in sweep if line["what"] == "pass"]
    if passes:
        out += ["## One pass, 100 M keys, with parts left out", ""]
        out += report.table(
            ["type", "threads x items", "blocks", "look-back", "without", "ms", "TB/s", "registers", "spilled bytes"],
            [[line["type"], f"{line['threads']:.0f}x{line['items']:.0f}", f"{line['resident']:.0f}",
              f"{line['lookback']:.0f}", line["without"] or "nothing", ms(line), f"{line['tb_s']:.2f}",
              f"{line['registers']:.0f}", f"{line['local_bytes']:.0f}"] for line in passes])
    return "\n".join(out)


def draw(lines, sweep, path):
    from plot import COLOURS, MARKERS, pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(16, 8.4))
    for names, axis in zip(PANELS, [axes[0][0], axes[0][1], axes[1][0], axes[1][1]]):
        for number, name in enumerate(names):
            for entropy, style in zip(ENTROPIES, ["-", "--", ":"]):
                points = [(line["n"], line["percent_of_cub"]) for line in lines
                          if line["sort"] == name and line["entropy"] == entropy]
                if points:
                    axis.plot(*zip(*points), style, color=COLOURS[number], marker=MARKERS[number], markersize=3.5,
                              linewidth=1.2, label=name if style == "-" else None)
        axis.axhline(100, color="#333333", linewidth=1)
        axis.set_xscale("log", base=2)
        axis.set_ylabel("percent of CUB's rate")
        axis.set_xlabel("keys (entropy 1.0 -, 0.544 --, 0.201 :)")
        axis.legend(frameon=False, fontsize=8)
    axis = axes[0][2]
    for number, name in enumerate(["u32", "u64", "u32+u32", "u64+u32", "u64+u64", "36-bit packed as used"]):
        points = [(line["n"], line["percent_of_bandwidth"]) for line in lines
                  if line["sort"] == name and line["entropy"] == "1.0"]
        axis.plot(*zip(*points), color=COLOURS[number], marker=MARKERS[number], markersize=3.5, linewidth=1.2,
                  label=name)
    axis.set_xscale("log", base=2)
    axis.set_ylim(0, 100)
    axis.set_ylabel("percent of the bandwidth bound")
    axis.set_xlabel("keys")
    axis.legend(frameon=False, fontsize=8)
    draw_parts(axes[1][2], sweep, COLOURS)
    for axis in axes.flat:
        axis.grid(True, color="#E5E5E5", linewidth=0.6)
        axis.set_axisbelow(True)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=85)


def draw_parts(axis, sweep, colours):
    """One pass with parts left out, with the first tile of each type."""
    types = [name for name in ("u64", "u64+u32") if any(line["type"] == name for line in sweep)]
    for number, name in enumerate(types):
        tile = next(line for line in sweep if line["what"] == "pass" and line["type"] == name)
        same = [line for line in sweep if line["what"] == "pass"
                and all(line[field] == tile[field] for field in ("type", "threads", "items", "blocks", "lookback"))]
        times = {line["without"] or "": line["ms"] for line in same}
        axis.barh([i + number * 0.4 for i, _ in enumerate(PARTS)], [times.get(part, 0) for part in PARTS], 0.38,
                  color=colours[number], label=name)
    axis.set_yticks([i + 0.2 for i, _ in enumerate(PARTS)], ["without " + (part or "nothing") for part in PARTS],
                    fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("one pass over 100 M keys, ms")
    axis.legend(frameon=False, fontsize=8)


def main():
    name = sys.argv[1]
    lines, cpu, sweep = (read(name + end) for end in (".csv", "-cpu.csv", "-sweep.csv"))
    with open(name + ".md", "w") as file:
        file.write(f"# Kernels: {os.path.basename(name)}\n\n" + markdown(lines, cpu, sweep))
    try:
        draw(lines, sweep, name + ".png")
    except ImportError as error:
        print(f"no plot: {error}")


if __name__ == "__main__":
    main()
