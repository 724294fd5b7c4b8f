"""A sweep as a list of commands, one per point, for clusters where no scheduler of one's own may run.

Each line is complete: it can go through a job array, GNU parallel or `xargs`, on any machine that sees this folder. It leaves
the row that the sweep would leave, does nothing when that row is finished, and refuses when the code has changed since.
"""

import json
import os
import shlex
import sys
from pathlib import Path

from lib.press import files, pages, terminal
from lib.press.errors import RunError


def line(page: pages.Page, settings: dict, name: str, force: bool = False) -> str:
    """The command of one point, for a shell."""
    folder = os.environ.get("RACING_RUNS")
    where = f"RACING_RUNS={shlex.quote(str(Path(folder).resolve()))} " if folder else ""
    text = json.dumps([page.name, settings, name, False, force])
    return f"cd {shlex.quote(str(page.root))} && {where}{shlex.quote(sys.executable)} -m lib _point {shlex.quote(text)}"


def write(file: str, page: pages.Page, points: list, force: bool = False) -> str:
    """Write the commands of all `points` (of `sweeps.points`) whose rows are not finished; returns a sentence about it."""
    path, todo = Path(file), [point for point in points if force or not point.finished(page)]
    if path.is_dir() or not path.parent.is_dir():
        raise RunError(f"{path} is a folder" if path.is_dir() else f"there is no folder {path.parent}")
    commands = (line(page, point.settings, point.name, force) for point in todo)
    files.write_whole(path, "".join(f"{command}\n" for command in commands), RunError)
    return f"{terminal.count(len(todo), 'command')} written to {file}; {len(points) - len(todo)} left out (already finished)"
