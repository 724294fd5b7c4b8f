"""What all generated boxes and tables share: verdicts, badges, scores, and a directive that writes MyST."""

import html
from collections import Counter
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from lib.press import claims, pages
from lib.press.bindery import freshness
from lib.press.verdicts import rows, standing

MARKS = {
    "reproduced": "✓",
    "reproduced in part": "◐",
    "not reproduced": "✗",
    "undetermined": "?",
    "slip in print": "✎",
    "open": "○",
}
PLAIN = {"reproduced": "holds", "reproduced in part": "in part", "not reproduced": "does not hold"}  # of a main result
# Reading order of the book's parts; others follow in alphabetical order.
PARTS = (
    "deep_linear", "neural_race", "make_haste_slowly", "early_linearization", "neural_redshift", "bias_learning", "synthesis",
)  # fmt: skip


def parts(book: Path) -> list[str]:
    """Folders of the book that have claims, in reading order."""
    there = claims.papers(book)
    return [part for part in PARTS if part in there] + [part for part in there if part not in PARTS]


def verdict_of(claim: claims.Claim, measured: dict) -> str:
    """The verdict that counts, from what the claim's page measured; see `standing.verdict`."""
    return standing.verdict(claim, measured.get(claim.id))


def badge(verdict: str, claim: claims.Claim | None = None) -> str:
    """A verdict with its mark and colour, as MyST; for one that rests on a recorded run it says so."""
    by_run = " (recorded)" if claim is not None and claim.finding else ""
    said = rows.word(claim, verdict) if claim is not None else verdict
    return f"[{MARKS[verdict]} {said}{by_run}]{{.verdict .{verdict.replace(' ', '-')}}}"


def badge_html(verdict: str, said: str) -> str:
    """The same as HTML: `said` is the verdict in words."""
    mark = f'<span aria-hidden="true">{MARKS[verdict]}</span>'
    return f'<span class="verdict {verdict.replace(" ", "-")}">{mark} {html.escape(said)}</span>'


def plural(count: int, word: str, words: str = "") -> str:
    """A count with its word in the singular or plural."""
    return f"{count} {word if count == 1 else words or word + 's'}"


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
        """Read this document again when a claim, a measured value or time, or the rendering itself changes; see `freshness`."""
        self.env.note_dependency(str(freshness.of_document(self.root, self.env.docname)))

    def parse(self, text: str, sections: bool = False) -> list[nodes.Node]:
        """Nodes of a MyST text; with `sections` its headings, the first of which opens it, are sections of the page."""
        container = nodes.Element()
        lines = StringList(text.splitlines(), source=self.env.docname)
        self.state.nested_parse(lines, self.content_offset, container, match_titles=sections)
        return container.children

    def run(self) -> list[nodes.Node]:
        self.depends_on_results()
        return self.parse(self.text())

    @property
    def part(self) -> str:
        """The part of the book that this document belongs to: its folder."""
        return self.env.docname.split("/")[1]

    def html(self, text: str) -> list[nodes.Node]:
        """HTML as it is, with its mathematics typeset."""
        shown = [nodes.raw("", text, format="html")]
        if 'class="math' in text:  # a formula that Sphinx knows of makes it load what typesets the others
            shown.append(nodes.paragraph("", "", nodes.math("", "x"), classes=["math-loader"]))
        return shown

    def link(self, claim: claims.Claim) -> str:
        """The address of a claim: the row that checks it."""
        return f"{self.address(claim.page)}#{claim.id}"

    def words(self, text: str, page: str) -> str:
        """`text` as a link to a page, or bare while that page is not in the table of contents yet."""
        return f"[{text}](/book/{page}.ipynb)" if f"file: book/{page}\n" in self.contents else text

    def address(self, page: str) -> str:
        if f"file: book/{page}\n" not in self.contents:
            return "#"
        return self.env.app.builder.get_relative_uri(self.env.docname, f"book/{page}")


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


def count_words(total: Counter) -> str:
    """Counts of verdicts as a text, best first."""
    return ", ".join(f"{total[verdict]} {verdict}" for verdict in MARKS if total[verdict])


def score_sentence(book: Path) -> str:
    """The scoreboard as one line, as the README shows it: the papers' statements apart from slips and from our own."""
    total = standing.totals(standing.every(book))
    main, paper, ours = total["main"], total["paper"], total["book"]
    words = [f"{plural(sum(paper.values()), 'statement')} of the papers: {count_words(paper)}"]
    if main:
        words.insert(0, f"{main['reproduced']} of {plural(sum(main.values()), 'main result')} hold")
    words.append(f"{plural(sum(total['slips'].values()), 'slip')} in print, each with its correction")
    words.append(f"{plural(sum(ours.values()), 'finding')} of this book ({ours['reproduced']} hold)")
    return "; ".join(words)
