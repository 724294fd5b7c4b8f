"""How the code hangs together: who may import whom, everything public described, machinery that stays small."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("linear", "data", "complexity", "gated", "relu", "redshift", "biases")  # each uses only those before it
MODULES = sorted([*(ROOT / "lib").glob("**/*.py"), *(ROOT / "book" / "_ext").glob("**/*.py")])


def name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(code: str, package: str = "") -> set[str]:
    """Dotted names of everything that a module imports, also inside of its functions; `package` is where it lies."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ["", *package.split(".")][1 : len(package.split(".")) - node.level + 2] if node.level else []
            found |= {".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names}
    return found


def forbidden(module: str) -> tuple[str, ...]:
    """What this module may not import."""
    part = (module.split(".") + [""])[1]
    if part in (*ROOMS, "claims", "plots", "files"):
        later = ROOMS[ROOMS.index(part) + 1 :] if part in ROOMS else ROOMS
        return (*(f"lib.{room}" for room in later), "lib.book", "book", *(["lib.claims"] if part in ROOMS else []))
    return ("book", "racing") if module.startswith("lib.book") else ()


def broken(module: str, taken: set[str]) -> list[str]:
    return sorted(one for one in taken for wrong in forbidden(module) if one == wrong or one.startswith(wrong + "."))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_imports_only_what_stands_before_it(path):
    taken = imports(path.read_text(encoding="utf-8"), ".".join(path.relative_to(ROOT).parts[:-1]))
    assert broken(name(path), taken) == []


@pytest.mark.parametrize("path", sorted((ROOT / "book").glob("*/*.md")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_page_imports_the_machinery(path):
    cells = path.read_text(encoding="utf-8").split("```{code-cell}")[1:]
    assert [cell for cell in cells if re.search(r"^\s*(from|import) lib(\.| import )book", cell.split("```")[0], re.M)] == []


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_everything_public_is_described(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = [node for node in tree.body if not getattr(node, "name", "_").startswith("_")]
    assert ast.get_docstring(tree) and [node.name for node in named if not ast.get_docstring(node)] == []


def test_the_machinery_stays_small():
    machinery = [path for path in MODULES if path.relative_to(ROOT).parts[1] not in ROOMS]
    lines = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in machinery}
    assert sum(lines.values()) <= 4500, sorted(lines.items(), key=lambda item: -item[1])
