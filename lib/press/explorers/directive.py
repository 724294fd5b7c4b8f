"""`{explorer} name` on a page: a static picture with a caption, which scripts turn into something to play with.

Bokeh's own scripts are copied from its package into the built book, and only pages with an explorer load them. Nothing here is
imported by a page's code, so no page goes stale when an explorer changes; its document is read again, that is all.
"""

import contextlib
import html
import json
import shutil
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from lib.press import files, pages
from lib.press.errors import Problem
from lib.press.explorers import EXPLORERS

SHARED = ("numbers", "stage")
BOKEH = ("bokeh.min.js", "bokeh-widgets.min.js")


class Explorer(SphinxDirective):
    """The explorer named, with the directive's content as its caption."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name, here = self.arguments[0], Path(__file__).parent
        if name not in EXPLORERS:
            raise self.error(f"there is no explorer '{name}'; there are {', '.join(EXPLORERS)}")
        known = made(name, Path(self.env.srcdir))
        for path in (here / f"{name}.py", here / "stage.py", here / "controls.css", Path(__file__)):
            self.env.note_dependency(str(path))
        picture = draw(name, Path(self.env.srcdir))
        label = html.escape(f"Explorer: {known['title']}")
        head = f'<figure class="explorer" id="explorer-{name}" data-explorer="{name}" role="group" aria-label="{label}">'
        about = f'<p class="explorer-about">{html.escape(known["about"])}</p>'
        live = '<div class="explorer-stage" hidden></div><p class="explorer-says" role="status" hidden></p>'
        model = f'<script type="application/json" class="explorer-model">{known["model"]}</script>'
        shown = nodes.container(classes=["explorer-static"])
        shown += nodes.image(uri=f"/_build/figures/{picture.name}", alt=known["about"], candidates={})
        caption = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, caption)
        self.env.metadata[self.env.docname]["explorers"] = " ".join([*used(self.env.metadata[self.env.docname]), name])
        return [
            nodes.raw("", head + about + live, format="html"),
            shown,
            nodes.raw("", "<figcaption>", format="html"),
            *caption.children,
            nodes.raw("", f"</figcaption>{model}</figure>", format="html"),
        ]


def used(metadata: dict) -> list[str]:
    """The explorers that a document shows, from what Sphinx keeps about it."""
    return metadata.get("explorers", "").split()


def made(name: str, root: Path) -> dict:
    """What a page shows of an explorer: `title`, `about`, Bokeh's `model` as text, `scripts` of its own.

    Made again when anything in `lib`, or Bokeh, has changed; in between it is kept, for Bokeh and torch take their time to load.
    """
    sources = [*sorted((root / "lib").glob("**/*.py")), Path(__file__).parent / "controls.css"]
    mark = pages.digest(b"\0".join([*(path.read_bytes() for path in sources), version("bokeh").encode()]))
    path = root / "_build" / "explorers" / f"{name}.json"
    with contextlib.suppress(Problem):
        known = files.read_json(path) if path.exists() else None
        if isinstance(known, dict) and known.get("mark") == mark:
            return known
    from lib.press.explorers import stage

    module = import_module(f"lib.press.explorers.{name}")
    known = {"mark": mark, "title": (module.__doc__ or name).split(":")[0], "about": module.ABOUT}
    known |= {"model": stage.document(module.layout()), "scripts": list(getattr(module, "SCRIPTS", ()))}
    files.write_whole(path, json.dumps(known))
    return known


def draw(name: str, root: Path) -> Path:
    """The static picture of an explorer, drawn again only when its module has changed."""
    module, folder = Path(__file__).parent / f"{name}.py", root / "_build" / "figures"
    path = folder / f"explorer-{name}-{pages.file_digest(module)}.png"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"explorer-{name}-*.png"):
            old.unlink()
        import_module(f"lib.press.explorers.{name}").picture().savefig(path, dpi=220, metadata={"Software": None})
    return path


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
    mine = used(app.env.metadata.get(pagename, {})) if doctree is not None else []
    if not mine:
        return
    more = [script for name in mine for script in made(name, Path(app.srcdir))["scripts"]]
    own = [f"explorers/{script}.js" for script in dict.fromkeys((SHARED[0], *more, *mine, SHARED[1]))]
    for script in (*(f"bokeh/{name}" for name in BOKEH), *own):
        app.add_js_file(script, loading_method="defer")


def setup(app) -> None:
    """What the book's Sphinx extension calls."""
    app.add_directive("explorer", Explorer)
    app.connect("builder-inited", copy_bokeh)
    app.connect("html-page-context", load_scripts)
