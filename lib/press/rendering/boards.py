"""Tables over the whole book: scoreboard, squares, errata, sizes, execution status."""

import html
from collections import Counter

from docutils import nodes

from lib.press import claims, pages, schema
from lib.press.rendering import reference
from lib.press.rendering.generated import (
    MARKS,
    PLAIN,
    Generated,
    badge_html,
    duration,
    parts,
    plural,
    scoreboard,
)
from lib.press.verdicts import recordings, rows, standing
from lib.press.workbench import runs

RANKS = {"main": "main result", "supporting": "supporting statement", "check": "check of our own code"}
AUTHORS = {"paper": "the paper", "correction": "a correction", "book": "this book"}
MANY = 1000  # spreads; the number says nothing beyond
SEVERITY = {"conclusion": "changes a conclusion", "number": "changes a number", "typo": "a typo"}


class Sizes(Generated):
    """What every page takes: on a laptop, at the paper's size, and the runs that are recorded."""

    def text(self) -> str:
        lines = ["| page | laptop | the paper's size | recorded |", "|---|---|---|---|"]
        taken = pages.seconds(self.root)
        for page in pages.every(self.root):
            kept = recordings.recorded(page)
            minutes = ", ".join(duration(row["seconds"]) + ("" if row["current"] else " (older code)") for row in kept)
            laptop = f"{taken[page.name]:.0f} s" if page.name in taken else "–"
            cost = runs.presets(page).get("cost", "–")
            lines.append(f"| {self.words(page.name, page.name)} | {laptop} | {cost} | {minutes or '–'} |")
        return scoreboard(lines, "sizes")


def at(claim: claims.Claim) -> str:
    """Where a statement stands in its paper: figure, table, equation, and the words of `where`."""
    named = (("Fig.", claim.figure), ("Table", claim.table), ("Eq.", claim.equation))
    found = [f"{word} {number}" for word, number in named if number and number not in claim.where]
    return ", ".join([claim.where, *found])


