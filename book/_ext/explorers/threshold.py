"""When is a bias a bias: constant, scale and margin, and one's place in a phase diagram (on early_linearization/threshold)."""

from bokeh.events import Tap
from bokeh.models import CustomJS

from explorers import bokeh_parts as bk
from lib.plots import COLOURS

ABOUT = (
    "A phase diagram on the left, with the predicted border between networks that a bias makes linear and others; "
    "on the right the loss of the network at the chosen place beside that of a linear network, and the shares of its units that "
    "are on for all items, gating, or off. Sliders set the constant, the initial scale and, for the XOR, the margin."
)
SCRIPTS = ("networks",)


def layout() -> bk.Column:
    """A choice of task and sliders above the phase diagram and two curves."""
    name, ink = "threshold", bk.INK["light"]
    path = bk.source("path", "t", "relu", "linear", "on", "gating", "off")
    task = bk.choice(name, "task", ("Tree of eight items", "XOR with a margin"))
    task.tags = [{"x": 0, "y": 0}]
    diagrams = []
    logarithmic = {"y_axis_type": "log", "y_range": (7e-7, 6e-3), "x_axis_type": "log", "x_range": (7e-4, 3)}
    plain = {"y_range": (-0.05, 1.25), "x_range": (0, 1.6)}
    for key, label, axes, out_of_sight, *names in (
        ("tree", "initial scale σ", logarithmic, 1, "predicted border", "linear", "gating"),
        ("xor", "margin Δ", plain, -9, "“on for all” fastest", "plane", "XOR"),
    ):
        about = "Phase diagram; the ring is where you are"
        made = bk.plot(about, "bias strength c", label, height=420, name=f"diagram-{key}", **axes)
        kept = bk.source(f"kept-{key}", "c", "y", "colour")
        edge, now = bk.source(f"border-{key}", "c", "y"), bk.source(f"now-{key}", "c", "y")
        made.scatter("c", "y", source=kept, size=13, marker="square", color="colour", fill_alpha=0.85, line_color=None)
        made.line("c", "y", source=edge, color=COLOURS["theory"], line_width=2.4, line_dash=[6, 4], legend_label=names[0])
        made.scatter("c", "y", source=now, size=20, fill_color=None, line_color=ink["ink"], line_width=3)
        for colour, words in (("linear", names[1]), ("gated", names[2])):
            made.scatter([1], [out_of_sight], size=9, marker="square", color=COLOURS[colour], legend_label=words)
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
    return bk.column(task, controls, bk.rows(bk.column(*diagrams), bk.column(loss, states)))
