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

from lib.press import claims, pages, parameters
from lib.press.workbench import runs

MARKS = {"reproduced": "✓", "reproduced in part": "◐", "not reproduced": "✗", "slip in print": "✎", "open": "○"}
# Reading order of the book's parts; others follow in alphabetical order.
PARTS = ("deep_linear", "neural_race", "make_haste_slowly", "early_linearization", "neural_redshift", "bias_learning")


def parts(book: Path) -> list[str]:
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
        """Read this document again whenever a claim, a notebook, a measured time or this module changes."""
        self.env.note_dependency(__file__)
        # folders are there for files that do not exist yet: a new one changes its folder
        for pattern in ("*/claims.yml", "*/*.ipynb", "*/recorded/*.json", "*/recorded", "*/", pages.SECONDS, "presets.yml"):
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
            lines.append(f"1. {kind}{claim.claim} ({claim.where}) {badge(verdict_of(claim, measured), claim)}")
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
        cells = [words, claim.where, claim.paper or "–", ours, badge(verdict_of(claim, measured[claim.page]), claim)]
        rows.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return scoreboard(rows)


class Recorded(Generated):
    """Recorded runs of the page, at sizes that a laptop does not reach, beside what the laptop measured."""

    def text(self) -> str:
        kept = runs.recorded(self.page)
        return "\n\n".join(self.one(row) for row in kept) or "No run at a larger size is recorded yet."

    def one(self, row: dict) -> str:
        """What the run is; where its verdicts differ from the page's, and claims that it alone checks; then all of it, folded."""
        known = parameters.of_page(self.page.markdown)
        other = {name: value for name, value in row["parameters"].items() if name in known and value != known[name].default}
        sizes = ", ".join(f"`{name}={value}`" for name, value in other.items()) or "the page's own parameters"
        state = "" if row["current"] else " **Recorded under an older version of the code.**"
        cost = f"{duration(row['seconds'])} on {row['device']} ({row['machine']}, torch {row['versions']['torch']})"
        mine, here = claims.of_page(self.page.name, self.book), claims.measured_in(self.page.name, self.book)
        apart, everything = [], []
        for name, record in row["results"].items():
            if name not in mine:  # the claim has been renamed or given up since
                continue
            claim, verdict = mine[name], claims.judge(mine[name], record["measured"])
            only_here = claim.verdict == "recorded" or name not in here
            on_page = "–" if only_here else several(claim, here[name]["measured"], record["measured"])
            cells = [claim.claim, on_page, several(claim, record["measured"]), badge(verdict)]
            everything.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            if only_here or verdict != here[name]["verdict"]:
                apart.append(everything[-1])
        head = ["| claim | on this page | recorded | verdict there |", "|---|---|---|---|"]
        total = plural(len(everything), "check")
        same = f"{len(everything) - len(apart)} of {total} have the verdict that they have on this page."
        if apart:
            same += " The others, and what only a run of this size can tell:\n\n" + scoreboard(head + apart)
        folded = f"``````{{dropdown}} All {total} of this run\n{scoreboard(head + everything)}\n``````"
        return f"Run `{row['run']}` of {row['finished'][:10]}: {sizes}; {cost}.{state} {same}\n\n{folded}"


def scoreboard(lines: list[str], also: str = "") -> str:
    """Lines of a table, in the scoreboard's style; `also` is another class."""
    return f"````{{div}} scoreboard {also}\n" + "\n".join(lines) + "\n````"


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def several(claim: claims.Claim, measured, like=None) -> str:
    """A measured value as text, its parts on lines of their own, in the order of `like` if that has the same parts."""
    if not isinstance(measured, dict):
        return claim.show(measured)
    order = like if isinstance(like, dict) and set(like) == set(measured) else measured
    return "<br>".join(f"{html.escape(name)}: {claim.show(measured[name])}" for name in order)


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
        "sizes": Sizes,
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
    by_run = sum(claim.verdict == "recorded" for paper in claims.papers(book) for claim in claims.load(paper, book).values())
    more = f" ({by_run} of them need more than a laptop and rest on recorded runs)" if by_run else ""
    return f"{sum(total.values())} claims: {count_words(total)}{more}"
