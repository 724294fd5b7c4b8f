"""The book's Sphinx extension: directives, figures, launch buttons, links into the reference.

Nothing here holds a number of its own: every table is read from `claims.yml`, from the notebooks' recorded verdicts, from
the pages' parameter cells and from `book/seconds.json` while the book is rendered, so none of them can go stale.
"""

import base64
from pathlib import Path

from lib import ROOMS
from lib.press import pages
from lib.press.rendering import reference
from lib.press.rendering.boards import Door, Errata, ExecutionStatus, Room, Scoreboard, ScoreLine, Sizes
from lib.press.rendering.boxes import ClaimList, Glance, ParameterTable, Recorded
from lib.press.rendering.generated import results


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


def outdated(app, env, added, changed, removed) -> list[str]:
    """Documents to read again although no file that they are known to use has changed.

    Tables of results, when a file of results appeared or vanished: Sphinx cannot watch one that does not exist yet. Rooms of
    the reference, when their text would be another one: it depends on little of what all modules and all pages say.
    """
    root = Path(app.srcdir)
    now = {"results": pages.digest("\n".join(map(str, results(root / "book"))))}
    for room in ROOMS:
        text = reference.door_text(room, root) + reference.room_text(room, root, lambda words, page: words)
        now[f"book/library/{room}"] = pages.digest(text)
    before, env.racing = getattr(env, "racing", {}), now
    again = [name for name in now if name in env.found_docs and now[name] != before.get(name)]
    if now["results"] != before.get("results"):
        again += [doc for doc in env.found_docs if any(name.endswith("claims.yml") for name in env.dependencies.get(doc, ()))]
    return again


def without_thebe(app, pagename, templatename, context, doctree) -> None:
    """Leave out the theme's live-code scripts: nobody uses them here, and they name an outside address."""
    scripts = context.get("script_files", [])
    context["script_files"] = [s for s in scripts if "thebe" not in f"{s}{getattr(s, 'attributes', '')}".lower()]


def setup(app) -> dict:
    """What Sphinx calls when it loads this extension."""
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
        "door": Door,
        "room": Room,
    }.items():
        app.add_directive(name, directive)
    app.setup_extension("sphinx.ext.viewcode")
    app.connect("config-inited", configure)
    app.connect("env-get-outdated", outdated)
    app.connect("viewcode-find-source", reference.find_source)
    app.connect("doctree-resolved", reference.link_literals)
    app.connect("html-page-context", reference.link_code)
    app.connect("builder-inited", extract_figures)
    app.connect("html-page-context", without_thebe, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