class Scoreboard(Generated):
    """All statements with their verdicts as cards, part by part, with a filter that needs no server."""

    def run(self) -> list[nodes.Node]:
        self.depends_on_results()
        seen = standing.other_seeds(self.book)
        blocks, filters = [], {"paper": [], "verdict": Counter(), "author": Counter(), "rank": Counter()}
        for part in parts(self.book):
            title = claims.title(part, self.book)[0]
            filters["paper"].append((part, title))
            cards = []
            for claim, record in standing.every(self.book, [part]):
                verdict = standing.verdict(claim, record)
                filters["verdict"][verdict] += 1
                filters["author"][claim.author] += 1
                filters["rank"][claim.rank] += 1
                cards.append(self.card(claim, record, verdict, seen.get(claim.id)))
            head = f'<summary id="{part}">{html.escape(title)} <small>({plural(len(cards), "statement")})</small></summary>'
            blocks.append(f'<details class="board" data-paper="{part}">{head}<ul class="cards">{"".join(cards)}</ul></details>')
        return self.html(self.form(filters) + "".join(blocks))

    def form(self, filters: dict) -> str:
        """The filter; hidden until the script that moves it has started, so that nothing stands there without effect."""

        def choice(name: str, entries) -> str:
            options = "".join(f'<option value="{html.escape(key)}">{html.escape(text)}</option>' for key, text in entries)
            return f'<label>{name} <select name="{name}"><option value="">any</option>{options}</select></label>'

        choices = [
            choice("paper", filters["paper"]),
            choice("verdict", [(v, f"{v} ({filters['verdict'][v]})") for v in MARKS if filters["verdict"][v]]),
            choice("author", [(a, f"{AUTHORS[a]} ({filters['author'][a]})") for a in AUTHORS if filters["author"][a]]),
            choice("rank", [(r, f"{RANKS[r]} ({filters['rank'][r]})") for r in RANKS if filters["rank"][r]]),
            '<label>figure <input name="figure" size="5" placeholder="5c"></label>',
            '<label>words <input name="words" type="search" placeholder="any word of a claim"></label>',
        ]
        count = '<output class="board-count" aria-live="polite"></output><button type="reset">show all</button>'
        return (
            f'<form class="board-filter" hidden role="search" aria-label="Filter the statements">{"".join(choices)}{count}</form>'
        )

    def card(self, claim: claims.Claim, record: dict | None, verdict: str, seen: dict | None) -> str:
        """One statement: what, where, what the paper says, what we measured, how far from the bound, the verdict."""
        measured = rows.ours(claim, record["measured"], record.get("interval"), ", ") if record else "–"
        facts = [f"<b>ours</b> {measured}", f"<b>bound</b> {rows.to_html(claim.tolerance_text())}"]
        if claim.paper:
            facts.insert(0, f"<b>paper</b> {rows.to_html(claim.paper)}")
        away = standing.slack(claim, record["measured"], standing.spread(record, seen)) if record else None
        flips = f"{seen['flips']} of {len(seen['seeds'])} other seeds disagree" if seen and seen["flips"] else ""
        if away is not None or flips:
            far = "" if away is None else f"{away:.0f} spreads" if away < MANY else f"over {MANY} spreads"
            facts.append(f"<b>slack</b> {', '.join(filter(None, [far, flips]))}")
        elif seen and seen["seeds"]:  # nothing moves: a yes or no, or a number that no seed changes
            facts.append(f"<b>slack</b> the same with {plural(len(seen['seeds']), 'other seed')}")
        laptop = standing.on_laptop(claim, record)
        if laptop:
            facts.append(f"decided by the recorded run; on a laptop: {html.escape(rows.word(claim, laptop))}")
        elif claim.verdict == "recorded":
            facts.append("by a recorded run")
        note = f'<p class="note">{rows.to_html(claim.note)}</p>' if claim.note else ""
        reply = f'<p class="note"><b>The authors reply:</b> {rows.to_html(claim.reply)}</p>' if claim.reply else ""
        data = {"verdict": verdict, "author": claim.author, "rank": claim.rank, "figure": claim.figure}
        attributes = " ".join(f'data-{name}="{html.escape(value)}"' for name, value in data.items())
        about = f"{html.escape(at(claim))} · {AUTHORS[claim.author]}" + (
            f" · {RANKS[claim.rank]}" if claim.rank != "supporting" else ""
        )
        said = badge_html(verdict, rows.word(claim, verdict))
        return (
            f'<li class="card-row {verdict.replace(" ", "-")}" id="row-{claim.id}" {attributes}>{said}'
            f'<p class="statement"><a href="{self.link(claim)}">{rows.to_html(claim.claim)}</a></p>'
            f'<p class="about">{about}</p><p class="facts">{" · ".join(facts)}</p>{note}{reply}</li>'
        )


class ScoreLine(Generated):
    """The scoreboard in one glance: one square per statement, part by part, each a link to the row that checks it."""

    def run(self) -> list[nodes.Node]:
        self.depends_on_results()
        lines, there = [], Counter()
        for part in parts(self.book):
            squares = []
            for claim, record in standing.every(self.book, [part]):
                if claim.rank == "check":
                    continue
                verdict = standing.verdict(claim, record)
                there[verdict] += 1
                run = " by-run" if claim.finding else ""
                words = html.escape(f"{rows.word(claim, verdict)}{' (recorded run)' if run else ''}: {rows.plain(claim.claim)}")
                squares.append(
                    f'<a class="square {verdict.replace(" ", "-")}{run} {claim.rank}" href="{self.link(claim)}" title="{words}" '
                    f'aria-label="{words}" tabindex="-1"><span aria-hidden="true">{MARKS[verdict]}</span></a>'
                )
            name = html.escape(claims.title(part, self.book)[0])
            lines.append(f'<div class="score-row"><span class="score-name">{name}</span><span>{"".join(squares)}</span></div>')
        keys = "".join(
            f'<span class="key"><span class="square {v.replace(" ", "-")}"><span>{MARKS[v]}</span></span> {v}</span>'
            for v in MARKS
            if there[v]
        )
        return self.html(f'<div class="scoreline">{"".join(lines)}<div class="score-legend">{keys}</div></div>')


