"""`{explorer} name` on a page: a figure of that page with a caption, which scripts turn into something to play with.

Bokeh's own scripts are copied from its package into the built book, and only pages with an explorer load them. Nothing here is
imported by a page's code, so no page goes stale when an explorer changes; its document is read again, that is all.
"""

import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from base import TEMPLATES, Generated
from docutils import nodes

from explorers import EXPLORERS

HERE = Path(__file__).parent
BOKEH = ("bokeh.min.js", "bokeh-widgets.min.js")


class Explorer(Generated):
    """The explorer named, with the directive's content as its caption."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name, about = self.arguments[0], self.env.metadata[self.env.docname]
        if name not in EXPLORERS:
            raise self.error(f"there is no explorer '{name}'; there are {', '.join(EXPLORERS)}")
        from explorers import bokeh_parts  # late, like the module: a build that reads no page with an explorer needs no Bokeh

        module = import_module(f"explorers.{name}")
        for file in (f"{name}.py", "bokeh_parts.py", "directive.py", "controls.css", "../templates/explorer.html"):
            self.env.note_dependency(str(HERE / file))
        scripts = (*about.get("explorers", "numbers").split(), *getattr(module, "SCRIPTS", ()), name)
        about["explorers"] = " ".join(dict.fromkeys(scripts))  # what the page loads, in this order
        known = {"title": module.__doc__.split(":")[0], "about": module.ABOUT, "model": bokeh_parts.document(module.layout())}
        found = self.picture(self.page, EXPLORERS[name])
        static, caption = nodes.container(classes=["explorer-static"]), nodes.Element()
        if found:
            static += nodes.image(uri=found[0], alt=found[1], candidates={})
        self.state.nested_parse(self.content, self.content_offset, caption)
        head, foot = TEMPLATES.get_template("explorer.html").render(name=name, **known).split("<!-- picture and caption -->")
        between = nodes.raw("", "<figcaption>", format="html")
        return [nodes.raw("", head, format="html"), static, between, *caption.children, nodes.raw("", foot, format="html")]


def copy_bokeh(app) -> None:
    """Sphinx, before it begins: Bokeh's scripts beside the book's own."""
    folder, package = Path(app.outdir) / "_static" / "bokeh", Path(find_spec("bokeh").origin).parent
    for name in BOKEH:
        source, target = package / "server" / "static" / "js" / name, folder / name
        if not target.exists() or target.stat().st_size != source.stat().st_size:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def load_scripts(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Sphinx, for every page: one with an explorer loads Bokeh, the shared scripts and the explorer's own, once and in order."""
    mine = app.env.metadata.get(pagename, {}).get("explorers", "").split() if doctree is not None else []
    if mine:
        own = [f"explorers/{script}.js" for script in (*mine, "page")]
        for script in (*(f"bokeh/{name}" for name in BOKEH), *own):
            app.add_js_file(script, loading_method="defer")


def setup(app) -> None:
    """What the book's Sphinx extension calls."""
    app.add_directive("explorer", Explorer)
    app.connect("builder-inited", copy_bokeh)
    app.connect("html-page-context", load_scripts)
