"""`python -m lib check`: in a minute and a half, whatever can be said about a change since the last commit.

Lint, claims, presets, pairs of page and notebook, freshness; then the tests that the change touches, nearest first, as many as
the time allows. What did not fit is named: it is left to `python -m lib test`.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from lib.press import claims, environment, pages, terminal
from lib.press.bindery import affected, suite
from lib.press.errors import Problem

ROOT = environment.ROOT
SECONDS = 90.0  # for everything
START = 12.0  # of these, for workers that start and import torch
SMOKE = f"tests/press/test_runs.py::{suite.SMOKE}"
USUAL = 2.0  # seconds of a file of tests that was never measured
PYTHON = ("lib", "tests", "data")


@dataclass(frozen=True)
class Unit:
    """A test, or a file of tests without those that have a line of their own in tests/seconds.json, and what it takes."""

    name: str
    distance: int
    seconds: float


def units(touched: affected.Touched, known: dict[str, float]) -> list[Unit]:
    """What could be run, nearest and shortest first."""
    found = []
    for file, distance in touched.tests.items():
        alone = [name for name in known if name.startswith(f"{file}::")]
        found.append(Unit(file, distance, known.get(file, USUAL)))
        found += [Unit(name, distance, known[name]) for name in alone if not name.startswith(f"{SMOKE}[")]
    found += [Unit(f"{SMOKE}[{page}]", distance, known.get(f"{SMOKE}[{page}]", 4.0)) for page, distance in touched.pages.items()]
    return sorted(found, key=lambda unit: (unit.distance, unit.seconds, unit.name))


def choose(possible: list[Unit], budget: float) -> tuple[list[Unit], list[Unit]]:
    """(what fits into `budget` seconds of one core, what does not), in order; short tests pass a long one that does not fit."""
    chosen, left = [], []
    for unit in possible:
        if unit.seconds <= budget:
            chosen.append(unit)
            budget -= unit.seconds
        else:
            left.append(unit)
    return chosen, left


def arguments(chosen: list[Unit], left: list[Unit], known: dict[str, float]) -> list[str]:
    """The chosen tests as pytest wants them: files without those of their tests that were not chosen."""
    wanted = {unit.name for unit in chosen}
    whole = {name for name in wanted if "::" not in name}
    single = {name for name in wanted if name.partition("::")[0] not in whole}
    unwanted = [name for name in known if "::" in name and name.partition("::")[0] in whole and name not in wanted]
    if "tests/press/test_runs.py" in whole:  # every page, if nobody says which
        every = {f"{SMOKE}[{page.name}]" for page in pages.every()}
        unwanted = sorted({*unwanted, *every} - wanted)
    return [*sorted(whole), *sorted(single), *(f"--deselect={name}" for name in unwanted)]


def lint(root: Path = ROOT) -> list[str]:
    """What ruff finds, in rules and in layout."""
    ruff = [sys.executable, "-m", "ruff"]
    found = []
    for command, fix in ((["check", "."], "ruff check --fix"), (["format", "--check", *PYTHON], "ruff format")):
        done = subprocess.run([*ruff, *command, "--quiet"], cwd=root, text=True, capture_output=True)
        if done.returncode:
            found.append(f"{done.stdout.strip()}{done.stderr.strip()}\n(`{fix}` mends most of this)")
    return found


def book(root: Path = ROOT) -> list[str]:
    """What is wrong with claims, presets and pages: files that cannot be read, pairs that differ, outputs that no longer hold."""
    from lib.press.workbench import runs

    found, stale = [], []
    for paper in claims.papers(root / "book"):
        found += told(lambda paper=paper: claims.load(paper, root / "book"))
    for page in pages.every(root):
        found += told(lambda page=page: [runs.settle(page, {}, size) for size in runs.PRESETS])
        try:
            reasons = pages.stale(page)
        except Problem as problem:  # its claims, which were named above; or its source
            found += [str(problem)] if str(problem) not in found else []
            continue
        if reasons:
            stale.append(f"{page.name} ({reasons[0]})")
        else:
            found += told(lambda page=page: pages.differences(page))
    if stale:
        known = pages.seconds(root)
        cost = sum(known.get(text.split(" ")[0], 0.0) for text in stale)
        found.append(f"stale: {', '.join(stale)}; `python -m lib execute` brings them up to date (about {cost:.0f} core-seconds)")
    return found


def told(action) -> list[str]:
    """The sentences of what goes wrong in `action()`, and those that it returns."""
    try:
        said = action()
        return [text for text in said if isinstance(text, str)] if isinstance(said, list) else []
    except Problem as problem:
        return [str(problem)]


def main(since: str = "HEAD", seconds: float = SECONDS) -> int:
    """The status of all checks together; each problem is printed."""
    start, cores = time.perf_counter(), os.cpu_count() or 1
    changes = affected.changed(since)
    print(f"{terminal.count(len(changes), 'file')} changed since {since}", flush=True)
    problems = []
    for name, action in (("lint", lint), ("claims, presets, pairs, freshness", book)):
        found = action()
        print(f"{'✗' if found else '✓'} {name}", flush=True)
        problems += found
    for problem in problems:
        print(problem, file=sys.stderr, flush=True)
    rest = seconds - (time.perf_counter() - start)
    os.environ[suite.DEADLINE] = str(time.time() + rest - START / 2)
    try:
        code, said = tests(changes, cores * (rest - START), cores)
    finally:
        del os.environ[suite.DEADLINE]
    print(f"{said} ({time.perf_counter() - start:.0f} s)")
    return 1 if problems or code else 0


def tests(changes: list[str], budget: float, cores: int) -> tuple[int, str]:
    """Run the tests that the changes touch and that `budget` core-seconds allow: (status, a sentence)."""
    known = suite.seconds()
    possible = units(affected.touched(changes), known)
    chosen, left = choose(possible, budget)
    if not chosen:
        return 0, "no test has to do with the change"
    about = sum(unit.seconds for unit in chosen) / cores + START / 2
    files_of = len({unit.name.split("::")[0] for unit in chosen})
    print(f"tests from {terminal.count(files_of, 'file')}, about {about:.0f} s", flush=True)
    code, count = suite.run(arguments(chosen, left, known), cores if len(chosen) > 1 else 1)
    rest = f"; left to `python -m lib test`: {terminal.count(len(left), 'longer one')}, such as {left[0].name}" if left else ""
    late = f", {count.late} not begun for lack of time" if count.late else ""
    return int(code not in (0, 5)), f"{count.passed} passed, {count.failed} failed{late}{rest}"
