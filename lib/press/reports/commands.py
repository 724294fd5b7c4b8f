"""Commands for looking at runs: `run`, `report`, `compare`, `plot`, `results`; and for pages in Jupyter: `pair`, `lab`."""

import importlib.util
import stat
import sys
import webbrowser
from pathlib import Path

from lib.press import files, pages, terminal
from lib.press.errors import ParameterError, Problem
from lib.press.workbench import arguments


def add(commands, run_options) -> None:
    """Add these commands to the parser; `run_options` adds what `run` shares with `sweep`."""
    run = commands.add_parser("run", help="run one page with other parameters, through papermill, into _runs/")
    run_options(run)
    run.add_argument("--open", action="store_true", help="open the report in a browser")
    run.set_defaults(action=run_page)

    table = commands.add_parser("results", help="one table of all finished runs of a page")
    table.add_argument("page")
    table.add_argument("--claim", action="append", default=[], metavar="ID", help="show this claim (more than once: several)")
    table.add_argument("--csv", metavar="FILE", help="write all of it there, a line for each run")
    table.add_argument("--parquet", metavar="FILE", help="the same as a Parquet file (needs pyarrow)")
    table.add_argument("--long", action="store_true", help="in files: a line for each measured number, with its verdict")
    table.set_defaults(action=show_results)

    report = commands.add_parser("report", help="make the HTML report of a run again")
    report.add_argument("run", help="its name, or the beginning of it")
    report.add_argument("--open", action="store_true", help="open it in a browser")
    report.set_defaults(action=make_report)

    compare = commands.add_parser("compare", help="two runs, or a run and the book, side by side, figures included")
    compare.add_argument("run", nargs=2, help="the name of a run (or its beginning), or 'book'")
    compare.add_argument("--open", action="store_true", help="open the comparison in a browser")
    compare.set_defaults(action=compare_runs)

    plot = commands.add_parser("plot", help="draw what runs of a page measured against a parameter that was swept")
    plot.add_argument("page")
    plot.add_argument("--claim", required=True, metavar="ID", help="what was measured")
    plot.add_argument("--against", required=True, metavar="PARAMETER", help="what was swept")
    plot.add_argument("--group", metavar="PARAMETER", help="what the band spreads over (default: seed)")
    plot.add_argument("-p", "--parameter", action="append", default=[], metavar="NAME=VALUE", help="only runs with this value")
    plot.add_argument("-o", "--output", metavar="FILE", help="a .png, .svg or .pdf (default: beside the runs)")
    plot.add_argument("--open", action="store_true", help="open the picture")
    plot.set_defaults(action=plot_claim)

    pair = commands.add_parser("pair", help="where a page and its notebook differ; --keep settles it")
    pair.add_argument("page", nargs="?", help="default: all pages")
    pair.add_argument("--keep", choices=("md", "ipynb"), help="let this one win; the other's text is kept under _build/kept")
    pair.set_defaults(action=settle_pair)

    lab = commands.add_parser("lab", help="open a page in JupyterLab, on this machine only")
    lab.add_argument("page", nargs="?")
    lab.add_argument("--port", type=arguments.port, default=8888, help="default: 8888, or the next that is free")
    lab.add_argument("--no-browser", action="store_true", help="only say the address")
    lab.set_defaults(action=open_lab)


def given(options) -> dict[str, str]:
    """The parameters of the command line, as text by name."""
    found = {}
    for text in options.parameter:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise ParameterError(f"write a parameter as NAME=VALUE, not '{text}'")
        found[name] = value
    return found


def shown(path: Path) -> Path:
    """A path as one types it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def look(path: Path, wanted: bool) -> None:
    """Open a file in the reader's browser, if that is wanted; say so where there is none."""
    if wanted and not webbrowser.open(path.resolve().as_uri()):
        print(f"no browser was found here; open {path} yourself", file=sys.stderr)


def in_step(name: str) -> pages.Page:
    """A page whose .md holds what was edited last, in Jupyter or beside it."""
    from lib.press.notebooks import pairing

    page = pages.find(name)
    pairing.settle(page, lambda sentence: print(sentence, flush=True))
    return page


