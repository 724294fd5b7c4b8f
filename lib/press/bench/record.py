"""The record of a bench: what it must hold, read from and written to the book."""

import json
from pathlib import Path

from lib.press import files, schema
from lib.press.environment import ROOT
from lib.press.errors import Problem
from lib.press.schema import Field, check

RECORD = "book/bench.json"
PRECISIONS = ("float32", "float64")


class BenchError(Problem):
    """A case that does not exist, or two programs that should give the same numbers and do not."""


MAPPING, NUMBER, MAYBE = Field("a mapping"), Field("a number"), Field("a mapping", False)
BENCH = {  # book/bench.json
    "date": Field(pattern=r"\d{4}-\d\d-\d\d"),
    "seconds": Field("a time in seconds"),
    **{name: MAPPING for name in ("machine", "effort", "peaks", "cases", "authors")},
}
MACHINE = {name: Field() for name in ("processor", "python", "torch", "instructions", "load")}
PEAKS = {name: NUMBER for name in (*PRECISIONS, "memory")}
CASE = {
    **{name: Field() for name in ("title", "plain", "unit")},
    **{name: MAPPING for name in ("sizes", "precisions", "growth")},
}
PRECISION = {"difference": NUMBER, "fast": MAPPING, "plain": MAPPING, "ratio": MAPPING, "peak": MAYBE}
SPREAD = {name: NUMBER for name in ("median", "low", "high")}
PEAK = {"share": NUMBER, "bound": Field(one_of=("arithmetic", "memory"))}
GROWTH = {
    "precision": Field(),
    "with": MAPPING,
    **{name: Field("a list") for name in ("sizes", "seconds")},
    **{name: NUMBER for name in ("slope", "error", "expected")},
}
AUTHORS = {
    "commit": Field(required=False),
    "sentence": Field(required=False),
    "unit": Field(required=False),
    **{name: MAYBE for name in ("programs", "theirs", "ours", "ratio")},
}


def checked(record: dict, where: str) -> dict:
    """`record` itself if it is one; else an error that names the field that is wrong."""
    check(record, BENCH, where, BenchError)
    for part, fields in (("machine", MACHINE), ("peaks", PEAKS)):
        check(record[part], fields, f"{where}, {part}", BenchError)
    for name, row in record["cases"].items():
        at = f"{where}, {name}"
        check(row, CASE, at, BenchError)
        for precision, found in row["precisions"].items():
            check(found, PRECISION, f"{at}, {precision}", BenchError)
            for part in ("fast", "plain", "ratio"):
                check(found[part], SPREAD, f"{at}, {precision}, {part}", BenchError)
            if "peak" in found:
                check(found["peak"], PEAK, f"{at}, {precision}", BenchError)
        for size, grown in row["growth"].items():
            check(grown, GROWTH, f"{at}, {size}", BenchError)
            if not len(grown["sizes"]) == len(grown["seconds"]) >= 3 or not all(map(schema.is_number, grown["sizes"])):
                raise BenchError(f"{at}, {size}: three sizes or more, and as many times, are needed")
            for taken in grown["seconds"]:
                check(taken, SPREAD, f"{at}, {size}, seconds", BenchError)
    for name, row in record["authors"].items():
        check(row, AUTHORS, f"{where}, {name}", BenchError)
        if "sentence" not in row and not {"unit", "theirs", "ours", "ratio"} <= set(row):
            raise BenchError(f"{where}, {name}: neither times nor a sentence about why there are none")
    return record


def write(record: dict, root: Path = ROOT) -> Path:
    """Keep a bench with the book."""
    path = root / RECORD
    files.write_whole(path, json.dumps(checked(record, "the bench"), indent=1, ensure_ascii=False) + "\n")
    return path


def read(root: Path = ROOT) -> dict | None:
    """The recorded bench, or None where there is none."""
    path = root / RECORD
    return checked(files.read_json(path, BenchError), RECORD) if path.exists() else None
