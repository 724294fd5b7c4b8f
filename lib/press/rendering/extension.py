"""The book's Sphinx extension: directives, figures, launch buttons, links into the reference.

Nothing here holds a number of its own: every table is read from `claims.yml`, from the notebooks' recorded verdicts, from
the pages' parameter cells and from `book/seconds.json` while the book is rendered, so none of them can go stale.
"""

import base64
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import ReferenceRole

from lib.press import pages
from lib.press.bindery import freshness, sidebar
from lib.press.explorers import directive as explorers
from lib.press.notebooks import plain
from lib.press.plots import pictures
from lib.press.rendering import downloads, reference
from lib.press.rendering.benches import Bench, Mutants
from lib.press.rendering.boards import Door, Errata, ExecutionStatus, Room, Scoreboard, ScoreLine, Sizes, Totals
from lib.press.rendering.boxes import Answer, ClaimList, Glance, ParameterTable, Recorded
from lib.press.rendering.verdict_pages import CitePaper, Cost, FigureIndex, MainResults, Papers, Results, Slips
from lib.press.verdicts import standing


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


class ClaimLink(ReferenceRole):
    """{claim}`words <id>`: a link to the row that checks a claim; an unknown id is an error of the build."""

    def run(self):
        book = Path(self.env.srcdir) / "book"
        claim = next((claim for claim, _ in standing.every(book) if claim.id == self.target), None)
        if claim is None:
            message = self.inliner.reporter.error(f"there is no claim '{self.target}'", line=self.lineno)
            return [nodes.literal(self.rawtext, self.target)], [message]
        self.env.note_dependency(str(book / claim.folder / "claims.yml"))
        address = self.env.app.builder.get_relative_uri(self.env.docname, f"book/{claim.page}")
        words = self.title if self.has_explicit_title else claim.id
        return [nodes.reference(self.rawtext, words, refuri=f"{address}#{claim.id}", internal=True, classes=["claim-link"])], []


def half_size(app, doctree) -> None:
    """Show the notebooks' pictures, which have twice the screen's resolution, at the size that they were drawn for."""
    for image in doctree.findall(nodes.image):
        path = Path(app.srcdir) / image.get("uri", "").lstrip("/")
        sharp = "jupyter_execute" in path.parts or "figures" in path.parts
        if sharp and path.suffix == ".png" and path.exists() and "width" not in image and "hero" not in image["classes"]:
            image["width"] = f"{pictures.width(path.read_bytes()[:24]) // 2}px"


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
    """What Sphinx calls when it loads this extension."""
    for name, directive in {
        "glance": Glance,
        "bench": Bench,
        "mutants": Mutants,
        "answer": Answer,
        "results": Results,
        "papers": Papers,
        "main-results": MainResults,
        "figure-index": FigureIndex,
        "slips": Slips,
        "cost": Cost,
        "cite-paper": CitePaper,
        "totals": Totals,
        "claims": ClaimList,
        "parameters": ParameterTable,
        "recorded": Recorded,
        "sizes": Sizes,
        "scoreboard": Scoreboard,
        "scoreline": ScoreLine,
        "errata": Errata,
        "execution-status": ExecutionStatus,
        "door": Door,
        "room": Room,
    }.items():
        app.add_directive(name, directive)
    explorers.setup(app)
    sidebar.setup(app)
    app.add_role("claim", ClaimLink())
    app.connect("build-finished", downloads.write)
    app.connect("build-finished", plain.offer)
    app.connect("html-page-context", downloads.claim_review)
    app.setup_extension("sphinx.ext.viewcode")
    freshness.watch_modules()
    app.connect("config-inited", configure)
    app.connect("doctree-read", half_size)
    app.connect("builder-inited", freshness.write_stamps)
    app.connect("env-get-outdated", freshness.outdated_rooms)
    app.connect("viewcode-find-source", reference.find_source)
    app.connect("doctree-resolved", reference.link_literals)
    app.connect("html-page-context", reference.link_code)
    app.connect("builder-inited", extract_figures)
    app.connect("html-page-context", without_thebe, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
