"""Parameterised runs: the same pages, executed by papermill with other parameters.

A run is validated before a kernel starts and leaves two files under `_runs/<page>/`: the executed notebook, and one JSON row
with parameters, results and provenance (`claims.Row`). The row's name is a hash of page, code and parameters, so the same run
has the same name everywhere, and a finished one need not be repeated.
"""

import contextlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from lib import claims
from lib.book import execute, freshness, pages, trace
from lib.book.pages import Page, digest
from lib.files import Problem, read_json, write_whole


def home(root: Path) -> Path:
    """Where rows and notebooks of runs go: $RACING_RUNS, or _runs/ in the repository."""
    return Path(os.environ.get("RACING_RUNS") or root / "_runs")


def path_of(page: Page, name: str) -> Path:
    """Where the row of a run is."""
    return home(page.root) / page.name / f"{name}.json"


def name_of(page: Page, settings: dict, fingerprint: str | None = None) -> str:
    """The name of a run: the same page, code and parameters always give the same one."""
    return digest(json.dumps([page.name, fingerprint or freshness.run_fingerprint(page), settings], sort_keys=True))


def run(page: Page, settings: dict, progress: bool = False, timeout: float | None = None) -> dict:
    """Execute a page with all `settings` through papermill; returns its row, which is also written beside the notebook.

    A page that raises gives a row with the status `failed`, its last sentence first and the traceback in `error`. `timeout` is
    in seconds for one cell.
    """
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from nbformat import write as write_notebook
    from papermill.exceptions import PapermillExecutionError

    fingerprint = freshness.run_fingerprint(page)
    name = name_of(page, settings, fingerprint)
    row = {"page": page.name, "run": name, "parameters": settings, "fingerprint": fingerprint, "data": {}}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, _environment(page.root):
        clean, executed, report = (Path(folder, file) for file in ("page.ipynb", "executed.ipynb", "used.json"))
        write_notebook(pages.source(page), clean)
        try:
            papermill.execute_notebook(
                clean, executed, parameters=settings, cwd=page.markdown.parent, kernel_name="python3", language="python",
                progress_bar=progress, log_output=False, execution_timeout=timeout, extra_arguments=trace.arguments(report),
            )  # fmt: skip
            row |= {"status": "finished"}
        except PapermillExecutionError as error:
            trouble = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
            row |= {"status": "failed", "error": f"{error.ename}: {error.evalue}\n\n{trouble}"}
        except CellTimeoutError:
            row |= {"status": "failed", "error": f"a cell took longer than {timeout:g} seconds"}
        except DeadKernelError:
            row |= {"status": "failed", "error": "the kernel died (was it killed, or out of memory?)"}
        except RuntimeError as error:  # no kernel, no loopback
            raise Problem(f"the kernel of {page.name} does not answer ({' '.join(str(error).split())[:200]})") from None
        notebook = read_json(executed)
        row["data"] = read_json(report)["data"] if report.exists() else {}
        write_whole(path_of(page, name).with_suffix(".ipynb"), executed.read_text(encoding="utf-8"))
    row |= {"results": measured(notebook), "kept": claims.kept(notebook)}
    row |= provenance(page.root, time.perf_counter() - start, settings.get("device", "cpu"))
    write_row(page, row)
    return row


@contextlib.contextmanager
def _environment(root: Path):
    """papermill gives its kernels this process's environment, so for a while it is that of a page's kernel."""
    before = dict(os.environ)
    os.environ.update(execute.kernel_environment(root, offline=False))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def measured(notebook: dict) -> dict[str, dict]:
    """What a run measured itself. The book's own parameters also show numbers of recorded runs, which are not this run's."""
    return {name: record for name, record in claims.records(notebook).items() if record["verdict"] != "recorded"}


def provenance(root: Path, seconds: float, device: str) -> dict:
    """When, where and with what a run was made."""
    return {
        "seconds": round(seconds, 2),
        "device": device,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(root),
        "python": platform.python_version(),
        "machine": hardware(device),
        "versions": {name: importlib.metadata.version(name) for name in ("torch", "numpy", "scipy")},
    }


def commit(root: Path) -> str:
    """The commit that is checked out, with '-dirty' if files were changed since; nothing outside of a repository."""
    ask = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*", "--abbrev=7"]
    try:
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def hardware(device: str) -> str:
    """This machine in a few words: system, processor, cores, memory, and the GPU if one was used."""
    about = Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*:\s*(.+)$", about.read_text() if about.exists() else "", re.MULTILINE)
    words = [f"{platform.system()} {platform.machine()}", *(" ".join(model.split()) for model in models[:1])]
    words.append(f"{os.cpu_count()} cores")
    with contextlib.suppress(ValueError, OSError, AttributeError):  # no sysconf, or not these names
        words.append(f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB")
    if device == "cuda":
        import torch

        words.append(torch.cuda.get_device_name())
    return ", ".join(words)


# --- rows ------------------------------------------------------------------------------------------------------------


def write_row(page: Page, row: dict) -> None:
    """Write a row in one step; a failed run never takes the place of a finished one."""
    if row["status"] == "failed" and finished(page, row["run"]):
        return
    write_whole(path_of(page, row["run"]), json.dumps(row, indent=1, ensure_ascii=False) + "\n")


def read_row(path: Path) -> dict | None:
    """A row, or None when there is none or the file is not a whole row (cut short, or something else)."""
    try:
        return read_json(path, claims.Row)
    except Problem:
        return None


def finished(page: Page, name: str) -> bool:
    """Whether a run of this name has finished."""
    row = read_row(path_of(page, name))
    return row is not None and row["status"] == "finished"


def rows(page: Page) -> tuple[list[dict], list[str]]:
    """All whole rows of a page, oldest first, and the names of files that are damaged."""
    found = {path.name: read_row(path) for path in sorted((home(page.root) / page.name).glob("*.json"))}
    whole = [row for row in found.values() if row]
    return sorted(whole, key=lambda row: row["finished"]), [name for name, row in found.items() if row is None]


def find_row(name: str, root: Path = pages.ROOT) -> dict:
    """The one row whose name begins so."""
    paths = home(root).glob(f"*/*/{name}*.json") if re.fullmatch(r"[A-Za-z0-9]+", name) else []
    found = [row for row in map(read_row, paths) if row]
    if len(found) != 1:
        raise Problem(f"'{name}' names {len(found)} runs under {home(root)}; give the name (or its beginning) of one")
    return found[0]


def record(name: str, root: Path = pages.ROOT) -> Path:
    """Keep a run's row with the book: copies it to book/<paper>/recorded/, whence its page shows it."""
    row = find_row(name, root)
    page = pages.find(row["page"], root)
    if row["status"] != "finished":
        raise Problem(f"run {row['run']} failed; only finished runs are recorded")
    if not row["results"]:
        raise Problem(f"run {row['run']} measured nothing that could be recorded")
    target = page.markdown.parent / "recorded" / f"{page.markdown.stem}-{row['run']}.json"
    write_whole(target, json.dumps(row, indent=1, ensure_ascii=False) + "\n")
    return target


def recorded(page: Page) -> list[dict]:
    """Recorded rows of a page, oldest first; `current` tells whether the page's code is still the one that made them."""
    found = claims.recorded_rows(page.name, page.root / "book")
    now = freshness.run_fingerprint(page) if found else ""
    return [row | {"current": row["fingerprint"] == now} for row in found]
