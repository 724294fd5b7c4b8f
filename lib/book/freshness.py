"""Freshness: what decides a page's outputs, and why they no longer hold.

A notebook's outputs depend on the page's code, on every `lib` module and data file that its kernel really used (`trace`), on
the claims that it checks, and on the versions of the packages that compute. Comments and docstrings do not count. The hashes
of all of these are kept in the notebook.
"""

import ast
import functools
import json
import re
from pathlib import Path

from lib import claims
from lib.book import pages
from lib.book.pages import Page, digest
from lib.files import Problem, read_json, read_text

# Only these packages decide what a page measures and draws; a new version of ruff or tqdm makes nothing stale.
COMPUTING = ("torch", "numpy", "scipy", "scikit-learn", "numba", "networkx", "matplotlib", "seaborn", "pandas")
# What of a claim decides how its row is judged and shown; its note, its figure or its card may change without a rerun.
DECIDING = (
    "claim", "paper", "expect", "tolerance", "reason", "verdict", "author", "rank", "erratum", "format", "finding", "nature",
)  # fmt: skip
SECONDS = "seconds.json"  # book/seconds.json: measured seconds, kept out of the notebooks


def versions(root: Path) -> str:
    """Changes when the pinned version of a package that computes changes."""
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", read_text(root / "requirements.txt"), re.M))
    return digest(repr([(name, pins.get(name)) for name in COMPUTING]))


def claims_digest(page: Page) -> str:
    """Changes when a claim that this page checks, or a recorded run that it shows, changes; others do not count."""
    folder = page.markdown.parent
    known = claims.of_page(page.name, folder.parent) if (folder / "claims.yml").exists() else {}
    kept = [json.loads(read_text(path)) for path in sorted((folder / "recorded").glob(f"{page.markdown.stem}-*.json"))]
    rows = [row["kept"] for row in kept if row.get("kept")]  # the page draws them
    if any(claim.verdict == "recorded" for claim in known.values()):  # then the page shows what these runs found
        rows += [[row["results"], row["finished"], row["seconds"], row["device"]] for row in kept]
    shown = [[name, *(getattr(claim, field) for field in DECIDING)] for name, claim in sorted(known.items())]
    return digest(json.dumps([shown, rows], sort_keys=True))


def code_digest(notebook: dict) -> str:
    """Changes when the code of a page changes, comments not counting."""
    return digest("\0".join(map(_meaning, pages.code(notebook))))


def file_digest(path: Path) -> str:
    """Changes when a file changes; a module only when its code does, not its comments, docstrings or layout."""
    if not path.exists():
        return "missing"
    about = path.stat()
    return _file_digest(path, about.st_mtime_ns, about.st_size)


@functools.lru_cache(maxsize=4096)
def _file_digest(path: Path, changed: int, size: int) -> str:
    """Computed once for all pages that use the file, and again when it has been written."""
    content = path.read_bytes()
    return digest(_meaning(content)) if path.suffix == ".py" else digest(content)


def _meaning(code: bytes | str) -> bytes | str:
    """Python code without comments, docstrings and layout, the same in every version of Python; what is no Python as it is."""
    try:
        return _canonical(ast.parse(code))
    except (SyntaxError, ValueError):
        return code


def _canonical(node) -> str:
    if isinstance(node, list):
        return f"[{','.join(map(_canonical, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    inner = []
    for name in node._fields:
        value = getattr(node, name, None)
        if name == "body" and isinstance(value, list) and value and isinstance(value[0], ast.Expr):
            value = value[1:] if isinstance(getattr(value[0].value, "value", None), str) else value  # without its docstring
        if value is not None and value != [] and name not in ("ctx", "kind", "type_comment"):
            inner.append(f"{name}={_canonical(value)}")
    return f"{type(node).__name__}({','.join(inner)})"


def fingerprint(page: Page, files: list[str]) -> dict:
    """Everything that decides the page's outputs; `files` are the modules and data it used, relative to the root."""
    return {
        "code": code_digest(pages.source(page)),
        "claims": claims_digest(page),
        "versions": versions(page.root),
        "files": {name: file_digest(page.root / name) for name in sorted(files)},
    }


def run_fingerprint(page: Page) -> str:
    """One hash of what decides what a run measures: the page's code, the modules and data it is known to use, the versions.

    The committed notebook knows which files the page used; without one, every module of `lib` counts. What shows and judges
    measurements does not count: claims are compared with the measured value, and can be again.
    """
    notebook = pages.stored(page) or {"metadata": {}}
    used = list(notebook["metadata"].get("racing", {}).get("fingerprint", {}).get("files", ()))
    used = used or [path.relative_to(page.root).as_posix() for path in (page.root / "lib").glob("*/*.py")]
    showing = ("book/", "lib/book/", "lib/claims.py", "lib/files.py", "lib/plots.py", "lib/__init__.py")
    deciding = fingerprint(page, [name for name in used if not name.startswith(showing)])
    del deciding["claims"]
    return digest(json.dumps(deciding, sort_keys=True))


def outputs_digest(notebook: dict) -> str:
    """Changes when an output changes: a verdict that was edited by hand. Text counts the same in one piece or in lines."""

    def joined(value):
        if isinstance(value, dict):
            return {key: joined(inner) for key, inner in value.items()}
        if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
            return "".join(value)
        return [joined(inner) for inner in value] if isinstance(value, list) else value

    outputs = [joined(cell.get("outputs", [])) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return digest(json.dumps(outputs, sort_keys=True))


def stale(page: Page) -> list[str]:
    """Why the page's outputs no longer hold, in words; empty when they do."""
    try:
        notebook = pages.stored(page)
    except Problem as error:  # it is made again like any other
        return [str(error)]
    if notebook is None:
        return ["it was never executed"]
    racing = notebook["metadata"].get("racing") or {}
    before = racing.get("fingerprint")
    if not isinstance(before, dict) or not isinstance(before.get("files"), dict):
        return ["it has no fingerprint"]
    now = fingerprint(page, list(before["files"]))
    words = {"code": "its code changed", "claims": "its claims changed", "versions": "the pinned versions changed"}
    reasons = [] if racing.get("outputs") == outputs_digest(notebook) else ["its outputs are not those that it was executed with"]
    reasons += [reason for key, reason in words.items() if now[key] != before.get(key)]
    return reasons + [f"{name} changed" for name, value in before["files"].items() if now["files"][name] != value]


def seconds(root: Path) -> dict[str, float]:
    """Measured laptop seconds of every page."""
    path = root / "book" / SECONDS
    return read_json(path, dict[str, float]) if path.exists() else {}
