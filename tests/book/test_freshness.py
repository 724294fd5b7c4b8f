"""Freshness: exactly what decides a page's outputs makes it stale."""

import json

import pytest

from lib.book import freshness, pages


@pytest.mark.parametrize("page", pages.all_pages(), ids=lambda page: page.name)
def test_every_page_of_the_book_is_fresh_and_paired(page):
    assert freshness.stale(page) == []
    assert pages.paired(page)


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("x = 2", "x = 2  # a remark", True),
        ("x = 2", "x  =  (2)", True),
        ("x = 2", '"""What it is."""\nx = 2', True),
        ("x = 2", "x = 2.0", False),
        ("x = 2", "x = 2\ny = 3", False),
        ("return x", "return -x", False),
    ],
)
def test_comments_docstrings_and_layout_do_not_count(tmp_path, old, new, same):
    code, path = "x = 2\n\n\ndef f():\n    return x\n", tmp_path / "module.py"
    path.write_text(code)
    before, in_page = freshness.file_digest(path), {"cells": [{"cell_type": "code", "source": code}]}
    path.write_text(code.replace(old, new))
    assert (freshness.file_digest(path) == before) is same
    edited = {"cells": [{"cell_type": "code", "source": code.replace(old, new)}]}
    assert (freshness.code_digest(edited) == freshness.code_digest(in_page)) is same


# --- on pages that a kernel has executed -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_page_depends_on_what_its_kernel_used(executed):
    assert executed.stale() == {}
    used = json.loads(executed.read("book/paper/one.ipynb"))["metadata"]["racing"]["fingerprint"]["files"]
    assert set(used) == {"data/two.txt", "lib/alpha.py", "lib/claims.py", "lib/files.py"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "stale"),
    [
        ("lib/alpha.py", "return float", "return 1 * float", {"paper/one": "lib/alpha.py changed"}),
        ("lib/alpha.py", "def value():", '# a remark\ndef value():\n    """What it is."""', {}),
        ("lib/gamma.py", "2.0", "2.5", {"paper/two": "lib/gamma.py changed"}),  # imported by an imported module
        ("lib/plots.py", "WIDTH = 7.4", "WIDTH = 7.5", {}),  # neither page draws
        ("data/two.txt", "2", "2.0", {"paper/one": "data/two.txt changed"}),
        ("book/paper/one.md", "* width)", "* width * 1)", {"paper/one": "its code changed"}),
        ("book/paper/one.md", "* width)", "* width)  # a remark", {}),
        ("book/paper/one.md", "Some prose.", "Other prose.", {}),
        ("book/paper/claims.yml", "Six is", "Surely six is", dict.fromkeys(["paper/one", "paper/two"], "its claims changed")),
        ("book/paper/claims.yml", "where: Eq. 1", "where: Eq. 1\n  note: a word", {}),  # the page does not show it
        ("book/paper/one.ipynb", '"measured": 6.0', '"measured": 6.1', {"paper/one": "its outputs are not those"}),
        ("book/paper/one.ipynb", "[reproduced] one", "[not reproduced] one", {"paper/one": "its outputs are not those"}),
        ("requirements.txt", "torch==", "torch==9", dict.fromkeys(["paper/one", "paper/two"], "the pinned versions changed")),
        ("requirements.txt", "ruff==", "ruff==9", {}),
    ],
)
def test_an_edit_makes_exactly_the_right_pages_stale(executed, file, old, new, stale):
    executed.edit(file, old, new)
    found = executed.stale()
    assert list(found) == list(stale)
    assert all(reasons[0].startswith(stale[name]) and len(reasons) == 1 for name, reasons in found.items())


@pytest.mark.slow
def test_what_is_deleted_or_damaged_makes_a_page_stale(executed):
    (executed.root / "data/two.txt").unlink()
    executed.write("book/paper/two.ipynb", executed.read("book/paper/two.ipynb")[:500])
    found = executed.stale()
    assert found["paper/one"] == ["data/two.txt changed"] and "two.ipynb is not whole JSON" in found["paper/two"][0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new", "same"),
    [
        ("book/paper/claims.yml", "= 6", "= 7", True),  # judged anew, not measured anew
        ("lib/claims.py", "LEVEL = 0.95", "LEVEL = 0.9", True),
        ("lib/gamma.py", "2.0", "2.0  # two", True),
        ("lib/gamma.py", "2.0", "2.5", False),
        ("requirements.txt", "torch==", "torch==9", False),
    ],
)
def test_a_run_is_of_what_measures_and_not_of_what_judges(executed, file, old, new, same):
    before = freshness.run_fingerprint(executed.page("two"))
    executed.edit(file, old, new)
    assert (freshness.run_fingerprint(executed.page("two")) == before) is same
