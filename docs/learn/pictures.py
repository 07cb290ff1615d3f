"""Draws the pictures of docs/learn: `python docs/learn/pictures.py [NAME ...]`. The ladder is measured here."""

import sys
from pathlib import Path

import chapter
import matplotlib.pyplot as plt

import norch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from ways import GREY  # noqa: E402  (legible on white and on black)

plt.rcParams.update({"svg.hashsalt": "norch", "svg.fonttype": "none", "savefig.transparent": True})
plt.rcParams.update({f"{name}.color": GREY for name in ("text", "xtick", "ytick")})
plt.rcParams.update({f"axes.{name}color": GREY for name in ("label", "edge", "title")})


def save(figure, name):
    figure.savefig(HERE / name, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def views():
    """Readings of twelve numbers: a cell shows the position that it is read from."""
    x = norch.arange(12).reshape(3, 4)
    readings = {
        "x": x,
        "x.T": x.T,
        "x[:, ::2]": x[:, ::2],
        "x[::-1]": x[::-1],
        "x.diagonal()": x.diagonal()[None],
        "x[0].expand(3, 4)": x[0].expand(3, 4),
    }
    colors = plt.get_cmap("viridis")(norch.linspace(0.15, 0.95, 12).numpy())
    figure = plt.figure(figsize=(9, 5.2))
    grid = figure.add_gridspec(2, 1, height_ratios=[1, 5], hspace=0.3)
    strip = figure.add_subplot(grid[0])
    cells(strip, x.reshape(1, 12), colors, "storage")
    below = grid[1].subgridspec(2, 3, hspace=0.45, wspace=0.25)
    for at, (name, view) in enumerate(readings.items()):
        shape, strides = (view.shape, view.stride()) if name != "x.diagonal()" else (view.shape[1:], view.stride()[1:])
        title = f"{name}\nshape {tuple(shape)}  strides {strides}  offset {view.storage_offset()}"
        cells(figure.add_subplot(below[divmod(at, 3)]), view, colors, title)
    save(figure, "views.svg")


def cells(axes, positions, colors, title):
    rows, columns = positions.shape
    for i in range(rows):
        for j in range(columns):
            position = positions[i, j].item()
            axes.add_patch(plt.Rectangle((j, -i - 1), 1, 1, facecolor=colors[position], edgecolor=GREY))
            axes.text(j + 0.5, -i - 0.5, position, ha="center", va="center", color="white" if position < 8 else "black")
    axes.set(xlim=(0, columns), ylim=(-rows, 0), aspect="equal")
    axes.axis("off")
    axes.set_title(title, fontsize=8.5)


def ladder():
    """The speed of the products of chapter 6 on this machine."""
    speeds = chapter.run(HERE / "6_product.md")["ladder"](768)
    peak = speeds.pop("peak of a core")
    figure, axes = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
    bars = axes.barh(list(speeds), list(speeds.values()), color=["#8da0cb"] * 4 + ["#66c2a5", "#fc8d62"])
    axes.bar_label(bars, fmt="%.0f", padding=3)
    axes.axvline(peak, color=GREY, linestyle=":")
    axes.text(peak, -0.55, f" peak of a core, {peak:.0f}", va="bottom", fontsize=8.5)
    axes.set(xlabel="billion float32 operations a second, 768 x 768", xlim=(0, 1.12 * max(*speeds.values(), peak)))
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, "ladder.svg")


def fits():
    """The networks of chapter 4 beside the points that they learn."""
    names = chapter.run(HERE / "4_training.md")
    model = names["Net"]()
    parameters = [p for _, p in model.named_parameters()]
    names["start"](parameters)
    names["train"](model, names["SGD"](parameters, lr=0.001))
    norch.manual_seed(0)
    for make, lr in (("Adam", 0.01), ("SGD", 0.1)):
        network = names[f"by_{make.lower()}"] = names["Deep"]()
        names["fit"](network, names[make], lr, steps=3000)
    networks = {
        "10 units, SGD, 10 epochs": model,
        "2 layers of 32, SGD": names["by_sgd"],
        "2 layers of 32, Adam": names["by_adam"],
    }
    points, x = [0.4 * i for i in range(51)], norch.linspace(0, 20, 401)
    figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
    axes.plot(points, norch.tensor(points).sin().square().tolist(), "o", markersize=4, color="#8da0cb", label="sin(x)²")
    for (label, network), color in zip(networks.items(), ("#999999", "#fc8d62", "#66c2a5")):
        axes.plot(x.tolist(), network(x[:, None]).flatten().tolist(), color=color, linewidth=2, label=label)
    axes.set(xlabel="x", xlim=(-0.3, 20.3))
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, "fits.svg")


PICTURES = {"views": views, "ladder": ladder, "fits": fits}

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]()
