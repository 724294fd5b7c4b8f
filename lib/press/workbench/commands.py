"""The commands behind `python -m lib`: build the book, test it, run a page, list pages and data."""

import argparse
import os
import re
import subprocess
import sys
import time

from lib.press import environment, pages

ROOT = environment.ROOT
OUTPUT = ROOT / "_build" / "html"
STRICT = ("-W", "--keep-going")  # warnings are errors, and all of them are shown
SCORE = re.compile(r"(<!-- score -->).*?(<!-- /score -->)", re.S)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m lib", description="Racing to Simplicity: build, rerun and test the book.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    commands.add_parser("setup", help="set up the environment and stop").set_defaults(action=lambda _: 0)

    book = commands.add_parser("book", help="re-execute stale pages and render the book")
    book.set_defaults(action=build_book)

    test = commands.add_parser("test", help="run the whole suite, or the part that pytest's arguments name")
    test.add_argument("pytest", nargs=argparse.REMAINDER, help="arguments for pytest")
    test.set_defaults(action=run_tests)

    execute = commands.add_parser("execute", help="re-execute stale pages (or the named ones)")
    execute.add_argument("page", nargs="*")
    execute.add_argument("--force", action="store_true", help="also when they are not stale")
    execute.set_defaults(action=execute_pages)

    inner = commands.add_parser("_execute")
    inner.add_argument("page")
    inner.set_defaults(action=lambda options: pages.execute_and_report(options.page))

    run = commands.add_parser("run", help="run one page with other parameters, through papermill, into _runs/")
    run_options(run)
    run.set_defaults(action=run_page)

    sweep = commands.add_parser("sweep", help="run one page over a grid of parameters, on all cores or a Dask cluster")
    run_options(sweep)
    sweep.add_argument("--grid", action="append", default=[], metavar="NAME=VALUES", help="0:10 | 0.1:0.9:0.1 | a,b,c")
    sweep.add_argument("--on", default="local", metavar="ADDRESS", help="local (default) or a Dask scheduler, tcp://host:8786")
    sweep.add_argument("--workers", type=positive, help="processes of the local cluster (default: one per core)")
    sweep.add_argument("--timeout", type=float, default=3600.0, metavar="SECONDS", help="for one point (default: 3600)")
    sweep.add_argument("--force", action="store_true", help="run finished points again")
    sweep.add_argument("--dry-run", action="store_true", help="only list the points")
    sweep.set_defaults(action=sweep_page)

    point = commands.add_parser("_point")
    point.add_argument("text")
    point.set_defaults(action=run_one_point)

    table = commands.add_parser("results", help="one table of all finished runs of a page")
    table.add_argument("page")
    table.add_argument("--csv", metavar="FILE", help="write the table there instead of showing it")
    table.set_defaults(action=show_results)

    keep = commands.add_parser("record", help="keep a run's row with the book, for its page to show")
    keep.add_argument("run", help="its name, or the beginning of it")
    keep.set_defaults(action=record_run)

    listing = commands.add_parser("pages", help="list the pages, their parameters and whether they are fresh")
    listing.set_defaults(action=list_pages)

    commands.add_parser("data", help="list the data sets: bundled, cached or missing; fetch one")  # has options of its own
    if arguments[:1] == ["data"]:
        from lib.data import datasets

        return datasets.main(arguments[1:])

    options = parser.parse_args(arguments)
    try:
        return options.action(options)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number above zero, not '{text}'")
    return int(text)


def complain(error: Exception | str) -> int:
    print(error, file=sys.stderr)
    return 2


def build_book(options) -> int:
    start = time.perf_counter()
    print("pages:", flush=True)
    failures = pages.bring_up_to_date(pages.every())
    for failure in failures:
        print(f"\n{failure}", file=sys.stderr)
    if failures:
        return 1
    update_readme()
    code = render()
    if code == 0:
        print(f"\nThe book is at {OUTPUT / 'index.html'} ({time.perf_counter() - start:.0f} s).")
    return code


def update_readme() -> None:
    """Keep the README's scoreboard line at what the executed pages say."""
    from lib.press.rendering.book import score_sentence

    path = ROOT / "README.md"
    before = path.read_text(encoding="utf-8")
    after = SCORE.sub(rf"\g<1>{score_sentence(ROOT / 'book')}\g<2>", before)
    if after != before:
        path.write_text(after, encoding="utf-8")


