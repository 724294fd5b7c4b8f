"""For others to build on: all verdicts as CSV and JSON, and every page as a notebook in which the book's boxes are plain text."""

import copy
import csv
import io
import json
import re
import shutil
from pathlib import Path

from lib import claims
from lib.book import pages, parameters, verdicts
from lib.files import write_whole

FIELDS = (
    "id", "paper", "page", "statement", "author", "rank", "where", "figure", "table", "equation", "paper_value", "bound",
    "tolerance", "reason", "measured", "interval", "verdict", "laptop_verdict", "note", "reply", "run", "fingerprint",
)  # fmt: skip


def table(root: Path) -> list[dict]:
    """All rows of the book, a mapping of `FIELDS` each, in reading order."""
    book, found, prints, kept = root / "book", [], {}, {}
    for claim, record in verdicts.rows(book):
        if claim.page not in prints:
            racing = (pages.stored(pages.Page(claim.page, root)) or {"metadata": {}})["metadata"].get("racing", {})
            prints[claim.page] = pages.digest(json.dumps(racing.get("fingerprint", {}), sort_keys=True))
            kept[claim.page] = claims.recorded_in(claim.page, book)
        row = {
            "paper": claim.folder,
            "statement": claim.claim,
            "paper_value": claim.paper,
            "bound": claim.expect,
            "measured": record["measured"] if record else None,
            "interval": record.get("interval") if record else None,  # over seeds: mean, low, high (95 %), spread, seeds
            "verdict": verdicts.verdict(claim, record),
            "laptop_verdict": verdicts.on_laptop(claim, record),  # where a recorded run decided otherwise
            "run": kept[claim.page][claim.id]["run"] if claim.finding and claim.id in kept[claim.page] else "book",
            "fingerprint": prints[claim.page],  # of the code, data and pinned versions that the page ran with
        }
        found.append({name: row[name] if name in row else getattr(claim, name) for name in FIELDS})
    return found


