"""Bad input and faults: one sentence, a status that is not zero, nothing lost, nothing left behind.

Most cases call the command line inside this process, on a copy of a small executed book; processes of their own are
started only where signals, pipes or interpreters matter (`test_signals.py`).
"""

import ast
import errno
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from lib.data import files as data_files
from lib.press import claims, environment, files, pages, parameters, terminal
from lib.press.bindery import building
from lib.press.errors import PageError, Problem
from lib.press.reports import commands as reporting
from lib.press.verdicts import recordings
from lib.press.workbench import browser, commands, execution, runs, sweeps

ROOT = environment.ROOT


class Desk:
    """The command line, inside this process, at the root of a small executed book."""

    def __init__(self, repository, capsys):
        self.repository, self.root, self.capsys = repository, repository.root, capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self.capsys.readouterr()
        try:
            status = commands.main(list(arguments))
        except SystemExit as end:  # argparse's own way to refuse
            status = end.code
        said = self.capsys.readouterr()
        return status, said.out, said.err

    def everything(self) -> dict[str, bytes]:
        found = (path for path in self.root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return {path.relative_to(self.root).as_posix(): path.read_bytes() for path in found}

    def refuses(self, message: str, *arguments: str) -> None:
        """The command ends with this message as its only sentence, and no file has changed, come or gone."""
        before = self.everything()
        status, _, error = self(*arguments)
        assert status not in (0, None), "status 0"
        assert message in error, error
        assert "Traceback" not in error and "should not happen" not in error, error
        assert len(error.strip().splitlines()) == 1, error
        assert self.everything() == before

    def put(self, name: str, content: str | bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture
def desk(executed, monkeypatch, capsys):
    for module in (pages, commands, building):
        monkeypatch.setattr(module, "ROOT", executed.root)
    monkeypatch.setattr(claims, "BOOK", executed.root / "book")
    monkeypatch.setattr(environment, "REQUIREMENTS", executed.root / "requirements.txt")
    monkeypatch.delenv("RACING_RUNS", raising=False)
    monkeypatch.chdir(executed.root)
    return Desk(executed, capsys)


# --- files of the book -----------------------------------------------------------------------------------------------

EDITS = {  # of claims.yml: (old, new, what is said)
    "division by zero": ('"= 6"', '"= 1/0"', "paper/one-width: '1/0' has no finite value"),
    "root of a negative number": ('"= 6"', '"= sqrt(-1)"', "no finite value"),
    "overflow": ('"= 6"', '"= exp(1e9)"', "no finite value"),
    "power that would hang": ('"= 6"', '"= 10**10**10"', "no finite value"),
    "power of a power of a power": ('"= 6"', '"= 9**9**9**9"', "no finite value"),
    "root by a power": ('"= 6"', '"= (-8)**0.5"', "no finite value"),
    "complex": ('"= 6"', '"= 1j"', "not a number or a simple formula"),
    "logarithm of zero": ('"= 6"', '"= log(0)"', "no finite value"),
    "infinity": ('"= 6"', '"= 1e999"', "no finite value"),
    "not a number": ('"= 6"', '"= nan"', "not a number or a simple formula"),
    "code": ('"= 6"', "\"= __import__('os').getpid()\"", "not a number or a simple formula"),
    "very long formula": ('"= 6"', f'"= {"1+" * 5000}1"', "too long"),
    "deep formula": ('"= 6"', f'"= {"(" * 90}1{")" * 90}"', None),  # is a number
    "many signs": ('"= 6"', f'"= {"-" * 180}1"', None),
    "no relation": ('"= 6"', "about six", "expect must be"),
    "a list for a relation": ('"= 6"', "[6]", "'expect' must be text, not [6]"),
    "true without quotes": ('"= 6"', "true", "'expect' must be text, not True"),
    "empty range": ('"in [1, 4]"', '"in [4, 1]"', "the range 'in [4, 1]' is empty"),
    "half a range": ('"in [1, 4]"', '"in [4]"', "write a range as"),
    "range of words": ('"in [1, 4]"', '"in [a, b]"', "not a number or a simple formula"),
    "negative tolerance": ("tolerance: 0.01", "tolerance: -0.01", "the tolerance '-0.01' is negative"),
    "negative share": ("tolerance: 0.01", "tolerance: -5 %", "is negative"),
    "tolerance in words": ("tolerance: 0.01", "tolerance: small", "not a number or a simple formula"),
    "no tolerance": ("tolerance: 0.01", "tolerance:", "needs a tolerance"),
    "null id": ("id: one-width", "id:", "paper/claim 1: 'id' is missing"),
    "no id": ("id: one-width", "note: x", "'id' is missing"),
    "id with a path": ("id: one-width", "id: ../one", "may only have letters"),
    "id twice": ("id: two-width", "id: one-width", "the id is there twice"),
    "page elsewhere": ("page: one", "page: ../../one", "may only have letters"),
    "null page": ("page: one", "page: null", "'page' is missing"),
    "no reason": ("reason: exact", "reason: ''", "the reason for its tolerance or bound is missing"),
    "unknown verdict": ("verdict: reproduced", "verdict: maybe", "verdict 'maybe' is none of"),
    "verdict as a list": ("verdict: reproduced", "verdict: [reproduced]", "'verdict' must be text"),
    "unknown author": ("author: paper", "author: rumour", "author 'rumour' is none of"),
    "no author": ("author: paper", "note: x", "'author' is missing"),
    "unknown rank": ("author: paper", "author: paper\n  rank: big", "rank 'big' is none of"),
    "unknown finding": ("verdict: reproduced", "verdict: recorded\n  finding: yes!", "finding 'yes!' is none of"),
    "unknown field": ("where: Eq. 1", "where: Eq. 1\n  colour: red", "unknown field colour"),
    "bad format": ("where: Eq. 1", "where: Eq. 1\n  format: '.2q'", "'.2q' is no format"),
    "a date": ("where: Eq. 1", "where: 2020-01-01", "'where' must be text"),
    "no title": ("title: A paper\n", "", "book/paper/claims.yml: 'title' is missing"),
    "title as a list": ("title: A paper", "title: [A paper]", "'title' must be text"),
    "unknown part": ("title: A paper", "title: A paper\nclaim: []", "unknown field claim"),
    "python tag": ("title: A paper", "title: !!python/object/apply:os.getpid []", "is not YAML (line 1"),
    "tabs": ("title: A paper", "title: A paper\n\t- x", "is not YAML (line 2"),
}
WHOLE = {  # a claims.yml that is something else altogether
    "empty": ("", "found nothing"),
    "null": ("null", "found nothing"),
    "a word": ("claims", "found 'claims'"),
    "a list": ("- a\n- b", "found ['a', 'b']"),
    "not YAML": ("claims: [", "is not YAML"),
    "not UTF-8": (b"title: \xff\xfe", "is not UTF-8 text (byte 7)"),
    "no claims": ("title: x", "'claims' is missing"),
    "null claims": ("title: x\nclaims:", "'claims' is missing"),
    "claims as a mapping": ("title: x\nclaims: {a: 1}", "'claims' must be a list"),
    "a claim that is a word": ("title: x\nclaims: [word]", "paper/claim 1: expected fields"),
    "a claim that is a list": ("title: x\nclaims: [[]]", "paper/claim 1: expected fields"),
    "a claim that is null": ("title: x\nclaims: [null]", "paper/claim 1: expected fields"),
    "numbers for fields": ("title: x\nclaims: [{1: 2}]", "paper/claim 1: expected fields"),
    "a thousand brackets": (f"title: x\nclaims: {'[' * 3000}", "is not YAML"),
    "a date that is none": ("title: 2020-99-99", "is not YAML"),
}


@pytest.mark.parametrize("case", EDITS)
def test_claims_that_are_wrong_are_named(desk, case):
    old, new, message = EDITS[case]
    desk.repository.edit("book/paper/claims.yml", old, new)
    start = time.process_time()
    if message is None:
        claims.load("paper", desk.root / "book")
    else:
        desk.refuses(message, "pages")
    assert time.process_time() - start < 5


@pytest.mark.parametrize("case", WHOLE)
def test_a_claims_file_that_is_something_else(desk, case):
    content, message = WHOLE[case]
    desk.put("book/paper/claims.yml", content)
    desk.refuses(message, "pages")


NOTEBOOKS = {
    "empty": ("", "is not whole JSON"),
    "cut short": (None, "is not whole JSON"),
    "a list": ("[]", "expected fields"),
    "nothing": ("{}", "'cells' is missing"),
    "null": ("null", "found nothing"),
    "not UTF-8": (b"\xff", "is not UTF-8"),
    "cells as a mapping": ('{"cells": {}, "metadata": {}}', "'cells' must be a list"),
    "a cell that is a word": ('{"cells": ["x"], "metadata": {}}', "cell 0: expected fields"),
    "an unknown cell": ('{"cells": [{"cell_type": "x", "metadata": {}}], "metadata": {}}', "cell_type 'x' is none of"),
    "a cell without source": ('{"cells": [{"cell_type": "raw", "metadata": {}}], "metadata": {}}', "'source' is missing"),
    "deep": ("[" * 100_000, "is not"),
}


@pytest.mark.parametrize("case", NOTEBOOKS)
def test_a_notebook_that_is_none(desk, case):
    content, message = NOTEBOOKS[case]
    desk.put("book/paper/one.ipynb", desk.repository.read("book/paper/one.ipynb")[:700] if content is None else content)
    desk.refuses(message, "run", "paper/one")
    status, shown, error = desk("pages")  # the others are listed all the same
    assert status == 1 and "paper/two  (laptop" in shown and "paper/one` makes it again" in error
    assert len(error.strip().splitlines()) == 1
    assert pages.stale(pages.find("paper/one"))  # so that `execute` makes it again


def test_execute_makes_a_damaged_notebook_again(executed, forks):
    before = executed.read("book/paper/one.ipynb")
    executed.write("book/paper/one.ipynb", before[:700])
    done = executed.run("execute")
    assert done.returncode == 0, done.stderr
    assert executed.read("book/paper/one.ipynb") == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"verdict": "reproduced"', '"verdict": "not reproduced"'),
        ("[reproduced] one-width", "[not reproduced] one-width"),
        ('"measured": 6.0', '"measured": 7.0'),
        ("Six is twice three", "Seven is twice three"),
    ],
)
def test_an_output_that_was_edited_is_noticed(desk, old, new):
    desk.repository.edit("book/paper/one.ipynb", old, new)
    assert pages.stale(pages.find("paper/one")) == ["its outputs are not those that it was executed with"]
    assert "paper/one  (laptop" in (shown := desk("pages")[1]) and "stale: its outputs are not those" in shown


