"""What explorers are built from: figures, controls and rows in the book's style, and the document that a page carries.

An explorer is a module of this package with a Bokeh `layout` and a text `ABOUT` it for those who cannot see it. Its numerics and
what happens on a touch are in book/_static/explorers/<name>.js, where models are found by their `name`; a test holds the script
against tests/ext/explorer_twins.py, which asks `lib`.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from bokeh.embed import json_item
from bokeh.models import Button, Column, CustomJS, CustomJSTickFormatter, Model, RadioButtonGroup, Range1d, Row, Select, Slider
from bokeh.plotting import ColumnDataSource, figure
from matplotlib.colors import to_hex, to_rgb

from lib.plots import COLOURS, SEQUENCE, luminance

PAPER = "#14181e"  # the theme's background in the dark
INK = {
    "light": {"ink": "#444444", "grid": "#e4e4e4", "faint": "#c3c7cd"},
    "dark": {"ink": "#c9ced6", "grid": "#333b46", "faint": "#5d6672"},
}
CONTROLS = (Path(__file__).parent / "controls.css").read_text(encoding="utf-8")


def brightened(colour: str, contrast: float = 4.5) -> str:
    """The colour, mixed with white until it has this contrast on the dark theme's paper: same hue, same meaning."""
    shade, white = to_rgb(colour), 0.0
    while (luminance(shade) + 0.05) / (luminance(PAPER) + 0.05) < contrast:
        white += 0.04
        shade = tuple(c + white * (1 - c) for c in to_rgb(colour))
    return to_hex(shade)


def palette() -> dict[str, dict[str, str]]:
    """The book's colours by name, in a light and in a dark page; a colour of one theme has one twin in the other."""
    named = COLOURS | {f"sequence{k}": colour for k, colour in enumerate(SEQUENCE) if colour not in COLOURS.values()}
    light = {name: colour.lower() for name, colour in named.items()} | INK["light"]
    dark = {name: brightened(colour) for name, colour in named.items()} | INK["dark"] | {"theory": "#ececec"}
    return {"light": light, "dark": dark}


# --- building blocks --------------------------------------------------------------------------------------------------


def plot(alt: str, x: str, y: str, *, height: int = 260, **options):
    """An empty figure in the book's style; `alt` is what screen readers say, x and y are the labels of the axes."""
    options = {"tools": "", "toolbar_location": None, "sizing_mode": "stretch_width", "min_width": 280} | options
    made = figure(height=height, tags=[alt], x_axis_label=x, y_axis_label=y, **options)
    made.background_fill_color = made.border_fill_color = None
    made.outline_line_color = None
    ink, grid = INK["light"]["ink"], INK["light"]["grid"]
    for axis in made.axis:
        axis.axis_line_color = axis.major_tick_line_color = axis.major_label_text_color = axis.axis_label_text_color = ink
        axis.minor_tick_line_color = None
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font_size, axis.major_label_text_font_size = "13px", "12px"
    made.grid.grid_line_color = grid
    return made


def legend(made) -> None:
    """Put a figure's legend above it, in one line."""
    shown = made.legend[0]
    made.center.remove(shown)
    made.add_layout(shown, "above")
    shown.orientation, shown.location = "horizontal", "left"
    shown.background_fill_alpha = 0.0
    shown.border_line_color = None
    shown.label_text_color = INK["light"]["ink"]
    shown.label_text_font_size = "12px"
    shown.padding, shown.margin, shown.spacing, shown.glyph_width, shown.label_standoff = 0, 0, 8, 16, 3


def source(name: str, *keys: str) -> ColumnDataSource:
    """Columns of data, empty until the script fills them."""
    return ColumnDataSource({key: [] for key in keys}, name=name)


def span(name: str, start: float, end: float) -> Range1d:
    """A range of an axis that the script may set."""
    return Range1d(start, end, name=name)


def act(explorer: str, what: str = "update") -> CustomJS:
    """What a control does: have the explorer drawn anew, or another of its methods called."""
    return CustomJS(code=f"Explorers.act('{explorer}', '{what}')")


def slider(explorer: str, name: str, title: str, start: float, end: float, value: float, step: float, shown: str = "") -> Slider:
    """A slider; `shown` is JavaScript for the text of its value `tick`, or "power" for 10 to that."""
    looks = {"format": CustomJSTickFormatter(code=f"return {shown}")} if shown else {}
    if shown == "power":
        looks = {"format": CustomJSTickFormatter(code="return Explorers.scientific(10 ** tick)")}
    made = Slider(name=name, title=title, start=start, end=end, value=value, step=step, **looks, **_control())
    made.js_on_change("value", act(explorer))
    return made


def select(explorer: str, name: str, title: str, options: Sequence[tuple[str, str]], value: str) -> Select:
    """A choice of one out of several."""
    made = Select(name=name, title=title, options=list(options), value=value, **_control())
    made.js_on_change("value", act(explorer))
    return made


def choice(explorer: str, name: str, labels: Sequence[str], active: int = 0, what: str = "update") -> RadioButtonGroup:
    """A choice of one out of a few, all of them seen."""
    made = RadioButtonGroup(name=name, labels=list(labels), active=active, **_control())
    made.js_on_change("active", act(explorer, what))
    return made


def button(explorer: str, name: str, label: str, what: str, primary: bool = False) -> Button:
    """A button that calls a method of the explorer."""
    made = Button(name=name, label=label, button_type="primary" if primary else "default", **_control())
    made.js_on_event("button_click", act(explorer, what))
    return made


def rows(*children: Model, columns: int = 2, narrow: int = 290):
    """Things beside each other in so many columns, in fewer where these would be narrower than `narrow` pixels."""
    made = Row(*children, sizing_mode="stretch_width")
    least = f"minmax(max({narrow}px, {100 // (columns + 1) + 2}%), 1fr)"
    grid = f"display: grid; grid-template-columns: repeat(auto-fit, {least})"
    made.stylesheets = [f":host {{ {grid}; gap: 0.4rem 0.9rem; align-items: end; }}"]
    return made


def column(*children: Model) -> Column:
    """Things below each other."""
    return Column(*children, sizing_mode="stretch_width")


def controls(*children: Model, columns: int = 3):
    """Sliders, buttons and choices, two beside each other on a phone."""
    return rows(*children, columns=columns, narrow=150)


def _control() -> dict:
    return {"stylesheets": [CONTROLS], "sizing_mode": "stretch_width", "margin": (2, 2, 2, 2)}


# --- into the page ----------------------------------------------------------------------------------------------------


def document(layout: Model) -> str:
    """The explorer as the JSON that its page carries; the same layout gives the same text, whatever was made before it."""
    text = json.dumps({"item": json_item(layout), "palette": palette()}, separators=(",", ":"))
    known: dict[str, str] = {}
    text = re.sub(r'"p\d{4,}"', lambda match: known.setdefault(match[0], f'"m{len(known)}"'), text)
    return text.replace("</", "<\\/")
