"""Kernels and commands that start at once: forks of one interpreter which has all that they import in memory.

Those imports take four seconds of a core; the book has dozens of pages, and the suite starts hundreds of kernels and points
of sweeps. `Nursery` starts this file as the interpreter that forks, and writes a kernel specification `python3` whose command
is the client (`stand_in.py`) that asks for a fork and stands in for it: signals are handed on, and when one of the two
ends, so does the other; with the interpreter that forks all of them end. Kernels, and what `execution.start` starts, are
forks where `used` says so, ordinary processes everywhere else. The file runs without `lib`; what a fork imports of it is its own.
"""

import atexit
import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

ADDRESS, PYTHON = "RACING_NURSERY", "RACING_PYTHON"  # the socket of the interpreter that forks; the command of its client
SPARED = "RACING_SPARED"  # seconds of a core that a forked kernel did not need for what all kernels of pages import
SHELL = tuple(f"IPython.{name}" for name in ("core.debugger", "core.oinspect", "core.completerlib", "core.logger"))
# What every kernel imports, in part only when it starts.
KERNEL = ("IPython", "ipykernel.kernelapp", "ipykernel.debugger", "tornado.platform.asyncio", "tornado.queues", *SHELL)
KERNEL += ("IPython.extensions.storemagic", "sqlite3", "psutil")
PRESS = (*KERNEL, "papermill", "jupytext", "pygments.lexers.python", "pygments.formatters.html", "nbclient", "yaml", "tqdm")
MODULES = ("numpy", "torch", "scipy.stats", "matplotlib.pyplot", "seaborn", "sklearn.cluster", *PRESS, "pandas")
MORE = ("torch._dynamo", "scipy.integrate", "numba", "networkx")  # every third page imports these: optimisers ask for the first
EXTENSIONS = ("external_toc", "togglebutton", "copybutton", "thebe", "comments", "design", "proof", "exercise", "book_theme")
# What the suite has in memory, too: it renders small books a dozen times, and all its workers import what tests do.
SUITE = ("jupyter_book.cli.main", "myst_nb.sphinx_", "sphinx.builders.html", "sphinx.ext.intersphinx", "sphinxcontrib.bibtex")
SUITE += (*(f"sphinx_{name}" for name in EXTENSIONS), "bokeh.plotting", "bokeh.embed", "playwright.sync_api", "sklearn.metrics")
EVERYWHERE = ("numpy", "torch", "matplotlib.pyplot", *KERNEL)  # of these; the rest is for some pages, or for commands
DIGITS = 10  # of a request's length, which go before it (`stand_in`)
SHORT = 70  # bytes of a folder's name that leave room for a socket's, which may have a hundred in all
BACKEND = "module://matplotlib_inline.backend_inline"  # what a kernel would ask of matplotlib before it is imported


class Nursery:
    """While this lasts, this process and those that it starts may have forks as kernels; see `used`."""

    def __init__(self, environment: dict[str, str], modules: tuple[str, ...] = MODULES + MORE):
        self.modules = modules
        short = len(os.fsencode(tempfile.gettempdir())) < SHORT
        place = {"prefix": "racing-nursery-", "dir": None if short else "/tmp", "ignore_cleanup_errors": True}
        self.folder = tempfile.TemporaryDirectory(**place)
        self.address = str(Path(self.folder.name, "socket"))
        self.environment = environment | {"MPLBACKEND": BACKEND}

    def __enter__(self) -> "Nursery":
        command = [sys.executable, "-P", __file__, self.address, *self.modules]
        # Ctrl-C is not for the interpreter that forks: it ends with this block, or with this process.
        self.process = subprocess.Popen(command, env=self.environment, stdin=subprocess.PIPE, start_new_session=True)
        try:
            while not Path(self.address).exists():
                if self.process.poll() is not None:
                    raise RuntimeError("the interpreter that forks kernels did not start")
                time.sleep(0.05)
        except BaseException:
            self.end()
            raise
        spec = Path(self.folder.name, "kernels", "python3")
        spec.mkdir(parents=True)
        command = [*client(self.address), "-f", "{connection_file}"]
        about = {"argv": command, "display_name": "Python 3", "language": "python", "metadata": {"debugger": False}}
        (spec / "kernel.json").write_text(json.dumps(about), encoding="utf-8")
        self.before = os.environ.get(ADDRESS)
        os.environ[ADDRESS] = self.address
        return self

    def __exit__(self, *_) -> None:
        put_back(ADDRESS, self.before)
        self.end()

    def end(self) -> None:
        """End the interpreter that forks, and with it its forks."""
        self.process.stdin.close()  # as would the end of this process
        self.process.wait()
        self.folder.cleanup()


def client(address: str) -> list[str]:
    """The command that asks the interpreter at this address for a fork, and stands in for it."""
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("stand_in.py")), address]


@contextlib.contextmanager
def used(here: bool = True, address: str | None = None):
    """Inside of this block kernels and commands that start are forks, if there is a nursery, and `here` is true.

    They are forks of the interpreter at `address`, or of the one that this process knows of.
    """
    before = {name: os.environ.get(name) for name in ("JUPYTER_PATH", PYTHON)}
    address = address or os.environ.get(ADDRESS)
    if here and address:
        path = filter(None, [str(Path(address).parent), before["JUPYTER_PATH"]])
        os.environ.update({"JUPYTER_PATH": os.pathsep.join(path), PYTHON: json.dumps(client(address))})
    try:
        yield
    finally:
        for name, value in before.items():
            put_back(name, value)