def test_text_in_lines_is_the_same_output(desk):
    """Jupyter saves a text as a list of its lines."""
    notebook = json.loads(desk.repository.read("book/paper/one.ipynb"))
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            output["data"] = {kind: text.splitlines(keepends=True) for kind, text in output["data"].items()}
    desk.put("book/paper/one.ipynb", json.dumps(notebook))
    assert pages.stale(pages.find("paper/one")) == []


OTHER_FILES = {
    "presets not YAML": ("book/presets.yml", "paper/one: [", "book/presets.yml is not YAML"),
    "presets a list": ("book/presets.yml", "- a", "expected the sizes of every page"),
    "a preset that is a word": ("book/presets.yml", "paper/one: small", "presets.yml, paper/one: expected fields"),
    "a size that is a list": ("book/presets.yml", "paper/one: {smoke: [1]}", "'smoke' must be a mapping"),
    "an unknown size": ("book/presets.yml", "paper/one: {huge: {}}", "unknown field huge"),
    "a cost that is a list": ("book/presets.yml", "paper/one: {cost: [1]}", "'cost' must be text"),
    "presets not UTF-8": ("book/presets.yml", b"\xff", "is not UTF-8"),
    "seconds cut short": ("book/seconds.json", '{"paper/one": 3', "book/seconds.json is not whole JSON"),
    "seconds empty": ("book/seconds.json", "", "is not whole JSON"),
    "seconds a list": ("book/seconds.json", "[1]", "expected the seconds of every page"),
    "seconds in words": ("book/seconds.json", '{"paper/one": "three"}', "'paper/one' must be a time in seconds"),
    "seconds below zero": ("book/seconds.json", '{"paper/one": -3}', "must be a time in seconds"),
    "seconds without end": ("book/seconds.json", '{"paper/one": Infinity}', "must be a time in seconds"),
    "seconds not a number": ("book/seconds.json", '{"paper/one": NaN}', "must be a time in seconds"),
    "seconds null": ("book/seconds.json", '{"paper/one": null}', "'paper/one' is missing"),
    "a requirement without a version": ("requirements.txt", "torch\n", "requirements.txt, line 1: 'torch' is not an exact pin"),
    "a requirement with a range": ("requirements.txt", "# a\ntorch>=2\n", "line 2: 'torch>=2' is not an exact pin"),
    "a requirement twice over": ("requirements.txt", "torch==2==3\n", "is not an exact pin"),
    "requirements not UTF-8": ("requirements.txt", b"\xff", "requirements.txt cannot be read"),
    "page not UTF-8": ("book/paper/one.md", b"---\njupytext:\n---\n\xff", "book/paper/one.md is not UTF-8"),
    "another page not UTF-8": ("book/paper/new.md", b"\xff", "book/paper/new.md is not UTF-8"),
}


