"""Sweeps as jobs on a Slurm cluster, through dask-jobqueue: `python -m lib sweep … --on slurm`.

The scheduler runs in the sweep's own process, on the machine where the command is given; each job is a worker (or one per
core) that connects to it, encrypted, and takes one point at a time. Jobs that end before the sweep are submitted again.
"""

import argparse
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path

from lib.press import environment, files, schema
from lib.press.errors import RunError

FRUITLESS = 3  # looks at the queue in a row at which jobs had ended and no worker was there
TIME = r"(\d+-)?\d{1,3}(:\d{2}){1,2}"  # [DAYS-]HOURS:MINUTES[:SECONDS], as Slurm writes it


@dataclass(frozen=True)
class Slurm:
    """What to ask Slurm for. The same names are the fields of the YAML file and, most of them, options of `sweep`."""

    partition: str = ""  # Slurm's default partition
    account: str = ""
    jobs: int = 4  # at a time
    cores: int = 1  # of a job; each runs one point
    memory: str = "4GB"  # of a job
    walltime: str = "02:00:00"  # of a job; longer than a point may take
    interface: str = ""  # the network between the nodes, such as ib0; the default route's
    directives: tuple[str, ...] = ()  # further lines for the job script, without '#SBATCH': --gres=gpu:1
    prologue: tuple[str, ...] = ()  # shell lines before the worker starts: module load …
    look: float = 30.0  # seconds between two looks at the queue

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            for text in value if isinstance(value, tuple) else (value,):
                if isinstance(text, str) and not text.isprintable():
                    raise RunError(f"Slurm, {field.name}: one line of text, please, not {schema.brief(text)}")
        if not re.fullmatch(TIME, self.walltime):
            raise RunError(f"Slurm, walltime: write it as HOURS:MINUTES:SECONDS (in YAML in quotes), not '{self.walltime}'")
        if not re.fullmatch(r"\d+(\.\d+)?\s?[kKMGT]i?B?", self.memory):
            raise RunError(f"Slurm, memory: write it as 500MB or 4GB, not '{self.memory}'")
        for name in ("jobs", "cores"):
            if getattr(self, name) < 1:
                raise RunError(f"Slurm, {name}: a whole number above zero, not {getattr(self, name)}")
        if not self.look > 0:
            raise RunError(f"Slurm, look: a number of seconds above zero, not {self.look:g}")


KINDS = {str: "text", int: "a number", float: "a number"}
FILE = {field.name: schema.Field(KINDS.get(field.type, "a list"), required=False) for field in fields(Slurm)}


