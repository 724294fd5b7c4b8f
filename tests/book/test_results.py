"""Results: runs beside the book, as one table, as CSV, as a picture; other seeds."""

import json

import numpy as np
import pytest

from lib import claims
from lib.book import execute, freshness, pages, results, runs, sweep, verdicts
from lib.files import Problem

OUTPUT = {"output_type": "display_data", "data": {"text/plain": "shown"}}


@pytest.fixture
def book(repository):
    """The small repository with notebooks whose outputs were written by hand: 6 and {"z": 2, "a": 3} on both pages."""
    for name in ("one", "two"):
        page = repository.page(name)
        notebook, found = pages.source(page), {f"{name}-parts": {"z": 2.0, "a": 3.0}, f"{name}-width": 6.0}
        records = [{"id": key, "measured": value, "verdict": "reproduced"} for key, value in found.items()]
        notebook["cells"][-1]["outputs"] = [OUTPUT | {"metadata": {"racing": record}} for record in records]
        execute.write(page, notebook, freshness.fingerprint(page, ["lib/beta.py", "lib/gamma.py"]))
    return repository


def put(book, width: float, seed: int = 0, status: str = "finished", measured: float | None = None) -> dict:
    """A row of the page `two`, as a run with these parameters would leave it."""
    page, settings = book.page("two"), {"width": width, "name": "x", "seed": seed}
    value = 2.0 * width if measured is None else measured
    verdict = "reproduced" if value == 6 else "not reproduced"
    found = {"two-width": {"measured": value, "verdict": verdict}}
    found |= {"two-parts": {"measured": {"z": 2.0, "a": 3.0}, "verdict": "reproduced"}}
    row = {"page": page.name, "run": runs.name_of(page, settings), "parameters": settings, "status": status, "device": "cpu"}
    row |= {"results": found if status == "finished" else {}, "seconds": 1.0, "fingerprint": "f", "machine": "m", "commit": "c"}
    row |= {"finished": f"2026-01-01T00:00:0{seed}"} | ({"error": "ValueError: no\nmore"} if status == "failed" else {})
    runs.write_row(page, row)
    return row


def test_a_run_beside_the_book(book):
    row = put(book, 4)
    row["results"]["gone"] = row["results"]["two-width"]  # a claim that is no longer there is left out
    text = results.beside_the_book(row, book.root)
    (line,) = [line for line in text.splitlines() if line.startswith("two-width")]
    assert line.split() == ["two-width", "6", "8", "±", "0.01", "reproduced", "not", "reproduced", "≠"]
    assert text.endswith("1 of 2 verdicts are the book's.")
    assert results.beside_the_book(put(book, 5, status="failed"), book.root) == "This run failed after 0 checks: ValueError: no"


@pytest.mark.slow
def test_runs_as_one_table_and_as_csv(book, tmp_path):
    for width in (5, 2, 4):
        put(book, width)
    put(book, 3, seed=1, status="failed")
    page = book.page("two")
    table = results.table(page)
    assert list(table["width"]) == [2, 3, 4, 5] and list(table["two-width"].dropna()) == [4.0, 8.0, 10.0]
    assert list(table["two-parts: z"].dropna()) == [2.0] * 3 and list(table["status"]).count("failed") == 1
    brief = results.brief(page, table, "two-width")
    assert list(brief) == ["width", "seed", "two-width", "status", "seconds", "run"]
    with pytest.raises(Problem, match="paper/two has no claim 'two-widht'; did you mean 'two-width'"):
        results.brief(page, table, "two-widht")
    done = book.run("results", "paper/two", "--csv", "out.csv")
    assert done.returncode == 0 and "4 runs written to out.csv" in done.stdout, done.stderr
    assert len(book.read("out.csv").splitlines()) == 5


@pytest.mark.slow
def test_the_command_says_which_rows_are_damaged_and_that_there_are_none(book):
    empty = book.run("results", "paper/two")
    assert empty.returncode == 2 and empty.stderr == "there are no runs of paper/two yet\n"
    put(book, 4)
    book.write("_runs/paper/two/half.json", '{"page": "paper')
    done = book.run("results", "paper/two")
    assert done.returncode == 0 and "1 run;" in done.stdout and "half.json is damaged and not counted" in done.stderr


@pytest.mark.slow
def test_results_against_a_parameter_are_drawn(book, tmp_path):
    for width, seed in ((2, 0), (4, 0), (4, 1)):
        put(book, width, seed)
    page, target = book.page("two"), tmp_path / "width.png"
    assert results.plot(page, "width", "two-width", target) == target and target.read_bytes().startswith(b"\x89PNG")
    for parameter, claim, message in (
        ("widht", None, "no parameter 'widht'; did you mean 'width'"),
        ("width", "two-widht", "no claim 'two-widht'; did you mean 'two-width'"),
    ):
        with pytest.raises(Problem, match=message):
            results.plot(page, parameter, claim, target)


# --- other seeds -----------------------------------------------------------------------------------------------------


def test_other_seeds_are_compared_with_the_books_run(book):
    page = book.page("two")
    tried = [put(book, 3, seed, measured=6 + change) for seed, change in ((1, 0.0), (2, 0.003), (3, 5.0))]
    assert results.with_other_seeds(page, 4, run=False) == (tried, [1, 2, 3])
    seen = results.compare(page, tried, [1, 2, 3])
    width = seen["two-width"]
    assert width["flips"] == 2 and width["least"][""] == 6 and width["most"][""] == 11
    assert width["spread"][""] == pytest.approx(np.std([6, 6, 6.003, 11], ddof=1))
    lines = results.seeds_table(page, seen).splitlines()
    assert any(line.startswith("two-width") and "2 of 3" in line and "0.0" in line for line in lines)
    path = results.record_seeds(book.book, seen | {"gone": width})
    assert sorted(json.loads(path.read_text())) == ["two-parts", "two-width"]  # rows that are gone are dropped
    assert verdicts.other_seeds(book.book)["two-width"]["flips"] == 2


@pytest.mark.slow
def test_the_command_counts_what_is_known_and_says_when_nothing_is(book):
    nothing = book.run("seeds", "paper/two", "--known")
    assert nothing.returncode == 2 and "no run with another seed is known" in nothing.stdout
    assert nothing.stderr == "nothing is known about other seeds; run without --known\n"
    put(book, 3, seed=1)
    put(book, 3, seed=2, measured=7.0)
    done = book.run("seeds", "paper/two", "--known", "--record")
    assert done.returncode == 1 and "2 rows, 1 flip: two-width" in done.stdout, done.stdout + done.stderr
    assert verdicts.other_seeds(book.book)["two-width"]["seeds"] == [1, 2]


@pytest.mark.slow
def test_other_seeds_are_run_and_known_from_then_on(executed):
    executed.edit("book/paper/two.md", 'check("two-width", ', 'check("two-width", (seed == 2) + ')
    assert executed.execute("two") == []
    page = executed.page("two")
    rows, seeds = results.with_other_seeds(page, 2)
    assert seeds == [1, 2] and results.compare(page, rows, seeds)["two-width"]["flips"] == 1
    assert results.with_other_seeds(page, 5, run=False) == (rows, seeds)
    assert [point.settings["seed"] for point in sweep.points(page, ["seed=1,2"], {})] == seeds
    assert set(claims.measured_in(page.name, executed.book)) == set(rows[0]["results"])