@pytest.mark.parametrize("case", OTHER_FILES)
def test_other_files_that_are_wrong(desk, case):
    name, content, message = OTHER_FILES[case]
    desk.put(name, content)
    desk.refuses(message, "pages")


CELLS = {
    "syntax": ("width: int = 3 3  # how wide", "the parameters cell is not Python"),
    "a bracket": ("width: int = (3  # how wide", "the parameters cell is not Python"),
    "range of words": ("width: int = 3  # how wide [a, b]", "the range of 'width' must be two numbers"),
    "range upside down": ("width: int = 3  # how wide [10, 1]", "the range of 'width' must be two numbers"),
    "range without a number": ("width: int = 3  # how wide [nan, 4]", "the range of 'width' must be two numbers"),
    "default outside": ("width: int = 30  # how wide [1, 10]", "'width' must lie in [1, 10]"),
    "default of another type": ("width: int = 3.5  # how wide", "'width' must be int"),
    "default that is a formula": ("width: int = 3 * abs(2)  # how wide", "'width' needs a plain value"),
    "unknown type": ("width: list = []  # how wide", "'width' has type list"),
    "no type": ("width = 3  # how wide", "holds only lines like"),
    "no help": ("width: int = 3", "'width' needs a comment"),
    "twice": ("width: int = 3  # how wide\nwidth: int = 3  # how wide", "'width' is there twice"),
    "default that is no choice": ('width: str = "c"  # how wide {a, b}', "'width' must be one of a, b"),
    "code": ("import os", "holds only lines like"),
}


