"""Which documents must be read again: those that show something which has changed, and no others.

A generated box is made from claims, measured values, recorded runs, seconds and presets, not from anybody's prose. What it
can show is hashed part by part into stamps under `_build/results`; a document depends on the stamp of its own part, or on
that of the whole book, and Sphinx reads it again when that stamp is written. So an edit in the prose of a page renders
that page alone, and a verdict that changed renders all that speak of it.
"""

import json
from pathlib import Path

from lib import ROOMS
from lib.press import claims, files, pages
from lib.press.rendering import reference
from lib.press.verdicts import standing

WHOLE = "book"  # the stamp of everything
COSTS = "costs"  # the stamp of what the book has recorded about its own speed and its own tests
RECORDS = ("book/bench.json", "book/mutants.json")
MACHINERY = ("lib/press/rendering/*.py", "lib/press/verdicts/*.py", "lib/press/claims.py", "lib/press/parameters.py", "_toc.yml")


def stamp(root: Path, part: str) -> Path:
    """The file that is written when something changes that a generated box of this part, or of the whole book, can show."""
    return root / "_build" / "results" / part


def of_document(root: Path, docname: str) -> Path:
    """The stamp that a document depends on: its own part's if that has claims, else the whole book's."""
    folder = docname.removeprefix("book/").split("/")[0]
    return stamp(root, folder if (root / "book" / folder / "claims.yml").exists() else WHOLE)


def shown(page: pages.Page) -> list:
    """What others than its own document show of a page: outputs, figures with their captions, its first heading, its size."""
    notebook = pages.stored(page)
    if notebook is None:
        return [page.name]
    outputs = (notebook["metadata"].get("racing") or {}).get("outputs") or pages.outputs_digest(notebook)
    figures = [cell["metadata"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    heading = next((pages.text(cell).lstrip().splitlines()[:1] for cell in notebook["cells"]), [])
    return [page.name, outputs, figures, heading, f"{page.notebook.stat().st_size / 1e6:.1f}"]


def state(root: Path) -> dict[str, str]:
    """A digest for each part that has claims, one of the whole book, and one of its recorded costs."""
    book, parts = root / "book", {}
    machinery = [pages.file_digest(path) for pattern in MACHINERY for path in sorted(root.glob(pattern))]
    everything = pages.every(root)
    for part in claims.papers(book):
        kept = sorted((book / part / "recorded").glob("*.json"))
        known = [pages.file_digest(path) for path in (book / part / "claims.yml", *kept)]
        known += [shown(page) for page in everything if page.name.startswith(f"{part}/")]
        for name, read in ((pages.SECONDS, files.read_json), (standing.SEEDS, files.read_json), ("presets.yml", files.read_yaml)):
            table = read(book / name) if (book / name).exists() else {}
            known.append({key: value for key, value in (table or {}).items() if key.startswith(f"{part}/")})
        parts[part] = pages.digest(json.dumps([machinery, [path.name for path in kept], known], sort_keys=True, default=str))
    others = [pages.file_digest(book / name) for name in (pages.SECONDS, standing.SEEDS, "presets.yml")]
    costs = [pages.file_digest(root / name) for name in RECORDS] + [
        pages.file_digest(path) for path in sorted((root / "lib" / "press" / "bench").glob("*.py"))
    ]
    whole = {WHOLE: pages.digest(json.dumps([machinery, parts, others], sort_keys=True))}
    return parts | whole | {COSTS: pages.digest(json.dumps([machinery, costs]))}


def write_stamps(app) -> None:
    """Sphinx, before it looks for changes: write the stamps whose digest is another one than they hold."""
    root = Path(app.srcdir)
    for part, digest in state(root).items():
        path = stamp(root, part)
        if not path.exists() or path.read_text(encoding="utf-8") != digest:
            files.write_whole(path, digest)


def outdated_rooms(app, env, added, changed, removed) -> list[str]:
    """Sphinx: rooms of the reference whose text would be another one; it depends on little of what modules and pages say."""
    root = Path(app.srcdir)
    sources = [path.read_bytes() for path in sorted((root / "lib").glob("**/*.py"))]
    used = [page.name + reference.page_code(page) for page in pages.every(root)]
    now = {"sources": pages.digest(b"\0".join(sources) + "\0".join(used).encode())}
    before = getattr(env, "racing", {})
    if now["sources"] == before.get("sources"):
        return []
    for room in ROOMS:
        text = reference.door_text(room, root) + reference.room_text(room, root, lambda words, page: words)
        now[f"book/library/{room}"] = pages.digest(text)
    env.racing = now
    return [name for name in now if name in env.found_docs and now[name] != before.get(name)]


def watch_modules() -> None:
    """Have Sphinx write the page of a module's source again only when that file has changed.

    It asks where a source comes from, and does not trust the date of one that an extension has found for it.
    """
    from sphinx.ext import viewcode

    def file_of(app, module: str) -> str | None:
        path = Path(app.srcdir, *module.split(".")).with_suffix(".py")
        return str(path) if path.exists() else None

    viewcode.get_module_filename = file_of
