"""HTML files that open with a double click: everything is inside, nothing is asked of the network."""

import base64
import gzip
import html
import importlib.util
import re
from functools import lru_cache
from pathlib import Path

from lib.press import claims, files, pages
from lib.press.notebooks import plain
from lib.press.verdicts import rows
from lib.press.workbench import execution

STYLE = Path(__file__).with_name("style.css")
CONFIG = (
    'window.MathJax = {tex: {inlineMath: [["\\\\(", "\\\\)"]], displayMath: [["\\\\[", "\\\\]"]]}, svg: {fontCache: "global"}, '
    'options: {ignoreHtmlClass: "mathjax_ignore", processHtmlClass: "math", enableMenu: false}};'
)
START = """
(async () => {
  const packed = Uint8Array.from(atob(document.getElementById("mathjax").textContent.trim()), c => c.charCodeAt(0));
  const text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  const script = document.createElement("script");
  script.textContent = text;
  document.head.append(script);
})();
"""


@lru_cache(maxsize=1)
def mathjax() -> str:
    """The book's own MathJax, packed into one text; empty where it is not installed, and then formulas stay TeX."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    path = Path(spec.origin).parent / "static" / "mathjax" / "tex-svg.js" if spec and spec.origin else None
    return base64.b64encode(gzip.compress(path.read_bytes(), 6, mtime=0)).decode() if path and path.exists() else ""


def document(title: str, body: str) -> str:
    """A whole HTML file, with everything it needs inside; MathJax only if there is a formula."""
    scripts = ""
    if 'class="math' in body and mathjax():
        scripts = (
            f'<script>{CONFIG}</script>\n<script id="mathjax" type="text/plain">{mathjax()}</script>\n<script>{START}</script>'
        )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{html.escape(title)}</title>\n<style>{files.read_text(STYLE)}{colours()}</style>\n</head>\n"
        f'<body class="mathjax_ignore">\n<main>\n{body}\n</main>\n{scripts}\n</body>\n</html>\n'
    )


@lru_cache(maxsize=1)
def colours() -> str:
    """Colours of code, for light and dark screens."""
    from pygments.formatters import HtmlFormatter

    light, dark = (HtmlFormatter(style=style, nobackground=True).get_style_defs("pre.code") for style in ("default", "monokai"))
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}"


@lru_cache(maxsize=1)
def _markdown():
    from markdown_it import MarkdownIt
    from mdit_py_plugins.amsmath import amsmath_plugin
    from mdit_py_plugins.deflist import deflist_plugin
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def formula(content: str, options: dict) -> str:
        left, right = (r"\[", r"\]") if options["display_mode"] else (r"\(", r"\)")
        return f"{left}{html.escape(content.strip(), quote=False)}{right}"

    parser = MarkdownIt("commonmark", {"html": True}).enable("table").use(deflist_plugin)
    parser.use(dollarmath_plugin, renderer=formula, allow_labels=False)
    return parser.use(amsmath_plugin, renderer=lambda content: formula(content, {"display_mode": True}))


def prose(text: str, context: plain.Context | None = None) -> str:
    """Markdown as HTML; with a `context`, the book's directives and roles are shown and its equations numbered."""
    if context is not None:
        text = plain.undress(text)
        text = re.sub(
            r"\$\$(?P<tex>(?:(?!\$\$).)*?)\$\$ \((?P<label>[\w:-]+)\)$",
            lambda found: f"$${found['tex'].rstrip()}\n\\tag{{{context.numbers.get(found['label'], '').strip('()')}}}\n$$",
            text,
            flags=re.S | re.M,
        )
        text = re.sub(r"<!--.*?-->", "", plain.dress(text, context), flags=re.S)
    return _markdown().render(text)


def phrase(text: str, context: plain.Context | None = None) -> str:
    """One line of Markdown as HTML, without a paragraph around it."""
    return _markdown().renderInline(plain.inline(text, context, marked=False) if context else text)


