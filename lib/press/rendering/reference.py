"""The reference of `lib`: what is public, where it stands in the book, and which pages use it.

Everything is read from the sources, nothing is imported: a room's page is its door's text, then every public function and
class of its modules with signature, docstring and the pages that call it. Names of functions in prose and code of the whole
book become links to it.
"""

import ast
import functools
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

from lib import ROOMS
from lib.press import pages


@dataclass(frozen=True)
class Public:
    """A public function or class of the library."""

    module: str  # "lib.gated.race"
    name: str  # "reduce", or "Network.count_paths" for a method
    kind: str  # "function", "class" or "method"
    signature: str
    doc: str

    @property
    def anchor(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def room(self) -> str:
        return self.module.split(".")[1]


def modules(room: str, root: Path) -> dict[str, Path]:
    """The modules of a room, sub-rooms included: dotted name -> file, in the order of the door."""
    order = [*door(room, root)]
    files = [p for p in (root / "lib" / room).glob("**/*.py") if not p.stem.startswith("_")]
    first = {p: p.relative_to(root / "lib" / room).parts[0].removesuffix(".py") for p in files}
    files.sort(key=lambda p: (order.index(first[p]) if first[p] in order else len(order), p))
    return {p.relative_to(root).with_suffix("").as_posix().replace("/", "."): p for p in files}


@functools.lru_cache(maxsize=256)
def _tree(path: Path, changed: int) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def tree(path: Path) -> ast.Module:
    """The syntax tree of a file, read again only when it has changed."""
    return _tree(path, path.stat().st_mtime_ns)


def public(module: str, path: Path) -> list[Public]:
    """The public functions and classes of a module with the classes' public methods, in the order of the source."""
    found = []
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            found += _entries(module, node)
    return found


def _entries(module: str, node: ast.FunctionDef | ast.ClassDef) -> list[Public]:
    doc = ast.get_docstring(node) or ""
    if isinstance(node, ast.FunctionDef):
        return [Public(module, node.name, "function", signature(node), doc)]
    methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
    start = next((signature(item, method=True) for item in methods if item.name == "__init__"), "")
    if not start and not any("Error" in ast.unparse(base) for base in node.bases):
        fields = [item for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)]
        start = "(" + ", ".join(ast.unparse(item) for item in fields) + ")" if fields else ""
    entries = [Public(module, node.name, "class", start, doc)]
    for item in methods:
        if not item.name.startswith("_") and (text := ast.get_docstring(item)):
            entries.append(Public(module, f"{node.name}.{item.name}", "method", signature(item, method=True), text))
    return entries


def signature(node: ast.FunctionDef, method: bool = False) -> str:
    """The arguments of a function as its source has them; `self` is left out."""
    arguments = ast.parse(ast.unparse(node.args).join(("def f(", "): ..."))).body[0].args  # a copy that may be changed
    if method and arguments.args and not any(ast.unparse(d) == "staticmethod" for d in node.decorator_list):
        arguments.args = arguments.args[1:]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    return f"({ast.unparse(arguments)}){returns}"


@functools.lru_cache(maxsize=8)
def _index(root: Path, stamp: int) -> dict[str, Public]:
    index: dict[str, Public] = {}
    for room in ROOMS:
        for module, path in modules(room, root).items():
            for entry in public(module, path):
                index.setdefault(f"{module}.{entry.name}", entry)
                index.setdefault(f"{module.rpartition('.')[2]}.{entry.name}", entry)
    doors = [path.parent.relative_to(root / "lib").as_posix() for path in sorted((root / "lib").glob("*/*/__init__.py"))]
    inner = [room for room in doors if not room.startswith("press/")]  # whose doors show no names
    for room in (*inner, *ROOMS):  # what stands at a door wins over a module of another room with the same name
        inside = room.replace("/", ".")
        for module, names in door(room, root).items():
            for name in names:
                full = f"lib.{inside}.{module}.{name}"
                if full in index:
                    index[f"{inside.rpartition('.')[2]}.{name}"] = index[f"lib.{inside}.{name}"] = index[full]
    return index


