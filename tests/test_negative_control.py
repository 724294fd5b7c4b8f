"""The suite must go red when the science is wrong by one per cent, and when a page is tampered with."""

import os
import shutil
import subprocess
import sys

import pytest

from lib.press.environment import ROOT

TESTS = "linear/test_theory.py"
# Each line plants an error of one per cent in a closed form or its simulation.
PLANTED = [
    ("linear/theory.py", "return (s / d) / (1 -", "return 1.01 * (s / d) / (1 -", TESTS),
    ("linear/theory.py", "torch.exp(-2 * s *", "torch.exp(-2.02 * s *", TESTS),
    (
        "linear/theory.py",
        "a * (1 + step * (s - a * d)) ** 2",
        "a * (1 + 1.01 * step * (s - a * d)) ** 2",
        "linear/test_theory.py",
    ),
    ("linear/theory.py", ".square().sum(-2) / 4", ".square().sum(-2) / 3.9", TESTS),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    root = tmp_path_factory.mktemp("planted")
    for name in ("lib", "tests"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


def outcome(root, tests) -> int:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")} | {"PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", f"tests/{tests}"]
    return subprocess.run(command, cwd=root, env=env, capture_output=True, timeout=300).returncode


def test_the_copy_is_green(copy):
    assert outcome(copy, "linear/test_theory.py") == 0


@pytest.mark.parametrize(("module", "right", "wrong", "tests"), PLANTED)
def test_one_per_cent_turns_the_suite_red(copy, module, right, wrong, tests):
    path = copy / "lib" / module
    text = path.read_text(encoding="utf-8")
    assert text.count(right) == 1, f"'{right}' is not there exactly once"
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    try:
        assert outcome(copy, tests) == 1
    finally:
        path.write_text(text, encoding="utf-8")
