"""The typed `parameters` cell of a page: what it says is the help, the validation and the table on the page.

A line reads `hidden: int = 64  # units in the hidden layer [1, 4096]`; the range in brackets is optional. A text may have
choices in braces: `task: str = "mnist"  # the images {mnist, vai}`. `book/presets.yml` has the other sizes of each page.
"""

import ast
import functools
import math
import re
from dataclasses import dataclass

import msgspec

from lib.book.pages import Page, all_pages
from lib.claims import PARAMETERS
from lib.files import Problem, convert, nearest, read_text, read_yaml, shown

TYPES = {"int": int, "float": float, "str": str, "bool": bool}
CHOICES = re.compile(r"\s*\{([^{}]+)\}\s*$")
RANGE = re.compile(r"\s*\[\s*([^,\]]+)\s*,\s*([^,\]]+)\s*\]\s*$")
PRESETS = ("smoke", "laptop", "paper")
OURS = ("device", "seed")  # parameters that no paper has


@dataclass(frozen=True)
class Parameter:
    """One line of a page's parameters cell: name, type, default, help, range and choices."""

    name: str
    type: str
    default: int | float | str | bool
    help: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()

    def convert(self, value):
        """`value` (text from a command line, or a Python value) as this parameter's type."""
        wanted = TYPES[self.type]
        try:
            if isinstance(value, str) and wanted is not str:
                value = ast.literal_eval(value.strip().capitalize() if wanted is bool else value.strip())
            if wanted is float and type(value) is int:
                value = float(value)
            if type(value) is not wanted:
                raise ValueError
        except (ValueError, SyntaxError, TypeError, OverflowError, MemoryError, RecursionError):
            raise Problem(f"'{self.name}' must be {self.type}, got {str(value)[:60]!r}") from None
        if wanted in (int, float) and not self.low <= value <= self.high:  # NaN fails this too
            raise Problem(f"'{self.name}' must lie in [{self.low:g}, {self.high:g}], got {value!r}")
        if self.choices and value not in self.choices:
            raise Problem(f"'{self.name}' must be one of {', '.join(self.choices)}, got {value!r}")
        return value


def parse(source: str) -> dict[str, Parameter]:
    """Parameters of the source code of a `parameters` cell, in order."""
    lines, found = source.splitlines(), {}
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError) as error:
        raise Problem(f"the parameters cell is not Python: {error}") from None
    for node in body:
        line = lines[node.lineno - 1]
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None):
            raise Problem(f"a parameters cell holds only lines like `hidden: int = 64  # help`, not `{line}`")
        name, kind = node.target.id, ast.unparse(node.annotation)
        if kind not in TYPES:
            raise Problem(f"'{name}' has type {kind}; use one of {', '.join(TYPES)}")
        if name in found:
            raise Problem(f"'{name}' is there twice")
        words = line.encode()[node.end_col_offset :].decode().partition("#")[2].strip()
        if not words:
            raise Problem(f"'{name}' needs a comment that says what it is")
        low, high, options = -math.inf, math.inf, ()
        if bounds := RANGE.search(words):
            try:
                low, high = (float(edge) for edge in bounds.groups())
            except ValueError:
                raise Problem(f"the range of '{name}' must be two numbers [low, high], not {bounds[0].strip()}") from None
            words = RANGE.sub("", words)
        elif kind == "str" and (choices := CHOICES.search(words)):
            options = tuple(option.strip() for option in choices[1].split(","))
            words = f"{CHOICES.sub('', words)}: {', '.join(options)}"
        try:
            default = ast.literal_eval(node.value)
        except ValueError:
            raise Problem(f"'{name}' needs a plain value, not `{ast.unparse(node.value)}`") from None
        found[name] = Parameter(name, kind, default, words, low, high, options)
        found[name].convert(default)
    return found


def of_page(page: Page) -> dict[str, Parameter]:
    """Parameters of a page, from its MyST source; empty when it has none."""
    return _of_text(read_text(page.markdown), shown(page.markdown))


@functools.lru_cache(maxsize=64)
def _of_text(text: str, where: str) -> dict[str, Parameter]:
    cell = PARAMETERS.search(text)
    try:
        return parse(cell[1]) if cell else {}
    except Problem as error:
        raise Problem(f"{where}: {error}") from None


