"""A page and its notebook: edits on either side survive, edits on both sides are refused, a save changes what was edited."""

import difflib
import json
import os

import pytest

from lib.press import pages
from lib.press.errors import PageError
from lib.press.notebooks import pairing

PAGES = pages.every()


def changed_lines(before, after):
    """How many lines a text lost and gained."""
    return sum(line[0] in "+-" for line in difflib.ndiff(before.splitlines(), after.splitlines()))


def edit_notebook(repository, old, new, name="one"):
    """What somebody does in Jupyter: change a cell and save."""
    path = f"book/paper/{name}.ipynb"
    notebook = json.loads(repository.read(path))
    cell = next(cell for cell in notebook["cells"] if old in pages.text(cell))
    cell["source"] = pages.text(cell).replace(old, new)
    repository.write(path, json.dumps(notebook, indent=1))


def one(repository):
    return pages.Page("paper/one", repository.root)


# --- who wins --------------------------------------------------------------------------------------------------------


def test_code_edited_in_the_notebook_is_executed_and_reaches_the_md(executed, forks):
    before = executed.read("book/paper/one.md")
    edit_notebook(executed, "* width)", "* width * 1)")
    assert pages.edited(one(executed)) == "ipynb"
    assert executed.reasons("paper/one") == ["its code was edited in the notebook"]
    done = executed.run("execute")
    assert done.returncode == 0 and "paper/one: edited in the notebook, 2 lines of its .md follow" in done.stdout, done.stderr
    assert "paper/one: its code changed" in done.stdout
    after = executed.read("book/paper/one.md")
    assert "* width * 1)" in after and changed_lines(before, after) == 2
    assert executed.stale() == [] and pages.differences(one(executed)) == []


def test_prose_edited_in_the_notebook_reaches_the_md_and_nothing_runs(executed, forks):
    outputs = pages.outputs_digest(json.loads(executed.read("book/paper/one.ipynb")))
    edit_notebook(executed, "Some prose.", "Better prose.\n\nAnd more.")
    done = executed.run("execute")
    assert done.returncode == 0 and "executed in" not in done.stdout, done.stderr
    assert "Better prose.\n\nAnd more." in executed.read("book/paper/one.md")
    assert pages.outputs_digest(json.loads(executed.read("book/paper/one.ipynb"))) == outputs
    assert pages.edited(one(executed)) == "" and executed.stale() == []


def test_times_of_the_files_decide_nothing(executed):
    edit_notebook(executed, "Some prose.", "Better prose.")
    os.utime(executed.root / "book/paper/one.ipynb", (1, 1))  # older than everything, yet edited last
    assert pages.edited(one(executed)) == "ipynb"
    edit_notebook(executed, "Better prose.", "Some prose.")
    executed.edit("book/paper/one.md", "Some prose.", "Better prose.")
    os.utime(executed.root / "book/paper/one.md", (1, 1))
    assert pages.edited(one(executed)) == "md"


@pytest.mark.parametrize("command", [("execute",), ("run", "paper/one"), ("sweep", "paper/one", "--grid", "width=1,2")])
def test_an_edit_on_both_sides_is_refused_in_one_sentence(executed, command, forks):
    edit_notebook(executed, "Some prose.", "Prose of the notebook.")
    executed.edit("book/paper/one.md", "Some prose.", "Prose of the page.")
    before = {path: path.read_bytes() for path in (executed.root / "book").glob("**/one.*")}
    done = executed.run(*command)
    assert done.returncode != 0
    said = done.stderr.strip()
    assert "\n" not in said and "Traceback" not in said
    for words in ("book/paper/one.md", "book/paper/one.ipynb", "python -m lib pair paper/one", "--keep"):
        assert words in said
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("side", "wins", "loses"), [("md", "of the page", "of the notebook"), ("ipynb", "of the notebook", "of the page")]
)
def test_the_way_out_keeps_one_and_saves_the_other(executed, side, wins, loses, forks):
    edit_notebook(executed, "Some prose.", "Prose of the notebook.")
    executed.edit("book/paper/one.md", "Some prose.", "Prose of the page.")
    shown = executed.run("pair", "paper/one")
    assert (
        "both were edited" in shown.stdout and "-Prose of the page." in shown.stdout and "+Prose of the notebook." in shown.stdout
    )
    done = executed.run("pair", "paper/one", "--keep", side)
    assert done.returncode == 0, done.stderr
    both = executed.read("book/paper/one.md") + executed.read("book/paper/one.ipynb")
    assert wins in both and loses not in both
    (spare,) = (executed.root / "_build/kept").iterdir()
    assert loses in spare.read_text() and spare.name in done.stdout
    assert pages.edited(one(executed)) == "" and executed.stale() == []
    assert "they agree" in executed.run("pair", "paper/one").stdout


def test_a_notebook_without_a_mark_that_differs_is_refused_too(executed):
    notebook = json.loads(executed.read("book/paper/one.ipynb"))
    del notebook["metadata"]["racing"]
    executed.write("book/paper/one.ipynb", json.dumps(notebook))
    assert pages.edited(one(executed)) == ""
    executed.edit("book/paper/one.md", "Some prose.", "Other prose.")
    assert pages.edited(one(executed)) == "both"


