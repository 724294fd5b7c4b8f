"""Every command that the book prints: `run` commands run at smoke size, the others are ones that exist.

A page with a `device` runs on one that refuses to mix with the CPU (`tests/fake_gpu.py`): what a GPU would refuse is found
without one. On the CPU the same page runs at the book's own size (nbval).
"""

import re
import shlex
from pathlib import Path

import click
import pytest

from lib import claims
from lib.__main__ import cli, given
from lib.book import pages, parameters, runs, sweep, trace
from lib.files import Problem
from tests import fake_gpu

PAGES = {page.name: page for page in pages.all_pages()}
DOCUMENTS = [pages.ROOT / name for name in ("README.md", "CONTRIBUTING.md")]
DOCUMENTS += [path for path in sorted((pages.ROOT / "book").glob("**/*.md")) if not path.parent.name.startswith("_")]
PRINTED = re.compile(r"(?:^|`|\$ )(?:\.venv/bin/)?((?:python -m lib|make) [^`\n#]+)", re.M)
PLACEHOLDER = re.compile(r"…|\b[A-Z]{3,}\b|my_paper|first-host|cluster\.yml")  # PAGE, RUN, files that readers write
SECONDS = 300  # that a cell may take
# Figures are drawn, small and once, but not laid out, which would take half of a page's time; at the book's size they are.
SKETCHES = (
    "import matplotlib, lib.plots; from matplotlib_inline.backend_inline import set_matplotlib_formats as show;"
    "matplotlib.rcParams.update({'figure.constrained_layout.use': False, 'savefig.bbox': None}); show('png', bbox_inches=None);"
    "del matplotlib, lib, show"
)


def printed() -> dict[str, str]:
    """Every printed command and where it stands first."""
    found: dict[str, str] = {}
    for path in DOCUMENTS:
        for command in PRINTED.findall(path.read_text(encoding="utf-8")):
            if not PLACEHOLDER.search(command):
                found.setdefault(command.strip().rstrip("."), path.relative_to(pages.ROOT).as_posix())
    return found


COMMANDS = printed()


def parsed(command: str) -> tuple[str, dict]:
    """The name of a `python -m lib` command and its options, as click reads them; an error names what is wrong."""
    name, found, rest = cli.resolve_command(click.Context(cli), shlex.split(command)[3:])
    return name, found.make_context(name, list(rest)).params if rest else {}  # a bare name is a mention in prose


def runs_of_pages() -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """(page, parameters) of every printed `run` at a size of its own; pages without one run with no other parameters.

    Commands that name different parameters of a page are one run with all of them: a kernel's start costs more than a sketch.
    """
    found: dict[str, list[dict]] = {page: [] for page in PAGES}
    for command in COMMANDS:
        if command.startswith("python -m lib run") and "--preset" not in command and "--device" not in command:
            options = parsed(command)[1]
            mine = given(options.get("parameter", ()))
            free = [one for one in found[options["page"]] if not one.keys() & mine.keys()] if mine else []
            if free:
                free[0].update(mine)
            elif mine:
                found[options["page"]].append(mine)
    return [(page, tuple(one.items())) for page in PAGES for one in found[page] or [{}]]


def test_the_book_prints_commands():
    assert sum(command.startswith("python -m lib run") for command in COMMANDS) > 30
    assert "make book" in COMMANDS and "make test" in COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_printed_command_exists_and_names_what_exists(command):
    where = COMMANDS[command]
    if command.startswith("make"):
        targets = re.findall(r"^([a-z]+):", (pages.ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
        assert command.split()[1] in targets, f"{where}: the Makefile has no such target"
        return
    try:
        name, options = parsed(command)
        named = options.get("page") or ()
        for page in [pages.find(one) for one in ([named] if isinstance(named, str) else named)]:
            if name == "run":
                parameters.resolve(page, given(options["parameter"]), options["preset"], options["device"], here=False)
            if name == "sweep":
                sweep.points(page, list(options["grid"]), given(options["parameter"]), options["preset"], here=False)
            if name == "results" and options["claim"]:
                assert options["claim"] in claims.of_page(page.name), f"{where}: {page.name} has no such claim"
    except (click.ClickException, Problem) as error:
        pytest.fail(f"{where}: `{command}` fails: {error}")


def words(value) -> str:
    return value if isinstance(value, str) else " ".join(f"{name}={text}" for name, text in value)


def at_smoke_size(page: pages.Page, overrides: dict[str, str]) -> dict:
    """The page's smoke preset with these parameters; what they make k times as many as in the book, is k times as many here."""
    small, own, known = parameters.resolve(page, {}, "smoke"), parameters.resolve(page, {}), parameters.of_page(page)
    settings = small | parameters.validate(overrides, known)
    for name in overrides:
        if isinstance(own[name], int) and settings[name] > small[name]:
            settings[name] = small[name] * max(1, settings[name] // own[name])
    return settings


@pytest.mark.slow
@pytest.mark.parametrize(("name", "given_values"), runs_of_pages(), ids=words)
def test_a_page_runs_at_smoke_size_with_the_printed_parameters(name, given_values, tmp_path, monkeypatch):
    """With sizes that make no sense for the claims a page must still run to its end, and look at every claim."""
    monkeypatch.setenv("RACING_RUNS", str(tmp_path))
    settings = at_smoke_size(PAGES[name], dict(given_values))
    begin, report, plain = [SKETCHES], tmp_path / "operations", trace.arguments
    if "device" in settings:
        settings["device"] = fake_gpu.DEVICE.type
        folder = str(Path(fake_gpu.__file__).parent.parent)
        begin.append(f"import sys; sys.path.append({folder!r}); from tests import fake_gpu; fake_gpu.install({str(report)!r})")
    lines = [f"--IPKernelApp.exec_lines={line}" for line in begin]
    monkeypatch.setattr(trace, "arguments", lambda path: [*plain(path), *lines])
    row = runs.run(PAGES[name], settings, timeout=SECONDS)
    assert row["status"] == "finished", row.get("error")
    assert "device" not in settings or int(report.read_text()) > 40, "next to nothing ran on the device"
    if not given_values:
        here = {claim for claim, one in claims.of_page(name).items() if one.verdict != "recorded"}
        assert here <= set(row["results"]), f"at this size the page does not look at {sorted(here - set(row['results']))}"
