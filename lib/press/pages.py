"""Pages: MyST sources paired with executed notebooks, and the fingerprint that tells whether the outputs still hold.

A notebook's outputs depend on the page's code, on every `lib` module and data file that the page really used, on the
claims that it checks and on the pinned versions. The first time a page runs, its kernel reports which files it opened and
which modules it imported; their hashes are kept in the notebook. A page is stale when one of them has changed, or when
somebody has edited its outputs. `workbench.execution` brings it up to date.
"""

import ast
import copy
import difflib
import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from lib.press import claims, environment, files, schema
from lib.press.errors import PageError

ROOT = environment.ROOT
VIEW = {"collapsed", "editable", "execution", "jupyter", "papermill", "scrolled", "slideshow", "trusted", "vscode"}  # of cells
# What of a claim decides how its row is judged and shown; its note, its figure or its card may change without a rerun.
SAID = ("claim", "paper", "expect", "tolerance", "reason", "verdict", "author")
DECIDING = (*SAID, "rank", "erratum", "format", "finding", "nature")
SECONDS = "seconds.json"  # book/seconds.json: measured seconds, kept out of the notebooks


@dataclass(frozen=True)
class Page:
    """A page of the book: its name, its MyST source and the notebook beside it."""

    name: str  # "neural_race/routing"
    root: Path

    @property
    def markdown(self) -> Path:
        return self.root / "book" / f"{self.name}.md"

    @property
    def notebook(self) -> Path:
        return self.root / "book" / f"{self.name}.ipynb"


def every(root: Path | None = None) -> list[Page]:
    """All pages that are paired with a notebook, in alphabetical order."""
    root = root or ROOT
    sources = sorted(s for s in (root / "book").glob("**/*.md") if not s.parent.name.startswith("."))  # a viewer's copies
    paired = (s for s in sources if "jupytext:" in files.read_text(s, PageError)[:300])
    return [Page(s.relative_to(root / "book").with_suffix("").as_posix(), root) for s in paired]


def find(name: str, root: Path | None = None) -> Page:
    """The page of that name; a PageError suggests the nearest one."""
    name = name.removeprefix("book/").removesuffix(".md").removesuffix(".ipynb")
    known = {page.name: page for page in every(root)}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise PageError(f"there is no page '{name}'{hint} (all pages: {', '.join(known) or 'none'})")
    return known[name]


def source(page: Page) -> dict:
    """The page's MyST source as a notebook without outputs, with stable cell ids; the caller's own, to change it."""
    return copy.deepcopy(_source(page.markdown, files.read_text(page.markdown, PageError)))


@functools.lru_cache(maxsize=64)
def _source(path: Path, text: str) -> dict:
    """A text as a notebook, parsed once: freshness, pairing and execution all ask for it."""
    import jupytext

    try:
        notebook = jupytext.reads(text, fmt="md:myst")
    except Exception as error:  # its header is not YAML, a cell's tags are not, …
        raise PageError(f"{files.shown(path)} cannot be read as a page ({' '.join(str(error).split())[:200]})") from None
    for i, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{i:03d}"
    notebook.metadata.pop("racing", None)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def stored(page: Page) -> dict | None:
    """The committed notebook, or None; a PageError says what is wrong with its file."""
    return claims.read_notebook(page.notebook) if page.notebook.exists() else None


