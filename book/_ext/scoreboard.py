"""Tables over the whole book: the scoreboard with its filter, squares, totals, errata, and what every page costs."""

from base import MARKS, Generated, counted, div, recorded, unmarked
from docutils import nodes
from markupsafe import Markup

from lib import claims
from lib.book import freshness, pages, parameters, runs, verdicts
from lib.book.pages import Page
from lib.book.verdicts import plural
from lib.claims import SLIP, Claim
from lib.files import read_json

KINDS = {"statement": "statement of a paper", "finding": "finding of this book", "slip": "slip in print"}
RANKS = {"main": "main result", "supporting": "supporting statement", "check": "check of our own code"}
AUTHORS = {"paper": "the paper", "correction": "a correction", "book": "this book"}
SEVERITY = {"conclusion": "changes a conclusion", "number": "changes a number"}


def in_paper(claim: Claim, where: str) -> str:
    """Where a statement stands in its paper: words, and figure, table and equation unless these words name them."""
    named = (("Fig.", claim.figure), ("Table", claim.table), ("Eq.", claim.equation))
    found = [f"{word} {number}" for word, number in named if number and number not in where]
    return ", ".join(filter(None, [where, *found]))


def required(claim: Claim) -> str:
    """The bound of a claim, with the value that a tolerance belongs to: '= 1 ± 2 %'."""
    return f"{claim.expect} {claim.tolerance_text()}" if claim.tolerance else claim.tolerance_text()


class Scoreboard(Generated):
    """All rows with their verdicts as cards, part by part, with a filter that needs no server."""

    shows = "book"

    def build(self) -> list[nodes.Node]:
        seen, parts = verdicts.other_seeds(self.book), []
        for part in verdicts.parts(self.book):
            rows = verdicts.rows(self.book, [part])
            cards = [card(claim, record, verdicts.still_true(seen.get(claim.id), record)) for claim, record in rows]
            parts.append({"name": part, "title": claims.read(part, self.book).title, "counted": counted(rows), "cards": cards})
        return self.render("scoreboard.html", parts=parts, filters=self.filters(parts))

    def filters(self, parts: list[dict]) -> dict[str, list[tuple[str, str]]]:
        """The choices of the filter with their numbers, counted as everywhere: {field: [(value, words)]}."""
        total = verdicts.count(verdicts.rows(self.book))
        found = total["statements"] + total["findings"] + total["slips"]
        main = sum((total["papers' main results"] + total["our main results"]).values())
        ranks = {"main": main, "supporting": sum((total["statements"] + total["findings"]).values()) - main}
        numbers = {kind: sum(total[f"{kind}s"].values()) for kind in KINDS}
        return {
            "paper": [(part["name"], part["title"]) for part in parts],
            "verdict": [(verdict, f"{verdict} ({found[verdict]})") for verdict in MARKS if found[verdict]],
            "kind": [(kind, f"{words} ({numbers[kind]})") for kind, words in KINDS.items() if numbers[kind]],
            "rank": [(rank, f"{RANKS[rank]} ({number})") for rank, number in ranks.items() if number],
        }


def card(claim: Claim, record: dict | None, seen: dict | None) -> dict:
    """One row: what, where, what the paper says, what we measured, how far from the bound, the verdict.

    For the filter, both halves of a slip have its verdict, and checks of our own code have none.
    """
    verdict, kind = verdicts.verdict(claim, record), verdicts.group(claim)
    facts = [("paper", claims.to_html(claim.paper))] if claim.paper else []
    facts.append(("ours", claims.ours(claim, record["measured"], record.get("interval"), ", ") if record else "–"))
    facts.append(("bound", claims.to_html(required(claim))))
    away = verdicts.slack(claim, record["measured"], verdicts.spread(record, seen)) if record else None
    far = [] if away is None else [f"{away:.0f} spreads" if away < 1000 else "over 1000 spreads"]
    far += [f"{seen['flips']} of {len(seen['seeds'])} other seeds disagree"] if seen and seen["flips"] else []
    if not far and seen and seen["seeds"]:  # nothing moves: a yes or no, or a number that no seed changes
        far = [f"the same with {plural(len(seen['seeds']), 'other seed')}"]
    facts += [("slack", ", ".join(far))] if far else []
    laptop, decided = verdicts.on_laptop(claim, record), ""
    if laptop:
        decided = f"decided by the recorded run; on a laptop: {claims.word(claim, laptop)}"
    elif claim.verdict == "recorded":
        decided = "by a recorded run"
    about = [in_paper(claim, claim.where), AUTHORS[claim.author], *([RANKS[claim.rank]] if claim.rank != "supporting" else [])]
    return {
        "claim": claim,
        "verdict": verdict,
        "said": claims.word(claim, verdict),
        "about": " · ".join(about),
        "facts": [(name, Markup(text)) for name, text in facts],
        "decided": decided,
        "kind": kind,
        "filtered": {"slip": SLIP, "check": ""}.get(kind, verdict),
        "rank": claim.rank if kind in ("statement", "finding") else "",
    }


