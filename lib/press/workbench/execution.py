"""Execution of pages: in fresh kernels that report what they used, in processes that end with the one that started them."""

import contextlib
import copy
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

from lib.press import files, pages
from lib.press.errors import PageError
from lib.press.notebooks import pairing
from lib.press.pages import ROOT, Page

TIMEOUT = 1800  # seconds that one cell may take
# glibc gives large arrays back to the system each time, and a kernel would spend up to a tenth of its time getting them again
KEEP = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}
SEVERAL = 5  # pages above which imports are worth while that only some of them make
SENTENCES = ("ClaimError", "VerdictChanged", "ParameterError", "DamagedFile", "MissingFile")  # their words need no traceback
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded here: between fork and exec it is too late


# --- processes -------------------------------------------------------------------------------------------------------


def start(command: list[str], root: Path, scratch: Path, offline: bool, **streams) -> subprocess.Popen:
    """`python -m lib …` in a process and a session of its own, which ends with this one and leaves its litter in `scratch`."""
    reports = os.environ.get("RACING_REPORTS") or tempfile.gettempdir()
    litter = {"TMPDIR": str(scratch), "JUPYTER_RUNTIME_DIR": str(scratch / "jupyter"), "RACING_REPORTS": reports}
    python = json.loads(os.environ.get("RACING_PYTHON", "[]")) or [sys.executable]  # see `nursery`
    return subprocess.Popen(
        [*python, "-m", "lib", *command], cwd=root, env=kernel_environment(root, offline) | litter,
        text=True, errors="replace", start_new_session=True, preexec_fn=die_with_parent, **streams,
    )  # fmt: skip


def die_with_parent() -> None:
    """Linux: have the system end this process when the one that started it is gone, so that no orphan goes on working."""
    if LIBC is not None:
        LIBC.prctl(1, signal.SIGKILL)


def end_group(process: subprocess.Popen) -> None:
    """End a process with everything it started, also the notebook's kernel, which has a session of its own."""
    import psutil

    family = []
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for one in family:
        with contextlib.suppress(psutil.Error):
            one.kill()
    process.wait()


# --- what a page uses ------------------------------------------------------------------------------------------------


def trace(report: str) -> None:
    """Runs inside a page's kernel: at exit, write which `files` of the repository it used and the sha256 of all `data` loaded.

    Opened files are caught by an audit hook, which sees every open() of the process. Pages and claims are left out: they
    are fingerprinted by their code and by the claims that concern the page.
    """
    import atexit

    die_with_parent()
    opened: set[str] = set()

    def hook(event, arguments):
        if event == "open" and isinstance(arguments[0], str | os.PathLike) and arguments[1] in ("r", "rb"):
            opened.add(os.fspath(arguments[0]))

    sys.addaudithook(hook)

    def finish():
        modules = {getattr(m, "__file__", None) for name, m in sys.modules.items() if name.split(".")[0] == "lib"}
        used = {Path(name).resolve() for name in opened | modules if name}
        inside = {path.relative_to(ROOT).as_posix() for path in used if path.is_relative_to(ROOT) and path.is_file()}
        of_the_book = r"book/.*\.(md|ipynb)$|book/.*claims\.yml$|book/.*/recorded/"
        doors = r"lib/press/(\w+/)?__init__\.py$"  # the press's doors only say where things are
        skip = re.compile(rf"^(\.|_|.*__pycache__|{of_the_book}|{doors}|.*\.pyc$|requirements\.txt$)")
        # These watch the page and do not take part in it, unless the page imported them for itself.
        watching = ("pages.py", "environment.py", "workbench/__init__.py", "workbench/execution.py")
        watching += ("notebooks/__init__.py", "notebooks/pairing.py")
        watchers = set() if "lib.press.workbench.runs" in sys.modules else {f"lib/press/{name}" for name in watching}
        used = sorted(name for name in inside if not skip.match(name) and name not in watchers)
        data = getattr(sys.modules.get("lib.data.datasets"), "LOADED", {})
        seconds = time.process_time() + float(os.environ.get("RACING_SPARED", 0))  # a fork's (`nursery`) imports were made before
        Path(report).write_text(json.dumps({"files": used, "data": data, "seconds": seconds}))

    atexit.register(finish)


def traced(report: Path) -> list[str]:
    """Arguments of a kernel that is to `trace` itself."""
    start = f"from lib.press.workbench.execution import trace; trace({str(report)!r}); del trace"
    return [f"--IPKernelApp.exec_lines={start}", "--IPKernelApp.log_level=ERROR"]  # no remarks about loopback's encryption


