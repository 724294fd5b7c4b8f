"""Claims and verdicts: what a paper states, the relation to test, the verdict that the book stands for.

`book/<paper>/claims.yml` lists every checkable statement of a paper. A page begins with `check = on_page("paper/page")`;
`check("claim-id", measured)` compares, shows a row, and stops the page when the measured verdict is not the declared one,
in either direction: neither a regression nor an unnoticed success goes by.
"""

import ast
import html
import math
import operator
import os
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from lib.files import Problem, convert, nearest, read_json, read_text, read_yaml, shown

BOOK = Path(__file__).resolve().parent.parent / "book"
VERDICTS = ("reproduced", "reproduced in part", "not reproduced", "undetermined")

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Severity = Literal["conclusion", "number", "typo"]


class ClaimError(Problem):
    """A claim that is unknown, ill-formed, checked on the wrong page, or measured as something it cannot be."""


class NotMeasured(ClaimError):
    """Numbers that are not finite: an error with the book's parameters; with others the page says so and goes on."""


class VerdictChanged(AssertionError):
    """The measured verdict is not the one that claims.yml declares."""


# --- what claims.yml holds -------------------------------------------------------------------------------------------


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry of claims.yml: a statement, the relation to test, and the verdict that the book stands for."""

    id: Name
    page: Name  # in claims.yml the page's name; after `load` "folder/page"
    where: Text
    claim: Text
    expect: Text
    reason: Text  # for its tolerance or bound
    verdict: Literal["reproduced", "reproduced in part", "not reproduced", "undetermined", "recorded"]
    author: Literal["paper", "correction", "book"]  # whose statement it is
    rank: Literal["main", "supporting", "check"] = "supporting"  # a check is one of our own code and counts nowhere
    paper: str = ""  # the value that the paper gives
    tolerance: str = ""
    note: str = ""
    result: str = ""  # of a main result: the result in one sentence
    hero: str = ""  # of a main result: the figure that shows it
    figure: str = ""  # the paper's own numbers: "5c", "4a, 4f"
    equation: str = ""
    table: str = ""
    erratum: str = ""
    format: str = ""
    nature: Literal["", "share", "size"] = ""  # a share lies between 0 and 1, a size is not negative
    finding: Literal["", "reproduced", "reproduced in part", "not reproduced", "undetermined"] = ""  # of the largest recorded run
    reply: str = ""  # of the paper's authors

    @property
    def folder(self) -> str:
        """The paper's folder in the book."""
        return self.page.split("/")[0]

    @property
    def kind(self) -> str:
        """claim, printed (a form that the paper prints and that fails), corrected, or beyond the paper."""
        if self.author == "paper":
            return "printed" if self.erratum else "claim"
        return "corrected" if self.author == "correction" else "beyond"

    def holds(self, value) -> bool:
        """Whether one measured value satisfies the relation in `expect`."""
        word, low, high = relation(self)
        if isinstance(value, bool) != (word == "true"):
            raise ClaimError(f"{self.id} expects {'true or false' if word == 'true' else 'a number'}, got {value!r}")
        if word == "true":
            return value
        return {"<": value < high, ">": value > low}.get(word, low <= value <= high)

    def tolerance_text(self) -> str:
        """The tolerance (or bound) as a reader sees it."""
        if self.expect == "true":
            return "holds"
        return f"± {self.tolerance}" if self.tolerance else self.expect

    def show(self, measured) -> str:
        """A measured value, or several, as text."""
        if isinstance(measured, dict):
            return ", ".join(f"{name} {self.show(one)}" for name, one in measured.items())
        if isinstance(measured, list):
            return ", ".join(self.show(one) for one in measured)
        if isinstance(measured, bool):
            return "yes" if measured else "no"
        return format(measured, self.format) if self.format else number(measured)


