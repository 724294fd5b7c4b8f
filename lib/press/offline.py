"""Pages work with the network off, and the book proves it: with RACING_OFFLINE set, reaching out is an error."""

import os
import sys

LOOPBACK = ("127.", "localhost", "::1", "0.0.0.0")


def refuse_network() -> None:
    """From now on, any look-up or connection beyond this machine raises; kernels still talk to their notebook."""

    def hook(event, arguments):
        if event not in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
            return
        target = arguments[1] if event == "socket.connect" else arguments[0]
        host = target[0] if isinstance(target, tuple) else target
        if isinstance(host, bytes):
            host = host.decode()
        if isinstance(target, tuple | str | bytes) and host and not str(host).startswith(LOOPBACK) and "/" not in str(host):
            raise PermissionError(f"this page asked the network for {host}; the book's pages work offline")

    sys.addaudithook(hook)


def wanted() -> bool:
    """Whether RACING_OFFLINE asks that the network be refused."""
    return bool(os.environ.get("RACING_OFFLINE"))