def die_with_parent() -> None:
    """Linux: have the system end this process when the one that started it is gone, whatever it is at work on."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def put_back(name: str, value: str | None) -> None:
    """Give a variable of the environment the value that it had, or none."""
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value


# --- the interpreter that forks -----------------------------------------------------------------------------------------


def serve(address: str, modules: list[str]) -> None:
    """Import what all need, then fork for everyone who asks; in the fork, be what was asked for."""
    import gc
    import importlib

    def end_with_parent() -> None:
        sys.stdin.read()
        shutil.rmtree(Path(address).parent, ignore_errors=True)  # who was killed could not do it
        os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()
    sys.modules.setdefault("rfc3987_syntax", None)  # a grammar of addresses that takes a second and that nobody asks
    spared = 0.0
    for name in sorted(modules, key=lambda name: name not in EVERYWHERE):
        importlib.import_module(name)
        spared = time.process_time() if name in EVERYWHERE else spared
    if "pandas" in sys.modules:  # which finds no notebook yet, believes in a terminal, and would cut tables to its width
        sys.modules["pandas"].set_option("display.max_columns", 20)
    if set(PRESS) <= set(modules):  # tables that are made at their first use
        list(sys.modules["pygments.lexers.python"].PythonLexer().get_tokens("x"))
        sys.modules["nbformat"].v4.new_raw_cell()
        sys.modules["jupytext"].reads("# A page", fmt="md:myst")
        importlib.import_module("jupyter_client.provisioning").KernelProvisionerFactory.instance()  # looks into every package
    if "matplotlib.pyplot" in modules:
        draw()
    if "numba" in modules:  # half a second of tables that the first compiled function of a page would ask for
        from numba.core.registry import cpu_target

        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(16)
    signal.signal(signal.SIGCHLD, count_in)
    while True:
        asked, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            die_with_parent()
            take_over(asked, spared)
            threading._shutdown()  # what an interpreter does at its end, but for taking all objects apart, which would
            atexit._run_exitfuncs()  # copy the memory that forks share
            os._exit(0)
        asked.close()


def draw() -> None:
    """Draw a figure that nobody sees, so that fonts are found and the grammar of formulas is there for the first that is seen.

    Not by `pyplot`, which would know of it, and with the settings as they are: nothing of it is left but what was looked up.
    """
    import io

    from matplotlib import font_manager
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.plot([1, 10], [1, 10], label="$x^2$")
    axes.set(xlabel="$x$", xscale="log")
    axes.legend()
    figure.savefig(io.BytesIO(), format="png", bbox_inches="tight")
    for size in range(12, 25):  # halves of a point: each size of the book's font is looked for among all fonts
        for weight in ("normal", "bold"):
            font_manager.findfont(font_manager.FontProperties(family="DejaVu Sans", size=size / 2, weight=weight))


def count_in(*_) -> None:
    """Forks have ended: take note of them, so that what they cost counts as cost of whoever waits for this interpreter."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def request(asked: socket.socket) -> tuple[str, list[str], dict[str, str], list[int]]:
    """What a client (`stand_in`) asks for: its folder, arguments, environment and streams; a ValueError if it is gone."""
    _, streams, _, _ = socket.recv_fds(asked, 1, 3)
    size = int(asked.recv(DIGITS, socket.MSG_WAITALL))
    text = asked.recv(size, socket.MSG_WAITALL)
    folder, number, *rest = os.fsdecode(text).split("\0")
    arguments, environment = rest[: int(number)], rest[int(number) :]
    return folder, arguments, dict(item.split("=", 1) for item in environment), streams


def take_over(asked: socket.socket, spared: float) -> None:
    """Take over the client's command, folder, environment and streams, and be the kernel, module or program that it asks for.

    A kernel is told how many seconds of a core it was `spared`, for pages are timed as if they had imported all by themselves.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        folder, arguments, environment, streams = request(asked)
    except (ValueError, OSError):  # who asked was killed before it could say what for
        os._exit(1)
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, closefd=False) for number, mode in enumerate("rww"))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # the client's, not the one that was found before
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    path = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [folder for folder in ("", *path) if folder not in sys.path]
    throw_dice()
    asked.sendall(f"{os.getpid()}\n".encode())

    def end_with_client() -> None:
        asked.recv(1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=end_with_client, daemon=True).start()
    if arguments[0] in ("-m", "-u"):
        asked.sendall(bytes([be_a_module(*arguments[1:]) if arguments[0] == "-m" else be_a_program(arguments[-1])]))
        return
    from ipykernel import kernelapp

    os.environ[SPARED] = f"{spared:.2f}"
    os.dup2(2, 1)  # who reads what the page's process says must not wait for a kernel that hangs
    sys.argv = ["ipykernel_launcher", *arguments, f"--IPKernelApp.parent_handle={os.getppid()}"]
    kernelapp.launch_new_instance()


def throw_dice() -> None:
    """Begin random numbers anew, as each fresh interpreter does: a page that forgets its seed must not look as if it had one."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def be_a_module(name: str, *arguments: str) -> int:
    """`python -m name …`: the status with which it would end."""
    import runpy

    sys.argv = [name, *arguments]
    return ending(lambda: runpy.run_module(name, run_name="__main__", alter_sys=True))


def be_a_program(text: str) -> int:
    """`python -u -c text`, which is how a worker of the suite starts: the status with which it would end."""
    sys.argv, sys.modules["__main__"] = ["-c"], type(sys)("__main__")
    return ending(lambda: exec(compile(text, "<string>", "exec"), vars(sys.modules["__main__"])))


def ending(work: Callable) -> int:
    """The status with which a process would end that does this."""
    status = 0
    if "matplotlib" in sys.modules:  # a command draws into files
        sys.modules["matplotlib"].use(os.environ.get("MPLBACKEND", "agg"))
    try:
        work()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])
