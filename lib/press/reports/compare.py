"""Two runs of a page, or a run and the book, side by side: parameters that differ, every claim, every figure."""

import html
from pathlib import Path

from lib.press import files, parameters
from lib.press.errors import RunError
from lib.press.notebooks import plain
from lib.press.reports import facts, sheet
from lib.press.reports.run import claims_table
from lib.press.workbench import runs


def pair(one: str, other: str, root: Path | None = None) -> tuple[facts.Run, facts.Run]:
    """Two runs by their names; one of them may be 'book'. A RunError when they are not of the same page."""
    if facts.BOOK in (one, other) and one == other:
        raise RunError("the book is compared with a run: `python -m lib compare book RUN`")
    found = {name: facts.find(name, root) for name in (one, other) if name != facts.BOOK}
    known = next(iter(found.values())).page
    first, second = (found[name] if name in found else facts.of_book(known) for name in (one, other))
    if first.page != second.page:
        raise RunError(
            f"{first.title} is of {first.page.name}, {second.title} of {second.page.name}; two runs of one page compare"
        )
    return first, second


def write(one: facts.Run, other: facts.Run) -> Path:
    """Write the comparison of two runs as a file that opens with a double click."""
    path = runs.home(one.page.root) / "compared" / f"{one.name[:12]}-{other.name[:12]}.html"
    files.write_whole(path, report(one, other), RunError)
    return path


def settings(one: facts.Run, other: facts.Run) -> dict[str, tuple]:
    """Parameters that differ between two runs: name -> (there, here)."""
    names = [*one.row["parameters"], *(name for name in other.row["parameters"] if name not in one.row["parameters"])]
    pairs = {name: (one.row["parameters"].get(name), other.row["parameters"].get(name)) for name in names}
    return {name: both for name, both in pairs.items() if both[0] != both[1]}


def lines(one: facts.Run, other: facts.Run) -> list[facts.Line]:
    """All claims that at least one of them measured."""
    found = facts.lines(one.page, other.results, one.results)
    return [line for line in found if line.there is not None or line.here is not None]


def report(one: facts.Run, other: facts.Run) -> str:
    """The whole HTML file."""
    title = plain.title_of(one.page, one.page.markdown.stem)
    names = (one.title, other.title)
    found = lines(one, other)
    both = [line for line in found if line.there is not None and line.here is not None]
    apart = [line for line in both if line.differs]
    elsewhere = f"; not so: {', '.join(line.claim.id for line in apart)}." if apart else "."
    said = f"{len(both) - len(apart)} of {len(both)} verdicts agree{elsewhere}"
    body = [
        f'<p class="facts">{html.escape(one.page.name)}</p>',
        f"<h1>{sheet.phrase(title)}</h1>",
        f"<p><b>{html.escape(names[0][:1].upper() + names[0][1:])} and {html.escape(names[1])}: {html.escape(said)}</b></p>",
        settings_table(one, other, names),
        claims_table(found, names, (f"of {names[0]}", f"of {names[1]}"), apart),
        "<h2>Figures</h2>",
        *figures(one, other, names),
    ]
    return sheet.document(f"{title} · {names[0]} and {names[1]}", "\n".join(body))


def settings_table(one: facts.Run, other: facts.Run, names: tuple[str, str]) -> str:
    """The parameters that differ."""
    known, differ = parameters.of_page(one.page.markdown), settings(one, other)
    if not differ:
        return "<p>Their parameters are the same.</p>"
    body = [
        [f"<code>{html.escape(name)}</code>", *(html.escape(repr(side)) for side in both), html.escape(known[name].help)]
        for name, both in differ.items()
        if name in known
    ]
    return sheet.table(["parameter", *names, "meaning"], body)


def pictures(run: facts.Run) -> dict[str, tuple[str, dict]]:
    """The figures of a run's notebook: name -> (address that carries the picture, what its cell says of it)."""
    found = {}
    for cell in (run.notebook or {"cells": []})["cells"]:
        about = cell["metadata"].get("mystnb", {})
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data or "image/svg+xml" in data:
                name = about.get("figure", {}).get("name") or f"figure-{len(found) + 1}"
                found[name if name not in found else f"{name}-{len(found)}"] = (sheet.picture(data), about)
    return found


def figures(one: facts.Run, other: facts.Run, names: tuple[str, str]) -> list[str]:
    """Each figure of both, side by side, the caption once."""
    sides = [pictures(run) for run in (one, other)]
    if not any(sides):
        return ["<p>Neither has an executed notebook here: a recorded run keeps its numbers only.</p>"]
    context = plain.Context(one.page, plain.natural((one if sides[0] else other).notebook))
    blocks = []
    for name in [*sides[0], *(name for name in sides[1] if name not in sides[0])]:
        shown = []
        for title, side in zip(names, sides, strict=True):
            address, about = side.get(name, ("", {}))
            alt = html.escape(about.get("image", {}).get("alt", "") or name)
            drawn = f'<img src="{address}" alt="{alt}">' if address else '<p class="facts">not drawn</p>'
            shown.append(f"<div><h4>{html.escape(title)}</h4>{drawn}</div>")
        about = (sides[0].get(name) or sides[1][name])[1]
        same = name in sides[0] and name in sides[1] and sides[0][name][0] == sides[1][name][0]
        number = context.numbers.get(name, "")
        words = sheet.phrase(about.get("figure", {}).get("caption", ""), context) + (" <i>The same picture.</i>" if same else "")
        caption = f"<figcaption>{f'<b>{number}.</b> ' if number else ''}{words}</figcaption>"
        blocks.append(f'<figure><div class="pair">{"".join(shown)}</div>{caption}</figure>')
    return blocks
