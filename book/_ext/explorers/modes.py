"""Modes: singular values, initial strength and depth make sigmoids and a loss with stages (on deep_linear/modes)."""

import torch
from bokeh.layouts import column
from bokeh.models import ColumnDataSource
from bokeh.models.layouts import Column

from explorers import bokeh_parts as bk
from lib import linear
from lib.plots import COLOURS, SEQUENCE

ABOUT = (
    "Two plots with five sliders. On the left the strengths of three modes over training time, sigmoids that rise one after the "
    "other, the one with the largest singular value first; on the right the loss, which falls in as many stages."
)
DEFAULT = {"s": [1.5, 0.8, 0.4], "a0": 1e-4, "layers": 2}
SETTINGS = [
    DEFAULT | {"times": [0.0, 1.0, 3.0, 8.0, 20.0]},
    {"s": [2.0, 1.1, 0.2], "a0": 1e-6, "layers": 3, "times": [0.0, 5.0, 40.0, 200.0, 900.0]},
    {"s": [0.9, 0.9, 0.5], "a0": 0.1, "layers": 1, "times": [0.0, 0.5, 1.5, 4.0]},
    {"s": [3.0, 0.7, 0.25], "a0": 0.01, "layers": 6, "times": [0.0, 1.0, 10.0, 60.0]},
]
SHADES = (SEQUENCE[1], SEQUENCE[2], SEQUENCE[5])


def expected(setting: dict) -> dict:
    """Strengths (modes, times) and loss (times) from `linear.mode_strength`, `deep_mode_strength` and `loss_of_modes`."""
    times, s = torch.tensor(setting["times"], dtype=torch.float64), torch.tensor(setting["s"], dtype=torch.float64)
    if setting["layers"] == 2:
        strengths = linear.mode_strength(times, s[:, None], 1.0, setting["a0"])
    else:
        each = [linear.deep_mode_strength(times, float(one), 1.0, setting["a0"], setting["layers"]) for one in s]
        strengths = torch.stack(each)
    return {"strengths": strengths, "loss": linear.loss_of_modes(strengths.T, s, torch.ones(3).double(), (s**2).sum())}


def layout() -> Column:
    """Five sliders above two plots."""
    name = "modes"
    curves = ColumnDataSource({key: [] for key in ("t", "a1", "a2", "a3", "loss")}, name="curves")
    halves = ColumnDataSource({"t": [], "a": []}, name="halves")
    left = bk.plot("Strengths of three modes over training time", "training time", "strength of the mode",
                      x_range=bk.span("time-left", 0, 20), y_range=bk.span("height", 0, 2))  # fmt: skip
    right = bk.plot("Loss over training time", "training time", "loss",
                       x_range=bk.span("time-right", 0, 20), y_range=bk.span("losses", 0, 2))  # fmt: skip
    for k, colour in enumerate(SHADES):
        left.line("t", f"a{k + 1}", source=curves, color=colour, line_width=2.6, legend_label=f"mode {k + 1}")
    left.scatter("t", "a", source=halves, size=7, fill_color=bk.INK["light"]["ink"], line_color=None)
    bk.legend(left)
    right.line("t", "loss", source=curves, color=COLOURS["theory"], line_width=2.6)
    sliders = [
        bk.slider(name, f"s{k + 1}", f"singular value {k + 1}", 0.2, 3.0, value, 0.05) for k, value in enumerate(DEFAULT["s"])
    ]
    sliders.append(bk.slider(name, "start", "initial strength", -6.0, -1.0, -4.0, 0.1, "power"))
    sliders.append(bk.slider(name, "layers", "depth (matrices)", 1, 6, 2, 1))
    return column(bk.controls(*sliders), bk.rows(left, right), sizing_mode="stretch_width")
