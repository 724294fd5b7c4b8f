"""The table of contents beside every page: quick, and the same to the letter as Sphinx's own."""

import io

import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from lib.press.bindery import sidebar

PAGES = {
    "index": "Book\n====\n\n.. toctree::\n   :caption: One\n\n   one\n   deep/two\n\n.. toctree::\n\n   three\n",
    "one": "One $x$\n=======\n\nA\n-\n\nB\n~\n\nC\n-\n",
    "deep/two": "*Two*\n=====\n\nA\n-\n\n.. toctree::\n\n   four\n",
    "deep/four": "Four\n====\n\nD\n-\n",
    "three": "Three\n=====\n",
}
OPTIONS = {"maxdepth": 4, "collapse": False, "includehidden": True, "titles_only": True}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """A small book, read and not written."""
    root = tmp_path_factory.mktemp("small")
    for name, text in PAGES.items():
        path = root / f"{name}.rst"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    with patch_docutils(), docutils_namespace():
        made = Sphinx(
            root, None, root / "html", root / "trees", "html", confoverrides={}, status=io.StringIO(), warning=io.StringIO()
        )
        made.builder.read()
        made.builder.prepare_writing(set(PAGES))
        sidebar.forget(made)
        yield made


def both(app, page, **options):
    """The table of a page as Sphinx makes it, and ours."""
    plain = {"toctree": lambda **given: app.builder._get_local_toctree(page, **given)}
    context = dict(plain)
    sidebar.quick(app, page, "page.html", context, None)
    return plain["toctree"](**OPTIONS | options), context["toctree"](**OPTIONS | options)


@pytest.mark.parametrize("page", [*PAGES, "_modules/lib/a", "_modules/lib/b", "_modules/c", "search"])
@pytest.mark.parametrize("options", [{}, {"collapse": True}, {"titles_only": False}, {"maxdepth": 1}], ids=str)
def test_it_is_sphinxs_own_table(app, page, options):
    plain, ours = both(app, page, **options)
    assert ours == plain and "Three" in plain
    assert app.env.tocs["one"].astext().count("B") == 1, "headings of pages are as they were"


def test_what_stands_in_no_table_shares_one_by_folder(app, monkeypatch):
    sidebar.forget(app)
    asked = []
    made = app.builder._get_local_toctree
    monkeypatch.setattr(app.builder, "_get_local_toctree", lambda page, **given: asked.append(page) or made(page, **given))
    for page in ("_modules/lib/a", "_modules/lib/b", "_modules/c", "one", "one"):
        context = {"toctree": lambda page=page, **given: app.builder._get_local_toctree(page, **given)}
        sidebar.quick(app, page, "page.html", context, None)
        context["toctree"](**OPTIONS)
    assert asked == ["_modules/lib/a", "_modules/c", "one"]
