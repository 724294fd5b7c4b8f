"""What opens a paper: its main results as cards, the index of its figures and equations, its slips, costs and citations."""

import re
from collections import Counter

from base import MAIN, Generated, badge, css, recorded, short
from docutils import nodes
from scoreboard import Errata, in_paper

from lib import claims
from lib.book import freshness, pages, runs, verdicts
from lib.book.verdicts import plural
from lib.claims import Claim
from lib.files import read_text

SOURCES = (("Fig.", "figure"), ("Table", "table"), ("Eq.", "equation"))


def main_results(book, part: str) -> list[tuple[Claim, str]]:
    """The main results of a part with the verdicts that count, the paper's own first."""
    found = [(claim, verdicts.verdict(claim, record)) for claim, record in verdicts.rows(book, [part]) if claim.rank == "main"]
    return sorted(found, key=lambda one: one[0].author != "paper")


def mark_and_link(claim: Claim, verdict: str) -> tuple[str, str]:
    """The verdict in words, and a link to the row that checks the claim."""
    return badge(verdict, MAIN.get(verdict, verdict)), f"{{claim}}`{short(claim.page)} <{claim.id}>`"


def in_lines(results: list[tuple[Claim, str]]) -> str:
    """Main results as a list: verdict, sentence, a link to the row that checks it."""
    lines = []
    for claim, verdict in results:
        whose = "*This book:* " if claim.author == "book" else ""
        mark, link = mark_and_link(claim, verdict)
        lines.append(f"- {mark} {whose}{claim.result} {link}")
    return "\n".join(lines)


class Results(Generated):
    """The main results of this part: verdict, sentence, figure, a link to the row; where all its statements and findings are."""

    def text(self) -> str:
        cards = [self.card(claim, verdict) for claim, verdict in main_results(self.book, self.part)]
        total, links = verdicts.count(verdicts.rows(self.book, [self.part])), []
        for kind, whose in (("statement", "of the paper"), ("finding", "of this book")):
            address = f"{self.address('scoreboard')}?paper={self.part}&kind={kind}#{self.part}"
            links.append(f'<a href="{address}">{plural(total[f"{kind}s"].total(), kind)} {whose}</a>')
        grid = ":::::{grid} 1 1 2 2\n:gutter: 3\n\n" + "\n\n".join(cards) + "\n:::::"
        return f"{grid}\n\nAll on the scoreboard: {' and '.join(links)}." if cards else "No main result is named yet."

    def card(self, claim: Claim, verdict: str) -> str:
        """One main result."""
        found = self.picture(pages.Page(claim.page, self.root), claim.hero)
        picture = f":img-top: {found[0]}\n:img-alt: {found[1]}\n" if found else ""
        whose = "found by this book" if claim.author == "book" else in_paper(claim, "") or claim.where
        mark, link = mark_and_link(claim, verdict)
        note = f"\n\n[{claim.note}]{{.card-note}}" if claim.note and "$" not in claim.note else ""
        body = f"{mark} **{claim.result}**{note}\n\n:::{{card-footer}}\n{whose} → {link}\n:::"
        return f"::::{{grid-item-card}}\n:class-card: result {css(verdict)}\n{picture}\n{body}\n::::"


class Papers(Generated):
    """The front page's cards: each paper with a figure of its first main result, and all main results with their verdicts."""

    shows = "book"

    def text(self) -> str:
        found = {part: main_results(self.book, part) for part in verdicts.parts(self.book)}
        return "\n\n".join(self.card(part, results) for part, results in found.items() if results)

    def card(self, part: str, results: list[tuple[Claim, str]]) -> str:
        """One paper: its title, a figure that leads to its page, its main results."""
        first = results[0][0]
        title = self.words(claims.read(part, self.book).title, f"{part}/index", "md")
        found, target = self.picture(pages.Page(first.page, self.root), first.hero), f"{self.address(first.page)}#{first.hero}"
        picture = f"```{{image}} {found[0]}\n:alt: {found[1]}\n:target: {target}\n```" if found else ""
        inside = f"**{title}**\n\n::::{{div}} paper-figure\n{picture}\n::::\n\n{in_lines(results)}"
        return f":::::{{div}} paper-card\n{inside}\n:::::"


def shows(figures: dict[str, dict], number: str) -> str | None:
    """Which of our figures remakes a figure of the paper, '5c', by the bold opening of its caption; or else one of Fig. 5.

    Where several do, the one that says least beside the number: 'Fig. 7' goes before 'Figs 7 and 8, by kernel regression'.
    """
    openings = {name: re.match(r"(\*\*[^*]*)?", about["caption"])[0] for name, about in figures.items()}
    for wanted in (number, re.sub(r"[A-Za-z]$", "", number)):
        pattern = rf"\bFigs?\b.*(?<![\w.]){re.escape(wanted)}(?!\d)"
        found = [name for name, opening in openings.items() if re.search(pattern, opening, re.S)]
        if found:
            return min(found, key=lambda name: len(openings[name]))
    return None


