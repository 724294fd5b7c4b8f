"""The reference of `lib`: pages by sphinx.ext.autodoc from docstrings that are plain text, links in prose and code to them.

sphinx-codeautolink finds names of `lib` in the code of all pages, links them and lists on the reference who uses what. It forgets
what it knows of documents that are not read again; `recall` and `restore` give that back to it.
"""

import ast
import json
import re
import textwrap
from pathlib import Path

from base import Generated
from docutils import nodes
from sphinx_codeautolink import extension
from sphinx_codeautolink.extension import SphinxCodeAutoLink
from sphinx_codeautolink.extension.backref import CodeExample
from sphinx_codeautolink.extension.block import CodeBlockAnalyser, SourceTransform
from sphinx_codeautolink.parse import Name

LIBRARY = "book/library/"
MARKUP = re.compile(r"((?<!\w)\*[^\s*][^*]*[^\s*]\*(?!\w))|[\\*_|`]")  # *emphasis* stays, the rest becomes text


class Reference(Generated):
    """{reference} lib.gated: all that is public in a package, a section for each module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        package = self.arguments[0]
        folder = self.root / package.replace(".", "/")
        text = (folder / "__init__.py").read_text(encoding="utf-8")
        modules = [path.relative_to(folder) for path in folder.glob("**/*.py") if not path.stem.startswith("_")]
        modules.sort(key=lambda path: (text.find(path.parts[0].removesuffix(".py")) % len(text), path))  # as they are introduced
        shown = []
        for path in modules:
            name = f"{package}.{path.with_suffix('').as_posix().replace('/', '.')}"
            shown.append(f"## `{name.removeprefix('lib.')}`\n\n```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n```")
            self.env.note_dependency(str(folder / path))
        return self.parse("\n\n".join(shown), sections=True)


def docstring(app, what, name, obj, options, lines: list[str]) -> None:
    """autodoc: a docstring, which is plain text with `code`, *emphasis* and indented programs, as reStructuredText."""
    blocks: list[str] = []
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        if not paragraph.startswith("    "):
            blocks.append(escaped(paragraph))
        elif blocks and blocks[-1].startswith("    "):
            blocks[-1] += f"\n\n{paragraph}"
        else:
            blocks.append(paragraph)
    lines[:] = "\n\n".join(program(block) if block.startswith("    ") else block for block in blocks).split("\n") + [""]


def signature(app, what, name, obj, options, arguments, returned) -> tuple[str, None] | None:
    """autodoc: of a msgspec structure the names of its fields, instead of their annotations."""
    return (f"({', '.join(obj.__struct_fields__)})", None) if hasattr(obj, "__struct_fields__") else None


def program(block: str) -> str:
    """Indented paragraphs as a block of code, coloured as Python if that is what it is."""
    code = textwrap.dedent(block)
    try:
        ast.parse(code)
        language = "python"
    except SyntaxError:
        language = "text"
    return f".. code-block:: {language}\n\n{textwrap.indent(code, '   ')}"


def escaped(paragraph: str) -> str:
    """A paragraph with the marks of reStructuredText made harmless outside of `code`."""
    done = []
    for i, part in enumerate(re.split(r"`([^`]*)`", "\n".join(line.strip() for line in paragraph.splitlines()))):
        done.append(f"\\ ``{part}``\\ " if i % 2 else MARKUP.sub(lambda m: m[1] or f"\\{m[0]}", part))
    return re.sub(r"^(\\ )?(?=[-+=:.]|\w+[.)]\s)", r"\\", "".join(done).removeprefix("\\ "), flags=re.M)


# --- links -----------------------------------------------------------------------------------------------------------


def link_literals(app, doctree, docname: str) -> None:
    """`race.reduce` in prose becomes a link to the reference; `lib.gated` to the package's page."""
    known: dict[str, str | None] = {}
    for full, entry in app.env.domains["py"].objects.items():
        steps = full.split(".")
        for name in {full, ".".join(steps[-2:]), f"{steps[1]}.{steps[-1]}"} if len(steps) > 2 else ():
            known[name] = f"{entry.docname}#{entry.node_id}" if name not in known else None  # two of that name: neither
    for literal in list(doctree.findall(nodes.literal)):
        name = literal.astext().strip().removesuffix("()")
        page = LIBRARY + name.removeprefix("lib.")
        target = known.get(name) or (page if name.startswith("lib.") and page in app.env.found_docs else None)
        if target and not isinstance(literal.parent, nodes.reference | nodes.title):
            document, _, anchor = target.partition("#")
            address = app.builder.get_relative_uri(docname, document) + (f"#{anchor}" if anchor else "")
            link = nodes.reference("", "", internal=True, refuri=address, classes=["lib-link"])
            literal.replace_self(link)
            link.append(literal)


