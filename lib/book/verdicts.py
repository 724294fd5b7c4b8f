"""Verdicts: which one counts, how many hold, and how far a measurement is from its bound.

One statement has one verdict, everywhere: the largest run decides; `claims.judge` judges each of them. All counts of the book
(header, box, scoreboard, filter, errata, README) come from `count`.
"""

import math
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec

from lib import claims
from lib.claims import SLIP, Claim
from lib.files import read_json

SEEDS = "seeds.json"  # book/seeds.json: what other seeds measured, made by `python -m lib seeds --record`
# Reading order of the book's parts; others follow in alphabetical order.
PARTS = (
    "deep_linear", "neural_race", "make_haste_slowly", "early_linearization", "neural_redshift", "bias_learning", "synthesis",
)  # fmt: skip


def parts(book: Path) -> list[str]:
    """Folders of the book that have claims, in reading order."""
    there = claims.papers(book)
    return [part for part in PARTS if part in there] + [part for part in there if part not in PARTS]


def verdict(claim: Claim, record: dict | None) -> str:
    """The verdict that counts. The largest run decides: what a recorded run found goes before what the laptop shows.

    Where nothing is executed yet a statement is open. A printed form that fails beside its correction is a slip in print.
    """
    found = claim.finding or (record["verdict"] if record else "open")
    if claim.verdict == "recorded" and record:
        found = claims.judge(claim, record["measured"], record.get("interval"))
    return SLIP if claim.kind == "printed" and found not in ("reproduced", "open") else found


def on_laptop(claim: Claim, record: dict | None) -> str:
    """What the page itself shows where the recorded run decided otherwise; else nothing."""
    if record is None or claim.verdict == "recorded" or not claim.finding or record["verdict"] == claim.finding:
        return ""
    return record["verdict"]


def rows(book: Path, papers: Iterable[str] | None = None) -> list[tuple[Claim, dict | None]]:
    """All rows of some papers (of all, in reading order), each with what its executed page measured."""
    return [row for paper in papers or parts(book) for row in _of_paper(book, paper, _stamp(book / paper))]


def _stamp(folder: Path) -> tuple:
    """Changes when a paper's claims or one of its notebooks does."""
    files = (path.stat() for path in sorted([folder / "claims.yml", *folder.glob("*.ipynb")]) if path.exists())
    return tuple((one.st_mtime_ns, one.st_size) for one in files)


@lru_cache(maxsize=32)
def _of_paper(book: Path, paper: str, stamp: tuple) -> tuple[tuple[Claim, dict | None], ...]:
    known = claims.load(paper, book)
    measured = {page: claims.measured_in(page, book) for page in {claim.page for claim in known.values()}}
    return tuple((claim, measured[claim.page].get(claim.id)) for claim in known.values())


# --- counting --------------------------------------------------------------------------------------------------------

GROUPS = ("papers' main results", "our main results", "statements", "findings", "slips", "checks")


def group(claim: Claim) -> str:
    """What a row is counted as: a `statement` of a paper, a half of a `slip` in print, a `finding` of this book, or a `check`."""
    if claim.rank == "check":
        return "check"
    if claim.erratum:
        return "slip"
    return "finding" if claim.author == "book" else "statement"


def count(rows: Iterable[tuple[Claim, dict | None]]) -> dict[str, Counter]:
    """Counts of verdicts: `statements` of the papers and `findings` of this book (main results included), these main results
    apart, `slips` in print (a printed and a corrected form are one slip), and `checks` of our own code."""
    total = {name: Counter() for name in GROUPS}
    slips = set()
    for claim, record in rows:
        found, kind = verdict(claim, record), group(claim)
        if kind == "slip":
            slips.add((claim.folder, claim.erratum))
            continue
        total[f"{kind}s"][found] += 1
        if claim.rank == "main":
            total["our main results" if kind == "finding" else "papers' main results"][found] += 1
    total["slips"][SLIP] = len(slips)
    return total


def plural(number: int, word: str) -> str:
    """A count with its word in the singular or plural."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def score(book: Path) -> str:
    """The scoreboard in one sentence, for README: the papers' results and our own apart."""
    total = count(rows(book))
    main, own, statements, findings = (total[name] for name in GROUPS[:4])
    words = ", ".join(f"{statements[verdict]} {verdict}" for verdict in claims.VERDICTS if statements[verdict])
    return (
        f"{main['reproduced']} of the papers' {sum(main.values())} main results hold; "
        f"of {sum(statements.values())} statements of the papers {words}; "
        f"{total['slips'][SLIP]} slips in print, each with its correction; "
        f"{findings['reproduced']} of {sum(findings.values())} findings of this book hold "
        f"({own['reproduced']} of {sum(own.values())} main ones)"
    )


# --- other seeds, and the distance from the bound --------------------------------------------------------------------


class OtherSeeds(msgspec.Struct):
    """What other seeds gave for one claim: how many flip its verdict, the spread and the extremes of each part."""

    seeds: list[int]
    flips: int
    spread: dict[str, float] = {}
    least: dict[str, float] = {}
    most: dict[str, float] = {}


def other_seeds(book: Path) -> dict[str, dict]:
    """What other seeds gave, by claim, as `python -m lib seeds --record` has kept it."""
    path = book / SEEDS
    return read_json(path, dict[str, OtherSeeds]) if path.exists() else {}


def still_true(seen: dict | None, record: dict | None) -> dict | None:
    """What other seeds gave, if their range, to which the book's own run belonged, includes what the row measures now."""
    least, most = (seen or {}).get("least", {}), (seen or {}).get("most", {})
    now = claims.parts(record["measured"]) if record and least else {}
    near = all(least[k] - abs(v) / 1000 <= v <= most[k] + abs(v) / 1000 for k, v in now.items() if k in least)
    return seen if near and now.keys() == least.keys() else None


def slack(claim: Claim, measured, spread: dict[str, float]) -> float | None:
    """How many spreads the nearest part of a measurement is from its bound; None where nothing spreads or nothing is measured.

    Near zero the verdict depends on the seed; far away the effect is strong beside its scatter, or the bound generous.
    """
    kind, low, high = claims.relation(claim)
    if kind == "true":
        return None
    distances = []
    for name, value in claims.parts(measured).items():
        if not isinstance(value, bool) and spread.get(name):
            distances.append(min(abs(value - edge) for edge in (low, high) if math.isfinite(edge)) / spread[name])
    return min(distances, default=None)


def spread(record: dict | None, seen: dict | None) -> dict[str, float]:
    """How much each part of a measurement moves from one run to another: between other seeds, where they were tried.

    Elsewhere it is the standard error of a mean over the page's own seeds; what has neither has no spread.
    """
    if seen and seen.get("spread"):
        return seen["spread"]
    ranges = claims.intervals((record or {}).get("interval"))
    return {name: one["spread"] / math.sqrt(one["seeds"]) for name, one in ranges.items()}
