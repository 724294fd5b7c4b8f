"""Parameterised runs: the same pages, executed by papermill with other sizes.

`run` validates everything before a kernel starts and writes two files under `_runs/<page>/`: the executed notebook and
one JSON row with parameters, results and provenance.
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


def preset(page: pages.Page, name: str) -> dict:
    """Parameters of a preset of book/presets.yml; `laptop` is the page as it stands."""
    if name not in PRESETS:
        raise RunError(f"there is no preset '{name}'; choose one of {', '.join(PRESETS)}")
    if name == "laptop":
        return {}
    path = page.root / "book" / "presets.yml"
    table = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.exists() else {}
    if name not in table.get(page.name, {}):
        raise RunError(f"book/presets.yml has no '{name}' preset for {page.name}")
    return table[page.name][name]


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
    if "device" in known and "device" not in overrides:
        chosen["device"] = pick_device(device)
    elif pick_device(device) != "cpu" and "device" not in known:
        raise RunError(f"{page.name} has no device parameter; it runs on the CPU only")
    return {name: p.default for name, p in known.items()} | chosen


def run(page: pages.Page, settings: dict, folder: Path | None = None, progress: bool = True) -> dict:
    """Execute a page with all `settings` through papermill; returns its row, which is also written beside the notebook."""
    import papermill
    from nbformat import write as write_notebook
    from papermill.exceptions import PapermillExecutionError

    fingerprint = code_fingerprint(page)
    name = pages.digest(json.dumps([page.name, fingerprint, settings], sort_keys=True))
    folder = folder or page.root / "_runs" / page.name
    folder.mkdir(parents=True, exist_ok=True)
    output, row_path = folder / f"{name}.ipynb", folder / f"{name}.json"
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
        row |= {
            "status": "failed",
            "error": pages.plain_text(str(error)),
            "results": claims.records(json.loads(output.read_text())),
        }
    finally:
        os.environ.clear()
        os.environ.update(environment)
    row |= provenance(time.perf_counter() - start, settings.get("device", "cpu"))
    write_row(row_path, row)
    return row


def code_fingerprint(page: pages.Page) -> str:
    """One hash of the page's code, all of `lib` and the pins."""
    modules = sorted((page.root / "lib").glob("*.py"))
    parts = [*pages.code(pages.source(page)), *(path.read_text(encoding="utf-8") for path in modules)]
    return pages.digest("\0".join([*parts, pages.environment.pins_hash()]))


def provenance(seconds: float, device: str) -> dict:
    """Where and when a run was made."""
    return {
        "seconds": round(seconds, 2),
        "device": device,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": {name: pages.environment.pins().get(name) for name in ("torch", "numpy", "scipy")},
    }


def write_row(path: Path, row: dict) -> None:
    """Write a row in one step, so that nobody ever reads half of one."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(row, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)
