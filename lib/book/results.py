"""What runs measured: beside the book, as one table, as a picture; and whether a verdict flips with other seeds."""

import json
import math
import statistics
from pathlib import Path

from lib import claims
from lib.book import pages, parameters, runs, sweep, verdicts
from lib.book.pages import Page
from lib.files import Problem, nearest, write_whole


def beside_the_book(row: dict, root: Path = pages.ROOT) -> str:
    """A run beside the book as text: each claim, the book's value, this run's, the tolerance, both verdicts."""
    from tabulate import tabulate

    book = root / "book"
    known, here = claims.of_page(row["page"], book), claims.measured_in(row["page"], book)
    lines, same = [], 0
    for name, record in row["results"].items():
        if name not in known:  # the claim has been renamed or given up since
            continue
        claim, there = known[name], here.get(name)
        verdict = claims.word(claim, record["verdict"])
        of_book = claims.word(claim, verdicts.verdict(claim, there))
        same += verdict == of_book
        shown = claim.show(there["measured"]) if there else "–"
        mark = "" if verdict == of_book else "≠"
        lines.append([name, shown, claim.show(record["measured"]), claim.tolerance_text(), of_book, verdict, mark])
    head = ["claim", "book", "this run", "tolerance", "book's verdict", "this run's", ""]
    table = tabulate(lines, head, disable_numparse=True, maxcolwidths=[None, 32, 32, 16, None, None, None])
    if row["status"] == "failed":
        failed = f"This run failed after {verdicts.plural(len(lines), 'check')}: {row['error'].splitlines()[0]}"
        return f"{table}\n\n{failed}" if lines else failed
    return f"{table}\n\n{same} of {len(lines)} verdicts are the book's."


def flat(row: dict) -> dict:
    """A row as one line of a table: parameters, then each measured value, then provenance."""
    line = dict(row["parameters"])
    for name, record in row["results"].items():
        line |= {f"{name}: {part}" if part else name: value for part, value in claims.parts(record["measured"]).items()}
    return line | {key: row.get(key) for key in ("status", "seconds", "finished", "commit", "run")}


def table(page: Page):
    """All runs of a page as a pandas table, a line per run, sorted by parameters; failed runs say so in `status`."""
    import pandas

    found, _ = runs.rows(page)
    if not found:
        raise Problem(f"there are no runs of {page.name} yet")
    lines = pandas.DataFrame([flat(row) for row in found])
    varied = [name for name in parameters.of_page(page) if name in lines and lines[name].nunique() > 1]
    return lines.sort_values(varied, ignore_index=True) if varied else lines


def brief(page: Page, lines, claim: str | None = None):
    """A table of runs for the terminal: parameters that vary, one claim if it is named, status, seconds and the run's name."""
    varied = [name for name in parameters.of_page(page) if lines[name].nunique() > 1]
    return lines[[*varied, *(measured(page, lines, claim) if claim else []), "status", "seconds", "run"]]


def measured(page: Page, lines, claim: str | None) -> list[str]:
    """The columns of a table of runs that hold what a claim measured, or what all claims of the page did."""
    known = claims.of_page(page.name, page.root / "book")
    if claim and claim not in known:
        raise Problem(f"{page.name} has no claim '{claim}'{nearest(claim, known)}")
    return [name for name in lines if name.split(": ")[0] in ([claim] if claim else known) and lines[name].notna().any()]


def plot(page: Page, parameter: str, claim: str | None, target: Path) -> Path:
    """What finished runs measured against one parameter, a panel per claim; other parameters that vary have colours."""
    import seaborn

    lines = table(page).query("status == 'finished'")
    if parameter not in parameters.of_page(page):
        raise Problem(f"{page.name} has no parameter '{parameter}'{nearest(parameter, parameters.of_page(page))}")
    columns = measured(page, lines, claim)
    if not columns:
        raise Problem(f"no finished run of {page.name} measured {claim or 'anything'}")
    others = [name for name in parameters.of_page(page) if name not in (parameter, "seed") and lines[name].nunique() > 1]
    lines["varied"] = lines[others].astype(str).agg(lambda row: ", ".join(f"{k}={v}" for k, v in row.items()), axis=1)
    tall = lines.melt([parameter, "varied"], columns, "claim", "measured").astype({"measured": float})
    grid = seaborn.relplot(
        tall, x=parameter, y="measured", col="claim", col_wrap=min(3, len(columns)), hue="varied" if others else None,
        kind="line", marker="o", height=2.6, facet_kws={"sharey": False},
    )  # fmt: skip
    grid.set_titles("{col_name}")
    grid.savefig(target)
    return target


