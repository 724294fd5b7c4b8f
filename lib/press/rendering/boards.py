"""Tables over the whole book: scoreboard, squares, errata, sizes, execution status."""

import html
from collections import Counter

from docutils import nodes

from lib.press import claims, pages
from lib.press.rendering import reference
from lib.press.rendering.generated import (
    MARKS,
    Generated,
    badge,
    count_words,
    duration,
    parts,
    scoreboard,
    scoreboard_table,
    verdict_of,
)
from lib.press.workbench import runs


class Sizes(Generated):
    """What every page takes: on a laptop, at the paper's size, and the runs that are recorded."""

    def text(self) -> str:
        lines = ["| page | laptop | the paper's size | recorded |", "|---|---|---|---|"]
        taken = pages.seconds(self.root)
        for page in pages.every(self.root):
            kept = runs.recorded(page)
            minutes = ", ".join(duration(row["seconds"]) + ("" if row["current"] else " (older code)") for row in kept)
            laptop = f"{taken[page.name]:.0f} s" if page.name in taken else "–"
            cost = runs.presets(page).get("cost", "–")
            lines.append(f"| {self.words(page.name, page.name)} | {laptop} | {cost} | {minutes or '–'} |")
        return scoreboard(lines, "sizes")


class Scoreboard(Generated):
    """All claims with verdicts, part by part."""

    def text(self) -> str:
        blocks = []
        for part in parts(self.book):
            name, cite = claims.title(part, self.book)
            blocks.append(f"## {name}" + (f" {{cite}}`{cite}`" if cite else ""))
            blocks.append(scoreboard_table(part, self.book, self.words))
        return "\n\n".join(blocks)


class ScoreLine(Generated):
    """The scoreboard in one glance: one square per claim, part by part, each a link to its page."""

    def run(self) -> list[nodes.Node]:
        self.depends_on_results()
        lines, total, by_run = [], Counter(), 0
        for part in parts(self.book):
            squares = []
            for claim in claims.load(part, self.book).values():
                verdict = verdict_of(claim, claims.measured_in(claim.page, self.book))
                total[verdict] += 1
                run = claim.verdict == "recorded"
                by_run += run
                words = html.escape(f"{verdict}{' (recorded run)' if run else ''}: {claim.claim}")
                style = verdict.replace(" ", "-") + (" by-run" if run else "")
                squares.append(
                    f'<a class="square {style}" href="{self.address(claim.page)}" title="{words}" aria-label="{words}"></a>'
                )
            name = html.escape(claims.title(part, self.book)[0])
            lines.append(f'<div class="score-row"><span class="score-name">{name}</span><span>{"".join(squares)}</span></div>')
        keys = []
        for verdict in MARKS:
            if total[verdict]:
                square = f'<span class="square {verdict.replace(" ", "-")}"></span>'
                keys.append(f'<span class="key">{square} {count_words(Counter({verdict: total[verdict]}))}</span>')
        if by_run:
            keys.append(f'<span class="key"><span class="square by-run"></span> {by_run} of them by recorded runs</span>')
        legend = " ".join(keys)
        body = f'<div class="scoreline">{"".join(lines)}<div class="score-legend">{legend}</div></div>'
        return [nodes.raw("", body, format="html")]


class Errata(Generated):
    """Every slip of a paper: the printed form and how it fails, the corrected form and how it holds."""

    def text(self) -> str:
        blocks = []
        for part in parts(self.book):
            groups: dict[str, list[claims.Claim]] = {}
            for claim in claims.load(part, self.book).values():
                if claim.erratum:
                    groups.setdefault(claim.erratum, []).append(claim)
            if not groups:
                continue
            name, cite = claims.title(part, self.book)
            blocks.append(f"## {name}" + (f" {{cite}}`{cite}`" if cite else ""))
            for group in groups.values():
                for claim in sorted(group, key=lambda claim: claim.kind != "printed"):
                    record = claims.measured_in(claim.page, self.book).get(claim.id)
                    ours = claim.show(record["measured"]) if record else "–"
                    mark = badge(verdict_of(claim, {claim.id: record} if record else {}))
                    head = f"**{claim.where}, {claim.kind}.** " if claim.kind == "printed" else "**Corrected.** "
                    note = f" {claim.note}" if claim.note else ""
                    line = f"{head}{claim.claim} Measured: {ours} (expected {claim.expect}). {mark}{note}"
                    blocks.append(line + (f" {self.words('Proof', claim.page)}" if claim.kind == "corrected" else ""))
                blocks.append("---")
            blocks.pop()
        return "\n\n".join(blocks) or "No errata yet."


class ExecutionStatus(Generated):
    """What was executed: cells, claims, seconds, size, and whether the outputs still hold."""

    def text(self) -> str:
        rows = ["| page | code cells | claims | laptop seconds | notebook | outputs |", "|---|--:|--:|--:|--:|---|"]
        taken = pages.seconds(self.root)
        for page in pages.every(self.root):
            notebook = pages.stored(page)
            if notebook is None:
                continue
            state = "stale" if pages.stale(page) else "fresh"
            size = page.notebook.stat().st_size / 1000
            found = len(claims.records(notebook))
            link = self.words(page.name, page.name)
            rows.append(
                f"| {link} | {len(pages.code(notebook))} | {found} | {taken.get(page.name, 0):.1f} | {size:.0f} kB | {state} |"
            )
        return "\n".join(rows)


class Door(Generated):
    """What a room of `lib` says at its door."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.parse(reference.door_text(self.arguments[0], self.root))


class Room(Generated):
    """All that is public in a room of `lib`, a section for each module; see `reference`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.parse(reference.room_text(self.arguments[0], self.root, self.words), sections=True)
