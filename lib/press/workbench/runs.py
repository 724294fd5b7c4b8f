"""Parameterised runs: the same pages, executed by papermill with other sizes.

A run is validated before a kernel starts and leaves three files under `_runs/<page>/` (`home`): the executed notebook, one JSON
row with parameters, results and provenance, and an HTML report to look at. The row's name is a hash of page, code and
parameters, so the same run has the same name everywhere, and a finished one need not be repeated. `workbench.sweeps` runs many
of them.
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

from lib.press import claims, files, pages, parameters, schema
from lib.press.errors import Problem, RunError
from lib.press.notebooks import plain
from lib.press.workbench import execution

PRESETS = ("smoke", "laptop", "paper")
DEVICES = ("auto", "cpu", "cuda")
OURS = ("device", "seed")  # parameters that no paper has


def presets(page: pages.Page) -> dict:
    """The page's entry in book/presets.yml: `smoke`, `paper`, and `cost`, what the paper's size is expected to take."""
    path = page.root / "book" / "presets.yml"
    return _presets(path, path.stat().st_mtime_ns).get(page.name, {}) if path.exists() else {}


@functools.lru_cache(maxsize=4)
def _presets(path: Path, changed: int) -> dict:
    """The whole file, read again only when it has changed: a sweep asks once for each of its points."""
    content = files.read_yaml(path, RunError) or {}
    if not isinstance(content, dict):
        raise RunError(f"{files.shown(path)}: expected the sizes of every page, found {schema.brief(content)}")
    for name, entry in content.items():
        schema.check(entry, schema.PRESET, f"{files.shown(path)}, {name}", RunError)
    return content


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
    return presets(page)[name] or {}


def stated(page: pages.Page, parameter: parameters.Parameter) -> str:
    """What the paper says of a parameter, for the page's table: a value, 'same', 'not stated', or '–' for knobs of our own."""
    sizes, name = presets(page), parameter.name
    words = (sizes.get("stated") or {}).get(name)
    if words is not None:
        return str(words)
    if name in OURS:
        return "–"
    value = (sizes.get("paper") or {}).get(name)
    if value is None:
        return "not stated"
    return "same" if value == parameter.default else f"`{value!r}`"


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

    The committed notebook knows which files the page used; without one, every module of `lib` counts. The press does not, as
    it prints what others measure; nor do claims: what they expect is compared with the measured value, and can be again.
    """
    before = (pages.stored(page) or {"metadata": {}})["metadata"].get("racing", {}).get("fingerprint", {})
    used = list(before.get("files", ())) or [
        path.relative_to(page.root).as_posix() for path in (page.root / "lib").glob("**/*.py")
    ]
    science = [name for name in used if not name.startswith(("book/", "lib/press/"))]
    deciding = pages.fingerprint(page, science)
    del deciding["claims"]
    return pages.digest(json.dumps(deciding, sort_keys=True))


def name_of(page: pages.Page, settings: dict, fingerprint: str | None = None) -> str:
    """The name of a run: the same page, code and parameters always give the same one."""
    return pages.digest(json.dumps([page.name, fingerprint or code_fingerprint(page), settings], sort_keys=True))


def home(root: Path) -> Path:
    """Where rows and notebooks of runs go: $RACING_RUNS, or _runs/ in the repository."""
    return Path(os.environ.get("RACING_RUNS") or root / "_runs")


def folder_of(page: pages.Page) -> Path:
    """Where the runs of a page lie."""
    return home(page.root) / page.name


def run(page: pages.Page, settings: dict, progress: bool = True) -> dict:
    """Execute a page with all `settings` through papermill; returns its row, which is also written beside notebook and report."""
    import papermill
    from nbclient.exceptions import DeadKernelError
    from nbformat import write as write_notebook
    from papermill.exceptions import PapermillExecutionError

    from lib.press.reports import progress as watch
    from lib.press.reports import run as look

    fingerprint = code_fingerprint(page)
    name, folder = name_of(page, settings, fingerprint), folder_of(page)
    row = {"page": page.name, "run": name, "parameters": settings, "fingerprint": fingerprint}
    start, data = time.perf_counter(), {}
    environment = dict(os.environ)
    os.environ.update(execution.kernel_environment(page.root, offline=False))
    own = all(p.default == settings.get(key, p.default) for key, p in parameters.of_page(page.markdown).items())
    expected = pages.seconds(page.root).get(page.name) if own else None
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as stack:
        clean, output, report = (Path(temporary, file) for file in ("page.ipynb", "executed.ipynb", "used.json"))
        engine = stack.enter_context(watch.watching(page, folder, expected, told=progress))
        try:
            write_notebook(pages.source(page), clean)
            executed = papermill.execute_notebook(
                clean, output, parameters=settings, cwd=page.markdown.parent, kernel_name="python3", language="python",
                engine_name=engine, progress_bar=False, log_output=False, extra_arguments=execution.traced(report),
            )  # fmt: skip
            data = json.loads(report.read_text())["data"] if report.exists() else {}
            row |= {"status": "finished", "results": measured(executed)}
        except (PapermillExecutionError, DeadKernelError) as error:  # the page raised; its kernel was killed, or out of memory
            reached = measured(json.loads(output.read_text(encoding="utf-8")))
            row |= {"status": "failed", "error": execution.plain_text(str(error)), "results": reached}
        except RuntimeError as error:  # no kernel, no loopback
            raise RunError(f"the kernel of {page.name} does not answer ({' '.join(str(error).split())[:200]})") from None
        finally:
            os.environ.clear()
            os.environ.update(environment)
        made = json.loads(output.read_text(encoding="utf-8"))
        readable = json.dumps(plain.notebook(page, made), indent=1, ensure_ascii=False) + "\n"
        files.write_whole(folder / f"{name}.ipynb", readable, RunError)
    row |= provenance(time.perf_counter() - start, settings.get("device", "cpu")) | {"data": data}
    if write_row(folder / f"{name}.json", row):
        with contextlib.suppress(Problem):  # the row counts; `python -m lib report` makes the report again
            look.write(page, row, made)
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


def write_row(path: Path, row: dict) -> bool:
    """Write a row in one step, so that nobody ever reads half of one; a failed run never takes the place of a finished one.

    Whether it was written.
    """
    if row.get("status") == "failed" and (read_row(path) or {}).get("status") == "finished":
        return False
    files.write_whole(path, json.dumps(row, indent=1, ensure_ascii=False) + "\n", RunError)
    return True


def read_row(path: Path) -> dict | None:
    """A row, or None when there is none or the file is not a whole row (cut short, or something else)."""
    try:
        return whole_row(path)
    except RunError:
        return None


def whole_row(path: Path) -> dict:
    """A row; a RunError says what is wrong with its file."""
    row = schema.check_row(files.read_json(path, RunError), path.name, RunError)
    if row["run"] != path.stem:
        raise RunError(f"{path.name} is the row of another run, {row['run']}")
    return row


def rows(page: pages.Page, damaged: list[str] | None = None) -> list[dict]:
    """All whole rows of a page, in order of their names; what is wrong with the others is added to `damaged`."""
    found = []
    for path in sorted(folder_of(page).glob("*.json")):
        try:
            found.append(whole_row(path))
        except RunError as error:
            if damaged is not None:
                damaged.append(str(error))
    return found


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


def results(name: str, root: Path | None = None, finished: bool = True, damaged: list[str] | None = None):
    """All runs of a page as one tidy pandas table: a line per run, a column per parameter and per measured value."""
    import pandas

    page = pages.find(name, root)
    lines = [flat(row) for row in rows(page, damaged) if row["status"] == "finished" or not finished]
    return pandas.DataFrame(lines)
