"""`python -m lib book`: a tiny book renders, warnings fail, prose leaves other pages alone, the README's score is kept."""

import shutil

import pytest

from lib.book import build, verdicts
from lib.files import Problem

ROOT = build.pages.ROOT
CONTENTS = """format: jb-book
root: book/intro
chapters:
  - file: book/paper/one
  - file: book/paper/two
"""
README = "Our score: <!-- score -->none yet<!-- /score -->.\n"


def test_the_readme_of_the_book_says_the_score():
    said = build.SCORE.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert said and said[0] == f"{said[1]}{verdicts.score(ROOT / 'book')}{said[2]}"


@pytest.fixture(scope="module")
def built(executed_template, tmp_path_factory):
    """The small repository with the book's own configuration and extension, rendered once."""
    copy = executed_template.copy(tmp_path_factory.mktemp("built") / "repository")
    shutil.copy(ROOT / "_config.yml", copy.root)
    for folder in ("_static", "_ext"):
        shutil.copytree(ROOT / "book" / folder, copy.book / folder)
    shutil.copytree(ROOT / "lib", copy.root / "lib", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    copy.write("_toc.yml", CONTENTS)
    copy.write("README.md", README)
    copy.write("book/presets.yml", "paper/one: {smoke: {width: 1}}\n")
    copy.write("book/references.bib", "@unpublished{first,\n author = {A},\n title = {T},\n note = {N},\n year = {2026}\n}\n")
    copy.write("book/intro.md", "# Book\n\n```{scoreline}\n```\n\nSee {cite}`first`.\n\n```{bibliography}\n```\n")
    build.build(copy.root)
    return copy


def html(repository, name: str) -> str:
    return repository.read(f"_build/html/book/{name}.html")


@pytest.mark.slow
def test_a_tiny_book_renders_with_its_verdicts(built):
    page = html(built, "paper/one")
    assert "Some prose." in page and 'id="one-width"' in page and "Six is twice three." in page
    assert built.read("README.md") == README.replace("none yet", verdicts.score(built.book))
    assert "paper/one.html#one-width" in html(built, "intro")  # a square of the score links to its row


@pytest.mark.slow
def test_an_edit_in_prose_leaves_other_pages_alone(built):
    folder = built.root / "_build" / ".doctrees"
    before = {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.doctree")}
    built.edit("book/paper/one.md", "Some prose.", "Other prose.")
    build.build(built.root)
    assert "Other prose." in html(built, "paper/one")
    after = {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.doctree")}
    assert after["one.doctree"] != before["one.doctree"] and after["two.doctree"] == before["two.doctree"]


@pytest.mark.slow
def test_a_warning_fails_until_it_is_mended_and_leaves_the_readme(built):
    built.edit("book/paper/two.md", "Some prose.", "Some prose, see {doc}`nowhere`.")
    built.write("README.md", README)
    with pytest.raises(Problem, match="(?s)nowhere.*The book did not render; warnings count as errors"):
        build.build(built.root)
    assert not (built.root / "_build/.doctrees/environment.pickle").exists()  # else Sphinx would forget its warning
    assert built.read("README.md") == README
    built.edit("book/paper/two.md", ", see {doc}`nowhere`.", ".")
    build.build(built.root)
    assert "none yet" not in built.read("README.md")