def index(root: Path) -> dict[str, Public]:
    """How prose and pages may call a public name ("gated.flow", "race.reduce", "lib.gated.race.reduce") -> what it is."""
    newest = max(path.stat().st_mtime_ns for path in (root / "lib").glob("**/*.py"))
    return _index(root, newest)


def door(room: str, root: Path) -> dict[str, tuple[str, ...]]:
    """{module: names that the room shows of it}, from the imports in its `__init__`, or from the call of `lib.door` there."""
    found: dict[str, tuple[str, ...]] = {}
    for node in ast.walk(tree(root / "lib" / room / "__init__.py")):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "door":
            return ast.literal_eval(node.args[1])
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"lib.{room}"):
            names = tuple(item.name for item in node.names)
            found |= (
                {name: found.get(name, ()) for name in names}
                if node.module == f"lib.{room}"
                else {node.module.split(".")[-1]: names}
            )
    return found


def aliases(code: str) -> dict[str, str]:
    """What the names that a page imports from `lib` stand for: {"race": "lib.gated.race", "crossing": "lib.linear.crossing"}."""
    found = {}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lib":
            found |= {item.asname or item.name: f"{node.module}.{item.name}" for item in node.names}
    return found


def page_code(page: pages.Page) -> str:
    """The code of a page as one text, without IPython's own commands."""
    cells = re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```", page.markdown.read_text(encoding="utf-8"), re.S | re.M)
    text = []
    for cell in cells:
        cell = re.sub(r"\A---\n.*?^---\n", "", cell, flags=re.S | re.M)
        text += [line for line in cell.splitlines() if not line.startswith((":", "%", "!"))]
    return "\n".join(text)


@functools.lru_cache(maxsize=256)
def _names_used(page: pages.Page, changed: int) -> frozenset[str]:
    code = page_code(page)
    short, used = aliases(code), set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in short:
            used.add(f"{short[node.value.id]}.{node.attr}")
        elif isinstance(node, ast.Name) and node.id in short:
            used.add(short[node.id])
    return frozenset(used)


def used_by(root: Path) -> dict[str, list[str]]:
    """Anchor of every public name -> the pages whose code calls it."""
    known, found = index(root), {}
    for page in pages.every(root):
        for name in sorted(_names_used(page, page.markdown.stat().st_mtime_ns)):
            if name in known:
                found.setdefault(known[name].anchor, []).append(page.name)
    return found


# --- MyST ------------------------------------------------------------------------------------------------------------


def as_myst(doc: str) -> str:
    """A docstring as MyST: indented blocks become code, everything that Markdown would take for markup is text."""
    blocks: list[list[str]] = []  # runs of indented paragraphs, and single other ones
    for paragraph in re.split(r"\n\s*\n", doc.strip("\n")):
        code = all(line.startswith("    ") for line in paragraph.splitlines())
        if code and blocks and blocks[-1][0].startswith("    "):
            blocks[-1].append(paragraph)
        else:
            blocks.append([paragraph])
    return "\n\n".join(fenced(block) if block[0].startswith("    ") else escaped(block[0]) for block in blocks)


def fenced(block: list[str]) -> str:
    """Indented paragraphs as a block of code, coloured as Python if that is what it is."""
    code = textwrap.dedent("\n\n".join(block))
    try:
        ast.parse(code)
        language = "python"
    except SyntaxError:
        language = "text"
    return f"```{language}\n{code}\n```"


MARKUP = re.compile(r"((?<!\w)\*[^\s*][^*]*[^\s*]\*(?!\w))|[\\*_$\[\]{}<>#~|^]")  # *emphasis* stays, the rest becomes text


def escaped(paragraph: str) -> str:
    """A paragraph with Markdown's own characters made harmless outside of `code`."""
    parts = re.split(r"(`[^`]*`)", "\n".join(line.strip() for line in paragraph.splitlines()))
    plain = [MARKUP.sub(lambda m: m[1] or f"\\{m[0]}", part) if i % 2 == 0 else part for i, part in enumerate(parts)]
    return re.sub(r"^(\d+)\.", r"\1\\.", re.sub(r"^([-+=])", r"\\\1", "".join(plain), flags=re.M), flags=re.M)


