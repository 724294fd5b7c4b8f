"""Pages: MyST sources paired with executed notebooks."""

import functools
import json
from copy import deepcopy
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from lib import claims
from lib.files import Problem, nearest, read_json, read_text, shown

ROOT = Path(__file__).resolve().parent.parent.parent
VIEW = {"collapsed", "editable", "execution", "jupyter", "papermill", "scrolled", "slideshow", "trusted", "vscode"}  # of cells


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


def all_pages(root: Path = ROOT) -> list[Page]:
    """All pages that are paired with a notebook, in alphabetical order."""
    book = root / "book"
    sources = (path for path in sorted(book.glob("*/*.md")) if not path.parent.name.startswith((".", "_")))
    paired = (path for path in sources if "jupytext:" in read_text(path)[:300])
    return [Page(path.relative_to(book).with_suffix("").as_posix(), root) for path in paired]


def find(name: str, root: Path = ROOT) -> Page:
    """The page of that name; a Problem suggests the nearest one."""
    name = name.removeprefix("book/").removesuffix(".md").removesuffix(".ipynb")
    known = {page.name: page for page in all_pages(root)}
    if name not in known:
        raise Problem(f"there is no page '{name}'{nearest(name, known)} (`python -m lib pages` lists them)")
    return known[name]


def source(page: Page) -> dict:
    """The page's MyST source as a notebook without outputs, with stable cell ids."""
    return deepcopy(_source(page.markdown, read_text(page.markdown)))


@functools.lru_cache(maxsize=64)
def _source(path: Path, text: str) -> dict:
    import jupytext

    try:
        notebook = jupytext.reads(text, fmt="md:myst")
    except Exception as error:  # its header is not YAML, a cell's tags are not, …
        raise Problem(f"{shown(path)} cannot be read as a page ({' '.join(str(error).split())[:200]})") from None
    for i, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{i:03d}"
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def stored(page: Page) -> dict | None:
    """The committed notebook, or None; a Problem says what is wrong with its file."""
    return read_json(page.notebook, claims.Notebook) if page.notebook.exists() else None


def text(cell: dict) -> str:
    """The source of a cell as one text."""
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def code(notebook: dict) -> list[str]:
    """The sources of the code cells, in order."""
    return [text(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def inputs(notebook: dict) -> list[tuple[str, str, dict]]:
    """(type, text, metadata) of every cell, as far as a .md can say it: no outputs, no state of a viewer, no empty prose."""
    found = []
    for cell in notebook["cells"]:
        kind, words = cell["cell_type"], text(cell)
        words = words.rstrip().lstrip("\n") if kind == "markdown" else words.removeprefix("\n").rstrip("\n")
        if words or kind != "markdown":
            found.append((kind, words, {key: value for key, value in cell["metadata"].items() if key not in VIEW}))
    return found


def digest(content: bytes | str) -> str:
    """A short hash of some content."""
    return sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:16]


def inputs_digest(notebook: dict) -> str:
    """Changes when a cell's text or metadata is edited; kept in the notebook, it tells what both of a pair once said."""
    return digest(json.dumps(inputs(notebook), sort_keys=True))


def paired(page: Page) -> bool:
    """Whether the .md and the .ipynb say the same, outputs aside."""
    notebook = stored(page)
    return notebook is not None and inputs(source(page)) == inputs(notebook)


def figures(page: Page) -> dict[str, dict]:
    """The named figures of a page's executed notebook: name -> {"alt", "caption", "png" (base64)}, in order."""
    found = {}
    for cell in (stored(page) or {"cells": []})["cells"]:
        about = cell["metadata"].get("mystnb", {})
        name = about.get("figure", {}).get("name")
        pictures = [output["data"]["image/png"] for output in cell.get("outputs", []) if "image/png" in output.get("data", {})]
        if name and pictures:
            alt = about.get("image", {}).get("alt") or name
            found[name] = {"alt": alt, "caption": about["figure"].get("caption", ""), "png": "".join(pictures[0])}
    return found
