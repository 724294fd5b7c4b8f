"""Learning with biases alone: draw a curve, and frozen random weights fit it by moving kinks (on bias_learning/expressivity)."""

import math

import torch
from bokeh.layouts import column
from bokeh.models import ColumnDataSource
from bokeh.models.layouts import Column
from matplotlib.figure import Figure

from lib import biases
from lib.press.explorers import draws, stage
from lib.press.plots import COLOURS, drawing

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
    w, a, kink = torch.from_numpy(2 * draws.uniforms(seed, 3 * units) - 1).split(units)
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
    name, ink = "kinks", stage.INK["light"]
    goal, answer, path = (
        ColumnDataSource({a: [], b: []}, name=key)
        for key, a, b in (("target", "x", "y"), ("answer", "x", "y"), ("path", "step", "loss"))
    )
    kinks = ColumnDataSource({"x": [], "y": [], "size": []}, name="marks")
    paper = stage.plot("Sheet to draw a curve on, with the network's answer and its kinks", "input x", "output y",
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
    error = stage.plot("Error over training", "step of learning", "loss / size of the curve", x_range=stage.span("time", 0, 300),
                       y_axis_type="log", y_range=(1e-4, 30), height=340)  # fmt: skip
    error.line("step", "loss", source=path, color=COLOURS["bias"], line_width=3)
    error.ygrid.grid_line_color = ink["grid"]
    stage.legend(paper)
    controls = stage.controls(
        stage.slider(name, "units", "hidden units", 3, 9, 6, 1, "2 ** tick"),
        stage.button(name, "learn", "Learn anew", "update", primary=True),
        stage.button(name, "again", "Other random weights", "again"),
    )
    return column(
        stage.choice(name, "curve", ("Hat", "Wave", "Stairs"), 1, "preset"),
        controls,
        stage.rows(paper, error),
        sizing_mode="stretch_width",
    )


def picture() -> Figure:
    """The explorer's first curve, learned."""
    goal, (net, start) = target("wave"), frozen(64, 4)
    bias, losses = learned(net, start, goal, 1000)
    x = grid()[:, 0]
    fig, (left, right) = drawing.panels(2, height=2.9)
    left.plot(x, goal, color=COLOURS["data"], linewidth=5, alpha=0.45, label="a curve")
    left.plot(x, biases.answers(net, bias, grid())[0, :, 0], color=COLOURS["bias"], label="the network")
    left.plot(-bias[0] / net.w[0, :, 0], torch.full_like(bias[0], -1.1), "^", color=COLOURS["bias"], alpha=0.5, label="kinks")
    left.set(xlabel="input x", ylabel="output y", xlim=(-1, 1), ylim=(-1.2, 1.2))
    left.legend(fontsize=9)
    right.plot(torch.tensor(losses) / goal.square().mean() * 2, color=COLOURS["bias"])
    right.set(xlabel="step of learning", ylabel="loss / size of the curve", yscale="log")
    return fig
