"""The tests must go red when the science is wrong by one per cent, by a sign or by an index, in whichever folder."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent

# Where, what is right there, what is wrong, and the test that must notice: its module and words of its name.
PLANTED = [
    ("lib/linear", "(1 - s / (d * a0))", "(1 - s / (1.01 * d * a0))", "linear/test_theory", "mode_strength_solves"),
    ("lib/data", "x * y - beta * z", "x * y - 1.01 * beta * z", "data/test_tasks", "fixed_points_of_lorenz"),
    ("lib/complexity", "np.sin(math.pi * k / m)", "np.sin(1.01 * math.pi * k / m)", "complexity/test_complexity", "every_plane"),
    ("lib/gated", "s - b2 * b1**2 * d", "s - 1.01 * b2 * b1**2 * d", "gated/test_race", "routing_closed_forms"),
    ("lib/gated", "reversed(path.edges[1:])", "reversed(path.edges[2:])", "gated/test_engine", "path_form"),
    ("lib/relu", "block - block.mean(-1", "block + block.mean(-1", "relu/test_contexts", "residual_statistics"),
    ("lib/relu", "squared / 4, groups", "1.01 * squared / 4, groups", "relu/test_separability", "speeds_and_variances"),
    ("lib/redshift", "hidden * each", "1.01 * hidden * each", "redshift/test_infinite_width", "two_layers_of_one_point"),
    ("lib/biases", "(a / alpha).repeat", "(1.01 * a / alpha).repeat", "biases/test_universality", "bounded_networks"),
    ("lib/claims.py", "spread / math.sqrt(n)", "1.01 * spread / math.sqrt(n)", "book/test_claims", "an_interval_is_students"),
    ("lib/claims.py", "verdict != claim.verdict:", 'verdict == "not reproduced":', "book/test_claims", "verdicts_bind"),
]


def passes(root, modules, words) -> bool:
    """Whether the tests of these modules with these words in their names pass in a repository."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    own |= {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    files = [f"tests/{module}.py" for module in sorted(set(modules))]
    command = [sys.executable, "-m", "pytest", "-x", "-m", "not slow", "-k", " or ".join(words), *files]
    done = subprocess.run(command, cwd=root, env=own, text=True, capture_output=True)
    assert done.returncode in (0, 1), f"the tests do not run: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.returncode == 0


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the repository, free to be damaged."""
    root = tmp_path_factory.mktemp("planted")
    for name in ("lib", "tests"):
        shutil.copytree(ROOT / name, root / name)
    for name in ("book", "data", "pyproject.toml", "requirements.txt"):
        (root / name).symlink_to(ROOT / name)
    return root


@pytest.mark.parametrize(("place", "right", "wrong", "module", "words"), PLANTED, ids=[planted[4] for planted in PLANTED])
def test_a_small_error_turns_a_test_red(copy, place, right, wrong, module, words):
    modules = [copy / place] if place.endswith(".py") else sorted((copy / place).rglob("*.py"))
    found = [path for path in modules if right in path.read_text(encoding="utf-8")]
    assert len(found) == 1, f"'{right}' is in {len(found)} modules of {place}; plant another error there"
    before = found[0].read_text(encoding="utf-8")
    found[0].write_text(before.replace(right, wrong), encoding="utf-8")
    noticed = not passes(copy, [module], [words])
    found[0].write_text(before, encoding="utf-8")
    assert noticed, f"no test notices '{wrong}'"


def test_without_errors_those_tests_pass(copy):
    *_, modules, words = zip(*PLANTED, strict=True)
    assert passes(copy, modules, words)
