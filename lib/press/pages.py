"""Pages: MyST sources paired with executed notebooks, and the fingerprint that tells whether the outputs still hold.

A notebook's outputs depend on the page's code, on every `lib` module and data file that the page really used, on the
claims that it checks and on the pinned versions. The first time a page runs, its kernel reports which files it opened and
which modules it imported; their hashes are kept in the notebook. A page is stale when one of them has changed.
"""

import ast
import copy
import difflib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from lib.press import claims, environment

ROOT = environment.ROOT
SECONDS = "seconds.json"  # book/seconds.json: measured seconds, kept out of the notebooks
TIMEOUT = 1800  # seconds that one cell may take


class PageError(Exception):
    """A page that does not exist or does not run; the message is for the person at the terminal."""


@dataclass(frozen=True)
class Page:
    name: str  # "neural_race/routing"
    root: Path

    @property
    def markdown(self) -> Path:
        return self.root / "book" / f"{self.name}.md"

    @property
    def notebook(self) -> Path:
        return self.root / "book" / f"{self.name}.ipynb"


def every(root: Path = ROOT) -> list[Page]:
    """All pages that are paired with a notebook, in alphabetical order."""
    sources = sorted((root / "book").glob("**/*.md"))
    paired = (s for s in sources if "jupytext:" in s.read_text(encoding="utf-8")[:300])
    return [Page(s.relative_to(root / "book").with_suffix("").as_posix(), root) for s in paired]


def find(name: str, root: Path = ROOT) -> Page:
    """The page of that name; a PageError suggests the nearest one."""
    name = name.removeprefix("book/").removesuffix(".md").removesuffix(".ipynb")
    known = {page.name: page for page in every(root)}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise PageError(f"there is no page '{name}'{hint} (all pages: {', '.join(known) or 'none'})")
    return known[name]


def source(page: Page) -> dict:
    """The page's MyST source as a notebook without outputs, with stable cell ids."""
    import jupytext

    notebook = jupytext.read(page.markdown)
    for i, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{i:03d}"
    notebook.metadata.pop("racing", None)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def stored(page: Page) -> dict | None:
    """The committed notebook, or None."""
    return json.loads(page.notebook.read_text(encoding="utf-8")) if page.notebook.exists() else None


