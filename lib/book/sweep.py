"""Sweeps: many runs of one page over a grid of parameters, on Dask: this machine, a scheduler's address, or Slurm.

Each point is one papermill run and leaves one row (`runs`). A point whose row is finished is skipped, so a sweep that was
interrupted, in whatever way, goes on where it stopped when the same command is given again. Workers that die are Dask's
business: it starts a point again elsewhere, and gives up after three deaths.
"""

import itertools
import math
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from pathlib import Path

from lib.book import freshness, pages, parameters, runs
from lib.book.pages import Page
from lib.book.verdicts import plural
from lib.files import Problem, read_yaml, write_whole

LIMIT = 100_000  # values of one parameter


@dataclass(frozen=True)
class Point:
    """One point of a sweep: its parameters and the name of its run."""

    settings: dict
    name: str


def axis(text: str) -> tuple[str, list[str]]:
    """One `--grid`: 'seed=0:10' (whole numbers, the end excluded), 'gain=0.1:0.9:0.1' (decimals, the end included),
    or a list 'task=mnist,vai'. Returns the name and the values as text."""
    name, _, values = text.partition("=")
    if not name or not values:
        raise Problem(f"write a grid as NAME=START:STOP[:STEP] or NAME=A,B,C, not '{text}'")
    if ":" not in values:
        return name, values.split(",")
    try:
        start, stop, *step = map(Decimal, values.split(":"))
        (step,) = step or [Decimal(1)]
        if not (step > 0 and stop >= start):
            raise Problem(f"the range '{values}' is empty: it needs a stop above its start and a step above zero")
        steps = (stop - start) / step
        whole = re.fullmatch(r"-?\d+(:-?\d+){1,2}", values) is not None
        count = math.ceil(steps) if whole else math.floor(steps) + 1
    except (DecimalException, ValueError, OverflowError):
        raise Problem(f"'{values}' is not a range START:STOP or START:STOP:STEP") from None
    if not 0 < count <= LIMIT:
        raise Problem(f"the range '{values}' has {count} values; it must have between 1 and {LIMIT}")
    return name, [str(start + i * step) for i in range(count)]


def points(
    page: Page, grid: list[str], overrides: dict, preset: str = "laptop", device: str = "cpu", here: bool = True
) -> list[Point]:
    """Every combination of the grid's values, validated before anything starts; equal points are merged."""
    axes = [axis(text) for text in grid]
    names = [name for name, _ in axes] + list(overrides)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Problem(f"{', '.join(twice)} is given twice")
    fingerprint, made = freshness.run_fingerprint(page), {}
    for values in itertools.product(*(values for _, values in axes)):
        chosen = dict(zip((name for name, _ in axes), values, strict=True))
        settings = parameters.resolve(page, overrides | chosen, preset, device, here)
        point = Point(settings, runs.name_of(page, settings, fingerprint))
        made[point.name] = point
    return list(made.values())


def changed(page: Page, point: Point) -> str:
    """What of a point is not the book's, in words."""
    other = parameters.difference(page, point.settings)
    return ", ".join(f"{name}={value}" for name, value in other.items()) or "the book’s own parameters"


def export(path: Path, page: Page, todo: list[Point]) -> int:
    """Write one ordinary `python -m lib run` command per point, for job arrays and GNU parallel; returns their number."""
    lines = []
    for point in todo:
        options = [f"-p {shlex.quote(f'{name}={value}')}" for name, value in parameters.difference(page, point.settings).items()]
        lines.append(" ".join([f"cd {shlex.quote(str(page.root))} && {sys.executable} -m lib run {page.name}", *options]))
    write_whole(path, "".join(f"{line}\n" for line in lines))
    return len(lines)


def failed_row(page: Page, point: Point, trouble: str) -> dict:
    """The row of a point whose worker could not write one."""
    about = {"page": page.name, "run": point.name, "parameters": point.settings, "status": "failed", "error": trouble}
    return about | {"results": {}, "fingerprint": "", "data": {}} | runs.provenance(page.root, 0.0, "cpu")