def run_page(options) -> int:
    """`python -m lib run`: one page with other parameters."""
    from lib.press.reports import facts, table
    from lib.press.workbench import runs, sweeps

    page = in_step(options.page)
    settings = runs.settle(page, given(options), options.preset, options.device)
    print(f"{page.name}: " + ", ".join(f"{name}={value}" for name, value in settings.items()), flush=True)
    sweeps.probe_writable(runs.folder_of(page))
    name = runs.name_of(page, settings)
    row = sweeps.run_point(str(page.root), page.name, settings, name, None, force=True, progress=True)
    for line in table.of_run(page, row["results"]):
        print(line)
    if row["results"]:
        print(facts.summary(facts.lines(page, row["results"])))
    where = shown(runs.folder_of(page))
    kept = [ending for ending in (".html", ".ipynb", ".json") if (where / f"{name}{ending}").exists()]
    print(f"{row['status']} in {row['seconds']:.1f} s: {where / name}{' and '.join([', '.join(kept[:-1]), *kept[-1:]])}")
    if ".html" in kept:
        look(where / f"{name}.html", options.open)
    if row["status"] == "failed":
        print(row["error"], file=sys.stderr)
        return 1
    return 0


def sweep_report(page: pages.Page, points: list, wanted: bool) -> None:
    """Write the report of a sweep's points, as far as they are done, and say where it is."""
    from lib.press.reports import sweep
    from lib.press.workbench import runs

    found = [row for point in points if (row := runs.read_row(point.path(page)))]
    if any(row["status"] == "finished" for row in found):
        path = sweep.write(page, found)
        print(f"a report with pictures: {shown(path)}")
        look(path, wanted)


def show_results(options) -> int:
    """`python -m lib results`: all finished runs of a page, as wide as the terminal, or whole into a file."""
    from lib.press import claims
    from lib.press.reports import sweep, table
    from lib.press.workbench import runs

    page, damaged = pages.find(options.page), []
    found = [row for row in runs.rows(page, damaged) if row["status"] == "finished"]
    known = claims.of_page(page.name, page.root / "book")
    if unknown := [name for name in options.claim if name not in known]:
        import difflib

        near = difflib.get_close_matches(unknown[0], known, n=1)
        raise ParameterError(f"{page.name} has no claim '{unknown[0]}'" + (f"; did you mean '{near[0]}'?" if near else ""))
    if not found:
        print(f"there are no finished runs of {options.page} yet; make one with `python -m lib run {options.page}`")
    elif options.csv or options.parquet:
        whole = sweep.tidy(page, found) if options.long else runs.results(page.name)
        if options.csv:
            write_csv(Path(options.csv), whole.to_csv(index=False))
        if options.parquet:
            write_parquet(Path(options.parquet), whole)
        print(f"{terminal.count(len(found), 'run')} written to {' and '.join(filter(None, (options.csv, options.parquet)))}")
    else:
        print("\n".join(table.of_runs(page, found, options.claim)))
    for problem in damaged:
        print(f"left out: {problem}", file=sys.stderr)
    return 1 if damaged else 0


def write_csv(path: Path, text: str) -> None:
    """To a file, in one step, into a folder that is there; or to a pipe or a terminal."""
    try:
        mode = path.stat().st_mode if path.exists() else stat.S_IFREG
        if stat.S_ISDIR(mode) or not path.parent.is_dir():
            raise Problem(f"{path} is a folder" if stat.S_ISDIR(mode) else f"there is no folder {path.parent}")
        if not stat.S_ISREG(mode):
            path.write_text(text, encoding="utf-8")
            return
    except OSError as error:
        raise Problem(f"{path} cannot be written ({error.strerror})") from None
    files.write_whole(path, text)


