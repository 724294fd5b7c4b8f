"""Claims and verdicts, the spine of the book.

`book/<paper>/claims.yml` states every checkable claim of a paper and the verdict that the book stands for. On a page,
`check = on_page("paper/page")` and then `check("claim-id", measured)` compares, shows a row, and stops the page when the
measured verdict is not the declared one: in either direction, so that neither a regression nor an unnoticed success
goes by.
"""

import difflib
import math
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from lib.press import files, offline, parameters, schema
from lib.press.errors import ClaimError, PageError
from lib.press.verdicts import intervals, rows
from lib.press.verdicts.arithmetic import arithmetic

BOOK = Path(__file__).resolve().parent.parent.parent / "book"


class VerdictChanged(AssertionError):
    """The measured verdict is not the one that claims.yml declares."""


@dataclass(frozen=True)
class Claim:
    """One entry of claims.yml: a statement, the relation to test, and the verdict that the book stands for."""

    id: str
    folder: str  # the paper's folder in the book
    page: str  # "folder/page"
    where: str
    claim: str
    expect: str
    reason: str
    verdict: str
    paper: str = ""
    tolerance: str = ""
    note: str = ""
    author: str = "paper"  # whose statement it is: paper, correction, book
    rank: str = "supporting"  # main, supporting, or check: a check of our own code, which counts nowhere
    result: str = ""  # of a main result: the result in one sentence
    hero: str = ""  # of a main result: the figure that shows it
    figure: str = ""  # the paper's own numbers: "5c", "4a, 4f"
    equation: str = ""
    table: str = ""
    erratum: str = ""
    format: str = ""
    nature: str = ""  # "share" (between 0 and 1) or "size" (not negative): where intervals end
    finding: str = ""  # what the largest recorded run found
    reply: str = ""  # of the paper's authors

    @property
    def kind(self) -> str:
        """claim, printed (a form that the paper prints and that fails), corrected, or beyond the paper."""
        if self.author == "paper":
            return "printed" if self.erratum else "claim"
        return "corrected" if self.author == "correction" else "beyond"

    def holds(self, value) -> bool:
        """Whether one measured value satisfies the relation in `expect`."""
        word, low, high = relation(self)
        if word == "true":
            if not isinstance(value, bool):
                raise ClaimError(f"{self.id} expects true or false, got {value!r}")
            return value
        if isinstance(value, bool):
            raise ClaimError(f"{self.id} expects a number, got {value!r}")
        return {"<": value < high, ">": value > low}.get(word, low <= value <= high)

    def tolerance_text(self) -> str:
        """The tolerance (or bound) as a reader sees it."""
        if self.expect == "true":
            return "holds"
        return f"± {self.tolerance}" if self.tolerance else self.expect

    def show(self, value) -> str:
        """A measured value, or several, as text."""
        if isinstance(value, dict):
            return ", ".join(f"{name} {self.show(one)}" for name, one in value.items())
        if isinstance(value, list):
            return ", ".join(self.show(one) for one in value)
        if isinstance(value, bool):
            return "yes" if value else "no"
        return format(value, self.format) if self.format else number(value)


def number(value: float) -> str:
    """Three significant digits below one, four above, plain where that is short: 0.816, 2.646, 3.1e-12, 60000."""
    if isinstance(value, int):
        return str(value)
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.1e}"
    text = f"{value:.3g}" if abs(value) < 0.9995 else f"{value:.4g}"
    return f"{value:.0f}" if "e" in text else text


def relation(claim: Claim) -> tuple[str, float, float]:
    """(kind, low, high) of a claim's `expect` and `tolerance`; a ClaimError says what is wrong with them."""
    text = claim.expect.strip()
    if text == "true":
        return "true", 0.0, 0.0
    if text.startswith("in"):
        edges = re.fullmatch(r"in\s*\[(.+),(.+)\]", text)
        if not edges:
            raise ClaimError(f"{claim.id}: write a range as 'in [low, high]', not '{text}'")
        low, high = arithmetic(edges[1]), arithmetic(edges[2])
        if low > high:
            raise ClaimError(f"{claim.id}: the range '{text}' is empty; write 'in [low, high]'")
        return "in", low, high
    sign, value = text[:1], text[1:]
    if sign not in ("=", "<", ">"):
        raise ClaimError(f"{claim.id}: expect must be '= x', '< x', '> x', 'in [a, b]' or 'true', not '{text}'")
    centre = arithmetic(value)
    if sign != "=":
        return (sign, -math.inf, centre) if sign == "<" else (sign, centre, math.inf)
    if not claim.tolerance:
        raise ClaimError(f"{claim.id}: '=' needs a tolerance")
    share = re.fullmatch(r"(.+?)\s*%", claim.tolerance.strip())
    width = abs(centre) * arithmetic(share[1]) / 100 if share else arithmetic(claim.tolerance)
    if width < 0:
        raise ClaimError(f"{claim.id}: the tolerance '{claim.tolerance}' is negative")
    return "=", centre - width, centre + width


