"""The book's Sphinx extension: boxes and tables that are made from claims, parameters and executed notebooks.

Nothing here holds a number of its own: every table is read from `claims.yml`, from the notebooks' recorded verdicts, from
the pages' parameter cells and from `book/seconds.json` while the book is rendered, so none of them can go stale.
"""

import base64
import html
from collections import Counter
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from lib import claims, pages, parameters, runs

MARKS = {"reproduced": "✓", "reproduced in part": "◐", "not reproduced": "✗", "slip in print": "✎", "recorded": "●", "open": "○"}
# Reading order of the book's parts; others follow in alphabetical order.
PARTS = ("deep_linear", "neural_race", "make_haste_slowly", "early_linearization", "neural_redshift", "bias_learning")


def parts(book: Path) -> list[str]:
    there = claims.papers(book)
    return [part for part in PARTS if part in there] + [part for part in there if part not in PARTS]


def verdict_of(claim: claims.Claim, measured: dict) -> str:
    """What the executed page found; declared verdicts stand in only where nothing is executed.

    A printed form that fails beside its correction is a slip in print, and is not counted against the paper's claims.
    """
    found = measured.get(claim.id, {}).get("verdict", claim.verdict if claim.verdict == "recorded" else "open")
    return "slip in print" if claim.kind == "printed" and found not in ("reproduced", "open") else found


def badge(verdict: str) -> str:
    return f"[{MARKS[verdict]} {verdict}]{{.verdict .{verdict.replace(' ', '-')}}}"


def plural(count: int, word: str, words: str = "") -> str:
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
        """Read this document again whenever a claim, a notebook or a measured time changes."""
        for pattern in ("*/claims.yml", "*/*.ipynb", "*/recorded/*.json", pages.SECONDS, "presets.yml"):
            for path in self.book.glob(pattern):
                self.env.note_dependency(str(path))

    def parse(self, text: str) -> list[nodes.Node]:
        container = nodes.Element()
        self.state.nested_parse(StringList(text.splitlines(), source=self.env.docname), self.content_offset, container)
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


class Glance(Generated):
    """The box that opens a page: paper, figures, claims, seconds, downloads."""

    option_spec = {"paper": directives.unchanged_required, "remakes": directives.unchanged}

    def text(self) -> str:
        mine = claims.of_page(self.page.name, self.book)
        errata = {claim.erratum for claim in mine.values() if claim.erratum}
        facts = [f"**Paper** {self.options['paper']}"]
        if "remakes" in self.options:
            facts.append(f"**Remakes** {self.options['remakes']}")
        checks = plural(sum(not claim.erratum for claim in mine.values()), "claim")
        facts.append(f"**Checks** {checks}" + (f", {plural(len(errata), 'erratum', 'errata')}" if errata else ""))
        taken = pages.seconds(self.root).get(self.page.name)
        if taken is not None:
            facts.append(f"**Runs in** {taken:.0f} s on a laptop" if taken >= 1 else "**Runs in** under a second")
        name = self.page.markdown.name
        files = f"{{download}}`notebook <{self.page.notebook.name}>`, {{download}}`MyST source <{name}>`"
        box = f"````{{admonition}} At a glance\n:class: at-a-glance\n{' · '.join(facts)} · **Download** {files}\n````"
        return box + (self.chapter() if self.is_first() else "")

    def is_first(self) -> bool:
        """Whether this is the first page of its part, which shows the whole part's verdicts."""
        folder, name = self.page.name.split("/")
        return self.contents.partition(f"file: book/{folder}/")[2].startswith(f"{name}\n")

    def chapter(self) -> str:
        folder = self.page.name.split("/")[0]
        total = score([folder], self.book)
        words = f"All {sum(total.values())} claims of this part: {count_words(total)}"
        return f"\n\n``````{{dropdown}} {words}\n{scoreboard_table(folder, self.book, self.words)}\n``````"


class ClaimList(Generated):
    """The page's claims, numbered, each with its verdict."""

    def text(self) -> str:
        measured = claims.measured_in(self.page.name, self.book)
        lines = []
        for claim in claims.of_page(self.page.name, self.book).values():
            kind = {"printed": "*As printed:* ", "corrected": "*Corrected:* ", "beyond": "*Beyond the paper:* "}.get(
                claim.kind, ""
            )
            lines.append(f"1. {kind}{claim.claim} ({claim.where}) {badge(verdict_of(claim, measured))}")
        return "\n".join(lines) or "This page checks no claim."


class ParameterTable(Generated):
    """The page's parameters: type, the book's value, the paper's value, meaning."""

    def text(self) -> str:
        known = parameters.of_page(self.page.markdown)
        try:
            paper = runs.preset(self.page, "paper")
        except runs.RunError:
            paper = {}
        rows = ["| parameter | book | paper | meaning |", "|---|---|---|---|"]
        for p in known.values():
            big = f"`{paper[p.name]!r}`" if p.name in paper else "same"
            rows.append(f"| `{p.name}` | `{p.default!r}` | {big} | {p.help} |")
        return "\n".join(rows)


