"""The typed parameters cell."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.press import pages, parameters
from lib.press.parameters import ParameterError, parse, validate

CELL = """hidden: int = 64  # units in the hidden layer [1, 4096]
step: float = 0.5   # learning rate
name: str = "tree"  # the task
bias: bool = True   # whether units have biases
"""


def test_parse():
    known = parse(CELL)
    assert list(known) == ["hidden", "step", "name", "bias"]
    hidden = known["hidden"]
    assert (hidden.type, hidden.default, hidden.help, hidden.low, hidden.high) == (
        "int",
        64,
        "units in the hidden layer",
        1,
        4096,
    )


@pytest.mark.parametrize(
    "cell",
    ["x = 3  # untyped", "x: list = []  # wrong type", "x: int = 3", "x: int = 'a'  # mismatch", "x: int = 0  # range [1, 2]"],
)
def test_bad_cells_are_refused(cell):
    with pytest.raises(ParameterError):
        parse(cell)


def test_text_from_the_command_line_is_converted():
    assert validate({"hidden": "128", "step": "1", "name": "a b", "bias": "false"}, parse(CELL)) == {
        "hidden": 128,
        "step": 1.0,
        "name": "a b",
        "bias": False,
    }


@pytest.mark.parametrize(
    ("given_value", "message"),
    [
        ({"hiden": "3"}, "did you mean 'hidden'"),
        ({"hidden": "3.5"}, "'hidden' must be int"),
        ({"hidden": "many"}, "'hidden' must be int"),
        ({"hidden": "True"}, "'hidden' must be int"),
        ({"hidden": "0"}, "must lie in"),
        ({"hidden": "__import__('os').getcwd()"}, "'hidden' must be int"),
        ({"step": "nan"}, "'step' must be float"),
        ({"bias": "1"}, "'bias' must be bool"),
    ],
)
def test_bad_values_are_refused_with_the_list_of_what_exists(given_value, message):
    with pytest.raises(ParameterError, match=message.replace("(", r"\(")) as error:
        validate(given_value, parse(CELL))
    assert "units in the hidden layer" in str(error.value)


def test_code_stays_a_value():
    text = "'); import os; os.system('x"
    assert validate({"name": text}, parse(CELL)) == {"name": text}


@given(st.integers(1, 4096), st.floats(allow_nan=False, allow_infinity=False), st.text(), st.booleans())
def test_python_values_pass_unchanged(hidden, step, name, bias):
    values = {"hidden": hidden, "step": step, "name": name, "bias": bias}
    assert validate(values, parse(CELL)) == values


@pytest.mark.parametrize("page", pages.every(), ids=lambda page: page.name)
def test_every_page_has_well_formed_parameters(page):
    for parameter in parameters.of_page(page.markdown).values():
        assert parameter.help and not math.isnan(parameter.low)
