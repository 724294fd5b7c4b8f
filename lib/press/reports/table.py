"""Tables for a terminal: as wide as it is, and no wider."""

import shutil
from unicodedata import east_asian_width

from lib.press import claims, pages
from lib.press.reports import facts

MARKS = {"reproduced": "✓", "holds": "✓", "reproduced in part": "◐", "holds in part": "◐", "undetermined": "○"}


def width() -> int:
    """Columns of the terminal; 80 where there is none."""
    return shutil.get_terminal_size((80, 24)).columns


def length(text: str) -> int:
    """Columns that a text takes."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def cut(text: str, room: int) -> str:
    """A text that takes no more than `room` columns."""
    if length(text) <= room:
        return text
    while text and length(text) > room - 1:
        text = text[:-1]
    return text + "…"


def fitted(head: list[str], body: list[list[str]], room: int, whole: int = 0, least: int = 6) -> list[str]:
    """Lines of a table at most `room` wide: the widest column is cut first, the column `whole` last, none below `least`."""
    widths = [max(length(row[n]) for row in [head, *body]) for n in range(len(head))]
    for free in ([n for n in range(len(head)) if n != whole], [whole]):
        while sum(widths) + 2 * (len(widths) - 1) > room and max(widths[n] for n in free) > least:
            widths[max(free, key=lambda n: widths[n])] -= 1
    made = []
    for row in [head, *body]:
        cells = [cut(cell, size) for cell, size in zip(row, widths, strict=True)]
        made.append("  ".join(c + " " * (w - length(c)) for c, w in zip(cells, widths, strict=True)).rstrip())
    return made


def mark(word: str) -> str:
    """A verdict in one letter."""
    return MARKS.get(word, "✗")


def brief(claim: claims.Claim, measured) -> str:
    """A measured value in a few letters: of several numbers the least and the largest, of several answers how many are yes."""
    parts = list(measured.values()) if isinstance(measured, dict) else measured if isinstance(measured, list) else [measured]
    if len(parts) == 1:
        return claim.show(parts[0])
    if all(isinstance(part, bool) for part in parts):
        return f"{sum(parts)} of {len(parts)}"
    return f"{claim.show(min(parts))} … {claim.show(max(parts))}"


def of_run(page: pages.Page, results: dict[str, dict], room: int | None = None) -> list[str]:
    """What one run measured: verdict, claim, its value, the book's, the tolerance; a star where the verdict is not the book's."""
    found = [line for line in facts.lines(page, results) if line.here is not None]
    head = ["  verdict", "claim", "this run", "book", "tolerance"]
    body = [
        [
            f"{'*' if line.differs else ' '} {line.verdict_here}",
            line.claim.id,
            brief(line.claim, line.here["measured"]),
            brief(line.claim, line.there["measured"]) if line.there else "–",
            line.claim.tolerance_text(),
        ]
        for line in found
    ]
    return fitted(head, body, room or width(), whole=1) if found else []


def of_two(found: list[facts.Line], names: tuple[str, str], room: int | None = None) -> list[str]:
    """Two runs: claim, both values, both verdicts as a mark, the tolerance; a star marks verdicts that differ."""
    head = ["  claim", *names, "tolerance"]
    body = []
    for line in found:
        sides = ((line.there, line.verdict_there), (line.here, line.verdict_here))
        values = [f"{brief(line.claim, side['measured'])} {mark(word)}" if side else "–" for side, word in sides]
        star = "*" if line.there and line.differs else " "
        body.append([f"{star} {line.claim.id}", *values, line.claim.tolerance_text()])
    return fitted(head, body, room or width())


def of_runs(page: pages.Page, found: list[dict], chosen: list[str], room: int | None = None) -> list[str]:
    """All runs of a page: changed parameters, verdicts, claims (as many as fit, those that differ from the book first).

    `found` are rows; `chosen` are ids of claims.
    """
    room = room or width()
    tables = [{line.claim.id: line for line in facts.lines(page, row["results"])} for row in found]
    other = [facts.changed(page, row["parameters"]) for row in found]
    every = dict.fromkeys(name for row in found for name in row["parameters"])  # their order does not depend on that of the runs
    names = [name for name in every if any(name in settings for settings in other)]
    own = {name: default for settings in other for name, (default, _) in settings.items()}
    head, body = ["run", *names, "verdicts", "seconds"], []
    for row, settings, table in zip(found, other, tables, strict=True):
        marks = [mark(line.verdict_here) for line in table.values() if line.here is not None]
        tally = " ".join(f"{marks.count(sign)}{sign}" for sign in "✓◐○✗" if sign in marks)
        values = [str(settings[name][1] if name in settings else own[name]) for name in names]
        body.append([row["run"][:8], *values, tally or "–", f"{row['seconds']:.1f}"])
    measured = list(dict.fromkeys(name for table in tables for name, line in table.items() if line.here is not None))
    apart = [name for name in measured if any(table[name].differs for table in tables)]
    for name in chosen or [*apart, *(name for name in measured if name not in apart)]:
        column = [_cell(table[name]) for table in tables]
        taken = sum(max(length(row[n]) for row in [head, *body]) + 2 for n in range(len(head)))
        if not chosen and taken + max(map(length, [name, *column])) > room:
            break
        head.append(name)
        for row, cell in zip(body, column, strict=True):
            row.append(cell)
    left = len(measured) - (len(head) - len(names) - 3)
    lines = fitted(head, body, room)
    if left > 0 and not chosen:
        lines.append(cut(f"({left} more claims: --claim ID, or --csv FILE)", room))
    return lines


def _cell(line: facts.Line) -> str:
    return f"{brief(line.claim, line.here['measured'])} {mark(line.verdict_here)}" if line.here else "–"
