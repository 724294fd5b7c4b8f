"""A page and its notebook: whichever was edited last wins, an edit on both sides is refused, nothing is overwritten silently.

A notebook that was edited, in Jupyter or anywhere else, is carried over to its .md cell by cell: cells that nobody touched keep
their lines to the letter, so that the .md changes by no more than was edited.
"""

import copy
import difflib
import json
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lib.press import files, pages
from lib.press.errors import PageError
from lib.press.pages import Page

SIDES = {"md": "the .md", "ipynb": "the notebook"}
FENCE = re.compile(r"^(`{3,}|~{3,})")


def settle(page: Page, say=lambda sentence: None) -> None:
    """Have a .md that holds what was edited last; a PageError when both of the pair were edited.

    A .md that was edited is not carried over here: that is what execution does, which knows whether the outputs still hold.
    """
    which = pages.edited(page)
    if which == "both":
        raise PageError(
            f"{files.shown(page.markdown)} and {files.shown(page.notebook)} were both edited since they last agreed; "
            f"`python -m lib pair {page.name}` shows where they differ, and with --keep md or --keep ipynb you choose one"
        )
    if which == "ipynb":
        lines = carry(page)
        say(f"{page.name}: edited in the notebook, {lines} of its .md follow")


def carry(page: Page) -> str:
    """Write what the notebook says to the .md, and into the notebook that they agree; returns '1 line', '2 lines'."""
    from lib.press.terminal import count

    before, notebook = files.read_text(page.markdown, PageError), pages.stored(page)
    after = carried(before, notebook, files.shown(page.markdown))
    changed = sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in _diff(before, after))
    files.write_whole(page.markdown, after, PageError)
    agree(page, notebook)
    return count(changed, "line")


def agree(page: Page, notebook: dict) -> None:
    """Write the notebook, marked as one that says the same as its .md; outputs and fingerprint stay as they are."""
    mark = notebook["metadata"].get("racing")
    notebook["metadata"]["racing"] = (mark if isinstance(mark, dict) else {}) | {"pair": pages.inputs_digest(notebook)}
    content = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    files.write_whole(page.notebook, content, PageError)


def opened(page: Page) -> tuple[dict, str]:
    """A page's notebook as Jupyter shows it: inputs as edited last, known outputs, directives as plain Markdown.

    With it comes the digest of what the .md says, for `saved` to know whether somebody edits the .md meanwhile.
    """
    from lib.press.notebooks import plain  # late: pages are executed under this module's eyes, and do not depend on that one

    settle(page)
    text, stored = pages.source(page), pages.stored(page)
    if stored is not None and pages.edited(page) == "":
        made = stored
    else:
        made = {**(stored or {"nbformat": 4, "nbformat_minor": 5}), "metadata": dict((stored or text)["metadata"])}
        made["cells"] = with_outputs(text, stored)["cells"]
    return plain.notebook(page, made), pages.inputs_digest(text)


def saved(page: Page, notebook: dict, agreed: str | None) -> str:
    """Write what Jupyter saves to both of the pair; returns the digest of what the .md says now.

    `agreed` is the digest that `opened` gave (or `saved`, last time). When the .md says something else by now, somebody edits
    it elsewhere: a PageError, and nothing is written.
    """
    from lib.press.notebooks import plain

    made = plain.natural(copy.deepcopy(dict(notebook)))
    text = files.read_text(page.markdown, PageError)
    now = pages.inputs_digest(pages.source(page))
    if agreed is not None and agreed != now and now != pages.inputs_digest(made):
        name = files.shown(page.markdown)
        raise PageError(f"{name} was edited elsewhere since this notebook was opened; reload it here, or undo the edit in {name}")
    after = carried(text, made, files.shown(page.markdown))
    stored = pages.stored(page)
    kept = (stored or made)["metadata"]
    named = {key: value for key, value in kept.items() if key in ("jupytext", "racing")}
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    made["metadata"] = named | kernel | {"language_info": {"name": "python"}}
    ran = {pages.text(cell): cell["outputs"] for cell in (stored or {"cells": []})["cells"] if cell["cell_type"] == "code"}
    for cell in made["cells"]:
        cell["metadata"] = {key: value for key, value in cell["metadata"].items() if key != "trusted"}
        if cell["cell_type"] == "code" and cell["outputs"] == ran.get(pages.text(cell)):
            cell["outputs"] = ran[pages.text(cell)]  # equal numbers, but browsers write 3.0 as 3
    if after != text:
        files.write_whole(page.markdown, after, PageError)
    agree(page, made)
    return pages.inputs_digest(made)


def with_outputs(text: dict, stored: dict | None) -> dict:
    """A page's source with the outputs that a notebook has for the same code."""
    ran = {pages.text(cell): cell for cell in (stored or {"cells": []})["cells"] if cell["cell_type"] == "code"}
    for cell in text["cells"]:
        if cell["cell_type"] == "code" and (old := ran.get(pages.text(cell))):
            cell["outputs"], cell["execution_count"] = old["outputs"], old["execution_count"]
    return text


def keep(page: Page, side: str) -> Path | None:
    """Let one of the pair win ("md" or "ipynb"); returns where the text of the other one is kept, None if they agree."""
    if not pages.edited(page):
        return None
    lost = page.notebook if side == "md" else page.markdown
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    spare = page.root / "_build" / "kept" / f"{page.name.replace('/', '-')}-{stamp}{lost.suffix}"
    files.write_whole(spare, files.read_text(lost, PageError), PageError)
    if side == "ipynb":
        carry(page)
    else:
        notebook = pages.stored(page)
        notebook["cells"] = with_outputs(pages.source(page), notebook)["cells"]
        agree(page, notebook)
    return spare


