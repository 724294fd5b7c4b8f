"""Learning with biases alone: draw a curve, and frozen random weights fit it by moving kinks (on bias_learning/expressivity)."""

import math

import torch
from bokeh.layouts import column
from bokeh.models import ColumnDataSource
from bokeh.models.layouts import Column

from explorers import bokeh_parts as bk
from explorers import random_numbers
from lib import biases
from lib.plots import COLOURS

ABOUT = (
    "A sheet to draw a curve on, with the answer of a network whose random weights are frozen and which learns its biases alone. "
    "Marks along the lower edge show where its units bend; learning moves them. Beside it the error over training. "
    "Without a pointer, choose one of three curves with the buttons."
)
POINTS, RATE, CURVES = 81, 0.02, ("hat", "wave", "stairs")
SETTINGS = [
    {"units": 64, "seed": 4, "target": "wave", "steps": 200},
    {"units": 8, "seed": 1, "target": "hat", "steps": 60},
    {"units": 128, "seed": 2, "target": "stairs", "steps": 120},
    {"units": 64, "seed": 5, "target": "wave", "steps": 1},
]


def target(name: str) -> torch.Tensor:
    """One of the curves on the grid, (points,)."""
    x = grid()[:, 0]
    if name == "wave":
        return 0.7 * torch.sin(2 * math.pi * x)
    if name == "stairs":
        return 0.35 * torch.floor(2 * x + 0.51) + 0.1
    size = x.abs()
    return 0.6 - torch.where(size < 0.7, 1.2 * (size - 0.2).clamp(min=0), 0.6)


def grid() -> torch.Tensor:
    """The inputs, (points, 1)."""
    return torch.linspace(-1, 1, POINTS, dtype=torch.float64)[:, None]


def frozen(units: int, seed: int) -> tuple[biases.Frozen, torch.Tensor]:
    """The weights that a browser draws and freezes, in double precision, biases (1, units) with kinks in [-1, 1]: `K.draw`."""
    w, a, kink = torch.from_numpy(2 * random_numbers.uniforms(seed, 3 * units) - 1).split(units)
    return biases.Frozen(2 * w[:, None], 12 / math.sqrt(units) * a[None]), (-2 * w * kink)[None]


def learned(net: biases.Frozen, bias: torch.Tensor, goal: torch.Tensor, steps: int) -> tuple[torch.Tensor, list[float]]:
    """Biases (1, units) after so many steps of Adam on all points at once, and the losses before each of them and at the end.

    The same as `biases.train_biases` with the squared loss, one batch and a constant rate, which works in single precision.
    """
    bias = bias.clone().requires_grad_()
    optimiser, losses = torch.optim.Adam([bias], lr=RATE), []
    for step in range(steps + 1):
        optimiser.zero_grad()
        loss = biases.mean_loss(net, bias, grid(), goal[:, None], loss="squared").sum()
        losses.append(float(loss.detach()))
        if step < steps:
            loss.backward()
            optimiser.step()
    return bias.detach(), losses


def expected(setting: dict) -> dict:
    """The target, the loss before and after learning, the biases and the answers."""
    goal = target(setting["target"])
    net, start = frozen(setting["units"], setting["seed"])
    bias, losses = learned(net, start, goal, setting["steps"])
    answer = biases.answers(net, bias, grid())[0, :, 0]
    return {"target": goal, "before": losses[0], "loss": losses[-1], "bias": bias[0], "answer": answer}


def layout() -> Column:
    """Controls above the sheet to draw on and the error."""
    name, ink = "kinks", bk.INK["light"]
    goal, answer, path = (
        ColumnDataSource({a: [], b: []}, name=key)
        for key, a, b in (("target", "x", "y"), ("answer", "x", "y"), ("path", "step", "loss"))
    )
    kinks = ColumnDataSource({"x": [], "y": [], "size": []}, name="marks")
    paper = bk.plot("Sheet to draw a curve on, with the network's answer and its kinks", "input x", "output y",
                       x_range=(-1, 1), y_range=(-1.2, 1.2), height=340, name="paper")  # fmt: skip
    paper.line("x", "y", source=goal, color=COLOURS["data"], line_width=7, line_alpha=0.45, legend_label="your curve")
    paper.line("x", "y", source=answer, color=COLOURS["bias"], line_width=3, legend_label="the network")
    paper.scatter(
        "x",
        "y",
        source=kinks,
        size="size",
        marker="triangle",
        fill_color=COLOURS["bias"],
        fill_alpha=0.5,
        line_color=None,
        legend_label="kinks",
    )
    paper.styles = {"cursor": "crosshair"}
    error = bk.plot("Error over training", "step of learning", "loss / size of the curve", x_range=bk.span("time", 0, 300),
                       y_axis_type="log", y_range=(1e-4, 30), height=340)  # fmt: skip
    error.line("step", "loss", source=path, color=COLOURS["bias"], line_width=3)
    error.ygrid.grid_line_color = ink["grid"]
    bk.legend(paper)
    controls = bk.controls(
        bk.slider(name, "units", "hidden units", 3, 9, 6, 1, "2 ** tick"),
        bk.button(name, "learn", "Learn anew", "update", primary=True),
        bk.button(name, "again", "Other random weights", "again"),
    )
    return column(
        bk.choice(name, "curve", ("Hat", "Wave", "Stairs"), 1, "preset"),
        controls,
        bk.rows(paper, error),
        sizing_mode="stretch_width",
    )