def code(notebook: dict) -> list[str]:
    """The sources of the code cells, in order."""
    return [text(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def text(cell: dict) -> str:
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def differences(page: Page) -> list[str]:
    """Where the page's .md and its .ipynb differ, in code, prose or cell metadata; empty when they are a pair."""
    notebook = stored(page)
    if notebook is None:
        return [f"{page.name}: there is no notebook beside it"]
    ours, theirs = source(page)["cells"], notebook["cells"]
    found = [] if len(ours) == len(theirs) else [f"{page.name}: {len(ours)} cells in .md, {len(theirs)} in .ipynb"]
    for i, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        same = a["cell_type"] == b["cell_type"] and text(a) == text(b) and dict(a["metadata"]) == dict(b["metadata"])
        if not same:
            found.append(f"{page.name}: cell {i} differs between .md and .ipynb: {text(a)[:60]!r} / {text(b)[:60]!r}")
    return found


# --- freshness -------------------------------------------------------------------------------------------------------


def digest(content: bytes | str) -> str:
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:16]


def claims_digest(page: Page) -> str:
    """Changes when a claim that this page checks, or a recorded run that it shows, changes; others do not count."""
    entries = claims.of_page(page.name, page.root / "book") if (page.markdown.parent / "claims.yml").exists() else {}
    rows = []
    if any(claim.verdict == "recorded" for claim in entries.values()):  # then the page shows what these runs found
        rows = [file_digest(path) for path in sorted((page.markdown.parent / "recorded").glob(f"{page.markdown.stem}-*.json"))]
    return digest(repr(sorted(entries.items())) + "".join(rows))


def fingerprint(page: Page, files: list[str]) -> dict:
    """Everything that decides the page's outputs; `files` are the modules and data it used, relative to the root."""
    return {
        "code": digest("\0".join(code(source(page)))),
        "claims": claims_digest(page),
        "pins": environment.pins_hash(),
        "files": {name: file_digest(page.root / name) for name in sorted(files)},
    }


def file_digest(path: Path) -> str:
    """Changes when a file changes; a module only when its code does, not its comments, docstrings or layout."""
    if not path.exists():
        return "missing"
    content = path.read_bytes()
    if path.suffix == ".py":
        try:
            return digest(spoken(without_docstrings(ast.parse(content))))
        except SyntaxError:  # then it changes nothing but the error
            pass
    return digest(content)


def without_docstrings(tree: ast.AST) -> ast.AST:
    """The same syntax tree, docstrings removed in place."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
            del body[0]
    return tree


def spoken(node) -> str:
    """A syntax tree as text that is the same in every version of Python: what is empty, or only says where, is left out."""
    if isinstance(node, ast.AST):
        parts = ((name, value) for name, value in ast.iter_fields(node) if name not in ("ctx", "kind", "type_comment"))
        inner = ",".join(f"{name}={spoken(value)}" for name, value in parts if value is not None and value != [])
        return f"{type(node).__name__}({inner})"
    return f"[{','.join(map(spoken, node))}]" if isinstance(node, list) else repr(node)


def stale(page: Page) -> list[str]:
    """Why the page's outputs no longer hold, in words; empty when they do."""
    notebook = stored(page)
    if notebook is None:
        return ["it was never executed"]
    before = notebook["metadata"].get("racing", {}).get("fingerprint")
    if before is None:
        return ["it has no fingerprint"]
    now = fingerprint(page, list(before["files"]))
    words = {"code": "its code changed", "claims": "its claims changed", "pins": "the pinned versions changed"}
    reasons = [reason for key, reason in words.items() if now[key] != before[key]]
    return reasons + [f"{name} changed" for name, value in before["files"].items() if now["files"][name] != value]


def trace(report: str) -> None:
    """Runs inside a page's kernel: at exit, write which `files` of the repository it used and the sha256 of all `data` loaded.

    Opened files are caught by an audit hook, which sees every open() of the process. Pages and claims are left out: they
    are fingerprinted by their code and by the claims that concern the page.
    """
    import atexit

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
        skip = re.compile(rf"^(\.|_|.*__pycache__|{of_the_book}|.*\.pyc$|requirements\.txt$)")
        # This module watches the page and does not take part in it, unless the page imported it for itself.
        watchers = set() if "lib.press.workbench.runs" in sys.modules else {"lib/press/pages.py", "lib/press/environment.py"}
        files = sorted(name for name in inside if not skip.match(name) and name not in watchers)
        data = getattr(sys.modules.get("lib.data.datasets"), "LOADED", {})
        Path(report).write_text(json.dumps({"files": files, "data": data}))

    atexit.register(finish)


def traced(report: Path) -> list[str]:
    """Arguments of a kernel that is to `trace` itself."""
    start = f"from lib.press.pages import trace; trace({str(report)!r}); del trace"
    return [f"--IPKernelApp.exec_lines={start}", "--IPKernelApp.log_level=ERROR"]  # no remarks about loopback's encryption


# --- execution -------------------------------------------------------------------------------------------------------


def execute(page: Page, progress=lambda done, total: None) -> float:
    """Run the page in a fresh kernel and write its notebook; returns the seconds. Nothing is written when it fails."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = source(page)
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
        start = time.perf_counter()
        try:
            client.execute(env=kernel_environment(page.root))
        except CellExecutionError as error:
            raise PageError(f"{page.name} failed:\n{plain_text(str(error))}") from None
        seconds = time.perf_counter() - start
        used = json.loads(report.read_text())["files"] if report.exists() else None
    if used is None:
        raise PageError(f"{page.name}: the kernel ended without reporting what it used")
    noise = noisy(notebook)
    if noise:
        raise PageError(f"{page.name}: {noise}")
    write(page, notebook, fingerprint(page, used))
    return seconds


def kernel_environment(root: Path, offline: bool = True) -> dict:
    """Environment of a page's kernel: one thread for every numerical library, this repository's `lib`, no network."""
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    network = {"RACING_OFFLINE": "1"} if offline else {}
    return os.environ | threads | network | {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


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
    meta = notebook["metadata"]
    notebook["metadata"] = {
        "jupytext": meta.get("jupytext", {}),
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "racing": {"fingerprint": mark},
    }
    content = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if page.notebook.exists() and page.notebook.read_text(encoding="utf-8") == content:
        return
    temporary = page.notebook.with_suffix(".tmp")
    temporary.write_text(content, encoding="utf-8")
    temporary.replace(page.notebook)


def refresh(page: Page) -> None:
    """Carry edits in prose over to the notebook and keep its outputs; only for pages that are not stale."""
    notebook, old = source(page), stored(page)
    outputs = iter([cell for cell in old["cells"] if cell["cell_type"] == "code"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            ran = next(outputs)
            cell["outputs"], cell["execution_count"] = ran["outputs"], ran["execution_count"]
    write(page, notebook, old["metadata"]["racing"]["fingerprint"])


def seconds(root: Path = ROOT) -> dict[str, float]:
    """Measured laptop seconds of every page."""
    path = root / "book" / SECONDS
    return json.loads(path.read_text()) if path.exists() else {}


def note_seconds(name: str, value: float, root: Path = ROOT) -> None:
    """Remember how long a page took; small changes are noise and not worth a line in the history."""
    known = seconds(root)
    if name not in known or not 0.75 < value / known[name] < 1.33:
        known[name] = round(value, 1)
        path = root / "book" / SECONDS
        path.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def bring_up_to_date(pages: list[Page], force: bool = False, workers: int | None = None) -> list[str]:
    """Execute the stale pages in parallel, one bar per page; carry prose edits over. Returns the failures."""
    from tqdm import tqdm

    todo = []
    for page in pages:
        reasons = ["asked for"] if force else stale(page)
        if reasons:
            todo.append(page)
            print(f"  {page.name}: {', '.join(reasons[:3])}{' …' if len(reasons) > 3 else ''}", flush=True)
        elif differences(page):
            refresh(page)
            print(f"  {page.name}: prose changed, outputs kept", flush=True)
    if not todo:
        return []
    writing = Lock()
    bars = {
        page.name: tqdm(total=1, desc=page.name, position=i, file=sys.stdout, disable=not sys.stdout.isatty())
        for i, page in enumerate(todo)
    }

    def one(page: Page) -> str | None:
        bar, taken = bars[page.name], 0.0
        command = [sys.executable, "-m", "lib", "_execute", page.name]
        process = subprocess.Popen(
            command, cwd=page.root, env=kernel_environment(page.root), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for line in process.stdout:
            message = json.loads(line)
            if "cells" in message:
                bar.total, bar.n = message["cells"], message["done"]
                bar.refresh()
            if "seconds" in message:
                with writing:
                    note_seconds(page.name, message["seconds"], page.root)
                taken = message["seconds"]
                bar.set_postfix_str(f"{taken:.1f} s")
        errors = process.stderr.read()
        failed = process.wait() != 0
        if not sys.stdout.isatty():
            print(f"  {page.name}: {'FAILED' if failed else f'executed in {taken:.1f} s'}", flush=True)
        return errors.strip() or f"{page.name} stopped without a message" if failed else None

    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        failures = [failure for failure in pool.map(one, todo) if failure]
    for bar in bars.values():
        bar.close()
    return failures


def execute_and_report(name: str) -> int:
    """Body of the subprocess that runs one page: progress as JSON lines on stdout, one message on stderr if it fails."""
    page = find(name)
    try:
        taken = execute(page, lambda done, total: print(json.dumps({"done": done, "cells": total}), flush=True))
    except (PageError, claims.ClaimError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({"seconds": taken}), flush=True)
    return 0
