"""The one place where errors meet the person at the terminal.

Every command runs `guarded`: what goes wrong is one sentence on stderr and a status that is not zero. What nobody
expected is one sentence, too; its traceback goes to a file in the temporary folder.
"""

import contextlib
import errno
import os
import signal
import sys
import tempfile
import threading
import traceback

from lib.press.errors import Problem

REPORTS = "RACING_REPORTS"  # where tracebacks are kept, for a process whose own temporary folder goes away with it
DISK = {
    errno.ENOSPC: "the disk is full",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "that is not permitted",
    errno.EPERM: "that is not permitted",
    errno.EDQUOT: "the disk's quota is used up",
}


class Terminated(KeyboardInterrupt):
    """SIGTERM, which stops a command as Ctrl-C does: what it has begun is cleared away, what it has started is ended."""


def guarded(action):
    """The status of `action()`; where it raises, the sentence is printed and its status returned."""
    with hearing_sigterm():
        try:
            for stream in (sys.stdout, sys.stderr):  # a letter that this terminal does not have is no reason to fail
                if hasattr(stream, "reconfigure"):
                    stream.reconfigure(errors="backslashreplace")
            status = action()
            if sys.stdout is not None:
                sys.stdout.flush()
            return status
        except Problem as problem:
            return tell(problem, problem.status)
        except KeyboardInterrupt as stop:
            return tell("\nstopped", 143 if isinstance(stop, Terminated) else 130)
        except BrokenPipeError:  # `python -m lib pages | head`: the reader has had enough, and said so
            hush()
            return 141
        except MemoryError:
            return tell("the memory of this machine does not suffice", 2)
        except OSError as error:
            if error.errno not in DISK:
                return tell(unexpected(error), 2)
            hush()
            where = " (%s)" % error.filename if error.filename else ""  # noqa: UP031
            return tell("this cannot be written or read: %s%s" % (DISK[error.errno], where), 2)  # noqa: UP031
        except Exception as error:
            return tell(unexpected(error), 2)


def tell(sentence, status):
    """Print the sentence and hand the status on; a terminal that has gone away is no further problem."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        print(sentence, file=sys.stderr, flush=True)
    return status


def unexpected(error):
    """The sentence about an error that nobody foresaw, with the name of the file that has its traceback."""
    words = " ".join(str(error).split())[:300]
    said = type(error).__name__ + (": " + words if words else "")
    try:
        handle, path = tempfile.mkstemp(prefix="racing-error-", suffix=".txt", dir=os.environ.get(REPORTS) or None)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    except OSError as trouble:
        return "an error that should not happen: %s (its traceback could not be saved: %s)" % (said, trouble.strerror)  # noqa: UP031
    return "an error that should not happen: %s; its traceback is in %s" % (said, path)  # noqa: UP031


def hush():
    """Send what stdout still holds nowhere, lest the interpreter fail on it again at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


@contextlib.contextmanager
def hearing_sigterm():
    """While this lasts, SIGTERM raises Terminated, unless somebody else already listens to it."""
    here = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL

    def stop(number, frame):
        raise Terminated

    if here:
        signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        if here:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def count(number, thing):
    """'1 point', '2 points'."""
    return "%d %s%s" % (number, thing, "" if number == 1 else "s")  # noqa: UP031