@pytest.mark.parametrize("case", CELLS)
def test_parameter_cells_that_are_wrong(desk, case):
    cell, message = CELLS[case]
    desk.repository.edit("book/paper/one.md", "width: int = 3   # how wide [1, 10]", cell)
    desk.refuses("book/paper/one.md: ", "pages")
    desk.refuses(message, "run", "paper/one")


def test_choices():
    known = parameters.parse('task: str = "vai"  # the images {mnist, vai}\nnote: str = "x"  # anything {at all')
    assert known["task"].choices == ("mnist", "vai") and known["task"].help == "the images: mnist, vai"
    assert known["note"].choices == ()
    assert parameters.validate({"task": "mnist"}, known) == {"task": "mnist"}
    with pytest.raises(parameters.ParameterError, match="'task' must be one of mnist, vai, got 'nonsense'"):
        parameters.validate({"task": "nonsense"}, known)


def test_the_front_end_is_one_that_exists():
    with pytest.raises(parameters.ParameterError, match="'front_end' must be one of random, resnet"):
        runs.settle(pages.find("neural_race/naturalistic"), {"front_end": "nonsense"})


# --- rows ------------------------------------------------------------------------------------------------------------


def row(**changes) -> dict:
    good = {"page": "paper/two", "run": "abc123", "parameters": {"width": 4, "name": "x"}, "status": "finished"}
    good |= {"results": {"two-width": {"id": "two-width", "measured": 8.0, "verdict": "not reproduced"}}, "seconds": 2.0}
    return good | {"fingerprint": "f", "device": "cpu", "finished": "2026-01-01T00:00:00+00:00"} | changes


ROWS = {
    "cut short": ('{"page": "paper/two"', "is not whole JSON"),
    "a list": ("[]", "expected fields"),
    "nothing": ("{}", "'page' is missing"),
    "seconds in words": (row(seconds="two"), "'seconds' must be a time"),
    "seconds below zero": (row(seconds=-1), "'seconds' must be a time"),
    "parameters as a list": (row(parameters=[1]), "'parameters' must be a mapping"),
    "results as a list": (row(results=[1]), "'results' must be a mapping"),
    "a result that is a number": (row(results={"two-width": 8.0}), "two-width: expected fields"),
    "a result without a value": (row(results={"two-width": {"verdict": "reproduced"}}), "'measured' is missing"),
    "a value in words": (row(results={"a": {"measured": "x", "verdict": "reproduced"}}), "'measured' must be a measured value"),
    "values in words": (row(results={"a": {"measured": ["x"], "verdict": "reproduced"}}), "must be a measured value"),
    "an unknown verdict": (row(results={"a": {"measured": 1, "verdict": "great"}}), "verdict 'great' is none of"),
    "an unknown status": (row(status="almost"), "status 'almost' is none of"),
    "a status that is a list": (row(status=["finished"]), "'status' must be text"),
    "another run": (row(run="other"), "is the row of another run"),
    "a page elsewhere": (row(page="../evil"), "may only have letters"),
}


@pytest.mark.parametrize("case", ROWS)
def test_a_row_that_is_wrong_is_left_out_of_the_table_and_said_so(desk, case):
    content, message = ROWS[case]
    desk.put("_runs/paper/two/abc123.json", content if isinstance(content, str) else json.dumps(content))
    desk.put("_runs/paper/two/good.json", json.dumps(row(run="good")))
    desk.refuses(message, "results", "paper/two")
    assert "good" in desk("results", "paper/two")[1]
    desk.refuses("'abc123' names 0 runs", "record", "abc123")


RECORDED = {name: case for name, case in ROWS.items() if name != "another run"} | {
    "no date": (row(finished=None), "'finished' is missing"),
    "no device": (row(device=""), "'device' is missing"),
    "a failed run": (row(status="failed"), "status 'failed' is none of finished"),
    "not UTF-8": (None, "is not UTF-8"),
}