def test_what_a_viewer_notes_is_not_an_edit(executed):
    notebook = json.loads(executed.read("book/paper/one.ipynb"))
    for cell in notebook["cells"]:
        cell["metadata"] |= {"editable": True, "scrolled": False, "slideshow": {"slide_type": ""}}
    notebook["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "", "id": "empty"})
    executed.write("book/paper/one.ipynb", json.dumps(notebook))
    assert pages.edited(one(executed)) == "" and executed.stale() == []


def test_a_notebook_that_is_saved_while_its_page_runs_stays(executed, forks):
    executed.edit("book/paper/one.md", "* width)", '* width)\nopen("one.ipynb", "a").write(" ")')
    before = executed.read("book/paper/one.ipynb")
    done = executed.run("execute", "paper/one")
    assert done.returncode == 1 and "one.ipynb was edited while the page ran, and stays as it is" in done.stderr
    assert executed.read("book/paper/one.ipynb") == before + " "


# --- a .md that follows ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_notebook_that_says_the_same_changes_no_letter(page):
    text = page.markdown.read_text(encoding="utf-8")
    head, cells, tail = pairing.chunks(text)
    assert "\n".join([*head, *(line for c in cells for line in (*c.gap, *c.lines)), *tail]) + "\n" == text
    assert pairing.carried(text, pages.source(page)) == text


def modes():
    page = pages.find("deep_linear/modes")
    return page.markdown.read_text(encoding="utf-8"), pages.source(page)


@pytest.mark.parametrize("n", range(0, 36, 4))
def test_an_edited_line_changes_one_line(n):
    text, notebook = modes()
    cell = notebook["cells"][n % len(notebook["cells"])]
    lines = cell["source"].split("\n")
    lines[0] += " # edited" if cell["cell_type"] == "code" else " edited"
    cell["source"] = "\n".join(lines)
    after = pairing.carried(text, notebook)
    assert changed_lines(text, after) == 2
    assert pages.inputs(notebook) == pairing._read(after)


def test_cells_that_are_added_moved_removed_and_retyped_arrive():
    text, notebook = modes()
    cells = notebook["cells"]
    new = dict(cells[0], source="New prose,\n\nin two paragraphs.", metadata={})
    code = dict(
        next(cell for cell in cells if cell["cell_type"] == "code"),
        source="x = ```1```\n\n\ny",
        metadata={"tags": ["hide-input"]},
    )
    for change in (
        lambda c: c.insert(0, new),
        lambda c: c.insert(5, new),
        lambda c: c.append(new),
        lambda c: c.insert(3, code),
        lambda c: c.pop(1),
        lambda c: c.insert(9, c.pop(2)),
        lambda c: c[4]["metadata"].update(tags=["hide-input"]),
        lambda c: c.__setitem__(2, dict(new, cell_type="raw")),
    ):
        _, fresh = modes()
        change(fresh["cells"])
        after = pairing.carried(text, fresh)
        assert pairing._read(after) == pages.inputs(fresh)
        assert changed_lines(text, after) <= 40


def test_what_cannot_be_a_page_is_refused():
    text, notebook = modes()
    notebook["cells"][0]["source"] += "\n\n```{note}\nnever closed"
    with pytest.raises(PageError, match="is a fence"):
        pairing.carried(text, notebook)


# --- what JupyterLab reads and writes --------------------------------------------------------------------------------


def test_opening_and_saving_changes_nothing(executed):
    page = one(executed)
    before = page.markdown.read_bytes(), page.notebook.read_bytes()
    notebook, agreed = pairing.opened(page)
    whole = {"parse_float": lambda number: int(float(number)) if float(number).is_integer() else float(number)}
    through_a_browser = json.loads(json.dumps(notebook), **whole)  # which writes 3.0 as 3
    assert json.dumps(through_a_browser) != json.dumps(notebook)
    assert pairing.saved(page, through_a_browser, agreed) == agreed
    assert (page.markdown.read_bytes(), page.notebook.read_bytes()) == before


def test_a_save_writes_both_and_no_more_than_was_edited(executed):
    page, before = one(executed), executed.read("book/paper/one.md")
    notebook, agreed = pairing.opened(page)
    notebook["cells"][0]["source"] = notebook["cells"][0]["source"].replace("Some prose.", "Better prose.")
    agreed = pairing.saved(page, notebook, agreed)
    assert changed_lines(before, executed.read("book/paper/one.md")) == 2
    assert pages.edited(page) == ""
    notebook["cells"][0]["source"] = notebook["cells"][0]["source"].replace("Better prose.", "Best prose.")
    pairing.saved(page, notebook, agreed)  # Lab keeps what it once opened, and saves again and again
    assert "Best prose." in executed.read("book/paper/one.md")


def test_a_save_never_takes_away_what_was_written_elsewhere(executed):
    page = one(executed)
    notebook, agreed = pairing.opened(page)
    executed.edit("book/paper/one.md", "Some prose.", "Prose of the page.")
    before = page.markdown.read_bytes(), page.notebook.read_bytes()
    notebook["cells"][0]["source"] += "\n\nFrom Lab."
    with pytest.raises(PageError, match="was edited elsewhere since this notebook was opened"):
        pairing.saved(page, notebook, agreed)
    assert (page.markdown.read_bytes(), page.notebook.read_bytes()) == before
    opened, _ = pairing.opened(page)  # reloaded, it shows the edit, with the outputs of unchanged code
    assert "Prose of the page." in pages.text(opened["cells"][0])
    assert opened["cells"][-1]["outputs"]