class ScoreLine(Generated):
    """The scoreboard in one glance: one square per row, part by part, each a link to the row that checks it."""

    shows = "book"

    def build(self) -> list[nodes.Node]:
        parts, there = [], set()
        for part in verdicts.parts(self.book):
            squares = []
            for claim, record in verdicts.rows(self.book, [part]):
                if claim.rank != "check":
                    verdict = verdicts.verdict(claim, record)
                    by_run = " (recorded run)" if claim.finding else ""
                    squares.append((claim, verdict, f"{claims.word(claim, verdict)}{by_run}: {unmarked(claim.claim)}"))
                    there.add(verdict)
            parts.append((claims.read(part, self.book).title, squares))
        return self.render("squares.html", parts=parts, there=[verdict for verdict in MARKS if verdict in there])


class Totals(Generated):
    """How many hold, apart by author: main results, the papers' statements, slips, findings of this book."""

    shows = "book"

    def build(self) -> list[nodes.Node]:
        total = verdicts.count(verdicts.rows(self.book))
        names = {
            "papers' main results": "main results of the papers", "our main results": "main results of this book",
            "statements": "statements of the papers", "slips": "slips in print", "findings": "findings of this book",
        }  # fmt: skip
        lines = [(sum(total[name].values()), title, name, total[name]) for name, title in names.items()]
        return self.render("totals.html", lines=lines, total=total)


def cell(text: str) -> str:
    """A text for a cell of a table, whose bars would otherwise end it."""
    return text.replace("\\|", "\\Vert ").replace("|", "\\|")