def as_csv(found: list[dict]) -> str:
    """The table as CSV; what has parts is JSON in its cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for row in found:
        writer.writerow({name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in row.items()})
    return text.getvalue()


def write(app, error) -> None:
    """Sphinx, after a build: verdicts.csv and verdicts.json beside the scoreboard, readable notebooks beside the pages."""
    root, folder = Path(app.srcdir), Path(app.outdir) / "book"
    if error or app.builder.name != "html" or not folder.exists():
        return
    sources = [Path(__file__), *(path for kind in ("claims.yml", "*.ipynb") for path in root.glob(f"book/*/{kind}"))]
    target = folder / "verdicts.json"
    if not target.exists() or target.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        found = table(root)
        write_whole(folder / "verdicts.csv", as_csv(found))
        write_whole(target, json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    for page in pages.all_pages(root):
        target = Path(app.outdir) / "_sources" / f"book/{page.name}.ipynb"
        made = readable(page)
        if target.exists() and target.stat().st_size != made.stat().st_size:
            shutil.copyfile(made, target)


# --- notebooks -------------------------------------------------------------------------------------------------------

OPEN = re.compile(r"^(?P<fence>`{3,}|:{3,})\{(?P<name>[\w:-]+)\} *(?P<title>.*)$")
ROLE = re.compile(r"(?<!`)\{(?P<name>[\w:-]+)\}`(?P<content>[^`]+)`")


def readable(page: pages.Page) -> Path:
    """A copy of a page's notebook under _build, made again when the page or its claims have changed, for any Jupyter to show."""
    target, book = page.root / "_build" / "readable" / f"{page.name}.ipynb", page.root / "book"
    sources = [path for path in (page.notebook, page.markdown.parent / "claims.yml", Path(__file__)) if path.exists()]
    if not target.exists() or target.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        notebook = copy.deepcopy(pages.stored(page) or pages.source(page))
        glued, rows = (
            numbers(notebook),
            [row for row in verdicts.rows(book, [page.name.split("/")[0]]) if row[0].page == page.name],
        )
        said = [f"1. {claim.claim} ({claim.where}): **{claims.word(claim, verdicts.verdict(claim, r))}**" for claim, r in rows]
        table = [f"| `{p.name}` | `{p.default!r}` | {p.help} |" for p in parameters.of_page(page).values()]
        boxes = {"claims": said, "parameters": ["| parameter | book | meaning |", "|---|---|---|", *table]}
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = plain(pages.text(cell), glued, {name: "\n".join(lines) for name, lines in boxes.items()})
        write_whole(target, json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    return target


def numbers(notebook: dict) -> dict[str, str]:
    """What the cells of a notebook glued, and the numbers of its figures and equations, by name."""
    found, equations, figures = {}, 0, 0
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            words = [value for kind, value in output.get("data", {}).items() if kind.endswith("text/plain")] if name else []
            found |= {name: "".join(words[0]).strip("'\"")} if words else {}
        if figure := cell["metadata"].get("mystnb", {}).get("figure", {}).get("name"):
            figures += 1
            found[figure] = f"Figure {figures}"
        for label in re.findall(r"(?<=\$\$) \(([\w:-]+)\)$", pages.text(cell), re.M) if cell["cell_type"] == "markdown" else ():
            equations += 1
            found[label] = f"({equations})"
    return found


def plain(text: str, glued: dict[str, str], boxes: dict[str, str]) -> str:
    """MyST as Markdown that every Jupyter shows: numbers in place of roles, directives as quotations; `boxes` are our own."""
    lines, done, i = text.split("\n"), [], 0
    while i < len(lines):
        start = OPEN.match(lines[i])
        if not start:
            done.append(lines[i])
            i += 1
            continue
        fence = start["fence"]
        closing = (n for n in range(i + 1, len(lines)) if re.fullmatch(rf"{fence[0]}{{{len(fence)},}}", lines[n].strip()))
        end = next(closing, len(lines))
        options = [line for line in lines[i + 1 : end] if re.match(r":[\w-]+:", line)]
        body = plain("\n".join(line for line in lines[i + 1 : end] if line not in options).strip(), glued, boxes)
        name, title = start["name"], start["title"].strip()
        if name == "glance":
            body = " · ".join("**{}** {}".format(*re.match(r":([\w-]+): *(.*)", line).groups()) for line in options)
        elif name == "math":
            body = f"$$\n{body}\n$$"
        elif name in ("code-block", "code"):
            body = f"```{title}\n{body}\n```"
        elif not body and name not in boxes:
            body = f"*(The book shows its {name.replace('-', ' ')} here.)*"
        elif body:
            words = {"answer": "The short answer", "explorer": "To play with, in the rendered book"}.get(name)
            words = words or title or name.rpartition(":")[2].capitalize()
            body = body if name == "div" else f"**{words}.** {body}"
        quoted = name not in ("math", "code-block", "code") and name not in boxes
        done.append("\n".join(f"> {line}".rstrip() for line in body.split("\n")) if quoted else boxes.get(name, body))
        i = end + 1
    text = "\n".join(done)
    text = re.sub(r"^\([\w:-]+\)=\n", "", text, flags=re.M)  # targets
    text = re.sub(r"(?<=\$\$) \(([\w:-]+)\)$", lambda found: f" {glued.get(found[1], '')}", text, flags=re.M)
    return ROLE.sub(lambda found: role(found["name"], found["content"], glued), text)


def role(name: str, content: str, glued: dict[str, str]) -> str:
    """What a role shows: a number, a key of the bibliography, a title, a formula."""
    words, _, target = content.partition("<")
    words, target = " ".join(words.split()), target.removesuffix(">").strip()
    if name == "math":
        return f"${content}$"
    if name.startswith("cite"):
        return f"[{content}]"
    if target:
        return words
    return glued.get(words, "–" if name.startswith("glue") else words.rpartition("/")[2].replace("_", " "))
