"""One figure style for the whole book, and colours that mean the same thing on every page.

Importing this module sets the style. Theory is always dashed black; simulations carry the colour of their network. Colours
stay apart for colour-blind readers: they differ in lightness where they do not differ in hue. Notebooks show figures at
twice the screen's resolution.
"""

import matplotlib as mpl
from matplotlib.colors import to_rgb

COLOURS = {
    "linear": "#1d4f85",  # linear networks, blue
    "relu": "#1f9969",  # ReLU networks, green
    "gated": "#b85c00",  # gated linear networks, orange
    "bias": "#8b5cf6",  # networks with biases, or only biases learned, violet
    "theory": "#111111",  # closed forms, dashed
    "tanh": "#9b2335",
    "sine": "#cf9420",
    "gaussian": "#2aa5b8",
    "untrained": "#8a8f98",  # before training, not trained on, chance level
    "data": "#5c6370",
}
SEQUENCE = ["#16324f", "#1d4f85", "#5ba3d0", "#a9cbe0", "#e9c46a", "#b85c00", "#7d1d1d"]  # ordered quantities
WIDTH = 7.4  # inches: the width of the book's text column at 110 dots per inch

mpl.rcParams.update(
    {
        "figure.dpi": 110,
        "savefig.dpi": 110,
        "savefig.bbox": "tight",
        "figure.constrained_layout.use": True,
        "font.family": "DejaVu Sans",
        "font.size": 9.5,
        "axes.titlesize": 9.5,
        "axes.labelsize": 9.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#444444",
        "axes.linewidth": 0.8,
        "axes.grid": True,
        "grid.color": "#e6e6e6",
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "axes.prop_cycle": mpl.cycler(
            color=[COLOURS[k] for k in ("linear", "relu", "gated", "bias", "tanh", "sine", "gaussian")]
        ),
        "lines.linewidth": 1.6,
        "legend.frameon": False,
        "xtick.color": "#444444",
        "ytick.color": "#444444",
        "image.cmap": "viridis",
        "svg.hashsalt": "racing",
    }
)
if mpl.get_backend().lower().endswith("inline"):  # in a notebook
    import matplotlib.pyplot as plt
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    plt.switch_backend(mpl.get_backend())  # now, not with the first figure
    plt.uninstall_repl_displayhook()  # which draws what a cell has left, and the backend draws it again to show it
    set_matplotlib_formats("retina", pil_kwargs={"compress_level": 1})  # `pictures` makes them small, once


def luminance(colour: str) -> float:
    """How bright a colour is, from 0 (black) to 1 (white), as contrast is measured."""
    linear = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def ink(colour: str, contrast: float = 4.5) -> tuple[float, float, float]:
    """The colour, darkened until text in it has this contrast on white."""
    shade = to_rgb(colour)
    while 1.05 / (luminance(shade) + 0.05) < contrast:
        shade = tuple(0.95 * c for c in shade)
    return shade
