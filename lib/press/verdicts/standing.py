"""Where a statement stands: the verdict that counts, totals by author, and how far a measurement is from its bound."""

import math
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path

from lib.press import claims, files, schema
from lib.press.errors import ClaimError
from lib.press.verdicts.rows import SLIP

SEEDS = "seeds.json"  # book/seeds.json: what other seeds measured, made by `python -m lib seeds --record`
SEEN = {"seeds": schema.Field("a list"), "flips": schema.Field("a number"), "spread": schema.Field("a mapping", False)}
WIDE = 10  # a bound that is further away than this many spreads feels nothing


def verdict(claim: claims.Claim, record: dict | None) -> str:
    """The verdict that counts. The largest run decides: what a recorded run found goes before what the laptop shows.

    Where nothing is executed yet a statement is open. A printed form that fails beside its correction is a slip in print.
    """
    found = claim.finding or (record["verdict"] if record else "open")
    if claim.verdict == "recorded" and record:
        found = claims.judge(claim, record["measured"])
    return SLIP if claim.kind == "printed" and found not in ("reproduced", "open") else found


def on_laptop(claim: claims.Claim, record: dict | None) -> str:
    """What the page itself shows where the recorded run decided otherwise; else nothing."""
    if record is None or claim.verdict == "recorded" or not claim.finding or record["verdict"] == claim.finding:
        return ""
    return record["verdict"]


def every(book: Path, papers: list[str] | None = None) -> list[tuple[claims.Claim, dict | None]]:
    """All rows of some papers (of all), each with what its executed page measured."""
    return [row for paper in papers or claims.papers(book) for row in of_paper(book, paper, stamp(book / paper))]


def stamp(folder: Path) -> tuple:
    """Changes when a paper's claims or one of its notebooks does."""
    there = (path.stat() for path in sorted([folder / "claims.yml", *folder.glob("*.ipynb")]) if path.exists())
    return tuple((one.st_mtime_ns, one.st_size) for one in there)


@lru_cache(maxsize=32)
def of_paper(book: Path, paper: str, now: tuple) -> tuple[tuple[claims.Claim, dict | None], ...]:
    """The rows of one paper; read once as long as `now`, the stamp of its files, is the same."""
    known = claims.load(paper, book)
    measured = {page: claims.measured_in(page, book) for page in {claim.page for claim in known.values()}}
    return tuple((claim, measured[claim.page].get(claim.id)) for claim in known.values())


def totals(rows: list[tuple[claims.Claim, dict | None]]) -> dict[str, Counter]:
    """Counts of verdicts apart: `main` results, `paper` (the papers' statements, slips aside), `slips`, `book` (our findings).

    Checks of our own code are counted nowhere.
    """
    count = {name: Counter() for name in ("main", "paper", "slips", "book")}
    for claim, record in rows:
        if claim.rank == "check":
            continue
        found = verdict(claim, record)
        if claim.rank == "main":
            count["main"][found] += 1
        if claim.author == "paper":
            count["slips" if claim.erratum else "paper"][found] += 1
        elif claim.author == "book":
            count["book"][found] += 1
    return count


# --- slack -------------------------------------------------------------------------------------------------------


def other_seeds(book: Path) -> dict[str, dict]:
    """What other seeds gave, by claim: the seeds, how many flip its verdict, and the spread of each part."""
    path = book / SEEDS
    if not path.exists():
        return {}
    known = files.read_json(path, ClaimError)
    schema.check(known, {name: schema.MAPPING for name in known}, files.shown(path), ClaimError)
    for name, seen in known.items():
        schema.check(seen, SEEN, f"{files.shown(path)}, {name}", ClaimError, closed=False)
    return known


def slack(claim: claims.Claim, measured, spread: dict[str, float]) -> float | None:
    """How many spreads the nearest part of a measurement is from its bound; None where nothing spreads or nothing is measured.

    Far away, the bound feels nothing; near zero, the verdict hangs on the dice.
    """
    kind, low, high = claims.relation(claim)
    if kind == "true":
        return None
    parts = measured if isinstance(measured, dict) else {"": measured}
    distances = []
    for name, value in parts.items():
        if not isinstance(value, int | float) or not spread.get(name):
            continue
        away = min(abs(value - edge) for edge in (low, high) if math.isfinite(edge))
        distances.append(away / spread[name])
    return min(distances) if distances else None


def spread(record: dict | None, seen: dict | None) -> dict[str, float]:
    """How much each part of a measurement moves from one run to another: between other seeds, where they were tried.

    Elsewhere it is the standard error of a mean over the page's own seeds; what has neither has no spread.
    """
    if seen and seen.get("spread"):
        return seen["spread"]
    interval, measured = (record or {}).get("interval") or {}, (record or {}).get("measured")
    by_part = interval if isinstance(measured, dict) and not isinstance(interval.get("seeds"), int) else {"": interval}
    return {name: one["spread"] / math.sqrt(one["seeds"]) for name, one in by_part.items() if one and one.get("spread")}


def times(claim: claims.Claim, measured) -> float | None:
    """How many times wider a bound is than what it holds: the least part's; None where a part is outside, or there is no width.

    For `< x` that is x over the value, for `= x` and ranges half the width over the distance from the middle. A bound `> x`
    has no width: what lies above it may be as large as it likes.
    """
    kind, low, high = claims.relation(claim)
    if kind in ("true", ">"):
        return None
    parts = list(measured.values()) if isinstance(measured, dict) else measured if isinstance(measured, list) else [measured]
    if not all(isinstance(value, int | float) and claim.holds(value) for value in parts):
        return None
    middle, width = (0.0, high) if kind == "<" else ((low + high) / 2, (high - low) / 2)
    away = max((abs(value - middle) for value in parts), default=0.0)
    return (width / away if away else math.inf) if width > 0 else None


def exact(claim: claims.Claim) -> bool:
    """Whether a row is an identity, which holds to the last digits whatever its bound: its reason says so."""
    return re.search(r"\b(exact|algebra|identity|rounding|round-off|by construction)", claim.reason, re.I) is not None


def blunt(book: Path, papers: list[str] | None = None) -> list[tuple[claims.Claim, dict, float, float]]:
    """Rows whose bound would not feel much: more than `WIDE` spreads away and more than `WIDE` times wider than the number.

    (claim, record, slack, times) each, the widest first; identities are left out. Either alone is no fault: an effect may be
    strong beside its scatter, and a bound taken from the paper's words generous.
    """
    known, found = other_seeds(book), []
    for claim, record in every(book, papers):
        if record is None or exact(claim) or claim.rank == "check":
            continue
        away = slack(claim, record["measured"], spread(record, known.get(claim.id)))
        wide = times(claim, record["measured"])
        if away is not None and wide is not None and min(away, wide) > WIDE:
            found.append((claim, record, away, wide))
    return sorted(found, key=lambda row: -row[3])
