"""The command line: `python -m lib book`, `run`, `sweep`, …; `python -m lib` lists them."""

import os
import sys
from pathlib import Path

try:
    import click
except ImportError:
    sys.exit("The book's packages are not installed here: run `make setup`, then `source .venv/bin/activate`.")

from lib.files import Problem


class Commands(click.Group):
    """Says what is wrong in one sentence, without a traceback."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except Problem as problem:
            click.echo(problem, err=True)
            ctx.exit(2)


def given(values: tuple[str, ...]) -> dict[str, str]:
    """Parameters of the command line, NAME=VALUE, none of them twice."""
    found = {}
    for text in values:
        name, sign, value = text.partition("=")
        if not sign:
            raise Problem(f"write a parameter as NAME=VALUE, not '{text}'")
        if name in found:
            raise Problem(f"the parameter '{name}' is given twice")
        found[name] = value
    return found


def run_options(command):
    """The options that `run` and `sweep` share."""
    command = click.option("--device", default="cpu", help="auto, cpu (default) or cuda.")(command)
    command = click.option("--preset", default="laptop", help="smoke, laptop (default) or paper.")(command)
    command = click.option("-p", "--parameter", multiple=True, metavar="NAME=VALUE", help="Another value; may be repeated.")(
        command
    )
    return click.argument("page")(command)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def cli():
    """Racing to Simplicity: build the book, rerun its pages, run them with other parameters."""


@cli.command()
def book():
    """Execute stale pages and render the book to _build/html."""
    from lib.book import build

    build.build()


@cli.command()
@click.argument("page", nargs=-1)
@click.option("--force", is_flag=True, help="Also pages that are not stale.")
def execute(page, force):
    """Execute stale pages, or the named ones, with the book's own parameters.

    Fails if a verdict is not the declared one (RACING_DRAFT=1 lets a page run to its end).
    """
    from lib.book import execute as execution
    from lib.book import pages

    chosen = [pages.find(name) for name in page] or pages.all_pages()
    failures = execution.bring_up_to_date(chosen, force=force)
    if failures:
        raise Problem("\n\n".join(failures))


@cli.command("pages")
def list_pages():
    """List the pages: seconds, parameters, presets, and whether they are fresh."""
    from lib.book import freshness, pages, parameters, runs

    taken = freshness.seconds(pages.ROOT)
    for page in pages.all_pages():
        reasons, sizes = freshness.stale(page), parameters.sizes(page)
        state = f"stale: {reasons[0]}" if reasons else "fresh"
        print(f"{page.name}  (laptop {taken.get(page.name, 0):.0f} s, {state})")
        if sizes.paper is not None:
            kept = ", ".join(row["run"] for row in runs.recorded(page))
            print(f"    paper preset: {sizes.cost or 'cost not estimated'}" + (f"; recorded: {kept}" if kept else ""))
        for p in parameters.of_page(page).values():
            other = [(name, (getattr(sizes, name) or {}).get(p.name)) for name in ("smoke", "paper")]
            values = ", ".join(f"{name} {value}" for name, value in other if value is not None)
            print(f"    {p.name}: {p.type} = {p.default!r}  {p.help}" + (f"  ({values})" if values else ""))


@cli.command()
@run_options
def run(page, parameter, preset, device):
    """Run a page with other parameters (papermill), and print what it measured beside the book."""
    from lib.book import pages, parameters, runs

    found = pages.find(page)
    settings = parameters.resolve(found, given(parameter), preset, device)
    row = runs.run(found, settings, progress=sys.stderr.isatty())
    report(row)
    if row["status"] == "failed":
        sys.exit(1)


def report(row: dict) -> None:
    """Print a run beside the book and where its files are."""
    from lib.book import pages, results, runs

    path = runs.path_of(pages.Page(row["page"], pages.ROOT), row["run"])
    print(results.beside_the_book(row))
    print(f"Run {row['run']}, {row['seconds']:.0f} s: {path} and the executed notebook beside it.")


@cli.command()
@run_options
@click.option("--grid", multiple=True, metavar="NAME=VALUES", help="0:10 | 0.1:0.9:0.1 | a,b,c; may be repeated.")
@click.option("--on", default="local", metavar="PLACE", help="local (default), slurm, or a Dask scheduler tcp://host:8786.")
@click.option("--workers", type=click.IntRange(1), help="Processes on this machine (default: one per core).")
@click.option("--jobs", type=click.IntRange(1), default=4, help="Slurm jobs at a time (default: 4).")
@click.option("--cluster", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
              help="YAML with arguments of dask_jobqueue.SLURMCluster: queue, account, memory, walltime, ….")  # fmt: skip
@click.option("--force", is_flag=True, help="Run finished points again.")
@click.option("--dry-run", is_flag=True, help="Only list the points.")
@click.option("--export", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Only write one `python -m lib run` command per unfinished point, to run anywhere.")  # fmt: skip
def sweep(page, parameter, preset, device, grid, on, workers, jobs, cluster, force, dry_run, export):
    """Run one page over a grid of parameters, on Dask. Give the command again to go on where it stopped."""
    from lib.book import pages, runs
    from lib.book import sweep as sweeps
    from lib.book.verdicts import plural

    found = pages.find(page)
    points = sweeps.points(found, list(grid), given(parameter), preset, device, here=on == "local" and not export)
    done = {point.name for point in points if not force and runs.finished(found, point.name)}
    todo = [point for point in points if point.name not in done]
    if dry_run:
        for point in points:
            print(f"{point.name}  {'finished' if point.name in done else 'to run  '}  {sweeps.changed(found, point)}")
        print(plural(len(points), "point"))
    elif export:
        print(f"{plural(sweeps.export(export, found, todo), 'command')} written to {export}")
    else:
        try:
            rows = sweeps.sweep(found, todo, on=on, workers=workers, jobs=jobs, options=cluster)
        except KeyboardInterrupt:
            left = sum(not runs.finished(found, point.name) for point in todo)
            click.echo(f"stopped with {plural(left, 'point')} to go; give the same command again to go on", err=True)
            sys.exit(130)
        failed = sum(row["status"] == "failed" for row in rows)
        print(f"{len(rows) - failed} finished, {len(done)} skipped (already finished), {failed} failed")
        print(f"`python -m lib results {found.name}` shows them as one table")
        sys.exit(1 if failed else 0)


@cli.command()
@click.argument("name", metavar="PAGE|RUN")
@click.option("--csv", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the table as CSV.")
@click.option("--plot", metavar="PARAMETER", help="Draw what was measured against this parameter.")
@click.option("--claim", metavar="ID", help="Only this claim.")
def results(name, csv, plot, claim):
    """Show all runs of a page as one table, or one run beside the book."""
    from lib.book import pages, results, runs
    from lib.book.verdicts import plural

    if "/" not in name:
        return report(runs.find_row(name))
    page = pages.find(name)
    table = results.table(page)
    if csv:
        table.to_csv(csv, index=False)
        print(f"{plural(len(table), 'run')} written to {csv}")
    elif plot:
        target = runs.home(page.root) / page.name / f"{plot}.png"
        print(f"drawn as {results.plot(page, plot, claim, target)}")
    else:
        print(results.brief(page, table, claim).to_string(index=False))
        failed = int((table["status"] == "failed").sum())
        print(plural(len(table), "run") + (f", {failed} of them failed" if failed else "") + "; --csv FILE has every column")
    for damaged in runs.rows(page)[1]:
        click.echo(f"{damaged} is damaged and not counted", err=True)


@cli.command()
@click.argument("page", nargs=-1)
@click.option("--count", type=click.IntRange(1), default=5, help="How many other seeds (default: 5).")
@click.option("--known", is_flag=True, help="Run nothing: only count seeds that have been run with this code.")
@click.option("--record", is_flag=True, help="Keep the result with the book, in book/seeds.json.")
def seeds(page, count, known, record):
    """Run pages with other seeds: which verdicts flip, and how far is each row from its bound?"""
    from lib.book import pages, parameters, results
    from lib.book.verdicts import plural

    chosen = [pages.find(name) for name in page] or [one for one in pages.all_pages() if "seed" in parameters.of_page(one)]
    seen, flips = {}, []
    for one in chosen:
        rows, tried = results.with_other_seeds(one, count, run=not known)
        if not rows:
            print(f"{one.name}: no run with another seed is known for this code")
            continue
        found = results.compare(one, rows, tried)
        print(f"\n{one.name}, seeds {', '.join(map(str, tried))}\n\n{results.seeds_table(one, found)}", flush=True)
        seen |= found
        flips += [name for name, about in found.items() if about["flips"]]
    if not seen:
        raise Problem("nothing is known about other seeds; run without --known")
    if record:
        print(f"kept in {results.record_seeds(pages.ROOT / 'book', seen)}")
    print(f"\n{plural(len(seen), 'row')}, " + (f"{len(flips)} flip: {', '.join(flips)}" if flips else "none flips"))
    sys.exit(1 if flips else 0)


@cli.command()
@click.argument("run")
def record(run):
    """Keep a run's row with the book, for its page to show."""
    from lib.book import runs
    from lib.files import read_text, shown

    target = runs.record(run)
    print(f"recorded as {shown(target)}; its page shows it after the next `make book`")
    page = target.parent.parent / f"{target.name.rpartition('-')[0]}.md"
    if "```{recorded}" not in read_text(page):
        print(f"({shown(page)} has no {{recorded}} box yet: add one where the run belongs)")