class Errata(Generated):
    """Slips with the printed and the corrected form side by side, the gravest first; with an argument those of one part."""

    shows = "book"
    optional_arguments = 1

    def build(self) -> list[nodes.Node]:
        return self.parse(self.text(), sections=not self.arguments)

    def text(self) -> str:
        slips = [slip for part in self.arguments or verdicts.parts(self.book) for slip in self.of(part)]
        blocks = [] if self.arguments else ["## Which printed formulas and sentences are wrong?", self.listed()]
        for severity in SEVERITY:
            these = [text for rank, text in slips if rank == severity]
            head = [f"## {SEVERITY[severity].capitalize()} ({len(these)})"] if these and not self.arguments else []
            blocks += head + these
        return "\n\n".join(blocks if self.arguments else [*blocks, "(errata-typos)=\n## Typos", self.typos()]) or "None."

    def typos(self) -> str:
        """The typos of each paper as a table: the meaning is clear, and nothing has to be measured."""
        tables = []
        for part in verdicts.parts(self.book):
            slips = [slip for slip in claims.errata(part, self.book).values() if slip.severity == "typo"]
            lines = [f"| {slip.where} | {cell(slip.printed)} | {cell(slip.corrected)} |" for slip in slips]
            head = [f"**{claims.read(part, self.book).title}**\n", "| where | printed | meant |", "|---|---|---|"]
            tables += ["\n".join(head + lines)] if slips else []
        return "\n\n".join(tables)

    def listed(self) -> str:
        """A line for each paper: where its slips are, each a link to the entry below."""
        lines = []
        for part in verdicts.parts(self.book):
            known = claims.errata(part, self.book)
            slips = {name: slip for name, slip in known.items() if slip.severity != "typo"}
            links = [f"[{slip.where}](#slip-{part}-{name}) ({SEVERITY[slip.severity]})" for name, slip in slips.items()]
            links += [f"[{plural(len(known) - len(slips), 'typo')}](#errata-typos)"] if known != slips else []
            lines += [f"- **{claims.read(part, self.book).title}**: {' · '.join(links)}"] if links else []
        return "\n".join(lines)

    def of(self, part: str) -> list[tuple[str, str]]:
        """(severity, text) of each slip of a part."""
        known, groups, title = claims.errata(part, self.book), {}, claims.read(part, self.book).title
        for claim, record in verdicts.rows(self.book, [part]):
            if verdicts.group(claim) == "slip":
                groups.setdefault(claim.erratum, {}).setdefault(claim.kind, []).append((claim, record))
        anchor = "" if self.arguments else "(slip-{}-{})=\n"
        shown = {name: anchor.format(part, name) + self.one(title, known[name], halves) for name, halves in groups.items()}
        return [(known[name].severity, text) for name, text in shown.items()]

    def one(self, title: str, slip: claims.Erratum, halves: dict) -> str:
        """A slip: where, both forms, the evidence in a line, what still holds, the charitable reading, the program."""
        evidence = []
        for kind, word in (("printed", "as printed"), ("corrected", "corrected")):
            for claim, record in halves.get(kind, []):
                values = claims.parts(record["measured"]).values() if record else []
                found = " to ".join(dict.fromkeys(claim.show(pick(values)) for pick in (min, max))) if values else "–"
                evidence.append(f"{{claim}}`{word} <{claim.id}>` {found} (required: {required(claim)})")
        said = {"What still holds": slip.holds, "A charitable reading": slip.reading, "The authors' program": slip.program}
        more = [f"*{about}.* {text}" for about, text in said.items() if text]
        forms = (
            f"````{{grid}} 1 1 2 2\n:gutter: 2\n```{{grid-item-card}} printed\n{slip.printed}\n```\n"
            f"```{{grid-item-card}} corrected\n{slip.corrected}\n```\n````"
        )
        head = f"**{title}, {slip.where}** · {SEVERITY[slip.severity]}"
        return f"`````{{div}} slip\n{head}\n\n{forms}\n\n*Measured:* {'; '.join(evidence)}. {' '.join(more)}\n`````"


class CostTable(Generated):
    """What every page takes: on a laptop, at the paper's size, recorded."""

    shows = "costs"

    def text(self) -> str:
        taken = freshness.seconds(self.root)
        order = verdicts.parts(self.book)
        found = sorted(pages.all_pages(self.root), key=lambda page: order.index(page.name.split("/")[0]))
        lines = [self.size(page, taken.get(page.name)) for page in found]
        total = f"| **all pages** | {sum(taken.values()):.0f} s | | |"
        return div("scoreboard sizes", ["| page | laptop | the paper's size | recorded |", "|---|---|---|---|", *lines, total])

    def size(self, page: Page, seconds: float | None) -> str:
        """Seconds on a laptop, words about the paper's size, its recorded runs."""
        laptop = f"{seconds:.0f} s" if seconds is not None else "–"
        cells = [self.words(page.name, page.name), laptop, parameters.sizes(page).cost, recorded(runs.recorded(page))]
        return f"| {' | '.join(cell or '–' for cell in cells)} |"


class Benchmarks(Generated):
    """What `make bench` recorded last: each fast path beside the plain program for the same numbers (a group of two)."""

    def text(self) -> str:
        self.env.note_dependency(str(self.book / "benchmarks.json"))
        recorded, medians = read_json(self.book / "benchmarks.json"), {}
        for one in recorded["benchmarks"]:
            medians.setdefault(one["group"], {})["plain" in one["name"]] = 1000 * one["stats"]["median"]
        lines = [f"Recorded on {recorded['datetime'][:10]}; medians.\n", "| what | plain | fast | ratio |", "|---|--:|--:|--:|"]
        for name, ms in sorted(medians.items()):
            lines.append(f"| {name.replace('_', ' ')} | {ms[True]:.3g} ms | {ms[False]:.3g} ms | {ms[True] / ms[False]:.3g} |")
        return "\n".join(lines)
