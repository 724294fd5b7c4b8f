"""The race between contexts: pathways for one, several and all contexts, with a head start (on make_haste_slowly/contexts)."""

import torch
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, FactorRange
from bokeh.models.layouts import Column

from explorers import bokeh_parts as bk
from lib.data import tasks
from lib.plots import COLOURS
from lib.relu import contexts

ABOUT = (
    "Three plots with three sliders. The strength over training of pathways that serve one, several or all contexts: the common "
    "one grows first, then those that are open in all contexts but one, while those of a single context stay behind; the loss, "
    "which falls in stages; and bars with the strength that a pathway of each kind has in the end."
)
STEP, MOST = 0.004, 6
DEFAULT = {"contexts": 4, "a0": 1e-6, "head": 1.0}
SETTINGS = [
    DEFAULT | {"steps": 350},
    {"contexts": 2, "a0": 1e-3, "head": 3.0, "steps": 200},
    {"contexts": 3, "a0": 1e-8, "head": 1000.0, "steps": 450},
    {"contexts": 5, "a0": 1e-4, "head": 30.0, "steps": 150},
]


def sigma() -> torch.Tensor:
    """The three different item modes of a tree over eight items."""
    return contexts.item_modes(tasks.tree(8))[[0, 1, 3]]


def starts(setting: dict) -> torch.Tensor:
    """The initial strength of a pathway that serves k contexts, (contexts,): single ones get the head start."""
    given = torch.full((setting["contexts"],), setting["a0"], dtype=torch.float64)
    given[0] *= setting["head"]
    return given


def expected(setting: dict) -> dict:
    """Lengths (modes, sizes) from `race_of_all_sets`, the loss from the full `vector_race_discrete`, speeds of the residual."""
    number, a0 = setting["contexts"], starts(setting)
    sets = contexts.subsets(number, *range(1, number + 1))
    path = contexts.vector_race_discrete(setting["steps"], contexts.item_modes(tasks.tree(8)), sets, a0[sets.sum(1) - 1], STEP)
    return {
        "lengths": contexts.race_of_all_sets(setting["steps"], sigma(), number, a0, STEP),
        "loss": contexts.vector_race_loss(path[-1], contexts.item_modes(tasks.tree(8)), sets),
        "speeds": [float(contexts.residual_speed(float(sigma()[0]), number, k, 8)) for k in range(1, number)],
    }


def layout() -> Column:
    """Three sliders above three plots."""
    name = "contexts"
    keys = ("t", "loss", *(f"size{k}" for k in range(1, MOST + 1)))
    curves = ColumnDataSource({key: [] for key in keys}, name="curves")
    bars = ColumnDataSource({"size": [], "length": [], "colour": []}, name="bars")
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
        bk.slider(name, "contexts", "contexts", 2, MOST, DEFAULT["contexts"], 1),
        bk.slider(name, "start", "initial strength", -9.0, -2.0, -6.0, 0.1, "power"),
        bk.slider(name, "head", "head start for one context", 0.0, 4.0, 0.0, 0.05, "'× ' + Explorers.number(10 ** tick)"),
    )
    return column(controls, bk.rows(race, end), loss, sizing_mode="stretch_width")