def load(folder: str, book: Path | None = None) -> dict[str, Claim]:
    """The claims of one paper by id, validated; a ClaimError names the entry and what is wrong with it."""
    claims = {}
    for i, entry in enumerate(read(folder, book)["claims"]):
        name = str(entry.get("id") or f"claim {i + 1}") if isinstance(entry, dict) else f"claim {i + 1}"
        schema.check(entry, schema.CLAIM, f"{folder}/{name}", ClaimError)
        entry = {key: str(value).strip() for key, value in entry.items() if value is not None}
        claim = Claim(**(entry | {"folder": folder, "page": f"{folder}/{entry['page']}"}))
        if claim.verdict == "recorded" and not claim.finding:
            raise ClaimError(f"{folder}/{name}: the verdict recorded needs a 'finding': what the recorded run found")
        if (claim.finding or claim.verdict) != "reproduced" and not claim.note:
            raise ClaimError(
                f"{folder}/{name}: a verdict of '{claim.finding or claim.verdict}' needs a note: what we see instead, and why"
            )
        if (claim.author == "correction" and not claim.erratum) or (claim.author == "book" and claim.erratum):
            raise ClaimError(f"{folder}/{name}: 'erratum' goes with a paper's statement and its correction, and only with them")
        if (claim.result, claim.hero).count("") != (0 if claim.rank == "main" else 2):
            raise ClaimError(
                f"{folder}/{name}: a main result has a 'result' (one sentence) and a 'hero' (a figure); others do not"
            )
        try:
            relation(claim)
            format(1.0, claim.format)
        except ClaimError as error:
            raise ClaimError(f"{folder}/{name}: {str(error).removeprefix(f'{name}: ')}") from None
        except ValueError:
            raise ClaimError(f"{folder}/{name}: '{claim.format}' is no format for a number, such as '.2f'") from None
        if name in claims:
            raise ClaimError(f"{folder}/{name}: the id is there twice")
        claims[name] = claim
    return claims


def read(folder: str, book: Path | None = None) -> dict:
    """A paper's claims.yml: its `title`, `cite` and `claims`."""
    path = (book or BOOK) / folder / "claims.yml"
    if not path.exists():
        raise ClaimError(f"there is no {path.parent.name}/{path.name}")
    return schema.check(files.read_yaml(path, ClaimError), schema.CLAIMS, files.shown(path), ClaimError)


def errata(folder: str, book: Path | None = None) -> dict[str, dict[str, str]]:
    """The slips of a paper by id: where, severity, the printed and the corrected form, fair words."""
    found = {}
    for i, entry in enumerate(read(folder, book).get("errata") or []):
        name = str(entry.get("id") or f"erratum {i + 1}") if isinstance(entry, dict) else f"erratum {i + 1}"
        schema.check(entry, schema.ERRATUM, f"{folder}/{name}", ClaimError)
        if name in found:
            raise ClaimError(f"{folder}/{name}: the erratum is there twice")
        found[name] = {key: str(value).strip() for key, value in entry.items() if value is not None}
    return found


def index(folder: str, book: Path | None = None) -> list[dict[str, str]]:
    """What the index of a paper's figures says beyond its rows: what is not remade, and why."""
    entries = read(folder, book).get("index") or []
    for i, entry in enumerate(entries):
        schema.check(entry, schema.INDEX, f"{folder}/index {i + 1}", ClaimError)
    return [{key: str(value).strip() for key, value in entry.items() if value is not None} for entry in entries]


