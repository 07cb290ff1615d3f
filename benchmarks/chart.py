"""The pictures: bars of the ratios of all cases, and time against size. matplotlib is imported when one is drawn."""

from __future__ import annotations

import statistics
from itertools import cycle
from typing import Any

from .report import SHOWN, Row, ratios

COLUMNS = 3
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)
COLOURS = ["#4269d0", "#2f9e6e", "#d9822b", "#a463f2", "#c2506b", "#6b7280"]
LINES = {"norch": "#4269d0", "torch": "#d9822b", "numpy": "#8b929c"}


def pyplot() -> Any:
    """matplotlib's pyplot, drawing into files; SystemExit where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("a chart needs matplotlib: pip install matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    return pyplot


def columns(groups: dict[str, list[Row]]) -> list[list[str]]:
    """The groups laid into columns of about the same height, the tallest first."""
    laid: list[list[str]] = [[] for _ in range(min(COLUMNS, len(groups)))]
    for group in sorted(groups, key=lambda group: -len(groups[group])):
        min(laid, key=lambda column: sum(len(groups[name]) + 4 for name in column)).append(group)
    order = list(groups)
    laid = [sorted(column, key=order.index) for column in laid]
    return sorted(laid, key=lambda column: order.index(column[0]))


def bars(path: str, rows: list[Row], title: str) -> None:
    """Writes a PNG: a bar a case from 1 to PyTorch's time / norch's on a log axis, NumPy's ratio as a dot, a tick at
    what the ratio should reach."""
    plt = pyplot()
    main = "torch" if any("torch" in row for row in rows) else "numpy"
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if main in row:
            groups.setdefault(row["group"], []).append(row)
    if not groups:
        raise SystemExit("a chart needs another library to compare with: neither PyTorch nor NumPy was measured")
    laid, colours = columns(groups), dict(zip(groups, cycle(COLOURS)))
    tallest = max(sum(len(groups[name]) + 4 for name in column) for column in laid)
    figure = plt.figure(figsize=(6.2 * len(laid), 0.6 + 0.21 * tallest))
    heading = f"{SHOWN[main]}'s time / norch's: right of 1, norch is the faster one\n{title}"
    inches = figure.get_figheight()
    figure.suptitle(heading, fontsize=9, y=1 - 0.08 / inches, va="top")
    found = [row[name]["ratio"] for part in groups.values() for row in part for name in (main, "numpy") if name in row]
    ends = min(0.7, 0.8 * min(found)), max(1.5, 1.6 * max(found))
    for place, column in enumerate(laid):
        top = inches - 0.35
        for group in column:
            height = 0.21 * len(groups[group])
            left, width = (place + 0.33) / len(laid), 0.59 / len(laid)
            top -= 0.45
            axes = figure.add_axes((left, (top - height) / inches, width, height / inches))
            top -= height + 0.3
            _panel(axes, group, groups[group], main, ends, colours[group])
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _panel(axes: Any, group: str, rows: list[Row], main: str, ends: tuple[float, float], colour: str) -> None:
    """One group's bars."""
    values = [row[main]["ratio"] for row in rows]
    places = range(len(rows))
    shades = [1.0 if row["counted"] else 0.4 for row in rows]
    for place, value, shade in zip(places, values, shades):
        axes.barh(place, value - 1, left=1, height=0.72, color=colour, alpha=shade)
        text = f"{value:.2f}" if value < 9.95 else f"{value:.0f}"
        ink, weight = ("#c00000", "bold") if value < 1 else ("black", "normal")
        spot = axes.get_yaxis_transform()
        axes.text(1.08, place, text, transform=spot, ha="right", va="center", size=7, color=ink, weight=weight)
    if main != "numpy":
        dots = [(row["numpy"]["ratio"], place) for place, row in enumerate(rows) if "numpy" in row]
        axes.plot(*zip(*dots) if dots else ((), ()), "o", ms=3.5, mfc="white", mec="#333333", mew=0.8, label="NumPy")
        if dots:
            axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, handletextpad=0.1, borderpad=0)
    reach = [(row["marks"]["reach"], place) for place, row in enumerate(rows) if row["marks"]]
    if reach and main == "torch":
        axes.plot(*zip(*reach), "|", ms=8, mec="black", mew=1.2)
    axes.axvline(1, color="black", lw=1)
    axes.set_xscale("log")
    axes.set_xlim(*ends)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    ticks = [
        tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200) if ends[0] <= tick <= ends[1]
    ]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.grid(axis="x", color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    axes.set_yticks(places, [row["case"] for row in rows])
    axes.tick_params(axis="y", length=0)
    mean = statistics.geometric_mean(ratios(rows, main).values() or values)
    axes.set_title(f"{group}: geometric mean {mean:.2f}", loc="left", fontweight="bold", color=colour, size=9)


def curves(path: str, measured: dict[str, list[tuple[int, Row]]], title: str) -> None:
    """Writes a PNG: for each operation, time against size on two log axes, a line a library."""
    plt = pyplot()
    figure, panels = plt.subplots(1, len(measured), figsize=(5 * len(measured), 4.4), squeeze=False)
    for axes, (operation, points) in zip(panels[0], measured.items()):
        sizes = [size for size, _ in points]
        for name in LINES:
            if times := [row["seconds"][name] for _, row in points if name in row["seconds"]]:
                axes.loglog(sizes, times, "o-", ms=3, lw=1.4, color=LINES[name], label=SHOWN[name])
        axes.set_title(operation, loc="left", fontweight="bold")
        axes.set_xlabel("rows and columns" if operation == "matmul" else "elements")
        axes.set_ylabel("seconds of CPU time a call")
        axes.grid(color="#dddddd", lw=0.6)
        axes.legend(frameon=False)
    figure.suptitle(title, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
