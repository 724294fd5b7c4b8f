"""Runs that are kept with the book: rows under `book/<paper>/recorded/`, which their pages show.

A row remembers the code that made it. When that code changes, the row is marked as one of older code, unless `still` has shown
that the change does not touch what is measured: the page in its smoke size gives the same numbers with the code of the run
(taken from the history) and with today's. So a faster path or a moved function does not cost hours of recording again. What was
shown is kept in `book/still.json`, {run: {fingerprint of the later code, date, numbers compared, largest difference}}; rows stay
as their runs have written them.
"""

import json
import math
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from lib.press import claims, files, pages, schema, terminal
from lib.press.errors import Problem, RunError
from lib.press.workbench import execution, runs

NUMBER = schema.Field("a number")
STILL = {"fingerprint": schema.Field(), "date": schema.Field(), "compared": NUMBER, "difference": NUMBER}  # the mark of `still`
EQUAL = 1e-3  # difference of numbers that count as the same, relative to them: rounding, as a few steps of training enlarge it


def record(run_name: str, root: Path | None = None) -> Path:
    """Keep a run's row with the book: copies it to book/<paper>/recorded/, whence its page shows it."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", run_name):
        raise RunError(f"'{run_name}' is not the name of a run, which has letters and digits only")
    root = root or pages.ROOT
    found = [path for path in runs.home(root).glob(f"**/{run_name}*.json") if runs.read_row(path)]
    if len(found) != 1:
        number = terminal.count(len(found), "run")
        raise RunError(f"'{run_name}' names {number} under {runs.home(root)}; give the name (or its beginning) of one")
    row = runs.read_row(found[0])
    if row["status"] != "finished":
        raise RunError(f"run {row['run']} {row['status']}; only finished runs are recorded")
    try:
        page = pages.find(row["page"], root)
        schema.check_row(row, found[0].name, RunError, recorded=True)
    except Problem as error:
        raise RunError(f"run {row['run']} cannot be recorded: {error}") from None
    target = page.markdown.parent / "recorded" / f"{page.markdown.stem}-{row['run']}.json"
    files.write_whole(target, json.dumps(row, indent=1, ensure_ascii=False) + "\n", RunError)
    return target


def recorded(page: pages.Page) -> list[dict]:
    """Recorded rows of a page, oldest first; `current` tells whether the code is the one that made them, or is known to measure
    the same: then `still` says how that was shown."""
    found = claims.recorded_rows(page.name, page.root / "book")
    now, marks = (runs.code_fingerprint(page), kept(page.root)) if found else ("", {})
    same = {run: mark for run, mark in marks.items() if mark["fingerprint"] == now}
    return [row | {"current": row["fingerprint"] == now or row["run"] in same, "still": same.get(row["run"])} for row in found]


def kept(root: Path) -> dict[str, dict]:
    """The marks of all runs that were shown to hold still."""
    path = root / "book" / "still.json"
    marks = files.read_json(path, RunError) if path.exists() else {}
    if not isinstance(marks, dict):
        raise RunError(f"{files.shown(path)}: expected the marks of runs, found {schema.brief(marks)}")
    return {run: schema.check(mark, STILL, f"{files.shown(path)}, run {run}", RunError) for run, mark in marks.items()}


def still(page: pages.Page, since: str, say: Callable[[str], None] = print) -> list[str]:
    """Runs of the page that were current in the commit `since`, and still are: the page in its smoke size measures the same with
    the code of then and of now. They are marked so, and named; a RunError says which number differs. The size is that of then;
    parameters that the page has had since are those of the smoke size.

    Only what both measure in that size is compared, and the mark says how many numbers these are and how far they differ.
    """
    stale = [row for row in recorded(page) if not row["current"]]
    if not stale:
        return []
    with files.scratch() as scratch:
        then = unpacked(since, page.root, scratch / "then")
        before = pages.find(page.name, then)
        known = {row["run"] for row in recorded(before) if row["current"]}
        mine = [row["run"] for row in stale if row["run"] in known]
        if not mine:
            raise RunError(f"no recorded run of {page.name} was made by the code of {since}")
        old = smoke(before, scratch / "old")
        size = runs.preset(page, "smoke") | old["parameters"]  # the smoke size of then, whatever it is today
        new = smoke(page, scratch / "new", size)
    mine_now = claims.of_page(page.name, page.root / "book")
    compared, distance, where = difference(old["results"], new["results"], mine_now)
    if not compared or not distance < EQUAL:
        what = f"{where} differs by {distance:.1e}" if compared else "no number is measured by both"
        raise RunError(f"{page.name} does not measure what it measured in {since}: {what}; run it again")
    say(f"{page.name}: {terminal.count(compared, 'number')} compared with those of {since}, largest difference {distance:.1e}")
    about = {"fingerprint": new["fingerprint"], "date": datetime.now(UTC).date().isoformat(), "compared": compared}
    marks = kept(page.root) | {run: about | {"difference": float(f"{distance:.1e}")} for run in mine}
    files.write_whole(page.root / "book" / "still.json", json.dumps(dict(sorted(marks.items())), indent=1) + "\n", RunError)
    return mine


def unpacked(commit: str, root: Path, target: Path) -> Path:
    """The files of a commit, in a folder of their own."""
    asked = subprocess.run(["git", "-C", str(root), "archive", "--format=tar", commit], capture_output=True)
    if asked.returncode:
        raise RunError(f"git does not know a commit '{commit}' here")
    with tarfile.open(fileobj=BytesIO(asked.stdout)) as archive:
        archive.extractall(target, filter="data")
    return target


def smoke(page: pages.Page, rows: Path, settings: dict | None = None) -> dict:
    """The row of a run in smoke size, or with these parameters, made by the code of the page's own repository."""
    size = ["--preset", "smoke"] if settings is None else [f"-p{name}={value}" for name, value in settings.items()]
    command = [sys.executable, "-m", "lib", "run", page.name, *size]
    environment = execution.kernel_environment(page.root) | {"RACING_RUNS": str(rows), "PYTHONPATH": str(page.root)}
    done = subprocess.run(command, cwd=page.root, env=environment, capture_output=True, text=True, errors="replace")
    made = [runs.read_row(path) for path in rows.glob("**/*.json")]
    if done.returncode or len(made) != 1 or made[0] is None or made[0]["status"] != "finished":
        last = (done.stdout + done.stderr).strip().splitlines() or ["no word of why"]
        raise RunError(f"the smoke run of {page.name} failed ({os.path.basename(page.root)}): {last[-1][:300]}")
    return made[0]