def table(
    columns: list[str], found: list[list[str]], classes: list[str] | None = None, cells: dict[str, str] | None = None
) -> str:
    """Rows of HTML as a table that turns into cards on a phone; `cells` are classes of columns, `classes` of rows."""
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in columns)
    body = []
    for n, row in enumerate(found):
        parts = [
            f'<td data-name="{html.escape(name)}" class="{(cells or {}).get(name, "")}">{cell}</td>'
            for name, cell in zip(columns, row, strict=True)
        ]
        body.append(f'<tr class="{classes[n] if classes else ""}">{"".join(parts)}</tr>')
    return f'<table class="cards"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'


def claim(one: claims.Claim) -> str:
    """A claim with its id."""
    return f"{rows.to_html(one.claim)} <code>{html.escape(one.id)}</code>"


def verdict(word: str) -> str:
    """A verdict in its colour."""
    return f'<span class="verdict {word.replace(" ", "-")}">{html.escape(word)}</span>'


# --- a notebook as it was executed -----------------------------------------------------------------------------------


def page(notebook: dict, context: plain.Context) -> str:
    """The cells of an executed notebook as HTML: prose, code (folded where the book folds it), outputs with their captions."""
    return "\n".join(cell_html(cell, context) for cell in notebook["cells"])


def cell_html(cell: dict, context: plain.Context) -> str:
    """One cell."""
    if cell["cell_type"] != "code":
        return prose(pages.text(cell), context) if cell["cell_type"] == "markdown" else ""
    tags = cell["metadata"].get("tags", [])
    if "remove-cell" in tags:
        return ""
    code = highlighted(pages.text(cell)) if pages.text(cell).strip() and "remove-input" not in tags else ""
    if code and "hide-input" in tags:
        code = f"<details><summary>code</summary>{code}</details>"
    about = cell["metadata"].get("mystnb", {})
    return code + "\n".join(output_html(output, about, context) for output in cell.get("outputs", []))


def highlighted(code: str) -> str:
    """Python code in colours."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return f'<pre class="code">{highlight(code, PythonLexer(), HtmlFormatter(nowrap=True))}</pre>'


def output_html(output: dict, about: dict, context: plain.Context) -> str:
    """One output of a cell; `about` is what the cell's metadata say of its figure."""
    if output.get("output_type") == "stream":
        return f"<pre>{html.escape(joined(output.get('text', '')))}</pre>"
    if output.get("output_type") == "error":
        said = execution.plain_text(joined(output.get("traceback", []), "\n"))
        return f'<pre class="wrong">{html.escape(said)}</pre>'
    if "scrapbook" in output.get("metadata", {}):  # a number for the prose
        return ""
    data = output.get("data", {})
    if "image/png" in data or "image/svg+xml" in data:
        return figure(picture(data), about, context)
    if "text/html" in data:
        return f'<div class="scroll">{joined(data["text/html"])}</div>'
    return f"<pre>{html.escape(joined(data['text/plain']))}</pre>" if "text/plain" in data else ""


def joined(text: str | list[str], between: str = "") -> str:
    """A notebook's text, which may be kept in lines, in one piece."""
    return text if isinstance(text, str) else between.join(text)


def picture(data: dict) -> str:
    """The address of a picture that carries the picture itself."""
    if "image/png" in data:
        return f"data:image/png;base64,{joined(data['image/png']).strip()}"
    return "data:image/svg+xml;base64," + base64.b64encode(joined(data["image/svg+xml"]).encode()).decode()


def figure(address: str, about: dict, context: plain.Context | None = None) -> str:
    """A picture with its number, caption and alternative text."""
    said, name = about.get("figure", {}).get("caption", ""), about.get("figure", {}).get("name", "")
    number = context.numbers.get(name, "") if context else ""
    caption = f"<figcaption>{f'<b>{number}.</b> ' if number else ''}{phrase(said, context)}</figcaption>" if said else ""
    alt = html.escape(about.get("image", {}).get("alt", "") or said or "a figure of this page")
    identity = f' id="{html.escape(name)}"' if name else ""
    return f'<figure{identity}><img src="{address}" alt="{alt}">{caption}</figure>'