def door_text(room: str, root: Path) -> str:
    """What a room says at its door."""
    return as_myst(ast.get_docstring(tree(root / "lib" / room / "__init__.py")))


def room_text(room: str, root: Path, link) -> str:
    """The modules of a room with all that is public in them; `link(text, page)` makes the links to pages."""
    callers, text = used_by(root), []
    for module, path in modules(room, root).items():
        at_door = door(room, root).get(path.stem, ())
        text.append(f"## `{module.removeprefix('lib.')}`\n\n{as_myst(ast.get_docstring(tree(path)) or '')}")
        if at_door:
            text.append(f"At the door: {', '.join(f'`{room}.{name}`' for name in at_door)}.")
        for entry in public(module, path):
            uses = [link(page, page) for page in callers.get(entry.anchor, ())]
            used = f"\n\n*Used by* {', '.join(uses)}" if uses else ""
            head = f"````{{py:{entry.kind}}} {entry.name}{entry.signature}\n:module: {module}\n"
            text.append(f"{head}\n{as_myst(entry.doc)}{used}\n````")
    return "\n\n".join(text)


# --- links from everywhere -------------------------------------------------------------------------------------------


def address(entry: Public, app, docname: str) -> str:
    """The address of a public name in the reference, as seen from a document."""
    return f"{app.builder.get_relative_uri(docname, f'book/library/{entry.room}')}#{entry.anchor}"


def link_literals(app, doctree, docname: str) -> None:
    """`race.reduce` in prose becomes a link to the reference; `lib.gated` to the room's page."""
    from docutils import nodes

    known = index(Path(app.srcdir))
    for literal in list(doctree.findall(nodes.literal)):
        name = literal.astext().strip().removesuffix("()")
        room = name.removeprefix("lib.") if name.startswith("lib.") else ""
        if isinstance(literal.parent, nodes.reference):
            continue
        if name in known and "." in name:
            target = address(known[name], app, docname)
        elif room in ROOMS:
            target = app.builder.get_relative_uri(docname, f"book/library/{room}")
        else:
            continue
        link = nodes.reference("", "", internal=True, refuri=target, classes=["lib-link"])
        literal.replace_self(link)
        link.append(literal)


CALL = re.compile(r'<span class="n">(\w+)</span><span class="o">\.</span><span class="n">(\w+)</span>')


def link_code(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """`race.reduce` in a page's code cells becomes a link to the reference."""
    page = pages.Page(pagename.removeprefix("book/"), Path(app.srcdir))
    if "body" not in context or not page.markdown.exists() or not page.notebook.exists():
        return
    known, short = index(page.root), aliases(page_code(page))

    def link(match: re.Match) -> str:
        entry = known.get(f"{short.get(match[1])}.{match[2]}")
        return f'<a class="lib-link" href="{address(entry, app, pagename)}">{match[0]}</a>' if entry else match[0]

    context["body"] = CALL.sub(link, context["body"])


def find_source(app, module: str):
    """The source of a module for `sphinx.ext.viewcode`, read from its file instead of imported."""
    from sphinx.pycode import ModuleAnalyzer

    path = Path(app.srcdir, *module.split(".")).with_suffix(".py")
    if not path.exists():
        return None
    analyzer = ModuleAnalyzer.for_file(path, module)
    analyzer.find_tags()
    return analyzer.code, analyzer.tags