def own_name(number: str) -> str:
    """'Proposition' of 'Proposition 3'; nothing for '3' and 'B.2', which are figures or equations without one."""
    return re.match(r"([A-Z][a-z]{2,})?", number)[0]


def order(entry: tuple[str, str]) -> tuple:
    """Figures before tables before equations, by number, then by letter; appendices, then what has a name of its own."""
    number, appendix, digits = (re.search(how, entry[1])[0] for how in (r".*", r"^[A-Za-z]*", r"\d+|$"))
    return ([word for word, _ in SOURCES].index(entry[0]), own_name(number), appendix, int(digits or 0), number)


class FigureIndex(Generated):
    """Each figure, table and equation of the paper: where it is remade and with what verdict, or why not."""

    def build(self) -> list[nodes.Node]:
        found: dict[tuple[str, str], list] = {}  # ("Figure", "4a") -> the rows about it
        for claim, record in verdicts.rows(self.book, [self.part]):
            for word, field in SOURCES if claim.rank != "check" else ():
                for number in filter(None, map(str.strip, getattr(claim, field).split(","))):
                    found.setdefault((word, number), []).append((claim, verdicts.verdict(claim, record)))
        lines: dict[tuple[str, str], list[dict]] = {}
        figures = {page.name: pages.figures(page) for page in pages.all_pages(self.root)}
        for (word, number), rows in found.items():
            said = Counter(claims.word(claim, verdict) for claim, verdict in rows)
            about = {"said": said, "marks": {claims.word(claim, verdict): verdict for claim, verdict in rows}, "rows": rows}
            places = []
            for page in sorted({claim.page for claim, _ in rows}):
                figure = shows(figures[page], number) if word == "Fig." else None
                places.append((self.address(page) + (f"#{figure}" if figure else ""), short(page)))
            anchor = f"{dict(SOURCES)[word]}-{number}".replace(" ", "")
            several = "Eqs" if word == "Eq." and "-" in number else word
            about |= {"head": number if own_name(number) else f"{several} {number}", "anchor": anchor, "places": places}
            lines[word, number] = [about]
        for entry in claims.index(self.part, self.book):
            word, _, number = re.sub(r"^Fig(ure)?s?\.?", "Fig.", re.sub(r"^Eqs?\.?", "Eq.", entry.what)).partition(" ")
            place = (word if word in dict(SOURCES) else "Table" if word == "Tables" else "Eq.", number or entry.what)
            drawn = (entry.at, self.drawn_on(entry.at)) if entry.at else None
            lines.setdefault(place, []).append({"head": entry.what, "drawn": drawn, "why": entry.why})
        return self.render("figure_index.html", lines=[line for place in sorted(lines, key=order) for line in lines[place]])

    def drawn_on(self, name: str) -> str:
        """The page of this part that draws a figure of ours."""
        for page in self.pages_of_part():
            if name in pages.figures(page):
                return page.name
        raise self.error(f"no page of {self.part} draws a figure named {name}")


class Slips(Errata):
    """The slips of this part that change a number or a conclusion; typos are on the errata page."""

    shows = "part"

    def text(self) -> str:
        self.arguments = [self.part]
        typos = sum(slip.severity == "typo" for slip in claims.errata(self.part, self.book).values())
        return super().text() + (f"\n\n{plural(typos, 'typo')} of this paper: {{doc}}`../errata`." if typos else "")


class Cost(Generated):
    """What this part costs: seconds of its pages on a laptop, minutes of its recorded runs."""

    def text(self) -> str:
        self.env.note_dependency(str(self.book / freshness.SECONDS))
        taken, facts = freshness.seconds(self.root), []
        for page in self.pages_of_part():
            kept = f" (recorded: {found})" if (found := recorded(runs.recorded(page))) else ""
            facts.append(f"{self.words(short(page.name), page.name)} {taken.get(page.name, 0):.0f} s{kept}")
        return "**Cost on a laptop.** " + " · ".join(facts) + "."


class CitePaper(Generated):
    """BibTeX of the paper and of this page."""

    def text(self) -> str:
        about, bibliography = claims.read(self.part, self.book), self.book / "references.bib"
        self.env.note_dependency(str(bibliography))
        paper = re.search(rf"@\w+\{{{re.escape(about.cite)},.*?\n\}}", read_text(bibliography), re.S) if about.cite else None
        page = (
            f"@misc{{racing-{self.part.replace('_', '-')},\n  title = {{{about.title}: a reproduction}},\n"
            "  author = {{The Racing to Simplicity authors}},\n"
            f"  howpublished = {{Racing to Simplicity, book/{self.part}/index}},\n  year = {{{self.env.config.copyright}}}\n}}"
        )
        return "\n\n".join(f"```bibtex\n{text}\n```" for text in ([paper[0]] if paper else []) + [page])
