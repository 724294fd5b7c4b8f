"""The table of contents beside every page, made quickly: it names documents, and Sphinx would copy all their sections each time.

Sphinx makes it anew for each page, from copies of every heading of the book, and the theme then drops all but the titles.
Here it is made from the titles alone, and pages that stand in no table of contents (sources of modules, search) share one
for each folder. It is the same table to the letter.
"""

import posixpath

from docutils import nodes
from sphinx import addnodes


def quick(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Sphinx, before the theme's templates: a `toctree` function that gives the same table for less."""
    plain = context["toctree"]
    of_page = pagename if pagename in app.env.all_docs else posixpath.dirname(pagename) + "/"

    def toctree(**options) -> str:
        if not options.get("titles_only"):
            return plain(**options)
        key = (of_page, *sorted(options.items()))
        if key not in app.racing_sidebars:
            whole, app.env.tocs = app.env.tocs, titles(app)
            try:
                app.racing_sidebars[key] = plain(**options)
            finally:
                app.env.tocs = whole
        return app.racing_sidebars[key]

    context["toctree"] = toctree


def titles(app) -> dict[str, nodes.bullet_list]:
    """What Sphinx knows of each document's headings, without those below the title."""
    if not app.racing_titles:
        app.racing_titles = {name: without_sections(toc) for name, toc in app.env.tocs.items()}
    return app.racing_titles


def without_sections(toc: nodes.bullet_list) -> nodes.bullet_list:
    """A copy of a document's headings without lists that hold nothing but sections; other documents' places stay."""
    toc = toc.deepcopy()
    for item in toc.children:
        for below in [child for child in item.children if isinstance(child, nodes.bullet_list)]:
            if next(below.findall(addnodes.toctree), None) is None:
                item.remove(below)
    return toc


def forget(app, *_) -> None:
    """Sphinx, before it writes: what was kept is of an earlier build."""
    app.racing_sidebars, app.racing_titles = {}, {}


def setup(app) -> None:
    """What the book's Sphinx extension calls."""
    forget(app)
    app.connect("env-updated", forget)
    app.connect("html-page-context", quick, priority=400)  # the theme's own functions ask for the table at 500
