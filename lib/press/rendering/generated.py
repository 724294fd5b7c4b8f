"""What all generated boxes and tables share: verdicts, badges, scores, and a directive that writes MyST."""

import html
from collections import Counter
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from lib.press import claims, pages

MARKS = {"reproduced": "✓", "reproduced in part": "◐", "not reproduced": "✗", "slip in print": "✎", "open": "○"}
# Reading order of the book's parts; others follow in alphabetical order.
PARTS = ("deep_linear", "neural_race", "make_haste_slowly", "early_linearization", "neural_redshift", "bias_learning")


def parts(book: Path) -> list[str]:
    """Folders of the book that have claims, in reading order."""
    there = claims.papers(book)
    return [part for part in PARTS if part in there] + [part for part in there if part not in PARTS]


def verdict_of(claim: claims.Claim, measured: dict) -> str:
    """What the executed page found; declared verdicts stand in only where nothing is executed.

    A claim that needs the paper's size has the verdict of its recorded run. A printed form that fails beside its correction is
    a slip in print, and is not counted against the paper's claims.
    """
    record = measured.get(claim.id)
    if claim.verdict == "recorded":
        found = claims.judge(claim, record["measured"]) if record else claim.finding
    else:
        found = record["verdict"] if record else "open"
    return "slip in print" if claim.kind == "printed" and found not in ("reproduced", "open") else found


def badge(verdict: str, claim: claims.Claim | None = None) -> str:
    """A verdict with its mark and colour; for a claim that was checked by a recorded run it says so."""
    by_run = " (recorded)" if claim is not None and claim.verdict == "recorded" else ""
    return f"[{MARKS[verdict]} {verdict}{by_run}]{{.verdict .{verdict.replace(' ', '-')}}}"


def plural(count: int, word: str, words: str = "") -> str:
    """A count with its word in the singular or plural."""
    return f"{count} {word if count == 1 else words or word + 's'}"


RESULTS = ("*/claims.yml", "*/*.ipynb", "*/recorded/*.json", pages.SECONDS, "presets.yml")


def results(book: Path) -> list[Path]:
    """The files that generated boxes and tables are made from, as they are now."""
    return [path for pattern in RESULTS for path in sorted(book.glob(pattern))]


class Generated(SphinxDirective):
    """A directive that writes MyST text and has it parsed in place."""

    @property
    def root(self) -> Path:
        return Path(self.env.srcdir)

    @property
    def book(self) -> Path:
        return self.root / "book"

    @property
    def contents(self) -> str:
        return (self.root / "_toc.yml").read_text(encoding="utf-8")

    @property
    def page(self) -> pages.Page:
        return pages.Page(self.env.docname.removeprefix("book/"), self.root)

    def depends_on_results(self) -> None:
        """Read this document again whenever a claim, a notebook, a measured time or the rendering itself changes."""
        for path in [*Path(__file__).parent.glob("*.py"), *results(self.book)]:
            self.env.note_dependency(str(path))

    def parse(self, text: str, sections: bool = False) -> list[nodes.Node]:
        """Nodes of a MyST text; with `sections` its headings, the first of which opens it, are sections of the page."""
        container = nodes.Element()
        lines = StringList(text.splitlines(), source=self.env.docname)
        self.state.nested_parse(lines, self.content_offset, container, match_titles=sections)
        return container.children

    def run(self) -> list[nodes.Node]:
        self.depends_on_results()
        return self.parse(self.text())

    def words(self, text: str, page: str) -> str:
        """`text` as a link to a page, or bare while that page is not in the table of contents yet."""
        return f"[{text}](/book/{page}.ipynb)" if f"file: book/{page}\n" in self.contents else text

    def address(self, page: str) -> str:
        if f"file: book/{page}\n" not in self.contents:
            return "#"
        return self.env.app.builder.get_relative_uri(self.env.docname, f"book/{page}")


def scoreboard_table(part: str, book: Path, link) -> str:
    """The claims of a part as a table; `link(text, page)` makes the links."""
    entries = claims.load(part, book).values()
    measured = {page: claims.measured_in(page, book) for page in {claim.page for claim in entries}}
    rows = ["| claim | where | paper | ours | verdict |", "|---|---|---|---|---|"]
    for claim in entries:
        record = measured[claim.page].get(claim.id)
        ours = claim.show(record["measured"]) if record else "–"
        words = link(claim.claim, claim.page) + (f" *{claim.note}*" if claim.note else "")
        cells = [words, claim.where, claim.paper or "–", ours, badge(verdict_of(claim, measured[claim.page]), claim)]
        rows.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return scoreboard(rows)


def scoreboard(lines: list[str], also: str = "") -> str:
    """Lines of a table, in the scoreboard's style; `also` is another class."""
    return f"````{{div}} scoreboard {also}\n" + "\n".join(lines) + "\n````"


def duration(seconds: float) -> str:
    """Seconds as a reader says them: 40 s, 3 min."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def several(claim: claims.Claim, measured, like=None) -> str:
    """A measured value as text, its parts on lines of their own, in the order of `like` if that has the same parts."""
    if not isinstance(measured, dict):
        return claim.show(measured)
    order = like if isinstance(like, dict) and set(like) == set(measured) else measured
    return "<br>".join(f"{html.escape(name)}: {claim.show(measured[name])}" for name in order)


def score(folders: list[str], book: Path) -> Counter:
    """How many claims of these parts have which verdict, from the executed notebooks."""
    total: Counter = Counter()
    for part in folders:
        for claim in claims.load(part, book).values():
            total[verdict_of(claim, claims.measured_in(claim.page, book))] += 1
    return total


def count_words(total: Counter) -> str:
    """Counts of verdicts as a text, best first."""
    words = {"slip in print": "slips in print, each with its correction"}
    return ", ".join(f"{total[verdict]} {words.get(verdict, verdict)}" for verdict in MARKS if total[verdict])


def score_sentence(book: Path) -> str:
    """The scoreboard as one line, as the README shows it."""
    total = score(claims.papers(book), book)
    by_run = sum(claim.verdict == "recorded" for paper in claims.papers(book) for claim in claims.load(paper, book).values())
    more = f" ({by_run} of them need more than a laptop and rest on recorded runs)" if by_run else ""
    return f"{sum(total.values())} claims: {count_words(total)}{more}"
