"""Sweeps: many runs of one page over a grid of parameters, on this machine, on Slurm or on any Dask cluster (`press.clusters`).

Each point is one papermill run in a process of its own and leaves one row (`workbench.runs`). A point whose row is finished is
skipped, so a sweep that was interrupted, in whatever way, goes on where it stopped when the same command is given again. No two
processes work on the same point at once: sweeps that meet share their points.
"""

import contextlib
import itertools
import json
import math
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from pathlib import Path

from tqdm import tqdm

from lib.press import files, pages, terminal
from lib.press.clusters import places, slurm
from lib.press.errors import RunError
from lib.press.workbench import execution, runs

LIMIT = 100_000  # points of one sweep
QUIET = 60  # seconds between two lines of progress where there is no terminal
PATIENCE = 2.0  # seconds to wait for somebody else who works on the same point, before it is put last
BUSY = "another process is at work on this point just now"
ELSEWHERE, TERMINATED = 4, (143, -signal.SIGTERM)  # status of a point's process: somebody else has it; stopped from outside


def axis(text: str) -> tuple[str, list[str]]:
    """One `--grid`: 'seed=0:10' (whole numbers, the end excluded), 'gain=0.1:0.9:0.1' (decimals, the end included),
    or a list 'task=mnist,vai'. Returns the name and the values as text."""
    name, sign, values = text.partition("=")
    if not sign or not name or not values:
        raise RunError(f"write a grid as NAME=START:STOP[:STEP] or NAME=A,B,C, not '{text}'")
    if ":" not in values:
        return name, values.split(",")
    whole = re.fullmatch(r"-?\d+(:-?\d+){1,2}", values) is not None
    try:
        edges = [Decimal(edge) for edge in values.split(":")]
        start, stop, step = edges if len(edges) == 3 else (*edges, Decimal(1))
        steps = (stop - start) / step if step > 0 and stop >= start else Decimal(-1)
    except (DecimalException, ValueError):
        raise RunError(f"'{values}' is not a range START:STOP or START:STOP:STEP") from None
    if not all(edge.is_finite() for edge in (start, stop, step)):
        raise RunError(f"'{values}' is not a range START:STOP or START:STOP:STEP")
    if steps > LIMIT:
        raise RunError(f"the range '{values}' has too many values; it must have between 1 and {LIMIT}")
    count = math.ceil(steps) if whole else math.floor(steps) + 1
    if not 0 < count <= LIMIT:
        raise RunError(f"the range '{values}' has {max(count, 0)} values; it must have between 1 and {LIMIT}")
    return name, [str(start + i * step) for i in range(count)]


@dataclass(frozen=True)
class Point:
    """One point of a sweep: its parameters and the name of its run."""

    settings: dict
    name: str

    def path(self, page: pages.Page) -> Path:
        return runs.folder_of(page) / f"{self.name}.json"

    def finished(self, page: pages.Page) -> bool:
        row = runs.read_row(self.path(page))
        return row is not None and row["status"] == "finished"


def points(
    page: pages.Page, grid: list[str], overrides: dict, preset: str = "laptop", device: str = "cpu", pick=runs.pick_device
) -> list[Point]:
    """Every combination of the grid's values, validated before anything starts; equal points are merged.

    `pick` settles the device (`device_picker`).
    """
    axes = [axis(text) for text in grid]
    names = [name for name, _ in axes]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise RunError(f"the grid names {', '.join(sorted(twice))} twice")
    if math.prod(len(values) for _, values in axes) > LIMIT:
        raise RunError(f"the grid has more than {LIMIT} points")
    fingerprint = runs.code_fingerprint(page)
    made = {}
    for values in itertools.product(*(values for _, values in axes)):
        settings = runs.settle(page, overrides | dict(zip(names, values, strict=True)), preset, device, pick)
        name = runs.name_of(page, settings, fingerprint)
        made[name] = Point(settings, name)
    return list(made.values())


# --- one point, on a worker ------------------------------------------------------------------------------------------