def validate(given: dict, known: dict[str, Parameter]) -> dict:
    """`given` converted to the declared types; a Problem names every mistake."""
    problems, good = [], {}
    for name, value in given.items():
        if name not in known:
            problems.append(f"there is no parameter '{name}'{nearest(name, known)}")
            continue
        try:
            good[name] = known[name].convert(value)
        except Problem as error:
            problems.append(str(error))
    if problems:
        raise Problem("; ".join(problems) + f" (the page has {', '.join(known) or 'no parameters'})")
    return good


# --- presets ---------------------------------------------------------------------------------------------------------


class Sizes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page's entry in book/presets.yml: other sizes, what the paper states, what its size costs."""

    smoke: dict[str, str] = {}
    paper: dict[str, str] | None = None
    stated: dict[str, str] = {}
    cost: str = ""


def sizes(page: Page) -> Sizes:
    """The page's entry in book/presets.yml; its parameters are checked there, and an error names that file."""
    path = page.root / "book" / "presets.yml"
    content = read_yaml(path) if path.exists() else {}
    if not isinstance(content, dict):
        raise Problem(f"{shown(path)}: expected the sizes of every page")
    strangers = [name for name in content if not (path.parent / f"{name}.md").exists()]
    if strangers:
        names = [one.name for one in all_pages(page.root)]
        raise Problem(f"{shown(path)}: there is no page '{strangers[0]}'{nearest(strangers[0], names)}")
    found = convert(content.get(page.name, {}), Sizes, f"{shown(path)}, {page.name}")
    for given in (found.smoke, found.paper or {}):
        try:
            validate(given, of_page(page))
        except Problem as error:
            raise Problem(f"{shown(path)}, {page.name}: {error}") from None
    return found


def preset(page: Page, name: str) -> dict:
    """Parameters of a preset; `laptop` is the page as it stands."""
    if name not in PRESETS:
        raise Problem(f"there is no preset '{name}'; choose one of {', '.join(PRESETS)}")
    if name == "laptop":
        return {}
    found = getattr(sizes(page), name)
    if found is None or (name == "smoke" and not found):
        raise Problem(f"book/presets.yml has no '{name}' preset for {page.name}")
    return found


def stated(page: Page, parameter: Parameter) -> str:
    """What the paper says of a parameter, for the page's table: a value, 'same', 'not stated', or '–' for our own."""
    known, name = sizes(page), parameter.name
    if name in known.stated:
        return known.stated[name]
    if name in OURS:
        return "–"
    if name not in (known.paper or {}):
        return "not stated"
    value = parameter.convert(known.paper[name])
    return "same" if value == parameter.default else f"`{value!r}`"


def settle_device(device: str, here: bool = True) -> str:
    """'cpu' or 'cuda'; `auto` takes CUDA when there is one, asking for it where there is none is an error.

    Of another machine (`here=False`) nothing is known: it is asked for what was named, and `auto` is the CPU.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise Problem(f"there is no device '{device}'; choose one of auto, cpu, cuda")
    if device == "cpu" or not here:
        return "cuda" if device == "cuda" else "cpu"
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise Problem("CUDA was asked for, but torch sees no CUDA device; use --device cpu")
    return "cuda" if torch.cuda.is_available() else "cpu"


def resolve(page: Page, overrides: dict, preset_name: str = "laptop", device: str = "cpu", here: bool = True) -> dict:
    """All parameters of a run, on this machine or on another: the page's defaults, then the preset, then the overrides."""
    known = of_page(page)
    chosen = validate(preset(page, preset_name) | overrides, known)
    if "device" in known:
        chosen["device"] = settle_device(overrides.get("device", device), here)
    elif device != "auto" and settle_device(device, here) == "cuda":
        raise Problem(f"{page.name} has no device parameter; it runs on the CPU only")
    return {name: p.default for name, p in known.items()} | chosen


def difference(page: Page, settings: dict) -> dict:
    """The parameters that are not the book's."""
    known = of_page(page)
    return {name: value for name, value in settings.items() if name in known and value != known[name].default}
