"""Recorded runs: when code changes and what it measures does not, they stay current; when it does, they do not."""

import json
import math
import subprocess

import pytest

from lib.press import claims, pages
from lib.press.rendering import boxes
from lib.press.verdicts import recordings
from lib.press.workbench import runs
from lib.press.workbench.runs import RunError


@pytest.fixture
def kept(executed, forks):
    """A small book under git, with one recorded run of the page `two`."""
    executed.write("book/presets.yml", "paper/two:\n  smoke: {width: 2}\n")
    page = pages.find("paper/two", executed.root)
    recordings.record(runs.run(page, {"width": 4, "name": "x"}, progress=False)["run"], executed.root)
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"]):
        subprocess.run(["git", "-C", str(executed.root), *command], check=True)
    return executed, page


def test_a_change_that_measures_the_same_leaves_a_recorded_run_current(kept):
    book, page = kept
    book.edit("lib/gamma.py", "2.0", "4.0 / 2")
    book.edit("book/presets.yml", "width: 2", "width: 3, times: 1")  # the size of then counts; what is new since is today's
    book.edit("book/paper/two.md", "name: str", "times: int = 3   # how often [1, 10]\nname: str")
    book.edit("book/paper/two.md", "value() * width", "value() * width * times")
    assert not recordings.recorded(page)[0]["current"]
    said = []
    (run,) = recordings.still(page, "HEAD", said.append)
    path = page.root / "book" / "still.json"
    about = json.loads(path.read_text(encoding="utf-8"))[run]
    assert about["compared"] == 3 and about["difference"] == 0.0 and "3 numbers compared" in said[0]
    (row,) = recordings.recorded(page)
    assert row["current"] and row["still"] == about and row["results"]["two-width"]["measured"] == 8.0

    class Shown:
        book = page.root / "book"

    Shown.page = page
    assert "not what it measures (3 numbers" in boxes.Recorded.one(Shown, row)
    assert recordings.still(page, "HEAD") == []  # nothing to do
    path.write_text(path.read_text(encoding="utf-8").replace('"compared"', '"counted"'), encoding="utf-8")
    with pytest.raises(RunError, match="unknown field counted"):
        recordings.recorded(page)
    path.write_text(path.read_text(encoding="utf-8").replace('"counted"', '"compared"'), encoding="utf-8")
    book.edit("lib/gamma.py", "4.0 / 2", "6.0 / 3")
    assert not recordings.recorded(page)[0]["current"]  # the mark is for the code that was compared


def test_a_change_that_measures_something_else_is_refused(kept):
    book, page = kept
    book.edit("lib/gamma.py", "2.0", "2.01")
    with pytest.raises(RunError, match="two-width differs by 3.3e-03"):
        recordings.still(page, "HEAD")
    assert not recordings.recorded(page)[0]["current"]
    with pytest.raises(RunError, match="git does not know a commit 'nothing'"):
        recordings.still(page, "nothing")


def test_only_runs_that_the_commit_made_are_vouched_for(kept):
    book, page = kept
    book.edit("lib/gamma.py", "2.0", "2.01")
    for command in (["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "other numbers"]):
        subprocess.run(["git", "-C", str(book.root), *command], check=True)
    book.edit("lib/gamma.py", "2.01", "2.0 + 0.01")
    with pytest.raises(RunError, match="no recorded run of paper/two was made by the code of HEAD"):
        recordings.still(page, "HEAD")


def claim(expect):
    return claims.Claim("a", "paper", "paper/two", "", "", expect, "", "reproduced", tolerance="0.5")


@pytest.mark.parametrize(
    ("old", "new", "expect", "count", "distance"),
    [
        (2.0, 2.0, "= 2", 1, 0.0),
        (2.0, 2.1, "< 1", 1, 0.1 / 2.1),
        (1e-16, 3e-16, "< 1e-6", 1, 2e-10),  # only what the bound would feel counts
        ({"x": 1.0, "y": 3.0}, {"y": 3.0, "x": 1.0}, "> 0", 2, 0.0),
        ({"x": 1.0}, {"y": 1.0}, "> 0", 2, math.inf),
        ([1.0, 2.0], [1.0], "> 0", 2, math.inf),
        (True, False, "true", 1, 1.0),
        (math.nan, math.nan, "> 0", 1, 0.0),
        (math.inf, 1.0, "> 0", 1, math.inf),
    ],
)
def test_how_far_two_runs_are_apart(old, new, expect, count, distance):
    found = recordings.difference({"a": {"measured": old}}, {"a": {"measured": new}}, {"a": claim(expect)})
    assert found[:2] == (count, pytest.approx(distance))
