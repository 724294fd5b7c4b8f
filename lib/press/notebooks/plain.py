"""The book's own directives and roles as plain Markdown, for notebooks that are opened or downloaded, and back again.

`dress` puts what the book would show in their place and keeps the directive itself in a comment, which no Jupyter displays;
`undress` takes what was put there out again. A page may thus be read and edited in Jupyter, and its .md stays what it was.
"""

import copy
import json
import re
import shutil
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from lib.press import claims, files, pages, parameters
from lib.press.errors import Problem
from lib.press.verdicts import rows, standing

OPEN = re.compile(r"^(?P<fence>`{3,}|:{3,})\{(?P<name>[\w:-]+)\} *(?P<title>.*)$")
ROLE = re.compile(r"(?<!`)\{(?P<name>[\w:-]+)\}`(?P<content>[^`]+)`")
LABEL = re.compile(r"(?<=\$\$) \((?P<label>[\w:-]+)\)$", re.M)
TARGET = re.compile(r"^\((?P<label>[\w:-]+)\)=$", re.M)
DRESSED = re.compile(r"(?P<before>[^\n]?)<!-- book: (?P<source>.*?) -->\n.*?<!-- /book -->[ \t]*(?P<after>[^\n]?)", re.S)
SHOWN = re.compile(r"<!--([\w:-]+) ([^`]*?)-->.*?<!---->", re.S)
TITLES = {
    "answer": "The short answer",
    "prf:theorem": "Theorem",
    "prf:lemma": "Lemma",
    "prf:proposition": "Proposition",
}
PROSE = ("note", "warning", "tip", "important", "seealso", "admonition", "dropdown", "div", "margin")


@dataclass
class Context:
    """What directives of one page say: its claims, parameters, the numbers that its notebook glued."""

    page: pages.Page
    notebook: dict
    numbers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        """Number the page's equations and figures, and note what its cells glued."""
        equations = figures = 0
        for cell in self.notebook["cells"]:
            for output in cell.get("outputs", []):
                name = output.get("metadata", {}).get("scrapbook", {}).get("name")
                words = next((v for k, v in output.get("data", {}).items() if k.endswith("text/plain")), None) if name else None
                if words is not None:
                    self.numbers[name] = "".join(words).strip("'\"")
            if cell["cell_type"] == "markdown":
                for label in LABEL.findall(undress(pages.text(cell))):
                    equations += 1
                    self.numbers[label] = f"({equations})"
            elif figure := cell["metadata"].get("mystnb", {}).get("figure", {}).get("name"):
                figures += 1
                self.numbers[figure] = f"Figure {figures}"

    @property
    def book(self) -> Path:
        return self.page.root / "book"

    @cached_property
    def measured(self) -> dict[str, dict]:
        return claims.records(self.notebook)


def dress(text: str, context: Context) -> str:
    """A cell's Markdown with every directive and role shown as plain Markdown; what it was stands in comments."""
    lines, done, i = text.split("\n"), [], 0
    while i < len(lines):
        start = OPEN.match(lines[i])
        if not start:
            done.append(lines[i])
            i += 1
            continue
        end = closing(lines, i, start["fence"])
        source = "\n".join(lines[i : end + 1])
        shown = directive(start["name"], start["title"].strip(), lines[i + 1 : end], context)
        done.append(source if "-->" in source else f"<!-- book: {source} -->\n\n{shown.strip()}\n\n<!-- /book -->")
        i = end + 1
    text = "\n".join(done)
    pieces = re.split(r"(<!-- book: .*?<!-- /book -->|^```.*?^```$)", text, flags=re.S | re.M)
    return "".join(piece if n % 2 else inline(piece, context) for n, piece in enumerate(pieces))


def undress(text: str) -> str:
    """The Markdown that `dress` had before it; edits beside what was put there stay."""

    def whole(found: re.Match) -> str:  # what was written on the same line gets lines of its own
        before, after = (found["before"], found["after"])
        return (f"{before}\n\n" if before else "") + found["source"] + (f"\n\n{after}" if after else "")

    def back(found: re.Match) -> str:
        name, content = found.groups()
        return {"label": f"({content})", "target": f"({content})="}.get(name, f"{{{name}}}`{content}`")

    return SHOWN.sub(back, DRESSED.sub(whole, text))


def closing(lines: list[str], start: int, fence: str) -> int:
    """The line that closes a fence, or the last one."""
    ends = (n for n in range(start + 1, len(lines)) if re.fullmatch(rf"{re.escape(fence[0])}{{{len(fence)},}}", lines[n].strip()))
    return next(ends, len(lines) - 1)


