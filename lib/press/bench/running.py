"""Run the bench: all cases, or the named ones, in one go on this machine."""

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from lib.press.bench import authors, functions, machine, networks, record, tables
from lib.press.bench.record import BenchError
from lib.press.bench.timing import Case, Effort, compare, growth
from lib.press.environment import ROOT

CASES: dict[str, Case] = networks.CASES | functions.CASES


def chosen(names: Iterable[str]) -> dict[str, Case]:
    """The named cases, or all of them."""
    names = list(names)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        raise BenchError(f"there is no case '{unknown[0]}'; there are {', '.join(CASES)}")
    return {name: case for name, case in CASES.items() if name in names or not names}


def run(
    names: Iterable[str] = (),
    *,
    effort: Effort | None = None,
    checkout: Path | None = None,
    python: str = sys.executable,
    say: Callable[[str], None] = lambda text: None,
) -> dict:
    """Measure the named cases (default: all), and the authors' programs in `checkout`; a record that `record.BENCH` describes."""
    todo, effort = chosen(names), effort or Effort()
    if checkout is not None:
        authors.checkouts(checkout)  # refuses before anything is measured
    begin, threads = time.process_time(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        about, best = machine.description(), machine.peaks(effort)
        say(f"{tables.peak_sentence(best)}; load {about['load']}")
        cases = {name: measured(name, case, best, effort, say) for name, case in todo.items()}
        seconds = round(time.process_time() - begin, 1)
        theirs = authors.timed(checkout, python) if checkout is not None else {}
    finally:
        torch.set_num_threads(threads)
    found = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "seconds": seconds, "machine": about}
    found |= {"effort": vars(effort), "peaks": best, "cases": cases, "authors": theirs}
    for name, row in theirs.items():
        say(tables.author_sentence(name, row))
    return record.checked(found, "the bench")


def measured(name: str, case: Case, best: dict[str, float], effort: Effort, say: Callable[[str], None]) -> dict:
    """One case: both programs in every precision, the share of the machine's best, and how the cost grows."""
    row = {"title": case.title, "plain": case.plain, "unit": case.unit, "sizes": case.sizes, "precisions": {}, "growth": {}}
    for precision in case.precisions:
        torch.manual_seed(0)
        pair = case.build(_dtype(precision), **case.sizes)
        found = compare(pair, effort, name)
        counted = machine.share(pair, precision, found["fast"]["median"] * pair.amounts[0], best)
        counted = counted if case.hot else None
        row["precisions"][precision] = found | ({"peak": counted} if counted else {})
        say(
            f"{name}, {precision}: {tables.ratio_words(found['ratio'])} cheaper by {case.unit}"
            + (f", {tables.share_words(counted)}" if counted else "")
        )
    precision = case.precisions[0]
    for size, (values, others) in case.grows.items():
        held = case.sizes | others

        def build(value: int, size: str = size, held: dict = held):
            return case.build(_dtype(precision), **held | {size: value})

        row["growth"][size] = {"precision": precision, "with": held} | growth(build, values, effort)
        say(f"{name}: cost grows with {size} as {tables.slope_words(row['growth'][size])}")
    return row


def _dtype(precision: str) -> torch.dtype:
    return getattr(torch, precision, torch.float64)


def main(names: list[str], folder: str | None, python: str, keep: bool) -> int:
    """`python -m lib bench`: measure, show, and with `keep` record."""
    if keep and set(chosen(names)) != set(CASES):
        raise BenchError("only a whole bench is recorded: leave out the names, or --record")
    found = run(names, checkout=Path(folder) if folder else None, python=python, say=lambda text: print(text, flush=True))
    print(f"\n{tables.ratio_table(found)}\n\n{tables.growth_table(found)}")
    if found["authors"]:
        print(f"\n{tables.authors_table(found)}")
    print(f"\n{found['seconds']:.0f} processor seconds")
    if keep:
        print(f"recorded as {record.write(found).relative_to(ROOT)}; the page on performance shows it after the next `make book`")
    return 0
