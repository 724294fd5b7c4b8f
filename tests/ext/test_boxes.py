"""Boxes, downloads and the reference: what a reader would miss."""

import csv
import io
import json
import re

import api
import downloads
import page_boxes
import paper_pages
import pytest

from lib.book import pages, runs, verdicts

BOOK = pages.ROOT / "book"
PAGES = pages.all_pages()
RAW = re.compile(r"(?<!`)\{[a-z:]+\}`[^`]*`|^(?:```+|:::+)\{[a-z:-]+\}", re.M)
EXAMPLES = re.findall(
    r"^## ([^\n]+)\n.*?^```python\n(.*?)^```", (BOOK / "library/index.md").read_text(encoding="utf-8"), re.S | re.M
)


def recorded(directive, page, rows, monkeypatch):
    monkeypatch.setattr(runs, "recorded", lambda _: rows)
    shown = []
    monkeypatch.setattr(page_boxes.Recorded, "parse", lambda self, text: shown.append(text) or [text])
    return directive(page_boxes.Recorded, f"book/{page}").run()


def test_recorded_runs_say_when_where_and_at_what_cost(directive, monkeypatch):
    page = next(page for page in PAGES if list(page.markdown.parent.glob(f"recorded/{page.markdown.stem}-*.json")))
    (row, *_) = runs.recorded(page)
    (text,) = recorded(directive, page.name, [row | {"commit": "0123456789ab", "current": True}], monkeypatch)
    for fact in (row["finished"][:10], "commit `0123456`", row["machine"], f"on {row['device']}"):
        assert f"{fact} ·" in text or f"· {fact}" in text or fact in text
    assert "has changed since" not in text
    (text,) = recorded(directive, page.name, [row | {"commit": "", "current": False}], monkeypatch)
    assert "The page's code has changed since." in text and "commit" not in text.partition("):")[0]


def test_a_page_depends_on_its_own_claims_and_a_paper_on_all_its_notebooks(directive):
    box = directive(page_boxes.ClaimList, "book/neural_race/routing")
    box.parse = lambda text: []
    box.run()
    noted = [path for path in box.env.depends if "/_ext/" not in path]
    assert noted == [str(BOOK / "neural_race" / "claims.yml")]
    index = directive(paper_pages.FigureIndex, "book/neural_race/index")
    index.run()
    assert {str(page.notebook) for page in PAGES if page.name.startswith("neural_race/")} <= set(index.env.depends)


def test_verdicts_can_be_downloaded():
    found = downloads.table(pages.ROOT)
    assert [row["id"] for row in found] == [claim.id for claim, _ in verdicts.rows(BOOK)]
    lines = list(csv.DictReader(io.StringIO(downloads.as_csv(found))))
    assert [line["verdict"] for line in lines] == [row["verdict"] for row in found]
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_notebooks_for_download_are_readable_anywhere(page):
    stored, made = pages.stored(page), json.loads(downloads.readable(page).read_text(encoding="utf-8"))
    glued = downloads.numbers(stored)
    for old, new in zip(stored["cells"], made["cells"], strict=True):
        if old["cell_type"] == "markdown":
            assert not RAW.findall(pages.text(new))
            for name in re.findall(r"\{glue:text\}`([\w-]+)`", pages.text(old)):
                assert glued[name] in pages.text(new)
        else:
            assert old == new


def test_myst_as_plain_markdown():
    shown = downloads.plain(
        "````{answer} fig-a\nIn {glue:text}`n` cases ({numref}`fig-a`, {doc}`other <../b>`).\n````",
        {"n": "20", "fig-a": "Figure 2"},
    )
    assert shown == "**The short answer.**\n\nIn 20 cases (Figure 2, other).\n"
    assert downloads.plain("```{math}\na = b\n```", {}) == "$$\na = b\n$$"
    assert downloads.plain("```python\nx = 1\n```", {}) == "```python\nx = 1\n```"
    assert downloads.plain("(eq)=\n$$\na\n$$ (eq-a)", {"eq-a": "(1)"}) == "$$\na\n$$ (1)"


def test_docstrings_become_restructured_text():
    lines = "Half of *all* |W1|² for a_b, `x * y`s.\n\n    a = 1\n\n    b = 2\n\n1. Not a list.\n- Nor this.".splitlines()
    api.docstring(None, "function", "f", None, None, lines)
    text = "\n".join(lines)
    assert "Half of *all* \\|W1\\|² for a\\_b, \\ ``x * y``\\ s." in text
    assert ".. code-block:: python\n\n   a = 1\n\n   b = 2" in text
    assert "\\1. Not a list.\n\\- Nor this." in text
    assert api.program("    y = A · x").startswith(".. code-block:: text")


def examples():
    """(where, code) of the examples of *I have … and want …* and of every package's docstring."""
    yield from EXAMPLES
    for path in sorted(pages.ROOT.glob("lib/*/__init__.py")):
        text = re.search(r'"""(.*?)"""', path.read_text(encoding="utf-8"), re.S)
        code = [line[4:] for line in text[1].splitlines() if line.startswith("    ")] if text else []
        if code and path.parent.name != "book":
            yield path.parent.name, "\n".join(code)


@pytest.mark.parametrize(("title", "code"), [pytest.param(*one, id=one[0]) for one in examples()])
def test_examples_run(title, code, capsys):
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    exec(compile(code, title, "exec"), {})
    assert capsys.readouterr().out.strip(), "an example shows something"
