"""Does a verdict flip when the dice fall otherwise? Pages run again at the book's size with other seeds.

Every page has a parameter `seed` that moves all of its randomness. `python -m lib seeds` runs it with other seeds, lists the
spread of every row and the rows whose verdict changes, and keeps what it saw for the scoreboard (`--record`).
"""

import json
import math
from pathlib import Path

from lib.press import claims, files, pages, parameters, terminal
from lib.press.errors import ParameterError
from lib.press.verdicts import standing


def seedable(page: pages.Page) -> bool:
    """Whether a page has a seed to change."""
    return "seed" in parameters.of_page(page.markdown)


def rerun(page: pages.Page, seeds: list[int], again: bool = False, known: bool = False) -> list[dict]:
    """The rows of one run per seed, at the book's size; runs that are there already count, unless `again`, or only they do."""
    from lib.press.workbench import runs, sweeps

    if not seedable(page):
        raise ParameterError(f"{page.name} has no parameter 'seed'")
    rows = []
    for seed in seeds:
        settings = runs.settle(page, {"seed": str(seed)}, "laptop", "cpu")
        name = runs.name_of(page, settings)
        if known:
            row = runs.read_row(runs.folder_of(page) / f"{name}.json")
            rows += [row] if row and row["status"] == "finished" else []
            continue
        row = sweeps.run_point(str(page.root), page.name, settings, name, None, force=again, progress=False)
        if row["status"] == "failed":
            raise ParameterError(f"{page.name} with seed {seed} failed: {row['error'].strip().splitlines()[-1]}")
        rows.append(row)
    return rows


def parts(measured) -> dict[str, float]:
    """A measurement by name of its parts; a bare one has the name ''."""
    if isinstance(measured, dict):
        return measured
    return {str(i): value for i, value in enumerate(measured)} if isinstance(measured, list) else {"": measured}


def compare(page: pages.Page, rows: list[dict], seeds: list[int]) -> dict[str, dict]:
    """For each claim of a page: which seeds were tried, how many give another verdict, each part's spread and extremes.

    The book's own run counts for the spread. What no page measures anew (a recorded run) is left out.
    """
    book = page.root / "book"
    here, found = claims.measured_in(page.name, book), {}
    for name, claim in claims.of_page(page.name, book).items():
        measured = [row["results"][name]["measured"] for row in rows if name in row["results"]]
        if claim.verdict == "recorded" or not measured or name not in here:
            continue
        bound = claim.verdict != "undetermined"  # then no verdict is declared that could flip
        flips = sum(claims.judge(claim, one) != claim.verdict for one in measured) if bound else 0
        seen = {"seeds": seeds, "flips": flips}
        values = [parts(one) for one in [here[name]["measured"], *measured]]
        if not any(isinstance(value, bool) for value in values[0].values()):
            common = [part for part in values[0] if all(part in one for one in values)]
            seen["spread"] = {part: deviation([one[part] for one in values]) for part in common}
            seen["least"] = {part: min(one[part] for one in values) for part in common}
            seen["most"] = {part: max(one[part] for one in values) for part in common}
        found[name] = seen
    return found


def deviation(values: list[float]) -> float:
    """The standard deviation of a few numbers."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1))


def table(page: pages.Page, seen: dict[str, dict]) -> list[str]:
    """Lines for the terminal: each claim with its value, its range over seeds, its slack and whether it flips."""
    book = page.root / "book"
    here, known = claims.measured_in(page.name, book), claims.of_page(page.name, book)
    lines = []
    for name, one in seen.items():
        claim, measured = known[name], here[name]["measured"]
        ranges = ", ".join(
            f"{part + ' ' if part else ''}{claim.show(one['least'][part])} … {claim.show(one['most'][part])}"
            for part in one.get("spread", {})
        )
        away = standing.slack(claim, measured, one.get("spread", {}))
        far = "" if away is None else f"  slack {away:.1f}"
        flip = f"  FLIPS {one['flips']}/{len(one['seeds'])}" if one["flips"] else ""
        lines.append(f"  {name:<32} {claim.tolerance_text():<14} {ranges}{far}{flip}")
    return lines


def keep(book: Path, seen: dict[str, dict]) -> Path:
    """Write what was seen to book/seeds.json, beside what is known of other pages; rows that are gone are dropped."""
    there = {name for paper in claims.papers(book) for name in claims.load(paper, book)}
    merged = {name: one for name, one in (standing.other_seeds(book) | seen).items() if name in there}
    path = book / standing.SEEDS
    files.write_whole(path, json.dumps(merged, indent=1, sort_keys=True) + "\n")
    return path


def main(names: list[str], count: int, record: bool, again: bool, known: bool = False) -> int:
    """`python -m lib seeds`: other seeds for the named pages, or for all that have one; status 1 when a verdict flips.

    With `known` nothing is run: what has been run before, with the code as it is, is counted.
    """
    chosen = [pages.find(name) for name in names] or [page for page in pages.every() if seedable(page)]
    flips, seen = [], {}
    for page in chosen:
        default = parameters.of_page(page.markdown)["seed"].default if seedable(page) else 0
        others = [seed for seed in range(count + 1) if seed != default][:count]
        print(f"{page.name}: seeds {', '.join(map(str, others))}", flush=True)
        rows = rerun(page, others, again, known)
        found = compare(page, rows, [row["parameters"]["seed"] for row in rows])
        print("\n".join(table(page, found)), flush=True)
        seen |= found
        flips += [name for name, one in found.items() if one["flips"]]
    if record:
        print(f"kept in {files.shown(keep(pages.ROOT / 'book', seen))}")
    print(f"{terminal.count(len(seen), 'row')}, " + (f"{len(flips)} flip: {', '.join(flips)}" if flips else "none flips"))
    return 1 if flips else 0


def slack(papers: list[str], everything: bool = False) -> int:
    """`python -m lib slack`: rows whose bound would feel nothing, or all with their slack, the widest first."""
    book = pages.ROOT / "book"
    for paper in papers:
        claims.read(paper, book)  # says so if there is none
    if everything:
        known, found = standing.other_seeds(book), []
        for claim, record in standing.every(book, papers):
            away = standing.slack(claim, record["measured"], standing.spread(record, known.get(claim.id))) if record else None
            if away is not None:
                found.append((claim, record, away, standing.times(claim, record["measured"])))
        found.sort(key=lambda row: -row[2])
    else:
        found = standing.blunt(book, papers)
    for claim, record, away, wide in found:
        width = "" if wide is None else f"bound {wide:.0f} times the number"
        shown = f"{claim.tolerance_text():<14} {claim.show(record['measured'])[:44]:<44}"
        print(f"  {claim.id:<34} {shown} slack {away:<8.0f} {width}")
    if everything:
        print(f"{terminal.count(len(found), 'row')} with a spread")
    else:
        feel = f"more than {standing.WIDE} spreads away and more than {standing.WIDE} times wider than the number"
        print(f"{terminal.count(len(found), 'row')} with a bound {feel} (identities aside)")
    return 0
