"""Pages and notebooks: pairing, freshness, execution, and nbval over damaged pages."""

import json

import pytest

from lib.press import claims, pages
from lib.press.workbench import execution

PAGES = pages.every()


def test_there_are_pages():
    assert len(PAGES) >= 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_and_notebook_are_a_pair(page):
    assert pages.differences(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_is_fresh(page):
    assert pages.stale(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_has_a_verdict_that_nbval_compares(page):
    cells = [cell for cell in pages.stored(page)["cells"] if "nbval-check-output" in cell["metadata"].get("tags", [])]
    compared = claims.records({"cells": cells})
    assert compared, "no verdict cell is tagged nbval-check-output"
    assert compared == claims.records(pages.stored(page)), "a verdict is shown in a cell that nbval does not compare"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_notebook_is_small_and_quiet(page):
    assert page.notebook.stat().st_size < 900_000
    assert execution.noisy(pages.stored(page)) is None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_picture_has_a_caption_and_alt_text(page):
    for cell in pages.stored(page)["cells"]:
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", [])):
            about = cell["metadata"].get("mystnb", {})
            start = pages.text(cell)[:60]
            assert about.get("figure", {}).get("caption"), f"no caption: {start}"
            assert about.get("figure", {}).get("name", "").startswith("fig-"), f"no name: {start}"
            assert about.get("image", {}).get("alt"), f"no alt text: {start}"


def test_names_for_prose_are_unique_in_the_book():
    owners: dict[str, str] = {}
    for page in PAGES:
        for cell in pages.stored(page)["cells"]:
            for output in cell.get("outputs", []):
                name = output.get("metadata", {}).get("scrapbook", {}).get("name")
                if name:
                    assert owners.setdefault(name, page.name) == page.name, f"{name} is glued on two pages"


def test_unknown_page_suggests_the_nearest():
    with pytest.raises(pages.PageError, match="did you mean 'deep_linear/modes'"):
        pages.find("deep_linear/mode")
    for bad in ("../README", "/etc/passwd", "deep_linear/../deep_linear/modes"):
        with pytest.raises(pages.PageError, match="there is no page"):
            pages.find(bad)


# --- freshness is sound ----------------------------------------------------------------------------------------------


def test_nothing_is_stale_after_execution(executed):
    assert executed.stale() == []
    used = json.loads(executed.read("book/paper/one.ipynb"))["metadata"]["racing"]["fingerprint"]["files"]
    assert "lib/alpha.py" in used and "data/two.txt" in used and "lib/press/claims.py" in used
    assert "lib/beta.py" not in used and "lib/linear/theory.py" not in used


@pytest.mark.parametrize(
    ("file", "old", "new", "stale"),
    [
        ("lib/alpha.py", "return float", "return 1 * float", ["paper/one"]),
        ("lib/beta.py", "gamma.TWO", "gamma.TWO + 0", ["paper/two"]),
        ("lib/gamma.py", "2.0", "2.5", ["paper/two"]),  # imported by an imported module
        ("lib/linear/theory.py", "Modes", "Modes_", []),  # used by neither page
        ("data/two.txt", "2", "2.0", ["paper/one"]),
        ("lib/press/claims.py", "import difflib", "import difflib\nFOUR = 4", ["paper/one", "paper/two"]),
        ("book/paper/one.md", "* width)", "* width )", ["paper/one"]),
        ("book/paper/one.md", "Some prose.", "Other prose.", []),
        (
            "book/paper/claims.yml",
            "id: one-width\n  page: one\n  author: paper",
            "id: one-width\n  page: one\n  author: book",
            ["paper/one"],
        ),
        ("book/paper/claims.yml", "where: Eq. 1", "where: Eq. 2\n  note: a word", []),  # decides nothing that the page shows
        ("requirements.txt", "tqdm==", "tqdm==0", ["paper/one", "paper/two"]),
    ],
)
def test_an_edit_makes_exactly_the_right_pages_stale(executed, file, old, new, stale):
    executed.edit(file, old, new)
    assert executed.stale() == stale


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("lib/alpha.py", "def value():", "# a remark\ndef value():"),
        ("lib/alpha.py", "def value():\n", 'def value():\n    """What it returns."""\n'),
        ("lib/alpha.py", "return float", "return  float"),
        ("lib/press/claims.py", "Claims and verdicts", "Verdicts and claims"),  # in its docstring
    ],
)
def test_comments_docstrings_and_layout_make_nothing_stale(executed, file, old, new):
    executed.edit(file, old, new)
    assert executed.stale() == []


