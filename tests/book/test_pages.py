"""Pages: finding them, what every page of the book must have, and pairs of .md and .ipynb in which no edit is lost."""

import json
import os
import re
import time

import pytest

from lib import claims
from lib.book import execute, pages
from lib.files import Problem

PAGES = pages.all_pages()
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def test_a_page_is_found_by_its_name_or_its_file():
    assert pages.find("deep_linear/modes") == pages.find("book/deep_linear/modes.md") == pages.find("deep_linear/modes.ipynb")
    assert len(PAGES) > 20 and not any(page.name.startswith("_") for page in PAGES)


@pytest.mark.parametrize("name", ["deep_linear/mode", "../README", "/etc/passwd", "deep_linear/../deep_linear/modes", ""])
def test_an_unknown_page_suggests_the_nearest(name):
    with pytest.raises(Problem, match=f"there is no page '{name}'"):
        pages.find(name)
    with pytest.raises(Problem, match="did you mean 'deep_linear/modes'"):
        pages.find("deep_linear/mode")


# --- every page of the book ------------------------------------------------------------------------------------------


@each_page
def test_a_page_names_itself_and_cites_only_what_it_measures(page):
    text = page.markdown.read_text(encoding="utf-8")
    assert f'claims.on_page("{page.name}"' in text and "{glance}" in text and "{claims}" in text
    outputs = [output for cell in pages.stored(page)["cells"] for output in cell.get("outputs", [])]
    glued = {output.get("metadata", {}).get("scrapbook", {}).get("name") for output in outputs}
    for name in re.findall(r"\{glue:text\}`([^`]+)`", text):
        assert name.split(":")[0] in glued, f"{page.name} cites {name}, which it does not measure"


@each_page
def test_nbval_compares_every_verdict(page):
    cells = [cell for cell in pages.stored(page)["cells"] if "nbval-check-output" in cell["metadata"].get("tags", [])]
    assert claims.records({"cells": cells}) == claims.records(pages.stored(page)) != {}


@each_page
def test_a_notebook_is_small_and_its_pictures_are_described(page):
    assert page.notebook.stat().st_size < 900_000 and execute.noisy(pages.stored(page)) is None
    for cell in pages.stored(page)["cells"]:
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", [])):
            about = cell["metadata"].get("mystnb", {})
            figure, start = about.get("figure", {}), pages.text(cell)[:60]
            assert figure.get("caption") and figure.get("name", "").startswith("fig-"), f"no caption or name: {start}"
            assert about.get("image", {}).get("alt"), f"no alt text: {start}"


def test_names_for_prose_are_unique_in_the_book():
    owners: dict[str, str] = {}
    for page in PAGES:
        for output in (output for cell in pages.stored(page)["cells"] for output in cell.get("outputs", [])):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            assert not name or owners.setdefault(name, page.name) == page.name, f"{name} is glued on two pages"


# --- pairs -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def pair(repository):
    """A page with a notebook as `execute` would write it, but for its outputs."""
    page = repository.page("one")
    execute.write(page, pages.source(page), {"files": {}})
    return repository, page


def test_an_edit_on_either_side_is_noticed(pair):
    repository, page = pair
    assert pages.paired(page)
    repository.edit("book/paper/one.md", "Some prose.", "Other prose.")
    assert not pages.paired(page)
    execute.refuse_if_edited(page)  # the notebook has no edit that could be lost
    repository.edit("book/paper/one.ipynb", "Some prose.", "Other prose.")
    assert pages.paired(page)
    execute.refuse_if_edited(page)  # both say the same


def test_what_a_viewer_or_jupyters_layout_changes_is_no_edit(pair):
    repository, page = pair
    notebook = json.loads(repository.read("book/paper/one.ipynb"))
    for cell in notebook["cells"]:
        cell["source"], cell["metadata"]["scrolled"] = cell["source"].splitlines(keepends=True), True
    repository.write("book/paper/one.ipynb", json.dumps(notebook, indent=4))
    assert pages.paired(page)
    execute.refuse_if_edited(page)


def sync(repository, *options):
    return repository.run("--sync", *options, "book/paper/one.ipynb", module="jupytext")


@pytest.mark.slow
def test_an_edit_in_the_notebook_is_refused_until_it_is_carried_over(pair):
    repository, page = pair
    repository.edit("book/paper/one.ipynb", "Some prose.", "Other prose.")
    edited = repository.read("book/paper/one.ipynb")
    (sentence,) = repository.execute("one")
    assert "one.ipynb was edited and its .md does not have the edit" in sentence
    assert repository.read("book/paper/one.ipynb") == edited
    options = re.search(r"jupytext --sync (.*)book/paper/one.ipynb", sentence)[1].split()
    done = sync(repository, *options)  # what the sentence says
    assert done.returncode == 0 and "Other prose." in repository.read("book/paper/one.md"), done.stderr
    assert pages.paired(page) and repository.execute("one") == []


@pytest.mark.slow
def test_where_both_were_edited_nothing_is_lost(pair):
    """Our command never suggests a sync then, and jupytext refuses to overwrite the file that is newer."""
    repository, page = pair
    repository.edit("book/paper/one.ipynb", "Some prose.", "Other prose.")
    repository.edit("book/paper/one.md", "# A page", "# The page")
    later = time.time() + 5
    os.utime(page.markdown, (later, later))
    (sentence,) = repository.execute("one")
    assert "were both edited" in sentence and "--sync" not in sentence
    done = sync(repository, "--check-source-is-newer")
    assert done.returncode != 0 and "one.ipynb is older than paired file" in done.stderr
    assert "Other prose." in repository.read("book/paper/one.ipynb") and "The page" in repository.read("book/paper/one.md")


def test_a_damaged_notebook_is_named(pair):
    repository, page = pair
    whole = repository.read("book/paper/one.ipynb")
    cells = '{"cells": [{"cell_type": "x", "metadata": {}, "source": ""}], "metadata": {}}'
    for content, message in ((whole[:300], "is not whole JSON"), ("{}", "missing required field 'cells'"), (cells, "value 'x'")):
        repository.write("book/paper/one.ipynb", content)
        with pytest.raises(Problem, match=f"book/paper/one.ipynb.*{message}"):
            pages.stored(page)
        execute.refuse_if_edited(page)  # it is made again
