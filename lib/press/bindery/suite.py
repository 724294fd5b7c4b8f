"""`python -m lib test`: the whole suite, and how its tests are dealt out to the cores.

Tests that share something costly stay together: the cells of a notebook, a file and its fixtures. Those of the press, which
mostly wait for processes of their own, are dealt out one by one. What took longest the last time comes first, so that no
long file waits alone at the end; `tests/seconds.json` knows (`python -m lib test --record` writes it), and `book/seconds.json`
of pages.

This module is also the pytest plugin that does so, in every worker: `-p lib.press.bindery.suite`.
"""

import contextlib
import json
import os
import re
import shlex
import sys
import threading
import time
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from lib.press import environment, files, pages
from lib.press.notebooks import nursery
from lib.press.workbench import browser, execution

sys.modules.setdefault("rfc3987_syntax", None)  # as in lib/__main__.py: nbval would load it in every worker
ROOT = environment.ROOT
SECONDS = ROOT / "tests" / "seconds.json"
ONE_BY_ONE = "tests/press/"  # of these, only tests that share a costly fixture stay together
WAITING = 1  # workers above the number of cores: browsers, sweeps and clusters leave a core idle for a quarter of the time
WORTH = 0.5  # seconds below which a test is not worth a line in that file
SMOKE = "test_every_page_runs_as_smoke"
DEADLINE, LATE = "RACING_DEADLINE", "there was no time left"
EVERYTHING = ("tests", "book", "--nbval-lax", "-rs")  # what is skipped is named, with the reason


def seconds() -> dict[str, float]:
    """What every group, or every test of its own, took the last time that it was recorded; pages, when they were executed."""
    executed = {f"book/{name}.ipynb": taken for name, taken in pages.seconds(ROOT).items()}
    return executed | (files.read_json(SECONDS) if SECONDS.exists() else {})


def pytest_collection_modifyitems(config, items) -> None:
    """Put what takes longest first."""
    known = seconds()
    items.sort(key=lambda item: -known.get(group(item.nodeid), known.get(item.nodeid, WORTH)))


def group(name: str) -> str:
    """What a test is dealt out with: its file, or nothing but itself."""
    file = name.split("::")[0]
    return name if file.startswith(ONE_BY_ONE) and not shares(file) else file


@lru_cache
def shares(file: str) -> bool:
    """Whether tests of a file share a fixture of theirs."""
    return re.search(r"scope=.(module|class|session).", (ROOT / file).read_text(encoding="utf-8")) is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Deal out groups in the order of the collection."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    return Groups(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Pages, and nothing that tests how kernels start and end, run in forks of an interpreter that has torch in memory."""
    with nursery.used(item.nodeid.startswith("book/") or SMOKE in item.nodeid):
        return (yield)


def pytest_runtest_setup(item) -> None:
    """Start no test after the deadline, if there is one: the quick check has promised to end."""
    if time.time() > float(os.environ.get(DEADLINE, "inf")):
        pytest.skip(LATE)


class Count:
    """Counts what passed and failed, and how long everything took."""

    def __init__(self) -> None:
        self.passed = self.failed = self.skipped = self.late = 0
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report) -> None:
        """One phase of one test is over."""
        name = group(report.nodeid)
        self.seconds[name] = self.seconds.get(name, 0.0) + report.duration
        if report.skipped:
            self.skipped += 1
            self.late += LATE in str(report.longrepr)
        elif report.failed:
            self.failed += 1
        elif report.when == "call":
            self.passed += 1

    def pytest_collectreport(self, report) -> None:
        """A file that cannot even be read counts as a failure."""
        self.failed += report.failed


def run(given: list[str], cores: int | None = None) -> tuple[int, Count]:
    """pytest with these arguments, dealt out to the cores unless they say otherwise: its status and what was counted."""
    os.chdir(ROOT)
    os.environ.update(execution.kernel_environment(ROOT))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes import `lib`: what one has compiled serves all
    count = Count()
    shared = dealt(cores or WAITING + (os.cpu_count() or 1), os.environ.get(nursery.ADDRESS)) if cores != 1 else []
    code = pytest.main([*given, *shared], plugins=[count])
    return int(code), count


def dealt(workers: int, forks: str | None) -> list[str]:
    """pytest's arguments for so many workers: forks of the interpreter at this address, whose imports take five seconds."""
    python = f"//python={shlex.join(nursery.client(forks))}" if forks else ""
    dealing = ["-p", "lib.press.bindery.suite", "--tx", f"{workers}*popen{python}", "--dist", "loadscope"]
    dealing += [f"--max-worker-restart={4 * workers}", "--no-loadscope-reorder"]
    return [*dealing, "-W", "ignore::pytest.PytestAssertRewriteWarning"]  # some of what plugins import is there already


def rewrite(tests: list[Path]) -> None:
    """Compile tests as pytest would, where it has not yet: in a fresh clone all workers would do so at once, each for itself.

    This asks pytest for what it does not promise to keep; what goes wrong here is left to the workers.
    """
    with contextlib.suppress(Exception):
        from _pytest.assertion import rewrite as inner

        for path in tests:
            compiled = inner.get_cache_dir(path) / (path.stem + inner.PYC_TAIL)
            if inner.try_makedirs(compiled.parent) and inner._read_pyc(path, compiled) is None:
                mark, code = inner._rewrite_test(path, None)
                inner._write_pyc(SimpleNamespace(trace=lambda text: None), code, mark, compiled)


def main(given: list[str]) -> int:
    """The suite, or what pytest's arguments name; the last line is 'N passed, N failed'."""
    if browser.ensure() is None:
        print(f"The browser tests cannot run. {browser.NONE_FOUND}", flush=True)
    record = given == ["--record"]
    if record or not given:
        rewriting = threading.Thread(target=rewrite, args=[sorted((ROOT / "tests").glob("**/*.py"))])
        rewriting.start()  # while the interpreter that forks does its imports, on another core
        with nursery.Nursery(execution.kernel_environment(ROOT), nursery.MODULES + nursery.MORE + nursery.SUITE):
            rewriting.join()
            code, count = run(list(EVERYTHING))
    else:
        code, count = run(given, 1)
    if record:  # as on a core of its own, which is what `check` has to give
        share = (os.cpu_count() or 1) / (WAITING + (os.cpu_count() or 1))
        keep({name: share * value for name, value in count.seconds.items()})
    spent = os.times()
    print(f"{sum(spent[:4]):.0f} seconds of processor time on {os.cpu_count()} cores")
    skipped = f", {count.skipped} skipped" if count.skipped else ""
    print(f"{count.passed} passed, {count.failed or int(code not in (0, 1))} failed{skipped}")
    return code


def keep(measured: dict[str, float], path: Path = SECONDS) -> None:
    """Write down what took how long, longest first; what takes next to nothing is left out, and so are pages."""
    tests = [(name, round(value, 1)) for name, value in measured.items() if value >= WORTH and not name.startswith("book/")]
    worth = dict(sorted(tests, key=lambda pair: -pair[1]))
    files.write_whole(path, json.dumps(worth, indent=1, ensure_ascii=False) + "\n")
