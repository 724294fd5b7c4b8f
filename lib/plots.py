"""Plots: one figure style for the whole book, and the few helpers that its figures are drawn with.

    from lib import plots
    fig, ax = plots.panels(height=2)
    plots.theory(ax, [0, 1, 2], [0, 0.5, 1])
    ax.plot([0, 1, 2], [0.1, 0.5, 0.9], color=plots.COLOURS["relu"], label="ReLU")
    plots.label_lines(ax)

Importing this module sets the style. Theory is always dashed black; simulations carry the colour of their network. Colours
stay apart for colour-blind readers: they differ in lightness where they do not differ in hue. Notebooks show figures at
twice the screen's resolution.
"""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

COLOURS = {
    "linear": "#1d4f85",  # linear networks, blue
    "relu": "#1f9969",  # ReLU networks, green
    "gated": "#b85c00",  # gated linear networks, orange
    "bias": "#8b5cf6",  # networks with biases, or only biases learned, violet
    "theory": "#111111",  # closed forms, dashed
    "tanh": "#9b2335",
    "sine": "#cf9420",
    "gaussian": "#2aa5b8",
    "untrained": "#8a8f98",  # before training, not trained on, chance level
    "data": "#5c6370",
}
SEQUENCE = ["#16324f", "#1d4f85", "#5ba3d0", "#a9cbe0", "#e9c46a", "#b85c00", "#7d1d1d"]  # ordered quantities
WIDTH = 7.4  # inches: the width of the book's text column at 110 dots per inch

mpl.rcParams.update(
    {
        "figure.dpi": 110,
        "savefig.dpi": 110,
        "savefig.bbox": "tight",
        "figure.constrained_layout.use": True,
        "font.family": "DejaVu Sans",
        "font.size": 9.5,
        "axes.titlesize": 9.5,
        "axes.labelsize": 9.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#444444",
        "axes.linewidth": 0.8,
        "axes.grid": True,
        "grid.color": "#e6e6e6",
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "axes.prop_cycle": mpl.cycler(
            color=[COLOURS[k] for k in ("linear", "relu", "gated", "bias", "tanh", "sine", "gaussian")]
        ),
        "lines.linewidth": 1.6,
        "legend.frameon": False,
        "xtick.color": "#444444",
        "ytick.color": "#444444",
        "image.cmap": "viridis",
        "svg.hashsalt": "racing",
    }
)
if mpl.get_backend().lower().endswith("inline"):  # in a notebook
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    plt.switch_backend(mpl.get_backend())  # now, not with the first figure
    plt.uninstall_repl_displayhook()  # which draws what a cell has left, and the backend draws it again to show it
    set_matplotlib_formats("retina", pil_kwargs={"compress_level": 1})  # made small once, when they are kept


def luminance(colour: str) -> float:
    """How bright a colour is, from 0 (black) to 1 (white), as contrast is measured."""
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def ink(colour: str, contrast: float = 4.5) -> tuple[float, float, float]:
    """The colour, darkened until text in it has this contrast on white."""
    shade = to_rgb(colour)
    while 1.05 / (luminance(shade) + 0.05) < contrast:
        shade = tuple(0.95 * c for c in shade)
    return shade


def panels(
    columns: int = 1, rows: int = 1, height: float = 2.6, width: float = WIDTH, **options
) -> tuple[Figure, np.ndarray | Axes]:
    """A figure as wide as the text with `rows` × `columns` axes; one axes is returned bare, more as an array."""
    fig, axes = plt.subplots(rows, columns, figsize=(width, height * rows), **options)
    return fig, axes


def numpy(values) -> np.ndarray:
    """Tensors, lists and arrays as a NumPy array."""
    return values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)


def theory(ax: Axes, x, y, label: str | None = "theory", **options):
    """A closed form: dashed and black, above everything else."""
    options = {"color": COLOURS["theory"], "linestyle": (0, (4, 2)), "linewidth": 1.3, "zorder": 5} | options
    return ax.plot(numpy(x), numpy(y), label=label, **options)


def band(ax: Axes, x, samples, colour: str, label: str | None = None, spread: str = "range", **options):
    """Mean over dim 0 of samples (members, points) with their range (or standard deviation) as a band."""
    x, samples = numpy(x), numpy(samples)
    mean = samples.mean(0)
    if spread == "range":
        low, high = samples.min(0), samples.max(0)
    else:
        deviation = samples.std(0, ddof=1)
        low, high = mean - deviation, mean + deviation
    ax.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    return ax.plot(x, mean, color=colour, label=label, **options)


def label_lines(ax: Axes, pad: float = 0.01, gap: float = 0.065) -> None:
    """Write each line's label at its right end, in its colour, pushed apart where they would touch; no legend."""
    lines = [line for line in ax.get_lines() if not line.get_label().startswith("_") and len(line.get_xdata())]
    ax.get_xlim(), ax.get_ylim()  # fix the limits that the transforms below need, as drawing would, which takes much longer
    ends = []
    for line in lines:
        points = ax.transAxes.inverted().transform(ax.transData.transform(np.column_stack([line.get_xdata(), line.get_ydata()])))
        inside = points[np.isfinite(points).all(1) & (points[:, 0] <= 1.0001)]
        if len(inside):
            ends.append([min(max(inside[-1, 1], 0.02), 0.98), min(inside[-1, 0], 1.0), line])
    ends.sort(key=lambda end: end[0])
    for below, end in zip(ends, ends[1:], strict=False):
        end[0] = max(end[0], below[0] + gap)
    overshoot = max(0.0, ends[-1][0] - 1.0) if ends else 0.0
    for height, right, line in ends:
        ax.text(
            right + pad, height - overshoot, line.get_label(), transform=ax.transAxes, color=ink(line.get_color()), fontsize=9,
            va="center", ha="left", clip_on=False,
        )  # fmt: skip


def note(ax: Axes, x: float, y: float, text: str, colour: str = "#444444", **options) -> None:
    """A short remark at data coordinates."""
    ax.text(x, y, text, **({"color": ink(colour), "fontsize": 8.5} | options))


def letters(axes) -> None:
    """Mark panels a, b, c, … in their upper left corner."""
    for letter, ax in zip("abcdefghijklmnopqrstuvwxyz", np.atleast_1d(axes).flat, strict=False):
        ax.text(-0.02, 1.03, letter, transform=ax.transAxes, fontweight="bold", ha="right", va="bottom")


def image(ax: Axes, values, **options):
    """A matrix or picture without ticks and grid."""
    shown = ax.imshow(numpy(values), **({"interpolation": "nearest", "aspect": "equal"} | options))
    ax.set(xticks=[], yticks=[])
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return shown
