"""For others to build on: all verdicts as CSV and JSON, and every page as a notebook in which the numbers stand in the text."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

from lib import claims
from lib.book import pages, verdicts
from lib.files import read_json, write_whole

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
    found = table(root)
    write_whole(folder / "verdicts.csv", as_csv(found))
    write_whole(folder / "verdicts.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    for page in pages.all_pages(root):
        target = Path(app.outdir) / "_sources" / f"book/{page.name}.ipynb"
        made = readable(page)
        if target.exists() and target.stat().st_size != made.stat().st_size:
            shutil.copyfile(made, target)


# --- notebooks -------------------------------------------------------------------------------------------------------

FENCE = re.compile(r"(`{3,}|:{3,})(?:\{([\w:-]+)\} *(.*))?$")
ROLE = re.compile(r"(?<!`)\{([\w:-]+)\}`([^`]+)`")
LABEL = re.compile(r"(?<=\$\$) \(([\w:-]+)\)$", re.M)
BOXES = ("claims", "parameters", "recorded")
WORDS = {"answer": "The short answer", "explorer": "To play with, in the rendered book", "glance": "At a glance"}


def readable(page: pages.Page) -> Path:
    """A copy of a page's notebook under _build for any Jupyter to show; written only when it changes: its page depends on it.

    It is not even looked at when it is newer than the notebook and this module.
    """
    target = page.root / "_build" / "readable" / f"{page.name}.ipynb"
    if target.exists() and target.stat().st_mtime > max(path.stat().st_mtime for path in (page.notebook, Path(__file__))):
        return target
    notebook = read_json(page.notebook)
    glued = numbers(notebook)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = plain(pages.text(cell), glued)
    content = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    if not target.exists() or target.read_text(encoding="utf-8") != content:
        write_whole(target, content)
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
        for label in LABEL.findall(pages.text(cell)) if cell["cell_type"] == "markdown" else ():
            equations += 1
            found[label] = f"({equations})"
    return found


def plain(text: str, glued: dict[str, str]) -> str:
    """MyST as Markdown that every Jupyter shows: numbers in place of roles, titles in place of directives."""
    done, inside = [], []  # `inside` has the closing line of each directive that is open
    for line in text.split("\n"):
        fence = FENCE.match(line)
        if fence and fence[2] in ("code-block", "code", "math"):
            done.append(f"{fence[1]}{fence[3]}" if fence[2] != "math" else "$$")
            inside.append("$$" if fence[2] == "math" else fence[1])
        elif fence and fence[2]:
            title = WORDS.get(fence[2]) or fence[3] or fence[2].rpartition(":")[2].replace("-", " ").capitalize()
            done += [f"*(The rendered book shows the page's {fence[2]} here.)*" if fence[2] in BOXES else f"**{title}.**", ""]
            inside.append("")
        elif fence and inside:
            done.append(inside.pop())
        elif option := re.match(r":([\w-]+): *(.*)", line) if inside else None:
            done += [f"**{option[1].capitalize()}** {option[2]}", ""] if option[1] in ("paper", "remakes") else []
        elif not re.fullmatch(r"\([\w:-]+\)=", line):  # a target
            done.append(line)
    text = LABEL.sub(lambda found: f" {glued.get(found[1], '')}", "\n".join(done))
    return ROLE.sub(lambda found: role(found[1], found[2], glued), text)


def role(name: str, content: str, glued: dict[str, str]) -> str:
    """What a role shows: a number, a key of the bibliography, a title, a formula."""
    words, target = re.fullmatch(r"\s*(.*?)\s*(<.*>)?", content, re.S).groups()
    if name == "math" or name.startswith("cite"):
        return f"${content}$" if name == "math" else f"[{content}]"
    return words if target else glued.get(words, "–" if name.startswith("glue") else words.rpartition("/")[2].replace("_", " "))