def read(path: Path) -> Slurm:
    """The wishes of a YAML file."""
    found = schema.check(files.read_yaml(path, RunError) or {}, FILE, path.name, RunError)
    given = {}
    for field in fields(Slurm):
        value = found.get(field.name)
        if value is None:
            continue
        if field.name == "walltime" and not isinstance(value, str):
            raise RunError(f"{path.name}: put the walltime in quotes, '02:00:00'; YAML takes {value} for a number")
        if field.type is int and not isinstance(value, int):
            raise RunError(f"{path.name}: '{field.name}' must be a whole number, not {schema.brief(value)}")
        given[field.name] = tuple(map(str, value)) if isinstance(value, list) else field.type(value)
    return Slurm(**given)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `sweep` that concern Slurm."""
    group = parser.add_argument_group("with --on slurm")
    group.add_argument("--cluster", metavar="FILE", help="YAML with any of: " + ", ".join(FILE))
    group.add_argument("--jobs", type=int, help="Slurm jobs at a time (default: 4)")
    group.add_argument("--partition", help="where they queue (default: Slurm's own)")
    group.add_argument("--memory", help="of a job (default: 4GB)")
    group.add_argument("--walltime", metavar="H:M:S", help="of a job (default: 02:00:00)")
    group.add_argument("--directive", action="append", metavar="TEXT", help="another line for sbatch, --directive=--gres=gpu:1")


def chosen(options: argparse.Namespace) -> "str | Slurm":
    """The place that the options of `sweep` name; options beside `--cluster` take precedence over its file."""
    names = ("jobs", "partition", "memory", "walltime")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    given |= {"directives": tuple(options.directive)} if options.directive else {}
    if options.on == "slurm":
        return replace(read(Path(options.cluster)) if options.cluster else Slurm(), **given)
    stray = [f"--{'directive' if name == 'directives' else name}" for name in given] + ["--cluster"] * bool(options.cluster)
    if stray:
        raise RunError(f"{stray[0]} is for --on slurm; a cluster of your own is as large as it is")
    return options.on


# --- the cluster -----------------------------------------------------------------------------------------------------


def start(wish: Slurm, shared: Path):
    """A dask-jobqueue cluster with its jobs submitted. `shared` is a folder that the nodes see, for keys and logs."""
    if missing := [program for program in ("sbatch", "squeue", "scancel") if shutil.which(program) is None]:
        raise RunError(f"there is no Slurm on this machine ({missing[0]} is not to be found); go to where you submit jobs")
    environment.need("slurm")
    from dask_jobqueue import SLURMCluster

    root = environment.ROOT
    with_defaults = {
        "queue": wish.partition or None, "account": wish.account or None, "interface": wish.interface or None,
    }  # fmt: skip
    try:
        ours = SLURMCluster(
            **with_defaults, cores=wish.cores, processes=wish.cores, memory=wish.memory, walltime=wish.walltime,
            job_extra_directives=list(wish.directives), job_name="racing", log_directory=str(shared),
            job_script_prologue=[*wish.prologue, f"cd '{root}'", f"export PYTHONPATH='{root}'"], silence_logs="CRITICAL",
            security=keys(shared), protocol="tls://",
            scheduler_options={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        )  # fmt: skip
    except (ValueError, OSError, RuntimeError) as error:
        raise RunError(f"the Slurm cluster did not start: {' '.join(str(error).split())[:300]}") from None
    try:
        try_out(ours.job_script(), shared)
        ours.scale(jobs=wish.jobs)
    except BaseException:
        ours.close(timeout=5)
        raise
    return ours


def keys(shared: Path):
    """Fresh keys of this sweep, in files that only we can read: others use the same machines and networks."""
    from distributed.security import Security

    names = ("tls_ca_file", *(f"tls_{role}_{part}" for role in ("scheduler", "worker", "client") for part in ("cert", "key")))
    made = Security.temporary()
    for name in names:
        path = shared / f"{name}.pem"
        path.touch(mode=0o600)
        path.write_text(getattr(made, name), encoding="utf-8")
    return Security(**{name: str(shared / f"{name}.pem") for name in names}, require_encryption=True)


def try_out(script: str, shared: Path) -> None:
    """Ask Slurm whether it would take the job at all: a wrong partition is a sentence now, not a queue that stays empty."""
    path = shared / "job.sh"
    path.write_text(script, encoding="utf-8")
    done = subprocess.run(["sbatch", "--test-only", str(path)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        words = [line.removeprefix("sbatch: ").removeprefix("error: ") for line in done.stdout.splitlines() if line.strip()]
        raise RunError(f"Slurm does not take the job: {words[0] if words else f'sbatch ended with status {done.returncode}'}")


def queued() -> set[str] | None:
    """Numbers of our jobs that wait or run; None when Slurm does not answer."""
    command = ["squeue", "--noheader", f"--user={os.getuid()}", "--format=%A %T"]
    done = subprocess.run(command, text=True, capture_output=True, timeout=60)
    if done.returncode:
        return None
    lines = (line.split() for line in done.stdout.splitlines())
    return {number for number, state in lines if state != "COMPLETING"}


class Watch:
    """Names, at each look, the workers whose jobs have ended; raises the alarm when jobs end before a worker connects."""

    def __init__(self, alarm: Callable[[str], None], shared: Path):
        self.alarm, self.shared, self.fruitless = alarm, shared, 0

    def __call__(self, ours) -> list:
        """For `places.tend`: the workers of the cluster `ours` that must be asked for again."""
        before = dict(ours.workers)  # first: a job that is submitted while Slurm answers is not missing
        there = queued()
        if there is None:
            return []
        ended = [name for name, job in before.items() if job.job_id not in there]
        if ours.scheduler_info["workers"] or not ended:
            self.fruitless = 0
        else:
            self.fruitless += 1
        if self.fruitless == FRUITLESS:
            self.alarm(f"the Slurm jobs end before they can work: {self.last_words()}")
        return ended

    def last_words(self) -> str:
        """What the latest job wrote last."""
        logs = sorted(self.shared.glob("*.err"), key=lambda path: path.stat().st_mtime)
        said = [line.strip() for path in logs for line in path.read_text(errors="replace").splitlines() if line.strip()]
        return said[-1][:300] if said else "they left no word; `sacct` may know why"
