"""When is a bias a bias: constant, scale and margin, and one's place in a phase diagram (on early_linearization/threshold)."""

import math

import torch
from bokeh.events import Tap
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, CustomJS
from bokeh.models.layouts import Column

from explorers import bokeh_parts as bk
from explorers.separability import network
from lib import relu
from lib.data import tasks
from lib.plots import COLOURS
from lib.relu import linearization

ABOUT = (
    "A phase diagram on the left, with the predicted border between networks that a bias makes linear and others; "
    "on the right the loss of the network at the chosen place beside that of a linear network, and the shares of its units that "
    "are on for all items, gating, or off. Sliders set the constant, the initial scale and, for the XOR, the margin."
)
SCRIPTS = ("networks",)
HIDDEN, STEP = 32, {"tree": 0.01, "xor": 0.02}
SETTINGS = [
    {"task": "tree", "c": 0.3, "std": 2e-4, "margin": 0.5, "seed": 1, "steps": 400},
    {"task": "tree", "c": 0.01, "std": 2e-5, "margin": 0.5, "seed": 2, "steps": 700},
    {"task": "xor", "c": 1.0, "std": 2e-4, "margin": 0.5, "seed": 3, "steps": 900},
    {"task": "xor", "c": 0.4, "std": 1e-3, "margin": 0.9, "seed": 4, "steps": 600},
]


def data(setting: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs with the constant, and targets."""
    x, y = tasks.hierarchy(8) if setting["task"] == "tree" else tasks.separability(setting["margin"])
    y = y if setting["task"] == "tree" else tasks.one_row_per_class(y)
    return linearization.with_constant(x, setting["c"]), y


def expected(setting: dict) -> dict:
    """Losses of the ReLU and the linear network after training, unit states; for the XOR also preference and directions."""
    x, y = data(setting)
    found, kind = {}, setting["task"]
    for activation in ("linear", "relu"):
        weights = network(setting["seed"], len(x), HIDDEN, len(y), setting["std"])
        relu.train(
            weights, x, y, step=STEP[kind], steps=setting["steps"], every=setting["steps"], reduction="sum", activation=activation
        )
        found[activation] = relu.loss(weights, x, y, reduction="sum", activation=activation)
    found["states"] = {name: float(share) for name, share in relu.unit_states(relu.gates(weights, x)).items()}
    if kind == "tree":
        return found | {"border": border(setting["std"], setting["seed"])}
    directions = linearization.early_directions(x, y)
    return found | {
        "preference": linearization.linear_preference(weights, setting["margin"], setting["c"]),
        "speeds": sorted((one.speed for one in directions), reverse=True),
    }


def border(std: float, seed: int) -> float:
    """The constant that should turn half of a network's units on, on the tree: read off one without a bias."""
    x, y = tasks.hierarchy(8)
    weights = [w[None] for w in network(seed, 9, HIDDEN, len(y), std)]
    plan = relu.schedule(8 + 2 * math.log10(2e-3 / std), STEP["tree"], 60)
    strengths = 10 ** torch.linspace(-4, 1, 101, dtype=torch.float64)
    on = linearization.predicted_on(linearization.without_bias(weights, x, y, **plan), strengths)
    return float(linearization.threshold(strengths, on)[0])


def layout() -> Column:
    """A choice of task and sliders above the phase diagram and two curves."""
    name, ink = "threshold", bk.INK["light"]
    path = ColumnDataSource({key: [] for key in ("t", "relu", "linear", "on", "gating", "off")}, name="path")
    task = bk.choice(name, "task", ("Tree of eight items", "XOR with a margin"))
    task.tags = [{"x": 0, "y": 0}]
    diagrams = []
    logarithmic = {"y_axis_type": "log", "y_range": (7e-7, 6e-3), "x_axis_type": "log", "x_range": (7e-4, 3)}
    looks = {"tree": ("initial scale σ", logarithmic), "xor": ("margin Δ", {"x_range": (0, 1.6), "y_range": (-0.05, 1.25)})}
    for key, (label, axes) in looks.items():
        made = bk.plot(
            "Phase diagram; the ring is where you are", "bias strength c", label, height=420, name=f"diagram-{key}", **axes
        )
        kept = ColumnDataSource({"c": [], "y": [], "colour": []}, name=f"kept-{key}")
        made.scatter("c", "y", source=kept, size=13, marker="square", color="colour", fill_alpha=0.85, line_color=None)
        source = ColumnDataSource({"c": [], "y": []}, name=f"border-{key}")
        made.line(
            "c",
            "y",
            source=source,
            color=COLOURS["theory"],
            line_width=2.4,
            line_dash=[6, 4],
            legend_label="predicted border" if key == "tree" else "“on for all” fastest",
        )
        now = ColumnDataSource({"c": [], "y": []}, name=f"now-{key}")
        made.scatter("c", "y", source=now, size=20, fill_color=None, line_color=ink["ink"], line_width=3)
        for colour, words in (
            ("linear", "linear" if key == "tree" else "plane"),
            ("gated", "gating" if key == "tree" else "XOR"),
        ):
            made.scatter([1], [-9 if key == "xor" else 1], size=9, marker="square", color=COLOURS[colour], legend_label=words)
        bk.legend(made)
        code = "task.tags[0].x = cb_obj.x; task.tags[0].y = cb_obj.y; Explorers.act('threshold', 'tap')"
        made.js_on_event(Tap, CustomJS(args={"task": task}, code=code))
        diagrams.append(made)
    diagrams[1].visible = False
    loss, states = (
        bk.plot(title, below, beside, height=height, x_range=bk.span(clock, 0, 10), y_range=values)
        for title, below, beside, height, clock, values in (
            ("Loss over training", "", "summed loss", 200, "time-top", bk.span("losses", 0, 20)),
            ("Shares of units", "training time", "share of units", 220, "time-low", (-0.02, 1.02)),
        )
    )
    loss.line("t", "relu", source=path, color=COLOURS["bias"], line_width=3, legend_label="ReLU with a bias")
    loss.line(
        "t", "linear", source=path, color=COLOURS["linear"], line_width=2.2, line_dash=[6, 4], legend_label="linear network"
    )
    for key, colour, words in (("on", "linear", "on for all"), ("gating", "gated", "gating"), ("off", "untrained", "off")):
        states.line("t", key, source=path, color=COLOURS[colour], line_width=2.6, legend_label=words)
    for made in (loss, states):
        bk.legend(made)
    controls = bk.controls(
        bk.slider(name, "c", "bias strength c", -3.0, 0.3, -0.5, 0.05, "Number((10 ** tick).toPrecision(2))"),
        bk.slider(name, "std", "initial scale σ", -6.0, -2.5, -3.7, 0.05, "power"),
        bk.slider(name, "margin", "margin Δ", 0.0, 1.2, 0.5, 0.02),
        bk.button(name, "map", "Map it out", "map", primary=True),
        columns=4,
    )
    curves = column(loss, states, sizing_mode="stretch_width")
    return column(task, controls, bk.rows(column(*diagrams, sizing_mode="stretch_width"), curves), sizing_mode="stretch_width")
