"""The commands behind `python -m lib`: build the book, test it, run a page, list pages and data."""

import argparse
import os
import sys

from lib.press import environment, files, pages, terminal
from lib.press.bench import command as bench
from lib.press.bindery import commands as bindery
from lib.press.clusters import slurm
from lib.press.errors import PageError, Problem
from lib.press.reports import commands as reporting
from lib.press.workbench import execution
from lib.press.workbench.arguments import duration, positive

ROOT = environment.ROOT


def main(arguments: list[str]) -> int:
    """The status of a command; what goes wrong, in whichever, is one sentence."""
    return terminal.guarded(lambda: perform(arguments))


def perform(arguments: list[str]) -> int:
    """Carry out a command."""
    for argument in arguments:
        try:
            argument.encode("utf-8")
        except UnicodeEncodeError:
            raise Problem(f"'{ascii(argument)[1:-1]}' is not text in this terminal's encoding") from None
    if arguments[:1] == ["data"]:  # has options of its own
        from lib.data import datasets

        return datasets.main(arguments[1:])
    if arguments[:1] == ["test"] and arguments[1:] not in (["-h"], ["--help"]):  # everything else is for pytest
        from lib.press.bindery import suite

        return suite.main([argument for argument in arguments[1:] if argument != "--"])
    options = parser().parse_args(arguments)
    return options.action(options)


class OneSentence(argparse.ArgumentParser):
    """A parser whose complaint is one sentence; what may be said instead is in its help."""

    def error(self, message: str) -> None:
        """End with status 2 and say what is wrong."""
        self.exit(2, f"{self.prog}: error: {message} (`{self.prog} --help` shows what may be given)\n")


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = OneSentence(prog="python -m lib", description="Racing to Simplicity: build, rerun and test the book.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    commands.add_parser("setup", help="set up the environment and stop").set_defaults(action=lambda _: 0)

    bindery.add(commands)

    execute = commands.add_parser("execute", help="re-execute stale pages (or the named ones)")
    execute.add_argument("page", nargs="*")
    execute.add_argument("--force", action="store_true", help="also when they are not stale")
    execute.set_defaults(action=execute_pages)

    inner = commands.add_parser("_execute")
    inner.add_argument("page")
    inner.set_defaults(action=lambda options: execution.execute_and_report(options.page))

    reporting.add(commands, run_options)

    sweep = commands.add_parser("sweep", help="run one page over a grid of parameters, here, on Slurm or a Dask cluster")
    run_options(sweep)
    sweep.add_argument("--grid", action="append", default=[], metavar="NAME=VALUES", help="0:10 | 0.1:0.9:0.1 | a,b,c")
    sweep.add_argument("--on", default="local", metavar="PLACE", help="local (default), slurm or a scheduler, tcp://host:8786")
    sweep.add_argument("--workers", type=positive, help="processes of the local cluster (default: one per core)")
    sweep.add_argument("--timeout", type=duration, default=3600.0, metavar="SECONDS", help="for one point (default: 3600)")
    sweep.add_argument("--force", action="store_true", help="run finished points again")
    sweep.add_argument("--dry-run", action="store_true", help="only list the points")
    sweep.add_argument("--export", metavar="FILE", help="only write one command per point that is not finished, to run anywhere")
    slurm.add_options(sweep)
    sweep.add_argument("--open", action="store_true", help="open the report in a browser")
    sweep.set_defaults(action=sweep_page)

    point = commands.add_parser("_point")
    point.add_argument("text")
    point.set_defaults(action=run_one_point)

    keep = commands.add_parser("record", help="keep a run's row with the book, for its page to show")
    keep.add_argument("run", help="its name, or the beginning of it; with --still, the page")
    keep.add_argument("--still", metavar="COMMIT", help="show that the recorded runs of a page still hold: it measures what it "
                      "measured with the code of this commit, in its smoke size")  # fmt: skip
    keep.set_defaults(action=record_run)

    listing = commands.add_parser("pages", help="list the pages, their parameters and whether they are fresh")
    listing.set_defaults(action=list_pages)

    mutate = commands.add_parser("mutate", help="plant small errors in the numeric modules: do the unit tests feel them?")
    mutate.add_argument("module", nargs="*", help="linear/theory, or a room, linear (default: all)")
    mutate.add_argument("--sample", type=positive, metavar="N", help="only N errors, drawn at random over the modules")
    mutate.add_argument("--seed", type=int, default=0, help="which sample (default: 0)")
    mutate.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, help="at a time (default: one per core)")
    mutate.add_argument("--record", action="store_true", help="keep the result with the book")
    mutate.set_defaults(action=plant_errors)

    seeds = commands.add_parser("seeds", help="run pages with other seeds: which verdicts flip, how far is each from its bound?")
    seeds.add_argument("page", nargs="*", help="default: all pages with a seed")
    seeds.add_argument("--count", type=positive, default=5, help="how many other seeds (default: 5)")
    seeds.add_argument("--record", action="store_true", help="keep the result with the book")
    seeds.add_argument("--force", action="store_true", help="run finished seeds again")
    seeds.add_argument("--known", action="store_true", help="run nothing: only count seeds that have been run with this code")
    seeds.set_defaults(action=try_seeds)

    slack = commands.add_parser("slack", help="how far rows are from their bounds; whose bound would feel nothing?")
    slack.add_argument("paper", nargs="*", help="folders of the book (default: all)")
    slack.add_argument("--all", action="store_true", help="every row that has a slack, not only those with a blunt bound")
    slack.set_defaults(action=show_slack)

    bench.add(commands)

    commands.add_parser("data", help="list the data sets: bundled, cached or missing; fetch one")
    return parser


