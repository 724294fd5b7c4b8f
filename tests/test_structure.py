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


def lines(modules: list[Path]) -> dict[str, int]:
    return {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules}


def test_the_machinery_stays_small():
    long = lines([path for path in MODULES if path.relative_to(ROOT).parts[1] not in ROOMS])
    assert sum(long.values()) <= 4500, sorted(long.items(), key=lambda item: -item[1])


def test_the_science_is_read_in_one_sitting():
    long = lines([path for path in MODULES if path.relative_to(ROOT).parts[1] in ROOMS])
    assert sum(long.values()) <= 8500 and max(long.values()) <= 350, sorted(long.items(), key=lambda item: -item[1])


def public(module: Path) -> list[str]:
    """Names that a package's `__init__` lists."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    lists = [node.value for node in tree.body if isinstance(node, ast.Assign | ast.AugAssign) and "__all__" in ast.unparse(node)]
    return [name for each in lists for name in ast.literal_eval(each)]


@pytest.mark.parametrize("room", ROOMS)
def test_a_package_lists_its_public_names_and_editors_find_them(room):
    """By plain imports, which an editor can follow: no name is loaded by a string."""
    module = ROOT / "lib" / room / "__init__.py"
    imported = imports(module.read_text(encoding="utf-8"))
    known = {one.rpartition(".")[2] for one in imported}
    assert public(module) and set(public(module)) <= known and len(set(public(module))) == len(public(module))
