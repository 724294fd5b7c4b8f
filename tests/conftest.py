"""What several test modules share: a small repository of its own, to break on purpose."""

import compileall
import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lib.press.notebooks import nursery

ROOT = Path(__file__).resolve().parent.parent
torch.set_num_threads(1)
compileall.compile_dir(ROOT / "lib", quiet=2)  # once, whatever the environment says: hundreds of processes import it
# `python -m MODULE …` without a grammar of addresses that takes 1.2 seconds to load with notebooks, and that nobody asks.
QUICK = "import runpy, sys; sys.modules['rfc3987_syntax'] = None; sys.argv = sys.argv[1:]"
DRAWING = ("sweep", "results", "report", "compare", "plot", "book")  # commands that draw, and import what they draw with
MODULE = f"{QUICK}; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"

HEADER = """---
jupytext:
  formats: md:myst,ipynb
kernelspec:
  name: python3
  display_name: Python 3
---
"""

PAGE = (
    HEADER
    + """
# A page

Some prose.

```{code-cell} ipython3
:tags: [parameters]
width: int = 3   # how wide [1, 10]
name: str = "x"  # what it is called
```

```{code-cell} ipython3
from lib import MODULE
from lib.press import claims
check = claims.on_page("paper/PAGE")
```

```{code-cell} ipython3
:tags: [nbval-check-output]
check("PAGE-parts", {"z": MODULE.value(), "a": 3.0})
check("PAGE-width", MODULE.value() * width)
```
"""
)

CLAIM = """- id: PAGE-width
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


def linked(source: str, target: str) -> None:
    """The same file under another name, which costs a quarter of a copy; where that cannot be, a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


