"""Random functions: draw networks at random and look at the functions that they are (on neural_redshift/random_functions)."""

import numpy as np
from bokeh.models import ColumnDataSource, LinearColorMapper, Span

from explorers import bokeh_parts as bk
from lib import complexity
from lib.plots import COLOURS

ABOUT = (
    "A grey picture of the function that a random network computes on a square, with controls for activation, magnitude and "
    "depth and a button that draws another network; beside it the Fourier complexity of all functions drawn so far against the "
    "weight magnitude. ReLU networks stay near the lower line, a plane; sine and Gaussian ones rise towards white noise."
)
SIDE = 64


def layout() -> bk.Column:
    """Controls above the picture and the points."""
    name, ink = "functions", bk.INK["light"]
    picture = ColumnDataSource({"image": [np.zeros((SIDE, SIDE))]}, name="picture")
    kept = bk.source("kept", "magnitude", "fourier", "colour")
    latest = bk.source("latest", "magnitude", "fourier")
    image = bk.plot("The function of a random network as a grey picture", "", "", x_range=(-1, 1), y_range=(-1, 1),
                    sizing_mode="fixed", width=310, height=310, frame_align=False)  # fmt: skip
    image.axis.visible = image.grid.visible = False
    image.image("image", x=-1, y=-1, dw=2, dh=2, source=picture, color_mapper=LinearColorMapper(palette="Greys256"))
    low, high = complexity.fourier_plane(SIDE), complexity.fourier_flat(SIDE)
    points = bk.plot("Fourier complexity of the functions drawn so far against the weight magnitude",
                     "weight magnitude", "Fourier complexity",
                     x_axis_type="log", x_range=(0.4, 20), y_range=(low - 3, high + 3), height=330)  # fmt: skip
    points.xaxis.ticker = [0.5, 1, 2, 4, 8, 16]
    for level, words, baseline in ((low, "a plane", "top"), (high, "white noise", "bottom")):
        points.add_layout(Span(location=level, dimension="width", line_color=ink["faint"], line_width=2, line_dash=[6, 4]))
        points.text([0.44], [level], [words], text_color=ink["ink"], text_font_size="12px", text_baseline=baseline)
    points.scatter("magnitude", "fourier", source=kept, size=8, color="colour", fill_alpha=0.75, line_color=None)
    points.scatter("magnitude", "fourier", source=latest, size=14, fill_color=None, line_color=ink["ink"], line_width=2.5)
    options = [("relu", "ReLU"), ("tanh", "tanh"), ("gaussian", "Gaussian"), ("sine", "sine")]
    for key, words in options:
        points.scatter([1], [-100], size=8, color=COLOURS[key], legend_label=words)  # out of sight: for the legend
    bk.legend(points)
    controls = bk.controls(
        bk.select(name, "activation", "activation", options, "relu"),
        bk.slider(name, "magnitude", "weight magnitude", -1, 4, 2, 0.25, "(2 ** tick).toPrecision(2) * 1"),
        bk.slider(name, "depth", "hidden layers", 1, 6, 3, 1),
        bk.button(name, "again", "Draw again", "again", primary=True),
        columns=4,
    )
    return bk.column(controls, bk.rows(image, points))