def execute_pages(options) -> int:
    """`python -m lib execute`: re-execute stale pages, or the named ones."""
    chosen = [pages.find(name) for name in options.page] or pages.every()
    failures = execution.bring_up_to_date(chosen, force=options.force)
    for failure in failures:
        print(f"\n{failure}", file=sys.stderr)
    return 1 if failures else 0


def run_options(parser) -> None:
    """The options that `run` and `sweep` share."""
    parser.add_argument("page")
    parser.add_argument("-p", "--parameter", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--preset", default="laptop", help="smoke, laptop (default) or paper")
    parser.add_argument("--device", default="cpu", help="auto, cpu (default) or cuda")


def sweep_page(options) -> int:
    """`python -m lib sweep`: one page over a grid of parameters."""
    from lib.press.clusters import export, places
    from lib.press.workbench import sweeps

    page = reporting.in_step(options.page)
    place = slurm.chosen(options)
    pick = places.device_picker(None if options.export else place)
    todo = sweeps.points(page, options.grid, reporting.given(options), options.preset, options.device, pick)
    if options.dry_run:
        for point in todo:
            state = "finished" if point.finished(page) else "to run"
            print(f"{point.name}  {state:<9} {sweeps.describe(point)}")
        print(terminal.count(len(todo), "point"))
        return 0
    if options.export:
        print(export.write(options.export, page, todo, options.force))
        return 0
    how = {"on": place, "workers": options.workers, "timeout": options.timeout, "force": options.force}
    outcome = sweeps.sweep(page, todo, **how)
    print(f"{outcome.finished} finished, {outcome.skipped} skipped (already finished), {outcome.failed} failed")
    reporting.sweep_report(page, todo, options.open)
    if outcome.interrupted:
        left = terminal.count(len(todo) - outcome.finished - outcome.skipped - outcome.failed, "point")
        print(f"stopped with {left} to go; give the same command again to go on")
        return 130
    return 1 if outcome.failed else 0


def run_one_point(options) -> int:
    """One point of a sweep, in a process of its own."""
    from lib.press.workbench import sweeps

    return sweeps.execute_point(options.text)


def record_run(options) -> int:
    """`python -m lib record`: keep a run's row with the book, or show that the rows of a page still hold."""
    from lib.press.verdicts import recordings

    if options.still:
        kept = recordings.still(pages.find(options.run), options.still)
        print(f"{terminal.count(len(kept), 'recorded run')} of {options.run} marked as current" if kept else "nothing to do")
        return 0
    target = recordings.record(options.run)
    print(f"recorded as {target.relative_to(ROOT)}; its page shows it after the next `make book`")
    paper, page = target.parent.parent.name, target.name.rpartition("-")[0]
    if "```{recorded}" not in files.read_text(pages.find(f"{paper}/{page}").markdown):
        print(f"(book/{paper}/{page}.md has no {{recorded}} box yet: add one where the run belongs)")
    return 0


def plant_errors(options) -> int:
    """`python -m lib mutate`: plant errors and see whether the tests notice."""
    from lib.press.trials import mutants

    how = {"sample": options.sample, "seed": options.seed, "jobs": options.jobs}
    record = mutants.run(options.module, **how, say=lambda text: print(text, flush=True))
    print(f"\n{mutants.table(record)}")
    if record["red"]:
        print(f"{terminal.count(len(record['red']), 'test')} failed without any planted error (not asked): {record['red'][0]} …")
    if options.record:
        print(f"recorded as {mutants.write(record).relative_to(ROOT)}")
    caught = mutants.share(mutants.total(record))
    print(f"{caught:.1%} caught of those that change a number; {mutants.ENOUGH:.0%} is enough")
    return 0 if caught >= mutants.ENOUGH else 1


def try_seeds(options) -> int:
    """`python -m lib seeds`: does a verdict flip when the dice fall otherwise?"""
    from lib.press.verdicts import seeds

    return seeds.main(options.page, options.count, options.record, options.force, options.known)


def show_slack(options) -> int:
    """`python -m lib slack`: how far rows are from their bounds, and whose bound would feel nothing."""
    from lib.press.verdicts import seeds

    return seeds.slack(options.paper, options.all)


def list_pages(options) -> int:
    """`python -m lib pages`: all pages, their parameters and whether they are fresh."""
    from lib.press import parameters
    from lib.press.verdicts import recordings
    from lib.press.workbench import runs

    known, damaged = pages.seconds(), {}
    for page in pages.every():
        reasons = pages.stale(page)
        try:
            pages.stored(page)
        except PageError as error:
            damaged[page] = f"{error}; `python -m lib execute {page.name}` makes it again"
        state = f"stale: {reasons[0]}" if reasons else "fresh"
        took = f"{known[page.name]:.1f} s" if page.name in known else "–"
        sizes = runs.presets(page)
        print(f"{page.name}  (laptop {took}, {state})")
        if "paper" in sizes:
            kept = recordings.recorded(page) if page not in damaged else []
            made = f"; recorded: {', '.join(row['run'] for row in kept)}" if kept else ""
            print(f"    paper preset: {sizes.get('cost', 'cost not estimated')}{made}")
        for p in parameters.of_page(page.markdown).values():
            chosen = ((name, sizes.get(name) or {}) for name in ("smoke", "paper"))
            other = ", ".join(f"{name} {size[p.name]!r}" for name, size in chosen if p.name in size)
            print(f"    {p.name}: {p.type} = {p.default!r}  {p.help}" + (f"  ({other})" if other else ""))
    for problem in damaged.values():
        print(problem, file=sys.stderr)
    return 1 if damaged else 0