def difference(old: dict, new: dict, known: dict[str, claims.Claim]) -> tuple[int, float, str]:
    """How many numbers two runs have both measured, the largest difference among them, and in which claim it is.

    Relative to the larger one, or to the bound that they are held to where that is larger: of errors that ought to be zero, only
    what the bound would feel counts.
    """
    largest, where, count = 0.0, "", 0
    for name in sorted(set(old) & set(new)):
        edges = claims.relation(known[name])[1:] if name in known else ()
        bound = max((abs(edge) for edge in edges if math.isfinite(edge)), default=0.0)
        for a, b in pairs(old[name]["measured"], new[name]["measured"]):
            apart = 0.0 if a == b or (a != a and b != b) else abs(a - b) / max(abs(a), abs(b), bound)
            apart = apart if math.isfinite(apart) else math.inf
            count += 1
            if apart > largest:
                largest, where = apart, name
    return count, largest, where


def pairs(a, b) -> list[tuple[float, float]]:
    """The numbers of two measured values side by side; parts that only one of them has differ infinitely."""
    if isinstance(a, dict) and isinstance(b, dict):
        missing = [(0.0, math.inf)] * len(set(a) ^ set(b))
        return missing + [pair for part in a if part in b for pair in pairs(a[part], b[part])]
    if isinstance(a, list) and isinstance(b, list):
        return [pair for both in zip(a, b, strict=False) for pair in pairs(*both)] + [(0.0, math.inf)] * abs(len(a) - len(b))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return [(float(a), float(b))]
    return [] if a == b else [(0.0, math.inf)]
