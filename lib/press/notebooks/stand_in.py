"""The client of the interpreter that forks (`nursery`): asks it for a fork, stands in for that and ends as it does.

The suite starts hundreds of these, so this file imports nothing of `lib`, and of the standard library only what is written in
C or starts with every interpreter: `socket`, `signal` and `json` would make it take two and a half times as long.
"""

import _signal
import _socket
import ctypes
import os
import sys

OWN = ("RACING_NURSERY", "RACING_PYTHON")  # not for kernels: what a page starts is no fork
DIGITS = 10  # of a request's length, which go before it


def ask(address: str, arguments: list[str]) -> int:
    """Ask for a fork, wait for its end and end likewise; without an interpreter that forks, become what was asked for.

    On Linux the client ends with the process that started it, and the fork with the client.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, _signal.SIGKILL)
    module = arguments[:1] in (["-m"], ["-u"])  # or a program, -u -c TEXT
    asking = _socket.socket(_socket.AF_UNIX)
    try:
        asking.connect(address)
    except OSError:  # it is gone
        os.execv(sys.executable, [sys.executable, *([] if module else ["-m", "ipykernel_launcher"]), *arguments])
    own = [f"{name}={value}" for name, value in os.environ.items() if module or name not in OWN]
    request = os.fsencode("\0".join([os.getcwd(), str(len(arguments)), *arguments, *own]))
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    asking.sendmsg([b" "], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    asking.sendall(b"%0*d" % (DIGITS, len(request)) + request)
    number = b""
    while not number.endswith(b"\n"):
        if not (digit := asking.recv(1)):
            return 137
        number += digit
    kernel = int(number)
    for number in (_signal.SIGINT, _signal.SIGTERM):
        _signal.signal(number, lambda number, _: os.kill(kernel, number))
    status = 137 if module else 0  # that of a module which was killed and could not say how it ended
    while told := asking.recv(1):
        status = told[0]
    return status


if __name__ == "__main__":
    sys.exit(ask(sys.argv[1], sys.argv[2:]))