@pytest.mark.parametrize("case", RECORDED)
def test_a_recorded_row_that_is_wrong_is_named(desk, case):
    content, message = RECORDED[case]
    text = b"\xff" if content is None else content if isinstance(content, str) else json.dumps(content)
    desk.put("book/paper/recorded/two-abc123.json", text)
    desk.put("book/presets.yml", "paper/two: {paper: {width: 4}}")
    desk.refuses(message, "pages")


@pytest.mark.parametrize("name", ["*", "**", "abc*", "?bc123", "[a]bc123", "../abc123", "paper/two/abc123", "", "a b", "é"])
def test_only_names_of_runs_are_recorded(desk, name):
    desk.put("_runs/paper/two/abc123.json", json.dumps(row()))
    desk.refuses("is not the name of a run", "record", name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"page": "../evil"}, "names 0 runs"),
        ({"page": "paper/../../evil"}, "names 0 runs"),
        ({"page": "/etc/evil"}, "names 0 runs"),
        ({"page": "paper/three"}, "cannot be recorded: there is no page 'paper/three'"),
        ({"page": "evil"}, "there is no page 'evil'"),
        ({"status": "failed"}, "only finished runs are recorded"),
        ({"finished": None}, "'finished' is missing"),
    ],
)
def test_nothing_is_recorded_outside_its_place(desk, changes, message):
    desk.put("_runs/paper/two/abc123.json", json.dumps(row(**changes)))
    desk.refuses(message, "record", "abc123")
    assert not (desk.root.parent / "evil").exists()


# --- the command line ------------------------------------------------------------------------------------------------

LINES = {
    "no command": ((), "required: COMMAND"),
    "unknown command": (("bok",), "invalid choice: 'bok'"),
    "unknown option": (("pages", "--colour"), "unrecognized arguments"),
    "unknown page": (("execute", "paper/three"), "there is no page 'paper/three'"),
    "page elsewhere": (("execute", "../../etc/passwd"), "there is no page"),
    "results of nothing": (("results", "paper/three"), "there is no page"),
    "run without a page": (("run",), "required: page"),
    "a point that is no JSON": (("_point", "x"), "use `python -m lib run`"),
    "a point that is a list": (("_point", "[]"), "use `python -m lib run`"),
    "a page within": (("_execute", "nothing"), "there is no page 'nothing'"),
    "no value": (("run", "paper/two", "-p", "width"), "NAME=VALUE"),
    "no name": (("run", "paper/two", "-p", "=3"), "NAME=VALUE"),
    "not text": (("run", "paper/two", "-p", "name=\udcff"), r"'name=\udcff' is not text"),
    "page that is not text": (("execute", "\udce9"), "is not text"),
    "data that is unknown": (("data", "fetch", "nothing_like_it"), 'no data set is called "nothing_like_it"'),
    "no grid": (("sweep", "paper/two", "--grid", "width"), "write a grid as"),
    "empty grid": (("sweep", "paper/two", "--grid", "width="), "write a grid as"),
    "grid without end": (("sweep", "paper/two", "--grid", "width=1:2:1e-5000"), "too many values"),
    "grid from beyond": (("sweep", "paper/two", "--grid", "width=1e999999:2"), "has 0 values"),
    "grid to beyond": (("sweep", "paper/two", "--grid", "width=1:1e999999"), "too many values"),
    "grid of steps that vanish": (("sweep", "paper/two", "--grid", "width=1:2:1e-9999999"), "is not a range"),
    "grid that is too fine": (("sweep", "paper/two", "--grid", "width=1:2:1e-9"), "too many values"),
    "grid of infinities": (("sweep", "paper/two", "--grid", "width=-inf:inf"), "is not a range"),
    "unknown preset": (("sweep", "paper/two", "--preset", "huge"), "no preset 'huge'"),
    "unknown device": (("sweep", "paper/two", "--device", "tpu"), "no device 'tpu'"),
    "no module of numbers": (("mutate", "press"), "no numbers to plant errors in 'press'"),
    "a module elsewhere": (("mutate", "../../etc"), "no numbers to plant errors in"),
    "a sample of none": (("mutate", "--sample", "0"), "a whole number above zero"),
    "a seed in words": (("mutate", "--seed", "x"), "invalid int value"),
    "seeds of no page": (("seeds", "paper/three"), "there is no page 'paper/three'"),
    "seeds without a seed": (("seeds", "paper/one"), "has no parameter 'seed'"),
    "no seeds at all": (("seeds", "--count", "0"), "a whole number above zero"),
    "slack of no paper": (("slack", "nothing"), "nothing"),
    "bench of no case": (("bench", "nothing"), "nothing"),
    "authors who are not there": (("bench", "--authors", "/nowhere"), "/nowhere"),
    "a comparison of nothing": (("compare", "abc", "def"), "abc"),
    "a comparison by pattern": (("compare", "*", "book"), "is not the name of a run"),
    "a report of nothing": (("report", "abc"), "abc"),
    "a report elsewhere": (("report", "../../x"), "names 0 runs"),
    "a plot of no claim": (("plot", "paper/two", "--claim", "x", "--against", "width"), "there are no such finished runs"),
    "a plot against nothing": (
        ("plot", "paper/two", "--claim", "two-width", "--against", "nothing"),
        "there are no such finished runs",
    ),
    "a pair of no page": (("pair", "paper/three"), "there is no page"),
    "a pair that keeps neither": (("pair", "paper/one", "--keep", "txt"), "invalid choice: 'txt'"),
    "lab of no page": (("lab", "paper/three"), "there is no page"),
    "a preview of no page": (("preview", "paper/three"), "there is no page"),
    **{
        f"port {value}": (("lab", f"--port={value}"), "a port from 1 to 65535")
        for value in ("x", "-1", "65536", "99999999", "1.5")
    },
    **{
        f"new page {name}": (("new", name), "small letters")
        for name in ("x", "../evil/page", "/etc/evil", "Paper/Page", "a/b/c", "", "é/è")
    },
    "a commit that is none": (("check", "--since", "nothing"), "git cannot tell what has changed since 'nothing'"),
    "a commit that is an option": (("check", "--since=--output=evil"), "git cannot tell what has changed since '--output=evil'"),
    **{
        f"check in {value} s": (("check", f"--seconds={value}"), "a number of seconds above zero") for value in ("-1", "0", "nan")
    },
    "a place that is none": (("sweep", "paper/two", "--on", "nowhere"), "nowhere"),
    "points for no folder": (("sweep", "paper/two", "--export", "nowhere/x"), "nowhere"),
    **{
        f"timeout {value}": (("sweep", "paper/two", f"--timeout={value}"), "a number of seconds above zero")
        for value in ("-1", "0", "nan", "inf", "soon", "", "1e999")
    },
    **{
        f"workers {value}": (("sweep", "paper/two", f"--workers={value}"), "a whole number above zero")
        for value in ("0", "-1", "1.5", "all", "9999999999", "²")
    },
}


