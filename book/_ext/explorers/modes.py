"""Modes: singular values, initial strength and depth make sigmoids and a loss with stages (on deep_linear/modes)."""

from explorers import bokeh_parts as bk
from lib.plots import COLOURS, SEQUENCE

ABOUT = (
    "Two plots with five sliders. On the left the strengths of three modes over training time, sigmoids that rise one after the "
    "other, the one with the largest singular value first; on the right the loss, which falls in as many stages."
)
SHADES = (SEQUENCE[1], SEQUENCE[2], SEQUENCE[5])


def layout() -> bk.Column:
    """Five sliders above two plots."""
    name = "modes"
    curves = bk.source("curves", "t", "a1", "a2", "a3", "loss")
    halves = bk.source("halves", "t", "a")
    left = bk.plot("Strengths of three modes over training time", "training time", "strength of the mode",
                   x_range=bk.span("time-left", 0, 20), y_range=bk.span("height", 0, 2))  # fmt: skip
    right = bk.plot("Loss over training time", "training time", "loss",
                    x_range=bk.span("time-right", 0, 20), y_range=bk.span("losses", 0, 2))  # fmt: skip
    for k, colour in enumerate(SHADES):
        left.line("t", f"a{k + 1}", source=curves, color=colour, line_width=2.6, legend_label=f"mode {k + 1}")
    left.scatter("t", "a", source=halves, size=7, fill_color=bk.INK["light"]["ink"], line_color=None)
    bk.legend(left)
    right.line("t", "loss", source=curves, color=COLOURS["theory"], line_width=2.6)
    controls = bk.controls(
        bk.slider(name, "s1", "singular value 1", 0.2, 3.0, 1.5, 0.05),
        bk.slider(name, "s2", "singular value 2", 0.2, 3.0, 0.8, 0.05),
        bk.slider(name, "s3", "singular value 3", 0.2, 3.0, 0.4, 0.05),
        bk.slider(name, "start", "initial strength", -6.0, -1.0, -4.0, 0.1, "power"),
        bk.slider(name, "layers", "depth (matrices)", 1, 6, 2, 1),
    )
    return bk.column(controls, bk.rows(left, right))
