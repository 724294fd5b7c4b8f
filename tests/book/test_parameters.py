"""The typed parameters cell, presets, devices."""

import re

import pytest
import torch

from lib.book import pages, parameters
from lib.book.parameters import parse, resolve, validate
from lib.files import Problem

PAGES = pages.all_pages()
CELL = """hidden: int = 64  # units in the hidden layer [1, 4096]
step: float = 0.5   # learning rate
name: str = "tree"  # the task
bias: bool = True   # whether units have biases
"""


def test_a_cell_says_type_default_help_and_range():
    known = parse(CELL)
    assert list(known) == ["hidden", "step", "name", "bias"]
    one = known["hidden"]
    assert (one.type, one.default, one.help, one.low, one.high) == ("int", 64, "units in the hidden layer", 1, 4096)


def test_choices():
    known = parse('task: str = "vai"  # the images {mnist, vai}')
    assert known["task"].choices == ("mnist", "vai") and known["task"].help == "the images: mnist, vai"
    with pytest.raises(Problem, match="'task' must be one of mnist, vai, got 'nonsense'"):
        validate({"task": "nonsense"}, known)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x: int = (3  # a", "is not Python"),
        ("x = 3  # untyped", "holds only lines like"),
        ("x: list = []  # wrong type", "'x' has type list"),
        ("x: int = 3", "'x' needs a comment"),
        ("x: int = 3 * abs(2)  # a", "'x' needs a plain value"),
        ("x: int = 'a'  # mismatch", "'x' must be int"),
        ("x: int = 0  # range [1, 2]", "'x' must lie in"),
        ("x: int = 1  # a\nx: int = 2  # b", "'x' is there twice"),
    ],
)
def test_a_wrong_cell_is_refused(repository, cell, message):
    repository.edit("book/paper/one.md", "width: int = 3   # how wide [1, 10]", cell)
    with pytest.raises(Problem, match=f"^book/paper/one.md: .*{message}"):
        parameters.of_page(repository.page("one"))


def test_text_from_the_command_line_is_converted():
    typed = {"hidden": "128", "step": "1", "name": "'); import os; os.system('x", "bias": "false"}
    assert validate(typed, parse(CELL)) == {"hidden": 128, "step": 1.0, "name": typed["name"], "bias": False}


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"hiden": "3"}, "there is no parameter 'hiden'; did you mean 'hidden'"),
        ({"hidden": "3.5"}, "'hidden' must be int"),
        ({"hidden": "0"}, r"'hidden' must lie in \[1, 4096\]"),
        ({"hidden": "__import__('os').getcwd()"}, "'hidden' must be int"),
        ({"step": "nan"}, "'step' must be float"),
        ({"bias": "1"}, "'bias' must be bool"),
    ],
)
def test_a_wrong_value_is_refused_with_the_names_that_exist(typed, message):
    with pytest.raises(Problem, match=message) as error:
        validate(typed, parse(CELL))
    assert "the page has hidden, step, name, bias" in str(error.value)


def test_defaults_then_the_preset_then_what_is_given(repository):
    repository.write("book/presets.yml", "paper/one:\n  smoke: {width: 1}\n")
    page = repository.page("one")
    own = {"width": 3, "name": "x", "seed": 0}
    assert resolve(page, {}) == own and resolve(page, {}, "smoke") == own | {"width": 1}
    assert resolve(page, {"width": "2", "name": "y"}, "smoke") == own | {"width": 2, "name": "y"}
    with pytest.raises(Problem, match="no 'paper' preset for paper/one"):
        resolve(page, {}, "paper")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- a", "book/presets.yml: expected the sizes of every page"),
        ("paper/one: {huge: {}}", "presets.yml, paper/one: .*unknown field 'huge'"),
        ("paper/one: {smoke: {width: ten}}", "presets.yml, paper/one: 'width' must be int"),
        ("paper/oen: {smoke: {width: 1}}", "there is no page 'paper/oen'; did you mean 'paper/one'"),
        ("paper/one: {}\npaper/one: {}", "line 2: 'paper/one' stands there twice"),
    ],
)
def test_wrong_presets_are_named(repository, content, message):
    repository.write("book/presets.yml", content)
    with pytest.raises(Problem, match=message):
        resolve(repository.page("one"), {}, "smoke")


def test_a_page_gets_the_device_that_is_there(monkeypatch):
    page, small = pages.find("bias_learning/masks"), pages.find("deep_linear/modes")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve(page, {}, device="auto")["device"] == "cpu" == resolve(page, {"device": "auto"})["device"]
    with pytest.raises(Problem, match="torch sees no CUDA device; use --device cpu"):
        resolve(page, {}, device="cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve(page, {}, device="auto")["device"] == "cuda" and "device" not in resolve(small, {}, device="auto")
    with pytest.raises(Problem, match="runs on the CPU only"):
        resolve(small, {}, device="cuda")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_page_has_all_presets_and_a_cost(page):
    for name in parameters.PRESETS:
        assert list(resolve(page, {}, name)) == list(parameters.of_page(page))
    assert re.search(r"second|minute|hour|day|own parameters", parameters.sizes(page).cost)
