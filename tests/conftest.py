"""What several test modules share: a small repository of its own, to run and to break on purpose."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lib.book import execute, freshness, pages

ROOT = Path(__file__).resolve().parent.parent
torch.set_num_threads(1)

PAGE = """---
jupytext:
  formats: md:myst,ipynb
kernelspec:
  name: python3
  display_name: Python 3
---

# A page

Some prose.

```{code-cell} ipython3
:tags: [parameters]
width: int = 3   # how wide [1, 10]
name: str = "x"  # what it is called
seed: int = 0    # moves nothing [0, 9]
```

```{code-cell} ipython3
from lib import MODULE
from lib import claims
check = claims.on_page("paper/PAGE")
```

```{code-cell} ipython3
:tags: [nbval-check-output]
check("PAGE-parts", {"z": MODULE.value(), "a": 3.0})
check("PAGE-width", MODULE.value() * width)
```
"""

CLAIMS = """- id: PAGE-width
  page: PAGE
  author: paper
  where: Eq. 1
  claim: Six is twice three.
  expect: "= 6"
  tolerance: 0.01
  reason: exact
  verdict: reproduced
- id: PAGE-parts
  page: PAGE
  author: paper
  where: Eq. 2
  claim: Two numbers with names that are not in alphabetical order.
  expect: "in [1, 4]"
  reason: exact
  verdict: reproduced
"""


class Repository:
    """The book's machinery with two tiny pages: `one` reads a data file, `two` uses a module of a module."""

    def __init__(self, root: Path):
        self.root = root
        self.book = root / "book"

    @classmethod
    def make(cls, root: Path) -> "Repository":
        made = cls(root)
        shutil.copytree(ROOT / "lib" / "book", root / "lib" / "book", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("files.py", "claims.py", "plots.py", "__main__.py"):
            shutil.copy(ROOT / "lib" / name, root / "lib" / name)
        (made.book / "paper").mkdir(parents=True)
        for name in ("requirements.txt", "pyproject.toml", "book/conftest.py"):
            shutil.copy(ROOT / name, root / name)
        made.write("lib/__init__.py", "")
        made.write("data/two.txt", "2")
        reads = "DATA = Path(__file__).parent.parent / 'data/two.txt'\n\n\ndef value():\n    return float(DATA.read_text())\n"
        made.write("lib/alpha.py", "from pathlib import Path\n\n" + reads)
        made.write("lib/gamma.py", "TWO = 2.0\n")
        made.write("lib/beta.py", "from lib import gamma\n\n\ndef value():\n    return gamma.TWO\n")
        for name, module in (("one", "alpha"), ("two", "beta")):
            made.write(f"book/paper/{name}.md", PAGE.replace("PAGE", name).replace("MODULE", module))
        claims = "".join(CLAIMS.replace("PAGE", name) for name in ("one", "two"))
        made.write("book/paper/claims.yml", "title: A paper\nclaims:\n" + claims)
        return made

    def copy(self, root: Path) -> "Repository":
        return Repository(Path(shutil.copytree(self.root, root)))

    def page(self, name: str) -> pages.Page:
        return pages.find(f"paper/{name}", self.root)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        text = self.read(name)
        assert old in text, f"{name} does not have {old!r}"
        self.write(name, text.replace(old, new))

    def environment(self) -> dict[str, str]:
        """That of a user of this repository. Nothing is compiled for keeps: a module may be edited twice within a second."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "RACING"))}
        return clean | {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, *arguments: str, module: str = "lib") -> subprocess.CompletedProcess:
        """`python -m lib …` (or another module) inside this repository."""
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.run(command, cwd=self.root, env=self.environment(), text=True, capture_output=True, timeout=300)

    def execute(self, *names: str, force: bool = False) -> list[str]:
        """Bring these pages (or all) up to date; returns what went wrong."""
        chosen = [self.page(name) for name in names] or pages.all_pages(self.root)
        return execute.bring_up_to_date(chosen, force=force)

    def stale(self) -> dict[str, list[str]]:
        """Why pages are stale; those that are fresh are left out."""
        found = {page.name: freshness.stale(page) for page in pages.all_pages(self.root)}
        return {name: reasons for name, reasons in found.items() if reasons}


@pytest.fixture(autouse=True)
def no_settings_of_this_shell(monkeypatch):
    """What a developer has set for own runs does not count here."""
    for name in ("RACING_DRAFT", "RACING_RUNS", "RACING_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


@pytest.fixture(scope="session")
def template(tmp_path_factory) -> Repository:
    """The small repository, made once."""
    return Repository.make(tmp_path_factory.mktemp("template") / "repository")


@pytest.fixture
def repository(template, tmp_path) -> Repository:
    """A copy of the small repository; its pages have never been executed."""
    return template.copy(tmp_path / "repository")


@pytest.fixture(scope="session")
def executed_template(template, tmp_path_factory) -> Repository:
    """Both tiny pages, executed once; tests that ask for this are slow."""
    made = template.copy(tmp_path_factory.mktemp("executed") / "repository")
    assert made.execute() == []
    return made


@pytest.fixture
def executed(executed_template, tmp_path) -> Repository:
    """A copy of the executed repository, free to be damaged."""
    return executed_template.copy(tmp_path / "executed")