def notebook(page: pages.Page, executed: dict) -> dict:
    """A copy of a notebook whose prose every Jupyter shows: directives and roles as plain Markdown."""
    made = copy.deepcopy(executed)
    context = Context(page, executed)
    for cell in made["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = dress(undress(pages.text(cell)), context)
    return made


def natural(made: dict) -> dict:
    """The same notebook with the directives themselves, in place."""
    for cell in made["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = undress(pages.text(cell))
    return made


def offer(app, error) -> None:
    """After a build: the notebooks that the book offers for download are readable ones (`undress` brings them back)."""
    if error or app.builder.name != "html":
        return
    known = {page.notebook.resolve(): page for page in pages.every(Path(app.srcdir))}
    targets = [(Path(app.srcdir, name), Path(app.outdir, "_downloads", to)) for name, (_, to) in app.env.dlfiles.items()]
    targets += [(path, Path(app.outdir, "_sources", path.relative_to(app.srcdir))) for path in known]
    for source, target in targets:
        if source.resolve() in known and target.exists():
            shutil.copyfile(readable(known[source.resolve()]), target)


def readable(page: pages.Page) -> Path:
    """The file of a page's readable notebook under `_build`, made again when anything has changed that it may show."""
    from lib.press.bindery import freshness  # imported late: it stands above the notebooks

    target, mark = (page.root / "_build" / "readable" / f"{page.name}.{kind}" for kind in ("ipynb", "key"))
    whole = freshness.stamp(page.root, freshness.WHOLE)
    parts = [page.notebook.read_bytes(), Path(__file__).read_bytes()]
    parts += [path.read_bytes() for path in (whole, page.root / "book" / "references.bib") if path.exists()]
    key = pages.digest(b"\0".join(parts))
    if not (target.exists() and mark.exists() and mark.read_text(encoding="utf-8") == key):
        made = notebook(page, files.read_json(page.notebook))
        mark.unlink(missing_ok=True)
        files.write_whole(target, json.dumps(made, indent=1, ensure_ascii=False) + "\n")
        files.write_whole(mark, key)
    return target


# --- roles -----------------------------------------------------------------------------------------------------------


def inline(text: str, context: Context, marked: bool = True) -> str:
    """Roles, labels of equations and targets as plain Markdown; if `marked`, with comments from which they come back."""

    def mark(name: str, content: str, shown: str) -> str:
        return f"<!--{name} {content}-->{shown}<!---->" if marked else shown

    text = TARGET.sub(lambda found: mark("target", found["label"], ""), text)
    text = LABEL.sub(lambda found: " " + mark("label", found["label"], context.numbers.get(found["label"], "")), text)
    return ROLE.sub(lambda found: mark(found["name"], found["content"], role(found["name"], found["content"], context)), text)


def role(name: str, content: str, context: Context) -> str:
    """What a role shows: a number, a citation, a title, a formula."""
    words, _, target = content.partition("<")
    words, target = " ".join(words.split()), target.removesuffix(">").strip() or content.strip()
    if name.startswith("glue"):
        return context.numbers.get(content.strip(), "–")
    if name.startswith("cite"):
        return cited(content, context.book / "references.bib", parentheses=name != "cite:t")
    if name == "math":
        return f"${content}$"
    if name in ("eq", "numref", "ref", "prf:ref"):
        return words if "<" in content else context.numbers.get(target, words)
    if name == "doc":
        return words if "<" in content else title_of(context.page, target)
    return words


def title_of(page: pages.Page, target: str) -> str:
    """The title of another page of the book, named as a `{doc}` role does."""
    book = page.root / "book"
    path = (book.parent / target[1:] if target.startswith("/") else page.markdown.parent / target).resolve()
    source = path if path.suffix in (".md", ".ipynb") else path.with_name(path.name + ".md")
    source = source.with_suffix(".md")
    heading = re.search(r"^# (.+)$", files.read_text(source), re.M) if source.is_relative_to(book) and source.exists() else None
    return heading[1] if heading else path.stem.replace("_", " ")


@lru_cache(maxsize=4)
def _bibliography(path: Path, changed: int) -> dict:
    from pybtex.database import parse_file

    return dict(parse_file(str(path)).entries)


def cited(keys: str, path: Path, parentheses: bool = True) -> str:
    """Authors and years of some keys of a bibliography: '(Saxe et al., 2022)'."""
    known = _bibliography(path, path.stat().st_mtime_ns) if path.exists() else {}
    found = []
    for key in (key.strip() for key in keys.split(",")):
        entry = known.get(key)
        names = [" ".join(person.last_names) for person in entry.persons.get("author", [])] if entry else []
        who = names[0] + (f" and {names[1]}" if len(names) == 2 else " et al." if len(names) > 2 else "") if names else key
        found.append(f"{who}, {entry.fields['year']}" if entry and "year" in entry.fields else who)
    return f"({'; '.join(found)})" if parentheses else "; ".join(found)


# --- directives ------------------------------------------------------------------------------------------------------


def directive(name: str, title: str, body: list[str], context: Context) -> str:
    """What a directive shows, as plain Markdown."""
    options = {}
    while body and (option := re.fullmatch(r":([\w-]+): *(.*)", body[0].strip())):
        options[option[1]] = option[2]
        body = body[1:]
    text = "\n".join(body).strip()
    try:
        known = {"glance": glance, "claims": claim_list, "parameters": parameter_table, "recorded": recorded_runs}
        if name in known:
            return known[name](options, context)
    except Problem as problem:  # claims.yml is being edited, say: the page can be read all the same
        return f"*({problem})*"
    if name == "math":
        return f"$$\n{text}\n$$"
    if name in ("figure", "image"):
        return f"*{inline(text, context, marked=False) or options.get('alt', title)}*"
    if name in ("code-block", "code"):
        return f"```{title}\n{text}\n```"
    if name == "answer":
        shown = context.numbers.get(title)
        title = f"{TITLES[name]} ({shown} shows it)." if shown else f"{TITLES[name]}."
    elif name in TITLES:
        title = f"{TITLES[name]} ({title})." if title else f"{TITLES[name]}."
    elif name == "explorer" and text:
        title = "Something to play with, in the rendered book."
    elif name not in PROSE and not text:
        return f"*(The book shows its {name.replace('-', ' ')} here.)*"
    else:
        title = title or ("" if name == "div" else f"{name.capitalize()}.")
    inner = undressed_body(text, context)
    return quoted(f"**{inline(title, context, marked=False)}** {inner}" if title and name != "div" else inner)


def undressed_body(text: str, context: Context) -> str:
    """The body of a directive as plain Markdown, without comments: what is inside is kept in the outer one's."""
    return re.sub(r"<!--.*?-->\n*", "", dress(text, context), flags=re.S).strip()


def quoted(text: str) -> str:
    """A text as a quotation, line by line."""
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def glance(options: dict, context: Context) -> str:
    """The box that opens a page."""
    mine = claims.of_page(context.page.name, context.book)
    facts = [f"**{key.capitalize()}** {inline(value, context, marked=False)}" for key, value in options.items() if value]
    slips = len({claim.erratum for claim in mine.values() if claim.erratum})
    checked = sum(not claim.erratum and claim.rank != "check" for claim in mine.values())
    facts.append(f"**Checks** {checked} claim{'s' * (checked != 1)}" + (f", {slips} slip{'s' * (slips != 1)}" if slips else ""))
    return quoted(" · ".join(facts))


def claim_list(options: dict, context: Context) -> str:
    """The page's claims, each with its verdict."""
    whose = {"printed": "*As printed:* ", "corrected": "*Corrected:* ", "beyond": "*This book:* "}
    lines = []
    for claim in claims.of_page(context.page.name, context.book).values():
        verdict = rows.word(claim, standing.verdict(claim, context.measured.get(claim.id)))
        lines.append(f"1. {whose.get(claim.kind, '')}{claim.claim} ({claim.where}): **{verdict}**")
    return "\n".join(lines) or "This page checks no claim."


def parameter_table(options: dict, context: Context) -> str:
    """The page's parameters: the book's value and what they mean."""
    known = parameters.of_page(context.page.markdown)
    lines = [f"| `{p.name}` | `{p.default!r}` | {p.help} |".replace("\n", " ") for p in known.values()]
    return "\n".join(["| parameter | book | meaning |", "|---|---|---|", *lines])


def recorded_runs(options: dict, context: Context) -> str:
    """Recorded runs of the page: what they measured, and their verdicts."""
    mine = claims.of_page(context.page.name, context.book)
    blocks = []
    for row in claims.recorded_rows(context.page.name, context.book):
        lines = ["| claim | recorded | verdict there |", "|---|---|---|"]
        for name, record in row["results"].items():
            if name in mine:
                cells = (mine[name].claim, mine[name].show(record["measured"]), claims.judge(mine[name], record["measured"]))
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        blocks.append(f"Run `{row['run']}` of {row['finished'][:10]}, {row['seconds'] / 60:.0f} min:\n\n" + "\n".join(lines))
    return "\n\n".join(blocks) or "No run at a larger size is recorded yet."