@pytest.mark.parametrize("case", LINES)
def test_a_command_line_that_is_wrong(desk, case):
    arguments, message = LINES[case]
    desk.refuses(message, *arguments)


@pytest.mark.parametrize(
    ("given", "handed"),
    [(["-k", "x"], ["-k", "x"]), (["--", "-k", "x"], ["-k", "x"]), (["tests/press", "-x"], ["tests/press", "-x"])],
)
def test_arguments_of_pytest_need_no_dashes(desk, monkeypatch, given, handed):
    seen = []
    monkeypatch.setattr(pytest, "main", lambda arguments, plugins: seen.append(arguments) or 0)
    monkeypatch.setattr(browser, "ensure", lambda: "chromium")
    monkeypatch.setattr(os, "environ", dict(os.environ))
    assert desk("test", *given)[0] == 0 and seen == [handed]


def test_one_is_singular(desk):
    assert desk("sweep", "paper/two", "--grid", "width=2", "--dry-run")[1].endswith("\n1 point\n")
    assert desk("sweep", "paper/two", "--grid", "width=2:4", "--dry-run")[1].endswith("\n2 points\n")
    desk.put("_runs/paper/two/abc123.json", json.dumps(row()))
    assert desk("results", "paper/two", "--csv", "out.csv")[1] == "1 run written to out.csv\n"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere/out.csv", "there is no folder nowhere"),
        ("book", "book is a folder"),
        ("README.md/out.csv", "there is no folder"),
    ],
)
def test_a_table_that_cannot_be_written(desk, target, message):
    desk.put("_runs/paper/two/abc123.json", json.dumps(row()))
    desk.refuses(message, "results", "paper/two", "--csv", target)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_a_table_for_a_full_device(desk):
    desk.put("_runs/paper/two/abc123.json", json.dumps(row()))
    desk.refuses("No space left", "results", "paper/two", "--csv", "/dev/full")


# --- the disk --------------------------------------------------------------------------------------------------------


