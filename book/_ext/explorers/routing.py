"""Routing: choose which routes are trained and watch the others fill in, or not (on neural_race/routing)."""

from bokeh.events import Tap
from bokeh.models import CustomJS

from explorers import bokeh_parts as bk
from lib.plots import COLOURS

ABOUT = (
    "A six by six table of routes from input domains to output domains, beside the loss over training. Cells with a dark edge "
    "are trained; a cell fills with orange as its route is learned. Dots mark untrained routes that the others determine. Arrow "
    "keys move over the table, the space bar switches a route. Untrained routes fill in when initial weights are small."
)
DOMAINS = 6
PRESETS = ("three of six", "two of six", "star", "two groups", "none")


def layout() -> bk.Column:
    """Patterns, scale and buttons above the table of routes and the loss."""
    name = "routing"
    cells = bk.source("cells", "x", "y", "learned", "colour", "edge", "width", "mark", "ink")
    curves = bk.source("curves", "step", "trained", "untrained")
    theory = bk.source("theory", "step", "loss")
    grid = bk.plot("Table of routes: arrow keys move, the space bar trains a route or not", "input domain", "output domain",
                   x_range=(0.4, DOMAINS + 0.6), y_range=(DOMAINS + 0.6, 0.4), height=320, name="grid")  # fmt: skip
    grid.tags = [grid.tags[0], {"x": 0, "y": 0}]
    grid.grid.visible = False
    grid.rect("x", "y", 0.9, 0.9, source=cells, fill_color="colour", fill_alpha="learned", line_color="edge", line_width="width")
    grid.text(
        "x", "y", "mark", source=cells, text_align="center", text_baseline="middle", text_color="ink", text_font_size="17px"
    )
    code = "grid.tags[1].x = cb_obj.x; grid.tags[1].y = cb_obj.y; Explorers.act('routing', 'tap')"
    grid.js_on_event(Tap, CustomJS(args={"grid": grid}, code=code))
    loss = bk.plot("Loss on trained and untrained routes over training", "training step", "loss, relative to the start",
                   x_range=bk.span("time", 0, 300), y_range=(0, 1.3), height=320)  # fmt: skip
    loss.line(
        "step", "untrained", source=curves, color=COLOURS["tanh"], line_width=6, line_alpha=0.6, legend_label="untrained routes"
    )
    loss.line("step", "trained", source=curves, color=COLOURS["gated"], line_width=2.6, legend_label="trained")
    loss.line("step", "loss", source=theory, color=COLOURS["theory"], line_width=2, line_dash=[6, 4], legend_label="theory")
    bk.legend(loss)
    pattern = bk.choice(name, "pattern", PRESETS, 0, "preset")
    controls = bk.controls(
        bk.slider(name, "scale", "initial scale σ₀", 0.1, 2.5, 0.2, 0.05),
        bk.button(name, "go", "Start", "go", primary=True),
        bk.button(name, "again", "Other weights", "again"),
    )
    return bk.column(pattern, controls, bk.rows(grid, loss))
