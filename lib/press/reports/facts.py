"""What a run measured, beside what the book says: the same facts for the terminal, for HTML and for tables."""

import re
from dataclasses import dataclass
from pathlib import Path

from lib.press import claims, files, pages, parameters, schema, terminal
from lib.press.errors import PageError, RunError
from lib.press.verdicts import rows, standing
from lib.press.workbench import runs

BOOK = "book"


@dataclass(frozen=True)
class Run:
    """A run, or the book's own: its parameters, what it measured, and the executed notebook if there is one."""

    name: str
    page: pages.Page
    row: dict
    notebook: dict | None

    @property
    def results(self) -> dict[str, dict]:
        return self.row["results"]

    @property
    def title(self) -> str:
        return "the book" if self.name == BOOK else f"run {self.name[:8]}"


def of_book(page: pages.Page) -> Run:
    """The page as the book has it."""
    notebook = pages.stored(page)
    if notebook is None:
        raise PageError(f"{page.name} was never executed; `python -m lib execute {page.name}` does it")
    own = {name: p.default for name, p in parameters.of_page(page.markdown).items()}
    row = {"page": page.name, "run": BOOK, "parameters": own, "results": claims.records(notebook), "status": "finished"}
    return Run(BOOK, page, row | {"seconds": pages.seconds(page.root).get(page.name)}, notebook)


def find(name: str, root: Path | None = None) -> Run:
    """A run by its name, the beginning of it, or the name of one of its files; the recorded ones are found as well."""
    root = root or pages.ROOT
    short = Path(name).name.removesuffix(".html").removesuffix(".json").removesuffix(".ipynb")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", short):
        raise RunError(f"'{name}' is not the name of a run, which has letters and digits only")
    made = [path for path in runs.home(root).glob(f"**/{short}*.json") if runs.read_row(path)]
    kept = [path for path in (root / "book").glob(f"*/recorded/*-{short}*.json")] if not made else []
    found = {schema_row(path)["run"]: path for path in [*made, *kept]}
    if len(found) != 1:
        number = terminal.count(len(found), "run")
        raise RunError(f"'{name}' names {number}; give the name (or its beginning) of one, or 'book'")
    ((run, path),) = found.items()
    row = schema_row(path)
    notebook = path.with_suffix(".ipynb")
    read = schema.check_notebook(files.read_json(notebook, RunError), notebook.name, RunError) if notebook.exists() else None
    return Run(run, pages.find(row["page"], root), row, read)


def schema_row(path: Path) -> dict:
    """A row of a run, made here or recorded."""
    return schema.check_row(files.read_json(path, RunError), path.name, RunError)


def changed(page: pages.Page, settings: dict) -> dict[str, tuple]:
    """Parameters that are not the book's: name -> (the book's, this run's)."""
    known = parameters.of_page(page.markdown)
    return {
        name: (known[name].default, value) for name, value in settings.items() if name in known and value != known[name].default
    }


def words(settings: dict[str, tuple]) -> str:
    """Changed parameters as a short text."""
    return ", ".join(f"{name}={here}" for name, (_, here) in settings.items()) or "the book's own parameters"


@dataclass(frozen=True)
class Line:
    """One claim: what the book measured, what a run measured, and both verdicts, as a reader sees them."""

    claim: claims.Claim
    there: dict | None
    here: dict | None
    verdict_there: str
    verdict_here: str

    @property
    def differs(self) -> bool:
        """Whether the run measured it and came to another verdict than the book."""
        return self.here is not None and self.verdict_here != self.verdict_there


def lines(page: pages.Page, results: dict[str, dict], there: dict[str, dict] | None = None) -> list[Line]:
    """All claims of a page with the values `there` (of the book, if nothing is given) and in `results`, in the page's order."""
    book = page.root / "book"
    known = claims.of_page(page.name, book) if (page.markdown.parent / "claims.yml").exists() else {}
    by_book = there is None
    there = claims.measured_in(page.name, book) if there is None else there
    found = []
    for name, claim in known.items():
        before, now = there.get(name), results.get(name)
        standing_there = standing.verdict(claim, before) if by_book and claim.verdict == "recorded" else verdict(claim, before)
        found.append(Line(claim, before, now, rows.word(claim, standing_there), rows.word(claim, verdict(claim, now))))
    return found


def verdict(claim: claims.Claim, record: dict | None) -> str:
    """The verdict of a record, judged anew by the claim as it stands now; 'not measured' where there is none."""
    if record is None:
        return "not measured"
    return record["verdict"] if record["verdict"] == "undetermined" else claims.judge(claim, record["measured"])


def summary(found: list[Line]) -> str:
    """How many verdicts are the book's, in a sentence."""
    measured = [line for line in found if line.here is not None]
    apart = [line.claim.id for line in measured if line.differs]
    if not measured:
        return "This run measured no claim."
    if not apart:
        return f"All {len(measured)} verdicts are the book's." if len(measured) > 1 else "Its one verdict is the book's."
    return (
        f"{len(measured) - len(apart)} of {terminal.count(len(measured), 'verdict')} are the book's; not so: {', '.join(apart)}."
    )
