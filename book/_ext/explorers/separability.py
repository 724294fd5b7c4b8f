"""A line or an XOR: drag the margin and see which pathway wins, with a live ReLU network (on make_haste_slowly/separability)."""

from bokeh.models import Span

from explorers import bokeh_parts as bk
from lib.plots import COLOURS

ABOUT = (
    "Four plots with sliders for margin and training step. Steps to a loss of 0.2 against the margin for two gated networks, "
    "whose curves cross at a margin of 0.82; the loss over training at the chosen margin, also of a ReLU network that follows "
    "the faster; the network's units as arrows that point at classes or at single points; and which kind of unit does the work."
)
SCRIPTS = ("networks",)
STEPS = 150


def layout() -> bk.Column:
    """Margin, step and two buttons above four plots."""
    name, ink = "separability", bk.INK["light"]
    times, now = bk.source("times", "margin", "line", "xor"), bk.source("now", "margin", "time")
    losses, shares = bk.source("losses", "step", "line", "xor", "relu"), bk.source("parts", "step", "line", "xor", "other")
    units, points = bk.source("units", "x0", "y0", "x1", "y1", "colour"), bk.source("points", "x", "y", "colour")
    line, xor, green = COLOURS["linear"], COLOURS["gated"], COLOURS["relu"]
    race = bk.plot("Steps to learn against the margin", "margin Δ", "steps to loss 0.2", x_range=(0, 2), y_range=(0, 140))
    race.line("margin", "line", source=times, color=line, line_width=2.4, line_dash=[6, 4], legend_label="per class")
    race.line("margin", "xor", source=times, color=xor, line_width=2.4, line_dash=[6, 4], legend_label="per point")
    race.scatter("margin", "time", source=now, size=12, color=green, legend_label="ReLU network")
    race.add_layout(Span(name="here", location=0.6, dimension="height", line_color=ink["faint"], line_width=2))
    loss = bk.plot("Loss over training", "training step", "loss", x_range=(0, STEPS), y_range=(0, 0.53))
    loss.line("step", "relu", source=losses, color=green, line_width=4, line_alpha=0.7, legend_label="ReLU network")
    for key, colour, words in (("line", line, "per class"), ("xor", xor, "per point")):
        loss.line("step", key, source=losses, color=colour, line_width=2.2, line_dash=[6, 4], legend_label=words)
    loss.add_layout(Span(name="at-loss", location=12, dimension="height", line_color=ink["faint"], line_width=2))
    arrows = bk.plot("Incoming weights of the units as arrows among the four points", "", "",
                     x_range=(-1.9, 1.9), y_range=bk.span("scene", -1, 1))  # fmt: skip
    arrows.axis.visible = arrows.grid.visible = False
    square = [(x + 0.55 * y, 0.33 * y) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    arrows.patch([p[0] for p in square], [p[1] for p in square], fill_color=ink["grid"], fill_alpha=0.45, line_color=ink["faint"])
    arrows.segment("x0", "y0", "x1", "y1", source=units, color="colour", line_width=2)
    arrows.scatter("x", "y", source=points, size=13, fill_color="colour", line_color=ink["ink"], line_width=2)
    parts = bk.plot("Which units do the work", "training step", "share of the work", x_range=(0, STEPS), y_range=(0, 1.02))
    grey = COLOURS["untrained"]
    for key, colour, words in (("line", line, "on for a class"), ("xor", xor, "for a point"), ("other", grey, "else")):
        parts.line("step", key, source=shares, color=colour, line_width=2.4, legend_label=words)
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
    return bk.column(controls, bk.rows(race, loss, arrows, parts))
