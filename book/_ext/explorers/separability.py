"""A line or an XOR: drag the margin and see which pathway wins, with a live ReLU network (on make_haste_slowly/separability)."""

import math

import torch
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, Span
from bokeh.models.layouts import Column

from explorers import bokeh_parts as bk
from explorers import random_numbers
from lib import relu
from lib.data import tasks
from lib.linear import crossing
from lib.plots import COLOURS
from lib.relu import separability

ABOUT = (
    "Four plots with sliders for margin and training step. Steps to a loss of 0.2 against the margin for two gated networks, "
    "whose curves cross at a margin of 0.82; the loss over training at the chosen margin, also of a ReLU network that follows "
    "the faster; the network's units as arrows that point at classes or at single points; and which kind of unit does the work."
)
SCRIPTS = ("networks",)
HIDDEN, STEP, STEPS, LONG = 128, 0.4, 150, 600
STD = math.sqrt(4e-8 / HIDDEN)  # as on the page
SETTINGS = [
    {"margin": 0.6, "seed": 1, "steps": 150},
    {"margin": 0.0, "seed": 2, "steps": 100},
    {"margin": 0.82, "seed": 3, "steps": 120},
    {"margin": 1.5, "seed": 4, "steps": 150},
]


def network(seed: int, features: int, hidden: int, outputs: int, std: float) -> list[torch.Tensor]:
    """The weights that a browser draws: `N.draw` in networks.js."""
    numbers = std * torch.from_numpy(random_numbers.normals(seed, hidden * (features + outputs)))
    first, second = numbers.split([hidden * features, hidden * outputs])
    return [first.reshape(hidden, features).clone(), second.reshape(outputs, hidden).clone()]


def expected(setting: dict) -> dict:
    """Losses of both gated networks and of a ReLU network (steps + 1,), times to a loss of 0.2, shares of its units by kind."""
    margin, steps = setting["margin"], setting["steps"]
    gatings = {"line": separability.line_pathways(margin), "xor": separability.xor_pathways(margin)}
    starts = {name: gating.initial_strength(HIDDEN, STD**2) for name, gating in gatings.items()}
    long = {name: separability.loss_curve(LONG, gating, starts[name], STEP) for name, gating in gatings.items()}
    x, y = tasks.separability(margin)
    weights = network(setting["seed"], 3, HIDDEN, 1, STD)
    run = relu.train(weights, x, y, step=STEP, steps=steps)
    kinds = separability.kinds_of_gate(relu.gates(weights, x))
    return {
        **{name: curve[: steps + 1] for name, curve in long.items()},
        "relu": run["loss"],
        "times": [float(crossing(torch.arange(LONG + 1), curve, 0.2)) for curve in long.values()],
        "shares": {name: float(relu.share(weights, kind)) for name, kind in kinds.items()},
    }


def layout() -> Column:
    """Margin, step and two buttons above four plots."""
    name, ink = "separability", bk.INK["light"]
    source = {key: ColumnDataSource({c: [] for c in columns}, name=key) for key, columns in {
        "times": ("margin", "line", "xor"), "now": ("margin", "time"), "losses": ("step", "line", "xor", "relu"),
        "parts": ("step", "line", "xor", "other"), "units": ("x0", "y0", "x1", "y1", "colour"), "points": ("x", "y", "colour"),
    }.items()}  # fmt: skip
    line, xor, green = COLOURS["linear"], COLOURS["gated"], COLOURS["relu"]
    race = bk.plot("Steps to learn against the margin", "margin Δ", "steps to loss 0.2", x_range=(0, 2), y_range=(0, 140))
    race.line("margin", "line", source=source["times"], color=line, line_width=2.4, line_dash=[6, 4], legend_label="per class")
    race.line("margin", "xor", source=source["times"], color=xor, line_width=2.4, line_dash=[6, 4], legend_label="per point")
    race.scatter("margin", "time", source=source["now"], size=12, color=green, legend_label="ReLU network")
    race.add_layout(Span(name="here", location=0.6, dimension="height", line_color=ink["faint"], line_width=2))
    loss = bk.plot("Loss over training", "training step", "loss", x_range=(0, STEPS), y_range=(0, 0.53))
    loss.line("step", "relu", source=source["losses"], color=green, line_width=4, line_alpha=0.7, legend_label="ReLU network")
    for key, colour, words in (("line", line, "per class"), ("xor", xor, "per point")):
        loss.line("step", key, source=source["losses"], color=colour, line_width=2.2, line_dash=[6, 4], legend_label=words)
    loss.add_layout(Span(name="at-loss", location=12, dimension="height", line_color=ink["faint"], line_width=2))
    arrows = bk.plot("Incoming weights of the units as arrows among the four points", "", "", 
                        x_range=(-1.9, 1.9), y_range=bk.span("scene", -1, 1))  # fmt: skip
    arrows.axis.visible = arrows.grid.visible = False
    square = [(x + 0.55 * y, 0.33 * y) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    arrows.patch([p[0] for p in square], [p[1] for p in square], fill_color=ink["grid"], fill_alpha=0.45, line_color=ink["faint"])
    arrows.segment("x0", "y0", "x1", "y1", source=source["units"], color="colour", line_width=2)
    arrows.scatter("x", "y", source=source["points"], size=13, fill_color="colour", line_color=ink["ink"], line_width=2)
    parts = bk.plot("Which units do the work", "training step", "share of the work", x_range=(0, STEPS), y_range=(0, 1.02))
    for key, colour, words in (
        ("line", line, "on for a class"),
        ("xor", xor, "for a point"),
        ("other", COLOURS["untrained"], "else"),
    ):
        parts.line("step", key, source=source["parts"], color=colour, line_width=2.4, legend_label=words)
    parts.add_layout(Span(name="at-part", location=12, dimension="height", line_color=ink["faint"], line_width=2))
    for made in (race, loss, parts):
        bk.legend(made)
    controls = bk.controls(
        bk.slider(name, "margin", "margin Δ", 0.0, 2.0, 0.6, 0.02),
        bk.slider(name, "step", "training step", 0, STEPS, 12, 1),
        bk.button(name, "play", "Play the training", "play", primary=True),
        bk.button(name, "again", "Another network", "again"),
        columns=4,
    )
    return column(controls, bk.rows(race, loss, arrows, parts), sizing_mode="stretch_width")
