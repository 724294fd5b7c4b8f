"""What the book's figures are drawn with: panels, theory lines, bands, labels at the ends of lines, pictures."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.press.plots.style import COLOURS, WIDTH, ink


def panels(
    columns: int = 1, rows: int = 1, height: float = 2.6, width: float = WIDTH, **options
) -> tuple[Figure, np.ndarray | Axes]:
    """A figure as wide as the text with `rows` × `columns` axes; one axes is returned bare, more as an array."""
    fig, axes = plt.subplots(rows, columns, figsize=(width, height * rows), **options)
    return fig, axes


def numpy(values) -> np.ndarray:
    """Tensors, lists and arrays as a NumPy array. Told apart without PyTorch, which the report of a sweep need not wait for."""
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
