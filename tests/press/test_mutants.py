"""Planted errors: the right places are found, the text around them stays, and what no test feels is told."""

import ast
import hashlib
from pathlib import Path

import pytest

from lib.press.environment import ROOT
from lib.press.trials import mutants, planting, warm

SOURCE = '''"""Half of 2 * x."""

from torch import Tensor

LIMIT = 2 * 3.0


@axes(x="2 items")
def area(x: "2 * Tensor", width: float = 2.0, chunk: int = 64, seed: int = 0) -> "1 * Tensor":
    """The area σ · 2 * x + 1."""
    if width < 0 - 1:
        raise ValueError(f"width is {2 * width}, not {1 + 1}")
    total: "1 + 1" = (x + 1) * width  # a * b in a comment
    total -= -x[0] / (3 +  # odd * spacing
                      width)
    return total.mul_(width).reshape(-1, 2) ** 2


class Box:
    side = 1.0

    def «volume»(self, t):
        return f"{2 * t}" + "x" if t else [0.5] * 3, "σ→", t * 1e-12, self.side @ t, t[i + 1 : n * 2], range(2 * n), len(t) - 1
'''.replace("«volume»", "volume")


@pytest.fixture(scope="module")
def found():
    return planting.find(SOURCE, "room/shapes")


def changes(found, kind):
    return {m.change for m in found if m.kind == kind}


def test_all_kinds_are_found(found):
    assert changes(found, "scale") >= {
        "(x + 1) * width → 1.01 * (x + 1) * width",
        "x + 1 → x + 1.01",
        "2.0 → 2.02",
        "self.side @ t → 1.01 * self.side @ t",
        "[0.5] → [0.505]",
    }
    assert "x + 1 → x - 1" in changes(found, "sign")
    assert "-x[0] → +x[0]" in changes(found, "sign")
    assert any(change.startswith("total -=") and "→ total +=" in change for change in changes(found, "sign"))
    assert "(x + 1) * width → (x + 1)" in changes(found, "drop")
    assert any("total.mul_(width)" in c and c.endswith("(total.mul_(width).reshape(-1, 2))") for c in changes(found, "drop"))
    assert {"(x + 1) * width → (x + 1) / width", "total.mul_(width) → total.div_(width)"} <= changes(found, "swap")
    assert {"x[0] → x[1]", "i + 1 → i + 2", "len(t) - 1 → len(t) - 2"} <= changes(found, "off by one")
    assert {m.function for m in found} == {"area", "Box.volume"}


def test_everything_else_is_left_alone(found):
    """Docstrings, messages and their conditions, annotations, decorators, chunk sizes, constants, whole numbers as such."""
    original = ast.parse(SOURCE)
    for mutant in found:
        planted = planting.plant(SOURCE, mutant)
        tree = ast.parse(planted)
        assert ast.dump(tree) != ast.dump(original)
        lines = {i for i, pair in enumerate(zip(SOURCE.splitlines(), planted.splitlines(), strict=False)) if len(set(pair)) == 2}
        assert min(lines) + 1 in (9, 13, 14, 15, 16, 23)
        before, after = (next(n for n in t.body if isinstance(n, ast.FunctionDef)) for t in (original, tree))
        assert ast.get_docstring(before) == ast.get_docstring(after)
        for part in ("decorator_list", "returns"):
            assert ast.dump(ast.Module([getattr(before, part)], [])) == ast.dump(ast.Module([getattr(after, part)], []))
        assert ast.unparse(before.body[1]) == ast.unparse(after.body[1])  # the refusal
        assert ast.unparse(after.args).count("chunk: int=64, seed: int=0") == 1
        assert "a * b in a comment" in planted
        assert "# odd * spacing" in planted or mutant.kind == "drop"
    assert not any("1.01" in c for c in changes(found, "scale") if "n * 2" in c or "2 * n" in c or "len(t)" in c)
    assert not any("reshape(-2" in m.after for m in found)
    assert not any(m.before == "t * 1e-12" for m in found)  # a tolerance


def test_names_of_modules():
    known = planting.modules()
    assert {name.split("/")[0] for name in known} == {"linear", "data", "complexity", "gated", "relu", "redshift", "biases"}
    assert "data/datasets" not in known
    assert planting.chosen(["lib/linear/theory.py", "linear.theory"]) == ["linear/theory"]
    assert planting.chosen(["linear"]) == [name for name in known if name.startswith("linear/")]
    with pytest.raises(
        planting.PlantingError, match="no numbers to plant errors in 'press'; there are linear/adam, linear/backprop"
    ):
        planting.chosen(["press"])


def test_a_sample_is_spread_over_the_modules(found):
    possible = {"a": found, "b": found[:3], "c": found[:1]}
    drawn = mutants.drawn(possible, 8, seed=1)
    assert len(drawn) == 8
    assert drawn == mutants.drawn(possible, 8, seed=1) != mutants.drawn(possible, 8, seed=2)
    assert len(mutants.drawn(possible, None, seed=0)) == len(found) + 4
    assert mutants.drawn(possible, 8, seed=1) == mutants.drawn(possible, 20, seed=1)[:8]


def test_the_list_of_equivalent_mutants_is_up_to_date():
    known, there = mutants.equivalents(), set()
    for name in {module for module, *_ in known}:
        there |= {mutants.name_of(m) for m in planting.find((ROOT / "lib" / f"{name}.py").read_text(encoding="utf-8"), name)}
    assert set(known) - there == set()
    assert all(len(reason) > 10 for reason in known.values())


