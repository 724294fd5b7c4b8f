"""Kernels for the suite that start at once: forks of one interpreter which has torch and the plotting libraries in memory.

Those imports take four seconds of a core, and the suite starts more than forty kernels. `Nursery` starts this file as the
interpreter that forks, and writes a kernel specification `python3` whose command is this file again, as the client that asks for
a fork and stands in for it: signals are handed on, and when one of the two ends, so does the other. Kernels are forks where
`used` says so, ordinary ones everywhere else. The file runs without `lib`; what a kernel imports of it is its own.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ADDRESS = "RACING_NURSERY"  # the socket of the interpreter that forks
MODULES = ("numpy", "torch", "scipy.stats", "matplotlib.pyplot", "seaborn", "sklearn.cluster", "IPython", "ipykernel.kernelapp")
BACKEND = "module://matplotlib_inline.backend_inline"  # what a kernel would ask of matplotlib before it is imported


class Nursery:
    """While this lasts, this process and those that it starts may have forks as kernels; see `used`."""

    def __init__(self, environment: dict[str, str]):
        self.folder = tempfile.TemporaryDirectory(prefix="racing-nursery-")
        self.address = str(Path(self.folder.name, "socket"))
        self.environment = environment | {"MPLBACKEND": BACKEND}

    def __enter__(self) -> "Nursery":
        python = [sys.executable, "-P", __file__]
        self.process = subprocess.Popen([*python, "serve", self.address], env=self.environment, stdin=subprocess.PIPE)
        while not Path(self.address).exists():
            if self.process.poll() is not None:
                raise RuntimeError("the interpreter that forks kernels did not start")
            time.sleep(0.05)
        spec = Path(self.folder.name, "kernels", "python3")
        spec.mkdir(parents=True)
        command = [sys.executable, "-I", "-S", __file__, "ask", "-f", "{connection_file}"]
        about = {"argv": command, "display_name": "Python 3", "language": "python", "metadata": {"debugger": False}}
        (spec / "kernel.json").write_text(json.dumps(about), encoding="utf-8")
        os.environ[ADDRESS] = self.address
        return self

    def __exit__(self, *_) -> None:
        os.environ.pop(ADDRESS, None)
        self.process.stdin.close()  # which ends it, as would the end of this process
        self.process.wait()
        self.folder.cleanup()


@contextlib.contextmanager
def used(here: bool = True):
    """Inside of this block kernels that start are forks, if there is a nursery, and `here` is true."""
    before = os.environ.get("JUPYTER_PATH")
    if here and ADDRESS in os.environ:
        os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, [str(Path(os.environ[ADDRESS]).parent), before]))
    try:
        yield
    finally:
        os.environ.pop("JUPYTER_PATH", None)
        os.environ.update({"JUPYTER_PATH": before} if before is not None else {})


# --- the interpreter that forks -----------------------------------------------------------------------------------------


def serve(address: str) -> None:
    """Import what all pages need, then fork for everyone who asks; in the fork, be a kernel."""
    import gc
    import importlib

    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    for name in MODULES:
        importlib.import_module(name)
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(16)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        asked, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            be_a_kernel(asked)
            return  # and end as an interpreter does, so that what a kernel has registered for its end is done
        asked.close()


def be_a_kernel(asked: socket.socket) -> None:
    """Take over the client's command, folder, environment and streams, and run until the kernel is shut down."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    text, streams, _, _ = socket.recv_fds(asked, 1 << 20, 3)
    while not text.endswith(b"\n"):
        text += asked.recv(1 << 20)
    request = json.loads(text)
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    path = request["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [folder for folder in ("", *path) if folder not in sys.path]
    asked.sendall(f"{os.getpid()}\n".encode())

    def end_with_client() -> None:
        asked.recv(1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=end_with_client, daemon=True).start()
    from ipykernel import kernelapp

    sys.argv = ["ipykernel_launcher", *request["arguments"], f"--IPKernelApp.parent_handle={os.getppid()}"]
    kernelapp.launch_new_instance()


# --- the client, which stands in for the kernel -------------------------------------------------------------------------


def ask(arguments: list[str]) -> int:
    """Ask for a fork and wait for its end; without an interpreter that forks, become an ordinary kernel."""
    asking = socket.socket(socket.AF_UNIX)
    try:
        asking.connect(os.environ[ADDRESS])
    except (KeyError, OSError):  # it is gone
        os.execv(sys.executable, [sys.executable, "-m", "ipykernel_launcher", *arguments])
    own = {name: value for name, value in os.environ.items() if name != ADDRESS}
    request = {"arguments": arguments, "folder": os.getcwd(), "environment": own}
    socket.send_fds(asking, [b" "], [0, 1, 2])
    asking.sendall(json.dumps(request).encode() + b"\n")
    kernel = int(asking.makefile().readline())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.kill(kernel, number))
    while asking.recv(1):
        pass
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        sys.exit(ask(sys.argv[2:]))