@pytest.fixture(
    params=[(errno.ENOSPC, "No space left on device"), (errno.EROFS, "Read-only file system")], ids=["full", "locked"]
)
def disk(request, monkeypatch):
    """A disk on which nothing can be written any more."""
    number, words = request.param
    real = Path.write_text

    def refuse(self, text, *arguments, **options):
        real(self, text[: len(text) // 2], *arguments, **options) if number == errno.ENOSPC else None
        raise OSError(number, words, str(self))

    monkeypatch.setattr(Path, "write_text", refuse)
    return words


def test_notebooks_seconds_rows_and_the_readme_survive_a_full_disk(desk, disk, monkeypatch):
    desk.put("README.md", "<!-- score -->old<!-- /score -->")
    desk.put("_runs/paper/two/abc123.json", json.dumps(row()))
    before = desk.everything()
    page = pages.find("paper/one")
    old = pages.stored(page)
    monkeypatch.setattr(building, "SCORE", building.re.compile("(<!-- score -->)old(<!-- /score -->)"))
    for action, name in (
        (lambda: execution.write(page, old, {"files": {}}), "book/paper/one.ipynb"),
        (lambda: execution.note_seconds("paper/one", 7e5, desk.root), "book/seconds.json"),
        (lambda: runs.write_row(desk.root / "_runs/paper/two/abc123.json", row(seconds=3.0)), "abc123.json"),
        (lambda: recordings.record("abc123", desk.root), "recorded/two-abc123.json"),
        (building.update_readme, "README.md"),
        (lambda: reporting.write_csv(desk.root / "out.csv", "a,b"), "out.csv"),
        (lambda: sweeps.probe_writable(desk.root / "_runs/paper/two"), "rows cannot be written"),
    ):
        with pytest.raises(Problem) as problem:
            action()
        assert name in str(problem.value) and disk in str(problem.value)
        assert desk.everything() == before, name


def test_refreshing_prose_on_a_full_disk(desk, disk):
    real = desk.repository.read("book/paper/one.md").replace("Some prose.", "Other prose.")
    (desk.root / "book/paper/one.md").write_bytes(real.encode())
    desk.refuses("book/paper/one.ipynb could not be written", "execute", "paper/one")


def test_a_book_that_fails_leaves_the_readme_alone(desk, monkeypatch):
    desk.put("README.md", "<!-- score -->old<!-- /score -->")
    monkeypatch.setattr(building, "render", lambda: 1)
    assert desk("book")[0] == 1
    assert desk.repository.read("README.md") == "<!-- score -->old<!-- /score -->"
    monkeypatch.setattr(building, "render", lambda: 0)
    assert desk("book")[0] == 0
    assert ">old<" not in desk.repository.read("README.md")


def test_what_dead_processes_left_is_swept_up(tmp_path, monkeypatch):
    node, gone = files.platform.node(), 2**22 + 1  # no process can have this number
    monkeypatch.setattr(files.tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"racing-{node}-{gone}-abc").mkdir()
    (tmp_path / f"racing-{node}-{os.getpid()}-abc").mkdir()
    (tmp_path / "racing-elsewhere-1-abc").mkdir()
    with files.scratch() as scratch:
        assert scratch.parent == tmp_path
        (scratch / "litter").write_text("x")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {f"racing-{node}-{os.getpid()}-abc", "racing-elsewhere-1-abc"}
    (tmp_path / f".row.json.{node}.{gone}.tmp").write_text("half a r")
    (tmp_path / f".row.json.{node}.{os.getpid()}.tmp").write_text("half a r")
    files.tidy(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} - left == {f".row.json.{node}.{os.getpid()}.tmp"}


# --- data ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder of its own, with the picture of the photographer."""
    for name in ("camera.json", "camera.npz"):
        shutil.copy(ROOT / "data" / name, tmp_path / name)
    monkeypatch.setattr(data_files, "FOLDER", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("camera.npz", lambda blob: blob[:-10], "is damaged"),
        ("camera.npz", lambda blob: blob[:100] + bytes([blob[100] ^ 1]) + blob[101:], "is damaged"),
        ("camera.npz", lambda blob: b"", "is damaged"),
        ("camera.json", lambda blob: blob[:50], "camera.json is damaged"),
        ("camera.json", lambda blob: b"\xff" + blob, "camera.json is damaged"),
    ],
)
def test_damaged_data_is_noticed(folder, desk, name, damage, message):
    assert desk("data")[0] == 0
    (folder / name).write_bytes(damage((folder / name).read_bytes()))
    desk.refuses(message, "data")
    desk.refuses(message, "data", "fetch", "camera")


def test_a_data_folder_that_is_none(desk, monkeypatch):
    monkeypatch.setenv("RACING_DATA", "/nowhere/at/all")
    desk.refuses("RACING_DATA=/nowhere/at/all is not a folder", "data")


# --- whatever else goes wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (Problem("this is wrong"), 2, "this is wrong"),
        (environment.Missing("that is missing"), 2, "that is missing"),
        (MemoryError(), 2, "the memory of this machine does not suffice"),
        (KeyboardInterrupt(), 130, "stopped"),
        (terminal.Terminated(), 143, "stopped"),
        (OSError(errno.ENOSPC, "No space left", "/a/b"), 2, "the disk is full (/a/b)"),
        (OSError(errno.EROFS, "Read-only", "/a/b"), 2, "the disk is read-only (/a/b)"),
        (PermissionError(errno.EACCES, "Permission denied", "/a/b"), 2, "that is not permitted (/a/b)"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141, ""),
    ],
)
def test_every_error_is_a_sentence(desk, monkeypatch, error, status, message):
    def fail(options):
        raise error

    monkeypatch.setattr(commands, "list_pages", fail)
    got, _, said = desk("pages")
    assert got == status and message in said and "Traceback" not in said
    assert len(said.strip().splitlines()) == bool(message)


