"""What all generated boxes share: a directive that writes MyST or HTML, its templates, and what its document depends on."""

import base64
import html
import inspect
import re
from collections.abc import Iterable
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from sphinx.util.docutils import SphinxDirective

from lib import claims
from lib.book import pages, verdicts
from lib.book.verdicts import plural
from lib.claims import SLIP, Claim

MARKS = {"reproduced": "✓", "reproduced in part": "◐", "not reproduced": "✗", "undetermined": "?", SLIP: "✎", "open": "○"}
MAIN = {"reproduced": "holds", "reproduced in part": "in part", "not reproduced": "does not hold"}  # said of a main result


def css(verdict: str) -> str:
    """The class of a verdict's colour."""
    return verdict.replace(" ", "-")


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)
TEMPLATES.globals |= {"MARKS": MARKS}
TEMPLATES.filters |= {
    "css": css,
    "markdown": lambda text: Markup(claims.to_html(text)),
    "main": lambda verdict: MAIN.get(verdict, verdict),
}


def counted(rows: Iterable[tuple[Claim, dict | None]], checks: bool = True) -> str:
    """How many claims, slips and (if `checks`) checks of our own code some rows are: '14 claims, 1 slip'."""
    total = {name: sum(found.values()) for name, found in verdicts.count(rows).items()}
    words = [plural(total["statements"] + total["findings"], "claim")]
    words += [plural(total["slips"], "slip")] if total["slips"] else []
    return ", ".join(words + ([f"{plural(total['checks'], 'check')} of our own code"] if checks and total["checks"] else []))


def badge(verdict: str, said: str) -> str:
    """Words about a verdict with its mark and colour, as MyST."""
    return f"[{MARKS[verdict]} {said}]{{.verdict .{css(verdict)}}}"


def unmarked(text: str) -> str:
    """The small Markdown of claims without its marks, for titles: `$\\sqrt{M}$` becomes \\sqrt{M}."""
    return re.sub(r"\$([^$]+)\$", r"\1", re.sub(r"\*\*|`", "", text))


def short(page: str) -> str:
    """'more contexts' for make_haste_slowly/more_contexts."""
    return page.rpartition("/")[2].replace("_", " ")


def duration(seconds: float) -> str:
    """Seconds as a reader says them: 40 s, 3 min."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def recorded(rows: list[dict]) -> str:
    """How many recorded runs these are, and how long they took: '2 runs, 68 min'."""
    old = "" if all(row["current"] for row in rows) else " (older code)"
    return f"{plural(len(rows), 'run')}, {duration(sum(row['seconds'] for row in rows))}{old}" if rows else ""


def div(classes: str, lines: list[str]) -> str:
    """Lines of MyST in a box with these classes."""
    return f"````{{div}} {classes}\n" + "\n".join(lines) + "\n````"


def dropdown(title: str, text: str) -> str:
    """A text behind a title that opens it."""
    return f"``````{{dropdown}} {title}\n{text}\n``````"


def several(claim: Claim, measured, like=None) -> str:
    """A measured value as text, its parts on lines of their own, in the order of `like` if that has the same parts."""
    if not isinstance(measured, dict):
        return claim.show(measured)
    order = like if isinstance(like, dict) and set(like) == set(measured) else measured
    return "<br>".join(f"{html.escape(name)}: {claim.show(measured[name])}" for name in order)


class Generated(SphinxDirective):
    """A directive whose `text` is MyST, parsed in place. `shows` says what its document depends on.

    claims: its part's claims.yml; part: also that part's notebooks and recorded runs; book: these of all parts, and other seeds;
    costs: claims and recorded runs of all parts, seconds and presets. Sphinx reads the document again when one of these files, or
    this extension, has changed.
    """

    shows = "part"

    def run(self) -> list[nodes.Node]:
        self.depend([self.part] if self.shows in ("claims", "part") else verdicts.parts(self.book))
        return self.build()

    def build(self) -> list[nodes.Node]:
        return self.parse(self.text())

    def depend(self, parts: list[str]) -> None:
        """Note the files from which something of these parts is shown."""
        wanted = {"claims": ["claims.yml"], "costs": ["claims.yml", "recorded/*.json"]}
        wanted = wanted.get(self.shows, ["claims.yml", "*.ipynb", "recorded/*.json"])
        shared = {"book": ["seeds.json"], "costs": ["seconds.json", "presets.yml"]}.get(self.shows, [])
        files = [path for part in parts for pattern in wanted for path in (self.book / part).glob(pattern)]
        files += [Path(__file__), Path(inspect.getfile(type(self))), *Path(__file__).parent.glob("templates/*")]
        for path in files + [self.book / name for name in shared]:
            if path.exists():
                self.env.note_dependency(str(path))

    def parse(self, text: str, sections: bool = False) -> list[nodes.Node]:
        """Nodes of a MyST text; with `sections` its headings, the first of which opens it, are sections of the page."""
        container = nodes.Element()
        lines = StringList(text.splitlines(), source=self.env.docname)
        self.state.nested_parse(lines, self.content_offset, container, match_titles=sections)
        return container.children

    def render(self, template: str, **values) -> list[nodes.Node]:
        """HTML of a template, with its mathematics typeset."""
        text = TEMPLATES.get_template(template).render(link=self.link, address=self.address, **values)
        shown = [nodes.raw("", text, format="html")]
        if 'class="math' in text:  # a formula that Sphinx knows of makes it load what typesets the others
            shown.append(nodes.paragraph("", "", nodes.math("", "x"), classes=["math-loader"]))
        return shown

    @property
    def root(self) -> Path:
        return Path(self.env.srcdir)

    @property
    def book(self) -> Path:
        return self.root / "book"

    @property
    def part(self) -> str:
        """The part of the book that this document belongs to: its folder."""
        return self.env.docname.split("/")[1]

    @property
    def page(self) -> pages.Page:
        return pages.Page(self.env.docname.removeprefix("book/"), self.root)

    def rows_of(self, page: pages.Page) -> list[tuple[Claim, dict | None]]:
        """The rows of a page."""
        return [row for row in verdicts.rows(self.book, [page.name.split("/")[0]]) if row[0].page == page.name]

    def pages_of_part(self) -> list[pages.Page]:
        """The pages of this document's part."""
        return [page for page in pages.all_pages(self.root) if page.name.startswith(f"{self.part}/")]

    def address(self, page: str) -> str:
        """The address of a page as seen from here; '#' while it is not in the table of contents yet."""
        known = f"book/{page}" in self.env.found_docs
        return self.env.app.builder.get_relative_uri(self.env.docname, f"book/{page}") if known else "#"

    def link(self, claim: Claim) -> str:
        """The address of a claim: the row that checks it."""
        return f"{self.address(claim.page)}#{claim.id}"

    def words(self, text: str, page: str, ending: str = "ipynb") -> str:
        """`text` as a MyST link to a page, or bare while that page is not in the table of contents yet."""
        return f"[{text}](/book/{page}.{ending})" if f"book/{page}" in self.env.found_docs else text

    def picture(self, page: pages.Page, name: str) -> tuple[str, str] | None:
        """(file, alternative text) of a figure that a page draws, taken out of its notebook; None when there is none."""
        found = pages.figures(page).get(name)
        if found is None:
            return None
        path, content = self.root / "_build" / "figures" / f"{name}.png", base64.b64decode(found["png"])
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return f"/_build/figures/{name}.png", found["alt"]