class Totals(Generated):
    """How many hold, apart by author: main results, the papers' statements, slips, findings of this book."""

    def run(self) -> list[nodes.Node]:
        self.depends_on_results()
        names = {
            "main": "main results",
            "paper": "statements of the papers",
            "slips": "slips in print",
            "book": "findings of this book",
        }
        total, lines = standing.totals(standing.every(self.book)), []
        for name, title in names.items():
            count = total[name]
            cells = " ".join(
                badge_html(v, f"{count[v]} {v if name == 'paper' else PLAIN.get(v, v)}")
                for v in MARKS
                if count[v] and name != "slips"
            )
            lines.append(
                f'<tr><th scope="row">{sum(count.values())} {title}</th><td>{cells or "each with its correction"}</td></tr>'
            )
        checks = sum(claim.rank == "check" for claim, _ in standing.every(self.book))
        more = f"<p>{plural(checks, 'check')} of our own code stand on their pages and count nowhere.</p>" if checks else ""
        return self.html(f'<table class="totals">{"".join(lines)}</table>{more}')


class Errata(Generated):
    """Slips with the printed and the corrected form side by side, the gravest first; with an argument those of one part."""

    optional_arguments = 1
    severities: tuple[str, ...] = schema.SEVERITIES

    def text(self) -> str:
        chosen = [self.arguments[0]] if self.arguments else parts(self.book)
        slips = [slip for part in chosen for slip in self.of(part)]
        if not slips:
            return "None."
        blocks = []
        for severity in self.severities:
            these = [text for rank, text in slips if rank == severity]
            if these and not self.arguments and len(self.severities) > 1:
                blocks.append(f"## {SEVERITY[severity].capitalize()} ({len(these)})")
            blocks += these
        return "\n\n".join(blocks)

    def run(self) -> list[nodes.Node]:
        self.depends_on_results()
        return self.parse(self.text(), sections=not self.arguments)

    def of(self, part: str) -> list[tuple[str, str]]:
        """(severity, text) of each slip of a part."""
        known, groups = claims.errata(part, self.book), {}
        for claim, record in standing.every(self.book, [part]):
            if claim.erratum:
                groups.setdefault(claim.erratum, {}).setdefault(claim.kind, []).append((claim, record))
        title = claims.title(part, self.book)[0]
        return [
            (known[name]["severity"], self.one(title, known[name], halves)) for name, halves in groups.items() if name in known
        ]

    def one(self, title: str, slip: dict, halves: dict) -> str:
        """A slip: where, both forms, the evidence in a line, what still holds, the charitable reading, the program."""
        evidence = []
        for kind, word in (("printed", "as printed"), ("corrected", "corrected")):
            for claim, record in halves.get(kind, []):
                found = claim.show(record["measured"]) if record else "–"
                link = f"{{claim}}`{word} <{claim.id}>`"
                evidence.append(f"{link} {found} (bound: {claim.tolerance_text()})")
        more = [f"*What still holds.* {slip['holds']}"]
        more += [f"*A charitable reading.* {slip['reading']}"] if "reading" in slip else []
        more += [f"*The authors' program.* {slip['program']}"] if "program" in slip else []
        forms = (
            f"````{{grid}} 1 1 2 2\n:gutter: 2\n```{{grid-item-card}} printed\n{slip['printed']}\n```\n"
            f"```{{grid-item-card}} corrected\n{slip['corrected']}\n```\n````"
        )
        head = f"**{title}, {slip['where']}** · {SEVERITY[slip['severity']]}"
        return f"`````{{div}} slip\n{head}\n\n{forms}\n\n*Measured:* {'; '.join(evidence)}. {' '.join(more)}\n`````"


class ExecutionStatus(Generated):
    """What was executed: cells, claims, seconds, size, and whether the outputs still hold."""

    def text(self) -> str:
        lines = ["| page | code cells | claims | laptop seconds | notebook | outputs |", "|---|--:|--:|--:|--:|---|"]
        taken = pages.seconds(self.root)
        for page in pages.every(self.root):
            notebook = pages.stored(page)
            if notebook is None:
                continue
            state = "stale" if pages.stale(page) else "fresh"
            size = page.notebook.stat().st_size / 1e6
            found = len(claims.records(notebook))
            link = self.words(page.name, page.name)
            lines.append(
                f"| {link} | {len(pages.code(notebook))} | {found} | {taken.get(page.name, 0):.1f} | {size:.1f} MB | {state} |"
            )
        lines.append(f"| **all pages** | | | **{sum(taken.get(page.name, 0) for page in pages.every(self.root)):.0f}** | | |")
        return "\n".join(lines)


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
