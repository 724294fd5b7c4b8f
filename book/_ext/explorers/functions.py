"""Random functions: draw networks at random and look at the functions that they are (on neural_redshift/random_functions)."""

import math

import numpy as np
import torch
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, LinearColorMapper, Span
from bokeh.models.layouts import Column

from explorers import bokeh_parts as bk
from explorers import random_numbers
from lib import complexity
from lib.plots import COLOURS
from lib.redshift import random_networks

ABOUT = (
    "A grey picture of the function that a random network computes on a square, with controls for activation, magnitude and "
    "depth and a button that draws another network; beside it the Fourier complexity of all functions drawn so far against the "
    "weight magnitude. ReLU networks stay near the lower line, a plane; sine and Gaussian ones rise towards white noise."
)
SIDE, WIDTH = 64, 64
DEFAULT = {"activation": "relu", "magnitude": 4.0, "depth": 3, "seed": 7}
SETTINGS = [
    DEFAULT,
    {"activation": "tanh", "magnitude": 8.0, "depth": 4, "seed": 2},
    {"activation": "sine", "magnitude": 0.5, "depth": 1, "seed": 3},
    {"activation": "gaussian", "magnitude": 2.0, "depth": 6, "seed": 4},
    {"activation": "relu", "magnitude": 16.0, "depth": 2, "seed": 5},
]


def network(setting: dict) -> list[random_networks.Layer]:
    """The layers that a browser draws: `F.draw` in functions.js."""
    sizes, made, drawn = (2, *[WIDTH] * setting["depth"], 1), [], 0
    for fan_in, fan_out in zip(sizes, sizes[1:], strict=False):
        count, reach = fan_out * (fan_in + 1), setting["magnitude"] * math.sqrt(6 / (fan_in + fan_out))
        numbers = torch.from_numpy(2 * random_numbers.uniforms(setting["seed"], count, skip=drawn) - 1)
        weight, bias = numbers.split([fan_out * fan_in, fan_out])
        made.append({"weight": reach * weight.reshape(1, fan_out, fan_in), "bias": bias.reshape(1, 1, fan_out)})
        drawn += count
    return made


def expected(setting: dict) -> dict:
    """The image (64²), its Fourier and Lempel-Ziv complexity, and what a plane and white noise get."""
    values = random_networks.forward(network(setting), complexity.grid(SIDE).double(), setting["activation"])
    image = values.reshape(SIDE, SIDE)
    return {
        "image": image.flatten(),
        "fourier": complexity.fourier(image),
        "phrases": complexity.lempel_ziv(image),
        "floor": complexity.fourier_plane(SIDE),
        "ceiling": complexity.fourier_flat(SIDE),
    }


def layout() -> Column:
    """Controls above the picture and the points."""
    name, ink = "functions", bk.INK["light"]
    picture = ColumnDataSource({"image": [np.zeros((SIDE, SIDE))]}, name="picture")
    kept = ColumnDataSource({"magnitude": [], "fourier": [], "colour": []}, name="kept")
    latest = ColumnDataSource({"magnitude": [], "fourier": []}, name="latest")
    image = bk.plot("The function of a random network as a grey picture", "", "", x_range=(-1, 1), y_range=(-1, 1), height=330)
    image.axis.visible = image.grid.visible = False
    image.image("image", x=-1, y=-1, dw=2, dh=2, source=picture, color_mapper=LinearColorMapper(palette="Greys256"))
    low, high = complexity.fourier_plane(SIDE), complexity.fourier_flat(SIDE)
    points = bk.plot("Fourier complexity of the functions drawn so far against the weight magnitude",
                        "weight magnitude", "Fourier complexity",
                        x_axis_type="log", x_range=(0.4, 20), y_range=(low - 3, high + 3), height=330)  # fmt: skip
    points.xaxis.ticker = [0.5, 1, 2, 4, 8, 16]
    for level, words, below in ((low, "a plane", False), (high, "white noise", True)):
        points.add_layout(Span(location=level, dimension="width", line_color=ink["faint"], line_width=2, line_dash=[6, 4]))
        points.text(
            [0.44], [level], [words], text_color=ink["ink"], text_font_size="12px", text_baseline="bottom" if below else "top"
        )
    points.scatter("magnitude", "fourier", source=kept, size=8, color="colour", fill_alpha=0.75, line_color=None)
    points.scatter("magnitude", "fourier", source=latest, size=14, fill_color=None, line_color=ink["ink"], line_width=2.5)
    options = [("relu", "ReLU"), ("tanh", "tanh"), ("gaussian", "Gaussian"), ("sine", "sine")]
    for key, words in options:
        points.scatter([1], [-100], size=8, color=COLOURS[key], legend_label=words)  # out of sight: for the legend
    bk.legend(points)
    controls = bk.controls(
        bk.select(name, "activation", "activation", options, DEFAULT["activation"]),
        bk.slider(name, "magnitude", "weight magnitude", -1, 4, 2, 0.25, "(2 ** tick).toPrecision(2) * 1"),
        bk.slider(name, "depth", "hidden layers", 1, 6, DEFAULT["depth"], 1),
        bk.button(name, "again", "Draw again", "again", primary=True),
        columns=4,
    )
    return column(controls, bk.rows(image, points), sizing_mode="stretch_width")
