"""Parameterised runs: the same pages, executed by papermill with other sizes.

A run is validated before a kernel starts and leaves two files under `_runs/<page>/` (`home`): the executed notebook, and one JSON
row with parameters, results and provenance. The row's name is a hash of page, code and parameters, so the same run has
the same name everywhere, and a finished one need not be repeated. `workbench.sweeps` runs many of them.
"""

import contextlib
import functools
import importlib.metadata
import json
import os
import platform
import re
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import yaml

from lib.press import claims, pages, parameters

PRESETS = ("smoke", "laptop", "paper")
DEVICES = ("auto", "cpu", "cuda")


class RunError(Exception):
    """A run that cannot start or did not finish; the message is for the person at the terminal."""


def presets(page: pages.Page) -> dict:
    """The page's entry in book/presets.yml: `smoke`, `paper`, and `cost`, what the paper's size is expected to take."""
    path = page.root / "book" / "presets.yml"
    return _presets(path, path.stat().st_mtime_ns).get(page.name, {}) if path.exists() else {}


@functools.lru_cache(maxsize=4)
def _presets(path: Path, changed: int) -> dict:
    """The whole file, read again only when it has changed: a sweep asks once for each of its points."""
    return yaml.safe_load(path.read_text(encoding="utf-8")) or {}


@functools.lru_cache(maxsize=4)
def _parameters(path: Path, changed: int) -> dict[str, parameters.Parameter]:
    return parameters.of_page(path)


def preset(page: pages.Page, name: str) -> dict:
    """Parameters of a preset; `laptop` is the page as it stands."""
    if name not in PRESETS:
        raise RunError(f"there is no preset '{name}'; choose one of {', '.join(PRESETS)}")
    if name == "laptop":
        return {}
    if name not in presets(page):
        raise RunError(f"book/presets.yml has no '{name}' preset for {page.name}")
    return presets(page)[name]


def pick_device(device: str) -> str:
    """'cpu' or 'cuda'; `auto` takes CUDA when there is one, asking for it where there is none is an error."""
    if device not in DEVICES:
        raise RunError(f"there is no device '{device}'; choose one of {', '.join(DEVICES)}")
    if device == "cpu":
        return device
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise RunError("CUDA was asked for, but torch sees no CUDA device; use --device cpu")
    return "cuda" if torch.cuda.is_available() else "cpu"


def settle(page: pages.Page, overrides: dict, preset_name: str = "laptop", device: str = "cpu", pick=pick_device) -> dict:
    """All parameters of a run: the page's defaults, then the preset, then the overrides, validated.

    `pick` turns the device that was asked for into one that is there; runs on other machines bring their own.
    """
    known = _parameters(page.markdown, page.markdown.stat().st_mtime_ns)
    try:
        chosen = parameters.validate(preset(page, preset_name) | overrides, known)
    except (TypeError, OverflowError, MemoryError, RecursionError):  # what Python's own parser says to some texts
        raise parameters.ParameterError(f"one of these is no value: {', '.join(map(str, overrides.values()))[:200]}") from None
    if "device" in known:
        chosen["device"] = pick(overrides.get("device", device))
    elif device not in ("cpu", "auto") and pick(device) == "cuda":
        raise RunError(f"{page.name} has no device parameter; it runs on the CPU only")
    return {name: p.default for name, p in known.items()} | chosen


def code_fingerprint(page: pages.Page) -> str:
    """One hash of what decides what a run measures: the page's code, the modules and data it is known to use, the pins.

    The committed notebook knows which files the page used; without one, every module of `lib` counts. Claims do not: what
    they expect is compared with the measured value, and can be again.
    """
    before = (pages.stored(page) or {"metadata": {}})["metadata"].get("racing", {}).get("fingerprint", {})
    files = list(before.get("files", ())) or [
        path.relative_to(page.root).as_posix() for path in (page.root / "lib").glob("**/*.py")
    ]
    deciding = pages.fingerprint(page, [name for name in files if not name.startswith("book/")])
    del deciding["claims"]
    return pages.digest(json.dumps(deciding, sort_keys=True))


def name_of(page: pages.Page, settings: dict, fingerprint: str | None = None) -> str:
    """The name of a run: the same page, code and parameters always give the same one."""
    return pages.digest(json.dumps([page.name, fingerprint or code_fingerprint(page), settings], sort_keys=True))


def home(root: Path) -> Path:
    """Where rows and notebooks of runs go: $RACING_RUNS, or _runs/ in the repository."""
    return Path(os.environ.get("RACING_RUNS") or root / "_runs")


def folder_of(page: pages.Page) -> Path:
    return home(page.root) / page.name


