"""The tests must go red when the science is wrong by one per cent, by a sign or by an index, in whichever folder."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent

# Where, what is right there, what is wrong, and the tests that must notice.
PLANTED = [
    ("lib/linear", "(1 - s / (d * a0))", "(1 - s / (1.01 * d * a0))", "tests/linear/test_theory.py"),
    ("lib/data", "x * y - beta * z", "x * y - 1.01 * beta * z", "tests/data/test_tasks.py"),
    ("lib/complexity", "np.sin(math.pi * k / m)", "np.sin(1.01 * math.pi * k / m)", "tests/complexity/test_complexity.py"),
    ("lib/gated", "s - b2 * b1**2 * d", "s - 1.01 * b2 * b1**2 * d", "tests/gated/test_race.py"),
    ("lib/gated", "reversed(path.edges[1:])", "reversed(path.edges[2:])", "tests/gated/test_engine.py"),
    ("lib/relu", "block - block.mean(-1", "block + block.mean(-1", "tests/relu/test_contexts.py"),
    ("lib/relu", "squared / 4, groups", "1.01 * squared / 4, groups", "tests/relu/test_separability.py"),
    ("lib/redshift", "hidden * each", "1.01 * hidden * each", "tests/redshift/test_infinite_width.py"),
    ("lib/biases", "(a / alpha).repeat", "(1.01 * a / alpha).repeat", "tests/biases/test_universality.py"),
    ("lib/claims.py", "spread / math.sqrt(n)", "1.01 * spread / math.sqrt(n)", "tests/book/test_claims.py"),
    ("lib/claims.py", "verdict != claim.verdict:", 'verdict not in (claim.verdict, "reproduced"):', "tests/book/test_claims.py"),
]


def failing(root, *tests):
    """The first of these tests that fails in a repository, or None."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    own |= {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-m", "not slow", *tests]
    done = subprocess.run(command, cwd=root, env=own, text=True, capture_output=True)
    assert done.returncode in (0, 1), f"the tests do not run: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return re.search(r"^FAILED ([^\s[]+)", done.stdout, re.M)[1] if done.returncode else None


def test_small_errors_turn_the_tests_red(tmp_path):
    """In a copy of the repository: with an error a test fails; without it that very test passes."""
    for name in ("lib", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("book", "data", "pyproject.toml", "requirements.txt"):
        (tmp_path / name).symlink_to(ROOT / name)
    noticed = {}
    for place, right, wrong, tests in PLANTED:
        modules = [tmp_path / place] if place.endswith(".py") else sorted((tmp_path / place).rglob("*.py"))
        found = [path for path in modules if right in path.read_text(encoding="utf-8")]
        assert len(found) == 1, f"'{right}' is in {len(found)} modules of {place}; plant another error there"
        before = found[0].read_text(encoding="utf-8")
        found[0].write_text(before.replace(right, wrong), encoding="utf-8")
        noticed[wrong] = failing(tmp_path, tests)
        found[0].write_text(before, encoding="utf-8")
    missed = [wrong for wrong, test in noticed.items() if test is None]
    assert not missed, f"no test notices {missed}"
    assert failing(tmp_path, *set(noticed.values())) is None
