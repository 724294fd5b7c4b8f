"""Routing: choose which routes are trained and watch the others fill in, or not (on neural_race/routing)."""

import torch
from bokeh.events import Tap
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, CustomJS
from bokeh.models.layouts import Column

from explorers import bokeh_parts as bk
from explorers import random_numbers
from lib.data import tasks
from lib.gated.architectures import closed_forms, rivals, routing
from lib.linear import random_matrix
from lib.plots import COLOURS

ABOUT = (
    "A six by six table of routes from input domains to output domains, beside the loss over training. Cells with a dark edge "
    "are trained; a cell fills with orange as its route is learned. Dots mark untrained routes that the others determine. Arrow "
    "keys move over the table, the space bar switches a route. Untrained routes fill in when initial weights are small."
)
DOMAINS, HIDDEN, RATE, LARGEST = 6, 32, 0.03, 0.16  # more is unstable when all routes are trained
PRESETS = ("three of six", "two of six", "star", "two groups", "none")
SETTINGS = [
    {"mask": routing.circulant(DOMAINS, 3), "scale": 0.2, "seed": 1, "steps": 150},
    {"mask": routing.circulant(DOMAINS, 2), "scale": 0.5, "seed": 2, "steps": 60},
    {"mask": routing.star(DOMAINS), "scale": 0.3, "seed": 3, "steps": 40},
    {"mask": routing.blocks(DOMAINS, 2), "scale": 1.2, "seed": 4, "steps": 25},
]
for _one in SETTINGS:  # as a browser is given it
    _one["mask"] = _one["mask"].flatten().tolist()


def task() -> routing.Task:
    """The page's data set: four items, seven properties in a tree."""
    return routing.shared_task(*tasks.routing_items((6.0, 4.0, 3.0)), DOMAINS)


def weights(scale: float, seed: int) -> list[torch.Tensor]:
    """The weights that a browser draws: `R.draw` in routing.js."""
    _, outputs, features = task().sizes
    numbers = torch.from_numpy(random_numbers.normals(seed, DOMAINS * HIDDEN * (features + outputs) + HIDDEN**2))
    ends = [DOMAINS * HIDDEN * features, HIDDEN**2, DOMAINS * HIDDEN * outputs]
    encoders, middle, decoders = numbers.split(ends)
    encoders = random_matrix(encoders.reshape(DOMAINS, HIDDEN, features), scale, "orthogonal")
    decoders = random_matrix(decoders.reshape(DOMAINS, outputs, HIDDEN), scale, "orthogonal")
    middle = random_matrix(middle.reshape(HIDDEN, HIDDEN), scale, "orthogonal")
    return [encoders.transpose(0, 1).reshape(1, HIDDEN, -1).contiguous(), middle[None], decoders.reshape(1, -1, HIDDEN)]


def expected(setting: dict) -> dict:
    """Losses of all routes (domains²) after training, which of them are determined, and both predictions."""
    mask, scale = torch.tensor(setting["mask"]).reshape(DOMAINS, DOMAINS), setting["scale"]
    start, data = weights(scale, setting["seed"]), task()
    step = min(LARGEST, routing.step_of_rate(RATE, data, mask))
    routing.train(start, data, mask, step=step, steps=setting["steps"], every=setting["steps"])
    s, begin = torch.linalg.svdvals(data.yx[0]), rivals.effective_start(scale, DOMAINS)
    try:
        predicted = rivals.predicted_loss(mask, data, scale)
    except ValueError:  # domains differ, or weights are not small
        predicted = None
    b1, b2 = closed_forms.routing_descent(setting["steps"], s, 0.25, DOMAINS, begin, step)
    return {
        "losses": routing.route_losses(start, data)[0].flatten(),
        "reachable": routing.reachable(mask).flatten().double(),
        "predicted": predicted,
        "theory": closed_forms.routing_loss(b1, b2, s, 0.25, data.yy),
    }


def layout() -> Column:
    """Patterns, scale and buttons above the table of routes and the loss."""
    name, ink = "routing", bk.INK["light"]
    keys = ("x", "y", "learned", "colour", "edge", "width", "mark", "ink")
    cells = ColumnDataSource({key: [] for key in keys}, name="cells")
    curves = ColumnDataSource({"step": [], "trained": [], "untrained": []}, name="curves")
    theory = ColumnDataSource({"step": [], "loss": []}, name="theory")
    grid = bk.plot("Table of routes: arrow keys move, the space bar trains a route or not", "input domain", "output domain",
                      x_range=(0.4, DOMAINS + 0.6), y_range=(DOMAINS + 0.6, 0.4), height=320, name="grid")  # fmt: skip
    grid.tags = [grid.tags[0], {"x": 0, "y": 0}]
    grid.grid.visible = False
    grid.rect("x", "y", 0.9, 0.9, source=cells, fill_color="colour", fill_alpha="learned", line_color="edge", line_width="width")
    grid.text(
        "x", "y", "mark", source=cells, text_align="center", text_baseline="middle", text_color="ink", text_font_size="17px"
    )
    grid.js_on_event(
        Tap,
        CustomJS(
            args={"grid": grid}, code="grid.tags[1].x = cb_obj.x; grid.tags[1].y = cb_obj.y; Explorers.act('routing', 'tap')"
        ),
    )
    loss = bk.plot("Loss on trained and untrained routes over training", "training step", "loss, relative to the start",
                      x_range=bk.span("time", 0, 300), y_range=(0, 1.3), height=320)  # fmt: skip
    loss.line(
        "step", "untrained", source=curves, color=COLOURS["tanh"], line_width=6, line_alpha=0.6, legend_label="untrained routes"
    )
    loss.line("step", "trained", source=curves, color=COLOURS["gated"], line_width=2.6, legend_label="trained")
    loss.line("step", "loss", source=theory, color=COLOURS["theory"], line_width=2, line_dash=[6, 4], legend_label="theory")
    bk.legend(loss)
    loss.xgrid.grid_line_color = ink["grid"]
    pattern = bk.choice(name, "pattern", PRESETS, 0, "preset")
    controls = bk.controls(
        bk.slider(name, "scale", "initial scale σ₀", 0.1, 2.5, 0.2, 0.05),
        bk.button(name, "go", "Start", "go", primary=True),
        bk.button(name, "again", "Other weights", "again"),
    )
    return column(pattern, controls, bk.rows(grid, loss), sizing_mode="stretch_width")