# --- execution -------------------------------------------------------------------------------------------------------


def execute(page: Page, progress=lambda done, total: None) -> float:
    """Run the page in a fresh kernel and write its notebook. Nothing is written when it fails.

    Returns the processor's seconds, which are those of a quiet machine on a busy one too.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook, before = pages.source(page), page.notebook.read_bytes() if page.notebook.exists() else None
    total = len(notebook.cells)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "used.json")
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT,
            kernel_name="python3",
            resources={"metadata": {"path": str(page.markdown.parent)}},
            extra_arguments=traced(report),
            on_cell_executed=lambda cell, cell_index, execute_reply: progress(cell_index + 1, total),
        )
        try:
            client.execute(env=kernel_environment(page.root))
        except CellExecutionError as error:
            known = error.ename in SENTENCES
            raise PageError(f"{page.name} failed:{f' {error.evalue}' if known else chr(10) + plain_text(str(error))}") from None
        except CellTimeoutError:
            raise PageError(f"{page.name} failed: a cell took longer than {TIMEOUT} seconds") from None
        except DeadKernelError:
            raise PageError(f"{page.name} failed: its kernel died (was it killed, or out of memory?)") from None
        except (RuntimeError, OSError) as error:  # no kernel, no loopback
            raise PageError(f"{page.name} failed: its kernel does not answer ({' '.join(str(error).split())[:200]})") from None
        said = json.loads(report.read_text()) if report.exists() else None
    if said is None:
        raise PageError(f"{page.name}: the kernel ended without reporting what it used")
    noise = noisy(notebook)
    if noise:
        raise PageError(f"{page.name}: {noise}")
    if before is not None and page.notebook.exists() and page.notebook.read_bytes() != before:  # somebody saved it meanwhile
        raise PageError(f"{page.name}: {page.notebook.name} was edited while the page ran, and stays as it is; try again")
    write(page, notebook, pages.fingerprint(page, said["files"]))
    return said["seconds"]


def kernel_environment(root: Path, offline: bool = True) -> dict:
    """Environment of a page's kernel: one thread for numerical libraries, memory that is kept, this `lib`, no network."""
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    network = {"RACING_OFFLINE": "1"} if offline else {}
    own = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    return os.environ | threads | KEEP | network | own


