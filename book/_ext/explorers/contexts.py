"""The race between contexts: pathways for one, several and all contexts, with a head start (on make_haste_slowly/contexts)."""

from bokeh.models import FactorRange

from explorers import bokeh_parts as bk
from lib.plots import COLOURS

ABOUT = (
    "Three plots with three sliders. The strength over training of pathways that serve one, several or all contexts: the common "
    "one grows first, then those that are open in all contexts but one, while those of a single context stay behind; the loss, "
    "which falls in stages; and bars with the strength that a pathway of each kind has in the end."
)
MOST = 6


def layout() -> bk.Column:
    """Three sliders above three plots."""
    name = "contexts"
    curves = bk.source("curves", "t", "loss", *(f"size{k}" for k in range(1, MOST + 1)))
    bars = bk.source("bars", "size", "length", "colour")
    race = bk.plot("Strength of pathways over training", "epochs (of step 0.001)", "strength of one pathway",
                   x_range=bk.span("time-left", 0, 2000), y_range=bk.span("height", 0, 5))  # fmt: skip
    for k in range(1, MOST + 1):
        race.line("t", f"size{k}", source=curves, line_width=2.6, color=COLOURS["untrained"], name=f"line{k}")
    end = bk.plot("Strength of a pathway in the end, by the number of contexts it serves", "contexts that a pathway serves",
                  "strength in the end", x_range=FactorRange(factors=["1", "2", "3", "all"], name="sets"))  # fmt: skip
    end.vbar("size", top="length", source=bars, width=0.7, fill_color="colour", line_color=None)
    end.y_range.start = 0
    end.xgrid.grid_line_color = None
    loss = bk.plot("Loss over training", "epochs (of step 0.001)", "summed loss", height=200,
                   x_range=bk.span("time-right", 0, 2000), y_range=bk.span("losses", 0, 60))  # fmt: skip
    loss.line("t", "loss", source=curves, line_width=2.6, color=COLOURS["theory"])
    controls = bk.controls(
        bk.slider(name, "contexts", "contexts", 2, MOST, 4, 1),
        bk.slider(name, "start", "initial strength", -9.0, -2.0, -6.0, 0.1, "power"),
        bk.slider(name, "head", "head start for one context", 0.0, 4.0, 0.0, 0.05, "'× ' + Explorers.number(10 ** tick)"),
    )
    return bk.column(controls, bk.rows(race, end), loss)