def render() -> int:
    """Render with warnings as errors."""
    command = ["jupyter-book", "build", str(ROOT), "--path-output", str(ROOT), *STRICT]
    executable = os.path.join(os.path.dirname(sys.executable), command[0])
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}
    print("rendering …", flush=True)
    done = subprocess.run(
        [executable, *command[1:]], cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        lines = [pages.plain_text(line) for line in done.stdout.splitlines()]
        wrong = [line for line in lines if any(word in line for word in ("WARNING", "ERROR", "Error", "rror:"))]
        print("\n".join(wrong or lines[-20:]), file=sys.stderr)
        print("The book did not render; warnings count as errors.", file=sys.stderr)
    return done.returncode


def run_tests(options) -> int:
    """pytest over tests/ and, through nbval, over every page; the last line is 'N passed, N failed'."""
    import pytest

    class Count:
        passed = failed = skipped = 0

        def pytest_runtest_logreport(self, report):
            if report.skipped:
                self.skipped += 1
            elif report.failed:
                self.failed += 1
            elif report.when == "call":
                self.passed += 1

        def pytest_collectreport(self, report):
            self.failed += report.failed

    if environment.ensure_browser() is None:
        print(f"The browser tests cannot run. {environment.NO_BROWSER}", flush=True)
    os.chdir(ROOT)
    os.environ.update(pages.kernel_environment(ROOT))
    count = Count()
    given = [argument for argument in options.pytest if argument != "--"]
    everything = ["tests", "book", "--nbval-lax", "--nbval-current-env", "-n", str(os.cpu_count() or 1), "--dist", "loadfile"]
    code = pytest.main(given or everything, plugins=[count])
    skipped = f", {count.skipped} skipped" if count.skipped else ""
    print(f"{count.passed} passed, {count.failed or int(code not in (0, 1))} failed{skipped}")
    return int(code)


def execute_pages(options) -> int:
    try:
        chosen = [pages.find(name) for name in options.page] or pages.every()
    except pages.PageError as error:
        return complain(error)
    failures = pages.bring_up_to_date(chosen, force=options.force)
    for failure in failures:
        print(f"\n{failure}", file=sys.stderr)
    return 1 if failures else 0


def run_options(parser) -> None:
    parser.add_argument("page")
    parser.add_argument("-p", "--parameter", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--preset", default="laptop", help="smoke, laptop (default) or paper")
    parser.add_argument("--device", default="cpu", help="auto, cpu (default) or cuda")


def run_page(options) -> int:
    from lib.press import parameters
    from lib.press.workbench import runs

    try:
        page = pages.find(options.page)
        given = dict(split(text) for text in options.parameter)
        settings = runs.settle(page, given, options.preset, options.device)
        print(f"{page.name}: " + ", ".join(f"{name}={value}" for name, value in settings.items()), flush=True)
        row = runs.run(page, settings)
    except (pages.PageError, parameters.ParameterError, runs.RunError) as error:
        return complain(error)
    except OSError as error:
        return complain(f"the run could not be kept ({error.strerror or error}); nothing that was finished before is touched")
    for record in row["results"].values():
        print(f"  {record['verdict']:<18} {record['id']}")
    where = runs.folder_of(page)
    where = where.relative_to(ROOT) if where.is_relative_to(ROOT) else where
    print(f"{row['status']} in {row['seconds']:.1f} s: {where / row['run']}.ipynb and .json")
    if row["status"] == "failed":
        print(row["error"], file=sys.stderr)
        return 1
    return 0


def sweep_page(options) -> int:
    from lib.press import parameters
    from lib.press.workbench import runs, sweeps

    try:
        page = pages.find(options.page)
        given = dict(split(text) for text in options.parameter)
        pick = sweeps.device_picker(options.on)
        todo = sweeps.points(page, options.grid, given, options.preset, options.device, pick)
        if options.dry_run:
            for point in todo:
                state = "finished" if point.finished(page) else "to run"
                print(f"{point.name}  {state:<9} {sweeps.describe(point)}")
            print(f"{len(todo)} points")
            return 0
        how = {"on": options.on, "workers": options.workers, "timeout": options.timeout, "force": options.force}
        outcome = sweeps.sweep(page, todo, **how)
    except (pages.PageError, parameters.ParameterError, runs.RunError) as error:
        return complain(error)
    print(f"{outcome.finished} finished, {outcome.skipped} skipped (already finished), {outcome.failed} failed")
    if outcome.interrupted:
        left = len(todo) - outcome.finished - outcome.skipped - outcome.failed
        print(f"stopped with {left} points to go; give the same command again to go on")
        return 130
    return 1 if outcome.failed else 0


def run_one_point(options) -> int:
    from lib.press.workbench import sweeps

    return sweeps.execute_point(options.text)


def show_results(options) -> int:
    from lib.press.workbench import runs

    try:
        table = runs.results(options.page)
    except pages.PageError as error:
        return complain(error)
    if table.empty:
        print(f"there are no finished runs of {options.page} yet; make one with `python -m lib run {options.page}`")
    elif options.csv:
        table.to_csv(options.csv, index=False)
        print(f"{len(table)} runs written to {options.csv}")
    else:
        print(table.drop(columns=["fingerprint"]).to_string(index=False, max_colwidth=24))
    return 0


def record_run(options) -> int:
    from lib.press.workbench import runs

    try:
        target = runs.record(options.run)
    except runs.RunError as error:
        return complain(error)
    print(f"recorded as {target.relative_to(ROOT)}; its page shows it after the next `make book`")
    paper, page = target.parent.parent.name, target.name.rpartition("-")[0]
    if "```{recorded}" not in pages.find(f"{paper}/{page}").markdown.read_text(encoding="utf-8"):
        print(f"(book/{paper}/{page}.md has no {{recorded}} box yet: add one where the run belongs)")
    return 0


def split(text: str) -> tuple[str, str]:
    from lib.press.parameters import ParameterError

    name, sign, value = text.partition("=")
    if not sign or not name:
        raise ParameterError(f"write a parameter as NAME=VALUE, not '{text}'")
    return name, value


def list_pages(options) -> int:
    from lib.press import parameters
    from lib.press.workbench import runs

    known = pages.seconds()
    for page in pages.every():
        reasons = pages.stale(page)
        state = f"stale: {reasons[0]}" if reasons else "fresh"
        took = f"{known[page.name]:.1f} s" if page.name in known else "–"
        sizes = runs.presets(page)
        print(f"{page.name}  (laptop {took}, {state})")
        if "paper" in sizes:
            kept = runs.recorded(page)
            made = f"; recorded: {', '.join(row['run'] for row in kept)}" if kept else ""
            print(f"    paper preset: {sizes.get('cost', 'cost not estimated')}{made}")
        for p in parameters.of_page(page.markdown).values():
            other = ", ".join(f"{name} {sizes[name][p.name]!r}" for name in ("smoke", "paper") if p.name in sizes.get(name, {}))
            print(f"    {p.name}: {p.type} = {p.default!r}  {p.help}" + (f"  ({other})" if other else ""))
    return 0
