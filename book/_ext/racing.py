"""The book's Sphinx extension: directives, the {claim} role, figures, launch buttons.

Nothing here holds a number of its own: every table is read from `claims.yml`, from the notebooks' recorded verdicts, from
the pages' parameter cells and from `book/seconds.json` while the book is rendered, so none of them can go stale.
"""

import re
from pathlib import Path

import api
import downloads
import page_boxes
import paper_pages
import scoreboard
from docutils import nodes
from explorers import directive as explorers
from sphinx.util.docutils import ReferenceRole

from lib.book import freshness, pages, pictures, verdicts
from lib.files import read_yaml

DIRECTIVES = {
    "glance": page_boxes.Glance,
    "answer": page_boxes.Answer,
    "claims": page_boxes.ClaimList,
    "parameters": page_boxes.ParameterTable,
    "recorded": page_boxes.Recorded,
    "results": paper_pages.Results,
    "papers": paper_pages.Papers,
    "figure-index": paper_pages.FigureIndex,
    "slips": paper_pages.Slips,
    "cost": paper_pages.Cost,
    "cite-paper": paper_pages.CitePaper,
    "scoreboard": scoreboard.Scoreboard,
    "scoreline": scoreboard.ScoreLine,
    "totals": scoreboard.Totals,
    "errata": scoreboard.Errata,
    "sizes": scoreboard.CostTable,
    "benchmarks": scoreboard.Benchmarks,
    "reference": api.Reference,
}


class ClaimLink(ReferenceRole):
    """{claim}`words <id>`: a link to the row that checks a claim; an unknown id is an error of the build."""

    def run(self):
        book = Path(self.env.srcdir) / "book"
        claim = next((claim for claim, _ in verdicts.rows(book) if claim.id == self.target), None)
        if claim is None:
            message = self.inliner.reporter.error(f"there is no claim '{self.target}'", line=self.lineno)
            return [nodes.literal(self.rawtext, self.target)], [message]
        self.env.note_dependency(str(book / claim.folder / "claims.yml"))
        address = self.env.app.builder.get_relative_uri(self.env.docname, f"book/{claim.page}")
        words = self.title if self.has_explicit_title else claim.id
        return [nodes.reference(self.rawtext, words, refuri=f"{address}#{claim.id}", internal=True, classes=["claim-link"])], []


def configure(app, config) -> None:
    """Render notebooks instead of their MyST twins; show buttons for the repository only when it has an address."""
    twins = [page.markdown.relative_to(app.srcdir).as_posix() for page in pages.all_pages(Path(app.srcdir))]
    config.exclude_patterns = [*config.exclude_patterns, *twins]
    options = dict(config.html_theme_options) | {"launch_buttons": {}}
    options["use_repository_button"] = options["use_issues_button"] = bool(options.get("repository_url"))
    config.html_theme_options = options


def outdated(app, env, added, changed, removed) -> list[str]:
    """Sphinx: documents to read again because of files that all pages share, or that are new.

    Every page shows its own line of seconds.json and presets.yml and its own recorded runs; a new line or run concerns that page
    (and those that show costs), not all others.
    """
    root, now = Path(app.srcdir), {}
    presets, taken = read_yaml(root / "book" / "presets.yml"), freshness.seconds(root)
    for page in pages.all_pages(root):
        kept = sorted(
            (path.name, path.stat().st_mtime) for path in page.markdown.parent.glob(f"recorded/{page.markdown.stem}-*.json")
        )
        now[f"book/{page.name}"] = [f"{taken.get(page.name, 0):.0f}", presets.get(page.name), kept]
        for other in (f"book/{page.name.split('/')[0]}/index", "book/running"):
            now.setdefault(other, []).extend(kept)
    before, env.racing_shared = getattr(env, "racing_shared", now), now
    return [name for name in now if now[name] != before.get(name) and name in env.found_docs]


def half_size(app, doctree) -> None:
    """Show the notebooks' pictures, which have twice the screen's resolution, at the size that they were drawn for."""
    for image in doctree.findall(nodes.image):
        path = Path(app.srcdir) / image.get("uri", "").lstrip("/")
        sharp = {"jupyter_execute", "figures"} & set(path.parts)
        if sharp and path.suffix == ".png" and path.exists() and "width" not in image and "hero" not in image["classes"]:
            image["width"] = f"{pictures.width(path.read_bytes()[:24]) // 2}px"


def spaced_percent(app, doctree) -> None:
    """Glued numbers are written as the prose is: 3.6 % for 3.6%."""
    for text in [text for text in doctree.findall(nodes.Text) if "pasted-text" in text.parent.get("classes", [])]:
        text.parent.replace(text, nodes.Text(re.sub(r"(?<=\d)%", "\N{NARROW NO-BREAK SPACE}%", text)))


def without_thebe(app, pagename, templatename, context, doctree) -> None:
    """Leave out the theme's live-code scripts: nobody uses them here, and they name an outside address."""
    scripts = context.get("script_files", [])
    context["script_files"] = [s for s in scripts if "thebe" not in f"{s}{getattr(s, 'attributes', '')}".lower()]


def setup(app) -> dict:
    """What Sphinx calls when it loads this extension."""
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    app.add_role("claim", ClaimLink())
    explorers.setup(app)
    api.setup(app)
    app.connect("config-inited", configure)
    app.connect("env-get-outdated", outdated)
    app.connect("doctree-read", half_size)
    app.connect("doctree-read", spaced_percent)
    app.connect("html-page-context", without_thebe, priority=900)
    app.connect("build-finished", downloads.write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