def title(folder: str, book: Path | None = None) -> tuple[str, str]:
    """Title and citation key of a paper's folder."""
    content = read(folder, book)
    return str(content["title"]), str(content.get("cite") or "")


def of_page(page: str, book: Path | None = None) -> dict[str, Claim]:
    """The claims that a page must check, by id."""
    return {name: claim for name, claim in load(page.split("/")[0], book).items() if claim.page == page}


def plain(measured):
    """Tensors, arrays and numpy scalars as plain numbers; dicts, lists and tuples keep their structure."""
    if isinstance(measured, dict):
        return {str(name): plain(value) for name, value in measured.items()}
    if isinstance(measured, list | tuple):
        return [plain(value) for value in measured]
    if hasattr(measured, "tolist"):
        measured = measured.tolist()
        return plain(measured) if isinstance(measured, list) else measured
    return measured


def judge(claim: Claim, measured) -> str:
    """The verdict of a measurement: all parts hold, some do, or none does."""
    parts = list(measured.values()) if isinstance(measured, dict) else measured if isinstance(measured, list) else [measured]
    if not parts:
        raise ClaimError(f"{claim.id}: nothing was measured")
    for value in parts:
        if not isinstance(value, bool | int | float):
            raise ClaimError(f"{claim.id}: expected numbers or true/false, got {value!r}")
        if isinstance(value, float) and math.isnan(value):
            raise ClaimError(f"{claim.id}: the measured value is NaN")
    held = sum(claim.holds(value) for value in parts)
    return "reproduced" if held == len(parts) else "reproduced in part" if held else "not reproduced"


def decided(claim: Claim, interval) -> bool:
    """Whether every interval over seeds lies inside of the bounds or outside of them; without one nothing is decided."""
    _, low, high = relation(claim)
    ranges = list(interval.values()) if isinstance(interval, dict) else [interval] if interval else []
    inside = [claim.holds(one.low) and claim.holds(one.high) for one in ranges]
    outside = [one.high < low or one.low > high for one in ranges]
    return bool(ranges) and all(a or b for a, b in zip(inside, outside, strict=True))