def test_a_deleted_data_file_makes_its_page_stale(executed):
    (executed.root / "data/two.txt").unlink()
    assert executed.reasons("paper/one") == ["data/two.txt changed"]


def test_an_edit_in_prose_keeps_the_outputs(executed, forks):
    before = json.loads(executed.read("book/paper/one.ipynb"))
    executed.edit("book/paper/one.md", "Some prose.", "Better prose.")
    done = executed.run("execute")
    assert "prose changed, outputs kept" in done.stdout and done.returncode == 0, done.stderr
    after = json.loads(executed.read("book/paper/one.ipynb"))
    assert any("Better prose." in pages.text(cell) for cell in after["cells"])
    for old, new in zip(before["cells"], after["cells"], strict=True):
        assert old.get("outputs") == new.get("outputs")
    marks = [one["metadata"]["racing"] for one in (before, after)]
    assert marks[0]["pair"] != marks[1]["pair"] == pages.inputs_digest(after)  # what both now say
    assert {**marks[0], "pair": ""} == {**marks[1], "pair": ""}


def test_executing_an_unchanged_page_changes_no_byte(executed):
    before = {name: (executed.root / f"book/paper/{name}.ipynb").read_bytes() for name in ("one", "two")}
    assert executed.run("execute", "--force").returncode == 0
    for name, content in before.items():
        assert (executed.root / f"book/paper/{name}.ipynb").read_bytes() == content


# --- pages that fail -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("* width)", "* width + 1)", "measured 'not reproduced'"),  # a regression
        ('check("one-width", ', 'raise ValueError("broken"); (', "broken"),
        ("* width)", "* width); object()", "memory address"),
        ("* width)", "* width); import sys; print('noise', file=sys.stderr)", "writes to stderr"),
        (
            "* width)",
            "* width); import urllib.request; urllib.request.urlopen('http://example.org')",
            "asked the network for example.org",
        ),
    ],
)
def test_a_failing_page_is_reported_and_nothing_is_written(executed, old, new, message, forks):
    before = executed.read("book/paper/one.ipynb")
    executed.edit("book/paper/one.md", old, new)
    done = executed.run("execute", "paper/one")
    assert done.returncode == 1
    assert message in done.stderr
    assert executed.read("book/paper/one.ipynb") == before


def test_an_unexpected_success_fails_the_page_too(executed, forks):
    executed.edit(
        "book/paper/claims.yml", "verdict: reproduced\n- id: two", "verdict: not reproduced\n  note: because\n- id: two"
    )
    done = executed.run("execute", "paper/one")
    assert done.returncode == 1 and "declares 'not reproduced'" in done.stderr


def nbval(repository, *more):
    options = ("--nbval-lax", "--nbval-current-env", "book/paper/one.ipynb", "-p", "no:cacheprovider")
    return repository.run(*options, *more, module="pytest", RACING_OFFLINE="1")


def test_nbval_passes_on_the_committed_notebook(executed, forks):
    done = nbval(executed)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"verdict": "reproduced"', '"verdict": "not reproduced"'),  # the record
        ("[reproduced] one-width", "[not reproduced] one-width"),  # the text that readers see
        ('"measured": 6.0', '"measured": 7.0'),  # the number
    ],
)
def test_nbval_fails_when_a_stored_verdict_is_edited(executed, old, new, forks):
    executed.edit("book/paper/one.ipynb", old, new)
    done = nbval(executed)
    assert done.returncode == 1, done.stdout
    assert "Cell outputs differ" in done.stdout


def test_a_notebook_that_differs_from_its_source_is_found(executed):
    executed.edit("book/paper/one.ipynb", "Some prose.", "Some other prose.")
    assert len(pages.differences(pages.Page("paper/one", executed.root))) == 1
    executed.edit("book/paper/two.ipynb", "* width)", "* width + 0)")
    assert len(pages.differences(pages.Page("paper/two", executed.root))) == 1
