"""Rounds of unit tests in a copy of the repository, each in a fork of an interpreter that has torch in memory already.

Importing torch takes two seconds, most unit tests take a few thousandths of one. `Warm` makes the copy, starts this file in
it and asks it for rounds; what a round writes, breaks or loads into memory is gone with its fork. The file runs without
`lib`: what the interpreter imports as `lib` is the copy's.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import pytest

COPIED, LINKED = ("lib", "tests", "book", "pyproject.toml"), ("data",)
UNCOPIED = ("__pycache__", "*.nb[ci]", "*.ipynb", "recorded")
CLOCKS = ("perf_counter", "process_time", "monotonic", "thread_time", "time")
OFTEN = 1000  # calls of a function in a test after which its lines are not watched any more
ASSERTED = ("AssertionError", "Failed")  # a test that says no; everything else is a program that stopped


class Warm:
    """A copy of the repository `root` in the folder `inside`, and an interpreter that runs the copy's tests."""

    def __init__(self, root: Path, inside: Path):
        self.copy = Path(tempfile.mkdtemp(dir=inside))
        for name in COPIED:
            if (root / name).is_dir():
                shutil.copytree(root / name, self.copy / name, ignore=shutil.ignore_patterns(*UNCOPIED))
            else:
                shutil.copy(root / name, self.copy / name)
        for name in LINKED:
            if (root / name).exists():
                (self.copy / name).symlink_to(root / name)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "RACING"))}
        env |= {"PYTHONPATH": str(self.copy), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        env |= {"OMP_NUM_THREADS": "1", "NUMBA_CACHE_DIR": str(inside / "compiled"), "MPLBACKEND": "agg"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-P", __file__],
            cwd=self.copy,
            env=env,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> "Warm":
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.communicate()
        shutil.rmtree(self.copy, ignore_errors=True)

    def ask(self, **request) -> dict:
        """The answer to a request: `load` (names of modules to have in memory) or a round of tests, see `_round`."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("the interpreter that runs the tests has died")
        return json.loads(answer)

    def load(self, modules: list[str]) -> None:
        self.ask(load=modules)

    def watch(self, tests: list[str]) -> dict:
        """All tests of these files or folders, watched: {"tests": {id: {"passed", "seconds", "clock", "lines"}}, "modules"}.

        `lines` is {file: [line, …]} of `lib`, those that the test runs; `clock` tells whether it looks at one; `seconds`
        are processor time, to which watching adds. "modules" are those that the tests load, `lib`'s and their own apart.
        """
        answer = self.ask(tests=tests, watch=True, limit=3600)
        return {"tests": answer["tests"], "modules": answer["modules"]}

    def judge(self, planted: dict[str, str], tests: list[str], limit: float = 600.0, own_cache: bool = False) -> dict:
        """The tests (ids, files or folders) in this order until one fails, with the files `planted` {path: text} in place.

        {"outcome": "passed", "failed" (a test said no), "stopped" (another error) or "timeout", "test": its id}. `limit` is
        in seconds of processor time; with `own_cache`, compiled code is neither found nor left behind.
        """
        answer = self.ask(planted=planted, tests=tests, limit=limit, first=True, own_cache=own_cache)
        return {"outcome": answer["outcome"], "test": answer.get("test", "")}


# --- What follows runs in the copy, in the interpreter that forks -----------------------------------------------------------


def serve() -> None:
    """Answer one JSON request per line until there are no more."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    answers = os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    for line in sys.stdin:
        request = json.loads(line)
        if "load" in request:
            _load(request["load"])
            answer = {}
        else:
            answer = _round(request)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _load(modules: list[str]) -> None:
    warnings.simplefilter("ignore")
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a fork that looks through all this for garbage would have to copy it


def _round(request: dict) -> dict:
    """Fork, plant, test, restore."""
    before = {}
    try:
        for name, text in request.get("planted", {}).items():
            path = Path(name)
            before[path] = path.read_bytes()
            path.write_bytes(text.encode())
        return _forked(request)
    finally:
        for path, text in before.items():
            path.write_bytes(text)


def _forked(request: dict) -> dict:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            os.setsid()
            os.dup2(1, 2)
            answer = _test(request)
            with os.fdopen(writing, "w") as out:
                json.dump(answer, out)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    text, end, late = b"", time.monotonic() + 20 * request["limit"], False
    try:
        while True:
            late = late or time.monotonic() > end
            if late:
                break
            if select.select([reading], [], [], 1.0)[0]:
                part = os.read(reading, 1 << 20)
                if not part:
                    break
                text += part
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL) if late or not text else None
        os.close(reading)
        _, status = os.waitpid(child, 0)
    if text and not late:
        return json.loads(text)
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return {"outcome": "timeout" if late or ended == signal.SIGXCPU else "stopped", "tests": {}, "modules": []}


def _test(request: dict) -> dict:
    import resource

    seconds = int(request["limit"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    with contextlib.suppress(ImportError):
        from hypothesis import Phase, settings

        # The same examples each time, and no search for a smaller one: a failure is all that is asked for.
        quick = {"derandomize": True, "database": None, "deadline": None, "report_multiple_bugs": False}
        settings.register_profile("warm", phases=(Phase.explicit, Phase.generate), **quick)
        settings.load_profile("warm")
    if request.get("own_cache"):
        with contextlib.suppress(ImportError):
            import numba

            numba.config.CACHE_DIR = tempfile.mkdtemp(dir=os.getcwd())
    judge = _Judge(request)
    files = list(dict.fromkeys(test.split("::")[0] for test in request["tests"]))
    options = ["-q", "--assert=plain", "-p", "no:unraisableexception"]  # a verdict is enough
    code = pytest.main([*files, *options, *(["-x"] if request.get("first") else [])], plugins=[judge])
    if judge.outcome == "passed" and code != 0:
        judge.outcome = "stopped"
    mine = os.getcwd()
    loaded = [name for name, module in sys.modules.items() if not (getattr(module, "__file__", None) or mine).startswith(mine)]
    known = {"modules": loaded if request.get("watch") else [], "tests": judge.tests}
    return known | {"outcome": judge.outcome, "test": judge.failed}


class _Judge:
    """Keeps to the tests that were asked for, in that order, and writes down what they did."""

    def __init__(self, request: dict):
        self.order = {test: i for i, test in enumerate(request["tests"]) if "::" in test}
        self.watch, self.tests, self.outcome, self.failed = request.get("watch", False), {}, "passed", ""
        self.lines, self.shared, self.calls, self.clock, self.now = {}, {}, {}, False, {}
        self.science = os.path.join(os.getcwd(), "lib") + os.sep
        if self.watch:
            for name in CLOCKS:
                setattr(time, name, self._watched_clock(getattr(time, name)))

    def _watched_clock(self, clock):
        mine = os.path.join(os.getcwd(), "tests")

        def ask():
            self.clock = self.clock or sys._getframe(1).f_code.co_filename.startswith(mine)
            return clock()

        return ask

    def _enter(self, frame, event, _):
        name = frame.f_code.co_filename
        if not name.startswith(self.science):
            return None
        self.calls[frame.f_code] = self.calls.get(frame.f_code, 0) + 1
        if self.calls[frame.f_code] > OFTEN:
            return None
        into = self.now.setdefault(name, set())
        into.add(frame.f_lineno)

        def line(frame, event, _):
            into.add(frame.f_lineno)
            return line

        return line

    def pytest_collection_modifyitems(self, items):
        if self.order:
            items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])

    def pytest_exception_interact(self, node, call):
        if self.outcome == "passed":
            self.outcome = "failed" if call.excinfo.typename in ASSERTED else "stopped"
            self.failed = node.nodeid

    def pytest_runtest_logreport(self, report):
        if report.failed or report.skipped:
            self.tests[report.nodeid]["passed"] = False

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        """What a fixture of a whole file does belongs to all tests of that file."""
        if not self.watch or fixturedef.scope == "function":
            return (yield)
        before, self.now = self.now, self.shared.setdefault(fixturedef.baseid.split("::")[0], {})
        try:
            return (yield)
        finally:
            self.now = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        test = self.tests[item.nodeid] = {"passed": True}
        self.now, self.calls, self.clock, start = {}, {}, False, time.process_time()
        if self.watch:
            threading.settrace(self._enter)
            sys.settrace(self._enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            test |= {"seconds": round(time.process_time() - start, 4), "clock": self.clock}
            self.lines[item.nodeid] = self.now

    def pytest_sessionfinish(self):
        for name, test in self.tests.items():
            parts = [self.lines.get(name, {}), *(seen for base, seen in self.shared.items() if name.startswith(base))]
            files = {file for part in parts for file in part}
            joined = {file: sorted(set().union(*(part.get(file, ()) for part in parts))) for file in files}
            test["lines"] = {os.path.relpath(file): lines for file, lines in joined.items()} if self.watch else {}


if __name__ == "__main__":
    serve()