# --- other seeds -----------------------------------------------------------------------------------------------------


def with_other_seeds(page: Page, count: int, run: bool = True, say=print) -> tuple[list[dict], list[int]]:
    """(rows of one run per other seed at the book's size, the seeds); with `run=False` only those that are there already."""
    known = parameters.of_page(page)
    if "seed" not in known:
        raise Problem(f"{page.name} has no parameter 'seed'")
    others = [seed for seed in range(count + 1) if seed != known["seed"].default][:count]
    points = sweep.points(page, [f"seed={','.join(map(str, others))}"], {})
    if run:
        sweep.sweep(page, [point for point in points if not runs.finished(page, point.name)], say=say)
    found = [runs.read_row(runs.path_of(page, point.name)) for point in points]
    rows = [row for row in found if row and row["status"] == "finished"]
    return rows, [row["parameters"]["seed"] for row in rows]


def compare(page: Page, rows: list[dict], seeds: list[int]) -> dict[str, dict]:
    """For each claim of a page: which seeds were tried, how many give another verdict, each part's spread and extremes.

    The book's own run counts for the spread. What no page measures anew (a recorded run) is left out.
    """
    book, found = page.root / "book", {}
    here = claims.measured_in(page.name, book)
    for name, claim in claims.of_page(page.name, book).items():
        others = [row["results"][name] for row in rows if name in row["results"]]
        if claim.verdict == "recorded" or not others or name not in here:
            continue
        bound = claim.verdict != "undetermined"  # then no verdict is declared that could flip
        seen = {"seeds": seeds, "flips": sum(one["verdict"] != claim.verdict for one in others) if bound else 0}
        values = [claims.parts(one["measured"]) for one in [here[name], *others]]
        if not any(isinstance(value, bool) for value in values[0].values()):
            common = {part: [one[part] for one in values] for part in values[0] if all(part in one for one in values)}
            seen["spread"] = {part: statistics.stdev(list_) for part, list_ in common.items()}
            seen["least"] = {part: min(list_) for part, list_ in common.items()}
            seen["most"] = {part: max(list_) for part, list_ in common.items()}
        found[name] = seen
    return found


def seeds_table(page: Page, seen: dict[str, dict]) -> str:
    """Each claim with its bound, its range over seeds, its distance from the bound in spreads, and whether it flips."""
    from tabulate import tabulate

    book, lines = page.root / "book", []
    here, known = claims.measured_in(page.name, book), claims.of_page(page.name, book)
    for name, one in seen.items():
        claim = known[name]
        ranges = [
            f"{part + ' ' if part else ''}{claim.show(one['least'][part])} … {claim.show(one['most'][part])}"
            for part in one.get("spread", {})
        ]
        away = verdicts.slack(claim, here[name]["measured"], one.get("spread", {}))
        slack = "" if away is None or not math.isfinite(away) else f"{away:.1f}"
        flips = f"{one['flips']} of {len(one['seeds'])}" if one["flips"] else ""
        lines.append([name, claim.tolerance_text(), "\n".join(ranges), slack, flips])
    return tabulate(lines, ["claim", "bound", "range over seeds", "slack (spreads)", "flips"], disable_numparse=True)


def record_seeds(book: Path, seen: dict[str, dict]) -> Path:
    """Write what was seen to book/seeds.json, beside what is known of other pages; rows that are gone are dropped."""
    there = {name for paper in claims.papers(book) for name in claims.load(paper, book)}
    merged = {name: one for name, one in (verdicts.other_seeds(book) | seen).items() if name in there}
    path = book / verdicts.SEEDS
    write_whole(path, json.dumps(merged, indent=1, sort_keys=True) + "\n")
    return path
