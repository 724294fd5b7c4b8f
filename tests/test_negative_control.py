"""The suite must go red when the science is wrong by one per cent, in whichever room."""

import pytest

from lib import ROOMS
from lib.press.environment import ROOT
from lib.press.trials import planting
from lib.press.trials.warm import Warm

# One error of one per cent in each room, and the file of tests that must feel it.
PLANTED = [
    ("linear/theory", "mode_strength", "d * a0 → 1.01 * d * a0", "linear/test_theory.py"),
    ("linear/theory", "initial_strength", "w1 @ v → 1.01 * w1 @ v", "linear/test_theory.py"),
    ("data/tasks", "lorenz.flow", "beta * z → 1.01 * beta * z", "data/test_tasks.py"),
    ("complexity/spectra", "fourier_plane", "math.pi * k / m → 1.01 * math.pi * k / m", "complexity/test_complexity.py"),
    (
        "gated/architectures/closed_forms",
        "routing_velocity",
        "b2 * b1**2 * d → 1.01 * b2 * b1**2 * d",
        "gated/test_race.py",
    ),
    ("relu/separability", "xor_pathways", "squared / 4 → 1.01 * squared / 4", "relu/test_separability.py"),
    ("redshift/infinite_width", "kernel", "hidden * each → 1.01 * hidden * each", "redshift/test_infinite_width.py"),
    ("biases/universality", "bounded", "a / alpha → 1.01 * a / alpha", "biases/test_universality.py"),
]


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    with Warm(ROOT, tmp_path_factory.mktemp("planted")) as copy:
        copy.load(["torch", "torch._dynamo", "numba", "scipy.integrate", "scipy.special", "hypothesis.strategies"])
        yield copy


def test_every_room_of_science_has_an_error():
    assert {module.split("/")[0] for module, *_ in PLANTED} == set(ROOMS) - {"press"}


@pytest.mark.parametrize(("module", "function", "change", "tests"), PLANTED, ids=[f"{m}-{f}" for m, f, *_ in PLANTED])
def test_one_per_cent_turns_the_suite_red(warm, module, function, change, tests):
    """With the error a test of the file says no; without it that very test, in the same copy, has nothing to say."""
    text = (ROOT / "lib" / f"{module}.py").read_text(encoding="utf-8")
    errors = [m for m in planting.find(text, module) if (m.function, m.change) == (function, change)]
    assert errors, f"there is no '{change.split(' → ')[0]}' in {function} any more: plant another error in this room"
    planted = {f"lib/{module}.py": planting.plant(text, errors[0])}
    red = warm.judge(planted, [f"tests/{tests}"])
    assert red["outcome"] == "failed" and red["test"].startswith(f"tests/{tests}::")
    assert warm.judge({}, [red["test"]]) == {"outcome": "passed", "test": ""}