class Repository:
    """A copy of the book's machinery with two tiny pages; `one` reads a data file, `two` uses a module of a module."""

    small = None  # the address of the small interpreter that forks, once there is one (`nursed`)

    def __init__(self, root: Path):
        self.root = root
        (root / "book" / "paper").mkdir(parents=True)
        (root / "data").mkdir()
        shutil.copytree(ROOT / "lib", root / "lib", ignore=shutil.ignore_patterns("*.pyc.*"))  # which somebody is writing
        for name in ("requirements.txt", "pyproject.toml"):
            shutil.copy(ROOT / name, root / name)
        shutil.copy(ROOT / "book" / "conftest.py", root / "book" / "conftest.py")
        self.write("data/two.txt", "2")
        reads = "DATA = Path(__file__).parent.parent / 'data/two.txt'\n\n\ndef value():\n    return float(DATA.read_text())\n"
        self.write("lib/alpha.py", "from pathlib import Path\n\n" + reads)
        self.write("lib/gamma.py", "TWO = 2.0\n")
        self.write("lib/beta.py", "from lib import gamma\n\n\ndef value():\n    return gamma.TWO\n")
        self.write("book/paper/one.md", PAGE.replace("PAGE", "one").replace("MODULE", "alpha"))
        self.write("book/paper/two.md", PAGE.replace("PAGE", "two").replace("MODULE", "beta"))
        self.write(
            "book/paper/claims.yml", "title: A paper\nclaims:\n" + "".join(CLAIM.replace("PAGE", p) for p in ("one", "two"))
        )

    def copy(self, root: Path) -> "Repository":
        """The same somewhere else, free to be damaged; its `lib` shares files until `write` makes new ones."""
        shutil.copytree(self.root, root, ignore=lambda folder, names: ["lib"] if folder == str(self.root) else [])
        shutil.copytree(self.root / "lib", root / "lib", copy_function=linked)
        copy = object.__new__(Repository)
        copy.root = root
        return copy

    def write(self, name: str, text: str) -> None:
        if name.startswith("lib/"):  # which other copies have, too
            (self.root / name).unlink(missing_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        text = self.read(name)
        assert old in text
        self.write(name, text.replace(old, new))

    def environment(self) -> dict[str, str]:
        """That of a user of this repository: without what belongs to this run of the tests, but for `forks`.

        It compiles nothing for keeps: a module that is edited twice within a second would be taken for what it was before.
        """
        forking = (nursery.ADDRESS, nursery.PYTHON) if nursery.PYTHON in os.environ else ()
        clean = {k: v for k, v in os.environ.items() if k in forking or not k.startswith(("PYTEST", "RACING"))}
        return clean | {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, *arguments: str, module: str = "lib", **environment: str) -> subprocess.CompletedProcess:
        """`python -m lib …` (or another module) inside this repository; with `forks` in one of those."""
        env = self.environment() | environment
        command = [sys.executable, *(["-m", "lib"] if module == "lib" else ["-c", MODULE, module]), *arguments]
        if nursery.PYTHON in os.environ:
            large = arguments[0] in DRAWING and nursery.ADDRESS in os.environ
            client = nursery.client(os.environ[nursery.ADDRESS]) if large else json.loads(os.environ[nursery.PYTHON])
            command = [*client, "-m", module, *arguments]
        return subprocess.run(command, cwd=self.root, env=env, text=True, capture_output=True, timeout=300)

    def stale(self) -> list[str]:
        return [name for name, reasons in self.ask().items() if reasons]

    def reasons(self, name: str) -> list[str]:
        """Why a page is stale."""
        return self.ask(name)[name]

    def ask(self, *names: str) -> dict[str, list[str]]:
        """Why pages are stale, asked of this repository's own machinery."""
        python = nursery.client(self.small) if self.small else [sys.executable, "-c", MODULE]
        command = [*python, *(["-m"] if self.small else []), "reasons", *names]
        env = os.environ | {"PYTHONPATH": os.pathsep.join([str(self.root), str(ROOT / "tests")])}
        done = subprocess.run(command, cwd=self.root, env=env, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="session")
def nursed():
    """Interpreters that fork: a large one, that of the whole suite if there is one, and the address of a small one.

    The small one has nothing in memory that the tiny pages do not need, which makes its forks three times as cheap.
    """
    from lib.press.workbench import execution

    with contextlib.ExitStack() as stack:
        if nursery.ADDRESS not in os.environ:
            modules = nursery.MODULES + nursery.MORE + nursery.SUITE
            stack.enter_context(nursery.Nursery(execution.kernel_environment(ROOT), modules))
        before = os.environ[nursery.ADDRESS]
        small = stack.enter_context(nursery.Nursery(execution.kernel_environment(ROOT), nursery.PRESS))
        os.environ[nursery.ADDRESS] = before
        Repository.small = small.address
        yield small.address
        Repository.small = None


@pytest.fixture
def forks(nursed):
    """Points, pages and their kernels start at once: for tests of what they do, not of how they start and end."""
    with nursery.used(address=nursed):
        yield


@pytest.fixture(scope="session")
def template(tmp_path_factory) -> Repository:
    """The small repository, made once."""
    return Repository(tmp_path_factory.mktemp("template") / "repository")


@pytest.fixture
def repository(template, tmp_path) -> Repository:
    return template.copy(tmp_path / "repository")


@pytest.fixture(scope="session")
def executed_template(template, tmp_path_factory, nursed) -> Repository:
    """Both tiny pages, executed once, in forks; that processes of their own write the same is tested in `test_bindery.py`."""
    made = template.copy(tmp_path_factory.mktemp("executed") / "repository")
    with nursery.used(address=nursed):
        done = made.run("execute")
    assert done.returncode == 0, done.stderr + done.stdout
    return made


@pytest.fixture
def executed(executed_template, tmp_path) -> Repository:
    """A fresh copy of the executed repository, free to be damaged."""
    return executed_template.copy(tmp_path / "copy")


@pytest.fixture(scope="session")
def defaults():
    """A function: for a room, the defaults of its functions and methods that are real numbers, and those that it promises.

    {"module.function": {argument: default}} each; the promises are in `tests/defaults.yml`. Pages and readers leave them out.
    """
    import importlib
    import inspect
    import pkgutil

    import yaml

    promised = yaml.safe_load((ROOT / "tests" / "defaults.yml").read_text(encoding="utf-8"))

    def of_function(function) -> dict:
        values = {p.name: p.default for p in inspect.signature(function).parameters.values()}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        return {
            n: v
            for n, v in plain.items()
            if isinstance(v, float) or (isinstance(v, list) and any(isinstance(x, float) for x in v))
        }

    def of_room(room: str) -> tuple[dict, dict]:
        found = {}
        for info in pkgutil.walk_packages(importlib.import_module(f"lib.{room}").__path__, f"lib.{room}."):
            module = importlib.import_module(info.name)
            own = {name: thing for name, thing in vars(module).items() if getattr(thing, "__module__", "") == info.name}
            for name, thing in dict(own).items():
                if inspect.isclass(thing) and not hasattr(thing, "__dataclass_fields__"):
                    own |= {f"{name}.{method}": value for method, value in vars(thing).items()}
            functions = {name: of_function(thing) for name, thing in own.items() if inspect.isfunction(thing)}
            found |= {f"{info.name.removeprefix('lib.')}.{name}": values for name, values in functions.items() if values}
        return found, {name: values for name, values in promised.items() if name.startswith(f"{room}.")}

    return of_room
