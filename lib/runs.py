"""Parameterised runs: the same pages, executed by papermill with other sizes.

A run is validated before a kernel starts and leaves two files under `_runs/<page>/`: the executed notebook, and one JSON
row with parameters, results and provenance. The row's name is a hash of page, code and parameters, so the same run has
the same name everywhere, and a finished one need not be repeated. `lib.sweeps` runs many of them.
"""

import json
import os
import platform
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import yaml

from lib import claims, pages, parameters

PRESETS = ("smoke", "laptop", "paper")
DEVICES = ("auto", "cpu", "cuda")


class RunError(Exception):
    """A run that cannot start or did not finish; the message is for the person at the terminal."""


def presets(page: pages.Page) -> dict:
    """The page's entry in book/presets.yml: `smoke`, `paper`, and `cost`, what the paper's size is expected to take."""
    path = page.root / "book" / "presets.yml"
    table = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.exists() else {}
    return table.get(page.name, {})


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


def settle(page: pages.Page, overrides: dict, preset_name: str = "laptop", device: str = "cpu") -> dict:
    """All parameters of a run: the page's defaults, then the preset, then the overrides, validated."""
    known = parameters.of_page(page.markdown)
    chosen = parameters.validate(preset(page, preset_name) | overrides, known)
    picked = pick_device(device)
    if "device" in known and "device" not in overrides:
        chosen["device"] = picked
    elif picked != "cpu" and device == "cuda" and "device" not in known:
        raise RunError(f"{page.name} has no device parameter; it runs on the CPU only")
    return {name: p.default for name, p in known.items()} | chosen


def code_fingerprint(page: pages.Page) -> str:
    """One hash of what decides a run's results: the page's code, the modules and data it is known to use, the pins.

    The committed notebook knows which files the page used; without one, every module of `lib` counts.
    """
    before = (pages.stored(page) or {"metadata": {}})["metadata"].get("racing", {}).get("fingerprint", {})
    files = list(before.get("files", ())) or [f"lib/{path.name}" for path in (page.root / "lib").glob("*.py")]
    return pages.digest(json.dumps(pages.fingerprint(page, files), sort_keys=True))


def name_of(page: pages.Page, settings: dict, fingerprint: str | None = None) -> str:
    """The name of a run: the same page, code and parameters always give the same one."""
    return pages.digest(json.dumps([page.name, fingerprint or code_fingerprint(page), settings], sort_keys=True))


def folder_of(page: pages.Page) -> Path:
    return page.root / "_runs" / page.name


def run(page: pages.Page, settings: dict, progress: bool = True) -> dict:
    """Execute a page with all `settings` through papermill; returns its row, which is also written beside the notebook."""
    import papermill
    from nbformat import write as write_notebook
    from papermill.exceptions import PapermillExecutionError

    fingerprint = code_fingerprint(page)
    name, folder = name_of(page, settings, fingerprint), folder_of(page)
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / f"{name}.ipynb"
    row = {"page": page.name, "run": name, "parameters": settings, "fingerprint": fingerprint}
    start = time.perf_counter()
    environment = dict(os.environ)
    os.environ.update(pages.kernel_environment(page.root, offline=False))
    try:
        with tempfile.TemporaryDirectory() as temporary:
            clean = Path(temporary, "page.ipynb")
            write_notebook(pages.source(page), clean)
            executed = papermill.execute_notebook(
                clean, output, parameters=settings, cwd=page.markdown.parent, kernel_name="python3", language="python",
                progress_bar=progress, log_output=False,
            )  # fmt: skip
        row |= {"status": "finished", "results": claims.records(executed)}
    except PapermillExecutionError as error:
        reached = claims.records(json.loads(output.read_text(encoding="utf-8")))
        row |= {"status": "failed", "error": pages.plain_text(str(error)), "results": reached}
    finally:
        os.environ.clear()
        os.environ.update(environment)
    row |= provenance(page, time.perf_counter() - start, settings.get("device", "cpu"))
    write_row(folder / f"{name}.json", row)
    return row


def provenance(page: pages.Page, seconds: float, device: str) -> dict:
    """Where, when and with what a run was made."""
    before = (pages.stored(page) or {"metadata": {}})["metadata"].get("racing", {}).get("fingerprint", {})
    return {
        "seconds": round(seconds, 2),
        "device": device,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": {name: pages.environment.pins().get(name) for name in ("torch", "numpy", "scipy")},
        "data": {name: value for name, value in before.get("files", {}).items() if name.startswith("data/")},
    }


def write_row(path: Path, row: dict) -> None:
    """Write a row in one step, so that nobody ever reads half of one."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        temporary.write_text(json.dumps(row, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
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
    found = [path for path in (root / "_runs").glob(f"**/{run_name}*.json") if read_row(path)]
    if len(found) != 1:
        raise RunError(f"'{run_name}' names {len(found)} runs under _runs/; give the name (or its beginning) of one")
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