TOY = '''"""A toy."""


def felt(x):
    return 2 * x


def unfelt(x):
    return 3 * x


def unreached(x):
    return 5 * x


def endless(x):
    while x > 0:
        x = x - 1
    return x


def guarded(x):
    return x / 7
'''
TOY_TESTS = """
import time

import pytest
from lib.linear import toy


@pytest.fixture(scope="module")
def three():
    return toy.felt(1.5)


def test_one(three):
    assert True


def test_two(three):
    assert abs(three - 3) < 1e-9 and toy.endless(3) == 0 and toy.unfelt(2) > 1


def test_red():
    assert toy.unfelt(2) == 7


def test_clock():
    begin = time.perf_counter()
    assert toy.unfelt(2) == 6 and time.perf_counter() >= begin


def test_nothing():
    assert toy.guarded(7) > 0
"""
SAME = """- module: linear/toy
  function: guarded
  line: return x / 7
  mutation: x / 7 → 1.01 * x / 7
  reason: said so for this test
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    root = tmp_path_factory.mktemp("toy")
    texts = {"lib/__init__.py": "", "lib/linear/__init__.py": "", "lib/linear/toy.py": TOY, "tests/linear/test_toy.py": TOY_TESTS}
    for name, text in (texts | {"tests/equivalent_mutants.yml": SAME, "book/index.md": ""}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    (root / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    return root


def fingerprint(root: Path) -> dict:
    return {p.relative_to(root): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(root.rglob("*")) if p.is_file()}


def test_what_survives_is_told_and_nothing_is_touched(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(mutants.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(mutants, "PATIENCE", 1)  # these tests take thousandths of a second
    before, said = fingerprint(toy), []
    record = mutants.run(root=toy, say=said.append)
    assert fingerprint(toy) == before
    assert list(tmp_path.iterdir()) == []  # the copy is gone
    count = record["modules"]["linear/toy"]
    assert count["planted"] == count["possible"] == count["caught"] + count["equivalent"] + count["survived"]
    assert count["equivalent"] == 1
    survived = {(s["function"], s["after"]): s["reached"] for s in record["survivors"]}
    assert {name for name, _ in survived} == {"unfelt", "unreached", "guarded"}
    assert survived["unfelt", "1.01 * 3 * x"] is True  # a test that fails anyway and one with a clock do not judge
    assert survived["unreached", "1.01 * 5 * x"] is False
    assert not any(name == "felt" for name, _ in survived)  # the fixture of a whole file counts for all its tests
    assert not any(name == "endless" for name, _ in survived)  # x + 1 never ends
    assert record["red"] == ["tests/linear/test_toy.py::test_red"]

    text = mutants.table(record)
    assert "| `linear/toy` | " in text and "| all | " in text
    assert "- `lib/linear/toy.py:9`, `unfelt`: `3 * x` → `1.01 * 3 * x`\n" in text
    assert "`5 * x` → `1.01 * 5 * x` (no test runs this line)" in text
    assert mutants.share(count) == count["caught"] / (count["planted"] - 1) < mutants.ENOUGH
    assert mutants.write(record, toy).read_text(encoding="utf-8").startswith('{\n "date"')


def test_a_warm_interpreter_tells_how_a_test_ended(toy, tmp_path):
    with warm.Warm(toy, tmp_path) as one:
        path, tests = "lib/linear/toy.py", ["tests/linear/test_toy.py::test_two", "tests/linear/test_toy.py::test_nothing"]
        assert one.judge({}, tests)["outcome"] == "passed"
        said_no = one.judge({path: TOY.replace("2 * x", "2.02 * x")}, tests)
        assert said_no == {"outcome": "failed", "test": "tests/linear/test_toy.py::test_two"}
        assert one.judge({path: TOY.replace("2 * x", "None * x")}, tests)["outcome"] == "stopped"
        assert one.judge({path: "nonsense ("}, tests)["outcome"] == "stopped"
        assert one.judge({path: TOY.replace("x - 1", "x + 0")}, tests, limit=0.9)["outcome"] == "timeout"
        assert one.judge({path: "import os\nos._exit(0)"}, tests)["outcome"] == "stopped"
        assert one.judge({}, tests)["outcome"] == "passed"  # everything is as it was


def test_records_of_parts_join_to_one(tmp_path):
    """A run over one room takes the place of what was recorded of it, and leaves the rest."""
    for name in ("linear/a", "linear/b", "gated/c"):
        path = tmp_path / "lib" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def f(x):\n    return 2 * x\n")

    def made(names, caught, survivors=()):
        count = {"possible": 9, "planted": 4, "caught": caught, "stopped": 0, "equivalent": 0, "survived": 4 - caught}
        counts = {name: count | {"date": "2026-01-01", "code": mutants.code_of(name, tmp_path)} for name in names}
        return {"date": "2026-01-01", "modules": counts, "survivors": [{"module": m, "line": 2} for m in survivors]}

    mutants.write(made(["gated/c", "linear/a"], 3, ["gated/c", "linear/a"]), tmp_path)
    mutants.write(made(["linear/a", "linear/b"], 4), tmp_path)
    found = mutants.read(tmp_path)
    assert {name: count["caught"] for name, count in found["modules"].items()} == {"linear/a": 4, "linear/b": 4, "gated/c": 3}
    assert list(found["modules"]) == planting.modules(tmp_path) and [s["module"] for s in found["survivors"]] == ["gated/c"]
    (tmp_path / "lib/linear/a.py").write_text("def f(x):\n    return 2 * x  # a remark\n")
    assert mutants.older(found, tmp_path) == []
    (tmp_path / "lib/linear/a.py").write_text("def f(x):\n    return 3 * x\n")
    assert mutants.older(found, tmp_path) == ["linear/a"]
    (tmp_path / "lib/gated/c.py").unlink()
    mutants.write(made(["linear/b"], 2), tmp_path)
    assert sorted(mutants.read(tmp_path)["modules"]) == ["linear/a", "linear/b"] and not mutants.read(tmp_path)["survivors"]