def run_point(
    root: str, page_name: str, settings: dict, name: str, timeout: float | None, force: bool, progress: bool = False
) -> dict:
    """Run one point in a fresh process and return its row. Runs on a Dask worker; failures come back as rows.

    A failure with `passing` in its row is nobody's fault and is not written: somebody else is at work on the point (their row
    will come), or it was stopped from outside together with its worker.
    """
    page = pages.Page(page_name, Path(root))
    point = Point(settings, name)
    if not force and point.finished(page):  # somebody else's sweep was faster
        return runs.read_row(point.path(page))
    with contextlib.suppress(OSError), alone(page, name) as ours:  # asked here, for a process that only waits would cost as much
        if not ours:
            return failed_row(page, point, BUSY) | {"passing": "elsewhere"}
    command = ["_point", json.dumps([page_name, settings, name, progress, force])]
    started = time.perf_counter()
    with files.scratch() as scratch:
        streams = {"stdout": subprocess.PIPE, "stderr": None if progress else subprocess.STDOUT}  # papermill's bar is on stderr
        process = execution.start(command, page.root, scratch, offline=False, **streams)
        try:
            said, _ = process.communicate(timeout=timeout)
            trouble = None if process.returncode == 0 else said.strip() or f"the process ended with status {process.returncode}"
        except subprocess.TimeoutExpired:
            trouble = f"the point took longer than {timeout:g} seconds and was stopped"
        finally:
            execution.end_group(process)
    row = runs.read_row(point.path(page))
    if trouble is None and row is not None:
        return row
    if process.returncode == ELSEWHERE or process.returncode in TERMINATED:
        passing = "elsewhere" if process.returncode == ELSEWHERE else "stopped"
        return failed_row(page, point, trouble or "stopped", time.perf_counter() - started) | {"passing": passing}
    if trouble is None:
        trouble = "the run ended without leaving a row"
    if row is None or row["status"] == "finished" or process.returncode != 1:
        row = failed_row(page, point, trouble, time.perf_counter() - started)
        try:
            runs.write_row(point.path(page), row)
        except RunError as error:
            row["error"] = f"{trouble}\n{error}"
    return row


def failed_row(page: pages.Page, point: Point, trouble: str, seconds: float = 0.0) -> dict:
    """The row of a point that could not write one itself."""
    row = {
        "page": page.name,
        "run": point.name,
        "parameters": point.settings,
        "status": "failed",
        "error": trouble,
        "results": {},
    }
    return row | {"fingerprint": "", "data": {}} | runs.provenance(seconds, point.settings.get("device", "cpu"))


def execute_point(text: str) -> int:
    """A point's process, `python -m lib _point JSON`. Status 0: finished, 1: failed with a row, 3: no row, 4: elsewhere."""
    try:
        page_name, settings, name, progress, force = json.loads(text)
    except (ValueError, TypeError):
        raise RunError("this command is for sweeps, which say what to run; use `python -m lib run`") from None
    page = pages.find(page_name)
    if runs.name_of(page, settings) != name:
        print("the code has changed since the sweep began; give the command again to sweep with the new one")
        return 3
    try:
        with alone(page, name) as ours:
            if not ours:
                print(BUSY)
                return ELSEWHERE
            if not force and Point(settings, name).finished(page):  # in the meantime
                return 0
            row = runs.run(page, settings, progress=progress)
    except (RunError, OSError) as error:
        print(error)
        return 3
    if row["status"] != "finished":
        print(row["error"])
    return 0 if row["status"] == "finished" else 1


@contextlib.contextmanager
def alone(page: pages.Page, name: str, patience: float = PATIENCE):
    """While this lasts, no other process, on any machine that sees the folder, works on the run `name`. Gives False if one does.

    Each run has one byte of the folder's `.lock`, locked by the process that executes it; a lock ends with its process,
    however that ends. Where the file system has no locks, sweeps do not see each other and rows are written in one step anyway.
    """
    try:
        import fcntl
    except ImportError:  # not a Unix
        yield True
        return
    path, until = runs.folder_of(page) / ".lock", time.monotonic() + patience
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        ours = False
        while not ours:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(name[:15], 16))
                ours = True
            except (BlockingIOError, PermissionError):  # POSIX allows both
                if time.monotonic() > until:
                    break
                time.sleep(0.05)
            except OSError:
                ours = True
        yield ours  # closing the file gives the lock back


# --- the sweep -------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What became of a sweep: points finished, skipped and failed."""

    finished: int = 0
    skipped: int = 0
    failed: int = 0
    interrupted: bool = False