def state_of(app) -> SphinxCodeAutoLink:
    """What sphinx-codeautolink keeps during a build."""
    owners = (getattr(listener.handler, "__self__", None) for listener in app.events.listeners["env-updated"])
    return next(owner for owner in owners if isinstance(owner, SphinxCodeAutoLink))


def recall(app, env) -> None:
    """After reading: what the last build found in documents whose code and headings are the same need not be found again."""
    state = state_of(app)
    path = state.cache.cache_dir / state.cache.cache_filename
    state.before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for doc, found in list(state.cache.transforms.items()):
        known = [(one["source"], one["example"]["ref_id"]) for one in state.before.get(doc, [])]
        if found and [(one.source, one.example.ref_id) for one in found] == known:
            del state.cache.transforms[doc]


def restore(app, env) -> list[str]:
    """Then: give codeautolink the links of other documents back; the reference is written anew if who uses what has changed."""
    state, again = state_of(app), False
    for doc, found in state.before.items():
        if doc in state.cache.transforms or doc not in env.found_docs:
            now = state.cache.transforms.get(doc, [])
            again |= {(name["resolved_location"], one["example"]["ref_id"]) for one in found for name in one["names"]} != {
                (name.resolved_location, one.example.ref_id) for one in now for name in one.names
            }
            continue
        state.cache.transforms[doc] = kept = []
        for one in found:
            names = [Name(**name) for name in one["names"] if name["resolved_location"] in state.inventory]
            kept.append(SourceTransform(**one | {"names": names, "example": CodeExample(**one["example"])}))
            for name in names:
                state.code_refs.setdefault(name.resolved_location, []).append(kept[-1].example)
    return [name for name in env.found_docs if name.startswith(LIBRARY)] if again else []


def note_written(app, pagename, templatename, context, doctree) -> None:
    """Every page that is written gets its links, whatever made Sphinx write it; who uses what is said in plain words."""
    if doctree is not None:
        state_of(app).outdated_docs.add(str(Path(pagename)))
        context["body"] = context["body"].replace("<summary>Expand for references to ", "<summary>Pages that use ")


class Analyser(CodeBlockAnalyser):
    """codeautolink's reader of code, which knows that boxes have titles, too, and that an exercise is a section without one."""

    def visit_title(self, node) -> None:
        if isinstance(node.parent, nodes.section):
            super().visit_title(node)

    def depart_section(self, node) -> None:
        if any(isinstance(child, nodes.title) for child in node.children):
            super().depart_section(node)


def setup(app) -> None:
    """What the book's Sphinx extension calls."""
    extension.CodeBlockAnalyser = Analyser
    app.setup_extension("sphinx_codeautolink")
    app.connect("autodoc-process-docstring", docstring, priority=400)  # before codeautolink adds to it
    app.connect("autodoc-process-signature", signature)
    app.connect("env-updated", recall, priority=400)  # before and after codeautolink makes its references
    app.connect("env-updated", restore, priority=600)
    app.connect("doctree-resolved", link_literals)
    app.connect("html-page-context", note_written)