class Erratum(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A slip in print: where, how grave, the printed and the corrected form, and fair words."""

    id: Name
    severity: Severity
    where: Text
    printed: Text
    corrected: Text
    holds: Text
    reading: str = ""  # a charitable one
    program: str = ""  # what the authors' program does


class NotRemade(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A figure, table or equation of the paper without a row of its own, and why."""

    what: Text
    why: Text
    at: str = ""  # a figure of ours that shows it all the same


class Paper(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole claims.yml; its claims are converted one by one, so that an error can name the claim."""

    title: Text
    cite: str = ""
    claims: list[dict]
    errata: list[dict] = []
    index: list[dict] = []


def read(folder: str, book: Path | None = None) -> Paper:
    """A paper's claims.yml."""
    path = (book or BOOK) / folder / "claims.yml"
    if not path.exists():
        raise ClaimError(f"there is no {folder}/claims.yml")
    return convert(_stripped(read_yaml(path)), Paper, shown(path))


def load(folder: str, book: Path | None = None) -> dict[str, Claim]:
    """The claims of one paper by id, validated; the error names the entry and what is wrong with it."""
    claims = {}
    for name, claim in _entries(read(folder, book).claims, Claim, folder).items():
        problem = _problem(claim)
        if problem:
            raise ClaimError(f"{folder}/{name}: {problem}")
        claims[name] = msgspec.structs.replace(claim, page=f"{folder}/{claim.page}")
    return claims


def _problem(claim: Claim) -> str:
    """What is wrong with a claim that its fields alone do not show, or nothing."""
    if claim.verdict == "recorded" and not claim.finding:
        return "the verdict recorded needs a 'finding': what the recorded run found"
    if (claim.finding or claim.verdict) != "reproduced" and not claim.note:
        return f"a verdict of '{claim.finding or claim.verdict}' needs a note: what we see instead, and why"
    if (claim.author == "correction" and not claim.erratum) or (claim.author == "book" and claim.erratum):
        return "'erratum' goes with a paper's statement and its correction, and only with them"
    if (claim.result, claim.hero).count("") != (0 if claim.rank == "main" else 2):
        return "a main result has a 'result' (one sentence) and a 'hero' (a figure); others do not"
    try:
        relation(claim)
        format(1.0, claim.format)
    except ClaimError as error:
        return str(error).removeprefix(f"{claim.id}: ")
    except ValueError:
        return f"'{claim.format}' is no format for a number, such as '.2f'"
    return ""


def errata(folder: str, book: Path | None = None) -> dict[str, Erratum]:
    """The slips of a paper by id."""
    return _entries(read(folder, book).errata, Erratum, folder)


def index(folder: str, book: Path | None = None) -> list[NotRemade]:
    """What the index of a paper's figures says beyond its rows: what is not remade, and why."""
    return [convert(entry, NotRemade, f"{folder}/index {i + 1}") for i, entry in enumerate(read(folder, book).index)]


def of_page(page: str, book: Path | None = None) -> dict[str, Claim]:
    """The claims that a page must check, by id."""
    return {name: claim for name, claim in load(page.split("/")[0], book).items() if claim.page == page}


def papers(book: Path | None = None) -> list[str]:
    """Folders of the book that have a claims.yml."""
    folders = (path.parent.name for path in (book or BOOK).glob("*/claims.yml"))
    return sorted(folder for folder in folders if not folder.startswith(("_", ".")))  # _template is no paper


def _entries(entries: list[dict], kind: type, folder: str) -> dict:
    """Entries of a list by id, each converted; no id may be there twice."""
    found = {}
    for i, entry in enumerate(entries):
        name = entry.get("id") or f"entry {i + 1}"
        if name in found:
            raise ClaimError(f"{folder}/{name}: the id is there twice")
        found[name] = convert(entry, kind, f"{folder}/{name}")
    return found


def _stripped(content):
    """The same content without space around its texts."""
    if isinstance(content, dict):
        return {key: _stripped(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_stripped(value) for value in content]
    return content.strip() if isinstance(content, str) else content


# --- relations, intervals and verdicts -------------------------------------------------------------------------------

FUNCTIONS = {"sqrt": math.sqrt, "log": math.log, "exp": math.exp}
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: math.pow}


def arithmetic(text: str) -> float:
    """The value of a simple formula, 'sqrt(2/3)' or '8.5*2'; nothing else is evaluated."""

    def value(node) -> float:
        match node:
            case ast.Constant(value=int() | float() as constant) if not isinstance(constant, bool):
                return float(constant)
            case ast.BinOp() if type(node.op) in OPERATORS:
                return OPERATORS[type(node.op)](value(node.left), value(node.right))
            case ast.UnaryOp(op=ast.USub()):
                return -value(node.operand)
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
                return FUNCTIONS[name](value(argument))
            case ast.Name(id="pi"):
                return math.pi
        raise ValueError

    try:
        found = value(ast.parse(text.strip()[:200], mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError):
        found = math.nan
    if not math.isfinite(found):
        raise ClaimError(f"'{text.strip()[:60]}' is not a number or a simple formula")
    return found


def relation(claim: Claim) -> tuple[str, float, float]:
    """(kind, low, high) of a claim's `expect` and `tolerance`; a ClaimError says what is wrong with them."""
    text = claim.expect.strip()
    if text == "true":
        return "true", 0.0, 0.0
    if edges := re.fullmatch(r"in\s*\[(.+),(.+)\]", text):
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
    share = re.fullmatch(r"(.+?)\s*%", claim.tolerance)
    width = abs(centre) * arithmetic(share[1]) / 100 if share else arithmetic(claim.tolerance)
    if width < 0:
        raise ClaimError(f"{claim.id}: the tolerance '{claim.tolerance}' is negative")
    return "=", centre - width, centre + width


LEVEL = 0.95
NATURES = {"": (-math.inf, math.inf), "share": (0.0, 1.0), "size": (0.0, math.inf)}  # what a number can be at all


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its 95 % confidence interval; `spread` is the standard deviation."""

    mean: float
    low: float
    high: float
    spread: float
    seeds: int


def over_seeds(values: list[float], nature: str = "") -> Interval:
    """The 95 % interval of the mean of one number per seed, by Student's t, cut where such a number can no longer be.

    A share of seeds that say yes (each number is 0 or 1) has Wilson's interval, which is right even if all of them do.
    """
    n = len(values)
    if n < 2:
        raise ClaimError(f"an interval over seeds needs at least two of them, not {n}")
    bad = [value for value in values if not (isinstance(value, int | float) and math.isfinite(value))]
    if bad:
        raise NotMeasured(f"an interval over seeds needs finite numbers; {len(bad)} of {n} are not, {bad[0]} for example")
    from scipy.special import ndtri, stdtrit  # late: not every page has seeds

    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    if nature == "share" and all(value in (0, 1) for value in values):
        z = float(ndtri(0.5 + LEVEL / 2)) ** 2 / n
        reach = math.sqrt(z * mean * (1 - mean) + z * z / 4)
        low, high = max(0.0, (mean + z / 2 - reach) / (1 + z)), min(1.0, (mean + z / 2 + reach) / (1 + z))
        return Interval(mean, low, high, spread, n)
    reach = float(stdtrit(n - 1, 0.5 + LEVEL / 2)) * spread / math.sqrt(n)
    least, most = NATURES[nature]
    return Interval(mean, max(least, mean - reach), min(most, mean + reach), spread, n)


def plain(measured):
    """Tensors, arrays and numpy scalars as plain numbers; dicts, lists and tuples keep their structure."""
    if isinstance(measured, dict):
        return {str(name): plain(value) for name, value in measured.items()}
    if isinstance(measured, list | tuple):
        return [plain(value) for value in measured]
    return plain(measured.tolist()) if hasattr(measured, "tolist") else measured


def parts(measured) -> dict:
    """A measurement by name of its parts; those of a list are numbered, a single value has the name ''."""
    if isinstance(measured, dict):
        return measured
    return {str(i): value for i, value in enumerate(measured)} if isinstance(measured, list) else {"": measured}


def intervals(interval: dict | None) -> dict[str, dict]:
    """A record's interval by name of its parts, like `parts`."""
    if not interval:
        return {}
    return {"": interval} if isinstance(interval.get("seeds"), int) else interval


def summary(claim: Claim, measured, over) -> tuple:
    """(measured, interval) as plain numbers: what was measured, or the mean of one number per seed with its interval."""
    if over is None:
        return plain(measured), None
    over, nature = plain(over), claim.nature
    try:
        if isinstance(over, dict):
            interval = {part: asdict(over_seeds(values, nature)) for part, values in over.items()}
            mean = {part: one["mean"] for part, one in interval.items()}
        else:
            interval = asdict(over_seeds(over, nature))
            mean = interval["mean"]
    except ClaimError as error:
        raise type(error)(f"{claim.id}: {error}") from None
    return mean if measured is None else plain(measured), interval


def judge(claim: Claim, measured, interval: dict | None = None) -> str:
    """The verdict of a measurement: all parts hold, some do, none does, or it is undetermined.

    A mean over seeds is judged by its interval: if that crosses the bound, this part is undetermined, without exception. The
    whole is then undetermined, too, unless another part holds and yet another fails. What is not a mean (a worst case, a
    number that no seed moves) is judged by itself. A claim that is declared undetermined stays so without an interval (`Check`).
    """
    ranges, found = intervals(interval), []
    _, least, most = relation(claim)
    if not parts(measured):
        raise ClaimError(f"{claim.id}: nothing was measured")
    for name, value in parts(measured).items():
        if not isinstance(value, bool | int | float):
            raise ClaimError(f"{claim.id}: expected numbers or true/false, got {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise NotMeasured(f"{claim.id}: the measured value is {value}, not a finite number")
        one = ranges.get(name)
        if one and not isinstance(value, bool) and is_mean(value, one):
            low, high = claim.holds(one["low"]), claim.holds(one["high"])
            around = not low and not high and one["low"] < most and one["high"] > least  # the whole range of `expect` is inside
            found.append(None if low != high or around else low)
        else:
            found.append(claim.holds(value))
    if None in found and not (True in found and False in found):
        return "undetermined"
    return "reproduced" if all(found) else "reproduced in part" if any(found) else "not reproduced"


def is_mean(value: float, interval: dict) -> bool:
    """Whether a measured value is the mean of its interval, and not a worst case, say."""
    return abs(value - interval["mean"]) <= 1e-9 * abs(interval["mean"])


# --- on a page -------------------------------------------------------------------------------------------------------

PARAMETERS = re.compile(r"^```\{code-cell\}[^\n]*\n:tags: *\[[^\]]*\bparameters\b[^\]]*\]\n(.*?)^```", re.S | re.M)


def on_page(page: str, threads: int = 1, book: Path | None = None) -> "Check":
    """The `check` of a page. Call it in the page's first cell after the parameters.

    Also fixes the number of torch threads, so that sums come out in the same order on every machine.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    if os.environ.get("RACING_OFFLINE"):
        refuse_network()
    return Check(page, sys._getframe(1).f_globals, book or BOOK)


def refuse_network() -> None:
    """From now on, any look-up or connection beyond this machine raises: the book's pages work offline, and this proves it."""

    def hook(event, arguments):
        if event not in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
            return
        target = arguments[1] if event == "socket.connect" else arguments[0]
        host = target[0] if isinstance(target, tuple) else target
        host = host.decode() if isinstance(host, bytes) else host
        if isinstance(host, str) and host and not host.startswith(("127.", "localhost", "::1", "0.0.0.0")) and "/" not in host:
            raise PermissionError(f"this page asked the network for {host}; the book's pages work offline")

    sys.addaudithook(hook)


class Check:
    """`check(id, measured)` for one page; see `on_page`."""

    def __init__(self, page: str, namespace: dict, book: Path):
        self.page, self.namespace, self.book = page, namespace, book
        self.all = load(page.split("/")[0], book)
        cell = PARAMETERS.search(read_text(book / f"{page}.md"))
        lines = ast.parse(cell[1]).body if cell else []
        self.defaults = {line.target.id: ast.literal_eval(line.value) for line in lines}

    def strict(self) -> bool:
        """Whether verdicts bind: the page runs with the book's own parameters, and not as a draft (RACING_DRAFT=1)."""
        own = all(self.namespace.get(name, value) == value for name, value in self.defaults.items())
        return own and not os.environ.get("RACING_DRAFT")

    def claim(self, name: str) -> Claim:
        """A claim of this page by its id."""
        if name not in self.all:
            raise ClaimError(f"there is no claim '{name}'{nearest(name, self.all)}")
        if self.all[name].page != self.page:
            raise ClaimError(f"claim '{name}' belongs to the page {self.all[name].page}, this is {self.page}")
        return self.all[name]

    def __call__(self, name: str, measured=None, over=None) -> None:
        """Compare, show the row, glue the value under the claim's id, and stop the page on a changed verdict.

        `over` holds one number per seed (or these for each named part): the row then shows their number and an interval, and
        their mean is what is measured unless `measured` says otherwise.
        """
        claim = self.claim(name)
        if claim.verdict == "recorded" and self.strict():  # a run at another size may measure it, and be recorded
            raise ClaimError(f"claim '{name}' needs the paper's size: show it with check.recorded('{name}')")
        try:
            measured, interval = summary(claim, measured, over)
            verdict = judge(claim, measured, interval)
        except NotMeasured as error:
            if self.strict():
                raise
            return publish({"text/plain": f"[not measured] {error}"}, {})
        if claim.verdict == "undetermined" and interval is None:  # this size is known not to decide it
            verdict = "undetermined"
        show(claim, measured, verdict, interval=interval, finding=claim.finding if self.strict() else "")
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
        claim = self.claim(name)
        if claim.verdict != "recorded":
            raise ClaimError(f"'{name}' is not a recorded claim of {self.page}")
        if not self.strict():
            return None if measured is None and over is None else self(name, measured, over)
        found = recorded_in(self.page, self.book).get(name)
        if found is None:
            raise ClaimError(f"no recorded run of {self.page} measured '{name}'; make one with `python -m lib run` and `record`")
        verdict = judge(claim, found["measured"], found.get("interval"))
        if verdict != claim.finding:
            raise VerdictChanged(f"{name}: the recorded run gives '{verdict}', but claims.yml declares '{claim.finding}'")
        when = f"recorded {found['finished'][:10]}, {found['seconds'] / 60:.0f} min on {found['device']}"
        show(claim, found["measured"], verdict, when, found.get("interval"))
        self.say(name, claim.show(found["measured"]))

    def keep(self, name: str, values) -> None:
        """Leave small arrays with the row of a run at another size, so that its figure can be drawn once it is recorded."""
        if not self.strict():
            publish({}, {"kept": {name: plain(values)}})

    def kept(self, name: str):
        """What the newest recorded run of this page kept under this name; None without one."""
        rows = recorded_rows(self.page, self.book)
        return next((row["kept"][name] for row in reversed(rows) if name in row.get("kept", {})), None)

    def say(self, name: str, value) -> None:
        """Make a text or number available to the page's prose as {glue:text}`name`."""
        text = value if isinstance(value, str) else number(plain(value))
        prefix = "application/papermill.record/"
        # Quoted, because the book would otherwise read '10,000' as a pair of numbers.
        publish({f"{prefix}text/plain": repr(text)}, {"scrapbook": {"name": name, "mime_prefix": prefix}})


# --- a row as a reader sees it ---------------------------------------------------------------------------------------

SLIP = "slip in print"  # a printed form that fails beside its correction is a slip, not a failed claim
OURS = {"reproduced": "holds", "reproduced in part": "holds in part", "not reproduced": "does not hold"}  # what is our own


def word(claim: Claim, verdict: str) -> str:
    """A verdict as a reader sees it: a printed form that fails is a slip, a finding of this book holds or does not."""
    if claim.kind == "printed" and verdict in ("not reproduced", "reproduced in part"):
        return SLIP
    return OURS.get(verdict, verdict) if claim.author != "paper" else verdict


def number(value: float) -> str:
    """Three significant digits below one, four above, plain where that is short: 0.816, 2.646, 3.1e-12, 60000."""
    if isinstance(value, int):
        return str(value)
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.1e}"
    text = f"{value:.3g}" if abs(value) < 0.9995 else f"{value:.4g}"
    return f"{value:.0f}" if "e" in text else text


def to_html(text: str) -> str:
    """The small Markdown of claims as HTML: `$…$`, code, **strong** and *emphasis*; everything else is escaped."""
    done = []
    for piece in re.split(r"(\$[^$]+\$|`[^`]+`)", text):
        marked = len(piece) > 2 and piece[0] in "$`"
        safe = html.escape(piece[1:-1] if marked else piece)
        if marked and piece[0] == "$":
            done.append(rf'<span class="math notranslate nohighlight">\({safe}\)</span>')
        elif marked:
            done.append(f"<code>{safe}</code>")
        else:
            strong = re.sub(r"\*\*(?=\S)(.+?)(?<=\S)\*\*", r"<strong>\1</strong>", safe)
            done.append(re.sub(r"(?<!\w)\*(?=\S)([^*]+?)(?<=\S)\*(?!\w)", r"<em>\1</em>", strong))
    return "".join(done)


def ours(claim: Claim, measured, interval: dict | None = None, split: str = "<br>") -> str:
    """What was measured, as HTML, its parts on lines of their own, with intervals and the number of seeds."""
    ranges, lines = intervals(interval), []
    for name, value in parts(measured).items() if isinstance(measured, dict) else [("", measured)]:
        text, one = claim.show(value), ranges.get(name)
        if one:  # beside a worst case it says that the range is the mean's
            of_mean = "" if is_mean(value, one) else "; mean over seeds in "
            text = f"{text}{of_mean or ' '}[{claim.show(one['low'])}, {claim.show(one['high'])}]"
        lines.append(html.escape(f"{name}: {text}" if name else text))
    counts = sorted({one["seeds"] for one in ranges.values() if one})
    more = f"{split}<small>n = {', '.join(map(str, counts))}</small>" if counts else ""
    return split.join(lines) + more


def show(claim: Claim, measured, verdict: str, recorded: str = "", interval: dict | None = None, finding: str = "") -> None:
    """Show one row and leave its record in the output's metadata, for the scoreboard.

    `recorded` says when and at what cost a recorded run measured it; `interval` is the range over seeds. `finding` is what a
    larger, recorded run found: it decides, and the page's own verdict stands in brackets where the two differ.
    """
    columns = {"claim": 38, "paper": 13, "ours": 22, "tolerance": 12, "verdict": 15}  # widths in per cent
    decides = finding or verdict
    said = word(claim, decides)
    aside = recorded if decides == verdict else f"by a recorded run; on this page: {word(claim, verdict)}"
    link = f'<a class="anchor" href="#{html.escape(claim.id)}" title="the address of this result">¶</a>'
    cells = {
        "claim": f"{to_html(claim.claim)} {link}",
        "paper": to_html(claim.paper or "–"),
        "ours": ours(claim, measured, interval),
        "tolerance": to_html(claim.tolerance_text()),
        "verdict": html.escape(f"{said} ({aside})" if aside else said),
    }
    widths = "".join(f'<col style="width: {width}%">' for width in columns.values())
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    body = "".join(f'<td class="{name}">{cell}</td>' for name, cell in cells.items())
    style = f"{decides.replace(' ', '-')} {claim.kind} {claim.rank}"
    table = (
        f'<table class="check {style}" id="{html.escape(claim.id)}" title="{html.escape(claim.id)}: {html.escape(claim.reason)}">'
        f"<colgroup>{widths}</colgroup><thead><tr>{head}</tr></thead><tbody><tr>{body}</tr></tbody></table>"
    )
    text = f"[{said}] {claim.id}: ours {claim.show(measured)} | paper {claim.paper or '–'} | {claim.tolerance_text()}"
    record = {"id": claim.id, "measured": measured, "verdict": "recorded" if recorded else verdict}
    record |= {"interval": interval} if interval else {}
    publish({"text/plain": text, "text/html": table}, {"racing": record})


def publish(data: dict, metadata: dict) -> None:
    """Show a mime bundle in a notebook; print its text elsewhere."""
    from IPython import get_ipython  # late: claims.yml is also read where no notebook runs
    from IPython.display import display

    if get_ipython() is not None:
        display(data, metadata=metadata, raw=True)
    elif "text/plain" in data:
        print(data["text/plain"])


# --- what notebooks and recorded runs measured -----------------------------------------------------------------------

Measured = bool | int | float | list | dict


class Record(msgspec.Struct):
    """What one check of a run leaves."""

    measured: Measured
    verdict: Literal["reproduced", "reproduced in part", "not reproduced", "undetermined", "recorded"]
    interval: dict | None = None


class Row(msgspec.Struct):
    """What one run leaves: parameters, results, provenance."""

    page: str
    run: Name
    parameters: dict
    status: Literal["finished", "failed"]
    results: dict[str, Record]
    seconds: Annotated[float, msgspec.Meta(ge=0)]
    fingerprint: str
    device: str
    finished: str
    machine: str
    commit: str = ""
    error: str = ""
    kept: dict = {}  # small arrays for its figures


class Cell(msgspec.Struct):
    """What is asked of a notebook's cell."""

    cell_type: Literal["code", "markdown", "raw"]
    metadata: dict
    source: str | list[str]
    outputs: list[dict] = []


class Notebook(msgspec.Struct):
    """What is asked of a notebook."""

    cells: list[Cell]
    metadata: dict


def records(notebook: dict) -> dict[str, dict]:
    """What an executed notebook measured: claim id -> {"id", "measured", "verdict", "interval"}, in order."""
    outputs = (output for cell in notebook["cells"] for output in cell.get("outputs", []))
    found = (output.get("metadata", {}).get("racing") for output in outputs)
    return {record["id"]: record for record in found if record}


def kept(notebook: dict) -> dict:
    """The small arrays that an executed notebook keeps for a figure, by name."""
    outputs = (output for cell in notebook["cells"] for output in cell.get("outputs", []))
    return {name: values for output in outputs for name, values in output.get("metadata", {}).get("kept", {}).items()}


def measured_in(page: str, book: Path | None = None) -> dict[str, dict]:
    """Records of a page's committed notebook; empty when there is none."""
    path = (book or BOOK) / f"{page}.ipynb"
    return records(read_json(path, Notebook)) if path.exists() else {}


def recorded_rows(page: str, book: Path | None = None) -> list[dict]:
    """The rows of a page's recorded runs, oldest first."""
    folder, _, name = page.rpartition("/")
    paths = sorted(((book or BOOK) / folder / "recorded").glob(f"{name}-*.json"))
    return sorted((read_json(path, Row) for path in paths), key=lambda row: row["finished"])


def recorded_in(page: str, book: Path | None = None) -> dict[str, dict]:
    """What recorded runs of a page measured: claim id -> record with the run's `finished`, `seconds`, `device`; newest wins."""
    found = {}
    for row in recorded_rows(page, book):
        about = {key: row[key] for key in ("finished", "seconds", "device", "run")}
        found |= {claim: record | about for claim, record in row["results"].items()}
    return found
