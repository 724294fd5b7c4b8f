"""The typed `parameters` cell of a page: what it says is the help, the validation and the table on the page.

A line reads `hidden: int = 64  # units in the hidden layer [1, 4096]`; the range in brackets is optional. A text may have
choices in braces: `task: str = "mnist"  # the images {mnist, vai}`.
"""

import ast
import difflib
import math
import re
from dataclasses import dataclass
from pathlib import Path

from lib.press import files
from lib.press.errors import ParameterError

TYPES = {"int": int, "float": float, "str": str, "bool": bool}
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n:tags: *\[[^\]]*\bparameters\b[^\]]*\]\n(.*?)^```", re.S | re.M)
CHOICES = re.compile(r"\s*\{([^{}]+)\}\s*$")
RANGE = re.compile(r"\s*\[\s*([^,\]]+)\s*,\s*([^,\]]+)\s*\]\s*$")


@dataclass(frozen=True)
class Parameter:
    """One line of a page's parameters cell: name, type, default, help and range."""

    name: str
    type: str
    default: int | float | str | bool
    help: str
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()

    def convert(self, value):
        """`value` (text from a command line, or a Python value) as this parameter's type, or a ParameterError."""
        wanted = TYPES[self.type]
        try:
            if isinstance(value, str) and wanted is not str:
                value = ast.literal_eval(value.strip().capitalize() if wanted is bool else value.strip())
            if wanted is float and isinstance(value, int) and not isinstance(value, bool):
                value = float(value)
            if type(value) is not wanted:
                raise ValueError
        except (ValueError, SyntaxError):
            raise ParameterError(f"'{self.name}' must be {self.type}, got {value!r}") from None
        if wanted in (int, float) and not self.low <= value <= self.high:  # NaN fails this too
            raise ParameterError(f"'{self.name}' must lie in [{self.low:g}, {self.high:g}], got {value!r}")
        if self.choices and value not in self.choices:
            raise ParameterError(f"'{self.name}' must be one of {', '.join(self.choices)}, got {value!r}")
        return value


def parse(source: str) -> dict[str, Parameter]:
    """Parameters of the source code of a `parameters` cell, in order."""
    lines, found = source.splitlines(), {}
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError) as error:
        raise ParameterError(f"the parameters cell is not Python: {error}") from None
    for node in body:
        line = lines[node.lineno - 1]
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None):
            raise ParameterError(f"a parameters cell holds only lines like `hidden: int = 64  # help`, not `{line}`")
        name, kind = node.target.id, ast.unparse(node.annotation)
        if kind not in TYPES:
            raise ParameterError(f"'{name}' has type {kind}; use one of {', '.join(TYPES)}")
        if name in found:
            raise ParameterError(f"'{name}' is there twice")
        comment = (
            line.encode()[node.end_col_offset :].decode().partition("#")[2].strip() if node.end_lineno == node.lineno else ""
        )
        if not comment:
            raise ParameterError(f"'{name}' needs a comment that says what it is")
        words, low, high = _range(name, comment)
        choices = CHOICES.search(words) if kind == "str" else None
        options = tuple(option.strip() for option in choices[1].split(",")) if choices else ()
        try:
            default = ast.literal_eval(node.value)
        except ValueError:
            raise ParameterError(f"'{name}' needs a plain value, not `{ast.unparse(node.value)}`") from None
        words = f"{CHOICES.sub('', words)}: {', '.join(options)}" if choices else words
        parameter = Parameter(name, kind, default, words, low, high, options)
        parameter.convert(default)
        found[name] = parameter
    return found


def _range(name: str, comment: str) -> tuple[str, float, float]:
    """(the comment without its range, low, high)."""
    bounds = RANGE.search(comment)
    if not bounds:
        return comment, -math.inf, math.inf
    try:
        low, high = (float(edge) for edge in bounds.groups())
    except ValueError:
        low = high = math.nan
    if not low <= high:
        raise ParameterError(f"the range of '{name}' must be two numbers [low, high], not {bounds[0].strip()}")
    return RANGE.sub("", comment), low, high


def of_page(markdown: Path) -> dict[str, Parameter]:
    """Parameters of a page, from its MyST source; empty when it has none."""
    cell = CELL.search(files.read_text(markdown, ParameterError))
    try:
        return parse(cell.group(1)) if cell else {}
    except ParameterError as error:
        raise ParameterError(f"{files.shown(markdown)}: {error}") from None


def validate(given: dict, known: dict[str, Parameter]) -> dict:
    """`given` converted to the declared types; a ParameterError names every problem and lists what exists."""
    problems, good = [], {}
    for name, value in given.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            problems.append(f"there is no parameter '{name}'" + (f" (did you mean '{near[0]}'?)" if near else ""))
            continue
        try:
            good[name] = known[name].convert(value)
        except ParameterError as error:
            problems.append(str(error))
    if problems:
        listing = "\n".join(f"  {p.name}: {p.type} = {p.default!r}  {p.help}" for p in known.values())
        raise ParameterError("; ".join(problems) + f"\nThe page's parameters are:\n{listing or '  (none)'}")
    return good
