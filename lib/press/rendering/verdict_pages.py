"""What opens a paper: its main results as cards, the index of its figures and equations, its slips, costs and citations."""

import html
import re

from docutils import nodes

from lib.press import claims, pages
from lib.press.bindery import freshness
from lib.press.rendering.boards import Errata
from lib.press.rendering.boxes import figure_alt
from lib.press.rendering.generated import MARKS, PLAIN, Generated, badge_html, duration, parts, plural
from lib.press.verdicts import recordings, rows, standing

SOURCES = (("Figure", "figure"), ("Table", "table"), ("Eq.", "equation"))


def main_results(book, part: str) -> list[tuple[claims.Claim, str]]:
    """The main results of a part with the verdicts that count, the paper's own first."""
    found = [(claim, standing.verdict(claim, record)) for claim, record in standing.every(book, [part]) if claim.rank == "main"]
    return sorted(found, key=lambda one: one[0].author != "paper")


def in_paper(claim: claims.Claim) -> str:
    """Figure, table or equation of the paper that a row is about, in short; else the section."""
    words = [f"{word.replace('Figure', 'Fig.')} {getattr(claim, field)}" for word, field in SOURCES if getattr(claim, field)]
    return ", ".join(words) or claim.where


class Results(Generated):
    """The main results of this part: verdict, one sentence, our figure, a link to the row that checks it."""

    def text(self) -> str:
        cards = []
        for claim, verdict in main_results(self.book, self.part):
            page = pages.Page(claim.page, self.root)
            alt = figure_alt(page, claim.hero) or ""
            picture = f":img-top: /_build/figures/{claim.hero}.png\n:img-alt: {alt}\n" if alt else ""
            whose = "found by this book" if claim.author == "book" else in_paper(claim)
            mark = f"[{MARKS[verdict]} {PLAIN.get(verdict, verdict)}]{{.verdict .{verdict.replace(' ', '-')}}}"
            link = f"{{claim}}`{claim.page.split('/')[1].replace('_', ' ')} <{claim.id}>`"
            note = f"\n\n[{claim.note}]{{.card-note}}" if claim.note and "$" not in claim.note else ""
            look = f":class-card: result {verdict.replace(' ', '-')}\n{picture}"
            body = f"{mark} **{claim.result}**{note}\n\n:::{{card-footer}}\n{whose} → {link}\n:::"
            cards.append(f"::::{{grid-item-card}}\n{look}\n{body}\n::::")
        return ":::::{grid} 1 1 2 2\n:gutter: 3\n\n" + "\n\n".join(cards) + "\n:::::" if cards else "No main result is named yet."


class Papers(Generated):
    """The front page's cards: each paper with its main results in one line each, and their verdicts."""

    def run(self) -> list[nodes.Node]:
        self.depends_on_results()
        cards = []
        for part in parts(self.book):
            found = main_results(self.book, part)
            if not found:
                continue
            title = html.escape(claims.title(part, self.book)[0])
            home = self.address(f"{part}/index")
            cards.append(f'<article class="paper-card"><h3><a href="{home}">{title}</a></h3>{in_lines(self, found)}</article>')
        return self.html(f'<div class="paper-cards">{"".join(cards)}</div>')