def code(notebook: dict) -> list[str]:
    """The sources of the code cells, in order."""
    return [text(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def text(cell: dict) -> str:
    """The source of a cell as one text."""
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def differences(page: Page) -> list[str]:
    """Where the page's .md and its .ipynb differ, in code, prose or cell metadata; empty when they are a pair."""
    notebook = stored(page)
    if notebook is None:
        return [f"{page.name}: there is no notebook beside it"]
    ours, theirs = inputs(source(page)), inputs(notebook)
    found = [] if len(ours) == len(theirs) else [f"{page.name}: {len(ours)} cells in .md, {len(theirs)} in .ipynb"]
    for i, (a, b) in enumerate(zip(ours, theirs, strict=False)):
        if a != b:
            found.append(f"{page.name}: cell {i} differs between .md and .ipynb: {a[1][:60]!r} / {b[1][:60]!r}")
    return found


def inputs(notebook: dict) -> list[tuple[str, str, dict]]:
    """(type, text, metadata) of every cell, as far as a .md can say it: no outputs, no state of a viewer, no empty prose."""
    found = []
    for cell in notebook["cells"]:
        kind, words = cell["cell_type"], text(cell)
        words = words.rstrip().lstrip("\n") if kind == "markdown" else words.removeprefix("\n").rstrip("\n")
        if words or kind != "markdown":
            found.append((kind, words, {key: value for key, value in cell["metadata"].items() if key not in VIEW}))
    return found


def inputs_digest(notebook: dict) -> str:
    """Changes when somebody edits a cell's text or metadata; kept in the notebook, it tells what both of a pair once said."""
    return digest(json.dumps(inputs(notebook), sort_keys=True))


def edited(page: Page) -> str:
    """Which of the pair was edited since they last agreed: "" (they agree), "md", "ipynb" or "both".

    Decided by content against the digest that the notebook keeps, never by the times of the files. A damaged notebook counts
    as not edited: it is made again.
    """
    try:
        notebook = stored(page)
    except PageError:
        return "md"
    if notebook is None:
        return "md"
    here, there = inputs_digest(source(page)), inputs_digest(notebook)
    if here == there:
        return ""
    racing = notebook["metadata"].get("racing")
    racing = racing if isinstance(racing, dict) else {}
    agreed = racing.get("pair")
    if agreed is None and isinstance(racing.get("fingerprint"), dict):  # from before pairs were marked: only its code is known
        agreed = racing["fingerprint"].get("code")
        here, there = (digest("\0".join(code(one))) for one in (source(page), notebook))
    return "md" if agreed == there else "ipynb" if agreed == here else "both"


# --- freshness -------------------------------------------------------------------------------------------------------


def digest(content: bytes | str) -> str:
    """A short hash of some content."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:16]


def claims_digest(page: Page) -> str:
    """Changes when a claim that this page checks, or a recorded run that it shows, changes; others do not count."""
    path = page.markdown.parent / "claims.yml"
    known = claims.load(path.parent.name, path.parent.parent) if path.exists() else {}
    entries = {name: claim for name, claim in known.items() if claim.page == page.name}
    rows = []
    if any(claim.verdict == "recorded" for claim in entries.values()):  # then the page shows what these runs found
        rows = [file_digest(path) for path in sorted((page.markdown.parent / "recorded").glob(f"{page.markdown.stem}-*.json"))]
    shown = [[name, *(getattr(claim, field) for field in DECIDING)] for name, claim in sorted(entries.items())]
    return digest(repr(shown) + "".join(rows))


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
    try:
        about = path.stat()
    except OSError:
        return "missing"
    return _file_digest(path, about.st_mtime_ns, about.st_size)


@functools.lru_cache(maxsize=4096)
def _file_digest(path: Path, changed: int, size: int) -> str:
    """Computed once for all pages that use the file, and again when it has been written."""
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


def outputs_digest(notebook: dict) -> str:
    """Changes when an output changes: a verdict that was edited by hand. Text counts the same in one piece or in lines."""

    def joined(value):
        if isinstance(value, dict):
            return {key: joined(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return (
                "".join(value) if value and all(isinstance(line, str) for line in value) else [joined(inner) for inner in value]
            )
        return value

    outputs = [joined(cell.get("outputs", [])) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return digest(json.dumps(outputs, sort_keys=True))


def stale(page: Page) -> list[str]:
    """Why the page's outputs no longer hold, in words; empty when they do."""
    try:
        notebook = stored(page)
    except PageError as error:  # it is made again like any other
        return [str(error)]
    if notebook is None:
        return ["it was never executed"]
    racing = notebook["metadata"].get("racing")
    before = racing.get("fingerprint") if isinstance(racing, dict) else None
    if not isinstance(before, dict) or not isinstance(before.get("files"), dict):
        return ["it has no fingerprint"]
    now = fingerprint(page, list(before["files"]))
    words = {"code": "its code changed", "claims": "its claims changed", "pins": "the pinned versions changed"}
    reasons = [] if racing.get("outputs") == outputs_digest(notebook) else ["its outputs are not those that it was executed with"]
    reasons += [reason for key, reason in words.items() if now[key] != before.get(key)]
    if now["code"] == before.get("code") != digest("\0".join(code(notebook))):
        reasons.append("its code was edited in the notebook")
    return reasons + [f"{name} changed" for name, value in before["files"].items() if now["files"][name] != value]


def seconds(root: Path | None = None) -> dict[str, float]:
    """Measured laptop seconds of every page."""
    path = (root or ROOT) / "book" / SECONDS
    if not path.exists():
        return {}
    known = files.read_json(path, PageError)
    if not isinstance(known, dict):
        raise PageError(f"{files.shown(path)}: expected the seconds of every page, found {schema.brief(known)}")
    return schema.check(known, {name: schema.Field("a time in seconds") for name in known}, files.shown(path), PageError)