def differences(page: Page) -> str:
    """The notebook's text against the .md's, line by line; empty when they agree."""
    text = files.read_text(page.markdown, PageError)
    notebook = pages.stored(page)
    if notebook is None:
        return ""
    names = (files.shown(page.markdown), files.shown(page.notebook))
    return "\n".join(_diff(text, carried(text, notebook, names[0]), *names))


def _diff(before: str, after: str, here: str = "", there: str = "") -> list[str]:
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), here, there, n=1, lineterm=""))


# --- a .md that follows its notebook ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chunk:
    """One cell of a .md: what it says, the lines that stand between it and the one before, and its own lines."""

    said: tuple[str, str, dict]
    gap: tuple[str, ...]
    lines: tuple[str, ...]


def chunks(text: str) -> tuple[list[str], list[Chunk], list[str]]:
    """(the header's lines, the cells, what stands behind the last one) of a .md; put together again they are the text."""
    from jupytext.myst import myst_to_notebook

    notebook = myst_to_notebook(text, add_source_map=True)
    lines, found = text.splitlines(), []
    said, starts = pages.inputs(notebook), notebook["metadata"]["source_map"]
    fences = [start - 1 if kind != "markdown" else start for (kind, _, _), start in zip(said, starts, strict=True)]
    head = end = _header(lines)
    for i, cell in enumerate(said):
        start = fences[i]
        if cell[0] == "markdown":
            stop = fences[i + 1] if i + 1 < len(said) else len(lines)
            while not lines[start].strip():
                start += 1
            stop = start + len(cell[1].split("\n"))
        else:
            fence = FENCE.match(lines[start].lstrip())[1]
            stop = next((n for n in range(start + 1, len(lines)) if lines[n].strip().startswith(fence)), len(lines) - 1) + 1
        found.append(Chunk(cell, tuple(lines[end:start]), tuple(lines[start:stop])))
        end = stop
    return lines[:head], found, lines[end:]


def _header(lines: list[str]) -> int:
    """How many lines the YAML header has."""
    if not lines or lines[0].strip() != "---":
        return 0
    return next((n + 1 for n in range(1, len(lines)) if lines[n].strip() == "---"), 0)


def carried(text: str, notebook: dict, name: str = "the page") -> str:
    """The .md `text` with the edits of a notebook: untouched cells keep their lines, the others get new ones."""
    import jupytext

    head, old, tail = chunks(text)
    now = pages.inputs(notebook)
    lines, before, prose = list(head), -1, False  # `before`: which cell of the .md the last one was, None if it is new
    for said, twin in zip(now, _twins([chunk.said for chunk in old], now), strict=True):
        chunk = None if twin is None else old[twin]
        stays = chunk is not None and before == twin - 1 and (said[0] != "markdown" or chunk.said[2] == said[2])
        lines += chunk.gap if stays else _gap(said, prose)
        lines += _lines(said, chunk)
        before, prose = twin, said[0] == "markdown"
    result = "\n".join(lines + tail) + "\n"
    if _read(result) != now:  # a break inside of prose, say: have all of it written afresh
        result = jupytext.writes(jupytext.reads(json.dumps(notebook), fmt="ipynb"), fmt="md:myst")
        if _read(result) != now:
            raise PageError(f"what the notebook of {name} says cannot be written as a page; is a fence (```) left open there?")
    return result


def _read(text: str) -> list[tuple[str, str, dict]]:
    import jupytext

    return pages.inputs(jupytext.reads(text, fmt="md:myst"))


def _twins(old: list, now: list) -> list[int | None]:
    """For every cell of `now` the cell of `old` that it was, or None; in order."""
    keys = [[json.dumps(one, sort_keys=True) for one in many] for many in (old, now)]
    found: list[int | None] = [None] * len(now)
    for kind, a, b, c, d in difflib.SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if kind == "equal":
            found[c:d] = range(a, b)
        elif kind == "replace":
            free = a
            for n in range(c, d):  # so many cells before as after: each is the one in its place; else the one most like it
                near = [a + n - c] if b - a == d - c else range(free, b)
                likeness, which = max(((_likeness(old[k], now[n]), -k) for k in near), default=(0.0, 0))
                if likeness > (0.0 if b - a == d - c else 0.5):
                    found[n] = -which
                    free = found[n] + 1
    return found


def _likeness(one: tuple, other: tuple) -> float:
    return difflib.SequenceMatcher(None, one[1], other[1]).ratio() if one[0] == other[0] else 0.0


def _gap(said: tuple[str, str, dict], after_prose: bool) -> list[str]:
    """What stands before a new cell: a blank line, and a break where prose follows prose."""
    if said[0] != "markdown" or not (after_prose or said[2]):
        return [""]
    return ["", f"+++ {json.dumps(said[2], ensure_ascii=False)}" if said[2] else "+++", ""]


def _lines(said: tuple[str, str, dict], chunk: Chunk | None) -> list[str]:
    """The lines of a cell; what is not edited of the one that it was stays as it stood."""
    from jupytext.myst import dump_yaml_blocks

    kind, words, metadata = said
    if chunk is not None and chunk.said == said:
        return list(chunk.lines)
    if kind == "markdown":
        return words.split("\n")
    body = words.split("\n") if words else []
    if chunk is not None and chunk.said[2] == metadata and chunk.said[0] == kind:
        old = chunk.said[1].split("\n") if chunk.said[1] else []
        top = list(chunk.lines[: len(chunk.lines) - 1 - len(old)])
        return [*top, *body, chunk.lines[-1]]
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"^`{3,}", words, re.M))])
    options = dump_yaml_blocks(metadata).rstrip("\n").split("\n") if metadata else []
    first = f"{fence}{{code-cell}} ipython3" if kind == "code" else f"{fence}{{raw-cell}}"
    return [first, *options, *body, fence]