def plain_text(message: str) -> str:
    """A traceback without terminal colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", message)


def noisy(notebook: dict) -> str | None:
    """What in the outputs would differ from run to run (warnings with paths, memory addresses), or None."""
    for i, cell in enumerate(notebook["cells"]):
        for output in cell.get("outputs", []):
            shown = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            if output.get("name") == "stderr":
                return f"cell {i} writes to stderr: {shown.strip()[:300]}"
            if re.search(r"\b0x[0-9a-f]{6,}", shown):
                return f"cell {i} shows a memory address: {shown.strip()[:120]} (end the cell with a semicolon)"
    return None


def write(page: Page, notebook: dict, mark: dict) -> None:
    """Write the notebook in canonical form: no timestamps, no versions, so that an unchanged rerun changes no byte."""
    notebook = copy.deepcopy(dict(notebook))
    for cell in notebook["cells"]:
        cell["metadata"].pop("execution", None)
    from lib.press.plots import pictures  # imported late: kernels that only trace themselves need no pictures

    pictures.shrink(notebook)
    meta = notebook["metadata"]
    notebook["metadata"] = {
        "jupytext": meta.get("jupytext", {}),
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "racing": {"fingerprint": mark, "outputs": pages.outputs_digest(notebook), "pair": pages.inputs_digest(notebook)},
    }
    content = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if not page.notebook.exists() or page.notebook.read_bytes() != content.encode():
        files.write_whole(page.notebook, content, PageError)


def refresh(page: Page) -> None:
    """Carry edits in prose over to the notebook and keep its outputs; only for pages that are not stale."""
    notebook, old = pages.source(page), pages.stored(page)
    outputs = iter([cell for cell in old["cells"] if cell["cell_type"] == "code"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            ran = next(outputs)
            cell["outputs"], cell["execution_count"] = ran["outputs"], ran["execution_count"]
    write(page, notebook, old["metadata"]["racing"]["fingerprint"])


def note_seconds(name: str, value: float, root: Path) -> None:
    """Remember how long a page took; small changes are noise and not worth a line in the history."""
    known = pages.seconds(root)
    if not known.get(name) or not 0.75 < value / known[name] < 1.33:
        known[name] = round(value, 1)
        files.write_whole(root / "book" / pages.SECONDS, json.dumps(dict(sorted(known.items())), indent=1) + "\n", PageError)


# --- many pages ------------------------------------------------------------------------------------------------------


def bring_up_to_date(chosen: list[Page], force: bool = False, workers: int | None = None) -> list[str]:
    """Execute the stale pages in parallel, one bar per page; carry prose edits over. Returns the failures."""
    from tqdm import tqdm

    todo, refused = [], []
    for page in chosen:
        files.tidy(page.notebook.parent)
        try:
            pairing.settle(page, lambda sentence: print(f"  {sentence}", flush=True))
        except PageError as error:
            refused.append(str(error))
            continue
        reasons = ["asked for"] if force else pages.stale(page)
        if reasons:
            todo.append(page)
            print(f"  {page.name}: {', '.join(reasons[:3])}{' …' if len(reasons) > 3 else ''}", flush=True)
        elif pages.differences(page):
            refresh(page)
            print(f"  {page.name}: prose changed, outputs kept", flush=True)
    if not todo:
        return refused
    known = pages.seconds(todo[0].root)  # if that file is damaged, say so before anything runs
    todo.sort(key=lambda page: -known.get(page.name, 0.0))  # the longest first, so that none runs alone at the end
    writing, running, stopped = Lock(), {}, False
    bars = {
        page.name: tqdm(total=1, desc=page.name, position=i, file=sys.stdout, disable=not sys.stdout.isatty())
        for i, page in enumerate(todo)
    }

    def one(page: Page) -> str | None:
        bar, taken, strange = bars[page.name], 0.0, ""
        with writing:
            if stopped:
                return None
            log = scratch / f"{page.name.replace('/', '-')}.log"  # a pipe would fill up while nobody reads it
            with log.open("w") as said:
                streams = {"stdout": subprocess.PIPE, "stderr": said}
                process = running[page.name] = start(["_execute", page.name], page.root, scratch, offline=True, **streams)
        for line in process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                strange += line
                continue
            if "cells" in message:
                bar.total, bar.n = message["cells"], message["done"]
                bar.refresh()
            if "seconds" in message:
                with writing:
                    note_seconds(page.name, message["seconds"], page.root)
                taken = message["seconds"]
                bar.set_postfix_str(f"{taken:.1f} s")
        failed = process.wait() != 0
        errors = log.read_text(encoding="utf-8", errors="replace")
        if not sys.stdout.isatty() and not stopped:
            print(f"  {page.name}: {'FAILED' if failed else f'executed in {taken:.1f} s'}", flush=True)
        return (errors + strange).strip() or f"{page.name} stopped without a message" if failed else None

    with files.scratch() as scratch, warm(todo) as end_forks, ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        try:
            failures = [failure for failure in pool.map(one, todo) if failure]
        finally:  # also when somebody stops this: then nothing more starts, and what runs is ended
            with writing:
                stopped = True
            for process in running.values():
                if process.poll() is None:
                    end_group(process)
            end_forks()  # of which one may hold its interpreter's lock, and hear nothing
    for bar in bars.values():
        bar.close()
    return refused + failures


@contextlib.contextmanager
def warm(todo: list[Page]):
    """While this lasts, several pages and their kernels are forks of one interpreter that has made their imports (`nursery`).

    Gives a function that ends it before, with all forks.
    """
    from lib.press.notebooks import nursery  # late: a kernel that traces itself does not need it

    with contextlib.ExitStack() as stack:
        if len(todo) > 1 and sys.platform == "linux" and nursery.ADDRESS not in os.environ:
            science = any("import torch" in "\n".join(pages.code(pages.source(page))) for page in todo)
            modules = nursery.MODULES + nursery.MORE * (len(todo) > SEVERAL) if science else nursery.PRESS
            with contextlib.suppress(RuntimeError):  # then they are processes like any other
                stack.enter_context(nursery.Nursery(kernel_environment(todo[0].root), modules))
                stack.enter_context(nursery.used())
        yield stack.close


def execute_and_report(name: str) -> int:
    """Body of the subprocess that runs one page: progress as JSON lines on stdout, one message on stderr if it fails."""
    taken = execute(pages.find(name), lambda done, total: print(json.dumps({"done": done, "cells": total}), flush=True))
    print(json.dumps({"seconds": taken}), flush=True)
    return 0