def scoreboard_table(part: str, book: Path, link) -> str:
    """The claims of a part as a table; `link(text, page)` makes the links."""
    entries = claims.load(part, book).values()
    measured = {page: claims.measured_in(page, book) for page in {claim.page for claim in entries}}
    rows = ["| claim | where | paper | ours | verdict |", "|---|---|---|---|---|"]
    for claim in entries:
        record = measured[claim.page].get(claim.id)
        ours = claim.show(record["measured"]) if record else "–"
        words = link(claim.claim, claim.page) + (f" *{claim.note}*" if claim.note else "")
        cells = [words, claim.where, claim.paper or "–", ours, badge(verdict_of(claim, measured[claim.page]))]
        rows.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "````{div} scoreboard\n" + "\n".join(rows) + "\n````"


class Recorded(Generated):
    """Recorded runs of the page, at sizes that a laptop does not reach, beside what the laptop measured."""

    def text(self) -> str:
        kept = runs.recorded(self.page)
        if not kept:
            return "No run at a larger size is recorded yet."
        known = parameters.of_page(self.page.markdown)
        here = claims.measured_in(self.page.name, self.book)
        mine = claims.of_page(self.page.name, self.book)
        blocks = []
        for row in kept:
            other = {name: value for name, value in row["parameters"].items() if name in known and value != known[name].default}
            sizes = ", ".join(f"`{name}={value}`" for name, value in other.items()) or "the page's own parameters"
            state = "" if row["current"] else " **Recorded under an older version of the code.**"
            cost = f"{row['seconds'] / 60:.1f} minutes on {row['device']} ({row['machine']}, torch {row['versions']['torch']})"
            blocks.append(f"Run `{row['run']}` of {row['finished'][:10]}: {sizes}; {cost}.{state}")
            lines = ["| claim | on this page | recorded | verdict there |", "|---|---|---|---|"]
            for name, record in row["results"].items():
                if name in mine:
                    laptop = mine[name].show(here[name]["measured"]) if name in here else "–"
                    verdict = claims.judge(mine[name], record["measured"])
                    cells = [mine[name].claim, laptop, mine[name].show(record["measured"]), badge(verdict)]
                    lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            blocks.append("````{div} scoreboard\n" + "\n".join(lines) + "\n````")
        return "\n\n".join(blocks)


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
        lines, total = [], Counter()
        for part in parts(self.book):
            squares = []
            for claim in claims.load(part, self.book).values():
                verdict = verdict_of(claim, claims.measured_in(claim.page, self.book))
                total[verdict] += 1
                words = html.escape(f"{verdict}: {claim.claim}")
                style = verdict.replace(" ", "-")
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


def extract_figures(app) -> None:
    """Write every named figure of the notebooks to _build/figures, where the front page's cards find their pictures."""
    folder = Path(app.srcdir) / "_build" / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages.every(Path(app.srcdir)):
        for cell in (pages.stored(page) or {"cells": []})["cells"]:
            name = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name")
            for output in cell.get("outputs", []) if name else []:
                if "image/png" in output.get("data", {}):
                    picture = base64.b64decode(output["data"]["image/png"])
                    path = folder / f"{name}.png"
                    if not path.exists() or path.read_bytes() != picture:
                        path.write_bytes(picture)


def configure(app, config) -> None:
    """Render notebooks instead of their MyST twins; show launch buttons only when the repository has an address."""
    twins = [page.markdown.relative_to(app.srcdir).as_posix() for page in pages.every(Path(app.srcdir))]
    config.exclude_patterns = [*config.exclude_patterns, *twins]
    options = dict(config.html_theme_options)
    known = bool(options.get("repository_url"))
    options["use_repository_button"] = options["use_issues_button"] = known
    options["launch_buttons"] = (
        {
            "colab_url": "https://colab.research.google.com",
            "binderhub_url": "https://mybinder.org",
            "notebook_interface": "jupyterlab",
        }
        if known
        else {}
    )
    config.html_theme_options = options


def without_thebe(app, pagename, templatename, context, doctree) -> None:
    """Leave out the theme's live-code scripts: nobody uses them here, and they name an outside address."""
    scripts = context.get("script_files", [])
    context["script_files"] = [s for s in scripts if "thebe" not in f"{s}{getattr(s, 'attributes', '')}".lower()]


def setup(app) -> dict:
    for name, directive in {
        "glance": Glance,
        "claims": ClaimList,
        "parameters": ParameterTable,
        "recorded": Recorded,
        "scoreboard": Scoreboard,
        "scoreline": ScoreLine,
        "errata": Errata,
        "execution-status": ExecutionStatus,
    }.items():
        app.add_directive(name, directive)
    app.connect("config-inited", configure)
    app.connect("builder-inited", extract_figures)
    app.connect("html-page-context", without_thebe, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def score(folders: list[str], book: Path) -> Counter:
    """How many claims of these parts have which verdict, from the executed notebooks."""
    total: Counter = Counter()
    for part in folders:
        for claim in claims.load(part, book).values():
            total[verdict_of(claim, claims.measured_in(claim.page, book))] += 1
    return total


def count_words(total: Counter) -> str:
    words = {"slip in print": "slips in print, each with its correction"}
    return ", ".join(f"{total[verdict]} {words.get(verdict, verdict)}" for verdict in MARKS if total[verdict])


def score_sentence(book: Path) -> str:
    """The scoreboard as one line, as the README shows it."""
    total = score(claims.papers(book), book)
    return f"{sum(total.values())} claims: {count_words(total)}"