def run(page: pages.Page, settings: dict, progress: bool = True) -> dict:
    """Execute a page with all `settings` through papermill; returns its row, which is also written beside the notebook."""
    import papermill
    from nbclient.exceptions import DeadKernelError
    from nbformat import write as write_notebook
    from papermill.exceptions import PapermillExecutionError

    fingerprint = code_fingerprint(page)
    name, folder = name_of(page, settings, fingerprint), folder_of(page)
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / f"{name}.ipynb"
    row = {"page": page.name, "run": name, "parameters": settings, "fingerprint": fingerprint}
    start, data = time.perf_counter(), {}
    environment = dict(os.environ)
    os.environ.update(pages.kernel_environment(page.root, offline=False))
    try:
        with tempfile.TemporaryDirectory() as temporary:
            clean, report = Path(temporary, "page.ipynb"), Path(temporary, "used.json")
            write_notebook(pages.source(page), clean)
            executed = papermill.execute_notebook(
                clean, output, parameters=settings, cwd=page.markdown.parent, kernel_name="python3", language="python",
                progress_bar=progress, log_output=False, extra_arguments=pages.traced(report),
            )  # fmt: skip
            data = json.loads(report.read_text())["data"] if report.exists() else {}
        row |= {"status": "finished", "results": measured(executed)}
    except (PapermillExecutionError, DeadKernelError) as error:  # the page raised; or its kernel was killed, or ran out of memory
        reached = measured(json.loads(output.read_text(encoding="utf-8")))
        row |= {"status": "failed", "error": pages.plain_text(str(error)), "results": reached}
    finally:
        os.environ.clear()
        os.environ.update(environment)
    row |= provenance(time.perf_counter() - start, settings.get("device", "cpu")) | {"data": data}
    write_row(folder / f"{name}.json", row)
    return row


def measured(notebook: dict) -> dict[str, dict]:
    """What a run measured itself. The book's own parameters also show numbers of recorded runs, which are not this run's."""
    return {name: record for name, record in claims.records(notebook).items() if record["verdict"] != "recorded"}


def provenance(seconds: float, device: str) -> dict:
    """When, where and with what a run was made; `run` adds the sha256 of the `data` that it loaded."""
    return {
        "seconds": round(seconds, 2),
        "device": device,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": hardware(device),
        "versions": {name: importlib.metadata.version(name) for name in ("torch", "numpy", "scipy")},
    }


def hardware(device: str) -> str:
    """This machine in a few words: system, processor, cores, memory, and the GPU if one was used."""
    parts = [f"{platform.system()} {platform.machine()}"]
    about = Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*:\s*(.+)$", about.read_text() if about.exists() else "", re.MULTILINE)
    parts += [" ".join(models[0].split())] if models else []
    parts.append(f"{os.cpu_count()} cores")
    with contextlib.suppress(ValueError, OSError, AttributeError):  # no sysconf, or not these names
        parts.append(f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB")
    if device == "cuda":
        import torch

        parts += [torch.cuda.get_device_name()] if torch.cuda.is_available() else []
    return ", ".join(parts)


def write_row(path: Path, row: dict) -> None:
    """Write a row in one step, so that nobody ever reads half of one; a failed run never takes the place of a finished one."""
    if row.get("status") == "failed" and (read_row(path) or {}).get("status") == "finished":
        return
    temporary = path.with_suffix(f".{platform.node()}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(row, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise RunError(f"the row {path.name} could not be written ({error.strerror}); finished rows are untouched") from None


def read_row(path: Path) -> dict | None:
    """A row, or None when there is none or the file is not a whole row (cut short, or something else)."""
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(row, dict) and {"page", "run", "parameters", "status", "results", "seconds"} <= set(row)
    return row if whole and row["run"] == path.stem else None


def rows(page: pages.Page) -> list[dict]:
    """All whole rows of a page, in order of their names."""
    found = (read_row(path) for path in sorted(folder_of(page).glob("*.json")))
    return [row for row in found if row is not None]


def flat(row: dict) -> dict:
    """A row as one line of a table: parameters, then each measured value, then provenance."""
    line = dict(row["parameters"])
    for name, record in row["results"].items():
        measured = record["measured"]
        if isinstance(measured, dict):
            line |= {f"{name}: {part}": value for part, value in measured.items()}
        elif isinstance(measured, list):
            line |= {f"{name}: {i}": value for i, value in enumerate(measured)}
        else:
            line[name] = measured
    return line | {key: row.get(key) for key in ("status", "seconds", "finished", "run", "fingerprint")}


def results(name: str, root: Path = pages.ROOT, finished: bool = True):
    """All runs of a page as one tidy pandas table: a line per run, a column per parameter and per measured value."""
    import pandas

    page = pages.find(name, root)
    lines = [flat(row) for row in rows(page) if row["status"] == "finished" or not finished]
    return pandas.DataFrame(lines)


def record(run_name: str, root: Path = pages.ROOT) -> Path:
    """Keep a run's row with the book: copies it to book/<paper>/recorded/, whence its page shows it."""
    found = [path for path in home(root).glob(f"**/{run_name}*.json") if read_row(path)]
    if len(found) != 1:
        raise RunError(f"'{run_name}' names {len(found)} runs under {home(root)}; give the name (or its beginning) of one")
    row = read_row(found[0])
    if row["status"] != "finished":
        raise RunError(f"run {row['run']} {row['status']}; only finished runs are recorded")
    paper, page = row["page"].split("/")
    target = root / "book" / paper / "recorded" / f"{page}-{row['run']}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(row, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return target


def recorded(page: pages.Page) -> list[dict]:
    """Recorded rows of a page, oldest first; `current` tells whether the code is still the one that made them."""
    folder = page.markdown.parent / "recorded"
    found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob(f"{page.markdown.stem}-*.json")]
    now = code_fingerprint(page) if found else ""
    return sorted((row | {"current": row["fingerprint"] == now} for row in found), key=lambda row: row["finished"])