def sweep(
    page: pages.Page, todo: list[Point], *, on: places.Place = "local", workers: int | None = None, timeout: float = 3600.0,
    force: bool = False, retries: int = 1, say=print,
) -> Outcome:  # fmt: skip
    """Run all points that have no finished row yet. A failed point is retried once; the others go on meanwhile."""
    outcome = Outcome()
    waiting = [point for point in todo if force or not point.finished(page)]
    outcome.skipped = len(todo) - len(waiting)
    if not waiting:
        return outcome
    probe_writable(runs.folder_of(page))
    client = ours = None
    litter, over, trouble = contextlib.ExitStack(), threading.Event(), []
    live = {}  # by key: what has been handed out and has not come back
    tries, stops = Counter(), Counter()
    bar = tqdm(total=len(waiting), desc=page.name, unit="point", disable=not sys.stderr.isatty())
    began = spoke = time.monotonic()

    def alarm(text: str) -> None:
        """From the thread that tends the cluster: give up, which the loop below notices by its cancelled futures."""
        trouble.append(text)
        client.cancel(list(live.values()), force=True)

    def submit(point: Point):
        task = (str(page.root), page.name, point.settings, point.name, timeout, force)
        future = client.submit(run_point, *task, pure=False, retries=0)
        future.point = point
        live[future.key] = future
        return future

    try:
        jobs = isinstance(on, slurm.Slurm)
        shared = Path(litter.enter_context(shared_folder(page))) if jobs else Path()
        client, ours = places.connect(on, workers, litter.enter_context(files.scratch()), shared)
        if ours is not None:
            how = (on.jobs, over, on.look, slurm.Watch(alarm, shared)) if jobs else (len(ours.workers), over)
            threading.Thread(target=places.tend, args=(ours, *how), daemon=True).start()
        if bar.disable:
            hands = terminal.count(on.jobs, "Slurm job") if jobs else terminal.count(len(client.nthreads()), "worker")
            say(f"{page.name}: {terminal.count(len(waiting), 'point')} to run on {hands}")
        from distributed import as_completed  # late: where there is no cluster, this is not waited for

        futures = as_completed([submit(point) for point in waiting])
        for future in futures:
            point = future.point
            del live[future.key]
            row = collect(future, page)
            if trouble:
                raise RunError(trouble[0])
            passing = row.pop("passing", "")
            stops[point.name] += passing == "stopped"
            if passing == "elsewhere" or (passing and stops[point.name] < places.DEATHS):
                futures.add(submit(point))
                continue
            tries[point.name] += 1
            if row["status"] == "finished":
                outcome.finished += 1
                keep(page, point, row)
            elif tries[point.name] <= retries:
                futures.add(submit(point))
                continue
            else:
                outcome.failed += 1
                keep(page, point, row)
                say(f"failed: {describe(point)}: {row['error'].strip().splitlines()[-1]}")
            bar.update(1)
            left = len(waiting) - outcome.finished - outcome.failed
            running = min(sum(client.nthreads().values()), left)
            bar.set_postfix(done=outcome.finished, failed=outcome.failed, running=running)
            if bar.disable and time.monotonic() - spoke > QUIET:  # in a log file lines do what a bar does on a terminal
                spoke = time.monotonic()
                per_point = (spoke - began) / (len(waiting) - left)
                progress = f"{outcome.finished} done, {outcome.failed} failed, {running} running of {len(waiting)}"
                say(f"{progress}; about {left * per_point / 60:.0f} minutes left")
    except KeyboardInterrupt:
        outcome.interrupted = True
        with contextlib.suppress(Exception):  # on a cluster that stays, what has not started never does
            client.cancel(list(live.values()), force=True)
    finally:
        bar.close()
        over.set()
        places.shut_down(client, ours)
        litter.close()
    return outcome


def shared_folder(page: pages.Page) -> tempfile.TemporaryDirectory:
    """A folder beside the rows, which all machines see, for as long as a sweep lasts."""
    runs.home(page.root).mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(prefix=".slurm-", dir=runs.home(page.root).resolve(), ignore_cleanup_errors=True)


def collect(future, page: pages.Page) -> dict:
    """A future's row; a worker that died too often, or a lost connection, becomes a failed row."""
    try:
        return future.result()
    except Exception as error:  # whatever happened on the worker is this point's failure, not the sweep's
        return failed_row(page, future.point, f"{type(error).__name__}: {error}")


def keep(page: pages.Page, point: Point, row: dict) -> None:
    """Workers write their rows themselves; on machines that do not share our disk, the row is written here."""
    if runs.read_row(point.path(page)) != row:
        runs.write_row(point.path(page), row)


def describe(point: Point) -> str:
    """A point's parameters as a short text."""
    return ", ".join(f"{name}={value}" for name, value in point.settings.items())


def probe_writable(folder: Path) -> None:
    """A clear error before anything starts when rows could not be written."""
    probe = folder / f".probe.{platform.node()}.{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files.tidy(folder)
        probe.write_text("x")
    except OSError as error:
        raise RunError(f"rows cannot be written to {folder} ({error.strerror})") from None
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