@contextmanager
def connect(on: str, workers: int | None, jobs: int, options: Path | None) -> Iterator:
    """A Dask client: of a cluster of our own on this machine, of a scheduler at tcp://…, or of jobs submitted to Slurm."""
    from dask import config
    from distributed import Client, LocalCluster

    config.set({"distributed.worker.daemon": False, "distributed.logging.distributed": "error"})
    if on == "local":
        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs="CRITICAL"
        )
    elif on == "slurm":
        cluster = slurm_cluster(jobs, options)
    elif re.match(r"(tcp|tls)://", on):
        try:
            with Client(on, timeout="10s") as client:
                yield client
        except (OSError, TimeoutError):
            raise Problem(f"there is no Dask scheduler at {on}") from None
        return
    else:
        raise Problem(f"'{on}' is no place to run a sweep; choose local, slurm or tcp://host:8786")
    with cluster, Client(cluster) as client:
        yield client


def slurm_cluster(jobs: int, options: Path | None):
    """Dask workers as Slurm jobs. `options` is a YAML file with arguments of dask_jobqueue.SLURMCluster: queue, memory, …"""
    if shutil.which("sbatch") is None:
        raise Problem("there is no Slurm on this machine (sbatch is not to be found); go to where you submit jobs")
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError:
        raise Problem("Slurm needs dask-jobqueue: pip install -e '.[slurm]'") from None
    given = {"cores": "1", "processes": "1", "memory": "4GB", "walltime": "02:00:00"} | (read_yaml(options) if options else {})
    given |= {name: int(given[name]) for name in ("cores", "processes")}
    prologue = [*given.pop("job_script_prologue", []), f"cd {shlex.quote(str(pages.ROOT))}"]
    try:
        cluster = SLURMCluster(
            **given, job_script_prologue=[*prologue, f"export PYTHONPATH={shlex.quote(str(pages.ROOT))}"],
            python=sys.executable, job_name="racing", log_directory=str(runs.home(pages.ROOT) / "slurm"),
            scheduler_options={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        )  # fmt: skip
        tried = subprocess.run(["sbatch", "--test-only"], input=cluster.job_script(), text=True, capture_output=True)
        if tried.returncode != 0:  # Dask would say so in a log, and wait for workers that never come
            cluster.close()
            raise Problem(f"Slurm refuses such a job: {' '.join(tried.stderr.split())[:300]}")
        cluster.scale(jobs=jobs)
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise Problem(f"the Slurm cluster did not start: {' '.join(str(error).split())[:300]}") from None
    return cluster


def sweep(
    page: Page, todo: list[Point], *, on: str = "local", workers: int | None = None, jobs: int = 4,
    options: Path | None = None, say=print,
) -> list[dict]:  # fmt: skip
    """Run these points; returns their rows. A point that fails keeps its traceback in its row and does not stop the others."""
    from distributed import as_completed

    made = []
    if not todo:
        return made
    with connect(on, workers and min(workers, len(todo)), jobs, options) as client:
        there = len(client.scheduler_info()["workers"])
        waiting = "" if there else ": waiting for one to connect"
        say(f"{page.name}: {plural(len(todo), 'point')} to run on {plural(there, 'worker')}{waiting}")
        point_of = {}
        for point in todo:
            point_of[client.submit(runs.run, page, point.settings, key=f"{page.name}-{point.name}", pure=False)] = point
        for future in as_completed(point_of):
            point = point_of[future]
            try:
                row = future.result()
            except Exception as error:  # a worker that died too often, a lost connection: this point's failure, not the sweep's
                row = failed_row(page, point, f"{type(error).__name__}: {' '.join(str(error).split())}")
            if runs.read_row(runs.path_of(page, point.name)) != row:  # a worker without our disk
                runs.write_row(page, row)
            made.append(row)
            trouble = f" ({row['error'].splitlines()[0]})" if row["status"] == "failed" else ""
            say(f"{len(made)} of {len(todo)} {row['status']}: {changed(page, point)}{trouble}")
    return made