class MainResults(Generated):
    """The main results of one part, named as the argument, in one line each: what a table of several papers has in a cell."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.depends_on_results()
        part = self.arguments[0]
        if part not in parts(self.book):
            raise self.error(f"there is no part '{part}' with claims")
        self.env.note_dependency(str(freshness.stamp(self.root, part)))
        return self.html(f'<div class="main-results">{in_lines(self, main_results(self.book, part))}</div>')


def in_lines(page: Generated, found: list[tuple[claims.Claim, str]]) -> str:
    """Main results as an HTML list: verdict, sentence, link."""
    lines = ""
    for claim, verdict in found:
        ours = "<em>This book:</em> " if claim.author == "book" else ""
        sentence = f'{ours}<a href="{page.link(claim)}">{rows.to_html(claim.result)}</a>'
        lines += f"<li>{badge_html(verdict, PLAIN.get(verdict, verdict))} {sentence}</li>"
    return f"<ul>{lines}</ul>"


def numbers(text: str) -> list[str]:
    """The single figures or equations that a field names: '4a, 4f' and '13-14' as they are, one by one."""
    return [one.strip() for one in text.split(",") if one.strip()]


def order(entry: tuple) -> tuple:
    """Figures before tables before equations, by number, then by letter; appendices, then what has a name of its own."""
    number, appendix, digits = (re.search(how, entry[1])[0] for how in (r".*", r"^[A-Za-z]*", r"\d+|$"))
    return ([word for word, _ in SOURCES].index(entry[0]), own_name(number), appendix, int(digits or 0), number)


def own_name(number: str) -> str:
    """'Proposition' of 'Proposition 3'; nothing for '3' and 'B.2', which are figures or equations without one."""
    return re.match(r"([A-Z][a-z]{2,})?", number)[0]


def line(head: str, where: str, what: str, anchor: str = "") -> str:
    """One line of the index."""
    named = f' id="{anchor}"' if anchor else ""
    return f'<tr{named}><th scope="row">{head}</th><td>{where}</td><td>{what}</td></tr>'


class FigureIndex(Generated):
    """Each figure, table and equation of the paper: where it is remade and with what verdict, or why not."""

    def run(self) -> list[nodes.Node]:
        self.depends_on_results()
        found: dict[tuple[str, str], list] = {}
        for claim, record in standing.every(self.book, [self.part]):
            if claim.rank == "check":
                continue
            for word, field in SOURCES:
                for number in numbers(getattr(claim, field)):
                    found.setdefault((word, number), []).append((claim, standing.verdict(claim, record)))
        lines: dict[tuple[str, str], str] = {}
        for word, number in found:
            links = []
            for claim, verdict in found[word, number]:
                text = html.escape(f"{rows.word(claim, verdict)}: {rows.plain(claim.claim)}")
                short = claim.id.partition("-")[2] or claim.id  # its page stands beside it
                links.append(f'<a href="{self.link(claim)}" title="{text}">{badge_html(verdict, short.replace("-", " "))}</a>')
            places = sorted({claim.page for claim, _ in found[word, number]})
            where = ", ".join(f'<a href="{self.address(page)}">{page.split("/")[1].replace("_", " ")}</a>' for page in places)
            anchor = f"{word.lower().rstrip('.')}-{number}".replace(" ", "")
            head = number if own_name(number) else f"{word} {number}"
            lines[word, number] = line(html.escape(head), where, " ".join(links), anchor)
        for entry in claims.index(self.part, self.book):
            where = self.figure(entry["at"]) if "at" in entry else "–"
            word, _, number = re.sub(r"^Fig(ure)?s?\.?", "Figure", re.sub(r"^Eqs?\.?", "Eq.", entry["what"])).partition(" ")
            place = (word if word in dict(SOURCES) else "Table" if word == "Tables" else "Eq.", number or entry["what"])
            lines[place] = lines.get(place, "") + line(html.escape(entry["what"]), where, rows.to_html(entry["why"]))
        names = ("in the paper", "remade on", "verdict, or why not")
        head = "".join(f'<th scope="col">{name}</th>' for name in names)
        table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines[place] for place in sorted(lines, key=order))}</tbody>"
        return self.html(f'<table class="figure-index">{table}</table>')

    def figure(self, name: str) -> str:
        """A link to a figure of ours, in the words of the page of this part that draws it."""
        for page in pages.every(self.root):
            if page.name.startswith(f"{self.part}/") and figure_alt(page, name) is not None:
                return f'<a href="{self.address(page.name)}#{name}">{page.name.split("/")[1].replace("_", " ")}</a>'
        raise self.error(f"no page of {self.part} draws a figure named {name}")


class Slips(Errata):
    """The slips of this part that change a number or a conclusion; typos are on the errata page."""

    severities = ("conclusion", "number")

    def text(self) -> str:
        self.arguments = [self.part]
        typos = sum(slip["severity"] == "typo" for slip in claims.errata(self.part, self.book).values())
        there = super().text()
        more = f"\n\n{plural(typos, 'typo')} of this paper: {{doc}}`../errata`." if typos else ""
        return there + more


class Cost(Generated):
    """What this part costs: seconds of its pages on a laptop, minutes of its recorded runs."""

    def text(self) -> str:
        taken, lines = pages.seconds(self.root), []
        for page in pages.every(self.root):
            if page.name.startswith(f"{self.part}/"):
                kept = ", ".join(duration(row["seconds"]) for row in recordings.recorded(page))
                more = f"; recorded runs: {kept}" if kept else ""
                lines.append(
                    f"{self.words(page.name.split('/')[1], page.name)} {taken.get(page.name, 0):.0f} s on a laptop{more}"
                )
        return "**Cost.** " + " · ".join(lines) + "."


class CitePaper(Generated):
    """BibTeX of the paper and of this page."""

    def text(self) -> str:
        title, key = claims.title(self.part, self.book)
        entries = (self.book / "references.bib").read_text(encoding="utf-8")
        self.env.note_dependency(str(self.book / "references.bib"))
        paper = re.search(rf"@\w+\{{{re.escape(key)},.*?\n\}}", entries, re.S) if key else None
        year = re.search(r'copyright: "(\d+)"', (self.root / "_config.yml").read_text(encoding="utf-8"))
        fields = {
            "title": f"{title}: a reproduction",
            "author": "{The Racing to Simplicity authors}",
            "howpublished": f"Racing to Simplicity, book/{self.part}/index",
            "year": year[1] if year else "",
        }
        inner = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
        page = f"@misc{{racing-{self.part.replace('_', '-')},\n{inner}\n}}"
        return "\n\n".join(f"```bibtex\n{text}\n```" for text in ([paper[0]] if paper else []) + [page])
