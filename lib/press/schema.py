"""What the book's files must hold: claims.yml, presets.yml, seconds.json, notebooks, rows of runs.

Each schema is a table {field: Field}; `check` names the entry and the field that is wrong.
"""

import math
from dataclasses import dataclass
from re import fullmatch

from lib.press.errors import Problem

VERDICTS = ("reproduced", "reproduced in part", "not reproduced", "recorded", "undetermined")
AUTHORS = ("paper", "correction", "book")
RANKS = ("main", "supporting", "check")
SEVERITIES = ("conclusion", "number", "typo")  # the gravest first


def is_number(value) -> bool:
    """Whether a value is a number, true and false excepted."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_measured(value) -> bool:
    """A number, true or false, or several of these, with names or without."""
    several = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, int | float) or (bool(several) and all(isinstance(one, int | float) for one in several))


IS = {
    "text": lambda value: isinstance(value, str) or is_number(value),  # YAML reads `paper: 3` as a number
    "a number": is_number,
    "a time in seconds": lambda value: is_number(value) and 0 <= value < math.inf,
    "a mapping": lambda value: isinstance(value, dict) and all(isinstance(key, str) for key in value),
    "a list": lambda value: isinstance(value, list),
    "a measured value": is_measured,
}


@dataclass(frozen=True)
class Field:
    """What one field of a row or claim must look like."""

    kind: str = "text"
    required: bool = True
    one_of: tuple[str, ...] = ()
    pattern: str = ""
    called: str = ""  # when it is missing


MAYBE = Field(required=False)
MAPPING = Field("a mapping")
ID = r"[A-Za-z0-9][A-Za-z0-9_.-]*"

LIST = Field("a list", False)
CLAIMS = {"title": Field(), "cite": MAYBE, "claims": Field("a list"), "errata": LIST, "index": LIST}  # a claims.yml
CLAIM = {
    "id": Field(pattern=ID),
    "page": Field(pattern=ID),
    "where": Field(),
    "claim": Field(),
    "expect": Field(),
    "reason": Field(called="the reason for its tolerance or bound"),
    "verdict": Field(one_of=VERDICTS),
    "author": Field(one_of=AUTHORS),
    "rank": Field(required=False, one_of=RANKS),
    "finding": Field(required=False, one_of=VERDICTS[:3]),
    "nature": Field(required=False, one_of=("share", "size")),
    **{name: MAYBE for name in ("paper", "tolerance", "note", "erratum", "format", "result", "hero")},
    **{name: MAYBE for name in ("figure", "equation", "table", "reply")},
}
ERRATUM = {
    "id": Field(pattern=ID),
    "severity": Field(one_of=SEVERITIES),
    **{name: Field() for name in ("where", "printed", "corrected", "holds")},
    **{name: MAYBE for name in ("reading", "program")},
}
INDEX = {"what": Field(), "why": Field(), "at": MAYBE}  # a figure, table or equation without a row of its own
PRESET = {name: Field("a mapping", False) for name in ("smoke", "paper", "stated")} | {"cost": MAYBE}  # one page in presets.yml
CELL = {"cell_type": Field(one_of=("code", "markdown", "raw")), "metadata": MAPPING}
NOTEBOOK = {"cells": Field("a list"), "metadata": MAPPING}
RECORD = {"measured": Field("a measured value"), "verdict": Field(one_of=VERDICTS)}  # one check of a run
ROW = {
    "page": Field(pattern=f"{ID}(/{ID})*"),
    "run": Field(pattern=ID),
    "parameters": MAPPING,
    "status": Field(one_of=("finished", "failed")),
    "results": MAPPING,
    "seconds": Field("a time in seconds"),
    "data": Field("a mapping", False),
    "versions": Field("a mapping", False),
    **{name: MAYBE for name in ("error", "fingerprint", "device", "finished", "python", "machine")},
}
RECORDED = ROW | {name: Field() for name in ("fingerprint", "device", "finished")} | {"status": Field(one_of=("finished",))}


def check(entry, fields: dict[str, Field], where: str, error: type[Problem] = Problem, closed: bool = True) -> dict:
    """`entry` itself when it is a mapping with these fields (if `closed`, with no others); else an error that says why not."""
    if not IS["a mapping"](entry):
        raise error(f"{where}: expected fields like '{next(iter(fields), 'name')}: …', found {brief(entry)}")
    if closed and (unknown := set(entry) - set(fields)):
        raise error(f"{where}: unknown field {', '.join(sorted(unknown))}")
    for name, field in fields.items():
        value = entry.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            if field.required:
                raise error(f"{where}: {field.called or repr(name)} is missing")
            continue
        if not IS[field.kind](value):
            raise error(f"{where}: '{name}' must be {field.kind}, not {brief(value)}")
        if field.one_of and value not in field.one_of:
            raise error(f"{where}: {name} '{value}' is none of {', '.join(field.one_of)}")
        if field.pattern and not fullmatch(field.pattern, str(value)):
            raise error(f"{where}: {name} '{value}' may only have letters, digits, '-' and '_'")
    return entry


def check_row(row, where: str, error: type[Problem] = Problem, recorded: bool = False) -> dict:
    """A run's row, with every one of its results."""
    check(row, RECORDED if recorded else ROW, where, error, closed=False)
    for name, record in row["results"].items():
        check(record, RECORD, f"{where}, {name}", error, closed=False)
    return row


def check_notebook(notebook, where: str, error: type[Problem] = Problem) -> dict:
    """Raise an error in one sentence unless this is a notebook."""
    check(notebook, NOTEBOOK, where, error, closed=False)
    for i, cell in enumerate(notebook["cells"]):
        check(cell, CELL, f"{where}, cell {i}", error, closed=False)
        if not isinstance(cell.get("source"), str | list):
            raise error(f"{where}, cell {i}: 'source' is missing")
        for output in cell.get("outputs", ()):
            check(output, {}, f"{where}, an output of cell {i}", error, closed=False)
    return notebook


def brief(value) -> str:
    """A value as a short text for a message."""
    words = "nothing" if value is None else repr(value)
    return words if len(words) <= 60 else words[:57] + "…"
