"""The house `lib`: rooms in their order, small enough to be read, doors that open, nothing public without words and types."""

import ast
import contextlib
import io
import sys
from importlib import import_module
from pathlib import Path

import pytest

import lib
from lib import ROOMS
from lib.press.rendering import reference

ROOT = Path(lib.__file__).resolve().parent
SCIENCE = [room for room in ROOMS if room != "press"]
DRAWS = "lib.press.plots"  # all that science may take from the press
MODULES = sorted(ROOT.glob("**/*.py"))
FOLDERS = sorted({path.parent for path in MODULES} - {ROOT})  # rooms, and the rooms inside of the press
NAMES = {path: ".".join(["lib", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__") for path in MODULES}


def name_of(path):
    return NAMES[path]


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def science_modules():
    return [path for path in MODULES if path.relative_to(ROOT).parts[0] in SCIENCE]


# ---------------------------------------------------------------------------------------------------------------------
# The order of the rooms


def imported(path):
    """(line, dotted name) of everything that a module takes out of `lib`, also inside of its functions."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.split(".")[0] == "lib")
        elif isinstance(node, ast.ImportFrom) and node.level:
            inside = name_of(path).split(".") if path.stem == "__init__" else name_of(path).split(".")[:-1]
            base = ".".join([*inside[: len(inside) - node.level + 1], *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "lib":
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def out_of_order(room, line, taken):
    """What is wrong with taking the dotted name `taken` in the room `room`, or None."""
    source = (taken.split(".") + [""])[1]
    if source not in ROOMS or ROOMS.index(source) <= ROOMS.index(room):
        return None
    if source == "press":
        allowed = taken == DRAWS or taken.startswith(DRAWS + ".")
        return None if allowed else f"line {line} takes {taken}: of the press, science may take only {DRAWS}"
    return f"line {line} takes {taken}: the room {source} stands behind {room} in lib.ROOMS"


@pytest.mark.parametrize("path", [p for p in MODULES if p.parent != ROOT], ids=name_of)
def test_a_room_takes_only_from_rooms_before_it(path):
    room = path.relative_to(ROOT).parts[0]
    wrong = [text for line, taken in imported(path) if (text := out_of_order(room, line, taken))]
    assert not wrong, f"{name_of(path)}: " + "; ".join(wrong)


def test_the_order_is_noticed():
    assert "stands behind data" in out_of_order("data", 3, "lib.gated.race.reduce")
    assert "science may take only" in out_of_order("gated", 3, "lib.press.claims")
    assert out_of_order("gated", 3, "lib.press.plots") is None
    assert out_of_order("gated", 3, "lib.data.tasks") is None
    assert out_of_order("press", 3, "lib.gated") is None


# ---------------------------------------------------------------------------------------------------------------------
# Small enough to be read


def test_at_most_ten_entries_at_the_top():
    entries = sorted(path.name for path in ROOT.iterdir() if path.name != "__pycache__" and not path.name.startswith("."))
    assert len(entries) <= 10, f"lib/ has {len(entries)} entries: {', '.join(entries)}"
    assert {entry for entry in entries if (ROOT / entry).is_dir()} == set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_is_longer_than_400_lines(path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 400, f"{name_of(path)} has {lines} lines"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: ".".join(folder.relative_to(ROOT).parts))
def test_no_room_is_more_than_a_sitting(folder):
    lines = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in folder.glob("*.py")}
    longest = sorted(lines, key=lines.get, reverse=True)
    assert sum(lines.values()) <= 1400, f"{folder.name} has {sum(lines.values())} lines, most of them in {', '.join(longest[:3])}"


# ---------------------------------------------------------------------------------------------------------------------
# Doors


def example(room):
    """The indented part of a door's docstring."""
    lines = (ast.get_docstring(tree(ROOT / room / "__init__.py")) or "").splitlines()
    return "\n".join(line[4:] for line in lines if line.startswith("    "))


@pytest.mark.parametrize("room", ROOMS)
def test_the_example_at_the_door_runs(room, monkeypatch):
    code = example(room)
    assert code.strip(), f"lib.{room} shows no example at its door"
    monkeypatch.setattr(sys, "argv", ["example"])
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            exec(compile(code, f"<the example of lib.{room}>", "exec"), {"__name__": "example"})
        except Exception as error:
            pytest.fail(f"the example at the door of lib.{room} stops with {type(error).__name__}: {error}\n\n{code}")
    assert said.getvalue().strip(), f"the example at the door of lib.{room} shows nothing:\n\n{code}"


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_at_the_door_opens(room):
    door = import_module(f"lib.{room}")
    missing = []
    for name in door.__all__:
        try:
            getattr(door, name)
        except (AttributeError, ImportError) as error:
            missing.append(f"{name} ({error})")
    assert not missing, f"lib.{room} promises what it does not have: " + "; ".join(missing)
    assert set(door.__all__) <= set(dir(door))
    with pytest.raises(AttributeError):
        _ = door.nonsense


@pytest.mark.parametrize("room", ROOMS)
def test_no_name_at_the_door_means_two_things(room):
    """A function of the same name as a module would hide it, or be hidden, depending on what is imported first."""
    modules = {path.stem for path in (ROOT / room).glob("*.py")} | {
        path.name for path in (ROOT / room).iterdir() if path.is_dir()
    }
    door = import_module(f"lib.{room}")
    inside = reference.door(room, ROOT.parent)  # {module: names}
    shown = [*inside, *(name for names in inside.values() for name in names)]
    twice = sorted({name for name in shown if shown.count(name) > 1})
    assert not twice, f"at the door of lib.{room} these are a module and something in it, or in two modules: {', '.join(twice)}"
    for name in sorted(modules & set(door.__all__)):
        opened = getattr(door, name)
        assert getattr(opened, "__name__", "") == f"lib.{room}.{name}", f"lib.{room}.{name} is a module and {opened!r}"


@pytest.mark.parametrize("room", SCIENCE)
def test_every_module_is_at_the_door(room):
    modules = {path.stem for path in (ROOT / room).glob("*.py") if not path.stem.startswith("_")}
    hidden = sorted(modules - set(import_module(f"lib.{room}").__all__))
    assert not hidden, f"lib.{room} does not show its modules {', '.join(hidden)}"


# ---------------------------------------------------------------------------------------------------------------------
# Words and types


def public(body):
    """Functions and classes of a module or class whose names do not begin with an underscore."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node for node in body if isinstance(node, kinds) and not node.name.startswith("_")]


def bare_arguments(function, method=False):
    """Arguments without a type; "return" if what comes back has none."""
    plain = function.args.posonlyargs + function.args.args
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in function.decorator_list)
    plain = plain[1:] if method and not static else plain
    rest = [arg for arg in (function.args.vararg, function.args.kwarg) if arg]
    bare = [arg.arg for arg in [*plain, *function.args.kwonlyargs, *rest] if arg.annotation is None]
    return bare + (["return"] if function.returns is None and function.name != "__init__" else [])


@pytest.mark.parametrize("path", science_modules(), ids=name_of)
def test_everything_public_is_described(path):
    module = tree(path)
    silent = [] if ast.get_docstring(module) else ["the module itself"]
    silent += [f"{node.name} (line {node.lineno})" for node in public(module.body) if not ast.get_docstring(node)]
    assert not silent, f"{name_of(path)}: no docstring for {', '.join(silent)}"


@pytest.mark.parametrize("path", science_modules(), ids=name_of)
def test_everything_public_is_typed(path):
    untyped = []
    for node in public(tree(path).body):
        if not isinstance(node, ast.ClassDef):
            functions = [(node.name, node, False)]
        else:
            methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
            known = [item for item in methods if not item.name.startswith("_") or item.name == "__init__"]
            functions = [(f"{node.name}.{item.name}", item, True) for item in known]
        for name, function, method in functions:
            if bare := bare_arguments(function, method):
                untyped.append(f"{name}({', '.join(bare)}) in line {function.lineno}")
    assert not untyped, f"{name_of(path)}: no types for " + "; ".join(untyped)


def test_missing_words_and_types_are_noticed():
    code = "def f(a, b: int, *, c=1): ...\nclass C:\n    def m(self, x) -> int: ...\n    @staticmethod\n    def s(x: int): ..."
    function, klass = public(ast.parse(code).body)
    assert bare_arguments(function) == ["a", "c", "return"]
    assert [bare_arguments(method, True) for method in klass.body] == [["x"], ["return"]]


# ---------------------------------------------------------------------------------------------------------------------
# Pages


def test_pages_take_rows_from_the_library():
    pages = sorted((ROOT.parent / "book").glob("**/*.md"))
    assert pages
    found = [
        f"{page.relative_to(ROOT.parent)}:{number}"
        for page in pages
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        if ".T.float()" in line
    ]
    assert not found, f"data.tasks.as_rows makes float32 rows; `.T.float()` stands in {', '.join(found)}"