STRANGE = [ValueError("a\nb"), KeyError("x"), RecursionError(), OSError("odd"), AssertionError(), Exception("é")]


@pytest.mark.parametrize("error", STRANGE, ids=repr)
def test_what_nobody_expected_is_a_sentence_and_a_file(desk, monkeypatch, tmp_path, error):
    def fail(options):
        raise error

    monkeypatch.setattr(commands, "list_pages", fail)
    monkeypatch.setenv(terminal.REPORTS, str(tmp_path))
    before = desk.everything()
    status, _, said = desk("pages")
    (saved,) = tmp_path.glob("racing-error-*.txt")
    assert status == 2 and type(error).__name__ in said and str(saved) in said and len(said.splitlines()) == 1
    assert "Traceback" in saved.read_text() and "in fail" in saved.read_text()
    assert desk.everything() == before
    monkeypatch.setenv(terminal.REPORTS, str(tmp_path / "missing"))
    assert "could not be saved" in desk("pages")[2]


def test_all_kinds_of_problems_are_one_kind():
    from lib.press import errors

    for kind in (errors.ClaimError, errors.ParameterError, errors.PageError, errors.RunError, environment.Missing):
        assert issubclass(kind, Problem)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RuntimeError("Kernel didn't respond in 60 seconds"), "its kernel does not answer (Kernel didn't respond in 60 seconds)"),
        (OSError(99, "Cannot assign requested address"), "its kernel does not answer"),
        (DeadKernelError("Kernel died"), "its kernel died"),
        (CellTimeoutError("A cell timed out"), "a cell took longer than 1800 seconds"),
        (CellExecutionError("long\ntraceback", "DamagedFile", "camera.npz is damaged"), "failed: camera.npz is damaged"),
        (
            CellExecutionError("long\ntraceback", "ValueError", "x"),
            "failed:\nlong\ntraceback",
        ),  # its author needs all of it
    ],
    ids=lambda value: type(value).__name__,
)
def test_kernels_that_fail(desk, monkeypatch, error, message):
    def fail(self, *arguments, **options):
        raise error

    monkeypatch.setattr(NotebookClient, "execute", fail)
    before = desk.everything()
    with pytest.raises(PageError) as problem:
        execution.execute(pages.find("paper/one"))
    assert message in str(problem.value) and desk.everything() == before


# --- old interpreters ------------------------------------------------------------------------------------------------

FIRST = ("__init__", "__main__", "press/__init__", "press/environment", "press/errors", "press/terminal")


@pytest.mark.parametrize("name", FIRST)
def test_what_runs_first_can_be_read_by_old_interpreters(name):
    """Python 3.6 must get as far as the sentence about its version: grammar, and annotations that it evaluates."""
    text = (ROOT / "lib" / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 6))
    for node in ast.walk(tree):
        hints = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for hint in filter(None, hints):
            assert isinstance(hint, ast.Name | ast.Constant), f"line {node.lineno}: quote `{ast.unparse(hint)}`"
        if isinstance(node, ast.ImportFrom | ast.Import) and node.col_offset == 0:
            names = {node.module} if isinstance(node, ast.ImportFrom) else {alias.name for alias in node.names}
            assert not names & {"tomllib", "zoneinfo", "graphlib", "importlib.metadata", "dataclasses"}, names


@pytest.mark.parametrize("name", FIRST[:2])
def test_the_first_two_files_can_be_read_by_python_2(name):
    tree = ast.parse(text := (ROOT / "lib" / f"{name}.py").read_text(encoding="utf-8"))
    assert text.isascii()
    for node in ast.walk(tree):
        assert not isinstance(node, ast.JoinedStr | ast.AnnAssign | ast.Nonlocal | ast.Starred), f"line {node.lineno}"
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.args, *node.args.kwonlyargs]
            assert node.returns is None and not node.args.kwonlyargs and not any(one.annotation for one in arguments)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print"


def test_old_interpreters_get_the_sentence():
    """Those that are installed here."""
    for old in ("2.7", "3.6", "3.7", "3.8", "3.9", "3.10"):
        found = shutil.which(f"python{old}")
        if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            done = subprocess.run([found, "-B", "-m", "lib", "pages"], cwd=ROOT, text=True, capture_output=True)
            assert done.returncode == 2 and done.stderr.startswith("Python 3.11 or newer is needed, this is " + old)
            assert len(done.stderr.splitlines()) == 1
