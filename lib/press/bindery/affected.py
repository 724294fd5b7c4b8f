"""What a change touches: which modules import the changed ones, which pages used them, which tests look at them.

Modules and tests are read, not imported. A name that a file takes from a room's door counts as the module that it stands in;
tests that work on a small repository of their own call the command line, and so depend on all that it reaches.
"""

import ast
import functools
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lib.press import environment, pages
from lib.press.errors import Problem
from lib.press.rendering import reference

FAR = 99  # further than any chain of imports
COMMANDS = "lib.__main__"  # what tests reach through a process of their own
OWN_REPOSITORY = re.compile(r"\b(executed|repository)\b")
# Tests of what is no module: a pattern of the changed file -> the file of tests.
OTHERS = {
    r"requirements\.txt|pyproject\.toml|Makefile|README\.md|CONTRIBUTING\.md|\.ci/.*": "tests/press/test_environment.py",
    r"book/.*claims\.yml|book/.*\.md|book/.*\.ipynb": "tests/press/test_claims.py",
    r"book/.*\.md|book/.*\.ipynb": "tests/press/test_pages.py",
    r"book/presets\.yml": "tests/press/test_runs.py",
    r"_toc\.yml|_config\.yml|book/_static/.*|book/.*\.md": "tests/test_book.py",
    r"book/_static/explorers/.*": "tests/press/test_explorers.py",
    r"data/.*": "tests/data/test_datasets.py",
    r"lib/.*": "tests/test_house.py",
}


@dataclass(frozen=True)
class Touched:
    """Tests and pages that a change touches, each with its distance: 0 looks at a changed file, 1 at one that uses it, …"""

    tests: dict[str, int]
    pages: dict[str, int]


def changed(since: str = "HEAD", root: Path = environment.ROOT) -> list[str]:
    """Files that differ from a commit, and new ones, relative to the root."""
    found = set()
    for command in (["diff", "--name-only", "--end-of-options", since, "--"], ["ls-files", "--others", "--exclude-standard"]):
        try:
            done = subprocess.run(["git", *command], cwd=root, text=True, capture_output=True)
        except OSError:
            raise Problem("git is not here, and only it knows what has changed; `python -m lib test` runs everything") from None
        if done.returncode:
            raise Problem(f"git cannot tell what has changed since '{since}': {' '.join(done.stderr.split())[:200]}")
        found |= set(done.stdout.splitlines())
    return sorted(found)


def name_of(path: str) -> str:
    """The dotted name of a module of `lib`, from its path."""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


@functools.lru_cache(maxsize=4)
def modules(root: Path) -> dict[str, Path]:
    """All modules of `lib` by their dotted names."""
    return {name_of(path.relative_to(root).as_posix()): path for path in sorted((root / "lib").glob("**/*.py"))}


@functools.lru_cache(maxsize=4096)
def home(dotted: str, root: Path) -> frozenset[str]:
    """The modules that a dotted name stands in: `lib.gated.flow` in `lib.gated` (its door) and `lib.gated.dynamics`."""
    known, parts = modules(root), dotted.split(".")
    while parts and ".".join(parts) not in known:
        parts.pop()
    found = {".".join(parts)} if parts else set()
    rest = dotted.split(".")[len(parts) :]
    if rest and parts and len(parts) == 2 and known[".".join(parts)].name == "__init__.py":
        found |= {
            f"{'.'.join(parts)}.{module}"
            for module, names in reference.door(parts[1], root).items()
            if rest[0] in (module, *names) and f"{'.'.join(parts)}.{module}" in known
        }
    return frozenset(found)


def uses(path: Path, root: Path) -> set[str]:
    """The modules of `lib` that a Python file names, at its top or inside of its functions."""
    return set(_uses(path, path.stat().st_mtime_ns, root))


@functools.lru_cache(maxsize=4096)
def _uses(path: Path, changed: int, root: Path) -> frozenset[str]:
    """Read once, and again when the file has been written."""
    short, found = {}, set()
    inside = path.relative_to(root).with_suffix("").parts
    nodes = list(ast.walk(reference.tree(path)))
    for node in nodes:
        if isinstance(node, ast.Import):
            for item in node.names:
                if item.name.split(".")[0] == "lib":
                    found |= home(item.name, root)
                    short[item.asname or item.name.split(".")[0]] = item.name if item.asname else "lib"
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*inside[: len(inside) - node.level], *([node.module] if node.module else [])])
            if base.split(".")[0] == "lib":
                for item in node.names:
                    short[item.asname or item.name] = f"{base}.{item.name}"
                    found |= home(f"{base}.{item.name}", root)
    for node in nodes:
        if isinstance(node, ast.Attribute):
            first, rest = chain(node)
            if first in short:
                found |= home(f"{short[first]}.{rest}", root)
    return frozenset(found - {"lib"})  # which holds no more than the doors


def chain(node: ast.Attribute) -> tuple[str, str]:
    """`a.b.c` as ("a", "b.c"); ("", …) where it does not begin with a name."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return node.id if isinstance(node, ast.Name) else "", ".".join(reversed(names))


def distances(names: set[str], root: Path) -> dict[str, int]:
    """How many imports lie between each module and the nearest of the changed ones, `names`."""
    importers: dict[str, set[str]] = {}
    for module, path in modules(root).items():
        for used in uses(path, root) - {module}:
            importers.setdefault(used, set()).add(module)
    far, edge = {name: 0 for name in names}, sorted(names)
    while edge:
        new = {user for name in edge for user in importers.get(name, ()) if user not in far}
        far |= {user: far[edge[0]] + 1 for user in new}
        edge = sorted(new)
    return far


def touched(files: list[str], root: Path = environment.ROOT) -> Touched:
    """The tests and pages that have to do with the changed `files`."""
    far = distances({name_of(name) for name in files if re.fullmatch(r"lib/.*\.py", name)}, root)
    tests: dict[str, int] = {}
    for path in sorted((root / "tests").glob("**/test_*.py")):
        used = {far.get(name, FAR) for name in uses(path, root)}
        if OWN_REPOSITORY.search(path.read_text(encoding="utf-8")):
            used.add(far.get(COMMANDS, FAR) + 1)
        nearest = min(used, default=FAR)
        name = path.relative_to(root).as_posix()
        if name in files:
            nearest = 0
        if nearest < FAR:
            tests[name] = nearest
    if "tests/conftest.py" in files:
        tests |= {name: 0 for name in ("tests/press/test_pages.py", "tests/press/test_runs.py")}
    for pattern, name in OTHERS.items():
        if any(re.fullmatch(pattern, file) for file in files) and (root / name).exists():
            tests[name] = min(tests.get(name, FAR), 1)
    return Touched(tests, touched_pages(files, root))


def touched_pages(files: list[str], root: Path = environment.ROOT) -> dict[str, int]:
    """Pages whose own source is among the changed `files` (0), or that used one of them when they were executed (1)."""
    found = {}
    for page in pages.every(root):
        notebook = pages.stored(page) or {"metadata": {}}
        used = (notebook["metadata"].get("racing") or {}).get("fingerprint", {}).get("files", {})
        if f"book/{page.name}.md" in files:
            found[page.name] = 0
        elif set(files) & set(used):
            found[page.name] = 1
    return found
