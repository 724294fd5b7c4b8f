"""Learning with biases alone: draw a curve, and frozen random weights fit it by moving kinks (on bias_learning/expressivity)."""

from explorers import bokeh_parts as bk
from lib.plots import COLOURS

ABOUT = (
    "A sheet to draw a curve on, with the answer of a network whose random weights are frozen and which learns its biases alone. "
    "Marks along the lower edge show where its units bend; learning moves them. Beside it the error over training. "
    "Without a pointer, choose one of three curves with the buttons."
)


def layout() -> bk.Column:
    """Controls above the sheet to draw on and the error."""
    name, colour = "kinks", COLOURS["bias"]
    goal, answer, path = bk.source("target", "x", "y"), bk.source("answer", "x", "y"), bk.source("path", "step", "loss")
    kinks = bk.source("marks", "x", "y", "size")
    paper = bk.plot("Sheet to draw a curve on, with the network's answer and its kinks", "input x", "output y",
                    x_range=(-1, 1), y_range=(-1.2, 1.2), height=340, name="paper")  # fmt: skip
    paper.line("x", "y", source=goal, color=COLOURS["data"], line_width=7, line_alpha=0.45, legend_label="your curve")
    paper.line("x", "y", source=answer, color=colour, line_width=3, legend_label="the network")
    looks = {"marker": "triangle", "fill_color": colour, "fill_alpha": 0.5, "line_color": None}
    paper.scatter("x", "y", source=kinks, size="size", legend_label="kinks", **looks)
    paper.styles = {"cursor": "crosshair"}
    error = bk.plot("Error over training", "step of learning", "loss / size of the curve", x_range=bk.span("time", 0, 300),
                    y_axis_type="log", y_range=(1e-4, 30), height=340)  # fmt: skip
    error.line("step", "loss", source=path, color=colour, line_width=3)
    bk.legend(paper)
    controls = bk.controls(
        bk.slider(name, "units", "hidden units", 3, 9, 6, 1, "2 ** tick"),
        bk.button(name, "learn", "Learn anew", "update", primary=True),
        bk.button(name, "again", "Other random weights", "again"),
    )
    curve = bk.choice(name, "curve", ("Hat", "Wave", "Stairs"), 1, "preset")
    return bk.column(curve, controls, bk.rows(paper, error))