@cli.command()
@click.argument("words", nargs=-1, metavar="[fetch NAME …]")
def data(words):
    """List the data sets: bundled, cached, missing or damaged; `fetch NAME` downloads and verifies one."""
    from tabulate import tabulate

    from lib.data import datasets, files

    if words and (words[0] != "fetch" or len(words) == 1):
        raise click.UsageError("write `data`, or `data fetch NAME …`")
    rows, damaged = [], []
    try:
        for name in words[1:]:
            datasets.load(name)
        for name in datasets.names():
            about, state = datasets.describe(name), datasets.status(name)
            try:
                if state != "missing":
                    datasets.load(name, train=0, test=0)  # every byte is checked
            except files.DamagedFile as error:
                state = "damaged"
                damaged.append(str(error))
            images = " + ".join(f"{n:,}" for n in about["counts"].values() if n)
            rows.append((name, state, images, "×".join(map(str, about["shape"])), about["licence"]))
    except (ValueError, files.DamagedFile, files.MissingFile) as error:
        raise Problem(str(error)) from None
    print(tabulate(rows, ("set", "status", "images", "pixels", "licence"), disable_numparse=True))
    print(f"\ncache: {files.cache()}\nRACING_DATA: {os.environ.get('RACING_DATA') or 'not set'}")
    if damaged:
        raise Problem("\n".join(damaged))


if __name__ == "__main__":
    cli(prog_name="python -m lib")
