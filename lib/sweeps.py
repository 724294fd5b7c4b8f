"""Sweeps: many runs of one page over a grid of parameters, on this machine or on any Dask cluster.

Each point is one papermill run in a process of its own and leaves one row (`lib.runs`). A point whose row is finished is
skipped, so a sweep that was interrupted, in whatever way, goes on where it stopped when the same command is given again.
"""

import contextlib
import ctypes
import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from tqdm import tqdm

from lib import pages, runs

LIMIT = 100_000  # points of one sweep
DEATHS = 20  # workers that may die under one point before it counts as failed


def axis(text: str) -> tuple[str, list[str]]:
    """One `--grid`: 'seed=0:10' (whole numbers, the end excluded), 'gain=0.1:0.9:0.1' (decimals, the end included),
    or a list 'task=mnist,vai'. Returns the name and the values as text."""
    name, sign, values = text.partition("=")
    if not sign or not name or not values:
        raise runs.RunError(f"write a grid as NAME=START:STOP[:STEP] or NAME=A,B,C, not '{text}'")
    if ":" not in values:
        return name, values.split(",")
    try:
        edges = [Decimal(edge) for edge in values.split(":")]
        start, stop, step = edges if len(edges) == 3 else (*edges, Decimal(1))
    except (InvalidOperation, ValueError):
        raise runs.RunError(f"'{values}' is not a range START:STOP or START:STOP:STEP") from None
    whole = re.fullmatch(r"-?\d+(:-?\d+){1,2}", values) is not None
    count = math.ceil((stop - start) / step) if step > 0 else 0
    if not whole:
        count = int((stop - start) / step) + 1 if step > 0 and stop >= start else 0
    if not 0 < count <= LIMIT:
        raise runs.RunError(f"the range '{values}' has {max(count, 0)} values; it must have between 1 and {LIMIT}")
    return name, [str(start + i * step) for i in range(count)]


@dataclass(frozen=True)
class Point:
    settings: dict
    name: str

    def path(self, page: pages.Page) -> Path:
        return runs.folder_of(page) / f"{self.name}.json"

    def finished(self, page: pages.Page) -> bool:
        row = runs.read_row(self.path(page))
        return row is not None and row["status"] == "finished"


def points(page: pages.Page, grid: list[str], overrides: dict, preset: str = "laptop", device: str = "cpu") -> list[Point]:
    """Every combination of the grid's values, validated before anything starts; equal points are merged."""
    axes = [axis(text) for text in grid]
    names = [name for name, _ in axes]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise runs.RunError(f"the grid names {', '.join(sorted(twice))} twice")
    if math.prod(len(values) for _, values in axes) > LIMIT:
        raise runs.RunError(f"the grid has more than {LIMIT} points")
    fingerprint = runs.code_fingerprint(page)
    made = {}
    for values in itertools.product(*(values for _, values in axes)):
        settings = runs.settle(page, overrides | dict(zip(names, values, strict=True)), preset, device)
        name = runs.name_of(page, settings, fingerprint)
        made[name] = Point(settings, name)
    return list(made.values())


# --- one point, on a worker ------------------------------------------------------------------------------------------


def run_point(root: str, page_name: str, settings: dict, name: str, timeout: float, force: bool) -> dict:
    """Run one point in a fresh process and return its row. Runs on a Dask worker; failures come back as rows."""
    page = pages.Page(page_name, Path(root))
    point = Point(settings, name)
    if not force and point.finished(page):  # somebody else's sweep was faster
        return runs.read_row(point.path(page))
    command = [sys.executable, "-m", "lib", "_point", json.dumps([page_name, settings])]
    environment = pages.kernel_environment(Path(root), offline=False)
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=root, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        preexec_fn=die_with_parent,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=timeout)
        trouble = None if process.returncode == 0 else said.strip() or f"the process ended with status {process.returncode}"
    except subprocess.TimeoutExpired:
        trouble = f"the point took longer than {timeout:g} seconds and was stopped"
    finally:
        end_group(process)
    row = runs.read_row(point.path(page))
    if trouble is None and row is not None:
        return row
    if trouble is None:
        trouble = "the run ended without leaving a row"
    if row is None or row["status"] == "finished" or process.returncode != 1:
        taken = runs.provenance(page, time.perf_counter() - started, settings.get("device", "cpu"))
        row = {"page": page_name, "run": name, "parameters": settings, "status": "failed", "error": trouble, "results": {}}
        row |= {"fingerprint": ""} | taken
        try:
            runs.write_row(point.path(page), row)
        except (runs.RunError, OSError) as error:
            row["error"] = f"{trouble}\n{error}"
    return row


