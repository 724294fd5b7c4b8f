"""The typed `parameters` cell of a page: what it says is the help, the validation and the table on the page.

A line reads `hidden: int = 64  # units in the hidden layer [1, 4096]`; the range in brackets is optional.
"""

import ast
import difflib
import math
import re
from dataclasses import dataclass
from pathlib import Path

TYPES = {"int": int, "float": float, "str": str, "bool": bool}
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n:tags: *\[[^\]]*\bparameters\b[^\]]*\]\n(.*?)^```", re.S | re.M)
RANGE = re.compile(r"\s*\[\s*([^,\]]+)\s*,\s*([^,\]]+)\s*\]\s*$")


class ParameterError(ValueError):
    """A parameter that does not exist, has the wrong type, or lies outside its range."""


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str
    default: int | float | str | bool
    help: str
    low: float = -math.inf
    high: float = math.inf

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
        return value


def parse(source: str) -> dict[str, Parameter]:
    """Parameters of the source code of a `parameters` cell, in order."""
    lines, found = source.splitlines(), {}
    for node in ast.parse(source).body:
        line = lines[node.lineno - 1]
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None):
            raise ParameterError(f"a parameters cell holds only lines like `hidden: int = 64  # help`, not `{line}`")
        name, kind = node.target.id, ast.unparse(node.annotation)
        if kind not in TYPES:
            raise ParameterError(f"'{name}' has type {kind}; use one of {', '.join(TYPES)}")
        comment = line[node.end_col_offset :].partition("#")[2].strip() if node.end_lineno == node.lineno else ""
        if not comment:
            raise ParameterError(f"'{name}' needs a comment that says what it is")
        bounds = RANGE.search(comment)
        low, high = (float(edge) for edge in bounds.groups()) if bounds else (-math.inf, math.inf)
        help_text = RANGE.sub("", comment)
        parameter = Parameter(name, kind, ast.literal_eval(node.value), help_text, low, high)
        parameter.convert(parameter.default)
        found[name] = parameter
    return found


def of_page(markdown: Path) -> dict[str, Parameter]:
    """Parameters of a page, from its MyST source; empty when it has none."""
    cell = CELL.search(markdown.read_text(encoding="utf-8"))
    return parse(cell.group(1)) if cell else {}


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
