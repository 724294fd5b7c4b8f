"""The reference of `lib`: complete, generated, linked both ways; and the examples of *I have … and want …* run."""

import re

import pytest

from lib import ROOMS
from lib.press import pages
from lib.press.environment import ROOT
from lib.press.rendering import reference

EXAMPLES = re.findall(
    r"^## ([^\n]+)\n.*?^```python\n(.*?)^```", (ROOT / "book/library/index.md").read_text(encoding="utf-8"), re.S | re.M
)


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_reference_and_documented(room):
    text = reference.room_text(room, ROOT, lambda words, page: words)
    for module, path in reference.modules(room, ROOT).items():
        assert f"## `{module.removeprefix('lib.')}`" in text
        for entry in reference.public(module, path):
            assert entry.doc, f"{entry.anchor} has no docstring"
            assert f"{{py:{entry.kind}}} {entry.name}{entry.signature}\n:module: {module}\n" in text


@pytest.mark.parametrize("room", ROOMS)
def test_the_door_names_its_modules_and_has_a_page(room):
    shown = reference.door(room, ROOT)
    there = {path.stem for path in (ROOT / "lib" / room).glob("*.py")} | {
        path.parent.name for path in (ROOT / "lib" / room).glob("*/__init__.py")
    }
    assert set(shown) == {name for name in there if not name.startswith("_")}
    assert f"```{{room}} {room}\n" in (ROOT / f"book/library/{room}.md").read_text(encoding="utf-8")
    assert f"file: book/library/{room}\n" in (ROOT / "_toc.yml").read_text(encoding="utf-8")
    for module, names in shown.items():
        for name in names:
            assert f"lib.{room}.{name}" in reference.index(ROOT) or name.isupper(), f"{module}.{name} is not public"


def test_pages_are_listed_where_they_use_a_function():
    used = reference.used_by(ROOT)
    assert "deep_linear/modes" in used["lib.linear.theory.mode_strength"]
    assert "neural_race/gated_networks" in used["lib.gated.race.reduce"]
    assert all(page in {p.name for p in pages.every()} for names in used.values() for page in names)


def test_docstrings_become_markdown():
    doc = "Half of *all* |W1|² for a_b in [0, 1], `x * y`.\n\n    a = 1\n\n    b = 2\n\n1. Not a list.\n- Nor this."
    prose = "Half of *all* \\|W1\\|² for a\\_b in \\[0, 1\\], `x * y`."
    assert reference.as_myst(doc) == prose + "\n\n```python\na = 1\n\nb = 2\n```\n\n1\\. Not a list.\n\\- Nor this."
    assert reference.as_myst("    y = A · x").startswith("```text\n")
    assert reference.escaped("(*ensemble, out) and (*seeds, in)") == "(\\*ensemble, out) and (\\*seeds, in)"


def test_names_that_a_page_imports():
    code = "from lib import gated\nfrom lib.gated import race as r\nfrom lib.linear import crossing\nimport torch"
    assert reference.aliases(code) == {"gated": "lib.gated", "r": "lib.gated.race", "crossing": "lib.linear.crossing"}


@pytest.mark.parametrize(("title", "code"), EXAMPLES, ids=[title for title, _ in EXAMPLES])
def test_examples_run(title, code, capsys):
    assert len(code.strip().splitlines()) <= 14
    exec(compile(code, title, "exec"), {})
    assert capsys.readouterr().out.strip(), "an example shows something"


def test_there_is_an_example_for_each_wish():
    assert len(EXAMPLES) >= 4
