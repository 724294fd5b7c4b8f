"""The client of the interpreter that forks (`nursery`): asks it for a fork, stands in for that and ends as it does.

The suite starts hundreds of these, so this file imports no more than it needs, and nothing of `lib`.
"""

import ctypes
import json
import os
import signal
import socket
import sys

OWN = ("RACING_NURSERY", "RACING_PYTHON")  # not for kernels: what a page starts is no fork


def ask(address: str, arguments: list[str]) -> int:
    """Ask for a fork, wait for its end and end likewise; without an interpreter that forks, become what was asked for.

    On Linux the client ends with the process that started it, and the fork with the client.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    module = arguments[:1] == ["-m"]
    asking = socket.socket(socket.AF_UNIX)
    try:
        asking.connect(address)
    except OSError:  # it is gone
        os.execv(sys.executable, [sys.executable, *([] if module else ["-m", "ipykernel_launcher"]), *arguments])
    own = {name: value for name, value in os.environ.items() if module or name not in OWN}
    request = {"arguments": arguments, "folder": os.getcwd(), "environment": own}
    socket.send_fds(asking, [b" "], [0, 1, 2])
    asking.sendall(json.dumps(request).encode() + b"\n")
    kernel = int(asking.makefile().readline())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: os.kill(kernel, number))
    status = 137 if module else 0  # that of a module which was killed and could not say how it ended
    while told := asking.recv(1):
        status = told[0]
    return status


if __name__ == "__main__":
    sys.exit(ask(sys.argv[1], sys.argv[2:]))