def die_with_parent() -> None:
    """Linux: have the kernel end this process when its worker is killed, so that no orphan runs the point twice."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def end_group(process: subprocess.Popen) -> None:
    """End a point's process with everything it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def execute_point(text: str) -> int:
    """Body of a point's process: `python -m lib _point JSON`. Status 0: finished, 1: failed with a row, 3: no row."""
    page_name, settings = json.loads(text)
    try:
        row = runs.run(pages.find(page_name), settings, progress=False)
    except (runs.RunError, OSError) as error:
        print(error)
        return 3
    if row["status"] != "finished":
        print(row["error"])
    return 0 if row["status"] == "finished" else 1


# --- the sweep -------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    finished: int = 0
    skipped: int = 0
    failed: int = 0
    interrupted: bool = False


def cluster(on: str, workers: int | None):
    """A Dask client: of a local cluster that listens on loopback only, or of the scheduler at an address."""
    import dask
    from distributed import Client, LocalCluster

    dask.config.set({"distributed.scheduler.allowed-failures": DEATHS, "distributed.admin.log-length": 0})
    if on != "local":
        try:
            return Client(on, timeout=10), None
        except (OSError, TimeoutError, ValueError) as error:
            raise runs.RunError(f"there is no Dask scheduler at {on} ({type(error).__name__})") from None
    for _ in range(3):
        try:
            local = LocalCluster(
                n_workers=workers or os.cpu_count() or 1, threads_per_worker=1, processes=True, host="127.0.0.1",
                dashboard_address=None, silence_logs="CRITICAL",
            )  # fmt: skip
            return Client(local), local
        except (RuntimeError, OSError, TimeoutError) as error:  # a worker that was killed while it started
            trouble = error
    raise runs.RunError(f"the local cluster did not start: {trouble}")


def sweep(
    page: pages.Page, todo: list[Point], *, on: str = "local", workers: int | None = None, timeout: float = 3600.0,
    force: bool = False, retries: int = 1, say=print,
) -> Outcome:  # fmt: skip
    """Run all points that have no finished row yet. A failed point is retried once; the others go on meanwhile."""
    from distributed import as_completed

    outcome = Outcome()
    waiting = [point for point in todo if force or not point.finished(page)]
    outcome.skipped = len(todo) - len(waiting)
    if not waiting:
        return outcome
    probe_writable(runs.folder_of(page))
    client, local = cluster(on, workers)
    tries: dict[str, int] = {}
    bar = tqdm(total=len(waiting), desc=page.name, unit="point", disable=not sys.stderr.isatty())

    def submit(point: Point):
        tries[point.name] = tries.get(point.name, 0) + 1
        future = client.submit(
            run_point, str(page.root), page.name, point.settings, point.name, timeout, force, pure=False, retries=0
        )
        future.point = point
        return future

    try:
        futures = as_completed([submit(point) for point in waiting])
        for future in futures:
            row = collect(future)
            point = future.point
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
            running = min(len(client.nthreads()), len(waiting) - outcome.finished - outcome.failed)
            bar.set_postfix(done=outcome.finished, failed=outcome.failed, running=running)
    except KeyboardInterrupt:
        outcome.interrupted = True
    finally:
        bar.close()
        shut_down(client, local)
    return outcome


def collect(future) -> dict:
    """A future's row; a worker that died too often, or a lost connection, becomes a failed row."""
    try:
        return future.result()
    except Exception as error:  # whatever happened on the worker is this point's failure, not the sweep's
        return {"status": "failed", "error": f"{type(error).__name__}: {error}"}


def keep(page: pages.Page, point: Point, row: dict) -> None:
    """Workers write their rows themselves; on machines that do not share our disk, the row is written here."""
    if "run" in row and runs.read_row(point.path(page)) is None:
        runs.write_row(point.path(page), row)


def describe(point: Point) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.settings.items())


def probe_writable(folder: Path) -> None:
    """A clear error before anything starts when rows could not be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.write_text("x")
        probe.unlink()
    except OSError as error:
        raise runs.RunError(f"rows cannot be written to {folder} ({error.strerror})") from None


def shut_down(client, local) -> None:
    """Close without waiting for what was interrupted; the points' processes end with their workers."""
    for part in (client, local):
        if part is not None:
            with contextlib.suppress(Exception):
                part.close(timeout=5)
