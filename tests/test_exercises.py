"""Every exercise has a solution, and every solution is right: its code runs and its assertions hold."""

import re
from pathlib import Path

import pytest
import torch

BOOK = Path(__file__).resolve().parent.parent / "book"
SOLUTION = re.compile(r"^````\{solution\} (?P<label>[\w-]+)\n(?P<body>.*?)^````$", re.S | re.M)
EXERCISE = re.compile(r"^```\{exercise\} .+\n:label: (?P<label>[\w-]+)$", re.M)
CODE = re.compile(r"^```python\n(.*?)^```$", re.S | re.M)

TEXTS = {path: path.read_text(encoding="utf-8") for path in sorted(BOOK.rglob("*.md"))}
SOLUTIONS = {found["label"]: found["body"] for text in TEXTS.values() for found in SOLUTION.finditer(text)}


def test_exercises_and_solutions_go_together_on_at_least_six_pages():
    posed = [found["label"] for text in TEXTS.values() for found in EXERCISE.finditer(text)]
    assert sorted(posed) == sorted(SOLUTIONS) and len(set(posed)) == len(posed)
    assert sum(bool(EXERCISE.search(text)) for text in TEXTS.values()) >= 6


@pytest.mark.parametrize("label", SOLUTIONS)
def test_solution_is_right_and_short(label):
    blocks = CODE.findall(SOLUTIONS[label])
    assert blocks and "assert " in blocks[-1], f"{label}: a solution ends with what it shows"
    lines = [line for block in blocks for line in block.splitlines() if line and not line.startswith(("import", "from"))]
    assert len(lines) <= 12, f"{label}: {len(lines)} lines"
    torch.set_num_threads(1)
    space = {}
    for block in blocks:
        exec(compile(block, f"<solution of {label}>", "exec"), space)