def write_parquet(path: Path, table) -> None:
    """A table as a Parquet file; a sentence where nothing here can write one."""
    if not any(importlib.util.find_spec(name) for name in ("pyarrow", "fastparquet")):
        raise Problem("writing Parquet needs pyarrow, which is not installed: `pip install pyarrow`, or use --csv")
    if not path.parent.is_dir():
        raise Problem(f"there is no folder {path.parent}")
    try:
        table.to_parquet(path, index=False)
    except OSError as error:
        raise Problem(f"{path} cannot be written ({error.strerror})") from None


def make_report(options) -> int:
    """`python -m lib report`: a run's report, made again from its notebook and row."""
    from lib.press.reports import facts, run

    one = facts.find(options.run)
    path = run.path_of(one)
    files.write_whole(path, run.report(one), Problem)
    print(f"{facts.summary(facts.lines(one.page, one.results))}\n{shown(path)}")
    look(path, options.open)
    return 0


def compare_runs(options) -> int:
    """`python -m lib compare`: two runs, or a run and the book, side by side."""
    from lib.press.reports import compare, table

    one, other = compare.pair(*options.run)
    for name, (there, here) in compare.settings(one, other).items():
        print(f"{name}: {there!r} in {one.title}, {here!r} in {other.title}")
    for line in table.of_two(compare.lines(one, other), (one.title, other.title)):
        print(line)
    path = compare.write(one, other)
    print(f"figures side by side: {shown(path)}")
    look(path, options.open)
    return 0


def plot_claim(options) -> int:
    """`python -m lib plot`: what was measured against what was swept, as a picture."""
    from lib.press import parameters
    from lib.press.reports import sweep
    from lib.press.workbench import runs

    page = pages.find(options.page)
    wanted = parameters.validate(given(options), parameters.of_page(page.markdown))
    found = [row for row in runs.rows(page) if row["status"] == "finished"]
    found = [row for row in found if all(row["parameters"].get(name) == value for name, value in wanted.items())]
    found, older = sweep.current(page, found)
    if not found:
        raise Problem(f"there are no such finished runs of {page.name}; `python -m lib sweep {page.name} --grid …` makes some")
    sweep.choose(page, found, options.claim, options.against)
    target = Path(options.output) if options.output else runs.folder_of(page) / f"plot-{options.claim}-{options.against}.png"
    kind = target.suffix.removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        raise Problem(f"a picture is a .png, .svg or .pdf, not '{target.name}'")
    if not target.parent.is_dir():
        raise Problem(f"there is no folder {target.parent}")
    drawn = sweep.picture(sweep.draw(page, found, options.claim, options.against, options.group or "seed"), kind)
    try:
        target.write_bytes(drawn)
    except OSError as error:
        raise Problem(f"{target} cannot be written ({error.strerror})") from None
    print(sweep.alternative(page, found, options.claim, options.against))
    left = f" ({older} runs of older code left out)" if older else ""
    print(f"{terminal.count(len(found), 'run')}{left}: {shown(target)}")
    look(target, options.open)
    return 0


def settle_pair(options) -> int:
    """`python -m lib pair`: where a page and its notebook differ, and which of them was edited."""
    from lib.press.notebooks import pairing

    chosen = [pages.find(options.page)] if options.page else pages.every()
    if options.keep and not options.page:
        raise Problem(f"name the page whose {pairing.SIDES[options.keep]} is to be kept")
    apart = 0
    for page in chosen:
        which = pages.edited(page)
        if not which or not page.notebook.exists():
            continue
        apart += 1
        who = {"both": "both were edited", "md": "the .md was edited", "ipynb": "the notebook was edited"}[which]
        print(f"{page.name}: {who}")
        if options.keep:
            spare = pairing.keep(page, options.keep)
            print(f"{pairing.SIDES[options.keep]} is kept; what the other one said is in {shown(spare)}")
        elif options.page:
            print(pairing.differences(page))
    if not apart:
        print("they agree" if options.page else f"all {len(chosen)} pages agree with their notebooks")
    return 0


def open_lab(options) -> int:
    """`python -m lib lab`: a page in JupyterLab."""
    from lib.press.notebooks import lab

    return lab.start(pages.find(options.page) if options.page else None, options.port, not options.no_browser)
