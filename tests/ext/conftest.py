"""The Sphinx extension is importable, and its directives can be asked for what they show without a build."""

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser():
    """The path of a Chromium; tests that need one are skipped without."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return found or pytest.skip("there is no Chromium on this machine")


@pytest.fixture(scope="session")
def directive():
    """directive(kind, document, name="", *arguments, **options): a directive of the extension as it stands in a document."""
    from lib.book import pages, verdicts

    known = {f"book/{page.name}" for page in pages.all_pages()} | {f"book/{part}/index" for part in verdicts.parts(ROOT / "book")}
    builder = SimpleNamespace(get_relative_uri=lambda here, there: f"{there}.html")

    def make(kind, document, name="", *arguments, **options):
        env = SimpleNamespace(srcdir=str(ROOT), docname=document, found_docs=known, app=SimpleNamespace(builder=builder))
        env.depends, env.config = [], SimpleNamespace(copyright="2026")
        env.note_dependency = env.depends.append
        state = SimpleNamespace(document=SimpleNamespace(settings=SimpleNamespace(env=env)))
        return kind(name, list(arguments), options, [], 0, 0, "", state, SimpleNamespace(reporter=None))

    return make