def on_page(page: str, threads: int = 1, book: Path | None = None) -> "Check":
    """The `check` of a page. Call it in the page's first cell after the parameters.

    Also fixes the number of torch threads, so that sums come out in the same order on every machine.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    if offline.wanted():
        offline.refuse_network()
    return Check(page, sys._getframe(1).f_globals, book or BOOK)


class Check:
    """`check(id, measured)` for one page; see `on_page`."""

    def __init__(self, page: str, namespace: dict, book: Path):
        self.page, self.namespace, self.book = page, namespace, book
        self.all = load(page.split("/")[0], book)
        markdown = book / f"{page}.md"
        if not markdown.exists():
            raise ClaimError(f"there is no page {page}")
        self.defaults = {name: p.default for name, p in parameters.of_page(markdown).items()}

    def strict(self) -> bool:
        """Whether verdicts bind: the page runs with the book's own parameters, and not as a draft (RACING_DRAFT=1)."""
        return not os.environ.get("RACING_DRAFT") and all(
            self.namespace.get(name, value) == value for name, value in self.defaults.items()
        )

    def __call__(self, name: str, measured=None, over=None) -> None:
        """Compare, show the row, glue the value under the claim's id, and stop the page on a changed verdict.

        `over` holds one number per seed (or these for each named part): the row then shows their number and an interval, and
        their mean is what is measured unless `measured` says otherwise.
        """
        claim = self.all.get(name)
        if claim is None:
            near = difflib.get_close_matches(name, self.all, n=1)
            raise ClaimError(f"there is no claim '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
        if claim.page != self.page:
            raise ClaimError(f"claim '{name}' belongs to the page {claim.page}, this is {self.page}")
        if claim.verdict == "recorded" and self.strict():  # a run at another size may measure it, and be recorded
            raise ClaimError(f"claim '{name}' needs the paper's size: show it with check.recorded('{name}')")
        interval = None if over is None else intervals.of_parts(plain(over), claim.nature)
        if measured is None and interval is not None:
            measured = {part: one.mean for part, one in interval.items()} if isinstance(interval, dict) else interval.mean
        measured = plain(measured)
        verdict = judge(claim, measured)
        if claim.verdict == "undetermined" and not decided(claim, interval):
            verdict = "undetermined"
        rows.show(claim, measured, verdict, interval=None if interval is None else intervals.plain(interval))
        self.say(name, claim.show(measured))
        if self.strict() and verdict != claim.verdict:
            raise VerdictChanged(
                f"{name}: measured '{verdict}' (ours {claim.show(measured)}, expected {claim.expect} {claim.tolerance}), "
                f"but claims.yml declares '{claim.verdict}'"
            )

    def recorded(self, name: str, measured=None, over=None) -> None:
        """Show a claim that was checked by a recorded run, with the run's date and cost.

        A run at another size checks `measured` instead: that is how a recorded run comes to be. If it is None, the size did
        not suffice and the run shows nothing, lest it be recorded with another run's number.
        """
        claim = self.all.get(name)
        if claim is None or claim.verdict != "recorded" or claim.page != self.page:
            raise ClaimError(f"'{name}' is not a recorded claim of {self.page}")
        if not self.strict():
            return None if measured is None and over is None else self(name, measured, over)
        found = recorded_in(self.page, self.book).get(name)
        if found is None:
            raise ClaimError(f"no recorded run of {self.page} measured '{name}'; make one with `python -m lib run` and `record`")
        verdict = judge(claim, found["measured"])
        if verdict != claim.finding:
            raise VerdictChanged(f"{name}: the recorded run gives '{verdict}', but claims.yml declares '{claim.finding}'")
        when = f"recorded {found['finished'][:10]}, {found['seconds'] / 60:.0f} min on {found['device']}"
        rows.show(claim, found["measured"], verdict, when, found.get("interval"))
        self.say(name, claim.show(found["measured"]))

    def say(self, name: str, value) -> None:
        """Make a text or number available to the page's prose as {glue:text}`name`."""
        text = value if isinstance(value, str) else number(plain(value))
        prefix = "application/papermill.record/"
        # Quoted, because the book would otherwise read '10,000' as a pair of numbers.
        publish({f"{prefix}text/plain": repr(text)}, {"scrapbook": {"name": name, "mime_prefix": prefix}})


def publish(data: dict, metadata: dict) -> None:
    """Show a mime bundle in a notebook; print its text elsewhere."""
    from IPython import get_ipython  # imported late: claims.yml is also read where no notebook runs
    from IPython.display import display

    if get_ipython() is not None:
        display(data, metadata=metadata, raw=True)
    elif "text/plain" in data:
        print(data["text/plain"])


def records(notebook: dict) -> dict[str, dict]:
    """What an executed notebook measured: claim id -> {"id", "measured", "verdict"}, in order."""
    found = {}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            record = output.get("metadata", {}).get("racing")
            if record:
                found[record["id"]] = record
    return found


def measured_in(page: str, book: Path | None = None) -> dict[str, dict]:
    """Records of a page's committed notebook; empty when there is none."""
    path = (book or BOOK) / f"{page}.ipynb"
    return records(read_notebook(path)) if path.exists() else {}


def read_notebook(path: Path) -> dict:
    """A committed notebook; a PageError says what is wrong with its file."""
    return schema.check_notebook(files.read_json(path, PageError), files.shown(path), PageError)


def recorded_rows(page: str, book: Path | None = None) -> list[dict]:
    """The rows of a page's recorded runs, oldest first."""
    folder, _, name = page.rpartition("/")
    paths = sorted(((book or BOOK) / folder / "recorded").glob(f"{name}-*.json"))
    kept = [schema.check_row(files.read_json(path, ClaimError), files.shown(path), ClaimError, recorded=True) for path in paths]
    return sorted(kept, key=lambda row: row["finished"])


def recorded_in(page: str, book: Path | None = None) -> dict[str, dict]:
    """What recorded runs of a page measured: claim id -> record with the run's `finished`, `seconds`, `device`; newest wins."""
    found = {}
    for row in recorded_rows(page, book):
        about = {key: row[key] for key in ("finished", "seconds", "device", "run")}
        found |= {claim: record | about for claim, record in row["results"].items()}
    return found


def papers(book: Path | None = None) -> list[str]:
    """Folders of the book that have a claims.yml."""
    return sorted(path.parent.name for path in (book or BOOK).glob("*/claims.yml"))
